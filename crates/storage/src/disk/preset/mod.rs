//! Parameters of real disks, each with its sources.

mod measured;

pub use measured::{atlas_10k, c2247a, cheetah_9lp};
