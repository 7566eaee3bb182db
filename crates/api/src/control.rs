//! The control interface of a running instance: [`Request`] and [`Answer`].
//!
//! A client connects to the control socket (Unix stream) and sends one request per line, as a JSON
//! object. The instance returns one line per request, in the same order. The fields `request` and
//! `answer` contain the kind. Unknown fields are ignored, so that either end may be newer.
//!
//! ```text
//!   > {"request":"show","table":"flogi"}
//!   < {"answer":"view","format":"sanloom-view","version":1,…,"view":"flogi","logins":[…]}
//!   > {"request":"port","port":"sw1:0","enabled":false}
//!   < {"answer":"done"}
//! ```
//!
//! A line that begins with `GET ` is an HTTP request instead: `/metrics` returns the result of
//! [`Request::Metrics`]. For example, `curl --unix-socket control.sock http://localhost/metrics`
//! reads the metrics.

use crate::apply::ApplyReport;
use crate::event_log::ClientEvent;
use crate::fcoe::{FcoeAnswer, FcoeRequest};
use crate::view::build::{LiveWhich, Which};
use crate::view::{PlaneWhich, View};
use crate::volume::VolumeAction;
use crate::zone_database::Edit;
use crate::zoning::{ZonePreview, ZoneStatus};
use serde::{Deserialize, Serialize};

/// A request of a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Returns a table. Reply: [`Answer::View`].
    Show {
        /// The requested table.
        table: ShowTable,
        /// Limits the table to this switch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch: Option<String>,
    },
    /// Disables or enables a port. Hosts connected to a disabled port receive Clear Virtual Links.
    Port {
        /// The port, for example `sw1:0`.
        port: String,
        /// True enables the port. It stays dark while its switch is disabled.
        enabled: bool,
        /// The user whom the event log names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RequestUser>,
    },
    /// Disables or enables several ports, each as [`Request::Port`]. All change, or none does.
    Ports {
        /// The changes, in their order.
        changes: Vec<PortChange>,
        /// The user whom the event log names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RequestUser>,
    },
    /// Disables or enables a switch. All ports of a disabled switch are dark. A port that is
    /// disabled itself stays so when its switch is enabled again.
    Switch {
        /// Name of the switch in the lab.
        switch: String,
        /// True enables the switch.
        enabled: bool,
        /// The user whom the event log names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RequestUser>,
    },
    /// Changes the state of a target port group. Hosts are informed by a unit attention.
    PortGroup {
        /// Name of the group in the lab.
        group: String,
        /// The new state, spelled as in the lab file; unchanged if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
        /// True if the group is preferred; unchanged if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preferred: Option<bool>,
    },
    /// Starts or ends the capture of a port. Reply: [`Answer::Done`] or [`Answer::Captured`].
    Capture {
        /// Link of the lab, or switch and port, for example `sw1:0`.
        link: String,
        /// Capture file (pcapng) that the instance writes. If absent, the request ends the capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// Starts or ends the trace of the requests to storage systems. Reply: [`Answer::Done`] or
    /// [`Answer::Traced`].
    Trace {
        /// Trace file that the instance writes. If absent, the request ends the trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Format of the trace, such as `fio-3`, which is the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// Hosts whose requests are written: names of hosts of the lab, WWPNs or iSCSI names. If
        /// empty, the requests of all initiators.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    /// Request to an FCoE host. Reply: [`Answer::Fcoe`] or [`Answer::Done`].
    Fcoe(FcoeRequest),
    /// Shows or changes the zones of a switch. Reply: [`Answer::Zones`] or [`Answer::ZonePreview`].
    Zone {
        /// The switch; if absent, the first switch that runs in the instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch: Option<String>,
        /// The user whom the event log names; the client of [`ZoneAction::As`] comes first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RequestUser>,
        /// Requested operation.
        #[serde(flatten)]
        action: ZoneAction,
    },
    /// Applies the changes of a lab file. Reply: [`Answer::Applied`], sent after the changes are
    /// complete.
    Apply {
        /// Text of the lab file.
        lab: String,
        /// Only reports the changes; changes nothing.
        #[serde(default)]
        preview: bool,
        /// Values that override those of the file, as `key=value`; they follow the overrides of the
        /// start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set: Vec<String>,
    },
    /// Injects a fault into frames that pass a port. Reply: the rules, as [`Answer::View`].
    Inject {
        /// The port, for example `sw1:0`.
        port: String,
        /// Condition for the frames: an expression of [`crate::inject`].
        #[serde(rename = "match")]
        matches: String,
        /// Action on the frames, see [`crate::inject::Act`].
        #[serde(rename = "do")]
        act: String,
        /// Number of frames to inject; all frames if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// Removes the rules of a port, or all rules. Reply: the removed rules, as [`Answer::View`].
    ClearInjections {
        /// The port; all ports if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<String>,
    },
    /// Shows or changes virtual disks. Reply: a table with the volume after the change, or
    /// [`Answer::Done`] if the volume is deleted.
    Volume {
        /// Requested operation.
        #[serde(flatten)]
        action: VolumeAction,
    },
    /// Returns the events of the log after a sequence number. Reply: [`Answer::View`].
    Events {
        /// Sequence number of the last event that the client has; 0 for all.
        #[serde(default)]
        after: u64,
    },
    /// Adds an event that a management interface has seen to the log. Reply: [`Answer::Done`].
    Log {
        /// The switch of the interface; absent for an interface of the whole instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch: Option<String>,
        /// The event.
        #[serde(flatten)]
        event: ClientEvent,
    },
    /// Returns metrics for monitoring. Reply: [`Answer::Metrics`].
    Metrics,
    /// Ends the instance, like SIGTERM.
    Stop,
}

/// Change of one of several ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortChange {
    /// The port, for example `sw1:0`.
    pub port: String,
    /// True enables the port. It stays dark while its switch is disabled.
    pub enabled: bool,
}

/// User of a management interface that sends a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestUser {
    /// Name of the user.
    pub user: String,
    /// Interface, for example `REST`.
    pub interface: String,
}

/// The tables of a running instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "there is no such table; the tables are switch, flogi, ns, fdmi, zone, fabric, routes, ports, nodes, \
                 events, luns, groups, counters, injections, captures, volumes, paths, sessions, stats, links, \
                 ethernet, connections, infiniband, channels"
)]
pub enum ShowTable {
    /// A table that a simulated fabric has, too.
    Fabric(Which),
    /// A table that only a running instance has.
    Live(LiveWhich),
    /// A table of the planes of the lab.
    Plane(PlaneWhich),
}

/// Operation on the zones of a switch. The field `do` contains its kind.
///
/// A switch has at most one transaction. Edits open it, `commit` distributes it to the whole
/// fabric, and `abort` discards it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ZoneAction {
    /// Shows the zones.
    Show,
    /// Edits the zones in the transaction. Either all edits take effect, or none.
    Edit {
        /// Edits, in order of execution.
        edits: Vec<Edit>,
    },
    /// Shows the pairs that would gain or lose access. Reply: [`Answer::ZonePreview`].
    Preview {
        /// Additional edits after those of the transaction; they are not stored.
        #[serde(default)]
        edits: Vec<Edit>,
    },
    /// Puts the transaction into force in the whole fabric. The reply is sent after the change is
    /// complete and stored.
    Commit,
    /// Edits the zones as [`ZoneAction::Edit`] and puts the transaction into force as
    /// [`ZoneAction::Commit`], in one step. If it fails, nothing changes: an open transaction stays
    /// as it was, and none is opened.
    EditAndCommit {
        /// Edits after those of the transaction, in order of execution; may be empty.
        edits: Vec<Edit>,
    },
    /// Discards the transaction.
    Abort,
    /// Restores the database before the last change, in the whole fabric.
    Rollback,
    /// The operation of a client of a management interface, which owns its transaction: other
    /// clients cannot edit or commit it. It ends if the client does not use it for a time, and when
    /// another switch changes the zones. If it ends so, or by another client, its edits are lost:
    /// the next edit or commit of the client fails with the reason. A preview contains the pending
    /// edits of the client itself only.
    As {
        /// The client.
        client: ZoneClient,
        /// Checksum of the committed database ([`ZoneStatus::checksum`]) on which the operation is
        /// based. If it differs, the operation fails and changes nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checksum: Option<String>,
        /// The operation.
        action: Box<ZoneAction>,
    },
}

/// Default of [`ZoneClient::timeout_s`], in seconds.
pub const ZONE_TIMEOUT_S: u32 = 300;

/// A client that owns a zone transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneClient {
    /// Identifier of its session, unique in the instance. It is no secret.
    pub session: String,
    /// Name of the user.
    pub user: String,
    /// Role of the user.
    pub role: String,
    /// Address of the client.
    pub address: String,
    /// Interface, for example `REST`.
    pub interface: String,
    /// Program of the client, as it names itself.
    pub application: String,
    /// Time in seconds after its last request at which the transaction ends; absent for
    /// [`ZONE_TIMEOUT_S`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
}

/// A reply of an instance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A table.
    View(View),
    /// The zones of a switch.
    Zones(Box<ZoneStatus>),
    /// Effect of the transaction.
    ZonePreview(Box<ZonePreview>),
    /// Metrics in the text format of Prometheus (OpenMetrics).
    Metrics {
        /// Metrics in text format.
        text: String,
    },
    /// Effect of a lab file, applied or only reported.
    Applied(Box<ApplyReport>),
    /// The request succeeded.
    Done,
    /// A capture has ended.
    Captured {
        /// Number of frames in the capture file.
        frames: u64,
    },
    /// A trace of requests has ended.
    Traced {
        /// Number of requests in the trace.
        requests: u64,
    },
    /// The instance ends, as requested. Some of its captures and recordings could not be written to
    /// their end.
    Incomplete {
        /// Description of each, with error and remedy.
        files: Vec<String>,
    },
    /// Reply of an FCoE host.
    Fcoe(FcoeAnswer),
    /// The request failed.
    Failed(RequestError),
}

/// Reason why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestError {
    /// Cause and remedy.
    pub reason: String,
    /// Kind of the cause.
    #[serde(default, skip_serializing_if = "ErrorKind::is_usage")]
    pub kind: ErrorKind,
}

/// Kind of a failure; it selects the exit code of the command that sent the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The environment prevents the request: a full disk, a missing permission, a broken store.
    Environment,
    /// Another client has an open transaction.
    Transaction,
    /// The request does not fit the instance. Answers without a kind and with an unknown kind have
    /// this one.
    #[default]
    #[serde(other)]
    Usage,
}

impl ErrorKind {
    /// True for [`ErrorKind::Usage`].
    pub fn is_usage(&self) -> bool {
        *self == ErrorKind::Usage
    }
}

impl RequestError {
    /// The environment prevents the request.
    pub fn environment(reason: impl Into<String>) -> RequestError {
        RequestError { reason: reason.into(), kind: ErrorKind::Environment }
    }
}

impl From<String> for RequestError {
    fn from(reason: String) -> RequestError {
        RequestError { reason, kind: ErrorKind::Usage }
    }
}

impl Answer {
    /// The request does not fit the instance.
    pub fn failed(reason: impl Into<String>) -> Answer {
        Answer::Failed(RequestError::from(reason.into()))
    }
}

// Not generic, so that the crates above do not compile the encoders and decoders a second time.
macro_rules! lines {
    ($message:ident) => {
        impl $message {
            /// Encodes the message as one line of JSON, newline included.
            ///
            /// # Errors
            /// When a value has no JSON form.
            pub fn to_line(&self) -> serde_json::Result<Vec<u8>> {
                let mut line = serde_json::to_vec(self)?;
                line.push(b'\n');
                Ok(line)
            }

            /// Decodes one line of JSON.
            ///
            /// # Errors
            /// When the line is no message of this type.
            pub fn from_line(line: &str) -> serde_json::Result<Self> {
                serde_json::from_str(line)
            }
        }
    };
}

lines!(Request);
lines!(Answer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_an_answer_are_in_the_same_object_as_its_kind() {
        let answer = Answer::ZonePreview(Box::default());
        let text = serde_json::to_string(&answer).unwrap();
        assert!(text.starts_with(r#"{"answer":"zone_preview","schema_version":0,"#), "{text}");
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn requests_have_their_documented_json() {
        let show: Request = serde_json::from_str(r#"{"request":"show","table":"flogi"}"#).unwrap();
        assert_eq!(show, Request::Show { table: ShowTable::Fabric(Which::Flogi), switch: None });
        let luns: Request = serde_json::from_str(r#"{"request":"show","table":"luns"}"#).unwrap();
        assert_eq!(luns, Request::Show { table: ShowTable::Live(LiveWhich::Luns), switch: None });
        let port = Request::Port { port: "sw1:0".to_owned(), enabled: false, by: None };
        assert_eq!(serde_json::to_string(&port).unwrap(), r#"{"request":"port","port":"sw1:0","enabled":false}"#);
        let change = |port: &str, enabled| PortChange { port: port.to_owned(), enabled };
        let ports = Request::Ports { changes: vec![change("sw1:0", false), change("sw2:1", true)], by: None };
        let text =
            r#"{"request":"ports","changes":[{"port":"sw1:0","enabled":false},{"port":"sw2:1","enabled":true}]}"#;
        assert_eq!(serde_json::to_string(&ports).unwrap(), text);
        assert_eq!(serde_json::from_str::<Request>(text).unwrap(), ports);
        let by = RequestUser { user: "admin".to_owned(), interface: "REST".to_owned() };
        let switch = Request::Switch { switch: "sw1".to_owned(), enabled: true, by: Some(by) };
        let text = r#"{"request":"switch","switch":"sw1","enabled":true,"by":{"user":"admin","interface":"REST"}}"#;
        assert_eq!(serde_json::to_string(&switch).unwrap(), text);
        assert_eq!(serde_json::from_str::<Request>(text).unwrap(), switch);
        let commit: Request = serde_json::from_str(r#"{"request":"zone","switch":"sw1","do":"commit"}"#).unwrap();
        assert_eq!(commit, Request::Zone { switch: Some("sw1".to_owned()), by: None, action: ZoneAction::Commit });
        let edits = vec![Edit::Disable];
        let edit = Request::Zone { switch: None, by: None, action: ZoneAction::Edit { edits } };
        let text = serde_json::to_string(&edit).unwrap();
        assert_eq!(text, r#"{"request":"zone","do":"edit","edits":[{"edit":"disable"}]}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), edit);
        let both = r#"{"request":"zone","do":"edit_and_commit","edits":[{"edit":"disable"}]}"#;
        assert!(serde_json::from_str::<Request>(both).is_ok(), "{both}");
        assert_eq!(serde_json::to_string(&Answer::Done).unwrap(), r#"{"answer":"done"}"#);
    }

    #[test]
    fn an_unknown_table_is_answered_with_the_names_of_all_tables() {
        let of = |name: &str| serde_json::from_value::<ShowTable>(serde_json::json!(name));
        let reason = of("nope").unwrap_err().to_string();
        let (_, names) = reason.split_once("the tables are ").unwrap();
        let names: Vec<&str> = names.split(", ").collect();
        for name in &names {
            assert_eq!(serde_json::to_value(of(name).unwrap()).unwrap(), serde_json::json!(name));
        }
        // The kinds of tables name their variants when they refuse one.
        let kinds = [
            serde_json::from_str::<Which>("\"nope\"").unwrap_err(),
            serde_json::from_str::<LiveWhich>("\"nope\"").unwrap_err(),
            serde_json::from_str::<PlaneWhich>("\"nope\"").unwrap_err(),
        ];
        let count = |reason: String| (reason.matches('`').count() - 2) / 2;
        assert_eq!(names.len(), kinds.map(|kind| count(kind.to_string())).iter().sum::<usize>());
    }

    #[test]
    fn a_failure_carries_the_kind_of_its_cause() {
        let usage = Answer::failed("no such port");
        assert_eq!(serde_json::to_string(&usage).unwrap(), r#"{"answer":"failed","reason":"no such port"}"#);
        let full = Answer::Failed(RequestError::environment("disk full"));
        let text = serde_json::to_string(&full).unwrap();
        assert_eq!(text, r#"{"answer":"failed","reason":"disk full","kind":"environment"}"#);
        for answer in [usage, full] {
            let text = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
        }
        let newer = r#"{"answer":"failed","reason":"x","kind":"of_a_newer_version"}"#;
        assert_eq!(serde_json::from_str::<Answer>(newer).unwrap(), Answer::failed("x"));
    }
}
