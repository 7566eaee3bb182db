//! Reservations in a device: which commands conflict, PERSISTENT RESERVE IN and OUT, and records that outlive it (SPC).

use super::device::Device;
use super::nexus::NexusId;
use super::reservation::{Access, Effects, Party, Refusal, Reservations};
use super::step::{Ends, Output, Response, Step, TaskId};
use super::unit::{answer, check, illegal};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::scsi::reservation::{
    FullStatus, Keys, MoveParameters, OutParameters, Reservation, emit_capabilities, in_action, kind, out_action,
};
use sanloom_wire::sense::{Sense, SenseCode};

/// Bytes of the CDB that are pointed at.
const ACTION_BYTE: u16 = 1;
const SCOPE_AND_TYPE_BYTE: u16 = 2;
/// A list that names initiator ports has no fixed length; this much is read.
const MAX_LIST_BYTES: u32 = 0x1_0000;

/// A task whose end waits for a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) task: TaskId,
    /// What was in force before, for the case that the record cannot be kept.
    before: Reservations,
}

/// How a command stands towards a persistent reservation of another.
pub(super) fn access(cdb: &Cdb) -> Access {
    match cdb {
        Cdb::Inquiry { .. }
        | Cdb::ReportLuns { .. }
        | Cdb::RequestSense { .. }
        | Cdb::TestUnitReady
        | Cdb::ReadCapacity10
        | Cdb::ReadCapacity16 { .. }
        | Cdb::ReportTargetPortGroups { .. }
        | Cdb::ReportSupportedOperations { .. }
        | Cdb::ReportSupportedTaskManagement { .. }
        | Cdb::PersistentReserveIn { .. }
        // Their own rules decide.
        | Cdb::PersistentReserveOut { .. }
        | Cdb::Reserve6
        | Cdb::Release6
        | Cdb::StartStopUnit { start: true, power: 0, .. }
        | Cdb::Other(_) => Access::Always,
        Cdb::Read { .. }
        | Cdb::Verify { .. }
        | Cdb::Prefetch { .. }
        | Cdb::GetLbaStatus { .. }
        | Cdb::ModeSense { .. } => Access::Reads,
        Cdb::Write { .. }
        | Cdb::WriteAndVerify { .. }
        | Cdb::WriteSame { .. }
        | Cdb::CompareAndWrite { .. }
        | Cdb::Unmap { .. }
        | Cdb::SynchronizeCache { .. }
        | Cdb::ModeSelect { .. }
        | Cdb::SetTargetPortGroups { .. }
        | Cdb::StartStopUnit { .. } => Access::Writes,
    }
}

impl Device {
    fn party(&self, nexus: NexusId) -> Option<Party> {
        self.nexuses.get(nexus).map(|nexus| Party { initiator: nexus.initiator.clone(), port: nexus.port })
    }

    /// The command of a nexus meets a reservation of another. RESERVE(6) and persistent reservations exclude each other
    /// (SPC-4, 5.13.1).
    pub(super) fn reservation_conflict(&self, number: u16, nexus: NexusId, cdb: &Cdb) -> bool {
        let unit = &self.units[usize::from(number)];
        let persistent = matches!(cdb, Cdb::PersistentReserveIn { .. } | Cdb::PersistentReserveOut { .. });
        match unit.reserved {
            Some(_) if persistent => return true,
            Some(holder) if holder != nexus && !matches!(cdb, Cdb::Release6) => return true,
            _ => {}
        }
        if matches!(cdb, Cdb::Reserve6 | Cdb::Release6) && unit.reservations.has_registrations() {
            return true;
        }
        if !unit.reservations.is_held() {
            return false;
        }
        self.party(nexus).is_none_or(|party| unit.reservations.conflict(&party, access(cdb)))
    }

    /// PERSISTENT RESERVE IN.
    pub(super) fn reservation_in(&self, number: u16, action: u8, allocation_len: u16) -> Step {
        let reservations = &self.units[usize::from(number)].reservations;
        let generation = reservations.generation;
        let mut data = Vec::new();
        match action {
            in_action::READ_KEYS => Keys { generation, keys: reservations.keys() }.emit(&mut data),
            in_action::READ_RESERVATION => Reservation { generation, held: reservations.held() }.emit(&mut data),
            in_action::REPORT_CAPABILITIES => emit_capabilities(reservations.keep, &mut data),
            in_action::READ_FULL_STATUS => {
                FullStatus::emit_list(generation, &reservations.full_status(), &mut data);
            }
            _ => return check(Sense::invalid_field_in_cdb(ACTION_BYTE)),
        }
        answer(data, allocation_len.into())
    }

    /// PERSISTENT RESERVE OUT, before its list has come.
    pub(super) fn reservation_out(&self, action: u8, scope: u8, kind: u8, list_len: u32) -> Step {
        let typed = matches!(
            action,
            out_action::RESERVE | out_action::RELEASE | out_action::PREEMPT | out_action::PREEMPT_AND_ABORT
        );
        if action > out_action::REGISTER_AND_MOVE {
            return check(Sense::invalid_field_in_cdb(ACTION_BYTE));
        }
        if typed && (scope != 0 || kind::name(kind).is_none()) {
            return check(Sense::invalid_field_in_cdb(SCOPE_AND_TYPE_BYTE));
        }
        // Only lists that may name initiator ports are longer.
        let longer = matches!(action, out_action::REGISTER | out_action::REGISTER_AND_MOVE);
        let fixed = OutParameters::BYTES as u32;
        if list_len < fixed || list_len > MAX_LIST_BYTES || (!longer && list_len != fixed) {
            return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
        }
        Step::Parameters { bytes: list_len }
    }

    /// PERSISTENT RESERVE OUT, with its list.
    pub(super) fn reserve_with(&mut self, task: TaskId, action: u8, kind: u8, list: &[u8]) -> Step {
        let Some(from) = self.party(task.nexus) else {
            return Step::Done(Response::status(status::RESERVATION_CONFLICT));
        };
        let ports = self.config.ports.len() as u16;
        let reservations = &mut self.units[usize::from(task.unit)].reservations;
        let before = reservations.clone();
        let result = if action == out_action::REGISTER_AND_MOVE {
            match MoveParameters::parse(list) {
                Ok(list) if list.port == 0 || list.port > ports => {
                    const PORT_BYTE: u16 = 18;
                    Err(Refusal::Check(Sense::invalid_field_in_list(PORT_BYTE)))
                }
                Ok(list) => reservations.register_and_move(&from, &list),
                Err(_) => Err(Refusal::Check(illegal(SenseCode::INVALID_FIELD_IN_LIST))),
            }
        } else {
            match OutParameters::parse(list) {
                Ok(list) if list.initiators.is_some() && action != out_action::REGISTER => {
                    const FLAGS_BYTE: u16 = 20;
                    Err(Refusal::Check(Sense::invalid_field_in_list(FLAGS_BYTE)))
                }
                Ok(list) => match action {
                    out_action::REGISTER | out_action::REGISTER_AND_IGNORE => {
                        let ignore = action == out_action::REGISTER_AND_IGNORE;
                        reservations.register(&from, &list, ignore, ports)
                    }
                    _ => reservations.change(&from, action, kind, &list),
                },
                Err(_) => Err(Refusal::Check(illegal(SenseCode::INVALID_FIELD_IN_LIST))),
            }
        };
        match result {
            Err(Refusal::Conflict) => Step::Done(Response::status(status::RESERVATION_CONFLICT)),
            Err(Refusal::Check(sense)) => check(sense),
            Ok(effects) => self.reserved(task, before, &effects),
        }
    }

    /// What a PERSISTENT RESERVE OUT has changed: others are told, and the change is kept where that was asked for.
    fn reserved(&mut self, task: TaskId, before: Reservations, effects: &Effects) -> Step {
        for (party, code) in &effects.attentions {
            for nexus in self.nexuses_of(party) {
                self.attend(task.unit, nexus, *code);
            }
        }
        for party in &effects.aborted {
            for nexus in self.nexuses_of(party) {
                let ends = Ends { unit: Some(task.unit), nexus: Some(nexus), by: task.nexus };
                self.tell_ports(ends, None);
            }
        }
        self.settle();
        let reservations = &self.units[usize::from(task.unit)].reservations;
        if !effects.changed || !(before.keep || reservations.keep) {
            return Step::Done(Response::GOOD);
        }
        let record = reservations.record();
        let seq = self.next_seq;
        self.next_seq += 1;
        self.waiting.insert(seq, Waiting { task, before });
        self.outputs.push_back(Output::Persist { seq, unit: task.unit, record });
        Step::Wait
    }

    /// The record of an [`Output::Persist`] is kept: what waited for it goes on.
    pub fn persisted(&mut self, seq: u64) {
        if let Some(Waiting { task, .. }) = self.waiting.remove(&seq) {
            let step = self.finish(task, Response::GOOD);
            self.notify(task, step);
        }
    }

    /// The record of an [`Output::Persist`] could not be kept: the command fails, as the standard says of registrations
    /// for which there are no resources, and what it did is undone. Where a later record of the unit is on its way, which
    /// holds the change too, that one decides.
    pub fn not_persisted(&mut self, seq: u64) {
        if let Some(Waiting { task, before }) = self.waiting.remove(&seq) {
            match self.waiting.range_mut(seq..).map(|(_, later)| later).find(|later| later.task.unit == task.unit) {
                Some(later) => later.before = before,
                None => {
                    self.units[usize::from(task.unit)].reservations = before;
                    self.settle();
                }
            }
            let response = Response::check(illegal(SenseCode::INSUFFICIENT_REGISTRATIONS));
            let step = self.finish(task, response);
            self.notify(task, step);
        }
    }

    /// Persistent reservations of a unit, as READ FULL STATUS gives them: for views.
    pub fn reservations(&self, unit: u16) -> Vec<FullStatus> {
        self.units.get(usize::from(unit)).map_or(Vec::new(), |unit| Reservations::full_status(&unit.reservations))
    }
}
