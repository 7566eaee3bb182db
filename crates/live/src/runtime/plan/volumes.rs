//! The virtual disks of a runtime: pools and back ends of the lab, volumes of the store.

use super::hosts::make_hosts;
use super::iscsi::credentials;
use super::{Builder, LabPaths, served};
use crate::iscsi_initiator::RemoteConfig;
use crate::runtime::UpError;
use crate::runtime::instance::Instance;
use crate::runtime::operations::volumes::{VolumeAdmin, unit_of};
use crate::state::{Agreement, KeptVolume, StateError};
use crate::volumes::{InitiatorPorts, LunPlan, NewBackEnd, Through, VolumeEngine};
use sanloom_fc::config::{BackEndTarget, FcpBackEnd, IscsiBackEnd, Node};
use sanloom_fc::san::Lab;
use sanloom_scsi::disk::DiskConfig;
use sanloom_scsi::iscsi::initiator::SessionConfig;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::map::{
    Freed, Layout, LunBlock, LunConfig, LunId, Map, PoolConfig, PoolId, Segment, Volume, VolumeId,
};
use sanloom_scsi::time::Span;
use sanloom_wire::Wwpn;

/// Maximum number of commands in flight for one back-end LUN.
const QUEUE_DEPTH: u16 = 128;

impl Builder<'_> {
    /// Creates the engine of virtual disks if the lab has pools and the process runs the whole lab.
    pub(super) fn make_volumes(&mut self, agreement: Agreement) -> Result<(), UpError> {
        let lab_paths = self.lab_paths;
        let now = self.clock.now();
        let instance = &mut self.instance;
        let lab = instance.lab.clone();
        let live = &lab.live;
        let state = &instance.keeper.state;
        if live.pools.is_empty() || instance.lab_switches.len() != lab.switches.len() {
            return Ok(());
        }
        let mut pools = Vec::new();
        // Data are deleted only by `sanloom volume delete`, so volumes are kept with `--reset`,
        // too.
        let kept = state.volumes()?;
        for pool in &live.pools {
            let wanted = (pool.block_bytes, pool.extent_bytes / u64::from(pool.block_bytes.max(1)));
            if !kept.iter().any(|volume| volume.pool == pool.name) {
                state.forget_pool(&pool.name)?;
            }
            let agreed = state.agree_pool(&pool.name, wanted.0, wanted.1)?;
            if agreed != wanted {
                let was = format!("blocks of {} bytes and extents of {} blocks", agreed.0, agreed.1);
                let line = format!("  pool {}: its volumes are made of {was}, which cannot change", pool.name);
                return Err(UpError::Differs { path: state.path().to_owned(), differences: vec![line] });
            }
            let name = pool.name.as_str().into();
            pools.push(PoolConfig { name, block_bytes: wanted.0, extent_blocks: wanted.1 });
        }
        let luns = live.back_ends.iter();
        let luns = luns.map(|lun| LunConfig { name: lun.name.as_str().into(), pool: PoolId(lun.pool) }).collect();
        let mut map = Map::new(pools, luns);
        let damaged = |reason: String| StateError::Volumes { path: state.path().to_owned(), reason };
        let volumes = kept.iter().map(|volume| restored(&map, volume)).collect::<Result<Vec<_>, _>>();
        let next = state.next_volume()?;
        volumes.and_then(|volumes| map.restore(volumes, next).map_err(|error| error.to_string())).map_err(damaged)?;
        let number = |name: &str| live.back_ends.iter().position(|back_end| back_end.name == name);
        let wipes = state.wipes()?.into_iter().filter_map(|(name, lba, blocks)| {
            // A range of a back end that is absent from the lab is wiped when the back end is added
            // again.
            Some(Freed { lun: LunId(u16::try_from(number(&name)?).ok()?), lba, blocks })
        });
        map.restore_wiping(&wipes.collect::<Vec<_>>());
        let mut targets: Vec<RemoteConfig> = Vec::new();
        let mut luns = Vec::new();
        for back_end in &live.back_ends {
            let retry_for = back_end.retry_for.to_span();
            let disk = disk_config(retry_for);
            let through = match &back_end.target {
                BackEndTarget::Iscsi(target) => {
                    let config = remote(target, retry_for, lab_paths)?;
                    let known = targets.iter().position(|other| other.is_same_way(&config));
                    Through::Session(known.unwrap_or_else(|| {
                        targets.push(config);
                        targets.len() - 1
                    }))
                }
                BackEndTarget::Fcp(FcpBackEnd { more, .. }) if !more.is_empty() => {
                    return Err(UpError::BackEndPaths { back_end: back_end.name.clone() });
                }
                BackEndTarget::Fcp(FcpBackEnd { initiator, target, .. }) => {
                    if let Some((host, link)) = elsewhere(&lab, *initiator) {
                        return Err(UpError::BackEndElsewhere { back_end: back_end.name.clone(), host, link });
                    }
                    let port = live.host_ports().iter().position(|port| port == initiator).unwrap_or_default();
                    Through::Port(port, *target)
                }
            };
            let identity = state.identity(&back_end.name)?;
            luns.push(LunPlan { name: back_end.name.clone(), through, lun: back_end.lun, disk, identity });
        }
        let hosts = make_hosts(&instance.fabric, &lab, lab_paths)?;
        let ports = InitiatorPorts::new(state.instance(), state.initiator_ports()?);
        instance.services.volumes = Some(VolumeEngine::new(now, map, targets, hosts, luns, ports));
        VolumeAdmin::of(instance, now).keep_initiator_ports();
        for volume in kept {
            serve_kept(instance, &volume);
        }
        // Volumes of the lab that were never created.
        for spec in &live.volumes {
            let services = &mut instance.services;
            let there = services.volumes.as_ref().is_some_and(|engine| engine.map().find(&spec.name).is_some());
            let gone = agreement == Agreement::Ask && instance.keeper.state.was_declared(&spec.name)?;
            if !there && !gone {
                services.wanted_volumes.push(spec.clone());
            }
        }
        Ok(())
    }
}

/// Returns iSCSI back ends of the lab that the instance does not have. Changes nothing.
///
/// # Errors
/// A secret or the store that cannot be read.
pub(in crate::runtime) fn new_back_ends(instance: &Instance, lab: &Lab) -> Result<Vec<NewBackEnd>, UpError> {
    let state = &instance.keeper.state;
    let (lab_paths, wipes) = (LabPaths::of(lab), state.wipes()?);
    let known = |name: &str| instance.lab.live.back_ends.iter().any(|back_end| back_end.name == name);
    let mut new = Vec::new();
    for back_end in lab.live.back_ends.iter().filter(|back_end| !known(&back_end.name)) {
        let BackEndTarget::Iscsi(target) = &back_end.target else { continue };
        let of_it = wipes.iter().filter(|(name, ..)| *name == back_end.name);
        new.push(NewBackEnd {
            name: back_end.name.clone(),
            pool: PoolId(back_end.pool),
            target: remote(target, back_end.retry_for.to_span(), &lab_paths)?,
            lun: back_end.lun,
            identity: state.identity(&back_end.name)?,
            wipes: of_it.map(|(_, lba, blocks)| (*lba, *blocks)).collect(),
        });
    }
    Ok(new)
}

/// Returns the host of a port and its link if the host is another machine.
fn elsewhere(lab: &Lab, port: Wwpn) -> Option<(String, String)> {
    if lab.live.uplinks.contains_key(&port) {
        return None;
    }
    let links = lab.live.ethernet.keys().filter_map(|link| lab.links.get(*link));
    let mut ends = links.flat_map(|link| link.ends.iter().map(move |end| (link, end)));
    ends.find_map(|(link, end)| {
        let Node::Host(number) = end.node else { return None };
        let host = lab.hosts.get(usize::from(number))?;
        let is_own = host.hbas.get(usize::from(end.port)).is_some_and(|hba| hba.wwpn == port);
        is_own.then(|| (host.name.clone(), link.name.clone()))
    })
}

/// Adds a stored volume to its storage system.
fn serve_kept(instance: &mut Instance, volume: &KeptVolume) {
    let Instance { lab, lab_switches, services, keeper, .. } = instance;
    let Some((storage, lun)) = &volume.served else { return };
    let served = served(lab, lab_switches);
    let number = served.iter().position(|number| lab.storage[usize::from(*number)].name == *storage);
    let Some(system) = number.and_then(|number| services.systems.get_mut(number)) else {
        return tracing::error!(
            volume = volume.name,
            storage,
            "the volume is not served: this instance has no such storage system for volumes"
        );
    };
    let block_bytes = services.volumes.as_ref().and_then(|engine| engine.map().block_bytes(volume.id));
    let Some(block_bytes) = block_bytes else { return };
    let reservations = LabPaths::of(lab).volume_reservations(volume.id);
    let unit = unit_of(volume, keeper.state.instance(), block_bytes);
    if !system.put_volume(*lun, unit, volume.id, reservations) {
        tracing::error!(volume = volume.name, storage, lun, "the volume is not served: its LUN is in use");
    }
}

/// Converts a stored volume to the numbers of this map.
fn restored(map: &Map, kept: &KeptVolume) -> Result<(VolumeId, Volume), String> {
    let unknown = |what: &str, name: &str| format!("volume `{}`: the lab has no {what} `{name}`", kept.name);
    let pool = map.find_pool(&kept.pool).ok_or_else(|| unknown("pool", &kept.pool))?;
    let mut segments = Vec::new();
    for segment in &kept.segments {
        let mut columns = Vec::new();
        for (name, lba) in &segment.columns {
            let lun: Option<LunId> = map.luns().find(|(_, lun)| *lun.config.name == **name).map(|(id, _)| id);
            columns.push(LunBlock { lun: lun.ok_or_else(|| unknown("back end", name))?, lba: *lba });
        }
        let (column_blocks, stripe_blocks) = (segment.column_blocks, segment.stripe_blocks);
        segments.push(Segment { column_blocks, stripe_blocks, columns: columns.into() });
    }
    let layout =
        Layout::new(kept.blocks, segments.into()).map_err(|error| format!("volume `{}`: {error}", kept.name))?;
    Ok((kept.id, Volume { name: kept.name.as_str().into(), pool, shape: kept.shape, layout }))
}

fn disk_config(retry_for: Span) -> DiskConfig {
    DiskConfig { queue_depth: QUEUE_DEPTH, dev_loss: retry_for, busy_timeout: retry_for, ..DiskConfig::default() }
}

/// Returns the configuration of a target.
fn remote(target: &IscsiBackEnd, retry_for: Span, lab_paths: &LabPaths) -> Result<RemoteConfig, UpError> {
    let [own, target_proof] = credentials(lab_paths, &target.chap)?;
    Ok(RemoteConfig {
        portals: target.portals.clone(),
        target: target.name.clone(),
        initiator: target.initiator.clone(),
        own,
        target_proof,
        offers: Offers { header_digest: target.header_digest, data_digest: target.data_digest, ..Offers::default() },
        disk: disk_config(retry_for),
        session: SessionConfig {
            command_timeout: retry_for,
            abort_timeout: Span::from_secs(5),
            ping: Span::from_secs(5),
        },
    })
}
