//! Random labs with faults: invariants hold during the faults, and all I/O completes after them.
//!
//! ```text
//! cargo test -p sanloom-bench --test it random_labs                    200 seeds
//! SANLOOM_SEED=17 cargo test -p sanloom-bench --test it random_labs    one seed; reduced if it fails
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=400 cargo test …             other seeds
//! ```

mod campaign;
mod families;
mod first_login;
mod generator;
mod requirements;
