//! A zone database and edits of it as values: [`Database`], [`Edit`].
//!
//! The control socket ([`crate::control`]) and the store of a running instance use them. Members
//! are text as in the lab file (`21:00:00:24:ff:00:00:01`, `wwnn:…`, `3,7`, `0x030700`). In a zone,
//! an alias is an object `{"alias": "name"}`.

use sanloom_fc::config::{BadZoneMember, Zone, ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, MemberRef, ObjectKind, ZoneDatabase, ZoneDefinition, ZoneEdit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Zoning of a fabric, defined and effective: [`ZoneDatabase`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Database {
    /// Aliases: names for lists of members.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// Defined zones by name.
    pub zones: BTreeMap<String, Definition>,
    /// Configurations: names of their zones, in the order of definition.
    pub configs: BTreeMap<String, Vec<String>>,
    /// Configuration in force; `None` if zoning is not in force.
    pub effective: Option<Effective>,
    /// True if ports in no effective zone may communicate with each other.
    pub default_open: bool,
    /// True if ports in no effective zone may communicate until a zone is in force (`auto`).
    /// `default_open` is then the state at present.
    #[serde(skip_serializing_if = "is_false")]
    pub default_auto: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// All definitions of a database: [`DefinedZones`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Defined {
    /// Aliases: names for lists of members.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// Zones by name.
    pub zones: BTreeMap<String, Definition>,
    /// Configurations: names of their zones, in the order of definition.
    pub configs: BTreeMap<String, Vec<String>>,
}

/// Definition of a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Definition {
    /// Members; in a peer zone, only those that are not principals.
    pub members: Vec<Member>,
    /// Principals; a zone with principals is a peer zone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<Member>,
}

/// An entry in the member list of a zone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Member {
    /// One or several ports.
    Port(String),
    /// All members of an alias.
    Alias {
        /// Name of the alias.
        alias: String,
    },
}

/// The configuration in force, with aliases resolved.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Effective {
    /// Name of the enabled configuration.
    pub config: String,
    /// Zones of the configuration.
    pub zones: Vec<EffectiveZone>,
}

/// A zone in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EffectiveZone {
    /// Name of the zone.
    pub zone: String,
    /// Members of the zone, as text.
    pub members: Vec<String>,
    /// Principals of the zone, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<String>,
}

/// Kind of a named zoning object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A name for a list of members.
    Alias,
    /// A zone.
    Zone,
    /// A configuration.
    Config,
}

/// One edit of a database: [`ZoneEdit`]. The field `edit` contains its kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of ZoneEdit, which documents them")]
pub enum Edit {
    CreateAlias {
        name: String,
        members: Vec<String>,
    },
    CreateZone {
        name: String,
        zone: Definition,
    },
    CreateConfig {
        name: String,
        zones: Vec<String>,
    },
    Delete {
        kind: Kind,
        name: String,
    },
    Rename {
        kind: Kind,
        from: String,
        to: String,
    },
    AddToAlias {
        name: String,
        members: Vec<String>,
    },
    RemoveFromAlias {
        name: String,
        members: Vec<String>,
    },
    AddToZone {
        name: String,
        zone: Definition,
    },
    RemoveFromZone {
        name: String,
        zone: Definition,
    },
    AddToConfig {
        name: String,
        zones: Vec<String>,
    },
    RemoveFromConfig {
        name: String,
        zones: Vec<String>,
    },
    ReplaceAlias {
        name: String,
        members: Vec<String>,
    },
    ReplaceZone {
        name: String,
        zone: Definition,
    },
    ReplaceConfig {
        name: String,
        zones: Vec<String>,
    },
    ReplaceAll {
        defined: Defined,
    },
    Expunge {
        kind: Kind,
        name: String,
    },
    Clear,
    SetDefault {
        open: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        auto: bool,
    },
    Enable {
        config: String,
    },
    Disable,
}

fn default_zone(open: bool, auto: bool) -> ZoneDefault {
    match (auto, open) {
        (true, _) => ZoneDefault::OpenWithoutZones,
        (false, true) => ZoneDefault::Open,
        (false, false) => ZoneDefault::Closed,
    }
}

fn texts(members: &[ZoneMember]) -> Vec<String> {
    members.iter().map(ZoneMember::to_string).collect()
}

fn members(texts: &[String]) -> Result<Vec<ZoneMember>, BadZoneMember> {
    texts.iter().map(|text| text.parse()).collect()
}

impl From<&MemberRef> for Member {
    fn from(member: &MemberRef) -> Member {
        match member {
            MemberRef::Member(member) => Member::Port(member.to_string()),
            MemberRef::Alias(name) => Member::Alias { alias: name.clone() },
        }
    }
}

impl TryFrom<&Member> for MemberRef {
    type Error = BadZoneMember;

    fn try_from(member: &Member) -> Result<MemberRef, BadZoneMember> {
        Ok(match member {
            Member::Port(text) => MemberRef::Member(text.parse()?),
            Member::Alias { alias } => MemberRef::Alias(alias.clone()),
        })
    }
}

impl From<&ZoneDefinition> for Definition {
    fn from(zone: &ZoneDefinition) -> Definition {
        let list = |members: &[MemberRef]| members.iter().map(Member::from).collect();
        Definition { members: list(&zone.members), principals: list(&zone.principals) }
    }
}

impl TryFrom<&Definition> for ZoneDefinition {
    type Error = BadZoneMember;

    fn try_from(zone: &Definition) -> Result<ZoneDefinition, BadZoneMember> {
        let list = |members: &[Member]| members.iter().map(MemberRef::try_from).collect::<Result<_, _>>();
        Ok(ZoneDefinition { members: list(&zone.members)?, principals: list(&zone.principals)? })
    }
}

impl From<&DefinedZones> for Defined {
    fn from(defined: &DefinedZones) -> Defined {
        Defined {
            aliases: defined.aliases.iter().map(|(name, members)| (name.clone(), texts(members))).collect(),
            zones: defined.zones.iter().map(|(name, zone)| (name.clone(), zone.into())).collect(),
            configs: defined.configs.clone(),
        }
    }
}

impl TryFrom<&Defined> for DefinedZones {
    type Error = BadZoneMember;

    fn try_from(defined: &Defined) -> Result<DefinedZones, BadZoneMember> {
        let aliases = defined.aliases.iter().map(|(name, list)| Ok((name.clone(), members(list)?)));
        let zones = defined.zones.iter().map(|(name, zone)| Ok((name.clone(), zone.try_into()?)));
        Ok(DefinedZones {
            aliases: aliases.collect::<Result<_, BadZoneMember>>()?,
            zones: zones.collect::<Result<_, BadZoneMember>>()?,
            configs: defined.configs.clone(),
        })
    }
}

impl From<&ZoneDatabase> for Database {
    fn from(database: &ZoneDatabase) -> Database {
        let Defined { aliases, zones, configs } = (&*database.defined).into();
        let effective = |effective: &Arc<EffectiveZones>| Effective {
            config: effective.name.clone(),
            zones: (effective.zones.iter())
                .map(|zone| EffectiveZone {
                    zone: zone.name.clone(),
                    members: texts(&zone.members),
                    principals: texts(&zone.principals),
                })
                .collect(),
        };
        Database {
            aliases,
            zones,
            configs,
            effective: database.effective.as_ref().map(effective),
            default_open: database.default_is_open(),
            default_auto: database.default_zone == ZoneDefault::OpenWithoutZones,
        }
    }
}

impl TryFrom<&Database> for ZoneDatabase {
    type Error = BadZoneMember;

    fn try_from(database: &Database) -> Result<ZoneDatabase, BadZoneMember> {
        let Database { aliases, zones, configs, .. } = database.clone();
        let effective = |effective: &Effective| {
            let zones = effective.zones.iter().map(|zone| {
                let (name, principals) = (zone.zone.clone(), members(&zone.principals)?);
                Ok(Zone { name, members: members(&zone.members)?, principals })
            });
            let zones = zones.collect::<Result<_, BadZoneMember>>()?;
            Ok(Arc::new(EffectiveZones { name: effective.config.clone(), zones }))
        };
        Ok(ZoneDatabase {
            defined: Arc::new(DefinedZones::try_from(&Defined { aliases, zones, configs })?),
            effective: database.effective.as_ref().map(effective).transpose()?,
            default_zone: default_zone(database.default_open, database.default_auto),
        })
    }
}

impl From<ObjectKind> for Kind {
    fn from(kind: ObjectKind) -> Kind {
        match kind {
            ObjectKind::Alias => Kind::Alias,
            ObjectKind::Zone => Kind::Zone,
            ObjectKind::Config => Kind::Config,
        }
    }
}

impl From<Kind> for ObjectKind {
    fn from(kind: Kind) -> ObjectKind {
        match kind {
            Kind::Alias => ObjectKind::Alias,
            Kind::Zone => ObjectKind::Zone,
            Kind::Config => ObjectKind::Config,
        }
    }
}

impl From<&ZoneEdit> for Edit {
    fn from(edit: &ZoneEdit) -> Edit {
        match edit.clone() {
            ZoneEdit::CreateAlias { name, members } => Edit::CreateAlias { name, members: texts(&members) },
            ZoneEdit::CreateZone { name, zone } => Edit::CreateZone { name, zone: (&zone).into() },
            ZoneEdit::CreateConfig { name, zones } => Edit::CreateConfig { name, zones },
            ZoneEdit::Delete { kind, name } => Edit::Delete { kind: kind.into(), name },
            ZoneEdit::Rename { kind, from, to } => Edit::Rename { kind: kind.into(), from, to },
            ZoneEdit::AddToAlias { name, members } => Edit::AddToAlias { name, members: texts(&members) },
            ZoneEdit::RemoveFromAlias { name, members } => Edit::RemoveFromAlias { name, members: texts(&members) },
            ZoneEdit::AddToZone { name, zone } => Edit::AddToZone { name, zone: (&zone).into() },
            ZoneEdit::RemoveFromZone { name, zone } => Edit::RemoveFromZone { name, zone: (&zone).into() },
            ZoneEdit::AddToConfig { name, zones } => Edit::AddToConfig { name, zones },
            ZoneEdit::RemoveFromConfig { name, zones } => Edit::RemoveFromConfig { name, zones },
            ZoneEdit::ReplaceAlias { name, members } => Edit::ReplaceAlias { name, members: texts(&members) },
            ZoneEdit::ReplaceZone { name, zone } => Edit::ReplaceZone { name, zone: (&zone).into() },
            ZoneEdit::ReplaceConfig { name, zones } => Edit::ReplaceConfig { name, zones },
            ZoneEdit::ReplaceAll(defined) => Edit::ReplaceAll { defined: (&*defined).into() },
            ZoneEdit::Expunge { kind, name } => Edit::Expunge { kind: kind.into(), name },
            ZoneEdit::Clear => Edit::Clear,
            ZoneEdit::SetDefault(default) => {
                Edit::SetDefault { open: default == ZoneDefault::Open, auto: default == ZoneDefault::OpenWithoutZones }
            }
            ZoneEdit::Enable(config) => Edit::Enable { config },
            ZoneEdit::Disable => Edit::Disable,
        }
    }
}

impl TryFrom<&Edit> for ZoneEdit {
    type Error = BadZoneMember;

    fn try_from(edit: &Edit) -> Result<ZoneEdit, BadZoneMember> {
        Ok(match edit.clone() {
            Edit::CreateAlias { name, members: list } => ZoneEdit::CreateAlias { name, members: members(&list)? },
            Edit::CreateZone { name, zone } => ZoneEdit::CreateZone { name, zone: (&zone).try_into()? },
            Edit::CreateConfig { name, zones } => ZoneEdit::CreateConfig { name, zones },
            Edit::Delete { kind, name } => ZoneEdit::Delete { kind: kind.into(), name },
            Edit::Rename { kind, from, to } => ZoneEdit::Rename { kind: kind.into(), from, to },
            Edit::AddToAlias { name, members: list } => ZoneEdit::AddToAlias { name, members: members(&list)? },
            Edit::RemoveFromAlias { name, members: list } => {
                ZoneEdit::RemoveFromAlias { name, members: members(&list)? }
            }
            Edit::AddToZone { name, zone } => ZoneEdit::AddToZone { name, zone: (&zone).try_into()? },
            Edit::RemoveFromZone { name, zone } => ZoneEdit::RemoveFromZone { name, zone: (&zone).try_into()? },
            Edit::AddToConfig { name, zones } => ZoneEdit::AddToConfig { name, zones },
            Edit::RemoveFromConfig { name, zones } => ZoneEdit::RemoveFromConfig { name, zones },
            Edit::ReplaceAlias { name, members: list } => ZoneEdit::ReplaceAlias { name, members: members(&list)? },
            Edit::ReplaceZone { name, zone } => ZoneEdit::ReplaceZone { name, zone: (&zone).try_into()? },
            Edit::ReplaceConfig { name, zones } => ZoneEdit::ReplaceConfig { name, zones },
            Edit::ReplaceAll { defined } => ZoneEdit::ReplaceAll(Arc::new((&defined).try_into()?)),
            Edit::Expunge { kind, name } => ZoneEdit::Expunge { kind: kind.into(), name },
            Edit::Clear => ZoneEdit::Clear,
            Edit::SetDefault { open, auto } => ZoneEdit::SetDefault(default_zone(open, auto)),
            Edit::Enable { config } => ZoneEdit::Enable(config),
            Edit::Disable => ZoneEdit::Disable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> ZoneMember {
        ZoneMember::DomainPort { domain: 3, port: 7 }
    }

    /// An alias whose name looks like a port name remains an alias.
    fn zone() -> ZoneDefinition {
        ZoneDefinition {
            members: vec![MemberRef::Alias("a100000000000001".to_owned())],
            principals: vec![MemberRef::Member(member())],
        }
    }

    #[test]
    fn a_database_survives_json() {
        let effective = Zone { name: "z".to_owned(), members: vec![member()], principals: vec![member()] };
        let database = ZoneDatabase {
            defined: Arc::new(DefinedZones {
                aliases: [("a100000000000001".to_owned(), vec![member()])].into(),
                zones: [("z".to_owned(), zone())].into(),
                configs: [("day".to_owned(), vec!["z".to_owned()])].into(),
            }),
            effective: Some(Arc::new(EffectiveZones { name: "day".to_owned(), zones: vec![effective] })),
            default_zone: ZoneDefault::Open,
        };
        for database in [database, ZoneDatabase::default()] {
            let text = serde_json::to_string(&Database::from(&database)).unwrap();
            let read: Database = serde_json::from_str(&text).unwrap();
            assert_eq!(ZoneDatabase::try_from(&read), Ok(database), "{text}");
        }
    }

    #[test]
    fn an_edit_survives_json() {
        let (name, other) = ("n".to_owned(), "o".to_owned());
        let (members, zones) = (vec![member()], vec![other.clone()]);
        let edits = [
            ZoneEdit::CreateAlias { name: name.clone(), members: members.clone() },
            ZoneEdit::CreateZone { name: name.clone(), zone: zone() },
            ZoneEdit::CreateConfig { name: name.clone(), zones: zones.clone() },
            ZoneEdit::Delete { kind: ObjectKind::Zone, name: name.clone() },
            ZoneEdit::Rename { kind: ObjectKind::Config, from: name.clone(), to: other },
            ZoneEdit::AddToAlias { name: name.clone(), members: members.clone() },
            ZoneEdit::RemoveFromAlias { name: name.clone(), members: members.clone() },
            ZoneEdit::ReplaceAlias { name: name.clone(), members: members.clone() },
            ZoneEdit::ReplaceZone { name: name.clone(), zone: zone() },
            ZoneEdit::ReplaceConfig { name: name.clone(), zones: zones.clone() },
            ZoneEdit::ReplaceAll(Arc::new(DefinedZones {
                aliases: [(name.clone(), members)].into(),
                zones: [("z".to_owned(), zone())].into(),
                configs: [("c".to_owned(), vec!["z".to_owned()])].into(),
            })),
            ZoneEdit::Expunge { kind: ObjectKind::Alias, name: name.clone() },
            ZoneEdit::Clear,
            ZoneEdit::AddToZone { name: name.clone(), zone: zone() },
            ZoneEdit::RemoveFromZone { name: name.clone(), zone: zone() },
            ZoneEdit::AddToConfig { name: name.clone(), zones: zones.clone() },
            ZoneEdit::RemoveFromConfig { name: name.clone(), zones },
            ZoneEdit::SetDefault(ZoneDefault::Open),
            ZoneEdit::SetDefault(ZoneDefault::Closed),
            ZoneEdit::SetDefault(ZoneDefault::OpenWithoutZones),
            ZoneEdit::Enable(name),
            ZoneEdit::Disable,
        ];
        for edit in edits {
            let text = serde_json::to_string(&Edit::from(&edit)).unwrap();
            let read: Edit = serde_json::from_str(&text).unwrap();
            assert_eq!(ZoneEdit::try_from(&read), Ok(edit), "{text}");
        }
        let bad: Edit = serde_json::from_str(r#"{"edit":"create_alias","name":"a","members":["nobody"]}"#).unwrap();
        assert_eq!(ZoneEdit::try_from(&bad), Err(BadZoneMember));
    }
}
