//! State of an array: members, spares, rebuild, repair and scrub.

use super::geometry::{Content, Geometry};
use super::plan::{Member, MemberIo, Phase};

/// Limits of rebuild and scrub, per member, in blocks of 512 bytes per second.
///
/// Defaults of md: 2,000 (1,000 KB/s) and 400,000.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SyncLimits {
    /// Rate while hosts use the array.
    pub minimum: u64,
    /// Rate while the array is idle.
    pub maximum: u64,
    /// Chunks of each member in one step: at least 1, and at most 2^32 - 1 blocks.
    pub window_chunks: u64,
}

impl Default for SyncLimits {
    fn default() -> SyncLimits {
        SyncLimits { minimum: 2_000, maximum: 400_000, window_chunks: 1 }
    }
}

/// Condition of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// All members are online.
    Optimal,
    /// Members are missing or in rebuild, and all data can be read.
    Degraded {
        /// Members without complete data.
        members: u32,
    },
    /// Data are lost; [`Array::lost`] lists them.
    Failed {
        /// Number of lost blocks of the array.
        blocks: u64,
    },
}

/// Kind of a background pass over the members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// Missing chunks are computed and written to new members.
    Rebuild,
    /// All chunks are read and compared.
    Check,
    /// As [`Pass::Check`], and wrong parity or copies are written anew.
    Repair,
}

/// One step of a background pass. Its I/Os are in the buffer that the caller passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// Number of the step in the life of the array.
    pub number: u64,
    /// Kind of the pass.
    pub pass: Pass,
    /// First chunk on each member.
    pub chunk: u64,
    /// Number of chunks. Host requests to these chunks wait until the end of the step.
    pub chunks: u64,
    /// Chunks of members that a rebuild skips as lost, because source chunks have media errors.
    pub lost_chunks: u64,
}

/// Position and pace of a background pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Start and blocks of the previous step.
    pub(super) last: Option<(u64, u64)>,
    pub(super) running: Option<Step>,
}

impl Pace {
    pub(super) const NEW: Pace = Pace { last: None, running: None };

    /// Earliest start of the next step.
    pub(super) fn next_ps(&self, rate: u64) -> u64 {
        self.last.map_or(0, |(start_ps, blocks)| {
            let gap_ps = u128::from(blocks) * 1_000_000_000_000 / u128::from(rate.max(1));
            start_ps.saturating_add(u64::try_from(gap_ps).unwrap_or(u64::MAX))
        })
    }
}

/// An array with its members. The caller runs I/O and supplies time in picoseconds.
#[derive(Clone, Debug)]
pub struct Array {
    pub(super) geometry: Geometry,
    pub(super) limits: SyncLimits,
    pub(super) members: Vec<Member>,
    /// Blocks that no redundancy restores. Only a failure of a member changes them: a rebuild skips
    /// what is lost.
    lost_blocks: u64,
    spares: u32,
    rebuild: Pace,
    /// Step of the rebuild behind the running one.
    rebuild_ahead: Option<Step>,
    reads_ahead: bool,
    pub(super) scrub: Pace,
    /// Kind of the scrub, its next chunk, and the chunk behind its last.
    pub(super) scrub_at: Option<(Pass, u64, u64)>,
    /// Further ranges of chunks of a resync, the last one first.
    pub(super) resync_rest: Vec<(u64, u64)>,
    /// Parity stripes, or chunks of a mirror, whose redundancy is wrong; sorted.
    pub(super) inconsistent: Vec<u64>,
    pub(super) mismatches: u64,
    /// Member and block of each latent sector error; sorted.
    pub(super) media_errors: Vec<(u32, u64)>,
    /// Number of the step, member and chunk of each chunk that a running rebuild step skips.
    skipped: Vec<(u64, u32, u64)>,
    steps: u64,
}

impl Array {
    /// Creates an array whose members are all online.
    pub fn new(geometry: Geometry, spares: u32, limits: SyncLimits) -> Array {
        Array {
            geometry,
            limits,
            members: vec![Member::Online; geometry.members() as usize],
            lost_blocks: 0,
            spares,
            rebuild: Pace::NEW,
            rebuild_ahead: None,
            reads_ahead: false,
            scrub: Pace::NEW,
            scrub_at: None,
            resync_rest: Vec::new(),
            inconsistent: Vec::new(),
            mismatches: 0,
            media_errors: Vec::new(),
            skipped: Vec::new(),
            steps: 0,
        }
    }

    /// Permits a second step of a rebuild while one runs, so that a window is read while the one
    /// before is written. The caller ends the steps in order.
    pub fn read_ahead(mut self) -> Array {
        self.reads_ahead = true;
        self
    }

    /// Address map.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// States of the members, for [`super::Plan`].
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Spares that no member uses yet.
    pub fn spares(&self) -> u32 {
        self.spares
    }

    /// Marks a member as missing, and starts its rebuild if a spare is free and no data are lost. A
    /// running step of a rebuild or scrub is abandoned.
    pub fn fail(&mut self, member: u32) -> Condition {
        self.members[member as usize] = Member::Missing;
        self.lost_blocks = self.count_lost();
        self.media_errors.retain(|error| error.0 != member);
        self.abandon();
        self.use_spares()
    }

    /// Abandons the running steps of rebuild and scrub; both continue with the same chunks.
    pub fn abandon(&mut self) {
        self.rebuild.running = None;
        self.rebuild_ahead = None;
        self.skipped.clear();
        self.scrub.running = None;
    }

    /// Adds a spare, which replaces a missing member if there is one.
    pub fn add_spare(&mut self) -> Condition {
        self.spares += 1;
        self.use_spares()
    }

    fn use_spares(&mut self) -> Condition {
        let condition = self.condition();
        if matches!(condition, Condition::Failed { .. }) {
            return condition;
        }
        for member in self.members.iter_mut().filter(|member| **member == Member::Missing) {
            if self.spares > 0 {
                self.spares -= 1;
                *member = Member::Rebuilding { chunks: 0 };
            }
        }
        condition
    }

    /// Condition now.
    pub fn condition(&self) -> Condition {
        let members = self.members.iter().filter(|member| **member != Member::Online).count() as u32;
        match (members, self.lost_blocks) {
            (0, _) => Condition::Optimal,
            (_, 0) => Condition::Degraded { members },
            (_, blocks) => Condition::Failed { blocks },
        }
    }

    /// Counts the lost blocks. The cost grows with the number of chunks if more members are missing
    /// than the level tolerates for any of its stripes.
    fn count_lost(&self) -> u64 {
        let members = self.members.iter().filter(|member| **member != Member::Online).count() as u32;
        let mut lost = 0;
        if members > self.tolerated() {
            self.lost(|_, blocks| lost += blocks);
        }
        lost
    }

    /// Members that can be missing without a loss, whichever they are.
    fn tolerated(&self) -> u32 {
        self.parity_group(0).map_or(self.geometry.copies() - 1, |(_, parities)| parities)
    }

    /// Passes the first block and the number of blocks of each lost range of the array to `range`,
    /// in the order of addresses. Media errors do not count; see [`Array::media_error`].
    pub fn lost(&self, mut range: impl FnMut(u64, u64)) {
        let chunk_blocks = u64::from(self.geometry.chunk_blocks());
        let mut open: Option<(u64, u64)> = None;
        for chunk in 0..self.geometry.blocks() / chunk_blocks {
            if self.is_readable(chunk) {
                continue;
            }
            open = match open {
                Some((first, count)) if first + count == chunk => Some((first, count + 1)),
                previous => {
                    previous.into_iter().for_each(|(first, count)| range(first * chunk_blocks, count * chunk_blocks));
                    Some((chunk, 1))
                }
            };
        }
        open.into_iter().for_each(|(first, count)| range(first * chunk_blocks, count * chunk_blocks));
    }

    fn is_readable(&self, chunk: u64) -> bool {
        let has_copy = (0..self.geometry.copies()).any(|copy| {
            let (member, row) = self.geometry.place(chunk, copy);
            self.members[member as usize].is_usable(row)
        });
        let (member, row) = self.geometry.place(chunk, 0);
        has_copy || self.parity_group(member).is_some_and(|(group, parities)| self.missing(group, row) <= parities)
    }

    /// Members of the parity group of a member, and the number of its parities.
    fn parity_group(&self, member: u32) -> Option<(std::ops::Range<u32>, u32)> {
        let stripe = self.geometry.stripe(0)?;
        let parities = 1 + u32::from(stripe.layout.q.is_some());
        let size = stripe.layout.data() + parities;
        let first = member / size * size;
        Some((first..first + size, parities))
    }

    fn missing(&self, members: std::ops::Range<u32>, chunk: u64) -> u32 {
        members.filter(|member| !self.members[*member as usize].is_usable(chunk)).count() as u32
    }

    /// Number of parity stripes, or of chunks of a mirror.
    pub(super) fn stripes(&self) -> u64 {
        let size = self.geometry.stripe_blocks().unwrap_or(u64::from(self.geometry.chunk_blocks()));
        self.geometry.blocks() / size
    }

    pub(super) fn member_chunks(&self) -> u64 {
        self.geometry.member_blocks() / u64::from(self.geometry.chunk_blocks())
    }

    /// Earliest time of the next rebuild step in picoseconds; `None` if nothing is in rebuild, a
    /// step runs, or too few members hold the next chunks. `is_busy`: hosts use the array.
    pub fn next_rebuild_ps(&self, is_busy: bool) -> Option<u64> {
        let (base, chunk, end) = self.rebuild_window()?;
        let has_sources = self
            .rebuild_targets(base)
            .all(|target| (chunk..end).all(|chunk| self.each_source(target, chunk, |_, _| false, |_, _| {})));
        has_sources.then(|| self.rebuild.next_ps(self.rate(is_busy)))
    }

    /// Progress of the members of the next rebuild step, its first chunk, and the chunk behind its
    /// last.
    fn rebuild_window(&self) -> Option<(u64, u64, u64)> {
        let progress = self.members.iter().filter_map(|member| match member {
            Member::Rebuilding { chunks } => Some(*chunks),
            _ => None,
        });
        let (base, chunk) = match self.rebuild.running {
            None => progress.clone().min().map(|chunk| (chunk, chunk))?,
            Some(step) if self.reads_ahead && self.rebuild_ahead.is_none() => (step.chunk, step.chunk + step.chunks),
            Some(_) => return None,
        };
        let next = progress.filter(|chunks| *chunks > base).min().unwrap_or(self.member_chunks());
        (chunk < next).then(|| (base, chunk, self.window_end(chunk).min(next)))
    }

    /// Members whose rebuild has come to a chunk.
    fn rebuild_targets(&self, chunk: u64) -> impl Iterator<Item = u32> {
        let state = Member::Rebuilding { chunks: chunk };
        (0..self.geometry.members()).filter(move |target| self.members[*target as usize] == state)
    }

    /// The chunk behind the window that starts at a chunk. An I/O over the window fits its type.
    pub(super) fn window_end(&self, chunk: u64) -> u64 {
        let most = u64::from(u32::MAX / self.geometry.chunk_blocks());
        chunk.saturating_add(self.limits.window_chunks.clamp(1, most)).min(self.member_chunks())
    }

    pub(super) fn rate(&self, is_busy: bool) -> u64 {
        if is_busy { self.limits.minimum } else { self.limits.maximum }
    }

    /// Starts the next rebuild step if the limits allow it at this time. `ios` receives the reads
    /// of the survivors and the writes of the members in rebuild.
    ///
    /// Members with the same progress are rebuilt together. If data of these chunks are lost, the
    /// rebuild stays where it is, because a rebuilt member would hide the loss.
    ///
    /// A chunk that media errors of its sources make impossible to compute is skipped and counted
    /// in [`Step::lost_chunks`]; at the end of the step, its blocks become media errors of the
    /// member in rebuild. `ios` must be empty, and stays so if all chunks of the step are skipped
    /// or unused.
    pub fn start_rebuild(&mut self, now_ps: u64, is_busy: bool, ios: &mut Vec<MemberIo>) -> Option<Step> {
        if now_ps < self.next_rebuild_ps(is_busy)? {
            return None;
        }
        let (base, chunk, end) = self.rebuild_window()?;
        let blocks = u64::from(self.geometry.chunk_blocks());
        let is_bad = |member, row| !self.is_chunk_readable(member, row);
        let mut skipped = Vec::new();
        for target in self.rebuild_targets(base) {
            for chunk in chunk..end {
                if self.each_source(target, chunk, is_bad, |member, row| self.push(Phase::Read, member, row, ios)) {
                    self.push(Phase::Write, target, chunk, ios);
                } else {
                    skipped.push((target, chunk));
                }
            }
        }
        let step = Step { lost_chunks: skipped.len() as u64, ..self.next_step(Pass::Rebuild, chunk, end) };
        self.skipped.extend(skipped.into_iter().map(|(member, chunk)| (step.number, member, chunk)));
        self.rebuild.last = Some((now_ps, step.chunks * blocks));
        match self.rebuild.running {
            None => self.rebuild.running = Some(step),
            Some(_) => self.rebuild_ahead = Some(step),
        }
        Some(step)
    }

    pub(super) fn next_step(&mut self, pass: Pass, chunk: u64, end: u64) -> Step {
        self.steps += 1;
        Step { number: self.steps, pass, chunk, chunks: end - chunk, lost_chunks: 0 }
    }

    /// Ends the older running rebuild step. Rebuilt chunks are used from now on. A step that failed
    /// is repeated, and the one behind it is abandoned. An abandoned one has no effect.
    pub fn end_rebuild(&mut self, step: Step, is_done: bool) {
        if self.rebuild.running != Some(step) {
            return;
        }
        self.rebuild.running = self.rebuild_ahead.take();
        if !is_done {
            self.rebuild.running = None;
            self.skipped.clear();
            return;
        }
        let end = step.chunk + step.chunks;
        let whole = self.member_chunks();
        for member in &mut self.members {
            if *member == (Member::Rebuilding { chunks: step.chunk }) {
                *member = if end == whole { Member::Online } else { Member::Rebuilding { chunks: end } };
            }
        }
        let blocks = u64::from(self.geometry.chunk_blocks());
        let mut skipped = std::mem::take(&mut self.skipped);
        for &(_, member, chunk) in skipped.iter().filter(|(number, ..)| *number == step.number) {
            (chunk * blocks..(chunk + 1) * blocks).for_each(|lba| self.add_media_error(member, lba));
        }
        skipped.retain(|(number, ..)| *number != step.number);
        self.skipped = skipped;
    }

    /// Passes the member and chunk of each read that computes one chunk of a member to `source`,
    /// without chunks for which `is_bad` holds. Returns `false`, and passes nothing, if the chunk
    /// cannot be computed.
    pub(super) fn each_source(
        &self,
        target: u32,
        chunk: u64,
        is_bad: impl Fn(u32, u64) -> bool,
        mut source: impl FnMut(u32, u64),
    ) -> bool {
        let is_source = |member: u32, row: u64| {
            member != target && self.members[member as usize].is_usable(row) && !is_bad(member, row)
        };
        if let Some((group, parities)) = self.parity_group(target) {
            let sources = group.clone().filter(|member| is_source(*member, chunk));
            if (sources.clone().count() as u32) < group.end - group.start - parities {
                return false;
            }
            sources.for_each(|member| source(member, chunk));
            return true;
        }
        let Some(Content::Data { chunk: number, .. }) = self.geometry.content(target, chunk) else { return true };
        let mut places = (0..self.geometry.copies()).map(|copy| self.geometry.place(number, copy));
        let found = places.find(|&(member, row)| is_source(member, row));
        found.into_iter().for_each(|(member, row)| source(member, row));
        found.is_some()
    }

    /// Appends the I/O of a whole chunk, or extends one that ends where the chunk starts. Chunks
    /// that the array does not use have no I/O.
    pub(super) fn push(&self, phase: Phase, member: u32, chunk: u64, ios: &mut Vec<MemberIo>) {
        let Some(stripe) = self.stripe_of(member, chunk) else { return };
        let blocks = self.geometry.chunk_blocks();
        let lba = chunk * u64::from(blocks);
        let end = lba + u64::from(blocks);
        let extends = |io: &MemberIo| {
            io.phase == phase
                && io.member == member
                && (io.lba..=io.lba + u64::from(io.blocks)).contains(&lba)
                && end - io.lba <= u64::from(u32::MAX)
        };
        match ios.iter_mut().find(|io| extends(io)) {
            Some(io) => io.blocks = io.blocks.max((end - io.lba) as u32),
            None => ios.push(MemberIo { stripe, phase, member, lba, blocks }),
        }
    }

    /// Parity stripe, or chunk of a mirror, of a chunk of a member; `None` if the chunk is not
    /// used.
    pub(super) fn stripe_of(&self, member: u32, chunk: u64) -> Option<u64> {
        let chunk_blocks = u64::from(self.geometry.chunk_blocks());
        Some(match self.geometry.content(member, chunk)? {
            Content::Data { chunk, .. } => {
                self.geometry.stripe_blocks().map_or(chunk, |blocks| chunk / (blocks / chunk_blocks))
            }
            Content::P { stripe } | Content::Q { stripe } => stripe,
        })
    }
}

pub(super) fn is_rebuilding(member: Member) -> bool {
    matches!(member, Member::Rebuilding { .. })
}
