//! DCBX: agreement between two ends of a link, and the rules where their settings differ.

use sanloom_fc::dcbx::{DcbSettings, Dcbx, DcbxConfig, Input, Output};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::{EtherType, MacAddr};
use sanloom_wire::lldp::{EtsRecommendation, Id, Lldpdu, Pfc, Tlv};

const LOW: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const HIGH: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

struct End {
    agent: Dcbx,
    mac: MacAddr,
    now: Instant,
}

impl End {
    fn new(mac: MacAddr, willing: bool, priority: u8) -> End {
        let settings = DcbSettings::fcoe(priority);
        let recommendation = (!willing).then_some(settings.traffic);
        let config = DcbxConfig { settings, recommendation, ..DcbxConfig::new(mac, "eth0", "here", willing) };
        End { agent: Dcbx::new(config), mac, now: Instant::ZERO }
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.agent.handle(self.now, input);
        std::iter::from_fn(|| self.agent.poll_output()).collect()
    }

    fn receive(&mut self, from: MacAddr, lldpdu: &Lldpdu) -> Vec<Output> {
        let mut pdu = Vec::new();
        lldpdu.emit(&mut pdu);
        self.input(Input::Lldp { from, pdu: pdu.into() })
    }

    fn secs(&mut self, secs: u64) -> Vec<Output> {
        let end = self.now + Span::from_secs(secs);
        let mut outputs = Vec::new();
        while let Some(at) = self.agent.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            outputs.extend(self.input(Input::Timeout));
        }
        self.now = end;
        outputs
    }

    /// Priority of FCoE and the lossless priorities in force, and whether a peer agrees.
    fn in_force(&self) -> (Option<u8>, u8, bool) {
        let (settings, peer) = self.agent.in_force();
        (settings.priority(EtherType::FCOE), settings.lossless, peer)
    }
}

fn sent(outputs: &[Output]) -> Vec<Lldpdu> {
    let mut pdus = Vec::new();
    for output in outputs {
        if let Output::Send(pdu) = output {
            pdus.push(pdu.clone());
        }
    }
    pdus
}

/// Exchanges LLDPDUs until neither end sends anything new.
fn connect(ends: &mut [End; 2]) {
    let mut lldpdu: Vec<Vec<Lldpdu>> = ends.iter_mut().map(|end| sent(&end.input(Input::LinkUp))).collect();
    for _ in 0..10 {
        let received = std::mem::take(&mut lldpdu);
        let macs = [ends[0].mac, ends[1].mac];
        for (at, end) in ends.iter_mut().enumerate() {
            let mut own = Vec::new();
            for pdu in &received[1 - at] {
                own.extend(sent(&end.receive(macs[1 - at], pdu)));
            }
            own.extend(sent(&end.secs(1)));
            lldpdu.push(own);
        }
    }
}

#[test]
fn a_willing_host_adopts_the_settings_of_the_switch() {
    for macs in [(LOW, HIGH), (HIGH, LOW)] {
        let mut ends = [End::new(macs.0, true, 5), End::new(macs.1, false, 3)];
        connect(&mut ends);
        assert_eq!(ends[0].in_force(), (Some(3), 0x08, true));
        assert_eq!(ends[1].in_force(), (Some(3), 0x08, true));
        assert_eq!(ends[0].agent.in_force(), ends[1].agent.in_force());
        assert!(ends[0].agent.in_force().0.carries_fcoe());
    }
}

#[test]
fn the_pfc_of_the_lower_address_applies_if_both_ends_are_willing() {
    let mut ends = [End::new(HIGH, true, 5), End::new(LOW, true, 3)];
    connect(&mut ends);
    assert_eq!((ends[0].in_force().1, ends[1].in_force().1), (0x08, 0x08));
    // Neither end recommends a bandwidth, so each keeps its own settings.
    assert_eq!(ends[0].agent.in_force().0.traffic, DcbSettings::fcoe(5).traffic);
}

#[test]
fn two_ends_that_are_not_willing_keep_their_settings() {
    let mut ends = [End::new(LOW, false, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    assert_eq!((ends[0].in_force(), ends[1].in_force()), ((Some(5), 0x20, true), (Some(3), 0x08, true)));
}

#[test]
fn a_peer_is_removed_when_its_time_to_live_expires() {
    let mut ends = [End::new(LOW, true, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    let host = &mut ends[0];
    host.secs(110);
    assert!(host.in_force().2);
    let outputs = host.secs(12);
    assert!(outputs.contains(&Output::InForce { settings: DcbSettings::fcoe(5), peer: false }));
    assert_eq!((host.in_force(), host.agent.counters().aged_out), ((Some(5), 0x20, false), 1));
}

#[test]
fn a_peer_is_removed_at_once_by_its_shutdown_pdu() {
    let mut ends = [End::new(LOW, true, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    let goodbye = sent(&ends[1].input(Input::Shutdown));
    assert_eq!(goodbye[0].time_to_live_s(), Some(0));
    assert_eq!(goodbye[0].tlvs.len(), 3);
    ends[0].receive(HIGH, &goodbye[0]);
    assert_eq!(ends[0].in_force(), (Some(5), 0x20, false));
}

#[test]
fn with_two_peers_no_settings_are_adopted() {
    let mut ends = [End::new(LOW, true, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    let mut third = sent(&ends[1].input(Input::Settings(DcbSettings::fcoe(3)))).remove(0);
    third.tlvs[0] = Tlv::ChassisId(Id::chassis_mac(MacAddr([2, 0, 0, 0, 0, 3])));
    let host = &mut ends[0];
    host.receive(MacAddr([2, 0, 0, 0, 0, 3]), &third);
    assert_eq!((host.in_force(), host.agent.peer()), ((Some(5), 0x20, false), None));
    // More peers consume no memory.
    for number in 4..100 {
        third.tlvs[0] = Tlv::ChassisId(Id::chassis_mac(MacAddr([2, 0, 0, 0, 0, number])));
        host.receive(MacAddr([2, 0, 0, 0, 0, number]), &third);
    }
    assert_eq!(host.agent.counters().discarded, 94);
}

#[test]
fn a_pdu_is_sent_every_30_s_and_faster_for_a_new_peer() {
    let mut end = End::new(LOW, true, 3);
    assert_eq!(sent(&end.input(Input::LinkUp)).len(), 1);
    assert_eq!(sent(&end.secs(3)).len(), 3);
    assert_eq!(sent(&end.secs(90)).len(), 3);
    let peer = sent(&End::new(HIGH, false, 3).input(Input::LinkUp)).remove(0);
    end.receive(HIGH, &peer);
    assert_eq!(sent(&end.secs(4)).len(), 4);
    assert_eq!(sent(&end.secs(29)).len(), 1);
    assert_eq!(peer.time_to_live_s(), Some(121));
}

#[test]
fn a_change_is_sent_at_once_and_adopted() {
    let mut ends = [End::new(LOW, true, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    let mut config = DcbSettings::fcoe(4);
    config.lossless |= 1;
    let lldpdu = sent(&ends[1].input(Input::Settings(config)));
    assert_eq!(lldpdu.len(), 1);
    ends[0].receive(HIGH, &lldpdu[0]);
    assert_eq!(ends[0].in_force(), (Some(4), 0x11, true));
}

#[test]
fn invalid_pdus_are_counted_and_have_no_effect() {
    let mut host = End::new(LOW, true, 5);
    host.input(Input::LinkUp);
    let good = sent(&End::new(HIGH, false, 3).input(Input::LinkUp)).remove(0);
    for (number, damage) in [
        (|pdu: &mut Lldpdu| pdu.tlvs.swap(0, 1)) as fn(&mut Lldpdu),
        |pdu| pdu.tlvs.truncate(2),
        |pdu| pdu.tlvs.push(Tlv::TimeToLive(3)),
        |pdu| pdu.tlvs[1] = Tlv::PortId(Id { subtype: 5, id: [].into() }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut bad = good.clone();
        damage(&mut bad);
        host.receive(HIGH, &bad);
        assert_eq!((host.agent.counters().discarded, host.in_force().2), (number as u64 + 1, false));
    }
    host.input(Input::Lldp { from: HIGH, pdu: [2, 7, 4].into() });
    assert_eq!(host.agent.counters().discarded, 5);
    // A TLV that occurs twice, or has an impossible value, is ignored.
    let mut bad = good.clone();
    bad.tlvs.push(Tlv::Pfc(Pfc::default()));
    for tlv in &mut bad.tlvs {
        if let Tlv::EtsRecommendation(EtsRecommendation { traffic }) = tlv {
            traffic.bandwidth_percent[0] = 99;
        }
    }
    host.receive(HIGH, &bad);
    assert_eq!(host.agent.counters().tlvs_in_error, 2);
    assert_eq!(host.in_force(), (Some(3), 0x20, true), "the application priorities count");
    host.receive(HIGH, &good);
    assert_eq!(host.in_force(), (Some(3), 0x08, true));
}

#[test]
fn a_port_that_goes_down_removes_its_peer() {
    let mut ends = [End::new(LOW, true, 5), End::new(HIGH, false, 3)];
    connect(&mut ends);
    ends[0].input(Input::LinkDown);
    assert_eq!((ends[0].in_force(), ends[0].agent.poll_timeout()), ((Some(5), 0x20, false), None));
    assert_eq!(ends[0].input(Input::Lldp { from: HIGH, pdu: [0; 2].into() }), []);
}
