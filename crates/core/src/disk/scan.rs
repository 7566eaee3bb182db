//! Which logical units a target has: REPORT LUNS (SPC-4, 6.33).

use super::verdict::{Verdict, verdict};
use super::{Command, Data, End, Reply};
use crate::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::lun::LunBytes;
use sanloom_wire::scsi::luns;
use std::collections::VecDeque;

/// What happens to a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScanInput {
    /// There is a login with the target port.
    PathUp,
    /// The login is gone.
    PathDown,
    /// Ask again.
    Rescan,
    /// A command ended.
    Reply(Reply),
    /// Time has passed.
    Timeout,
}

/// What a scan does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScanOutput {
    /// Carry out a command for LUN 0, then [`ScanInput::Reply`].
    Command(Command),
    /// The logical units, in ascending order; comes after each question.
    Units(Vec<LunBytes>),
}

/// Asks a target for its logical units, when the path comes up and when it is told to.
#[derive(Debug, Default)]
pub struct Scan {
    up: bool,
    /// The open question and the room for its answer in bytes.
    open: Option<(u64, u32)>,
    /// Asked again behind the open question.
    again: bool,
    retry_at: Option<Instant>,
    quick_tries: u8,
    next_id: u64,
    outputs: VecDeque<ScanOutput>,
}

/// Room for 2047 units; a longer list is asked for again.
const FIRST_ROOM_BYTES: u32 = 16 << 10;
/// All the units of single-level addressing, and more.
const MAX_ROOM_BYTES: u32 = 1 << 20;
const QUICK_TRIES: u8 = 8;
const RETRY: Span = Span::from_secs(1);
const HEAD_BYTES: u32 = 8;

impl Scan {
    /// A scan without a path.
    pub fn new() -> Scan {
        Scan::default()
    }

    /// One thing happened at `now`.
    pub fn handle(&mut self, now: Instant, input: ScanInput) {
        match input {
            ScanInput::PathUp => {
                self.up = true;
                self.quick_tries = 0;
                self.ask(FIRST_ROOM_BYTES);
            }
            ScanInput::PathDown => {
                self.up = false;
                self.again = false;
                self.open = None;
                self.retry_at = None;
            }
            ScanInput::Rescan if self.open.is_some() => self.again = true,
            ScanInput::Rescan => self.ask(FIRST_ROOM_BYTES),
            ScanInput::Reply(reply) => {
                if let Some((_, room)) = self.open.take_if(|(id, _)| *id == reply.id) {
                    self.on_end(now, &reply.end, room);
                }
            }
            ScanInput::Timeout => {
                if self.retry_at.is_some_and(|at| at <= now) {
                    self.quick_tries = 0;
                    self.ask(FIRST_ROOM_BYTES);
                }
            }
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<ScanOutput> {
        self.outputs.pop_front()
    }

    /// When to come back with [`ScanInput::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    fn ask(&mut self, room: u32) {
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
                self.ask(room);
            }
            // Every target has a unit 0, if it has any; the disk's own questions will tell.
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
            return self.ask(needed.min(MAX_ROOM_BYTES));
        }
        units.sort_unstable();
        units.dedup();
        self.units(units);
    }

    fn units(&mut self, units: Vec<LunBytes>) {
        self.outputs.push_back(ScanOutput::Units(units));
        if std::mem::take(&mut self.again) {
            self.ask(FIRST_ROOM_BYTES);
        }
    }
}
