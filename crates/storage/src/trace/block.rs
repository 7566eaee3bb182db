//! Events of the Linux block layer: binary records of blktrace, and lines of blkparse.
//!
//! One event of each request becomes the request: Q, D or C, by [`BlockEvent`]. A write with a
//! flush in front of it becomes two requests.

use super::error::{Place, TraceError};
use super::format::{BlockEvent, NS, S};
use super::parse::{RawRequest, size, time, whole};
use super::request::TraceOp;

/// Bytes of a record of blktrace.
pub(super) const RECORD: usize = 48;
/// Magic number, with version 7 in the low byte.
pub(super) const MAGIC: u32 = 0x6561_7407;

/// Bits of the category, the high half of the action.
const READ: u32 = 1;
const WRITE: u32 = 2;
const FLUSH: u32 = 4;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

/// Bits of the minor number in a device number of the kernel.
const MINOR_BITS: u32 = 20;

/// At most two requests of one event.
pub(super) type Requests = [Option<RawRequest>; 2];

/// Record of blktrace, and the number of bytes behind it.
pub(super) struct Event {
    pub requests: Requests,
    pub behind: usize,
}

/// Returns the byte order of a record: `Some(true)` is little endian; none if it is no record.
pub(super) fn is_little_endian(record: &[u8]) -> Option<bool> {
    let magic: [u8; 4] = record.get(..4)?.try_into().ok()?;
    match magic {
        _ if u32::from_le_bytes(magic) == MAGIC => Some(true),
        _ if u32::from_be_bytes(magic) == MAGIC => Some(false),
        _ => None,
    }
}

/// Parses a record of [`RECORD`] bytes.
pub(super) fn blktrace(
    place: Place,
    record: &[u8],
    event: BlockEvent,
    device: &mut Vec<u8>,
) -> Result<Event, TraceError> {
    let Some(is_little) = is_little_endian(record) else {
        let shown: String = record.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let remedy = "records with the magic number 65617407; join the files of the processors with `blkparse -d`";
        return Err(TraceError::value(place, "magic number", shown.as_bytes(), remedy));
    };
    let four = |at: usize| {
        let bytes: [u8; 4] = [record[at], record[at + 1], record[at + 2], record[at + 3]];
        if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    let eight = |at: usize| {
        let (first, second) = (u64::from(four(at)), u64::from(four(at + 4)));
        if is_little { second << 32 | first } else { first << 32 | second }
    };
    let two = [record[46], record[47]];
    let behind = usize::from(if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) });
    let (ns, sector, bytes, action) = (eight(8), eight(16), four(24), four(28));
    let category = action >> 16;
    let code = match event {
        BlockEvent::Queue => 1,
        BlockEvent::Issue => 7,
        BlockEvent::Complete => 8,
    };
    let mut requests = [None; 2];
    if action & 0xffff == code && category & NOTIFY == 0 {
        let number = four(36);
        device.extend_from_slice(format!("{},{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1)).as_bytes());
        let at_ps = u128::from(ns) * u128::from(NS);
        let op = match category {
            _ if category & DISCARD != 0 => Some(TraceOp::Trim),
            _ if category & WRITE != 0 => Some(TraceOp::Write),
            _ if category & READ != 0 => Some(TraceOp::Read),
            _ => None,
        };
        let flush = category & FLUSH != 0 && (bytes == 0 || event != BlockEvent::Complete);
        requests = event_requests(place, at_ps, op, flush, (sector, u64::from(bytes)))?;
    }
    Ok(Event { requests, behind })
}

/// Builds the requests of an event; `extent`: sector and bytes.
fn event_requests(
    place: Place,
    at_ps: u128,
    op: Option<TraceOp>,
    flush: bool,
    extent: (u64, u64),
) -> Result<Requests, TraceError> {
    let flush = flush.then(|| RawRequest::new(at_ps, TraceOp::Flush));
    let data = match op {
        Some(op) if extent.1 > 0 => {
            let mut request = RawRequest::new(at_ps, op);
            request.offset_bytes = size(place, "sector", extent.0, 512)?;
            request.length_bytes = extent.1;
            Some(request)
        }
        _ => None,
    };
    Ok([flush, data])
}

/// Parses a line of blkparse in its default format. Lines that begin with no device, such as the
/// statistics at the end, are skipped.
pub(super) fn blkparse(
    place: Place,
    line: &[u8],
    event: BlockEvent,
    device: &mut Vec<u8>,
) -> Result<Requests, TraceError> {
    const COLUMNS: &str = "major,minor, cpu, sequence, seconds, pid, event, RWBS, sector, +, blocks, [process]";
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut found = 0;
    let mut next = || {
        let word = words.next();
        found += usize::from(word.is_some());
        word
    };
    let first = next().unwrap_or_default();
    if !is_device(first) {
        return Ok([None; 2]);
    }
    let head = [next(), next(), next(), next(), next()];
    let [Some(_cpu), Some(_sequence), Some(seconds), Some(_pid), Some(action)] = head else {
        return Err(TraceError::Columns { place, format: "blkparse", found, expected: 11, columns: COLUMNS });
    };
    let wanted: &[u8] = match event {
        BlockEvent::Queue => b"Q",
        BlockEvent::Issue => b"D",
        BlockEvent::Complete => b"C",
    };
    if action != wanted {
        return Ok([None; 2]);
    }
    let tail = [next(), next(), next(), next()];
    let letters = tail[0].unwrap_or_default();
    // `RWBS sector + blocks`; requests without blocks have no more than `RWBS`.
    let extent = match tail {
        [Some(_), Some(sector), Some(b"+"), Some(blocks)] => {
            (whole(place, "sector", sector)?, size(place, "number of blocks", whole(place, "blocks", blocks)?, 512)?)
        }
        _ if letters.contains(&b'F') || letters.contains(&b'N') => (0, 0),
        _ => return Err(TraceError::Columns { place, format: "blkparse", found, expected: 11, columns: COLUMNS }),
    };
    if !letters.iter().all(u8::is_ascii_uppercase) {
        return Err(TraceError::value(place, "RWBS", letters, "letters such as R, WS, D or FWS"));
    }
    device.extend_from_slice(first);
    let op = match letters {
        _ if letters.contains(&b'D') => Some(TraceOp::Trim),
        _ if letters.contains(&b'W') => Some(TraceOp::Write),
        _ if letters.contains(&b'R') => Some(TraceOp::Read),
        _ => None,
    };
    // F in front is a flush before the data; F behind W is FUA.
    let flush = letters.starts_with(b"F") && (event != BlockEvent::Complete || extent.1 == 0);
    event_requests(place, time(place, "time", seconds, S)?, op, flush, extent)
}

/// True for `major,minor`.
pub(super) fn is_device(word: &[u8]) -> bool {
    let mut parts = word.split(|byte| *byte == b',');
    let is_number =
        |part: Option<&[u8]>| part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}
