//! Exchange of an initiator.

use super::super::timers::{Timed, Timer};
use super::{AbortReason, Command};
use crate::exchange::{SeqRx, usable_frame_size};
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::FcId;
use sanloom_wire::fcp::Residual;
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::sense::Condition;

/// State of an exchange; see the diagram of the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Active,
    /// FCP_RSP was received, but data is missing.
    Holding,
    /// ABTS is in flight; the command will end with this reason.
    Aborting(AbortReason),
}

listed_variants! {
    /// Timer lists; each has one timeout for all exchanges.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum List {
        Command,
        Hold,
        Abort,
        Manage,
    }
}

#[derive(Clone, Debug)]
pub(super) struct Exchange {
    timer: Timer,
    pub(super) tag: u64,
    pub(super) rx: SeqRx,
    pub(super) residual: Residual,
    /// Sense data of CHECK CONDITION.
    pub(super) condition: Option<Condition>,
    pub(super) data_len: u32,
    /// Write data passed to the driver so far, in bytes; the next burst begins here.
    pub(super) sent_bytes: u32,
    pub(super) d_id: FcId,
    /// Current exchange number, or the last one if the slot is free. Frames with another number are
    /// stale.
    pub(super) ox_id: u16,
    pub(super) status: u8,
    pub(super) rx_id: u16,
    pub(super) next_seq_cnt: u16,
    pub(super) frame_size_bytes: u16,
    pub(super) state: State,
    pub(super) direction: DataDirection,
    last_seq_id: u8,
    /// Number of ABTS sent.
    pub(super) tries: u8,
}

const _: () = assert!(size_of::<Exchange>() <= 80);

impl Exchange {
    pub(super) fn new(ox_id: u16, command: &Command, in_order: bool) -> Exchange {
        let expected_bytes = match command.direction {
            DataDirection::Read => command.data_len,
            DataDirection::None | DataDirection::Write => 0,
        };
        let rx = SeqRx::new(expected_bytes, in_order);
        Exchange::start(ox_id, command, rx, usable_frame_size(command.frame_size_bytes))
    }

    fn start(ox_id: u16, command: &Command, rx: SeqRx, frame_size_bytes: u16) -> Exchange {
        Exchange {
            timer: Timer::unarmed(),
            tag: command.tag,
            rx,
            residual: Residual::None,
            condition: None,
            data_len: command.data_len,
            sent_bytes: 0,
            d_id: command.d_id,
            ox_id,
            status: 0,
            rx_id: RX_ID_UNASSIGNED,
            next_seq_cnt: 0,
            frame_size_bytes,
            state: State::Active,
            direction: command.direction,
            last_seq_id: 0,
            tries: 0,
        }
    }

    pub(super) fn takes_data(&self) -> bool {
        matches!(self.state, State::Active | State::Holding) && self.direction == DataDirection::Read
    }

    /// Returns the next SEQ_ID. FCP_CMND had SEQ_ID 0; later sequences of the initiator count up.
    pub(super) fn next_seq_id(&mut self) -> u8 {
        self.last_seq_id = self.last_seq_id.wrapping_add(1);
        self.last_seq_id
    }
}

impl Timed for Exchange {
    fn timer(&mut self) -> &mut Timer {
        &mut self.timer
    }
    fn peek(&self) -> &Timer {
        &self.timer
    }
}
