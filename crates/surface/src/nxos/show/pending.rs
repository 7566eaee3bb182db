//! Changes of zones that wait for a commit, and the zone sets in short.

use super::zones::{Zoning, with_roles, zoning};
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Shown, absent, object, row, table};
use crate::nxos::session::Session;
use sanloom_api::zone_database::Database;
use serde_json::json;
use std::collections::BTreeMap;

/// Members of all zones and zone sets of a database, by the line that begins them.
fn sections(zoning: &Zoning, database: &Database) -> BTreeMap<String, Vec<String>> {
    let vsan = zoning.vsan;
    let zone = |(name, zone): (&String, &sanloom_api::zone_database::Definition)| {
        let member = |(member, role): (_, &str)| format!("{} {role}", zoning.words(member)).trim_end().to_owned();
        let members = with_roles(&zone.members, &zone.principals).into_iter().map(member).collect();
        (format!("zone name {name} vsan {vsan}"), members)
    };
    let set = |(name, zones): (&String, &Vec<String>)| (format!("zoneset name {name} vsan {vsan}"), zones.clone());
    database.zones.iter().map(zone).chain(database.configs.iter().map(set)).collect()
}

/// `show zone pending-diff`: `+` is a line that the commit adds, and `-` one that it removes.
pub fn difference(session: &mut Session<'_>, values: &Values) -> Outcome {
    let mut text = String::new();
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        let old = sections(&zoning, &zoning.status.committed);
        let new = sections(&zoning, &zoning.database);
        for (title, members) in &old {
            match new.get(title) {
                None => {
                    text += &format!("-{title}\n");
                    text.extend(members.iter().map(|member| format!("-  {member}\n")));
                }
                Some(now) if now != members => {
                    text += &format!(" {title}\n");
                    text.extend(members.iter().filter(|own| !now.contains(own)).map(|own| format!("-  {own}\n")));
                    text.extend(now.iter().filter(|own| !members.contains(own)).map(|own| format!("+  {own}\n")));
                }
                Some(_) => {}
            }
        }
        for (title, members) in new.iter().filter(|(title, _)| !old.contains_key(*title)) {
            text += &format!("+{title}\n");
            text.extend(members.iter().map(|member| format!("+  {member}\n")));
        }
    }
    match text.is_empty() {
        true => Err(absent("No pending info found")),
        false => Ok(Shown::text(text)),
    }
}

/// `show zoneset brief`: the zone sets with the names of their zones.
pub fn brief(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in session.wanted(values.vsan())? {
        let zoning = zoning(session, vsan)?;
        for (name, zones) in &zoning.database.configs {
            text += &format!("zoneset name {name} vsan {vsan}\n");
            text.extend(zones.iter().map(|zone| format!("  zone {zone}\n")));
            let zones = zones.iter().map(|zone| json!({"name": zone})).collect();
            rows.push(row(&[("name", name.clone().into()), ("vsan", vsan.into())], [table("zone", zones)]));
        }
    }
    match rows.is_empty() {
        true => Err(absent("Zoneset not present")),
        false => Ok(Shown::with(text, object([table("zoneset", rows)]))),
    }
}
