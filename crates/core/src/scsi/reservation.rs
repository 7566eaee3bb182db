//! Persistent reservations of a unit (SPC-4, 5.13): who is registered, who holds it, and what PERSISTENT RESERVE OUT does.

use sanloom_wire::ParseError;
use sanloom_wire::scsi::reservation::{FullStatus, MoveParameters, OutParameters, kind, out_action};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Registrations that a unit has room for.
const MAX_REGISTRATIONS: usize = 4096;

/// An initiator port and the number of the target port that it uses: a nexus that need not exist now.
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

/// A reservation that is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    kind: u8,
    /// Who made it; with "all registrants" every registered party holds it.
    holder: Party,
}

/// The persistent reservations of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reservations {
    pub(super) generation: u32,
    /// Keep over a power cycle (APTPL).
    pub(super) keep: bool,
    registrations: Vec<Registration>,
    held: Option<Held>,
}

/// Why a PERSISTENT RESERVE OUT is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Conflict,
    Check(Sense),
}

/// What a PERSISTENT RESERVE OUT does to others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Effects {
    /// Unit attentions.
    pub(super) attentions: Vec<(Party, SenseCode)>,
    /// Whose tasks end.
    pub(super) aborted: Vec<Party>,
    /// Something changed that is kept over a power cycle.
    pub(super) changed: bool,
}

/// How a command stands towards reservations (SPC-4, tables 66 and 67; SBC-3, table 13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Access {
    /// Never conflicts.
    Always,
    /// Conflicts where others must not read.
    Reads,
    /// Conflicts where others must not write.
    Writes,
}

/// What a party is to a reservation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Role {
    Holder,
    Registered,
    Stranger,
}

/// Whether a command conflicts with a reservation of another.
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

/// Other registrants depend on it, so that they are told when it goes.
fn tells_registrants(kind: u8) -> bool {
    !matches!(kind, kind::WRITE_EXCLUSIVE | kind::EXCLUSIVE_ACCESS)
}

const WRONG_LIST: Refusal = Refusal::Check(Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_LIST));

impl Reservations {
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub(super) fn has_registrations(&self) -> bool {
        !self.registrations.is_empty()
    }

    /// The command of `party` conflicts.
    pub(super) fn conflict(&self, party: &Party, access: Access) -> bool {
        self.held.as_ref().is_some_and(|held| conflicts(held.kind, self.role(party), access))
    }

    fn role(&self, party: &Party) -> Role {
        match self.key_of(party) {
            Some(_) if self.holds(party) => Role::Holder,
            Some(_) => Role::Registered,
            None => Role::Stranger,
        }
    }

    fn key_of(&self, party: &Party) -> Option<u64> {
        self.registrations.iter().find(|one| one.party == *party).map(|one| one.key)
    }

    fn holds(&self, party: &Party) -> bool {
        self.held.as_ref().is_some_and(|held| of_all_registrants(held.kind) || held.holder == *party)
    }

    pub(super) fn keys(&self) -> Vec<u64> {
        self.registrations.iter().map(|one| one.key).collect()
    }

    /// Key (0 with "all registrants") and type of the reservation.
    pub(super) fn held(&self) -> Option<(u64, u8)> {
        let held = self.held.as_ref()?;
        let key = if of_all_registrants(held.kind) { 0 } else { self.key_of(&held.holder).unwrap_or(0) };
        Some((key, held.kind))
    }

    /// All registrations, as READ FULL STATUS reports them.
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

    /// What has to be kept: nothing, or the READ FULL STATUS data.
    pub(super) fn record(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        if self.keep {
            FullStatus::emit_list(self.generation, &self.full_status(), &mut out);
        }
        out.into()
    }

    /// From a record.
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

    /// REGISTER, and REGISTER AND IGNORE EXISTING KEY. `ports` is the number of target ports.
    pub(super) fn register(
        &mut self,
        from: &Party,
        list: &OutParameters,
        ignore: bool,
        ports: u16,
    ) -> Result<Effects, Refusal> {
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
        let goes = if of_all_registrants(held.kind) { self.registrations.is_empty() } else { held.holder == *party };
        if goes {
            let kind = held.kind;
            self.held = None;
            if tells_registrants(kind) {
                self.tell_others(party, SenseCode::RESERVATIONS_RELEASED, effects);
            }
        }
    }

    fn tell_others(&self, except: &Party, code: SenseCode, effects: &mut Effects) {
        let others = self.registrations.iter().filter(|one| one.party != *except);
        effects.attentions.extend(others.map(|one| (one.party.clone(), code)));
    }

    /// RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT AND ABORT: what a registered party may do.
    pub(super) fn change(
        &mut self,
        from: &Party,
        action: u8,
        kind: u8,
        list: &OutParameters,
    ) -> Result<Effects, Refusal> {
        if self.key_of(from) != Some(list.key) {
            return Err(Refusal::Conflict);
        }
        match action {
            out_action::RESERVE => self.reserve(from, kind),
            out_action::RELEASE => self.release(from, kind),
            out_action::CLEAR => {
                let mut effects = Effects { changed: true, ..Effects::default() };
                self.tell_others(from, SenseCode::RESERVATIONS_PREEMPTED, &mut effects);
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
        if tells_registrants(kind) {
            self.tell_others(from, SenseCode::RESERVATIONS_RELEASED, &mut effects);
        }
        Ok(effects)
    }

    fn preempt(&mut self, from: &Party, kind: u8, victim: u64, abort: bool) -> Result<Effects, Refusal> {
        let all = self.held.as_ref().is_some_and(|held| of_all_registrants(held.kind));
        let holder_key = self.held.as_ref().and_then(|held| self.key_of(&held.holder));
        let everybody = all && victim == 0;
        if victim == 0 && !everybody {
            return Err(WRONG_LIST);
        }
        let takes_over = everybody || (!all && holder_key == Some(victim));
        let is_victim = |one: &Registration| one.party != *from && (everybody || one.key == victim);
        let anybody = self.registrations.iter().any(|one| everybody || one.key == victim);
        if !anybody {
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
            if before.is_some_and(|before| before != kind && tells_registrants(before)) {
                self.tell_others(from, SenseCode::RESERVATIONS_RELEASED, &mut effects);
            }
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(effects)
    }

    /// REGISTER AND MOVE.
    pub(super) fn register_and_move(&mut self, from: &Party, list: &MoveParameters) -> Result<Effects, Refusal> {
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
