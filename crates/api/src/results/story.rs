//! What happened, and what it means: [`Event`], [`Finding`].

use serde::{Deserialize, Serialize};

/// Something that happened and is worth a line.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// When, in seconds since the start of the workloads.
    pub at_s: f64,
    /// What kind of thing.
    pub kind: EventKind,
    /// What happened, in one sentence without a full stop.
    pub what: String,
    /// Link, port, path or node that it happened to.
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
    /// A switch runs again.
    SwitchUp,
    /// Frames that had waited for the hold time were discarded.
    FramesDiscarded,
    /// Links between switches carry traffic or carry none any more, and with them the routes change.
    Reroute,
    /// A port is isolated from the switch at its other end.
    Isolated,
    /// A change of the zones is in force in the whole fabric, or did not happen.
    ZoneChange,
    /// A switch told its N_Ports of a change.
    Rscn,
    /// A port logged in to the fabric again.
    Login,
    /// The multipath layer moved commands to other paths.
    PathFailover,
    /// A path came back.
    PathRestored,
    /// A host has no path left to a storage system.
    PathsLost,
    /// A command was aborted.
    CommandAborted,
    /// A request failed for good.
    IoFailed,
    /// Ports wait for each other's credit in a circle.
    Deadlock,
    /// Nothing ended for a long time.
    Stall,
}

impl EventKind {
    /// The name that JSON has, in words: `link reset`.
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
            EventKind::ZoneChange => "zone change",
            EventKind::Rscn => "RSCN",
            EventKind::Login => "login",
            EventKind::PathFailover => "path failover",
            EventKind::PathRestored => "path restored",
            EventKind::PathsLost => "paths lost",
            EventKind::CommandAborted => "command aborted",
            EventKind::IoFailed => "I/O failed",
            EventKind::Deadlock => "deadlock",
            EventKind::Stall => "stall",
        }
    }
}

/// What an engineer would want to be told first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The finding in one sentence without a full stop.
    pub title: String,
    /// What it rests on: the numbers.
    pub detail: String,
    /// What to do about it; empty: nothing to say.
    pub remedy: String,
    /// Who causes it: a port, link or node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// Who suffers.
    pub victims: Vec<Victim>,
    /// The ports of a deadlock, each waiting for credit of the next and the last for the first.
    pub cycle: Vec<String>,
    /// When it begins, in seconds since the start of the workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_s: Option<f64>,
    /// When it ends; absent: it lasts to the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// Kinds of [`Finding`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A slow receiver keeps frames of others in the buffers of the fabric.
    #[default]
    SlowDrain,
    /// Credits were lost.
    CreditLoss,
    /// Ports wait for each other's credit in a circle.
    Deadlock,
    /// I/O stood still for a while.
    Stall,
    /// A link carries all it can.
    Bottleneck,
    /// A storage controller does all it can.
    StorageBound,
    /// Requests failed.
    IoFailures,
    /// A link between switches carries no traffic, because its ends do not agree.
    IsolatedLink,
    /// A switch did not take everybody who wanted to log in.
    LoginsRejected,
    /// Hosts have never had a path to storage that they are to use.
    NoPath,
    /// A change of the zones did not happen.
    ZonesUnchanged,
}

impl FindingKind {
    /// The kind in words: `slow drain`.
    pub fn words(self) -> &'static str {
        match self {
            FindingKind::SlowDrain => "slow drain",
            FindingKind::CreditLoss => "credit loss",
            FindingKind::Deadlock => "deadlock",
            FindingKind::Stall => "stall",
            FindingKind::Bottleneck => "bottleneck",
            FindingKind::StorageBound => "storage bound",
            FindingKind::IoFailures => "I/O failures",
            FindingKind::IsolatedLink => "isolated link",
            FindingKind::LoginsRejected => "logins rejected",
            FindingKind::NoPath => "no path",
            FindingKind::ZonesUnchanged => "zones unchanged",
        }
    }
}

/// Somebody who suffers from somebody else's fault.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Victim {
    /// Host, storage system, link or port.
    pub name: String,
    /// Throughput without the culprit, in bytes per second: before the fault, or of its fair share.
    pub before_bytes_per_s: f64,
    /// Throughput with it.
    pub during_bytes_per_s: f64,
    /// Time that its frames waited for credit because of the culprit, in seconds; 0 if not known.
    pub credit_wait_s: f64,
}

impl Victim {
    /// Share of the throughput that is lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.before_bytes_per_s > 0.0 {
            (1.0 - self.during_bytes_per_s / self.before_bytes_per_s).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}
