//! Ports of a switch and the N_Port_IDs logged in at them: [`LoginTable`].

use crate::fabric::PortMode;
use sanloom_wire::{FcId, Header, Wwpn, login};
use std::collections::{BTreeMap, BTreeSet};

/// Ports with their logins, and logins with their sessions with the services.
#[derive(Debug)]
pub(super) struct LoginTable {
    ports: Vec<Port>,
    logins: BTreeMap<FcId, Login>,
}

#[derive(Clone, Debug)]
struct Port {
    mode: PortMode,
    /// Port name and address of the last FLOGI, used for the clean-address bit.
    last_login: Option<(Wwpn, FcId)>,
    /// Address from the FLOGI while it is logged in.
    base: Option<FcId>,
    /// All addresses logged in at this port.
    ids: BTreeSet<FcId>,
    /// FLOGIs pending until the switch has a domain: at most one, or one for each AL_PA of a loop.
    held: Vec<HeldFlogi>,
    /// True if the port rejects logins until its link has been down.
    blocked: bool,
    /// AL_PAs of the NL_Ports, if the port is the FL_Port of a loop.
    al_pas: Option<BTreeSet<u8>>,
}

impl Port {
    const DOWN: Port = Port {
        mode: PortMode::Down,
        last_login: None,
        base: None,
        ids: BTreeSet::new(),
        held: Vec::new(),
        blocked: false,
        al_pas: None,
    };
}

/// N_Port_ID logged in at this switch.
#[derive(Clone, Copy, Debug, Default)]
struct Login {
    port: u16,
    /// Bit set of the services with which the port is logged in.
    services: u8,
    /// True once a change affected discovery; from then on every change is sent to the other
    /// switches.
    announced: bool,
}

/// Pending FLOGI of a switch without a domain.
#[derive(Clone, Debug)]
pub(super) struct HeldFlogi {
    pub(super) header: Header,
    pub(super) request: login::Login,
}

impl LoginTable {
    /// Returns a table of `ports` ports that are down.
    pub(super) fn new(ports: u16) -> LoginTable {
        LoginTable { ports: vec![Port::DOWN; usize::from(ports)], logins: BTreeMap::new() }
    }

    /// Raises the number of ports to `ports`, never lowers it; the new ports are down.
    pub(super) fn grow(&mut self, ports: u16) {
        let ports = self.ports.len().max(usize::from(ports));
        self.ports.resize(ports, Port::DOWN);
    }

    /// Number of ports; valid port numbers are below it.
    pub(super) fn port_count(&self) -> u16 {
        self.ports.len() as u16
    }

    /// Mode of a port; `Down` for a port number that does not exist.
    pub(super) fn mode(&self, port: u16) -> PortMode {
        self.port(port).map_or(PortMode::Down, |state| state.mode)
    }

    /// Sets the mode of a port after a change of its link, and drops the state that ends with the
    /// link. Returns false for a port number that does not exist.
    pub(super) fn reset(&mut self, port: u16, mode: PortMode) -> bool {
        let Some(state) = self.port_mut(port) else { return false };
        (state.mode, state.held, state.blocked, state.al_pas) = (mode, Vec::new(), false, None);
        true
    }

    /// Makes an existing port the FL_Port of a loop with these NL_Ports.
    pub(super) fn set_loop(&mut self, port: u16, al_pas: BTreeSet<u8>) {
        if let Some(state) = self.port_mut(port) {
            state.held.retain(|held| al_pas.contains(&held.header.s_id.port()));
            state.al_pas = Some(al_pas);
        }
    }

    /// Returns true if the port is the FL_Port of a loop.
    pub(super) fn is_loop(&self, port: u16) -> bool {
        self.port(port).is_some_and(|state| state.al_pas.is_some())
    }

    /// Returns true if a port without a fabric login may send FLOGI from this address: 0, or
    /// 0000xx with the AL_PA of an NL_Port on a loop.
    pub(super) fn may_log_in(&self, port: u16, s_id: FcId) -> bool {
        match self.port(port).and_then(|state| state.al_pas.as_ref()) {
            Some(al_pas) => (s_id.domain(), s_id.area()) == (0, 0) && al_pas.contains(&s_id.port()),
            None => s_id == FcId::ZERO,
        }
    }

    /// Stores the latest FLOGI of a port, or of an NL_Port on a loop. An N_Port that sends another
    /// FLOGI has abandoned the earlier one.
    pub(super) fn hold(&mut self, port: u16, header: &Header, request: &login::Login) {
        if let Some(state) = self.port_mut(port) {
            let is_loop = state.al_pas.is_some();
            state.held.retain(|held| is_loop && held.header.s_id != header.s_id);
            state.held.push(HeldFlogi { header: *header, request: request.clone() });
        }
    }

    /// Removes and returns the pending FLOGIs of a port.
    pub(super) fn take_held(&mut self, port: u16) -> Vec<HeldFlogi> {
        self.port_mut(port).map(|state| std::mem::take(&mut state.held)).unwrap_or_default()
    }

    /// Makes a port reject logins until its link has been down.
    pub(super) fn block(&mut self, port: u16) {
        if let Some(state) = self.port_mut(port) {
            state.blocked = true;
        }
    }

    pub(super) fn is_blocked(&self, port: u16) -> bool {
        self.port(port).is_some_and(|state| state.blocked)
    }

    /// Blocked ports, sorted.
    pub(super) fn blocked_ports(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.ports).filter(|(_, port)| port.blocked).map(|(number, _)| number)
    }

    /// Adds a login at an existing port.
    pub(super) fn insert(&mut self, port: u16, id: FcId) {
        if let Some(state) = self.port_mut(port) {
            state.ids.insert(id);
            self.logins.insert(id, Login { port, ..Login::default() });
        }
    }

    /// Removes a login and returns its port.
    pub(super) fn remove(&mut self, id: FcId) -> Option<u16> {
        let port = self.logins.remove(&id)?.port;
        if let Some(state) = self.port_mut(port) {
            let was_there = state.ids.remove(&id);
            debug_assert!(was_there, "{id} is logged in at port {port}, which does not list it");
            state.base.take_if(|base| *base == id);
        }
        Some(port)
    }

    /// Records that the FLOGI of a port was accepted. Returns true if the last FLOGI had the same
    /// name and address.
    pub(super) fn set_base(&mut self, port: u16, name: Wwpn, id: FcId) -> bool {
        let Some(state) = self.port_mut(port) else { return false };
        debug_assert!(state.ids.contains(&id), "the address {id} of the FLOGI is not logged in at port {port}");
        state.base = Some(id);
        state.last_login.replace((name, id)) == Some((name, id))
    }

    /// Address from the FLOGI of a port while it is logged in.
    pub(super) fn base(&self, port: u16) -> Option<FcId> {
        self.port(port)?.base
    }

    /// Address of the last FLOGI at a port, if it had this name.
    pub(super) fn last_id(&self, port: u16, name: Wwpn) -> Option<FcId> {
        self.port(port)?.last_login.filter(|(of, _)| *of == name).map(|(_, id)| id)
    }

    /// Addresses logged in at a port, sorted.
    pub(super) fn at_port(&self, port: u16) -> impl ExactSizeIterator<Item = FcId> + '_ {
        const NONE: &BTreeSet<FcId> = &BTreeSet::new();
        self.port(port).map_or(NONE, |state| &state.ids).iter().copied()
    }

    /// Address of the last FLOGI of a port while it is logged in, otherwise its lowest virtual one.
    pub(super) fn first_at(&self, port: u16) -> Option<FcId> {
        self.base(port).or_else(|| self.at_port(port).next())
    }

    /// All logins with their ports, sorted by address.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (FcId, u16)> + '_ {
        self.logins.iter().map(|(id, login)| (*id, login.port))
    }

    /// Number of logins.
    pub(super) fn len(&self) -> usize {
        self.logins.len()
    }

    pub(super) fn contains(&self, id: FcId) -> bool {
        self.logins.contains_key(&id)
    }

    /// Port at which an address is logged in.
    pub(super) fn port_of(&self, id: FcId) -> Option<u16> {
        self.logins.get(&id).map(|login| login.port)
    }

    /// Returns true if the address is logged in at this port.
    pub(super) fn is_at(&self, port: u16, id: FcId) -> bool {
        self.port_of(id) == Some(port)
    }

    /// Returns true if the address was allocated by an FDISC.
    pub(super) fn is_virtual(&self, id: FcId) -> bool {
        self.port_of(id).is_some_and(|port| self.base(port) != Some(id) && !self.is_loop(port))
    }

    /// Returns true if the address is logged in with the service.
    pub(super) fn has_session(&self, id: FcId, service: FcId) -> bool {
        self.logins.get(&id).is_some_and(|login| login.services & service_bit(service) != 0)
    }

    /// Starts or ends the session of an address with a service.
    pub(super) fn set_session(&mut self, id: FcId, service: FcId, logged_in: bool) {
        if let Some(login) = self.logins.get_mut(&id) {
            login.services &= !service_bit(service);
            login.services |= if logged_in { service_bit(service) } else { 0 };
        }
    }

    /// Records a change of the object of an address. Returns true if the change must be sent to the
    /// other switches, because this or an earlier change affects discovery.
    pub(super) fn announce(&mut self, id: FcId, affects_discovery: bool) -> bool {
        self.logins.get_mut(&id).is_some_and(|login| {
            login.announced |= affects_discovery;
            login.announced
        })
    }

    fn port(&self, port: u16) -> Option<&Port> {
        self.ports.get(usize::from(port))
    }

    fn port_mut(&mut self, port: u16) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(port))
    }
}

/// Bit of each service that accepts a PLOGI.
fn service_bit(service: FcId) -> u8 {
    match service {
        FcId::FABRIC_CONTROLLER => 1,
        FcId::NAME_SERVER => 2,
        FcId::MANAGEMENT_SERVER => 4,
        _ => 0,
    }
}
