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
    /// Chunks of each member in one step.
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
    spares: u32,
    rebuild: Pace,
    pub(super) scrub: Pace,
    /// Kind and next chunk of the scrub.
    pub(super) scrub_at: Option<(Pass, u64)>,
    /// Parity stripes, or chunks of a mirror, whose redundancy is wrong; sorted.
    pub(super) inconsistent: Vec<u64>,
    pub(super) mismatches: u64,
    /// Member and block of each latent sector error; sorted.
    pub(super) media_errors: Vec<(u32, u64)>,
    steps: u64,
}

impl Array {
    /// Creates an array whose members are all online.
    pub fn new(geometry: Geometry, spares: u32, limits: SyncLimits) -> Array {
        Array {
            geometry,
            limits,
            members: vec![Member::Online; geometry.members() as usize],
            spares,
            rebuild: Pace::NEW,
            scrub: Pace::NEW,
            scrub_at: None,
            inconsistent: Vec::new(),
            mismatches: 0,
            media_errors: Vec::new(),
            steps: 0,
        }
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
        self.media_errors.retain(|error| error.0 != member);
        self.rebuild.running = None;
        self.scrub.running = None;
        self.use_spares()
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

    /// Condition now. The cost grows with the number of chunks unless all members are online.
    pub fn condition(&self) -> Condition {
        let members = self.members.iter().filter(|member| **member != Member::Online).count() as u32;
        if members == 0 {
            return Condition::Optimal;
        }
        let mut lost = 0;
        self.lost(|_, blocks| lost += blocks);
        if lost > 0 { Condition::Failed { blocks: lost } } else { Condition::Degraded { members } }
    }

    /// Passes the first block and the number of blocks of each lost range of the array to `range`,
    /// in the order of addresses.
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

    pub(super) fn member_chunks(&self) -> u64 {
        self.geometry.member_blocks() / u64::from(self.geometry.chunk_blocks())
    }

    /// Earliest time of the next rebuild step in picoseconds; `None` if nothing is in rebuild or a
    /// step runs. `is_busy`: hosts use the array.
    pub fn next_rebuild_ps(&self, is_busy: bool) -> Option<u64> {
        let can_start = self.rebuild.running.is_none() && self.members.iter().any(|member| is_rebuilding(*member));
        can_start.then(|| self.rebuild.next_ps(self.rate(is_busy)))
    }

    pub(super) fn rate(&self, is_busy: bool) -> u64 {
        if is_busy { self.limits.minimum } else { self.limits.maximum }
    }

    /// Starts the next rebuild step if the limits allow it at this time. `ios` receives the reads
    /// of the survivors and the writes of the members in rebuild.
    ///
    /// Members with the same progress are rebuilt together. If data of these chunks are lost, the
    /// rebuild stays where it is, because a rebuilt member would hide the loss. `ios` must be
    /// empty.
    pub fn start_rebuild(&mut self, now_ps: u64, is_busy: bool, ios: &mut Vec<MemberIo>) -> Option<Step> {
        if now_ps < self.next_rebuild_ps(is_busy)? {
            return None;
        }
        let progress = self.members.iter().filter_map(|member| match member {
            Member::Rebuilding { chunks } => Some(*chunks),
            _ => None,
        });
        let chunk = progress.clone().min()?;
        let next = progress.filter(|chunks| *chunks > chunk).min().unwrap_or(u64::MAX);
        let end = (chunk + self.limits.window_chunks.max(1)).min(next).min(self.member_chunks());
        let before = ios.len();
        for target in 0..self.geometry.members() {
            if self.members[target as usize] == (Member::Rebuilding { chunks: chunk }) {
                if !(chunk..end).all(|chunk| self.push_sources(target, chunk, |_, _| false, ios)) {
                    ios.truncate(before);
                    return None;
                }
                (chunk..end).for_each(|chunk| self.push(Phase::Write, target, chunk, ios));
            }
        }
        let step = self.next_step(Pass::Rebuild, chunk, end);
        let blocks = step.chunks * u64::from(self.geometry.chunk_blocks());
        self.rebuild = Pace { last: Some((now_ps, blocks)), running: Some(step) };
        Some(step)
    }

    pub(super) fn next_step(&mut self, pass: Pass, chunk: u64, end: u64) -> Step {
        self.steps += 1;
        Step { number: self.steps, pass, chunk, chunks: end - chunk }
    }

    /// Ends a rebuild step. Rebuilt chunks are used from now on. A step that failed is repeated,
    /// and an abandoned one has no effect.
    pub fn end_rebuild(&mut self, step: Step, is_done: bool) -> Condition {
        if self.rebuild.running != Some(step) {
            return self.condition();
        }
        self.rebuild.running = None;
        if is_done {
            let end = step.chunk + step.chunks;
            let whole = self.member_chunks();
            for member in &mut self.members {
                if *member == (Member::Rebuilding { chunks: step.chunk }) {
                    *member = if end == whole { Member::Online } else { Member::Rebuilding { chunks: end } };
                }
            }
        }
        self.condition()
    }

    /// Appends the reads that compute one chunk of a member, without chunks for which `is_bad`
    /// holds. Returns `false`, and appends nothing, if the chunk cannot be computed.
    pub(super) fn push_sources(
        &self,
        target: u32,
        chunk: u64,
        is_bad: impl Fn(u32, u64) -> bool,
        ios: &mut Vec<MemberIo>,
    ) -> bool {
        if let Some((group, parities)) = self.parity_group(target) {
            let is_source = |member: &u32| {
                *member != target && self.members[*member as usize].is_usable(chunk) && !is_bad(*member, chunk)
            };
            let all = group.end - group.start;
            if (group.clone().filter(is_source).count() as u32) < all - parities {
                return false;
            }
            group.filter(is_source).for_each(|member| self.push(Phase::Read, member, chunk, ios));
            return true;
        }
        let Some(Content::Data { chunk: number, .. }) = self.geometry.content(target, chunk) else { return true };
        let mut places = (0..self.geometry.copies()).map(|copy| self.geometry.place(number, copy));
        let source = places.find(|&(member, row)| {
            member != target && self.members[member as usize].is_usable(row) && !is_bad(member, row)
        });
        match source {
            Some((member, row)) => self.push(Phase::Read, member, row, ios),
            None => return false,
        }
        true
    }

    /// Appends the I/O of a whole chunk, or extends one that ends where it starts.
    pub(super) fn push(&self, phase: Phase, member: u32, chunk: u64, ios: &mut Vec<MemberIo>) {
        let blocks = self.geometry.chunk_blocks();
        let lba = chunk * u64::from(blocks);
        let same = |io: &MemberIo| io.phase == phase && io.member == member;
        match ios.iter_mut().find(|io| same(io) && io.lba <= lba && lba <= io.lba + u64::from(io.blocks)) {
            Some(io) => io.blocks = io.blocks.max((lba - io.lba) as u32 + blocks),
            None => ios.push(MemberIo { stripe: chunk, phase, member, lba, blocks }),
        }
    }
}

pub(super) fn is_rebuilding(member: Member) -> bool {
    matches!(member, Member::Rebuilding { .. })
}
