//! Durable writes (FUA, or a virtual disk with its cache off): once acknowledged, none of their
//! data are in a volatile cache of a back end.

use crate::forward::bed::Bed;
use crate::forward::cases::{EDGE, GOOD, bed, ended};
use crate::forward::disk::BLOCK;
use sanloom_scsi::disk::WriteCache;
use sanloom_scsi::iscsi::forward::{BackUnit, Kept};
use sanloom_scsi::map::LunId;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::Header;
use sanloom_wire::scsi::mode::{ModePage, ModeParameters, page};

const CACHES: [WriteCache; 3] = [WriteCache::Absent, WriteCache::Fua, WriteCache::Synchronize];

/// Sets the cache modes that the two back ends report.
fn set_caches(bed: &mut Bed, caches: [WriteCache; 2]) {
    for (back, cache) in (0..).zip(caches) {
        let medium = &mut bed.media[usize::from(back)];
        medium.cache = cache;
        medium.volatile.clear();
        bed.units(back, &[BackUnit { id: LunId(back.into()), lun: [0; 8], cache }]);
    }
}

fn write(bed: &mut Bed, id: u64, lba: u64, blocks: u32, fua: bool) {
    let data = vec![id as u8; blocks as usize * BLOCK];
    bed.submit(id, Cdb::Write { lba, blocks, fua }, DataDirection::Write, data);
}

fn read(bed: &mut Bed, id: u64, lba: u64, blocks: u32, fua: bool) {
    let room = vec![0; blocks as usize * BLOCK];
    bed.submit(id, Cdb::Read { lba, blocks, fua }, DataDirection::Read, room);
}

/// Sets WCE of the virtual disk to 0.
fn without_cache(bed: &mut Bed) {
    let mut list = Vec::new();
    let pages = vec![ModePage::new(page::CACHING, 20)];
    ModeParameters { medium: 0, device: 0, descriptor: None, pages }.emit(&mut list, true);
    let cdb = Cdb::ModeSelect { long: true, page_format: true, save: false, list_len: list.len() as u16 };
    bed.submit(900, cdb, DataDirection::Write, list);
    bed.run_until_idle();
    assert_eq!(ended(bed, 900), GOOD);
}

/// FUA bits of the commands in transit to each back end.
fn flags(bed: &mut Bed) -> Vec<bool> {
    bed.host_alone();
    let heads = (0..2).flat_map(|back| bed.in_transit(back));
    let flag = |header| match header {
        Header::ScsiCommand(command) => match Cdb::parse(&command.cdb) {
            Cdb::Read { fua, .. } | Cdb::Write { fua, .. } => Some(fua),
            other => panic!("{other}"),
        },
        _ => None,
    };
    heads.filter_map(|head| flag(head.header)).collect()
}

/// Number of blocks of the volume in this range that are only in a cache.
fn volatile(bed: &Bed, lba: u64, blocks: u32) -> usize {
    let map = bed.volumes.map();
    let epoch = map.epoch(bed.disks[0].unwrap()).unwrap();
    let places = map.resolve(epoch, lba, blocks).unwrap().flat_map(|piece| {
        (0..u64::from(piece.blocks)).map(move |n| (usize::from(piece.place.lun.0), piece.place.lba + n))
    });
    places.filter(|(lun, lba)| bed.media[*lun].volatile.contains(lba)).count()
}

#[test]
fn fua_is_forwarded_if_needed_and_keeps_commands_from_back_ends_that_ignore_it() {
    let [absent, obeys, flushes] = CACHES;
    let cases = [
        // FUA bits of a write over both back ends, or `None` if it takes the conventional path.
        ([absent, absent], true, Some([false, false])),
        ([obeys, absent], true, Some([true, false])),
        ([absent, obeys], true, Some([false, true])),
        ([obeys, obeys], false, Some([false, false])),
        ([flushes, obeys], false, Some([false, false])),
        ([flushes, absent], true, None),
        ([obeys, flushes], true, None),
    ];
    for (caches, fua, expected) in cases {
        let mut bed = bed();
        set_caches(&mut bed, caches);
        write(&mut bed, 1, EDGE - 1, 2, fua);
        let sent = flags(&mut bed);
        assert_eq!(sent, expected.map_or(vec![], Vec::from), "{caches:?} {fua}");
        bed.run_until_idle();
        assert_eq!((ended(&mut bed, 1), bed.content()[EDGE as usize * BLOCK]), (GOOD, 1));
        assert!(!fua || volatile(&bed, EDGE - 1, 2) == 0, "{caches:?}");
        let kept = bed.counters().kept[Kept::Cache as usize];
        assert_eq!(kept, u64::from(expected.is_none()), "{caches:?} {fua}");
        bed.assert_idle();
    }
}

#[test]
fn a_virtual_disk_without_a_cache_is_durable_on_back_ends_with_a_cache() {
    for (cache, sent) in
        [(WriteCache::Absent, vec![false]), (WriteCache::Fua, vec![true]), (WriteCache::Synchronize, vec![])]
    {
        let mut bed = bed();
        without_cache(&mut bed);
        set_caches(&mut bed, [cache; 2]);
        write(&mut bed, 1, 4, 2, false);
        assert_eq!(flags(&mut bed), sent, "{cache:?}");
        bed.run_until_idle();
        assert_eq!((ended(&mut bed, 1), volatile(&bed, 4, 2)), (GOOD, 0), "{cache:?}");
        // Reads are not affected.
        read(&mut bed, 2, 4, 2, false);
        assert_eq!(flags(&mut bed), [false], "{cache:?}");
        bed.run_until_idle();
        assert_eq!(ended(&mut bed, 2), GOOD);
    }
}

#[test]
fn acknowledged_durable_data_are_never_only_in_a_volatile_cache() {
    const AT_ONCE: u64 = 3;
    let (mut forwarded, mut kept, mut left) = (0, 0, 0);
    for seed in 0..100 {
        let mut chance = SplitMix64(seed);
        let mut bed = bed();
        let durable = chance.chance(25);
        if durable {
            without_cache(&mut bed);
        }
        for round in 0..20 {
            if round % 5 == 0 {
                let caches = [chance.index(3), chance.index(3)].map(|which| CACHES[which]);
                set_caches(&mut bed, caches);
            }
            // The commands do not overlap; the last one crosses from one back end to the other.
            let commands: Vec<(u64, u64, u32, bool, bool)> = (0..AT_ONCE)
                .map(|n| {
                    let blocks = 1 + chance.below(16);
                    let lba = 8 + 16 * n + chance.below(17 - blocks);
                    (1 + n, lba, blocks as u32, chance.chance(50), chance.chance(50))
                })
                .collect();
            for &(id, lba, blocks, writes, fua) in &commands {
                match writes {
                    true => write(&mut bed, id, lba, blocks, fua),
                    false => read(&mut bed, id, lba, blocks, fua),
                }
            }
            bed.run_until_idle();
            for (id, lba, blocks, writes, fua) in commands {
                assert_eq!(ended(&mut bed, id), GOOD, "seed {seed}");
                let there = volatile(&bed, lba, blocks);
                assert!(
                    there == 0 || !(fua || durable && writes),
                    "seed {seed}, round {round}, {lba}, {blocks} blocks"
                );
                left += there;
            }
        }
        forwarded += bed.counters().forwarded;
        kept += bed.counters().kept[Kept::Cache as usize];
        bed.assert_idle();
    }
    // The test is meaningful only if each of these has happened.
    assert!([forwarded, kept, left as u64].iter().all(|count| *count > 0), "{forwarded} {kept} {left}");
}
