//! Fabric settings of a switch for links to other switches: [`Joining`].

use super::cost::CostRule;
use sanloom_wire::sw_ils::FlowControl;

/// Default priority in the selection of the principal switch.
pub const DEFAULT_PRIORITY: u8 = 128;

/// Administrator's choices for the links of a switch to other switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joining {
    /// Priority in the selection of the principal switch, 1 to 255. The lowest number is preferred;
    /// 255 excludes the switch.
    pub priority: u8,
    /// Isolation is preferred to a domain other than the configured one.
    pub insistent: bool,
    /// Reassign all domains if a domain has two owners, instead of isolating the link. Both ends
    /// must have this setting.
    pub reconfigure: bool,
    /// Flow control modes of the E_Ports.
    pub flow_control: FlowControlModes,
    /// True if the switch supports zoning. Otherwise it rejects merge and change requests.
    pub zoning: bool,
    /// Rule for link costs.
    pub cost_rule: CostRule,
}

impl Default for Joining {
    fn default() -> Joining {
        Joining {
            priority: DEFAULT_PRIORITY,
            insistent: false,
            reconfigure: false,
            flow_control: FlowControlModes::RRdy,
            zoning: true,
            cost_rule: CostRule::Standard,
        }
    }
}

/// Flow control modes supported by an E_Port (FC-SW, ELP, ISL flow control mode).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FlowControlModes {
    /// Only 0002: R_RDY of the standard.
    #[default]
    RRdy,
    /// Only 0001: vendor-specific, such as virtual channels.
    Vendor,
    /// 0001, and 0002 with neighbours that do not support 0001.
    VendorFirst,
}

impl FlowControlModes {
    /// Mode codes, the preferred one first.
    pub fn modes(self) -> Vec<FlowControl> {
        match self {
            FlowControlModes::RRdy => vec![FlowControl::R_RDY],
            FlowControlModes::Vendor => vec![FlowControl::VENDOR],
            FlowControlModes::VendorFirst => vec![FlowControl::VENDOR, FlowControl::R_RDY],
        }
    }
}
