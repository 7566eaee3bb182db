//! In-flight SCSI commands of a host: [`Commands`].

use crate::offload::Placement;
use sanloom_fc::fcp::initiator::{AbortReason, Command, Outcome};
use sanloom_scsi::disk::{Data, End};
use sanloom_scsi::scsi::DataDirection;
use sanloom_wire::FcId;
use sanloom_wire::Wwpn;
use sanloom_wire::lun::LunBytes;
use std::collections::{BTreeMap, VecDeque};

/// Origin of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Scan,
    Disk,
    /// LOGICAL UNIT RESET of a disk.
    Reset,
}

/// An in-flight command.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) target: Wwpn,
    pub(super) who: Who,
    pub(super) lun: LunBytes,
    /// Number assigned by the origin.
    pub(super) id: u64,
    cdb: [u8; 16],
    pub(super) data: Data,
    /// Data buffer of a command that does not belong to a request.
    pub(super) own: Vec<u8>,
    pub(super) sense: Box<[u8]>,
    /// Address of the target port.
    pub(super) d_id: FcId,
    ox_id: Option<u16>,
    /// Placement of its read data.
    pub(super) landing: Landing,
}

/// Placement of read data; decided at the first data frame.
#[derive(Debug, Default)]
pub(super) enum Landing {
    /// No data frame received yet.
    #[default]
    Undecided,
    /// Directly into the request's buffer; the command holds a context.
    Direct,
    /// Through a buffer of the sequence.
    Staged(Vec<u8>),
}

impl Active {
    pub(super) fn new(target: Wwpn, who: Who, lun: LunBytes, id: u64, cdb: [u8; 16], data: Data) -> Active {
        let own = match &data {
            Data::None | Data::Buffer { .. } => Vec::new(),
            Data::In { max_bytes: bytes } | Data::Zeroes { bytes } => vec![0; *bytes as usize],
            Data::Out(bytes) => bytes.to_vec(),
        };
        Active {
            target,
            who,
            lun,
            id,
            cdb,
            data,
            own,
            sense: Box::default(),
            d_id: FcId::ZERO,
            ox_id: None,
            landing: Landing::Undecided,
        }
    }

    /// Returns the FCP form of the command.
    pub(super) fn command(&self, tag: u64, frame_size_bytes: u16) -> Command {
        let direction = match self.data {
            Data::None => DataDirection::None,
            Data::In { .. } | Data::Buffer { write: false, .. } => DataDirection::Read,
            Data::Out(_) | Data::Zeroes { .. } | Data::Buffer { write: true, .. } => DataDirection::Write,
        };
        let data_len = self.data.bytes();
        Command { tag, d_id: self.d_id, lun: self.lun, cdb: self.cdb, data_len, direction, frame_size_bytes }
    }

    /// Converts an outcome to the result for the SCSI layer. Moves sense and data out of the
    /// command.
    pub(super) fn end(&mut self, outcome: Outcome) -> End {
        match outcome {
            Outcome::Completed { status, transferred, .. } => {
                let is_in = matches!(self.data, Data::In { .. });
                let mut data = if is_in { std::mem::take(&mut self.own) } else { Vec::new() };
                data.truncate(transferred as usize);
                End::Status { status, sense: std::mem::take(&mut self.sense), transferred, data: data.into() }
            }
            Outcome::Aborted(AbortReason::Timeout | AbortReason::Recalled) => End::TimedOut { aborted: true },
            Outcome::Aborted(AbortReason::Unanswered) => End::TimedOut { aborted: false },
            Outcome::Aborted(
                AbortReason::LostFrame | AbortReason::Protocol | AbortReason::Refused(_) | AbortReason::NoExchange,
            ) => End::Transport,
            Outcome::PortGone => End::PathGone,
        }
    }
}

/// In-flight commands of a host.
#[derive(Debug, Default)]
pub(super) struct Commands {
    by_tag: BTreeMap<u64, Active>,
    by_exchange: BTreeMap<u16, u64>,
    /// Tags of commands waiting for a free exchange.
    pub(super) backlog: VecDeque<u64>,
    next_tag: u64,
    /// Number of commands with direct placement.
    direct: usize,
}

impl Commands {
    pub(super) fn insert(&mut self, active: Active) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.by_tag.insert(tag, active);
        tag
    }

    pub(super) fn get_mut(&mut self, tag: u64) -> Option<&mut Active> {
        self.by_tag.get_mut(&tag)
    }

    pub(super) fn at_exchange(&self, ox_id: u16) -> Option<&Active> {
        self.by_tag.get(self.by_exchange.get(&ox_id)?)
    }

    pub(super) fn of_exchange(&mut self, ox_id: u16) -> Option<&mut Active> {
        self.by_tag.get_mut(self.by_exchange.get(&ox_id)?)
    }

    /// Decides the placement of an exchange's read data, unless already decided.
    pub(super) fn decide_landing(&mut self, ox_id: u16, placement: Placement) {
        let direct = self.direct;
        let Some(active) = self.of_exchange(ox_id) else { return };
        if matches!(active.landing, Landing::Undecided) {
            let allowed = placement.allows(active.data.bytes(), direct);
            active.landing = if allowed { Landing::Direct } else { Landing::Staged(Vec::new()) };
            self.direct += usize::from(allowed);
        }
    }

    /// Assigns an exchange to the command.
    pub(super) fn exchange_of(&mut self, tag: u64, ox_id: u16) {
        if let Some(active) = self.by_tag.get_mut(&tag) {
            active.ox_id = Some(ox_id);
            self.by_exchange.insert(ox_id, tag);
        }
    }

    pub(super) fn remove(&mut self, tag: u64) -> Option<Active> {
        let active = self.by_tag.remove(&tag)?;
        self.direct -= usize::from(matches!(active.landing, Landing::Direct));
        if let Some(ox_id) = active.ox_id {
            self.by_exchange.remove(&ox_id);
        }
        debug_assert!(self.by_exchange.len() <= self.by_tag.len(), "an exchange has no command");
        debug_assert!(self.direct <= self.by_tag.len(), "{} commands are placed directly", self.direct);
        Some(active)
    }
}
