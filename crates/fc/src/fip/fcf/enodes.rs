//! VF_Ports: attached ENodes and their keep-alives.

use super::config::{Event, LinkEnd, VirtualLink};
use super::station::{Station, Timer};
use crate::fabric_switch;
use crate::fip::{BindingChange, Discard, VN_PORT_KEEP_ALIVE, silence_limit};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService};
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

/// VF_Port of an ENode.
#[derive(Debug)]
pub(super) struct VfPort {
    pub(super) mac: MacAddr,
    /// N_Port_IDs of its logged-in VN_Ports.
    pub(super) ids: BTreeSet<FcId>,
    /// Last accepted FLOGI; a retransmission gets the same accept.
    pub(super) accepted: Option<Box<Accepted>>,
}

/// FLOGI and its accept.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) ox_id: u16,
    pub(super) name: Wwpn,
    pub(super) until: Instant,
    pub(super) reply: FipFrame,
}

/// Logged-in N_Port_ID.
#[derive(Clone, Copy, Debug)]
pub(super) struct VnPort {
    pub(super) port: u16,
    pub(super) name: Wwpn,
}

/// Stations that send keep-alives without a login, each with the time of the first one. Most are
/// about to log in.
#[derive(Debug, Default)]
pub(super) struct Strangers(BTreeMap<MacAddr, Instant>);

impl Strangers {
    /// Maximum number of entries; beyond it the table is cleared.
    const MAX: usize = 64;

    /// Handles a keep-alive of a station without a login. Returns true if it has sent them for
    /// longer than a login takes, so it assumes a login that does not exist.
    fn is_overdue(&mut self, now: Instant, mac: MacAddr, login: Span) -> bool {
        if self.0.len() >= Strangers::MAX && !self.0.contains_key(&mac) {
            self.0.clear();
        }
        let since = *self.0.entry(mac).or_insert(now);
        let late = now >= since + login;
        if late {
            self.0.remove(&mac);
        }
        late
    }

    /// Removes a station that restarts discovery or logs in.
    pub(super) fn remove(&mut self, mac: MacAddr) {
        self.0.remove(&mac);
    }
}

/// Attached ENodes and their VN_Ports.
#[derive(Debug, Default)]
pub(super) struct Enodes {
    /// VF_Ports by switch port.
    pub(super) vf_ports: BTreeMap<u16, VfPort>,
    /// Switch port of each ENode.
    pub(super) by_mac: BTreeMap<MacAddr, u16>,
    pub(super) vn_ports: BTreeMap<FcId, VnPort>,
    pub(super) strangers: Strangers,
}

impl Enodes {
    /// Virtual links of ENodes, sorted by switch port.
    pub(super) fn links(&self) -> impl Iterator<Item = VirtualLink> + '_ {
        self.vf_ports.iter().map(|(port, vf)| VirtualLink {
            port: *port,
            mac: vf.mac,
            end: LinkEnd::Enode { vn_ports: vf.ids.len() },
        })
    }

    /// Memory of the tables, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.vf_ports.len() * size_of::<(u16, VfPort)>() + self.vn_ports.len() * 2 * size_of::<(FcId, VnPort)>()
    }

    /// Returns true if an ENode is behind this switch port.
    pub(super) fn has_port(&self, port: u16) -> bool {
        self.vf_ports.contains_key(&port)
    }

    /// Handles a solicitation. Returns the largest FCoE PDU that the ENode may receive, in bytes.
    pub(super) fn on_solicitation(&mut self, from: MacAddr, packet: &Fip, station: &Station) -> Result<u16, Discard> {
        if !station.config.enodes {
            return Err(Discard::UnexpectedOperation);
        }
        let (Some(mac), Some(bytes)) = (packet.mac(), packet.max_fcoe_bytes()) else {
            return Err(Discard::Descriptors);
        };
        if mac != from {
            return Err(Discard::Spoofed);
        }
        self.strangers.remove(from);
        if let Some(vf) = self.by_mac.get(&from).and_then(|port| self.vf_ports.get_mut(port)) {
            // The ENode restarts discovery, so its next FLOGI is a new one even with the same
            // OX_ID.
            vf.accepted = None;
        }
        Ok(bytes)
    }

    /// Handles a keep-alive of an ENode or a VN_Port.
    pub(super) fn on_keep_alive(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: &Fip,
        station: &mut Station,
    ) -> Result<(), Discard> {
        let enode = packet.mac().ok_or(Discard::Descriptors)?;
        match packet.vx_port() {
            Some(vx_port) => self.vn_port_alive(now, from, enode, vx_port, station),
            None => self.enode_alive(now, from, enode, station),
        }
    }

    fn enode_alive(
        &mut self,
        now: Instant,
        from: MacAddr,
        enode: MacAddr,
        station: &mut Station,
    ) -> Result<(), Discard> {
        if from != enode {
            return Err(Discard::Spoofed);
        }
        if let Some(port) = self.by_mac.get(&from).copied() {
            restart_enode_timer(now, port, station);
            return Ok(());
        }
        // A host that selected this FCF also sends keep-alives before its first FLOGI.
        if self.strangers.is_overdue(now, from, station.config.e_d_tov.times(4)) {
            station.send_clear(from, None);
        }
        Err(Discard::NotLoggedIn)
    }

    fn vn_port_alive(
        &mut self,
        now: Instant,
        from: MacAddr,
        enode: MacAddr,
        (mac, port_id, port_name): (MacAddr, FcId, Wwpn),
        station: &mut Station,
    ) -> Result<(), Discard> {
        if from != mac || mac != station.fpma(port_id) || !enode.is_station() {
            return Err(Discard::Spoofed);
        }
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else {
            station.send_clear(enode, [Descriptor::VxPort { mac, port_id, port_name }]);
            return Err(Discard::NotLoggedIn);
        };
        if vn_port.name != port_name || self.by_mac.get(&enode) != Some(&vn_port.port) {
            return Err(Discard::Spoofed);
        }
        restart_vn_port_timer(now, port_id, station);
        Ok(())
    }

    /// Logs out a VN_Port whose keep-alives stopped, and notifies its ENode.
    pub(super) fn on_vn_port_timeout(&mut self, now: Instant, port_id: FcId, station: &mut Station) {
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else { return };
        self.notify_logout(port_id, vn_port, station);
        self.log_out_at_switch(now, port_id, vn_port, station);
    }

    /// Handles Clear Virtual Links from an ENode: ends the listed virtual links, or all if none are
    /// listed.
    pub(super) fn on_clear(
        &mut self,
        now: Instant,
        from: MacAddr,
        packet: &Fip,
        station: &mut Station,
    ) -> Result<(), Discard> {
        let port = self.by_mac.get(&from).copied().ok_or(Discard::NotLoggedIn)?;
        if packet.mac() != Some(from) {
            return Err(Discard::Descriptors);
        }
        let mut listed = 0;
        for (mac, port_id, port_name) in packet.vx_ports() {
            listed += 1;
            let ours = self.vn_ports.get(&port_id).copied();
            if let Some(vn_port) = ours.filter(|vn_port| vn_port.port == port && vn_port.name == port_name)
                && mac == station.fpma(port_id)
            {
                self.log_out_at_switch(now, port_id, vn_port, station);
            }
        }
        if listed == 0 {
            self.close(port, station);
        }
        Ok(())
    }

    /// Handles the removal of an N_Port_ID by the switch. The ENode is notified unless its own
    /// request caused the removal.
    pub(super) fn on_removed(&mut self, port_id: FcId, station: &mut Station) {
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else { return };
        let requested = station.pending.of_port(vn_port.port).any(|pending| match pending.service {
            LinkService::Flogi => true,
            LinkService::Fdisc => pending.name == vn_port.name,
            LinkService::Logo => pending.s_id == port_id,
            LinkService::Elp => false,
        });
        if !requested {
            self.notify_logout(port_id, vn_port, station);
        }
        self.remove_vn_port(port_id, station);
        if !requested {
            self.close_if_empty(vn_port.port, station);
        }
    }

    /// Notifies an ENode that one of its VN_Ports is logged out.
    fn notify_logout(&self, port_id: FcId, vn_port: VnPort, station: &mut Station) {
        if let Some(enode) = self.vf_ports.get(&vn_port.port).map(|vf| vf.mac) {
            let mac = station.fpma(port_id);
            station.send_clear(enode, [Descriptor::VxPort { mac, port_id, port_name: vn_port.name }]);
        }
    }

    /// Removes the virtual link of an N_Port_ID.
    pub(super) fn remove_vn_port(&mut self, port_id: FcId, station: &mut Station) {
        let Some(vn_port) = self.vn_ports.remove(&port_id) else { return };
        if let Some(vf) = self.vf_ports.get_mut(&vn_port.port) {
            vf.ids.remove(&port_id);
        }
        station.alarms.clear(Timer::VnPort(port_id));
        station.bind(BindingChange::Unbind { port_id });
        station.report(Event::VnPortDown { port_id, port_name: vn_port.name });
    }

    /// Removes the VF_Port of an ENode without logins.
    pub(super) fn close_if_empty(&mut self, port: u16, station: &mut Station) {
        if self.vf_ports.get(&port).is_some_and(|vf| vf.ids.is_empty()) {
            self.close(port, station);
        }
    }

    /// Ends the virtual link of an ENode and notifies the ENode.
    pub(super) fn clear(&mut self, port: u16, station: &mut Station) {
        if let Some(mac) = self.vf_ports.get(&port).map(|vf| vf.mac) {
            station.send_clear(mac, None);
            self.close(port, station);
        }
    }

    /// Ends the virtual link of an ENode without notification.
    pub(super) fn close(&mut self, port: u16, station: &mut Station) {
        let Some(vf) = self.vf_ports.get(&port) else { return };
        let (mac, ids) = (vf.mac, vf.ids.clone());
        ids.into_iter().for_each(|id| self.remove_vn_port(id, station));
        self.vf_ports.remove(&port);
        self.by_mac.remove(&mac);
        station.alarms.clear(Timer::Enode(port));
        station.release_port(port, mac);
        station.input_switch(fabric_switch::Input::PortDown { port });
        station.report(Event::EnodeDown { port, mac });
    }

    /// Ends all virtual links of ENodes without notification.
    pub(super) fn close_all(&mut self, station: &mut Station) {
        let ports: Vec<u16> = self.vf_ports.keys().copied().collect();
        ports.into_iter().for_each(|port| self.close(port, station));
    }
}

/// Restarts the timer for the keep-alives of an ENode.
pub(super) fn restart_enode_timer(now: Instant, port: u16, station: &mut Station) {
    if station.config.keep_alives {
        station.alarms.set(Timer::Enode(port), now + silence_limit(station.config.period));
    }
}

/// Restarts the timer for the keep-alives of a VN_Port.
pub(super) fn restart_vn_port_timer(now: Instant, port_id: FcId, station: &mut Station) {
    if station.config.keep_alives {
        station.alarms.set(Timer::VnPort(port_id), now + silence_limit(VN_PORT_KEEP_ALIVE));
    }
}
