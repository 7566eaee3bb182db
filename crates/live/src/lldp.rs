//! The LLDP agent of an Ethernet port, and whether it lets FCoE begin: [`Agent`] around the machine
//! [`Dcbx`].

use crate::frame::FrameBuf;
use sanloom_core::dcbx::{Dcbx, DcbxConfig, Input, Output};
use sanloom_core::time::Instant;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::lldp::Lldpdu;

/// What our agents call the system that they are in.
pub(crate) const SYSTEM: &str = concat!("sanloom ", env!("CARGO_PKG_VERSION"));

/// An agent.
#[derive(Debug)]
pub struct Agent {
    /// The machine.
    pub machine: Dcbx,
    mac: MacAddr,
    may_begin: bool,
}

impl Agent {
    /// Without a link. `willing`: it takes what the peer says, as hosts do and switches do not.
    pub fn new(mac: MacAddr, interface: &str, willing: bool) -> Agent {
        Agent { machine: Dcbx::new(DcbxConfig::new(mac, interface, SYSTEM, willing)), mac, may_begin: false }
    }

    /// Address of its port.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// The other end speaks DCBX, and FCoE gets through without loss.
    pub fn may_begin(&self) -> bool {
        self.may_begin
    }

    /// An LLDP frame came in.
    pub fn frame_in(&mut self, now: Instant, frame: &FrameBuf) {
        if let Some(input) = Agent::input_of(frame) {
            self.machine.handle(now, input);
        }
    }

    /// What an LLDP frame is for the machine.
    pub fn input_of(frame: &FrameBuf) -> Option<Input> {
        let (EtherHeader { from, .. }, pdu) = EtherHeader::parse(frame.bytes()).ok()?;
        Some(Input::Lldp { from, pdu: pdu.into() })
    }

    /// The next LLDPDU to be sent, untagged; drained until `None` after everything that the machine was told.
    pub fn poll(&mut self) -> Option<Lldpdu> {
        loop {
            let output = self.machine.poll_output()?;
            if let Some(pdu) = self.obey(output) {
                return Some(pdu);
            }
        }
    }

    /// Does what the machine wants done; gives back what is to be sent.
    pub fn obey(&mut self, output: Output) -> Option<Lldpdu> {
        match output {
            Output::Send(pdu) => Some(pdu),
            Output::InForce { settings, peer } => {
                self.may_begin = peer && settings.carries_fcoe();
                tracing::info!(mac = %self.mac, peer, fcoe = settings.carries_fcoe(), "DCBX");
                None
            }
        }
    }

    /// An LLDPDU as a frame.
    pub fn emit(&self, pdu: &Lldpdu, out: &mut Vec<u8>) {
        let header =
            EtherHeader { to: MacAddr::NEAREST_BRIDGE, from: self.mac, ether_type: EtherType::LLDP, tag: None };
        header.emit(out);
        pdu.emit(out);
    }
}
