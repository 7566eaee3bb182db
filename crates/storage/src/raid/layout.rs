//! Layouts of parity, as the md driver of Linux numbers and draws them.

/// Place of P, Q and data on the members of a stripe.
///
/// The value is md's number of the layout. RAID 4 is RAID 5 with [`ParityLayout::ParityLast`].
/// Source: `raid5.h` and `md(4)` of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ParityLayout {
    /// P moves left from the last member; data are in the order of members.
    LeftAsymmetric = 0,
    /// P moves right from the first member; data are in the order of members.
    RightAsymmetric = 1,
    /// P moves left from the last member; data begin behind the parity. Default of md.
    LeftSymmetric = 2,
    /// P moves right from the first member; data begin behind the parity.
    RightSymmetric = 3,
    /// Parity is always on the first members.
    ParityFirst = 4,
    /// Parity is always on the last members.
    ParityLast = 5,
    /// RAID 6 of DDF: members as in `RightAsymmetric`. The exponent of a data chunk in Q is its
    /// member number.
    RotatingZeroRestart = 8,
    /// RAID 6 of DDF: as `LeftAsymmetric`, but the first stripe ends with P and Q. The exponent of
    /// a data chunk in Q is its member number.
    RotatingNRestart = 9,
    /// RAID 6 of DDF: as `LeftSymmetric`, but Q is before P. The exponent of a data chunk in Q is
    /// its member number.
    RotatingNContinue = 10,
    /// RAID 5 `LeftAsymmetric`, and Q on the last member.
    LeftAsymmetric6 = 16,
    /// RAID 5 `RightAsymmetric`, and Q on the last member.
    RightAsymmetric6 = 17,
    /// RAID 5 `LeftSymmetric`, and Q on the last member.
    LeftSymmetric6 = 18,
    /// RAID 5 `RightSymmetric`, and Q on the last member.
    RightSymmetric6 = 19,
    /// RAID 5 `ParityFirst`, and Q on the last member.
    ParityFirst6 = 20,
}

use ParityLayout as L;

impl ParityLayout {
    /// Layouts of RAID 5, with RAID 4 as the last.
    pub const RAID5: [ParityLayout; 6] =
        [L::LeftAsymmetric, L::RightAsymmetric, L::LeftSymmetric, L::RightSymmetric, L::ParityFirst, L::ParityLast];

    /// Layouts of RAID 6.
    pub const RAID6: [ParityLayout; 14] = [
        L::LeftAsymmetric,
        L::RightAsymmetric,
        L::LeftSymmetric,
        L::RightSymmetric,
        L::ParityFirst,
        L::ParityLast,
        L::RotatingZeroRestart,
        L::RotatingNRestart,
        L::RotatingNContinue,
        L::LeftAsymmetric6,
        L::RightAsymmetric6,
        L::LeftSymmetric6,
        L::RightSymmetric6,
        L::ParityFirst6,
    ];

    pub(super) fn is_for_raid6_only(self) -> bool {
        self as u8 >= L::RotatingZeroRestart as u8
    }

    fn is_ddf(self) -> bool {
        matches!(self, L::RotatingZeroRestart | L::RotatingNRestart | L::RotatingNContinue)
    }

    /// Returns the place of P and Q of a stripe of `members` members, `has_q` being RAID 6.
    pub fn stripe(self, members: u32, has_q: bool, stripe: u64) -> StripeLayout {
        let n = members;
        let turn = |of: u32| (stripe % u64::from(of)) as u32;
        let p = match self {
            L::LeftAsymmetric | L::LeftSymmetric | L::RotatingNContinue => n - 1 - turn(n),
            L::RightAsymmetric | L::RightSymmetric | L::RotatingZeroRestart => turn(n),
            L::RotatingNRestart => n - 1 - ((stripe + 1) % u64::from(n)) as u32,
            L::ParityFirst | L::ParityFirst6 => 0,
            L::ParityLast => n - 1 - u32::from(has_q),
            L::LeftAsymmetric6 | L::LeftSymmetric6 => n - 2 - turn(n - 1),
            L::RightAsymmetric6 | L::RightSymmetric6 => turn(n - 1),
        };
        let q = match self {
            _ if !has_q => None,
            L::RotatingNContinue => Some((p + n - 1) % n),
            _ if self as u8 >= L::LeftAsymmetric6 as u8 => Some(n - 1),
            _ => Some((p + 1) % n),
        };
        StripeLayout { layout: self, members, p, q }
    }
}

/// Content of one chunk of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Data chunk with this index, in the order of array addresses.
    Data(u32),
    /// Exclusive or of the data.
    P,
    /// Reed-Solomon syndrome of the data.
    Q,
}

/// Places of data and parity in one stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeLayout {
    layout: ParityLayout,
    members: u32,
    /// Member that holds P.
    pub p: u32,
    /// Member that holds Q, in RAID 6.
    pub q: Option<u32>,
}

impl StripeLayout {
    /// Number of data chunks.
    pub fn data(&self) -> u32 {
        self.members - 1 - u32::from(self.q.is_some())
    }

    /// Returns the first member of the data and the number of members in their circle, if data
    /// begin behind the parity.
    fn circle(&self) -> Option<(u32, u32)> {
        match self.layout {
            L::LeftSymmetric | L::RightSymmetric => Some((self.q.unwrap_or(self.p) + 1, self.members)),
            L::RotatingNContinue => Some((self.p + 1, self.members)),
            L::LeftSymmetric6 | L::RightSymmetric6 => Some((self.p + 1, self.members - 1)),
            _ => None,
        }
    }

    /// Returns the member that holds data chunk `index`.
    pub fn member(&self, index: u32) -> u32 {
        if let Some((first, members)) = self.circle() {
            return (first + index) % members;
        }
        let q = self.q.unwrap_or(self.p);
        let (low, high) = (self.p.min(q), self.p.max(q));
        let member = index + u32::from(index >= low);
        member + u32::from(low != high && member >= high)
    }

    /// Returns the content of a member's chunk.
    pub fn role(&self, member: u32) -> Role {
        if member == self.p {
            return Role::P;
        }
        if Some(member) == self.q {
            return Role::Q;
        }
        if let Some((first, members)) = self.circle() {
            return Role::Data((member + 2 * members - first) % members);
        }
        let before = u32::from(self.p < member) + u32::from(self.q.is_some_and(|q| q < member));
        Role::Data(member - before)
    }

    /// Returns the exponent of the generator with which data chunk `index` enters Q.
    ///
    /// The layouts of md count data members from the one behind Q. In the layouts of DDF, the
    /// exponent of a data chunk in Q is its member number. In RAID 5 the exponent has no use.
    pub fn exponent(&self, index: u32) -> u32 {
        let member = self.member(index);
        let Some(q) = self.q.filter(|_| !self.layout.is_ddf()) else { return member };
        let distance = |to: u32| (to + self.members - q - 1) % self.members;
        distance(member) - u32::from(distance(self.p) < distance(member))
    }
}
