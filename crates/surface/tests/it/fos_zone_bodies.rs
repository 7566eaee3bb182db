//! Bodies of REST requests that change zones: elements that the table does not have,
//! contradictions, and the bodies of real clients.

use crate::client::Alone;
use crate::fos::{Client, text};
use sanloom_api::control::{Answer, Request as Ask, ZoneAction, ZoneClient};
use sanloom_api::zone_database::{Database, Definition, Edit, Effective, EffectiveZone, Kind, Member};
use sanloom_api::zoning::{ZoneStatus, ZoneTransaction};
use sanloom_surface::fos::Mode;
use sanloom_surface::{Busy, Fabric};

const ZONES: &str = "/rest/running/brocade-zone/defined-configuration";
const EFFECTIVE: &str = "/rest/running/brocade-zone/effective-configuration";
const WWN: &str = "10:00:00:00:00:00:00:01";
const OTHER: &str = "10:00:00:00:00:00:00:02";

/// A fabric with an alias, a zone, a peer zone and an enabled configuration, which keeps the
/// changes that it receives.
#[derive(Default)]
struct Zoned {
    changes: Vec<ZoneAction>,
}

impl Fabric for Zoned {
    fn ask(&mut self, request: Ask) -> Result<Answer, Busy> {
        let Ask::Zone { action, .. } = request else { return Alone.ask(request) };
        let action = match action {
            ZoneAction::As { action, .. } => *action,
            action => action,
        };
        if action != ZoneAction::Show {
            self.changes.push(action);
        }
        let port = |name: &str| Member::Port(name.to_owned());
        let zone = |name: &str, principals: &[&str]| EffectiveZone {
            zone: name.to_owned(),
            members: [WWN, OTHER].into_iter().filter(|port| !principals.contains(port)).map(str::to_owned).collect(),
            principals: principals.iter().map(|port| (*port).to_owned()).collect(),
        };
        let plain = Definition { members: vec![port(WWN), port(OTHER)], principals: Vec::new() };
        let peer = Definition { members: vec![port(WWN)], principals: vec![port(OTHER)] };
        let committed = Database {
            aliases: [("h1".to_owned(), vec![WWN.to_owned(), OTHER.to_owned()])].into(),
            zones: [("z1".to_owned(), plain), ("p1".to_owned(), peer), ("none".to_owned(), Definition::default())]
                .into(),
            configs: [("all".to_owned(), vec!["z1".to_owned(), "p1".to_owned()])].into(),
            effective: Some(Effective { config: "all".to_owned(), zones: vec![zone("z1", &[]), zone("p1", &[OTHER])] }),
            ..Database::default()
        };
        Ok(Answer::Zones(Box::new(ZoneStatus { committed, ..ZoneStatus::default() })))
    }
}

/// A session, and the changes that its last request has made.
struct Session {
    client: Client,
    token: String,
}

impl Session {
    fn open() -> Session {
        let mut client = Client::new(Mode::default());
        let token = client.token();
        Session { client, token }
    }

    /// Sends a body in its own encoding. Returns the status, the answer and the changes.
    fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, String, Vec<ZoneAction>) {
        let kind = if body.starts_with('{') { "application/yang-data+json" } else { "application/yang-data+xml" };
        let fields = [("authorization", &*self.token), ("content-type", kind)];
        let mut fabric = Zoned::default();
        let response = self.client.send_to(&mut fabric, method, path, &fields, body.as_bytes());
        (response.status().as_u16(), text(&response).to_owned(), fabric.changes)
    }
}

/// An object of a body: its element, key leaf and name, and its further leaves in XML and JSON.
struct Object {
    kind: (&'static str, &'static str),
    name: &'static str,
    xml: String,
    json: String,
}

fn object(kind: &str, name: &'static str, xml: &str, json: &str) -> Object {
    let kinds = [("alias", "alias-name"), ("zone", "zone-name"), ("cfg", "cfg-name")];
    let kind = kinds.into_iter().find(|(element, _)| *element == kind).unwrap();
    Object { kind, name, xml: xml.to_owned(), json: json.to_owned() }
}

impl Object {
    /// All forms of a request: path and body.
    fn forms(&self) -> Vec<(String, String)> {
        let Object { kind: (element, key), name, xml, json } = self;
        let entry = format!("<{element}><{key}>{name}</{key}>{xml}</{element}>");
        let comma = if json.is_empty() { "" } else { "," };
        let json_entry = format!("{{\"{key}\":\"{name}\"{comma}{json}}}");
        vec![
            (String::new(), format!("<defined-configuration>{entry}</defined-configuration>")),
            (format!("/{element}"), entry),
            (format!("/{element}/{key}/{name}"), xml.clone()),
            (format!("/{element}/{key}/{name}"), format!("<{element}>{xml}</{element}>")),
            (String::new(), format!("{{\"defined-configuration\":{{\"{element}\":[{json_entry}]}}}}")),
            (format!("/{element}"), format!("{{\"{element}\":[{json_entry}]}}")),
            (format!("/{element}/{key}/{name}"), format!("{{{json}}}")),
        ]
    }
}

#[test]
fn an_element_that_the_table_does_not_have_is_refused_and_changes_nothing() {
    let mut session = Session::open();
    let members = |leaf: &str| {
        let xml = format!("<member-entry><{leaf}>{WWN}</{leaf}></member-entry>");
        (xml, format!("\"member-entry\":{{\"{leaf}\":[\"{WWN}\"]}}"))
    };
    let mut objects = Vec::new();
    for (kind, name, leaf) in [
        ("alias", "h1", "entry-name"),
        ("alias", "h1", "principal-entry-name"),
        ("zone", "z1", "alias-entry-name"),
        ("zone", "z1", "entry_name"),
        ("zone", "p1", "principal-name"),
    ] {
        let (xml, json) = members(leaf);
        objects.push(object(kind, name, &xml, &json));
    }
    objects.push(object(
        "cfg",
        "all",
        "<member-zone><zone_name>z1</zone_name></member-zone>",
        r#""member-zone":{"zone_name":["z1"]}"#,
    ));
    for (kind, name) in [("alias", "h1"), ("zone", "z1"), ("cfg", "all")] {
        for wrong in ["memberentry", "foo", "member-Entry"] {
            let xml = format!("<{wrong}><entry-name>{WWN}</entry-name></{wrong}>");
            objects.push(object(kind, name, &xml, &format!("\"{wrong}\":{{\"entry-name\":[\"{WWN}\"]}}")));
            objects.push(object(kind, name, &format!("<{wrong}/>"), &format!("\"{wrong}\":null")));
        }
    }
    objects.push(object("cfg", "all", "<member-entry/>", r#""member-entry":{}"#));
    objects.push(object("alias", "h1", "<zone-type>0</zone-type>", r#""zone-type":0"#));
    for object in &objects {
        for (path, body) in object.forms() {
            for method in ["DELETE", "PATCH", "POST"] {
                let (status, answer, changes) = session.send(method, &format!("{ZONES}{path}"), &body);
                assert_eq!((status, &*changes), (400, &[][..]), "{method} {path} {body}: {answer}");
                assert!(answer.contains("unknown-element"), "{method} {path} {body}: {answer}");
            }
        }
    }
    let (_, answer, _) = session.send("DELETE", &format!("{ZONES}/alias"), &objects[0].forms()[1].1);
    assert!(answer.contains("member-entry has no element entry-name; it has alias-entry-name"), "{answer}");
}

#[test]
fn text_in_place_of_elements_and_elements_in_place_of_text_are_refused() {
    let mut session = Session::open();
    let objects = [
        object("alias", "h1", "<member-entry>text</member-entry>", r#""member-entry":"text""#),
        object("cfg", "all", "<member-zone>z1</member-zone>", r#""member-zone":["z1"]"#),
        object("zone", "z1", "<member-entry>z1</member-entry>", r#""member-entry":5"#),
        object(
            "zone",
            "z1",
            "<member-entry><entry-name><a/></entry-name></member-entry>",
            r#""member-entry":{"entry-name":{"a":1}}"#,
        ),
        object("zone", "z1", "<member-entry><entry-name/></member-entry>", r#""member-entry":{"entry-name":[""]}"#),
        object(
            "alias",
            "h1",
            "<member-entry><alias-entry-name> </alias-entry-name></member-entry>",
            r#""member-entry":{"alias-entry-name":[null]}"#,
        ),
    ];
    for object in &objects {
        for (path, body) in object.forms() {
            for method in ["DELETE", "PATCH", "POST"] {
                let (status, answer, changes) = session.send(method, &format!("{ZONES}{path}"), &body);
                assert_eq!((status, &*changes), (400, &[][..]), "{method} {path} {body}: {answer}");
            }
        }
    }
    for (path, body) in [
        ("", "<defined-configuration>text</defined-configuration>"),
        ("/zone/zone-name/z1", "<zone>text</zone>"),
        ("/zone/zone-name/z1", r#"{"zone":["z1"]}"#),
        ("/zone/zone-name/z1", "<alias/>"),
        ("/zone/zone-name/z1", "<zone/><zone/>"),
        ("/zone", "<alias><alias-name>h1</alias-name></alias>"),
        ("/zone/zone-name/z1", "<zone-name>p1</zone-name>"),
        ("/zone/zone-name/z1", "<zone-name/>"),
    ] {
        let (status, answer, changes) = session.send("DELETE", &format!("{ZONES}{path}"), body);
        assert_eq!((status, &*changes), (400, &[][..]), "{path} {body}: {answer}");
    }
}

#[test]
fn a_delete_removes_the_whole_object_only_without_a_list_of_members() {
    let mut session = Session::open();
    for (kind, name, of, list) in [
        ("alias", "h1", Kind::Alias, "member-entry"),
        ("zone", "z1", Kind::Zone, "member-entry"),
        ("cfg", "all", Kind::Config, "member-zone"),
    ] {
        for (path, body) in object(kind, name, &format!("<{list}/>"), &format!("\"{list}\":{{}}")).forms() {
            let (status, answer, changes) = session.send("DELETE", &format!("{ZONES}{path}"), &body);
            assert_eq!((status, &*changes), (400, &[][..]), "{path} {body}: {answer}");
            assert!(answer.contains(&format!("leave {list} out to delete the {kind}")), "{answer}");
        }
        let delete = ZoneAction::Edit { edits: vec![Edit::Delete { kind: of, name: name.to_owned() }] };
        for (path, body) in object(kind, name, "", "").forms() {
            let (status, answer, changes) = session.send("DELETE", &format!("{ZONES}{path}"), &body);
            assert_eq!((status, &*changes), (204, &[delete.clone()][..]), "{path} {body}: {answer}");
        }
    }
}

#[test]
fn the_type_of_a_zone_is_one_that_it_has() {
    let mut session = Session::open();
    let number = |number: u32| (format!("<zone-type>{number}</zone-type>"), format!("\"zone-type\":{number}"));
    let word = |word: &str| {
        (format!("<zone-type-string>{word}</zone-type-string>"), format!("\"zone-type-string\":\"{word}\""))
    };
    let (plain, peer) = ([number(0), word("zone")], [number(1), word("user-created-peer-zone")]);
    let none = [number(2), number(7), word("target-created-peer-zone"), word("peer"), word("")];
    let both = [(format!("{}{}", plain[0].0, peer[1].0), format!("{},{}", plain[0].1, peer[1].1))];
    let own = [(format!("{}{}", peer[0].0, peer[1].0), format!("{},{}", peer[0].1, peer[1].1))];
    let refused = [("new", &none[..]), ("new", &both), ("z1", &none), ("z1", &peer), ("p1", &none), ("p1", &plain)];
    let accepted = [("z1", &plain[..]), ("p1", &peer), ("p1", &own), ("none", &plain), ("none", &peer)];
    for (cases, is_right) in [(&refused[..], false), (&accepted, true)] {
        for (name, types) in cases {
            for (xml, json) in *types {
                for (path, body) in object("zone", name, xml, json).forms() {
                    let methods = if *name == "new" { &["POST"][..] } else { &["POST", "PATCH", "DELETE"] };
                    for method in methods {
                        let (status, answer, changes) = session.send(method, &format!("{ZONES}{path}"), &body);
                        assert_eq!(status == 400, !is_right, "{method} {path} {body}: {answer}");
                        assert!(is_right || changes.is_empty(), "{method} {path} {body}: {changes:?}");
                    }
                }
            }
        }
    }
    let replace = |members: &str, kind: &str| {
        format!("<zone><zone-name>z1</zone-name>{kind}<member-entry>{members}</member-entry></zone>")
    };
    let principal = format!("<principal-entry-name>{OTHER}</principal-entry-name>");
    let member = format!("<entry-name>{WWN}</entry-name>");
    for (body, expected) in [
        // A PATCH of the members makes another type of zone.
        (replace(&format!("{principal}{member}"), &peer[0].0), 204),
        (replace(&format!("{principal}{member}"), &plain[0].0), 400),
        (replace(&member, &peer[0].0), 400),
        (replace(&member, &plain[1].0), 204),
    ] {
        assert_eq!(session.send("PATCH", &format!("{ZONES}/zone"), &body).0, expected, "{body}");
    }
}

#[test]
fn the_bodies_of_pyfos_brcdapi_and_ansible_are_accepted() {
    let mut session = Session::open();
    // pyfos 2.0.0 writes the type as text, and brcdapi as a number; Ansible adds line ends.
    let peer = "<zone-type-string>user-created-peer-zone</zone-type-string>";
    let xml = [
        ("DELETE", "<alias>\n\t<alias-name>h1</alias-name>\n</alias>".to_owned()),
        ("DELETE", format!("<zone>\n<zone-name>p1</zone-name>\n{peer}\n</zone>")),
        (
            "POST",
            format!(
                "<zone><zone-name>p1</zone-name>{peer}<member-entry><entry-name>m</entry-name></member-entry></zone>"
            ),
        ),
        (
            "POST",
            format!(
                "<zone><zone-name>p9</zone-name>{peer}<member-entry>\n<entry-name>{WWN}</entry-name>\n\
                 <principal-entry-name>{OTHER}</principal-entry-name>\n</member-entry></zone>"
            ),
        ),
        (
            "DELETE",
            "<cfg><cfg-name>all</cfg-name><member-zone><zone-name>z1</zone-name></member-zone></cfg>".to_owned(),
        ),
    ];
    for (method, body) in xml {
        let body = format!("\n<defined-configuration>\n\t{body}\n</defined-configuration>");
        let (status, answer, changes) = session.send(method, ZONES, &body);
        assert!(status < 300 && changes.len() == 1, "{method} {body}: {status} {answer}");
    }
    let json = [
        (
            "POST",
            r#"{"defined-configuration":{"zone":[{"zone-name":"n","zone-type":0,"member-entry":{"entry-name":["h1"]}}]}}"#,
        ),
        ("POST", r#"{"defined-configuration":{"zone":[{"zone-name":"n","zone-type":0,"member-entry":{}}]}}"#),
        ("DELETE", r#"{"defined-configuration":{"alias":[{"alias-name":"h1"}]}}"#),
        // A zone as it was read, with a further member.
        (
            "PATCH",
            r#"{"defined-configuration":{"zone":{"zone-name":"p1","zone-type":1,"zone-type-string":"user-created-peer-zone","member-entry":{"entry-name":["10:00:00:00:00:00:00:01","h1"],"principal-entry-name":["10:00:00:00:00:00:00:02"]}}}}"#,
        ),
    ];
    for (method, body) in json {
        let (status, answer, changes) = session.send(method, ZONES, body);
        assert!(status < 300 && changes.len() == 1, "{method} {body}: {status} {answer}");
    }
    let operation = "/rest/operations/fibrechannel-zone";
    let expunge =
        "<zone-operation-parameters><zone-object>h1</zone-object><action>expunge</action></zone-operation-parameters>";
    assert_eq!(session.send("POST", operation, expunge).0, 204);
    let (status, answer, changes) = session.send("POST", operation, &expunge.replace("action>", "aktion>"));
    assert!(status == 400 && answer.contains("unknown-element") && changes.is_empty(), "{answer}");
}

#[test]
fn an_effective_configuration_that_was_read_is_accepted_with_another_value_of_a_writable_leaf() {
    let mut session = Session::open();
    let mut read = |kind: &str| {
        let fields = [("authorization", &*session.token), ("accept", kind)];
        text(&session.client.send_to(&mut Zoned::default(), "GET", EFFECTIVE, &fields, b"")).to_owned()
    };
    let (xml, json) = (read("application/yang-data+xml"), read("application/yang-data+json"));
    let leaves = xml.split_once("<effective-configuration>").unwrap().1;
    let leaves = leaves.split_once("</effective-configuration>").unwrap().0;
    assert_eq!((leaves.matches("<enabled-zone>").count(), leaves.matches(OTHER).count()), (2, 2), "{leaves}");
    let wrapped = |leaves: &str| format!("<effective-configuration>{leaves}</effective-configuration>");
    let closed = "<default-zone-access>0<";
    assert!(leaves.contains(closed), "{leaves}");
    let opened = leaves.replace(closed, "<default-zone-access>1<");
    let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut tree = json["Response"].take();
    tree["effective-configuration"]["default-zone-access"] = 1.into();
    let change = ZoneAction::EditAndCommit {
        edits: vec![Edit::SetDefault { open: true, auto: false }, Edit::Enable { config: "all".to_owned() }],
    };
    for body in [wrapped(&opened), opened.clone(), tree.to_string()] {
        let (status, answer, changes) = session.send("PATCH", EFFECTIVE, &body);
        assert_eq!((status, &*changes), (204, &[change.clone()][..]), "{body}: {answer}");
    }
    // Another value is refused, whatever stands beside it.
    let number = leaves.split_once("<db-max>").unwrap().1.split('<').next().unwrap();
    let second = leaves.rfind("<enabled-zone>").unwrap();
    for (name, body) in [
        ("db-max", opened.replace(&format!("<db-max>{number}<"), "<db-max>1<")),
        ("enabled-zone", opened.replace(OTHER, "10:00:00:00:00:00:00:03")),
        ("enabled-zone", opened.replace("<zone-name>p1<", "<zone-name>p2<")),
        ("enabled-zone", leaves[..second].to_owned()),
        ("transaction-token", opened.replace("<transaction-token>0<", "<transaction-token>5<")),
        ("nothing", format!("{opened}<nothing>1</nothing>")),
    ] {
        let (status, answer, changes) = session.send("PATCH", EFFECTIVE, &wrapped(&body));
        assert_eq!((status, &*changes), (400, &[][..]), "{body}: {answer}");
        assert!(answer.contains(&format!("{name} of the effective configuration cannot be changed")), "{answer}");
    }
    // Alone, its value changes nothing.
    let (status, answer, changes) = session.send("PATCH", EFFECTIVE, &wrapped(&format!("<db-max>{number}</db-max>")));
    assert_eq!((status, changes.len()), (204, 0), "{answer}");
}

/// A fabric with this committed database, and a transaction of the first session with the other.
struct Pending {
    committed: Database,
    working: Option<Database>,
    changes: Vec<ZoneAction>,
}

impl Fabric for Pending {
    fn ask(&mut self, request: Ask) -> Result<Answer, Busy> {
        let Ask::Zone { action, .. } = request else { return Alone.ask(request) };
        let action = match action {
            ZoneAction::As { action, .. } => *action,
            action => action,
        };
        if action != ZoneAction::Show {
            self.changes.push(action);
        }
        let owner = ZoneClient { session: "sw1/rest/1".to_owned(), ..ZoneClient::default() };
        let open = ZoneTransaction { token: 1, owner: Some(owner), ..ZoneTransaction::default() };
        let (committed, working) = (self.committed.clone(), self.working.clone());
        let transaction = working.is_some().then_some(open);
        Ok(Answer::Zones(Box::new(ZoneStatus { committed, working, transaction, ..ZoneStatus::default() })))
    }
}

#[test]
fn a_defined_configuration_that_was_read_is_accepted_with_every_kind_of_member() {
    // Port name, node name of a node that is not logged in, domain with index, and address.
    let members = [WWN, "wwnn:20:00:00:00:00:00:00:07", "1,5", "0x020400"].map(str::to_owned);
    let of_zone = members.iter().map(|member| Member::Port(member.clone()));
    let zone = Definition {
        members: of_zone.chain([Member::Alias { alias: "a".to_owned() }]).collect(),
        principals: Vec::new(),
    };
    let committed = Database {
        aliases: [("a".to_owned(), members.to_vec())].into(),
        zones: [("z".to_owned(), zone.clone())].into(),
        configs: [("c".to_owned(), vec!["z".to_owned()])].into(),
        ..Database::default()
    };
    let mut fabric = Pending { committed, working: None, changes: Vec::new() };
    let Session { mut client, token } = Session::open();
    for kind in ["application/yang-data+xml", "application/yang-data+json"] {
        let fields = [("authorization", &*token), ("accept", kind), ("content-type", kind)];
        let read = text(&client.send_to(&mut fabric, "GET", ZONES, &fields, b"")).to_owned();
        let body = match kind.ends_with("json") {
            true => serde_json::from_str::<serde_json::Value>(&read).unwrap()["Response"].take().to_string(),
            false => read.split_once("<Response>").unwrap().1.replace("</Response>", ""),
        };
        assert!(body.contains("0x020400"), "{body}");
        let answer = client.send_to(&mut fabric, "PATCH", ZONES, &fields, body.as_bytes());
        assert_eq!(answer.status(), 204, "{}", text(&answer));
        let Some(ZoneAction::Edit { edits }) = fabric.changes.pop() else { panic!("no edits: {body}") };
        assert!(edits.contains(&Edit::ReplaceAlias { name: "a".to_owned(), members: members.to_vec() }), "{edits:?}");
        assert!(edits.contains(&Edit::ReplaceZone { name: "z".to_owned(), zone: zone.clone() }), "{edits:?}");
    }
    // Another number of digits is no address.
    for wrong in ["0x20400", "0x0204000", "0x02040g", "0x"] {
        let body = format!(
            "<alias><alias-name>a</alias-name><member-entry><alias-entry-name>{wrong}</alias-entry-name></member-entry></alias>"
        );
        let answer = client.send_to(&mut fabric, "PATCH", ZONES, &[("authorization", &token)], body.as_bytes());
        assert_eq!((answer.status().as_u16(), fabric.changes.len()), (400, 0), "{wrong}: {}", text(&answer));
    }
}

#[test]
fn a_pending_default_zone_is_visible_to_its_owner_only() {
    let working = Some(Database { default_open: true, ..Database::default() });
    let mut fabric = Pending { committed: Database::default(), working, changes: Vec::new() };
    let mut client = Client::new(Mode::default());
    for expected in [1, 0] {
        let token = client.token();
        let answer = client.send_to(&mut fabric, "GET", EFFECTIVE, &[("authorization", &token)], b"");
        let leaf = format!("<default-zone-access>{expected}</default-zone-access>");
        assert!(text(&answer).contains(&leaf), "{}", text(&answer));
    }
}

#[test]
fn a_change_of_the_effective_configuration_that_contradicts_itself_is_refused() {
    let mut session = Session::open();
    let json = |leaves: &str| format!("{{\"effective-configuration\":{{\"checksum\":\"\",{leaves}}}}}");
    let mut cases = vec![
        (r#""cfg-action":1,"cfg-action-v2":"transaction-abort""#.to_owned(), 400),
        (r#""cfg-action":4,"cfg-action-v2":"save""#.to_owned(), 400),
        (r#""cfg-action":1,"cfg-action-v2":"save""#.to_owned(), 204),
        (r#""cfg-action":4,"cfg-action-v2":"transaction-abort""#.to_owned(), 204),
        (r#""cfg-name":"all","cfg-action":1"#.to_owned(), 204),
        (r#""cfg-name":"","cfg-action":1"#.to_owned(), 400),
        (r#""cfg-name":{"a":1},"cfg-action":1"#.to_owned(), 400),
        (r#""cfg-nam":"all","cfg-action":1"#.to_owned(), 400),
    ];
    for action in ["2", "3", "4", "\"disable\"", "\"clear\"", "\"transaction-abort\""] {
        cases.push((format!("\"cfg-action\":{action}"), 204));
        for name in ["all", "none"] {
            cases.push((format!("\"cfg-name\":\"{name}\",\"cfg-action\":{action}"), 400));
        }
    }
    for (leaves, expected) in cases {
        let (status, answer, changes) = session.send("PATCH", EFFECTIVE, &json(&leaves));
        assert_eq!((status, changes.is_empty()), (expected, expected == 400), "{leaves}: {answer}");
    }
    let in_path = format!("{EFFECTIVE}/cfg-action/2");
    let (status, _, changes) = session.send("PATCH", &in_path, "<cfg-name>all</cfg-name><checksum>0</checksum>");
    assert_eq!((status, changes.len()), (400, 0));
}
