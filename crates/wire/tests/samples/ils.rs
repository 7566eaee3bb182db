//! Switch fabric internal link services: one of every kind, with the command that a reply answers.

use super::zoning;
use sanloom_wire::sw_ils::{
    Mrra, MrraAcc, MrraResponse, SfcOperation, SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason, ZoneReason,
    ZoneReply, ZoneSets, ZoneStatus, command,
};
use std::sync::Arc;

pub fn messages() -> Vec<(SwIls, Option<u8>)> {
    vec![
        (SwIls::Bf, None),
        (SwIls::Rcf, None),
        (SwIls::Mr(Arc::new(zoning::zone_sets())), None),
        (SwIls::Mrra(Mrra { revision: 1, size_words: 0x1234, vendor: *b"sanloom ", vendor_info: [7; 8] }), None),
        (SwIls::Aca(vec![1, 97, 239]), None),
        (SwIls::Rca, None),
        (SwIls::Sfc { operation: SfcOperation::ACTIVATE, zones: Arc::new(zoning::zone_sets()) }, None),
        (SwIls::Sfc { operation: SfcOperation::DEACTIVATE, zones: Arc::new(ZoneSets::default()) }, None),
        (SwIls::Ufc, None),
        (SwIls::Other { command: command::DSCN, body: [1, 2, 3].into() }, None),
        (SwIls::SwRjt(SwRjt::new(SwRjtReason::UNABLE, SwRjtExplanation::FLOW_CONTROL_MODE)), None),
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
