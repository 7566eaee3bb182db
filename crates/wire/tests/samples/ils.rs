//! Switch fabric internal link services: one of every kind, with the command that a reply answers.

use sanloom_wire::sw_ils::{SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason, command};

pub fn messages() -> Vec<(SwIls, Option<u8>)> {
    vec![
        (SwIls::Bf, None),
        (SwIls::Rcf, None),
        (SwIls::Other { command: command::DSCN, body: [1, 2, 3].into() }, None),
        (SwIls::SwRjt(SwRjt::new(SwRjtReason::UNABLE, SwRjtExplanation::FLOW_CONTROL_MODE)), None),
        (SwIls::SwAcc(SwAcc::Empty), Some(command::BF)),
        (SwIls::SwAcc(SwAcc::Other([0, 0, 0, 9].into())), Some(command::DSCN)),
    ]
}
