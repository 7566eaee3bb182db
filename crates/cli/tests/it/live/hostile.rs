//! A host that sends invalid frames, next to a well-behaved one.

use crate::live::bed::{Bed, check_capture};
use crate::live::mutate::{Mutator, captured, kind};
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{run, uri};
use sanloom_test_support::tshark;
use sanloom_test_support::wait;
use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "2s" }

# No byte is that of the other host's name, so no mutation of a few bytes makes that name: a login
# with it would replace the other host's session, as the switch should.
[host.attacker]
wwpn = "2f:a1:b2:c3:d4:e5:f6:a7"

[storage."{quiet,attacked}"]
lun_size = "64MiB"

[zoning]
default = "closed"

[[zone]]
name = "z1"
members = ["server1", "quiet"]

[[zone]]
name = "z2"
members = ["attacker", "attacked"]

[[link]]
from = "attacker"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "{quiet,attacked}"
to = "sw1"
"#;

/// Number of frames per campaign.
const FRAMES: usize = 10_000;
/// Burst size in frames and the pause after it, because a flood would only fill the socket.
const BURST: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Writes, reads back and compares until the test ends it. Reports after each pass.
const SCRIPT: &str = r#"
fcoe-initiator 1 || exit 1
dmesg -c >/dev/null
echo "dmesg cleared"
dd if=/dev/urandom of=/tmp/data bs=64k count=1 2>/dev/null
cd /sys/class/fc_host/host*
pass=0
while :; do
    seek=$((pass % 60))
    dd if=/tmp/data of=/dev/sda bs=64k seek=$seek oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=64k skip=$seek count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    pass=$((pass + 1))
    dmesg -c
    echo "port $(cat port_state), link failures $(printf %d $(cat statistics/link_failure_count))"
    echo "pass $pass"
    usleep 300000
done
"#;

/// Ten thousand frames, each derived from a frame that a host has sent or received: FIP, ELS, CT,
/// FCP. The other host is not affected, and afterwards the port works as before. Runs
/// `SANLOOM_SEEDS` campaigns from `SANLOOM_FIRST_SEED` on.
#[needs("guest", "qemu-io", "tshark")]
#[test]
fn ten_thousand_mutated_frames_do_not_disturb_another_host() {
    let number = |name: &str, or| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok()).unwrap_or(or);
    let first = number("SANLOOM_FIRST_SEED", 1);
    for seed in first..first + number("SANLOOM_SEEDS", 1) {
        println!("seed {seed}");
        campaign(seed);
    }
}

fn campaign(seed: u64) {
    let mut bed = Bed::start("hostile", LAB, &["server1-sw1"]);
    let initiator = ["{folder}/lab.toml", "--host", "attacker"];
    // A session from login to logout.
    let nbd = bed.start_initiator("attacker", &initiator);
    run("qemu-io", &["-f", "raw", "-c", "write -P 7 0 32k", "-c", "read -P 7 0 32k", &uri(&nbd, "")]);
    bed.stop_others();
    let frames = captured(&bed.capture("attacker"));
    let kinds = |frames: &[Vec<u8>]| {
        frames.iter().fold(BTreeMap::<&str, usize>::new(), |mut kinds, frame| {
            *kinds.entry(kind(frame)).or_default() += 1;
            kinds
        })
    };
    let captured = kinds(&frames);
    assert!(["FIP", "ELS", "CT", "FCP"].iter().all(|kind| captured.contains_key(kind)), "{captured:?}");

    let mut running = bed.guest("server1", 1, SCRIPT);
    running.wait_for_line("pass 3");
    let path = |ending: &str| bed.folder.join(format!("attacker-sw1.{ending}"));
    let _ = std::fs::remove_file(path("peer.sock"));
    let socket = UnixDatagram::bind(path("peer.sock")).unwrap();
    // The switch accepts frames only from its peer, and checks ten times a second which peer that
    // is.
    wait::until(|| "the switch takes a peer".to_owned(), || socket.connect(path("sock")).is_ok());
    let sent = attack(&socket, Mutator::new(seed, frames.clone()), &frames);
    drop(socket);
    // The first of them may have begun during the attack.
    running.wait_for_new_lines("pass ", 2);
    assert!(["FIP", "ELS", "CT", "FCP"].iter().all(|kind| sent[kind] > FRAMES / 100), "{sent:?}");
    println!("{sent:?}");

    let console = running.console().to_owned();
    let passes = console.matches("\npass ").count();
    assert_eq!(console.matches("port Online, link failures 0").count(), passes, "passes with an undisturbed port");
    let is_complaint = |line: &str| {
        let line = line.to_lowercase();
        ["error", "abort", "reset", "timed out", "blocked", "fail:", "failed", "rport"]
            .iter()
            .any(|word| line.contains(word))
    };
    let complaints: Vec<&str> = console
        .split_once("dmesg cleared")
        .map_or(&*console, |(_, rest)| rest)
        .lines()
        .filter(|line| is_complaint(line))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    // A lost frame would have been followed by a REC after two seconds, or by an ABTS.
    // Read before the guest ends, because that ends its login.
    let log = bed.log();
    running.kill();
    let own = "port_name=20:00:52:54:00:00:00:01";
    let events = |what: &str| log.lines().filter(|line| line.contains(what) && line.contains(own)).count();
    assert_eq!((events("port logged in"), events("port gone")), (1, 0), "logins and logouts of the other host");
    // The frames reached all parts of the switch.
    let counters = counters(&bed);
    let of = |row: &str, name: &str| {
        let row = &counters[row];
        row.iter().filter(|(counter, _)| counter.starts_with(name)).map(|(_, value)| *value).sum::<u64>()
    };
    assert!(of("sw1:1", "frames in") >= FRAMES as u64, "{counters:#?}");
    for (row, name) in [
        ("sw1:1", "dropped: "),
        ("sw1:1", "discarded FIP: "),
        ("sw1", "name server requests"),
        ("sw1", "name server rejects"),
    ] {
        assert!(of(row, name) > 0, "no {name} at {row}: {counters:#?}");
    }
    // The port works as before.
    let _ = std::fs::remove_file(path("peer.sock"));
    bed.start_initiator("attacker", &initiator);
    bed.stop_others();
    bed.stop();
    let capture = bed.capture("server1-sw1");
    check_capture(&capture, 3 * 2 * 32);
    let recovery = tshark::frames(&capture, "fcels.opcode == 0x13 || fc.r_ctl == 0x81");
    assert!(recovery.is_empty(), "the initiator missed frames: {recovery:?}");
}

/// Sends mutated frames, interleaved with the unchanged session, so that the switch accepts the
/// sender. Returns the number of frames sent, by kind.
fn attack(socket: &UnixDatagram, mut mutator: Mutator, session: &[Vec<u8>]) -> BTreeMap<&'static str, usize> {
    let over = AtomicBool::new(false);
    let mut sent = BTreeMap::new();
    thread::scope(|scope| {
        // Replies of the switch are read, because otherwise the switch would pause the port.
        scope.spawn(|| {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut frame = [0; 4096];
            while !over.load(Ordering::SeqCst) {
                let _ = socket.recv(&mut frame);
            }
        });
        for number in 0..FRAMES {
            // Logs in again, so that the sender is a host of the fabric.
            if number % 500 == 0 {
                session.iter().take(40).for_each(|frame| assert!(socket.send(frame).is_ok()));
            }
            if number % BURST == 0 {
                thread::sleep(PAUSE);
            }
            let frame = mutator.next();
            *sent.entry(kind(&frame)).or_default() += 1;
            socket.send(&frame).unwrap();
        }
        over.store(true, Ordering::SeqCst);
    });
    sent
}

fn counters(bed: &Bed) -> BTreeMap<String, BTreeMap<String, u64>> {
    let view: View = serde_json::from_str(&bed.command(&["show", "counters", "--live", "--json"])).unwrap();
    match view.table {
        Table::Counters(table) => table.counters.into_iter().map(|row| (row.of, row.counters)).collect(),
        other => panic!("{other:?}"),
    }
}
