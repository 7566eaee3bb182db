//! Queues with Poisson arrivals: M/D/c at a storage controller, M/G/1 at a line.

use super::bed::{Sample, repeated};
use super::latency::{behind_line_us, command_us};
use super::lines::{Generation, read_slots};
use super::row::{Basis, Row};
use sanloom_console::exit::Failure;

const CONTROLLER: Basis = Basis {
    section: "M/D/c: waiting for a storage controller",
    source: "Crommelin 1932, as a sum by Spitzer's identity (1956): Σ [P(N_i ≥ ic) - P(N_i > ic) / ρ] service times, where N_i \
             is Poisson with mean icρ. For c = 1 it is the formula of Pollaczek and Khinchine",
    tolerance_reason: "3 %, and the 95 % confidence interval over the seeds must lie within it",
};

const LINE: Basis = Basis {
    section: "M/G/1: waiting for a line",
    source: "Pollaczek 1930, Khinchine 1932: λ E[S²] / (2 (1 - ρ)); S is the line time of the data and the response of a \
             read, with gaps",
    tolerance_reason: "3 %, and the 95 % confidence interval over the seeds must lie within it",
};

/// Largest accepted deviation, as a share of the theory.
const TOLERANCE: f64 = 0.03;
/// Service time of the controller, in µs.
const SERVICE_US: f64 = 10.0;

/// Servers and utilisation of the controllers.
pub const CONTROLLERS: [(usize, f64); 7] = [(1, 0.3), (1, 0.5), (1, 0.8), (2, 0.7), (4, 0.8), (8, 0.8), (16, 0.9)];

/// Returns the mean wait in M/D/c, in service times. `load` is the utilisation of a server.
///
/// Every c-th customer uses the same server, so the wait is that of a queue with Erlang-c times
/// between arrivals. Spitzer's identity gives its mean as the sum over i of the mean excess of i
/// service times over ic arrivals, divided by i.
pub fn mdc_wait(servers: usize, load: f64) -> f64 {
    let arrivals = load * servers as f64;
    // Exponential decay of the terms (Chernoff): below 1e-14 they are left out.
    let decay = servers as f64 * (load - 1.0 - load.ln());
    let terms = (32.0 / decay).ceil() as usize + 1;
    let mut log_factorial = 0.0;
    let mut total = 0.0;
    for i in 1..=terms {
        log_factorial += ((i - 1) * servers + 1..=i * servers).map(|k| (k as f64).ln()).sum::<f64>();
        let (mean, least) = (i as f64 * arrivals, (i * servers) as f64);
        let exactly = (least * mean.ln() - mean - log_factorial).exp();
        // Probability of more than `least` arrivals, relative to exactly `least`.
        let (mut more, mut term, mut count) = (0.0, 1.0, least);
        while term > 1e-16 {
            count += 1.0;
            term *= mean / count;
            more += term;
        }
        total += exactly * (1.0 + more - more / load);
    }
    total
}

/// Returns the lab of an M/D/c queue.
pub fn controller_lab(servers: usize, load: f64, commands: f64, seed: u64) -> String {
    let rate = load * servers as f64 / SERVICE_US * 1e6;
    let measured_us = commands / rate * 1e6;
    let warmup_us = measured_us * 0.2 + 40.0 * SERVICE_US / (1.0 - load).powi(2);
    format!(
        r#"
        [run]
        duration = "{}ns"
        warmup = "{}ns"
        seed = {seed}
        [host.h]
        queue_depth = 16384
        frame_buffers = 1024
        [storage.s]
        rate = "{}/s"
        servers = {servers}
        frame_buffers = 1024
        [switch.sw]
        [[link]]
        from = "{{h,s}}"
        to = "sw"
        rate = "128GFC"
        length = "1m"
        [workload.w]
        hosts = "h"
        targets = "s"
        size = "512B"
        arrivals = "poisson {rate}/s"
        "#,
        ((warmup_us + measured_us) * 1e3) as u64,
        (warmup_us * 1e3) as u64,
        1e6 / SERVICE_US,
    )
}

/// Returns the row of a controller.
pub fn controller_rows(servers: usize, load: f64, sample: Sample) -> Result<Vec<Row>, Failure> {
    let theory = mdc_wait(servers, load) * SERVICE_US;
    let commands = sample.of(8_000.0, 400_000.0);
    let text = |seed: u32| controller_lab(servers, load, commands, seed.into());
    let waiting = |results: &sanloom_api::results::Results| {
        results.storage.first().map_or(f64::NAN, |storage| storage.waiting.mean_us)
    };
    let ours = repeated("m-d-c", sample.of(5.0, 10.0) as u32, text, waiting)?;
    let what = format!("M/D/{servers}, utilisation {load}");
    let id = format!("mdc-{servers}-{load}");
    let row = CONTROLLER.row(id, what, "µs", theory, Some(ours.mean), TOLERANCE * theory);
    Ok(vec![row.interval(ours.half_width)])
}

/// Sizes of the reads of an M/G/1 queue, with their probabilities.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sizes {
    Constant,
    Two,
    Exponential,
}

/// Sizes and utilisation of the lines.
pub const LINES: [(Sizes, f64); 5] = [
    (Sizes::Constant, 0.5),
    (Sizes::Two, 0.5),
    (Sizes::Two, 0.8),
    (Sizes::Exponential, 0.5),
    (Sizes::Exponential, 0.8),
];

impl Sizes {
    /// Returns the sizes in bytes with their probabilities.
    fn law(self) -> Vec<(u64, f64)> {
        match self {
            Sizes::Constant => vec![(16 << 10, 1.0)],
            Sizes::Two => vec![(4 << 10, 0.7), (64 << 10, 0.3)],
            Sizes::Exponential => exponential(16 << 10, 256 << 10),
        }
    }

    fn value(self) -> &'static str {
        match self {
            Sizes::Constant => "\"16KiB\"",
            Sizes::Two => "{ \"4KiB\" = 0.7, \"64KiB\" = 0.3 }",
            Sizes::Exponential => "{ distribution = \"exponential\", mean = \"16KiB\", max = \"256KiB\" }",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Sizes::Constant => "reads of 16 KiB",
            Sizes::Two => "reads of 4 KiB (70 %) and 64 KiB (30 %)",
            Sizes::Exponential => "reads of exponential size, mean 16 KiB",
        }
    }
}

/// Returns the law of exponential sizes in sectors of 512 bytes, cut at `max`.
pub fn exponential(mean: u64, max: u64) -> Vec<(u64, f64)> {
    let above = |bytes: u64| (-(bytes as f64) / mean as f64).exp();
    let last = max / 512;
    let share = |sector: u64| above((sector - 1) * 512) - if sector == last { 0.0 } else { above(sector * 512) };
    (1..=last).map(|sector| (sector * 512, share(sector))).collect()
}

/// Returns the row of a line.
pub fn line_rows(sizes: Sizes, load: f64, sample: Sample) -> Result<Vec<Row>, Failure> {
    let (slow, fast) = (Generation::named("4GFC"), Generation::named("128GFC"));
    let mean = |value: &dyn Fn(u64) -> f64| sizes.law().iter().map(|&(size, share)| share * value(size)).sum::<f64>();
    let service_us = |size| slow.us(read_slots(size));
    let service = mean(&service_us);
    let per_us = load / service;
    let theory = per_us * mean(&|size| service_us(size).powi(2)) / (2.0 * (1.0 - load));
    let fixed_us = command_us(fast, slow) + SERVICE_US + service + behind_line_us(fast, slow);
    let requests = sample.of(6_000.0, 300_000.0);
    let measured_us = requests / per_us;
    let warmup_us = measured_us * 0.2 + 40.0 * service / (1.0 - load).powi(2);
    let text = |seed: u32| {
        format!(
            r#"
            [run]
            duration = "{}ns"
            warmup = "{}ns"
            seed = {seed}
            [host.h]
            queue_depth = 16384
            frame_buffers = 1024
            [storage.s]
            rate = "{}/s"
            servers = 1000
            frame_buffers = 1024
            [switch.sw]
            buffers = 512
            [[link]]
            from = "h"
            to = "sw"
            rate = "{}"
            length = "1m"
            [[link]]
            from = "s"
            to = "sw"
            rate = "{}"
            length = "1m"
            [workload.w]
            hosts = "h"
            targets = "s"
            size = {}
            arrivals = "poisson {}/s"
            "#,
            ((warmup_us + measured_us) * 1e3) as u64,
            (warmup_us * 1e3) as u64,
            1e6 / SERVICE_US,
            fast.name,
            slow.name,
            sizes.value(),
            per_us * 1e6,
        )
    };
    let waiting = |results: &sanloom_api::results::Results| results.totals.io.latency.mean_us - fixed_us;
    let ours = repeated("m-g-1", sample.of(5.0, 10.0) as u32, text, waiting)?;
    let what = format!("{}, utilisation {load}", sizes.words());
    let id = format!("mg1-{sizes:?}-{load}").to_lowercase();
    let row = LINE.row(id, what, "µs", theory, Some(ours.mean), TOLERANCE * theory);
    Ok(vec![row.interval(ours.half_width)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_waits_as_pollaczek_and_khinchine_give() {
        for load in [0.1, 0.5, 0.8, 0.95] {
            let formula = load / (2.0 * (1.0 - load));
            assert!((mdc_wait(1, load) / formula - 1.0).abs() < 1e-6, "{load}: {}", mdc_wait(1, load));
        }
    }

    /// The number of customers at multiples of the service time is a Markov chain. Its stationary
    /// distribution and Little's law give the same wait.
    #[test]
    fn several_servers_wait_as_the_embedded_chain_gives() {
        for (servers, load) in [(1, 0.5), (2, 0.5), (4, 0.7), (8, 0.6)] {
            let (states, arrivals) = (100, load * servers as f64);
            let mut poisson = vec![f64::exp(-arrivals)];
            (1..states).for_each(|count| poisson.push(poisson[count - 1] * arrivals / count as f64));
            let mut now = vec![0.0; states];
            now[0] = 1.0;
            for _ in 0..200 {
                let mut next = vec![0.0; states];
                for (before, share) in now.iter().enumerate() {
                    let left = before.saturating_sub(servers);
                    (left..states).for_each(|count| next[count] += share * poisson[count - left]);
                }
                now = next;
            }
            let waiting = now.iter().enumerate().map(|(count, share)| count.saturating_sub(servers) as f64 * share);
            let chain = waiting.sum::<f64>() / arrivals;
            assert!((mdc_wait(servers, load) / chain - 1.0).abs() < 1e-6, "{servers}: {chain}");
        }
    }

    #[test]
    fn the_law_of_sizes_is_a_distribution() {
        let law = exponential(16 << 10, 256 << 10);
        assert!((law.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
