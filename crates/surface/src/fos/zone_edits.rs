//! Zones: changes. A request becomes edits of one transaction, which belongs to its session.

use super::fault::Fault;
use super::fields;
use super::room::Room;
use super::tree::{Content, Element};
use super::zones::{self, seen, shown, text};
use crate::server::http::Method;
use sanloom_api::control::ZoneAction;
use sanloom_api::zone_database::{Database, Definition, Edit, Kind, Member};
use sanloom_api::zoning::ZoneStatus;
use std::collections::BTreeSet;

/// Kinds of objects: element, key leaf.
const KINDS: [(&str, &str, Kind); 3] =
    [("alias", "alias-name", Kind::Alias), ("zone", "zone-name", Kind::Zone), ("cfg", "cfg-name", Kind::Config)];

/// Answers a change of the defined or the effective configuration.
pub fn write(
    room: &mut Room<'_>,
    object: &str,
    method: &Method,
    rest: &[String],
    body: &[Element],
) -> Result<(), Fault> {
    match object {
        "defined-configuration" => {
            let changes = changes(method, rest, body)?;
            let (status, database) = based(room)?;
            let mut nodes: BTreeSet<String> = status.ports.iter().map(|port| port.node_name.clone()).collect();
            // A node name that a client sends back remains one while its node is not logged in.
            nodes.extend(node_names(&database));
            let known = Known { database: &database, nodes: &nodes };
            let mut edits = Vec::new();
            for change in &changes {
                known.edits(method, change, &mut edits)?;
            }
            change(room, &database, edits)
        }
        _ => effective(room, rest, body),
    }
}

/// One object of a request.
struct Change {
    kind: Kind,
    name: String,
    element: Element,
    /// New name of the object.
    rename: Option<String>,
}

fn changes(method: &Method, rest: &[String], body: &[Element]) -> Result<Vec<Change>, Fault> {
    let kind_of = |name: &str| KINDS.iter().find(|(element, ..)| *element == name);
    let one = |element: &Element| {
        let Some((_, key, kind)) = kind_of(&element.name) else {
            return Err(Fault::unknown(format!("`{}` is no object of the zone database", element.name)));
        };
        check(element)?;
        let name = element.leaf(key).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Fault::invalid(format!("the {} has no {key}", element.name)))?;
        Ok(Change { kind: *kind, name, element: element.clone(), rename: None })
    };
    let inside = unwrapped(body, "defined-configuration")?;
    let changes: Vec<Change> = match rest {
        [] => inside.iter().map(one).collect::<Result<_, _>>()?,
        [kind] if kind_of(kind).is_some() => {
            if let Some(other) = inside.iter().find(|element| element.name != *kind) {
                return Err(Fault::unknown(format!("`{}` is not the object {kind} of the address", other.name)));
            }
            inside.iter().map(one).collect::<Result<_, _>>()?
        }
        [element, leaf, name] => {
            let found = kind_of(element).filter(|(_, key, _)| key == leaf);
            let (element, key, kind) = found.ok_or_else(Fault::bad_uri)?;
            let element = Element::container(element, unwrapped(&inside, element)?);
            check(&element)?;
            let rename = element.leaf(key).filter(|new| new != name);
            match &rename {
                Some(new) if new.is_empty() => {
                    return Err(Fault::invalid(format!(
                        "the {key} of the body is empty; leave it out, or give it a name"
                    )));
                }
                Some(new) if *method != Method::PATCH => {
                    return Err(Fault::invalid(format!(
                        "the address names {name}, and the body {new}; only a PATCH renames an object"
                    )));
                }
                _ => {}
            }
            vec![Change { kind: *kind, name: name.clone(), element, rename }]
        }
        _ => return Err(Fault::bad_uri()),
    };
    if changes.is_empty() {
        return Err(Fault::invalid("the body names no alias, zone or cfg"));
    }
    // Each change is compared with the database before the request.
    let mut names = BTreeSet::new();
    if let Some(again) = changes.iter().find(|change| !names.insert((&change.element.name, &change.name))) {
        let (object, name) = (&again.element.name, &again.name);
        return Err(Fault::invalid(format!(
            "the body names the {object} {name} twice; name its members in one {object}"
        )));
    }
    Ok(changes)
}

/// Elements of a body without the element around them, if a client has sent it.
fn unwrapped(body: &[Element], wrapper: &str) -> Result<Vec<Element>, Fault> {
    match body {
        [one] if one.name == wrapper => match &one.content {
            Content::Children(children) => Ok(children.clone()),
            _ => Err(Fault::invalid(format!("{wrapper} has elements, and no text"))),
        },
        _ => Ok(body.to_vec()),
    }
}

/// Compares an object with the table. An element that is not read could otherwise turn the removal
/// of a member into that of the whole object.
fn check(object: &Element) -> Result<(), Fault> {
    once(object)?;
    fields::permit(fields::DEFINED, &Element::container("defined-configuration", vec![object.clone()]))
}

/// Fails for an object with the same leaf twice: only one of them could be in force.
fn once(element: &Element) -> Result<(), Fault> {
    match element.repeated() {
        None => Ok(()),
        Some(leaf) => Err(Fault::invalid(format!("the body has {leaf} twice in one {}", element.name))),
    }
}

/// Node names of the members of a database.
fn node_names(database: &Database) -> impl Iterator<Item = String> {
    let of_zones = database.zones.values().flat_map(|zone| zone.members.iter().chain(&zone.principals));
    let of_zones = of_zones.filter_map(|member| match member {
        Member::Port(text) => Some(text),
        Member::Alias { .. } => None,
    });
    let all = database.aliases.values().flatten().chain(of_zones);
    all.filter_map(|member| member.strip_prefix("wwnn:")).map(str::to_owned)
}

/// Database that a request changes, and the node names of the fabric.
struct Known<'k> {
    database: &'k Database,
    nodes: &'k BTreeSet<String>,
}

impl Known<'_> {
    fn member(&self, text: &str) -> String {
        let text = text.trim().to_ascii_lowercase();
        if self.nodes.contains(&text) { format!("wwnn:{text}") } else { text }
    }

    fn has(&self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Alias => self.database.aliases.contains_key(name),
            Kind::Zone => self.database.zones.contains_key(name),
            Kind::Config => self.database.configs.contains_key(name),
        }
    }

    fn edits(&self, method: &Method, change: &Change, edits: &mut Vec<Edit>) -> Result<(), Fault> {
        let Change { kind, name, element, rename } = change;
        let (kind, there) = (*kind, self.has(*kind, name));
        let missing = || Fault::missing(format!("there is no {} {name}", element.name));
        let list = self.list(kind, element, *method == Method::POST && !there)?;
        let container = list_name(kind);
        let has_list = element.child(container).is_some();
        if *method == Method::DELETE && has_list && list.is_empty() {
            let object = &element.name;
            return Err(Fault::invalid(format!(
                "{container} of the {object} {name} has no member; name one, or leave {container} out to delete the \
                 {object}"
            )));
        }
        if there && kind == Kind::Zone {
            self.check_type(method, name, element, &list)?;
        }
        if *method == Method::POST {
            edits.push(match there {
                true => self.add(name, list)?,
                false => list.create(name),
            });
            return Ok(());
        }
        if !there {
            return Err(missing());
        }
        if *method == Method::PATCH {
            if has_list {
                edits.push(list.replace(name));
            }
            edits.extend(rename.iter().map(|to| Edit::Rename { kind, from: name.clone(), to: to.clone() }));
            return Ok(());
        }
        edits.push(if list.is_empty() { Edit::Delete { kind, name: name.clone() } } else { self.remove(name, list)? });
        Ok(())
    }

    /// Fails for a body whose type is not that of the zone. A zone without members has no type, and
    /// a PATCH of the members decides it.
    fn check_type(&self, method: &Method, name: &str, element: &Element, list: &List) -> Result<(), Fault> {
        let Some(named) = peer_type(element)? else { return Ok(()) };
        let known = &self.database.zones[name];
        let replaces = *method == Method::PATCH && element.child(list_name(Kind::Zone)).is_some();
        let zone = match list {
            List::Zone(zone) if replaces => zone,
            _ => known,
        };
        let is_peer = !zone.principals.is_empty();
        let is_empty = zone.members.is_empty() && !is_peer;
        match (named, is_peer) {
            _ if is_empty => Ok(()),
            (true, false) if replaces && known.principals.is_empty() => Err(needs_principal()),
            // The last principal would leave; the answer to the edit has the remedy.
            (true, false) if replaces => Ok(()),
            (true, false) => Err(Fault::invalid(format!("zone {name} is no peer zone, so its zone-type is 0"))),
            (false, true) if *method == Method::POST => {
                Err(Fault::invalid(format!("zone {name} is a peer zone; a POST cannot change its zone-type")))
            }
            (false, true) => Err(Fault::invalid(format!("zone {name} is a peer zone, so its zone-type is 1"))),
            _ => Ok(()),
        }
    }

    /// Members of an element; `creates` if the request creates the object.
    fn list(&self, kind: Kind, element: &Element, creates: bool) -> Result<List, Fault> {
        let container = element.child(list_name(kind));
        let texts = |leaf: &str| -> Result<Vec<String>, Fault> {
            let leaves = container.into_iter().flat_map(|container| container.children());
            let leaves = leaves.filter(|child| child.name == leaf).map(|child| child.value().trim().to_owned());
            let texts: Vec<String> = leaves.collect();
            match texts.iter().any(String::is_empty) {
                true => Err(Fault::invalid(format!("{} of the {} has an empty {leaf}", list_name(kind), element.name))),
                false => Ok(texts),
            }
        };
        Ok(match kind {
            Kind::Alias => {
                let members = texts("alias-entry-name")?;
                let wrong = members.iter().find(|member| !is_port(member));
                if let Some(member) = wrong {
                    return Err(Fault::invalid(format!(
                        "`{member}` is no world-wide name, no domain with index and no address such as 0x010400"
                    )));
                }
                List::Alias(members.iter().map(|member| self.member(member)).collect())
            }
            Kind::Config => List::Config(texts("zone-name")?),
            Kind::Zone => {
                let member = |text: &String| match is_port(text) {
                    true => Member::Port(self.member(text)),
                    false => Member::Alias { alias: text.clone() },
                };
                let members = texts("entry-name")?.iter().map(member).collect();
                let principals: Vec<Member> = texts("principal-entry-name")?.iter().map(member).collect();
                let peer = peer_type(element)?;
                if creates && peer == Some(true) && principals.is_empty() {
                    return Err(needs_principal());
                }
                if peer == Some(false) && !principals.is_empty() {
                    return Err(Fault::invalid("only a peer zone (zone-type 1) has principals"));
                }
                List::Zone(Definition { members, principals })
            }
        })
    }

    fn add(&self, name: &str, list: List) -> Result<Edit, Fault> {
        let name = name.to_owned();
        Ok(match list {
            List::Alias(members) => Edit::AddToAlias { name, members },
            List::Config(zones) => Edit::AddToConfig { name, zones },
            List::Zone(zone) => {
                let known = &self.database.zones[&name];
                if known.principals.is_empty() && !known.members.is_empty() && !zone.principals.is_empty() {
                    return Err(Fault::invalid(format!("zone {name} is no peer zone, so it has no principals")));
                }
                Edit::AddToZone { name, zone }
            }
        })
    }

    /// Removes members. An object that loses its last member is deleted.
    fn remove(&self, name: &str, list: List) -> Result<Edit, Fault> {
        let name = name.to_owned();
        Ok(match list {
            List::Alias(members) => {
                let gone = stored(&self.database.aliases[&name], members, |member| shown(member).to_owned());
                match is_same_set(&self.database.aliases[&name], &gone) {
                    true => Edit::Delete { kind: Kind::Alias, name },
                    false => Edit::RemoveFromAlias { name, members: gone },
                }
            }
            List::Config(zones) => match is_same_set(&self.database.configs[&name], &zones) {
                true => Edit::Delete { kind: Kind::Config, name },
                false => Edit::RemoveFromConfig { name, zones },
            },
            List::Zone(zone) => {
                let known = &self.database.zones[&name];
                let key = |member: &Member| text(member).to_owned();
                let members = stored(&known.members, zone.members, key);
                let principals = stored(&known.principals, zone.principals, key);
                match is_same_set(&known.members, &members) && is_same_set(&known.principals, &principals) {
                    true => Edit::Delete { kind: Kind::Zone, name },
                    false => Edit::RemoveFromZone { name, zone: Definition { members, principals } },
                }
            }
        })
    }
}

/// Returns whether both lists have the same items; an item may be in a list twice.
fn is_same_set<T: PartialEq>(known: &[T], named: &[T]) -> bool {
    known.iter().all(|item| named.contains(item)) && named.iter().all(|item| known.contains(item))
}

/// Members to remove in the form in which the database has them.
fn stored<T: Clone>(known: &[T], gone: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
    let form = |member: T| known.iter().find(|own| key(own) == key(&member)).cloned().unwrap_or(member);
    gone.into_iter().map(form).collect()
}

enum List {
    Alias(Vec<String>),
    Zone(Definition),
    Config(Vec<String>),
}

impl List {
    fn is_empty(&self) -> bool {
        match self {
            List::Alias(list) | List::Config(list) => list.is_empty(),
            List::Zone(zone) => zone.members.is_empty() && zone.principals.is_empty(),
        }
    }

    fn create(self, name: &str) -> Edit {
        let name = name.to_owned();
        match self {
            List::Alias(members) => Edit::CreateAlias { name, members },
            List::Zone(zone) => Edit::CreateZone { name, zone },
            List::Config(zones) => Edit::CreateConfig { name, zones },
        }
    }

    fn replace(self, name: &str) -> Edit {
        let name = name.to_owned();
        match self {
            List::Alias(members) => Edit::ReplaceAlias { name, members },
            List::Zone(zone) => Edit::ReplaceZone { name, zone },
            List::Config(zones) => Edit::ReplaceConfig { name, zones },
        }
    }
}

/// Type of a zone in a body: true for a peer zone, `None` if the body has no type.
fn peer_type(element: &Element) -> Result<Option<bool>, Fault> {
    let read = |leaf: &str, words: [&str; 2]| match element.leaf(leaf) {
        None => Ok(None),
        Some(text) => match words.iter().position(|word| *word == text) {
            Some(index) => Ok(Some(index == 1)),
            None => Err(Fault::invalid(format!("`{text}` is no {leaf}; use {} or {}", words[0], words[1]))),
        },
    };
    match (read("zone-type", ["0", "1"])?, read("zone-type-string", ["zone", "user-created-peer-zone"])?) {
        (Some(number), Some(text)) if number != text => {
            Err(Fault::invalid("zone-type and zone-type-string name different types"))
        }
        (number, text) => Ok(number.or(text)),
    }
}

fn needs_principal() -> Fault {
    Fault::invalid("a peer zone needs a principal-entry-name")
}

/// Element with the members of an object.
fn list_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Alias | Kind::Zone => "member-entry",
        Kind::Config => "member-zone",
    }
}

/// True for a world-wide name, domain and index, or an address of the form `0x` with six digits;
/// false for the name of an alias.
pub fn is_port(text: &str) -> bool {
    let address = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_address = |digits: &str| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    address.is_some_and(is_address)
        || text.contains([':', ','])
        || text.starts_with(|c: char| c.is_ascii_digit()) && text.len() > 15
}

/// Returns the peer zone that an edit leaves with members, but without a principal.
fn without_principals<'d>(database: &'d Database, edit: &Edit) -> Option<&'d str> {
    let keeps = |list: &[Member], gone: &dyn Fn(&Member) -> bool| list.iter().any(|member| !gone(member));
    let loses = |(name, zone): (&'d String, &Definition), gone: [&dyn Fn(&Member) -> bool; 2]| {
        let loses = !zone.principals.is_empty() && !keeps(&zone.principals, gone[1]) && keeps(&zone.members, gone[0]);
        loses.then_some(name.as_str())
    };
    let zone = |name: &String| database.zones.get_key_value(name);
    match edit {
        Edit::RemoveFromZone { name, zone: gone } => {
            loses(zone(name)?, [&|member| gone.members.contains(member), &|member| gone.principals.contains(member)])
        }
        Edit::ReplaceZone { name, zone: new } if new.principals.is_empty() && !new.members.is_empty() => {
            zone(name).filter(|(_, known)| !known.principals.is_empty()).map(|(name, _)| name.as_str())
        }
        Edit::Expunge { kind: Kind::Alias, name } => {
            let gone = |member: &Member| matches!(member, Member::Alias { alias } if alias == name);
            database.zones.iter().find_map(|zone| loses(zone, [&gone, &gone]))
        }
        _ => None,
    }
}

/// Applies edits of the definitions of `database` in the transaction of the session. A peer zone
/// of Fabric OS keeps a principal, because without one all its members communicate. NX-OS uses
/// [`edit`]: a smart zone without targets is a normal step there, because clients remove the
/// members one by one.
pub fn change(room: &mut Room<'_>, database: &Database, edits: Vec<Edit>) -> Result<(), Fault> {
    if let Some(name) = edits.iter().find_map(|edit| without_principals(database, edit)) {
        return Err(Fault::invalid(format!(
            "zone {name} would lose its last principal, and all its members could communicate; add another principal \
             first, or delete the zone"
        )));
    }
    edit(room, None, edits)
}

/// Applies edits in the transaction of the session.
pub fn edit(room: &mut Room<'_>, checksum: Option<String>, edits: Vec<Edit>) -> Result<(), Fault> {
    room.zone(checksum, ZoneAction::Edit { edits }).map(drop).map_err(|fault| match &fault.message {
        text if text.contains("already belongs to") => Fault { tag: "data-exists", ..fault },
        _ => fault,
    })
}

/// Applies edits, and commits the transaction of the session. If it fails, nothing changes.
pub fn commit(room: &mut Room<'_>, checksum: Option<String>, edits: Vec<Edit>) -> Result<(), Fault> {
    room.zone(checksum, ZoneAction::EditAndCommit { edits }).map(drop)
}

/// Zones of the switch and the database on which the next change is based, as [`seen`].
///
/// # Errors
/// The transaction of the session was lost: the change would be based on edits that are gone.
pub fn based(room: &mut Room<'_>) -> Result<(ZoneStatus, Database), Fault> {
    let (status, database) = seen(room)?;
    if status.lost.is_some() {
        // The fabric answers the next edit with the reason.
        edit(room, None, Vec::new())?;
    }
    Ok((status, database))
}

/// Compares leaves that cannot be changed with those of the effective configuration. A client may
/// send all that it has read.
///
/// # Errors
/// A leaf has another value.
fn unchanged(room: &mut Room<'_>, fixed: &[Element]) -> Result<(), Fault> {
    if fixed.is_empty() {
        return Ok(());
    }
    let present = zones::effective(room)?.swap_remove(0);
    let mut compared = BTreeSet::new();
    for Element { name, .. } in fixed.iter().filter(|leaf| compared.insert(&leaf.name)) {
        let named = |of: &[Element]| of.iter().filter(|leaf| leaf.name == *name).cloned().collect();
        let [sent, own] = [fixed, present.children()].map(|of| Element::container("", named(of)));
        if own.children().is_empty() || !own.has_values_of(&sent) {
            return Err(Fault::unknown(format!("{name} of the effective configuration cannot be changed")));
        }
    }
    Ok(())
}

fn effective(room: &mut Room<'_>, rest: &[String], body: &[Element]) -> Result<(), Fault> {
    let mut leaves = unwrapped(body, "effective-configuration")?;
    match rest {
        [] => {}
        [leaf, value] => leaves.push(Element::text(leaf, value)),
        _ => return Err(Fault::bad_uri()),
    }
    let is_fixed = |leaf: &Element| !fields::EFFECTIVE.iter().any(|field| field.leaf == leaf.name && field.writable);
    let (fixed, leaves): (Vec<Element>, Vec<Element>) = leaves.into_iter().partition(is_fixed);
    let leaves = Element::container("effective-configuration", leaves);
    once(&leaves)?;
    fields::permit(fields::EFFECTIVE, &leaves)?;
    unchanged(room, &fixed)?;
    if leaves.children().is_empty() && !fixed.is_empty() {
        return Ok(());
    }
    let action = |leaf: &str| match leaves.leaf(leaf).as_deref() {
        None => Ok(None),
        Some("1" | "save") => Ok(Some(Action::Save)),
        Some("2" | "disable") => Ok(Some(Action::Disable)),
        Some("3" | "clear") => Ok(Some(Action::Clear)),
        Some("4" | "transaction-abort") => Ok(Some(Action::Abort)),
        Some(other) => Err(Fault::invalid(format!("`{other}` is no {leaf}"))),
    };
    let action = match (action("cfg-action")?, action("cfg-action-v2")?) {
        (Some(one), Some(other)) if one != other => {
            return Err(Fault::invalid("cfg-action and cfg-action-v2 name different actions"));
        }
        (one, other) => one.or(other),
    };
    let default = match leaves.leaf("default-zone-access").as_deref() {
        None => None,
        Some("0" | "no-access") => Some(Edit::SetDefault { open: false, auto: false }),
        Some("1" | "all-access") => Some(Edit::SetDefault { open: true, auto: false }),
        Some(other) => return Err(Fault::invalid(format!("`{other}` is no default-zone-access; use 0 or 1"))),
    };
    let with = |last: Option<Edit>| default.clone().into_iter().chain(last).collect::<Vec<Edit>>();
    let enable = leaves.leaf("cfg-name");
    match (enable.as_deref(), action) {
        (Some(""), _) => {
            return Err(Fault::invalid("cfg-name is empty; leave it out, or name the configuration to enable"));
        }
        (Some(name), Some(Action::Disable | Action::Clear | Action::Abort)) => {
            return Err(Fault::invalid(format!(
                "cfg-name enables {name}, so it cannot stand beside an action that disables, clears or aborts"
            )));
        }
        _ => {}
    }
    let checksum = leaves.leaf("checksum");
    let required = || checksum.clone().ok_or_else(|| Fault::invalid("the request needs the checksum of the zones"));
    match (enable, action) {
        (Some(config), None | Some(Action::Save)) => {
            let checksum = required()?;
            let (_, database) = based(room)?;
            if !database.configs.contains_key(&config) {
                return Err(Fault::failed(format!("there is no cfg {config}")));
            }
            commit(room, Some(checksum), with(Some(Edit::Enable { config })))
        }
        (None, Some(Action::Save)) => commit(room, Some(required()?), with(None)),
        (_, Some(Action::Disable)) => commit(room, Some(required()?), with(Some(Edit::Disable))),
        (_, Some(Action::Clear)) => edit(room, None, with(Some(Edit::Clear))),
        (_, Some(Action::Abort)) if default.is_some() => {
            Err(Fault::invalid("an abort discards changes, so default-zone-access cannot stand beside it"))
        }
        (_, Some(Action::Abort)) => abort(room),
        (None, None) if default.is_some() => edit(room, checksum, with(None)),
        (None, None) => Err(Fault::invalid("the body has neither cfg-name nor cfg-action")),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Save,
    Disable,
    Clear,
    Abort,
}

/// Discards the transaction of the session. Without one, nothing happens.
pub fn abort(room: &mut Room<'_>) -> Result<(), Fault> {
    let is_open = room.zone_status()?.transaction.is_some();
    // Without an open transaction, a lost one is forgotten.
    let aborted = room.zone(None, ZoneAction::Abort).map(drop);
    if is_open { aborted } else { Ok(()) }
}

/// POST of `fibrechannel-zone`: expunges or renames an object.
pub fn operation(room: &mut Room<'_>, body: &[Element]) -> Result<(), Fault> {
    let [parameters] = body else { return Err(Fault::invalid("the body has no zone-operation-parameters")) };
    once(parameters)?;
    fields::permit(fields::ZONE_OPERATION, parameters)?;
    let (_, database) = based(room)?;
    let name = parameters.leaf("zone-object").unwrap_or_default();
    let known = Known { database: &database, nodes: &BTreeSet::new() };
    let kind = KINDS.iter().map(|(.., kind)| *kind).find(|kind| known.has(*kind, &name));
    let kind = kind.ok_or_else(|| Fault::missing(format!("there is no zone object {name}")))?;
    match parameters.leaf("action").or_else(|| parameters.leaf("zone-object-action")).as_deref() {
        Some("expunge") => change(room, &database, vec![Edit::Expunge { kind, name }]),
        Some("rename") => {
            let to = parameters.leaf("new-zone-object").filter(|to| !to.is_empty());
            let to = to.ok_or_else(|| Fault::invalid("the operation has no new-zone-object"))?;
            edit(room, None, vec![Edit::Rename { kind, from: name, to }])
        }
        _ => Err(Fault::invalid("the action of the operation is expunge or rename")),
    }
}
