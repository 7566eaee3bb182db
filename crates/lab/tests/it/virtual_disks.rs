//! Places of virtual disks on the back ends of a lab.

use sanloom_fc::san::{Lab, VirtualDisks};
use std::collections::BTreeSet;

const LAB: &str = r#"
[storage.disk1]
lun_size = "64MiB"
iscsi = { portals = "127.0.0.1:3261", name = "iqn.2026-11.example.sanloom:disk1" }

[storage.disk2]
lun_size = "64MiB"
iscsi = { portals = "127.0.0.1:3262", name = "iqn.2026-11.example.sanloom:disk2" }

[storage."virtual{1..2}"]
medium = "volumes"
iscsi = { portals = "127.0.0.{2..3}:3260" }

[pool.disks]
extent = "4MiB"

[back_end.b1]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk1"
portals = "127.0.0.1:3261"

[back_end.b2]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk2"
portals = "127.0.0.1:3262"

[volume.first]
pool = "disks"
size = "16MiB"
storage = "virtual1"

[volume.second]
pool = "disks"
size = "16MiB"
storage = "virtual2"

[host.server]

[workload.reads]
hosts = "server"
targets = "virtual{1..2}"
"#;

fn lab() -> Lab {
    sanloom_lab::load("lab.toml", LAB, &[]).unwrap().lab
}

/// Blocks of the back ends, `(lun, lba)`, on which a storage system has virtual disks.
fn places(lab: &Lab, storage: u16) -> BTreeSet<(u16, u64)> {
    let disks = VirtualDisks::new(lab, &lab.live, storage, |_| true);
    let mut places = BTreeSet::new();
    for id in disks.volumes.values() {
        for segment in disks.map.volume(*id).unwrap().layout.segments() {
            for column in &segment.columns {
                places.extend((column.lba..column.lba + segment.column_blocks).map(|lba| (column.lun.0, lba)));
            }
        }
    }
    places
}

#[test]
fn two_storage_systems_in_one_pool_have_different_blocks() {
    let lab = lab();
    let number = |name: &str| lab.storage.iter().position(|storage| storage.name == name).unwrap() as u16;
    let (first, second) = (places(&lab, number("virtual1")), places(&lab, number("virtual2")));
    assert_eq!((first.len(), second.len()), (32_768, 32_768), "16 MiB in blocks of 512 bytes");
    assert!(first.is_disjoint(&second));
}

#[test]
fn back_ends_that_are_not_reached_have_a_number_and_no_extents() {
    let lab = lab();
    let disks = VirtualDisks::new(&lab, &lab.live, 2, |lun| lun.back_end == 1);
    assert_eq!(disks.luns.len(), 2);
    for id in disks.volumes.values() {
        let volume = disks.map.volume(*id).unwrap();
        let luns: BTreeSet<u16> = volume
            .layout
            .segments()
            .iter()
            .flat_map(|segment| segment.columns.iter().map(|column| column.lun.0))
            .collect();
        assert_eq!(luns, BTreeSet::from([1]));
    }
}
