//! Parameters of the two sides (RFC 7143, section 13): what is wished for so that segments match, and what can be forwarded when all is
//! agreed.

use crate::iscsi::parameters::{Digests, Parameters, Wishes};

/// Why nothing can be forwarded between a host and a back end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Unfit {
    /// One side has data digests, the other has not: somebody would have to read all data.
    #[error("only one side has data digests")]
    DataDigest,
    /// With data digests, a segment would have to be cut.
    #[error("segments of different lengths, with data digests")]
    Segment,
    /// Sequences of one side are longer than the other side allows, with data digests.
    #[error("bursts of different lengths, with data digests")]
    Burst,
}

/// What a switch wishes for at a host's login, if this is what its target wants and its back ends have agreed to.
pub fn front_wishes(wishes: Wishes, backs: &[Parameters]) -> Wishes {
    backs.iter().fold(wishes, |wishes, back| Wishes {
        receive_bytes: wishes.receive_bytes.min(back.send_bytes),
        initial_r2t: wishes.initial_r2t || back.initial_r2t,
        immediate_data: wishes.immediate_data && back.immediate_data,
        max_burst_bytes: wishes.max_burst_bytes.min(back.max_burst_bytes),
        first_burst_bytes: wishes.first_burst_bytes.min(back.first_burst_bytes),
        ..wishes
    })
}

/// What the switch wishes for at a back end, for the session of a host that has agreed to `front`.
pub fn back_wishes(front: &Parameters) -> Wishes {
    Wishes {
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

/// Whether data can be forwarded at all. Without data digests they always can: segments are cut where one side takes shorter ones.
///
/// # Errors
/// Why not.
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
