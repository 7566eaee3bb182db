//! How an Ethernet port treats its traffic: [`DcbSettings`].

use sanloom_wire::ether::EtherType;
use sanloom_wire::lldp::dcbx::{algorithm, selector};
use sanloom_wire::lldp::{AppPriority, TrafficClasses};

/// Traffic classes, lossless priorities and who uses which priority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbSettings {
    /// How traffic classes share the link.
    pub traffic: TrafficClasses,
    /// Priorities with flow control of their own (PFC), by bit.
    pub lossless: u8,
    /// How many can have it at the same time, 0 to 8.
    pub max_lossless: u8,
    /// Priorities of applications.
    pub applications: Vec<AppPriority>,
}

impl DcbSettings {
    /// FCoE and FIP on this priority (0 to 7), lossless and with half of the link; everything else in the other half.
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

    /// The priority of frames with this EtherType, if an application says so.
    pub fn priority(&self, ether_type: EtherType) -> Option<u8> {
        let of_type = |entry: &&AppPriority| entry.selector == selector::ETHER_TYPE && entry.protocol == ether_type.0;
        self.applications.iter().find(of_type).map(|entry| entry.priority)
    }

    /// FCoE has a priority, and no frame of it gets lost for want of buffers.
    pub fn carries_fcoe(&self) -> bool {
        self.priority(EtherType::FCOE).is_some_and(|priority| self.lossless >> priority & 1 != 0)
    }
}
