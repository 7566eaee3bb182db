//! Replay of a trace: times scaled, passes repeated, devices selected, addresses mapped.
//!
//! A [`Replay`] is an iterator of requests for one host, in the order of their arrival. Requests
//! to device `d` of the trace go to destination `d` modulo the number of destinations. The driver
//! chooses how it issues them:
//!
//! - **Open**: each request is issued at [`TraceRequest::arrival_ps`], whether earlier ones have
//!   ended or not.
//! - **Closed**: a number of requests (the depth) are in flight. When one ends, the driver waits
//!   for its [`TraceRequest::think_ps`], if there is one, and issues the next request. Arrivals are
//!   ignored.
//!
//! ```
//! use sanloom_storage::trace::replay::{AddressMap, Replay, ReplaySettings};
//! use sanloom_storage::trace::{Settings, TraceReader};
//!
//! let text = "0,0,4096,r,0.0\n0,1000000,4096,w,0.5\n";
//! let open = || TraceReader::new(text.as_bytes(), &Settings::default());
//! let settings = ReplaySettings { time_scale: 0.5, map: AddressMap::Wrap, ..ReplaySettings::new(1 << 20) };
//! let requests: Vec<_> = Replay::new(open, settings)?.collect::<Result<_, _>>()?;
//! assert_eq!(requests[1].arrival_ps, 250_000_000_000);
//! assert_eq!(requests[1].offset_bytes, 1_000_000 * 512 % (1 << 20));
//! # Ok::<(), sanloom_storage::trace::TraceError>(())
//! ```

use super::error::TraceError;
use super::reader::TraceReader;
use super::request::{TraceOp, TraceRequest};
use std::num::NonZeroU64;

/// Addresses on the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressMap {
    /// As in the trace. A request beyond the capacity is an error.
    Keep,
    /// Modulo the capacity. A request that would cross the end is moved in front of it.
    Wrap,
    /// In proportion: `source_bytes` of the trace become the capacity. Sequential requests have
    /// gaps or overlaps unless both are equal. Addresses beyond `source_bytes` wrap.
    Linear {
        /// Space of the trace, for example the largest [`Device::end_bytes`] of its statistics.
        ///
        /// [`Device::end_bytes`]: super::inspect::Device::end_bytes
        source_bytes: NonZeroU64,
    },
}

/// Requests that belong to a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All.
    All,
    /// Requests to the device with this name.
    Device(String),
    /// Requests to every `parts`-th device from number `part` on, so that `parts` hosts share all
    /// devices.
    Split {
        /// Number of this host, below `parts`.
        part: u32,
        /// Number of hosts, at least 1.
        parts: u32,
    },
}

/// Think times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Think {
    /// As in the trace, scaled as all times.
    Keep,
    /// None.
    Drop,
}

/// Device to which requests of a replay go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Capacity in bytes, at least one block. The rest behind the last whole block is not used.
    pub capacity_bytes: u64,
    /// Block in bytes. Requests are enlarged to whole blocks.
    pub block_bytes: u64,
}

/// Settings of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplaySettings {
    /// Devices to which the requests go, at least one.
    pub destinations: Vec<Destination>,
    /// Factor of all times, above 0: 0.5 is twice as fast.
    pub time_scale: f64,
    /// Number of passes over the trace; none: without end.
    pub passes: Option<NonZeroU64>,
    /// Requests that are replayed.
    pub selection: Selection,
    /// Addresses on the destination.
    pub map: AddressMap,
    /// Think times.
    pub think: Think,
}

impl ReplaySettings {
    /// One pass over all devices at the speed of the trace, with its think times and wrapped
    /// addresses, to one destination with blocks of 512 bytes.
    pub fn new(capacity_bytes: u64) -> ReplaySettings {
        ReplaySettings {
            destinations: vec![Destination { capacity_bytes, block_bytes: 512 }],
            time_scale: 1.0,
            passes: NonZeroU64::new(1),
            selection: Selection::All,
            map: AddressMap::Wrap,
            think: Think::Keep,
        }
    }

    fn check(&self) -> Result<(), TraceError> {
        let error = |reason: &str, remedy| Err(TraceError::Settings { reason: reason.to_owned(), remedy });
        if !(self.time_scale > 0.0 && self.time_scale.is_finite()) {
            return error("the time scale of the replay is not above 0", "choose 1 for the speed of the trace");
        }
        let has_no_block = |to: &Destination| to.block_bytes == 0 || to.capacity_bytes < to.block_bytes;
        if self.destinations.is_empty() || self.destinations.iter().any(has_no_block) {
            return error("a destination of the replay has no block", "choose a larger capacity");
        }
        match self.selection {
            Selection::Split { part, parts } if part >= parts => {
                error("the number of the host is not below the number of hosts", "count the hosts from 0")
            }
            _ => Ok(()),
        }
    }
}

/// Requests of a trace, prepared for a host.
///
/// - Reads, writes and trims of 0 bytes are left out. A request longer than the capacity is cut to
///   it.
/// - A pass after the first begins one mean distance of two arrivals behind the last request of the
///   trace, whatever the selection is, so that hosts that share a trace stay together.
/// - [`TraceRequest::device`] is the device in the trace.
/// - After an error, the iterator ends.
pub struct Replay<'a, F> {
    open: F,
    settings: ReplaySettings,
    reader: Option<TraceReader<'a>>,
    /// Passes begun, from 1.
    pass: u64,
    /// Arrival 0 of this pass, in the time of the trace.
    start_ps: u128,
    /// Requests of this pass before the selection, and the last of their arrivals.
    seen: u64,
    last_ps: u64,
    /// Requests returned, all passes together.
    returned: u64,
    returned_in_pass: u64,
}

impl<F> std::fmt::Debug for Replay<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("settings", &self.settings).field("pass", &self.pass).finish_non_exhaustive()
    }
}

impl<'a, F: FnMut() -> Result<TraceReader<'a>, TraceError>> Replay<'a, F> {
    /// Creates a replay. `open` is called once for each pass.
    ///
    /// # Errors
    /// If the settings contradict each other, or the trace cannot be opened.
    pub fn new(mut open: F, settings: ReplaySettings) -> Result<Replay<'a, F>, TraceError> {
        settings.check()?;
        let reader = Some(open()?);
        Ok(Replay {
            open,
            settings,
            reader,
            pass: 1,
            start_ps: 0,
            seen: 0,
            last_ps: 0,
            returned: 0,
            returned_in_pass: 0,
        })
    }

    /// Number of passes begun.
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// Opens the next pass. Returns false after the last one, and after one without requests.
    fn again(&mut self) -> Result<bool, TraceError> {
        self.reader = None;
        if self.returned_in_pass == 0 || self.settings.passes.is_some_and(|passes| self.pass >= passes.get()) {
            return Ok(false);
        }
        let mean_ps = u128::from(self.last_ps) / u128::from(self.seen.saturating_sub(1).max(1));
        self.start_ps += u128::from(self.last_ps) + mean_ps;
        (self.pass, self.seen, self.last_ps, self.returned_in_pass) = (self.pass + 1, 0, 0, 0);
        self.reader = Some((self.open)()?);
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<TraceRequest>, TraceError> {
        loop {
            let Some(reader) = &mut self.reader else { return Ok(None) };
            let Some(request) = reader.next().transpose()? else {
                if self.again()? {
                    continue;
                }
                return Ok(None);
            };
            self.seen += 1;
            self.last_ps = request.arrival_ps;
            let is_selected = match &self.settings.selection {
                Selection::All => true,
                Selection::Device(name) => reader.devices().get(request.device as usize) == Some(name),
                Selection::Split { part, parts } => request.device % parts == *part,
            };
            let is_empty = request.op != TraceOp::Flush && request.length_bytes == 0;
            if is_selected && !is_empty {
                self.returned += 1;
                self.returned_in_pass += 1;
                return self.prepared(request).map(Some);
            }
        }
    }

    fn prepared(&self, request: TraceRequest) -> Result<TraceRequest, TraceError> {
        let scale = self.settings.time_scale;
        let scaled = |ps: u128| {
            // Without a scale, times stay exact.
            if scale == 1.0 { u64::try_from(ps).unwrap_or(u64::MAX) } else { (ps as f64 * scale).round() as u64 }
        };
        let think_ps = match self.settings.think {
            Think::Keep => request.think_ps.map(|ps| scaled(u128::from(ps))),
            Think::Drop => None,
        };
        let (offset_bytes, length_bytes) = match request.op {
            TraceOp::Flush => (0, 0),
            _ => self.mapped(&request)?,
        };
        let arrival_ps = scaled(self.start_ps + u128::from(request.arrival_ps));
        Ok(TraceRequest { arrival_ps, think_ps, offset_bytes, length_bytes, ..request })
    }

    /// Number of the destination of a request.
    pub fn destination_of(&self, request: &TraceRequest) -> usize {
        request.device as usize % self.settings.destinations.len()
    }

    /// Offset and length on the destination.
    fn mapped(&self, request: &TraceRequest) -> Result<(u64, u64), TraceError> {
        let &TraceRequest { offset_bytes: offset, length_bytes: length, .. } = request;
        let Destination { capacity_bytes, block_bytes: block } =
            self.settings.destinations[self.destination_of(request)];
        let capacity = capacity_bytes / block * block;
        let start = match self.settings.map {
            AddressMap::Keep => offset,
            AddressMap::Wrap => offset % capacity,
            AddressMap::Linear { source_bytes } => {
                let source = source_bytes.get();
                // The quotient is below the capacity.
                (u128::from(offset % source) * u128::from(capacity) / u128::from(source)) as u64
            }
        };
        let down = start / block * block;
        // A map moves whole blocks, so the position within a block is that of the trace.
        let inside = if self.settings.map == AddressMap::Keep { offset - down } else { offset % block };
        let whole = inside.saturating_add(length).div_ceil(block).saturating_mul(block);
        if self.settings.map == AddressMap::Keep && down.saturating_add(whole) > capacity {
            let end = offset.saturating_add(length);
            return Err(TraceError::Capacity { request: self.returned, end, capacity });
        }
        let whole = whole.min(capacity);
        Ok((down.min(capacity - whole), whole))
    }
}

impl<'a, F: FnMut() -> Result<TraceReader<'a>, TraceError>> Iterator for Replay<'a, F> {
    type Item = Result<TraceRequest, TraceError>;

    fn next(&mut self) -> Option<Result<TraceRequest, TraceError>> {
        let step = self.step();
        if step.is_err() {
            self.reader = None;
        }
        step.transpose()
    }
}
