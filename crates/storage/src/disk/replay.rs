//! Replay of a trace with one request at a time.

use super::check::ConfigError;
use super::config::DiskConfig;
use super::model::Disk;
use super::request::{Ended, Op, Request};
use crate::trace::validate::Record;

/// A disk with a host that thinks between two requests.
///
/// Each request arrives its think time after the end of the one before in the model, so an error
/// of the model does not shift the later arrivals against the state of the disk.
#[derive(Clone, Debug)]
pub struct Replay {
    disk: Disk,
    now_ps: u64,
    id: u64,
}

impl Replay {
    /// Creates a replay that starts with an idle disk at time 0.
    ///
    /// # Errors
    /// If the parameters of the disk contradict each other.
    pub fn new(config: &DiskConfig) -> Result<Replay, ConfigError> {
        Ok(Replay { disk: Disk::new(config)?, now_ps: 0, id: 0 })
    }

    /// Replays a request and its think time. Returns none only if the disk loses the request.
    pub fn step(&mut self, record: &Record) -> Option<Ended> {
        let op = if record.is_write { Op::Write } else { Op::Read };
        self.id += 1;
        self.disk.submit(self.now_ps, Request { id: self.id, lbn: record.lbn, blocks: record.blocks, op });
        loop {
            let next_ps = self.disk.next_ps()?;
            if let Some(ended) = self.disk.pop_ended(next_ps) {
                self.now_ps = ended.ended_ps + record.think_ps;
                return Some(ended);
            }
        }
    }

    /// The disk, with its statistics.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }
}
