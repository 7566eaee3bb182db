//! Fabric login: the F_Port's side of FLOGI, FDISC and LOGO (FC-LS, fabric login and N_Port_ID
//! virtualisation).
//!
//! ```text
//!                    FLOGI               FDISC
//!   port up, no id ---------> base id ------------> virtual ids
//!        ^                    |    ^  |
//!        | port down          |    +--+ FLOGI again: implicit logout of all ids, then as before
//!        +--------------------+
//! ```
//!
//! LOGO removes only the N_Port_ID that it names. An FDISC requires a base id, but virtual ids stay
//! logged in after the base id is gone.

use super::addresses::{Allocated, LoginKind};
use super::entry::NsEntry;
use super::peer::PeerUpdate;
use super::{Output, Switch};
use crate::config::{Addressing, DuplicateNames};
use crate::fabric::FibDelta;
use sanloom_scsi::time::Instant;
use sanloom_wire::els::{Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::login::ClassParameters;
use sanloom_wire::ns::{NsRecord, port_type};
use sanloom_wire::{FcId, Header, Wwpn, login};
use std::sync::Arc;

/// Smallest legal receive data field size, in bytes (FC-LS, common service parameters).
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;

impl Switch {
    /// Handles FLOGI. Returns the reply and its destination address, or `None` while the switch has
    /// no domain.
    pub(super) fn fabric_login(
        &mut self,
        now: Instant,
        port: u16,
        header: &Header,
        request: &login::Login,
    ) -> Option<(Result<LsAcc, LsRjt>, FcId)> {
        if let Err(reject) = check(request) {
            return Some((Err(reject), header.s_id));
        }
        if self.identity.domain.is_none() {
            self.out.counters.logins_held += 1;
            self.logins.hold(port, header, request);
            return None;
        }
        if self.logins.is_blocked(port) {
            return Some((Err(NAME_IN_USE), header.s_id));
        }
        if self.logins.is_loop(port) {
            return Some(self.loop_login(now, port, header.s_id, request));
        }
        self.log_out_port(now, port);
        let name = request.port_name;
        let preferred = self.logins.last_id(port, name);
        let id = match self.admit(now, port, LoginKind::Base, request, preferred) {
            Ok(id) => id,
            Err(reject) => return Some((Err(reject), header.s_id)),
        };
        let clean = self.logins.set_base(port, name, id);
        self.out.counters.fabric_logins += 1;
        Some((Ok(self.identity.login_accept(port, clean)), id))
    }

    /// Handles FDISC. Returns the reply and its destination address.
    pub(super) fn virtual_login(
        &mut self,
        now: Instant,
        port: u16,
        s_id: FcId,
        request: &login::Login,
    ) -> (Result<LsAcc, LsRjt>, FcId) {
        match self.virtual_id(now, port, s_id, request) {
            Ok(id) => {
                self.out.counters.virtual_logins += 1;
                (Ok(self.identity.login_accept(port, false)), id)
            }
            Err(reject) => (Err(reject), s_id),
        }
    }

    /// Allocates the N_Port_ID for an FDISC. If the FDISC repeats an earlier login, that login is
    /// removed first.
    fn virtual_id(&mut self, now: Instant, port: u16, s_id: FcId, request: &login::Login) -> Result<FcId, LsRjt> {
        check(request)?;
        let base =
            self.logins.base(port).ok_or(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))?;
        if s_id != FcId::ZERO {
            return Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_ORIGINATOR_S_ID));
        }
        if self.logins.is_blocked(port) {
            return Err(NAME_IN_USE);
        }
        let known = self.directory.objects.id_of(request.port_name);
        let repeated = known.filter(|id| self.logins.is_at(port, *id));
        if repeated == Some(base) {
            return Err(NAME_IN_USE);
        }
        if let Some(old) = repeated {
            // The accept was lost: the same N_Port_ID is allocated again after the first login is
            // removed.
            self.out.counters.implicit_logouts += 1;
            self.log_out(now, old);
        }
        self.admit(now, port, LoginKind::Virtual, request, repeated)
    }

    /// Admits a login if its name, the login limits and the free addresses permit it.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        port: u16,
        kind: LoginKind,
        request: &login::Login,
        preferred: Option<FcId>,
    ) -> Result<FcId, LsRjt> {
        let name = request.port_name;
        let in_use = self.directory.objects.find_name(name, self.policy.name_lookup, &mut self.out.work);
        let rule = self.policy.duplicate_names;
        if in_use.is_some() && rule != DuplicateNames::NewWins {
            self.out.counters.duplicate_names += 1;
            if rule == DuplicateNames::Block {
                self.out.counters.ports_blocked += 1;
                self.logins.block(port);
            }
            return Err(NAME_IN_USE);
        }
        let limits = self.policy.limits;
        let makes_room = in_use.is_some_and(|id| self.logins.contains(id));
        let port_full = self.logins.at_port(port).len() >= limits.per_port as usize;
        let switch_full = self.logins.len() - usize::from(makes_room) >= limits.per_switch as usize;
        let full = port_full || switch_full;
        let mut allocated = if full { None } else { self.addresses.allocate(now, port, kind, name, preferred) };
        if allocated.is_none() && !full && makes_room && self.policy.addressing == Addressing::Flat {
            self.evict_all(now, name);
            allocated = self.addresses.allocate(now, port, kind, name, preferred);
        }
        let Some(Allocated { id, learned }) = allocated else {
            let counters = &mut self.out.counters;
            counters.login_limits += 1;
            counters.port_limits += u64::from(port_full);
            counters.switch_limits += u64::from(switch_full && !port_full);
            return Err(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES));
        };
        if learned {
            self.out.push(Output::Persist { port_name: name, port_id: id });
        }
        self.enter(now, port, id, request);
        Ok(id)
    }

    pub(super) fn count_login(&mut self, answer: &Result<LsAcc, LsRjt>) {
        let Err(reject) = answer else { return };
        self.out.counters.logins_rejected += 1;
        self.out.counters.names_rejected += u64::from(*reject == NAME_IN_USE);
    }

    /// Handles LOGO to the F_Port. All state of the N_Port_ID is removed before the accept.
    pub(super) fn fabric_logout(&mut self, now: Instant, port: u16, logo: &Logo) -> Result<LsAcc, LsRjt> {
        if !self.logins.is_at(port, logo.port_id) {
            return Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_N_PORT_ID));
        }
        let name = self.directory.objects.get(logo.port_id).map(|known| known.entry.port_name);
        if name != Some(logo.port_name) {
            return Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
        }
        self.log_out(now, logo.port_id);
        self.out.counters.logouts += 1;
        Ok(LsAcc::Empty)
    }

    /// Logs out all N_Port_IDs of a port.
    pub(super) fn log_out_port(&mut self, now: Instant, port: u16) {
        let ids: Vec<FcId> = self.logins.at_port(port).collect();
        self.out.counters.implicit_logouts += ids.len() as u64;
        ids.into_iter().for_each(|id| self.log_out(now, id));
    }

    /// Removes every object with a port name that a login at this switch takes over.
    fn evict_all(&mut self, now: Instant, name: Wwpn) {
        while let Some(old) = self.directory.objects.id_of(name) {
            let is_remote = !self.logins.contains(old);
            self.evict(now, old);
            if is_remote {
                self.out.peer(PeerUpdate::Supersedes { port_id: old });
            }
        }
    }

    fn enter(&mut self, now: Instant, port: u16, id: FcId, request: &login::Login) {
        let name = request.port_name;
        self.evict_all(now, name);
        let class = |parameters: &ClassParameters, bit: u32| match parameters.flags & ClassParameters::VALID {
            0 => 0,
            _ => 1 << bit,
        };
        let record = NsRecord {
            port_id: id,
            port_type: if self.logins.is_loop(port) { port_type::NL_PORT } else { port_type::N_PORT },
            fcp_features: 0,
            listed: true,
            classes: class(&request.class_2, 2) | class(&request.class_3, 3),
            port_name: name,
            node_name: request.node_name,
            fabric_port_name: self.identity.f_port_name(port),
            types: [0; 8],
            extra: None,
        };
        let entry = NsEntry { record: Arc::new(record), logged_in_at: now };
        self.logins.insert(port, id);
        self.out.fib(FibDelta::OwnId { port, id });
        let (mut cx, directory, _) = self.services(now);
        directory.add_local(&mut cx, entry);
    }

    /// Removes all state of an N_Port_ID.
    pub(super) fn log_out(&mut self, now: Instant, id: FcId) {
        let port = self.logins.remove(id);
        if port.is_some() {
            self.addresses.release(id);
        }
        self.management.deregister(id);
        self.out.fib(FibDelta::RemoveId { id });
        let (mut cx, directory, _) = self.services(now);
        directory.remove_local(&mut cx, id, port);
    }

    /// Removes the object of a port whose name logged in elsewhere, when the other login has
    /// precedence.
    pub(super) fn evict(&mut self, now: Instant, old: FcId) {
        self.out.counters.duplicate_names += 1;
        if self.logins.contains(old) {
            self.out.counters.implicit_logouts += 1;
            self.log_out(now, old);
        } else {
            let (mut cx, directory, _) = self.services(now);
            directory.shadow(&mut cx, old);
        }
    }
}

/// Reject for a port name that another port, or the same port, already uses.
const NAME_IN_USE: LsRjt =
    LsRjt { reason: LsRjtReason::LOGICAL_ERROR, explanation: LsRjtExplanation::INVALID_PORT_NAME, vendor: 0 };

/// Checks the requirements of every login: names, class 3, and a legal receive size.
pub(super) fn check(request: &login::Login) -> Result<(), LsRjt> {
    let explanation = if request.port_name.0 == 0 {
        LsRjtExplanation::INVALID_PORT_NAME
    } else if request.node_name.0 == 0 {
        LsRjtExplanation::INVALID_NODE_NAME
    } else if request.common.receive_size_bytes < MIN_RECEIVE_SIZE_BYTES {
        LsRjtExplanation::RECEIVE_SIZE
    } else if request.class_3.flags & ClassParameters::VALID == 0 {
        LsRjtExplanation::OPTIONS
    } else {
        return Ok(());
    };
    Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, explanation))
}
