//! The timeline of a link of an arbitrated loop: [`LoopTimeline`].
//!
//! A word or frame that the port of the link sends is at the time at which it leaves. A word that
//! it receives is at the time at which the port acts on it, one word before its answer. A tenancy
//! then costs, beside its frames: arbitration and OPN, L + w; OPN up to the first frame, L + 2 w;
//! CLS of both ports, L + w.

use super::fibre_channel::{Length, WORD_BYTES};
use crate::net::LoopTenancy;
use crate::results::Names;
use sanloom_fc::config::Node;
use sanloom_fc::san::Lab;
use sanloom_wire::arbitrated_loop::{AlPa, LoopInit, Primitive};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of the text before the time since the last line.
const TEXT_WIDTH: usize = 72;

/// State of the timeline.
pub(super) struct LoopTimeline {
    /// Ports by their numbers at the loop.
    names: BTreeMap<u16, String>,
    /// Number at the loop of the port of the link.
    port: u16,
    /// Words of the port travel backward on the link.
    is_backward: bool,
    /// Duration of a word in ps: numerator and denominator.
    word_ps: (u64, u64),
    /// L: a round without the delay of the owner, in ps.
    round_ps: u64,
    /// A tenancy without frames, in ps.
    cost_ps: u64,
    login_credit: u16,
    last_ps: u64,
    /// Last OPN of the port, and its first frame since.
    opened_ps: u64,
    first_frame_ps: Option<u64>,
    /// Time of the last LIP.
    lip_ps: Option<u64>,
}

/// An event on a link of a loop.
#[derive(PartialEq, Eq)]
pub(super) enum LoopEvent {
    Frame,
    /// The port has won, and has arbitrated since.
    Won {
        since_ps: u64,
    },
    Open,
    /// Another word.
    Word,
    Tenancy(LoopTenancy),
}

impl LoopEvent {
    pub(super) fn of_word(word: Primitive, since_ps: u64) -> LoopEvent {
        match word {
            Primitive::Arb { .. } => LoopEvent::Won { since_ps },
            Primitive::OpenFull { .. } | Primitive::OpenHalf { .. } => LoopEvent::Open,
            _ => LoopEvent::Word,
        }
    }
}

impl LoopTimeline {
    /// Returns the state of a link, if it belongs to a loop.
    pub(super) fn new(lab: &Lab, link: u16) -> Option<LoopTimeline> {
        let config = lab.links.get(usize::from(link))?;
        let number = config.loop_end()?;
        let names = Names::new(lab);
        let of_loop = |end: &&sanloom_fc::config::LinkEnd| end.node == Node::Loop(number);
        let pairs = lab.links.iter().filter_map(|link| {
            let at_loop = link.ends.iter().find(of_loop)?;
            let port = link.ends.iter().find(|end| !of_loop(end))?;
            Some((at_loop.port, names.port(port)))
        });
        let engine = lab.loop_config(number)?;
        let (ps, bytes) = config.rate.ps_per_byte();
        Some(LoopTimeline {
            names: pairs.collect(),
            port: config.ends.iter().find(of_loop)?.port,
            is_backward: config.ends[0].node == Node::Loop(number),
            word_ps: (ps * WORD_BYTES, bytes),
            round_ps: engine.round(0).ps(),
            cost_ps: engine.tenancy_cost(0, 1)?.ps(),
            login_credit: lab.loops[usize::from(number)].login_credit,
            last_ps: 0,
            opened_ps: 0,
            first_frame_ps: None,
            lip_ps: None,
        })
    }

    /// Appends the constants of the loop, and returns the columns of a line.
    pub(super) fn header(&self, out: &mut String, columns: &str) -> String {
        let cost = if self.login_credit == 0 { "3 L + 4 w" } else { "2 L + 3 w" };
        let _ = writeln!(
            out,
            "# w = a word = {}; L = a round without the delay of the owner = {}",
            ns(self.word_ps.0 / self.word_ps.1.max(1)),
            self.both(self.round_ps)
        );
        let _ = writeln!(out, "# a tenancy without its frames = {cost} = {}", self.both(self.cost_ps));
        format!("{columns}; then words (w) and ns since the line before (ARB: since the port arbitrates)")
    }

    /// Returns whether a word is a LIP at the time of the last one.
    pub(super) fn repeats(&mut self, word: Primitive, at_ps: u64) -> bool {
        word.is_sequence() && self.lip_ps.replace(at_ps) == Some(at_ps)
    }

    /// Text of a line, which is the next one in the order of time.
    pub(super) fn text(&mut self, at_ps: u64, backward: bool, length: &Length, text: &str) -> String {
        let since_ps = match length {
            Length::Loop(LoopEvent::Won { since_ps }) => *since_ps,
            Length::Loop(LoopEvent::Tenancy(tenancy)) => {
                self.last_ps = at_ps;
                return self.tenancy(tenancy);
            }
            _ => self.last_ps,
        };
        if backward == self.is_backward {
            match length {
                Length::Loop(LoopEvent::Open) => (self.opened_ps, self.first_frame_ps) = (at_ps, None),
                Length::Loop(LoopEvent::Frame) => self.first_frame_ps = self.first_frame_ps.or(Some(at_ps)),
                _ => {}
            }
        }
        self.last_ps = at_ps;
        format!("{text:<TEXT_WIDTH$} {}", self.both(at_ps.saturating_sub(since_ps)))
    }

    fn tenancy(&self, of: &LoopTenancy) -> String {
        let LoopTenancy { wish_ps, opened_ps, closed_ps, left_ps, .. } = *of;
        let mut text = format!("tenancy of {}", self.name(of.owner));
        if let Some(peer) = of.peer {
            let _ = write!(text, " with {}", self.name(peer));
        }
        if of.circuits > 1 {
            let _ = write!(text, ", the last of {} circuits", of.circuits);
        }
        let arbitration_ps = opened_ps - wish_ps;
        let close_ps = left_ps - closed_ps;
        let is_own = of.owner == self.port && of.circuits == 1 && self.opened_ps == opened_ps;
        match self.first_frame_ps.filter(|_| is_own) {
            Some(first_ps) => {
                let open_ps = first_ps - opened_ps;
                let parts = [arbitration_ps, open_ps, closed_ps - first_ps, close_ps].map(|part| self.words(part));
                let [arbitration, open, frames, close] = parts;
                let without_ps = arbitration_ps + open_ps + close_ps;
                let _ = write!(
                    text,
                    ": ARB {arbitration}, OPN {open}, frames {frames}, CLS {close}; without frames {}",
                    self.both(without_ps)
                );
            }
            None => {
                let parts = [arbitration_ps, closed_ps.saturating_sub(opened_ps), close_ps];
                let [arbitration, circuit, close] = parts.map(|part| self.words(part));
                let _ = write!(text, ": ARB {arbitration}, circuit {circuit}, CLS {close}");
            }
        }
        text
    }

    fn name(&self, port: u16) -> &str {
        self.names.get(&port).map_or("", String::as_str)
    }

    fn words(&self, ps: u64) -> String {
        format!("{:.2} w", ps as f64 * self.word_ps.1 as f64 / self.word_ps.0 as f64)
    }

    fn both(&self, ps: u64) -> String {
        format!("{} {}", self.words(ps), ns(ps))
    }
}

/// Text of a frame of the initialisation.
pub(super) fn initialisation(frame: &LoopInit) -> String {
    let hex = |addresses: &[AlPa]| addresses.iter().map(|al_pa| format!(" {:02x}", al_pa.value())).collect::<String>();
    match frame {
        LoopInit::Master { port_name } => format!("{} {port_name}", frame.name()),
        LoopInit::Addresses { map, .. } => {
            let login = if map.login_required() { " L_bit" } else { "" };
            let taken: Vec<AlPa> = AlPa::all().filter(|al_pa| map.has(*al_pa)).collect();
            format!("{}{login}{}", frame.name(), hex(&taken))
        }
        LoopInit::ReportPosition(map) | LoopInit::LoopPosition(map) => {
            format!("{}{}", frame.name(), hex(map.addresses()))
        }
    }
}

fn ns(ps: u64) -> String {
    format!("{:.2} ns", ps as f64 / 1e3)
}
