//! Pause of a priority at the sender of a line (IEEE 802.1Qbb), and its times.

use super::packet::PRIORITIES;

/// Bits of a pause quantum.
pub const QUANTUM_BITS: u64 = 512;
/// Longest pause that a frame can ask for, in quanta.
pub const LONGEST_QUANTA: u64 = 65_535;

/// Pauses of all priorities of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    of: [Pause; PRIORITIES],
}

/// Pause of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    /// No frame begins from this time on, in ps.
    from_ps: u64,
    /// Frames may begin again from this time on.
    until_ps: u64,
    /// Length of the pauses before, in ps.
    past_ps: u64,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses { of: [Pause::default(); PRIORITIES] }
    }
}

impl Pauses {
    /// Stops a priority for `length_ps`. A frame may still begin within `reaction_ps`.
    pub fn stop(&mut self, priority: usize, now: u64, reaction_ps: u64, length_ps: u64) {
        let pause = &mut self.of[priority];
        if pause.until_ps > now {
            pause.until_ps = now + length_ps;
        } else {
            pause.past_ps += pause.until_ps - pause.from_ps;
            pause.from_ps = now + reaction_ps;
            pause.until_ps = pause.from_ps + length_ps;
        }
        pause.until_ps = pause.until_ps.max(pause.from_ps);
    }

    /// Ends the pause of a priority.
    pub fn resume(&mut self, priority: usize, now: u64) {
        let pause = &mut self.of[priority];
        pause.until_ps = pause.until_ps.min(now).max(pause.from_ps.min(now));
        pause.from_ps = pause.from_ps.min(pause.until_ps);
    }

    /// Ends all pauses.
    pub fn clear(&mut self, now: u64) {
        (0..PRIORITIES).for_each(|priority| self.resume(priority, now));
    }

    /// Returns the time from which on a frame of the priority may begin: `now` if it is not paused.
    #[inline]
    pub fn may_begin_ps(&self, priority: usize, now: u64) -> u64 {
        let pause = &self.of[priority];
        if pause.from_ps <= now && now < pause.until_ps { pause.until_ps } else { now }
    }

    /// Returns start and end of the last pause of the priority, in ps.
    pub fn last(&self, priority: usize) -> (u64, u64) {
        (self.of[priority].from_ps, self.of[priority].until_ps)
    }

    /// Returns the time for which the priority has been paused up to `now`, in ps.
    pub fn paused_ps(&self, priority: usize, now: u64) -> u64 {
        let pause = &self.of[priority];
        pause.past_ps + pause.until_ps.min(now).saturating_sub(pause.from_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_may_begin_until_the_reaction_time_is_over() {
        let mut pauses = Pauses::default();
        pauses.stop(3, 1_000, 50, 500);
        assert_eq!(
            [1_000, 1_049, 1_050, 1_549, 1_550].map(|now| pauses.may_begin_ps(3, now)),
            [1_000, 1_049, 1_550, 1_550, 1_550]
        );
        assert_eq!(pauses.may_begin_ps(4, 1_100), 1_100);
    }

    #[test]
    fn a_refresh_extends_a_pause_and_a_resume_ends_it() {
        let mut pauses = Pauses::default();
        pauses.stop(0, 0, 10, 100);
        pauses.stop(0, 80, 10, 100);
        assert_eq!(pauses.may_begin_ps(0, 150), 180);
        pauses.resume(0, 160);
        assert_eq!(pauses.may_begin_ps(0, 160), 160);
        assert_eq!(pauses.paused_ps(0, 1_000), 150);
        pauses.stop(0, 500, 10, 100);
        assert_eq!([505, 560, 1_000].map(|now| pauses.paused_ps(0, now)), [150, 200, 250]);
    }

    #[test]
    fn a_resume_before_the_reaction_cancels_the_pause() {
        let mut pauses = Pauses::default();
        pauses.stop(0, 100, 50, 1_000);
        pauses.resume(0, 120);
        assert_eq!((pauses.may_begin_ps(0, 200), pauses.paused_ps(0, 2_000)), (200, 0));
    }
}
