//! Two N_Ports on one link.

use super::{BOTH, E_D_TOV, Functions, INITIATOR, LATENCY, Medium, R_A_TOV, TARGET, port_config};
use proptest::prelude::*;
use sanloom_fc::nport::{FabricState, Input, LoginScript, NPort, NPortConfig, Output, VirtualPort};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::FcId;

const GREATER: FcId = FcId::new(1);
const LOWER: FcId = FcId::new(2);
/// Time that covers the largest back-off and the timeouts of a PLOGI.
const PATIENCE: Span = Span::from_secs(5);

/// Link whose ends come up at the same time. Node 1 has the greater name.
fn link(lower: Functions, greater: Functions) -> Medium {
    let mut medium = Medium::of(&[(0x10, lower), (0x20, greater)], false);
    medium.input_all(&Input::LinkUp);
    medium
}

fn assert_up(medium: &Medium) {
    medium.assert_agreement();
    for node in &medium.nodes {
        assert_eq!(node.nport.state(), FabricState::Ready);
    }
    let addresses: Vec<FcId> = medium.nodes.iter().map(|node| node.address).collect();
    let node_0_is_greater = medium.nodes[0].nport.wwpn() > medium.nodes[1].nport.wwpn();
    assert_eq!(addresses, if node_0_is_greater { [GREATER, LOWER] } else { [LOWER, GREATER] });
}

/// Messages of a link in the order in which they were sent.
fn messages(medium: &Medium) -> Vec<&str> {
    medium.log.iter().map(String::as_str).collect()
}

#[test]
fn the_port_with_the_greater_name_gives_the_addresses_and_the_initiator_sends_prli() {
    let mut medium = link(INITIATOR, TARGET);
    medium.run(E_D_TOV);
    let logins = [
        "0: FLOGI 000000 > fffffe",
        "1: FLOGI 000000 > fffffe",
        "1: LS_ACC fffffe > 000000",
        "0: LS_ACC fffffe > 000000",
        "1: PLOGI 000001 > 000002",
        "0: LS_ACC 000002 > 000001",
    ];
    let process_login = ["0: PRLI 000002 > 000001", "1: LS_ACC 000001 > 000002"];
    assert_eq!(messages(&medium), [&logins[..], &process_login[..]].concat());
    assert_up(&medium);

    let mut medium = link(TARGET, INITIATOR);
    medium.run(E_D_TOV);
    let process_login = ["1: PRLI 000001 > 000002", "0: LS_ACC 000002 > 000001"];
    assert_eq!(messages(&medium), [&logins[..], &process_login[..]].concat());
    assert_up(&medium);
}

#[test]
fn ports_with_both_functions_have_one_process_login() {
    let mut medium = link(BOTH, BOTH);
    medium.run(PATIENCE);
    assert_up(&medium);
    for node in &medium.nodes {
        assert_eq!(node.nport.counters().process_logins, 1);
    }
}

#[test]
fn two_initiators_and_two_targets_log_in_without_a_process_login() {
    for functions in [INITIATOR, TARGET] {
        let mut medium = link(functions, functions);
        medium.run(PATIENCE);
        assert_up(&medium);
        assert!(medium.nodes.iter().all(|node| node.remotes.is_empty()));
        assert!(medium.nodes.iter().all(|node| node.nport.remotes().all(|(_, state)| state.is_logged_in())));
        let frames = medium.frames;
        medium.run(PATIENCE.times(100));
        assert_eq!(medium.frames, frames, "no attempt is repeated");
    }
}

#[test]
fn any_lost_frame_delays_the_logins_and_does_not_prevent_them() {
    for functions in [INITIATOR, TARGET, BOTH] {
        for lost in 0..10 {
            let mut medium = Medium::of(&[(0x10, functions), (0x20, BOTH)], false);
            medium.is_lost = Box::new(move |number| number == lost);
            medium.input_all(&Input::LinkUp);
            medium.run(PATIENCE);
            assert_up(&medium);
        }
    }
}

#[test]
fn a_flogi_before_the_own_link_up_is_answered_after_it() {
    for first in [0, 1] {
        let mut medium = Medium::of(&[(0x10, INITIATOR), (0x20, TARGET)], false);
        medium.input(first, Input::LinkUp);
        medium.run(Span::from_ms(19));
        assert_eq!(medium.frames, 1);
        medium.input(1 - first, Input::LinkUp);
        medium.run(LATENCY.times(8));
        assert_up(&medium);
        assert_eq!(medium.frames, 8, "no frame is repeated: {:?}", medium.log);
    }
}

#[test]
fn a_flogi_whose_sender_has_given_up_waiting_is_not_answered() {
    let mut medium = Medium::of(&[(0x10, INITIATOR), (0x20, TARGET)], false);
    medium.input(0, Input::LinkUp);
    medium.is_lost = Box::new(|number| number > 0);
    medium.run(E_D_TOV.times(2));
    medium.log.clear();
    medium.input(1, Input::LinkUp);
    assert_eq!(messages(&medium), ["1: FLOGI 000000 > fffffe"]);
    medium.is_lost = Box::new(|_| false);
    medium.run(PATIENCE);
    assert_up(&medium);
    assert!(medium.nodes.iter().all(|node| node.nport.counters().stale_replies == 0));
}

#[test]
fn equal_names_are_rejected_without_a_flood() {
    let mut medium = Medium::of(&[(0x10, INITIATOR), (0x10, TARGET)], false);
    medium.input_all(&Input::LinkUp);
    medium.run(Span::from_secs(60));
    for node in &medium.nodes {
        assert_eq!((node.address, node.nport.state()), (FcId::ZERO, FabricState::Flogi));
        let counters = node.nport.counters();
        assert!(counters.rejects_sent > 3 && counters.rejected > 3, "{counters:?}");
        // The back-off grows to 32 E_D_TOV, which is 640 ms.
        assert!(counters.rejects_sent < 60_000 / 640 + 10, "{counters:?}");
    }
}

#[test]
fn the_port_with_the_lower_name_waits_for_plogi_and_then_starts_again() {
    let mut medium = Medium::of(&[(0x10, INITIATOR), (0x20, TARGET)], false);
    medium.is_lost = Box::new(|number| number >= 4);
    medium.input_all(&Input::LinkUp);
    medium.run(LATENCY.times(4));
    assert_eq!(medium.nodes[0].nport.state(), FabricState::PeerLogin);
    let accepted = Instant::ZERO + LATENCY.times(2);
    assert_eq!(medium.nodes[0].nport.poll_timeout(), Some(accepted + E_D_TOV.times(2)));
    medium.log.clear();
    medium.run(E_D_TOV.times(2));
    assert_eq!(messages(&medium)[0], "0: FLOGI 000000 > fffffe");
    medium.is_lost = Box::new(|_| false);
    medium.run(PATIENCE);
    assert_up(&medium);
}

#[test]
fn a_lost_plogi_is_repeated_when_the_other_port_starts_again() {
    let mut medium = Medium::of(&[(0x10, INITIATOR), (0x20, TARGET)], false);
    medium.is_lost = Box::new(|number| number == 4);
    medium.input_all(&Input::LinkUp);
    // The reply timeout of PLOGI alone is 2 R_A_TOV.
    medium.run(E_D_TOV.times(3));
    assert_up(&medium);
}

#[test]
fn a_port_that_starts_again_ends_the_logins_of_the_other_end() {
    for restarted in [0, 1] {
        let mut medium = link(INITIATOR, TARGET);
        medium.run(PATIENCE);
        medium.input(restarted, Input::LinkDown);
        medium.input(restarted, Input::LinkUp);
        medium.run(E_D_TOV);
        assert_up(&medium);
        let counters = medium.nodes.iter().map(|node| node.nport.counters().process_logins);
        assert_eq!(counters.collect::<Vec<_>>(), [2, 2]);
    }
}

#[test]
fn a_link_that_bounces_ends_all_logins_and_then_restores_them() {
    let mut medium = link(INITIATOR, TARGET);
    medium.run(PATIENCE);
    medium.input_all(&Input::LinkDown);
    for node in &medium.nodes {
        assert_eq!((node.address, node.nport.state()), (FcId::ZERO, FabricState::Offline));
        assert!(node.remotes.is_empty());
        assert_eq!(node.nport.poll_timeout(), None);
    }
    medium.input_all(&Input::LinkUp);
    medium.run(E_D_TOV);
    assert_up(&medium);
}

#[test]
fn a_port_that_logged_out_returns_with_its_next_login() {
    for leaving in [0, 1] {
        let mut medium = link(BOTH, BOTH);
        medium.run(PATIENCE);
        medium.input(leaving, Input::LogOut);
        medium.run(LATENCY.times(4));
        assert_eq!(medium.nodes[leaving].nport.state(), FabricState::Offline);
        assert!(medium.nodes.iter().all(|node| node.remotes.is_empty()));
        medium.run(Span::from_secs(60));
        assert!(medium.frames < 200, "{} frames to a port that logged out", medium.frames);
        medium.input(leaving, Input::LinkUp);
        medium.run(E_D_TOV.times(2));
        assert_up(&medium);
    }
}

#[test]
fn both_ports_use_the_greater_timeouts_and_the_lower_receive_size() {
    for slow in [0, 1] {
        let configs = [0, 1].map(|at| {
            let config = port_config(0x10 + at, BOTH);
            let slow_config = NPortConfig {
                e_d_tov: E_D_TOV.times(3),
                r_a_tov: R_A_TOV.times(2),
                receive_size_bytes: 512,
                ..config.clone()
            };
            (if at == slow { slow_config } else { config }, BOTH)
        });
        let mut medium = Medium::new(configs.into(), false);
        medium.input_all(&Input::LinkUp);
        medium.run(PATIENCE);
        assert_up(&medium);
        for node in &medium.nodes {
            assert_eq!(node.nport.e_d_tov(), E_D_TOV.times(3));
            assert_eq!(node.nport.r_a_tov(), R_A_TOV.times(2));
            assert!(node.remotes.values().all(|remote| remote.receive_size_bytes == 512));
        }
    }
}

#[test]
fn a_virtual_port_does_not_come_up_on_a_link_to_an_n_port() {
    let mut medium = link(INITIATOR, TARGET);
    medium.run(PATIENCE);
    let virtual_port = Some(VirtualPort { number: 1, script: LoginScript::Standard });
    let mut port = NPort::new(NPortConfig { virtual_port, ..port_config(0x30, INITIATOR) });
    port.handle(medium.now, Input::LinkUp);
    for attempt in 1..=5 {
        let Some(Output::Send(fdisc)) = port.poll_output() else { unreachable!("FDISC is sent") };
        medium.nodes[1].nport.handle(medium.now, Input::Frame(fdisc));
        let Some(Output::Send(reply)) = medium.nodes[1].nport.poll_output() else { unreachable!("FDISC is answered") };
        assert!(port.expects(&reply.header));
        port.handle(medium.now, Input::Frame(reply));
        assert_eq!((port.port_id(), port.counters().rejected), (FcId::ZERO, attempt));
        medium.now = port.poll_timeout().expect("another attempt is scheduled");
        port.handle(medium.now, Input::Timeout);
    }
    assert_up(&medium);
}

#[test]
fn a_plogi_of_a_port_without_flogi_assigns_no_address() {
    let mut medium = link(TARGET, INITIATOR);
    medium.run(LATENCY.times(2));
    let mut unknown = NPort::new(port_config(0x10, TARGET));
    unknown.handle(medium.now, Input::LinkUp);
    let plogi = medium.queue.values().find_map(|event| match event {
        super::Event::Frame { frame, .. } => Some(frame.clone()),
        _ => None,
    });
    let plogi = plogi.expect("PLOGI is on its way");
    assert_eq!((plogi.header.s_id, plogi.header.d_id), (GREATER, LOWER));
    unknown.handle(medium.now, Input::Frame(plogi));
    assert_eq!((unknown.port_id(), unknown.counters().misdirected), (FcId::ZERO, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn both_ends_agree_after_any_losses_and_restarts(
        names in (1u64..4, 1u64..4).prop_filter("names differ", |(a, b)| a != b),
        functions in prop::array::uniform2(prop::sample::select(vec![INITIATOR, TARGET, BOTH])),
        up_ms in prop::array::uniform2(0u64..60),
        restarts in prop::collection::vec((0usize..2, 0u64..1_000, 0u64..60, any::<bool>()), 0..5),
        lost_percent in 0u64..60,
        seed: u64,
    ) {
        let mut medium = Medium::of(&[(names.0, functions[0]), (names.1, functions[1])], false);
        let mut random = SplitMix64(seed);
        medium.is_lost = Box::new(move |_| random.below(100) < lost_percent);
        for (node, &at_ms) in up_ms.iter().enumerate() {
            medium.input_after(Span::from_ms(at_ms), node, Input::LinkUp);
        }
        for (node, at_ms, length_ms, by_logout) in restarts {
            let end = if by_logout { Input::LogOut } else { Input::LinkDown };
            medium.input_after(Span::from_ms(at_ms), node, end);
            medium.input_after(Span::from_ms(at_ms + length_ms), node, Input::LinkUp);
        }
        medium.run(Span::from_secs(2));
        medium.is_lost = Box::new(|_| false);
        // A logout that was not complete ignored its LinkUp.
        medium.run(PATIENCE);
        for node in 0..2 {
            medium.input(node, Input::LinkUp);
        }
        medium.run(PATIENCE);
        assert_up(&medium);
        prop_assert!(medium.frames < 800, "{} frames", medium.frames);
        let frames = medium.frames;
        medium.run(PATIENCE.times(20));
        prop_assert_eq!(medium.frames, frames, "no frame without a cause");
    }
}
