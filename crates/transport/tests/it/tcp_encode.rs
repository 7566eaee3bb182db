//! Segments as bytes: positions, options and checksums survive.

use crate::tcp_network::{ms, plain};
use proptest::prelude::*;
use sanloom_transport::tcp::{Block, Connection, Ecn, Flags, Flow, Sack, Segment, Stamps, SynOptions};
use sanloom_wire::tcp::{TcpPacket, checksums_are_right};
use std::sync::Arc;

fn flow(initial: u32, peer_initial: u32) -> Flow {
    let (source, destination) = ([10, 9, 0, 2], [10, 9, 0, 1]);
    Flow { source, destination, source_port: 3_260, destination_port: 40_000, initial, peer_initial }
}

fn bytes(flow: &Flow, segment: &Segment) -> Vec<u8> {
    let payload = vec![0x5a; segment.length as usize];
    let mut out = Vec::new();
    flow.encode(segment, 1, &payload).emit(&mut out);
    out
}

proptest! {
    /// Positions behind 2^32 and initial numbers near the end of the range.
    #[test]
    fn a_segment_survives_its_bytes(
        initial in any::<u32>(), peer_initial in any::<u32>(), position in 0u64..1 << 40, ack in 1u64..1 << 40,
        off in any::<[i16; 2]>(), length in 0u32..3_000, window in any::<u16>(), ecn in 0usize..3,
        stamps in proptest::option::of((any::<u32>(), any::<u32>())), count in 0u64..4, syn in any::<bool>(),
    ) {
        let mut sack = Sack::default();
        (0..count).for_each(|n| sack.push(Block { start: ack + 10_000 * n + 5, end: ack + 10_000 * n + 9_000 }));
        let options = syn.then_some(SynOptions { mss: 1_460, scale: Some(7), sack: true });
        let flags = if syn { Flags::SYN.with(Flags::ACK) } else { Flags::ACK.with(Flags::PSH) };
        let segment = Segment {
            position, ack, length, unit: length as u16, window, flags, options,
            sack: if syn { Sack::default() } else { sack },
            ecn: [Ecn::NotEct, Ecn::Ect, Ecn::Ce][ecn],
            stamps: stamps.map(|(value, echo)| Stamps { value, echo }),
        };
        let flow = flow(initial, peer_initial);
        let packet = bytes(&flow, &segment);
        prop_assert!(checksums_are_right(&packet));
        prop_assert_eq!(packet.len(), 40 + (segment.option_bytes() + length) as usize);
        let read = TcpPacket::parse(&packet).unwrap();
        let near = |position: u64, off: i16| position.saturating_add_signed(i64::from(off));
        prop_assert_eq!(flow.decode(&read, near(position, off[0]), near(ack, off[1])), segment);
    }
}

#[test]
fn two_connections_agree_through_bytes() {
    let config = Arc::new(plain(1_460));
    let mut ends = [Connection::connect(config.clone()), Connection::listen(config)];
    let flows = [flow(u32::MAX - 20, 5), flow(u32::MAX - 20, 5).reverse()];
    for round in 0..50 {
        ends[0].send(10_000);
        for from in [0, 1] {
            ends[from].timeout(ms(round * 50));
            while let Some(segment) = ends[from].poll_transmit(ms(round * 50)) {
                for part in segment.parts() {
                    let packet = bytes(&flows[from], &part);
                    let read = TcpPacket::parse(&packet).unwrap();
                    let (here, there) = (&ends[1 - from], &ends[from]);
                    let decoded = flows[from].decode(&read, here.received(), here.acknowledged());
                    assert_eq!(decoded.position, part.position, "{there:?}");
                    ends[1 - from].arrive(ms(round * 50), &decoded);
                }
            }
        }
        ends[1].consume(ms(round * 50), u64::MAX);
    }
    assert!(ends[1].received() > 100_000, "{}", ends[1].received());
    assert_eq!(ends[1].counters().ignored, 0);
}
