//! Persistent reservations of a unit (SPC-4, 5.13): registrations, the holder, and the effects of
//! PERSISTENT RESERVE OUT.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use super::step::Step;
use super::unit::{answer, check, illegal};
use sanloom_wire::ParseError;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::reservation::{
    FullStatus, Keys, MoveParameters, OutParameters, Reservation, emit_capabilities, in_action, kind, out_action,
};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Maximum number of registrations of a unit.
const MAX_REGISTRATIONS: usize = 4096;

/// Initiator port and number of the target port that it uses. The nexus does not have to exist at
/// the moment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Party {
    pub(super) initiator: TransportId,
    pub(super) port: u16,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Registration {
    party: Party,
    key: u64,
}

/// Reservation in force.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    kind: u8,
    /// Party that made the reservation. With an "all registrants" type every registered party holds
    /// it.
    holder: Party,
}

/// Persistent reservations of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reservations {
    pub(super) generation: u32,
    /// True if they survive a power cycle (APTPL).
    pub(super) keep: bool,
    registrations: Vec<Registration>,
    held: Option<Held>,
}

/// Reason to refuse a PERSISTENT RESERVE OUT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Conflict,
    Check(Sense),
}

/// Effects of a PERSISTENT RESERVE OUT.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Effects {
    /// Unit attentions for other parties.
    pub(super) attentions: Vec<(Party, SenseCode)>,
    /// Parties whose tasks are aborted.
    pub(super) aborted: Vec<Party>,
    /// True if persistent state has changed.
    pub(super) changed: bool,
}

/// Access of a command in terms of reservations (SPC-4, tables 66 and 67; SBC-3, table 13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Access {
    /// Never conflicts.
    Always,
    /// Conflicts if others must not read.
    Reads,
    /// Conflicts if others must not write.
    Writes,
}

impl Access {
    /// Returns the access of a command, which may conflict with another nexus's persistent
    /// reservation.
    pub(super) fn of(cdb: &Cdb) -> Access {
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
            // The commands below have their own rules.
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
}

/// Relation of a party to a reservation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Role {
    Holder,
    Registered,
    Unregistered,
}

/// Returns whether a command with this access conflicts with a reservation.
pub(super) fn conflicts(kind: u8, role: Role, access: Access) -> bool {
    let registrants_only = !matches!(kind, kind::WRITE_EXCLUSIVE | kind::EXCLUSIVE_ACCESS);
    let reads_allowed = matches!(
        kind,
        kind::WRITE_EXCLUSIVE | kind::WRITE_EXCLUSIVE_REGISTRANTS_ONLY | kind::WRITE_EXCLUSIVE_ALL_REGISTRANTS
    );
    match (role, access) {
        (Role::Holder, _) | (_, Access::Always) => false,
        (Role::Registered, _) if registrants_only => false,
        (_, Access::Reads) => !reads_allowed,
        (_, Access::Writes) => true,
    }
}

fn of_all_registrants(kind: u8) -> bool {
    matches!(kind, kind::WRITE_EXCLUSIVE_ALL_REGISTRANTS | kind::EXCLUSIVE_ACCESS_ALL_REGISTRANTS)
}

/// Returns whether registrants other than the holder depend on a reservation of this type and
/// therefore get a unit attention when it ends.
fn notifies_registrants(kind: u8) -> bool {
    !matches!(kind, kind::WRITE_EXCLUSIVE | kind::EXCLUSIVE_ACCESS)
}

/// Bytes of the CDB that field pointers refer to.
const ACTION_BYTE: u16 = 1;
const SCOPE_AND_TYPE_BYTE: u16 = 2;
/// Upper limit of a list that names initiator ports, because such a list has no fixed length.
const MAX_LIST_BYTES: u32 = 0x1_0000;

/// Checks a PERSISTENT RESERVE OUT before its list has arrived.
pub(super) fn check_out(action: u8, scope: u8, kind: u8, list_len: u32) -> Step {
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
    // Only lists that may name initiator ports exceed the fixed length.
    let longer = matches!(action, out_action::REGISTER | out_action::REGISTER_AND_MOVE);
    let fixed = u32::try_from(OutParameters::BYTES).unwrap_or(u32::MAX);
    if list_len < fixed || list_len > MAX_LIST_BYTES || (!longer && list_len != fixed) {
        return check(illegal(SenseCode::PARAMETER_LIST_LENGTH));
    }
    Step::Parameters { bytes: list_len }
}

const WRONG_LIST: Refusal = Refusal::Check(Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_LIST));

impl Reservations {
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub(super) fn has_registrations(&self) -> bool {
        !self.registrations.is_empty()
    }

    /// Returns whether a command of `party` conflicts.
    pub(super) fn conflict(&self, party: &Party, access: Access) -> bool {
        self.held.as_ref().is_some_and(|held| conflicts(held.kind, self.role(party), access))
    }

    fn role(&self, party: &Party) -> Role {
        match self.key_of(party) {
            Some(_) if self.holds(party) => Role::Holder,
            Some(_) => Role::Registered,
            None => Role::Unregistered,
        }
    }

    fn key_of(&self, party: &Party) -> Option<u64> {
        self.registrations.iter().find(|one| one.party == *party).map(|one| one.key)
    }

    fn holds(&self, party: &Party) -> bool {
        self.held.as_ref().is_some_and(|held| of_all_registrants(held.kind) || held.holder == *party)
    }

    fn keys(&self) -> Vec<u64> {
        self.registrations.iter().map(|one| one.key).collect()
    }

    /// Key (0 with "all registrants") and type of the reservation.
    fn held(&self) -> Option<(u64, u8)> {
        let held = self.held.as_ref()?;
        let key = if of_all_registrants(held.kind) { 0 } else { self.key_of(&held.holder).unwrap_or(0) };
        Some((key, held.kind))
    }

    /// All registrations in the form of READ FULL STATUS.
    pub(super) fn full_status(&self) -> Vec<FullStatus> {
        let status = |one: &Registration| FullStatus {
            key: one.key,
            all_ports: false,
            holds: self.held.as_ref().filter(|_| self.holds(&one.party)).map(|held| held.kind),
            port: one.party.port + 1,
            initiator: one.party.initiator.clone(),
        };
        self.registrations.iter().map(status).collect()
    }

    /// Record to store: the READ FULL STATUS data, or nothing without APTPL.
    pub(super) fn record(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        if self.keep {
            FullStatus::emit_list(self.generation, &self.full_status(), &mut out);
        }
        out.into()
    }

    /// Parses a stored record.
    pub(super) fn restore(record: &[u8]) -> Result<Reservations, ParseError> {
        if record.is_empty() {
            return Ok(Reservations::default());
        }
        let (generation, list) = FullStatus::parse_list(record)?;
        let party = |status: &FullStatus| Party { initiator: status.initiator.clone(), port: status.port.max(1) - 1 };
        let held = list.iter().find_map(|status| status.holds.map(|kind| Held { kind, holder: party(status) }));
        let registrations = list.iter().map(|status| Registration { party: party(status), key: status.key }).collect();
        Ok(Reservations { generation, keep: true, registrations, held })
    }

    /// Executes PERSISTENT RESERVE IN.
    pub(super) fn report(&self, action: u8, allocation_len: u16) -> Step {
        let generation = self.generation;
        let mut data = Vec::new();
        match action {
            in_action::READ_KEYS => Keys { generation, keys: self.keys() }.emit(&mut data),
            in_action::READ_RESERVATION => Reservation { generation, held: self.held() }.emit(&mut data),
            in_action::REPORT_CAPABILITIES => emit_capabilities(self.keep, &mut data),
            in_action::READ_FULL_STATUS => FullStatus::emit_list(generation, &self.full_status(), &mut data),
            _ => return check(Sense::invalid_field_in_cdb(ACTION_BYTE)),
        }
        answer(data, allocation_len.into())
    }

    /// Executes PERSISTENT RESERVE OUT with its list. `ports` is the number of target ports.
    pub(super) fn execute(
        &mut self,
        from: &Party,
        action: u8,
        kind: u8,
        list: &[u8],
        ports: u16,
    ) -> Result<Effects, Refusal> {
        const PORT_BYTE: u16 = 18;
        const FLAGS_BYTE: u16 = 20;
        if action == out_action::REGISTER_AND_MOVE {
            let list = MoveParameters::parse(list).map_err(|_| WRONG_LIST)?;
            if list.port == 0 || list.port > ports {
                return Err(Refusal::Check(Sense::invalid_field_in_list(PORT_BYTE)));
            }
            return self.register_and_move(from, &list);
        }
        let list = OutParameters::parse(list).map_err(|_| WRONG_LIST)?;
        if list.initiators.is_some() && action != out_action::REGISTER {
            return Err(Refusal::Check(Sense::invalid_field_in_list(FLAGS_BYTE)));
        }
        let effects = match action {
            out_action::REGISTER => self.register(from, &list, false, ports),
            out_action::REGISTER_AND_IGNORE => self.register(from, &list, true, ports),
            _ => self.change(from, action, kind, &list),
        };
        debug_assert!(
            self.held.as_ref().is_none_or(|held| of_all_registrants(held.kind) || self.key_of(&held.holder).is_some()),
            "the holder of a reservation is registered"
        );
        effects
    }

    /// Executes REGISTER, or REGISTER AND IGNORE EXISTING KEY. `ports` is the number of target
    /// ports.
    fn register(&mut self, from: &Party, list: &OutParameters, ignore: bool, ports: u16) -> Result<Effects, Refusal> {
        let known = self.key_of(from);
        if !ignore && known.unwrap_or(0) != list.key {
            return Err(Refusal::Conflict);
        }
        if list.initiators.is_some() && (ignore || known.is_some()) {
            return Err(WRONG_LIST);
        }
        let mut effects = Effects { changed: true, ..Effects::default() };
        match (known, list.action_key) {
            (None, 0) => {
                effects.changed = false;
                return Ok(effects);
            }
            (Some(_), 0) => self.unregister(from, &mut effects),
            (_, key) => {
                let mut parties = vec![from.clone()];
                let others = list.initiators.iter().flatten();
                parties.extend(others.map(|id| Party { initiator: id.clone(), port: from.port }));
                if list.all_ports {
                    let initiators: Vec<TransportId> = parties.into_iter().map(|party| party.initiator).collect();
                    let all = initiators.iter().flat_map(|id| (0..ports).map(move |port| (id.clone(), port)));
                    parties = all.map(|(initiator, port)| Party { initiator, port }).collect();
                }
                let new = parties.iter().filter(|party| self.key_of(party).is_none()).count();
                if self.registrations.len() + new > MAX_REGISTRATIONS {
                    let code = SenseCode::INSUFFICIENT_REGISTRATIONS;
                    return Err(Refusal::Check(Sense::new(SenseKey::ILLEGAL_REQUEST, code)));
                }
                for party in parties {
                    self.set_key(party, key);
                }
            }
        }
        self.generation = self.generation.wrapping_add(1);
        self.keep = list.keep;
        Ok(effects)
    }

    fn set_key(&mut self, party: Party, key: u64) {
        match self.registrations.iter_mut().find(|one| one.party == party) {
            Some(one) => one.key = key,
            None => self.registrations.push(Registration { party, key }),
        }
    }

    fn unregister(&mut self, party: &Party, effects: &mut Effects) {
        self.registrations.retain(|one| one.party != *party);
        let Some(held) = &self.held else { return };
        let released =
            if of_all_registrants(held.kind) { self.registrations.is_empty() } else { held.holder == *party };
        if released {
            let kind = held.kind;
            self.held = None;
            if notifies_registrants(kind) {
                self.notify_others(party, SenseCode::RESERVATIONS_RELEASED, effects);
            }
        }
    }

    fn notify_others(&self, except: &Party, code: SenseCode, effects: &mut Effects) {
        let others = self.registrations.iter().filter(|one| one.party != *except);
        effects.attentions.extend(others.map(|one| (one.party.clone(), code)));
    }

    /// Executes the actions that require registration: RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT
    /// AND ABORT.
    fn change(&mut self, from: &Party, action: u8, kind: u8, list: &OutParameters) -> Result<Effects, Refusal> {
        if self.key_of(from) != Some(list.key) {
            return Err(Refusal::Conflict);
        }
        match action {
            out_action::RESERVE => self.reserve(from, kind),
            out_action::RELEASE => self.release(from, kind),
            out_action::CLEAR => {
                let mut effects = Effects { changed: true, ..Effects::default() };
                self.notify_others(from, SenseCode::RESERVATIONS_PREEMPTED, &mut effects);
                self.registrations.clear();
                self.held = None;
                self.generation = self.generation.wrapping_add(1);
                Ok(effects)
            }
            _ => self.preempt(from, kind, list.action_key, action == out_action::PREEMPT_AND_ABORT),
        }
    }

    fn reserve(&mut self, from: &Party, kind: u8) -> Result<Effects, Refusal> {
        match &self.held {
            None => {
                self.held = Some(Held { kind, holder: from.clone() });
                Ok(Effects { changed: true, ..Effects::default() })
            }
            Some(held) if held.kind == kind && self.holds(from) => Ok(Effects::default()),
            Some(_) => Err(Refusal::Conflict),
        }
    }

    fn release(&mut self, from: &Party, kind: u8) -> Result<Effects, Refusal> {
        let Some(held) = self.held.as_ref().filter(|_| self.holds(from)) else {
            return Ok(Effects::default());
        };
        if held.kind != kind {
            return Err(Refusal::Check(Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_RELEASE)));
        }
        self.held = None;
        let mut effects = Effects { changed: true, ..Effects::default() };
        if notifies_registrants(kind) {
            self.notify_others(from, SenseCode::RESERVATIONS_RELEASED, &mut effects);
        }
        Ok(effects)
    }

    fn preempt(&mut self, from: &Party, kind: u8, victim: u64, abort: bool) -> Result<Effects, Refusal> {
        let all = self.held.as_ref().is_some_and(|held| of_all_registrants(held.kind));
        let holder_key = self.held.as_ref().and_then(|held| self.key_of(&held.holder));
        let every_key = all && victim == 0;
        if victim == 0 && !every_key {
            return Err(WRONG_LIST);
        }
        let takes_over = every_key || (!all && holder_key == Some(victim));
        let is_victim = |one: &Registration| one.party != *from && (every_key || one.key == victim);
        let found = self.registrations.iter().any(|one| every_key || one.key == victim);
        if !found {
            return Err(Refusal::Conflict);
        }
        let mut effects = Effects { changed: true, ..Effects::default() };
        let before = self.held.as_ref().map(|held| held.kind);
        for one in self.registrations.iter().filter(|one| is_victim(one)) {
            effects.attentions.push((one.party.clone(), SenseCode::REGISTRATIONS_PREEMPTED));
            if abort {
                effects.aborted.push(one.party.clone());
            }
        }
        self.registrations.retain(|one| !is_victim(one));
        if takes_over {
            self.held = Some(Held { kind, holder: from.clone() });
            if before.is_some_and(|before| before != kind && notifies_registrants(before)) {
                self.notify_others(from, SenseCode::RESERVATIONS_RELEASED, &mut effects);
            }
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(effects)
    }

    /// Executes REGISTER AND MOVE.
    fn register_and_move(&mut self, from: &Party, list: &MoveParameters) -> Result<Effects, Refusal> {
        if self.key_of(from) != Some(list.key) {
            return Err(Refusal::Conflict);
        }
        let to = Party { initiator: list.initiator.clone(), port: list.port.max(1) - 1 };
        match &mut self.held {
            Some(held) if !of_all_registrants(held.kind) && held.holder == *from => {
                if list.action_key == 0 || list.port == 0 || to == *from {
                    return Err(WRONG_LIST);
                }
                held.holder = to.clone();
            }
            _ => return Err(Refusal::Conflict),
        }
        self.set_key(to, list.action_key);
        if list.unregister {
            self.registrations.retain(|one| one.party != *from);
        }
        self.generation = self.generation.wrapping_add(1);
        self.keep = list.keep;
        Ok(Effects { changed: true, ..Effects::default() })
    }
}
