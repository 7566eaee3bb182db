//! A host that makes load over FCoE: [`FcoeLoad`], an [`Initiator`] whose requests go to one disk. What it reads lands in buffers that
//! nobody looks at, what it writes is a pattern.

use super::{Initiator, InitiatorConfig};
use crate::load::{Course, LoadError, PATIENCE, Served, Work, pattern};
use crate::ports::{EthernetPort, PortError};
use sanloom_core::disk::Op;
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::{FcId, Wwpn};
use std::time::{Duration, Instant};

/// The disk is found in this time.
const SEARCH: Duration = Duration::from_secs(30);
/// When all disks that the targets have listed can be used, another one may still come for so long.
const AFTERTHOUGHT: Duration = Duration::from_secs(3);

/// Where the load goes.
#[derive(Clone, Debug)]
pub struct FcoeLoadConfig {
    /// The host.
    pub initiator: InitiatorConfig,
    /// The target port.
    pub target: Wwpn,
    /// Number of the logical unit.
    pub lun: u16,
}

/// What was agreed on the path to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Login {
    /// Our address.
    pub port_id: FcId,
    /// That of the target port.
    pub target_id: FcId,
    /// Longest data field of a frame, in bytes.
    pub receive_bytes: u16,
    /// Longest command, in bytes; a longer request is several commands.
    pub max_transfer_bytes: u64,
}

/// A host that makes load.
#[derive(Debug)]
pub struct FcoeLoad {
    initiator: Initiator,
    disk: u64,
    blocks: u64,
    block_bytes: u32,
    login: Login,
    buffers: Vec<Vec<u8>>,
    busy: bool,
}

impl FcoeLoad {
    /// Logs in, and waits for the disk.
    ///
    /// # Errors
    /// When nobody answers at the port, or the disk is not there.
    pub fn open(config: &FcoeLoadConfig, port: EthernetPort) -> Result<FcoeLoad, LoadError> {
        let session = |error: PortError| LoadError::Session(error.to_string());
        let lun = lun::to_bytes(config.lun).ok_or_else(|| LoadError::Session("there is no such LUN number".into()))?;
        let mut initiator = Initiator::new(config.initiator.clone(), port).map_err(session)?;
        let begun = Instant::now();
        let (mut busy, mut ready_since) = (false, None);
        loop {
            if let Some(found) = found(&initiator, config.target, lun) {
                let (disk, blocks, block_bytes, login) = found;
                return Ok(FcoeLoad { initiator, disk, blocks, block_bytes, login, buffers: Vec::new(), busy });
            }
            if initiator.is_ready() {
                ready_since.get_or_insert_with(Instant::now);
            }
            if begun.elapsed() > SEARCH || ready_since.is_some_and(|since| since.elapsed() > AFTERTHOUGHT) {
                let why = missing(&initiator, config);
                initiator.shut_down();
                return Err(LoadError::Session(why));
            }
            busy = initiator.turn(busy)?;
        }
    }

    /// What was agreed.
    pub fn login(&self) -> Login {
        self.login
    }

    /// Waits for what the fabric says, at most 100 ms. To be called again and again while there is no work: who is silent is logged out.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn tend(&mut self) -> Result<(), LoadError> {
        self.busy = self.initiator.turn(self.busy)?;
        Ok(())
    }

    /// Logs out.
    pub fn close(mut self) {
        self.initiator.shut_down();
    }

    /// Makes load for so long.
    ///
    /// # Errors
    /// When a request fails, or the disk does nothing any more.
    pub fn run(&mut self, work: Work, time: Duration, seed: u64) -> Result<Served, LoadError> {
        let mut course = Course::begin(work, time, seed, (self.blocks, self.block_bytes))?;
        let blocks = work.bytes / self.block_bytes;
        let op = if work.write { Op::Write } else { Op::Read };
        self.buffers.retain(|buffer| buffer.len() == work.bytes as usize);
        self.buffers.resize_with(work.depth as usize, || pattern(work.bytes).collect());
        let mut worked = Instant::now();
        while course.goes_on() {
            while let Some(place) = course.place()
                && let Some(buffer) = self.buffers.pop()
            {
                course.began(self.initiator.submit(self.disk, op, place * u64::from(blocks), blocks, buffer));
                self.busy = true;
            }
            self.tend()?;
            while let Some((tag, result, buffer)) = self.initiator.next_finished() {
                result.map_err(|error| LoadError::Command(error.to_string()))?;
                self.buffers.push(buffer);
                worked = Instant::now();
                course.ended(tag);
            }
            if worked.elapsed() > PATIENCE {
                return Err(LoadError::Idle);
            }
        }
        Ok(course.finish())
    }
}

/// The disk, if it can be used: its number, blocks, size of one, and the path to it.
fn found(initiator: &Initiator, target: Wwpn, lun: LunBytes) -> Option<(u64, u64, u32, Login)> {
    let host = &initiator.adapter.hosts[0];
    let disk = host.disks().find(|disk| disk.target == target && disk.lun == lun && disk.ready)?;
    let properties = disk.properties?;
    let (_, remote) = host.targets().find(|(wwpn, _)| *wwpn == target)?;
    let remote = remote?;
    let login = Login {
        port_id: host.port_id(),
        target_id: remote.port_id,
        receive_bytes: remote.receive_size_bytes,
        max_transfer_bytes: u64::from(properties.max_transfer_blocks) * u64::from(properties.block_bytes),
    };
    Some((disk.number, properties.blocks, properties.block_bytes, login))
}

/// Why the disk is not there.
fn missing(initiator: &Initiator, config: &FcoeLoadConfig) -> String {
    let host = &initiator.adapter.hosts[0];
    let seconds = SEARCH.as_secs();
    if !initiator.adapter.port.has_peer() {
        return format!("nobody came to the other end of {} in {seconds} s", initiator.adapter.port.name);
    }
    if host.port_id() == FcId::ZERO {
        return format!(
            "no login in {seconds} s: no forwarder at {} answers, or it refuses us",
            initiator.adapter.port.name
        );
    }
    let mut targets = host.targets().map(|(wwpn, _)| wwpn.to_string()).collect::<Vec<_>>();
    if targets.contains(&config.target.to_string()) {
        return format!("{} has no disk {} for us", config.target, config.lun);
    }
    if targets.is_empty() {
        targets.push("none".to_owned());
    }
    format!("there is no target port {} for us; we see {}", config.target, targets.join(", "))
}
