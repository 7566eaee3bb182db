//! FLOGI, FDISC and LOGO of the N_Ports over FIP.

use super::config::Output;
use super::{Enode, candidates::Key};
use crate::fip::{Discard, VN_PORT_KEEP_ALIVE};
use sanloom_scsi::time::Instant;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::{FcId, Frame, Message, Payload, RCtl, Wwpn};

/// Logged-in VN_Port.
#[derive(Clone, Copy, Debug)]
pub(super) struct VnPort {
    pub(super) mac: MacAddr,
    pub(super) name: Wwpn,
}

/// Key that matches replies to requests: the service, the OX_ID, and for LOGO the S_ID of the
/// request.
pub(super) type RequestKey = (LinkService, u16, FcId);

/// Request that awaits its reply.
#[derive(Debug)]
pub(super) struct Pending {
    /// Port name in the request.
    name: Wwpn,
    /// FLOGI to send to the next FCF if this one rejects it.
    again: Option<Box<Frame>>,
}

/// Maximum number of pending requests, far more than N_Ports have in flight.
const MAX_PENDING: usize = 8192;

/// Service and port name of a request that must be sent over FIP.
fn for_fip(frame: &Frame) -> Option<(LinkService, Wwpn)> {
    let Payload::Typed(Message::Els(els)) = &frame.payload else { return None };
    if frame.header.d_id != FcId::F_PORT {
        return None;
    }
    match &**els {
        Els::Flogi(login) => Some((LinkService::Flogi, login.port_name)),
        Els::Fdisc(login) => Some((LinkService::Fdisc, login.port_name)),
        Els::Logo(logo) => Some((LinkService::Logo, logo.port_name)),
        _ => None,
    }
}

impl Enode {
    /// Sends a frame of an N_Port.
    pub(super) fn send(&mut self, now: Instant, frame: Frame) {
        let s_id = frame.header.s_id;
        match for_fip(&frame) {
            None => self.fcoe(s_id, frame),
            Some((LinkService::Flogi, name)) => self.flogi(now, name, frame),
            Some((LinkService::Logo, name)) => {
                let mac = self.vn_ports.get(&s_id).map(|vn_port| vn_port.mac);
                self.drop_vn_port(s_id);
                match mac {
                    Some(mac) => self.send_request(LinkService::Logo, name, mac, frame),
                    None => self.discards.count(Discard::NotLoggedIn),
                }
            }
            Some((service, name)) => self.send_request(service, name, MacAddr::ZERO, frame),
        }
    }

    /// Sends a FLOGI: the first to the selected FCF, a repeated one to the next FCF.
    fn flogi(&mut self, now: Instant, name: Wwpn, frame: Frame) {
        let Some(chosen) = self.chosen else { return };
        if self.candidates.get(chosen.key).is_some_and(|candidate| candidate.tried) {
            let next = self.next_fcf().or_else(|| {
                self.candidates.reset_tried();
                self.next_fcf()
            });
            if let Some(key) = next.filter(|key| *key != chosen.key) {
                self.use_fcf(now, key);
            }
        }
        if let Some(chosen) = self.chosen {
            self.candidates.mark_tried(chosen.key);
        }
        self.send_request(LinkService::Flogi, name, MacAddr::ZERO, frame);
    }

    /// Best FCF to which no FLOGI was sent.
    fn next_fcf(&self) -> Option<Key> {
        self.candidates.choose().ok().map(|candidate| candidate.key())
    }

    fn send_request(&mut self, service: LinkService, name: Wwpn, proposed: MacAddr, frame: Frame) {
        let Some(chosen) = self.chosen else { return };
        let key = request_key(service, frame.header.ox_id, frame.header.s_id);
        let again = (service == LinkService::Flogi).then(|| Box::new(frame.clone()));
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_first();
        }
        self.pending.insert(key, Pending { name, again });
        let descriptors = vec![Descriptor::LinkService { service, frame: Box::new(frame) }, Descriptor::Mac(proposed)];
        let packet = Fip { operation: Operation::LINK_SERVICE_REQUEST, flags: flag::FPMA, descriptors };
        self.fip(chosen.key.mac, self.config.mac, packet);
    }

    /// Handles a reply of the FCF.
    ///
    /// The first descriptor is the link service, the second the granted MAC address, which a reject
    /// may omit. A third one is the MAC address for FCoE frames. Further descriptors must not be
    /// critical.
    pub(super) fn answered(&mut self, now: Instant, to: MacAddr, from: MacAddr, packet: Fip) -> Result<(), Discard> {
        let Some(chosen) = self.chosen else { return Err(Discard::Stale) };
        if from != chosen.key.mac || to != self.config.mac {
            return Err(Discard::Spoofed);
        }
        let mut descriptors = packet.descriptors.into_iter();
        let Some(Descriptor::LinkService { service, frame }) = descriptors.next() else {
            return Err(Discard::Descriptors);
        };
        let mut macs = Vec::new();
        for descriptor in descriptors {
            match descriptor {
                Descriptor::Mac(mac) if macs.len() < 2 => macs.push(mac),
                Descriptor::Other { .. } if !macs.is_empty() => {}
                _ => return Err(Discard::Descriptors),
            }
        }
        let header = frame.header;
        let Payload::Typed(Message::Els(els)) = &frame.payload else { return Err(Discard::Descriptors) };
        if header.r_ctl != RCtl::ELS_REPLY {
            return Err(Discard::Descriptors);
        }
        let granted = match (&**els, macs.first()) {
            (Els::LsAcc(LsAcc::Login(_)), Some(mac)) if mac.is_station() => Some(*mac),
            (Els::LsAcc(LsAcc::Empty), Some(_)) if service == LinkService::Logo => None,
            (Els::LsRjt(_), _) => None,
            _ => return Err(Discard::Descriptors),
        };
        let fcoe_mac = macs.get(1).copied();
        if fcoe_mac.is_some_and(|mac| !mac.is_station()) {
            return Err(Discard::Descriptors);
        }
        let key = request_key(service, header.ox_id, header.d_id);
        let pending = self.pending.remove(&key).ok_or(Discard::Stale)?;
        if let Some(mac) = granted {
            if header.d_id == FcId::ZERO {
                return Err(Discard::Descriptors);
            }
            if let Some(fcoe_mac) = fcoe_mac
                && let Some(chosen) = &mut self.chosen
            {
                chosen.fcoe_mac = fcoe_mac;
            }
            self.enter(now, service, header.d_id, VnPort { mac, name: pending.name });
        } else if let Some(again) = pending.again
            && let Some(next) = self.next_fcf()
        {
            // The login was rejected; another FCF may accept it.
            self.use_fcf(now, next);
            self.flogi(now, pending.name, *again);
            return Ok(());
        }
        self.outputs.push_back(Output::Deliver(*frame));
        Ok(())
    }

    fn enter(&mut self, now: Instant, service: LinkService, port_id: FcId, vn_port: VnPort) {
        if service == LinkService::Flogi {
            let old: Vec<FcId> = self.vn_ports.keys().copied().collect();
            old.into_iter().for_each(|id| self.drop_vn_port(id));
            self.base = Some(port_id);
        }
        self.vn_ports.insert(port_id, vn_port);
        self.alarms.set(port_id, now + VN_PORT_KEEP_ALIVE);
    }

    pub(super) fn drop_vn_port(&mut self, port_id: FcId) {
        self.vn_ports.remove(&port_id);
        self.alarms.clear(port_id);
        self.base.take_if(|base| *base == port_id);
    }
}

/// The reply to a login has a D_ID that the request did not contain.
fn request_key(service: LinkService, ox_id: u16, id: FcId) -> RequestKey {
    (service, ox_id, if service == LinkService::Logo { id } else { FcId::ZERO })
}
