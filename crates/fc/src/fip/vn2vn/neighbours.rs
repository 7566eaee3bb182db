//! Other stations of the segment and the logins with them.

use super::config::{Output, State};
use super::{ANNOUNCE_WAIT, BEACON_INTERVAL, Sender, Vn2vn, vn_mac};
use crate::fip::{Discard, silence_limit};
use sanloom_scsi::time::Instant;
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
    last_seen: Instant,
    /// A beacon was received, so its N_Port_ID is established.
    established: bool,
    login: LoginState,
    /// OX_ID of its last FLOGI that was accepted.
    accepted: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoginState {
    None,
    /// A FLOGI to it is in flight; `tries` counts the attempts.
    Pending {
        ox_id: u16,
        retry_at: Instant,
        tries: u8,
    },
    Done,
}

/// Maximum number of stations on one segment; further ones are ignored.
const MAX_NEIGHBOURS: usize = 4096;
/// Maximum number of FLOGIs to a station that does not reply.
const MAX_TRIES: u8 = 3;

impl Neighbour {
    pub(super) fn is_up(&self) -> bool {
        self.login == LoginState::Done
    }

    fn gone_at(&self) -> Instant {
        self.last_seen + silence_limit(BEACON_INTERVAL)
    }
}

impl Vn2vn {
    /// Handles a claim of a station, or its response to our claim.
    pub(super) fn add_neighbour(&mut self, now: Instant, sender: Sender) -> Result<(), Discard> {
        let Sender { mac, port_id, port_name, max_fcoe_bytes, .. } = sender;
        if port_id == self.port_id || max_fcoe_bytes == 0 {
            return Err(Discard::Descriptors);
        }
        // The same port has a new N_Port_ID, or another port has the same N_Port_ID.
        let moved = self.neighbours.iter().find(|(id, known)| known.port_name == port_name && **id != port_id);
        if let Some(old) = moved.map(|(id, _)| *id) {
            self.remove(old);
        }
        if self.neighbours.get(&port_id).is_some_and(|known| known.port_name != port_name) {
            self.remove(port_id);
        }
        if let Some(known) = self.neighbours.get_mut(&port_id) {
            known.mac = mac;
            known.last_seen = now;
            return Ok(());
        }
        if self.neighbours.len() >= MAX_NEIGHBOURS {
            return Err(Discard::NoRoom);
        }
        let (established, login) = (false, LoginState::None);
        let fresh = Neighbour { mac, port_name, last_seen: now, established, login, accepted: None };
        self.neighbours.insert(port_id, fresh);
        Ok(())
    }

    /// Handles a beacon: the station is present and its N_Port_ID is established.
    pub(super) fn beacon(&mut self, now: Instant, sender: Sender) {
        if sender.recorded {
            return self.multicast(Operation::PROBE_REQUEST);
        }
        let known = self.neighbours.get_mut(&sender.port_id).filter(|known| known.port_name == sender.port_name);
        let Some(known) = known else {
            if self.state == State::Up && now >= self.claimed_at + ANNOUNCE_WAIT {
                self.claim(now);
            }
            return;
        };
        known.last_seen = now;
        known.established = true;
        if self.state == State::Up && known.login == LoginState::None {
            self.log_in(now, sender.port_id, 1);
        }
    }

    /// Logs in with all stations whose N_Port_ID is established, after the own one is.
    pub(super) fn log_in_to_all(&mut self, now: Instant) {
        let waiting =
            |(id, known): (&FcId, &Neighbour)| (known.established && known.login == LoginState::None).then_some(*id);
        let ids: Vec<FcId> = self.neighbours.iter().filter_map(waiting).collect();
        ids.into_iter().for_each(|id| self.log_in(now, id, 1));
    }

    fn log_in(&mut self, now: Instant, port_id: FcId, tries: u8) {
        let ox_id = self.next_ox_id;
        self.next_ox_id = (self.next_ox_id + 1) & 0x7fff;
        let retry_at = now + self.config.e_d_tov;
        let Some(known) = self.neighbours.get_mut(&port_id) else { return };
        known.login = LoginState::Pending { ox_id, retry_at, tries };
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

    /// Handles a FLOGI or LOGO of another station.
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

    /// Handles LOGO: the station ends the login. Its next beacon may lead to another one.
    fn logo(&mut self, from: MacAddr, header: &Header) -> Result<(), Discard> {
        let known = self.neighbours.get_mut(&header.s_id).ok_or(Discard::NotLoggedIn)?;
        if known.mac != from {
            return Err(Discard::Spoofed);
        }
        let was_up = known.is_up();
        known.login = LoginState::None;
        known.established = false;
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
        known.last_seen = now;
        if anew && known.is_up() {
            // A new FLOGI means that the station has lost the previous login.
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

    /// Handles the reply to our FLOGI.
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
            LoginState::Pending { ox_id, tries, .. } => (ox_id, tries),
            // Both stations sent FLOGI, and the other one's was accepted first.
            LoginState::Done => return Ok(()),
            LoginState::None => return Err(Discard::Stale),
        };
        if ox_id != header.ox_id {
            return Err(Discard::Stale);
        }
        match els {
            Els::LsAcc(LsAcc::Login(login)) if login.port_name == known.port_name => self.logged_in(header.s_id),
            // Rejected for now; FLOGI is repeated after the timeout.
            Els::LsRjt(_) => {
                let retry_at = now + self.config.e_d_tov;
                known.login = LoginState::Pending { ox_id: u16::MAX, retry_at, tries };
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
            LoginState::Pending { retry_at, .. } => retry_at.min(known.gone_at()),
            _ => known.gone_at(),
        };
        self.neighbours.values().map(deadline).min()
    }

    /// Removes stations whose beacons stopped, and repeats FLOGIs without a reply.
    pub(super) fn neighbours_due(&mut self, now: Instant) {
        let due = |known: &Neighbour| match known.login {
            _ if known.gone_at() <= now => Some(MAX_TRIES),
            LoginState::Pending { retry_at, tries, .. } if retry_at <= now => Some(tries),
            _ => None,
        };
        let due: Vec<(FcId, u8)> = self.neighbours.iter().filter_map(|(id, known)| Some((*id, due(known)?))).collect();
        for (port_id, tries) in due {
            match tries {
                MAX_TRIES.. => self.remove(port_id),
                tries => self.log_in(now, port_id, tries + 1),
            }
        }
    }

    fn remove(&mut self, port_id: FcId) {
        if self.neighbours.remove(&port_id).is_some_and(|known| known.is_up()) {
            self.outputs.push_back(Output::NeighbourDown { port_id });
        }
    }

    /// Service parameters in FLOGI and its accept between N_Ports.
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

/// Extracts the link service of a packet that has at most one MAC address and no other critical
/// descriptor.
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
