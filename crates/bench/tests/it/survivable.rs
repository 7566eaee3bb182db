//! `check` against `whatif` on random labs. A failure that the topology report calls survivable is
//! survived in simulation: every host reaches its LUNs again. A single point of failure cuts the
//! named hosts off for good.
//!
//! ```text
//! cargo test -p sanloom-bench --test it survivable                    60 labs
//! SANLOOM_FIRST_SEED=500 SANLOOM_SEEDS=200 cargo test …               other seeds
//! ```

use sanloom_bench::random_lab::{Dice, generate};
use sanloom_console::whatif::failure::{self, Cause};
use sanloom_console::whatif::trial::Plan;
use sanloom_fc::config::{
    ControllerAccess, Controllers, Fault, FaultKind, LinkEnd, Load, Location, Mask, Node, Picos, SizeDistribution,
    Target, VirtualFabric, Workload, ZoneDefault,
};
use sanloom_fc::san::{Lab, PermittedPairs};
use sanloom_lab::topology::{self, HostLuns, Part, Reach, Report};
use sanloom_scsi::scsi::InitiatorName;
use sanloom_sim::host::PathState;
use sanloom_sim::world::World;
use std::collections::BTreeSet;

const LABS: u64 = 60;
/// Failures that are simulated of each lab.
const FAILURES: usize = 3;
/// Requests on a path, of which one must complete. If the notification of a lost login was lost
/// too, the first request detects the loss.
const TRIES: u32 = 3;

#[test]
fn whatif_survives_every_failure_that_check_calls_survivable() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let first = number("SANLOOM_FIRST_SEED").unwrap_or(0);
    let seeds = number("SANLOOM_SEEDS").unwrap_or(LABS);
    let mut seen = Seen::default();
    let mut wrong = Vec::new();
    for seed in first..first + seeds {
        if let Err(what) = judge(seed, &mut seen) {
            wrong.push(format!("seed {seed}: {what}"));
        }
    }
    println!("{seeds} labs: {seen:?}");
    assert!(wrong.is_empty(), "{} failures are judged wrongly:\n{}", wrong.len(), wrong.join("\n"));
    let enough = seen.survived >= seeds / 4 && seen.cut_off >= seeds / 4;
    let enough = enough && seen.chassis_survived > 0 && seen.chassis_cut_off > 0;
    let enough = enough && seen.controllers_survived > 0 && seen.controllers_cut_off > 0;
    assert!(enough || seeds < LABS, "the labs are too much alike: {seen:?}");
}

/// Numbers of failures.
#[derive(Default, Debug)]
struct Seen {
    survived: u64,
    cut_off: u64,
    /// Failures of a chassis among them.
    chassis_survived: u64,
    chassis_cut_off: u64,
    /// Failures of a controller among them.
    controllers_survived: u64,
    controllers_cut_off: u64,
    masked_labs: u64,
    dark_labs: u64,
}

fn judge(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let mut dice = Dice::new(seed ^ 0x5afe);
    let lab = draw(seed, &mut dice);
    let problems = lab.validate();
    assert!(problems.is_empty(), "seed {seed}: {problems:?}");
    seen.masked_labs += u64::from(!lab.live.masks.is_empty());
    seen.dark_labs += u64::from(!lab.links_down_at_start().is_empty());
    // `check` sees the lab with its faults and changes, `whatif` removes them.
    let report = Report::of(&lab, &[]);
    let reach = Reach::of(&lab, &[]);
    let mut state = lab.clone();
    failure::clear(&mut state);
    let failures = failure::all(&state, &[]);
    let causes: BTreeSet<Cause> = failures.iter().map(|single| single.cause).collect();
    let mut causes: Vec<Cause> = causes.into_iter().collect();
    let plan = Plan::new(state);
    for _ in 0..FAILURES.min(causes.len()) {
        let chassis = causes.iter().position(|cause| matches!(cause, Cause::Chassis(_)));
        let controller = causes.iter().position(|cause| matches!(cause, Cause::Controller(..)));
        let preferred = chassis.or_else(|| controller.filter(|_| dice.chance(1, 2)));
        let cause = causes.swap_remove(preferred.unwrap_or_else(|| dice.index(causes.len())));
        let part = cause.part(&lab).expect("random labs have no batteries");
        let lost = reach.cut_off(part);
        let hosts: BTreeSet<u16> = lost.keys().map(|(host, _)| *host).collect();
        let point = report.single_points.iter().find(|point| point.part == part);
        if point.map_or(0, |point| point.hosts) != hosts.len() {
            return Err(format!("{cause:?} is {point:?}, but {lost:?} are cut off"));
        }
        let (trial, mut world) = plan.fail_with_world(cause, 0).expect("nobody interrupts");
        let wrong = |what: String| format!("{cause:?}: {what}; recovered: {:?}", trial.recovered_ps.map(Picos));
        check_world(&mut world, reach.joined(), &lost).map_err(wrong)?;
        if lost.is_empty() && trial.recovered_ps.is_none() {
            return Err(wrong("I/O has not recovered".to_owned()));
        }
        let of_chassis = u64::from(chassis.is_some());
        let of_controller = u64::from(matches!(cause, Cause::Controller(..)));
        if lost.is_empty() {
            seen.survived += 1;
            seen.chassis_survived += of_chassis;
            seen.controllers_survived += of_controller;
        } else {
            seen.cut_off += 1;
            seen.chassis_cut_off += of_chassis;
            seen.controllers_cut_off += of_controller;
        }
    }
    Ok(())
}

/// Checks at the end of a run that hosts reach their LUNs, except those that are lost.
fn check_world(world: &mut World, joined: &HostLuns, lost: &HostLuns) -> Result<(), String> {
    for (&(host, storage), luns) in joined {
        for &lun in luns {
            let is_lost = lost.get(&(host, storage)).is_some_and(|luns| luns.contains(&lun));
            let Some(system) = world.hosts.nodes[usize::from(host)].paths.system_of(storage, lun) else {
                return Err(format!("host {host} has no paths to LUN {lun} of storage {storage}"));
            };
            let paths = world.hosts.nodes[usize::from(host)].paths.systems()[usize::from(system)].paths().len() as u16;
            let state = |world: &World, path: u16| {
                world.hosts.nodes[usize::from(host)].paths.systems()[usize::from(system)].state(path)
            };
            let states: Vec<PathState> = (0..paths).map(|path| state(world, path)).collect();
            let in_use = [PathState::Active, PathState::Suspect];
            let usable: Vec<u16> = (0..paths).filter(|path| in_use.contains(&states[usize::from(*path)])).collect();
            let works = usable.into_iter().any(|path| is_answered(world, (host, system, path)));
            if works == is_lost {
                let verb = if works { "still reaches" } else { "no longer reaches" };
                return Err(format!("host {host} {verb} LUN {lun} of storage {storage}: {states:?}"));
            }
        }
    }
    Ok(())
}

/// Returns whether a read on a path completes.
fn is_answered(world: &mut World, (host, system, path): (u16, u16, u16)) -> bool {
    let tried = |world: &World| {
        world.hosts.nodes[usize::from(host)].paths.systems()[usize::from(system)].paths()[usize::from(path)].tried
    };
    for _ in 0..TRIES {
        let [good, bad] = tried(world);
        world.try_path(host, system, path, false, 1);
        let limit = world.net.now() + 20 * Picos::SECOND.0;
        while tried(world) == [good, bad] && world.net.now() < limit {
            world.run_until(world.net.now() + Picos::from_us(500).0);
        }
        if tried(world)[0] > good {
            return true;
        }
    }
    false
}

/// A random lab with masks, links that are dark at the start, and a light load of every host on
/// every LUN that it may use.
fn draw(seed: u64, dice: &mut Dice) -> Lab {
    let mut lab = generate(seed).lab;
    lab.run.duration = Picos::from_ms(30);
    lab.run.sample_interval = Picos::from_ms(2);
    lab.run.warmup = Picos::ZERO;
    lab.run.stop_issuing = None;
    let end = lab.run.duration;
    lab.faults.retain(|fault| fault.at > Picos::ZERO && fault.at < end && fault.until.is_none_or(|until| until <= end));
    lab.changes.retain(|change| change.at < lab.run.duration);
    // A limit may be too small for the requests of the load below.
    lab.hosts.iter_mut().flat_map(|host| &mut host.hbas).for_each(|hba| hba.data_frames_in_flight = None);
    lab.hosts.iter_mut().filter_map(|host| host.virtual_machine.as_mut()).for_each(|machine| machine.start = None);
    if lab.zoning.default == ZoneDefault::Open && dice.chance(1, 2) {
        lab.zoning.default = ZoneDefault::OpenWithoutZones;
        lab.zone_database.default_zone = lab.zoning.default;
    }
    for _ in 0..dice.range(0, 2) {
        let link = dice.index(lab.links.len()) as u16;
        lab.faults.push(Fault { at: Picos::ZERO, until: None, kind: FaultKind::LinkDown { link } });
    }
    lab.faults.sort_by_key(|fault| fault.at);
    for storage in lab.storage.iter_mut().filter(|storage| storage.ports.len() > 1) {
        if dice.chance(1, 2) {
            storage.controllers = Controllers {
                count: dice.range(2, storage.ports.len() as u64) as u8,
                access: dice.pick(&[ControllerAccess::Symmetric, ControllerAccess::Asymmetric]),
                takeover: Picos::from_us(dice.range(0, 5_000)),
                failback: None,
                forward: Picos::from_us(dice.range(0, 100)),
            };
        }
    }
    if dice.chance(1, 2) {
        mask(dice, &mut lab);
    }
    let permitted = lab.permitted_pairs(&[]);
    lab.workloads = (0..lab.hosts.len() as u16).filter_map(|host| workload(&lab, &permitted, host)).collect();
    share_chassis(dice, lab)
}

/// Puts two switches of different fabrics into one chassis, if the lab has several fabrics and its
/// zones permit it. Most pairs cut hosts off, so a pair that does not is preferred.
fn share_chassis(dice: &mut Dice, lab: Lab) -> Lab {
    let fabrics = lab.fabrics();
    let pairs = (0..fabrics.len()).flat_map(|a| (a + 1..fabrics.len()).map(move |b| (a, b)));
    let apart = pairs.filter(|(a, b)| fabrics[*a] != fabrics[*b]);
    let shared = apart.map(|pair| in_chassis(lab.clone(), pair)).filter(|lab| lab.validate().is_empty());
    let (good, bad): (Vec<Lab>, Vec<Lab>) = shared.partition(|lab| {
        let chassis = &topology::chassis(lab)[0];
        Reach::of(lab, &[]).cut_off(Part::Chassis(chassis.switches[0])).is_empty()
    });
    let mut choice = if good.is_empty() { bad } else { good };
    match choice.is_empty() {
        true => lab,
        false => choice.swap_remove(dice.index(choice.len())),
    }
}

/// Puts two switches into one chassis. The ports of the second follow those of the first.
fn in_chassis(mut lab: Lab, (first, second): (usize, usize)) -> Lab {
    let below = lab.switches[first].ports;
    lab.switches[second].ports += below;
    let is_second = |end: &&mut LinkEnd| end.node == Node::Switch(second as u16);
    lab.links.iter_mut().flat_map(|link| &mut link.ends).filter(is_second).for_each(|end| end.port += below);
    for (switch, id, from) in [(first, 1, 0), (second, 2, below)] {
        let switch = &mut lab.switches[switch];
        let ports = (from..switch.ports).collect();
        switch.virtual_fabric = Some(VirtualFabric { chassis: "box".to_owned(), id, ports });
    }
    lab
}

/// Shows some LUNs of a storage system to each port of the hosts, and none to some ports.
fn mask(dice: &mut Dice, lab: &mut Lab) {
    let storage = dice.index(lab.storage.len());
    let names: Vec<_> = lab.hosts.iter().flat_map(|host| &host.hbas).map(|hba| hba.wwpn).collect();
    let luns = lab.storage[storage].luns.len() as u16;
    for name in names {
        if dice.chance(1, 5) {
            continue;
        }
        let targets: Vec<Target> = (0..luns).map(|lun| Target { storage: storage as u16, lun }).collect();
        let some = dice.range(1, u64::from(luns)) as usize;
        let from = dice.index(targets.len() - some + 1);
        lab.live
            .masks
            .push(Mask { initiators: vec![InitiatorName::Fcp(name)], targets: targets[from..from + some].to_vec() });
    }
}

fn workload(lab: &Lab, permitted: &PermittedPairs, host: u16) -> Option<Workload> {
    let mut targets = BTreeSet::new();
    for port in permitted.ports_of_host(host) {
        for partner in permitted.partners(port) {
            let Node::Storage(storage) = permitted.storage[*partner as usize].node else {
                continue;
            };
            let luns = 0..lab.storage[usize::from(storage)].luns.len() as u16;
            let seen = luns.filter(|lun| permitted.shows(port, storage, *lun));
            targets.extend(seen.map(|lun| Target { storage, lun }));
        }
    }
    (!targets.is_empty()).then(|| Workload {
        name: format!("all{host}"),
        hosts: vec![host],
        targets: targets.into_iter().collect(),
        virtual_targets: Vec::new(),
        load: Load::Closed { depth: 2, think_time: Picos::from_ms(1).into() },
        size: SizeDistribution::Fixed(4096),
        read_share: 0.5,
        location: Location::Random,
        hot_set: None,
        span_bytes: None,
        start: Picos::ZERO,
        stop: None,
    })
}
