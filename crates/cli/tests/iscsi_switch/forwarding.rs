//! The forwarding path on sockets: what passes is right, whatever the volume looks like and whoever dies in the middle of a PDU.

use crate::bed::{self, Bed, Switch, free_port};
use crate::gate::Gate;
use crate::peer::{find, run};
use crate::{find_qemu, relay, tgt};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Three volumes: on one back end, over two of them one behind the other, and in stripes.
const VOLUMES: &str = "[volume.striped]\npool = \"disks\"\nsize = \"24MiB\"\nwidth = 2\nstripe = \"256KiB\"\nstorage = \"switch\"\nlun = 2\n\
    [volume.small]\npool = \"disks\"\nsize = \"20MiB\"\nstorage = \"switch\"\nlun = 0\n\
    [volume.across]\npool = \"disks\"\nsize = \"50MiB\"\nstorage = \"switch\"\nlun = 1\n";

/// Runs commands when the switch has had time for its own sessions with the back ends.
pub fn qemu(qemu_io: &str, commands: &[String], url: &str) -> String {
    let mut arguments = vec!["-f", "raw", "-c", "sleep 300"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command.as_str()]));
    arguments.push(url);
    run(qemu_io, &arguments)
}

/// Patterns of all sizes at all kinds of places, each read back.
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

/// Bytes of all patterns.
const PATTERN_BYTES: u64 = 3 * (512 + (3 << 10) + (64 << 10) + (100 << 10) + (257 << 10) + (1 << 20) + (5 << 20));

/// Writes and verifies on each volume; all of it was forwarded.
fn assert_volumes(switch: &Switch<'_>) {
    for (lun, volume, size) in [(0, "small", 20), (1, "across", 50), (2, "striped", 24)] {
        let url = switch.url(lun);
        let Some(qemu_io) = find_qemu(&url) else { return };
        let said = qemu(qemu_io, &patterns(size << 20), &url);
        assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
        let [forwarded, conventional] = switch.carried(volume);
        println!("{volume}: forwarded {forwarded:?}, conventional {conventional:?}");
        assert!(forwarded.read_bytes >= PATTERN_BYTES && forwarded.written_bytes >= PATTERN_BYTES, "{forwarded:?}");
        // QEMU may look at the first blocks before it begins.
        assert!(conventional.read_bytes + conventional.written_bytes < 64 << 10, "{conventional:?}");
    }
}

#[test]
fn qemu_verifies_what_passed_to_our_own_targets() {
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
    let stats = run(bed::SANLOOM, &["show", "stats", &bed.path("switch.toml"), "--live"]);
    assert!(stats.contains("commands split"), "{stats}");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn qemu_verifies_what_passed_to_tgt() {
    let Some(_) = find("tgtadm") else { return };
    let bed = Bed::new("forwarded-tgt");
    let targets = tgt::start(&bed, &[40 << 20, 80 << 20]);
    let lab = format!("[pool.disks]\nextent = \"1MiB\"\n{}{VOLUMES}", targets.back_ends("disks"));
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["small", "across", "striped"]);
    assert_volumes(&switch);
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
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

#[test]
fn a_back_end_that_dies_in_the_middle_of_data_costs_the_host_its_connection_and_no_data() {
    let bed = Bed::new("mid-read");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    qemu(qemu_io, &["write -P 0x5a 0 48M".to_owned()], &url);
    // QEMU logs in again when its connection is closed, and repeats what was not answered.
    let (until, stop) = (Instant::now() + Duration::from_secs(60), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let reader = thread::spawn(move || {
        let reads: Vec<String> = (0..20).map(|n| format!("read -P 0x5a {}M 4M", n % 11 * 4)).collect();
        while !stopped.load(Ordering::Relaxed) {
            let said = qemu(qemu_io, &reads, &url);
            assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
        }
    });
    let half = || bed.log().matches("closed in the middle of a PDU").count();
    for number in 0.. {
        // The switch looks at the back ends first, every half second, and then the host's own sessions begin.
        thread::sleep(Duration::from_millis(700));
        if half() > 0 {
            break;
        }
        assert!(Instant::now() < until && !reader.is_finished(), "no PDU was cut\n{}", bed.log());
        // PDUs have 256 KiB: this is in the middle of one.
        gates[number % 2].cut_after(400_000);
    }
    stop.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    switch.assert_path("v", true, 8 << 20, 0);
    println!("{} PDUs cut", half());
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

#[test]
fn a_host_that_dies_in_the_middle_of_data_leaves_nothing_that_writes_later() {
    let bed = Bed::new("mid-write");
    let portals = [free_port(), free_port()];
    let _first = bed::storage(&bed, "first", &portals[0]);
    let _second = bed::storage(&bed, "second", &portals[1]);
    let (mut switch, gates) = through_gates(&bed, &portals, true);
    let url = switch.url(0);
    let Some(qemu_io) = find_qemu(&url) else { return };
    // Where nothing was on its way to the back ends when the host was killed, the round says nothing.
    let under_way = || bed.log().matches("back ends may still be writing for it").count();
    for round in (0..20_u64).take_while(|round| *round < 6 || under_way() < 3) {
        let logins = bed.host_logins();
        let mut command = Command::new(qemu_io);
        command.args(["-f", "raw"]);
        for n in 0..300 {
            command.args(["-c", &format!("write -P {} {}M 4M", 100 + round, n % 6 * 4)]);
        }
        let mut host = command.arg(&url).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while bed.host_logins() == logins {
            assert!(host.try_wait().unwrap().is_none());
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(40 + 15 * (round % 6)));
        assert!(host.try_wait().unwrap().is_none(), "it was to be killed while it writes");
        host.kill().unwrap();
        host.wait().unwrap();
        if round % 2 == 1 {
            gates.iter().for_each(Gate::cut);
        }
        // The next host writes to the same blocks, and reads what it has written.
        let commands = [
            (0..6).map(|n| format!("write -P {} {}M 4M", 1 + round, n * 4)).collect(),
            vec![format!("read -P {} 0 24M", 1 + round), "sleep 200".to_owned()],
            (0..6).map(|n| format!("read -P {} {}M 4M", 1 + round, n * 4)).collect(),
        ]
        .concat();
        let said = qemu(qemu_io, &commands, &url);
        assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    }
    switch.assert_path("v", true, 24 << 20, 100 << 20);
    // Writes were under way, and each was over before anybody else wrote there.
    let over = bed.log().matches("nothing is written any more for a host that is gone").count();
    let counts = [under_way(), over];
    assert!(counts[0] >= 3 && counts[0] == counts[1], "{counts:?}\n{}", bed.log());
    let volume = &switch.volumes(&[]).volumes[0];
    assert_eq!(volume.tasks, 0, "something still holds the map");
    switch.stop();
    assert!(!bed.log().contains("ERROR"), "{}", bed.log());
}

/// What QEMU does through a switch with both sides captured: tshark understands all of it. `digests`: the host and tgt both have them.
fn capture(name: &str, digests: bool) {
    let (Some(_), Some(_)) = (find("tshark"), find("tgtadm")) else { return };
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
    let Some(qemu_io) = find_qemu(&switch.url(0)) else { return };
    let commands =
        ["write -P 0x11 3k 600k", "read -P 0x11 3k 600k", "write -P 0x12 1M 3k", "read -P 0x12 1M 3k", "flush"];
    let commands = commands.map(str::to_owned);
    let initiator = digests.then(|| bed.initiator_with(&portal, &["--digests"]));
    let said = match &initiator {
        Some(_) => {
            let export = crate::uri(&bed.folder.join("nbd.sock"), "iqn.2026-11.example.sanloom:switch-lun-0");
            qemu(qemu_io, &commands, &export)
        }
        None => qemu(qemu_io, &commands, &switch.url_at(&portal, 0)),
    };
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    drop(initiator);
    // A digest covers a whole segment: what lies in several places goes the conventional way then.
    let bytes = if digests { 3 << 10 } else { 603 << 10 };
    switch.assert_path("striped", true, bytes, bytes);
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

#[test]
fn tshark_finds_nothing_malformed_in_what_is_forwarded() {
    capture("forwarded-capture", false);
}

#[test]
fn digests_pass_and_are_right() {
    capture("forwarded-digests", true);
}
