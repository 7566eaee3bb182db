//! Path states, failover and path selection.

use proptest::prelude::*;
use sanloom_fc::config::{self, PathPolicy, Picos};
use sanloom_sim::host::{Choice, End, Input, Multipath, Output, PathState};
use std::collections::BTreeMap;
use std::fmt::Write;

const FAST_IO_FAIL_PS: u64 = 5_000;
const DEV_LOSS_PS: u64 = 60_000;
const NO_PATH_PS: u64 = 100_000;
const POLLING_PS: u64 = 25_000;

fn config(policy: PathPolicy) -> config::Multipath {
    config::Multipath {
        policy,
        fast_io_fail: Picos(FAST_IO_FAIL_PS),
        dev_loss: Picos(DEV_LOSS_PS),
        polling_interval: Picos(POLLING_PS),
        no_path_retry: Some(4),
    }
}

/// Returns a machine with all paths active at time 0 and no pending outputs.
fn active(policy: PathPolicy, paths: u16) -> Multipath {
    let mut multipath = Multipath::new(config(policy).into(), paths);
    for path in 0..paths {
        multipath.handle(0, Input::RemoteUp(path));
    }
    outputs(&mut multipath);
    multipath
}

fn outputs(multipath: &mut Multipath) -> Vec<Output> {
    std::iter::from_fn(|| multipath.poll_output()).collect()
}

fn handle(multipath: &mut Multipath, now_ps: u64, input: Input) -> Vec<Output> {
    multipath.handle(now_ps, input);
    outputs(multipath)
}

fn choose(multipath: &mut Multipath) -> Choice {
    multipath.choose(4096, |_| true)
}

fn changed(path: u16, from: PathState, to: PathState) -> Output {
    Output::Changed { path, from, to }
}

#[test]
fn every_state_meets_every_input() {
    let down = (1_000, Input::RemoteDown(0));
    let failed = (1_000, Input::Failed(0));
    let up = (0, Input::RemoteUp(0));
    let fail_at = (1_000 + FAST_IO_FAIL_PS, Input::Timeout);
    let gone_at = (1_000 + DEV_LOSS_PS, Input::Timeout);
    let states: [(PathState, &[(u64, Input)]); 5] = [
        (PathState::Active, &[up]),
        (PathState::Suspect, &[up, failed]),
        (PathState::Blocked, &[up, down]),
        (PathState::Failed, &[up, down, fail_at]),
        (PathState::Gone, &[up, down, fail_at, gone_at]),
    ];
    let inputs: [(&str, u64, Input); 11] = [
        ("remote up", 1_001, Input::RemoteUp(0)),
        ("remote down", 1_001, Input::RemoteDown(0)),
        ("done", 1_001, Input::Done(0)),
        ("aborted", 1_001, Input::Aborted(0)),
        ("failed", 1_001, Input::Failed(0)),
        ("untested", 1_001, Input::Untested(0)),
        ("wait", 1_001, Input::Wait(7)),
        ("early timeout", 1_001, Input::Timeout),
        ("fast_io_fail", 1_000 + FAST_IO_FAIL_PS, Input::Timeout),
        ("dev_loss", 1_000 + DEV_LOSS_PS, Input::Timeout),
        ("probe", 1_000 + POLLING_PS, Input::Timeout),
    ];
    let mut table = String::new();
    let mut line = |text: String| writeln!(table, "{text}").expect("writing to a string succeeds");
    for (state, script) in states {
        for (name, at_ps, input) in inputs {
            let mut multipath = Multipath::new(config(PathPolicy::RoundRobin).into(), 1);
            let mut now_ps = 0;
            for &(at_ps, input) in script {
                now_ps = at_ps;
                multipath.handle(at_ps, input);
            }
            outputs(&mut multipath);
            assert_eq!(multipath.state(0), state);
            multipath.handle(at_ps.max(now_ps), input);
            let then = outputs(&mut multipath);
            let to = multipath.state(0);
            let timeout = multipath.poll_timeout();
            line(format!("{state:?}, {name}: {to:?}"));
            for output in then {
                line(format!("    {output:?}"));
            }
            if let Some(at_ps) = timeout {
                line(format!("    timeout at {at_ps}"));
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_path_without_its_remote_port_is_blocked_then_failed_then_gone() {
    let mut multipath = active(PathPolicy::RoundRobin, 2);
    let blocked = handle(&mut multipath, 1_000, Input::RemoteDown(0));
    assert_eq!(blocked, [changed(0, PathState::Active, PathState::Blocked)]);
    assert_eq!(multipath.poll_timeout(), Some(6_000));
    assert_eq!(handle(&mut multipath, 5_999, Input::Timeout), []);
    let failed = [changed(0, PathState::Blocked, PathState::Failed), Output::Withdraw(0)];
    assert_eq!(handle(&mut multipath, 6_000, Input::Timeout), failed);
    assert_eq!(multipath.poll_timeout(), Some(61_000));
    let gone = [changed(0, PathState::Failed, PathState::Gone)];
    assert_eq!(handle(&mut multipath, 61_000, Input::Timeout), gone);
    assert_eq!(multipath.poll_timeout(), None);
    let back = [changed(0, PathState::Gone, PathState::Active)];
    assert_eq!(handle(&mut multipath, 90_000, Input::RemoteUp(0)), back);
}

#[test]
fn a_short_outage_withdraws_no_command() {
    let mut multipath = active(PathPolicy::RoundRobin, 1);
    handle(&mut multipath, 1_000, Input::RemoteDown(0));
    assert_eq!(choose(&mut multipath), Choice::NoPath);
    assert_eq!(handle(&mut multipath, 1_000, Input::Wait(3)), []);
    let back = [changed(0, PathState::Blocked, PathState::Active), Output::Retry(3)];
    assert_eq!(handle(&mut multipath, 5_000, Input::RemoteUp(0)), back);
    assert_eq!(choose(&mut multipath), Choice::Path(0));
    assert_eq!(multipath.poll_timeout(), None);
}

#[test]
fn dev_loss_before_fast_io_fail_withdraws_commands_too() {
    let mut multipath =
        Multipath::new(config::Multipath { dev_loss: Picos(2_000), ..config(PathPolicy::RoundRobin) }.into(), 1);
    multipath.handle(0, Input::RemoteUp(0));
    multipath.handle(0, Input::RemoteDown(0));
    outputs(&mut multipath);
    let gone = [changed(0, PathState::Blocked, PathState::Gone), Output::Withdraw(0)];
    assert_eq!(handle(&mut multipath, 2_000, Input::Timeout), gone);
}

#[test]
fn no_path_retry_begins_when_the_last_path_fails() {
    let mut multipath = active(PathPolicy::RoundRobin, 2);
    handle(&mut multipath, 0, Input::RemoteDown(0));
    handle(&mut multipath, 1_000, Input::RemoteDown(1));
    handle(&mut multipath, 2_000, Input::Wait(1));
    // Path 0 fails at 5,000 ps and path 1 at 6,000 ps. Only then does the timeout of a waiting
    // command start.
    handle(&mut multipath, 6_000, Input::Timeout);
    handle(&mut multipath, 50_000, Input::Wait(2));
    handle(&mut multipath, 61_000, Input::Timeout);
    assert_eq!(multipath.poll_timeout(), Some(106_000));
    assert_eq!(handle(&mut multipath, 105_999, Input::Timeout), []);
    let first = handle(&mut multipath, 106_000, Input::Timeout);
    assert_eq!(first, [Output::Fail(1)]);
    let second = handle(&mut multipath, 150_000, Input::Timeout);
    assert_eq!(second, [Output::Fail(2)]);
    assert_eq!(multipath.waiting(), 0);
}

#[test]
fn a_late_timeout_changes_no_time() {
    let late = |times: &[u64]| {
        let mut multipath = active(PathPolicy::RoundRobin, 2);
        handle(&mut multipath, 0, Input::RemoteDown(1));
        handle(&mut multipath, 1_000, Input::RemoteDown(0));
        handle(&mut multipath, 1_000, Input::Wait(1));
        for &at_ps in times {
            handle(&mut multipath, at_ps, Input::Timeout);
        }
        multipath.poll_timeout()
    };
    assert_eq!(late(&[5_000, 6_000, 60_000, 61_000]), Some(106_000));
    assert_eq!(late(&[80_000]), Some(106_000));
}

#[test]
fn a_failure_demotes_a_path_and_the_path_checker_brings_it_back() {
    let mut multipath = active(PathPolicy::RoundRobin, 2);
    let demoted = [changed(0, PathState::Active, PathState::Suspect)];
    assert_eq!(handle(&mut multipath, 30, Input::Failed(0)), demoted);
    assert_eq!(choose(&mut multipath), Choice::Path(1));
    assert_eq!(choose(&mut multipath), Choice::Path(1));
    let probe_ps = 30 + POLLING_PS;
    assert_eq!(multipath.poll_timeout(), Some(probe_ps));
    assert_eq!(handle(&mut multipath, probe_ps, Input::Timeout), [Output::Probe(0)]);
    let again_ps = probe_ps + POLLING_PS;
    assert_eq!(handle(&mut multipath, again_ps, Input::Timeout), [], "one test command at a time");
    assert_eq!(handle(&mut multipath, again_ps + 1, Input::Failed(0)), []);
    let third_ps = again_ps + POLLING_PS;
    assert_eq!(handle(&mut multipath, third_ps, Input::Timeout), [Output::Probe(0)]);
    let back = [changed(0, PathState::Suspect, PathState::Active)];
    assert_eq!(handle(&mut multipath, third_ps + 1, Input::Done(0)), back);
    assert_eq!(multipath.poll_timeout(), None);
}

#[test]
fn the_path_checker_fails_a_path_that_does_not_answer() {
    let mut multipath = active(PathPolicy::RoundRobin, 2);
    assert_eq!(handle(&mut multipath, 10, Input::Aborted(0)), []);
    assert_eq!(multipath.state(0), PathState::Active);
    assert_eq!(handle(&mut multipath, 10 + POLLING_PS, Input::Timeout), [Output::Probe(0)]);
    let demoted = [changed(0, PathState::Active, PathState::Suspect)];
    assert_eq!(handle(&mut multipath, 30 + POLLING_PS, Input::Failed(0)), demoted);
}

#[test]
fn a_path_whose_commands_complete_again_is_not_tested() {
    let mut multipath = active(PathPolicy::RoundRobin, 1);
    handle(&mut multipath, 10, Input::Aborted(0));
    assert_eq!(handle(&mut multipath, 20, Input::Done(0)), []);
    assert_eq!(multipath.poll_timeout(), None);
}

#[test]
fn with_no_path_retry_queue_a_request_waits_without_limit() {
    let config = config::Multipath { no_path_retry: None, ..config(PathPolicy::RoundRobin) };
    let mut multipath = Multipath::new(config.into(), 1);
    assert_eq!(handle(&mut multipath, 0, Input::Wait(1)), []);
    assert_eq!(multipath.poll_timeout(), None);
    let back = [changed(0, PathState::Gone, PathState::Active), Output::Retry(1)];
    assert_eq!(handle(&mut multipath, u64::MAX / 2, Input::RemoteUp(0)), back);
}

#[test]
fn commands_wait_for_the_path_checker_if_all_paths_are_suspect() {
    let mut multipath = active(PathPolicy::LeastQueue, 2);
    handle(&mut multipath, 0, Input::Failed(0));
    handle(&mut multipath, 10, Input::Failed(1));
    assert_eq!(choose(&mut multipath), Choice::NoPath);
    assert_eq!(handle(&mut multipath, 20, Input::Wait(9)), []);
    assert_eq!(handle(&mut multipath, POLLING_PS, Input::Timeout), [Output::Probe(0)]);
    let back = [changed(0, PathState::Suspect, PathState::Active), Output::Retry(9)];
    assert_eq!(handle(&mut multipath, POLLING_PS + 5, Input::Done(0)), back);
    // Without an answer they fail when `no_path_retry` is over.
    let mut multipath = active(PathPolicy::LeastQueue, 1);
    handle(&mut multipath, 10, Input::Failed(0));
    handle(&mut multipath, 20, Input::Wait(9));
    handle(&mut multipath, 19 + NO_PATH_PS, Input::Timeout);
    assert_eq!(handle(&mut multipath, 20 + NO_PATH_PS, Input::Timeout), [Output::Fail(9)]);
}

#[test]
fn a_usable_path_that_is_not_admitted_is_busy_and_not_lost() {
    let mut multipath = active(PathPolicy::RoundRobin, 2);
    assert_eq!(multipath.choose(1, |_| false), Choice::Busy);
    assert_eq!(multipath.choose(1, |path| path == 1), Choice::Path(1));
    assert_eq!(multipath.outstanding(1), 1);
    assert_eq!(multipath.outstanding(0), 0);
}

#[test]
fn round_robin_takes_usable_paths_in_turn() {
    let mut multipath = active(PathPolicy::RoundRobin, 4);
    handle(&mut multipath, 0, Input::RemoteDown(2));
    let taken: Vec<Choice> = (0..6).map(|_| choose(&mut multipath)).collect();
    assert_eq!(taken, [0, 1, 3, 0, 1, 3].map(Choice::Path));
}

#[test]
fn least_queue_takes_the_shortest_queue() {
    let mut multipath = active(PathPolicy::LeastQueue, 3);
    let taken: Vec<Choice> = (0..4).map(|_| choose(&mut multipath)).collect();
    assert_eq!(taken, [0, 1, 2, 0].map(Choice::Path));
    multipath.release(2, 4096, End::NotDone);
    assert_eq!(choose(&mut multipath), Choice::Path(2));
}

#[test]
fn failover_uses_the_first_usable_path_and_fails_back() {
    let mut multipath = active(PathPolicy::Failover, 3);
    assert_eq!(choose(&mut multipath), Choice::Path(0));
    assert_eq!(multipath.choose(1, |path| path != 0), Choice::Busy);
    handle(&mut multipath, 0, Input::RemoteDown(0));
    assert_eq!(choose(&mut multipath), Choice::Path(1));
    assert_eq!(choose(&mut multipath), Choice::Path(1));
    handle(&mut multipath, 0, Input::RemoteUp(0));
    assert_eq!(choose(&mut multipath), Choice::Path(0));
}

#[test]
fn service_time_gives_a_fast_path_the_larger_share() {
    let mut multipath = active(PathPolicy::ServiceTime, 2);
    // Two FIFO paths, one three times as fast as the other; 16 commands are always in flight.
    let service_ps = [10_000, 30_000];
    let mut free_at_ps = [0u64; 2];
    let mut under_way: BTreeMap<(u64, u32), (u16, u64)> = BTreeMap::new();
    let mut taken = [0u32; 2];
    let mut now_ps = 0;
    for number in 0..4_000 {
        let Choice::Path(path) = choose(&mut multipath) else {
            panic!("both paths are active");
        };
        let index = usize::from(path);
        taken[index] += 1;
        free_at_ps[index] = free_at_ps[index].max(now_ps) + service_ps[index];
        under_way.insert((free_at_ps[index], number), (path, now_ps));
        if under_way.len() == 16 {
            let ((end_ps, _), (path, sent_ps)) = under_way.pop_first().expect("sixteen");
            now_ps = end_ps;
            multipath.release(path, 4096, End::Done { sent_ps, now_ps });
        }
    }
    let share = f64::from(taken[0]) / f64::from(taken[0] + taken[1]);
    assert!((share - 0.75).abs() < 0.02, "{share}");
}

#[test]
fn service_time_is_measured_without_the_wait_for_other_commands() {
    let mut multipath = active(PathPolicy::ServiceTime, 2);
    // Both paths need 10,000 ps for a command. Eight commands queue on path 0; on path 1 they
    // arrive one at a time.
    for _ in 0..8 {
        assert_eq!(multipath.choose(4096, |path| path == 0), Choice::Path(0));
    }
    for number in 0..8 {
        let now_ps = (number + 1) * 10_000;
        multipath.release(0, 4096, End::Done { sent_ps: 0, now_ps });
        assert_eq!(multipath.choose(4096, |path| path == 1), Choice::Path(1));
        let sent_ps = number * 10_000;
        multipath.release(1, 4096, End::Done { sent_ps, now_ps });
    }
    let taken: Vec<Choice> = (0..6).map(|_| choose(&mut multipath)).collect();
    assert_eq!(taken, [0, 1, 0, 1, 0, 1].map(Choice::Path));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Up(u16),
    Down(u16),
    Done(u16),
    Failed(u16),
    Send,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..4u16).prop_map(Step::Up),
        2 => (0..4u16).prop_map(Step::Down),
        1 => (0..4u16).prop_map(Step::Done),
        3 => (0..4u16).prop_map(Step::Failed),
        5 => Just(Step::Send),
        3 => (0..80_000u64).prop_map(Step::Pass),
        1 => Just(Step::Pass(POLLING_PS)),
    ]
}

fn policy() -> impl Strategy<Value = PathPolicy> {
    prop::sample::select(vec![
        PathPolicy::RoundRobin,
        PathPolicy::LeastQueue,
        PathPolicy::ServiceTime,
        PathPolicy::Failover,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any inputs: a command uses an active path if there is one, otherwise it waits. A waiting
    /// command is retried or fails exactly once, and never before its timeout. Timeouts always
    /// advance.
    #[test]
    fn commands_use_the_best_paths_and_each_one_ends(
        policy in policy(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        const PATHS: u16 = 4;
        let mut multipath = Multipath::new(config(policy).into(), PATHS);
        let mut now_ps = 0;
        let mut next_command = 0;
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        let mut states = [PathState::Gone; PATHS as usize];
        for step in steps {
            let mut inputs = Vec::new();
            match step {
                Step::Up(path) => inputs.push((now_ps, Input::RemoteUp(path))),
                Step::Down(path) => inputs.push((now_ps, Input::RemoteDown(path))),
                Step::Done(path) => inputs.push((now_ps, Input::Done(path))),
                Step::Failed(path) => inputs.push((now_ps, Input::Failed(path))),
                Step::Send => {
                    let has = |state| states.contains(&state);
                    match multipath.choose(512, |_| true) {
                        Choice::Path(path) => {
                            prop_assert_eq!(multipath.state(path), PathState::Active);
                            multipath.release(path, 512, End::NotDone);
                        }
                        Choice::Busy => prop_assert!(false, "every path was admitted"),
                        Choice::NoPath => {
                            prop_assert!(!has(PathState::Active));
                            waiting.insert(next_command, now_ps);
                            inputs.push((now_ps, Input::Wait(next_command)));
                            next_command += 1;
                        }
                    }
                }
                Step::Pass(time_ps) => {
                    let until_ps = now_ps + time_ps;
                    while let Some(at_ps) = multipath.poll_timeout().filter(|&at| at <= until_ps) {
                        prop_assert!(at_ps > now_ps, "a timeout was handled and stayed");
                        now_ps = at_ps;
                        multipath.handle(at_ps, Input::Timeout);
                        check(&mut multipath, now_ps, &mut waiting, &mut states)?;
                    }
                    now_ps = until_ps;
                }
            }
            for (at_ps, input) in inputs {
                multipath.handle(at_ps, input);
                check(&mut multipath, now_ps, &mut waiting, &mut states)?;
            }
            prop_assert_eq!(multipath.waiting(), waiting.len());
        }
        // Timeouts alone end every wait: all blocked paths fail, and then the commands fail.
        while let Some(at_ps) = multipath.poll_timeout().filter(|_| !waiting.is_empty()) {
            multipath.handle(at_ps, Input::Timeout);
            check(&mut multipath, at_ps, &mut waiting, &mut states)?;
        }
        prop_assert!(waiting.is_empty());
    }

    /// As long as the same paths are usable, round robin uses them equally often.
    #[test]
    fn equal_paths_get_equal_shares(
        policy in prop::sample::select(vec![
            PathPolicy::RoundRobin,
            PathPolicy::LeastQueue,
            PathPolicy::ServiceTime,
        ]),
        paths in 1..8u16,
        sends in 1..200u32,
    ) {
        let mut multipath = active(policy, paths);
        let mut taken = vec![0u32; usize::from(paths)];
        for _ in 0..sends {
            let Choice::Path(path) = choose(&mut multipath) else {
                panic!("every path is active");
            };
            taken[usize::from(path)] += 1;
            let most = taken.iter().max();
            let least = taken.iter().min();
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        }
    }
}

fn check(
    multipath: &mut Multipath,
    now_ps: u64,
    waiting: &mut BTreeMap<u32, u64>,
    states: &mut [PathState; 4],
) -> Result<(), TestCaseError> {
    for output in outputs(multipath) {
        match output {
            Output::Changed { path, from, to } => {
                let state = &mut states[usize::from(path)];
                prop_assert_eq!(*state, from);
                prop_assert_ne!(from, to);
                *state = to;
            }
            Output::Retry(command) => prop_assert!(waiting.remove(&command).is_some()),
            Output::Fail(command) => {
                let since_ps = waiting.remove(&command);
                prop_assert!(since_ps.is_some_and(|since| since + NO_PATH_PS <= now_ps));
            }
            Output::Withdraw(_) | Output::Probe(_) => {}
        }
    }
    for (path, state) in (0..).zip(&*states) {
        prop_assert_eq!(multipath.state(path), *state);
    }
    prop_assert!(waiting.is_empty() || !states.contains(&PathState::Active));
    Ok(())
}
