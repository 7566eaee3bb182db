//! The device: nexuses, units, and a command's way through them.

use super::config::{DeviceConfig, Masking};
use super::io::{IoOp, IoStatus};
use super::nexus::{NexusId, Nexuses, mapped};
use super::step::{Attribute, Command, Ends, Managed, Output, Response, Step, TaskId, TaskManagement};
use super::unit::{Unit, illegal};
use sanloom_wire::cdb::{CDB_BYTES, Cdb, operation, status};
use sanloom_wire::lun::{self, LunBytes};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::VecDeque;

/// A target device. See [`super`] for how a transport uses it.
#[derive(Debug)]
pub struct Device {
    pub(super) config: DeviceConfig,
    pub(super) units: Vec<Unit>,
    pub(super) nexuses: Nexuses,
    pub(super) outputs: VecDeque<Output>,
    /// Nothing unusual is in force anywhere: READ and WRITE need no look at reservations, unit attentions and order.
    quiet: bool,
}

impl Device {
    /// A device that has just been switched on.
    pub fn new(mut config: DeviceConfig) -> Device {
        let units = std::mem::take(&mut config.units);
        let units = units.into_iter().zip(0..).map(|(unit, number)| Unit::new(number, unit)).collect();
        Device { config, units, nexuses: Nexuses::default(), outputs: VecDeque::new(), quiet: true }
    }

    /// An initiator port is logged in to port `port`.
    pub fn connect(&mut self, port: u16, initiator: TransportId) -> NexusId {
        self.nexuses.connect(port, initiator, &self.config.masking)
    }

    /// A nexus is lost. Its tasks were given up by [`abandon`](Self::abandon).
    pub fn disconnect(&mut self, nexus: NexusId) {
        self.nexuses.disconnect(nexus);
    }

    /// The initiator port of a nexus.
    pub fn initiator(&self, nexus: NexusId) -> Option<&TransportId> {
        self.nexuses.get(nexus).map(|nexus| &nexus.initiator)
    }

    /// The unit that a nexus means by LUN bytes, if it sees one there.
    #[inline]
    pub fn unit(&self, nexus: NexusId, bytes: LunBytes) -> Option<u16> {
        match self.config.masking {
            Masking::Open => lun::from_bytes(bytes).filter(|&number| usize::from(number) < self.units.len()),
            Masking::Listed(_) => mapped(self.nexuses.luns(nexus), bytes),
        }
    }

    /// A command has come.
    #[inline]
    pub fn begin(&mut self, command: &Command) -> Step {
        let step = self.decide(command);
        if let (Step::Io(_) | Step::Parameters { .. } | Step::Wait, Some(unit)) = (&step, command.unit) {
            self.units[usize::from(unit)].active += 1;
        }
        step
    }

    #[inline]
    fn decide(&mut self, command: &Command) -> Step {
        let cdb = Cdb::parse(&command.cdb);
        if self.quiet
            && command.attribute == Attribute::Simple
            && let Some(unit) = command.unit.and_then(|unit| self.units.get(usize::from(unit)))
        {
            match cdb {
                Cdb::Read { lba, blocks, fua } => return unit.transfer(IoOp::Read, lba, blocks, fua),
                Cdb::Write { lba, blocks, fua } => return unit.transfer(IoOp::Write, lba, blocks, fua),
                _ => {}
            }
        }
        self.perform(command, cdb)
    }

    /// Any command, with everything that may be in its way.
    fn perform(&mut self, command: &Command, cdb: Cdb) -> Step {
        let unit = command.unit.and_then(|number| self.units.get(usize::from(number)));
        match (cdb, unit) {
            (Cdb::Inquiry { vpd_page, allocation_len }, unit) => {
                self.inquiry(command.nexus, unit, vpd_page, allocation_len)
            }
            (Cdb::ReportLuns { allocation_len }, _) => self.report_luns(command.nexus, allocation_len),
            (Cdb::Other(cdb), unit) if cdb[0] == operation::REQUEST_SENSE => {
                // Nothing is kept: a sense goes out with the status of its command.
                let code = if unit.is_some() { SenseCode::NONE } else { SenseCode::LUN_NOT_SUPPORTED };
                let key = if unit.is_some() { SenseKey::NO_SENSE } else { SenseKey::ILLEGAL_REQUEST };
                answer(Sense::new(key, code).to_bytes().into(), u32::from(cdb[4]))
            }
            (_, None) => Step::Done(Response::check(illegal(SenseCode::LUN_NOT_SUPPORTED))),
            (Cdb::TestUnitReady, _) => Step::Done(Response::GOOD),
            (Cdb::ReadCapacity10, Some(unit)) => read_capacity_10(unit),
            (Cdb::ReadCapacity16 { allocation_len }, Some(unit)) => read_capacity_16(unit, allocation_len),
            (Cdb::Read { lba, blocks, fua }, Some(unit)) => unit.transfer(IoOp::Read, lba, blocks, fua),
            (Cdb::Write { lba, blocks, fua }, Some(unit)) => unit.transfer(IoOp::Write, lba, blocks, fua),
            (Cdb::Other(cdb), _) => Step::Done(Response::check(unsupported(&cdb))),
        }
    }

    /// A parameter list that [`Step::Parameters`] asked for has come; shorter, if the initiator sends no more.
    pub fn parameters(&mut self, task: TaskId, list: &[u8]) -> Step {
        let _ = list;
        self.finish(task, Response::GOOD)
    }

    /// Block I/O of a task has ended.
    #[inline]
    pub fn io_done(&mut self, task: TaskId, op: IoOp, io: IoStatus) -> Step {
        let check = |key, code| Response::check(Sense::new(key, code));
        let response = match (io, op) {
            (IoStatus::Good, _) => Response::GOOD,
            (IoStatus::TaskSetFull, _) => Response::status(status::TASK_SET_FULL),
            (IoStatus::Busy, _) => Response::status(status::BUSY),
            (IoStatus::MediumError, op) if op.changes_medium() => check(SenseKey::MEDIUM_ERROR, SenseCode::WRITE_ERROR),
            (IoStatus::MediumError, _) => check(SenseKey::MEDIUM_ERROR, SenseCode::UNRECOVERED_READ_ERROR),
            (IoStatus::Miscompare { offset }, _) => Response::check(Sense {
                information: Some(offset),
                ..Sense::new(SenseKey::MISCOMPARE, SenseCode::MISCOMPARE)
            }),
            (IoStatus::NoSpace, _) => check(SenseKey::DATA_PROTECT, SenseCode::WRITE_PROTECTED),
            (IoStatus::Mapping { .. }, _) => Response::GOOD,
        };
        self.finish(task, response)
    }

    #[inline]
    fn finish(&mut self, task: TaskId, response: Response) -> Step {
        self.units[usize::from(task.unit)].active -= 1;
        Step::Done(response)
    }

    /// A task that [`begin`](Self::begin) did not end is given up: it was aborted, or its nexus is lost.
    pub fn abandon(&mut self, task: TaskId) {
        self.units[usize::from(task.unit)].active -= 1;
    }

    /// A task management function.
    pub fn manage(&mut self, nexus: NexusId, unit: Option<u16>, function: TaskManagement) -> Managed {
        let ends = |unit, nexus_only| Ends { unit, nexus: nexus_only, by: nexus };
        match (function, unit) {
            (TaskManagement::TargetReset, _) => Managed::Complete(Some(ends(None, None))),
            (_, None) => Managed::IncorrectLun,
            (TaskManagement::AbortTaskSet, unit) => Managed::Complete(Some(ends(unit, Some(nexus)))),
            (TaskManagement::ClearTaskSet | TaskManagement::LunReset, unit) => {
                Managed::Complete(Some(ends(unit, None)))
            }
            (TaskManagement::ClearAca, _) => Managed::Complete(None),
        }
    }

    /// A record is kept.
    pub fn persisted(&mut self, seq: u64) {
        let _ = seq;
    }

    /// The next thing that the device does by itself.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Tasks of a unit that have begun and are not over.
    pub fn active(&self, unit: u16) -> u32 {
        self.units.get(usize::from(unit)).map_or(0, |unit| unit.active)
    }

    /// Memory that grows with the nexuses, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.nexuses.bytes()
    }

    /// REPORT LUNS (SPC).
    fn report_luns(&self, nexus: NexusId, allocation_len: u32) -> Step {
        let numbers: Vec<u16> = match self.config.masking {
            Masking::Open => (0..=lun::MAX_LUN).take(self.units.len()).collect(),
            Masking::Listed(_) => self.nexuses.luns(nexus).iter().map(|map| map.lun).collect(),
        };
        let list: Vec<u8> = numbers.into_iter().filter_map(lun::to_bytes).flatten().collect();
        let mut data = (list.len() as u32).to_be_bytes().to_vec();
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(&list);
        answer(data, allocation_len)
    }
}

/// The sense for a CDB that has no value: a known operation with a field that we do not support, or an unknown operation.
fn unsupported(cdb: &[u8; CDB_BYTES]) -> Sense {
    const PROTECT_BYTE: u16 = 1;
    match cdb[0] {
        operation::READ_10
        | operation::READ_12
        | operation::READ_16
        | operation::WRITE_10
        | operation::WRITE_12
        | operation::WRITE_16 => Sense::invalid_field_in_cdb(PROTECT_BYTE),
        operation::INQUIRY | operation::REPORT_LUNS => Sense::invalid_field_in_cdb(2),
        _ => illegal(SenseCode::INVALID_OPERATION),
    }
}

/// READ CAPACITY (10) (SBC): a LUN that is too large says FFFFFFFF.
fn read_capacity_10(unit: &Unit) -> Step {
    let last = u32::try_from(unit.config.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut data = last.to_be_bytes().to_vec();
    data.extend_from_slice(&unit.config.block_bytes.to_be_bytes());
    Step::Done(Response::data(data))
}

/// READ CAPACITY (16) (SBC).
fn read_capacity_16(unit: &Unit, allocation_len: u32) -> Step {
    let mut data = unit.config.blocks.saturating_sub(1).to_be_bytes().to_vec();
    data.extend_from_slice(&unit.config.block_bytes.to_be_bytes());
    data.resize(32, 0);
    answer(data, allocation_len)
}

pub(super) fn answer(mut data: Vec<u8>, allocation_len: u32) -> Step {
    data.truncate(allocation_len as usize);
    Step::Done(Response::data(data))
}
