//! The control interface of a running instance: [`Request`] and [`Answer`].
//!
//! A client connects to the control socket (unix stream) and sends one request in each line, as a JSON object. Each gets one
//! line back, in their order. `request` and `answer` name the kind; unknown fields are ignored, so that either end may be
//! newer.
//!
//! ```text
//!   > {"request":"show","table":"flogi"}
//!   < {"answer":"view","format":"sanloom-view","version":1,"of":"lab","at_s":12.5,"view":"flogi","logins":[…]}
//!   > {"request":"port","port":"sw1:0","enabled":false}
//!   < {"answer":"done"}
//! ```
//!
//! A line that begins with `GET ` is a request of HTTP instead: `/metrics` gives [`Request::Metrics`], so
//! `curl --unix-socket control.sock http://localhost/metrics` does.

use crate::apply::ApplyReport;
use crate::fcoe::{FcoeAnswer, FcoeRequest};
use crate::view::View;
use crate::view::build::{LiveWhich, Which};
use crate::volume::VolumeAction;
use crate::zone_database::Edit;
use crate::zoning::{ZonePreview, ZoneStatus};
use serde::{Deserialize, Serialize};

/// What a client wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// A table. Answered with [`Answer::View`].
    Show {
        /// Which.
        table: ShowTable,
        /// Of this switch only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch: Option<String>,
    },
    /// Disable or enable a port. Hosts behind a port that is disabled are told by Clear Virtual Links.
    Port {
        /// The port, as `sw1:0`.
        port: String,
        /// Whether it takes part.
        enabled: bool,
    },
    /// Change how a target port group serves; hosts are told by a unit attention.
    PortGroup {
        /// Its name in the lab.
        group: String,
        /// The new state, as the lab file has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
        /// Whether it is preferred; without: as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preferred: Option<bool>,
    },
    /// Begin or end the capture of a port. Answered with [`Answer::Done`] or [`Answer::Captured`].
    Capture {
        /// Link of the lab, or switch and port as in `sw1:0`.
        link: String,
        /// File (pcapng) that the instance writes; nothing: end the capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// Something about an FCoE host. Answered with [`Answer::Fcoe`] or [`Answer::Done`].
    Fcoe(FcoeRequest),
    /// Look at the zones of a switch, or change them. Answered with [`Answer::Zones`] or [`Answer::ZonePreview`].
    Zone {
        /// The switch; without: the first that runs in the instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch: Option<String>,
        /// What to do.
        #[serde(flatten)]
        action: ZoneAction,
    },
    /// Do what was changed in a lab file. Answered with [`Answer::Applied`], when it is done.
    Apply {
        /// The text of the file.
        lab: String,
        /// Only say what would be done.
        #[serde(default)]
        preview: bool,
    },
    /// Do something to frames that pass a port. Answered with the rules, as [`Answer::View`].
    Inject {
        /// The port, as `sw1:0`.
        port: String,
        /// Which frames: an expression of [`crate::inject`].
        #[serde(rename = "match")]
        matches: String,
        /// What is done to them, see [`crate::inject::Act`].
        #[serde(rename = "do")]
        act: String,
        /// To how many; nothing: to all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// Forget the rules of a port, or all. Answered with what they were, as [`Answer::View`].
    ClearInjections {
        /// The port; without: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<String>,
    },
    /// Do something with virtual disks, or look at them. Answered with a table of the volume, as it is
    /// then, or [`Answer::Done`] where there is none any more.
    Volume {
        /// What to do.
        #[serde(flatten)]
        action: VolumeAction,
    },
    /// What monitoring reads. Answered with [`Answer::Metrics`].
    Metrics,
    /// End the instance, as SIGTERM does.
    Stop,
}

/// The tables of a running instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ShowTable {
    /// One that a simulated fabric has, too.
    Fabric(Which),
    /// One of its own.
    Live(LiveWhich),
}

/// What an operator does with the zones of a switch. `do` names it.
///
/// A switch has one transaction at a time: edits begin it, `commit` carries it to the whole fabric, `abort` drops it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ZoneAction {
    /// Look at them.
    Show,
    /// Edit in the transaction; all of the edits, or none.
    Edit {
        /// The edits, in order.
        edits: Vec<Edit>,
    },
    /// Who would gain and lose sight of whom. Answered with [`Answer::ZonePreview`].
    Preview {
        /// Edits after those of the transaction; they are not kept.
        #[serde(default)]
        edits: Vec<Edit>,
    },
    /// Put the transaction into force in the whole fabric. The answer comes when that is done, and kept in the store.
    Commit,
    /// Drop the transaction.
    Abort,
    /// Go back to the database before the last change, in the whole fabric.
    Rollback,
}

/// What an instance answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A table.
    View(View),
    /// The zones of a switch.
    Zones(Box<ZoneStatus>),
    /// What the transaction would change.
    ZonePreview(Box<ZonePreview>),
    /// Metrics in the text format of Prometheus (OpenMetrics).
    Metrics {
        /// The text.
        text: String,
    },
    /// What a lab file changes, or would change.
    Applied(Box<ApplyReport>),
    /// It is done.
    Done,
    /// A capture has ended.
    Captured {
        /// Frames in the file.
        frames: u64,
    },
    /// About an FCoE host.
    Fcoe(FcoeAnswer),
    /// It is not done.
    Failed {
        /// Why, and what to do about it.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_an_answer_stand_beside_its_kind() {
        let answer = Answer::ZonePreview(Box::default());
        let text = serde_json::to_string(&answer).unwrap();
        assert!(text.starts_with(r#"{"answer":"zone_preview","schema_version":0,"#), "{text}");
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn requests_are_what_the_documentation_says() {
        let show: Request = serde_json::from_str(r#"{"request":"show","table":"flogi"}"#).unwrap();
        assert_eq!(show, Request::Show { table: ShowTable::Fabric(Which::Flogi), switch: None });
        let luns: Request = serde_json::from_str(r#"{"request":"show","table":"luns"}"#).unwrap();
        assert_eq!(luns, Request::Show { table: ShowTable::Live(LiveWhich::Luns), switch: None });
        let port = Request::Port { port: "sw1:0".to_owned(), enabled: false };
        assert_eq!(serde_json::to_string(&port).unwrap(), r#"{"request":"port","port":"sw1:0","enabled":false}"#);
        let commit: Request = serde_json::from_str(r#"{"request":"zone","switch":"sw1","do":"commit"}"#).unwrap();
        assert_eq!(commit, Request::Zone { switch: Some("sw1".to_owned()), action: ZoneAction::Commit });
        let edits = vec![Edit::Disable];
        let edit = Request::Zone { switch: None, action: ZoneAction::Edit { edits } };
        let text = serde_json::to_string(&edit).unwrap();
        assert_eq!(text, r#"{"request":"zone","do":"edit","edits":[{"edit":"disable"}]}"#);
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), edit);
        assert_eq!(serde_json::to_string(&Answer::Done).unwrap(), r#"{"answer":"done"}"#);
    }
}
