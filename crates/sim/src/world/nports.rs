//! N_Ports: their logins, their addresses, and the virtual ports that HBAs carry.
//!
//! A virtual port has its own login and command machines; only its frames pass through the HBA that
//! carries it. The HBA delivers a frame to the port with the matching D_ID. The D_ID of a response
//! to FDISC is not known in advance, so that response goes to the port that waits for its OX_ID.

use super::World;
use sanloom_fc::nport::{Adapter, FabricState, Input, NPort, Output, RemoteState};
use sanloom_fc::san::Lab;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Header, Wwpn};
use std::collections::BTreeMap;

/// All N_Ports: HBAs of all hosts, then ports of all storage systems, then virtual ports of virtual
/// machines.
pub struct NPorts {
    pub nodes: Vec<NodePort>,
    /// N_Ports with whose address another N_Port sends its commands.
    foreign: BTreeMap<u16, u16>,
}

/// One N_Port.
pub struct NodePort {
    pub owner: Owner,
    /// Login, discovery, state changes.
    pub login: NPort,
    /// Fibre Channel address; zero before login.
    pub port_id: FcId,
    /// N_Port of the frame path used for sending: its own, or that of the HBA that carries it.
    pub plane: u16,
    pub is_virtual: bool,
    carried: Carried,
    /// Frames that no machine accepted.
    pub unexpected_frames: u64,
}

/// Owner of an N_Port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// HBA of a host.
    Host { host: u16, hba: u16 },
    /// Port of a storage system.
    Storage { storage: u16, port: u16 },
}

/// The virtual ports carried by an HBA.
#[derive(Default)]
struct Carried {
    ports: Vec<u16>,
    /// Ports that have an address, sorted by address.
    by_id: Vec<(FcId, u16)>,
}

impl Carried {
    fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.by_id.is_empty()
    }

    fn find(&self, id: FcId) -> Option<u16> {
        let at = self.by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.by_id[at].1)
    }

    fn insert(&mut self, id: FcId, nport: u16) {
        match self.by_id.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => self.by_id[at].1 = nport,
            Err(at) => self.by_id.insert(at, (id, nport)),
        }
    }

    fn remove(&mut self, id: FcId, nport: u16) {
        self.by_id.retain(|&entry| entry != (id, nport));
    }
}

/// Returns the data frames that the N_Ports at each port of the frame path have discarded since the
/// end of the warm-up: behind a gap in their sequence, or without an exchange for them.
pub(crate) fn discarded_at_ports(world: &World) -> BTreeMap<u16, u64> {
    let mut discarded = BTreeMap::new();
    for ((now, before), node) in discarded_data(world).zip(&world.baseline.discarded).zip(&world.nports.nodes) {
        *discarded.entry(node.plane).or_default() += now.saturating_sub(*before);
    }
    discarded
}

/// Returns the number of data frames that each N_Port has discarded since the first login.
pub(super) fn discarded_data(world: &World) -> impl Iterator<Item = u64> {
    (0..world.nports.nodes.len() as u16).map(move |nport| {
        let of_host = world.hosts.initiator(nport).map_or(0, |initiator| initiator.counters().discarded_data);
        let of_storage = world.storage.target(nport).map_or(0, |target| target.counters().discarded_data);
        of_host + of_storage
    })
}

impl NodePort {
    /// Returns an N_Port that sends through `plane` and has not logged in.
    pub(super) fn new(owner: Owner, login: NPort, plane: u16, is_virtual: bool) -> NodePort {
        NodePort {
            owner,
            login,
            port_id: FcId::ZERO,
            plane,
            is_virtual,
            carried: Carried::default(),
            unexpected_frames: 0,
        }
    }
}

impl NPorts {
    pub(super) fn new(nodes: Vec<NodePort>) -> NPorts {
        NPorts { nodes, foreign: BTreeMap::new() }
    }

    /// Lets an N_Port send its commands with the address of `other`, or with its own again.
    pub(super) fn send_as(&mut self, nport: u16, other: Option<u16>) {
        match other {
            Some(other) => self.foreign.insert(nport, other),
            None => self.foreign.remove(&nport),
        };
    }

    /// Returns the address of another N_Port with which this one sends its commands, if a fault
    /// makes it do so.
    pub(super) fn foreign_address(&self, nport: u16) -> Option<FcId> {
        self.foreign.get(&nport).map(|&other| self.node(other).port_id)
    }

    /// Copies the addresses of [`NPorts::send_as`] from another world.
    pub(super) fn copy_foreign(&mut self, other: &NPorts) {
        self.foreign.clone_from(&other.foreign);
    }

    #[inline]
    pub(super) fn node(&self, nport: u16) -> &NodePort {
        &self.nodes[usize::from(nport)]
    }

    #[inline]
    pub(super) fn node_mut(&mut self, nport: u16) -> &mut NodePort {
        &mut self.nodes[usize::from(nport)]
    }

    /// Returns the N_Port of the frame path through which `nport` sends.
    #[inline]
    pub(super) fn plane_of(&self, nport: u16) -> u16 {
        self.node(nport).plane
    }

    /// Returns the N_Port with address `d_id` among those that share `plane`.
    #[inline]
    pub(super) fn addressee_of_data(&self, plane: u16, d_id: FcId) -> u16 {
        let node = self.node(plane);
        if d_id == node.port_id || node.carried.by_id.is_empty() {
            return plane;
        }
        node.carried.find(d_id).unwrap_or(plane)
    }

    /// Returns the destination N_Port of a message.
    pub(super) fn addressee(&self, plane: u16, header: &Header) -> u16 {
        let node = self.node(plane);
        if header.d_id == node.port_id || node.carried.is_empty() {
            return plane;
        }
        let expects = |nport: &&u16| self.node(**nport).login.expects(header);
        let of_fabric = header.s_id == FcId::F_PORT;
        // The response to FDISC is matched first, because its new address may still be listed for a
        // port that lost it without a logout.
        let requester = of_fabric.then(|| node.carried.ports.iter().find(expects).copied()).flatten();
        requester.or_else(|| node.carried.find(header.d_id)).unwrap_or(plane)
    }

    /// Returns the address of `nport` if several addresses send through its N_Port of the frame
    /// path.
    pub(super) fn own_id_on_shared_plane(&self, nport: u16) -> Option<FcId> {
        let node = self.node(nport);
        (node.is_virtual || !node.carried.ports.is_empty()).then_some(node.port_id)
    }

    /// Passes an input to the login machine of an N_Port.
    pub(super) fn handle(&mut self, now: Instant, nport: u16, input: Input) {
        self.node_mut(nport).login.handle(now, input);
    }

    /// Returns the next output of the login machine of an N_Port.
    pub(super) fn poll_output(&mut self, nport: u16) -> Option<Output> {
        self.node_mut(nport).login.poll_output()
    }

    /// Sets the address of an N_Port. The HBA that carries a virtual port updates its list. Returns
    /// the virtual ports whose physical port gained or lost its address.
    pub(super) fn set_port_id(&mut self, nport: u16, port_id: FcId) -> Vec<u16> {
        let node = self.node_mut(nport);
        let before = std::mem::replace(&mut node.port_id, port_id);
        if !node.is_virtual {
            return node.carried.ports.clone();
        }
        let plane = node.plane;
        debug_assert_ne!(plane, nport, "an HBA carries the virtual port");
        let carried = &mut self.node_mut(plane).carried;
        carried.remove(before, nport);
        if port_id != FcId::ZERO {
            carried.insert(port_id, nport);
        }
        Vec::new()
    }

    /// Attaches a virtual port to its HBA. Returns whether the port comes up, because the HBA has
    /// an address and did not carry the port before.
    pub(super) fn attach(&mut self, nport: u16) -> bool {
        let plane = self.plane_of(nport);
        let carrier = self.node_mut(plane);
        if carrier.carried.ports.contains(&nport) {
            return false;
        }
        carrier.carried.ports.push(nport);
        carrier.port_id != FcId::ZERO
    }

    /// Returns whether a port is virtual, and attached to an HBA with an address.
    pub(super) fn may_log_in(&self, nport: u16) -> bool {
        let node = self.node(nport);
        let carrier = self.node(node.plane);
        node.is_virtual && carrier.port_id != FcId::ZERO && carrier.carried.ports.contains(&nport)
    }

    /// Detaches a virtual port from its HBA. Returns whether it was attached.
    pub(super) fn detach(&mut self, nport: u16) -> bool {
        let plane = self.plane_of(nport);
        let ports = &mut self.node_mut(plane).carried.ports;
        let before = ports.len();
        ports.retain(|&port| port != nport);
        ports.len() < before
    }

    /// Moves a detached virtual port to another HBA.
    pub(super) fn move_to(&mut self, nport: u16, plane: u16) {
        debug_assert!(self.node(nport).is_virtual && !self.node(plane).is_virtual, "an HBA carries virtual ports");
        debug_assert!(
            !self.node(self.plane_of(nport)).carried.ports.contains(&nport),
            "N_Port {nport} is detached before it moves"
        );
        self.node_mut(nport).plane = plane;
    }

    /// Returns whether a port waits for a response or for its next login attempt.
    pub(super) fn is_logging_in(&self) -> bool {
        let open = |state: RemoteState| matches!(state, RemoteState::Waiting | RemoteState::Plogi | RemoteState::Prli);
        self.nodes.iter().any(|node| match node.login.state() {
            FabricState::Offline => false,
            FabricState::Ready => node.login.remotes().any(|(_, state)| open(state)),
            _ => true,
        })
    }
}

/// Returns the port, which registers its adapter if it is that of a host and the lab requests it.
pub(super) fn described(lab: &Lab, owner: Owner, mut port: NPort) -> NPort {
    let Owner::Host { host, hba } = owner else { return port };
    if !lab.live.registers_adapters {
        return port;
    }
    let name = &lab.hosts[usize::from(host)].name;
    port.describe(Adapter {
        manufacturer: "sanloom".to_owned(),
        serial_number: format!("{name}-{hba}"),
        model: "simulated HBA".to_owned(),
        model_description: "HBA of a simulated host".to_owned(),
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        os_device_name: format!("host{hba}"),
        host_name: name.clone(),
        ..Adapter::default()
    });
    port
}

/// Returns the N_Port of a host with a port name.
pub(super) fn of_host(lab: &Lab, owners: &[Owner], name: Wwpn) -> Option<u16> {
    let has_name = |owner: &Owner| {
        let Owner::Host { host, hba } = *owner else { return false };
        lab.hosts[usize::from(host)].hbas[usize::from(hba)].wwpn == name
    };
    owners.iter().position(has_name).map(|nport| nport as u16)
}
