//! Path of a frame: from a port through the forwarding table to another port, to a service, or to
//! storage.
//!
//! A frame stays in its receive buffer. Forwarding writes the two Ethernet addresses and the tag.
//! The Fibre Channel frame and its CRC stay unchanged.

use super::fabric::switch::Attachment;
use super::fabric::{Step, Way, addresses_in};
use super::instance::Instance;
use super::ports::LivePort;
use super::work::{Entering, Origin, Source, Timer};
use crate::capture::CapturePoint;
use crate::frame::FrameBuf;
use crate::initiator::host;
use crate::lldp::Agent;
use crate::ports::reason::HOLD_TIME;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use crate::storage::port::{At, Leaving};
use crate::volumes::Wire;
use sanloom_api::inject::Direction;
use sanloom_fc::fabric::DropReason;
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::vn2vn;
use sanloom_fc::fip::{Discard, fcf};
use sanloom_scsi::time::Instant;
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr, VlanTag, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::fip::Fip;
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Frame};

/// Maximum frames from a storage port or host port before the next one sends.
const MAX_FRAMES_AT_ONCE: usize = 32;

/// Reasons for dropping a frame at a port.
pub mod reason {
    /// Neither FCoE nor FIP.
    pub const OTHER_PROTOCOL: &str = "other protocol";
    /// No switch uses this VLAN.
    pub const UNKNOWN_VLAN: &str = "unknown VLAN";
    /// FIP for a station of another process.
    pub const NOT_FOR_US: &str = "not for us";
    /// The EtherType is FIP, but the packet is invalid.
    pub const MALFORMED_FIP: &str = "malformed FIP";
    /// The EtherType is FCoE, but the frame is invalid.
    pub const MALFORMED: &str = "malformed FCoE";
    /// Wrong CRC of a message or data for this process.
    pub const BAD_CRC: &str = "bad CRC";
    /// The port is disabled.
    pub const DISABLED: &str = "port disabled";
    /// Dropped by an injected fault.
    pub const INJECTED_DROP: &str = "injected drop";
    /// Rejected by an injected fault.
    pub const INJECTED_REJECT: &str = "injected reject";
}

impl Instance {
    /// Processes a frame received on an Ethernet port.
    pub fn ethernet_frame(&mut self, now: Instant, port: usize, frame: FrameBuf) {
        self.ports.captures.record(now, CapturePoint::Ethernet(port), false, &frame);
        let vlan = vlan_of(&frame);
        match frame.ether_type() {
            Some(EtherType::FCOE) => match self.ports[port].station {
                None => self.fcoe_frame(now, port, vlan, frame),
                Some(station) => match self.station_frame(now, station, vlan, &frame) {
                    Ok(()) => self.ports.pool.give(frame),
                    Err(reason) => self.ports.drop_frame(port, reason, frame),
                },
            },
            Some(EtherType::FIP) => {
                self.fip_packet(now, port, vlan, &frame);
                self.ports.pool.give(frame);
            }
            Some(EtherType::LLDP) if self.ports[port].agent.is_some() => {
                if let Some(input) = Agent::input_of(&frame) {
                    self.agent_input(now, port, input);
                    self.update_link(now, port);
                }
                self.ports.pool.give(frame);
            }
            Some(EtherType::MAC_CONTROL) if self.ports.paused(now, port, &frame) => self.ports.pool.give(frame),
            _ => self.ports.drop_frame(port, reason::OTHER_PROTOCOL, frame),
        }
        self.dispatch(now);
    }

    #[inline]
    fn fcoe_frame(&mut self, now: Instant, port: usize, vlan: Option<u16>, frame: FrameBuf) {
        let origin = Origin { source: Source::Ethernet(port), since: now };
        let LivePort { tunnel, segments, .. } = &self.ports[port];
        let entered = match *tunnel {
            Some(at) => addresses_in(frame.bytes()).map(|addresses| (at, addresses)),
            None => self.fabric.ingress(segments, vlan, frame.bytes()),
        };
        match entered {
            Ok((at, addresses)) => {
                self.enter(now, at, origin, frame, addresses);
            }
            Err(refused) => self.ports.drop_frame(port, refused, frame),
        }
    }

    /// Carries on with a frame whose way the receive phase has decided.
    #[inline]
    pub(super) fn received_frame(&mut self, now: Instant, port: usize, (frame, way): (FrameBuf, Way)) {
        match way {
            Way::Out { switch, ethernet } => {
                self.fabric.switches[switch].forwarded += 1;
                self.push_ethernet(now, ethernet, Source::Ethernet(port), frame);
            }
            Way::Machines => self.ethernet_frame(now, port, frame),
            Way::Nowhere => self.ports.pool.give(frame),
        }
    }

    fn fip_packet(&mut self, now: Instant, port: usize, vlan: Option<u16>, frame: &FrameBuf) {
        let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) else {
            return self.ports[port].ethernet.count(reason::MALFORMED_FIP, 1);
        };
        let station = self.ports[port].station.filter(|number| self.fabric.stations[*number].vlan == vlan);
        let mut accepted = station.is_some();
        if let Some(number) = station {
            self.station_input(now, number, vn2vn::Input::Fip { to, from, pdu: pdu.into() });
        }
        for number in self.ports[port].segments.clone() {
            let segment = &self.fabric.segments[number];
            if segment.vlan == vlan && !segment.disabled && (to == segment.mac() || to.is_group()) {
                accepted = true;
                self.fcf_input(now, number, fcf::Input::Fip { to, from, pdu: pdu.into() });
            }
        }
        if vlan.is_none()
            && let Some(responder) = &self.ports[port].vlans
            && let Some(answer) = Fip::parse(pdu).ok().and_then(|packet| responder.answer(to, &packet))
        {
            accepted = true;
            let frame = self.ports.compose(|out| answer.emit(None, out));
            self.push_ethernet(now, port, Source::Machine, frame);
        }
        if !accepted {
            let known = self.ports[port].segments.iter().any(|number| self.fabric.segments[*number].vlan == vlan);
            let reason = if known { reason::NOT_FOR_US } else { reason::UNKNOWN_VLAN };
            self.ports[port].ethernet.count(reason, 1);
        }
    }

    /// Processes a frame that enters a switch through an inner port. A frame older than the hold
    /// time is dropped: it was queued for too long, or circulates while routes change.
    #[inline]
    pub(super) fn inner_frame(&mut self, now: Instant, entering: Entering) {
        let Entering { switch, port, origin, frame } = entering;
        self.fabric.switches[switch].inner_mut(port).received += 1;
        self.capture_inner(now, (switch, port), false, &frame);
        if now.since(origin.since) > self.ports.hold_time() {
            return self.drop_inside(switch, HOLD_TIME, frame);
        }
        match addresses_of(&frame) {
            Some(addresses) => self.enter(now, (switch, port), origin, frame, addresses),
            None => self.drop_inside(switch, reason::MALFORMED, frame),
        }
    }

    /// Processes a frame that enters a switch.
    #[inline]
    fn enter(&mut self, now: Instant, at: (usize, u16), origin: Origin, frame: FrameBuf, addresses: (FcId, FcId, u16)) {
        if self.fabric.injector.is_idle() {
            return self.forward(now, at, origin, frame, addresses);
        }
        if let Some(frame) = self.inject_frame(now, Direction::In, at, origin, frame) {
            self.forward(now, at, origin, frame, addresses);
        }
    }

    /// Forwards a frame through a switch, after the check for injected faults.
    #[inline]
    pub(super) fn forward(
        &mut self,
        now: Instant,
        (switch, ingress): (usize, u16),
        origin: Origin,
        frame: FrameBuf,
        addresses: (FcId, FcId, u16),
    ) {
        match self.fabric.decide((switch, ingress), addresses) {
            Step::Leave(port) => self.leave(now, (switch, port), origin, frame, addresses.0),
            Step::Local => self.local(now, (switch, ingress), origin, frame),
            Step::Drop(reason) => self.drop_in(switch, origin.source, reason.name(), frame),
        }
    }

    /// Drops a frame in a switch. It is counted at the Ethernet port that received it, or at the
    /// switch.
    pub(super) fn drop_in(&mut self, switch: usize, source: Source, reason: &'static str, frame: FrameBuf) {
        match source {
            Source::Ethernet(port) => self.ports.drop_frame(port, reason, frame),
            Source::Storage(..) | Source::Host(_) | Source::Machine => self.drop_inside(switch, reason, frame),
        }
    }

    /// Drops a frame in a switch and counts it there.
    fn drop_inside(&mut self, switch: usize, reason: &'static str, frame: FrameBuf) {
        *self.fabric.switches[switch].drops.entry(reason).or_default() += 1;
        self.ports.pool.give(frame);
    }

    /// Sends a frame from a switch through a port.
    #[inline]
    fn leave(&mut self, now: Instant, at: (usize, u16), origin: Origin, frame: FrameBuf, d_id: FcId) {
        if self.fabric.injector.is_idle() {
            return self.leave_port(now, at, origin, frame, d_id);
        }
        if let Some(frame) = self.inject_frame(now, Direction::Out, at, origin, frame) {
            self.leave_port(now, at, origin, frame, d_id);
        }
    }

    /// Sends a frame from a switch through a port, after the check for injected faults.
    #[inline]
    pub(super) fn leave_port(
        &mut self,
        now: Instant,
        (switch, port): (usize, u16),
        origin: Origin,
        mut frame: FrameBuf,
        d_id: FcId,
    ) {
        self.capture_inner(now, (switch, port), true, &frame);
        let attachment = self.fabric.switches[switch].attachment(port);
        if let Attachment::Segment(number) = attachment {
            let segment = &self.fabric.segments[number];
            readdress(frame.bytes_mut(), segment.bindings.egress(port, d_id), segment.mac());
            frame.tag = segment.tag();
            let ethernet = segment.port;
            return self.push_ethernet(now, ethernet, origin.source, frame);
        }
        if let Attachment::Tunnel(tunnel) = attachment {
            readdress(frame.bytes_mut(), MacAddr::ZERO, MacAddr::ZERO);
            frame.tag = None;
            return self.push_ethernet(now, tunnel, origin.source, frame);
        }
        self.fabric.switches[switch].inner_mut(port).sent += 1;
        match attachment {
            Attachment::Segment(_) | Attachment::Tunnel(_) => {}
            Attachment::Storage { system, port } => match open(&frame) {
                Some((header, field)) => {
                    self.services.systems[system].frame_in(now, port, header, field);
                    self.services.submit_jobs(system);
                    self.ports.pool.give(frame);
                }
                None => self.drop_in(switch, origin.source, reason::BAD_CRC, frame),
            },
            Attachment::Host(number) => match open(&frame) {
                Some((header, field)) => {
                    if let Some(port) = self.services.host_mut(number) {
                        port.host_mut().frame_in(now, header, field);
                    }
                    self.ports.pool.give(frame);
                }
                None => self.drop_in(switch, origin.source, reason::BAD_CRC, frame),
            },
            Attachment::Cable { switch, port } => self.work.push_frame(Entering { switch, port, origin, frame }),
            Attachment::Nothing => self.drop_in(switch, origin.source, DropReason::PortDown.name(), frame),
        }
    }

    /// Sends a frame through an Ethernet port.
    #[inline]
    pub(super) fn push_ethernet(&mut self, now: Instant, port: usize, source: Source, frame: FrameBuf) {
        if self.ports.push(now, port, source, frame) {
            self.change_held(source, 1);
        }
    }

    /// Processes a frame for a service of a switch.
    fn local(&mut self, now: Instant, (switch, port): (usize, u16), origin: Origin, frame: FrameBuf) {
        let Some((header, field)) = open(&frame) else {
            return self.drop_in(switch, origin.source, reason::BAD_CRC, frame);
        };
        if let Some(message) = self.fabric.switches[switch].reassembly.accept(now, header, field) {
            self.work.push_switch(switch, fabric_switch::Input::Frame { port, frame: message });
        }
        self.ports.pool.give(frame);
    }

    /// Sends a message of a switch through a port.
    pub(super) fn send_message(&mut self, now: Instant, at: (usize, u16), frame: Frame) {
        if self.fabric.injector.is_idle() {
            return self.leave_message(now, at, frame);
        }
        if let Some(frame) = self.inject_message(now, at, frame) {
            self.leave_message(now, at, frame);
        }
    }

    /// Sends a message of a switch through a port, after the check for injected faults.
    pub(super) fn leave_message(&mut self, now: Instant, (switch, port): (usize, u16), frame: Frame) {
        self.capture_message(now, (switch, port), &frame);
        let attachment = self.fabric.switches[switch].attachment(port);
        if let Attachment::Segment(number) = attachment {
            return self.work.push_fcf(number, fcf::Input::Send { port, frame });
        }
        if let Attachment::Tunnel(tunnel) = attachment {
            return self.tunnel_message(now, tunnel, frame);
        }
        let frames = frame.payload.len().div_ceil(MESSAGE_FRAME_BYTES).max(1);
        self.fabric.switches[switch].inner_mut(port).sent += frames as u64;
        match attachment {
            Attachment::Storage { system, port } => {
                self.services.systems[system].message_in(now, port, frame);
                self.services.submit_jobs(system);
            }
            Attachment::Host(number) => {
                if let Some(port) = self.services.host_mut(number) {
                    port.host_mut().message_in(now, frame);
                }
            }
            Attachment::Cable { switch, port } => self.enter_message(now, (switch, port), Source::Machine, frame),
            Attachment::Segment(_) | Attachment::Tunnel(_) | Attachment::Nothing => {}
        }
    }

    /// Sends a message into a switch through one of its inner ports, cut into frames.
    fn enter_message(&mut self, now: Instant, at: (usize, u16), source: Source, frame: Frame) {
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let buffer = self.ports.compose(|out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &piece, out));
            self.enter_data(now, at, source, buffer);
        }
    }

    /// Sends a frame into a switch through one of its inner ports.
    #[inline]
    pub(super) fn enter_data(&mut self, now: Instant, (switch, port): (usize, u16), source: Source, frame: FrameBuf) {
        self.work.push_frame(Entering { switch, port, origin: Origin { source, since: now }, frame });
    }

    /// Sends a message through an Ethernet port in FCoE, cut into frames.
    pub(super) fn send_fcoe(
        &mut self,
        now: Instant,
        port: usize,
        (to, from): (MacAddr, MacAddr),
        tag: Option<VlanTag>,
        source: Source,
        frame: Frame,
    ) {
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let mut buffer = self.ports.compose(|out| fcoe::encapsulate(to, from, None, &piece, out));
            buffer.tag = tag;
            self.push_ethernet(now, port, source, buffer);
        }
    }

    /// Processes an FCoE frame for a station. Returns the reason if it is dropped.
    fn station_frame(
        &mut self,
        now: Instant,
        number: usize,
        vlan: Option<u16>,
        frame: &FrameBuf,
    ) -> Result<(), &'static str> {
        let station = &self.fabric.stations[number];
        if station.vlan != vlan {
            return Err(reason::UNKNOWN_VLAN);
        }
        let bytes = frame.bytes();
        let (ether, pdu) = EtherHeader::parse(bytes).map_err(|_| reason::MALFORMED)?;
        let fcoe = Fcoe::parse(pdu).map_err(|_| reason::MALFORMED)?;
        let header = fcoe.header().map_err(|_| reason::MALFORMED)?;
        let allowed = station.machine.ingress(ether.to, ether.from, header.s_id, header.d_id);
        allowed.map_err(|discard| discard.name())?;
        if !fcoe.crc_is_right() {
            return Err(reason::BAD_CRC);
        }
        let field = &bytes[ETHER_BYTES + fcoe::HEAD_BYTES + HEADER_BYTES..][..fcoe.frame.len() - HEADER_BYTES];
        let (system, storage_port) = (station.system, station.storage_port);
        self.services.systems[system].frame_in(now, storage_port, header, field);
        self.services.submit_jobs(system);
        Ok(())
    }

    /// Visits each storage port to which something happened: sends a few frames unless the port is
    /// held back, and updates its deadline. A port with more frames is visited again.
    pub fn send_from_storage(&mut self, now: Instant) {
        let systems = self.services.systems.take_ready();
        for system in systems.iter().copied() {
            let ports = self.services.systems.visit(system).take_changed();
            for port in ports.iter().copied() {
                self.visit_storage_port(now, system, port as u16);
            }
            let visited = self.services.systems.visit(system);
            visited.reuse(ports);
            if !visited.notices.is_empty() {
                self.services.systems.enter(system);
            }
        }
        self.services.systems.reuse(systems);
    }

    fn visit_storage_port(&mut self, now: Instant, system: usize, port: u16) {
        #[cfg(test)]
        self.visits.push(Source::Storage(system, port));
        let mut left = MAX_FRAMES_AT_ONCE;
        while left > 0 && !self.work.is_full() && self.storage_port_sends(now, system, port) {
            self.dispatch(now);
            left -= 1;
        }
        let node = &self.services.systems[system].ports[usize::from(port)];
        self.deadlines.update(Timer::StoragePort(system, port), node.poll_timeout());
        if node.may_send() {
            self.services.systems[system].enter(port);
        }
    }

    /// Sends the next frame of a storage port. Returns false if it has none, or is held back.
    fn storage_port_sends(&mut self, now: Instant, system: usize, port: u16) -> bool {
        let node = &mut self.services.systems.visit(system).ports[usize::from(port)];
        if node.held > 0 {
            return false;
        }
        let source = Source::Storage(system, port);
        match node.at {
            At::Nothing => false,
            At::Station(station) => self.station_sends(now, station, source),
            At::Switch { switch, port: at } => {
                match node.next_leaving() {
                    None => return false,
                    Some(Leaving::Message(frame)) => self.enter_message(now, (switch, at), source, frame),
                    Some(Leaving::Data(header, data)) => {
                        let mut buffer = self.ports.pool.take();
                        buffer.fill_fcoe(&header, data);
                        self.enter_data(now, (switch, at), source, buffer);
                    }
                }
                true
            }
        }
    }

    /// Sends the next frame of a station's storage port. Returns false if it has none.
    fn station_sends(&mut self, now: Instant, number: usize, source: Source) -> bool {
        let station = &self.fabric.stations[number];
        let (ethernet, tag) = (station.port, station.tag());
        let node = &mut self.services.systems.visit(station.system).ports[usize::from(station.storage_port)];
        match node.next_leaving() {
            None => return false,
            Some(Leaving::Message(frame)) => self.station_input(now, number, vn2vn::Input::Send(frame)),
            // Without a login, the target no longer expects the data.
            Some(Leaving::Data(header, data)) => match station.machine.path(header.d_id) {
                None => self.ports[ethernet].ethernet.count(Discard::NotLoggedIn.name(), 1),
                Some((to, from)) => {
                    let mut buffer = self.ports.pool.take();
                    buffer.fill_fcoe(&header, data);
                    readdress(buffer.bytes_mut(), to, from);
                    buffer.tag = tag;
                    self.push_ethernet(now, ethernet, source, buffer);
                }
            },
        }
        true
    }

    /// Visits each host port to which something happened: sends a few frames unless the port is
    /// held back, and updates its deadline. A port with more frames is visited again.
    pub fn send_from_hosts(&mut self, now: Instant) {
        let Some(engine) = &mut self.services.volumes else { return };
        let hosts = engine.hosts_mut().take_ready();
        for number in hosts.iter().copied() {
            #[cfg(test)]
            self.visits.push(Source::Host(number));
            let mut left = MAX_FRAMES_AT_ONCE;
            while left > 0 && !self.work.is_full() && self.host_sends(now, number) {
                self.dispatch(now);
                left -= 1;
            }
            let Some(engine) = &mut self.services.volumes else { break };
            let port = engine.hosts_mut().visit(number);
            let more = port.adapter_mut().is_some_and(|adapter| adapter.send(now));
            self.deadlines.update(Timer::Host(number), port.poll_timeout());
            if more || port.may_send() {
                engine.hosts_mut().enter(number);
            }
            engine.visited(number);
        }
        if let Some(engine) = &mut self.services.volumes {
            engine.hosts_mut().reuse(hosts);
        }
    }

    /// Sends the next frame of a host port into its switch. Returns false if it has none, or is
    /// held back.
    fn host_sends(&mut self, now: Instant, number: usize) -> bool {
        let Some(engine) = &mut self.services.volumes else { return false };
        let port = engine.hosts_mut().visit(number);
        let Wire::Inside { switch, port: at, ref mut host } = port.wire else { return false };
        if port.held > 0 {
            return false;
        }
        let source = Source::Host(number);
        match host.next_leaving() {
            None => return false,
            Some(host::Leaving::Message(frame)) => self.enter_message(now, (switch, at), source, frame),
            Some(host::Leaving::Data(header, data)) => {
                let mut buffer = self.ports.pool.take();
                buffer.fill_fcoe(&header, data);
                self.enter_data(now, (switch, at), source, buffer);
            }
        }
        true
    }

    /// Captures a frame at a port of a switch. Frames of Ethernet ports are captured at
    /// transmission and reception.
    #[inline]
    fn capture_inner(&mut self, now: Instant, (switch, port): (usize, u16), outbound: bool, frame: &FrameBuf) {
        self.ports.captures.record(now, CapturePoint::Inner { switch, port }, outbound, frame);
    }

    /// Captures a message that a switch sends through a port.
    fn capture_message(&mut self, now: Instant, (switch, port): (usize, u16), frame: &Frame) {
        let point = CapturePoint::Inner { switch, port };
        if !self.ports.captures.has(point) {
            return;
        }
        for piece in sequence::cut(frame.clone(), MESSAGE_FRAME_BYTES) {
            let buffer = self.ports.compose(|out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &piece, out));
            self.ports.captures.record(now, point, true, &buffer);
            self.ports.pool.give(buffer);
        }
    }
}

/// D_ID, S_ID and OX_ID of a frame.
pub(super) fn addresses_of(frame: &FrameBuf) -> Option<(FcId, FcId, u16)> {
    fcoe::addresses(frame.bytes().get(ETHER_BYTES..).unwrap_or_default())
}

/// Returns header and data field of a frame with a correct CRC.
fn open(frame: &FrameBuf) -> Option<(sanloom_wire::Header, &[u8])> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok().filter(Fcoe::crc_is_right)?;
    Some((pdu.header().ok()?, &pdu.frame[HEADER_BYTES..]))
}

/// VLAN of a frame; a tag with priority only is none.
#[inline]
pub(super) fn vlan_of(frame: &FrameBuf) -> Option<u16> {
    frame.tag.map(|tag| tag.vlan).filter(|vlan| *vlan != 0)
}
