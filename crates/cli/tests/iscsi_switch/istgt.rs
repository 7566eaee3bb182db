//! istgt as storage, another target of Debian's: what passes either path is right.

use crate::bed::{Bed, SANLOOM, Switch, free_port};
use crate::find_qemu;
use crate::peer::{find, run};
use crate::started::Process;
use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TARGET: &str = "iqn.2026-11.net.example:istgt";

/// A target with two LUNs of 40 MiB.
fn start(bed: &Bed, portal: &str) -> Process {
    let [configuration, secrets, number] = ["istgt.conf", "istgt.auth", "istgt.pid"].map(|name| bed.path(name));
    let luns = [0, 1].map(|lun| {
        let file = bed.path(&format!("istgt{lun}.img"));
        fs::File::create(&file).unwrap().set_len(40 << 20).unwrap();
        format!("LUN{lun} Storage {file} Auto\n")
    });
    fs::write(&secrets, "").unwrap();
    let text = format!(
        "[Global]\nNodeBase \"iqn.2026-11.net.example\"\nPidFile {number}\nAuthFile {secrets}\n\
        Timeout 30\nDiscoveryAuthMethod Auto\nMaxSessions 16\nMaxConnections 4\nMaxR2T 32\nMaxOutstandingR2T 8\n\
        FirstBurstLength 262144\nMaxBurstLength 1048576\nMaxRecvDataSegmentLength 262144\n\
        [UnitControl]\n[PortalGroup1]\nPortal P1 {portal}\n\
        [InitiatorGroup1]\nInitiatorName \"ALL\"\nNetmask ALL\n\
        [LogicalUnit1]\nTargetName istgt\nMapping PortalGroup1 InitiatorGroup1\nAuthMethod Auto\nUseDigest Auto\n\
        UnitType Disk\nQueueDepth 64\n{}",
        luns.concat()
    );
    fs::write(&configuration, &text).unwrap();
    let mut command = Command::new("istgt");
    command.args(["-c", &configuration, "-p", &number, "-D"]);
    let process = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(portal).is_err() {
        assert!(Instant::now() < until, "istgt does not listen: {text}");
        thread::sleep(Duration::from_millis(50));
    }
    process
}

fn verify(name: &str, forward: bool) {
    let Some(_) = find("istgt") else { return };
    let (bed, portal) = (Bed::new(name), free_port());
    let _target = start(&bed, &portal);
    let back_end = |lun| {
        format!("[back_end.b{lun}]\npool = \"disks\"\ntarget = \"{TARGET}\"\nportals = \"{portal}\"\nlun = {lun}\n")
    };
    let mut switch = Switch::start_on(
        &bed,
        forward,
        &format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}{}",
            back_end(0),
            back_end(1),
            "[volume.v]\npool = \"disks\"\nsize = \"60MiB\"\nwidth = 2\nstripe = \"256KiB\"\nstorage = \"switch\"\n"
        ),
    );
    switch.wait_for(&["v"]);
    let url = switch.url(0);
    let (Some(qemu_io), Some(inq)) = (find_qemu(&url), find("iscsi-inq")) else { return };
    assert!(run(inq, &[&url]).contains("VIRTUAL DISK"));
    let commands = [
        // istgt takes up to a second for each login, and the host has a session of its own there.
        "sleep 4000",
        // Up to 32 pieces are forwarded.
        "write -P 0x41 0 8M",
        "write -P 0x41 8M 8M",
        "write -P 0x42 1k 3k",
        "write -P 0x43 250k 700k",
        "read -P 0x42 1k 3k",
        "read -P 0x43 250k 700k",
        "read -P 0x41 1M 7M",
        "read -P 0x41 8M 8M",
        "flush",
        // With FUA, which istgt does not know though it has a cache: the switch has to flush behind it.
        "write -f -P 0x45 20M 4k",
        "read -P 0x45 20M 4k",
    ];
    let mut arguments = vec!["-f", "raw", "-t", "writeback"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    arguments.push(&url);
    let said = run(qemu_io, &arguments);
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    switch.assert_path("v", forward, 15 << 20, 16 << 20);
    let stats = run(SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    assert_eq!(stats.contains("kept: cache"), forward, "{stats}");
    // Another host finds the same.
    let said = run(qemu_io, &["-f", "raw", "-r", "-c", "read -P 0x43 250k 700k", &url]);
    assert!(!said.contains("failed"), "{said}");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn what_passes_to_istgt_is_right() {
    verify("istgt", true);
}

#[test]
fn what_goes_the_conventional_way_to_istgt_is_right() {
    verify("istgt-conventional", false);
}
