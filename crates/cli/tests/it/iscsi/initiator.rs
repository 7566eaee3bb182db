//! sanloom's initiator with sanloom's target and with tgt, and third-party programs at its NBD
//! socket.

use crate::iscsi::bed::Bed;
use crate::sanloom::Start;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{run, uri};
use sanloom_test_support::qemu_io::{QemuIo, write_and_verify};
use sanloom_test_support::started::Process;
use sanloom_test_support::tgt::Tgtd;
use sanloom_test_support::wait;
use std::fs;

/// Starts an initiator and waits until its disks are usable.
fn start(bed: &Bed, target: &str, more: &[&str]) -> Process {
    bed.folder.sanloom([&["initiator", "--iscsi", target, "--nbd", &bed.path("nbd.sock")], more].concat())
}

fn export(bed: &Bed, target: &str, lun: u16) -> String {
    uri(&bed.folder.join("nbd.sock"), &format!("{target}-lun-{lun}"))
}

#[needs("nbdinfo", "qemu-io")]
#[test]
fn our_initiator_uses_our_targets_with_digests_and_proofs() {
    let mut bed = Bed::start("initiator");
    let secret = ["--chap-name", "server", "--chap-secret-file", &bed.path("server.secret")].map(str::to_owned);
    let proof =
        ["--target-chap-name", "array", "--target-chap-secret-file", &bed.path("array.secret")].map(str::to_owned);
    let both: Vec<String> = secret.iter().chain(&proof).cloned().collect();
    let none: Vec<String> = Vec::new();
    for (name, luns, more) in
        [("ram", 2, vec!["--digests".to_owned()]), ("files", 1, none.clone()), ("asked", 1, none), ("secret", 1, both)]
    {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let mut initiator = start(&bed, &format!("{}/{}", bed.portals[0], Bed::target(name)), &more);
        for lun in 0..luns {
            let uri = export(&bed, &Bed::target(name), lun);
            let info = run("nbdinfo", &["--json", &uri]);
            assert!(info.contains("SANLOOM VIRTUAL DISK") && info.contains("naa."), "{info}");
            write_and_verify(&uri);
        }
        initiator.stop();
    }
    bed.stop();
    bed.folder.assert_no_errors();
}

#[needs("nbdinfo", "qemu-io")]
#[test]
fn redirected_logins_arrive_at_their_new_portal() {
    let bed = Bed::start("redirected");
    let (here, there) = (free_port(), free_port());
    // Two targets that redirect logins, temporarily and permanently, and the same two at their new
    // portals.
    let lab = |name: &str, portal: &str, more: [&str; 2]| {
        let folder = bed.path(name);
        let text = format!(
            "[live]\nfolder = \"{folder}\"\n\
             [storage.away]\nlun_size = \"64MiB\"\niscsi = {{ portals = \"{portal}\"{} }}\n\
             [storage.gone]\nlun_size = \"64MiB\"\niscsi = {{ portals = \"{portal}\"{} }}\n",
            more[0], more[1]
        );
        let file = format!("{name}.toml");
        fs::write(bed.path(&file), text).unwrap();
        bed.folder.sanloom(["up", &bed.path(&file)])
    };
    let _new = lab("new", &there, ["", ""]);
    let to = format!(", redirect = \"{there}\"");
    let mut old = lab("old", &here, [&to, &format!("{to}, redirect_permanent = true")]);
    // QEMU's initiator follows a temporary redirect and treats a permanent one as a failure. Ours
    // follows both.
    write_and_verify(&format!("iscsi://{here}/{}/0", Bed::target("away")));
    for name in ["away", "gone"] {
        let target = Bed::target(name);
        let mut initiator = start(&bed, &format!("{here}/{target}"), &[]);
        let uri = export(&bed, &target, 0);
        run("qemu-io", &["-f", "raw", "-c", "write -P 0x41 0 1M", "-c", "read -P 0x41 0 1M", &uri]);
        initiator.stop();
    }
    let moves = |kind: &str| bed.log().lines().filter(|line| line.contains("has moved") && line.contains(kind)).count();
    assert_eq!([moves("permanent=false"), moves("permanent=true")], [1, 1]);
    // After a permanent redirect the initiator does not contact the old portal again.
    let target = Bed::target("gone");
    let mut initiator = start(&bed, &format!("{here}/{target}"), &[]);
    old.stop();
    let uri = export(&bed, &target, 0);
    run("qemu-io", &["-f", "raw", "-c", "read -P 0x41 0 1M", &uri]);
    initiator.stop();
}

#[needs("qemu-io")]
#[test]
fn requests_outlive_a_target_that_crashes() {
    let mut bed = Bed::start("outlive");
    let target = Bed::target("files");
    let mut initiator = start(&bed, &format!("{}/{target}", bed.portals[0]), &["--log", "debug"]);
    let uri = export(&bed, &target, 0);
    run("qemu-io", &["-f", "raw", "-c", "write -P 0x31 0 4M", "-c", "flush", &uri]);
    bed.kill();
    // The request is queued until the path returns.
    let mut disk = QemuIo::open(&uri);
    disk.start("read -P 0x31 0 4M");
    // The initiator retries in vain meanwhile.
    bed.folder.wait_for_log("still no session through a portal", 2);
    bed.start_target();
    let printed = disk.result();
    assert!(printed.contains("read 4194304/4194304") && !printed.contains("failed"), "{printed}");
    disk.close();
    initiator.stop();
    bed.stop();
}

#[test]
fn an_unreachable_portal_is_logged_once_and_once_when_it_returns() {
    let mut bed = Bed::start("unreachable");
    let target = Bed::target("files");
    let mut initiator = start(&bed, &format!("{}/{target}", bed.portals[0]), &["--log", "debug"]);
    bed.kill();
    let count = |bed: &Bed, what: &str| bed.log().lines().filter(|line| line.contains(what)).count();
    let wait_for = |bed: &Bed, what: &str, times: usize| {
        wait::until(|| format!("{times} log lines with {what:?}"), || count(bed, what) >= times);
    };
    wait_for(&bed, "still no session through a portal", 3);
    bed.start_target();
    wait_for(&bed, "a portal is available again", 1);
    wait_for(&bed, "logged in target=", 2);
    let log = bed.log();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains(" WARN no session through a portal")).collect();
    let portal = format!("portal={}", bed.portals[0]);
    assert!(warnings.len() == 1 && [&target, &portal, "why=", "next="].iter().all(|part| warnings[0].contains(*part)));
    assert_eq!(["a portal is available again", "the session ended"].map(|what| count(&bed, what)), [1, 1]);
    initiator.stop();
    bed.stop();
}

/// tgt with one disk in a file, and CHAP in both directions.
fn tgt(bed: &Bed) -> (Tgtd, String) {
    let daemon = Tgtd::start(&bed.folder);
    fs::write(bed.path("disk.img"), vec![0; 64 << 20]).unwrap();
    let target = "iqn.2026-11.net.example:tgt";
    let file = bed.path("disk.img");
    let steps: [&[&str]; 9] = [
        &["--op", "new", "--mode", "target", "--tid", "1", "-T", target],
        &["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &file],
        &["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"],
        &["--op", "new", "--mode", "account", "--user", "server", "--password", "sixteen letters!"],
        &["--op", "bind", "--mode", "account", "--tid", "1", "--user", "server"],
        &["--op", "new", "--mode", "account", "--user", "array", "--password", "another sixteen."],
        &["--op", "bind", "--mode", "account", "--tid", "1", "--user", "array", "--outgoing"],
        &["--op", "update", "--mode", "target", "--tid", "1", "--name", "HeaderDigest", "--value", "CRC32C"],
        &["--op", "update", "--mode", "target", "--tid", "1", "--name", "DataDigest", "--value", "CRC32C"],
    ];
    steps.into_iter().for_each(|step| daemon.admin(step));
    let address = format!("{}/{target}", daemon.portal);
    (daemon, address)
}

#[needs("nbdinfo", "qemu-io", "tgtadm")]
#[test]
fn our_initiator_uses_tgt_with_digests_and_proofs() {
    let bed = Bed::start("tgt");
    let (_daemon, target) = tgt(&bed);
    let (own, theirs) = (bed.path("server.secret"), bed.path("array.secret"));
    let proofs = ["--chap-name", "server", "--chap-secret-file", &own, "--target-chap-name", "array"];
    let all = [&proofs[..], &["--target-chap-secret-file", &theirs, "--digests"]].concat();
    let mut initiator = start(&bed, &target, &all);
    let name = target.split_once('/').unwrap().1;
    let uri = export(&bed, name, 1);
    assert!(run("nbdinfo", &["--size", &uri]).starts_with("67108864"));
    write_and_verify(&uri);
    initiator.stop();
}
