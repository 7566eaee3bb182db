//! Faults that an operator injects at ports: [`Injector`] with the rules, and their effect on
//! frames.
//!
//! Rules are checked where a frame passes a port of a switch: before the forwarding table when it
//! enters, after it when it leaves. Messages in FIP (FLOGI, FDISC, LOGO) are checked as ELSs. A
//! frame that matched a rule is not checked again at that port, so a delayed frame is delayed once.

use super::Fabric;
use super::switch::Attachment;
use crate::frame::FrameBuf;
use crate::runtime::forward::{addresses_of, reason};
use crate::runtime::instance::Instance;
use crate::runtime::work::{Origin, Source};
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use sanloom_api::inject::{Act, Direction, Matcher, RuleRow, RulesView, Seen};
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::fcf;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::{BaRjt, Bls};
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{ETHER_BYTES, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::sw_ils::{SwIls, SwRjt, SwRjtExplanation, SwRjtReason};
use sanloom_wire::{FcType, Frame, Header, Message, Payload, RCtl};
use std::collections::BTreeMap;

/// Bytes of the preamble of a CT unit.
const CT_PREAMBLE_BYTES: usize = 16;
/// Maximum number of delayed frames; further ones are dropped.
const MAX_DELAYED: usize = 16_384;
/// Maximum number of rules.
const MAX_RULES: usize = 256;

/// A fault, and the frames to which it applies.
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

/// A delayed frame or message, and its destination.
#[derive(Debug)]
enum Delayed {
    /// A frame that enters a switch.
    Enter { switch: usize, port: u16, origin: Origin, frame: FrameBuf },
    /// A frame that leaves a switch.
    Leave { switch: usize, port: u16, origin: Origin, frame: FrameBuf },
    /// A message for the services of a switch, received in FIP.
    ToSwitch { switch: usize, port: u16, frame: Frame },
    /// A message from the services of a switch.
    FromSwitch { switch: usize, port: u16, frame: Frame },
}

/// The rules of an instance, and the frames that they delay.
#[derive(Debug, Default)]
pub struct Injector {
    rules: Vec<Rule>,
    next_id: u32,
    delayed: BTreeMap<(Instant, u64), Delayed>,
    next_delayed: u64,
    /// A rule may still match.
    armed: bool,
}

impl Injector {
    /// Returns whether no rule can match, so that frames need no check.
    #[inline]
    pub fn is_idle(&self) -> bool {
        !self.armed
    }

    /// Time at which the next delay ends.
    pub fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns the rules for display.
    pub fn rows(&self) -> RulesView {
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
        debug_assert!(self.delayed.len() < MAX_DELAYED, "{} frames are delayed", self.delayed.len());
        let at = now + Span::from_ns(time.as_nanos() as u64);
        self.delayed.insert((at, self.next_delayed), frame);
        self.next_delayed += 1;
    }

    fn rearm(&mut self) {
        self.armed = self.rules.iter().any(|rule| rule.left != Some(0));
    }
}

impl Fabric {
    /// Adds a rule at a port, such as `sw1:0`.
    ///
    /// # Errors
    /// A rule that is invalid, described in one sentence.
    pub fn add_rule(&mut self, port: &str, matches: &str, act: &str, count: Option<u64>) -> Result<(), String> {
        let (switch, number) = self.port_named(port)?;
        if self.switches[switch].attachment(number) == Attachment::Nothing {
            return Err(format!("nothing is attached to `{port}` in this instance, so no frame passes it"));
        }
        let matcher: Matcher = matches.parse().map_err(|bad| format!("{bad}"))?;
        let act: Act = act.parse().map_err(|bad| format!("{bad}"))?;
        let injector = &mut self.injector;
        if injector.rules.len() >= MAX_RULES {
            return Err(format!("there are {MAX_RULES} rules, which is the maximum; remove some with `--clear`"));
        }
        let id = injector.next_id;
        injector.next_id = id.wrapping_add(1);
        tracing::warn!(port, rule = id, matches, %act, count, "faults are injected into frames");
        let (name, text) = (port.to_owned(), matches.trim().to_owned());
        injector.rules.push(Rule { id, switch, port: number, name, text, matcher, act, injected: 0, left: count });
        injector.rearm();
        Ok(())
    }

    /// Removes the rules of a port, or all. Delayed frames continue at their time.
    ///
    /// # Errors
    /// A port that does not exist.
    pub fn clear_rules(&mut self, port: Option<&str>) -> Result<(), String> {
        if let Some(port) = port {
            self.port_named(port)?;
        }
        self.injector.rules.retain(|rule| port.is_some_and(|port| rule.name != port));
        self.injector.rearm();
        Ok(())
    }

    /// Returns the fault for a frame that passes a port, if a rule matches, and counts it.
    fn fault(&mut self, switch: usize, port: u16, seen: &Seen<'_>) -> Option<Act> {
        let live = &self.switches[switch];
        let at = live.attachment(port);
        let rule = self.injector.rules.iter_mut().find(|rule| {
            let rejects = matches!(rule.act, Act::Reject { .. });
            rule.left != Some(0)
                && rule.switch == switch
                // Further virtual links of a port of the lab have their own port numbers.
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
}

impl Instance {
    /// Injects faults into a frame that enters or leaves a switch through a port. Returns the frame
    /// if it continues.
    pub fn inject_frame(
        &mut self,
        now: Instant,
        direction: Direction,
        (switch, port): (usize, u16),
        origin: Origin,
        mut frame: FrameBuf,
    ) -> Option<FrameBuf> {
        let Some((header, payload)) = parts(&frame) else { return Some(frame) };
        let Some(act) = self.fabric.fault(switch, port, &Seen { direction, header: &header, payload }) else {
            return Some(frame);
        };
        match act {
            Act::Corrupt => {
                corrupt(&mut frame);
                Some(frame)
            }
            Act::Delay(time) => {
                let delayed = match direction {
                    Direction::In => Delayed::Enter { switch, port, origin, frame },
                    Direction::Out => Delayed::Leave { switch, port, origin, frame },
                };
                self.fabric.injector.delay(now, time, delayed);
                None
            }
            Act::Drop => {
                self.drop_in(switch, origin.source, reason::INJECTED_DROP, frame);
                None
            }
            Act::Reject { reason: code, explanation } => {
                if let Some(answer) = reject(&header, payload, code, explanation) {
                    self.answer_frame(now, direction, (switch, port), answer);
                }
                self.drop_in(switch, origin.source, reason::INJECTED_REJECT, frame);
                None
            }
        }
    }

    /// Sends an answer back to the sender of a frame.
    fn answer_frame(&mut self, now: Instant, direction: Direction, (switch, port): (usize, u16), answer: Frame) {
        let d_id = answer.header.d_id;
        let frame = self.ports.compose(|out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &answer, out));
        let origin = Origin { source: Source::Machine, since: now };
        match direction {
            Direction::In => self.leave_port(now, (switch, port), origin, frame, d_id),
            Direction::Out => {
                if let Some(addresses) = addresses_of(&frame) {
                    self.forward(now, (switch, port), origin, frame, addresses);
                }
            }
        }
    }

    /// Injects faults into a message that was received in FIP at a segment, before the services of
    /// a switch receive it. Returns the message if it continues.
    pub fn inject_request(&mut self, now: Instant, segment: usize, port: u16, frame: Frame) -> Option<Frame> {
        let (switch, ethernet) = (self.fabric.segments[segment].switch, self.fabric.segments[segment].port);
        let mut payload = Vec::new();
        frame.payload.write_to(&mut payload);
        let seen = Seen { direction: Direction::In, header: &frame.header, payload: &payload };
        let Some(act) = self.fabric.fault(switch, port, &seen) else { return Some(frame) };
        match act {
            Act::Delay(time) => self.fabric.injector.delay(now, time, Delayed::ToSwitch { switch, port, frame }),
            // A host discards a frame that was corrupted on Ethernet.
            Act::Drop | Act::Corrupt => self.ports[ethernet].ethernet.count(reason::INJECTED_DROP, 1),
            Act::Reject { reason: code, explanation } => {
                self.ports[ethernet].ethernet.count(reason::INJECTED_REJECT, 1);
                if let Some(answer) = reject(&frame.header, &payload, code, explanation) {
                    self.work.push_fcf(segment, fcf::Input::Send { port, frame: answer });
                }
            }
        }
        None
    }

    /// Injects faults into a message that the services of a switch send through a port. Returns the
    /// message if it continues.
    pub fn inject_message(&mut self, now: Instant, (switch, port): (usize, u16), frame: Frame) -> Option<Frame> {
        let mut payload = Vec::new();
        frame.payload.write_to(&mut payload);
        let seen = Seen { direction: Direction::Out, header: &frame.header, payload: &payload };
        let Some(act) = self.fabric.fault(switch, port, &seen) else { return Some(frame) };
        let drops = &mut self.fabric.switches[switch].drops;
        match act {
            Act::Delay(time) => self.fabric.injector.delay(now, time, Delayed::FromSwitch { switch, port, frame }),
            Act::Drop => *drops.entry(reason::INJECTED_DROP).or_default() += 1,
            Act::Reject { reason: code, explanation } => {
                *drops.entry(reason::INJECTED_REJECT).or_default() += 1;
                if let Some(answer) = reject(&frame.header, &payload, code, explanation) {
                    self.answer_frame(now, Direction::Out, (switch, port), answer);
                }
            }
            Act::Corrupt => {
                let (d_id, origin) = (frame.header.d_id, Origin { source: Source::Machine, since: now });
                for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
                    let (to, from) = (MacAddr::ZERO, MacAddr::ZERO);
                    let mut buffer = self.ports.compose(|out| fcoe::encapsulate(to, from, None, &piece, out));
                    corrupt(&mut buffer);
                    self.leave_port(now, (switch, port), origin, buffer, d_id);
                }
            }
        }
        None
    }

    /// Continues with frames whose delay is over.
    pub fn release_delayed(&mut self, now: Instant) {
        while self.fabric.injector.next_due().is_some_and(|at| at <= now) {
            let Some((_, delayed)) = self.fabric.injector.delayed.pop_first() else { return };
            // The delay does not count towards the hold time.
            let released = |origin: Origin| Origin { since: now, ..origin };
            match delayed {
                Delayed::Enter { switch, port, origin, frame } => {
                    if let Some(addresses) = addresses_of(&frame) {
                        self.forward(now, (switch, port), released(origin), frame, addresses);
                    }
                }
                Delayed::Leave { switch, port, origin, frame } => {
                    if let Some((d_id, ..)) = addresses_of(&frame) {
                        self.leave_port(now, (switch, port), released(origin), frame, d_id);
                    }
                }
                Delayed::ToSwitch { switch, port, frame } => {
                    self.work.push_switch(switch, fabric_switch::Input::Frame { port, frame });
                }
                Delayed::FromSwitch { switch, port, frame } => self.leave_message(now, (switch, port), frame),
            }
        }
    }
}

/// Splits a frame into header and data field, without a check of the CRC.
fn parts(frame: &FrameBuf) -> Option<(Header, &[u8])> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok()?;
    Some((pdu.header().ok()?, pdu.frame.get(HEADER_BYTES..)?))
}

/// Inverts a bit of the data field, or of the CRC if there are no data.
fn corrupt(frame: &mut FrameBuf) {
    const BEHIND_THE_HEADER: usize = ETHER_BYTES + 14 + HEADER_BYTES;
    if let Some(byte) = frame.bytes_mut().get_mut(BEHIND_THE_HEADER) {
        *byte ^= 1;
    }
}

/// Returns whether the frame is a request that can be rejected.
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

/// Returns the reject of a request.
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
