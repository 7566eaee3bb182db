//! The target's side of iSCSI: logins, sessions, and the tasks of a session (RFC 7143).
//!
//! ```text
//!   accepted -> Login -- full feature phase --> Session -- logout, nexus lost --> closed
//!                 |  security, operational        |  commands, task management, text, NOP
//!                 +-- refused --> closed          +-- discovery: text and logout only
//! ```
//!
//! # How a driver uses it
//!
//! 1. One [`Node`] for all targets behind a set of portals, one [`Directory`] of its sessions.
//! 2. For each connection a [`Framer`](super::Framer) and a [`Login`]. Login PDUs have text, which the driver collects and
//!    hands over whole: [`Login::handle`]. At [`login::Output::Done`] it makes a [`Session`], with the
//!    [`Device`](crate::scsi::Device) of the target that was named.
//! 3. For each header: [`Input::Header`], and if the header has a data segment, [`Session::place`] says where the bytes go:
//!    ask again for each piece, since a task may end while its data are under way. Then [`Input::Segment`] or
//!    [`Input::Text`].
//! 4. [`Output::Io`] is done in the buffer of its tag, as for FCP. [`Output::Data`] sends a piece of that buffer;
//!    [`Output::Release`] says that the buffer is free once everything before has left. [`Output::Cancel`]: nobody wants it.
//! 5. The device talks to all sessions of a port: its notices go to the session of their nexus, and what
//!    [`Output::Ends`] says to every other session of the port; [`Input::OthersEnded`] says when they are done with that.

mod command;
mod config;
mod control;
mod data;
mod directory;
mod discovery;
mod forwarded;
pub mod login;
mod management;
mod security;
mod session;
mod task;

pub use config::{Access, Authentication, Node, Portal, Redirect, Target};
pub use directory::{ConnectionId, Directory, Replaced, SessionKey};
pub(in crate::iscsi) use forwarded::DataOutcome;
pub use login::{Established, Login};
pub use session::{CloseReason, Counters, Input, Limits, Output, Place, Session};
