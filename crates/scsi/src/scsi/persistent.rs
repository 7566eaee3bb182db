//! Reservations in a device: PERSISTENT RESERVE OUT with its effects on other nexuses, and records
//! that survive a restart (SPC).

use super::device::Device;
use super::reservation::{Effects, Refusal, Reservations};
use super::step::{Ends, Response, Step, TaskId};
use super::unit::{check, illegal};
use sanloom_wire::cdb::status;
use sanloom_wire::scsi::reservation::FullStatus;
use sanloom_wire::sense::SenseCode;
use std::collections::BTreeMap;

/// Change of reservations whose record is being stored.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Change {
    /// Task that waits until the record is stored.
    task: TaskId,
    /// Reservations before the change, to be restored if the record cannot be stored.
    before: Reservations,
}

/// Reservation records that are being stored.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// By sequence number.
    changes: BTreeMap<u64, Change>,
    next_seq: u64,
}

impl Records {
    /// Starts to store a record. Returns its sequence number.
    fn begin(&mut self, task: TaskId, before: Reservations) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let duplicate = self.changes.insert(seq, Change { task, before });
        debug_assert_eq!(duplicate, None, "record {seq} is stored twice");
        seq
    }

    /// Ends a record that is stored. Returns the task that waits for it, if it was not aborted.
    fn stored(&mut self, seq: u64) -> Option<TaskId> {
        self.changes.remove(&seq).map(|change| change.task)
    }

    /// Ends a record that could not be stored. Returns the task that waits for it, if it was not
    /// aborted, and the reservations to restore. If a later record of the unit, which includes the
    /// change, is pending, that record decides.
    fn failed(&mut self, seq: u64) -> Option<(TaskId, Option<Reservations>)> {
        let Change { task, before } = self.changes.remove(&seq)?;
        let later = self.changes.range_mut(seq..).map(|(_, later)| later).find(|later| later.task.unit == task.unit);
        match later {
            Some(later) => {
                later.before = before;
                Some((task, None))
            }
            None => Some((task, Some(before))),
        }
    }

    /// Removes the change of an aborted task, which is in force.
    pub(super) fn abandon(&mut self, task: TaskId) {
        self.changes.retain(|_, change| change.task != task);
    }
}

impl Device {
    /// Executes PERSISTENT RESERVE OUT with its list.
    pub(super) fn reserve_out(&mut self, task: TaskId, action: u8, kind: u8, list: &[u8]) -> Step {
        let Some(from) = self.nexuses.party(task.nexus) else {
            return Step::Done(Response::status(status::RESERVATION_CONFLICT));
        };
        let ports = self.identity.ports.len() as u16;
        let reservations = &mut self.units[usize::from(task.unit)].reservations;
        let before = reservations.clone();
        match reservations.execute(&from, action, kind, list, ports) {
            Err(Refusal::Conflict) => Step::Done(Response::status(status::RESERVATION_CONFLICT)),
            Err(Refusal::Check(sense)) => check(sense),
            Ok(effects) => self.apply_effects(task, before, &effects),
        }
    }

    /// Applies the effects of a PERSISTENT RESERVE OUT: unit attentions, aborted tasks, and a
    /// stored record if APTPL requires it.
    fn apply_effects(&mut self, task: TaskId, before: Reservations, effects: &Effects) -> Step {
        for (party, code) in &effects.attentions {
            for nexus in self.nexuses.of(party) {
                self.add_attention(task.unit, nexus, *code);
            }
        }
        for party in &effects.aborted {
            for nexus in self.nexuses.of(party) {
                let ends = Ends { unit: Some(task.unit), nexus: Some(nexus), by: task.nexus };
                self.notices.ends(ends, Some(party.port), None);
            }
        }
        self.update_plain();
        let reservations = &self.units[usize::from(task.unit)].reservations;
        if !effects.changed || !(before.keep || reservations.keep) {
            return Step::Done(Response::GOOD);
        }
        let record = reservations.record();
        let seq = self.records.begin(task, before);
        self.notices.persist(seq, task.unit, record);
        Step::Wait
    }

    /// Completes the task that waits for the record of an [`Output::Persist`](super::Output), which
    /// is now stored.
    pub fn persisted(&mut self, seq: u64) {
        if let Some(task) = self.records.stored(seq) {
            let step = self.finish(task, Response::GOOD);
            self.notify(task, step);
        }
    }

    /// Undoes a change whose record ([`Output::Persist`](super::Output)) could not be stored. The
    /// command fails with the sense that the standard defines for a lack of registration resources.
    pub fn not_persisted(&mut self, seq: u64) {
        if let Some((task, before)) = self.records.failed(seq) {
            if let Some(before) = before {
                self.units[usize::from(task.unit)].reservations = before;
                self.update_plain();
            }
            let response = Response::check(illegal(SenseCode::INSUFFICIENT_REGISTRATIONS));
            let step = self.finish(task, response);
            self.notify(task, step);
        }
    }

    /// Persistent reservations of a unit in the form of READ FULL STATUS, for views.
    pub fn reservations(&self, unit: u16) -> Vec<FullStatus> {
        self.units.get(usize::from(unit)).map_or(Vec::new(), |unit| Reservations::full_status(&unit.reservations))
    }
}
