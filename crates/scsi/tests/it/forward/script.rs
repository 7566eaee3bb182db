//! The same script on a plain disk, the conventional path, the forwarding path, and a model in
//! memory.

use crate::forward::bed::{Bed, Setup, Shapes};
use crate::forward::disk::BLOCK;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::{Kept, Settings, front_offers};
use sanloom_scsi::iscsi::initiator::Outcome;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::map::Shape;
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::scsi::TaskManagement;
use sanloom_scsi::time::Span;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::iscsi::code::function;
use sanloom_wire::sense::{Sense, SenseKey};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Read,
    Write,
    /// Fewer bytes than the CDB requests.
    ReadShort,
    WriteShort,
    WriteSame,
    CompareAndWrite,
    Flush,
    BeyondTheEnd,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    what: What,
    lba: u64,
    blocks: u32,
    fill: u8,
}

impl Op {
    fn changes(&self) -> bool {
        matches!(self.what, What::Write | What::WriteShort | What::WriteSame | What::CompareAndWrite)
    }

    fn data(&self) -> Vec<u8> {
        (0..self.blocks as usize * BLOCK).map(|n| (n / 3) as u8 ^ self.fill).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disturbance {
    None,
    /// The host gives up after this many steps and aborts its commands in flight.
    Aborts(u32),
    /// LOGICAL UNIT RESET after this many steps.
    Reset(u32),
    /// Another function of the host after this many steps.
    Asks(u8, u32),
    /// A function of another host after this many steps.
    Another(TaskManagement, u32),
}

/// Functions that the host sends, apart from ABORT TASK and LOGICAL UNIT RESET.
const OWN: [u8; 4] = [function::ABORT_TASK_SET, function::CLEAR_TASK_SET, function::WARM_RESET, function::COLD_RESET];
const OTHERS: [TaskManagement; 3] =
    [TaskManagement::ClearTaskSet, TaskManagement::LunReset, TaskManagement::TargetReset];

type Batch = (Vec<Op>, Disturbance);

fn parameters(chance: &mut SplitMix64) -> Parameters {
    let mut bytes = |from: u64, to: u64| (from + chance.below(to - from)) as u32;
    let (send_bytes, receive_bytes) = (bytes(512, 9000), bytes(512, 9000));
    let max_burst_bytes = bytes(512, 20_000);
    let first_burst_bytes = bytes(512, 12_000).min(max_burst_bytes);
    let max_outstanding_r2t = bytes(1, 5) as u16;
    Parameters {
        send_bytes,
        receive_bytes,
        max_burst_bytes,
        first_burst_bytes,
        max_outstanding_r2t,
        initial_r2t: chance.chance(30),
        immediate_data: chance.chance(70),
        ..Parameters::default()
    }
}

/// Parameters that a switch agrees to when it knows its back ends.
fn matched(front: Parameters, back: &Parameters) -> Parameters {
    let Parameters { receive_bytes, initial_r2t, immediate_data, max_burst_bytes, first_burst_bytes, .. } = front;
    let offers = Offers {
        receive_bytes,
        initial_r2t,
        immediate_data,
        max_burst_bytes,
        first_burst_bytes,
        max_outstanding_r2t: front.max_outstanding_r2t,
        ..Offers::default()
    };
    let Offers { receive_bytes, initial_r2t, immediate_data, max_burst_bytes, first_burst_bytes, .. } =
        front_offers(offers, &[Parameters { send_bytes: back.receive_bytes, ..*back }]);
    let first_burst_bytes = first_burst_bytes.min(max_burst_bytes);
    Parameters { receive_bytes, initial_r2t, immediate_data, max_burst_bytes, first_burst_bytes, ..front }
}

fn shapes(chance: &mut SplitMix64) -> Shapes {
    let luns = 2 + chance.below(3) as u16;
    let extent_blocks: u64 = [1, 4, 6, 16][chance.index(4)];
    let shape = match chance.below(2) {
        0 => Shape::Linear,
        _ => {
            let width = 2 + chance.below(u64::from(luns) - 1) as u16;
            let stripes: Vec<u32> =
                (1..=extent_blocks as u32).filter(|n| extent_blocks.is_multiple_of((*n).into())).collect();
            Shape::Striped { width, stripe_blocks: stripes[chance.index(stripes.len())] }
        }
    };
    let (front, back) = (parameters(chance), parameters(chance));
    let front = if chance.chance(70) { matched(front, &back) } else { front };
    let blocks = 40 + chance.below(160);
    let cut_through = chance.chance(50);
    let (front, back) = if cut_through { with_digests(chance, front, back) } else { (front, back) };
    let bad = if chance.chance(30) { (0..4).map(|_| chance.below(blocks)).collect() } else { Vec::new() };
    Shapes {
        luns,
        extent_blocks,
        shape,
        blocks,
        front,
        back,
        depth: 1 + chance.below(12) as u16,
        bad,
        settings: patient(),
        cut_through,
    }
}

/// Adds digests on either side. Data digests are used only if both sides have them, mostly with
/// segments that need no split.
fn with_digests(chance: &mut SplitMix64, front: Parameters, back: Parameters) -> (Parameters, Parameters) {
    let data_digest = chance.chance(40);
    let front = Parameters { header_digest: chance.chance(50), data_digest, ..front };
    let back = Parameters { header_digest: chance.chance(50), data_digest, ..back };
    if !data_digest || chance.chance(20) {
        return (front, back);
    }
    // Data of a back end pass to the host and vice versa; both sets of parameters are those of the
    // target's side.
    let Parameters { send_bytes, receive_bytes, max_burst_bytes, .. } = back;
    let first_burst_bytes = front.first_burst_bytes.min(max_burst_bytes);
    (Parameters { send_bytes, receive_bytes, max_burst_bytes, first_burst_bytes, ..front }, back)
}

/// Time-outs so long that time passes only for hosts that give up.
fn patient() -> Settings {
    let long = Span::from_secs(1 << 20);
    Settings { ping: long, abort_timeout: long, stall: long }
}

fn script(chance: &mut SplitMix64, blocks: u64) -> Vec<Batch> {
    let mut script = Vec::new();
    for _ in 0..6 {
        let after = chance.below(60) as u32;
        let disturbance = match chance.below(10) {
            0 | 1 => Disturbance::Aborts(after),
            2 => Disturbance::Reset(after),
            3 => Disturbance::Asks(OWN[chance.index(OWN.len())], after),
            4 => Disturbance::Another(OTHERS[chance.index(OTHERS.len())], after),
            _ => Disturbance::None,
        };
        let mut ops: Vec<Op> = Vec::new();
        for _ in 0..1 + chance.below(10) {
            let what = match chance.below(20) {
                0 => What::ReadShort,
                1 => What::WriteShort,
                2 => What::WriteSame,
                3 => What::CompareAndWrite,
                4 => What::Flush,
                5 => What::BeyondTheEnd,
                n if n % 2 == 0 => What::Read,
                _ => What::Write,
            };
            let most = if chance.chance(50) { 8 } else { 60 };
            let len = 1 + chance.below(most.min(blocks)) as u32;
            let lba = chance.below(blocks - u64::from(len) + 1);
            let (lba, len) = match what {
                What::BeyondTheEnd => (blocks - u64::from(len) + 1, len),
                What::CompareAndWrite => (lba, len.min(4)),
                _ => (lba, len),
            };
            let op = Op { what, lba, blocks: len, fill: chance.bits() as u8 };
            let apart = |other: &Op| {
                let overlap = op.lba < other.lba + u64::from(other.blocks) && other.lba < op.lba + u64::from(op.blocks);
                !overlap || !(op.changes() || other.changes())
            };
            if ops.iter().all(apart) {
                ops.push(op);
            }
        }
        // Most areas with a partial write are written again. Data that were acknowledged are
        // checked without that.
        let mended: Vec<Op> = match disturbance {
            Disturbance::None => Vec::new(),
            _ => {
                let changed = ops.iter().filter(|op| op.changes() && chance.chance(60));
                changed.map(|op| Op { what: What::Write, ..*op }).collect()
            }
        };
        script.push((ops, disturbance));
        script.push((mended, Disturbance::None));
    }
    script.push((vec![Op { what: What::Read, lba: 0, blocks: blocks as u32, fill: 0 }], Disturbance::None));
    script
}

/// Result of a command, as far as all configurations must agree.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    Good {
        transferred: u32,
        data: Vec<u8>,
    },
    Status(u8),
    /// Sense key, code and information.
    Check(u8, u16, Option<u64>),
    Other(Outcome),
}

impl Ended {
    fn short(&self) -> String {
        match self {
            Ended::Good { transferred, .. } => format!("good, {transferred} bytes"),
            other => format!("{other:x?}"),
        }
    }
}

#[derive(Default)]
struct Ran {
    /// Results of all commands that were not disturbed.
    ended: BTreeMap<u64, Ended>,
    /// Results of commands that ended normally despite a disturbance.
    spared: BTreeMap<u64, Ended>,
    content: Vec<u8>,
}

/// Expected content; `None` after a failed write.
type Model = Vec<Option<u8>>;

fn submit(bed: &mut Bed, id: u64, op: &Op, model: &Model) {
    let (lba, blocks) = (op.lba, op.blocks);
    let room = |bytes: usize| vec![0; bytes];
    let (direction, cdb, buffer) = match op.what {
        What::Read | What::BeyondTheEnd => {
            (DataDirection::Read, Cdb::Read { lba, blocks, fua: false }, room(blocks as usize * BLOCK))
        }
        What::ReadShort => {
            (DataDirection::Read, Cdb::Read { lba, blocks: blocks + 1, fua: false }, room(blocks as usize * BLOCK))
        }
        What::Write => (DataDirection::Write, Cdb::Write { lba, blocks, fua: op.fill.is_multiple_of(2) }, op.data()),
        What::WriteShort => {
            let data = op.data()[..(blocks as usize).div_ceil(2) * BLOCK].to_vec();
            (DataDirection::Write, Cdb::Write { lba, blocks, fua: false }, data)
        }
        What::WriteSame => {
            let cdb = Cdb::WriteSame { lba, blocks, unmap: false, anchor: false, no_data: false };
            (DataDirection::Write, cdb, op.data()[..BLOCK].to_vec())
        }
        What::CompareAndWrite => {
            let from = lba as usize * BLOCK;
            let there = model[from..from + blocks as usize * BLOCK].iter().map(|byte| byte.unwrap_or(0));
            let both = there.chain(op.data()).collect();
            (DataDirection::Write, Cdb::CompareAndWrite { lba, blocks: blocks as u8, fua: false }, both)
        }
        What::Flush => (DataDirection::None, Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false }, Vec::new()),
    };
    bed.submit(id, cdb, direction, buffer);
}

/// Sends commands until the device has no unit attention left.
fn quieten(bed: &mut Bed, id: &mut u64) {
    for _ in 0..4 {
        bed.submit(*id, Cdb::TestUnitReady, DataDirection::None, Vec::new());
        *id += 1;
        bed.run_until_idle();
        if let Some((_, Outcome::Completed { status: 0, .. })) = bed.done.pop() {
            return;
        }
    }
    panic!("the unit does not become ready");
}

fn run(setup: Setup, shapes: &Shapes, script: &[Batch], seed: u64, totals: &mut Totals) -> Ran {
    let mut bed = Bed::new(setup, shapes, seed);
    let mut ran = Ran::default();
    let mut model: Model = vec![Some(0); shapes.blocks as usize * BLOCK];
    // Model that includes writes acknowledged during a disturbance, which differ between
    // configurations.
    let mut sharp = model.clone();
    let (mut id, mut aside) = (0_u64, 1 << 32);
    // True once a back end has had a unit attention to report.
    let mut may_be_busy = false;
    quieten(&mut bed, &mut aside);
    for (ops, disturbance) in script {
        let first = id;
        // COMPARE AND WRITE needs known content.
        let possible = |op: &Op| match op.what {
            What::CompareAndWrite if !expected_known(op, &model) => Op { what: What::Read, ..*op },
            _ => *op,
        };
        let ops: Vec<Op> = ops.iter().map(possible).collect();
        if seed.is_multiple_of(2) && first.is_multiple_of(5) {
            bed.attend();
            may_be_busy = true;
        }
        for op in &ops {
            submit(&mut bed, id, op, &model);
            id += 1;
        }
        match disturbance {
            Disturbance::None => {
                bed.run_until_idle();
                // A back end with a unit attention has not executed these commands, so the host
                // repeats them.
                let busy = |(id, outcome): &(u64, Outcome)| match outcome {
                    Outcome::Completed { status: status::BUSY, .. } => Some(*id),
                    Outcome::Completed { sense, .. } if sense.get(2) == Some(&SenseKey::ABORTED_COMMAND.0) => Some(*id),
                    _ => None,
                };
                for _ in 0..shapes.luns {
                    let again: Vec<u64> = bed.done.iter().filter_map(busy).collect();
                    assert!(
                        again.is_empty() || (setup == Setup::Forwarding && may_be_busy),
                        "BUSY without a unit attention of a back end"
                    );
                    bed.done.retain(|one| busy(one).is_none());
                    for number in again {
                        submit(&mut bed, number, &ops[(number - first) as usize], &model);
                    }
                    bed.run_until_idle();
                }
            }
            Disturbance::Aborts(after) => {
                for _ in 0..*after {
                    bed.step();
                }
                bed.wait(Span::from_secs(31));
                bed.run_until_idle();
            }
            Disturbance::Reset(after) | Disturbance::Asks(_, after) | Disturbance::Another(_, after) => {
                for _ in 0..*after {
                    bed.step();
                }
                match disturbance {
                    Disturbance::Asks(function, _) => bed.request_function(*function),
                    Disturbance::Another(function, _) => bed.another_host(*function),
                    _ => {
                        bed.reset(aside);
                        aside += 1;
                    }
                }
                bed.run_until_idle();
                // The host gets no response for the commands that the function has ended.
                bed.wait(Span::from_secs(31));
                bed.run_until_idle();
            }
        }
        let mut done: BTreeMap<u64, Outcome> = bed.done.drain(..).collect();
        let closed = !bed.to_be_closed().is_empty();
        assert_eq!(closed, matches!(disturbance, Disturbance::Asks(function::COLD_RESET, _)));
        for (number, op) in (first..).zip(&ops) {
            let outcome = match done.remove(&number) {
                Some(outcome) => outcome,
                // Its session has ended.
                None if closed => Outcome::TimedOut,
                None => panic!("every command ends"),
            };
            let (from, len) = (op.lba as usize * BLOCK, op.blocks as usize * BLOCK);
            if is_ended_by(disturbance, setup == Setup::Forwarding && may_be_busy, &outcome) {
                totals.ended_early += 1;
                if op.changes() {
                    model[from..from + len].fill(None);
                    sharp[from..from + len].fill(None);
                }
                continue;
            }
            let ended = match outcome {
                Outcome::Completed { status: status::GOOD, transferred, .. } => {
                    let data = bed.buffers.remove(&number).unwrap();
                    if matches!(op.what, What::Read | What::ReadShort) {
                        let expected = &sharp[from..from + data.len()];
                        let same = expected.iter().zip(&data).all(|(a, b)| a.is_none_or(|a| a == *b));
                        assert!(same, "what is read is not what was written: {op:?}");
                    }
                    let known = expected_known(op, &model);
                    Ended::Good { transferred, data: if op.changes() || !known { Vec::new() } else { data } }
                }
                Outcome::Completed { status: status::CHECK_CONDITION, sense, .. } => {
                    let sense = Sense::parse(&sense).unwrap();
                    Ended::Check(sense.key.0, sense.code.0, sense.information)
                }
                Outcome::Completed { status, .. } => Ended::Status(status),
                other => Ended::Other(other),
            };
            let good = matches!(ended, Ended::Good { .. });
            let data = op.data();
            let written = |model: &mut Model| match op.what {
                _ if !op.changes() => {}
                _ if !good => model[from..from + len].fill(None),
                What::WriteShort => {
                    let part = (op.blocks as usize).div_ceil(2) * BLOCK;
                    (0..part).for_each(|n| model[from + n] = Some(data[n]));
                }
                What::WriteSame => (0..len).for_each(|n| model[from + n] = Some(data[n % BLOCK])),
                _ => (0..len).for_each(|n| model[from + n] = Some(data[n])),
            };
            written(&mut sharp);
            match disturbance {
                Disturbance::None => written(&mut model),
                _ if op.changes() => model[from..from + len].fill(None),
                _ => {}
            }
            match disturbance {
                Disturbance::None => ran.ended.insert(number, ended),
                _ => ran.spared.insert(number, ended),
            };
        }
        bed.done.clear();
        if closed {
            totals.add(&bed);
            bed = bed.logged_in_again(shapes, seed);
        }
        bed.assert_idle();
        if !matches!(disturbance, Disturbance::None | Disturbance::Aborts(_)) {
            quieten(&mut bed, &mut aside);
        }
    }
    ran.content = bed.content();
    let same = sharp.iter().zip(&ran.content).all(|(a, b)| a.is_none_or(|a| a == *b));
    assert!(same, "the media have what the model has");
    // Bytes with unknown content are zeroed for the comparison.
    ran.content.iter_mut().zip(&model).filter(|(_, known)| known.is_none()).for_each(|(byte, _)| *byte = 0);
    totals.add(&bed);
    ran
}

/// Returns whether the disturbance may have ended this command under the protocol. `may_be_busy`
/// means that a back end of the forwarding path had a unit attention and may not have executed
/// the command.
fn is_ended_by(disturbance: &Disturbance, may_be_busy: bool, outcome: &Outcome) -> bool {
    let (own, others) = match disturbance {
        Disturbance::None => return false,
        Disturbance::Aborts(_) => (false, false),
        Disturbance::Reset(_) | Disturbance::Asks(..) => (true, false),
        Disturbance::Another(..) => (true, true),
    };
    match outcome {
        Outcome::TimedOut => true,
        Outcome::Completed { status: status::BUSY, .. } => may_be_busy,
        Outcome::Completed { status: status::TASK_ABORTED, .. } => others,
        Outcome::Completed { status: status::CHECK_CONDITION, sense, .. } => match Sense::parse(sense).unwrap().key {
            SenseKey::UNIT_ATTENTION => own || others,
            SenseKey::ABORTED_COMMAND => may_be_busy,
            _ => false,
        },
        _ => false,
    }
}

fn expected_known(op: &Op, model: &Model) -> bool {
    let from = op.lba as usize * BLOCK;
    model.get(from..from + op.blocks as usize * BLOCK).is_some_and(|bytes| bytes.iter().all(Option::is_some))
}

#[derive(Default, Debug)]
struct Totals {
    forwarded: u64,
    split: u64,
    aborts: u64,
    /// Commands on the conventional path, by reason.
    kept: [u64; Kept::ALL.len()],
    /// Commands that a disturbance has ended.
    ended_early: u64,
    /// Commands that ended normally in all configurations despite a disturbance.
    spared: u64,
}

impl Totals {
    fn add(&mut self, bed: &Bed) {
        let counters = bed.counters();
        self.sum(&Totals {
            forwarded: counters.forwarded,
            split: counters.split,
            aborts: counters.aborts,
            kept: counters.kept,
            ..Totals::default()
        });
        assert_eq!(counters.unexpected, 0);
    }

    fn sum(&mut self, other: &Totals) {
        self.forwarded += other.forwarded;
        self.split += other.split;
        self.aborts += other.aborts;
        self.kept.iter_mut().zip(&other.kept).for_each(|(all, count)| *all += count);
        self.ended_early += other.ended_early;
        self.spared += other.spared;
    }
}

/// Seeds of one run. `SANLOOM_FORWARD_SEEDS` selects another range: `1234..1235` is one seed.
fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var("SANLOOM_FORWARD_SEEDS").ok();
    let range = seeds.as_deref().and_then(|text| text.split_once(".."));
    match range {
        Some((from, to)) => from.parse().expect("a number")..to.parse().expect("a number"),
        None => 0..3000,
    }
}

#[test]
fn all_paths_give_the_same_bytes_and_statuses() {
    let mut totals = Totals::default();
    for seed in seeds() {
        let mut chance = SplitMix64(seed);
        let shapes = shapes(&mut chance);
        let script = script(&mut chance, shapes.blocks);
        let case = || format!("seed {seed}, {shapes:?}");
        let mut setups = [Setup::Plain, Setup::Conventional, Setup::Forwarding].map(|setup| {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut of_this = Totals::default();
                let ran = run(setup, &shapes, &script, seed, &mut of_this);
                (ran, of_this)
            }));
            caught.unwrap_or_else(|_| panic!("{setup:?}, {}", case()))
        });
        let forwarding = std::mem::take(&mut setups[2].1);
        totals.sum(&forwarding);
        for (number, ended) in &setups[0].0.spared {
            for (other, _) in &setups[1..] {
                // The commands that end before the disturbance may differ, but not their results.
                let Some(other) = other.spared.get(number) else { continue };
                assert!(other == ended, "command {number}: {} but {}: {}", other.short(), ended.short(), case());
                totals.spared += 1;
            }
        }
        for (number, ended) in &setups[0].0.ended {
            for (setup, (other, _)) in [Setup::Conventional, Setup::Forwarding].iter().zip(&setups[1..]) {
                let other = &other.ended[number];
                assert!(
                    other == ended,
                    "{setup:?}: command {number}: {} but {}: {}",
                    other.short(),
                    ended.short(),
                    case()
                );
            }
        }
        assert!(setups[0].0.content == setups[1].0.content, "conventional: {}", case());
        assert!(setups[0].0.content == setups[2].0.content, "forwarding: {}", case());
    }
    // The comparison is meaningful only if each of these has happened.
    println!("{totals:?}");
    let Totals { forwarded, split, aborts, kept, ended_early, spared } = totals;
    let each = |count: u64| count / (seeds().end - seeds().start);
    assert!(
        each(forwarded) >= 10 && [split, aborts, ended_early, spared].map(each).iter().all(|count| *count >= 2),
        "{totals:?}"
    );
    // The tests in `cases.rs` cover these reasons.
    let never: Vec<Kept> = Kept::ALL.into_iter().filter(|why| kept[*why as usize] == 0).collect();
    assert_eq!(never, [Kept::NoVolume, Kept::Order, Kept::Transport, Kept::Path, Kept::Cache], "{totals:?}");
}
