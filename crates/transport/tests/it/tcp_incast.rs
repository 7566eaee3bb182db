//! Incast: synchronised reads from many servers through one port (FAST 2008, SIGCOMM 2009).

use crate::tcp_network::{GBIT_1, Link, Network, ms, plain};
use sanloom_scsi::time::Span;
use sanloom_transport::tcp::{Algorithm, Config};

/// Bytes that each server sends for one request.
const BLOCK: u64 = 256 * 1_024;
/// Bytes of a request.
const REQUEST: u64 = 64;

/// Largest random delay of a packet on its way to the switch. Without it, packets of equal size
/// stay in phase with the departures of a full queue, which then drops those of one server only.
const JITTER: Span = Span::from_us(10);
/// Blocks of a run; a run ends after 10 s in any case.
const BLOCKS: usize = 1_600;

/// Reno with SACK, an initial window of 10 and a delayed acknowledgement of 40 ms.
fn reno() -> Config {
    let mut config = plain(1_460);
    config.algorithm = Algorithm::Reno;
    config
}

/// Goodput in Mb/s of `servers` servers behind a port with this buffer in bytes.
fn incast(servers: usize, buffer: u64, mark_above: usize, config: &Config) -> f64 {
    let hop = Span::from_us(25);
    // 0: the port of the client; then a line for each server; the client's line to the switch.
    let mut links = vec![Link::new(GBIT_1, hop).buffer(buffer).mark_above(mark_above)];
    links.extend((0..servers).map(|_| Link::new(GBIT_1, hop)));
    links.push(Link::new(GBIT_1, hop));
    links.push(Link::new(0, hop));
    links[1..=servers].iter_mut().for_each(|link| link.jitter = JITTER);
    let mut network = Network::new(1, links);
    let clients: Vec<usize> = (0..servers)
        .map(|server| network.connect(config, config, &[servers + 1, servers + 2], &[1 + server, 0]))
        .collect();
    network.run(ms(10));
    let start = network.now();
    let (mut asked, mut done) = (0, 0);
    let mut rounds = 0;
    while network.now() < ms(10_010) && rounds * servers < BLOCKS {
        if asked == done {
            done = 0;
            asked = servers;
            rounds += 1;
            clients.iter().for_each(|client| network.write(*client, REQUEST));
        }
        let Some(end) = network.step().filter(|end| *end < usize::MAX) else { continue };
        if end % 2 == 1 {
            // A server that has read a whole request answers it.
            let wanted = network.ends[end].consumed / REQUEST * BLOCK;
            let given = network.ends[end].answered;
            if wanted > given {
                network.ends[end].answered = wanted;
                network.write(end, wanted - given);
            }
        } else {
            let blocks = network.ends[end].consumed / BLOCK;
            if blocks > network.ends[end].answered {
                network.ends[end].answered = blocks;
                done += 1;
            }
        }
    }
    let bytes: u64 = clients.iter().map(|client| network.ends[*client].consumed).sum();
    bytes as f64 * 8e3 / network.now().since(start).as_ns() as f64
}

/// Port without marks.
const NO_MARKS: usize = usize::MAX;

fn row(numbers: &[usize], buffer: u64, mark_above: usize, config: &Config) -> Vec<f64> {
    let row: Vec<f64> = numbers.iter().map(|number| incast(*number, buffer, mark_above, config)).collect();
    println!("{:?}, buffer {buffer}: N {numbers:?} Mb/s {row:.0?}", config.algorithm);
    row
}

/// Bound of the goodput in Mb/s if each request costs `k` time-outs in a row.
fn bound(servers: usize, k: f64) -> f64 {
    let bits = (servers as u64 * BLOCK * 8) as f64;
    bits / (bits / 949.0 + k * 200_000.0)
}

#[test]
fn synchronised_reads_collapse_by_more_than_five_times() {
    let mut cubic = reno();
    cubic.algorithm = Algorithm::Cubic { fast_convergence: true };
    for config in [reno(), cubic] {
        let row = row(&[1, 8, 12], 65_536, NO_MARKS, &config);
        assert!(row[0] > 5.0 * row[1] && row[0] > 5.0 * row[2], "{row:?}");
    }
}

#[test]
fn twice_the_buffer_carries_at_least_twice_the_servers() {
    let numbers = [2, 4, 8, 16, 32];
    let onset = |buffer| {
        let row = row(&numbers, buffer, NO_MARKS, &reno());
        // A third of the line.
        let first = row.iter().position(|rate| *rate < 316.0);
        numbers[first.expect("collapses")]
    };
    let onsets = [65_536, 131_072, 262_144].map(onset);
    println!("onsets {onsets:?}");
    assert!(onsets.windows(2).all(|pair| pair[1] >= 2 * pair[0]), "{onsets:?}");
}

#[test]
fn a_collapsed_goodput_is_that_of_one_or_two_timeouts_for_each_request() {
    let numbers = [12, 16, 24, 32];
    for (servers, rate) in numbers.iter().zip(row(&numbers, 65_536, NO_MARKS, &reno())) {
        let (most, least) = (bound(*servers, 1.0), bound(*servers, 2.0));
        println!("N {servers}: {least:.0} < {rate:.0} < {most:.0}");
        // Some requests cost no time-out at 12 servers, and some cost three at 32. The reached
        // limit is 5 %.
        assert!(rate < most * 1.05 && rate > least * 0.95, "N {servers}: {rate} between {least} and {most}");
    }
}

#[test]
fn dctcp_does_not_collapse() {
    let mut config = reno();
    config.algorithm = Algorithm::Dctcp;
    let row = row(&[1, 8, 16, 32], 131_072, 20, &config);
    assert!(row.iter().all(|rate| *rate > 800.0), "{row:?}");
}

#[test]
fn a_minimum_time_out_of_1_ms_cures_the_collapse() {
    let mut config = reno();
    (config.rto_min, config.delayed_ack) = (Span::from_ms(1), Span::from_us(200));
    let row = row(&[1, 8, 16, 32], 65_536, NO_MARKS, &config);
    assert!(row[1] > 800.0 && row[2] > 800.0 && row[3] > 500.0, "{row:?}");
}
