//! Formatting of numbers with units, and of names.

use sanloom_api::words;

/// Bytes per second as MB/s of 10^6 bytes.
pub fn mb_per_s(bytes_per_s: f64) -> String {
    let mb = bytes_per_s / 1e6;
    if mb >= 10_000.0 { format!("{} MB/s", grouped(mb.round() as u64)) } else { format!("{mb:.1} MB/s") }
}

/// Formats microseconds with a suitable unit.
pub fn us(us: f64) -> String {
    match us {
        us if us <= 0.0 => "0 µs".into(),
        us if us < 10.0 => format!("{us:.2} µs"),
        us if us < 1_000.0 => format!("{us:.1} µs"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1e3),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// Formats seconds with a suitable unit.
pub fn seconds(s: f64) -> String {
    if s >= 1.0 {
        format!("{} s", trimmed(s, 3))
    } else if s >= 0.001 {
        format!("{} ms", trimmed(s * 1e3, 3))
    } else {
        us(s * 1e6)
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A count with commas between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with its noun and commas between thousands: "1 zone", "12,500 zones".
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), words::ending(&n))
}

/// Word in place of a change that has no share of the first value, because a run lacks the number
/// or the first value is 0.
pub fn changed(first: Option<f64>, second: Option<f64>) -> &'static str {
    match (first, second) {
        (_, None) => "gone",
        (None, _) => "new",
        _ => "from 0",
    }
}

/// A rate of events as a whole number.
pub fn rate(per_s: f64) -> String {
    grouped(per_s.max(0.0).round() as u64)
}

/// Bytes in binary units.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", trimmed(value, 1), UNITS[unit])
}

/// A number with at most `decimals` decimals and no zeros at its end.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a number with about four significant digits, for values whose unit is shown elsewhere.
pub fn plain(value: f64) -> String {
    match value.abs() {
        v if v >= 10_000.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(v.round() as u64))
        }
        v if v >= 100.0 => trimmed(value, 1),
        v if v >= 1.0 => trimmed(value, 2),
        0.0 => "0".into(),
        v if v >= 0.001 => trimmed(value, 4),
        _ => format!("{value:.2e}"),
    }
}

/// Removes characters from a user's name that could control a terminal.
pub fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Formats the reason of a drop as words: `hold_time` becomes `hold time`.
pub fn words(key: &str) -> String {
    clean(key).replace('_', " ")
}

/// Returns the display unit that the suffix of a metric's name implies, and the factor to convert
/// to it. Bytes per second are shown in MB/s, microseconds and seconds unchanged, and shares in
/// percent.
pub fn unit_of(metric: &str) -> (&'static str, f64) {
    let metric = metric.trim_end_matches(')');
    if metric.contains("_per_cpu_s") {
        return ("", 1.0);
    }
    for (end, unit, factor) in [
        ("_bytes_per_s", "MB/s", 1e-6),
        ("_us", "µs", 1.0),
        ("_s", "s", 1.0),
        ("_bytes", "bytes", 1.0),
        ("iops", "IOPS", 1.0),
        ("utilisation", "%", 100.0),
        ("_fraction", "%", 100.0),
    ] {
        if metric.ends_with(end) {
            return (unit, factor);
        }
    }
    ("", 1.0)
}

/// Formats a metric's value with its unit; see [`unit_of`].
pub fn measured(metric: &str, value: f64) -> String {
    let (unit, factor) = unit_of(metric);
    match unit {
        "" => plain(value),
        unit => format!("{} {unit}", plain(value * factor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_suits_them() {
        assert_eq!(us(0.0), "0 µs");
        assert_eq!(us(9.92), "9.92 µs");
        assert_eq!(us(182.86), "182.9 µs");
        assert_eq!(us(1_830.0), "1.83 ms");
        assert_eq!(us(2_500_000.0), "2.50 s");
        assert_eq!(seconds(0.5), "500 ms");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(2.0), "2 s");
    }

    #[test]
    fn counts_have_commas_between_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn any_number_keeps_its_meaning() {
        assert_eq!(plain(0.0), "0");
        assert_eq!(plain(-12_345.6), "-12,346");
        assert_eq!(plain(81.94), "81.94");
        assert_eq!(plain(0.25), "0.25");
        assert_eq!(plain(0.000_012), "1.20e-5");
        assert_eq!(trimmed(100.0, 0), "100");
    }

    #[test]
    fn a_name_cannot_control_a_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\n"), "a?[2Jb?");
    }

    #[test]
    fn the_suffix_of_a_metric_gives_its_unit() {
        assert_eq!(unit_of("min(hosts.*.throughput_bytes_per_s)").0, "MB/s");
        assert_eq!(unit_of("totals.latency.p99_9_us").0, "µs");
        assert_eq!(unit_of("links.isl1.forward.utilisation").0, "%");
        assert_eq!(unit_of("totals.ios_failed").0, "");
        assert_eq!(measured("a.throughput_bytes_per_s", 62e6), "62 MB/s");
        assert_eq!(measured("totals.ios_failed", 2.0), "2");
    }
}
