//! Frames between the port and the machines of an [`Initiator`].

use super::host::Leaving;
use super::{BATCHES_IN_TURN, Initiator, Vlan, tag};
use crate::frame::FrameBuf;
use crate::sequence::cut;
use crate::sys::batch::BATCH;
use sanloom_core::fip::enode;
use sanloom_core::time::Instant;
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Frame};
use std::io;

/// Largest data field of a message: what every port takes.
const MESSAGE_FRAME_BYTES: usize = 2_048;

/// Reasons for dropping a frame that came in.
pub mod reason {
    /// Neither FCoE nor FIP.
    pub const OTHER_PROTOCOL: &str = "other protocol";
    /// In another VLAN than ours.
    pub const OTHER_VLAN: &str = "other VLAN";
    /// No FCoE frame in spite of its type.
    pub const MALFORMED: &str = "malformed FCoE";
    /// The CRC is wrong.
    pub const BAD_CRC: &str = "bad CRC";
}

impl Initiator {
    /// Takes what the port has. True if there may be more.
    pub(super) fn receive(&mut self, now: Instant) -> bool {
        for _ in 0..BATCHES_IN_TURN {
            let (got, cut) = match self.port.receive(&mut self.spare) {
                Ok(got) => got,
                Err(error) => {
                    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                        tracing::debug!(port = self.port.name, %error, "receive");
                    }
                    return false;
                }
            };
            for (place, bit) in (0..got).zip(0..) {
                let next = self.pool.take();
                let frame = std::mem::replace(&mut self.spare[place], next);
                if cut >> bit & 1 == 0 {
                    self.frame_in(now, &frame);
                }
                self.pool.give(frame);
            }
            if got < BATCH {
                return false;
            }
        }
        true
    }

    fn frame_in(&mut self, now: Instant, frame: &FrameBuf) {
        self.captures.record(now, 0, false, frame);
        let vlan = frame.tag.map(|tag| tag.vlan).filter(|vlan| *vlan != 0);
        let ours = match self.tag {
            Some(tag) => tag.map(|tag| tag.vlan) == vlan,
            // The question for VLANs, and its answer, have no tag.
            None => vlan.is_none(),
        };
        let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) else {
            return self.port.count(reason::MALFORMED, 1);
        };
        match frame.ether_type() {
            Some(EtherType::FCOE | EtherType::FIP) if !ours => self.port.count(reason::OTHER_VLAN, 1),
            Some(EtherType::FIP) => self.tell_enode(now, enode::Input::Fip { to, from, pdu: pdu.into() }),
            Some(EtherType::FCOE) => self.fcoe_in(now, to, from, pdu),
            _ => self.port.count(reason::OTHER_PROTOCOL, 1),
        }
    }

    fn fcoe_in(&mut self, now: Instant, to: MacAddr, from: MacAddr, pdu: &[u8]) {
        let Ok(fcoe) = Fcoe::parse(pdu) else { return self.port.count(reason::MALFORMED, 1) };
        let Ok(header) = fcoe.header() else { return self.port.count(reason::MALFORMED, 1) };
        if let Err(discard) = self.enode.ingress(to, from, header.s_id, header.d_id) {
            return self.port.count(discard.name(), 1);
        }
        if !fcoe.crc_is_right() {
            return self.port.count(reason::BAD_CRC, 1);
        }
        self.host.frame_in(now, header, &fcoe.frame[HEADER_BYTES..]);
    }

    pub(super) fn tell_enode(&mut self, now: Instant, input: enode::Input) {
        self.enode.handle(now, input);
        while let Some(output) = self.enode.poll_output() {
            match output {
                enode::Output::Fip(packet) => {
                    let mut buffer = self.pool.take();
                    buffer.compose(&mut self.scratch, |out| packet.emit(None, out));
                    self.frame_out(now, buffer);
                }
                enode::Output::Fcoe { to, from, frame } => self.message_out(now, to, from, frame),
                enode::Output::Deliver(frame) => self.host.message_in(now, frame),
                enode::Output::FcfUp(fcf) => {
                    tracing::info!(fcf = %fcf.mac, fabric = %fcf.fabric_name, "FCF chosen");
                    self.host.link(now, true);
                }
                enode::Output::FcfDown => {
                    tracing::info!("the FCF is gone");
                    self.host.link(now, false);
                }
                enode::Output::Cleared { port_id } => {
                    if port_id == self.host.port_id() {
                        self.host.link(now, false);
                        self.host.link(now, true);
                    }
                }
                enode::Output::Vlans { fcf, vlans } => self.vlans(now, fcf, &vlans),
            }
        }
    }

    /// An FCF has named the VLANs of FCoE: the first is ours.
    fn vlans(&mut self, now: Instant, fcf: MacAddr, vlans: &[u16]) {
        let first = vlans.first().copied().filter(|_| self.config.vlan == Vlan::Discover && self.tag.is_none());
        if let Some(vlan) = first {
            tracing::info!(%fcf, vlan, "VLAN of FCoE");
            self.tag = Some((vlan != 0).then(|| tag(vlan)));
            if self.link {
                self.tell_enode(now, enode::Input::LinkUp);
            }
        }
    }

    fn message_out(&mut self, now: Instant, to: MacAddr, from: MacAddr, frame: Frame) {
        for piece in cut(frame, MESSAGE_FRAME_BYTES) {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(to, from, None, &piece, out));
            self.frame_out(now, buffer);
        }
    }

    fn frame_out(&mut self, now: Instant, mut frame: FrameBuf) {
        frame.tag = self.tag.flatten();
        self.captures.record(now, 0, true, &frame);
        self.port.push(now, frame);
    }

    /// Sends what the host has to say, as far as the egress queue has room.
    pub(super) fn pump(&mut self, now: Instant) {
        let mut path: Option<(FcId, MacAddr, MacAddr)> = None;
        while !self.port.egress.is_full() {
            match self.host.next_leaving() {
                None => return,
                // FIP or FCoE: the controller knows.
                Some(Leaving::Message(frame)) => self.tell_enode(now, enode::Input::Send(frame)),
                Some(Leaving::Data(header, data)) => {
                    if path.is_none_or(|(s_id, ..)| s_id != header.s_id) {
                        path = self.enode.path(header.s_id).map(|(to, from)| (header.s_id, to, from));
                    }
                    // Without a login the target does not wait for it any more.
                    let Some((_, to, from)) = path else { continue };
                    let mut buffer = self.pool.take();
                    buffer.fill_fcoe(&header, data);
                    readdress(buffer.bytes_mut(), to, from);
                    self.frame_out(now, buffer);
                }
            }
        }
    }
}

// The Ethernet header stands before every PDU; frames of the host are composed with it.
const _: () = assert!(ETHER_BYTES == 14);
