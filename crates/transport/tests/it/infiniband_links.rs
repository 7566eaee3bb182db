//! Rates, packets, credits, arbitration and partitions.

use proptest::prelude::*;
use sanloom_transport::infiniband::arbitration::{Arbiter, Entry, MANAGEMENT, SlToVl, UNLIMITED};
use sanloom_transport::infiniband::credit::{CreditReceiver, CreditSender, CreditUpdate, MAX_BLOCKS};
use sanloom_transport::infiniband::fabric::PortId;
use sanloom_transport::infiniband::packet::{Mtu, blocks, bytes, line_bytes};
use sanloom_transport::infiniband::partition::{Membership, PKey, Partitions};
use sanloom_transport::infiniband::rate::{Rate, Speed, Width};
use std::collections::VecDeque;

const WIDTHS: [Width; 3] = [Width::X1, Width::X4, Width::X12];

#[test]
fn data_rates_are_those_of_the_standard() {
    // MB/s at 1x, 4x and 12x.
    let rates = [
        (Speed::Sdr, [250, 1_000, 3_000]),
        (Speed::Ddr, [500, 2_000, 6_000]),
        (Speed::Qdr, [1_000, 4_000, 12_000]),
        (Speed::Fdr10, [1_250, 5_000, 15_000]),
        (Speed::Fdr, [1_704, 6_818, 20_454]),
        (Speed::Edr, [3_125, 12_500, 37_500]),
        (Speed::Hdr, [6_250, 25_000, 75_000]),
        (Speed::Ndr, [12_500, 50_000, 150_000]),
    ];
    for (speed, expected) in rates {
        let rates = WIDTHS.map(|width| Rate { speed, width }.bytes_per_second() / 1_000_000);
        assert_eq!(rates, expected, "{speed:?}");
    }
}

#[test]
fn the_time_of_a_byte_is_exact() {
    let time = |speed, width, bytes| {
        let time = Rate { speed, width }.time(bytes);
        (time.numerator, time.denominator)
    };
    assert_eq!(time(Speed::Sdr, Width::X1, 1), (4_000, 1));
    assert_eq!(time(Speed::Sdr, Width::X4, 1), (1_000, 1));
    // 14.0625 Gb/s times 64/66 are 150/11 Gb/s: 8 bits take 8 * 11 / 150 ns.
    assert_eq!(time(Speed::Fdr, Width::X1, 1), (1_760, 3));
    assert_eq!(time(Speed::Fdr, Width::X12, 9), (440, 1));
    assert_eq!(time(Speed::Edr, Width::X4, 0), (0, 1));
    assert_eq!(Rate { speed: Speed::Fdr, width: Width::X1 }.time(1).ceil(), 587);
}

#[test]
fn a_middle_packet_has_28_bytes_beside_its_payload_on_the_line() {
    // Share of the payload, in thousandths.
    let shares = Mtu::ALL.map(|mtu| (f64::from(mtu.bytes()) * 1000.0 / f64::from(line_bytes(0, mtu.bytes()))).round());
    assert_eq!(shares, [901.0, 948.0, 973.0, 987.0, 993.0]);
    assert_eq!(bytes(0, 5), bytes(0, 8), "payload is padded to words");
    assert_eq!((blocks(64), blocks(65), blocks(bytes(0, 2048))), (1, 2, 33));
}

#[test]
fn the_blocks_that_a_cable_needs_are_those_of_the_table() {
    let blocks = |speed, metres| Rate { speed, width: Width::X4 }.blocks_in_flight(metres);
    let table = [Speed::Sdr, Speed::Qdr, Speed::Edr, Speed::Ndr].map(|speed| blocks(speed, 100));
    assert_eq!(table, [16, 63, 196, 782]);
    // All credit of a lane, 128 KiB, reaches 13.1 km at 4x SDR and 3.3 km at 4x QDR.
    assert!(blocks(Speed::Sdr, 13_100) <= u64::from(MAX_BLOCKS) && blocks(Speed::Sdr, 13_200) > u64::from(MAX_BLOCKS));
    assert!(blocks(Speed::Qdr, 3_270) <= u64::from(MAX_BLOCKS) && blocks(Speed::Qdr, 3_300) > u64::from(MAX_BLOCKS));
    let rate = Rate { speed: Speed::Sdr, width: Width::X4 };
    assert_eq!(rate.blocks_for(100, Mtu::B2048), 16 + 33);
}

/// Step on a lane: blocks of a packet to send, or another event.
#[derive(Clone, Debug)]
enum Step {
    Send(u16),
    LosePacket(u16),
    Release,
    Update,
    LoseUpdate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u16..80).prop_map(Step::Send),
        1 => (1u16..80).prop_map(Step::LosePacket),
        4 => Just(Step::Release),
        2 => Just(Step::Update),
        1 => Just(Step::LoseUpdate),
    ]
}

proptest! {
    #[test]
    fn a_lane_never_overflows_and_heals_after_one_update(
        size in 80u16..=MAX_BLOCKS, steps in prop::collection::vec(step(), 1..600)
    ) {
        let (mut sender, mut receiver) = (CreditSender::default(), CreditReceiver::new(size));
        // The plain model: blocks in the buffer, by packet.
        let mut buffer = VecDeque::new();
        let update = |sender: &mut CreditSender, receiver: &mut CreditReceiver| {
            receiver.receive(CreditUpdate { fctbs: sender.fctbs(), fccl: 0 });
            sender.receive(CreditUpdate { fctbs: 0, fccl: receiver.fccl() });
        };
        update(&mut sender, &mut receiver);
        for step in steps {
            match step {
                Step::Send(blocks) => if sender.send(blocks) {
                    prop_assert!(receiver.store(blocks), "no packet with credit is discarded");
                    buffer.push_back(blocks);
                },
                // The wire destroys the packet, so its blocks stay counted at the sender only.
                Step::LosePacket(blocks) => { sender.send(blocks); }
                Step::Release => if let Some(blocks) = buffer.pop_front() { receiver.release(blocks); },
                Step::Update => update(&mut sender, &mut receiver),
                Step::LoseUpdate => {}
            }
            let free = size - buffer.iter().sum::<u16>();
            prop_assert!(sender.available() <= free);
            if matches!(step, Step::Update) {
                prop_assert_eq!(sender.available(), free, "an update returns all credit");
            }
        }
        update(&mut sender, &mut receiver);
        prop_assert_eq!(sender.available(), size - buffer.iter().sum::<u16>());
    }
}

fn entries(list: &[(u8, u8)]) -> Vec<Entry> {
    list.iter().map(|(lane, weight)| Entry { lane: *lane, weight: *weight }).collect()
}

/// Bytes per lane after many packets of one size, with all lanes of `ready` busy.
fn shares(arbiter: &mut Arbiter, ready: u16, packet: u32) -> [u32; 16] {
    let mut sent = [0; 16];
    for _ in 0..6_000 {
        let lane = arbiter.next(ready).unwrap();
        arbiter.sent(lane, packet);
        sent[usize::from(lane)] += packet;
    }
    sent
}

#[test]
fn busy_lanes_share_the_line_by_weight() {
    let mut arbiter = Arbiter::new(Vec::new(), entries(&[(0, 32), (1, 64), (2, 96)]), UNLIMITED);
    let sent = shares(&mut arbiter, 0b111, 2048);
    assert_eq!((sent[1] / sent[0], sent[2] / sent[0], sent[2] % sent[0]), (2, 3, 0));
    // The share of an idle lane goes to the others.
    let sent = shares(&mut arbiter, 0b101, 2048);
    assert_eq!((sent[1], sent[2]), (0, 3 * sent[0]));
}

#[test]
fn a_weight_of_zero_gets_nothing() {
    let mut arbiter = Arbiter::new(Vec::new(), entries(&[(0, 0), (1, 1)]), 0);
    assert_eq!(shares(&mut arbiter, 0b11, 64)[0], 0);
    assert_eq!(arbiter.next(0b01), None);
}

#[test]
fn the_limit_bounds_high_priority_while_low_priority_waits() {
    let arbiter = |limit| Arbiter::new(entries(&[(1, 255)]), entries(&[(0, 255)]), limit);
    // One high packet, one low packet.
    let sent = shares(&mut arbiter(0), 0b11, 1024);
    assert_eq!(sent[0], sent[1]);
    // 4096 and 8192 bytes of high priority for each low packet of 1024.
    for (limit, times) in [(1, 4), (2, 8)] {
        let sent = shares(&mut arbiter(limit), 0b11, 1024);
        assert!(sent[1].abs_diff(times * sent[0]) <= times * 1024, "limit {limit}: {sent:?}");
    }
    assert_eq!(shares(&mut arbiter(UNLIMITED), 0b11, 1024)[0], 0);
    // Without low priority, nothing holds high priority back.
    assert_eq!(shares(&mut arbiter(0), 0b10, 1024)[1], 6_000 * 1024);
}

#[test]
fn management_precedes_every_table() {
    let mut arbiter = Arbiter::new(entries(&[(1, 255)]), entries(&[(0, 255)]), UNLIMITED);
    assert_eq!(arbiter.next(1 << MANAGEMENT | 0b11), Some(MANAGEMENT));
    assert_eq!(arbiter.next(0), None);
}

#[test]
fn service_levels_map_to_lanes_and_lane_15_discards() {
    let map = SlToVl::spread(4);
    assert_eq!([0, 3, 4, 15].map(|level| map.lane(level)), [Some(0), Some(3), Some(0), Some(3)]);
    assert_eq!(SlToVl([15; 16]).lane(3), None);
}

#[test]
fn limited_members_reach_full_members_only() {
    let [a, b, c, d] = [1, 2, 3, 4].map(|node| PortId { node, port: 1 });
    let mut partitions = Partitions::default();
    partitions.join(a, PKey::new(0x12, Membership::Full));
    partitions.join(b, PKey::new(0x12, Membership::Limited));
    partitions.join(c, PKey::new(0x12, Membership::Limited));
    partitions.join(d, PKey::new(0x13, Membership::Full));
    assert_eq!(partitions.common(a, b), [PKey(0x8012)]);
    assert_eq!(partitions.common(b, a), [PKey(0x0012)]);
    assert_eq!(partitions.common(b, c), []);
    assert_eq!(partitions.common(a, d), []);
    // Full membership replaces the limited one, and a later limited one changes nothing.
    partitions.join(b, PKey::new(0x12, Membership::Full));
    partitions.join(b, PKey::new(0x12, Membership::Limited));
    assert_eq!(partitions.table(b).keys(), [PKey(0x8012)]);
    assert_eq!(partitions.common(b, c), [PKey(0x8012)]);
    // Number 0 is no partition.
    partitions.join(a, PKey(0x8000));
    assert!(!partitions.table(a).accepts(PKey(0x8000)));
}
