//! Captures of watched links as pcapng. Frames of Fibre Channel are complete, with delimiters and
//! CRC, those of Ethernet have no FCS, and packets of InfiniBand are ERF records. The order is that
//! of their first bits.
//!
//! The simulator moves no data bytes. A capture fills them with a pattern that depends only on
//! direction, exchange and offset. The same lab therefore gives the same capture, and a frame looks
//! the same on every link of its route.

pub(crate) mod ethernet;
pub(crate) mod fcip;
pub(crate) mod fcoe;
pub(crate) mod fip;
pub(crate) mod infiniband;

use crate::net::ethernet::ObservedKind as OnEthernet;
use crate::net::infiniband::ObservedKind as OnInfiniband;
use crate::net::{FrameRef, Observed, ObservedKind};
use crate::results::Names;
use crate::world::{Owner, World};
use sanloom_fc::config::VlanNumbers;
use sanloom_fc::exchange::data_header;
use sanloom_fc::san::{Lab, rate_names};
use sanloom_wire::arbitrated_loop::{FL_PORT_ID, LoopInit, NL_PORT_ID};
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::pcapng::{
    Direction, Interface, LINKTYPE_ERF, LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS, Packet, Resolution,
    Section, fc_with_delimiters,
};
use sanloom_wire::{FCtl, FcId, FcType, Header, pattern};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The captured part of a run. Times are in ps since the start of the workloads and refer to the
/// first bit of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Start of the window; `None`: the first login.
    pub from_ps: Option<u64>,
    /// End of the window, excluded; `None`: no end.
    pub until_ps: Option<u64>,
}

impl Window {
    fn holds(&self, world: &World, at_ps: u64) -> bool {
        // `start_ps` is 0 until all ports have logged in and the workloads start.
        let at_ps = at_ps.checked_sub(world.start_ps).filter(|_| world.start_ps > 0);
        let Some(at_ps) = at_ps else { return self.from_ps.is_none() };
        self.from_ps.is_none_or(|from| at_ps >= from) && self.until_ps.is_none_or(|until| at_ps < until)
    }
}

/// A capture under construction. Frames are written in the order of their first bits, so recent
/// frames are held back until no earlier one can follow.
pub struct Capture {
    /// Interface number of each link, by link.
    interfaces: Vec<Option<u32>>,
    /// The same of each Ethernet link.
    on_ethernet: Vec<Option<u32>>,
    /// The same of each InfiniBand link.
    on_infiniband: Vec<Option<u32>>,
    vlans: VlanNumbers,
    window: Window,
    pending: BinaryHeap<Reverse<Pending>>,
    /// Number of the next frame. It decides the order of frames that begin at the same time.
    next: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    start_ps: u64,
    number: u64,
    interface: u32,
    backward: bool,
    crc_error: bool,
    bytes: Vec<u8>,
}

impl Capture {
    /// Starts a capture of some links of a lab: appends the section header and an interface for
    /// each link to `out`. Unknown and repeated link numbers are ignored.
    pub fn new(lab: &Lab, links: &[u16], out: &mut Vec<u8>) -> Capture {
        let application = concat!("sanloom ", env!("CARGO_PKG_VERSION"));
        let comment = format!("lab {}, seed {}; simulated time since the first login", lab.name, lab.run.seed);
        Section { application, comment: Some(&comment) }.emit(out);
        let names = Names::new(lab);
        let mut interfaces = vec![None; lab.links.len()];
        let (mut count, rates) = (0, rate_names(lab));
        for &link in links {
            let Some(slot @ None) = interfaces.get_mut(usize::from(link)) else { continue };
            let config = &lab.links[usize::from(link)];
            let description = format!(
                "{}, {} (outbound) to {} (inbound)",
                rates[usize::from(link)],
                names.port(&config.ends[0]),
                names.port(&config.ends[1])
            );
            Interface {
                name: &config.name,
                description: Some(&description),
                link_type: LINKTYPE_FC_2_WITH_FRAME_DELIMS,
                // Wireshark 4.0 misreads finer time stamps from 18 ms on.
                resolution: Resolution::Nanoseconds,
            }
            .emit(out);
            *slot = Some(count);
            count += 1;
        }
        let on_ethernet = vec![None; lab.ethernet_links.len()];
        let vlans = lab.vlan_numbers();
        Capture {
            interfaces,
            on_ethernet,
            on_infiniband: vec![None; lab.infiniband.links.len()],
            vlans,
            window: Window::default(),
            pending: BinaryHeap::new(),
            next: 0,
        }
    }

    /// Adds Ethernet links to the capture: appends an interface for each of them to `out`. Call it
    /// before the first call of [`Capture::add`]. Unknown and repeated link numbers are ignored.
    #[must_use]
    pub fn with_ethernet(mut self, lab: &Lab, links: &[u16], out: &mut Vec<u8>) -> Capture {
        let mut count = self.count();
        for &link in links {
            let Some(slot @ None) = self.on_ethernet.get_mut(usize::from(link)) else { continue };
            let config = &lab.ethernet_links[usize::from(link)];
            let ends = config.ends.map(|end| end.name(lab));
            add_interface(&config.name, config.rate.name(), &ends, LINKTYPE_ETHERNET, out);
            *slot = Some(count);
            count += 1;
        }
        self
    }

    /// As [`Capture::with_ethernet`], for InfiniBand links.
    #[must_use]
    pub fn with_infiniband(mut self, lab: &Lab, links: &[u16], out: &mut Vec<u8>) -> Capture {
        let mut count = self.count();
        for &link in links {
            let Some(slot @ None) = self.on_infiniband.get_mut(usize::from(link)) else { continue };
            let config = &lab.infiniband.links[usize::from(link)];
            let ends = config.ends.map(|end| end.name(lab));
            add_interface(&config.name, config.rate.name(), &ends, LINKTYPE_ERF, out);
            *slot = Some(count);
            count += 1;
        }
        self
    }

    /// Returns the number of interfaces.
    fn count(&self) -> u32 {
        let all = [&self.interfaces, &self.on_ethernet, &self.on_infiniband];
        all.into_iter().flatten().flatten().count() as u32
    }

    /// Limits the capture to a part of the run.
    #[must_use]
    pub fn within(self, window: Window) -> Capture {
        Capture { window, ..self }
    }

    /// Adds the records since the last call, and appends all frames that no earlier one can precede
    /// any more. Other links and R_RDYs are ignored.
    pub fn add(&mut self, world: &World, observed: &[Observed], out: &mut Vec<u8>) {
        for item in observed {
            let Some(Some(interface)) = self.interfaces.get(item.lane as usize / 2).copied() else { continue };
            let (ObservedKind::Frame { start_ps, .. } | ObservedKind::LoopInit { start_ps, .. }) = item.kind else {
                continue;
            };
            if !self.window.holds(world, start_ps) {
                continue;
            }
            let Some((start_ps, crc_error, bytes)) = packet(world, item) else { continue };
            let (number, backward) = (self.next, !item.lane.is_multiple_of(2));
            self.next += 1;
            self.pending.push(Reverse(Pending { start_ps, number, interface, backward, crc_error, bytes }));
        }
        for item in world.net.ethernet.observed() {
            let Some(Some(interface)) = self.on_ethernet.get(item.line as usize / 2).copied() else { continue };
            let OnEthernet::Frame { packet, .. } = &item.kind else { continue };
            if !self.window.holds(world, item.at_ps) {
                continue;
            }
            let Some(bytes) = ethernet::frame(world, &self.vlans, item.line, packet) else { continue };
            let (number, backward) = (self.next, !item.line.is_multiple_of(2));
            self.next += 1;
            let (start_ps, crc_error) = (item.at_ps, packet.is_corrupt());
            self.pending.push(Reverse(Pending { start_ps, number, interface, backward, crc_error, bytes }));
        }
        for item in world.net.infiniband.observed() {
            let Some(Some(interface)) = self.on_infiniband.get(item.line as usize / 2).copied() else { continue };
            let OnInfiniband::Packet { packet, .. } = &item.kind else { continue };
            if !self.window.holds(world, item.at_ps) {
                continue;
            }
            let Some(bytes) = infiniband::record(world, item.at_ps, packet) else { continue };
            let (number, backward) = (self.next, !item.line.is_multiple_of(2));
            self.next += 1;
            let (start_ps, crc_error) = (item.at_ps, packet.is_corrupt());
            self.pending.push(Reverse(Pending { start_ps, number, interface, backward, crc_error, bytes }));
        }
        // A frame begins when it is put on its line or later, so no future frame begins before the
        // current time.
        self.flush(world.net.now(), out);
    }

    /// Appends the frames that were held back.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.flush(u64::MAX, out);
    }

    fn flush(&mut self, before_ps: u64, out: &mut Vec<u8>) {
        while self.pending.peek().is_some_and(|Reverse(first)| first.start_ps < before_ps) {
            let Some(Reverse(first)) = self.pending.pop() else { break };
            Packet {
                interface: first.interface,
                time: first.start_ps / 1_000,
                direction: Some(if first.backward { Direction::Inbound } else { Direction::Outbound }),
                crc_error: first.crc_error,
                comment: None,
                data: &first.bytes,
            }
            .emit(out);
        }
    }
}

/// Appends an interface of a link with its ends.
fn add_interface(name: &str, rate: &str, [from, to]: &[String; 2], link_type: u16, out: &mut Vec<u8>) {
    let description = format!("{rate}, {from} (outbound) to {to} (inbound)");
    let resolution = Resolution::Nanoseconds;
    Interface { name, description: Some(&description), link_type, resolution }.emit(out);
}

/// Returns whether both ends are domain controllers, which use class F (FC-SW, class F service).
fn controllers(header: &Header) -> bool {
    header.s_id.is_domain_controller() && header.d_id.is_domain_controller()
}

/// Returns the start of a frame, whether its CRC is bad, and its bytes with delimiters.
fn packet(world: &World, item: &Observed) -> Option<(u64, bool, Vec<u8>)> {
    if let ObservedKind::LoopInit { start_ps, frame, from_fl_port } = &item.kind {
        return Some((*start_ps, false, initialisation_frame(frame, *from_fl_port)));
    }
    let ObservedKind::Frame { frame, start_ps, message, .. } = &item.kind else { return None };
    let of_message = message.as_ref().map(|message| (&message.0, message.1.as_slice(), message.2));
    let (sof, last, bytes) = contents(world, frame, of_message)?;
    // A port that detects a bad CRC and still forwards the frame marks its EOF. The faulty lane
    // itself does not detect the error.
    let marked = frame.is_corrupt() && !world.net.fc.lanes()[item.lane as usize].faulty;
    let eof = if marked { Eof::Ni } else { Eof::class_3(last) };
    let mut bytes = fc_with_delimiters(&bytes, sof, eof);
    if frame.is_corrupt() {
        let at = bytes.len() - 5;
        bytes[at] ^= 0xff;
    }
    Some((*start_ps, frame.is_corrupt(), bytes))
}

/// Returns the start delimiter of a frame, whether it is the last one of its sequence, and its
/// bytes from the header on. `message` are the header, the bytes and the number of parts of a
/// control message.
fn contents(world: &World, frame: &FrameRef, message: Option<(&Header, &[u8], u16)>) -> Option<(Sof, bool, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(24 + usize::from(frame.len_bytes()) + 3);
    let (sof, last) = match message {
        Some((header, body, parts)) => {
            let header = part_header(header, frame.part(), parts, body.len());
            bytes.extend_from_slice(&header.to_bytes());
            bytes.extend_from_slice(body);
            let class_f = header.fc_type == FcType::SW_ILS || controllers(&header);
            let sof = if class_f { Sof::F } else { Sof::class_3(frame.part() == 0) };
            (sof, frame.part() + 1 >= parts)
        }
        None if frame.is_data() => {
            let data = DataPlace::of(world, frame);
            bytes.extend_from_slice(&data.header(frame).to_bytes());
            let from = bytes.len();
            bytes.resize(from + usize::from(frame.len_bytes()), 0);
            pattern::fill(data_seed(frame), u64::from(data.offset), &mut bytes[from..]);
            (Sof::class_3(data.first), frame.is_last())
        }
        None => return None,
    };
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Some((sof, last, bytes))
}

/// Returns a frame of the initialisation of a loop with delimiters: SOFil, which is coded as SOFi3,
/// and EOFt (FC-AL-2, loop initialisation sequences).
fn initialisation_frame(frame: &LoopInit, from_fl_port: bool) -> Vec<u8> {
    let id = if from_fl_port { FL_PORT_ID } else { NL_PORT_ID };
    let mut bytes = LoopInit::header(id).to_bytes().to_vec();
    frame.emit(&mut bytes);
    fc_with_delimiters(&bytes, Sof::class_3(true), Eof::class_3(true))
}

/// Returns the header of one part of a control message. SEQ_CNT counts the parts, and only the last
/// part ends the sequence.
pub(crate) fn part_header(header: &Header, part: u16, parts: u16, len_bytes: usize) -> Header {
    let mut f_ctl = header.f_ctl.bits();
    if part + 1 < parts {
        f_ctl &= !(FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE);
    }
    Header { seq_cnt: part, f_ctl: FCtl::new(f_ctl).with_fill_for(len_bytes), ..*header }
}

/// Position of a data frame's bytes in their exchange.
pub(crate) struct DataPlace {
    /// Relative offset of the first byte.
    pub offset: u32,
    /// True if the frame is the first of its sequence.
    pub first: bool,
    /// Data field of every frame of the exchange except the last, in bytes.
    pub frame_bytes: u16,
}

impl DataPlace {
    /// Returns the position of a frame. It is computed from SEQ_CNT, which continues over all
    /// sequences of an exchange, and from the negotiated and configured sizes.
    pub fn of(world: &World, frame: &FrameRef) -> DataPlace {
        let size = frame_bytes(world, frame);
        let first = if frame.from_responder() {
            frame.seq_cnt() == 0
        } else {
            frame.seq_cnt().is_multiple_of(burst_frames(world, frame.d_id(), size))
        };
        DataPlace { offset: u32::from(frame.seq_cnt()).wrapping_mul(u32::from(size)), first, frame_bytes: size }
    }

    /// Returns the header of the frame.
    pub fn header(&self, frame: &FrameRef) -> Header {
        let header = data_header(
            frame.s_id(),
            frame.d_id(),
            frame.ox_id(),
            frame.rx_id(),
            frame.seq_id(),
            frame.seq_cnt(),
            self.offset,
            frame.is_last(),
            frame.from_responder(),
        );
        Header { f_ctl: header.f_ctl.with_fill_for(usize::from(frame.len_bytes())), ..header }
    }
}

/// Returns the data field of every frame of the exchange except the last: the largest size that
/// both ends accept, in whole words. Switches accept any frame.
fn frame_bytes(world: &World, frame: &FrameRef) -> u16 {
    let ends = [frame.s_id(), frame.d_id()].map(|port_id| receive_bytes(world, port_id));
    let size = ends.into_iter().flatten().fold(u16::MAX, u16::min);
    (size & !3).max(4)
}

fn receive_bytes(world: &World, port_id: FcId) -> Option<u16> {
    let node = world.nports.nodes.iter().find(|node| node.port_id == port_id)?;
    Some(match node.owner {
        Owner::Host { host, hba } => world.lab.hosts[usize::from(host)].hbas[usize::from(hba)].receive_size_bytes,
        Owner::Storage { storage, port } => {
            world.lab.storage[usize::from(storage)].ports[usize::from(port)].receive_size_bytes
        }
    })
}

/// Returns the number of whole frames in the largest burst of a write to a storage port.
fn burst_frames(world: &World, port_id: FcId, frame_bytes: u16) -> u16 {
    let owner = world.nports.nodes.iter().find(|node| node.port_id == port_id).map(|node| node.owner);
    let burst_bytes = match owner {
        Some(Owner::Storage { storage, .. }) => world.lab.storage[usize::from(storage)].max_burst_bytes,
        _ => 0,
    };
    u16::try_from(burst_bytes / u32::from(frame_bytes)).unwrap_or(u16::MAX).max(1)
}

/// Returns the seed of the byte pattern of one direction of an exchange.
fn data_seed(frame: &FrameRef) -> u32 {
    let originator = if frame.from_responder() { frame.d_id() } else { frame.s_id() };
    let [a, b, c] = originator.to_bytes();
    let place = u32::from_be_bytes([0, a, b, c]);
    place.wrapping_mul(0x9e37_79b1) ^ u32::from(frame.ox_id()) << 1 ^ u32::from(frame.from_responder())
}
