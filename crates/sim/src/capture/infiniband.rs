//! Packets of InfiniBand as ERF records.

use crate::infiniband::{Form, OF_IPOIB, Seen};
use crate::net::infiniband::Packet;
use crate::tcp::OnInfiniband;
use crate::world::World;
use sanloom_transport::infiniband::rc::packet::{Operation, Request, Response};
use sanloom_wire::ether::EtherType;
use sanloom_wire::infiniband::{Bth, Extended, Lrh, Packet as Encoded, VCRC_BYTES};
use sanloom_wire::pcapng::erf_infiniband;

/// Number of the first queue pair: those of management come before.
const FIRST_PAIR: u32 = 0x400;
/// Key of the default partition, as a full member.
const DEFAULT_KEY: u16 = 0xffff;
/// Key of the memory of the initiator, as in the descriptors of its commands.
const MEMORY_KEY: u32 = 1;
/// Q_Key of the queue pairs of datagrams, as the driver of Linux chooses it for broadcasts.
const IPOIB_QUEUE_KEY: u32 = 0x0b1b;

/// Contents of a packet.
pub(crate) enum Contents {
    /// A packet of an SRP channel.
    Srp(Seen),
    /// A packet of IPoIB: a datagram, or a part of a message of a connection.
    Ipoib(OnInfiniband),
}

/// Returns the contents of a packet. `None` for a packet that is none of the lab's own protocols,
/// and for one whose contents are not kept.
pub(crate) fn contents(world: &World, packet: &Packet) -> Option<Contents> {
    match packet.pair() & OF_IPOIB {
        0 => world.srp.as_ref()?.seen(packet).map(Contents::Srp),
        _ => world.iscsi.as_ref()?.on_infiniband(packet).map(Contents::Ipoib),
    }
}

/// Returns the bytes of a packet with these contents, from the LRH to the VCRC, which is right.
pub(crate) fn bytes(world: &World, reference: &Packet, contents: &Contents) -> Option<Vec<u8>> {
    match contents {
        Contents::Srp(seen) => {
            let key = world.srp.as_ref().and_then(|srp| srp.key_of(reference)).unwrap_or(DEFAULT_KEY);
            Some(packet(reference, seen, key))
        }
        Contents::Ipoib(carried) => of_ipoib(world, reference, carried),
    }
}

/// Returns the record of a packet. `None` for a packet without [`contents`].
pub(super) fn record(world: &World, start_ps: u64, packet: &Packet) -> Option<Vec<u8>> {
    let mut bytes = bytes(world, packet, &contents(world, packet)?)?;
    if packet.is_corrupt() {
        let sum = bytes.len() - VCRC_BYTES;
        bytes[sum..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Some(erf_infiniband(start_ps / 1_000, &bytes))
}

fn packet(reference: &Packet, seen: &Seen, key: u16) -> Vec<u8> {
    let (psn, ack) = match seen.form {
        Form::Request(Request { psn, ack, .. }) => (psn.get(), ack),
        Form::Response(Response { psn, .. }) => (psn.get(), false),
        Form::Datagram(_) => (0, false),
    };
    let mut extended = Extended::default();
    match seen.form {
        Form::Request(request) if seen.operation != Operation::Send && request.part.begins() => {
            extended.reth = Some((seen.address, MEMORY_KEY, seen.length));
        }
        Form::Response(Response { kind, .. }) => extended.aeth = Some((kind.syndrome(), seen.completed & 0xff_ffff)),
        Form::Request(_) | Form::Datagram(_) => {}
    }
    let packet = Encoded {
        lrh: Lrh { lane: reference.lane(), level: reference.level(), to: reference.to, from: reference.from },
        grh: None,
        bth: Bth {
            opcode: Form::opcode(reference),
            migrated: true,
            key,
            pair: FIRST_PAIR + seen.pairs[1],
            ack,
            psn,
            ..Bth::default()
        },
        extended,
        payload: &seen.payload,
    };
    let mut bytes = Vec::new();
    packet.emit(&mut bytes);
    bytes
}

/// Returns a packet of IPoIB: a datagram, or a part of a message of a connection.
fn of_ipoib(world: &World, reference: &Packet, carried: &OnInfiniband) -> Option<Vec<u8>> {
    let iscsi = world.iscsi.as_ref()?;
    let mut message = vec![];
    if carried.part.as_ref().is_none_or(|(seen, _)| seen.ip.is_some()) {
        let seen = iscsi.seen_with(&carried.frame, &carried.segment)?;
        // Type, and 16 reserved bits (RFC 4391, section 6).
        message.extend(EtherType::IPV4.0.to_be_bytes());
        message.extend([0, 0]);
        super::ethernet::ip(&carried.frame, &super::ethernet::of_session(&seen), &mut message);
    }
    if let Some((seen, start)) = &carried.part {
        let mut seen = seen.clone();
        if let Form::Request(request) = seen.form {
            let start = (*start as usize).min(message.len());
            seen.payload = message[start..].iter().copied().take(request.length as usize).collect();
        }
        return Some(packet(reference, &seen, carried.key));
    }
    let datagram = Encoded {
        lrh: Lrh { lane: reference.lane(), level: reference.level(), to: reference.to, from: reference.from },
        grh: None,
        bth: Bth {
            opcode: Form::opcode(reference),
            migrated: true,
            key: carried.key,
            pair: FIRST_PAIR + carried.pairs[1],
            psn: Form::name(reference),
            ..Bth::default()
        },
        extended: Extended { deth: Some((IPOIB_QUEUE_KEY, FIRST_PAIR + carried.pairs[0])), ..Extended::default() },
        payload: &message,
    };
    let mut bytes = Vec::new();
    datagram.emit(&mut bytes);
    Some(bytes)
}
