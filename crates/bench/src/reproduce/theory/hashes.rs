//! Uniformity of the hash that distributes exchanges over links.

use super::row::{Basis, Row};
use sanloom_fc::config::IslChoice;
use sanloom_fc::fabric::{Decision, Egress, Fib, FibDelta, Leg, PortMode};
use sanloom_wire::FcId;

const UNIFORM: Basis = Basis {
    section: "Choice of a link by hash",
    source: "Pearson 1900: Σ (observed - expected)² / expected over k links has the mean k - 1 if each exchange chooses a \
             link with probability 1/k, independently of the others",
    tolerance_reason: "3.9 standard deviations, √(2 (k - 1)): one false alarm in 10,000",
};

const SECOND: Basis = Basis {
    section: "Choice of a link by hash",
    source: "Two switches that hash alike: behind a split into k, only one of k links is used (polarisation; Cao, Wang, \
             Zegura 2000). With a salt of each switch, all are",
    tolerance_reason: "exact",
};

/// Domains of the two switches and of the destinations.
const DOMAINS: [u8; 2] = [1, 2];
const FAR: u8 = 9;
/// World-wide names of the two switches.
const NAMES: [u64; 2] = [0x1000_0005_1e00_0001, 0x1000_0005_1e00_0002];

/// Returns a switch with `links` equal paths to the destinations, behind an E_Port.
fn switch(number: usize, links: u16, salted: bool) -> Fib {
    let mut fib = Fib::new(DOMAINS[number], links + 1, IslChoice::Exchange);
    fib = if salted { fib.with_salt(NAMES[number]) } else { fib.with_salt(0) };
    (0..=links).for_each(|port| fib.apply(&FibDelta::PortMode { port, mode: PortMode::E }));
    let legs = (0..links).map(Leg::Port).collect();
    fib.apply(&FibDelta::Routes { domain: FAR, legs });
    fib
}

/// Returns the link of an exchange.
fn link_of(fib: &Fib, links: u16, exchange: &Exchange) -> Option<usize> {
    match fib.decide(links, exchange.host, exchange.storage, exchange.ox_id) {
        Decision::Forward(Egress::Port(port)) => Some(port.into()),
        _ => None,
    }
}

/// An exchange of a host with a storage port.
struct Exchange {
    host: FcId,
    storage: FcId,
    ox_id: u16,
}

/// Returns exchanges as hosts make them: few addresses, OX_IDs in order.
fn exchanges(hosts: u8, storage: u8, each: u16) -> Vec<Exchange> {
    let of_pair = |host: u8, storage: u8| {
        let (host, storage) = (FcId::from_parts(3, host, 0), FcId::from_parts(FAR, storage, 0));
        (0..each).map(move |ox_id| Exchange { host, storage, ox_id })
    };
    (0..hosts).flat_map(|host| (0..storage).flat_map(move |storage| of_pair(host, storage))).collect()
}

fn chi_square(counts: &[f64]) -> f64 {
    let expected = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

/// Returns the rows of the hash.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for links in [2_u16, 4, 8, 16, 64] {
        let sets = [("1 pair", exchanges(1, 1, 40_000)), ("8 × 8 pairs", exchanges(8, 8, 1_000))];
        for (what, exchanges) in sets {
            let fib = switch(0, links, true);
            let mut counts = vec![0.0; links.into()];
            exchanges.iter().filter_map(|exchange| link_of(&fib, links, exchange)).for_each(|at| counts[at] += 1.0);
            let degrees = f64::from(links - 1);
            let tolerance = 3.9 * (2.0 * degrees).sqrt();
            let id = format!("hash-{links}-{}", if what == "1 pair" { "pair" } else { "pairs" });
            let text = format!("χ² of {} exchanges of {what} over {links} links", exchanges.len());
            rows.push(UNIFORM.row(id, text, "", degrees, Some(chi_square(&counts)), tolerance));
        }
    }
    for (salted, expected) in [(false, 1.0), (true, 4.0)] {
        let links = 4;
        let [first, second] = [0, 1].map(|number| switch(number, links, salted));
        let behind = exchanges(8, 8, 1_000).into_iter().filter(|exchange| link_of(&first, links, exchange) == Some(2));
        let mut counts = vec![0.0; links.into()];
        behind.filter_map(|exchange| link_of(&second, links, &exchange)).for_each(|at| counts[at] += 1.0);
        let used = counts.iter().filter(|count| **count > 0.0).count() as f64;
        let word = if salted { "salted" } else { "plain" };
        let text = format!("links of 4 in use behind a split into 4, {word} hash");
        rows.push(SECOND.row(format!("hash-behind-{word}"), text, "links", expected, Some(used), 0.0));
        if salted {
            let text = "χ² behind a split into 4, salted hash, 4 links";
            let tolerance = 3.9 * 6.0_f64.sqrt();
            rows.push(UNIFORM.row("hash-behind-salted-chi", text, "", 3.0, Some(chi_square(&counts)), tolerance));
        }
    }
    rows
}
