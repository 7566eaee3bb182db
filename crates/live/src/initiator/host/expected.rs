//! Disks of a host for their users. Disks of back ends of volumes are known before their target is
//! reached, and their requests are queued from the start.

use super::{DiskView, Host, Remote, Target, Unit};
use sanloom_scsi::disk::{Counters, Disk, DiskConfig, Error, Input, Properties};
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwpn;
use sanloom_wire::lun::LunBytes;

/// State of a target port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetSeen {
    /// Current login, if any.
    pub remote: Option<Remote>,
    /// Number of logins.
    pub logins: u64,
    /// Number of lost logins.
    pub lost: u64,
}

impl Host {
    /// Returns the disks that the targets list, without other device types, ordered by target and
    /// LUN.
    pub fn disks(&self) -> impl Iterator<Item = DiskView<'_>> {
        self.targets.iter().flat_map(|(&target, entry)| {
            let units = entry.units.iter().filter(|(_, unit)| unit.listed && !unit.useless);
            units.map(move |(&lun, Unit { disk, number, .. })| DiskView {
                number: *number,
                target,
                lun,
                properties: disk.properties(),
                ready: disk.is_ready(),
            })
        })
    }

    /// Announces a disk at this LUN of a target port and returns its number. Requests for it are
    /// queued until the target is reached and the disk's name is verified. Call once per LUN,
    /// before the host has a link.
    pub fn expect(&mut self, now: Instant, target: Wwpn, lun: LunBytes, config: DiskConfig, name: Option<&str>) -> u64 {
        let disk = Disk::new(now, config);
        let disk = match name {
            Some(name) => disk.named(name),
            None => disk,
        };
        let number = self.disk_addresses.len() as u64;
        self.disk_addresses.push((target, lun));
        let entry = self.targets.entry(target).or_insert_with(Target::new);
        entry.units.insert(lun, Unit { disk, number, listed: false, useless: false });
        number
    }

    /// Returns the state of a discovered or expected target port.
    pub fn target(&self, target: Wwpn) -> Option<TargetSeen> {
        let Target { remote, logins: [logins, lost], .. } = *self.targets.get(&target)?;
        Some(TargetSeen { remote, logins, lost })
    }

    /// Returns whether the target lists the disk with this number.
    pub fn lists(&self, disk: u64) -> bool {
        self.unit(disk).is_some_and(|unit| unit.listed && !unit.useless)
    }

    /// Returns the properties of a disk that is listed and usable now, by its number.
    pub fn ready(&self, disk: u64) -> Option<&Properties> {
        let unit = self.unit(disk).filter(|unit| unit.listed && !unit.useless && unit.disk.is_ready())?;
        unit.disk.properties()
    }

    /// Asks a disk for its size and state again.
    pub fn revalidate(&mut self, now: Instant, disk: u64) {
        if let Some((wwpn, lun)) = self.disk_addresses.get(disk as usize).copied() {
            self.disk_input(now, wwpn, lun, Input::Revalidate);
        }
        self.drain_machines(now);
    }

    /// Returns the reason why requests for a disk fail at once, by its number.
    pub fn unusable(&self, disk: u64) -> Option<Error> {
        self.unit(disk)?.disk.unusable()
    }

    /// Returns the counters of a disk, by its number.
    pub fn disk_counters(&self, disk: u64) -> Counters {
        self.unit(disk).map(|unit| *unit.disk.counters()).unwrap_or_default()
    }

    /// Returns whether an event is pending for the owner.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn unit(&self, disk: u64) -> Option<&Unit> {
        let (target, lun) = self.disk_addresses.get(usize::try_from(disk).ok()?)?;
        self.targets.get(target)?.units.get(lun)
    }
}
