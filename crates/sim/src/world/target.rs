//! The storage systems: FCP targets, SCSI devices and controllers.

use super::adapter::{self, Adapters};
use super::out_of_band::Fences;
use super::storage::{Controller, Ended};
use super::{Timers, instant_of, ps_of};
use crate::iscsi::SESSION;
use crate::net::{FrameRef, Net};
use crate::srp::CHANNEL;
use sanloom_fc::exchange::Accepted;
use sanloom_fc::fcp::target::{FcpTarget, Input, Output};
use sanloom_fc::san::Lab;
use sanloom_scsi::scsi::{self, Device, IoStatus};
use sanloom_wire::{FcId, Frame, RCtl};
use std::collections::VecDeque;

/// All storage systems.
pub struct Storage {
    pub systems: Vec<StorageNode>,
    /// Ports of all systems, in the order of their N_Ports.
    ports: Vec<StoragePort>,
    /// N_Port of the first port.
    first_nport: u16,
    /// Timer of the first system's controller.
    first_timer: u32,
    /// True if a system has adapters that take time.
    has_adapters: bool,
    /// Fenced hosts; `None` in a lab without metadata servers.
    pub(super) fences: Option<Box<Fences>>,
    /// Events for sessions of iSCSI.
    pub(super) tcp: TcpEvents,
    /// Events for channels of SRP.
    pub(super) srp: TcpEvents,
}

/// Events of devices and controllers for sessions of iSCSI or channels of SRP.
#[derive(Default)]
pub(super) struct TcpEvents {
    /// Ends of block I/O, with the index of the system.
    pub ended: VecDeque<(u16, Ended)>,
    /// Notices of devices for portals, with the index of the system and the number of the port.
    pub notices: VecDeque<(u16, u16, scsi::Notice)>,
    /// Timer of the network that is set to the time of an event; `None` without sessions.
    pub timer: Option<u32>,
}

/// A storage system.
pub struct StorageNode {
    pub controller: Controller,
    /// Logical units of the system.
    pub device: Device,
    /// N_Port numbers, indexed by port.
    pub nports: Vec<u16>,
    /// Buses and interrupts of the ports; `None`: they take no time.
    pub adapters: Option<Box<Adapters>>,
    /// Reads and writes that completed with good status.
    pub ios: [u64; 2],
    /// Bytes of these reads and writes.
    pub bytes: [u64; 2],
    /// Bytes read and written since the first login.
    pub all_bytes: u64,
}

/// A port of a storage system.
pub(super) struct StoragePort {
    /// Index of the system.
    pub storage: u16,
    pub target: FcpTarget,
}

impl StorageNode {
    fn count(&mut self, ended: &Ended) {
        if ended.status != IoStatus::Good {
            return;
        }
        let write = usize::from(ended.write);
        self.ios[write] += 1;
        self.bytes[write] += u64::from(ended.bytes);
        self.all_bytes += u64::from(ended.bytes);
    }
}

impl Storage {
    /// Returns storage systems with their ports, of which the first is N_Port `first_nport`.
    pub(super) fn new(
        lab: &Lab,
        (systems, ports): (Vec<StorageNode>, Vec<StoragePort>),
        first_nport: u16,
        timers: &Timers,
    ) -> Storage {
        debug_assert!(
            systems
                .iter()
                .flat_map(|system| &system.nports)
                .all(|nport| usize::from(nport - first_nport) < ports.len()),
            "each port has a target"
        );
        let has_adapters = systems.iter().any(|system| system.adapters.is_some());
        Storage {
            systems,
            ports,
            first_nport,
            first_timer: timers.storage,
            has_adapters,
            fences: Fences::new(lab),
            tcp: TcpEvents::default(),
            srp: TcpEvents::default(),
        }
    }

    #[inline]
    fn port_mut(&mut self, nport: u16) -> Option<&mut StoragePort> {
        self.ports.get_mut(usize::from(nport.wrapping_sub(self.first_nport)))
    }

    /// Returns the FCP target behind an N_Port, or `None` if no storage system owns the port.
    pub fn target(&self, nport: u16) -> Option<&FcpTarget> {
        self.ports.get(usize::from(nport.wrapping_sub(self.first_nport))).map(|port| &port.target)
    }

    /// Returns the index of the system of an N_Port, or `None` if no storage system owns the port.
    pub(super) fn system_of(&self, nport: u16) -> Option<u16> {
        self.ports.get(usize::from(nport.wrapping_sub(self.first_nport))).map(|port| port.storage)
    }

    /// Exchanges the state of some systems and of the ports of systems among `nports` with another
    /// world.
    pub(super) fn hand_over(&mut self, to: &mut Storage, systems: &[u16], nports: &[u16]) {
        for &system in systems {
            std::mem::swap(&mut self.systems[usize::from(system)], &mut to.systems[usize::from(system)]);
        }
        for &nport in nports {
            let at = usize::from(nport.wrapping_sub(self.first_nport));
            if let (Some(own), Some(other)) = (self.ports.get_mut(at), to.ports.get_mut(at)) {
                std::mem::swap(own, other);
            }
        }
    }

    /// Takes note that the workloads start.
    pub(super) fn start(&mut self, net: &mut Net) {
        for storage in 0..self.systems.len() as u16 {
            if let Some(disks) = self.systems[usize::from(storage)].controller.disks_mut() {
                disks.start(net.now());
                self.arm_controller(net, storage);
            }
        }
    }

    /// Restarts the measurement at the end of the warm-up.
    pub(super) fn restart(&mut self, now_ps: u64) {
        for system in &mut self.systems {
            system.controller.restart(now_ps);
            system.adapters.iter_mut().for_each(|adapters| adapters.restart(now_ps));
            (system.ios, system.bytes) = ([0; 2], [0; 2]);
        }
    }

    /// Handles a data frame for a target.
    #[inline]
    pub(super) fn accept_data(&mut self, net: &mut Net, nport: u16, frame: &FrameRef) {
        let Some(port) = self.port_mut(nport) else { return };
        let rx_id = frame.rx_id();
        let accepted = port.target.accept_data(rx_id, frame.seq_cnt(), frame.len_bytes());
        if matches!(accepted, Accepted::Complete | Accepted::Gap) {
            self.handle(net, nport, Input::Data { rx_id, accepted });
        }
    }

    /// Handles a message for a target, after its interrupt.
    pub(super) fn accept_message(&mut self, net: &mut Net, nport: u16, frame: Frame) {
        match self.has_adapters {
            true => adapter::accept_message(self, net, nport, frame),
            false => self.receive_message(net, nport, frame),
        }
    }

    /// Handles a message that has reached a target.
    #[inline]
    pub(super) fn receive_message(&mut self, net: &mut Net, nport: u16, frame: Frame) {
        if frame.header.r_ctl == RCtl::BLS_ABTS {
            // The target may have finished its part, but its unsent frames still belong to the
            // aborted exchange.
            net.fc.unsent(nport).discard_answers(frame.header.s_id, Some(frame.header.ox_id));
            adapter::discard_answers(self, nport, frame.header.s_id, Some(frame.header.ox_id));
        }
        self.handle(net, nport, Input::Frame(frame));
    }

    /// Handles the end of the login with an initiator.
    pub(super) fn remote_down(&mut self, net: &mut Net, nport: u16, port_id: FcId) {
        net.fc.unsent(nport).discard_answers(port_id, None);
        adapter::remote_down(self, nport, port_id);
        self.handle(net, nport, Input::LoginDown { port_id });
    }

    /// Handles the timer of an N_Port, if it is due at its target.
    pub(super) fn target_timeout(&mut self, net: &mut Net, nport: u16) {
        let now = instant_of(net.now());
        if self.target(nport).and_then(FcpTarget::poll_timeout).is_some_and(|at| at <= now) {
            self.handle(net, nport, Input::Timeout);
        }
    }

    /// Passes an input to the target of a storage port and executes its outputs. Does nothing for
    /// an N_Port of a host.
    #[inline]
    pub(super) fn handle(&mut self, net: &mut Net, nport: u16, input: Input) {
        self.input(net, nport, input);
        self.drain(net, nport);
    }

    #[inline]
    fn input(&mut self, net: &Net, nport: u16, input: Input) {
        let now = instant_of(net.now());
        if let Some(port) = self.ports.get_mut(usize::from(nport.wrapping_sub(self.first_nport))) {
            port.target.handle(now, input, &mut self.systems[usize::from(port.storage)].device);
        }
    }

    fn drain(&mut self, net: &mut Net, nport: u16) {
        let Some(storage) = self.port_mut(nport).map(|port| port.storage) else { return };
        while let Some(output) = self.port_mut(nport).and_then(|port| port.target.poll_output()) {
            match output {
                Output::Send(frame) => adapter::send(self, net, (storage, nport), frame),
                Output::Transmit(seq) => adapter::transmit(self, net, (storage, nport), seq),
                Output::Io(io) => self.submit(net, storage, nport, &io),
                Output::Cancel(tag) => {
                    net.fc.unsent(nport).discard_exchange_of_responder(tag.rx_id());
                    adapter::discard_exchange(self, nport, tag.rx_id());
                    if let Some(fences) = &mut self.fences {
                        fences.cancel(storage, nport, tag);
                    }
                    self.systems[usize::from(storage)].controller.cancel(net.now(), nport, tag);
                    self.arm_controller(net, storage);
                }
                Output::Fetch { tag, bytes } => {
                    // Simulated frames carry no bytes, and no workload sends parameter lists.
                    let bytes = vec![0; bytes as usize];
                    self.input(net, nport, Input::Parameters { tag, bytes });
                }
            }
        }
        while let Some(output) = self.systems[usize::from(storage)].device.poll_output() {
            self.execute(net, storage, output);
        }
        if let Some(at) = self.target(nport).and_then(FcpTarget::poll_timeout) {
            net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }

    /// Executes an output of a system's device.
    fn execute(&mut self, net: &mut Net, storage: u16, output: scsi::Output) {
        let system = &mut self.systems[usize::from(storage)];
        match output {
            scsi::Output::Port { port, notice } => match system.nports.get(usize::from(port)) {
                Some(&nport) => self.handle(net, nport, Input::Notice(notice)),
                None => notify_session(self, net, storage, port, notice),
            },
            // Persisting a record takes no simulated time.
            scsi::Output::Persist { seq, .. } => system.device.persisted(seq),
        }
    }

    fn submit(&mut self, net: &mut Net, storage: u16, nport: u16, io: &scsi::Io) {
        if let Some(fences) = &self.fences
            && let Some(status) = fences.refusal(&self.systems[usize::from(storage)].device, storage, io)
        {
            return self.input(net, nport, Input::IoDone { tag: io.tag, status });
        }
        let controller = &mut self.systems[usize::from(storage)].controller;
        match controller.submit(net.now(), nport, io) {
            Some(refused) => self.input(net, nport, Input::IoDone { tag: io.tag, status: refused.status }),
            None => {
                if let Some(fences) = &mut self.fences {
                    fences.accepted(&self.systems[usize::from(storage)].device, storage, nport, io);
                }
                self.arm_controller(net, storage);
            }
        }
    }

    /// Sets the timer of a controller to its next event.
    pub(super) fn arm_controller(&mut self, net: &mut Net, storage: u16) {
        if let Some(at) = self.systems[usize::from(storage)].controller.next_ps() {
            net.set_timer_earlier(self.first_timer + u32::from(storage), at);
        }
        if self.has_adapters {
            adapter::arm(self, net, self.first_timer, storage);
        }
    }

    /// The power of a system fails, after its links went down.
    pub(super) fn power_off(&mut self, net: &mut Net, storage: u16) {
        let mut all = Vec::new();
        self.systems[usize::from(storage)].controller.power_off(net.now(), &mut all);
        self.end_commands(net, storage, all);
    }

    /// Ends commands that a failure of power or of a controller has lost.
    pub(super) fn end_commands(&mut self, net: &mut Net, storage: u16, lost: Vec<Ended>) {
        for mut ended in lost {
            if let Some(fences) = &mut self.fences {
                fences.end(storage, &mut ended);
            }
            self.report(net, storage, ended);
        }
        self.arm_controller(net, storage);
    }

    /// Reports the end of a command to its port or session.
    #[inline]
    fn report(&mut self, net: &mut Net, storage: u16, ended: Ended) {
        if ended.nport & SESSION != 0 {
            return report_to_session(self, net, storage, ended);
        }
        self.handle(net, ended.nport, Input::IoDone { tag: ended.tag, status: ended.status });
    }

    /// Handles the timer of a controller: ends the commands that are complete.
    pub(super) fn controller_timeout(&mut self, net: &mut Net, storage: u16) {
        if self.has_adapters {
            adapter::run(self, net, storage);
        }
        while let Some(mut ended) = self.systems[usize::from(storage)].controller.pop_ended(net.now()) {
            if let Some(fences) = &mut self.fences {
                fences.end(storage, &mut ended);
            }
            self.systems[usize::from(storage)].count(&ended);
            self.report(net, storage, ended);
        }
        self.arm_controller(net, storage);
    }
}

/// Queues the end of a command for its session.
#[inline(never)]
fn report_to_session(storage: &mut Storage, net: &mut Net, system: u16, ended: Ended) {
    let events = if ended.nport & CHANNEL == CHANNEL { &mut storage.srp } else { &mut storage.tcp };
    if let Some(timer) = events.timer {
        events.ended.push_back((system, ended));
        net.set_timer_earlier(timer, net.now());
    }
}

/// Queues a notice of a device for a portal or a port of SRP. Each of them ignores notices that
/// are not for it.
#[inline(never)]
pub(super) fn notify_session(storage: &mut Storage, net: &mut Net, system: u16, port: u16, notice: scsi::Notice) {
    for events in [&mut storage.tcp, &mut storage.srp] {
        if let Some(timer) = events.timer {
            events.notices.push_back((system, port, notice.clone()));
            net.set_timer_earlier(timer, net.now());
        }
    }
}
