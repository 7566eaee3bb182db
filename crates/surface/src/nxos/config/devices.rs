//! Changes of device aliases.

use super::zones::check_name;
use crate::fos::zone_edits;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown, failed};
use crate::nxos::session::{Place, Session, done, world_wide_name};
use crate::nxos::settings::{AliasChange, MAX_PENDING, Pending};
use sanloom_api::zone_database::{Database, Edit, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// `device-alias database`.
pub fn database(session: &mut Session<'_>, _: &Values) -> Outcome {
    session.place = Place::DeviceAliases;
    done()
}

/// Aliases after the pending changes of the client, in which names are unique, and port names, too.
fn seen(session: &mut Session<'_>) -> Result<BTreeMap<String, String>, Problem> {
    let mut all = session.device_aliases()?;
    let settings = session.nx.lock();
    for change in settings.pending.iter().flat_map(|pending| &pending.changes) {
        match change {
            AliasChange::Add(name, port) => _ = all.insert(name.clone(), port.clone()),
            AliasChange::Remove(name) => _ = all.remove(name),
            AliasChange::Rename(from, to) => {
                if let Some(port) = all.remove(from) {
                    all.insert(to.clone(), port);
                }
            }
        }
    }
    Ok(all)
}

/// Keeps a change for the commit. Without distribution it applies at once.
fn change(session: &mut Session<'_>, change: AliasChange) -> Outcome {
    let (who, now) = (session.room.who.clone(), session.room.now.elapsed);
    let mut settings = session.nx.lock();
    let distributes = settings.distributes;
    let pending = settings.pending.get_or_insert_with(|| Pending {
        session: who.session.clone(),
        user: who.user.clone(),
        used: now,
        changes: Vec::new(),
    });
    if pending.session != who.session {
        return Err(failed(format_args!("% The database is locked by the user {}", pending.user)));
    }
    if pending.changes.len() >= MAX_PENDING {
        return Err(failed("% Too many changes wait for a commit"));
    }
    pending.changes.push(change);
    drop(settings);
    if distributes {
        return done();
    }
    let applied = apply(session);
    if applied.is_err() {
        session.nx.lock().pending = None;
    }
    applied
}

/// `device-alias name NAME pwwn WWN`.
pub fn add(session: &mut Session<'_>, values: &Values) -> Outcome {
    let name = values.text("NAME");
    check_name(name)?;
    let port = world_wide_name(values.text("WWN")).ok_or_else(|| failed("% Invalid pwwn"))?;
    let all = seen(session)?;
    if let Some(own) = all.get(name) {
        return match *own == port {
            true => done(),
            false => Err(failed("% Device-alias already present")),
        };
    }
    if all.values().any(|own| *own == port) {
        return Err(failed("% Another device-alias already present with the same pwwn"));
    }
    change(session, AliasChange::Add(name.to_owned(), port))
}

/// `no device-alias name NAME`.
pub fn remove(session: &mut Session<'_>, values: &Values) -> Outcome {
    let name = values.text("NAME");
    if !seen(session)?.contains_key(name) {
        return Err(failed("% Device-alias not present"));
    }
    change(session, AliasChange::Remove(name.to_owned()))
}

/// `device-alias rename OLD NEW`.
pub fn rename(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (from, to) = (values.text("OLD"), values.text("NEW"));
    check_name(to)?;
    let all = seen(session)?;
    if !all.contains_key(from) {
        return Err(failed("% Device-alias not present"));
    }
    if all.contains_key(to) {
        return Err(failed("% Device-alias already present"));
    }
    change(session, AliasChange::Rename(from.to_owned(), to.to_owned()))
}

/// `device-alias commit`.
pub fn commit(session: &mut Session<'_>, _: &Values) -> Outcome {
    let owner = session.nx.lock().pending.as_ref().map(|pending| (pending.session.clone(), pending.user.clone()));
    match owner {
        None => Ok(Shown::text("There are no pending changes\n")),
        Some((owner, user)) if owner != session.room.who.session => {
            Err(failed(format_args!("% The database is locked by the user {user}")))
        }
        Some(_) => apply(session),
    }
}

/// Puts the pending changes into force in each VSAN. After a failure the changes stay pending, and
/// those that are in force in some VSANs are skipped by the next commit.
fn apply(session: &mut Session<'_>) -> Outcome {
    session.commit_touched()?;
    let vsans = session.vsans()?;
    let mut bases = Vec::new();
    for (vsan, _) in &vsans {
        session.select(*vsan)?;
        let status = session.room.zone_status()?;
        if status.transaction.is_some() {
            return Err(failed(format_args!(
                "% A change of zones waits for a commit; commit it first with `zone commit vsan {vsan}`"
            )));
        }
        bases.push(status.committed);
    }
    let changes = session.nx.lock().pending.as_ref().map(|pending| pending.changes.clone()).unwrap_or_default();
    for ((vsan, _), base) in vsans.iter().zip(bases) {
        let edits = edits(base, &changes);
        if !edits.is_empty() {
            session.select(*vsan)?;
            zone_edits::commit(&mut session.room, None, edits)?;
        }
        session.nx.change(*vsan, |settings| {
            for change in &changes {
                match change {
                    AliasChange::Add(name, _) => settings.rename_alias(name, name),
                    AliasChange::Rename(from, to) => settings.rename_alias(from, to),
                    AliasChange::Remove(_) => {}
                }
            }
        });
    }
    session.nx.lock().pending = None;
    done()
}

/// Indices of the removals of aliases that a later change adds again.
fn added_again(changes: &[AliasChange]) -> BTreeSet<usize> {
    let mut is_added = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (at, change) in changes.iter().enumerate().rev() {
        match change {
            AliasChange::Add(name, _) => _ = is_added.insert(name, true),
            AliasChange::Rename(_, name) => _ = is_added.insert(name, false),
            AliasChange::Remove(name) => {
                if is_added.remove(name) == Some(true) {
                    found.insert(at);
                }
            }
        }
    }
    found
}

/// Edits that a database needs for some changes. Zones keep an alias that is removed and added
/// again, because they refer to its name.
fn edits(base: Database, changes: &[AliasChange]) -> Vec<Edit> {
    let mut known = base.aliases;
    let mut edits = Vec::new();
    let mut replaced = BTreeSet::new();
    let added_again = added_again(changes);
    for (at, change) in changes.iter().enumerate() {
        match change.clone() {
            AliasChange::Add(name, port) => {
                let members = vec![port];
                let is_replaced = replaced.remove(&name);
                if known.get(&name) != Some(&members) {
                    known.insert(name.clone(), members.clone());
                    edits.push(match is_replaced {
                        true => Edit::ReplaceAlias { name, members },
                        false => Edit::CreateAlias { name, members },
                    });
                }
            }
            AliasChange::Remove(name) if added_again.contains(&at) && known.contains_key(&name) => {
                replaced.insert(name);
            }
            AliasChange::Remove(name) => {
                if known.remove(&name).is_some() {
                    edits.push(Edit::Expunge { kind: Kind::Alias, name });
                }
            }
            AliasChange::Rename(from, to) => {
                if let Some(members) = known.remove(&from) {
                    known.insert(to.clone(), members);
                    edits.push(Edit::Rename { kind: Kind::Alias, from, to });
                }
            }
        }
    }
    edits
}

/// `device-alias abort`.
pub fn abort(session: &mut Session<'_>, _: &Values) -> Outcome {
    let mut settings = session.nx.lock();
    let is_own = settings.pending.as_ref().is_some_and(|pending| pending.session == session.room.who.session);
    if is_own {
        settings.pending = None;
    }
    drop(settings);
    done()
}

fn option(session: &mut Session<'_>, set: impl FnOnce(&mut crate::nxos::settings::Settings)) -> Outcome {
    if session.nx.lock().pending.is_some() {
        return Err(failed("% Changes of device aliases wait for a commit; commit or abort them first"));
    }
    set(&mut session.nx.lock());
    done()
}

/// `device-alias distribute`.
pub fn distribute(session: &mut Session<'_>, _: &Values) -> Outcome {
    option(session, |settings| settings.distributes = true)
}

/// `no device-alias distribute`.
pub fn no_distribute(session: &mut Session<'_>, _: &Values) -> Outcome {
    option(session, |settings| settings.distributes = false)
}

/// `device-alias mode enhanced`.
pub fn enhanced(session: &mut Session<'_>, _: &Values) -> Outcome {
    option(session, |settings| settings.is_enhanced = true)
}

/// `no device-alias mode enhanced`.
pub fn basic(session: &mut Session<'_>, _: &Values) -> Outcome {
    option(session, |settings| settings.is_enhanced = false)
}
