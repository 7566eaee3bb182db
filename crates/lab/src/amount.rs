//! Counts and bounds, whose unit is optional.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::units::{self, BadQuantity, Dimension, NOT_A_NUMBER, PER_SECOND, SIZE, TIME};
use crate::value;

/// Count, stored as a whole number.
const COUNT: Dimension = Dimension {
    noun: "a count",
    units: &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)],
    example: "10k",
    also: &[("k", "k"), ("m", "M"), ("g", "G")],
};

/// Units of a metric, which follow from the end of its name.
enum Unit {
    /// Dimension, and the number of storage units in one unit of the metric. For rates of data,
    /// `/s` follows the unit of the size.
    Quantity(&'static Dimension, f64),
    DataRate(f64),
    /// A share from 0 to 1.
    Share,
    Percent,
}

/// Ends of names with their units; an end that contains another one precedes it.
const ENDS: [(&str, Unit); 15] = [
    ("_per_cpu_s", Unit::Quantity(&COUNT, 1.0)),
    ("bytes_per_s", Unit::DataRate(1.0)),
    ("mb_per_s", Unit::DataRate(1e6)),
    ("mb_s", Unit::DataRate(1e6)),
    ("_per_s", Unit::Quantity(&PER_SECOND, 1e3)),
    ("iops", Unit::Quantity(&PER_SECOND, 1e3)),
    ("_ps", Unit::Quantity(&TIME, 1.0)),
    ("_ns", Unit::Quantity(&TIME, 1e3)),
    ("_us", Unit::Quantity(&TIME, 1e6)),
    ("_ms", Unit::Quantity(&TIME, 1e9)),
    ("_s", Unit::Quantity(&TIME, 1e12)),
    ("bytes", Unit::Quantity(&SIZE, 1.0)),
    ("utilisation", Unit::Share),
    ("_fraction", Unit::Share),
    ("_percent", Unit::Percent),
];

/// Reads a whole number, alone or with `k`, `M` or `G`, such as `65_000` or `65k`.
///
/// # Errors
/// One sentence with the error and the correct format.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    match text.replace('_', "").parse() {
        Ok(count) if is_number => Ok(count),
        Err(_) if is_number && text.bytes().all(|c| c.is_ascii_digit() || c == b'_') => {
            Err(format!("`{}` is too large: write at most {}", value::cut(text), u64::MAX))
        }
        _ if text.bytes().all(|c| c.is_ascii_digit() || c == b'.') => {
            Err(format!("`{}` is not a whole number: write 10 or 10k, for example", value::cut(text)))
        }
        _ => units::parse(text, &COUNT).map_err(|bad| bad.typed()),
    }
}

/// Reads a bound of a metric: a number in the unit of the metric, or a number with any unit of the
/// same dimension. The end of the metric's name gives the unit: `p99_us` takes `5ms`, `left` and
/// `utilisation` take `50%`.
///
/// # Errors
/// One sentence with the error and the correct format.
pub fn parse_bound(metric: &str, text: &str) -> Result<f64, String> {
    bound(metric, text).map_err(|bad| bad.typed())
}

/// Like [`parse_bound`], for diagnostics.
pub(crate) fn bound(metric: &str, text: &str) -> Result<f64, BadQuantity> {
    let text = text.trim();
    match text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() => return Ok(number),
        Ok(_) => return Err(not_a_bound(text, "is not finite", "write a finite number, for example 10")),
        Err(_) => {}
    }
    let scaled = |text: &str, dimension, divisor: f64| Ok(units::parse(text, dimension)? as f64 / divisor);
    match unit(metric) {
        Unit::Quantity(dimension, divisor) => scaled(text, dimension, divisor),
        Unit::DataRate(divisor) => match text.strip_suffix("/s") {
            Some(size) => scaled(size, &SIZE, divisor),
            None => Err(not_a_bound(text, "is not a data rate", "write the unit per second, for example 100MB/s")),
        },
        Unit::Share => percent(text).map(|percent| percent / 100.0),
        Unit::Percent => percent(text),
    }
}

fn percent(text: &str) -> Result<f64, BadQuantity> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| not_a_bound(text, "is not a share", "write a number or percent, for example 0.5 or 50%"))
}

fn unit(metric: &str) -> Unit {
    let name = metric.trim();
    let name = if name.starts_with("count(") { "" } else { name.trim_end_matches(')').trim_end() };
    if name == "left" {
        return Unit::Share;
    }
    let known = ENDS.into_iter().find(|(end, _)| name.ends_with(end));
    known.map_or(Unit::Quantity(&COUNT, 1.0), |(_, unit)| unit)
}

fn not_a_bound(text: &str, problem: &str, remedy: &str) -> BadQuantity {
    let reason = format!("`{}` {problem}", value::cut(text));
    BadQuantity { code: NOT_A_NUMBER, reason, remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_an_optional_unit() {
        for (text, count) in [("7", 7), ("65_000", 65_000), ("1k", 1_000), ("1.5k", 1_500), ("2M", 2_000_000)] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for wrong in ["", "k", "1.5", "-1", "1ms", "1K", "_1"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
        assert!(parse_count("1K").unwrap_err().contains("did you mean 1k?"));
        for large in ["99999999999999999999", "18_446_744_073_709_551_616"] {
            let wrong = format!("`{large}` is too large: write at most 18446744073709551615");
            assert_eq!(parse_count(large), Err(wrong));
        }
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn a_bound_takes_the_units_of_its_metric() {
        for (metric, text, value) in [
            ("p99_us", "5000", 5_000.0),
            ("p99_us", "5ms", 5_000.0),
            ("max(hosts.*.latency.p99_us)", "5 ms", 5_000.0),
            ("longest_stall_s", "250ms", 0.25),
            ("throughput_bytes_per_s", "100MB/s", 1e8),
            ("read_mb_per_s", "1GB/s", 1_000.0),
            ("totals.iops", "22.5k/s", 22_500.0),
            ("rss_bytes", "64MiB", 67_108_864.0),
            ("left", "50%", 0.5),
            ("left", "5e-1", 0.5),
            ("links.a.b.utilisation", "12.5 %", 0.125),
            ("totals.ios_failed", "1k", 1_000.0),
            ("count(hosts.*.latency.p99_us)", "1k", 1_000.0),
            ("x", "-2", -2.0),
        ] {
            assert_eq!(parse_bound(metric, text), Ok(value), "{metric} {text}");
        }
    }

    #[test]
    fn a_bound_rejects_the_unit_of_another_dimension() {
        for (metric, text) in [
            ("p99_us", "5MB"),
            ("p99_us", "50%"),
            ("totals.ios_failed", "50%"),
            ("throughput_bytes_per_s", "100MB"),
            ("left", "5ms"),
            ("left", "much"),
            ("left", "inf"),
        ] {
            assert!(parse_bound(metric, text).is_err(), "{metric} {text}");
        }
    }
}
