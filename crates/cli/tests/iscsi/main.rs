//! sanloom's iSCSI targets, with the initiators of others (libiscsi's tools and tests, QEMU's own), and its initiator.

mod bed;
mod bench;
mod conformance;
mod crowd;
mod initiator;
#[path = "../../../../tests/peer.rs"]
mod peer;
#[path = "../../../../tests/process.rs"]
mod process;
#[path = "../../../../tests/qemu_io.rs"]
mod qemu_io;
mod raw;
mod relay;
#[path = "../../../../tests/started.rs"]
mod started;

use bed::Bed;
use peer::{fail, find, run, skip, try_run};
use qemu_io::write_and_verify;
use std::os::unix::fs::PermissionsExt;

/// QEMU opens disks over iSCSI; Debian has that in a package of its own.
fn find_qemu(bed: &Bed) -> Option<&'static str> {
    let (good, _, err) = try_run(find("qemu-img")?, &["info", "-f", "raw", &bed.url("ram", 0)]);
    if err.contains("Unknown protocol") {
        return skip("QEMU has no iSCSI (qemu-block-extra)");
    }
    assert!(good, "{err}");
    find("qemu-io")
}

/// What a program writes, whether it works or not.
fn said(program: &str, arguments: &[&str]) -> String {
    let (_, out, err) = try_run(program, arguments);
    out + &err
}

#[test]
fn libiscsi_passes_all_its_tests_but_those_that_are_listed() {
    let Some(program) = find("iscsi-test-cu") else { return };
    let mut bed = Bed::start("conformance");
    // A disk in memory at both portals; one in a file, past the page cache, with a write-back cache, short segments and a short queue.
    let (first, second) = (bed.url("ram", 0), bed.url("ram", 0).replace(&bed.portals[0], &bed.portals[1]));
    let file = bed.url("files", 0);
    for urls in [[&first, &second], [&file, &file]] {
        conformance::test(program, urls.map(String::as_str)).assert(include_str!("expected_skips.txt"));
    }
    bed.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn discovery_shows_everybody_what_he_may_see() {
    let (Some(ls), Some(inq)) = (find("iscsi-ls"), find("iscsi-inq")) else { return };
    let mut bed = Bed::start("discovery");
    let portal = format!("iscsi://{}", bed.portals[0]);
    let listed = run(ls, &[&portal]);
    for name in ["ram", "files", "asked", "secret"] {
        assert!(listed.contains(&Bed::target(name)), "{listed}");
    }
    assert!(!listed.contains("private"), "{listed}");
    let listed = run(ls, &["-i", "iqn.2026-11.net.example:only", &portal]);
    assert!(listed.contains(&Bed::target("private")), "{listed}");
    let told = run(inq, &[&bed.url("ram", 1)]);
    assert!(told.contains("SANLOOM") && told.contains("VIRTUAL DISK"), "{told}");
    let refused = said(inq, &[&bed.url("private", 0)]);
    assert!(refused.contains("Authorization failure") || refused.contains("514"), "{refused}");
    let unknown = said(inq, &[&bed.url("nothing", 0)]);
    assert!(unknown.contains("Target not found") || unknown.contains("515"), "{unknown}");
    bed.stop();
}

#[test]
fn the_load_of_libiscsi_is_served() {
    let Some(perf) = find("iscsi-perf") else { return };
    let mut bed = Bed::start("load");
    let told = run(perf, &["-m", "32", "-b", "128", "-t", "1", &bed.url("ram", 0)]);
    assert!(told.contains("finished") || told.contains("iops"), "{told}");
    bed.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn qemu_copies_from_one_target_to_another() {
    let mut bed = Bed::start("copy");
    let Some(qemu_io) = find_qemu(&bed) else { return };
    let (from, to) = (bed.url("files", 0), bed.url("asked", 0));
    run(qemu_io, &["-f", "raw", "-c", "write -P 0x77 5M 3M", "-c", "write -P 0x78 12345k 4k", &from]);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &from, &to]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &from, &to]);
    run(qemu_io, &["-f", "raw", "-c", "read -P 0x77 5M 3M", "-c", "read -P 0x78 12345k 4k", &to]);
    bed.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn qemu_writes_and_verifies_with_every_way_of_moving_data() {
    let mut bed = Bed::start("qemu");
    let Some(qemu_io) = find_qemu(&bed) else { return };
    for name in ["ram", "files", "asked"] {
        write_and_verify(qemu_io, &bed.url(name, 0));
    }
    // What was flushed is there after a crash.
    run(qemu_io, &["-f", "raw", "-c", "write -P 0x5a 3M 1M", "-c", "flush", &bed.url("files", 0)]);
    bed.kill();
    bed.start_target();
    run(qemu_io, &["-f", "raw", "-c", "read -P 0x5a 3M 1M", "-c", "read -P 0x22 16M 4M", &bed.url("files", 0)]);
    // A login that is sent elsewhere arrives, unless it is sent back again: this one is.
    let moved = fail("qemu-img", &["info", "-f", "raw", &bed.url("moved", 0)]);
    assert!(!moved.contains("virtual size"), "{moved}");
    bed.stop();
}

#[test]
fn chap_lets_in_who_knows_the_secret_in_both_directions() {
    let mut bed = Bed::start("chap");
    let Some(inq) = find("iscsi-inq") else { return };
    let plain = bed.url("secret", 0);
    let with = |user: &str, more: &str| plain.replace("iscsi://", &format!("iscsi://{user}@")) + more;
    assert!(run(inq, &[&with("server%sixteen letters!", "")]).contains("SANLOOM"));
    let both = with("server%sixteen letters!", "?target_user=array&target_password=another sixteen.");
    assert!(run(inq, &[&both]).contains("SANLOOM"));
    for wrong in [
        plain.clone(),
        with("server%sixteen lettersX", ""),
        with("nobody%sixteen letters!", ""),
        with("server%sixteen letters!", "?target_user=array&target_password=not the secret.."),
    ] {
        let refused = said(inq, &[&wrong]);
        assert!(!refused.contains("SANLOOM"), "{wrong}: {refused}");
    }
    bed.stop();
    let log = bed.log();
    assert!(!log.contains("sixteen"), "{log}");
    assert!(!log.contains("can read this secret"), "{log}");
    // Secrets that can be guessed, or prove nothing, are refused by everybody who would use them.
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
    for (secret, why) in [("eleven byte", "96 bits"), ("another sixteen.", "the same one")] {
        std::fs::write(bed.path("server.secret"), secret).unwrap();
        for arguments in &users {
            let refused = fail(env!("CARGO_BIN_EXE_sanloom"), arguments);
            assert!(refused.contains(why) && refused.contains(".secret"), "{arguments:?}: {refused}");
        }
    }
    // One that everybody can read is used, with a warning and a remedy.
    std::fs::write(bed.path("server.secret"), "sixteen letters!").unwrap();
    std::fs::set_permissions(bed.path("server.secret"), PermissionsExt::from_mode(0o644)).unwrap();
    bed.start_target();
    let (good, told, error) = try_run(
        env!("CARGO_BIN_EXE_sanloom"),
        &[&["bench", "io", &disk, "--size=4K", "--depth=1", "--rounds=1", "--seconds=0.05"], &proofs[..]].concat(),
    );
    assert!(good && told.contains("4 KiB"), "{told}{error}");
    bed.stop();
    let log = bed.log();
    let line = log.lines().find(|line| line.contains("can read this secret")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("WARN") && line.contains(&format!("chmod o-r {server}")), "{line}");
}

#[test]
fn tshark_finds_nothing_malformed_in_what_passes() {
    let mut bed = Bed::start("capture");
    let (Some(qemu_io), Some(_)) = (find_qemu(&bed), find("tshark")) else { return };
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
        run(qemu_io, &arguments);
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
