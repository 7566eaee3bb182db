//! The processor of a switch. It queues requests to the services and delays their responses.
//!
//! Messages of other switches are served by the same processor, before or between the requests of
//! N_Ports ([`ProcessorPriority`]).
//!
//! When a request reaches the head of its queue, the switch machine handles it and the forwarding
//! table changes. The processing time follows from the work counted by the machine ([`Work`]) and
//! the constants of the lab ([`config::Processor`]). Responses and notifications leave at the end
//! of that time. All other inputs take no time: responses of N_Ports, timers and port changes.

use sanloom_fc::config::{self, ProcessorPriority, ProcessorSharing};
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

/// Class of a message that takes processor time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// A message of another switch: link, domain, path, zone and name services.
    Fabric,
    /// A request of an N_Port to a service.
    Request,
}

#[derive(Default)]
struct Server {
    /// Messages that are served before those of `queue`.
    first: VecDeque<(u16, Class, Frame)>,
    queue: VecDeque<(u16, Class, Frame)>,
    /// End of the current request, and the messages that are sent then.
    current: Option<(u64, Kind, Held)>,
}

/// A request that an idle server starts.
pub(super) struct NextRequest {
    /// Number of the server.
    pub server: u16,
    /// Ingress port of the request.
    pub port: u16,
    pub frame: Frame,
    pub kind: Kind,
}

/// Properties of a message that decide its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    class: Class,
    /// True if the request is a fabric login.
    is_login: bool,
}

impl SwitchProcessor {
    /// Returns an idle processor.
    pub fn new(config: config::Processor) -> SwitchProcessor {
        SwitchProcessor { config, servers: BTreeMap::new() }
    }

    /// Queues a message that arrived through `port`.
    pub(super) fn enqueue(&mut self, port: u16, class: Class, frame: Frame) {
        let server = match self.config.sharing {
            ProcessorSharing::One => 0,
            ProcessorSharing::PerPort => port,
        };
        let server = self.servers.entry(server).or_default();
        let is_first = class == Class::Fabric && self.config.priority == ProcessorPriority::FabricFirst;
        let queue = if is_first { &mut server.first } else { &mut server.queue };
        queue.push_back((port, class, frame));
    }

    /// Returns whether messages of other switches wait or are being served.
    pub(super) fn has_fabric_messages(&self) -> bool {
        let is_fabric = |(_, class, _): &(u16, Class, Frame)| *class == Class::Fabric;
        self.servers.values().any(|server| {
            let waiting = server.first.iter().chain(&server.queue).any(is_fabric);
            waiting || matches!(server.current, Some((_, Kind { class: Class::Fabric, .. }, _)))
        })
    }

    /// Returns the messages of a request whose processing has ended.
    pub(super) fn finish(&mut self, now_ps: u64) -> Option<Held> {
        let is_done = |server: &&mut Server| server.current.as_ref().is_some_and(|(until, ..)| *until <= now_ps);
        let server = self.servers.values_mut().find(is_done)?;
        server.current.take().map(|(.., held)| held)
    }

    /// Removes the next request of an idle server from its queue. Report its work with
    /// [`SwitchProcessor::begin`].
    pub(super) fn next_request(&mut self) -> Option<NextRequest> {
        let idle = self.servers.iter_mut().filter(|(_, server)| server.current.is_none());
        idle.into_iter().find_map(|(&server, state)| {
            let (port, class, frame) = state.first.pop_front().or_else(|| state.queue.pop_front())?;
            let kind = Kind { class, is_login: is_fabric_login(&frame) };
            Some(NextRequest { server, port, frame, kind })
        })
    }

    /// Occupies a server with a request of this work; `held` is sent when the server is done.
    pub(super) fn begin(&mut self, now_ps: u64, server: u16, kind: Kind, work: Work, held: Held) {
        let until_ps = now_ps + self.time_of(kind, work);
        let server = self.servers.entry(server).or_default();
        debug_assert!(server.current.is_none(), "a server processes one request at a time");
        server.current = Some((until_ps, kind, held));
    }

    /// Returns the time at which the next server is done.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.servers.values().filter_map(|server| server.current.as_ref()).map(|(until, ..)| *until).min()
    }

    /// Returns the processing time of a request in ps. Comparisons between ports behind one F_Port
    /// are not charged, because the NPIV paper, the source of the latency constants, does not count
    /// them.
    fn time_of(&self, kind: Kind, work: Work) -> u64 {
        let config = &self.config;
        let login_ps = if kind.is_login { config.per_login.0 } else { 0 };
        let comparisons = work.comparisons + work.remote_comparisons;
        let base = match kind.class {
            Class::Fabric => config.per_message,
            Class::Request => config.per_command,
        };
        base.0 + login_ps + work.names_searched * config.per_name_search.0 + comparisons * config.per_comparison.0
    }
}

/// Returns the class of a message to a switch; `None` if it takes no time.
pub(super) fn class_of(header: &Header) -> Option<Class> {
    if is_request(header) {
        return Some(Class::Request);
    }
    (header.fc_type == FcType::SW_ILS || header.d_id.is_domain_controller()).then_some(Class::Fabric)
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
