//! Properties: all bytes arrive once and in order, and nonsense does no harm.

use crate::tcp_network::{GBIT_1, Link, Loss, Network, ms, plain};
use crate::tcp_states::established;
use proptest::prelude::*;
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::tcp::{
    Algorithm, Block, Buffer, Config, Connection, Ecn, Flags, Pacing, Sack, Segment, Stamps, State, SynOptions,
};
use std::sync::Arc;

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::Reno),
        any::<bool>().prop_map(|fast_convergence| Algorithm::Cubic { fast_convergence }),
        Just(Algorithm::Dctcp)
    ]
}

prop_compose! {
    fn configs()(
        algorithm in algorithms(),
        mss in 88u16..3_000,
        flags in any::<[bool; 8]>(),
        receive in 1_000u32..200_000,
        send in 1_000u32..200_000,
        ack_every in 1u8..3,
        batch in 0u32..65_536,
    ) -> Config {
        let [sack, timestamps, window_scaling, nagle, idle_restart, ecn, grows, paced] = flags;
        let max = |size: u32| if grows { size * 8 } else { size };
        Config {
            algorithm, sack, timestamps, window_scaling, nagle, idle_restart, ecn, ack_every, batch,
            mss,
            receive_buffer: Buffer { initial: receive, max: max(receive) },
            send_buffer: Buffer { initial: send, max: max(send) },
            pacing: paced.then_some(Pacing::LINUX),
            ..plain(1_460)
        }
    }
}

prop_compose! {
    fn links()(
        loss in 0.0f64..0.2,
        jitter in 0u64..20_000,
        repeat in 0.0f64..0.1,
        delay in 0u64..20_000,
        buffer in 3_000u64..200_000,
        rate in prop_oneof![Just(0), Just(GBIT_1), Just(80_000u64)],
        mark in 1usize..50,
    ) -> Link {
        let mut link = Link::new(rate, Span::from_us(delay)).buffer(buffer).mark_above(mark).loss(Loss::Any(loss));
        (link.jitter, link.reorders, link.repeat) = (Span::from_us(jitter), true, repeat);
        link
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Up to 20 % of all packets are lost, and packets are reordered, repeated, marked and queued.
    #[test]
    fn whatever_the_network_does_all_bytes_arrive_once_and_in_order(
        a in configs(), b in configs(), there in links(), back in links(),
        bytes in any::<[u16; 2]>(), seed in any::<u64>(), waits in any::<bool>(),
    ) {
        let mut network = Network::new(seed, vec![there, back]);
        network.connect(&a, &b, &[0], &[1]);
        let wanted = [u64::from(bytes[0]) * 3, u64::from(bytes[1]) * 3];
        // An application that reads late closes the window.
        network.ends[1].is_sink = !waits;
        network.write(0, wanted[0]);
        network.write(1, wanted[1]);
        network.run(ms(5_000));
        network.ends[1].is_sink = true;
        network.flush(1);
        for _ in 0..400 {
            for end in [0, 1] {
                // A close before the handshake would end the connection without data.
                let connection = &network.ends[end].connection;
                let is_open = !matches!(connection.state(), State::Listen | State::SynSent);
                if is_open && network.ends[end].to_send == 0 {
                    network.ends[end].connection.close();
                }
                network.flush(end);
            }
            let now = network.now() + Span::from_secs(10);
            network.run(now);
        }
        for (end, expected) in [(0, wanted[1]), (1, wanted[0])] {
            let here = &mut network.ends[end];
            let events = here.connection.take_events();
            prop_assert_eq!(here.connection.state(), State::Closed);
            // If the last acknowledgement is lost, LAST-ACK ends by a RST of the absent peer.
            prop_assert_eq!(here.consumed, expected, "end {} {:?}", end, events);
        }
    }
}

prop_compose! {
    fn blocks()(start in positions(), end in positions()) -> Block {
        Block { start, end }
    }
}

fn positions() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..20_000, 0u64..4, any::<u64>(), Just(u64::MAX)]
}

prop_compose! {
    fn segments()(
        position in positions(), ack in positions(), length in prop_oneof![Just(0u32), 0u32..9_000, any::<u32>()],
        unit in prop_oneof![Just(0u16), any::<u16>()], window in any::<u16>(), bits in any::<u8>(), ecn in 0u8..3,
        stamps in proptest::option::of((any::<u32>(), any::<u32>())),
        options in proptest::option::of((any::<u16>(), proptest::option::of(any::<u8>()), any::<bool>())),
        blocks in proptest::collection::vec(blocks(), 0..6), common in any::<bool>(),
    ) -> Segment {
        let mut sack = Sack::default();
        blocks.into_iter().for_each(|block| sack.push(block));
        let flags = if common { Flags::ACK.with(Flags::from_bits(bits & 8)) } else { Flags::from_bits(bits) };
        Segment {
            position, ack, length, unit, window, flags, sack,
            ecn: [Ecn::NotEct, Ecn::Ect, Ecn::Ce][usize::from(ecn)],
            stamps: stamps.map(|(value, echo)| Stamps { value, echo }),
            options: options.map(|(mss, scale, sack)| SynOptions { mss, scale, sack }),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(Segment),
    Poll,
    Timeout,
    Send(u32),
    Consume(u32),
    End,
    Close,
    Abort,
    Wait(u32),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => segments().prop_map(Step::Arrive),
        4 => Just(Step::Poll),
        2 => Just(Step::Timeout),
        2 => any::<u32>().prop_map(Step::Send),
        1 => any::<u32>().prop_map(Step::Consume),
        1 => Just(Step::End),
        1 => Just(Step::Close),
        1 => any::<u32>().prop_map(Step::Wait),
        1 => Just(Step::Abort),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Random segments in all states. The connection neither panics nor sends without end.
    #[test]
    fn nonsense_is_counted_and_does_no_harm(
        config in configs(), start in 0u8..4, steps in proptest::collection::vec(steps(), 1..60),
    ) {
        let mut now = Instant::ZERO;
        let shared = Arc::new(config.clone());
        let mut connection = match start {
            0 => Connection::connect(shared),
            1 => Connection::listen(shared),
            _ => established(&config).0,
        };
        for step in steps {
            match step {
                Step::Arrive(segment) => drop(connection.arrive(now, &segment)),
                Step::Poll => {
                    let sent = (0..100_000).take_while(|_| connection.poll_transmit(now).is_some()).count();
                    prop_assert!(sent < 100_000, "sends without end");
                }
                Step::Timeout => {
                    now = connection.poll_timeout().unwrap_or(now).max(now);
                    connection.timeout(now);
                }
                Step::Send(bytes) => drop(connection.send(u64::from(bytes))),
                Step::Consume(bytes) => drop(connection.consume(now, u64::from(bytes))),
                Step::End => connection.end_record(),
                Step::Close => connection.close(),
                Step::Abort => connection.abort(),
                Step::Wait(us) => now += Span::from_us(u64::from(us)),
            }
            prop_assert!(connection.readable() <= 1 << 30);
            prop_assert!(connection.congestion_window() > 0);
        }
    }
}
