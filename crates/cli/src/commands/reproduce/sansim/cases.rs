//! The fabric of document 001, Figure 8, with its failures and loads.

use crate::exit::Failure;
use crate::run::{self, View};
use sanloom_api::results::{HostResult, Results};
use sanloom_core::config::{Arrival, Fault, FaultKind, Lab, Load, Picos, Rate, SizeDistribution};
use sanloom_lab::Override;
use std::sync::Arc;

/// The lab; what does not stand here stands there.
const CORE_EDGE: &str = include_str!("../../../../../../examples/core-edge.toml");

/// Which inter-switch links fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// None.
    Healthy,
    /// ISL1.
    Isl1,
    /// ISL8.
    Isl8,
    /// ISL1 and ISL8.
    Both,
}

/// How the fabric is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Our reading of the paper: the preset `sansim-2004`.
    Sansim,
    /// The preset `default` on the same cabling.
    Realistic,
}

/// How much is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ask {
    /// 32 requests are always under way on each server.
    Saturated,
    /// The same, and all of them go to the first device.
    OneDevice,
    /// Poisson arrivals; mean offered load of each server in MB/s of 1000 * 1024 bytes.
    Offered(f64),
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setup {
    /// What fails.
    pub case: Case,
    /// Size of a request in KB of 1024 bytes.
    pub size_kib: u32,
    /// How the fabric is modelled.
    pub model: Model,
    /// How much is asked for.
    pub ask: Ask,
}

/// What a run measured, in MB/s of 1000 * 1024 bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Mean throughput of servers 1 to 4, and 5 to 8.
    pub servers: [f64; 2],
    /// Mean response time of servers 1 to 4, and 5 to 8, waiting in the server included, in milliseconds.
    pub response_ms: [f64; 2],
    /// Data per second in the busier direction of ISL1, ISL2, …
    pub isls: Vec<f64>,
    /// Requests per second of all servers.
    pub iops: f64,
}

impl Case {
    /// All, in the paper's order.
    pub const ALL: [Case; 4] = [Case::Healthy, Case::Isl1, Case::Isl8, Case::Both];

    /// The paper's number.
    pub fn numeral(self) -> &'static str {
        match self {
            Case::Healthy => "I",
            Case::Isl1 => "II",
            Case::Isl8 => "III",
            Case::Both => "IV",
        }
    }

    /// What fails, in words.
    pub fn words(self) -> &'static str {
        match self {
            Case::Healthy => "no link failure",
            Case::Isl1 => "ISL1 failure",
            Case::Isl8 => "ISL8 failure",
            Case::Both => "ISL1 and ISL8 failure",
        }
    }

    fn failed(self) -> &'static [&'static str] {
        match self {
            Case::Healthy => &[],
            Case::Isl1 => &["ISL1"],
            Case::Isl8 => &["ISL8"],
            Case::Both => &["ISL1", "ISL8"],
        }
    }
}

/// Overrides that put the realistic default on the paper's cabling, buffers and devices.
const REALISTIC: [(&str, &str); 9] = [
    ("lab.preset", "default"),
    ("link.*.rate", "2GFC"),
    ("link.*.length", "50m"),
    ("isl.*.rate", "2GFC"),
    ("isl.*.length", "50m"),
    ("switch.*.buffers", "4"),
    ("host.*.frame_buffers", "32"),
    ("storage.*.frame_buffers", "32"),
    ("storage.*.rate", "22.5k/s"),
];

impl Setup {
    /// The paper's reading, saturated.
    pub fn saturated(case: Case, size_kib: u32) -> Setup {
        Setup { case, size_kib, model: Model::Sansim, ask: Ask::Saturated }
    }

    /// The lab of this run. Runs under an offered load are half as long, because there are so many of them.
    ///
    /// # Errors
    /// When the duration makes no sense.
    pub fn lab(&self, duration: &str, seed: u64) -> Result<Arc<Lab>, Failure> {
        let mut set = vec![
            ("run.duration", duration.to_owned()),
            ("run.warmup", "0s".to_owned()),
            ("run.seed", seed.to_string()),
        ];
        if self.model == Model::Realistic {
            set.extend(REALISTIC.map(|(key, value)| (key, value.to_owned())));
        }
        if self.ask == Ask::OneDevice {
            set.push(("workload.reads.targets", "disk1".into()));
        }
        let overrides: Vec<Override> =
            set.into_iter().map(|(key, value)| Override { key: key.to_owned(), value }).collect();
        let mut lab = sanloom_lab::load("core-edge.toml", CORE_EDGE, &overrides)?.lab;
        self.edit(&mut lab);
        Ok(Arc::new(lab))
    }

    fn edit(&self, lab: &mut Lab) {
        let bytes = self.size_kib * 1024;
        for workload in &mut lab.workloads {
            workload.size = SizeDistribution::Fixed(bytes);
            if let Ask::Offered(load) = self.ask {
                let rate = Rate(load * 1_024_000.0 / f64::from(bytes));
                workload.load = Load::Open(vec![Arrival::Poisson { rate }]);
            }
        }
        if matches!(self.ask, Ask::Offered(_)) {
            lab.run.duration = Picos(lab.run.duration.0 / 2);
        }
        lab.run.warmup = Picos(lab.run.duration.0 / 10);
        for (link, index) in lab.links.iter().zip(0..) {
            if self.case.failed().contains(&link.name.as_str()) {
                lab.faults.push(Fault { at: Picos::ZERO, until: None, kind: FaultKind::LinkDown { link: index } });
            }
        }
    }
}

/// Simulates a lab of ours; `None` if it was interrupted.
pub fn measure(lab: &Arc<Lab>) -> Option<Measured> {
    let results = run::run(lab, View::default()).results;
    (!results.lab.interrupted).then(|| read(&results))
}

fn read(results: &Results) -> Measured {
    let half = results.hosts.len() / 2;
    let (first, second) = results.hosts.split_at(half);
    let throughput = |hosts: &[HostResult]| mean(hosts, |host| host.io.throughput_sansim_mb_per_s());
    let response = |hosts: &[HostResult]| mean(hosts, |host| host.io.latency.mean_us / 1e3);
    let isls = results.links.iter().filter(|link| link.name.starts_with("ISL"));
    Measured {
        servers: [throughput(first), throughput(second)],
        response_ms: [response(first), response(second)],
        isls: isls
            .map(|link| {
                let (there, back) = (&link.forward, &link.backward);
                there.throughput_bytes_per_s.max(back.throughput_bytes_per_s) / 1_024_000.0
            })
            .collect(),
        iops: results.totals.io.iops,
    }
}

fn mean(hosts: &[HostResult], value: impl Fn(&HostResult) -> f64) -> f64 {
    hosts.iter().map(value).sum::<f64>() / hosts.len().max(1) as f64
}
