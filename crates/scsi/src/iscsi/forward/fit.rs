//! Parameters of the two sides (RFC 7143, section 13): the offers that make segments match, and the
//! test whether the agreed ones permit forwarding.

use crate::iscsi::parameters::{Digests, Offers, Parameters};

/// Reason why nothing can be forwarded between a host and a back end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Unfit {
    /// Only one side has data digests, so all data would have to be read to compute them.
    #[error("only one side has data digests")]
    DataDigest,
    /// With data digests, a segment would have to be split.
    #[error("segments of different lengths, with data digests")]
    Segment,
    /// With data digests, sequences of one side are longer than the other side allows.
    #[error("bursts of different lengths, with data digests")]
    Burst,
}

/// Parameters that the switch offers to a host. `offers` are those configured for the target;
/// `backs` are those agreed with its back ends.
pub fn front_offers(offers: Offers, backs: &[Parameters]) -> Offers {
    backs.iter().fold(offers, |offers, back| Offers {
        receive_bytes: offers.receive_bytes.min(back.send_bytes),
        initial_r2t: offers.initial_r2t || back.initial_r2t,
        immediate_data: offers.immediate_data && back.immediate_data,
        max_burst_bytes: offers.max_burst_bytes.min(back.max_burst_bytes),
        first_burst_bytes: offers.first_burst_bytes.min(back.first_burst_bytes),
        ..offers
    })
}

/// Parameters that the switch offers to a back end, for the session of a host that agreed to
/// `front`.
pub fn back_offers(front: &Parameters) -> Offers {
    Offers {
        header_digest: Digests::Either,
        data_digest: if front.data_digest { Digests::Always } else { Digests::Never },
        receive_bytes: front.send_bytes,
        initial_r2t: front.initial_r2t,
        immediate_data: front.immediate_data,
        max_burst_bytes: front.max_burst_bytes,
        first_burst_bytes: front.first_burst_bytes,
        max_outstanding_r2t: front.max_outstanding_r2t,
    }
}

/// Tests whether data can be forwarded. Without data digests they always can, because segments may
/// be split for a side that accepts only shorter ones.
///
/// # Errors
/// Returns the parameter that does not match.
pub fn fits(front: &Parameters, back: &Parameters) -> Result<(), Unfit> {
    if front.data_digest != back.data_digest {
        return Err(Unfit::DataDigest);
    }
    if !front.data_digest {
        return Ok(());
    }
    if back.receive_bytes > front.send_bytes || front.receive_bytes > back.send_bytes {
        return Err(Unfit::Segment);
    }
    if back.max_burst_bytes != front.max_burst_bytes {
        return Err(Unfit::Burst);
    }
    Ok(())
}
