//! The metadata server: [`Server`].

use super::{Extent, HostId, Reply, Request};
use crate::map::{LunBlock, LunId};
use crate::time::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Settings of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerConfig {
    /// Time after which a host that has not acknowledged a recall is fenced.
    pub fence_after: Span,
    /// Time after which a recall is repeated.
    pub resend: Span,
}

/// Back-end LUN with room for extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerLun {
    /// Number of extents that fit.
    pub extents: u64,
    /// Blocks of an extent.
    pub extent_blocks: u64,
}

/// Event at a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerInput {
    /// A message of a host.
    Request(HostId, Request),
    /// An extent is to move to a free place of a LUN.
    Move(Extent, LunId),
    /// The data of the change of this epoch are at the new place.
    Copied(u64),
    /// The server has restarted. Its map, the registered hosts and changes are on disk; messages
    /// that it held are lost.
    Restart,
    /// The time of [`Server::poll_timeout`] has come.
    Timeout,
}

/// Output of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerOutput {
    /// A message to a host.
    Send(HostId, Reply),
    /// Back ends refuse commands of the host from now on.
    Fence(HostId),
    /// Back ends accept commands of the host again.
    Admit(HostId),
    /// Copy an extent; [`ServerInput::Copied`] is the answer.
    Copy {
        /// Epoch of the change.
        epoch: u64,
        /// First block of the old place.
        from: LunBlock,
        /// First block of the new place.
        to: LunBlock,
    },
    /// The map of this epoch is in force.
    Committed {
        /// Epoch of the change.
        epoch: u64,
        /// The extent that has moved.
        extent: Extent,
    },
}

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ServerCount {
    /// Changes of the map that are in force.
    pub committed: u64,
    /// Lookups that waited for a change.
    pub held: u64,
    /// Hosts that were fenced.
    pub fenced: u64,
    /// Moves without effect: the extent is on the LUN already, or the LUN has no room.
    pub useless: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    /// The hosts in `waiting` have not acknowledged yet.
    Recalling {
        waiting: BTreeSet<HostId>,
        fence_at: Instant,
        resend_at: Instant,
    },
    Copying,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Change {
    epoch: u64,
    extent: Extent,
    to: LunBlock,
    stage: Stage,
}

/// Metadata server: the map of all extents, and its changes one after the other.
#[derive(Clone, Debug)]
pub struct Server {
    config: ServerConfig,
    luns: Vec<ServerLun>,
    map: BTreeMap<Extent, LunBlock>,
    used: BTreeSet<LunBlock>,
    /// Extents of each LUN below the first one that may be free.
    first_free: BTreeMap<LunId, u64>,
    epoch: u64,
    /// Registered hosts, and whether each is fenced.
    hosts: BTreeMap<HostId, bool>,
    moves: VecDeque<(Extent, LunId)>,
    change: Option<Change>,
    held: VecDeque<(HostId, Extent)>,
    outputs: VecDeque<ServerOutput>,
    count: ServerCount,
}

impl Server {
    /// Creates a server with a map of epoch 0. `luns` are indexed by [`LunId`].
    pub fn new(config: ServerConfig, luns: Vec<ServerLun>, map: BTreeMap<Extent, LunBlock>) -> Server {
        let used = map.values().copied().collect();
        Server {
            config,
            luns,
            map,
            used,
            first_free: BTreeMap::new(),
            epoch: 0,
            hosts: BTreeMap::new(),
            moves: VecDeque::new(),
            change: None,
            held: VecDeque::new(),
            outputs: VecDeque::new(),
            count: ServerCount::default(),
        }
    }

    /// Epoch of the newest change, which may not be in force yet.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Counters since the creation.
    pub fn count(&self) -> ServerCount {
        self.count
    }

    /// Current place of an extent.
    pub fn place(&self, extent: Extent) -> Option<LunBlock> {
        self.map.get(&extent).copied()
    }

    /// Returns whether the back ends refuse the commands of a host.
    pub fn is_fenced(&self, host: HostId) -> bool {
        self.hosts.get(&host).copied().unwrap_or(false)
    }

    /// Returns whether a change is in progress or planned.
    pub fn is_changing(&self) -> bool {
        self.change.is_some() || !self.moves.is_empty()
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, input: ServerInput) {
        match input {
            ServerInput::Request(host, request) => self.request(host, request),
            ServerInput::Move(extent, lun) => {
                self.moves.push_back((extent, lun));
                self.next_change(now);
            }
            ServerInput::Copied(epoch) => self.copied(now, epoch),
            ServerInput::Restart => self.restart(now),
            ServerInput::Timeout => self.timeout(now),
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    /// Returns the time of the next timeout.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.change.as_ref()?.stage {
            Stage::Recalling { fence_at, resend_at, .. } => Some(fence_at.min(resend_at)),
            Stage::Copying => None,
        }
    }

    fn send(&mut self, host: HostId, reply: Reply) {
        self.outputs.push_back(ServerOutput::Send(host, reply));
    }

    fn request(&mut self, host: HostId, request: Request) {
        match request {
            Request::Register => {
                if self.hosts.insert(host, false) == Some(true) {
                    self.outputs.push_back(ServerOutput::Admit(host));
                }
                // The host has no map, which is as good as an acknowledgement.
                self.acknowledged(host, self.epoch);
                self.send(host, Reply::Registered);
            }
            Request::Lookup(_) if self.is_fenced(host) => self.send(host, Reply::Fenced),
            Request::Lookup(extent) => {
                self.hosts.insert(host, false);
                self.look_up(host, extent);
            }
            Request::Acknowledge { epoch } => self.acknowledged(host, epoch),
        }
    }

    fn look_up(&mut self, host: HostId, extent: Extent) {
        if self.change.as_ref().is_some_and(|change| change.extent == extent) {
            // A host repeats a lookup without an answer.
            if !self.held.contains(&(host, extent)) {
                self.held.push_back((host, extent));
                self.count.held += 1;
            }
            return;
        }
        if let Some(place) = self.place(extent) {
            self.send(host, Reply::Grant { extent, place, epoch: self.epoch });
        }
    }

    fn acknowledged(&mut self, host: HostId, epoch: u64) {
        let Some(Change { epoch: own, stage: Stage::Recalling { waiting, .. }, .. }) = &mut self.change else { return };
        if *own == epoch && waiting.remove(&host) {
            self.copy_if_acknowledged();
        }
    }

    fn copy_if_acknowledged(&mut self) {
        let Some(change) = &mut self.change else { return };
        if matches!(&change.stage, Stage::Recalling { waiting, .. } if waiting.is_empty()) {
            change.stage = Stage::Copying;
            self.start_copy();
        }
    }

    fn start_copy(&mut self) {
        let Some(&Change { epoch, extent, to, .. }) = self.change.as_ref() else { return };
        if let Some(from) = self.place(extent) {
            self.outputs.push_back(ServerOutput::Copy { epoch, from, to });
        }
    }

    /// Begins the next planned change, if none is in progress.
    fn next_change(&mut self, now: Instant) {
        while self.change.is_none()
            && let Some((extent, lun)) = self.moves.pop_front()
        {
            let Some(from) = self.place(extent) else { continue };
            let to = if from.lun == lun { None } else { self.free_place(lun) };
            let Some(to) = to else {
                self.count.useless += 1;
                continue;
            };
            self.used.insert(to);
            self.epoch += 1;
            self.change = Some(Change { epoch: self.epoch, extent, to, stage: Stage::Copying });
            self.recall(now);
            self.copy_if_acknowledged();
        }
    }

    /// Returns the lowest free place of a LUN. The places below it are in use, so the next search
    /// begins there.
    fn free_place(&mut self, lun: LunId) -> Option<LunBlock> {
        let ServerLun { extents, extent_blocks } = *self.luns.get(usize::from(lun.0))?;
        let first = self.first_free.entry(lun).or_default();
        let used = |number: &u64| self.used.contains(&LunBlock { lun, lba: number * extent_blocks });
        *first = (*first..extents).find(|number| !used(number)).unwrap_or(extents);
        (*first < extents).then_some(LunBlock { lun, lba: *first * extent_blocks })
    }

    /// Makes a place free again.
    fn release(&mut self, place: LunBlock) {
        self.used.remove(&place);
        if let Some(lun) = self.luns.get(usize::from(place.lun.0))
            && let Some(first) = self.first_free.get_mut(&place.lun)
        {
            *first = (*first).min(place.lba / lun.extent_blocks.max(1));
        }
    }

    /// Sends the recall of the change in progress to all hosts that are not fenced.
    fn recall(&mut self, now: Instant) {
        let waiting = self.hosts.iter().filter(|(_, fenced)| !**fenced).map(|(host, _)| *host).collect();
        let ServerConfig { fence_after, resend } = self.config;
        if let Some(change) = &mut self.change {
            change.stage = Stage::Recalling { waiting, fence_at: now + fence_after, resend_at: now + resend };
        }
        self.send_recalls();
    }

    fn send_recalls(&mut self) {
        let Some(Change { epoch, extent, stage: Stage::Recalling { waiting, .. }, .. }) = &self.change else { return };
        let recall = Reply::Recall { extent: *extent, epoch: *epoch };
        self.outputs.extend(waiting.iter().map(|host| ServerOutput::Send(*host, recall)));
    }

    fn copied(&mut self, now: Instant, epoch: u64) {
        let is_due = |change: &mut Change| change.epoch == epoch && change.stage == Stage::Copying;
        let Some(Change { extent, to, .. }) = self.change.take_if(is_due) else { return };
        if let Some(from) = self.map.insert(extent, to) {
            self.release(from);
        }
        self.count.committed += 1;
        self.outputs.push_back(ServerOutput::Committed { epoch, extent });
        for (host, extent) in std::mem::take(&mut self.held) {
            match self.is_fenced(host) {
                true => self.send(host, Reply::Fenced),
                false => self.look_up(host, extent),
            }
        }
        self.next_change(now);
    }

    fn restart(&mut self, now: Instant) {
        self.held.clear();
        match self.change.as_ref().map(|change| change.stage == Stage::Copying) {
            Some(true) => self.start_copy(),
            Some(false) => {
                self.recall(now);
                self.copy_if_acknowledged();
            }
            None => self.next_change(now),
        }
    }

    fn timeout(&mut self, now: Instant) {
        let resend = self.config.resend;
        let Some(Change { stage: Stage::Recalling { waiting, fence_at, resend_at }, .. }) = &mut self.change else {
            return;
        };
        if *fence_at <= now {
            for host in std::mem::take(waiting) {
                self.hosts.insert(host, true);
                self.count.fenced += 1;
                self.outputs.push_back(ServerOutput::Fence(host));
            }
            self.copy_if_acknowledged();
        } else if *resend_at <= now {
            *resend_at = now + resend;
            self.send_recalls();
        }
    }
}
