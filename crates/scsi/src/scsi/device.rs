//! Target device: nexuses, units, and the dispatch of commands to units.

use super::attention::Attentions;
use super::config::{DeviceConfig, InitiatorName, Masking, UnitConfig};
use super::groups::Groups;
use super::inquiry::Identity;
use super::io::{BlockIo, IoOp};
use super::nexus::{NexusId, Nexuses, mapped};
use super::notices::Notices;
use super::opcodes;
use super::persistent::Records;
use super::reservation::Reservations;
use super::step::{Attribute, Command, Ends, Managed, Output, Response, Step, TaskId, TaskManagement};
use super::tasks::Pending;
use super::unit::{Mode, Unit};
use sanloom_wire::ParseError;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::SenseCode;
use std::collections::{BTreeMap, BTreeSet};

/// Target device. [`super`] describes how a transport uses it. Each part owns its state; the device
/// passes the results of one to the next.
#[derive(Debug)]
pub struct Device {
    pub(super) identity: Identity,
    pub(super) units: Vec<Unit>,
    pub(super) nexuses: Nexuses,
    pub(super) groups: Groups,
    pub(super) attentions: Attentions,
    pub(super) records: Records,
    /// State for the next step of tasks that need several.
    pub(super) pending: BTreeMap<TaskId, Pending>,
    /// Ended tasks whose result was sent to the transport as a notice and is not confirmed.
    pub(super) unconfirmed: BTreeSet<TaskId>,
    pub(super) notices: Notices,
    /// True while nothing unusual is in force. READ and WRITE then skip the checks of reservations,
    /// unit attentions and order.
    pub(super) plain: bool,
    /// Block I/Os since they were taken, while they are logged.
    request_log: Option<RequestLog>,
}

/// Block I/Os that commands request.
#[derive(Debug)]
struct RequestLog {
    /// Initiators whose requests are logged; all if it is empty.
    initiators: BTreeSet<InitiatorName>,
    requests: Vec<BlockIo>,
}

impl Device {
    /// Creates a device in its state after power on.
    pub fn new(config: DeviceConfig) -> Device {
        let DeviceConfig { wwnn, ports, units, masking, attentions } = config;
        let mut device = Device {
            units: units.into_iter().zip(0..).map(|(unit, number)| Unit::new(number, unit)).collect(),
            nexuses: Nexuses::new(masking),
            groups: Groups::new(ports.iter().map(|port| port.group).collect()),
            attentions: Attentions::new(attentions),
            records: Records::default(),
            pending: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            notices: Notices::new(ports.len() as u16),
            identity: Identity { wwnn, ports },
            plain: true,
            request_log: None,
        };
        device.update_plain();
        device
    }

    /// Restores the persistent reservations of a unit from the last record of [`Output::Persist`].
    /// Call it before the first command.
    pub fn restore(&mut self, unit: u16, record: &[u8]) -> Result<(), ParseError> {
        let reservations = Reservations::restore(record)?;
        if let Some(unit) = self.units.get_mut(usize::from(unit)) {
            unit.reservations = reservations;
        }
        self.update_plain();
        Ok(())
    }

    /// Registers an initiator port that has logged in to port `port`.
    pub fn connect(&mut self, port: u16, initiator: TransportId) -> NexusId {
        let nexus = self.nexuses.connect(port, initiator);
        self.add_attention_of_all_units(&[nexus], SenseCode::POWER_ON_OR_RESET);
        nexus
    }

    /// Removes a nexus. Its tasks must have been ended by [`abandon`](Self::abandon).
    pub fn disconnect(&mut self, nexus: NexusId) {
        if !self.nexuses.disconnect(nexus) {
            return;
        }
        self.attentions.remove_nexus(nexus);
        self.unconfirmed.retain(|task| task.nexus != nexus);
        for unit in self.units.iter_mut().filter(|unit| unit.reserved == Some(nexus)) {
            unit.reserved = None;
        }
        self.update_plain();
    }

    /// Initiator port of a nexus.
    pub fn initiator(&self, nexus: NexusId) -> Option<&TransportId> {
        self.nexuses.get(nexus).map(|nexus| &nexus.initiator)
    }

    /// Returns the unit that a nexus addresses with these LUN bytes, if the unit is visible to it.
    #[inline]
    pub fn unit(&self, nexus: NexusId, bytes: LunBytes) -> Option<u16> {
        let unit = match self.nexuses.luns(nexus) {
            None => lun::from_bytes(bytes),
            Some(luns) => mapped(luns, bytes),
        };
        unit.filter(|&unit| self.has(unit))
    }

    /// Returns whether the unit exists and is not removed.
    #[inline]
    fn has(&self, unit: u16) -> bool {
        self.units.get(usize::from(unit)).is_some_and(|unit| !unit.removed)
    }

    /// Current shape of a unit.
    pub fn unit_config(&self, unit: u16) -> Option<&UnitConfig> {
        self.units.get(usize::from(unit)).filter(|unit| !unit.removed).map(|unit| &unit.config)
    }

    /// LUNs visible to a nexus, in ascending order.
    pub(super) fn luns(&self, nexus: NexusId) -> Vec<LunBytes> {
        let numbers: Vec<u16> = match self.nexuses.luns(nexus) {
            None => (0..=lun::MAX_LUN).take(self.units.len()).filter(|&unit| self.has(unit)).collect(),
            Some(luns) => luns.iter().filter(|map| self.has(map.unit)).map(|map| map.lun).collect(),
        };
        numbers.into_iter().filter_map(lun::to_bytes).collect()
    }

    pub(super) fn sees(&self, nexus: NexusId, unit: u16) -> bool {
        self.has(unit) && self.nexuses.luns(nexus).is_none_or(|luns| luns.iter().any(|map| map.unit == unit))
    }

    /// Starts a command that has arrived.
    #[inline]
    pub fn begin(&mut self, command: &Command) -> Step {
        let cdb = Cdb::parse(&command.cdb);
        if self.plain
            && command.attribute == Attribute::Simple
            && let Some(unit) = command.unit.and_then(|unit| self.units.get_mut(usize::from(unit)))
        {
            let (op, lba, blocks, fua) = match cdb {
                Cdb::Read { lba, blocks, fua } => (IoOp::Read, lba, blocks, fua),
                Cdb::Write { lba, blocks, fua } => (IoOp::Write, lba, blocks, fua),
                _ => return self.start_or_defer(command, cdb),
            };
            let step = unit.transfer(op, lba, blocks, fua);
            if matches!(step, Step::Io(_)) {
                unit.tasks.begin();
                return step;
            }
        }
        self.start_or_defer(command, cdb)
    }

    /// Returns the block I/O that a READ or WRITE would do now, without starting it. `None` means
    /// that the command is neither, or that [`begin`](Self::begin) would report a condition or
    /// defer it. Transports use the result before they accept the command.
    pub fn would_transfer(&self, command: &Command) -> Option<BlockIo> {
        let number = command.unit?;
        let unit = self.units.get(usize::from(number)).filter(|_| command.attribute == Attribute::Simple)?;
        let cdb = Cdb::parse(&command.cdb);
        let (op, lba, blocks, fua) = match cdb {
            Cdb::Read { lba, blocks, fua } => (IoOp::Read, lba, blocks, fua),
            Cdb::Write { lba, blocks, fua } => (IoOp::Write, lba, blocks, fua),
            _ => return None,
        };
        let obstacle = self.attentions.are_pending(number, command.nexus)
            || opcodes::aca_byte(&command.cdb).is_some()
            || !unit.tasks.is_unordered()
            || unit.stopped
            || unit.mode.descriptor_sense
            || self.groups.refusal(self.nexuses.port_of(command.nexus), &cdb).is_some()
            || (op == IoOp::Write && unit.protection().is_some())
            || unit.reservation_conflict(command.nexus, &cdb, || self.nexuses.party(command.nexus));
        match unit.transfer(op, lba, blocks, fua) {
            Step::Io(io) if !obstacle => Some(io),
            _ => None,
        }
    }

    /// Executes a task management function.
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
        let own = self.nexuses.port_of(nexus);
        let only = ends.nexus.and_then(|nexus| self.nexuses.port_of(nexus));
        self.notices.ends(ends, only, own);
        Managed::Complete(Some(ends))
    }

    /// Resets a unit to its state after power on. Persistent reservations are kept (SAM, logical
    /// unit reset).
    fn reset(&mut self, number: u16) {
        let unit = &mut self.units[usize::from(number)];
        unit.mode = Mode::default_of(&unit.config);
        unit.stopped = false;
        unit.reserved = None;
        self.update_plain();
        self.add_attention_for_all(number, None, SenseCode::LUN_RESET);
    }

    /// Returns the next output that does not belong to a call of the transport.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.notices.pop()
    }

    /// Changes the number of blocks of a unit.
    pub fn resize(&mut self, number: u16, blocks: u64) {
        let Some(unit) = self.units.get_mut(usize::from(number)).filter(|unit| unit.config.blocks != blocks) else {
            return;
        };
        unit.config.blocks = blocks;
        self.add_attention_for_all(number, None, SenseCode::CAPACITY_CHANGED);
    }

    /// Adds a unit and returns its index. Nexuses that see it get a unit attention.
    pub fn add_unit(&mut self, config: UnitConfig) -> u16 {
        let number = self.units.len() as u16;
        self.units.push(Unit::new(number, config));
        self.update_plain();
        self.on_new_unit(number);
        number
    }

    /// Adds a unit with this number; nexuses that see it get a unit attention. Returns false
    /// without a change if the number is in use, or if tasks of a removed unit with this number
    /// have not ended.
    pub fn put_unit(&mut self, number: u16, config: UnitConfig) -> bool {
        while self.units.len() <= usize::from(number) {
            let hole = self.units.len() as u16;
            self.units.push(Unit { removed: true, ..Unit::new(hole, config.clone()) });
        }
        let unit = &mut self.units[usize::from(number)];
        if !unit.removed || !unit.tasks.is_empty() {
            return false;
        }
        *unit = Unit::new(number, config);
        self.update_plain();
        self.on_new_unit(number);
        true
    }

    /// Hides a unit from all initiators. Its tasks continue; initiators get a unit attention
    /// because their list of LUNs has changed.
    pub fn remove_unit(&mut self, number: u16) {
        let Some(unit) = self.units.get_mut(usize::from(number)).filter(|unit| !unit.removed) else { return };
        unit.removed = true;
        unit.reserved = None;
        unit.reservations = Reservations::default();
        self.attentions.remove_unit(number);
        self.update_plain();
        let all: Vec<NexusId> = self.nexuses.ids().collect();
        self.add_attention_of_all_units(&all, SenseCode::REPORTED_LUNS_CHANGED);
    }

    /// Changes the masking. Initiators whose visible units change get a unit attention; tasks in
    /// progress continue.
    pub fn remask(&mut self, masking: Masking) {
        let changed = self.nexuses.remask(masking);
        self.add_attention_of_all_units(&changed, SenseCode::REPORTED_LUNS_CHANGED);
    }

    /// Records a unit attention for the nexuses that see a new unit.
    fn on_new_unit(&mut self, unit: u16) {
        let see: Vec<NexusId> = self.nexuses.ids().filter(|&id| self.sees(id, unit)).collect();
        self.add_attention_of_all_units(&see, SenseCode::REPORTED_LUNS_CHANGED);
    }

    /// Recomputes `plain`. The short path has no log.
    pub(super) fn update_plain(&mut self) {
        self.plain = self.request_log.is_none()
            && self.attentions.is_empty()
            && self.groups.are_all_active()
            && self.units.iter().all(Unit::is_plain);
    }

    /// Starts a log of the block I/Os that commands of these initiators request, or of all
    /// initiators if the set is empty. `None` ends the log.
    pub fn set_request_log(&mut self, initiators: Option<BTreeSet<InitiatorName>>) {
        self.request_log = initiators.map(|initiators| RequestLog { initiators, requests: Vec::new() });
        self.update_plain();
    }

    /// Takes the logged block I/Os, in the order of their begin. A command that waits for an
    /// earlier one begins later than it arrives.
    pub fn logged_requests(&mut self) -> impl Iterator<Item = BlockIo> + '_ {
        self.request_log.iter_mut().flat_map(|log| log.requests.drain(..))
    }

    pub(super) fn log(&mut self, nexus: NexusId, step: &Step) {
        let (Some(log), Step::Io(io)) = (&mut self.request_log, step) else { return };
        let is_selected = |nexus: &super::nexus::Nexus| log.initiators.contains(&InitiatorName::from(&nexus.initiator));
        if log.initiators.is_empty() || self.nexuses.get(nexus).is_some_and(is_selected) {
            log.requests.push(*io);
        }
    }

    /// Number of tasks of a unit that have begun and not ended.
    pub fn active(&self, unit: u16) -> u32 {
        self.units.get(usize::from(unit)).map_or(0, |unit| unit.tasks.active())
    }

    /// Memory that grows with the number of nexuses, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.nexuses.bytes()
    }

    /// Converts the sense data of a response to the format selected for the unit.
    pub(super) fn with_sense_format(&self, unit: Option<u16>, step: Step) -> Step {
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
