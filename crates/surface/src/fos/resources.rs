//! Table of the resources, and the generic part of their requests.

use super::fault::Fault;
use super::fields::Field;
use super::path::{Address, Target};
use super::room::Room;
use super::tree::{Content, Element};
use super::{
    Call, MODULE_VERSION, Outcome, counters, fdmi, fields, logging, names, ports, switches, system, zone_edits, zones,
};
use crate::server::http::{Method, StatusCode};
use crate::server::users::Role;
use std::collections::BTreeSet;

/// Returns the entries of a list, or one container.
type Get = fn(&mut Room<'_>) -> Result<Vec<Element>, Fault>;
/// Change of entries whose leaves are valid.
pub type Change = Box<dyn FnOnce(&mut Room<'_>) -> Result<(), Fault>>;

/// Checks the leaves of entries, and returns their change. It changes nothing itself.
#[derive(Clone, Copy)]
enum Patch {
    /// Each entry is a change of its own.
    Each(fn(&mut Room<'_>, &Element) -> Result<Change, Fault>),
    /// All entries are one change.
    All(fn(&mut Room<'_>, &[Element]) -> Result<Change, Fault>),
}

/// A resource: one line of the table.
pub struct Resource {
    /// Module without the prefix `brocade-`.
    pub module: &'static str,
    /// Name of the object.
    pub object: &'static str,
    /// Key leaves of a list; none for a container.
    pub keys: &'static [&'static str],
    /// Leaves.
    pub fields: &'static [Field],
    get: Get,
    patch: Option<Patch>,
}

type Keys = &'static [&'static str];
type Fields = &'static [Field];

const fn list(module: &'static str, object: &'static str, keys: Keys, fields: Fields, get: Get) -> Resource {
    Resource { module, object, keys, fields, get, patch: None }
}

const fn container(module: &'static str, object: &'static str, fields: Fields, get: Get) -> Resource {
    list(module, object, &[], fields, get)
}

const fn writable(resource: Resource, patch: Patch) -> Resource {
    Resource { patch: Some(patch), ..resource }
}

/// All resources with values.
pub const RESOURCES: &[Resource] = &[
    writable(
        list("fibrechannel-switch", "fibrechannel-switch", &["name"], fields::SWITCH, switches::switch),
        Patch::Each(switches::patch_switch),
    ),
    list("fibrechannel-switch", "topology-domain", &["domain-id"], fields::TOPOLOGY_DOMAIN, switches::topology_domain),
    list("fibrechannel-switch", "topology-route", &["domain-id"], fields::TOPOLOGY_ROUTE, switches::topology_route),
    list("fabric", "fabric-switch", &["name"], fields::FABRIC_SWITCH, switches::fabric_switch),
    writable(
        list("interface", "fibrechannel", &["name"], fields::PORT, ports::fibrechannel),
        Patch::All(ports::patch_ports),
    ),
    writable(
        list("interface", "fibrechannel-statistics", &["name"], fields::STATISTICS, counters::statistics),
        Patch::Each(counters::patch_statistics),
    ),
    list("name-server", "fibrechannel-name-server", &["port-id"], fields::NAME_SERVER, names::name_server),
    list("fdmi", "hba", &["hba-id"], fields::HBA, fdmi::hba),
    list("fdmi", "port", &["port-name"], fields::HBA_PORT, fdmi::port),
    container("zone", "defined-configuration", fields::DEFINED, zones::defined),
    container("zone", "effective-configuration", fields::EFFECTIVE, zones::effective),
    container("zone", "fabric-lock", fields::FABRIC_LOCK, zones::fabric_lock),
    list("fibrechannel-trunk", "trunk", &["group", "source-port"], fields::TRUNK, switches::trunk),
    list(
        "fibrechannel-logical-switch",
        "fibrechannel-logical-switch",
        &["fabric-id"],
        fields::LOGICAL_SWITCH,
        switches::logical_switch,
    ),
    container("fibrechannel-configuration", "fabric", fields::FABRIC, switches::fabric_configuration),
    container(
        "fibrechannel-configuration",
        "port-configuration",
        fields::PORT_CONFIGURATION,
        switches::port_configuration,
    ),
    writable(
        container(
            "fibrechannel-configuration",
            "zone-configuration",
            fields::ZONE_CONFIGURATION,
            switches::zone_configuration,
        ),
        Patch::Each(switches::patch_limits),
    ),
    writable(
        container(
            "fibrechannel-configuration",
            "chassis-config-settings",
            fields::CHASSIS_SETTINGS,
            switches::chassis_settings,
        ),
        Patch::Each(switches::patch_limits),
    ),
    writable(container("chassis", "chassis", fields::CHASSIS, switches::chassis), Patch::Each(switches::patch_chassis)),
    container("chassis", "ha-status", fields::HA_STATUS, system::ha_status),
    writable(
        container("chassis", "management-interface-configuration", fields::MANAGEMENT, switches::management),
        Patch::Each(switches::patch_limits),
    ),
    container("maps", "system-resources", fields::SYSTEM_RESOURCES, system::resources),
    container("maps", "switch-status-policy-report", fields::STATUS_POLICY, switches::status_policy),
    list("logging", "error-log", &["sequence-number"], fields::ERROR_LOG, logging::error_log),
    list("logging", "audit-log", &["sequence-number"], fields::AUDIT_LOG, logging::audit_log),
    container("time", "time-zone", fields::TIME_ZONE, switches::time_zone),
];

const NOTHING: &str = "No entries found";
const PLATFORM: &str = "Not supported on this platform";
const EXTENSION: &str = "Extension not supported on this platform";
const GATEWAY: &str = "AG mode is not enabled";

/// Resources of the real switch without values here: status and text of the answer to GET.
const ABSENT: &[(&str, &str, u16, &str)] = &[
    ("access-gateway", "", 400, GATEWAY),
    ("fabric", "access-gateway", 404, NOTHING),
    ("interface", "logical-e-port", 404, NOTHING),
    ("interface", "extension-ip-interface", 400, EXTENSION),
    ("interface", "gigabitethernet", 400, EXTENSION),
    ("interface", "gigabitethernet-statistics", 400, EXTENSION),
    ("interface", "portchannel", 400, PLATFORM),
    ("fibrechannel-trunk", "performance", 404, "No trunking Links"),
    ("fibrechannel-trunk", "trunk-area", 404, "No ports have Trunk Area enabled"),
    ("fibrechannel-configuration", "switch-configuration", 400, PLATFORM),
    ("fibrechannel-configuration", "f-port-login-settings", 400, PLATFORM),
    ("fibrechannel-diagnostics", "", 404, NOTHING),
    ("fibrechannel-routing", "", 400, PLATFORM),
    ("fabric-traffic-controller", "", 404, "No device was found"),
    ("chassis", "credit-recovery", 400, PLATFORM),
    ("chassis", "management-ethernet-interface", 400, PLATFORM),
    ("maps", "dashboard-rule", 404, "No Rule violations found"),
    ("maps", "paused-cfg", 404, "No pause/continue configuration"),
    ("maps", "", 404, NOTHING),
    ("logging", "syslog-server", 404, "No syslog servers are configured"),
    ("logging", "", 404, NOTHING),
    ("time", "clock-server", 404, NOTHING),
    ("security", "radius-server", 404, "RADIUS configuration does not exist."),
    ("security", "tacacs-server", 404, "TACACS+ configuration does not exist."),
    ("security", "ldap-server", 404, "LDAP configuration does not exist."),
    ("security", "ldap-role-map", 404, "Role Map Configuration does not exist"),
    ("security", "sshutil-public-key", 404, "No public keys found"),
    ("security", "", 404, NOTHING),
    ("media", "media-rdp", 404, NOTHING),
    ("fru", "", 404, NOTHING),
    ("license", "license", 400, "No licenses installed"),
    ("license", "", 404, NOTHING),
    ("snmp", "", 404, NOTHING),
    ("lldp", "", 400, PLATFORM),
    ("supportlink", "", 404, NOTHING),
    ("extension", "", 400, EXTENSION),
    ("extension-ip-route", "", 400, EXTENSION),
    ("extension-ipsec-policy", "", 400, EXTENSION),
    ("extension-tunnel", "", 400, EXTENSION),
    ("module-version", "", 404, NOTHING),
    ("usb", "", 400, PLATFORM),
    ("firmware", "", 400, PLATFORM),
    ("dynamic-feature-tracking", "", 404, NOTHING),
    ("management-ip-interface", "", 404, NOTHING),
    ("ficon", "", 400, PLATFORM),
    ("traffic-optimizer", "", 400, PLATFORM),
    ("vmid", "", 404, NOTHING),
];

/// Answers a request to a resource, a list of modules or an operation.
pub fn answer(room: &mut Room<'_>, address: &Address, call: &Call) -> Result<Outcome, Fault> {
    match &address.target {
        Target::Modules if call.method == Method::GET => Ok(Outcome::tree(vec![modules()])),
        Target::Operation(name) => operation(room, name, call),
        Target::Running { module, object } => {
            let module = module.strip_prefix("brocade-").ok_or_else(Fault::bad_uri)?;
            let found = RESOURCES.iter().find(|resource| resource.module == module && resource.object == object);
            match found {
                Some(resource) => resource.answer(room, &address.rest, call),
                None => Err(absent(module, object)),
            }
        }
        _ => Err(Fault::method()),
    }
}

/// Answer of a resource without values.
fn absent(module: &str, object: &str) -> Fault {
    let found = ABSENT.iter().find(|(of, name, ..)| *of == module && (*name == object || name.is_empty()));
    match found {
        Some((_, _, 404, text)) => Fault::empty(text),
        Some((_, _, _, text)) => Fault::failed(*text),
        None => Fault::bad_uri(),
    }
}

/// The served modules with their objects. Clients build their addresses from it.
fn modules() -> Element {
    let mut modules: Vec<&str> = RESOURCES.iter().map(|resource| resource.module).collect();
    modules.dedup();
    let mut entries = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        // A module has one entry, even if its resources are apart in the table.
        if modules[..index].contains(module) {
            continue;
        }
        let objects = RESOURCES.iter().filter(|resource| resource.module == *module).map(|resource| resource.object);
        entries.push(Element::entry(
            "module",
            vec![
                Element::text("name", format!("brocade-{module}")),
                Element::text("version", MODULE_VERSION),
                Element::text("uri", format!("/rest/running/brocade-{module}")),
                Element::texts("objects", "object", objects),
                Element::container("feature", Vec::new()),
            ],
        ));
    }
    Element::container("brocade-module-version", entries)
}

fn operation(room: &mut Room<'_>, name: &str, call: &Call) -> Result<Outcome, Fault> {
    if call.method != Method::POST {
        return Err(Fault::method());
    }
    match name {
        "fibrechannel-zone" => {
            permit(room)?;
            zone_edits::operation(room, &call.body)?;
            Ok(Outcome::status(StatusCode::NO_CONTENT))
        }
        "show-status" => {
            let id = call.body.first().and_then(|body| body.leaf("message-id").or_else(|| Some(body.value())));
            let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| "0".to_owned());
            Err(Fault::missing(format!("there is no operation with the message-id {id}")))
        }
        _ => Err(Fault::failed(PLATFORM)),
    }
}

/// Checks that the user may change something.
fn permit(room: &Room<'_>) -> Result<(), Fault> {
    match room.who.role >= Role::Operate {
        true => Ok(()),
        false => Err(Fault::denied(format!("the user {} may only read; its role is view", room.who.user))),
    }
}

impl Resource {
    fn is_zoning(&self) -> bool {
        self.module == "zone" && self.object != "fabric-lock"
    }

    /// Permitted methods.
    fn methods(&self) -> &'static str {
        match (self.object, self.patch) {
            ("defined-configuration", _) => "OPTIONS, GET, HEAD, POST, PATCH, DELETE",
            ("effective-configuration", _) | (_, Some(_)) => "OPTIONS, GET, HEAD, PATCH",
            _ => "OPTIONS, GET, HEAD",
        }
    }

    fn answer(&self, room: &mut Room<'_>, rest: &[String], call: &Call) -> Result<Outcome, Fault> {
        if call.method == Method::OPTIONS {
            return Ok(Outcome::allow(self.methods()));
        }
        if call.method == Method::GET || call.method == Method::HEAD {
            return self.read(room, rest, call).map(Outcome::tree);
        }
        if !self.methods().contains(call.method.as_str()) {
            return Err(Fault::method());
        }
        permit(room)?;
        if self.is_zoning() {
            zone_edits::write(room, self.object, &call.method, rest, &call.body)?;
        } else if let Some(patch) = self.patch {
            let entries = self.entries(rest, &call.body)?;
            let entries: Vec<Element> = entries
                .into_iter()
                .filter_map(|entry| self.check(room, entry).transpose())
                .collect::<Result<_, _>>()?;
            // All entries are valid before the first of them changes anything.
            let changes: Vec<Change> = match patch {
                Patch::Each(patch) => entries.iter().map(|entry| patch(room, entry)).collect::<Result<_, _>>()?,
                Patch::All(patch) => vec![patch(room, &entries)?],
            };
            changes.into_iter().try_for_each(|change| change(room))?;
        }
        let status = if call.method == Method::POST { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        Ok(Outcome::status(status))
    }

    fn read(&self, room: &mut Room<'_>, rest: &[String], call: &Call) -> Result<Vec<Element>, Fault> {
        let found = (self.get)(room)?;
        debug_assert_eq!(
            found.iter().try_for_each(|entry| fields::compare(self.fields, entry)),
            Ok(()),
            "the table of {}/{} is not that of the answer",
            self.module,
            self.object
        );
        let filter = call.body.iter().filter(|body| body.name == self.object).collect::<Vec<_>>();
        let chosen = found.into_iter().filter(|entry| {
            filter.is_empty() || self.keys.is_empty() || filter.iter().any(|body| matches(entry, body, self.keys))
        });
        let chosen = select(chosen.collect(), rest)?;
        // Clients name objects of the zone database in the body.
        let chosen = if self.is_zoning() { zones::filter(chosen, rest, &call.body) } else { chosen };
        if chosen.is_empty() { Err(Fault::empty(NOTHING)) } else { Ok(chosen) }
    }

    /// Entries that a PATCH changes, with the keys of the path.
    fn entries(&self, rest: &[String], body: &[Element]) -> Result<Vec<Element>, Fault> {
        let entries: Vec<Element> = match rest {
            [] => {
                let wrong = body.iter().find(|element| element.name != self.object);
                if let Some(element) = wrong {
                    return Err(Fault::unknown(format!("`{}` is not the object {}", element.name, self.object)));
                }
                body.to_vec()
            }
            [key, value] if self.keys.first().is_none_or(|own| own == key) => {
                let below = match body {
                    [one] if one.name == self.object => one.children().to_vec(),
                    _ => body.to_vec(),
                };
                let (named, below): (Vec<_>, Vec<_>) = below.into_iter().partition(|element| element.name == *key);
                if let Some(other) = named.iter().find(|named| !named.value().trim().eq_ignore_ascii_case(value)) {
                    let other = other.value();
                    return Err(Fault::invalid(format!(
                        "{key} is {value} in the address and {other} in the body; give it the same value in both"
                    )));
                }
                let mut children = vec![Element::text(key, value)];
                children.extend(below);
                vec![Element::container(self.object, children)]
            }
            _ => return Err(Fault::bad_uri()),
        };
        let key = |entry: &Element| -> Vec<String> {
            let keys = self.keys.iter().filter_map(|key| entry.leaf(key));
            keys.map(|key| key.trim().to_ascii_lowercase()).collect()
        };
        let mut known = BTreeSet::new();
        if let Some(again) = entries.iter().map(key).find(|key| !known.insert(key.clone())) {
            let named = [self.object.to_owned(), again.join(" ")].join(" ");
            return Err(Fault::invalid(format!("the body has {} twice; name it once", named.trim_end())));
        }
        match entries.is_empty() {
            true => Err(Fault::invalid(format!("the body has no element `{}`", self.object))),
            false => Ok(entries),
        }
    }

    /// Checks the leaves of an entry. Returns the entry without the leaves that cannot be changed
    /// and have the values that the body names; `None` if no other leaf is left.
    fn check(&self, room: &mut Room<'_>, entry: Element) -> Result<Option<Element>, Fault> {
        if let Some(leaf) = entry.repeated() {
            return Err(Fault::invalid(format!("the body has {leaf} twice in one {}", self.object)));
        }
        let is_key = |leaf: &Element| self.keys.contains(&leaf.name.as_str());
        let field = |leaf: &Element| self.fields.iter().find(|field| field.leaf == leaf.name);
        if let Some(leaf) = entry.children().iter().find(|leaf| !is_key(leaf) && field(leaf).is_none()) {
            return Err(Fault::unknown(format!("{} has no leaf {}", self.object, leaf.name)));
        }
        let is_fixed = |leaf: &&Element| !is_key(leaf) && field(leaf).is_some_and(|field| !field.writable);
        if !entry.children().iter().any(|leaf| is_fixed(&leaf)) {
            return Ok(Some(entry));
        }
        let current = (self.get)(room)?.into_iter().find(|own| matches(own, &entry, self.keys));
        for leaf in entry.children().iter().filter(is_fixed) {
            let own = current.as_ref().and_then(|own| own.child(&leaf.name));
            if own.is_none_or(|own| !own.has_values_of(leaf)) {
                return Err(Fault::unknown(format!("{} of {} cannot be changed here", leaf.name, self.object)));
            }
        }
        let left: Vec<Element> = entry.children().iter().filter(|leaf| !is_fixed(leaf)).cloned().collect();
        let changes = left.iter().any(|leaf| !is_key(leaf));
        Ok(changes.then_some(Element { content: Content::Children(left), ..entry }))
    }
}

/// The reference of the interface as a page of the book.
pub fn reference() -> String {
    let mut page = String::from(
        "# REST resources\n\n\
         This page is generated from the table that the answers are compared with. The guide\n\
         [Manage switches as Fabric OS](../guides/fabric-os.md) describes sessions, encodings and options.\n\n\
         A resource has the address `/rest/running/brocade-MODULE/OBJECT`. *Source* names a table of\n\
         `sanloom show` and its field, as in [Views](views.md), or the rule of the value.\n",
    );
    for resource in RESOURCES {
        let Resource { module, object, keys, fields, .. } = resource;
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let shape = match keys.is_empty() {
            true => "One container".to_owned(),
            false => format!("A list with the key {}", keys.join(", ")),
        };
        page += &format!(
            "\n## `brocade-{module}/{object}`\n\n{shape}. Methods: {}.\n\n\
             | leaf | type | access | present | source |\n|---|---|---|---|---|\n{}",
            resource.methods(),
            fields::lines(fields, ""),
        );
    }
    page += "\n## Resources without values\n\n\
             A GET of these resources has the status and the text of a switch that has no such thing.\n\n\
             | module | object | status | text |\n|---|---|---|---|\n";
    for (module, object, status, text) in ABSENT {
        let object = if object.is_empty() { "all others".to_owned() } else { format!("`{object}`") };
        page += &format!("| `brocade-{module}` | {object} | {status} | {text} |\n");
    }
    page
}

/// True if an entry has all key values of a body.
fn matches(entry: &Element, body: &Element, keys: &[&str]) -> bool {
    let wanted = keys.iter().filter_map(|key| body.leaf(key).map(|value| (*key, value)));
    wanted.into_iter().all(|(key, value)| entry.leaf(key).is_some_and(|own| own.eq_ignore_ascii_case(&value)))
}

/// Follows the segments after the object: keys with values, and names of elements.
fn select(mut found: Vec<Element>, rest: &[String]) -> Result<Vec<Element>, Fault> {
    let mut rest = rest;
    while let Some((first, tail)) = rest.split_first() {
        let value = tail.first();
        let is_leaf = |entry: &Element| entry.child(first).is_some_and(|leaf| leaf.children().is_empty());
        match value {
            Some(value) if found.iter().any(is_leaf) => {
                found.retain(|entry| entry.leaf(first).is_some_and(|own| own.eq_ignore_ascii_case(value)));
                rest = &tail[1..];
            }
            _ => {
                let below = found.iter().flat_map(|entry| entry.children().iter());
                found = below.filter(|child| child.name == *first).cloned().collect();
                rest = tail;
            }
        }
    }
    // A leaf without a value is an empty element.
    found.retain(|element| !matches!(&element.content, Content::Text(text) if text.is_empty()));
    Ok(found)
}
