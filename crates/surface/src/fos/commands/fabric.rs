//! Commands about the switch, the fabric and the name server.

use super::{Outcome, usage};
use crate::fos::fault::Fault;
use crate::fos::names;
use crate::fos::room::Room;
use crate::fos::switches::{Date, controller, fabric_rows};
use crate::fos::zones::{seen, shown};
use crate::fos::{FIRMWARE, switches};
use sanloom_api::view::NameRow;
use std::collections::BTreeMap;

/// `fabricshow`: the principal switch has the mark `>`.
pub fn fabric_show(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let rows = fabric_rows(room)?;
    let mut text = "Switch ID   Worldwide Name           Enet IP Addr    FC IP Addr      Name\n".to_owned();
    text += &format!("{}\n", "-".repeat(73));
    for (row, name, address) in &rows {
        let domain = row.domain.unwrap_or_default();
        let mark = if row.principal { '>' } else { ' ' };
        text += &format!(
            "{domain:>3}: {:06x} {} {address:<15} {:<15}{mark}\"{name}\"\n",
            controller(row.domain),
            row.switch_name,
            "0.0.0.0"
        );
    }
    let noun = if rows.len() == 1 { "switch" } else { "switches" };
    text += &format!("\nThe Fabric has {} {noun}\n", rows.len());
    Ok((text, 0))
}

/// `uptime`: one line with single spaces.
pub fn uptime(room: &mut Room<'_>, _: &[String]) -> Outcome {
    room.own()?;
    let up = room.uptime_s.max(0.0) as u64;
    let (days, hours, minutes) = (up / 86_400, up / 3_600 % 24, up / 60 % 60);
    let days = match days {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        days => format!("{days} days, "),
    };
    let time = if hours > 0 { format!("{hours}:{minutes:02}") } else { format!("{minutes} min") };
    let Date { hour, minute, second, .. } = Date::of(room.now.unix_s);
    // The load of the processor is not known; clients need three numbers.
    let line = format!("{hour:02}:{minute:02}:{second:02} up {days}{time}, 1 user, load averages: 0.00, 0.00, 0.00\n");
    Ok((line, 0))
}

/// `date`, in UTC.
pub fn date(room: &mut Room<'_>, _: &[String]) -> Outcome {
    Ok((format!("{}\n", Date::line(room.now.unix_s)), 0))
}

/// `version`.
pub fn version(_: &mut Room<'_>, _: &[String]) -> Outcome {
    let own = env!("CARGO_PKG_VERSION");
    let text = format!(
        "Kernel:     {} {own}\nFabric OS:  {FIRMWARE}\nMade on:    none\nFlash:\t    none\nBootProm:   none\n",
        switches::PRODUCT
    );
    Ok((text, 0))
}

/// `switchname [NAME]`. A name has letters, digits, `-`, `_` and `.`, and begins with a letter.
pub fn switch_name(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    match arguments {
        [] => Ok((format!("{}\n", room.friendly_name()), 0)),
        [name] if name.starts_with('-') => Err(usage()),
        [name] if is_name(name, 30) => {
            room.shared.lock().names.insert("switch".to_owned(), name.clone());
            Ok(("Committing configuration...\nDone.\n".to_owned(), 0))
        }
        [_] => Err(Fault::invalid(
            "The name of a switch begins with a letter and has 1 to 30 letters, digits, `-`, `_` and `.`.",
        )),
        _ => Err(usage()),
    }
}

/// Returns whether a text is a name of a switch or a chassis.
fn is_name(name: &str, limit: usize) -> bool {
    name.len() <= limit
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// `chassisname [NAME]`.
pub fn chassis_name(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    let own = room.own()?;
    match arguments {
        [] => {
            let name = room.chassis_name(&own)?;
            Ok((format!("{name}\n"), 0))
        }
        [name] if name.starts_with('-') => Err(usage()),
        [name] if is_name(name, 31) => {
            room.shared.chassis().name = Some(name.clone());
            Ok(("Committing configuration...\nDone.\n".to_owned(), 0))
        }
        [_] => Err(Fault::invalid(
            "The name of a chassis begins with a letter and has 1 to 31 letters, digits, `-`, `_` and `.`.",
        )),
        _ => Err(usage()),
    }
}

/// Fails for other arguments than `-t`: the type of the devices is always shown.
fn only_types(words: &[String]) -> Result<(), Fault> {
    if words.iter().all(|word| word == "-t") { Ok(()) } else { Err(usage()) }
}

/// `nodefind`: devices with a world-wide name or an address, or those of an alias.
pub fn node_find(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let [wanted] = words else { return Err(usage()) };
    if wanted.starts_with('-') {
        return Err(usage());
    }
    let (_, database) = seen(room)?;
    let lower = wanted.to_ascii_lowercase();
    let names: Vec<String> = match database.aliases.get(wanted) {
        Some(members) => members.iter().map(|member| shown(member).to_owned()).collect(),
        None => vec![lower.clone()],
    };
    let address = lower.strip_prefix("0x").unwrap_or(&lower);
    let is_wanted = |row: &NameRow| {
        row.port_id == address || [&row.port_name, &row.node_name].iter().any(|own| names.contains(own))
    };
    let places = names::places(room)?;
    let mut text = String::new();
    for (title, local) in [("Local", true), ("Remote", false)] {
        let rows: Vec<NameRow> = devices(room, local)?.into_iter().filter(is_wanted).collect();
        if rows.is_empty() {
            continue;
        }
        text += &format!("{title}:\n{HEADER}");
        for row in &rows {
            text += &entry(row, &places);
            let aliases: Vec<&str> = (database.aliases.iter())
                .filter(|(_, members)| {
                    members.iter().any(|member| [&*row.port_name, &*row.node_name].contains(&shown(member)))
                })
                .map(|(name, _)| name.as_str())
                .collect();
            text += &format!("    Aliases: {}\n", aliases.join(" "));
        }
    }
    match text.is_empty() {
        true => Err(Fault::missing("No device found.")),
        false => Ok((text, 0)),
    }
}

fn devices(room: &mut Room<'_>, local: bool) -> Result<Vec<NameRow>, Fault> {
    let domain = room.own()?.domain.unwrap_or_default();
    let prefix = format!("{domain:02x}");
    let objects = room.names()?.objects;
    Ok(objects.into_iter().filter(|row| row.port_id.starts_with(&prefix) == local).collect())
}

fn entry(row: &NameRow, places: &BTreeMap<String, (u8, u32)>) -> String {
    let kind = if row.port_type.starts_with("NL") { "NL" } else { "N " };
    let mut text = format!(" {kind}   {};      3;{};{}; na\n", row.port_id, row.port_name, row.node_name);
    text += &format!("    FC4s: {} \n", row.fc4_types.join(" "));
    for (name, symbol) in [("PortSymb", &row.symbolic_port_name), ("NodeSymb", &row.symbolic_node_name)] {
        if !symbol.is_empty() {
            let clean: String = symbol.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            text += &format!("    {name}: {}\n", names::symbol(&clean));
        }
    }
    text += &format!("    Fabric Port Name: {} \n", row.fabric_port_name);
    text += &format!("    Permanent Port Name: {}\n", row.port_name);
    text += &format!("    Device type: {}\n", names::device_type(row));
    if let Some((_, number)) = places.get(&row.port_name) {
        text += &format!("    Port Index: {number}\n");
    }
    text += "    Share Area: No\n    Redirect: No \n    Partial: No\n    LSAN: No\n";
    text
}

const HEADER: &str = " Type Pid    COS     PortName                NodeName                 TTL(sec)\n";

/// `nsshow`: devices of this switch.
pub fn name_server_local(room: &mut Room<'_>, words: &[String]) -> Outcome {
    only_types(words)?;
    let rows = devices(room, true)?;
    if rows.is_empty() {
        return Ok(("There is no entry in the Local Name Server\n".to_owned(), 0));
    }
    let places = names::places(room)?;
    let entries: String = rows.iter().map(|row| entry(row, &places)).collect();
    let (verb, noun) = if rows.len() == 1 { ("has", "entry") } else { ("has", "entries") };
    Ok((format!("{{\n{HEADER}{entries}The Local Name Server {verb} {} {noun} }}\n", rows.len()), 0))
}

/// `nscamshow`: devices of other switches.
pub fn name_server_remote(room: &mut Room<'_>, words: &[String]) -> Outcome {
    only_types(words)?;
    let rows = devices(room, false)?;
    if rows.is_empty() {
        return Ok(("No Device has been discovered in the remote switches\n".to_owned(), 0));
    }
    let own = room.switch.clone();
    let places = names::places(room)?;
    let mut text = "nscam show for remote switches:\n".to_owned();
    for (row, name, _) in fabric_rows(room)?.into_iter().filter(|(row, ..)| row.switch != own) {
        let prefix = format!("{:02x}", row.domain.unwrap_or_default());
        let here: Vec<&NameRow> = rows.iter().filter(|device| device.port_id.starts_with(&prefix)).collect();
        if here.is_empty() {
            continue;
        }
        text += &format!(
            "Switch entry for {}\n state  rev       owner  cap_available\n known  v911      0x{:06x} 1\n",
            row.domain.unwrap_or_default(),
            controller(row.domain)
        );
        text += &format!("   Device list: count {} ({name})\n{HEADER}", here.len());
        for device in here {
            text += &entry(device, &places);
        }
    }
    Ok((text, 0))
}

/// `nsallshow`: addresses of all devices.
pub fn name_server_all(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let rows = room.names()?.objects;
    let ids: Vec<&str> = rows.iter().map(|row| &*row.port_id).collect();
    let lines: String = ids.chunks(8).map(|ids| format!("{} \n", ids.join(" "))).collect();
    Ok((format!("{{\n{lines}{} Nx_Ports in the Fabric }}\n", rows.len()), 0))
}
