//! Interfaces through which programs and browsers reach a fabric.
//!
//! Each surface translates its protocol to the requests of [`sanloom_api::control`] and shows the
//! answers; no surface has a model of its own. A fabric is live or simulated; a surface cannot tell
//! which.

#![warn(missing_docs)]

pub mod fos;
pub mod nxos;
pub mod server;
pub mod snmp;
pub mod ssh;
pub mod web;

use sanloom_api::control::{Answer, Request};
use sanloom_api::graph::Graph;
use std::io::Write;
use std::sync::Arc;

/// A fabric that answers the requests of the surfaces.
pub trait Fabric: Send {
    /// Answers one request. Waits at most a few seconds for the fabric.
    ///
    /// # Errors
    ///
    /// Returns [`Busy`] if the fabric does not take the request, or does not answer in time.
    fn ask(&mut self, request: Request) -> Result<Answer, Busy>;

    /// Writes the frames of a port or link into a sink, as a pcapng file. Each call of `write`
    /// passes one whole block of the file. An error of the sink ends the capture.
    ///
    /// # Errors
    ///
    /// As [`ask`](Fabric::ask).
    fn capture(&mut self, port: &str, sink: Box<dyn Write + Send>) -> Result<Answer, Busy> {
        let _ = sink;
        Ok(Answer::failed(format!("`{port}` cannot be captured: this fabric has no captures")))
    }

    /// The drawing of the fabric.
    ///
    /// # Errors
    ///
    /// As [`ask`](Fabric::ask).
    fn graph(&mut self) -> Result<Arc<Graph>, Busy> {
        Ok(Arc::default())
    }
}

/// The fabric did not answer in time. The client may try again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the fabric is busy; try again")
    }
}

impl std::error::Error for Busy {}
