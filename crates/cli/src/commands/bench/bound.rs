//! What a measurement is to reach: [`Bound`], and what `--judge` makes of it.

use crate::exit::{EXPECTATION_FAILED, Failure};
use std::fmt;

/// A measured number and the bound that the project sets for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    what: &'static str,
    measured: f64,
    wanted: Wanted,
    unit: &'static str,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    /// Less is a miss. Both numbers are in `unit`.
    pub fn at_least(what: &'static str, measured: f64, wanted: f64, unit: &'static str) -> Bound {
        Bound { what, measured, wanted: Wanted::AtLeast(wanted), unit }
    }

    /// More is a miss. Both numbers are in `unit`.
    pub fn at_most(what: &'static str, measured: f64, wanted: f64, unit: &'static str) -> Bound {
        Bound { what, measured, wanted: Wanted::AtMost(wanted), unit }
    }

    /// What was measured is no number, or beyond the bound: a miss.
    fn holds(&self) -> bool {
        match self.wanted {
            Wanted::AtLeast(wanted) => self.measured >= wanted,
            Wanted::AtMost(wanted) => self.measured <= wanted,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bound { what, measured, unit, .. } = self;
        let (sense, wanted) = match self.wanted {
            Wanted::AtLeast(wanted) => ("at least", wanted),
            Wanted::AtMost(wanted) => ("at most", wanted),
        };
        let verdict = if self.holds() { "holds" } else { "missed" };
        write!(f, "{what}: {measured:.2} {unit}, wanted {sense} {wanted} {unit}: {verdict}")
    }
}

/// A line for each bound; nothing where there are none.
pub fn text(bounds: &[Bound]) -> String {
    bounds.iter().map(|bound| format!("{bound}\n")).collect()
}

/// What `--judge` asks for.
///
/// # Errors
/// [`EXPECTATION_FAILED`] with the bounds that were missed. A size without bounds cannot be judged.
pub fn judge(bounds: &[Bound]) -> Result<(), Failure> {
    if bounds.is_empty() {
        return Err(Failure::usage("there are no bounds for this size; --judge goes with the default sizes"));
    }
    let missed: Vec<String> = bounds.iter().filter(|bound| !bound.holds()).map(Bound::to_string).collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Failure { code: EXPECTATION_FAILED, message: missed.join("\n"), coloured: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::USAGE;

    #[test]
    fn what_is_beyond_a_bound_is_missed_and_said() {
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
}
