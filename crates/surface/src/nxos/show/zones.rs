//! Zones, zone sets and FC aliases.

use crate::fos::zones::{seen, shown, size_limit};
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown, absent, object, row, table};
use crate::nxos::session::{Session, is_port_name};
use crate::nxos::settings::Vsan;
use crate::nxos::show::devices::alias_names;
use sanloom_api::zone_database::{Database, Definition, Member};
use sanloom_api::zoning::{ZonePort, ZoneStatus};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Zones of a VSAN as the client sees them.
pub struct Zoning {
    /// VSAN of the zones.
    pub vsan: u16,
    /// State of zoning.
    pub status: ZoneStatus,
    /// The database with the pending changes of the client.
    pub database: Database,
    /// Port names of the device aliases of the database.
    pub devices: BTreeMap<String, String>,
}

/// A zone: its name, the lines of its members, and their rows.
type Listed = (String, String, Vec<Value>);

/// Reads the zones of a VSAN.
///
/// # Errors
/// The chassis has no such VSAN, or the fabric does not answer.
pub fn zoning(session: &mut Session<'_>, vsan: u16) -> Result<Zoning, Problem> {
    session.select(vsan)?;
    let (status, database) = seen(&mut session.room)?;
    let databases: Vec<&Database> = status.working.iter().chain([&status.committed]).collect();
    session.nx.change(vsan, |settings| settings.forget_deleted(&databases));
    let devices = session.aliases_of(vsan, &database);
    Ok(Zoning { vsan, status, database, devices })
}

impl Zoning {
    /// Words of a member of a definition in a configuration, without its role.
    pub fn words(&self, member: &Member) -> String {
        match member {
            Member::Port(text) => port_words(text),
            Member::Alias { alias } if self.devices.contains_key(alias) => format!("device-alias {alias}"),
            Member::Alias { alias } => format!("fcalias {alias}"),
        }
    }

    /// A zone that the fabric does not have, with its targets whose aliases still exist.
    pub fn kept(&self, settings: &Vsan, name: &str) -> Definition {
        let exists = |member: &Member| match member {
            Member::Port(_) => true,
            Member::Alias { alias } => self.database.aliases.contains_key(alias),
        };
        let targets = settings.targets.get(name).into_iter().flatten();
        Definition { members: Vec::new(), principals: targets.filter(|member| exists(member)).cloned().collect() }
    }

    /// True if roles of members count.
    pub fn is_smart(&self, chosen: Option<bool>) -> bool {
        chosen.unwrap_or_else(|| self.database.zones.values().any(|zone| !zone.principals.is_empty()))
    }
}

/// Words of a member that is no alias.
pub fn port_words(text: &str) -> String {
    match (text.strip_prefix("wwnn:"), text.split_once(',')) {
        (Some(node), _) => format!("nwwn {node}"),
        (None, Some((domain, port))) => format!("domain-id {domain} port-number {port}"),
        (None, None) if text.starts_with("0x") => format!("fcid {text}"),
        (None, None) => format!("pwwn {text}"),
    }
}

/// Members of a definition with their roles: principals are targets, the others initiators.
pub fn with_roles<'a, T: PartialEq>(members: &'a [T], principals: &'a [T]) -> Vec<(&'a T, &'static str)> {
    let role = |member: &T| match (principals.is_empty(), members.contains(member), principals.contains(member)) {
        (true, ..) => "",
        (false, true, true) => "both",
        (false, _, true) => "target",
        (false, ..) => "init",
    };
    let own = members.iter().chain(principals.iter().filter(|member| !members.contains(member)));
    own.map(|member| (member, role(member))).collect()
}

fn role_text(role: &str) -> String {
    if role.is_empty() { String::new() } else { format!(" {role}") }
}

fn member_row(values: Vec<(&'static str, Value)>, role: &str) -> Value {
    let role = (!role.is_empty()).then(|| ("dev_type".to_owned(), Value::from(role)));
    row(&values, role)
}

/// Values of a member that is no alias.
fn port_values(text: &str, names: &BTreeMap<String, String>) -> Vec<(&'static str, Value)> {
    let plain = shown(text).to_owned();
    match (text.starts_with("wwnn:"), text.split_once(',')) {
        (true, _) => vec![("type", "nwwn".into()), ("wwn", plain.into())],
        (false, Some((domain, port))) => {
            vec![("type", "domain-id".into()), ("domain_id", domain.into()), ("port_number", port.into())]
        }
        (false, None) if text.starts_with("0x") => vec![("type", "fcid".into()), ("fcid", plain.into())],
        (false, None) => {
            let alias = names.get(text).map(|alias| ("dev_alias", Value::from(alias.clone())));
            [("type", "pwwn".into()), ("wwn", plain.into())].into_iter().chain(alias).collect()
        }
    }
}

/// Lines and rows of a defined zone.
fn defined(
    zoning: &Zoning,
    zone: &Definition,
    names: &BTreeMap<String, String>,
    indent: usize,
) -> (String, Vec<Value>) {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (member, role) in with_roles(&zone.members, &zone.principals) {
        let spaces = " ".repeat(indent);
        match member {
            Member::Port(port) => {
                let alias = names.get(port).map_or_else(String::new, |alias| format!(" [{alias}]"));
                text += &format!("{spaces}{}{alias}{}\n", port_words(port), role_text(role));
                rows.push(member_row(port_values(port, names), role));
            }
            Member::Alias { alias } => match zoning.devices.get(alias) {
                Some(port) => {
                    text += &format!("{spaces}device-alias {alias} [pwwn {port}]{}\n", role_text(role));
                    let values = vec![
                        ("type", "device-alias".into()),
                        ("dev_alias", alias.clone().into()),
                        ("dev_alias_pwwn", port.clone().into()),
                    ];
                    rows.push(member_row(values, role));
                }
                None => {
                    text += &format!("{spaces}fcalias name {alias} vsan {}{}\n", zoning.vsan, role_text(role));
                    let members = zoning.database.aliases.get(alias).map(Vec::as_slice).unwrap_or_default();
                    text.extend(members.iter().map(|port| format!("{spaces}  {}\n", port_words(port))));
                    let values = vec![
                        ("type", "fcalias".into()),
                        ("fcalias_name", alias.clone().into()),
                        ("fcalias_vsan_id", zoning.vsan.into()),
                    ];
                    rows.push(member_row(values, role));
                }
            },
        }
    }
    (text, rows)
}

/// Ports of the name server that a member stands for.
fn online<'p>(ports: &'p [ZonePort], member: &str) -> Vec<&'p ZonePort> {
    let is_member = |port: &&ZonePort| match (member.strip_prefix("wwnn:"), member.strip_prefix("0x")) {
        (Some(node), _) => port.node_name == node,
        (None, Some(id)) => port.port_id == id,
        (None, None) => port.port_name == member || format!("{},{}", port.domain, port.switch_port) == member,
    };
    ports.iter().filter(is_member).collect()
}

/// Lines and rows of the zones in force: names, lines of members, rows of members. A member that
/// stands for several ports has a line and a row for each.
fn active(zoning: &Zoning, names: &BTreeMap<String, String>) -> Vec<Listed> {
    let effective = zoning.status.committed.effective.iter().flat_map(|effective| &effective.zones);
    let one = |zone: &sanloom_api::zone_database::EffectiveZone| {
        let (mut text, mut rows) = (String::new(), Vec::new());
        for (member, role) in with_roles(&zone.members, &zone.principals) {
            let ids: Vec<String> =
                online(&zoning.status.ports, member).iter().map(|port| format!("0x{}", port.port_id)).collect();
            let alias = names.get(member).map_or_else(String::new, |alias| format!(" [{alias}]"));
            let (words, role_text) = (port_words(member), role_text(role));
            if ids.is_empty() {
                text += &format!("    {words}{alias}{role_text}\n");
            }
            for id in &ids {
                let words = if member.starts_with("0x") { String::new() } else { format!(" [{words}]") };
                text += &format!("  * fcid {id}{words}{alias}{role_text}\n");
            }
            let offline = ids.is_empty().then(String::new);
            for id in ids.into_iter().chain(offline) {
                let mut values = port_values(member, names);
                values.push(("online_fcid", id.into()));
                rows.push(member_row(values, role));
            }
        }
        (zone.zone.clone(), text, rows)
    };
    effective.map(one).collect()
}

/// `show zone`.
pub fn zone(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (only, is_active) = (values.get("NAME"), values.has("active"));
    let names = alias_names(session)?;
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        let mut zones: Vec<Listed> = if is_active {
            active(&zoning, &names)
        } else {
            let defined = zoning.database.zones.iter().map(|(name, zone)| {
                let (text, rows) = defined(&zoning, zone, &names, 2);
                (name.clone(), text, rows)
            });
            let settings = session.nx.vsan(vsan);
            let empty = settings.empty_zones.iter().map(|name| {
                let (text, rows) = self::defined(&zoning, &zoning.kept(&settings, name), &names, 2);
                (name.clone(), text, rows)
            });
            defined.chain(empty).collect()
        };
        zones.retain(|(name, ..)| only.is_none_or(|only| only == name));
        zones.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, members, member_rows) in zones {
            text += &format!("zone name {name} vsan {vsan}\n{members}\n");
            let table = (!member_rows.is_empty()).then(|| table("zone_member", member_rows));
            rows.push(row(&[("name", name.into()), ("vsan", vsan.into())], table));
        }
    }
    match (rows.len(), only, values.vsan()) {
        (0, ..) => Err(absent("Zone not present")),
        // One zone of one VSAN has no table around it.
        (1, Some(_), Some(_)) => Ok(Shown::with(text, rows.remove(0))),
        _ => Ok(Shown::with(text, object([table("zone", rows)]))),
    }
}

/// `show zoneset`.
pub fn zone_set(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (only, is_active) = (values.get("NAME"), values.has("active"));
    let names = alias_names(session)?;
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        let mut sets: Vec<(String, Vec<Listed>)> = if is_active {
            let effective = zoning.status.committed.effective.as_ref();
            effective.map(|own| (own.config.clone(), active(&zoning, &names))).into_iter().collect()
        } else {
            let set = |(name, zones): (&String, &Vec<String>)| {
                let zone = |zone: &String| {
                    let definition = zoning.database.zones.get(zone).cloned().unwrap_or_default();
                    let (text, rows) = defined(&zoning, &definition, &names, 4);
                    (zone.clone(), text, rows)
                };
                (name.clone(), zones.iter().map(zone).collect())
            };
            let empty = session.nx.vsan(vsan).empty_sets.into_iter().map(|name| (name, Vec::new()));
            zoning.database.configs.iter().map(set).chain(empty).collect()
        };
        sets.retain(|(name, _)| only.is_none_or(|only| only == name));
        for (name, zones) in sets {
            text += &format!("zoneset name {name} vsan {vsan}\n");
            let mut zone_rows = Vec::new();
            for (zone, members, member_rows) in zones {
                text += &format!("  zone name {zone} vsan {vsan}\n{members}\n");
                let table = (!member_rows.is_empty()).then(|| table("member", member_rows));
                zone_rows.push(row(&[("name", zone.into()), ("vsan", vsan.into())], table));
            }
            let table = (!zone_rows.is_empty()).then(|| table("zone", zone_rows));
            rows.push(row(&[("name", name.into()), ("vsan", vsan.into())], table));
        }
    }
    match rows.is_empty() {
        true => Err(absent("Zoneset not present")),
        false => Ok(Shown::with(text, object([table("zoneset", rows)]))),
    }
}

/// FC aliases of a database: those that are no device aliases.
pub fn fcaliases(zoning: &Zoning) -> impl Iterator<Item = (&String, &Vec<String>)> {
    zoning.database.aliases.iter().filter(|(name, _)| !zoning.devices.contains_key(*name))
}

/// `show fcalias`.
pub fn fcalias(session: &mut Session<'_>, values: &Values) -> Outcome {
    let only = values.get("NAME");
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        let empty = session.nx.vsan(vsan).empty_aliases;
        let none = Vec::new();
        let all = fcaliases(&zoning).chain(empty.iter().map(|name| (name, &none)));
        for (name, members) in all.filter(|(name, _)| only.is_none_or(|only| only == name.as_str())) {
            text += &format!("fcalias name {name} vsan {vsan}\n");
            text.extend(members.iter().map(|member| format!("  {}\n", port_words(member))));
            text.push('\n');
            let member = |member: &String| {
                let kind = if is_port_name(member) { "pwwn" } else { "other" };
                row(&[("fcalias_member_type", kind.into()), ("fcalias_wwn", shown(member).into())], [])
            };
            let table = (!members.is_empty()).then(|| table("fcalias_member", members.iter().map(member).collect()));
            rows.push(row(&[("fcalias_name", name.clone().into()), ("fcalias_vsan_id", vsan.into())], table));
        }
    }
    match rows.is_empty() {
        true => Err(absent("Alias not present")),
        false => Ok(Shown::with(text, object([table("fcalias", rows)]))),
    }
}

/// Owner of the changes that wait for a commit, as `show zone status` prints it.
fn owner(status: &ZoneStatus) -> String {
    match (&status.transaction, status.locked_by) {
        (Some(open), _) => {
            let user = open.owner.as_ref().map_or("control socket", |owner| &owner.user);
            format!("cli [{user}]")
        }
        (None, Some(domain)) => format!("remote [dom: {domain}]"),
        (None, None) => "none".to_owned(),
    }
}

/// `show zone status`.
pub fn status(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        let settings = session.nx.vsan(vsan);
        let Zoning { status, database, .. } = &zoning;
        let committed = &status.committed;
        let default = if committed.default_open { "permit" } else { "deny" };
        let mode = if settings.is_enhanced { "enhanced" } else { "basic" };
        let smart = if zoning.is_smart(settings.is_smart) { "enabled" } else { "disabled" };
        let owner = owner(status);
        let bytes = status.state.database_bytes;
        let limit = size_limit(status).max(1);
        let percent = bytes.saturating_mul(100) / limit;
        let names: BTreeSet<&String> = fcaliases(&zoning).map(|(name, _)| name).collect();
        let sets = database.configs.len() + settings.empty_sets.len();
        let zones = database.zones.len() + settings.empty_zones.len();
        let (last, aliases) = (&settings.status, names.len());
        text += &format!(
            "VSAN: {vsan} default-zone: {default} distribute: full Interop: default\n    \
             mode: {mode} merge-control: allow\n    session: {owner}\n    \
             hard-zoning: enabled broadcast: unsupported\n    smart-zoning: {smart}\n    \
             rscn-format: fabric-address\n    activation overwrite control: disabled\n\
             Default zone:\n    qos: none broadcast: unsupported ronly: unsupported\n\
             Full Zoning Database :\n    DB size: {bytes} bytes\n    \
             Zonesets: {sets}  Zones: {zones} Aliases: {aliases}\nActive Zoning Database :\n"
        );
        let mut values: Vec<(&str, Value)> = vec![
            ("vsan", vsan.into()),
            ("default_zone", default.into()),
            ("distribute", "full".into()),
            ("interop", "default".into()),
            ("mode", mode.into()),
            ("merge_control", "allow".into()),
            ("session", owner.into()),
            ("hard_zoning", "enabled".into()),
            ("smart_zoning", smart.into()),
            ("rscn_format", "fabric-address".into()),
            ("activation_overwrite_control", "disabled".into()),
            ("fulldb_dbsize", bytes.into()),
            ("fulldb_zoneset_count", sets.into()),
            ("fulldb_zone_count", zones.into()),
            ("fulldb_aliases", aliases.into()),
            ("effectivedb_dbsize", bytes.into()),
            ("maxdb_dbsize", limit.into()),
            ("percent_effectivedbsize", percent.into()),
            ("status", last.clone().into()),
        ];
        match &committed.effective {
            None => text += "    Database Not Available\n",
            Some(effective) => {
                let (name, count) = (&effective.config, effective.zones.len());
                text += &format!("    DB size: {bytes} bytes\n    Name: {name}  Zonesets: 1  Zones: {count}\n");
                values.extend([
                    ("activedb_dbsize", bytes.into()),
                    ("activedb_zoneset_name", name.clone().into()),
                    ("activedb_zoneset_count", 1.into()),
                    ("activedb_zone_count", count.into()),
                ]);
            }
        }
        text += &format!(
            "Current Total Zone DB Usage: {bytes} / {limit} bytes ({percent} % used)\n\
             Pending (Session) DB size:\n    Full DB Copy size: n/a\n    Active DB Copy size: n/a\n\
             SFC size: {bytes} / {limit} bytes ({percent} % used)\nStatus: {last}\n\n"
        );
        rows.push(row(&values, []));
    }
    Ok(Shown::with(text, object([table("zone_status", rows)])))
}
