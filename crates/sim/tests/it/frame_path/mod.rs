//! Equivalence of the fast and the plain engine: the same frames at the same times, on random
//! networks with and without faults.
//!
//! The engines are compared at each instant with an event in the plain engine, and just before it.
//! The frames sent, delivered and lost by location and reason must agree, and so must the
//! frame-hops. This compares the time of each event.

pub mod case;
mod cut_through;
mod found;
pub mod network;
pub mod plain;
mod recovery;

use case::{Action, Case, Target, case};
use network::Both;
use plain::{Chances, Goal};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_fc::config::{LineRate, Queueing};
use sanloom_fc::exchange::{SeqIds, SeqTx};
use sanloom_sim::net::ethernet::Packet;
use sanloom_sim::net::{FrameRef, Incident, Loss, LossSite, NetEvent};
use sanloom_wire::{FcId, Frame, Message, Payload};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Length of the data field of a full frame.
const FRAME_BYTES: usize = 2048;

/// Both engines during a case.
pub struct Comparison {
    pub both: Both,
    delivered: Vec<(u64, Goal, plain::Frame)>,
    /// Frames that arrived at Ethernet interfaces: time, interface and frame.
    pub packets: Vec<(u64, u16, Packet)>,
    /// Times at which N_Ports of the fast engine empty a buffer. The last number distinguishes
    /// buffers.
    empties: BTreeSet<(u64, u16, u64)>,
    exchange: u16,
}

fn plain_frame(frame: &FrameRef) -> plain::Frame {
    plain::Frame {
        s_id: frame.s_id().to_u32(),
        d_id: frame.d_id().to_u32(),
        exchange: frame.ox_id(),
        part: if frame.is_data() { frame.seq_cnt() } else { frame.part() },
        len: frame.len_bytes(),
        control: !frame.is_data(),
        bad: frame.is_corrupt(),
        channel: frame.channel(),
    }
}

fn plain_place(site: LossSite) -> plain::Place {
    match site {
        LossSite::Line(lane) => plain::Place::Line(lane as usize),
        LossSite::Receiver(lane) => plain::Place::Receiver(lane as usize),
        LossSite::Processor(switch) => plain::Place::Processor(switch.into()),
    }
}

impl Comparison {
    pub fn new(both: Both) -> Comparison {
        Comparison { both, delivered: Vec::new(), packets: Vec::new(), empties: BTreeSet::new(), exchange: 0 }
    }

    fn run(&mut self, until: u64) -> Result<(), TestCaseError> {
        while let Some(next) = self.both.plain.next_instant().filter(|&next| next <= until) {
            if next > self.both.plain.now {
                self.run_fast(next - 1);
                self.same("before that")?;
            }
            self.run_fast(next);
            self.both.plain.run_until(next);
            self.same("after that")?;
        }
        self.run_fast(until);
        self.both.plain.run_until(until);
        self.same("then")
    }

    /// Runs the fast engine up to `until`.
    pub fn run_fast(&mut self, until: u64) {
        loop {
            let empties = self.empties.first().map(|first| first.0).filter(|&at| at <= until);
            while let Some(event) = self.both.fast.step(empties.unwrap_or(until)) {
                self.take(event);
            }
            let Some(at) = empties else { return };
            while let Some(first) = self.empties.first().copied().filter(|first| first.0 == at) {
                self.empties.remove(&first);
                self.both.fast.release(first.1, at);
            }
        }
    }

    /// Handles a frame that arrived in the fast engine.
    fn take(&mut self, event: NetEvent) {
        let now = self.both.fast.now();
        let (goal, frame) = match event {
            NetEvent::Deliver { nport, frame } => {
                match self.both.empties_after[usize::from(nport)] {
                    0 => self.both.fast.release(nport, now),
                    time => drop(self.empties.insert((now + time, nport, self.both.fast.events()))),
                }
                (Goal::NPort(nport.into()), frame)
            }
            NetEvent::Local { switch, port, frame } => (Goal::Switch(switch.into(), port.into()), frame),
            NetEvent::Timer(timer) => panic!("timer {timer} has no owner"),
            NetEvent::Incident => return,
            NetEvent::Packet { interface, packet } => return self.packets.push((now, interface, packet)),
            NetEvent::Infiniband { .. } | NetEvent::Tunnel => panic!("no such plane here"),
        };
        self.delivered.push((now, goal, plain_frame(&frame)));
        if let Some(message) = frame.message() {
            self.both.fast.fc.messages.deliver(message);
        }
    }

    /// Checks that the counters of both engines agree, and that those of the fast engine are
    /// consistent.
    pub fn same(&self, when: &str) -> Result<(), TestCaseError> {
        let (fast, plain) = (&self.both.fast, &self.both.plain);
        let lost = fast
            .fc
            .recorder
            .losses()
            .iter()
            .map(|(&(place, why), lost)| ((plain_place(place), why.name()), lost.frames));
        let counts = (
            [fast.fc.fate.sent, fast.fc.fate.frame_hops, fast.fc.fate.delivered, fast.fc.frames_in_flight()],
            lost.collect::<BTreeMap<_, _>>(),
        );
        let delivered = plain.delivered.len() as u64;
        let plain_counts = ([plain.sent, plain.hops, delivered, plain.frames_in_flight() as u64], plain.lost.clone());
        if counts != plain_counts {
            let next = plain.next_instant();
            return Err(TestCaseError::fail(format!(
                "{when}, at {} ps, next {next:?}\nfast  {counts:?} {:?}\nplain {plain_counts:?} {:?} {:?}",
                plain.now,
                fast.fc.recorder.incidents(),
                plain.resets,
                plain.held
            )));
        }
        prop_assert_eq!(
            fast.fc.fate.delivered + fast.fc.fate.lost_frames() + fast.fc.frames_in_flight(),
            fast.fc.fate.sent
        );
        prop_assert_eq!(fast.fc.check_credits(), Ok(()), "credits at {} ps", plain.now);
        Ok(())
    }

    /// Compares the times of deliveries, link resets and hold-time discards.
    pub fn same_history(&mut self) -> Result<(), TestCaseError> {
        let Comparison { both: Both { fast, plain, .. }, delivered, .. } = self;
        delivered.sort();
        plain.delivered.sort();
        if let Some(at) = (0..delivered.len()).find(|&i| plain.delivered.get(i) != Some(&delivered[i])) {
            let near = |list: &[(u64, Goal, plain::Frame)]| format!("{:#?}", list.get(at));
            let (fast, plain) = (near(delivered), near(&plain.delivered));
            return Err(TestCaseError::fail(format!("delivery {at}: fast {fast} plain {plain}")));
        }
        let (mut resets, mut held) = (Vec::new(), Vec::new());
        for incident in fast.fc.recorder.incidents() {
            match *incident {
                Incident::LinkReset { at_ps, lane } => resets.push((at_ps, lane as usize)),
                Incident::HoldTime { at_ps, switch, port, frames } => {
                    held.push((at_ps, switch.into(), port.into(), frames as usize));
                }
                Incident::Deadlock { .. } => {}
            }
        }
        prop_assert_eq!(&resets, &plain.resets);
        prop_assert_eq!(&held, &plain.held);
        Ok(())
    }

    /// Executes an action in both engines.
    pub fn execute(&mut self, action: Action) {
        let Comparison { both, exchange, .. } = self;
        let lanes = both.plain.lanes.len();
        match action {
            Action::Data { from, to, bytes } => {
                let (from, d_id) = (from % both.wiring.ids.len(), both.address(to));
                let s_id = both.wiring.ids[from];
                if s_id != d_id {
                    *exchange += 1;
                    let ids = SeqIds { s_id, d_id, ox_id: *exchange, rx_id: 0, seq_id: 0, from_responder: true };
                    both.fast.send_data(from as u16, SeqTx::new(ids, FRAME_BYTES as u16, 0, 0, bytes));
                    both.plain.send(from, frames(s_id, d_id, *exchange, bytes as usize, false));
                }
            }
            Action::Message { from, to, bytes } => {
                let (from, d_id) = (from % both.wiring.ids.len(), both.address(to));
                let s_id = both.wiring.ids[from];
                if s_id != d_id {
                    *exchange += 1;
                    both.fast.send_message(from as u16, message(s_id, d_id, *exchange, bytes));
                    both.plain.send(from, frames(s_id, d_id, *exchange, bytes, true));
                }
            }
            Action::FromSwitch { switch, port, to, bytes } => {
                let switch = switch % both.wiring.ports.len();
                let port = port % usize::from(both.wiring.ports[switch].max(1));
                let (s_id, d_id) = (both.address(Target::Controller(switch)), both.address(to));
                *exchange += 1;
                both.fast.send_from_switch(switch as u16, port as u16, message(s_id, d_id, *exchange, bytes));
                both.plain.send_from_switch(switch, port, frames(s_id, d_id, *exchange, bytes, true));
            }
            Action::Down { link } => self.down(link % (lanes / 2)),
            Action::Up { link } => {
                let link = link % (lanes / 2);
                if !both.plain.lanes[2 * link].up {
                    both.fast.link_up(link as u16);
                    both.plain.link_up(link);
                }
            }
            Action::Reroute => {
                if both.reroute() {
                    *both.plain.occurred.entry("reroute").or_default() += 1;
                }
            }
            Action::Reset { switch } => {
                let switch = switch % both.wiring.ports.len();
                both.fast.reset_switch(switch as u16);
                both.plain.reset_switch(switch);
                for link in self.both.wiring.links_of(switch) {
                    self.down(link);
                }
            }
            Action::Slow { lane, ns } => {
                both.fast.fc.slow_receiver((lane % lanes) as u32, ns * 1_000);
                both.plain.slow_receiver(lane % lanes, ns * 1_000);
            }
            Action::Withhold { lane, withhold } => {
                both.fast.withhold_credits((lane % lanes) as u32, withhold);
                both.plain.withhold_r_rdys(lane % lanes, withhold);
            }
            Action::Chances { lane, chances } => {
                let lane = lane % lanes;
                let seed = lane as u64;
                let fault = both.fast.fc.fault_mut(lane as u32, || Xoshiro256PlusPlus::seed_from_u64(seed));
                let Chances { frame_loss, crc_errors, r_rdy_loss } = chances;
                (fault.frame_loss, fault.crc_errors, fault.r_rdy_loss) = (frame_loss, crc_errors, r_rdy_loss);
                both.plain.set_chances(lane, chances, seed);
            }
            Action::Prefer { from, to, priority } => {
                let [s_id, d_id] = [from, to].map(|nport| both.wiring.ids[nport % both.wiring.ids.len()].to_u32());
                both.fast.fc.priorities.set_pair(s_id, d_id, priority);
                both.plain.priorities.pairs.insert((s_id, d_id), priority as usize);
            }
            Action::Quarantine { nport, starts } => {
                let id = both.wiring.ids[nport % both.wiring.ids.len()].to_u32();
                both.fast.fc.priorities.quarantine(id, starts);
                let plain = &mut both.plain.priorities;
                if starts {
                    plain.quarantined.insert(id);
                    plain.changed.insert(id);
                } else {
                    plain.quarantined.remove(&id);
                }
            }
        }
    }

    fn down(&mut self, link: usize) {
        if self.both.plain.lanes[2 * link].up {
            self.both.fast.link_down(link as u16);
            self.both.plain.link_down(link);
        }
    }
}

fn message(s_id: FcId, d_id: FcId, ox_id: u16, bytes: usize) -> Frame {
    Frame { header: Message::FcpConf.header(s_id, d_id, ox_id, 0), payload: Payload::Bytes(vec![0; bytes].into()) }
}

/// Returns the frames of a sequence or of a message.
fn frames(s_id: FcId, d_id: FcId, exchange: u16, bytes: usize, control: bool) -> Vec<plain::Frame> {
    let (s_id, d_id) = (s_id.to_u32(), d_id.to_u32());
    let frame = |part: usize| {
        let len = bytes.saturating_sub(part * FRAME_BYTES).min(FRAME_BYTES) as u16;
        plain::Frame { s_id, d_id, exchange, part: part as u16, len, control, bad: false, channel: 0 }
    };
    (0..bytes.div_ceil(FRAME_BYTES).max(1)).map(frame).collect()
}

/// Runs a case in both engines, compares them, and adds the events to `occurred`.
fn compare_engines(case: &Case, occurred: &mut BTreeMap<&'static str, u64>) -> Result<(), TestCaseError> {
    let mut comparison = Comparison::new(Both::of(case));
    let mut now = 0;
    for &(gap, action) in &case.actions {
        now += gap * 1_000;
        comparison.run(now)?;
        comparison.execute(action);
        comparison.same("after an action")?;
    }
    // Without timeouts, the run lasts until nothing can happen any more. With timeouts it is
    // limited, because links may be reset forever.
    let longest_timeout_ns = case.hold_time.into_iter().chain(case.e_d_tov).max();
    comparison.run(now + longest_timeout_ns.map_or(1_000_000_000_000, |ns| 20 * ns * 1_000))?;
    comparison.same_history()?;
    let Both { fast, plain, .. } = &comparison.both;
    if fast.fc.frames_in_flight() == 0 && (0..case.nports.len()).all(|nport| fast.fc.nport(nport as u16).unsent() == 0)
    {
        prop_assert!(fast.fc.messages.is_empty(), "an unsent message stays in the pool");
    }
    for (&(_, why), &frames) in &plain.lost {
        *occurred.entry(why).or_default() += frames;
    }
    for (&what, &times) in &plain.occurred {
        *occurred.entry(what).or_default() += times;
    }
    *occurred.entry("resets").or_default() += plain.resets.len() as u64;
    let arrived = |of: fn(&Goal, &plain::Frame) -> bool| {
        plain.delivered.iter().filter(|(_, goal, frame)| of(goal, frame)).count() as u64
    };
    *occurred.entry("data").or_default() += arrived(|_, frame| !frame.control);
    *occurred.entry("control_at_nport").or_default() += arrived(|goal, f| f.control && matches!(goal, Goal::NPort(_)));
    *occurred.entry("control_at_switch").or_default() += arrived(|goal, _| matches!(goal, Goal::Switch(..)));
    *occurred.entry("later_parts").or_default() += arrived(|_, frame| frame.control && frame.part > 0);
    Ok(())
}

/// Events that must occur, with their minimum number in a hundred cases: at most a fourth of the
/// actual number.
const WANTED: [(&str, u64); 35] = [
    ("data", 1_500),
    ("control_at_nport", 100),
    ("control_at_switch", 50),
    ("later_parts", 40),
    ("ingress", 60),
    ("spray", 60),
    ("least-loaded", 60),
    ("exchange", 60),
    ("pair", 60),
    ("leg back", 3),
    ("only leg back", 3),
    ("resets", 80),
    ("reset_with_frames_in_flight", 20),
    ("hold_time", 80),
    ("link_reset", 40),
    ("link_down", 20),
    ("lost_on_line", 10),
    ("switch_reset", 2),
    ("reroute", 3),
    ("no_route", 200),
    ("unknown_destination", 20),
    ("frame_loss", 15),
    ("crc_error", 4),
    ("crc_error_at_destination", 4),
    ("r_rdy_lost", 10),
    ("r_rdy_withheld", 20),
    ("r_rdy_slow", 40),
    ("low", 15),
    ("medium", 150),
    ("high", 2),
    ("a line waits for a slower one", 1),
    ("follows its exchange", 1),
    ("waits for a faster line", 300),
    ("frame_credit_recovered", 1),
    ("r_rdy_credit_recovered", 1),
];

/// Loss reasons that the plain engine does not model: of the forwarding table, and of loops, which
/// have a plain engine of their own in `sanloom-fc`.
const NOT_MODELLED: [&str; 8] = [
    "bad_source_id",
    "zone_denied",
    "port_down",
    "loop_initialised",
    "no_loop_port",
    "ethernet",
    "fcoe_buffer",
    "stale",
];

/// Returns a case with frames and R_RDYs lost on a link with virtual channels and credit recovery
/// between the first two switches.
fn with_recovery(case: Case) -> Case {
    let Case { mut switches, mut isls, mut channels, mut actions, .. } = case;
    switches.push(switches[0]);
    switches.iter_mut().for_each(|switch| switch.queueing = Queueing::Voq);
    isls.insert(0, (0, 1, LineRate::Fc2, 250, [8, 8], false));
    if channels.is_empty() {
        channels = vec![(2, 2), (8, 2)];
    }
    let chances = Chances { frame_loss: 0.1, crc_errors: 0.0, r_rdy_loss: 0.1 };
    let first = 2 * case.nports.len();
    actions.extend(actions.clone());
    actions.splice(0..0, [first, first + 1].map(|lane| (0, Action::Chances { lane, chances })));
    Case { switches, isls, channels, actions, bb_sc_n: case.bb_sc_n.clamp(1, 2), ..case }
}

#[test]
fn both_engines_recover_the_credits_of_virtual_channels() {
    let cases = 100;
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let occurred = RefCell::new(BTreeMap::new());
    let case = case().prop_map(with_recovery);
    let outcome = runner.run(&case, |case| compare_engines(&case, &mut occurred.borrow_mut()));
    if let Err(TestError::Fail(reason, case)) = outcome {
        panic!("{reason}\n{case:#?}");
    }
    let occurred = occurred.into_inner();
    for what in ["frame_credit_recovered_on_channel", "r_rdy_credit_recovered_on_channel"] {
        let times = occurred.get(what).copied().unwrap_or(0);
        assert!(times >= 50, "{what} occurred {times} times in {cases} cases: {occurred:#?}");
    }
}

#[test]
fn both_engines_do_the_same_at_the_same_times() {
    let requested = std::env::var("PROPTEST_CASES").ok();
    let cases = requested.as_ref().map_or(1_000, |cases| cases.parse().expect("PROPTEST_CASES is a number"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    // The cases are the same every time, unless `PROPTEST_CASES` requests a campaign.
    let mut runner = match requested {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let occurred = RefCell::new(BTreeMap::new());
    let outcome = runner.run(&case(), |case| compare_engines(&case, &mut occurred.borrow_mut()));
    if let Err(TestError::Fail(reason, case)) = outcome {
        panic!("{reason}\n{case:#?}");
    }
    let occurred = occurred.into_inner();
    for (what, least) in WANTED {
        let times = occurred.get(what).copied().unwrap_or(0);
        assert!(
            times * 100 >= least * u64::from(cases),
            "{what} occurred {times} times in {cases} cases: {occurred:#?}"
        );
    }
    for loss in Loss::ALL {
        let why = loss.name();
        assert!(NOT_MODELLED.contains(&why) != WANTED.iter().any(|wanted| wanted.0 == why), "{why}");
    }
}
