//! The formats, and the settings of a reader.

use super::TraceError;
use super::pattern::Pattern;

/// Format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// DiskSim ASCII: arrival in ms, device, block, blocks, flags in hexadecimal (bit 0: read).
    Disksim,
    /// DiskSim validate: one request at a time, with response and think times.
    Validate,
    /// SPC: application storage unit, block, bytes, operation, seconds.
    Spc,
    /// MSR Cambridge CSV: 100 ns since 1601, host, disk, operation, offset, bytes, response.
    Msr,
    /// Job log of fio, version 2.
    Fio2,
    /// Job log of fio, version 3.
    Fio3,
    /// Binary events of blktrace, in either byte order.
    Blktrace,
    /// Text output of blkparse.
    Blkparse,
    /// CloudPhysics vscsi, version 1: 32-byte records.
    Vscsi1,
    /// CloudPhysics vscsi, version 2: 40-byte records.
    Vscsi2,
    /// Alibaba block traces 2020.
    Alibaba,
    /// Tencent cloud block storage.
    Tencent,
    /// MQSim: arrival, device, sector, sectors, operation.
    Mqsim,
    /// FIU: ns, process number, process, block, blocks, operation, major, minor, hash.
    Fiu,
    /// Any text, by a regular expression.
    Regex,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 15] = [
        Format::Disksim,
        Format::Validate,
        Format::Spc,
        Format::Msr,
        Format::Fio2,
        Format::Fio3,
        Format::Blktrace,
        Format::Blkparse,
        Format::Vscsi1,
        Format::Vscsi2,
        Format::Alibaba,
        Format::Tencent,
        Format::Mqsim,
        Format::Fiu,
        Format::Regex,
    ];

    /// Name on command lines and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Format::Disksim => "disksim",
            Format::Validate => "validate",
            Format::Spc => "spc",
            Format::Msr => "msr",
            Format::Fio2 => "fio-2",
            Format::Fio3 => "fio-3",
            Format::Blktrace => "blktrace",
            Format::Blkparse => "blkparse",
            Format::Vscsi1 => "vscsi-1",
            Format::Vscsi2 => "vscsi-2",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Mqsim => "mqsim",
            Format::Fiu => "fiu",
            Format::Regex => "regex",
        }
    }

    /// Format with a name.
    pub fn from_word(word: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.word() == word)
    }

    /// All names, separated by commas.
    pub fn words() -> String {
        Format::ALL.map(Format::word).join(", ")
    }

    /// True if records have a fixed layout in bytes.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Blktrace | Format::Vscsi1 | Format::Vscsi2)
    }

    /// True if times count from an event outside of the trace, such as the year 1601 or a boot.
    pub(super) fn has_absolute_times(self) -> bool {
        !matches!(self, Format::Disksim | Format::Validate | Format::Spc | Format::Fio2 | Format::Fio3 | Format::Mqsim)
    }
}

/// Event of the Linux block layer that becomes a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockEvent {
    /// Q: the request enters the block layer.
    #[default]
    Queue,
    /// D: the request leaves to the driver, after merges.
    Issue,
    /// C: the request is complete.
    Complete,
}

impl BlockEvent {
    /// Name on command lines and in messages.
    pub fn word(self) -> &'static str {
        match self {
            BlockEvent::Queue => "queue",
            BlockEvent::Issue => "issue",
            BlockEvent::Complete => "complete",
        }
    }
}

/// Picoseconds in a nanosecond.
pub(super) const NS: u64 = 1_000;
/// Picoseconds in a microsecond.
pub(super) const US: u64 = 1_000_000;
/// Picoseconds in a millisecond.
pub(super) const MS: u64 = 1_000_000_000;
/// Picoseconds in a second.
pub(super) const S: u64 = 1_000_000_000_000;

/// Settings of a reader.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Format; none: detected from the content.
    pub format: Option<Format>,
    /// Number of requests that the reader sorts by arrival, from 1 to 2^20. A request takes about
    /// 100 bytes.
    pub reorder: usize,
    /// Event of `blktrace` and `blkparse`.
    pub event: BlockEvent,
    /// Unit of the arrivals of MQSim, in picoseconds. Its documents give nanoseconds.
    pub mqsim_unit_ps: u64,
    /// Pattern of [`Format::Regex`].
    pub pattern: Option<Pattern>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { format: None, reorder: 1_024, event: BlockEvent::Queue, mqsim_unit_ps: NS, pattern: None }
    }
}

/// Largest reorder window, in requests.
const MAX_REORDER: usize = 1 << 20;

impl Settings {
    /// Settings of a format, otherwise the defaults.
    pub fn of(format: Format) -> Settings {
        Settings { format: Some(format), ..Settings::default() }
    }

    /// # Errors
    /// If the settings contradict each other.
    pub(super) fn check(&self) -> Result<(), TraceError> {
        let error = |reason: &str, remedy| Err(TraceError::Settings { reason: reason.to_owned(), remedy });
        if !(1..=MAX_REORDER).contains(&self.reorder) {
            return error("the reorder window is out of range", "choose 1 to 1048576 requests");
        }
        if self.mqsim_unit_ps == 0 {
            return error("the unit of time is 0", "choose a unit of at least 1 ps");
        }
        match (self.format, &self.pattern) {
            (Some(Format::Regex), None) => {
                error("the format `regex` has no regular expression", "give one with `--regex`")
            }
            (Some(format), Some(_)) if format != Format::Regex => {
                error("a regular expression was given with another format", "leave out one of `--format` and `--regex`")
            }
            _ => Ok(()),
        }
    }
}
