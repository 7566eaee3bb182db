//! FLOGI, FDISC and LOGO: requests from FIP to the switch, and its replies back into FIP.

use super::config::Event;
use super::enodes::{Accepted, Enodes, VfPort, VnPort, restart_enode_timer, restart_vn_port_timer};
use super::pending::Pending;
use super::station::Station;
use crate::fabric_switch;
use crate::fip::{BindingChange, Discard};
use crate::switch::PortKind;
use sanloom_scsi::time::Instant;
use sanloom_wire::els::{Els, Logo, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, LinkService, flag};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, RCtl, Wwpn};
use std::collections::BTreeSet;

/// Link-service request of an ENode.
struct Request {
    from: MacAddr,
    service: LinkService,
    /// Flags of the FIP packet.
    flags: u16,
    frame: Frame,
}

impl Enodes {
    /// Handles a link-service request of an ENode over FIP.
    pub(super) fn on_link_service(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: Fip,
        station: &mut Station,
    ) -> Result<(), Discard> {
        if !station.config.enodes {
            return Err(Discard::UnexpectedOperation);
        }
        let flags = packet.flags;
        let Some((service, frame)) = only_link_service(packet) else {
            return Err(Discard::Descriptors);
        };
        if frame.header.d_id != FcId::F_PORT || frame.header.r_ctl != RCtl::ELS_REQUEST {
            return Err(Discard::Descriptors);
        }
        let Payload::Typed(Message::Els(els)) = &frame.payload else {
            return Err(Discard::Descriptors);
        };
        let name = match (service, &**els) {
            (LinkService::Flogi, Els::Flogi(login)) | (LinkService::Fdisc, Els::Fdisc(login)) => login.port_name,
            (LinkService::Logo, Els::Logo(_)) => Wwpn::default(),
            _ => return Err(Discard::Descriptors),
        };
        let request = Request { from, service, flags, frame };
        match service {
            LinkService::Flogi => self.on_flogi(now, request, name, station),
            LinkService::Fdisc => self.on_fdisc(now, request, name, station),
            _ => self.on_logo(now, request, station),
        }
    }

    fn on_flogi(&mut self, now: Instant, request: Request, name: Wwpn, station: &mut Station) -> Result<(), Discard> {
        let (from, ox_id) = (request.from, request.frame.header.ox_id);
        self.strangers.remove(from);
        let known = self.by_mac.get(&from).copied();
        let accepted = known.and_then(|port| self.vf_ports.get(&port)).and_then(|vf| vf.accepted.as_deref());
        if let Some(same) = accepted.filter(|last| last.ox_id == ox_id && last.name == name && now < last.until) {
            station.send_fip(same.reply.clone());
            return Ok(());
        }
        if request.flags & flag::FPMA == 0 {
            reject(&request, WRONG_ADDRESSING, station);
            return Ok(());
        }
        let Some(port) = known.or_else(|| self.open(from, station)) else {
            reject(&request, NO_PORT, station);
            return Err(Discard::NoRoom);
        };
        restart_enode_timer(now, port, station);
        forward(now, port, request, name, station)
    }

    /// Opens the VF_Port of an ENode.
    fn open(&mut self, mac: MacAddr, station: &mut Station) -> Option<u16> {
        let port = station.ports.take(mac)?;
        self.vf_ports.insert(port, VfPort { mac, ids: BTreeSet::new(), accepted: None });
        self.by_mac.insert(mac, port);
        station.input_switch(fabric_switch::Input::PortUp { port, kind: PortKind::F });
        station.report(Event::EnodeUp { port, mac });
        Some(port)
    }

    fn on_fdisc(&mut self, now: Instant, request: Request, name: Wwpn, station: &mut Station) -> Result<(), Discard> {
        let Some(port) = self.by_mac.get(&request.from).copied() else {
            reject(&request, NO_LOGIN, station);
            return Err(Discard::NotLoggedIn);
        };
        if request.flags & flag::FPMA == 0 {
            reject(&request, WRONG_ADDRESSING, station);
            return Ok(());
        }
        forward(now, port, request, name, station)
    }

    /// Handles LOGO, which the ENode or the VN_Port itself may send.
    fn on_logo(&mut self, now: Instant, request: Request, station: &mut Station) -> Result<(), Discard> {
        let s_id = request.frame.header.s_id;
        let Some(vn_port) = self.vn_ports.get(&s_id).copied() else {
            reject(&request, UNKNOWN_ID, station);
            return Err(Discard::NotLoggedIn);
        };
        if self.by_mac.get(&request.from) != Some(&vn_port.port) && request.from != station.fpma(s_id) {
            return Err(Discard::Spoofed);
        }
        forward(now, vn_port.port, request, vn_port.name, station)
    }

    /// Sends a frame of the switch to an ENode: the reply to a FIP request over FIP, anything else
    /// over FCoE.
    pub(super) fn send(&mut self, now: Instant, port: u16, frame: Frame, station: &mut Station) {
        let header = frame.header;
        if header.s_id != FcId::F_PORT {
            let to = station.fpma(header.d_id);
            return station.send_fcoe(to, frame);
        }
        if header.r_ctl != RCtl::ELS_REPLY {
            // LOGO of the F_Port is not sent: the switch also removes the N_Port_IDs concerned, and
            // Clear Virtual Links reports that. Linux ignores such a LOGO while FIP is in use.
            return;
        }
        match station.pending.take(port, header.ox_id) {
            Some(pending @ Pending { to: Some(to), .. }) => self.reply(now, port, to, pending, frame, station),
            Some(_) => {}
            None => station.discards.count(Discard::Stale),
        }
    }

    fn reply(&mut self, now: Instant, port: u16, to: MacAddr, request: Pending, frame: Frame, station: &mut Station) {
        let Pending { service, s_id, name, .. } = request;
        let Header { ox_id, d_id, .. } = frame.header;
        let accept = match &frame.payload {
            Payload::Typed(Message::Els(els)) => matches!(**els, Els::LsAcc(_)),
            _ => false,
        };
        let granted = match (accept, service) {
            (true, LinkService::Flogi | LinkService::Fdisc) => {
                self.add_vn_port(now, port, d_id, name, station);
                Some(station.fpma(d_id))
            }
            (true, _) => Some(station.fpma(s_id)),
            (false, _) => None,
        };
        let reply = station.link_service_reply(service, to, frame, granted);
        if accept
            && service == LinkService::Flogi
            && let Some(vf) = self.vf_ports.get_mut(&port)
        {
            let until = now + station.config.e_d_tov;
            vf.accepted = Some(Box::new(Accepted { ox_id, name, until, reply: reply.clone() }));
        }
        station.send_fip(reply);
        if accept && service == LinkService::Logo {
            self.remove_vn_port(s_id, station);
        }
        self.close_if_empty(port, station);
    }

    fn add_vn_port(&mut self, now: Instant, port: u16, port_id: FcId, name: Wwpn, station: &mut Station) {
        // The switch may have removed an earlier login with this N_Port_ID without notification.
        self.remove_vn_port(port_id, station);
        let Some(vf) = self.vf_ports.get_mut(&port) else { return };
        vf.ids.insert(port_id);
        self.vn_ports.insert(port_id, VnPort { port, name });
        restart_vn_port_timer(now, port_id, station);
        station.bind(BindingChange::Bind { port_id, port });
        station.report(Event::VnPortUp { port_id, port_name: name });
    }

    /// Logs out an N_Port_ID at the switch with a LOGO on its behalf.
    pub(super) fn log_out_at_switch(&mut self, now: Instant, port_id: FcId, vn_port: VnPort, station: &mut Station) {
        let VnPort { port, name } = vn_port;
        self.remove_vn_port(port_id, station);
        if self.vf_ports.get(&port).is_some_and(|vf| vf.ids.is_empty()) {
            return self.close(port, station);
        }
        let ox_id = station.pending.free_ox_id(port).unwrap_or(0);
        let message = Message::from(Els::Logo(Logo { port_id, port_name: name }));
        let header = message.header(port_id, FcId::F_PORT, ox_id, RX_ID_UNASSIGNED);
        let frame = Frame { header, payload: Payload::Typed(message) };
        let pending = Pending { service: LinkService::Logo, to: None, s_id: port_id, name };
        match station.await_reply(now, port, ox_id, pending) {
            Ok(()) => station.input_switch(fabric_switch::Input::Frame { port, frame }),
            Err(reason) => {
                // The table of pending requests is full, so the whole port is cleared.
                station.discards.count(reason);
                self.clear(port, station);
            }
        }
    }
}

/// Passes a request to the switch and stores it until the reply.
fn forward(now: Instant, port: u16, request: Request, name: Wwpn, station: &mut Station) -> Result<(), Discard> {
    let Request { from, service, frame, .. } = request;
    let Header { s_id, ox_id, .. } = frame.header;
    station.await_reply(now, port, ox_id, Pending { service, to: Some(from), s_id, name })?;
    station.input_switch(fabric_switch::Input::Frame { port, frame });
    Ok(())
}

/// Rejects a request without passing it to the switch.
fn reject(request: &Request, reject: LsRjt, station: &mut Station) {
    let Header { s_id, ox_id, .. } = request.frame.header;
    let message = Message::from(Els::LsRjt(reject));
    let header = message.header(FcId::F_PORT, s_id, ox_id, RX_ID_UNASSIGNED);
    let frame = Frame { header, payload: Payload::Typed(message) };
    station.send_fip(station.link_service_reply(request.service, request.from, frame, None));
}

/// Extracts the link service of a request. The packet must have exactly one link service, exactly
/// one MAC address and no other critical descriptor.
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

/// Reject: the ENode does not request a fabric-provided MAC address.
const WRONG_ADDRESSING: LsRjt =
    LsRjt { reason: LsRjtReason::FIP_ERROR, explanation: LsRjtExplanation::MAC_ADDRESSING_MODE, vendor: 0 };
/// Reject: no switch port is free.
const NO_PORT: LsRjt =
    LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::INSUFFICIENT_RESOURCES, vendor: 0 };
/// Reject: FDISC without FLOGI.
const NO_LOGIN: LsRjt =
    LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::N_PORT_LOGIN_REQUIRED, vendor: 0 };
/// Reject: LOGO for a login that does not exist.
const UNKNOWN_ID: LsRjt =
    LsRjt { reason: LsRjtReason::LOGICAL_ERROR, explanation: LsRjtExplanation::INVALID_N_PORT_ID, vendor: 0 };
