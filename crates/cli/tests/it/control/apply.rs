//! `sanloom apply`: a lab file that was changed while its instance runs.

use crate::control::instance::Instance;
use crate::control::raw_port::{RawPort, number_of};
use sanloom_api::apply::ApplyReport;
use sanloom_api::view::{LunRow, Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::programs;
use sanloom_test_support::programs::run;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
luns = 1
lun_size = "1MiB"

[storage.file]
lun_size = "1MiB"
medium = "file"

[zoning]
default = "closed"

[[zone]]
name = "z1"
members = ["server1", "ram"]

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "{ram,file}"
to = "sw1"
"#;

/// More LUNs, larger ones, another zone, a mask.
fn changed() -> String {
    let more = LAB.replace("luns = 1\nlun_size = \"1MiB\"", "luns = 2\nlun_size = \"1MiB\"");
    let larger = more.replace("lun_size = \"1MiB\"\nmedium", "lun_size = \"3MiB\"\nmedium");
    assert_ne!(more, larger);
    let zone = "[[zone]]\nname = \"z2\"\nmembers = [\"server1\", \"file\", \"ram\"]\n";
    format!("{larger}\n{zone}\n[[mask]]\nhosts = \"server1\"\ntargets = [\"ram:lun1\"]\n")
}

fn report(text: &str) -> ApplyReport {
    serde_json::from_str(text).unwrap()
}

fn luns(instance: &Instance) -> Vec<LunRow> {
    let shown = instance.run("show luns LAB --live --json").good();
    match serde_json::from_str::<View>(&shown).unwrap().table {
        Table::Luns(table) => table.luns,
        other => panic!("{other:?}"),
    }
}

#[needs("nbdinfo")]
#[test]
fn live_changes_are_applied_and_survive_a_restart() {
    let mut instance = Instance::start("apply", LAB);
    instance.start_initiator("server1");
    instance.write_lab(&changed());
    let before = (instance.zones("sw1").state, luns(&instance));
    let preview = report(&instance.run("apply LAB --preview --json").good());
    let expected = [
        "ram:lun1 is new, and hosts are notified",
        "masking of ram: initiators whose LUNs change are notified",
        "file:lun0 grows to 3145728 bytes, and hosts are notified",
        "zones, committed at sw1: among ports that are logged in, 2 pairs gained, 0 pairs lost",
    ];
    assert_eq!((preview.changes.as_slice(), preview.applied), (expected.map(str::to_owned).as_slice(), false));
    assert_eq!(before, (instance.zones("sw1").state, luns(&instance)), "a preview changes nothing");

    let output = instance.run("apply LAB").good();
    for part in ["changed", "ram:lun1 is new", "gain sight", "server1:0 and file:0"] {
        assert!(output.contains(part), "no {part} in {output}");
    }
    assert_eq!(instance.zones("sw1").state.zones, ["z1", "z2"]);
    let rows: Vec<(String, u64, String)> =
        luns(&instance).into_iter().map(|row| (row.storage, row.size_bytes, row.seen_by.join(" "))).collect();
    let row = |storage: &str, size, seen: &str| (storage.to_owned(), size, seen.to_owned());
    assert_eq!(rows, [row("ram", 1 << 20, ""), row("ram", 1 << 20, "server1"), row("file", 3 << 20, "")]);
    assert_eq!(std::fs::metadata(instance.folder.join("file-lun0.img")).unwrap().len(), 3 << 20);
    // The host is notified of the newly visible storage and finds its disk with the current size.
    let uri = programs::uri(&instance.folder.join("nbd.sock"), "");
    instance.wait("a disk more", |_| run("nbdinfo", &["--list", &uri]).contains("export-size: 3145728"));
    assert!(instance.run("apply LAB").good().contains("nothing to change"));
    // Store and file agree.
    instance.stop();
    instance.up(&[]);
    assert_eq!(instance.zones("sw1").state.zones, ["z1", "z2"]);
    instance.stop();
}

#[test]
fn one_unsupported_live_change_rejects_all_with_reasons() {
    let mut instance = Instance::start("apply-refused", LAB);
    let before = (instance.zones("sw1").state, luns(&instance));
    let fixed = changed()
        .replace("[switch.sw1]", "[timers]\nhold_time = \"2s\"\n\n[switch.sw1]\nfcoe = { priority = 5 }")
        .replace("luns = 2\nlun_size = \"1MiB\"", "luns = 2\nlun_size = \"512KiB\"");
    instance.write_lab(&fixed);
    let refused = instance.run("apply LAB --json");
    let report = report(&refused.stdout);
    let about: Vec<&str> = report.refused.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(about, ["timers", "`fcoe` of switches", "size of ram"]);
    assert!(report.refused.iter().all(|line| line.contains("restart the instance")), "{report:?}");
    assert!(!report.applied);
    refused.refused("nothing was changed");
    assert_eq!(before, (instance.zones("sw1").state, luns(&instance)));
    assert_eq!(instance.run("apply LAB --preview").code, 0);
    instance.write_lab("[switch]\n");
    assert_eq!(instance.run("apply LAB").code, 2);
    // Keys that only a simulation uses.
    instance.write_lab(&format!("{LAB}\n[workload.w]\nhosts = \"server1\"\ntargets = \"ram\"\n"));
    let idle = instance.run("apply LAB").good();
    assert!(idle.contains("no effect") && idle.contains("workloads"), "{idle}");
    instance.stop();
}

/// Two fabrics with equal zones at the start.
const TWO_FABRICS: &str = r#"
[switch."sw{1..2}"]

[storage."disk{1..2}"]
lun_size = "1MiB"
ports = 2

[[link]]
from = "disk{1..2}"
to = "sw1"

[[link]]
from = "disk{1..2}"
to = "sw2"
"#;

#[test]
fn zones_of_every_fabric_change_even_where_they_are_equal() {
    let mut instance = Instance::start("apply-fabrics", TWO_FABRICS);
    let zones = "[zoning]\ndefault = \"closed\"\n[[zone]]\nname = \"z1\"\nmembers = [\"disk1\", \"disk2\"]\n";
    instance.write_lab(&format!("{TWO_FABRICS}{zones}"));
    let output = instance.run("apply LAB").good();
    for switch in ["sw1", "sw2"] {
        assert_eq!(instance.zones(switch).state.zones, ["z1"], "{switch}: {output}");
    }
    instance.stop();
}

/// Host links of every type; ports are numbered, so that links can be removed.
const LINKS: &str = r#"
[switch.sw1]

[host."server{1..6}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[[link]]
from = "ram"
to = "sw1:0"

[[link]]
from = "server1"
to = "sw1:1"
ethernet = { carrier = "dgram" }

[[link]]
from = "server2"
to = "sw1:2"
ethernet = { carrier = "dgram" }

[[link]]
from = "server3"
to = "sw1:3"
ethernet = { carrier = "dgram", address = "wire.sock", peer = "wire.peer.sock", vlan = 103 }
"#;

/// One link is removed, one gets another socket, one shares a wire with another, and a new one
/// supports three hosts.
fn relinked() -> String {
    let without =
        LINKS.replace("[[link]]\nfrom = \"server2\"\nto = \"sw1:2\"\nethernet = { carrier = \"dgram\" }\n", "");
    let other = without.replacen("carrier = \"dgram\" }", "carrier = \"dgram\", address = \"other.sock\" }", 1);
    assert!(without != LINKS && other != without);
    let more = "\n[[link]]\nfrom = \"server4\"\nto = \"sw1:4\"\n\
                ethernet = { carrier = \"dgram\", address = \"wire.sock\", peer = \"wire.peer.sock\", vlan = 104 }\n\
                \n[[link]]\nfrom = \"server5\"\nto = \"sw1:5\"\nethernet = { carrier = \"dgram\", enodes = 3 }\n";
    other + more
}

fn logins(instance: &Instance) -> Vec<String> {
    let shown = instance.run("show flogi LAB --live --json").good();
    let Table::Flogi(table) = serde_json::from_str::<View>(&shown).unwrap().table else { panic!("{shown}") };
    let mut ports: Vec<String> = table.logins.into_iter().map(|row| row.port_name).collect();
    ports.retain(|name| name.starts_with("20:00:52"));
    ports.sort();
    ports
}

#[test]
fn links_of_hosts_are_added_and_removed_without_effect_on_other_hosts() {
    let mut instance = Instance::start("apply-links", LINKS);
    let going = RawPort::log_in(&instance, "server2-sw1", 2);
    let moving = RawPort::log_in(&instance, "server1-sw1", 1);
    instance.write_lab(&relinked());
    let preview = report(&instance.run("apply LAB --preview --json").good());
    let about: Vec<&str> = preview.changes.iter().map(|line| line.split(':').next().unwrap()).collect();
    let expected = [
        "link server1-sw1 is reopened at sw1",
        "link server2-sw1 at sw1",
        "link server4-sw1 is opened at sw1",
        "link server5-sw1 is opened at sw1",
    ];
    assert_eq!((about.as_slice(), preview.refused.len()), (expected.as_slice(), 0), "{preview:?}");
    assert_eq!(logins(&instance).len(), 2, "a preview changes nothing");

    // The remaining host has frames in flight.
    let wire = instance.folder.join("wire.peer.sock");
    let stays = UnixDatagram::bind(&wire).unwrap();
    instance.wait("the wire", |instance| instance.log().contains("link port=\"server3-sw1\" up=true"));
    let before = instance.log().matches("up=false").count();
    assert!(instance.run("apply LAB").good().contains("changed"));

    // Hosts that lost their link receive Clear Virtual Links.
    for port in [&going, &moving] {
        assert!(port.receives_clear(Duration::from_secs(5)), "the host {} was not notified", port.port_id);
    }
    assert!(!instance.folder.join("server2-sw1.sock").exists() && !instance.folder.join("server1-sw1.sock").exists());
    assert_eq!(logins(&instance), Vec::<String>::new());
    drop((going, moving));

    // The changed link works at its new socket and the new one for three hosts, and frames pass
    // between them.
    let again = RawPort::log_in_at(&instance, ["other.sock", "server1-sw1.peer.sock"], 1);
    let new = [5, 6, 7].map(|number| (number, "server5-sw1"));
    let first = RawPort::log_in(&instance, new[0].1, 5);
    for (number, _) in &new[1..] {
        first.log_in_another(*number);
    }
    assert_eq!(logins(&instance).len(), 4, "{:?}", logins(&instance));
    again.socket.send(&again.frame(first.port_id, 7, 64)).unwrap();
    assert_eq!(first.next(Duration::from_secs(5)).map(|frame| number_of(&frame)), Some(7));

    // The existing wire stayed up and now has two VLANs.
    assert_eq!(instance.log().matches("up=false").count(), before);
    drop(stays);
    std::fs::remove_file(&wire).unwrap();
    let found = instance.run(&format!(
        "fipvlan --mac 52:54:00:00:00:09 dgram:{},{}",
        wire.display(),
        instance.folder.join("wire.sock").display()
    ));
    let found = found.good();
    assert!(found.contains("103") && found.contains("104"), "{found}");
    let metrics = instance.run("show counters LAB --live").good();
    assert!(metrics.contains("sw1:5") && !metrics.contains("sw1:2"), "{metrics}");
    assert!(instance.run("apply LAB").good().contains("nothing to change"));
    // Reverting to the original lab is another change.
    instance.write_lab(LINKS);
    instance.run("apply LAB").good();
    let _back = RawPort::log_in(&instance, "server2-sw1", 2);
    assert_eq!(logins(&instance), ["20:00:52:54:00:00:00:02"]);
    instance.stop();
}

#[test]
fn links_that_cannot_change_are_named_and_no_change_is_made() {
    let mut instance = Instance::start("apply-links-refused", LINKS);
    let refused = |lab: &str, why: &str| {
        instance.write_lab(lab);
        let ran = instance.run("apply LAB --json");
        let report = report(&ran.stdout);
        assert!(report.refused.iter().any(|line| line.contains(why)) && !report.applied, "no {why} in {report:?}");
        ran.refused("nothing was changed");
    };
    let server3 = "from = \"server3\"\nto = \"sw1:3\"";
    refused(&LINKS.replace(server3, "from = \"server3\"\nto = \"sw1:4\""), "it would move from sw1:3 to sw1:4");
    refused(
        &LINKS.replace("to = \"sw1:0\"", "to = \"sw1:9\""),
        "it would move from ram:0 and sw1:0 to ram:0 and sw1:9",
    );
    let storage = "\n[storage.more]\nlun_size = \"1MiB\"\n\n[[link]]\nfrom = \"more\"\nto = \"sw1:6\"\n";
    refused(
        &format!("{LINKS}{storage}"),
        "links between switches, to storage and to the instance's own hosts are created at the start",
    );
    let link =
        |ethernet: &str| format!("{LINKS}\n[[link]]\nfrom = \"server4\"\nto = \"sw1:4\"\nethernet = {ethernet}\n");
    refused(&link("{ carrier = \"fd\", address = \"7\" }"), "a descriptor is inherited at the start");
    refused(&link("{ carrier = \"packet\", address = \"nowhere0\" }"), "cannot open the interface nowhere0");
    let folder = instance.folder.join("not-a-socket");
    std::fs::write(&folder, "").unwrap();
    refused(&link("{ carrier = \"dgram\", address = \"not-a-socket\" }"), "is not a socket");
    instance.write_lab(LINKS);
    assert!(instance.run("apply LAB").good().contains("nothing to change"));
    instance.stop();
}

#[test]
fn hosts_that_are_the_instance_itself_stay_as_they_are() {
    let lab = "[switch.sw1]\n[host.gateway]\n[storage.array]\n\
        [[link]]\nfrom = \"array\"\nto = \"sw1:0\"\n[[link]]\nfrom = \"gateway\"\nto = \"sw1:1\"\n\
        [pool.disks]\n[back_end.lun]\npool = \"disks\"\nhost = \"gateway\"\ntarget_port = \"array\"\n";
    let mut instance = Instance::start("apply-gateway", lab);
    let cases = [
        ("to = \"sw1:1\"", "to = \"sw1:2\"", "it would move from gateway:0 and sw1:1 to gateway:0 and sw1:2"),
        ("[host.gateway]", "[host.gateway]\nwwpn = \"20:00:52:54:00:00:00:09\"", "existing back ends: "),
        ("[back_end.lun]", "[back_end.lun]\nretry_for = \"9s\"", "existing back ends: "),
        ("[pool.disks]", "[host.other]\nfcoe = { carrier = \"dgram\" }\n[pool.disks]", "`fcoe` of hosts"),
    ];
    for (from, to, why) in cases {
        instance.write_lab(&lab.replace(from, to));
        let ran = instance.run("apply LAB --json");
        let report = report(&ran.stdout);
        assert!(report.refused.iter().any(|line| line.contains(why)) && !report.applied, "no {why} in {report:?}");
        ran.refused("nothing was changed");
    }
    instance.write_lab(lab);
    assert!(instance.run("apply LAB").good().contains("nothing to change"));
    instance.stop();
}
