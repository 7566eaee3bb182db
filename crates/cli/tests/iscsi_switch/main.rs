//! The iSCSI virtualization switch with targets and hosts of others: tgt behind it, libiscsi and QEMU in front of it.

mod alua;
mod bed;
#[path = "../iscsi/conformance.rs"]
mod conformance;
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
#[path = "../../../../tests/peer.rs"]
mod peer;
mod ports;
#[path = "../../../../tests/qemu_io.rs"]
mod qemu_io;
#[path = "../iscsi/raw.rs"]
mod raw;
mod redirected;
#[path = "../iscsi/relay.rs"]
mod relay;
mod resets;
mod secrets;
#[path = "../../../../tests/started.rs"]
mod started;
mod tgt;

use bed::{Bed, Switch};
use host::Host;
use peer::{find, run, skip, try_run, uri};
use qemu_io::write_and_verify;
use raw::{hear, pdu};
use std::io::Write;
use std::net::{Ipv6Addr, TcpListener};
use std::thread;

/// QEMU opens disks over iSCSI; Debian has that in a package of its own.
fn find_qemu(url: &str) -> Option<&'static str> {
    let (good, _, err) = try_run(find("qemu-img")?, &["info", "-f", "raw", url]);
    if err.contains("Unknown protocol") {
        return skip("QEMU has no iSCSI (qemu-block-extra)");
    }
    assert!(good, "{err}");
    find("qemu-io")
}

#[test]
fn libiscsi_passes_all_its_tests_on_volumes_over_tgt_but_those_that_are_listed() {
    conformance_on("conformance", true, &[0, 1]);
}

#[test]
fn libiscsi_passes_all_its_tests_on_the_conventional_path_but_those_that_are_listed() {
    conformance_on("conformance-conventional", false, &[0, 1]);
}

/// One volume crosses from one back end to the other in the middle, at an odd block; of the other one every other seven blocks are
/// elsewhere.
fn conformance_on(name: &str, forward: bool, luns: &[u16]) {
    let (Some(program), Some(_)) = (find("iscsi-test-cu"), find("tgtadm")) else { return };
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
    for lun in luns {
        println!("LUN {lun}");
        let [first, second] = switch.portals.each_ref().map(|portal| switch.url_at(portal, *lun));
        conformance::test(program, [&first, &second]).assert(include_str!("expected_skips.txt"));
        let [forwarded, _] = switch.carried(["linear", "striped"][usize::from(*lun)]);
        assert_eq!(forwarded.commands > 100, forward, "{forwarded:?}");
    }
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn the_other_tools_of_libiscsi_list_the_switch_and_load_both_paths() {
    let (Some(ls), Some(perf)) = (find("iscsi-ls"), find("iscsi-perf")) else { return };
    for forward in [true, false] {
        let bed = Bed::new(&format!("tools-{forward}"));
        let portal = bed::free_port();
        let _first = bed::storage(&bed, "first", &portal);
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}{}",
            bed::back_end("first", "disks", &[&portal]),
            "[volume.v]\npool = \"disks\"\nsize = \"32MiB\"\nstorage = \"switch\"\nlun = 3\n",
            "[volume.w]\npool = \"disks\"\nsize = \"16MiB\"\nstorage = \"switch\"\nlun = 0\n"
        );
        let mut switch = Switch::start_on(&bed, forward, &lab);
        switch.wait_for(&["v", "w"]);
        let listed = run(ls, &["-s", &format!("iscsi://{}", switch.portals[0])]);
        assert!(listed.contains(bed::HOSTS_TARGET) && listed.contains("Lun:3") && listed.contains("Lun:0"), "{listed}");
        for arguments in [&["-m", "32", "-b", "128", "-t", "2"][..], &["-r", "-m", "8", "-b", "8", "-t", "2"]] {
            let told = run(perf, &[arguments, &[&switch.url(3)]].concat());
            assert!(told.contains("finished") || told.contains("iops"), "{told}");
        }
        switch.assert_path("v", forward, 4 << 20, 0);
        switch.stop();
        assert!(!bed.log().contains("ERROR"), "{}", bed.log());
    }
}

#[test]
fn qemu_writes_across_two_back_ends_and_what_it_reads_is_right() {
    across("across", true);
}

#[test]
fn qemu_writes_across_two_back_ends_conventionally() {
    across("across-conventional", false);
}

fn across(name: &str, forward: bool) {
    let Some(_) = find("tgtadm") else { return };
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
    let Some(qemu_io) = find_qemu(&url) else { return };
    write_and_verify(qemu_io, &url);
    // Where the second back end begins.
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
    let said = run(qemu_io, &arguments);
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    // The same through our own initiator.
    let initiator = bed.initiator(&switch.portals[1]);
    let export = uri(&bed.folder.join("nbd.sock"), "iqn.2026-11.example.sanloom:switch-lun-0");
    run(qemu_io, &["-f", "raw", "-c", &format!("read -P 0x77 {} 1536", boundary + 1536), &export]);
    write_and_verify(qemu_io, &export);
    drop(initiator);
    // The other volume has none of it.
    run(qemu_io, &["-f", "raw", "-c", "read -P 0 0 8M", &switch.url(1)]);
    let stats = run(bed::SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    // Those that are 0 are left out. What comes before there are sessions with the back ends is a job on either path.
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
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn hosts_and_back_ends_may_have_ipv6_addresses() {
    let Some(ls) = find("iscsi-ls") else { return };
    let free = || TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).and_then(|open| open.local_addr());
    let (Ok(first), Ok(hosts)) = (free(), free()) else {
        return println!("skipped: this machine has no IPv6");
    };
    for forward in [true, false] {
        let bed = Bed::new(&format!("ipv6-{forward}"));
        let _storage = bed::storage(&bed, "first", &first.to_string());
        let lab = format!(
            "[pool.disks]\nextent = \"1MiB\"\n{}{}",
            bed::back_end("first", "disks", &[&first.to_string()]),
            "[volume.v]\npool = \"disks\"\nsize = \"40MiB\"\nstorage = \"switch\"\nlun = 0\n",
        );
        let mut switch = Switch::start_at(&bed, [hosts.to_string(), bed::free_port()], forward, &lab);
        switch.wait_for(&["v"]);
        let url = switch.url(0);
        let Some(qemu_io) = find_qemu(&url) else { return };
        let listed = run(ls, &["-s", &format!("iscsi://{hosts}")]);
        assert!(listed.contains(&format!("Portal:{hosts},1")) && listed.contains("Lun:0"), "{listed}");
        write_and_verify(qemu_io, &url);
        switch.assert_path("v", forward, 1 << 20, 1 << 20);
        // What one family has written, the other one reads.
        run(qemu_io, &["-f", "raw", "-c", "write -P 0x66 1M 1M", &url]);
        run(qemu_io, &["-f", "raw", "-c", "read -P 0x66 1M 1M", &switch.url_at(&switch.portals[1], 0)]);
        switch.stop();
        assert!(!bed.log().contains("ERROR"), "{}", bed.log());
    }
}

#[test]
fn qemu_copies_from_one_volume_to_another_on_either_path() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("copied-{forward}"));
        let portals = [bed::free_port(), bed::free_port()];
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
        let Some(qemu_io) = find_qemu(&from) else { return };
        run(qemu_io, &["-f", "raw", "-c", "write -P 0x77 512 12M", "-c", "write -P 0x78 20M 3k", &from]);
        // So fast that most of it comes when its sessions with the back ends are there.
        run("qemu-img", &["convert", "-r", "16M", "-n", "-f", "raw", "-O", "raw", &from, &to]);
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &from, &to]);
        let expected = ["-c", "read -P 0 0 512", "-c", "read -P 0x77 512 12M", "-c", "read -P 0x78 20M 3k"];
        run(qemu_io, &[&["-f", "raw"], &expected[..], &[&to]].concat());
        switch.assert_path("from", forward, 4 << 20, 0);
        switch.assert_path("to", forward, 0, 4 << 20);
        switch.stop();
        assert!(!bed.log().contains("ERROR"), "{}", bed.log());
    }
}

#[test]
fn tshark_finds_nothing_malformed_on_either_side() {
    let (Some(_), Some(_)) = (find("tshark"), find("tgtadm")) else { return };
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
    let Some(qemu_io) = find_qemu(&url) else { return };
    run(
        qemu_io,
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
        // Stripes of 8 KiB go with their commands.
        assert_eq!(text.contains("SCSI Data Out"), side == "front", "{side}");
        assert_eq!(text.contains("(Good CRC32)"), side == "back", "{side}");
    }
}

#[test]
fn tshark_knows_every_kind_of_answer_of_a_switch() {
    let Some(_) = find("tshark") else { return };
    let (bed, behind) = (Bed::new("answers"), bed::free_port());
    let _first = bed::storage(&bed, "first", &behind);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}[volume.v]\npool = \"disks\"\nsize = \"8MiB\"\nstorage = \"switch\"\n",
        bed::back_end("first", "disks", &[&behind])
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v"]);
    let (portal, capture) = relay::start(&switch.portals[0]);
    let mut host = Host::ready(&portal, 1);
    let exchange = |host: &mut Host, fields: &[(usize, &[u8])], data: &[u8], answer: u8| {
        host.connection.write_all(&pdu(fields, data)).unwrap();
        let heard = hear(&mut host.connection).unwrap();
        assert_eq!(heard[0], answer, "{heard:02x?}");
        heard
    };
    host.until_good(|host| host.read(0, 8));
    // A write whose data are asked for.
    host.send(0xa0, 512, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[]);
    let r2t = hear(&mut host.connection).unwrap();
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
    // When the switch ends, it asks for a logout.
    thread::scope(|scope| {
        scope.spawn(|| switch.stop());
        while hear(&mut host.connection).unwrap()[0] != 0x32 {}
        exchange(&mut host, &[&[(0, &[0x46, 0x80][..])], &common[..]].concat(), &[], 0x26);
    });
    let file = bed.path("answers.pcapng");
    capture.lock().unwrap().save(&file);
    let text = relay::dissect(&file);
    for opcode in [0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3f] {
        let shown = format!("(0x{opcode:02x})");
        assert!(text.lines().any(|line| line.contains("Opcode:") && line.contains(&shown)), "no {shown}");
    }
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn both_paths_are_measured_beside_what_is_possible() {
    // It fails where a switch has not taken the path that it is measured for.
    let bed = Bed::new("measured");
    let page = bed.path("figures.html");
    let asked =
        ["reproduce", "iscsi-switch", "--size", "64K,128K", "--depth", "1,8", "--seconds", "0.1", "--rounds", "1"];
    let said = run(bed::SANLOOM, &[&asked[..], &["--plot", &page]].concat());
    let without = said.lines().find(|line| line.starts_with("The stock chain was not measured"));
    match without {
        // No package brings the device.
        Some(why) if why.contains("/dev/fuse") => println!("skipped: {why}"),
        Some(why) => _ = skip::<()>(why),
        None => {}
    }
    // Links of 1 Gb/s let no more pass, and are used.
    let over_links = said.split("Links of 1 Gb/s\n").nth(1).unwrap();
    let speeds = over_links.lines().filter_map(|line| {
        let (_, behind) = line.split_once("end to end ").or_else(|| line.split_once("forwarding "))?;
        behind.split_whitespace().next()?.parse::<f64>().ok()
    });
    let speeds: Vec<f64> = speeds.take(8).collect();
    assert!(speeds.len() == 8 && speeds.iter().all(|speed| (20.0..140.0).contains(speed)), "{speeds:?}\n{said}");
    let drawn = std::fs::read_to_string(&page).unwrap();
    for figure in
        ["Figure 9: read throughput, depth 8", "Figure 10: write throughput", "Figure 11: CPU utilization, read"]
    {
        assert!(drawn.contains(figure), "no {figure}");
    }
    // Op and depth, of two quantities; and the links.
    assert_eq!(drawn.matches("<svg").count(), 2 * 2 * 2 + 2 * 2);
    for op in ["read", "write"] {
        let stock = without.is_none().then_some("stock chain");
        for path in ["end to end", "ceiling", "conventional", "forwarding"].into_iter().chain(stock) {
            let rows = said.lines().filter(|line| line.starts_with(op) || line.starts_with(' '));
            assert!(rows.filter(|line| line.contains(path)).count() >= 2, "{op} {path}\n{said}");
        }
        let beside = |line: &str| line.starts_with(op) && line.contains("(document)") && !line.contains("none");
        assert_eq!(said.lines().filter(|line| beside(line)).count(), 2, "{said}");
        let beside = |line: &str| line.starts_with(op) && line.contains("to stock chain") && !line.contains("none");
        assert_eq!(said.lines().filter(|line| beside(line)).count(), if without.is_none() { 3 } else { 0 }, "{said}");
    }
}
