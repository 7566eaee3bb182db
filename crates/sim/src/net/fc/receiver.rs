//! Faults of the receiver of a lane: [`Receiver`].

/// Faults of a receiver.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Receiver {
    /// Extra time before each R_RDY, in ps. Delays of successive R_RDYs add up.
    pub delay_ps: u64,
    /// Time at which the last R_RDY was ready.
    pub last_ps: u64,
    /// True if R_RDYs are withheld.
    pub withholds: bool,
    /// Number of withheld R_RDYs.
    pub withheld: u32,
    /// Integral of the withheld R_RDYs over time, in R_RDYs × ps, up to `changed_ps`.
    withheld_area_ps: u64,
    changed_ps: u64,
}

impl Receiver {
    /// Sets the number of withheld R_RDYs from `now` on.
    pub fn set_withheld(&mut self, now: u64, withheld: u32) {
        self.withheld_area_ps = self.withheld_area_ps(now);
        self.changed_ps = now;
        self.withheld = withheld;
    }

    /// Returns the integral of the withheld R_RDYs over time, in R_RDYs × ps, up to `now`.
    pub fn withheld_area_ps(&self, now: u64) -> u64 {
        self.withheld_area_ps + u64::from(self.withheld) * now.saturating_sub(self.changed_ps)
    }
}
