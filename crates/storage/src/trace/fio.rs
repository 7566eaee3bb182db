//! Job logs of fio, versions 2 and 3 (`--write_iolog`, `--read_iolog`).
//!
//! Version 2 has no times; a `wait` is relative to the one before, and fio ignores waits below
//! 100 us. Version 3 begins each line with microseconds since the start of the job.

use super::error::{Place, TraceError};
use super::format::US;
use super::parse::{Columns, RawRequest, time, whole};
use super::request::TraceOp;

/// Shortest wait of version 2 that has an effect, in microseconds.
const SHORTEST_WAIT_US: u64 = 100;

/// First line of a version.
pub(super) fn header(version: u8) -> &'static [u8] {
    if version == 2 { b"fio version 2 iolog" } else { b"fio version 3 iolog" }
}

/// Reader of lines.
#[derive(Debug)]
pub(super) struct Fio {
    version: u8,
    has_header: bool,
    /// Sum of the waits of version 2.
    waited_ps: u128,
}

impl Fio {
    pub(super) fn new(version: u8) -> Fio {
        Fio { version, has_header: false, waited_ps: 0 }
    }

    /// Parses a line; none if it is no request.
    pub(super) fn parse(
        &mut self,
        place: Place,
        line: &[u8],
        device: &mut Vec<u8>,
    ) -> Result<Option<RawRequest>, TraceError> {
        if !self.has_header {
            self.has_header = true;
            let is_header = line.trim_ascii() == header(self.version);
            let remedy = if self.version == 2 { "fio version 2 iolog" } else { "fio version 3 iolog" };
            return if is_header { Ok(None) } else { Err(TraceError::value(place, "first line", line, remedy)) };
        }
        let (at_ps, line) = match self.version {
            2 => (self.waited_ps, line),
            _ => {
                let line = line.trim_ascii_start();
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                (time(place, "time", &line[..end], US)?, &line[end..])
            }
        };
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        if words == 2 {
            let columns = Columns::<2>::of(place, line, b' ', false, ("fio", "file, action"))?;
            return match columns.values[1] {
                b"add" | b"open" | b"close" => Ok(None),
                action => Err(TraceError::value(place, "action", action, "add, open or close, or offset and length")),
            };
        }
        if self.version == 2 && words == 3 {
            // Some versions of fio write the wait without a length.
            let columns = Columns::<3>::of(place, line, b' ', false, ("fio", "file, action, offset"))?;
            if columns.values[1] == b"wait" {
                self.wait(whole(place, "wait", columns.values[2])?);
                return Ok(None);
            }
        }
        let columns = Columns::<4>::of(place, line, b' ', false, ("fio", "file, action, offset, length"))?;
        let op = match columns.values[1] {
            b"read" => TraceOp::Read,
            b"write" => TraceOp::Write,
            b"trim" => TraceOp::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => TraceOp::Flush,
            b"wait" if self.version == 2 => {
                self.wait(columns.whole(2, "wait")?);
                return Ok(None);
            }
            action => {
                let remedy = "read, write, trim, sync or datasync; `wait` exists in version 2 only";
                return Err(TraceError::value(place, "action", action, remedy));
            }
        };
        let mut request = RawRequest::new(at_ps, op);
        let (offset, length) = (columns.size(2, "offset", 1)?, columns.size(3, "length", 1)?);
        if op != TraceOp::Flush {
            (request.offset_bytes, request.length_bytes) = (offset, length);
        }
        device.extend_from_slice(columns.values[0]);
        Ok(Some(request))
    }

    fn wait(&mut self, us: u64) {
        if us >= SHORTEST_WAIT_US {
            self.waited_ps += u128::from(us) * u128::from(US);
        }
    }
}
