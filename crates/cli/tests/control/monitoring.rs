//! What monitoring and administrators read of a running instance: metrics over HTTP, LUNs.

use crate::instance::Instance;
use crate::peer::{fail, find, run};
use crate::process;
use sanloom_api::view::{Table, View};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LAB: &str = r#"metrics = "127.0.0.1:0"

[switch.sw1]

[host."server{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
luns = 2
lun_size = "1MiB"

[storage.file]
lun_size = "2MiB"
medium = "file"
cache = "write-back"

[[link]]
from = "server{1..2}"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "{ram,file}"
to = "sw1"

[[mask]]
hosts = "server1"
targets = "ram:lun1"
"#;

/// Where metrics are read.
fn metrics_address(instance: &Instance) -> String {
    let log = instance.log();
    let address = log.lines().find_map(|line| line.split_once("metrics address=")).map(|(_, rest)| rest);
    address.and_then(|rest| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{log}")).to_owned()
}

fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut said = String::new();
    connection.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn metrics_are_read_over_tcp_and_the_control_socket() {
    let mut instance = Instance::start("metrics", LAB);
    instance.wait("two logins", |instance| instance.zones("sw1").ports.len() == 2);
    let address = &metrics_address(&instance);
    let said = get(address, "/metrics");
    assert!(said.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{said}");
    let (_, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "# TYPE sanloom_port_frames counter",
        "sanloom_switch_logins{switch=\"sw1\"} 2",
        "sanloom_switch_domain{switch=\"sw1\"} 1",
        "sanloom_switch_zones_kept{switch=\"sw1\"} 1",
        "sanloom_port_up{link=\"server1-sw1\"} 0",
        "sanloom_lun_active_tasks{storage=\"ram\",lun=\"1\"} 0",
    ] {
        assert!(body.lines().any(|found| found == line), "no {line} in\n{body}");
    }
    // Each line is a comment or a name, its labels, and a number.
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(line.starts_with("sanloom_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(get(address, "/").starts_with("HTTP/1.1 404 "));
    // Nobody controls an instance over the network.
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"{\"request\":\"stop\"}\n\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    if let Some(curl) = find("curl") {
        let socket = instance.path("control.sock");
        let said = run(curl, &["--silent", "--fail", "--unix-socket", &socket, "http://localhost/metrics"]);
        assert!(said.contains("sanloom_switch_logins{switch=\"sw1\"} 2\n"), "{said}");
        fail(curl, &["--silent", "--fail", "--unix-socket", &socket, "http://localhost/"]);
    }
    assert_eq!(instance.zones("sw1").ports.len(), 2, "it runs on");
    instance.stop();
}

#[test]
fn luns_are_shown_with_who_sees_them() {
    let mut instance = Instance::start("luns", LAB);
    let shown = instance.run("show luns LAB --live --json").good();
    let view: View = serde_json::from_str(&shown).unwrap();
    let Table::Luns(table) = view.table else { panic!("{shown}") };
    let rows: Vec<String> = (table.luns.iter())
        .map(|row| {
            let who = if row.everybody { "everybody".to_owned() } else { row.seen_by.join(" ") };
            format!("{} {} {} {} {} {who}", row.storage, row.lun, row.size_bytes, row.medium, row.write_back)
        })
        .collect();
    assert_eq!(
        rows,
        ["ram 0 1048576 ram false ", "ram 1 1048576 ram false server1", "file 0 2097152 file true everybody"]
    );
    let text = instance.run("show luns LAB --live").good();
    assert!(text.contains("nobody") && text.contains("write-back") && text.contains("1,048,576"), "{text}");
    // A medium in a file says whether the page cache is behind it, the other ones have nothing to say.
    let past: Vec<Option<bool>> = table.luns.iter().map(|row| row.direct).collect();
    let log = instance.log();
    assert_eq!(past, [None, None, Some(!log.contains("no direct I/O"))]);
    assert!(text.contains(if past[2] == Some(true) { "file, direct" } else { "file, page cache" }), "{text}");
    instance.run("show luns LAB").refused("--live");
    instance.stop();
}

/// Neither does it spin, nor are there threads without a limit, and afterwards it answers again.
#[test]
fn too_many_clients_and_too_few_descriptors_do_no_harm() {
    let mut instance = Instance::start("crowd", LAB);
    let address = metrics_address(&instance);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(500));
    let threads = process::entries(instance.id(), "task").len();
    assert!((60..90).contains(&threads), "{threads} threads for {} clients", silent.len());
    drop(silent);
    assert!(get(&address, "/metrics").ends_with("# EOF\n"));

    let limit = process::hold_descriptors(instance.id());
    let waiting = TcpStream::connect(&address).unwrap();
    let busy = process::busy(instance.id(), Duration::from_secs(1));
    assert!(busy < Duration::from_millis(300), "{busy:?} of processor time in a second");
    limit.lift();
    drop(waiting);
    assert!(get(&address, "/metrics").ends_with("# EOF\n"));
    instance.stop();
}

/// Every table, as JSON that says which it is and as text with a line for each row.
#[test]
fn every_table_of_a_running_instance_is_shown_and_told_as_json() {
    let mut instance = Instance::start("tables", LAB);
    instance.wait("two logins", |instance| instance.zones("sw1").ports.len() == 2);
    for (table, part) in [
        ("switch", "sw1"),
        ("flogi", "ram"),
        ("ns", "ram"),
        ("zone", "zones"),
        ("fabric", "sw1"),
        ("routes", ""),
        ("ports", "sw1:0"),
        ("counters", "sw1"),
        ("luns", "write-back"),
        ("injections", ""),
        ("volumes", ""),
        ("paths", ""),
        ("sessions", ""),
    ] {
        let told = instance.run(&format!("show {table} LAB --live --json")).good();
        let view: View = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{table}: {error} in {told}"));
        let again = serde_json::to_value(&view).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(&told).unwrap(), "{table}");
        let text = instance.run(&format!("show {table} LAB --live")).good();
        assert!(text.contains(part), "{table}: no {part} in {text}");
    }
    instance.stop();
}
