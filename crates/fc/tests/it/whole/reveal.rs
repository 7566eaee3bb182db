//! Information to a host about ports at other switches, and its timing.

use super::{Bed, E_D_TOV, assert_agree, config, line, zoned};
use sanloom_fc::config::{ZoneDefault, Zoning};
use sanloom_fc::fabric_switch::Input;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ZoneChange;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FcId, FcType, Frame, Message, Payload};

/// Returns whether PLOGI to storage at another switch would pass hard zoning at each end.
pub fn may_meet(bed: &Bed, host: (usize, u16, FcId), storage: (usize, u16, FcId)) -> bool {
    bed.trace(host.0, host.1, host.2, storage.2) == Some((storage.0, storage.1))
        && bed.trace(storage.0, storage.1, storage.2, host.2) == Some((host.0, host.1))
}

/// Answers of the name server to a port: whether each contains a target.
fn answers(bed: &mut Bed, node: usize, port: u16) -> Vec<bool> {
    let received = bed.received.remove(&(node, port)).unwrap_or_default();
    let ct = |frame: Frame| match frame.payload {
        Payload::Typed(Message::Ct(ct)) if ct.is_reply() => Some(ct.body),
        _ => None,
    };
    let shows = |body| matches!(body, CtBody::NsAccept(NsAccept::PortNames(ports)) if !ports.is_empty());
    received.into_iter().filter_map(ct).filter(|body| *body != CtBody::NsAccept(NsAccept::Empty)).map(shows).collect()
}

/// Ports in the name server's answers to a port, including itself.
pub fn shown(bed: &mut Bed, node: usize, port: u16) -> Vec<FcId> {
    let received = bed.received.remove(&(node, port)).unwrap_or_default();
    let ports = |frame: Frame| match frame.payload {
        Payload::Typed(Message::Ct(ct)) => match ct.body {
            CtBody::NsAccept(NsAccept::PortNames(ports)) => ports,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    received.into_iter().flat_map(ports).map(|(id, _)| id).collect()
}

/// Two switches with a zone.
fn zoned_pair() -> Bed {
    let zones = zoned(&[("both", &[0xa, 0xb])]);
    let mut bed = Bed::new(1, (0..2).map(|n| config(n, Some(n as u8 + 1), &zones)).collect());
    bed.connect((0, 1), (1, 0));
    bed
}

pub fn ask_for_targets(bed: &mut Bed, node: usize, port: u16, id: FcId) {
    let query = NsRequest::GpnFt { domain: 0, area: 0, fc4_type: FcType::FCP.0 };
    bed.send(node, port, id, FcId::NAME_SERVER, Message::Ct(Box::new(Ct::ns_request(query))));
}

#[test]
fn a_host_is_notified_of_a_remote_port_only_when_that_switch_admits_the_host() {
    let open_with_zones = Zoning { default: ZoneDefault::Open, ..zoned(&[("others", &[0xc, 0xd])]) };
    for zoning in [open_with_zones, zoned(&[("both", &[0xa, 0xb])])] {
        let mut bed = Bed::new(1, (0..3).map(|n| config(n, Some(n as u8 + 1), &zoning)).collect());
        (1..3).for_each(|n| _ = bed.connect((n - 1, 1), (n, 0)));
        let storage = (2, 6, bed.log_in(2, 6, 0xb));
        bed.run(Span::from_secs(3));
        let host = (0, 5, bed.log_in(0, 5, 0xa));
        assert!(!may_meet(&bed, host, storage), "the other switch has not received the login of the host");
        bed.received.clear();
        ask_for_targets(&mut bed, 0, 5, host.2);
        let mut waited = Span::ZERO;
        while waited < Span::from_ms(100) {
            let seen = answers(&mut bed, 0, 5);
            if !seen.is_empty() {
                assert_eq!(seen, [true]);
                assert!(may_meet(&bed, host, storage), "a PLOGI now would be in vain");
                break;
            }
            bed.run(Span::from_us(10));
            waited = waited + Span::from_us(10);
        }
        assert!(waited < Span::from_ms(10), "the delay of the notification and one round trip: {waited:?}");
        ask_for_targets(&mut bed, 0, 5, host.2);
        assert_eq!(answers(&mut bed, 0, 5), [true], "a host known to all switches is answered at once");
    }
}

#[test]
fn a_host_is_notified_of_newly_permitted_ports_only_when_the_zones_are_in_force_everywhere() {
    let new = ZoneDatabase::of_zoning(&zoned(&[("both", &[0xa, 0xb])]), "test");
    for manager in 0..3 {
        let old = zoned(&[("others", &[0xc, 0xd])]);
        let mut bed = Bed::new(1, (0..3).map(|n| config(n, Some(n as u8 + 1), &old)).collect());
        (1..3).for_each(|n| _ = bed.connect((n - 1, 1), (n, 0)));
        let storage = (2, 6, bed.log_in(2, 6, 0xb));
        bed.run(Span::from_secs(3));
        let host = (0, 5, bed.log_in(0, 5, 0xa));
        bed.run(Span::from_secs(1));
        bed.received.clear();
        bed.input(manager, Input::ChangeZones { tag: 0, change: ZoneChange::Replace(new.clone()) });
        let mut answered = 0;
        for _ in 0..1_000 {
            ask_for_targets(&mut bed, 0, 5, host.2);
            if shown(&mut bed, 0, 5).contains(&storage.2) {
                assert!(
                    may_meet(&bed, host, storage),
                    "a PLOGI now would be in vain; the change was made at {manager}"
                );
                answered += 1;
            }
            bed.run(Span::from_us(10));
        }
        assert!(answered > 900, "a commit takes less than a millisecond here: {answered} answers");
        assert_eq!(bed.nodes[0].machine.deferred_queries(), 0);
    }
}

#[test]
fn an_unresponsive_switch_does_not_separate_a_host_from_the_others() {
    let mut bed = zoned_pair();
    bed.log_in(0, 6, 0xb);
    bed.run(Span::from_secs(3));
    bed.loss = 100;
    let host = bed.log_in(0, 5, 0xa);
    bed.received.clear();
    ask_for_targets(&mut bed, 0, 5, host);
    bed.run(E_D_TOV);
    assert!(answers(&mut bed, 0, 5).is_empty());
    bed.run(E_D_TOV);
    assert_eq!(answers(&mut bed, 0, 5), [true], "the target at the same switch");
}

#[test]
fn a_query_of_a_port_that_went_down_is_not_answered() {
    let mut bed = zoned_pair();
    bed.run(Span::from_secs(3));
    let host = bed.log_in(0, 5, 0xa);
    bed.received.clear();
    ask_for_targets(&mut bed, 0, 5, host);
    assert_eq!(bed.nodes[0].machine.deferred_queries(), 1);
    bed.unplug(0, 5);
    assert_eq!(bed.nodes[0].machine.deferred_queries(), 0);
    bed.run(Span::from_secs(10));
    assert!(answers(&mut bed, 0, 5).is_empty());
}

#[test]
fn names_are_known_soon_after_the_paths_exist() {
    for switches in 2..7 {
        let mut bed = line(switches);
        let ports: Vec<_> = (0..switches).map(|n| (n, 5, bed.log_in(n, 5, 0xa + n as u64), 0xa + n as u64)).collect();
        let all_reach = |bed: &Bed| bed.nodes.iter().all(|node| node.machine.paths().routes().count() == switches - 1);
        while !all_reach(&bed) {
            bed.run(Span::from_ms(1));
            assert!(bed.now < Instant::ZERO + Span::from_secs(30), "no paths");
        }
        bed.run(Span::from_ms(100));
        assert_agree(&bed, &ports, &format!("{switches} switches, long before E_D_TOV"));
    }
}

#[test]
fn a_host_does_not_wait_for_the_logins_of_others() {
    let mut bed = zoned_pair();
    bed.log_in(1, 6, 0xb);
    bed.run(Span::from_secs(3));
    // Registrations that look alike make the other switch query everything again.
    for port in 3..9 {
        let host = bed.log_in(0, port, 0xa + 0x100 * u64::from(port));
        for _ in 0..2 {
            let types = NsRequest::RftId { port_id: host, types: [0x0000_0100, u32::from(port), 0, 0, 0, 0, 0, 0] };
            bed.send(0, port, host, FcId::NAME_SERVER, Message::Ct(Box::new(Ct::ns_request(types))));
            bed.run(Span::from_ms(7));
        }
        bed.received.clear();
        ask_for_targets(&mut bed, 0, port, host);
        assert_eq!(answers(&mut bed, 0, port).len(), 1, "port {port} is known to all");
    }
}
