//! Cases in which the fast engine once did something else.

use crate::case::{Act, Case, NPortCase, SwitchCase, Target};
use crate::hold_against_each_other;
use crate::plain::Chances;
use sanloom_core::config::{Arbitration, IslChoice, LineRate, Queueing};
use std::collections::BTreeMap;

/// One switch that forwards the first frame of an input, and N_Ports that take everything at once.
fn one_switch(nports: &[(LineRate, u64, [u32; 2])], e_d_tov: u64, acts: Vec<(u64, Act)>) -> Case {
    let nport = |&(rate, light_ns, credits): &_| NPortCase { switch: 0, rate, light_ns, credits, empties_after_ns: 0 };
    Case {
        switches: vec![SwitchCase {
            queueing: Queueing::Fifo,
            arbitration: Arbitration::RoundRobin,
            cut_through: false,
            latency_ns: 0,
        }],
        isls: Vec::new(),
        nports: nports.iter().map(nport).collect(),
        isl_choice: IslChoice::Ingress,
        hold_time: None,
        e_d_tov: Some(e_d_tov),
        acts,
    }
}

fn data(from: usize, to: usize, bytes: u32) -> Act {
    Act::Data { from, to: Target::NPort(to), bytes }
}

fn r_rdy_loss(lane: usize, r_rdy_loss: f64) -> Act {
    Act::Chances { lane, chances: Chances { frame_loss: 0.0, crc_errors: 0.0, r_rdy_loss } }
}

fn agree(case: &Case) {
    hold_against_each_other(case, &mut BTreeMap::new()).unwrap_or_else(|error| panic!("{error}\n{case:#?}"));
}

#[test]
fn an_r_rdy_that_is_kept_gets_lost_at_most_once() {
    let nports = [(LineRate::Fc2, 250, [4, 4]); 2];
    let keep = |keep| Act::Keep { lane: 3, keep };
    let acts = [keep(true), r_rdy_loss(3, 0.3), data(0, 1, 8_000)].map(|act| (0, act));
    let later = [(100_000, keep(false)), (100_000, data(0, 1, 20_000))];
    agree(&one_switch(&nports, 1_000_000, [&acts[..], &later].concat()));
}

#[test]
fn a_sender_whose_frame_may_not_leave_does_not_starve_once_it_has_a_credit() {
    // The last frame finds no credit for N_Port 2 at 21 us; when that comes at 31 us, its input sends to N_Port 1 until 51 us.
    let nports = [(LineRate::Fc2, 250, [5, 5]), (LineRate::Fc1, 250, [5, 5]), (LineRate::Fc2, 15_000, [5, 1])];
    let acts = [data(0, 2, 1), data(0, 1, 4_096), data(0, 2, 1)].map(|act| (0, act));
    agree(&one_switch(&nports, 25_000, acts.into()));
}

#[test]
fn a_sender_that_looks_when_nothing_waits_starves_until_it_has_a_credit() {
    // The link is reset at 31 us and waits for LRR until 111 us. The credit is then still that of the first frame, whose R_RDY
    // is kept; the third frame found that out at 101 us and has been held too long at 111 us.
    let nports = [(LineRate::Fc1, 250, [5, 5]), (LineRate::Fc1, 40_000, [5, 1])];
    let acts =
        vec![(0, Act::Keep { lane: 3, keep: true }), (0, data(0, 1, 1)), (0, data(0, 1, 1)), (100_000, data(0, 1, 1))];
    agree(&Case { hold_time: Some(10_000), ..one_switch(&nports, 30_000, acts) });
}

#[test]
fn a_sender_for_which_nothing_waits_looks_again_when_a_credit_comes() {
    // The third reset of the link to N_Port 0 gives no credit at 797 us, because that holds all five frames; one comes at 841 us.
    let nports = [(LineRate::Fc10, 51_634, [1, 5]), (LineRate::Fc32, 53_664, [5, 1])];
    let acts = [10_541, 12_289, 14_337].map(|bytes| (0, data(1, 0, bytes)));
    let mut case = Case { hold_time: Some(71_294), ..one_switch(&nports, 172_104, acts.into()) };
    case.nports[0].empties_after_ns = 683_032;
    agree(&case);
}
