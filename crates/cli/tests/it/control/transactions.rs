//! Changes of clients of a running lab take effect as a whole or not at all, and belong to the
//! session that has made them: by REST, on the console, over HTTP and on the control socket.

use super::fos::{JSON, Managed, Response, ZONE};
use crate::sanloom::SANLOOM;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sanloom_surface::server::users::Role;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const HTTP: u16 = 18_080;
const USERS: [(&str, Role, &str); 3] = [
    ("admin", Role::Administer, "correct horse"),
    ("opi", Role::Operate, "battery staple"),
    ("vic", Role::View, "only looking"),
];

/// A lab with the interfaces of its switches, a page, and users of all roles.
fn start(name: &str) -> Managed {
    Managed::start_with_roles(name, HTTP, &USERS, &["--web", "127.0.0.1:0"])
}

/// A session of REST, in JSON.
struct Session<'l> {
    lab: &'l Managed,
    token: String,
}

impl Session<'_> {
    fn of(lab: &Managed) -> Session<'_> {
        Session { lab, token: lab.login() }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Response {
        self.lab.send(&format!("{method} {path}"), &[&self.token, JSON[0], JSON[1]], body)
    }

    /// PATCH of the effective configuration; `SUM` is replaced by the checksum.
    fn patch(&self, leaves: &str) -> Response {
        let leaves = leaves.replace("SUM", &self.lab.instance.zones("sw1").checksum);
        let body = format!("{{\"effective-configuration\":{{{leaves}}}}}");
        self.send("PATCH", &format!("{ZONE}/effective-configuration"), &body)
    }

    fn save(&self) -> u16 {
        self.patch(SAVE).status
    }

    /// POST of an alias.
    fn alias(&self, name: &str) -> Response {
        let body = format!(
            "{{\"alias\":[{{\"alias-name\":\"{name}\",\"member-entry\":{{\"alias-entry-name\":[\"1,1\"]}}}}]}}"
        );
        self.send("POST", &format!("{ZONE}/defined-configuration/alias"), &body)
    }
}

const SAVE: &str = r#""cfg-action":1,"checksum":"SUM""#;

/// Zone request over HTTP: its status and its answer.
fn zone(lab: &Managed, user: &str, action: Value) -> (u16, Value) {
    let (_, _, password) = USERS.iter().find(|(name, ..)| *name == user).unwrap();
    let address = lab.instance.page_url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut request = json!({ "request": "zone", "switch": "sw1" });
    request.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
    let body = request.to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "POST /api/v1/request HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAuthorization: Basic \
         {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        STANDARD.encode(format!("{user}:{password}")),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[track_caller]
fn refused((status, answer): (u16, Value), why: &str) {
    let reason = answer["reason"].as_str().unwrap_or_default();
    assert!(status == 400 && reason.contains(why), "no `{why}` in {status} {answer}");
}

#[track_caller]
fn done((status, answer): (u16, Value)) -> Value {
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn a_refused_enable_disable_or_default_zone_leaves_nothing_for_the_next_save() {
    let mut lab = start("tx-refused");
    let session = Session::of(&lab);
    let before = lab.state();
    assert!(before.contains("effective all-zones") && before.contains("default closed"), "{before:?}");
    let zones = format!("{ZONE}/defined-configuration/zone");
    let zone = r#"{"zone":[{"zone-name":"zd","member-entry":{"entry-name":["noalias"]}}]}"#;
    for change in [r#""cfg-action":2"#, r#""cfg-name":"all-zones""#] {
        assert_eq!(session.send("POST", &zones, zone).status, 201);
        let answer = session.patch(&format!(r#"{change},"checksum":"SUM","default-zone-access":1"#));
        assert!(answer.status == 400 && answer.message().contains("noalias"), "{answer:?}");
        assert_eq!(session.send("DELETE", &format!("{zones}/zone-name/zd"), "").status, 204);
        assert_eq!(session.save(), 204);
        assert_eq!(lab.state(), before, "{change}");
    }
    let sum = "0".repeat(32);
    for wrong in [
        format!(r#""checksum":"{sum}","cfg-action":1"#),
        format!(r#""checksum":"{sum}""#),
        r#""cfg-action":1"#.to_owned(),
        r#""cfg-action":9,"checksum":"SUM""#.to_owned(),
        r#""cfg-action":4"#.to_owned(),
        r#""cfg-name":"none","checksum":"SUM""#.to_owned(),
    ] {
        assert_eq!(session.patch(&format!(r#""default-zone-access":1,{wrong}"#)).status, 400, "{wrong}");
        assert_eq!(lab.instance.zones("sw1").transaction, None, "{wrong}");
        assert_eq!(session.save(), 204);
        assert_eq!(lab.state(), before, "{wrong}");
    }
    assert_eq!(session.patch(&format!(r#""default-zone-access":1,{SAVE}"#)).status, 204);
    assert!(lab.state().contains("default open"));

    // The same on the command line of a switch.
    let before = lab.state();
    let console = |lines: &str| {
        let mut process = Command::new(SANLOOM);
        let process = process.args(["console", &lab.instance.path("lab.toml"), "sw1"]);
        let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap()
    };
    let output = console("zonecreate zd, noalias\ncfgdisable\ny\nzonedelete zd\ncfgsave\ny\n");
    assert!(output.contains("noalias") && output.ends_with("Updating flash ...\n"), "{output}");
    assert_eq!(lab.state(), before);
    lab.instance.stop();
}

#[test]
fn edits_that_others_have_ended_are_not_saved_in_silence() {
    let mut lab = start("tx-lost");
    let session = Session::of(&lab);
    // A change at another switch ends the transaction.
    assert_eq!(session.alias("h1").status, 201);
    lab.instance.commit_alias(Some("sw2"), "f", vec!["1,2".to_owned()]).unwrap();
    let lost = session.patch(SAVE);
    assert!(lost.status == 400 && lost.message().contains("another user has changed the zones"), "{lost:?}");
    assert!(lost.message().contains("its edits are lost"), "{lost:?}");
    assert_eq!(session.save(), 204, "it is told once");
    // A command of an administrator ends it, too. A change of what is gone has the same reason.
    for next in ["POST", "DELETE", "PATCH"] {
        assert_eq!(session.alias("h1").status, 201);
        lab.instance.run("zone abort LAB --switch sw1").good();
        let answer = match next {
            "POST" => session.alias("h2"),
            "DELETE" => session.send("DELETE", &format!("{ZONE}/defined-configuration/alias/alias-name/h1"), ""),
            _ => session.patch(r#""cfg-name":"all-zones","checksum":"SUM""#),
        };
        let is_told = answer.status == 400 && answer.message().contains("a user of the control socket has aborted it");
        assert!(is_told, "{next}: {answer:?}");
    }
    // An abort acknowledges the loss.
    assert_eq!(session.alias("h1").status, 201);
    lab.instance.run("zone abort LAB --switch sw1").good();
    assert_eq!(session.patch(r#""cfg-action":4"#).status, 204);
    assert_eq!((session.alias("h3").status, session.save()), (201, 204));
    let state = lab.state();
    assert!(state.contains("alias h3 1,1") && !state.contains("alias h1 1,1"), "{state:?}");

    // The same for an open session of the command line.
    let mut process = Command::new(SANLOOM);
    let process = process.args(["console", &lab.instance.path("lab.toml"), "sw1"]);
    let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(b"alicreate late, \"1,1\"\n").unwrap();
    lab.instance.wait("the transaction", |instance| instance.zones("sw1").transaction.is_some());
    lab.instance.run("zone abort LAB --switch sw1").good();
    input.write_all(b"cfgsave\ny\n").unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("its edits are lost") && !text.contains("Updating flash"), "{text}");
    assert!(!lab.state().contains("alias late 1,1"));
    lab.instance.stop();
}

#[test]
fn a_transaction_over_http_belongs_to_its_user_and_only_an_administrator_ends_it() {
    let mut lab = start("tx-owner");
    let disable = json!({ "do": "edit", "edits": [{ "edit": "disable" }] });
    let commit = json!({ "do": "commit" });
    let both = json!({ "do": "edit_and_commit", "edits": [{ "edit": "disable" }] });
    let abort = json!({ "do": "abort" });
    let outstanding = "an outstanding transaction of the user admin of HTTP";
    done(zone(&lab, "admin", disable.clone()));
    for action in [&disable, &commit, &both, &abort, &json!({ "do": "rollback" })] {
        refused(zone(&lab, "opi", action.clone()), outstanding);
    }
    // The owner's session cannot be seen, and a session that a client names is not used.
    let shown = done(zone(&lab, "vic", json!({ "do": "show" })));
    assert_eq!(
        (&shown["transaction"]["owner"]["session"], &shown["transaction"]["owner"]["user"]),
        (&json!(""), &json!("admin"))
    );
    let owner = lab.instance.zones("sw1").transaction.unwrap().owner.unwrap();
    assert_eq!(owner.session, "HTTP user admin 127.0.0.1");
    for action in [&commit, &abort] {
        refused(zone(&lab, "opi", json!({ "do": "as", "client": owner, "action": action })), outstanding);
    }
    let after = done(zone(&lab, "admin", commit.clone()));
    assert_eq!(after["state"]["effective"], Value::Null);

    // A transaction of REST.
    let session = Session::of(&lab);
    assert_eq!(session.alias("h1").status, 201);
    let owner = lab.instance.zones("sw1").transaction.unwrap().owner.unwrap();
    let rest = "an outstanding transaction of the user admin of REST";
    refused(zone(&lab, "opi", json!({ "do": "as", "client": owner, "action": commit })), rest);
    refused(zone(&lab, "opi", abort.clone()), rest);
    done(zone(&lab, "admin", abort.clone()));
    let lost = session.patch(SAVE);
    assert!(lost.status == 400 && lost.message().contains("the user admin of HTTP has aborted it"), "{lost:?}");

    // Edits of the control socket do not go out with those of a user of the page.
    lab.instance.run("zone clear LAB --switch sw1").good();
    for action in [&commit, &both] {
        refused(zone(&lab, "opi", action.clone()), "an outstanding transaction of the control socket");
    }
    done(zone(&lab, "admin", abort));
    lab.instance.run("zone commit LAB --switch sw1").refused("no transaction is open at sw1");
    let enable = json!({ "do": "edit_and_commit", "edits": [{ "edit": "enable", "config": "all-zones" }] });
    assert_eq!(done(zone(&lab, "opi", enable))["state"]["effective"], "all-zones");
    lab.instance.stop();
}

#[test]
fn a_patch_of_several_ports_changes_all_of_them_or_none() {
    let mut lab = start("tx-ports");
    let session = Session::of(&lab);
    let path = "/rest/running/brocade-interface/fibrechannel";
    let patch = |entries: &str| session.send("PATCH", path, &format!("{{\"fibrechannel\":[{entries}]}}"));
    let name = |port: &str| {
        let answer = session.send("GET", &format!("{path}/name/0%2f{port}"), "").tree();
        answer.child("fibrechannel").unwrap().leaf("user-friendly-name").unwrap()
    };
    let before = (lab.state(), name("1"));
    for (wrong, status) in [
        (r#"{"name":"0/1","enabled-state":6},{"name":"0/99","enabled-state":6}"#, 404),
        (r#"{"name":"0/1","user-friendly-name":"zz"},{"name":"0/2","enabled-state":9}"#, 400),
        (r#"{"name":"0/1","enabled-state":6},{"name":"0/1","enabled-state":2}"#, 400),
        (r#"{"name":"0/1","enabled-state":6},{"name":"0/01","user-friendly-name":"zz"}"#, 400),
        (r#"{"name":"0/1","is-enabled-state":true,"enabled-state":6,"user-friendly-name":"zz"}"#, 400),
        (r#"{"name":"0/1","enabled-state":2,"persistent-disable":1}"#, 400),
    ] {
        let answer = patch(wrong);
        assert_eq!(answer.status, status, "{wrong}: {answer:?}");
        assert_eq!((lab.state(), name("1")), before, "{wrong}");
    }
    let answer = patch(r#"{"name":"0/1","enabled-state":6,"persistent-disable":0},{"name":"0/2","enabled-state":6}"#);
    assert_eq!(answer.status, 204, "{answer:?}");
    let state = lab.state();
    assert!(state.contains("disabled 1") && state.contains("disabled 2"), "{state:?}");
    lab.instance.stop();
}
