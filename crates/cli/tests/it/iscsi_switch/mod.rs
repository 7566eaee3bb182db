//! The iSCSI virtualization switch with third-party targets and hosts: tgt behind it, libiscsi and
//! QEMU in front of it.

mod alua;
mod bed;
mod crashes;
mod endurance;
mod forwarding;
mod gate;
mod gateway;
mod host;
mod hostile;
mod hosts;
mod istgt;
mod kernel;
mod masks;
mod mutations;
mod operators;
mod ports;
mod redirected;
mod resets;
mod secrets;
mod tgt;
mod threads;

use crate::iscsi::conformance;
use crate::iscsi::raw::{pdu, read_pdu};
use crate::iscsi::relay;
use crate::sanloom::SANLOOM;
use bed::{Bed, Switch};
use host::Host;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{run, try_run, uri};
use sanloom_test_support::qemu_io::write_and_verify;
use std::io::Write;
use std::net::{Ipv6Addr, TcpListener};
use std::thread;

#[needs("iscsi-test-cu", "tgtadm")]
#[test]
fn libiscsi_passes_all_tests_on_volumes_over_tgt_except_the_listed_ones() {
    conformance::on_each(&[0, 1], |lun| conformance_on(&format!("conformance-{lun}"), true, lun));
}

#[needs("iscsi-test-cu", "tgtadm")]
#[test]
fn libiscsi_passes_all_tests_on_the_conventional_path_except_the_listed_ones() {
    conformance::on_each(&[0, 1], |lun| conformance_on(&format!("conformance-conventional-{lun}"), false, lun));
}

/// One volume crosses from one back end to the other in the middle, at an odd block. The other one
/// is striped, with seven blocks per stripe.
fn conformance_on(name: &str, forward: bool, lun: u16) {
    let bed = Bed::new(name);
    let targets = tgt::start(&bed, &[50 << 20, 80 << 20]);
    let mut switch = Switch::start_on(
        &bed,
        forward,
        &format!(
            "[pool.disks]\nextent = \"3584B\"\n{}{}{}",
            targets.back_ends("disks"),
            "[volume.striped]\npool = \"disks\"\nsize = \"16MiB\"\nwidth = 2\nstripe = \"3584B\"\nstorage = \"switch\"\nlun = 1\n",
            "[volume.linear]\npool = \"disks\"\nsize = \"60MiB\"\nstorage = \"switch\"\nlun = 0\n"
        ),
    );
    switch.wait_for(&["linear", "striped"]);
    let [first, second] = switch.portals.each_ref().map(|portal| switch.url_at(portal, lun));
    conformance::test([&first, &second]).assert(include_str!("expected_skips.txt"));
    let [forwarded, _] = switch.carried(["linear", "striped"][usize::from(lun)]);
    assert_eq!(forwarded.commands > 100, forward, "{forwarded:?}");
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("iscsi-ls", "iscsi-perf")]
#[test]
fn the_other_tools_of_libiscsi_list_the_switch_and_load_both_paths() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("tools-{forward}"));
        let portal = free_port();
        let _first = bed::storage(&bed, "first", &portal);
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}{}",
            bed::back_end("first", "disks", &[&portal]),
            "[volume.v]\npool = \"disks\"\nsize = \"32MiB\"\nstorage = \"switch\"\nlun = 3\n",
            "[volume.w]\npool = \"disks\"\nsize = \"16MiB\"\nstorage = \"switch\"\nlun = 0\n"
        );
        let mut switch = Switch::start_on(&bed, forward, &lab);
        switch.wait_for(&["v", "w"]);
        let listed = run("iscsi-ls", &["-s", &format!("iscsi://{}", switch.portals[0])]);
        assert!(listed.contains(bed::HOSTS_TARGET) && listed.contains("Lun:3") && listed.contains("Lun:0"), "{listed}");
        for arguments in [&["-m", "32", "-b", "128", "-t", "2"][..], &["-r", "-m", "8", "-b", "8", "-t", "2"]] {
            let info = run("iscsi-perf", &[arguments, &[&switch.url(3)]].concat());
            assert!(info.contains("finished") || info.contains("iops"), "{info}");
        }
        switch.assert_path("v", forward, 4 << 20, 0);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

#[needs("qemu-iscsi", "tgtadm")]
#[test]
fn qemu_writes_across_two_back_ends_and_reads_the_same_data() {
    across("across", true);
}

#[needs("qemu-iscsi", "tgtadm")]
#[test]
fn qemu_writes_across_two_back_ends_conventionally() {
    across("across-conventional", false);
}

fn across(name: &str, forward: bool) {
    let bed = Bed::new(name);
    let targets = tgt::start(&bed, &[50 << 20, 80 << 20]);
    let mut switch = Switch::start_on(
        &bed,
        forward,
        &format!(
            "[pool.disks]\nextent = \"3584B\"\n{}{}{}",
            targets.back_ends("disks"),
            "[volume.linear]\npool = \"disks\"\nsize = \"70MiB\"\nstorage = \"switch\"\nlun = 0\n",
            "[volume.other]\npool = \"disks\"\nsize = \"8MiB\"\nstorage = \"switch\"\nlun = 1\n"
        ),
    );
    switch.wait_for(&["linear", "other"]);
    let url = switch.url(0);
    write_and_verify(&url);
    // Start of the second back end.
    let shown = switch.volumes(&["--name", "linear"]);
    let boundary = shown.volumes[0].runs[1].at_bytes;
    assert!(boundary.is_multiple_of(3584) && boundary < 50 << 20 && boundary > 49 << 20, "{shown:?}");
    let before = boundary - 1536;
    let commands = [
        format!("write -P 0x5c {before} 3k"),
        format!("write -P 0x77 {} 1M", boundary - (512 << 10)),
        format!("read -P 0x77 {} 1M", boundary - (512 << 10)),
        format!("write -P 0x5c {before} 3k"),
        format!("read -P 0x5c {before} 3k"),
        format!("read -P 0x77 {} 1536", boundary + 1536),
        format!("write -f -z {before} 3k"),
        format!("read -P 0 {before} 3k"),
        "flush".to_owned(),
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command.as_str()]));
    arguments.push(&url);
    let output = run("qemu-io", &arguments);
    assert!(!output.contains("failed") && !output.contains("rror"), "{output}");
    // The same with our own initiator.
    let initiator = bed.initiator(&switch.portals[1]);
    let export = uri(&bed.folder.join("nbd.sock"), "iqn.2026-11.example.sanloom:switch-lun-0");
    run("qemu-io", &["-f", "raw", "-c", &format!("read -P 0x77 {} 1536", boundary + 1536), &export]);
    write_and_verify(&export);
    drop(initiator);
    // The other volume contains none of these data.
    run("qemu-io", &["-f", "raw", "-c", "read -P 0 0 8M", &switch.url(1)]);
    let stats = run(SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    // Zero counters are omitted. Commands before the sessions with the back ends exist are jobs on
    // either path.
    let counted = |counter: &str| {
        let line = stats.lines().find(|line| line.contains(counter));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().replace(',', "").parse::<u64>().unwrap())
    };
    let [commands, jobs] = ["commands split", "jobs split"].map(counted);
    match forward {
        true => assert!(commands > 0 && jobs <= counted("kept: no back-end session"), "{stats}"),
        false => assert!(commands == 0 && jobs > 0, "{stats}"),
    }
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("ipv6", "iscsi-ls", "qemu-iscsi")]
#[test]
fn hosts_and_back_ends_may_have_ipv6_addresses() {
    let free = || TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).and_then(|open| open.local_addr());
    let (first, hosts) = (free().unwrap(), free().unwrap());
    for forward in [true, false] {
        let bed = Bed::new(&format!("ipv6-{forward}"));
        let _storage = bed::storage(&bed, "first", &first.to_string());
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}",
            bed::back_end("first", "disks", &[&first.to_string()]),
            "[volume.v]\npool = \"disks\"\nsize = \"40MiB\"\nstorage = \"switch\"\nlun = 0\n",
        );
        let mut switch = Switch::start_at(&bed, [hosts.to_string(), free_port()], forward, &lab);
        switch.wait_for(&["v"]);
        let url = switch.url(0);
        let listed = run("iscsi-ls", &["-s", &format!("iscsi://{hosts}")]);
        assert!(listed.contains(&format!("Portal:{hosts},1")) && listed.contains("Lun:0"), "{listed}");
        write_and_verify(&url);
        switch.assert_path("v", forward, 1 << 20, 1 << 20);
        // Data written by one family are read by the other.
        run("qemu-io", &["-f", "raw", "-c", "write -P 0x66 1M 1M", &url]);
        run("qemu-io", &["-f", "raw", "-c", "read -P 0x66 1M 1M", &switch.url_at(&switch.portals[1], 0)]);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

#[needs("qemu-iscsi")]
#[test]
fn qemu_copies_from_one_volume_to_another_on_either_path() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("copied-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}{}{}",
            bed::back_end("first", "disks", &[&portals[0]]),
            bed::back_end("second", "disks", &[&portals[1]]),
            "[volume.from]\npool = \"disks\"\nsize = \"24MiB\"\nstorage = \"switch\"\nlun = 0\n",
            "[volume.to]\npool = \"disks\"\nsize = \"24MiB\"\nwidth = 2\nstripe = \"64KiB\"\nstorage = \"switch\"\nlun = 1\n",
        );
        let mut switch = Switch::start_on(&bed, forward, &lab);
        switch.wait_for(&["from", "to"]);
        let (from, to) = (switch.url(0), switch.url(1));
        run("qemu-io", &["-f", "raw", "-c", "write -P 0x77 512 12M", "-c", "write -P 0x78 20M 3k", &from]);
        // The rate is chosen so that most data arrive after the sessions with the back ends exist.
        run("qemu-img", &["convert", "-r", "16M", "-n", "-f", "raw", "-O", "raw", &from, &to]);
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &from, &to]);
        let expected = ["-c", "read -P 0 0 512", "-c", "read -P 0x77 512 12M", "-c", "read -P 0x78 20M 3k"];
        run("qemu-io", &[&["-f", "raw"], &expected[..], &[&to]].concat());
        switch.assert_path("from", forward, 4 << 20, 0);
        switch.assert_path("to", forward, 0, 4 << 20);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

#[needs("qemu-iscsi", "tgtadm", "tshark")]
#[test]
fn tshark_finds_nothing_malformed_on_either_side() {
    let bed = Bed::new("capture");
    let digests = ["--name HeaderDigest --value CRC32C", "--name DataDigest --value CRC32C"];
    let mut targets = tgt::start_with(&bed, &[50 << 20, 80 << 20], &digests);
    let (behind, back_capture) = relay::start(&targets.portal);
    targets.portal = behind;
    let mut switch = Switch::start(
        &bed,
        &format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}",
            targets.back_ends_with("disks", "data_digest = \"always\"\nheader_digest = \"always\"\n"),
            "[volume.striped]\npool = \"disks\"\nsize = \"64MiB\"\nwidth = 2\nstripe = \"8KiB\"\nstorage = \"switch\"\n"
        ),
    );
    switch.wait_for(&["striped"]);
    let (portal, front_capture) = relay::start(&switch.portals[0]);
    let url = switch.url_at(&portal, 0);
    run(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 0x11 3k 600k",
            "-c",
            "read -P 0x11 3k 600k",
            "-c",
            "write -z 64k 8k",
            "-c",
            "flush",
            &url,
        ],
    );
    switch.stop();
    for (side, capture) in [("front", front_capture), ("back", back_capture)] {
        let file = bed.path(&format!("{side}.pcapng"));
        capture.lock().unwrap().save(&file);
        let text = relay::dissect(&file);
        for there in ["Login Command", "SCSI Data In", "SCSI Response"] {
            assert!(text.contains(there), "no {there:?} in {side}");
        }
        // Stripes of 8 KiB fit into immediate data.
        assert_eq!(text.contains("SCSI Data Out"), side == "front", "{side}");
        assert_eq!(text.contains("(Good CRC32)"), side == "back", "{side}");
    }
}

#[needs("tshark")]
#[test]
fn tshark_knows_every_kind_of_answer_of_a_switch() {
    let (bed, behind) = (Bed::new("answers"), free_port());
    let _first = bed::storage(&bed, "first", &behind);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}[volume.v]\npool = \"disks\"\nsize = \"8MiB\"\nstorage = \"switch\"\n",
        bed::back_end("first", "disks", &[&behind])
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v"]);
    let (portal, capture) = relay::start(&switch.portals[0]);
    let mut host = Host::ready(&switch, &portal, 1);
    let exchange = |host: &mut Host, fields: &[(usize, &[u8])], data: &[u8], answer: u8| {
        host.connection.write_all(&pdu(fields, data)).unwrap();
        let received = read_pdu(&mut host.connection).unwrap();
        assert_eq!(received[0], answer, "{received:02x?}");
        received
    };
    host.until_good(|host| host.read(0, 8));
    // A write whose data are requested with R2T.
    host.send(0xa0, 512, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[]);
    let r2t = read_pdu(&mut host.connection).unwrap();
    assert_eq!(r2t[0], 0x31, "{r2t:02x?}");
    exchange(&mut host, &[(0, &[0x05, 0x80]), (16, &r2t[16..24])], &[7; 512], 0x21);
    let number = host.number.to_be_bytes();
    let common: [(usize, &[u8]); 3] = [(16, &[0, 0, 0x10, 0]), (20, &[0xff; 4]), (24, &number)];
    for (opcode, data, answer) in
        [(0x40, &b"ping"[..], 0x20), (0x44, b"SendTargets=\0", 0x24), (0x10, b"", 0x3f), (0x5e, b"", 0x3f)]
    {
        exchange(&mut host, &[&[(0, &[opcode, 0x80][..])], &common[..]].concat(), data, answer);
    }
    host.ask(5);
    assert_eq!(host.function_response(), Some(0));
    // The switch requests a logout when it ends.
    thread::scope(|scope| {
        scope.spawn(|| switch.stop());
        while read_pdu(&mut host.connection).unwrap()[0] != 0x32 {}
        exchange(&mut host, &[&[(0, &[0x46, 0x80][..])], &common[..]].concat(), &[], 0x26);
    });
    let file = bed.path("answers.pcapng");
    capture.lock().unwrap().save(&file);
    let text = relay::dissect(&file);
    for opcode in [0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3f] {
        let shown = format!("(0x{opcode:02x})");
        assert!(text.lines().any(|line| line.contains("Opcode:") && line.contains(&shown)), "no {shown}");
    }
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi", "tgtadm")]
#[test]
fn both_paths_are_measured_beside_the_ceiling() {
    // The benchmark fails if a switch did not use the measured path.
    let bed = Bed::new("measured");
    let page = bed.path("figures.html");
    let asked =
        ["reproduce", "iscsi-switch", "--size", "64K,128K", "--depth", "1,8", "--seconds", "0.1", "--rounds", "1"];
    let output = run(SANLOOM, &[&asked[..], &["--no-report", &format!("--html={page}")]].concat());
    // No package provides the device that the stock chain requires.
    let without = output.lines().find(|line| line.starts_with("The stock chain was not measured"));
    assert!(without.is_none_or(|why| why.contains("/dev/fuse")), "{without:?}");
    // The document's experiment is first. Links of 1 Gb/s let no more pass, and are used.
    let sections: Vec<&str> = output.split("\n\n").collect();
    assert!(sections[1].starts_with("Links of 1 Gb/s: the document's experiment\n"), "{output}");
    let speeds = output.split("\nLoopback\n").next().unwrap().lines().filter_map(|line| {
        let behind = ["end to end ", "conventional ", "forwarding "].iter().find_map(|path| line.split_once(path))?.1;
        behind.split_whitespace().next()?.parse::<f64>().ok()
    });
    let speeds: Vec<f64> = speeds.collect();
    // Three sizes, of which 512 KiB always is one, two depths, both directions.
    assert!(speeds.len() == 36 && speeds.iter().all(|speed| (5.0..140.0).contains(speed)), "{speeds:?}\n{output}");
    for head in ["Volumes over two back ends", "Many sessions", "Numbers of sessions", "Digests"] {
        assert!(output.contains(&format!("\n{head}\n")), "{head}\n{output}");
    }
    let drawn = std::fs::read_to_string(&page).unwrap();
    for figure in
        ["Figure 9: read throughput, depth 8", "Figure 10: write throughput", "Figure 11: CPU utilization, read"]
    {
        assert!(drawn.contains(figure), "no {figure}");
    }
    // Op and depth, of two quantities; the same over links.
    assert_eq!(drawn.matches("<svg").count(), 2 * 2 * 2 + 2 * 2 * 2);
    for op in ["read", "write"] {
        let stock = without.is_none().then_some("stock chain");
        for path in ["end to end", "ceiling", "conventional", "forwarding"].into_iter().chain(stock) {
            let rows = output.lines().filter(|line| line.starts_with(op) || line.starts_with(' '));
            assert!(rows.filter(|line| line.contains(path)).count() >= 2, "{op} {path}\n{output}");
        }
        // One slice decides nothing; a path that was not measured has no verdict.
        let judged = |what: &str, verdict: &str| {
            let rows = output.lines().filter(|line| line.starts_with(op) && line.contains(what));
            rows.filter(|line| line.ends_with(&format!(" {verdict}"))).count()
        };
        assert_eq!(judged("links, 512 KiB", "undecided"), 3, "{output}");
        let verdict = if without.is_none() { "undecided" } else { "not measured" };
        assert_eq!(judged("to stock chain", verdict), 3, "{output}");
    }
    assert!(output.contains("6 predictions: 0 ok, 0 missed, 6 undecided, 0 not measured"), "{output}");
}
