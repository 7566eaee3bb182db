//! Interface between a session and its driver: inputs, outputs, limits and counters.

use crate::counters::counters;
use crate::scsi::{Ends, Io, IoStatus, IoTag, Notice};
use sanloom_wire::iscsi::Head;

/// Resource limits of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Greatest depth of the command window; a target has its own depth below it.
    pub depth: u16,
    /// Maximum number of immediate commands in flight, in addition to the window.
    pub max_immediate: u16,
    /// Maximum total data of tasks in transfer, in bytes. A single task may exceed it.
    pub max_bytes: u32,
    /// True if the medium can end block I/O early: an aborted write is recalled
    /// ([`Output::Recall`]).
    pub recalls: bool,
    /// True if data pass through before a command is complete: block I/O of a write begins before
    /// its data have arrived ([`Output::Arrived`]), and read data leave before it has ended
    /// ([`Input::IoData`]).
    pub streams: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth: 1_024, max_immediate: 8, max_bytes: 64 << 20, recalls: false, streams: false }
    }
}

/// Destination of a data segment. Text is passed with [`Input::Text`]; the end of another segment
/// with [`Input::Segment`].
pub type Destination = crate::iscsi::Destination<IoTag>;

/// Event for a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Header of a PDU. If it has a data segment,
    /// [`Session::destination`](super::Session::destination) returns the destination.
    Header(Head),
    /// The data segment is complete and in its buffer.
    Segment {
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// The first bytes of the data segment of a Data-Out have arrived. Only a gateway that passes
    /// data on frame by frame needs them ([`Limits::streams`](super::Limits::streams)); the whole
    /// PDU follows as usual.
    Arriving {
        /// Header of the PDU.
        head: Head,
        /// Number of bytes since the start of its data segment.
        bytes: u32,
    },
    /// Data segment that was collected.
    Text {
        /// Bytes of the segment.
        data: Box<[u8]>,
        /// True if the data digest is right or not in use.
        intact: bool,
    },
    /// Block I/O has ended.
    IoDone {
        /// Tag from [`Output::Io`].
        tag: IoTag,
        /// Result of the I/O.
        status: IoStatus,
    },
    /// The first bytes of the data of a read are in its buffer, while its block I/O continues.
    IoData {
        /// Tag from [`Output::Io`].
        tag: IoTag,
        /// Number of bytes since the start of the buffer.
        bytes: u32,
    },
    /// Bytes requested by [`Output::Fetch`].
    Parameters {
        /// Task that the list belongs to.
        tag: IoTag,
        /// Parameter list of the command.
        bytes: Vec<u8>,
    },
    /// Notice of the device, or tasks to end because of [`Output::Ends`] of another session.
    Notice(Notice),
    /// Tasks named in [`Output::Ends`] have ended and no longer write to the medium.
    OthersEnded,
    /// The target is shutting down: request a logout.
    Shutdown,
    /// The deadline of [`Session::poll_timeout`](super::Session::poll_timeout) has passed.
    Timeout,
}

/// Action that a session requests of its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this PDU.
    Send {
        /// Header of the PDU; the driver sets StatSN.
        head: Head,
        /// Data segment, possibly empty.
        data: Box<[u8]>,
    },
    /// Send a PDU whose data segment is a piece of the tag's buffer.
    Data {
        /// Task that owns the buffer.
        tag: IoTag,
        /// Header of the PDU; its data length is the length of the piece.
        head: Head,
        /// Offset of the piece in the buffer, in bytes.
        at: u32,
    },
    /// Do block I/O, then pass [`Input::IoDone`].
    Io(Io),
    /// The first bytes of the data of a write are in its buffer, with [`Limits::streams`].
    Arrived {
        /// Tag from [`Output::Io`].
        tag: IoTag,
        /// Number of bytes since the start of the buffer.
        bytes: u32,
    },
    /// A parameter list is complete in the task's buffer: pass it with [`Input::Parameters`].
    Fetch {
        /// Task that owns the list.
        tag: IoTag,
        /// Length of the list in bytes.
        bytes: u32,
    },
    /// Free the buffer once all earlier output has left.
    Release(IoTag),
    /// The task has ended early. Its buffer is free; a later [`Input::IoDone`] has no effect.
    Cancel(IoTag),
    /// Abort a task of the forwarding path with
    /// [`Forward::recall`](crate::iscsi::forward::Forward::recall), or block I/O of a medium that
    /// can end it early ([`Limits::recalls`]).
    Recall(IoTag),
    /// End tasks of other sessions: pass [`Notice::End`] to them, then [`Input::OthersEnded`] to
    /// this session when those tasks have ended.
    Ends(Ends),
    /// The target was reset: close all its sessions once everything has been sent.
    Reset,
    /// Close the connection once everything has been sent.
    Close(CloseReason),
}

/// Reason for the end of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CloseReason {
    /// The initiator logged out.
    Logout,
    /// The initiator violated the protocol.
    Protocol,
    /// The initiator did not answer a ping.
    Silent,
    /// The target was reset.
    Reset,
    /// The target is shutting down.
    Shutdown,
}

counters! {
    /// Counters of one session.
    pub struct Counters {
        /// SCSI commands received.
        commands = "commands", "iscsi_commands" "SCSI commands";
        /// SCSI responses sent, including statuses in Data-In.
        responses = "responses";
        /// Commands that ended in CHECK CONDITION.
        check_conditions = "check conditions";
        /// Data sent to the initiator, in bytes.
        read_bytes = "bytes read", "iscsi_read_bytes" "Bytes read from the target";
        /// Data received from the initiator, in bytes.
        written_bytes = "bytes written", "iscsi_written_bytes" "Bytes written to the target";
        /// Reject PDUs sent.
        rejects = "rejected PDUs", "iscsi_refused_pdus" "PDUs that were rejected, ignored or damaged";
        /// Commands outside of the window, which were ignored.
        outside_window = "commands outside of the window", "iscsi_refused_pdus" "PDUs that were rejected, ignored or damaged";
        /// Data segments with a wrong digest.
        digest_errors = "digest errors", "iscsi_refused_pdus" "PDUs that were rejected, ignored or damaged";
        /// Data-Out PDUs for tasks that do not exist.
        unknown_data = "data of unknown tasks", "iscsi_refused_pdus" "PDUs that were rejected, ignored or damaged";
        /// Tasks ended by task management.
        aborted = "aborted";
    }
}
