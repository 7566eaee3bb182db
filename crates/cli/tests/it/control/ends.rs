//! Reports of an instance about its ports and its shutdown: to programs that read its log, to
//! hosts, and to processes that look for a free port.

use crate::control::instance::Instance;
use crate::control::raw_port::RawPort;
use crate::sanloom::SANLOOM;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]

[host."server{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "server2"
to = "sw1"
ethernet = { carrier = "stream" }

[[link]]
from = "ram"
to = "sw1"
"#;

#[test]
fn events_are_objects_in_the_log_and_hosts_hear_of_the_end() {
    let mut instance = Instance::start_under("ends", LAB, |lab, _| {
        let mut command = Command::new(SANLOOM);
        command.args(["up", lab, "--log-json"]);
        command
    });
    let port = RawPort::log_in(&instance, "server1-sw1", 1);
    instance.stop();
    assert!(port.receives_clear(Duration::from_secs(5)), "the host was not notified");
    let log = instance.log();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for event in &events {
        assert!(event["timestamp"].is_string() && event["level"].is_string(), "{event}");
    }
    let field_of = |message: &str, field: &str| {
        let event = events.iter().find(|event| event["fields"]["message"] == message);
        event.unwrap_or_else(|| panic!("no log line with {message}"))["fields"][field].clone()
    };
    assert_eq!(field_of("link", "port"), "server1-sw1");
    assert_eq!(field_of("host logged in", "mac"), "52:54:00:00:00:01");
    assert_eq!(field_of("port logged in", "port_name"), "20:00:52:54:00:00:00:01");
    assert!(field_of("up", "lab").is_string());
    assert!(log.lines().last().unwrap().contains("down"));
}

#[test]
fn a_port_inside_the_process_is_disabled_and_enabled() {
    let mut instance = Instance::start("inner-port", LAB);
    let is_known = |instance: &Instance| instance.run("show ns LAB --live").good().contains("ram");
    instance.wait("storage", is_known);
    instance.run("port disable sw1:2 LAB").good();
    instance.wait("no storage", |instance| !is_known(instance));
    instance.run("port enable sw1:2 LAB").good();
    instance.wait("storage again", is_known);
    instance.stop();
}

/// Any use of the socket counts, also a peer connected only to the switch, and a stream.
#[test]
fn a_port_with_a_peer_is_not_offered_to_qemu() {
    let mut instance = Instance::start("free", LAB);
    let free = |instance: &Instance| -> Vec<String> {
        let ports: Value = serde_json::from_str(&instance.run("up LAB --print-qemu --json").good()).unwrap();
        ports.as_array().unwrap().iter().map(|port| port["link"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(free(&instance), ["server1-sw1", "server2-sw1"]);
    let host = RawPort::log_in(&instance, "server1-sw1", 1);
    assert_eq!(free(&instance), ["server2-sw1"]);
    let _stream = UnixStream::connect(instance.folder.join("server2-sw1.sock")).unwrap();
    instance.wait("the stream", |instance| free(instance).is_empty());
    drop(host);
    instance.wait("the first to be free", |instance| free(instance) == ["server1-sw1"]);
    let failed = instance.run("capture sw1:0 LAB --to /nowhere/x.pcapng");
    assert!(failed.code == 4 && failed.stderr.contains("cannot write the capture"), "{failed:?}");
    let begun: Value = serde_json::from_str(
        &instance.run(&format!("capture sw1:0 LAB --json --to {}", instance.path("port.pcapng"))).good(),
    )
    .unwrap();
    assert_eq!((&begun["port"], &begun["file"]), (&"sw1:0".into(), &instance.path("port.pcapng").into()));
    let ended: Value = serde_json::from_str(&instance.run("capture sw1:0 LAB --json").good()).unwrap();
    assert!(ended["frames"].is_u64(), "{ended}");
    instance.stop();
}
