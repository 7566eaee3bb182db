//! The store of zones and addresses, and its agreement with a lab file.

use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{Transaction, ZoneDatabase, ZoneDefinition, ZoneEdit, ZoneLimits};
use sanloom_live::state::{KeptSegment, KeptVolume, KeptZones, StateError, StateStore, differences, merge};
use sanloom_scsi::map::{Shape, VolumeId};
use sanloom_wire::{FcId, Wwpn};
use std::fs;
use std::path::PathBuf;
use std::thread;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sanloom-state-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn edited(base: &ZoneDatabase, edits: Vec<ZoneEdit>) -> ZoneDatabase {
    let mut transaction = Transaction::begin(base, ZoneLimits::default());
    edits.into_iter().for_each(|edit| transaction.apply(edit).unwrap());
    transaction.commit().unwrap()
}

fn zone(ports: &[u16]) -> ZoneDefinition {
    let member = |port: &u16| ZoneMember::DomainPort { domain: 1, port: *port };
    let members = ports.iter().map(member).map(sanloom_fc::zoning::MemberRef::Member).collect();
    ZoneDefinition { members, principals: Vec::new() }
}

/// Zones `a` and `b`, in force as `day`.
fn day() -> ZoneDatabase {
    let create = |name: &str, ports: &[u16]| ZoneEdit::CreateZone { name: name.to_owned(), zone: zone(ports) };
    let zones = vec!["a".to_owned(), "b".to_owned()];
    edited(
        &ZoneDatabase::default(),
        vec![
            create("a", &[0, 1]),
            create("b", &[0, 2]),
            ZoneEdit::CreateConfig { name: "day".to_owned(), zones },
            ZoneEdit::Enable("day".to_owned()),
        ],
    )
}

#[test]
fn an_instance_has_a_permanent_and_unique_number() {
    let folder = folder("number");
    let number = |name: &str| StateStore::open(&folder.join(name)).unwrap().instance();
    let first = number("first");
    assert_eq!(number("first"), first);
    assert_ne!(number("second"), first);
}

#[test]
fn stored_records_are_present_when_the_store_is_reopened() {
    let folder = folder("again");
    let path = folder.join("state.sqlite");
    let store = StateStore::open(&path).unwrap();
    assert_eq!(store.zones("sw1").unwrap(), None);
    let (empty, day) = (ZoneDatabase::default(), day());
    store.agree("sw1", &KeptZones { lab: empty.clone(), committed: empty.clone(), previous: None }).unwrap();
    store.prepare("sw1", &day).unwrap();
    // A prepared database is not committed.
    assert_eq!(StateStore::open(&path).unwrap().zones("sw1").unwrap().unwrap().committed, empty);
    store.commit("sw1", &day, Some(&empty)).unwrap();
    let (name, id) = (Wwpn(0x2000_0000_0000_0001), FcId::new(0x010203));
    store.keep_address("sw1", name, FcId::new(0x010204)).unwrap();
    store.keep_address("sw1", name, id).unwrap();
    store.keep_address("sw2", name, id).unwrap();
    drop(store);
    let again = StateStore::open(&path).unwrap();
    let kept = KeptZones { lab: empty.clone(), committed: day, previous: Some(empty) };
    assert_eq!(again.zones("sw1").unwrap(), Some(kept));
    assert_eq!(again.zones("sw2").unwrap(), None);
    assert_eq!(again.addresses("sw1").unwrap(), [(name, id)].into());
    again.forget_addresses("sw1", Some(&[name])).unwrap();
    assert!(again.addresses("sw1").unwrap().is_empty());
    assert_eq!(again.addresses("sw2").unwrap().len(), 1);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn blocks_of_a_deleted_volume_are_stored_until_they_are_wiped() {
    let path = folder("wipes").join("state.sqlite");
    let store = StateStore::open(&path).unwrap();
    let segment = |column_blocks, columns: &[(&str, u64)]| KeptSegment {
        column_blocks,
        stripe_blocks: column_blocks,
        columns: columns.iter().map(|(name, lba)| ((*name).to_owned(), *lba)).collect(),
    };
    let volume = KeptVolume {
        id: VolumeId(3),
        name: "v".to_owned(),
        pool: "p".to_owned(),
        shape: Shape::Linear,
        blocks: 64,
        segments: vec![segment(16, &[("a", 0), ("b", 32)]), segment(32, &[("a", 64)])],
        thin: false,
        write_back: false,
        served: None,
    };
    store.keep_volume(&volume, false).unwrap();
    assert_eq!(store.wipes().unwrap(), []);
    store.drop_volume(VolumeId(3)).unwrap();
    drop(store);
    let store = StateStore::open(&path).unwrap();
    let wipes = || {
        let all = store.wipes().unwrap().into_iter();
        all.map(|(name, lba, blocks)| format!("{name} {lba}+{blocks}")).collect::<Vec<_>>()
    };
    assert_eq!(wipes(), ["a 0+16", "a 64+32", "b 32+16"]);
    // In the middle of a run, and over the ends of two.
    store.wiped("a", 72, 8).unwrap();
    assert_eq!(wipes(), ["a 0+16", "a 64+8", "a 80+16", "b 32+16"]);
    store.wiped("a", 8, 60).unwrap();
    assert_eq!(wipes(), ["a 0+8", "a 68+4", "a 80+16", "b 32+16"]);
    store.wiped("a", 0, 100).unwrap();
    store.wiped("b", 32, 16).unwrap();
    assert_eq!(wipes(), [""; 0]);
}

#[test]
fn the_initiator_ports_of_an_instance_are_stored_until_it_has_none() {
    let path = folder("initiator-ports").join("state.sqlite");
    let store = StateStore::open(&path).unwrap();
    assert_eq!(store.initiator_ports().unwrap(), 0);
    store.keep_initiator_ports(16).unwrap();
    store.keep_initiator_ports(32).unwrap();
    drop(store);
    let store = StateStore::open(&path).unwrap();
    assert_eq!(store.initiator_ports().unwrap(), 32);
    store.keep_initiator_ports(0).unwrap();
    assert_eq!(store.initiator_ports().unwrap(), 0);
}

#[test]
fn an_address_belongs_to_one_name() {
    let folder = folder("address");
    let store = StateStore::open(&folder.join("state.sqlite")).unwrap();
    let id = FcId::new(0x010203);
    store.keep_address("sw1", Wwpn(1), id).unwrap();
    store.keep_address("sw1", Wwpn(2), id).unwrap();
    assert_eq!(store.addresses("sw1").unwrap(), [(Wwpn(2), id)].into());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_unusable_store_reports_the_reason() {
    let folder = folder("bad");
    let nowhere = StateStore::open(&folder.join("no/state.sqlite"));
    assert!(matches!(nowhere, Err(StateError::Sqlite { .. })), "{nowhere:?}");
    let path = folder.join("state.sqlite");
    fs::write(&path, "this is no database, and yet it is long enough to be looked at as one: ".repeat(20)).unwrap();
    let no_database = StateStore::open(&path);
    assert!(matches!(no_database, Err(StateError::Sqlite { .. })), "{no_database:?}");
    fs::remove_file(&path).unwrap();
    drop(StateStore::open(&path).unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("INSERT INTO zoning (switch, lab, committed) VALUES ('sw1', '{}', '7')", []).unwrap();
    let damaged = StateStore::open(&path).unwrap().zones("sw1");
    assert!(matches!(&damaged, Err(StateError::Damaged { switch, .. }) if switch == "sw1"), "{damaged:?}");
    raw.pragma_update(None, "user_version", 7).unwrap();
    assert!(matches!(StateStore::open(&path), Err(StateError::Newer { version: 7, .. })));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_locked_by_another_process_soon_returns_an_error() {
    let folder = folder("busy");
    let path = folder.join("state.sqlite");
    let store = StateStore::open(&path).unwrap();
    store.hurry().unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The store with the long time limit still waits after the other one has returned its error.
    let waits = thread::spawn({
        let path = path.clone();
        move || StateStore::open(&path).unwrap().keep_address("sw1", Wwpn(2), FcId::new(0x01_0001))
    });
    let kept = store.keep_address("sw1", Wwpn(1), FcId::new(0x01_0000));
    assert!(matches!(kept, Err(StateError::Sqlite { .. })), "{kept:?}");
    assert!(!waits.is_finished(), "a store that hurries has waited as long as another one");
    other.execute_batch("ROLLBACK").unwrap();
    let _ = waits.join().unwrap();
    store.keep_address("sw1", Wwpn(1), FcId::new(0x01_0000)).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_deleted_record_rejects_writes() {
    let folder = folder("gone");
    let path = folder.join("state.sqlite");
    let store = StateStore::open(&path).unwrap();
    let zones = KeptZones { lab: day(), committed: day(), previous: None };
    store.agree("sw1", &zones).unwrap();
    store.prepare("sw1", &day()).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute("DELETE FROM zoning", []).unwrap();
    for kept in [store.prepare("sw1", &day()), store.commit("sw1", &day(), None)] {
        assert!(matches!(&kept, Err(StateError::Missing { switch, .. }) if switch == "sw1"), "{kept:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn changes_of_the_file_are_applied_to_the_store_and_those_of_the_store_are_kept() {
    let before = day();
    let add = |name: &str, ports: &[u16]| ZoneEdit::AddToZone { name: name.to_owned(), zone: zone(ports) };
    let create = |name: &str| ZoneEdit::CreateZone { name: name.to_owned(), zone: zone(&[7, 8]) };
    let enable = || ZoneEdit::Enable("day".to_owned());
    let file = edited(&before, vec![add("a", &[3]), create("of-file"), enable()]);
    let kept =
        edited(&before, vec![add("b", &[4]), create("of-store"), ZoneEdit::SetDefault(ZoneDefault::Open), enable()]);
    let merged = merge(&before, &file, &kept);
    let expected = edited(
        &before,
        vec![
            add("a", &[3]),
            add("b", &[4]),
            create("of-file"),
            create("of-store"),
            ZoneEdit::SetDefault(ZoneDefault::Open),
            enable(),
        ],
    );
    assert_eq!(merged, expected);
    assert_eq!(merge(&before, &before, &kept), kept);
    assert_eq!(merge(&before, &file, &before), file);
    let lines = differences(&file, &kept, ["the file", "the store"]);
    let expected = [
        "zone `a`: differs",
        "zone `b`: differs",
        "zone `of-file`: only in the file",
        "zone `of-store`: only in the store",
        "in force: `day` in both, with other zones or members",
        "default zone: closed in the file, open in the store",
    ];
    assert_eq!(lines, expected);
    assert!(differences(&file, &file, ["the file", "the store"]).is_empty());
}
