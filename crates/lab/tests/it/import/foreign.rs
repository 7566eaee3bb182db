//! Lines of other kinds among those of zones: members of foreign objects join no zone.

use sanloom_fc::zoning::{MemberRef, ZoneDatabase};
use sanloom_lab::import::{Choices, Imported, NoteKind, Source, import};
use std::collections::{BTreeMap, BTreeSet};

type Zones = BTreeMap<String, BTreeSet<String>>;

fn run(text: &str) -> (Imported, Zones, ZoneDatabase) {
    let imported = import(&[Source { name: "in.txt".to_owned(), text: text.to_owned() }], &Choices::default());
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    let database = loaded.lab.zone_database;
    let of = |members: Vec<String>| members.into_iter().collect::<BTreeSet<String>>();
    // Aliases are replaced by their members, because zones in force have none.
    let expand = |member: &MemberRef| match member {
        MemberRef::Alias(alias) => database.defined.aliases[alias].iter().map(ToString::to_string).collect(),
        MemberRef::Member(member) => vec![member.to_string()],
    };
    let zones = database.defined.zones.iter().map(|(name, zone)| {
        let members = zone.members.iter().chain(&zone.principals);
        (name.clone(), of(members.flat_map(expand).collect()))
    });
    let mut all: Zones = zones.collect();
    // A lab without configurations has one of all zones, which is not in force here.
    let configs = database.defined.configs.iter().filter(|(name, _)| *name != "all-zones");
    all.extend(configs.map(|(name, zones)| (format!("config {name}"), of(zones.clone()))));
    (imported, all, database)
}

/// Inserts the block before every line, and at the end. No object gets a member that it does not
/// have in the text, and no zone in force is new.
fn inserted_everywhere(text: &str, block: &str) {
    let (_, zones, plain) = run(text);
    assert!(!zones.is_empty());
    let in_force = |database: &ZoneDatabase| -> BTreeSet<String> {
        let effective = database.effective.as_ref();
        effective.iter().flat_map(|effective| &effective.zones).map(|zone| zone.name.clone()).collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..=lines.len() {
        let mixed = [&lines[..at], &block.lines().collect::<Vec<_>>(), &lines[at..]].concat().join("\n");
        let (imported, found, database) = run(&mixed);
        for (name, members) in &found {
            let base = name.strip_suffix("_effective").unwrap_or(name);
            let own = zones.get(base).unwrap_or_else(|| panic!("{name} is new behind line {at}\n{mixed}"));
            let is_effective = |member: &String| own.contains(member.strip_suffix("_effective").unwrap_or(member));
            assert!(members.iter().all(is_effective), "{name} has {members:?} behind line {at}\n{mixed}");
        }
        let names = in_force(&database);
        let known = in_force(&plain);
        assert!(names.iter().all(|name| known.contains(name.strip_suffix("_effective").unwrap_or(name))), "{mixed}");
        let foreign = (at as u32 + 1)..=(at + block.lines().count()) as u32;
        let reported = |line: u32| {
            let notes = &imported.account.notes;
            notes.iter().any(|note| {
                note.kind >= NoteKind::Unplaced
                    && note.places.iter().any(|place| (place.line..=place.last).contains(&line))
            })
        };
        assert!(reported(*foreign.start()), "the foreign block behind line {at} is in no note\n{mixed}");
    }
}

const NX: &str = "switchname m1
vsan database
  vsan 10 name \"A\"
  vsan 10 interface fc1/1
zone name z1 vsan 10
  member pwwn 10:00:00:10:9b:1c:00:01
  member pwwn 50:00:09:73:00:18:1c:04
zone name z2 vsan 10
  member pwwn 10:00:00:10:9b:1c:00:02
  member pwwn 50:00:09:73:00:18:1c:05
zoneset name s vsan 10
  member z1
  member z2
zoneset activate name s vsan 10
interface fc1/1
  switchport speed 16000
";

#[test]
fn members_of_inter_vsan_zones_join_no_zone() {
    let block = "ivr zone name IVR_z1\n  member pwwn 10:00:00:10:9b:99:00:01 vsan 10\n  member pwwn 10:00:00:10:9b:99:00:02 vsan 20\nivr zoneset name IVR_s\n  member IVR_z1";
    inserted_everywhere(NX, block);
    inserted_everywhere(NX, "fcdroplatency network 2000 vsan 10\n  member pwwn 10:00:00:10:9b:99:00:01");
    inserted_everywhere(NX, "zone gs read vsan 10\n  member pwwn 10:00:00:10:9b:99:00:01");
    inserted_everywhere(NX, "zone name odd vsan x\n  member pwwn 10:00:00:10:9b:99:00:01");
}

const FOS: &str = "switchName: sw1
switchDomain: 1
Defined configuration:
 cfg:\tPROD\tz_di; z_h1; 
\t\tpz_arr
 zone:\tpz_arr\t
\t\t00:02:00:00:00:03:01:01; arr_p1; h1
 zone:\tz_di\t1,0; 1,1; 2,4
 zone:\tz_h1\th1; arr_p1
 alias:\tarr_p1\t50:00:09:73:00:18:1c:04
 alias:\th1\t10:00:00:10:9b:1c:00:01

Effective configuration:
 cfg:\tPROD\t
 zone:\tpz_arr\t
\t\t00:02:00:00:00:03:01:01
\t\t50:00:09:73:00:18:1c:04
\t\t10:00:00:10:9b:1c:00:01
 zone:\tz_di\t1,0
\t\t1,1
\t\t2,4
 zone:\tz_h1\t10:00:00:10:9b:1c:00:01
\t\t50:00:09:73:00:18:1c:04
";

#[test]
fn traffic_isolation_zones_and_foreign_headings_join_no_zone() {
    let block = "TI Zone Name:           TI_path1\nPort List:              7,2; 7,3\nConfigured Status: Activated / Failover-Enabled\nEnabled Status: Activated";
    inserted_everywhere(FOS, block);
    inserted_everywhere(FOS, "Redirect Zone Name:   rz\n\t\t7,2; 7,3");
    inserted_everywhere(FOS, "Some other heading\n\t\t10:00:00:10:9b:99:00:01");
}
