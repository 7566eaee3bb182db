//! The LLDP agent of an Ethernet port, and whether it lets FCoE begin: [`Agent`] around the machine
//! [`Dcbx`].

use crate::frame::FrameBuf;
use sanloom_core::dcbx::{Dcbx, DcbxConfig, Input, Output};
use sanloom_core::time::Instant;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::lldp::Lldpdu;

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
        let system = concat!("sanloom ", env!("CARGO_PKG_VERSION"));
        Agent { machine: Dcbx::new(DcbxConfig::new(mac, interface, system, willing)), mac, may_begin: false }
    }

    /// The other end speaks DCBX, and FCoE gets through without loss.
    pub fn may_begin(&self) -> bool {
        self.may_begin
    }

    /// An LLDP frame came in.
    pub fn frame_in(&mut self, now: Instant, frame: &FrameBuf) {
        if let Ok((EtherHeader { from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) {
            self.machine.handle(now, Input::Lldp { from, pdu: pdu.into() });
        }
    }

    /// The next LLDPDU to be sent, untagged; drained until `None` after everything that the machine was told.
    pub fn poll(&mut self) -> Option<Lldpdu> {
        loop {
            match self.machine.poll_output()? {
                Output::Send(pdu) => return Some(pdu),
                Output::InForce { settings, peer } => {
                    self.may_begin = peer && settings.carries_fcoe();
                    tracing::info!(mac = %self.mac, peer, fcoe = settings.carries_fcoe(), "DCBX");
                }
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
