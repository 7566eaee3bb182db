//! Published laws of TCP: window limit, slow start, Reno, Mathis, Padhye, CUBIC.

use crate::tcp_network::{ENDLESS, GBIT_1, GBIT_10, Link, Loss, Network, OVERHEAD, ms, plain};
use sanloom_scsi::time::Span;
use sanloom_transport::tcp::{Algorithm, Buffer, Config, Pacing};

/// Two ends, joined by one link in each direction. Returns the network; end 0 sends to end 1.
fn pair(seed: u64, there: Link, config: &Config) -> Network {
    let back = Link::new(ENDLESS, there.delay);
    let mut network = Network::new(seed, vec![there, back]);
    network.connect(config, config, &[0], &[1]);
    network
}

fn near(measured: f64, expected: f64, tolerance: f64, name: &str) {
    let ratio = measured / expected;
    println!("{name}: measured {measured:.6}, expected {expected:.6}, ratio {ratio:.4}");
    assert!((ratio - 1.0).abs() <= tolerance, "{name}: {measured} is not within {tolerance} of {expected}");
}

#[test]
fn a_window_limits_the_rate_to_window_per_round_trip() {
    // Windows of whole segments, because RFC 9293 (3.8.6.2.1) sends no short segment into a window.
    // Even numbers of them, because the acknowledgement of an odd last one is delayed.
    let cases = [(65_536, 1_024, 1_000, GBIT_10), (63_712, 1_448, 1_000, GBIT_10), (524_288, 4_096, 500, 80)];
    for (window, mss, rtt_us, rate) in cases {
        let mut config = plain(mss);
        config.receive_buffer = Buffer::fixed(window);
        let mut network = pair(1, Link::new(rate, Span::from_us(rtt_us / 2)), &config);
        network.write(0, u64::MAX);
        let measured = network.goodput(1, ms(100), ms(1_100));
        let share = f64::from(mss) / (f64::from(mss) + OVERHEAD as f64);
        let line = 1e12 / rate as f64 * share;
        let expected = (f64::from(window) / (rtt_us as f64 / 1e6)).min(line);
        near(measured, expected, 0.005, &format!("window {window}, MSS {mss}"));
    }
}

#[test]
fn a_window_above_the_bandwidth_delay_product_gives_the_share_of_the_line() {
    for (rate, mss) in [(GBIT_1, 1_460), (GBIT_10, 1_460), (GBIT_10, 8_960)] {
        let mut config = plain(mss);
        config.receive_buffer = Buffer::fixed(8 << 20);
        let mut network = pair(1, Link::new(rate, Span::from_us(500)), &config);
        network.write(0, u64::MAX);
        let measured = network.goodput(1, ms(200), ms(700));
        let share = f64::from(mss) / (f64::from(mss) + OVERHEAD as f64);
        near(measured, 1e12 / rate as f64 * share, 0.005, &format!("line of {rate} ps per byte"));
    }
}

#[test]
fn slow_start_sends_10_30_70_and_150_segments() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic { fast_convergence: true }, Algorithm::Dctcp] {
        let mut config = plain(1_460);
        (config.ack_every, config.algorithm) = (1, algorithm);
        let mut network = pair(1, Link::new(ENDLESS, Span::from_ms(50)), &config);
        network.write(0, u64::MAX);
        // The handshake takes one round trip, so data leave at 100 ms, 200 ms, ...
        let sent: Vec<u64> = (1..=4)
            .map(|round| {
                network.run(ms(100 * round + 50));
                network.ends[0].sent
            })
            .collect();
        assert_eq!(sent, [10, 30, 70, 150], "{algorithm:?}");
    }
}

/// Reno at 100 Mb/s and 40 ms: 1,460 of 1,538 bytes are payload, and the line holds 326 packets.
fn reno_share(buffer: u64, config: &Config) -> f64 {
    let rate = 80_000;
    let there = Link::new(rate, Span::from_ms(20)).buffer(buffer);
    let mut network = pair(1, there, config);
    network.write(0, u64::MAX);
    let measured = network.goodput(1, ms(20_000), ms(80_000));
    measured / (1e12 / rate as f64 * 1_460.0 / 1_538.0)
}

#[test]
fn one_reno_flow_fills_75_percent_of_a_line_without_a_buffer() {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Reno;
    config.ack_every = 1;
    // Without pacing the two packets of an enlarged window meet in a buffer that does not exist.
    config.pacing = Some(Pacing { slow_start: 100, avoidance: 100 });
    near(reno_share(0, &config), 0.75, 0.02, "Reno, buffer 0");
}

#[test]
fn one_reno_flow_fills_a_line_with_a_buffer_of_one_bandwidth_delay_product() {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Reno;
    near(reno_share(501_000, &config), 1.0, 0.02, "Reno, buffer of one BDP");
}

/// Average rate of Reno at loss probability `p` and a round trip of 100 ms, in segments per second,
/// over several seeds.
fn lossy(p: f64, config: &Config) -> f64 {
    let seeds = 8;
    // About 1,000 losses in all.
    let seconds = (125.0 / p / (1.2 / p.sqrt() / 0.1)).max(60.0) as u64;
    let total: f64 = (1..=seeds)
        .map(|seed| {
            let there = Link::new(ENDLESS, Span::from_ms(50)).loss(Loss::Random(p));
            let mut network = pair(seed, there, config);
            network.write(0, u64::MAX);
            network.goodput(1, ms(20_000), ms(20_000 + 1_000 * seconds))
        })
        .sum();
    total / seeds as f64 / 1_460.0
}

/// Reno with SACK: an acknowledgement for each segment (b = 1), or for each second one with growth
/// by acknowledgements (b = 2).
fn reno(b: u8) -> Config {
    let mut config = plain(1_460);
    (config.algorithm, config.ack_every, config.byte_counting) = (Algorithm::Reno, b, false);
    config
}

const LOSSES: [f64; 4] = [3e-4, 1e-3, 3e-3, 1e-2];

/// The law of Padhye (SIGCOMM 1998, equation 31), in segments per second.
fn padhye(p: f64, b: f64) -> f64 {
    // The time-out is the round trip and the minimum of Linux.
    let timeout = 0.1 + 0.2;
    let slow = timeout * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (0.1 * (2.0 * b * p / 3.0).sqrt() + slow)
}

fn loss_laws(b: u8) {
    for p in LOSSES {
        let measured = lossy(p, &reno(b));
        let mathis = (1.5 / (f64::from(b) * p)).sqrt() / 0.1;
        near(measured, mathis, 0.10, &format!("Mathis, b {b}, p {p}"));
        near(measured, padhye(p, f64::from(b)), 0.15, &format!("Padhye, b {b}, p {p}"));
    }
}

#[test]
fn random_loss_gives_the_rates_of_mathis_and_padhye() {
    loss_laws(1);
}

#[test]
fn random_loss_gives_the_rates_of_mathis_and_padhye_with_delayed_acknowledgements() {
    loss_laws(2);
}

/// Average window of CUBIC in segments, if one of `period` segments is lost, at a round trip of
/// 100 ms. The law is a stationary state that is approached slowly, so the first loss occurs near
/// it: at the maximum of the law, its average times 4 / (3 + 0.7).
fn cubic_window(period: u64, law: f64, epochs: u64) -> f64 {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Cubic { fast_convergence: false };
    let first = (law * 4.0 / 3.7) as u64;
    let there = Link::new(ENDLESS, Span::from_ms(50)).loss(Loss::Periodic { first, period });
    let mut network = pair(1, there, &config);
    network.write(0, u64::MAX);
    let mut losses = Vec::new();
    let mut dropped = 0;
    while losses.len() as u64 <= epochs {
        network.step();
        if network.links[0].dropped > dropped {
            dropped = network.links[0].dropped;
            losses.push((network.now(), network.links[0].data));
        }
    }
    // Whole epochs, from one loss to another one.
    let ((from, before), (until, after)) = (losses[epochs as usize / 2], losses[epochs as usize]);
    (after - before) as f64 / (until.since(from).as_ns() as f64 / 1e8)
}

#[test]
fn cubic_keeps_the_average_window_of_its_law() {
    near(cubic_window(100_000, 1_054.0, 12), 1_054.0, 0.10, "CUBIC, p 1e-5");
}

#[test]
fn cubic_keeps_the_average_window_of_its_law_at_rare_losses() {
    near(cubic_window(1_000_000, 5_927.0, 4), 5_927.0, 0.10, "CUBIC, p 1e-6");
}
