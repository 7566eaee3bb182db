//! FLOGI, FDISC and LOGO: from FIP to the switch, and its answers back into FIP.

use super::config::Event;
use super::enodes::{Accepted, VfPort, VnPort};
use super::{Fcf, Timer};
use crate::fabric_switch;
use crate::fip::{BindingChange, Discard};
use crate::switch::PortKind;
use crate::time::Instant;
use sanloom_wire::els::{Els, Logo, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, RCtl, Wwpn};
use std::collections::BTreeSet;

/// A request that the switch has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) service: LinkService,
    /// Where the answer goes; nothing if the request was made here.
    pub(super) to: Option<MacAddr>,
    /// S_ID of the request.
    pub(super) s_id: FcId,
    /// Port name in the request.
    pub(super) name: Wwpn,
}

/// Requests that may wait for the switch at the same time.
const MOST_PENDING: usize = 4096;

impl Fcf {
    /// A request of an ENode in FIP.
    pub(super) fn link_service(&mut self, now: Instant, from: MacAddr, packet: Fip) -> Result<(), Discard> {
        if !self.config.enodes {
            return Err(Discard::UnexpectedOperation);
        }
        let flags = packet.flags;
        let Some((service, frame)) = only_link_service(packet) else {
            return Err(Discard::Descriptors);
        };
        let header = frame.header;
        let Payload::Typed(Message::Els(els)) = &frame.payload else {
            return Err(Discard::Descriptors);
        };
        if header.d_id != FcId::F_PORT || header.r_ctl != RCtl::ELS_REQUEST {
            return Err(Discard::Descriptors);
        }
        match (service, &**els) {
            (LinkService::Flogi, Els::Flogi(login)) => {
                let name = login.port_name;
                self.flogi(now, from, flags, name, frame)
            }
            (LinkService::Fdisc, Els::Fdisc(login)) => {
                let name = login.port_name;
                self.fdisc(now, from, flags, name, frame)
            }
            (LinkService::Logo, Els::Logo(_)) => self.logo(now, from, frame),
            _ => Err(Discard::Descriptors),
        }
    }

    fn flogi(&mut self, now: Instant, from: MacAddr, flags: u16, name: Wwpn, frame: Frame) -> Result<(), Discard> {
        let header = frame.header;
        self.strangers.forget(from);
        let known = self.enodes.get(&from).copied();
        let accepted = known.and_then(|port| self.vf_ports.get(&port)).and_then(|vf| vf.accepted.as_deref());
        if let Some(same) = accepted.filter(|last| last.ox_id == header.ox_id && last.name == name && now < last.until)
        {
            let reply = same.reply.clone();
            self.outputs.push_back(super::Output::Fip(reply));
            return Ok(());
        }
        if flags & flag::FPMA == 0 {
            self.refuse(LinkService::Flogi, from, &header, WRONG_ADDRESSING);
            return Ok(());
        }
        let Some(port) = known.or_else(|| self.open_vf_port(from)) else {
            self.refuse(LinkService::Flogi, from, &header, NO_PORT);
            return Err(Discard::NoRoom);
        };
        self.expect_enode(now, port);
        self.ask_switch(now, port, LinkService::Flogi, Some(from), name, frame)
    }

    fn open_vf_port(&mut self, mac: MacAddr) -> Option<u16> {
        let port = self.pool.take(mac)?;
        self.vf_ports.insert(port, VfPort { mac, ids: BTreeSet::new(), accepted: None });
        self.enodes.insert(mac, port);
        self.switch(fabric_switch::Input::PortUp { port, kind: PortKind::F });
        self.event(Event::EnodeUp { port, mac });
        Some(port)
    }

    fn fdisc(&mut self, now: Instant, from: MacAddr, flags: u16, name: Wwpn, frame: Frame) -> Result<(), Discard> {
        let Some(port) = self.enodes.get(&from).copied() else {
            self.refuse(LinkService::Fdisc, from, &frame.header, NO_LOGIN);
            return Err(Discard::NotLoggedIn);
        };
        if flags & flag::FPMA == 0 {
            self.refuse(LinkService::Fdisc, from, &frame.header, WRONG_ADDRESSING);
            return Ok(());
        }
        self.ask_switch(now, port, LinkService::Fdisc, Some(from), name, frame)
    }

    /// LOGO comes from the ENode, or from the VN_Port itself.
    fn logo(&mut self, now: Instant, from: MacAddr, frame: Frame) -> Result<(), Discard> {
        let s_id = frame.header.s_id;
        let Some(vn_port) = self.vn_ports.get(&s_id).copied() else {
            self.refuse(LinkService::Logo, from, &frame.header, UNKNOWN_ID);
            return Err(Discard::NotLoggedIn);
        };
        if self.enodes.get(&from) != Some(&vn_port.port) && from != self.fpma(s_id) {
            return Err(Discard::Spoofed);
        }
        self.ask_switch(now, vn_port.port, LinkService::Logo, Some(from), vn_port.name, frame)
    }

    fn ask_switch(
        &mut self,
        now: Instant,
        port: u16,
        service: LinkService,
        to: Option<MacAddr>,
        name: Wwpn,
        frame: Frame,
    ) -> Result<(), Discard> {
        let Header { s_id, ox_id, .. } = frame.header;
        self.wait_for_switch(now, port, ox_id, Pending { service, to, s_id, name })?;
        self.switch(fabric_switch::Input::Frame { port, frame });
        Ok(())
    }

    /// Remembers a request until the switch answers, or has not for long enough.
    pub(super) fn wait_for_switch(
        &mut self,
        now: Instant,
        port: u16,
        ox_id: u16,
        pending: Pending,
    ) -> Result<(), Discard> {
        let key = (port, ox_id);
        if self.pending.insert(key, pending).is_some() {
            return Ok(());
        }
        if self.pending_until.len() >= MOST_PENDING {
            self.pending.remove(&key);
            return Err(Discard::NoRoom);
        }
        let until = now + self.config.r_a_tov.times(2);
        self.pending_until.push_back((until, key));
        self.alarms.set_earlier(Timer::Pending, until);
        Ok(())
    }

    /// Takes the request that an answer of the switch belongs to.
    pub(super) fn answered(&mut self, port: u16, ox_id: u16) -> Option<Pending> {
        let key = (port, ox_id);
        let pending = self.pending.remove(&key)?;
        // Nearly always the oldest: the switch answers in order.
        if let Some(at) = self.pending_until.iter().position(|(_, waiting)| *waiting == key) {
            self.pending_until.remove(at);
        }
        Some(pending)
    }

    pub(super) fn give_up_pending(&mut self, now: Instant) {
        while let Some(&(until, key)) = self.pending_until.front() {
            if until > now {
                return self.alarms.set(Timer::Pending, until);
            }
            self.pending.remove(&key);
            self.pending_until.pop_front();
        }
    }

    pub(super) fn pending_of(&self, port: u16) -> impl Iterator<Item = &Pending> {
        self.pending.range((port, 0)..=(port, u16::MAX)).map(|(_, pending)| pending)
    }

    pub(super) fn forget_pending_of(&mut self, port: u16) {
        if self.pending_of(port).next().is_some() {
            self.pending.retain(|(of, _), _| *of != port);
            self.pending_until.retain(|(_, (of, _))| *of != port);
        }
    }

    /// What the switch sends to an ENode: the answer to a request that came in FIP, or FCoE.
    pub(super) fn send_to_enode(&mut self, now: Instant, port: u16, frame: Frame) {
        let header = frame.header;
        if header.s_id != FcId::F_PORT {
            let to = self.fpma(header.d_id);
            return self.fcoe(to, frame);
        }
        if header.r_ctl != RCtl::ELS_REPLY {
            // LOGO of the F_Port: the ids that it means are taken back, and Clear Virtual Links says so. Linux does not take
            // that LOGO while FIP is in use.
            return;
        }
        match self.answered(port, header.ox_id) {
            Some(pending @ Pending { to: Some(to), .. }) => self.reply(now, port, to, pending, frame),
            Some(_) => {}
            None => self.discards.count(Discard::Stale),
        }
    }

    fn reply(&mut self, now: Instant, port: u16, to: MacAddr, request: Pending, frame: Frame) {
        let Pending { service, s_id, name, .. } = request;
        let Header { ox_id, d_id, .. } = frame.header;
        let accept = match &frame.payload {
            Payload::Typed(Message::Els(els)) => matches!(**els, Els::LsAcc(_)),
            _ => false,
        };
        let granted = match (accept, service) {
            (true, LinkService::Flogi | LinkService::Fdisc) => {
                self.enter_vn_port(now, port, d_id, name);
                Some(self.fpma(d_id))
            }
            (true, _) => Some(self.fpma(s_id)),
            (false, _) => None,
        };
        self.fip_reply(service, to, frame, granted);
        if accept && service == LinkService::Flogi {
            self.remember_accept(now, port, ox_id, name);
        }
        if accept && service == LinkService::Logo {
            self.drop_vn_port(s_id);
        }
        self.close_if_empty(port);
    }

    fn enter_vn_port(&mut self, now: Instant, port: u16, port_id: FcId, name: Wwpn) {
        // An id whose old login the switch has forgotten without a word.
        self.drop_vn_port(port_id);
        let Some(vf) = self.vf_ports.get_mut(&port) else { return };
        vf.ids.insert(port_id);
        self.vn_ports.insert(port_id, VnPort { port, name });
        self.expect_vn_port(now, port_id);
        self.bind(BindingChange::Bind { port_id, port });
        self.event(Event::VnPortUp { port_id, port_name: name });
    }

    fn remember_accept(&mut self, now: Instant, port: u16, ox_id: u16, name: Wwpn) {
        let Some(super::Output::Fip(reply)) = self.outputs.back().cloned() else { return };
        let until = now + self.config.e_d_tov;
        if let Some(vf) = self.vf_ports.get_mut(&port) {
            vf.accepted = Some(Box::new(Accepted { ox_id, name, until, reply }));
        }
    }

    /// A reject has no address.
    pub(super) fn fip_reply(&mut self, service: LinkService, to: MacAddr, frame: Frame, mac: Option<MacAddr>) {
        let link_service = Descriptor::LinkService { service, frame: Box::new(frame) };
        let descriptors = [link_service].into_iter().chain(mac.map(Descriptor::Mac)).collect();
        let packet = Fip { operation: Operation::LINK_SERVICE_REPLY, flags: flag::FPMA | flag::FCF, descriptors };
        self.fip(to, 0, packet);
    }

    /// Rejects a request that the switch does not get to see.
    fn refuse(&mut self, service: LinkService, to: MacAddr, request: &Header, reject: LsRjt) {
        let message = Message::from(Els::LsRjt(reject));
        let header = message.header(FcId::F_PORT, request.s_id, request.ox_id, RX_ID_UNASSIGNED);
        self.fip_reply(service, to, Frame { header, payload: Payload::Typed(message) }, None);
    }

    /// Logs an N_Port_ID out at the switch, as if it had asked for it.
    pub(super) fn log_out_at_switch(&mut self, now: Instant, port_id: FcId, vn_port: VnPort) {
        let VnPort { port, name } = vn_port;
        self.drop_vn_port(port_id);
        if self.vf_ports.get(&port).is_some_and(|vf| vf.ids.is_empty()) {
            return self.close_vf_port(port);
        }
        let free = (0..=u16::MAX).rev().find(|ox_id| !self.pending.contains_key(&(port, *ox_id)));
        let message = Message::from(Els::Logo(Logo { port_id, port_name: name }));
        let header = message.header(port_id, FcId::F_PORT, free.unwrap_or(0), RX_ID_UNASSIGNED);
        let frame = Frame { header, payload: Payload::Typed(message) };
        if let Err(reason) = self.ask_switch(now, port, LinkService::Logo, None, name, frame) {
            // The switch cannot be asked for one: it gives up all of the port.
            self.discards.count(reason);
            self.clear(port);
        }
    }
}

/// The one link service of a request, which has one address, too, and nothing else that is critical.
pub(super) fn only_link_service(packet: Fip) -> Option<(LinkService, Frame)> {
    let (mut found, mut macs) = (None, 0);
    for descriptor in packet.descriptors {
        match descriptor {
            Descriptor::LinkService { service, frame } if found.is_none() => found = Some((service, *frame)),
            Descriptor::Mac(_) => macs += 1,
            Descriptor::Other { .. } => {}
            _ => return None,
        }
    }
    found.filter(|_| macs == 1)
}

/// The ENode does not want an address of the fabric.
const WRONG_ADDRESSING: LsRjt =
    LsRjt { reason: LsRjtReason::FIP_ERROR, explanation: LsRjtExplanation::MAC_ADDRESSING_MODE, vendor: 0 };
/// No port is free.
const NO_PORT: LsRjt =
    LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::INSUFFICIENT_RESOURCES, vendor: 0 };
/// FDISC without FLOGI.
const NO_LOGIN: LsRjt =
    LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::N_PORT_LOGIN_REQUIRED, vendor: 0 };
/// LOGO of a login that does not exist.
const UNKNOWN_ID: LsRjt =
    LsRjt { reason: LsRjtReason::LOGICAL_ERROR, explanation: LsRjtExplanation::INVALID_N_PORT_ID, vendor: 0 };
