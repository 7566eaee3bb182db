//! A second, slow model of positions: every block of a small disk is listed, and time advances by
//! whole blocks of rotation. Both models must agree on random requests.

use proptest::prelude::*;
use sanloom_storage::disk::{Arm, DiskConfig, Mapping, Mechanism, SeekCurve, Stream, Zone, preset};
use std::borrow::Cow;

/// Block of the list: cylinder, head and share of a revolution at which the block starts.
#[derive(Clone, Copy, Debug)]
struct Listed {
    cylinder: u32,
    head: u32,
    turn: f64,
    width: f64,
}

/// Lists the blocks by walking over the tracks, with the skew added at each change of track.
fn list(config: &DiskConfig) -> Vec<Listed> {
    let mut blocks = Vec::new();
    for zone in config.zones.iter() {
        let mut start = zone.first_block_offset;
        let mut of_zone = Vec::new();
        for cylinder in zone.first_cylinder..=zone.last_cylinder {
            let mut heads: Vec<u32> = (0..config.surfaces).collect();
            if config.mapping == Mapping::Serpentine && cylinder % 2 == 1 {
                heads.reverse();
            }
            let of_cylinder = of_zone.len();
            for (order, head) in heads.into_iter().enumerate() {
                if order > 0 {
                    start += zone.track_skew;
                }
                for block in 0..zone.blocks_per_track - zone.spare_blocks_per_track {
                    let width = 1.0 / f64::from(zone.blocks_per_track);
                    let turn = (f64::from(start + block) * width).fract();
                    of_zone.push(Listed { cylinder, head, turn, width });
                }
            }
            let tracks = of_zone.len() - of_cylinder;
            of_zone.truncate(of_cylinder + tracks - zone.spare_blocks_per_cylinder as usize);
            start += zone.cylinder_skew;
        }
        let end = of_zone.len() - zone.spare_blocks as usize;
        blocks.extend_from_slice(&of_zone[zone.empty_blocks as usize..end]);
    }
    blocks
}

/// Returns the time in milliseconds after which the last block has passed, and how often a head
/// arrived at its track just when the block passed.
fn read_ms(config: &DiskConfig, blocks: &[Listed], from: Arm, at_ms: f64, lbn: usize, count: usize) -> (f64, u32) {
    let SeekCurve::Linear { single_ms, full_ms } = config.seek else { panic!("the disk has a linear seek curve") };
    let longest = config.zones.iter().map(|zone| zone.last_cylinder).max().unwrap_or_default() - 1;
    let turn_ms = 60_000.0 / config.rpm;
    let (mut cylinder, mut head, mut now_ms) = (from.cylinder, from.head, at_ms);
    let mut close = 0;
    for (index, block) in blocks[lbn..lbn + count].iter().enumerate() {
        let distance = cylinder.abs_diff(block.cylinder);
        let seek_ms = match distance {
            0 => 0.0,
            x => single_ms + (full_ms - single_ms) * f64::from(x - 1) / f64::from(longest.max(1)),
        };
        now_ms += if head == block.head { seek_ms } else { seek_ms.max(config.head_switch_ms) };
        let arrives = index == 0 || (cylinder, head) != (block.cylinder, block.head);
        (cylinder, head) = (block.cylinder, block.head);
        let mut wait = block.turn - (now_ms / turn_ms).fract();
        close += u32::from(arrives && (wait - wait.round()).abs() < 1e-6);
        if wait < -1e-6 {
            wait += 1.0;
        }
        if wait > 1.0 - 1e-6 {
            wait -= 1.0;
        }
        now_ms += (wait + block.width) * turn_ms;
    }
    (now_ms, close)
}

fn small_disk(mapping: Mapping, surfaces: u32, skews: [u32; 2], offset: u32) -> DiskConfig {
    let zone = |first, last, blocks, empty, spare, spares: [u32; 2]| Zone {
        first_cylinder: first,
        last_cylinder: last,
        blocks_per_track: blocks,
        first_block_offset: offset,
        track_skew: skews[0],
        cylinder_skew: skews[1],
        empty_blocks: empty,
        spare_blocks: spare,
        spare_blocks_per_track: spares[0],
        spare_blocks_per_cylinder: spares[1],
    };
    DiskConfig {
        blocks: 0,
        surfaces,
        mapping,
        zones: Cow::Owned(vec![
            zone(0, 9, 40, 50, 30, [0, 0]),
            zone(12, 30, 32, 0, 7, [2, 0]),
            zone(31, 40, 25, 3, 0, [1, 5]),
        ]),
        seek: SeekCurve::Linear { single_ms: 0.9, full_ms: 7.0 },
        head_switch_ms: 0.7,
        ..preset::cheetah_9lp()
    }
}

proptest! {
    #[test]
    fn positions_and_times_equal_those_of_a_listed_disk(
        is_serpentine: bool,
        surfaces in 1u32..5,
        skews in [0u32..20, 0u32..20],
        offset in 0u32..25,
        requests in prop::collection::vec((0usize..100_000, 1usize..200, 0u32..41, 0u32..5, 0u64..20_000_000), 1..20),
    ) {
        let mapping = if is_serpentine { Mapping::Serpentine } else { Mapping::Normal };
        let config = small_disk(mapping, surfaces, skews, offset);
        let blocks = list(&config);
        let mechanism = Mechanism::new(&config).expect("the disk is valid");
        prop_assert_eq!(mechanism.geometry.blocks(), blocks.len() as u64);
        for (lbn, count, cylinder, head, at_ns) in requests {
            let lbn = lbn % blocks.len();
            let count = count.min(blocks.len() - lbn);
            let from = Arm { cylinder, head: head % surfaces };
            let at_ps = at_ns * 1000;
            let place = mechanism.geometry.place(lbn as u64);
            prop_assert_eq!((place.cylinder, place.head), (blocks[lbn].cylinder, blocks[lbn].head));
            let approach = mechanism.approach(at_ps, from, &place, false);
            let begin_ps = at_ps + approach.move_ps + approach.wait_ps;
            let end_ps = Stream::new(lbn as u64, place, begin_ps).end_ps(&mechanism, count as u64, false);
            let (naive_ms, close) = read_ms(&config, &blocks, from, at_ps as f64 / 1e9, lbn, count);
            let turn_ms = 60_000.0 / config.rpm;
            let turns = (end_ps as f64 / 1e9 - naive_ms) / turn_ms;
            prop_assert!((turns - turns.round()).abs() < 1e-5, "{} ms, naive {naive_ms} ms", end_ps as f64 / 1e9);
            // A block that passes just when its head arrives may be read one revolution later.
            prop_assert!(turns.abs() < f64::from(close) + 1e-5, "{turns} turns, {close} close arrivals");
        }
    }

    #[test]
    fn a_stream_has_read_a_block_when_its_end_is_reached(
        lbn in 0u64..17_000_000,
        count in 1u64..3000,
        begin_ps in 0u64..10_000_000_000,
    ) {
        let mechanism = Mechanism::new(&preset::cheetah_9lp()).expect("the disk is valid");
        let stream = Stream::new(lbn, mechanism.geometry.place(lbn), begin_ps);
        let end_ps = stream.end_ps(&mechanism, count, false);
        let (mut at_end, mut before) = (stream, stream);
        let (read, arm) = at_end.until(&mechanism, u64::MAX, end_ps + 10);
        prop_assert_eq!(read, lbn + count);
        prop_assert!(before.until(&mechanism, u64::MAX, end_ps - 1_000_000).0 < lbn + count);
        let place = mechanism.geometry.place(lbn + count - 1);
        let next = mechanism.geometry.place(lbn + count);
        prop_assert!(arm == place.arm() || arm == next.arm());
    }
}
