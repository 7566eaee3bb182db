//! `sanloom up --simulated`: a fabric in virtual time behind the interfaces of a running lab, and
//! runs of `sanloom sim` that a page shows at a pace.

use super::fos::{Managed, Response, run_scripts};
use super::fos_ssh::python;
use crate::control::instance::Instance;
use crate::sanloom::SANLOOM;
use sanloom_api::view::{Dark, NodeRow, PortRow, Table, View};
use sanloom_surface::fos::tree::Element;
use sanloom_test_support::needs;
use sanloom_test_support::started::Folder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const HTTP: u16 = 18_080;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    fs::read_to_string(path).unwrap()
}

fn view(instance: &Instance, table: &str) -> Table {
    let line = format!("show LAB {table} --live --json");
    serde_json::from_str::<View>(&instance.run(&line).good()).unwrap().table
}

fn ports(instance: &Instance) -> BTreeMap<String, PortRow> {
    let Table::Ports(view) = view(instance, "ports") else { panic!("no ports") };
    view.ports.into_iter().map(|row| (row.port.clone(), row)).collect()
}

fn node(instance: &Instance, name: &str) -> NodeRow {
    let Table::Nodes(view) = view(instance, "nodes") else { panic!("no nodes") };
    view.nodes.into_iter().find(|row| row.port == name).unwrap()
}

#[needs("pyfos")]
#[test]
fn scripts_of_pyfos_run_against_a_simulation_as_against_a_running_lab() {
    let mut lab = Managed::start("simulated-pyfos", None, &["--simulated"]);
    run_scripts(&lab, &[]);
    lab.instance.stop();
}

#[needs("ssh-clients")]
#[test]
fn netmiko_runs_its_commands_against_a_simulation() {
    let mut lab = Managed::start("simulated-ssh", Some(HTTP), &["--simulated", "--fos-ssh"]);
    python(&lab, "netmiko_shell.py", &[]);
    assert!(lab.state().contains("alias a1 H1"), "{:?}", lab.state());
    lab.instance.stop();
}

/// A simulation of `examples/automation.toml`. Each switch has an address of its own; the requests
/// go to that of the core.
fn automation(name: &str, more: &[&str]) -> Managed {
    let head = example("automation.toml");
    // The core first, so that it has the first address.
    let (edges, core) = ("[switch.\"edge{1..18}\"]\nports = 48\n", "[switch.core]\nports = 384\n");
    let swapped = head.replace(&format!("{edges}\n{core}"), &format!("{core}\n{edges}"));
    assert_ne!(swapped, head);
    Managed::start_lab(name, Some(HTTP), &[&["--simulated"], more].concat(), &swapped, |_| {})
}

fn get(lab: &Managed, token: &str, path: &str) -> Response {
    let answer = lab.send(&format!("GET /rest/running/brocade-{path}"), &[token], "");
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer
}

fn leaf(element: &Element, name: &str) -> String {
    element.leaf(name).unwrap_or_else(|| panic!("no {name} in {element:?}"))
}

#[test]
fn a_simulation_of_1000_ports_is_complete_in_rest_and_its_statistics_move() {
    let mut lab = automation("simulated-wide", &["--pace", "2"]);
    let token = lab.login();
    let all = ports(&lab.instance);
    assert_eq!(all.len(), 1_248, "ports with a link");
    let answer = get(&lab, &token, "interface/fibrechannel").tree();
    let entries: Vec<&Element> = answer.children().iter().collect();
    assert_eq!(entries.len(), 384, "ports of the core");
    let online = entries.iter().filter(|entry| leaf(entry, "operational-status") == "2").count();
    assert_eq!(online, 240 + 144, "arrays and links to edges");
    let addresses: BTreeSet<String> = entries.iter().map(|entry| leaf(entry, "fcid-hex")).collect();
    assert_eq!(addresses.len(), 384, "each port has an address of its own");
    let frames = || -> u64 {
        let answer = get(&lab, &token, "interface/fibrechannel-statistics").tree();
        answer.children().iter().map(|entry| leaf(entry, "out-frames").parse::<u64>().unwrap()).sum()
    };
    let before = frames();
    lab.instance.wait("frames", |_| frames() > before + 1_000);

    // A sample a second after another one has rates.
    lab.instance.wait("rates", |_| {
        let answer = get(&lab, &token, "interface/fibrechannel-statistics").tree();
        answer.children().iter().any(|entry| entry.leaf("out-frame-rate").is_some_and(|rate| rate != "0"))
    });
    let statistics = get(&lab, &token, "interface/fibrechannel-statistics").tree();
    let busy = statistics.children().iter().max_by_key(|entry| leaf(entry, "out-frame-rate").parse::<u64>().unwrap());
    let busy = busy.unwrap();
    let number = |name: &str| leaf(busy, name).parse::<u64>().unwrap();
    assert!(number("out-rate") > 0 && number("out-peak-rate") >= number("out-rate"), "{busy:?}");
    assert!(number("sampling-interval") > 0 && number("out-max-frame-rate") >= number("out-frame-rate"), "{busy:?}");
    for name in ["bb-credit-zero", "link-failures", "loss-of-signal", "in-link-resets", "class3-out-discards"] {
        assert!(statistics.children().iter().all(|entry| entry.leaf(name).is_some()), "no {name} in {busy:?}");
    }

    // The same ports on the command line.
    let shown = lab.instance.run("console LAB core switchshow").good();
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("   FC  ")).collect();
    assert_eq!(lines.len(), 384);
    assert!(lines[256].starts_with(" 256 256   010040   id"), "{}", lines[256]);
    let same: BTreeSet<String> =
        lines.iter().map(|line| format!("0x{}", line.split_whitespace().nth(2).unwrap())).collect();
    assert_eq!(same, addresses);
    lab.instance.stop();
}

#[test]
fn requests_change_a_simulation_at_a_virtual_time_that_the_log_tells() {
    let mut lab = automation("simulated-change", &[]);
    let token = lab.login();
    // A port of an edge goes down, and with it the peer.
    assert_eq!(node(&lab.instance, "esx1:0").light, Some(true));
    lab.instance.run("port disable LAB edge1:0").good();
    assert_eq!(node(&lab.instance, "esx1:0").light, Some(false));
    assert_eq!(ports(&lab.instance)["edge1:0"].dark, Some(Dark::Disabled));
    // A link to the core goes down at both ends.
    let (near, far) = (ports(&lab.instance)["edge1:40"].clone(), |instance: &Instance| {
        ports(instance).into_values().find(|row| row.attached == "edge1:40").unwrap()
    });
    assert!(near.light && far(&lab.instance).light);
    let number = far(&lab.instance).number;
    let body = format!("<fibrechannel><name>0/{number}</name><enabled-state>6</enabled-state></fibrechannel>");
    assert_eq!(lab.send("PATCH /rest/running/brocade-interface/fibrechannel", &[&token], &body).status, 204);
    assert!(!ports(&lab.instance)["edge1:40"].light && far(&lab.instance).dark == Some(Dark::Disabled));

    // Without zones in force, the hosts reach no array.
    let frames = |instance: &Instance| ports(instance)["core:5"].frames_received;
    let before = frames(&lab.instance);
    lab.instance.wait("requests to array6", |instance| frames(instance) > before + 10);
    let checksum = {
        let answer = get(&lab, &token, "zone/effective-configuration").tree();
        leaf(answer.child("effective-configuration").unwrap(), "checksum")
    };
    let body = format!(
        "<effective-configuration><checksum>{checksum}</checksum><cfg-action>2</cfg-action></effective-configuration>"
    );
    let path = "PATCH /rest/running/brocade-zone/effective-configuration";
    assert_eq!(lab.send(path, &[&token], &body).status, 204);
    assert_eq!(lab.instance.zones("edge18").state.effective, None, "all switches have the change");
    let still = |instance: &Instance| {
        let seen = frames(instance);
        std::iter::repeat_with(|| frames(instance)).take(5).all(|now| now == seen)
    };
    lab.instance.wait("no requests", still);

    lab.instance.run("port inject LAB core:0 --match els==PLOGI --do drop").good();
    lab.instance.run("port inject LAB core:0 --match els==PLOGI --do delay:1s").refused("keep their order");
    lab.instance.run("apply LAB").refused("start it with the changed file");
    let log = lab.instance.log();
    for line in ["operator at_s=", "zones at_s=", "inject at_s=", "up, simulated"] {
        assert!(log.contains(line), "no `{line}` in {log}");
    }
    assert!(!log.contains("delay:1s"), "a refused request is logged: {log}");
    assert!(lab.instance.run("ps").good().contains("all, simulated"));
    let (down, code) = lab.instance.down();
    assert_eq!((down.code, code), (0, Some(0)), "{down:?}");
}

#[test]
fn a_pace_is_checked_and_the_options_of_ethernet_are_refused() {
    let folder = Folder::new("simulated-usage");
    let lab = folder.path("lab.toml");
    fs::write(&lab, example("tiny.toml")).unwrap();
    let refused = |arguments: &[&str], why: &str| {
        let output = Command::new(SANLOOM).args(["up", &lab]).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(why), "{arguments:?}: {text}");
    };
    refused(&["--simulated", "--pace", "0"], "or `max` for no limit");
    refused(&["--pace", "2"], "--simulated");
    refused(&["--simulated", "--record", "x"], "cannot be used with");
    refused(&["--simulated", "--capture", "a=b"], "cannot be used with");
}

/// A program that is ended when it is dropped.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a resource of a page.
fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_page_watches_a_paced_run_and_shows_the_results_of_the_same_run_at_once() {
    let folder = Folder::new("simulated-page");
    let lab = folder.path("lab.toml");
    fs::write(&lab, example("isl-failure.toml")).unwrap();
    let run = |json: &str, more: &[&str]| {
        let mut command = Command::new(SANLOOM);
        command.args(["sim", &lab, "--no-report", "--no-remedies", "--quiet", "--duration", "1500ms"]);
        command.arg(format!("--json={}", folder.path(json))).args(more).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    run("once.json", &[]).output().unwrap();
    let paced = run("paced.json", &["--web", "127.0.0.1:0", "--web-open", "--pace", "0.5"]).spawn().unwrap();
    let mut paced = Child(paced);
    let mut notes = BufReader::new(paced.0.stderr.take().unwrap()).lines();
    let address = notes.by_ref().map(Result::unwrap).find_map(|line| {
        let (address, _) = line.split_once("http://")?.1.split_once('/')?;
        Some(address.to_owned())
    });
    let address = address.expect("a note with the address of the page");

    // While the run goes on, its tables are shown, and nothing is changed.
    let shown = page(&address, "/api/v1/show/ports");
    assert!(shown.contains("\"view\":\"ports\""), "{shown}");
    assert!(page(&address, "/api/v1/me").contains("\"kind\":\"simulated\""));
    let body = r#"{"request":"port","port":"sw1:0","enabled":false}"#;
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!("POST /api/v1/request HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("only watched"), "{answer}");

    // Then the page has the results.
    assert!(notes.any(|line| line.unwrap().contains("end it with Ctrl-C")));
    assert!(page(&address, "/api/v1/me").contains("\"kind\":\"finished\""));
    assert!(page(&address, "/api/v1/results/0").contains("\"totals\""));
    let read = |json: &str| {
        let text = fs::read_to_string(folder.path(json)).unwrap();
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value.as_object_mut().unwrap().remove("engine");
        value
    };
    assert_eq!(read("paced.json"), read("once.json"));
}
