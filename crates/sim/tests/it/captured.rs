//! Captures of links of Ethernet and InfiniBand, for the tests that read them.

use crate::labs;
use sanloom_api::results::Results;
use sanloom_fc::san::Lab;
use sanloom_sim::capture::{Capture, Window};
use sanloom_sim::net::Observed;
use sanloom_sim::run::{Observer, Options, simulate};
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
}

impl Observer for Collect {
    fn observed(&mut self, world: &World, observed: &[Observed]) {
        self.capture.add(world, observed, &mut self.out);
    }
}

/// Runs a lab and captures a link. Returns the file, and the results.
pub fn capture(lab: &Arc<Lab>, plane: &Plane, link: u16, window: Window) -> (Vec<u8>, Results) {
    let mut out = Vec::new();
    let capture = Capture::new(lab, &[], &mut out);
    let (capture, options) = match plane {
        Plane::Ethernet => {
            let options = Options { watch_ethernet: vec![link], ..Options::default() };
            (capture.with_ethernet(lab, &[link], &mut out), options)
        }
        Plane::Infiniband => {
            let options = Options { watch_infiniband: vec![link], ..Options::default() };
            (capture.with_infiniband(lab, &[link], &mut out), options)
        }
    };
    let mut collect = Collect { capture: capture.within(window), out };
    let finished = simulate(lab, &options, &mut collect);
    labs::check(&finished);
    let Collect { capture, mut out } = collect;
    capture.finish(&mut out);
    (out, finished.results)
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
