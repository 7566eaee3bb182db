//! The parts of a running lab, and the dispatch of work among them: [`Instance`].
//!
//! ```text
//!   Ports ── frame ──▶ Fabric (Bindings, Fib) ── frame ──▶ Ports (egress queue)
//!     │ FIP, LLDP        │  ▲                └── frame ──▶ Services (storage port, host port)
//!     ▼                  ▼  │                └── frame ──▶ WorkQueue (inner cable)
//!   Fcf, Dcbx ── inputs ─▶ WorkQueue ── inputs ──▶ FabricSwitch, Fcf
//! ```
//!
//! Each `*_input` method passes one input to a machine and drains its outputs. Outputs for other
//! machines go into the queue, which [`Instance::dispatch`] empties within the budget of a step.

use super::fabric::Fabric;
use super::fabric::switch::Attachment;
use super::operations::keeper::Keeper;
use super::ports::Ports;
use super::services::Services;
use super::spread::{self, Spread};
use super::tunnel;
use super::work::{Deadlines, Source, Timer, Work, WorkQueue};
use crate::capture::Captures;
use crate::driven::Recording;
use crate::lldp::Agent;
use crate::poll::Poller;
use crate::request_trace::RequestTraces;
use crate::state::StateStore;
use crate::storage::port::At;
use sanloom_api::event_log::EventLog;
use sanloom_api::zone_requests::ZoneResult;
use sanloom_fc::dcbx;
use sanloom_fc::fabric::FibDelta;
use sanloom_fc::fabric_switch::{self, Event};
use sanloom_fc::fip::{fcf, vn2vn};
use sanloom_fc::nport;
use sanloom_fc::san::Lab;
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::Instant;
use std::sync::Arc;

/// Maximum batches from one port before the next port is read.
const MAX_BATCHES_AT_ONCE: usize = 4;

/// A running lab, without its loop and control requests.
#[derive(Debug)]
pub struct Instance {
    /// The lab that was applied last.
    pub lab: Arc<Lab>,
    /// Index in the lab of each switch that runs here.
    pub lab_switches: Vec<u16>,
    /// Switches, segments, stations.
    pub fabric: Fabric,
    /// Ethernet ports.
    pub ports: Ports,
    /// Storage, iSCSI targets, virtual disks.
    pub services: Services,
    /// Zones and addresses in the store.
    pub keeper: Keeper,
    /// Work that is not dispatched yet.
    pub work: WorkQueue,
    /// Deadlines of machines and egress queues.
    pub deadlines: Deadlines,
    /// Zone changes that have ended and are not yet taken.
    pub zone_results: Vec<ZoneResult>,
    /// Recording of the inputs and outputs of the machines.
    pub recording: Recording,
    /// The event log.
    pub log: EventLog,
    /// Traces of the requests to storage systems.
    pub traces: RequestTraces,
    /// Threads that share the work of Ethernet ports.
    pub spread: Spread,
    /// Sources that are no longer held back, during a flush of ports.
    released: Vec<Source>,
    /// Storage ports and host ports that steps have visited.
    #[cfg(test)]
    pub visits: Vec<Source>,
}

impl Instance {
    /// Returns an instance of these switches of a lab, still without parts.
    pub fn new(lab: Arc<Lab>, lab_switches: Vec<u16>, state: StateStore) -> Instance {
        Instance {
            fabric: Fabric::default(),
            ports: Ports::new(lab.timers.hold_time.to_span()),
            services: Services::default(),
            keeper: Keeper::new(state),
            work: WorkQueue::default(),
            deadlines: Deadlines::default(),
            zone_results: Vec::new(),
            recording: Recording::default(),
            log: crate::runtime::events::log(),
            traces: RequestTraces::default(),
            spread: Spread::default(),
            released: Vec::new(),
            #[cfg(test)]
            visits: Vec::new(),
            lab_switches,
            lab,
        }
    }

    /// Index of a switch of this process, by its index in the lab.
    pub fn switch_here(&self, number: u16) -> Option<usize> {
        self.lab_switches.iter().position(|here| *here == number)
    }

    /// Writes captures, traces and the recording to their files.
    pub fn flush_records(&mut self) {
        self.ports.captures.flush();
        self.services.adapters_mut().for_each(|adapter| adapter.captures.flush());
        self.traces.flush(&mut self.services.systems);
        self.recording.flush();
    }

    /// Describes each capture, trace and recording that could not be written to its end, with error
    /// and remedy.
    pub fn incomplete(&self) -> Vec<String> {
        let of_hosts = self.services.adapters().map(|adapter| &adapter.captures);
        let captures = std::iter::once(&self.ports.captures).chain(of_hosts);
        let failed = captures.flat_map(Captures::failed).map(ToString::to_string);
        let of_traces = self.traces.failed().map(ToString::to_string);
        failed.chain(of_traces).chain(self.recording.incomplete()).collect()
    }

    /// Dispatches queued work until there is none, or the budget of the step is spent.
    pub fn dispatch(&mut self, now: Instant) {
        while let Some(work) = self.work.pop() {
            match work {
                Work::Frame(entering) => self.inner_frame(now, entering),
                Work::Switch(switch, input) => self.switch_input(now, switch, *input),
                Work::Fcf(segment, input) => self.fcf_input(now, segment, *input),
            }
        }
    }

    /// Passes an input to a switch and drains its outputs.
    pub fn switch_input(&mut self, now: Instant, switch: usize, input: fabric_switch::Input) {
        self.fabric.switches[switch].machine.handle(now, input);
        self.drain_switch(now, switch);
    }

    fn drain_switch(&mut self, now: Instant, switch: usize) {
        while let Some(output) = self.fabric.switches[switch].machine.poll_output() {
            self.log.output(now, self.lab_switches[switch], &self.fabric.switches[switch].machine, &output);
            match output {
                fabric_switch::Output::Send { port, frame } => self.send_message(now, (switch, port), frame),
                fabric_switch::Output::Fib(delta) => self.apply_fib(switch, &delta),
                fabric_switch::Output::Event(event) => self.switch_event(switch, event),
                // Stored before the next output is applied, so that no frame that depends on the
                // record leaves before it is stored.
                fabric_switch::Output::Persist { port_name, port_id } => {
                    self.keeper.keep_address(now, &mut self.fabric.switches[switch], port_name, port_id);
                }
                fabric_switch::Output::Zones { database, .. } => {
                    self.keeper.keep_zones(now, &mut self.fabric.switches[switch], database);
                }
            }
        }
        self.deadlines.update(Timer::Switch(switch), self.fabric.switches[switch].machine.deadline());
    }

    fn apply_fib(&mut self, switch: usize, delta: &FibDelta) {
        self.fabric.switches[switch].fib.apply(delta);
        if let FibDelta::RemoveId { id } = *delta {
            for segment in self.fabric.segments_of(switch) {
                self.work.push_fcf(segment, fcf::Input::Removed { port_id: id });
            }
        }
    }

    fn switch_event(&mut self, switch: usize, event: Event) {
        let name = &self.fabric.switches[switch].name;
        match event {
            Event::IslUp { port, neighbour } => {
                tracing::info!(switch = name, port, %neighbour, "link to another switch up")
            }
            Event::IslDown { port } => tracing::warn!(switch = name, port, "link to another switch down"),
            Event::AdjacencyLost { port } => {
                tracing::warn!(switch = name, port, "link carries no HLO, so no path uses it")
            }
            Event::AdjacencyRestored { port } => tracing::info!(switch = name, port, "link carries HLOs again"),
            Event::Isolated { port, reason } => tracing::warn!(switch = name, port, %reason, "port isolated"),
            Event::Domain(Some(domain)) => tracing::info!(switch = name, domain, "domain"),
            Event::Domain(None) => tracing::warn!(switch = name, "no domain"),
            Event::Principal(principal) => tracing::info!(switch = name, %principal, "principal switch"),
            Event::ZonesChanged { tag, result } => {
                tracing::info!(switch = name, tag, done = result.is_ok(), "zone change");
                self.zone_results.push(ZoneResult { switch, tag, result });
            }
        }
        for segment in self.fabric.segments_of(switch) {
            self.advertise_fabric(segment);
        }
    }

    /// Passes the name of the switch's fabric to the FCF of a segment, and whether hosts may log
    /// in.
    pub fn advertise_fabric(&mut self, segment: usize) {
        let machine = &self.fabric.switches[self.fabric.segments[segment].switch].machine;
        let (name, available) = (machine.services().fabric_name(), machine.domain().is_some());
        self.work.push_fcf(segment, fcf::Input::Fabric { name, available });
    }

    /// Passes an input to the FCF of a segment and drains its outputs.
    pub fn fcf_input(&mut self, now: Instant, segment: usize, input: fcf::Input) {
        self.fabric.segments[segment].fcf.handle(now, input);
        while let Some(output) = self.fabric.segments[segment].fcf.poll_output() {
            match output {
                fcf::Output::Fip(packet) => {
                    let mut frame = self.ports.compose(|out| packet.emit(None, out));
                    frame.tag = self.fabric.segments[segment].tag();
                    self.push_ethernet(now, self.fabric.segments[segment].port, Source::Machine, frame);
                }
                fcf::Output::Fcoe { to, frame } => {
                    let Fabric { segments, .. } = &self.fabric;
                    let (port, path, tag) =
                        (segments[segment].port, (to, segments[segment].mac()), segments[segment].tag());
                    self.send_fcoe(now, port, path, tag, Source::Machine, frame);
                }
                fcf::Output::Switch(input) => self.fcf_to_switch(now, segment, input),
                fcf::Output::Bind(change) => self.fabric.segments[segment].bindings.apply(change),
                fcf::Output::Event(event) => self.fcf_event(segment, event),
            }
        }
        self.deadlines.update(Timer::Fcf(segment), self.fabric.segments[segment].fcf.deadline());
    }

    fn fcf_to_switch(&mut self, now: Instant, segment: usize, input: fabric_switch::Input) {
        let switch = self.fabric.segments[segment].switch;
        let input = match input {
            fabric_switch::Input::Frame { port, frame } if !self.fabric.injector.is_idle() => {
                match self.inject_request(now, segment, port, frame) {
                    Some(frame) => fabric_switch::Input::Frame { port, frame },
                    None => return,
                }
            }
            other => other,
        };
        self.work.push_switch(switch, input);
    }

    fn fcf_event(&self, segment: usize, event: fcf::Event) {
        let segment = &self.fabric.segments[segment];
        let (switch, ethernet) = (&self.fabric.switches[segment.switch].name, &self.ports[segment.port].ethernet.name);
        match event {
            fcf::Event::EnodeUp { port, mac } => tracing::info!(switch, ethernet, port, %mac, "host logged in"),
            fcf::Event::EnodeDown { port, mac } => tracing::info!(switch, ethernet, port, %mac, "host gone"),
            fcf::Event::VnPortUp { port_id, port_name } => {
                tracing::info!(switch, ethernet, %port_id, %port_name, "port logged in");
            }
            fcf::Event::VnPortDown { port_id, port_name } => {
                tracing::info!(switch, ethernet, %port_id, %port_name, "port gone");
            }
            fcf::Event::NeighbourUp { port, mac, switch_name } => {
                tracing::info!(switch, ethernet, port, %mac, %switch_name, "neighbour found");
            }
            fcf::Event::NeighbourDown { port, mac } => tracing::info!(switch, ethernet, port, %mac, "neighbour gone"),
        }
    }

    /// Passes an input to the controller of a station and drains its outputs.
    pub fn station_input(&mut self, now: Instant, number: usize, input: vn2vn::Input) {
        let station = &mut self.fabric.stations[number];
        let (port, tag, system, storage_port) = (station.port, station.tag(), station.system, station.storage_port);
        station.machine.handle(now, input);
        while let Some(output) = self.fabric.stations[number].machine.poll_output() {
            let login = match output {
                vn2vn::Output::Fip(packet) => {
                    let mut frame = self.ports.compose(|out| packet.emit(None, out));
                    frame.tag = tag;
                    self.push_ethernet(now, port, Source::Machine, frame);
                    continue;
                }
                vn2vn::Output::Fcoe { to, from, frame } => {
                    self.send_fcoe(now, port, (to, from), tag, Source::Storage(system, storage_port), frame);
                    continue;
                }
                vn2vn::Output::Up { port_id } => nport::Input::Joined { port_id },
                vn2vn::Output::Down => nport::Input::LinkDown,
                vn2vn::Output::NeighbourUp { port_id, port_name: wwpn } => nport::Input::Neighbour { port_id, wwpn },
                vn2vn::Output::NeighbourDown { port_id } => nport::Input::NeighbourGone { port_id },
            };
            self.services.systems[system].login_input(now, storage_port, login);
            self.services.submit_jobs(system);
        }
        self.deadlines.update(Timer::Station(number), self.fabric.stations[number].machine.deadline());
    }

    /// Passes an input to the LLDP agent of a port, if it has one, and drains its outputs.
    pub fn agent_input(&mut self, now: Instant, number: usize, input: dcbx::Input) {
        let Some(agent) = &mut self.ports[number].agent else { return };
        agent.machine.handle(now, input);
        let mut pdus = Vec::new();
        while let Some(pdu) = agent.poll() {
            let mut bytes = Vec::new();
            agent.emit(&pdu, &mut bytes);
            pdus.push(bytes);
        }
        let agreed = agent.agreed().cloned();
        self.ports[number].ethernet.egress.configure(agreed.as_ref());
        for bytes in pdus {
            let frame = self.ports.compose(|out| out.extend(&bytes));
            self.push_ethernet(now, number, Source::Machine, frame);
        }
        let deadline = self.ports[number].agent.as_ref().and_then(|agent| agent.machine.deadline());
        self.deadlines.update(Timer::Agent(number), deadline);
    }

    /// Handles a peer of a port that appeared or disappeared.
    pub fn peer_changed(&mut self, now: Instant, number: usize) {
        let light = self.ports[number].light;
        if !light {
            let Instance { ports, fabric, .. } = self;
            fabric.count_failure(&ports[number]);
        }
        self.agent_input(now, number, if light { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
        self.update_link(now, number);
    }

    /// Reports to the segments and the station of a port whether FCoE may be used.
    pub fn update_link(&mut self, now: Instant, number: usize) {
        let port = &mut self.ports[number];
        let up = port.light && port.agent.as_ref().is_none_or(Agent::may_begin);
        if std::mem::replace(&mut port.up, up) == up {
            return;
        }
        let station = port.station;
        if port.tunnel.is_some() {
            return tunnel::link_changed(self, number);
        }
        let port = &self.ports[number];
        for segment in &port.segments {
            if !self.fabric.segments[*segment].disabled {
                self.work.push_fcf(*segment, if up { fcf::Input::LinkUp } else { fcf::Input::LinkDown });
            }
        }
        if let Some(station) = station {
            self.station_input(now, station, if up { vn2vn::Input::LinkUp } else { vn2vn::Input::LinkDown });
        }
    }

    /// Checks the presence of the peers of all ports.
    pub fn check_peers(&mut self, now: Instant, poller: &mut Poller) {
        for number in 0..self.ports.len() {
            self.check_peer(now, number, poller);
        }
    }

    /// Checks the presence of the peer of a port.
    pub fn check_peer(&mut self, now: Instant, number: usize, poller: &mut Poller) {
        if self.ports.check_peer(number, poller) {
            self.peer_changed(now, number);
        }
    }

    /// Starts the machines and brings up the links inside the process.
    pub fn begin(&mut self, now: Instant) {
        self.fabric.start_timers(&mut self.deadlines);
        for switch in 0..self.fabric.switches.len() {
            self.drain_switch(now, switch);
        }
        for segment in 0..self.fabric.segments.len() {
            self.advertise_fabric(segment);
        }
        for (switch, live) in self.fabric.switches.iter().enumerate() {
            for (port, attachment) in (0..).zip(&live.attachments) {
                let kind = match attachment {
                    Attachment::Storage { .. } | Attachment::Host(_) => PortKind::F,
                    Attachment::Cable { .. } => PortKind::E,
                    Attachment::Segment(_) | Attachment::Tunnel(_) | Attachment::Nothing => continue,
                };
                self.work.push_switch(switch, fabric_switch::Input::PortUp { port, kind });
            }
        }
        for system in self.services.systems.iter_mut() {
            for port in 0..system.ports.len() as u16 {
                if matches!(system.ports[usize::from(port)].at, At::Switch { .. }) {
                    system.link(now, port, true);
                }
            }
        }
        self.services.start_hosts(now);
        self.dispatch(now);
    }

    /// Calls the machines whose deadline is over.
    pub fn serve_timers(&mut self, now: Instant) {
        let due = self.deadlines.take_due(now);
        for timer in &due {
            match *timer {
                Timer::Switch(switch) => self.switch_input(now, switch, fabric_switch::Input::Timeout),
                Timer::Fcf(segment) => self.fcf_input(now, segment, fcf::Input::Timeout),
                Timer::Station(station) => self.station_input(now, station, vn2vn::Input::Timeout),
                Timer::Agent(port) => {
                    self.agent_input(now, port, dcbx::Input::Timeout);
                    self.update_link(now, port);
                }
                Timer::StoragePort(system, port) => {
                    self.services.systems[system].timeout(now, port);
                    self.services.submit_jobs(system);
                }
                // The step of the virtual disks calls the machines of the port.
                Timer::Host(number) => _ = self.services.host_mut(number),
                Timer::Egress(port) | Timer::Pause(port) => self.ports.mark(port),
            }
        }
        self.deadlines.reuse(due);
        self.release_delayed(now);
    }

    /// Time of the next call of [`serve_timers`](Self::serve_timers).
    pub fn next_deadline(&self) -> Option<Instant> {
        debug_assert!(self.deadlines_are_current(), "a machine was called, and its deadline was not updated");
        debug_assert!(self.services.nothing_is_left(), "a port has frames to send, and the step does not visit it");
        let volumes = self.services.volumes.as_ref().and_then(|engine| engine.poll_timeout());
        let srp = self.services.srp.as_ref().and_then(|server| server.poll_timeout());
        [self.deadlines.next(), self.fabric.injector.next_due(), volumes, srp].into_iter().flatten().min()
    }

    /// Returns whether all timers have the deadlines of their machines. Ports that the next step
    /// visits may differ.
    fn deadlines_are_current(&self) -> bool {
        let Instance { deadlines, fabric, services, .. } = self;
        let is = |timer, at| deadlines.at(timer) == at;
        let switches = (0..).zip(&fabric.switches).all(|(n, one)| is(Timer::Switch(n), one.machine.deadline()));
        let segments = (0..).zip(&fabric.segments).all(|(n, one)| is(Timer::Fcf(n), one.fcf.deadline()));
        let stations = (0..).zip(&fabric.stations).all(|(n, one)| is(Timer::Station(n), one.machine.deadline()));
        let storage = (0..).zip(services.systems.iter()).all(|(system, one)| {
            (0..).zip(&one.ports).all(|(port, one)| is(Timer::StoragePort(system, port), one.poll_timeout()))
        });
        let hosts = services.volumes.iter().flat_map(|engine| engine.hosts().iter());
        let hosts = (0..).zip(hosts).all(|(n, port)| is(Timer::Host(n), port.poll_timeout()));
        switches && segments && stations && (services.has_ready() || storage && hosts)
    }

    /// Flushes the egress queues. Returns whether a source is no longer held back.
    pub fn flush_ports(&mut self, now: Instant) -> bool {
        let mut released = std::mem::take(&mut self.released);
        self.ports.flush(now, &mut self.spread, &mut self.deadlines, &mut released);
        let more = !released.is_empty();
        for source in released.drain(..) {
            self.change_held(source, -1);
        }
        self.released = released;
        self.ports.pause_peers(now, &mut self.deadlines);
        more
    }

    /// Changes the number of full egress queues that hold a source back.
    pub fn change_held(&mut self, source: Source, by: i16) {
        match source {
            Source::Ethernet(number) => {
                let held = &mut self.ports[number].held;
                debug_assert!(held.checked_add_signed(by).is_some(), "port {number} is released more often than held");
                *held = held.saturating_add_signed(by);
                self.ports.mark(number);
            }
            other => self.services.change_held(other, by),
        }
    }

    /// Returns whether tables alone decide the way of data frames: no fault is injected, and no
    /// capture is taken.
    fn tables_decide(&self) -> bool {
        self.fabric.injector.is_idle() && self.ports.captures.is_idle()
    }

    /// As [`receive`](Self::receive), with several threads.
    fn receive_spread(&mut self, now: Instant, readable: &[usize]) {
        for _ in 0..MAX_BATCHES_AT_ONCE / spread::BATCHES {
            if self.work.is_full() || !self.tables_decide() {
                break;
            }
            let batches = self.spread.receive(&mut self.ports, &self.fabric, readable);
            if batches.is_empty() {
                break;
            }
            for mut batch in batches {
                tunnel::update(self, now, batch.port);
                for received in batch.frames.drain(..) {
                    self.received_frame(now, batch.port, received);
                }
                self.spread.reuse(batch);
            }
        }
    }

    /// Receives frames from the ports that have some and are not held back. Returns whether there
    /// may be more.
    pub fn receive(&mut self, now: Instant) -> bool {
        let readable = self.ports.take_readable();
        let several = || readable.iter().filter(|number| self.ports[**number].may_receive()).nth(1).is_some();
        if self.spread.is_running() && self.tables_decide() && several() {
            self.receive_spread(now, &readable);
            return self.ports.put_readable(readable);
        }
        for number in &readable {
            for _ in 0..MAX_BATCHES_AT_ONCE {
                if self.work.is_full() {
                    break;
                }
                let received = self.ports.receive(*number);
                // Before the frames that a new link carries.
                tunnel::update(self, now, *number);
                let Some((got, cut)) = received else { break };
                for (place, bit) in (0..got).zip(0..) {
                    let frame = self.ports.take_received(place);
                    if cut >> bit & 1 == 0 {
                        self.ethernet_frame(now, *number, frame);
                    } else {
                        self.ports.pool.give(frame);
                    }
                }
            }
        }
        self.ports.put_readable(readable)
    }
}
