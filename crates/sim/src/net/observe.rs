//! What a watched lane shows, and what went wrong in the network.

use super::Net;
use super::frame_ref::FrameRef;
use super::lane::{Lane, Sent};
use sanloom_wire::Header;

/// Something that passed on a watched lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Lane.
    pub lane: u32,
    /// Credits of the sender afterwards.
    pub credits: u32,
    /// What it was.
    pub kind: ObservedKind,
}

/// What passed.
#[derive(Clone, PartialEq, Debug)]
pub enum ObservedKind {
    /// A frame.
    Frame {
        /// The frame.
        frame: FrameRef,
        /// First bit leaves the sender.
        start_ps: u64,
        /// Last bit leaves the sender.
        end_ps: u64,
        /// Header and bytes of a control message, cut to this part, and the number of its parts.
        message: Option<Box<(Header, Vec<u8>, u16)>>,
    },
    /// An R_RDY for a frame of this lane, which travels against it.
    RRdy {
        /// It leaves the receiver.
        at_ps: u64,
    },
    /// The sender had no credit for E_D_TOV and resets the link: LR, which travels with the frames of this lane, and LRR,
    /// which travels against them.
    Reset {
        /// LR leaves the sender.
        at_ps: u64,
        /// LRR leaves the receiver.
        answered_ps: u64,
        /// LRR has arrived: the credits begin anew.
        restart_ps: u64,
    },
    /// The light went out or came back.
    Light {
        /// When.
        at_ps: u64,
        /// It came back.
        up: bool,
    },
}

/// Something that a report should tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A sender had no credit for E_D_TOV; the link was reset.
    LinkReset {
        /// When.
        at_ps: u64,
        /// Lane whose credits were restored.
        lane: u32,
    },
    /// Frames waited longer than the hold time.
    HoldTime {
        /// When.
        at_ps: u64,
        /// Switch.
        switch: u16,
        /// Port that they had come in through.
        port: u16,
        /// How many.
        frames: u32,
    },
    /// Lanes wait for each other's buffers in a circle.
    Deadlock {
        /// When it was found.
        at_ps: u64,
        /// The lanes, each waiting for the next, the last for the first.
        cycle: Vec<u32>,
    },
}

impl Net {
    /// What passed on watched lanes since the last call.
    pub fn take_observed(&mut self) -> Vec<Observed> {
        std::mem::take(&mut self.observed)
    }

    /// How much has been observed and not been taken.
    pub fn observed(&self) -> usize {
        self.observed.len()
    }

    /// What went wrong so far.
    pub fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    pub(super) fn observe_frame(&mut self, lane: u32, frame: FrameRef, sent: Sent) {
        let message = frame.message().and_then(|number| {
            let header = self.messages.get(number)?.header;
            let mut bytes = Vec::new();
            self.messages.part_bytes(&frame, &mut bytes);
            Some(Box::new((header, bytes, self.messages.parts(number))))
        });
        let credits = self.lanes[lane as usize].credits_at(sent.start_ps);
        let kind = ObservedKind::Frame { frame, start_ps: sent.start_ps, end_ps: sent.end_ps, message };
        self.observed.push(Observed { lane, credits, kind });
    }

    pub(super) fn observe_reset(&mut self, lane: u32, credits: u32, restart_ps: u64) {
        let at_ps = self.now;
        if self.lanes[lane as usize].watched {
            let answered_ps = at_ps + (restart_ps - at_ps) / 2;
            let kind = ObservedKind::Reset { at_ps, answered_ps, restart_ps };
            self.observed.push(Observed { lane, credits, kind });
        }
    }

    pub(super) fn observe_light(&mut self, lane: u32) {
        let Lane { credits, up, watched, .. } = self.lanes[lane as usize];
        if watched {
            self.observed.push(Observed { lane, credits, kind: ObservedKind::Light { at_ps: self.now, up } });
        }
    }

    pub(super) fn observe_r_rdy(&mut self, lane: u32, at_ps: u64) {
        let credits = self.lanes[lane as usize].credits;
        self.observed.push(Observed { lane, credits, kind: ObservedKind::RRdy { at_ps } });
    }
}
