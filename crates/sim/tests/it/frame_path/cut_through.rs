//! Cut-through between ports of different rates, in closed form, as in P. Kermani and L. Kleinrock,
//! "Virtual cut-through", Computer Networks 3 (1979).

use super::case::{Action, Case, NPortCase, SwitchCase, Target};
use super::{Both, Comparison};
use sanloom_fc::config::{Arbitration, CrossbarLimits, IslChoice, IslHash, LineRate, Queueing};

/// Propagation delay of each line.
const LIGHT_NS: f64 = 250.0;
const LATENCY_NS: f64 = 700.0;
/// Bytes of SOF and header, and of a full frame.
const HEADER: f64 = 28.0;
const FRAME: f64 = 2_048.0 + 36.0;
/// Time of a byte at 1.0625 GBd, 2.125 GBd and 4.25 GBd with ten bits for each byte (FC-PI-2).
const BYTE_NS_1G: f64 = 10.0 / 1.0625;
const BYTE_NS_2G: f64 = 10.0 / 2.125;
const BYTE_NS_4G: f64 = 10.0 / 4.25;

/// Returns the time from the start of a full frame at the first N_Port until its delivery at the
/// second one, in ns. All N_Ports are at one cut-through switch.
fn latency_ns(queueing: Queueing, rates: &[LineRate]) -> f64 {
    let nport = |&rate: &LineRate| NPortCase {
        switch: 0,
        rate,
        light_ns: LIGHT_NS as u64,
        credits: [5, 5],
        empties_after_ns: 0,
    };
    let case = Case {
        switches: vec![SwitchCase {
            queueing,
            arbitration: Arbitration::RoundRobin,
            crossbar: CrossbarLimits::default(),
            cut_through: true,
            latency_ns: LATENCY_NS as u64,
        }],
        isls: Vec::new(),
        nports: rates.iter().map(nport).collect(),
        channels: Vec::new(),
        isl_choice: IslChoice::Ingress,
        isl_hash: IslHash::Plain,
        bb_sc_n: 0,
        hold_time: None,
        e_d_tov: None,
        actions: Vec::new(),
    };
    let mut comparison = Comparison::new(Both::of(&case));
    comparison.execute(Action::Data { from: 0, to: Target::NPort(1), bytes: 2_048 });
    comparison.run(1_000_000_000).and_then(|()| comparison.same_history()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(comparison.delivered.len(), 1);
    comparison.delivered[0].0 as f64 / 1_000.0
}

/// Compares latencies with an expected one, within the rounding of three times to whole ps.
fn assert_latency(rates: &[LineRate], expected_ns: f64) {
    for queueing in [Queueing::Fifo, Queueing::Any, Queueing::Voq] {
        let ns = latency_ns(queueing, rates);
        assert!((ns - expected_ns).abs() < 0.003, "{queueing:?} {rates:?}: {ns} ns instead of {expected_ns} ns");
    }
}

#[test]
fn a_slow_frame_for_a_slow_line_is_forwarded_after_its_header_although_another_port_is_fast() {
    let expected_ns = HEADER * BYTE_NS_2G + LIGHT_NS + LATENCY_NS + FRAME * BYTE_NS_2G + LIGHT_NS;
    assert_latency(&[LineRate::Fc2, LineRate::Fc2], expected_ns);
    assert_latency(&[LineRate::Fc2, LineRate::Fc2, LineRate::Fc32], expected_ns);
}

#[test]
fn a_slow_frame_for_a_slower_line_is_forwarded_after_its_header_although_another_port_is_fast() {
    let expected_ns = HEADER * BYTE_NS_2G + LIGHT_NS + LATENCY_NS + FRAME * BYTE_NS_1G + LIGHT_NS;
    assert_latency(&[LineRate::Fc2, LineRate::Fc1, LineRate::Fc32], expected_ns);
}

#[test]
fn a_slow_frame_for_a_faster_line_leaves_when_that_line_can_send_it_without_a_pause() {
    // The last bit leaves as soon as it has arrived and passed the switch, however fast the line.
    let expected_ns = FRAME * BYTE_NS_2G + LIGHT_NS + LATENCY_NS + LIGHT_NS;
    assert_latency(&[LineRate::Fc2, LineRate::Fc4], expected_ns);
    assert_latency(&[LineRate::Fc2, LineRate::Fc4, LineRate::Fc32], expected_ns);
    assert_latency(&[LineRate::Fc2, LineRate::Fc32], expected_ns);
}

#[test]
fn a_fast_frame_for_a_slow_line_is_forwarded_after_its_header() {
    let expected_ns = HEADER * BYTE_NS_4G + LIGHT_NS + LATENCY_NS + FRAME * BYTE_NS_2G + LIGHT_NS;
    assert_latency(&[LineRate::Fc4, LineRate::Fc2], expected_ns);
}
