//! One exchange of a target.

use super::super::timers::{Timed, Timer};
use super::{Io, IoTag};
use crate::exchange::SeqRx;
use crate::scsi::IoOp;
use sanloom_wire::FcId;
use sanloom_wire::fcp::Residual;

/// Where an exchange stands; the module's picture shows the ways between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    /// The medium works.
    Io,
    /// Write data is under way.
    Receiving,
    /// Over, but late frames or an ABTS may arrive.
    Resting,
}

/// The kinds of waiting, each as long for every exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Data,
    Rest,
}

impl List {
    pub(super) const COUNT: usize = 2;
    pub(super) const ALL: [List; Self::COUNT] = [List::Data, List::Rest];
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) timer: Timer,
    pub(super) rx: SeqRx,
    pub(super) lba: u64,
    pub(super) blocks: u32,
    /// Bytes that the CDB asks for.
    pub(super) wanted_bytes: u32,
    /// FCP_DL.
    pub(super) data_len: u32,
    /// What had arrived when progress was looked at last.
    pub(super) seen_bytes: u32,
    pub(super) initiator: FcId,
    pub(super) state: State,
    pub(super) ox_id: u16,
    pub(super) lun: u16,
    pub(super) generation: u16,
    pub(super) frame_size_bytes: u16,
    pub(super) op: IoOp,
    pub(super) fua: bool,
    last_seq_id: u8,
}

const _: () = assert!(size_of::<Task>() <= 80);

/// The parts of a new task that its command gives.
pub(super) struct NewTask {
    pub(super) initiator: FcId,
    pub(super) ox_id: u16,
    pub(super) lun: u16,
    pub(super) op: IoOp,
    pub(super) lba: u64,
    pub(super) blocks: u32,
    pub(super) wanted_bytes: u32,
    pub(super) data_len: u32,
    pub(super) frame_size_bytes: u16,
    pub(super) fua: bool,
    pub(super) in_order: bool,
}

impl Task {
    pub(super) fn new(new: &NewTask, generation: u16) -> Task {
        Task {
            timer: Timer::unarmed(),
            rx: SeqRx::new(0, new.in_order),
            lba: new.lba,
            blocks: new.blocks,
            wanted_bytes: new.wanted_bytes,
            data_len: new.data_len,
            seen_bytes: 0,
            initiator: new.initiator,
            state: State::Io,
            ox_id: new.ox_id,
            lun: new.lun,
            generation,
            frame_size_bytes: new.frame_size_bytes,
            op: new.op,
            fua: new.fua,
            last_seq_id: 0,
        }
    }

    /// A command is being worked on.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.state, State::Io | State::Receiving)
    }

    /// Bytes that move between initiator and target.
    pub(super) fn transfer_bytes(&self) -> u32 {
        self.wanted_bytes.min(self.data_len)
    }

    pub(super) fn residual(&self) -> Residual {
        residual(self.wanted_bytes, self.data_len)
    }

    pub(super) fn tag(&self, rx_id: u16) -> IoTag {
        IoTag::new(rx_id, self.generation)
    }

    pub(super) fn io(&self, rx_id: u16) -> Io {
        Io {
            tag: self.tag(rx_id),
            initiator: self.initiator,
            lun: self.lun,
            op: self.op,
            lba: self.lba,
            blocks: self.blocks,
            bytes: self.transfer_bytes(),
            fua: self.fua,
        }
    }

    pub(super) fn next_seq_id(&mut self) -> u8 {
        self.last_seq_id = self.last_seq_id.wrapping_add(1);
        self.last_seq_id
    }
}

/// FCP residual of a command that has `bytes` to transfer where FCP_DL is `data_len`.
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
