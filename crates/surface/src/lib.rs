//! Interfaces through which programs and browsers reach a fabric.
//!
//! Each surface translates its protocol to the requests of [`sanloom_api::control`] and shows the
//! answers; no surface has a model of its own. A fabric is live or simulated; a surface cannot tell
//! which.

#![warn(missing_docs)]

pub mod fos;
pub mod server;

use sanloom_api::control::{Answer, Request};

/// A fabric that answers the requests of the surfaces.
pub trait Fabric: Send {
    /// Answers one request. Waits at most a few seconds for the fabric.
    ///
    /// # Errors
    ///
    /// Returns [`Busy`] if the fabric does not take the request, or does not answer in time.
    fn ask(&mut self, request: Request) -> Result<Answer, Busy>;
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
