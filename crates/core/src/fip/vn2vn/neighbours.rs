//! The other stations of the segment, and the logins with them.

use super::config::{Output, State};
use super::{ANNOUNCE_WAIT, BEACON_INTERVAL, Sender, Vn2vn, vn_mac};
use crate::fip::{Discard, patience};
use crate::time::Instant;
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation};
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::login::{ClassParameters, CommonParameters, Login, feature};
use sanloom_wire::{FcId, Frame, Header, Message, Payload, RCtl, Wwpn};

/// Another station.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub(super) mac: MacAddr,
    pub(super) port_name: Wwpn,
    heard_at: Instant,
    /// A beacon of it was heard: it is sure of its address.
    settled: bool,
    login: LoginState,
    /// OX_ID of the last FLOGI of it that we accepted.
    accepted: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoginState {
    None,
    /// Our FLOGI is open, for the nth time.
    Asked {
        ox_id: u16,
        again_at: Instant,
        tries: u8,
    },
    Done,
}

/// More stations than this on one segment are not looked at.
const MOST_NEIGHBOURS: usize = 4096;
/// FLOGIs to a station that does not answer.
const MOST_TRIES: u8 = 3;

impl Neighbour {
    pub(super) fn is_up(&self) -> bool {
        self.login == LoginState::Done
    }

    fn gone_at(&self) -> Instant {
        self.heard_at + patience(BEACON_INTERVAL)
    }
}

impl Vn2vn {
    /// A station has claimed its address, or answered our claim.
    pub(super) fn meet(&mut self, now: Instant, sender: Sender) -> Result<(), Discard> {
        let Sender { mac, port_id, port_name, max_fcoe_bytes, .. } = sender;
        if port_id == self.port_id || max_fcoe_bytes == 0 {
            return Err(Discard::Descriptors);
        }
        // The same port with another address, or another port with the same.
        let moved = self.neighbours.iter().find(|(id, known)| known.port_name == port_name && **id != port_id);
        if let Some(old) = moved.map(|(id, _)| *id) {
            self.forget(old);
        }
        if self.neighbours.get(&port_id).is_some_and(|known| known.port_name != port_name) {
            self.forget(port_id);
        }
        if let Some(known) = self.neighbours.get_mut(&port_id) {
            known.mac = mac;
            known.heard_at = now;
            return Ok(());
        }
        if self.neighbours.len() >= MOST_NEIGHBOURS {
            return Err(Discard::NoRoom);
        }
        let (settled, login) = (false, LoginState::None);
        let fresh = Neighbour { mac, port_name, heard_at: now, settled, login, accepted: None };
        self.neighbours.insert(port_id, fresh);
        Ok(())
    }

    /// A station is sure of its address and alive.
    pub(super) fn beacon(&mut self, now: Instant, sender: Sender) {
        if sender.recorded {
            return self.tell_all(Operation::PROBE_REQUEST);
        }
        let known = self.neighbours.get_mut(&sender.port_id).filter(|known| known.port_name == sender.port_name);
        let Some(known) = known else {
            if self.state == State::Up && now >= self.claimed_at + ANNOUNCE_WAIT {
                self.claim(now);
            }
            return;
        };
        known.heard_at = now;
        known.settled = true;
        if self.state == State::Up && known.login == LoginState::None {
            self.log_in(now, sender.port_id, 1);
        }
    }

    /// We are sure of our address: logs in with everybody else who is.
    pub(super) fn log_in_to_all(&mut self, now: Instant) {
        let waiting =
            |(id, known): (&FcId, &Neighbour)| (known.settled && known.login == LoginState::None).then_some(*id);
        let ids: Vec<FcId> = self.neighbours.iter().filter_map(waiting).collect();
        ids.into_iter().for_each(|id| self.log_in(now, id, 1));
    }

    fn log_in(&mut self, now: Instant, port_id: FcId, tries: u8) {
        let ox_id = self.next_ox_id;
        self.next_ox_id = (self.next_ox_id + 1) & 0x7fff;
        let again_at = now + self.config.e_d_tov;
        let Some(known) = self.neighbours.get_mut(&port_id) else { return };
        known.login = LoginState::Asked { ox_id, again_at, tries };
        let to = known.mac;
        let message = Message::from(Els::Flogi(self.parameters()));
        let header = message.header(self.port_id, port_id, ox_id, RX_ID_UNASSIGNED);
        let frame = Frame { header, payload: Payload::Typed(message) };
        self.send_link_service(to, Operation::LINK_SERVICE_REQUEST, LinkService::Flogi, frame);
    }

    fn send_link_service(&mut self, to: MacAddr, operation: Operation, service: LinkService, frame: Frame) {
        let service = Descriptor::LinkService { service, frame: Box::new(frame) };
        let descriptors = vec![service, Descriptor::Mac(vn_mac(self.port_id))];
        let packet = Fip { operation, flags: 0, descriptors };
        self.outputs.push_back(Output::Fip(FipFrame { to, from: self.config.mac, padded_bytes: 0, packet }));
    }

    /// A station logs in to us, or out.
    pub(super) fn link_service(&mut self, now: Instant, from: MacAddr, packet: Fip) -> Result<(), Discard> {
        let (service, header, els) = only_link_service(packet)?;
        if header.r_ctl != RCtl::ELS_REQUEST || header.d_id != self.port_id {
            return Err(Discard::Descriptors);
        }
        match (service, els) {
            (LinkService::Flogi, Els::Flogi(login)) => self.flogi(now, from, &header, &login),
            (LinkService::Logo, Els::Logo(_)) => self.logo(from, &header),
            _ => Err(Discard::Descriptors),
        }
    }

    /// A station ends the login; at its next beacon there may be another.
    fn logo(&mut self, from: MacAddr, header: &Header) -> Result<(), Discard> {
        let known = self.neighbours.get_mut(&header.s_id).ok_or(Discard::NotLoggedIn)?;
        if known.mac != from {
            return Err(Discard::Spoofed);
        }
        let was_up = known.is_up();
        known.login = LoginState::None;
        known.settled = false;
        known.accepted = None;
        self.answer(from, LinkService::Logo, header, Els::LsAcc(LsAcc::Empty));
        if was_up {
            self.outputs.push_back(Output::NeighbourDown { port_id: header.s_id });
        }
        Ok(())
    }

    fn flogi(&mut self, now: Instant, from: MacAddr, header: &Header, login: &Login) -> Result<(), Discard> {
        let up = self.state == State::Up;
        let known = self.neighbours.get_mut(&header.s_id).filter(|known| up && known.port_name == login.port_name);
        let Some(known) = known else {
            let reject = LsRjt::new(LsRjtReason::FIP_ERROR, LsRjtExplanation::NOT_A_VN2VN_NEIGHBOUR);
            self.answer(from, LinkService::Flogi, header, Els::LsRjt(reject));
            return Err(Discard::NotLoggedIn);
        };
        if known.mac != from {
            return Err(Discard::Spoofed);
        }
        let anew = known.accepted.is_some_and(|ox_id| ox_id != header.ox_id);
        known.accepted = Some(header.ox_id);
        known.heard_at = now;
        if anew && known.is_up() {
            // It has forgotten us, or it would not ask.
            known.login = LoginState::None;
            self.outputs.push_back(Output::NeighbourDown { port_id: header.s_id });
        }
        let accept = Els::LsAcc(LsAcc::Login(self.parameters()));
        self.answer(from, LinkService::Flogi, header, accept);
        self.logged_in(header.s_id);
        Ok(())
    }

    fn answer(&mut self, to: MacAddr, service: LinkService, request: &Header, els: Els) {
        let message = Message::from(els);
        let header = message.header(self.port_id, request.s_id, request.ox_id, RX_ID_UNASSIGNED);
        let frame = Frame { header, payload: Payload::Typed(message) };
        self.send_link_service(to, Operation::LINK_SERVICE_REPLY, service, frame);
    }

    /// A station answers our FLOGI.
    pub(super) fn flogi_answered(&mut self, now: Instant, from: MacAddr, packet: Fip) -> Result<(), Discard> {
        let (service, header, els) = only_link_service(packet)?;
        if service != LinkService::Flogi || header.r_ctl != RCtl::ELS_REPLY || header.d_id != self.port_id {
            return Err(Discard::Descriptors);
        }
        let known = self.neighbours.get_mut(&header.s_id).ok_or(Discard::NotLoggedIn)?;
        if known.mac != from {
            return Err(Discard::Spoofed);
        }
        let (ox_id, tries) = match known.login {
            LoginState::Asked { ox_id, tries, .. } => (ox_id, tries),
            // Both asked, and theirs was accepted first.
            LoginState::Done => return Ok(()),
            LoginState::None => return Err(Discard::Stale),
        };
        if ox_id != header.ox_id {
            return Err(Discard::Stale);
        }
        match els {
            Els::LsAcc(LsAcc::Login(login)) if login.port_name == known.port_name => self.logged_in(header.s_id),
            // Not now: again when the time is over.
            Els::LsRjt(_) => {
                let again_at = now + self.config.e_d_tov;
                known.login = LoginState::Asked { ox_id: u16::MAX, again_at, tries };
            }
            _ => return Err(Discard::Descriptors),
        }
        Ok(())
    }

    fn logged_in(&mut self, port_id: FcId) {
        let Some(known) = self.neighbours.get_mut(&port_id).filter(|known| !known.is_up()) else { return };
        known.login = LoginState::Done;
        self.outputs.push_back(Output::NeighbourUp { port_id, port_name: known.port_name });
    }

    pub(super) fn neighbours_deadline(&self) -> Option<Instant> {
        let deadline = |known: &Neighbour| match known.login {
            LoginState::Asked { again_at, .. } => again_at.min(known.gone_at()),
            _ => known.gone_at(),
        };
        self.neighbours.values().map(deadline).min()
    }

    /// Forgets who is silent, and asks again who has not answered.
    pub(super) fn neighbours_due(&mut self, now: Instant) {
        let due = |known: &Neighbour| match known.login {
            _ if known.gone_at() <= now => Some(MOST_TRIES),
            LoginState::Asked { again_at, tries, .. } if again_at <= now => Some(tries),
            _ => None,
        };
        let due: Vec<(FcId, u8)> = self.neighbours.iter().filter_map(|(id, known)| Some((*id, due(known)?))).collect();
        for (port_id, tries) in due {
            match tries {
                MOST_TRIES.. => self.forget(port_id),
                tries => self.log_in(now, port_id, tries + 1),
            }
        }
    }

    fn forget(&mut self, port_id: FcId) {
        if self.neighbours.remove(&port_id).is_some_and(|known| known.is_up()) {
            self.outputs.push_back(Output::NeighbourDown { port_id });
        }
    }

    /// Service parameters of FLOGI and its accept between N_Ports.
    fn parameters(&self) -> Login {
        Login {
            common: CommonParameters {
                highest_version: 0x20,
                lowest_version: 0x20,
                bb_credit: 10,
                features: feature::CONTINUOUS_OFFSET,
                receive_size_bytes: self.config.receive_size_bytes,
                ..CommonParameters::default()
            },
            port_name: self.config.port_name,
            node_name: self.config.node_name,
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters {
                flags: ClassParameters::VALID | ClassParameters::SEQUENTIAL_DELIVERY,
                ..ClassParameters::default()
            },
        }
    }
}

/// The link service of a packet that has one address beside it and nothing else that is critical.
fn only_link_service(packet: Fip) -> Result<(LinkService, Header, Els), Discard> {
    let (mut found, mut macs) = (None, 0);
    for descriptor in packet.descriptors {
        match descriptor {
            Descriptor::LinkService { service, frame } if found.is_none() => found = Some((service, *frame)),
            Descriptor::Mac(_) => macs += 1,
            Descriptor::Other { .. } => {}
            _ => return Err(Discard::Descriptors),
        }
    }
    match found {
        Some((service, Frame { header, payload: Payload::Typed(Message::Els(els)) })) if macs <= 1 => {
            Ok((service, header, *els))
        }
        _ => Err(Discard::Descriptors),
    }
}
