//! Parsers of options with a size, a duration or a count. A number without a unit has the unit that
//! the option documents.

use std::ops::RangeInclusive;

/// Factor of a size without a unit: bytes.
pub const BYTES: u64 = 1;
/// Factor of a size without a unit: KiB.
pub const KIB: u64 = 1 << 10;
/// Factor of a size without a unit: 10^6 bytes.
pub const MEGABYTES: u64 = 1_000_000;

/// Returns a parser of counts such as `1000` or `1k`.
pub fn count<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let count = sanloom_lab::parse_count(text)?;
        let wrong = || match *range.end() {
            u64::MAX => format!("write a whole number from {} on", range.start()),
            end => format!("write a whole number from {} to {end}", range.start()),
        };
        if !range.contains(&count) {
            return Err(wrong());
        }
        T::try_from(count).map_err(|_| wrong())
    }
}

/// Returns a parser of sizes in bytes such as `4KiB`; a number without a unit is multiplied by
/// `bare`. `K`, `M` and `G` alone are powers of 1024, as in other storage tools.
pub fn size<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
    bare: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = bytes(text, bare)?;
        let wrong = || format!("{bytes} bytes are not in {}..={}", range.start(), range.end());
        if !range.contains(&bytes) {
            return Err(wrong());
        }
        T::try_from(bytes).map_err(|_| wrong())
    }
}

fn bytes(text: &str, bare: u64) -> Result<u64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_lowercase().as_str() {
        "" if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit() || c == b'_') => {
            let number = number.replace('_', "").parse::<u64>().ok();
            return number.and_then(|number| number.checked_mul(bare)).ok_or_else(|| format!("`{text}` is too large"));
        }
        "k" | "kib" => "KiB",
        "m" | "mib" => "MiB",
        "g" | "gib" => "GiB",
        _ => return sanloom_lab::parse_size(text),
    };
    sanloom_lab::parse_size(&format!("{number}{unit}"))
}

/// Reads seconds, with a unit (`50ms`) or without (`0.05`).
///
/// # Errors
/// One sentence with the correct format, also for times outside of 0.01 s to 3600 s.
pub fn seconds(text: &str) -> Result<f64, String> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => sanloom_lab::parse_time(text)?.as_secs_f64(),
    };
    match (0.01..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("write a time from 0.01 s to 3600 s, for example 50ms or 0.05".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_an_optional_unit() {
        let of_kib = size::<u32>(512..=1 << 20, KIB);
        for (text, bytes) in [("4", 4_096), ("4KiB", 4_096), ("4K", 4_096), ("512B", 512), ("1m", 1 << 20)] {
            assert_eq!(of_kib(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "K", "0", "1025", "2MiB", "4x", "-4", "4ms", "99999999999999999999"] {
            assert!(of_kib(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size::<u64>(1..=u64::MAX, MEGABYTES)("256"), Ok(256_000_000));
        assert_eq!(size::<u64>(1..=u64::MAX, BYTES)("64KB"), Ok(64_000));
    }

    #[test]
    fn a_duration_has_an_optional_unit() {
        for text in ["0.05", "50ms", "50_000us"] {
            assert_eq!(seconds(text), Ok(0.05), "{text}");
        }
        for wrong in ["", "nan", "2h", "1us", "50MB", "1e9"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_count_has_an_optional_unit_and_a_range() {
        let logins = count::<u32>(1..=65_000);
        assert_eq!([logins("1k"), logins("65_000"), logins("7")], [Ok(1_000), Ok(65_000), Ok(7)]);
        assert_eq!(logins("66k"), Err("write a whole number from 1 to 65000".to_owned()));
        assert!(count::<u8>(0..=1_000)("999").is_err());
    }
}
