//! The fast engine agrees with the plain one to the word, on random loops and requests.

use super::plain::{PlainLoop, State};
use super::shares::{most_buffered, most_outstanding};
use super::util::{Results, Wish, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sanloom_fc::arbitrated_loop::{LoopConfig, LoopPort, LoopRate, LoopTime, Request};
use sanloom_wire::arbitrated_loop::AlPa;
use std::collections::BTreeSet;

const RATE: LoopRate = LoopRate::Gb2;

fn port() -> impl Strategy<Value = LoopPort> {
    let numbers = (1..16_u32, 1..20_u64, 0..4_u16, 0..6_u16, prop_oneof![2 => Just(0), 1 => 1..300_u64]);
    (numbers, any::<[bool; 3]>(), 0..8_u8).prop_map(
        |((delay_words, cable, login_credit, more, release), [fair, closes_first, transfers], repeats)| LoopPort {
            al_pa: (repeats != 0).then_some(AlPa::FL_PORT),
            delay_words,
            cable: RATE.word().times(cable),
            fair,
            login_credit,
            buffers: (login_credit + more).max(1),
            release: RATE.word().times(release),
            closes_first: closes_first && release == 0,
            transfers,
        },
    )
}

prop_compose! {
    fn loops()(
        ports in proptest::collection::vec(port(), 2..9),
        priorities in proptest::sample::subsequence((0..127_u8).collect::<Vec<_>>(), 9).prop_shuffle(),
    ) -> LoopConfig {
        let ports = ports.into_iter().zip(priorities).map(|(port, priority)| {
            let al_pa = port.al_pa.and(AlPa::from_priority(priority));
            LoopPort { al_pa, ..port }
        });
        LoopConfig { rate: RATE, ports: ports.collect() }
    }
}

/// Steps to the previous wish, sender, receiver, frames and duplex.
type Draw = (u64, prop::sample::Index, prop::sample::Index, Vec<u16>, bool);

fn wishes(config: &LoopConfig, draws: Vec<Draw>) -> Vec<Wish> {
    let senders: Vec<usize> = (0..config.ports.len()).filter(|port| config.ports[*port].al_pa.is_some()).collect();
    let mut step = 0;
    let mut all = Vec::new();
    for (tag, (pause, from, to, frames, full_duplex)) in draws.into_iter().enumerate() {
        step += pause;
        if senders.len() < 2 {
            continue;
        }
        let port = *from.get(&senders);
        // One address too many: the last is not on the loop.
        let other = AlPa::all().find(|address| config.ports.iter().all(|port| port.al_pa != Some(*address)));
        let addresses: Vec<AlPa> =
            senders.iter().filter(|sender| **sender != port).filter_map(|s| config.ports[*s].al_pa).collect();
        let choices: Vec<AlPa> = addresses.iter().copied().cycle().take(8).chain(other).collect();
        let request = Request { to: *to.get(&choices), frames, full_duplex, tag: tag as u64 };
        all.push(Wish { time: RATE.word().times(step), port, request });
    }
    all
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let pause = prop_oneof![Just(0), 0..40_u64, 0..2000_u64];
    let frames = proptest::collection::vec(0..300_u16, 1..5);
    let index = any::<prop::sample::Index>;
    proptest::collection::vec((pause, index(), index(), frames, any::<bool>()), 1..24)
}

fn plain(config: &LoopConfig, wishes: &[Wish], until: LoopTime) -> PlainLoop {
    let mut plain = PlainLoop::new(config);
    let mut wishes = wishes.iter().peekable();
    for step in 0..=until.0 / RATE.word().0 {
        while let Some(wish) = wishes.next_if(|wish| wish.time == RATE.word().times(step)) {
            plain.request(wish.port, wish.request.clone());
        }
        plain.step();
    }
    plain
}

pub fn run_plain(config: &LoopConfig, wishes: &[Wish], until: LoopTime) -> Results {
    let plain = plain(config, wishes, until);
    let mut frames = plain.frames;
    frames.sort_by_key(|frame| (frame.start, frame.from));
    let mut signals = plain.signals;
    signals.sort_by_key(|(time, from, _)| (*time, *from));
    Results { word: RATE.word(), frames, tenancies: plain.tenancies, refused: plain.refused, signals }
}

/// Changes of state in `count` runs of the plain engine, always the same runs.
pub fn random_plain_runs(count: usize) -> BTreeSet<(State, State)> {
    let mut runner = TestRunner::deterministic();
    let strategy = (loops(), draws());
    (0..count)
        .flat_map(|_| {
            let (config, draws) = strategy.new_tree(&mut runner).expect("a loop").current();
            plain(&config, &wishes(&config, draws), RATE.word().times(20_000)).transitions
        })
        .collect()
}

proptest! {
    #[test]
    fn both_engines_agree_to_the_word(config in loops(), draws in draws()) {
        let wishes = wishes(&config, draws);
        let fast = run(&config, &wishes);
        let end = fast.tenancies.last().map_or(LoopTime::ZERO, |tenancy| tenancy.left);
        let plain = run_plain(&config, &wishes, end + RATE.word().times(2000));
        prop_assert_eq!(&fast.tenancies, &plain.tenancies);
        prop_assert_eq!(&fast.frames, &plain.frames);
        prop_assert_eq!(&fast.refused, &plain.refused);
        prop_assert_eq!(&fast.signals, &plain.signals);
        // No frame is lost, and none finds its receiver without a buffer.
        let is_refused = |wish: &&Wish| fast.refused.iter().any(|(_, tag)| *tag == wish.request.tag);
        let frames = wishes.iter().filter(|wish| !is_refused(wish)).map(|wish| wish.request.frames.len());
        prop_assert_eq!(fast.frames.len(), frames.sum::<usize>());
        for (index, port) in config.ports.iter().enumerate() {
            prop_assert!(most_outstanding(&fast.frames, index, port.release) <= port.buffers.into());
            prop_assert!(most_buffered(&fast.frames, index, port.release) <= port.buffers.into());
        }
    }
}
