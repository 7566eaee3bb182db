//! The timeline of a link of Fibre Channel: a line for each frame and each R_RDY of both directions
//! and for the fill words between. A run of fill words comes before the event that ends it, with
//! the time at which the run began.
//!
//! A link of an arbitrated loop has no fill words of its own, and no credits. Its timeline has the
//! words of the circuits of its port, and each line has the time since the line before; see
//! `of_loop`.

use super::frames::{self, FrameTexts};
use super::of_loop::{self, LoopEvent, LoopTimeline};
use super::{Columns, Pending, at_ns};
use crate::net::{FrameRef, Observed, ObservedKind};
use crate::results::Names;
use crate::world::World;
use sanloom_fc::san::{Lab, rate_names};
use sanloom_wire::Header;
use std::fmt::Write;

/// Bytes of a transmission word.
pub(super) const WORD_BYTES: u64 = 4;

/// State of the timeline.
pub(super) struct Timeline {
    link: u16,
    columns: Columns,
    word_ps: (u64, u64),
    pending: Pending<Line>,
    /// End of the last event in each direction, in ps.
    ended_ps: [u64; 2],
    /// State of the timeline of a link of a loop.
    of_loop: Option<LoopTimeline>,
    /// A link over Ethernet has neither fill words nor credits.
    is_virtual: bool,
    frames: FrameTexts,
}

struct Line {
    length: Length,
    text: String,
}

/// Extent of a line in time.
#[derive(PartialEq, Eq)]
pub(super) enum Length {
    /// A frame, with the time of its end.
    Until(u64),
    /// A primitive signal.
    Word,
    /// The light went off; no fill words follow until it is on again.
    Dark,
    /// The light is on again.
    Light,
    /// An event on a link of a loop.
    Loop(LoopEvent),
}

impl Timeline {
    /// Starts the timeline of a link and appends its first lines to `out`. The timeline of a link
    /// that the lab does not have stays empty.
    pub fn new(lab: &Lab, link: u16, out: &mut String) -> Timeline {
        let names = Names::new(lab);
        let config = lab.links.get(usize::from(link));
        let ends = config.map(|link| link.ends.map(|end| names.port(&end))).unwrap_or_default();
        let (ps, bytes) = config.map_or((1, 1), |link| link.rate.ps_per_byte());
        let of_loop = LoopTimeline::new(lab, link);
        let is_virtual = config.is_some_and(|link| link.fcoe.is_some());
        let columns = Columns::new(ends);
        if let Some(config) = config {
            columns.title(out, &config.name, &rate_names(lab)[usize::from(link)]);
            let then = "then what, S_ID, D_ID, OX_ID, length";
            let then = match &of_loop {
                Some(of_loop) => of_loop.header(out, then),
                None if is_virtual => then.to_owned(),
                None => format!("{then}, credits"),
            };
            columns.legend(out, &then);
        }
        Timeline {
            link,
            columns,
            word_ps: (ps * WORD_BYTES, bytes),
            pending: Pending::default(),
            ended_ps: [0; 2],
            of_loop,
            is_virtual,
            frames: FrameTexts::default(),
        }
    }

    /// Adds the records since the last call.
    pub fn add(&mut self, world: &World, observed: &[Observed]) {
        let link = u32::from(self.link);
        for item in observed.iter().filter(|item| item.lane / 2 == link) {
            let backward = !item.lane.is_multiple_of(2);
            let (start_ps, backward, length, text) = match &item.kind {
                ObservedKind::Frame { frame, start_ps, end_ps, message } => {
                    let message = message.as_deref().map(|(header, bytes, parts)| (header, &bytes[..], *parts));
                    let text = self.frame_text(world, item, frame, message);
                    let length = match self.of_loop {
                        Some(_) => Length::Loop(LoopEvent::Frame),
                        None => Length::Until(*end_ps),
                    };
                    (*start_ps, backward, length, text)
                }
                // Several links that come up at one time begin one initialisation.
                ObservedKind::LoopWord { at_ps, word, .. }
                    if self.of_loop.as_mut().is_some_and(|of_loop| of_loop.repeats(*word, *at_ps)) =>
                {
                    continue;
                }
                ObservedKind::LoopWord { at_ps, since_ps, word, count } => {
                    let event = LoopEvent::of_word(*word, *since_ps);
                    let text = if *count > 1 { format!("{word} x {count}") } else { word.to_string() };
                    (*at_ps, backward, Length::Loop(event), text)
                }
                ObservedKind::LoopInit { start_ps, frame, .. } => {
                    (*start_ps, backward, Length::Loop(LoopEvent::Word), of_loop::initialisation(frame))
                }
                ObservedKind::LoopTenancy(tenancy) => {
                    (tenancy.left_ps, backward, Length::Loop(LoopEvent::Tenancy(*tenancy)), String::new())
                }
                // The memory of an FL_Port is no part of the loop.
                ObservedKind::RRdy { .. } if self.of_loop.is_some() || self.is_virtual => continue,
                // An R_RDY travels in the opposite direction of its frames.
                ObservedKind::RRdy { at_ps } => (*at_ps, !backward, Length::Word, "R_RDY".to_owned()),
                ObservedKind::Reset { at_ps, answered_ps, restart_ps } => {
                    let line = Line { length: Length::Word, text: "LR".to_owned() };
                    self.pending.push(*at_ps, backward, line);
                    let text = format!("LRR  credits {} since {}", item.credits, at_ns(*restart_ps));
                    (*answered_ps, !backward, Length::Word, text)
                }
                ObservedKind::Light { at_ps, up } => {
                    let length = if *up { Length::Light } else { Length::Dark };
                    (*at_ps, backward, length, super::light(*up).to_owned())
                }
            };
            self.pending.push(start_ps, backward, Line { length, text });
        }
    }

    /// Appends the lines that begin before a time.
    pub fn flush(&mut self, before_ps: u64, out: &mut String) {
        while let Some((start_ps, backward, line)) = self.pending.pop(before_ps) {
            if let Some(of_loop) = &mut self.of_loop {
                let text = of_loop.text(start_ps, backward, &line.length, &line.text);
                self.columns.write(out, start_ps, backward, &text);
                continue;
            }
            let ended_ps = &mut self.ended_ps[usize::from(backward)];
            let (from_ps, idle) = (*ended_ps, self.word_ps);
            let gap_ps = if line.length == Length::Light { 0 } else { start_ps.saturating_sub(from_ps) };
            let words = (u128::from(gap_ps) * u128::from(idle.1) / u128::from(idle.0.max(1))) as u64;
            let end_ps = match line.length {
                Length::Until(end_ps) => end_ps,
                Length::Word => start_ps + idle.0 / idle.1.max(1),
                Length::Dark | Length::Light | Length::Loop(_) => start_ps,
            };
            *ended_ps = if line.length == Length::Light { end_ps } else { end_ps.max(from_ps) };
            if words > 0 && !self.is_virtual {
                let text = format!("IDLE x {words} since {}", at_ns(from_ps));
                self.columns.write(out, start_ps, backward, &text);
            }
            self.columns.write(out, start_ps, backward, &line.text);
        }
    }

    fn frame_text(
        &mut self,
        world: &World,
        item: &Observed,
        frame: &FrameRef,
        message: Option<(&Header, &[u8], u16)>,
    ) -> String {
        let what = self.frames.what(world, item.lane, frame, message);
        let broken = if frame.is_corrupt() { "  BAD CRC" } else { "" };
        let has_credits = self.of_loop.is_none() && !self.is_virtual;
        let credits = if has_credits { format!("  credits {}", item.credits) } else { String::new() };
        let mut text = format!("{what:<40} {}", frames::ids(frame));
        let _ = write!(text, " {:>5} B{credits}{broken}", frame.len_bytes());
        text
    }
}
