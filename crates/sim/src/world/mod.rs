//! The simulated world: the frame path of [`crate::net`], the machines of `sanloom-fc` and
//! `sanloom-scsi` in its switches and at its ends, the hosts and the storage.
//!
//! Events are processed one at a time. [`Net::step`](crate::net::Net::step) returns an event, which
//! becomes the input of a machine. The outputs of that machine are executed, and completed commands
//! are passed to their hosts. Nothing here depends on the real clock or on the order of a hash map.
//!
//! Each part owns its state, and no part calls a part above it:
//!
//! ```text
//!   World           dispatches events and timers, applies faults, moves virtual machines
//!     |-- Hosts           requests, queues, paths, HBAs with their initiators
//!     |-- Storage         targets, devices, controllers
//!     |-- ControlPlane    machines of the switches, their processors
//!     |-- NPorts          logins, addresses, virtual ports
//!     |-- Notes, LaneSeries, Downtimes, Baseline    measurement
//!     `-- Net             frames, credits, lines
//! ```
//!
//! A part that needs another one receives it in an `Env`.

mod adapter;
mod arbitrated_loop;
mod build;
mod command_log;
mod control;
mod controllers;
mod disks;
mod dispatch;
mod divide;
mod downtime;
pub mod ethernet;
mod ethernet_faults;
mod faults;
mod fcip;
pub mod fcoe;
mod fip;
mod host;
pub mod infiniband;
mod infiniband_faults;
mod ipoib;
mod iscsi;
mod lane_series;
mod lldp;
mod losses;
mod machines;
mod measure;
mod measured;
mod notes;
mod nports;
pub mod operator;
mod out_of_band;
mod partners;
mod path;
mod plane_faults;
mod processor;
mod quality;
mod relay;
mod schedule;
mod srp;
mod station;
mod storage;
mod target;
pub(crate) mod volumes;

pub use arbitrated_loop::Loops;
pub use command_log::{CommandLog, CommandRecord};
pub use control::{ControlPlane, SwitchCount, SwitchNode};
pub use disks::Disks;
pub use downtime::Downtimes;
pub use host::{HostMeasure, HostNode, Hosts, LoggedRequest, Outage, RequestLog};
pub use iscsi::recovery as iscsi_recovery;
pub(crate) use iscsi::{initiators, ip_paths};
pub use lane_series::{LaneSeries, LaneStep};
pub use losses::Losses;
pub use measure::{RequestTotals, WorkloadHost, WorkloadMeasure};
pub use measured::Measured;
pub use notes::{Note, NoteKind, Notes};
pub(crate) use nports::discarded_at_ports;
pub use nports::{NPorts, NodePort, Owner};
pub(crate) use out_of_band::{MetadataCount, metadata_count, unfinished_requests, virtual_requests};
pub use partners::ControllerCount;
pub use path::{Path, Paths, System};
pub use plane_faults::PlaneFaults;
pub(crate) use srp::ports as channel_ports;
pub use storage::{Controller, Ended};
pub use target::{Storage, StorageNode};
pub use volumes::{GatewayCount, gateway_count};

use crate::fcip::Fcip;
use crate::fip::Fip;
use crate::iscsi::Iscsi;
use crate::lldp::Lldp;
use crate::net::{Net, NetEvent, parts};
use crate::srp::Srp;
use crate::stats::Series;
pub(crate) use divide::WorldShare;
use measured::Baseline;
use quality::Quality;
use sanloom_fc::san::Lab;
use sanloom_scsi::time::Instant;
use schedule::{LinkFaults, Schedule};
use std::collections::BTreeSet;
use std::sync::Arc;
use volumes::Switches;

/// Number of the first timer of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    switch: u32,
    host: u32,
    storage: u32,
    processor: u32,
    fault: u32,
    sample: u32,
    quarantine: u32,
    arbitrated_loop: u32,
    iscsi: u32,
    srp: u32,
    fcip: u32,
    out_of_band: u32,
    fip: u32,
    lldp: u32,
    all: u32,
}

impl Timers {
    /// Returns the timer of gateways, the last one of iSCSI.
    fn gateways(&self) -> u32 {
        self.iscsi + Iscsi::TIMERS - 1
    }

    /// Returns the timers of a lab.
    fn new(lab: &Lab, nports: u32, has_sessions: bool, has_channels: bool) -> Timers {
        let switch = nports;
        let host = switch + lab.switches.len() as u32;
        let storage = host + lab.hosts.len() as u32;
        let processor = storage + lab.storage.len() as u32;
        let fault = processor + lab.switches.len() as u32;
        let iscsi = fault + 3 + lab.loops.len() as u32;
        let srp = iscsi + if has_sessions { Iscsi::TIMERS } else { 0 };
        let fcip = srp + if has_channels { Srp::TIMERS } else { 0 };
        let out_of_band = fcip + if has_tunnels(lab) { Fcip::TIMERS } else { 0 };
        let fip = out_of_band + u32::from(!lab.live.out_of_band.is_empty());
        let lldp = fip + u32::from(fip::is_used(lab));
        let all = lldp + u32::from(crate::lldp::is_used(lab));
        Timers {
            switch,
            host,
            storage,
            processor,
            fault,
            sample: fault + 1,
            quarantine: fault + 2,
            arbitrated_loop: fault + 3,
            iscsi,
            srp,
            fcip,
            out_of_band,
            fip,
            lldp,
            all,
        }
    }
}

/// Returns whether a lab has FCIP links over its Ethernet.
fn has_tunnels(lab: &Lab) -> bool {
    lab.links.iter().any(|link| link.fcoe.is_some_and(|link| link.fcip.is_some()))
}

/// One simulated lab.
pub struct World {
    /// The configuration of the lab.
    pub lab: Arc<Lab>,
    pub net: Net,
    pub nports: NPorts,
    pub control: ControlPlane,
    pub hosts: Hosts,
    pub storage: Storage,
    /// Events for the report.
    pub notes: Notes,
    /// Time series of lanes and storage systems.
    pub lane_series: LaneSeries,
    pub downtimes: Downtimes,
    /// Start of the workloads, in ps since the first login.
    pub start_ps: u64,
    timers: Timers,
    schedule: Schedule,
    link_faults: LinkFaults,
    /// Faults of Ethernet.
    pub ethernet_faults: PlaneFaults,
    pub infiniband_faults: PlaneFaults,
    /// Links that are dark until a change of the lab brings them up.
    dark_links: BTreeSet<u16>,
    quality: Quality,
    pub loops: Loops,
    /// Sessions of iSCSI; `None` in a lab without any.
    pub iscsi: Option<Box<Iscsi>>,
    /// Channels of SRP; `None` in a lab without any.
    pub srp: Option<Box<Srp>>,
    /// FCIP links; `None` in a lab without any.
    pub fcip: Option<Box<Fcip>>,
    /// FIP of virtual links; `None` in a lab without any.
    fip: Option<Box<Fip>>,
    /// Agents of LLDP; `None` in a lab without PFC and shares.
    pub lldp: Option<Box<Lldp>>,
    /// Virtualization switches; `None` in a lab without sessions.
    switches: Option<Box<Switches>>,
    /// Control frames delivered so far.
    control_frames: u64,
    baseline: Baseline,
}

/// The parts of the world that hosts and switches use while they handle an input.
pub(crate) struct Env<'a> {
    pub net: &'a mut Net,
    pub nports: &'a NPorts,
    pub notes: &'a mut Notes,
    /// Start of the workloads, in ps since the first login.
    pub start_ps: u64,
}

impl Env<'_> {
    /// Returns the time of the machines.
    fn instant(&self) -> Instant {
        instant_of(self.net.now())
    }

    fn note(&mut self, kind: NoteKind) {
        self.notes.add(parts::turn(self.net), kind);
    }
}

/// Handles a timer of FCIP, of metadata servers, of FIP or of LLDP.
#[inline(never)]
fn late_timer(world: &mut World, timer: u32) {
    if timer >= world.timers.lldp {
        lldp::timer(world);
    } else if timer >= world.timers.fip {
        fip::timer(world);
    } else if timer >= world.timers.out_of_band {
        out_of_band::timer(world);
    } else {
        fcip::timer(world, timer);
    }
}

/// Processes an event of a plane other than Fibre Channel, or an incident.
#[inline(never)]
fn other_event(world: &mut World, event: NetEvent) {
    match event {
        NetEvent::Incident => world.report_incidents(),
        NetEvent::Packet { packet, .. } if packet.is_lldp() => lldp::packet(world, &packet),
        NetEvent::Packet { packet, .. } if packet.is_fip() => fip::packet(world, &packet),
        NetEvent::Packet { packet, .. } => fcip::packet_or_iscsi(world, &packet),
        NetEvent::Tunnel => fcip::run(world),
        NetEvent::Infiniband { packet, .. } => srp::packet(world, &packet),
        NetEvent::Deliver { .. } | NetEvent::Local { .. } | NetEvent::Timer(_) => {}
    }
}

impl World {
    /// Processes all events up to `until_ps`, in ps of simulated time since the first login.
    pub fn run_until(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Deliver { nport, frame } => self.deliver(nport, frame),
                NetEvent::Local { switch, port, frame } => self.deliver_to_switch(switch, port, frame),
                NetEvent::Timer(timer) => self.timer_expired(timer),
                other => other_event(self, other),
            }
            if self.hosts.has_completions() {
                self.process_completions();
            }
        }
    }

    fn timer_expired(&mut self, timer: u32) {
        let timers = self.timers;
        debug_assert!(timer < timers.all, "timer {timer} of {timers:?}");
        if timer < timers.switch {
            self.nport_timeout(timer as u16);
        } else if timer < timers.host {
            let (control, mut env) = self.split_control();
            control.switch_timeout(&mut env, (timer - timers.switch) as u16);
        } else if timer < timers.storage {
            self.host_timeout((timer - timers.host) as u16);
        } else if timer < timers.processor {
            self.storage.controller_timeout(&mut self.net, (timer - timers.storage) as u16);
        } else if timer < timers.fault {
            let (control, mut env) = self.split_control();
            control.run_processor(&mut env, (timer - timers.processor) as u16);
        } else if timer == timers.fault {
            self.execute_schedule();
        } else if timer == timers.quarantine {
            self.end_windows();
        } else if timer >= timers.fcip {
            late_timer(self, timer);
        } else if timer >= timers.srp {
            srp::timer(self, timer);
        } else if timer >= timers.iscsi {
            iscsi::timer(self, timer);
        } else if timer >= timers.arbitrated_loop {
            arbitrated_loop::timer(self, (timer - timers.arbitrated_loop) as u16);
        } else {
            self.sample();
        }
    }

    /// Returns the hosts, and the parts of the world that they use.
    #[inline]
    fn split_hosts(&mut self) -> (&mut Hosts, Env<'_>) {
        let World { hosts, net, nports, notes, start_ps, .. } = self;
        (hosts, Env { net, nports, notes, start_ps: *start_ps })
    }

    /// Returns the control plane, and the parts of the world that it uses.
    #[inline]
    fn split_control(&mut self) -> (&mut ControlPlane, Env<'_>) {
        let World { control, net, nports, notes, start_ps, .. } = self;
        (control, Env { net, nports, notes, start_ps: *start_ps })
    }

    /// Reports new incidents of the frame path to the switches.
    #[inline]
    fn report_incidents(&mut self) {
        if self.control.incidents_reported() < self.net.fc.recorder.incidents().len() {
            let (control, mut env) = self.split_control();
            control.report_incidents(&mut env);
        }
    }

    fn process_completions(&mut self) {
        let (hosts, mut env) = self.split_hosts();
        hosts.process_completions(&mut env);
    }

    /// Brings up all links except [`Lab::dark_links`], and runs until all ports have logged in and
    /// discovered their storage. Login is complete if no control frame was sent for a while and no
    /// frame is in flight. A time limit applies to labs in which a login never succeeds.
    pub fn log_in(&mut self) {
        self.dark_links = self.lab.dark_links();
        for link in 0..self.lab.links.len() as u16 {
            let is_virtual = fip::controls(self, link) || fcip::controls(self, link);
            if is_virtual || self.dark_links.contains(&link) {
                self.net.link_down(link);
                self.downtimes.link_changed(link, false, self.net.now());
            } else {
                self.announce_link(link, true);
            }
        }
        lldp::follow(self);
        fip::follow_all(self);
        self.create_machines_without_start();
        fcip::start(self);
        iscsi::start(self);
        srp::start(self);
        let quiet_ps = (4 * self.lab.timers.rscn_delay.0).max(20_000_000_000);
        let limit_ps = 60_000_000_000_000;
        loop {
            let before = self.control_frames;
            let until = self.net.now() + quiet_ps;
            self.run_until(until);
            let is_quiet = self.control_frames == before && self.net.fc.frames_in_flight() == 0;
            let logs_in = iscsi::is_logging_in(self) || srp::is_logging_in(self);
            let is_forming = self.control.is_forming()
                || self.loops.is_initialising()
                || logs_in
                || fip::is_discovering(self)
                || fcip::is_opening(self);
            if (is_quiet && !is_forming && !self.nports.is_logging_in()) || until >= limit_ps {
                break;
            }
        }
        self.net.fc.trim();
    }

    /// Starts recording a link; read the records with [`crate::net::Recorder::take_observed`].
    pub fn watch(&mut self, link: u16) {
        for lane in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            self.net.fc.lane_mut(lane).watched = true;
            self.net.fc.lane_mut(lane).special = true;
        }
        crate::net::loops::watch(&mut self.net.fc);
    }

    /// Starts the workloads and the result clock.
    pub fn start(&mut self) {
        self.start_ps = self.net.now();
        let (control, mut env) = self.split_control();
        control.note_isolated(&mut env);
        self.start_schedule();
        self.storage.start(&mut self.net);
        self.begin_measurement();
        self.lane_series.start(&self.net, &self.storage);
        let (hosts, mut env) = self.split_hosts();
        hosts.start_streams(&mut env);
        self.net.set_timer(self.timers.sample, self.start_ps + self.lab.run.sample_interval.0);
        self.watch_devices();
    }

    /// Ends the warm-up: discards all measurements so far.
    pub fn begin_measurement(&mut self) {
        let now = self.net.now();
        // The time series also shows the warm-up, so it starts only once.
        let (starts, lab, start_ps) = (now == self.start_ps, &self.lab, self.start_ps);
        self.hosts.restart(now, || starts.then(|| host_series(lab, start_ps)));
        self.storage.restart(now);
        self.loops.restart(now);
        self.iscsi.iter_mut().for_each(|iscsi| iscsi.restart());
        self.fcip.iter_mut().for_each(|fcip| fcip.restart_counts());
        self.srp.iter_mut().for_each(|srp| srp.restart());
        volumes::restart(self);
        out_of_band::restart(self);
        self.net.restart_counts();
        self.baseline = Baseline::read(&self.net);
        self.baseline.discarded = nports::discarded_data(self).collect();
        self.downtimes.begin_measurement(now);
        self.ethernet_faults.downtimes.begin_measurement(now);
        self.infiniband_faults.downtimes.begin_measurement(now);
    }

    /// Ends the current step of the time series and schedules the end of the next one.
    fn sample(&mut self) {
        if parts::is_divided(&self.net) {
            self.lane_series.defer_step(&self.net, &self.storage);
        } else {
            self.lane_series.end_step(&self.net, &self.storage);
        }
        self.net.set_timer(self.timers.sample, self.net.now().saturating_add(self.sample_step_ps()));
    }

    /// Returns the length of a step of the time series, in ps.
    fn sample_step_ps(&self) -> u64 {
        self.lab.run.sample_interval.0.max(1).saturating_mul(self.lane_series.samples_per_step())
    }

    /// Returns the counters of the frame path since the end of the warm-up.
    pub fn measured(&self) -> Measured<'_> {
        Measured::new(&self.net, &self.baseline)
    }

    /// Returns the time since the start of the workloads, in ps.
    pub fn run_ps(&self) -> u64 {
        self.net.now() - self.start_ps
    }

    /// Checks the invariants: frames and credits are conserved.
    ///
    /// # Errors
    ///
    /// A description of the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        let fate = &self.net.fc.fate;
        let in_flight = self.net.fc.frames_in_flight();
        if fate.sent != fate.delivered + fate.lost_frames() + in_flight {
            return Err(format!("frames: {fate:?}, {in_flight} in flight"));
        }
        self.net.ethernet.check()?;
        self.net.infiniband.check()?;
        self.net
            .fc
            .check_credits()
            .map_err(|lane| format!("credits of lane {lane}: {:?}", self.net.fc.lanes()[lane as usize]))
    }
}

/// Simulates up to `until_ps` as [`World::run_until`], in short steps of which the last one ends
/// after about `most` events. Returns whether `until_ps` has come. A second loop over single events
/// would keep the compiler from inlining the first one.
pub(crate) fn run_some(world: &mut World, until_ps: u64, most: u64) -> bool {
    const FIRST_STEP_PS: u64 = 1_000_000;
    const LONGEST_STEP_PS: u64 = 1_000_000_000;
    let enough = world.net.events() + most;
    let mut step_ps = FIRST_STEP_PS;
    loop {
        let next_ps = world.net.now().saturating_add(step_ps).min(until_ps);
        world.run_until(next_ps);
        if next_ps == until_ps || world.net.events() >= enough {
            return next_ps == until_ps;
        }
        step_ps = (2 * step_ps).min(LONGEST_STEP_PS);
    }
}

/// Returns an empty time series of the completions of one host.
fn host_series(lab: &Lab, start_ps: u64) -> Series {
    let steps = (1_000_000 / lab.hosts.len().max(1)).clamp(64, 4096);
    Series::new(start_ps, start_ps + lab.run.duration.0, lab.run.sample_interval.0, steps)
}

/// Returns the time of the machines, in whole nanoseconds.
fn instant_of(now_ps: u64) -> Instant {
    Instant::from_ns(now_ps / 1_000)
}

/// Converts the time of a machine to simulated picoseconds.
fn ps_of(at: Instant) -> u64 {
    at.as_ns().saturating_mul(1_000)
}
