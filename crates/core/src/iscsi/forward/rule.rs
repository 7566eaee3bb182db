//! The Dispatcher: which path a command takes. The rule stands in [`super`].

use super::machine::{BackUnit, Forward, Switch};
use super::table::{MAX_PARTS, Part, Stage};
use crate::disk::WriteCache;
use crate::map::{EpochId, VolumeId};
use crate::scsi::{BlockIo, IoOp};
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, ScsiCommand};

/// Why a command went the conventional way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kept {
    /// Neither READ nor WRITE, or something about it is unusual: additional headers, attributes, its turn, a reservation, a unit
    /// attention, the range.
    Unusual,
    /// The unit is no volume.
    NoVolume,
    /// Its length is not that of the CDB.
    Length,
    /// Somebody has to be alone in its blocks, or a write there was lost on its way.
    Order,
    /// A back end is behind no iSCSI target.
    Transport,
    /// A back end is not connected.
    Path,
    /// Parameters of a back end do not fit.
    Unfit,
    /// It is to be durable, and a back end has a volatile cache and does not obey FUA.
    Cache,
    /// Too many pieces, or several with data digests.
    Pieces,
    /// A back end would not take unasked data.
    Unasked,
    /// A back end has no room for unasked data, or has taken nothing for a while.
    Window,
}

impl Kept {
    /// All reasons.
    pub const ALL: [Kept; 11] = [
        Kept::Unusual,
        Kept::NoVolume,
        Kept::Length,
        Kept::Order,
        Kept::Transport,
        Kept::Path,
        Kept::Unfit,
        Kept::Cache,
        Kept::Pieces,
        Kept::Unasked,
        Kept::Window,
    ];
}

/// What is known of a command that is to be forwarded.
pub(super) struct Plan {
    pub(super) io: BlockIo,
    pub(super) volume: VolumeId,
}

impl Forward {
    /// Whether a command is forwarded, and to where: its parts are in `self.spare`.
    pub(super) fn plan(&mut self, head: &Head, command: &ScsiCommand, switch: &Switch<'_>) -> Result<Plan, Kept> {
        let has = |flag| command.flags & flag != 0;
        if head.ahs_words > 0 {
            return Err(Kept::Unusual);
        }
        let io = switch.session.forwardable(head, command, switch.device).ok_or(Kept::Unusual)?;
        let way = match io.op {
            IoOp::Read => (true, false),
            _ => (false, true),
        };
        if command.expected_bytes != io.bytes || (has(flag::READ), has(flag::WRITE)) != way {
            return Err(Kept::Length);
        }
        let volume = switch.disks.get(usize::from(io.unit)).copied().flatten().ok_or(Kept::NoVolume)?;
        switch.volumes.map().epoch(volume).ok_or(Kept::NoVolume)?;
        let epoch = switch.volumes.is_open(volume, io.lba, io.blocks).ok_or(Kept::Order)?;
        self.translate(&io, epoch, switch)?;
        if io.op == IoOp::Write {
            self.admit_unasked(head, command)?;
        }
        Ok(Plan { io, volume })
    }

    /// The Address Translator, and what can be in the way of each piece.
    fn translate(&mut self, io: &BlockIo, epoch: EpochId, switch: &Switch<'_>) -> Result<(), Kept> {
        let block_bytes = io.bytes / io.blocks.max(1);
        let pieces = switch.volumes.map().resolve(epoch, io.lba, io.blocks).ok_or(Kept::NoVolume)?;
        self.spare.clear();
        for piece in pieces {
            if self.elsewhere.contains(&piece.place.lun) {
                return Err(Kept::Transport);
            }
            let (back, BackUnit { lun, cache, .. }) = *self.luns.get(&piece.place.lun).ok_or(Kept::Path)?;
            let target = self.backs.get(usize::from(back)).and_then(Option::as_ref).ok_or(Kept::Path)?;
            if !target.takes_commands(lun) {
                return Err(Kept::Path);
            }
            if target.stuck {
                return Err(Kept::Window);
            }
            target.fit.map_err(|_| Kept::Unfit)?;
            if io.fua && cache == WriteCache::Synchronize {
                return Err(Kept::Cache);
            }
            if self.spare.len() == MAX_PARTS || (self.front.data_digest && !self.spare.is_empty()) {
                return Err(Kept::Pieces);
            }
            self.spare.push(Part {
                back,
                lun,
                lba: piece.place.lba,
                blocks: piece.blocks,
                at: piece.at * block_bytes,
                bytes: piece.blocks * block_bytes,
                // Without a volatile cache everything is durable, and a target may refuse to be told so.
                fua: io.fua && cache == WriteCache::Fua,
                stage: Stage::Unsent,
                cmd_sn: 0,
                moved: 0,
                data_sn: 0,
                again: 0,
                looked: None,
            });
        }
        if self.spare.is_empty() { Err(Kept::NoVolume) } else { Ok(()) }
    }

    /// Whether back ends take the data that come without being asked for. Data that cannot go on would stop everything behind them.
    fn admit_unasked(&self, head: &Head, command: &ScsiCommand) -> Result<(), Kept> {
        let more = command.flags & flag::FINAL == 0;
        if head.data_bytes == 0 && !more {
            return Ok(());
        }
        let unasked = if more { self.front.first_burst_bytes.min(command.expected_bytes) } else { head.data_bytes };
        for (number, part) in self.spare.iter().enumerate() {
            let Some(back) = self.backs[usize::from(part.back)].as_ref() else { return Err(Kept::Path) };
            let p = &back.parameters;
            let immediate = head.data_bytes.saturating_sub(part.at).min(part.bytes);
            let share = unasked.saturating_sub(part.at).min(part.bytes);
            let immediate_fits = immediate == 0 || (p.immediate_data && immediate <= p.send_bytes);
            let rest_fits = share == immediate || !p.initial_r2t;
            if !immediate_fits || !rest_fits || share > p.first_burst_bytes {
                return Err(Kept::Unasked);
            }
            // All parts of it need their places now: none may wait.
            let of_same = self.spare[..=number].iter().filter(|other| other.back == part.back).count();
            if back.room() < of_same as u32 {
                return Err(Kept::Window);
            }
        }
        Ok(())
    }
}
