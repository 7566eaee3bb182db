//! Execution of commands, except those with a file of their own (SPC, SBC). Conditions that prevent
//! a command are checked before it is executed.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use super::device::Device;
use super::inquiry::Origin;
use super::io::IoOp;
use super::step::{Command, Response, Step, TaskId};
use super::unit::{answer, check, illegal};
use super::{medium, mode, opcodes, reservation};
use sanloom_wire::cdb::{Cdb, operation, status};
use sanloom_wire::scsi::luns;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Sense of a unit that START STOP UNIT has stopped.
pub(super) const STOPPED: Sense = Sense::new(SenseKey::NOT_READY, SenseCode::NOT_READY_INITIALIZING);
/// Upper limit of a SET TARGET PORT GROUPS list: one descriptor for each possible group number.
const MAX_PORT_GROUPS_BYTES: u32 = 4 + (4 << 16);

impl Device {
    /// Executes a command for which no earlier task has to end.
    pub(super) fn execute(&mut self, command: &Command, cdb: Cdb) -> Step {
        let unit = command.unit.map(|number| &self.units[usize::from(number)]);
        match (cdb, unit) {
            (Cdb::Inquiry { vpd_page, allocation_len }, unit) => {
                let port = self.nexuses.port_of(command.nexus).unwrap_or(0);
                let from = Origin { port, several_groups: self.groups.are_several() };
                return self.identity.inquiry(&from, unit, vpd_page, allocation_len);
            }
            (Cdb::ReportLuns { allocation_len }, _) => return self.report_luns(command, allocation_len),
            (Cdb::RequestSense { descriptor, allocation_len }, _) => {
                return self.request_sense(command, descriptor, allocation_len);
            }
            _ => {}
        }
        let Some(number) = command.unit else {
            return check(illegal(SenseCode::LUN_NOT_SUPPORTED));
        };
        if let Some(attention) = self.take_attention(number, command.nexus) {
            return check(attention);
        }
        if !matches!(cdb, Cdb::Other(_))
            && let Some(byte) = opcodes::aca_byte(&command.cdb)
        {
            return check(Sense::invalid_field_in_cdb(byte));
        }
        if let Some(refusal) = self.groups.refusal(self.nexuses.port_of(command.nexus), &cdb) {
            return check(refusal);
        }
        let party = || self.nexuses.party(command.nexus);
        if self.units[usize::from(number)].reservation_conflict(command.nexus, &cdb, party) {
            return Step::Done(Response::status(status::RESERVATION_CONFLICT));
        }
        if let Some(step) = self.manage_unit(number, command, cdb) {
            return step;
        }
        let task = TaskId { nexus: command.nexus, tag: command.tag, unit: number };
        let step = medium::execute(&self.units[usize::from(number)], task, cdb, &mut self.pending);
        match step {
            // Points the sense at the length field if the allocation length is invalid.
            Step::Done(Response { sense: Some(sense), .. })
                if sense.code == SenseCode::INVALID_FIELD_IN_CDB && sense.key_specific == [0; 3] =>
            {
                check(Sense::invalid_field_in_cdb(opcodes::length_byte(command.cdb[0])))
            }
            step => step,
        }
    }

    /// Executes a command that requires no medium; `None` for any other command.
    fn manage_unit(&mut self, number: u16, command: &Command, cdb: Cdb) -> Option<Step> {
        let unit = &mut self.units[usize::from(number)];
        let thin = unit.config.thin;
        let several = self.groups.are_several();
        let has = opcodes::Has { thin, port_groups: several };
        Some(match cdb {
            Cdb::ModeSense { .. } => mode::sense(unit, cdb),
            Cdb::ModeSelect { page_format, save, list_len, .. } => mode::select(page_format, save, list_len),
            Cdb::StartStopUnit { power, load_eject, start, no_flush, .. } => {
                const FLAGS: u16 = 4;
                if power != 0 || load_eject {
                    return Some(check(Sense::invalid_field_in_cdb(FLAGS)));
                }
                unit.stopped = !start;
                let flush = !start && !no_flush && unit.mode.write_cache;
                let step =
                    if flush { Step::Io(unit.io(IoOp::Flush, 0, 0, 0, true)) } else { Step::Done(Response::GOOD) };
                self.update_plain();
                step
            }
            Cdb::Reserve6 => {
                unit.reserved = Some(command.nexus);
                self.update_plain();
                Step::Done(Response::GOOD)
            }
            Cdb::Release6 => {
                if unit.reserved == Some(command.nexus) {
                    unit.reserved = None;
                    self.update_plain();
                }
                Step::Done(Response::GOOD)
            }
            Cdb::PersistentReserveIn { action, allocation_len } => unit.reservations.report(action, allocation_len),
            Cdb::PersistentReserveOut { action, scope, kind, list_len } => {
                reservation::check_out(action, scope, kind, list_len)
            }
            Cdb::ReportTargetPortGroups { extended, allocation_len } => self.groups.report(extended, allocation_len),
            Cdb::SetTargetPortGroups { .. } if !several => check(illegal(SenseCode::INVALID_OPERATION)),
            Cdb::SetTargetPortGroups { list_len: 0 } => Step::Done(Response::GOOD),
            Cdb::SetTargetPortGroups { list_len } if list_len > MAX_PORT_GROUPS_BYTES => {
                check(Sense::invalid_field_in_cdb(opcodes::length_byte(operation::MAINTENANCE_OUT)))
            }
            Cdb::SetTargetPortGroups { list_len } => Step::Parameters { bytes: list_len },
            Cdb::ReportSupportedOperations { timeouts, options, operation, action, allocation_len } => {
                opcodes::report(options, operation, action, timeouts, has, allocation_len)
            }
            Cdb::ReportSupportedTaskManagement { extended, allocation_len } => {
                opcodes::report_task_management(extended, allocation_len)
            }
            Cdb::Other(bytes) if bytes[0] == operation::REPORT_LUNS && bytes[2] == 1 => {
                let mut data = Vec::new();
                luns::emit(&[], &mut data);
                answer(data, u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]))
            }
            Cdb::Unmap { .. } if !thin => check(illegal(SenseCode::INVALID_OPERATION)),
            Cdb::Other(bytes) => check(opcodes::unsupported(&bytes, has)),
            _ => return None,
        })
    }

    /// Executes REPORT LUNS (SPC).
    fn report_luns(&mut self, command: &Command, allocation_len: u32) -> Step {
        const MIN_BYTES: u32 = 16;
        if allocation_len < MIN_BYTES {
            return check(Sense::invalid_field_in_cdb(opcodes::length_byte(operation::REPORT_LUNS)));
        }
        // The reported list resolves the condition.
        super::attention::remove_attention(self, command.nexus, SenseCode::REPORTED_LUNS_CHANGED);
        let mut data = Vec::new();
        luns::emit(&self.luns(command.nexus), &mut data);
        answer(data, allocation_len)
    }

    /// Executes REQUEST SENSE (SPC): returns a unit attention, or "no sense". Other sense data are
    /// sent with the status of their command and are not stored.
    fn request_sense(&mut self, command: &Command, descriptor: bool, allocation_len: u8) -> Step {
        let sense = match command.unit {
            None => illegal(SenseCode::LUN_NOT_SUPPORTED),
            Some(number) => {
                let stopped = self.units[usize::from(number)].stopped;
                let nothing = Sense::new(SenseKey::NO_SENSE, SenseCode::NONE);
                let attention = self.take_attention(number, command.nexus);
                attention.unwrap_or(if stopped { STOPPED } else { nothing })
            }
        };
        answer(Sense { descriptor, ..sense }.to_bytes().into(), allocation_len.into())
    }

    /// Continues a command whose parameter list has arrived.
    pub(super) fn execute_with_list(&mut self, task: TaskId, cdb: Cdb, list: &[u8]) -> Step {
        let expected = match cdb {
            Cdb::ModeSelect { list_len, .. } | Cdb::Unmap { list_len, .. } => u32::from(list_len),
            Cdb::PersistentReserveOut { list_len, .. } | Cdb::SetTargetPortGroups { list_len } => list_len,
            _ => 0,
        };
        if (list.len() as u64) < u64::from(expected) {
            return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
        }
        match cdb {
            Cdb::ModeSelect { long, .. } => self.select_modes(task, list, long),
            Cdb::Unmap { .. } => medium::unmap(&self.units[usize::from(task.unit)], task, list, &mut self.pending),
            Cdb::PersistentReserveOut { action, kind, .. } => self.reserve_out(task, action, kind, list),
            Cdb::SetTargetPortGroups { .. } => self.set_port_groups(task.nexus, list),
            _ => Step::Done(Response::GOOD),
        }
    }
}
