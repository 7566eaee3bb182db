//! The initiator's side of iSCSI: a login, then commands (RFC 7143).
//!
//! ```text
//!   connected -> Login -- full feature phase --> Session -- logout, broken --> a new connection
//!                  |                               ^   |
//!                  +-- refused, sent elsewhere     |   v
//!                                     SCSI commands, and how they ended
//! ```
//!
//! # How a driver uses it
//!
//! As the [target's side](super::target): a [`Framer`](super::Framer), a [`Login`], then a [`Session`]. Data stay in a buffer that
//! belongs to the number of their command: [`Output::Data`] sends a piece of it, [`Session::place`] says where in it data go.
//! What can be cured by a new connection alone ends the session ([`Output::Broken`]): with error recovery level 0 that is everything
//! but a command that has to be aborted.

mod command;
pub mod login;
mod recovery;
mod session;

pub use login::{Established, Login, LoginConfig, LoginError};
pub use session::{Broken, Command, Counters, Input, Outcome, Output, Place, Session, SessionConfig};
