//! `sanloom apply` and difficult cases of host links: shared wires, unavailable ports, hosts with
//! requests in flight, and port changes by an operator.

use crate::control::instance::Instance;
use crate::control::raw_port::RawPort;
use sanloom_api::apply::ApplyReport;
use sanloom_test_support::needs;
use sanloom_test_support::process;
use sanloom_test_support::programs;
use sanloom_test_support::programs::run;
use sanloom_test_support::qemu_io::Writer;
use sanloom_test_support::wait;
use serde_json::Value;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]

[host."server{1..6}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.files]
lun_size = "64MiB"
medium = "file"

[[link]]
from = "files"
to = "sw1:0"
"#;

/// A lab with these host links: numbers of the host and of its port, and the keys of `ethernet`
/// beside `carrier = "dgram"`.
fn lab(links: &[(u8, &str)]) -> String {
    let link = |(number, more): &(u8, &str)| {
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        let ends = format!("from = \"server{number}\"\nto = \"sw1:{number}\"");
        format!("\n[[link]]\n{ends}\nethernet = {{ carrier = \"dgram\"{more} }}\n")
    };
    LAB.to_owned() + &links.iter().map(link).collect::<String>()
}

const WIRE: &str = "address = \"wire.sock\", peer = \"wire.peer.sock\"";

fn on_wire(vlan: u16) -> String {
    format!("{WIRE}, vlan = {vlan}")
}

fn apply(instance: &Instance, lab: &str) -> String {
    instance.write_lab(lab);
    instance.run("apply LAB").good()
}

/// Sentences that describe the rejected changes.
fn refused(instance: &Instance, lab: &str) -> String {
    instance.write_lab(lab);
    let ran = instance.run("apply LAB --json");
    let report: ApplyReport = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert!(!report.applied && ran.code == 2, "{ran:?}");
    report.refused.join("\n")
}

fn is_logged_in(instance: &Instance, host: &str) -> bool {
    instance.run("show flogi LAB --live").good().contains(host)
}

/// VLANs that forwarders on the wire report, as `fipvlan` prints them.
fn vlans(instance: &Instance) -> String {
    let ends = ["wire.peer.sock", "wire.sock"].map(|name| instance.path(name));
    let found = instance.run(&format!("fipvlan --mac 52:54:00:00:00:09 dgram:{}", ends.join(","))).good();
    let vlan = |line: &str| Some(line.split('|').nth(1)?.trim().to_owned());
    found.lines().filter_map(vlan).skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn links_share_a_new_wire_and_leave_it_one_by_one() {
    let mut instance = Instance::start("links-wire", &lab(&[(1, "")]));
    let stays = RawPort::log_in(&instance, "server1-sw1", 1);
    apply(&instance, &lab(&[(1, ""), (2, &on_wire(102)), (3, &on_wire(103))]));
    assert_eq!(vlans(&instance), "102 103");
    // The link that named the port is removed, the second one changes its VLAN, and a third one is
    // added.
    apply(&instance, &lab(&[(1, ""), (3, &on_wire(113)), (4, &on_wire(104))]));
    assert_eq!(vlans(&instance), "104 113");
    // All links leave the port, and another link gets its path at the same time, without a VLAN.
    apply(&instance, &lab(&[(1, ""), (5, WIRE)]));
    RawPort::log_in_at(&instance, ["wire.sock", "wire.peer.sock"], 5);
    // The path is removed with its last link.
    apply(&instance, &lab(&[(1, "")]));
    assert!(!instance.folder.join("wire.sock").exists());
    assert!(!stays.receives_clear(Duration::from_millis(300)), "an unrelated host was notified");
    assert!(is_logged_in(&instance, "server1"));
    instance.stop();
}

#[test]
fn hosts_keep_their_links_if_a_new_port_is_unavailable() {
    let mut instance = Instance::start("links-busy", &lab(&[(1, ""), (2, "")]));
    let ports = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let nowhere = lab(&[(1, ""), (2, "")]).replacen("\"dgram\"", "\"packet\", address = \"nowhere0\"", 1);
    assert!(refused(&instance, &nowhere).contains("cannot open the interface nowhere0"));
    // Another process uses the socket: connected to another peer, and of another type.
    let [own, theirs] = ["theirs.sock", "somebody.sock"].map(|name| instance.folder.join(name));
    let other = std::os::unix::net::UnixDatagram::bind(&own).unwrap();
    let _somebody = std::os::unix::net::UnixDatagram::bind(&theirs).unwrap();
    other.connect(&theirs).unwrap();
    let _stream = std::os::unix::net::UnixListener::bind(instance.folder.join("stream.sock")).unwrap();
    for name in ["theirs.sock", "stream.sock"] {
        let taken = lab(&[(1, &format!("address = \"{name}\"")), (2, "")]);
        assert!(refused(&instance, &taken).contains("in use by another process"), "{name}");
        assert!(instance.folder.join(name).exists());
    }
    for port in &ports {
        assert!(!port.receives_clear(Duration::from_millis(200)), "{} was notified", port.port_id);
    }

    // The path is occupied at the last moment: the other changes are applied, and the next apply
    // opens the link.
    let path = instance.folder.join("server1-sw1.sock");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let changed = lab(&[(1, "enodes = 2"), (2, "enodes = 2"), (3, "")]);
    instance.write_lab(&changed);
    let ran = instance.run("apply LAB");
    assert!(ran.code != 0 && ran.stderr.contains("applied in part only"), "{ran:?}");
    RawPort::log_in(&instance, "server3-sw1", 3);
    std::fs::remove_dir(&path).unwrap();
    let output = apply(&instance, &changed);
    assert!(output.contains("link server1-sw1 is opened at sw1:1") && !output.contains("server2"), "{output}");
    let first = RawPort::log_in(&instance, "server1-sw1", 1);
    first.log_in_another(4);
    assert!(apply(&instance, &changed).contains("nothing to change"));
    instance.stop();
}

/// Neither ports of the switch nor descriptors accumulate.
#[test]
fn links_come_and_go_fifty_times() {
    let with = |vlan: u16| lab(&[(1, "enodes = 3"), (2, &format!("vlan = {vlan}, enodes = 4")), (3, "")]);
    let mut instance = Instance::start("links-fifty", &with(200));
    let stays = RawPort::log_in(&instance, "server3-sw1", 3);
    let resources = |instance: &Instance| {
        let rows = |table: &str, list: &str| {
            let view = instance.run(&format!("show {table} LAB --live --json")).good();
            serde_json::from_str::<Value>(&view).unwrap()[list].as_array().unwrap().len()
        };
        (rows("counters", "counters"), rows("ports", "ports"), process::entries(instance.id(), "fd").len())
    };
    let before = resources(&instance);
    for round in 0..25 {
        apply(&instance, &lab(&[(3, "")]));
        apply(&instance, &with(201 + round));
    }
    // The descriptor of the last request may still be open.
    wait::until(
        || format!("{before:?} instead of {:?}", resources(&instance)),
        || {
            let (counters, ports, descriptors) = resources(&instance);
            (counters, ports) == (before.0, before.1) && descriptors <= before.2
        },
    );
    // Four ports of the lab, and five for additional hosts.
    let ran = instance.run("port enable sw1:8 LAB");
    assert_eq!(ran.code, 0, "{ran:?}");
    instance.run("port enable sw1:9 LAB").refused("there is no port `sw1:9` here");
    let first = RawPort::log_in(&instance, "server1-sw1", 1);
    [4, 5].into_iter().for_each(|number| first.log_in_another(number));
    assert!(!stays.receives_clear(Duration::from_millis(200)));
    instance.stop();
}

/// A reopened port keeps the operator's settings; its captures end with complete files.
#[needs("tshark")]
#[test]
fn settings_of_an_operator_at_a_port_are_kept() {
    let mut instance = Instance::start("links-operator", &lab(&[(1, ""), (2, "")]));
    drop(RawPort::log_in(&instance, "server1-sw1", 1));
    instance.run("port inject sw1:1 LAB --match els==FLOGI --do reject:09/00").good();
    instance.run(&format!("capture server1-sw1 LAB --to {}", instance.path("first.pcapng"))).good();
    instance.run("port disable sw1:1 LAB").good();
    apply(&instance, &lab(&[(1, "enodes = 2"), (2, "")]));
    instance.run("capture server1-sw1 LAB").refused("no capture of `server1-sw1` is running");
    let output = run("tshark", &["-r", &instance.path("first.pcapng"), "-T", "fields", "-e", "fip.opcode"]);
    assert!(!output.is_empty(), "nothing was captured");
    let ports = instance.run("show ports LAB --live --json").good();
    let ports: Value = serde_json::from_str(&ports).unwrap();
    let row = ports["ports"].as_array().unwrap().iter().find(|row| row["port"] == "sw1:1").unwrap();
    assert_eq!(row["light"], false, "{row}");
    instance.run("port enable sw1:1 LAB").good();
    assert!(instance.run("show injections LAB --live").good().contains("els==FLOGI"));
    instance.run("port inject sw1:1 LAB --clear").good();
    instance.run(&format!("capture server1-sw1 LAB --to {}", instance.path("second.pcapng"))).good();
    RawPort::log_in(&instance, "server1-sw1", 1);
    assert!(!instance.run("capture server1-sw1 LAB").good().starts_with("0 "));

    // A removed port has neither.
    apply(&instance, &lab(&[(2, "")]));
    for line in ["capture server1-sw1 LAB", "capture sw1:1 LAB"] {
        let ran = instance.run(line);
        assert_ne!(ran.code, 0, "{line}: {ran:?}");
    }
    instance.run("port inject sw1:1 LAB --match els==FLOGI --do drop").refused("nothing is attached to `sw1:1`");
    // The port can be disabled, and stays so when it has a link again.
    instance.run("port disable sw1:1 LAB").good();
    let shown = instance.run("show switch LAB --live --json").good();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["switches"][0]["disabled_ports"], serde_json::json!([1]));
    apply(&instance, &lab(&[(1, ""), (2, "")]));
    let ports = instance.run("show ports LAB --live --json").good();
    let ports: Value = serde_json::from_str(&ports).unwrap();
    let row = ports["ports"].as_array().unwrap().iter().find(|row| row["port"] == "sw1:1").unwrap();
    assert_eq!(row["dark"], "disabled", "{row}");
    instance.run("port enable sw1:1 LAB").good();
    RawPort::log_in(&instance, "server1-sw1", 1);
    instance.stop();
}

/// The link of a host is closed while it writes, and reopened with another number of hosts: this
/// causes a pause and no error.
#[needs("qemu-io")]
#[test]
fn a_link_that_is_reopened_under_io_only_pauses_it() {
    let mut instance = Instance::start("links-io", &lab(&[(1, ""), (2, "")]));
    let other = RawPort::log_in(&instance, "server2-sw1", 2);
    instance.start_initiator("server1");
    let uri = programs::uri(&instance.folder.join("nbd.sock"), "");
    // The last round leaves its own contents.
    let writer = Writer::start(&uri, 1, |round| {
        let each = |kind: &'static str| (0..60).map(move |n| format!("{kind} -P {} {n}M 1M", 1 + (n + round) % 250));
        each("write").chain(each("read")).collect()
    });
    for round in 0..3 {
        writer.wait_for(10);
        apply(&instance, &lab(&[(1, if round % 2 == 0 { "enodes = 2" } else { "" }), (2, "")]));
    }
    writer.wait_for(5);
    apply(&instance, &lab(&[(2, "")]));
    // The link is away with a command in flight.
    instance.wait("the initiator has lost its login", |instance| instance.log().contains("the fabric login was lost"));
    apply(&instance, &lab(&[(1, ""), (2, "")]));
    writer.wait_for(10);
    writer.stop();
    assert!(!other.receives_clear(Duration::from_millis(200)));
    instance.stop();
}

/// A recorded instance keeps its initial ports; the rest of the lab may change.
#[test]
fn a_recorded_instance_keeps_its_links() {
    let mut instance = Instance::start("links-recorded", &lab(&[(1, "")]));
    instance.stop();
    instance.up(&["--record", &instance.path("run.jsonl")]);
    let host = RawPort::log_in(&instance, "server1-sw1", 1);
    for other in [lab(&[]), lab(&[(1, ""), (2, "")]), lab(&[(1, "enodes = 2")])] {
        assert!(refused(&instance, &other).contains("a recording holds only the ports of its start"));
    }
    assert!(!instance.folder.join("server2-sw1.sock").exists());
    let larger = lab(&[(1, "")]).replace("64MiB", "65MiB");
    assert!(apply(&instance, &larger).contains("grows to"));
    assert!(!host.receives_clear(Duration::from_millis(200)));
    instance.stop();
    assert!(instance.run("replay @run.jsonl").good().contains("outputs the same"));
}
