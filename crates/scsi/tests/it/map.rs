//! Maps of volumes: location of blocks, ownership of extents, and the effect of changes on tasks.

use proptest::prelude::*;
use sanloom_scsi::map::{
    Change, EpochId, Freed, Layout, LunBlock, LunConfig, LunId, LunUse, Map, PoolConfig, PoolId, Refusal, RestoreError,
    Segment, Shape, Volume, VolumeId,
};
use std::collections::{BTreeMap, BTreeSet};

const POOL: PoolId = PoolId(0);

/// Pool of LUNs with these numbers of extents.
fn map(extent_blocks: u64, extents: &[u64]) -> Map {
    let mut map = unreached(extent_blocks, extents.len());
    for (lun, extents) in (0..).zip(extents) {
        // Blocks after the last whole extent are not used.
        assert!(map.reached(LunId(lun), extents * extent_blocks + extent_blocks - 1));
    }
    map
}

fn unreached(extent_blocks: u64, luns: usize) -> Map {
    let pool = PoolConfig { name: "pool".into(), block_bytes: 512, extent_blocks };
    let lun = |number| LunConfig { name: format!("lun{number}").into(), pool: POOL };
    Map::new(vec![pool], (0..luns).map(lun).collect())
}

fn striped(width: u16, stripe_blocks: u32) -> Shape {
    Shape::Striped { width, stripe_blocks }
}

fn create(map: &mut Map, name: &str, shape: Shape, blocks: u64) -> Result<VolumeId, Refusal> {
    let change = map.plan_create(name, POOL, shape, blocks)?;
    map.apply(change);
    Ok(map.find(name).unwrap())
}

/// Location of each block of a volume, one by one.
fn locations(map: &Map, id: VolumeId) -> Vec<LunBlock> {
    let (epoch, layout) = (map.epoch(id).unwrap(), &map.volume(id).unwrap().layout);
    let at = |lba| map.resolve(epoch, lba, 1).unwrap().next().unwrap().place;
    (0..layout.blocks()).map(at).collect()
}

fn used(map: &Map) -> u64 {
    map.pool_use(POOL).used
}

/// Location of block `lba` of one segment by an independent method: stripes are dealt one after the
/// other.
fn dealt(segment: &Segment, lba: u64) -> LunBlock {
    let mut next: Vec<u64> = segment.columns.iter().map(|place| place.lba).collect();
    let (mut column, mut left) = (0, lba);
    while left >= segment.stripe_blocks {
        next[column] += segment.stripe_blocks;
        left -= segment.stripe_blocks;
        column = (column + 1) % next.len();
    }
    LunBlock { lun: segment.columns[column].lun, lba: next[column] + left }
}

#[test]
fn stripes_alternate_and_linear_volumes_fill_one_lun_after_the_other() {
    let mut map = map(4, &[2, 3, 3]);
    let linear = create(&mut map, "linear", Shape::Linear, 11).unwrap();
    let segments = map.volume(linear).unwrap().layout.segments();
    let place = |lun, lba| LunBlock { lun: LunId(lun), lba };
    assert_eq!(segments, [Segment::linear(place(0, 0), 8), Segment::linear(place(1, 0), 4)]);
    let wide = create(&mut map, "wide", striped(2, 2), 16).unwrap();
    let [a, b] = [place(1, 4), place(2, 0)];
    let expected = Segment { column_blocks: 8, stripe_blocks: 2, columns: [a, b].into() };
    assert_eq!(map.volume(wide).unwrap().layout.segments(), [expected]);
    let pieces: Vec<_> = map.resolve(map.epoch(wide).unwrap(), 1, 6).unwrap().collect();
    let seen: Vec<_> = pieces.iter().map(|p| (p.at, p.blocks, p.place)).collect();
    assert_eq!(seen, [(0, 1, place(1, 5)), (1, 2, place(2, 0)), (3, 2, place(1, 6)), (5, 1, place(2, 2))]);
    assert_eq!(map.lun_use(LunId(1)), Some(LunUse { extents: Some(3), used: 3, wiping: 0 }));
}

#[test]
fn every_refusal_has_a_reason_and_a_remedy() {
    let mut map = map(8, &[4, 4]);
    create(&mut map, "there", Shape::Linear, 8).unwrap();
    let there = map.find("there").unwrap();
    let plan = |name: &str, shape, blocks| map.plan_create(name, POOL, shape, blocks).unwrap_err();
    let refusals = [
        (plan("there", Shape::Linear, 8), Refusal::NameTaken("there".into())),
        (plan(".x", Shape::Linear, 8), Refusal::BadName(".x".into())),
        (plan("", Shape::Linear, 8), Refusal::BadName("".into())),
        (plan("a", Shape::Linear, 0), Refusal::NoBlocks),
        (plan("a", Shape::Linear, 57), Refusal::NoSpace { wanted: 8, free: 7 }),
        (plan("a", Shape::Linear, u64::MAX), Refusal::NoSpace { wanted: u64::MAX / 8 + 1, free: 7 }),
        (plan("a", striped(1, 8), 8), Refusal::TooNarrow),
        (plan("a", striped(3, 8), 8), Refusal::TooWide { wanted: 3, has: 2 }),
        (plan("a", striped(2, 3), 8), Refusal::BadStripe { stripe_blocks: 3, extent_blocks: 8 }),
        (plan("a", striped(2, 0), 8), Refusal::BadStripe { stripe_blocks: 0, extent_blocks: 8 }),
        (plan("a", striped(2, 4), 8 * 7), Refusal::NoSpace { wanted: 8, free: 6 }),
        (map.plan_create("a", PoolId(7), Shape::Linear, 8).unwrap_err(), Refusal::UnknownPool),
        (map.plan_extend(there, 8).unwrap_err(), Refusal::NotLarger { blocks: 8 }),
        (map.plan_extend(VolumeId(9), 8).unwrap_err(), Refusal::UnknownVolume),
        (map.plan_delete(VolumeId(9)).unwrap_err(), Refusal::UnknownVolume),
        (
            unreached(8, 2).plan_create("a", POOL, Shape::Linear, 8).unwrap_err(),
            Refusal::Unreached { lun: "lun0".into() },
        ),
    ];
    for (refusal, expected) in refusals {
        assert_eq!(refusal, expected);
        assert!(!refusal.to_string().is_empty() && !refusal.remedy().is_empty());
    }
    assert_eq!(used(&map), 1, "nothing has happened");
    // Sizes appear in common units.
    let reason = |refusal: Refusal| refusal.reason(512, 4 << 20);
    assert_eq!(reason(Refusal::NotLarger { blocks: 2_457_600 }), "the volume has 1200MiB already");
    assert_eq!(reason(Refusal::NoSpace { wanted: 2_621_440, free: 84 }), "10TiB are needed, but only 336MiB are free");
    let wiping = Refusal::Wiping { wanted: 3, free: 2, wiping: 1 };
    assert_eq!(reason(wiping), "12MiB are needed, 8MiB are free, and 4MiB of deleted volumes are being wiped");
    let stripe = Refusal::BadStripe { stripe_blocks: 3, extent_blocks: 8192 };
    assert_eq!(reason(stripe), "stripes of 1536B do not divide extents of 4MiB");
    assert_eq!(reason(Refusal::NoBlocks), Refusal::NoBlocks.to_string());
}

#[test]
fn a_task_keeps_its_epoch_and_a_deleted_volume_its_extents_until_its_last_task_ends() {
    let mut map = map(4, &[4]);
    let id = create(&mut map, "v", Shape::Linear, 4).unwrap();
    let first = map.begin(id).unwrap();
    let second = map.begin(id).unwrap();
    assert_eq!((first, map.tasks(first)), (second, Some(2)));
    let change = map.plan_extend(id, 8).unwrap();
    let extended = map.apply(change).unwrap();
    assert!(extended > first);
    assert!(map.resolve(first, 0, 5).is_none(), "the epoch is as it was");
    assert_eq!(map.resolve(extended, 0, 8).unwrap().count(), 1);
    map.end(second);
    assert_eq!(map.tasks(first), Some(1));
    let change = map.plan_delete(id).unwrap();
    assert_eq!(map.apply(change), None);
    assert_eq!((map.begin(id), map.find("v"), map.tasks(extended)), (None, None, None));
    assert_eq!((used(&map), map.resolve(first, 0, 4).unwrap().count()), (2, 1), "the last task is there");
    let taken = create(&mut map, "v", Shape::Linear, 8).unwrap();
    assert!(locations(&map, taken).iter().all(|place| place.lba >= 8));
    assert_eq!(map.next_wipe(|_| true, 8), None, "a task is active on the blocks");
    map.end(first);
    assert_eq!((used(&map), map.tasks(first)), (2, None));
    // Its extents are not reused before they are wiped.
    let wiping = Refusal::Wiping { wanted: 1, free: 0, wiping: 2 };
    assert_eq!(map.plan_create("w", POOL, Shape::Linear, 4), Err(wiping));
    assert_eq!(map.next_wipe(|_| false, 8), None);
    let first = map.next_wipe(|_| true, 4).unwrap();
    assert_eq!(first, Freed { lun: LunId(0), lba: 0, blocks: 4 });
    map.wiped(&first);
    assert!(create(&mut map, "w", Shape::Linear, 4).is_ok());
    assert_eq!(map.next_wipe(|_| true, 1), Some(Freed { lun: LunId(0), lba: 4, blocks: 4 }), "one extent at least");
    map.end(EpochId(99));
}

#[test]
fn a_stored_map_is_restored_or_refused_as_a_whole() {
    let mut before = map(4, &[4, 4]);
    create(&mut before, "a", striped(2, 2), 16).unwrap();
    create(&mut before, "b", Shape::Linear, 8).unwrap();
    let kept: Vec<(VolumeId, Volume)> = before.volumes().map(|(id, volume)| (id, volume.clone())).collect();
    let mut after = unreached(4, 2);
    after.restore(kept.clone(), VolumeId(2)).unwrap();
    assert_eq!(locations(&after, kept[0].0), locations(&before, kept[0].0));
    // Its extents are in use before the LUNs are reached.
    assert!(!after.reached(LunId(0), 15), "too small for what is there");
    assert!(after.reached(LunId(0), 16) && after.reached(LunId(1), 16));
    assert_eq!(after.plan_create("c", POOL, Shape::Linear, 9), Err(Refusal::NoSpace { wanted: 3, free: 2 }));
    assert!(create(&mut after, "c", Shape::Linear, 8).is_ok_and(|id| id.0 == 2));
    // Extents that were not wiped are not free, even if the extent size of the pool has changed.
    // Overlapping records count once.
    let mut again = unreached(4, 2);
    again.restore_wiping(&[(5, 6), (4, 4)].map(|(lba, blocks)| Freed { lun: LunId(0), lba, blocks }));
    assert!(!again.reached(LunId(0), 11) && again.reached(LunId(0), 12) && again.reached(LunId(1), 4));
    assert!(again.lun_use(LunId(0)).is_some_and(|lun| (lun.used, lun.wiping, lun.is_taken()) == (0, 2, true)));
    assert!(matches!(again.plan_create("d", POOL, Shape::Linear, 12), Err(Refusal::Wiping { .. })));
    assert_eq!(again.next_wipe(|_| true, 100), Some(Freed { lun: LunId(0), lba: 4, blocks: 8 }));

    let place = |lun, lba| LunBlock { lun: LunId(lun), lba };
    let volume = |name: &str, pool, segment| Volume {
        name: name.into(),
        pool: PoolId(pool),
        shape: Shape::Linear,
        layout: Layout::new(4, [segment].into()).unwrap(),
    };
    let of = |name, pool, lun, lba| volume(name, pool, Segment::linear(place(lun, lba), 4));
    let cases = [
        (vec![of("a", 0, 0, 0), of("a", 0, 0, 4)], RestoreError::Twice("a".into())),
        (vec![of("a", 0, 0, 0), of("b", 0, 0, 0)], RestoreError::Shared("b".into())),
        (vec![of("a", 1, 0, 0)], RestoreError::Elsewhere("a".into())),
        (vec![of("a", 0, 2, 0)], RestoreError::Elsewhere("a".into())),
        (vec![of("a", 0, 0, 2)], RestoreError::Elsewhere("a".into())),
    ];
    for (volumes, expected) in cases {
        let mut map = map(4, &[4, 4]);
        assert_eq!(map.restore((0..).map(VolumeId).zip(volumes).collect(), VolumeId(0)), Err(expected));
        assert_eq!((used(&map), map.volumes().count()), (0, 0));
    }
}

#[test]
fn impossible_layouts_are_refused() {
    let place = LunBlock { lun: LunId(0), lba: 0 };
    let segment = |column_blocks, stripe_blocks, columns: &[LunBlock]| Segment {
        column_blocks,
        stripe_blocks,
        columns: columns.into(),
    };
    let bad = [
        segment(4, 4, &[]),
        segment(0, 4, &[place]),
        segment(4, 0, &[place]),
        segment(4, 3, &[place]),
        segment(u64::MAX, u64::MAX, &[place, place]),
        segment(4, 4, &[LunBlock { lba: u64::MAX - 1, ..place }]),
    ];
    for segment in bad {
        assert!(Layout::new(1, [segment.clone()].into()).is_err(), "{segment:?}");
    }
    assert!(Layout::new(5, [Segment::linear(place, 4)].into()).is_err());
    let layout = Layout::new(4, [Segment::linear(place, 4)].into()).unwrap();
    for (lba, blocks) in [(4, 1), (0, 5), (u64::MAX, 1), (u64::MAX - 3, 9)] {
        assert!(layout.resolve(lba, blocks).is_none());
    }
    assert_eq!(layout.resolve(4, 0).unwrap().count(), 0);
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let segment = (1u64..5, 1u64..5, 1usize..5, 0u64..1000).prop_map(|(stripe_blocks, stripes, width, lba)| Segment {
        column_blocks: stripe_blocks * stripes,
        stripe_blocks,
        columns: (0..width).map(|lun| LunBlock { lun: LunId(lun as u16), lba: lba + lun as u64 * 7 }).collect(),
    });
    prop::collection::vec(segment, 1..6)
}

#[derive(Clone, Debug)]
enum Step {
    Create { striped: Option<(u16, u32)>, blocks: u64 },
    Extend { nth: usize, by: u64 },
    Delete { nth: usize },
    Begin { nth: usize },
    End { nth: usize },
    Wipe { blocks: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let shape = prop::option::of((2u16..4, prop::sample::select(vec![1u32, 2, 3, 6])));
    prop_oneof![
        (shape, 1u64..60).prop_map(|(striped, blocks)| Step::Create { striped, blocks }),
        (0usize..8, 1u64..40).prop_map(|(nth, by)| Step::Extend { nth, by }),
        (0usize..8).prop_map(|nth| Step::Delete { nth }),
        (0usize..8).prop_map(|nth| Step::Begin { nth }),
        (0usize..8).prop_map(|nth| Step::End { nth }),
        (1u64..30).prop_map(|blocks| Step::Wipe { blocks }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_cover_a_request_exactly_once_in_order_and_as_stripes_are_dealt(
        segments in segments(), from in 0.0..1.0f64, len in 0.0..1.0f64,
    ) {
        let total: u64 = segments.iter().map(|segment| segment.blocks().unwrap()).sum();
        let layout = Layout::new(total, segments.clone().into()).unwrap();
        let model: Vec<LunBlock> = segments
            .iter()
            .flat_map(|segment| (0..segment.blocks().unwrap()).map(|lba| dealt(segment, lba)))
            .collect();
        let lba = (total as f64 * from) as u64;
        let blocks = ((total - lba) as f64 * len).ceil() as u32;
        let mut next = 0;
        for piece in layout.resolve(lba, blocks).unwrap() {
            prop_assert_eq!(piece.at, next);
            prop_assert!(piece.blocks > 0);
            for block in 0..u64::from(piece.blocks) {
                let place = LunBlock { lba: piece.place.lba + block, ..piece.place };
                prop_assert_eq!(place, model[(lba + u64::from(next) + block) as usize]);
            }
            next += piece.blocks;
        }
        prop_assert_eq!(next, blocks);
    }

    /// After any sequence of changes, no two volumes share an extent, not even with volumes that
    /// tasks still use. An extension moves nothing. No extent is reused before it was wiped. When
    /// everything is deleted and wiped, everything is free.
    #[test]
    fn no_two_volumes_share_an_extent_and_extending_moves_nothing(
        steps in prop::collection::vec(step(), 1..40), extents in prop::collection::vec(1u64..12, 2..5),
    ) {
        const EXTENT_BLOCKS: u64 = 6;
        let mut map = map(EXTENT_BLOCKS, &extents);
        let mut seen: BTreeMap<VolumeId, Vec<LunBlock>> = BTreeMap::new();
        let mut tasks: Vec<(EpochId, VolumeId, Vec<LunBlock>)> = Vec::new();
        let mut dirty: BTreeSet<(LunId, u64)> = BTreeSet::new();
        for (number, step) in steps.into_iter().enumerate() {
            let ids: Vec<VolumeId> = map.volumes().map(|(id, _)| id).collect();
            let pick = |nth: usize| (!ids.is_empty()).then(|| ids[nth % ids.len()]);
            match step {
                Step::Create { striped: shape, blocks } => {
                    let shape = shape.map_or(Shape::Linear, |(width, blocks)| striped(width, blocks));
                    let _ = create(&mut map, &format!("v{number}"), shape, blocks);
                }
                Step::Extend { nth, by } => if let Some(id) = pick(nth) {
                    let blocks = map.volume(id).unwrap().layout.blocks();
                    if let Ok(change) = map.plan_extend(id, blocks + by) {
                        map.apply(change);
                        prop_assert_eq!(map.volume(id).unwrap().layout.blocks(), blocks + by);
                    }
                },
                Step::Delete { nth } => if let Some(id) = pick(nth) {
                    prop_assert_eq!(map.plan_delete(id), Ok(Change::Delete(id)));
                    for segment in map.volume(id).unwrap().layout.segments() {
                        let first = segment.columns.iter().map(|place| (place.lun, place.lba / EXTENT_BLOCKS));
                        let count = segment.column_blocks / EXTENT_BLOCKS;
                        dirty.extend(first.flat_map(|(lun, first)| (first..first + count).map(move |n| (lun, n))));
                    }
                    map.apply(Change::Delete(id));
                    seen.remove(&id);
                },
                Step::Begin { nth } => if let Some(id) = pick(nth) {
                    let at = locations(&map, id);
                    tasks.push((map.begin(id).unwrap(), id, at));
                },
                Step::End { nth } => if !tasks.is_empty() {
                    let (epoch, ..) = tasks.remove(nth % tasks.len());
                    map.end(epoch);
                },
                Step::Wipe { blocks } => if let Some(freed) = map.next_wipe(|_| true, blocks) {
                    for lba in (freed.lba..freed.lba + freed.blocks).step_by(EXTENT_BLOCKS as usize) {
                        prop_assert!(dirty.remove(&(freed.lun, lba / EXTENT_BLOCKS)), "a volume has it");
                    }
                    map.wiped(&freed);
                },
            }
            let mut owners: BTreeMap<(LunId, u64), VolumeId> = BTreeMap::new();
            let extent = |place: &LunBlock| (place.lun, place.lba / EXTENT_BLOCKS);
            let ids: Vec<VolumeId> = map.volumes().map(|(id, _)| id).collect();
            for id in ids {
                let now = locations(&map, id);
                let blocks: BTreeSet<&LunBlock> = now.iter().collect();
                prop_assert_eq!(blocks.len(), now.len(), "a block is in one place");
                for place in &now {
                    let lun = map.lun_use(place.lun).unwrap();
                    prop_assert!(place.lba / EXTENT_BLOCKS < lun.extents.unwrap());
                    prop_assert_eq!(*owners.entry(extent(place)).or_insert(id), id);
                    prop_assert!(!dirty.contains(&extent(place)), "another one's data are there");
                }
                if let Some(before) = seen.insert(id, now) {
                    prop_assert_eq!(&seen[&id][..before.len()], &before[..]);
                }
            }
            for (epoch, id, at) in &tasks {
                let blocks = at.len() as u32;
                let pieces = map.resolve(*epoch, 0, blocks).unwrap();
                let still: Vec<LunBlock> = pieces
                    .flat_map(|p| (0..u64::from(p.blocks)).map(move |n| LunBlock { lba: p.place.lba + n, ..p.place }))
                    .collect();
                prop_assert_eq!(&still, at);
                for place in at {
                    prop_assert_eq!(*owners.entry(extent(place)).or_insert(*id), *id);
                }
            }
        }
        for (epoch, ..) in tasks {
            map.end(epoch);
        }
        let ids: Vec<VolumeId> = map.volumes().map(|(id, _)| id).collect();
        for id in ids {
            map.apply(Change::Delete(id));
        }
        prop_assert_eq!(used(&map), 0);
        while let Some(freed) = map.next_wipe(|_| true, u64::MAX) {
            map.wiped(&freed);
        }
        let all: u64 = extents.iter().sum();
        prop_assert!(map.plan_create("all", POOL, Shape::Linear, all * EXTENT_BLOCKS).is_ok());
    }
}
