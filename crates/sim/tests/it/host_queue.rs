//! The queue of a host compared with a simple model, and tests of each rule.

use proptest::prelude::*;
use sanloom_fc::config::{self, IoScheduler, Target};
use sanloom_sim::host::{Command, CommandId, IoQueue, Member, Pushed};
use sanloom_sim::workload::{Request, RequestOp};
use std::collections::BTreeMap;

const BLOCK_BYTES: u32 = 512;

fn config(scheduler: IoScheduler) -> config::IoQueue {
    config::IoQueue { max_outstanding: 1000, max_waiting: None, scheduler, merge_up_to_bytes: 0 }
}

fn request(lun: u16, lba: u64, blocks: u32, write: bool) -> Request {
    let op = if write { RequestOp::Write } else { RequestOp::Read };
    Request { lba, blocks, bytes: blocks * BLOCK_BYTES, lun: Target { storage: 0, lun }, target: lun, op }
}

#[test]
fn a_flush_is_merged_with_nothing() {
    let mut queue = IoQueue::new(&config::IoQueue { merge_up_to_bytes: 1 << 20, ..config(IoScheduler::Fifo) });
    let flush = Request { op: RequestOp::Flush, ..request(0, 0, 0, true) };
    for (now_ps, request) in (0..).zip([request(0, 0, 8, true), flush, request(0, 0, 8, true), flush]) {
        assert!(matches!(queue.push(request, now_ps, 0), Pushed::Queued(_)), "{request:?}");
    }
    assert_eq!(queue.counters().merged, 0);
}

fn read(lba: u64, blocks: u32) -> Request {
    request(0, lba, blocks, false)
}

fn places(queue: &mut IoQueue) -> Vec<(u16, u64)> {
    std::iter::from_fn(|| queue.pop(0)).map(|(_, command)| (command.lun.lun, command.lba)).collect()
}

#[test]
fn fifo_keeps_the_order_of_arrival() {
    let mut queue = IoQueue::new(&config(IoScheduler::Fifo));
    for (lun, lba) in [(1, 50), (0, 70), (1, 10), (0, 60)] {
        queue.push(request(lun, lba, 1, false), 0, 0);
    }
    assert_eq!(places(&mut queue), [(1, 50), (0, 70), (1, 10), (0, 60)]);
}

#[test]
fn the_elevator_sweeps_up_and_begins_again_at_the_lowest() {
    let mut queue = IoQueue::new(&config(IoScheduler::Elevator));
    for (lun, lba) in [(0, 50), (1, 10), (0, 20)] {
        queue.push(request(lun, lba, 1, false), 0, 0);
    }
    let first = queue.pop(0).map(|(_, command)| command.lba);
    assert_eq!(first, Some(20));
    // Stops before or at the head join the next sweep; stops beyond it join the current sweep.
    for (lun, lba) in [(0, 10), (0, 20), (0, 30), (1, 5), (2, 0)] {
        queue.push(request(lun, lba, 1, false), 0, 0);
    }
    let rest = [(0, 30), (0, 50), (1, 5), (1, 10), (2, 0), (0, 10), (0, 20)];
    assert_eq!(places(&mut queue), rest);
}

#[test]
fn many_requests_for_one_block_do_not_stop_the_sweep() {
    let mut queue = IoQueue::new(&config(IoScheduler::Elevator));
    queue.push(read(0, 8), 0, 0);
    queue.push(read(500, 8), 0, 0);
    let mut served = Vec::new();
    for _ in 0..3 {
        served.extend(queue.pop(0).map(|(_, command)| command.lba));
        queue.push(read(0, 8), 0, 0);
    }
    assert_eq!(served, [0, 500, 0]);
}

#[test]
fn no_more_than_the_maximum_is_outstanding() {
    let mut queue = IoQueue::new(&config::IoQueue { max_outstanding: 2, ..config(IoScheduler::Fifo) });
    for lba in 0..5 {
        queue.push(read(lba * 100, 1), 0, 0);
    }
    let (first, _) = queue.pop(0).expect("room for one");
    assert!(queue.pop(0).is_some());
    assert_eq!(queue.pop(0), None);
    assert_eq!(queue.peek(), None);
    assert!(queue.complete(first, 0, |_| ()));
    assert!(queue.pop(0).is_some());
    assert_eq!(queue.pop(0), None);
}

#[test]
fn a_full_waiting_queue_refuses_and_counts() {
    let mut queue = IoQueue::new(&config::IoQueue { max_waiting: Some(2), ..config(IoScheduler::Fifo) });
    assert!(matches!(queue.push(read(0, 1), 0, 0), Pushed::Queued(_)));
    assert!(matches!(queue.push(read(9, 1), 0, 0), Pushed::Queued(_)));
    assert_eq!(queue.push(read(5, 1), 0, 0), Pushed::Refused);
    assert_eq!(queue.counters().refused, 1);
    assert!(queue.pop(0).is_some());
    assert!(matches!(queue.push(read(5, 1), 0, 0), Pushed::Queued(_)));
}

#[test]
fn contiguous_requests_merge_and_each_ends_by_itself() {
    let mut queue = IoQueue::new(&config::IoQueue { merge_up_to_bytes: 64 * BLOCK_BYTES, ..config(IoScheduler::Fifo) });
    let Pushed::Queued(id) = queue.push(read(100, 8), 10, 1) else {
        panic!("an empty queue has nothing to merge with");
    };
    assert_eq!(queue.push(read(108, 4), 20, 2), Pushed::Merged(id));
    assert_eq!(queue.push(read(96, 4), 30, 3), Pushed::Merged(id));
    let (popped, command) = queue.pop(40).expect("one waits");
    assert_eq!(popped, id);
    assert_eq!((command.lba, command.blocks, command.requests), (96, 16, 3));
    assert_eq!(command.bytes, 16 * BLOCK_BYTES);
    let mut ended = Vec::new();
    queue.complete(id, 50, |member: Member| {
        ended.push((member.request.lba, member.arrival_ps, member.stream));
    });
    assert_eq!(ended, [(100, 10, 1), (108, 20, 2), (96, 30, 3)]);
    assert_eq!(queue.counters().merged, 2);
    assert_eq!(queue.counters().ended, 3);
}

#[test]
fn a_request_that_closes_a_gap_joins_its_neighbours() {
    for scheduler in [IoScheduler::Fifo, IoScheduler::Elevator] {
        let mut queue = IoQueue::new(&config::IoQueue { merge_up_to_bytes: 64 * BLOCK_BYTES, ..config(scheduler) });
        queue.push(read(16, 8), 0, 0);
        queue.push(read(0, 8), 0, 1);
        queue.push(read(8, 8), 0, 2);
        let (id, command) = queue.pop(0).expect("one waits");
        assert_eq!((command.lba, command.blocks, command.requests), (0, 24, 3));
        assert_eq!(queue.pop(0), None);
        let mut streams = Vec::new();
        queue.complete(id, 0, |member| streams.push(member.stream));
        streams.sort_unstable();
        assert_eq!(streams, [0, 1, 2]);
    }
}

#[test]
fn requests_with_other_luns_directions_addresses_or_sizes_do_not_merge() {
    let mut queue = IoQueue::new(&config::IoQueue { merge_up_to_bytes: 16 * BLOCK_BYTES, ..config(IoScheduler::Fifo) });
    queue.push(read(100, 8), 0, 0);
    for other in [request(1, 108, 8, false), request(0, 108, 8, true), read(107, 8), read(109, 8), read(108, 9)] {
        assert!(matches!(queue.push(other, 0, 0), Pushed::Queued(_)));
    }
}

#[test]
fn an_outstanding_command_does_not_grow() {
    let mut queue = IoQueue::new(&config::IoQueue { merge_up_to_bytes: 1 << 20, ..config(IoScheduler::Fifo) });
    queue.push(read(0, 8), 0, 0);
    assert!(queue.pop(0).is_some());
    assert!(matches!(queue.push(read(8, 8), 0, 0), Pushed::Queued(_)));
}

#[test]
fn a_parked_command_frees_its_slot_for_others() {
    let mut queue = IoQueue::new(&config::IoQueue { max_outstanding: 1, ..config(IoScheduler::Fifo) });
    queue.push(read(0, 1), 0, 0);
    queue.push(read(10, 1), 0, 0);
    let (parked, _) = queue.pop(0).expect("room for one");
    assert!(queue.park(parked, 0));
    assert!(!queue.park(parked, 0), "it is no longer outstanding");
    let (other, _) = queue.pop(0).expect("room again");
    assert!(queue.resume(parked, 0));
    assert_eq!(queue.outstanding().level(), 2);
    assert!(queue.complete(other, 0, |_| ()));
    assert!(queue.complete(parked, 0, |_| ()));
    assert!(!queue.complete(parked, 0, |_| ()), "it ended already");
    assert_eq!(queue.counters().ended, 2);
}

#[test]
fn depths_are_averaged_over_time() {
    let mut queue = IoQueue::new(&config(IoScheduler::Fifo));
    queue.push(read(0, 1), 0, 0);
    queue.push(read(10, 1), 100, 0);
    let (first, _) = queue.pop(200).expect("two wait");
    queue.complete(first, 400, |_| ());
    // Waiting: 1 until 100 ps, 2 until 200 ps, 1 until 400 ps. Outstanding: 1 from 200 ps to 400
    // ps.
    assert_eq!(queue.waiting().mean(400), 1.25);
    assert_eq!(queue.waiting().max(), 2);
    assert_eq!(queue.outstanding().mean(400), 0.5);
}

/// A simple model of the queue: one list with linear search.
struct Model {
    config: config::IoQueue,
    waiting: Vec<Waiting>,
    outstanding: usize,
    made: u64,
    touched: u64,
    sweep: u64,
    head: Option<(u16, u64)>,
    /// Number of requests without a path.
    parked: usize,
}

#[derive(Clone, Debug)]
struct Waiting {
    made: u64,
    touched: u64,
    sweep: u64,
    lun: u16,
    lba: u64,
    blocks: u32,
    write: bool,
    requests: Vec<u32>,
}

impl Waiting {
    fn end(&self) -> u64 {
        self.lba + u64::from(self.blocks)
    }
}

impl Model {
    fn push(&mut self, request: Request, number: u32) -> bool {
        let count = self.waiting.iter().map(|w| w.requests.len()).sum::<usize>() + self.parked;
        if self.config.max_waiting.is_some_and(|max| count >= max as usize) {
            return false;
        }
        let new = Waiting {
            made: self.made,
            touched: 0,
            sweep: 0,
            lun: request.lun.lun,
            lba: request.lba,
            blocks: request.blocks,
            write: request.op.is_write(),
            requests: vec![number],
        };
        let left = self.newest(&new, |w| w.end() == new.lba);
        let right = self.newest(&new, |w| w.lba == new.end());
        if let Some(left) = left.filter(|&left| self.fits(left, &new)) {
            let grown = self.grow(left, new);
            if let Some(right) = right {
                let grown = self.index_of(grown);
                let right = self.index_of(right);
                let other = self.waiting[right].clone();
                if grown != right && self.fits(self.waiting[grown].made, &other) {
                    let (stays, goes) =
                        if self.waiting[grown].made < other.made { (grown, right) } else { (right, grown) };
                    let goes = self.waiting[goes].clone();
                    let stays = self.waiting[stays].made;
                    self.waiting.retain(|w| w.made != goes.made);
                    self.grow(stays, goes);
                }
            }
        } else if let Some(right) = right.filter(|&right| self.fits(right, &new)) {
            self.grow(right, new);
        } else {
            self.made += 1;
            self.touched += 1;
            let sweep = self.sweep_of(&new);
            let touched = self.touched;
            self.waiting.push(Waiting { sweep, touched, ..new });
        }
        true
    }

    fn index_of(&self, made: u64) -> usize {
        let found = self.waiting.iter().position(|w| w.made == made);
        found.expect("the model only names commands that wait")
    }

    fn newest(&self, new: &Waiting, touches: impl Fn(&Waiting) -> bool) -> Option<u64> {
        let alike = |w: &&Waiting| w.lun == new.lun && w.write == new.write && touches(w);
        let newest = self.waiting.iter().filter(alike).max_by_key(|w| w.touched);
        newest.map(|w| w.made)
    }

    fn fits(&self, made: u64, more: &Waiting) -> bool {
        let blocks = self.waiting[self.index_of(made)].blocks + more.blocks;
        blocks * BLOCK_BYTES <= self.config.merge_up_to_bytes
    }

    fn grow(&mut self, made: u64, more: Waiting) -> u64 {
        let index = self.index_of(made);
        let mut grown = self.waiting[index].clone();
        grown.blocks += more.blocks;
        grown.requests.extend(more.requests);
        self.touched += 1;
        grown.touched = self.touched;
        if more.lba < grown.lba {
            grown.lba = more.lba;
            grown.sweep = self.sweep_of(&grown);
        }
        self.waiting[index] = grown;
        made
    }

    fn sweep_of(&self, command: &Waiting) -> u64 {
        let beyond = self.head.is_none_or(|head| (command.lun, command.lba) > head);
        self.sweep + u64::from(!beyond)
    }

    fn peek(&mut self) -> Option<Waiting> {
        if self.outstanding >= self.config.max_outstanding as usize {
            return None;
        }
        match self.config.scheduler {
            IoScheduler::Fifo => self.waiting.iter().min_by_key(|w| w.made).cloned(),
            IoScheduler::Elevator => {
                let lowest = |w: &&Waiting| (w.sweep, w.lun, w.lba, w.made);
                let first = self.waiting.iter().min_by_key(lowest).cloned()?;
                if first.sweep > self.sweep {
                    self.sweep = first.sweep;
                    self.head = None;
                }
                Some(first)
            }
        }
    }

    fn pop(&mut self) -> Option<Waiting> {
        let first = self.peek()?;
        self.head = Some((first.lun, first.lba));
        self.waiting.retain(|w| w.made != first.made);
        self.outstanding += 1;
        Some(first)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(Request),
    Peek,
    Pop,
    Complete(usize),
    Park(usize),
    Resume(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let request = (0..2u16, 0..40u64, 1..5u32, any::<bool>())
        .prop_map(|(lun, lba, blocks, write)| Step::Push(self::request(lun, lba, blocks, write)));
    prop_oneof![
        6 => request,
        1 => Just(Step::Peek),
        3 => Just(Step::Pop),
        2 => any::<usize>().prop_map(Step::Complete),
        1 => any::<usize>().prop_map(Step::Park),
        1 => any::<usize>().prop_map(Step::Resume),
    ]
}

fn pick<T: Copy>(list: &[T], index: usize) -> Option<T> {
    list.get(index.checked_rem(list.len())?).copied()
}

/// Asserts that the requests of a command cover it without gap or overlap, all in its direction.
fn assert_tiled(command: &Command, members: &mut [Member]) {
    members.sort_by_key(|member| member.request.lba);
    let mut next_lba = command.lba;
    for member in members.iter() {
        assert_eq!(member.request.lba, next_lba);
        assert_eq!(member.request.lun, command.lun);
        assert_eq!(member.request.op, command.op);
        next_lba += u64::from(member.request.blocks);
    }
    assert_eq!(next_lba, command.end_lba());
    assert_eq!(command.bytes, command.blocks * BLOCK_BYTES);
    assert_eq!(command.requests as usize, members.len());
}

/// The queue, its model, and the commands that have left the queue.
struct Run {
    queue: IoQueue,
    model: Model,
    outstanding: Vec<CommandId>,
    parked: Vec<CommandId>,
    under_way: BTreeMap<CommandId, (Command, Vec<u32>)>,
    accepted: Vec<u32>,
    ended: Vec<u32>,
}

impl Run {
    fn new(config: config::IoQueue) -> Run {
        let queue = IoQueue::new(&config);
        let model =
            Model { config, waiting: Vec::new(), outstanding: 0, made: 0, touched: 0, sweep: 0, head: None, parked: 0 };
        Run {
            queue,
            model,
            outstanding: Vec::new(),
            parked: Vec::new(),
            under_way: BTreeMap::new(),
            accepted: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn step(&mut self, number: u32, step: Step) {
        match step {
            Step::Push(request) => {
                let taken = self.model.push(request, number);
                let pushed = self.queue.push(request, u64::from(number), number);
                assert_eq!(pushed != Pushed::Refused, taken);
                self.accepted.extend(taken.then_some(number));
            }
            Step::Peek => {
                let expected = self.model.peek().map(|w| (w.lun, w.lba, w.blocks));
                let shown = self.queue.peek().map(|(_, c)| (c.lun.lun, c.lba, c.blocks));
                assert_eq!(shown, expected);
            }
            Step::Pop => self.pop(),
            Step::Complete(index) => {
                if let Some(id) = pick(&self.outstanding, index) {
                    self.outstanding.retain(|&other| other != id);
                    self.model.outstanding -= 1;
                    self.complete(id);
                } else if let Some(id) = pick(&self.parked, index) {
                    self.parked.retain(|&other| other != id);
                    self.complete(id);
                }
            }
            Step::Park(index) => {
                if let Some(id) = pick(&self.outstanding, index) {
                    assert!(self.queue.park(id, 0));
                    self.outstanding.retain(|&other| other != id);
                    self.model.outstanding -= 1;
                    self.parked.push(id);
                }
            }
            Step::Resume(index) => {
                if let Some(id) = pick(&self.parked, index) {
                    assert!(self.queue.resume(id, 0));
                    self.parked.retain(|&other| other != id);
                    self.model.outstanding += 1;
                    self.outstanding.push(id);
                }
            }
        }
        assert_eq!(self.queue.outstanding().level(), self.outstanding.len() as u64);
        let without_path: usize = self.parked.iter().map(|id| self.under_way[id].1.len()).sum();
        let waiting: usize = self.model.waiting.iter().map(|w| w.requests.len()).sum();
        assert_eq!(self.queue.waiting().level(), (waiting + without_path) as u64);
        self.model.parked = without_path;
    }

    fn pop(&mut self) {
        let expected = self.model.pop();
        let popped = self.queue.pop(0);
        assert_eq!(popped.is_some(), expected.is_some());
        if let (Some((id, command)), Some(expected)) = (popped, expected) {
            let place = (command.lun.lun, command.lba, command.blocks, command.op.is_write());
            assert_eq!(place, (expected.lun, expected.lba, expected.blocks, expected.write));
            assert_eq!(self.queue.command(id), Some(&command));
            self.outstanding.push(id);
            assert!(self.under_way.insert(id, (command, expected.requests)).is_none());
        }
    }

    fn complete(&mut self, id: CommandId) {
        let mut members = Vec::new();
        assert!(self.queue.complete(id, 0, |member| members.push(member)));
        let (command, mut expected) = self.under_way.remove(&id).expect("it was popped");
        assert_tiled(&command, &mut members);
        let mut numbers: Vec<u32> = members.iter().map(|member| member.stream).collect();
        self.ended.extend(&numbers);
        numbers.sort_unstable();
        expected.sort_unstable();
        assert_eq!(numbers, expected);
        assert!(!self.queue.complete(id, 0, |_| ()));
    }

    /// Ends everything and asserts that each accepted request ends exactly once.
    fn drain(mut self) {
        let out: Vec<CommandId> = self.outstanding.drain(..).chain(self.parked.drain(..)).collect();
        out.into_iter().for_each(|id| self.complete(id));
        self.model.outstanding = 0;
        while let Some(expected) = self.model.pop() {
            self.model.outstanding = 0;
            let (id, command) = self.queue.pop(0).expect("the model has one more");
            self.under_way.insert(id, (command, expected.requests));
            self.complete(id);
        }
        assert_eq!(self.queue.pop(0), None);
        self.ended.sort_unstable();
        assert_eq!(self.ended, self.accepted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_queue_matches_the_plain_model(
        scheduler in prop_oneof![Just(IoScheduler::Fifo), Just(IoScheduler::Elevator)],
        merge_up_to_blocks in prop_oneof![Just(0u32), 2..20u32],
        max_waiting in prop_oneof![Just(None), (1..10u32).prop_map(Some)],
        max_outstanding in 1..6u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let merge_up_to_bytes = merge_up_to_blocks * BLOCK_BYTES;
        let mut run = Run::new(config::IoQueue { max_outstanding, max_waiting, scheduler, merge_up_to_bytes });
        for (number, step) in (0..).zip(steps) {
            run.step(number, step);
        }
        run.drain();
    }
}
