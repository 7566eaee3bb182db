//! Loop initialisation: the master, the addresses, the map and the duration.

use super::util::pa;
use sanloom_fc::arbitrated_loop::{
    AL_TIME, Candidate, InitFrame, Initialised, LP_TOV, LipCause, LoopRate, LoopTime, initialise, outages,
};
use sanloom_wire::Wwpn;
use sanloom_wire::arbitrated_loop::{AcceptsMap, AlPa, LoopInit, Step};

fn nl(name: u64) -> Candidate {
    Candidate::new(Wwpn(name))
}

fn start(ports: &[Candidate]) -> Initialised {
    initialise(LoopRate::Gb2, ports, LipCause::Inserted, false)
}

fn values(result: &Initialised) -> Vec<Option<u8>> {
    result.addresses.iter().map(|address| address.map(AlPa::value)).collect()
}

#[test]
fn the_lowest_name_becomes_master_and_takes_the_lowest_address() {
    let result = start(&[nl(30), nl(10), nl(20)]);
    assert_eq!(result.master, Some(1));
    assert_eq!(values(&result), [Some(0x04), Some(0x01), Some(0x02)]);
    assert_eq!(result.steps[1], Some(Step::Soft(AcceptsMap::Yes)));
    let positions = result.positions.expect("a map");
    assert_eq!(positions.addresses(), [pa(0x01), pa(0x02), pa(0x04)]);
}

#[test]
fn an_fl_port_wins_against_every_name_and_takes_zero() {
    let result = start(&[nl(1), Candidate::fl_port(Wwpn(u64::MAX)), nl(2)]);
    assert_eq!(result.master, Some(1));
    assert_eq!(values(&result), [Some(0x02), Some(0x00), Some(0x01)]);
    assert_eq!(result.positions.expect("a map").addresses(), [pa(0x00), pa(0x01), pa(0x02)]);
    assert!(!result.login_required);
}

#[test]
fn the_first_initialisation_of_a_fabric_sets_the_l_bit() {
    let ports = [nl(1), Candidate::fl_port(Wwpn(2))];
    assert!(initialise(LoopRate::Gb2, &ports, LipCause::Inserted, true).login_required);
    assert!(!initialise(LoopRate::Gb2, &ports[..1], LipCause::Inserted, true).login_required);
}

#[test]
fn a_second_fl_port_does_not_participate() {
    let result = start(&[Candidate::fl_port(Wwpn(9)), nl(1), Candidate::fl_port(Wwpn(5))]);
    assert_eq!(result.master, Some(2));
    assert_eq!(values(&result), [None, Some(0x01), Some(0x00)]);
}

#[test]
fn older_claims_to_an_address_come_first() {
    let ports = [
        Candidate { hard_address: Some(pa(0x10)), ..nl(1) },
        Candidate { previous_address: Some(pa(0x10)), ..nl(2) },
        Candidate { fabric_address: Some(pa(0x17)), previous_address: Some(pa(0x10)), ..nl(3) },
        Candidate { previous_address: Some(pa(0x17)), hard_address: Some(pa(0x18)), ..nl(4) },
    ];
    let result = start(&ports);
    assert_eq!(values(&result), [Some(0x01), Some(0x10), Some(0x17), Some(0x18)]);
    let soft = Step::Soft(AcceptsMap::Yes);
    assert_eq!(result.steps, [Some(soft), Some(Step::Previous), Some(Step::Fabric), Some(Step::Hard)]);
}

#[test]
fn an_nl_port_never_takes_zero() {
    let result = start(&[Candidate { hard_address: Some(AlPa::FL_PORT), ..nl(1) }, nl(2)]);
    assert_eq!(values(&result), [Some(0x01), Some(0x02)]);
}

#[test]
fn ports_beyond_the_126th_do_not_participate() {
    let ports: Vec<Candidate> = (0..130).map(nl).collect();
    let result = start(&ports);
    assert_eq!(result.addresses.iter().filter(|address| address.is_some()).count(), 126);
    assert!(result.addresses[126..].iter().all(Option::is_none));
    let with_fabric: Vec<Candidate> = std::iter::once(Candidate::fl_port(Wwpn(0))).chain(ports).collect();
    assert_eq!(start(&with_fabric).addresses.iter().filter(|address| address.is_some()).count(), 127);
}

#[test]
fn without_support_of_one_port_there_is_no_map() {
    let result = start(&[nl(1), Candidate { accepts_map: false, ..nl(2) }, nl(3)]);
    assert_eq!(result.positions, None);
    let steps: Vec<_> = result.frames.iter().map(|sent| sent.frame.name()).collect();
    let names = ["LISM", "LIFA", "LIPA", "LIHA", "LISA"];
    assert_eq!(steps, names.iter().flat_map(|name| [*name; 3]).collect::<Vec<_>>());
    let flags: Vec<u32> = result.frames[12..].iter().map(|sent| sent.frame.identifier()).collect();
    assert_eq!(flags, [0x1105_0100, 0x1105_0000, 0x1105_0000]);
}

#[test]
fn a_bypassed_port_repeats_only() {
    let ports = [nl(2), Candidate { bypassed: true, ..nl(1) }, nl(3)];
    let result = start(&ports);
    assert_eq!((result.master, values(&result)), (Some(0), vec![Some(0x01), None, Some(0x02)]));
    assert!(result.frames.iter().all(|sent| sent.from != 1 && sent.to != 1));
}

/// Frames with their 6 fill words are 18 words (LISM), 20 (four times) and 48 (LIRP and LILP).
#[test]
fn the_duration_is_the_sum_of_frames_cables_and_firmware() {
    let ports: Vec<Candidate> = (0..126).map(nl).collect();
    let word = LoopRate::Gb2.word();
    let frames = word.times((18 + 4 * 20 + 2 * 48) * 126);
    assert_eq!(frames.ps() / 1_000_000, 460);
    let cables = LoopTime::from_ps(50_000 * 126);
    let signal = cables + word.times(6 * 126 + 1);
    let lower = AL_TIME + frames + cables.times(7) + signal.times(2);
    assert_eq!(start(&ports).duration, lower);
    let firmware = LoopTime::from_ps(20_000_000);
    let slow: Vec<Candidate> = ports.into_iter().map(|port| Candidate { firmware, ..port }).collect();
    assert_eq!(start(&slow).duration, lower + firmware.times(7 * 126));
}

#[test]
fn each_frame_begins_after_the_frame_before_has_arrived() {
    let firmware = LoopTime::from_ps(20_000_000);
    let mut ports: Vec<Candidate> = (0..4).map(|name| Candidate { firmware, ..nl(name) }).collect();
    ports[2].bypassed = true;
    let frames = start(&ports).frames;
    assert_eq!(frames[0].start, AL_TIME + firmware);
    for pair in frames.windows(2) {
        let (sent, next) = (&pair[0], &pair[1]);
        // A port that repeats delays the frame by 6 words.
        let cables = LoopTime::from_ps(50_000).times(if sent.from == 1 { 2 } else { 1 });
        let repeated = LoopRate::Gb2.word().times(if sent.from == 1 { 6 } else { 0 });
        assert_eq!(sent.arrival - sent.start, cables + repeated);
        assert_eq!(next.from, sent.to);
        let words = LoopRate::Gb2.word().times(9 + 6 + sent.frame.encoded_len() as u64 / 4);
        // ARB(F0) of the loop master goes round after LISM.
        let extra = if (sent.frame.name(), next.frame.name()) == ("LISM", "LIFA") { 4 * 6 + 1 } else { 0 };
        let round = if extra > 0 { LoopTime::from_ps(200_000) } else { LoopTime::ZERO };
        assert_eq!(next.start, sent.arrival + words + LoopRate::Gb2.word().times(extra) + round + firmware);
    }
}

#[test]
fn no_port_of_a_broken_loop_participates() {
    let mut ports = vec![nl(1), nl(2), nl(3)];
    ports[1].is_cut = true;
    let result = initialise(LoopRate::Gb2, &ports, LipCause::Failure(Some(pa(0x04))), false);
    assert_eq!((result.master, values(&result)), (None, vec![None; 3]));
    assert_eq!(result.duration, AL_TIME + LP_TOV);
    assert_eq!(result.lip.ordered_set(), [0xbc, 0x15, 0xf8, 0x04]);
    ports.iter_mut().for_each(|port| port.bypassed = true);
    ports[1].is_cut = false;
    assert_eq!(start(&ports).master, None);
}

#[test]
fn a_port_that_is_pulled_or_inserted_leaves_the_addresses_of_the_others() {
    let mut ports: Vec<Candidate> = [5, 6, 7].map(nl).into();
    let before = start(&ports);
    for (port, address) in ports.iter_mut().zip(&before.addresses) {
        port.previous_address = *address;
    }
    ports.insert(1, nl(1));
    let inserted = start(&ports);
    assert_eq!(values(&inserted), [Some(0x01), Some(0x08), Some(0x02), Some(0x04)]);
    assert_eq!(inserted.master, Some(1));
    ports.remove(0);
    assert_eq!(values(&start(&ports)), [Some(0x01), Some(0x02), Some(0x04)]);
}

#[test]
fn each_cause_has_its_lip() {
    let (x, y) = (pa(0x01), pa(0xe8));
    let causes = [
        (LipCause::Inserted, [0xf7, 0xf7]),
        (LipCause::Requested(x), [0xf7, 0x01]),
        (LipCause::Failure(None), [0xf8, 0xf7]),
        (LipCause::Failure(Some(x)), [0xf8, 0x01]),
        (LipCause::Reset { port: y, by: x }, [0xe8, 0x01]),
        (LipCause::ResetAll { by: x }, [0xff, 0x01]),
    ];
    for (cause, [third, fourth]) in causes {
        assert_eq!(cause.primitive().ordered_set(), [0xbc, 0x15, third, fourth]);
    }
}

#[test]
fn a_storm_of_lips_keeps_the_loop_down() {
    let ms = |ms: u64| LoopTime::from_ps(ms * 1_000_000_000);
    let storm: Vec<LoopTime> = (0..100).map(|n| ms(10 * n)).chain([ms(5000)]).collect();
    assert_eq!(outages(&storm, ms(20)), [(ms(0), ms(990 + 20)), (ms(5000), ms(5020))]);
}

#[test]
fn frames_of_an_initialisation_parse() {
    for InitFrame { frame, .. } in start(&[nl(2), Candidate::fl_port(Wwpn(1)), nl(3)]).frames {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        assert_eq!(LoopInit::parse(&bytes), Ok(frame));
    }
}
