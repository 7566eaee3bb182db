//! Regression cases in which the fast engine once differed from the plain one.

use crate::frame_path::case::{Action, Case, NPortCase, SwitchCase, Target};
use crate::frame_path::compare_engines;
use crate::frame_path::plain::Chances;
use sanloom_fc::config::{Arbitration, CrossbarLimits, IslChoice, IslHash, LineRate, Queueing};
use std::collections::BTreeMap;

/// Returns a case with one switch that forwards the first frame of each input, and N_Ports that
/// empty their buffers at once.
fn one_switch(nports: &[(LineRate, u64, [u32; 2])], e_d_tov: u64, actions: Vec<(u64, Action)>) -> Case {
    let nport = |&(rate, light_ns, credits): &_| NPortCase { switch: 0, rate, light_ns, credits, empties_after_ns: 0 };
    Case {
        switches: vec![SwitchCase {
            queueing: Queueing::Fifo,
            arbitration: Arbitration::RoundRobin,
            crossbar: CrossbarLimits::default(),
            cut_through: false,
            latency_ns: 0,
        }],
        isls: Vec::new(),
        nports: nports.iter().map(nport).collect(),
        channels: Vec::new(),
        isl_choice: IslChoice::Ingress,
        isl_hash: IslHash::Plain,
        bb_sc_n: 0,
        hold_time: None,
        e_d_tov: Some(e_d_tov),
        actions,
    }
}

fn data(from: usize, to: usize, bytes: u32) -> Action {
    Action::Data { from, to: Target::NPort(to), bytes }
}

fn r_rdy_loss(lane: usize, r_rdy_loss: f64) -> Action {
    Action::Chances { lane, chances: Chances { frame_loss: 0.0, crc_errors: 0.0, r_rdy_loss } }
}

fn agree(case: &Case) {
    compare_engines(case, &mut BTreeMap::new()).unwrap_or_else(|error| panic!("{error}\n{case:#?}"));
}

#[test]
fn an_r_rdy_that_is_kept_gets_lost_at_most_once() {
    let nports = [(LineRate::Fc2, 250, [4, 4]); 2];
    let withhold = |withhold| Action::Withhold { lane: 3, withhold };
    let actions = [withhold(true), r_rdy_loss(3, 0.3), data(0, 1, 8_000)].map(|action| (0, action));
    let later = [(100_000, withhold(false)), (100_000, data(0, 1, 20_000))];
    agree(&one_switch(&nports, 1_000_000, [&actions[..], &later].concat()));
}

#[test]
fn a_credit_ends_the_wait_even_if_the_frame_is_not_eligible() {
    // At 21 us, the last frame finds no credit for N_Port 2. When the credit arrives at 31 us, its
    // input is sending to N_Port 1 until 51 us.
    let nports = [(LineRate::Fc2, 250, [5, 5]), (LineRate::Fc1, 250, [5, 5]), (LineRate::Fc2, 15_000, [5, 1])];
    let actions = [data(0, 2, 1), data(0, 1, 4_096), data(0, 2, 1)].map(|action| (0, action));
    agree(&one_switch(&nports, 25_000, actions.into()));
}

#[test]
fn a_wait_for_credit_continues_without_queued_frames_until_a_credit_arrives() {
    // The link is reset at 31 us and waits for LRR until 111 us. The credit then still belongs to
    // the first frame, whose R_RDY is withheld. The third frame is refused a credit at 101 us and
    // exceeds the hold time at 111 us.
    let nports = [(LineRate::Fc1, 250, [5, 5]), (LineRate::Fc1, 40_000, [5, 1])];
    let actions = vec![
        (0, Action::Withhold { lane: 3, withhold: true }),
        (0, data(0, 1, 1)),
        (0, data(0, 1, 1)),
        (100_000, data(0, 1, 1)),
    ];
    agree(&Case { hold_time: Some(10_000), ..one_switch(&nports, 30_000, actions) });
}

#[test]
fn a_sender_without_queued_frames_is_woken_when_a_credit_arrives() {
    // At 797 us, the third reset of the link to N_Port 0 yields no credit, because the N_Port holds
    // all five frames. A credit arrives at 841 us.
    let nports = [(LineRate::Fc10, 51_634, [1, 5]), (LineRate::Fc32, 53_664, [5, 1])];
    let actions = [10_541, 12_289, 14_337].map(|bytes| (0, data(1, 0, bytes)));
    let mut case = Case { hold_time: Some(71_294), ..one_switch(&nports, 172_104, actions.into()) };
    case.nports[0].empties_after_ns = 683_032;
    agree(&case);
}

#[test]
fn an_input_that_sends_again_at_the_end_of_a_frame_shows_nothing_then() {
    // At 766,251,813 ps a frame leaves the input of N_Port 1 and another one arrives there and
    // leaves at once over the other link, during a reset of the link to N_Port 2.
    let switch = |queueing| SwitchCase {
        queueing,
        arbitration: Arbitration::RoundRobin,
        crossbar: CrossbarLimits::default(),
        cut_through: false,
        latency_ns: 0,
    };
    let nport = |switch, rate, light_ns, credits, empties_after_ns| NPortCase {
        switch,
        rate,
        light_ns,
        credits,
        empties_after_ns,
    };
    let case = Case {
        switches: vec![switch(Queueing::Fifo), switch(Queueing::Voq)],
        isls: vec![(1, 0, LineRate::Fc1, 250, [2, 1], true)],
        nports: vec![
            nport(0, LineRate::Fc1, 250, [1, 1], 0),
            nport(1, LineRate::Fc4, 12_560, [3, 1], 0),
            nport(1, LineRate::Fc2, 250, [1, 1], 543_040),
        ],
        channels: Vec::new(),
        isl_choice: IslChoice::Ingress,
        isl_hash: IslHash::Plain,
        bb_sc_n: 0,
        hold_time: None,
        e_d_tov: Some(148_291),
        actions: vec![(0, data(1, 2, 16_385)), (0, data(1, 2, 4_097)), (0, data(1, 0, 14_333))],
    };
    agree(&case);
}

#[test]
fn a_credit_ends_the_wait_even_if_the_frame_has_not_crossed_far_enough_to_start() {
    // At 59.3 us, the second frame finds the line to N_Port 0 free and no credit. The credit
    // arrives at 59.7 us. The frame may start at 78.7 us, because it crosses at half the rate of
    // the line.
    let nports = |credits| [(LineRate::Fc1, 250, credits); 2];
    let mut case = one_switch(&nports([5, 1]), 5_000, vec![(0, data(1, 0, 4_096))]);
    case.switches[0].crossbar.speedup_percent = 50;
    agree(&case);
    // The same at 161.0 us, after five resets of the link from N_Port 1. The update of the routes
    // changes nothing and prolongs the run.
    let actions = vec![(0, data(1, 0, 10_757)), (65_980, Action::Reroute)];
    let mut case = one_switch(&nports([1, 1]), 5_000, actions);
    case.switches[0].crossbar =
        CrossbarLimits { speedup_percent: 50, bandwidth_bit_per_s: Some(1_000_000_000), egress_frames: 1 };
    case.switches[0].queueing = Queueing::Voq;
    agree(&case);
}

#[test]
fn a_line_of_a_trunk_does_not_starve_during_its_reset_because_another_line_tries() {
    // Between 107.1 us and 190.0 us, the second line waits for LRR. At 128.8 us, the LRR of the
    // first line arrives and brings no credit.
    let switch = SwitchCase {
        queueing: Queueing::Voq,
        arbitration: Arbitration::RoundRobin,
        crossbar: CrossbarLimits { speedup_percent: 100, bandwidth_bit_per_s: None, egress_frames: 1 },
        cut_through: false,
        latency_ns: 0,
    };
    let nport = |switch, rate| NPortCase { switch, rate, light_ns: 250, credits: [1, 1], empties_after_ns: 0 };
    agree(&Case {
        switches: vec![switch; 2],
        isls: vec![(1, 0, LineRate::Fc4, 41_434, [1, 1], true)],
        nports: vec![nport(1, LineRate::Fc4), nport(0, LineRate::Fc1)],
        channels: Vec::new(),
        isl_choice: IslChoice::Ingress,
        isl_hash: IslHash::Plain,
        bb_sc_n: 0,
        hold_time: None,
        e_d_tov: Some(30_440),
        actions: vec![(0, data(20, 49, 12_289)), (0, data(0, 0, 1))],
    });
}
