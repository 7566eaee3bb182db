//! Parameters of a backstore, and their errors.

use super::loops::LoopConfig;
use crate::cache::{Settings, SettingsError};
use crate::disk::ConfigError;
use crate::raid::{Consistency, Geometry, GeometryError, Level, Pass, SyncLimits};
use thiserror::Error;

/// RAID group of each unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RaidConfig {
    /// Organisation.
    pub level: Level,
    /// Number of disks of a group, without spares.
    pub members: u32,
    /// Size of a chunk in blocks of 512 bytes.
    pub chunk_blocks: u32,
    /// Spares of each group.
    pub spares: u32,
    /// Limits of the rebuild.
    pub limits: SyncLimits,
}

/// Cache in front of all units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CacheConfig {
    /// Rules of the cache; the size of the volume follows from the units.
    pub settings: Settings,
    /// Time to copy to the partner controller in picoseconds, for each write.
    pub mirror_latency_ps: u64,
    /// Rate of the copies in bytes per second; 0 if they take no time beyond the latency.
    pub mirror_bytes_per_s: u64,
    /// Largest number of destages in flight.
    pub most_destages: u32,
}

/// Rooms behind the disks' controller.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BackstoreConfig {
    /// RAID; `None`: one disk for each unit.
    pub raid: Option<RaidConfig>,
    /// Cache; `None`: commands go to the disks.
    pub cache: Option<CacheConfig>,
    /// Loops of devices; `None`: each device has a line of its own.
    pub loops: Option<LoopConfig>,
}

impl BackstoreConfig {
    /// Returns the number of blocks of the largest unit on devices of so many blocks.
    ///
    /// # Errors
    ///
    /// The group cannot be made from such devices.
    pub fn unit_blocks(&self, device_blocks: u64) -> Result<u64, BackstoreError> {
        let Some(raid) = &self.raid else { return Ok(device_blocks) };
        Ok(Geometry::new(raid.level, raid.members, raid.chunk_blocks, device_blocks)?.blocks())
    }

    /// Checks the parameters for devices of so many blocks without building anything.
    ///
    /// # Errors
    ///
    /// The group or the cache contradicts itself.
    pub fn check(&self, device_blocks: u64) -> Result<(), BackstoreError> {
        self.unit_blocks(device_blocks)?;
        if let Some(cache) = &self.cache {
            cache.settings.check()?;
        }
        Ok(())
    }
}

/// Faults of the media of all groups, and what is done about them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Protection {
    /// Protection against a power failure in the middle of a write.
    pub consistency: Consistency,
    /// Time in picoseconds from the start of one scrub of a group to that of the next; `None`: no
    /// scrubs.
    pub scrub_interval_ps: Option<u64>,
    /// Pass of a scrub.
    pub scrub: Pass,
    /// Latent sector errors that each device gets per hour.
    pub latent_errors_per_hour: f64,
}

impl Default for Protection {
    /// No scrubs and no errors; a power failure leaves everything to a resync.
    fn default() -> Protection {
        Protection {
            consistency: Consistency::None,
            scrub_interval_ps: None,
            scrub: Pass::Check,
            latent_errors_per_hour: 0.0,
        }
    }
}

impl Protection {
    /// Checks the protection of groups of this level; `None`: devices without RAID.
    ///
    /// # Errors
    ///
    /// The level has no such protection: a journal needs parity, and a partial parity log RAID 5.
    pub fn check(&self, level: Option<Level>) -> Result<(), BackstoreError> {
        let (has_parity, has_q) = match level {
            Some(Level::Parity { has_q, .. }) => (true, has_q),
            _ => (false, false),
        };
        match self.consistency {
            Consistency::Journal if !has_parity => {
                Err(BackstoreError::Consistency("a journal needs RAID 4, 5, 6, 50 or 60; choose one of these"))
            }
            Consistency::PartialParityLog if !has_parity || has_q => Err(BackstoreError::Consistency(
                "a partial parity log needs RAID 4, 5 or 50; choose one of these, or a journal",
            )),
            _ => Ok(()),
        }
    }
}

/// Contradiction in the parameters of a backstore.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BackstoreError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] ConfigError),
    /// The RAID group.
    #[error(transparent)]
    Raid(#[from] GeometryError),
    /// The cache.
    #[error(transparent)]
    Cache(#[from] SettingsError),
    /// A unit is larger than its group.
    #[error("a unit of {unit} blocks does not fit into its group of {group} blocks")]
    Size {
        /// Blocks of the unit.
        unit: u64,
        /// Blocks of the group.
        group: u64,
    },
    /// Too many latent sector errors.
    #[error("{per_hour} latent sector errors per hour and group are outside 0 to 1,000,000; choose a lower rate")]
    LatentErrors {
        /// Errors of a group per hour.
        per_hour: f64,
    },
    /// The level has no such protection against crashes.
    #[error("{0}")]
    Consistency(&'static str),
}
