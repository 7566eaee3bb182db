//! Detection of the format from the beginning of a trace.
//!
//! A text format fits if each of the first lines can be parsed. Exactly one must fit.

use super::error::{Place, TraceError};
use super::format::{BlockEvent, Format, NS};
use super::input::PEEK;
use super::{block, columns, fio, vscsi};

/// Lines that are compared with each format.
const LINES: usize = 50;
/// Binary records that are compared with each format.
const RECORDS: usize = 16;

/// Formats with one request per line, in the order of messages.
const TEXTS: [Format; 8] = [
    Format::Disksim,
    Format::Validate,
    Format::Spc,
    Format::Msr,
    Format::Alibaba,
    Format::Tencent,
    Format::Mqsim,
    Format::Fiu,
];

/// Returns the only format that fits the first bytes of a trace.
pub(super) fn detect(head: &[u8]) -> Result<Format, TraceError> {
    let error = |line, reason: String| Err(TraceError::Unknown { line, reason });
    if head.is_empty() {
        return error(1, "the file is empty".to_owned());
    }
    if block::is_little_endian(head).is_some() {
        return Ok(Format::Blktrace);
    }
    let is_text = |byte: &u8| *byte >= b' ' || byte.is_ascii_whitespace();
    if !head.iter().all(is_text) {
        let fits = |length: usize, version| {
            head.len() >= length
                && head.chunks_exact(length).take(RECORDS).all(|record| vscsi::is_version(record, version))
        };
        return match (fits(vscsi::RECORD_1, 1), fits(vscsi::RECORD_2, 2)) {
            (true, false) => Ok(Format::Vscsi1),
            (false, true) => Ok(Format::Vscsi2),
            _ => error(1, "the bytes are neither text nor records of a known format".to_owned()),
        };
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    for (version, format) in [(2, Format::Fio2), (3, Format::Fio3)] {
        if first == fio::header(version) {
            return Ok(format);
        }
    }
    detect_lines(head)
}

fn detect_lines(head: &[u8]) -> Result<Format, TraceError> {
    let mut left: Vec<Format> = [&TEXTS[..], &[Format::Blkparse]].concat();
    let whole = if head.len() < PEEK { head } else { &head[..head.iter().rposition(|c| *c == b'\n').unwrap_or(0)] };
    let lines = whole.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
    let mut last = 1;
    for (line, number) in lines.take(LINES) {
        let before = left.clone();
        left.retain(|format| fits(*format, Place::Line(number), line));
        last = number;
        if left.is_empty() {
            let text = String::from_utf8_lossy(&line[..line.len().min(60)]).trim().to_owned();
            let reason = match &before[..] {
                [one] => format!("the lines before it have the format {}, but not `{text}`", one.word()),
                _ => format!("no format has lines such as `{text}`"),
            };
            return Err(TraceError::Unknown { line: number, reason });
        }
    }
    match left[..] {
        [format] => Ok(format),
        _ => {
            let words: Vec<&str> = left.iter().map(|format| format.word()).collect();
            Err(TraceError::Unknown { line: last, reason: format!("it fits {}", words.join(" and ")) })
        }
    }
}

fn fits(format: Format, place: Place, line: &[u8]) -> bool {
    let device = &mut Vec::new();
    match format {
        Format::Disksim => columns::disksim(place, line, device).is_ok(),
        Format::Validate => columns::validate(place, line, &mut 0).is_ok(),
        Format::Spc => columns::spc(place, line, device).is_ok(),
        Format::Msr => columns::msr(place, line, device).is_ok(),
        Format::Alibaba => columns::alibaba(place, line, device).is_ok(),
        Format::Tencent => columns::tencent(place, line, device).is_ok(),
        Format::Mqsim => {
            // A fraction is a sign of DiskSim ASCII, which has the same number of columns.
            let arrival = line.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
            !arrival.contains(&b'.') && columns::mqsim(place, line, NS, device).is_ok()
        }
        Format::Fiu => columns::fiu(place, line, device).is_ok(),
        Format::Blkparse => {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let has_head = words.next().is_some_and(block::is_device) && words.count() >= 5;
            has_head && block::blkparse(place, line, BlockEvent::Queue, device).is_ok()
        }
        _ => false,
    }
}
