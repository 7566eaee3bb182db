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
//! that the name server lists, and does not answer at its address 0000xx.
//!
//! After an initialisation that did not change the AL_PA, the port waits for FAN of the FL_Port
//! (FC-FLA, fabric address notification). If the addresses and names of the FL_Port are those of
//! the login, the port keeps its address, verifies its remote ports, and repeats the query for
//! targets because it may have missed an RSCN. If they differ, or FAN does not arrive within 2
//! LP_TOV, all logins end and FLOGI follows.

use super::NPort;
use super::discovery::Discovery;
use super::exchanges::Exchanges;
use super::fabric::{Consequence, FabricState, Topology};
use super::logins::RemoteLogins;
use super::remote::{RemoteState, flag};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, Fan};
use sanloom_wire::login::Login;
use sanloom_wire::{FcId, FcType, Header, Message, Payload, RCtl, Wwnn, Wwpn};

/// Time limit for FAN after a loop initialisation: 2 LP_TOV, which is 2 s (assumption).
const FAN_LIMIT: Span = Span::from_secs(4);
/// Bits of an address that are equal for all ports of a public loop: domain and area.
const LOOP_ADDRESS: u32 = 0xff_ff00;

/// FL_Port with which the port is logged in, as FAN describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attachment {
    loop_fabric_address: FcId,
    fabric_port_name: Wwpn,
    fabric_name: Wwnn,
}

impl Attachment {
    /// FL_Port that assigned `port_id` with this accept of FLOGI.
    pub(super) fn of(port_id: FcId, accept: &Login) -> Attachment {
        Attachment {
            loop_fabric_address: FcId::new(port_id.to_u32() & LOOP_ADDRESS),
            fabric_port_name: accept.port_name,
            fabric_name: accept.node_name,
        }
    }

    fn is_confirmed_by(&self, fan: &Fan) -> bool {
        // The low byte of the loop fabric address is the AL_PA of the FL_Port.
        self.loop_fabric_address.to_u32() == fan.loop_fabric_address.to_u32() & LOOP_ADDRESS
            && self.fabric_port_name == fan.fabric_port_name
            && self.fabric_name == fan.fabric_name
    }
}

/// State that only a port on a loop has.
#[derive(Debug, Default)]
pub(super) struct LoopState {
    /// A loop initialisation is in progress, or FAN is awaited, so no request is sent.
    pub(super) suspended: bool,
    /// Time at which the wait for FAN ends.
    pub(super) fan_limit: Option<Instant>,
    /// FAN that arrived before the end of the initialisation was reported.
    early_fan: Option<Fan>,
    /// FL_Port of the fabric login.
    pub(super) attachment: Option<Attachment>,
}

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

    /// Schedules the actions of all remote ports after their exchanges were closed. Logins in
    /// progress begin again.
    fn repeat_interrupted(&mut self, now: Instant) {
        for remote in self.remotes.iter_mut() {
            match remote.state {
                RemoteState::Checking => remote.state = RemoteState::Up,
                RemoteState::Plogi | RemoteState::Prli => remote.state = RemoteState::Waiting,
                RemoteState::Waiting | RemoteState::LoggedIn | RemoteState::Up => {}
            }
            remote.tries = 0;
        }
        self.schedule_all(now);
    }

    /// Schedules the verification of all process logins.
    pub(super) fn verify_all(&mut self, now: Instant) {
        self.remotes.iter_mut().filter(|remote| remote.state.is_up()).for_each(|remote| remote.set(flag::AFFECTED));
        self.schedule_all(now);
    }

    fn schedule_all(&mut self, now: Instant) {
        let all: Vec<FcId> = self.remotes.iter().map(|remote| remote.port_id).collect();
        all.into_iter().for_each(|port_id| self.schedule(now, port_id));
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
    /// Returns true from [`Input::LoopInterrupted`](super::Input::LoopInterrupted) until the next
    /// [`Input::LoopUp`](super::Input::LoopUp), and on a public loop until FAN or the new fabric
    /// login. The port sends no requests in this time, and the remote ports are not verified.
    pub fn is_suspended(&self) -> bool {
        self.fabric.on_loop.suspended
    }

    /// Handles the end of a loop initialisation.
    pub(super) fn on_loop_up(&mut self, now: Instant, port_id: FcId, public: bool, others: &[FcId]) {
        if self.exchanges.identity.config.virtual_port.is_some() {
            return;
        }
        let topology = if public { Topology::PublicLoop } else { Topology::PrivateLoop };
        let is_known = self.fabric.topology() == topology
            && self.fabric.state() != FabricState::Logo
            && self.port_id() != FcId::ZERO
            && self.exchanges.identity.loop_id == Some(port_id);
        match (public, is_known) {
            (false, true) => {
                self.interrupt();
                self.fabric.on_loop.suspended = false;
            }
            (false, false) => {
                self.leave_medium(now, topology, port_id);
                self.fabric.join(topology, port_id, &mut self.exchanges);
            }
            (true, true) => return self.wait_for_fan(now),
            (true, false) => return self.log_in_on_loop(now, port_id),
        }
        self.logins.replace_loop_ports(now, others, &mut self.exchanges);
    }

    /// Ends all logins and begins with this address of a loop.
    fn leave_medium(&mut self, now: Instant, topology: Topology, loop_id: FcId) {
        self.apply(now, Consequence::Offline);
        self.fabric.topology = topology;
        self.exchanges.identity.loop_id = Some(loop_id);
    }

    /// Ends all logins and sends FLOGI on a public loop.
    fn log_in_on_loop(&mut self, now: Instant, loop_id: FcId) {
        self.leave_medium(now, Topology::PublicLoop, loop_id);
        let consequence = self.fabric.start(now, &mut self.exchanges);
        self.apply(now, consequence);
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
        self.fabric.on_loop.suspended = true;
    }

    /// Closes all exchanges. The records of remote ports stay.
    fn interrupt(&mut self) {
        self.exchanges.pending.clear();
        self.discovery = Discovery::default();
        self.fabric.cancel_retry();
        self.fabric.on_loop.fan_limit = None;
        self.fabric.on_loop.early_fan = None;
        self.logins.cancel_scheduled();
    }

    /// Waits for FAN, unless it has arrived.
    fn wait_for_fan(&mut self, now: Instant) {
        let early_fan = self.fabric.on_loop.early_fan;
        self.interrupt();
        self.fabric.on_loop.suspended = true;
        self.fabric.on_loop.fan_limit = Some(now + FAN_LIMIT);
        if let Some(fan) = early_fan {
            self.on_fan(now, fan);
        }
    }

    /// Returns true if the frame is a FAN of the FL_Port for this port.
    pub(super) fn is_fan(&self, header: &Header, payload: &Payload) -> bool {
        let is_fan = || match payload {
            Payload::Typed(Message::Els(els)) => matches!(**els, Els::Fan(_)),
            _ => false,
        };
        self.fabric.topology() == Topology::PublicLoop
            && self.port_id() != FcId::ZERO
            && (header.s_id, header.d_id) == (FcId::F_PORT, self.port_id())
            && (header.fc_type, header.r_ctl) == (FcType::ELS, RCtl::ELS_REQUEST)
            && is_fan()
    }

    /// Handles a frame with FAN, which has no reply.
    pub(super) fn on_fan_frame(&mut self, now: Instant, payload: Payload) {
        if let Payload::Typed(Message::Els(els)) = payload
            && let Els::Fan(fan) = *els
        {
            self.on_fan(now, fan);
        }
    }

    fn on_fan(&mut self, now: Instant, fan: Fan) {
        let on_loop = &mut self.fabric.on_loop;
        if on_loop.suspended && on_loop.fan_limit.is_none() {
            on_loop.early_fan = Some(fan);
            return;
        }
        let is_confirmed = on_loop.attachment.is_some_and(|attachment| attachment.is_confirmed_by(&fan));
        match self.exchanges.identity.loop_id {
            Some(loop_id) if !is_confirmed => self.log_in_on_loop(now, loop_id),
            _ if on_loop.fan_limit.is_some() => self.resume(now),
            _ => {}
        }
    }

    /// Continues with the fabric login as it was before the initialisation.
    fn resume(&mut self, now: Instant) {
        self.fabric.on_loop.suspended = false;
        self.fabric.on_loop.fan_limit = None;
        self.logins.repeat_interrupted(now);
        let consequence = self.fabric.enter(now, self.fabric.state(), &mut self.exchanges);
        self.apply(now, consequence);
    }

    /// Ends the wait for FAN if its time limit is over.
    pub(super) fn on_fan_timeout(&mut self, now: Instant) {
        if self.fabric.on_loop.fan_limit.is_some_and(|limit| limit <= now)
            && let Some(loop_id) = self.exchanges.identity.loop_id
        {
            self.log_in_on_loop(now, loop_id);
        }
    }
}
