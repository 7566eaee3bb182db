//! `show running-config`.

use super::system::VERSION;
use super::zones::{Zoning, fcaliases, port_words, with_roles, zoning};
use crate::fos::switches::Date;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown};
use crate::nxos::session::{Placed, Session, interface, numbers};
use sanloom_api::zone_database::Definition;
use std::collections::BTreeMap;

fn head(session: &Session<'_>, command: &str) -> String {
    let time = Date::line(session.room.now.unix_s);
    format!("\n!Command: show {command}\n!Time: {time}\n\nversion {VERSION}\n")
}

fn role_text(role: &str) -> String {
    if role.is_empty() { String::new() } else { format!(" {role}") }
}

fn zone_lines(zoning: &Zoning, name: &str, zone: &Definition) -> String {
    let mut text = format!("zone name {name} vsan {}\n", zoning.vsan);
    for (member, role) in with_roles(&zone.members, &zone.principals) {
        text += &format!("    member {}{}\n", zoning.words(member), role_text(role));
    }
    text.push('\n');
    text
}

/// The zones of a VSAN: those in force, then all definitions.
fn zones(session: &mut Session<'_>, vsan: u16) -> Result<String, Problem> {
    let zoning = zoning(session, vsan)?;
    let settings = session.nx.vsan(vsan);
    let committed = &zoning.status.committed;
    let mut text = String::new();
    if zoning.is_smart(settings.is_smart) {
        text += &format!("zone smart-zoning enable vsan {vsan}\n");
    }
    if settings.is_enhanced {
        text += &format!("zone mode enhanced vsan {vsan}\n");
    }
    if committed.default_open {
        text += &format!("zone default-zone permit vsan {vsan}\n");
    }
    if let Some(effective) = &committed.effective {
        text += &format!("!Active Zone Database Section for vsan {vsan}\n");
        for zone in &effective.zones {
            text += &format!("zone name {} vsan {vsan}\n", zone.zone);
            for (member, role) in with_roles(&zone.members, &zone.principals) {
                text += &format!("    member {}{}\n", port_words(member), role_text(role));
            }
            text.push('\n');
        }
        text += &format!("zoneset name {} vsan {vsan}\n", effective.config);
        text.extend(effective.zones.iter().map(|zone| format!("    member {}\n", zone.zone)));
        text += &format!("\nzoneset activate name {} vsan {vsan}\n", effective.config);
    }
    text += &format!("do clear zone database vsan {vsan}\n!Full Zone Database Section for vsan {vsan}\n");
    for (name, members) in fcaliases(&zoning) {
        text += &format!("fcalias name {name} vsan {vsan}\n");
        text.extend(members.iter().map(|member| format!("    member {}\n", port_words(member))));
        text.push('\n');
    }
    for (name, zone) in &zoning.database.zones {
        text += &zone_lines(&zoning, name, zone);
    }
    for (name, zones) in &zoning.database.configs {
        text += &format!("zoneset name {name} vsan {vsan}\n");
        text.extend(zones.iter().map(|zone| format!("    member {zone}\n")));
        text.push('\n');
    }
    Ok(text)
}

/// The section of a port, with its values that are defaults if `all` is set.
fn port(session: &Session<'_>, placed: &Placed, all: bool) -> String {
    let settings = session.nx.lock().ports.get(&placed.port.number).cloned().unwrap_or_default();
    let default = |value: Option<String>, default: &str| value.or_else(|| all.then(|| default.to_owned()));
    let mut text = format!("\ninterface {}\n", interface(placed.port.number));
    let lines = [
        ("switchport speed", default(settings.speed, "auto")),
        ("switchport mode", default(settings.mode, "auto")),
        ("switchport trunk mode", default(settings.trunk, "off")),
        ("switchport description", session.description(placed)),
    ];
    for (name, value) in lines {
        text.extend(value.map(|value| format!("  {name} {value}\n")));
    }
    text += if placed.port.disabled() { "  shutdown\n" } else { "  no shutdown\n" };
    text
}

/// `show running-config interface`, with `all` or the names of ports.
pub fn interfaces(session: &mut Session<'_>, values: &Values) -> Outcome {
    let words = values.get("TEXT").unwrap_or_default();
    let (names, all) = match words.strip_suffix("all") {
        Some(names) => (names.trim(), true),
        None => (words, false),
    };
    let invalid = || Problem::Syntax(format!("Invalid interface format: {names}\n"));
    let wanted = (!names.is_empty()).then(|| numbers(names).ok_or_else(invalid)).transpose()?;
    let mut text = head(session, &format!("running-config interface {words}"));
    for placed in session.ports()? {
        if wanted.as_ref().is_none_or(|wanted| wanted.contains(&placed.port.number)) {
            text += &port(session, &placed, all);
        }
    }
    Ok(Shown::text(text))
}

/// The VSANs with their ports.
fn vsan_lines(session: &mut Session<'_>, ports: &[Placed]) -> Result<String, Problem> {
    let mut text = "vsan database\n".to_owned();
    for (vsan, _) in session.vsans()? {
        if vsan != 1 {
            text += &format!("  vsan {vsan} name \"{}\"\n", session.name_of(vsan));
        }
        let own = ports.iter().filter(|placed| placed.vsan == vsan);
        text.extend(own.map(|placed| format!("  vsan {vsan} interface {}\n", interface(placed.port.number))));
    }
    Ok(text)
}

/// The device aliases and their settings.
fn alias_lines(session: &mut Session<'_>) -> Result<String, Problem> {
    let mut text = String::new();
    {
        let settings = session.nx.lock();
        if settings.is_enhanced {
            text += "device-alias mode enhanced\n";
        }
        if !settings.distributes {
            text += "no device-alias distribute\n";
        }
    }
    let aliases: BTreeMap<String, String> = session.device_aliases()?;
    if !aliases.is_empty() {
        text += "device-alias database\n";
        text.extend(aliases.iter().map(|(name, port)| format!("  device-alias name {name} pwwn {port}\n")));
        text += "\ndevice-alias commit\n";
    }
    Ok(text)
}

/// `show running-config zone`.
pub fn zoning_only(session: &mut Session<'_>, values: &Values) -> Outcome {
    let wanted = session.wanted(values.vsan())?;
    let command = values.vsan().map_or_else(String::new, |vsan| format!(" vsan {vsan}"));
    let mut text = head(session, &format!("running-config zone{command}"));
    for (vsan, _) in wanted {
        text += &zones(session, vsan)?;
    }
    Ok(Shown::text(text))
}

/// `show running-config vsan`.
pub fn vsans_only(session: &mut Session<'_>, _: &Values) -> Outcome {
    let ports = session.ports()?;
    let text = head(session, "running-config vsan") + &vsan_lines(session, &ports)?;
    Ok(Shown::text(text))
}

/// `show running-config device-alias`.
pub fn aliases_only(session: &mut Session<'_>, _: &Values) -> Outcome {
    let text = head(session, "running-config device-alias") + &alias_lines(session)?;
    Ok(Shown::text(text))
}

/// `show running-config`.
pub fn running(session: &mut Session<'_>, _: &Values) -> Outcome {
    let name = super::system::host_name(session);
    let ports = session.ports()?;
    let vsans = session.vsans()?;
    let mut text = head(session, "running-config");
    text += "feature npiv\n\n";
    text += &vsan_lines(session, &ports)?;
    text += &alias_lines(session)?;
    text.push('\n');
    for (vsan, row) in &vsans {
        text.extend(row.domain.map(|domain| format!("fcdomain domain {domain} static vsan {vsan}\n")));
        text += &zones(session, *vsan)?;
    }
    text += &format!("\nswitchname {name}\n");
    for placed in &ports {
        text += &port(session, placed, false);
    }
    Ok(Shown::text(text))
}
