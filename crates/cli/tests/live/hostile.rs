//! A host that sends what it should not, beside one that works.

use crate::bed::{Bed, check_capture};
use crate::mutate::{Mutator, captured, kind};
use crate::peer::{find, run, uri};
use sanloom_api::view::{Table, View};
use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "2s" }

[host.attacker]
wwpn = "20:00:52:54:00:00:00:02"

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

/// Frames of a campaign.
const FRAMES: usize = 10_000;
/// Frames at once, and the pause behind them: a flood would only fill the socket.
const BURST: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Says how often a pass of its work took longer than three seconds, and what its kernel complains of.
const SCRIPT: &str = r#"
fcoe-initiator 1 || exit 1
dmesg -c >/dev/null
dd if=/dev/urandom of=/tmp/data bs=64k count=1 2>/dev/null
pass=0
slow=0
end=$(($(cut -d. -f1 /proc/uptime) + 30))
while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do
    begun=$(cut -d. -f1 /proc/uptime)
    seek=$((pass % 60))
    dd if=/tmp/data of=/dev/sda bs=64k seek=$seek oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=64k skip=$seek count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    [ $(($(cut -d. -f1 /proc/uptime) - begun)) -gt 3 ] && slow=$((slow + 1))
    pass=$((pass + 1))
    echo "pass $pass at $(cut -d. -f1 /proc/uptime)"
    usleep 300000
done
cd /sys/class/fc_host/host*
echo "passes $pass, slow $slow, $(cat port_state), link failures $(printf %d $(cat statistics/link_failure_count))"
dmesg
echo "complaints $(dmesg | grep -icE 'error|abort|reset|timed out|blocked|fail|rport')"
"#;

/// Ten thousand frames, each derived from one that a host has sent or been sent: FIP, ELS, CT, FCP. The other host works on as
/// if nothing were, and afterwards the port is as good as before. `SANLOOM_SEEDS` campaigns from `SANLOOM_FIRST_SEED` on.
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
    let Some(mut bed) = Bed::start("hostile", LAB, &["server1-sw1"]) else { return };
    let initiator = ["{folder}/lab.toml", "--host", "attacker"];
    let Some(qemu_io) = find("qemu-io") else { return };
    // A session from its beginning to its end.
    let nbd = bed.start_initiator("attacker", &initiator);
    run(qemu_io, &["-f", "raw", "-c", "write -P 7 0 32k", "-c", "read -P 7 0 32k", &uri(&nbd, "")]);
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
    let began = (uptime(&running.hear("pass 3 ")), Instant::now());
    let path = |ending: &str| bed.folder.join(format!("attacker-sw1.{ending}"));
    let _ = std::fs::remove_file(path("peer.sock"));
    let socket = UnixDatagram::bind(path("peer.sock")).unwrap();
    // The switch takes frames of its peer only, and looks ten times a second who that is.
    let begun = Instant::now();
    while let Err(error) = socket.connect(path("sock")) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{error}");
        thread::sleep(PAUSE);
    }
    let sent = attack(&socket, Mutator::new(seed, frames.clone()), &frames);
    drop(socket);
    // What it said meanwhile is still to be read. Its clock tells whole seconds.
    let over = began.0 + began.1.elapsed().as_secs() + 1;
    while uptime(&running.hear("pass ")) <= over {}
    assert!(["FIP", "ELS", "CT", "FCP"].iter().all(|kind| sent[kind] > FRAMES / 100), "{sent:?}");
    println!("{sent:?}");

    let console = running.end().good();
    let said = console.lines().find(|line| line.starts_with("passes ")).unwrap_or_default();
    assert!(said.contains("slow 0, Online, link failures 0"), "{console}");
    assert!(console.contains("complaints 0"), "{console}");
    let log = bed.log();
    let own = "port_name=20:00:52:54:00:00:00:01";
    let events = |what: &str| log.lines().filter(|line| line.contains(what) && line.contains(own)).count();
    assert_eq!((events("port logged in"), events("port gone")), (1, 0), "{log}");
    // What came in was looked at, in all parts of the switch.
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
    // The port is as good as before.
    let _ = std::fs::remove_file(path("peer.sock"));
    bed.start_initiator("attacker", &initiator);
    bed.stop_others();
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 3 * 2 * 32);
}

/// When the guest ended the last pass that it told of, in seconds since its start.
fn uptime(heard: &str) -> u64 {
    heard.trim_end().rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap()
}

/// Sends mutated frames, and between them those of the session as they were, so that the switch knows the sender. Gives back how
/// many of each kind were sent.
fn attack(socket: &UnixDatagram, mut mutator: Mutator, session: &[Vec<u8>]) -> BTreeMap<&'static str, usize> {
    let over = AtomicBool::new(false);
    let mut sent = BTreeMap::new();
    let begun = Instant::now();
    thread::scope(|scope| {
        // What the switch answers is taken: otherwise it would be held back, and the frames with it.
        scope.spawn(|| {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut frame = [0; 4096];
            while !over.load(Ordering::SeqCst) {
                let _ = socket.recv(&mut frame);
            }
        });
        for number in 0..FRAMES {
            // Its logins, so that it is a host of the fabric again.
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
    println!("{FRAMES} frames in {:?}", begun.elapsed());
    sent
}

fn counters(bed: &Bed) -> BTreeMap<String, BTreeMap<String, u64>> {
    let view: View = serde_json::from_str(&bed.command(&["show", "counters", "--live", "--json"])).unwrap();
    match view.table {
        Table::Counters(table) => table.counters.into_iter().map(|row| (row.of, row.counters)).collect(),
        other => panic!("{other:?}"),
    }
}
