//! Cases in which the fast engine once did something else.

use crate::case::{Act, Case, NPortCase, SwitchCase, Target};
use crate::hold_against_each_other;
use crate::plain::Chances;
use sanloom_core::config::{Arbitration, IslChoice, LineRate, Queueing};
use std::collections::BTreeMap;

/// One switch that forwards the first frame of an input, and N_Ports that take everything at once.
fn one_switch(nports: [(LineRate, u64, [u32; 2]); 2], e_d_tov: u64, acts: Vec<(u64, Act)>) -> Case {
    let nport = |(rate, light_ns, credits)| NPortCase { switch: 0, rate, light_ns, credits, empties_after_ns: 0 };
    Case {
        switches: vec![SwitchCase {
            queueing: Queueing::Fifo,
            arbitration: Arbitration::RoundRobin,
            cut_through: false,
            latency_ns: 0,
        }],
        isls: Vec::new(),
        nports: nports.map(nport).into(),
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
    agree(&one_switch(nports, 1_000_000, [&acts[..], &later].concat()));
}

#[test]
fn a_sender_whose_frame_may_not_leave_does_not_starve_once_it_has_a_credit() {
    let nports = [(LineRate::Fc1, 250, [1, 1]), (LineRate::Fc2, 37_052, [1, 1])];
    let from_switch = |port, to, bytes| Act::FromSwitch { switch: 0, port, to, bytes };
    let acts = vec![
        (0, from_switch(1, Target::Nobody(0), 0)),
        (0, r_rdy_loss(3, 0.3)),
        (9, data(0, 0, 3_473)),
        (0, data(1, 0, 8_029)),
        (0, from_switch(1, Target::NPort(1), 19)),
        (695_841, Act::Up { link: 1 }),
    ];
    agree(&one_switch(nports, 5_000, acts));
}

#[test]
fn a_sender_that_looks_when_nothing_waits_starves_until_it_has_a_credit() {
    let nports = [(LineRate::Fc2, 24_346, [2, 1]), (LineRate::Fc1, 40_537, [1, 1])];
    agree(&one_switch(nports, 34_154, vec![(0, data(0, 1, 8_193))]));
}
