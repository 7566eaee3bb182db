//! Named random generators and the distributions that the simulator needs.
//!
//! Each generator belongs to one purpose and to the names of the things that use it, never to their
//! numbers in the lab file. Another stream, host or distribution, and another order in the file,
//! therefore leave all other random numbers unchanged. Logarithms and cosines come
//! from `libm`, not from `rand_distr`. The latter uses the platform's mathematics as soon as any
//! package enables `num-traits/std` (`hdrhistogram` does), and those results differ in the last bit
//! between machines.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_scsi::random::mix;

/// Generator of one purpose of one stream.
pub type StreamRng = Xoshiro256PlusPlus;

/// Purpose of a generator. Every purpose has its own sequence of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// Times of one arrival process of a stream.
    Arrival {
        /// Index of the process in its load.
        process: u32,
    },
    /// Selection of the LUN.
    Target,
    /// Sizes of requests.
    Size,
    /// Read or write.
    Direction,
    /// Locations on a LUN.
    Location,
    /// Selection of an ISL or another path through a switch.
    Route,
    /// Lost frames of a link.
    FrameLoss,
    /// Frames of a link that arrive with a bad CRC.
    CrcError,
    /// Lost R_RDYs of a link.
    LostRRdy,
    /// Timers of a node that must not be synchronised with those of other nodes.
    Jitter,
    /// Seeds of replications.
    Replication,
    /// Think times.
    ThinkTime,
    /// Service times of a storage system.
    Service,
    /// Time that a virtual machine takes to boot.
    Boot,
    /// Overwrites before the start that precondition an SSD.
    Precondition,
    /// Latent sector errors of a storage system.
    LatentErrors,
}

impl Purpose {
    /// Returns the number of the purpose. It is stable across versions, because a changed number
    /// changes every result.
    const fn code(self) -> u64 {
        match self {
            Purpose::Arrival { process } => (1 << 32) | process as u64,
            Purpose::Target => 2 << 32,
            Purpose::Size => 3 << 32,
            Purpose::Direction => 4 << 32,
            Purpose::Location => 5 << 32,
            Purpose::Route => 6 << 32,
            Purpose::FrameLoss => 7 << 32,
            Purpose::CrcError => 8 << 32,
            Purpose::LostRRdy => 9 << 32,
            Purpose::Jitter => 10 << 32,
            Purpose::Replication => 11 << 32,
            Purpose::ThinkTime => 12 << 32,
            Purpose::Service => 13 << 32,
            Purpose::Boot => 14 << 32,
            Purpose::Precondition => 15 << 32,
            Purpose::LatentErrors => 16 << 32,
        }
    }
}

/// Returns the generator for `purpose` in a run with `seed`. `names` identify the stream, link or
/// node; for a stream, they are those of its workload and its host.
pub fn stream_rng(seed: u64, purpose: Purpose, names: &[&str]) -> StreamRng {
    let state = names.iter().fold(mix(mix(seed) ^ purpose.code()), |state, name| {
        let words = name.as_bytes().chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        // The length keeps the boundary between two names.
        words.fold(mix(state ^ name.len() as u64), |state, word| mix(state ^ word))
    });
    StreamRng::seed_from_u64(state)
}

/// Returns a uniform sample in [0, 1).
pub fn uniform(rng: &mut impl Rng) -> f64 {
    rng.random::<f64>()
}

/// Returns a uniform integer in [0, `bound`), or 0 for `bound` 0. All numbers are exactly equally
/// likely (D. Lemire, "Fast random integer generation in an interval", 2019).
pub fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    let mut product = u128::from(rng.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (product as u64) < threshold {
            product = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// Returns an exponential sample with mean 1.
pub fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(1.0 - uniform(rng))
}

/// Returns a normal sample with mean 0 and standard deviation 1 (Box and Muller, 1958). The second
/// number of a pair is discarded, so each sample always uses two numbers of the generator.
pub fn standard_normal(rng: &mut impl Rng) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(rng));
    radius * libm::cos(std::f64::consts::TAU * uniform(rng))
}
