//! Random labs with faults: safety while they happen, and everything comes to an end when they are over.
//!
//! ```text
//! cargo test -p sanloom-sim --test random_labs                       200 seeds
//! SANLOOM_SEED=17 cargo test -p sanloom-sim --test random_labs       one of them, smaller if it fails
//! SANLOOM_FIRST_SEED=5000 SANLOOM_SEEDS=400 cargo test …             others
//! ```

mod random_labs {
    mod campaign;
    mod families;
    mod first_login;
    mod generator;
}
