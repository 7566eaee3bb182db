//! What becomes of a PDU: [`Action`].

use sanloom_wire::iscsi::BHS_BYTES;

/// A connection of a host session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Conn {
    /// To the host.
    Host,
    /// To a back end, by the number of it that [`Forward::back_up`](super::Forward::back_up) was told.
    Back(u8),
}

/// What is done with the PDU whose header came. Data segments are used from the front: each [`Action::Move`] and
/// [`Action::Discard`] takes the next bytes of it.
///
/// Whoever sends a header puts a header digest behind it where that was agreed, and padding and data digest behind its data segment; a
/// segment that passes whole takes those that it came with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The header, as it now stands, goes there. Its data segment follows with [`Action::Move`].
    SendHeader {
        /// Where to.
        to: Conn,
    },
    /// Another header goes there. Its data segment, if it declares one, follows with [`Action::Move`].
    Send {
        /// Where to.
        to: Conn,
        /// It.
        header: [u8; BHS_BYTES],
    },
    /// The next bytes of the data segment go there.
    Move {
        /// Where to.
        to: Conn,
        /// How many.
        bytes: u32,
    },
    /// Nobody wants the next bytes of the data segment.
    Discard {
        /// How many.
        bytes: u32,
    },
    /// The data segment is to be collected, for [`Forward::on_collected`](super::Forward::on_collected). At most a few hundred bytes.
    Collect,
    /// The PDU, as it came, is for the session of the host.
    ToConventional,
    /// Close a connection.
    Close {
        /// Which.
        conn: Conn,
        /// Why.
        reason: CloseReason,
    },
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The back end broke the protocol.
    #[error("the target does not keep to the protocol")]
    Protocol,
    /// The back end does not answer.
    #[error("the target does not answer")]
    Silent,
    /// A command was to be aborted, and the back end did not.
    #[error("the target refuses to abort a command")]
    Unaborted,
    /// A unit attention says that a unit may be another one than it was.
    #[error("a unit there is not what it was")]
    Changed,
    /// The back end asked for it.
    #[error("the target asked for a logout")]
    Asked,
}
