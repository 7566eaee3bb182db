//! NX-API of the switches of a running lab: the modules of Ansible, conversations of other clients,
//! virtual fabrics, and hostile clients.

use super::fos::{Managed, own_address};
use crate::control::instance::Instance;
use crate::sanloom::SANLOOM;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::programs;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Ports of the management interfaces in these tests.
const FOS: u16 = 18_080;
const HTTP: u16 = 18_090;
const SNMP: u16 = 18_161;

pub(super) fn start(name: &str) -> Managed {
    let listen = format!("ADDRESS:{HTTP}");
    Managed::start(name, Some(FOS), &["--nxapi", &listen])
}

fn ins_at(port: u16, lab: &Managed, kind: &str, input: &str) -> Value {
    let login = format!("Authorization: Basic {}", STANDARD.encode(format!("admin:{}", lab.password)));
    let message = json!({"ins_api": {"version": "1.0", "type": kind, "chunk": "0", "sid": null, "input": input,
                                     "output_format": "json"}});
    let fields = [&*login, "Content-Type: application/json"];
    let answer = lab.send_to(port, "POST /ins", &fields, &message.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut answer: Value = serde_json::from_str(&answer.body).unwrap();
    answer["ins_api"]["outputs"]["output"].take()
}

fn ins(lab: &Managed, kind: &str, input: &str) -> Value {
    ins_at(HTTP, lab, kind, input)
}

/// Text of a command.
pub(super) fn show(lab: &Managed, command: &str) -> String {
    let output = ins(lab, "cli_show_ascii", command);
    assert_eq!(output["code"], "200", "{output}");
    output["body"].as_str().unwrap().to_owned()
}

/// Changes that all succeed.
pub(super) fn configure(lab: &Managed, commands: &[&str]) -> Vec<Value> {
    let outputs = ins(lab, "cli_conf", &commands.join(" ;"));
    let outputs = if outputs.is_array() { outputs.as_array().unwrap().clone() } else { vec![outputs] };
    assert!(outputs.iter().all(|output| output["code"] == "200") && outputs.len() == commands.len(), "{outputs:?}");
    outputs
}

/// The error of the last of some changes.
fn refused(lab: &Managed, commands: &[&str]) -> String {
    let outputs = ins(lab, "cli_conf", &commands.join(" ;"));
    let last = outputs.as_array().map_or(&outputs, |outputs| outputs.last().unwrap());
    assert_ne!(last["code"], "200", "{outputs}");
    last["clierror"].as_str().unwrap_or_default().to_owned()
}

/// Tasks for all modules of the collection that concern storage networks.
const PLAY: &str = r#"
- hosts: all
  gather_facts: no
  tasks:
    - cisco.nxos.nxos_vsan:
        vsan: [{id: 1, name: fabric_a, interface: [fc1/1, fc1/2]}]
    - cisco.nxos.nxos_devicealias:
        distribute: true
        mode: enhanced
        da:
          - {name: db, pwwn: "50:25:a0:0:0:0:10:1"}
          - {name: array, pwwn: "50:25:a0:00:00:00:20:01"}
          - {name: gone, remove: true}
    - cisco.nxos.nxos_zone_zoneset:
        zone_zoneset_details:
          - vsan: 1
            mode: enhanced
            default_zone: permit
            zone:
              - {name: zA, members: [{device_alias: db}, {device_alias: array}]}
              - {name: zB, members: [{pwwn: "50:25:a0:00:00:00:30:01"}, {pwwn: "50:25:a0:00:00:00:20:01"}]}
              - {name: zC, remove: true}
            zoneset:
              - {name: set1, action: activate, members: [{name: zA}, {name: zB}]}
    - cisco.nxos.nxos_fc_interfaces:
        state: merged
        config:
          - {name: fc1/1, description: array port, enabled: false}
          - {name: fc1/3, speed: auto, enabled: true}
    - cisco.nxos.nxos_facts:
        gather_subset: [min, config]
      register: facts
    - assert:
        that:
          - facts.ansible_facts.ansible_net_hostname == "sw1"
          - facts.ansible_facts.ansible_net_version == "8.4(2f)"
          - '"zone name zA vsan 1" in facts.ansible_facts.ansible_net_config'
"#;

#[needs("ansible")]
#[test]
fn the_modules_of_ansible_run_unchanged_and_a_second_run_changes_nothing() {
    let mut lab = start("nxapi-ansible");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ansible");
    lab.instance.write("play.yml", PLAY);
    let inventory = format!(
        "[all]\nsw1 ansible_host={} ansible_connection=ansible.netcommon.httpapi ansible_network_os=cisco.nxos.nxos \
         ansible_user=admin ansible_password={} ansible_httpapi_port={HTTP} ansible_httpapi_use_ssl=false \
         ansible_python_interpreter={root}/bin/python\n",
        lab.address, lab.password
    );
    lab.instance.write("inventory", &inventory);
    let home = lab.instance.folder.join("home");
    fs::create_dir(&home).unwrap();
    let run = || {
        let mut play = Command::new(format!("{root}/bin/python"));
        play.arg(format!("{root}/bin/ansible-playbook"))
            .args(["-i", &lab.instance.path("inventory"), &lab.instance.path("play.yml")])
            .envs([("ANSIBLE_COLLECTIONS_PATH", root), ("ANSIBLE_NOCOLOR", "1"), ("LC_ALL", "C.UTF-8")])
            .env("HOME", &home)
            .env("ANSIBLE_HOME", home.join("ansible"));
        let output = play.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let recap = text.lines().find(|line| line.starts_with("sw1 ")).unwrap();
        let word = |name: &str| recap.split_once(name).unwrap().1.split(' ').next().unwrap().to_owned();
        (word("ok="), word("changed="))
    };
    assert_eq!(run(), ("6".to_owned(), "4".to_owned()));
    let state = lab.state();
    for line in
        ["alias db H1", "alias array H2", "zone zA db;array", "zone zB H3;H2", "cfg set1 zA;zB", "effective set1"]
    {
        assert!(state.contains(line), "no {line} in {state:?}");
    }
    assert!(state.contains("default open") && state.contains("disabled 0"), "{state:?}");
    let checksum = lab.instance.zones("sw1").checksum;
    assert_eq!(run(), ("6".to_owned(), "0".to_owned()), "a second run changes nothing");
    assert_eq!((lab.state(), lab.instance.zones("sw1").checksum), (state, checksum));
    lab.instance.stop();
}

/// Calls of JSON-RPC, the other form of messages.
const CALLS: &str = r#"
import sys
from nxapi_plumbing import Device
from nxapi_plumbing.errors import NXAPIAuthError, NXAPICommandError

def device(password):
    return Device(api_format="jsonrpc", host=sys.argv[1], username="admin", password=password, transport="http",
                  port=int(sys.argv[2]), verify=False)

own = device(sys.argv[3])
assert own.show("show switchname")["switchname"] == "sw1"
assert own.show("show switchname", raw_text=True) == "sw1\n"
both = own.show_list(["show vsan", "show version"])
assert [row["vsan"] for row in both[0]["result"]["TABLE_vsan"]["ROW_vsan"]] == [1, 4079, 4094], both
assert own.config_list(["interface fc1/2", "switchport description hello", "shutdown"])[2]["result"] is None
assert own.show("show interface fc1/2")["TABLE_interface"]["ROW_interface"]["desc"] == "hello"
for wrong, error in [(own, NXAPICommandError), (device("wrong"), NXAPIAuthError)]:
    try:
        wrong.show("show plover")
        sys.exit("no error")
    except error:
        pass
"#;

#[needs("ansible")]
#[test]
fn calls_of_nxapi_plumbing_return_values_text_and_errors() {
    let mut lab = start("nxapi-calls");
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ansible/bin/python");
    let mut script = Command::new(python);
    script.args(["-W", "ignore", "-c", CALLS, &lab.address, &HTTP.to_string(), &lab.password]);
    let output = script.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(lab.state().contains("disabled 1"), "{:?}", lab.state());
    lab.instance.stop();
}

/// The messages that the zoning module sends, with its patterns.
#[test]
fn the_basic_mode_needs_no_commit_and_the_enhanced_mode_keeps_changes_until_one() {
    let mut lab = start("nxapi-modes");
    let (h1, h3) = ("pwwn 50:25:a0:00:00:00:10:01", "pwwn 50:25:a0:00:00:00:30:01");
    configure(
        &lab,
        &[
            "terminal dont-ask",
            "zone name zA vsan 1",
            &format!("member {h1}"),
            &format!("member {h3}"),
            "zoneset name s1 vsan 1",
            "member zA",
            "zoneset activate name s1 vsan 1",
            "no terminal dont-ask",
        ],
    );
    let state = lab.state();
    assert!(state.contains("zone zA H1;H3") && state.contains("effective s1"), "{state:?}");
    assert!(show(&lab, "show zone status vsan 1").contains("    session: none\n"));
    assert!(show(&lab, "show zone status vsan 1").contains("\nStatus: Activation complete at "));

    configure(
        &lab,
        &["zone mode enhanced vsan 1", "zone name zA vsan 1", &format!("no member {h3}"), "no zone name z12 vsan 1"],
    );
    assert!(
        show(&lab, "show zone status vsan 1")
            .contains("    mode: enhanced merge-control: allow\n    session: cli [admin]\n")
    );
    // The client sees its own changes, and the fabric does not have them.
    assert_eq!(show(&lab, "show zone vsan 1"), "zone name zA vsan 1\n  pwwn 50:25:a0:00:00:00:10:01\n\n");
    assert_eq!(lab.state(), state);
    // Another interface cannot edit in between.
    let token = lab.login();
    let body = "<defined-configuration><alias><alias-name>x</alias-name><member-entry>\
                <alias-entry-name>10:00:00:00:00:00:01:00</alias-entry-name></member-entry></alias></defined-configuration>";
    assert_eq!(lab.send("POST /rest/running/brocade-zone/defined-configuration", &[&token], body).status, 400);
    configure(&lab, &["zone commit vsan 1"]);
    let state = lab.state();
    assert!(state.contains("zone zA H1") && !state.iter().any(|line| line.starts_with("zone z12")), "{state:?}");
    configure(
        &lab,
        &["no zone default-zone permit vsan 1", "zone default-zone permit vsan 1", "no zone commit vsan 1"],
    );
    assert_eq!(lab.state(), state, "discarded");
    assert_eq!(configure(&lab, &["zone commit vsan 1"])[0]["body"], "No pending info found\n");
    configure(&lab, &["no zone mode enhanced vsan 1", "no zoneset activate name s1 vsan 1"]);
    assert!(!lab.state().iter().any(|line| line.starts_with("effective")), "{:?}", lab.state());
    lab.instance.stop();
}

#[test]
fn objects_without_members_wait_for_their_first_member() {
    let mut lab = start("nxapi-empty");
    let before = lab.state();
    configure(&lab, &["zone name later vsan 1", "zoneset name set vsan 1", "fcalias name group vsan 1"]);
    assert_eq!(lab.state(), before);
    assert!(show(&lab, "show zone name later vsan 1").starts_with("zone name later vsan 1\n"));
    assert_eq!(
        refused(&lab, &["zoneset name set vsan 1", "member later"]),
        "% Zone later has no members or is not present\n"
    );
    assert_eq!(refused(&lab, &["zoneset activate name set vsan 1"]), "% Zoneset has no zones\n");
    configure(
        &lab,
        &[
            "fcalias name group vsan 1",
            "member pwwn 50:25:a0:00:00:00:10:01",
            "zone name later vsan 1",
            "member fcalias group",
            "member interface fc1/2",
            "member fcid 0x010203",
            "member domain-id 2 port-number 7",
            "zoneset name set vsan 1",
            "member later",
        ],
    );
    let state = lab.state();
    assert!(state.contains("zone later group;1,1;0x010203;2,7") && state.contains("cfg set later"), "{state:?}");
    assert!(show(&lab, "show fcalias vsan 1").contains("fcalias name group vsan 1\n  pwwn 50:25:a0:00:00:00:10:01\n"));
    assert_eq!(refused(&lab, &["zone name later vsan 1", "member interface fc1/2"]), "% Duplicate member\n");
    // Without the last member, zone and zone set exist for this interface only.
    configure(
        &lab,
        &[
            "zone name later vsan 1",
            "no member fcalias group",
            "no member interface fc1/2",
            "no member fcid 0x010203",
            "no member domain-id 2 port-number 7",
        ],
    );
    assert!(!lab.state().iter().any(|line| line.contains("later")), "{:?}", lab.state());
    assert!(show(&lab, "show zoneset vsan 1").contains("zoneset name set vsan 1\n"));
    configure(&lab, &["no zone name later vsan 1", "no zoneset name set vsan 1", "no fcalias name group vsan 1"]);
    assert_eq!(lab.state(), before);
    lab.instance.stop();
}

#[test]
fn device_aliases_wait_for_their_commit_and_smart_zones_have_targets_and_initiators() {
    let mut lab = start("nxapi-alias");
    configure(&lab, &["device-alias database", "device-alias name a1 pwwn 50:25:a0:0:0:0:10:1"]);
    assert!(show(&lab, "show device-alias status").contains("Locked By:- User \"CLI/SNMPv3:admin\" SWWN 10:00:"));
    assert_eq!(show(&lab, "show device-alias database"), "There are no entries in the database\n");
    assert_eq!(
        refused(&lab, &["device-alias database", "device-alias name a2 pwwn 50:25:a0:00:00:00:10:01"]),
        "% Another device-alias already present with the same pwwn\n"
    );
    configure(&lab, &["device-alias commit"]);
    assert!(lab.state().contains("alias a1 H1"));
    configure(
        &lab,
        &[
            "zone smart-zoning enable vsan 1",
            "zone name peers vsan 1",
            "member device-alias a1 target",
            "member pwwn 50:25:a0:00:00:00:30:01 initiator",
        ],
    );
    assert!(lab.state().contains("zone peers *a1;H3"), "{:?}", lab.state());
    let zone = show(&lab, "show zone name peers vsan 1");
    assert!(
        zone.contains("  pwwn 50:25:a0:00:00:00:30:01 init\n")
            && zone.contains("[pwwn 50:25:a0:00:00:00:10:01] target\n")
    );
    configure(&lab, &["device-alias database", "device-alias rename a1 b1", "device-alias commit"]);
    assert!(lab.state().contains("zone peers *b1;H3"), "{:?}", lab.state());
    configure(&lab, &["zone clone peers copy vsan 1", "zone rename peers first vsan 1"]);
    let state = lab.state();
    assert!(state.contains("zone copy *b1;H3") && state.contains("zone first *b1;H3"), "{state:?}");
    assert!(refused(&lab, &["zone clone copy first vsan 1"]).contains("already present"));
    assert!(refused(&lab, &["zone rename peers other vsan 1"]).contains("not present"));
    configure(&lab, &["no zone name copy vsan 1", "zone rename first peers vsan 1"]);
    assert_eq!(refused(&lab, &["no zone smart-zoning enable vsan 1"]).lines().count(), 1);
    // A zone without members cannot be committed, so the changes wait until they are discarded.
    configure(&lab, &["zone name lone vsan 1", "member device-alias b1"]);
    let state = lab.state();
    let error = refused(&lab, &["device-alias database", "no device-alias name b1", "device-alias commit"]);
    assert!(error.contains("lone"), "{error}");
    assert!(show(&lab, "show device-alias pending").contains("- device-alias name b1\n"));
    configure(&lab, &["device-alias abort"]);
    assert_eq!(show(&lab, "show device-alias pending"), "There are no pending changes\n");
    assert_eq!(lab.state(), state);
    lab.instance.stop();
}

/// The importer of real configurations reads what the interface prints.
#[test]
fn a_running_configuration_is_imported_with_the_same_zones() {
    let mut lab = start("nxapi-import");
    configure(
        &lab,
        &[
            "device-alias database",
            "device-alias name db pwwn 50:25:a0:00:00:00:10:01",
            "device-alias commit",
            "zone name zA vsan 1",
            "member device-alias db",
            "member pwwn 50:25:a0:00:00:00:30:01",
            "zoneset name s1 vsan 1",
            "member zA",
            "member z12",
            "zoneset activate name s1 vsan 1",
            "interface fc1/3",
            "switchport description to sw2",
            "switchport speed 16000",
        ],
    );
    assert!(refused(&lab, &["interface fc1/3", "switchport speed 8000"]).contains("has 16000 Mbit/s in the lab"));
    let counters = show(&lab, "show interface fc1/3 counters");
    for line in
        [" frames input, ", " discards, 0 errors, 0 CRC/FCS", "    0 link failures, 0 sync losses, 0 signal losses"]
    {
        assert!(counters.starts_with("fc1/3\n") && counters.contains(line), "no `{line}` in {counters}");
    }
    let all = show(&lab, "show interface counters");
    assert!(all.contains(counters.lines().next().unwrap()) && all.starts_with("fc1/1\n"), "{all}");
    let domain = show(&lab, "show fcdomain vsan 1");
    assert!(domain.contains("Switch.\n\nLocal switch run time information:\n        State: Stable\n"), "{domain}");
    assert!(domain.contains("        Current domain ID: 0x01(1)\n") && domain.contains("fc1/3 "), "{domain}");
    for switch in ["sw1", "sw2"] {
        let mut session = String::new();
        for command in [
            "show running-config",
            "show flogi database",
            "show fcns database detail",
            "show topology",
            "show zoneset active vsan 1",
            "show interface brief",
            "show fcdomain domain-list",
        ] {
            // The second switch has the next address.
            let text = if switch == "sw1" { show(&lab, command) } else { second(&lab, command) };
            session += &format!("{switch}# {command}\n{text}");
        }
        lab.instance.write(&format!("{switch}.txt"), &session);
    }
    let imported = lab.instance.run("import @sw1.txt @sw2.txt -o @imported.toml");
    assert_eq!(imported.code, 0, "{imported:?}");
    let text = fs::read_to_string(lab.instance.path("imported.toml")).unwrap();
    let loaded = sanloom_lab::load("imported.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let zones = sanloom_api::zone_database::Database::from(&loaded.lab.zone_database);
    let own = lab.instance.zones("sw1").committed;
    assert_eq!((&zones.aliases, &zones.zones, &zones.configs), (&own.aliases, &own.zones, &own.configs), "{text}");
    assert_eq!(zones.effective.map(|effective| effective.config), Some("s1".to_owned()));
    assert_eq!((loaded.lab.switches.len(), loaded.lab.storage.len()), (2, 3), "{text}");
    assert_eq!(loaded.lab.links.len(), 4, "{text}");
    lab.instance.stop();
}

/// Text of a command at the second switch.
fn second(lab: &Managed, command: &str) -> String {
    let (network, host) = lab.address.rsplit_once('.').unwrap();
    let address = format!("{network}.{}", host.parse::<u8>().unwrap() + 1);
    let login = STANDARD.encode(format!("admin:{}", lab.password));
    let call = json!({"jsonrpc": "2.0", "method": "cli_ascii", "params": {"cmd": command, "version": 1}, "id": 1});
    let call = call.to_string();
    let mut stream = TcpStream::connect((&*address, HTTP)).unwrap();
    let head = format!(
        "POST /ins HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Basic {login}\r\n\
         Content-Type: application/json-rpc\r\nContent-Length: {}\r\n\r\n{call}",
        call.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    answer["result"]["msg"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[needs("curl")]
#[test]
fn each_virtual_fabric_of_a_chassis_is_a_vsan_with_its_own_zones() {
    let address = own_address();
    let lab = include_str!("../../../../../examples/virtual-fabrics.toml");
    let mut instance = Instance::start_under("nxapi-vsan", lab, |lab, _| {
        let mut command = Command::new(SANLOOM);
        command.args(["up", lab, "--nxapi", &format!("{address}:{HTTP}")]);
        command
    });
    let password = instance.log().split_once("with the password ").unwrap().1[..24].to_owned();
    let ask = |kind: &str, input: &str| -> Value {
        let message = json!({"ins_api": {"type": kind, "input": input}}).to_string();
        let mut curl = Command::new("curl");
        curl.args(["-s", "-u", &format!("admin:{password}"), "-H", "Content-Type: application/json", "-d", &message]);
        let output = curl.arg(format!("http://{address}:{HTTP}/ins")).output().unwrap();
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["ins_api"]["outputs"]["output"].take()
    };
    let membership = ask("cli_show", "show vsan membership");
    let rows = membership["body"]["TABLE_vsan_membership"]["ROW_vsan_membership"].as_array().unwrap().clone();
    let members = |vsan: u16| rows.iter().find(|row| row["vsan"] == vsan).unwrap()["interfaces"].clone();
    // Ports of the production fabric, with the ISL; the others belong to the backup fabric.
    assert!(members(10).as_array().unwrap().contains(&json!("fc1/8")), "{membership}");
    assert!(members(20).as_array().unwrap().contains(&json!("fc1/16")), "{membership}");
    assert_eq!(rows.len(), 4);
    let outputs = ask("cli_conf", "zone name only20 vsan 20 ;member pwwn 10:00:00:00:00:00:00:77");
    assert_eq!(outputs[1]["code"], "200", "{outputs}");
    assert!(instance.zones("backup2").committed.zones.contains_key("only20"), "all switches of the VSAN");
    assert!(!instance.zones("prod1").committed.zones.contains_key("only20"));
    assert_eq!(ask("cli_show_ascii", "show zone vsan 30")["body"], "VSAN 30 is not configured\n");
    let refused = ask("cli_conf", "vsan database ;vsan 30");
    assert!(refused[1]["clierror"].as_str().unwrap().starts_with("% VSAN 30 cannot be created: "), "{refused}");
    instance.stop();
}

const HOSTS: &str = r#"
[switch.sw1]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;

/// Bytes that hostile clients of HTTP send: nothing, garbage, half a header, a body that never
/// ends, a body of 4 MiB, and a wrong password.
fn hostile(number: usize) -> Vec<u8> {
    let head = |length: usize| {
        format!("POST /ins HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n")
    };
    match number % 6 {
        0 => Vec::new(),
        1 => vec![0xff; 50_000],
        2 => b"POST /ins HTTP/1.1\r\nHost: ".to_vec(),
        3 => format!("{}\r\n{{", head(4 << 20)).into_bytes(),
        4 => [format!("{}\r\n", head(4 << 20)).into_bytes(), vec![b'['; 4 << 20]].concat(),
        _ => format!("{}Authorization: Basic YWRtaW46d3Jvbmc=\r\n\r\n{{}}", head(2)).into_bytes(),
    }
}

fn memory_kib(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[needs("qemu-io")]
#[test]
fn hostile_clients_leave_the_memory_bounded_and_lose_no_io_of_a_host() {
    let address = own_address();
    let (http, snmp) = (format!("{address}:{HTTP}"), format!("{address}:{SNMP}"));
    let mut instance = Instance::start_under("nxapi-hostile", HOSTS, |lab, _| {
        let mut command = Command::new(SANLOOM);
        command.args(["up", lab, "--nxapi", &http, "--snmp", &snmp, "--snmp-community", "secret-word"]);
        command
    });
    instance.start_initiator("server1");
    let ports = || {
        let view: View = serde_json::from_str(&instance.run("show LAB ports --live --json").good()).unwrap();
        let Table::Ports(ports) = view.table else { panic!("no ports") };
        ports.ports
    };
    let (before, first) = (memory_kib(instance.id()), ports());
    let stop = AtomicBool::new(false);
    let uri = programs::uri(&instance.folder.join("nbd.sock"), "");
    let rounds = 12;
    thread::scope(|scope| {
        scope.spawn(|| {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut open: Vec<TcpStream> = Vec::new();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let _ = udp.send_to(&[0x30; 2_000], &snmp);
                let Ok(mut client) = TcpStream::connect(&http) else { continue };
                client.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
                // The server may refuse a body before it has read all of it.
                let _ = client.write_all(&hostile(number));
                if open.len() == 300 {
                    open.remove(0);
                }
                open.push(client);
            }
        });
        for round in 0..rounds {
            let (write, read) =
                (format!("write -P {round} {}k 64k", round * 64), format!("read -P {round} {}k 64k", round * 64));
            programs::run("qemu-io", &["-f", "raw", "-c", &write, "-c", &read, &uri]);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let grown = memory_kib(instance.id()).saturating_sub(before);
    // At most 16 bodies of 4 MiB at once, and 300 connections.
    assert!(grown < 160 << 10, "{grown} KiB more memory");
    let last = ports();
    for (first, last) in first.iter().zip(&last) {
        assert_eq!(first.discards, last.discards, "{last:?}");
        // Each round moves 64 KiB each way, in frames of at most 2,112 bytes.
        let sent = last.frames_sent - first.frames_sent;
        let received = last.frames_received - first.frames_received;
        assert!(sent >= rounds * 31 && received >= rounds * 31, "{first:?} {last:?}");
    }
    let host = last.iter().find(|row| row.attached.starts_with("server1")).unwrap();
    assert!(host.light && host.logins == 1, "{host:?}");
    instance.stop();
}
