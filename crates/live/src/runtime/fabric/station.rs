//! A storage port on a segment without a switch (VN2VN): [`Station`].

use super::segment::FCOE_PRIORITY;
use crate::driven::{Driven, Recording};
use crate::record::Machine;
use sanloom_fc::fip::vn2vn::{Vn2vn, Vn2vnConfig};
use sanloom_wire::ether::VlanTag;

/// A station.
#[derive(Debug)]
pub struct Station {
    /// Index of the Ethernet port.
    pub port: usize,
    /// VLAN of its frames; `None`: untagged.
    pub vlan: Option<u16>,
    /// Index of the storage system.
    pub system: usize,
    /// Port of the storage system.
    pub storage_port: u16,
    /// FIP controller.
    pub machine: Driven<Vn2vn>,
}

impl Station {
    /// Returns a station without a link. `number` is its index.
    pub fn new(
        number: usize,
        (port, vlan): (usize, Option<u16>),
        (system, storage_port): (usize, u16),
        config: Vn2vnConfig,
        recording: &Recording,
    ) -> Station {
        let machine = Driven::new(Vn2vn::new(config), Machine::Station(number), recording);
        Station { port, vlan, system, storage_port, machine }
    }

    /// 802.1Q tag of its frames.
    pub fn tag(&self) -> Option<VlanTag> {
        self.vlan.map(|vlan| VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan })
    }
}
