//! A device of a backstore: a disk or an SSD.

use crate::disk::{Disk, Request};
use crate::flash::Drive;

/// A disk or an SSD. Clones share the tables of a disk, and the maps of an SSD until a write.
#[derive(Clone, Debug)]
pub enum Device {
    /// Disk.
    Disk(Box<Disk>),
    /// SSD.
    Ssd(Box<Drive>),
}

impl From<&Disk> for Device {
    fn from(disk: &Disk) -> Device {
        Device::Disk(Box::new(disk.clone()))
    }
}

impl From<&Drive> for Device {
    fn from(drive: &Drive) -> Device {
        Device::Ssd(Box::new(drive.clone()))
    }
}

impl From<&Device> for Device {
    fn from(device: &Device) -> Device {
        device.clone()
    }
}

impl Device {
    /// Capacity in blocks of 512 bytes.
    pub fn blocks(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.mechanism().geometry.blocks(),
            Device::Ssd(drive) => drive.config().blocks(),
        }
    }

    /// Returns the disk, if the device is one.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Device::Disk(disk) => Some(disk),
            Device::Ssd(_) => None,
        }
    }

    /// Returns the SSD, if the device is one.
    pub fn ssd(&self) -> Option<&Drive> {
        match self {
            Device::Disk(_) => None,
            Device::Ssd(drive) => Some(drive),
        }
    }

    /// Number of requests that wait for the arm, for a queue slot, for room or for a flush.
    pub fn waiting(&self) -> usize {
        match self {
            Device::Disk(disk) => disk.waiting(),
            Device::Ssd(drive) => drive.waiting(),
        }
    }

    pub(super) fn submit(&mut self, now_ps: u64, request: Request) {
        match self {
            Device::Disk(disk) => disk.submit(now_ps, request),
            Device::Ssd(drive) => drive.submit(now_ps, request),
        }
    }

    pub(super) fn next_ps(&mut self) -> Option<u64> {
        match self {
            Device::Disk(disk) => disk.next_ps(),
            Device::Ssd(drive) => drive.next_ps(),
        }
    }

    /// Returns the identifier of a request that has ended at `now_ps`.
    pub(super) fn pop_ended(&mut self, now_ps: u64) -> Option<u64> {
        match self {
            Device::Disk(disk) => disk.pop_ended(now_ps).map(|ended| ended.id),
            Device::Ssd(drive) => drive.pop_ended(now_ps).map(|ended| ended.id),
        }
    }

    /// Restarts the measurement at `now_ps`.
    pub(super) fn restart(&mut self, now_ps: u64) {
        match self {
            Device::Disk(disk) => {
                disk.advance(now_ps);
                disk.restart_stats();
            }
            Device::Ssd(drive) => {
                drive.advance(now_ps);
                drive.restart_stats();
            }
        }
    }

    /// Removes all requests, and what a volatile cache holds. Returns the lost blocks.
    pub(super) fn power_loss(&mut self, now_ps: u64, idle: &Device) -> u64 {
        match (self, idle) {
            (Device::Disk(disk), Device::Disk(idle)) => {
                disk.advance(now_ps);
                let lost = disk.dirty_blocks();
                disk.restart_as(idle);
                lost
            }
            (Device::Ssd(drive), _) => drive.power_loss(now_ps),
            (Device::Disk(_), Device::Ssd(_)) => 0,
        }
    }
}
