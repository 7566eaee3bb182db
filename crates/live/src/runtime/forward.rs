//! The way of a frame: from a port through the forwarding table to another port, to a service, or to storage.
//!
//! A frame stays in the buffer that it was received into. Forwarding writes the two Ethernet addresses and the tag; the
//! Fibre Channel frame and its CRC are not touched.

use super::Runtime;
use super::switch::Attachment;
use crate::capture::Place;
use crate::frame::FrameBuf;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use sanloom_api::inject::Direction;
use sanloom_core::fabric::{Decision, DropReason};
use sanloom_core::fabric_switch;
use sanloom_core::fip::{Ingress, fcf};
use sanloom_core::time::Instant;
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fip::Fip;
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Frame};

/// Who brought a frame into a switch: whoever is held back when its egress is full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// An Ethernet port, by index.
    Ethernet(usize),
    /// A port of a storage system, by indices.
    Storage(usize, u16),
    /// A host port of the instance, by index.
    Host(usize),
    /// A machine, which is never held back: it says little.
    Machine,
}

/// A frame on its way into a switch from inside the process.
#[derive(Debug)]
pub(super) struct Entering {
    switch: usize,
    port: u16,
    source: Source,
    frame: FrameBuf,
}

/// Reasons of the runtime for dropping a frame at a port.
pub mod reason {
    /// Neither FCoE nor FIP.
    pub const OTHER_PROTOCOL: &str = "other protocol";
    /// No switch listens in this VLAN.
    pub const UNKNOWN_VLAN: &str = "unknown VLAN";
    /// FIP for a station that is not here.
    pub const NOT_FOR_US: &str = "not for us";
    /// No FIP packet in spite of its type.
    pub const MALFORMED_FIP: &str = "malformed FIP";
    /// No FCoE frame in spite of its type.
    pub const MALFORMED: &str = "malformed FCoE";
    /// A message or data for this process whose CRC is wrong.
    pub const BAD_CRC: &str = "bad CRC";
    /// The port is disabled.
    pub const DISABLED: &str = "port disabled";
    /// An operator wanted it to be lost.
    pub const INJECTED_DROP: &str = "injected drop";
    /// An operator wanted its sender to get a reject.
    pub const INJECTED_REJECT: &str = "injected reject";
}

impl Runtime {
    /// A frame came in through an Ethernet port.
    pub(super) fn ethernet_in(&mut self, now: Instant, port: usize, frame: FrameBuf) {
        self.captures.record(now, Place::Ethernet(port), false, &frame);
        let vlan = frame.tag.map(|tag| tag.vlan).filter(|vlan| *vlan != 0);
        match frame.ether_type() {
            Some(EtherType::FCOE) => match self.ports[port].station {
                None => self.fcoe_in(now, port, vlan, frame),
                Some(station) => match self.station_in(now, station, vlan, &frame) {
                    Ok(()) => self.pool.give(frame),
                    Err(reason) => self.drop_at(port, reason, frame),
                },
            },
            Some(EtherType::FIP) => {
                self.fip_in(now, port, vlan, &frame);
                self.pool.give(frame);
            }
            Some(EtherType::LLDP) if self.ports[port].agent.is_some() => {
                self.lldp_in(now, port, &frame);
                self.pool.give(frame);
            }
            _ => self.drop_at(port, reason::OTHER_PROTOCOL, frame),
        }
    }

    fn drop_at(&mut self, port: usize, reason: &'static str, frame: FrameBuf) {
        self.ports[port].ethernet.count(reason, 1);
        self.pool.give(frame);
    }

    #[inline]
    fn fcoe_in(&mut self, now: Instant, port: usize, vlan: Option<u16>, frame: FrameBuf) {
        let bytes = frame.bytes();
        let Some(pdu) = bytes.get(ETHER_BYTES..) else { return self.drop_at(port, reason::MALFORMED, frame) };
        let addresses =
            fcoe::addresses(pdu).filter(|_| Fcoe::parse(pdu).is_ok_and(|pdu| pdu.sof().zip(pdu.eof()).is_some()));
        let Some(addresses @ (_, s_id, _)) = addresses else { return self.drop_at(port, reason::MALFORMED, frame) };
        let (to, from) = (mac_at(bytes, 0), mac_at(bytes, 6));
        let here = self.ports[port].segments.iter().copied();
        let mut refused = reason::UNKNOWN_VLAN;
        for number in here {
            let segment = &self.segments[number];
            if segment.vlan != vlan {
                continue;
            }
            if segment.disabled {
                refused = reason::DISABLED;
                continue;
            }
            match segment.bindings.ingress(to, from, s_id) {
                Ingress::Port(ingress) => {
                    let switch = segment.switch;
                    self.enter(now, (switch, ingress), Source::Ethernet(port), frame, addresses);
                    return self.settle_inside(now);
                }
                other => refused = other.name(),
            }
        }
        self.drop_at(port, refused, frame);
    }

    fn fip_in(&mut self, now: Instant, port: usize, vlan: Option<u16>, frame: &FrameBuf) {
        let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) else {
            return self.ports[port].ethernet.count(reason::MALFORMED_FIP, 1);
        };
        let mut heard = self.station_fip_in(now, port, vlan, frame);
        for number in self.ports[port].segments.clone() {
            let segment = &self.segments[number];
            if segment.vlan == vlan && !segment.disabled && (to == segment.mac() || to.is_group()) {
                heard = true;
                self.tell_fcf(now, number, fcf::Input::Fip { to, from, pdu: pdu.into() });
            }
        }
        if vlan.is_none()
            && let Some(responder) = &self.ports[port].vlans
            && let Some(answer) = Fip::parse(pdu).ok().and_then(|packet| responder.answer(to, &packet))
        {
            heard = true;
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| answer.emit(None, out));
            self.ethernet_out(now, port, Source::Machine, buffer);
        }
        if !heard {
            let known = self.ports[port].segments.iter().any(|number| self.segments[*number].vlan == vlan);
            let reason = if known { reason::NOT_FOR_US } else { reason::UNKNOWN_VLAN };
            self.ports[port].ethernet.count(reason, 1);
        }
    }

    /// A frame enters a switch.
    #[inline]
    fn enter(&mut self, now: Instant, at: (usize, u16), source: Source, frame: FrameBuf, addresses: (FcId, FcId, u16)) {
        if self.injector.is_idle() {
            return self.enter_past(now, at, source, frame, addresses);
        }
        if let Some(frame) = self.inject_frame(now, Direction::In, at, source, frame) {
            self.enter_past(now, at, source, frame, addresses);
        }
    }

    /// The same behind what operators do to frames.
    #[inline]
    pub(super) fn enter_past(
        &mut self,
        now: Instant,
        (switch, ingress): (usize, u16),
        source: Source,
        frame: FrameBuf,
        (d_id, s_id, ox_id): (FcId, FcId, u16),
    ) {
        let node = &mut self.switches[switch];
        match node.fib.decide(ingress, s_id, d_id, ox_id) {
            Decision::Forward(egress) => {
                let port = node.port_of(ingress, egress, ox_id);
                node.forwarded += 1;
                match port {
                    Some(port) => self.leave(now, (switch, port), source, frame, d_id),
                    None => self.drop_in(switch, source, DropReason::NoRoute.name(), frame),
                }
            }
            Decision::Local => {
                let whole = self.local(now, switch, ingress, &frame);
                match whole {
                    true => self.pool.give(frame),
                    false => self.drop_in(switch, source, reason::BAD_CRC, frame),
                }
            }
            Decision::Drop(reason) => self.drop_in(switch, source, reason.name(), frame),
        }
    }

    /// A frame ends in a switch: counted where it came in, or at the switch if that was inside the process.
    pub(super) fn drop_in(&mut self, switch: usize, source: Source, reason: &'static str, frame: FrameBuf) {
        match source {
            Source::Ethernet(port) => self.ports[port].ethernet.count(reason, 1),
            Source::Storage(..) | Source::Host(_) | Source::Machine => {
                *self.switches[switch].drops.entry(reason).or_default() += 1
            }
        }
        self.pool.give(frame);
    }

    /// A frame leaves a switch through a port.
    #[inline]
    fn leave(&mut self, now: Instant, at: (usize, u16), source: Source, frame: FrameBuf, d_id: FcId) {
        if self.injector.is_idle() {
            return self.leave_past(now, at, source, frame, d_id);
        }
        if let Some(frame) = self.inject_frame(now, Direction::Out, at, source, frame) {
            self.leave_past(now, at, source, frame, d_id);
        }
    }

    /// The same behind what operators do to frames.
    #[inline]
    pub(super) fn leave_past(
        &mut self,
        now: Instant,
        (switch, port): (usize, u16),
        source: Source,
        mut frame: FrameBuf,
        d_id: FcId,
    ) {
        self.passes(now, (switch, port), true, &frame);
        match self.switches[switch].attachment(port) {
            Attachment::Segment(number) => {
                let segment = &self.segments[number];
                readdress(frame.bytes_mut(), segment.bindings.egress(port, d_id), segment.mac());
                frame.tag = segment.tag();
                let ethernet = segment.port;
                self.ethernet_out(now, ethernet, source, frame);
            }
            Attachment::Storage { system, port } => match open(&frame) {
                Some((header, field)) => {
                    self.systems[system].frame_in(now, port, header, field);
                    self.drain_storage(system);
                    self.pool.give(frame);
                }
                None => self.drop_in(switch, source, reason::BAD_CRC, frame),
            },
            Attachment::Host(port) => match open(&frame) {
                Some((header, field)) => {
                    self.tell_host(port, |host| host.frame_in(now, header, field));
                    self.pool.give(frame);
                }
                None => self.drop_in(switch, source, reason::BAD_CRC, frame),
            },
            Attachment::Cable { switch, port } => self.inside.push_back(Entering { switch, port, source, frame }),
            Attachment::Nothing => self.drop_in(switch, source, DropReason::PortDown.name(), frame),
        }
    }

    /// A frame leaves through an Ethernet port.
    #[inline]
    pub(super) fn ethernet_out(&mut self, now: Instant, port: usize, source: Source, frame: FrameBuf) {
        self.captures.record(now, Place::Ethernet(port), true, &frame);
        let ethernet = &mut self.ports[port].ethernet;
        ethernet.push(now, frame);
        if ethernet.egress.is_full() {
            self.hold(source, port);
        }
    }

    /// A frame for a service of a switch. False if its CRC is wrong.
    fn local(&mut self, now: Instant, switch: usize, port: u16, frame: &FrameBuf) -> bool {
        let Some((header, field)) = open(frame) else { return false };
        if let Some(frame) = self.switches[switch].reassembly.accept(now, header, field) {
            self.tell_switch(now, switch, fabric_switch::Input::Frame { port, frame });
        }
        true
    }

    /// A switch sends a message of its own.
    pub(super) fn send_from_switch(&mut self, now: Instant, switch: usize, port: u16, frame: Frame) {
        if self.injector.is_idle() {
            return self.send_past(now, switch, port, frame);
        }
        if let Some(frame) = self.inject_message(now, switch, port, frame) {
            self.send_past(now, switch, port, frame);
        }
    }

    /// The same behind what operators do to frames.
    pub(super) fn send_past(&mut self, now: Instant, switch: usize, port: u16, frame: Frame) {
        self.message_passes(now, (switch, port), &frame);
        match self.switches[switch].attachment(port) {
            Attachment::Segment(number) => self.tell_fcf(now, number, fcf::Input::Send { port, frame }),
            Attachment::Storage { system, port } => {
                self.systems[system].message_in(now, port, frame);
                self.drain_storage(system);
            }
            Attachment::Host(port) => self.tell_host(port, |host| host.message_in(now, frame)),
            Attachment::Cable { switch, port } => {
                self.pass_inside(switch, port, Source::Machine, frame);
            }
            Attachment::Nothing => {}
        }
    }

    /// A message goes into a switch through one of its inner ports, cut into frames.
    pub(super) fn pass_inside(&mut self, switch: usize, port: u16, source: Source, frame: Frame) {
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &piece, out));
            self.inside.push_back(Entering { switch, port, source, frame: buffer });
        }
    }

    /// A frame of data enters a switch from inside.
    pub(super) fn data_inside(&mut self, switch: usize, port: u16, source: Source, frame: FrameBuf) {
        self.inside.push_back(Entering { switch, port, source, frame });
    }

    /// A message leaves through a segment in FCoE, cut into frames.
    pub(super) fn send_fcoe(&mut self, now: Instant, segment: usize, to: MacAddr, frame: Frame) {
        let (from, tag, port) =
            (self.segments[segment].mac(), self.segments[segment].tag(), self.segments[segment].port);
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(to, from, None, &piece, out));
            buffer.tag = tag;
            self.ethernet_out(now, port, Source::Machine, buffer);
        }
    }

    /// Carries frames inside the process until there are none.
    pub(super) fn settle_inside(&mut self, now: Instant) {
        while let Some(Entering { switch, port, source, frame }) = self.inside.pop_front() {
            self.passes(now, (switch, port), false, &frame);
            match addresses_of(&frame) {
                Some(addresses) => self.enter(now, (switch, port), source, frame, addresses),
                None => self.pool.give(frame),
            }
        }
    }
}

/// D_ID, S_ID and OX_ID of a frame.
pub(super) fn addresses_of(frame: &FrameBuf) -> Option<(FcId, FcId, u16)> {
    fcoe::addresses(frame.bytes().get(ETHER_BYTES..).unwrap_or_default())
}

/// Header and data field of a frame whose CRC is right.
fn open(frame: &FrameBuf) -> Option<(sanloom_wire::Header, &[u8])> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok().filter(Fcoe::crc_is_right)?;
    Some((pdu.header().ok()?, &pdu.frame[HEADER_BYTES..]))
}

#[inline]
fn mac_at(bytes: &[u8], at: usize) -> MacAddr {
    bytes.get(at..at + 6).and_then(|mac| mac.try_into().ok()).map_or(MacAddr::ZERO, MacAddr)
}
