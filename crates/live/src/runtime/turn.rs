//! The loop: wait, receive, carry, send, and call whoever's time has come.

use super::{Runtime, Source, UpError};
use crate::clock::until;
use crate::frame::FrameBuf;
use crate::iscsi::{self, IscsiServer, Stores};
use crate::lldp::Agent;
use crate::poll::Interest;
use crate::record::Machine;
use crate::storage::workers::{Done, Owner};
use crate::sys::batch::BATCH;
use crate::volumes::BACK_ENDS;
use sanloom_core::dcbx;
use sanloom_core::fabric_switch;
use sanloom_core::fip::{fcf, vn2vn};
use sanloom_core::time::{Instant, Span};
use std::io;
use std::time::Duration;

/// How often ports are asked whether their peer is still there, and the caller whether to go on.
const LOOK: Span = Span::from_ms(100);
/// Who was not let run for longer than this has not heard those who spoke meanwhile: for the machines that time has not passed, so that
/// nobody is logged out who had no chance to be heard.
const STALL: Duration = Duration::from_secs(1);
/// Batches that one port may bring before it is the others' turn.
const BATCHES_IN_TURN: usize = 4;

/// Tokens of the poller: ports have two each, listeners the odd ones.
const WORKERS: u64 = u64::MAX;
/// Somebody else has work for the loop, see [`Runtime::run`].
const BELL: u64 = u64::MAX - 1;

impl Runtime {
    /// Runs until `go_on` says no. It is asked every 100 ms, and whenever `bell` is readable.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub fn run(
        &mut self,
        bell: Option<std::os::fd::BorrowedFd<'_>>,
        mut go_on: impl FnMut(&mut Runtime) -> bool,
    ) -> Result<(), UpError> {
        let failed = |error| UpError::System { what: "epoll", error };
        self.poller.set(BELL, bell, Interest { read: true, write: false }).map_err(failed)?;
        loop {
            if std::mem::take(&mut self.called) && !go_on(self) {
                return Ok(());
            }
            let more = self.act();
            self.wait(more).map_err(failed)?;
        }
    }

    /// Waits until there is something to do, or only looks if something is left to do anyway.
    fn wait(&mut self, busy: bool) -> io::Result<()> {
        for (number, port) in self.ports.iter().enumerate() {
            let token = 2 * number as u64;
            let write = port.ethernet.egress.blocked && !port.ethernet.egress.queue.is_empty();
            let read = port.held == 0 && !port.ready;
            self.poller.set(token, port.ethernet.socket(), Interest { read, write })?;
            if let Some(listener) = port.ethernet.listener() {
                self.poller.set(token + 1, Some(listener), Interest { read: true, write: false })?;
            }
        }
        if let Some(engine) = &self.volumes {
            engine.watch(&mut self.poller)?;
        }
        let now = self.clock.now();
        let wait = if busy { Duration::ZERO } else { until(now, self.next_timer()) };
        let mut listeners = Vec::new();
        let light = !busy && self.iscsi.as_ref().is_some_and(IscsiServer::is_light);
        let events = self.poller.poll(&mut self.polling, light, wait)?;
        let stood = until(now, self.clock.now()).saturating_sub(wait);
        if stood > STALL {
            tracing::warn!(seconds = stood.as_secs_f64(), "the process stood still");
            self.clock.stand_still(stood);
            self.captures.stood_still(stood);
        }
        for event in events.iter().copied() {
            match event.token {
                WORKERS => self.rung = true,
                BELL => self.called = true,
                token if (BACK_ENDS..iscsi::LISTENERS).contains(&token) => {
                    if let Some(engine) = &mut self.volumes {
                        engine.happened(token, event.readable, event.writable);
                    }
                }
                token if token >= iscsi::LISTENERS => {
                    if let Some(server) = &mut self.iscsi {
                        server.happened(token, event.readable, event.writable);
                    }
                }
                token => {
                    let number = (token / 2) as usize;
                    if token % 2 == 1 {
                        listeners.push(number);
                        continue;
                    }
                    let port = &mut self.ports[number];
                    port.ready |= event.readable;
                    port.ethernet.egress.blocked &= !event.writable;
                }
            }
        }
        for number in listeners {
            self.look_at_port(self.clock.now(), number);
        }
        Ok(())
    }

    /// Does what there is to do. True if there is more that need not be waited for.
    fn act(&mut self) -> bool {
        let now = self.clock.now();
        let mut more = false;
        for number in 0..self.ports.len() {
            more |= self.receive(now, number);
        }
        if let Some(workers) = self.workers.as_ref().filter(|_| std::mem::take(&mut self.rung)) {
            let done = workers.take_done();
            self.jobs_done(now, done);
        }
        if let Some(server) = &mut self.iscsi {
            let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
            more |= server.act(now, &mut self.poller, stores);
            (0..self.systems.len()).for_each(|system| self.drain_storage(system));
        }
        self.timers(now);
        // Behind everything that may ask for I/O on a volume.
        more |= self.act_on_volumes(now);
        // Storage may answer at once, and what hosts of ours then have to tell or to send is not waited for.
        more |= self.pump_hosts(now);
        more |= self.pump(now);
        more |= self.hosts_are_busy();
        self.settle_inside(now);
        self.finish_apply();
        // Who was held back and may go on has more, and nothing else would wake us for that.
        more | self.flush_ports(now)
    }

    /// Tells those who asked of what is done.
    pub(super) fn jobs_done(&mut self, now: Instant, all: Vec<Done>) {
        let mut of_sessions = Vec::new();
        for done in all {
            match done.owner {
                Owner::Port { system, .. } => {
                    self.systems[system].done(now, done);
                    self.drain_storage(system);
                }
                Owner::Session { .. } => of_sessions.push(done),
            }
        }
        if let Some(server) = self.iscsi.as_mut().filter(|_| !of_sessions.is_empty()) {
            let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
            server.done(now, of_sessions, &mut self.poller, stores);
            (0..self.systems.len()).for_each(|system| self.drain_storage(system));
        }
    }

    /// Takes frames out of a port that is ready and not held back. True if there may be more.
    fn receive(&mut self, now: Instant, number: usize) -> bool {
        for _ in 0..BATCHES_IN_TURN {
            let port = &mut self.ports[number];
            if !port.ready || port.held > 0 {
                return false;
            }
            let (got, cut) = match port.ethernet.receive(&mut self.spare) {
                Ok(got) => got,
                Err(error) => {
                    port.ready = false;
                    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                        tracing::debug!(port = port.ethernet.name, %error, "receive");
                    }
                    return false;
                }
            };
            port.ready = got == BATCH;
            for (place, bit) in (0..got).zip(0..) {
                let next = self.pool.take();
                let frame = std::mem::replace(&mut self.spare[place], next);
                if cut >> bit & 1 == 0 {
                    self.ethernet_in(now, number, frame);
                } else {
                    self.pool.give(frame);
                }
            }
        }
        self.ports[number].ready
    }

    /// When to come back at the latest.
    fn next_timer(&self) -> Instant {
        let machines = self.switches.iter().filter_map(|switch| switch.machine.poll_timeout());
        let fcfs = self.segments.iter().filter_map(|segment| segment.fcf.poll_timeout());
        let agents = self.ports.iter().filter_map(|port| port.agent.as_ref()?.machine.poll_timeout());
        let stations = self.stations.iter().filter_map(|station| station.machine.poll_timeout());
        let storage = self.systems.iter().filter_map(|system| system.poll_timeout());
        let queues = self.ports.iter().filter_map(|port| port.ethernet.egress.expires(self.hold_time));
        let delayed = self.injector.next_due();
        let volumes = self.volumes.as_ref().and_then(|engine| engine.poll_timeout());
        let own = machines.chain(fcfs).chain(agents).chain(stations).chain(storage);
        own.chain(queues).chain(delayed).chain(volumes).fold(self.next_look, Instant::min)
    }

    fn timers(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for switch in 0..self.switches.len() {
            if due(self.switches[switch].machine.poll_timeout()) {
                self.tell_switch(now, switch, fabric_switch::Input::Timeout);
            }
        }
        for segment in 0..self.segments.len() {
            if due(self.segments[segment].fcf.poll_timeout()) {
                self.tell_fcf(now, segment, fcf::Input::Timeout);
            }
        }
        for port in 0..self.ports.len() {
            if due(self.ports[port].agent.as_ref().and_then(|agent| agent.machine.poll_timeout())) {
                self.tell_agent(now, port, dcbx::Input::Timeout);
                self.settle_port(now, port);
            }
        }
        for station in 0..self.stations.len() {
            if due(self.stations[station].machine.poll_timeout()) {
                self.tell_station(now, station, vn2vn::Input::Timeout);
            }
        }
        for system in 0..self.systems.len() {
            if due(self.systems[system].poll_timeout()) {
                self.systems[system].timeout(now);
                self.drain_storage(system);
            }
        }
        if due(self.injector.next_due()) {
            self.release_delayed(now);
        }
        if self.next_look <= now {
            self.next_look = now + LOOK;
            self.called = true;
            for number in 0..self.ports.len() {
                self.look_at_port(now, number);
            }
            self.flush_records();
            if let Some(server) = &mut self.iscsi {
                let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
                server.look(now, &mut self.poller, stores);
                if let Err(error) = server.watch(&mut self.poller) {
                    tracing::warn!(%error, "cannot wait for initiators");
                }
            }
            self.keep_again(now);
            self.keep_initiator_ports();
        }
    }

    /// Finds out whether the peer of a port has come or gone, and tells the FCFs.
    pub(super) fn look_at_port(&mut self, now: Instant, number: usize) {
        let port = &mut self.ports[number];
        if port.ethernet.look_for_peer() {
            self.poller.forget(2 * number as u64);
        }
        let light = port.ethernet.has_peer();
        if std::mem::replace(&mut port.light, light) != light {
            tracing::info!(port = port.ethernet.name, up = light, "link");
            self.tell_agent(now, number, if light { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
            self.settle_port(now, number);
        }
    }

    /// Tells the FCFs of a port, and its station, when FCoE may begin and when it is over.
    fn settle_port(&mut self, now: Instant, number: usize) {
        let port = &mut self.ports[number];
        let up = port.light && port.agent.as_ref().is_none_or(Agent::may_begin);
        if std::mem::replace(&mut port.up, up) == up {
            return;
        }
        let station = port.station;
        for segment in port.segments.clone() {
            if !self.segments[segment].disabled {
                self.tell_fcf(now, segment, if up { fcf::Input::LinkUp } else { fcf::Input::LinkDown });
            }
        }
        if let Some(station) = station {
            self.tell_station(now, station, if up { vn2vn::Input::LinkUp } else { vn2vn::Input::LinkDown });
        }
    }

    /// Something happened to the LLDP agent of a port, if it has one.
    pub(super) fn tell_agent(&mut self, now: Instant, number: usize, input: dcbx::Input) {
        let Some(agent) = &mut self.ports[number].agent else { return };
        if let Some(recorder) = &mut self.recorder {
            recorder.agent_input(now, number, &input);
        }
        agent.machine.handle(now, input);
        self.drain_agent(now, number);
    }

    /// An LLDP frame came in.
    pub(super) fn lldp_in(&mut self, now: Instant, number: usize, frame: &FrameBuf) {
        if let Some(input) = Agent::input_of(frame) {
            self.tell_agent(now, number, input);
            self.settle_port(now, number);
        }
    }

    fn drain_agent(&mut self, now: Instant, number: usize) {
        while let Some(agent) = &mut self.ports[number].agent {
            let output = agent.machine.poll_output();
            if let Some(recorder) = &mut self.recorder {
                recorder.output(Machine::Agent(number), output.as_ref());
            }
            let Some(output) = output else { break };
            if let Some(pdu) = agent.obey(output) {
                let mut buffer = self.pool.take();
                buffer.compose(&mut self.scratch, |out| agent.emit(&pdu, out));
                self.ethernet_out(now, number, Source::Machine, buffer);
            }
        }
    }

    /// Tells everybody that the instance ends, and sends what is left.
    pub fn shut_down(&mut self) {
        // While fabrics are there that back ends are in.
        self.end_sessions();
        if let Some(engine) = &mut self.volumes {
            engine.leave_fabrics(self.clock.now());
        }
        self.act_until(|runtime| runtime.volumes.as_ref().is_none_or(|engine| !engine.is_in_fabric()));
        let now = self.clock.now();
        if let Some(engine) = &mut self.volumes {
            engine.shut_down(now);
        }
        for segment in 0..self.segments.len() {
            self.tell_fcf(now, segment, fcf::Input::Shutdown);
        }
        for port in 0..self.ports.len() {
            self.tell_agent(now, port, dcbx::Input::Shutdown);
        }
        self.flush_ports(now);
        self.end_hosts(now);
        self.flush_records();
    }

    /// Captures and recordings have in their files what was in them.
    fn flush_records(&mut self) {
        self.captures.flush();
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Asks initiators to log out, and waits a moment for those that do. Then the sessions with back ends that were theirs log out.
    fn end_sessions(&mut self) {
        let Some(server) = &mut self.iscsi else { return };
        let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
        server.shut_down(self.clock.now(), stores);
        self.act_until(|runtime| runtime.iscsi.as_ref().is_none_or(|server| server.connections() == 0));
        let Some(server) = &mut self.iscsi else { return };
        let stores = &mut Stores { systems: &mut self.systems, volumes: self.volumes.as_mut() };
        server.drop_all(self.clock.now(), &mut self.poller, stores);
        let is_over = |runtime: &Runtime| runtime.iscsi.as_ref().is_none_or(|server| !server.has_left_behind());
        if self.act_until(is_over) && self.volumes.is_some() {
            self.forget_initiator_ports();
        }
    }

    /// Goes on until this is so, or for too long: then false.
    fn act_until(&mut self, so: impl Fn(&Runtime) -> bool) -> bool {
        const PATIENCE: Duration = Duration::from_millis(500);
        let began = self.clock.now();
        while !so(self) {
            let more = self.act();
            if self.wait(more).is_err() || until(began, self.clock.now()) >= PATIENCE {
                return false;
            }
        }
        true
    }

    pub(super) fn watch_workers(&mut self) -> Result<(), UpError> {
        let bell = self.workers.as_ref().map(|workers| workers.bell());
        let set = self.poller.set(WORKERS, bell, Interest { read: true, write: false });
        set.map_err(|error| UpError::System { what: "epoll", error })
    }
}
