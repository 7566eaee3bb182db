//! Load generator over iSCSI: [`Load`], one session with one LUN. Read data are discarded and
//! writes send a fixed pattern, so that the generator leaves the processor to the system under
//! test.

use crate::load::{Course, LoadError, Served, TIME_LIMIT, Work, pattern};
use sanloom_live::clock::Clock;
use sanloom_live::iscsi_initiator::TARGET;
use sanloom_live::iscsi_initiator::link::{Buffers, Event, Link};
use sanloom_live::poll::Poller;
use sanloom_live::session::socket::{random, random_isid};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::initiator::{Command, Input, LoginConfig, Outcome, SessionConfig};
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::capacity::ReadCapacity16;
use sanloom_wire::sense::{Condition, SenseCode};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of socket reads per turn.
const MAX_READS: usize = 8;
/// Maximum number of TEST UNIT READY attempts.
const PROBES: u32 = 16;

/// Target of the load.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Address and TCP port of the target.
    pub portal: SocketAddr,
    /// iSCSI name of the target.
    pub target: String,
    /// Logical unit number.
    pub lun: u16,
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// Requested session parameters.
    pub offers: Offers,
    /// Credentials of the initiator.
    pub own: Option<Credentials>,
    /// Expected credentials of the target, for mutual authentication.
    pub target_proof: Option<Credentials>,
}

#[derive(Debug)]
struct Store {
    /// Data of writes.
    pattern: Arc<Vec<u8>>,
    /// Command whose read data are kept, and the data.
    kept: Option<(u64, Vec<u8>)>,
    /// Number of data transfers.
    moves: u64,
}

impl Buffers for Store {
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]> {
        self.moves += 1;
        let (of, buffer) = self.kept.as_mut()?;
        if *of == id { buffer.get_mut(at..)?.get_mut(..len) } else { None }
    }

    fn data(&mut self, _: u64) -> Option<(Arc<Vec<u8>>, u32)> {
        self.moves += 1;
        Some((self.pattern.clone(), 0))
    }

    fn discards(&self) -> bool {
        true
    }
}

/// A session that generates load.
#[derive(Debug)]
pub struct Load {
    link: Box<Link>,
    poller: Poller,
    clock: Clock,
    store: Store,
    lun: LunBytes,
    blocks: u64,
    block_bytes: u32,
    next_id: u64,
    parameters: Option<Parameters>,
    /// Time of the last data transfer or completion, or of the start of work after a pause.
    worked: Instant,
}

impl Load {
    /// Logs in and reads the size of the unit.
    ///
    /// # Errors
    /// When the target is not reachable or rejects the login, or the unit is unusable.
    pub fn open(config: &LoadConfig) -> Result<Load, LoadError> {
        let stream = TcpStream::connect_timeout(&config.portal, TIME_LIMIT)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let login = LoginConfig {
            initiator: config.initiator.clone(),
            target: Some(config.target.clone()),
            isid: random_isid()?,
            offers: config.offers,
            own: config.own.clone(),
            target_proof: config.target_proof.clone(),
            challenge: random::<16>()?,
            timeout: Span::from_secs(TIME_LIMIT.as_secs()),
        };
        let clock = Clock::start();
        let session = SessionConfig::default();
        let mut load = Load {
            link: Box::new(Link::new(clock.now(), stream, login, session)),
            poller: Poller::new()?,
            clock,
            store: Store { pattern: Arc::new(Vec::new()), kept: None, moves: 0 },
            lun: lun::to_bytes(config.lun).ok_or_else(|| LoadError::Session("there is no such LUN number".into()))?,
            blocks: 0,
            block_bytes: 0,
            next_id: 0,
            parameters: None,
            worked: Instant::now(),
        };
        load.link.drain(load.clock.now(), &mut load.store);
        while load.parameters.is_none() {
            load.step(|_, _| {})?;
        }
        load.probe()?;
        Ok(load)
    }

    /// Returns the negotiated session parameters.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.parameters.as_ref()
    }

    /// Waits until the unit is ready and reads its size.
    fn probe(&mut self) -> Result<(), LoadError> {
        const CAPACITY_BYTES: u32 = 32;
        for _ in 0..PROBES {
            if self.one(Cdb::TestUnitReady, DataDirection::None, 0)? == status::GOOD {
                break;
            }
        }
        let cdb = Cdb::ReadCapacity16 { allocation_len: CAPACITY_BYTES };
        let id = self.next_id;
        self.store.kept = Some((id, vec![0; CAPACITY_BYTES as usize]));
        let answer = self.one(cdb, DataDirection::Read, CAPACITY_BYTES)?;
        let (_, data) = self.store.kept.take().unwrap_or_default();
        if answer != status::GOOD {
            return Err(LoadError::Command(format!("the unit rejected READ CAPACITY with status {answer:02x}")));
        }
        let capacity = ReadCapacity16::parse(&data).map_err(|error| LoadError::Command(error.to_string()))?;
        (self.blocks, self.block_bytes) = (capacity.last_lba.saturating_add(1), capacity.block_bytes);
        Ok(())
    }

    /// Runs one command and returns its status.
    fn one(&mut self, cdb: Cdb, direction: DataDirection, bytes: u32) -> Result<u8, LoadError> {
        let id = self.submit(cdb, direction, bytes);
        self.worked = Instant::now();
        let mut answer = None;
        while answer.is_none() {
            self.step(|done, outcome| {
                if done == id {
                    answer = Some(outcome);
                }
            })?;
        }
        match answer {
            Some(Outcome::Completed { status, .. }) => Ok(status),
            Some(other) => Err(LoadError::Command(cause_of(&other))),
            None => Err(LoadError::Idle),
        }
    }

    fn submit(&mut self, cdb: Cdb, direction: DataDirection, bytes: u32) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let command = Command { id, lun: self.lun, cdb: cdb.to_bytes(), direction, bytes };
        self.link.input(self.clock.now(), Input::Submit(command), &mut self.store);
        id
    }

    /// Generates load for the given time.
    ///
    /// # Errors
    /// When the connection is lost or a command fails.
    pub fn run(&mut self, work: Work, time: Duration, seed: u64) -> Result<Served, LoadError> {
        let mut course = Course::begin(work, time, seed, (self.blocks, self.block_bytes))?;
        if work.write && self.store.pattern.len() != work.bytes as usize {
            self.store.pattern = Arc::new(pattern(work.bytes).collect());
        }
        let blocks = work.bytes / self.block_bytes;
        let mut failed = None;
        self.worked = Instant::now();
        while course.goes_on() {
            while let Some(place) = course.place() {
                let lba = place * u64::from(blocks);
                let (direction, cdb) = match work.write {
                    true => (DataDirection::Write, Cdb::Write { lba, blocks, fua: false }),
                    false => (DataDirection::Read, Cdb::Read { lba, blocks, fua: false }),
                };
                course.began(self.submit(cdb, direction, work.bytes));
            }
            self.step(|id, outcome| {
                course.ended(id);
                match outcome {
                    Outcome::Completed { status: status::GOOD, transferred, .. } if transferred == work.bytes => {}
                    other => failed = Some(cause_of(&other)),
                }
            })?;
            if let Some(why) = failed {
                return Err(LoadError::Command(why));
            }
        }
        Ok(course.finish())
    }

    /// Sends pending data, waits for an event, and receives.
    fn step(&mut self, mut ended: impl FnMut(u64, Outcome)) -> Result<(), LoadError> {
        let left = TIME_LIMIT.saturating_sub(self.worked.elapsed());
        if left.is_zero() {
            return Err(LoadError::Idle);
        }
        self.link.flush()?;
        self.poller.set(TARGET, Some(self.link.stream().as_fd()), self.link.interest())?;
        let (mut readable, mut worked) = (false, false);
        for event in self.poller.wait(left)? {
            readable |= event.readable;
            worked |= event.writable;
            if event.writable {
                self.link.set_writable();
            }
        }
        let now = self.clock.now();
        if self.link.poll_timeout().is_some_and(|at| at <= now) {
            self.link.timeout(now, &mut self.store);
        }
        let moves = self.store.moves;
        for _ in 0..MAX_READS {
            if !readable || !self.link.read(now, &mut self.store)? {
                break;
            }
        }
        worked |= self.store.moves > moves;
        for event in self.link.take_events() {
            match event {
                Event::Up => self.parameters = self.link.parameters(),
                Event::Done(id, outcome) => ended(id, outcome),
                Event::Refused(error) => return Err(LoadError::Session(error.to_string())),
                Event::Broken(why) => return Err(LoadError::Session(why.to_string())),
            }
            worked = true;
        }
        if worked {
            self.worked = Instant::now();
        }
        Ok(())
    }
}

/// Formats the outcome of a command that did not succeed.
fn cause_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { status: status::GOOD, transferred, .. } => {
            format!("the target transferred {transferred} bytes, fewer than requested")
        }
        Outcome::Completed { status, sense, .. } => {
            let name = status::name(*status).map_or_else(|| format!("status {status:02x}"), str::to_owned);
            match Condition::parse(sense) {
                None => format!("{name} without sense data"),
                Some(Condition { key, code: SenseCode(code), .. }) => {
                    let text = SenseCode(code).name().map(|name| format!(", {name}")).unwrap_or_default();
                    format!("{name}, {key}{text} ({:x}/{:02x}/{:02x})", key.0, code >> 8, code & 0xff)
                }
            }
        }
        Outcome::TimedOut => "it timed out and was aborted".to_owned(),
        Outcome::Failed => "the target did not complete it".to_owned(),
        Outcome::Reset { .. } => "the unit was reset".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::sense::{Sense, SenseKey};

    #[test]
    fn a_failed_command_is_reported_with_its_status_and_sense_data() {
        let sense = Sense::new(SenseKey::DATA_PROTECT, SenseCode::SPACE_EXHAUSTED).to_bytes();
        let outcome = |status, sense: &[u8]| Outcome::Completed { status, sense: sense.into(), transferred: 0 };
        assert_eq!(
            cause_of(&outcome(status::CHECK_CONDITION, &sense)),
            "CHECK CONDITION, data protect, space allocation failed write protect (7/27/07)"
        );
        assert_eq!(cause_of(&outcome(status::BUSY, &[])), "BUSY without sense data");
        assert_eq!(cause_of(&outcome(0x7f, &[])), "status 7f without sense data");
    }
}
