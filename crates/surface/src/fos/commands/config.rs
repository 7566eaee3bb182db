//! Commands about the chassis and the configuration as a whole.

use super::{Outcome, usage};
use crate::fos::fault::Fault;
use crate::fos::ports as model;
use crate::fos::room::Room;
use crate::fos::switches::{Date, PRODUCT};
use crate::fos::zones::{seen, shown, size_limit, text};
use crate::fos::{FIRMWARE, switches};
use sanloom_api::view::SwitchRow;
use sanloom_api::zone_database::{Database, Member};
use std::collections::BTreeMap;

/// `cfgsize`.
pub fn zone_size(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let status = room.zone_status()?;
    let committed = status.state.database_bytes;
    let limit = size_limit(&status);
    let available = limit.saturating_sub(committed);
    let open = status.transaction.map_or(0, |open| open.database_bytes);
    let text = format!(
        "Zone DB max size - {limit} bytes\nAvailable Zone DB size - {available} bytes\ncommitted - {committed}\n\
         transaction - {open}\n"
    );
    Ok((text, 0))
}

/// `chassisshow`. The lab has no power supplies, fans and serial numbers.
pub fn chassis_show(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let own = room.own()?;
    let (name, wwn) = (room.chassis_name(&own)?, room.chassis_wwn(&own)?);
    let text = format!(
        "\nChassis Family: {PRODUCT}\nChassis Backplane Revision: 0\n\nCHASSIS/WWN  Unit: 1\n\
         Header Version:         2\nFactory Part Num:       none\nFactory Serial Num:     none\n\
         ID:                     {PRODUCT}\nPart Num:               none\nChassis Name:           {name}\n\
         License ID:             {wwn}\n"
    );
    Ok((text, 0))
}

/// `firmwareshow`: both partitions have the version that the interface claims.
pub fn firmware(_: &mut Room<'_>, _: &[String]) -> Outcome {
    let text =
        format!("Appl     Primary/Secondary Versions\n{}\nFOS      {FIRMWARE}\n         {FIRMWARE}\n", "-".repeat(42));
    Ok((text, 0))
}

/// `licenseshow`.
pub fn licenses(_: &mut Room<'_>, _: &[String]) -> Outcome {
    Ok(("No licenses installed.\n".to_owned(), 0))
}

/// `slotshow`: the switch has no blades.
pub fn slots(_: &mut Room<'_>, _: &[String]) -> Outcome {
    Err(Fault::failed("Not supported on this platform"))
}

/// Logical switches of the chassis with their fabric IDs; one for a switch without virtual fabrics.
fn fabrics(room: &mut Room<'_>) -> Result<Vec<SwitchRow>, Fault> {
    let own = room.own()?;
    let same = |row: &SwitchRow| row.switch == own.switch || own.chassis.is_some() && row.chassis == own.chassis;
    let mut rows: Vec<SwitchRow> = room.switches()?.into_iter().filter(same).collect();
    rows.sort_by_key(|row| row.vf_id);
    Ok(rows)
}

/// `lscfg --show [-n]`: the logical switches, and the one of each port.
pub fn logical_switches(room: &mut Room<'_>, words: &[String]) -> Outcome {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--show"] | ["--show", "-n"] => {}
        _ => return Err(usage()),
    }
    if room.own()?.chassis.is_none() {
        return Err(Fault::no_virtual_fabrics());
    }
    let rows = fabrics(room)?;
    let linked = room.all_ports()?.ports;
    let mut owners: BTreeMap<u32, u16> = BTreeMap::new();
    let mut text = "Created switches FIDs(Domain IDs): ".to_owned();
    for row in &rows {
        let id = row.vf_id.unwrap_or(128);
        let mark = if id == 128 { "(ds)" } else { "" };
        text += &format!(" {id}{mark}({})", row.domain.unwrap_or_default());
        owners.extend(model::numbers(&linked, row).into_iter().map(|number| (number, id)));
    }
    text += "\nSlot        0  \nPort\n-------------\n";
    owners.iter().for_each(|(number, id)| text += &format!("{number:>3}   | {id:>4} |\n"));
    Ok((text, 0))
}

/// Zones as a configuration file has them.
fn zoning(database: &Database) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(database.configs.iter().map(|(name, zones)| format!("cfg.{name}:{}", zones.join(";"))));
    for (name, zone) in &database.zones {
        let members = |list: &[Member]| list.iter().map(|member| text(member).to_owned()).collect::<Vec<_>>();
        let property = (!zone.principals.is_empty()).then(|| {
            let names = |member: &Member| match member {
                Member::Alias { alias } => database.aliases.get(alias).map_or(1, Vec::len),
                Member::Port(_) => 1,
            };
            let count = zone.principals.iter().map(names).sum::<usize>().min(0xff);
            format!("00:02:00:00:00:03:01:{count:02x}")
        });
        let all: Vec<String> =
            property.into_iter().chain(members(&zone.principals)).chain(members(&zone.members)).collect();
        lines.push(format!("zone.{name}:{}", all.join(";")));
    }
    for (name, members) in &database.aliases {
        let members: Vec<&str> = members.iter().map(|member| shown(member)).collect();
        lines.push(format!("alias.{name}:{}", members.join(";")));
    }
    lines.push(format!("defaultZoneAccess:{}", u8::from(database.default_open)));
    lines.extend(database.effective.iter().map(|effective| format!("enable:{}", effective.config)));
    lines
}

/// `configshow [-all] [-pattern TEXT]`: the settings of the switch; `-all` adds the chassis and the
/// zones.
pub fn show(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let (mut all, mut pattern) = (false, None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-all" | "--all" => all = true,
            "-pattern" | "--pattern" => pattern = Some(words.next().ok_or_else(usage)?),
            _ => return Err(usage()),
        }
    }
    let (own, ports) = model::all(room)?;
    let fabric = own.vf_id.unwrap_or(128);
    let mut lines = Vec::new();
    if all {
        let chassis = room.chassis_name(&own)?;
        lines.extend([
            "[Configuration upload Information]".to_owned(),
            "Configuration Format = 3.0".to_owned(),
            format!("date = {}", Date::line(room.now.unix_s)),
            format!("FOS version = {FIRMWARE}"),
            format!("Number of LS = {}", if own.chassis.is_some() { fabrics(room)?.len() } else { 0 }),
            String::new(),
            "[Chassis Configuration Begin]".to_owned(),
            format!("chassis.name:{chassis}"),
            format!("chassis.vf.enabled:{}", u8::from(own.chassis.is_some())),
            "[Chassis Configuration End]".to_owned(),
            String::new(),
            format!("[Switch Configuration Begin : {}]", if own.chassis.is_some() { fabric } else { 0 }),
            format!("SwitchName = {}", room.friendly_name()),
            format!("Fabric ID = {fabric}"),
            String::new(),
        ]);
    }
    lines.push("[Configuration]".to_owned());
    lines.push(format!("fabric.domain:{}", own.domain.unwrap_or_default()));
    lines.push(format!("fabric.principal:{}", u8::from(own.principal)));
    lines.push(format!("switch.banner:{}", switches::banner(room)));
    lines.push(format!("switch.name:{}", room.friendly_name()));
    lines.push(format!("switch.wwn:{}", own.switch_name));
    for port in &ports {
        lines.push(format!("portName.{}:{}", port.number, port.name(room)));
    }
    for port in ports.iter().filter(|port| port.disabled()) {
        lines.push(format!("portCfg.{}.persistentDisable:1", port.number));
    }
    if all {
        let (_, database) = seen(room)?;
        lines.extend([String::new(), "[Zoning]".to_owned()]);
        lines.extend(zoning(&database));
        let number = if own.chassis.is_some() { fabric } else { 0 };
        lines.push(format!("[Switch Configuration End : {number}]"));
    }
    if let Some(pattern) = pattern {
        let pattern = pattern.to_ascii_lowercase();
        lines.retain(|line| line.to_ascii_lowercase().contains(&pattern));
    }
    Ok((lines.iter().map(|line| format!("{line}\n")).collect(), 0))
}
