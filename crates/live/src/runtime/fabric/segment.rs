//! An Ethernet port in one VLAN, as a switch uses it: [`Segment`] with its FCF and the table of
//! addresses.

use crate::driven::{Driven, Recording};
use crate::record::Machine;
use sanloom_fc::fip::Bindings;
use sanloom_fc::fip::fcf::{Fcf, FcfConfig};
use sanloom_wire::ether::{MacAddr, VlanTag};

/// 802.1Q priority of FCoE and FIP (FC-BB; the default of DCBX).
pub const FCOE_PRIORITY: u8 = 3;

/// An Ethernet port in one VLAN, at which a switch sends and receives FIP and FCoE.
#[derive(Debug)]
pub struct Segment {
    /// Index of the Ethernet port.
    pub port: usize,
    /// VLAN of its frames; `None`: untagged.
    pub vlan: Option<u16>,
    /// Index of the switch.
    pub switch: usize,
    /// Port of the switch for the link of the lab. Further virtual links have other port numbers.
    pub lab_port: u16,
    /// FIP controller.
    pub fcf: Driven<Fcf>,
    /// Permissions of received frames, and destinations of sent ones.
    pub bindings: Bindings,
    /// An operator has disabled the segment.
    pub disabled: bool,
    /// The link was removed from the lab; the index may be reused.
    pub gone: bool,
}

impl Segment {
    /// Returns a segment at port `lab_port` of a switch, without a link. `number` is its index.
    pub fn new(
        number: usize,
        (port, vlan): (usize, Option<u16>),
        (switch, lab_port): (usize, u16),
        config: FcfConfig,
        recording: &Recording,
    ) -> Segment {
        let bindings = Bindings::new(config.mac, config.fc_map);
        let fcf = Driven::new(Fcf::new(config), Machine::Fcf(number), recording);
        Segment { port, vlan, switch, lab_port, fcf, bindings, disabled: false, gone: false }
    }

    /// 802.1Q tag of its frames.
    pub fn tag(&self) -> Option<VlanTag> {
        self.vlan.map(|vlan| VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan })
    }

    /// MAC address of the FCF.
    pub fn mac(&self) -> MacAddr {
        self.bindings.mac()
    }
}
