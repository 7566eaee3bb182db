//! VE_Ports: other FCFs on the segment and the links to them.

use super::config::{Event, LinkEnd, VirtualLink};
use super::logins::only_link_service;
use super::pending::Pending;
use super::station::{Station, Timer};
use crate::fabric_switch;
use crate::fip::{Advertisement, BindingChange, Discard, silence_limit};
use crate::switch::PortKind;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::sw_ils::{SwAcc, SwIls};
use sanloom_wire::{FcId, Frame, Message, Payload, RCtl, Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Another FCF on the segment.
#[derive(Debug)]
struct Neighbour {
    switch_name: Wwnn,
    /// It answered a solicitation, so the path to this FCF carries frames of full size.
    usable: bool,
    /// Switch port of the VE_Port to it.
    port: Option<u16>,
}

/// Maximum number of FCFs on one segment; further ones are ignored.
const MAX_NEIGHBOURS: usize = 64;
/// Minimum advertisement period; shorter ones are raised to it, so that an FCF does not expire too
/// soon.
const MIN_PERIOD: Span = Span::from_ms(500);

/// Other FCFs and the virtual links to them.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    /// Known FCFs by MAC address.
    by_mac: BTreeMap<MacAddr, Neighbour>,
    /// MAC addresses of FCFs by the switch port of their VE_Port.
    ve_ports: BTreeMap<u16, MacAddr>,
}

impl Neighbours {
    /// Virtual links to FCFs, sorted by switch port.
    pub(super) fn links(&self) -> impl Iterator<Item = VirtualLink> + '_ {
        self.ve_ports.iter().filter_map(|(port, mac)| {
            let neighbour = self.by_mac.get(mac)?;
            Some(VirtualLink { port: *port, mac: *mac, end: LinkEnd::Fcf { switch_name: neighbour.switch_name } })
        })
    }

    /// Memory of the table, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.by_mac.len() * size_of::<(MacAddr, Neighbour)>()
    }

    /// Returns true if a station is known as an FCF.
    pub(super) fn contains(&self, mac: MacAddr) -> bool {
        self.by_mac.contains_key(&mac)
    }

    /// MAC address of the FCF behind a switch port.
    pub(super) fn mac_of(&self, port: u16) -> Option<MacAddr> {
        self.ve_ports.get(&port).copied()
    }

    /// Handles a solicitation of another FCF. Returns the largest FCoE PDU that it may receive, in
    /// bytes. A multicast solicitation means that the FCF has just started, so an existing link to
    /// it is obsolete.
    pub(super) fn on_solicitation(
        &mut self,
        now: Instant,
        to: MacAddr,
        from: MacAddr,
        packet: &Fip,
        station: &mut Station,
    ) -> Result<u16, Discard> {
        if !station.config.neighbours {
            return Err(Discard::UnexpectedOperation);
        }
        let all = (packet.mac(), packet.fc_map(), packet.name(), packet.max_fcoe_bytes());
        let (Some(mac), Some(fc_map), Some(name), Some(bytes)) = all else {
            return Err(Discard::Descriptors);
        };
        if mac != from {
            return Err(Discard::Spoofed);
        }
        if fc_map != station.config.fc_map {
            return Err(Discard::OtherFabric);
        }
        self.refresh(now, from, name, station.config.period, station)?;
        if to == MacAddr::ALL_FCFS {
            self.close(from, station);
        }
        Ok(bytes)
    }

    /// Solicits an FCF unless it has answered a solicitation before.
    pub(super) fn solicit_unless_usable(&self, mac: MacAddr, station: &mut Station) {
        if self.by_mac.get(&mac).is_some_and(|neighbour| !neighbour.usable) {
            solicit(mac, station);
        }
    }

    /// Handles an advertisement of another FCF.
    pub(super) fn on_advertisement(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: &Fip,
        station: &mut Station,
    ) -> Result<(), Discard> {
        if !station.config.neighbours || !packet.has(flag::FCF) {
            return Err(Discard::UnexpectedOperation);
        }
        let advertisement = Advertisement::read(packet)?;
        if advertisement.mac != from {
            return Err(Discard::Spoofed);
        }
        if advertisement.fc_map != station.config.fc_map || advertisement.vf_id != station.config.vf_id {
            return Err(Discard::OtherFabric);
        }
        self.refresh(now, from, advertisement.switch_name, advertisement.period, station)?;
        let Some(neighbour) = self.by_mac.get_mut(&from) else { return Ok(()) };
        neighbour.usable |= advertisement.solicited;
        match neighbour.usable {
            true => self.open(from, station),
            false => {
                solicit(from, station);
                Ok(())
            }
        }
    }

    /// Adds another FCF, or restarts the timer for its advertisements.
    fn refresh(
        &mut self,
        now: Instant,
        mac: MacAddr,
        switch_name: Wwnn,
        period: Span,
        station: &mut Station,
    ) -> Result<(), Discard> {
        if switch_name == station.config.switch_name || switch_name.0 == 0 {
            return Err(Discard::NotForUs);
        }
        if self.by_mac.get(&mac).is_some_and(|known| known.switch_name != switch_name) {
            self.remove(mac, station);
        }
        if !self.by_mac.contains_key(&mac) {
            if self.by_mac.len() >= MAX_NEIGHBOURS {
                return Err(Discard::NoRoom);
            }
            self.by_mac.insert(mac, Neighbour { switch_name, usable: false, port: None });
        }
        station.alarms.set(Timer::Neighbour(mac), now + silence_limit(period.max(MIN_PERIOD)));
        Ok(())
    }

    /// Opens the VE_Port to another FCF, unless it is open.
    fn open(&mut self, mac: MacAddr, station: &mut Station) -> Result<(), Discard> {
        let Some(neighbour) = self.by_mac.get_mut(&mac).filter(|neighbour| neighbour.port.is_none()) else {
            return Ok(());
        };
        let port = station.ports.take(mac).ok_or(Discard::NoRoom)?;
        neighbour.port = Some(port);
        self.ve_ports.insert(port, mac);
        station.bind(BindingChange::Join { mac, port });
        station.report(Event::NeighbourUp { port, mac, switch_name: neighbour.switch_name });
        station.input_switch(fabric_switch::Input::PortUp { port, kind: PortKind::E });
        Ok(())
    }

    /// Ends the virtual link to another FCF without notification. A new link requires another
    /// solicited advertisement.
    fn close(&mut self, mac: MacAddr, station: &mut Station) {
        let Some(neighbour) = self.by_mac.get_mut(&mac) else { return };
        let Some(port) = neighbour.port.take() else { return };
        neighbour.usable = false;
        self.ve_ports.remove(&port);
        station.release_port(port, mac);
        station.bind(BindingChange::Part { mac });
        station.input_switch(fabric_switch::Input::PortDown { port });
        station.report(Event::NeighbourDown { port, mac });
    }

    /// Ends the virtual link to another FCF and notifies that FCF.
    pub(super) fn clear(&mut self, port: u16, station: &mut Station) {
        if let Some(mac) = self.mac_of(port) {
            station.send_clear(mac, None);
            self.close(mac, station);
        }
    }

    /// Removes another FCF.
    pub(super) fn remove(&mut self, mac: MacAddr, station: &mut Station) {
        self.close(mac, station);
        self.by_mac.remove(&mac);
        station.alarms.clear(Timer::Neighbour(mac));
    }

    /// Removes all FCFs without notification.
    pub(super) fn remove_all(&mut self, station: &mut Station) {
        let macs: Vec<MacAddr> = self.by_mac.keys().copied().collect();
        macs.into_iter().for_each(|mac| self.remove(mac, station));
    }

    /// Notifies all FCFs that no virtual link is valid here.
    pub(super) fn clear_all(&self, station: &mut Station) {
        self.ve_ports.values().for_each(|mac| station.send_clear(*mac, None));
    }

    /// Handles Clear Virtual Links from another FCF.
    pub(super) fn on_clear(&mut self, from: MacAddr, packet: &Fip, station: &mut Station) -> Result<(), Discard> {
        let neighbour = self.by_mac.get(&from).ok_or(Discard::NotLoggedIn)?;
        if packet.mac() != Some(from) || packet.name() != Some(neighbour.switch_name) {
            return Err(Discard::Descriptors);
        }
        self.close(from, station);
        Ok(())
    }

    /// Handles an ELP of another FCF, or its reply to an ELP of the switch.
    pub(super) fn on_elp(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: Fip,
        reply: bool,
        station: &mut Station,
    ) -> Result<(), Discard> {
        if !self.contains(from) {
            return Err(Discard::NotLoggedIn);
        }
        let Some((LinkService::Elp, frame)) = only_link_service(packet) else {
            return Err(Discard::Descriptors);
        };
        let header = frame.header;
        let expected = if reply { RCtl::SOLICITED_CONTROL } else { RCtl::UNSOLICITED_CONTROL };
        let valid = header.r_ctl == expected
            && (header.s_id, header.d_id) == (FcId::FABRIC_CONTROLLER, FcId::FABRIC_CONTROLLER)
            && matches!(&frame.payload, Payload::Typed(Message::SwIls(ils)) if is_elp(ils, reply));
        if !valid {
            return Err(Discard::Descriptors);
        }
        if !reply {
            // Its ELP shows that it received a padded advertisement of this FCF, which proves the
            // path as well.
            self.open(from, station)?;
        }
        let port = self.by_mac.get(&from).and_then(|neighbour| neighbour.port).ok_or(Discard::Stale)?;
        if !reply {
            let pending =
                Pending { service: LinkService::Elp, to: Some(from), s_id: header.s_id, name: Wwpn::default() };
            station.await_reply(now, port, header.ox_id, pending)?;
        }
        station.input_switch(fabric_switch::Input::Frame { port, frame });
        Ok(())
    }
}

/// Sends a solicitation to FCFs.
pub(super) fn solicit(to: MacAddr, station: &mut Station) {
    let descriptors = vec![
        Descriptor::Mac(station.config.mac),
        Descriptor::FcMap(station.config.fc_map),
        Descriptor::Name(station.config.switch_name),
        Descriptor::MaxFcoeBytes(station.config.max_fcoe_bytes),
    ];
    let packet = Fip { operation: Operation::SOLICITATION, flags: flag::FPMA | flag::FCF, descriptors };
    station.send_fip(station.fip_frame(to, 0, packet));
}

/// Sends a frame of the switch to another FCF: ELP and its reply over FIP, everything else over
/// FCoE.
pub(super) fn send(port: u16, mac: MacAddr, frame: Frame, station: &mut Station) {
    let elp = match &frame.payload {
        Payload::Typed(Message::SwIls(ils)) => matches!(**ils, SwIls::Elp(_)),
        _ => false,
    };
    if elp && frame.header.r_ctl == RCtl::UNSOLICITED_CONTROL {
        let service = Descriptor::LinkService { service: LinkService::Elp, frame: Box::new(frame) };
        let descriptors = vec![service, Descriptor::Mac(station.config.mac)];
        let operation = Operation::LINK_SERVICE_REQUEST;
        let packet = Fip { operation, flags: flag::FPMA | flag::FCF, descriptors };
        station.send_fip(station.fip_frame(mac, 0, packet));
    } else if frame.header.r_ctl == RCtl::SOLICITED_CONTROL && station.pending.take(port, frame.header.ox_id).is_some()
    {
        let granted = Some(station.config.mac);
        station.send_fip(station.link_service_reply(LinkService::Elp, mac, frame, granted));
    } else {
        station.send_fcoe(mac, frame);
    }
}

fn is_elp(ils: &SwIls, reply: bool) -> bool {
    matches!((ils, reply), (SwIls::Elp(_), false) | (SwIls::SwAcc(SwAcc::Elp(_)) | SwIls::SwRjt(_), true))
}
