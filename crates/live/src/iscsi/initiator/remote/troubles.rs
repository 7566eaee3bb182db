//! What is wrong with portals: [`Troubles`], so that each is told of once, when it begins, and once, when it is over.

use sanloom_core::iscsi::initiator::LoginError;
use sanloom_core::time::Instant;

/// Why there is no session at a portal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// No connection, or it does not last until the login is complete.
    Unreachable,
    /// The login fails.
    Refused(LoginError),
}

/// The trouble with each portal, by index, and since when there is any.
#[derive(Debug)]
pub(super) struct Troubles(Vec<Option<(Trouble, Instant)>>);

impl Troubles {
    /// Nothing is wrong with so many portals.
    pub(super) fn new(portals: usize) -> Troubles {
        Troubles(vec![None; portals])
    }

    /// Something is wrong with a portal. True if that is not as it was.
    pub(super) fn is_new(&mut self, now: Instant, portal: usize, trouble: Trouble) -> bool {
        let Some(before) = self.0.get_mut(portal) else { return false };
        let since = before.as_ref().map_or(now, |(_, since)| *since);
        before.replace((trouble.clone(), since)).is_none_or(|(was, _)| was != trouble)
    }

    /// There is a session. Since when there was none for trouble with its portal, if there was any.
    pub(super) fn is_over(&mut self, portal: usize) -> Option<Instant> {
        self.0.get_mut(portal)?.take().map(|(_, since)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_core::time::Span;
    use sanloom_wire::iscsi::LoginStatus;

    #[test]
    fn a_trouble_is_new_once_until_it_is_another_one_or_over() {
        let at = |s| Instant::ZERO + Span::from_secs(s);
        let refused = |status| Trouble::Refused(LoginError::Refused(status));
        let mut troubles = Troubles::new(2);
        assert!(troubles.is_new(at(1), 0, Trouble::Unreachable));
        assert!(!troubles.is_new(at(2), 0, Trouble::Unreachable));
        assert!(troubles.is_new(at(3), 1, Trouble::Unreachable), "of another portal");
        assert!(troubles.is_new(at(4), 0, refused(LoginStatus::NOT_FOUND)));
        assert!(!troubles.is_new(at(5), 0, refused(LoginStatus::NOT_FOUND)));
        assert!(troubles.is_new(at(6), 0, refused(LoginStatus::AUTHENTICATION_FAILURE)));
        assert_eq!(troubles.is_over(0), Some(at(1)));
        assert_eq!(troubles.is_over(0), None);
        assert!(troubles.is_new(at(7), 0, Trouble::Unreachable));
        assert!(!troubles.is_new(at(8), 1, Trouble::Unreachable));
    }
}
