//! FL_Port: a port of the switch on an arbitrated loop (FC-AL-2, with the login rules of FC-FLA as
//! far as public manuals describe them).
//!
//! All NL_Ports of a loop share domain and area. An NL_Port sends FLOGI from 0000xx and gets
//! DDAAxx. Each is logged in like an NPIV port: with its own name-server object, sessions and
//! permissions. A private NL_Port sends no FLOGI and never appears.
//!
//! [`Input::LoopUp`](super::Input::LoopUp) ends the logins of the AL_PAs that are gone, and sends
//! FAN to the others. FDISC is rejected because no login of a loop is the base of virtual ones
//! (assumption).
//!
//! The switch cannot check frames between two NL_Ports of a loop, because they do not pass the
//! FL_Port.

use super::Switch;
use super::addresses::LoginKind;
use crate::fabric::{FibDelta, PortMode};
use sanloom_scsi::time::Instant;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::els::{Els, Fan, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::{FcId, login};
use std::collections::BTreeSet;

impl Switch {
    /// Handles the end of a loop initialisation at a port.
    pub(super) fn loop_up(&mut self, now: Instant, port: u16, al_pas: &[AlPa]) {
        if port >= self.logins.port_count() {
            return;
        }
        if !self.logins.is_loop(port) {
            self.set_port(now, port, PortMode::F);
            self.out.fib(FibDelta::LoopPort { port, is_loop: true });
        }
        let al_pas: BTreeSet<u8> = al_pas.iter().map(|al_pa| al_pa.value()).filter(|&al_pa| al_pa != 0).collect();
        let is_gone = |id: &FcId| !al_pas.contains(&id.port());
        let (gone, present): (Vec<FcId>, Vec<FcId>) = self.logins.at_port(port).partition(is_gone);
        self.logins.set_loop(port, al_pas);
        self.out.counters.implicit_logouts += gone.len() as u64;
        gone.into_iter().for_each(|id| self.log_out(now, id));
        for id in present {
            let fan = Fan {
                loop_fabric_address: FcId::from_parts(id.domain(), id.area(), AlPa::FL_PORT.value()),
                fabric_port_name: self.identity.f_port_name(port),
                fabric_name: self.identity.fabric_name,
            };
            let ox_id = self.directory.controller.queue.ox_id();
            self.out.els_request(port, FcId::F_PORT, id, ox_id, Els::Fan(fan));
        }
    }

    /// Handles FLOGI of an NL_Port with the address 0000xx. Returns the reply and its destination
    /// address.
    pub(super) fn loop_login(
        &mut self,
        now: Instant,
        port: u16,
        s_id: FcId,
        request: &login::Login,
    ) -> (Result<LsAcc, LsRjt>, FcId) {
        match self.loop_id(now, port, s_id, request) {
            Ok(id) => {
                self.out.counters.fabric_logins += 1;
                (Ok(self.identity.loop_login_accept(port)), id)
            }
            Err(reject) => (Err(reject), s_id),
        }
    }

    /// Allocates the N_Port_ID of an NL_Port. Earlier logins at its AL_PA or with its name end
    /// first.
    fn loop_id(&mut self, now: Instant, port: u16, s_id: FcId, request: &login::Login) -> Result<FcId, LsRjt> {
        if !self.logins.may_log_in(port, s_id) {
            return Err(LsRjt::new(LsRjtReason::LOGICAL_ERROR, LsRjtExplanation::INVALID_ORIGINATOR_S_ID));
        }
        let name = self.directory.objects.id_of(request.port_name);
        let is_replaced = |id: &FcId| id.port() == s_id.port() || Some(*id) == name;
        let replaced: Vec<FcId> = self.logins.at_port(port).filter(is_replaced).collect();
        self.out.counters.implicit_logouts += replaced.len() as u64;
        replaced.into_iter().for_each(|id| self.log_out(now, id));
        self.admit(now, port, LoginKind::Loop(s_id.port()), request, None)
    }
}
