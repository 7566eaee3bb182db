//! VE_Ports: other FCFs on the segment, and the links to them.

use super::config::Event;
use super::logins::{Pending, only_link_service};
use super::{Fcf, Timer};
use crate::fabric_switch;
use crate::fip::{Advertisement, BindingChange, Discard, patience};
use crate::switch::PortKind;
use crate::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::sw_ils::{SwAcc, SwIls};
use sanloom_wire::{FcId, Frame, Message, Payload, RCtl, Wwnn, Wwpn};

/// Another FCF.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) switch_name: Wwnn,
    /// It answered a solicitation: the path to here carries frames of full size.
    usable: bool,
    /// The VE_Port to it.
    port: Option<u16>,
}

/// More FCFs than this on one segment are not looked at.
const MOST_NEIGHBOURS: usize = 64;
/// Periods below this are taken for it, as ENodes do.
const SHORTEST_PERIOD: Span = Span::from_ms(500);

impl Fcf {
    /// Asks FCFs who they are.
    pub(super) fn solicit(&mut self, to: MacAddr) {
        let descriptors = vec![
            Descriptor::Mac(self.config.mac),
            Descriptor::FcMap(self.config.fc_map),
            Descriptor::Name(self.config.switch_name),
            Descriptor::MaxFcoeBytes(self.config.max_fcoe_bytes),
        ];
        self.fip(to, 0, Fip { operation: Operation::SOLICITATION, flags: flag::FPMA | flag::FCF, descriptors });
    }

    /// Another FCF asks. One that asks everybody has just started: a link to it is one to its former life.
    pub(super) fn solicited_by_fcf(
        &mut self,
        now: Instant,
        to: MacAddr,
        from: MacAddr,
        packet: &Fip,
    ) -> Result<(), Discard> {
        if !self.config.neighbours {
            return Err(Discard::UnexpectedOperation);
        }
        let all = (packet.mac(), packet.fc_map(), packet.name(), packet.max_fcoe_bytes());
        let (Some(mac), Some(fc_map), Some(name), Some(bytes)) = all else {
            return Err(Discard::Descriptors);
        };
        if mac != from {
            return Err(Discard::Spoofed);
        }
        if fc_map != self.config.fc_map {
            return Err(Discard::OtherFabric);
        }
        self.heard(now, from, name, self.config.period)?;
        if to == MacAddr::ALL_FCFS {
            self.close_ve_port(from);
        }
        self.fip(from, bytes.min(self.config.max_fcoe_bytes), self.advertisement(true).packet());
        if self.neighbours.get(&from).is_some_and(|neighbour| !neighbour.usable) {
            self.solicit(from);
        }
        Ok(())
    }

    /// Another FCF says that it is there.
    pub(super) fn neighbour_advertised(&mut self, now: Instant, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        if !self.config.neighbours || !packet.has(flag::FCF) {
            return Err(Discard::UnexpectedOperation);
        }
        let said = Advertisement::read(packet)?;
        if said.mac != from {
            return Err(Discard::Spoofed);
        }
        if said.fc_map != self.config.fc_map || said.vf_id != self.config.vf_id {
            return Err(Discard::OtherFabric);
        }
        self.heard(now, from, said.switch_name, said.period)?;
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return Ok(()) };
        neighbour.usable |= said.solicited;
        match neighbour.usable {
            true => self.open_ve_port(from),
            false => {
                self.solicit(from);
                Ok(())
            }
        }
    }

    /// Notes a sign of life.
    fn heard(&mut self, now: Instant, mac: MacAddr, switch_name: Wwnn, period: Span) -> Result<(), Discard> {
        if switch_name == self.config.switch_name || switch_name.0 == 0 {
            return Err(Discard::NotForUs);
        }
        if self.neighbours.get(&mac).is_some_and(|known| known.switch_name != switch_name) {
            self.forget_neighbour(mac);
        }
        if !self.neighbours.contains_key(&mac) {
            if self.neighbours.len() >= MOST_NEIGHBOURS {
                return Err(Discard::NoRoom);
            }
            self.neighbours.insert(mac, Neighbour { switch_name, usable: false, port: None });
        }
        self.alarms.set(Timer::Neighbour(mac), now + patience(period.max(SHORTEST_PERIOD)));
        Ok(())
    }

    fn open_ve_port(&mut self, mac: MacAddr) -> Result<(), Discard> {
        let Some(neighbour) = self.neighbours.get_mut(&mac).filter(|neighbour| neighbour.port.is_none()) else {
            return Ok(());
        };
        let port = self.pool.take(mac).ok_or(Discard::NoRoom)?;
        neighbour.port = Some(port);
        let switch_name = neighbour.switch_name;
        self.ve_ports.insert(port, mac);
        self.bind(BindingChange::Join { mac, port });
        self.event(Event::NeighbourUp { port, mac, switch_name });
        self.switch(fabric_switch::Input::PortUp { port, kind: PortKind::E });
        Ok(())
    }

    /// Ends the virtual link to another FCF, without a word. It has to prove the path again.
    pub(super) fn close_ve_port(&mut self, mac: MacAddr) {
        let Some(neighbour) = self.neighbours.get_mut(&mac) else { return };
        let Some(port) = neighbour.port.take() else { return };
        neighbour.usable = false;
        self.ve_ports.remove(&port);
        self.forget_pending_of(port);
        self.pool.give_back(port, mac);
        self.bind(BindingChange::Part { mac });
        self.switch(fabric_switch::Input::PortDown { port });
        self.event(Event::NeighbourDown { port, mac });
    }

    /// Another FCF is gone.
    pub(super) fn forget_neighbour(&mut self, mac: MacAddr) {
        self.close_ve_port(mac);
        self.neighbours.remove(&mac);
        self.alarms.clear(Timer::Neighbour(mac));
    }

    /// Another FCF ends the virtual link.
    pub(super) fn cleared_by_fcf(&mut self, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        let neighbour = self.neighbours.get(&from).ok_or(Discard::NotLoggedIn)?;
        if packet.mac() != Some(from) || packet.name() != Some(neighbour.switch_name) {
            return Err(Discard::Descriptors);
        }
        self.close_ve_port(from);
        Ok(())
    }

    /// ELP of another FCF, or its answer to ours.
    pub(super) fn neighbour_elp(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: Fip,
        reply: bool,
    ) -> Result<(), Discard> {
        if !self.neighbours.contains_key(&from) {
            return Err(Discard::NotLoggedIn);
        }
        let Some((LinkService::Elp, frame)) = only_link_service(packet) else {
            return Err(Discard::Descriptors);
        };
        let header = frame.header;
        let expected = if reply { RCtl::SOLICITED_CONTROL } else { RCtl::UNSOLICITED_CONTROL };
        let sound = header.r_ctl == expected
            && (header.s_id, header.d_id) == (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER)
            && matches!(&frame.payload, Payload::Typed(Message::SwIls(ils)) if is_elp(ils, reply));
        if !sound {
            return Err(Discard::Descriptors);
        }
        if !reply {
            // It has seen a full advertisement of ours, which is as good as the other way round.
            self.open_ve_port(from)?;
        }
        let port = self.neighbours.get(&from).and_then(|neighbour| neighbour.port).ok_or(Discard::Stale)?;
        if !reply {
            let pending =
                Pending { service: LinkService::Elp, to: Some(from), s_id: header.s_id, name: Wwpn::default() };
            self.wait_for_switch(now, port, header.ox_id, pending)?;
        }
        self.switch(fabric_switch::Input::Frame { port, frame });
        Ok(())
    }

    /// What the switch sends to another: ELP and its answer in FIP, everything else in FCoE.
    pub(super) fn send_to_fcf(&mut self, port: u16, mac: MacAddr, frame: Frame) {
        let elp = match &frame.payload {
            Payload::Typed(Message::SwIls(ils)) => matches!(**ils, SwIls::Elp(_)),
            _ => false,
        };
        if elp && frame.header.r_ctl == RCtl::UNSOLICITED_CONTROL {
            let service = Descriptor::LinkService { service: LinkService::Elp, frame: Box::new(frame) };
            let descriptors = vec![service, Descriptor::Mac(self.config.mac)];
            let operation = Operation::LINK_SERVICE_REQUEST;
            self.fip(mac, 0, Fip { operation, flags: flag::FPMA | flag::FCF, descriptors });
        } else if frame.header.r_ctl == RCtl::SOLICITED_CONTROL && self.answered(port, frame.header.ox_id).is_some() {
            self.fip_reply(LinkService::Elp, mac, frame, Some(self.config.mac));
        } else {
            self.fcoe(mac, frame);
        }
    }
}

fn is_elp(ils: &SwIls, reply: bool) -> bool {
    matches!((ils, reply), (SwIls::Elp(_), false) | (SwIls::SwAcc(SwAcc::Elp(_)) | SwIls::SwRjt(_), true))
}
