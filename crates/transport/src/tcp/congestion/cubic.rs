//! The window law of CUBIC (RFC 9438) in integers.
//!
//! Times count in steps of 1,024 ns. C is 2/5 segment/s^3 and beta is 7/10.

use super::Acked;
use sanloom_scsi::time::{Instant, Span};

/// C in segments per cubic step, times 2^100: 2/5 x (1024 x 10^-9)^3 x 2^100.
const C: u128 = 544_451_787_073;
/// Longest time since the epoch in steps: 4.9 hours.
const MAX_TIME: u64 = 1 << 34;
/// Bits behind the point of the Reno-friendly window.
const POINT: u32 = 16;

/// State of CUBIC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cubic {
    /// Begin of the current congestion avoidance; `NEVER` before it.
    epoch: Instant,
    /// Reno-friendly window W_est, in bytes with `POINT` bits behind the point.
    friendly: u64,
    /// W_max in bytes.
    max: u32,
    /// Window before the last reduction, in bytes.
    prior: u32,
    /// K in steps, at most 73 minutes.
    k: u32,
    fast_convergence: bool,
}

impl Cubic {
    pub(super) fn new(fast_convergence: bool) -> Cubic {
        Cubic { epoch: Instant::NEVER, friendly: 0, max: 0, prior: 0, k: 0, fast_convergence }
    }

    /// Returns the new window after `bytes` were acknowledged (sections 4.2 to 4.5).
    pub(super) fn grow(&mut self, window: u32, bytes: u64, credit: &mut u64, acked: Acked) -> u32 {
        if self.epoch == Instant::NEVER {
            self.begin(acked.now, window, acked.unit);
        }
        let time = acked.now.since(self.epoch);
        self.follow_reno(window, bytes, acked.unit);
        let friendly = u32::try_from(self.friendly >> POINT).unwrap_or(u32::MAX);
        if self.at(time, acked.unit) < u64::from(friendly) {
            *credit = 0;
            return friendly.max(window);
        }
        let ahead = self.at(time + acked.rtt, acked.unit);
        let target = ahead.clamp(u64::from(window), u64::from(window) * 3 / 2);
        *credit = credit.saturating_add((target - u64::from(window)).saturating_mul(bytes));
        let step = *credit / u64::from(window).max(1);
        *credit -= step * u64::from(window).max(1);
        u32::try_from(u64::from(window) + step).unwrap_or(u32::MAX)
    }

    /// Begins an epoch with this window.
    fn begin(&mut self, now: Instant, window: u32, unit: u32) {
        self.epoch = now;
        self.friendly = u64::from(window) << POINT;
        if window >= self.max {
            self.max = window;
            self.k = 0;
        } else {
            // K = cbrt((W_max - cwnd) / C).
            let distance = u128::from(self.max - window);
            let cube = (distance << 100) / (C * u128::from(unit.max(1)));
            self.k = cube_root(cube);
        }
    }

    /// W_cubic at this time since the epoch, in bytes: C (t - K)^3 + W_max.
    fn at(&self, time: Span, unit: u32) -> u64 {
        let steps = (time.as_ns() >> 10).min(MAX_TIME);
        let distance = u128::from(steps.abs_diff(u64::from(self.k)));
        // 2^40 is removed before the other factors, so that the product has at most 115 bits.
        let cube = (distance * distance * distance) >> 40;
        let bytes = (cube * u128::from(unit) * C) >> 60;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let max = u64::from(self.max);
        if steps >= u64::from(self.k) { max.saturating_add(bytes) } else { max.saturating_sub(bytes) }
    }

    /// Grows W_est (section 4.3): alpha is 9/17 until the window before the loss is reached.
    fn follow_reno(&mut self, window: u32, bytes: u64, unit: u32) {
        let (above, below) = if self.friendly >> POINT >= u64::from(self.prior) { (1, 1) } else { (9, 17) };
        let growth = ((bytes * u64::from(unit) * above) << POINT) / (u64::from(window.max(1)) * below);
        self.friendly = self.friendly.saturating_add(growth);
    }

    /// Returns the window after a loss (sections 4.6 and 4.7).
    pub(super) fn lose(&mut self, window: u32, flight: u32) -> u32 {
        self.max = if self.fast_convergence && window < self.max {
            u32::try_from(u64::from(window) * 17 / 20).unwrap_or(u32::MAX)
        } else {
            window
        };
        self.prior = window;
        self.epoch = Instant::NEVER;
        u32::try_from(u64::from(flight) * 7 / 10).unwrap_or(u32::MAX)
    }

    /// Forgets the maximum: after a time-out, the first epoch begins with K = 0 (section 4.8).
    pub(super) fn time_out(&mut self) {
        self.epoch = Instant::NEVER;
        self.max = 0;
    }

    /// Moves the epoch by a silence of the application, which must not enlarge the window.
    pub(super) fn skip(&mut self, silence: Span) {
        if self.epoch != Instant::NEVER {
            self.epoch += silence;
        }
    }
}

/// Integer cube root, rounded down; at most `u32::MAX`.
fn cube_root(value: u128) -> u32 {
    let mut root: u128 = 0;
    for bit in (0..32).rev() {
        let next = root | 1 << bit;
        if next * next * next <= value {
            root = next;
        }
    }
    u32::try_from(root).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_rounded_down() {
        for root in [0u128, 1, 2, 3, 1_000, 65_537, 4_294_967_295] {
            assert_eq!(u128::from(cube_root(root * root * root)), root);
            if root > 1 {
                assert_eq!(u128::from(cube_root(root * root * root - 1)), root - 1);
            }
        }
    }

    /// RFC 9438, section 4.2: with W_max = 1,000 segments and beta = 0.7, K = cbrt(300 / 0.4) =
    /// 9.086 s. The window returns to W_max at K, and exceeds it by C (t - K)^3.
    #[test]
    fn the_window_is_a_cubic_of_time() {
        let mut cubic = Cubic::new(true);
        let unit = 1_000;
        let after = cubic.lose(1_000_000, 1_000_000);
        assert_eq!(after, 700_000);
        cubic.begin(Instant::ZERO, after, unit);
        let k = f64::from(cubic.k) * 1.024e-6;
        assert!((k - 9.0856).abs() < 1e-3, "K is {k} s");
        let at = |seconds: u64| cubic.at(Span::from_secs(seconds), unit) as f64;
        for (seconds, segments) in [(0, 700.0), (5, 972.721), (9, 999.99975), (12, 1_009.902), (20, 1_520.067)] {
            assert!((at(seconds) / 1_000.0 - segments).abs() < 0.2, "{} at {seconds} s", at(seconds));
        }
    }

    #[test]
    fn fast_convergence_lowers_the_maximum_of_a_shrinking_flow() {
        let mut cubic = Cubic::new(true);
        cubic.lose(1_000_000, 1_000_000);
        cubic.lose(800_000, 800_000);
        assert_eq!(cubic.max, 680_000);
        cubic.fast_convergence = false;
        cubic.lose(400_000, 400_000);
        assert_eq!(cubic.max, 400_000);
    }
}
