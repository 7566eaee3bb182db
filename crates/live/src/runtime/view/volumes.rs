//! Tables of virtual disks, back ends and sessions.

use super::Tables;
use crate::volumes::Through;
use sanloom_api::control::Answer;
use sanloom_api::view::{CounterRow, CountersView, Table};
use sanloom_api::volume::{
    CarriedRow, HostPortRow, PathRow, PathsView, PoolRow, RunRow, SessionRow, SessionsView, VolumeRow, VolumesView,
};
use sanloom_fc::config::BackEndTarget;
use sanloom_scsi::map::{LunId, PoolId, Shape, Volume, VolumeId};
use sanloom_scsi::volume::Path;
use sanloom_wire::FcId;
use std::collections::BTreeMap;
use std::net::SocketAddr;

impl Tables<'_> {
    pub fn show_volumes(&self, name: Option<&str>) -> Answer {
        let view = self.volumes(name);
        if let Some(name) = name.filter(|_| view.volumes.is_empty()) {
            let reason = format!("there is no volume `{name}`; `sanloom volume show` lists them");
            return Answer::failed(reason);
        }
        Answer::View(self.view(Table::Volumes(view)))
    }

    /// Volumes and pools; with the runs of a volume that is requested by name.
    pub fn volumes(&self, name: Option<&str>) -> VolumesView {
        let Some(engine) = &self.services.volumes else { return VolumesView::default() };
        let map = engine.map();
        let pools = self.lab.live.pools.iter().zip((0..).map(PoolId)).map(|(pool, id)| {
            let usage = map.pool_use(id);
            PoolRow {
                name: pool.name.clone(),
                extent_bytes: pool.extent_bytes,
                extents: usage.extents,
                used: usage.used,
            }
        });
        let pools = pools.collect();
        let selected = map.volumes().filter(|(_, volume)| name.is_none_or(|name| *volume.name == *name));
        VolumesView {
            volumes: selected.map(|(id, volume)| self.volume_row(id, volume, name.is_some())).collect(),
            pools,
        }
    }

    fn volume_row(&self, id: VolumeId, volume: &Volume, with_runs: bool) -> VolumeRow {
        let map = self.services.volumes.as_ref().map(|engine| engine.map());
        let pool = map.and_then(|map| map.pool(volume.pool));
        let block_bytes = map.and_then(|map| map.block_bytes(id)).map_or(0, u64::from);
        let (width, stripe_blocks) = match volume.shape {
            Shape::Linear => (1, 0),
            Shape::Striped { width, stripe_blocks } => (width, stripe_blocks),
        };
        let epoch = map.and_then(|map| map.epoch(id));
        let name = |lun: LunId| {
            let found = map.and_then(|map| map.luns().find(|(id, _)| *id == lun));
            found.map_or_else(String::new, |(_, lun)| lun.config.name.to_string())
        };
        let mut runs = Vec::new();
        let mut at_bytes = 0;
        for segment in volume.layout.segments().iter().filter(|_| with_runs) {
            let bytes = segment.blocks().unwrap_or(0) * block_bytes;
            let places = segment.columns.iter().map(|place| (name(place.lun), place.lba * block_bytes)).collect();
            runs.push(RunRow { at_bytes, bytes, places });
            at_bytes += bytes;
        }
        VolumeRow {
            name: volume.name.to_string(),
            pool: pool.map_or_else(String::new, |pool| pool.name.to_string()),
            size_bytes: volume.layout.blocks() * block_bytes,
            width,
            stripe_bytes: u64::from(stripe_blocks) * block_bytes,
            served: self.services.served_by(id),
            epoch: epoch.map_or(0, |epoch| epoch.0),
            tasks: epoch.and_then(|epoch| map?.tasks(epoch)).unwrap_or(0),
            conventional: self.carried(id, Path::Conventional),
            forwarded: self.carried(id, Path::Forwarding),
            runs,
        }
    }

    fn carried(&self, volume: VolumeId, path: Path) -> CarriedRow {
        let carried =
            self.services.volumes.as_ref().map(|engine| engine.volumes().carried(volume, path)).unwrap_or_default();
        CarriedRow { commands: carried.commands, read_bytes: carried.read_bytes, written_bytes: carried.written_bytes }
    }

    pub fn paths(&self) -> PathsView {
        let Some(engine) = &self.services.volumes else { return PathsView::default() };
        let map = engine.map();
        let rows = engine.back_ends().zip((0..).map(LunId)).map(|(seen, id)| {
            let usage = map.lun_use(id);
            let pool = map.luns().find(|(lun, _)| *lun == id).and_then(|(_, lun)| map.pool(lun.config.pool));
            PathRow {
                back_end: seen.plan.name.clone(),
                pool: pool.map_or_else(String::new, |pool| pool.name.to_string()),
                target: seen.target,
                lun: seen.plan.lun,
                portal: seen.path.as_ref().ok().cloned(),
                redirected_by: seen.redirected_by.map(|portal| portal.to_string()),
                host_port: seen.port.map(|port| HostPortRow {
                    name: port.name.to_owned(),
                    port_name: port.wwpn.to_string(),
                    port_id: (port.port_id != FcId::ZERO).then(|| port.port_id.to_string()),
                }),
                portals: seen.portals,
                trouble: seen.path.err().unwrap_or_default(),
                size_bytes: seen.found.map_or(0, |found| found.size_bytes()),
                identity: seen.plan.identity.clone().unwrap_or_default(),
                extents: usage.and_then(|usage| usage.extents).unwrap_or(0),
                used: usage.map_or(0, |usage| usage.used),
                logins: seen.sessions[0],
                lost: seen.sessions[1],
                moves: seen.sessions[2],
                forwarding: match (seen.plan.through, &self.services.iscsi) {
                    (Through::Session(target), Some(server)) => server.forwarding_to(target),
                    _ => 0,
                },
            }
        });
        PathsView { paths: rows.collect() }
    }

    pub fn sessions(&self) -> SessionsView {
        let Some(server) = &self.services.iscsi else { return SessionsView::default() };
        let rows = server.sessions().map(|(session, forwarding, [peer, portal])| {
            let forwarded = forwarding.unwrap_or_default();
            let (key, counters, parameters) = (session.key(), session.counters(), session.parameters());
            let back_ends = &self.lab.live.back_ends;
            let is_ours = |target: &BackEndTarget| match target {
                BackEndTarget::Iscsi(target) => target.initiator == key.initiator,
                BackEndTarget::Fcp(_) => false,
            };
            let ours = back_ends.iter().any(|back_end| is_ours(&back_end.target));
            let port =
                self.services.volumes.as_ref().is_some_and(|engine| engine.ports().is_own(back_ends.len(), key.isid));
            let address = |address: Option<SocketAddr>| address.map_or_else(String::new, |at| at.to_string());
            SessionRow {
                own: ours && port,
                peer: address(peer),
                portal: address(portal),
                initiator: key.initiator.clone(),
                isid: key.isid.iter().map(|byte| format!("{byte:02x}")).collect(),
                target: server.target_name(key.target).to_owned(),
                tasks: session.tasks() as u64,
                commands: counters.commands,
                read_bytes: counters.read_bytes,
                written_bytes: counters.written_bytes,
                digests: [parameters.header_digest, parameters.data_digest],
                forwarded: CarriedRow {
                    commands: forwarded.forward.forwarded,
                    read_bytes: forwarded.forward.read_bytes,
                    written_bytes: forwarded.forward.written_bytes,
                },
                back_ends: forwarded.ready,
            }
        });
        SessionsView { sessions: rows.collect() }
    }

    /// Counters: jobs of hosts, and requests to each back end.
    pub fn stats(&self) -> CountersView {
        let Some(engine) = &self.services.volumes else { return CountersView::default() };
        let row = |of: String, counters: &[(&str, u64)]| {
            let counters: BTreeMap<String, u64> =
                counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            CounterRow { of, counters }
        };
        let jobs = engine.counters();
        let mut rows = vec![row(
            "volumes".to_owned(),
            &[
                ("jobs", jobs.jobs),
                ("jobs open", engine.open_jobs() as u64),
                ("jobs split", jobs.split),
                ("jobs failed", jobs.failed),
                ("jobs that waited for others in their range", jobs.ordered),
                ("requests to back ends", jobs.requests),
            ],
        )];
        if let Some(server) = &self.services.iscsi {
            let all = server.all_forwarded();
            let sessions = [
                ("back-end sessions", all.up),
                ("back-end sessions begun", all.logins),
                ("back-end sessions lost", all.lost),
            ];
            let counters: Vec<_> = all.forward.rows().chain(sessions).collect();
            rows.push(row("forwarding".to_owned(), &counters));
        }
        for seen in engine.back_ends() {
            let counters = &seen.counters;
            rows.push(row(
                seen.plan.name.clone(),
                &[
                    ("requests", counters.requests),
                    ("requests failed", counters.failed),
                    ("commands", counters.commands),
                    ("commands repeated", counters.retries),
                    ("commands delayed", counters.delays),
                    ("commands not answered in time", counters.timeouts),
                    ("unit attentions", counters.unit_attentions),
                    ("resets", counters.resets),
                    ("paths lost", counters.paths_lost),
                ],
            ));
        }
        CountersView { counters: rows }
    }
}
