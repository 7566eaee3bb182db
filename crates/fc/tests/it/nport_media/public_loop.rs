//! Ports of an arbitrated loop with an FL_Port, at a real switch.

use super::private_loop::{address, count, in_order, loop_of};
use super::{BOTH, Functions, INITIATOR, LATENCY, Medium, TARGET};
use proptest::prelude::*;
use sanloom_fc::nport::{FabricState, Input};
use sanloom_fc::switch;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;
use sanloom_wire::els::{Els, Fan};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn};
use std::collections::BTreeSet;

/// Time that covers the wait for FAN, the largest back-off, and the audit of an initiator.
const PATIENCE: Span = Span::from_secs(20);
/// Time limit for FAN.
const FAN_LIMIT: Span = Span::from_secs(4);
/// Time for all logins without a loss.
const LOGINS: Span = Span::from_ms(200);

/// Loop with nodes of these functions and an FL_Port; the last `far` nodes are at F_Ports.
fn public_loop(functions: &[Functions], far: usize) -> Medium {
    let mut medium = loop_of(functions).with_fabric(far);
    medium.initialise(&in_order(functions.len() - far));
    medium
}

fn fabric_logins(medium: &Medium) -> Vec<u64> {
    medium.nodes.iter().map(|node| node.nport.counters().fabric_logins).collect()
}

impl Medium {
    /// Drops the remote initiators that are no longer at the fabric. A target keeps an initiator
    /// that left before the SCR of the target.
    fn forget_initiators_without_rscn(&mut self) {
        let present: BTreeSet<FcId> = listed(self).into_iter().collect();
        for node in &mut self.nodes {
            node.remotes.retain(|port_id, remote| remote.target || present.contains(port_id));
        }
    }
}

/// Addresses in the name server.
fn listed(medium: &Medium) -> Vec<FcId> {
    let fabric = medium.fabric.as_ref().expect("a public loop");
    fabric.switch.name_server().map(|entry| entry.port_id).collect()
}

#[test]
fn a_public_port_logs_in_from_its_loop_address_and_keeps_its_al_pa() {
    let mut medium = public_loop(&[INITIATOR, TARGET, BOTH], 1);
    medium.log.clear();
    medium.initialise(&in_order(2));
    assert_eq!(medium.log[..2], ["0: FLOGI 000001 > fffffe", "1: FLOGI 000002 > fffffe"]);
    medium.run(LATENCY.times(4));
    assert_eq!(medium.log[2..4], ["switch: LS_ACC fffffe > 010301", "switch: LS_ACC fffffe > 010302"]);
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(listed(&medium), [FcId::new(0x01_0301), FcId::new(0x01_0302), FcId::new(0x01_0c00)]);
    assert!(medium.nodes.iter().all(|node| node.nport.state() == FabricState::Ready));
}

#[test]
fn logins_survive_an_initialisation_with_fan_and_are_verified() {
    let mut medium = public_loop(&[INITIATOR, TARGET, INITIATOR, TARGET], 2);
    medium.run(LOGINS);
    medium.assert_agreement();
    let before = (fabric_logins(&medium), medium.nodes[0].nport.counters().process_logins);
    medium.log.clear();
    medium.initialise(&in_order(2));
    assert!(medium.nodes[0].nport.is_suspended() && medium.nodes[1].nport.is_suspended());
    assert_eq!(count(&medium, "FAN"), 2);
    medium.run(LATENCY.times(2));
    assert!(!medium.nodes[0].nport.is_suspended());
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!((fabric_logins(&medium), medium.nodes[0].nport.counters().process_logins), before);
    // The initiator of the loop checks both targets, the target asks for both initiators.
    assert_eq!((count(&medium, "0: ADISC"), count(&medium, "1: GPN_ID"), count(&medium, "PLOGI")), (2, 2, 0));
}

#[test]
fn a_port_without_fan_waits_for_its_time_limit_and_logs_in_again() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    let first_lost = medium.frames;
    medium.is_lost = Box::new(move |number| number < first_lost + 2);
    medium.log.clear();
    medium.initialise(&in_order(2));
    assert_eq!(count(&medium, "FAN"), 2);
    let at = medium.now;
    assert_eq!(medium.nodes[0].nport.poll_timeout(), Some(at + FAN_LIMIT));
    assert_eq!(medium.nodes[0].remotes.len(), 1, "remote ports stay known");
    medium.run(FAN_LIMIT);
    assert_eq!(count(&medium, "FLOGI"), 2);
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(fabric_logins(&medium), [2, 2]);
}

#[test]
fn a_fan_of_another_fl_port_ends_all_logins() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    let port_id = medium.nodes[0].address;
    let known = medium.fabric.as_ref().expect("a public loop").switch.fabric_name();
    let fan = |address: u32, name: Wwnn| {
        let fan = Fan {
            loop_fabric_address: FcId::new(address),
            fabric_port_name: switch::port_name(crate::switch_util::SWITCH_NAME, 3),
            fabric_name: name,
        };
        let message = Message::from(Els::Fan(fan));
        let header = message.header(FcId::F_PORT, port_id, 7, 0xffff);
        Input::Frame(Frame { header, payload: Payload::Typed(message) })
    };
    medium.log.clear();
    medium.input(0, fan(0x01_0300, known));
    assert_eq!((medium.log.len(), medium.nodes[0].address), (0, port_id), "a FAN that confirms the login");
    for other in [fan(0x02_0300, known), fan(0x01_0300, Wwnn(known.0 + 1))] {
        medium.log.clear();
        medium.input(0, other);
        assert_eq!(medium.log, ["0: FLOGI 000001 > fffffe"]);
        assert_eq!(medium.nodes[0].address, FcId::ZERO);
        medium.run(LOGINS);
        medium.assert_agreement();
    }
}

#[test]
fn a_fan_before_the_own_loop_up_is_kept() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    medium.interrupt_loop();
    medium.run(LATENCY);
    medium.loop_up_at_switch(&in_order(2));
    medium.run(LATENCY.times(2));
    assert!(medium.nodes[0].nport.is_suspended());
    medium.loop_up_at_nodes(&in_order(2));
    assert!(!medium.nodes[0].nport.is_suspended());
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(fabric_logins(&medium), [1, 1]);
}

#[test]
fn a_pulled_port_goes_down_at_the_ports_of_the_fabric() {
    let mut medium = public_loop(&[INITIATOR, TARGET, INITIATOR], 1);
    medium.run(LOGINS);
    assert_eq!(medium.nodes[2].remotes.len(), 1);
    medium.initialise(&[(0, address(1))]);
    medium.run(LOGINS);
    medium.assert_agreement();
    assert!(medium.nodes[0].remotes.is_empty() && medium.nodes[2].remotes.is_empty());
    medium.initialise(&[(1, address(5)), (0, address(1))]);
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(medium.nodes[1].address, FcId::new(0x01_0300 | address(5).to_u32()));
}

#[test]
fn an_initiator_at_the_address_of_a_former_target_keeps_its_login() {
    let mut medium = public_loop(&[INITIATOR, TARGET, BOTH], 0);
    medium.run(LOGINS);
    medium.assert_agreement();
    // The initiator logs in before the RSCN about the target arrives.
    medium.initialise(&[(0, address(2)), (2, address(3))]);
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(medium.nodes[2].remotes.keys().copied().collect::<Vec<_>>(), [FcId::new(0x01_0302)]);
}

#[test]
fn private_ports_of_a_public_loop_are_left_alone_and_never_listed() {
    let mut medium = loop_of(&[INITIATOR, TARGET, TARGET]).with_fabric(0);
    medium.loop_up_at_switch(&in_order(3));
    medium.loop_up_at_nodes(&in_order(2));
    (medium.nodes[2].is_present, medium.nodes[2].loop_id) = (true, address(3));
    let private = Input::LoopUp { port_id: address(3), public: false, others: vec![address(1), address(2)] };
    medium.input(2, private);
    medium.run(LOGINS);
    assert_eq!(medium.nodes[0].remotes.keys().copied().collect::<Vec<_>>(), [medium.nodes[1].address]);
    assert!(!listed(&medium).contains(&medium.nodes[2].address));
    assert_eq!(listed(&medium).len(), 2);
}

#[test]
fn a_port_stays_on_its_loop_when_the_fabric_ends_its_login() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    medium.log.clear();
    medium.switch_input(switch::Input::Domain(Some(2)));
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(count(&medium, "0: FLOGI 000001"), 1, "{:?}", medium.log);
    let addresses: Vec<FcId> = medium.nodes.iter().map(|node| node.address).collect();
    assert_eq!(addresses, [FcId::new(0x02_0301), FcId::new(0x02_0302)]);
}

#[test]
fn a_loop_becomes_private_and_public_again() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    let fabric = medium.fabric.take();
    medium.initialise(&in_order(2));
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(medium.nodes[0].address, FcId::new(0x01));
    medium.fabric = fabric;
    medium.switch_input(switch::Input::PortDown { port: 3 });
    medium.initialise(&in_order(2));
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(medium.nodes[0].address, FcId::new(0x01_0301));
}

#[test]
fn an_interrupted_registration_continues_after_fan() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LATENCY.times(7));
    let state = medium.nodes[0].nport.state();
    assert!(state > FabricState::Flogi && state < FabricState::Ready, "{state:?}");
    medium.initialise(&in_order(2));
    medium.run(LATENCY.times(3));
    assert!(!medium.nodes[0].nport.is_suspended());
    medium.run(LOGINS);
    medium.assert_agreement();
    assert_eq!(fabric_logins(&medium), [1, 1]);
}

#[test]
fn nothing_is_sent_between_the_interruption_and_fan() {
    let mut medium = public_loop(&[INITIATOR, TARGET], 0);
    medium.run(LOGINS);
    medium.interrupt_loop();
    let frames = medium.frames;
    medium.run(PATIENCE);
    assert_eq!(medium.frames, frames);
    assert!(medium.nodes.iter().all(|node| node.nport.poll_timeout().is_none()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn all_ports_of_the_fabric_agree_after_any_initialisations_and_losses(
        functions in prop::collection::vec(prop::sample::select(vec![INITIATOR, TARGET]), 3..7),
        rounds in prop::collection::vec((any::<u64>(), 0u64..300), 1..6),
        lost_percent in 0u64..40,
        seed: u64,
    ) {
        const FAR: usize = 1;
        let nodes = functions.len() - FAR;
        let mut medium = loop_of(&functions).with_fabric(FAR);
        // A port that is not registered for RSCNs does not notice that an address changes hands.
        medium.run(LOGINS);
        let mut random = SplitMix64(seed);
        medium.is_lost = Box::new(move |_| random.below(100) < lost_percent);
        for (choice, run_ms) in rounds {
            let mut random = SplitMix64(choice);
            let mut taken = BTreeSet::new();
            let mut positions = Vec::new();
            for at in 0..nodes {
                let priority = at as u8 + 1 + if random.below(4) == 0 { random.below(3) as u8 } else { 0 };
                if random.below(4) != 0 && taken.insert(priority) {
                    positions.push((at, address(priority)));
                }
            }
            medium.initialise(&positions);
            medium.run(Span::from_ms(run_ms));
        }
        medium.is_lost = Box::new(|_| false);
        medium.run(PATIENCE);
        medium.forget_initiators_without_rscn();
        medium.assert_agreement();
        let present: BTreeSet<FcId> =
            medium.nodes.iter().filter(|node| node.is_present).map(|node| node.address).collect();
        prop_assert_eq!(listed(&medium).into_iter().collect::<BTreeSet<_>>(), present);
    }
}
