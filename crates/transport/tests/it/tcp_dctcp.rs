//! DCTCP: the queue of its model, and two bottlenecks (SIGCOMM 2010).

use crate::tcp_network::{GBIT_1, GBIT_10, Link, Network, ms, plain};
use sanloom_scsi::time::Span;
use sanloom_transport::tcp::{Algorithm, Config};

fn dctcp() -> Config {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Dctcp;
    config
}

/// Largest and smallest queue in packets behind a 10 Gb/s line with a round trip of 100 us.
fn queue(flows: usize, k: usize, config: &Config) -> (f64, f64) {
    let half = Span::from_us(50);
    let mut network = Network::new(1, vec![Link::new(GBIT_10, half).mark_above(k)]);
    let mut ends = Vec::new();
    for _ in 0..flows {
        let back = network.links.len();
        network.links.push(Link::new(0, half));
        ends.push(network.connect(config, config, &[0], &[back]));
    }
    ends.iter().for_each(|end| network.write(*end, u64::MAX));
    network.run(ms(100));
    network.links[0].reset_marks();
    network.run(ms(300));
    (network.links[0].high as f64, network.links[0].low as f64)
}

#[test]
fn the_queue_of_dctcp_has_the_maximum_and_the_amplitude_of_its_model() {
    // The model acknowledges each packet. K is above C x RTT / 7 = 12 packets.
    let config = Config { ack_every: 1, ..dctcp() };
    let capacity = 1e8 / 800.0 / 1_538.0;
    for (flows, k) in [(1, 40), (2, 40), (2, 65), (4, 65), (10, 65)] {
        let (high, low) = queue(flows, k, &config);
        let n = flows as f64;
        let maximum = k as f64 + n;
        let amplitude = 0.5 * (2.0 * n * (capacity + k as f64)).sqrt();
        println!("N {n}, K {k}: maximum {high} of {maximum}, amplitude {} of {amplitude:.1}", high - low);
        assert!((high / maximum - 1.0).abs() <= 0.2, "N {n}, K {k}: maximum {high} of {maximum}");
        assert!(((high - low) / amplitude - 1.0).abs() <= 0.2, "N {n}, K {k}: amplitude {} of {amplitude}", high - low);
    }
}

#[test]
fn two_bottlenecks_share_as_published() {
    let hop = Span::from_us(12);
    let config = dctcp();
    // 0: the 10 Gb/s line of S1 and S2; 1: the 1 Gb/s line to R1; 2: all acknowledgements.
    let mut links = vec![
        Link::new(GBIT_10, hop).mark_above(65),
        Link::new(GBIT_1, hop).mark_above(20),
        Link::new(0, Span::from_us(50)),
    ];
    let access = |links: &mut Vec<Link>| {
        links.push(Link::new(GBIT_1, hop));
        links.len() - 1
    };
    let mut routes = Vec::new();
    for _ in 0..10 {
        routes.push(vec![access(&mut links), 0, 1]);
    }
    for _ in 0..10 {
        routes.push(vec![access(&mut links), 1]);
    }
    for _ in 0..20 {
        let (first, last) = (access(&mut links), access(&mut links));
        links[last].mark_above = 20;
        routes.push(vec![first, 0, last]);
    }
    let mut network = Network::new(1, links);
    let ends: Vec<usize> = routes.iter().map(|route| network.connect(&config, &config, route, &[2])).collect();
    ends.iter().for_each(|end| network.write(*end, u64::MAX));
    network.run(ms(200));
    let before: Vec<u64> = ends.iter().map(|end| network.ends[end + 1].connection.received()).collect();
    network.run(ms(1_200));
    let rates: Vec<f64> = ends
        .iter()
        .zip(before)
        .map(|(end, before)| (network.ends[end + 1].connection.received() - before) as f64 * 8.0 / 1e6)
        .collect();
    // The published rates add up to the lines, so headers count.
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64 * 1_538.0 / 1_460.0;
    let (s1, s3, s2) = (mean(&rates[..10]), mean(&rates[10..20]), mean(&rates[20..]));
    println!("S1 {s1:.1}, S3 {s3:.1}, S2 {s2:.1} Mb/s; published 46, 54, 475");
    assert!((s2 / 475.0 - 1.0).abs() <= 0.03, "S2: {s2}");
    assert!(((10.0 * s1 + 10.0 * s3) / 1_000.0 - 1.0).abs() <= 0.03, "line of 1 Gb/s: {s1} and {s3}");
    assert!(((10.0 * s1 + 20.0 * s2) / 9_960.0 - 1.0).abs() <= 0.03, "line of 10 Gb/s: {s1} and {s2}");
    assert!((0.5..=2.0).contains(&(s1 / s3 / (46.0 / 54.0))), "split {s1} to {s3}");
}
