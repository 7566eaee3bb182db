//! Repair of media errors, and scrub of an array.

use super::array::{Array, Pace, Pass, Step, is_rebuilding};
use super::plan::{Member, MemberIo, Phase};

/// Blocks that md counts as one mismatch of a scrub.
const MISMATCH_BLOCKS: u32 = 128;

/// Members and their chunks.
type Places = Vec<(u32, u64)>;

impl Array {
    /// Makes a block of a member unreadable: a latent sector error. A scrub that repairs the block
    /// clears it. After a write, the caller calls [`Array::clear_media_errors`].
    pub fn add_media_error(&mut self, member: u32, lba: u64) {
        if let Err(at) = self.media_errors.binary_search(&(member, lba)) {
            self.media_errors.insert(at, (member, lba));
        }
    }

    /// Returns the first unreadable block that a read of a member meets.
    pub fn media_error(&self, member: u32, lba: u64, blocks: u32) -> Option<u64> {
        let at = self.media_errors.partition_point(|error| *error < (member, lba));
        let found = self.media_errors.get(at).filter(|error| error.0 == member)?;
        (found.1 < lba + u64::from(blocks)).then_some(found.1)
    }

    /// Clears the errors of blocks that were written.
    pub fn clear_media_errors(&mut self, member: u32, lba: u64, blocks: u32) {
        let range = lba..lba + u64::from(blocks);
        self.media_errors.retain(|error| error.0 != member || !range.contains(&error.1));
    }

    /// Appends the repair of each latent error in the chunks of a scrub step. Errors without enough
    /// redundancy stay.
    fn repair_media_errors(&mut self, step: Step, ios: &mut Vec<MemberIo>) {
        let chunk_blocks = u64::from(self.geometry.chunk_blocks());
        let chunks = step.chunk..step.chunk + step.chunks;
        let mut left = self.media_errors.clone();
        left.retain(|(member, lba)| !chunks.contains(&(lba / chunk_blocks)) || !self.repair(*member, *lba, 1, ios));
        self.media_errors = left;
    }

    /// Appends the reads of other members and the write that repair blocks with a media error.
    /// The blocks are within one chunk. Members with an error in the same rows are not read.
    /// Returns `false`, and appends nothing, if too few are left, the member does not hold the
    /// chunk, or the array does not use it.
    pub fn repair(&self, member: u32, lba: u64, blocks: u32, ios: &mut Vec<MemberIo>) -> bool {
        let chunk_blocks = u64::from(self.geometry.chunk_blocks());
        let (chunk, offset) = (lba / chunk_blocks, lba % chunk_blocks);
        let is_usable = self.members[member as usize].is_usable(chunk);
        let Some(stripe) = self.stripe_of(member, chunk).filter(|_| is_usable) else { return false };
        let mut whole = Vec::new();
        let is_bad = |member, row| self.media_error(member, row * chunk_blocks + offset, blocks).is_some();
        if !self.each_source(member, chunk, is_bad, |member, row| self.push(Phase::Read, member, row, &mut whole)) {
            return false;
        }
        ios.extend(whole.into_iter().map(|io| MemberIo { lba: io.lba + offset, blocks, ..io }));
        ios.push(MemberIo { stripe, phase: Phase::Write, member, lba, blocks });
        true
    }

    /// Starts a scrub from the first chunk. A rebuild has precedence, so steps begin after it.
    pub fn scrub(&mut self, pass: Pass) {
        self.resync_rest.clear();
        self.scrub_at = Some((pass, 0, self.member_chunks()));
        self.scrub = Pace::NEW;
        self.mismatches = 0;
    }

    /// Starts a repair of ranges of chunks, first chunk and chunk behind the last, after a crash. A
    /// running scrub ends.
    pub fn resync(&mut self, mut ranges: Vec<(u64, u64)>) {
        ranges.reverse();
        self.resync_rest = ranges;
        self.scrub_at = self.resync_rest.pop().map(|(chunk, end)| (Pass::Repair, chunk, end));
        self.scrub = Pace::NEW;
        self.mismatches = 0;
    }

    /// Earliest time of the next scrub step in picoseconds; `None` if there is no scrub, a step
    /// runs, or a rebuild has precedence. `is_busy`: hosts use the array.
    pub fn next_scrub_ps(&self, is_busy: bool) -> Option<u64> {
        self.scrub_at?;
        let must_wait = self.scrub.running.is_some() || self.members.iter().any(|member| is_rebuilding(*member));
        (!must_wait).then(|| self.scrub.next_ps(self.rate(is_busy)))
    }

    /// Fraction of the members behind the scrub; `None` if there is none. For a resync, this is its
    /// position.
    pub fn scrubbed(&self) -> Option<f64> {
        self.scrub_at.map(|(_, chunk, _)| chunk as f64 / self.member_chunks().max(1) as f64)
    }

    /// Number of latent sector errors in blocks.
    pub fn media_errors(&self) -> u64 {
        self.media_errors.len() as u64
    }

    /// Marks the redundancy of a stripe as right again, after a write of all of it.
    pub fn clear_inconsistent(&mut self, stripe: u64) {
        if let Ok(at) = self.inconsistent.binary_search(&stripe) {
            self.inconsistent.remove(at);
        }
    }

    /// Returns the chunk on the members at which a parity stripe, or a chunk of a mirror, begins.
    pub fn row(&self, stripe: u64) -> u64 {
        match self.geometry.stripe(stripe) {
            Some(place) => place.member_lba / u64::from(self.geometry.chunk_blocks()),
            None => self.geometry.place(stripe, 0).1,
        }
    }

    /// Mismatches that the last scrub has found so far, in units of 128 blocks as md counts them.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Marks the redundancy of a parity stripe, or of a chunk of a mirror, as wrong.
    pub fn set_inconsistent(&mut self, stripe: u64) {
        if let Err(at) = self.inconsistent.binary_search(&stripe) {
            self.inconsistent.insert(at, stripe);
        }
    }

    /// Parity stripes, or chunks of a mirror, whose redundancy is wrong, in ascending order.
    pub fn inconsistent(&self) -> &[u64] {
        &self.inconsistent
    }

    /// Starts the next scrub step if the limits allow it. `ios` receives a read of each member.
    pub fn start_scrub(&mut self, now_ps: u64, is_busy: bool, ios: &mut Vec<MemberIo>) -> Option<Step> {
        if now_ps < self.next_scrub_ps(is_busy)? {
            return None;
        }
        let (pass, chunk, last) = self.scrub_at?;
        let end = self.window_end(chunk).min(last);
        for member in (0..self.geometry.members()).filter(|member| self.members[*member as usize] == Member::Online) {
            (chunk..end).for_each(|chunk| self.push(Phase::Read, member, chunk, ios));
        }
        let step = self.next_step(pass, chunk, end);
        let blocks = step.chunks * u64::from(self.geometry.chunk_blocks());
        self.scrub = Pace { last: Some((now_ps, blocks)), running: Some(step) };
        Some(step)
    }

    /// Ends a scrub step. `ios` receives the reads and writes that repair latent errors and, if the
    /// pass is [`Pass::Repair`], the writes that correct wrong redundancy. Redundancy stays wrong
    /// if it, or what it is computed from, is on a member that does not hold it, or has a media
    /// error in a source. An abandoned step has no effect.
    pub fn end_scrub(&mut self, step: Step, ios: &mut Vec<MemberIo>) {
        if self.scrub.running != Some(step) {
            return;
        }
        self.scrub.running = None;
        self.repair_media_errors(step, ios);
        let end = step.chunk + step.chunks;
        let mut found = std::mem::take(&mut self.inconsistent);
        found.retain(|&stripe| {
            let (chunk, sources, targets) = self.redundancy(stripe);
            let is_in_step = step.chunk <= chunk && chunk < end;
            if is_in_step {
                self.mismatches += u64::from(self.geometry.chunk_blocks().div_ceil(MISMATCH_BLOCKS));
            }
            let is_repaired = is_in_step
                && step.pass == Pass::Repair
                && sources
                    .iter()
                    .chain(&targets)
                    .all(|&(member, chunk)| self.members[member as usize].is_usable(chunk))
                && sources.iter().all(|&(member, chunk)| self.is_chunk_readable(member, chunk));
            if is_repaired {
                targets.iter().for_each(|(member, chunk)| self.push(Phase::Write, *member, *chunk, ios));
            }
            !is_repaired
        });
        self.inconsistent = found;
        let last = self.scrub_at.map_or(end, |(_, _, last)| last);
        self.scrub_at = if end < last {
            Some((step.pass, end, last))
        } else {
            self.resync_rest.pop().map(|(chunk, end)| (Pass::Repair, chunk, end))
        };
    }

    /// First chunk row of a stripe, and the members and chunks that hold its data and its
    /// redundancy.
    fn redundancy(&self, stripe: u64) -> (u64, Places, Places) {
        if let Some(place) = self.geometry.stripe(stripe) {
            let chunk = place.member_lba / u64::from(self.geometry.chunk_blocks());
            let at = |member| (place.first_member + member, chunk);
            let data = (0..place.layout.data()).map(|index| at(place.layout.member(index)));
            let parities = std::iter::once(place.layout.p).chain(place.layout.q);
            return (chunk, data.collect(), parities.map(at).collect());
        }
        let first = self.geometry.place(stripe, 0);
        let copies = (1..self.geometry.copies()).map(|copy| self.geometry.place(stripe, copy));
        (first.1, vec![first], copies.collect())
    }

    /// Returns whether a chunk of a member has no media error.
    pub(super) fn is_chunk_readable(&self, member: u32, chunk: u64) -> bool {
        let blocks = self.geometry.chunk_blocks();
        self.media_error(member, chunk * u64::from(blocks), blocks).is_none()
    }
}
