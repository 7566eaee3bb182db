//! A text timeline of a watched link, with a line for each frame and each R_RDY of both directions
//! and for the fill words between. A run of fill words comes before the event that ends it, with
//! the time at which the run began.
//!
//! A link of an arbitrated loop has no fill words of its own, and no credits. Its timeline has the
//! words of the circuits of its port, and each line has the time since the line before; see
//! `of_loop`.

mod of_loop;

use self::of_loop::{LoopEvent, LoopTimeline};
use crate::capture::{DataPlace, part_header};
use crate::net::{FrameRef, Observed, ObservedKind};
use crate::results::Names;
use crate::world::World;
use sanloom_fc::san::Lab;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::{FcId, Header, Message, ReplyTo};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write;

/// Bytes of a transmission word.
const WORD_BYTES: u64 = 4;

/// A timeline under construction. Lines are written in the order of time, so recent lines are held
/// back until no earlier one can follow.
pub struct Trace {
    link: u16,
    /// Column width of the port names.
    width: usize,
    /// Name of the sender of each direction.
    names: [String; 2],
    word_ps: (u64, u64),
    pending: BinaryHeap<Reverse<Line>>,
    next: u64,
    /// End of the last event in each direction, in ps.
    ended_ps: [u64; 2],
    /// State of the timeline of a link of a loop.
    of_loop: Option<LoopTimeline>,
    /// Open requests by exchange.
    requests: BTreeMap<Exchange, Request>,
}

/// Direction of the request, originator, responder, OX_ID. The originator is 0 for a fabric login,
/// which assigns its address.
type Exchange = (bool, FcId, FcId, u16);

#[derive(Clone, Debug)]
enum Request {
    /// Name of an extended link service or a CT request.
    Service(String),
    /// A SCSI command, with the length of its data in bytes.
    Command(u32),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    start_ps: u64,
    number: u64,
    backward: bool,
    length: Length,
    text: String,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Length {
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

impl Trace {
    /// Starts the timeline of a link and appends its first lines to `out`. The timeline of a link
    /// that the lab does not have stays empty.
    pub fn new(lab: &Lab, link: u16, out: &mut String) -> Trace {
        let names = Names::new(lab);
        let config = lab.links.get(usize::from(link));
        let ends = config.map(|link| link.ends.map(|end| names.port(&end))).unwrap_or_default();
        let (ps, bytes) = config.map_or((1, 1), |link| link.rate.ps_per_byte());
        let of_loop = LoopTimeline::new(lab, link);
        if let Some(config) = config {
            let _ = writeln!(out, "# link {} ({}): {} - {}", config.name, config.rate, ends[0], ends[1]);
            let then = "then what, S_ID, D_ID, OX_ID, length";
            let then = match &of_loop {
                Some(of_loop) => of_loop.header(out, then),
                None => format!("{then}, credits"),
            };
            let _ = writeln!(out, "# time in ns since the first login; > from {}, < from {}; {then}", ends[0], ends[1]);
        }
        Trace {
            link,
            width: ends.iter().map(String::len).max().unwrap_or(0),
            names: ends,
            word_ps: (ps * WORD_BYTES, bytes),
            pending: BinaryHeap::new(),
            next: 0,
            ended_ps: [0; 2],
            of_loop,
            requests: BTreeMap::new(),
        }
    }

    /// Adds the records since the last call, and appends all lines that no earlier one can precede
    /// any more.
    pub fn add(&mut self, world: &World, observed: &[Observed], out: &mut String) {
        let link = u32::from(self.link);
        for item in observed.iter().filter(|item| item.lane / 2 == link) {
            let backward = !item.lane.is_multiple_of(2);
            let line = match &item.kind {
                ObservedKind::Frame { frame, start_ps, end_ps, message } => {
                    let message = message.as_deref().map(|(header, bytes, parts)| (header, &bytes[..], *parts));
                    let text = self.frame_text(world, backward, frame, message, item.credits);
                    let length = match self.of_loop {
                        Some(_) => Length::Loop(LoopEvent::Frame),
                        None => Length::Until(*end_ps),
                    };
                    Line { start_ps: *start_ps, number: self.next, backward, length, text }
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
                    Line { start_ps: *at_ps, number: self.next, backward, length: Length::Loop(event), text }
                }
                ObservedKind::LoopInit { start_ps, frame, .. } => Line {
                    start_ps: *start_ps,
                    number: self.next,
                    backward,
                    length: Length::Loop(LoopEvent::Word),
                    text: of_loop::initialisation(frame),
                },
                ObservedKind::LoopTenancy(tenancy) => Line {
                    start_ps: tenancy.left_ps,
                    number: self.next,
                    backward,
                    length: Length::Loop(LoopEvent::Tenancy(*tenancy)),
                    text: String::new(),
                },
                // The memory of an FL_Port is no part of the loop.
                ObservedKind::RRdy { .. } if self.of_loop.is_some() => continue,
                // An R_RDY travels in the opposite direction of its frames.
                ObservedKind::RRdy { at_ps } => Line {
                    start_ps: *at_ps,
                    number: self.next,
                    backward: !backward,
                    length: Length::Word,
                    text: "R_RDY".to_owned(),
                },
                ObservedKind::Reset { at_ps, answered_ps, restart_ps } => {
                    let word = |start_ps: u64, number: u64, backward: bool, text: String| Line {
                        start_ps,
                        number,
                        backward,
                        length: Length::Word,
                        text,
                    };
                    self.pending.push(Reverse(word(*at_ps, self.next, backward, "LR".to_owned())));
                    self.next += 1;
                    let since = format!("{}.{:03}", restart_ps / 1_000, restart_ps % 1_000);
                    let text = format!("LRR  credits {} since {since}", item.credits);
                    word(*answered_ps, self.next, !backward, text)
                }
                ObservedKind::Light { at_ps, up } => Line {
                    start_ps: *at_ps,
                    number: self.next,
                    backward,
                    length: if *up { Length::Light } else { Length::Dark },
                    text: if *up { "link up" } else { "link down" }.to_owned(),
                },
            };
            self.next += 1;
            self.pending.push(Reverse(line));
        }
        self.flush(world.net.now(), out);
    }

    /// Appends the lines that were held back.
    pub fn finish(mut self, out: &mut String) {
        self.flush(u64::MAX, out);
    }

    fn flush(&mut self, before_ps: u64, out: &mut String) {
        while self.pending.peek().is_some_and(|Reverse(first)| first.start_ps < before_ps) {
            let Some(Reverse(line)) = self.pending.pop() else { break };
            if let Some(of_loop) = &mut self.of_loop {
                let text = of_loop.text(line.start_ps, line.backward, &line.length, &line.text);
                self.write(out, line.start_ps, line.backward, &text);
                continue;
            }
            let ended_ps = &mut self.ended_ps[usize::from(line.backward)];
            let (from_ps, idle) = (*ended_ps, self.word_ps);
            let gap_ps = if line.length == Length::Light { 0 } else { line.start_ps.saturating_sub(from_ps) };
            let words = (u128::from(gap_ps) * u128::from(idle.1) / u128::from(idle.0.max(1))) as u64;
            let end_ps = match line.length {
                Length::Until(end_ps) => end_ps,
                Length::Word => line.start_ps + idle.0 / idle.1.max(1),
                Length::Dark | Length::Light | Length::Loop(_) => line.start_ps,
            };
            *ended_ps = if line.length == Length::Light { end_ps } else { end_ps.max(from_ps) };
            if words > 0 {
                let since = format!("{}.{:03}", from_ps / 1_000, from_ps % 1_000);
                self.write(out, line.start_ps, line.backward, &format!("IDLE x {words} since {since}"));
            }
            self.write(out, line.start_ps, line.backward, &line.text);
        }
    }

    fn write(&self, out: &mut String, at_ps: u64, backward: bool, text: &str) {
        let (name, width) = (&self.names[usize::from(backward)], self.width);
        let arrow = if backward { '<' } else { '>' };
        let _ = writeln!(out, "{:>14}.{:03} {arrow} {name:width$}  {text}", at_ps / 1_000, at_ps % 1_000);
    }

    fn frame_text(
        &mut self,
        world: &World,
        backward: bool,
        frame: &FrameRef,
        message: Option<(&Header, &[u8], u16)>,
        credits: u32,
    ) -> String {
        let what = match message {
            Some((header, bytes, parts)) => self.message_text(backward, frame, header, bytes, parts),
            None => self.data_text(world, backward, frame),
        };
        let broken = if frame.is_corrupt() { "  BAD CRC" } else { "" };
        let credits = if self.of_loop.is_none() { format!("  credits {credits}") } else { String::new() };
        format!(
            "{what:<40} {} {} {:04x} {:>5} B{credits}{broken}",
            frame.s_id(),
            frame.d_id(),
            frame.ox_id(),
            frame.len_bytes()
        )
    }

    fn data_text(&self, world: &World, backward: bool, frame: &FrameRef) -> String {
        let place = DataPlace::of(world, frame);
        let number = u32::from(frame.seq_cnt()) + 1;
        let key = match frame.from_responder() {
            true => exchange(!backward, frame.d_id(), frame.s_id(), frame.ox_id()),
            false => exchange(backward, frame.s_id(), frame.d_id(), frame.ox_id()),
        };
        match self.requests.get(&key) {
            Some(Request::Command(bytes)) => {
                let frames = bytes.div_ceil(u32::from(place.frame_bytes)).max(1);
                format!("FCP_DATA {number}/{frames} offset {}", place.offset)
            }
            _ => format!("FCP_DATA {number} offset {}", place.offset),
        }
    }

    fn message_text(&mut self, backward: bool, frame: &FrameRef, header: &Header, bytes: &[u8], parts: u16) -> String {
        if parts > 1 {
            let header = part_header(header, frame.part(), parts, bytes.len());
            return format!("{} / {}, part {}/{parts}", header.r_ctl, header.fc_type, frame.part() + 1);
        }
        let Ok(message) = Message::parse(header, bytes, None) else {
            return format!("{} / {}", header.r_ctl, header.fc_type);
        };
        match &message {
            Message::FcpCmnd(command) => {
                let request = Request::Command(command.data_len);
                self.requests.insert(originated(backward, header), request);
                if command.task_management != 0 {
                    return format!("FCP_CMND task management {:02x}", command.task_management);
                }
                format!("FCP_CMND {} len {}", Cdb::parse(&command.cdb), command.data_len)
            }
            Message::FcpXferRdy(ready) => format!("FCP_XFER_RDY offset {} len {}", ready.offset, ready.burst_len),
            Message::FcpRsp(response) => {
                self.requests.remove(&responded(backward, header));
                match status::name(response.status) {
                    Some(name) => format!("FCP_RSP {name}"),
                    None => format!("FCP_RSP status {:02x}", response.status),
                }
            }
            Message::Els(_) | Message::Ct(_) | Message::SwIls(_) => self.service_text(backward, header, &message),
            other => other.to_string(),
        }
    }

    /// Returns the text of a service frame. A reply is named after its request, because the frame
    /// itself does not identify it.
    fn service_text(&mut self, backward: bool, header: &Header, message: &Message) -> String {
        let name = message.to_string();
        match message.reply_key() {
            Some(ReplyTo::Els(_) | ReplyTo::Ct(..) | ReplyTo::SwIls(_)) => {
                let request = Request::Service(name.clone());
                self.requests.insert(originated(backward, header), request);
                name
            }
            None => match self.requests.remove(&responded(backward, header)) {
                Some(Request::Service(request)) => format!("{request}: {name}"),
                _ => name,
            },
        }
    }
}

fn exchange(backward: bool, originator: FcId, responder: FcId, ox_id: u16) -> Exchange {
    let originator = if responder == FcId::F_PORT { FcId::ZERO } else { originator };
    (backward, originator, responder, ox_id)
}

/// Returns the exchange of a frame sent by its originator.
fn originated(backward: bool, header: &Header) -> Exchange {
    exchange(backward, header.s_id, header.d_id, header.ox_id)
}

/// Returns the exchange of a frame sent by its responder.
fn responded(backward: bool, header: &Header) -> Exchange {
    exchange(!backward, header.d_id, header.s_id, header.ox_id)
}
