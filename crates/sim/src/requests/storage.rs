//! Tables of the storage of a world: LUNs, virtual disks, back ends and sessions.

use crate::iscsi::{Machine, SessionSeen};
use crate::view;
use crate::world::World;
use crate::world::volumes::{BackPath, BackSeen, SwitchSeen, has_volumes, virtualization};
use sanloom_api::view::build::{LiveWhich, storage};
use sanloom_api::view::{CounterRow, CountersView, LunRow, LunsView, Table};
use sanloom_api::volume::{PathRow, PathsView, PortalRow, Served, SessionRow, SessionsView, VolumesView};
use sanloom_fc::san::{EthernetInterface, storage_of_port};

/// Returns a table of storage.
pub(super) fn table(world: &World, which: LiveWhich) -> Option<Table> {
    Some(match which {
        LiveWhich::Luns => Table::Luns(luns(world)),
        LiveWhich::Volumes => Table::Volumes(volumes(world, None)),
        LiveWhich::Paths => Table::Paths(paths(world)),
        LiveWhich::Sessions => Table::Sessions(sessions(world)),
        LiveWhich::Stats => Table::Counters(stats(world)),
        LiveWhich::Groups | LiveWhich::Counters | LiveWhich::Injections | LiveWhich::Captures => return None,
    })
}

fn luns(world: &World) -> LunsView {
    let lab = &world.lab;
    let shown = view::shown(world, None);
    let rows = (0u16..).zip(&lab.storage).zip(&world.storage.systems).flat_map(|((storage, config), node)| {
        let shown = &shown;
        let medium = match () {
            () if has_volumes(lab, storage) => "volume",
            () if config.ssd.is_some() => "ssd",
            () if config.disk.is_some() => "disk",
            () => "ram",
        };
        let units = (0..).take_while(|lun| node.device.unit_config(*lun).is_some());
        // A number below the last virtual disk may have no LUN.
        let luns = units.filter(move |lun| lab.lun(storage, *lun).is_some());
        luns.map(move |lun| LunRow {
            medium: medium.to_owned(),
            ..shown.lun(storage, lun, &node.device, !config.ports.is_empty())
        })
    });
    LunsView { luns: rows.collect() }
}

/// Virtual disks and pools of all virtualization switches.
pub(super) fn volumes(world: &World, name: Option<&str>) -> VolumesView {
    let mut all = VolumesView::default();
    for SwitchSeen { storage, volumes, units, .. } in virtualization(world) {
        let served = |id| {
            let lun = units.iter().position(|volume| *volume == Some(id))? as u16;
            Some(Served { storage: world.lab.storage[usize::from(storage)].name.clone(), lun: Some(lun) })
        };
        // Each switch has the map of the whole lab, and lists the virtual disks that it presents.
        // The first one lists also those that no storage system presents.
        let is_first = all.pools.is_empty();
        let spare = |name: &str| {
            is_first && world.lab.live.volumes.iter().any(|spec| spec.name == name && spec.storage.is_none())
        };
        let VolumesView { volumes, pools } = storage::volumes(&world.lab, volumes, name, served);
        all.volumes.extend(volumes.into_iter().filter(|row| row.served.is_some() || spare(&row.name)));
        if is_first {
            all.pools = pools;
        }
    }
    all
}

/// Back ends of all virtualization switches.
fn paths(world: &World) -> PathsView {
    let sessions: Vec<SessionSeen<'_>> = world.iscsi.iter().flat_map(|iscsi| iscsi.sessions_seen()).collect();
    let mut rows = Vec::new();
    for SwitchSeen { volumes, back_ends, .. } in virtualization(world) {
        let map = volumes.map();
        for ((id, lun), BackSeen { path, lun: number, block_bytes }) in map.luns().zip(back_ends) {
            let usage = map.lun_use(id);
            let lost = |what: &str| format!("the {what} is lost, or its login has not ended");
            let Some(path) = path else { continue };
            let (storage, row) = match path {
                BackPath::Session(session) => {
                    let Some(seen) = sessions.get(session as usize) else { continue };
                    let (portal, used) = (seen.plan.address.clone(), seen.target.is_some());
                    let state = "none".to_owned();
                    let row = PathRow {
                        target: seen.plan.login.target.clone().unwrap_or_default(),
                        portal: used.then(|| portal.clone()),
                        portals: vec![PortalRow { portal, used, state, ..PortalRow::default() }],
                        trouble: if used { String::new() } else { lost("session") },
                        logins: seen.connections[0],
                        lost: seen.connections[1],
                        ..PathRow::default()
                    };
                    (Some(seen.plan.storage), row)
                }
                BackPath::Fabric(target, port_id) => {
                    let row = PathRow {
                        target: target.to_string(),
                        portal: port_id.map(|port_id| port_id.to_string()),
                        trouble: if port_id.is_some() { String::new() } else { lost("path") },
                        ..PathRow::default()
                    };
                    (storage_of_port(&world.lab, target), row)
                }
            };
            let blocks = storage.and_then(|storage| world.lab.lun(storage, number)).map_or(0, |lun| lun.blocks);
            rows.push(PathRow {
                back_end: lun.config.name.to_string(),
                pool: map.pool(lun.config.pool).map_or_else(String::new, |pool| pool.name.to_string()),
                lun: number,
                size_bytes: blocks * u64::from(block_bytes),
                extents: usage.and_then(|usage| usage.extents).unwrap_or(0),
                used: usage.map_or(0, |usage| usage.used),
                ..row
            });
        }
    }
    PathsView { paths: rows }
}

fn sessions(world: &World) -> SessionsView {
    let interfaces = world.lab.ethernet_interfaces();
    let name = |number: u16| {
        let interface: Option<&EthernetInterface> = interfaces.get(usize::from(number));
        interface.map_or_else(String::new, |interface| interface.end.name(&world.lab))
    };
    let rows = world.iscsi.iter().flat_map(|iscsi| iscsi.sessions_seen()).filter_map(|seen| {
        Some(SessionRow {
            own: matches!(seen.plan.initiator, Machine::Storage(_)),
            peer: name(seen.plan.interfaces[0]),
            portal: seen.plan.address.clone(),
            target: seen.plan.login.target.clone().unwrap_or_default(),
            ..storage::session(seen.target?)
        })
    });
    SessionsView { sessions: rows.collect() }
}

/// Counters of virtualization switches: jobs of hosts, and requests to back ends.
fn stats(world: &World) -> CountersView {
    let rows = virtualization(world).map(|SwitchSeen { storage, volumes, waiting, .. }| {
        let jobs = volumes.counters();
        let counters = [
            ("jobs", jobs.jobs),
            ("jobs open", volumes.open_jobs() as u64),
            ("jobs split", jobs.split),
            ("jobs failed", jobs.failed),
            ("jobs that waited for others in their range", jobs.ordered),
            ("requests to back ends", jobs.requests),
            ("requests that wait to be repeated", waiting),
        ];
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
        CounterRow { of: world.lab.storage[usize::from(storage)].name.clone(), counters }
    });
    CountersView { counters: rows.collect() }
}
