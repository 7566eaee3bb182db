//! Captures of links of Ethernet and InfiniBand, for the tests that read them.

use crate::labs;
use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use sanloom_sim::capture::{Capture, Window};
use sanloom_sim::net::Observed;
use sanloom_sim::parallel::Threads;
use sanloom_sim::run::{Observer, Options, simulate};
use sanloom_sim::trace::Trace;
use sanloom_sim::world::World;
use std::sync::Arc;

/// The plane of a link.
pub enum Plane {
    Ethernet,
    Infiniband,
}

struct Collect {
    capture: Capture,
    out: Vec<u8>,
    /// A timeline, if the test reads one, and its text.
    trace: Option<Trace>,
    text: String,
}

impl Observer for Collect {
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        self.capture.add(world, observed, &mut self.out);
        self.trace.iter_mut().for_each(|trace| trace.add(world, observed, &mut self.text));
    }
}

/// Everything that a run writes.
pub struct Written {
    pub capture: Vec<u8>,
    pub timeline: String,
    pub results: Results,
}

/// Runs a lab and captures a link. Returns the file, and the results.
pub fn capture(lab: &Arc<Lab>, plane: &Plane, link: u16, window: Window) -> (Vec<u8>, Results) {
    let written = observe(lab, plane, link, (window, false), Threads::default());
    (written.capture, written.results)
}

/// Runs a lab on some threads, and captures and traces a link.
pub fn written(lab: &Arc<Lab>, plane: &Plane, link: u16, threads: Threads) -> Written {
    observe(lab, plane, link, (Window::default(), true), threads)
}

fn observe(lab: &Arc<Lab>, plane: &Plane, link: u16, (window, is_traced): (Window, bool), threads: Threads) -> Written {
    let (mut out, mut text) = (Vec::new(), String::new());
    let capture = Capture::new(lab, &[], &mut out);
    let options = Options { threads, ..Options::default() };
    let (capture, trace, options) = match plane {
        Plane::Ethernet => {
            let options = Options { watch_ethernet: vec![link], ..options };
            let trace = is_traced.then(|| Trace::of_ethernet(lab, link, &mut text));
            (capture.with_ethernet(lab, &[link], &mut out), trace, options)
        }
        Plane::Infiniband => {
            let options = Options { watch_infiniband: vec![link], ..options };
            let trace = is_traced.then(|| Trace::of_infiniband(lab, link, &mut text));
            (capture.with_infiniband(lab, &[link], &mut out), trace, options)
        }
    };
    let mut collect = Collect { capture: capture.within(window), out, trace, text };
    let finished = simulate(lab, &options, &mut collect);
    labs::check(&finished);
    let Collect { capture, out: mut file, trace, text: mut timeline } = collect;
    capture.finish(&mut file);
    trace.into_iter().for_each(|trace| trace.finish(&mut timeline));
    Written { capture: file, timeline, results: finished.results }
}

/// Returns the packets of InfiniBand in a capture: the data of its enhanced packet blocks behind
/// the header of the ERF record.
pub fn packets(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut found) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            found.push(&file[at + 28 + 16..at + 28 + word(at + 20)]);
        }
        at += word(at + 4);
    }
    found
}
