//! Out-of-band virtualization: hosts that hold maps of virtual disks, and their metadata servers.
//!
//! ```text
//!   stream -> HostMap --hit--> IoQueue -> path -> back end       (the data path of any host)
//!                |  ^
//!           miss |  | grant
//!                v  |
//!              Server, behind a management network with a constant delay
//! ```
//!
//! A request to a virtual disk is divided into pieces, none of which crosses an extent. A piece
//! whose place the host knows is queued as a request to the back end; the others wait for the
//! server. The request ends with its last piece.

mod domain;
mod fences;
mod pieces;

pub(crate) use domain::MetadataCount;
pub(in crate::world) use fences::Fences;
pub(super) use pieces::{begin, settle};

use super::host::Hosts;
use super::{Env, World, instant_of};
use crate::net::NEVER;
use domain::Domain;
use pieces::{Parent, Piece};
use sanloom_fc::config::OutOfBandFault;
use sanloom_fc::san::Lab;
use sanloom_scsi::ordered::{OrderedMap, OrderedSet};
use sanloom_scsi::out_of_band::{HostId, Reply, Request, ServerInput, ServerOutput};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// Bit of a stream number that marks a piece of a request.
pub(super) const PIECE: u32 = 1 << 31;

/// Event at a metadata server, or at the map of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// A message arrives at the server.
    Arrive(HostId, Request),
    /// The processor of the server has handled a message. A restart of the server changes its run.
    Served { run: u32, host: HostId, request: Request },
    /// A message arrives at a host.
    Answer(HostId, Reply),
    /// An extent is copied.
    Copied { run: u32, epoch: u64 },
    /// The time limit of the server has come.
    ServerTimeout,
    /// The time limit of a host has come.
    HostTimeout(HostId),
}

/// All metadata servers with the maps of their hosts.
pub(super) struct OutOfBand {
    domains: Vec<Domain>,
    parents: Slab<Parent>,
    pieces: Slab<Piece>,
    /// Pieces in the queues of hosts, by host.
    queued: BTreeMap<u16, u64>,
    /// Events in order of time, each with the number of its domain.
    agenda: OrderedMap<(u64, u64), (usize, Event)>,
    next_event: u64,
    /// Pieces that may be queued at their hosts.
    ready: VecDeque<u32>,
    /// Pieces that have failed.
    failed: VecDeque<u32>,
    /// Hosts with new requests in their queues.
    dirty: OrderedSet<u16>,
    /// Hosts to fence (true) or to admit, by number of the domain.
    fences: VecDeque<(usize, u16, bool)>,
    /// Pieces of a request that begins.
    parts: Vec<Piece>,
    timer: u32,
}

impl OutOfBand {
    /// Returns the metadata servers of a lab; `None` if it has none.
    pub fn new(lab: &Lab, timer: u32) -> Option<Box<OutOfBand>> {
        let domains: Vec<Domain> =
            lab.live.out_of_band.iter().map(|(&storage, config)| Domain::new(lab, storage, config)).collect();
        (!domains.is_empty()).then(|| {
            Box::new(OutOfBand {
                domains,
                parents: Slab::new(),
                pieces: Slab::new(),
                queued: BTreeMap::new(),
                agenda: OrderedMap::new(),
                next_event: 0,
                ready: VecDeque::new(),
                failed: VecDeque::new(),
                dirty: OrderedSet::new(),
                fences: VecDeque::new(),
                parts: Vec::new(),
                timer,
            })
        })
    }

    /// Returns whether a storage system is a metadata server.
    pub fn owns(&self, storage: u16) -> bool {
        self.domains.iter().any(|domain| domain.storage == storage)
    }

    /// Returns the difference between the requests of hosts to virtual disks that have not ended,
    /// and their pieces in the queues of hosts.
    pub fn requests(&self) -> (u64, u64) {
        (self.parents.len() as u64, self.queued.values().sum())
    }

    /// Returns the number of requests of a host and a workload that have not ended.
    pub fn requests_of(&self, host: u16, is_of: impl Fn(u32) -> bool) -> u64 {
        self.parents.iter().filter(|(_, parent)| parent.host == host && is_of(parent.member.stream)).count() as u64
    }

    /// Restarts the counters at the end of the warm-up.
    pub fn restart(&mut self, now_ps: u64) {
        self.domains.iter_mut().for_each(|domain| domain.restart_counts(now_ps));
    }

    /// Returns the counters of a metadata server; `None` for another storage system.
    pub fn count(&self, storage: u16, now_ps: u64) -> Option<MetadataCount<'_>> {
        self.domains.iter().find(|domain| domain.storage == storage).map(|domain| domain.counts(now_ps))
    }

    fn plan(&mut self, at_ps: u64, domain: usize, event: Event) {
        self.next_event += 1;
        self.agenda.insert((at_ps, self.next_event), (domain, event));
    }

    fn next_ps(&self) -> u64 {
        self.agenda.first().map_or(NEVER, |((at_ps, _), _)| *at_ps)
    }

    /// Sends a message of a host to its server.
    fn send(&mut self, now_ps: u64, domain: usize, host: HostId, request: Request) {
        let own = &mut self.domains[domain];
        if !own.is_cut(host) {
            let at_ps = now_ps + own.config.round_trip.0 / 2;
            self.plan(at_ps, domain, Event::Arrive(host, request));
        }
    }

    fn handle(&mut self, now_ps: u64, number: usize, event: Event) {
        let domain = &mut self.domains[number];
        match event {
            Event::Arrive(host, request) => {
                if let Some((at_ps, run)) = domain.arrive(now_ps, host) {
                    self.plan(at_ps, number, Event::Served { run, host, request });
                }
            }
            Event::Served { run, host, request } => {
                if domain.served(now_ps, run) {
                    self.server(now_ps, number, ServerInput::Request(host, request));
                }
            }
            Event::Answer(host, reply) => {
                if !domain.is_cut(host) {
                    domain.map(host).handle(instant_of(now_ps), reply);
                    self.drain_host(now_ps, number, host);
                }
            }
            Event::Copied { run, epoch } => {
                if domain.run == run {
                    self.server(now_ps, number, ServerInput::Copied(epoch));
                }
            }
            Event::ServerTimeout => {
                if domain.server_timeout_ps > now_ps {
                    return;
                }
                domain.server_timeout_ps = NEVER;
                if domain.is_on {
                    self.server(now_ps, number, ServerInput::Timeout);
                }
            }
            Event::HostTimeout(host) => {
                if domain.host_timeouts.get(&host).is_none_or(|at_ps| *at_ps > now_ps) {
                    return;
                }
                domain.host_timeouts.insert(host, NEVER);
                domain.map(host).timeout(instant_of(now_ps));
                self.drain_host(now_ps, number, host);
            }
        }
    }

    /// Gives the server the moves that wait, unless it has no power.
    fn start_moves(&mut self, now_ps: u64, number: usize) {
        while self.domains[number].is_on
            && let Some((extent, lun)) = self.domains[number].pending.pop_front()
        {
            self.server(now_ps, number, ServerInput::Move(extent, lun));
        }
    }

    /// Passes an input to a server and executes its outputs.
    fn server(&mut self, now_ps: u64, number: usize, input: ServerInput) {
        self.domains[number].server.handle(instant_of(now_ps), input);
        while let Some(output) = self.domains[number].server.poll_output() {
            let domain = &mut self.domains[number];
            let (run, half_ps) = (domain.run, domain.config.round_trip.0 - domain.config.round_trip.0 / 2);
            match output {
                ServerOutput::Send(host, reply) => {
                    if matches!(reply, Reply::Recall { .. }) {
                        domain.change_begins(now_ps);
                    }
                    if !domain.is_cut(host) {
                        self.plan(now_ps + half_ps, number, Event::Answer(host, reply));
                    }
                }
                ServerOutput::Fence(host) => self.fences.push_back((number, host.0, true)),
                ServerOutput::Admit(host) => self.fences.push_back((number, host.0, false)),
                ServerOutput::Copy { epoch, from, .. } => {
                    domain.change_begins(now_ps);
                    let at_ps = now_ps.saturating_add(domain.copy_ps(from));
                    self.plan(at_ps, number, Event::Copied { run, epoch });
                }
                ServerOutput::Committed { .. } => domain.change_ends(now_ps),
            }
        }
        let domain = &mut self.domains[number];
        if let Some(at_ps) = domain.next_server_timeout(now_ps) {
            self.plan(at_ps, number, Event::ServerTimeout);
        }
    }
}

/// Handles the timer of metadata servers and maps.
#[inline(never)]
pub(super) fn timer(world: &mut World) {
    let now_ps = world.net.now();
    let Some(mut own) = world.hosts.out_of_band.take() else { return };
    while own.agenda.first().is_some_and(|((at_ps, _), _)| *at_ps <= now_ps) {
        let Some((_, (number, event))) = own.agenda.pop_first() else { break };
        own.handle(now_ps, number, event);
    }
    run(world, own);
}

/// Applies what events have caused, and puts the state back.
fn run(world: &mut World, mut own: Box<OutOfBand>) {
    fences::execute(world, &mut own);
    let (hosts, mut env) = world.split_hosts();
    pieces::queue_ready(hosts, &mut env, &mut own);
    let mut dirty = std::mem::take(&mut own.dirty);
    put_back(hosts, &mut env, own);
    for host in dirty.drain() {
        hosts.send_requests(&mut env, host);
    }
    if let Some(own) = &mut hosts.out_of_band
        && own.dirty.is_empty()
    {
        own.dirty = dirty;
    }
    world.process_completions();
}

/// Puts the state back and sets the timer to its next event.
fn put_back(hosts: &mut Hosts, env: &mut Env<'_>, own: Box<OutOfBand>) {
    env.net.set_timer_earlier(own.timer, own.next_ps());
    hosts.out_of_band = Some(own);
}

/// Begins or ends a fault.
pub(super) fn fault(world: &mut World, fault: OutOfBandFault, ends: bool) {
    let now_ps = world.net.now();
    let lab = world.lab.clone();
    let Some(mut own) = world.hosts.out_of_band.take() else { return };
    match fault {
        OutOfBandFault::MetadataCut { host } => {
            own.domains.iter_mut().for_each(|domain| domain.cut(HostId(host), !ends));
        }
        OutOfBandFault::VolumeMove { volume, to } if !ends => {
            for number in 0..own.domains.len() {
                let moves = own.domains[number].moves(&lab, volume, to);
                own.domains[number].pending.extend(moves);
                own.start_moves(now_ps, number);
            }
        }
        OutOfBandFault::VolumeMove { .. } => {}
    }
    run(world, own);
}

/// Restarts the counters at the end of the warm-up.
pub(super) fn restart(world: &mut World) {
    let now_ps = world.net.now();
    world.hosts.out_of_band.iter_mut().for_each(|own| own.restart(now_ps));
}

/// Returns the counters of a metadata server; `None` for another storage system.
pub(crate) fn metadata_count(world: &World, storage: u16) -> Option<MetadataCount<'_>> {
    world.hosts.out_of_band.as_ref()?.count(storage, world.net.now())
}

/// Returns the number of requests of a host to virtual disks that have not ended, of certain
/// streams.
pub(crate) fn virtual_requests(world: &World, host: u16, is_of: impl Fn(u32) -> bool) -> u64 {
    world.hosts.out_of_band.as_ref().map_or(0, |own| own.requests_of(host, is_of))
}

/// Returns the number of requests of a host that have not ended, counted one by one.
pub(crate) fn unfinished_requests(world: &World, host: u16) -> u64 {
    let queued = world.hosts.node(host).queue.requests();
    let Some(own) = &world.hosts.out_of_band else { return queued };
    queued + own.requests_of(host, |_| true) - own.queued.get(&host).copied().unwrap_or(0)
}

/// Switches the power of a metadata server.
pub(super) fn power(world: &mut World, storage: u16, on: bool) {
    let now_ps = world.net.now();
    let Some(mut own) = world.hosts.out_of_band.take() else { return };
    if let Some(number) = own.domains.iter().position(|domain| domain.storage == storage)
        && own.domains[number].power(now_ps, on)
        && on
    {
        own.server(now_ps, number, ServerInput::Restart);
        own.start_moves(now_ps, number);
    }
    run(world, own);
}
