//! Virtual disks of a running lab: [`VolumeAdmin`] creates and changes them, and stores the state
//! that must survive a crash.

use crate::poll::Poller;
use crate::runtime::instance::Instance;
use crate::runtime::plan::{LabPaths, unit_identity};
use crate::runtime::services::Services;
use crate::runtime::view::Tables;
use crate::state::{KeptSegment, KeptVolume, StateError, StateStore};
use crate::volumes::{VolumeEngine, identity};
use sanloom_api::control::{Answer, ErrorKind, RequestError};
use sanloom_api::volume::{Served, VolumeAction};
use sanloom_fc::config::{MediumKind, Pool, VolumeSpec};
use sanloom_fc::san::Lab;
use sanloom_scsi::map::{Change, LunId, PoolId, Refusal, Shape, Volume, VolumeId};
use sanloom_scsi::scsi::UnitConfig;
use sanloom_scsi::time::Instant;

/// Maximum transfer of one command in bytes.
const MAX_TRANSFER_BYTES: u32 = 32 << 20;
/// Maximum number of LUNs of a storage system.
const MAX_LUNS: u16 = 16_384;

/// Returns the logical unit of a volume.
pub fn unit_of(volume: &KeptVolume, instance: u32, block_bytes: u32) -> UnitConfig {
    UnitConfig {
        write_back: volume.write_back,
        thin: volume.thin,
        max_transfer_blocks: MAX_TRANSFER_BYTES / block_bytes,
        // Numbers of volumes are unique forever; those of units are reused.
        identity: Some(unit_identity(instance, true, volume.id.0)),
        ..UnitConfig::new(volume.blocks, block_bytes)
    }
}

/// Returns the failure of a write to the store; `what` is the effect on the request.
fn unstored(what: &'static str) -> impl Fn(StateError) -> RequestError {
    move |error| RequestError::environment(format!("{what}: {error}"))
}

fn refused(refusal: &Refusal) -> String {
    format!("{refusal}: {}", refusal.remedy())
}

/// Formats the refusal of a request for a volume that does not exist.
fn unknown(name: &str) -> String {
    format!("there is no volume `{name}`; `sanloom volume show` lists them")
}

/// Formats a refusal about a pool, with sizes in bytes instead of blocks and extents.
fn refused_in(pool: Option<&Pool>, refusal: &Refusal) -> String {
    match pool {
        Some(pool) => format!("{}: {}", refusal.reason(pool.block_bytes, pool.extent_bytes), refusal.remedy()),
        None => refused(refusal),
    }
}

/// Virtual disks and their store, for one operation or one step of the loop.
pub struct VolumeAdmin<'a> {
    lab: &'a Lab,
    services: &'a mut Services,
    state: &'a StateStore,
    now: Instant,
}

/// Answers a volume request.
pub fn request(instance: &mut Instance, now: Instant, action: VolumeAction) -> Answer {
    if instance.services.volumes.is_none() {
        return Answer::failed("the lab has no pools; add [pool.NAME] and [back_end.NAME]");
    }
    let volume = match &action {
        VolumeAction::Show { .. } => String::new(),
        VolumeAction::Create { name, .. }
        | VolumeAction::Extend { name, .. }
        | VolumeAction::Delete { name }
        | VolumeAction::Map { name, .. }
        | VolumeAction::Unmap { name } => name.clone(),
    };
    let deletes = matches!(action, VolumeAction::Delete { .. });
    let mut admin = VolumeAdmin::of(instance, now);
    let outcome = match action {
        VolumeAction::Show { name } => return Tables::new(instance, now).show_volumes(name.as_deref()),
        VolumeAction::Create { name, pool, size_bytes, width, stripe_bytes, served } => {
            admin.create_named(&name, &pool, size_bytes, (width, stripe_bytes), served.as_ref())
        }
        VolumeAction::Extend { name, size_bytes } => admin.extend(&name, size_bytes),
        VolumeAction::Delete { name } => admin.delete(&name),
        VolumeAction::Map { name, served } => admin.map_volume(&name, Some(&served)),
        VolumeAction::Unmap { name } => admin.map_volume(&name, None),
    };
    match outcome {
        Ok(()) if deletes => Answer::Done,
        // Return the volume with its assigned LUN.
        Ok(()) => Tables::new(instance, now).show_volumes(Some(&volume)),
        Err(error) => {
            let reason = &error.reason;
            match error.kind {
                ErrorKind::Environment => tracing::error!(volume, reason, "a request for a volume failed"),
                ErrorKind::Usage | ErrorKind::Transaction => {
                    tracing::info!(volume, reason, "a request for a volume was rejected")
                }
            }
            Answer::Failed(error)
        }
    }
}

impl<'a> VolumeAdmin<'a> {
    /// The virtual disks of an instance, if it has any.
    pub fn of(instance: &'a mut Instance, now: Instant) -> VolumeAdmin<'a> {
        let Instance { lab, services, keeper, .. } = instance;
        VolumeAdmin { lab, services, state: &keeper.state, now }
    }

    /// Exchanges requests between hosts, volumes and back ends. Returns whether there may be more.
    pub fn step(&mut self, poller: &mut Poller) -> bool {
        let Some(engine) = &mut self.services.volumes else { return false };
        let more = engine.process_events(self.now, poller);
        while let Some(engine) = &mut self.services.volumes {
            let done = engine.take_done();
            if done.is_empty() {
                break;
            }
            self.services.complete(self.now, done, poller);
            if let Some(engine) = &mut self.services.volumes {
                engine.serve(self.now, poller);
            }
        }
        let found = self.services.volumes.as_mut().map(VolumeEngine::take_found).unwrap_or_default();
        if !found.is_empty() {
            self.back_ends_found(&found);
        }
        more | self.keep_wiped()
    }

    /// Reserves more initiator ports for sessions that forward, if they are needed. The ports are
    /// used once the number is stored.
    pub fn keep_initiator_ports(&mut self) {
        let Some(engine) = &mut self.services.volumes else { return };
        let Some(count) = engine.ports_mut().wanted() else { return };
        match self.state.keep_initiator_ports(count) {
            Ok(()) => engine.ports_mut().keep(count),
            Err(error) => {
                tracing::error!(count, %error, "initiator ports cannot be stored; commands of further hosts are not forwarded")
            }
        }
    }

    /// Resets the number of initiator ports after all forwarding sessions have logged out, so that
    /// the next start has none of them to end.
    pub fn forget_initiator_ports(&mut self) {
        if let Err(error) = self.state.keep_initiator_ports(0) {
            tracing::warn!(%error, "the number of initiator ports cannot be stored; the next start takes longer");
        }
    }

    /// Frees wiped extents once that is stored. Returns whether there were some.
    fn keep_wiped(&mut self) -> bool {
        let Some(engine) = &mut self.services.volumes else { return false };
        let Some(freed) = engine.take_wiped() else { return false };
        let name = engine.map().luns().find(|(id, _)| *id == freed.lun).map(|(_, lun)| lun.config.name.clone());
        let Some(name) = name else { return false };
        match self.state.wiped(&name, freed.lba, freed.blocks) {
            Ok(()) => engine.map_mut().wiped(&freed),
            Err(error) => {
                tracing::error!(back_end = %name, %error, "a completed wipe cannot be stored; the wipe is repeated");
                engine.wipe_later(self.now);
            }
        }
        true
    }

    /// Stores the identities of reached back ends, and creates volumes that waited for them.
    pub fn back_ends_found(&mut self, found: &[LunId]) {
        let Some(engine) = &self.services.volumes else { return };
        let names: Vec<(String, Option<String>)> = engine
            .back_ends()
            .zip((0..).map(LunId))
            .filter(|(seen, lun)| found.contains(lun) && seen.path.is_ok())
            .filter_map(|(seen, _)| Some((seen.plan.name.clone(), identity(seen.found?))))
            .collect();
        for (name, identity) in names {
            if let Err(error) = self.state.keep_identity(&name, identity.as_deref()) {
                tracing::error!(back_end = name, %error, "the identity of a back end cannot be stored");
            }
        }
        for spec in std::mem::take(&mut self.services.wanted_volumes) {
            match self.create_wanted(&spec) {
                Ok(true) => tracing::info!(volume = spec.name, "volume of the lab created"),
                Ok(false) => self.services.wanted_volumes.push(spec),
                Err(error) => {
                    tracing::error!(volume = spec.name, reason = error.reason, "a volume of the lab cannot be created");
                }
            }
        }
    }

    /// Creates a volume of the lab. Returns false if a back end of its pool was not reached yet.
    fn create_wanted(&mut self, spec: &VolumeSpec) -> Result<bool, RequestError> {
        let Some(engine) = &self.services.volumes else { return Ok(false) };
        // Wait for all back ends of its pool, so that equal labs get equal maps.
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

    fn engine(&self) -> Result<&VolumeEngine, String> {
        self.services.volumes.as_ref().ok_or_else(|| "the lab has no pools".to_owned())
    }

    fn create_named(
        &mut self,
        name: &str,
        pool: &str,
        size_bytes: u64,
        (width, stripe_bytes): (u16, u64),
        served: Option<&Served>,
    ) -> Result<(), RequestError> {
        let map = self.engine()?.map();
        let id = map.find_pool(pool).ok_or_else(|| {
            let names: Vec<&str> = self.lab.live.pools.iter().map(|pool| pool.name.as_str()).collect();
            format!("there is no pool `{pool}`; the pools are {}", names.join(", "))
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
    ) -> Result<(), RequestError> {
        let map = self.engine()?.map();
        let block_bytes = map.pool(pool).ok_or_else(|| refused(&Refusal::UnknownPool))?.block_bytes;
        let blocks = blocks_of(size_bytes, block_bytes, "the size")?;
        let change = map.plan_create(name, pool, shape, blocks).map_err(|refusal| {
            let pool = self.lab.live.pools.get(usize::from(pool.0));
            refused_in(pool, &refusal)
        })?;
        let place = served.map(|served| self.place(served)).transpose()?;
        let Change::Put(id, volume) = &change else {
            return Err("the plan does not create a volume".to_owned().into());
        };
        let kept = self.kept(*id, volume, place.as_ref().map(|(_, storage, lun)| (storage.clone(), *lun)), None);
        self.state.keep_volume(&kept, declared).map_err(unstored("not created"))?;
        if let Some(engine) = &mut self.services.volumes {
            engine.map_mut().apply(change);
        }
        if let Some((system, ..)) = place {
            self.serve_volume(system, &kept, block_bytes);
        }
        Ok(())
    }

    /// Returns the stored form of a volume, with the features of its back ends at its creation.
    fn kept(
        &self,
        id: VolumeId,
        volume: &Volume,
        served: Option<(String, u16)>,
        before: Option<&KeptVolume>,
    ) -> KeptVolume {
        let engine = self.services.volumes.as_ref();
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
            // An unknown write cache could lose data.
            write_back: before.is_some_and(|before| before.write_back)
                || found.iter().any(|found| found.is_none_or(|found| found.write_cache)),
            served,
        }
    }

    fn kept_before(&self, name: &str) -> Result<KeptVolume, RequestError> {
        let kept = self.state.volumes()?;
        kept.into_iter().find(|volume| volume.name == name).ok_or_else(|| unknown(name).into())
    }

    /// Returns a storage system that serves volumes, and a free LUN of it.
    fn place(&self, served: &Served) -> Result<(usize, String, u16), String> {
        let serves = |name: &str| {
            let number = self.lab.storage.iter().position(|storage| storage.name == name);
            number.is_some_and(|number| self.lab.live.medium(number as u16).kind == MediumKind::Volumes)
        };
        let system =
            self.services.systems.iter().position(|system| system.name == served.storage && serves(&system.name));
        let system = system.ok_or_else(|| {
            let names = self.services.systems.iter().map(|system| system.name.as_str()).filter(|name| serves(name));
            let names: Vec<&str> = names.collect();
            format!("`{}` serves no volumes; storage systems for volumes are {}", served.storage, names.join(", "))
        })?;
        let device = &self.services.systems[system].device;
        let free = |lun: &u16| device.unit_config(*lun).is_none() && device.active(*lun) == 0;
        let lun = match served.lun {
            Some(lun) if lun < MAX_LUNS && free(&lun) => lun,
            Some(lun) => return Err(format!("LUN {lun} of `{}` is in use; choose another one", served.storage)),
            None => (0..MAX_LUNS).find(free).ok_or_else(|| format!("`{}` has no free LUN", served.storage))?,
        };
        Ok((system, served.storage.clone(), lun))
    }

    fn serve_volume(&mut self, system: usize, kept: &KeptVolume, block_bytes: u32) {
        let Some((_, lun)) = &kept.served else { return };
        let reservations = LabPaths::of(self.lab).volume_reservations(kept.id);
        self.services.systems[system].put_volume(
            *lun,
            unit_of(kept, self.state.instance(), block_bytes),
            kept.id,
            reservations,
        );
        self.services.systems[system].drain_all(self.now);
        self.services.systems[system].drain_outside(self.now);
    }

    fn extend(&mut self, name: &str, size_bytes: u64) -> Result<(), RequestError> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| unknown(name))?;
        let block_bytes = map.block_bytes(id).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let blocks = blocks_of(size_bytes, block_bytes, "the size")?;
        let change = map.plan_extend(id, blocks).map_err(|refusal| {
            let pool = map.volume(id).and_then(|volume| self.lab.live.pools.get(usize::from(volume.pool.0)));
            refused_in(pool, &refusal)
        })?;
        let before = self.kept_before(name)?;
        let Change::Put(_, volume) = &change else { return Err("the plan does not extend a volume".to_owned().into()) };
        let kept = self.kept(id, volume, before.served.clone(), Some(&before));
        self.state.keep_volume(&kept, false).map_err(unstored("not extended"))?;
        if let Some(engine) = &mut self.services.volumes {
            engine.map_mut().apply(change);
        }
        tracing::info!(volume = name, blocks, "extended");
        if let Some((storage, lun)) = &kept.served
            && let Some(system) = self.services.systems.find_mut(|system| system.name == *storage)
        {
            system.device.resize(*lun, blocks);
            system.drain_all(self.now);
        }
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<(), RequestError> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| unknown(name))?;
        let change = map.plan_delete(id).map_err(|refusal| refused(&refusal))?;
        let kept = self.kept_before(name)?;
        self.state.drop_volume(id).map_err(unstored("not deleted"))?;
        if let Some((storage, lun)) = &kept.served {
            self.serve_no_more(storage, *lun);
        }
        if let Some(engine) = &mut self.services.volumes {
            engine.map_mut().apply(change);
        }
        // The file exists only if a reservation was made.
        let _ = std::fs::remove_file(LabPaths::of(self.lab).volume_reservations(id));
        tracing::info!(volume = name, "deleted");
        Ok(())
    }

    fn serve_no_more(&mut self, storage: &str, lun: u16) {
        let now = self.now;
        if let Some(system) = self.services.systems.find_mut(|system| system.name == storage) {
            system.device.remove_unit(lun);
            system.drain_all(now);
        }
    }

    fn map_volume(&mut self, name: &str, served: Option<&Served>) -> Result<(), RequestError> {
        let map = self.engine()?.map();
        let id = map.find(name).ok_or_else(|| unknown(name))?;
        let block_bytes = map.block_bytes(id).ok_or_else(|| refused(&Refusal::UnknownVolume))?;
        let before = self.kept_before(name)?;
        if let (Some((storage, lun)), Some(_)) = (&before.served, served) {
            return Err(
                format!("`{name}` is LUN {lun} of `{storage}`; unmap it first with `sanloom volume unmap`").into()
            );
        }
        let place = served.map(|served| self.place(served)).transpose()?;
        let kept =
            KeptVolume { served: place.as_ref().map(|(_, storage, lun)| (storage.clone(), *lun)), ..before.clone() };
        self.state.keep_volume(&kept, false).map_err(unstored("not changed"))?;
        match (place, &before.served) {
            (Some((system, ..)), _) => self.serve_volume(system, &kept, block_bytes),
            (None, Some((storage, lun))) => self.serve_no_more(storage, *lun),
            (None, None) => {}
        }
        Ok(())
    }
}

fn blocks_of(bytes: u64, block_bytes: u32, what: &str) -> Result<u64, String> {
    match bytes.is_multiple_of(block_bytes.into()) && bytes > 0 {
        true => Ok(bytes / u64::from(block_bytes)),
        false => Err(format!(
            "{what} is not a multiple of the {block_bytes} bytes of a block; use a multiple, such as 64MiB"
        )),
    }
}
