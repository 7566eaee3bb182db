//! The books of a run: [`Conservation`].

use serde::{Deserialize, Serialize};

/// Frames and commands of the whole run, login and warm-up included. Nothing appears from nowhere or vanishes without
/// a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conservation {
    /// Frames that N_Ports and switches made and sent.
    pub frames_sent: u64,
    /// Frames that reached the port they were for.
    pub frames_delivered: u64,
    /// Frames dropped or lost, for whatever reason.
    pub frames_dropped: u64,
    /// Frames on a line or in a buffer when the run ended.
    pub frames_in_flight: u64,
    /// Requests handed to the hosts.
    pub commands_issued: u64,
    /// Requests that ended well.
    pub commands_completed: u64,
    /// Requests that failed for good.
    pub commands_failed: u64,
    /// Requests that had not ended when the run ended.
    pub commands_in_flight: u64,
}

impl Conservation {
    /// Whether both sides of the books are equal.
    pub fn holds(&self) -> bool {
        self.frames_sent == self.frames_delivered + self.frames_dropped + self.frames_in_flight
            && self.commands_issued == self.commands_completed + self.commands_failed + self.commands_in_flight
    }
}
