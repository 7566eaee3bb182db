//! The packets inside a switch or an interface, in one queue for each output, lane and input.

use super::packet::Packet;

/// Most ports of a node.
pub(super) const PORTS: usize = 256;
const NONE: u32 = u32::MAX;

/// A packet that waits for its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub packet: Packet,
    /// Earliest start, in ps.
    pub ready_ps: u64,
    /// Lane on which the packet came in.
    pub entry_lane: u8,
    /// Port that the packet came from.
    pub input: u8,
}

#[derive(Clone, Copy)]
struct Slot {
    waiting: Waiting,
    next: u32,
}

/// A queue as a list of slots.
#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// The queues of one output and lane.
#[derive(Clone, Copy)]
struct Row {
    /// Inputs with a packet.
    inputs: [u64; PORTS / 64],
    /// Input that was chosen last.
    last: u8,
    packets: u32,
}

/// All queues of a node. An interface has one output and one input.
pub(super) struct Queues {
    ports: usize,
    lanes: usize,
    slots: Vec<Slot>,
    free: u32,
    lists: Vec<List>,
    rows: Vec<Row>,
}

impl Queues {
    /// Returns empty queues for ports with `lanes` data lanes, and the lane of management.
    pub fn new(ports: usize, lanes: u8) -> Queues {
        let lanes = usize::from(lanes) + 1;
        let last = ports.saturating_sub(1) as u8;
        Queues {
            ports,
            lanes,
            slots: Vec::new(),
            free: NONE,
            lists: vec![List { head: NONE, tail: NONE }; ports * ports * lanes],
            rows: vec![Row { inputs: [0; PORTS / 64], last, packets: 0 }; ports * lanes],
        }
    }

    #[inline]
    fn row(&self, output: u8, lane: u8) -> usize {
        usize::from(output) * self.lanes + usize::from(lane).min(self.lanes - 1)
    }

    /// Appends a packet. Returns whether it is the only one of its output and lane.
    #[inline]
    pub fn push(&mut self, output: u8, lane: u8, waiting: Waiting) -> bool {
        let slot = Slot { waiting, next: NONE };
        let number = self.free;
        let number = if number == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            self.free = self.slots[number as usize].next;
            self.slots[number as usize] = slot;
            number
        };
        let row = self.row(output, lane);
        let input = usize::from(waiting.input);
        let list = &mut self.lists[row * self.ports + input];
        let tail = std::mem::replace(&mut list.tail, number);
        if tail == NONE {
            list.head = number;
        } else {
            self.slots[tail as usize].next = number;
        }
        let row = &mut self.rows[row];
        row.inputs[input / 64] |= 1 << (input % 64);
        row.packets += 1;
        row.packets == 1
    }

    /// Returns the first packet that is ready at `now`, from the input after the last chosen one
    /// on, and the time at which an input that was passed over is ready.
    #[inline]
    pub fn choose(&self, output: u8, lane: u8, now: u64) -> (Option<&Waiting>, u64) {
        let row = self.row(output, lane);
        let mut soonest_ps = u64::MAX;
        let lists = &self.lists[row * self.ports..][..self.ports];
        let row = &self.rows[row];
        for input in row.in_turn() {
            let waiting = &self.slots[lists[input].head as usize].waiting;
            if waiting.ready_ps <= now {
                return (Some(waiting), soonest_ps);
            }
            soonest_ps = soonest_ps.min(waiting.ready_ps);
        }
        (None, soonest_ps)
    }

    /// Takes the first packet of an input, or of the input in turn.
    #[inline]
    pub fn pop(&mut self, output: u8, lane: u8, input: Option<u8>) -> Option<Waiting> {
        let number = self.row(output, lane);
        let row = &mut self.rows[number];
        let input = input.map(usize::from).or_else(|| row.in_turn().next())?;
        let list = &mut self.lists[number * self.ports + input];
        let head = list.head;
        let slot = &mut self.slots[head as usize];
        list.head = std::mem::replace(&mut slot.next, self.free);
        self.free = head;
        row.last = input as u8;
        row.packets -= 1;
        if list.head == NONE {
            list.tail = NONE;
            row.inputs[input / 64] &= !(1 << (input % 64));
        }
        Some(slot.waiting)
    }

    /// Returns the number of packets of an output and lane.
    #[inline]
    pub fn packets(&self, output: u8, lane: u8) -> u32 {
        self.rows[self.row(output, lane)].packets
    }

    /// Returns whether packets of an output and lane came from an input on `entry_lane`.
    pub fn holds_from(&self, output: u8, lane: u8, input: u8, entry_lane: u8) -> bool {
        let mut at = self.lists[self.row(output, lane) * self.ports + usize::from(input)].head;
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.waiting.entry_lane == entry_lane {
                return true;
            }
            at = slot.next;
        }
        false
    }

    /// Returns the number of all packets.
    pub fn all(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.packets)).sum()
    }
}

impl Row {
    /// Iterates over the inputs with a packet, from the one after the last chosen one on.
    #[inline]
    fn in_turn(&self) -> impl Iterator<Item = usize> + '_ {
        let last = usize::from(self.last);
        let after = (last + 1) % PORTS;
        // The word of `after` is visited twice: its upper part first, its lower part last.
        (0..=PORTS / 64).flat_map(move |turn| {
            let word = (after / 64 + turn) % (PORTS / 64);
            let upper = u64::MAX << (after % 64);
            let mask = match turn {
                0 => upper,
                turn if turn == PORTS / 64 => !upper,
                _ => u64::MAX,
            };
            Bits(self.inputs[word] & mask).map(move |bit| word * 64 + bit)
        })
    }
}

/// Numbers of the bits that are set, in ascending order.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(bit)
    }
}
