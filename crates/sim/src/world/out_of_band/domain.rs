//! A metadata server with the maps of its hosts: [`Domain`].

use super::instant_of;
use crate::net::NEVER;
use crate::stats::{LatencyHistogram, Summary, TimeWeighted};
use crate::world::ps_of;
use sanloom_fc::config::{OutOfBand, Target};
use sanloom_fc::san::{Lab, LunOfLab, VirtualDisks};
use sanloom_scsi::map::{LunBlock, LunId, Map, VolumeId};
use sanloom_scsi::out_of_band::{Extent, HostConfig, HostId, HostMap, Server, ServerConfig, ServerCount, ServerLun};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Counters since the end of the warm-up.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub hits: u64,
    pub misses: u64,
    /// Times from a miss to the answer.
    pub miss_latency: LatencyHistogram,
    /// Pieces that failed because no answer came.
    pub unanswered: u64,
    /// Commands that back ends refused.
    pub refused: u64,
    /// Messages that the server has handled.
    pub served: u64,
    /// Times from the begin of a change until it is in force.
    pub changes: Summary,
    busy_ps: u64,
    start_ps: u64,
    server: ServerCount,
    repeated: u64,
}

/// Work of a metadata server and its hosts since the end of the warm-up.
pub(crate) struct MetadataCount<'a> {
    pub hits: u64,
    pub misses: u64,
    pub miss_latency: &'a LatencyHistogram,
    pub unanswered: u64,
    pub refused: u64,
    pub served: u64,
    /// Messages at the server, waiting or in service.
    pub queue: &'a TimeWeighted,
    pub busy_ps: u64,
    /// Times of changes until they were in force.
    pub changes: &'a Summary,
    /// Lookups that waited for a change.
    pub held: u64,
    pub fenced: u64,
    /// Moves of extents without effect.
    pub useless: u64,
    /// Messages of hosts that were repeated.
    pub repeated: u64,
    /// Epoch of the map at the end.
    pub epoch: u64,
}

/// A metadata server with the maps of its hosts.
pub(super) struct Domain {
    /// Index of the storage system.
    pub storage: u16,
    pub config: OutOfBand,
    pub server: Server,
    pub is_on: bool,
    /// Number of restarts.
    pub run: u32,
    /// Time of the planned timeout of the server.
    pub server_timeout_ps: u64,
    /// Times of the planned timeouts of hosts.
    pub host_timeouts: BTreeMap<HostId, u64>,
    pub counts: Counts,
    /// Moves that the server does not know yet.
    pub pending: VecDeque<(Extent, LunId)>,
    hosts: BTreeMap<HostId, HostMap>,
    /// Faults that cut off each host.
    cuts: BTreeMap<HostId, u32>,
    queue: TimeWeighted,
    free_at_ps: u64,
    change_began_ps: Option<u64>,
    map: Map,
    volumes: BTreeMap<u16, VolumeId>,
    /// Extent at each first place.
    homes: BTreeMap<LunBlock, Extent>,
    /// LUNs of the map.
    luns: Vec<LunOfLab>,
}

/// Part of a request within an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub extent: Extent,
    /// Distance from the begin of the extent, in blocks.
    pub offset: u64,
    pub blocks: u32,
}

impl Counts {
    fn new() -> Counts {
        Counts {
            hits: 0,
            misses: 0,
            miss_latency: LatencyHistogram::new(),
            unanswered: 0,
            refused: 0,
            served: 0,
            changes: Summary::default(),
            busy_ps: 0,
            start_ps: 0,
            server: ServerCount::default(),
            repeated: 0,
        }
    }
}

impl Domain {
    pub fn new(lab: &Lab, storage: u16, config: &OutOfBand) -> Domain {
        let VirtualDisks { map, luns, volumes, .. } = VirtualDisks::new(lab, &lab.live, storage, |_| true);
        let mut homes = BTreeMap::new();
        for id in volumes.values() {
            let segments = map.volume(*id).map_or(&[][..], |volume| volume.layout.segments());
            for (segment, column) in segments.iter().flat_map(|own| own.columns.iter().map(move |column| (own, column)))
            {
                let extent_blocks = luns[usize::from(column.lun.0)].extent_blocks;
                for number in 0..segment.column_blocks / extent_blocks {
                    let place = LunBlock { lba: column.lba + number * extent_blocks, ..*column };
                    homes.insert(place, Extent(homes.len() as u32));
                }
            }
        }
        let server_config = ServerConfig { fence_after: config.fence_after.to_span(), resend: config.retry.to_span() };
        let room =
            |lun: &LunOfLab| ServerLun { extents: lun.blocks / lun.extent_blocks, extent_blocks: lun.extent_blocks };
        let places = homes.iter().map(|(place, extent)| (*extent, *place)).collect();
        Domain {
            storage,
            config: config.clone(),
            server: Server::new(server_config, luns.iter().map(room).collect(), places),
            is_on: true,
            run: 0,
            server_timeout_ps: NEVER,
            host_timeouts: BTreeMap::new(),
            counts: Counts::new(),
            pending: VecDeque::new(),
            hosts: BTreeMap::new(),
            cuts: BTreeMap::new(),
            queue: TimeWeighted::new(0),
            free_at_ps: 0,
            change_began_ps: None,
            map,
            volumes,
            homes,
            luns,
        }
    }

    /// Returns the map of a host.
    pub fn map(&mut self, host: HostId) -> &mut HostMap {
        let OutOfBand { entries, retry, give_up, .. } = self.config;
        let config = HostConfig { entries: entries as usize, retry: retry.to_span(), give_up: give_up.to_span() };
        self.hosts.entry(host).or_insert_with(|| HostMap::new(config))
    }

    /// Divides blocks of a virtual disk into parts within extents; `None` if they are not there.
    pub fn parts(&self, lun: u16, lba: u64, blocks: u32, mut each: impl FnMut(Part)) -> Option<()> {
        let layout = &self.map.volume(*self.volumes.get(&lun)?)?.layout;
        for piece in layout.resolve(lba, blocks)? {
            let extent_blocks = self.luns[usize::from(piece.place.lun.0)].extent_blocks;
            let (mut lba, end) = (piece.place.lba, piece.place.lba + u64::from(piece.blocks));
            while lba < end {
                let offset = lba % extent_blocks;
                let blocks = (end - lba).min(extent_blocks - offset);
                let extent = *self.homes.get(&LunBlock { lba: lba - offset, ..piece.place })?;
                each(Part { extent, offset, blocks: blocks as u32 });
                lba += blocks;
            }
        }
        Some(())
    }

    /// Returns the back ends of the pool of a virtual disk.
    pub fn back_ends(&self, lun: u16) -> Vec<Target> {
        let volume = self.volumes.get(&lun).and_then(|id| self.map.volume(*id));
        let of_pool = |lun: &&LunOfLab| volume.is_some_and(|volume| volume.pool.0 == lun.pool);
        self.luns.iter().filter(of_pool).map(|lun| lun.target).collect()
    }

    /// Returns the LUN of a place, and the bytes of its blocks.
    pub fn target(&self, place: LunBlock) -> (Target, u32) {
        let lun = &self.luns[usize::from(place.lun.0)];
        (lun.target, lun.block_bytes)
    }

    /// Returns the back ends of all pools that have virtual disks of the server.
    pub fn targets(&self) -> Vec<Target> {
        let pool_of = |id: &VolumeId| self.map.volume(*id).map(|volume| volume.pool.0);
        let pools: BTreeSet<u16> = self.volumes.values().filter_map(pool_of).collect();
        self.luns.iter().filter(|lun| pools.contains(&lun.pool)).map(|lun| lun.target).collect()
    }

    /// Returns the time that copying the extent at a place takes, in ps.
    pub fn copy_ps(&self, place: LunBlock) -> u64 {
        let lun = &self.luns[usize::from(place.lun.0)];
        self.config.copy_time(lun.extent_blocks * u64::from(lun.block_bytes)).0
    }

    /// Returns the moves of the extents of a volume of the lab to a back end.
    pub fn moves(&self, lab: &Lab, volume: u16, to: u16) -> Vec<(Extent, LunId)> {
        let (lun, volumes) = (self.luns.iter().position(|lun| lun.back_end == to), &lab.live.volumes);
        let is_own = volumes[usize::from(volume)].storage.is_some_and(|(storage, _)| storage == self.storage);
        let id = self.map.find(&volumes[usize::from(volume)].name).filter(|_| is_own);
        let (Some(lun), Some(id)) = (lun, id) else { return Vec::new() };
        let segments = self.map.volume(id).map_or(&[][..], |volume| volume.layout.segments());
        let mut moves = Vec::new();
        for segment in segments {
            for column in &segment.columns {
                let until = LunBlock { lba: column.lba + segment.column_blocks, ..*column };
                moves.extend(self.homes.range(*column..until).map(|(_, extent)| (*extent, LunId(lun as u16))));
            }
        }
        moves
    }

    /// Returns whether messages to and from a host are lost.
    pub fn is_cut(&self, host: HostId) -> bool {
        self.cuts.get(&host).is_some_and(|cuts| *cuts > 0)
    }

    /// Cuts a host off, or ends that.
    pub fn cut(&mut self, host: HostId, begins: bool) {
        let cuts = self.cuts.entry(host).or_insert(0);
        *cuts = if begins { *cuts + 1 } else { cuts.saturating_sub(1) };
    }

    /// A message of a host arrives. Returns the time at which it is handled and the number of the
    /// run; `None` if it is lost.
    pub fn arrive(&mut self, now_ps: u64, host: HostId) -> Option<(u64, u32)> {
        if !self.is_on || self.is_cut(host) {
            return None;
        }
        self.queue.raise(now_ps, 1);
        self.free_at_ps = self.free_at_ps.max(now_ps).saturating_add(self.config.service.0);
        Some((self.free_at_ps, self.run))
    }

    /// The processor has handled a message. Returns false if a power failure has lost it.
    pub fn served(&mut self, now_ps: u64, run: u32) -> bool {
        if run != self.run {
            return false;
        }
        self.queue.lower(now_ps, 1);
        self.counts.served += 1;
        self.counts.busy_ps += self.config.service.0;
        true
    }

    /// Switches the power. Returns whether that changes anything.
    pub fn power(&mut self, now_ps: u64, on: bool) -> bool {
        let changes = self.is_on != on;
        if changes && !on {
            self.run += 1;
            self.queue.set(now_ps, 0);
            self.free_at_ps = now_ps;
        }
        self.is_on = on;
        changes
    }

    /// Takes note of the begin of a change.
    pub fn change_begins(&mut self, now_ps: u64) {
        self.change_began_ps.get_or_insert(now_ps);
    }

    /// Takes note of a change that is in force.
    pub fn change_ends(&mut self, now_ps: u64) {
        if let Some(began_ps) = self.change_began_ps.take() {
            self.counts.changes.add(now_ps - began_ps);
        }
    }

    /// Returns the time of a timeout of the server that must be planned.
    pub fn next_server_timeout(&mut self, now_ps: u64) -> Option<u64> {
        let at_ps = ps_of(self.server.poll_timeout()?).max(now_ps);
        (at_ps < self.server_timeout_ps).then(|| {
            self.server_timeout_ps = at_ps;
            at_ps
        })
    }

    /// Returns the time of a timeout of a host that must be planned.
    pub fn next_host_timeout(&mut self, now_ps: u64, host: HostId) -> Option<u64> {
        let at_ps = ps_of(self.map(host).poll_timeout()?).max(now_ps);
        let planned_ps = self.host_timeouts.entry(host).or_insert(NEVER);
        (at_ps < *planned_ps).then(|| {
            *planned_ps = at_ps;
            at_ps
        })
    }

    /// Begins an access of a host. Returns the place if its map knows the extent.
    pub fn access(&mut self, now_ps: u64, host: HostId, piece: u32, extent: Extent) -> Option<LunBlock> {
        let place = self.map(host).access(instant_of(now_ps), piece, extent);
        match place {
            Some(_) => self.counts.hits += 1,
            None => self.counts.misses += 1,
        }
        place
    }

    /// Restarts the counters at the end of the warm-up.
    pub fn restart_counts(&mut self, now_ps: u64) {
        let repeated = self.repeated();
        self.counts = Counts { start_ps: now_ps, server: self.server.count(), repeated, ..Counts::new() };
        self.queue.restart(now_ps);
    }

    fn repeated(&self) -> u64 {
        self.hosts.values().map(|map| map.repeated).sum()
    }

    /// Returns the counters.
    pub fn counts(&self, now_ps: u64) -> MetadataCount<'_> {
        let (own, server, before) = (&self.counts, self.server.count(), self.counts.server);
        MetadataCount {
            hits: own.hits,
            misses: own.misses,
            miss_latency: &own.miss_latency,
            unanswered: own.unanswered,
            refused: own.refused,
            served: own.served,
            queue: &self.queue,
            busy_ps: own.busy_ps.min(now_ps - own.start_ps),
            changes: &own.changes,
            held: server.held - before.held,
            fenced: server.fenced - before.fenced,
            useless: server.useless - before.useless,
            repeated: self.repeated() - own.repeated,
            epoch: self.server.epoch(),
        }
    }
}
