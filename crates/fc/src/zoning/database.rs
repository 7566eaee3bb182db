//! Committed zoning of a fabric: [`ZoneDatabase`].

use super::ZoneProblem;
use super::limits::DatabaseSize;
use crate::config::ZoneLimits;
use crate::config::{Zone, ZoneDefault, ZoneMember, Zoning};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Defined and effective zoning of a fabric.
///
/// It is cheap to clone: the parts are shared, and an edit copies only the part that it changes.
/// All switches of a process with the same database therefore share one copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneDatabase {
    /// Definitions: aliases, zones and configurations.
    pub defined: Arc<DefinedZones>,
    /// Zones in force; `None` if no configuration is enabled.
    pub effective: Option<Arc<EffectiveZones>>,
    /// Access between ports in no effective zone.
    pub default_zone: ZoneDefault,
}

impl Default for ZoneDatabase {
    /// No definitions, no effective zones, and a closed default zone (RFC 4936).
    fn default() -> ZoneDatabase {
        ZoneDatabase { defined: Arc::default(), effective: None, default_zone: ZoneDefault::Closed }
    }
}

/// Members of an alias, in the order of definition. An alias cannot contain other aliases.
pub type AliasMembers = Vec<ZoneMember>;

/// Aliases, zones and configurations by name. The three kinds share one name space.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DefinedZones {
    /// Aliases: names for lists of members.
    pub aliases: BTreeMap<String, AliasMembers>,
    /// Zone definitions by name.
    pub zones: BTreeMap<String, ZoneDefinition>,
    /// Configurations (zone sets): names of zones, in the order of definition.
    pub configs: BTreeMap<String, Vec<String>>,
}

/// Definition of a zone; lists keep the order of definition. A zone with principals is a peer zone,
/// see [`Zone`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZoneDefinition {
    /// Members; in a peer zone the members that are not principals.
    pub members: Vec<MemberRef>,
    /// Principals; empty unless the zone is a peer zone.
    pub principals: Vec<MemberRef>,
}

/// Entry in the member list of a zone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MemberRef {
    /// Member that selects one or more ports.
    Member(ZoneMember),
    /// Alias by name; stands for all its members.
    Alias(String),
}

impl fmt::Display for MemberRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberRef::Member(member) => member.fmt(f),
            MemberRef::Alias(name) => f.write_str(name),
        }
    }
}

/// Effective configuration. It is resolved, so that later changes of definitions do not change the
/// zones in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveZones {
    /// Name of the enabled configuration.
    pub name: String,
    /// Zones of the configuration, with aliases resolved.
    pub zones: Vec<Zone>,
}

/// Kinds of named objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectKind {
    /// Name for a list of members.
    Alias,
    /// Zone or peer zone.
    Zone,
    /// Configuration (zone set).
    Config,
}

impl ObjectKind {
    /// Name of the kind with its article, for messages: "an alias".
    pub fn with_article(self) -> &'static str {
        match self {
            ObjectKind::Alias => "an alias",
            ObjectKind::Zone => "a zone",
            ObjectKind::Config => "a configuration",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Alias => "alias",
            ObjectKind::Zone => "zone",
            ObjectKind::Config => "configuration",
        })
    }
}

impl ZoneDatabase {
    /// Returns a database in which the given zones are defined and in force as the configuration
    /// `config`.
    pub fn of_zoning(zoning: &Zoning, config: &str) -> ZoneDatabase {
        let members = |list: &[ZoneMember]| list.iter().copied().map(MemberRef::Member).collect();
        let definition =
            |zone: &Zone| ZoneDefinition { members: members(&zone.members), principals: members(&zone.principals) };
        let zones = zoning.zones.iter().map(|zone| (zone.name.clone(), definition(zone))).collect();
        let mut defined = DefinedZones { zones, ..DefinedZones::default() };
        if !zoning.zones.is_empty() {
            let names = zoning.zones.iter().map(|zone| zone.name.clone()).collect();
            defined.configs.insert(config.to_owned(), names);
        }
        let effective = || Arc::new(EffectiveZones { name: config.to_owned(), zones: zoning.zones.clone() });
        ZoneDatabase {
            defined: Arc::new(defined),
            effective: (!zoning.zones.is_empty()).then(effective),
            default_zone: zoning.default,
        }
    }

    /// Zoning to enforce: the effective zones and the default zone.
    pub fn zoning(&self) -> Zoning {
        let zones = self.effective.as_ref().map_or(Vec::new(), |effective| effective.zones.clone());
        Zoning { zones, default: self.default_zone }
    }

    /// Returns true if ports in no effective zone may communicate with each other.
    pub fn default_is_open(&self) -> bool {
        self.default_zone.is_open(self.effective.as_ref().is_some_and(|effective| !effective.zones.is_empty()))
    }

    /// Zones of a configuration with aliases resolved. Zones keep the order of the configuration,
    /// members the order of the lists; duplicates are removed.
    ///
    /// # Errors
    /// Every undefined name, and an empty configuration.
    pub fn resolve(&self, config: &str) -> Result<Vec<Zone>, Vec<ZoneProblem>> {
        self.defined.resolve(config)
    }

    /// All problems of the database, in the order aliases, zones, configurations, sizes. It may be
    /// committed if the list is empty.
    pub fn problems(&self, limits: &ZoneLimits) -> Vec<ZoneProblem> {
        let mut problems = self.defined.problems(limits);
        problems.extend(limits.exceeded(&self.size()));
        problems
    }

    /// Sizes that [`ZoneLimits`] bounds.
    pub fn size(&self) -> DatabaseSize {
        DatabaseSize::of(self)
    }

    /// FNV-1a hash of the whole content. Two databases with the same generation are equal, except
    /// with a probability of one in 2^64.
    pub fn generation(&self) -> u64 {
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        self.feed(&mut |bytes| {
            for byte in bytes {
                sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        });
        sum
    }

    /// 128-bit FNV-1a hash of the whole content. Management interfaces show it as 32 hexadecimal
    /// digits.
    pub fn checksum(&self) -> u128 {
        let mut sum = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        self.feed(&mut |bytes| {
            for byte in bytes {
                sum = (sum ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
            }
        });
        sum
    }

    /// Passes the content in a canonical form to a hash.
    fn feed(&self, into: &mut dyn FnMut(&[u8])) {
        let mut sum = Content(into);
        sum.tag(match self.default_zone {
            ZoneDefault::Closed => 0,
            ZoneDefault::Open => 1,
            ZoneDefault::OpenWithoutZones => 15,
        });
        for (name, members) in &self.defined.aliases {
            sum.tag(2);
            sum.text(name);
            members.iter().for_each(|member| sum.member(member));
        }
        for (name, zone) in &self.defined.zones {
            sum.tag(3);
            sum.text(name);
            for (list, tag) in [(&zone.members, 4), (&zone.principals, 5)] {
                sum.tag(tag);
                for member in list {
                    match member {
                        MemberRef::Member(member) => sum.member(member),
                        MemberRef::Alias(alias) => {
                            sum.tag(6);
                            sum.text(alias);
                        }
                    }
                }
            }
        }
        for (name, zones) in &self.defined.configs {
            sum.tag(7);
            sum.text(name);
            zones.iter().for_each(|zone| sum.text(zone));
        }
        if let Some(effective) = &self.effective {
            sum.tag(8);
            sum.text(&effective.name);
            for zone in &effective.zones {
                sum.tag(9);
                sum.text(&zone.name);
                zone.members.iter().for_each(|member| sum.member(member));
                sum.tag(10);
                zone.principals.iter().for_each(|member| sum.member(member));
            }
        }
    }
}

struct Content<'f>(&'f mut dyn FnMut(&[u8]));

impl Content<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        (self.0)(bytes);
    }

    fn tag(&mut self, tag: u8) {
        self.bytes(&[tag]);
    }

    /// Hashes the length first, so that different lists of texts cannot yield the same bytes.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u32).to_be_bytes());
        self.bytes(text.as_bytes());
    }

    fn member(&mut self, member: &ZoneMember) {
        match member {
            ZoneMember::PortName(name) => {
                self.tag(11);
                self.bytes(&name.0.to_be_bytes());
            }
            ZoneMember::NodeName(name) => {
                self.tag(12);
                self.bytes(&name.0.to_be_bytes());
            }
            ZoneMember::DomainPort { domain, port } => {
                self.tag(13);
                self.bytes(&[*domain]);
                self.bytes(&port.to_be_bytes());
            }
            ZoneMember::PortId(id) => {
                self.tag(14);
                self.bytes(&id.to_bytes());
            }
        }
    }
}

impl DefinedZones {
    /// Kind of the object with this name. If several exist, the first in the order alias, zone,
    /// configuration.
    pub fn kind_of(&self, name: &str) -> Option<ObjectKind> {
        [ObjectKind::Alias, ObjectKind::Zone, ObjectKind::Config].into_iter().find(|kind| self.has(*kind, name))
    }

    /// Returns true if an object of this kind and name is defined.
    pub fn has(&self, kind: ObjectKind, name: &str) -> bool {
        match kind {
            ObjectKind::Alias => self.aliases.contains_key(name),
            ObjectKind::Zone => self.zones.contains_key(name),
            ObjectKind::Config => self.configs.contains_key(name),
        }
    }

    /// Implements [`ZoneDatabase::resolve`].
    pub(super) fn resolve(&self, config: &str) -> Result<Vec<Zone>, Vec<ZoneProblem>> {
        let Some(names) = self.configs.get(config) else {
            return Err(vec![ZoneProblem::NotFound { kind: ObjectKind::Config, name: config.to_owned() }]);
        };
        let mut problems = Vec::new();
        if names.is_empty() {
            problems.push(ZoneProblem::Empty { kind: ObjectKind::Config, name: config.to_owned() });
        }
        let mut zones = Vec::with_capacity(names.len());
        let mut seen = BTreeSet::new();
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            match self.zones.get(name) {
                Some(zone) => zones.push(Zone {
                    name: name.clone(),
                    members: self.resolve_list(name, &zone.members, &mut problems),
                    principals: self.resolve_list(name, &zone.principals, &mut problems),
                }),
                None => problems.push(ZoneProblem::UnknownZone { config: config.to_owned(), zone: name.clone() }),
            }
        }
        if problems.is_empty() { Ok(zones) } else { Err(problems) }
    }

    fn resolve_list(&self, zone: &str, list: &[MemberRef], problems: &mut Vec<ZoneProblem>) -> Vec<ZoneMember> {
        let mut members = Vec::with_capacity(list.len());
        for member in list {
            match member {
                MemberRef::Member(member) => members.push(*member),
                MemberRef::Alias(alias) => match self.aliases.get(alias) {
                    Some(more) => members.extend(more),
                    None => problems.push(ZoneProblem::UnknownAlias { zone: zone.to_owned(), alias: alias.clone() }),
                },
            }
        }
        let mut seen = BTreeSet::new();
        members.retain(|member| seen.insert(*member));
        members
    }

    /// All problems of the definitions, except the total sizes.
    pub(super) fn problems(&self, limits: &ZoneLimits) -> Vec<ZoneProblem> {
        let mut problems = Vec::new();
        for (name, members) in &self.aliases {
            limits.check(ObjectKind::Alias, name, members.len(), &mut problems);
        }
        for (name, zone) in &self.zones {
            let members = zone.members.len() + zone.principals.len();
            limits.check(ObjectKind::Zone, name, members, &mut problems);
            if members > 0 && zone.members.is_empty() {
                problems.push(ZoneProblem::OnlyPrincipals { zone: name.clone() });
            }
            let aliases = zone.principals.iter().chain(&zone.members).filter_map(|member| match member {
                MemberRef::Alias(alias) if !self.aliases.contains_key(alias) => Some(alias),
                _ => None,
            });
            for alias in aliases.collect::<BTreeSet<_>>() {
                problems.push(ZoneProblem::UnknownAlias { zone: name.clone(), alias: alias.clone() });
            }
            if self.aliases.contains_key(name) {
                problems.push(ZoneProblem::NameTaken { name: name.clone(), by: ObjectKind::Alias });
            }
        }
        for (name, zones) in &self.configs {
            limits.check(ObjectKind::Config, name, zones.len(), &mut problems);
            for zone in zones.iter().filter(|zone| !self.zones.contains_key(*zone)).collect::<BTreeSet<_>>() {
                problems.push(ZoneProblem::UnknownZone { config: name.clone(), zone: zone.clone() });
            }
            for by in [ObjectKind::Alias, ObjectKind::Zone].into_iter().filter(|kind| self.has(*kind, name)) {
                problems.push(ZoneProblem::NameTaken { name: name.clone(), by });
            }
        }
        problems
    }
}
