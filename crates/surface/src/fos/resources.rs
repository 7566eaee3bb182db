//! Table of the resources, and the generic part of their requests.

use super::fault::Fault;
use super::path::{Address, Target};
use super::room::Room;
use super::tree::{Content, Element};
use super::{Call, MODULE_VERSION, Outcome, fdmi, names, ports, switches, zone_edits, zones};
use crate::server::http::{Method, StatusCode};
use crate::server::users::Role;

/// Returns the entries of a list, or one container.
type Get = fn(&mut Room<'_>) -> Result<Vec<Element>, Fault>;
/// Changes the leaves of an entry.
type Patch = fn(&mut Room<'_>, &Element) -> Result<(), Fault>;

/// A resource: one line of the table.
pub struct Resource {
    /// Module without the prefix `brocade-`.
    pub module: &'static str,
    /// Name of the object.
    pub object: &'static str,
    /// Key leaves of a list; none for a container.
    pub keys: &'static [&'static str],
    /// Leaves that a PATCH may name; clients may send the keys and read-only leaves, too.
    pub writable: &'static [&'static str],
    get: Get,
    patch: Option<Patch>,
}

const fn list(module: &'static str, object: &'static str, keys: &'static [&'static str], get: Get) -> Resource {
    Resource { module, object, keys, writable: &[], get, patch: None }
}

const fn container(module: &'static str, object: &'static str, get: Get) -> Resource {
    list(module, object, &[], get)
}

const fn writable(resource: Resource, leaves: &'static [&'static str], patch: Patch) -> Resource {
    Resource { writable: leaves, patch: Some(patch), ..resource }
}

/// All resources with values.
pub const RESOURCES: &[Resource] = &[
    writable(
        list("fibrechannel-switch", "fibrechannel-switch", &["name"], switches::switch),
        &["user-friendly-name", "fabric-user-friendly-name", "banner"],
        switches::patch_switch,
    ),
    list("fibrechannel-switch", "topology-domain", &["domain-id"], switches::topology_domain),
    list("fibrechannel-switch", "topology-route", &["domain-id"], switches::topology_route),
    list("fabric", "fabric-switch", &["name"], switches::fabric_switch),
    writable(
        list("interface", "fibrechannel", &["name"], ports::fibrechannel),
        &["user-friendly-name", "enabled-state", "is-enabled-state", "persistent-disable"],
        ports::patch_port,
    ),
    writable(
        list("interface", "fibrechannel-statistics", &["name"], ports::statistics),
        &["reset-statistics"],
        ports::patch_statistics,
    ),
    list("name-server", "fibrechannel-name-server", &["port-id"], names::name_server),
    list("fdmi", "hba", &["hba-id"], fdmi::hba),
    list("fdmi", "port", &["port-name"], fdmi::port),
    container("zone", "defined-configuration", zones::defined),
    container("zone", "effective-configuration", zones::effective),
    container("zone", "fabric-lock", zones::fabric_lock),
    list("fibrechannel-trunk", "trunk", &["group", "source-port"], switches::trunk),
    list("fibrechannel-logical-switch", "fibrechannel-logical-switch", &["fabric-id"], switches::logical_switch),
    container("fibrechannel-configuration", "fabric", switches::fabric_configuration),
    container("fibrechannel-configuration", "port-configuration", switches::port_configuration),
    writable(
        container("fibrechannel-configuration", "zone-configuration", switches::zone_configuration),
        &["fabric-lock-timeout"],
        switches::patch_limits,
    ),
    writable(
        container("fibrechannel-configuration", "chassis-config-settings", switches::chassis_settings),
        &["http-session-ttl"],
        switches::patch_limits,
    ),
    writable(
        container("chassis", "chassis", switches::chassis),
        &["chassis-user-friendly-name"],
        switches::patch_chassis,
    ),
    writable(
        container("chassis", "management-interface-configuration", switches::management),
        &["max-rest-sessions"],
        switches::patch_limits,
    ),
    container("maps", "switch-status-policy-report", switches::status_policy),
    container("time", "time-zone", switches::time_zone),
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
    ("chassis", "ha-status", 400, PLATFORM),
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
            for entry in self.entries(rest, &call.body)? {
                self.check(&entry)?;
                patch(room, &entry)?;
            }
        }
        let status = if call.method == Method::POST { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        Ok(Outcome::status(status))
    }

    fn read(&self, room: &mut Room<'_>, rest: &[String], call: &Call) -> Result<Vec<Element>, Fault> {
        let found = (self.get)(room)?;
        let filter = call.body.iter().filter(|body| body.name == self.object).collect::<Vec<_>>();
        let chosen = found.into_iter().filter(|entry| {
            filter.is_empty() || self.keys.is_empty() || filter.iter().any(|body| matches(entry, body, self.keys))
        });
        let chosen = select(chosen.collect(), rest)?;
        // Clients name an object of the defined configuration in the body.
        let chosen = match filter.first() {
            Some(body) if self.is_zoning() => zones::filter(chosen, body),
            _ => chosen,
        };
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
            [key, value] if self.keys.first() == Some(&key.as_str()) => {
                let below = match body {
                    [one] if one.name == self.object => one.children().to_vec(),
                    _ => body.to_vec(),
                };
                let below = below.into_iter().filter(|element| element.name != *key);
                let mut children = vec![Element::text(key, value)];
                children.extend(below);
                vec![Element::container(self.object, children)]
            }
            [leaf, value] if self.keys.is_empty() => {
                vec![Element::container(self.object, vec![Element::text(leaf, value)])]
            }
            _ => return Err(Fault::bad_uri()),
        };
        match entries.is_empty() {
            true => Err(Fault::invalid(format!("the body has no element `{}`", self.object))),
            false => Ok(entries),
        }
    }

    fn check(&self, entry: &Element) -> Result<(), Fault> {
        for leaf in entry.children() {
            if !self.keys.contains(&leaf.name.as_str()) && !self.writable.contains(&leaf.name.as_str()) {
                return Err(Fault::unknown(format!("{} of {} cannot be changed here", leaf.name, self.object)));
            }
        }
        Ok(())
    }
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
