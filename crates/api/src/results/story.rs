//! Events of a run and conclusions from it: [`Event`], [`Finding`].

use super::Candidate;
use serde::{Deserialize, Serialize};

/// A notable event.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Time of the event, in seconds since the start of the workloads.
    pub at_s: f64,
    /// Kind of event.
    pub kind: EventKind,
    /// Description in one sentence, without a full stop.
    pub what: String,
    /// Affected link, port, path or node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// Kinds of [`Event`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A fault of the lab begins.
    #[default]
    FaultBegins,
    /// A fault of the lab ends.
    FaultEnds,
    /// A link went down.
    LinkDown,
    /// A link came up.
    LinkUp,
    /// A link was reset because its sender had no credit for E_D_TOV.
    LinkReset,
    /// A switch stopped.
    SwitchDown,
    /// A switch started again.
    SwitchUp,
    /// Frames were discarded because they had waited for the hold time.
    FramesDiscarded,
    /// Links between switches started or stopped carrying traffic, so the routes changed.
    Reroute,
    /// A port was isolated from the switch at its other end.
    Isolated,
    /// A quarantine of slow devices began or ended.
    Quarantine,
    /// A zone change came into force in the whole fabric, or failed.
    ZoneChange,
    /// A switch notified its N_Ports of a change.
    Rscn,
    /// A port logged in to the fabric again.
    Login,
    /// The multipath layer moved commands to other paths.
    PathFailover,
    /// A path was restored.
    PathRestored,
    /// A host has no path left to a storage system.
    PathsLost,
    /// A command was aborted.
    CommandAborted,
    /// A request failed after all retries.
    IoFailed,
    /// A controller of a storage system took over LUNs.
    Takeover,
    /// A storage system lost data, or returned wrong data.
    DataLoss,
    /// Ports wait for each other's credit in a cycle.
    Deadlock,
    /// No request completed for a long time.
    Stall,
}

impl EventKind {
    /// The JSON name in words: `link reset`.
    pub fn words(self) -> &'static str {
        match self {
            EventKind::FaultBegins => "fault begins",
            EventKind::FaultEnds => "fault ends",
            EventKind::LinkDown => "link down",
            EventKind::LinkUp => "link up",
            EventKind::LinkReset => "link reset",
            EventKind::SwitchDown => "switch down",
            EventKind::SwitchUp => "switch up",
            EventKind::FramesDiscarded => "frames discarded",
            EventKind::Reroute => "reroute",
            EventKind::Isolated => "isolated",
            EventKind::Quarantine => "quarantine",
            EventKind::ZoneChange => "zone change",
            EventKind::Rscn => "RSCN",
            EventKind::Login => "login",
            EventKind::PathFailover => "path failover",
            EventKind::PathRestored => "path restored",
            EventKind::PathsLost => "paths lost",
            EventKind::CommandAborted => "command aborted",
            EventKind::IoFailed => "I/O failed",
            EventKind::Takeover => "takeover",
            EventKind::DataLoss => "data loss",
            EventKind::Deadlock => "deadlock",
            EventKind::Stall => "stall",
        }
    }
}

/// An important conclusion for an engineer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Kind of finding.
    pub kind: FindingKind,
    /// The finding in one sentence without a full stop.
    pub title: String,
    /// Supporting measurements.
    pub detail: String,
    /// Suggested remedy; empty if there is none, or if none that was tried helps enough.
    pub remedy: String,
    /// Remedies that were tried on the lab and help, best first.
    pub remedies: Vec<Remedy>,
    /// Remedies to try.
    #[serde(skip)]
    pub candidates: Vec<Candidate>,
    /// Measure that decides whether a remedy helps.
    #[serde(skip)]
    pub measure: Measure,
    /// Culprit: a port, link or node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// All culprits, if there are several; `culprit` is the worst of them.
    #[serde(skip)]
    pub culprits: Vec<String>,
    /// Affected elements.
    pub victims: Vec<Victim>,
    /// Ports of a deadlock. Each waits for credit of the next, and the last waits for the first.
    pub cycle: Vec<String>,
    /// Start of the problem, in seconds since the start of the workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// End of the problem; absent if it lasts until the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// Kinds of [`Finding`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A slow receiver keeps frames for other receivers in the buffers of the fabric.
    #[default]
    SlowDrain,
    /// Credits were lost.
    CreditLoss,
    /// Ports wait for each other's credit in a cycle.
    Deadlock,
    /// Frames of a lossless priority were lost, because the headroom of an Ethernet switch was too
    /// small: an error of the lab.
    HeadroomLoss,
    /// Congestion of an Ethernet port pauses the senders of other traffic.
    CongestionSpreading,
    /// The queue of an Ethernet port drops frames although its line has room, and TCP waits for
    /// retransmission time-outs. Or a queue or a receive buffer drops frames of FCoE, and their
    /// commands wait.
    CongestionLoss,
    /// I/O stopped for some time.
    Stall,
    /// A link runs at its capacity.
    Bottleneck,
    /// A storage controller runs at its capacity.
    StorageBound,
    /// Requests failed.
    IoFailures,
    /// A link between switches carries no traffic, because the settings of its ends conflict.
    IsolatedLink,
    /// The ends of an Ethernet link keep different settings of PFC, because neither end is willing
    /// to take over those of the other one.
    DcbMismatch,
    /// A switch rejected logins.
    LoginsRejected,
    /// Hosts never had a path to their storage.
    NoPath,
    /// A zone change failed.
    ZonesUnchanged,
    /// An error in a trace ended its replay.
    BrokenTrace,
    /// A storage system lost data, or returned wrong data.
    DataLoss,
}

impl FindingKind {
    /// The kind in words: `slow drain`.
    pub fn words(self) -> &'static str {
        match self {
            FindingKind::SlowDrain => "slow drain",
            FindingKind::CreditLoss => "credit loss",
            FindingKind::Deadlock => "deadlock",
            FindingKind::HeadroomLoss => "headroom loss",
            FindingKind::CongestionSpreading => "congestion spreading",
            FindingKind::CongestionLoss => "congestion loss",
            FindingKind::Stall => "stall",
            FindingKind::Bottleneck => "bottleneck",
            FindingKind::StorageBound => "storage bound",
            FindingKind::BrokenTrace => "broken trace",
            FindingKind::IoFailures => "I/O failures",
            FindingKind::DataLoss => "data loss",
            FindingKind::IsolatedLink => "isolated link",
            FindingKind::DcbMismatch => "DCB mismatch",
            FindingKind::LoginsRejected => "logins rejected",
            FindingKind::NoPath => "no path",
            FindingKind::ZonesUnchanged => "zones unchanged",
        }
    }
}

/// Measure that decides whether a remedy helps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Throughput of the victims.
    #[default]
    Victims,
    /// Throughput of the link that is the culprit.
    Link,
    /// Throughput of all hosts.
    Total,
    /// Longest stall of the victims.
    Stall,
    /// Failed requests of all hosts.
    Failures,
}

/// A change of the lab that was tried in a simulation with the same seed, and helps.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Remedy {
    /// The change in words.
    pub what: String,
    /// The change as arguments of `--set`.
    pub set: Vec<String>,
    /// Measure that the change improves.
    pub measure: Measure,
    /// Throughput without the change, in bytes per second: of the victims, of the link, or of all
    /// hosts.
    pub before_bytes_per_s: f64,
    /// Throughput with the change, in bytes per second.
    pub after_bytes_per_s: f64,
    /// Longest stall of the victims without the change, in seconds.
    pub before_stall_s: f64,
    /// Longest stall of the victims with the change, in seconds.
    pub after_stall_s: f64,
    /// Failed requests of all hosts without the change.
    pub before_ios_failed: u64,
    /// Failed requests of all hosts with the change.
    pub after_ios_failed: u64,
    /// Improvement of the measure. Throughput: the part of the loss that the change restores, or
    /// the increase as a fraction of the value without the change if the loss is unknown. Stalls
    /// and failed requests: the part that the change avoids.
    pub gain: f64,
    /// Number of victims without the change.
    pub victims_before: u64,
    /// Number of victims with the change, as the finding of the changed lab counts them. If it is
    /// not 0, the finding remains.
    pub victims_after: u64,
    /// Largest share of its throughput that such a victim loses, 0 to 1; 0 without victims.
    pub loss_after: f64,
    /// Command that repeats the simulation with the change.
    pub command: String,
}

/// An element affected by a fault elsewhere.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Victim {
    /// Name of the host, storage system, link or port.
    pub name: String,
    /// Throughput without the culprit, in bytes per second: before the fault, or as the fair share.
    pub before_bytes_per_s: f64,
    /// Throughput with the culprit, in bytes per second.
    pub during_bytes_per_s: f64,
    /// Time in which its frames waited for credit because of the culprit, in seconds; 0 if unknown.
    pub credit_wait_s: f64,
}

impl Victim {
    /// Fraction of the throughput that is lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.before_bytes_per_s > 0.0 {
            (1.0 - self.during_bytes_per_s / self.before_bytes_per_s).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}
