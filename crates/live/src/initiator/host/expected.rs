//! Disks that the owner knows of before the target is reached: back ends of volumes, whose requests wait from the start.

use super::{Host, Remote, Target, Unit};
use sanloom_core::disk::{Counters, Disk, DiskConfig, Error, Properties};
use sanloom_core::time::Instant;
use sanloom_wire::Wwpn;
use sanloom_wire::lun::LunBytes;

/// A target port, as its host sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetSeen {
    /// The login with it, if there is one.
    pub remote: Option<Remote>,
    /// Logins that began.
    pub logins: u64,
    /// Logins that were lost.
    pub lost: u64,
}

impl Host {
    /// There will be a disk at this LUN of a target port: requests for it may come before the target is reached, and wait until it is
    /// known to be the one with this name. Its number. Once for each LUN, before the host has a link.
    pub fn expect(&mut self, now: Instant, target: Wwpn, lun: LunBytes, config: DiskConfig, name: Option<&str>) -> u64 {
        let disk = Disk::new(now, config);
        let disk = match name {
            Some(name) => disk.named(name),
            None => disk,
        };
        let number = self.places.len() as u64;
        self.places.push((target, lun));
        let entry = self.targets.entry(target).or_insert_with(Target::new);
        entry.units.insert(lun, Unit { disk, number, listed: false, useless: false });
        number
    }

    /// A target port that was seen, or that is expected.
    pub fn target(&self, target: Wwpn) -> Option<TargetSeen> {
        let Target { remote, logins: [logins, lost], .. } = *self.targets.get(&target)?;
        Some(TargetSeen { remote, logins, lost })
    }

    /// The target lists a disk, by its number.
    pub fn lists(&self, disk: u64) -> bool {
        self.unit(disk).is_some_and(|unit| unit.listed && !unit.useless)
    }

    /// What a disk is that the target lists and that can be used now, by its number.
    pub fn ready(&self, disk: u64) -> Option<&Properties> {
        let unit = self.unit(disk).filter(|unit| unit.listed && !unit.useless && unit.disk.is_ready())?;
        unit.disk.properties()
    }

    /// Why the requests of a disk fail at once, by its number.
    pub fn unusable(&self, disk: u64) -> Option<Error> {
        self.unit(disk)?.disk.unusable()
    }

    /// What was counted of a disk, by its number.
    pub fn disk_counters(&self, disk: u64) -> Counters {
        self.unit(disk).map(|unit| *unit.disk.counters()).unwrap_or_default()
    }

    /// The owner has something to hear.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn unit(&self, disk: u64) -> Option<&Unit> {
        let (target, lun) = self.places.get(usize::try_from(disk).ok()?)?;
        self.targets.get(target)?.units.get(lun)
    }
}
