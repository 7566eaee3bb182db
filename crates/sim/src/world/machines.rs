//! Virtual machines: virtual ports on the HBAs of hypervisors, and what becomes of them when a machine is created, moves or
//! stops.
//!
//! A virtual port has machines of its own for login and commands; only its frames go through the HBA that carries it. The
//! HBA gives a frame to the port that has its D_ID. Answers to FDISC have no D_ID that anybody knows yet, so they go to the
//! port that waits for their OX_ID.

use super::World;
use sanloom_core::nport;
use sanloom_core::time::Instant;
use sanloom_wire::{FcId, Header};

/// How long a machine that stops waits before it looks again whether its last request has ended, in ps.
const STOP_CHECK_PS: u64 = 1_000_000_000;

/// The virtual ports that an HBA carries.
#[derive(Default)]
pub(super) struct Carried {
    ports: Vec<u16>,
    /// Those that have an address, sorted by it.
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

impl World {
    /// The N_Port of the frame path that an N_Port sends through.
    #[inline]
    pub(super) fn plane_of(&self, nport: u16) -> u16 {
        self.nodes[usize::from(nport)].plane
    }

    /// The N_Port, among those that share an N_Port of the frame path, that has an address.
    #[inline]
    pub(super) fn addressee_of_data(&self, plane: u16, d_id: FcId) -> u16 {
        let node = &self.nodes[usize::from(plane)];
        if d_id == node.port_id || node.carried.by_id.is_empty() {
            return plane;
        }
        node.carried.find(d_id).unwrap_or(plane)
    }

    /// The N_Port that a message is for.
    pub(super) fn addressee(&self, plane: u16, header: &Header) -> u16 {
        let node = &self.nodes[usize::from(plane)];
        if header.d_id == node.port_id || node.carried.is_empty() {
            return plane;
        }
        let waits = |nport: &&u16| self.nodes[usize::from(**nport)].login.expects(header);
        let of_fabric = header.s_id == FcId::F_PORT;
        // The address that an FDISC brings may be one that another port lost without a word.
        let asked = of_fabric.then(|| node.carried.ports.iter().find(waits).copied()).flatten();
        asked.or_else(|| node.carried.find(header.d_id)).unwrap_or(plane)
    }

    /// Our address, where several addresses send through one N_Port of the frame path.
    pub(super) fn own_id_on_shared_plane(&self, nport: u16) -> Option<FcId> {
        let node = &self.nodes[usize::from(nport)];
        (node.is_virtual || !node.carried.ports.is_empty()).then_some(node.port_id)
    }

    /// An N_Port has another address than `before`, or none: the HBA that carries it must know, and the virtual ports that
    /// it carries depend on it.
    pub(super) fn address_changed(&mut self, nport: u16, before: FcId) {
        let node = &self.nodes[usize::from(nport)];
        let (id, plane) = (node.port_id, node.plane);
        if node.is_virtual {
            let carried = &mut self.nodes[usize::from(plane)].carried;
            carried.remove(before, nport);
            if id != FcId::ZERO {
                carried.insert(id, nport);
            }
            return;
        }
        for port in node.carried.ports.clone() {
            self.port_link(port, id != FcId::ZERO);
        }
    }

    /// The machines that are there before the workloads begin.
    pub(super) fn create_machines_without_start(&mut self) {
        for host in 0..self.lab.hosts.len() as u16 {
            if self.lab.hosts[usize::from(host)].virtual_machine.is_some_and(|vm| vm.start.is_none()) {
                self.create_machine(host);
            }
        }
    }

    /// A virtual machine is created: its ports log in as soon as the HBAs that carry them have. One that has stopped stays
    /// away.
    pub fn create_machine(&mut self, host: u16) {
        if self.hosts[usize::from(host)].is_gone {
            return;
        }
        for nport in self.hosts[usize::from(host)].nports.clone() {
            self.attach(nport, self.plane_of(nport));
        }
    }

    /// A virtual machine goes on under another hypervisor, at once or when [`World::resume_machine`] says. Nobody logs out.
    pub(super) fn move_machine(&mut self, host: u16, to: u16, at_once: bool) {
        let Some(vm) = self.lab.hosts[usize::from(host)].virtual_machine else { return };
        for (port, nport) in self.hosts[usize::from(host)].nports.clone().into_iter().enumerate() {
            let hbas = &self.hosts[usize::from(to)].nports;
            let plane = hbas[usize::from(vm.carrier(port as u16, hbas.len()))];
            let was_there = self.detach(nport);
            self.nodes[usize::from(nport)].plane = plane;
            self.hosts[usize::from(host)].is_moving |= was_there;
        }
        self.settle();
        if at_once {
            self.resume_machine(host);
        }
    }

    /// A virtual machine that was away because it moves goes on.
    pub(super) fn resume_machine(&mut self, host: u16) {
        if std::mem::take(&mut self.hosts[usize::from(host)].is_moving) {
            self.create_machine(host);
        }
    }

    /// A virtual machine makes no more requests, and logs out after the last.
    pub(super) fn stop_machine(&mut self, host: u16) {
        let now = self.net.now();
        self.hosts[usize::from(host)].stop(now);
        self.arm_host(host);
    }

    /// The machine logs out, unless a request is under way.
    pub(super) fn stop_when_idle(&mut self, host: u16) {
        let now = self.net.now();
        if self.hosts[usize::from(host)].busy() {
            self.hosts[usize::from(host)].stop(now + STOP_CHECK_PS);
            return;
        }
        self.hosts[usize::from(host)].is_gone = true;
        for nport in self.hosts[usize::from(host)].nports.clone() {
            let plane = self.plane_of(nport);
            self.nodes[usize::from(plane)].carried.ports.retain(|&port| port != nport);
            self.nodes[usize::from(nport)].login.handle(Instant::from_ns(now / 1_000), nport::Input::LogOut);
            self.drain_login(nport);
        }
    }

    fn attach(&mut self, nport: u16, plane: u16) {
        let carrier = &mut self.nodes[usize::from(plane)];
        if carrier.carried.ports.contains(&nport) {
            return;
        }
        carrier.carried.ports.push(nport);
        if carrier.port_id != FcId::ZERO {
            self.port_link(nport, true);
        }
    }

    /// True if the port was attached.
    fn detach(&mut self, nport: u16) -> bool {
        let plane = self.plane_of(nport);
        // What stayed in the queue of the HBA would log the machine in where it is not any more.
        let node = &self.nodes[usize::from(nport)];
        self.net.forget_source(plane, node.port_id, |header| node.login.is_source(header));
        self.dma.forget_source(plane, node.port_id);
        self.port_link(nport, false);
        let ports = &mut self.nodes[usize::from(plane)].carried.ports;
        let before = ports.len();
        ports.retain(|&port| port != nport);
        ports.len() < before
    }
}
