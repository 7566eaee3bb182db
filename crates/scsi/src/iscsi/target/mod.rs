//! Target's side of iSCSI: logins, sessions, and the tasks of a session (RFC 7143).
//!
//! ```text
//!   accepted -> Login -- full feature phase --> Session -- logout, nexus lost --> closed
//!                 |  security, operational        |  commands, task management, text, NOP
//!                 +-- refused --> closed          +-- discovery: text and logout only
//! ```
//!
//! # How a driver uses it
//!
//! 1. Create one [`Node`] for all targets behind a set of portals, and one [`Directory`] of its
//!    sessions.
//! 2. For each connection, create a [`Framer`](super::Framer) and a [`Login`]. Login PDUs carry
//!    text. The driver collects the whole text and passes it to [`Login::handle`]. At
//!    [`login::Output::Done`] the driver creates a [`Session`] with the
//!    [`Device`](crate::scsi::Device) of the requested target.
//! 3. Pass each header as [`Input::Header`]. If the header has a data segment,
//!    [`Session::destination`] returns its destination. Call it again for each piece, because a
//!    task may end while its data arrive. Then pass [`Input::Segment`] or [`Input::Text`].
//! 4. Carry out [`Output::Io`] in the buffer of its tag, as for FCP. [`Output::Data`] sends a piece
//!    of that buffer. [`Output::Release`] frees the buffer once all earlier output has left.
//!    [`Output::Cancel`] frees it because its task has ended early.
//! 5. The device serves all sessions of a port. Pass each of its notices to the session of its
//!    nexus, and each [`Output::Ends`] to every other session of the port. When those sessions have
//!    ended the tasks, pass [`Input::OthersEnded`].

mod buffers;
mod config;
mod control;
mod data;
mod directory;
mod discovery;
mod engine;
mod event;
mod forwarded;
mod keepalive;
pub mod login;
mod management;
mod outbound;
mod response;
mod security;
mod session;
mod streaming;
mod task;
mod window;

pub use config::{Access, Authentication, Node, Portal, Redirect, Target};
pub use directory::{ConnectionId, Directory, Replaced, SessionKey};
pub use event::{CloseReason, Counters, Destination, Input, Limits, Output};
pub(in crate::iscsi) use forwarded::DataOutcome;
pub use login::{Established, Login};
pub use session::Session;
