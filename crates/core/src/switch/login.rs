//! Fabric login: the F_Port's side of FLOGI, FDISC and LOGO (FC-LS, fabric login and N_Port_ID virtualisation).
//!
//! ```text
//!                    FLOGI                     FDISC
//!   port up, no id ---------> base id dd/pp/00 ------> virtual ids dd/pp/01 to FF
//!        ^                       |    ^  |
//!        | port down             |    +--+ FLOGI again: implicit logout of all ids, then as before
//!        +-----------------------+
//! ```
//!
//! LOGO ends the one id that it names. An FDISC needs the base id, the ids that it gave do not.

use super::database::Known;
use super::entry::NsEntry;
use super::peer::PeerUpdate;
use super::{Login, Output, Switch};
use crate::fabric::FibDelta;
use crate::time::{Instant, Span};
use sanloom_wire::els::{Logo, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::login::{ClassParameters, CommonParameters, feature};
use sanloom_wire::ns::port_type;
use sanloom_wire::{FcId, Wwpn, login};
use std::sync::Arc;

/// Smallest legal receive data field size, in bytes (FC-LS, common service parameters).
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;

impl Switch {
    /// FLOGI: the reply, and the address to send it to.
    pub(super) fn fabric_login(
        &mut self,
        now: Instant,
        port: u16,
        s_id: FcId,
        request: &login::Login,
    ) -> (Result<LsAcc, LsRjt>, FcId) {
        let Ok(area) = u8::try_from(port) else {
            return (Err(reject(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES)), s_id);
        };
        if let Err(reject) = check(request) {
            return (Err(reject), s_id);
        }
        let id = FcId::from_parts(self.config.domain, area, 0);
        let state = &mut self.ports[usize::from(port)];
        let clean = state.last_login.replace(request.port_name) == Some(request.port_name);
        self.log_out_port(now, port);
        self.enter(now, port, id, request);
        self.counters.fabric_logins += 1;
        (Ok(self.login_accept(port, clean)), id)
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
                self.enter(now, port, id, request);
                self.counters.virtual_logins += 1;
                (Ok(self.login_accept(port, false)), id)
            }
            Err(reject) => (Err(reject), s_id),
        }
    }

    /// The id that an FDISC gets: the lowest that is free, after a login that it repeats has gone.
    fn virtual_id(&mut self, now: Instant, port: u16, s_id: FcId, request: &login::Login) -> Result<FcId, LsRjt> {
        check(request)?;
        let base = u8::try_from(port)
            .map(|area| FcId::from_parts(self.config.domain, area, 0))
            .ok()
            .filter(|base| self.logins.contains_key(base))
            .ok_or(reject(LsRjtReason::UNABLE, LsRjtExplanation::N_PORT_LOGIN_REQUIRED))?;
        if s_id != FcId::ZERO {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_ORIGINATOR_S_ID));
        }
        let same_name = self.database.id_of(request.port_name);
        if same_name == Some(base) {
            return Err(reject(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_PORT_NAME));
        }
        let of_this_port = same_name.filter(|id| self.knows(port, *id));
        if let Some(old) = of_this_port {
            // The accept was lost: the same id again, once what the first login had is gone.
            self.counters.implicit_logouts += 1;
            self.log_out(now, old);
            return Ok(old);
        }
        let of_port = |n: u8| FcId::from_parts(base.domain(), base.area(), n);
        let taken = self.logins.range(base..=of_port(u8::MAX)).map(|(id, _)| u16::from(id.port()));
        let without_gap = taken.zip(0u16..).take_while(|(id, n)| id == n).count();
        u8::try_from(without_gap)
            .map(of_port)
            .map_err(|_| reject(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES))
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
        let Ok(area) = u8::try_from(port) else { return };
        let domain = self.config.domain;
        let area = FcId::from_parts(domain, area, 0)..=FcId::from_parts(domain, area, 0xff);
        let ids: Vec<FcId> = self.logins.range(area).map(|(id, _)| *id).collect();
        self.counters.implicit_logouts += ids.len() as u64;
        ids.into_iter().for_each(|id| self.log_out(now, id));
    }

    fn enter(&mut self, now: Instant, port: u16, id: FcId, request: &login::Login) {
        let name = request.port_name;
        while let Some(old) = self.database.id_of(name) {
            self.evict(now, old);
        }
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
        let place = self.config.zoning.place(&entry.identity());
        self.database.insert(Known { entry: entry.clone(), place: place.clone() });
        self.fib(FibDelta::OwnId { port, id });
        self.permit(id, &place);
        self.publish(&entry);
        self.notify(now, id, &place, false);
    }

    /// Takes away everything that an id had.
    pub(super) fn log_out(&mut self, now: Instant, id: FcId) {
        self.logins.remove(&id);
        self.rscn.forget(id);
        self.fib(FibDelta::RemoveId { id });
        let known = self.database.remove(id);
        if let Some(known) = &known {
            self.revoke(id, &known.place);
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

    /// Name of an F_Port: the name of the switch as an extended name, with the port in its twelve vendor bits.
    pub(super) fn f_port_name(&self, port: u16) -> Wwpn {
        extended_name(self.config.name.0, port)
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

/// The twelve bits of [`extended_name`], nothing for a name of another format.
pub(super) fn extended_number(name: Wwpn) -> Option<u16> {
    (name.0 >> 60 == 0x2).then_some((name.0 >> 48 & 0xfff) as u16)
}

pub(super) fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.as_ms()).unwrap_or(u32::MAX)
}

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
