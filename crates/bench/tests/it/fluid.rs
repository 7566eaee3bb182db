//! The simulator against the fluid model: random labs in steady state, flow by flow.
//!
//! ```text
//! cargo test -p sanloom-bench --test it fluid                          500 labs
//! SANLOOM_SEED=17 cargo test -p sanloom-bench --test it fluid          one lab
//! SANLOOM_FIRST_SEED=5000 SANLOOM_FLUID_LABS=400 cargo test …          other labs
//! ```

use sanloom_bench::fluid::{labs, report};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const LABS: u64 = 500;
const THREADS: usize = 2;

#[test]
fn random_labs_reach_the_rates_of_the_fluid_model() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let one = number("SANLOOM_SEED");
    let first = one.or(number("SANLOOM_FIRST_SEED")).unwrap_or(0);
    let many = one.map_or(number("SANLOOM_FLUID_LABS").unwrap_or(LABS), |_| 1);
    let (next, totals) = (AtomicU64::new(first), Mutex::new(([0, 0], Vec::new())));
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + many {
                    return;
                }
                let outcome = report(&labs::draw(seed));
                let mut totals = totals.lock().expect("no panic holds it");
                match outcome {
                    Ok((flows, compared)) => {
                        totals.0[0] += flows;
                        totals.0[1] += compared;
                    }
                    Err(what) => totals.1.push(format!("seed {seed}: {what}")),
                }
            }
        };
        (0..THREADS).for_each(|_| drop(scope.spawn(work)));
    });
    let ([flows, compared], wrong) = totals.into_inner().expect("no panic holds it");
    println!("{many} labs: {flows} flows, {compared} compared one by one");
    assert!(wrong.is_empty(), "{} of {many} labs deviate:\n{}", wrong.len(), wrong.join("\n"));
    assert!(many < LABS || compared * 2 > flows, "only {compared} of {flows} rates are determined");
}
