//! VF_Ports: which ENodes are there, and that they are alive.

use super::config::{Event, Output};
use super::{Fcf, Timer};
use crate::fabric_switch;
use crate::fip::{BindingChange, Discard, VN_PORT_KEEP_ALIVE, patience};
use crate::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService};
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

/// The port of an ENode.
#[derive(Debug)]
pub(super) struct VfPort {
    pub(super) mac: MacAddr,
    /// Its VN_Ports that are logged in.
    pub(super) ids: BTreeSet<FcId>,
    /// The last FLOGI that was accepted, for the case that it comes twice.
    pub(super) accepted: Option<Box<Accepted>>,
}

/// A FLOGI and its accept.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) ox_id: u16,
    pub(super) name: Wwpn,
    pub(super) until: Instant,
    pub(super) reply: FipFrame,
}

/// An N_Port_ID that is logged in.
#[derive(Clone, Copy, Debug)]
pub(super) struct VnPort {
    pub(super) port: u16,
    pub(super) name: Wwpn,
}

/// Stations without a login that say that they are alive, and since when. Most are about to log in.
#[derive(Debug, Default)]
pub(super) struct Strangers(BTreeMap<MacAddr, Instant>);

impl Strangers {
    /// More are not worth their memory.
    const MOST: usize = 64;

    /// A station said that it is alive: true if it has done so for longer than a login takes.
    fn believes_to_be_logged_in(&mut self, now: Instant, mac: MacAddr, login: Span) -> bool {
        if self.0.len() >= Strangers::MOST && !self.0.contains_key(&mac) {
            self.0.clear();
        }
        let since = *self.0.entry(mac).or_insert(now);
        let late = now >= since + login;
        if late {
            self.0.remove(&mac);
        }
        late
    }

    pub(super) fn forget(&mut self, mac: MacAddr) {
        self.0.remove(&mac);
    }
}

impl Fcf {
    pub(super) fn fpma(&self, id: FcId) -> MacAddr {
        MacAddr::fpma(self.config.fc_map, id)
    }

    /// An ENode looks for FCFs: it gets an advertisement as long as the longest frame that it could get.
    pub(super) fn solicited_by_enode(&mut self, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        if !self.config.enodes {
            return Err(Discard::UnexpectedOperation);
        }
        let (Some(mac), Some(bytes)) = (packet.mac(), packet.max_fcoe_bytes()) else {
            return Err(Discard::Descriptors);
        };
        if mac != from {
            return Err(Discard::Spoofed);
        }
        self.strangers.forget(from);
        if let Some(vf) = self.enodes.get(&from).and_then(|port| self.vf_ports.get_mut(port)) {
            // It starts over: its next FLOGI is a new one, whatever its number.
            vf.accepted = None;
        }
        self.fip(from, bytes.min(self.config.max_fcoe_bytes), self.advertisement(true).packet());
        Ok(())
    }

    /// An ENode or a VN_Port is alive.
    pub(super) fn keep_alive(&mut self, now: Instant, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        let enode = packet.mac().ok_or(Discard::Descriptors)?;
        match packet.vx_port() {
            Some(vx_port) => self.vn_port_alive(now, from, enode, vx_port),
            None => self.enode_alive(now, from, enode),
        }
    }

    fn enode_alive(&mut self, now: Instant, from: MacAddr, enode: MacAddr) -> Result<(), Discard> {
        if from != enode {
            return Err(Discard::Spoofed);
        }
        if let Some(port) = self.enodes.get(&from).copied() {
            self.expect_enode(now, port);
            return Ok(());
        }
        // A host that has chosen this FCF says so before its first FLOGI, too.
        if self.strangers.believes_to_be_logged_in(now, from, self.config.e_d_tov.times(4)) {
            self.send_clear(from, None);
        }
        Err(Discard::NotLoggedIn)
    }

    fn vn_port_alive(
        &mut self,
        now: Instant,
        from: MacAddr,
        enode: MacAddr,
        (mac, port_id, port_name): (MacAddr, FcId, Wwpn),
    ) -> Result<(), Discard> {
        if from != mac || mac != self.fpma(port_id) || !enode.is_station() {
            return Err(Discard::Spoofed);
        }
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else {
            self.send_clear(enode, [Descriptor::VxPort { mac, port_id, port_name }]);
            return Err(Discard::NotLoggedIn);
        };
        if vn_port.name != port_name || self.enodes.get(&enode) != Some(&vn_port.port) {
            return Err(Discard::Spoofed);
        }
        self.expect_vn_port(now, port_id);
        Ok(())
    }

    pub(super) fn expect_enode(&mut self, now: Instant, port: u16) {
        if self.config.keep_alives {
            self.alarms.set(Timer::Enode(port), now + patience(self.config.period));
        }
    }

    pub(super) fn expect_vn_port(&mut self, now: Instant, port_id: FcId) {
        if self.config.keep_alives {
            self.alarms.set(Timer::VnPort(port_id), now + patience(VN_PORT_KEEP_ALIVE));
        }
    }

    /// Nothing was heard of a VN_Port: it is logged out, and told so.
    pub(super) fn vn_port_silent(&mut self, now: Instant, port_id: FcId) {
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else { return };
        self.clear_vn_port(port_id, vn_port);
        self.log_out_at_switch(now, port_id, vn_port);
    }

    /// An ENode ends virtual links of its own: those that it names, or all.
    pub(super) fn cleared_by_enode(&mut self, now: Instant, from: MacAddr, packet: &Fip) -> Result<(), Discard> {
        let port = self.enodes.get(&from).copied().ok_or(Discard::NotLoggedIn)?;
        if packet.mac() != Some(from) {
            return Err(Discard::Descriptors);
        }
        let mut named = 0;
        for (mac, port_id, port_name) in packet.vx_ports() {
            named += 1;
            let ours = self.vn_ports.get(&port_id).copied();
            if let Some(vn_port) = ours.filter(|vn_port| vn_port.port == port && vn_port.name == port_name)
                && mac == self.fpma(port_id)
            {
                self.log_out_at_switch(now, port_id, vn_port);
            }
        }
        if named == 0 {
            self.close_vf_port(port);
        }
        Ok(())
    }

    /// The switch has taken an N_Port_ID back. The ENode hears of it, unless it asked for that itself.
    pub(super) fn removed(&mut self, port_id: FcId) {
        let Some(vn_port) = self.vn_ports.get(&port_id).copied() else { return };
        let asked = self.pending_of(vn_port.port).any(|pending| match pending.service {
            LinkService::Flogi => true,
            LinkService::Fdisc => pending.name == vn_port.name,
            LinkService::Logo => pending.s_id == port_id,
            LinkService::Elp => false,
        });
        if !asked {
            self.clear_vn_port(port_id, vn_port);
        }
        self.drop_vn_port(port_id);
        if !asked {
            self.close_if_empty(vn_port.port);
        }
    }

    /// Tells an ENode that one of its VN_Ports is logged out.
    fn clear_vn_port(&mut self, port_id: FcId, vn_port: VnPort) {
        if let Some(enode) = self.vf_ports.get(&vn_port.port).map(|vf| vf.mac) {
            let mac = self.fpma(port_id);
            self.send_clear(enode, [Descriptor::VxPort { mac, port_id, port_name: vn_port.name }]);
        }
    }

    /// An N_Port_ID has no virtual link any more.
    pub(super) fn drop_vn_port(&mut self, port_id: FcId) {
        let Some(vn_port) = self.vn_ports.remove(&port_id) else { return };
        if let Some(vf) = self.vf_ports.get_mut(&vn_port.port) {
            vf.ids.remove(&port_id);
        }
        self.alarms.clear(Timer::VnPort(port_id));
        self.bind(BindingChange::Unbind { port_id });
        self.event(Event::VnPortDown { port_id, port_name: vn_port.name });
    }

    /// An ENode without a login needs no port.
    pub(super) fn close_if_empty(&mut self, port: u16) {
        if self.vf_ports.get(&port).is_some_and(|vf| vf.ids.is_empty()) {
            self.close_vf_port(port);
        }
    }

    /// Ends a virtual link and says so to the other end.
    pub(super) fn clear(&mut self, port: u16) {
        if let Some(mac) = self.vf_ports.get(&port).map(|vf| vf.mac) {
            self.send_clear(mac, None);
            self.close_vf_port(port);
        } else if let Some(mac) = self.ve_ports.get(&port).copied() {
            self.send_clear(mac, None);
            self.close_ve_port(mac);
        }
    }

    /// Ends the virtual link of an ENode, without a word.
    pub(super) fn close_vf_port(&mut self, port: u16) {
        let Some(vf) = self.vf_ports.get(&port) else { return };
        let (mac, ids) = (vf.mac, vf.ids.clone());
        ids.into_iter().for_each(|id| self.drop_vn_port(id));
        self.vf_ports.remove(&port);
        self.enodes.remove(&mac);
        self.alarms.clear(Timer::Enode(port));
        self.forget_pending_of(port);
        self.pool.give_back(port, mac);
        self.outputs.push_back(Output::Switch(fabric_switch::Input::PortDown { port }));
        self.event(Event::EnodeDown { port, mac });
    }
}
