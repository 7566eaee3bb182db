//! Contents of an instance's store after crashes, and reconciliation with a changed lab file.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use sanloom_api::control::{Answer, ErrorKind};
use sanloom_api::zone_database::Edit;
use sanloom_live::state::StateStore;
use sanloom_test_support::wait;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const SWITCH: &str = "[switch.sw1]\naddressing = \"flat\"\nlearn_addresses = true\n";

fn lab() -> String {
    two_disks(SWITCH, "sw1")
}

/// Commits aliases at a switch until it has crashed. `done` counts the acknowledged commits.
fn commit_until_it_crashes(instance: &Instance, switch: Option<&str>, done: &AtomicU32) {
    for number in done.load(Ordering::SeqCst).. {
        match instance.commit_alias(switch, &format!("a{number}"), vec![format!("1,{number}")]) {
            Ok(Answer::Zones(_)) => {}
            // The switch has crashed.
            Err(_) => return,
            Ok(other) => panic!("{other:?}"),
        }
        done.store(number + 1, Ordering::SeqCst);
    }
}

/// Waits until another commit is acknowledged.
fn wait_for_commit(done: &AtomicU32) {
    let before = done.load(Ordering::SeqCst);
    wait::until(|| format!("a commit after {before}"), || done.load(Ordering::SeqCst) > before);
}

/// After a kill at any moment, the restarted switch has every acknowledged change, and at most the
/// one in flight.
#[test]
fn no_crash_loses_a_committed_change() {
    const CRASHES: u64 = 20;
    let mut instance = Instance::start("crash", &lab());
    let done = AtomicU32::new(0);
    for round in 0..CRASHES {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| commit_until_it_crashes(&instance, None, &done));
            // The times differ by less than the duration of a commit.
            wait_for_commit(&done);
            std::thread::sleep(Duration::from_micros(round * 1_700));
            instance.crash();
            writer.join().unwrap();
        });
        instance.kill();
        instance.up(&[]);
        let committed = instance.zones("sw1").committed;
        let answered = done.load(Ordering::SeqCst);
        let kept = committed.aliases.len() as u32;
        assert!((answered..=answered + 1).contains(&kept), "{kept} kept, {answered} answered");
        assert!((0..kept).all(|number| committed.aliases.contains_key(&format!("a{number}"))));
        assert_eq!(committed.effective.as_ref().map(|effective| effective.zones.len()), Some(1));
        done.store(kept, Ordering::SeqCst);
    }
    let all = done.load(Ordering::SeqCst);
    assert!(all > CRASHES as u32, "{all} changes between {CRASHES} crashes");
}

#[test]
fn a_changed_lab_file_is_merged_or_replaces_the_store_or_is_rejected() {
    let mut instance = Instance::start("differs", &lab());
    instance.write("edits.toml", "[[edit]]\naction = \"create\"\nalias = \"of-store\"\nmembers = \"disk1\"\n");
    instance.run("zone edit LAB --edit @edits.toml").good();
    instance.run("zone commit LAB").good();
    instance.stop();
    // The file is unchanged, so the store is used.
    instance.up(&[]);
    assert!(instance.zones("sw1").committed.aliases.contains_key("of-store"));
    instance.stop();

    let changed = format!("{}\n[[zone]]\nname = \"z2\"\nmembers = \"disk2\"\n", lab());
    instance.write_lab(&changed);
    let refused = instance.run("up LAB");
    for part in ["zone `z2`: only in the lab file", "alias `of-store`: only in the store", "--apply", "--reset"] {
        assert!(refused.stderr.contains(part), "no {part} in {refused:?}");
    }
    refused.refused("differ:");
    instance.run("up LAB --apply --reset").refused("cannot be used with");

    instance.up(&["--apply"]);
    let merged = instance.zones("sw1");
    assert!(merged.committed.aliases.contains_key("of-store") && merged.committed.zones.contains_key("z2"));
    assert_eq!(merged.state.zones, ["z12", "z2"]);
    // A rollback restores the previously stored database.
    instance.run("zone rollback LAB").good();
    assert_eq!(instance.zones("sw1").state.zones, ["z12"]);
    instance.stop();
    // Both agree, so the file no longer counts as changed.
    instance.up(&[]);
    instance.stop();

    instance.up(&["--reset"]);
    let reset = instance.zones("sw1");
    assert!(reset.committed.aliases.is_empty() && !reset.can_roll_back);
    assert_eq!(reset.state.zones, ["z12", "z2"]);
    instance.stop();
}

#[test]
fn learned_addresses_survive_a_crash() {
    let mut instance = Instance::start("addresses", &lab());
    let addresses = |instance: &Instance| -> Vec<(String, String)> {
        let ports = instance.zones("sw1").ports;
        ports.into_iter().map(|port| (port.name, port.port_id)).collect()
    };
    instance.wait("two logins", |instance| addresses(instance).len() == 2);
    let before = addresses(&instance);
    instance.kill();
    // A new host at the first port gets neither of their addresses.
    let more = lab().replace(
        "[[link]]",
        "[storage.disk0]\nlun_size = \"1MiB\"\n\n[[link]]\nfrom = \"disk0\"\nto = \"sw1\"\n\n[[link]]",
    );
    instance.write_lab(&more);
    instance.up(&[]);
    instance.wait("three logins", |instance| addresses(instance).len() == 3);
    let after = addresses(&instance);
    assert!(before.iter().all(|port| after.contains(port)), "{before:?} {after:?}");
    // An address that the lab file assigns to another port is rejected.
    let (_, taken) = &before[0];
    instance.stop();
    instance.write_lab(&format!("{more}\n[[persistent]]\nport = \"disk0\"\naddress = \"0x{taken}\"\n"));
    instance.run("up LAB").refused("but the lab file assigns it to another port");
    instance.up(&["--apply"]);
    instance.wait("three logins", |instance| addresses(instance).len() == 3);
    assert!(addresses(&instance).contains(&("disk0:0".to_owned(), taken.clone())));
    instance.stop();
}

/// Two switches, each with a disk.
fn fabric() -> String {
    let switches = "[switch.\"sw{1..2}\"]\ndomain = 1\nfcoe = { keep_alive = \"250ms\" }\n";
    let isl = "[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\nethernet = { carrier = \"dgram\" }\n";
    two_disks(switches, "sw{1..2}") + isl
}

/// Two switches in separate processes share the store. Both store a change acknowledged by one of
/// them. After a simultaneous crash they restart with it and form one fabric again.
#[test]
fn every_switch_of_the_fabric_keeps_an_acknowledged_change() {
    let switches = ["sw1", "sw2"];
    let mut instance = Instance::start_apart("apart", &fabric(), &switches);
    let joined = |instance: &Instance| {
        switches.iter().all(|switch| instance.zones(switch).ports.len() == 2 && instance.zones(switch).change == "free")
    };
    for round in 0..3 {
        instance.wait("both see both disks", joined);
        let at = switches[round % 2];
        let answer = instance.commit_alias(Some(at), &format!("a{round}"), vec![format!("1,{round}")]).unwrap();
        assert!(matches!(answer, Answer::Zones(_)), "{answer:?}");
        instance.kill();
        instance.up_apart(&switches);
        for switch in switches {
            let aliases = instance.zones(switch).committed.aliases;
            assert_eq!(aliases.len(), round + 1, "{switch} after a change at {at}: {aliases:?}");
        }
    }
    instance.wait("one fabric again", joined);
    instance.stop();
}

/// The switch that manages changes crashes repeatedly during changes. Each time the fabric becomes
/// one again, with one database that contains every acknowledged change.
#[test]
fn a_fabric_is_one_again_when_the_switch_that_changes_its_zones_has_crashed() {
    let mut instance = Instance::start_apart("manager", &fabric(), &["sw1", "sw2"]);
    let done = AtomicU32::new(0);
    let joined = |instance: &Instance| {
        let status = ["sw1", "sw2"].map(|switch| instance.zones(switch));
        let free = |status: &sanloom_api::zoning::ZoneStatus| status.ports.len() == 2 && status.change == "free";
        status.iter().all(free) && status[0].committed == status[1].committed
    };
    for round in 0..6 {
        instance.wait("one fabric", joined);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| commit_until_it_crashes(&instance, Some("sw1"), &done));
            wait_for_commit(&done);
            std::thread::sleep(Duration::from_micros(round * 1_300));
            instance.crash_one("sw1");
            writer.join().unwrap();
        });
        instance.up_again("sw1");
        let kept = instance.zones("sw1").committed.aliases.len() as u32;
        let answered = done.load(Ordering::SeqCst);
        assert!((answered..=answered + 1).contains(&kept), "{kept} kept, {answered} answered");
        done.store(kept, Ordering::SeqCst);
    }
    instance.wait("one fabric", joined);
    assert!(done.load(Ordering::SeqCst) > 6);
    instance.stop();
}

/// A change that does not fit into the store is rejected without effect; with more space it
/// succeeds.
#[test]
fn a_change_that_cannot_be_stored_is_rejected() {
    let mut instance = Instance::start("full", &lab());
    instance.stop();
    // Size limit of files, in kilobytes.
    instance.up_with_files_of(200);
    let mut done = 0;
    let refused = loop {
        match instance.commit_alias(None, &format!("a{done}"), vec![format!("1,{done}"); 20]).unwrap() {
            Answer::Zones(_) => done += 1,
            Answer::Failed(error) => break error,
            other => panic!("{other:?}"),
        }
        assert!(done < 1_000, "the store never fills up");
    };
    assert_eq!(refused.kind, ErrorKind::Environment, "a full disk is no usage error: {refused:?}");
    let refused = refused.reason;
    assert!(refused.contains("cannot be stored") || refused.contains("could not store it"), "{refused}");
    let status = instance.zones("sw1");
    assert_eq!(status.kept, refused.contains("cannot be stored"), "{refused}");
    assert_eq!(status.committed.aliases.len(), if status.kept { done } else { done + 1 });
    instance.kill();
    instance.up(&[]);
    let kept = instance.zones("sw1").committed.aliases.len();
    assert!(kept >= done, "{kept} kept, {done} answered");
    let edits = vec![Edit::Delete { kind: sanloom_api::zone_database::Kind::Alias, name: "a0".to_owned() }];
    assert!(matches!(instance.commit(None, edits).unwrap(), Answer::Zones(_)));
    instance.stop();
}

/// A second start of a running lab changes nothing, not even its store.
#[test]
fn a_lab_that_runs_keeps_its_store_when_it_is_started_again() {
    let mut instance = Instance::start("twice", &lab());
    assert!(matches!(instance.commit_alias(None, "of-store", vec!["1,7".to_owned()]).unwrap(), Answer::Zones(_)));
    for line in ["up LAB --reset", "up LAB --apply", "up LAB --reset --switch sw1"] {
        let second = instance.run(line);
        assert!(second.code != 0 && second.stderr.contains("in use by another process"), "{second:?}");
    }
    instance.kill();
    instance.up(&[]);
    assert!(instance.zones("sw1").committed.aliases.contains_key("of-store"));
    instance.stop();
}

/// While another process locks the store, the switch continues, and an address assigned meanwhile
/// is stored afterwards.
#[test]
fn an_address_is_stored_when_the_store_is_unlocked() {
    let host = "[host.server1]\nwwpn = \"20:00:52:54:00:00:00:01\"\n";
    let link = "[[link]]\nfrom = \"server1\"\nto = \"sw1\"\nethernet = { carrier = \"dgram\" }\n";
    let lab = format!("{}{host}{link}", lab()).replace("\"disk2\"]", "\"disk2\", \"server1\"]");
    let mut instance = Instance::start("held", &lab);
    let path = instance.folder.join("state.sqlite");
    let kept = |name: &str| {
        let store = StateStore::open(&path).unwrap();
        store.addresses("sw1").unwrap().keys().any(|port| port.to_string() == name)
    };
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    instance.start_initiator("server1");
    assert!(instance.log().contains("a learned address cannot be stored"));
    // The switch answers while another connection still waits for the lock.
    let waits = std::thread::spawn({
        let path = path.clone();
        move || rusqlite::Connection::open(path).unwrap().execute_batch("BEGIN IMMEDIATE").is_err()
    });
    assert_eq!(instance.zones("sw1").ports.len(), 3);
    assert!(!waits.is_finished(), "the switch has waited for the lock");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(!waits.join().unwrap(), "the lock is not free");
    instance.wait("the address in the store", |_| kept("20:00:52:54:00:00:00:01"));
    instance.stop();
}
