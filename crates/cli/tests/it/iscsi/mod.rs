//! sanloom's iSCSI targets with third-party initiators (libiscsi's tools and tests, and QEMU's
//! own), and sanloom's initiator.

mod bed;
mod bench;
pub mod conformance;
mod crowd;
mod initiator;
pub mod raw;
pub mod relay;

use crate::sanloom::SANLOOM;
use bed::Bed;
use sanloom_test_support::needs;
use sanloom_test_support::programs::{fail, run, try_run};
use sanloom_test_support::qemu_io::write_and_verify;
use std::os::unix::fs::PermissionsExt;

/// Output of a program, whether it succeeds or not.
fn output(program: &str, arguments: &[&str]) -> String {
    let (_, out, err) = try_run(program, arguments);
    out + &err
}

#[needs("iscsi-test-cu")]
#[test]
fn libiscsi_passes_all_tests_except_the_listed_ones() {
    let mut bed = Bed::start("conformance");
    // A disk in memory at both portals, and one in a file without page cache, with a write-back
    // cache, short segments and a short queue.
    let (first, second) = (bed.url("ram", 0), bed.url("ram", 0).replace(&bed.portals[0], &bed.portals[1]));
    let file = bed.url("files", 0);
    conformance::on_each(&[[&first, &second], [&file, &file]], |urls| {
        conformance::test(urls.map(String::as_str)).assert(include_str!("expected_skips.txt"));
    });
    bed.stop();
    bed.folder.assert_no_errors();
}

#[needs("iscsi-inq", "iscsi-ls")]
#[test]
fn discovery_shows_each_initiator_its_permitted_targets() {
    let mut bed = Bed::start("discovery");
    let portal = format!("iscsi://{}", bed.portals[0]);
    let listed = run("iscsi-ls", &[&portal]);
    for name in ["ram", "files", "asked", "secret"] {
        assert!(listed.contains(&Bed::target(name)), "{listed}");
    }
    assert!(!listed.contains("private"), "{listed}");
    let listed = run("iscsi-ls", &["-i", "iqn.2026-11.net.example:only", &portal]);
    assert!(listed.contains(&Bed::target("private")), "{listed}");
    let info = run("iscsi-inq", &[&bed.url("ram", 1)]);
    assert!(info.contains("SANLOOM") && info.contains("VIRTUAL DISK"), "{info}");
    let refused = output("iscsi-inq", &[&bed.url("private", 0)]);
    assert!(refused.contains("Authorization failure") || refused.contains("514"), "{refused}");
    let unknown = output("iscsi-inq", &[&bed.url("nothing", 0)]);
    assert!(unknown.contains("Target not found") || unknown.contains("515"), "{unknown}");
    bed.stop();
}

#[needs("iscsi-perf")]
#[test]
fn the_load_of_libiscsi_is_served() {
    let mut bed = Bed::start("load");
    let info = run("iscsi-perf", &["-m", "32", "-b", "128", "-t", "1", &bed.url("ram", 0)]);
    assert!(info.contains("finished") || info.contains("iops"), "{info}");
    bed.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn qemu_copies_from_one_target_to_another() {
    let mut bed = Bed::start("copy");
    let (from, to) = (bed.url("files", 0), bed.url("asked", 0));
    run("qemu-io", &["-f", "raw", "-c", "write -P 0x77 5M 3M", "-c", "write -P 0x78 12345k 4k", &from]);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &from, &to]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &from, &to]);
    run("qemu-io", &["-f", "raw", "-c", "read -P 0x77 5M 3M", "-c", "read -P 0x78 12345k 4k", &to]);
    bed.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn qemu_writes_and_verifies_with_every_way_of_moving_data() {
    let mut bed = Bed::start("qemu");
    for name in ["ram", "files", "asked"] {
        write_and_verify(&bed.url(name, 0));
    }
    // Flushed data survive a crash.
    run("qemu-io", &["-f", "raw", "-c", "write -P 0x5a 3M 1M", "-c", "flush", &bed.url("files", 0)]);
    bed.kill();
    bed.start_target();
    run("qemu-io", &["-f", "raw", "-c", "read -P 0x5a 3M 1M", "-c", "read -P 0x22 16M 4M", &bed.url("files", 0)]);
    // A redirected login succeeds unless the other portal redirects it back, as here.
    let moved = fail("qemu-img", &["info", "-f", "raw", &bed.url("moved", 0)]);
    assert!(!moved.contains("virtual size"), "{moved}");
    bed.stop();
}

#[needs("iscsi-inq")]
#[test]
fn chap_authenticates_both_directions() {
    let mut bed = Bed::start("chap");
    let plain = bed.url("secret", 0);
    let with = |user: &str, more: &str| plain.replace("iscsi://", &format!("iscsi://{user}@")) + more;
    assert!(run("iscsi-inq", &[&with("server%sixteen letters!", "")]).contains("SANLOOM"));
    let both = with("server%sixteen letters!", "?target_user=array&target_password=another sixteen.");
    assert!(run("iscsi-inq", &[&both]).contains("SANLOOM"));
    for wrong in [
        plain.clone(),
        with("server%sixteen lettersX", ""),
        with("nobody%sixteen letters!", ""),
        with("server%sixteen letters!", "?target_user=array&target_password=not the secret.."),
    ] {
        let refused = output("iscsi-inq", &[&wrong]);
        assert!(!refused.contains("SANLOOM"), "{wrong}: {refused}");
    }
    bed.stop();
    let log = bed.log();
    assert!(!log.contains("sixteen"));
    assert!(!log.contains("can read this secret"));
    // Secrets that can be guessed, or do not authenticate, are rejected by every program that would
    // use them.
    let (server, array, nbd) = (bed.path("server.secret"), bed.path("array.secret"), bed.path("nbd.sock"));
    let target = format!("{}/{}", bed.portals[0], Bed::target("secret"));
    let disk = format!("{target}/0");
    let proofs = ["--chap-name=server", "--chap-secret-file", &server, "--target-chap-name=array"];
    let proofs = [&proofs[..], &["--target-chap-secret-file", &array]].concat();
    let lab = bed.path("lab.toml");
    let users = [
        vec!["up", &lab],
        [&["initiator", "--iscsi", &target, "--nbd", &nbd], &proofs[..]].concat(),
        [&["bench", "io", &disk], &proofs[..]].concat(),
    ];
    for (secret, why) in [("eleven byte", "96 bits"), ("another sixteen.", "the same in both")] {
        std::fs::write(bed.path("server.secret"), secret).unwrap();
        for arguments in &users {
            let refused = fail(SANLOOM, arguments);
            assert!(refused.contains(why) && refused.contains(".secret"), "{arguments:?}: {refused}");
        }
    }
    // A secret readable by everybody is used, with a warning and a remedy.
    std::fs::write(bed.path("server.secret"), "sixteen letters!").unwrap();
    std::fs::set_permissions(bed.path("server.secret"), PermissionsExt::from_mode(0o644)).unwrap();
    bed.start_target();
    let (good, info, error) = try_run(
        SANLOOM,
        &[&["bench", "io", &disk, "--size=4K", "--depth=1", "--rounds=1", "--seconds=0.05"], &proofs[..]].concat(),
    );
    assert!(good && info.contains("4 KiB"), "{info}{error}");
    bed.stop();
    let log = bed.log();
    let line = log.lines().find(|line| line.contains("can read this secret")).expect("a warning of the secret");
    assert!(line.contains("WARN") && line.contains(&format!("chmod o-r {server}")), "{line}");
}

#[needs("qemu-iscsi", "tshark")]
#[test]
fn tshark_finds_nothing_malformed_in_passing_data() {
    let mut bed = Bed::start("capture");
    for (name, digest) in [("ram", "none"), ("asked", "crc32c"), ("files", "crc32c-none")] {
        let (portal, capture) = relay::start(&bed.portals[0]);
        let options = format!(
            "driver=iscsi,transport=tcp,portal={portal},target={},lun=0,header-digest={digest}",
            Bed::target(name)
        );
        let commands = ["write -P 0x11 0 4k", "write -P 0x22 1M 300k", "read -P 0x22 1M 300k", "flush"];
        let mut arguments = vec!["--image-opts"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
        arguments.push(&options);
        run("qemu-io", &arguments);
        let file = bed.path(&format!("{name}.pcapng"));
        capture.lock().unwrap().save(&file);
        let text = relay::dissect(&file);
        for there in ["Login Command", "SCSI Data In", "SCSI Data Out", "Ready To Transfer", "SCSI Response"] {
            assert!(text.contains(there), "no {there:?} in {name}");
        }
        assert_eq!(text.contains("(Good CRC32)"), digest.starts_with("crc32c"), "{name}");
    }
    bed.stop();
}
