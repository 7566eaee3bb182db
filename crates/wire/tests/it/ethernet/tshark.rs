//! Independent check: Wireshark's dissectors read the packets that we send over Ethernet.

use super::samples;
use sanloom_test_support::{needs, tshark};
use sanloom_wire::els::Els;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr, VlanTag};
use sanloom_wire::fcoe;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService};
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};
use sanloom_wire::{FcId, Frame, Message, Payload};

#[needs("tshark")]
#[test]
fn tshark_decodes_every_kind_of_fip_packet_to_its_meaning() {
    // Wireshark reads the fields of ELP four bytes too late, and its vendor operations differ from
    // ours.
    let legible = |packet: &Fip| {
        !packet.operation.is_vendor_specific() && !matches!(packet.link_service(), Some((LinkService::Elp, _)))
    };
    let mut file = capture();
    for (to, from, packet) in samples::packets().into_iter().filter(|(_, _, packet)| legible(packet)) {
        let mut bytes = Vec::new();
        FipFrame { to, from, padded_bytes: 0, packet }.emit(None, &mut bytes);
        add(&bytes, &mut file);
    }
    let text = tshark::read_bytes(&file, &["-V"]);
    assert_well_formed(&text);
    let names = "opcode vlan_subcode disc_subcode ls.subcode ctrl_subcode vn2vn_subcode flags desc_type desc_len mac name \
                 vlan pri map fcoe_size fab.vfid fab.map fab.name fka vn.mac vn.fc_id vn.pwwn";
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    let names: Vec<String> = names.split_whitespace().map(|name| format!("fip.{name}")).collect();
    let els = ["fcels.opcode", "fcels.portid"].map(String::from);
    arguments.extend(names.iter().chain(&els).flat_map(|name| ["-e", name]));
    let fields = tshark::read_bytes(&file, &arguments);
    insta::assert_snapshot!("tshark_fip", fields);
}

#[needs("tshark")]
#[test]
fn fcoe_frames_have_good_checksums_with_and_without_a_tag() {
    let mut file = capture();
    let message = Message::from(Els::Plogi(samples::login()));
    let header = message.header(samples::ID, FcId::NAME_SERVER, 7, 0xffff);
    let frame = Frame { header, payload: Payload::Typed(message) };
    for tag in [None, Some(VlanTag { priority: 3, drop_eligible: false, vlan: 100 })] {
        let mut bytes = Vec::new();
        fcoe::encapsulate(samples::FCF, samples::HOST, tag, &frame, &mut bytes);
        add(&bytes, &mut file);
    }
    let fields = ["fcoe.crc.status", "fcoe.sof", "fcoe.eof", "vlan.id", "fc.s_id", "fcels.opcode"];
    let arguments: Vec<&str> =
        ["-T", "fields"].into_iter().chain(fields.iter().flat_map(|name| ["-e", name])).collect();
    let text = tshark::read_bytes(&file, &arguments);
    let expected = "1\t0x2e\t0x42\t\t01.02.03\t0x03\n1\t0x2e\t0x42\t100\t01.02.03\t0x03\n";
    assert_eq!(text, expected);
}

#[needs("tshark")]
#[test]
fn tshark_decodes_dcbx_to_its_meaning() {
    let mut bytes = Vec::new();
    let header =
        EtherHeader { to: MacAddr::NEAREST_BRIDGE, from: samples::FCF, tag: None, ether_type: EtherType::LLDP };
    header.emit(&mut bytes);
    samples::lldpdu().emit(&mut bytes);
    let mut file = capture();
    add(&bytes, &mut file);
    let text = tshark::read_bytes(&file, &["-V", "-O", "lldp"]);
    assert_well_formed(&text);
    for expected in [
        "Seconds: 120",
        "Willing: Yes",
        "Maximum Number of Traffic Classes: 3",
        "PGID for Prio 3: 1",
        "PGID for Prio 7: 2",
        "Bandwidth for PGID 1: 50",
        "TSA for Traffic Class 1: Enhanced Transmission Selection (2)",
        "IEEE - ETS Recommendation",
        "Max PFC Enabled Traffic Classes: 8",
        "PFC for Priority 3: Enabled",
        "PFC for Priority 4: Disabled",
        "Application Priority: 3",
        "Application Protocol Id: 0x8906",
        "Application Protocol Id: 0x8914",
        "Maximum Frame Size: 2524",
        "Management Address: 10.0.0.1",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

#[needs("tshark")]
#[test]
fn an_unknown_descriptor_is_not_malformed() {
    let packet = Fip {
        descriptors: vec![Descriptor::Mac(samples::HOST), Descriptor::Other { kind: 241, body: [0; 10].into() }],
        ..samples::packets()[0].2.clone()
    };
    let mut bytes = Vec::new();
    FipFrame { to: MacAddr::ALL_FCFS, from: samples::HOST, padded_bytes: 0, packet }.emit(None, &mut bytes);
    let mut file = capture();
    add(&bytes, &mut file);
    let text = tshark::read_bytes(&file, &["-V"]);
    assert_well_formed(&text);
}

fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    Section { application: "sanloom test", comment: None }.emit(&mut file);
    let link_type = LINKTYPE_ETHERNET;
    Interface { name: "eth0", description: None, link_type, resolution: Resolution::Nanoseconds }.emit(&mut file);
    file
}

fn add(bytes: &[u8], file: &mut Vec<u8>) {
    Packet { interface: 0, time: 1_000, direction: None, crc_error: false, comment: None, data: bytes }.emit(file);
}

fn assert_well_formed(text: &str) {
    for bad in ["Malformed", "Bad", "[incorrect", "unverified", "Dissector bug", "Expert Info"] {
        assert!(!text.contains(bad), "{bad:?} in\n{text}");
    }
}
