//! Records of watched lines.

use super::{EthernetPlane, PRIORITIES, Packet, PacketLoss};
use crate::net::record;

/// A record of a watched line.
pub type Observed = record::Observed<ObservedKind>;

/// The recorded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObservedKind {
    /// A frame, as its sender put it on the line; corrupt if the line damages it.
    Frame {
        packet: Packet,
        /// The last bit leaves the sender.
        end_ps: u64,
    },
    /// A frame is lost: in the queue of the sender, on the line, or at its end.
    Lost { packet: Packet, loss: PacketLoss },
    /// A pause frame is lost on the line.
    PauseLost,
    /// A pause frame has arrived at the sender of the line, which stops a priority.
    Stopped {
        priority: u8,
        /// No frame of the priority begins from this time on, in ps.
        from_ps: u64,
        /// Frames may begin again from this time on, in ps.
        until_ps: u64,
    },
    /// A pause frame has arrived at the sender of the line, which resumes a priority.
    Resumed { priority: u8 },
    /// The link went down or came up.
    Light { up: bool },
}

/// Records that nobody has forgotten yet.
pub(super) type Recorder = record::Recorder<ObservedKind>;

impl EthernetPlane {
    /// Adds a record, if the line is watched.
    #[inline]
    pub(super) fn record(&mut self, line: u32, at_ps: u64, kind: ObservedKind) {
        if self.lines[line as usize].watched {
            self.recorder.add(line, at_ps, kind);
        }
    }

    /// Records what a pause frame has changed at the sender of a line that is watched.
    #[cold]
    pub(super) fn record_pause(&mut self, line: u32, at_ps: u64, named: u8, stop: u8) {
        let named = named & self.lines[line as usize].obeys;
        // One record stands for all priorities of a link.
        let named = if self.lines[line as usize].pauses_link { named & 1 } else { named };
        for priority in (0..PRIORITIES as u8).filter(|priority| named & 1 << priority != 0) {
            let (from_ps, until_ps) = self.lines[line as usize].pauses.last(priority.into());
            let kind = match stop & 1 << priority {
                0 => ObservedKind::Resumed { priority },
                _ => ObservedKind::Stopped { priority, from_ps, until_ps },
            };
            self.record(line, at_ps, kind);
        }
    }

    /// Starts or ends the record of the frames and events of a link.
    pub fn watch(&mut self, link: u16, watched: bool) {
        for line in [2 * usize::from(link), 2 * usize::from(link) + 1] {
            self.lines[line].watched = watched;
        }
    }

    /// Returns whether the frames of any link are recorded.
    pub fn is_watched(&self) -> bool {
        self.lines.iter().any(|line| line.watched)
    }

    /// Returns the records of watched links since the last call of
    /// [`EthernetPlane::forget_observed`].
    pub fn observed(&self) -> &[Observed] {
        self.recorder.all()
    }

    /// Forgets the records.
    pub fn forget_observed(&mut self) {
        self.recorder.forget();
    }
}
