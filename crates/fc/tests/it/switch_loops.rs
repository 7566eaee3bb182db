//! FL_Ports: several NL_Ports at one port of the switch, each with its own login.

use crate::switch_util::*;
use proptest::prelude::*;
use sanloom_fc::config::ZoneDefault;
use sanloom_fc::fabric::{Decision, DropReason, Egress};
use sanloom_fc::switch::{Addressing, Input, Policy, SwitchConfig, port_name};
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::els::{Els, Fan, Logo, LsAcc, LsRjt, LsRjtExplanation as Why, LsRjtReason as Reason};
use sanloom_wire::login::feature;
use sanloom_wire::ns::{NsAccept, NsRequest, fcp_feature, port_type};
use sanloom_wire::{FcId, Message, Payload, Wwpn};
use std::collections::BTreeMap;

/// FL_Port of the tests.
const PORT: u16 = 3;
const WRONG_S_ID: LsRjt = LsRjt { reason: Reason::LOGICAL_ERROR, explanation: Why::INVALID_ORIGINATOR_S_ID, vendor: 0 };

fn al_pas(values: &[u8]) -> Vec<AlPa> {
    values.iter().map(|&value| AlPa::new(value).expect("an AL_PA")).collect()
}

fn private(al_pa: u8) -> FcId {
    FcId::from_parts(0, 0, al_pa)
}

impl Rig {
    fn loop_up(&mut self, port: u16, values: &[u8]) {
        self.handle(Input::LoopUp { port, al_pas: al_pas(values) });
    }

    fn loop_flogi(&mut self, port: u16, al_pa: u8, name: u64) -> Result<FcId, LsRjt> {
        self.exchange_login(port, private(al_pa), Els::Flogi(login(name))).map(|(id, _)| id)
    }

    fn logged_in(&self) -> Vec<FcId> {
        self.switch.logins().map(|(id, _)| id).collect()
    }

    /// FANs among the frames sent since the last call.
    fn fans(&mut self) -> Vec<(FcId, Fan)> {
        let frames = std::mem::take(&mut self.sent);
        let fan = |(port, frame): &(u16, sanloom_wire::Frame)| match &frame.payload {
            Payload::Typed(Message::Els(els)) => match **els {
                Els::Fan(fan) => {
                    assert_round_trip(frame, None);
                    assert_eq!((*port, frame.header.s_id), (PORT, FcId::F_PORT));
                    Some((frame.header.d_id, fan))
                }
                _ => None,
            },
            _ => None,
        };
        frames.iter().filter_map(fan).collect()
    }
}

fn rig() -> Rig {
    Rig::new(config(1, open()))
}

#[test]
fn nl_ports_share_domain_and_area_and_keep_their_al_pa() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01, 0x02, 0xef]);
    for (al_pa, name) in [(0x01, 0x100), (0xef, 0x200), (0x02, 0x300)] {
        assert_eq!(rig.loop_flogi(PORT, al_pa, name), Ok(id(3, al_pa)));
        assert_eq!(rig.fib.port_of(id(3, al_pa)), Some(PORT));
    }
    assert_eq!(rig.logged_in(), [id(3, 0x01), id(3, 0x02), id(3, 0xef)]);
    assert!(rig.logged_in().into_iter().all(|id| !rig.switch.is_virtual(id)));
    let types: Vec<u8> = rig.switch.name_server().map(|entry| entry.port_type).collect();
    assert_eq!(types, [port_type::NL_PORT; 3]);
    // A port beside the loop is an F_Port as before.
    assert_eq!(rig.flogi(4, 0x400), id(4, 0));
    let last = rig.switch.name_server().last().expect("an object");
    assert_eq!(last.port_type, port_type::N_PORT);
}

#[test]
fn the_accept_has_the_alternative_credit_model_and_offers_no_virtual_ports() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01]);
    let (_, accept) = rig.exchange_login(PORT, private(0x01), Els::Flogi(login(0x100))).expect("accepted");
    assert_eq!(accept.common.features, feature::F_PORT | feature::ALTERNATE_BB_CREDIT);
    let fdisc = rig.exchange_login(PORT, FcId::ZERO, Els::Fdisc(login(0x101)));
    assert_eq!(fdisc, Err(LsRjt::new(Reason::UNABLE, Why::N_PORT_LOGIN_REQUIRED)));
}

#[test]
fn a_login_requires_an_al_pa_of_the_loop() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01]);
    assert_eq!(rig.loop_flogi(PORT, 0x02, 0x100), Err(WRONG_S_ID));
    assert_eq!(rig.loop_flogi(PORT, 0x00, 0x100), Err(WRONG_S_ID));
    assert_eq!(rig.logged_in(), []);
}

#[test]
fn an_address_of_a_loop_reaches_the_f_port_service_alone_and_at_an_fl_port_alone() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01]);
    rig.up(4);
    let decide = |rig: &Rig, port, d_id| rig.fib.decide(port, private(0x01), d_id, 1);
    assert_eq!(decide(&rig, PORT, FcId::F_PORT), Decision::Local);
    assert_eq!(decide(&rig, PORT, FcId::NAME_SERVER), Decision::Drop(DropReason::BadSourceId));
    assert_eq!(decide(&rig, PORT, id(4, 0)), Decision::Drop(DropReason::BadSourceId));
    assert_eq!(decide(&rig, 4, FcId::F_PORT), Decision::Drop(DropReason::BadSourceId));
    rig.up(PORT);
    assert_eq!(decide(&rig, PORT, FcId::F_PORT), Decision::Drop(DropReason::BadSourceId));
    assert!(!rig.switch.is_loop(PORT));
}

#[test]
fn a_second_flogi_of_a_port_is_a_new_login() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01, 0x02]);
    let (first, other) = (id(3, 0x01), id(3, 0x02));
    for (al_pa, name) in [(0x01, 0x100), (0x02, 0x200)] {
        let id = rig.loop_flogi(PORT, al_pa, name).expect("accepted");
        rig.take_part(id, fcp_feature::TARGET);
    }
    rig.run_until_quiet();
    assert_eq!(rig.loop_flogi(PORT, 0x01, 0x100), Ok(first));
    let query = NsRequest::GpnId { port_id: other };
    assert!(rig.ns(first, query.clone()).is_err(), "the session with the name server has ended");
    assert_eq!(rig.switch.counters().implicit_logouts, 1);
    rig.plogi(first);
    assert_eq!(rig.ns(first, query), Ok(NsAccept::PortName(Wwpn(0x200))));
    rig.sent.clear();
    rig.wait(RSCN_DELAY);
    let recipients: Vec<FcId> = rig.rscns().into_iter().map(|(to, ..)| to).collect();
    assert_eq!(recipients, [other]);
}

#[test]
fn two_ports_whose_al_pas_are_exchanged_log_in_with_the_new_ones() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01, 0x02]);
    rig.loop_flogi(PORT, 0x01, 0x100).expect("accepted");
    rig.loop_flogi(PORT, 0x02, 0x200).expect("accepted");
    rig.loop_up(PORT, &[0x02, 0x01]);
    assert_eq!(rig.loop_flogi(PORT, 0x02, 0x100), Ok(id(3, 0x02)));
    assert_eq!(rig.logged_in(), [id(3, 0x02)]);
    assert_eq!(rig.loop_flogi(PORT, 0x01, 0x200), Ok(id(3, 0x01)));
    let names: Vec<(FcId, Wwpn)> = rig.switch.name_server().map(|entry| (entry.port_id, entry.port_name)).collect();
    assert_eq!(names, [(id(3, 0x01), Wwpn(0x200)), (id(3, 0x02), Wwpn(0x100))]);
}

#[test]
fn an_initialisation_ends_the_logins_that_are_gone_and_sends_fan_to_the_others() {
    let mut rig = rig();
    rig.loop_up(PORT, &[0x01, 0x02, 0x04]);
    for (al_pa, name) in [(0x01, 0x100), (0x02, 0x200), (0x04, 0x300)] {
        let id = rig.loop_flogi(PORT, al_pa, name).expect("accepted");
        rig.take_part(id, fcp_feature::TARGET);
    }
    let far = rig.join(5, 0x500, fcp_feature::INITIATOR);
    rig.run_until_quiet();
    // The new AL_PA 08 is not logged in and gets no FAN.
    rig.loop_up(PORT, &[0x01, 0x04, 0x08]);
    let fan =
        Fan { loop_fabric_address: id(3, 0), fabric_port_name: port_name(SWITCH_NAME, PORT), fabric_name: FABRIC_NAME };
    assert_eq!(rig.fans(), [(id(3, 0x01), fan), (id(3, 0x04), fan)]);
    assert_eq!(rig.logged_in(), [id(3, 0x01), id(3, 0x04), far]);
    assert_eq!(rig.fib.port_of(id(3, 0x02)), None);
    rig.wait(RSCN_DELAY);
    let rscns: Vec<(FcId, Vec<FcId>)> = rig
        .rscns()
        .into_iter()
        .map(|(to, _, rscn)| (to, rscn.pages.iter().map(|page| page.address).collect()))
        .collect();
    assert_eq!(rscns, [id(3, 0x01), id(3, 0x04), far].map(|to| (to, vec![id(3, 0x02)])));
}

#[test]
fn the_end_of_the_link_ends_all_logins_of_the_loop() {
    for end in [Input::PortDown { port: PORT }, Input::PortUp { port: PORT, kind: sanloom_fc::switch::PortKind::F }] {
        let mut rig = rig();
        rig.loop_up(PORT, &[0x01, 0x02]);
        rig.loop_flogi(PORT, 0x01, 0x100).expect("accepted");
        rig.loop_flogi(PORT, 0x02, 0x200).expect("accepted");
        rig.handle(end);
        assert_eq!((rig.logged_in(), rig.switch.name_server_len()), (Vec::new(), 0));
        assert_eq!(rig.fib.ids().count(), 0);
        assert!(!rig.switch.is_loop(PORT));
        // The loop returns without old logins.
        rig.loop_up(PORT, &[0x01, 0x02]);
        assert_eq!(rig.fans(), []);
    }
}

#[test]
fn each_nl_port_has_its_own_permissions() {
    let mut rig = Rig::new(config(1, zone_set(&[&[0x100, 0x500], &[0x200, 0x600]], ZoneDefault::Closed)));
    rig.loop_up(PORT, &[0x01, 0x02]);
    rig.loop_flogi(PORT, 0x01, 0x100).expect("accepted");
    rig.loop_flogi(PORT, 0x02, 0x200).expect("accepted");
    let (five, six) = (rig.flogi(5, 0x500), rig.flogi(6, 0x600));
    let decide = |rig: &Rig, port, s_id, d_id| rig.fib.decide(port, s_id, d_id, 1);
    let to_loop = Decision::Forward(Egress::Port(PORT));
    assert_eq!(decide(&rig, 5, five, id(3, 0x01)), to_loop);
    assert_eq!(decide(&rig, 5, five, id(3, 0x02)), Decision::Drop(DropReason::ZoneDenied));
    assert_eq!(decide(&rig, PORT, id(3, 0x02), six), Decision::Forward(Egress::Port(6)));
    assert_eq!(decide(&rig, PORT, id(3, 0x01), six), Decision::Drop(DropReason::ZoneDenied));
    let logo = Logo { port_id: id(3, 0x01), port_name: Wwpn(0x100) };
    assert_eq!(rig.exchange_els(PORT, id(3, 0x01), FcId::F_PORT, Els::Logo(logo)), Ok(LsAcc::Empty));
    assert!(!rig.fib.permits(five, id(3, 0x01)));
    assert_eq!(rig.logged_in(), [id(3, 0x02), five, six]);
}

#[test]
fn a_loop_with_flat_addresses_reserves_an_area() {
    let policy = Policy { addressing: Addressing::Flat, ..Policy::default() };
    let mut rig = Rig::new(SwitchConfig { policy, ..config(1, open()) });
    rig.loop_up(298, &[0x01, 0x02]);
    rig.loop_up(PORT, &[0x01]);
    assert_eq!(rig.loop_flogi(298, 0x01, 0x100), Ok(id(0xff, 0x01)));
    assert_eq!(rig.loop_flogi(PORT, 0x01, 0x200), Ok(id(0xfe, 0x01)));
    assert_eq!(rig.loop_flogi(298, 0x02, 0x300), Ok(id(0xff, 0x02)));
    rig.down(298);
    rig.loop_up(298, &[0x02]);
    assert_eq!(rig.loop_flogi(298, 0x02, 0x300), Ok(id(0xff, 0x02)));
    // 65,024 addresses of other areas come before the reserved ones.
    rig.flogi(5, 0x400);
    for n in 1..0xfe00u64 {
        let given = rig.fdisc(5, 0x100_0000 + n).expect("an address is free");
        assert!(given.area() < 0xfe, "{given}");
        rig.log.clear();
    }
    assert_eq!(rig.fdisc(5, 0x200_0000), Ok(id(0xfe, 0x00)));
}

#[test]
fn logins_wait_for_the_domain_and_end_with_it() {
    let mut rig = Rig::new(SwitchConfig { domain: None, ..config(1, open()) });
    rig.loop_up(PORT, &[0x01, 0x02, 0x04]);
    for (al_pa, name) in [(0x01, 0x100), (0x02, 0x200), (0x01, 0x100), (0x04, 0x300)] {
        assert_eq!(rig.offer(PORT, private(al_pa), FcId::F_PORT, els(Els::Flogi(login(name)))), Decision::Local);
    }
    assert!(rig.sent.is_empty());
    // AL_PA 04 leaves the loop before the switch has a domain.
    rig.loop_up(PORT, &[0x01, 0x02]);
    rig.handle(Input::Domain(Some(1)));
    assert_eq!(rig.logged_in(), [id(3, 0x01), id(3, 0x02)]);
    let answered: Vec<FcId> = rig.sent.drain(..).map(|(_, frame)| frame.header.d_id).collect();
    assert_eq!(answered, [id(3, 0x02), id(3, 0x01)], "in the order of the latest requests");
    rig.handle(Input::Domain(None));
    let logouts: Vec<FcId> = rig.sent.drain(..).map(|(_, frame)| frame.header.d_id).collect();
    assert_eq!(logouts, [id(3, 0x01), id(3, 0x02)]);
    assert_eq!(rig.logged_in(), []);
}

#[test]
fn a_loop_at_a_port_that_does_not_exist_is_ignored() {
    let mut rig = rig();
    rig.log.clear();
    rig.loop_up(300, &[0x01]);
    assert_eq!(rig.log, []);
}

#[derive(Clone, Debug)]
enum Step {
    LoopUp(Vec<u8>),
    Flogi { al_pa: u8, name: u64 },
    Logo { al_pa: u8 },
    Down,
    Far { name: u64 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let al_pa = || prop::sample::select(vec![0x01u8, 0x02, 0x04, 0x08]);
    prop_oneof![
        3 => prop::collection::vec(al_pa(), 0..4).prop_map(Step::LoopUp),
        6 => (al_pa(), 1..6u64).prop_map(|(al_pa, name)| Step::Flogi { al_pa, name: name << 8 }),
        1 => al_pa().prop_map(|al_pa| Step::Logo { al_pa }),
        1 => Just(Step::Down),
        1 => (1..6u64).prop_map(|name| Step::Far { name: name << 8 }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_logins_of_a_loop_are_those_of_a_map(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut rig = rig();
        let far = id(5, 0);
        let mut on_loop: Option<Vec<u8>> = None;
        let mut model: BTreeMap<FcId, u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::LoopUp(values) => {
                    rig.sent.clear();
                    rig.loop_up(PORT, &values);
                    model.retain(|id, _| *id == far || values.contains(&id.port()));
                    let fans: Vec<FcId> = rig.fans().into_iter().map(|(to, _)| to).collect();
                    let expected: Vec<FcId> = model.keys().copied().filter(|id| *id != far).collect();
                    prop_assert_eq!(fans, expected);
                    on_loop = Some(values);
                }
                Step::Flogi { al_pa, name } => match &on_loop {
                    Some(values) if values.contains(&al_pa) => {
                        prop_assert_eq!(rig.loop_flogi(PORT, al_pa, name), Ok(id(3, al_pa)));
                        model.retain(|_, known| *known != name);
                        model.insert(id(3, al_pa), name);
                    }
                    Some(_) => prop_assert_eq!(rig.loop_flogi(PORT, al_pa, name), Err(WRONG_S_ID)),
                    None => {
                        let frame = els(Els::Flogi(login(name)));
                        let decision = rig.offer(PORT, private(al_pa), FcId::F_PORT, frame);
                        prop_assert!(matches!(decision, Decision::Drop(_)), "{:?}", decision);
                    }
                },
                Step::Logo { al_pa } => {
                    if let Some(name) = model.remove(&id(3, al_pa)) {
                        let logo = Els::Logo(Logo { port_id: id(3, al_pa), port_name: Wwpn(name) });
                        prop_assert_eq!(rig.exchange_els(PORT, id(3, al_pa), FcId::F_PORT, logo), Ok(LsAcc::Empty));
                    }
                }
                Step::Down => {
                    rig.down(PORT);
                    model.retain(|id, _| *id == far);
                    on_loop = None;
                }
                Step::Far { name } => {
                    rig.flogi(5, name);
                    model.retain(|id, known| *id != far && *known != name);
                    model.insert(far, name);
                }
            }
            let owned: Vec<FcId> = rig.fib.ids().map(|(id, _)| id).collect();
            prop_assert_eq!(&owned, &rig.logged_in());
            let objects: BTreeMap<FcId, u64> =
                rig.switch.name_server().map(|entry| (entry.port_id, entry.port_name.0)).collect();
            prop_assert_eq!(&objects, &model);
            prop_assert_eq!(owned, model.keys().copied().collect::<Vec<_>>());
        }
    }
}
