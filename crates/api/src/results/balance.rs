//! Conservation check of a run: [`Conservation`].

use serde::{Deserialize, Serialize};

/// Balance of frames and commands over the whole run, login and warm-up included. No frame or
/// command appears or disappears without a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conservation {
    /// Frames created and sent by N_Ports and switches.
    pub frames_sent: u64,
    /// Frames that reached their destination port.
    pub frames_delivered: u64,
    /// Frames dropped or lost, for any reason.
    pub frames_dropped: u64,
    /// Frames on a link or in a buffer at the end of the run.
    pub frames_in_flight: u64,
    /// Requests passed to the hosts.
    pub commands_issued: u64,
    /// Requests completed successfully.
    pub commands_completed: u64,
    /// Requests failed after all retries.
    pub commands_failed: u64,
    /// Requests in flight at the end of the run.
    pub commands_in_flight: u64,
}

impl Conservation {
    /// True if both balances are even.
    pub fn holds(&self) -> bool {
        self.frames_sent == self.frames_delivered + self.frames_dropped + self.frames_in_flight
            && self.commands_issued == self.commands_completed + self.commands_failed + self.commands_in_flight
    }
}
