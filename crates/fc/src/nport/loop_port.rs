//! Arbitrated loop (FC-AL-2, with the login rules of FC-PLDA and FC-FLA, as far as public manuals
//! describe them).
//!
//! **Private loop.** The address of the loop initialisation is the N_Port_ID. An initiator logs in
//! to each port of the position map, a bounded number at a time. A port that refuses a login is
//! left alone until the next initialisation, like a port without the target function. Targets wait
//! for logins.
//!
//! After an initialisation that did not change the own address, the logins are verified with ADISC
//! from both sides (assumption: a standard target waits for the ADISC of the initiator and ends the
//! login after RR_TOV).
//!
//! **Public loop.** The port sends FLOGI from 0000xx. The fabric returns DDAAxx with the same
//! AL_PA. A public port leaves private devices of its loop alone: it logs in only to the targets
//! that the name server lists.

use super::NPort;
use super::discovery::Discovery;
use super::exchanges::Exchanges;
use super::fabric::{Consequence, FabricState, Topology};
use super::logins::RemoteLogins;
use super::remote::{RemoteState, flag};
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};

impl RemoteLogins {
    /// Schedules the logins with the ports of a private loop. Known ports in `others` are verified,
    /// or log in again if their process login is not complete. The rest is removed.
    fn replace_loop_ports(&mut self, now: Instant, others: &[FcId], exchanges: &mut Exchanges) {
        let is_gone = |port_id: &FcId| !others.contains(port_id);
        let gone: Vec<FcId> = self.remotes.iter().map(|remote| remote.port_id).filter(is_gone).collect();
        for port_id in gone {
            self.remove(port_id, exchanges);
        }
        let initiator = exchanges.identity.config.initiator;
        let own = exchanges.identity.port_id;
        for &port_id in others.iter().filter(|&&port_id| port_id != own && port_id != FcId::ZERO) {
            if initiator {
                self.remotes.get_or_insert(port_id, RemoteState::Waiting).set(flag::DISCOVERED);
            }
            let Some(remote) = self.remotes.get_mut(port_id) else {
                continue;
            };
            if remote.state.is_up() {
                remote.state = RemoteState::Up;
                remote.set(flag::AFFECTED);
            } else if initiator {
                remote.state = RemoteState::Waiting;
                remote.wwpn = Wwpn(0);
            }
            remote.tries = 0;
            self.schedule(now, port_id);
        }
    }

    /// Ends the login with a port that has moved, and logs in to the port that has its address now.
    pub(super) fn log_in_to_successor(&mut self, now: Instant, port_id: FcId, exchanges: &mut Exchanges) {
        self.lose(now, port_id, exchanges);
        if let Some(remote) = self.remotes.get_mut(port_id) {
            remote.wwpn = Wwpn(0);
            remote.tries = 0;
            self.schedule(now, port_id);
        }
    }

    /// Ends the attempts to log in to a port that refuses PLOGI or PRLI. An N_Port login that it
    /// accepted stays.
    pub(super) fn leave_alone(&mut self, port_id: FcId, exchanges: &mut Exchanges) {
        match self.remotes.get_mut(port_id) {
            Some(remote) if remote.state == RemoteState::Prli => remote.state = RemoteState::LoggedIn,
            _ => self.remove(port_id, exchanges),
        }
    }
}

impl NPort {
    /// Returns true between [`Input::LoopInterrupted`](super::Input::LoopInterrupted) and the next
    /// [`Input::LoopUp`](super::Input::LoopUp), while the port sends no requests.
    pub fn is_suspended(&self) -> bool {
        self.fabric.suspended
    }

    /// Handles the end of a loop initialisation.
    pub(super) fn on_loop_up(&mut self, now: Instant, port_id: FcId, public: bool, others: &[FcId]) {
        if self.exchanges.identity.config.virtual_port.is_some() {
            return;
        }
        let topology = if public { Topology::PublicLoop } else { Topology::PrivateLoop };
        let is_known = self.fabric.state() == FabricState::Ready
            && self.fabric.topology() == Topology::PrivateLoop
            && self.port_id() == port_id;
        if public || !is_known {
            self.apply(now, Consequence::Offline);
        }
        self.exchanges.identity.loop_id = Some(port_id);
        self.fabric.topology = topology;
        if public {
            let consequence = self.fabric.start(now, &mut self.exchanges);
            return self.apply(now, consequence);
        }
        match is_known {
            true => self.interrupt(),
            false => self.fabric.join(topology, port_id, &mut self.exchanges),
        }
        self.fabric.suspended = false;
        self.logins.replace_loop_ports(now, others, &mut self.exchanges);
    }

    /// Handles the begin of a loop initialisation.
    pub(super) fn on_loop_interrupted(&mut self, now: Instant) {
        if !self.fabric.topology().is_loop() {
            return;
        }
        if self.fabric.state() == FabricState::Logo {
            return self.apply(now, Consequence::Offline);
        }
        self.interrupt();
        self.fabric.suspended = true;
    }

    /// Closes all exchanges. The records of remote ports stay.
    fn interrupt(&mut self) {
        self.exchanges.pending.clear();
        self.discovery = Discovery::default();
        self.fabric.cancel_retry();
        self.logins.cancel_scheduled();
    }
}
