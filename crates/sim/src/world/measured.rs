//! Counters of the frame path since the end of the warm-up.

use super::ethernet::Counts;
use super::infiniband;
use crate::net::{ChannelCount, Fate, Lane, LaneCount, Loss, LossSite, Lost, Net};
use std::collections::BTreeMap;

/// Counters at the end of the warm-up.
#[derive(Default)]
pub(super) struct Baseline {
    /// End of the warm-up, in ps since the first login.
    at_ps: u64,
    lanes: Vec<LaneCount>,
    /// Counters of the virtual channels of each lane.
    channels: Vec<Vec<ChannelCount>>,
    /// Frames and bytes in flight on each lane.
    flight: Vec<(u64, u64)>,
    fate: Fate,
    losses: BTreeMap<(LossSite, Loss), Lost>,
    ethernet: Counts,
    infiniband: infiniband::Counts,
    /// Data frames that each N_Port had discarded.
    pub discarded: Vec<u64>,
}

/// The counters of the frame path as differences to the end of the warm-up.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    net: &'a Net,
    baseline: &'a Baseline,
}

impl Baseline {
    /// Reads the counters of the frame path.
    pub fn read(net: &Net) -> Baseline {
        Baseline {
            at_ps: net.now(),
            lanes: net.fc.lanes().iter().map(|lane| count_at(lane, net.now())).collect(),
            channels: (0..net.fc.lanes().len() as u32).map(|lane| channels_at(net, lane)).collect(),
            flight: net.fc.lanes().iter().map(flight_of).collect(),
            fate: net.fc.fate,
            losses: net.fc.recorder.losses().clone(),
            ethernet: Counts::read(net),
            infiniband: infiniband::Counts::read(net),
            discarded: Vec::new(),
        }
    }
}

impl<'a> Measured<'a> {
    pub(super) fn new(net: &'a Net, baseline: &'a Baseline) -> Measured<'a> {
        Measured { net, baseline }
    }

    /// Returns the end of the warm-up, in ps since the first login.
    pub fn from_ps(&self) -> u64 {
        self.baseline.at_ps
    }

    /// Returns the counters of Ethernet since the end of the warm-up.
    pub fn ethernet(&self) -> Counts {
        Counts::read(self.net).since(&self.baseline.ethernet)
    }

    /// Returns the counters of InfiniBand since the end of the warm-up.
    pub fn infiniband(&self) -> infiniband::Counts {
        infiniband::Counts::read(self.net).since(&self.baseline.infiniband)
    }

    /// Returns the lost frames by reason, in the order of [`Loss::ALL`].
    pub fn lost(&self) -> [u64; Loss::ALL.len()] {
        let mut lost = self.net.fc.fate.lost;
        for (lost, before) in lost.iter_mut().zip(self.baseline.fate.lost) {
            *lost -= before;
        }
        lost
    }

    /// Returns the lost frames by location and reason.
    pub fn losses(&self) -> BTreeMap<(LossSite, Loss), Lost> {
        let mut losses = self.net.fc.recorder.losses().clone();
        for (key, before) in &self.baseline.losses {
            if let Some(lost) = losses.get_mut(key) {
                lost.frames -= before.frames;
                lost.bytes -= before.bytes;
            }
        }
        losses.retain(|_, lost| lost.frames > 0);
        losses
    }

    /// Returns the frames and bytes that left a lane at its far end. Frames lost on the line are
    /// excluded.
    pub fn received(&self, lane: u32) -> (u64, u64) {
        let count = self.lane_count(lane);
        let now = flight_of(&self.net.fc.lanes()[lane as usize]);
        let before = self.baseline.flight.get(lane as usize).copied().unwrap_or_default();
        let lost = lost_on_line(self.net.fc.recorder.losses(), lane);
        let lost_before = lost_on_line(&self.baseline.losses, lane);
        (
            (count.frames + before.0 + lost_before.0).saturating_sub(now.0 + lost.0),
            (count.bytes + before.1 + lost_before.1).saturating_sub(now.1 + lost.1),
        )
    }

    /// Returns the frames and bytes that left a lane at its far end since the first login.
    pub fn all_received(&self, lane: u32) -> (u64, u64) {
        let count = self.net.fc.lanes()[lane as usize].count();
        let in_flight = flight_of(&self.net.fc.lanes()[lane as usize]);
        let lost = lost_on_line(self.net.fc.recorder.losses(), lane);
        (count.frames.saturating_sub(in_flight.0 + lost.0), count.bytes.saturating_sub(in_flight.1 + lost.1))
    }

    /// Returns the counters of a lane.
    pub fn lane_count(&self, lane: u32) -> LaneCount {
        let now = count_at(&self.net.fc.lanes()[lane as usize], self.net.now());
        let before = self.baseline.lanes.get(lane as usize).copied().unwrap_or_default();
        debug_assert!(now.frames >= before.frames && now.r_rdys >= before.r_rdys, "lane {lane} counts backwards");
        LaneCount {
            frames: now.frames - before.frames,
            bytes: now.bytes - before.bytes,
            data_bytes: now.data_bytes - before.data_bytes,
            r_rdys: now.r_rdys - before.r_rdys,
            credits_lost: now.credits_lost - before.credits_lost,
            credits_recovered: now.credits_recovered - before.credits_recovered,
            credit_wait_ps: now.credit_wait_ps - before.credit_wait_ps,
            busy_ps: now.busy_ps - before.busy_ps,
            resets: now.resets - before.resets,
            late_ps: now.late_ps - before.late_ps,
            zero_credit_ps: now.zero_credit_ps.saturating_sub(before.zero_credit_ps),
            credit_zeros: now.credit_zeros.wrapping_sub(before.credit_zeros),
        }
    }

    /// Returns the counters of the virtual channels of a lane, by number.
    pub fn channel_counts(&self, lane: u32) -> Vec<ChannelCount> {
        let mut counts = channels_at(self.net, lane);
        let before = self.baseline.channels.get(lane as usize).into_iter().flatten();
        for (now, before) in counts.iter_mut().zip(before) {
            now.frames -= before.frames;
            now.bytes -= before.bytes;
            now.credit_wait_ps -= before.credit_wait_ps;
        }
        counts
    }
}

/// Returns the frames and bytes that were lost on a lane.
fn lost_on_line(losses: &BTreeMap<(LossSite, Loss), Lost>, lane: u32) -> (u64, u64) {
    let ours = losses.range((LossSite::Line(lane), Loss::ALL[0])..=(LossSite::Line(lane), Loss::LAST));
    ours.fold((0, 0), |sum, (_, lost)| (sum.0 + lost.frames, sum.1 + lost.bytes))
}

/// Returns the counters of the virtual channels of a lane.
fn channels_at(net: &Net, lane: u32) -> Vec<ChannelCount> {
    net.fc.channels(lane).map_or_else(Vec::new, |all| all.list().iter().map(|one| one.count(net.now())).collect())
}

/// Returns the counters of a lane, with the intervals that are open at `now`.
fn count_at(lane: &Lane, now: u64) -> LaneCount {
    LaneCount {
        credit_wait_ps: lane.credit_wait_ps(now),
        busy_ps: lane.busy_ps(now),
        zero_credit_ps: lane.zero_credit_ps(now),
        late_ps: lane.late_ps + lane.receiver.withheld_area_ps(now),
        ..lane.count()
    }
}

/// Returns the number of frames on a lane and their bytes.
fn flight_of(lane: &Lane) -> (u64, u64) {
    (lane.flight.len() as u64, lane.flight.iter().map(|on_line| on_line.frame.wire_bytes()).sum())
}
