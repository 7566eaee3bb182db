//! Values of columns: numbers, times and operations.

use super::error::{Place, TraceError};
use super::request::TraceOp;

/// Request as a format gives it, before times are related to the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RawRequest {
    pub time_ps: u128,
    pub device: u32,
    pub op: TraceOp,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub response_ps: Option<u64>,
    pub think_ps: Option<u64>,
}

impl RawRequest {
    pub(super) fn new(time_ps: u128, op: TraceOp) -> RawRequest {
        RawRequest { time_ps, device: 0, op, offset_bytes: 0, length_bytes: 0, response_ps: None, think_ps: None }
    }
}

/// Largest end of a request, in bytes: 2^63.
pub(super) const MAX_END: u64 = 1 << 63;

/// Parses a whole number in decimal digits.
pub(super) fn whole(place: Place, column: &'static str, text: &[u8]) -> Result<u64, TraceError> {
    digits(text).ok_or_else(|| TraceError::value(place, column, text, "a whole number from 0 to 2^64 - 1"))
}

fn digits(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let mut value = if text.is_empty() { None } else { Some(0_u64) };
    for byte in text {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value?.checked_mul(10)?.checked_add(digit);
    }
    value
}

/// Converts a number of units to bytes.
pub(super) fn size(place: Place, column: &'static str, value: u64, unit: u64) -> Result<u64, TraceError> {
    value.checked_mul(unit).filter(|bytes| *bytes <= MAX_END).ok_or_else(|| {
        TraceError::value(place, column, value.to_string().as_bytes(), "a position of at most 2^63 bytes")
    })
}

/// Parses a time as a decimal number of units and returns picoseconds, the rest cut off.
pub(super) fn time(place: Place, column: &'static str, text: &[u8], unit_ps: u64) -> Result<u128, TraceError> {
    let error = || TraceError::value(place, column, text, "a time as a decimal number of at least 0");
    let text = text.trim_ascii();
    if text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        // A time with an exponent has the precision of a float.
        let value: f64 = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(error)?;
        let ps = value * unit_ps as f64;
        return if (0.0..1e30).contains(&ps) { Ok(ps.round() as u128) } else { Err(error()) };
    }
    let point = text.iter().position(|byte| *byte == b'.');
    let (before, behind) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[..0]),
    };
    if before.is_empty() && behind.is_empty() || !behind.iter().all(u8::is_ascii_digit) {
        return Err(error());
    }
    let whole = if before.is_empty() { 0 } else { digits(before).ok_or_else(error)? };
    // A unit is below 2^64 ps, so further digits cannot matter.
    let behind = &behind[..behind.len().min(18)];
    let fraction = if behind.is_empty() { 0 } else { digits(behind).ok_or_else(error)? };
    let scale = 10_u128.pow(behind.len() as u32);
    Ok(u128::from(whole) * u128::from(unit_ps) + u128::from(fraction) * u128::from(unit_ps) / scale)
}

/// Parses a length of time of at most 2^64 ps (213 days).
pub(super) fn duration(place: Place, column: &'static str, text: &[u8], unit_ps: u64) -> Result<u64, TraceError> {
    let ps = time(place, column, text, unit_ps)?;
    u64::try_from(ps).map_err(|_| TraceError::value(place, column, text, "a time of less than 213 days"))
}

/// Parses a word for an operation, or a SCSI operation code in hexadecimal.
pub(super) fn operation(place: Place, word: &[u8]) -> Result<TraceOp, TraceError> {
    let word = word.trim_ascii();
    let op = match word {
        b"28" | b"88" | b"08" | b"A8" | b"a8" => Some(TraceOp::Read),
        b"2A" | b"2a" | b"8A" | b"8a" | b"0A" | b"0a" | b"AA" | b"aa" => Some(TraceOp::Write),
        _ => match word.first().map(u8::to_ascii_lowercase) {
            Some(b'r') => Some(TraceOp::Read),
            Some(b'w') => Some(TraceOp::Write),
            Some(b't' | b'd' | b'u') => Some(TraceOp::Trim),
            Some(b'f' | b's') => Some(TraceOp::Flush),
            _ => None,
        },
    };
    op.ok_or_else(|| TraceError::value(place, "operation", word, "read, write, trim or flush, or their first letter"))
}

/// Columns of a line.
pub(super) struct Columns<'t, const N: usize> {
    pub place: Place,
    pub values: [&'t [u8]; N],
}

impl<'t, const N: usize> Columns<'t, N> {
    /// Divides a line at commas, or at blanks and tabs.
    ///
    /// # Errors
    /// If there are fewer than `N` columns, or more and `is_open` is false.
    pub(super) fn of(
        place: Place,
        line: &'t [u8],
        separator: u8,
        is_open: bool,
        (format, columns): (&'static str, &'static str),
    ) -> Result<Columns<'t, N>, TraceError> {
        let mut values: [&[u8]; N] = [&[]; N];
        let mut found = 0;
        let parts = line.split(|byte| if separator == b' ' { byte.is_ascii_whitespace() } else { *byte == separator });
        for part in parts.filter(|part| separator != b' ' || !part.is_empty()) {
            if let Some(slot) = values.get_mut(found) {
                *slot = part.trim_ascii();
            }
            found += 1;
        }
        if found < N || (found > N && !is_open) {
            return Err(TraceError::Columns { place, format, found, expected: N, columns });
        }
        Ok(Columns { place, values })
    }

    pub(super) fn whole(&self, index: usize, column: &'static str) -> Result<u64, TraceError> {
        whole(self.place, column, self.values[index])
    }

    /// Parses a number of units as bytes.
    pub(super) fn size(&self, index: usize, column: &'static str, unit: u64) -> Result<u64, TraceError> {
        size(self.place, column, self.whole(index, column)?, unit)
    }

    pub(super) fn time(&self, index: usize, column: &'static str, unit_ps: u64) -> Result<u128, TraceError> {
        time(self.place, column, self.values[index], unit_ps)
    }

    /// Parses one of several words.
    pub(super) fn word(
        &self,
        index: usize,
        column: &'static str,
        words: &[(&str, TraceOp)],
        remedy: &'static str,
    ) -> Result<TraceOp, TraceError> {
        let value = self.values[index];
        let found = words.iter().find(|(word, _)| value.eq_ignore_ascii_case(word.as_bytes()));
        found.map(|(_, op)| *op).ok_or_else(|| TraceError::value(self.place, column, value, remedy))
    }
}
