//! Traces of the requests to the storage systems of a running instance: [`RequestTraces`].

use crate::ready::Tracked;
use crate::storage::StorageSystem;
use sanloom_scsi::scsi::{BlockIo, InitiatorName, IoOp};
use sanloom_scsi::time::Instant;
use sanloom_storage::trace::{Format, TraceOp, TraceRequest, TraceWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// The running trace, and the one that a write error has ended.
#[derive(Debug, Default)]
pub struct RequestTraces {
    running: Option<RequestTrace>,
    failed: Option<FailedTrace>,
}

/// Trace that a write error has ended. The file lacks some of its requests.
#[derive(Debug, thiserror::Error)]
#[error("the trace {} is not complete: {error}; free space, and start it again", path.display())]
pub struct FailedTrace {
    path: PathBuf,
    error: io::Error,
}

/// A trace that is being written. Arrivals count from its start, and requests of one step of the
/// loop have the same.
#[derive(Debug)]
struct RequestTrace {
    writer: TraceWriter<BufWriter<File>>,
    path: PathBuf,
    start: Instant,
    requests: u64,
    /// Numbers of LUNs in the order of their first requests, with their names.
    devices: BTreeMap<(usize, u16), (u32, String)>,
}

impl RequestTraces {
    /// Creates a file, and starts to log the requests that all systems receive from these
    /// initiators, or from all initiators if the set is empty.
    ///
    /// # Errors
    /// If a trace is running, the file cannot be written, or traces cannot be written in this
    /// format.
    pub fn start(
        &mut self,
        now: Instant,
        path: &Path,
        format: Format,
        initiators: &BTreeSet<InitiatorName>,
        systems: &mut Tracked<StorageSystem>,
    ) -> io::Result<()> {
        if let Some(other) = &self.running {
            let path = other.path.display();
            return Err(io::Error::other(format!("a trace to {path} is running; end it first")));
        }
        let writer = TraceWriter::new(BufWriter::new(File::create(path)?), format).map_err(io::Error::other)?;
        (0..systems.len()).for_each(|number| systems.visit(number).device.set_request_log(Some(initiators.clone())));
        let (path, devices) = (path.to_owned(), BTreeMap::new());
        self.running = Some(RequestTrace { writer, path, start: now, requests: 0, devices });
        self.failed = None;
        Ok(())
    }

    /// Writes the requests since the last call. A trace whose file cannot be written any more ends.
    #[inline]
    pub fn record(&mut self, now: Instant, systems: &mut Tracked<StorageSystem>) {
        if self.running.is_some() {
            self.record_running(now, systems);
        }
    }

    #[inline(never)]
    fn record_running(&mut self, now: Instant, systems: &mut Tracked<StorageSystem>) {
        let Some(trace) = &mut self.running else { return };
        let written = (0..systems.len()).try_for_each(|number| trace.write(now, number, systems.visit(number)));
        if let Err(error) = written {
            self.fail(error, systems);
        }
    }

    /// Writes buffered requests to the file, so that it can be read while it grows.
    pub fn flush(&mut self, systems: &mut Tracked<StorageSystem>) {
        if let Some(Err(error)) = self.running.as_mut().map(|trace| trace.writer.flush()) {
            self.fail(error, systems);
        }
    }

    /// Ends the trace, and returns its number of requests; `None` if there is none.
    ///
    /// # Errors
    /// The file could not be written to its end, now or before.
    pub fn stop(&mut self, systems: &mut Tracked<StorageSystem>) -> Option<Result<u64, FailedTrace>> {
        let Some(RequestTrace { writer, path, requests, .. }) = self.running.take() else {
            return self.failed.take().map(Err);
        };
        end_log(systems);
        Some(writer.finish().map(|_| requests).map_err(|error| FailedTrace { path, error }))
    }

    /// Ends the trace with the instance. If its file cannot be written, it remains as failed.
    pub fn close(&mut self, systems: &mut Tracked<StorageSystem>) {
        if let Some(Err(failed)) = self.stop(systems) {
            self.failed = Some(failed);
        }
    }

    /// Trace that a write error has ended, and whose end nobody has requested.
    pub fn failed(&self) -> Option<&FailedTrace> {
        self.failed.as_ref()
    }

    fn fail(&mut self, error: io::Error, systems: &mut Tracked<StorageSystem>) {
        let Some(RequestTrace { path, .. }) = self.running.take() else { return };
        tracing::error!(path = %path.display(), %error, "trace ended");
        end_log(systems);
        self.failed = Some(FailedTrace { path, error });
    }
}

fn end_log(systems: &mut Tracked<StorageSystem>) {
    (0..systems.len()).for_each(|number| systems.visit(number).device.set_request_log(None));
}

impl RequestTrace {
    fn write(&mut self, now: Instant, number: usize, system: &mut StorageSystem) -> io::Result<()> {
        let StorageSystem { device, name, .. } = system;
        let requests: Vec<BlockIo> = device.logged_requests().collect();
        for BlockIo { unit, op, lba, blocks, .. } in requests {
            let op = match op {
                IoOp::Read | IoOp::Verify | IoOp::Compare | IoOp::CompareSame => TraceOp::Read,
                IoOp::Write | IoOp::WriteVerify | IoOp::CompareAndWrite | IoOp::WriteSame | IoOp::WriteZeroes => {
                    TraceOp::Write
                }
                IoOp::Unmap => TraceOp::Trim,
                IoOp::Flush => TraceOp::Flush,
                IoOp::Mapping => continue,
            };
            let block_bytes = device.unit_config(unit).map_or(512, |config| u64::from(config.block_bytes));
            let count = self.devices.len() as u32;
            let entry = self.devices.entry((number, unit));
            let (device, name) = entry.or_insert_with(|| (count, format!("{name}:lun{unit}")));
            let is_flush = op == TraceOp::Flush;
            let request = TraceRequest {
                arrival_ps: now.since(self.start).as_ns() * 1_000,
                device: *device,
                op,
                offset_bytes: if is_flush { 0 } else { lba * block_bytes },
                length_bytes: if is_flush { 0 } else { u64::from(blocks) * block_bytes },
                response_ps: None,
                think_ps: None,
            };
            self.writer.write(&request, name)?;
            self.requests += 1;
        }
        Ok(())
    }
}
