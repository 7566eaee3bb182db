//! Changes of zones, zone sets and FC aliases.

use super::members::{Named, join, keep_targets, lists, named, plain, returned};
use crate::fos::switches::Date;
use crate::fos::zone_edits;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown, failed};
use crate::nxos::session::{Place, Session, done};
use crate::nxos::settings::{MAX_EMPTY, Vsan};
use crate::nxos::show::zones::{Zoning, zoning};
use sanloom_api::control::ZoneAction;
use sanloom_api::zone_database::{Defined, Definition, Edit, Kind, Member};
use std::collections::BTreeSet;

/// Checks the name of a new object.
pub fn check_name(name: &str) -> Result<(), Problem> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !first || name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"$-^_".contains(&byte)) {
        return Err(failed(
            "% Invalid name: a letter, then letters, digits and the characters $ - ^ _, at most 64 in all",
        ));
    }
    Ok(())
}

impl Session<'_> {
    /// Adds edits to the transaction of the client. In the basic mode they are committed at the end
    /// of the request.
    pub(super) fn edit(&mut self, vsan: u16, edits: Vec<Edit>) -> Result<(), Problem> {
        self.select(vsan)?;
        zone_edits::edit(&mut self.room, None, edits)?;
        if !self.nx.vsan(vsan).is_enhanced {
            self.touched.insert(vsan);
        }
        Ok(())
    }

    /// True for a zone with roles in which every member is initiator and target: one without roles,
    /// unless a client has given a member the role `both`.
    fn is_plain(&self, vsan: u16, name: &str, zone: &Definition) -> bool {
        let within = |some: &[Member], all: &[Member]| some.iter().all(|member| all.contains(member));
        !zone.principals.is_empty()
            && within(&zone.members, &zone.principals)
            && within(&zone.principals, &zone.members)
            && !self.nx.vsan(vsan).both.iter().any(|(zone, _)| zone == name)
    }

    /// Commits the transaction of a VSAN. On failure in the basic mode its changes are lost,
    /// because no later commit has them.
    fn commit(&mut self, vsan: u16, what: &str) -> Result<(), Problem> {
        self.select(vsan)?;
        let is_basic = !self.nx.vsan(vsan).is_enhanced;
        let result = self.room.zone(None, ZoneAction::Commit);
        if result.is_err() && is_basic {
            let _ = self.room.zone(None, ZoneAction::Abort);
        }
        let Date { year, day, hour, minute, second, .. } = Date::of(self.room.now.unix_s);
        let month = Date::of(self.room.now.unix_s).month_name();
        let outcome = if result.is_ok() { "complete" } else { "failed" };
        let status = format!("{what} {outcome} at {hour:02}:{minute:02}:{second:02} UTC {month} {day:02} {year}");
        self.nx.change(vsan, |settings| settings.status = status);
        result?;
        Ok(())
    }

    /// Commits what the request has changed in the basic mode.
    ///
    /// # Errors
    /// The first commit that the fabric refuses.
    pub fn commit_touched(&mut self) -> Result<(), Problem> {
        let mut first = Ok(());
        for vsan in std::mem::take(&mut self.touched) {
            first = first.and(self.commit(vsan, "Commit"));
        }
        first
    }
}

/// Sets of the objects without members.
fn empty(settings: &mut Vsan, kind: Kind) -> &mut BTreeSet<String> {
    match kind {
        Kind::Zone => &mut settings.empty_zones,
        Kind::Config => &mut settings.empty_sets,
        Kind::Alias => &mut settings.empty_aliases,
    }
}

fn has(zoning: &Zoning, kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Zone => zoning.database.zones.contains_key(name),
        Kind::Config => zoning.database.configs.contains_key(name),
        Kind::Alias => zoning.database.aliases.contains_key(name),
    }
}

/// Begins the changes of an object, and creates it without members if it does not exist.
fn begin(session: &mut Session<'_>, values: &Values, kind: Kind) -> Result<(u16, String), Problem> {
    let (vsan, name) = (values.vsan().unwrap_or_default(), values.text("NAME").to_owned());
    let zoning = zoning(session, vsan)?;
    if kind == Kind::Alias && zoning.devices.contains_key(&name) {
        return Err(failed("% A device alias has this name"));
    }
    if !has(&zoning, kind, &name) {
        check_name(&name)?;
        let added = session.nx.change(vsan, |settings| {
            let names = empty(settings, kind);
            (names.len() < MAX_EMPTY || names.contains(&name)).then(|| names.insert(name.clone())).is_some()
        });
        if !added {
            return Err(failed("% Too many objects without members"));
        }
    }
    Ok((vsan, name))
}

/// `zone name NAME vsan VSAN`.
pub fn zone(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, name) = begin(session, values, Kind::Zone)?;
    session.place = Place::Zone(vsan, name);
    done()
}

/// `zoneset name NAME vsan VSAN`.
pub fn zone_set(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, name) = begin(session, values, Kind::Config)?;
    session.place = Place::Set(vsan, name);
    done()
}

/// `fcalias name NAME vsan VSAN`.
pub fn fcalias(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, name) = begin(session, values, Kind::Alias)?;
    session.place = Place::Alias(vsan, name);
    done()
}

/// Checks the names of a zone and of its new name or copy. Returns the VSAN, both names, and the
/// definition; `None` for a zone without members.
fn pair(session: &mut Session<'_>, values: &Values) -> Result<(u16, [String; 2], Option<Definition>), Problem> {
    let (vsan, from, to) = (values.vsan().unwrap_or_default(), values.text("OLD"), values.text("NEW"));
    check_name(to)?;
    let zoning = zoning(session, vsan)?;
    let settings = session.nx.vsan(vsan);
    if has(&zoning, Kind::Zone, to) || settings.empty_zones.contains(to) {
        return Err(failed("% Zone already present"));
    }
    let definition = zoning.database.zones.get(from).cloned();
    if definition.is_none() && !settings.empty_zones.contains(from) {
        return Err(failed("% Zone not present"));
    }
    Ok((vsan, [from.to_owned(), to.to_owned()], definition))
}

/// `zone rename OLD NEW vsan VSAN`.
pub fn rename_zone(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, [from, to], definition) = pair(session, values)?;
    if definition.is_none() {
        session.nx.change(vsan, |settings| settings.rename_zone(&from, &to));
        return done();
    }
    session.edit(vsan, vec![Edit::Rename { kind: Kind::Zone, from, to }])?;
    done()
}

/// `zone clone OLD NEW vsan VSAN`.
pub fn clone_zone(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, [from, name], definition) = pair(session, values)?;
    let settings = session.nx.vsan(vsan);
    match definition {
        Some(zone) => session.edit(vsan, vec![Edit::CreateZone { name, zone }])?,
        None if settings.empty_zones.len() >= MAX_EMPTY => return Err(failed("% Too many objects without members")),
        None => {
            let targets = settings.targets.get(&from).cloned().unwrap_or_default();
            return keep_targets(session, vsan, &name, targets);
        }
    }
    done()
}

fn remove(session: &mut Session<'_>, values: &Values, kind: Kind, missing: &str) -> Outcome {
    let (vsan, name) = (values.vsan().unwrap_or_default(), values.text("NAME").to_owned());
    let zoning = zoning(session, vsan)?;
    let was_empty = session.nx.change(vsan, |settings| match kind {
        Kind::Zone => settings.forget_zone(&name),
        _ => {
            if kind == Kind::Config {
                settings.sets_of.values_mut().for_each(|sets| _ = sets.remove(&name));
            }
            empty(settings, kind).remove(&name)
        }
    });
    session.place = Place::Top;
    if !has(&zoning, kind, &name) || kind == Kind::Alias && zoning.devices.contains_key(&name) {
        return if was_empty { done() } else { Err(failed(missing)) };
    }
    let mut edits = vec![Edit::Expunge { kind, name: name.clone() }];
    if kind == Kind::Zone {
        edits.extend(emptied(&zoning, &name));
        let sets: Vec<String> = emptied_sets(&zoning, &name).cloned().collect();
        session.nx.change(vsan, |settings| settings.empty_sets.extend(sets));
    }
    session.nx.change(vsan, |settings| match kind {
        Kind::Alias => settings.fcaliases.remove(&name),
        Kind::Zone => {
            settings.both.retain(|(zone, _)| *zone != name);
            true
        }
        Kind::Config => false,
    });
    session.edit(vsan, edits)?;
    done()
}

/// Zone sets that have no other zone.
fn emptied_sets<'z>(zoning: &'z Zoning, zone: &'z str) -> impl Iterator<Item = &'z String> {
    let only = move |zones: &Vec<String>| !zones.is_empty() && zones.iter().all(|own| own == zone);
    zoning.database.configs.iter().filter(move |(_, zones)| only(zones)).map(|(name, _)| name)
}

/// Deletes the zone sets that lose their last zone: the fabric has none without zones.
fn emptied(zoning: &Zoning, zone: &str) -> Vec<Edit> {
    emptied_sets(zoning, zone).map(|name| Edit::Delete { kind: Kind::Config, name: name.clone() }).collect()
}

/// `no zone name NAME vsan VSAN`.
pub fn no_zone(session: &mut Session<'_>, values: &Values) -> Outcome {
    remove(session, values, Kind::Zone, "% Zone not present")
}

/// `no zoneset name NAME vsan VSAN`.
pub fn no_zone_set(session: &mut Session<'_>, values: &Values) -> Outcome {
    remove(session, values, Kind::Config, "% Zoneset not present")
}

/// `no fcalias name NAME vsan VSAN`.
pub fn no_fcalias(session: &mut Session<'_>, values: &Values) -> Outcome {
    remove(session, values, Kind::Alias, "% Alias not present")
}

/// `member …` of a zone, zone set or FC alias.
pub fn member(session: &mut Session<'_>, values: &Values) -> Outcome {
    let text = values.text("TEXT");
    match session.place.clone() {
        Place::Zone(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            let named = named(session, &zoning, text)?;
            let known = zoning.database.zones.get(&name).cloned();
            let zone = known.clone().unwrap_or_else(|| zoning.kept(&session.nx.vsan(vsan), &name));
            if zone.members.contains(&named.member) || zone.principals.contains(&named.member) {
                return Err(failed("% Duplicate member"));
            }
            let added = lists(&zone, &named, zoning.is_smart(session.nx.vsan(vsan).is_smart));
            if named.role == Some("both") {
                session.nx.change(vsan, |settings| {
                    if settings.both.len() < MAX_EMPTY {
                        settings.both.insert((name.clone(), zoning.words(&named.member)));
                    }
                });
            }
            let all = join(&zone, &added);
            if all.members.is_empty() {
                return keep_targets(session, vsan, &name, all.principals);
            }
            let is_plain = named.role.is_none() && session.is_plain(vsan, &name, &all);
            let returned = if known.is_none() { returned(session, &zoning, &name) } else { Vec::new() };
            let edit = match known {
                Some(_) if is_plain => Edit::ReplaceZone { name: name.clone(), zone: plain(all) },
                Some(_) => Edit::AddToZone { name: name.clone(), zone: added },
                None => Edit::CreateZone { name: name.clone(), zone: all },
            };
            created(session, vsan, Kind::Zone, &name, std::iter::once(edit).chain(returned).collect())
        }
        Place::Set(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            if !zoning.database.zones.contains_key(text) {
                if session.nx.vsan(vsan).sets_of.get(text).is_some_and(|sets| sets.contains(&name)) {
                    return done();
                }
                return Err(failed(format_args!("% Zone {text} has no members or is not present")));
            }
            let zones = vec![text.to_owned()];
            let edit = match zoning.database.configs.get(&name) {
                // The switch accepts a zone that is a member already.
                Some(own) if own.iter().any(|zone| zone == text) => return done(),
                Some(_) => Edit::AddToConfig { name: name.clone(), zones },
                None => Edit::CreateConfig { name: name.clone(), zones },
            };
            created(session, vsan, Kind::Config, &name, vec![edit])
        }
        Place::Alias(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            let Member::Port(port) = named(session, &zoning, text)?.member else {
                return Err(failed("% An alias has no aliases as members"));
            };
            let members = vec![port.clone()];
            let edit = match zoning.database.aliases.get(&name) {
                Some(own) if own.contains(&port) => return Err(failed("% Duplicate member")),
                Some(_) => Edit::AddToAlias { name: name.clone(), members },
                None => Edit::CreateAlias { name: name.clone(), members },
            };
            session.nx.change(vsan, |settings| settings.fcaliases.insert(name.clone()));
            created(session, vsan, Kind::Alias, &name, vec![edit])
        }
        _ => Err(Problem::Syntax("% Invalid command\n".to_owned())),
    }
}

/// Applies edits that give an object a member.
fn created(session: &mut Session<'_>, vsan: u16, kind: Kind, name: &str, edits: Vec<Edit>) -> Outcome {
    session.edit(vsan, edits)?;
    session.nx.change(vsan, |settings| match kind {
        Kind::Zone => {
            let sets = settings.sets_of.remove(name).unwrap_or_default();
            settings.empty_sets.retain(|set| !sets.contains(set));
            settings.forget_zone(name)
        }
        _ => empty(settings, kind).remove(name),
    });
    done()
}

/// `no member …`.
pub fn no_member(session: &mut Session<'_>, values: &Values) -> Outcome {
    let text = values.text("TEXT");
    let missing = || failed("% Member not present");
    match session.place.clone() {
        Place::Zone(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            let Named { member, .. } = named(session, &zoning, text)?;
            let Some(zone) = zoning.database.zones.get(&name) else {
                let mut targets = zoning.kept(&session.nx.vsan(vsan), &name).principals;
                let at = targets.iter().position(|own| *own == member).ok_or_else(missing)?;
                targets.remove(at);
                return keep_targets(session, vsan, &name, targets);
            };
            let list = |own: &[Member]| own.iter().filter(|own| **own == member).cloned().collect::<Vec<_>>();
            let gone = Definition { members: list(&zone.members), principals: list(&zone.principals) };
            if gone.members.is_empty() && gone.principals.is_empty() {
                return Err(missing());
            }
            let words = (name.clone(), zoning.words(&member));
            session.nx.change(vsan, |settings| settings.both.remove(&words));
            let without = |list: &[Member]| list.iter().filter(|own| **own != member).cloned().collect();
            let rest = Definition { members: without(&zone.members), principals: without(&zone.principals) };
            if !rest.members.is_empty() {
                let edit = match session.is_plain(vsan, &name, &rest) {
                    true => Edit::ReplaceZone { name, zone: plain(rest) },
                    false => Edit::RemoveFromZone { name, zone: gone },
                };
                session.edit(vsan, vec![edit])?;
                return done();
            }
            let mut edits = vec![Edit::Expunge { kind: Kind::Zone, name: name.clone() }];
            edits.extend(emptied(&zoning, &name));
            lost(session, &zoning, Kind::Zone, name.clone(), edits)?;
            keep_targets(session, vsan, &name, rest.principals)
        }
        Place::Set(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            let own = zoning.database.configs.get(&name).filter(|own| own.iter().any(|zone| zone == text));
            let Some(own) = own else {
                // A zone without members may be in the zone set.
                let mut sets = session.nx.lock();
                let sets = sets.vsans.entry(vsan).or_default().sets_of.get_mut(text);
                return if sets.is_some_and(|sets| sets.remove(&name)) { done() } else { Err(missing()) };
            };
            if own.len() > 1 {
                session.edit(vsan, vec![Edit::RemoveFromConfig { name, zones: vec![text.to_owned()] }])?;
                return done();
            }
            let edits = vec![Edit::Delete { kind: Kind::Config, name: name.clone() }];
            lost(session, &zoning, Kind::Config, name, edits)
        }
        Place::Alias(vsan, name) => {
            let zoning = zoning(session, vsan)?;
            let Member::Port(port) = named(session, &zoning, text)?.member else { return Err(missing()) };
            let own = zoning.database.aliases.get(&name).filter(|own| own.contains(&port)).ok_or_else(missing)?;
            if own.len() > 1 {
                session.edit(vsan, vec![Edit::RemoveFromAlias { name, members: vec![port] }])?;
                return done();
            }
            let edits = vec![Edit::Expunge { kind: Kind::Alias, name: name.clone() }];
            lost(session, &zoning, Kind::Alias, name, edits)
        }
        _ => Err(Problem::Syntax("% Invalid command\n".to_owned())),
    }
}

/// Applies edits after which an object has no members.
fn lost(session: &mut Session<'_>, zoning: &Zoning, kind: Kind, name: String, edits: Vec<Edit>) -> Outcome {
    session.edit(zoning.vsan, edits)?;
    session.nx.change(zoning.vsan, |settings| {
        if kind == Kind::Zone {
            settings.empty_sets.extend(emptied_sets(zoning, &name).cloned());
            let users = zoning.database.configs.iter().filter(|(_, zones)| zones.contains(&name));
            settings.sets_of.insert(name.clone(), users.map(|(set, _)| set.clone()).collect());
        }
        empty(settings, kind).insert(name);
    });
    done()
}

/// `zoneset activate name NAME vsan VSAN`.
pub fn activate(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (vsan, name) = (values.vsan().unwrap_or_default(), values.text("NAME").to_owned());
    let zoning = zoning(session, vsan)?;
    if !zoning.database.configs.contains_key(&name) {
        let is_empty = session.nx.vsan(vsan).empty_sets.contains(&name);
        return Err(failed(if is_empty { "% Zoneset has no zones" } else { "% Zoneset not present" }));
    }
    session.edit(vsan, vec![Edit::Enable { config: name }])?;
    if session.nx.vsan(vsan).is_enhanced {
        return Ok(Shown::text("Enhanced zone session has been created. Please 'commit' the changes when done.\n"));
    }
    session.touched.remove(&vsan);
    session.commit(vsan, "Activation")?;
    Ok(Shown::text("Zoneset activation initiated. check zone status\n"))
}

/// `no zoneset activate [name NAME] vsan VSAN`.
pub fn deactivate(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    let zoning = zoning(session, vsan)?;
    let own = zoning.database.effective.as_ref().map(|effective| effective.config.as_str());
    if own.is_none() || values.get("NAME").is_some_and(|name| Some(name) != own) {
        return Err(failed("% Zoneset is not active"));
    }
    session.edit(vsan, vec![Edit::Disable])?;
    if session.nx.vsan(vsan).is_enhanced {
        return Ok(Shown::text("Enhanced zone session has been created. Please 'commit' the changes when done.\n"));
    }
    session.touched.remove(&vsan);
    session.commit(vsan, "Deactivation")?;
    Ok(Shown::text("Zoneset deactivation initiated. check zone status\n"))
}

/// `zone commit vsan VSAN`.
pub fn commit(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    session.select(vsan)?;
    if !session.nx.vsan(vsan).is_enhanced {
        return Err(failed("% Zoning is in the basic mode; changes need no commit"));
    }
    session.place = Place::Top;
    if session.room.zone_status()?.transaction.is_none() {
        return Ok(Shown::text("No pending info found\n"));
    }
    session.commit(vsan, "Commit")?;
    Ok(Shown::text("Commit operation initiated. Check zone status\n"))
}

/// `no zone commit vsan VSAN` and `clear zone lock vsan VSAN`: discards the changes of the client.
pub fn discard(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    session.select(vsan)?;
    session.touched.remove(&vsan);
    session.place = Place::Top;
    if session.room.zone_status()?.transaction.is_none() {
        return Ok(Shown::text("No pending info found\n"));
    }
    session.room.zone(None, ZoneAction::Abort)?;
    session.nx.change(vsan, Vsan::forget_all);
    done()
}

fn mode(session: &mut Session<'_>, values: &Values, is_enhanced: bool) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    session.select(vsan)?;
    if session.nx.vsan(vsan).is_enhanced == is_enhanced {
        return Ok(Shown::text("Current zoning mode same as specified zoning mode\n"));
    }
    if !is_enhanced && session.room.zone_status()?.transaction.is_some() {
        return Err(failed(format_args!(
            "% Changes wait for a commit; commit them first with `zone commit vsan {vsan}`"
        )));
    }
    session.commit_touched()?;
    session.nx.change(vsan, |settings| settings.is_enhanced = is_enhanced);
    Ok(Shown::text("Set zoning mode command initiated. Check zone status\n"))
}

/// `zone mode enhanced vsan VSAN`.
pub fn enhanced(session: &mut Session<'_>, values: &Values) -> Outcome {
    mode(session, values, true)
}

/// `no zone mode enhanced vsan VSAN`.
pub fn basic(session: &mut Session<'_>, values: &Values) -> Outcome {
    mode(session, values, false)
}

fn default_zone(session: &mut Session<'_>, values: &Values, open: bool) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    let zoning = zoning(session, vsan)?;
    if zoning.database.default_open == open && !zoning.database.default_auto {
        return Ok(Shown::text("No zone policy change\n"));
    }
    session.edit(vsan, vec![Edit::SetDefault { open, auto: false }])?;
    done()
}

/// `zone default-zone permit vsan VSAN`.
pub fn permit(session: &mut Session<'_>, values: &Values) -> Outcome {
    default_zone(session, values, true)
}

/// `no zone default-zone permit vsan VSAN`.
pub fn deny(session: &mut Session<'_>, values: &Values) -> Outcome {
    default_zone(session, values, false)
}

/// `zone smart-zoning enable vsan VSAN`.
pub fn smart(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    session.select(vsan)?;
    session.nx.change(vsan, |settings| settings.is_smart = Some(true));
    Ok(Shown::text("Smart Zoning distribution initiated. check zone status\n"))
}

/// `no zone smart-zoning enable vsan VSAN`.
pub fn no_smart(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    let zoning = zoning(session, vsan)?;
    if let Some((name, _)) = zoning.database.zones.iter().find(|(_, zone)| !zone.principals.is_empty()) {
        return Err(failed(format_args!("% Zone {name} has members with the device type target; remove them first")));
    }
    session.nx.change(vsan, |settings| settings.is_smart = Some(false));
    done()
}

/// `clear zone database vsan VSAN`: all definitions but the device aliases.
pub fn clear(session: &mut Session<'_>, values: &Values) -> Outcome {
    let vsan = values.vsan().unwrap_or_default();
    let devices = zoning(session, vsan)?.devices;
    let aliases = devices.into_iter().map(|(name, port)| (name, vec![port])).collect();
    session.edit(vsan, vec![Edit::ReplaceAll { defined: Defined { aliases, ..Defined::default() } }])?;
    session.nx.change(vsan, |settings| {
        settings.forget_all();
        settings.both.clear();
    });
    session.place = Place::Top;
    done()
}
