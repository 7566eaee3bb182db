//! The switch as an iSCSI-to-Fibre-Channel gateway (the GUPFS report). Its volumes are on LUNs that
//! a host port of the instance reaches in a fabric, inside the process or over FCoE, alone or in
//! one pool with iSCSI targets.

use crate::iscsi::conformance;
use crate::iscsi::relay;
use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::crashes::{COMMANDS, kill_while_a_host_writes, writer};
use crate::iscsi_switch::tgt;
use crate::sanloom::SANLOOM;
use sanloom_api::control::{Answer, Request};
use sanloom_api::volume::PathRow;
use sanloom_live::control::ask;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{run, try_run};
use sanloom_test_support::qemu_io::{QemuIo, write_and_verify};
use sanloom_test_support::started::Process;
use sanloom_test_support::wait;
use std::fs;

/// A fabric inside the process, with an array of two LUNs and the gateway's own host.
const INSIDE: &str = r#"
[switch.sw1]

[host.gateway]

[storage.array]
luns = 2
lun_size = "64MiB"

[[link]]
from = "{gateway,array}"
to = "sw1"
"#;

/// A back end that is a LUN of the array.
fn of_array(name: &str, pool: &str, lun: u16) -> String {
    format!("[back_end.{name}]\npool = \"{pool}\"\nhost = \"gateway\"\ntarget_port = \"array\"\nlun = {lun}\n")
}

/// Waits until the row of a back end matches.
#[track_caller]
pub fn wait_for_path(bed: &Bed, name: &str, so: impl Fn(&PathRow) -> bool) -> PathRow {
    let row = || bed.paths().into_iter().find(|row| row.back_end == name).unwrap();
    wait::value(|| format!("another row than {:?}", row()), || Some(row()).filter(|row| so(row)))
}

/// True if forwarding was stopped by a LUN that is not behind an iSCSI target.
fn kept_for_transport(bed: &Bed) -> bool {
    run(SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]).contains("kept: no iSCSI target")
}

#[needs("iscsi-test-cu", "tgtadm")]
#[test]
fn libiscsi_passes_all_tests_on_volumes_in_a_fabric_and_in_a_mixed_pool_except_the_listed_ones() {
    // A volume over both back ends has only the features that both support; the array's LUNs are
    // thin.
    let skips = [include_str!("expected_skips.txt"), include_str!("../iscsi/expected_skips.txt")];
    conformance::on_each(&[0, 1], |lun| conformance_of(lun, skips[usize::from(lun)]));
}

/// In the mixed pool, requests for whole stripes on the iSCSI target are forwarded; in the fabric
/// none are.
fn conformance_of(lun: u16, expected_skips: &str) {
    let bed = Bed::new(&format!("gateway-conformance-{lun}"));
    let targets = tgt::start(&bed, &[40 << 20]);
    let lab = [
        INSIDE,
        "[pool.mixed]\nextent = \"28KiB\"\n[pool.fabric]\nextent = \"1MiB\"\n",
        &of_array("first", "mixed", 0),
        &targets.back_ends("mixed"),
        &of_array("second", "fabric", 1),
        "[volume.striped]\npool = \"mixed\"\nsize = \"16MiB\"\nwidth = 2\nstripe = \"28KiB\"\nstorage = \"switch\"\nlun = 0\n",
        "[volume.alone]\npool = \"fabric\"\nsize = \"32MiB\"\nstorage = \"switch\"\nlun = 1\n",
    ];
    let mut switch = Switch::start(&bed, &lab.concat());
    switch.wait_for(&["striped", "alone"]);
    let [first, second] = switch.portals.each_ref().map(|portal| switch.url_at(portal, lun));
    conformance::test([&first, &second]).assert(expected_skips);
    if lun == 0 {
        let [forwarded, conventional] = switch.carried("striped");
        assert!(forwarded.commands > 20 && conventional.commands > 100, "{forwarded:?} {conventional:?}");
    } else {
        switch.assert_path("alone", false, 1 << 20, 1 << 20);
    }
    assert!(kept_for_transport(&bed));
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn a_host_writes_and_verifies_in_a_mixed_pool_while_ports_of_the_fabric_fail_and_return() {
    let bed = Bed::new("gateway-links");
    let portal = free_port();
    let _first = bed::storage(&bed, "first", &portal);
    let lab = [
        INSIDE,
        "[pool.disks]\nextent = \"1MiB\"\n",
        &bed::back_end("first", "disks", &[&portal]),
        &of_array("second", "disks", 0),
        "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\n",
    ];
    let mut switch = Switch::start(&bed, &lab.concat());
    switch.wait_for(&["v"]);
    write_and_verify(&switch.url(0));
    let host = writer(&switch.url(0));
    for round in 0..6 {
        host.wait_for(COMMANDS);
        // The gateway's own cable, and the cable of the array.
        let port = ["sw1:0", "sw1:1"][round % 2];
        run(SANLOOM, &["port", "disable", port, &bed.path("switch.toml")]);
        let row = wait_for_path(&bed, "second", |row| row.portal.is_none());
        let why = ["is not logged in to the fabric", "is not logged in to the target port"][round % 2];
        assert!(row.trouble.contains(why), "{row:?}");
        run(SANLOOM, &["port", "enable", port, &bed.path("switch.toml")]);
        wait_for_path(&bed, "second", |row| row.portal.is_some());
    }
    let rounds = host.stop();
    let row = wait_for_path(&bed, "second", |row| row.trouble.is_empty());
    let port = row.host_port.clone().unwrap();
    assert!(row.logins >= 7 && row.lost >= 6 && port.name == "gateway" && port.port_id.is_some(), "{row:?}");
    println!("{rounds} rounds, {} logins lost\n{row:?}", row.lost);
    assert!(kept_for_transport(&bed));
    let [forwarded, conventional] = switch.carried("v");
    assert!(forwarded.read_bytes > 0 && conventional.read_bytes > 0, "{forwarded:?} {conventional:?}");
    switch.stop();
    bed.folder.assert_no_errors();
}

/// A fabric with an array in files, in a separate process.
fn start_fabric(bed: &Bed) -> Process {
    let lab = r#"
[live]
folder = "{folder}"

[switch.sw1]
fcoe = { keep_alive = "1s" }

[host.gateway]

[storage.array]
luns = 2
lun_size = "64MiB"
medium = "file"
wwpn = "50:25:a0:00:00:00:77:01"

[[link]]
from = "gateway"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "array"
to = "sw1"
"#;
    fs::write(bed.path("fabric.toml"), lab.replace("{folder}", &bed.path("fabric"))).unwrap();
    bed.up("fabric.toml")
}

/// The gateway's host in that fabric, and its back ends.
fn over_ethernet(bed: &Bed, keys: &str) -> String {
    let [own, peer] = ["peer.sock", "sock"].map(|ending| bed.path(&format!("fabric/gateway-sw1.{ending}")));
    let mut lab = format!(
        "[host.gateway]\nfcoe = {{ address = \"{own}\", peer = \"{peer}\" }}\n[pool.disks]\nextent = \"1MiB\"\n"
    );
    for lun in 0..2 {
        lab += &format!(
            "[back_end.lun{lun}]\npool = \"disks\"\nhost = \"gateway\"\ntarget_port = \"50:25:a0:00:00:00:77:01\"\nlun = {lun}\n{keys}"
        );
    }
    lab
}

const VOLUME: &str =
    "[volume.v]\npool = \"disks\"\nsize = \"96MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\n";

#[needs("qemu-iscsi")]
#[test]
fn a_host_writes_and_verifies_while_the_fabric_and_its_array_are_killed_and_started_again() {
    let bed = Bed::new("gateway-fabric");
    let mut fabric = start_fabric(&bed);
    let mut switch = Switch::start(&bed, &(over_ethernet(&bed, "") + VOLUME));
    switch.wait_for(&["v"]);
    let host = writer(&switch.url(0));
    for round in 0..4 {
        host.wait_for(COMMANDS);
        if round % 2 == 0 {
            fabric.kill();
            wait_for_path(&bed, "lun0", |row| row.portal.is_none());
            fabric = start_fabric(&bed);
        } else {
            run(SANLOOM, &["port", "disable", "sw1:0", &bed.path("fabric.toml")]);
            wait_for_path(&bed, "lun0", |row| row.portal.is_none());
            run(SANLOOM, &["port", "enable", "sw1:0", &bed.path("fabric.toml")]);
        }
        wait_for_path(&bed, "lun0", |row| row.portal.is_some());
    }
    let rounds = host.stop();
    let row = wait_for_path(&bed, "lun0", |row| row.trouble.is_empty());
    assert!(row.lost >= 4, "{row:?}");
    println!("{rounds} rounds, {} logins lost", row.lost);
    // The gateway logs out of the fabric when it ends.
    switch.stop();
    let left = run(SANLOOM, &["show", "flogi", &bed.path("fabric.toml"), "--live"]);
    assert!(left.contains("array") && !left.contains("gateway"), "{left}");
    fabric.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn requests_fail_with_sense_when_the_fabric_stays_away_and_the_host_stays_logged_in() {
    let bed = Bed::new("gateway-away");
    let mut fabric = start_fabric(&bed);
    let mut switch = Switch::start(&bed, &(over_ethernet(&bed, "retry_for = \"1s\"\n") + VOLUME));
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    run("qemu-io", &["-f", "raw", "-c", "write -P 0x3c 60M 8M", &url]);
    fabric.kill();
    let logins = bed.host_logins();
    let mut disk = QemuIo::open(&url);
    for command in ["read 60M 4k", "read 80M 4k"] {
        disk.start(command);
        let printed = disk.result();
        assert!(printed.contains("read failed"), "{printed}");
    }
    disk.kill();
    assert_eq!(bed.host_logins() - logins, 1);
    assert!(bed.log().contains("logical unit communication failure"));
    let row = wait_for_path(&bed, "lun1", |row| row.portal.is_none());
    assert!(row.trouble.contains("no peer is at the other end"), "{row:?}");
    fabric = start_fabric(&bed);
    wait::until(
        || "the data can be read again".to_owned(),
        || try_run("qemu-io", &["-f", "raw", "-c", "read -P 0x3c 60M 8M", &url]).1.contains("read 8388608/8388608"),
    );
    switch.stop();
    fabric.stop();
}

#[needs("qemu-iscsi")]
#[test]
fn a_gateway_that_is_killed_loses_no_write_that_it_has_acknowledged() {
    let bed = Bed::new("gateway-killed");
    let mut fabric = start_fabric(&bed);
    let mut switch = Switch::start(&bed, &(over_ethernet(&bed, "") + VOLUME));
    switch.wait_for(&["v"]);
    for round in 0..3 {
        kill_while_a_host_writes(&bed, &mut switch, round);
    }
    let row = wait_for_path(&bed, "lun0", |row| row.trouble.is_empty());
    assert_eq!((row.logins, row.lost), (1, 0), "{row:?}");
    switch.stop();
    fabric.stop();
    bed.folder.assert_no_errors();
}

#[test]
fn a_disk_that_is_reached_over_iscsi_and_in_the_fabric_is_one_disk() {
    let bed = Bed::new("gateway-twin");
    let portal = free_port();
    let inside = INSIDE.replace("luns = 2\n", &format!("luns = 2\niscsi = {{ portals = \"{portal}\" }}\n"));
    let lab = [
        &inside,
        "[pool.disks]\nextent = \"1MiB\"\n",
        &bed::back_end("array", "disks", &[&portal]),
        &of_array("again", "disks", 0),
        &of_array("other", "disks", 1),
    ];
    let mut switch = Switch::start(&bed, &lab.concat());
    let all_found = || Some(bed.paths()).filter(|rows| rows.iter().all(|row| row.size_bytes > 0));
    let rows = wait::value(|| format!("a size of each of {:?}", bed.paths()), all_found);
    // The first reachable path is used.
    let same = |row: &&PathRow| row.trouble.contains("it is the same disk as");
    let twins: Vec<&str> = rows.iter().filter(same).map(|row| row.back_end.as_str()).collect();
    assert!(twins == ["array"] || twins == ["again"], "{rows:?}");
    assert!(rows[2].trouble.is_empty() && rows[2].extents == 64, "{rows:?}");
    let socket = bed.folder.join("switch/control.sock");
    let Ok(Answer::Metrics { text: metrics }) = ask(&socket, &Request::Metrics) else { panic!("no metrics") };
    let name = rows[2].host_port.as_ref().unwrap().port_name.clone();
    for line in [
        format!("sanloom_host_port_up{{host_port=\"gateway\",port_name=\"{name}\"}} 1"),
        "sanloom_back_end_up{back_end=\"other\"} 1".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    switch.stop();
}

#[needs("qemu-iscsi", "tshark")]
#[test]
fn tshark_finds_nothing_malformed_in_the_fabric_or_in_front_of_the_gateway() {
    let bed = Bed::new("gateway-capture");
    let mut fabric = start_fabric(&bed);
    let mut switch = Switch::start(&bed, &(over_ethernet(&bed, "") + VOLUME));
    switch.wait_for(&["v"]);
    let behind = bed.path("behind.pcapng");
    run(SANLOOM, &["capture", "gateway", &bed.path("switch.toml"), "--to", &behind]);
    let (portal, front_capture) = relay::start(&switch.portals[0]);
    let url = switch.url_at(&portal, 0);
    let commands = ["write -P 0x11 3k 600k", "read -P 0x11 3k 600k", "write -z 64k 128k", "discard 1M 1M", "flush"];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    arguments.push(&url);
    run("qemu-io", &arguments);
    switch.stop();
    fabric.stop();
    let front = bed.path("front.pcapng");
    front_capture.lock().unwrap().save(&front);
    for file in [&front, &behind] {
        relay::assert_well_formed(file);
    }
    let count = |file: &str, filter: &str| run("tshark", &["-r", file, "-Y", filter]).lines().count();
    assert_eq!(count(&behind, "fcoe.crc.status == 0"), 0);
    // In both directions 600 KiB in frames of 2 KiB, plus the commands and the logout.
    assert!(count(&behind, "fcoe.crc.status == 1") > 600, "{}", count(&behind, "fcoe"));
    for filter in ["scsi", "fip || fcels"] {
        assert!(count(&behind, filter) > 2, "{filter}");
    }
    assert!(count(&front, "iscsi.opcode == 0x01") > 4);
}
