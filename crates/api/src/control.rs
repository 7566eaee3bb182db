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

use crate::fcoe::{FcoeAnswer, FcoeRequest};
use crate::view::View;
use crate::view::build::Which;
use serde::{Deserialize, Serialize};

/// What a client wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// A table. Answered with [`Answer::View`].
    Show {
        /// Which.
        table: Which,
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
    /// Begin or end the capture of the Ethernet port of a link. Answered with [`Answer::Done`] or [`Answer::Captured`].
    Capture {
        /// Link of the lab.
        link: String,
        /// File (pcapng) that the instance writes; nothing: end the capture.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// Something about an FCoE host. Answered with [`Answer::Fcoe`] or [`Answer::Done`].
    Fcoe(FcoeRequest),
    /// End the instance, as SIGTERM does.
    Stop,
}

/// What an instance answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A table.
    View(View),
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
    fn requests_are_what_the_documentation_says() {
        let show: Request = serde_json::from_str(r#"{"request":"show","table":"flogi"}"#).unwrap();
        assert_eq!(show, Request::Show { table: Which::Flogi, switch: None });
        let port = Request::Port { port: "sw1:0".to_owned(), enabled: false };
        assert_eq!(serde_json::to_string(&port).unwrap(), r#"{"request":"port","port":"sw1:0","enabled":false}"#);
        assert_eq!(serde_json::to_string(&Answer::Done).unwrap(), r#"{"answer":"done"}"#);
    }
}
