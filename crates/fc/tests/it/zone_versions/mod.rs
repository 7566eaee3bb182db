//! Zone databases whose members contain a version number, so that a mixture of two is detected.

use sanloom_fc::config::{Zone, ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{EffectiveZones, MemberRef, ZoneDatabase, ZoneDefinition};
use sanloom_wire::Wwpn;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Zones with these names, defined and in force, whose members contain the version.
pub fn version(names: &[&str], version: u64) -> ZoneDatabase {
    let mut database = ZoneDatabase { default_zone: ZoneDefault::Closed, ..ZoneDatabase::default() };
    let defined = Arc::make_mut(&mut database.defined);
    let mut effective = EffectiveZones { name: "all".to_owned(), zones: Vec::new() };
    for (number, name) in names.iter().enumerate() {
        let member = |at: u64| ZoneMember::PortName(Wwpn(version << 16 | (number as u64) << 8 | at));
        let members = vec![member(1), member(2)];
        let references = members.iter().copied().map(MemberRef::Member).collect();
        let zone = ZoneDefinition { members: references, principals: Vec::new() };
        defined.zones.insert((*name).to_owned(), zone);
        defined.configs.entry("all".to_owned()).or_default().push((*name).to_owned());
        effective.zones.push(Zone { name: (*name).to_owned(), members, principals: Vec::new() });
    }
    database.effective = Some(Arc::new(effective));
    database
}

/// Versions of all zones in a database, defined and effective.
pub fn versions(database: &ZoneDatabase) -> BTreeSet<u64> {
    let of = |member: &ZoneMember| match member {
        ZoneMember::PortName(name) => name.0 >> 16,
        _ => unreachable!("only port names are used"),
    };
    let defined = database.defined.zones.values().flat_map(|zone| &zone.members).map(|reference| match reference {
        MemberRef::Member(member) => of(member),
        MemberRef::Alias(_) => unreachable!("no aliases are used"),
    });
    let effective = database.effective.iter().flat_map(|effective| &effective.zones).flat_map(|zone| &zone.members);
    defined.chain(effective.map(of)).collect()
}
