//! Traffic settings of an Ethernet port: [`DcbSettings`].

use sanloom_wire::ether::EtherType;
use sanloom_wire::lldp::dcbx::{algorithm, selector};
use sanloom_wire::lldp::{AppPriority, TrafficClasses};

/// Traffic classes, lossless priorities and application priorities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbSettings {
    /// Traffic classes and their bandwidth shares.
    pub traffic: TrafficClasses,
    /// Bit set of the priorities with priority flow control (PFC).
    pub lossless: u8,
    /// Maximum number of lossless priorities at the same time, 0 to 8.
    pub max_lossless: u8,
    /// Priorities of applications.
    pub applications: Vec<AppPriority>,
}

impl DcbSettings {
    /// Settings with FCoE and FIP on this priority (0 to 7), lossless and with half of the
    /// bandwidth. All other traffic has the other half.
    pub fn fcoe(priority: u8) -> DcbSettings {
        let priority = priority & 7;
        let mut traffic = TrafficClasses {
            classes: [0; 8],
            bandwidth_percent: [50, 50, 0, 0, 0, 0, 0, 0],
            algorithms: [algorithm::ETS, algorithm::ETS, 0, 0, 0, 0, 0, 0],
        };
        traffic.classes[usize::from(priority)] = 1;
        let application = |ether_type| AppPriority::ether_type(ether_type, priority);
        let applications = vec![application(EtherType::FCOE), application(EtherType::FIP)];
        DcbSettings { traffic, lossless: 1 << priority, max_lossless: 8, applications }
    }

    /// Priority of frames with this EtherType, if an application entry defines one.
    pub fn priority(&self, ether_type: EtherType) -> Option<u8> {
        let of_type = |entry: &&AppPriority| entry.selector == selector::ETHER_TYPE && entry.protocol == ether_type.0;
        self.applications.iter().find(of_type).map(|entry| entry.priority)
    }

    /// Returns true if FCoE has a priority and that priority is lossless.
    pub fn carries_fcoe(&self) -> bool {
        self.priority(EtherType::FCOE).is_some_and(|priority| self.lossless >> priority & 1 != 0)
    }
}
