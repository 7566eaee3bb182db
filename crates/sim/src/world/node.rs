//! An N_Port: the machines of one HBA or storage port, and how frames reach them.

use super::World;
use super::machines::Carried;
use crate::net::{FrameRef, NEVER};
use sanloom_core::exchange::{Accepted, Route, route};
use sanloom_core::fcp::{initiator, target};
use sanloom_core::nport;
use sanloom_core::scsi;
use sanloom_core::time::Instant;
use sanloom_wire::{FcId, Frame, RCtl};

/// One N_Port with its machines.
pub struct NodePort {
    /// What it belongs to.
    pub owner: Owner,
    /// Login, discovery, state changes.
    pub login: nport::NPort,
    /// Commands out, on a host.
    pub initiator: Option<initiator::FcpInitiator>,
    /// Commands in, on storage.
    pub target: Option<target::FcpTarget>,
    /// Its address, zero before login.
    pub port_id: FcId,
    /// N_Port of the frame path that it sends through: its own, or that of the HBA that carries it.
    pub plane: u16,
    /// It is a virtual port.
    pub is_virtual: bool,
    /// The virtual ports that it carries.
    pub(super) carried: Carried,
    /// Frames that no machine took.
    pub unexpected_frames: u64,
}

/// What an N_Port belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// HBA of a host.
    Host {
        /// Host.
        host: u16,
        /// HBA.
        hba: u16,
    },
    /// Port of a storage system.
    Storage {
        /// Storage system.
        storage: u16,
        /// Port.
        port: u16,
    },
}

impl World {
    /// A frame is in a receive buffer of an N_Port.
    #[inline]
    pub(super) fn deliver(&mut self, nport: u16, frame: FrameRef) {
        let now = self.net.now();
        match frame.message() {
            None => {
                let plane = nport;
                let nport = self.addressee_of_data(plane, frame.d_id());
                let node = &self.nodes[usize::from(nport)];
                if let Owner::Host { host, hba } = node.owner
                    && let Some(done_ps) = self.hosts[usize::from(host)].occupy_bus(now, hba, frame.len_bytes())
                {
                    self.host_dma_in(host, hba, done_ps, plane, frame);
                    return;
                }
                self.net.release(plane, now);
                self.accept_data(nport, frame);
            }
            Some(message) => {
                self.net.release(nport, now);
                self.control_frames += 1;
                if let Some(whole) = self.net.messages.deliver(message) {
                    let nport = self.addressee(nport, &whole.header);
                    self.accept_message(nport, whole);
                }
            }
        }
    }

    /// A data frame is in memory.
    #[inline]
    pub(super) fn accept_data(&mut self, nport: u16, frame: FrameRef) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.nodes[usize::from(nport)];
        if frame.d_id() != node.port_id {
            node.unexpected_frames += 1;
            return;
        }
        if frame.from_responder() {
            let Some(initiator) = &mut node.initiator else { return };
            let ox_id = frame.ox_id();
            let Some(seq) = initiator.data(ox_id) else { return };
            match seq.accept(frame.seq_cnt(), frame.len_bytes()) {
                Accepted::More | Accepted::Stale => {}
                accepted @ (Accepted::Complete | Accepted::Gap) => {
                    initiator.handle(now, initiator::Input::Data { ox_id, accepted });
                    self.drain_initiator(nport);
                }
            }
        } else {
            let Some(target) = &mut node.target else { return };
            let rx_id = frame.rx_id();
            let Some(seq) = target.data(rx_id) else { return };
            match seq.accept(frame.seq_cnt(), frame.len_bytes()) {
                Accepted::More | Accepted::Stale => {}
                accepted @ (Accepted::Complete | Accepted::Gap) => {
                    self.tell_target(nport, now, target::Input::Data { rx_id, accepted });
                    self.drain_target(nport);
                }
            }
        }
    }

    fn accept_message(&mut self, nport: u16, frame: Frame) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.nodes[usize::from(nport)];
        match route(&frame.header) {
            Some(Route::NPort) => {
                node.login.handle(now, nport::Input::Frame(frame));
                self.drain_login(nport);
            }
            Some(Route::Initiator) if node.initiator.is_some() => {
                if let Some(initiator) = &mut node.initiator {
                    initiator.handle(now, initiator::Input::Frame(frame));
                }
                self.drain_initiator(nport);
            }
            Some(Route::Target) if node.target.is_some() => {
                if frame.header.r_ctl == RCtl::BLS_ABTS {
                    // The target's part may be done; what it handed over and has not left yet belongs to the exchange.
                    self.net.forget_answers(nport, frame.header.s_id, Some(frame.header.ox_id));
                }
                self.tell_target(nport, now, target::Input::Frame(frame));
                self.drain_target(nport);
            }
            _ => node.unexpected_frames += 1,
        }
    }

    /// The link of an N_Port went up or down.
    pub(super) fn port_link(&mut self, nport: u16, up: bool) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let input = if up { nport::Input::LinkUp } else { nport::Input::LinkDown };
        self.nodes[usize::from(nport)].login.handle(now, input);
        self.drain_login(nport);
    }

    /// The timer of an N_Port has run out.
    pub(super) fn port_timeout(&mut self, nport: u16) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.nodes[usize::from(nport)];
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(node.login.poll_timeout()) {
            node.login.handle(now, nport::Input::Timeout);
            self.drain_login(nport);
        }
        let node = &mut self.nodes[usize::from(nport)];
        if let Some(initiator) = &mut node.initiator
            && due(initiator.poll_timeout())
        {
            initiator.handle(now, initiator::Input::Timeout);
            self.drain_initiator(nport);
        }
        if due(self.nodes[usize::from(nport)].target.as_ref().and_then(|target| target.poll_timeout())) {
            self.tell_target(nport, now, target::Input::Timeout);
            self.drain_target(nport);
        }
        self.arm_port(nport);
    }

    fn arm_port(&mut self, nport: u16) {
        let node = &self.nodes[usize::from(nport)];
        let times = [
            node.login.poll_timeout(),
            node.initiator.as_ref().and_then(|machine| machine.poll_timeout()),
            node.target.as_ref().and_then(|machine| machine.poll_timeout()),
        ];
        let next = times.into_iter().flatten().map(ps_of).min().unwrap_or(NEVER);
        self.net.set_timer_earlier(u32::from(nport), next);
    }

    pub(super) fn drain_login(&mut self, nport: u16) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        while let Some(output) = self.nodes[usize::from(nport)].login.poll_output() {
            match output {
                nport::Output::Send(frame) => self.net.send_message(self.plane_of(nport), frame),
                nport::Output::FabricUp { port_id } => self.local_id(nport, port_id),
                nport::Output::FabricDown => self.local_id(nport, FcId::ZERO),
                nport::Output::RemoteUp(remote) => {
                    let node = &mut self.nodes[usize::from(nport)];
                    let (port_id, frame_size_bytes) = (remote.port_id, remote.receive_size_bytes);
                    match (&node.target, node.owner) {
                        (Some(_), _) if remote.initiator => {
                            let port_name = remote.wwpn;
                            let up = target::Input::LoginUp { port_id, port_name, frame_size_bytes };
                            self.tell_target(nport, now, up);
                            self.drain_target(nport);
                        }
                        (_, Owner::Host { host, hba }) if remote.target => {
                            self.host_path_up(host, hba, remote.wwpn, port_id, frame_size_bytes);
                        }
                        _ => {}
                    }
                }
                nport::Output::RemoteDown { port_id, wwpn } => self.remote_down(nport, port_id, wwpn),
            }
        }
        self.arm_login(nport);
    }

    fn remote_down(&mut self, nport: u16, port_id: FcId, wwpn: sanloom_wire::Wwpn) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.nodes[usize::from(nport)];
        if let Owner::Host { host, hba } = node.owner {
            self.host_path_down(host, hba, wwpn);
        }
        let node = &mut self.nodes[usize::from(nport)];
        if let Some(initiator) = &mut node.initiator {
            initiator.handle(now, initiator::Input::RemoteDown { port_id });
            self.drain_initiator(nport);
        }
        if self.nodes[usize::from(nport)].target.is_some() {
            self.net.forget_answers(nport, port_id, None);
            self.tell_target(nport, now, target::Input::LoginDown { port_id });
            self.drain_target(nport);
        }
    }

    fn local_id(&mut self, nport: u16, port_id: FcId) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let node = &mut self.nodes[usize::from(nport)];
        if let Some(initiator) = &mut node.initiator {
            initiator.handle(now, initiator::Input::LocalId(port_id));
            self.drain_initiator(nport);
        }
        let before = std::mem::replace(&mut self.nodes[usize::from(nport)].port_id, port_id);
        self.address_changed(nport, before);
        self.tell_target(nport, now, target::Input::LocalId(port_id));
        self.drain_target(nport);
    }

    /// Something happened to the target of a storage port.
    #[inline]
    fn tell_target(&mut self, nport: u16, now: Instant, input: target::Input) {
        let node = &mut self.nodes[usize::from(nport)];
        if let (Some(target), Owner::Storage { storage, .. }) = (&mut node.target, node.owner) {
            target.handle(now, input, &mut self.storage[usize::from(storage)].device);
        }
    }

    #[inline]
    pub(super) fn drain_initiator(&mut self, nport: u16) {
        let node = &mut self.nodes[usize::from(nport)];
        let Owner::Host { host, hba } = node.owner else { return };
        let plane = node.plane;
        while let Some(initiator) = &mut self.nodes[usize::from(nport)].initiator
            && let Some(output) = initiator.poll_output()
        {
            match output {
                initiator::Output::Send(frame) => self.net.send_message(plane, frame),
                initiator::Output::Transmit(seq) => self.host_transmit(host, hba, plane, seq),
                initiator::Output::Done { tag, ox_id, outcome } => {
                    if !matches!(outcome, initiator::Outcome::Completed { .. }) {
                        let s_id = self.own_id_on_shared_plane(nport);
                        self.net.forget_exchange(plane, s_id, ox_id, 0, false);
                    }
                    self.ended.push_back((host, hba, tag, outcome));
                }
            }
        }
        if let Some(initiator) = &self.nodes[usize::from(nport)].initiator
            && let Some(at) = initiator.poll_timeout()
        {
            self.net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }

    #[inline]
    pub(super) fn drain_target(&mut self, nport: u16) {
        let Owner::Storage { storage, .. } = self.nodes[usize::from(nport)].owner else { return };
        while let Some(target) = &mut self.nodes[usize::from(nport)].target
            && let Some(output) = target.poll_output()
        {
            match output {
                target::Output::Send(frame) => self.net.send_message(nport, frame),
                target::Output::Transmit(seq) => self.net.send_data(nport, seq),
                target::Output::Io(io) => self.storage_submit(storage, nport, &io),
                target::Output::Cancel(tag) => self.net.forget_exchange(nport, None, 0, tag.rx_id(), true),
                target::Output::Fetch { tag, bytes } => {
                    // Frames carry no bytes here, and no workload sends parameter lists.
                    let bytes = vec![0; bytes as usize];
                    let now = Instant::from_ns(self.net.now() / 1_000);
                    self.tell_target(nport, now, target::Input::Parameters { tag, bytes });
                }
            }
        }
        while let Some(output) = self.storage[usize::from(storage)].device.poll_output() {
            self.on_device_output(storage, output);
        }
        if let Some(target) = &self.nodes[usize::from(nport)].target
            && let Some(at) = target.poll_timeout()
        {
            self.net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }

    fn on_device_output(&mut self, storage: u16, output: scsi::Output) {
        match output {
            scsi::Output::Port { port, notice } => {
                let now = Instant::from_ns(self.net.now() / 1_000);
                let Some(&nport) = self.storage[usize::from(storage)].nports.get(usize::from(port)) else { return };
                self.tell_target(nport, now, target::Input::Notice(notice));
                self.drain_target(nport);
            }
            // Keeping a record takes no time here.
            scsi::Output::Persist { seq, .. } => self.storage[usize::from(storage)].device.persisted(seq),
        }
    }

    fn arm_login(&mut self, nport: u16) {
        if let Some(at) = self.nodes[usize::from(nport)].login.poll_timeout() {
            self.net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }

    fn storage_submit(&mut self, storage: u16, nport: u16, io: &scsi::Io) {
        let now = self.net.now();
        let node = &mut self.storage[usize::from(storage)];
        let write = io.op.changes_medium();
        match node.controller.submit(now, nport, io.tag, write, io.bytes) {
            Some(refused) => {
                let at = Instant::from_ns(now / 1_000);
                self.tell_target(nport, at, target::Input::IoDone { tag: io.tag, status: refused.status });
            }
            None => self.arm_storage(storage),
        }
    }

    fn arm_storage(&mut self, storage: u16) {
        if let Some(at) = self.storage[usize::from(storage)].controller.next_end() {
            self.net.set_timer_earlier(self.timers.storage + u32::from(storage), at);
        }
    }

    /// A command of a storage system has ended.
    pub(super) fn storage_timeout(&mut self, storage: u16) {
        let now = self.net.now();
        while let Some(ended) = self.storage[usize::from(storage)].controller.pop_ended(now) {
            self.storage[usize::from(storage)].count(&ended);
            let at = Instant::from_ns(now / 1_000);
            self.tell_target(ended.nport, at, target::Input::IoDone { tag: ended.tag, status: ended.status });
            self.drain_target(ended.nport);
        }
        self.arm_storage(storage);
    }
}

/// A machine's time in the simulator's picoseconds.
pub(super) fn ps_of(at: Instant) -> u64 {
    at.as_ns().saturating_mul(1_000)
}
