//! An Ethernet port in one VLAN, as a switch sees it: its FCF and the table of addresses.

use sanloom_core::fip::Bindings;
use sanloom_core::fip::fcf::{Fcf, FcfConfig};
use sanloom_wire::ether::{MacAddr, VlanTag};

/// 802.1Q priority of FCoE and FIP (FC-BB; what DCBX gives them by default).
pub const FCOE_PRIORITY: u8 = 3;

/// A place where a switch hears FIP and FCoE.
#[derive(Debug)]
pub struct Segment {
    /// Index of the Ethernet port.
    pub port: usize,
    /// VLAN of its frames; `None`: untagged.
    pub vlan: Option<u16>,
    /// Index of the switch.
    pub switch: usize,
    /// Port of the switch that the lab's link takes; further virtual links have ports of their own.
    pub lab_port: u16,
    /// Its controller.
    pub fcf: Fcf,
    /// Which frames may enter, and where frames leave to.
    pub bindings: Bindings,
    /// The operator has disabled it.
    pub disabled: bool,
    /// Its link is not in the lab any more; another one may take its place.
    pub gone: bool,
}

impl Segment {
    /// A segment without a link.
    pub fn new(port: usize, vlan: Option<u16>, switch: usize, lab_port: u16, config: FcfConfig) -> Segment {
        let bindings = Bindings::new(config.mac, config.fc_map);
        Segment { port, vlan, switch, lab_port, fcf: Fcf::new(config), bindings, disabled: false, gone: false }
    }

    /// The tag that its frames leave with.
    pub fn tag(&self) -> Option<VlanTag> {
        self.vlan.map(|vlan| VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan })
    }

    /// Address of the FCF.
    pub fn mac(&self) -> MacAddr {
        self.bindings.mac()
    }
}
