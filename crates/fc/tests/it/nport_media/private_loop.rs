//! Ports of an arbitrated loop without an FL_Port.

use super::{BOTH, E_D_TOV, Functions, INITIATOR, LATENCY, Medium, R_A_TOV, TARGET};
use proptest::prelude::*;
use sanloom_fc::nport::{FabricState, Input};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_wire::FcId;
use sanloom_wire::arbitrated_loop::AlPa;
use std::collections::BTreeSet;

/// Time that covers the largest back-off and the timeouts of a login.
const PATIENCE: Span = Span::from_secs(5);
/// Duration of a loop initialisation.
const INITIALISATION: Span = Span::from_ms(1);

impl Medium {
    /// Initialises the loop with these nodes and addresses, in loop order.
    pub(super) fn initialise(&mut self, positions: &[(usize, FcId)]) {
        self.interrupt_loop();
        self.run(INITIALISATION);
        if self.fabric.is_some() {
            self.loop_up_at_switch(positions);
        }
        self.loop_up_at_nodes(positions);
    }
}

/// Address 0000xx of the given priority; 1 is the highest of an NL_Port.
pub(super) fn address(priority: u8) -> FcId {
    FcId::new(u32::from(AlPa::from_priority(priority).expect("at most 126").value()))
}

/// Loop of these functions. Node n has priority n + 1.
pub(super) fn loop_of(functions: &[Functions]) -> Medium {
    let ports: Vec<(u64, Functions)> =
        functions.iter().enumerate().map(|(at, &functions)| (0x100 + at as u64, functions)).collect();
    Medium::of(&ports, true)
}

pub(super) fn in_order(nodes: usize) -> Vec<(usize, FcId)> {
    (0..nodes).map(|at| (at, address(at as u8 + 1))).collect()
}

/// Numbers of the messages in the log by kind.
pub(super) fn count(medium: &Medium, kind: &str) -> usize {
    medium.log.iter().filter(|line| line.contains(kind)).count()
}

#[test]
fn initiators_log_in_to_the_position_map_and_targets_wait() {
    let mut medium = loop_of(&[INITIATOR, TARGET, TARGET]);
    medium.initialise(&in_order(3));
    medium.run(PATIENCE);
    medium.assert_agreement();
    assert_eq!(medium.nodes[0].address, FcId::new(0x01));
    assert_eq!(medium.nodes[0].remotes.keys().copied().collect::<Vec<_>>(), [FcId::new(0x02), FcId::new(0x04)]);
    let expected = [
        "0: PLOGI 000001 > 000002",
        "0: PLOGI 000001 > 000004",
        "1: LS_ACC 000002 > 000001",
        "2: LS_ACC 000004 > 000001",
        "0: PRLI 000001 > 000002",
        "0: PRLI 000001 > 000004",
        "1: LS_ACC 000002 > 000001",
        "2: LS_ACC 000004 > 000001",
    ];
    assert_eq!(medium.log, expected);
    assert!(medium.nodes.iter().all(|node| node.nport.state() == FabricState::Ready));
}

#[test]
fn ports_without_the_target_function_are_left_alone() {
    let mut medium = loop_of(&[INITIATOR, INITIATOR, TARGET]);
    medium.initialise(&in_order(3));
    medium.run(PATIENCE);
    medium.assert_agreement();
    let frames = medium.frames;
    medium.run(PATIENCE.times(100));
    assert_eq!(medium.frames, frames);
}

#[test]
fn a_port_that_refuses_logins_is_left_alone_until_the_next_initialisation() {
    // Both ports have the same name, so each refuses the PLOGI of the other.
    let mut medium = Medium::of(&[(0x10, INITIATOR), (0x10, TARGET)], true);
    medium.initialise(&in_order(2));
    medium.run(PATIENCE.times(10));
    assert_eq!(medium.frames, 2, "PLOGI and LS_RJT: {:?}", medium.log);
    assert_eq!(medium.nodes[0].nport.remotes().count(), 0);
    medium.initialise(&in_order(2));
    medium.run(PATIENCE.times(10));
    assert_eq!(medium.frames, 4, "{:?}", medium.log);
}

#[test]
fn an_initiator_of_a_full_loop_has_a_bounded_number_of_logins_in_flight() {
    let mut functions = vec![TARGET; 126];
    functions[0] = INITIATOR;
    let mut medium = loop_of(&functions);
    medium.initialise(&in_order(126));
    assert_eq!(count(&medium, "PLOGI"), 16);
    medium.run(PATIENCE);
    medium.assert_agreement();
    assert_eq!(medium.frames, 125 * 4);
}

#[test]
fn logins_survive_an_initialisation_and_are_verified() {
    let mut medium = loop_of(&[INITIATOR, TARGET, TARGET]);
    medium.initialise(&in_order(3));
    medium.run(PATIENCE);
    let logins = |medium: &Medium| -> Vec<u64> {
        medium.nodes.iter().map(|node| node.nport.counters().process_logins).collect()
    };
    let before = logins(&medium);
    medium.log.clear();
    medium.initialise(&in_order(3));
    medium.run(PATIENCE);
    medium.assert_agreement();
    assert_eq!(logins(&medium), before, "no process login begins again");
    assert_eq!((count(&medium, "ADISC"), count(&medium, "LS_ACC"), medium.log.len()), (4, 4, 8));
}

#[test]
fn a_pulled_port_goes_down_and_a_new_one_is_logged_in() {
    let mut medium = loop_of(&[INITIATOR, TARGET, TARGET, TARGET]);
    medium.initialise(&in_order(3));
    medium.run(PATIENCE);
    let positions = [(0, address(1)), (2, address(3)), (3, address(4))];
    medium.log.clear();
    medium.initialise(&positions);
    medium.run(PATIENCE);
    medium.assert_agreement();
    assert_eq!(count(&medium, "PLOGI"), 1, "only the new port: {:?}", medium.log);
    assert_eq!(medium.nodes[0].remotes.keys().copied().collect::<Vec<_>>(), [address(3), address(4)]);
}

#[test]
fn a_port_whose_address_changes_begins_all_logins_again() {
    let mut medium = loop_of(&[INITIATOR, TARGET]);
    medium.initialise(&in_order(2));
    medium.run(PATIENCE);
    medium.initialise(&[(1, address(1)), (0, address(2))]);
    medium.run(PATIENCE);
    medium.assert_agreement();
    assert_eq!(medium.nodes[0].address, address(2));
    assert_eq!(medium.nodes[0].nport.counters().process_logins, 2);
}

#[test]
fn another_port_at_a_known_address_replaces_the_login() {
    let mut medium = loop_of(&[INITIATOR, TARGET, TARGET]);
    medium.initialise(&in_order(2));
    medium.run(PATIENCE);
    medium.initialise(&[(0, address(1)), (2, address(2))]);
    medium.run(PATIENCE);
    medium.assert_agreement();
}

#[test]
fn an_interrupted_login_is_repeated_after_the_initialisation() {
    let mut medium = loop_of(&[INITIATOR, TARGET]);
    medium.is_lost = Box::new(|_| true);
    medium.initialise(&in_order(2));
    medium.run(LATENCY.times(2));
    medium.is_lost = Box::new(|_| false);
    medium.input_all(&Input::LoopInterrupted);
    assert!(medium.nodes.iter().all(|node| node.nport.is_suspended()));
    assert!(medium.nodes.iter().all(|node| node.nport.poll_timeout().is_none()));
    let frames = medium.frames;
    medium.run(R_A_TOV.times(10));
    assert_eq!(medium.frames, frames, "nothing is sent without a loop");
    medium.initialise(&in_order(2));
    medium.run(LATENCY.times(5));
    medium.assert_agreement();
    assert!(!medium.nodes[0].nport.is_suspended());
}

#[test]
fn the_end_of_the_loop_and_a_logout_without_a_loop_end_all_logins() {
    for end in [Input::LinkDown, Input::LogOut] {
        let mut medium = loop_of(&[INITIATOR, TARGET]);
        medium.initialise(&in_order(2));
        medium.run(PATIENCE);
        medium.input_all(&Input::LoopInterrupted);
        medium.input_all(&end);
        for node in &medium.nodes {
            assert_eq!((node.address, node.nport.state()), (FcId::ZERO, FabricState::Offline));
            assert!(!node.nport.is_suspended());
            assert_eq!(node.nport.poll_timeout(), None);
        }
        medium.initialise(&in_order(2));
        medium.run(PATIENCE);
        medium.assert_agreement();
    }
}

#[test]
fn an_initiator_that_does_not_answer_a_target_keeps_its_login() {
    let mut medium = loop_of(&[INITIATOR, TARGET]);
    medium.initialise(&in_order(2));
    medium.run(PATIENCE);
    medium.initialise(&in_order(2));
    // The checks of the initiator arrive, the checks of the target do not.
    medium.nodes[0].is_present = false;
    medium.run(R_A_TOV.times(2) + E_D_TOV);
    assert_eq!(medium.nodes[1].remotes.len(), 1);
    medium.nodes[0].is_present = true;
    medium.run(PATIENCE);
    medium.assert_agreement();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn all_ports_agree_after_any_initialisations_and_losses(
        functions in prop::collection::vec(prop::sample::select(vec![INITIATOR, TARGET, BOTH]), 2..7),
        rounds in prop::collection::vec((any::<u64>(), 0u64..300), 1..6),
        lost_percent in 0u64..60,
        seed: u64,
    ) {
        let mut medium = loop_of(&functions);
        let nodes = functions.len();
        let mut random = SplitMix64(seed);
        medium.is_lost = Box::new(move |_| random.below(100) < lost_percent);
        for (choice, run_ms) in rounds {
            // Every node is present with probability 3/4 and takes one of a few addresses.
            let mut random = SplitMix64(choice);
            let mut taken = BTreeSet::new();
            let mut positions = Vec::new();
            for at in 0..nodes {
                let priority = (at as u8 + 1 + if random.below(4) == 0 { random.below(3) as u8 } else { 0 }).min(126);
                if random.below(4) != 0 && taken.insert(priority) {
                    positions.push((at, address(priority)));
                }
            }
            medium.initialise(&positions);
            medium.run(Span::from_ms(run_ms));
        }
        medium.is_lost = Box::new(|_| false);
        medium.run(PATIENCE);
        if medium.nodes.iter().any(|node| node.is_present) {
            medium.assert_agreement();
        }
        let frames = medium.frames;
        medium.run(PATIENCE.times(20));
        prop_assert_eq!(medium.frames, frames, "no frame without a cause");
    }
}
