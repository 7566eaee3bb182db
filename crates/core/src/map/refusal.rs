//! Why a change of the map is refused, and what helps.

use std::fmt;

/// Why a change is refused. It displays as the reason; [`Refusal::remedy`] says what helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A volume has the name already.
    NameTaken(Box<str>),
    /// Not a name.
    BadName(Box<str>),
    /// No such pool.
    UnknownPool,
    /// No such volume.
    UnknownVolume,
    /// A volume of no blocks.
    NoBlocks,
    /// The volume has as many blocks or more.
    NotLarger {
        /// What it has.
        blocks: u64,
    },
    /// More blocks than there are numbers.
    TooLarge,
    /// A striped volume over fewer than two LUNs.
    TooNarrow,
    /// The pool has too few LUNs with room.
    TooWide {
        /// LUNs that are wanted.
        wanted: u16,
        /// LUNs with room.
        has: u16,
    },
    /// Stripes that do not divide the extents of the pool.
    BadStripe {
        /// Blocks of a stripe.
        stripe_blocks: u64,
        /// Blocks of an extent.
        extent_blocks: u64,
    },
    /// Too few free extents.
    NoSpace {
        /// Extents that are wanted.
        wanted: u64,
        /// Extents that are free, and that the shape of the volume can use.
        free: u64,
    },
    /// Too few free extents, until those of deleted volumes were wiped.
    Wiping {
        /// Extents that are wanted.
        wanted: u64,
        /// Extents that are free.
        free: u64,
        /// Extents that are being wiped.
        wiping: u64,
    },
    /// Too few free extents, and a LUN of the pool has never been reached.
    Unreached {
        /// The name of the LUN.
        lun: Box<str>,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NameTaken(name) => write!(f, "there is a volume '{name}' already"),
            Refusal::BadName(name) => write!(f, "'{name}' is no name of a volume"),
            Refusal::UnknownPool => f.write_str("no such pool"),
            Refusal::UnknownVolume => f.write_str("no such volume"),
            Refusal::NoBlocks => f.write_str("a volume of no size"),
            Refusal::NotLarger { blocks } => write!(f, "the volume has {blocks} blocks already"),
            Refusal::TooLarge => f.write_str("a volume of more blocks than can be numbered"),
            Refusal::TooNarrow => f.write_str("stripes over fewer than two back ends"),
            Refusal::TooWide { wanted, has } => {
                write!(f, "stripes over {wanted} back ends, and the pool has {has} with room")
            }
            Refusal::BadStripe { stripe_blocks, extent_blocks } => {
                write!(f, "stripes of {stripe_blocks} blocks do not divide extents of {extent_blocks} blocks")
            }
            Refusal::NoSpace { wanted, free } => write!(f, "{wanted} extents are wanted, and {free} are free for it"),
            Refusal::Wiping { wanted, free, wiping } => {
                write!(
                    f,
                    "{wanted} extents are wanted, {free} are free for it, and {wiping} of deleted volumes are being wiped"
                )
            }
            Refusal::Unreached { lun } => write!(f, "the back end '{lun}' was not reached yet, so its size is unknown"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The reason, in sizes as people give them, for a pool of such blocks and extents.
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
                format!("{} are wanted, and {} are free for it", extents(*wanted), extents(*free))
            }
            Refusal::Wiping { wanted, free, wiping } => format!(
                "{} are wanted, {} are free for it, and {} of deleted volumes are being wiped",
                extents(*wanted),
                extents(*free),
                extents(*wiping)
            ),
            other => other.to_string(),
        }
    }

    /// What helps.
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
            Refusal::Unreached { .. } => "try again when it is reached; 'sanloom show paths' says why it is not",
        }
    }
}

/// Bytes in the largest unit of which they are a whole number, as sizes are written.
fn size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.into_iter().find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match whole {
        Some((factor, unit)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

/// Why kept volumes do not fit the pools that there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RestoreError {
    /// Two volumes have the same number or name.
    #[error("two volumes are called '{0}'")]
    Twice(Box<str>),
    /// A segment that cannot be.
    #[error("volume '{volume}': {error}")]
    Layout {
        /// Whose.
        volume: Box<str>,
        /// What is wrong.
        error: super::BadLayout,
    },
    /// An extent of another pool, or of no LUN at all.
    #[error("volume '{0}' has extents that are not of its pool")]
    Elsewhere(Box<str>),
    /// An extent that another volume has, too.
    #[error("volume '{0}' has an extent that another volume has, too")]
    Shared(Box<str>),
}
