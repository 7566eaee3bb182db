//! Priority flow control (IEEE 802.1Qbb) on packet sockets: a host, two switches in two processes,
//! and a disk, over interfaces in a network namespace.

use crate::initiator::bed::Bed;
use crate::initiator::netns::{in_namespace, section};
use sanloom_api::view::{Table, View};
use sanloom_test_support::{needs, tshark};

const LAB: &str = r#"
# Nothing may be late on a slow machine.
[timers]
hold_time = "30s"
r_a_tov = "60s"
[live]
folder = "{folder}"
control = "control.sock"
[switch."sw{1..2}"]
[host.server1]
wwpn = "20:00:52:54:00:00:00:01"
[storage.disk]
lun_size = "64MiB"
[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "{carrier}", address = "h0", peer = "h1", vlan = 152, dcbx = true }
[[link]]
from = "disk"
to = "sw2"
[[isl]]
from = "sw1"
to = "sw2"
ethernet = { carrier = "packet", address = "v0", peer = "v1", vlan = 100, dcbx = true }
"#;

/// Sends pauses of priority 3 to the port at the other end of an interface, for a time.
const PAUSE: &str = r#"
import socket, struct, sys, time
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind((sys.argv[1], 0))
frame = bytes.fromhex("0180c2000001 020000000099 8808 0101 0008") + struct.pack("!8H", 0, 0, 0, 65535, 0, 0, 0, 0)
end = time.monotonic() + float(sys.argv[2])
port.send(frame.ljust(60, b"\0"))
print("paused", flush=True)
while time.monotonic() < end:
    port.send(frame.ljust(60, b"\0"))
    time.sleep(0.0005)
"#;

const SCRIPT: &str = r#"
{interfaces}
pair v0 v1
start up --switch sw2 $folder/lab.toml
two=$started
start up --switch sw1 $folder/lab.toml --capture server1-sw1=$folder/host.pcapng --capture ISL1=$folder/isl.pcapng
one=$started
start initiator $folder/lab.toml --host server1 --nbd $folder/nbd.sock
host=$started
qemu-io -f raw -c "write -P 0x51 0 8M" -c flush "nbd+unix:///?socket=$folder/nbd.sock"
echo "== read"
mkfifo $folder/paused
python3 $folder/pause.py {paused} 0.4 >$folder/paused &
pauser=$!
read said <$folder/paused
qemu-io -f raw -c "read -P 0x51 0 8M" "nbd+unix:///?socket=$folder/nbd.sock"
wait $pauser
echo "== counters"
$sanloom show counters $folder/lab.toml --live --switch sw1 --json
echo "== end"
kill $host $one $two
wait $host $one $two
"#;

/// Sender of these pauses.
const PAUSER: &str = "02:00:00:00:00:99";
/// Begin of the addresses of the first switch.
const FIRST_SWITCH: &str = "02:53:4c:01";
/// Limit of an egress queue, and as many frames that a port has read in the same turn.
const QUEUE: u32 = 256 + 8 * 32;
/// Longest pause: 65,535 quanta of 512 bit times at 10 Gb/s, in seconds.
const PAUSE_S: f64 = 65_535.0 * 512.0 / 10e9;

/// A frame of a capture: time in seconds, EtherType, sender, paused priorities, and the quanta of
/// priority 3.
struct Row {
    at_s: f64,
    ether_type: String,
    from: String,
    priorities: String,
    quanta: String,
}

fn rows(bed: &Bed, capture: &str) -> Vec<Row> {
    let fields = ["frame.time_epoch", "eth.type", "eth.src", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3"];
    let arguments: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let bytes = std::fs::read(bed.path(capture)).expect("the capture");
    let text = tshark::read_bytes(&bytes, &[&["-T", "fields"][..], &arguments].concat());
    let row = |line: &str| {
        let mut values = line.split('\t').map(str::to_owned);
        let mut next = || values.next().unwrap_or_default();
        let at_s = next().parse().expect("a time");
        Row { at_s, ether_type: next(), from: next(), priorities: next(), quanta: next() }
    };
    text.lines().map(row).collect()
}

fn pauses_are_honoured_and_sent(name: &str, carrier: &str, interfaces: &str, paused: &str) {
    let bed = Bed::folder(name, &LAB.replace("{carrier}", carrier));
    std::fs::write(bed.path("pause.py"), PAUSE).expect("the script");
    let output = in_namespace(&bed, &SCRIPT.replace("{interfaces}", interfaces).replace("{paused}", paused));
    let log = bed.log();
    let read = section(&output, "read");
    assert!(read.contains("read 8388608/8388608") && !read.contains("failed"), "{output}\n{log}");

    // While the peer pauses the priority, only the egress queue takes frames, and captures have
    // them from then on.
    let host = rows(&bed, "host.pcapng");
    let (mut ends_s, mut waiting, mut pauses, mut after) = (0.0, 0, 0, 0);
    for row in &host {
        if row.ether_type == "0x8808" && row.from == PAUSER {
            assert_eq!((row.priorities.as_str(), row.quanta.as_str()), ("0x0008", "65535"));
            waiting = if row.at_s < ends_s { waiting } else { 0 };
            (ends_s, pauses) = (row.at_s + PAUSE_S, pauses + 1);
        } else if row.ether_type == "0x8100" && row.from.starts_with(FIRST_SWITCH) {
            waiting += u32::from(row.at_s < ends_s);
            assert!(waiting <= QUEUE, "{waiting} frames for a peer that pauses\n{log}");
            after += u32::from(pauses > 0);
        }
    }
    assert!(pauses > 50 && after > 3_500, "{pauses} pauses, {after} frames\n{log}");

    // The first switch, whose egress is full, pauses the second one, and ends that.
    let isl = rows(&bed, "isl.pcapng");
    let sent = |quanta: &str| {
        let by_us = |row: &&Row| row.ether_type == "0x8808" && row.from.starts_with(FIRST_SWITCH);
        isl.iter().filter(by_us).filter(|row| row.priorities == "0x0008" && row.quanta == quanta).count()
    };
    assert!(sent("65535") > 0 && sent("0") > 0, "{} and {}\n{log}", sent("65535"), sent("0"));

    // Nothing is lost.
    let view: View = serde_json::from_str(section(&output, "counters")).expect("the counters");
    let Table::Counters(table) = view.table else { panic!("{view:?}") };
    for row in &table.counters {
        for (counter, count) in &row.counters {
            let is_lost = counter.starts_with("dropped") && !counter.ends_with("other protocol");
            assert!(!is_lost || *count == 0, "{}: {counter} {count}\n{log}", row.of);
        }
    }
}

#[needs("namespace", "qemu-io", "tshark")]
#[test]
fn a_paused_peer_at_a_packet_socket_loses_nothing_and_gets_nothing() {
    pauses_are_honoured_and_sent("pause-packet", "packet", "pair h0 h1", "h1");
}

#[needs("namespace", "qemu-io", "tshark")]
#[test]
fn a_paused_peer_at_a_tap_loses_nothing_and_gets_nothing() {
    pauses_are_honoured_and_sent("pause-tap", "tap", "", "h0");
}
