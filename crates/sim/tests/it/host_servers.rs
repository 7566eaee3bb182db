//! Processor, bus, interrupts and the limit on frames in flight.

use proptest::prelude::*;
use sanloom_fc::config::{self, Duplex, Interrupt, Picos};
use sanloom_sim::host::{Bus, Cpu, Direction, FrameWindow, Interrupts, RaisedInterrupt, Work};

const PCI: config::Bus = config::Bus { bits: 64, clock_hz: 66_000_000, shared_by: 2, duplex: Duplex::Half };

const COALESCE: Interrupt = Interrupt { cost: Picos(1_000), max_frames: 3, max_wait: Picos(50_000), min_wait: None };

#[test]
fn eight_kilobytes_take_15_5_microseconds_on_64_bit_66_mhz_pci() {
    let mut bus = Bus::new(&PCI);
    assert_eq!(bus.occupy(0, Direction::Receive, 8192), 15_515_151);
    let mut whole = Bus::new(&PCI);
    let mut last = 0;
    for _ in 0..4 {
        last = whole.occupy(0, Direction::Receive, 2048);
    }
    assert_eq!(last, 15_515_151, "four frames take what one transfer takes");
}

#[test]
fn a_bus_moves_one_transfer_at_a_time() {
    let mut bus = Bus::new(&PCI);
    let first = bus.occupy(1_000_000, Direction::Receive, 2048);
    assert_eq!(first, 1_000_000 + 3_878_787);
    assert_eq!(bus.occupy(2_000_000, Direction::Receive, 2048), 1_000_000 + 7_757_575);
    assert_eq!(bus.occupy(100_000_000, Direction::Receive, 1), 100_000_000 + 15_151);
    let busy = (7_757_575 + 15_151) as f64;
    assert!((bus.utilisation(200_000_000) - busy / 2e8).abs() < 1e-12);
}

#[test]
fn a_bus_of_full_duplex_moves_both_directions_at_once_and_a_parallel_bus_one() {
    for (duplex, second_ps, share) in [(Duplex::Half, 7_757_575, 1.0), (Duplex::Full, 3_878_787, 0.5)] {
        let mut bus = Bus::new(&config::Bus { duplex, ..PCI });
        assert_eq!(bus.occupy(0, Direction::Receive, 2048), 3_878_787);
        assert_eq!(bus.occupy(0, Direction::Send, 2048), second_ps);
        assert!((bus.utilisation(7_757_575) - share).abs() < 1e-6, "the busier direction counts");
    }
}

#[test]
fn hbas_share_buses_in_their_order() {
    let buses: Vec<u16> = (0..5).map(|hba| Bus::index_of(&PCI, hba)).collect();
    assert_eq!(buses, [0, 0, 1, 1, 2]);
}

#[test]
fn a_processor_runs_work_in_order_and_reports_its_utilisation() {
    let mut cpu = Cpu::default();
    assert_eq!(cpu.run(100, 0, Work::Request, 50), 150);
    assert_eq!(cpu.run(120, 0, Work::Interrupt, 30), 180);
    assert_eq!(cpu.run(300, 0, Work::Request, 10), 310);
    assert_eq!(cpu.given_ps(Work::Request), 60);
    assert_eq!(cpu.given_ps(Work::Interrupt), 30);
    assert_eq!(cpu.utilisation(400), 90.0 / 400.0);
}

#[test]
fn unfinished_work_counts_as_busy_only_until_now() {
    let mut cpu = Cpu::default();
    cpu.run(0, 0, Work::Request, 100);
    assert_eq!(cpu.utilisation(50), 1.0);
    cpu.restart(50);
    assert_eq!(cpu.utilisation(150), 0.5, "50 of the 100 after the restart");
}

#[test]
fn enough_completions_raise_an_interrupt() {
    let (mut interrupts, mut cpu) = (Interrupts::new(Some(COALESCE), 0), Cpu::default());
    assert_eq!(interrupts.complete(10, 0, &mut cpu), None);
    assert_eq!(interrupts.complete(20, 0, &mut cpu), None);
    let raised = interrupts.complete(30, 0, &mut cpu);
    let expected = RaisedInterrupt { completions: 3, handled_ps: 1_030 };
    assert_eq!(raised, Some(expected));
    assert_eq!(interrupts.poll_timeout(), None);
    assert_eq!(interrupts.raised(), 1);
    assert_eq!(cpu.given_ps(Work::Interrupt), 1_000);
}

#[test]
fn the_first_completion_waits_at_most_max_wait() {
    let (mut interrupts, mut cpu) = (Interrupts::new(Some(COALESCE), 0), Cpu::default());
    assert_eq!(interrupts.complete(10, 0, &mut cpu), None);
    assert_eq!(interrupts.complete(40_000, 0, &mut cpu), None);
    assert_eq!(interrupts.poll_timeout(), Some(50_010));
    assert_eq!(interrupts.timeout(50_009, &mut cpu), None);
    let expected = RaisedInterrupt { completions: 2, handled_ps: 51_010 };
    assert_eq!(interrupts.timeout(50_010, &mut cpu), Some(expected));
    assert_eq!(interrupts.timeout(60_000, &mut cpu), None);
}

#[test]
fn a_busy_processor_delays_the_handling_of_completions() {
    let (mut interrupts, mut cpu) = (Interrupts::new(Some(COALESCE), 0), Cpu::default());
    cpu.run(0, 0, Work::Request, 10_000);
    let raised = (0..3).find_map(|_| interrupts.complete(100, 0, &mut cpu));
    assert_eq!(raised.map(|interrupt| interrupt.handled_ps), Some(11_000));
}

#[test]
fn without_coalescing_each_completion_is_handled_at_once_and_costs_no_time() {
    let (mut interrupts, mut cpu) = (Interrupts::new(None, 0), Cpu::default());
    let expected = RaisedInterrupt { completions: 1, handled_ps: 77 };
    assert_eq!(interrupts.complete(77, 0, &mut cpu), Some(expected));
    assert_eq!(cpu.given_ps(Work::Interrupt), 0);
    assert_eq!(interrupts.poll_timeout(), None);
}

#[test]
fn thirty_two_frames_are_two_reads_of_32_kib_or_sixteen_of_4_kib() {
    for (bytes, commands) in [(32_768, 2), (4096, 16), (2048, 32), (2049, 16), (1, 32)] {
        let mut window = FrameWindow::new(Some(32), 2048);
        let mut started = 0;
        while window.fits(bytes) {
            window.reserve(bytes);
            started += 1;
        }
        assert_eq!(started, commands, "{bytes}");
        window.release(bytes);
        assert!(window.fits(bytes));
    }
}

#[test]
fn a_command_larger_than_the_limit_starts_alone() {
    let mut window = FrameWindow::new(Some(4), 2048);
    assert!(window.fits(1 << 20));
    window.reserve(2048);
    assert!(!window.fits(1 << 20));
    window.release(2048);
    window.reserve(1 << 20);
    assert!(!window.fits(1));
    window.release(1 << 20);
    assert_eq!(window.in_flight(), 0);
}

proptest! {
    /// The host sees every completion exactly once and in order. It sees none before it happened,
    /// and none later than the limit for an idle processor.
    #[test]
    fn each_completion_is_handled_once_and_in_time(
        gaps in prop::collection::vec(0..30_000u64, 1..200),
        max_frames in 1..6u32,
        max_wait in 0..60_000u64,
    ) {
        let config = Interrupt { cost: Picos(100), max_frames, max_wait: Picos(max_wait), min_wait: None };
        let (mut interrupts, mut cpu) = (Interrupts::new(Some(config), 0), Cpu::default());
        let mut times = Vec::new();
        let mut raised = Vec::new();
        let mut now = 0;
        for gap in gaps {
            now += gap;
            while let Some(at) = interrupts.poll_timeout().filter(|&at| at <= now) {
                raised.extend(interrupts.timeout(at, &mut cpu));
            }
            times.push(now);
            raised.extend(interrupts.complete(now, 0, &mut cpu));
        }
        while let Some(at) = interrupts.poll_timeout() {
            raised.extend(interrupts.timeout(at, &mut cpu));
        }
        let all: u32 = raised.iter().map(|interrupt| interrupt.completions).sum();
        prop_assert_eq!(all as usize, times.len());
        prop_assert_eq!(interrupts.raised() as usize, raised.len());
        let mut next = 0;
        let mut processor_free = 0;
        for interrupt in raised {
            let batch = &times[next..next + interrupt.completions as usize];
            next += batch.len();
            prop_assert!(batch.len() <= max_frames as usize);
            let last = batch[batch.len() - 1];
            let latest = (batch[0] + max_wait).max(processor_free) + 100;
            prop_assert!(interrupt.handled_ps >= last + 100 && interrupt.handled_ps <= latest);
            processor_free = interrupt.handled_ps;
        }
    }
}
