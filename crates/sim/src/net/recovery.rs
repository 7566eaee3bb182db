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

use super::lane::Lane;
use super::queue::NEVER;
use super::{Net, channels};

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
    frames: u32,
    /// Lost R_RDYs.
    r_rdys: u32,
    /// Lost R_RDYs since the counts began.
    all_r_rdys: u64,
}

impl Losses {
    /// Counts a lost R_RDY.
    pub(super) fn r_rdy(&mut self) {
        self.r_rdys += 1;
        self.all_r_rdys += 1;
    }
}

impl Lane {
    /// Starts the counts of the state changes again.
    pub(super) fn restart_state_changes(&mut self) {
        self.state_changes.began = self.sent_and_returned();
    }
}

/// Returns the credits that a state change restores. The others stay missing, because the ends
/// count modulo 2^n.
fn restored(n: u8, lost: &mut u32, missing: &mut u32) -> u32 {
    let restored = std::mem::take(lost) & ((1 << n) - 1);
    *missing -= restored;
    restored
}

/// Handles BB_SCs if the frame whose last bit leaves at `sent_ps` completes the count: the
/// receiver returns the credits of lost frames.
pub(super) fn after_frame(net: &mut Net, number: u32, sent_ps: u64) {
    let lane = &mut net.lanes[number as usize];
    let Some(fault) = &mut net.faults[number as usize] else { return };
    let n = lane.state_changes.n;
    let frames = lane.sent_and_returned().0 - lane.state_changes.began.0;
    if fault.losses.frames == 0 || !frames.is_multiple_of(1 << n) {
        return;
    }
    let credits = restored(n, &mut fault.losses.frames, &mut fault.credits_missing);
    lane.state_changes.recovered += u64::from(credits);
    let arrival_ps = sent_ps + lane.time_of(PRIMITIVE_BYTES) + lane.propagation_ps;
    for _ in 0..credits {
        // A link with virtual channels has no credit recovery.
        net.return_credit(number, arrival_ps);
    }
}

/// Handles BB_SCr if an R_RDY that leaves at `ready_ps`, or is lost then, completes the count:
/// the sender restores the credits of lost R_RDYs. `arrives` is true if this R_RDY is not lost.
pub(super) fn after_r_rdy(net: &mut Net, number: u32, ready_ps: u64, arrives: bool) {
    let lane = &mut net.lanes[number as usize];
    let Some(fault) = &mut net.faults[number as usize] else { return };
    let n = lane.state_changes.n;
    if n == 0 || fault.losses.r_rdys == 0 {
        return;
    }
    let returned = lane.sent_and_returned().1 + u64::from(arrives) - lane.state_changes.began.1;
    if !(returned + fault.losses.all_r_rdys).is_multiple_of(1 << n) || fault.loses_r_rdy() {
        return;
    }
    let credits = restored(n, &mut fault.losses.r_rdys, &mut fault.credits_missing);
    lane.state_changes.recovered += u64::from(credits);
    let arrival_ps = ready_ps + lane.time_of(PRIMITIVE_BYTES) + lane.r_rdy_ps;
    (0..credits).for_each(|_| lane.expect_credit(arrival_ps));
    if lane.credit_wait_since_ps != NEVER {
        let time = lane.next_credit().max(net.now);
        lane.wake_by(&mut net.queue, net.sources.wake(number), time);
    }
}

/// Starts the counts of a lane again, because its link was reset or went down. No credit is
/// missing any more.
pub(super) fn restart(net: &mut Net, number: u32) {
    net.lanes[number as usize].restart_state_changes();
    if let Some(fault) = &mut net.faults[number as usize] {
        fault.credits_missing = 0;
        fault.losses = Losses::default();
    }
}

/// Handles the credit of a frame that is lost on the line. With credit recovery it is missing until
/// the next state change. Without, it returns at once.
pub(super) fn lose_frame(net: &mut Net, number: u32, arrival_ps: u64, channel: u8) {
    let lane = &mut net.lanes[number as usize];
    match &mut net.faults[number as usize] {
        Some(fault) if lane.state_changes.n > 0 => {
            fault.credits_missing += 1;
            fault.losses.frames += 1;
            lane.credits_lost += 1;
        }
        _ => channels::return_credit(net, number, arrival_ps, channel),
    }
}
