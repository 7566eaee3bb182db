//! Tests of the queue pair: payload in packets, packets in order, and requests without permission.

use super::*;
use sanloom_scsi::time::Span;
use sanloom_transport::infiniband::packet::Mtu;

const NOW: Instant = Instant::ZERO;
/// First PSN of each direction, near the end of its space.
const PSNS: [u32; 2] = [0xff_fffe, 0xff_ffff];

fn pair() -> QueuePair {
    let config = |first_psn| Config { mtu: Mtu::B256, first_psn, reads: 4, ..Config::SOFT_ROCE };
    let numbers = Numbers { peer: 0x11, key: 0xffff, unit_bytes: 1_000 };
    QueuePair::new(numbers, config(PSNS[0]), config(PSNS[1]), 2)
}

fn packet(opcode: u8, psn: u32, payload: &[u8]) -> RocePacket<'_> {
    let bth = Bth { opcode, psn: psn & 0xff_ffff, ack: true, ..Bth::default() };
    RocePacket { bth, extended: Extended::default(), payload }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7) as u8).collect()
}

fn packets(pair: &mut QueuePair) -> Vec<Packet> {
    std::iter::from_fn(|| pair.poll_packet()).collect()
}

/// Opcode, PSN and syndrome of the only packet.
fn answer(pair: &mut QueuePair) -> (u8, u32, Option<u8>) {
    let all = packets(pair);
    let [Packet { bth, extended, .. }] = &all[..] else { panic!("{all:?}") };
    (bth.opcode, bth.psn, extended.aeth.map(|(syndrome, _)| syndrome))
}

#[test]
fn an_information_unit_of_several_packets_is_put_together_once() {
    let mut pair = pair();
    let unit = bytes(600);
    let parts = [
        packet(opcode::SEND_FIRST, PSNS[1], &unit[..256]),
        packet(opcode::SEND_MIDDLE, PSNS[1] + 1, &unit[256..512]),
        packet(opcode::SEND_LAST, PSNS[1] + 2, &unit[512..]),
    ];
    pair.receive(NOW, &parts[0]);
    assert_eq!(answer(&mut pair), (opcode::ACK, PSNS[1], Some(0x1f)));
    // The last packet overtakes the middle one: the gap is reported, once.
    pair.receive(NOW, &parts[2]);
    assert_eq!(answer(&mut pair), (opcode::ACK, 0, Some(0x60)));
    pair.receive(NOW, &parts[2]);
    assert!(packets(&mut pair).is_empty());
    pair.receive(NOW, &parts[1]);
    pair.receive(NOW, &parts[1]);
    pair.receive(NOW, &parts[2]);
    assert_eq!(pair.poll_event(), Some(Event::Unit(unit)));
    assert_eq!(pair.poll_event(), None);
    let all = packets(&mut pair);
    let messages: Vec<_> = all.iter().map(|packet| packet.extended.aeth).collect();
    assert_eq!(messages, [Some((0x1f, 0)), Some((0x1f, 0)), Some((0x1f, 1))]);
}

#[test]
fn a_buffer_is_written_in_packets_and_repeated_from_a_gap() {
    let mut pair = pair();
    let data = Arc::new(bytes(700));
    let to = Descriptor { address: 0x1000, key: 5, length: 600 };
    pair.post(NOW, Work::Write { to, data: data.clone(), at: 100 });
    pair.post(NOW, Work::Send(vec![1; 36]));
    let all = packets(&mut pair);
    let heads: Vec<_> = all.iter().map(|packet| (packet.bth.opcode, packet.bth.psn, packet.extended.reth)).collect();
    let memory = Some((0x1000, 5, 600));
    let expected = [
        (opcode::WRITE_FIRST, 0xff_fffe, memory),
        (opcode::WRITE_MIDDLE, 0xff_ffff, memory),
        (opcode::WRITE_LAST, 0, memory),
        (opcode::SEND_ONLY, 1, None),
    ];
    assert_eq!(heads, expected);
    assert!(all.iter().all(|packet| packet.bth.pair == 0x11 && packet.bth.key == 0xffff));
    let written: Vec<u8> = all[..3].iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!(written, data[100..]);
    // The second packet was lost.
    let aeth = Some((0x60, 0));
    let gap = RocePacket { extended: Extended { aeth, ..Extended::default() }, ..packet(opcode::ACK, 0xff_ffff, &[]) };
    pair.receive(NOW, &gap);
    let again: Vec<_> = packets(&mut pair).iter().map(|packet| (packet.bth.psn, packet.payload.clone())).collect();
    let from: Vec<_> = all[1..].iter().map(|packet| (packet.bth.psn, packet.payload.clone())).collect();
    assert_eq!((again, pair.repetitions()), (from, 1));
}

#[test]
fn data_that_are_read_arrive_at_their_offset() {
    let mut pair = pair();
    let purpose = Purpose::Data(IoTag::new(1, 2), 64);
    let from = Descriptor { address: 0x2000, key: 6, length: 500 };
    pair.post(NOW, Work::Read { from, purpose, data: vec![0; 500] });
    let all = packets(&mut pair);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].bth.opcode, all[0].extended.reth), (opcode::READ, Some((0x2000, 6, 500))));
    let data = bytes(500);
    pair.receive(NOW, &packet(opcode::DATA_FIRST, PSNS[0], &data[..256]));
    // The end was lost: after the time-out, only the missing part is read.
    let late = pair.poll_timeout().unwrap();
    pair.timeout(late);
    let all = packets(&mut pair);
    assert_eq!(all.iter().map(|packet| packet.extended.reth).collect::<Vec<_>>(), [Some((0x2100, 6, 244))]);
    pair.receive(late, &packet(opcode::DATA_ONLY, PSNS[0] + 1, &data[256..]));
    assert_eq!(pair.poll_event(), Some(Event::Read { purpose, data }));
    assert_eq!(pair.poll_timeout(), None);
}

#[test]
fn an_initiator_cannot_access_memory_or_send_too_long_units() {
    for code in [opcode::READ, opcode::WRITE_ONLY, opcode::WRITE_FIRST] {
        let mut pair = pair();
        pair.receive(NOW, &packet(code, PSNS[1], &[]));
        assert_eq!(answer(&mut pair), (opcode::ACK, PSNS[1], Some(0x62)), "{code:x}");
        assert!(matches!(pair.poll_event(), Some(Event::Failed(_))), "{code:x}");
        pair.receive(NOW, &packet(opcode::SEND_ONLY, PSNS[1], &[1]));
        assert_eq!((packets(&mut pair).len(), pair.poll_event()), (0, None), "{code:x}");
    }
    let mut pair = pair();
    let part = bytes(256);
    for (number, code) in [opcode::SEND_FIRST, opcode::SEND_MIDDLE, opcode::SEND_MIDDLE].into_iter().enumerate() {
        pair.receive(NOW, &packet(code, PSNS[1] + number as u32, &part));
    }
    assert_eq!((packets(&mut pair).len(), pair.poll_event()), (3, None));
    pair.receive(NOW, &packet(opcode::SEND_LAST, PSNS[1] + 3, &part));
    assert_eq!(answer(&mut pair), (opcode::ACK, 2, Some(0x61)));
    assert!(matches!(pair.poll_event(), Some(Event::Failed(_))));
}

#[test]
fn an_initiator_without_a_receive_is_waited_for_and_a_silent_one_is_given_up() {
    let mut pair = pair();
    pair.post(NOW, Work::Send(vec![1; 36]));
    packets(&mut pair);
    let aeth = Some((0x20 | 12, 0));
    let busy = RocePacket { extended: Extended { aeth, ..Extended::default() }, ..packet(opcode::ACK, PSNS[0], &[]) };
    pair.receive(NOW, &busy);
    assert_eq!(pair.poll_timeout(), Some(NOW + Span::from_us(640)));
    let mut repeated = 0;
    while let Some(at) = pair.poll_timeout() {
        pair.timeout(at);
        repeated += packets(&mut pair).len();
    }
    assert_eq!(repeated, 1 + usize::from(Config::SOFT_ROCE.retries));
    assert!(matches!(pair.poll_event(), Some(Event::Failed(_))));
}
