//! Memory of connections: size, and no allocation in steady state.

use crate::tcp_network::{ENDLESS, Link, Loss, Network, ms, plain};
use sanloom_scsi::time::{Instant, Span};
use sanloom_transport::tcp::{Algorithm, Connection};
use std::sync::Arc;

#[test]
fn a_connection_has_at_most_256_bytes() {
    println!("size of a connection: {} bytes", size_of::<Connection>());
    assert!(size_of::<Connection>() <= 256);
}

/// A thousand connections lose one of 50 segments; ten times as much is the memory of 10,000.
#[test]
fn ten_thousand_connections_with_their_losses_fit_into_64_mib() {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Reno;
    let run = |count: usize| {
        let links =
            vec![Link::new(ENDLESS, Span::from_ms(5)).loss(Loss::Random(0.02)), Link::new(ENDLESS, Span::from_ms(5))];
        let mut network = Network::new(1, links);
        for _ in 0..count {
            network.connect(&config, &config, &[0], &[1]);
        }
        (0..count).for_each(|pair| network.write(2 * pair, u64::MAX));
        network.run(ms(400));
        let recoveries = network.ends.iter().filter(|end| end.connection.counters().recoveries > 0).count();
        (network.ends.into_iter().map(|end| end.connection).collect::<Vec<Connection>>(), recoveries)
    };
    let (connections, recoveries) = run(1_000);
    assert!(recoveries > 900, "{recoveries} of 1,000 senders have lost something");
    // A clone allocates as much as its original holds.
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(connections.clone())));
    let each = counted.bytes_max / 2_000;
    println!("memory of an end with its losses: {each} bytes");
    assert!(each * 20_000 < 64 << 20, "both ends of 10,000 connections");
}

/// Two ends that are called directly, so that only the connections could allocate.
struct Direct {
    ends: [Connection; 2],
    now: Instant,
    lost: u64,
    sent: u64,
}

impl Direct {
    /// Exchanges segments for `rounds` round trips of 1 ms; each `lost`-th data segment is lost.
    fn run(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.ends[0].send(u64::MAX);
            for from in [0, 1] {
                self.now += Span::from_us(500);
                self.ends[from].timeout(self.now);
                while let Some(segment) = self.ends[from].poll_transmit(self.now) {
                    self.sent += u64::from(segment.length > 0);
                    if segment.length > 0 && self.sent.is_multiple_of(self.lost) {
                        continue;
                    }
                    if let Some(reply) = self.ends[1 - from].arrive(self.now, &segment) {
                        self.ends[from].arrive(self.now, &reply);
                    }
                }
                self.ends[1 - from].consume(self.now, u64::MAX);
            }
        }
    }
}

#[test]
fn a_connection_in_steady_state_does_not_allocate() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic { fast_convergence: true }, Algorithm::Dctcp] {
        for lost in [u64::MAX, 200] {
            let mut config = plain(1_460);
            config.algorithm = algorithm;
            config.receive_buffer = sanloom_transport::tcp::Buffer::fixed(1 << 20);
            let config = Arc::new(config);
            let ends = [Connection::connect(config.clone()), Connection::listen(config)];
            let mut direct = Direct { ends, now: Instant::ZERO, lost, sent: 0 };
            direct.run(2_000);
            let (sent, lost_before) = (direct.sent, direct.ends[0].counters().recoveries);
            let counted = allocation_counter::measure(|| direct.run(2_000));
            assert!(direct.sent > sent + 10_000, "{algorithm:?}: data flow");
            assert_eq!(lost < u64::MAX, direct.ends[0].counters().recoveries > lost_before, "{algorithm:?}");
            assert_eq!(counted.count_total, 0, "{algorithm:?}, each {lost}-th segment lost");
        }
    }
}
