//! Frames between two Ethernet ports of a running switch: forwarded, paused, and dropped with a
//! counter.

use crate::control::instance::Instance;
use crate::control::raw_port::{RawPort, number_of};
use crate::sanloom::Start;
use sanloom_api::fcoe;
use sanloom_api::view::{Table, View};
use sanloom_test_support::wait::{self, TIMEOUT};
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

const LAB: &str = r#"
[timers]
hold_time = "{hold_time}"
r_a_tov = "60s"

[switch.sw1]

[host."server{1..3}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[[link]]
from = "server{1..3}"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;

/// Time after which a port that has sent nothing is taken to have nothing to send. A shorter one
/// makes a check weaker and does not make a test fail.
const SILENCE: Duration = Duration::from_millis(300);

fn start(name: &str, hold_time: &str) -> Instance {
    Instance::start(name, &LAB.replace("{hold_time}", hold_time))
}

/// Frames dropped by a port, by reason.
fn drops(instance: &Instance, port: &str) -> BTreeMap<String, u64> {
    let dropped = counters(instance, port).into_iter();
    let dropped = dropped.filter_map(|(name, count)| Some((name.strip_prefix("dropped: ")?.into(), count)));
    dropped.filter(|(_, count)| *count > 0).collect()
}

fn counters(instance: &Instance, port: &str) -> BTreeMap<String, u64> {
    let view: View = serde_json::from_str(&instance.run("show counters LAB --live --json").good()).unwrap();
    let Table::Counters(table) = view.table else { panic!("{view:?}") };
    table.counters.into_iter().find(|row| row.of == port).unwrap_or_else(|| panic!("no {port}")).counters
}

/// A forwarded frame keeps its CRC and data, right or wrong, because the receiver counts a wrong
/// CRC.
#[test]
fn a_wrong_crc_is_forwarded_and_a_wrong_source_is_not() {
    let mut instance = start("forwarding", "500ms");
    let [one, other] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let sent = one.frame(other.port_id, 1, 256);
    let mut damaged = sent.clone();
    // Last byte of the data; CRC and delimiter follow.
    let last = damaged.len() - 9;
    damaged[last] ^= 0x10;
    for frame in [&sent, &damaged] {
        one.socket.send(frame).unwrap();
        let got = other.next(TIMEOUT).expect("a frame");
        assert_eq!(got[ETHER_BYTES..], frame[ETHER_BYTES..]);
        assert_eq!((&got[..6], &got[6..12]), (&other.mac.0[..], &other.fcf.0[..]));
        let right = sanloom_wire::fcoe::Fcoe::parse(&got[ETHER_BYTES..]).unwrap().crc_is_right();
        assert_eq!(right, *frame == sent);
    }
    for port in ["sw1:0", "sw1:1"] {
        assert_eq!(drops(&instance, port), BTreeMap::new(), "{port}");
    }

    // Our host counts the bad CRC.
    let (lab, folder) = (instance.path("lab.toml"), instance.path("run"));
    std::fs::create_dir(&folder).unwrap();
    let (nbd, control) = (format!("{folder}/server3.sock"), format!("{folder}/server3.ctl"));
    let arguments = ["initiator", &lab, "--host", "server3", "--nbd", &nbd, "--control", &control];
    let mut initiator = instance.folder.sanloom(arguments);
    let described = || -> fcoe::Instance {
        let text = instance.run(&format!("fcoeadm --run-folder {folder} -i server3 --json")).good();
        serde_json::from_str::<Vec<fcoe::Instance>>(&text).unwrap().remove(0)
    };
    let port_id = described().ports[0].port_id.expect("a login");
    let mut damaged = one.frame(sanloom_wire::FcId::new(port_id), 2, 256);
    damaged[last] ^= 0x10;
    one.socket.send(&damaged).unwrap();
    instance.wait("the initiator counts a wrong CRC", |_| described().statistics.invalid_crcs == 1);
    assert_eq!(drops(&instance, "sw1:2"), BTreeMap::new());
    initiator.stop();

    // Another host's MAC address, then another host's FC-ID, with the sender's own MAC address and
    // with the other's.
    let mut foreign_mac = sent.clone();
    foreign_mac[6..12].copy_from_slice(&MacAddr([0x52, 0x54, 0, 9, 9, 9]).0);
    let mut stolen_mac = sent.clone();
    stolen_mac[6..12].copy_from_slice(&other.mac.0);
    let own_socket = || one.socket.try_clone().unwrap();
    let foreign_id = RawPort { port_id: other.port_id, socket: own_socket(), ..one }.frame(other.port_id, 3, 256);
    // Both addresses belong to the other host and are valid only at its port.
    let impostor = RawPort { socket: own_socket(), fcf: one.fcf, ..other }.frame(other.port_id, 4, 256);
    let mut to_nobody = sent.clone();
    to_nobody[..6].copy_from_slice(&MacAddr([2, 0, 0, 0, 0, 9]).0);
    for frame in [&foreign_mac, &stolen_mac, &foreign_id, &impostor, &to_nobody] {
        one.socket.send(frame).unwrap();
    }
    assert_eq!(other.next(SILENCE), None);
    let expected = BTreeMap::from([("not_for_us", 1), ("spoofed", 3), ("unknown_source", 1)]);
    let expected: BTreeMap<String, u64> = expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(drops(&instance, "sw1:0"), expected);
    // Frames with its own addresses still pass.
    one.socket.send(&sent).unwrap();
    assert_eq!(number_of(&other.next(TIMEOUT).expect("a frame")), 1);
    instance.stop();
}

/// Sends numbered frames until the switch accepts no more.
fn fill(from: &RawPort, to: &RawPort, first: u32) -> u32 {
    const MANY: u32 = 50_000;
    from.socket.set_nonblocking(true).unwrap();
    let mut next = first;
    let mut refused = Instant::now();
    // One blocked attempt is not sufficient, because the switch may be busy.
    while refused.elapsed() < SILENCE {
        match from.socket.send(&from.frame(to.port_id, next, 2_048)) {
            Ok(_) => (next, refused) = (next + 1, Instant::now()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        assert!(next - first < MANY, "nobody is held back");
        std::thread::yield_now();
    }
    from.socket.set_nonblocking(false).unwrap();
    next
}

#[test]
fn a_full_peer_pauses_the_sender_without_loss() {
    let mut instance = start("lossless", "30s");
    let [one, other] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let mut sent = 0;
    let mut expected = 0;
    for _ in 0..3 {
        sent = fill(&one, &other, sent);
        while expected < sent {
            let frame = other.next(TIMEOUT).unwrap_or_else(|| panic!("frame {expected} of {sent} is lost"));
            assert_eq!(number_of(&frame), expected);
            expected += 1;
        }
    }
    assert_eq!(other.next(SILENCE), None);
    for port in ["sw1:0", "sw1:1"] {
        assert_eq!(drops(&instance, port), BTreeMap::new(), "{port}");
    }
    instance.stop();
}

#[test]
fn frames_for_a_blocked_peer_are_dropped_only_after_the_hold_time() {
    let mut instance = start("silent", "500ms");
    let [one, other] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    one.socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    // The sender fills every buffer on the way, and again after frames were dropped.
    let expired = || drops(&instance, "sw1:1").get("hold time over").copied().unwrap_or(0);
    for _ in 0..3 {
        let before = expired();
        let is_dropped = || {
            while one.socket.send(&one.frame(other.port_id, sent, 2_048)).is_ok() {
                sent += 1;
            }
            expired() > before
        };
        wait::until(|| "frames are dropped".to_owned(), is_dropped);
    }
    // The remaining frames arrive in order, before the last one.
    let mut numbers = Vec::new();
    let last_arrives = || {
        while let Some(frame) = other.next(SILENCE) {
            numbers.push(number_of(&frame));
        }
        let arrives = numbers.last().is_some_and(|number| number + 1 == sent);
        if !arrives && one.socket.send(&one.frame(other.port_id, sent, 2_048)).is_ok() {
            sent += 1;
        }
        arrives
    };
    wait::until(|| "the last frame".to_owned(), last_arrives);
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(drops(&instance, "sw1:0"), BTreeMap::new());
    let dropped = drops(&instance, "sw1:1");
    assert_eq!(dropped.keys().collect::<Vec<_>>(), ["hold time over"]);
    let lost = u64::from(sent) - numbers.len() as u64;
    // The switch's own frames to the silent port may be lost, too.
    assert!(lost > 0 && (lost..lost + 20).contains(&dropped["hold time over"]), "{lost} of {sent} lost, {dropped:?}");
    instance.stop();
}

/// Every discarded frame is counted with its reason: at a station without a switch, at an LLDP
/// agent, and at a forwarder.
#[test]
fn frames_that_stations_and_agents_discard_are_counted_by_reason() {
    let lab = LAB.replace("{hold_time}", "500ms").replacen("\"dgram\" }", "\"dgram\", dcbx = true }", 1);
    let station = "\n[storage.station]\nlun_size = \"1MiB\"\nvn2vn = { carrier = \"dgram\" }\n";
    let mut instance = Instance::start("counted", &(lab + station));
    let socket = |link: &str| {
        let socket = UnixDatagram::bind(instance.folder.join(format!("{link}.peer.sock"))).unwrap();
        socket.connect(instance.folder.join(format!("{link}.sock"))).unwrap();
        socket
    };
    let frame = |to: MacAddr, ether_type| {
        let mut bytes = Vec::new();
        EtherHeader { to, from: MacAddr([0x52, 0x54, 0, 0, 0, 9]), ether_type, tag: None }.emit(&mut bytes);
        bytes.extend([0xff; 60]);
        bytes
    };
    let [station, host] = ["station", "server1-sw1"].map(socket);
    let stranger = MacAddr([0x52, 0x54, 0, 0, 0, 8]);
    let expected = [
        ("station", &station, frame(stranger, EtherType::FIP), "discarded FIP: not_for_us"),
        ("station", &station, frame(MacAddr::ALL_VN2VN_ENODES, EtherType::FIP), "discarded FIP: malformed"),
        ("sw1:0", &host, frame(stranger, EtherType::FIP), "dropped: not for us"),
        ("sw1:0", &host, frame(MacAddr::NEAREST_BRIDGE, EtherType::LLDP), "discarded LLDP"),
    ];
    for (port, socket, bytes, counter) in expected {
        // Frames sent before the port's next peer check are lost.
        let is_counted = || {
            socket.send(&bytes).unwrap();
            counters(&instance, port).get(counter).is_some_and(|count| *count > 0)
        };
        wait::until(|| format!("{port}: {counter} in {:?}", counters(&instance, port)), is_counted);
    }
    instance.stop();
}
