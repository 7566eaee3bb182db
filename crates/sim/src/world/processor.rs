//! The processor of a switch. It queues requests to the services and delays their responses.
//!
//! When a request reaches the head of its queue, the switch machine handles it and the forwarding
//! table changes. The processing time follows from the work counted by the machine ([`Work`]) and
//! the constants of the lab ([`config::Processor`]). Responses and notifications leave at the end
//! of that time. All other inputs take no time: responses to the switch, timers, port changes and
//! messages from other switches.

use sanloom_fc::config::{self, ProcessorSharing};
use sanloom_fc::switch::Work;
use sanloom_wire::els::Els;
use sanloom_wire::{FcType, Frame, Header, Message, Payload, RCtl};
use std::collections::{BTreeMap, VecDeque};

/// Messages with their egress ports.
pub(super) type Held = Vec<(u16, Frame)>;

/// The processors of one switch: one for all ports, or one per port.
pub struct SwitchProcessor {
    config: config::Processor,
    /// Servers by port; a processor shared by all ports has number 0.
    servers: BTreeMap<u16, Server>,
}

#[derive(Default)]
struct Server {
    queue: VecDeque<(u16, Frame)>,
    /// End of the current request, and the messages that are sent then.
    current: Option<(u64, Held)>,
}

/// A request that an idle server starts.
pub(super) struct NextRequest {
    /// Number of the server.
    pub server: u16,
    /// Ingress port of the request.
    pub port: u16,
    pub frame: Frame,
    /// True if the request is a fabric login.
    pub is_login: bool,
}

impl SwitchProcessor {
    /// Returns an idle processor.
    pub fn new(config: config::Processor) -> SwitchProcessor {
        SwitchProcessor { config, servers: BTreeMap::new() }
    }

    /// Queues a request that arrived through `port`.
    pub(super) fn enqueue(&mut self, port: u16, frame: Frame) {
        let server = match self.config.sharing {
            ProcessorSharing::One => 0,
            ProcessorSharing::PerPort => port,
        };
        self.servers.entry(server).or_default().queue.push_back((port, frame));
    }

    /// Returns the messages of a request whose processing has ended.
    pub(super) fn finish(&mut self, now_ps: u64) -> Option<Held> {
        let is_done = |server: &&mut Server| server.current.as_ref().is_some_and(|(until, _)| *until <= now_ps);
        let server = self.servers.values_mut().find(is_done)?;
        server.current.take().map(|(_, held)| held)
    }

    /// Removes the next request of an idle server from its queue. Report its work with
    /// [`SwitchProcessor::begin`].
    pub(super) fn next_request(&mut self) -> Option<NextRequest> {
        let idle = self.servers.iter_mut().filter(|(_, server)| server.current.is_none());
        idle.into_iter().find_map(|(&server, state)| {
            let (port, frame) = state.queue.pop_front()?;
            let is_login = is_fabric_login(&frame);
            Some(NextRequest { server, port, frame, is_login })
        })
    }

    /// Occupies a server with a request of this work; `held` is sent when the server is done.
    pub(super) fn begin(&mut self, now_ps: u64, server: u16, is_login: bool, work: Work, held: Held) {
        let until_ps = now_ps + self.time_of(is_login, work);
        let server = self.servers.entry(server).or_default();
        debug_assert!(server.current.is_none(), "a server processes one request at a time");
        server.current = Some((until_ps, held));
    }

    /// Returns the time at which the next server is done.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.servers.values().filter_map(|server| server.current.as_ref()).map(|(until, _)| *until).min()
    }

    /// Returns the processing time of a request in ps. Comparisons between ports behind one F_Port
    /// are not charged, because document 000, the source of the latency constants, does not count
    /// them.
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

/// Returns whether a frame is a request of an N_Port to a service. Responses to notifications and
/// ends of exchanges are not.
pub(super) fn is_request(header: &Header) -> bool {
    matches!(header.r_ctl, RCtl::ELS_REQUEST | RCtl::UNSOLICITED_CONTROL)
        && header.fc_type != FcType::SW_ILS
        && !header.d_id.is_domain_controller()
}

fn is_fabric_login(frame: &Frame) -> bool {
    match &frame.payload {
        Payload::Typed(Message::Els(els)) => matches!(**els, Els::Flogi(_) | Els::Fdisc(_)),
        _ => false,
    }
}
