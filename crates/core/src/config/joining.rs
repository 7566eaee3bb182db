//! How a switch joins others to a fabric: [`Joining`].

use crate::domain::DEFAULT_PRIORITY;
use crate::fspf::cost::CostRule;
use sanloom_wire::sw_ils::FlowControl;

/// What an administrator decides about the links of a switch to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joining {
    /// Priority in the selection of the principal switch, 1 to 255, the lowest first; 255: never.
    pub priority: u8,
    /// Rather be isolated than have another domain than its own.
    pub insistent: bool,
    /// When a domain has two owners, give all domains anew instead of isolating the link. Both ends must want it.
    pub reconfigure: bool,
    /// Flow control modes of its E_Ports.
    pub flow_control: FlowControlModes,
    /// It knows zoning; one that does not rejects merge and change requests.
    pub zoning: bool,
    /// How links cost.
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

/// Flow control modes that an E_Port can do (FC-SW, ELP, ISL flow control mode).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FlowControlModes {
    /// 0002 only: R_RDY, the standard's.
    #[default]
    RRdy,
    /// 0001 only: a vendor's own, such as virtual channels.
    Vendor,
    /// 0001, and 0002 with those who cannot.
    VendorFirst,
}

impl FlowControlModes {
    /// The modes, the preferred one first.
    pub fn modes(self) -> Vec<FlowControl> {
        match self {
            FlowControlModes::RRdy => vec![FlowControl::R_RDY],
            FlowControlModes::Vendor => vec![FlowControl::VENDOR],
            FlowControlModes::VendorFirst => vec![FlowControl::VENDOR, FlowControl::R_RDY],
        }
    }
}
