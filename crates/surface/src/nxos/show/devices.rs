//! Devices: logins, the name server, and device aliases.

use crate::fos::switches;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown, absent, failed, object, row, table};
use crate::nxos::session::{Session, interface, number, world_wide_name};
use crate::nxos::settings::AliasChange;
use crate::nxos::show::rule;
use sanloom_api::view::NameRow;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names of the device aliases by port name.
pub fn alias_names(session: &mut Session<'_>) -> Result<BTreeMap<String, String>, Problem> {
    Ok(session.device_aliases()?.into_iter().map(|(name, port)| (port, name)).collect())
}

fn alias_line(alias: Option<&String>) -> String {
    alias.map_or_else(String::new, |alias| format!("{:27}[{alias}]\n", ""))
}

fn alias_value(key: &str, alias: Option<&String>) -> Option<(String, Value)> {
    alias.map(|alias| (key.to_owned(), alias.clone().into()))
}

/// `show flogi database`.
pub fn flogi(session: &mut Session<'_>, values: &Values) -> Outcome {
    let only = values.get("IFACE").map(|name| number(name).ok_or_else(|| failed("% Invalid interface"))).transpose()?;
    let aliases = alias_names(session)?;
    let (mut lines, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        session.select(vsan)?;
        for login in session.room.logins()?.logins {
            let Some(port) = login.port.rsplit_once(':').and_then(|(_, number)| number.parse::<u32>().ok()) else {
                continue;
            };
            if only.is_some_and(|only| only != port) {
                continue;
            }
            let (name, id, alias) = (interface(port), format!("0x{}", login.port_id), aliases.get(&login.port_name));
            lines += &format!("{name:<16} {vsan:<5} {id}  {} {}\n", login.port_name, login.node_name);
            lines += &alias_line(alias);
            let values: [(&str, Value); 5] = [
                ("interface", name.into()),
                ("vsan", vsan.into()),
                ("fcid", id.into()),
                ("port_name", login.port_name.into()),
                ("node_name", login.node_name.into()),
            ];
            rows.push(row(&values, alias_value("device_alias_for_pwwn", alias)));
        }
    }
    if rows.is_empty() {
        return Err(absent("No flogi sessions found."));
    }
    let head = "INTERFACE        VSAN    FCID           PORT NAME               NODE NAME       \n";
    let count = rows.len();
    let text = format!("{}{head}{}{lines}\nTotal number of flogi = {count}.\n", rule(80), rule(80));
    let total = ("total_no_of_flogi".to_owned(), Value::from(count));
    Ok(Shown::with(text, object([table("flogi_entry", rows), total])))
}

/// FC-4 types with their features in the words of the switch.
fn types(row: &NameRow) -> Vec<(String, String)> {
    let has = |feature: &str| row.fcp_features.iter().any(|own| own == feature);
    let feature = match (has("initiator"), has("target")) {
        (true, true) => "both",
        (true, false) => "init",
        (false, true) => "target",
        (false, false) => "",
    };
    let one = |name: &String| match name.to_ascii_lowercase() {
        name if name.contains("fcp") => ("scsi-fcp".to_owned(), feature.to_owned()),
        name => (name, String::new()),
    };
    row.fc4_types.iter().map(one).collect()
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// `show fcns database`, with or without `detail`.
pub fn fcns(session: &mut Session<'_>, values: &Values) -> Outcome {
    let is_detailed = values.has("detail");
    let domain = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let invalid = || failed("% Invalid domain: a number from 1 to 239");
    let only = values.get("DOMAIN").map(|text| domain(text).ok_or_else(invalid)).transpose()?;
    let aliases = alias_names(session)?;
    let places = if is_detailed { crate::fos::names::places(&mut session.room)? } else { BTreeMap::new() };
    let (mut text, mut all) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        session.select(vsan)?;
        let domains: BTreeMap<u8, String> = switches::members(&mut session.room)?
            .into_iter()
            .filter_map(|(row, _)| Some((row.domain?, session.room.shared.name_of(&row.switch))))
            .collect();
        let mut objects = session.room.names()?.objects;
        let prefix = only.map(|domain| format!("{domain:02x}"));
        objects.retain(|row| prefix.as_ref().is_none_or(|prefix| row.port_id.starts_with(prefix.as_str())));
        if objects.is_empty() {
            continue;
        }
        let mut rows = Vec::new();
        if !is_detailed {
            let head = "FCID        TYPE  PWWN                    (VENDOR)        FC4-TYPE:FEATURE\n";
            text += &format!("\nVSAN {vsan}:\n{}{head}{}", rule(74), rule(74));
        }
        for entry in &objects {
            let (id, alias) = (format!("0x{}", entry.port_id), aliases.get(&entry.port_name));
            let kind = if entry.port_type.starts_with("NL") { "NL" } else { "N" };
            let types = types(entry);
            let joined = |separator: &str| -> String {
                let words = types.iter().map(|(name, feature)| match feature.is_empty() {
                    true => name.clone(),
                    false => format!("{name}:{feature}"),
                });
                words.collect::<Vec<_>>().join(separator)
            };
            if is_detailed {
                let domain = entry.port_id.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                let switch = domain.and_then(|domain| domains.get(&domain)).map_or("", String::as_str);
                text += &detail(vsan, entry, &joined(" "), alias, places.get(&entry.port_name), switch);
                rows.push(detail_row(entry, kind, &types, alias));
            } else {
                text += &format!("{id}    {kind:<4}  {}                 {}\n", entry.port_name, joined(" "));
                text += &alias_line(alias);
                let values: [(&str, Value); 4] = [
                    ("fcid", id.into()),
                    ("type", kind.into()),
                    ("pwwn", entry.port_name.clone().into()),
                    ("vendor", "".into()),
                ];
                let features = types.iter().map(|(name, feature)| json!({"fc4_type": name, "fc4_feature": feature}));
                let features = (!types.is_empty()).then(|| table("fc4_type_feature", features.collect()));
                rows.push(row(&values, alias_value("device_alias", alias).into_iter().chain(features)));
            }
        }
        text += &format!("\nTotal number of entries = {}\n", objects.len());
        let total = ("total_number_of_entries", Value::from(objects.len()));
        if is_detailed {
            // Each device has a row of its own, and the last one has the number of entries.
            let last = rows.len();
            for (at, entry) in rows.into_iter().enumerate() {
                let mut values = vec![("vsan_id", Value::from(vsan))];
                values.extend((at + 1 == last).then(|| total.clone()));
                all.push(row(&values, [table("fcns_database", vec![entry])]));
            }
        } else {
            all.push(row(&[("vsan_id", vsan.into()), total], [table("fcns_database", rows)]));
        }
    }
    match all.is_empty() {
        true => Err(absent("No entries found in the fcns database")),
        false => Ok(Shown::with(text, object([table("fcns_vsan", all)]))),
    }
}

fn detail(
    vsan: u16,
    entry: &NameRow,
    types: &str,
    alias: Option<&String>,
    place: Option<&(u8, u32)>,
    switch: &str,
) -> String {
    let kind = if entry.port_type.starts_with("NL") { "NL" } else { "N" };
    let mut text = format!("{}VSAN:{vsan}     FCID:0x{}\n{}", rule(24), entry.port_id, rule(24));
    let mut line = |name: &str, value: &str| text += &format!("{name:<28}:{value}\n");
    let named = |name: &str| alias.map_or(name.to_owned(), |alias| format!("{name} [{alias}]"));
    line("port-wwn (vendor)", &named(&entry.port_name));
    line("node-wwn", &entry.node_name);
    line("class", "3");
    line("node-ip-addr", "0.0.0.0");
    line("ipa", "ff ff ff ff ff ff ff ff");
    line("fc4-types:fc4_features", types);
    line("symbolic-port-name", &printable(&entry.symbolic_port_name));
    line("symbolic-node-name", &printable(&entry.symbolic_node_name));
    line("port-type", kind);
    line("port-ip-addr", "0.0.0.0");
    line("fabric-port-wwn", &entry.fabric_port_name);
    line("hard-addr", "0x000000");
    line("permanent-port-wwn (vendor)", &entry.port_name);
    if let Some((_, port)) = place {
        line("connected interface", &interface(*port));
    }
    line("switch name (IP address)", switch);
    text
}

fn detail_row(entry: &NameRow, kind: &str, types: &[(String, String)], alias: Option<&String>) -> Value {
    let values: [(&str, Value); 11] = [
        ("fcid", format!("0x{}", entry.port_id).into()),
        ("pwwn", entry.port_name.clone().into()),
        ("nwwn", entry.node_name.clone().into()),
        ("class", "3".into()),
        ("node_ip_addr", "0.0.0.0".into()),
        ("symbolic_port_name", printable(&entry.symbolic_port_name).into()),
        ("symbolic_node_name", printable(&entry.symbolic_node_name).into()),
        ("port_type", kind.into()),
        ("port_ip_addr", "0.0.0.0".into()),
        ("fabric_port_wwn", entry.fabric_port_name.clone().into()),
        ("permanent_pwwn", entry.port_name.clone().into()),
    ];
    let features = types.iter().map(|(name, feature)| json!({"fc4_types": name, "fc4_features": feature}));
    let features = (!types.is_empty()).then(|| table("fc4_types_fc4_features", features.collect()));
    row(&values, alias_value("device_alias", alias).into_iter().chain(features))
}

/// `show device-alias database`, `show device-alias name` and `show device-alias pwwn`.
pub fn aliases(session: &mut Session<'_>, values: &Values) -> Outcome {
    let all = session.device_aliases()?;
    let port = values.get("WWN");
    let port = port.map(|text| world_wide_name(text).ok_or_else(|| failed("% Invalid WWN"))).transpose()?;
    let wanted = values.get("NAME");
    let found: Vec<(&String, &String)> = (all.iter())
        .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name.as_str()))
        .filter(|(_, own)| port.as_ref().is_none_or(|port| port == *own))
        .collect();
    if found.is_empty() {
        return Err(absent(match wanted.or(port.as_deref()) {
            None => "There are no entries in the database".to_owned(),
            Some(name) => format!("device-alias {name} not found"),
        }));
    }
    let mut text: String = found.iter().map(|(name, port)| format!("device-alias name {name} pwwn {port}\n")).collect();
    text += &format!("\nTotal number of entries = {}\n", found.len());
    let rows = found.iter().map(|(name, port)| json!({"dev_alias_name": name, "pwwn": port}));
    let count = ("number_of_entries".to_owned(), Value::from(found.len()));
    Ok(Shown::with(text, object([table("device_alias_database", rows.collect()), count])))
}

/// `show device-alias status`.
pub fn alias_status(session: &mut Session<'_>, _: &Values) -> Outcome {
    let count = session.device_aliases()?.len();
    let own = session.room.own()?.switch_name;
    let settings = session.nx.lock();
    let distributes = if settings.distributes { "Enabled" } else { "Disabled" };
    let mode = if settings.is_enhanced { "Enhanced" } else { "Basic" };
    let mut text = format!("Fabric Distribution: {distributes}\nDatabase:- Device Aliases {count}  Mode: {mode}\n");
    let mut values: Vec<(&str, Value)> = vec![
        ("fabric_distribution", distributes.into()),
        ("database_device_aliases", count.into()),
        ("database_mode", mode.into()),
    ];
    if let Some(pending) = &settings.pending {
        text += &format!("Locked By:- User \"CLI/SNMPv3:{}\" SWWN {own}\n", pending.user);
        text += &format!("Pending Database:- Changes {}\n", pending.changes.len());
        values.push(("Locked_by_user", format!("CLI/SNMPv3:{}", pending.user).into()));
        values.push(("Locked_by_SWWN", own.into()));
    }
    Ok(Shown::with(text, row(&values, [])))
}

/// `show device-alias pending`.
pub fn alias_pending(session: &mut Session<'_>, _: &Values) -> Outcome {
    let settings = session.nx.lock();
    let Some(pending) = &settings.pending else { return Err(absent("There are no pending changes")) };
    let line = |change: &AliasChange| match change {
        AliasChange::Add(name, port) => format!("+ device-alias name {name} pwwn {port}\n"),
        AliasChange::Remove(name) => format!("- device-alias name {name}\n"),
        AliasChange::Rename(from, to) => format!("~ device-alias rename {from} {to}\n"),
    };
    Ok(Shown::text(pending.changes.iter().map(line).collect::<String>()))
}
