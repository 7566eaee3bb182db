//! Configuration, inputs and outputs of an FCF.

use crate::fabric_switch;
use crate::fip::{BindingChange, DEFAULT_PERIOD};
use sanloom_scsi::time::Span;
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Wwnn, Wwpn, fcoe};

/// Initial configuration of an FCF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcfConfig {
    /// MAC address of the Ethernet port; source of all frames sent.
    pub mac: MacAddr,
    /// Name of the switch; not zero.
    pub switch_name: Wwnn,
    /// FC-MAP, the upper half of the MAC addresses that it grants.
    pub fc_map: FcMap,
    /// Virtual fabric ID of the VLAN; 0 without virtual fabrics.
    pub vf_id: u16,
    /// Priority; ENodes select the FCF with the lowest number.
    pub priority: u8,
    /// FKA_ADV_PERIOD. Linux ignores values below 500 ms.
    pub period: Span,
    /// True if ENodes and VN_Ports must send keep-alives (the D bit is clear); without them they
    /// are logged out.
    pub keep_alives: bool,
    /// Largest FCoE PDU that the port accepts, in bytes, at most 2158. Solicited advertisements are
    /// padded to this length.
    pub max_fcoe_bytes: u16,
    /// VLANs listed in replies to VLAN requests; if empty, this FCF does not reply.
    pub vlans: Vec<u16>,
    /// Switch ports available for virtual links. The numbers must not be used for anything else.
    pub ports: Vec<u16>,
    /// True if ENodes may log in.
    pub enodes: bool,
    /// True if other FCFs may become neighbours.
    pub neighbours: bool,
    /// Time within which a repeated FLOGI counts as a retransmission, unless the ENode restarted
    /// discovery.
    pub e_d_tov: Span,
    /// R_A_TOV. A request that the switch has not answered after twice this time is dropped.
    pub r_a_tov: Span,
    /// Seed of the jitter between advertisements.
    pub seed: u64,
}

impl FcfConfig {
    /// Returns the defaults of FC-BB: FC-MAP 0E:FC:00, priority 128, a period of 8 s with
    /// keep-alives, and frames of full size. ENodes and neighbours are accepted, and no VLANs are
    /// listed.
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

/// Event for an FCF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The Ethernet port is up. A port that was already up goes down first.
    LinkUp,
    /// The Ethernet port is down; all virtual links end.
    LinkDown,
    /// A FIP frame was received.
    Fip {
        /// Destination MAC address.
        to: MacAddr,
        /// Source MAC address.
        from: MacAddr,
        /// Bytes after the Ethernet header, including padding.
        pdu: Box<[u8]>,
    },
    /// [`fabric_switch::Output::Send`] of the switch through one of [`FcfConfig::ports`].
    Send {
        /// Switch port number.
        port: u16,
        /// Whole message.
        frame: Frame,
    },
    /// [`FibDelta::RemoveId`](crate::fabric::FibDelta::RemoveId) of the switch. An N_Port_ID that
    /// is not attached to this FCF is ignored.
    Removed {
        /// Removed N_Port_ID.
        port_id: FcId,
    },
    /// State of the switch's fabric. Before the first such input the FCF accepts no logins.
    Fabric {
        /// Name of the fabric.
        name: Wwnn,
        /// True if the switch has a domain.
        available: bool,
    },
    /// End the virtual link of this port, because the operator requested it or the port was
    /// disabled.
    Clear {
        /// Switch port number.
        port: u16,
    },
    /// The switch shuts down: all stations are notified, then the effect is that of
    /// [`LinkDown`](Input::LinkDown).
    Shutdown,
    /// The deadline of [`Fcf::poll_timeout`](super::Fcf::poll_timeout) was reached. An early call
    /// is harmless.
    Timeout,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a FIP frame.
    Fip(FipFrame),
    /// Send a message over FCoE from the MAC address of the FCF. The driver segments it if it is
    /// longer than a frame.
    Fcoe {
        /// Destination MAC address.
        to: MacAddr,
        /// Whole message.
        frame: Frame,
    },
    /// Pass the input to the switch before processing later outputs.
    Switch(fabric_switch::Input),
    /// Apply the change to the address table before processing later outputs.
    Bind(BindingChange),
    /// Report the event to the administrator.
    Event(Event),
}

/// Event for the administrator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// An ENode has a VF_Port.
    EnodeUp {
        /// Switch port number.
        port: u16,
        /// MAC address of the ENode.
        mac: MacAddr,
    },
    /// The VF_Port of an ENode was removed.
    EnodeDown {
        /// Switch port number.
        port: u16,
        /// MAC address of the ENode.
        mac: MacAddr,
    },
    /// A VN_Port logged in.
    VnPortUp {
        /// N_Port_ID of the login.
        port_id: FcId,
        /// Port name of the login.
        port_name: Wwpn,
    },
    /// A VN_Port logged out.
    VnPortDown {
        /// N_Port_ID of the login.
        port_id: FcId,
        /// Port name of the login.
        port_name: Wwpn,
    },
    /// Another FCF has a VE_Port.
    NeighbourUp {
        /// Switch port number.
        port: u16,
        /// MAC address of the other FCF.
        mac: MacAddr,
        /// Name of its switch.
        switch_name: Wwnn,
    },
    /// The VE_Port of another FCF was removed.
    NeighbourDown {
        /// Switch port number.
        port: u16,
        /// MAC address of the other FCF.
        mac: MacAddr,
    },
}

/// Virtual link, as shown to an administrator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualLink {
    /// Switch port number.
    pub port: u16,
    /// MAC address of the other end.
    pub mac: MacAddr,
    /// Kind of the other end.
    pub end: LinkEnd,
}

/// Kind of station at the other end of a virtual link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkEnd {
    /// Host with one or more VN_Ports.
    Enode {
        /// Number of logged-in VN_Ports.
        vn_ports: usize,
    },
    /// Another FCF.
    Fcf {
        /// Name of its switch.
        switch_name: Wwnn,
    },
}
