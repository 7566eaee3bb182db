//! The processor of a switch: requests to its services wait for it, and their answers leave when it is done with them.
//!
//! A request is served when its turn comes: then the switch's machine deals with it and the forwarding table changes. The
//! time that this takes follows from what the machine counted ([`Work`]) and the lab's constants ([`config::Processor`]);
//! answers and notifications leave at its end. What is no request (answers to the switch, timers, ports that come and go,
//! word from other switches) takes no time.

use super::World;
use sanloom_core::config::{self, ProcessorSharing};
use sanloom_core::switch::Work;
use sanloom_wire::els::Els;
use sanloom_wire::{Frame, Header, Message, Payload, RCtl};
use std::collections::{BTreeMap, VecDeque};

/// Messages with the ports that they will leave through.
pub(super) type Held = Vec<(u16, Frame)>;

/// The processor of one switch, or its processors.
pub struct SwitchProcessor {
    config: config::Processor,
    /// By port; with one for all, the only one is number 0.
    servers: BTreeMap<u16, Server>,
}

#[derive(Default)]
struct Server {
    waiting: VecDeque<(u16, Frame)>,
    /// When it is done, and what it sends then.
    at_work: Option<(u64, Held)>,
}

impl SwitchProcessor {
    /// An idle processor.
    pub fn new(config: config::Processor) -> SwitchProcessor {
        SwitchProcessor { config, servers: BTreeMap::new() }
    }

    /// A request has come through a port.
    pub(super) fn arrive(&mut self, port: u16, frame: Frame) {
        let server = match self.config.sharing {
            ProcessorSharing::One => 0,
            ProcessorSharing::PerPort => port,
        };
        self.servers.entry(server).or_default().waiting.push_back((port, frame));
    }

    /// The messages of a request whose time is over.
    fn finish(&mut self, now_ps: u64) -> Option<Held> {
        let is_done = |server: &&mut Server| server.at_work.as_ref().is_some_and(|(until, _)| *until <= now_ps);
        let server = self.servers.values_mut().find(is_done)?;
        server.at_work.take().map(|(_, held)| held)
    }

    /// The next request of a server that is idle.
    fn begin(&mut self) -> Option<(u16, u16, Frame)> {
        let idle = self.servers.iter_mut().filter(|(_, server)| server.at_work.is_none());
        idle.into_iter().find_map(|(&number, server)| {
            let (port, frame) = server.waiting.pop_front()?;
            Some((number, port, frame))
        })
    }

    fn next_end(&self) -> Option<u64> {
        self.servers.values().filter_map(|server| server.at_work.as_ref()).map(|(until, _)| *until).min()
    }

    /// Time of a request in ps. Comparisons between ports behind one F_Port are not charged: document 000, whose latencies the
    /// constants come from, does not count them.
    fn time_of(&self, login: bool, work: Work) -> u64 {
        let config = &self.config;
        let login_ps = if login { config.per_login.0 } else { 0 };
        let comparisons = work.comparisons + work.remote_comparisons;
        config.per_command.0
            + login_ps
            + work.names_searched * config.per_name_search.0
            + comparisons * config.per_comparison.0
    }
}

/// A request to a service, not the answer to a notification or the end of an exchange.
pub(super) fn is_request(header: &Header) -> bool {
    matches!(header.r_ctl, RCtl::ELS_REQUEST | RCtl::UNSOLICITED_CONTROL)
}

fn is_fabric_login(frame: &Frame) -> bool {
    match &frame.payload {
        Payload::Typed(Message::Els(els)) => matches!(**els, Els::Flogi(_) | Els::Fdisc(_)),
        _ => false,
    }
}

impl World {
    /// The processor of a switch goes on: sends what is due, and begins with what waits.
    pub(super) fn run_processor(&mut self, switch: u16) {
        let now = self.net.now();
        loop {
            let Some(processor) = &mut self.switches[usize::from(switch)].processor else { return };
            if let Some(held) = processor.finish(now) {
                for (port, frame) in held {
                    self.send_from_switch(switch, port, frame);
                }
                continue;
            }
            let Some((server, port, frame)) = processor.begin() else { break };
            let login = is_fabric_login(&frame);
            let mut held = Held::new();
            let work = self.serve(switch, port, frame, Some(&mut held));
            if let Some(processor) = &mut self.switches[usize::from(switch)].processor {
                let until = now + processor.time_of(login, work);
                processor.servers.entry(server).or_default().at_work = Some((until, held));
            }
        }
        if let Some(at) = self.switches[usize::from(switch)].processor.as_ref().and_then(SwitchProcessor::next_end) {
            self.net.set_timer(self.timers.processor + u32::from(switch), at);
        }
    }

    /// A processor is done with a request.
    pub(super) fn processor_timeout(&mut self, switch: u16) {
        self.run_processor(switch);
    }
}
