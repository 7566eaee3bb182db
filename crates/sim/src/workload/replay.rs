//! Requests of a trace on one host.

use super::stream::{Request, RequestOp};
use sanloom_fc::config::{Lun, Target, TraceLoad, TraceSelection};
use sanloom_storage::trace::replay::{Destination, Replay, ReplaySettings, Selection};
use sanloom_storage::trace::{TraceError, TraceOp, TraceReader, TraceRequest};
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

type Open = Box<dyn FnMut() -> Result<TraceReader<'static>, TraceError> + Send>;

/// The requests of a trace that one host replays.
///
/// The file is opened for the first request, and read as the simulation advances, so memory does
/// not grow with its length.
pub struct TraceStream {
    load: TraceLoad,
    settings: ReplaySettings,
    targets: Vec<Target>,
    start_ps: u64,
    /// Longest request; longer ones are split.
    largest_bytes: u64,
    state: State,
    /// Rest of a request that is being split.
    rest: Option<TraceRequest>,
    /// Requests with an arrival time, in this order.
    ready: VecDeque<Request>,
    /// Think time after the previous request of the trace.
    think_ps: u64,
    not_yet_started: u32,
    counts: ReplayCounts,
    error: Option<String>,
}

enum State {
    Closed,
    Open(Box<Replay<'static, Open>>),
    Ended,
}

/// Counts of a host's replay since the start of the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayCounts {
    /// Requests issued, with the parts of those that were split.
    pub requests: u64,
    /// Requests that were split, because the HBA or a SCSI command cannot transfer as much.
    pub split: u64,
    /// Trims, which are left out.
    pub trims: u64,
    /// Passes begun.
    pub passes: u64,
}

impl std::fmt::Debug for TraceStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceStream").field("load", &self.load).field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl TraceStream {
    /// Returns the requests of `load` for the host number `part` of `parts`. `luns` are the sizes
    /// of `targets`, of which the first `span_bytes` are used.
    pub fn new(
        load: &TraceLoad,
        (part, parts): (u32, u32),
        targets: &[Target],
        luns: &[Lun],
        span_bytes: Option<u64>,
    ) -> TraceStream {
        let destinations = luns.iter().map(|lun| {
            let block_bytes = u64::from(lun.block_bytes.max(1));
            let all_bytes = lun.blocks.saturating_mul(block_bytes);
            Destination { capacity_bytes: span_bytes.map_or(all_bytes, |span| span.min(all_bytes)), block_bytes }
        });
        let selection = match &load.selection {
            TraceSelection::All => Selection::All,
            TraceSelection::Device(name) => Selection::Device(name.clone()),
            TraceSelection::Split => Selection::Split { part, parts },
        };
        let settings = ReplaySettings {
            destinations: destinations.collect(),
            time_scale: load.time_scale,
            passes: load.passes,
            selection,
            map: load.map,
            think: load.think,
        };
        TraceStream {
            settings,
            targets: targets.to_vec(),
            start_ps: 0,
            largest_bytes: u64::from(u32::MAX),
            state: State::Closed,
            rest: None,
            ready: VecDeque::new(),
            think_ps: 0,
            not_yet_started: load.depth.unwrap_or(0),
            counts: ReplayCounts::default(),
            error: None,
            load: load.clone(),
        }
    }

    /// Requests arrive no earlier than at `start_ps`.
    pub fn start_at(&mut self, start_ps: u64) {
        self.start_ps = start_ps;
    }

    /// Sets the longest request, in bytes. At least one block is transferred at a time.
    pub fn split_above(&mut self, largest_bytes: u64) {
        self.largest_bytes = largest_bytes;
    }

    /// Number of requests in flight of a closed loop.
    pub fn depth(&self) -> Option<u32> {
        self.load.depth
    }

    /// Counts since the start of the workload.
    pub fn counts(&self) -> ReplayCounts {
        let passes = match &self.state {
            State::Open(replay) => replay.pass(),
            State::Closed | State::Ended => self.counts.passes,
        };
        ReplayCounts { passes, ..self.counts }
    }

    /// Error that ended the replay, with the file.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the time of the next scheduled request and prepares the request.
    pub fn next_arrival_ps(&mut self) -> Option<u64> {
        if self.load.depth.is_some() {
            self.not_yet_started = self.not_yet_started.checked_sub(1)?;
            return self.prepare().map(|_| self.start_ps);
        }
        self.prepare().map(|arrival_ps| self.start_ps.saturating_add(arrival_ps))
    }

    /// Returns the time of the request that follows one that ended at `now_ps`, and prepares the
    /// request. The think time is that of the request before it in the trace.
    pub fn after_end_ps(&mut self, now_ps: u64) -> Option<u64> {
        self.load.depth?;
        let think_ps = self.think_ps;
        self.prepare().map(|_| now_ps.saturating_add(think_ps))
    }

    /// Returns the oldest request that was prepared.
    pub fn take(&mut self) -> Option<Request> {
        let request = self.ready.pop_front()?;
        self.counts.requests += 1;
        Some(request)
    }

    /// Prepares the next request and returns its arrival in the trace.
    fn prepare(&mut self) -> Option<u64> {
        let (request, arrival_ps) = self.fetch()?;
        self.ready.push_back(request);
        Some(arrival_ps)
    }

    fn fetch(&mut self) -> Option<(Request, u64)> {
        if matches!(self.state, State::Closed) {
            let (file, reader) = (self.load.file.clone(), self.load.reader.clone());
            let open: Open = Box::new(move || open(&file, &reader));
            match Replay::new(open, self.settings.clone()) {
                Ok(replay) => self.state = State::Open(Box::new(replay)),
                Err(error) => self.end(Some(&error)),
            }
        }
        let request = match self.rest.take() {
            Some(rest) => rest,
            None => self.next_of_trace()?,
        };
        let State::Open(replay) = &self.state else { return None };
        let target = replay.destination_of(&request);
        let block = self.settings.destinations[target].block_bytes;
        let largest = (self.largest_bytes / block).max(1) * block;
        let bytes = request.length_bytes.min(largest);
        if bytes < request.length_bytes {
            let (offset_bytes, length_bytes) = (request.offset_bytes + bytes, request.length_bytes - bytes);
            self.rest = Some(TraceRequest { offset_bytes, length_bytes, ..request });
            self.think_ps = 0;
        } else {
            self.think_ps = request.think_ps.unwrap_or(0);
        }
        let op = match request.op {
            TraceOp::Write => RequestOp::Write,
            TraceOp::Flush => RequestOp::Flush,
            TraceOp::Read | TraceOp::Trim => RequestOp::Read,
        };
        let request_of = Request {
            lba: request.offset_bytes / block,
            blocks: (bytes / block) as u32,
            bytes: bytes as u32,
            lun: self.targets[target],
            target: target as u16,
            op,
        };
        Some((request_of, request.arrival_ps))
    }

    /// Returns the next request of the trace that is not a trim.
    fn next_of_trace(&mut self) -> Option<TraceRequest> {
        loop {
            let State::Open(replay) = &mut self.state else { return None };
            match replay.next() {
                Some(Ok(request)) if request.op == TraceOp::Trim => self.counts.trims += 1,
                Some(Ok(request)) => {
                    self.counts.split += u64::from(request.length_bytes > self.largest_bytes);
                    return Some(request);
                }
                Some(Err(error)) => self.end(Some(&error)),
                None => self.end(None),
            }
        }
    }

    fn end(&mut self, error: Option<&TraceError>) {
        self.counts.passes = self.counts().passes;
        self.state = State::Ended;
        self.error = error.map(|error| format!("{}: {error}", self.load.file.display()));
    }
}

/// Opens a trace.
fn open(file: &Path, reader: &sanloom_storage::trace::Settings) -> Result<TraceReader<'static>, TraceError> {
    let source = File::open(file)
        .map_err(|source| TraceError::Read { place: sanloom_storage::trace::Place::Line(1), source })?;
    TraceReader::new(source, reader)
}
