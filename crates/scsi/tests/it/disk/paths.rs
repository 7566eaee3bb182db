//! Choice among paths: a device with one group per port, whose states change and whose ports come
//! and go, and commands on the path in use.

use proptest::prelude::*;
use sanloom_scsi::disk::paths::{Input, Output};
use sanloom_scsi::disk::{Access, AccessInput, AccessOutput, AccessProbe, Data, End, Paths, Reply};
use sanloom_scsi::scsi::{
    self, AccessState, Attribute, Device, DeviceConfig, IoTag, NexusId, PortConfig, PortGroup, PortName, Step, TaskId,
    UnitConfig,
};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun::LunBytes;
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::SenseCode;
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::VecDeque;

const LUN: LunBytes = [0; 8];
const TICK: Span = Span::from_ms(10);
/// Duration of a command at the target.
const WORK: Span = Span::from_ms(30);

/// Command of a host.
#[derive(Clone, Copy, Debug)]
struct Work {
    id: u64,
    ends: Instant,
}

struct World {
    now: Instant,
    device: Device,
    paths: Paths,
    probe: AccessProbe,
    /// Ports that are reachable, and ports that refuse every login.
    reachable: Vec<bool>,
    refuses: Vec<bool>,
    connecting: Option<(usize, Instant)>,
    /// Path and nexus of the session, and its commands in flight.
    session: Option<(usize, NexusId)>,
    in_flight: Vec<Work>,
    waiting: VecDeque<u64>,
    draining: bool,
    next_id: u64,
    /// Number of completions of each command.
    ended: Vec<u32>,
    /// Path of each session, in order.
    used: Vec<usize>,
    tags: u32,
}

impl World {
    fn new(groups: &[PortGroup]) -> World {
        let port = |number: u64| PortConfig {
            name: PortName::Fcp(Wwpn(0x5000_0000_0000_0000 + number)),
            group: number as u16 + 10,
        };
        let mut device = Device::new(DeviceConfig {
            wwnn: Wwnn(0x5000_0000_0000_00ff),
            ports: (0..groups.len() as u64).map(port).collect(),
            units: vec![UnitConfig::new(64, 512)],
            attentions: true,
            ..DeviceConfig::default()
        });
        for (group, number) in groups.iter().zip(10..) {
            device.set_port_group(number, *group);
        }
        World {
            now: Instant::ZERO,
            device,
            paths: Paths::new(groups.len()),
            probe: AccessProbe::new(),
            reachable: vec![true; groups.len()],
            refuses: vec![false; groups.len()],
            connecting: None,
            session: None,
            in_flight: Vec::new(),
            waiting: VecDeque::new(),
            draining: false,
            next_id: 0,
            ended: Vec::new(),
            used: Vec::new(),
            tags: 0,
        }
    }

    fn handle(&mut self, input: Input) {
        self.paths.handle(self.now, input);
        self.carry();
    }

    fn carry(&mut self) {
        while let Some(output) = self.paths.poll_output() {
            match output {
                Output::Open(path) => {
                    assert!(self.connecting.is_none(), "one at a time");
                    self.connecting = Some((path, self.now + Span::from_ms(5)));
                }
                Output::Abandon => {}
                Output::Drain => {
                    assert!(self.session.is_some() && !self.draining);
                    self.draining = true;
                }
                Output::LogIn(path) => {
                    // A command still in flight could take effect after its repetition.
                    assert!(self.session.is_none() && self.in_flight.is_empty(), "{:?}", self.in_flight);
                    if !self.reachable[path] || self.refuses[path] {
                        self.handle(Input::Failed);
                        continue;
                    }
                    let host = TransportId::Fcp(Wwpn(0x2000_0000_0000_0000));
                    let nexus = self.device.connect(path as u16, host);
                    self.session = Some((path, nexus));
                    self.used.push(path);
                    self.paths.handle(self.now, Input::LoggedIn);
                    self.probe_access(AccessInput::PathUp);
                    self.probe_access(AccessInput::Probe);
                }
                Output::Probe => self.probe_access(AccessInput::Probe),
                Output::Set { lun, group } => {
                    assert_eq!(lun, LUN);
                    self.probe_access(AccessInput::Set(group));
                }
            }
        }
    }

    /// The device answers the probe's commands at once.
    fn probe_access(&mut self, input: AccessInput) {
        self.probe.handle(self.now, input);
        while let Some(output) = self.probe.poll_output() {
            match output {
                AccessOutput::Command(command) => {
                    let out = if let Data::Out(list) = &command.data { list.to_vec() } else { Vec::new() };
                    let end = self.execute(command.cdb, &out);
                    self.probe.handle(self.now, AccessInput::Reply(Reply { id: command.id, end }));
                }
                AccessOutput::Probed(access) => self.paths.handle(self.now, Input::Probed { lun: LUN, access }),
            }
        }
    }

    fn execute(&mut self, cdb: [u8; 16], out: &[u8]) -> End {
        let Some((_, nexus)) = self.session else { return End::PathGone };
        self.tags += 1;
        let (tag, unit, attribute) = (IoTag(self.tags), Some(0), Attribute::Simple);
        let mut step = self.device.begin(&scsi::Command { nexus, tag, unit, cdb, attribute });
        loop {
            step = match step {
                Step::Done(response) => {
                    let sense = response.sense.map(|sense| sense.to_bytes()).unwrap_or_default();
                    let transferred = response.data.len() as u32;
                    return End::Status { status: response.status, sense, transferred, data: response.data.into() };
                }
                Step::Parameters { .. } => self.device.parameters(TaskId { nexus, tag, unit: 0 }, out),
                other => panic!("{other:?}"),
            };
        }
    }

    fn lose(&mut self) {
        if let Some((_, nexus)) = self.session.take() {
            self.device.disconnect(nexus);
            self.probe_access(AccessInput::PathDown);
            let lost = self.in_flight.drain(..).map(|work| work.id);
            self.waiting.extend(lost);
            self.draining = false;
            self.handle(Input::Lost);
        }
    }

    fn tick(&mut self) {
        self.now += TICK;
        if let Some((path, at)) = self.connecting.filter(|(_, at)| *at <= self.now) {
            assert!(at <= self.now);
            self.connecting = None;
            self.handle(if self.reachable[path] { Input::Opened } else { Input::Failed });
        }
        if self.session.is_some_and(|(path, _)| !self.reachable[path]) {
            self.lose();
        }
        self.serve();
        if self.draining && self.in_flight.is_empty() {
            self.draining = false;
            let (_, nexus) = self.session.take().expect("what is drained");
            self.device.disconnect(nexus);
            self.probe_access(AccessInput::PathDown);
            self.handle(Input::Drained);
        }
        if self.paths.poll_timeout().is_some_and(|at| at <= self.now) {
            self.handle(Input::Timeout);
            // No expired timer is left.
            assert!(self.paths.poll_timeout().is_none_or(|at| at > self.now), "{:?}", self.paths);
        }
        if self.probe.poll_timeout().is_some_and(|at| at <= self.now) {
            self.probe_access(AccessInput::Timeout);
            self.carry();
        }
    }

    /// Starts and completes commands.
    fn serve(&mut self) {
        for work in std::mem::take(&mut self.in_flight) {
            if work.ends > self.now {
                self.in_flight.push(work);
                continue;
            }
            let End::Status { status, sense, .. } = self.execute(Cdb::TestUnitReady.to_bytes(), &[]) else {
                panic!("there is a session")
            };
            if status == status::GOOD {
                self.paths.served();
                self.ended[work.id as usize] += 1;
                continue;
            }
            let code = sanloom_wire::sense::Condition::parse(&sense).map(|condition| condition.code);
            if code != Some(SenseCode::POWER_ON_OR_RESET) {
                self.handle(Input::Changed);
            }
            self.waiting.push_back(work.id);
        }
        while self.session.is_some() && !self.draining && self.in_flight.len() < 4 {
            let Some(id) = self.waiting.pop_front() else { break };
            self.in_flight.push(Work { id, ends: self.now + WORK });
        }
    }

    fn submit(&mut self) {
        self.waiting.push_back(self.next_id);
        self.next_id += 1;
        self.ended.push(0);
    }

    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.tick();
        }
    }

    fn set(&mut self, path: usize, state: AccessState) {
        self.device.set_port_group(path as u16 + 10, PortGroup { state, preferred: false });
    }

    fn state(&self, path: usize) -> PortGroup {
        self.device.port_groups().nth(path).map(|(_, group, _)| group).expect("a group for each path")
    }

    fn at(&self) -> Option<usize> {
        self.session.map(|(path, _)| path)
    }
}

const fn plain(state: AccessState) -> PortGroup {
    PortGroup { state, preferred: false }
}

use AccessState::{NonOptimized, Offline, Optimized, Standby, Transitioning, Unavailable};

#[test]
fn the_best_path_is_found_in_any_order_of_the_list() {
    let best = [
        ([plain(NonOptimized), plain(Standby), plain(Optimized)], 2),
        ([plain(Standby), plain(Unavailable), plain(NonOptimized)], 2),
        ([plain(Optimized), plain(Optimized), PortGroup { state: Optimized, preferred: true }], 2),
        ([plain(Optimized), plain(Optimized), PortGroup { state: NonOptimized, preferred: true }], 0),
        ([plain(Optimized), plain(Optimized), plain(Optimized)], 0),
        ([plain(Offline), plain(Transitioning), plain(NonOptimized)], 2),
    ];
    for (groups, path) in best {
        let mut world = World::new(&groups);
        world.submit();
        world.pass(Span::from_secs(2));
        assert_eq!((world.at(), world.ended[0]), (Some(path), 1), "{groups:?}");
    }
}

#[test]
fn the_path_follows_a_change_of_access_states_both_ways() {
    let mut world = World::new(&[plain(Optimized), plain(NonOptimized)]);
    world.submit();
    world.pass(Span::from_secs(1));
    assert_eq!(world.used, [0]);
    for (states, path) in [([NonOptimized, Optimized], 1), ([Optimized, Standby], 0), ([Standby, NonOptimized], 1)] {
        world.set(0, states[0]);
        world.set(1, states[1]);
        world.pass(Span::from_secs(1));
        world.submit();
        world.pass(Span::from_secs(1));
        assert_eq!(world.at(), Some(path), "{states:?}");
    }
    // Without a command that meets the change, the next probe finds it.
    world.set(0, Optimized);
    world.pass(Span::from_secs(11));
    assert_eq!(world.at(), Some(0));
    assert!(world.ended.iter().all(|times| *times == 1));
}

#[test]
fn a_better_path_that_comes_back_is_used_again() {
    let mut world = World::new(&[plain(Optimized), plain(NonOptimized)]);
    world.pass(Span::from_secs(1));
    world.reachable[0] = false;
    world.pass(Span::from_secs(30));
    assert_eq!(world.at(), Some(1));
    assert_eq!(world.used, [0, 1], "it was not left for one that is not there");
    world.reachable[0] = true;
    world.pass(Span::from_secs(60));
    assert_eq!(world.used, [0, 1, 0]);
    // A path that refuses every login is retried periodically while the other one serves.
    world.reachable[0] = false;
    world.pass(Span::from_secs(1));
    (world.reachable[0], world.refuses[0]) = (true, true);
    let before = world.used.len();
    world.pass(Span::from_secs(120));
    assert!(world.used.len() - before < 12, "{:?}", world.used);
    assert!(world.used[before..].iter().all(|path| *path == 1));
}

/// Lets time pass until the next action and returns the path being opened.
fn next_opened(paths: &mut Paths, now: &mut Instant) -> usize {
    *now = paths.poll_timeout().expect("an action is scheduled").max(*now);
    paths.handle(*now, Input::Timeout);
    let Some(Output::Open(path)) = paths.poll_output() else { panic!("{paths:?}") };
    path
}

/// Logs in to that path; `end` is the result.
fn log_in(paths: &mut Paths, now: Instant, path: usize, end: Input) {
    paths.handle(now, Input::Opened);
    assert_eq!((paths.poll_output(), paths.tried()), (Some(Output::LogIn(path)), Some(path)));
    paths.handle(now, end);
}

/// Milliseconds until the next login at the only path; `end` is the result of that login.
fn pause_before(paths: &mut Paths, now: &mut Instant, end: Input) -> u64 {
    let began = *now;
    assert_eq!(next_opened(paths, now), 0);
    log_in(paths, *now, 0, end);
    now.since(began).as_ms()
}

#[test]
fn a_login_that_is_refused_for_good_is_retried_at_growing_intervals() {
    let (mut paths, mut now) = (Paths::new(1), Instant::ZERO);
    assert_eq!(pause_before(&mut paths, &mut now, Input::Refused), 0);
    let pauses: Vec<u64> = (0..8).map(|_| pause_before(&mut paths, &mut now, Input::Refused)).collect();
    assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    // Other failures may be over soon, so the next attempt follows soon.
    assert_eq!(pause_before(&mut paths, &mut now, Input::Failed), 30_000);
    assert_eq!(pause_before(&mut paths, &mut now, Input::Failed), 500);
    assert_eq!(pause_before(&mut paths, &mut now, Input::LoggedIn), 500);
    paths.handle(now, Input::Lost);
    assert_eq!(pause_before(&mut paths, &mut now, Input::Refused), 500);
    assert_eq!(pause_before(&mut paths, &mut now, Input::Refused), 500);
}

#[test]
fn a_path_that_refuses_logins_does_not_delay_other_paths() {
    let (mut paths, mut now, mut opened) = (Paths::new(2), Instant::ZERO, [0, 0]);
    while now < Instant::ZERO + Span::from_secs(60) {
        // Both paths are tried in turn, until the first one has to wait.
        let path = match paths.poll_output() {
            Some(Output::Open(path)) => path,
            Some(other) => panic!("{other:?}"),
            None => next_opened(&mut paths, &mut now),
        };
        opened[path] += 1;
        match path {
            0 => log_in(&mut paths, now, 0, Input::Refused),
            _ => paths.handle(now, Input::Failed),
        }
    }
    assert!((6..=8).contains(&opened[0]) && opened[1] > 100, "{opened:?}");
}

#[test]
fn the_state_of_an_only_path_is_polled_at_long_intervals() {
    let mut world = World::new(&[plain(Optimized)]);
    world.pass(Span::from_secs(1));
    assert_eq!(world.paths.group(0, LUN).map(|group| group.state), Some(Optimized));
    // With one path there is nothing to choose, so probes are rare.
    assert!(world.paths.poll_timeout().is_some_and(|at| at > world.now + Span::from_secs(50)));
    // A device without access states is not probed again.
    world.handle(Input::Probed { lun: LUN, access: Access::default() });
    assert_eq!((world.paths.group(0, LUN), world.paths.poll_timeout()), (None, None));
}

#[test]
fn a_transition_is_waited_for_within_bounds() {
    let mut world = World::new(&[plain(Optimized), plain(Standby)]);
    world.pass(Span::from_secs(1));
    world.set(0, Transitioning);
    world.submit();
    world.pass(Span::from_secs(5));
    assert_eq!((world.at(), world.ended[0]), (Some(0), 0));
    world.set(0, Optimized);
    world.pass(Span::from_secs(1));
    assert_eq!((world.at(), world.ended[0]), (Some(0), 1));
    // A transition that does not end: the other path is made active.
    world.set(0, Transitioning);
    world.submit();
    world.pass(Span::from_secs(13));
    assert_eq!((world.at(), world.ended[1]), (Some(1), 1));
    assert_eq!(world.state(1).state, Optimized);
    assert_eq!(world.used, [0, 1]);
}

#[test]
fn one_path_is_activated_only_if_all_are_in_standby() {
    let mut world = World::new(&[plain(Standby), plain(Standby)]);
    world.submit();
    world.pass(Span::from_secs(1));
    assert_eq!((world.at(), world.ended[0]), (Some(0), 1));
    assert_eq!([world.state(0).state, world.state(1).state], [Optimized, Standby]);
    world.reachable[0] = false;
    world.submit();
    world.pass(Span::from_secs(2));
    assert_eq!((world.at(), world.ended[1]), (Some(1), 1));
    assert_eq!(world.state(1).state, Optimized);
}

#[test]
fn two_ports_that_each_report_the_other_as_better_cause_no_endless_change() {
    // No device of this crate reports that, so the test writes the answers itself.
    let access = |own: u16| Access {
        implicit: true,
        group: Some(own),
        groups: (1..=2)
            .map(|number| sanloom_scsi::disk::AccessGroup {
                number,
                state: if number == own { NonOptimized } else { Optimized },
                preferred: false,
                ports: vec![number],
            })
            .collect(),
        ..Access::default()
    };
    let mut paths = Paths::new(2);
    let (mut now, mut logins) = (Instant::ZERO, 0);
    paths.handle(now, Input::Timeout);
    while now < Instant::ZERO + Span::from_secs(600) {
        while let Some(output) = paths.poll_output() {
            match output {
                Output::Open(_) => paths.handle(now, Input::Opened),
                Output::Drain => paths.handle(now, Input::Drained),
                Output::LogIn(path) => {
                    logins += 1;
                    paths.handle(now, Input::LoggedIn);
                    paths.handle(now, Input::Probed { lun: LUN, access: access(path as u16 + 1) });
                }
                Output::Probe | Output::Abandon | Output::Set { .. } => {}
            }
        }
        now += Span::from_ms(100);
        paths.handle(now, Input::Timeout);
    }
    assert!(logins < 30, "{logins}");
}

#[derive(Clone, Debug)]
enum Event {
    State(usize, AccessState, bool),
    Reach(usize, bool),
    Cut,
    Submit,
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let path = 0_usize..4;
    prop_oneof![
        3 => (path.clone(), 0_usize..6, prop::bool::weighted(0.2))
            .prop_map(|(path, state, preferred)| Event::State(path, AccessState::ALL[state], preferred)),
        2 => (path, any::<bool>()).prop_map(|(path, up)| Event::Reach(path, up)),
        1 => Just(Event::Cut),
        4 => Just(Event::Submit),
        4 => (1_u64..3000).prop_map(Event::Pass),
    ]
}

/// Rank of a path for a command; every transition ends eventually.
fn worth(group: PortGroup) -> (u8, bool) {
    let place = [Offline, Unavailable, Standby, Transitioning, NonOptimized, Optimized];
    (place.iter().position(|state| *state == group.state).unwrap() as u8, group.preferred)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn in_the_end_the_best_path_is_used_and_every_command_has_ended_once(
        count in 1_usize..5,
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut world = World::new(&vec![PortGroup::default(); count]);
        for event in events {
            match event {
                Event::State(path, state, preferred) if path < count => {
                    world.device.set_port_group(path as u16 + 10, PortGroup { state, preferred });
                }
                Event::Reach(path, up) if path < count => world.reachable[path] = up,
                Event::Cut => world.lose(),
                Event::Submit => world.submit(),
                Event::Pass(ms) => world.pass(Span::from_ms(ms)),
                _ => {}
            }
        }
        // At the end an administrator intervenes: one port is reachable and no transition is in
        // progress.
        if !world.reachable.contains(&true) {
            world.reachable[0] = true;
        }
        for path in 0..count {
            if world.state(path).state == Transitioning {
                world.set(path, NonOptimized);
            }
        }
        world.submit();
        world.pass(Span::from_secs(150));
        let used = world.at().expect("a path is used");
        let best = (0..count).filter(|path| world.reachable[*path]).map(|path| worth(world.state(path))).max();
        prop_assert_eq!(Some(worth(world.state(used))), best);
        prop_assert!(world.state(used).state.is_active(), "states can be set");
        prop_assert!(world.ended.iter().all(|times| *times == 1), "{:?}", world.ended);
        let sessions = world.used.len();
        world.pass(Span::from_secs(100));
        prop_assert_eq!(world.used.len(), sessions, "nothing is left without a reason");
    }
}
