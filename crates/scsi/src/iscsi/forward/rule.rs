//! The Dispatcher: choice of the path of a command. [`super`] states the rule.

use super::backends::{BackEnds, BackUnit};
use super::machine::{Forward, Switch};
use super::table::{MAX_PARTS, Part, Stage};
use crate::disk::WriteCache;
use crate::map::{EpochId, Map, VolumeId};
use crate::scsi::{BlockIo, IoOp};
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, ScsiCommand};

/// Defines [`Kept`] from its rows: variant and label in `show stats`.
macro_rules! kept {
    ($($(#[$doc:meta])* $name:ident = $label:literal;)*) => {
        /// Reason why a command took the conventional path.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kept {
            $($(#[$doc])* $name,)*
        }

        impl Kept {
            /// All reasons, in the order of their numbers.
            pub const ALL: [Kept; [$(Kept::$name),*].len()] = [$(Kept::$name),*];

            /// Label in `show stats`.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Kept::$name => $label,)*
                }
            }
        }
    };
}

kept! {
    /// The command is not READ or WRITE, or it is unusual: additional headers, task attribute,
    /// number out of order, a reservation, a unit attention, or the range.
    Unusual = "kept: unusual";
    /// The unit is not a volume.
    NoVolume = "kept: no volume";
    /// The expected data transfer length differs from the length in the CDB.
    Length = "kept: length";
    /// An exclusive command holds its blocks, or a write there was lost.
    Order = "kept: order";
    /// A back end is not an iSCSI target.
    Transport = "kept: no iSCSI target";
    /// A back end is not connected.
    Path = "kept: no back-end session";
    /// The parameters of a back end do not fit.
    Unfit = "kept: parameters";
    /// The write must be durable, but the back end has a volatile cache and ignores FUA.
    Cache = "kept: cache";
    /// The command has too many pieces, or several with data digests.
    Pieces = "kept: pieces";
    /// A back end does not accept the unsolicited data.
    Unsolicited = "kept: unasked data";
    /// A back end has no window slot for the unsolicited data, or has accepted nothing for a while.
    Window = "kept: window";
}

/// Facts about a command that is to be forwarded.
pub(super) struct Plan {
    pub(super) io: BlockIo,
    pub(super) volume: VolumeId,
}

impl Forward {
    /// Decides whether a command is forwarded. If so, its parts are in `self.planned`.
    pub(super) fn plan(&mut self, head: &Head, command: &ScsiCommand, switch: &Switch<'_>) -> Result<Plan, Kept> {
        let has = |flag| command.flags & flag != 0;
        if head.ahs_words > 0 {
            return Err(Kept::Unusual);
        }
        let io = switch.session.forwardable(head, command, switch.device).ok_or(Kept::Unusual)?;
        let direction = match io.op {
            IoOp::Read => (true, false),
            _ => (false, true),
        };
        if command.expected_bytes != io.bytes || (has(flag::READ), has(flag::WRITE)) != direction {
            return Err(Kept::Length);
        }
        let volume = switch.disks.get(usize::from(io.unit)).copied().flatten().ok_or(Kept::NoVolume)?;
        switch.volumes.map().epoch(volume).ok_or(Kept::NoVolume)?;
        let epoch = switch.volumes.is_open(volume, io.lba, io.blocks).ok_or(Kept::Order)?;
        let max_parts = if self.front.data_digest { 1 } else { MAX_PARTS };
        self.backs.translate(&io, epoch, switch.volumes.map(), max_parts, &mut self.planned)?;
        if io.op == IoOp::Write {
            self.backs.admit_unsolicited(head, command, self.front.first_burst_bytes, &self.planned)?;
        }
        Ok(Plan { io, volume })
    }
}

impl BackEnds {
    /// The Address Translator: resolves the pieces of a command, at most `max_parts`, and checks
    /// the back end of each.
    fn translate(
        &self,
        io: &BlockIo,
        epoch: EpochId,
        map: &Map,
        max_parts: usize,
        parts: &mut Vec<Part>,
    ) -> Result<(), Kept> {
        let block_bytes = io.bytes / io.blocks.max(1);
        let pieces = map.resolve(epoch, io.lba, io.blocks).ok_or(Kept::NoVolume)?;
        parts.clear();
        for piece in pieces {
            if self.is_excluded(piece.place.lun) {
                return Err(Kept::Transport);
            }
            let (back, BackUnit { lun, cache, .. }) = self.unit_of(piece.place.lun).ok_or(Kept::Path)?;
            let target = self.get(back).ok_or(Kept::Path)?;
            if !target.accepts_commands(lun) {
                return Err(Kept::Path);
            }
            if target.stalled {
                return Err(Kept::Window);
            }
            target.fit.map_err(|_| Kept::Unfit)?;
            if io.fua && cache == WriteCache::Synchronize {
                return Err(Kept::Cache);
            }
            if parts.len() == max_parts {
                return Err(Kept::Pieces);
            }
            parts.push(Part {
                back,
                lun,
                lba: piece.place.lba,
                blocks: piece.blocks,
                at: piece.at * block_bytes,
                bytes: piece.blocks * block_bytes,
                // Without a volatile cache every write is durable. FUA is then not set, because a
                // target may reject it.
                fua: io.fua && cache == WriteCache::Fua,
                stage: Stage::Unsent,
                cmd_sn: 0,
                moved: 0,
                data_sn: 0,
                retries: 0,
                moved_at_check: None,
            });
        }
        if parts.is_empty() { Err(Kept::NoVolume) } else { Ok(()) }
    }

    /// Checks that back ends accept the unsolicited data of a write. Data that cannot be passed on
    /// would block the whole connection. `first_burst_bytes` was agreed with the host.
    fn admit_unsolicited(
        &self,
        head: &Head,
        command: &ScsiCommand,
        first_burst_bytes: u32,
        parts: &[Part],
    ) -> Result<(), Kept> {
        let more = command.flags & flag::FINAL == 0;
        if head.data_bytes == 0 && !more {
            return Ok(());
        }
        let unsolicited = if more { first_burst_bytes.min(command.expected_bytes) } else { head.data_bytes };
        for (number, part) in parts.iter().enumerate() {
            let Some(back) = self.get(part.back) else { return Err(Kept::Path) };
            let p = &back.parameters;
            let immediate = head.data_bytes.saturating_sub(part.at).min(part.bytes);
            let share = unsolicited.saturating_sub(part.at).min(part.bytes);
            let immediate_fits = immediate == 0 || (p.immediate_data && immediate <= p.send_bytes);
            let rest_fits = share == immediate || !p.initial_r2t;
            if !immediate_fits || !rest_fits || share > p.first_burst_bytes {
                return Err(Kept::Unsolicited);
            }
            // All parts for one back end need their window slots now, because none may wait.
            let of_same = parts[..=number].iter().filter(|other| other.back == part.back).count();
            if (back.room() as usize) < of_same {
                return Err(Kept::Window);
            }
        }
        Ok(())
    }
}
