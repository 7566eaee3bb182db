//! Rows of the event log: [`EventsView`].

use serde::{Deserialize, Serialize};
use std::fmt;

/// Severity of an event, the most severe first, with the words of Fabric OS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The fabric no longer works.
    Critical,
    /// A part of the fabric no longer works.
    Error,
    /// A part of the fabric works less well, or a person should look at it.
    Warning,
    /// A change without harm.
    #[default]
    Info,
}

impl Severity {
    /// All severities, the most severe first.
    pub const ALL: [Severity; 4] = [Severity::Critical, Severity::Error, Severity::Warning, Severity::Info];

    /// Word in lower case, for example `warning`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }

    /// Severity of a word in upper or lower case.
    pub fn from_word(word: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| severity.word().eq_ignore_ascii_case(word))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The event log, oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct EventsView {
    /// The events that the log still holds.
    pub events: Vec<EventRow>,
    /// Number of older events that had to leave the log.
    pub discarded: u64,
    /// Time of day in seconds since 1970 at the time zero of the log; absent in a simulation
    /// without a clock. A log with another value is that of another instance, and counts from 1
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_unix_s: Option<f64>,
}

/// An event.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventRow {
    /// Number of the event in its instance, from 1. Numbers have no gap.
    pub sequence: u64,
    /// Time in seconds since the start of the workloads or of the instance.
    pub at_s: f64,
    /// Time in seconds since 1970 by the clock of the fabric; absent in a simulation without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_s: Option<f64>,
    /// Severity.
    pub severity: Severity,
    /// Identifier of the message, for example `PORT-1002`.
    pub id: String,
    /// Name of the switch; empty for an event of the whole instance.
    pub switch: String,
    /// Port, for example `sw1:3`; empty for an event of no port.
    pub port: String,
    /// Name of the user; empty if it is not known.
    pub user: String,
    /// Description.
    pub text: String,
    /// True for an action of a user or operator, which belongs to the audit log, too.
    pub audit: bool,
    /// Number of equal events in a row, which this row stands for.
    pub count: u64,
}
