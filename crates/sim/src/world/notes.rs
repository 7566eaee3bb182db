//! Events of a run for its report.

use crate::host::PathState;
use crate::net::Turn;
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
    /// An Ethernet link went up or down.
    EthernetLink {
        link: u16,
        /// True if it came up.
        up: bool,
    },
    /// An InfiniBand link went up or down.
    InfinibandLink {
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
    /// A controller of a storage system took over the LUNs of `home`, or its own ones.
    Takeover { storage: u16, home: u8, owner: u8 },
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
    /// Turns of the last notes while the world is divided.
    turns: Option<Vec<Turn>>,
}

impl Notes {
    /// Appends a note of the event with this turn. Beyond [`MAX_NOTES`], notes are only counted.
    pub(super) fn add(&mut self, turn: Turn, kind: NoteKind) {
        let at_ps = turn.0;
        debug_assert!(self.list.last().is_none_or(|last| last.at_ps <= at_ps), "notes are in the order of time");
        if self.list.len() < MAX_NOTES {
            self.list.push(Note { at_ps, kind });
            self.turns.iter_mut().for_each(|turns| turns.push(turn));
        } else {
            self.omitted += 1;
        }
    }

    /// Starts to store the turns of the notes.
    pub(super) fn begin_turns(&mut self) {
        self.turns = Some(Vec::new());
    }

    /// Ends [`Notes::begin_turns`]. Removes and returns the notes since then, with their turns.
    pub(super) fn end_turns(&mut self) -> Vec<(Turn, Note)> {
        let turns = self.turns.take().unwrap_or_default();
        let notes = self.list.split_off(self.list.len() - turns.len());
        turns.into_iter().zip(notes).collect()
    }

    /// Appends the notes of all parts of the world in the order of their turns. Each part has kept
    /// at least those of its notes that are within the limit.
    pub(super) fn append(&mut self, mut notes: Vec<(Turn, Note)>) {
        notes.sort_by_key(|(turn, _)| *turn);
        for (_, note) in notes {
            if self.list.len() < MAX_NOTES {
                self.list.push(note);
            } else {
                self.omitted += 1;
            }
        }
    }

    /// Moves the number of notes beyond the limit from another list.
    pub(super) fn add_omitted(&mut self, other: &mut Notes) {
        self.omitted += std::mem::take(&mut other.omitted);
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
