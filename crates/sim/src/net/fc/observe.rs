//! Records of watched lanes, and incidents in the network.

use super::frame_ref::FrameRef;
use super::lane::{Lane, Sent};
use super::loop_records::LoopTenancy;
use super::messages::Messages;
use super::parts::Turn;
use super::{Loss, LossSite, Lost};
use sanloom_wire::Header;
use sanloom_wire::arbitrated_loop::{LoopInit, Primitive};
use std::collections::BTreeMap;

/// A record of a watched lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    pub lane: u32,
    /// Credits of the sender after the event.
    pub credits: u32,
    pub kind: ObservedKind,
}

/// The recorded event.
#[derive(Clone, PartialEq, Debug)]
pub enum ObservedKind {
    Frame {
        frame: FrameRef,
        /// The first bit leaves the sender.
        start_ps: u64,
        /// The last bit leaves the sender.
        end_ps: u64,
        /// For a control message: its header, the bytes of this part, and the number of parts.
        message: Option<Box<(Header, Vec<u8>, u16)>>,
    },
    /// An R_RDY for a frame of this lane. It travels in the opposite direction.
    RRdy {
        /// The R_RDY leaves the receiver.
        at_ps: u64,
    },
    /// A link reset by a sender that had no credit for E_D_TOV. LR travels in the direction of the
    /// lane, LRR in the opposite direction.
    Reset {
        /// LR leaves the sender.
        at_ps: u64,
        /// LRR leaves the receiver.
        answered_ps: u64,
        /// LRR arrives at the sender, and the credits restart.
        restart_ps: u64,
    },
    /// Words on an arbitrated loop that travel in the direction of the lane: neither fill words nor
    /// part of a frame, except the ARB that comes back to its sender.
    LoopWord {
        /// The first word leaves the port of the link, or the port acts on it with its next word.
        at_ps: u64,
        /// The first word leaves its sender.
        since_ps: u64,
        word: Primitive,
        /// Number of equal words in a row.
        count: u32,
    },
    /// A frame of the initialisation of an arbitrated loop.
    LoopInit {
        /// The first bit leaves the port of the link, or arrives there.
        start_ps: u64,
        frame: Box<LoopInit>,
        /// The loop master, which has begun the frame, is an FL_Port.
        from_fl_port: bool,
    },
    /// The end of a tenancy of an arbitrated loop.
    LoopTenancy(LoopTenancy),
    /// The light went off or on.
    Light {
        at_ps: u64,
        /// True if the light went on.
        up: bool,
    },
}

/// An incident for the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A link reset, because a sender had no credit for E_D_TOV.
    LinkReset {
        at_ps: u64,
        /// Lane whose credits were restored.
        lane: u32,
    },
    /// Frames were discarded after the hold time.
    HoldTime {
        at_ps: u64,
        switch: u16,
        /// Ingress port of the frames.
        port: u16,
        /// Number of discarded frames.
        frames: u32,
    },
    /// A credit deadlock: lanes wait for each other's buffers in a cycle.
    Deadlock {
        /// Time of detection.
        at_ps: u64,
        /// Time at which the same lanes last waited for each other.
        until_ps: u64,
        /// The lanes of the cycle. Each waits for the next, and the last waits for the first.
        cycle: Vec<u32>,
    },
}

/// Records of the watched lanes, incidents and lost frames.
#[derive(Default)]
pub struct Recorder {
    records: Vec<Observed>,
    /// Turns of the last records while the network is divided; see [`super::parts::Turn`].
    turns: Option<Vec<Turn>>,
    pub(super) incidents: Vec<Incident>,
    pub(super) losses: BTreeMap<(LossSite, Loss), Lost>,
}

impl Recorder {
    /// Records a frame on a lane.
    pub(super) fn frame(&mut self, number: u32, lane: &Lane, messages: &Messages, frame: FrameRef, sent: Sent) {
        debug_assert!(lane.watched, "lane {number} is watched");
        let message = frame.message().and_then(|message| {
            let header = messages.get(message)?.header;
            let mut bytes = Vec::new();
            messages.part_bytes(&frame, &mut bytes);
            Some(Box::new((header, bytes, messages.parts(message))))
        });
        let kind = ObservedKind::Frame { frame, start_ps: sent.start_ps, end_ps: sent.end_ps, message };
        self.records.push(Observed { lane: number, credits: lane.credits_at(sent.start_ps), kind });
    }

    /// Records an R_RDY for a frame of a lane.
    pub(super) fn r_rdy(&mut self, number: u32, lane: &Lane, at_ps: u64) {
        self.records.push(Observed { lane: number, credits: lane.credits, kind: ObservedKind::RRdy { at_ps } });
    }

    /// Records a link reset, if the lane is watched. `credits` are available from `restart_ps` on.
    pub(super) fn reset(&mut self, number: u32, lane: &Lane, credits: u32, at_ps: u64, restart_ps: u64) {
        if lane.watched {
            let answered_ps = at_ps + (restart_ps - at_ps) / 2;
            let kind = ObservedKind::Reset { at_ps, answered_ps, restart_ps };
            self.records.push(Observed { lane: number, credits, kind });
        }
    }

    /// Records that the light of a lane went off or on, if the lane is watched.
    pub(super) fn light(&mut self, number: u32, lane: &Lane, at_ps: u64) {
        if lane.watched {
            let kind = ObservedKind::Light { at_ps, up: lane.up };
            self.records.push(Observed { lane: number, credits: lane.credits, kind });
        }
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: Observed) {
        self.records.push(record);
    }

    /// Stores the turn of the last record, if the network is divided.
    #[inline]
    pub(super) fn stamp(&mut self, turn: Turn) {
        if let Some(turns) = &mut self.turns {
            turns.push(turn);
        }
    }

    /// Starts to store the turns of the records.
    pub(super) fn begin_turns(&mut self) {
        self.turns = Some(Vec::new());
    }

    /// Ends [`Recorder::begin_turns`]. Removes and returns the records since then, with their
    /// turns.
    pub(super) fn end_turns(&mut self) -> Vec<(Turn, Observed)> {
        let turns = self.turns.take().unwrap_or_default();
        let records = self.records.split_off(self.records.len() - turns.len());
        turns.into_iter().zip(records).collect()
    }

    /// Appends the records of all parts of the network in the order of their turns.
    pub(crate) fn append(&mut self, mut records: Vec<(Turn, Observed)>) {
        records.sort_by_key(|(turn, _)| *turn);
        self.records.extend(records.into_iter().map(|(_, record)| record));
    }

    /// Moves the counts of the lost frames to another recorder.
    pub(super) fn move_losses(&mut self, to: &mut Recorder) {
        for (key, lost) in std::mem::take(&mut self.losses) {
            let sum = to.losses.entry(key).or_default();
            sum.frames += lost.frames;
            sum.bytes += lost.bytes;
        }
    }

    /// Removes and returns the records of the watched lanes since the last call.
    pub fn take_observed(&mut self) -> Vec<Observed> {
        std::mem::take(&mut self.records)
    }

    /// Returns the number of records that have not been taken.
    pub fn observed(&self) -> usize {
        self.records.len()
    }

    /// Returns all incidents so far.
    pub fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    /// Returns the frames lost so far, by location and reason.
    pub fn losses(&self) -> &BTreeMap<(LossSite, Loss), Lost> {
        &self.losses
    }
}
