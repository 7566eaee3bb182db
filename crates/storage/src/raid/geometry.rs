//! Address maps of arrays: which blocks of which members hold a block of the array.

use super::layout::{ParityLayout, Role, StripeLayout};
use thiserror::Error;

/// Organisation of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// RAID 0, 1 and 10 in the layouts of md.
    Mirror {
        /// Adjacent copies: 1 is RAID 0, the number of members is RAID 1.
        near: u32,
        /// Distant copies; the number of copies is `near * far`.
        far: u32,
        /// A distant copy is in the next stripe, and not in the next part of the member.
        is_offset: bool,
    },
    /// RAID 4, 5 and 6, and RAID 50 and 60 with more than one group.
    Parity {
        /// Place of parity.
        layout: ParityLayout,
        /// RAID 6.
        has_q: bool,
        /// Number of equal groups of members. Whole stripes go to the groups in turn.
        groups: u32,
    },
}

impl Level {
    /// RAID 0.
    pub const RAID0: Level = Level::Mirror { near: 1, far: 1, is_offset: false };
    /// RAID 4: RAID 5 with parity on the last member.
    pub const RAID4: Level = Level::Parity { layout: ParityLayout::ParityLast, has_q: false, groups: 1 };
    /// RAID 5 in the default layout of md.
    pub const RAID5: Level = Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: false, groups: 1 };
    /// RAID 6 in the default layout of md.
    pub const RAID6: Level = Level::Parity { layout: ParityLayout::LeftSymmetric, has_q: true, groups: 1 };
    /// RAID 10 in the default layout of md: two near copies.
    pub const RAID10: Level = Level::Mirror { near: 2, far: 1, is_offset: false };

    /// RAID 1 with this number of members.
    pub const fn raid1(members: u32) -> Level {
        Level::Mirror { near: members, far: 1, is_offset: false }
    }
}

/// Contradiction between the level and the number of members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum GeometryError {
    /// Too few members, or more than 64.
    #[error("this level needs {0} to 64 members")]
    Members(u32),
    /// The members do not divide into the groups.
    #[error("the number of members must be a multiple of the number of groups")]
    Groups,
    /// The layout exists for RAID 6 only.
    #[error("this layout is for RAID 6 only")]
    Layout,
    /// The chunk is 0, or a member is smaller than one stripe.
    #[error("a chunk must have at least one block, and a member at least one chunk per far copy")]
    Size,
}

/// Part of an array request on one member. The blocks are contiguous on both sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// Index of the member, from 0.
    pub member: u32,
    /// First block on the member.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// First block of the array.
    pub array_lba: u64,
    /// Number of the copy in a mirror; 0 with parity.
    pub copy: u32,
}

/// Level, members and sizes of an array. Sizes are in blocks of 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    level: Level,
    members: u32,
    chunk_blocks: u32,
    /// Whole chunks of a member.
    member_chunks: u64,
}

impl Geometry {
    /// Creates an address map. Blocks of a member behind the last whole chunk are not used.
    ///
    /// # Errors
    ///
    /// The number of members or a size does not fit the level.
    pub fn new(level: Level, members: u32, chunk_blocks: u32, member_blocks: u64) -> Result<Geometry, GeometryError> {
        let member_chunks = member_blocks.checked_div(u64::from(chunk_blocks)).ok_or(GeometryError::Size)?;
        let (minimum, least_chunks) = match level {
            Level::Mirror { near, far, .. } => (near.saturating_mul(far).max(1), near.min(1) * far),
            Level::Parity { layout, has_q, groups } => {
                if layout.is_for_raid6_only() && !has_q {
                    return Err(GeometryError::Layout);
                }
                if groups == 0 || !members.is_multiple_of(groups) {
                    return Err(GeometryError::Groups);
                }
                (groups.saturating_mul(if has_q { 4 } else { 3 }), 1)
            }
        };
        if members < minimum || members > 64 {
            return Err(GeometryError::Members(minimum));
        }
        if least_chunks == 0 || member_chunks < u64::from(least_chunks) {
            return Err(GeometryError::Size);
        }
        Ok(Geometry { level, members, chunk_blocks, member_chunks })
    }

    /// Organisation of the array.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Number of members.
    pub fn members(&self) -> u32 {
        self.members
    }

    /// Size of a chunk in blocks.
    pub fn chunk_blocks(&self) -> u32 {
        self.chunk_blocks
    }

    /// Used size of a member in blocks.
    pub fn member_blocks(&self) -> u64 {
        self.member_chunks * u64::from(self.chunk_blocks)
    }

    /// Capacity of the array in blocks.
    pub fn blocks(&self) -> u64 {
        let chunks = match self.level {
            Level::Mirror { near, far, .. } => {
                self.member_chunks / u64::from(far) * u64::from(self.members) / u64::from(near)
            }
            Level::Parity { .. } => self.member_chunks * u64::from(self.data_per_row()),
        };
        chunks * u64::from(self.chunk_blocks)
    }

    /// Data chunks in one row of all members.
    fn data_per_row(&self) -> u32 {
        match self.level {
            Level::Mirror { .. } => self.members,
            Level::Parity { has_q, groups, .. } => self.members - groups * (1 + u32::from(has_q)),
        }
    }

    /// Number of copies of each block in a mirror; 1 with parity.
    pub fn copies(&self) -> u32 {
        match self.level {
            Level::Mirror { near, far, .. } => near * far,
            Level::Parity { .. } => 1,
        }
    }

    /// Data blocks of one parity stripe of one group; `None` for mirrors.
    pub fn stripe_blocks(&self) -> Option<u64> {
        match self.level {
            Level::Mirror { .. } => None,
            Level::Parity { groups, .. } => {
                Some(u64::from(self.data_per_row() / groups) * u64::from(self.chunk_blocks))
            }
        }
    }

    /// Returns a parity stripe; `None` for mirrors. Stripes are counted over all groups.
    pub fn stripe(&self, stripe: u64) -> Option<Stripe> {
        let Level::Parity { layout, has_q, groups } = self.level else { return None };
        let members = self.members / groups;
        let (row, group) = (stripe / u64::from(groups), (stripe % u64::from(groups)) as u32);
        Some(Stripe {
            layout: layout.stripe(members, has_q, row),
            first_member: group * members,
            member_lba: row * u64::from(self.chunk_blocks),
        })
    }

    /// Appends the pieces of an array request, in the order of addresses. In a mirror each part
    /// appears once per copy. The request must be inside the array.
    pub fn resolve(&self, lba: u64, blocks: u32, pieces: &mut Vec<Piece>) {
        let chunk_blocks = u64::from(self.chunk_blocks);
        let end = lba + u64::from(blocks);
        let mut at = lba;
        while at < end {
            let (chunk, offset) = (at / chunk_blocks, at % chunk_blocks);
            let blocks = (chunk_blocks - offset).min(end - at) as u32;
            for copy in 0..self.copies() {
                let (member, member_chunk) = self.place(chunk, copy);
                let lba = member_chunk * chunk_blocks + offset;
                pieces.push(Piece { member, lba, blocks, array_lba: at, copy });
            }
            at += u64::from(blocks);
        }
    }

    /// Returns the member, and the chunk on it, of a copy of a chunk of the array.
    pub fn place(&self, chunk: u64, copy: u32) -> (u32, u64) {
        let members = u64::from(self.members);
        match self.level {
            Level::Mirror { near, far, is_offset } => {
                let position = chunk * u64::from(near) + u64::from(copy % near);
                // The adjacent copies may continue on the next row.
                let (row, member) = (position / members, position % members);
                let distant = copy / near;
                let member = (member + u64::from(distant * near)) % members;
                let row = if is_offset {
                    row * u64::from(far) + u64::from(distant)
                } else {
                    row + u64::from(distant) * (self.member_chunks / u64::from(far))
                };
                (member as u32, row)
            }
            Level::Parity { groups, .. } => {
                let data = u64::from(self.data_per_row() / groups);
                let (stripe, index) = (chunk / data, (chunk % data) as u32);
                let row = stripe / u64::from(groups);
                self.stripe(stripe).map_or((0, 0), |stripe| (stripe.first_member + stripe.layout.member(index), row))
            }
        }
    }

    /// Returns the content of a chunk of a member; `None` if the chunk is not used.
    pub fn content(&self, member: u32, member_chunk: u64) -> Option<Content> {
        match self.level {
            Level::Mirror { near, far, is_offset } => {
                let (members, part) = (u64::from(self.members), self.member_chunks / u64::from(far));
                let (row, distant) = if is_offset {
                    (member_chunk / u64::from(far), (member_chunk % u64::from(far)) as u32)
                } else {
                    (member_chunk % part.max(1), (member_chunk / part.max(1)) as u32)
                };
                let shift = u64::from(distant * near) % members;
                let position = row * members + (u64::from(member) + members - shift) % members;
                let (chunk, copy) = (position / u64::from(near), (position % u64::from(near)) as u32);
                let is_used = distant < far && row < part && chunk < self.blocks() / u64::from(self.chunk_blocks);
                is_used.then_some(Content::Data { chunk, copy: distant * near + copy })
            }
            Level::Parity { groups, .. } => {
                let group_members = self.members / groups;
                let stripe = member_chunk * u64::from(groups) + u64::from(member / group_members);
                let layout = self.stripe(stripe)?.layout;
                let first = stripe * u64::from(layout.data());
                Some(match layout.role(member % group_members) {
                    Role::Data(index) => Content::Data { chunk: first + u64::from(index), copy: 0 },
                    Role::P => Content::P { stripe },
                    Role::Q => Content::Q { stripe },
                })
            }
        }
    }
}

/// Content of a chunk of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// A copy of a chunk of the array.
    Data {
        /// Number of the chunk in the array.
        chunk: u64,
        /// Number of the copy.
        copy: u32,
    },
    /// P of a stripe.
    P {
        /// Number of the stripe over all groups.
        stripe: u64,
    },
    /// Q of a stripe.
    Q {
        /// Number of the stripe over all groups.
        stripe: u64,
    },
}

/// A parity stripe on the members of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stripe {
    /// Places within the group; add `first_member` for members of the array.
    pub layout: StripeLayout,
    /// First member of the group.
    pub first_member: u32,
    /// First block of the stripe on each member.
    pub member_lba: u64,
}
