//! The initiator ports of an instance at its back ends: [`InitiatorPorts`].
//!
//! When an initiator port logs in again, a target ends the tasks of its previous session (RFC 7143,
//! section 6.3.5). Therefore an instance uses the same ports after a restart. Port 0 belongs to its
//! own sessions, the others to sessions that forward for a host. The number of ports is stored
//! before they are used. After a restart, an instance logs in once with each of them before it
//! sends commands, so that commands left by a killed instance end.

use std::collections::BTreeSet;

/// Ports reserved at once, so that few hosts never wait for a reservation.
const AT_ONCE: u16 = 16;

/// The initiator ports of an instance.
#[derive(Debug)]
pub struct InitiatorPorts {
    /// Number of the instance.
    number: u32,
    /// Number of ports in the store; ports below this one may be used.
    kept: u16,
    /// Ports of sessions that forward.
    taken: BTreeSet<u16>,
    /// A session found no free port.
    wanted: bool,
}

impl InitiatorPorts {
    /// Returns the ports of instance `number`, of which `kept` are in the store.
    pub fn new(number: u32, kept: u16) -> InitiatorPorts {
        InitiatorPorts { number, kept, taken: BTreeSet::new(), wanted: kept < AT_ONCE }
    }

    /// Returns the initiator session identifier of a port. `twin`: how many other targets of the
    /// instance are the same target.
    pub fn isid(&self, twin: usize, port: u16) -> [u8; 6] {
        let [_, a, b, c] = self.number.wrapping_add(twin as u32).to_be_bytes();
        let [high, low] = port.to_be_bytes();
        // Type "random": 24 random bits and a qualifier (RFC 7143, section 11.12.5).
        [0x80, a, b, c, high, low]
    }

    /// Returns whether the identifier is that of a port of this instance at a target that is
    /// reached over `twins` further paths.
    pub fn is_own(&self, twins: usize, isid: [u8; 6]) -> bool {
        (0..=twins).any(|twin| self.isid(twin, 0)[..4] == isid[..4])
    }

    /// Returns the ports, except port 0, that sessions before the restart may have used.
    pub fn before(&self) -> impl Iterator<Item = u16> + use<> {
        1..self.kept
    }

    /// Returns a free port for a session that forwards. `None` if more must be stored first.
    pub fn take(&mut self) -> Option<u16> {
        let free = (1..self.kept).find(|port| !self.taken.contains(port));
        match free {
            Some(port) => _ = self.taken.insert(port),
            None => self.wanted = true,
        }
        free
    }

    /// Frees the port of a session that has ended.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }

    /// Returns the number of ports to store, if more are needed.
    pub fn wanted(&self) -> Option<u16> {
        self.wanted.then(|| self.kept.saturating_mul(2).max(AT_ONCE)).filter(|wanted| *wanted > self.kept)
    }

    /// Records that `kept` ports are in the store.
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
    fn an_instance_keeps_its_distinct_initiator_ports() {
        let [now, later] = [0, 16].map(|kept| InitiatorPorts::new(0x0123_4567, kept));
        assert_eq!(now.isid(0, 258), [0x80, 0x23, 0x45, 0x67, 1, 2]);
        assert_eq!(now.isid(0, 258), later.isid(0, 258));
        assert_eq!(later.before().collect::<Vec<_>>(), (1..16).collect::<Vec<_>>());
        // Two paths of one instance to one target, and another instance.
        assert_ne!(now.isid(0, 0), now.isid(1, 0));
        assert_ne!(now.isid(0, 0), InitiatorPorts::new(0x0223_4568, 0).isid(0, 0));
    }
}
