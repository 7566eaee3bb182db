//! The runs on the test bed of document 000, and the constants of its switch.

use sanloom_core::config::{Picos, Processor, ProcessorSharing};
use sanloom_core::switch::{HardZoning, NameLookup};
use sanloom_sim::npiv_bed::{Bed, PER_PORT, Sequence};

/// Any command, in µs: Figure 8 shows a few milliseconds; its values are not in the text. Our estimate.
const PER_COMMAND_US: u64 = 1_000;
/// Each entry of the name server that an FDISC looks at, in ns: 5 ms for 255 entries.
const PER_NAME_SEARCH_NS: u64 = 19_700;
/// Each comparison, in ns: 600 ms for 65,536 and 1,300 ms for 131,072 give 9.16 and 9.92 µs, the search taken off 9.0 and
/// 9.8; this one misses both by less than 5 %.
pub const PER_COMPARISON_NS: u64 = 9_400;
/// The part of the new firmware's 50 ms that neither 512 comparisons nor the search explain, in ms.
pub const UNEXPLAINED_MS: u64 = 30;
/// Cards of the run that goes on where the paper stops. It ends by itself, at the first sequence that never gets done.
const MORE_CARDS: u16 = 8;

/// What was measured.
pub struct Runs {
    /// The standard algorithm, one card after the other, to the first sequence that does not get done.
    pub standard: Vec<Sequence>,
    /// The standard algorithm, two cards in step.
    pub in_step: Vec<Sequence>,
    /// The paper's modification, three cards.
    pub modified: Vec<Sequence>,
    /// Ours, three cards.
    pub ours: Vec<Sequence>,
}

/// The beds, in the order of the fields of [`Runs`].
pub fn beds() -> [Bed; 4] {
    let bed = |hard_zoning, cards, unexplained_ms| Bed {
        hard_zoning,
        name_lookup: NameLookup::Linear,
        processor: Processor {
            sharing: ProcessorSharing::PerPort,
            per_command: Picos::from_us(PER_COMMAND_US),
            per_login: Picos::from_ms(unexplained_ms),
            per_name_search: Picos::from_ns(PER_NAME_SEARCH_NS),
            per_comparison: Picos::from_ns(PER_COMPARISON_NS),
        },
        cards,
        per_port: PER_PORT,
        in_step: false,
    };
    let ours = Bed { name_lookup: NameLookup::Indexed, ..bed(HardZoning::ZoneMates, 3, UNEXPLAINED_MS) };
    [
        bed(HardZoning::Standard, MORE_CARDS, 0),
        Bed { in_step: true, ..bed(HardZoning::Standard, 2, 0) },
        bed(HardZoning::Modified, 3, UNEXPLAINED_MS),
        ours,
    ]
}

/// One virtual port of a run.
pub fn find(sequences: &[Sequence], card: u16, number: u16) -> Option<&Sequence> {
    sequences.iter().find(|sequence| (sequence.card, sequence.number) == (card, number))
}

/// Switch latency of an FDISC in ms.
pub fn fdisc_ms(sequence: &Sequence) -> Option<f64> {
    sequence.fdisc_ps().map(|ps| ps as f64 / 1e9)
}

/// The FDISC latencies of a card, by virtual port.
pub fn curve(sequences: &[Sequence], card: u16) -> Vec<(f64, f64)> {
    let of_card = sequences.iter().filter(|sequence| sequence.card == card);
    of_card.filter_map(|sequence| Some((f64::from(sequence.number), fdisc_ms(sequence)?))).collect()
}
