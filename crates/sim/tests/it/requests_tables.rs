//! Tables of the storage of a running world.

use crate::requests::Operated;
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::LiveWhich;
use sanloom_api::view::{CountersView, GroupsView, LunsView, Table};
use sanloom_api::volume::{PathsView, RunRow, Served, SessionsView, VolumeAction, VolumesView};
use std::path::Path;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(path).unwrap()
}

impl Operated {
    fn live(&mut self, which: LiveWhich) -> Table {
        self.table(ShowTable::Live(which))
    }

    fn luns(&mut self) -> LunsView {
        let Table::Luns(view) = self.live(LiveWhich::Luns) else { panic!("no LUNs") };
        view
    }

    fn volumes(&mut self, name: Option<&str>) -> VolumesView {
        let name = name.map(str::to_owned);
        let Answer::View(view) = self.ask(Request::Volume { action: VolumeAction::Show { name } }) else {
            panic!("no view")
        };
        let Table::Volumes(view) = view.table else { panic!("no volumes") };
        view
    }

    fn paths(&mut self) -> PathsView {
        let Table::Paths(view) = self.live(LiveWhich::Paths) else { panic!("no paths") };
        view
    }

    fn sessions(&mut self) -> SessionsView {
        let Table::Sessions(view) = self.live(LiveWhich::Sessions) else { panic!("no sessions") };
        view
    }

    fn stats(&mut self) -> CountersView {
        let Table::Counters(view) = self.live(LiveWhich::Stats) else { panic!("no counters") };
        view
    }
}

#[test]
fn tables_show_the_virtual_disks_of_a_simulated_switch_their_back_ends_and_sessions() {
    let mut lab = Operated::of(&example("iscsi-switch.toml"));
    lab.run(50);
    let luns: Vec<_> =
        lab.luns().luns.into_iter().map(|row| (row.storage, row.lun, row.size_bytes, row.medium)).collect();
    let row = |storage: &str, lun, mib: u64, medium: &str| (storage.to_owned(), lun, mib << 20, medium.to_owned());
    assert_eq!(
        luns,
        [
            row("disk1", 0, 1024, "ram"),
            row("disk2", 0, 1024, "ram"),
            row("switch", 0, 1200, "volume"),
            row("switch", 1, 512, "volume")
        ]
    );

    let view = lab.volumes(None);
    let pool = &view.pools[0];
    // 1200 MiB and 512 MiB of 2 GiB less what a LUN keeps for itself, in extents of 4 MiB.
    assert_eq!((&*pool.name, pool.used), ("disks", 300 + 128));
    for (volume, lun) in view.volumes.iter().zip([("striped", 1), ("linear", 0)]) {
        assert_eq!(
            (&*volume.name, &volume.served),
            (lun.0, &Some(Served { storage: "switch".to_owned(), lun: Some(lun.1) }))
        );
        let commands = volume.conventional.commands + volume.forwarded.commands;
        assert!(commands > 100 && volume.runs.is_empty(), "{volume:?}");
    }
    let striped = lab.volumes(Some("striped"));
    assert_eq!(striped.volumes[0].runs[0].places.len(), 2);

    let paths = lab.paths().paths;
    assert_eq!(paths.iter().map(|path| &*path.back_end).collect::<Vec<_>>(), ["first", "second"]);
    assert!(paths.iter().all(|path| path.trouble.is_empty() && path.size_bytes == 1 << 30), "{paths:?}");
    assert_eq!(paths[0].portal.as_deref(), Some("127.0.0.1:3261"));
    assert_eq!(paths.iter().map(|path| path.used).sum::<u64>(), pool.used);

    let sessions = lab.sessions().sessions;
    let own: Vec<bool> = sessions.iter().map(|session| session.own).collect();
    // A session of each path with each back end.
    assert_eq!(own, [false, true, true, true, true]);
    // Long reads are of both back ends, and end in the switch.
    assert!(view.volumes[0].conventional.commands > 10 && view.volumes[0].forwarded.commands > 100);
    // The switch reads from its back ends what the host reads from the switch, but for the data in
    // flight: up to a read of 4 MiB and those of 64 KiB.
    let read =
        |own| sessions.iter().filter(|session| session.own == own).map(|session| session.read_bytes).sum::<u64>();
    assert!(read(false) > 1 << 20 && read(true).abs_diff(read(false)) <= 8 << 20, "{sessions:?}");

    let stats = lab.stats().counters;
    let counter = |name: &str| stats[0].counters[name];
    assert_eq!(stats[0].of, "switch");
    let commands: u64 = view.volumes.iter().map(|volume| volume.conventional.commands).sum();
    assert!(counter("jobs") >= commands && counter("requests to back ends") >= counter("jobs"), "{stats:?}");
}

#[test]
fn luns_show_their_model_and_what_a_mask_permits() {
    let text = r#"
[run]
duration = "50ms"
[switch.sw1]
[host."h{1..2}"]
[storage.array]
luns = 2
disk = "cheetah-9lp"
[storage.flat]
[[link]]
from = "h{1..2}"
to = "sw1"
[[link]]
from = "array"
to = "sw1"
[[link]]
from = "flat"
to = "sw1"
[[mask]]
hosts = "h1"
targets = "array:lun1"
[workload.reads]
hosts = "h1"
targets = "array:lun1"
"#;
    let mut lab = Operated::of(text);
    let luns = lab.luns().luns;
    let seen: Vec<_> =
        luns.iter().map(|row| (&*row.storage, row.lun, &*row.medium, row.everybody, row.seen_by.join(","))).collect();
    let none = String::new();
    assert_eq!(
        seen,
        [
            ("array", 0, "disk", false, none.clone()),
            ("array", 1, "disk", false, "h1".to_owned()),
            ("flat", 0, "ram", true, none)
        ]
    );
    assert_eq!(lab.live(LiveWhich::Groups), Table::Groups(GroupsView::default()));
    assert!(lab.sessions().sessions.is_empty() && lab.paths().paths.is_empty() && lab.stats().counters.is_empty());
    lab.refused(Request::Volume { action: VolumeAction::Show { name: Some("v".to_owned()) } }, "no volume `v`");
    lab.refused(Request::Volume { action: VolumeAction::Delete { name: "v".to_owned() } }, "without --simulated");
}

#[test]
fn target_port_groups_are_refused_where_a_live_run_would_have_them() {
    let mut lab = Operated::of(&example("iscsi-alua.toml"));
    let groups = Request::Show { table: ShowTable::Live(LiveWhich::Groups), switch: None };
    lab.refused(groups, "active/optimized");
}

#[test]
fn virtual_disks_of_two_switches_in_one_pool_have_different_blocks() {
    let second = r#"
[storage.other]
medium = "volumes"
iscsi = { portals = "127.0.0.1:3263" }

[volume.more]
pool = "disks"
size = "256MiB"
storage = "other"
lun = 0
"#;
    let mut lab = Operated::of(&(example("iscsi-switch.toml") + second));
    let mut places = |name: &str| -> Vec<(String, std::ops::Range<u64>)> {
        let runs = lab.volumes(Some(name)).volumes.remove(0).runs;
        let of_run = |run: RunRow| {
            let each = run.bytes / run.places.len() as u64;
            run.places.into_iter().map(move |(back_end, at)| (back_end, at..at + each))
        };
        runs.into_iter().flat_map(of_run).collect()
    };
    let (more, others) = (places("more"), [places("striped"), places("linear")].concat());
    assert_eq!(more.iter().map(|(_, range)| range.end - range.start).sum::<u64>(), 256 << 20);
    for ((back_end, own), (other_end, other)) in
        more.iter().flat_map(|own| others.iter().map(move |other| (own, other)))
    {
        let overlap = back_end == other_end && own.start < other.end && other.start < own.end;
        assert!(!overlap, "{own:?} and {other:?} of {back_end}");
    }
    assert_eq!(lab.volumes(None).volumes.len(), 3, "each virtual disk is listed once");
}
