//! The disks of one target, independent of the carrier of commands: [`Disks`].

use sanloom_scsi::disk::{
    Access, AccessInput, AccessOutput, AccessProbe, Command, Counters, Disk, DiskConfig, Done, Error, ErrorKind, Input,
    Output, Properties, Reply, Request, Scan, ScanInput, ScanOutput,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::lun::{self, LunBytes};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of units; further ones that a target lists are ignored.
const MAX_UNITS: usize = 16_384;

/// Issuer of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Scan,
    Disk(LunBytes),
    Access(LunBytes),
}

/// Outputs: requests to the carrier, and events.
#[derive(Debug)]
pub(super) enum DisksOutput {
    /// Carry out a command, then [`Disks::ended`].
    Command(Owner, Command),
    /// LOGICAL UNIT RESET, then [`Disks::reset_done`].
    Reset(LunBytes),
    /// Drop the path and find a new one.
    DropPath,
    /// A disk was added, changed or removed.
    Changed,
    /// Access states of a unit.
    Access(LunBytes, Access),
    /// A unit was removed.
    Forget(LunBytes),
    /// Access states of portals may have changed, or another portal should be used.
    AccessChanged,
    /// A request ended.
    Done { tag: u64, result: Result<Done, Error> },
}

#[derive(Debug)]
struct Unit {
    disk: Disk,
    access: AccessProbe,
    number: u64,
    /// The last list of the target has the unit.
    listed: bool,
    /// The unit has reported that it is not a usable disk; the controller of a target may have a
    /// LUN, too.
    useless: bool,
}

/// All disks of a target.
#[derive(Debug)]
pub(super) struct Disks {
    config: DiskConfig,
    scan: Scan,
    units: BTreeMap<LunBytes, Unit>,
    /// LUN of each disk, by its number.
    luns: Vec<LunBytes>,
    up: bool,
    /// There are several paths to choose from.
    choice: bool,
    outputs: VecDeque<DisksOutput>,
}

impl Unit {
    /// Starts or stops the access probe when the path comes or goes.
    fn access(&mut self, now: Instant, up: bool, choice: bool) {
        self.access.handle(now, if up { AccessInput::PathUp } else { AccessInput::PathDown });
        if up && choice {
            self.access.handle(now, AccessInput::Probe);
        }
    }
}

impl Disks {
    /// Without a `choice` of paths, access states are queried only after a unit has reported that
    /// it has some.
    pub(super) fn new(config: DiskConfig, choice: bool) -> Disks {
        let (units, luns, outputs) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Disks { config, scan: Scan::new(), units, luns, up: false, choice, outputs }
    }

    pub(super) fn poll_output(&mut self) -> Option<DisksOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Queries the access states of all units.
    pub(super) fn ask(&mut self, now: Instant) {
        self.units.values_mut().for_each(|unit| unit.access.handle(now, AccessInput::Probe));
        self.drain(now);
    }

    /// Requests the state active/optimized for a target port group of a unit.
    pub(super) fn set_group(&mut self, now: Instant, lun: LunBytes, group: u16) {
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.access.handle(now, AccessInput::Set(group));
        }
        self.drain(now);
    }

    /// Reports that a session begins or ends.
    pub(super) fn path(&mut self, now: Instant, up: bool) {
        if std::mem::replace(&mut self.up, up) == up {
            return;
        }
        self.scan.handle(now, if up { ScanInput::PathUp } else { ScanInput::PathDown });
        for unit in self.units.values_mut() {
            // A unit that this portal does not list may be listed by another one.
            unit.access(now, up, self.choice);
        }
        for unit in self.units.values_mut().filter(|unit| unit.listed || !up) {
            unit.disk.handle(now, if up { Input::PathUp } else { Input::PathDown });
        }
        self.outputs.push_back(DisksOutput::Changed);
        self.drain(now);
    }

    /// Adds a disk at this LUN, which is used only if its identity is `name`. Returns its number.
    /// If the target has listed the unit already, it stays as it is, and a change is reported.
    pub(super) fn expect(&mut self, now: Instant, lun: LunBytes, name: Option<&str>) -> u64 {
        if let Some(unit) = self.units.get(&lun) {
            self.outputs.push_back(DisksOutput::Changed);
            return unit.number;
        }
        let mut disk = Disk::new(now, self.config);
        if let Some(name) = name {
            disk = disk.named(name);
        }
        self.add(lun, disk, false)
    }

    fn add(&mut self, lun: LunBytes, disk: Disk, listed: bool) -> u64 {
        let number = self.luns.len() as u64;
        let access = AccessProbe::new();
        self.units.insert(lun, Unit { disk, access, number, listed, useless: false });
        self.luns.push(lun);
        number
    }

    /// Returns why the requests of a disk fail at once.
    pub(super) fn unusable(&self, disk: u64) -> Option<Error> {
        self.units.get(self.luns.get(disk as usize)?)?.disk.unusable()
    }

    /// Counters of a disk.
    pub(super) fn counters(&self, disk: u64) -> Counters {
        let unit = self.luns.get(disk as usize).and_then(|lun| self.units.get(lun));
        unit.map(|unit| *unit.disk.counters()).unwrap_or_default()
    }

    pub(super) fn submit(&mut self, now: Instant, disk: u64, request: Request) {
        if let Some(lun) = self.luns.get(disk as usize).copied() {
            self.disk_input(now, lun, Input::Submit(request));
        }
        self.drain(now);
    }

    pub(super) fn ended(&mut self, now: Instant, owner: Owner, reply: Reply) {
        match owner {
            Owner::Scan => self.scan.handle(now, ScanInput::Reply(reply)),
            Owner::Disk(lun) => self.disk_input(now, lun, Input::Reply(reply)),
            Owner::Access(lun) => {
                if let Some(unit) = self.units.get_mut(&lun) {
                    unit.access.handle(now, AccessInput::Reply(reply));
                }
            }
        }
        self.drain(now);
    }

    pub(super) fn reset_done(&mut self, now: Instant, lun: LunBytes, success: bool) {
        self.disk_input(now, lun, Input::ResetDone { success });
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

    /// The disks that the target lists: number, LUN, properties, and whether they can be used.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, LunBytes, Option<&Properties>, bool)> {
        let listed = self.units.iter().filter(|(_, unit)| unit.listed && !unit.useless);
        listed.map(|(lun, unit)| (unit.number, *lun, unit.disk.properties(), unit.disk.is_ready()))
    }

    fn disk_input(&mut self, now: Instant, lun: LunBytes, input: Input) {
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.disk.handle(now, input);
        }
    }

    /// Applies the outputs of the machines.
    fn drain(&mut self, now: Instant) {
        loop {
            let mut silent = true;
            while let Some(output) = self.scan.poll_output() {
                silent = false;
                match output {
                    ScanOutput::Command(command) => self.outputs.push_back(DisksOutput::Command(Owner::Scan, command)),
                    ScanOutput::Units(units) => self.list(now, &units),
                }
            }
            let mut rescan = false;
            for (&lun, unit) in &mut self.units {
                while let Some(output) = unit.access.poll_output() {
                    silent = false;
                    self.outputs.push_back(match output {
                        AccessOutput::Command(command) => DisksOutput::Command(Owner::Access(lun), command),
                        AccessOutput::Probed(access) => DisksOutput::Access(lun, access),
                    });
                }
                while let Some(output) = unit.disk.poll_output() {
                    silent = false;
                    self.outputs.push_back(match output {
                        Output::Command(command) => DisksOutput::Command(Owner::Disk(lun), command),
                        Output::ResetUnit => DisksOutput::Reset(lun),
                        Output::DropPath => DisksOutput::DropPath,
                        Output::Done { tag, result } => DisksOutput::Done { tag, result },
                        Output::Ready(found) => {
                            tracing::info!(lun = lun::to_u64(lun) >> 48, blocks = found.blocks, "disk ready");
                            unit.useless = false;
                            if found.has_port_groups && !self.choice {
                                unit.access.handle(now, AccessInput::Probe);
                            }
                            DisksOutput::Changed
                        }
                        Output::Unusable(error) => {
                            tracing::warn!(lun = lun::to_u64(lun) >> 48, %error, "disk cannot be used");
                            unit.useless = error.kind == ErrorKind::NotADisk;
                            DisksOutput::Changed
                        }
                        Output::AccessChanged => DisksOutput::AccessChanged,
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

    /// Applies the list of units that the target has reported.
    fn list(&mut self, now: Instant, listed: &[LunBytes]) {
        for (lun, unit) in &mut self.units {
            let here = listed.contains(lun);
            if self.up && std::mem::replace(&mut unit.listed, here) != here {
                unit.disk.handle(now, if here { Input::PathUp } else { Input::PathDown });
                if !here {
                    self.outputs.push_back(DisksOutput::Forget(*lun));
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
        self.outputs.push_back(DisksOutput::Changed);
    }
}
