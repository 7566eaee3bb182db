//! Layout of a disk: logical block addresses to cylinders, heads and angles.

use super::check::{self, ConfigError};
use super::config::{DiskConfig, Mapping, Zone};

/// Place of a block on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Cylinder.
    pub cylinder: u32,
    /// Head, from 0.
    pub head: u32,
    /// Time after the index mark at which the start of the block passes the head, below one
    /// revolution.
    pub angle_ps: u64,
    /// Blocks from this one to the end of the data on the track, this one included.
    pub left_on_track: u32,
    /// Blocks of the track.
    pub blocks_per_track: u32,
    /// Time of a block in 2^-20 picoseconds.
    block_q20: u64,
}

/// Bits behind the binary point of [`Place::block_q20`]: a revolution of a second still fits.
const FRACTION: u32 = 20;

impl Place {
    /// Returns the time that `count` adjacent blocks of the track need to pass the head, rounded
    /// down; `count` is at most the number of blocks of the track.
    #[inline]
    pub fn blocks_ps(&self, count: u64) -> u64 {
        (count * self.block_q20) >> FRACTION
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Area {
    /// Address of the first block.
    first_lbn: u64,
    /// Address behind the last block.
    end_lbn: u64,
    zone: Zone,
    /// Blocks with data of a track and of a cylinder.
    track_blocks: u64,
    cylinder_blocks: u64,
    /// Offset between the starts of successive cylinders, in blocks.
    step: u64,
    /// Time of a block in 2^-20 picoseconds.
    block_q20: u64,
}

/// Layout of a disk.
#[derive(Clone, PartialEq, Debug)]
pub struct Geometry {
    areas: Vec<Area>,
    surfaces: u32,
    mapping: Mapping,
    revolution_ps: u64,
    blocks: u64,
    cylinders: u32,
}

impl Geometry {
    /// Computes the layout.
    ///
    /// # Errors
    /// If a number is out of its range, a zone is empty or out of order, or the zones hold too few
    /// blocks.
    pub fn new(config: &DiskConfig) -> Result<Geometry, ConfigError> {
        let disk = || config.name.clone().into_owned();
        check::check(config)?;
        let revolution_ps = (60e12 / config.rpm).round() as u64;
        let mut areas: Vec<Area> = Vec::with_capacity(config.zones.len());
        let (mut next_lbn, mut next_cylinder) = (0, 0);
        for (index, zone) in config.zones.iter().enumerate() {
            let error = ConfigError::Zone { disk: disk(), zone: index };
            if zone.first_cylinder < next_cylinder || zone.last_cylinder < zone.first_cylinder {
                return Err(error);
            }
            let held = zone.data_blocks(config.surfaces).ok_or(error)?;
            let step = u64::from(zone.cylinder_skew) + u64::from(config.surfaces - 1) * u64::from(zone.track_skew);
            // Rounded up, so that the whole track takes one revolution.
            let block_q20 = (revolution_ps << FRACTION).div_ceil(u64::from(zone.blocks_per_track));
            areas.push(Area {
                first_lbn: next_lbn,
                end_lbn: next_lbn + held,
                zone: *zone,
                track_blocks: u64::from(zone.track_blocks()),
                cylinder_blocks: zone.cylinder_blocks(config.surfaces),
                step,
                block_q20,
            });
            (next_lbn, next_cylinder) = (next_lbn + held, zone.last_cylinder + 1);
        }
        if areas.is_empty() {
            return Err(ConfigError::Zone { disk: disk(), zone: 0 });
        }
        if config.blocks > next_lbn {
            return Err(ConfigError::Capacity { disk: disk(), blocks: config.blocks, held: next_lbn });
        }
        Ok(Geometry {
            areas,
            surfaces: config.surfaces,
            mapping: config.mapping,
            revolution_ps,
            blocks: if config.blocks == 0 { next_lbn } else { config.blocks },
            cylinders: next_cylinder,
        })
    }

    /// Addressable blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Cylinders, with those between zones.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Time of one revolution.
    pub fn revolution_ps(&self) -> u64 {
        self.revolution_ps
    }

    /// Returns the place of a block. Addresses beyond the last block yield the last one.
    pub fn place(&self, lbn: u64) -> Place {
        let lbn = lbn.min(self.blocks - 1);
        let area = self.area(lbn);
        let zone = &area.zone;
        let per_track = u64::from(zone.blocks_per_track);
        let index = lbn - area.first_lbn + zone.empty_blocks;
        let (number, in_cylinder) = (index / area.cylinder_blocks, index % area.cylinder_blocks);
        let (order, block) = (in_cylinder / area.track_blocks, in_cylinder % area.track_blocks);
        let left_on_track = (area.track_blocks - block).min(area.cylinder_blocks - in_cylinder);
        let slot = block + u64::from(zone.first_block_offset) + number * area.step + order * u64::from(zone.track_skew);
        let cylinder = zone.first_cylinder + number as u32;
        let head = match self.mapping {
            Mapping::Serpentine if cylinder % 2 == 1 => self.surfaces - 1 - order as u32,
            Mapping::Normal | Mapping::Serpentine => order as u32,
        };
        Place {
            cylinder,
            head,
            angle_ps: (slot % per_track * area.block_q20) >> FRACTION,
            left_on_track: left_on_track.min(area.end_lbn - lbn) as u32,
            blocks_per_track: zone.blocks_per_track,
            block_q20: area.block_q20,
        }
    }

    /// Returns the address behind the last block of the cylinder that holds `lbn`.
    pub fn cylinder_end(&self, lbn: u64) -> u64 {
        let lbn = lbn.min(self.blocks - 1);
        let area = self.area(lbn);
        let per_cylinder = area.cylinder_blocks;
        let index = lbn - area.first_lbn + area.zone.empty_blocks;
        let end = (index / per_cylinder + 1) * per_cylinder;
        (area.first_lbn + end - area.zone.empty_blocks).min(area.end_lbn).min(self.blocks)
    }

    /// Returns the address behind the last block of the track that holds `lbn`.
    pub fn track_end(&self, lbn: u64) -> u64 {
        (lbn + u64::from(self.place(lbn).left_on_track)).min(self.blocks)
    }

    fn area(&self, lbn: u64) -> &Area {
        // Few zones: a linear search from the front is short, and needs no second table.
        let index = self.areas.partition_point(|area| area.end_lbn <= lbn);
        &self.areas[index.min(self.areas.len() - 1)]
    }
}
