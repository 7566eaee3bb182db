//! Invalid frames to machines in use: nothing panics, memory stays bounded, and existing logins
//! persist.

use crate::fip::fcf::unhex;
use crate::fip::host::{host_mac, host_port};
use crate::fip::net::{Net, fcf_config, fcf_mac, switch_config};
use sanloom_fc::fip::enode::{Enode, EnodeConfig};
use sanloom_fc::fip::fcf;
use sanloom_fc::fip::vn2vn::{Vn2vn, Vn2vnConfig};
use sanloom_fc::fip::{enode, vn2vn};
use sanloom_fc::nport::FabricState;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::Els;
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, LinkService, Operation, flag};
use sanloom_wire::login::{ClassParameters, CommonParameters, Login};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};

const CAPTURE: &str = include_str!("../../../../wire/tests/it/golden/fip.txt");

/// Bodies of captured packets, and of packets with every operation and descriptor.
fn seeds() -> Vec<Vec<u8>> {
    let lines = CAPTURE.lines().filter(|line| !line.starts_with('#'));
    let mut seeds: Vec<Vec<u8>> =
        lines.map(|line| unhex(line.split_once(' ').expect("bytes").1)[14..].to_vec()).collect();
    let descriptors = [
        Descriptor::Priority(1),
        Descriptor::Mac(host_mac(1)),
        Descriptor::Name(Wwnn(1)),
        Descriptor::FcMap(FcMap::DEFAULT),
        Descriptor::MaxFcoeBytes(2158),
        Descriptor::Fabric { vf_id: 0, fc_map: FcMap::DEFAULT, name: Wwnn(9) },
        Descriptor::AdvertisementPeriod { no_keep_alives: false, period_ms: 1 },
        Descriptor::VxPort {
            mac: MacAddr::fpma(FcMap::DEFAULT, FcId::new(0x020a00)),
            port_id: FcId::new(0x020a00),
            port_name: host_port(1, 0),
        },
        Descriptor::Vlan(1),
    ];
    for code in 1..=5 {
        for subcode in 1..=5 {
            for flags in [flag::FPMA, flag::FPMA | flag::FCF | flag::SOLICITED | flag::AVAILABLE] {
                let packet = Fip { operation: Operation::new(code, subcode), flags, descriptors: descriptors.to_vec() };
                let mut bytes = Vec::new();
                packet.emit(&mut bytes);
                seeds.push(bytes);
            }
        }
    }
    seeds
}

/// Damages a seed, or generates random bytes.
fn damaged(dice: &mut SplitMix64, seeds: &[Vec<u8>]) -> Vec<u8> {
    if dice.chance(10) {
        let len = dice.bits() % 80;
        return (0..len).map(|_| dice.bits() as u8).collect();
    }
    let mut bytes = seeds[(dice.bits() % seeds.len() as u64) as usize].clone();
    for _ in 0..dice.bits() % 6 {
        let at = (dice.bits() % bytes.len() as u64) as usize;
        match dice.bits() % 5 {
            0 => bytes[at] = dice.bits() as u8,
            1 => bytes[at] ^= 1 << (dice.bits() % 8),
            2 => bytes[at] = [0, 1, 0x7f, 0xff][(dice.bits() % 4) as usize],
            3 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, dice.bits() as u8),
        }
    }
    bytes
}

/// Addresses that the attacker has or forges.
fn somebody(dice: &mut SplitMix64) -> MacAddr {
    match dice.bits() % 4 {
        0 => fcf_mac(9),
        1 => MacAddr::from_u64(dice.bits()),
        n => MacAddr([2, 9, 9, 9, 9, n as u8]),
    }
}

#[test]
fn ten_thousand_bad_frames_do_not_disturb_a_host_and_its_switch() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let hosts = [net.add_host(1, false, 1), net.add_host(2, true, 0)];
    net.run(Span::from_secs(20));
    let seeds = seeds();
    let mut dice = SplitMix64(7);
    for _ in 0..10_000 {
        let pdu: Box<[u8]> = damaged(&mut dice, &seeds).into();
        let to = [fcf_mac(1), MacAddr::ALL_FCFS][(dice.bits() % 2) as usize];
        let from = somebody(&mut dice);
        net.fcf(switch, fcf::Input::Fip { to, from, pdu });
        net.run(Span::from_ms(1));
    }
    for (host, ports) in hosts.into_iter().zip([2, 1]) {
        let ready = net.host(host).nports.iter().filter(|port| port.state() == FabricState::Ready).count();
        assert_eq!((ready, net.host(host).nports[0].counters().fabric_logins), (ports, 1));
    }
    assert_eq!(net.host(hosts[0]).remotes[0].len(), 1);
    let station = net.switch(switch);
    assert!(station.fcf.discards().total() > 5_000, "{:?}", station.fcf.discards());
    assert!(station.fcf.table_bytes() < 200_000, "{} bytes", station.fcf.table_bytes());
}

#[test]
fn a_flood_of_logins_occupies_the_free_ports_and_no_more_memory() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    let host = net.add_host(1, false, 0);
    net.run(Span::from_secs(20));
    for number in 0..20_000_u64 {
        let login = Login {
            common: CommonParameters { receive_size_bytes: 2112, ..CommonParameters::default() },
            port_name: Wwpn(number + 1),
            node_name: Wwnn(number + 1),
            class_1: ClassParameters::default(),
            class_2: ClassParameters::default(),
            class_3: ClassParameters { flags: ClassParameters::VALID, ..ClassParameters::default() },
        };
        let message = Message::from(Els::Flogi(login));
        let header = message.header(FcId::ZERO, FcId::F_PORT, number as u16, 0xffff);
        let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
        let service = Descriptor::LinkService { service: LinkService::Flogi, frame };
        let descriptors = vec![service, Descriptor::Mac(MacAddr::ZERO)];
        let packet = Fip { operation: Operation::LINK_SERVICE_REQUEST, flags: flag::FPMA, descriptors };
        let mut pdu = Vec::new();
        packet.emit(&mut pdu);
        let from = MacAddr::from_u64(0x0200_0000_0000 + number);
        net.fcf(switch, fcf::Input::Fip { to: fcf_mac(1), from, pdu: pdu.into() });
    }
    assert_eq!(net.switch(switch).fcf.free_ports(), 0);
    assert_eq!(net.switch(switch).switch.logins().count(), 30);
    assert!(net.switch(switch).fcf.table_bytes() < 200_000, "{} bytes", net.switch(switch).fcf.table_bytes());
    // The attacker stops sending, and its ports become free again.
    net.run(Span::from_secs(30));
    assert_eq!((net.switch(switch).fcf.free_ports(), net.switch(switch).switch.logins().count()), (29, 1));
    assert_eq!(net.host(host).nports[0].counters().fabric_logins, 1);
}

#[test]
fn the_table_of_neighbours_is_bounded() {
    let mut net = Net::new(1);
    let switch = net.add_switch(switch_config(1), fcf_config(1));
    net.run(Span::from_secs(20));
    for number in 0..5_000_u64 {
        let mac = MacAddr::from_u64(0x0200_0000_0000 + number);
        let descriptors = vec![
            Descriptor::Mac(mac),
            Descriptor::FcMap(FcMap::DEFAULT),
            Descriptor::Name(Wwnn(number + 1)),
            Descriptor::MaxFcoeBytes(2158),
        ];
        let packet = Fip { operation: Operation::SOLICITATION, flags: flag::FCF, descriptors };
        let mut pdu = Vec::new();
        packet.emit(&mut pdu);
        net.fcf(switch, fcf::Input::Fip { to: fcf_mac(1), from: mac, pdu: pdu.into() });
    }
    assert!(net.switch(switch).fcf.table_bytes() < 100_000, "{} bytes", net.switch(switch).fcf.table_bytes());
    net.run(Span::from_secs(30));
    assert_eq!(net.switch(switch).fcf.links().count(), 0);
}

#[test]
fn a_host_survives_any_frames_of_an_fcf() {
    let seeds = seeds();
    let mut dice = SplitMix64(11);
    let mut host = Enode::new(EnodeConfig::new(host_mac(1), Wwnn(1)));
    let mut now = Instant::ZERO;
    host.handle(now, enode::Input::LinkUp);
    for _ in 0..20_000 {
        now += Span::from_ms(dice.bits() % 50);
        let pdu: Box<[u8]> = damaged(&mut dice, &seeds).into();
        let to = [host_mac(1), MacAddr::ALL_ENODES][(dice.bits() % 2) as usize];
        host.handle(now, enode::Input::Fip { to, from: somebody(&mut dice), pdu });
        host.handle(now, enode::Input::Timeout);
        while host.poll_output().is_some() {}
        assert!(host.fcfs().count() <= 20);
        assert!(host.poll_timeout().is_none_or(|at| at > now), "an early timeout is harmless, a late one is not");
    }
}

#[test]
fn a_station_survives_any_frames_of_others() {
    let seeds = seeds();
    let mut dice = SplitMix64(13);
    let mut station = Vn2vn::new(Vn2vnConfig::new(host_mac(1), host_port(1, 0), Wwnn(1), true, true));
    let mut now = Instant::ZERO;
    station.handle(now, vn2vn::Input::LinkUp);
    for _ in 0..20_000 {
        now += Span::from_ms(dice.bits() % 50);
        let pdu: Box<[u8]> = damaged(&mut dice, &seeds).into();
        let to = [host_mac(1), MacAddr::ALL_VN2VN_ENODES][(dice.bits() % 2) as usize];
        station.handle(now, vn2vn::Input::Fip { to, from: somebody(&mut dice), pdu });
        station.handle(now, vn2vn::Input::Timeout);
        while station.poll_output().is_some() {}
        assert!(station.neighbours().count() <= 4_096);
        assert!(station.poll_timeout().is_none_or(|at| at > now));
    }
}
