//! Numbers with units: `"50m"`, `"2GFC"`, `"32KiB"`, `"22.5k/s"`.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::{suggest, value};
use sanloom_fc::config::{EthernetRate, InfinibandRate, LineRate, Picos};

/// A dimension with its units, smallest first. Each unit has its factor to the unit in which values
/// are stored.
pub(crate) struct Dimension {
    pub noun: &'static str,
    pub units: &'static [(&'static str, u64)],
    pub example: &'static str,
    /// Alternative spellings and their units; used only for suggestions.
    pub also: &'static [(&'static str, &'static str)],
}

/// Time, stored in picoseconds.
pub(crate) const TIME: Dimension = Dimension {
    noun: "a time",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("µs", 1_000_000),
        ("μs", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
    example: "10ms",
    also: &[
        ("nsec", "ns"),
        ("usec", "us"),
        ("msec", "ms"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("minutes", "min"),
        ("hours", "h"),
    ],
};

/// Length, stored in millimetres.
pub(crate) const LENGTH: Dimension = Dimension {
    noun: "a length",
    units: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
    example: "50m",
    also: &[("metre", "m"), ("meter", "m"), ("metres", "m"), ("meters", "m")],
};

/// Size, stored in bytes. `k` and `M` are powers of 1000, `Ki` and `Mi` powers of 1024.
pub(crate) const SIZE: Dimension = Dimension {
    noun: "a size",
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    example: "32KiB",
    also: &[("k", "KiB"), ("m", "MiB"), ("g", "GiB"), ("t", "TiB"), ("bytes", "B")],
};

/// Rate, stored in thousandths of an event per second.
pub(crate) const PER_SECOND: Dimension = Dimension {
    noun: "a rate",
    units: &[("/s", 1_000), ("k/s", 1_000_000), ("M/s", 1_000_000_000), ("G/s", 1_000_000_000_000)],
    example: "22.5k/s",
    also: &[("k", "k/s"), ("iops", "/s"), ("per second", "/s"), ("kiops", "k/s"), ("m", "M/s")],
};

/// Frequency, stored in hertz.
pub(crate) const CLOCK: Dimension = Dimension {
    noun: "a frequency",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    example: "66MHz",
    also: &[],
};

/// Data rate, stored in bit/s.
pub(crate) const BIT_RATE: Dimension = Dimension {
    noun: "a data rate",
    units: &[("Mb/s", 1_000_000), ("Gb/s", 1_000_000_000), ("Tb/s", 1_000_000_000_000)],
    example: "32Gb/s",
    also: &[("Mbit/s", "Mb/s"), ("Gbit/s", "Gb/s"), ("Tbit/s", "Tb/s"), ("Gbps", "Gb/s"), ("Mbps", "Mb/s")],
};

const DIMENSIONS: [&Dimension; 6] = [&TIME, &LENGTH, &SIZE, &PER_SECOND, &CLOCK, &BIT_RATE];

/// Reason for which a text is not a quantity: code, reason, remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadQuantity {
    pub code: &'static str,
    pub reason: String,
    pub remedy: String,
}

impl BadQuantity {
    /// Returns one sentence for command line users, where values need no quotes.
    pub fn typed(&self) -> String {
        format!("{}: {}", self.reason, self.remedy.replace('"', ""))
    }
}

/// Code of a number without its unit.
pub(crate) const MISSING_UNIT: &str = "missing-unit";
/// Code of a unit that does not exist or belongs to another dimension.
pub(crate) const WRONG_UNIT: &str = "wrong-unit";
/// Code of a text in place of a number.
pub(crate) const NOT_A_NUMBER: &str = "not-a-number";
/// Code of a number outside its range.
pub(crate) const OUT_OF_RANGE: &str = "out-of-range";

/// Limit on the digits before the decimal point. More digits exceed every unit, and would overflow
/// the sum here.
const MAX_DIGITS: usize = 22;

/// Returns the value of `text` in the storage unit of `dimension`, rounded to the nearest.
pub(crate) fn parse(text: &str, dimension: &Dimension) -> Result<u64, BadQuantity> {
    parse_like(text, dimension, dimension.example)
}

/// Like [`parse`], but suggests the unit of `example` if the unit is missing.
pub(crate) fn parse_like(text: &str, dimension: &Dimension, example: &str) -> Result<u64, BadQuantity> {
    let text = text.trim();
    let whole = text.bytes().take_while(|c| c.is_ascii_digit() || *c == b'_');
    if whole.filter(u8::is_ascii_digit).count() > MAX_DIGITS {
        return Err(too_large(text, dimension));
    }
    let (mantissa, decimals, unit) = split(text).map_err(|()| not_a_number(text, dimension))?;
    if unit.is_empty() {
        return Err(missing_unit(text, dimension, example));
    }
    if let Some(exponent) = unit.strip_prefix(['e', 'E'])
        && exponent.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(BadQuantity {
            code: NOT_A_NUMBER,
            reason: format!("`{}` has an exponent, which values with a unit do not take", value::cut(text)),
            remedy: format!("write the number out, for example \"{}\"", dimension.example),
        });
    }
    let Some(&(_, factor)) = dimension.units.iter().find(|(name, _)| *name == unit) else {
        return Err(wrong_unit(text, unit, dimension));
    };
    let divisor = 10_u128.pow(decimals);
    mantissa
        .checked_mul(u128::from(factor))
        .and_then(|scaled| scaled.checked_add(divisor / 2))
        .and_then(|rounded| u64::try_from(rounded / divisor).ok())
        .ok_or_else(|| too_large(text, dimension))
}

/// Returns a rate in thousandths per second. Zero is an error, because no event would ever occur.
pub(crate) fn parse_rate(text: &str, example: &str) -> Result<u64, BadQuantity> {
    match parse_like(text, &PER_SECOND, example)? {
        0 => Err(BadQuantity {
            code: OUT_OF_RANGE,
            reason: format!("`{}` is a rate of zero", value::cut(text.trim())),
            remedy: format!("choose a rate above 0/s, for example \"{}\"", example.trim_matches('"')),
        }),
        rate => Ok(rate),
    }
}

fn too_large(text: &str, dimension: &Dimension) -> BadQuantity {
    BadQuantity {
        code: OUT_OF_RANGE,
        reason: format!("`{}` is too large", value::cut(text)),
        remedy: format!("use a smaller number, such as \"{}\"", dimension.example),
    }
}

/// Returns the error for a number without the required unit.
pub(crate) fn missing_unit(number: &str, dimension: &Dimension, example: &str) -> BadQuantity {
    let units: Vec<&str> = plain_units(dimension);
    let unit = split(example.trim_matches('"')).map_or("", |(_, _, unit)| unit);
    BadQuantity {
        code: MISSING_UNIT,
        reason: format!("`{number}` has no unit, {} was expected", dimension.noun),
        remedy: format!("write the unit behind it, for example \"{number}{unit}\"; units are {}", units.join(", ")),
    }
}

/// Returns the line rate with this name.
pub(crate) fn parse_line_rate(text: &str) -> Result<LineRate, BadQuantity> {
    let text = text.trim();
    let found = LineRate::ALL.into_iter().find(|r| r.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let names: Vec<&str> = LineRate::ALL.iter().map(|r| r.name()).collect();
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let same_number = LineRate::ALL.into_iter().find(|r| r.name().strip_suffix("GFC") == Some(digits.as_str()));
        let remedy = match same_number {
            Some(rate) => format!("did you mean \"{rate}\"? Rates are {}", names.join(", ")),
            None => format!("choose one of {}", names.join(", ")),
        };
        BadQuantity { code: WRONG_UNIT, reason: format!("`{text}` is not a Fibre Channel line rate"), remedy }
    })
}

/// Returns the Ethernet rate with this name.
pub(crate) fn ethernet_rate(text: &str) -> Option<EthernetRate> {
    EthernetRate::ALL.into_iter().find(|rate| rate.name().eq_ignore_ascii_case(text.trim()))
}

/// Returns the InfiniBand rate with this name.
pub(crate) fn infiniband_rate(text: &str) -> Option<InfinibandRate> {
    InfinibandRate::ALL.into_iter().find(|rate| rate.name().eq_ignore_ascii_case(text.trim()))
}

/// Returns the line rate of Fibre Channel with this name. The remedy for another text lists the
/// rates of Ethernet or InfiniBand, too, if it names one of them.
pub(crate) fn parse_link_rate(text: &str) -> Result<LineRate, BadQuantity> {
    let known = |name: &&&str| text.to_ascii_uppercase().contains(**name);
    if let Some(speed) = ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR"].iter().find(known) {
        let of_speed = InfinibandRate::ALL.iter().filter(|rate| rate.name().ends_with(*speed));
        let names: Vec<String> = of_speed.map(|rate| format!("\"{rate}\"")).collect();
        let remedy = format!("rates of {speed} are {}", names.join(", "));
        let reason = format!("`{}` is not a line rate", value::cut(text));
        return Err(BadQuantity { code: WRONG_UNIT, reason, remedy });
    }
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim().to_ascii_lowercase();
    if !["gbe", "ge", "g", "gb/s", "gbit/s", "gbps", "gbase", "ethernet"].contains(&unit.as_str()) {
        return parse_line_rate(text);
    }
    let names: Vec<&str> = EthernetRate::ALL.iter().map(|rate| rate.name()).collect();
    let digits = text.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    let same_number = names.iter().find(|name| name.strip_suffix("GbE") == Some(digits));
    let remedy = match same_number {
        Some(rate) => format!("did you mean \"{rate}\"? Rates of Ethernet are {}", names.join(", ")),
        None => format!("choose one of {}", names.join(", ")),
    };
    Err(BadQuantity { code: WRONG_UNIT, reason: format!("`{}` is not a line rate", value::cut(text)), remedy })
}

/// Returns the propagation delay of a fibre: 5 ns per metre.
pub(crate) fn propagation(millimetres: u64) -> Picos {
    Picos(millimetres.saturating_mul(5))
}

/// Returns mantissa, number of decimals and unit of a decimal number with a unit.
fn split(text: &str) -> Result<(u128, u32, &str), ()> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 15 {
        return Err(());
    }
    let digits = format!("{whole}{fraction}").replace('_', "");
    let mantissa = digits.parse().map_err(|_| ())?;
    let decimals = u32::try_from(fraction.bytes().filter(u8::is_ascii_digit).count()).map_err(|_| ())?;
    Ok((mantissa, decimals, unit.trim()))
}

fn not_a_number(text: &str, dimension: &Dimension) -> BadQuantity {
    let reason = if text.starts_with('-') {
        format!("`{text}` is negative")
    } else {
        format!("`{text}` is not {}", dimension.noun)
    };
    BadQuantity {
        code: NOT_A_NUMBER,
        reason,
        remedy: format!(
            "write a number and one of the units {}, for example \"{}\"",
            plain_units(dimension).join(", "),
            dimension.example
        ),
    }
}

fn wrong_unit(text: &str, unit: &str, dimension: &Dimension) -> BadQuantity {
    let other = DIMENSIONS.iter().find(|d| d.units.iter().any(|(name, _)| *name == unit));
    let reason = match other {
        Some(other) => format!("`{text}` is {}, {} was expected", other.noun, dimension.noun),
        None => format!("`{unit}` is not a unit of {}", dimension.noun.trim_start_matches("a ")),
    };
    let units = plain_units(dimension);
    let number = &text[..text.len() - unit.len()].trim_end();
    let lower = unit.to_lowercase();
    let near = (dimension.also.iter().find(|(also, _)| *also == lower))
        .map(|(_, unit)| *unit)
        .or_else(|| suggest::closest(unit, units.iter().copied()));
    let remedy = match near {
        Some(near) if other.is_none() => format!("did you mean \"{number}{near}\"? Units are {}", units.join(", ")),
        _ => format!("use one of the units {}, for example \"{}\"", units.join(", "), dimension.example),
    };
    BadQuantity { code: WRONG_UNIT, reason, remedy }
}

/// Returns the units without alternative spellings.
pub(crate) fn plain_units(dimension: &Dimension) -> Vec<&'static str> {
    dimension.units.iter().map(|&(name, _)| name).filter(|name| name.is_ascii() && *name != "kB").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse("22.5us", &TIME), Ok(22_500_000));
        assert_eq!(parse("0.001ns", &TIME), Ok(1));
        assert_eq!(parse("22.5k/s", &PER_SECOND), Ok(22_500_000));
        assert_eq!(parse("50 m", &LENGTH), Ok(50_000));
        assert_eq!(parse("1_000MiB", &SIZE), Ok(1_000 << 20));
        assert_eq!(parse("66MHz", &CLOCK), Ok(66_000_000));
        assert_eq!(parse("5µs", &TIME), parse("5us", &TIME));
    }

    #[test]
    fn light_needs_250_ns_for_50_m() {
        assert_eq!(propagation(parse("50m", &LENGTH).unwrap()), Picos::from_ns(250));
    }

    #[test]
    fn text_that_is_not_a_quantity_is_rejected() {
        let code = |text, dimension| parse(text, dimension).unwrap_err().code;
        assert_eq!(code("10", &TIME), MISSING_UNIT);
        assert_eq!(code("10m", &TIME), WRONG_UNIT);
        assert_eq!(code("10sec", &TIME), WRONG_UNIT);
        assert_eq!(code("-10s", &TIME), NOT_A_NUMBER);
        assert_eq!(code("", &TIME), NOT_A_NUMBER);
        assert_eq!(code(".5s", &TIME), NOT_A_NUMBER);
        assert_eq!(code("99999999999999h", &TIME), OUT_OF_RANGE);
        assert_eq!(code("99999999999999999999999999999999999999999999999h", &TIME), OUT_OF_RANGE);
        assert_eq!(code("3_402823669209384634633746074317682114.55ps", &TIME), OUT_OF_RANGE);
        assert_eq!(code("9_999_999_999_999_999_999_999_999_999_999_999_999_999h", &TIME), OUT_OF_RANGE);
        // The product fits into 128 bits, but not its rounding.
        assert_eq!(code("309485009821.345068724781055TiB", &SIZE), OUT_OF_RANGE);
        assert_eq!(code("1e30s", &TIME), NOT_A_NUMBER);
        assert_eq!(code("2E-3s", &TIME), NOT_A_NUMBER);
        assert!(parse("1e30s", &TIME).unwrap_err().reason.contains("exponent"));
        assert_eq!(parse_rate("0.0k/s", "5/s").unwrap_err().reason, "`0.0k/s` is a rate of zero");
    }

    #[test]
    fn suggests_the_rate_with_the_same_number() {
        assert_eq!(parse_line_rate("16gfc"), Ok(LineRate::Fc16));
        let bad = parse_line_rate("8Gb/s").unwrap_err();
        assert!(bad.remedy.contains("8GFC"), "{}", bad.remedy);
    }
}
