//! FIP controller of an initiator, in a fabric or on a segment without one: [`Controller`].

use sanloom_fc::fip::enode::{self, Enode};
use sanloom_fc::fip::vn2vn::{self, Vn2vn};
use sanloom_fc::fip::{Advertisement, Discard, Discards};
use sanloom_fc::nport;
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::FipFrame;
use sanloom_wire::{FcId, Frame, Header};

/// FIP controller of an initiator.
#[derive(Debug)]
pub enum Controller {
    /// ENode that discovers a forwarder of a fabric.
    Fabric(Box<Enode>),
    /// Station of a segment without a fabric.
    Vn2vn(Box<Vn2vn>),
}

/// Input of a controller.
#[derive(Debug)]
pub(super) enum ControllerInput {
    LinkUp,
    LinkDown,
    Fip {
        to: MacAddr,
        from: MacAddr,
        pdu: Box<[u8]>,
    },
    /// Message from an N_Port.
    Send(Frame),
    DiscoverVlans,
    Timeout,
}

/// Output of a controller.
#[derive(Debug)]
pub(super) enum ControllerOutput {
    Fip(FipFrame),
    /// Send a message in an FCoE frame.
    Fcoe {
        to: MacAddr,
        from: MacAddr,
        frame: Frame,
    },
    /// Deliver a message to its N_Port.
    Deliver(Frame),
    FcfUp(Advertisement),
    /// The FCF is lost.
    FcfDown,
    /// Input for the physical N_Port.
    Login(nport::Input),
    /// The login of this N_Port was cleared; its link comes back at once.
    Cleared(FcId),
    Vlans {
        fcf: MacAddr,
        vlans: Vec<u16>,
    },
}

impl Controller {
    pub(super) fn handle(&mut self, now: Instant, input: ControllerInput) {
        match self {
            Controller::Fabric(enode) => enode.handle(
                now,
                match input {
                    ControllerInput::LinkUp => enode::Input::LinkUp,
                    ControllerInput::LinkDown => enode::Input::LinkDown,
                    ControllerInput::Fip { to, from, pdu } => enode::Input::Fip { to, from, pdu },
                    ControllerInput::Send(frame) => enode::Input::Send(frame),
                    ControllerInput::DiscoverVlans => enode::Input::DiscoverVlans,
                    ControllerInput::Timeout => enode::Input::Timeout,
                },
            ),
            Controller::Vn2vn(station) => station.handle(
                now,
                match input {
                    ControllerInput::LinkUp => vn2vn::Input::LinkUp,
                    ControllerInput::LinkDown => vn2vn::Input::LinkDown,
                    ControllerInput::Fip { to, from, pdu } => vn2vn::Input::Fip { to, from, pdu },
                    ControllerInput::Send(frame) => vn2vn::Input::Send(frame),
                    // A segment without a fabric has no VLAN discovery; `AdapterConfig::vlan` sets
                    // its VLAN.
                    ControllerInput::DiscoverVlans => return,
                    ControllerInput::Timeout => vn2vn::Input::Timeout,
                },
            ),
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<ControllerOutput> {
        Some(match self {
            Controller::Fabric(enode) => match enode.poll_output()? {
                enode::Output::Fip(packet) => ControllerOutput::Fip(packet),
                enode::Output::Fcoe { to, from, frame } => ControllerOutput::Fcoe { to, from, frame },
                enode::Output::Deliver(frame) => ControllerOutput::Deliver(frame),
                enode::Output::FcfUp(fcf) => ControllerOutput::FcfUp(fcf),
                enode::Output::FcfDown => ControllerOutput::FcfDown,
                enode::Output::Cleared { port_id } => ControllerOutput::Cleared(port_id),
                enode::Output::Vlans { fcf, vlans } => ControllerOutput::Vlans { fcf, vlans },
            },
            Controller::Vn2vn(station) => match station.poll_output()? {
                vn2vn::Output::Fip(packet) => ControllerOutput::Fip(packet),
                vn2vn::Output::Fcoe { to, from, frame } => ControllerOutput::Fcoe { to, from, frame },
                vn2vn::Output::Up { port_id } => ControllerOutput::Login(nport::Input::Joined { port_id }),
                vn2vn::Output::Down => ControllerOutput::Login(nport::Input::LinkDown),
                vn2vn::Output::NeighbourUp { port_id, port_name: wwpn } => {
                    ControllerOutput::Login(nport::Input::Neighbour { port_id, wwpn })
                }
                vn2vn::Output::NeighbourDown { port_id } => {
                    ControllerOutput::Login(nport::Input::NeighbourGone { port_id })
                }
            },
        })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Controller::Fabric(enode) => enode.poll_timeout(),
            Controller::Vn2vn(station) => station.poll_timeout(),
        }
    }

    /// Returns destination and source of an FCoE frame, or `None` without a login.
    pub(super) fn path(&self, header: &Header) -> Option<(MacAddr, MacAddr)> {
        match self {
            Controller::Fabric(enode) => enode.path(header.s_id),
            Controller::Vn2vn(station) => station.path(header.d_id),
        }
    }

    /// Checks the addresses of a received FCoE frame.
    pub(super) fn ingress(&self, to: MacAddr, from: MacAddr, header: &Header) -> Result<(), Discard> {
        match self {
            Controller::Fabric(enode) => enode.ingress(to, from, header.s_id, header.d_id),
            Controller::Vn2vn(station) => station.ingress(to, from, header.s_id, header.d_id),
        }
    }

    /// Returns the selected FCF, or `None` on a segment without a fabric.
    pub fn fcf(&self) -> Option<&Advertisement> {
        match self {
            Controller::Fabric(enode) => enode.fcf(),
            Controller::Vn2vn(_) => None,
        }
    }

    /// Returns the discarded FIP frames, by reason.
    pub fn discards(&self) -> &Discards {
        match self {
            Controller::Fabric(enode) => enode.discards(),
            Controller::Vn2vn(station) => station.discards(),
        }
    }
}
