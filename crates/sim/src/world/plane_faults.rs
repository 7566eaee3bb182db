//! Links and switches of a plane that faults keep down.

use super::downtime::Downtimes;
use super::schedule::LinkFaults;

/// State of the faults that take down links of Ethernet or InfiniBand.
#[derive(Default)]
pub struct PlaneFaults {
    links: LinkFaults,
    /// Faults that stop each switch.
    switches: LinkFaults,
    pub downtimes: Downtimes,
}

impl PlaneFaults {
    /// Returns the state of a number of links and switches without faults.
    pub fn new(links: usize, switches: usize) -> PlaneFaults {
        PlaneFaults {
            links: LinkFaults::new(links),
            switches: LinkFaults::new(switches),
            downtimes: Downtimes::new(links),
        }
    }

    /// Begins or ends a fault that keeps a link down.
    pub(super) fn hold(&mut self, link: u16, ends: bool) {
        if ends { self.links.end(link) } else { self.links.begin(link) }
    }

    /// Begins or ends a fault that stops a switch.
    pub(super) fn stop(&mut self, switch: u16, ends: bool) {
        if ends { self.switches.end(switch) } else { self.switches.begin(switch) }
    }

    /// Ends all faults of a link.
    pub(super) fn clear(&mut self, link: u16) {
        self.links.clear(link);
    }

    /// Returns whether no fault keeps a link down and the switches at its ends run.
    pub(super) fn is_up(&self, link: u16, switches: impl Iterator<Item = (usize, u16)>) -> bool {
        let mut switches = switches;
        !self.links.is_down(link) && !switches.any(|(_, switch)| self.switches.is_down(switch))
    }
}

/// Returns a probability in 2^-32; 0 after the end of the fault.
pub(super) fn chance(probability: f64, ends: bool) -> u32 {
    if ends { 0 } else { (probability * 4_294_967_296.0).min(f64::from(u32::MAX)) as u32 }
}
