//! Virtual disks of a running lab: their turn in the loop, and what operators do with them.

use super::Runtime;
use super::plan::{Places, unit_identity};
use crate::state::{KeptSegment, KeptVolume};
use crate::storage::Backing;
use crate::volumes::{VolumeEngine, identity};
use sanloom_api::control::Answer;
use sanloom_api::volume::{Served, VolumeAction};
use sanloom_core::config::{MediumKind, Pool, VolumeSpec};
use sanloom_core::map::{Change, LunId, PoolId, Refusal, Shape, Volume, VolumeId};
use sanloom_core::scsi::UnitConfig;
use sanloom_core::time::Instant;

/// Largest transfer of one command in bytes.
const MAX_TRANSFER_BYTES: u32 = 32 << 20;
/// LUNs of a storage system.
const MAX_LUNS: u16 = 16_384;

/// The unit that a volume is to hosts.
pub(super) fn unit_of(volume: &KeptVolume, instance: u32, block_bytes: u32) -> UnitConfig {
    UnitConfig {
        write_back: volume.write_back,
        thin: volume.thin,
        max_transfer_blocks: MAX_TRANSFER_BYTES / block_bytes,
        // Numbers of volumes are not given twice, those of units are.
        identity: Some(unit_identity(instance, true, volume.id.0)),
        ..UnitConfig::new(volume.blocks, block_bytes)
    }
}

fn refused(refusal: &Refusal) -> String {
    format!("{refusal}: {}", refusal.remedy())
}

/// The same about a pool, in sizes instead of blocks and extents.
fn refused_in(pool: Option<&Pool>, refusal: &Refusal) -> String {
    match pool {
        Some(pool) => format!("{}: {}", refusal.reason(pool.block_bytes, pool.extent_bytes), refusal.remedy()),
        None => refused(refusal),
    }
}

impl Runtime {
    /// The turn of virtual disks. True if there may be more.
    pub(super) fn act_on_volumes(&mut self, now: Instant) -> bool {
        let Some(engine) = &mut self.volumes else { return false };
        let more = engine.turn(now, &mut self.poller);
        loop {
            let Some(engine) = &mut self.volumes else { return false };
            let done = engine.take_done();
            if done.is_empty() {
                break;
            }
            self.jobs_done(now, done);
            if let Some(engine) = &mut self.volumes {
                engine.serve(now, &mut self.poller);
            }
        }
        let found = self.volumes.as_mut().map(VolumeEngine::take_found).unwrap_or_default();
        if !found.is_empty() {
            self.back_ends_found(&found);
        }
        more | self.keep_wiped(now)
    }

    /// More sessions that forward may have initiator ports of their own, once these are kept.
    pub(super) fn keep_initiator_ports(&mut self) {
        let Some(engine) = &mut self.volumes else { return };
        let Some(count) = engine.ports_mut().wanted() else { return };
        match self.state.keep_initiator_ports(count) {
            Ok(()) => engine.ports_mut().keep(count),
            Err(error) => {
                tracing::error!(count, %error, "no more initiator ports: nothing is forwarded for more hosts")
            }
        }
    }

    /// Sessions that forwarded have all logged out: whoever comes back has none of them to end.
    pub(super) fn forget_initiator_ports(&mut self) {
        if let Err(error) = self.state.keep_initiator_ports(0) {
            tracing::warn!(%error, "the next start looks for sessions that are over");
        }
    }

    /// What was wiped is free, once that is kept. True if something was.
    fn keep_wiped(&mut self, now: Instant) -> bool {
        let Some(engine) = &mut self.volumes else { return false };
        let Some(freed) = engine.take_wiped() else { return false };
        let name = engine.map().luns().find(|(id, _)| *id == freed.lun).map(|(_, lun)| lun.config.name.clone());
        let Some(name) = name else { return false };
        match self.state.wiped(&name, freed.lba, freed.blocks) {
            Ok(()) => engine.map_mut().wiped(&freed),
            Err(error) => {
                tracing::error!(back_end = %name, %error, "it is not kept that something was wiped");
                engine.wipe_later(now);
            }
        }
        true
    }

    /// Back ends were reached: what they call themselves is kept, and volumes that waited for them are created.
    pub(super) fn back_ends_found(&mut self, found: &[LunId]) {
        let Some(engine) = &self.volumes else { return };
        let names: Vec<(String, Option<String>)> = engine
            .back_ends()
            .zip((0..).map(LunId))
            .filter(|(seen, lun)| found.contains(lun) && seen.path.is_ok())
            .filter_map(|(seen, _)| Some((seen.plan.name.clone(), identity(seen.found?))))
            .collect();
        for (name, identity) in names {
            if let Err(error) = self.state.keep_identity(&name, identity.as_deref()) {
                tracing::error!(back_end = name, %error, "the name of a back end is not kept");
            }
        }
        for spec in std::mem::take(&mut self.wanted_volumes) {
            match self.create_wanted(&spec) {
                Ok(true) => tracing::info!(volume = spec.name, "created, as the lab says"),
                Ok(false) => self.wanted_volumes.push(spec),
                Err(reason) => tracing::error!(volume = spec.name, reason, "cannot be created as the lab says"),
            }
        }
    }

    /// Creates a volume of the lab. False: its pool was not reached yet.
    fn create_wanted(&mut self, spec: &VolumeSpec) -> Result<bool, String> {
        let Some(engine) = &self.volumes else { return Ok(false) };
        // All of its pool are waited for, so that the same lab makes the same map.
        let pool = PoolId(spec.pool);
        if engine.map().luns().any(|(id, lun)| lun.config.pool == pool && engine.found(id).is_none()) {
            return Ok(false);
        }
        let served = spec.storage.map(|(storage, lun)| {
            let storage = self.lab.storage[usize::from(storage)].name.clone();
            Served { storage, lun }
        });
        self.create(&spec.name, pool, spec.size_bytes, spec.shape, served.as_ref(), true).map(|()| true)
    }

    /// Answers an operator.
    pub(super) fn volume(&mut self, action: VolumeAction) -> Answer {
        if self.volumes.is_none() {
            let reason = "the lab has no pools; add [pool.NAME] and [back_end.NAME]".to_owned();
            return Answer::Failed { reason };
        }
        let named = match &action {
            VolumeAction::Show { .. } | VolumeAction::Delete { .. } => None,
            VolumeAction::Create { name, .. }
            | VolumeAction::Extend { name, .. }
            | VolumeAction::Map { name, .. }
            | VolumeAction::Unmap { name } => Some(name.clone()),
        };
        let outcome = match action {
            VolumeAction::Show { name } => return self.show_volumes(name.as_deref()),
            VolumeAction::Create { name, pool, size_bytes, width, stripe_bytes, served } => {
                self.create_named(&name, &pool, size_bytes, (width, stripe_bytes), served.as_ref())
            }
            VolumeAction::Extend { name, size_bytes } => self.extend(&name, size_bytes),
            VolumeAction::Delete { name } => self.delete(&name),
            VolumeAction::Map { name, served } => self.map_volume(&name, Some(&served)),
            VolumeAction::Unmap { name } => self.map_volume(&name, None),
        };
        match (outcome, named) {
            // What has become of it: nobody has to ask which LUN it has got.
            (Ok(()), Some(name)) => self.show_volumes(Some(&name)),
            (Ok(()), None) => Answer::Done,
            (Err(reason), _) => Answer::Failed { reason },
        }
    }

    fn engine(&self) -> Result<&VolumeEngine, String> {
        self.volumes.as_ref().ok_or_else(|| "the lab has no pools".to_owned())
    }

    fn create_named(
        &mut self,
        name: &str,
        pool: &str,
        size_bytes: u64,
        (width, stripe_bytes): (u16, u64),
        served: Option<&Served>,
    ) -> Result<(), String> {
        let map = self.engine()?.map();
        let id = map.find_pool(pool).ok_or_else(|| {
            let names: Vec<&str> = self.lab.live.pools.iter().map(|pool| pool.name.as_str()).collect();
            format!("there is no pool `{pool}`; there are {}", names.join(", "))
        })?;
        let block_bytes = map.pool(id).ok_or_else(|| refused(&Refusal::UnknownPool))?.block_bytes;
        let shape = match width {
            1 => Shape::Linear,
            _ => {
                let stripe_blocks = blocks_of(stripe_bytes, block_bytes, "the stripe")?;
                let stripe_blocks = u32::try_from(stripe_blocks).map_err(|_| "the stripe is too large".to_owned())?;
                Shape::Striped { width, stripe_blocks }
            }
        };
        self.create(name, id, size_bytes, shape, served, false)
    }

    fn create(
        &mut self,
        name: &str,
        pool: PoolId,
        size_bytes: u64,
        shape: Shape,
        served: Option<&Served>,
        declared: bool,
    ) -> Result<(), String> {
        let map = self.engine()?.map();
        let block_bytes = map.pool(pool).ok_or_else(|| refused(&Refusal::UnknownPool))?.block_bytes;
        let blocks = blocks_of(size_bytes, block_bytes, "the size")?;
        let change = map.plan_create(name, pool, shape, blocks).map_err(|refusal| {
            let pool = self.lab.live.pools.get(usize::from(pool.0));
            refused_in(pool, &refusal)
        })?;
        let place = served.map(|served| self.place(served)).transpose()?;
        let Change::Put(id, volume) = &change else { return Err("nothing is to be created".to_owned()) };
        let kept = self.kept(*id, volume, place.as_ref().map(|(_, storage, lun)| (storage.clone(), *lun)), None);
        self.state.keep_volume(&kept, declared).map_err(|error| format!("not created: {error}"))?;
        if let Some(engine) = &mut self.volumes {
            engine.map_mut().apply(change);
        }
        if let Some((system, ..)) = place {
            self.serve_volume(system, &kept, block_bytes);
        }
        Ok(())
    }

    /// A volume as it is kept. What its back ends can do is looked at when it is created, and stays as it was then.
    fn kept(
        &self,
        id: VolumeId,
        volume: &Volume,
        served: Option<(String, u16)>,
        before: Option<&KeptVolume>,
    ) -> KeptVolume {
        let engine = self.volumes.as_ref();
        let name = |lun: LunId| {
            let luns = engine.map(|engine| engine.map().luns());
            luns.into_iter().flatten().find(|(id, _)| *id == lun).map_or("", |(_, lun)| &*lun.config.name)
        };
        let segments = volume.layout.segments();
        let found: Vec<_> = segments
            .iter()
            .flat_map(|segment| &segment.columns)
            .map(|place| engine.and_then(|engine| engine.found(place.lun)))
            .collect();
        let thin = found.iter().all(|found| {
            found.is_some_and(|found| {
                let thin = &found.provisioning;
                thin.enabled && thin.zeros && thin.write_same
            })
        });
        KeptVolume {
            id,
            name: volume.name.to_string(),
            pool: engine.and_then(|engine| engine.map().pool(volume.pool)).map_or("", |pool| &*pool.name).to_owned(),
            shape: volume.shape,
            blocks: volume.layout.blocks(),
            segments: segments.iter().map(|segment| KeptSegment::of(segment, name)).collect(),
            thin: before.map_or(thin, |before| before.thin),
            // A cache that nobody knows of would lose data.
            write_back: before.is_some_and(|before| before.write_back)
                || found.iter().any(|found| found.is_none_or(|found| found.write_cache)),
            served,
        }
    }

    fn kept_before(&self, name: &str) -> Result<KeptVolume, String> {
        let kept = self.state.volumes().map_err(|error| error.to_string())?;
        kept.into_iter().find(|volume| volume.name == name).ok_or_else(|| refused(&Refusal::UnknownVolume))
    }

    /// A storage system that serves volumes, and a LUN of it that is free.
    fn place(&self, served: &Served) -> Result<(usize, String, u16), String> {
        let serves = |name: &str| {
            let number = self.lab.storage.iter().position(|storage| storage.name == name);
            number.is_some_and(|number| self.lab.live.medium(number as u16).kind == MediumKind::Volumes)
        };
        let system = self.systems.iter().position(|system| system.name == served.storage && serves(&system.name));
        let system = system.ok_or_else(|| {
            let names = self.systems.iter().map(|system| system.name.as_str()).filter(|name| serves(name));
            let names: Vec<&str> = names.collect();
            format!("`{}` serves no volumes; these do: {}", served.storage, names.join(", "))
        })?;
        let device = &self.systems[system].device;
        let free = |lun: &u16| device.unit_config(*lun).is_none() && device.active(*lun) == 0;
        let lun = match served.lun {
            Some(lun) if lun < MAX_LUNS && free(&lun) => lun,
            Some(lun) => return Err(format!("LUN {lun} of `{}` is in use; choose another one", served.storage)),
            None => (0..MAX_LUNS).find(free).ok_or_else(|| format!("`{}` has no LUN left", served.storage))?,
        };
        Ok((system, served.storage.clone(), lun))
    }

    fn serve_volume(&mut self, system: usize, kept: &KeptVolume, block_bytes: u32) {
        let Some((_, lun)) = &kept.served else { return };
        let reservations = Places::of(&self.lab).volume_reservations(kept.id);
        self.systems[system].put_volume(*lun, unit_of(kept, self.state.instance(), block_bytes), kept.id, reservations);
        let now = self.clock.now();
        self.systems[system].settle_all(now);
        self.systems[system].settle_device(now);
    }

    fn extend(&mut self, name: &str, size_bytes: u64) -> Result<(), String> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let block_bytes = map.block_bytes(id).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let blocks = blocks_of(size_bytes, block_bytes, "the size")?;
        let change = map.plan_extend(id, blocks).map_err(|refusal| {
            let pool = map.volume(id).and_then(|volume| self.lab.live.pools.get(usize::from(volume.pool.0)));
            refused_in(pool, &refusal)
        })?;
        let before = self.kept_before(name)?;
        let Change::Put(_, volume) = &change else { return Err("nothing is to be extended".to_owned()) };
        let kept = self.kept(id, volume, before.served.clone(), Some(&before));
        self.state.keep_volume(&kept, false).map_err(|error| format!("not extended: {error}"))?;
        if let Some(engine) = &mut self.volumes {
            engine.map_mut().apply(change);
        }
        tracing::info!(volume = name, blocks, "extended");
        if let Some((storage, lun)) = &kept.served
            && let Some(system) = self.systems.iter_mut().find(|system| system.name == *storage)
        {
            system.device.resize(*lun, blocks);
            system.settle_all(self.clock.now());
        }
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<(), String> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let change = map.plan_delete(id).map_err(|refusal| refused(&refusal))?;
        let kept = self.kept_before(name)?;
        self.state.drop_volume(id).map_err(|error| format!("not deleted: {error}"))?;
        if let Some((storage, lun)) = &kept.served {
            self.serve_no_more(storage, *lun);
        }
        if let Some(engine) = &mut self.volumes {
            engine.map_mut().apply(change);
        }
        // Where nothing was reserved, there is none.
        let _ = std::fs::remove_file(Places::of(&self.lab).volume_reservations(id));
        tracing::info!(volume = name, "deleted");
        Ok(())
    }

    fn serve_no_more(&mut self, storage: &str, lun: u16) {
        let now = self.clock.now();
        if let Some(system) = self.systems.iter_mut().find(|system| system.name == storage) {
            system.device.remove_unit(lun);
            system.settle_all(now);
        }
    }

    fn map_volume(&mut self, name: &str, served: Option<&Served>) -> Result<(), String> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let block_bytes = map.block_bytes(id).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let before = self.kept_before(name)?;
        if let (Some((storage, lun)), Some(_)) = (&before.served, served) {
            return Err(format!("it is LUN {lun} of `{storage}`; `sanloom volume unmap` it first"));
        }
        let place = served.map(|served| self.place(served)).transpose()?;
        let kept =
            KeptVolume { served: place.as_ref().map(|(_, storage, lun)| (storage.clone(), *lun)), ..before.clone() };
        self.state.keep_volume(&kept, false).map_err(|error| format!("not changed: {error}"))?;
        match (place, &before.served) {
            (Some((system, ..)), _) => self.serve_volume(system, &kept, block_bytes),
            (None, Some((storage, lun))) => self.serve_no_more(storage, *lun),
            (None, None) => {}
        }
        Ok(())
    }

    /// Who serves a volume.
    pub(super) fn served_by(&self, id: VolumeId) -> Option<Served> {
        self.systems.iter().find_map(|system| {
            let here = |(lun, backing): (u16, &Backing)| {
                let is = matches!(backing, Backing::Volume(volume) if *volume == id);
                (is && system.device.unit_config(lun).is_some()).then_some(lun)
            };
            let lun = (0..).zip(&system.media).find_map(here)?;
            Some(Served { storage: system.name.clone(), lun: Some(lun) })
        })
    }
}

fn blocks_of(bytes: u64, block_bytes: u32, what: &str) -> Result<u64, String> {
    match bytes.is_multiple_of(block_bytes.into()) && bytes > 0 {
        true => Ok(bytes / u64::from(block_bytes)),
        false => {
            Err(format!("{what} is not a multiple of the {block_bytes} bytes of a block; write one, such as 64MiB"))
        }
    }
}
