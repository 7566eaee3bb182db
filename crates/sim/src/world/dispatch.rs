//! Dispatch of frames, port changes and timers to the parts of the world at the N_Ports.

use super::adapter;
use super::host::{Due, PathTest};
use super::nports::Owner;
use super::relay;
use super::{World, instant_of, ps_of};
use crate::net::{FrameRef, NEVER};
use sanloom_fc::exchange::{Route, route};
use sanloom_fc::fcp::{initiator, target};
use sanloom_fc::nport;
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::{FcId, Frame, Wwpn};

impl World {
    /// Dispatches a frame in a receive buffer of an N_Port.
    #[inline]
    pub(super) fn deliver(&mut self, plane: u16, frame: FrameRef) {
        match frame.message() {
            None => {
                let nport = self.nports.addressee_of_data(plane, frame.d_id());
                if !(self.hosts.has_buses && receive_over_bus(self, plane, nport, frame)) {
                    self.net.release(plane, self.net.now());
                    self.accept_data(nport, frame);
                }
            }
            Some(message) => {
                self.net.release(plane, self.net.now());
                self.control_frames += 1;
                if let Some(whole) = self.net.fc.messages.deliver(message) {
                    let nport = self.nports.addressee(plane, &whole.header);
                    self.accept_message(nport, whole);
                }
            }
        }
    }

    /// Dispatches a frame for a service of a switch.
    pub(super) fn deliver_to_switch(&mut self, switch: u16, port: u16, frame: FrameRef) {
        let Some(message) = frame.message() else { return };
        self.control_frames += 1;
        let Some(whole) = self.net.fc.messages.deliver(message) else { return };
        let (control, mut env) = self.split_control();
        control.receive(&mut env, switch, port, whole);
    }

    /// Dispatches a data frame that has reached memory.
    #[inline]
    fn accept_data(&mut self, nport: u16, frame: FrameRef) {
        let node = self.nports.node_mut(nport);
        if frame.d_id() != node.port_id {
            node.unexpected_frames += 1;
        } else if frame.from_responder() {
            if let Some(ended) = self.hosts.accept_data(nport, &frame) {
                data_ended(self, nport, ended);
            }
        } else {
            self.storage.accept_data(&mut self.net, nport, &frame);
        }
    }

    fn accept_message(&mut self, nport: u16, frame: Frame) {
        match (route(&frame.header), self.nports.node(nport).owner) {
            (Some(Route::NPort), _) => {
                self.nports.handle(instant_of(self.net.now()), nport, nport::Input::Frame(frame));
                self.drain_login(nport);
            }
            (Some(Route::Initiator), Owner::Host { .. }) => {
                let (hosts, mut env) = self.split_hosts();
                hosts.accept_message(&mut env, nport, frame);
            }
            (Some(Route::Target), Owner::Storage { .. }) => {
                self.storage.accept_message(&mut self.net, nport, frame);
            }
            _ => self.nports.node_mut(nport).unexpected_frames += 1,
        }
    }

    /// Dispatches a change of an N_Port's link.
    pub(super) fn port_link(&mut self, nport: u16, up: bool) {
        let input = if up { nport::Input::LinkUp } else { nport::Input::LinkDown };
        self.nports.handle(instant_of(self.net.now()), nport, input);
        self.drain_login(nport);
    }

    /// Dispatches the timer of an N_Port to those of its machines that are due.
    pub(super) fn nport_timeout(&mut self, nport: u16) {
        let now = instant_of(self.net.now());
        if self.nports.node(nport).login.poll_timeout().is_some_and(|at| at <= now) {
            self.nports.handle(now, nport, nport::Input::Timeout);
            self.drain_login(nport);
        }
        let (hosts, mut env) = self.split_hosts();
        hosts.initiator_timeout(&mut env, nport);
        self.storage.target_timeout(&mut self.net, nport);
        let initiator = self.hosts.initiator(nport).and_then(|initiator| initiator.poll_timeout());
        let target = self.storage.target(nport).and_then(|target| target.poll_timeout());
        let times = [self.nports.node(nport).login.poll_timeout(), initiator, target];
        let next = times.into_iter().flatten().map(ps_of).min().unwrap_or(NEVER);
        self.net.set_timer_earlier(u32::from(nport), next);
    }

    /// Runs the jobs of a host that are due.
    pub(super) fn host_timeout(&mut self, host: u16) {
        loop {
            let (hosts, mut env) = self.split_hosts();
            match hosts.run_jobs(&mut env, host) {
                Some(Due::Received { nport, plane, frame }) => {
                    self.net.release(plane, self.net.now());
                    self.accept_data(nport, frame);
                    if relay::is_streaming(&self.hosts, nport) {
                        relay::data_arrived(&mut self.hosts, &mut self.net, nport, frame.ox_id());
                    }
                }
                Some(Due::LogOut) => self.log_out_machine(host),
                Some(Due::ResetHba { nport }) => self.reset_hba(nport),
                None => break,
            }
        }
    }

    /// Ends the logins of a physical port and logs it in again (`fc_lport_reset` of
    /// drivers/scsi/libfc/fc_lport.c). Does nothing for a port without a fabric login, because it
    /// logs in as soon as it can.
    fn reset_hba(&mut self, nport: u16) {
        if self.nports.node(nport).port_id != FcId::ZERO {
            self.port_link(nport, false);
            self.port_link(nport, true);
        }
    }

    /// Executes the outputs of an N_Port's login machine.
    pub(super) fn drain_login(&mut self, nport: u16) {
        while let Some(output) = self.nports.poll_output(nport) {
            match output {
                nport::Output::Send(frame) => self.net.send_message(self.nports.plane_of(nport), frame),
                nport::Output::FabricUp { port_id } => self.address_changed(nport, port_id),
                nport::Output::FabricDown => self.address_changed(nport, FcId::ZERO),
                nport::Output::RemoteUp(remote) => self.remote_up(nport, &remote),
                nport::Output::RemoteDown { port_id, wwpn } => self.remote_down(nport, port_id, wwpn),
            }
        }
        if let Some(at) = self.nports.node(nport).login.poll_timeout() {
            self.net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }

    fn remote_up(&mut self, nport: u16, remote: &nport::Remote) {
        let (port_id, frame_size_bytes) = (remote.port_id, remote.receive_size_bytes);
        match self.nports.node(nport).owner {
            Owner::Storage { .. } if remote.initiator => {
                let input = target::Input::LoginUp { port_id, port_name: remote.wwpn, frame_size_bytes };
                self.storage.handle(&mut self.net, nport, input);
            }
            Owner::Host { host, hba } if remote.target => {
                let (hosts, mut env) = self.split_hosts();
                relay::remote_up(hosts, &mut env, nport, remote.wwpn, (port_id, frame_size_bytes));
                hosts.path_up(&mut env, (host, hba), remote.wwpn, (port_id, frame_size_bytes));
            }
            Owner::Storage { .. } | Owner::Host { .. } => {}
        }
    }

    fn remote_down(&mut self, nport: u16, port_id: FcId, wwpn: Wwpn) {
        match self.nports.node(nport).owner {
            Owner::Host { host, hba } => {
                let (hosts, mut env) = self.split_hosts();
                relay::remote_down(hosts, &mut env, nport, wwpn);
                hosts.path_down(&mut env, (host, hba), wwpn, port_id);
            }
            Owner::Storage { .. } => self.storage.remote_down(&mut self.net, nport, port_id),
        }
    }

    /// Handles a new address of an N_Port; [`FcId::ZERO`] means none. A physical port that gains or
    /// loses its address brings its virtual ports up or down.
    fn address_changed(&mut self, nport: u16, port_id: FcId) {
        let (hosts, mut env) = self.split_hosts();
        hosts.address_changed(&mut env, nport, port_id);
        self.set_priorities(nport, port_id);
        for port in self.nports.set_port_id(nport, port_id) {
            self.port_link(port, port_id != FcId::ZERO);
        }
        // The host of a gateway has returned while its virtual N_Port was still logging out.
        if port_id == FcId::ZERO && self.nports.may_log_in(nport) && self.hosts.relay.owns(nport) {
            self.port_link(nport, true);
        }
        self.storage.handle(&mut self.net, nport, target::Input::LocalId(port_id));
    }

    /// Reads or writes the first `blocks` blocks of a LUN on a path of a host. The request bypasses
    /// queues and path selection. `system` is an index into the systems of [`super::Paths`].
    /// The outcome is counted in [`super::Path::tried`].
    pub fn try_path(&mut self, host: u16, system: u16, path: u16, write: bool, blocks: u16) {
        let system_entry = &self.hosts.node(host).paths.systems()[usize::from(system)];
        let Some(lun) = self.lab.lun(system_entry.storage, system_entry.any_lun()) else { return };
        let (lba, blocks, fua) = (0, u32::from(blocks), false);
        let test = PathTest {
            cdb: if write { Cdb::Write { lba, blocks, fua } } else { Cdb::Read { lba, blocks, fua } },
            direction: if write { DataDirection::Write } else { DataDirection::Read },
            data_len: blocks * lun.block_bytes,
            counted: true,
        };
        let (hosts, mut env) = self.split_hosts();
        hosts.test_path(&mut env, host, system, path, &test);
        hosts.process_completions(&mut env);
    }
}

/// Handles the end of a sequence of read data.
#[inline(never)]
fn data_ended(world: &mut World, nport: u16, ended: initiator::Input) {
    let (hosts, mut env) = world.split_hosts();
    hosts.handle(&mut env, nport, ended);
}

/// Moves a received data frame over the bus of its port. Returns false, without effect, if there is
/// none.
#[inline(never)]
fn receive_over_bus(world: &mut World, plane: u16, nport: u16, frame: FrameRef) -> bool {
    let node = world.nports.node(nport);
    match node.owner {
        Owner::Host { .. } => {
            let (hosts, mut env) = world.split_hosts();
            if hosts.receive_over_bus(&mut env, plane, nport, frame) {
                return true;
            }
            if !relay::is_streaming(&world.hosts, nport) {
                return false;
            }
            world.net.release(plane, world.net.now());
            world.accept_data(nport, frame);
            relay::data_arrived(&mut world.hosts, &mut world.net, nport, frame.ox_id());
            true
        }
        Owner::Storage { .. } if frame.d_id() == node.port_id && !frame.from_responder() => {
            adapter::receive(&mut world.storage, &mut world.net, nport, frame)
        }
        Owner::Storage { .. } => false,
    }
}
