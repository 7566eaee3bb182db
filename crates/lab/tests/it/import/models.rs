//! Plain models of the zone databases of switches. Commands that a switch refuses, or that would
//! delete an object on the side, fail the test.

use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{MemberRef, ZoneDatabase};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

pub trait Model: Debug + PartialEq {
    fn of(database: &ZoneDatabase) -> Self;
    fn run(&mut self, script: &str);
}

type Set = BTreeSet<String>;

/// The database of Fabric OS: one name space, members and principals as texts.
#[derive(Debug, PartialEq, Default)]
pub struct Fos {
    /// Kind, members and principals by name.
    objects: BTreeMap<String, (char, Set, Set)>,
    enabled: Option<String>,
    closed: bool,
}

fn fos_text(member: &ZoneMember) -> String {
    member.to_string().trim_start_matches("wwnn:").to_owned()
}

impl Model for Fos {
    fn of(database: &ZoneDatabase) -> Fos {
        let reference = |member: &MemberRef| match member {
            MemberRef::Alias(name) => name.clone(),
            MemberRef::Member(member) => fos_text(member),
        };
        let mut fos = Fos {
            enabled: database.effective.as_ref().map(|effective| effective.name.clone()),
            closed: database.default_zone == ZoneDefault::Closed,
            ..Fos::default()
        };
        for (name, members) in &database.defined.aliases {
            fos.objects.insert(name.clone(), ('a', members.iter().map(fos_text).collect(), Set::new()));
        }
        for (name, zone) in &database.defined.zones {
            let set = |list: &[MemberRef]| list.iter().map(reference).collect::<Set>();
            fos.objects.insert(name.clone(), ('z', set(&zone.members), set(&zone.principals)));
        }
        for (name, zones) in &database.defined.configs {
            fos.objects.insert(name.clone(), ('c', zones.iter().cloned().collect(), Set::new()));
        }
        fos
    }

    fn run(&mut self, script: &str) {
        let mut lines = script.lines();
        while let Some(line) = lines.next() {
            self.command(line);
            // Commands that change the fabric ask, and the next line is the answer.
            if ["cfgsave", "cfgenable", "cfgdisable", "defzone"].iter().any(|verb| line.starts_with(verb)) {
                assert_eq!(lines.next(), Some("y"), "{line}: no answer");
            }
        }
    }
}

impl Fos {
    /// Members of the zones of the configuration that is enabled, with aliases replaced.
    pub fn in_force(&self) -> BTreeSet<Set> {
        let Some((_, zones, _)) = self.enabled.as_ref().map(|name| &self.objects[name]) else { return BTreeSet::new() };
        let expand = |member: &String| match self.objects.get(member) {
            Some((_, members, _)) => members.clone(),
            None => Set::from([member.clone()]),
        };
        zones.iter().map(|zone| self.objects[zone].1.iter().flat_map(expand).collect()).collect()
    }

    fn command(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let quoted: Vec<&str> = rest.split('"').skip(1).step_by(2).collect();
        match verb {
            "cfgsave" => return,
            "cfgdisable" => {
                assert!(self.enabled.take().is_some(), "{line}: nothing is enabled");
                return;
            }
            "cfgenable" => {
                assert_eq!(self.objects[quoted[0]].0, 'c', "{line}");
                self.enabled = Some(quoted[0].to_owned());
                return;
            }
            "defzone" => {
                self.closed = rest == "--noaccess";
                return;
            }
            _ => {}
        }
        let kind = verb.chars().next().unwrap();
        let action = ["create", "add", "remove", "delete"].into_iter().find(|action| verb.ends_with(action)).unwrap();
        let list = |text: &str| -> Set { text.split("; ").map(str::to_owned).collect() };
        let name = quoted[0].to_owned();
        let (mut members, mut principals) = (Set::new(), Set::new());
        let is_peer = rest.starts_with("--peerzone");
        if is_peer {
            for option in ["-principal", "-members"] {
                if let Some((_, value)) = rest.split_once(&format!("{option} \"")) {
                    let value = list(value.split('"').next().unwrap());
                    if option == "-principal" { principals = value } else { members = value }
                }
            }
        } else if let Some(text) = quoted.get(1) {
            members = list(text);
        }
        for member in members.iter().chain(&principals) {
            let is_plain = member.contains([':', ',']);
            let wanted = if kind == 'c' { 'z' } else { 'a' };
            let found = self.objects.get(member).map(|object| object.0);
            assert!(is_plain && kind != 'c' || found == Some(wanted), "{line}: {member} is {found:?}");
        }
        match action {
            "create" => {
                assert!(!members.is_empty(), "{line}: empty");
                let old = self.objects.insert(name, (kind, members, principals));
                assert!(old.is_none(), "{line}: exists");
            }
            "add" | "remove" => {
                let object = self.objects.get_mut(&name).unwrap_or_else(|| panic!("{line}: unknown"));
                assert_eq!((object.0, is_peer), (kind, !object.2.is_empty()), "{line}");
                for (own, changed) in [(&mut object.1, members), (&mut object.2, principals)] {
                    for member in changed {
                        let is_change = if action == "add" { own.insert(member) } else { own.remove(&member) };
                        assert!(is_change, "{line}: no change");
                    }
                }
                assert!(!object.1.is_empty(), "{line}: empties it");
                assert!(!is_peer || !object.2.is_empty(), "{line}: empties its principals");
            }
            _ => {
                let object = self.objects.remove(&name).unwrap_or_else(|| panic!("{line}: unknown"));
                assert_eq!(object.0, kind, "{line}");
                assert_ne!(self.enabled.as_ref(), Some(&name), "{line}: enabled");
                let users = self
                    .objects
                    .values()
                    .any(|(_, members, principals)| members.contains(&name) || principals.contains(&name));
                assert!(!users, "{line}: in use");
            }
        }
    }
}

/// The database of NX-OS: name spaces of their own, roles in the members of zones.
#[derive(Debug, PartialEq, Default)]
pub struct Nx {
    device_aliases: BTreeMap<String, String>,
    /// Members of zones, zone sets and fcaliases by kind and name.
    objects: BTreeMap<(String, String), Set>,
    enabled: Option<String>,
    permit: bool,
}

fn nx_text(member: &ZoneMember) -> String {
    match member {
        ZoneMember::PortName(name) => format!("pwwn {name}"),
        ZoneMember::NodeName(name) => format!("nwwn {name}"),
        ZoneMember::DomainPort { domain, port } => format!("domain-id {domain} port-number {port}"),
        ZoneMember::PortId(id) => format!("fcid 0x{id}"),
    }
}

impl Nx {
    /// Members of an object, if there is one.
    pub fn members(&self, kind: &str, name: &str) -> Option<&Set> {
        self.objects.get(&(kind.to_owned(), name.to_owned()))
    }
}

impl Model for Nx {
    fn of(database: &ZoneDatabase) -> Nx {
        let mut nx = Nx {
            enabled: database.effective.as_ref().map(|effective| effective.name.clone()),
            permit: database.default_zone == ZoneDefault::Open,
            ..Nx::default()
        };
        for (name, members) in &database.defined.aliases {
            match &members[..] {
                [ZoneMember::PortName(port)] => _ = nx.device_aliases.insert(name.clone(), format!("pwwn {port}")),
                _ => {
                    let members = members.iter().map(nx_text).collect();
                    nx.objects.insert(("fcalias".to_owned(), name.clone()), members);
                }
            }
        }
        for (name, zone) in &database.defined.zones {
            let text = |member: &MemberRef, role: &str| match member {
                MemberRef::Alias(alias) if nx.device_aliases.contains_key(alias) => {
                    format!("device-alias {alias}{role}")
                }
                MemberRef::Alias(alias) => format!("fcalias {alias}{role}"),
                MemberRef::Member(member) => format!("{}{role}", nx_text(member)),
            };
            let is_smart = !zone.principals.is_empty();
            let init = if is_smart { " init" } else { "" };
            let mut set: Set = zone.members.iter().map(|member| text(member, init)).collect();
            set.extend(zone.principals.iter().map(|member| text(member, " target")));
            nx.objects.insert(("zone".to_owned(), name.clone()), set);
        }
        for (name, zones) in &database.defined.configs {
            nx.objects.insert(("zoneset".to_owned(), name.clone()), zones.iter().cloned().collect());
        }
        nx
    }

    fn run(&mut self, script: &str) {
        let mut object: Option<(String, String)> = None;
        for line in script.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["!", ..] | ["configure", "terminal"] | ["end"] | ["copy", ..] | ["zone", "commit", "vsan", "20"] => {}
                ["device-alias", "database" | "commit"] | ["no", "zone", "smart-zoning", ..] => object = None,
                ["zone", "smart-zoning", "enable", "vsan", "20"] => {}
                ["device-alias", "name", name, "pwwn", port] => {
                    // The NX-API of this program has one name space for both kinds of aliases.
                    let is_free = self.members("fcalias", name).is_none();
                    assert!(is_free, "{line}: is an fcalias");
                    let port = format!("pwwn {port}");
                    let owner = self.device_aliases.iter().find(|(_, own)| **own == port);
                    assert_eq!(owner, None, "{line}: the port has an alias");
                    let old = self.device_aliases.insert(name.to_owned(), port);
                    assert!(old.is_none(), "{line}: exists");
                }
                ["no", "device-alias", "name", name] => {
                    assert!(self.device_aliases.remove(name).is_some(), "{line}: unknown");
                    // In the basic mode of device aliases a zone would keep the port.
                    let member = format!("device-alias {name}");
                    let is_member = |own: &String| *own == member || own.starts_with(&format!("{member} "));
                    let mut zones =
                        self.objects.iter().filter(|((kind, _), set)| kind == "zone" && set.iter().any(is_member));
                    assert_eq!(zones.next(), None, "{line}: a zone has the alias");
                }
                ["zoneset", "activate", "name", name, "vsan", "20"] => {
                    assert!(self.objects.contains_key(&("zoneset".to_owned(), name.to_owned())), "{line}: unknown");
                    self.enabled = Some(name.to_owned());
                }
                ["no", "zoneset", "activate", "name", name, "vsan", "20"] => {
                    assert_eq!(self.enabled.take().as_deref(), Some(name), "{line}");
                }
                ["zone", "default-zone", "permit", "vsan", "20"] => self.permit = true,
                ["no", "zone", "default-zone", "permit", "vsan", "20"] => self.permit = false,
                [kind, "name", name, "vsan", "20"] => {
                    let is_free = kind != "fcalias" || !self.device_aliases.contains_key(name);
                    assert!(is_free, "{line}: is a device alias");
                    let key = (kind.to_owned(), name.to_owned());
                    self.objects.entry(key.clone()).or_default();
                    object = Some(key);
                }
                ["no", kind, "name", name, "vsan", "20"] => {
                    let key = (kind.to_owned(), name.to_owned());
                    assert!(self.objects.remove(&key).is_some(), "{line}: unknown");
                    if kind == "zone" {
                        let users = self.objects.iter().any(|((kind, _), set)| kind == "zoneset" && set.contains(name));
                        assert!(!users, "{line}: in use");
                    }
                }
                ["member", ref rest @ ..] => {
                    let set = self.objects.get_mut(object.as_ref().unwrap()).unwrap();
                    assert!(set.insert(rest.join(" ")), "{line}: no change");
                }
                ["no", "member", ref rest @ ..] => {
                    let set = self.objects.get_mut(object.as_ref().unwrap()).unwrap();
                    assert!(set.remove(&rest.join(" ")), "{line}: no change");
                }
                _ => panic!("{line}: unknown command"),
            }
        }
    }
}
