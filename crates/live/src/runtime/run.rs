//! The main loop: wait, receive, dispatch, send, and call machines at their deadlines.

use super::operations::Site;
use super::operations::volumes::VolumeAdmin;
use super::services::WORKERS;
use super::{Runtime, UpError};
use crate::clock::until;
use crate::iscsi::{self, IscsiServer, ServerContext};
use crate::poll::Interest;
use crate::srp;
use crate::volumes::BACK_ENDS;
use sanloom_fc::dcbx;
use sanloom_fc::fip::fcf;
use sanloom_scsi::time::{Instant, Span};
use std::io;
use std::time::Duration;

/// Interval of checks of states without events: peers of ports, and `go_on`.
const CHECK: Span = Span::from_ms(100);
/// A stall of the process longer than this is subtracted from machine time. Otherwise peers would
/// be logged out whose messages the process had no chance to read.
const STALL: Duration = Duration::from_secs(1);
/// Token of the poller for the bell of [`Runtime::run`]. Ports have two tokens each, listeners the
/// odd ones.
const BELL: u64 = u64::MAX - 1;

impl Runtime {
    /// Runs until `go_on` returns false. `go_on` is called about every 100 ms, and when `bell` is
    /// readable. While the loop never waits for events, short calls take a fiftieth of its time.
    ///
    /// # Errors
    /// Errors of waiting for sockets.
    pub fn run(
        &mut self,
        bell: Option<std::os::fd::BorrowedFd<'_>>,
        mut go_on: impl FnMut(&mut Runtime) -> bool,
    ) -> Result<(), UpError> {
        let failed = |error| UpError::System { what: "epoll", error };
        loop {
            // While answers rest, the bell would only end each wait at once.
            let read = self.pace.rest().is_none();
            self.poller.set(BELL, bell, Interest { read, write: false }).map_err(failed)?;
            if read && std::mem::take(&mut self.called) {
                let began = self.clock.now();
                if !go_on(self) {
                    return Ok(());
                }
                self.pace.spent(until(began, self.clock.now()));
            }
            let more = self.step();
            self.wait(more).map_err(failed)?;
        }
    }

    /// Waits for the next event or deadline. If the instance is busy, only collects events.
    pub(super) fn wait(&mut self, busy: bool) -> io::Result<()> {
        self.instance.ports.watch(&mut self.poller)?;
        if let Some(engine) = &mut self.instance.services.volumes {
            engine.watch(&mut self.poller)?;
        }
        if let Some(server) = &self.instance.services.srp {
            server.watch(&mut self.poller)?;
        }
        let now = self.clock.now();
        let wait = if busy {
            Duration::ZERO
        } else {
            let deadline = self.instance.next_deadline();
            let wait = until(now, deadline.map_or(self.next_check, |at| at.min(self.next_check)));
            self.pace.rest().map_or(wait, |rest| wait.min(rest))
        };
        let services = &mut self.instance.services;
        let light = !busy && services.iscsi.as_ref().is_some_and(IscsiServer::is_light);
        let events = self.poller.poll(&mut self.polling, light, wait)?;
        let awake = self.clock.now();
        let waited = if wait.is_zero() { Duration::ZERO } else { until(now, awake) };
        self.pace.passed(until(self.awake, awake), waited);
        self.awake = awake;
        let stood = until(now, awake).saturating_sub(wait);
        if stood > STALL {
            tracing::warn!(
                seconds = stood.as_secs_f64(),
                "the process did not run for a while; timers are extended by this time"
            );
            self.clock.stand_still(stood);
            self.awake = self.clock.now();
            self.instance.ports.captures.stood_still(stood);
        }
        let mut listeners = Vec::new();
        for event in events.iter().copied() {
            match event.token {
                WORKERS => services.set_completed(),
                BELL => self.called = true,
                // The next step reads all sockets.
                token if (srp::SOCKETS..srp::SOCKETS + srp::MAX_SOCKETS).contains(&token) => {
                    services.srp.iter_mut().for_each(|server| server.happened(token));
                }
                token if (BACK_ENDS..iscsi::LISTENERS).contains(&token) => {
                    if let Some(engine) = &mut services.volumes {
                        engine.happened(token, event.readable, event.writable);
                    }
                }
                token if token >= iscsi::LISTENERS => {
                    if let Some(server) = &mut services.iscsi {
                        server.set_ready(token, event.readable, event.writable);
                    }
                }
                token if token % 2 == 1 => listeners.push((token / 2) as usize),
                token => self.instance.ports.happened((token / 2) as usize, event),
            }
        }
        for number in listeners {
            self.instance.check_peer(self.clock.now(), number, &mut self.poller);
        }
        Ok(())
    }

    /// Processes events within the budget of a step. Returns whether there is more work that needs
    /// no event.
    pub(super) fn step(&mut self) -> bool {
        let now = self.clock.now();
        let Runtime { instance, poller, .. } = self;
        instance.work.refill();
        instance.dispatch(now);
        let mut more = instance.receive(now);
        let completions = instance.services.take_completions();
        if !completions.is_empty() {
            instance.services.complete(now, completions, poller);
        }
        more |= instance
            .services
            .with_iscsi(|server, stores| server.serve_ready(&mut ServerContext { now, poller, stores }))
            .unwrap_or(false);
        more |= instance.services.with_srp(|server, systems| server.serve(now, systems)).unwrap_or(false);
        instance.serve_timers(now);
        if self.next_check <= now {
            self.check(now);
        }
        let Runtime { instance, poller, .. } = self;
        // Called after everything that may submit I/O on a volume.
        more |= VolumeAdmin::of(instance, now).step(poller);
        // Storage may answer at once, so that host ports have events or frames now.
        instance.send_from_hosts(now);
        instance.send_from_storage(now);
        instance.dispatch(now);
        self.operations.step(&mut Site { instance, poller, now });
        // A released source may have further frames that no event reports.
        more |= instance.flush_ports(now);
        instance.traces.record(now, &mut instance.services.systems);
        more | !instance.work.is_empty() | instance.services.has_ready()
    }

    /// Checks states without events.
    fn check(&mut self, now: Instant) {
        self.next_check = now + CHECK;
        self.called = true;
        let Runtime { instance, poller, .. } = self;
        instance.spread.start(instance.ports.len());
        if let (Some(pool), Some(server)) = (instance.spread.for_sessions(), &mut instance.services.iscsi) {
            server.spread(pool);
        }
        instance.check_peers(now, poller);
        self.instance.flush_records();
        let Runtime { instance, poller, .. } = self;
        instance.services.with_iscsi(|server, stores| {
            server.run_timers(&mut ServerContext { now, poller, stores });
            if let Err(error) = server.watch(poller) {
                tracing::warn!(%error, "events of iSCSI portals cannot be polled");
            }
        });
        instance.keeper.retry(now, &mut instance.fabric.switches);
        VolumeAdmin::of(instance, now).keep_initiator_ports();
    }

    /// Describes each capture and recording that could not be written to its end, with error and
    /// remedy.
    pub fn incomplete(&self) -> Vec<String> {
        self.instance.incomplete()
    }

    /// Notifies all peers of the shutdown, and sends the remaining frames.
    pub fn shut_down(&mut self) {
        // The fabrics of back ends are still needed.
        self.end_sessions();
        let now = self.clock.now();
        if let Some(engine) = &mut self.instance.services.volumes {
            engine.leave_fabrics(now);
        }
        self.step_until(|runtime| {
            runtime.instance.services.volumes.as_ref().is_none_or(|engine| !engine.is_in_fabric())
        });
        let now = self.clock.now();
        let instance = &mut self.instance;
        if let Some(engine) = &mut instance.services.volumes {
            engine.shut_down(now);
        }
        instance.work.refill();
        instance.dispatch(now);
        for segment in 0..instance.fabric.segments.len() {
            instance.fcf_input(now, segment, fcf::Input::Shutdown);
        }
        for port in 0..instance.ports.len() {
            instance.agent_input(now, port, dcbx::Input::Shutdown);
        }
        instance.dispatch(now);
        instance.flush_ports(now);
        instance.services.end_hosts(now);
        instance.traces.close(&mut instance.services.systems);
        instance.flush_records();
    }

    /// Asks initiators to log out, and waits for a short time. Then their sessions with back ends
    /// log out.
    fn end_sessions(&mut self) {
        let now = self.clock.now();
        if self.instance.services.with_srp(|server, systems| server.shut_down(now, systems)).is_some() {
            let is_over = |runtime: &Runtime| {
                runtime.instance.services.srp.as_ref().is_none_or(|server| server.connections() == 0)
            };
            self.step_until(is_over);
        }
        let now = self.clock.now();
        let Runtime { instance, poller, .. } = self;
        let services = &mut instance.services;
        if services.with_iscsi(|server, stores| server.shut_down(&mut ServerContext { now, poller, stores })).is_none()
        {
            return;
        }
        let iscsi = |runtime: &Runtime, is_over: fn(&IscsiServer) -> bool| {
            runtime.instance.services.iscsi.as_ref().is_none_or(is_over)
        };
        self.step_until(|runtime| iscsi(runtime, |server| server.connections() == 0));
        let now = self.clock.now();
        let Runtime { instance, poller, .. } = self;
        instance.services.with_iscsi(|server, stores| server.drop_all(&mut ServerContext { now, poller, stores }));
        let is_over = self.step_until(|runtime| iscsi(runtime, |server| !server.has_left_behind()));
        if is_over && self.instance.services.volumes.is_some() {
            VolumeAdmin::of(&mut self.instance, now).forget_initiator_ports();
        }
    }

    /// Runs until `is_done` returns true. Returns false after a time-out.
    fn step_until(&mut self, is_done: impl Fn(&Runtime) -> bool) -> bool {
        const TIME_LIMIT: Duration = Duration::from_millis(500);
        let began = self.clock.now();
        while !is_done(self) {
            let more = self.step();
            if self.wait(more).is_err() || until(began, self.clock.now()) >= TIME_LIMIT {
                return false;
            }
        }
        true
    }
}
