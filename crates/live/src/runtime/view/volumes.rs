//! Tables of virtual disks, back ends and sessions.

use super::Tables;
use crate::volumes::Through;
use sanloom_api::control::Answer;
use sanloom_api::view::build::storage;
use sanloom_api::view::{CounterRow, CountersView, Table};
use sanloom_api::volume::{CarriedRow, HostPortRow, PathRow, PathsView, SessionRow, SessionsView, VolumesView};
use sanloom_fc::config::BackEndTarget;
use sanloom_scsi::map::LunId;
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
        storage::volumes(self.lab, engine.volumes(), name, |id| self.services.served_by(id))
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
            let key = session.key();
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
                target: server.target_name(key.target).to_owned(),
                forwarded: CarriedRow {
                    commands: forwarded.forward.forwarded,
                    read_bytes: forwarded.forward.read_bytes,
                    written_bytes: forwarded.forward.written_bytes,
                },
                back_ends: forwarded.ready,
                ..storage::session(session)
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
