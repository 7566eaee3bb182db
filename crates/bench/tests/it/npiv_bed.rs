//! The test bed of the NPIV paper: exact comparison counts, and the results derived from them.

use sanloom_bench::npiv_bed::{Bed, PER_PORT, PER_SWITCH, Sequence};
use sanloom_fc::config::{Picos, Processor, ProcessorPriority, ProcessorSharing};
use sanloom_fc::switch::{HardZoning, NameLookup};

fn bed(hard_zoning: HardZoning, cards: u16) -> Bed {
    let processor = Processor {
        sharing: ProcessorSharing::PerPort,
        priority: ProcessorPriority::FabricFirst,
        per_message: Picos::ZERO,
        per_command: Picos::from_us(100),
        per_login: Picos::ZERO,
        per_name_search: Picos::ZERO,
        per_comparison: Picos::ZERO,
    };
    Bed {
        hard_zoning,
        name_lookup: NameLookup::Linear,
        processor,
        cards,
        per_port: PER_PORT,
        per_switch: PER_SWITCH,
        repetition: 0,
        in_step: false,
    }
}

/// Returns the comparisons of one virtual port, without and with those of the storage.
fn count(sequences: &[Sequence], card: u16, number: u16) -> (u64, u64) {
    let found = sequences.iter().find(|sequence| (sequence.card, sequence.number) == (card, number)).unwrap();
    (found.comparisons, found.storage_comparisons)
}

#[test]
fn the_standard_algorithm_compares_as_often_as_the_paper_says() {
    let sequences = bed(HardZoning::Standard, 3).run();
    assert_eq!(sequences.len(), 765);
    assert!(sequences.iter().all(|sequence| sequence.complete && sequence.unanswered == 0));
    for (card, number, comparisons) in [
        (1, 1, 0),
        (1, 255, 0),
        (2, 1, 512),
        (2, 2, 768),
        (2, 255, 65_536),
        (3, 1, 1_024),
        (3, 2, 1_536),
        (3, 255, 131_072),
    ] {
        assert_eq!(count(&sequences, card, number), (comparisons, u64::from(number) + 1), "{card} {number}");
    }
}

#[test]
fn the_modified_algorithm_compares_the_new_port_alone() {
    let sequences = bed(HardZoning::Modified, 3).run();
    for (card, comparisons) in [(1, 0), (2, 256), (3, 512)] {
        for number in [1, 100, 255] {
            assert_eq!(count(&sequences, card, number), (comparisons, 1), "{card} {number}");
        }
    }
}

#[test]
fn zone_mates_are_found_without_comparisons() {
    let sequences = bed(HardZoning::ZoneMates, 3).run();
    assert!(sequences.iter().all(|sequence| sequence.comparisons == 0 && sequence.complete));
}

#[test]
fn in_step_the_comparisons_grow_with_the_square() {
    let sequences = Bed { in_step: true, ..bed(HardZoning::Standard, 2) }.run();
    for number in [1, 2, 100, 255] {
        let k = u64::from(number);
        assert_eq!(count(&sequences, 1, number).0, (k + 1) * k, "the first is served before the other has its address");
        assert_eq!(count(&sequences, 2, number).0, (k + 1) * (k + 1));
    }
}

#[test]
fn every_sequence_has_the_eight_commands() {
    let sequences = Bed { per_port: 3, ..bed(HardZoning::Modified, 2) }.run();
    for sequence in &sequences {
        let names: Vec<&str> = sequence.commands.iter().map(|record| record.command.as_str()).collect();
        assert_eq!(names, ["FDISC", "SCR", "PLOGI", "LIRR", "LOGO", "PLOGI", "RFT_ID", "LOGO"]);
        assert!(sequence.commands.iter().all(|record| record.accepted && record.latency_ps >= 100_000_000));
    }
}

#[test]
fn a_switch_that_is_too_slow_never_gets_done() {
    let slow = Processor { per_comparison: Picos::from_ms(30), ..bed(HardZoning::Standard, 2).processor };
    let sequences = Bed { processor: slow, per_port: 20, ..bed(HardZoning::Standard, 2) }.run();
    let last = sequences.last().unwrap();
    // Port 2 needs (k + 1) * 21 comparisons of 30 ms each; E_D_TOV is 2 s.
    assert_eq!((last.card, last.number, last.complete), (2, 3, false));
    assert!(last.unanswered >= 3, "{}", last.unanswered);
}

#[test]
fn the_switch_of_the_document_accepts_a_thousand_virtual_ports() {
    let sequences = bed(HardZoning::ZoneMates, 5).run();
    let last = sequences.last().unwrap();
    assert_eq!((last.card, last.number, last.complete), (4, 236, false), "255 + 255 + 255 + 235 = 1000");
    assert!(last.is_rejected());
    assert!(sequences[..1000].iter().all(|sequence| sequence.complete && !sequence.is_rejected()));
}

#[test]
fn repetitions_differ_only_where_two_cards_meet() {
    let run = |bed: Bed| bed.run().iter().map(|sequence| sequence.fdisc_ps()).collect::<Vec<_>>();
    let processor = Processor { per_comparison: Picos::from_us(9), ..bed(HardZoning::Standard, 2).processor };
    let small = Bed { processor, per_port: 12, ..bed(HardZoning::Standard, 2) };
    let [alone, alone_again] = [1, 2].map(|repetition| run(Bed { repetition, ..small }));
    assert_eq!(alone, alone_again, "one card after the other");
    let in_step = Bed { in_step: true, ..small };
    let [first, second] = [1, 2].map(|repetition| run(Bed { repetition, ..in_step }));
    assert_ne!(first, second, "either card may be first");
    assert_eq!(first, run(Bed { repetition: 1, ..in_step }), "a repetition can be repeated");
}
