//! Faults that an operator injects into single frames of a lane: [`Rule`].

use super::frame_ref::FrameRef;
use super::messages::Messages;
use crate::capture::part_header;
use sanloom_api::inject::{Direction, Matcher, Seen};
use sanloom_fc::exchange::data_header;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Effect of a rule on a matching frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The frame is lost on the line, with its credit.
    Lost,
    /// The frame arrives with a bad CRC.
    Corrupt,
}

/// A condition on the frames of a port, and the effect. The two lanes of the port share the counts.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Identifier among the rules of the world.
    pub id: u32,
    /// Condition on the frames.
    pub matcher: Arc<Matcher>,
    /// Direction of the frames of the lane at the port.
    pub direction: Direction,
    /// Effect on matching frames.
    pub damage: Damage,
    /// Counts of the rule.
    pub counts: Arc<Counts>,
}

/// Counts of a rule.
#[derive(Debug, Default)]
pub struct Counts {
    /// Frames on which the rule had its effect.
    pub injected: AtomicU64,
    /// Frames still to inject; [`u64::MAX`]: no limit.
    pub left: AtomicU64,
}

/// Returns the effect of the first rule that matches a frame of a lane.
pub(super) fn judge(rules: &[Rule], messages: &Messages, frame: &FrameRef) -> Option<Damage> {
    let mut payload = Vec::new();
    let header = match frame.message() {
        None => {
            payload.resize(usize::from(frame.len_bytes()), 0);
            let (ids, exchange) = ((frame.s_id(), frame.d_id()), (frame.ox_id(), frame.rx_id()));
            let sequence = (frame.seq_id(), frame.seq_cnt());
            let (last, from_responder) = (frame.is_last(), frame.from_responder());
            data_header(ids.0, ids.1, exchange.0, exchange.1, sequence.0, sequence.1, 0, last, from_responder)
        }
        Some(number) => {
            messages.part_bytes(frame, &mut payload);
            part_header(&messages.get(number)?.header, frame.part(), messages.parts(number), payload.len())
        }
    };
    rules.iter().find(|rule| rule.holds(&header, &payload)).map(|rule| rule.damage)
}

impl Rule {
    /// Returns whether the rule matches a frame, and counts it.
    fn holds(&self, header: &sanloom_wire::Header, payload: &[u8]) -> bool {
        let left = self.counts.left.load(Ordering::Relaxed);
        if left == 0 || !self.matcher.holds(&Seen { direction: self.direction, header, payload }) {
            return false;
        }
        if left != u64::MAX {
            self.counts.left.store(left - 1, Ordering::Relaxed);
        }
        self.counts.injected.fetch_add(1, Ordering::Relaxed);
        true
    }
}
