//! Initiator's side of iSCSI: a login, then commands (RFC 7143).
//!
//! ```text
//!   connected -> Login -- full feature phase --> Session -- logout, broken --> a new connection
//!                  |                               ^   |
//!                  +-- refused, redirected         |   v
//!                                     SCSI commands and their results
//! ```
//!
//! # How a driver uses it
//!
//! The sequence is that of the [target's side](super::target): a [`Framer`](super::Framer), a
//! [`Login`], then a [`Session`]. Each command has a buffer with the command's number.
//! [`Output::Data`] sends a piece of that buffer, and [`Session::destination`] returns the offset
//! in it for received data. An error that only a new connection can repair ends the session
//! ([`Output::Broken`]). At error recovery level 0 every error except a command that has to be
//! aborted is of this kind.

mod command;
pub mod login;
mod recovery;
mod session;

pub use login::{Established, Login, LoginConfig, LoginError};
pub use session::{Broken, Command, Counters, Destination, Input, Outcome, Output, Session, SessionConfig};
