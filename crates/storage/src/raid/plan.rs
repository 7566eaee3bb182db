//! Plans: the member reads and writes of one array request.

use super::geometry::{Geometry, Piece, Stripe};

/// State of a member for planning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Member {
    /// All blocks are valid.
    Online,
    /// The first `chunks` chunks are valid. Others are neither read nor written, because the
    /// rebuild will write them; a request that overlaps the window being rebuilt must wait.
    Rebuilding {
        /// Number of chunks that are rebuilt.
        chunks: u64,
    },
    /// No block is valid.
    Missing,
}

impl Member {
    /// Returns whether a chunk of the member is valid.
    pub fn is_usable(self, chunk: u64) -> bool {
        match self {
            Member::Online => true,
            Member::Rebuilding { chunks } => chunk < chunks,
            Member::Missing => false,
        }
    }
}

/// Round of an I/O. The writes of a stripe start when its reads have ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// First round.
    Read,
    /// Second round, or the only one.
    Write,
}

/// One read or write of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberIo {
    /// Parity stripe over all groups, or chunk of the array in a mirror, that holds the first
    /// block. In mirrors and background passes, the I/O may continue in others.
    pub stripe: u64,
    /// Round and direction.
    pub phase: Phase,
    /// Index of the member.
    pub member: u32,
    /// First block on the member.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
}

/// Way to serve one part of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// Data are read from their members.
    Read,
    /// Data of missing members are computed from the others.
    DegradedRead,
    /// All data are new; nothing is read.
    FullStripe,
    /// Old data and old parity are read; parity changes by the difference.
    ReadModifyWrite,
    /// The data that stay are read; parity is computed anew.
    ReconstructWrite,
    /// All survivors are read, because both new and staying data are on missing members.
    ReconstructLost,
    /// No parity is left to update.
    DataOnly,
}

/// Rows of a stripe that are served in one way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StripePlan {
    /// Parity stripe over all groups.
    pub stripe: u64,
    /// First row, in blocks from the start of the chunk.
    pub row: u32,
    /// Number of rows.
    pub rows: u32,
    /// Way to serve them.
    pub method: Method,
    /// A crash in the middle of the write may damage data that the write does not touch: parity is
    /// written while it stands in for an untouched chunk on a missing member.
    pub is_at_risk: bool,
}

/// Reads and writes of one array request. The buffers are reused from request to request.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    /// I/Os of members, grouped by stripe.
    pub ios: Vec<MemberIo>,
    /// Methods by stripe and rows; empty for mirrors.
    pub stripes: Vec<StripePlan>,
    /// Parts of the request that fail, because too few members hold the stripe. A write fails for
    /// all chunks of such a stripe, a read only for those on missing members.
    pub lost: Vec<Piece>,
    /// Chunks of a mirror that are written, in ascending order.
    pub(super) chunks: Vec<u64>,
    pieces: Vec<Piece>,
}

/// Rows of a stripe in which the same data chunks are touched.
#[derive(Clone, Copy, Debug)]
struct Band {
    row: u32,
    end: u32,
    first: u32,
    last: u32,
}

/// Members of the group of a stripe, as masks.
#[derive(Clone, Copy, Debug)]
struct Sets {
    touched: u64,
    untouched: u64,
    p: u64,
    q: u64,
    usable: u64,
}

impl Plan {
    /// Creates an empty plan.
    pub fn new() -> Plan {
        Plan::default()
    }

    fn clear(&mut self) {
        self.ios.clear();
        self.stripes.clear();
        self.lost.clear();
        self.chunks.clear();
        self.pieces.clear();
    }

    /// Plans a read of `blocks` blocks of 512 bytes from block `lba` of the array. The request must
    /// be inside the array. In a mirror, the copy with the lowest `cost(member, lba)` is read, and
    /// the first of equal ones; this `lba` is a block of the member. `members` has one state per
    /// member.
    pub fn read(
        &mut self,
        geometry: &Geometry,
        members: &[Member],
        lba: u64,
        blocks: u32,
        mut cost: impl FnMut(u32, u64) -> u64,
    ) {
        self.clear();
        if geometry.stripe_blocks().is_some() {
            self.each_band(geometry, lba, blocks, |plan, stripe, number, band| {
                plan.read_band(geometry, members, stripe, number, band);
            });
            return;
        }
        let usable =
            |piece: &Piece| members[piece.member as usize].is_usable(piece.lba / u64::from(geometry.chunk_blocks()));
        geometry.resolve(lba, blocks, &mut self.pieces);
        let copies = geometry.copies() as usize;
        for at in (0..self.pieces.len()).step_by(copies) {
            let pieces = &self.pieces[at..at + copies];
            let candidates = pieces.iter().filter(|piece| usable(piece));
            match candidates.min_by_key(|piece| cost(piece.member, piece.lba)).copied() {
                Some(piece) => self.push_piece(geometry, Phase::Read, piece),
                None => self.lost.push(self.pieces[at]),
            }
        }
    }

    /// Plans a write of `blocks` blocks of 512 bytes from block `lba` of the array. The request
    /// must be inside the array. `members` has one state per member.
    pub fn write(&mut self, geometry: &Geometry, members: &[Member], lba: u64, blocks: u32) {
        self.clear();
        if geometry.stripe_blocks().is_some() {
            self.each_band(geometry, lba, blocks, |plan, stripe, number, band| {
                plan.write_band(geometry, members, stripe, number, band);
            });
            return;
        }
        let usable =
            |piece: &Piece| members[piece.member as usize].is_usable(piece.lba / u64::from(geometry.chunk_blocks()));
        geometry.resolve(lba, blocks, &mut self.pieces);
        let copies = geometry.copies() as usize;
        for at in (0..self.pieces.len()).step_by(copies) {
            let mut is_stored = false;
            for copy in at..at + copies {
                let piece = self.pieces[copy];
                if usable(&piece) {
                    is_stored = true;
                    self.push_piece(geometry, Phase::Write, piece);
                }
            }
            if is_stored {
                self.chunks.push(self.pieces[at].array_lba / u64::from(geometry.chunk_blocks()));
            } else {
                self.lost.push(self.pieces[at]);
            }
        }
    }

    fn push_piece(&mut self, geometry: &Geometry, phase: Phase, piece: Piece) {
        let stripe = piece.array_lba / u64::from(geometry.chunk_blocks());
        let Piece { member, lba, blocks, .. } = piece;
        // Members take turns, so the previous I/O of this one is at most a row of copies back.
        let reach = (geometry.members() * geometry.copies()) as usize;
        let mut recent = self.ios.iter_mut().rev().take(reach);
        match recent.find(|io| io.member == member && io.lba + u64::from(io.blocks) == lba) {
            Some(io) => io.blocks += blocks,
            None => self.ios.push(MemberIo { stripe, phase, member, lba, blocks }),
        }
    }

    /// Divides a request into stripes, and each stripe into at most three bands.
    fn each_band(
        &mut self,
        geometry: &Geometry,
        lba: u64,
        blocks: u32,
        mut apply: impl FnMut(&mut Plan, Stripe, u64, Band),
    ) {
        let chunk = geometry.chunk_blocks();
        let stripe_blocks = geometry.stripe_blocks().unwrap_or(1);
        let end = lba + u64::from(blocks);
        let mut at = lba;
        while at < end {
            let number = at / stripe_blocks;
            let stripe_end = ((number + 1) * stripe_blocks).min(end);
            let (from, to) = (at - number * stripe_blocks, stripe_end - number * stripe_blocks - 1);
            at = stripe_end;
            let Some(stripe) = geometry.stripe(number) else { return };
            let (first, low) = ((from / u64::from(chunk)) as u32, (from % u64::from(chunk)) as u32);
            let (last, high) = ((to / u64::from(chunk)) as u32, (to % u64::from(chunk)) as u32 + 1);
            if first == last {
                apply(self, stripe, number, Band { row: low, end: high, first, last });
                continue;
            }
            let middle = if low < high {
                Band { row: low, end: high, first, last }
            } else {
                Band { row: high, end: low, first: first + 1, last: last - 1 }
            };
            let bands = [
                Band { row: 0, end: low.min(high), first: first + 1, last },
                middle,
                Band { row: low.max(high), end: chunk, first, last: last - 1 },
            ];
            for band in bands {
                if band.row < band.end && band.first <= band.last {
                    apply(self, stripe, number, band);
                }
            }
        }
    }

    fn read_band(&mut self, geometry: &Geometry, members: &[Member], stripe: Stripe, number: u64, band: Band) {
        let sets = sets(members, geometry, &stripe, band);
        let lost = (sets.touched | sets.untouched) & !sets.usable;
        let method = if sets.touched & !sets.usable == 0 { Method::Read } else { Method::DegradedRead };
        let reads = match method {
            Method::Read => sets.touched,
            _ => survivors(sets, lost).unwrap_or_else(|| {
                self.push_lost(geometry, stripe, number, band, sets.touched & lost);
                sets.touched & sets.usable
            }),
        };
        self.push_band(Phase::Read, &stripe, number, band, reads);
        self.push_stripe(number, band, method, false);
    }

    fn push_stripe(&mut self, stripe: u64, band: Band, method: Method, is_at_risk: bool) {
        self.stripes.push(StripePlan { stripe, row: band.row, rows: band.end - band.row, method, is_at_risk });
    }

    fn write_band(&mut self, geometry: &Geometry, members: &[Member], stripe: Stripe, number: u64, band: Band) {
        let sets = sets(members, geometry, &stripe, band);
        let Sets { touched, untouched, p, q, usable } = sets;
        let parity = (p | q) & usable;
        let lost = (touched | untouched) & !usable;
        if lost.count_ones() > parity.count_ones() {
            self.push_lost(geometry, stripe, number, band, touched);
            return;
        }
        let (modify, reconstruct) = (touched | parity, untouched);
        let can_modify = touched & lost == 0;
        let can_reconstruct = untouched & lost == 0;
        let (method, reads) = if untouched == 0 {
            (Method::FullStripe, 0)
        } else if parity == 0 {
            (Method::DataOnly, 0)
        } else if can_reconstruct && (!can_modify || reconstruct.count_ones() <= modify.count_ones()) {
            (Method::ReconstructWrite, reconstruct)
        } else if can_modify {
            (Method::ReadModifyWrite, modify)
        } else {
            (Method::ReconstructLost, survivors(sets, lost).unwrap_or(usable))
        };
        self.push_band(Phase::Read, &stripe, number, band, reads);
        self.push_band(Phase::Write, &stripe, number, band, (touched | p | q) & usable);
        self.push_stripe(number, band, method, parity != 0 && untouched & lost != 0);
    }

    /// Adds one I/O per member of a set. I/Os of the same stripe that touch become one.
    fn push_band(&mut self, phase: Phase, stripe: &Stripe, number: u64, band: Band, mut set: u64) {
        let blocks = band.end - band.row;
        let lba = stripe.member_lba + u64::from(band.row);
        while set != 0 {
            let member = stripe.first_member + set.trailing_zeros();
            set &= set - 1;
            let mut same = self.ios.iter_mut().rev().take_while(|io| io.stripe == number);
            let previous =
                same.find(|io| io.phase == phase && io.member == member && io.lba + u64::from(io.blocks) == lba);
            match previous {
                Some(io) => io.blocks += blocks,
                None => self.ios.push(MemberIo { stripe: number, phase, member, lba, blocks }),
            }
        }
    }

    /// Reports the rows of the data chunks on a set of members as lost.
    fn push_lost(&mut self, geometry: &Geometry, stripe: Stripe, number: u64, band: Band, set: u64) {
        let stripe_lba = number * geometry.stripe_blocks().unwrap_or(0);
        for index in band.first..=band.last {
            let member = stripe.layout.member(index);
            if set >> member & 1 == 0 {
                continue;
            }
            let offset = u64::from(index) * u64::from(geometry.chunk_blocks()) + u64::from(band.row);
            self.lost.push(Piece {
                member: stripe.first_member + member,
                lba: stripe.member_lba + u64::from(band.row),
                blocks: band.end - band.row,
                array_lba: stripe_lba + offset,
                copy: 0,
            });
        }
    }
}

fn sets(members: &[Member], geometry: &Geometry, stripe: &Stripe, band: Band) -> Sets {
    let layout = stripe.layout;
    let chunk = stripe.member_lba / u64::from(geometry.chunk_blocks());
    let p = 1 << layout.p;
    let q = layout.q.map_or(0, |q| 1 << q);
    let count = layout.data() + 1 + u32::from(q != 0);
    let group = &members[stripe.first_member as usize..(stripe.first_member + count) as usize];
    let usable = group.iter().enumerate().fold(0, |set, (at, member)| set | u64::from(member.is_usable(chunk)) << at);
    let touched = (band.first..=band.last).fold(0, |set, index| set | 1 << layout.member(index));
    let all = u64::MAX >> (64 - count);
    Sets { touched, untouched: all & !(touched | p | q), p, q, usable }
}

/// Returns the members to read in order to compute all data of the stripe: the data that are left,
/// and one parity per lost chunk, P first. `None` if too much is lost.
fn survivors(sets: Sets, lost: u64) -> Option<u64> {
    let mut reads = (sets.touched | sets.untouched) & sets.usable;
    let mut missing = lost.count_ones();
    for parity in [sets.p & sets.usable, sets.q & sets.usable] {
        if missing > 0 && parity != 0 {
            reads |= parity;
            missing -= 1;
        }
    }
    (missing == 0).then_some(reads)
}
