//! The crossbar of the plain engine, for FIFO inputs and for virtual output queues.

use super::switch::{Buffered, Switch};
use super::{End, Engine, Frame, OVERHEAD};
use sanloom_fc::config::{CrossbarLimits, Queueing};

/// A place in front of the lines of an output.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    input: usize,
    /// The frame and the time at which its last bit has crossed.
    pub crossed: Option<(Buffered, u64)>,
}

/// Rates of the crossbar.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    /// Time of a byte from an input, in units of 2^-32 ps.
    byte: u128,
    /// Time of a byte at the total rate, in units of 2^-32 ps.
    byte_in_total: Option<u128>,
    seats_per_line: usize,
    total_used_until: u64,
}

impl Speed {
    /// `fastest` is the time of a byte on the fastest line: ps and the bytes they belong to.
    pub fn new(limits: CrossbarLimits, fastest: (u64, u64)) -> Speed {
        let percent = u128::from(limits.speedup_percent);
        Speed {
            byte: ((u128::from(fastest.0) * 100) << 32) / (u128::from(fastest.1) * percent),
            byte_in_total: limits.bandwidth_bit_per_s.map(|rate| (8_000_000_000_000 << 32) / u128::from(rate)),
            seats_per_line: limits.egress_frames.into(),
            total_used_until: 0,
        }
    }
}

impl Switch {
    /// Gives a free seat of an output to the next input.
    fn grant(&mut self, output: usize) -> Option<usize> {
        if self.seats[output].len() >= self.speed.seats_per_line * self.together[self.port_of(output)].len() {
            return None;
        }
        let (turn, input) = self.choose(output)?;
        let buffered = self.leave(turn, input, output);
        self.granted[input].push(buffered);
        if input != self.processor() {
            self.shown[input] = false;
        }
        self.seats[output].push(Seat { input, crossed: None });
        Some(input)
    }

    /// Moves the first granted frame of an input, if no other frame crosses from it. Returns the
    /// time at which its last bit has crossed.
    fn cross(&mut self, now: u64, input: usize) -> Option<(u64, u8)> {
        if self.busy_until[input] > now || self.granted[input].is_empty() {
            return None;
        }
        let buffered = self.granted[input].remove(0);
        let bytes = u128::from(u64::from(buffered.frame.len).next_multiple_of(4) + OVERHEAD);
        let mut end = now;
        if input != self.processor() {
            let time = |byte: u128| ((byte * bytes) >> 32) as u64;
            end = (now + time(self.speed.byte).max(1)).max(buffered.tail);
            if let Some(byte) = self.speed.byte_in_total {
                self.speed.total_used_until = self.speed.total_used_until.max(now) + time(byte);
                end = end.max(self.speed.total_used_until);
            }
        }
        self.busy_until[input] = end;
        let mut seats = self.seats[buffered.output].iter_mut();
        seats.find(|seat| seat.input == input && seat.crossed.is_none()).unwrap().crossed = Some((buffered, end));
        Some((end, buffered.frame.channel))
    }

    /// Returns the seat whose frame leaves next: no frame overtakes an earlier one of its bundle.
    pub fn next_seat(&self, output: usize) -> Option<usize> {
        let bundle =
            |input: usize| self.together.get(input).filter(|members| members.len() > 1).map(|members| members[0]);
        let seats = &self.seats[output];
        (0..seats.len()).find(|&at| {
            let own = bundle(seats[at].input);
            let waits = |other: &Seat| own.is_some() && bundle(other.input) == own && other.crossed.is_none();
            seats[at].crossed.is_some() && !seats[..at].iter().any(waits)
        })
    }

    /// Returns the seat whose frame may start now, or the time at which the first one may. `time`
    /// is the time of bytes on the line. A line never waits for the last bits of a frame while
    /// another frame could be sent.
    pub fn seat_to_start(&self, output: usize, now: u64, time: impl Fn(u64) -> u64) -> Result<usize, Option<u64>> {
        let bundle =
            |input: usize| self.together.get(input).filter(|members| members.len() > 1).map(|members| members[0]);
        let seats = &self.seats[output];
        let mut starts = Vec::new();
        for (at, seat) in seats.iter().enumerate() {
            let Some((buffered, ready)) = seat.crossed else { continue };
            let own = bundle(seat.input);
            let follows = |other: &Seat| other.input == seat.input || (own.is_some() && bundle(other.input) == own);
            if seats[..at].iter().any(follows) {
                continue;
            }
            let bytes = u64::from(buffered.frame.len).next_multiple_of(4) + OVERHEAD;
            let start = ready.saturating_sub(time(bytes));
            if start <= now {
                return Ok(at);
            }
            starts.push(start);
        }
        Err(starts.into_iter().min())
    }

    /// Takes the granted frames of an input back into its queue and gives up their seats.
    pub fn take_back(&mut self, now: u64, input: usize) {
        let granted = std::mem::take(&mut self.granted[input]);
        self.inputs[input].splice(0..0, granted);
        self.shown[input] = self.busy_until[input] <= now;
        self.seats.iter_mut().for_each(|seats| seats.retain(|seat| seat.input != input || seat.crossed.is_some()));
    }

    /// Removes and returns the crossed frames for which `which` returns true, with their inputs.
    pub fn remove_crossed(&mut self, which: impl Fn(usize, &Buffered) -> bool) -> Vec<usize> {
        let goes = |seat: &Seat| seat.crossed.is_some_and(|(b, _)| which(seat.input, &b));
        let gone = self.seats.iter().flatten().filter(|seat| goes(seat)).map(|seat| seat.input).collect();
        self.seats.iter_mut().for_each(|seats| seats.retain(|seat| !goes(seat)));
        gone
    }

    /// Arrival times of the frames that came through an input.
    pub fn arrivals(&self, input: usize) -> impl Iterator<Item = u64> {
        let crossed = self.seats.iter().flatten().filter(move |seat| seat.input == input);
        let crossed = crossed.filter_map(|seat| seat.crossed).map(|(b, _)| b.since);
        self.inputs[input].iter().chain(&self.granted[input]).map(|b| b.since).chain(crossed)
    }
}

impl Engine {
    /// Sends what is in front of the lines of an output and grants the free seats, as long as
    /// something happens.
    pub fn serve(&mut self, switch: usize, output: usize) {
        if self.switches[switch].has_doors(output) {
            return self.serve_doors(switch, output);
        }
        loop {
            for member in self.switches[switch].together[output].clone() {
                if let Some(lane) = self.lane_from(End::Switch(switch, member)) {
                    self.send_crossed(lane, switch, output);
                }
            }
            if !self.grant(switch, output) {
                return;
            }
        }
    }

    /// Grants the free seats of an output. Returns whether a frame crosses at once.
    pub fn grant(&mut self, switch: usize, output: usize) -> bool {
        let mut crosses = false;
        while let Some(input) = self.switches[switch].grant(output) {
            let earlier = self.switches[switch].granted[input].len() > 1;
            if !earlier && self.cross(switch, input) {
                crosses = true;
            } else {
                self.expect_input(switch, input);
            }
        }
        crosses
    }

    fn cross(&mut self, switch: usize, input: usize) -> bool {
        let Some((end, channel)) = self.switches[switch].cross(self.now, input) else { return false };
        if input != self.switches[switch].processor() {
            let upstream = self.lane_to(End::Switch(switch, input));
            self.credit_back(upstream, end, channel);
            self.expect_input(switch, input);
        }
        true
    }

    /// Plans the end of the frame that crosses from an input.
    pub fn expect_input(&mut self, switch: usize, input: usize) {
        if input != self.switches[switch].processor() {
            let at = self.switches[switch].busy_until[input].max(self.now);
            let lane = self.lane_to(End::Switch(switch, input));
            self.shows.push((at, lane));
        }
    }

    /// Handles the end of a frame that crossed from the input of a lane.
    pub fn input_ready(&mut self, lane: usize) {
        let End::Switch(switch, input) = self.lanes[lane].to else { return };
        let machine = &mut self.switches[switch];
        if let Some(output) = machine.granted[input].first().map(|b| b.output) {
            if self.cross(switch, input) {
                self.serve(switch, output);
            }
        } else if machine.queueing == Queueing::Fifo && machine.busy_until[input] <= self.now {
            machine.shown[input] = true;
            if let Some(output) = machine.inputs[input].first().map(|b| b.output) {
                self.serve(switch, output);
            }
        }
    }

    /// Handles a frame that has come into the buffer of an input.
    pub fn enter(&mut self, switch: usize, input: usize, output: usize) {
        let machine = &self.switches[switch];
        if machine.queueing == Queueing::Fifo && machine.busy_until[input] > self.now {
            self.expect_input(switch, input);
        } else if self.grant(switch, output) {
            self.serve(switch, output);
        }
    }

    /// Tries to send on a lane, and on the other lanes of its bundle if it can send.
    pub fn serve_line(&mut self, number: usize, switch: usize, output: usize) {
        if self.switches[switch].together[output].len() == 1 || self.could_send(number, switch, output) {
            self.serve(switch, output);
        } else if self.switches[switch].has_doors(output) {
            self.send_on_channel(number, switch, output);
        } else {
            self.send_crossed(number, switch, output);
        }
    }

    /// Returns whether a frame in front of a lane could leave now.
    fn could_send(&self, number: usize, switch: usize, output: usize) -> bool {
        let (lane, machine, now) = (&self.lanes[number], &self.switches[switch], self.now);
        let has_credit = |credits: usize, returns: &[u64]| credits > 0 || returns.iter().any(|&at| at <= now);
        let has_frame = |output: usize| {
            machine.next_seat(output).is_some() && machine.seat_to_start(output, now, |bytes| lane.time(bytes)).is_ok()
        };
        let could = match &lane.channels {
            None => has_credit(lane.credits, &lane.returns) && has_frame(output),
            Some(channels) => machine.doors_of(output).into_iter().any(|(number, door)| {
                let channel = &channels.list[&number];
                has_credit(channel.credits, &channel.returns) && has_frame(door)
            }),
        };
        could && lane.up && lane.free_at <= now
    }

    fn send_crossed(&mut self, number: usize, switch: usize, output: usize) {
        if !self.lanes[number].up {
            return;
        }
        self.collect_credits(number);
        if self.switches[switch].next_seat(output).is_none() || !self.may_send(number) {
            return;
        }
        let lane = &self.lanes[number];
        let at = match self.switches[switch].seat_to_start(output, self.now, |bytes| lane.time(bytes)) {
            Ok(at) => at,
            Err(start) => {
                start.into_iter().for_each(|start| self.schedule_try(start, number));
                self.count("a line waits for a slower one");
                return;
            }
        };
        let (buffered, ready) = self.switches[switch].seats[output].remove(at).crossed.unwrap();
        let frame: Frame = buffered.frame;
        self.put(number, ready, frame);
        if self.switches[switch].next_seat(output).is_some() {
            let at = self.lanes[number].free_at;
            self.schedule_try(at, number);
        }
    }
}
