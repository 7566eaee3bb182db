//! NX-API without a fabric behind it: messages, errors, roles, hostile requests.

use crate::client::{Alone, Fake, Limited};
use proptest::prelude::*;
use sanloom_api::control::{Answer, Request as Ask, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{PortRow, PortsView, Table, View};
use sanloom_surface::Fabric;
use sanloom_surface::fos::Shared as Common;
use sanloom_surface::nxos::{self, NxApi};
use sanloom_surface::server::http::{Request, Response};
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::server::{Bytes, Interface, MAX_BODY, Now, Peer};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Header of the users of the tests, `NAME:password`.
const ADMIN: &str = "Basic YWRtaW46cGFzc3dvcmQ=";
const GUEST: &str = "Basic Z3Vlc3Q6cGFzc3dvcmQ=";

fn interface() -> NxApi {
    // Passwords are hashed slowly.
    static USERS: LazyLock<Arc<Users>> = LazyLock::new(|| {
        let mut users = Users::new().unwrap();
        users.set("admin", Role::Administer, "password").unwrap();
        users.set("guest", Role::View, "password").unwrap();
        Arc::new(users)
    });
    NxApi::new("sw1", USERS.clone(), Common::default(), nxos::Shared::default())
}

fn raw(api: &mut NxApi, line: &str, fields: &[(&str, &str)], body: &[u8]) -> Response<Bytes> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let peer =
        Peer { address: "127.0.0.1:1000".parse().unwrap(), local: "127.1.0.1:8080".parse().unwrap(), tls: false };
    api.handle(Now::default(), &request.body(Bytes::copy_from_slice(body)).unwrap(), &peer, &mut Alone)
}

fn post(api: &mut NxApi, user: &str, kind: &str, body: &[u8]) -> Value {
    let response = raw(api, "POST /ins", &[("authorization", user), ("content-type", kind)], body);
    assert_eq!(response.status(), 200);
    serde_json::from_slice(response.body()).unwrap()
}

/// Outputs of a message.
fn ins(user: &str, kind: &str, input: &str) -> Value {
    let message = json!({"ins_api": {"version": "1.0", "type": kind, "chunk": "0", "sid": null, "input": input,
                                     "output_format": "json"}});
    let mut answer = post(&mut interface(), user, "application/json", message.to_string().as_bytes());
    assert_eq!((&answer["ins_api"]["type"], &answer["ins_api"]["sid"]), (&json!(kind), &json!("eoc")));
    answer["ins_api"]["outputs"]["output"].take()
}

fn rpc(method: &str, commands: &[&str]) -> Value {
    let calls: Vec<Value> = (commands.iter().enumerate())
        .map(|(at, cmd)| json!({"jsonrpc": "2.0", "method": method, "params": {"cmd": cmd, "version": 1.2}, "id": at + 1}))
        .collect();
    post(&mut interface(), ADMIN, "application/json-rpc", Value::from(calls).to_string().as_bytes())
}

#[test]
fn one_command_has_an_object_and_several_have_a_list() {
    let one = ins(ADMIN, "cli_show_ascii", "show switchname");
    assert_eq!(one, json!({"input": "show switchname", "code": "200", "msg": "Success", "body": "sw1\n"}));
    let two = ins(ADMIN, "cli_show_ascii", "show version ;show switchname");
    assert_eq!((two.as_array().unwrap().len(), &two[1]), (2, &one));
    let version = two[0]["body"].as_str().unwrap();
    // The words by which the Ansible collection finds version and name.
    assert!(version.contains("\n  system:    version 8.4(2f)\n") && version.contains("\n  Device name: sw1\n"));
    assert!(version.starts_with("sanloom "), "{version}");
    let body = ins(ADMIN, "cli_show", "show version");
    assert_eq!((&body["body"]["host_name"], &body["body"]["manufacturer"]), (&json!("sw1"), &json!("sanloom")));
}

#[test]
fn the_event_log_is_text_without_structure() {
    let log = ins(ADMIN, "cli_show_ascii", "show logging logfile");
    let line = "2024 Mar 15 01:25:25 sw1 %AUTHPRIV-3-SYSTEM_MSG: pam_aaa:Authentication failed from  -  (2 times)\n";
    assert_eq!((&log["code"], &log["body"]), (&json!("200"), &json!(line)));
    assert_eq!(ins(ADMIN, "cli_show_ascii", "show logging log")["body"], log["body"], "shortened");
    assert_eq!(ins(ADMIN, "cli_show_ascii", "show logging last 1")["body"], log["body"]);
    assert_eq!(ins(ADMIN, "cli_show_ascii", "show logging last 0")["body"], "");
    assert_eq!(ins(ADMIN, "cli_show_ascii", "show logging last x")["code"], "400");
    assert_eq!(ins(ADMIN, "cli_show_ascii", "show logging logfile | include PORT")["body"], "");
    let output = ins(ADMIN, "cli_show", "show logging logfile");
    assert_eq!((&output["code"], &output["msg"]), (&json!("501"), &json!("Structured output unsupported")));
    assert_eq!(rpc("cli_ascii", &["show logging logfile"])["result"]["msg"], line);
}

#[test]
fn errors_have_the_codes_and_texts_of_the_interface() {
    let problem = |user: &str, kind: &str, input: &str| {
        let output = ins(user, kind, input);
        let output = output.as_array().map_or(&output, |outputs| outputs.last().unwrap());
        let text = |name: &str| output[name].as_str().unwrap_or_default().to_owned();
        (text("code"), text("msg"), text("clierror"))
    };
    let expected = |code: &str, text: &str, error: &str| (code.to_owned(), text.to_owned(), error.to_owned());
    let unknown = expected("400", "Input CLI command error", "% Invalid command\n");
    assert_eq!(problem(ADMIN, "cli_show_ascii", "show plover"), unknown);
    assert_eq!(problem(ADMIN, "cli_conf", "zone name z vsan 5000"), unknown);
    assert_eq!(problem(ADMIN, "cli_conf", "member pwwn 10:00:00:00:00:00:00:01"), unknown, "outside of a zone");
    let show = expected("405", "Show mode does not allow configuration", "");
    assert_eq!(problem(ADMIN, "cli_show", "zone name z vsan 1"), show);
    assert_eq!(problem(ADMIN, "cli_conf", "show version").0, "405");
    assert_eq!(problem(ADMIN, "cli_show", "show running-config | grep x").0, "501");
    let denied = expected("401", "Permission denied", "% Permission denied for the role\n");
    assert_eq!(problem(GUEST, "cli_conf", "vsan database"), denied);
    assert_eq!(problem(GUEST, "cli_show_ascii", "show switchname").0, "200");
    // The fabric of this test has no zones.
    assert_eq!(problem(ADMIN, "cli_show_ascii", "show zone status vsan 1").0, "500");
    assert_eq!(problem(ADMIN, "cli_conf", "zone name z vsan 7").2, "VSAN 7 is not configured\n");
    let absent = ins(ADMIN, "cli_show_ascii", "show zone status vsan 7");
    assert_eq!((&absent["code"], &absent["body"]), (&json!("200"), &json!("VSAN 7 is not configured\n")));
    for (kind, input, code) in [("cli_show", " ; ", "400"), ("bash", "ls", "501"), ("cli_showx", "show version", "400")]
    {
        assert_eq!(problem(ADMIN, kind, input).0, code, "{kind}");
    }
    // A failed command ends the message.
    let outputs = ins(ADMIN, "cli_conf", "terminal dont-ask ;plover ;vsan database");
    let codes: Vec<&str> = outputs.as_array().unwrap().iter().map(|output| output["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["200", "400"]);
}

#[test]
fn calls_of_json_rpc_return_values_text_or_nothing() {
    let version = rpc("cli", &["show version"]);
    assert_eq!((&version["result"]["body"]["host_name"], &version["id"]), (&json!("sw1"), &json!(1)));
    let both = rpc("cli_ascii", &["show switchname", "show plover"]);
    assert_eq!(both[0], json!({"jsonrpc": "2.0", "result": {"msg": "sw1\n"}, "id": 1}));
    let error = json!({"code": -32602, "message": "Invalid params", "data": {"msg": "% Invalid command\n"}});
    assert_eq!(both[1], json!({"jsonrpc": "2.0", "error": error, "id": 2}));
    let changes = rpc("cli", &["terminal dont-ask ; vsan database", "plover", "end"]);
    assert_eq!(changes[0], json!({"jsonrpc": "2.0", "result": null, "id": 1}));
    assert_eq!(changes[2]["error"]["data"]["msg"], "not executed after an earlier error\n");
    assert_eq!(rpc("bash", &["ls"])["error"]["code"], -32601);
    assert_eq!(rpc("cli", &[])["error"]["code"], -32600);
    let mut api = interface();
    assert_eq!(post(&mut api, ADMIN, "application/json-rpc", b"{")["error"]["code"], -32700);
    assert_eq!(post(&mut api, ADMIN, "application/json", b"[1]")["error"]["code"], -32600);
}

#[test]
fn nothing_is_answered_without_a_password_and_the_type_that_pages_cannot_send() {
    let mut api = interface();
    let json = ("content-type", "application/json");
    for value in ["Basic YWRtaW46d3Jvbmc=", "Basic !", "Bearer x", ""] {
        let refused = raw(&mut api, "POST /ins", &[("authorization", value), json], b"{}");
        assert_eq!(refused.status(), 401, "{value}");
        assert_eq!(refused.headers()["www-authenticate"], "Basic realm=\"Secure Zone\"");
    }
    let login = ("authorization", ADMIN);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        assert_eq!(raw(&mut api, "POST /ins", &[login, ("content-type", kind)], b"{}").status(), 415, "{kind}");
    }
    assert_eq!(raw(&mut api, "POST /ins", &[login], b"{}").status(), 415);
    assert_eq!(raw(&mut api, "GET /ins", &[login, json], b"").status(), 405);
    assert_eq!(raw(&mut api, "POST /api", &[login, json], b"").status(), 404);
}

#[test]
fn a_message_of_4_mib_is_answered_and_its_commands_are_bounded() {
    let empty = json!({"ins_api": {"type": "cli_conf", "input": ";".repeat(MAX_BODY - 200)}}).to_string();
    let answer = post(&mut interface(), ADMIN, "application/json", empty.as_bytes());
    assert_eq!(answer["ins_api"]["outputs"]["output"]["msg"], "No input command");
    let many = json!({"ins_api": {"type": "cli_conf", "input": "end;".repeat(1_000_000)}}).to_string();
    let answer = post(&mut interface(), ADMIN, "application/json", many.as_bytes());
    assert_eq!(answer["ins_api"]["outputs"]["output"]["code"], "413");
    // A command that shows something may cost a table of the whole fabric.
    assert_eq!(ins(ADMIN, "cli_show_ascii", &"show clock;".repeat(65))["code"], "413");
    assert_eq!(ins(ADMIN, "cli_show_ascii", &"show clock;".repeat(64)).as_array().unwrap().len(), 64);
    let calls = rpc("cli_ascii", &["show clock"; 200]);
    assert_eq!(calls.as_array().unwrap().len(), 65);
    assert_eq!(calls[64]["error"]["code"], -32603);
    let long = json!({"ins_api": {"type": "cli_show_ascii", "input": "x".repeat(MAX_BODY - 200)}}).to_string();
    let answer = post(&mut interface(), ADMIN, "application/json", long.as_bytes());
    assert_eq!(answer["ins_api"]["outputs"]["output"]["clierror"], "% Command is too long\n");
    // Values nested deeper than the parser follows are refused, and no stack overflows.
    let deep = "[".repeat(MAX_BODY - 1);
    let answer = post(&mut interface(), ADMIN, "application/json", deep.as_bytes());
    assert_eq!(answer["ins_api"]["outputs"]["output"]["msg"], "Request message is invalid");
}

/// Words of commands, so that random lines reach more than the parser.
fn line() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "show",
        "zone",
        "zoneset",
        "name",
        "z1",
        "vsan",
        "1",
        "member",
        "pwwn",
        "10:00:00:00:00:00:00:01",
        "no",
        "|",
        "grep",
        "[",
        "activate",
        "database",
        "interface",
        "fc1/1-4",
        "shutdown",
        "device-alias",
        "commit",
        "a1",
        ";",
        "running-config",
        "active",
        "fcalias",
        "fcns",
        "detail",
        "switchport",
        "speed",
        "16000",
        "description",
        "\"",
    ];
    let word = prop_oneof![4 => proptest::sample::select(WORDS).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_body_and_no_command_ends_the_interface(line in line(), body in any::<Vec<u8>>(), kind in 0..3_usize) {
        static API: LazyLock<Mutex<NxApi>> = LazyLock::new(|| Mutex::new(interface()));
        let mut api = API.lock().unwrap();
        let kind = ["cli_show", "cli_show_ascii", "cli_conf"][kind];
        for line in [line.clone(), format!("zone name z1 vsan 1 ;{line}"), format!("interface fc1/1 ;{line}")] {
            let message = json!({"ins_api": {"type": kind, "input": line}}).to_string();
            let answer = post(&mut api, ADMIN, "application/json", message.as_bytes());
            prop_assert!(answer["ins_api"]["outputs"]["output"].is_object() || answer["ins_api"]["outputs"]["output"].is_array());
            let call = json!({"jsonrpc": "2.0", "method": "cli", "params": {"cmd": line}, "id": 1}).to_string();
            prop_assert_eq!(&post(&mut api, ADMIN, "application/json-rpc", call.as_bytes())["id"], &json!(1));
        }
        for encoding in ["application/json", "application/json-rpc"] {
            post(&mut api, ADMIN, encoding, &body);
        }
    }
}

/// Calls that no command belongs to are bounded as well.
#[test]
fn a_list_with_more_calls_than_commands_are_permitted_has_one_answer() {
    let calls = format!("[{}1]", "1,".repeat(100_000));
    let answer = post(&mut interface(), ADMIN, "application/json-rpc", calls.as_bytes());
    assert_eq!(answer["error"]["data"]["msg"], "Maximum number of commands exceeded\n");
}

/// The number of requests to the fabric is bounded by the number of commands, not by their text.
#[test]
fn a_list_of_ports_costs_one_table_of_the_fabric() {
    static SHOWN: Mutex<u32> = Mutex::new(0);
    let mut fabric = Fake(|request| {
        *SHOWN.lock().unwrap() +=
            u32::from(matches!(request, Ask::Show { table: ShowTable::Fabric(Which::Ports), .. }));
        sanloom_surface::Fabric::ask(&mut Alone, request).unwrap_or(Answer::Done)
    });
    let message = json!({"ins_api": {"type": "cli_conf", "input": format!("interface {}", "fc1/1-4096,".repeat(300))}});
    let request = Request::builder().method("POST").uri("/ins").header("authorization", ADMIN);
    let request = request.header("content-type", "application/json").body(Bytes::from(message.to_string())).unwrap();
    let peer =
        Peer { address: "127.0.0.1:1000".parse().unwrap(), local: "127.1.0.1:8080".parse().unwrap(), tls: false };
    interface().handle(Now::default(), &request, &peer, &mut fabric);
    assert!(*SHOWN.lock().unwrap() <= 1);
}

/// A malformed call is a failure: a client that wrote it expects the changes before the commit.
#[test]
fn a_commit_behind_a_malformed_call_is_not_executed() {
    let call = |method: &str, id: u32, cmd: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"cmd": cmd, "version": 1.2}, "id": id});
    let malformed = [
        json!({"jsonrpc": "2.0", "params": {"cmd": "member z1", "version": 1.2}, "id": 2}),
        json!({"jsonrpc": "2.0", "method": "cli", "params": {}, "id": 2}),
        call("cli_array", 2, "member z1"),
        json!(7),
    ];
    for bad in malformed {
        let calls = json!([
            call("cli", 1, "terminal dont-ask"),
            bad,
            call("cli", 3, "zone commit vsan 1"),
            call("cli_ascii", 4, "show switchname")
        ]);
        let answers = post(&mut interface(), ADMIN, "application/json-rpc", calls.to_string().as_bytes());
        assert_eq!(answers[0]["result"], Value::Null);
        assert!(answers[1]["error"]["code"].as_i64().is_some_and(|code| [-32600, -32601].contains(&code)), "{answers}");
        assert_eq!(answers[2]["error"]["data"]["msg"], "not executed after an earlier error\n");
        assert_eq!((&answers[2]["id"], &answers[3]["result"]["msg"]), (&json!(3), &json!("sw1\n")));
    }
}

#[test]
fn a_message_with_slow_commands_leaves_its_thread_to_other_clients() {
    let mut fabric = Fake(|request| match request {
        Ask::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
            std::thread::sleep(Duration::from_millis(50));
            let row = PortRow { port: "sw1:0".to_owned(), ..PortRow::default() };
            Answer::View(View::new("lab", 1.0, Table::Ports(PortsView { ports: vec![row] })))
        }
        request => sanloom_surface::Fabric::ask(&mut Alone, request).unwrap_or(Answer::Done),
    });
    let peer =
        Peer { address: "127.0.0.1:1000".parse().unwrap(), local: "127.1.0.1:8080".parse().unwrap(), tls: false };
    let message = json!({"ins_api": {"type": "cli_conf", "input": "interface fc1/1 ;".repeat(1_000)}}).to_string();
    let calls: Vec<Value> = (0..1_000)
        .map(|id| json!({"jsonrpc": "2.0", "method": "cli", "params": {"cmd": "interface fc1/1", "version": 1.2}, "id": id}))
        .collect();
    for (kind, body) in [("application/json", message), ("application/json-rpc", Value::from(calls).to_string())] {
        let request = Request::builder().method("POST").uri("/ins").header("authorization", ADMIN);
        let request = request.header("content-type", kind).body(Bytes::from(body)).unwrap();
        let begun = Instant::now();
        let response = interface().handle(Now::default(), &request, &peer, &mut fabric);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        let answer: Value = serde_json::from_slice(response.body()).unwrap();
        let outputs = answer.pointer("/ins_api/outputs/output").unwrap_or(&answer).as_array().unwrap();
        assert!((2..900).contains(&outputs.len()), "{}", outputs.len());
        assert!(outputs.last().unwrap().to_string().contains("Maximum time of a message exceeded"));
    }
    // One call with many lines.
    let lines = "interface fc1/1 ;".repeat(1_000);
    let call =
        json!({"jsonrpc": "2.0", "method": "cli", "params": {"cmd": lines, "version": 1.2}, "id": 1}).to_string();
    let request = Request::builder().method("POST").uri("/ins").header("authorization", ADMIN);
    let request = request.header("content-type", "application/json-rpc").body(Bytes::from(call)).unwrap();
    let begun = Instant::now();
    let response = interface().handle(Now::default(), &request, &peer, &mut fabric);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(answer["error"]["data"]["msg"], "Maximum time of a message exceeded\n", "{answer}");
}

/// Output of a command of a logical switch as text.
fn of_logical(kind: &str, input: &str) -> Value {
    of(&mut Fake(crate::fos_bodies::logical), kind, input)
}

/// Output of a command to a fabric.
fn of(fabric: &mut dyn Fabric, kind: &str, input: &str) -> Value {
    let message = json!({"ins_api": {"version": "1.0", "type": kind, "chunk": "0", "sid": null, "input": input,
                                     "output_format": "json"}});
    let mut api = interface();
    let fields = [("authorization", ADMIN), ("content-type", "application/json")];
    let mut request = Request::builder().method("POST").uri("/ins/");
    for (name, value) in fields {
        request = request.header(name, value);
    }
    let address = "127.0.0.1:1000".parse().unwrap();
    let peer = Peer { address, local: address, tls: false };
    let request = request.body(Bytes::from(message.to_string())).unwrap();
    let response = api.handle(Now::default(), &request, &peer, fabric);
    assert_eq!(response.status(), 200, "the address with a slash at its end");
    let mut answer: Value = serde_json::from_slice(response.body()).unwrap();
    answer["ins_api"]["outputs"]["output"].take()
}

#[test]
fn several_interfaces_of_a_command_change_together_or_not_at_all() {
    let mut fabric = Limited::default();
    let codes = |output: &Value| {
        let outputs = output.as_array().unwrap();
        outputs.iter().map(|output| output["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let refused = of(&mut fabric, "cli_conf", "interface fc1/1-3 ;shutdown");
    assert_ne!(codes(&refused)[1], "200", "{refused}");
    assert!(fabric.disabled().is_empty(), "{:?}", fabric.disabled());
    fabric.changes = 1;
    let done = of(&mut fabric, "cli_conf", "interface fc1/1-3 ;shutdown");
    assert_eq!((codes(&done), fabric.disabled()), (vec!["200".to_owned(); 2], vec![0, 1, 2]));
}

#[test]
fn a_semicolon_in_a_description_or_in_quotes_is_part_of_it() {
    let outputs = of_logical("cli_conf", "interface fc1/9 ;switchport description a;b ;switchport speed auto");
    let inputs: Vec<&str> =
        outputs.as_array().unwrap().iter().map(|output| output["input"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["interface fc1/9", "switchport description a;b", "switchport speed auto"]);
    assert!(outputs.as_array().unwrap().iter().all(|output| output["code"] == "200"), "{outputs}");
    let outputs = of_logical("cli_show_ascii", "show version;show clock");
    assert_eq!(outputs.as_array().unwrap().len(), 2);
}

#[test]
fn a_port_without_a_link_can_be_shut_down() {
    let output = of_logical("cli_conf", "interface fc1/12 ;shutdown");
    assert!(output.as_array().unwrap().iter().all(|output| output["code"] == "200"), "{output}");
    let text = of_logical("cli_show_ascii", "show interface brief");
    let text = text["body"].as_str().unwrap();
    let status = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().nth(4);
    assert_eq!((status("fc1/11 "), status("fc1/12 ")), (Some("down"), Some("sfpAbsent")));
    assert_eq!(text.lines().filter(|line| line.starts_with("fc1/")).count(), 8, "{text}");
    let members = of_logical("cli_show_ascii", "show vsan membership");
    assert!(members["body"].as_str().unwrap().contains("fc1/16"), "{members}");
}

#[test]
fn further_commands_and_filters_have_outputs() {
    let text = |input: &str| {
        let output = of_logical("cli_show_ascii", input);
        assert_eq!(output["code"], "200", "{input}: {output}");
        output["body"].as_str().unwrap().to_owned()
    };
    for (input, part) in [
        ("show running-config zone", "zone name zone1 vsan 10\n    member pwwn 10:00:00:00:00:00:00:01\n"),
        ("show running-config zone vsan 10", "zone name zone2 vsan 10\n"),
        ("show running-config vsan", "vsan database\n  vsan 10 name"),
        ("show running-config device-alias", "  device-alias name a1 pwwn 10:00:00:00:00:00:00:01\n"),
        ("show zone pending-diff", "No pending info found"),
        ("show zoneset brief", "Zoneset not present"),
        ("show device-alias pwwn 10:00:00:00:00:00:00:01", "device-alias name a1 pwwn"),
        ("show device-alias pwwn 10:00:00:00:00:00:00:02", "not found"),
        ("show module", "1    8      Fibre Channel"),
        ("show feature", "npiv                  1         enabled\n"),
        ("show system uptime", "System uptime:              0 days, 0 hours, 0 minutes, 1 seconds\n"),
        ("show interface description", "fc1/9           --\n"),
        ("show interface fc1/10 transceiver", "fc1/10 sfp is not present\n"),
        ("show interface transceiver", "fc1/9 sfp is present\n"),
        ("show feature | json", "\"cfcFeatureCtrlName2\":\"npiv\""),
    ] {
        let output = text(input);
        assert!(output.contains(part), "{input}: {output}");
    }
    let lines = |input: &str| text(input).lines().count();
    assert_eq!((lines("show feature | head 1"), lines("show feature | head lines 3")), (1, 3));
    assert!(text("show feature | last 1").starts_with("nxapi"));
    assert_eq!(text("show feature | begin npiv").lines().next().unwrap().split(' ').next(), Some("npiv"));
    let section = text("show running-config | section zone1");
    assert_eq!(section, "zone name zone1 vsan 10\n    member pwwn 10:00:00:00:00:00:00:01\n");
    let body = of_logical("cli_show", "show module");
    assert_eq!(body["body"]["TABLE_modinfo"]["ROW_modinfo"]["ports"], 8);
    for feature in ["feature npiv", "feature nxapi"] {
        assert_eq!(of_logical("cli_conf", feature)["code"], "200");
    }
    assert_eq!(of_logical("cli_conf", "feature telnet")["code"], "400");
}
