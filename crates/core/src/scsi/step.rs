//! What a transport tells a device, and what the device answers.

use super::{BlockIo, IoTag, NexusId};
use sanloom_wire::cdb::{CDB_BYTES, status};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

/// A command that a transport has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Who sent it.
    pub nexus: NexusId,
    /// The task's name in the port; unused for as long as the task lives.
    pub tag: IoTag,
    /// What [`Device::unit`](super::Device::unit) said about the LUN bytes.
    pub unit: Option<u16>,
    /// The command.
    pub cdb: [u8; CDB_BYTES],
    /// Order among the commands of the unit.
    pub attribute: Attribute,
}

/// Task attribute (SAM).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Attribute {
    /// In any order among other simple tasks.
    #[default]
    Simple,
    /// After all older tasks, and before all younger ones.
    Ordered,
    /// Before all tasks that have not begun.
    HeadOfQueue,
}

/// A task that a device knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    /// Who sent it.
    pub nexus: NexusId,
    /// Its name in the port.
    pub tag: IoTag,
    /// Its unit.
    pub unit: u16,
}

/// What a transport does next with a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Block I/O. Where [`IoOp::direction`](super::IoOp::direction) is a write, first receive
    /// [`BlockIo::bytes`] from the initiator. Then [`Device::io_done`](super::Device::io_done).
    Io(BlockIo),
    /// Receive a parameter list of `bytes` and give it to [`Device::parameters`](super::Device::parameters).
    Parameters {
        /// Its length.
        bytes: u32,
    },
    /// Nothing now: [`Notice::Step`] will say when.
    Wait,
    /// The task is over: send data and status.
    Done(Response),
}

/// The end of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// SCSI status (see [`status`]).
    pub status: u8,
    /// Sense data, with CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Data for the initiator, cut to the allocation length. The data of reads is the driver's.
    pub data: Vec<u8>,
}

impl Response {
    /// GOOD without data.
    pub const GOOD: Response = Response { status: status::GOOD, sense: None, data: Vec::new() };

    /// A status alone.
    pub const fn status(status: u8) -> Response {
        Response { status, sense: None, data: Vec::new() }
    }

    /// CHECK CONDITION.
    pub const fn check(sense: Sense) -> Response {
        Response { status: status::CHECK_CONDITION, sense: Some(sense), data: Vec::new() }
    }

    /// GOOD, with data.
    pub const fn data(data: Vec<u8>) -> Response {
        Response { status: status::GOOD, sense: None, data }
    }
}

/// A device's word to the transport of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A task that had to wait goes on.
    Step {
        /// Which.
        task: TaskId,
        /// What to do.
        step: Step,
    },
    /// Tasks end.
    End(Ends),
}

/// Which tasks end because of task management or a preempted reservation, and who is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Of one unit, or of all.
    pub unit: Option<u16>,
    /// Of one nexus, or of all.
    pub nexus: Option<NexusId>,
    /// Who asked for it: its own tasks end without a word.
    pub by: NexusId,
}

impl Ends {
    /// The task of this unit and nexus ends.
    pub fn affects(&self, unit: u16, nexus: NexusId) -> bool {
        self.unit.is_none_or(|of| of == unit) && self.nexus.is_none_or(|of| of == nexus)
    }

    /// The task ends with status TASK ABORTED (control mode page, TAS).
    pub fn answered(&self, nexus: NexusId) -> bool {
        nexus != self.by
    }
}

/// What a device does by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Tell the transport of a port; for FCP with
    /// [`Input::Notice`](crate::fcp::target::Input::Notice).
    Port {
        /// Number of the port.
        port: u16,
        /// The word.
        notice: Notice,
    },
    /// Keep a record, in place of the one before, and come back with [`Device::persisted`](super::Device::persisted).
    /// What depends on it waits.
    Persist {
        /// Number of this request.
        seq: u64,
        /// Unit that the record belongs to.
        unit: u16,
        /// What [`Device::restore`](super::Device::restore) takes after a restart; empty: nothing is to be kept.
        record: Box<[u8]>,
    },
}

/// Task management functions that name no single task (SAM). ABORT TASK is
/// [`Device::abandon`](super::Device::abandon).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TaskManagement {
    /// The requester's tasks in a unit.
    AbortTaskSet,
    /// All tasks in a unit.
    ClearTaskSet,
    /// A unit as after power on.
    LunReset,
    /// All units as after power on.
    TargetReset,
    /// Auto contingent allegiance, which is never established here.
    ClearAca,
}

/// What became of a task management function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Managed {
    /// Done. The transport ends its tasks that match at once; other ports hear [`Notice::End`].
    Complete(Option<Ends>),
    /// There is no such unit here.
    IncorrectLun,
}

/// "Invalid field in command information unit": the transport's length does not fit the CDB (FCP).
pub(crate) const INVALID_COMMAND_IU: Sense = Sense::new(SenseKey::ILLEGAL_REQUEST, SenseCode(0x0e03));
