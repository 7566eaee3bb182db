//! The device: nexuses, units, and a command's way to them.

use super::attention::Attentions;
use super::config::{DeviceConfig, LunMap, Masking, UnitConfig};
use super::groups::Groups;
use super::io::{BlockIo, IoOp};
use super::nexus::{NexusId, Nexuses, mapped};
use super::opcodes;
use super::persistent::Waiting;
use super::reservation::Reservations;
use super::step::{Attribute, Command, Ends, Managed, Output, Response, Step, TaskId, TaskManagement};
use super::tasks::Pending;
use super::unit::{Mode, Unit};
use sanloom_wire::ParseError;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::SenseCode;
use std::collections::{BTreeMap, VecDeque};

/// A target device. See [`super`] for how a transport uses it.
#[derive(Debug)]
pub struct Device {
    pub(super) config: DeviceConfig,
    pub(super) units: Vec<Unit>,
    pub(super) nexuses: Nexuses,
    pub(super) groups: Groups,
    pub(super) attentions: Attentions,
    /// What the next step of a task needs to know.
    pub(super) pending: BTreeMap<TaskId, Pending>,
    /// Tasks whose end waits for a record.
    pub(super) waiting: BTreeMap<u64, Waiting>,
    pub(super) next_seq: u64,
    pub(super) outputs: VecDeque<Output>,
    /// Nothing unusual is in force anywhere: READ and WRITE need no look at reservations, unit attentions and order.
    pub(super) quiet: bool,
}

impl Device {
    /// A device that has just been switched on.
    pub fn new(mut config: DeviceConfig) -> Device {
        let units = std::mem::take(&mut config.units);
        let units = units.into_iter().zip(0..).map(|(unit, number)| Unit::new(number, unit)).collect();
        let mut device = Device {
            groups: Groups::new(config.ports.iter().map(|port| port.group)),
            config,
            units,
            nexuses: Nexuses::default(),
            attentions: BTreeMap::new(),
            pending: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next_seq: 0,
            outputs: VecDeque::new(),
            quiet: true,
        };
        device.settle();
        device
    }

    /// Takes the persistent reservations of a unit from the last record that [`Output::Persist`] gave. To be called before
    /// the first command.
    pub fn restore(&mut self, unit: u16, record: &[u8]) -> Result<(), ParseError> {
        let reservations = Reservations::restore(record)?;
        if let Some(unit) = self.units.get_mut(usize::from(unit)) {
            unit.reservations = reservations;
        }
        self.settle();
        Ok(())
    }

    /// An initiator port is logged in to port `port`.
    pub fn connect(&mut self, port: u16, initiator: TransportId) -> NexusId {
        let nexus = self.nexuses.connect(port, initiator, &self.config.masking);
        if self.config.attentions {
            self.attend_new(nexus);
        }
        nexus
    }

    /// A nexus is lost. Its tasks were given up by [`abandon`](Self::abandon).
    pub fn disconnect(&mut self, nexus: NexusId) {
        if !self.nexuses.disconnect(nexus) {
            return;
        }
        self.attentions.retain(|&(_, of), _| of != nexus);
        for unit in self.units.iter_mut().filter(|unit| unit.reserved == Some(nexus)) {
            unit.reserved = None;
        }
        self.settle();
    }

    /// The initiator port of a nexus.
    pub fn initiator(&self, nexus: NexusId) -> Option<&TransportId> {
        self.nexuses.get(nexus).map(|nexus| &nexus.initiator)
    }

    /// The unit that a nexus means by LUN bytes, if it sees one there.
    #[inline]
    pub fn unit(&self, nexus: NexusId, bytes: LunBytes) -> Option<u16> {
        let unit = match self.listed(nexus) {
            None => lun::from_bytes(bytes),
            Some(luns) => mapped(luns, bytes),
        };
        unit.filter(|&unit| self.has(unit))
    }

    /// What a nexus sees; `None`: all.
    #[inline]
    fn listed(&self, nexus: NexusId) -> Option<&[LunMap]> {
        match self.config.masking {
            Masking::Open => None,
            Masking::Listed(_) => self.nexuses.luns(nexus),
        }
    }

    /// There is such a unit.
    #[inline]
    fn has(&self, unit: u16) -> bool {
        self.units.get(usize::from(unit)).is_some_and(|unit| !unit.removed)
    }

    /// Shape of a unit as it is now.
    pub fn unit_config(&self, unit: u16) -> Option<&UnitConfig> {
        self.units.get(usize::from(unit)).filter(|unit| !unit.removed).map(|unit| &unit.config)
    }

    /// LUN numbers that a nexus sees, in ascending order.
    pub(super) fn luns(&self, nexus: NexusId) -> Vec<LunBytes> {
        let numbers: Vec<u16> = match self.listed(nexus) {
            None => (0..=lun::MAX_LUN).take(self.units.len()).filter(|&unit| self.has(unit)).collect(),
            Some(luns) => luns.iter().filter(|map| self.has(map.unit)).map(|map| map.lun).collect(),
        };
        numbers.into_iter().filter_map(lun::to_bytes).collect()
    }

    pub(super) fn sees(&self, nexus: NexusId, unit: u16) -> bool {
        self.has(unit) && self.listed(nexus).is_none_or(|luns| luns.iter().any(|map| map.unit == unit))
    }

    /// A command has come.
    #[inline]
    pub fn begin(&mut self, command: &Command) -> Step {
        let cdb = Cdb::parse(&command.cdb);
        if self.quiet
            && command.attribute == Attribute::Simple
            && let Some(unit) = command.unit.and_then(|unit| self.units.get_mut(usize::from(unit)))
        {
            let (op, lba, blocks, fua) = match cdb {
                Cdb::Read { lba, blocks, fua } => (IoOp::Read, lba, blocks, fua),
                Cdb::Write { lba, blocks, fua } => (IoOp::Write, lba, blocks, fua),
                _ => return self.enter(command, cdb),
            };
            let step = unit.transfer(op, lba, blocks, fua);
            if matches!(step, Step::Io(_)) {
                unit.active += 1;
                return step;
            }
        }
        self.enter(command, cdb)
    }

    /// What a READ or WRITE would do if it came now. `None` if anything is in its way or has to be told first: then
    /// [`begin`](Self::begin) says what. For a transport that wants to know before it takes the command.
    pub fn would_transfer(&self, command: &Command) -> Option<BlockIo> {
        let number = command.unit?;
        let unit = self.units.get(usize::from(number)).filter(|_| command.attribute == Attribute::Simple)?;
        let cdb = Cdb::parse(&command.cdb);
        let (op, lba, blocks, fua) = match cdb {
            Cdb::Read { lba, blocks, fua } => (IoOp::Read, lba, blocks, fua),
            Cdb::Write { lba, blocks, fua } => (IoOp::Write, lba, blocks, fua),
            _ => return None,
        };
        let obstacle = self.attentions.contains_key(&(number, command.nexus))
            || opcodes::wants_aca(&command.cdb).is_some()
            || unit.ordered.is_some()
            || !unit.blocked.is_empty()
            || unit.stopped
            || unit.mode.descriptor_sense
            || self.port_refusal(command.nexus, &cdb).is_some()
            || (op == IoOp::Write && unit.protection().is_some())
            || self.reservation_conflict(number, command.nexus, &cdb);
        match unit.transfer(op, lba, blocks, fua) {
            Step::Io(io) if !obstacle => Some(io),
            _ => None,
        }
    }

    /// A task management function.
    pub fn manage(&mut self, nexus: NexusId, unit: Option<u16>, function: TaskManagement) -> Managed {
        let ends = match (function, unit) {
            (TaskManagement::TargetReset, _) => {
                for unit in 0..self.units.len() as u16 {
                    self.reset(unit);
                }
                Ends { unit: None, nexus: None, by: nexus }
            }
            (_, None) => return Managed::IncorrectLun,
            (TaskManagement::AbortTaskSet, unit) => Ends { unit, nexus: Some(nexus), by: nexus },
            (TaskManagement::ClearTaskSet, unit) => Ends { unit, nexus: None, by: nexus },
            (TaskManagement::LunReset, Some(number)) => {
                self.reset(number);
                Ends { unit, nexus: None, by: nexus }
            }
            (TaskManagement::ClearAca, _) => return Managed::Complete(None),
        };
        let own = self.nexuses.get(nexus).map(|nexus| nexus.port);
        self.tell_ports(ends, own);
        Managed::Complete(Some(ends))
    }

    /// A unit as after power on; persistent reservations stay (SAM, logical unit reset).
    fn reset(&mut self, number: u16) {
        let unit = &mut self.units[usize::from(number)];
        unit.mode = Mode::default_of(&unit.config);
        unit.stopped = false;
        unit.reserved = None;
        self.settle();
        self.attend_all(number, None, SenseCode::LUN_RESET);
    }

    /// The next thing that the device does by itself.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The number of blocks of a unit has changed.
    pub fn resize(&mut self, number: u16, blocks: u64) {
        let Some(unit) = self.units.get_mut(usize::from(number)).filter(|unit| unit.config.blocks != blocks) else {
            return;
        };
        unit.config.blocks = blocks;
        self.attend_all(number, None, SenseCode::CAPACITY_CHANGED);
    }

    /// Another unit; its index. Who sees it is told.
    pub fn add_unit(&mut self, config: UnitConfig) -> u16 {
        let number = self.units.len() as u16;
        self.units.push(Unit::new(number, config));
        self.settle();
        self.attend_to_new(number);
        number
    }

    /// A unit with this number. False, and nothing is done, if there is one, or if tasks of one that was removed have not ended.
    /// Who sees it is told.
    pub fn put_unit(&mut self, number: u16, config: UnitConfig) -> bool {
        while self.units.len() <= usize::from(number) {
            let hole = self.units.len() as u16;
            self.units.push(Unit { removed: true, ..Unit::new(hole, config.clone()) });
        }
        let unit = &mut self.units[usize::from(number)];
        if !unit.removed || unit.active > 0 || !unit.blocked.is_empty() {
            return false;
        }
        *unit = Unit::new(number, config);
        self.settle();
        self.attend_to_new(number);
        true
    }

    /// Nobody sees a unit any more. Its tasks go on; initiators are told that their list has changed.
    pub fn remove_unit(&mut self, number: u16) {
        let Some(unit) = self.units.get_mut(usize::from(number)).filter(|unit| !unit.removed) else { return };
        unit.removed = true;
        unit.reserved = None;
        unit.reservations = Reservations::default();
        self.attentions.retain(|&(of, _), _| of != number);
        self.settle();
        self.attend_everywhere(None);
    }

    /// Masking has changed. Initiators that see other units than before are told; tasks that have begun go on.
    pub fn remask(&mut self, masking: Masking) {
        if masking == self.config.masking {
            return;
        }
        self.config.masking = masking;
        let changed = self.nexuses.remask(&self.config.masking);
        self.attend_everywhere(Some(&changed));
    }

    /// Tells those who see a new unit.
    fn attend_to_new(&mut self, unit: u16) {
        let see: Vec<NexusId> = self.nexuses.iter().map(|(id, _)| id).filter(|&id| self.sees(id, unit)).collect();
        self.attend_everywhere(Some(&see));
    }

    fn attend_everywhere(&mut self, only: Option<&[NexusId]>) {
        let all: Vec<NexusId> = match only {
            Some(nexuses) => nexuses.to_vec(),
            None => self.nexuses.iter().map(|(id, _)| id).collect(),
        };
        for nexus in all {
            for unit in 0..self.units.len() as u16 {
                if self.sees(nexus, unit) {
                    self.attend(unit, nexus, SenseCode::REPORTED_LUNS_CHANGED);
                }
            }
        }
    }

    /// Looks again whether anything unusual is in force.
    pub(super) fn settle(&mut self) {
        self.quiet = self.attentions.is_empty() && self.groups.all_active && self.units.iter().all(Unit::is_plain);
    }

    /// Tasks of a unit that have begun and are not over.
    pub fn active(&self, unit: u16) -> u32 {
        self.units.get(usize::from(unit)).map_or(0, |unit| unit.active)
    }

    /// Memory that grows with the nexuses, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.nexuses.bytes()
    }

    /// The response, with sense data in the format that the unit is set to.
    pub(super) fn worded(&self, unit: Option<u16>, step: Step) -> Step {
        let descriptor = unit.is_some_and(|unit| self.units[usize::from(unit)].mode.descriptor_sense);
        match step {
            Step::Done(Response { status, sense: Some(mut sense), data }) => {
                sense.descriptor = descriptor;
                Step::Done(Response { status, sense: Some(sense), data })
            }
            other => other,
        }
    }
}
