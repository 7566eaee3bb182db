//! Frame transfer between the port and the machines of an [`Adapter`].

use super::adapter::{Adapter, Vlan, tag};
use super::controller::{Controller, ControllerInput, ControllerOutput};
use super::host::Leaving;
use crate::capture::CapturePoint;
use crate::frame::FrameBuf;
use crate::lldp::Agent;
use crate::sequence::{MESSAGE_FRAME_BYTES, cut};
use crate::sys::batch::BATCH;
use sanloom_fc::nport;
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fip::Fip;
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Frame};
use std::io;

/// Maximum number of receive batches per step.
const MAX_BATCHES_AT_ONCE: usize = 8;
/// Maximum number of frames from one N_Port before the next one sends.
const MAX_FRAMES_AT_ONCE: usize = 32;

/// Reasons for dropping a received frame.
pub mod reason {
    /// Neither FCoE nor FIP.
    pub const OTHER_PROTOCOL: &str = "other protocol";
    /// The frame is in a VLAN other than ours.
    pub const OTHER_VLAN: &str = "other VLAN";
    /// The EtherType is FCoE, but the frame is invalid.
    pub const MALFORMED: &str = "malformed FCoE";
    /// The CRC is wrong.
    pub const BAD_CRC: &str = "bad CRC";
}

impl Adapter {
    /// Processes received frames. Returns true if there may be more.
    pub(super) fn receive(&mut self, now: Instant) -> bool {
        for _ in 0..MAX_BATCHES_AT_ONCE {
            let (got, cut) = match self.port.receive(&mut self.spare) {
                Ok(got) => got,
                Err(error) => {
                    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                        tracing::debug!(port = self.port.name, %error, "receive");
                    }
                    return false;
                }
            };
            let mut whole = Vec::with_capacity(got);
            for (place, bit) in (0..got).zip(0..) {
                let next = self.pool.take();
                let frame = std::mem::replace(&mut self.spare[place], next);
                if cut >> bit & 1 == 0 {
                    whole.push(frame);
                } else {
                    self.pool.give(frame);
                }
            }
            for frame in whole {
                let crc_is_right = self.config.offloads.checksum.accepts(&frame);
                self.frame_in(now, &frame, crc_is_right);
                self.pool.give(frame);
            }
            if got < BATCH {
                return false;
            }
        }
        true
    }

    fn frame_in(&mut self, now: Instant, frame: &FrameBuf, crc_is_right: bool) {
        self.captures.record(now, CapturePoint::Ethernet(0), false, frame);
        let vlan = frame.tag.map(|tag| tag.vlan).filter(|vlan| *vlan != 0);
        let ours = match self.tag {
            Some(tag) => tag.map(|tag| tag.vlan) == vlan,
            // VLAN requests and their replies are untagged.
            None => vlan.is_none(),
        };
        let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) else {
            return self.port.count(reason::MALFORMED, 1);
        };
        match frame.ether_type() {
            Some(EtherType::FIP) if vlan.is_none() && self.vlan_asked(now, to, pdu) => {}
            Some(EtherType::LLDP) if self.agent.is_some() => {
                if let Some(agent) = &mut self.agent {
                    agent.frame_in(now, frame);
                }
                self.drain_agent(now);
                self.update_fcoe(now);
            }
            Some(EtherType::FCOE | EtherType::FIP) if !ours => self.port.count(reason::OTHER_VLAN, 1),
            Some(EtherType::FIP) => self.controller_input(now, ControllerInput::Fip { to, from, pdu: pdu.into() }),
            Some(EtherType::FCOE) => self.fcoe_in(now, (to, from), pdu, crc_is_right),
            Some(EtherType::MAC_CONTROL) if self.port.paused(now, frame) => {}
            _ => self.port.count(reason::OTHER_PROTOCOL, 1),
        }
    }

    fn fcoe_in(&mut self, now: Instant, (to, from): (MacAddr, MacAddr), pdu: &[u8], crc_is_right: bool) {
        let Ok(fcoe) = Fcoe::parse(pdu) else { return self.port.count(reason::MALFORMED, 1) };
        let Ok(header) = fcoe.header() else { return self.port.count(reason::MALFORMED, 1) };
        if let Err(discard) = self.controller.ingress(to, from, &header) {
            return self.port.count(discard.name(), 1);
        }
        if !crc_is_right {
            return self.port.count(reason::BAD_CRC, 1);
        }
        let host = self.host_of(header.d_id);
        self.hosts[host].frame_in(now, header, &fcoe.frame[HEADER_BYTES..]);
    }

    /// Returns the index of the N_Port with an address, or of the physical one if there is none.
    fn host_of(&self, port_id: FcId) -> usize {
        self.hosts.iter().position(|host| host.port_id() == port_id).unwrap_or(0)
    }

    pub(super) fn controller_input(&mut self, now: Instant, input: ControllerInput) {
        self.controller.handle(now, input);
        while let Some(wanted) = self.controller.poll_output() {
            match wanted {
                ControllerOutput::Fip(packet) => {
                    let mut buffer = self.pool.take();
                    buffer.compose(&mut self.scratch, |out| packet.emit(None, out));
                    self.frame_out(now, buffer);
                }
                ControllerOutput::Fcoe { to, from, frame } => self.message_out(now, to, from, frame),
                ControllerOutput::Deliver(frame) => {
                    let waits = self.hosts.iter().position(|host| host.login.expects(&frame.header));
                    let host = waits.unwrap_or_else(|| self.host_of(frame.header.d_id));
                    self.hosts[host].message_in(now, frame);
                }
                ControllerOutput::FcfUp(fcf) => {
                    tracing::info!(fcf = %fcf.mac, fabric = %fcf.fabric_name, "FCF selected");
                    self.hosts[0].login_input(now, nport::Input::LinkUp);
                }
                ControllerOutput::FcfDown => {
                    tracing::info!("the FCF is lost");
                    self.hosts[0].login_input(now, nport::Input::LinkDown);
                    self.forget_vlan(now);
                }
                ControllerOutput::Login(input) => {
                    match &input {
                        nport::Input::Joined { port_id } => tracing::info!(%port_id, "station of a VN2VN segment"),
                        nport::Input::Neighbour { port_id, wwpn } => tracing::info!(%port_id, %wwpn, "neighbour"),
                        nport::Input::NeighbourGone { port_id } => tracing::info!(%port_id, "neighbour gone"),
                        _ => tracing::info!("the last neighbour of the segment is gone"),
                    }
                    self.hosts[0].login_input(now, input);
                }
                ControllerOutput::Cleared(port_id) => {
                    let host = self.host_of(port_id);
                    self.hosts[host].link(now, false);
                    self.hosts[host].link(now, true);
                }
                ControllerOutput::Vlans { fcf, vlans } => self.vlans(now, fcf, &vlans),
            }
            self.virtual_links(now);
        }
    }

    /// Sets the links of virtual N_Ports, which follow the fabric login of the physical one.
    pub(super) fn virtual_links(&mut self, now: Instant) {
        let up = self.hosts[0].port_id() != FcId::ZERO && matches!(self.controller, Controller::Fabric(_));
        if std::mem::replace(&mut self.base_up, up) != up {
            self.hosts[1..].iter_mut().for_each(|host| host.link(now, up));
        }
    }

    /// Processes the VLANs that an FCF reported. The first one is used.
    fn vlans(&mut self, now: Instant, fcf: MacAddr, vlans: &[u16]) {
        let first = vlans.first().copied().filter(|_| self.config.vlan == Vlan::Discover && self.tag.is_none());
        if let Some(vlan) = first {
            tracing::info!(%fcf, vlan, "VLAN of FCoE");
            self.tag = Some((vlan != 0).then(|| tag(vlan)));
            if self.begun {
                self.controller_input(now, ControllerInput::LinkUp);
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
        self.untagged_out(now, frame);
    }

    /// Queues a frame with its current tag.
    pub(super) fn untagged_out(&mut self, now: Instant, frame: FrameBuf) {
        self.captures.record(now, CapturePoint::Ethernet(0), true, &frame);
        self.port.push(now, frame);
    }

    /// Pauses the lossless priorities of the peer while the receive buffer is filling up.
    pub(super) fn pause_peer(&mut self, now: Instant) {
        let Some(from) = self.agent.as_ref().map(Agent::mac) else { return };
        let Some(pause) = self.port.pause(now, false) else { return };
        let mut frame = self.pool.take();
        frame.compose(&mut self.scratch, |out| pause.emit(from, out));
        self.captures.record(now, CapturePoint::Ethernet(0), true, &frame);
        self.port.egress.push_control(now, frame);
    }

    /// Answers an untagged request for the VLAN of a VN2VN segment. Returns true if the frame was
    /// such a request.
    fn vlan_asked(&mut self, now: Instant, to: MacAddr, pdu: &[u8]) -> bool {
        let answer = self.responder.as_ref().and_then(|responder| responder.answer(to, &Fip::parse(pdu).ok()?));
        let Some(answer) = answer else { return false };
        let mut buffer = self.pool.take();
        buffer.compose(&mut self.scratch, |out| answer.emit(None, out));
        self.untagged_out(now, buffer);
        true
    }

    /// Queues output of the hosts until the egress queue is full.
    pub(super) fn pump(&mut self, now: Instant) {
        let mut silent = 0;
        while !self.port.egress.is_full() && silent < self.hosts.len() {
            let host = self.next_host;
            let mut left = MAX_FRAMES_AT_ONCE;
            while left > 0 && !self.port.egress.is_full() && self.send_next(now, host) {
                left -= 1;
            }
            silent = if left == MAX_FRAMES_AT_ONCE { silent + 1 } else { 0 };
            if left > 0 {
                self.next_host = (host + 1) % self.hosts.len();
            }
        }
    }

    /// Queues one message or frame of a host. Returns false if the host has no output.
    fn send_next(&mut self, now: Instant, host: usize) -> bool {
        match self.hosts[host].next_leaving() {
            None => return false,
            // The controller selects FIP or FCoE.
            Some(Leaving::Message(frame)) => self.controller_input(now, ControllerInput::Send(frame)),
            Some(Leaving::Data(header, data)) => {
                // Without a login the frame is dropped, because the target no longer expects it.
                let Some(path) = self.controller.path(&header) else { return true };
                let mut buffer = self.pool.take();
                self.segmenter.fill(&mut buffer, &header, path, data);
                self.frame_out(now, buffer);
            }
        }
        true
    }
}

// Every PDU follows an Ethernet header of this length; frames of a host are composed together with
// it.
const _: () = assert!(ETHER_BYTES == 14);
