//! Bounds from the command line: `--expect 'METRIC >= VALUE'`.

use crate::report::format;
use std::fmt;

/// A bound on one number.
#[derive(Clone, PartialEq, Debug)]
pub struct Gate {
    /// Name or path of the number.
    pub metric: String,
    relation: Relation,
    value: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

/// Signs and their relations; a sign that begins with another one stands before it.
const SIGNS: [(&str, Relation); 8] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    ("≥", Relation::AtLeast),
    ("≤", Relation::AtMost),
    ("==", Relation::Equal),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Equal),
];

impl Gate {
    /// Parses `METRIC >= VALUE`; the value may have a unit of the metric, as in `p99_us <= 5ms`.
    ///
    /// # Errors
    /// The sign, the metric or the value is missing.
    pub fn parse(text: &str) -> Result<Gate, String> {
        let wrong = || "write it as 'METRIC >= VALUE', for example 'totals.ios_failed <= 0'".to_owned();
        let found = SIGNS.iter().find_map(|(sign, relation)| Some((text.split_once(sign)?, *relation)));
        let ((metric, value), relation) = found.ok_or_else(wrong)?;
        let metric = metric.trim();
        if metric.is_empty() {
            return Err(wrong());
        }
        let value = sanloom_lab::parse_bound(metric, value)?;
        Ok(Gate { metric: metric.to_owned(), relation, value })
    }

    /// True if a number is within the bound. A missing number never is.
    pub fn holds(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| match self.relation {
            Relation::AtLeast => value >= self.value,
            Relation::AtMost => value <= self.value,
            Relation::Above => value > self.value,
            Relation::Below => value < self.value,
            Relation::Equal => value == self.value,
        })
    }

    /// Line for a number outside of the bound; `place` names the row.
    pub fn failure(&self, place: &str, value: Option<f64>) -> String {
        let value = value.map_or_else(|| "missing".to_owned(), |value| format::measured(&self.metric, value));
        format!("FAILED {self} at {}: it is {value}", format::clean(place))
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS.iter().find(|(_, relation)| *relation == self.relation).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", format::clean(&self.metric), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_is_read_and_judged() {
        for (text, low, high) in [
            ("left >= 0.5", false, true),
            ("left>0.5", false, true),
            ("left ≤ 5e-1", true, false),
            ("left < 0.5", true, false),
            ("left == 0.4", true, false),
        ] {
            let gate = Gate::parse(text).expect(text);
            assert_eq!(gate.metric, "left");
            assert_eq!((gate.holds(Some(0.4)), gate.holds(Some(0.6)), gate.holds(None)), (low, high, false), "{text}");
        }
    }

    #[test]
    fn a_bound_without_sign_metric_or_number_is_rejected() {
        for text in ["left", ">= 1", "left >= much", "left >= inf"] {
            assert!(Gate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bound_takes_the_unit_of_its_metric() {
        for (text, low, high) in [("p99_us <= 5ms", 4_999.0, 5_001.0), ("left < 50%", 0.4, 0.5)] {
            let gate = Gate::parse(text).expect(text);
            assert_eq!((gate.holds(Some(low)), gate.holds(Some(high))), (true, false), "{text}");
        }
        assert!(Gate::parse("p99_us <= 50%").is_err());
    }

    #[test]
    fn a_failure_names_bound_place_and_value() {
        let gate = Gate::parse("longest_stall_s<=1").expect("a bound");
        assert_eq!(gate.failure("isl1", Some(5.0)), "FAILED longest_stall_s <= 1 at isl1: it is 5 s");
    }
}
