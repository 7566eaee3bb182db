//! How large a zone database may be: [`ZoneLimits`].

use super::database::{MemberRef, ObjectKind, ZoneDatabase};
use super::problem::ZoneProblem;
use crate::config::ZoneMember;
use std::fmt;

/// The largest database that a switch takes. In a fabric the smallest of each holds, see [`ZoneLimits::smallest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneLimits {
    /// Bytes of all objects, defined and effective, as SFC and MR carry them.
    pub database_bytes: usize,
    /// Characters of a name.
    pub name_chars: usize,
    /// Zones defined.
    pub zones: usize,
    /// Aliases defined.
    pub aliases: usize,
    /// Configurations defined.
    pub configs: usize,
    /// Members of one zone or alias.
    pub members: usize,
}

impl Default for ZoneLimits {
    /// Names of 64 characters (FC-GS, zone object names), nothing else limited.
    fn default() -> ZoneLimits {
        let any = usize::MAX;
        ZoneLimits { database_bytes: any, name_chars: MAX_NAME, zones: any, aliases: any, configs: any, members: any }
    }
}

/// Longest name that the standard allows.
const MAX_NAME: usize = 64;

/// A number that [`ZoneLimits`] bounds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)] // named after the fields of `ZoneLimits`
pub enum Limit {
    DatabaseBytes,
    Zones,
    Aliases,
    Configs,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::DatabaseBytes => "bytes",
            Limit::Zones => "zones",
            Limit::Aliases => "aliases",
            Limit::Configs => "configurations",
        })
    }
}

/// Sizes of a whole database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatabaseSize {
    /// Bytes of all objects, defined and effective, as SFC and MR carry them.
    pub database_bytes: usize,
    /// Zones defined.
    pub zones: usize,
    /// Aliases defined.
    pub aliases: usize,
    /// Configurations defined.
    pub configs: usize,
}

impl ZoneLimits {
    /// What holds in a fabric in which these two hold.
    pub fn smallest(self, other: ZoneLimits) -> ZoneLimits {
        ZoneLimits {
            database_bytes: self.database_bytes.min(other.database_bytes),
            name_chars: self.name_chars.min(other.name_chars),
            zones: self.zones.min(other.zones),
            aliases: self.aliases.min(other.aliases),
            configs: self.configs.min(other.configs),
            members: self.members.min(other.members),
        }
    }

    /// The limits that a database of this size exceeds.
    pub fn exceeded(&self, size: &DatabaseSize) -> Vec<ZoneProblem> {
        let all = [
            (Limit::DatabaseBytes, size.database_bytes, self.database_bytes),
            (Limit::Zones, size.zones, self.zones),
            (Limit::Aliases, size.aliases, self.aliases),
            (Limit::Configs, size.configs, self.configs),
        ];
        let over = all.into_iter().filter(|(_, size, max)| size > max);
        over.map(|(limit, size, max)| ZoneProblem::TooLarge { limit, size, max }).collect()
    }

    /// What is wrong with the name and the number of members of one object.
    pub(super) fn check(&self, kind: ObjectKind, name: &str, members: usize, problems: &mut Vec<ZoneProblem>) {
        problems.extend(self.check_name(kind, name).err());
        let name = name.to_owned();
        if members == 0 {
            problems.push(ZoneProblem::Empty { kind, name });
        } else if members > self.members && kind != ObjectKind::Config {
            problems.push(ZoneProblem::TooManyMembers { kind, name, members, max: self.members });
        }
    }

    /// A name starts with a letter; letters, digits and `$ - ^ _` follow (FC-GS, RFC 4936).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_name(&self, kind: ObjectKind, name: &str) -> Result<(), ZoneProblem> {
        let max = self.name_chars.min(MAX_NAME);
        let chars = name.chars().count();
        if chars > max {
            return Err(ZoneProblem::NameTooLong { kind, name: name.to_owned(), chars, max });
        }
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"$-^_".contains(&byte);
        let good = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic()) && name.bytes().all(inner);
        if good { Ok(()) } else { Err(ZoneProblem::BadName { kind, name: name.to_owned() }) }
    }
}

impl DatabaseSize {
    pub(super) fn of(database: &ZoneDatabase) -> DatabaseSize {
        let defined = &database.defined;
        let aliases = defined.aliases.iter().map(|(name, members)| object(name) + list(members));
        let reference = |member: &MemberRef| match member {
            MemberRef::Member(member) => bytes_of(member),
            MemberRef::Alias(name) => MEMBER_HEADER + name_block(name),
        };
        let zones = defined.zones.iter().map(|(name, zone)| {
            object(name) + zone.members.iter().chain(&zone.principals).map(reference).sum::<usize>()
        });
        let configs = defined
            .configs
            .iter()
            .map(|(name, zones)| object(name) + zones.iter().map(|z| name_block(z)).sum::<usize>());
        let effective = database.effective.iter().map(|effective| {
            let zone = |zone: &crate::config::Zone| object(&zone.name) + list(&zone.members) + list(&zone.principals);
            object(&effective.name) + effective.zones.iter().map(zone).sum::<usize>()
        });
        DatabaseSize {
            database_bytes: aliases.chain(zones).chain(configs).chain(effective).sum(),
            zones: defined.zones.len(),
            aliases: defined.aliases.len(),
            configs: defined.configs.len(),
        }
    }
}

/// Type, flags and length of a member (FC-SW, zone member).
const MEMBER_HEADER: usize = 4;

/// Length and text, filled up to words (FC-SW, name entry).
fn name_block(name: &str) -> usize {
    4 + name.len().next_multiple_of(4)
}

/// Type and protocol, name, number of members (FC-SW, zoning object).
fn object(name: &str) -> usize {
    4 + name_block(name) + 4
}

fn list(members: &[ZoneMember]) -> usize {
    members.iter().map(bytes_of).sum()
}

fn bytes_of(member: &ZoneMember) -> usize {
    MEMBER_HEADER
        + match member {
            ZoneMember::PortName(_) | ZoneMember::NodeName(_) => 8,
            ZoneMember::DomainPort { .. } | ZoneMember::PortId(_) => 4,
        }
}
