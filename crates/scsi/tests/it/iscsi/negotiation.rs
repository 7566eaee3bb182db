//! Every key, with valid and invalid values, as a snapshot table.

use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::negotiation::{Negotiation, NegotiationError};
use sanloom_scsi::iscsi::parameters::{Digests, Offers};
use sanloom_wire::iscsi::text;

const OFFERS: &[(&str, &[&str])] = &[
    ("HeaderDigest", &["None", "CRC32C", "CRC32C,None", "None,CRC32C", "X-other,CRC32C", "X-other"]),
    ("DataDigest", &["None", "CRC32C", "CRC32C,None", "X-other"]),
    ("MaxConnections", &["1", "8", "0", "65536"]),
    ("InitialR2T", &["Yes", "No", "Maybe"]),
    ("ImmediateData", &["Yes", "No", "yes"]),
    ("MaxRecvDataSegmentLength", &["8192", "512", "16777215", "511", "16777216"]),
    ("MaxBurstLength", &["512", "262144", "0x40000", "16777215", "511", "many"]),
    ("FirstBurstLength", &["512", "65536", "16777215", "0"]),
    ("DefaultTime2Wait", &["0", "2", "3600", "3601"]),
    ("DefaultTime2Retain", &["0", "20", "3601"]),
    ("MaxOutstandingR2T", &["1", "8", "65535", "0"]),
    ("DataPDUInOrder", &["Yes", "No"]),
    ("DataSequenceInOrder", &["Yes", "No"]),
    ("ErrorRecoveryLevel", &["0", "1", "2", "3"]),
    ("TaskReporting", &["RFC3720", "ResponseFence,RFC3720", "FastAbort"]),
    ("iSCSIProtocolLevel", &["0", "1", "2", "32"]),
    ("IFMarker", &["Yes", "No"]),
    ("OFMarker", &["No"]),
    ("IFMarkInt", &["2048~4096"]),
    ("OFMarkInt", &["2048"]),
    ("X-com.example.key", &["1"]),
    ("Unheard", &["of"]),
];

fn answer(offers: Offers, discovery: bool, key: &str, value: &str) -> (String, Parameters) {
    let mut negotiation = Negotiation::new(offers);
    if discovery {
        negotiation.set_discovery();
    }
    let mut out = Vec::new();
    negotiation.answer(key, value, &mut out).expect("a first offer");
    let values = text::parse(&out).expect("text").iter().map(|(_, value)| (*value).to_owned()).collect::<Vec<_>>();
    (values.join(","), negotiation.parameters())
}

#[test]
fn every_key_is_answered() {
    let strict = Offers {
        header_digest: Digests::Always,
        data_digest: Digests::Never,
        initial_r2t: true,
        immediate_data: false,
        max_outstanding_r2t: 1,
        ..Offers::default()
    };
    let mut table = format!("{:<28}{:<24}{:<16}{:<16}{}\n", "key", "offer", "answer", "strict target", "discovery");
    for (key, offers) in OFFERS {
        for offer in *offers {
            let of = |offers, discovery| match &answer(offers, discovery, key, offer).0[..] {
                "" => "-".to_owned(),
                word => word.to_owned(),
            };
            let (usual, strict, discovery) =
                (of(Offers::default(), false), of(strict, false), of(Offers::default(), true));
            table += &format!("{key:<28}{offer:<24}{usual:<16}{strict:<16}{discovery}\n");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_key_that_comes_twice_is_an_error() {
    let mut negotiation = Negotiation::new(Offers::default());
    let mut out = Vec::new();
    assert_eq!(negotiation.answer("MaxBurstLength", "512", &mut out), Ok(()));
    assert_eq!(negotiation.answer("MaxBurstLength", "512", &mut out), Err(NegotiationError::Twice));
}

#[test]
fn first_burst_length_is_at_most_max_burst_length() {
    let mut negotiation = Negotiation::new(Offers::default());
    let mut out = Vec::new();
    negotiation.answer("MaxBurstLength", "4096", &mut out).expect("a first offer");
    negotiation.answer("FirstBurstLength", "65536", &mut out).expect("a first offer");
    assert_eq!(negotiation.parameters().first_burst_bytes, 4096);
}

/// Initiator and target of this crate agree on the same parameters from any offers.
#[test]
fn initiator_and_target_agree_on_all_parameters() {
    let digests = [Digests::Never, Digests::Either, Digests::Always];
    for (header_digest, data_digest) in digests.into_iter().flat_map(|a| digests.map(|b| (a, b))) {
        for (initial_r2t, immediate_data) in [(false, false), (false, true), (true, false), (true, true)] {
            let initiator_offers =
                Offers { receive_bytes: 4096, max_burst_bytes: 8192, first_burst_bytes: 1024, ..Offers::default() };
            let target_offers = Offers {
                header_digest,
                data_digest,
                initial_r2t,
                immediate_data,
                max_outstanding_r2t: 2,
                ..Offers::default()
            };
            let (mut initiator, mut target) = (Negotiation::new(initiator_offers), Negotiation::new(target_offers));
            let (mut offer, mut reply) = (Vec::new(), Vec::new());
            initiator.offer(&mut offer);
            for (key, value) in text::parse(&offer).expect("text") {
                target.answer(key, value, &mut reply).expect("no key twice");
            }
            target.declare(&mut reply);
            for (key, value) in text::parse(&reply).expect("text") {
                initiator.take(key, value).unwrap_or_else(|error| panic!("{key}={value}: {error}"));
            }
            let (a, b) = (initiator.parameters(), target.parameters());
            assert_eq!((a.receive_bytes, a.send_bytes), (b.send_bytes, b.receive_bytes));
            assert_eq!(a, Parameters { receive_bytes: a.receive_bytes, send_bytes: a.send_bytes, ..b });
            assert_eq!(a.header_digest, header_digest == Digests::Always);
        }
    }
}

#[test]
fn an_answer_that_was_not_offered_is_an_error() {
    for (key, value) in [
        ("MaxBurstLength", "16777215"),
        ("MaxBurstLength", "none"),
        ("InitialR2T", "Perhaps"),
        ("ErrorRecoveryLevel", "2"),
        ("HeaderDigest", "X-other"),
    ] {
        let mut negotiation = Negotiation::new(Offers::default());
        negotiation.offer(&mut Vec::new());
        assert_eq!(negotiation.take(key, value), Err(NegotiationError::BadAnswer), "{key}={value}");
    }
    let mut negotiation = Negotiation::new(Offers::default());
    assert_eq!(negotiation.take("MaxBurstLength", "Reject"), Ok(()));
    assert_eq!(negotiation.parameters().max_burst_bytes, 262_144);
}
