//! Random workloads.

use super::{Dice, reach};
use sanloom_fc::config::{Arrival, HotSet, Load, Location, Picos, Rate, SizeDistribution, Target, Workload};
use sanloom_fc::san::Lab;

#[derive(Clone, Copy)]
enum Loads {
    Closed,
    Poisson,
    Constant,
    Uniform,
    Normal,
    OnOff,
}

#[derive(Clone, Copy)]
enum Sizes {
    Fixed,
    Weighted,
    Uniform,
    Exponential,
}

#[derive(Clone, Copy)]
enum Places {
    Random,
    Sequential,
    Strided,
}

pub(super) fn draw(dice: &mut Dice, lab: &mut Lab) {
    let loads =
        dice.swarm(&[Loads::Closed, Loads::Poisson, Loads::Constant, Loads::Uniform, Loads::Normal, Loads::OnOff]);
    let sizes = dice.swarm(&[Sizes::Fixed, Sizes::Weighted, Sizes::Uniform, Sizes::Exponential]);
    let places = dice.swarm(&[Places::Random, Places::Sequential, Places::Strided]);
    let most_bytes = 512 << dice.range(3, 8);
    let reads = dice.pick(&[0.0, 0.5, 0.75, 1.0]);
    for number in 0..dice.range(1, 3) {
        let (hosts, targets) = who(dice, lab);
        if hosts.is_empty() {
            continue;
        }
        let block_bytes = targets.iter().map(|t| lun(lab, t).1).max().unwrap_or(512);
        let size = size(dice, dice_pick(&sizes), block_bytes, most_bytes);
        let smallest = targets.iter().map(|t| lun(lab, t).0).min().unwrap_or(0);
        // Span and stride are multiples of the largest block, so that they fit every LUN.
        let span = smallest / 2 / 4096 * 4096;
        let workload = Workload {
            name: format!("work{number}"),
            load: load(dice, &loads),
            size,
            read_share: if dice.chance(1, 4) { 0.5 } else { reads },
            location: match dice.weighted(&places) {
                Places::Random => Location::Random,
                Places::Sequential => Location::Sequential,
                Places::Strided => Location::Strided { stride_bytes: 4096 * dice.range(1, 64) },
            },
            hot_set: dice.chance(1, 4).then(|| HotSet {
                share_of_requests: 0.75,
                share_of_space: 0.125,
                zipf_exponent: dice.pick(&[0.0, 1.0]),
                items: dice.range(1, 64) as u32,
            }),
            span_bytes: (dice.chance(1, 4) && span >= 1 << 20).then_some(span),
            start: Picos(if dice.chance(3, 4) { 0 } else { dice.range(0, lab.run.duration.0 / 4) }),
            stop: None,
            hosts,
            targets,
            virtual_targets: Vec::new(),
        };
        lab.workloads.push(workload);
    }
    limit_frames_in_flight(dice, lab);
}

fn dice_pick<T: Copy>(swarm: &[(T, u64)]) -> impl Fn(&mut Dice) -> T + '_ {
    |dice| dice.weighted(swarm)
}

/// Returns hosts, and LUNs that all of them can reach.
fn who(dice: &mut Dice, lab: &Lab) -> (Vec<u16>, Vec<Target>) {
    let mut targets: Vec<Target> = Vec::new();
    let first = dice.chance(1, 2);
    for (storage, system) in lab.storage.iter().enumerate() {
        if (first && storage == 0) || dice.chance(1, 2) {
            for lun in 0..system.luns.len() {
                if lun == 0 || dice.chance(1, 2) {
                    targets.push(Target { storage: storage as u16, lun: lun as u16 });
                }
            }
        }
    }
    if targets.is_empty() {
        targets.push(Target { storage: 0, lun: 0 });
    }
    let all = |host: &u16| targets.iter().all(|target| reach::reaches(lab, *host, target.storage));
    let hosts: Vec<u16> = (0..lab.hosts.len() as u16).filter(all).filter(|_| dice.chance(3, 4)).collect();
    if !hosts.is_empty() {
        return (hosts, targets);
    }
    let hosts = if reach::reaches(lab, 0, 0) { vec![0] } else { Vec::new() };
    (hosts, vec![Target { storage: 0, lun: 0 }])
}

/// Returns the bytes and the block size of a LUN.
fn lun(lab: &Lab, target: &Target) -> (u64, u32) {
    let lun = &lab.storage[usize::from(target.storage)].luns[usize::from(target.lun)];
    (lun.blocks * u64::from(lun.block_bytes), lun.block_bytes)
}

fn load(dice: &mut Dice, loads: &[(Loads, u64)]) -> Load {
    let mut arrivals = Vec::new();
    for _ in 0..dice.range(1, 2) {
        let rate = Rate(dice.spread(200, 8_000) as f64);
        let mean = Picos::from_us(dice.spread(100, 4_000));
        arrivals.push(match dice.weighted(loads) {
            Loads::Closed => {
                let think_time = Picos::from_us(if dice.chance(1, 2) { 0 } else { dice.spread(10, 2_000) });
                return Load::Closed { depth: dice.spread(1, 32) as u32, think_time: think_time.into() };
            }
            Loads::Poisson => Arrival::Poisson { rate },
            Loads::Constant => Arrival::Constant { rate },
            Loads::Uniform => Arrival::Uniform { min: Picos(mean.0 / 2), max: mean },
            Loads::Normal => Arrival::Normal { mean, deviation: Picos(mean.0 / 3) },
            Loads::OnOff => Arrival::OnOff { rate: Rate(4.0 * rate.0), on: mean, off: Picos(3 * mean.0) },
        });
    }
    Load::Open(arrivals)
}

fn size(dice: &mut Dice, kind: impl Fn(&mut Dice) -> Sizes, block_bytes: u32, most_bytes: u64) -> SizeDistribution {
    let blocks = (most_bytes / u64::from(block_bytes)).max(1);
    let some = |dice: &mut Dice| dice.spread(1, blocks) as u32 * block_bytes;
    match kind(dice) {
        Sizes::Exponential if block_bytes == 512 => {
            let max = some(dice);
            SizeDistribution::Exponential { mean: max.div_ceil(3), max }
        }
        Sizes::Weighted => {
            let many = dice.range(1, 3);
            SizeDistribution::Weighted((0..many).map(|_| (some(dice), dice.range(1, 9) as f64)).collect())
        }
        Sizes::Uniform => {
            let (a, b) = (some(dice), some(dice));
            SizeDistribution::Uniform { min: a.min(b), max: a.max(b), step: block_bytes }
        }
        Sizes::Fixed | Sizes::Exponential => SizeDistribution::Fixed(some(dice)),
    }
}

/// Limits the data frames in flight of some HBAs, to at least the frames of the largest request.
fn limit_frames_in_flight(dice: &mut Dice, lab: &mut Lab) {
    for host in 0..lab.hosts.len() {
        if !dice.chance(1, 4) {
            continue;
        }
        let ours = lab.workloads.iter().filter(|w| w.hosts.contains(&(host as u16)));
        let largest = ours.map(|w| largest(&w.size)).max().unwrap_or(0).max(512);
        for hba in &mut lab.hosts[host].hbas {
            let frames = largest.div_ceil(u32::from(hba.receive_size_bytes));
            hba.data_frames_in_flight = Some(frames + dice.range(0, 32) as u32);
        }
    }
}

/// Returns the largest size that can be drawn, in bytes.
pub(super) fn largest(size: &SizeDistribution) -> u32 {
    match size {
        SizeDistribution::Fixed(bytes) => *bytes,
        SizeDistribution::Weighted(list) => list.iter().map(|entry| entry.0).max().unwrap_or(0),
        SizeDistribution::Uniform { max, .. } | SizeDistribution::Exponential { max, .. } => *max,
    }
}
