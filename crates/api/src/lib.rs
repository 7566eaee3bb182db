//! Results and views as versioned values: no I/O, no clock.
//!
//! [`results`] is what a simulation measured. `docs/results.md` describes the same values as JSON.

pub mod results;
