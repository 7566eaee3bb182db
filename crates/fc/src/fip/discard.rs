//! Reasons for discarding a FIP frame: [`Discard`].

named_variants! {
    /// Reason for discarding a FIP frame.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Discard {
        /// The frame cannot be parsed.
        Malformed => "malformed",
        /// The frame has an unknown critical descriptor (type below 128).
        UnknownCritical => "unknown_critical_descriptor",
        /// A required descriptor is missing, duplicated, or has an invalid value.
        Descriptors => "descriptors",
        /// The operation is not valid towards this kind of station.
        UnexpectedOperation => "unexpected_operation",
        /// The frame is addressed to another station.
        NotForUs => "not_for_us",
        /// The source address does not match the sender that the frame claims.
        Spoofed => "spoofed",
        /// The frame concerns a login that does not exist.
        NotLoggedIn => "not_logged_in",
        /// The frame belongs to another fabric: FC-MAP or virtual fabric differ.
        OtherFabric => "other_fabric",
        /// The frame is a reply without a pending request.
        Stale => "stale",
        /// A table is full.
        NoRoom => "no_room",
    }
}

/// Discard counts by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discards([u64; Discard::ALL.len()]);

impl Discards {
    pub(super) fn count(&mut self, reason: Discard) {
        self.0[reason as usize] += 1;
    }

    /// Number of frames discarded for a reason.
    pub const fn of(&self, reason: Discard) -> u64 {
        self.0[reason as usize]
    }

    /// Sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        Discard::ALL.into_iter().zip(self.0)
    }
}
