//! The disks of one target, whatever carries their commands: [`Disks`].

use sanloom_core::disk::{
    Access, AccessInput, AccessOutput, AccessProbe, Command, Counters, Disk, DiskConfig, Done, Error, ErrorKind, Input,
    Output, Properties, Reply, Request, Scan, ScanInput, ScanOutput,
};
use sanloom_core::time::Instant;
use sanloom_wire::lun::{self, LunBytes};
use std::collections::{BTreeMap, VecDeque};

/// What a target lists beyond so many units is not looked at.
const MAX_UNITS: usize = 16_384;

/// Whose command it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Scan,
    Disk(LunBytes),
    Access(LunBytes),
}

/// What the disks want, and what they tell.
#[derive(Debug)]
pub(super) enum Want {
    /// Carry out a command, then [`Disks::ended`].
    Command(Who, Command),
    /// LOGICAL UNIT RESET, then [`Disks::reset_done`].
    Reset(LunBytes),
    /// Give up the path, and find a new one.
    DropPath,
    /// A disk has come, changed, or gone.
    Changed,
    /// How a unit is reached.
    Told(LunBytes, Access),
    /// A unit is not there any more.
    Forget(LunBytes),
    /// Portals may serve otherwise than before, or another one should be used.
    AccessChanged,
    /// A request ended.
    Done { tag: u64, result: Result<Done, Error> },
}

#[derive(Debug)]
struct Unit {
    disk: Disk,
    access: AccessProbe,
    number: u64,
    /// It stood in the last list of the target.
    listed: bool,
    /// It has said that it is none that can be used: a target's controller may have a number too.
    useless: bool,
}

/// All disks of a target.
#[derive(Debug)]
pub(super) struct Disks {
    config: DiskConfig,
    scan: Scan,
    units: BTreeMap<LunBytes, Unit>,
    /// Where a disk is, by its number.
    places: Vec<LunBytes>,
    up: bool,
    /// There are several paths: which is the best one?
    choice: bool,
    wants: VecDeque<Want>,
}

impl Unit {
    /// The path came or went.
    fn access(&mut self, now: Instant, up: bool, choice: bool) {
        self.access.handle(now, if up { AccessInput::PathUp } else { AccessInput::PathDown });
        if up && choice {
            self.access.handle(now, AccessInput::Ask);
        }
    }
}

impl Disks {
    /// Without a `choice` of paths nobody is asked how they serve before it is known that there is something to know.
    pub(super) fn new(config: DiskConfig, choice: bool) -> Disks {
        let (units, places, wants) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Disks { config, scan: Scan::new(), units, places, up: false, choice, wants }
    }

    pub(super) fn next_want(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    pub(super) fn has_wants(&self) -> bool {
        !self.wants.is_empty()
    }

    /// Asks how all units are reached.
    pub(super) fn ask(&mut self, now: Instant) {
        self.units.values_mut().for_each(|unit| unit.access.handle(now, AccessInput::Ask));
        self.drain(now);
    }

    /// A group of a unit shall be active/optimized.
    pub(super) fn set_group(&mut self, now: Instant, lun: LunBytes, group: u16) {
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.access.handle(now, AccessInput::Set(group));
        }
        self.drain(now);
    }

    /// There is a session, or none any more.
    pub(super) fn path(&mut self, now: Instant, up: bool) {
        if std::mem::replace(&mut self.up, up) == up {
            return;
        }
        self.scan.handle(now, if up { ScanInput::PathUp } else { ScanInput::PathDown });
        for unit in self.units.values_mut() {
            // Whoever is not listed here may be so through another portal.
            unit.access(now, up, self.choice);
        }
        for unit in self.units.values_mut().filter(|unit| unit.listed || !up) {
            unit.disk.handle(now, if up { Input::PathUp } else { Input::PathDown });
        }
        self.wants.push_back(Want::Changed);
        self.drain(now);
    }

    /// There will be a disk at this LUN, and only one of this name will do; its number. What the target has listed there already is as
    /// it was, whatever its name: whoever asks is told that there is something to look at.
    pub(super) fn expect(&mut self, now: Instant, lun: LunBytes, name: Option<&str>) -> u64 {
        if let Some(unit) = self.units.get(&lun) {
            self.wants.push_back(Want::Changed);
            return unit.number;
        }
        let mut disk = Disk::new(now, self.config);
        if let Some(name) = name {
            disk = disk.named(name);
        }
        self.add(lun, disk, false)
    }

    fn add(&mut self, lun: LunBytes, disk: Disk, listed: bool) -> u64 {
        let number = self.places.len() as u64;
        let access = AccessProbe::new();
        self.units.insert(lun, Unit { disk, access, number, listed, useless: false });
        self.places.push(lun);
        number
    }

    /// Why the requests of a disk fail at once, by its number.
    pub(super) fn unusable(&self, disk: u64) -> Option<Error> {
        self.units.get(self.places.get(disk as usize)?)?.disk.unusable()
    }

    /// What was counted of a disk, by its number.
    pub(super) fn counters(&self, disk: u64) -> Counters {
        let unit = self.places.get(disk as usize).and_then(|lun| self.units.get(lun));
        unit.map(|unit| *unit.disk.counters()).unwrap_or_default()
    }

    pub(super) fn submit(&mut self, now: Instant, disk: u64, request: Request) {
        if let Some(lun) = self.places.get(disk as usize).copied() {
            self.tell(now, lun, Input::Submit(request));
        }
        self.drain(now);
    }

    pub(super) fn ended(&mut self, now: Instant, who: Who, reply: Reply) {
        match who {
            Who::Scan => self.scan.handle(now, ScanInput::Reply(reply)),
            Who::Disk(lun) => self.tell(now, lun, Input::Reply(reply)),
            Who::Access(lun) => {
                if let Some(unit) = self.units.get_mut(&lun) {
                    unit.access.handle(now, AccessInput::Reply(reply));
                }
            }
        }
        self.drain(now);
    }

    pub(super) fn reset_done(&mut self, now: Instant, lun: LunBytes, success: bool) {
        self.tell(now, lun, Input::ResetDone { success });
        self.drain(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.units.values().fold(self.scan.poll_timeout(), |first, unit| {
            Instant::earliest(&[first, unit.disk.poll_timeout(), unit.access.poll_timeout()])
        })
    }

    pub(super) fn timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.scan.poll_timeout()) {
            self.scan.handle(now, ScanInput::Timeout);
        }
        for unit in self.units.values_mut().filter(|unit| due(unit.disk.poll_timeout())) {
            unit.disk.handle(now, Input::Timeout);
        }
        for unit in self.units.values_mut().filter(|unit| due(unit.access.poll_timeout())) {
            unit.access.handle(now, AccessInput::Timeout);
        }
        self.drain(now);
    }

    /// The disks that the target lists, without what is no disk: number, LUN, what they are, and whether they can be used.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, LunBytes, Option<&Properties>, bool)> {
        let listed = self.units.iter().filter(|(_, unit)| unit.listed && !unit.useless);
        listed.map(|(lun, unit)| (unit.number, *lun, unit.disk.properties(), unit.disk.is_ready()))
    }

    fn tell(&mut self, now: Instant, lun: LunBytes, input: Input) {
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.disk.handle(now, input);
        }
    }

    /// Takes what the machines say.
    fn drain(&mut self, now: Instant) {
        loop {
            let mut silent = true;
            while let Some(output) = self.scan.poll_output() {
                silent = false;
                match output {
                    ScanOutput::Command(command) => self.wants.push_back(Want::Command(Who::Scan, command)),
                    ScanOutput::Units(units) => self.list(now, &units),
                }
            }
            let mut rescan = false;
            for (&lun, unit) in &mut self.units {
                while let Some(output) = unit.access.poll_output() {
                    silent = false;
                    self.wants.push_back(match output {
                        AccessOutput::Command(command) => Want::Command(Who::Access(lun), command),
                        AccessOutput::Told(access) => Want::Told(lun, access),
                    });
                }
                while let Some(output) = unit.disk.poll_output() {
                    silent = false;
                    self.wants.push_back(match output {
                        Output::Command(command) => Want::Command(Who::Disk(lun), command),
                        Output::ResetUnit => Want::Reset(lun),
                        Output::DropPath => Want::DropPath,
                        Output::Done { tag, result } => Want::Done { tag, result },
                        Output::Ready(found) => {
                            tracing::info!(lun = lun::to_u64(lun) >> 48, blocks = found.blocks, "disk ready");
                            unit.useless = false;
                            if found.has_port_groups && !self.choice {
                                unit.access.handle(now, AccessInput::Ask);
                            }
                            Want::Changed
                        }
                        Output::Unusable(error) => {
                            tracing::warn!(lun = lun::to_u64(lun) >> 48, %error, "disk unusable");
                            unit.useless = error.kind == ErrorKind::NotADisk;
                            Want::Changed
                        }
                        Output::AccessChanged => Want::AccessChanged,
                        Output::UnitsChanged => {
                            rescan = true;
                            continue;
                        }
                    });
                }
            }
            if rescan {
                self.scan.handle(now, ScanInput::Rescan);
            }
            if silent && !rescan {
                return;
            }
        }
    }

    /// The target has listed its units.
    fn list(&mut self, now: Instant, listed: &[LunBytes]) {
        for (lun, unit) in &mut self.units {
            let here = listed.contains(lun);
            if self.up && std::mem::replace(&mut unit.listed, here) != here {
                unit.disk.handle(now, if here { Input::PathUp } else { Input::PathDown });
                if !here {
                    self.wants.push_back(Want::Forget(*lun));
                }
            }
        }
        for &lun in listed {
            if !self.units.contains_key(&lun) && self.units.len() < MAX_UNITS {
                let mut disk = Disk::new(now, self.config);
                disk.handle(now, Input::PathUp);
                self.add(lun, disk, true);
                if let Some(unit) = self.units.get_mut(&lun) {
                    unit.access(now, true, self.choice);
                }
            }
        }
        self.wants.push_back(Want::Changed);
    }
}
