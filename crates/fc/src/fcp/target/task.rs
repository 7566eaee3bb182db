//! Exchange of a target.

use super::super::timers::{Timed, Timer};
use crate::exchange::SeqRx;
use sanloom_scsi::scsi::{BlockIo, Io, IoOp, IoTag, NexusId, TaskId};
use sanloom_wire::FcId;
use sanloom_wire::fcp::Residual;

/// State of an exchange; see the diagram of the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    /// Queued in the device until the device starts it.
    Waiting,
    /// Block I/O in progress.
    Io,
    /// Write data or a parameter list in flight.
    Receiving,
    /// The parameter list has been requested from the driver.
    Fetching,
    /// Ended, but late frames or an ABTS may arrive.
    Resting,
}

listed_variants! {
    /// Timer lists; each has one timeout for all exchanges.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum List {
        /// Check of the progress of a burst.
        Data,
        /// End of the time for the first frame of a burst.
        FirstData,
        Rest,
    }
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) timer: Timer,
    pub(super) rx: SeqRx,
    /// I/O requested by the device. For a parameter list only `bytes` is valid, and `blocks` is
    /// zero.
    pub(super) io: BlockIo,
    /// FCP_DL, in bytes.
    pub(super) data_len: u32,
    /// Bytes received at the last progress check.
    pub(super) seen_bytes: u32,
    pub(super) initiator: FcId,
    pub(super) state: State,
    pub(super) ox_id: u16,
    pub(super) nexus: NexusId,
    pub(super) generation: u16,
    pub(super) frame_size_bytes: u16,
    pub(super) flags: u8,
    last_seq_id: u8,
}

const _: () = assert!(size_of::<Task>() <= 80);

/// Fields of a new task that its command determines.
pub(super) struct NewTask {
    pub(super) initiator: FcId,
    pub(super) nexus: NexusId,
    pub(super) unit: u16,
    pub(super) ox_id: u16,
    pub(super) data_len: u32,
    pub(super) flags: u8,
    pub(super) frame_size_bytes: u16,
    pub(super) in_order: bool,
}

impl Task {
    pub(super) fn new(new: &NewTask, generation: u16) -> Task {
        Task {
            timer: Timer::unarmed(),
            rx: SeqRx::new(0, new.in_order),
            io: BlockIo { unit: new.unit, op: IoOp::Read, lba: 0, blocks: 0, bytes: 0, fua: false },
            data_len: new.data_len,
            seen_bytes: 0,
            nexus: new.nexus,
            initiator: new.initiator,
            state: State::Waiting,
            ox_id: new.ox_id,
            generation,
            frame_size_bytes: new.frame_size_bytes,
            flags: new.flags,
            last_seq_id: 0,
        }
    }

    /// Returns true while a command is in progress.
    pub(super) fn is_live(&self) -> bool {
        !matches!(self.state, State::Free | State::Resting)
    }

    /// Returns true if bytes of the current burst have arrived since the last progress check.
    pub(super) fn has_progressed(&self) -> bool {
        self.rx.received_bytes() > self.seen_bytes
    }

    /// Returns true if no byte of the current burst has arrived.
    pub(super) fn awaits_burst(&self) -> bool {
        self.rx.burst_bytes() == 0
    }

    pub(super) fn takes_parameters(&self) -> bool {
        self.io.blocks == 0
    }

    /// Bytes to transfer between initiator and target.
    pub(super) fn transfer_bytes(&self) -> u32 {
        self.io.bytes.min(self.data_len)
    }

    pub(super) fn residual(&self) -> Residual {
        residual(self.io.bytes, self.data_len)
    }

    pub(super) fn tag(&self, rx_id: u16) -> IoTag {
        IoTag::new(rx_id, self.generation)
    }

    pub(super) fn id(&self, rx_id: u16) -> TaskId {
        TaskId { nexus: self.nexus, tag: self.tag(rx_id), unit: self.io.unit }
    }

    pub(super) fn block_io(&self, rx_id: u16) -> Io {
        let BlockIo { unit, op, lba, blocks, fua, .. } = self.io;
        Io { tag: self.tag(rx_id), nexus: self.nexus, unit, op, lba, blocks, bytes: self.transfer_bytes(), fua }
    }

    pub(super) fn next_seq_id(&mut self) -> u8 {
        self.last_seq_id = self.last_seq_id.wrapping_add(1);
        self.last_seq_id
    }
}

/// FCP residual of a command that transfers `bytes` with FCP_DL `data_len`.
pub(super) fn residual(bytes: u32, data_len: u32) -> Residual {
    if bytes > data_len {
        Residual::Over(bytes - data_len)
    } else if bytes < data_len {
        Residual::Under(data_len - bytes)
    } else {
        Residual::None
    }
}

impl Timed for Task {
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
    fn peek(&self) -> &Timer {
        &self.timer
    }
}
