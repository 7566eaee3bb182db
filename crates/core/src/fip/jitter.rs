//! Random times, so that stations do not fall into step: [`up_to`].

use crate::random::SplitMix64;
use crate::time::Span;

/// Up to `most`, both ends included.
pub(super) const fn up_to(most: Span, random: &mut SplitMix64) -> Span {
    Span::from_ns(random.below(most.as_ns().saturating_add(1)))
}
