//! The initiator ports of an instance at its back ends: [`InitiatorPorts`].
//!
//! When an initiator port logs in anew, a target ends what it still does for its session before that (RFC 7143, section 6.3.5). So an
//! instance has the same ports every time: port 0 is that of its own sessions, the others are those of sessions that forward for a
//! host. How many of them there may be is kept before they are used, and an instance that comes back logs in with each of them once
//! before anything goes to the target: what was under way when it was killed ends there.

use std::collections::BTreeSet;

/// Ports that are kept at once, so that few hosts make nobody wait.
const AT_ONCE: u16 = 16;

/// The initiator ports of an instance.
#[derive(Debug)]
pub struct InitiatorPorts {
    /// Of the instance.
    number: u32,
    /// Ports below this one are in the store.
    kept: u16,
    /// Those of sessions that forward.
    taken: BTreeSet<u16>,
    /// Somebody found none.
    wanted: bool,
}

impl InitiatorPorts {
    /// The ports of an instance of this number, of which so many are in the store.
    pub fn new(number: u32, kept: u16) -> InitiatorPorts {
        InitiatorPorts { number, kept, taken: BTreeSet::new(), wanted: kept < AT_ONCE }
    }

    /// The initiator session identifier of a port. `twin`: how many others of the instance use the same target.
    pub fn isid(&self, twin: usize, port: u16) -> [u8; 6] {
        let [_, a, b, c] = self.number.wrapping_add(twin as u32).to_be_bytes();
        let [high, low] = port.to_be_bytes();
        // Type "random": 24 bits that were drawn, and a qualifier (RFC 7143, section 11.12.5).
        [0x80, a, b, c, high, low]
    }

    /// The identifier is that of a port of ours at a target that so many others of the instance may use, too.
    pub fn is_own(&self, twins: usize, isid: [u8; 6]) -> bool {
        (0..=twins).any(|twin| self.isid(twin, 0)[..4] == isid[..4])
    }

    /// The ports that sessions of the instance before may have had, beside the first.
    pub fn before(&self) -> impl Iterator<Item = u16> + use<> {
        1..self.kept
    }

    /// A port for a session that forwards. None: more have to be kept first.
    pub fn take(&mut self) -> Option<u16> {
        let free = (1..self.kept).find(|port| !self.taken.contains(port));
        match free {
            Some(port) => _ = self.taken.insert(port),
            None => self.wanted = true,
        }
        free
    }

    /// A session that forwarded is over.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }

    /// How many ports are to be kept, if more are needed.
    pub fn wanted(&self) -> Option<u16> {
        self.wanted.then(|| self.kept.saturating_mul(2).max(AT_ONCE)).filter(|wanted| *wanted > self.kept)
    }

    /// So many ports are in the store.
    pub fn keep(&mut self, kept: u16) {
        (self.kept, self.wanted) = (kept, false);
    }
}

#[cfg(test)]
mod tests {
    use super::InitiatorPorts;

    #[test]
    fn a_port_is_used_when_the_store_has_it_and_by_one_session_at_a_time() {
        let mut ports = InitiatorPorts::new(0x0123_4567, 0);
        assert_eq!((ports.before().count(), ports.take(), ports.wanted()), (0, None, Some(16)));
        ports.keep(16);
        assert_eq!(ports.wanted(), None);
        let taken: Vec<u16> = std::iter::from_fn(|| ports.take()).collect();
        assert_eq!(taken, (1..16).collect::<Vec<_>>());
        assert_eq!(ports.wanted(), Some(32));
        ports.keep(32);
        ports.give_back(7);
        assert_eq!([ports.take(), ports.take()], [Some(7), Some(16)]);
    }

    #[test]
    fn an_instance_has_the_same_ports_again_and_no_two_are_alike() {
        let [now, later] = [0, 16].map(|kept| InitiatorPorts::new(0x0123_4567, kept));
        assert_eq!(now.isid(0, 258), [0x80, 0x23, 0x45, 0x67, 1, 2]);
        assert_eq!(now.isid(0, 258), later.isid(0, 258));
        assert_eq!(later.before().collect::<Vec<_>>(), (1..16).collect::<Vec<_>>());
        // Two paths of one instance to one target, and another instance.
        assert_ne!(now.isid(0, 0), now.isid(1, 0));
        assert_ne!(now.isid(0, 0), InitiatorPorts::new(0x0223_4568, 0).isid(0, 0));
    }
}
