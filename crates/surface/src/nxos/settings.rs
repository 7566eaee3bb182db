//! Settings of a chassis that only this interface has: [`Shared`].

use sanloom_api::zone_database::{Database, Member};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of objects without members in a VSAN.
pub const MAX_EMPTY: usize = 1_024;
/// Maximum number of pending changes of device aliases.
pub const MAX_PENDING: usize = 65_536;

/// The settings of one chassis, shared by the interfaces of its logical switches. The fabric has no
/// place for them, so they last as long as the process.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Settings>>);

/// Settings of one chassis.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of each VSAN.
    pub vsans: BTreeMap<u16, Vsan>,
    /// Settings of ports by number.
    pub ports: BTreeMap<u32, PortSettings>,
    /// True if changes of device aliases wait for a commit.
    pub distributes: bool,
    /// True if the device aliases are in the enhanced mode.
    pub is_enhanced: bool,
    /// Changes of device aliases that wait for a commit.
    pub pending: Option<Pending>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            vsans: BTreeMap::new(),
            ports: BTreeMap::new(),
            distributes: true,
            is_enhanced: false,
            pending: None,
        }
    }
}

/// Settings of a VSAN.
#[derive(Clone, Debug, Default)]
pub struct Vsan {
    /// Name that a client has given.
    pub name: Option<String>,
    /// True in the enhanced mode of zoning: changes wait for a commit.
    pub is_enhanced: bool,
    /// Smart zoning; without a value, it follows the zones.
    pub is_smart: Option<bool>,
    /// Zones without members, which the fabric does not have.
    pub empty_zones: BTreeSet<String>,
    /// Zone sets without members.
    pub empty_sets: BTreeSet<String>,
    /// FC aliases without members.
    pub empty_aliases: BTreeSet<String>,
    /// Targets of zones without another member, which the fabric does not have.
    pub targets: BTreeMap<String, Vec<Member>>,
    /// Zone sets of zones that the fabric does not have. Each zone returns to its zone sets with
    /// its next member.
    pub sets_of: BTreeMap<String, BTreeSet<String>>,
    /// FC aliases of one port name, which would be device aliases otherwise.
    pub fcaliases: BTreeSet<String>,
    /// Zones and their members to which a client has given the role `both`.
    pub both: BTreeSet<(String, String)>,
    /// Result of the last change, as `show zone status` prints it.
    pub status: String,
}

impl Vsan {
    /// Forgets that names are those of FC aliases, if no database of the switch has an alias of the
    /// name: another interface has deleted it.
    pub fn forget_deleted(&mut self, databases: &[&Database]) {
        self.fcaliases.retain(|name| databases.iter().any(|own| own.aliases.contains_key(name)));
    }

    /// Gives a device alias another name in the zones that the fabric does not have, and forgets
    /// that an FC alias had the name.
    pub fn rename_alias(&mut self, from: &str, to: &str) {
        self.fcaliases.remove(to);
        for member in self.targets.values_mut().flatten() {
            if let Member::Alias { alias } = member
                && alias == from
            {
                to.clone_into(alias);
            }
        }
    }
}

/// Settings of a port that have no effect in the fabric.
#[derive(Clone, Debug, Default)]
pub struct PortSettings {
    /// Speed, for example `16000`.
    pub speed: Option<String>,
    /// Mode, for example `F`.
    pub mode: Option<String>,
    /// Trunk mode, for example `on`.
    pub trunk: Option<String>,
}

/// Time without a request after which pending changes of device aliases are lost, as those of
/// zones.
const PENDING_TIME: Duration = Duration::from_secs(300);

impl Settings {
    /// Drops pending changes of a session that made no request for [`PENDING_TIME`]. A request of
    /// the session keeps its own.
    pub fn renew(&mut self, session: &str, now: Duration) {
        self.pending.take_if(|pending| now.saturating_sub(pending.used) >= PENDING_TIME);
        if let Some(own) = self.pending.as_mut().filter(|pending| pending.session == session) {
            own.used = now;
        }
    }
}

/// Changes of device aliases that wait for a commit.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Session that owns them.
    pub session: String,
    /// User of the session.
    pub user: String,
    /// Time of the last request of the session.
    pub used: Duration,
    /// The changes in their order.
    pub changes: Vec<AliasChange>,
}

/// One change of device aliases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AliasChange {
    /// A new alias of a port name.
    Add(String, String),
    /// An alias is removed.
    Remove(String),
    /// An alias gets another name.
    Rename(String, String),
}

impl Shared {
    /// The settings.
    pub fn lock(&self) -> MutexGuard<'_, Settings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The settings of a VSAN.
    pub fn vsan(&self, vsan: u16) -> Vsan {
        self.lock().vsans.get(&vsan).cloned().unwrap_or_default()
    }

    /// Changes the settings of a VSAN.
    pub fn change<T>(&self, vsan: u16, change: impl FnOnce(&mut Vsan) -> T) -> T {
        change(self.lock().vsans.entry(vsan).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_aliases_are_lost_after_five_minutes_without_a_request_of_their_session() {
        let at = Duration::from_secs;
        let pending = Pending { session: "a".to_owned(), user: "admin".to_owned(), used: at(0), changes: Vec::new() };
        let mut settings = Settings { pending: Some(pending), ..Settings::default() };
        settings.renew("b", at(299));
        settings.renew("a", at(299));
        settings.renew("b", at(598));
        assert!(settings.pending.is_some(), "the request at 299 s has renewed them");
        settings.renew("b", at(599));
        assert!(settings.pending.is_none());
    }
}
