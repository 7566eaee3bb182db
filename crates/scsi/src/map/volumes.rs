//! Map of all volumes and their epochs: [`Map`].

use super::layout::{Layout, Pieces};
use super::plan::{Change, Volume};
use super::pool::{BackEnd, Freed, LunConfig, LunUse, PoolConfig, PoolUse, extents_of, is_aligned};
use super::refusal::RestoreError;
use super::{EpochId, LunId, PoolId, VolumeId};
use std::collections::BTreeMap;

/// Layout that tasks hold or may hold.
#[derive(Debug)]
struct Epoch {
    volume: VolumeId,
    layout: Layout,
    tasks: u64,
    /// True once a newer epoch exists or the volume was deleted.
    old: bool,
}

/// All pools, volumes and epochs. [`super`] describes its use.
#[derive(Debug)]
pub struct Map {
    pools: Vec<PoolConfig>,
    luns: Vec<BackEnd>,
    volumes: BTreeMap<VolumeId, (Volume, EpochId)>,
    epochs: BTreeMap<EpochId, Epoch>,
    /// Deleted volumes with active tasks, whose extents are not free yet.
    leaving: BTreeMap<VolumeId, Volume>,
    next_volume: u32,
    next_epoch: u64,
}

impl Map {
    /// Creates a map without volumes. LUNs of an unknown pool are never used.
    pub fn new(pools: Vec<PoolConfig>, luns: Vec<LunConfig>) -> Map {
        let luns = luns.into_iter().map(BackEnd::new).collect();
        let (volumes, epochs, leaving) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Map { pools, luns, volumes, epochs, leaving, next_volume: 0, next_epoch: 0 }
    }

    /// Adds a LUN to a pool. It is usable after [`reached`](Self::reached).
    pub fn add_lun(&mut self, config: LunConfig) -> LunId {
        let id = LunId(self.luns.len() as u16);
        self.luns.push(BackEnd::new(config));
        id
    }

    /// Restores stored volumes and the number of the next one. Call it once, before anything else.
    ///
    /// # Errors
    /// Returns an error if the volumes do not fit the pools or each other. The map is then
    /// unchanged.
    pub fn restore(&mut self, volumes: Vec<(VolumeId, Volume)>, next: VolumeId) -> Result<(), RestoreError> {
        let mut luns = self.luns.clone();
        let mut names = std::collections::BTreeSet::new();
        for (number, (id, volume)) in volumes.iter().enumerate() {
            let name = || volume.name.clone();
            if !names.insert(&volume.name) || volumes[..number].iter().any(|(other, _)| other == id) {
                return Err(RestoreError::Twice(name()));
            }
            let pool = self.pool(volume.pool).ok_or_else(|| RestoreError::Elsewhere(name()))?;
            for segment in volume.layout.segments() {
                let aligned = is_aligned(segment, pool.extent_blocks);
                for (lun, first, count) in extents_of(segment, pool.extent_blocks) {
                    let lun = luns.get_mut(usize::from(lun.0)).filter(|lun| aligned && lun.config.pool == volume.pool);
                    let lun = lun.ok_or_else(|| RestoreError::Elsewhere(name()))?;
                    if !lun.used.insert(first, count) {
                        return Err(RestoreError::Shared(name()));
                    }
                }
            }
        }
        self.luns = luns;
        self.next_volume = next.0;
        for (id, volume) in volumes {
            self.next_volume = self.next_volume.max(id.0 + 1);
            self.enter(id, volume);
        }
        Ok(())
    }

    /// Records the size of a back-end LUN that was reached. Returns false if volumes have extents
    /// beyond its end, because the LUN has shrunk or was replaced.
    pub fn reached(&mut self, lun: LunId, blocks: u64) -> bool {
        let Some(lun) = self.luns.get_mut(usize::from(lun.0)) else { return false };
        let Some(pool) = self.pools.get(usize::from(lun.config.pool.0)) else { return false };
        let extents = blocks / pool.extent_blocks.max(1);
        let enough = extents >= lun.used.end();
        if enough {
            lun.extents = Some(extents);
        }
        enough
    }

    /// Applies a change that was planned on the current map. Returns the new epoch of the volume,
    /// if it still exists.
    pub fn apply(&mut self, change: Change) -> Option<EpochId> {
        match change {
            Change::Put(id, volume) => {
                self.next_volume = self.next_volume.max(id.0 + 1);
                let extent_blocks = self.pools[usize::from(volume.pool.0)].extent_blocks;
                // An extended volume keeps its extents, so release them before all are allocated.
                if let Some((before, _)) = self.volumes.get(&id) {
                    let before = before.clone();
                    self.give_back(&before);
                }
                for segment in volume.layout.segments() {
                    for (lun, first, count) in extents_of(segment, extent_blocks) {
                        let fresh = self.luns[usize::from(lun.0)].used.insert(first, count);
                        assert!(fresh, "a plan on another map would give an extent to two volumes");
                    }
                }
                Some(self.enter(id, volume))
            }
            Change::Delete(id) => {
                if let Some((volume, epoch)) = self.volumes.remove(&id) {
                    self.leaving.insert(id, volume);
                    self.retire(epoch);
                }
                None
            }
        }
    }

    /// Releases the extents of a volume.
    fn give_back(&mut self, volume: &Volume) {
        let extent_blocks = self.pools[usize::from(volume.pool.0)].extent_blocks;
        for segment in volume.layout.segments() {
            for (lun, first, count) in extents_of(segment, extent_blocks) {
                self.luns[usize::from(lun.0)].used.remove(first, count);
            }
        }
    }

    fn enter(&mut self, id: VolumeId, volume: Volume) -> EpochId {
        let epoch = EpochId(self.next_epoch);
        self.next_epoch += 1;
        let layout = volume.layout.clone();
        self.epochs.insert(epoch, Epoch { volume: id, layout, tasks: 0, old: false });
        if let Some((_, before)) = self.volumes.insert(id, (volume, epoch)) {
            self.retire(before);
        }
        epoch
    }

    /// Marks an epoch as replaced or deleted.
    fn retire(&mut self, id: EpochId) {
        if let Some(epoch) = self.epochs.get_mut(&id) {
            epoch.old = true;
        }
        self.release(id);
    }

    /// Removes an old epoch that no task holds. With the last epoch of a deleted volume, its
    /// extents are released for wiping.
    fn release(&mut self, id: EpochId) {
        let Some(Epoch { volume, .. }) = self.epochs.get(&id).filter(|epoch| epoch.old && epoch.tasks == 0) else {
            return;
        };
        let of = *volume;
        self.epochs.remove(&id);
        if !self.epochs.values().any(|epoch| epoch.volume == of)
            && let Some(volume) = self.leaving.remove(&of)
        {
            let extent_blocks = self.pools[usize::from(volume.pool.0)].extent_blocks;
            for segment in volume.layout.segments() {
                for (lun, first, count) in extents_of(segment, extent_blocks) {
                    self.luns[usize::from(lun.0)].wiping.insert_missing(first, count);
                }
            }
        }
    }

    /// Restores blocks that were stored as not wiped. Call it once per LUN, after
    /// [`restore`](Self::restore). The blocks need not match the current extent size of the pool.
    pub fn restore_wiping(&mut self, runs: &[Freed]) {
        for Freed { lun, lba, blocks } in runs {
            let Some(lun) = self.luns.get_mut(usize::from(lun.0)) else { continue };
            let Some(pool) = self.pools.get(usize::from(lun.config.pool.0)) else { continue };
            let extent_blocks = pool.extent_blocks.max(1);
            for extent in lba / extent_blocks..(lba + blocks).div_ceil(extent_blocks) {
                // Extents of an existing volume were wiped before it received them.
                if lun.used.insert(extent, 1) {
                    lun.wiping.insert(extent, 1);
                }
            }
        }
    }

    /// Returns the next blocks to wipe on a LUN for which `is_there` is true: about `blocks`
    /// blocks, at least one extent.
    pub fn next_wipe(&self, is_there: impl Fn(LunId) -> bool, blocks: u64) -> Option<Freed> {
        self.luns().filter(|(id, _)| is_there(*id)).find_map(|(id, lun)| {
            let extent_blocks = self.pool(lun.config.pool)?.extent_blocks;
            let (first, count) = lun.wiping.first_run((blocks / extent_blocks.max(1)).max(1))?;
            Some(Freed { lun: id, lba: first * extent_blocks, blocks: count * extent_blocks })
        })
    }

    /// Releases blocks that are now durable zeros.
    pub fn wiped(&mut self, freed: &Freed) {
        let Some(lun) = self.luns.get_mut(usize::from(freed.lun.0)) else { return };
        let Some(pool) = self.pools.get(usize::from(lun.config.pool.0)) else { return };
        let extent_blocks = pool.extent_blocks.max(1);
        let (first, count) = (freed.lba / extent_blocks, freed.blocks / extent_blocks);
        lun.wiping.remove(first, count);
        lun.used.remove(first, count);
    }

    /// Starts a task on a volume. It holds the newest epoch until [`end`](Self::end).
    #[inline]
    pub fn begin(&mut self, id: VolumeId) -> Option<EpochId> {
        let (_, epoch) = self.volumes.get(&id)?;
        self.epochs.get_mut(epoch)?.tasks += 1;
        Some(*epoch)
    }

    /// Locates blocks for a task that holds this epoch. `None` if the range exceeds the volume.
    #[inline]
    pub fn resolve(&self, epoch: EpochId, lba: u64, blocks: u32) -> Option<Pieces<'_>> {
        self.epochs.get(&epoch)?.layout.resolve(lba, blocks)
    }

    /// Back-end LUNs of a layout, each once.
    pub fn luns_of(&self, epoch: EpochId) -> Vec<LunId> {
        let segments = self.epochs.get(&epoch).map_or(&[][..], |epoch| epoch.layout.segments());
        let mut luns: Vec<LunId> =
            segments.iter().flat_map(|segment| segment.columns.iter().map(|place| place.lun)).collect();
        luns.sort_unstable();
        luns.dedup();
        luns
    }

    /// Ends a task that held this epoch.
    #[inline]
    pub fn end(&mut self, id: EpochId) {
        if let Some(epoch) = self.epochs.get_mut(&id) {
            epoch.tasks = epoch.tasks.saturating_sub(1);
            if epoch.old {
                self.release(id);
            }
        }
    }

    /// Number of tasks that hold an epoch; `None` if the epoch was removed.
    pub fn tasks(&self, epoch: EpochId) -> Option<u64> {
        self.epochs.get(&epoch).map(|epoch| epoch.tasks)
    }

    /// Returns the volume with a name.
    pub fn find(&self, name: &str) -> Option<VolumeId> {
        self.volumes.iter().find(|(_, (volume, _))| &*volume.name == name).map(|(id, _)| *id)
    }

    /// Current definition of a volume.
    pub fn volume(&self, id: VolumeId) -> Option<&Volume> {
        self.volumes.get(&id).map(|(volume, _)| volume)
    }

    /// Newest epoch of a volume.
    pub fn epoch(&self, id: VolumeId) -> Option<EpochId> {
        self.volumes.get(&id).map(|(_, epoch)| *epoch)
    }

    /// All volumes, by number.
    pub fn volumes(&self) -> impl Iterator<Item = (VolumeId, &Volume)> {
        self.volumes.iter().map(|(id, (volume, _))| (*id, volume))
    }

    /// Configuration of a pool.
    pub fn pool(&self, id: PoolId) -> Option<&PoolConfig> {
        self.pools.get(usize::from(id.0))
    }

    /// Block size of a volume in bytes.
    pub fn block_bytes(&self, id: VolumeId) -> Option<u32> {
        let volume = self.volume(id)?;
        Some(self.pool(volume.pool)?.block_bytes)
    }

    /// Returns the pool with a name.
    pub fn find_pool(&self, name: &str) -> Option<PoolId> {
        self.pools.iter().position(|pool| &*pool.name == name).map(|at| PoolId(at as u16))
    }

    /// Allocation of a pool.
    pub fn pool_use(&self, id: PoolId) -> PoolUse {
        let of_pool = self.luns.iter().filter(|lun| lun.config.pool == id);
        of_pool.fold(PoolUse::default(), |sum, lun| PoolUse {
            extents: sum.extents + lun.extents.unwrap_or(0),
            used: sum.used + lun.used.count() - lun.wiping.count(),
        })
    }

    /// All back-end LUNs, by number.
    pub fn luns(&self) -> impl Iterator<Item = (LunId, &BackEnd)> {
        self.luns.iter().enumerate().map(|(at, lun)| (LunId(at as u16), lun))
    }

    /// Allocation of a back-end LUN.
    pub fn lun_use(&self, id: LunId) -> Option<LunUse> {
        self.luns.get(usize::from(id.0)).map(|lun| {
            let (all, wiping) = (lun.used.count(), lun.wiping.count());
            LunUse { extents: lun.extents, used: all - wiping, wiping }
        })
    }

    /// Number of the next new volume.
    pub fn next_volume(&self) -> VolumeId {
        VolumeId(self.next_volume)
    }
}
