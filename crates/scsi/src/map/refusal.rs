//! Reasons to refuse a change of the map, with their remedies.

use std::fmt;

/// Reason to refuse a change. `Display` prints the reason; [`Refusal::remedy`] returns the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The name is already in use.
    NameTaken(Box<str>),
    /// The name is invalid.
    BadName(Box<str>),
    /// The pool does not exist.
    UnknownPool,
    /// The volume does not exist.
    UnknownVolume,
    /// The volume would have no blocks.
    NoBlocks,
    /// The volume already has as many blocks or more.
    NotLarger {
        /// Current number of blocks.
        blocks: u64,
    },
    /// The number of blocks exceeds 64 bits.
    TooLarge,
    /// The stripe width is less than two LUNs.
    TooNarrow,
    /// The pool has too few LUNs with free extents.
    TooWide {
        /// Requested number of LUNs.
        wanted: u16,
        /// Number of LUNs with free extents.
        has: u16,
    },
    /// The stripe size does not divide the extent size of the pool.
    BadStripe {
        /// Requested blocks per stripe.
        stripe_blocks: u64,
        /// Blocks per extent.
        extent_blocks: u64,
    },
    /// The pool has too few free extents.
    NoSpace {
        /// Required extents.
        wanted: u64,
        /// Free extents that the shape of the volume can use.
        free: u64,
    },
    /// The pool has too few free extents until those of deleted volumes are wiped.
    Wiping {
        /// Required extents.
        wanted: u64,
        /// Free extents.
        free: u64,
        /// Extents that are being wiped.
        wiping: u64,
    },
    /// The pool has too few free extents, and one of its LUNs was never reached.
    Unreached {
        /// Name of that LUN.
        lun: Box<str>,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NameTaken(name) => write!(f, "there is a volume '{name}' already"),
            Refusal::BadName(name) => write!(f, "'{name}' is not a valid volume name"),
            Refusal::UnknownPool => f.write_str("no such pool"),
            Refusal::UnknownVolume => f.write_str("no such volume"),
            Refusal::NoBlocks => f.write_str("the size of the volume is 0"),
            Refusal::NotLarger { blocks } => write!(f, "the volume has {blocks} blocks already"),
            Refusal::TooLarge => f.write_str("the number of blocks exceeds 64 bits"),
            Refusal::TooNarrow => f.write_str("stripes need at least two back ends"),
            Refusal::TooWide { wanted, has } => {
                write!(f, "stripes need {wanted} back ends, but only {has} of the pool have free extents")
            }
            Refusal::BadStripe { stripe_blocks, extent_blocks } => {
                write!(f, "stripes of {stripe_blocks} blocks do not divide extents of {extent_blocks} blocks")
            }
            Refusal::NoSpace { wanted, free } => write!(f, "{wanted} extents are needed, but only {free} are free"),
            Refusal::Wiping { wanted, free, wiping } => {
                write!(
                    f,
                    "{wanted} extents are needed, {free} are free, and {wiping} of deleted volumes are being wiped"
                )
            }
            Refusal::Unreached { lun } => write!(f, "the back end '{lun}' was not reached yet, so its size is unknown"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Returns the reason with sizes in common units, for a pool with these block and extent sizes
    /// in bytes.
    pub fn reason(&self, block_bytes: u32, extent_bytes: u64) -> String {
        let blocks = |count: u64| size(count.saturating_mul(block_bytes.into()));
        let extents = |count: u64| size(count.saturating_mul(extent_bytes));
        match self {
            Refusal::NotLarger { blocks: has } => format!("the volume has {} already", blocks(*has)),
            Refusal::BadStripe { stripe_blocks, extent_blocks } => {
                let (stripe, extent) = (blocks(*stripe_blocks), blocks(*extent_blocks));
                format!("stripes of {stripe} do not divide extents of {extent}")
            }
            Refusal::NoSpace { wanted, free } => {
                format!("{} are needed, but only {} are free", extents(*wanted), extents(*free))
            }
            Refusal::Wiping { wanted, free, wiping } => format!(
                "{} are needed, {} are free, and {} of deleted volumes are being wiped",
                extents(*wanted),
                extents(*free),
                extents(*wiping)
            ),
            other => other.to_string(),
        }
    }

    /// Returns the remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Refusal::NameTaken(_) => "choose another name, or extend that volume",
            Refusal::BadName(_) => "use letters, digits, '-', '_' and '.', 64 at most, a letter or digit first",
            Refusal::UnknownPool => "name a pool of the lab file",
            Refusal::UnknownVolume => "'sanloom volume show' lists the volumes",
            Refusal::NoBlocks => "give a size",
            Refusal::NotLarger { .. } => "give a larger size; volumes do not shrink",
            Refusal::TooLarge => "give a smaller size",
            Refusal::TooNarrow => "give a width of 2 or more, or make the volume linear",
            Refusal::TooWide { .. } => {
                "give a smaller width, or add back ends to the pool in the lab file and apply it ('sanloom apply')"
            }
            Refusal::BadStripe { .. } => "give a stripe size that divides the extent size of the pool",
            Refusal::NoSpace { .. } => {
                "give a smaller size, delete a volume, or add back ends to the pool in the lab file and apply it ('sanloom apply')"
            }
            Refusal::Wiping { .. } => "try again in a moment, or give a smaller size",
            Refusal::Unreached { .. } => {
                "try again when it is reached; 'sanloom show LAB paths --live' shows why it is not"
            }
        }
    }
}

/// Formats a number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.into_iter().find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match whole {
        Some((factor, unit)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

/// Reason why stored volumes do not fit the configured pools.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestoreError {
    /// Two volumes have the same number or name.
    #[error("two volumes have the name '{0}'")]
    Twice(Box<str>),
    /// A segment is invalid.
    #[error("volume '{volume}': {error}")]
    Layout {
        /// Name of the volume.
        volume: Box<str>,
        /// Error in its layout.
        error: super::BadLayout,
    },
    /// An extent belongs to another pool or to no LUN.
    #[error("volume '{0}' has extents outside of its pool")]
    Elsewhere(Box<str>),
    /// An extent also belongs to another volume.
    #[error("volume '{0}' shares an extent with another volume")]
    Shared(Box<str>),
}
