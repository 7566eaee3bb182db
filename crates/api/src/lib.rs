//! Results and views as versioned values: no I/O, no clock.
//!
//! [`results`] is what a simulation measured. `docs/results.md` describes the same values as JSON. [`zoning`] answers
//! questions about zones.

pub mod results;
pub mod zoning;
