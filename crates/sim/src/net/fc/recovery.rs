//! Credit recovery by buffer-to-buffer state changes (FC-FS, BB_Credit recovery).
//!
//! The sender of a lane sends BB_SCs after every 2^n frames. The receiver compares the frames that
//! it received since the last one, and returns the credits of the others with as many R_RDYs. The
//! receiver sends BB_SCr after every 2^n R_RDYs. The sender compares likewise and restores the
//! credits of lost R_RDYs. Both count modulo 2^n, so losses of 2^n or more remain. A lost state
//! change is made up for by the next one. A link reset starts both counts again.
//!
//! State changes matter only on a lane with a fault. Other lanes need no work: their frames and
//! R_RDYs are counted anyway.
//!
//! On a link with virtual channels, state changes follow after 2^n frames or R_RDYs of the link.
//! The ends compare the counts of each channel, so a credit returns to its channel. The standard
//! describes links with one channel; this extension is the model's choice.

use super::lane::Lane;
use super::{FcPlane, channels};
use crate::net::events::Events;
use sanloom_fc::config::MAX_CHANNELS;

/// Bytes of a state change on the line, a primitive like R_RDY.
const PRIMITIVE_BYTES: u64 = 4;

/// Credit recovery of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateChanges {
    /// BB_SC_N that both ends agreed on; 0: no credit recovery.
    pub n: u8,
    /// Credits restored.
    pub recovered: u64,
    /// Frames and R_RDYs of the lane when the counts began.
    began: (u64, u64),
}

/// Losses of a lane since the last state change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// Lost frames whose credit did not return.
    frames: Lost,
    /// Lost R_RDYs.
    r_rdys: Lost,
    /// Lost R_RDYs since the counts began.
    all_r_rdys: u64,
}

/// Losses, by virtual channel. Lanes without virtual channels use the first entry.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    count: u32,
    by_channel: [u32; MAX_CHANNELS],
}

impl Losses {
    /// Counts a lost R_RDY of a channel; 0 if the lane has no virtual channels.
    pub(super) fn r_rdy(&mut self, channel: u8) {
        self.r_rdys.add(channel);
        self.all_r_rdys += 1;
    }
}

impl Lost {
    fn add(&mut self, channel: u8) {
        self.count += 1;
        self.by_channel[usize::from(channel)] += 1;
    }

    /// Forgets the losses. Returns the channels whose credits a state change restores, with the
    /// number of credits. Others stay missing, because the ends count modulo 2^n.
    fn restore(&mut self, n: u8) -> impl Iterator<Item = (u8, u32)> + use<> {
        let lost = std::mem::take(self).by_channel;
        (0..).zip(lost).map(move |(channel, lost)| (channel, lost & ((1 << n) - 1))).filter(|&(_, lost)| lost > 0)
    }
}

impl Lane {
    /// Starts the counts of the state changes again.
    pub(super) fn restart_state_changes(&mut self) {
        self.state_changes.began = self.sent_and_returned();
    }
}

/// Counts restored credits of a channel as no longer missing.
fn found(net: &mut FcPlane, number: u32, channel: u8, credits: u32) {
    net.lanes[number as usize].state_changes.recovered += u64::from(credits);
    if let Some(fault) = &mut net.faults[number as usize] {
        fault.credits_missing -= credits;
    }
    if let Some(channel) = net.channels[number as usize].as_mut().and_then(|all| all.get_mut(channel)) {
        channel.missing -= credits;
    }
}

/// Handles BB_SCs if the frame whose last bit leaves at `sent_ps` completes the count: the
/// receiver returns the credits of lost frames.
pub(super) fn after_frame(net: &mut FcPlane, events: &mut Events, number: u32, sent_ps: u64) {
    let lane = &net.lanes[number as usize];
    let Some(fault) = &mut net.faults[number as usize] else { return };
    let n = lane.state_changes.n;
    let frames = lane.sent_and_returned().0 - lane.state_changes.began.0;
    if fault.losses.frames.count == 0 || !frames.is_multiple_of(1 << n) {
        return;
    }
    let arrival_ps = sent_ps + lane.time_of(PRIMITIVE_BYTES) + lane.propagation_ps;
    for (channel, credits) in fault.losses.frames.restore(n) {
        found(net, number, channel, credits);
        (0..credits).for_each(|_| channels::return_credit(net, events, number, arrival_ps, channel));
    }
}

/// Handles BB_SCr if an R_RDY that leaves at `ready_ps`, or is lost then, completes the count:
/// the sender restores the credits of lost R_RDYs. `arrives` is true if this R_RDY is not lost.
pub(super) fn after_r_rdy(net: &mut FcPlane, events: &mut Events, number: u32, ready_ps: u64, arrives: bool) {
    let lane = &net.lanes[number as usize];
    let Some(fault) = &mut net.faults[number as usize] else { return };
    let n = lane.state_changes.n;
    if n == 0 || fault.losses.r_rdys.count == 0 {
        return;
    }
    let returned = lane.sent_and_returned().1 + u64::from(arrives) - lane.state_changes.began.1;
    if !(returned + fault.losses.all_r_rdys).is_multiple_of(1 << n) || fault.loses_r_rdy() {
        return;
    }
    let arrival_ps = ready_ps + lane.time_of(PRIMITIVE_BYTES) + lane.r_rdy_ps;
    for (channel, credits) in fault.losses.r_rdys.restore(n) {
        found(net, number, channel, credits);
        (0..credits).for_each(|_| channels::expect_credit(net, events, number, channel, arrival_ps));
    }
}

/// Starts the counts of a lane again, because its link was reset or went down. No credit is
/// missing any more.
pub(super) fn restart(net: &mut FcPlane, number: u32) {
    net.lanes[number as usize].restart_state_changes();
    if let Some(fault) = &mut net.faults[number as usize] {
        fault.credits_missing = 0;
        fault.losses = Losses::default();
    }
}

/// Handles the credit of a frame that is lost on the line. With credit recovery it is missing until
/// the next state change. Without, it returns at once.
pub(super) fn lose_frame(net: &mut FcPlane, events: &mut Events, number: u32, arrival_ps: u64, channel: u8) {
    let lane = &mut net.lanes[number as usize];
    match &mut net.faults[number as usize] {
        Some(fault) if lane.state_changes.n > 0 => {
            let all = net.channels[number as usize].as_mut();
            let channel = all.and_then(|all| all.get_mut(channel)).map_or(0, |channel| {
                channel.missing += 1;
                channel.number
            });
            fault.credits_missing += 1;
            fault.losses.frames.add(channel);
            lane.credits_lost += 1;
        }
        _ => channels::return_credit(net, events, number, arrival_ps, channel),
    }
}
