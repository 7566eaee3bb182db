//! Problems of portals: [`Troubles`], so that each is logged once when it begins and once when it
//! ends.

use sanloom_scsi::iscsi::initiator::LoginError;
use sanloom_scsi::time::Instant;

/// Reason why a portal has no session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// No connection, or it was lost during the login.
    Unreachable,
    /// The login fails.
    Refused(LoginError),
}

/// The problem of each portal, by index, and the time of its first one.
#[derive(Debug)]
pub(super) struct Troubles(Vec<Option<(Trouble, Instant)>>);

impl Troubles {
    /// Returns the state of `portals` portals without problems.
    pub(super) fn new(portals: usize) -> Troubles {
        Troubles(vec![None; portals])
    }

    /// Records a problem of a portal. Returns whether it differs from the last one.
    pub(super) fn is_new(&mut self, now: Instant, portal: usize, trouble: Trouble) -> bool {
        let Some(before) = self.0.get_mut(portal) else { return false };
        let since = before.as_ref().map_or(now, |(_, since)| *since);
        before.replace((trouble.clone(), since)).is_none_or(|(was, _)| was != trouble)
    }

    /// Records a session. Returns when the problem of its portal began, if there was one.
    pub(super) fn is_over(&mut self, portal: usize) -> Option<Instant> {
        self.0.get_mut(portal)?.take().map(|(_, since)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_scsi::time::Span;
    use sanloom_wire::iscsi::LoginStatus;

    #[test]
    fn a_problem_is_reported_once_until_it_changes_or_ends() {
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
