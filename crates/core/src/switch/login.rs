//! Fabric login: the F_Port's side of FLOGI, FDISC and LOGO (FC-LS, fabric login and N_Port_ID virtualisation).
//!
//! ```text
//!                    FLOGI               FDISC
//!   port up, no id ---------> base id ------------> virtual ids
//!        ^                    |    ^  |
//!        | port down          |    +--+ FLOGI again: implicit logout of all ids, then as before
//!        +--------------------+
//! ```
//!
//! LOGO ends the one id that it names. An FDISC needs the base id, the ids that it gave do not.

use super::addresses::{Taken, Wanted};
use super::database::{Known, scope};
use super::entry::NsEntry;
use super::peer::PeerUpdate;
use super::policy::{Addressing, DuplicateNames, NameLookup};
use super::{Login, Output, Switch};
use crate::fabric::FibDelta;
use crate::time::{Instant, Span};
use sanloom_wire::els::{Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::login::{ClassParameters, CommonParameters, feature};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Header, Wwnn, Wwpn, login};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Smallest legal receive data field size, in bytes (FC-LS, common service parameters).
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;

/// Domains that a switch may have (FC-SW, domain identifiers).
pub(super) const DOMAINS: RangeInclusive<u8> = 1..=239;

impl Switch {
    /// FLOGI: the reply, and the address to send it to; nothing while the switch has no domain.
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
        if self.domain.is_none() {
            self.hold(port, header, request);
            return None;
        }
        let name = request.port_name;
        if self.ports[usize::from(port)].blocked {
            return Some((Err(NAME_IN_USE), header.s_id));
        }
        self.log_out_port(now, port);
        let before = self.ports[usize::from(port)].last_login;
        let preferred = before.filter(|(of, _)| *of == name).map(|(_, id)| id);
        let id = match self.admit(now, port, Wanted::Base, request, preferred) {
            Ok(id) => id,
            Err(reject) => return Some((Err(reject), header.s_id)),
        };
        let state = &mut self.ports[usize::from(port)];
        state.base = Some(id);
        let clean = state.last_login.replace((name, id)) == Some((name, id));
        self.counters.fabric_logins += 1;
        Some((Ok(self.login_accept(port, clean)), id))
    }

    /// FDISC: the reply, and the address to send it to.
    pub(super) fn virtual_login(
        &mut self,
        now: Instant,
        port: u16,
        s_id: FcId,
        request: &login::Login,
    ) -> (Result<LsAcc, LsRjt>, FcId) {
        match self.virtual_id(now, port, s_id, request) {
            Ok(id) => {
                self.counters.virtual_logins += 1;
                (Ok(self.login_accept(port, false)), id)
            }
            Err(reject) => (Err(reject), s_id),
        }
    }

    /// The id that an FDISC gets, after a login that it repeats has gone.
    fn virtual_id(&mut self, now: Instant, port: u16, s_id: FcId, request: &login::Login) -> Result<FcId, LsRjt> {
        check(request)?;
        let state = &self.ports[usize::from(port)];
        let base = state.base.ok_or(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))?;
        if s_id != FcId::ZERO {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_ORIGINATOR_S_ID));
        }
        if state.blocked {
            return Err(NAME_IN_USE);
        }
        let repeated = self.database.id_of(request.port_name).filter(|id| self.knows(port, *id));
        if repeated == Some(base) {
            return Err(NAME_IN_USE);
        }
        if let Some(old) = repeated {
            // The accept was lost: the same id again, once what the first login had is gone.
            self.counters.implicit_logouts += 1;
            self.log_out(now, old);
        }
        self.admit(now, port, Wanted::Virtual, request, repeated)
    }

    /// Lets a port in, if its name, the limits and the addresses allow it.
    fn admit(
        &mut self,
        now: Instant,
        port: u16,
        wanted: Wanted,
        request: &login::Login,
        preferred: Option<FcId>,
    ) -> Result<FcId, LsRjt> {
        let name = request.port_name;
        let in_use = self.search_name(name);
        let rule = self.config.policy.duplicate_names;
        if in_use.is_some() && rule != DuplicateNames::NewWins {
            self.counters.duplicate_names += 1;
            if rule == DuplicateNames::Block {
                self.counters.ports_blocked += 1;
                self.ports[usize::from(port)].blocked = true;
            }
            return Err(NAME_IN_USE);
        }
        let limits = self.config.policy.limits;
        let makes_room = in_use.is_some_and(|id| self.logins.contains_key(&id));
        let port_full = self.ports[usize::from(port)].ids.len() >= limits.per_port as usize;
        let switch_full = self.logins.len() - usize::from(makes_room) >= limits.per_switch as usize;
        let full = port_full || switch_full;
        let mut taken = if full { None } else { self.addresses.take(now, port, wanted, name, preferred) };
        if taken.is_none() && !full && makes_room && self.config.policy.addressing == Addressing::Flat {
            self.evict_all(now, name);
            taken = self.addresses.take(now, port, wanted, name, preferred);
        }
        let Some(Taken { id, learned }) = taken else {
            self.counters.login_limits += 1;
            self.counters.port_limits += u64::from(port_full);
            self.counters.switch_limits += u64::from(switch_full && !port_full);
            return Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES));
        };
        if learned {
            self.outputs.push_back(Output::Persist { port_name: name, port_id: id });
        }
        self.enter(now, port, id, request);
        Ok(id)
    }

    pub(super) fn count_login(&mut self, answer: &Result<LsAcc, LsRjt>) {
        let Err(reject) = answer else { return };
        self.counters.logins_rejected += 1;
        self.counters.names_rejected += u64::from(*reject == NAME_IN_USE);
    }

    /// The port that has a name, found as [`NameLookup`] says.
    fn search_name(&mut self, name: Wwpn) -> Option<FcId> {
        match self.config.policy.name_lookup {
            NameLookup::Indexed => {
                self.work.names_searched += 1;
                self.database.id_of(name)
            }
            NameLookup::Linear => {
                let looked_at = &mut self.work.names_searched;
                let mut all = self.database.range(scope(0, 0)).inspect(|_| *looked_at += 1);
                all.find(|(_, known)| known.entry.port_name == name).map(|(id, _)| id)
            }
        }
    }

    /// LOGO to the F_Port: everything that the id had is gone before the accept.
    pub(super) fn fabric_logout(&mut self, now: Instant, port: u16, logo: &Logo) -> Result<LsAcc, LsRjt> {
        if !self.knows(port, logo.port_id) {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_N_PORT_ID));
        }
        let name = self.database.get(logo.port_id).map(|known| known.entry.port_name);
        if name != Some(logo.port_name) {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
        }
        self.log_out(now, logo.port_id);
        self.counters.logouts += 1;
        Ok(LsAcc::Empty)
    }

    /// Takes away all ids of a port.
    pub(super) fn log_out_port(&mut self, now: Instant, port: u16) {
        let ids: Vec<FcId> = self.ports[usize::from(port)].ids.iter().copied().collect();
        self.counters.implicit_logouts += ids.len() as u64;
        ids.into_iter().for_each(|id| self.log_out(now, id));
    }

    fn evict_all(&mut self, now: Instant, name: Wwpn) {
        while let Some(old) = self.database.id_of(name) {
            let elsewhere = !self.logins.contains_key(&old);
            self.evict(now, old);
            if elsewhere {
                self.outputs.push_back(Output::Peer(PeerUpdate::Supersedes { port_id: old }));
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
        let entry = Arc::new(NsEntry {
            port_id: id,
            port_type: port_type::N_PORT,
            fcp_features: 0,
            listed: true,
            classes: class(&request.class_2, 2) | class(&request.class_3, 3),
            port_name: name,
            node_name: request.node_name,
            fabric_port_name: self.f_port_name(port),
            types: [0; 8],
            logged_in_at: now,
            extra: None,
        });
        self.logins.insert(id, Login { port, ..Login::default() });
        self.ports[usize::from(port)].ids.insert(id);
        let place = self.config.zoning.place(&entry.identity());
        self.database.insert(Known { entry: entry.clone(), place: place.clone() });
        self.fib(FibDelta::OwnId { port, id });
        self.permit(id, &place);
        self.publish(&entry);
        self.notify(now, id, &place, false);
    }

    /// Takes away everything that an id had.
    pub(super) fn log_out(&mut self, now: Instant, id: FcId) {
        let port = self.logins.remove(&id).map(|login| login.port);
        if let Some(port) = port {
            let state = &mut self.ports[usize::from(port)];
            state.ids.remove(&id);
            state.base.take_if(|base| *base == id);
            self.addresses.release(id);
        }
        self.rscn.forget(id);
        self.management.forget(id);
        self.fib(FibDelta::RemoveId { id });
        let known = self.database.remove(id);
        if let Some(known) = &known {
            self.revoke(id, &known.place, port);
            self.notify(now, id, &known.place, false);
        }
        self.outputs.push_back(Output::Peer(PeerUpdate::Removed { port_id: id }));
        if let Some(known) = known {
            self.name_free(now, known.entry.port_name);
        }
    }

    /// Service parameters of the F_Port (FC-LS, FLOGI accept). `clean`: address and names are those of the previous login,
    /// so that nobody has to forget the port first.
    fn login_accept(&self, port: u16, clean: bool) -> LsAcc {
        let clean = if clean { feature::CLEAN_ADDRESS } else { 0 };
        LsAcc::Login(login::Login {
            common: CommonParameters {
                highest_version: FC_PH_3,
                lowest_version: FC_PH_3,
                bb_credit: self.config.bb_credit.get(usize::from(port)).copied().unwrap_or(0),
                features: feature::F_PORT | feature::NPIV_SUPPORTED | clean,
                bb_sc_n: 0,
                receive_size_bytes: self.config.receive_size_bytes,
                word_8: milliseconds(self.config.r_a_tov),
                e_d_tov: milliseconds(self.config.e_d_tov),
            },
            port_name: self.f_port_name(port),
            node_name: self.config.fabric_name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: CLASS_3, ..ClassParameters::default() },
        })
    }

    /// Name of an F_Port, see [`port_name`].
    pub(super) fn f_port_name(&self, port: u16) -> Wwpn {
        port_name(self.config.name, port)
    }
}

/// Version of the common service parameters that hosts send and expect.
pub(super) const FC_PH_3: u8 = 0x20;
/// Class 3 is offered, and frames of a sequence stay in order.
pub(super) const CLASS_3: u16 = ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY;

/// An IEEE extended name (format 2): twelve bits of ours before the 48 bits of `name`.
pub(super) fn extended_name(name: u64, number: u16) -> Wwpn {
    Wwpn(0x2 << 60 | u64::from(number & 0xfff) << 48 | name & 0xffff_ffff_ffff)
}

/// Name of a port of a switch, of which no two have the same: its number is in it, and comes out again in
/// `port_number`.
///
/// Ports up to 3,839 are extended names (format 2) of the switch, with the number in the twelve vendor bits; the numbers
/// from F00h on are those of its services. Higher ports are EUI-64 mapped names (FC-FS, name identifier formats C to F):
/// 22 bits of the company, and 40 bits that are the 24 of the switch and 16 of the port.
pub fn port_name(switch: Wwnn, port: u16) -> Wwpn {
    if port < FIRST_SERVICE {
        return extended_name(switch.0, port);
    }
    let (company, of_company) = (switch.0 >> 24 & 0xff_ffff, switch.0 & 0xff_ffff);
    let mapped_company = company >> 18 << 16 | company & 0xffff;
    Wwpn(0b11 << 62 | mapped_company << 40 | of_company << 16 | u64::from(port))
}

/// The number in a [`port_name`], nothing for a name of another format.
pub(super) fn port_number(name: Wwpn) -> Option<u16> {
    match name.0 >> 60 {
        0x2 => Some((name.0 >> 48 & 0xfff) as u16),
        0xc..=0xf => Some(name.0 as u16),
        _ => None,
    }
}

/// The lowest number of an extended name that may be that of a service; theirs are the last three digits of their addresses.
const FIRST_SERVICE: u16 = 0xf00;

pub(super) fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.as_ms()).unwrap_or(u32::MAX)
}

/// Another port has the name, or the port already has it.
const NAME_IN_USE: LsRjt =
    LsRjt { reason: LsRjtReason::LOGICAL_ERROR, explanation: LsRjtExplanation::INVALID_PORT_NAME, vendor: 0 };

pub(super) fn reject(reason: LsRjtReason, explanation: LsRjtExplanation) -> LsRjt {
    LsRjt::new(reason, explanation)
}

/// What every login must bring: names, class 3, and a legal receive size.
pub(super) fn check(request: &login::Login) -> Result<(), LsRjt> {
    let wrong = if request.port_name.0 == 0 {
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
    Err(reject(LsRjtReason::LOGICAL_ERROR, wrong))
}
