//! Load generator over FCoE: [`FcoeLoad`], an [`Initiator`] that sends requests to one disk. Read
//! data are discarded; writes send a fixed pattern.

use crate::load::{Course, LoadError, Served, TIME_LIMIT, Work, pattern};
use sanloom_live::initiator::{Initiator, InitiatorConfig};
use sanloom_live::ports::{EthernetPort, PortError};
use sanloom_scsi::disk::Op;
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::{FcId, Wwpn};
use std::time::{Duration, Instant};

/// Maximum time until the disk is found.
const SEARCH: Duration = Duration::from_secs(30);
/// Extra wait for the configured disk after all disks that the targets listed are usable.
const AFTERTHOUGHT: Duration = Duration::from_secs(3);

/// Target of the load.
#[derive(Clone, Debug)]
pub struct FcoeLoadConfig {
    /// Configuration of the host.
    pub initiator: InitiatorConfig,
    /// Port name of the target.
    pub target: Wwpn,
    /// Logical unit number.
    pub lun: u16,
}

/// Negotiated parameters of the path to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Login {
    /// Address of the host.
    pub port_id: FcId,
    /// Address of the target port.
    pub target_id: FcId,
    /// Maximum data field size of a frame, in bytes.
    pub receive_bytes: u16,
    /// Maximum transfer length of a command, in bytes; a longer request is split.
    pub max_transfer_bytes: u64,
}

/// A host that generates load.
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
    /// Logs in and waits for the disk.
    ///
    /// # Errors
    /// When the port has no peer, or the disk is not found.
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
            busy = initiator.step(busy)?;
        }
    }

    /// Returns the negotiated parameters.
    pub fn login(&self) -> Login {
        self.login
    }

    /// Processes fabric events for at most 100 ms. Call it repeatedly while there is no load,
    /// because a host that does not respond is logged out.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn step(&mut self) -> Result<(), LoadError> {
        self.busy = self.initiator.step(self.busy)?;
        Ok(())
    }

    /// Logs out and drops the host.
    pub fn close(mut self) {
        self.initiator.shut_down();
    }

    /// Generates load for the given time.
    ///
    /// # Errors
    /// When a request fails, or the disk stops completing requests.
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
            self.step()?;
            while let Some((tag, result, buffer)) = self.initiator.next_finished() {
                result.map_err(|error| LoadError::Command(error.to_string()))?;
                self.buffers.push(buffer);
                worked = Instant::now();
                course.ended(tag);
            }
            if worked.elapsed() > TIME_LIMIT {
                return Err(LoadError::Idle);
            }
        }
        Ok(course.finish())
    }
}

/// Returns the disk if it is usable: its number, number of blocks, block size in bytes, and path.
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

/// Describes why the disk was not found.
fn missing(initiator: &Initiator, config: &FcoeLoadConfig) -> String {
    let host = &initiator.adapter.hosts[0];
    let seconds = SEARCH.as_secs();
    if !initiator.adapter.port.has_peer() {
        return format!("no peer connected to {} within {seconds} s", initiator.adapter.port.name);
    }
    if host.port_id() == FcId::ZERO {
        return format!(
            "no login within {seconds} s: no forwarder answers at {}, or it rejects the login",
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
    format!("target port {} is not visible; visible are {}", config.target, targets.join(", "))
}
