//! All hosts, with the initiators and the resources of HBAs that hosts share.

use super::windows::Windows;
use super::{HostNode, Job, TcpOrders};
use crate::host::{Direction, FrameWindow};
use crate::net::FrameRef;
use crate::stats::Series;
use crate::workload::Request;
use crate::world::measure::{RequestTotals, WorkloadMeasure};
use crate::world::nports::Owner;
use crate::world::out_of_band::OutOfBand;
use crate::world::path::PathTable;
use crate::world::relay::{self, Relay};
use crate::world::{Env, Timers, ps_of};
use sanloom_fc::config::AdapterProcessor;
use sanloom_fc::exchange::{Accepted, SeqTx};
use sanloom_fc::fcp::initiator::{FcpInitiator, Input, Outcome, Output};
use sanloom_fc::san::Lab;
use sanloom_wire::{FcId, Frame};
use std::collections::VecDeque;

/// All hosts.
pub struct Hosts {
    pub nodes: Vec<HostNode>,
    /// Measurements of each workload.
    pub workloads: Vec<WorkloadMeasure>,
    /// Request totals of the whole run.
    pub totals: RequestTotals,
    /// SCSI initiators, indexed by N_Port; `None` for ports of storage systems.
    pub(in crate::world) initiators: Vec<Option<FcpInitiator>>,
    pub(super) windows: Windows,
    /// True if a host or storage system has a bus, or a gateway follows arriving data.
    pub(in crate::world) has_buses: bool,
    /// True if commands may take time in a hypervisor or in the processor of an HBA.
    pub(super) has_carriers: bool,
    pub(super) storage_ports: PathTable,
    /// Commands that initiators have completed.
    pub(super) completions: VecDeque<Completion>,
    /// Next requests of closed streams, with their times. Empty except while a command ends.
    pub(super) next_requests: Vec<(u64, u32)>,
    pub request_log: RequestLog,
    /// Sessions of iSCSI, and orders to them.
    pub(in crate::world) tcp: TcpOrders,
    /// Commands of gateways.
    pub(in crate::world) relay: Relay,
    /// Metadata servers, and the maps of hosts; `None` in a lab without any.
    pub(in crate::world) out_of_band: Option<Box<OutOfBand>>,
    /// Timer of the first host.
    first_timer: u32,
}

/// A request that an application of a host issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedRequest {
    /// Time since the start of the workloads, in ps.
    pub at_ps: u64,
    /// Index of the host.
    pub host: u16,
    pub request: Request,
}

/// Requests that the applications of all hosts issued since they were last taken.
#[derive(Debug, Default)]
pub struct RequestLog {
    requests: Vec<LoggedRequest>,
    is_on: bool,
}

impl RequestLog {
    /// Returns the requests since the last call, in order. The first call begins the log, and
    /// returns none.
    pub fn take(&mut self) -> Vec<LoggedRequest> {
        self.is_on = true;
        std::mem::take(&mut self.requests)
    }

    /// Returns whether requests are logged.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn record(&mut self, at_ps: u64, host: u16, request: Request) {
        if self.is_on {
            self.requests.push(LoggedRequest { at_ps, host, request });
        }
    }
}

/// A command that an initiator has completed.
pub(super) struct Completion {
    pub host: u16,
    pub hba: u16,
    pub tag: u64,
    pub outcome: Outcome,
}

/// State of [`Hosts`] at the start.
pub(in crate::world) struct HostsPlan {
    pub nodes: Vec<HostNode>,
    pub workloads: Vec<WorkloadMeasure>,
    /// Initiators, indexed by N_Port; `None` for ports of storage systems.
    pub initiators: Vec<Option<FcpInitiator>>,
    /// Frame windows, indexed by N_Port of the frame path.
    pub windows: Vec<FrameWindow>,
}

impl Hosts {
    /// Returns idle hosts.
    pub(in crate::world) fn new(lab: &Lab, plan: HostsPlan, timers: &Timers) -> Hosts {
        Hosts {
            has_carriers: (lab.hosts.iter())
                .any(|host| host.virtual_machine.is_some() || host.processor.hba != AdapterProcessor::default()),
            has_buses: lab.hosts.iter().any(|host| host.bus.is_some())
                || lab.storage.iter().any(|storage| storage.bus.is_some())
                || relay::streams(lab),
            nodes: plan.nodes,
            workloads: plan.workloads,
            totals: RequestTotals::default(),
            initiators: plan.initiators,
            windows: Windows::new(plan.windows),
            storage_ports: PathTable::new(&lab.storage),
            completions: VecDeque::new(),
            next_requests: Vec::new(),
            request_log: RequestLog::default(),
            tcp: TcpOrders::default(),
            relay: Relay::default(),
            out_of_band: OutOfBand::new(lab, timers.out_of_band),
            first_timer: timers.host,
        }
    }

    pub(in crate::world) fn node(&self, host: u16) -> &HostNode {
        &self.nodes[usize::from(host)]
    }

    /// Returns the SCSI initiator of an N_Port, or `None` if no host owns the port.
    pub fn initiator(&self, nport: u16) -> Option<&FcpInitiator> {
        self.initiators[usize::from(nport)].as_ref()
    }

    /// Returns the number of waiting and in-flight requests, counted one by one.
    pub fn requests_in_flight(&self) -> u64 {
        let (whole, pieces) = self.out_of_band.as_ref().map_or((0, 0), |own| own.requests());
        self.nodes.iter().map(|host| host.queue.requests()).sum::<u64>() + whole - pieces
    }

    /// Returns whether a request is waiting or in flight.
    pub fn is_busy(&self) -> bool {
        self.nodes.iter().any(HostNode::is_busy)
    }

    /// Restarts the measurement at the end of the warm-up. Hosts continue their time series unless
    /// `series` returns a new one.
    pub(in crate::world) fn restart(&mut self, now_ps: u64, series: impl Fn() -> Option<Series>) {
        self.nodes.iter_mut().for_each(|node| node.restart(now_ps, series()));
        self.workloads.iter_mut().for_each(WorkloadMeasure::restart);
    }

    /// Sets the timer of a host to its next job.
    pub(in crate::world) fn arm(&self, env: &mut Env<'_>, host: u16) {
        env.net.set_timer_earlier(self.first_timer + u32::from(host), self.node(host).next_job_ps());
    }

    pub(in crate::world) fn node_mut(&mut self, host: u16) -> &mut HostNode {
        &mut self.nodes[usize::from(host)]
    }

    /// Stops the requests of a virtual machine, which logs out after its last request.
    pub(in crate::world) fn stop_machine(&mut self, env: &mut Env<'_>, host: u16) {
        let node = &mut self.nodes[usize::from(host)];
        node.pause();
        node.plan(env.net.now(), Job::Stop);
        self.arm(env, host);
    }

    /// Discards the frames of a host on buses that would leave through `plane` with source address
    /// `s_id`.
    pub(in crate::world) fn discard_source(&mut self, host: u16, plane: u16, s_id: FcId) {
        self.nodes[usize::from(host)].dma.discard_source(plane, s_id);
    }

    /// Moves a received data frame over the bus into memory. The frame keeps its receive buffer of
    /// `plane` until then. Returns false, without effect, if the host has no bus.
    pub(in crate::world) fn receive_over_bus(
        &mut self,
        env: &mut Env<'_>,
        plane: u16,
        nport: u16,
        frame: FrameRef,
    ) -> bool {
        let Owner::Host { host, hba } = env.nports.node(nport).owner else { return false };
        let Some(done_ps) = self.occupy_bus(env, plane, Direction::Receive, frame.len_bytes()) else { return false };
        let node = &mut self.nodes[usize::from(host)];
        let slot = node.dma.insert(plane, frame);
        node.plan(done_ps, Job::DmaIn(hba, slot));
        self.arm(env, host);
        true
    }

    /// Reserves the bus behind an N_Port for a frame. Returns the end of the transfer, or `None` if
    /// there is no bus.
    #[inline]
    fn occupy_bus(&mut self, env: &Env<'_>, plane: u16, direction: Direction, bytes: u16) -> Option<u64> {
        match env.nports.node(plane).owner {
            Owner::Host { host, hba } => self.nodes[usize::from(host)].occupy_bus(env.net.now(), hba, direction, bytes),
            Owner::Storage { .. } => None,
        }
    }

    /// Sends write data, over the bus if the HBA is behind one.
    fn transmit(&mut self, env: &mut Env<'_>, host: u16, plane: u16, mut seq: SeqTx) {
        let has_bus = match env.nports.node(plane).owner {
            Owner::Host { host, .. } => !self.node(host).buses.is_empty(),
            Owner::Storage { .. } => false,
        };
        if !has_bus {
            env.net.send_data(plane, seq);
            return;
        }
        while let Some(frame) = seq.next_frame() {
            transmit_frame(self, env, host, plane, FrameRef::data(&seq, &frame));
        }
        self.arm(env, host);
    }

    /// Takes a data frame for an initiator. Returns the input for [`handle`](Self::handle) if its
    /// sequence has ended.
    #[inline]
    pub(in crate::world) fn accept_data(&mut self, nport: u16, frame: &FrameRef) -> Option<Input> {
        let ox_id = frame.ox_id();
        let initiator = self.initiators[usize::from(nport)].as_mut()?;
        let accepted = initiator.accept_data(ox_id, frame.seq_cnt(), frame.len_bytes());
        matches!(accepted, Accepted::Complete | Accepted::Gap).then_some(Input::Data { ox_id, accepted })
    }

    /// Handles a message for an initiator.
    pub(in crate::world) fn accept_message(&mut self, env: &mut Env<'_>, nport: u16, frame: Frame) {
        self.handle(env, nport, Input::Frame(frame));
    }

    /// Handles a new address of an N_Port; [`FcId::ZERO`] means none.
    pub(in crate::world) fn address_changed(&mut self, env: &mut Env<'_>, nport: u16, port_id: FcId) {
        self.handle(env, nport, Input::LocalId(port_id));
    }

    /// Handles the timer of an N_Port, if it is due at its initiator.
    pub(in crate::world) fn initiator_timeout(&mut self, env: &mut Env<'_>, nport: u16) {
        let due = self.initiator(nport).and_then(FcpInitiator::poll_timeout);
        if due.is_some_and(|at| at <= env.instant()) {
            self.handle(env, nport, Input::Timeout);
        }
    }

    /// Passes an input to the initiator of an N_Port and executes its outputs. Does nothing for a
    /// port of a storage system.
    pub(in crate::world) fn handle(&mut self, env: &mut Env<'_>, nport: u16, input: Input) {
        if let Some(initiator) = &mut self.initiators[usize::from(nport)] {
            initiator.handle(env.instant(), input);
            self.drain_initiator(env, nport);
        }
    }

    #[inline]
    fn drain_initiator(&mut self, env: &mut Env<'_>, nport: u16) {
        let node = env.nports.node(nport);
        let Owner::Host { host, hba } = node.owner else { return };
        let plane = node.plane;
        while let Some(initiator) = &mut self.initiators[usize::from(nport)]
            && let Some(output) = initiator.poll_output()
        {
            match output {
                Output::Send(mut frame) => {
                    if let Some(s_id) = env.nports.foreign_address(nport) {
                        frame.header.s_id = s_id;
                    }
                    env.net.send_message(plane, frame);
                }
                Output::Transmit(seq) => {
                    let seq = if self.relay.owns(nport) { relay::hold(self, env, nport, seq) } else { Some(seq) };
                    if let Some(seq) = seq {
                        self.transmit(env, host, plane, seq);
                    }
                }
                Output::Done { tag, ox_id, outcome } => {
                    if !matches!(outcome, Outcome::Completed { .. }) {
                        let s_id = env.nports.own_id_on_shared_plane(nport);
                        env.net.fc.unsent(plane).discard_exchange_of_originator(s_id, ox_id);
                    }
                    match relay::is_relayed(tag) {
                        true => relay::done(self, env, nport, tag, outcome),
                        false => self.completions.push_back(Completion { host, hba, tag, outcome }),
                    }
                }
            }
        }
        if let Some(at) = self.initiator(nport).and_then(FcpInitiator::poll_timeout) {
            env.net.set_timer_earlier(u32::from(nport), ps_of(at));
        }
    }
}

/// Sends a frame of write data, over the bus if the HBA is behind one. Call [`Hosts::arm`] after
/// the last one.
pub(in crate::world) fn transmit_frame(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, plane: u16, frame: FrameRef) {
    let Some(done_ps) = hosts.occupy_bus(env, plane, Direction::Send, frame.len_bytes()) else {
        return env.net.send_frame(plane, frame);
    };
    let node = &mut hosts.nodes[usize::from(host)];
    let slot = node.dma.insert(plane, frame);
    node.plan(done_ps, Job::DmaOut(slot));
}
