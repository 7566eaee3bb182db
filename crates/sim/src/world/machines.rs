//! Creation, migration and shutdown of virtual machines.

use super::World;
use super::nports::Owner;
use sanloom_fc::nport;

impl World {
    /// Creates the virtual machines that exist before the workloads start.
    pub(super) fn create_machines_without_start(&mut self) {
        for host in 0..self.lab.hosts.len() as u16 {
            if self.lab.hosts[usize::from(host)].virtual_machine.is_some_and(|vm| vm.start.is_none()) {
                self.create_machine(host);
            }
        }
    }

    /// Creates a virtual machine. Its ports log in as soon as their HBAs are logged in. A machine
    /// that has stopped is not created again.
    pub fn create_machine(&mut self, host: u16) {
        if self.hosts.node(host).is_logged_out() {
            return;
        }
        for nport in self.hosts.node(host).nports.clone() {
            if self.nports.attach(nport) {
                self.port_link(nport, true);
            }
        }
    }

    /// Moves a virtual machine to another hypervisor. It resumes at once or when
    /// [`World::resume_machine`] is called. No port logs out.
    pub(super) fn move_machine(&mut self, host: u16, to: u16, at_once: bool) {
        let Some(vm) = self.lab.hosts[usize::from(host)].virtual_machine else { return };
        let mut was_attached = false;
        for (port, nport) in self.hosts.node(host).nports.clone().into_iter().enumerate() {
            let hbas = &self.hosts.node(to).nports;
            let plane = hbas[usize::from(vm.carrier(port as u16, hbas.len()))];
            was_attached |= self.detach(nport);
            self.nports.move_to(nport, plane);
        }
        if was_attached {
            self.hosts.node_mut(host).begin_move();
        }
        self.process_completions();
        if at_once {
            self.resume_machine(host);
        }
    }

    /// Logs a virtual machine in with the port names of the host `of`. Its logins with other names
    /// remain until the switch removes them, as those of a machine that moves.
    pub(super) fn rename_machine(&mut self, host: u16, of: u16) {
        let config = &self.lab.hosts[usize::from(of)];
        let names: Vec<_> = config.hbas.iter().map(|hba| (config.wwnn, hba.wwpn)).collect();
        let mut was_attached = false;
        for (nport, &(wwnn, wwpn)) in self.hosts.node(host).nports.clone().into_iter().zip(names.iter().cycle()) {
            was_attached |= self.detach(nport);
            let login = &mut self.nports.node_mut(nport).login;
            *login = login.with_names(wwnn, wwpn);
        }
        self.process_completions();
        if was_attached {
            self.create_machine(host);
        }
    }

    /// Resumes a virtual machine after a move.
    pub(super) fn resume_machine(&mut self, host: u16) {
        if self.hosts.node_mut(host).end_move() {
            self.create_machine(host);
        }
    }

    /// Logs out the ports of a virtual machine whose last request has ended.
    pub(super) fn log_out_machine(&mut self, host: u16) {
        debug_assert!(!self.hosts.node(host).is_busy(), "the last request of host {host} has ended");
        for nport in self.hosts.node(host).nports.clone() {
            self.nports.detach(nport);
            self.nports.handle(super::instant_of(self.net.now()), nport, nport::Input::LogOut);
            self.drain_login(nport);
        }
    }

    /// Detaches a virtual port from its HBA. Returns true if it was attached.
    fn detach(&mut self, nport: u16) -> bool {
        // Frames left in the queue of the HBA would log the machine in at a switch that it has
        // left.
        let node = self.nports.node(nport);
        let (plane, login) = (node.plane, &node.login);
        self.net.fc.unsent(plane).discard_source(node.port_id, |header| login.is_source(header));
        if let Owner::Host { host, .. } = node.owner {
            self.hosts.discard_source(host, plane, node.port_id);
        }
        let was_attached = self.nports.detach(nport);
        self.port_link(nport, false);
        was_attached
    }
}
