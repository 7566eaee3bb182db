//! Why a FIP frame is not acted on: [`Discard`].

/// A reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Discard {
    /// It does not parse.
    Malformed,
    /// It has a descriptor that a receiver must know, and we do not (type below 128).
    UnknownCritical,
    /// A descriptor that must be there is missing, or there twice, or says what cannot be.
    Descriptors,
    /// An operation that nobody sends to such an end.
    UnexpectedOperation,
    /// It is for somebody else.
    NotForUs,
    /// It came from a station that it cannot have come from.
    Spoofed,
    /// It is about a login that does not exist.
    NotLoggedIn,
    /// It is of another fabric: FC-MAP or virtual fabric differ.
    OtherFabric,
    /// It answers nothing that is open.
    Stale,
    /// There is no room for whatever it wants.
    NoRoom,
}

impl Discard {
    /// All of them, in their order.
    pub const ALL: [Discard; 10] = [
        Discard::Malformed,
        Discard::UnknownCritical,
        Discard::Descriptors,
        Discard::UnexpectedOperation,
        Discard::NotForUs,
        Discard::Spoofed,
        Discard::NotLoggedIn,
        Discard::OtherFabric,
        Discard::Stale,
        Discard::NoRoom,
    ];

    /// A name for results and metrics, lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Discard::Malformed => "malformed",
            Discard::UnknownCritical => "unknown_critical_descriptor",
            Discard::Descriptors => "descriptors",
            Discard::UnexpectedOperation => "unexpected_operation",
            Discard::NotForUs => "not_for_us",
            Discard::Spoofed => "spoofed",
            Discard::NotLoggedIn => "not_logged_in",
            Discard::OtherFabric => "other_fabric",
            Discard::Stale => "stale",
            Discard::NoRoom => "no_room",
        }
    }
}

/// How often each reason came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discards([u64; Discard::ALL.len()]);

impl Discards {
    pub(super) fn count(&mut self, reason: Discard) {
        self.0[reason as usize] += 1;
    }

    /// How often.
    pub const fn of(&self, reason: Discard) -> u64 {
        self.0[reason as usize]
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        Discard::ALL.into_iter().zip(self.0)
    }
}
