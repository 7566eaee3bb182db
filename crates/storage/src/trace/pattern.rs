//! Any text format, by a regular expression with named groups.

use super::error::{Place, TraceError};
use super::format::US;
use super::parse::{RawRequest, duration, operation, size, time, whole};
use super::request::TraceOp;
use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

/// Regular expression of a line, with the units of its groups.
///
/// | group | value | without it |
/// |---|---|---|
/// | `time` | arrival | must be given |
/// | `offset` | first byte or block | must be given |
/// | `length` | length | must be given |
/// | `op` | word that begins with r, w, d, t or f, in either case; or 28, 2A and their like | see below |
/// | `read`, `write`, `trim`, `flush` | the group that takes part names the operation | `op` |
/// | `device` | any text | one device |
/// | `response`, `think` | times | not present |
///
/// Classes such as `\d` are those of ASCII.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    groups: Groups,
    time_ps: u64,
    response_ps: u64,
    offset_bytes: u64,
    length_bytes: u64,
    skip_unmatched: bool,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        let units = |pattern: &Pattern| {
            [
                pattern.time_ps,
                pattern.response_ps,
                pattern.offset_bytes,
                pattern.length_bytes,
                pattern.skip_unmatched.into(),
            ]
        };
        self.regex.as_str() == other.regex.as_str() && units(self) == units(other)
    }
}

/// Numbers of the named groups.
#[derive(Clone, Copy, Debug)]
struct Groups {
    time: usize,
    offset: usize,
    length: usize,
    op: Option<usize>,
    ops: [Option<usize>; 4],
    device: Option<usize>,
    response: Option<usize>,
    think: Option<usize>,
}

/// Names of the groups.
const NAMES: [&str; 11] =
    ["time", "offset", "length", "op", "read", "write", "trim", "flush", "device", "response", "think"];

/// Largest compiled expression, in bytes.
const MAX_COMPILED: usize = 1 << 20;

impl Pattern {
    /// Compiles an expression. Units: microseconds for times, bytes for addresses and lengths.
    ///
    /// # Errors
    /// If the expression is invalid or too large, or lacks a group that must be given.
    pub fn new(expression: &str) -> Result<Pattern, TraceError> {
        let error = |reason, remedy| TraceError::Settings { reason, remedy };
        let mut builder = RegexBuilder::new(expression);
        let built = builder.unicode(false).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).build();
        let regex = built.map_err(|cause| {
            error(format!("the regular expression is invalid: {cause}"), "correct it; groups are written (?<time>...)")
        })?;
        let names: Vec<Option<&str>> = regex.capture_names().collect();
        let unknown = names.iter().flatten().find(|name| !NAMES.contains(name));
        if let Some(name) = unknown {
            let remedy = "use time, offset, length, op, read, write, trim, flush, device, response and think";
            return Err(error(format!("the regular expression has an unknown group `{name}`"), remedy));
        }
        let group = |name: &str| names.iter().position(|found| *found == Some(name));
        let needed = |name: &str| {
            let reason = || format!("the regular expression has no group `{name}`");
            group(name).ok_or_else(|| error(reason(), "add it, for example (?<time>[0-9.]+)"))
        };
        let ops = TraceOp::ALL.map(|op| group(op.word()));
        let groups = Groups {
            time: needed("time")?,
            offset: needed("offset")?,
            length: needed("length")?,
            op: group("op"),
            ops,
            device: group("device"),
            response: group("response"),
            think: group("think"),
        };
        if groups.op.is_none() && ops.iter().all(Option::is_none) {
            needed("op")?;
        }
        let (time_ps, response_ps) = (US, US);
        Ok(Pattern { regex, groups, time_ps, response_ps, offset_bytes: 1, length_bytes: 1, skip_unmatched: false })
    }

    /// Sets the unit of `time`, in picoseconds; at least 1.
    pub fn time_unit_ps(self, unit: u64) -> Pattern {
        Pattern { time_ps: unit.max(1), ..self }
    }

    /// Sets the unit of `response` and `think`, in picoseconds; at least 1.
    pub fn response_unit_ps(self, unit: u64) -> Pattern {
        Pattern { response_ps: unit.max(1), ..self }
    }

    /// Sets the unit of `offset`, in bytes; at least 1.
    pub fn offset_unit_bytes(self, unit: u64) -> Pattern {
        Pattern { offset_bytes: unit.max(1), ..self }
    }

    /// Sets the unit of `length`, in bytes; at least 1.
    pub fn length_unit_bytes(self, unit: u64) -> Pattern {
        Pattern { length_bytes: unit.max(1), ..self }
    }

    /// Skips lines that do not match, such as headers, instead of reporting an error.
    pub fn skip_unmatched(self, skip: bool) -> Pattern {
        Pattern { skip_unmatched: skip, ..self }
    }

    /// Memory for the groups of one line.
    pub(super) fn locations(&self) -> CaptureLocations {
        self.regex.capture_locations()
    }

    /// Parses a line; none if it is skipped.
    pub(super) fn parse<'t>(
        &self,
        place: Place,
        line: &'t [u8],
        locations: &mut CaptureLocations,
    ) -> Result<Option<(RawRequest, &'t [u8])>, TraceError> {
        if self.regex.captures_read(locations, line).is_none() {
            if self.skip_unmatched {
                return Ok(None);
            }
            let remedy = "a line that matches the regular expression, or skip such lines with `--skip-unmatched`";
            return Err(TraceError::value(place, "text", line, remedy));
        }
        let group = |number: usize| locations.get(number).map(|(start, end)| &line[start..end]);
        let groups = &self.groups;
        let of = |number: Option<usize>| number.and_then(group);
        let by_group = || TraceOp::ALL.into_iter().zip(groups.ops).find(|(_, number)| of(*number).is_some());
        let op = match of(groups.op) {
            Some(word) => operation(place, word)?,
            None => by_group().map(|(op, _)| op).ok_or_else(|| {
                TraceError::value(place, "operation", b"", "a regular expression with an operation for this line")
            })?,
        };
        let (offset, length) = (group(groups.offset).unwrap_or_default(), group(groups.length).unwrap_or_default());
        let mut request =
            RawRequest::new(time(place, "time", group(groups.time).unwrap_or_default(), self.time_ps)?, op);
        if op != TraceOp::Flush {
            request.offset_bytes = size(place, "offset", whole(place, "offset", offset)?, self.offset_bytes)?;
            request.length_bytes = size(place, "length", whole(place, "length", length)?, self.length_bytes)?;
        }
        let optional = |name, number| of(number).map(|text| duration(place, name, text, self.response_ps)).transpose();
        request.response_ps = optional("response time", groups.response)?;
        request.think_ps = optional("think time", groups.think)?;
        Ok(Some((request, of(groups.device).unwrap_or_default())))
    }
}
