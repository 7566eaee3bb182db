//! Round-trip time and retransmission time-out (RFC 6298).

use super::config::Config;
use sanloom_scsi::time::Span;

/// Longest time-out in doublings, so that a shift cannot overflow.
const MAX_DOUBLINGS: u8 = 20;

/// Estimator of the round-trip time, in nanoseconds. Samples above 4.29 s count as 4.29 s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rtt {
    smoothed: u32,
    variation: u32,
    doublings: u8,
}

impl Rtt {
    /// Smoothed round-trip time, or `None` before the first sample.
    pub(super) fn smoothed(&self) -> Option<Span> {
        (self.smoothed > 0).then(|| Span::from_ns(u64::from(self.smoothed)))
    }

    /// Takes a sample (RFC 6298, 2.2 and 2.3). A valid sample ends the doubling, as in Linux.
    pub(super) fn sample(&mut self, rtt: Span) {
        let sample = u32::try_from(rtt.as_ns()).unwrap_or(u32::MAX).max(1);
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
        } else {
            let difference = u64::from(self.smoothed.abs_diff(sample));
            self.variation = weighted(self.variation, difference, 4);
            self.smoothed = weighted(self.smoothed, u64::from(sample), 8).max(1);
        }
        self.doublings = 0;
    }

    /// Doubles the time-out (RFC 6298, 5.5).
    pub(super) fn double(&mut self) {
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }

    /// Ends the doubling without a sample, when a closed window opens.
    pub(super) fn forget_doublings(&mut self) {
        self.doublings = 0;
    }

    /// Current time-out, doublings included. `rto_min` is the floor of the variance term, as in
    /// Linux, and not of the sum, as in RFC 6298, 2.4.
    pub(super) fn timeout(&self, config: &Config) -> Span {
        let base = match self.smoothed() {
            None => config.rto_initial,
            Some(smoothed) => smoothed + Span::from_ns(4 * u64::from(self.variation)).max(config.rto_min),
        };
        base.times(1 << self.doublings).min(config.rto_max)
    }
}

/// Moves an average by 1/`weight` of the distance to `sample`, rounded.
fn weighted(average: u32, sample: u64, weight: u64) -> u32 {
    let sum = u64::from(average) * (weight - 1) + sample + weight / 2;
    u32::try_from(sum / weight).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 by hand: first sample 100 ms, second 180 ms, without a floor.
    #[test]
    fn the_time_out_follows_rfc_6298() {
        let config = Config { rto_min: Span::ZERO, ..Config::linux(1500) };
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&config), Span::from_secs(1));
        rtt.sample(Span::from_ms(100));
        assert_eq!(rtt.timeout(&config), Span::from_ms(100 + 4 * 50));
        // Variation 3/4 x 50 + 1/4 x 80 = 57.5, smoothed 7/8 x 100 + 1/8 x 180 = 110.
        rtt.sample(Span::from_ms(180));
        assert_eq!(rtt.timeout(&config), Span::from_ms(110 + 230));
    }

    #[test]
    fn the_time_out_doubles_from_200_ms_to_120_s() {
        let config = Config::linux(1500);
        let mut rtt = Rtt::default();
        (0..200).for_each(|_| rtt.sample(Span::from_us(100)));
        let first = Span::from_us(200_100);
        assert_eq!(rtt.timeout(&config), first);
        rtt.double();
        assert_eq!(rtt.timeout(&config), first.times(2));
        (0..200).for_each(|_| rtt.double());
        assert_eq!(rtt.timeout(&config), Span::from_secs(120));
        rtt.sample(Span::from_us(100));
        assert_eq!(rtt.timeout(&config), first);
    }
}
