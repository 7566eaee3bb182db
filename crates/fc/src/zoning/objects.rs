//! Zone database in the form of FC-SW zoning objects, as carried by MR and SFC: [`Zones`].

use super::ZoneCatalogue;
use super::database::{DefinedZones, EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use super::merge::{MergeConflict, is_outcome, is_sorted, merge};
use crate::config::ZoneLimits;
use crate::config::{MergeControl, MergeRules};
use crate::config::{Zone, ZoneDefault, ZoneMember};
use crate::fabric::ZoneSet;
use sanloom_wire::sw_ils::{
    ActiveZoneSet, MemberList, ZoneMember as WireMember, ZoneMemberId, ZoneObject, ZoneObjectType, ZoneSets,
};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Zone database with its wire format and its index. Each is computed once and shared by all
/// clones.
///
/// Switches with a common [`ZoneCatalogue`] that adopt a database from the same MR or SFC share it
/// as well.
#[derive(Clone, Debug)]
pub struct Zones {
    decoded: Arc<Decoded>,
    wire: Arc<ZoneSets>,
    catalogue: ZoneCatalogue,
}

#[derive(Debug)]
pub(super) struct Decoded {
    database: ZoneDatabase,
    /// Effective zones indexed by port.
    index: OnceLock<Arc<ZoneSet>>,
    /// First limits checked, and whether the database is sound within them.
    sound: OnceLock<(ZoneLimits, bool)>,
    /// True if all lists are sorted and without duplicates.
    sorted: OnceLock<bool>,
    /// Indices of the effective zones, sorted by zone name.
    names: OnceLock<Vec<u32>>,
}

/// Result of a merge, the counterpart of [`Merged`](super::Merged) with wire format and index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedZones {
    /// Database of the joined fabric.
    pub zones: Zones,
    /// True if it differs from our database.
    pub changes_ours: bool,
    /// True if it differs from their database.
    pub changes_theirs: bool,
}

impl PartialEq for Zones {
    fn eq(&self, other: &Zones) -> bool {
        Arc::ptr_eq(&self.decoded, &other.decoded) || self.database() == other.database()
    }
}

impl Eq for Zones {}

/// Error for zoning objects that do not form a zone database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadZones {
    /// A name is not ASCII.
    Name,
    /// An active object is not a zone, or a zone set contains another kind of object.
    Object(ZoneObjectType),
    /// A member of a type that cannot be enforced.
    Member {
        /// Name of the zone or alias with the member.
        name: String,
        /// Member type code.
        kind: u8,
    },
}

impl fmt::Display for BadZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadZones::Name => f.write_str("the name of a zoning object is not ASCII"),
            BadZones::Object(kind) => write!(f, "unexpected zoning object: {kind}"),
            BadZones::Member { name, kind } => write!(f, "`{name}` has a member of the unsupported type {kind:02x}"),
        }
    }
}

/// Names of the empty zone set that carries the default zone, because basic zoning has no field for
/// it. No valid name begins with this character. A switch that does not support the convention
/// stores one more empty set.
const DEFAULT_OPEN: &[u8] = b"$default_zone_open";
const DEFAULT_CLOSED: &[u8] = b"$default_zone_closed";
const DEFAULT_AUTO: &[u8] = b"$default_zone_auto";

impl Zones {
    /// Encodes a database, with a catalogue of its own.
    pub fn new(database: ZoneDatabase) -> Zones {
        Zones::in_catalogue(ZoneCatalogue::default(), database)
    }

    /// Encodes a database. Switches with the same catalogue share it.
    pub fn in_catalogue(catalogue: ZoneCatalogue, database: ZoneDatabase) -> Zones {
        let wire = Arc::new(to_wire(&database));
        let decoded = Arc::new(Decoded::of(database));
        catalogue.insert(&wire, &decoded);
        Zones { decoded, wire, catalogue }
    }

    /// Encodes a database that replaces this one, in the same catalogue.
    pub fn successor(&self, database: ZoneDatabase) -> Zones {
        Zones::in_catalogue(self.catalogue.clone(), database)
    }

    /// Decodes zoning objects from another switch. If they contain no default zone, that of this
    /// database applies.
    ///
    /// # Errors
    /// The first object that a database cannot contain.
    pub fn decode(&self, wire: &Arc<ZoneSets>) -> Result<Zones, BadZones> {
        let (wire, catalogue) = (wire.clone(), self.catalogue.clone());
        let shared = contains_default_zone(&wire);
        if let Some(decoded) = catalogue.find(&wire).filter(|_| shared) {
            return Ok(Zones { decoded, wire, catalogue });
        }
        let decoded = Arc::new(Decoded::of(from_wire(&wire, self.database().default_zone)?));
        if shared {
            catalogue.insert(&wire, &decoded);
        }
        Ok(Zones { decoded, wire, catalogue })
    }

    /// Decoded database.
    pub fn database(&self) -> &ZoneDatabase {
        &self.decoded.database
    }

    /// Effective zones indexed by port.
    pub fn index(&self) -> Arc<ZoneSet> {
        self.decoded.index.get_or_init(|| Arc::new(ZoneSet::new(&self.database().zoning()))).clone()
    }

    /// Effective zone with this name.
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

    /// Returns true if the database has no [`problem`](ZoneDatabase::problems) under these limits.
    pub fn is_sound(&self, limits: &ZoneLimits) -> bool {
        let check = || self.database().problems(limits).is_empty();
        let (checked, sound) = *self.decoded.sound.get_or_init(|| (*limits, check()));
        if checked == *limits { sound } else { check() }
    }

    /// Computes [`merge()`](super::merge()) of our and their zones. If one side is empty, the
    /// result shares the database of the other side.
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
            (true, true) => self.successor(merged.database),
        };
        Ok(MergedZones { zones, changes_ours: merged.changes_ours, changes_theirs: merged.changes_theirs })
    }

    fn is_sorted(&self) -> bool {
        *self.decoded.sorted.get_or_init(|| is_sorted(self.database()))
    }

    /// Wire format, as carried by MR and SFC.
    pub fn wire(&self) -> &Arc<ZoneSets> {
        &self.wire
    }

    /// Length of an MR with this database, in bytes.
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

/// Returns true if the sender's database includes a default zone.
fn contains_default_zone(wire: &ZoneSets) -> bool {
    let name = |object: &ZoneObject| matches!(object, ZoneObject::Set { name, .. } if [DEFAULT_OPEN, DEFAULT_CLOSED, DEFAULT_AUTO].contains(&&**name));
    wire.full().is_some_and(|full| full.iter().any(name))
}

fn to_wire(database: &ZoneDatabase) -> ZoneSets {
    let defined = &database.defined;
    let name = match database.default_zone {
        ZoneDefault::Open => DEFAULT_OPEN,
        ZoneDefault::Closed => DEFAULT_CLOSED,
        ZoneDefault::OpenWithoutZones => DEFAULT_AUTO,
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
                DEFAULT_AUTO => database.default_zone = ZoneDefault::OpenWithoutZones,
                name => {
                    let mut names = Vec::with_capacity(zones.len());
                    for zone in zones {
                        let zone_name = text(&zone.name)?;
                        expect(zone, ZoneObjectType::ZONE)?;
                        // Other switches define zones inside their zone sets; this implementation
                        // lists only the names there.
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

/// Selects the list to which a wire member belongs.
fn role<'l, T>(item: &WireMember, members: &'l mut Vec<T>, principals: &'l mut Vec<T>) -> &'l mut Vec<T> {
    if item.flags & WireMember::PRINCIPAL != 0 { principals } else { members }
}

fn member(list: &MemberList, item: &WireMember) -> Result<ZoneMember, BadZones> {
    match member_of(&item.id) {
        Some(member) => Ok(member),
        None => Err(BadZones::Member { name: text(&list.name)?, kind: item.id.kind() }),
    }
}

/// Zone member for a wire identifier; `None` if its type cannot be enforced.
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

    /// Empty database of a switch with this default zone.
    fn of_default(default_zone: ZoneDefault) -> Zones {
        Zones::new(ZoneDatabase { default_zone, ..ZoneDatabase::default() })
    }

    #[test]
    fn a_database_survives_the_wire() {
        for default_zone in [ZoneDefault::Open, ZoneDefault::OpenWithoutZones, ZoneDefault::Closed] {
            let nothing = ZoneDatabase { default_zone, ..ZoneDatabase::default() };
            for database in [database(default_zone), nothing] {
                let zones = Zones::new(database);
                let other = of_default(ZoneDefault::Open);
                let mut bytes = Vec::new();
                SwIls::Mr(zones.wire().clone()).emit(&mut bytes);
                assert_eq!(bytes.len(), zones.encoded_len());
                let Ok(SwIls::Mr(wire)) = SwIls::parse(&bytes, None) else { panic!("an MR") };
                assert_eq!(other.decode(&wire), Ok(zones.clone()));
                let shared = zones.decode(zones.wire()).expect("its own payload");
                assert!(Arc::ptr_eq(&shared.decoded, &zones.decoded));
            }
        }
    }

    #[test]
    fn zones_defined_within_a_set_are_read_and_a_missing_default_zone_stays_unchanged() {
        let members = vec![WireMember::new(ZoneMemberId::Alias((*b"disks").into()))];
        let zones = vec![list(ZoneObjectType::ZONE, "zone", members)];
        let set = ZoneObject::Set { protocol: 0, name: (*b"day").into(), zones };
        let wire = Arc::new(ZoneSets::new(None, Some(vec![set])));
        for default_zone in [ZoneDefault::Open, ZoneDefault::OpenWithoutZones, ZoneDefault::Closed] {
            let zones = of_default(default_zone).decode(&wire).expect("a database");
            let database = zones.database();
            assert_eq!(database.default_zone, default_zone);
            assert_eq!(database.defined.configs["day"], ["zone"]);
            assert_eq!(database.defined.zones["zone"].members, [MemberRef::Alias("disks".to_owned())]);
        }
    }

    #[test]
    fn a_zone_that_cannot_be_enforced_is_named_in_the_error() {
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
                "`zone` has a member of the unsupported type e1",
            ),
            (
                active(list(alias)),
                BadZones::Member { name: "zone".to_owned(), kind: 4 },
                "`zone` has a member of the unsupported type 04",
            ),
            (active(odd), BadZones::Object(ZoneObjectType(0x77)), "unexpected zoning object: zoning object type 77"),
            (active(unnamed), BadZones::Name, "the name of a zoning object is not ASCII"),
        ] {
            let error = of_default(ZoneDefault::Closed).decode(&Arc::new(sets)).unwrap_err();
            assert_eq!((error.to_string().as_str(), error), (text, bad));
        }
    }
}
