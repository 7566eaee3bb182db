//! The conversation of the Ansible collection `brocade.fos`: facts and tasks that change nothing
//! when they are repeated.
//!
//! The collection is not in PyPI, and its licence excludes a copy of its code, so its requests are
//! replayed: those that were recorded, with its rules for what is missing and what is too much.

use super::fos::Managed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sanloom_surface::fos::tree::Element;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

const ZONE: &str = "/rest/running/brocade-zone";

/// Answers that the collection takes for an empty list.
const EMPTY: [&str; 5] = [
    "No entries found",
    "No entries in Name Server",
    "No syslog servers are configured",
    "No Rule violations found",
    "No public keys found",
];

/// Answers that the collection takes for a missing part of the switch.
const MISSING: [&str; 4] = [
    "Not supported on this platform",
    "AG mode is not enabled",
    "Extension not supported on this platform",
    "No entries in the FDMI database",
];

/// Resources that the module of facts reads.
const FACTS: [&str; 16] = [
    "brocade-access-gateway/port-group",
    "brocade-chassis/chassis",
    "/brocade-fibrechannel-configuration/fabric",
    "/brocade-fibrechannel-configuration/port-configuration",
    "brocade-fibrechannel-switch/fibrechannel-switch",
    "brocade-interface/fibrechannel",
    "brocade-logging/audit",
    "brocade-logging/syslog-server",
    "brocade-security/ipfilter-policy",
    "brocade-security/user-config",
    "brocade-snmp/system",
    "brocade-time/clock-server",
    "brocade-time/time-zone",
    "brocade-zone/defined-configuration/alias",
    "brocade-zone/defined-configuration/zone",
    "brocade-zone/effective-configuration",
];

/// One run of a play.
struct Play<'a> {
    lab: &'a Managed,
    token: String,
    /// Number of requests that change something.
    changes: Cell<u32>,
}

/// Kind of a zone object: list, name of an object, container of members, members.
type Kind = (&'static str, &'static str, &'static str, &'static str);

const ALIAS: Kind = ("alias", "alias-name", "member-entry", "alias-entry-name");
const ZONES: Kind = ("zone", "zone-name", "member-entry", "entry-name");
const CONFIG: Kind = ("cfg", "cfg-name", "member-zone", "zone-name");

fn members(entry: &Element, container: &str, leaf: &str) -> BTreeSet<String> {
    let container = entry.child(container);
    container.into_iter().flat_map(|all| all.all(leaf).map(Element::value)).collect()
}

impl Play<'_> {
    fn start(lab: &Managed) -> Play<'_> {
        let basic = format!("Authorization: Basic {}", STANDARD.encode(format!("admin:{}", lab.password)));
        let login = lab.send("POST /rest/login", &[&basic, "Content-Type: application/yang-data+xml"], "");
        assert_eq!(login.status, 200, "{login:?}");
        let token = format!("Authorization: {}", login.token.unwrap());
        let play = Play { lab, token, changes: Cell::new(0) };
        let switch = play.get("brocade-fibrechannel-switch/fibrechannel-switch");
        assert_eq!(switch.child("fibrechannel-switch").unwrap().leaf("firmware-version").unwrap(), "v9.1.1");
        play
    }

    /// Reads a resource; an empty list has no element.
    fn get(&self, path: &str) -> Element {
        let fields = [&*self.token, "Content-Type: application/yang-data+xml"];
        let answer = self.lab.send(&format!("GET /rest/running/{path}?vf-id=128"), &fields, "");
        match answer.status {
            200 => answer.tree(),
            404 if EMPTY.contains(&&*answer.message()) => Element::container("Response", Vec::new()),
            400 if MISSING.contains(&&*answer.message()) => Element::container("Response", Vec::new()),
            _ => panic!("{path}: {answer:?}"),
        }
    }

    fn change(&self, request: &str, body: &str) {
        self.changes.set(self.changes.get() + 1);
        let fields = [&*self.token, "Content-Type: application/yang-data+xml"];
        let answer = self.lab.send(&format!("{request}?vf-id=128"), &fields, body);
        assert!([200, 201, 204].contains(&answer.status), "{request} {body}: {answer:?}");
    }

    /// Saves the open transaction; the configuration that is in force stays in force.
    fn save(&self) {
        let effective = self.get("brocade-zone/effective-configuration");
        let effective = effective.child("effective-configuration").unwrap();
        let checksum = effective.leaf("checksum").unwrap();
        let action = match effective.leaf("cfg-name") {
            Some(name) => format!("<cfg-name>{name}</cfg-name>"),
            None => "<cfg-action>1</cfg-action>".to_owned(),
        };
        let body =
            format!("<effective-configuration><checksum>{checksum}</checksum>{action}</effective-configuration>");
        self.change(&format!("PATCH {ZONE}/effective-configuration"), &body);
    }

    /// A zoning task: these objects have these members, and no others.
    fn objects(&self, (list, name, container, leaf): Kind, wanted: &[(&str, &[&str])]) {
        let tree = self.get(&format!("brocade-zone/defined-configuration/{list}"));
        let there: BTreeMap<String, BTreeSet<String>> =
            tree.all(list).map(|entry| (entry.leaf(name).unwrap(), members(entry, container, leaf))).collect();
        for entry in tree.all("zone") {
            // The collection reads both forms of the type.
            assert_eq!(entry.leaf("zone-type").as_deref(), Some("0"), "{entry:?}");
            assert_eq!(entry.leaf("zone-type-string").as_deref(), Some("zone"), "{entry:?}");
        }
        let none = BTreeSet::new();
        let (mut new, mut gone) = (String::new(), String::new());
        for (object, wanted) in wanted {
            let wanted: BTreeSet<String> = wanted.iter().map(|member| (*member).to_owned()).collect();
            let has = there.get(*object).unwrap_or(&none);
            for (text, differing) in [(&mut new, wanted.difference(has)), (&mut gone, has.difference(&wanted))] {
                let members: String = differing.map(|member| format!("<{leaf}>{member}</{leaf}>")).collect();
                if !members.is_empty() {
                    *text += &format!("<{list}><{name}>{object}</{name}><{container}>{members}</{container}></{list}>");
                }
            }
        }
        for (method, body) in [("POST", &new), ("DELETE", &gone)] {
            if !body.is_empty() {
                let body = format!("<defined-configuration>{body}</defined-configuration>");
                self.change(&format!("{method} {ZONE}/defined-configuration"), &body);
            }
        }
        if !new.is_empty() || !gone.is_empty() {
            self.save();
        }
    }

    /// A task about leaves of an entry, which are compared as text.
    fn leaves(&self, module: &str, object: &str, key: Option<(&str, &str)>, wanted: &[(&str, &str)]) {
        let tree = self.get(&format!("{module}/{object}"));
        let entry = tree.all(object).find(|entry| key.is_none_or(|(leaf, value)| entry.leaf(leaf).unwrap() == value));
        let entry = entry.unwrap();
        let differing: Vec<_> =
            wanted.iter().filter(|(leaf, value)| entry.leaf(leaf).as_deref() != Some(*value)).collect();
        if differing.is_empty() {
            return;
        }
        let leaves = key.iter().chain(differing).map(|(leaf, value)| format!("<{leaf}>{value}</{leaf}>\n"));
        let body = format!("<{object}>\n{}</{object}>\n", leaves.collect::<String>());
        self.change(&format!("PATCH /rest/running/{module}/{object}"), &body);
    }

    /// The tasks of the play. Returns the number of changes.
    fn run(self) -> u32 {
        let [h1, h2, h3] = ["10:01", "20:01", "30:01"].map(|tail| format!("50:25:a0:00:00:00:{tail}"));
        self.objects(ALIAS, &[("db", &[&h1]), ("array", &[&h2, &h3])]);
        self.objects(ZONES, &[("z_db", &["db", "array"]), ("z12", &[&h1])]);
        self.objects(CONFIG, &[("all-zones", &["z12", "z_db"])]);
        let effective = self.get("brocade-zone/effective-configuration");
        let effective = effective.child("effective-configuration").unwrap();
        if effective.leaf("default-zone-access").unwrap() != "1" {
            let body =
                "<effective-configuration><default-zone-access>1</default-zone-access></effective-configuration>";
            self.change(&format!("PATCH {ZONE}/effective-configuration"), body);
            self.save();
        }
        self.leaves(
            "brocade-interface",
            "fibrechannel",
            Some(("name", "0/1")),
            &[("user-friendly-name", "array port"), ("enabled-state", "6")],
        );
        self.leaves("brocade-chassis", "chassis", None, &[("chassis-user-friendly-name", "rack7")]);
        let switch = self.get("brocade-fibrechannel-switch/fibrechannel-switch");
        let name = switch.child("fibrechannel-switch").unwrap().leaf("name").unwrap();
        let wanted = [("user-friendly-name", "core_a"), ("banner", "keep out")];
        self.leaves("brocade-fibrechannel-switch", "fibrechannel-switch", Some(("name", &name)), &wanted);
        let logout = self.lab.send("POST /rest/logout", &[&self.token], "");
        assert_eq!(logout.status, 204);
        self.changes.get()
    }
}

#[test]
fn the_facts_and_a_second_run_of_the_tasks_of_ansible_change_nothing() {
    let mut lab = Managed::start("fos-ansible", Some(18_080), &[]);
    let before = lab.state();
    let play = Play::start(&lab);
    let facts: BTreeMap<&str, Element> = FACTS.map(|path| (path, play.get(path))).into();
    let port = facts["/brocade-fibrechannel-configuration/port-configuration"].child("port-configuration");
    assert!(port.is_some_and(|port| port.children().len() == 1), "{facts:?}");
    assert!(facts["/brocade-fibrechannel-configuration/fabric"].child("fabric").is_some());
    assert_eq!(facts["brocade-interface/fibrechannel"].all("fibrechannel").count(), 3);
    assert_eq!(lab.state(), before);
    assert_eq!(lab.instance.zones("sw1").transaction, None);

    assert_eq!(Play::start(&lab).run(), 12);
    let after = lab.state();
    for line in ["alias db H1", "alias array H2;H3", "zone z_db array;db", "cfg all-zones z12;z_db", "zone z12 H1"] {
        assert!(after.contains(line), "no {line} in {after:?}");
    }
    assert!(after.contains("default open") && after.contains("disabled 1"), "{after:?}");
    let checksum = lab.instance.zones("sw1").checksum;
    assert_eq!(Play::start(&lab).run(), 0, "a second run changes nothing");
    assert_eq!((lab.state(), lab.instance.zones("sw1").checksum), (after, checksum));
    lab.instance.stop();
}
