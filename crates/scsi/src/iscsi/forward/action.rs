//! Decision about a PDU: [`Action`].

use sanloom_wire::iscsi::BHS_BYTES;

/// A connection of a host session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Conn {
    /// The connection to the host.
    Host,
    /// The connection to the back end with this number, as passed to
    /// [`Forward::connect`](super::Forward::connect).
    Back(u8),
}

/// Step in handling a PDU whose header has arrived. Data segments are consumed from the front: each
/// [`Action::Move`] and [`Action::Discard`] uses the next bytes.
///
/// The driver that sends a header appends a header digest where one was agreed. It also appends
/// padding and data digest to the data segment. A segment that passes unchanged keeps its own
/// padding and digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the header in its current, modified form. Its data segment follows with
    /// [`Action::Move`].
    SendHeader {
        /// Connection that the header leaves on.
        to: Conn,
    },
    /// Send another header. Its data segment, if it declares one, follows with [`Action::Move`].
    Send {
        /// Connection that the header leaves on.
        to: Conn,
        /// Complete basic header segment.
        header: [u8; BHS_BYTES],
    },
    /// Send the next bytes of the data segment.
    Move {
        /// Connection that the bytes leave on.
        to: Conn,
        /// Number of bytes.
        bytes: u32,
    },
    /// Drop the next bytes of the data segment.
    Discard {
        /// Number of bytes.
        bytes: u32,
    },
    /// Collect the data segment for [`Forward::on_collected`](super::Forward::on_collected). It has
    /// at most a few hundred bytes.
    Collect,
    /// Pass the PDU unchanged to the session of the host.
    ToConventional,
    /// Close a connection.
    Close {
        /// Connection to close.
        conn: Conn,
        /// Reason, for the log.
        reason: CloseReason,
    },
}

/// Reason for closing a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The back end violated the protocol.
    #[error("the target violates the protocol")]
    Protocol,
    /// The back end did not answer a ping or an abort in time.
    #[error("the target does not answer")]
    Silent,
    /// The back end failed to abort a command.
    #[error("the target refuses to abort a command")]
    Unaborted,
    /// A unit attention reports that a unit may have been replaced by another one.
    #[error("a unit of the target may have been replaced")]
    Changed,
    /// The back end requested a logout.
    #[error("the target requested a logout")]
    LogoutRequested,
}

/// Closes the connection to a back end that has violated the protocol.
pub(super) fn close_broken(back: u8, actions: &mut Vec<Action>) {
    actions.push(Action::Close { conn: Conn::Back(back), reason: CloseReason::Protocol });
}
