//! The simulated world: the frame path of [`crate::net`], the machines of `sanloom-core` at its ends and in its switches,
//! hosts above them and storage behind them.
//!
//! One event is handled at a time: [`Net::step`](crate::net::Net::step) says what happened, a machine is told, its
//! outputs are carried out, and commands that ended are given to their hosts. Nothing here depends on the real clock or
//! on the order of a hash map.

mod build;
mod command_log;
mod control;
mod faults;
mod host;
mod ledger;
mod machines;
mod node;
mod path;
mod processor;
mod storage;
mod try_path;

pub use command_log::{CommandLog, CommandRecord};
pub use host::{HostMeasure, HostNode};
pub use ledger::{Books, LaneStep, Ledger, Note, NoteKind, WorkloadHost, WorkloadMeasure};
pub use node::{NodePort, Owner};
pub use path::{Path, Paths, System};
pub use storage::{Controller, Ended};

use crate::host::FrameWindow;
use crate::net::{Fate, FrameRef, Lane, LaneCount, Loss, Lost, Net, NetEvent, Place};
pub use control::SwitchNode;
use path::PathTable;
use sanloom_core::config::Lab;
use sanloom_core::fabric::ZoneSet;
use sanloom_core::fcp::initiator::Outcome;
use sanloom_core::nport::{FabricState, RemoteState};
use sanloom_core::scsi::Device;
use sanloom_core::zoning::Zones;
use sanloom_wire::FcId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A storage system.
pub struct StorageNode {
    /// Its controller.
    pub controller: Controller,
    /// Its logical units.
    pub device: Device,
    /// Its N_Ports, by port.
    pub nports: Vec<u16>,
    /// Reads and writes that ended well.
    pub ios: [u64; 2],
    /// Bytes read and written by them.
    pub bytes: [u64; 2],
    /// Bytes read and written since the beginning.
    pub all_bytes: u64,
}

impl StorageNode {
    fn count(&mut self, ended: &Ended) {
        let write = usize::from(ended.write);
        self.ios[write] += 1;
        self.bytes[write] += u64::from(ended.bytes);
        self.all_bytes += u64::from(ended.bytes);
    }
}

/// Numbers of the first timer of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    switch: u32,
    host: u32,
    storage: u32,
    processor: u32,
    fault: u32,
    sample: u32,
    all: u32,
}

/// One simulated lab.
pub struct World {
    /// What is simulated.
    pub lab: Arc<Lab>,
    /// The frame path.
    pub net: Net,
    /// N_Ports: HBAs of all hosts, then ports of all storage systems, then the virtual ports of virtual machines.
    pub nodes: Vec<NodePort>,
    /// Switches.
    pub switches: Vec<SwitchNode>,
    /// Hosts.
    pub hosts: Vec<HostNode>,
    /// Storage systems.
    pub storage: Vec<StorageNode>,
    /// What workloads have measured.
    pub workloads: Vec<WorkloadMeasure>,
    /// Requests of the whole run.
    pub books: Books,
    /// Notes for the report, and time series of links.
    pub ledger: Ledger,
    /// When the workloads began, in ps since the first login.
    pub start_ps: u64,
    timers: Timers,
    path_table: PathTable,
    /// What the switches of each virtual fabric begin with; a lab whose zones count everywhere has one entry.
    zones: BTreeMap<Option<u16>, (Arc<ZoneSet>, Zones)>,
    faults: faults::Schedule,
    dma: FramePool,
    /// Data frames in flight, by N_Port; virtual ports use that of the HBA that carries them.
    windows: Vec<FrameWindow>,
    /// N_Ports on which a command has left room that somebody waits for.
    room: Vec<u16>,
    /// Requests to the services of switches and how they were answered, if somebody wants to know.
    pub command_log: Option<CommandLog>,
    ended: VecDeque<(u16, u16, u64, Outcome)>,
    follow: Vec<(u64, u32)>,
    control_frames: u64,
    /// Incidents of the frame path that the switches have heard of.
    incidents_reported: usize,
    /// Counters at the end of the warm-up.
    baseline: Baseline,
}

impl World {
    /// Handles everything that happens until `until_ps` (simulated time since the first login).
    pub fn run_until(&mut self, until_ps: u64) {
        while let Some(event) = self.net.step(until_ps) {
            match event {
                NetEvent::Deliver { nport, frame } => self.deliver(nport, frame),
                NetEvent::Local { switch, port, frame } => self.local(switch, port, frame),
                NetEvent::Timer(timer) => self.timer(timer),
            }
            if !self.ended.is_empty() || !self.room.is_empty() {
                self.settle();
            }
            self.report_incidents();
        }
        self.report_incidents();
    }

    fn timer(&mut self, timer: u32) {
        let timers = self.timers;
        if timer < timers.switch {
            self.port_timeout(timer as u16);
        } else if timer < timers.host {
            self.switch_timeout((timer - timers.switch) as u16);
        } else if timer < timers.storage {
            self.host_timeout((timer - timers.host) as u16);
        } else if timer < timers.processor {
            self.storage_timeout((timer - timers.storage) as u16);
        } else if timer < timers.fault {
            self.processor_timeout((timer - timers.processor) as u16);
        } else if timer == timers.fault {
            self.apply_faults();
        } else {
            self.sample();
        }
    }

    /// Brings all links up, but those that [`Lab::dark_links`] names, and lets every port log in and find its storage. It is
    /// over when no control frame has moved for a while and none is under way; a lab in which somebody tries in vain is given a
    /// limit.
    pub fn log_in(&mut self) {
        let dark = self.lab.dark_links();
        for link in 0..self.lab.links.len() as u16 {
            if dark.contains(&link) {
                self.net.link_down(link);
                self.ledger.down_since_ps[usize::from(link)] = Some(self.net.now());
            } else {
                self.announce_link(link, true);
            }
        }
        self.create_machines_without_start();
        let quiet_ps = (4 * self.lab.timers.rscn_delay.0).max(20_000_000_000);
        let limit_ps = 60_000_000_000_000;
        loop {
            let before = self.control_frames;
            let until = self.net.now() + quiet_ps;
            self.run_until(until);
            let is_quiet = self.control_frames == before && self.net.frames_under_way() == 0;
            if (is_quiet && !self.forming() && !self.logging_in()) || until >= limit_ps {
                break;
            }
        }
        self.net.trim();
    }

    /// Some port waits for an answer, or for its next try to log in.
    fn logging_in(&self) -> bool {
        let open = |state: RemoteState| matches!(state, RemoteState::Waiting | RemoteState::Plogi | RemoteState::Prli);
        self.nodes.iter().any(|node| match node.login.state() {
            FabricState::Offline => false,
            FabricState::Ready => node.login.remotes().any(|(_, state)| open(state)),
            _ => true,
        })
    }

    /// Shows what passes on a link to whoever asks [`Net::take_observed`].
    pub fn watch(&mut self, link: u16) {
        for lane in [2 * u32::from(link), 2 * u32::from(link) + 1] {
            self.net.lane_mut(lane).watched = true;
            self.net.lane_mut(lane).special = true;
        }
    }

    /// Starts the workloads and the clock of the results.
    pub fn start(&mut self) {
        self.start_ps = self.net.now();
        self.note_isolated();
        self.schedule_faults();
        self.begin_measurement();
        self.start_lane_steps();
        self.start_streams();
        self.net.set_timer(self.timers.sample, self.start_ps + self.lab.run.sample_interval.0);
    }

    /// Forgets what was measured so far: the end of the warm-up.
    pub fn begin_measurement(&mut self) {
        let now = self.net.now();
        for host in 0..self.hosts.len() {
            let fresh = now == self.start_ps;
            let series = fresh.then(|| self.host_series());
            self.hosts[host].restart(now, series);
        }
        for storage in &mut self.storage {
            storage.controller.restart(now);
            (storage.ios, storage.bytes) = ([0; 2], [0; 2]);
        }
        self.workloads.iter_mut().for_each(WorkloadMeasure::restart);
        self.net.restart_counts();
        self.baseline = Baseline {
            lanes: self.lane_counts(),
            flight: self.net.lanes().iter().map(flight_of).collect(),
            fate: self.net.fate,
            losses: self.net.losses().clone(),
        };
        self.ledger.measure_from_ps = now;
        self.ledger.down_before_ps = (0..self.lab.links.len() as u16).map(|link| self.link_down_ps(link)).collect();
    }

    /// Frames lost since the end of the warm-up, by reason in the order of [`Loss::ALL`].
    pub fn lost(&self) -> [u64; Loss::ALL.len()] {
        let mut lost = self.net.fate.lost;
        for (lost, before) in lost.iter_mut().zip(self.baseline.fate.lost) {
            *lost -= before;
        }
        lost
    }

    /// Frames lost since the end of the warm-up, by place and reason.
    pub fn losses(&self) -> BTreeMap<(Place, Loss), Lost> {
        let mut losses = self.net.losses().clone();
        for (key, before) in &self.baseline.losses {
            if let Some(lost) = losses.get_mut(key) {
                lost.frames -= before.frames;
                lost.bytes -= before.bytes;
            }
        }
        losses.retain(|_, lost| lost.frames > 0);
        losses
    }

    /// Frames and bytes that have come out at the end of a lane since the end of the warm-up; those that were lost on the
    /// line have not.
    pub fn received(&self, lane: u32) -> (u64, u64) {
        let count = self.lane_count(lane);
        let now = flight_of(&self.net.lanes()[lane as usize]);
        let before = self.baseline.flight.get(lane as usize).copied().unwrap_or_default();
        let on_line = |losses: &BTreeMap<(Place, Loss), Lost>| {
            let ours = losses.range((Place::Line(lane), Loss::ALL[0])..=(Place::Line(lane), Loss::SwitchReset));
            ours.fold((0, 0), |sum, (_, lost)| (sum.0 + lost.frames, sum.1 + lost.bytes))
        };
        let (lost, lost_before) = (on_line(self.net.losses()), on_line(&self.baseline.losses));
        (
            (count.frames + before.0 + lost_before.0).saturating_sub(now.0 + lost.0),
            (count.bytes + before.1 + lost_before.1).saturating_sub(now.1 + lost.1),
        )
    }

    /// Time that a link has been down so far, in ps.
    fn link_down_ps(&self, link: u16) -> u64 {
        let link = usize::from(link);
        let since = self.ledger.down_since_ps[link];
        self.ledger.down_ps[link] + since.map_or(0, |since| self.net.now() - since)
    }

    /// Time that a link has been down since the end of the warm-up, in ps.
    pub fn measured_down_ps(&self, link: u16) -> u64 {
        let before = self.ledger.down_before_ps.get(usize::from(link)).copied().unwrap_or(0);
        self.link_down_ps(link).saturating_sub(before)
    }

    /// Counters of a lane since the end of the warm-up.
    pub fn lane_count(&self, lane: u32) -> LaneCount {
        let now = self.lane_counts_of(lane);
        let before = self.baseline.lanes.get(lane as usize).copied().unwrap_or_default();
        LaneCount {
            frames: now.frames - before.frames,
            bytes: now.bytes - before.bytes,
            data_bytes: now.data_bytes - before.data_bytes,
            r_rdys: now.r_rdys - before.r_rdys,
            credits_lost: now.credits_lost - before.credits_lost,
            credit_wait_ps: now.credit_wait_ps - before.credit_wait_ps,
            resets: now.resets - before.resets,
            late_ps: now.late_ps - before.late_ps,
            zero_credit_ps: now.zero_credit_ps.saturating_sub(before.zero_credit_ps),
        }
    }

    fn lane_counts(&self) -> Vec<LaneCount> {
        (0..self.net.lanes().len() as u32).map(|lane| self.lane_counts_of(lane)).collect()
    }

    fn lane_counts_of(&self, lane: u32) -> LaneCount {
        let lane = &self.net.lanes()[lane as usize];
        let now = self.net.now();
        LaneCount {
            credit_wait_ps: lane.credit_wait_ps(now),
            zero_credit_ps: lane.zero_credit_ps(now),
            late_ps: lane.late_ps + lane.receiver.withheld_area_ps(now),
            ..lane.count()
        }
    }

    /// Time since the workloads began, in ps.
    pub fn run_ps(&self) -> u64 {
        self.net.now() - self.start_ps
    }

    /// Requests that wait or are under way, counted one by one.
    pub fn requests_under_way(&self) -> u64 {
        self.hosts.iter().map(|host| host.queue.requests()).sum()
    }

    /// Some request is under way or waits.
    pub fn busy(&self) -> bool {
        self.hosts.iter().any(HostNode::busy)
    }

    /// Checks what must always hold: frames and credits are conserved.
    ///
    /// # Errors
    ///
    /// What does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        let fate = &self.net.fate;
        let under_way = self.net.frames_under_way();
        if fate.sent != fate.delivered + fate.lost_frames() + under_way {
            return Err(format!("frames: {fate:?}, {under_way} under way"));
        }
        self.net
            .check_credits()
            .map_err(|lane| format!("credits of lane {lane}: {:?}", self.net.lanes()[lane as usize]))
    }
}

/// Counters at the end of the warm-up.
#[derive(Default)]
struct Baseline {
    lanes: Vec<LaneCount>,
    /// Frames and bytes on each lane.
    flight: Vec<(u64, u64)>,
    fate: Fate,
    losses: BTreeMap<(Place, Loss), Lost>,
}

/// Frames and bytes on a lane.
fn flight_of(lane: &Lane) -> (u64, u64) {
    (lane.flight.len() as u64, lane.flight.iter().map(|on_line| on_line.frame.wire_bytes()).sum())
}

/// Data frames that are on a bus, with the N_Port of the frame path that they came through or will leave through.
#[derive(Default)]
struct FramePool {
    slots: Vec<Option<(u16, FrameRef)>>,
    free: Vec<u32>,
}

impl FramePool {
    fn insert(&mut self, plane: u16, frame: FrameRef) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((plane, frame));
                slot
            }
            None => {
                self.slots.push(Some((plane, frame)));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// The bus has moved what is in a slot, which is said once; nothing if it was forgotten meanwhile.
    fn remove(&mut self, slot: u32) -> Option<(u16, FrameRef)> {
        self.free.push(slot);
        self.slots.get_mut(slot as usize)?.take()
    }

    /// What is to leave through an N_Port of the frame path from this address will not leave. What came in stays, because it holds a
    /// receive buffer until the bus has moved it: it has the address of another port.
    fn forget_source(&mut self, plane: u16, s_id: FcId) {
        for slot in &mut self.slots {
            slot.take_if(|(through, frame)| *through == plane && frame.s_id() == s_id);
        }
    }
}
