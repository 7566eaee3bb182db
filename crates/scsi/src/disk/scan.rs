//! Discovery of the logical units of a target: REPORT LUNS (SPC-4, 6.33).

use super::verdict::{Verdict, verdict};
use super::{Command, Data, End, Reply};
use crate::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::scsi::luns;
use std::collections::VecDeque;

/// Event for a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScanInput {
    /// The initiator is logged in to the target port.
    PathUp,
    /// The login is lost.
    PathDown,
    /// Read the list again.
    Rescan,
    /// A command has ended.
    Reply(Reply),
    /// The deadline of [`Scan::poll_timeout`] has passed.
    Timeout,
}

/// Action or result of a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScanOutput {
    /// Send a command to LUN 0, then pass [`ScanInput::Reply`].
    Command(Command),
    /// Logical units in ascending order, reported after each scan.
    Units(Vec<LunBytes>),
}

/// Reads the list of logical units when the path comes up and on request.
#[derive(Debug, Default)]
pub struct Scan {
    up: bool,
    /// Number and allocation length, in bytes, of the command in flight.
    open: Option<(u64, u32)>,
    /// True if another scan follows the command in flight.
    again: bool,
    retry_at: Option<Instant>,
    quick_tries: u8,
    next_id: u64,
    outputs: VecDeque<ScanOutput>,
}

/// Allocation length for 2047 units; a longer list is requested again.
const FIRST_ROOM_BYTES: u32 = 16 << 10;
/// Largest allocation length, more than all units of single-level addressing require.
const MAX_ROOM_BYTES: u32 = 1 << 20;
const QUICK_TRIES: u8 = 8;
const RETRY: Span = Span::from_secs(1);
const HEAD_BYTES: u32 = 8;

impl Scan {
    /// Creates a scan without a path.
    pub fn new() -> Scan {
        Scan::default()
    }

    /// Processes one event at `now`.
    pub fn handle(&mut self, now: Instant, input: ScanInput) {
        match input {
            ScanInput::PathUp => {
                self.up = true;
                self.quick_tries = 0;
                self.report_luns(FIRST_ROOM_BYTES);
            }
            ScanInput::PathDown => {
                self.up = false;
                self.again = false;
                self.open = None;
                self.retry_at = None;
            }
            ScanInput::Rescan if self.open.is_some() => self.again = true,
            ScanInput::Rescan => self.report_luns(FIRST_ROOM_BYTES),
            ScanInput::Reply(reply) => {
                if let Some((_, room)) = self.open.take_if(|(id, _)| *id == reply.id) {
                    self.on_end(now, &reply.end, room);
                }
            }
            ScanInput::Timeout => {
                if self.retry_at.is_some_and(|at| at <= now) {
                    self.quick_tries = 0;
                    self.report_luns(FIRST_ROOM_BYTES);
                }
            }
        }
    }

    /// Returns the next action or result.
    pub fn poll_output(&mut self) -> Option<ScanOutput> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`ScanInput::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    fn report_luns(&mut self, room: u32) {
        if !self.up {
            return;
        }
        self.retry_at = None;
        let id = self.next_id;
        self.next_id += 1;
        self.open = Some((id, room));
        let command = Command {
            id,
            cdb: Cdb::ReportLuns { allocation_len: room }.to_bytes(),
            data: Data::In { max_bytes: room },
        };
        self.outputs.push_back(ScanOutput::Command(command));
    }

    fn on_end(&mut self, now: Instant, end: &End, room: u32) {
        match (verdict(end), end) {
            (Verdict::Good, End::Status { data, .. }) => self.on_list(now, data, room),
            (Verdict::UnitAttention(_), _) if self.quick_tries < QUICK_TRIES => {
                self.quick_tries += 1;
                self.report_luns(room);
            }
            // A target with any units has a unit 0. The probe of that disk shows whether it exists.
            (Verdict::Fail(_), _) => self.units(vec![[0; 8]]),
            (Verdict::PathGone, _) => {}
            _ => self.retry_at = Some(now + RETRY),
        }
    }

    fn on_list(&mut self, now: Instant, data: &[u8], room: u32) {
        let (Some(length), Ok(mut units)) = (data.first_chunk(), luns::parse(data)) else {
            self.retry_at = Some(now + RETRY);
            return;
        };
        let needed = u32::from_be_bytes(*length).saturating_add(HEAD_BYTES);
        if needed > room && room < MAX_ROOM_BYTES {
            return self.report_luns(needed.min(MAX_ROOM_BYTES));
        }
        units.sort_unstable();
        units.dedup();
        self.units(units);
    }

    fn units(&mut self, units: Vec<LunBytes>) {
        self.outputs.push_back(ScanOutput::Units(units));
        if std::mem::take(&mut self.again) {
            self.report_luns(FIRST_ROOM_BYTES);
        }
    }
}
