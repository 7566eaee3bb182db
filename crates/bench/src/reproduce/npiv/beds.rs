//! Runs on the test bed of the NPIV paper, and the constants of its switch.

use crate::npiv_bed::{Bed, PER_PORT, PER_SWITCH, Sequence};
use sanloom_fc::config::{Picos, Processor, ProcessorPriority, ProcessorSharing};
use sanloom_fc::switch::{HardZoning, NameLookup};

/// Any command, in µs: Figure 8 shows a few milliseconds, and the text does not give the values.
/// Our estimate.
const PER_COMMAND_US: u64 = 1_000;
/// Each entry of the name server that an FDISC searches, in ns: 5 ms for 255 entries, as the
/// document explains the growth at port 1.
const PER_NAME_SEARCH_NS: u64 = 19_700;
/// Each comparison, in ns: 600 ms for 65,536 and 1,300 ms for 131,072 give 9.16 and 9.92 µs,
/// without the search 9.0 and 9.8. This constant misses both by less than 5 %.
pub const PER_COMPARISON_NS: u64 = 9_400;
/// Part of the new firmware's 50 ms that neither 512 comparisons nor the search explain, in ms.
pub const UNEXPLAINED_MS: u64 = 30;
/// Cards of the run beyond the limits of the document's switch. The run ends at the first sequence
/// that does not complete.
const MORE_CARDS: u16 = 8;
/// Repetitions of each measurement in the document, and of ours with cards in step.
pub const REPETITIONS: u64 = 10;
/// Repetitions with one card after the other. Two are enough to show that repetitions do not
/// differ, because nothing else occupies the switch.
pub const ALONE: u64 = 2;

/// Sequences of all runs.
pub struct Runs {
    /// The standard algorithm, three cards one after the other: a run for each repetition.
    pub standard: Vec<Vec<Sequence>>,
    /// The standard algorithm, two cards in step: a run for each repetition.
    pub in_step: Vec<Vec<Sequence>>,
    /// The paper's modification, three cards: a run for each repetition.
    pub modified: Vec<Vec<Sequence>>,
    /// The modification with the constants of the old firmware, three cards.
    pub modified_alone: Vec<Sequence>,
    /// Our algorithm, three cards.
    pub ours: Vec<Sequence>,
    /// The standard algorithm, as many cards as the switch of the document accepts.
    pub full: Vec<Sequence>,
    /// The standard algorithm without the limit of 1,000, to the first sequence that does not
    /// complete.
    pub beyond: Vec<Sequence>,
}

/// Returns the beds in the order that [`Runs::of`] expects.
pub fn beds() -> Vec<Bed> {
    let bed = |hard_zoning, cards, unexplained_ms| Bed {
        hard_zoning,
        name_lookup: NameLookup::Linear,
        processor: Processor {
            sharing: ProcessorSharing::PerPort,
            priority: ProcessorPriority::FabricFirst,
            per_message: Picos::ZERO,
            per_command: Picos::from_us(PER_COMMAND_US),
            per_login: Picos::from_ms(unexplained_ms),
            per_name_search: Picos::from_ns(PER_NAME_SEARCH_NS),
            per_comparison: Picos::from_ns(PER_COMPARISON_NS),
        },
        cards,
        per_port: PER_PORT,
        per_switch: PER_SWITCH,
        repetition: 0,
        in_step: false,
    };
    let single = [
        // The longest run first, because runs share the processors of this machine.
        Bed { per_switch: u32::MAX, ..bed(HardZoning::Standard, MORE_CARDS, 0) },
        bed(HardZoning::Standard, 4, 0),
        Bed { name_lookup: NameLookup::Indexed, ..bed(HardZoning::ZoneMates, 3, UNEXPLAINED_MS) },
        bed(HardZoning::Modified, 3, 0),
    ];
    let repeated = |bed: Bed, count| (1..=count).map(move |repetition| Bed { repetition, ..bed });
    let standard = repeated(bed(HardZoning::Standard, 3, 0), ALONE);
    let in_step = repeated(Bed { in_step: true, ..bed(HardZoning::Standard, 2, 0) }, REPETITIONS);
    let modified = repeated(bed(HardZoning::Modified, 3, UNEXPLAINED_MS), ALONE);
    single.into_iter().chain(standard).chain(in_step).chain(modified).collect()
}

impl Runs {
    /// Assigns the runs of [`beds`]; `None` if there are fewer.
    pub fn of(runs: Vec<Vec<Sequence>>) -> Option<Runs> {
        let mut runs = runs.into_iter();
        let [beyond, full, ours, modified_alone] = [runs.next()?, runs.next()?, runs.next()?, runs.next()?];
        let mut repetitions = |count: u64| runs.by_ref().take(count as usize).collect::<Vec<_>>();
        let [standard, in_step, modified] = [ALONE, REPETITIONS, ALONE].map(&mut repetitions);
        (!modified.is_empty()).then_some(Runs { standard, in_step, modified, modified_alone, ours, full, beyond })
    }
}

/// Finds one virtual port of a run.
pub fn find(sequences: &[Sequence], card: u16, number: u16) -> Option<&Sequence> {
    sequences.iter().find(|sequence| (sequence.card, sequence.number) == (card, number))
}

/// Returns the switch latency of an FDISC in ms.
pub fn fdisc_ms(sequence: &Sequence) -> Option<f64> {
    sequence.fdisc_ps().map(|ps| ps as f64 / 1e9)
}

/// Returns the FDISC latencies of a card, by virtual port.
pub fn curve(sequences: &[Sequence], card: u16) -> Vec<(f64, f64)> {
    let of_card = sequences.iter().filter(|sequence| sequence.card == card);
    of_card.filter_map(|sequence| Some((f64::from(sequence.number), fdisc_ms(sequence)?))).collect()
}
