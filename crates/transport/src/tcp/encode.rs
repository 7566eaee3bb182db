//! Segments as TCP in IPv4, for captures and real peers.

use super::segment::{Block, Ecn, Flags, Sack, Segment, Stamps, SynOptions};
use sanloom_wire::tcp::{Ipv4Header, TcpHeader, TcpOptions, TcpPacket};

/// One direction of a connection: addresses, ports and initial sequence numbers.
///
/// A position becomes the low 32 bits of its sum with the initial sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// IPv4 address of the sender.
    pub source: [u8; 4],
    /// IPv4 address of the receiver.
    pub destination: [u8; 4],
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Initial sequence number of the sender.
    pub initial: u32,
    /// Initial sequence number of the receiver.
    pub peer_initial: u32,
}

impl Flow {
    /// The other direction.
    #[must_use]
    pub fn reverse(self) -> Flow {
        Flow {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            initial: self.peer_initial,
            peer_initial: self.initial,
        }
    }

    /// Returns the packet of a segment, which is one of [`Segment::parts`]. `payload` has
    /// [`Segment::length`] bytes, and `identification` is the number of the packet.
    pub fn encode<'a>(&self, segment: &Segment, identification: u16, payload: &'a [u8]) -> TcpPacket<'a> {
        let has_ack = segment.flags.has(Flags::ACK);
        let mut blocks = [None; Sack::MAX];
        for (slot, block) in blocks.iter_mut().zip(segment.sack.blocks()) {
            *slot = Some((number(self.peer_initial, block.start), number(self.peer_initial, block.end)));
        }
        TcpPacket {
            ip: Ipv4Header {
                source: self.source,
                destination: self.destination,
                service: match segment.ecn {
                    Ecn::NotEct => 0,
                    Ecn::Ect => 2,
                    Ecn::Ce => 3,
                },
                identification,
                fragment: 0x4000,
                time_to_live: 64,
            },
            tcp: TcpHeader {
                source_port: self.source_port,
                destination_port: self.destination_port,
                sequence: number(self.initial, segment.position),
                acknowledgement: if has_ack { number(self.peer_initial, segment.ack) } else { 0 },
                flags: segment.flags.bits(),
                window: segment.window,
                urgent: 0,
                options: TcpOptions {
                    mss: segment.options.map(|options| options.mss),
                    scale: segment.options.and_then(|options| options.scale),
                    sack_permitted: segment.options.is_some_and(|options| options.sack),
                    blocks,
                    stamps: segment.stamps.map(|stamps| (stamps.value, stamps.echo)),
                },
            },
            payload,
        }
    }

    /// Returns the segment of a packet in this direction. `position` and `ack` are near positions
    /// of sender and receiver, such as the expected ones, which complete the 32 bits.
    pub fn decode(&self, packet: &TcpPacket<'_>, position: u64, ack: u64) -> Segment {
        let (tcp, options) = (&packet.tcp, &packet.tcp.options);
        let flags = Flags::from_bits(tcp.flags);
        let mut sack = Sack::default();
        for (start, end) in options.blocks.iter().flatten() {
            let full = |value: u32| self::position(self.peer_initial, value, ack);
            sack.push(Block { start: full(*start), end: full(*end) });
        }
        let length = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
        Segment {
            position: self::position(self.initial, tcp.sequence, position),
            ack: if flags.has(Flags::ACK) { self::position(self.peer_initial, tcp.acknowledgement, ack) } else { 0 },
            sack,
            length,
            unit: u16::try_from(length).unwrap_or(u16::MAX),
            window: tcp.window,
            flags,
            ecn: match packet.ip.service & 3 {
                3 => Ecn::Ce,
                0 => Ecn::NotEct,
                _ => Ecn::Ect,
            },
            stamps: options.stamps.map(|(value, echo)| Stamps { value, echo }),
            options: flags.has(Flags::SYN).then_some(SynOptions {
                // RFC 9293, section 3.7.1: the value without an option.
                mss: options.mss.unwrap_or(536),
                scale: options.scale,
                sack: options.sack_permitted,
            }),
        }
    }
}

/// Sequence number of a position.
fn number(initial: u32, position: u64) -> u32 {
    let low = u32::try_from(position & u64::from(u32::MAX)).unwrap_or(0);
    initial.wrapping_add(low)
}

/// Returns the position of a sequence number that is nearest to `near`. A number that lies before
/// the SYN is position zero.
fn position(initial: u32, number: u32, near: u64) -> u64 {
    let distance = number.wrapping_sub(self::number(initial, near)).cast_signed();
    near.saturating_add_signed(i64::from(distance))
}
