//! Closed networks: mean-value analysis, and the bounds of a closed loop with constant times.

use super::bed::{Sample, repeated};
use super::latency::{behind_line_us, command_us};
use super::lines::{Generation, read_slots};
use super::queues::exponential;
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;

const NETWORK: Basis = Basis {
    section: "Closed networks",
    source: "Exact mean-value analysis (Reiser and Lavenberg 1980): K equal stations with exponential service, which are the \
             lines of K storage systems under reads of exponential size, and a delay, which is the think time",
    tolerance_reason: "3 %, because sizes are whole sectors and frames have overhead; the 95 % confidence interval must lie \
                       within it",
};

const CONSTANT: Basis = Basis {
    section: "Closed networks",
    source: "Asymptotic bounds (Denning and Buzen 1978), which constant times reach: the smaller of N / (service + delay) and \
             1 / service",
    tolerance_reason: "two requests at the ends of the measured time",
};

/// Line rate of the storage systems, and of the host.
const SLOW: &str = "1GFC";
const FAST: &str = "128GFC";
/// Mean size of a request, and the largest size, in bytes.
const MEAN: u64 = 64 << 10;
const MAX: u64 = 1 << 20;
/// Think time and storage service, in µs.
const THINK_US: f64 = 1_000.0;
const SERVICE_US: f64 = 10.0;

/// Stations and customers of the networks.
pub const NETWORKS: [(u32, u32); 6] = [(1, 1), (1, 2), (1, 8), (4, 4), (4, 16), (8, 32)];

/// Returns the throughput of a closed network per unit of time: `stations` equal ones with mean
/// service `service`, each visited with the same probability, and a delay.
pub fn throughput(stations: u32, customers: u32, service: f64, delay: f64) -> f64 {
    let share = 1.0 / f64::from(stations);
    let (mut length, mut rate) = (0.0, 0.0);
    for number in 1..=customers {
        let response = service * (1.0 + length);
        rate = f64::from(number) / (delay + response);
        length = rate * share * response;
    }
    rate
}

fn lab(
    stations: u32,
    customers: u32,
    size: &str,
    think_us: f64,
    [warmup_us, measured_us]: [f64; 2],
    seed: u32,
) -> String {
    format!(
        r#"
        [run]
        duration = "{}ns"
        warmup = "{}ns"
        seed = {seed}
        [switch.sw]
        buffers = 512
        [host.h]
        queue_depth = 1024
        frame_buffers = 512
        [storage."s{{1..{stations}}}"]
        rate = "{}/s"
        servers = 1000
        frame_buffers = 512
        [[link]]
        from = "h"
        to = "sw"
        rate = "{FAST}"
        length = "1m"
        [[link]]
        from = "s{{1..{stations}}}"
        to = "sw"
        rate = "{SLOW}"
        length = "1m"
        [workload.w]
        hosts = "h"
        targets = "s{{1..{stations}}}"
        size = {size}
        depth = {customers}
        think_time = "{think_us}us"
        "#,
        ((warmup_us + measured_us) * 1e3) as u64,
        (warmup_us * 1e3) as u64,
        1e6 / SERVICE_US,
    )
}

/// Returns the times of a request outside of the line of its storage system, in µs, without the
/// think time: the command on both links, the service, and the response behind the line.
fn fixed_us() -> f64 {
    let (slow, fast) = (Generation::named(SLOW), Generation::named(FAST));
    command_us(fast, slow) + SERVICE_US + behind_line_us(fast, slow)
}

/// Returns the row of a network.
pub fn network_rows(stations: u32, customers: u32, sample: Sample) -> Result<Vec<Row>, Failure> {
    let slow = Generation::named(SLOW);
    let service: f64 = exponential(MEAN, MAX).iter().map(|&(size, share)| share * slow.us(read_slots(size))).sum();
    let theory = throughput(stations, customers, service, THINK_US + fixed_us()) * 1e6;
    let measured_us = sample.of(1_500.0, 60_000.0) / theory * 1e6;
    let size = format!("{{ distribution = \"exponential\", mean = \"{MEAN}B\", max = \"{MAX}B\" }}");
    let times = [20.0 * (service * f64::from(customers) + THINK_US), measured_us];
    let text = |seed| lab(stations, customers, &size, THINK_US, times, seed);
    let ours = repeated("closed", sample.of(5.0, 8.0) as u32, text, |results| results.totals.io.iops)?;
    let plural = if stations == 1 { "station" } else { "stations" };
    let what = format!("{stations} {plural}, {customers} in the loop");
    let row =
        NETWORK.row(format!("mva-{stations}-{customers}"), what, "requests/s", theory, Some(ours.mean), 0.03 * theory);
    Ok(vec![row.interval(ours.half_width)])
}

/// Customers of the loops with constant times.
pub const LOOPS: [u32; 3] = [1, 2, 16];

/// Returns the row of a loop with constant times.
pub fn constant_rows(customers: u32, sample: Sample) -> Result<Vec<Row>, Failure> {
    let service = Generation::named(SLOW).us(read_slots(MEAN));
    let rate = (f64::from(customers) / (service + THINK_US + fixed_us())).min(1.0 / service);
    let requests = sample.of(300.0, 3_000.0);
    let times = [50.0 / rate, requests / rate];
    let text = |seed| lab(1, customers, &format!("\"{MEAN}B\""), THINK_US, times, seed);
    let ours = repeated("closed", 1, text, |results| results.totals.io.iops)?;
    let what = format!("constant service, {customers} in the loop");
    let theory = rate * 1e6;
    let id = format!("closed-constant-{customers}");
    Ok(vec![CONSTANT.row(id, what, "requests/s", theory, Some(ours.mean), 2.0 / requests * theory)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closed M/M/1 queue with a delay is a machine-repair model: Erlang's formula gives its
    /// throughput.
    #[test]
    fn one_station_is_the_machine_repair_model() {
        let (service, delay) = (2.0, 7.0);
        for customers in 1..=12_u32 {
            // p(n) of n requests at the station, relative to p(0).
            let mut weights = vec![1.0];
            for number in 1..=customers {
                let waiting = f64::from(customers - number + 1);
                weights.push(weights[number as usize - 1] * waiting * service / delay);
            }
            let total: f64 = weights.iter().sum();
            let formula = (1.0 - 1.0 / total) / service;
            assert!((throughput(1, customers, service, delay) - formula).abs() < 1e-12, "{customers}");
        }
    }

    /// Without a delay, K balanced stations have the throughput N / (N + K - 1) × K / service.
    #[test]
    fn balanced_stations_follow_the_formula() {
        for (stations, customers) in [(1, 5), (2, 3), (8, 32)] {
            let (k, n) = (f64::from(stations), f64::from(customers));
            let formula = n / (n + k - 1.0) * k / 3.0;
            assert!((throughput(stations, customers, 3.0, 0.0) - formula).abs() < 1e-12);
        }
    }
}
