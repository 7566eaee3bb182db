//! Every truncation is rejected, every value survives a round trip, and no byte stream makes a
//! parser panic.

use super::samples;
use proptest::collection::vec;
use proptest::prelude::*;
use sanloom_wire::ether::{EtherHeader, EtherType, FcMap, MacAddr, VlanTag};
use sanloom_wire::fcoe::Fcoe;
use sanloom_wire::fip::{Descriptor, Fip, Operation};
use sanloom_wire::lldp::{
    AppPriority, Application, EtsConfiguration, EtsRecommendation, Id, Lldpdu, Pfc, Tlv, TrafficClasses,
};
use sanloom_wire::{FcId, ParseError, Wwnn, Wwpn};

#[test]
fn every_truncation_of_every_packet_is_refused() {
    for (_, _, packet) in samples::packets() {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        assert_eq!((bytes.len(), Fip::parse(&bytes).as_ref()), (packet.encoded_len(), Ok(&packet)));
        for len in 0..bytes.len() {
            let error = Fip::parse(&bytes[..len]);
            assert!(matches!(error, Err(ParseError::Truncated { .. })), "{packet:?} of {len} bytes: {error:?}");
        }
        bytes.extend([0; 9]);
        assert_eq!(Fip::parse(&bytes), Ok(packet), "padding is ignored");
    }
}

/// The length field of the list ends inside a descriptor.
#[test]
fn every_truncation_of_every_descriptor_is_refused() {
    for descriptor in samples::packets().into_iter().flat_map(|(_, _, packet)| packet.descriptors) {
        let mut bytes = Vec::new();
        descriptor.emit(&mut bytes);
        for len in 0..bytes.len() {
            assert!(Descriptor::parse(&bytes[..len]).is_err(), "{descriptor:?} of {len} bytes");
        }
        if matches!(descriptor, Descriptor::Other { .. } | Descriptor::LinkService { .. }) {
            continue;
        }
        // A known type with another length is an error.
        for words in (0..=60).filter(|words| usize::from(*words) * 4 != bytes.len()) {
            let mut other = vec![0; 240];
            other[..2].copy_from_slice(&[bytes[0], words]);
            assert!(Descriptor::parse(&other).is_err(), "{descriptor:?} of {words} words");
        }
    }
}

#[test]
fn every_truncation_of_an_lldpdu_is_refused_or_ends_between_tlvs() {
    let pdu = samples::lldpdu();
    let mut bytes = Vec::new();
    pdu.emit(&mut bytes);
    for len in 0..bytes.len() {
        if let Ok(part) = Lldpdu::parse(&bytes[..len]) {
            assert_eq!(pdu.tlvs[..part.tlvs.len()], part.tlvs);
            let mut again = Vec::new();
            part.emit(&mut again);
            assert_eq!(again.len() - 2, len.min(bytes.len() - 2), "{len} bytes end within a TLV");
        }
    }
}

#[test]
fn every_truncation_of_a_header_is_refused() {
    let tag = Some(VlanTag { priority: 3, drop_eligible: false, vlan: 5 });
    let header = EtherHeader { to: samples::FCF, from: samples::HOST, tag, ether_type: EtherType::FIP };
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    for len in 0..bytes.len() {
        assert!(matches!(EtherHeader::parse(&bytes[..len]), Err(ParseError::Truncated { .. })), "{len}");
    }
}

fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

fn map() -> impl Strategy<Value = FcMap> {
    any::<[u8; 3]>().prop_map(FcMap)
}

fn id() -> impl Strategy<Value = FcId> {
    any::<[u8; 3]>().prop_map(FcId::from_bytes)
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
    let sampled: Vec<Descriptor> =
        samples::packets().into_iter().flat_map(|(_, _, packet)| packet.descriptors).collect();
    prop_oneof![
        3 => prop::sample::select(sampled),
        1 => any::<u8>().prop_map(Descriptor::Priority),
        1 => mac().prop_map(Descriptor::Mac),
        1 => map().prop_map(Descriptor::FcMap),
        1 => any::<u64>().prop_map(|name| Descriptor::Name(Wwnn(name))),
        1 => (any::<u16>(), map(), any::<u64>()).prop_map(|(vf_id, fc_map, name)| {
            Descriptor::Fabric { vf_id, fc_map, name: Wwnn(name) }
        }),
        1 => any::<u16>().prop_map(Descriptor::MaxFcoeBytes),
        1 => (mac(), id(), any::<u64>()).prop_map(|(mac, port_id, name)| {
            Descriptor::VxPort { mac, port_id, port_name: Wwpn(name) }
        }),
        1 => any::<(bool, u32)>().prop_map(|(no_keep_alives, period_ms)| {
            Descriptor::AdvertisementPeriod { no_keep_alives, period_ms }
        }),
        1 => any::<[u8; 8]>().prop_map(Descriptor::VendorId),
        1 => (0..4096_u16).prop_map(Descriptor::Vlan),
        1 => any::<([u32; 8], [u32; 32])>().prop_map(|(types, features)| {
            Descriptor::Fc4Attributes { types, features: Box::new(features) }
        }),
        1 => (16..=255_u8, 0..40_usize).prop_map(|(kind, words)| {
            Descriptor::Other { kind, body: vec![kind; 2 + 4 * words].into() }
        }),
    ]
}

prop_compose! {
    fn packet()(operation in any::<(u16, u8)>(), flags: u16, descriptors in vec(descriptor(), 0..8)) -> Fip {
        Fip { operation: Operation::new(operation.0, operation.1), flags, descriptors }
    }
}

prop_compose! {
    fn traffic()(classes in any::<[u8; 8]>(), bandwidth_percent: [u8; 8], algorithms: [u8; 8]) -> TrafficClasses {
        TrafficClasses { classes: classes.map(|class| class & 0x0f), bandwidth_percent, algorithms }
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Box<[u8]>> {
    vec(any::<u8>(), 0..most).prop_map(Vec::into_boxed_slice)
}

fn tlv() -> impl Strategy<Value = Tlv> {
    let id = || (any::<u8>(), bytes(256)).prop_map(|(subtype, id)| Id { subtype, id });
    let entry = (0..8_u8, 0..8_u8, any::<u16>());
    let entry = entry.prop_map(|(priority, selector, protocol)| AppPriority { priority, selector, protocol });
    prop_oneof![
        id().prop_map(Tlv::ChassisId),
        id().prop_map(Tlv::PortId),
        any::<u16>().prop_map(Tlv::TimeToLive),
        bytes(256).prop_map(Tlv::PortDescription),
        bytes(256).prop_map(Tlv::SystemName),
        bytes(512).prop_map(Tlv::SystemDescription),
        any::<(u16, u16)>().prop_map(|(capable, enabled)| Tlv::SystemCapabilities { capable, enabled }),
        (any::<(bool, bool)>(), 0..8_u8, traffic()).prop_map(|((willing, credit_shaper), max_classes, traffic)| {
            Tlv::EtsConfiguration(EtsConfiguration { willing, credit_shaper, max_classes, traffic })
        }),
        traffic().prop_map(|traffic| Tlv::EtsRecommendation(EtsRecommendation { traffic })),
        (any::<(bool, bool, u8)>(), 0..16_u8).prop_map(|((willing, macsec_bypass, priorities), max_priorities)| {
            Tlv::Pfc(Pfc { willing, macsec_bypass, max_priorities, priorities })
        }),
        vec(entry, 0..168).prop_map(|entries| Tlv::Application(Application { entries })),
        (any::<[u8; 2]>(), any::<u8>(), bytes(500))
            .prop_map(|(oui, subtype, body)| { Tlv::Organisation { oui: [1, oui[0], oui[1]], subtype, body } }),
        (8..127_u8, bytes(512)).prop_map(|(kind, body)| Tlv::Other { kind, body }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_survive(packet in packet(), padding in 0..50_usize) {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), packet.encoded_len());
        bytes.resize(bytes.len() + padding, 0);
        prop_assert_eq!(Fip::parse(&bytes), Ok(packet));
    }

    #[test]
    fn lldpdus_survive(tlvs in vec(tlv(), 0..8)) {
        let pdu = Lldpdu { tlvs };
        let mut bytes = Vec::new();
        pdu.emit(&mut bytes);
        prop_assert_eq!(Lldpdu::parse(&bytes), Ok(pdu));
    }

    #[test]
    fn headers_survive(to in mac(), from in mac(), tag in any::<Option<u16>>(), ether_type: u16) {
        prop_assume!(ether_type != EtherType::VLAN.0);
        let tag = tag.map(VlanTag::from_bits);
        let header = EtherHeader { to, from, tag, ether_type: EtherType(ether_type) };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), header.encoded_len());
        prop_assert_eq!(EtherHeader::parse(&bytes), Ok((header, &[][..])));
    }

    #[test]
    fn fcoe_survives(frame in vec(any::<u8>(), 24..600), codes: (u8, u8), crc: [u8; 4]) {
        let frame = &frame[..frame.len() & !3];
        let fcoe = Fcoe { sof_code: codes.0, frame, crc, eof_code: codes.1 };
        let mut bytes = Vec::new();
        fcoe.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), fcoe.encoded_len());
        prop_assert_eq!(Fcoe::parse(&bytes), Ok(fcoe));
    }
}
