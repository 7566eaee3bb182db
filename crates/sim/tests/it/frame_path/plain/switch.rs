//! The inside of a plain switch: routing and arbitration.

use super::Frame;
use super::crossing::{Seat, Speed};
use sanloom_fc::config::{Arbitration, IslChoice, Queueing};
use std::collections::BTreeMap;

/// A frame in an input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffered {
    pub since: u64,
    pub tail: u64,
    pub output: usize,
    pub frame: Frame,
}

pub struct Switch {
    pub queueing: Queueing,
    arbitration: Arbitration,
    isl_choice: IslChoice,
    /// World-wide name of the switch, if it is part of the hashes.
    pub salt: Option<u64>,
    pub cut_through: bool,
    /// Time of a byte on the fastest line: ps and the bytes they belong to.
    pub fastest: (u64, u64),
    pub latency: u64,
    pub ports: usize,
    domain: u32,
    /// Port of each address of this domain.
    pub owners: BTreeMap<u32, usize>,
    /// For each other domain, the ports that lead to it, lowest first. A bundle appears once, with
    /// its lowest port.
    pub legs: BTreeMap<u32, Vec<usize>>,
    /// For each port, the ports of its bundle.
    pub together: Vec<Vec<usize>>,
    /// Frames in the buffer of each input, oldest first. The last input belongs to the switch's own
    /// processor.
    pub inputs: Vec<Vec<Buffered>>,
    /// Frames in the same buffers that have a seat and wait for their input.
    pub granted: Vec<Vec<Buffered>>,
    /// Seats in front of the lines of each output, in the order of their grants.
    pub seats: Vec<Vec<Seat>>,
    /// Port and channel of each output beyond the ports.
    pub doors: Vec<(usize, u8)>,
    pub speed: Speed,
    pub busy_until: Vec<u64>,
    pub shown: Vec<bool>,
    pub served_last: Vec<usize>,
    next_leg: BTreeMap<u32, usize>,
}

impl Switch {
    pub fn new(
        (queueing, arbitration, isl_choice): (Queueing, Arbitration, IslChoice),
        cut_through: bool,
        latency: u64,
        domain: u32,
        together: Vec<Vec<usize>>,
    ) -> Switch {
        let ports = together.len();
        Switch {
            queueing,
            arbitration,
            isl_choice,
            salt: None,
            cut_through,
            fastest: (1, 1),
            latency,
            ports,
            domain,
            owners: BTreeMap::new(),
            legs: BTreeMap::new(),
            together,
            inputs: vec![Vec::new(); ports + 1],
            granted: vec![Vec::new(); ports + 1],
            seats: vec![Vec::new(); ports],
            doors: Vec::new(),
            speed: Speed::default(),
            busy_until: vec![0; ports + 1],
            shown: vec![true; ports + 1],
            served_last: vec![ports; ports],
            next_leg: BTreeMap::new(),
        }
    }

    /// Returns the input number of the switch's own processor.
    pub fn processor(&self) -> usize {
        self.ports
    }

    pub fn frames(&self) -> usize {
        let crossed = self.seats.iter().flatten().filter(|seat| seat.crossed.is_some()).count();
        self.inputs.iter().chain(&self.granted).map(Vec::len).sum::<usize>() + crossed
    }

    /// Returns whether a frame is queued for the output.
    pub fn waits(&self, output: usize) -> bool {
        let buffered = self.inputs.iter().chain(&self.granted).flatten();
        buffered.into_iter().any(|b| b.output == output) || self.seats[output].iter().any(|seat| seat.crossed.is_some())
    }

    /// Returns the output for a frame, or `None` if it is for the switch itself. `line` returns the
    /// time at which the line of a port is free (`None`: it is down) and the bytes that it carried.
    ///
    /// # Errors
    /// The reason for which the frame is dropped.
    pub fn route(
        &mut self,
        port: usize,
        frame: &Frame,
        line: impl Fn(usize) -> (Option<u64>, u64),
        occurred: &mut BTreeMap<&'static str, u64>,
    ) -> Result<Option<usize>, &'static str> {
        let domain = self.domain_of(frame);
        if domain == self.domain {
            return match self.owners.get(&frame.d_id) {
                Some(&owner) => Ok(Some(owner)),
                None if frame.d_id >= 0xff_0000 => Ok(None),
                None => Err("unknown_destination"),
            };
        }
        let legs = &self.legs[&domain];
        // Frames do not return over the link or bundle on which they arrived.
        let back = |leg: usize| self.together[port].contains(&leg);
        match legs[..] {
            [] => return Err("no_route"),
            [only] if back(only) => {
                *occurred.entry("only leg back").or_default() += 1;
                return Err("no_route");
            }
            [only] => return Ok(Some(only)),
            _ => {}
        }
        let (name, leg) = match self.isl_choice {
            IslChoice::Ingress => ("ingress", self.fixed_leg(port, frame, legs.len()).unwrap()),
            IslChoice::DevicePair => ("pair", self.fixed_leg(port, frame, legs.len()).unwrap()),
            IslChoice::Exchange => ("exchange", self.fixed_leg(port, frame, legs.len()).unwrap()),
            IslChoice::Spray => {
                // If the number of legs has decreased, the stored index may be out of range. It
                // then restarts at 0.
                let next = self.next_leg.entry(domain).or_default();
                let leg = if *next < legs.len() { *next } else { 0 };
                *next = leg + 1;
                ("spray", leg)
            }
            IslChoice::LeastLoaded => {
                let queued =
                    |leg: usize| self.inputs.iter().flatten().filter(|b| self.port_of(b.output) == leg).count();
                let seats = |leg: usize| {
                    let of_leg = self.seats.iter().enumerate().filter(|(output, _)| self.port_of(*output) == leg);
                    of_leg.map(|(_, seats)| seats.len()).sum::<usize>()
                };
                let waiting = |leg: usize| queued(leg) + seats(leg);
                let free = |leg: usize| self.together[leg].iter().filter_map(|&port| line(port).0).min();
                let carried = |leg: usize| self.together[leg].iter().map(|&port| line(port).1).sum::<u64>();
                let load = |leg: usize| (waiting(leg), free(leg).unwrap_or(u64::MAX), carried(leg));
                let least = (0..legs.len()).filter(|&leg| !back(legs[leg])).min_by_key(|&leg| load(legs[leg]));
                ("least-loaded", least.unwrap())
            }
        };
        *occurred.entry(name).or_default() += 1;
        if !back(legs[leg]) {
            return Ok(Some(legs[leg]));
        }
        *occurred.entry("leg back").or_default() += 1;
        let next = (leg + 1) % legs.len();
        if name == "spray" {
            self.next_leg.insert(domain, next + 1);
        }
        Ok(Some(legs[next]))
    }

    /// Returns the domain to which a frame goes.
    fn domain_of(&self, frame: &Frame) -> u32 {
        match frame.d_id {
            // FFFCdd is the controller of domain dd. Other FFxxxx addresses are services of the
            // receiving switch.
            0xff_fc00..=0xff_fcff => frame.d_id & 0xff,
            0xff_0000..=0xff_ffff => self.domain,
            _ => frame.d_id >> 16,
        }
    }

    /// Returns the leg among several that a frame always uses, unless it leads back; `None` if the
    /// choice depends on other frames.
    fn fixed_leg(&self, port: usize, frame: &Frame, legs: usize) -> Option<usize> {
        let pair = u64::from(frame.s_id) << 24 | u64::from(frame.d_id);
        match self.isl_choice {
            IslChoice::Ingress => Some(self.together[port][0] % legs),
            IslChoice::DevicePair => Some(self.hashed(pair, legs)),
            IslChoice::Exchange => Some(self.hashed(pair ^ u64::from(frame.exchange) << 48, legs)),
            IslChoice::Spray | IslChoice::LeastLoaded => None,
        }
    }

    /// Returns the ports through which a frame may leave; none if it stays here or is dropped.
    pub fn possible_outputs(&self, port: usize, frame: &Frame) -> Vec<usize> {
        let domain = self.domain_of(frame);
        if domain == self.domain {
            return self.owners.get(&frame.d_id).copied().into_iter().collect();
        }
        let legs = &self.legs[&domain];
        let back = |leg: usize| self.together[port].contains(&leg);
        if let [only] = legs[..] {
            return if back(only) { Vec::new() } else { vec![only] };
        }
        match self.fixed_leg(port, frame, legs.len().max(1)) {
            Some(_) if legs.is_empty() => Vec::new(),
            Some(leg) if back(legs[leg]) => vec![legs[(leg + 1) % legs.len()]],
            Some(leg) => vec![legs[leg]],
            None => legs.clone(),
        }
    }

    /// Maps the switch's hash of a key to a number below `n`, with its upper half as a fraction of
    /// 2^32.
    fn hashed(&self, key: u64, n: usize) -> usize {
        let plain = mixed(key);
        let hash = self.salt.map_or(plain, |name| mixed(plain ^ (mixed(name) | 1)));
        ((u128::from(hash >> 32) * n as u128) >> 32) as usize
    }

    /// Adds a frame to the buffer of an input.
    pub fn take(&mut self, now: u64, tail: u64, input: usize, output: usize, frame: Frame) {
        if self.inputs[input].is_empty() && self.granted[input].is_empty() && self.busy_until[input] <= now {
            self.shown[input] = true;
        }
        self.inputs[input].push(Buffered { since: now, tail, output, frame });
    }

    /// Adds a frame that the processor sends.
    pub fn enqueue_own(&mut self, now: u64, output: usize, frame: Frame) {
        let processor = self.processor();
        self.take(now, now, processor, output, frame);
    }

    /// Removes the first frame of an input for an output. `turn` is the input whose turn it was.
    pub fn leave(&mut self, turn: usize, input: usize, output: usize) -> Buffered {
        self.served_last[output] = turn;
        let at = self.inputs[input].iter().position(|b| b.output == output).unwrap();
        self.inputs[input].remove(at)
    }

    /// Returns the input whose turn it is at an output, and the input whose frame is the next one.
    pub fn choose(&self, output: usize) -> Option<(usize, usize)> {
        let first_for_output = |input: usize| self.inputs[input].iter().find(|b| b.output == output);
        let shows = |input: usize| {
            let is_head = self.shown[input] && self.inputs[input].first().is_some_and(|b| b.output == output);
            let is_queue = self.queueing == Queueing::Fifo && input != self.processor();
            if is_queue { is_head } else { first_for_output(input).is_some() }
        };
        let since = |input: usize| first_for_output(input).map_or(u64::MAX, |b| b.since);
        // Frames that arrived over a bundle are served in the order of arrival.
        let first_of_bundle = |input: usize| {
            let members = self.together.get(input).cloned().unwrap_or(vec![input]);
            members.into_iter().min_by_key(|&member| (since(member), member)).unwrap()
        };
        let ready = |&input: &usize| shows(input) && shows(first_of_bundle(input));
        let turn = match self.arbitration {
            Arbitration::RoundRobin => {
                let last = self.served_last[output];
                let places = self.ports + 1;
                (1..=places).map(|step| (last + step) % places).find(ready)
            }
            Arbitration::OldestFirst => (0..=self.ports).filter(ready).min_by_key(|&i| (since(i), i)),
        };
        turn.map(|turn| (turn, first_of_bundle(turn)))
    }
}

/// The model's hash function.
fn mixed(key: u64) -> u64 {
    let x = u128::from(key) * 0x9e37_79b9_7f4a_7c15 % (1 << 64);
    ((x ^ (x >> 32)) * 0x94d0_49bb_1331_11eb % (1 << 64)) as u64
}
