//! Plans of member reads and writes: costs by hand, and random runs on arrays with contents.

use crate::raid_layouts::levels;
use proptest::prelude::*;
use sanloom_storage::raid::{Content, Geometry, Level, Member, Method, Phase, Plan, Role};
use std::collections::BTreeMap;

fn geometry(level: Level, members: u32) -> Geometry {
    Geometry::new(level, members, 8, 8 * 24).expect("the geometry is valid")
}

/// Returns the number of reads, of writes, and the methods of a write.
fn cost(level: Level, members: u32, missing: &[usize], lba: u64, blocks: u32) -> (usize, usize, Vec<Method>) {
    let mut states = vec![Member::Online; members as usize];
    for &member in missing {
        states[member] = Member::Missing;
    }
    let mut plan = Plan::new();
    plan.write(&geometry(level, members), &states, lba, blocks);
    let reads = plan.ios.iter().filter(|io| io.phase == Phase::Read).count();
    (reads, plan.ios.len() - reads, plan.stripes.iter().map(|stripe| stripe.method).collect())
}

#[test]
fn small_writes_cost_what_the_levels_are_known_for() {
    assert_eq!(cost(Level::RAID0, 4, &[], 0, 1), (0, 1, vec![]));
    assert_eq!(cost(Level::RAID10, 4, &[], 0, 1), (0, 2, vec![]));
    assert_eq!(cost(Level::RAID5, 8, &[], 0, 1), (2, 2, vec![Method::ReadModifyWrite]));
    assert_eq!(cost(Level::RAID6, 10, &[], 0, 1), (3, 3, vec![Method::ReadModifyWrite]));
    // Two of seven data chunks: three reads, or five. Four of seven: five reads, or three.
    assert_eq!(cost(Level::RAID5, 8, &[], 0, 16), (3, 3, vec![Method::ReadModifyWrite]));
    assert_eq!(cost(Level::RAID5, 8, &[], 0, 32), (3, 5, vec![Method::ReconstructWrite]));
    assert_eq!(cost(Level::RAID6, 6, &[], 0, 8), (3, 3, vec![Method::ReconstructWrite]));
    assert_eq!(cost(Level::RAID5, 8, &[], 0, 56), (0, 8, vec![Method::FullStripe]));
    assert_eq!(cost(Level::RAID6, 6, &[], 0, 32), (0, 6, vec![Method::FullStripe]));
}

/// Small writes per second of a saturated array: each member I/O pair costs the mean access and one
/// revolution, and the busiest member decides.
fn small_writes_per_second(level: Level, members: u32, access_ms: f64, revolution_ms: f64) -> f64 {
    let geometry = Geometry::new(level, members, 128, 128 * 1_000).expect("the geometry is valid");
    let states = vec![Member::Online; members as usize];
    let (mut plan, mut busy_ms, mut state) = (Plan::new(), vec![0.0; members as usize], 1u64);
    let writes = 400_000;
    for _ in 0..writes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        plan.write(&geometry, &states, (state >> 20) % (geometry.blocks() / 8) * 8, 8);
        for io in &plan.ios {
            busy_ms[io.member as usize] += if io.phase == Phase::Read { access_ms } else { revolution_ms };
        }
    }
    f64::from(writes) * 1_000.0 / busy_ms.into_iter().fold(0.0, f64::max)
}

#[test]
fn small_write_throughput_is_that_of_one_access_and_one_revolution_per_member() {
    // Cheetah 9LP: the mean service time of random reads is E[S] = 8.91 ms; 10,045 rpm.
    let (access_ms, revolution_ms) = (8.91, 60_000.0 / 10_045.0);
    for (level, members, per_member) in [(Level::RAID5, 8, 33.6), (Level::RAID6, 10, 22.4)] {
        let found = small_writes_per_second(level, members, access_ms, revolution_ms) / f64::from(members);
        assert!((found / per_member - 1.0).abs() < 0.02, "{level:?}: {found} per member, not {per_member}");
    }
}

#[test]
fn a_warm_plan_allocates_nothing() {
    let (geometry, states, mut plan) = (geometry(Level::RAID6, 10), [Member::Online; 10], Plan::new());
    plan.write(&geometry, &states, 3, 500);
    let counted = allocation_counter::measure(|| {
        for lba in 0..200 {
            plan.write(&geometry, &states, lba * 5, 1 + lba as u32);
            plan.read(&geometry, &states, lba * 5, 1 + lba as u32, |_, _| 0);
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn degraded_writes_use_what_is_left() {
    // Left-symmetric stripe 0 of five members: 0 1 2 3 P.
    assert_eq!(cost(Level::RAID5, 5, &[4], 0, 8), (0, 1, vec![Method::DataOnly]));
    assert_eq!(cost(Level::RAID5, 5, &[0], 0, 8), (3, 1, vec![Method::ReconstructWrite]));
    assert_eq!(cost(Level::RAID5, 5, &[3], 0, 8), (2, 2, vec![Method::ReadModifyWrite]));
    // Stripe 0 of six members: Q 0 1 2 3 P. Data 0 is written, data 0 and 1 are missing.
    assert_eq!(cost(Level::RAID6, 6, &[1, 2], 0, 8), (4, 2, vec![Method::ReconstructLost]));
    assert_eq!(cost(Level::RAID5, 5, &[0, 1], 0, 8), (0, 0, vec![]));
}

#[test]
fn a_degraded_read_doubles_the_load_of_the_survivors() {
    let geometry = geometry(Level::RAID5, 5);
    let mut states = [Member::Online; 5];
    states[2] = Member::Missing;
    let (mut plan, mut loads) = (Plan::new(), [0u32; 5]);
    for chunk in 0..5 * 4 {
        plan.read(&geometry, &states, chunk * 8, 8, |_, _| 0);
        for io in &plan.ios {
            loads[io.member as usize] += 1;
        }
    }
    assert_eq!(loads, [8, 8, 0, 8, 8], "each member holds 4 of the 20 data chunks");
}

#[test]
fn the_cheapest_copy_is_read_and_pieces_of_one_member_merge() {
    let geometry = geometry(Level::RAID10, 4);
    let mut plan = Plan::new();
    plan.read(&geometry, &[Member::Online; 4], 0, 32, |member, _| u64::from(3 - member));
    let found: Vec<(u32, u64, u32)> = plan.ios.iter().map(|io| (io.member, io.lba, io.blocks)).collect();
    assert_eq!(found, [(1, 0, 16), (3, 0, 16)]);
}

#[test]
fn a_write_over_a_chunk_boundary_is_planned_by_rows() {
    let mut plan = Plan::new();
    plan.write(&geometry(Level::RAID5, 8), &[Member::Online; 8], 4, 8);
    let bands: Vec<(u32, u32)> = plan.stripes.iter().map(|stripe| (stripe.row, stripe.rows)).collect();
    assert_eq!(bands, [(0, 4), (4, 4)]);
    // Old data of two members and the whole old parity chunk.
    let reads: Vec<(u32, u64, u32)> =
        plan.ios.iter().filter(|io| io.phase == Phase::Read).map(|io| (io.member, io.lba, io.blocks)).collect();
    assert_eq!(reads, [(1, 0, 4), (7, 0, 8), (0, 4, 4)]);
}

/// Product in GF(2^8) with the polynomial 11D, bit by bit.
pub fn product(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        sum ^= a * (b & 1);
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1D };
        b >>= 1;
    }
    sum
}

pub fn power(exponent: u32) -> u8 {
    (0..exponent).fold(1, |value, _| product(value, 2))
}

/// One row of a stripe: a byte per block.
struct Row {
    exponents: Vec<u32>,
    data: Vec<Option<u8>>,
    p: Option<u8>,
    q: Option<u8>,
}

impl Row {
    fn parity(&self) -> Option<(u8, u8)> {
        self.data.iter().zip(&self.exponents).try_fold((0, 0), |(p, q), (datum, exponent)| {
            datum.map(|datum| (p ^ datum, q ^ product(power(*exponent), datum)))
        })
    }

    /// Finds unknown data by trying all bytes: slow, and obviously right.
    fn solve(&mut self) -> bool {
        let unknown: Vec<usize> = (0..self.data.len()).filter(|&at| self.data[at].is_none()).collect();
        let equations = usize::from(self.p.is_some()) + usize::from(self.q.is_some());
        if unknown.len() > equations.min(2) {
            return false;
        }
        for guess in 0..1u32 << (8 * unknown.len()) {
            for (at, &index) in unknown.iter().enumerate() {
                self.data[index] = Some((guess >> (8 * at)) as u8);
            }
            let (p, q) = self.parity().expect("all data are known");
            if self.p.is_none_or(|known| known == p) && self.q.is_none_or(|known| known == q) {
                return true;
            }
        }
        false
    }
}

/// An array whose blocks are single bytes.
pub struct Array {
    geometry: Geometry,
    states: Vec<Member>,
    /// Bytes of each member.
    pub contents: Vec<Vec<u8>>,
    /// Bytes of the array.
    pub truth: Vec<u8>,
    plan: Plan,
}

type Known = BTreeMap<(u32, u64), u8>;

impl Array {
    /// Creates an array of zeros.
    pub fn new(geometry: Geometry) -> Array {
        let zeros = vec![0; geometry.member_blocks() as usize];
        Array {
            geometry,
            states: vec![Member::Online; geometry.members() as usize],
            contents: vec![zeros; geometry.members() as usize],
            truth: vec![0; geometry.blocks() as usize],
            plan: Plan::new(),
        }
    }

    fn chunk(&self) -> u64 {
        u64::from(self.geometry.chunk_blocks())
    }

    /// Blocks that the plan reads.
    fn known(&self) -> Known {
        let reads = self.plan.ios.iter().filter(|io| io.phase == Phase::Read);
        let blocks = reads.flat_map(|io| (0..u64::from(io.blocks)).map(move |at| (io.member, io.lba + at)));
        let mut known = Known::new();
        for (member, lba) in blocks {
            let is_valid = self.states[member as usize].is_usable(lba / self.chunk());
            assert!(is_valid, "read of invalid block {lba} of member {member}");
            assert!(known.insert((member, lba), self.contents[member as usize][lba as usize]).is_none(), "read twice");
        }
        known
    }

    /// Stripe, index of the data chunk and row of a block of a parity array.
    fn position(&self, lba: u64) -> (u64, usize, u64) {
        let stripe_blocks = self.geometry.stripe_blocks().expect("an array with parity");
        let offset = lba % stripe_blocks;
        (lba / stripe_blocks, (offset / self.chunk()) as usize, offset % self.chunk())
    }

    fn row(&self, stripe: u64, row: u64, mut value: impl FnMut(u32, u64) -> Option<u8>) -> Row {
        let stripe = self.geometry.stripe(stripe).expect("an array with parity");
        let mut at = |member: u32| value(stripe.first_member + member, stripe.member_lba + row);
        let layout = stripe.layout;
        Row {
            exponents: (0..layout.data()).map(|index| layout.exponent(index)).collect(),
            data: (0..layout.data()).map(|index| at(layout.member(index))).collect(),
            p: at(layout.p),
            q: layout.q.and_then(&mut at),
        }
    }

    fn read(&mut self, lba: u64, blocks: u32) {
        self.plan.read(&self.geometry, &self.states, lba, blocks, |member, lba| u64::from(member) * 7 % 5 + lba % 3);
        assert_eq!(self.plan.lost, []);
        let known = self.known();
        for lba in lba..lba + u64::from(blocks) {
            let value = if self.geometry.stripe_blocks().is_some() {
                let (stripe, index, row) = self.position(lba);
                let mut row = self.row(stripe, row, |member, lba| known.get(&(member, lba)).copied());
                if row.data[index].is_none() {
                    assert!(row.solve(), "block {lba} cannot be computed");
                }
                row.data[index]
            } else {
                let places = (0..self.geometry.copies()).map(|copy| self.geometry.place(lba / self.chunk(), copy));
                let chunk = self.chunk();
                places.filter_map(|(member, row)| known.get(&(member, row * chunk + lba % chunk)).copied()).next()
            };
            assert_eq!(value, Some(self.truth[lba as usize]), "block {lba}");
        }
    }

    /// Writes one byte for each block.
    pub fn write(&mut self, lba: u64, data: &[u8]) {
        self.plan.write(&self.geometry, &self.states, lba, data.len() as u32);
        assert_eq!(self.plan.lost, []);
        let known = self.known();
        let range = lba as usize..lba as usize + data.len();
        self.truth[range.clone()].copy_from_slice(data);
        let mut values = Known::new();
        if self.geometry.stripe_blocks().is_some() {
            let mut rows: BTreeMap<(u64, u64), BTreeMap<usize, u8>> = BTreeMap::new();
            for (at, byte) in range.zip(data) {
                let (stripe, index, row) = self.position(at as u64);
                rows.entry((stripe, row)).or_default().insert(index, *byte);
            }
            for ((stripe, row), new) in rows {
                self.new_row(stripe, row, &new, &known, &mut values);
            }
        } else {
            for (at, byte) in range.zip(data) {
                for copy in 0..self.geometry.copies() {
                    let (member, row) = self.geometry.place(at as u64 / self.chunk(), copy);
                    values.insert((member, row * self.chunk() + at as u64 % self.chunk()), *byte);
                }
            }
        }
        for io in self.plan.ios.iter().filter(|io| io.phase == Phase::Write) {
            for lba in io.lba..io.lba + u64::from(io.blocks) {
                let value = values.remove(&(io.member, lba)).expect("the plan writes what is known and changed");
                self.contents[io.member as usize][lba as usize] = value;
            }
        }
        for (member, lba) in values.keys() {
            let state = self.states[*member as usize];
            assert_ne!(state, Member::Online, "block {lba} of member {member} is not written");
        }
    }

    /// Computes a row after a write from the blocks that the plan reads, in one of three ways.
    fn new_row(&self, stripe: u64, row: u64, new: &BTreeMap<usize, u8>, known: &Known, values: &mut Known) {
        let mut old = self.row(stripe, row, |member, lba| known.get(&(member, lba)).copied());
        let mut after = self.row(stripe, row, |member, lba| known.get(&(member, lba)).copied());
        new.iter().for_each(|(index, byte)| after.data[*index] = Some(*byte));
        let (p, q) = if let Some((p, q)) = after.parity() {
            (Some(p), Some(q))
        } else if new.keys().all(|index| old.data[*index].is_some()) {
            let difference = |scale: &dyn Fn(usize) -> u8| {
                new.iter()
                    .fold(0, |sum, (index, byte)| sum ^ product(scale(*index), byte ^ old.data[*index].unwrap_or(0)))
            };
            let exponents = &old.exponents;
            (old.p.map(|p| p ^ difference(&|_| 1)), old.q.map(|q| q ^ difference(&|index| power(exponents[index]))))
        } else if old.solve() {
            new.iter().for_each(|(index, byte)| old.data[*index] = Some(*byte));
            old.parity().map_or((None, None), |(p, q)| (Some(p), Some(q)))
        } else {
            (None, None)
        };
        let place = self.geometry.stripe(stripe).expect("an array with parity");
        let lba = place.member_lba + row;
        for (index, byte) in new {
            values.insert((place.first_member + place.layout.member(*index as u32), lba), *byte);
        }
        values.extend(p.map(|p| ((place.first_member + place.layout.p, lba), p)));
        values.extend(q.zip(place.layout.q).map(|(q, member)| ((place.first_member + member, lba), q)));
    }

    /// Content that a block of a member must have.
    fn expected(&self, member: u32, lba: u64) -> u8 {
        let (row, offset) = (lba / self.chunk(), lba % self.chunk());
        let parity = |stripe: u64| {
            let first = stripe * self.geometry.stripe_blocks().expect("an array with parity");
            let layout = self.geometry.stripe(stripe).expect("an array with parity").layout;
            (0..layout.data()).fold((0, 0), |(p, q), index| {
                let datum = self.truth[(first + u64::from(index) * self.chunk() + offset) as usize];
                (p ^ datum, q ^ product(power(layout.exponent(index)), datum))
            })
        };
        match self.geometry.content(member, row) {
            Some(Content::Data { chunk, .. }) => self.truth[(chunk * self.chunk() + offset) as usize],
            Some(Content::P { stripe }) => parity(stripe).0,
            Some(Content::Q { stripe }) => parity(stripe).1,
            None => 0,
        }
    }

    /// Fails a member if every part of the array stays readable, and spoils its content.
    pub fn fail(&mut self, member: usize) {
        let state = std::mem::replace(&mut self.states[member], Member::Missing);
        self.plan.read(&self.geometry, &self.states, 0, self.truth.len() as u32, |_, _| 0);
        if self.plan.lost.is_empty() {
            self.contents[member].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3).wrapping_add(91));
        } else {
            self.states[member] = state;
        }
    }

    /// Rebuilds up to this number of chunks of a member.
    pub fn rebuild(&mut self, member: usize, chunks: u64) {
        let from = match self.states[member] {
            Member::Online => return,
            Member::Rebuilding { chunks } => chunks,
            Member::Missing => 0,
        };
        let end = (from + chunks).min(self.geometry.member_blocks() / self.chunk());
        for lba in from * self.chunk()..end * self.chunk() {
            self.contents[member][lba as usize] = self.expected(member as u32, lba);
        }
        let is_whole = end * self.chunk() == self.geometry.member_blocks();
        self.states[member] = if is_whole { Member::Online } else { Member::Rebuilding { chunks: end } };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn planned_reads_suffice_and_every_read_returns_the_last_write(
        (level, members) in levels(),
        chunk in 1u32..5,
        steps in prop::collection::vec((0u8..10, any::<u16>(), 1usize..30, any::<u8>()), 1..60),
    ) {
        let geometry = Geometry::new(level, members, chunk, u64::from(chunk) * 6).expect("the geometry is valid");
        let mut array = Array::new(geometry);
        for (kind, at, length, byte) in steps {
            let lba = usize::from(at) % array.truth.len();
            let length = length.min(array.truth.len() - lba);
            match kind {
                0..5 => {
                    let data: Vec<u8> = (0..length).map(|at| byte.wrapping_mul(at as u8 * 2 + 1)).collect();
                    array.write(lba as u64, &data);
                }
                5..7 => array.read(lba as u64, length as u32),
                7 => array.fail(usize::from(at) % members as usize),
                _ => array.rebuild(usize::from(at) % members as usize, u64::from(byte % 4)),
            }
        }
        for member in 0..members {
            for lba in 0..geometry.member_blocks() {
                let is_valid = array.states[member as usize].is_usable(lba / array.chunk());
                if is_valid {
                    let found = array.contents[member as usize][lba as usize];
                    prop_assert_eq!(found, array.expected(member, lba), "member {} block {}", member, lba);
                }
            }
        }
        array.read(0, geometry.blocks() as u32);
    }
}

#[test]
fn roles_of_a_stripe_cover_its_members() {
    let geometry = geometry(Level::RAID6, 6);
    let stripe = geometry.stripe(3).expect("an array with parity");
    let parity = (0..6).filter(|member| !matches!(stripe.layout.role(*member), Role::Data(_))).count();
    assert_eq!(parity, 2);
}
