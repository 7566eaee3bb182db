//! What an FCF is told, and what it says.

use crate::fabric_switch;
use crate::fip::{BindingChange, DEFAULT_PERIOD};
use crate::time::Span;
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn, fcoe};

/// What an FCF is told at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcfConfig {
    /// Address of the Ethernet port: source of all that it sends.
    pub mac: MacAddr,
    /// Name of the switch, not zero.
    pub switch_name: Wwnn,
    /// Upper half of the addresses that it gives.
    pub fc_map: FcMap,
    /// Virtual fabric of the VLAN; 0 without virtual fabrics.
    pub vf_id: u16,
    /// ENodes choose the FCF with the lowest.
    pub priority: u8,
    /// FKA_ADV_PERIOD. Linux takes no notice of less than 500 ms.
    pub period: Span,
    /// ENodes and VN_Ports have to say that they are alive (the D bit is clear), and age out if they do not.
    pub keep_alives: bool,
    /// Largest FCoE PDU that the port takes, in bytes, at most 2158; solicited advertisements are as long.
    pub max_fcoe_bytes: u16,
    /// VLANs that VLAN requests are answered with; none: they are not answered here.
    pub vlans: Vec<u16>,
    /// Ports of the switch that virtual links can have. A number that is not used for anything else.
    pub ports: Vec<u16>,
    /// ENodes may log in.
    pub enodes: bool,
    /// Other FCFs may become neighbours.
    pub neighbours: bool,
    /// A FLOGI that comes again within this time, from an ENode that did not start over, is the same one.
    pub e_d_tov: Span,
    /// Requests that the switch leaves unanswered for twice this time are forgotten.
    pub r_a_tov: Span,
    /// Seed of the jitter between advertisements.
    pub seed: u64,
}

impl FcfConfig {
    /// As FC-BB has it: FC-MAP 0E:FC:00, priority 128, a period of 8 s with keep-alives, frames of full size, ENodes and
    /// neighbours welcome, no VLANs.
    pub fn new(mac: MacAddr, switch_name: Wwnn, ports: Vec<u16>) -> FcfConfig {
        FcfConfig {
            mac,
            switch_name,
            fc_map: FcMap::DEFAULT,
            vf_id: 0,
            priority: 128,
            period: DEFAULT_PERIOD,
            keep_alives: true,
            max_fcoe_bytes: fcoe::MAX_PDU_BYTES as u16,
            vlans: Vec::new(),
            ports,
            enodes: true,
            neighbours: true,
            e_d_tov: Span::from_ms(2_000),
            r_a_tov: Span::from_ms(10_000),
            seed: mac.to_u64(),
        }
    }
}

/// Something that happened to an FCF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. One that was up goes down first.
    LinkUp,
    /// The Ethernet port is down: every virtual link is gone.
    LinkDown,
    /// A FIP frame.
    Fip {
        /// Destination.
        to: MacAddr,
        /// Source.
        from: MacAddr,
        /// What follows the Ethernet header, padding included.
        pdu: Box<[u8]>,
    },
    /// [`fabric_switch::Output::Send`] of the switch, through one of [`FcfConfig::ports`].
    Send {
        /// The port.
        port: u16,
        /// The message.
        frame: Frame,
    },
    /// [`FibDelta::RemoveId`](crate::fabric::FibDelta::RemoveId) of the switch. An id that is not behind this FCF is no harm.
    Removed {
        /// The id.
        port_id: FcId,
    },
    /// What the switch says of its fabric; before the first, it takes no logins.
    Fabric {
        /// Name of the fabric.
        name: Wwnn,
        /// The switch has a domain.
        available: bool,
    },
    /// The operator wants the virtual link of this port ended, and so does a port that was disabled.
    Clear {
        /// Port of the switch.
        port: u16,
    },
    /// The switch goes down: everybody is told. Then as [`LinkDown`](Input::LinkDown).
    Shutdown,
    /// The time that [`Fcf::poll_timeout`](super::Fcf::poll_timeout) named has come; too early is harmless.
    Timeout,
}

/// Something that an FCF wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a FIP frame.
    Fip(FipFrame),
    /// Send a message in FCoE, from the address of the FCF. One that is longer than a frame is cut by the driver.
    Fcoe {
        /// Destination.
        to: MacAddr,
        /// The message.
        frame: Frame,
    },
    /// Tell the switch, before later outputs are acted on.
    Switch(fabric_switch::Input),
    /// Change the table of addresses, before later outputs are acted on.
    Bind(BindingChange),
    /// Something that an administrator wants to know.
    Event(Event),
}

/// Something that an administrator wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// An ENode has a VF_Port.
    EnodeUp {
        /// Port of the switch.
        port: u16,
        /// Address of the ENode.
        mac: MacAddr,
    },
    /// It has none any more.
    EnodeDown {
        /// Port of the switch.
        port: u16,
        /// Address of the ENode.
        mac: MacAddr,
    },
    /// A VN_Port is logged in.
    VnPortUp {
        /// Its address.
        port_id: FcId,
        /// Its name.
        port_name: Wwpn,
    },
    /// It is not any more.
    VnPortDown {
        /// Its address.
        port_id: FcId,
        /// Its name.
        port_name: Wwpn,
    },
    /// Another FCF has a VE_Port.
    NeighbourUp {
        /// Port of the switch.
        port: u16,
        /// Address of the FCF.
        mac: MacAddr,
        /// Name of its switch.
        switch_name: Wwnn,
    },
    /// It has none any more.
    NeighbourDown {
        /// Port of the switch.
        port: u16,
        /// Address of the FCF.
        mac: MacAddr,
    },
}

/// A virtual link, as an administrator sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualLink {
    /// Port of the switch.
    pub port: u16,
    /// Address at the other end.
    pub mac: MacAddr,
    /// What is there.
    pub end: LinkEnd,
}

/// What is at the other end of a virtual link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkEnd {
    /// An ENode.
    Enode {
        /// How many of its VN_Ports are logged in.
        vn_ports: usize,
    },
    /// Another FCF.
    Fcf {
        /// Name of its switch.
        switch_name: Wwnn,
    },
}
