//! Records of watched lines.

use super::{InfinibandPlane, Packet, PacketLoss};
use crate::net::record;
use sanloom_transport::infiniband::credit::CreditUpdate;

/// A record of a watched line.
pub type Observed = record::Observed<ObservedKind>;

/// The recorded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObservedKind {
    /// A packet, as its sender put it on the line; corrupt if the line damages it.
    Packet {
        packet: Packet,
        /// The last symbol leaves the sender.
        end_ps: u64,
        /// Blocks that the sender may still send on the lane of the packet; 0 for management, which
        /// has no credit.
        credits: u16,
    },
    /// A packet is lost: in the queue of the sender, on the line, or at its end.
    Lost { packet: Packet, loss: PacketLoss },
    /// A flow-control packet.
    Flow {
        /// Virtual lane.
        lane: u8,
        update: CreditUpdate,
        /// The last symbol leaves the sender.
        end_ps: u64,
        /// The line loses the packet.
        is_lost: bool,
    },
    /// The link went down or came up.
    Light { up: bool },
}

/// Records that nobody has forgotten yet.
pub(super) type Recorder = record::Recorder<ObservedKind>;

impl InfinibandPlane {
    /// Adds a record, if the line is watched.
    #[inline]
    pub(super) fn record(&mut self, line: u32, at_ps: u64, kind: ObservedKind) {
        if self.lines[line as usize].watched {
            self.recorder.add(line, at_ps, kind);
        }
    }

    /// Starts to record the packets and events of a link.
    pub fn watch(&mut self, link: u16) {
        for line in [2 * usize::from(link), 2 * usize::from(link) + 1] {
            self.lines[line].watched = true;
        }
    }

    /// Returns the records of watched links since the last call of
    /// [`InfinibandPlane::forget_observed`].
    pub fn observed(&self) -> &[Observed] {
        self.recorder.all()
    }

    /// Forgets the records.
    pub fn forget_observed(&mut self) {
        self.recorder.forget();
    }
}
