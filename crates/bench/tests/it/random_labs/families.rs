//! Families of labs with stricter requirements than labs in general.

use sanloom_bench::random_lab::{Dice, Outcome, Trial, generate_dual, generate_plain};
use sanloom_fc::config::{
    Direction, Fault, FaultKind, Forwarding, IslChoice, Load, Multipath, Node, PathPolicy, Picos, SizeDistribution,
    Timers,
};
use sanloom_fc::san::Lab;

/// Runs the lab of a seed to its end, after `change`.
fn run(mut trial: Trial, change: impl FnOnce(&mut Lab)) -> Outcome {
    change(&mut trial.lab);
    let problems = trial.lab.validate();
    assert!(problems.is_empty(), "seed {}: {problems:?}", trial.seed);
    trial.run(false).unwrap_or_else(|violation| panic!("seed {}: {violation}\n{:#?}", trial.seed, trial.lab))
}

/// Raises the timeouts, so that no command times out only because a queue ahead of it is long.
fn be_patient(lab: &mut Lab) {
    lab.timers = Timers::default();
    for host in &mut lab.hosts {
        host.command_timeout = Picos::from_secs(60);
        host.queue.max_waiting = None;
    }
    for storage in &mut lab.storage {
        storage.service.max_queued = u32::MAX;
    }
}

#[test]
fn no_command_is_aborted_because_frames_overtake_each_other() {
    let mut completed = 0;
    for seed in 0..60 {
        let outcome = run(generate_plain(seed), |lab| {
            be_patient(lab);
            lab.faults.clear();
            lab.switches.iter_mut().for_each(|switch| switch.isl_choice = IslChoice::Spray);
        });
        assert_eq!((outcome.aborted, outcome.books.failed), (0, 0), "seed {seed}");
        completed += outcome.books.completed;
    }
    assert!(completed > 10_000);
}

#[test]
fn no_command_is_aborted_in_a_healthy_lab() {
    for seed in 100..160 {
        let outcome = run(generate_plain(seed), |lab| {
            be_patient(lab);
            lab.faults.clear();
        });
        assert_eq!((outcome.aborted, outcome.books.failed), (0, 0), "seed {seed}");
    }
}

#[test]
fn one_fault_in_one_of_two_fabrics_fails_no_request() {
    let mut aborted = 0;
    for seed in 0..80 {
        let outcome = run(generate_dual(seed), |lab| {
            let mut dice = Dice::new(seed);
            for host in &mut lab.hosts {
                host.retries = 30;
                host.queue.max_waiting = None;
                host.multipath = Multipath {
                    policy: PathPolicy::RoundRobin,
                    polling_interval: Picos::from_secs(5),
                    no_path_retry: Some(12),
                    ..host.multipath
                };
                host.command_timeout = Picos::from_secs(5);
            }
            let fault = fault_in_first_fabric(&mut dice, lab);
            lab.faults = vec![fault];
        });
        assert_eq!(outcome.books.failed, 0, "seed {seed}");
        aborted += outcome.aborted;
    }
    assert!(aborted > 100, "the faults disturb nobody: {aborted} commands aborted");
}

/// Returns a fault of any kind, temporary or permanent, at a link or switch of the fabric of the
/// first ports.
fn fault_in_first_fabric(dice: &mut Dice, lab: &Lab) -> Fault {
    let mut switches = vec![switch_of_first_hba(lab)];
    let ends = |link: usize| lab.links[link].ends.map(|end| end.node);
    for _ in 0..lab.switches.len() {
        for link in 0..lab.links.len() {
            if let [Node::Switch(a), Node::Switch(b)] = ends(link)
                && switches.contains(&a) != switches.contains(&b)
            {
                switches.push(if switches.contains(&a) { b } else { a });
            }
        }
    }
    let ours = |link: &usize| ends(*link).iter().any(|node| matches!(node, Node::Switch(s) if switches.contains(s)));
    let links: Vec<usize> = (0..lab.links.len()).filter(ours).collect();
    let link = links[dice.index(links.len())] as u16;
    let end = dice.range(0, 1) as u8;
    let probability = dice.pick(&[0.01, 0.2, 1.0]);
    let direction = dice.pick(&[Direction::Forward, Direction::Backward, Direction::Both]);
    let kind = match dice.range(0, 7) {
        0 => FaultKind::LinkDown { link },
        1 => FaultKind::PortDown { link, end },
        2 => FaultKind::SwitchReset { switch: switches[dice.index(switches.len())] },
        3 => FaultKind::FrameLoss { link, direction, probability },
        4 => FaultKind::CrcErrors { link, direction, probability },
        5 => FaultKind::SlowReceiver { link, end, delay: Picos::from_us(dice.spread(1, 5_000)) },
        6 => FaultKind::WithheldCredits { link, end },
        _ => FaultKind::LostRRdy { link, end, probability },
    };
    let duration = lab.run.duration.0;
    let at = Picos(dice.range(0, duration / 2));
    let until = dice.chance(1, 2).then(|| Picos(dice.range(at.0 + 1, duration)));
    Fault { at, until, kind }
}

fn switch_of_first_hba(lab: &Lab) -> u16 {
    let first = lab.links.iter().find_map(|link| match link.ends.map(|end| (end.node, end.port)) {
        [(Node::Host(0), 0), (Node::Switch(switch), _)] | [(Node::Switch(switch), _), (Node::Host(0), 0)] => {
            Some(switch)
        }
        _ => None,
    });
    first.expect("the first HBA has a link")
}

#[test]
fn lost_frames_cost_time_and_no_request() {
    let patient = |lab: &mut Lab| {
        be_patient(lab);
        lab.timers.e_d_tov = Picos::from_ms(20);
        lab.timers.r_a_tov = Picos::from_ms(50);
        lab.timers.hold_time = Picos::from_ms(40);
        lab.faults.clear();
        for host in &mut lab.hosts {
            host.retries = 100;
            host.command_timeout = Picos::from_ms(400);
            host.multipath.polling_interval = Picos::from_secs(5);
            host.multipath.no_path_retry = Some(12);
        }
    };
    let mut lost = 0;
    for seed in 200..260 {
        let healthy = run(generate_plain(seed), patient);
        let mut least = (u64::MAX, 0);
        let outcome = run(generate_plain(seed), |lab| {
            patient(lab);
            let links = lab.links.len() as u16;
            let loss = |link| FaultKind::FrameLoss { link, direction: Direction::Both, probability: 0.005 };
            lab.faults = (0..links).map(|link| Fault { at: Picos::ZERO, until: None, kind: loss(link) }).collect();
            least = (lab.hosts[0].command_timeout.0, lab.timers.r_a_tov.0);
        });
        assert_eq!(outcome.books.failed, 0, "seed {seed}");
        // Each attempt takes at most its timeout plus the time allowed for unanswered ABTS, which
        // is sent twice. Without lost frames, requests wait for the links alone.
        let one_try = least.0 + 4 * least.1;
        let bound = (outcome.aborted + 1) * one_try + healthy.longest_ps.max(Picos::from_secs(2).0);
        assert!(outcome.longest_ps <= bound, "seed {seed}: {} ps with {} aborts", outcome.longest_ps, outcome.aborted);
        lost += outcome.fate.lost_frames();
    }
    assert!(lost > 1_000, "only {lost} frames lost");
}

#[test]
fn cut_through_is_never_slower_than_store_and_forward_on_an_idle_path() {
    for seed in 0..40 {
        let times = [Forwarding::CutThrough, Forwarding::StoreAndForward].map(|forwarding| {
            let outcome = run(generate_plain(seed), |lab| {
                be_patient(lab);
                lab.faults.clear();
                lab.workloads.truncate(1);
                lab.run.warmup = Picos::ZERO;
                for switch in &mut lab.switches {
                    // Frame by frame, the frames before decide which one takes the longer link.
                    (switch.forwarding, switch.isl_choice) = (forwarding, IslChoice::DevicePair);
                }
                // The size below may need more data frames than a host allows for its own sizes.
                lab.hosts.iter_mut().flat_map(|host| &mut host.hbas).for_each(|hba| hba.data_frames_in_flight = None);
                for workload in &mut lab.workloads {
                    workload.hosts.truncate(1);
                    workload.size = SizeDistribution::Fixed(4096);
                    workload.read_share = 1.0;
                    workload.load = Load::Closed { depth: 1, think_time: Picos::from_ms(1).into() };
                }
            });
            (outcome.longest_ps, outcome.books.completed)
        });
        let [cut_through, store_and_forward] = times;
        assert!(cut_through.0 <= store_and_forward.0 && cut_through.1 >= store_and_forward.1, "seed {seed}: {times:?}");
    }
}
