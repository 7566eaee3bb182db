//! Frames of Ethernet as bytes: pause frames, and segments of TCP that carry iSCSI or FCIP.

use crate::fcip as fcip_link;
use crate::fip::Message;
use crate::iscsi::Seen;
use crate::net::ethernet::{EthernetPlane, LONGEST_QUANTA, PRIORITIES, Packet, Station};
use crate::net::fcoe::SeenFrame;
use crate::tcp::TUNNEL_FLOWS;
use crate::world::World;
use sanloom_fc::config::VlanNumbers;
use sanloom_scsi::random::mix;
use sanloom_transport::tcp::{Ecn, Flags, Segment};
use sanloom_wire::ether::{EtherHeader, EtherType, MIN_FRAME_BYTES, MacAddr, VlanTag};
use sanloom_wire::fcip;
use sanloom_wire::lldp::Lldpdu;
use sanloom_wire::pause::{LinkPause, PriorityPause};
use sanloom_wire::tcp::{Ipv4Header, MAX_BLOCKS, TcpHeader, TcpOptions, TcpPacket};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Port of iSCSI (RFC 7143, section 4.2.7.1).
const ISCSI_PORT: u16 = 3260;
/// Frame check sequence.
const FCS_BYTES: usize = 4;
/// Don't fragment.
const WHOLE: u16 = 0x4000;

/// Contents of a frame.
pub(crate) enum Contents<'a> {
    /// A pause frame: the priorities that it names, and those of them that it stops. All of them if
    /// it is one of the whole link.
    Pause { named: u8, stop: u8, whole_link: bool },
    /// A frame of FCoE or FIP.
    Fcoe(&'a SeenFrame),
    /// Discovery or a keep-alive of FIP.
    Fip(Message),
    /// A frame of LLDP, with the address of its sender.
    Lldp(MacAddr, &'a Lldpdu),
    /// A segment of an FCIP link.
    Tunnel(fcip_link::Seen<'a>),
    /// A segment of an iSCSI session.
    Session(Seen<'a>),
}

/// Returns the contents of a frame. `None` for a frame that is none of the lab's own protocols, and
/// for one whose contents are not kept.
pub(crate) fn contents<'a>(world: &'a World, packet: &Packet) -> Option<Contents<'a>> {
    if let Some((named, stop)) = packet.paused() {
        Some(Contents::Pause { named, stop, whole_link: packet.pauses_link() })
    } else if packet.is_fcoe() {
        world.net.fc.fcoe.seen(packet).map(Contents::Fcoe)
    } else if packet.is_lldp() {
        world.lldp.as_ref()?.sent(packet.flow).map(|(mac, pdu)| Contents::Lldp(mac, pdu))
    } else if packet.is_fip() {
        Some(Contents::Fip(Message::of(packet)))
    } else if packet.flow & TUNNEL_FLOWS != 0 {
        let seen = world.fcip.as_ref()?.seen(packet, &|unit| super::fcip::unit(world, unit))?;
        Some(Contents::Tunnel(seen))
    } else {
        world.iscsi.as_ref()?.seen(packet).map(Contents::Session)
    }
}

/// Returns the tag of a frame with these contents.
pub(crate) fn tag(world: &World, vlans: &VlanNumbers, packet: &Packet, contents: &Contents<'_>) -> Option<VlanTag> {
    let has_tag = match contents {
        Contents::Pause { .. } | Contents::Tunnel(_) | Contents::Lldp(..) => false,
        Contents::Fcoe(seen) => world.lab.links[seen.lane as usize / 2].fcoe.is_some_and(|config| config.has_tag()),
        Contents::Fip(message) => super::fip::has_tag(world, packet, *message),
        Contents::Session(seen) => seen.plan.tag.is_some(),
    };
    has_tag.then(|| VlanTag {
        priority: packet.priority(),
        drop_eligible: false,
        vlan: vlans.vlan(packet.vlan()).unwrap_or(0),
    })
}

/// Returns a frame on a line from the destination address on, without FCS. `None` for a frame
/// without [`contents`].
pub(super) fn frame(world: &World, vlans: &VlanNumbers, line: u32, packet: &Packet) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let contents = contents(world, packet)?;
    let tag = tag(world, vlans, packet, &contents);
    match &contents {
        Contents::Pause { named, stop, whole_link } => pause(line, (*named, *stop), *whole_link, &mut out),
        Contents::Fcoe(seen) => super::fcoe::frame(world, tag, packet, seen, &mut out)?,
        Contents::Fip(message) => super::fip::frame(world, packet, *message)?.emit(tag, &mut out),
        Contents::Lldp(from, pdu) => {
            EtherHeader { to: MacAddr::NEAREST_BRIDGE, from: *from, tag, ether_type: EtherType::LLDP }.emit(&mut out);
            pdu.emit(&mut out);
        }
        Contents::Tunnel(seen) => segment(tag, packet, &of_tunnel(seen), &mut out),
        Contents::Session(seen) => segment(tag, packet, &of_session(seen), &mut out),
    }
    out.resize(out.len().max(MIN_FRAME_BYTES), 0);
    let has_length = !(packet.is_fip() || packet.is_lldp()) || out.len() + FCS_BYTES == usize::from(packet.bytes);
    debug_assert!(has_length, "a frame of FIP or LLDP with {} bytes of {}", out.len() + FCS_BYTES, packet.bytes);
    Some(out)
}

/// Address of an interface: locally administered.
pub(super) fn mac(interface: u16) -> MacAddr {
    let [high, low] = interface.to_be_bytes();
    MacAddr([0x02, 0, 0, 0, high, low])
}

/// Returns the time of each priority in a pause frame that stops the priorities of a mask.
pub(crate) fn quanta(stop: u8) -> [u16; PRIORITIES] {
    std::array::from_fn(|priority| if stop & 1 << priority != 0 { LONGEST_QUANTA as u16 } else { 0 })
}

/// Address of the sender of a line: of an interface, or of a port of a switch.
pub(crate) fn line_mac(ethernet: &EthernetPlane, line: u32) -> MacAddr {
    match ethernet.lines()[line as usize].from {
        Station::Interface(interface) => mac(interface),
        Station::Switch { .. } => port_mac(line),
    }
}

fn port_mac(line: u32) -> MacAddr {
    let [_, a, b, c] = line.to_be_bytes();
    MacAddr([0x02, 0, 1, a, b, c])
}

/// Appends a pause frame of the sender of a line.
fn pause(line: u32, (named, stop): (u8, u8), whole_link: bool, out: &mut Vec<u8>) {
    let from = port_mac(line);
    let quanta = quanta(stop);
    match whole_link {
        true => LinkPause { quanta: quanta[0] }.emit(from, out),
        false => PriorityPause { named, quanta }.emit(from, out),
    }
}

/// A segment and its connection.
pub(crate) struct Shown<'a> {
    /// Address of the end that has opened the connection, and of the other one.
    ends: [SocketAddrV4; 2],
    /// Number of the connection, which decides its initial sequence numbers.
    pub connection: u64,
    /// The end that has opened the connection has sent it.
    pub from_opener: bool,
    pub segment: &'a Segment,
    payload: &'a [u8],
}

impl Shown<'_> {
    /// Addresses of the sender and of the receiver.
    pub fn way(&self) -> [SocketAddrV4; 2] {
        let [opener, other] = self.ends;
        if self.from_opener { [opener, other] } else { [other, opener] }
    }
}

/// Returns the ECN field of a segment in a packet, as the two bits of RFC 3168, section 5.
pub(crate) fn ecn(packet: &Packet, segment: &Segment) -> u8 {
    match (packet.has_congestion(), segment.ecn) {
        (true, _) | (_, Ecn::Ce) => 3,
        (_, Ecn::Ect) => 2,
        (_, Ecn::NotEct) => 0,
    }
}

/// Returns a segment of a session.
pub(crate) fn of_session<'a>(seen: &'a Seen<'a>) -> Shown<'a> {
    Shown {
        ends: addresses(seen),
        connection: seen.connection.into(),
        from_opener: seen.from_host,
        segment: seen.segment,
        payload: &seen.payload,
    }
}

/// Returns a segment of an FCIP link.
pub(crate) fn of_tunnel<'a>(seen: &'a fcip_link::Seen<'a>) -> Shown<'a> {
    let [listens, connects] = seen.interfaces.map(|interface| {
        let [high, low] = interface.to_be_bytes();
        Ipv4Addr::new(10, 1, high, low)
    });
    let own_port = 49_152 + (seen.connection % 16_384) as u16;
    Shown {
        ends: [SocketAddrV4::new(connects, own_port), SocketAddrV4::new(listens, fcip::PORT)],
        connection: u64::from(seen.connection) | 1 << 32,
        from_opener: seen.from_opener,
        segment: seen.segment,
        payload: &seen.payload,
    }
}

/// Address of a host's interface, and of a portal.
fn addresses(seen: &Seen<'_>) -> [SocketAddrV4; 2] {
    let [own, peer] = seen.plan.interfaces.map(u16::to_be_bytes);
    // Ports of short-lived connections (RFC 6335), in the order of opening.
    let own_port = 49_152 + (seen.connection % 16_384) as u16;
    // Frames on a line are not those of a loopback interface.
    let given = seen.plan.address.parse().ok().filter(|portal: &SocketAddrV4| !portal.ip().is_loopback());
    // A portal without an address, or with one of IPv6, has an address of its own here.
    let portal = given.unwrap_or_else(|| SocketAddrV4::new([10, 128, peer[0], peer[1]].into(), ISCSI_PORT));
    [SocketAddrV4::new([10, 0, own[0], own[1]].into(), own_port), portal]
}

fn segment(tag: Option<VlanTag>, packet: &Packet, seen: &Shown<'_>, out: &mut Vec<u8>) {
    EtherHeader { to: mac(packet.to), from: mac(packet.from), tag, ether_type: EtherType::IPV4 }.emit(out);
    ip(packet, seen, out);
}

/// Appends the packet of IP of a segment.
pub(super) fn ip(packet: &Packet, seen: &Shown<'_>, out: &mut Vec<u8>) {
    let ends = seen.way();
    let Segment { position, ack, window, flags, .. } = *seen.segment;
    // Initial sequence numbers of both sides.
    let first = |from_opener: bool| mix(seen.connection << 1 | u64::from(from_opener)) as u32;
    let (own, peer) = (first(seen.from_opener), first(!seen.from_opener));
    let in_sequence = |start: u32, position: u64| start.wrapping_add(position as u32);
    let packet = TcpPacket {
        ip: Ipv4Header {
            source: ends[0].ip().octets(),
            destination: ends[1].ip().octets(),
            service: ecn(packet, seen.segment),
            identification: mix(position ^ ack << 32) as u16,
            fragment: WHOLE,
            time_to_live: 64,
        },
        tcp: TcpHeader {
            source_port: ends[0].port(),
            destination_port: ends[1].port(),
            sequence: in_sequence(own, position),
            acknowledgement: if flags.has(Flags::ACK) { in_sequence(peer, ack) } else { 0 },
            flags: flags.bits(),
            window,
            urgent: 0,
            options: options(seen.segment, peer),
        },
        payload: seen.payload,
    };
    packet.emit(out);
}

fn options(segment: &Segment, peer: u32) -> TcpOptions {
    let mut blocks = [None; MAX_BLOCKS];
    for (slot, block) in blocks.iter_mut().zip(segment.sack.blocks()) {
        *slot = Some((peer.wrapping_add(block.start as u32), peer.wrapping_add(block.end as u32)));
    }
    let of_syn = segment.options;
    TcpOptions {
        mss: of_syn.map(|options| options.mss),
        scale: of_syn.and_then(|options| options.scale),
        sack_permitted: of_syn.is_some_and(|options| options.sack),
        blocks,
        stamps: segment.stamps.map(|stamps| (stamps.value, stamps.echo)),
    }
}
