//! The forwarding path on sockets: forwarded data are right for every layout of the volume and
//! after a failure within a PDU.

use crate::iscsi::relay;
use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::gate::Gate;
use crate::iscsi_switch::tgt;
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::run;
use sanloom_test_support::qemu_io::{QemuIo, Writer};
use sanloom_test_support::wait;

/// Three volumes: on one back end, concatenated over two, and striped over two.
const VOLUMES: &str = "[volume.striped]\npool = \"disks\"\nsize = \"24MiB\"\nwidth = 2\nstripe = \"256KiB\"\nstorage = \"switch\"\nlun = 2\n\
    [volume.small]\npool = \"disks\"\nsize = \"20MiB\"\nstorage = \"switch\"\nlun = 0\n\
    [volume.across]\npool = \"disks\"\nsize = \"50MiB\"\nstorage = \"switch\"\nlun = 1\n";

/// Runs commands, which must succeed, when the switch forwards for its hosts.
pub fn qemu(switch: &Switch<'_>, commands: &[String], url: &str) {
    let mut disk = QemuIo::open(url);
    switch.wait_for_forwarding();
    commands.iter().for_each(|command| _ = disk.run(command));
    disk.close();
}

/// Patterns of all sizes at different alignments, each verified.
fn patterns(size: u64) -> Vec<String> {
    let mut all = Vec::new();
    for (n, bytes) in (0_u64..).zip([512, 3 << 10, 64 << 10, 100 << 10, 257 << 10, 1 << 20, 5 << 20]) {
        for step in 0..3 {
            let at = (n * 7919 + step * 40_009) * 512 % (size - bytes) / 512 * 512;
            let pattern = 1 + n * 3 + step;
            all.extend([format!("write -P {pattern} {at} {bytes}"), format!("read -P {pattern} {at} {bytes}")]);
        }
    }
    all
}

/// Total bytes of all patterns.
const PATTERN_BYTES: u64 = 3 * (512 + (3 << 10) + (64 << 10) + (100 << 10) + (257 << 10) + (1 << 20) + (5 << 20));

/// Writes and verifies on each volume; all commands are forwarded.
fn assert_volumes(switch: &Switch<'_>) {
    for (lun, volume, size) in [(0, "small", 20), (1, "across", 50), (2, "striped", 24)] {
        let url = switch.url(lun);
        qemu(switch, &patterns(size << 20), &url);
        let [forwarded, conventional] = switch.carried(volume);
        println!("{volume}: forwarded {forwarded:?}, conventional {conventional:?}");
        assert!(forwarded.read_bytes >= PATTERN_BYTES && forwarded.written_bytes >= PATTERN_BYTES, "{forwarded:?}");
        // QEMU may probe the first blocks before it starts.
        assert!(conventional.read_bytes + conventional.written_bytes < 64 << 10, "{conventional:?}");
    }
}

#[needs("qemu-iscsi")]
#[test]
fn qemu_verifies_data_forwarded_to_our_own_targets() {
    let bed = Bed::new("forwarded");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{VOLUMES}",
        bed::back_end("first", "disks", &[&portals[0]]),
        bed::back_end("second", "disks", &[&portals[1]]),
    );
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["small", "across", "striped"]);
    assert_volumes(&switch);
    let stats = run(SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    assert!(stats.contains("commands split"), "{stats}");
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi", "tgtadm")]
#[test]
fn qemu_verifies_data_forwarded_to_tgt() {
    let bed = Bed::new("forwarded-tgt");
    let targets = tgt::start(&bed, &[40 << 20, 80 << 20]);
    let lab = format!("[pool.disks]\nextent = \"1MiB\"\n{}{VOLUMES}", targets.back_ends("disks"));
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["small", "across", "striped"]);
    assert_volumes(&switch);
    switch.stop();
    bed.folder.assert_no_errors();
}

/// A switch whose back ends are reached through gates, with one striped volume of 48 MiB.
pub fn through_gates<'b>(bed: &'b Bed, portals: &[String; 2], forward: bool) -> (Switch<'b>, [Gate; 2]) {
    let gates = portals.each_ref().map(|portal| Gate::to(portal));
    let lab = format!(
        "[pool.disks]\nextent = \"1MiB\"\n{}{}{}",
        bed::back_end("first", "disks", &[&gates[0].address]),
        bed::back_end("second", "disks", &[&gates[1].address]),
        "[volume.v]\npool = \"disks\"\nsize = \"48MiB\"\nwidth = 2\nstripe = \"256KiB\"\nstorage = \"switch\"\n",
    );
    let switch = Switch::start_on(bed, forward, &lab);
    switch.wait_for(&["v"]);
    (switch, gates)
}

#[needs("qemu-iscsi")]
#[test]
fn a_back_end_that_dies_in_the_middle_of_data_costs_the_host_its_connection_and_no_data() {
    let bed = Bed::new("mid-read");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    qemu(&switch, &["write -P 0x5a 0 48M".to_owned()], &url);
    // QEMU logs in again after its connection is closed, and repeats unacknowledged commands.
    let reader = Writer::start(&url, 1, |_| (0..20).map(|n| format!("read -P 0x5a {}M 4M", n % 11 * 4)).collect());
    let half = || bed.folder.logged("closed: a back end was lost in the middle of a PDU");
    let mut number = 0;
    wait::until(
        || "a PDU that was cut".to_owned(),
        || {
            // The cut data may belong to the switch's own session with the back end.
            reader.wait_for(1);
            switch.wait_for_forwarding();
            let back_end = number % 2;
            let name = ["first", "second"][back_end];
            let lost = bed.lost_sessions(name);
            // PDUs have 256 KiB, so this is within one.
            gates[back_end].cut_after(400_000);
            bed.wait_for_lost_session(name, lost);
            number += 1;
            reader.wait_for(1);
            half() > 0
        },
    );
    reader.stop();
    switch.assert_path("v", true, 8 << 20, 0);
    println!("{} PDUs cut", half());
    switch.stop();
    bed.folder.assert_no_errors();
}

#[needs("qemu-iscsi")]
#[test]
fn writes_of_a_killed_host_do_not_land_later() {
    let bed = Bed::new("mid-write");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    let in_flight = || bed.folder.logged("the host disconnected while back ends may still be writing for it");
    const ROUNDS: usize = 6;
    for round in 0..ROUNDS {
        let mut host = QemuIo::open(&url);
        switch.wait_for_forwarding();
        (0..round).for_each(|n| _ = host.run(&format!("write -P {} {}M 4M", 100 + round, n * 4)));
        // Data are in flight to one back end or to both when the host is killed.
        let held = &gates[..1 + round % 2];
        held.iter().for_each(Gate::hold);
        host.start(&format!("write -P {} {}M 4M", 100 + round, round * 4));
        held.iter().for_each(Gate::wait_until_held);
        host.kill();
        wait::until(|| "the switch completes the write".to_owned(), || in_flight() > round);
        if round % 3 == 2 {
            gates.iter().for_each(Gate::cut);
        }
        held.iter().for_each(Gate::release);
        // The next host writes to the same blocks and verifies them.
        let mut next = QemuIo::open(&url);
        switch.wait_for_forwarding();
        (0..6).for_each(|n| _ = next.run(&format!("write -P {} {}M 4M", 1 + round, n * 4)));
        next.run(&format!("read -P {} 0 24M", 1 + round));
        gates.iter().for_each(Gate::wait_until_passed);
        (0..6).for_each(|n| _ = next.run(&format!("read -P {} {}M 4M", 1 + round, n * 4)));
        next.close();
    }
    switch.assert_path("v", true, 24 << 20, 100 << 20);
    // Each of these writes was completed before another host wrote there.
    let completed = bed.folder.logged("all writes of a disconnected host have ended");
    assert_eq!([in_flight(), completed], [ROUNDS; 2], "hosts with writes in flight, and their ends");
    let volume = &switch.volumes(&[]).volumes[0];
    assert_eq!(volume.tasks, 0, "something still holds the map");
    switch.stop();
    bed.folder.assert_no_errors();
}

/// QEMU's traffic through a switch, captured on both sides and decoded by tshark. With `digests`,
/// the host and tgt use them.
fn capture(name: &str, digests: bool) {
    let bed = Bed::new(name);
    let more: &[&str] = match digests {
        true => &["--name HeaderDigest --value CRC32C", "--name DataDigest --value CRC32C"],
        false => &[],
    };
    let mut targets = tgt::start_with(&bed, &[50 << 20, 80 << 20], more);
    let (behind, back_capture) = relay::start(&targets.portal);
    targets.portal = behind;
    let volume =
        "[volume.striped]\npool = \"disks\"\nsize = \"64MiB\"\nwidth = 2\nstripe = \"256KiB\"\nstorage = \"switch\"\n";
    let lab = format!("[pool.disks]\nextent = \"1MiB\"\n{}{volume}", targets.back_ends("disks"));
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["striped"]);
    let (portal, front_capture) = relay::start(&switch.portals[0]);
    let commands =
        ["write -P 0x11 3k 600k", "read -P 0x11 3k 600k", "write -P 0x12 1M 3k", "read -P 0x12 1M 3k", "flush"];
    let commands = commands.map(str::to_owned);
    let initiator = digests.then(|| bed.initiator_with(&portal, &["--digests"]));
    let disk = match &initiator {
        Some(_) => crate::iscsi_switch::uri(&bed.folder.join("nbd.sock"), "iqn.2026-11.example.sanloom:switch-lun-0"),
        None => switch.url_at(&portal, 0),
    };
    // A digest covers a whole segment, so data from several extents take the conventional path.
    let bytes = if digests { 3 << 10 } else { 603 << 10 };
    // The first commands of a session take the conventional path until its sessions with the back
    // ends have started.
    wait::until(
        || format!("forwarded data, {:?}", switch.carried("striped")),
        || {
            let [before, _] = switch.carried("striped");
            qemu(&switch, &commands, &disk);
            let [after, _] = switch.carried("striped");
            after.read_bytes - before.read_bytes >= bytes && after.written_bytes - before.written_bytes >= bytes
        },
    );
    drop(initiator);
    switch.stop();
    for (side, capture) in [("front", front_capture), ("back", back_capture)] {
        let file = bed.path(&format!("{side}.pcapng"));
        capture.lock().unwrap().save(&file);
        let text = relay::dissect(&file);
        for there in ["Login Command", "SCSI Data In", "SCSI Data Out", "SCSI Response"] {
            assert!(text.contains(there), "no {there:?} in {side}");
        }
        assert_eq!(text.contains("(Good CRC32)"), digests, "{side}");
    }
}

#[needs("qemu-iscsi", "tgtadm", "tshark")]
#[test]
fn tshark_finds_nothing_malformed_in_forwarded_data() {
    capture("forwarded-capture", false);
}

#[needs("qemu-iscsi", "tgtadm", "tshark")]
#[test]
fn digests_pass_and_are_right() {
    capture("forwarded-digests", true);
}
