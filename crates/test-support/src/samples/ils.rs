//! Switch fabric internal link services: one of every kind, with the command code that its reply
//! needs.

use super::{HOST, HOST_NODE, HOST_PORT, zoning};
use sanloom_wire::sw_ils::*;
use sanloom_wire::{Wwnn, Wwpn};
use std::sync::Arc;

const SWITCH: Wwnn = Wwnn(0x1000_0005_0102_0300);

pub fn messages() -> Vec<(SwIls, Option<u8>)> {
    vec![
        (SwIls::Elp(Box::new(elp())), None),
        (SwIls::Efp(efp()), None),
        (SwIls::Dia { switch_name: SWITCH }, None),
        (SwIls::Rdi(rdi()), None),
        (SwIls::Esc(Esc { vendor: *b"SANLOOM ", protocols: vec![protocol(1), protocol(2)] }), None),
        (SwIls::Ess(ess()), None),
        (SwIls::Bf, None),
        (SwIls::Rcf, None),
        (SwIls::Hlo(hello()), None),
        (SwIls::Lsu(update()), None),
        (SwIls::Lsa(acknowledgement()), None),
        (SwIls::SwRscn(notification()), None),
        (SwIls::SwAcc(SwAcc::Empty), Some(command::SW_RSCN)),
        (SwIls::Mr(Arc::new(zoning::zone_sets())), None),
        (SwIls::Mrra(Mrra { revision: 1, size_words: 0x1234, vendor: *b"sanloom ", vendor_info: [7; 8] }), None),
        (SwIls::Aca(vec![1, 97, 239]), None),
        (SwIls::Rca, None),
        (SwIls::Sfc { operation: SfcOperation::ACTIVATE, zones: Arc::new(zoning::zone_sets()) }, None),
        (SwIls::Sfc { operation: SfcOperation::DEACTIVATE, zones: Arc::new(ZoneSets::default()) }, None),
        (SwIls::Ufc, None),
        (SwIls::Other { command: command::DSCN, body: [1, 2, 3].into() }, None),
        (SwIls::SwRjt(SwRjt::new(SwRjtReason::UNABLE, SwRjtExplanation::FLOW_CONTROL_MODE)), None),
        (SwIls::SwAcc(SwAcc::Elp(Box::new(elp()))), Some(command::ELP)),
        (SwIls::SwAcc(SwAcc::Efp(efp())), Some(command::EFP)),
        (SwIls::SwAcc(SwAcc::Dia { switch_name: SWITCH }), Some(command::DIA)),
        (SwIls::SwAcc(SwAcc::Rdi(rdi())), Some(command::RDI)),
        (SwIls::SwAcc(SwAcc::Esc(EscAcc { vendor: *b"OTHER   ", protocol: protocol(2) })), Some(command::ESC)),
        (SwIls::SwAcc(SwAcc::Ess(ess())), Some(command::ESS)),
        (SwIls::SwAcc(SwAcc::Empty), Some(command::BF)),
        (ZoneReply::new(ZoneStatus::FAILED, ZoneReason::CANNOT_MERGE).into(), Some(command::MR)),
        (ZoneReply::new(ZoneStatus::BUSY, ZoneReason::FABRIC_CHANGING).into(), Some(command::ACA)),
        (ZoneReply::DONE.into(), Some(command::SFC)),
        (
            SwIls::SwAcc(SwAcc::Mrra(MrraAcc {
                vendor: *b"sanloom ",
                response: MrraResponse::NOT_AVAILABLE,
                max_words: 0x800,
                wait_seconds: 5,
            })),
            Some(command::MRRA),
        ),
        (SwIls::SwAcc(SwAcc::Other([0, 0, 0, 9].into())), Some(command::DSCN)),
    ]
}

pub fn hello() -> Hello {
    Hello { header: FspfHeader::new(5), options: 0, hello_s: 20, dead_s: 80, recipient: 6, port: 0x11 }
}

pub fn update() -> LinkStateUpdate {
    LinkStateUpdate { header: FspfHeader::new(5), flags: lsu_flag::LAST, records: records() }
}

fn acknowledgement() -> LinkStateAck {
    let records = records().iter().map(|aged| aged.record.header(aged.age_s)).collect();
    LinkStateAck { header: FspfHeader::new(6), flags: lsu_flag::LAST, records }
}

fn records() -> Vec<AgedRecord> {
    let link = |neighbour, cost| LinkDescriptor {
        neighbour,
        port: 0x12,
        neighbour_port: 0x34,
        kind: LinkDescriptor::POINT_TO_POINT,
        cost,
    };
    let of_5 = LinkStateRecord::of_switch(5, Incarnation::FIRST, vec![link(6, 500), link(7, 250)]);
    let of_6 = LinkStateRecord::of_switch(6, Incarnation(0x8000_0007), vec![link(5, 500)]);
    [(3, of_5), (4, of_6)].map(|(age_s, record)| AgedRecord { age_s, record: Arc::new(record) }).into()
}

fn notification() -> SwRscn {
    let entry = |state| SwRscnEntry { state, port_id: HOST, port_name: HOST_PORT, node_name: HOST_NODE };
    SwRscn {
        event: port_event::NONE,
        format: SwRscn::FORMAT_DOMAIN,
        affected: HOST,
        detection: SwRscn::DETECTED_BY_FABRIC,
        entries: vec![entry(port_event::ONLINE), entry(port_event::OFFLINE)],
    }
}

fn elp() -> Elp {
    Elp {
        revision: 2,
        flags: 0,
        bb_sc_n: 3,
        r_a_tov_ms: 10_000,
        e_d_tov_ms: 2_000,
        port_name: Wwpn(0x2010_0005_0102_0304),
        switch_name: SWITCH,
        class_f: ClassF {
            flags: [ClassF::VALID, 0, 0, 0, 0x20, 0],
            receive_size_bytes: 2112,
            concurrent_sequences: 255,
            end_to_end_credit: 1,
            open_sequences: 2,
        },
        classes: [
            ElpClass::default(),
            ElpClass { flags: ElpClass::VALID, receive_size_bytes: 1024 },
            ElpClass { flags: ElpClass::VALID | ElpClass::SEQUENTIAL_DELIVERY, receive_size_bytes: 2112 },
        ],
        flow_control: FlowControl::R_RDY,
        bb_credit: 16,
        flow_parameters: std::array::from_fn::<u8, 16, _>(|i| i as u8).into(),
    }
}

fn efp() -> Efp {
    Efp {
        principal_priority: 2,
        principal_name: SWITCH,
        records: vec![EfpRecord::domain(0x61, SWITCH), EfpRecord::domain(0x62, Wwnn(0x1000_0005_0102_0307))],
    }
}

fn rdi() -> Rdi {
    Rdi { switch_name: SWITCH, domains: vec![0x61, 0x62] }
}

fn protocol(id: u16) -> EscProtocol {
    EscProtocol { vendor: *b"SANLOOM ", id }
}

fn ess() -> Ess {
    let capability = |service, subtype, flags| EssCapability { service, subtype, entries: vec![flags] };
    Ess {
        revision: 1,
        info: [&b"sanloom"[..], b"loom 48", b"0.1"].map(Box::from).to_vec(),
        capabilities: vec![
            capability(0xfc, 2, [0, 0, 0, 0x1f, 0, 0, 0, 0]),
            capability(0xfa, 3, [0, 0, 0, 3, 0, 0, 0, 0]),
        ],
    }
}
