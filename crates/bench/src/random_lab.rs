//! Random labs. Everything in a lab follows from a 64-bit seed, and a trial checks the invariants.
//!
//! [`generate`] draws a lab. [`Trial::run`] injects faults, checks the invariants meanwhile, ends
//! the faults, and then requires that everything completes. The tests run a few hundred seeds,
//! `cargo xtask soak` as many as time allows.
//!
//! Each lab uses only some of the features, with very uneven weights. Labs with a bit of everything
//! would never reach the states in which one feature dominates.

mod additions;
mod demand;
mod dice;
mod faults;
mod nodes;
mod reach;
mod shrink;
mod switches;
mod traffic;
mod trial;
mod verdict;

pub use demand::{expected_paths, first_unrest};
pub use dice::Dice;
pub use reach::may_talk;
pub use shrink::{Candidate, reduce, shrink};
pub use trial::{Outcome, Violation};
pub use verdict::{announce_search, caught, command, judge, judge_seed};

use nodes::Plan;
use sanloom_fc::config::{Picos, Timers, ZoneDefault, Zoning};
use sanloom_fc::san::{Lab, Run};
use sanloom_fc::zoning::ZoneDatabase;
use switches::Fabrics;

/// A lab with the time at which it heals.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Seed of the lab.
    pub seed: u64,
    /// The lab; it passes `Lab::validate`.
    pub lab: Lab,
    /// End of all faults, counted from the start of the workloads. Workloads may continue for some
    /// time.
    pub heal_at: Picos,
}

/// Draws a lab of any kind.
pub fn generate(seed: u64) -> Trial {
    let mut trial = generate_plain(seed);
    additions::draw(seed, &mut trial.lab);
    trial
}

/// Draws a lab without virtual machines, changes of zones and differing cost rules.
pub fn generate_plain(seed: u64) -> Trial {
    draw(seed, false)
}

/// Draws a lab of two unconnected fabrics. Each host and each storage system has a port in both,
/// and no zone restricts access.
pub fn generate_dual(seed: u64) -> Trial {
    draw(seed, true)
}

fn draw(seed: u64, dual: bool) -> Trial {
    let mut dice = Dice::new(seed);
    let duration = Picos::from_us(dice.spread(10_000, 240_000));
    let stop = Picos(dice.range(duration.0 / 2, duration.0));
    let mut lab = Lab {
        name: format!("random-{seed}"),
        description: format!("drawn from the seed {seed}"),
        run: Run {
            duration,
            warmup: Picos(if dice.chance(1, 2) { 0 } else { dice.range(0, stop.0 - 1) }),
            seed: dice.bits(),
            sample_interval: Picos(duration.0 / 16),
            stop_issuing: Some(stop),
            until: None,
        },
        timers: timers(&mut dice),
        switches: Vec::new(),
        hosts: Vec::new(),
        storage: Vec::new(),
        loops: Vec::new(),
        links: Vec::new(),
        ethernet_switches: Vec::new(),
        ethernet_links: Vec::new(),
        infiniband: Default::default(),
        zoning: Zoning { zones: Vec::new(), default: ZoneDefault::OpenWithoutZones },
        zone_database: ZoneDatabase::default(),
        zone_policy: Default::default(),
        zone_fabrics: Default::default(),
        zone_priorities: Default::default(),
        workloads: Vec::new(),
        faults: Vec::new(),
        changes: Vec::new(),
        expectations: Vec::new(),
        live: Default::default(),
    };
    let fabrics = Fabrics::draw(&mut dice, &mut lab, dual);
    Plan { dual }.draw(&mut dice, &mut lab, &fabrics);
    lab.zone_database = ZoneDatabase::of_zoning(&lab.zoning, additions::CONFIG);
    traffic::draw(&mut dice, &mut lab);
    nodes::allow_for_distance(&mut lab);
    faults::draw(&mut dice, &mut lab);
    let heal_at = Picos(dice.range(duration.0 / 2, duration.0)).max(lab.run.warmup);
    credit_recovery(&mut dice, &mut lab);
    Trial { seed, lab, heal_at }
}

/// Draws credit recovery for a third of the labs: some ends of links support it.
fn credit_recovery(dice: &mut Dice, lab: &mut Lab) {
    if !dice.chance(1, 3) {
        return;
    }
    for end in lab.links.iter_mut().flat_map(|link| &mut link.ends) {
        end.bb_sc_n = if dice.chance(1, 4) { 0 } else { dice.range(1, 6) as u8 };
    }
}

/// Draws timers that are short enough for recovery within a short run. The order required by the
/// standard is kept: the hold time below E_D_TOV, and R_A_TOV above twice E_D_TOV.
fn timers(dice: &mut Dice) -> Timers {
    let e_d_tov_us = if dice.chance(3, 4) { dice.spread(5_000, 40_000) } else { dice.spread(40_000, 2_000_000) };
    let hold_us = dice.range(e_d_tov_us / 8, e_d_tov_us * 3 / 4);
    Timers {
        e_d_tov: Picos::from_us(e_d_tov_us),
        r_a_tov: Picos::from_us(e_d_tov_us * 2 + dice.spread(1_000, 2 * e_d_tov_us)),
        hold_time: Picos::from_us(hold_us),
        f_s_tov: Picos::from_us(4 * e_d_tov_us),
        hello: Picos::SECOND,
        dead: Picos::from_secs(4),
        rscn_delay: Picos::from_us(if dice.chance(1, 4) { 0 } else { dice.spread(10, 5_000) }),
    }
}
