//! A text timeline of a watched link of any plane, with a line for each frame or packet and for
//! each event of both directions.
//!
//! | file | job |
//! |---|---|
//! | `fibre_channel` | links of Fibre Channel, with fill words and credits |
//! | `of_loop` | links of an arbitrated loop |
//! | `ethernet` | links of Ethernet, with pauses |
//! | `infiniband` | links of InfiniBand, with flow-control packets |
//! | `frames` | frames of Fibre Channel in words, on every plane |
//! | `segments` | segments of TCP and PDUs of iSCSI in words |

mod ethernet;
mod fibre_channel;
mod frames;
mod infiniband;
mod of_loop;
mod segments;

use crate::net::Observed;
use crate::world::World;
use sanloom_fc::san::Lab;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt::Write;

/// A timeline under construction. Lines are written in the order of time, so recent lines are held
/// back until no earlier one can follow.
pub struct Trace(Plane);

enum Plane {
    FibreChannel(Box<fibre_channel::Timeline>),
    Ethernet(Box<ethernet::Timeline>),
    Infiniband(Box<infiniband::Timeline>),
}

impl Trace {
    /// Starts the timeline of a link of Fibre Channel and appends its first lines to `out`. The
    /// timeline of a link that the lab does not have stays empty.
    pub fn new(lab: &Lab, link: u16, out: &mut String) -> Trace {
        Trace(Plane::FibreChannel(Box::new(fibre_channel::Timeline::new(lab, link, out))))
    }

    /// As [`Trace::new`], for an Ethernet link.
    pub fn of_ethernet(lab: &Lab, link: u16, out: &mut String) -> Trace {
        Trace(Plane::Ethernet(Box::new(ethernet::Timeline::new(lab, link, out))))
    }

    /// As [`Trace::new`], for an InfiniBand link.
    pub fn of_infiniband(lab: &Lab, link: u16, out: &mut String) -> Trace {
        Trace(Plane::Infiniband(Box::new(infiniband::Timeline::new(lab, link, out))))
    }

    /// Adds the records since the last call, and appends all lines that no earlier one can precede
    /// any more.
    pub fn add(&mut self, world: &World, observed: &[Observed], out: &mut String) {
        match &mut self.0 {
            Plane::FibreChannel(timeline) => timeline.add(world, observed),
            Plane::Ethernet(timeline) => timeline.add(world),
            Plane::Infiniband(timeline) => timeline.add(world),
        }
        self.flush(world.net.now(), out);
    }

    /// Appends the lines that were held back.
    pub fn finish(mut self, out: &mut String) {
        self.flush(u64::MAX, out);
    }

    fn flush(&mut self, before_ps: u64, out: &mut String) {
        match &mut self.0 {
            Plane::FibreChannel(timeline) => timeline.flush(before_ps, out),
            Plane::Ethernet(timeline) => timeline.lines.flush(before_ps, out),
            Plane::Infiniband(timeline) => timeline.lines.flush(before_ps, out),
        }
    }
}

/// Columns that begin each line: time, direction and sender.
struct Columns {
    /// Name of the sender of each direction.
    names: [String; 2],
    width: usize,
}

impl Columns {
    fn new(names: [String; 2]) -> Columns {
        let width = names.iter().map(String::len).max().unwrap_or(0);
        Columns { names, width }
    }

    fn title(&self, out: &mut String, link: &str, rate: &str) {
        let [from, to] = &self.names;
        let _ = writeln!(out, "# link {link} ({rate}): {from} - {to}");
    }

    fn legend(&self, out: &mut String, then: &str) {
        let [from, to] = &self.names;
        let _ = writeln!(out, "# time in ns since the first login; > from {from}, < from {to}; {then}");
    }

    fn write(&self, out: &mut String, at_ps: u64, backward: bool, text: &str) {
        let (name, width) = (&self.names[usize::from(backward)], self.width);
        let arrow = if backward { '<' } else { '>' };
        let _ = writeln!(out, "{:>14}.{:03} {arrow} {name:width$}  {text}", at_ps / 1_000, at_ps % 1_000);
    }
}

/// Lines whose texts are complete when they are added.
struct Lines {
    columns: Columns,
    pending: Pending<String>,
}

impl Lines {
    fn push(&mut self, at_ps: u64, line: u32, text: String) {
        self.pending.push(at_ps, !line.is_multiple_of(2), text);
    }

    fn flush(&mut self, before_ps: u64, out: &mut String) {
        while let Some((at_ps, backward, text)) = self.pending.pop(before_ps) {
            self.columns.write(out, at_ps, backward, &text);
        }
    }
}

/// Lines that are held back, in the order of their times and, at one time, of their addition.
struct Pending<T> {
    lines: BinaryHeap<Reverse<Held<T>>>,
    next: u64,
}

struct Held<T> {
    start_ps: u64,
    number: u64,
    backward: bool,
    line: T,
}

impl<T> Default for Pending<T> {
    fn default() -> Pending<T> {
        Pending { lines: BinaryHeap::new(), next: 0 }
    }
}

impl<T> Pending<T> {
    fn push(&mut self, start_ps: u64, backward: bool, line: T) {
        self.lines.push(Reverse(Held { start_ps, number: self.next, backward, line }));
        self.next += 1;
    }

    /// Takes the first line, if it begins before a time.
    fn pop(&mut self, before_ps: u64) -> Option<(u64, bool, T)> {
        self.lines.peek().filter(|Reverse(first)| first.start_ps < before_ps)?;
        let Reverse(Held { start_ps, backward, line, .. }) = self.lines.pop()?;
        Some((start_ps, backward, line))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Held<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Held<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Held<T>) -> Ordering {
        (self.start_ps, self.number).cmp(&(other.start_ps, other.number))
    }
}

/// Returns a time in ns with three decimals.
fn at_ns(ps: u64) -> String {
    format!("{}.{:03}", ps / 1_000, ps % 1_000)
}

fn light(up: bool) -> &'static str {
    if up { "link up" } else { "link down" }
}
