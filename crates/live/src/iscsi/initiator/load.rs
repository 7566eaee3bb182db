//! A host that only makes load: [`Load`], one session with one LUN. What it reads goes nowhere, what it writes is a pattern, so that
//! the processor is left to who is measured.

use super::TARGET;
use super::link::{Buffers, Event, Link};
use super::socket::{random, random_isid};
use crate::clock::Clock;
use crate::load::{Course, LoadError, PATIENCE, Served, Work, pattern};
use crate::poll::{Interest, Poller};
use sanloom_core::fcp::DataDirection;
use sanloom_core::iscsi::Parameters;
use sanloom_core::iscsi::chap::Credentials;
use sanloom_core::iscsi::initiator::{Command, Input, LoginConfig, Outcome, SessionConfig};
use sanloom_core::iscsi::parameters::Wishes;
use sanloom_core::time::Span;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::capacity::ReadCapacity16;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads in one turn.
const READS_IN_TURN: usize = 8;
/// How often a unit is asked whether it is ready.
const PROBES: u32 = 16;

/// Where the load goes.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Where the target is.
    pub portal: SocketAddr,
    /// Its iSCSI name.
    pub target: String,
    /// Number of the logical unit.
    pub lun: u16,
    /// Our iSCSI name.
    pub initiator: String,
    /// What is wanted of the session.
    pub wishes: Wishes,
    /// What we prove.
    pub own: Option<Credentials>,
    /// What the target has to prove.
    pub target_proof: Option<Credentials>,
}

#[derive(Debug)]
struct Store {
    /// What is written.
    pattern: Arc<Vec<u8>>,
    /// Data of one command are wanted.
    kept: Option<(u64, Vec<u8>)>,
    /// How often data were moved.
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

/// A session that makes load.
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
    /// When data moved or something ended for the last time, or work began after a pause.
    worked: Instant,
}

impl Load {
    /// Logs in, and asks for the size of the unit.
    ///
    /// # Errors
    /// When the target is not there, refuses the login, or the unit cannot be used.
    pub fn open(config: &LoadConfig) -> Result<Load, LoadError> {
        let stream = TcpStream::connect_timeout(&config.portal, PATIENCE)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let login = LoginConfig {
            initiator: config.initiator.clone(),
            target: Some(config.target.clone()),
            isid: random_isid()?,
            wishes: config.wishes,
            own: config.own.clone(),
            target_proof: config.target_proof.clone(),
            challenge: random::<16>()?,
            timeout: Span::from_secs(PATIENCE.as_secs()),
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
            load.turn(|_, _| {})?;
        }
        load.probe()?;
        Ok(load)
    }

    /// What was agreed.
    pub fn parameters(&self) -> Option<&Parameters> {
        self.parameters.as_ref()
    }

    /// Waits until the unit is ready, and asks for its size.
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
            return Err(LoadError::Command(format!("the size of the unit: status {answer:02x}")));
        }
        let capacity = ReadCapacity16::parse(&data).map_err(|error| LoadError::Command(error.to_string()))?;
        (self.blocks, self.block_bytes) = (capacity.last_lba.saturating_add(1), capacity.block_bytes);
        Ok(())
    }

    /// One command alone; its status.
    fn one(&mut self, cdb: Cdb, direction: DataDirection, bytes: u32) -> Result<u8, LoadError> {
        let id = self.submit(cdb, direction, bytes);
        self.worked = Instant::now();
        let mut answer = None;
        while answer.is_none() {
            self.turn(|done, outcome| {
                if done == id {
                    answer = Some(outcome);
                }
            })?;
        }
        match answer {
            Some(Outcome::Completed { status, .. }) => Ok(status),
            other => Err(LoadError::Command(format!("{other:?}"))),
        }
    }

    fn submit(&mut self, cdb: Cdb, direction: DataDirection, bytes: u32) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let command = Command { id, lun: self.lun, cdb: cdb.to_bytes(), direction, bytes };
        self.link.tell(self.clock.now(), Input::Submit(command), &mut self.store);
        id
    }

    /// Makes load for so long.
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
            self.turn(|id, outcome| {
                course.ended(id);
                match outcome {
                    Outcome::Completed { status: status::GOOD, transferred, .. } if transferred == work.bytes => {}
                    other => failed = Some(format!("{other:?}")),
                }
            })?;
            if let Some(why) = failed {
                return Err(LoadError::Command(why));
            }
        }
        Ok(course.finish())
    }

    /// Sends, waits, receives.
    fn turn(&mut self, mut ended: impl FnMut(u64, Outcome)) -> Result<(), LoadError> {
        let left = PATIENCE.saturating_sub(self.worked.elapsed());
        if left.is_zero() {
            return Err(LoadError::Idle);
        }
        self.link.flush()?;
        let write = self.link.output.blocked && !self.link.output.is_empty();
        self.poller.set(TARGET, Some(self.link.stream.as_fd()), Interest { read: true, write })?;
        let (mut readable, mut worked) = (false, false);
        for event in self.poller.wait(left)? {
            readable |= event.readable;
            worked |= event.writable;
            self.link.output.blocked &= !event.writable;
        }
        let now = self.clock.now();
        if self.link.poll_timeout().is_some_and(|at| at <= now) {
            self.link.timeout(now, &mut self.store);
        }
        let moves = self.store.moves;
        for _ in 0..READS_IN_TURN {
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
