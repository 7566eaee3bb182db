//! Members of zones, and zones that the fabric does not have: without members, or with targets
//! only.

use crate::nxos::reply::{Outcome, Problem, failed};
use crate::nxos::session::{Session, done, number, world_wide_name};
use crate::nxos::settings::{MAX_EMPTY, Vsan};
use crate::nxos::show::zones::Zoning;
use sanloom_api::zone_database::{Definition, Edit, Member};

/// A member with its role.
pub(super) struct Named {
    pub member: Member,
    pub role: Option<&'static str>,
}

/// Reads a member: kind, value, and role.
pub(super) fn named(session: &mut Session<'_>, zoning: &Zoning, text: &str) -> Result<Named, Problem> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let roles = [("initiator", "init"), ("target", "target"), ("both", "both")];
    let last = words.last().copied().unwrap_or_default();
    let role = roles.iter().find(|(long, _)| last.len() > 2 && long.starts_with(last)).map(|(_, role)| *role);
    if role.is_some() && words.len() > 2 {
        words.pop();
    }
    let role = role.filter(|_| words.last() != Some(&last));
    let invalid = || Problem::Syntax("% Invalid command\n".to_owned());
    let member = match words[..] {
        ["pwwn", name] => Member::Port(world_wide_name(name).ok_or_else(|| failed("% Invalid pwwn"))?),
        ["nwwn", name] => {
            let name = world_wide_name(name).ok_or_else(|| failed("% Invalid nwwn"))?;
            Member::Port(format!("wwnn:{name}"))
        }
        ["fcid", id] => {
            let digits = id.strip_prefix("0x").ok_or_else(invalid)?;
            let id = u32::from_str_radix(digits, 16).ok().filter(|id| (1..=0xff_ffff).contains(id));
            Member::Port(format!("0x{:06x}", id.ok_or_else(|| failed("% Invalid fcid"))?))
        }
        ["domain-id", domain, "port-number", port] => {
            let domain = domain.parse::<u8>().ok().filter(|domain| (1..=239).contains(domain));
            let port = port.parse::<u8>().ok();
            let (domain, port) = domain.zip(port).ok_or_else(|| failed("% Invalid domain or port"))?;
            Member::Port(format!("{domain},{port}"))
        }
        ["interface", name] => {
            let port = number(name).ok_or_else(|| failed("% Invalid interface"))?;
            let domain = session.select(zoning.vsan)?.domain.ok_or_else(|| failed("% The switch has no domain"))?;
            Member::Port(format!("{domain},{port}"))
        }
        ["device-alias", alias] if zoning.devices.contains_key(alias) => Member::Alias { alias: alias.to_owned() },
        ["device-alias", alias] => {
            // An alias of another VSAN of the chassis is created in this one, too.
            match session.device_aliases()?.remove(alias) {
                Some(port) => {
                    let create = Edit::CreateAlias { name: alias.to_owned(), members: vec![port] };
                    session.edit(zoning.vsan, vec![create])?;
                    Member::Alias { alias: alias.to_owned() }
                }
                None => return Err(failed(format_args!("% Device-alias {alias} not present"))),
            }
        }
        ["fcalias", alias] => {
            let is_known = zoning.database.aliases.contains_key(alias) && !zoning.devices.contains_key(alias);
            if !is_known {
                return Err(failed(format_args!("% Alias {alias} has no members or is not present")));
            }
            Member::Alias { alias: alias.to_owned() }
        }
        _ => return Err(invalid()),
    };
    Ok(Named { member, role })
}

/// Lists of a definition that get a member with a role.
pub(super) fn lists(zone: &Definition, named: &Named, is_smart: bool) -> Definition {
    let one = vec![named.member.clone()];
    let (is_member, is_principal) = match (is_smart, named.role) {
        (true, Some("target")) => (false, true),
        (true, Some("both")) => (true, true),
        (true, None) if !zone.principals.is_empty() => (true, true),
        _ => (true, false),
    };
    let list = |is_in: bool| if is_in { one.clone() } else { Vec::new() };
    Definition { members: list(is_member), principals: list(is_principal) }
}

/// A zone with the members of two definitions.
pub(super) fn join(zone: &Definition, added: &Definition) -> Definition {
    let both = |own: &[Member], new: &[Member]| own.iter().chain(new).cloned().collect();
    Definition { members: both(&zone.members, &added.members), principals: both(&zone.principals, &added.principals) }
}

/// A zone without roles.
pub(super) fn plain(zone: Definition) -> Definition {
    Definition { members: zone.members, principals: Vec::new() }
}

/// Keeps the targets of a zone without another member. Such a zone permits nothing, and the fabric
/// does not have it before its first initiator.
pub(super) fn keep_targets(session: &Session<'_>, vsan: u16, name: &str, targets: Vec<Member>) -> Outcome {
    if targets.len() > MAX_EMPTY {
        return Err(failed("% Too many targets without an initiator"));
    }
    session.nx.change(vsan, |settings| {
        settings.empty_zones.insert(name.to_owned());
        match targets.is_empty() {
            true => settings.targets.remove(name),
            false => settings.targets.insert(name.to_owned(), targets),
        }
    });
    done()
}

/// Edits that return a zone to its zone sets, when it gets a member again.
pub(super) fn returned(session: &Session<'_>, zoning: &Zoning, name: &str) -> Vec<Edit> {
    let settings = session.nx.vsan(zoning.vsan);
    let sets = settings.sets_of.get(name).into_iter().flatten();
    let edit = |set: &String| {
        let (name, zones) = (set.clone(), vec![name.to_owned()]);
        match zoning.database.configs.contains_key(set) {
            true => Some(Edit::AddToConfig { name, zones }),
            false => settings.empty_sets.contains(set).then_some(Edit::CreateConfig { name, zones }),
        }
    };
    sets.filter_map(edit).collect()
}

impl Vsan {
    /// Forgets a zone that the fabric did not have. Returns whether there was one.
    pub(super) fn forget_zone(&mut self, name: &str) -> bool {
        self.targets.remove(name);
        self.sets_of.remove(name);
        self.empty_zones.remove(name)
    }

    /// Renames a zone that the fabric does not have.
    pub(super) fn rename_zone(&mut self, from: &str, to: &str) {
        let (targets, sets) = (self.targets.remove(from), self.sets_of.remove(from));
        self.targets.extend(targets.map(|targets| (to.to_owned(), targets)));
        self.sets_of.extend(sets.map(|sets| (to.to_owned(), sets)));
        if self.empty_zones.remove(from) {
            self.empty_zones.insert(to.to_owned());
        }
    }

    /// Forgets all objects that the fabric does not have.
    pub(super) fn forget_all(&mut self) {
        self.empty_zones.clear();
        self.empty_sets.clear();
        self.empty_aliases.clear();
        self.targets.clear();
        self.sets_of.clear();
    }
}
