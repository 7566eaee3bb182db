//! Packets of InfiniBand as ERF records.

use crate::infiniband::{Form, OF_IPOIB, Seen};
use crate::net::infiniband::ObservedPacket;
use crate::world::World;
use sanloom_transport::infiniband::rc::packet::{Operation, Request, Response};
use sanloom_wire::ether::EtherType;
use sanloom_wire::infiniband::{Bth, Extended, Lrh, Packet, VCRC_BYTES};
use sanloom_wire::pcapng::erf_infiniband;

/// Number of the first queue pair: those of management come before.
const FIRST_PAIR: u32 = 0x400;
/// Key of the default partition, as a full member.
const DEFAULT_KEY: u16 = 0xffff;
/// Key of the memory of the initiator, as in the descriptors of its commands.
const MEMORY_KEY: u32 = 1;
/// Q_Key of the queue pairs of datagrams, as the driver of Linux chooses it for broadcasts.
const IPOIB_QUEUE_KEY: u32 = 0x0b1b;
/// Returns the record of a packet. `None` for a packet that is none of the lab's own protocols.
pub(super) fn record(world: &World, item: &ObservedPacket) -> Option<Vec<u8>> {
    let bytes = match item.packet.pair() & OF_IPOIB {
        0 => packet(item, &world.srp.as_ref()?.seen(&item.packet)?, DEFAULT_KEY),
        _ => of_ipoib(world, item)?,
    };
    Some(erf_infiniband(item.start_ps / 1_000, &bytes))
}

fn packet(item: &ObservedPacket, seen: &Seen, key: u16) -> Vec<u8> {
    let reference = &item.packet;
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
    let packet = Packet {
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
    if reference.is_corrupt() {
        let sum = bytes.len() - VCRC_BYTES;
        bytes[sum..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    bytes
}

/// Returns a packet of IPoIB: a datagram, or a part of a message of a connection.
fn of_ipoib(world: &World, item: &ObservedPacket) -> Option<Vec<u8>> {
    let iscsi = world.iscsi.as_ref()?;
    let carried = iscsi.on_infiniband(&item.packet)?;
    let mut message = vec![];
    if carried.part.as_ref().is_none_or(|(seen, _)| seen.ip.is_some()) {
        let seen = iscsi.seen_with(&carried.frame, &carried.segment)?;
        // Type, and 16 reserved bits (RFC 4391, section 6).
        message.extend(EtherType::IPV4.0.to_be_bytes());
        message.extend([0, 0]);
        super::ethernet::ip(&carried.frame, &super::ethernet::of_session(&seen), &mut message);
    }
    if let Some((mut seen, start)) = carried.part {
        if let Form::Request(request) = seen.form {
            let start = (start as usize).min(message.len());
            seen.payload = message[start..].iter().copied().take(request.length as usize).collect();
        }
        return Some(packet(item, &seen, carried.key));
    }
    let reference = &item.packet;
    let datagram = Packet {
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
    if reference.is_corrupt() {
        let sum = bytes.len() - VCRC_BYTES;
        bytes[sum..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Some(bytes)
}
