//! Sequential requests: runs in which each request begins where the one before ends.

use super::distribution::Distribution;
use super::share;
use crate::trace::request::TraceRequest;
use serde::Serialize;

/// Streams of a device that are followed at the same time.
const STREAMS: usize = 32;

/// Sequential reads and writes. A run is a series of requests to one device, each of which begins
/// where the one before ends; a request that is not sequential is a run of one.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Sequential {
    /// Share of the requests that begin where the request before on their device ends.
    pub share: f64,
    /// Share of the requests that begin where one of the last 32 streams of their device ends, so
    /// that streams side by side count.
    pub stream_share: f64,
    /// Number of runs.
    pub runs: u64,
    /// Mean number of requests of a run.
    pub mean_requests: f64,
    /// 99th percentile of the number of requests of a finished run.
    pub p99_requests: u64,
    /// Largest number of requests of a finished run.
    pub max_requests: u64,
}

/// Runs of all devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    sequential: u64,
    in_streams: u64,
    finished: Distribution,
}

impl Total {
    pub(super) fn sequential(&self, requests: u64) -> Sequential {
        let runs = requests - self.sequential;
        Sequential {
            share: share(self.sequential, requests),
            stream_share: share(self.in_streams, requests),
            runs,
            mean_requests: share(requests, runs),
            p99_requests: self.finished.quantile(0.99),
            max_requests: self.finished.largest(),
        }
    }
}

/// Streams of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// Requests of the run so far.
    length: u64,
    /// First bytes behind the streams; the latest is the last one.
    ends: Vec<u64>,
}

impl Runs {
    /// Counts a read or write. Returns whether it begins where the one before ends.
    pub(super) fn add(&mut self, request: &TraceRequest, total: &mut Total) -> bool {
        let stream = self.ends.iter().rposition(|end| *end == request.offset_bytes);
        let is_sequential = stream.is_some_and(|stream| stream + 1 == self.ends.len());
        match stream {
            Some(stream) => {
                self.ends.remove(stream);
            }
            None if self.ends.len() == STREAMS => {
                self.ends.remove(0);
            }
            None => {}
        }
        self.ends.push(request.end_bytes());
        total.in_streams += u64::from(stream.is_some());
        if is_sequential {
            total.sequential += 1;
            self.length += 1;
        } else {
            if self.length > 0 {
                total.finished.add(self.length);
            }
            self.length = 1;
        }
        is_sequential
    }
}
