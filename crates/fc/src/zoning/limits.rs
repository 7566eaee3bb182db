//! Size limits of a zone database: [`ZoneLimits`].

use super::database::{MemberRef, ObjectKind, ZoneDatabase};
use super::problem::ZoneProblem;
use crate::config::{MAX_ZONE_NAME_CHARS, ZoneLimits, ZoneMember};
use std::fmt;

/// Quantity of a whole database that [`ZoneLimits`] bounds.
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
    /// Size of all defined and effective objects as encoded in SFC and MR, in bytes.
    pub database_bytes: usize,
    /// Number of defined zones.
    pub zones: usize,
    /// Number of defined aliases.
    pub aliases: usize,
    /// Number of defined configurations.
    pub configs: usize,
}

impl ZoneLimits {
    /// Limits of a fabric that contains switches with either of the two limits.
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

    /// Limits that a database of this size exceeds.
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

    /// Checks the name and the number of members of one object, and appends its problems.
    pub(super) fn check(&self, kind: ObjectKind, name: &str, members: usize, problems: &mut Vec<ZoneProblem>) {
        problems.extend(self.check_name(kind, name).err());
        let name = name.to_owned();
        if members == 0 {
            problems.push(ZoneProblem::Empty { kind, name });
        } else if members > self.members && kind != ObjectKind::Config {
            problems.push(ZoneProblem::TooManyMembers { kind, name, members, max: self.members });
        }
    }

    /// Checks a name: a letter followed by letters, digits and `$ - ^ _` (FC-GS, RFC 4936). The
    /// first character may also be `_`, because switches have zones with such names.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn check_name(&self, kind: ObjectKind, name: &str) -> Result<(), ZoneProblem> {
        let max = self.name_chars.min(MAX_ZONE_NAME_CHARS);
        let chars = name.chars().count();
        if chars > max {
            return Err(ZoneProblem::NameTooLong { kind, name: name.to_owned(), chars, max });
        }
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"$-^_".contains(&byte);
        let good = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && name.bytes().all(inner);
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

/// Bytes of type, flags and length of a member (FC-SW, zone member).
const MEMBER_HEADER: usize = 4;

/// Bytes of length and text, padded to whole words (FC-SW, name entry).
fn name_block(name: &str) -> usize {
    4 + name.len().next_multiple_of(4)
}

/// Bytes of type and protocol, name, and number of members (FC-SW, zoning object).
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
