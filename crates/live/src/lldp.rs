//! The LLDP agent of an Ethernet port: [`Agent`] wraps the machine [`Dcbx`] and reports whether
//! FCoE may begin.

use crate::driven::{Driven, Recording};
use crate::frame::FrameBuf;
use crate::record::Machine;
use sanloom_fc::dcbx::{DcbSettings, Dcbx, DcbxConfig, Input, Output};
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::lldp::Lldpdu;

/// System name that our agents advertise.
pub(crate) const SYSTEM: &str = concat!("sanloom ", env!("CARGO_PKG_VERSION"));

/// LLDP agent of one Ethernet port.
#[derive(Debug)]
pub struct Agent {
    /// The machine.
    pub machine: Driven<Dcbx>,
    mac: MacAddr,
    /// Settings in force with a peer that supports DCBX.
    agreed: Option<DcbSettings>,
}

impl Agent {
    /// Creates an agent without a link. A `willing` agent adopts the peer's configuration, as hosts
    /// do and switches do not.
    pub fn new(mac: MacAddr, interface: &str, willing: bool) -> Agent {
        Agent::recorded(mac, interface, willing, Machine::Agent(0), &Recording::default())
    }

    /// Without a link, as part of a recording.
    pub fn recorded(mac: MacAddr, interface: &str, willing: bool, id: Machine, recording: &Recording) -> Agent {
        let machine = Dcbx::new(DcbxConfig::new(mac, interface, SYSTEM, willing));
        Agent { machine: Driven::new(machine, id, recording), mac, agreed: None }
    }

    /// Returns the MAC address of the port.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Returns whether the peer supports DCBX and FCoE frames are carried without loss.
    pub fn may_begin(&self) -> bool {
        self.agreed.as_ref().is_some_and(DcbSettings::carries_fcoe)
    }

    /// Returns the settings that are in force with a peer that supports DCBX.
    pub fn agreed(&self) -> Option<&DcbSettings> {
        self.agreed.as_ref()
    }

    /// Processes a received LLDP frame.
    pub fn frame_in(&mut self, now: Instant, frame: &FrameBuf) {
        if let Some(input) = Agent::input_of(frame) {
            self.machine.handle(now, input);
        }
    }

    /// Converts an LLDP frame into an input of the machine.
    pub fn input_of(frame: &FrameBuf) -> Option<Input> {
        let (EtherHeader { from, .. }, pdu) = EtherHeader::parse(frame.bytes()).ok()?;
        Some(Input::Lldp { from, pdu: pdu.into() })
    }

    /// Returns the next LLDPDU to send, untagged. Drain until `None` after every input.
    pub fn poll(&mut self) -> Option<Lldpdu> {
        loop {
            let output = self.machine.poll_output()?;
            if let Some(pdu) = self.apply(output) {
                return Some(pdu);
            }
        }
    }

    /// Applies an output of the machine. Returns the LLDPDU if the output is one to send.
    pub fn apply(&mut self, output: Output) -> Option<Lldpdu> {
        match output {
            Output::Send(pdu) => Some(pdu),
            Output::InForce { settings, peer } => {
                tracing::info!(mac = %self.mac, peer, fcoe = settings.carries_fcoe(), "DCBX");
                self.agreed = peer.then_some(settings);
                None
            }
        }
    }

    /// Composes the frame of an LLDPDU.
    pub fn emit(&self, pdu: &Lldpdu, out: &mut Vec<u8>) {
        let header =
            EtherHeader { to: MacAddr::NEAREST_BRIDGE, from: self.mac, ether_type: EtherType::LLDP, tag: None };
        header.emit(out);
        pdu.emit(out);
    }
}
