//! Bounds that the project sets for its measurements, and the `--judge` option.

use super::statistics::{Decision, Estimate, Limit};
use sanloom_console::exit::{EXPECTATION_FAILED, Failure};
use std::fmt;

/// A measured number and its limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    what: &'static str,
    measured: Measured,
    limit: Limit,
    unit: &'static str,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Measured {
    Value(f64),
    Estimate(Estimate),
}

impl Bound {
    /// A smaller value is a miss. Both numbers are in `unit`.
    pub fn at_least(what: &'static str, measured: f64, wanted: f64, unit: &'static str) -> Bound {
        Bound { what, measured: Measured::Value(measured), limit: Limit::AtLeast(wanted), unit }
    }

    /// A larger value is a miss. Both numbers are in `unit`.
    pub fn at_most(what: &'static str, measured: f64, wanted: f64, unit: &'static str) -> Bound {
        Bound { what, measured: Measured::Value(measured), limit: Limit::AtMost(wanted), unit }
    }

    /// An interval that crosses the limit is undecided, which is no miss.
    pub fn of_estimate(what: &'static str, measured: Estimate, limit: Limit, unit: &'static str) -> Bound {
        Bound { what, measured: Measured::Estimate(measured), limit, unit }
    }

    fn decision(&self) -> Decision {
        match self.measured {
            Measured::Value(value) if self.limit.holds(value) => Decision::Ok,
            Measured::Value(_) => Decision::Missed,
            Measured::Estimate(estimate) => estimate.decide(self.limit),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bound { what, limit, unit, .. } = self;
        let verdict = match self.decision() {
            Decision::Ok => "holds",
            Decision::Missed => "missed",
            Decision::Undecided => "undecided",
        };
        match self.measured {
            Measured::Value(value) => write!(f, "{what}: {value:.2} {unit}, wanted {limit} {unit}: {verdict}"),
            Measured::Estimate(estimate) => write!(f, "{what}: {estimate} {unit}, wanted {limit} {unit}: {verdict}"),
        }
    }
}

/// Returns a line for each bound; nothing if there are none.
pub fn text(bounds: &[Bound]) -> String {
    bounds.iter().map(|bound| format!("{bound}\n")).collect()
}

/// Applies `--judge`.
///
/// # Errors
/// [`EXPECTATION_FAILED`] with the missed bounds; a usage error if the size has no bounds.
pub fn judge(bounds: &[Bound]) -> Result<(), Failure> {
    if bounds.is_empty() {
        return Err(Failure::usage("--judge requires the default sizes, because other sizes have no bounds"));
    }
    let missed: Vec<String> =
        bounds.iter().filter(|bound| bound.decision() == Decision::Missed).map(Bound::to_string).collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure { code: EXPECTATION_FAILED, message: missed.join("\n"), coloured: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_console::exit::USAGE;

    #[test]
    fn a_value_beyond_its_bound_is_missed_and_named() {
        let met = [Bound::at_least("rate", 8.0, 8.0, "M/s"), Bound::at_most("memory", 64.0, 64.0, "MiB")];
        assert!(judge(&met).is_ok());
        for bound in [
            Bound::at_least("rate", 7.99, 8.0, "M/s"),
            Bound::at_most("memory", 64.01, 64.0, "MiB"),
            Bound::at_most("time", f64::NAN, 1.0, "s"),
        ] {
            let failure = judge(&[met[0], bound]).unwrap_err();
            assert_eq!(failure.code, EXPECTATION_FAILED);
            assert_eq!(failure.message, bound.to_string());
            assert!(failure.message.ends_with(": missed"));
        }
        assert_eq!(judge(&[]).unwrap_err().code, USAGE);
    }

    #[test]
    fn an_interval_that_crosses_its_bound_is_undecided_and_no_miss() {
        let estimate = Estimate::of((1..=9).map(f64::from)).unwrap();
        let bound = |limit| Bound::of_estimate("ratio", estimate, limit, "times");
        let undecided = bound(Limit::AtLeast(5.0));
        assert!(judge(&[undecided]).is_ok());
        assert_eq!(undecided.to_string(), "ratio: 5.00 [2.00, 8.00] times, wanted at least 5 times: undecided");
        assert_eq!(judge(&[bound(Limit::AtLeast(9.0))]).unwrap_err().code, EXPECTATION_FAILED);
        assert!(judge(&[bound(Limit::AtLeast(2.0))]).is_ok());
    }
}
