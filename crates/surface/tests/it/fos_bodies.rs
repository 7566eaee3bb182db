//! Bodies of REST requests: keys in a GET, leaves with their own values, leaves that stand twice.

use crate::client::{Alone, Fake, Limited};
use crate::fos::{Client, message, text};
use sanloom_api::control::{Answer, PortChange, Request as Ask, ShowTable, ZoneAction, ZoneClient};
use sanloom_api::view::build::Which;
use sanloom_api::view::{PortRow, PortsView, SwitchRow, SwitchView, Table, View};
use sanloom_api::zone_database::{Definition, Member};
use sanloom_api::zoning::{ZoneStatus, ZoneTransaction};
use sanloom_surface::Fabric;
use sanloom_surface::fos::Mode;

const ZONES: &str = "/rest/running/brocade-zone/defined-configuration";

/// A switch with two zones, an alias, and a zone transaction of its administrator.
fn zoned(request: Ask) -> Answer {
    match request {
        Ask::Zone { .. } => {
            let member = Member::Port("10:00:00:00:00:00:00:01".to_owned());
            let zone = Definition { members: vec![member], principals: Vec::new() };
            let mut status = ZoneStatus::default();
            status.committed.zones.extend(["zone1", "zone2"].map(|name| (name.to_owned(), zone.clone())));
            status.committed.aliases.insert("a1".to_owned(), vec!["10:00:00:00:00:00:00:01".to_owned()]);
            let owner = ZoneClient { role: "administer".to_owned(), ..ZoneClient::default() };
            status.transaction = Some(ZoneTransaction { owner: Some(owner), ..ZoneTransaction::default() });
            Answer::Zones(Box::new(status))
        }
        request => Alone.ask(request).unwrap_or(Answer::Done),
    }
}

#[test]
fn a_get_with_the_key_in_its_body_returns_that_object_only() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let mut get = |path: &str, kind: &str, body: &str| {
        let fields = [("authorization", &*token), ("content-type", kind), ("accept", kind)];
        let response = client.send_to(&mut Fake(zoned), "GET", &format!("{ZONES}{path}"), &fields, body.as_bytes());
        (response.status().as_u16(), text(&response).to_owned())
    };
    let (xml, json) = ("application/yang-data+xml", "application/yang-data+json");
    let entry = "<zone><zone-name>zone2</zone-name></zone>";
    let wrapped = format!("<defined-configuration>{entry}</defined-configuration>");
    let bodies = [
        ("/zone", xml, entry),
        ("/zone", xml, &*wrapped),
        ("", xml, entry),
        ("", xml, &*wrapped),
        ("/zone", json, r#"{"zone":{"zone-name":"zone2"}}"#),
        ("/zone", json, r#"{"zone":[{"zone-name":"zone2"}]}"#),
        ("", json, r#"{"defined-configuration":{"zone":[{"zone-name":"zone2"}]}}"#),
    ];
    for (path, kind, body) in bodies {
        let (status, found) = get(path, kind, body);
        assert!(status == 200 && found.contains("zone2"), "{path} {body}: {found}");
        assert!(!found.contains("zone1") && !found.contains("a1"), "{path} {body}: {found}");
    }
    assert_eq!(get("/zone", xml, "<zone><zone-name>zone3</zone-name></zone>").0, 404);
    assert!(get("/zone", xml, "").1.contains("zone1"));
    assert!(get("/alias", xml, "<alias><alias-name>a1</alias-name></alias>").1.contains("a1"));
}

#[test]
fn a_leaf_that_stands_twice_is_refused_and_changes_nothing() {
    let mut fabric = Fake(|request| match request {
        Ask::Zone { action: ZoneAction::As { action, .. }, .. } if matches!(*action, ZoneAction::Edit { .. }) => {
            unreachable!("the edit has reached the fabric")
        }
        request => zoned(request),
    });
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let bodies = [
        ("POST", "", "<zone><zone-name>a</zone-name><zone-name>b</zone-name></zone>"),
        ("POST", "", "<alias><alias-name>a</alias-name><member-entry/><member-entry/></alias>"),
        ("PATCH", "/zone/zone-name/zone1", "<zone-name>a</zone-name><zone-name>b</zone-name>"),
        ("POST", "/zone", "<zone><zone-name>a</zone-name><zone-name>b</zone-name></zone>"),
    ];
    for (method, path, body) in bodies {
        let path = format!("{ZONES}{path}");
        let response = client.send_to(&mut fabric, method, &path, &[("authorization", &token)], body.as_bytes());
        assert_eq!(response.status(), 400, "{body}");
        assert!(message(&response).contains(" twice in one "), "{body}: {}", message(&response));
    }
    let path = "/rest/running/brocade-fibrechannel-switch/fibrechannel-switch";
    let body = "<fibrechannel-switch><banner>a</banner><banner>b</banner></fibrechannel-switch>";
    let response = client.send_to(&mut fabric, "PATCH", path, &[("authorization", &token)], body.as_bytes());
    assert_eq!(
        (response.status().as_u16(), &*message(&response)),
        (400, "the body has banner twice in one fibrechannel-switch")
    );
}

#[test]
fn a_read_only_leaf_with_its_own_value_is_no_change() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let path = "/rest/running/brocade-fibrechannel-switch/fibrechannel-switch";
    let mut patch = |leaves: &str| {
        let body = format!("<fibrechannel-switch>{leaves}</fibrechannel-switch>");
        client.send_to(&mut Alone, "PATCH", path, &[("authorization", &token)], body.as_bytes()).status().as_u16()
    };
    let cases = [
        ("<domain-id>1</domain-id>", 204),
        ("<domain-id>1</domain-id><vf-id>-1</vf-id><banner>b</banner>", 204),
        ("<ip-address><ip-address>127.1.0.1</ip-address></ip-address>", 204),
        ("<domain-id>2</domain-id>", 400),
        ("<domain-id>1</domain-id><model>other</model>", 400),
        ("<nothing>1</nothing>", 400),
    ];
    for (leaves, status) in cases {
        assert_eq!(patch(leaves), status, "{leaves}");
    }
}

#[test]
fn the_owner_of_the_lock_has_the_role_of_its_login() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let path = "/rest/running/brocade-zone/fabric-lock";
    let lock = client.send_to(&mut Fake(zoned), "GET", path, &[("authorization", &token)], b"");
    assert!(text(&lock).contains("<client-role>admin</client-role>"), "{}", text(&lock));
}

#[test]
fn several_ports_of_a_patch_change_together_or_not_at_all() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let path = "/rest/running/brocade-interface/fibrechannel";
    let entry = |port: u32, leaves: &str| format!("<fibrechannel><name>0/{port}</name>{leaves}</fibrechannel>");
    let [off, on] = ["<enabled-state>6</enabled-state>", "<enabled-state>2</enabled-state>"];
    let mut patch = |fabric: &mut Limited, body: &str| {
        let response = client.send_to(fabric, "PATCH", path, &[("authorization", &token)], body.as_bytes());
        response.status().as_u16()
    };
    let named = format!("{off}<user-friendly-name>x</user-friendly-name>");
    let three = [entry(0, &named), entry(1, off), entry(3, off)].concat();
    let mut busy = Limited::default();
    assert_eq!((patch(&mut busy, &three), busy.disabled()), (503, vec![]));
    // A fabric that is busy behind the first change.
    let mut fabric = Limited::new(1);
    assert_eq!((patch(&mut fabric, &three), fabric.disabled()), (204, vec![0, 1, 3]));
    fabric.changes = 1;
    let mixed = [entry(0, on), entry(1, off), entry(2, off)].concat();
    assert_eq!((patch(&mut fabric, &mixed), fabric.disabled()), (204, vec![1, 2, 3]));
    // A port that does not exist, or a wrong value, changes none of the others.
    fabric.changes = 1;
    for wrong in [entry(9, on), entry(3, "<enabled-state>7</enabled-state>")] {
        let status = patch(&mut fabric, &[entry(1, on), wrong].concat());
        assert!([400, 404].contains(&status), "{status}");
        assert_eq!((fabric.changes, fabric.disabled()), (1, vec![1, 2, 3]));
    }
    let names = client.send_to(&mut busy, "GET", path, &[("authorization", &token)], b"");
    assert_eq!(text(&names).matches("<user-friendly-name>x</user-friendly-name>").count(), 1, "{}", text(&names));
}

/// A logical switch with eight ports, of which one has a link and one is disabled.
pub fn logical(request: Ask) -> Answer {
    let table = match request {
        Ask::Show { table: ShowTable::Fabric(Which::Switch), .. } => {
            let row = SwitchRow {
                switch: "sw1".to_owned(),
                switch_name: "10:00:00:00:00:00:00:01".to_owned(),
                chassis: Some("frame".to_owned()),
                vf_id: Some(10),
                domain: Some(1),
                up: true,
                ports: 8,
                port_numbers: (8..16).collect(),
                disabled_ports: vec![10],
                ..SwitchRow::default()
            };
            Table::Switch(SwitchView { switches: vec![row] })
        }
        Ask::Show { table: ShowTable::Fabric(Which::Ports), .. } => {
            let port_name = "20:08:00:00:00:00:00:01".to_owned();
            let row = PortRow { port: "sw1:8".to_owned(), number: 8, port_name, light: true, ..PortRow::default() };
            Table::Ports(PortsView { ports: vec![row] })
        }
        Ask::Show { table: ShowTable::Fabric(Which::Flogi), .. } => Table::Flogi(Default::default()),
        Ask::Ports { changes, .. } => {
            assert_eq!(changes, [PortChange { port: "sw1:11".to_owned(), enabled: false }]);
            return Answer::Done;
        }
        request => return zoned(request),
    };
    Answer::View(View::new("lab", 1.0, table))
}

#[test]
fn a_logical_switch_has_all_its_ports_with_names_and_states() {
    let mut client = Client::new(Mode::default());
    let token = client.token();
    let mut send = |method: &str, path: &str, body: &str| {
        let path = format!("/rest/running/brocade-{path}");
        let fields = [("authorization", &*token)];
        let response = client.send_to(&mut Fake(logical), method, &path, &fields, body.as_bytes());
        (response.status().as_u16(), text(&response).to_owned())
    };
    let (_, ports) = send("GET", "interface/fibrechannel", "");
    assert_eq!(ports.matches("<fibrechannel>").count(), 8, "{ports}");
    for number in 8..16 {
        assert!(
            ports.contains(&format!("<name>0/{number}</name><wwn>20:{number:02x}:00:00:00:00:00:01</wwn>")),
            "{ports}"
        );
    }
    assert_eq!(ports.matches("<is-enabled-state>false</is-enabled-state>").count(), 1, "{ports}");
    let (_, port) = send("GET", "interface/fibrechannel/name/0%2f10", "");
    for leaf in ["<enabled-state>6</enabled-state>", "<persistent-disable>1</persistent-disable>"] {
        assert!(port.contains(leaf), "{port}");
    }
    assert_eq!(send("PATCH", "interface/fibrechannel/name/0%2f11", "<enabled-state>6</enabled-state>").0, 204);
    // The address and the body name the same port.
    let named =
        |name: &str| format!("<fibrechannel><name>{name}</name><enabled-state>6</enabled-state></fibrechannel>");
    assert_eq!(send("PATCH", "interface/fibrechannel/name/0%2f11", &named("0/11")).0, 204);
    let (status, answer) = send("PATCH", "interface/fibrechannel/name/0%2f11", &named("0/12"));
    assert!(status == 400 && answer.contains("name is 0/11 in the address and 0/12 in the body"), "{answer}");
    let (_, switch) = send("GET", "fibrechannel-logical-switch/fibrechannel-logical-switch", "");
    assert_eq!(switch.matches("<port-member>").count(), 8, "{switch}");
}
