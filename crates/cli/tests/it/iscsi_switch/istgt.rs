//! istgt, another target packaged by Debian, as storage: data on both paths are right.

use crate::iscsi_switch::bed::{Bed, Switch};
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::run;
use sanloom_test_support::qemu_io::QemuIo;
use sanloom_test_support::started::Process;
use sanloom_test_support::wait;
use std::fs;
use std::net::TcpStream;
use std::process::{Command, Stdio};

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
    wait::until(|| format!("istgt does not listen: {text}"), || TcpStream::connect(portal).is_ok());
    process
}

fn verify(name: &str, forward: bool) {
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
    assert!(run("iscsi-inq", &[&url]).contains("VIRTUAL DISK"));
    let commands = [
        // Requests of up to 32 pieces are forwarded.
        "write -P 0x41 0 8M",
        "write -P 0x41 8M 8M",
        "write -P 0x42 1k 3k",
        "write -P 0x43 250k 700k",
        "read -P 0x42 1k 3k",
        "read -P 0x43 250k 700k",
        "read -P 0x41 1M 7M",
        "read -P 0x41 8M 8M",
        "flush",
        // istgt ignores FUA although it has a cache, so the switch must flush after such a write.
        "write -f -P 0x45 20M 4k",
        "read -P 0x45 20M 4k",
    ];
    let mut disk = QemuIo::open_with(&url, &["-t", "writeback"]);
    switch.wait_for_forwarding();
    commands.iter().for_each(|command| _ = disk.run(command));
    disk.close();
    switch.assert_path("v", forward, 15 << 20, 16 << 20);
    let stats = run(SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    assert_eq!(stats.contains("kept: cache"), forward, "{stats}");
    // Another host reads the same data.
    let output = run("qemu-io", &["-f", "raw", "-r", "-c", "read -P 0x43 250k 700k", &url]);
    assert!(!output.contains("failed"), "{output}");
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("iscsi-inq", "istgt", "qemu-iscsi")]
#[test]
fn data_forwarded_to_istgt_are_intact() {
    verify("istgt", true);
}

#[needs("iscsi-inq", "istgt", "qemu-iscsi")]
#[test]
fn data_on_the_conventional_path_to_istgt_are_intact() {
    verify("istgt-conventional", false);
}
