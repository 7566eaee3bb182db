//! Receive offload: segments that an interface joins (GRO).

use sanloom_transport::tcp::{Flags, Segment};

/// Segments of one connection that its end handles as one.
pub struct Joined {
    /// End that they are for.
    pub end: u32,
    /// The segments as one.
    pub segment: Segment,
}

impl Joined {
    /// Appends the next segment, as receive offload of Linux does: data of the same connection in
    /// order, with the same acknowledgement, window and ECN field, in full segments but the last
    /// one, up to `most_bytes`. Returns false, without effect, if it does not fit.
    pub fn join(&mut self, next: &Joined, most_bytes: u32) -> bool {
        let (have, more) = (&mut self.segment, &next.segment);
        let unit = match have.unit {
            0 => have.length,
            unit => unit.into(),
        };
        let is_data = |segment: &Segment| segment.flags.without(Flags::PSH) == Flags::ACK && segment.length > 0;
        let fits = self.end == next.end
            && is_data(have)
            && is_data(more)
            && !have.flags.has(Flags::PSH)
            && more.position == have.end()
            && have.length.is_multiple_of(unit)
            && more.length <= unit
            && (have.ack, have.window, have.ecn) == (more.ack, more.window, more.ecn)
            && have.sack == more.sack
            && have.length + more.length <= most_bytes;
        if fits {
            have.unit = u16::try_from(unit).unwrap_or(u16::MAX);
            have.length += more.length;
            have.flags = have.flags.with(more.flags);
        }
        fits
    }
}
