//! A synthetic workload with the statistics of a trace, in the vocabulary of the lab file.

use super::{Part, Statistics};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Sizes of a section.
const SIZES: usize = 8;
/// Smallest share of sequential, or of other, requests that gets a section of its own.
const SMALLEST_PART: f64 = 0.02;
/// Bytes of a block, of which each size is a multiple.
const BLOCK: u64 = 512;
/// Squared variations of the times between arrivals that a Poisson process represents.
const POISSON: RangeInclusive<f64> = 0.8..=1.25;
/// Squared variations that a gamma distribution represents. Beyond them, it degenerates.
const GAMMA: RangeInclusive<f64> = 0.1..=25.0;
/// Most popular share of the space that becomes the hot part.
const HOT_SPACE: f64 = 0.2;

/// Writes sections `[workload.NAME]` with the mix, sizes, rate, sequential share, footprint and hot
/// part of a trace. A comment names what the sections do not keep.
///
/// `source` is the name of the trace in the comment. The hosts and targets are `server1` and
/// `disk1`, to be replaced. The text ends with a line feed.
///
/// A trace without reads and writes gives a comment only.
pub fn synthetic(statistics: &Statistics, name: &str, source: &str) -> String {
    let mut text = format!("# Made by `sanloom trace inspect` from {}.\n", clean(source));
    let requests = statistics.reads + statistics.writes;
    if requests == 0 {
        text.push_str("# The trace has no reads and writes.\n");
        return text;
    }
    kept(&mut text, statistics);
    let names = ["sequential", "random"];
    let is_kept = |part: &Part| (part.reads + part.writes) as f64 >= SMALLEST_PART * requests as f64;
    let parts: Vec<usize> = (0..2).filter(|part| is_kept(&statistics.parts[*part])).collect();
    for part in &parts {
        let suffix = if parts.len() > 1 { format!("-{}", names[*part]) } else { String::new() };
        section(&mut text, statistics, &format!("{name}{suffix}"), *part);
    }
    text
}

/// Comment with the numbers that the sections keep and those that they do not.
fn kept(text: &mut String, statistics: &Statistics) {
    text.push_str(
        "# Kept: mix, sizes, mean rate, share of sequential requests, footprint, share of the hot part.\n\
         # Not kept:\n",
    );
    let dispersion = statistics.arrivals.bursts.last();
    if let Some(burst) = dispersion {
        let (index, window) = (burst.index_of_dispersion, burst.window_s);
        let _ = writeln!(text, "# - bursts: index of dispersion {index:.1} in windows of {window} s, Poisson has 1");
    }
    text.push_str(
        "# - order of the requests, reuse distances, and the relation of size, operation and address\n\
         # - distances between addresses: the footprint is placed without gaps\n",
    );
    if statistics.sequential.runs > 0 {
        let mean = statistics.sequential.mean_requests;
        let _ = writeln!(text, "# - length of sequential runs: {mean:.1} requests on average");
    }
    if statistics.trims + statistics.flushes > 0 {
        let _ = writeln!(text, "# - {} trims and {} flushes", statistics.trims, statistics.flushes);
    }
    if statistics.devices.len() > 1 {
        let _ = writeln!(text, "# - division of the requests among {} devices", statistics.devices.len());
    }
    text.push_str("# Replace the names of the host and of the target.\n");
}

fn section(text: &mut String, statistics: &Statistics, name: &str, part: usize) {
    let own = &statistics.parts[part];
    let requests = (own.reads + own.writes) as f64;
    let sizes = sizes(own);
    let _ = writeln!(text, "\n[workload.{name}]\nhosts = \"server1\"\ntargets = \"disk1\"");
    // The last request ends no gap.
    let all = (statistics.requests - 1).max(1) as f64 / statistics.requests as f64;
    let own_rate = if own_is_all(statistics, part) { (statistics.reads + statistics.writes) as f64 } else { requests };
    let rate = own_rate * all / statistics.duration_s;
    match &statistics.think {
        // A trace with think times is a closed loop of one request at a time.
        Some(think) if own_is_all(statistics, part) => {
            let _ = writeln!(text, "depth = 1\nthink_time = \"{}us\"", decimal(think.mean_us, 3));
        }
        _ if statistics.duration_s > 0.0 => {
            let variation = statistics.arrivals.variation.filter(|variation| GAMMA.contains(variation));
            let is_constant = statistics.arrivals.variation.is_some_and(|variation| variation < *GAMMA.start());
            let is_poisson = variation.is_none_or(|variation| POISSON.contains(&variation));
            if own_is_all(statistics, part) && !is_poisson {
                let mean_us = 1e6 / rate;
                let deviation_us = mean_us * variation.unwrap_or(1.0).sqrt();
                let (mean, deviation) = (decimal(mean_us, 3), decimal(deviation_us, 3));
                let process = format!("process = \"gamma\", mean = \"{mean}us\", deviation = \"{deviation}us\"");
                let _ = writeln!(text, "arrivals = {{ {process} }}");
            } else {
                let process = if own_is_all(statistics, part) && is_constant { "constant" } else { "poisson" };
                let _ = writeln!(text, "arrivals = \"{process} {}/s\"", decimal(rate, 3));
            }
        }
        _ => text.push_str("depth = 1\n"),
    }
    match &sizes[..] {
        [(bytes, _)] => {
            let _ = writeln!(text, "size = \"{}\"", size(*bytes));
        }
        _ => {
            let weights = sizes.iter().map(|(bytes, weight)| format!("\"{}\" = {}", size(*bytes), decimal(*weight, 4)));
            let _ = writeln!(text, "size = {{ {} }}", weights.collect::<Vec<_>>().join(", "));
        }
    }
    let _ = writeln!(text, "read_share = {}", decimal(own.reads as f64 / requests, 4));
    let largest = sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(BLOCK);
    let span = statistics.locality.footprint_bytes.max(largest);
    if part == 0 {
        let _ = writeln!(text, "location = \"sequential\"\nspan = \"{span}B\"");
        return;
    }
    let _ = writeln!(text, "location = \"random\"\nspan = \"{span}B\"");
    let hot = statistics.locality.hot.iter().find(|hot| hot.space == HOT_SPACE);
    if let Some(hot) = hot.filter(|hot| hot.accesses > HOT_SPACE) {
        let _ = writeln!(text, "hot = {{ requests = {}, space = {HOT_SPACE} }}", decimal(hot.accesses, 4));
    }
}

fn own_is_all(statistics: &Statistics, part: usize) -> bool {
    let other = &statistics.parts[1 - part];
    other.reads + other.writes < (SMALLEST_PART * (statistics.reads + statistics.writes) as f64).ceil() as u64
}

/// Most frequent sizes with their shares, in whole blocks. Other requests count for the size that
/// is nearest by ratio.
fn sizes(part: &Part) -> Vec<(u64, f64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, requests) in &part.sizes {
        *counts.entry(bytes.div_ceil(BLOCK).max(1) * BLOCK).or_default() += requests;
    }
    let mut frequent: Vec<(u64, u64)> = counts.iter().map(|(bytes, requests)| (*bytes, *requests)).collect();
    frequent.sort_by_key(|(bytes, requests)| (std::cmp::Reverse(*requests), *bytes));
    let rest = frequent.split_off(frequent.len().min(SIZES));
    for (bytes, requests) in rest {
        let ratio = |of: u64| if of > bytes { of as f64 / bytes as f64 } else { bytes as f64 / of as f64 };
        let nearest = frequent.iter_mut().min_by(|(one, _), (other, _)| ratio(*one).total_cmp(&ratio(*other)));
        nearest.into_iter().for_each(|(_, sum)| *sum += requests);
    }
    let all = frequent.iter().map(|(_, requests)| requests).sum::<u64>() as f64;
    frequent.sort_unstable();
    frequent.into_iter().map(|(bytes, requests)| (bytes, requests as f64 / all)).collect()
}

/// A size in the largest unit that expresses it as a whole number.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        bytes => format!("{bytes}B"),
    }
}

/// Formats a number with at most `digits` decimals, and at least one significant digit.
fn decimal(value: f64, digits: usize) -> String {
    let mut digits = digits;
    while value > 0.0 && digits < 12 && value * 10_f64.powi(digits as i32) < 1.0 {
        digits += 1;
    }
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Removes characters that would end a comment.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
