//! Faults that an operator injects at ports: [`Injector`], and what it does to frames on their way.
//!
//! A frame is looked at where it passes a port of a switch: before the forwarding table on its way in, behind it on its way
//! out. Messages that travel in FIP (FLOGI, FDISC, LOGO) are looked at as what they are. What is injected once is not looked at
//! again, so a delayed frame is delayed once.

use super::forward::{addresses_of, reason};
use super::switch::Attachment;
use super::{Runtime, Source};
use crate::frame::FrameBuf;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use sanloom_api::control::Answer;
use sanloom_api::inject::{Act, Direction, Matcher, RuleRow, RulesView, Seen};
use sanloom_api::view::build::LiveWhich;
use sanloom_core::fabric_switch;
use sanloom_core::fip::fcf;
use sanloom_core::time::{Instant, Span};
use sanloom_wire::bls::{BaRjt, Bls};
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{ETHER_BYTES, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use sanloom_wire::{FcType, Frame, Header, Message, Payload, RCtl};
use std::collections::BTreeMap;

/// A CT unit begins with so many bytes; behind them comes what it is about.
const CT_PREAMBLE_BYTES: usize = 16;
/// Frames that are delayed at once; more are lost.
const MAX_DELAYED: usize = 16_384;
/// Rules at once.
const MAX_RULES: usize = 256;

/// What is done to which frames.
#[derive(Debug)]
struct Rule {
    id: u32,
    switch: usize,
    port: u16,
    name: String,
    text: String,
    matcher: Matcher,
    act: Act,
    injected: u64,
    left: Option<u64>,
}

/// A frame that waits.
#[derive(Debug)]
enum Delayed {
    /// It goes into a switch.
    Enter { switch: usize, port: u16, source: Source, frame: FrameBuf },
    /// It leaves a switch.
    Leave { switch: usize, port: u16, source: Source, frame: FrameBuf },
    /// A message for the services of a switch, which came in FIP.
    ToSwitch { switch: usize, port: u16, frame: Frame },
    /// A message of the services of a switch.
    FromSwitch { switch: usize, port: u16, frame: Frame },
}

/// The rules of an instance, and the frames that they delay.
#[derive(Debug, Default)]
pub(super) struct Injector {
    rules: Vec<Rule>,
    next_id: u32,
    delayed: BTreeMap<(Instant, u64), Delayed>,
    next_delayed: u64,
    /// Some rule waits for frames.
    armed: bool,
}

impl Injector {
    /// No frame needs to be looked at.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.armed
    }

    /// When the next frame has waited long enough.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// The rules, as an operator sees them.
    pub(super) fn rows(&self) -> RulesView {
        let row = |rule: &Rule| RuleRow {
            id: rule.id,
            port: rule.name.clone(),
            matches: rule.text.clone(),
            act: rule.act.to_string(),
            injected: rule.injected,
            left: rule.left,
        };
        RulesView { rules: self.rules.iter().map(row).collect() }
    }

    fn delay(&mut self, now: Instant, time: std::time::Duration, frame: Delayed) {
        let at = now + Span::from_ns(time.as_nanos() as u64);
        self.delayed.insert((at, self.next_delayed), frame);
        self.next_delayed += 1;
    }

    fn rearm(&mut self) {
        self.armed = self.rules.iter().any(|rule| rule.left != Some(0));
    }
}

impl Runtime {
    /// A new rule at a port, `sw1:0`. Answered with the rules.
    pub(super) fn inject(&mut self, port: &str, matches: &str, act: &str, count: Option<u64>) -> Answer {
        let (switch, number) = match self.port_named(port) {
            Ok(found) => found,
            Err(reason) => return Answer::Failed { reason },
        };
        if self.switches[switch].attachment(number) == Attachment::Nothing {
            return Answer::Failed { reason: format!("nothing is attached to `{port}` here, so no frame passes it") };
        }
        let matcher: Matcher = match matches.parse() {
            Ok(matcher) => matcher,
            Err(bad) => return Answer::Failed { reason: format!("{bad}") },
        };
        let act: Act = match act.parse() {
            Ok(act) => act,
            Err(bad) => return Answer::Failed { reason: format!("{bad}") },
        };
        if self.injector.rules.len() >= MAX_RULES {
            let reason = format!("{MAX_RULES} rules are enough; clear those that are over with `--clear`");
            return Answer::Failed { reason };
        }
        let id = self.injector.next_id;
        self.injector.next_id = id.wrapping_add(1);
        tracing::warn!(port, rule = id, matches, %act, count, "frames are tampered with");
        let (name, text) = (port.to_owned(), matches.trim().to_owned());
        self.injector.rules.push(Rule { id, switch, port: number, name, text, matcher, act, injected: 0, left: count });
        self.injector.rearm();
        Answer::View(self.live_view(LiveWhich::Injections))
    }

    /// Forgets the rules of a port, or all. Frames that are delayed go on at their time.
    pub(super) fn clear_rules(&mut self, port: Option<&str>) -> Answer {
        if let Some(port) = port
            && let Err(reason) = self.port_named(port)
        {
            return Answer::Failed { reason };
        }
        let view = self.live_view(LiveWhich::Injections);
        self.injector.rules.retain(|rule| port.is_some_and(|port| rule.name != port));
        self.injector.rearm();
        Answer::View(view)
    }

    /// What is to become of a frame that passes a port; it is counted.
    fn verdict(&mut self, switch: usize, port: u16, seen: &Seen<'_>) -> Option<Act> {
        let live = &self.switches[switch];
        let at = live.attachment(port);
        let rule = self.injector.rules.iter_mut().find(|rule| {
            let rejects = matches!(rule.act, Act::Reject { .. });
            rule.left != Some(0)
                && rule.switch == switch
                // Further virtual links of a port of the lab are ports of their own.
                && (rule.port == port || live.attachment(rule.port) == at)
                && (!rejects || answerable(seen.header))
                && rule.matcher.holds(seen)
        })?;
        rule.injected += 1;
        rule.left = rule.left.map(|left| left - 1);
        let act = match rule.act {
            Act::Delay(_) if self.injector.delayed.len() >= MAX_DELAYED => Act::Drop,
            act => act,
        };
        tracing::info!(port = rule.name, rule = rule.id, %act, s_id = %seen.header.s_id, d_id = %seen.header.d_id, "injected");
        self.injector.rearm();
        Some(act)
    }

    /// A frame that enters (or leaves) a switch through a port: what goes on of it.
    pub(super) fn inject_frame(
        &mut self,
        now: Instant,
        direction: Direction,
        (switch, port): (usize, u16),
        source: Source,
        mut frame: FrameBuf,
    ) -> Option<FrameBuf> {
        let Some((header, payload)) = look(&frame) else { return Some(frame) };
        let Some(act) = self.verdict(switch, port, &Seen { direction, header: &header, payload }) else {
            return Some(frame);
        };
        match act {
            Act::Corrupt => {
                corrupt(&mut frame);
                Some(frame)
            }
            Act::Delay(time) => {
                let delayed = match direction {
                    Direction::In => Delayed::Enter { switch, port, source, frame },
                    Direction::Out => Delayed::Leave { switch, port, source, frame },
                };
                self.injector.delay(now, time, delayed);
                None
            }
            Act::Drop => {
                self.drop_in(switch, source, reason::INJECTED_DROP, frame);
                None
            }
            Act::Reject { reason: code, explanation } => {
                if let Some(answer) =
                    reject(&header, look(&frame).map(|(_, payload)| payload).unwrap_or_default(), code, explanation)
                {
                    self.answer_frame(now, direction, (switch, port), answer);
                }
                self.drop_in(switch, source, reason::INJECTED_REJECT, frame);
                None
            }
        }
    }

    /// Sends an answer to where a frame came from.
    fn answer_frame(&mut self, now: Instant, direction: Direction, (switch, port): (usize, u16), answer: Frame) {
        let d_id = answer.header.d_id;
        let mut buffer = self.pool.take();
        buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &answer, out));
        match direction {
            Direction::In => self.leave_past(now, (switch, port), Source::Machine, buffer, d_id),
            Direction::Out => {
                if let Some(addresses) = addresses_of(&buffer) {
                    self.enter_past(now, (switch, port), Source::Machine, buffer, addresses);
                }
            }
        }
    }

    /// A message that came in FIP, on its way to the services of a switch: what goes on of it. `segment`: where it came in.
    pub(super) fn inject_request(&mut self, now: Instant, segment: usize, port: u16, frame: Frame) -> Option<Frame> {
        let switch = self.segments[segment].switch;
        let mut payload = Vec::new();
        frame.payload.write_to(&mut payload);
        let seen = Seen { direction: Direction::In, header: &frame.header, payload: &payload };
        let ethernet = self.segments[segment].port;
        let Some(act) = self.verdict(switch, port, &seen) else { return Some(frame) };
        match act {
            Act::Delay(time) => self.injector.delay(now, time, Delayed::ToSwitch { switch, port, frame }),
            // What Ethernet has damaged no host takes.
            Act::Drop | Act::Corrupt => self.ports[ethernet].ethernet.count(reason::INJECTED_DROP, 1),
            Act::Reject { reason: code, explanation } => {
                self.ports[ethernet].ethernet.count(reason::INJECTED_REJECT, 1);
                if let Some(answer) = reject(&frame.header, &payload, code, explanation) {
                    self.tell_fcf(now, segment, fcf::Input::Send { port, frame: answer });
                }
            }
        }
        None
    }

    /// A message of the services of a switch that leaves through a port: what goes on of it.
    pub(super) fn inject_message(&mut self, now: Instant, switch: usize, port: u16, frame: Frame) -> Option<Frame> {
        let mut payload = Vec::new();
        frame.payload.write_to(&mut payload);
        let seen = Seen { direction: Direction::Out, header: &frame.header, payload: &payload };
        let Some(act) = self.verdict(switch, port, &seen) else { return Some(frame) };
        let drops = &mut self.switches[switch].drops;
        match act {
            Act::Delay(time) => self.injector.delay(now, time, Delayed::FromSwitch { switch, port, frame }),
            Act::Drop => *drops.entry(reason::INJECTED_DROP).or_default() += 1,
            Act::Reject { reason: code, explanation } => {
                *drops.entry(reason::INJECTED_REJECT).or_default() += 1;
                if let Some(answer) = reject(&frame.header, &payload, code, explanation) {
                    self.answer_frame(now, Direction::Out, (switch, port), answer);
                }
            }
            Act::Corrupt => {
                let d_id = frame.header.d_id;
                for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
                    let mut buffer = self.pool.take();
                    let (to, from) = (MacAddr::ZERO, MacAddr::ZERO);
                    buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(to, from, None, &piece, out));
                    corrupt(&mut buffer);
                    self.leave_past(now, (switch, port), Source::Machine, buffer, d_id);
                }
            }
        }
        None
    }

    /// Frames that have waited long enough go on.
    pub(super) fn release_delayed(&mut self, now: Instant) {
        while self.injector.next_due().is_some_and(|at| at <= now) {
            let Some((_, delayed)) = self.injector.delayed.pop_first() else { return };
            match delayed {
                Delayed::Enter { switch, port, source, frame } => {
                    if let Some(addresses) = addresses_of(&frame) {
                        self.enter_past(now, (switch, port), source, frame, addresses);
                    }
                }
                Delayed::Leave { switch, port, source, frame } => {
                    if let Some((d_id, ..)) = addresses_of(&frame) {
                        self.leave_past(now, (switch, port), source, frame, d_id);
                    }
                }
                Delayed::ToSwitch { switch, port, frame } => {
                    self.tell_switch(now, switch, fabric_switch::Input::Frame { port, frame });
                }
                Delayed::FromSwitch { switch, port, frame } => self.send_past(now, switch, port, frame),
            }
        }
        self.settle_inside(now);
    }
}

/// Header and data field, whatever the CRC says.
fn look(frame: &FrameBuf) -> Option<(Header, &[u8])> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok()?;
    Some((pdu.header().ok()?, pdu.frame.get(HEADER_BYTES..)?))
}

/// Turns a bit behind the header: of the data, or of the CRC where there are none.
fn corrupt(frame: &mut FrameBuf) {
    const BEHIND_THE_HEADER: usize = ETHER_BYTES + 14 + HEADER_BYTES;
    if let Some(byte) = frame.bytes_mut().get_mut(BEHIND_THE_HEADER) {
        *byte ^= 1;
    }
}

/// The frame is a request that has a reject of its own.
fn answerable(header: &Header) -> bool {
    let whole = header.seq_cnt == 0;
    let request = matches!(
        (header.fc_type, header.r_ctl),
        (FcType::ELS, RCtl::ELS_REQUEST)
            | (FcType::CT | FcType::SW_ILS, RCtl::UNSOLICITED_CONTROL)
            | (FcType::BLS, RCtl::BLS_ABTS)
    );
    whole && request
}

/// The reject of a request.
fn reject(request: &Header, payload: &[u8], reason: u8, explanation: u8) -> Option<Frame> {
    let back = |message: Message| {
        let header = message.header(request.d_id, request.s_id, request.ox_id, request.rx_id);
        Frame { header, payload: Payload::Typed(message) }
    };
    Some(match request.fc_type {
        FcType::ELS => back(Els::LsRjt(LsRjt::new(LsRjtReason(reason), LsRjtExplanation(explanation))).into()),
        FcType::SW_ILS => back(SwIls::SwRjt(SwRjt::new(SwRjtReason(reason), SwRjtExplanation(explanation))).into()),
        FcType::BLS => back(Message::Bls(Bls::BaRjt(BaRjt { reason, explanation, vendor: 0 }))),
        FcType::CT => {
            // The preamble of the request, with the command of a reject and the codes.
            let mut bytes = payload.get(..CT_PREAMBLE_BYTES)?.to_vec();
            bytes[8..].copy_from_slice(&[0x80, 0x01, 0, 0, 0, reason, explanation, 0]);
            let message = Message::parse(&Header { r_ctl: RCtl::SOLICITED_CONTROL, ..*request }, &bytes, None);
            back(message.ok()?)
        }
        _ => return None,
    })
}
