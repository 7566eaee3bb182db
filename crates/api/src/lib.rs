//! Results and views as versioned values: no I/O, no clock.
//!
//! [`results`] is what a simulation measured, and `docs/results.md` describes the same values as JSON. [`view`] is what a
//! fabric looks like at one moment. [`fcoe`] is what the FCoE tools see of a host. [`zoning`] answers questions about
//! zones, [`zone_database`] is what is asked about. [`control`] is how a running instance is spoken to, and
//! [`inject`] what it can be asked to do to frames.

pub mod apply;
pub mod control;
pub mod fcoe;
pub mod inject;
pub mod results;
pub mod view;
pub mod volume;
pub mod zone_database;
pub mod zoning;
