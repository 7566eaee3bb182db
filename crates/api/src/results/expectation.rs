//! Verdicts on the lab's expectations: [`ExpectationResult`].

use super::Metrics;
use super::metric::{Fold, split_fold};
use serde::{Deserialize, Serialize};

/// A bound of the lab file and the measured value.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectationResult {
    /// Path of the number; see [`Metrics`].
    pub metric: String,
    /// Lower bound, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Upper bound, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Measured value; absent if the results have no such number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// True if the value exists, is within both bounds, and is about something; see `reason`.
    pub ok: bool,
    /// Reason why the number is about nothing: no host issued a request, or the elements of the
    /// path completed or carried nothing in the measured time. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Reason of a bound on the totals of a run without requests.
const NO_REQUEST: &str = "nothing was done: no host issued a request, so add a workload";
/// Reason of a bound on a part of the lab that completed nothing.
const NOTHING_COMPLETED: &str = "nothing completed in the measured time, so the bound holds for nothing";
/// Reason of an upper bound on links, switches, ports, sessions or channels without traffic.
const NOTHING_CARRIED: &str =
    "the elements of the path carried no data in the measured time, so the bound holds for nothing";
/// Reason of an upper bound on a part of the network in a run without a completed request.
const NOTHING_IN_THE_RUN: &str = "no request of the run completed in the measured time, so the bound holds for nothing";
/// Reason of a statistic without samples.
const NO_SAMPLE: &str = "nothing of this kind completed in the measured time, so there is no statistic";

/// Numbers that count what completed. An upper bound of 0 on them states that nothing completes.
const COMPLETIONS: [&str; 7] =
    ["ios_completed", "iops", "throughput_bytes_per_s", "reads", "writes", "read_bytes", "written_bytes"];

/// Numbers of a host that count logins and their requests.
const ABOUT_LOGINS: [&str; 2] = ["logins", "requests_unanswered"];

/// Parts of hosts, streams and storage systems that are about their requests. Other parts, such as
/// `raid`, work without them.
const ABOUT_REQUESTS: [&str; 4] = ["latency", "command_latency", "waiting", "queue"];

impl ExpectationResult {
    /// Compares a number of the results with its bounds.
    pub fn check(metrics: &Metrics, metric: &str, min: Option<f64>, max: Option<f64>) -> ExpectationResult {
        let value = metrics.get(metric);
        let mut verdict = ExpectationResult { metric: metric.to_owned(), min, max, value, ok: false, reason: None };
        verdict.reason = verdict.emptiness(metrics).map(str::to_owned);
        verdict.ok = verdict.is_within() && verdict.reason.is_none();
        verdict
    }

    /// Returns whether the value exists and is within both bounds.
    fn is_within(&self) -> bool {
        let (min, max) = (self.min.unwrap_or(f64::NEG_INFINITY), self.max.unwrap_or(f64::INFINITY));
        self.value.is_some_and(|value| (min..=max).contains(&value))
    }

    /// Returns the reason why the number is about nothing.
    fn emptiness(&self, metrics: &Metrics) -> Option<&'static str> {
        let requests = ["ios_offered", "ios_completed", "ios_failed", "ios_unfinished"];
        let is_idle = || requests.into_iter().all(|name| metrics.get(&format!("totals.{name}")) == Some(0.0));
        if self.value.is_some() && self.metric.contains("totals.") && is_idle() {
            return Some(NO_REQUEST);
        }
        let (_, path) = split_fold(self.metric.trim());
        let (parent, last) = path.rsplit_once('.')?;
        if self.value.is_none() && metrics.get(&format!("sum({parent}.count)")) == Some(0.0) {
            return Some(NO_SAMPLE);
        }
        let value = self.value?;
        if let Some(reason) = self.silence(metrics) {
            return Some(reason);
        }
        let owner = Owner::of(metrics, path)?;
        let states_nothing = COMPLETIONS.contains(&last) && self.max == Some(0.0);
        // A lower bound that holds is about what was counted.
        let is_counted = self.is_within() && self.min.is_some_and(|min| min > 0.0);
        if owner.completed > 0.0 || states_nothing || is_counted || !owner.is_about_requests {
            return None;
        }
        (value == 0.0 || owner.offered > 0.0).then_some(NOTHING_COMPLETED)
    }

    /// Returns the reason why an upper bound that holds for a part of the network is about nothing.
    fn silence(&self, metrics: &Metrics) -> Option<&'static str> {
        let (fold, path) = split_fold(self.metric.trim());
        let is_counted = self.min.is_some_and(|min| min > 0.0);
        if self.max.is_none() || is_counted || !self.is_within() || fold.is_some_and(Fold::counts) {
            return None;
        }
        let completed = metrics.get("totals.ios_completed");
        let in_the_run = || (completed == Some(0.0)).then_some(NOTHING_IN_THE_RUN);
        let (section, rest) = path.split_once('.')?;
        if OF_THE_RUN.contains(&section) {
            return in_the_run();
        }
        let kind = NETWORK.iter().find(|kind| kind.section == section)?;
        let (carried, numbers) = kind.carried(metrics, rest)?;
        let last = numbers.rsplit('.').next().unwrap_or(numbers);
        let states_nothing = kind.traffic.contains(&last) && self.max == Some(0.0);
        let first = numbers.split('.').next().unwrap_or(numbers);
        if states_nothing || kind.state.contains(&first) {
            return None;
        }
        (carried == 0.0).then_some(NOTHING_CARRIED).or_else(in_the_run)
    }
}

/// Sections without elements whose numbers are about the traffic of the whole run.
const OF_THE_RUN: [&str; 3] = ["drops", "subnet", "conservation"];

/// Type of elements that carry the traffic of hosts.
struct Carrier {
    /// List of the results.
    section: &'static str,
    /// Paths in an element whose sum is zero if it carried nothing.
    carried: &'static [&'static str],
    /// Numbers of traffic. An upper bound of 0 on them states that the element carries nothing.
    traffic: &'static [&'static str],
    /// Parts of an element that mean something without traffic.
    state: &'static [&'static str],
}

const LINE_TRAFFIC: [&str; 6] = ["frames", "packets", "bytes", "data_bytes", "throughput_bytes_per_s", "utilisation"];

const NETWORK: [Carrier; 10] = [
    Carrier {
        section: "links",
        carried: &["*.data_bytes"],
        traffic: &LINE_TRAFFIC,
        state: &["rate_bytes_per_s", "down_s"],
    },
    Carrier {
        section: "ethernet_links",
        carried: &["*.frames"],
        traffic: &LINE_TRAFFIC,
        state: &["rate_bytes_per_s", "downtime_s"],
    },
    Carrier {
        section: "infiniband_links",
        carried: &["*.packets"],
        traffic: &LINE_TRAFFIC,
        state: &["rate_bytes_per_s", "downtime_s"],
    },
    Carrier {
        section: "ports",
        carried: &["frames_sent", "frames_received"],
        traffic: &["frames_sent", "frames_received", "bytes_sent", "bytes_received"],
        state: &["buffers"],
    },
    Carrier {
        section: "loops",
        carried: &["tenancies"],
        traffic: &["tenancies", "circuits", "held_fraction"],
        state: &["tenancy_cost_us", "initialisations", "down_s"],
    },
    Carrier {
        section: "switches",
        carried: &["frames_forwarded"],
        traffic: &["frames_forwarded", "bytes_forwarded"],
        state: &[
            "domain",
            "logins",
            "logins_rejected",
            "name_server_requests",
            "rscns_sent",
            "zone_changes",
            "zone_changes_refused",
            "incident_reports_sent",
            "isolated_ports",
        ],
    },
    Carrier { section: "ethernet_switches", carried: &[], traffic: &[], state: &["memory_bytes"] },
    Carrier {
        section: "iscsi_sessions",
        carried: &["pdus_received"],
        traffic: &["pdus_sent", "pdus_received", "r2ts"],
        state: &["connections"],
    },
    Carrier { section: "fcip_links", carried: &["frames"], traffic: &["frames"], state: &["connections"] },
    Carrier {
        section: "srp_channels",
        carried: &["responses"],
        traffic: &["requests", "responses", "rdma_written_bytes", "rdma_read_bytes"],
        state: &["is_up", "connections", "partition_refusals"],
    },
];

impl Carrier {
    /// Returns the traffic of the elements of a path, summed, and the rest of the path after them.
    fn carried<'p>(&self, metrics: &Metrics, path: &'p str) -> Option<(f64, &'p str)> {
        // A name may contain dots, and begin with another name.
        path.rmatch_indices('.').find_map(|(at, _)| {
            let (name, numbers) = (&path[..at], &path[at + 1..]);
            let sum = |field: &&str| metrics.get(&format!("sum({}.{name}.{field})", self.section));
            let carried = match self.section {
                "ethernet_switches" => metrics.frames_into(name),
                _ => self.carried.iter().filter_map(sum).reduce(|a, b| a + b),
            };
            carried.map(|carried| (carried, numbers))
        })
    }
}

/// Elements of the results that a path leads through, with sums over them.
struct Owner {
    completed: f64,
    /// Requests of workloads; 0 for storage systems.
    offered: f64,
    /// The rest of the path is a number of the element itself or of [`ABOUT_REQUESTS`].
    is_about_requests: bool,
}

impl Owner {
    /// Returns the totals, hosts, streams or storage systems of a path. `None` for other paths.
    fn of(metrics: &Metrics, path: &str) -> Option<Owner> {
        let (section, rest) = path.split_once('.')?;
        let sum = |element: &str, field: &str| metrics.get(&format!("sum({element}.{field})"));
        if section == "totals" {
            let sum = |field| sum(section, field).unwrap_or(0.0);
            let (completed, offered) = (sum("ios_completed"), sum("ios_offered"));
            return Some(Owner { completed, offered, is_about_requests: true });
        }
        if !["hosts", "streams", "storage"].contains(&section) {
            return None;
        }
        // A name may contain dots, and begin with another name.
        rest.rmatch_indices('.').find_map(|(at, _)| {
            let element = format!("{section}.{}", &rest[..at]);
            let completed = sum(&element, "ios_completed")?;
            let is_about_requests = match rest[at + 1..].split_once('.') {
                None => !ABOUT_LOGINS.contains(&&rest[at + 1..]),
                Some((part, _)) => ABOUT_REQUESTS.contains(&part),
            };
            Some(Owner { completed, offered: sum(&element, "ios_offered").unwrap_or(0.0), is_about_requests })
        })
    }
}
