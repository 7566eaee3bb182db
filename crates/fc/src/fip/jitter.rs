//! Random delays that keep stations from synchronising: [`up_to`].

use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Span;

/// Random delay from zero to `most`, inclusive.
pub(super) const fn up_to(most: Span, random: &mut SplitMix64) -> Span {
    Span::from_ns(random.below(most.as_ns().saturating_add(1)))
}
