//! Events of a run for its report.

use crate::host::PathState;
use sanloom_fc::isolation::Isolation;

/// An event for the report.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// Time in ps since the first login.
    pub at_ps: u64,
    pub kind: NoteKind,
}

/// The kinds of events in the report.
#[derive(Clone, PartialEq, Debug)]
pub enum NoteKind {
    /// A path of a host changed its state.
    Path {
        host: u16,
        storage: u16,
        /// HBA * ports + port.
        path: u16,
        from: PathState,
        to: PathState,
    },
    /// A link went up or down.
    Link {
        link: u16,
        /// True if it came up.
        up: bool,
    },
    /// A switch stopped or started.
    Switch {
        switch: u16,
        /// True if it started.
        up: bool,
    },
    /// A command was aborted.
    Aborted {
        host: u16,
        storage: u16,
        /// HBA * ports + port.
        path: u16,
    },
    /// Requests failed permanently.
    Failed { host: u16 },
    /// A link between switches became usable or unusable, so routes change.
    Reroute,
    /// A port became isolated from the switch at its other end.
    Isolated { switch: u16, port: u16, reason: Isolation },
    /// The quarantine of the devices at a port began or ended.
    Quarantine {
        switch: u16,
        port: u16,
        /// True if it began.
        starts: bool,
    },
    /// A scheduled change of the zones succeeded or failed.
    ZonesChanged {
        /// Switch at which the change was committed.
        switch: u16,
        /// Index into the lab's `changes`.
        change: u16,
        /// Reason for the failure; `None` if the change is in force in the whole fabric.
        failure: Option<String>,
    },
}

/// Limit on stored notes.
pub const MAX_NOTES: usize = 10_000;

/// The notes of a run.
#[derive(Default)]
pub struct Notes {
    list: Vec<Note>,
    omitted: u64,
}

impl Notes {
    /// Appends a note. Beyond [`MAX_NOTES`], notes are only counted.
    pub(super) fn add(&mut self, at_ps: u64, kind: NoteKind) {
        debug_assert!(self.list.last().is_none_or(|last| last.at_ps <= at_ps), "notes are in the order of time");
        if self.list.len() < MAX_NOTES {
            self.list.push(Note { at_ps, kind });
        } else {
            self.omitted += 1;
        }
    }

    /// Returns the stored notes in the order of time.
    pub fn list(&self) -> &[Note] {
        &self.list
    }

    /// Returns the number of notes beyond the limit.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }
}
