//! A zone database as zoning objects of FC-SW, the form that MR and SFC carry: [`Zones`].

use super::database::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use super::limits::ZoneLimits;
use super::merge::{MergeConflict, MergeControl, MergeRules, is_outcome, is_sorted, merge};
use crate::config::{Zone, ZoneDefault, ZoneMember};
use crate::fabric::ZoneSet;
use sanloom_wire::sw_ils::{
    ActiveZoneSet, MemberList, ZoneMember as WireMember, ZoneMemberId, ZoneObject, ZoneObjectType, ZoneSets,
};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A zone database, its form on the wire, and its index, each made once and shared by all that hold it.
///
/// All switches of a process that take a database over from the same MR or SFC share it, too: what is decoded hangs on what
/// the message carries.
#[derive(Clone, Debug)]
pub struct Zones {
    decoded: Arc<Decoded>,
    wire: Arc<ZoneSets>,
}

#[derive(Debug)]
struct Decoded {
    database: ZoneDatabase,
    /// What is in force, by port.
    index: OnceLock<Arc<ZoneSet>>,
    /// Whether the database is sound and within the limits that somebody asked for first.
    sound: OnceLock<(ZoneLimits, bool)>,
    /// No list has a member twice, and all are sorted.
    sorted: OnceLock<bool>,
    /// Numbers of the effective zones, by name.
    names: OnceLock<Vec<u32>>,
}

/// Two databases made one, as [`Merged`](super::Merged) says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedZones {
    /// What holds in the joined fabric.
    pub zones: Zones,
    /// Our side has to take it over: it is not what we had.
    pub changes_ours: bool,
    /// Their side has to.
    pub changes_theirs: bool,
}

impl PartialEq for Zones {
    fn eq(&self, other: &Zones) -> bool {
        Arc::ptr_eq(&self.decoded, &other.decoded) || self.database() == other.database()
    }
}

impl Eq for Zones {}

/// Objects that are no zone database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadZones {
    /// A name that is not ASCII.
    Name,
    /// An active zone that is no zone, or a zone set that holds something else.
    Object(ZoneObjectType),
    /// A member that we cannot enforce.
    Member {
        /// Of which zone or alias.
        name: String,
        /// Its type.
        kind: u8,
    },
}

impl fmt::Display for BadZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadZones::Name => f.write_str("a zoning object has a name that is no text"),
            BadZones::Object(kind) => write!(f, "a zoning object of an unexpected type: {kind}"),
            BadZones::Member { name, kind } => write!(f, "`{name}` has a member of type {kind:02x}"),
        }
    }
}

/// Names of the zone set without zones that carries the default zone. Basic zoning has no field for it. No name that an
/// operator can choose begins with this character, and a switch that does not know it stores one more empty set.
const DEFAULT_OPEN: &[u8] = b"$default_zone_open";
const DEFAULT_CLOSED: &[u8] = b"$default_zone_closed";

impl Zones {
    /// Works out the form on the wire.
    pub fn new(database: ZoneDatabase) -> Zones {
        let wire = Arc::new(to_wire(&database));
        let decoded = Arc::new(Decoded::of(database));
        // Whoever reads the message gets this database.
        wire.derived(|| Arc::new(Ok::<_, BadZones>(decoded.clone())));
        Zones { decoded, wire }
    }

    /// Reads what another switch sent. What it does not say of the default zone is `default_zone`.
    ///
    /// # Errors
    /// The first object that has no place in a database.
    pub fn from_wire(wire: &Arc<ZoneSets>, default_zone: ZoneDefault) -> Result<Zones, BadZones> {
        let decode = || from_wire(wire, default_zone).map(|database| Arc::new(Decoded::of(database)));
        let decoded = match says_default_zone(wire) {
            true => (*wire.derived(|| Arc::new(decode()))).clone()?,
            false => decode()?,
        };
        Ok(Zones { decoded, wire: wire.clone() })
    }

    /// The database.
    pub fn database(&self) -> &ZoneDatabase {
        &self.decoded.database
    }

    /// What is in force, by port.
    pub fn index(&self) -> Arc<ZoneSet> {
        self.decoded.index.get_or_init(|| Arc::new(ZoneSet::new(&self.database().zoning()))).clone()
    }

    /// The zone of a name that is in force.
    pub fn effective_zone(&self, name: &[u8]) -> Option<&Zone> {
        let zones = &self.database().effective.as_ref()?.zones;
        let name_of = |number: &u32| zones[*number as usize].name.as_bytes();
        let by_name = || {
            let mut numbers: Vec<u32> = (0..zones.len() as u32).collect();
            numbers.sort_by(|a, b| name_of(a).cmp(name_of(b)));
            numbers
        };
        let names = self.decoded.names.get_or_init(by_name);
        let found = names.binary_search_by(|number| name_of(number).cmp(name)).ok()?;
        zones.get(names[found] as usize)
    }

    /// The database has no [`problem`](ZoneDatabase::problems) under these limits.
    pub fn is_sound(&self, limits: &ZoneLimits) -> bool {
        let check = || self.database().problems(limits).is_empty();
        let (asked, sound) = *self.decoded.sound.get_or_init(|| (*limits, check()));
        if asked == *limits { sound } else { check() }
    }

    /// What [`merge()`](super::merge()) makes of ours and theirs. Where one side has nothing, the other one's database is
    /// the result, and is shared.
    ///
    /// # Errors
    /// Every conflict, sorted.
    pub fn merge(
        &self,
        theirs: &Zones,
        control: MergeControl,
        limits: &ZoneLimits,
        rules: MergeRules,
    ) -> Result<MergedZones, Vec<MergeConflict>> {
        let stays = |all: &Zones, nothing: &Zones| {
            is_outcome(all.database(), nothing.database(), control, rules) && all.is_sorted() && all.is_sound(limits)
        };
        if stays(theirs, self) {
            return Ok(MergedZones { zones: theirs.clone(), changes_ours: self != theirs, changes_theirs: false });
        }
        if stays(self, theirs) {
            return Ok(MergedZones { zones: self.clone(), changes_ours: false, changes_theirs: self != theirs });
        }
        let merged = merge(self.database(), theirs.database(), control, limits, rules)?;
        let zones = match (merged.changes_ours, merged.changes_theirs) {
            (_, false) => theirs.clone(),
            (false, true) => self.clone(),
            (true, true) => Zones::new(merged.database),
        };
        Ok(MergedZones { zones, changes_ours: merged.changes_ours, changes_theirs: merged.changes_theirs })
    }

    fn is_sorted(&self) -> bool {
        *self.decoded.sorted.get_or_init(|| is_sorted(self.database()))
    }

    /// What MR and SFC carry.
    pub fn wire(&self) -> &Arc<ZoneSets> {
        &self.wire
    }

    /// Bytes of an MR with it.
    pub fn encoded_len(&self) -> usize {
        self.wire.encoded_len()
    }
}

impl Decoded {
    fn of(database: ZoneDatabase) -> Decoded {
        Decoded {
            database,
            index: OnceLock::new(),
            sound: OnceLock::new(),
            sorted: OnceLock::new(),
            names: OnceLock::new(),
        }
    }
}

/// The sender has a default zone that belongs to its database.
fn says_default_zone(wire: &ZoneSets) -> bool {
    let name = |object: &ZoneObject| matches!(object, ZoneObject::Set { name, .. } if [DEFAULT_OPEN, DEFAULT_CLOSED].contains(&&**name));
    wire.full().is_some_and(|full| full.iter().any(name))
}

fn to_wire(database: &ZoneDatabase) -> ZoneSets {
    let defined = &database.defined;
    let name = match database.default_zone {
        ZoneDefault::Open => DEFAULT_OPEN,
        ZoneDefault::Closed => DEFAULT_CLOSED,
    };
    let mut full = vec![ZoneObject::Set { protocol: 0, name: name.into(), zones: Vec::new() }];
    for (name, zones) in &defined.configs {
        let zones = zones.iter().map(|zone| list(ZoneObjectType::ZONE, zone, Vec::new())).collect();
        full.push(ZoneObject::Set { protocol: 0, name: name.as_bytes().into(), zones });
    }
    for (name, zone) in &defined.zones {
        let members = zone.members.iter().map(|member| reference(member, 0));
        let principals = zone.principals.iter().map(|member| reference(member, WireMember::PRINCIPAL));
        full.push(ZoneObject::List(list(ZoneObjectType::ZONE, name, members.chain(principals).collect())));
    }
    for (name, members) in &defined.aliases {
        let members = members.iter().map(|member| wire_member(member, 0)).collect();
        full.push(ZoneObject::List(list(ZoneObjectType::ALIAS, name, members)));
    }
    let active = database.effective.as_ref().map(|effective| {
        let zones = effective.zones.iter().map(|zone| {
            let members = zone.members.iter().map(|member| wire_member(member, 0));
            let principals = zone.principals.iter().map(|member| wire_member(member, WireMember::PRINCIPAL));
            ZoneObject::List(list(ZoneObjectType::ZONE, &zone.name, members.chain(principals).collect()))
        });
        ActiveZoneSet { name: effective.name.as_bytes().into(), zones: zones.collect() }
    });
    ZoneSets::new(active, Some(full))
}

fn list(kind: ZoneObjectType, name: &str, members: Vec<WireMember>) -> MemberList {
    MemberList { kind, protocol: 0, name: name.as_bytes().into(), members }
}

fn reference(member: &MemberRef, flags: u8) -> WireMember {
    match member {
        MemberRef::Member(member) => wire_member(member, flags),
        MemberRef::Alias(name) => WireMember { flags, id: ZoneMemberId::Alias(name.as_bytes().into()) },
    }
}

fn wire_member(member: &ZoneMember, flags: u8) -> WireMember {
    let id = match *member {
        ZoneMember::PortName(name) => ZoneMemberId::PortName(name),
        ZoneMember::NodeName(name) => ZoneMemberId::NodeName(name),
        ZoneMember::DomainPort { domain, port } => ZoneMemberId::DomainPort { domain, port },
        ZoneMember::PortId(id) => ZoneMemberId::FcId(id),
    };
    WireMember { flags, id }
}

fn from_wire(wire: &ZoneSets, default_zone: ZoneDefault) -> Result<ZoneDatabase, BadZones> {
    let mut database = ZoneDatabase { default_zone, ..ZoneDatabase::default() };
    let mut defined = DefinedZones::default();
    for object in wire.full().into_iter().flatten() {
        match object {
            ZoneObject::Set { name, zones, .. } => match &**name {
                DEFAULT_OPEN => database.default_zone = ZoneDefault::Open,
                DEFAULT_CLOSED => database.default_zone = ZoneDefault::Closed,
                name => {
                    let mut names = Vec::with_capacity(zones.len());
                    for zone in zones {
                        let zone_name = text(&zone.name)?;
                        expect(zone, ZoneObjectType::ZONE)?;
                        // Other switches define zones within their sets; ours only name them there.
                        if !zone.members.is_empty() {
                            defined.zones.insert(zone_name.clone(), definition(zone)?);
                        }
                        names.push(zone_name);
                    }
                    defined.configs.insert(text(name)?, names);
                }
            },
            ZoneObject::List(list) if list.kind == ZoneObjectType::ALIAS => {
                let members = list.members.iter().map(|item| member(list, item)).collect::<Result<_, _>>()?;
                defined.aliases.insert(text(&list.name)?, members);
            }
            ZoneObject::List(list) => {
                expect(list, ZoneObjectType::ZONE)?;
                defined.zones.insert(text(&list.name)?, definition(list)?);
            }
        }
    }
    database.defined = Arc::new(defined);
    if let Some(active) = wire.active() {
        let mut zones = Vec::with_capacity(active.zones.len());
        for object in &active.zones {
            let ZoneObject::List(list) = object else { return Err(BadZones::Object(ZoneObjectType::SET)) };
            expect(list, ZoneObjectType::ZONE)?;
            let mut zone = Zone { name: text(&list.name)?, members: Vec::new(), principals: Vec::new() };
            for item in &list.members {
                role(item, &mut zone.members, &mut zone.principals).push(member(list, item)?);
            }
            zones.push(zone);
        }
        database.effective = Some(Arc::new(EffectiveZones { name: text(&active.name)?, zones }));
    }
    Ok(database)
}

fn expect(list: &MemberList, kind: ZoneObjectType) -> Result<(), BadZones> {
    if list.kind == kind { Ok(()) } else { Err(BadZones::Object(list.kind)) }
}

fn definition(list: &MemberList) -> Result<ZoneDefinition, BadZones> {
    let mut zone = ZoneDefinition::default();
    for item in &list.members {
        let reference = match &item.id {
            ZoneMemberId::Alias(name) => MemberRef::Alias(text(name)?),
            _ => MemberRef::Member(member(list, item)?),
        };
        role(item, &mut zone.members, &mut zone.principals).push(reference);
    }
    Ok(zone)
}

/// Where a member belongs.
fn role<'l, T>(item: &WireMember, members: &'l mut Vec<T>, principals: &'l mut Vec<T>) -> &'l mut Vec<T> {
    if item.flags & WireMember::PRINCIPAL != 0 { principals } else { members }
}

fn member(list: &MemberList, item: &WireMember) -> Result<ZoneMember, BadZones> {
    match member_of(&item.id) {
        Some(member) => Ok(member),
        None => Err(BadZones::Member { name: text(&list.name)?, kind: item.id.kind() }),
    }
}

/// The member that an identifier names, if it is one that we can enforce.
pub(crate) fn member_of(id: &ZoneMemberId) -> Option<ZoneMember> {
    match *id {
        ZoneMemberId::PortName(name) => Some(ZoneMember::PortName(name)),
        ZoneMemberId::NodeName(name) => Some(ZoneMember::NodeName(name)),
        ZoneMemberId::DomainPort { domain, port } => Some(ZoneMember::DomainPort { domain, port }),
        ZoneMemberId::FcId(id) => Some(ZoneMember::PortId(id)),
        ZoneMemberId::Alias(_) | ZoneMemberId::Other { .. } => None,
    }
}

fn text(name: &[u8]) -> Result<String, BadZones> {
    match std::str::from_utf8(name) {
        Ok(name) if name.is_ascii() => Ok(name.to_owned()),
        _ => Err(BadZones::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::sw_ils::SwIls;
    use sanloom_wire::{FcId, Wwnn, Wwpn};

    fn all_kinds() -> Vec<ZoneMember> {
        vec![
            ZoneMember::PortName(Wwpn(0x2100_0024_ff00_0001)),
            ZoneMember::NodeName(Wwnn(0x2000_0024_ff00_0001)),
            ZoneMember::DomainPort { domain: 3, port: 0x0107 },
            ZoneMember::PortId(FcId::new(0x030700)),
        ]
    }

    fn database(default_zone: ZoneDefault) -> ZoneDatabase {
        let mut references: Vec<MemberRef> = all_kinds().into_iter().map(MemberRef::Member).collect();
        references.push(MemberRef::Alias("disks".to_owned()));
        let peer = ZoneDefinition { members: references.clone(), principals: references.split_off(2) };
        let defined = DefinedZones {
            aliases: [("disks".to_owned(), all_kinds())].into(),
            zones: [("peer".to_owned(), peer), ("plain".to_owned(), ZoneDefinition::default())].into(),
            configs: [("day".to_owned(), vec!["plain".to_owned(), "peer".to_owned()]), ("night".to_owned(), vec![])]
                .into(),
        };
        let zone = Zone { name: "peer".to_owned(), members: all_kinds(), principals: all_kinds() };
        let effective = EffectiveZones { name: "day".to_owned(), zones: vec![zone] };
        ZoneDatabase { defined: Arc::new(defined), effective: Some(Arc::new(effective)), default_zone }
    }

    #[test]
    fn a_database_survives_the_wire() {
        for default_zone in [ZoneDefault::Open, ZoneDefault::Closed] {
            let nothing = ZoneDatabase { default_zone, ..ZoneDatabase::default() };
            for database in [database(default_zone), nothing] {
                let zones = Zones::new(database);
                let mut bytes = Vec::new();
                SwIls::Mr(zones.wire().clone()).emit(&mut bytes);
                assert_eq!(bytes.len(), zones.encoded_len());
                let Ok(SwIls::Mr(wire)) = SwIls::parse(&bytes, None) else { panic!("an MR") };
                assert_eq!(Zones::from_wire(&wire, ZoneDefault::Open), Ok(zones));
            }
        }
    }

    #[test]
    fn other_switches_define_zones_within_their_sets_and_say_nothing_of_the_default_zone() {
        let members = vec![WireMember::new(ZoneMemberId::Alias((*b"disks").into()))];
        let zones = vec![list(ZoneObjectType::ZONE, "zone", members)];
        let set = ZoneObject::Set { protocol: 0, name: (*b"day").into(), zones };
        let wire = Arc::new(ZoneSets::new(None, Some(vec![set])));
        for default_zone in [ZoneDefault::Open, ZoneDefault::Closed] {
            let zones = Zones::from_wire(&wire, default_zone).expect("a database");
            let database = zones.database();
            assert_eq!(database.default_zone, default_zone);
            assert_eq!(database.defined.configs["day"], ["zone"]);
            assert_eq!(database.defined.zones["zone"].members, [MemberRef::Alias("disks".to_owned())]);
        }
    }

    #[test]
    fn what_cannot_be_enforced_is_refused_by_name() {
        let lun = ZoneMemberId::Other { kind: 0xe1, id: [0; 16].into() };
        let alias = ZoneMemberId::Alias((*b"disks").into());
        let list = |id| list(ZoneObjectType::ZONE, "zone", vec![WireMember::new(id)]);
        let active = |list| {
            let set = ActiveZoneSet { name: (*b"day").into(), zones: vec![ZoneObject::List(list)] };
            ZoneSets::new(Some(set), None)
        };
        let odd = MemberList { kind: ZoneObjectType(0x77), ..list(alias.clone()) };
        let unnamed = MemberList { name: [0xff].into(), ..list(alias.clone()) };
        for (sets, bad, text) in [
            (
                active(list(lun)),
                BadZones::Member { name: "zone".to_owned(), kind: 0xe1 },
                "`zone` has a member of type e1",
            ),
            (
                active(list(alias)),
                BadZones::Member { name: "zone".to_owned(), kind: 4 },
                "`zone` has a member of type 04",
            ),
            (
                active(odd),
                BadZones::Object(ZoneObjectType(0x77)),
                "a zoning object of an unexpected type: zoning object type 77",
            ),
            (active(unnamed), BadZones::Name, "a zoning object has a name that is no text"),
        ] {
            let error = Zones::from_wire(&Arc::new(sets), ZoneDefault::Closed).unwrap_err();
            assert_eq!((error.to_string().as_str(), error), (text, bad));
        }
    }
}
