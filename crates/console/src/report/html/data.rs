//! Chart data of the report, reduced so that a page of a big lab stays below 5 MB.

use sanloom_api::results::{HistogramBucket, HostSeries, LinkSeries, Results};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Maximum number of hosts with a curve.
const HOSTS: usize = 32;
/// Maximum number of link directions in the heat map.
const LINKS: usize = 48;
/// Maximum number of steps of a curve; adjacent steps are averaged.
const STEPS: usize = 600;
/// Directions of links whose series a click in the drawing shows.
const PORTS: usize = 4_000;
/// Steps of these series, which are coarse because there are many.
const PORT_STEPS: usize = 60;
/// Maximum number of bins in the histogram of response times.
const BINS: usize = 72;
/// Maximum ratio of a bucket's upper to its lower bound, regardless of the gap below it.
const BUCKET: f64 = 1.02;
/// Maximum number of points of the distribution curve.
const POINTS: usize = 400;

/// Returns the number of hosts with a curve.
pub fn hosts_shown(results: &Results) -> usize {
    results.series.hosts.len().min(HOSTS)
}

/// Returns the number of link directions in the heat map.
pub fn links_shown(results: &Results) -> usize {
    results.series.links.len().min(LINKS)
}

/// Returns all chart data as one JSON value.
pub fn of(results: &Results) -> Value {
    let series = &results.series;
    let together = (series.steps as usize).div_ceil(STEPS).max(1);
    let curve = |values: &[f64], factor: f64| thinned(values, together, factor);
    let counts: Vec<f64> = series.total.frames_dropped.iter().map(|n| *n as f64).collect();
    let hosts: Vec<Value> = chosen_hosts(results)
        .into_iter()
        .map(|host| {
            json!({
                "name": host.name,
                "mb": curve(&host.throughput_bytes_per_s, 1e-6),
                "iops": curve(&host.iops, 1.0),
                "us": curve(&host.latency_mean_us, 1.0),
            })
        })
        .collect();
    let links: Vec<Value> = chosen_links(results)
        .into_iter()
        .map(|link| {
            json!({
                "name": link.name,
                "label": format!("{} > {}", link.from, link.to),
                "load": curve(&link.utilisation, 100.0),
                "wait": curve(&link.credit_wait_fraction, 100.0),
            })
        })
        .collect();
    let faults: Vec<Value> = results
        .faults
        .iter()
        .map(|fault| json!({"at": fault.at_s, "until": fault.until_s, "what": fault.what}))
        .collect();
    let findings: Vec<Value> = results
        .findings
        .iter()
        .map(|finding| {
            json!({
                "from": finding.from_s,
                "until": finding.until_s,
                "culprit": finding.culprit,
                "victims": finding.victims.iter().take(8).map(|v| &v.name).collect::<Vec<_>>(),
            })
        })
        .collect();
    let latency = &results.totals.io.latency;
    json!({
        "every": every(results),
        "step": series.interval_s * together as f64,
        "steps": (series.steps as usize).div_ceil(together),
        "warmup": results.lab.warmup_s,
        "end": results.lab.duration_s,
        "total": {
            "mb": curve(&series.total.throughput_bytes_per_s, 1e-6),
            "iops": curve(&series.total.iops, 1.0),
            "us": curve(&series.total.latency_mean_us, 1.0),
            "drops": thinned(&counts, together, together as f64),
        },
        "hosts": hosts,
        "links": links,
        "faults": faults,
        "findings": findings,
        "bins": bins(&results.totals.latency_histogram),
        "cdf": distribution(&results.totals.latency_histogram),
        "marks": if latency.count == 0 { json!([]) } else {
            json!([
                ["median", latency.p50_us],
                ["99 %", latency.p99_us],
                ["99.9 %", latency.p99_9_us],
            ])
        },
    })
}

/// The series of all ports, coarse: `[[link, from, to, [utilisation in %], [credit wait in %]],
/// …]`.
fn every(results: &Results) -> Value {
    let series = &results.series;
    let together = (series.steps as usize).div_ceil(PORT_STEPS).max(1);
    let whole = |values: &[f64]| -> Vec<i64> {
        let mean = |chunk: &[f64]| (chunk.iter().sum::<f64>() / chunk.len() as f64 * 100.0).round() as i64;
        values.chunks(together).map(mean).collect()
    };
    let port = |link: &LinkSeries| {
        let name = link.name.rsplit_once('.').map_or(link.name.as_str(), |(name, _)| name);
        json!([name, link.from, link.to, whole(&link.utilisation), whole(&link.credit_wait_fraction)])
    };
    json!({
        "step": series.interval_s * together as f64,
        "steps": (series.steps as usize).div_ceil(together),
        "ports": series.links.iter().take(PORTS).map(port).collect::<Vec<_>>(),
    })
}

/// Selects the hosts named by findings, then hosts from both ends of the throughput range, so that
/// starved and unaffected hosts are both shown. The order is that of the lab.
fn chosen_hosts(results: &Results) -> Vec<&HostSeries> {
    let hosts = &results.series.hosts;
    if hosts.len() <= HOSTS {
        return hosts.iter().collect();
    }
    let named = named_in_findings(results);
    let sum = |host: &HostSeries| host.throughput_bytes_per_s.iter().sum::<f64>();
    let mut by_throughput: Vec<usize> = (0..hosts.len()).collect();
    by_throughput.sort_by(|&a, &b| sum(&hosts[a]).total_cmp(&sum(&hosts[b])));
    let mut chosen: BTreeSet<usize> =
        (0..hosts.len()).filter(|&i| named.contains(hosts[i].name.as_str())).take(HOSTS / 2).collect();
    let (mut low, mut high) = (0, by_throughput.len());
    while chosen.len() < HOSTS && low < high {
        chosen.insert(by_throughput[low]);
        low += 1;
        if chosen.len() < HOSTS && low < high {
            high -= 1;
            chosen.insert(by_throughput[high]);
        }
    }
    chosen.into_iter().map(|i| &hosts[i]).collect()
}

fn named_in_findings(results: &Results) -> BTreeSet<&str> {
    results
        .findings
        .iter()
        .flat_map(|finding| {
            let victims = finding.victims.iter().map(|victim| victim.name.as_str());
            victims.chain(finding.culprit.as_deref())
        })
        .collect()
}

/// Selects the busiest and the most starved links, worst first. A short starvation counts by its
/// peak, because a mean would hide it.
fn chosen_links(results: &Results) -> Vec<&LinkSeries> {
    let mut links: Vec<(f64, &LinkSeries)> = results
        .series
        .links
        .iter()
        .map(|link| {
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
            let peak = link.credit_wait_fraction.iter().copied().fold(0.0, f64::max);
            let starved = (mean(&link.credit_wait_fraction) + peak) / 2.0;
            (mean(&link.utilisation).max(starved), link)
        })
        .collect();
    links.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    links.truncate(LINKS);
    links.into_iter().map(|(_, link)| link).collect()
}

/// Returns the means of `together` adjacent values, multiplied by `factor`.
fn thinned(values: &[f64], together: usize, factor: f64) -> Vec<Value> {
    values.chunks(together).map(|chunk| short(chunk.iter().sum::<f64>() / chunk.len() as f64 * factor)).collect()
}

/// Rounds to five significant digits: the resolution of a screen, in a third of the bytes.
fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(0);
    }
    let decimals = (4 - value.abs().log10().floor() as i32).clamp(0, 8) as usize;
    let rounded: f64 = format!("{value:.decimals$}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// Bins of equal width on a logarithmic axis: `[[lower_us, upper_us, percent], …]` without gaps.
fn bins(histogram: &[HistogramBucket]) -> Vec<Value> {
    let total: u64 = histogram.iter().map(|bucket| bucket.1).sum();
    let (Some(first), Some(last)) = (histogram.first(), histogram.last()) else {
        return Vec::new();
    };
    if total == 0 {
        return Vec::new();
    }
    let low = first.0.max(1e-3) * 0.97;
    let high = (last.0 * 1.03).max(low * 1.5);
    // A narrow distribution must not be cut finer than its buckets, or the bins between them would
    // be empty.
    let count = BINS.min(histogram.len().max(1) * 2);
    let ratio = (high / low).ln() / count as f64;
    let mut sums = vec![0.0; count];
    let at = |us: f64| ((us.max(low) / low).ln() / ratio).clamp(0.0, count as f64 - 1e-9);
    let mut before = 0.0f64;
    for HistogramBucket(upper, n) in histogram {
        // A bucket sometimes crosses the edge of a bin. Without sharing, adjacent bins would differ
        // erratically.
        let (from, to) = (at(before.max(upper / BUCKET)), at(*upper));
        before = *upper;
        let width = to - from;
        for (bin, sum) in sums.iter_mut().enumerate().take(to as usize + 1).skip(from as usize) {
            let part = (to.min(bin as f64 + 1.0) - from.max(bin as f64)).max(0.0);
            *sum += *n as f64 * if width > 0.0 { part / width } else { 1.0 };
        }
    }
    sums.iter()
        .enumerate()
        .map(|(i, n)| {
            json!([
                short(low * (ratio * i as f64).exp()),
                short(low * (ratio * (i + 1) as f64).exp()),
                short(n * 100.0 / total as f64),
            ])
        })
        .collect()
}

/// Points of the cumulative distribution: `[[us, percent], …]`.
fn distribution(histogram: &[HistogramBucket]) -> Vec<Value> {
    let total: u64 = histogram.iter().map(|bucket| bucket.1).sum();
    let every = histogram.len().div_ceil(POINTS).max(1);
    let mut sum = 0;
    let mut out = Vec::new();
    for (i, HistogramBucket(upper, n)) in histogram.iter().enumerate() {
        sum += n;
        if i % every == 0 || i + 1 == histogram.len() {
            let percent = sum as f64 * 100.0 / total.max(1) as f64;
            // The last digits matter for the tail.
            out.push(json!([short(*upper), (percent * 1e6).round() / 1e6]));
        }
    }
    out
}
