//! Mean time to data loss: textbook numbers, and three views that agree.

use sanloom_storage::raid::{Level, ParityLayout};
use sanloom_storage::reliability::{
    Component, HOURS_PER_YEAR, Organisation, Reliability, ReliabilityError, loss_probability, mttdl_h,
};

fn groups(level: Level, members: u32) -> Organisation {
    Organisation::new(level, members).expect("the layout has groups")
}

fn reliability(organisation: Organisation) -> Reliability {
    Reliability {
        organisation,
        mttf_h: 200_000.0,
        mttr_h: 10.0,
        spares: 0,
        replacement_h: 0.0,
        disk_bits: 0.0,
        errors_per_bit: 0.0,
        components: Vec::new(),
    }
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found}, expected {expected}");
}

const RAID50: Level = Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: false, groups: 4 };
const RAID60: Level = Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: true, groups: 3 };

#[test]
fn the_closed_form_has_the_numbers_of_the_literature() {
    // Patterson, Gibson, Katz 1988, tables III to VI: 100 data disks of 30,000 h, one hour of
    // repair.
    near(mttdl_h(200.0, 2.0, 1, 30_000.0, 1.0), 4_500_000.0, 0.001);
    near(mttdl_h(110.0, 11.0, 1, 30_000.0, 1.0), 820_000.0, 0.005);
    near(mttdl_h(104.0, 26.0, 1, 30_000.0, 1.0), 346_000.0, 0.005);
    // Chen et al. 1994: 100 disks of 200,000 h in groups of 16, one hour of repair.
    near(mttdl_h(100.0, 16.0, 1, 200_000.0, 1.0) / HOURS_PER_YEAR, 3_042.0, 0.001);
    near(mttdl_h(100.0, 16.0, 2, 200_000.0, 1.0) / HOURS_PER_YEAR, 43e6, 0.02);
    near(mttdl_h(5.0, 5.0, 0, 200_000.0, 1.0), 40_000.0, 1e-12);
    // A rebuild that reads 10 TB at one error in 10^14 bits succeeds with 45 %.
    let one = Reliability {
        disk_bits: 8e13,
        errors_per_bit: 1e-14,
        ..reliability(Organisation { groups: 1, members: 2, tolerated: 1, sources: 1 })
    };
    near(1.0 - one.rebuild_error(), 0.449, 0.002);
    near(loss_probability(100.0 * HOURS_PER_YEAR, HOURS_PER_YEAR), 0.00995, 0.001);
}

#[test]
fn levels_become_groups_with_their_redundancy() {
    let of = |level, members| groups(level, members);
    let expected = |groups, members, tolerated, sources| Organisation { groups, members, tolerated, sources };
    assert_eq!(of(Level::RAID0, 4), expected(1, 4, 0, 0));
    assert_eq!(of(Level::raid1(3), 3), expected(1, 3, 2, 1));
    assert_eq!(of(Level::RAID10, 8), expected(4, 2, 1, 1));
    assert_eq!(of(Level::RAID4, 5), expected(1, 5, 1, 4));
    assert_eq!(of(Level::RAID5, 5), expected(1, 5, 1, 4));
    assert_eq!(of(Level::RAID6, 8), expected(1, 8, 2, 6));
    assert_eq!(of(RAID50, 20), expected(4, 5, 1, 4));
    assert_eq!(of(RAID60, 24), expected(3, 8, 2, 6));
    assert_eq!(Organisation::new(Level::RAID10, 5), Err(ReliabilityError::Layout));
    assert_eq!(Organisation::new(RAID50, 21), Err(ReliabilityError::Members));
    let far = Level::Mirror { near: 1, far: 2, is_offset: false };
    assert_eq!(Organisation::new(far, 4), Err(ReliabilityError::Layout));
}

#[test]
fn the_chain_has_the_exact_means_of_small_systems() {
    let (mttf, mttr) = (200_000.0, 10.0);
    let markov = |level, members| reliability(groups(level, members)).markov().expect("valid").hours;
    near(markov(Level::RAID0, 4), mttf / 4.0, 1e-12);
    // One tolerated failure: ((2G - 1) MTTF + ... ) as (a + b + m) / (a b), rates a, b and repair
    // m.
    for members in [3_u32, 5, 16] {
        let (a, b, m) = (f64::from(members) / mttf, f64::from(members - 1) / mttf, 1.0 / mttr);
        near(markov(Level::RAID5, members), (a + b + m) / (a * b), 1e-12);
    }
    // Two: first passage of a birth-and-death process.
    for members in [4_u32, 8, 16] {
        let rate = |lost: u32| f64::from(members - lost) / mttf;
        let (a, b, c, m) = (rate(0), rate(1), rate(2), 1.0 / mttr);
        let first = 1.0 / a;
        let second = (1.0 + m * first) / b;
        let third = (1.0 + m * second) / c;
        near(markov(Level::RAID6, members), first + second + third, 1e-12);
    }
    // RAID 0 of mirrors, by hand: states with 0, 1 or 2 broken mirrors of two.
    let (l, m) = (1.0 / mttf, 1.0 / mttr);
    // t2 (2 l + 2 m) = 1 + 2 m t1, with both mirrors rebuilt at once.
    // t1 (l + 2 l + m) = 1 + 2 l t2 + m t0, and t0 4 l = 1 + 4 l t1.
    let t2 = |t1: f64| (1.0 + 2.0 * m * t1) / (2.0 * l + 2.0 * m);
    let residual = |t1: f64| t1 * (3.0 * l + m) - 1.0 - 2.0 * l * t2(t1) - m * (1.0 / (4.0 * l) + t1);
    let (low, high) = (residual(0.0), residual(1e12));
    let t1 = -low / (high - low) * 1e12;
    near(markov(Level::RAID10, 4), 1.0 / (4.0 * l) + t1, 1e-6);
}

#[test]
fn the_chain_approaches_the_closed_form_when_repairs_are_short() {
    for (level, members) in
        [(Level::RAID5, 5), (Level::RAID6, 8), (Level::RAID10, 8), (RAID50, 20), (RAID60, 24), (Level::raid1(3), 3)]
    {
        for (bits, mttr_h) in [(0.0, 1.0), (8e12, 1.0), (0.0, 0.01)] {
            let of =
                Reliability { disk_bits: bits, errors_per_bit: 1e-15, mttr_h, ..reliability(groups(level, members)) };
            near(of.markov().expect("valid").hours, of.closed_form_h(), 0.002);
        }
    }
}

#[test]
fn more_groups_than_a_chain_can_follow_are_added_up() {
    let of = reliability(groups(Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: true, groups: 2 }, 16));
    let many = Reliability { organisation: Organisation { groups: 400, ..of.organisation }, ..of.clone() };
    let (few, many) = (of.markov().expect("valid"), many.markov().expect("valid"));
    assert!(few.is_exact && !many.is_exact, "{few:?} {many:?}");
    near(many.hours * 200.0, few.hours, 1e-3);
}

#[test]
fn latent_errors_spares_and_caches_shorten_the_time_as_they_should() {
    let base = reliability(groups(Level::RAID5, 8));
    let hours = |of: &Reliability| of.markov().expect("valid").hours;
    let plain = hours(&base);
    // Seven disks of 4 TB at one error in 10^15 bits: 20 % of the rebuilds fail.
    let latent = Reliability { disk_bits: 3.2e13, errors_per_bit: 1e-15, ..base.clone() };
    let risk = latent.rebuild_error();
    near(risk, 0.2007, 0.001);
    let second = 7.0 * base.mttr_h / base.mttf_h;
    near(hours(&latent), plain * second / (second + risk), 0.01);
    // Without a spare, the replacement adds to the repair.
    let late = Reliability { replacement_h: 40.0, ..base.clone() };
    near(hours(&late), plain / 5.0, 0.01);
    let spared = Reliability { spares: 1, ..late.clone() };
    assert!(hours(&spared) > 4.0 * hours(&late) && hours(&spared) < plain, "{} {plain}", hours(&spared));
    let two = Reliability { spares: 2, ..late };
    assert!(hours(&two) > hours(&spared) && hours(&two) < plain);
    // Mirrored caches of two controllers: MTTF^2 / (2 MTTR).
    let pair = Component { copies: 2, mttf_h: 50_000.0, mttr_h: 24.0 };
    let cached = Reliability { components: vec![pair], ..base.clone() };
    let rate = 1.0 / plain + 1.0 / (50_000.0 * 50_000.0 / 48.0);
    near(hours(&cached), 1.0 / rate, 0.003);
    let alone = Reliability { components: vec![Component { copies: 1, ..pair }], ..base };
    near(hours(&alone), 50_000.0, 0.003);
}

#[test]
fn the_simulation_agrees_with_the_chain_within_its_interval() {
    let pair = Component { copies: 2, mttf_h: 20_000.0, mttr_h: 24.0 };
    let mut held = 0;
    let mut count = 0;
    for (level, members) in [
        (Level::RAID0, 4),
        (Level::raid1(2), 2),
        (Level::raid1(3), 3),
        (Level::RAID5, 5),
        (Level::RAID6, 8),
        (Level::RAID10, 8),
        (RAID50, 20),
        (RAID60, 24),
    ] {
        let base = Reliability { mttf_h: 50_000.0, ..reliability(groups(level, members)) };
        let variants = [
            base.clone(),
            Reliability { disk_bits: 3.2e13, errors_per_bit: 1e-15, ..base.clone() },
            Reliability { spares: 1, replacement_h: 72.0, ..base.clone() },
            Reliability { mttr_h: 2_000.0, replacement_h: 500.0, ..base.clone() },
            Reliability { components: vec![pair], ..base },
        ];
        for (seed, of) in (1..).zip(variants) {
            let exact = of.markov().expect("valid");
            let estimate = of.monte_carlo(20_000, seed).expect("valid");
            println!("{level:?} {seed}: {exact:?} {estimate:?}");
            assert!(exact.is_exact && estimate.losses >= 30, "{exact:?} {estimate:?}");
            assert!(estimate.half_width_h < 0.4 * estimate.hours, "{estimate:?}");
            // Twice the interval holds practically always.
            let distance = (estimate.hours - exact.hours).abs();
            assert!(distance <= 2.0 * estimate.half_width_h, "{level:?} {seed}: {exact:?} {estimate:?}");
            held += u32::from(estimate.holds(exact.hours));
            count += 1;
        }
    }
    // 95 % of 40, less three standard deviations.
    assert!(held >= 34, "{held} of {count} intervals hold the exact value");
}

#[test]
fn the_same_seed_gives_the_same_estimate() {
    let of = reliability(groups(Level::RAID6, 8));
    let estimate = |seed| of.monte_carlo(2_000, seed).expect("valid");
    assert_eq!(estimate(5), estimate(5));
    assert_ne!(estimate(5).hours, estimate(6).hours);
}

#[test]
fn parameters_out_of_range_are_rejected_with_their_name() {
    let good = reliability(groups(Level::RAID5, 5));
    let error = |of: Reliability| of.markov().expect_err("invalid");
    assert_eq!(error(Reliability { mttf_h: 0.0, ..good.clone() }), ReliabilityError::Number("mttf_h"));
    assert_eq!(error(Reliability { mttr_h: f64::NAN, ..good.clone() }), ReliabilityError::Number("mttr_h"));
    let negative = Reliability { errors_per_bit: -1.0, ..good.clone() };
    assert_eq!(error(negative), ReliabilityError::Number("errors_per_bit"));
    let all = Organisation { tolerated: 5, ..good.organisation };
    assert_eq!(error(Reliability { organisation: all, ..good.clone() }), ReliabilityError::Members);
    assert_eq!(error(Reliability { spares: 65, ..good.clone() }), ReliabilityError::Copies);
    assert_eq!(good.monte_carlo(99, 1), Err(ReliabilityError::Trials));
}
