//! The fabric of the SANSim paper, Figure 8, with its failures, its loads, and variants of its
//! model.

use sanloom_api::results::{HostResult, Results};
use sanloom_console::exit::Failure;
use sanloom_console::run::{self, View};
use sanloom_fc::config::{Arrival, Fault, FaultKind, Load, Picos, Rate, SizeDistribution};
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use std::sync::Arc;

/// The lab. This module sets only the values that differ from it.
const CORE_EDGE: &str = include_str!("../../../labs/core-edge.toml");

/// Failure of inter-switch links.
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

/// Model of the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Our reading of the paper: the preset `sansim-2004`.
    Sansim,
    /// The preset with FIFO input queues: only the first frame of a queue may leave.
    Fifo,
    /// The preset with the inter-switch link chosen by the ingress port.
    Ingress,
    /// The preset with the inter-switch link chosen by exchange.
    Exchange,
    /// The preset without a limit of data frames in flight.
    Unlimited,
    /// The preset `default` on the same cabling.
    Realistic,
}

/// Offered load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ask {
    /// 32 requests are always in flight on each server.
    Saturated,
    /// The same, with all requests to the first device.
    OneDevice,
    /// Poisson arrivals; mean offered load of each server in MB/s of 1000 * 1024 bytes.
    Offered(f64),
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setup {
    /// Failure.
    pub case: Case,
    /// Size of a request in KB of 1024 bytes.
    pub size_kib: u32,
    /// Model of the fabric.
    pub model: Model,
    /// Offered load.
    pub ask: Ask,
}

/// Results of a run; throughput is in MB/s of 1000 * 1024 bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Mean throughput of servers 1 to 4, and 5 to 8.
    pub servers: [f64; 2],
    /// Mean response time of servers 1 to 4, and 5 to 8, in milliseconds, with the time in the
    /// queue of the server.
    pub response_ms: [f64; 2],
    /// Data per second in the busier direction of ISL1, ISL2, …
    pub isls: Vec<f64>,
    /// Requests per second of all servers.
    pub iops: f64,
}

impl Case {
    /// All cases, in the paper's order.
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

    /// Description of the failure.
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

impl Model {
    /// All models that are shown beside the preset.
    pub const OTHERS: [Model; 5] = [Model::Fifo, Model::Ingress, Model::Exchange, Model::Unlimited, Model::Realistic];

    /// Suffix of the fixed names of its numbers.
    pub fn id(self) -> &'static str {
        match self {
            Model::Sansim => "sansim",
            Model::Fifo => "fifo",
            Model::Ingress => "ingress",
            Model::Exchange => "exchange",
            Model::Unlimited => "unlimited",
            Model::Realistic => "default",
        }
    }

    /// Head of its column.
    pub fn words(self) -> &'static str {
        match self {
            Model::Sansim => "preset",
            Model::Fifo => "FIFO queues",
            Model::Ingress => "ISL by ingress",
            Model::Exchange => "ISL by exchange",
            Model::Unlimited => "unlimited in flight",
            Model::Realistic => "preset `default`",
        }
    }

    /// Difference from the preset `sansim-2004`.
    pub fn note(self) -> &'static str {
        match self {
            Model::Sansim => "The preset `sansim-2004`.",
            Model::Fifo => {
                "queueing = fifo: a frame to a busy output holds back the frames behind it (head-of-line blocking, which \
                 the document names as a probable cause in cases II and IV)."
            }
            Model::Ingress => "isl_choice = ingress: all frames of an input port take the same inter-switch link.",
            Model::Exchange => "isl_choice = exchange: all frames of an exchange take the same inter-switch link.",
            Model::Unlimited => {
                "data_frames_in_flight = unlimited: 32 whole requests of a server are in flight, also at 32 KB."
            }
            Model::Realistic => {
                "Preset `default` on the paper's cabling, buffers and devices. Cut-through, FIFO queues, 700 ns per \
                 switch, inter-switch links chosen by exchange, 32 whole requests in flight."
            }
        }
    }

    fn overrides(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Model::Sansim => &[],
            Model::Fifo => &[("switch.*.queueing", "fifo")],
            Model::Ingress => &[("switch.*.isl_choice", "ingress")],
            Model::Exchange => &[("switch.*.isl_choice", "exchange")],
            Model::Unlimited => &[("host.*.data_frames_in_flight", "unlimited")],
            Model::Realistic => &REALISTIC,
        }
    }
}

/// Overrides that put the preset `default` on the paper's cabling, buffers and devices.
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
    /// Creates a saturated run of the preset.
    pub fn saturated(case: Case, size_kib: u32) -> Setup {
        Setup { case, size_kib, model: Model::Sansim, ask: Ask::Saturated }
    }

    /// Returns the lab of this run. Runs under an offered load are half as long as the saturated
    /// ones, and runs of other models a fifth as long, because there are many of them.
    ///
    /// # Errors
    /// If the duration is invalid.
    pub fn lab(&self, duration: &str, seed: u64) -> Result<Arc<Lab>, Failure> {
        let mut set = vec![
            ("run.duration", duration.to_owned()),
            ("run.warmup", "0s".to_owned()),
            ("run.seed", seed.to_string()),
        ];
        set.extend(self.model.overrides().iter().map(|(key, value)| (*key, (*value).to_owned())));
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
        let share = match (self.ask, self.model) {
            (Ask::Offered(_), _) => 2,
            (_, Model::Sansim) => 1,
            (_, _) => 5,
        };
        lab.run.duration = Picos(lab.run.duration.0 / share);
        lab.run.warmup = Picos(lab.run.duration.0 / 10);
        for (link, index) in lab.links.iter().zip(0..) {
            if self.case.failed().contains(&link.name.as_str()) {
                lab.faults.push(Fault { at: Picos::ZERO, until: None, kind: FaultKind::LinkDown { link: index } });
            }
        }
    }
}

/// Simulates a lab; returns `None` if the run was interrupted.
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
