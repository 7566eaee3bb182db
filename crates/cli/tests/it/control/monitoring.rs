//! Monitoring of a running instance: metrics over HTTP, and LUNs.

use crate::control::instance::Instance;
#[cfg(feature = "surface")]
use crate::control::zoned::two_disks;
#[cfg(feature = "surface")]
use crate::sanloom::SANLOOM;
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::process;
use sanloom_test_support::programs::{fail, run};
use sanloom_test_support::wait::{self, TIMEOUT};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
#[cfg(feature = "surface")]
use std::process::{Command, Stdio};
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

/// Address of the metrics.
fn metrics_address(instance: &Instance) -> String {
    let log = instance.log();
    let address = log.lines().find_map(|line| line.split_once("metrics address=")).map(|(_, rest)| rest);
    address.and_then(|rest| rest.split_whitespace().next()).expect("the address in the log").to_owned()
}

fn get(address: &str, path: &str) -> String {
    get_accepting(address, path, "application/openmetrics-text")
}

fn get_accepting(address: &str, path: &str, accept: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut output = String::new();
    connection.read_to_string(&mut output).unwrap();
    output
}

#[needs("curl")]
#[test]
fn metrics_are_read_over_tcp_and_the_control_socket() {
    let mut instance = Instance::start("metrics", LAB);
    instance.wait("two logins", |instance| instance.zones("sw1").ports.len() == 2);
    let address = &metrics_address(&instance);
    let output = get(address, "/metrics");
    assert!(
        output.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0"),
        "{output}"
    );
    let (_, body) = output.split_once("\r\n\r\n").unwrap();
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "# TYPE sanloom_port_frames counter",
        "sanloom_switch_logins{switch=\"sw1\"} 2",
        "sanloom_switch_domain{switch=\"sw1\"} 1",
        "sanloom_switch_zones_kept{switch=\"sw1\"} 1",
        "sanloom_lun_active_tasks{storage=\"ram\",lun=\"1\"} 0",
    ] {
        assert!(body.lines().any(|found| found == line), "no {line} in\n{body}");
    }
    // A port has the labels of the management interfaces.
    for (name, value) in [("port_up", "0"), ("port_link_failures_total", "0"), ("port_crc_errors_total", "0")] {
        let start = format!("sanloom_{name}{{link=\"server1-sw1\",switch=\"sw1\",port=\"0/");
        let end = format!("\"}} {value}");
        let found =
            body.lines().any(|line| line.starts_with(&start) && line.contains("wwn=\"") && line.ends_with(&end));
        assert!(found, "no {name} of the port in\n{body}");
    }
    // Each line is a comment or a name, its labels, and a number.
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(line.starts_with("sanloom_") && value.parse::<f64>().is_ok(), "{line}");
    }
    let older = get_accepting(address, "/metrics", "*/*");
    assert!(older.contains("Content-Type: text/plain; version=0.0.4"), "{older}");
    assert!(older.contains("# TYPE sanloom_port_frames_total counter\n") && !older.contains("# EOF"), "{older}");
    assert!(get(address, "/").starts_with("HTTP/1.1 404 "));
    // The network address does not permit control of the instance.
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"{\"request\":\"stop\"}\n\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let socket = instance.path("control.sock");
    let output = run("curl", &["--silent", "--fail", "--unix-socket", &socket, "http://localhost/metrics"]);
    assert!(output.contains("sanloom_switch_logins{switch=\"sw1\"} 2\n"), "{output}");
    fail("curl", &["--silent", "--fail", "--unix-socket", &socket, "http://localhost/"]);
    assert_eq!(instance.zones("sw1").ports.len(), 2, "it runs on");
    instance.stop();
}

/// Checks metrics as `promtool check metrics` does, and returns their text.
#[cfg(feature = "surface")]
#[track_caller]
fn checked_by_promtool(instance: &Instance) -> String {
    let socket = instance.path("control.sock");
    let metrics = run("curl", &["--silent", "--fail", "--unix-socket", &socket, "http://localhost/metrics"]);
    let mut promtool = Command::new("promtool");
    let promtool = promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut promtool = promtool.stderr(Stdio::piped()).spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}\n{metrics}");
    metrics
}

#[cfg(feature = "surface")]
#[needs("curl", "promtool")]
#[test]
fn promtool_finds_nothing_in_the_metrics_of_a_live_and_a_simulated_lab() {
    let mut live = Instance::start("promtool-live", LAB);
    checked_by_promtool(&live);
    live.stop();
    let lab = two_disks("[switch.sw1]\n", "sw1");
    let mut simulated = Instance::start_under("promtool-simulated", &lab, |lab, _| {
        let mut command = Command::new(SANLOOM);
        command.args(["up", lab, "--simulated"]);
        command
    });
    let metrics = checked_by_promtool(&simulated);
    for name in ["sanloom_port_credit_wait_seconds_total{", "sanloom_port_credit_zero_seconds_total{"] {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert_eq!(value.split_once('.').map(|(_, digits)| digits.len()), Some(9), "seconds: {line}");
    }
    simulated.stop();
}

#[test]
fn luns_are_shown_with_their_masks() {
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
    // A medium in a file reports whether it uses the page cache; other media report nothing.
    let past: Vec<Option<bool>> = table.luns.iter().map(|row| row.direct).collect();
    let log = instance.log();
    assert_eq!(past, [None, None, Some(!log.contains("no direct I/O"))]);
    assert!(text.contains(if past[2] == Some(true) { "file, direct" } else { "file, page cache" }), "{text}");
    instance.run("show luns LAB").refused("--live");
    instance.stop();
}

/// Number of clients that are served at once.
const SERVED: usize = 64;
/// Pause after a client could not be accepted.
const PAUSE: Duration = Duration::from_millis(500);

/// The instance neither spins nor starts threads without a limit, and afterwards answers again.
#[needs("prlimit")]
#[test]
fn too_many_clients_and_too_few_descriptors_do_no_harm() {
    let mut instance = Instance::start("crowd", LAB);
    let address = metrics_address(&instance);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // The last client is served, so the idle ones before the last 64 have been disconnected.
    let mut disconnected = &silent[silent.len() - 1 - SERVED];
    disconnected.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(disconnected.read(&mut [0]).unwrap(), 0);
    let threads = || process::entries(instance.id(), "task").len();
    wait::until(|| format!("{} threads for {} clients", threads(), silent.len()), || threads() < 90);
    assert!(threads() >= 60, "{} threads for {} clients", threads(), silent.len());
    drop(silent);
    assert!(get(&address, "/metrics").ends_with("# EOF\n"));

    let limit = process::hold_descriptors(instance.id());
    // A descriptor that was in use for a moment may still serve the first of them.
    let waiting: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let failure = "a client of the control socket could not be served";
    instance.folder.wait_for_log(failure, 3);
    let times = instance.folder.logged_at(failure);
    for pair in times.windows(2) {
        let between = pair[1].checked_sub(pair[0]).unwrap_or(PAUSE);
        assert!(between >= PAUSE, "the next attempt follows after {between:?}");
    }
    limit.lift();
    drop(waiting);
    assert!(get(&address, "/metrics").ends_with("# EOF\n"));
    instance.stop();
}

#[needs("prlimit")]
#[test]
fn a_port_without_free_descriptors_costs_no_processor_time_and_has_its_peer_when_some_are_free() {
    let lab = "[switch.sw1]\n[host.h1]\n[[link]]\nfrom = \"h1\"\nto = \"sw1\"\nethernet = { carrier = \"stream\" }\n";
    let mut instance = Instance::start("no-descriptors", lab);
    let (id, folder) = (instance.id(), &instance.folder);
    let limit = process::hold_descriptors(id);
    let _peer = UnixStream::connect(folder.join("h1-sw1.sock")).unwrap();
    let failure = "a connection cannot be accepted";
    folder.wait_for_log(failure, 1);
    // The loop waits between its checks; a loop that polls never gives up its processor.
    let (ticks, waits) = (process::processor_ticks(id), process::voluntary_switches(id));
    wait::until(|| "waits of the loop".to_owned(), || process::voluntary_switches(id) >= waits + 20);
    let ticks = process::processor_ticks(id) - ticks;
    assert!(ticks < 50, "{ticks}0 ms of processor time in about 2 s");
    assert_eq!(folder.logged(failure), 1, "{}", folder.log());
    limit.lift();
    wait::until(
        || folder.log(),
        || folder.log().lines().any(|line| line.contains("link port=") && line.contains("up=true")),
    );
    instance.stop();
}

/// Every table, as JSON with its kind and as text with a line per row.
#[test]
fn every_table_of_a_running_instance_is_printed_as_text_and_json() {
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
        let json = instance.run(&format!("show {table} LAB --live --json")).good();
        let view: View = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{table}: {error} in {json}"));
        let again = serde_json::to_value(&view).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(&json).unwrap(), "{table}");
        let text = instance.run(&format!("show {table} LAB --live")).good();
        assert!(text.contains(part), "{table}: no {part} in {text}");
    }
    instance.stop();
}
