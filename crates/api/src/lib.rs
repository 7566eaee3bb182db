//! Results and views as versioned values: no I/O, no clock.
//!
//! - [`results`]: measurements of a simulation; `docs/src/reference/results.md` describes the same
//!   values as JSON.
//! - [`view`]: state of a fabric at one moment.
//! - [`fcoe`]: state of a host for the FCoE tools.
//! - [`zoning`]: answers to questions about zones, and [`zone_database`]: the database that they
//!   refer to.
//! - [`control`]: requests to a running instance and its replies.
//! - [`accept`]: the type of an answer that a client prefers.
//! - [`event_log`]: the events of an instance.
//! - [`graph`]: the drawing of a lab, with positions.
//! - [`metrics`]: formats of metrics.
//! - [`json`]: reader of JSON.
//! - [`inject`]: rules that inject faults into frames.

#![warn(missing_docs)]

#[macro_use]
mod variants;

pub mod accept;
pub mod apply;
pub mod control;
pub mod event_log;
pub mod fcoe;
pub mod graph;
pub mod inject;
pub mod json;
pub mod metrics;
pub mod results;
pub mod view;
pub mod volume;
pub mod words;
pub mod zone_database;
pub mod zone_requests;
pub mod zoning;
