//! Interface between transport and device: commands, steps, notices and outputs.

use super::{BlockIo, IoTag, NexusId};
use sanloom_wire::cdb::{CDB_BYTES, status};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// Command received by a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Nexus of the sender.
    pub nexus: NexusId,
    /// Tag of the task in its port; not used by any other live task.
    pub tag: IoTag,
    /// Unit returned by [`Device::unit`](super::Device::unit) for the LUN bytes.
    pub unit: Option<u16>,
    /// Command descriptor block, padded with zeros.
    pub cdb: [u8; CDB_BYTES],
    /// Task attribute, which determines the order among the commands of the unit.
    pub attribute: Attribute,
}

/// Task attribute (SAM).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Attribute {
    /// Any order among other simple tasks.
    #[default]
    Simple,
    /// After all older tasks, and before all younger ones.
    Ordered,
    /// Before all tasks that have not begun.
    HeadOfQueue,
}

/// Identity of a task in a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    /// Nexus of the sender.
    pub nexus: NexusId,
    /// Tag of the task in its port.
    pub tag: IoTag,
    /// Index of the unit.
    pub unit: u16,
}

/// Next action of a transport for a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Do block I/O. If [`IoOp::direction`](super::IoOp::direction) is a write, first receive
    /// [`BlockIo::bytes`] from the initiator. Then call
    /// [`Device::io_done`](super::Device::io_done).
    Io(BlockIo),
    /// Receive a parameter list of `bytes` and pass it to
    /// [`Device::parameters`](super::Device::parameters).
    Parameters {
        /// Length of the list in bytes.
        bytes: u32,
    },
    /// Wait for [`Notice::Step`].
    Wait,
    /// The task has ended: send data and status.
    Done(Response),
}

/// Result of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// SCSI status (see [`status`]).
    pub status: u8,
    /// Sense data, present with CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Data for the initiator, truncated to the allocation length. Data of reads are in the
    /// driver's buffers instead.
    pub data: Vec<u8>,
}

impl Response {
    /// GOOD without data.
    pub const GOOD: Response = Response { status: status::GOOD, sense: None, data: Vec::new() };

    /// Returns a status without data and sense.
    pub const fn status(status: u8) -> Response {
        Response { status, sense: None, data: Vec::new() }
    }

    /// Returns CHECK CONDITION with this sense.
    pub const fn check(sense: Sense) -> Response {
        Response { status: status::CHECK_CONDITION, sense: Some(sense), data: Vec::new() }
    }

    /// Returns GOOD with data.
    pub const fn data(data: Vec<u8>) -> Response {
        Response { status: status::GOOD, sense: None, data }
    }
}

/// Notice from a device to the transport of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A task that had to wait continues. The transport calls
    /// [`Device::confirm`](super::Device::confirm).
    Step {
        /// Task that continues.
        task: TaskId,
        /// Next action for the task.
        step: Step,
    },
    /// Tasks to end.
    End(Ends),
}

/// Tasks that end because of task management or a preempted reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Unit of the tasks; `None` means all units.
    pub unit: Option<u16>,
    /// Nexus of the tasks; `None` means all nexuses.
    pub nexus: Option<NexusId>,
    /// Nexus that caused it. Its own tasks end without a response.
    pub by: NexusId,
}

impl Ends {
    /// Returns whether a task of this unit and nexus ends.
    pub fn affects(&self, unit: u16, nexus: NexusId) -> bool {
        self.unit.is_none_or(|of| of == unit) && self.nexus.is_none_or(|of| of == nexus)
    }

    /// Returns whether a task of this nexus ends with status TASK ABORTED (control mode page, TAS)
    /// instead of no response.
    pub fn answered(&self, nexus: NexusId) -> bool {
        nexus != self.by
    }
}

/// Output of a device that does not belong to a call of the transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Pass a notice to the transport of a port; for an FCP target as its `Input::Notice`.
    Port {
        /// Number of the port.
        port: u16,
        /// Notice for that transport.
        notice: Notice,
    },
    /// Store a record in place of the previous one, then call
    /// [`Device::persisted`](super::Device::persisted). Dependent tasks wait until then.
    Persist {
        /// Number of this request.
        seq: u64,
        /// Index of the unit that the record belongs to.
        unit: u16,
        /// Record to pass to [`Device::restore`](super::Device::restore) after a restart; empty if
        /// nothing has to be stored.
        record: Box<[u8]>,
    },
}

/// Task management functions that do not name a single task (SAM). ABORT TASK corresponds to
/// [`Device::abandon`](super::Device::abandon).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TaskManagement {
    /// Abort the sender's tasks in a unit.
    AbortTaskSet,
    /// Abort all tasks in a unit.
    ClearTaskSet,
    /// Reset a unit to its state after power on.
    LunReset,
    /// Reset all units to their state after power on.
    TargetReset,
    /// Clear auto contingent allegiance, which this device never establishes.
    ClearAca,
}

/// Result of a task management function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Managed {
    /// Executed. The transport ends its matching tasks at once; other ports receive
    /// [`Notice::End`].
    Complete(Option<Ends>),
    /// The unit does not exist.
    IncorrectLun,
}

/// Sense "invalid field in command information unit": the transport's length does not fit the CDB
/// (FCP).
pub const INVALID_COMMAND_IU: Sense = Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode(0x0e03));
