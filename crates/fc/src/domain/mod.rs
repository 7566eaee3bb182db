//! Principal switch selection and assignment of domains: [`DomainManager`].
//!
//! ```text
//!  no link       Alone ──────────────── quiet, or a preferred domain ───────────────┐
//!    │ link up                                                                      │
//!    ▼                                                                              ▼
//!  Selecting ── EFP of a configured neighbour, or DIA of the best ──▶ Joined ◀── principal
//!    ▲   ▲  └── 2 × F_S_TOV quiet, and no better claim ────────────────────────▶    │
//!    │   └ F_S_TOV                       Build Fabric, Reconfigure Fabric,          │
//!   Hold ◀────────────────────────────── or a link of the tree lost ────────────────┘
//! ```
//!
//! **Selecting.** Every switch floods the best (priority, name) that it has received, in EFP
//! without domains. After a quiet time of twice F_S_TOV, the switch without a better claim than its
//! own becomes principal. It sends DIA to its neighbours, and they send it to theirs. This forms a
//! tree in which every switch has an *upstream* port. RDI travels up this tree from switch to
//! switch. The principal grants domains: the requested one if it is free, otherwise the lowest free
//! one.
//!
//! **Joined.** EFP now carries the domains; a list only grows until the fabric is rebuilt. A switch
//! without a domain that receives such an EFP joins at once without a selection.
//!
//! Two fabrics that meet compare their domains. If no domain has two owners, the switches of the
//! fabric with the worse principal adopt the better one, link by link. Each of these switches
//! requests confirmation of its existing domain; no timer runs and no address changes. If a domain
//! has two owners, both ends isolate the link ([`Isolation::DomainOverlap`]), or send Reconfigure
//! Fabric if both are configured to.
//!
//! **Hold.** A switch that loses a link of the tree rebuilds the fabric (BF), and so does every
//! switch that receives BF. For F_S_TOV all switches then ignore everything except themselves, so
//! that information about a lost principal disappears. Messages of a neighbour that has not replied
//! to BF are ignored. Domains stay: switches with a domain request it again before switches without
//! one may request. Reconfigure Fabric (RCF) does the same, but first removes all domains. If a
//! second link to the same neighbour exists, it replaces a lost one without a rebuild.
//!
//! A principal that rebuilds its fabric has priority 2 ("was principal") unless its own is better,
//! so it normally stays principal. A switch with priority 255 is never principal, not even alone.
//!
//! Floods are delayed by 20 ms, so that several switches that join together cause one flood instead
//! of one each. Each link has at most one EFP in flight; later changes follow with the next. A
//! request that gets no reply or arrives too early is repeated.
//!
//! Each job has one owner: `selection` (principal switch), `domain_list` (owners of domains,
//! grants), `own` (domain of this switch), `relays` (forwarded RDIs), `links` (neighbours and
//! floods). Owners send through `outbox` and do not refer to each other; [`DomainManager`] joins
//! them.
//!
//! Sources: FC-SW (fabric configuration: EFP, DIA, RDI, BF, RCF); RFC 4439 for the settings of an
//! administrator.

mod assign;
mod domain_list;
mod efp;
mod links;
mod outbox;
mod own;
mod rebuild;
mod relays;
mod report;
mod selection;
mod topology;

use crate::ils::{Outcome, Request, Send};
use crate::isolation::Isolation;
use domain_list::DomainList;
use links::Links;
use outbox::Outbox;
use own::OwnDomain;
use rebuild::Kind;
use relays::Relays;
use report::Reported;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::SwIls;
use selection::Selection;
use std::collections::BTreeMap;

/// Highest legal domain; domains are 1 to 239.
pub const MAX_DOMAIN: u8 = 239;
/// Priority of a switch that must not become principal.
pub const NEVER_PRINCIPAL: u8 = 255;
pub use crate::config::DEFAULT_PRIORITY;
/// Priority of a switch that was principal before its fabric was rebuilt.
const WAS_PRINCIPAL: u8 = 2;
/// Delay of a flood, during which further changes are collected.
const FLOOD_DELAY: Span = Span::from_ms(20);

/// Initial configuration of domain management.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainConfig {
    /// Name of the switch.
    pub switch_name: Wwnn,
    /// Priority, 1 to 255; the lowest number becomes principal, and 255 never does.
    pub priority: u8,
    /// Domain to request. A switch with a preferred domain has it from its start until it meets
    /// other switches.
    pub preferred: Option<u8>,
    /// Isolation is preferred to a domain other than `preferred`.
    pub insistent: bool,
    /// True if the switch accepts a disruptive reconfiguration.
    pub allow_rcf: bool,
    /// Reconfigure disruptively if a domain has two owners, instead of isolating the link. Both
    /// ends must have this setting.
    pub auto_reconfigure: bool,
    /// Fabric stability timeout. It must exceed the time for a reply including retransmissions;
    /// otherwise several rebuilds may be necessary to remove a lost principal.
    pub f_s_tov: Span,
}

/// Event for the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// An E_Port came up. A port that was already up goes down first.
    LinkUp {
        /// Port number.
        port: u16,
        /// Name of the switch at the other end.
        neighbour: Wwnn,
    },
    /// An E_Port went down, or another machine isolated it.
    LinkDown {
        /// Port number.
        port: u16,
    },
    /// EFP, DIA, RDI, BF or RCF from a neighbour. Pass requests from isolated ports as well; they
    /// are answered with the reason.
    Request {
        /// Sender, needed for the reply.
        request: Request,
        /// Content of the request.
        message: SwIls,
    },
    /// Result of a request sent by this machine.
    Outcome {
        /// Tag from [`Send::Request`].
        tag: u32,
        /// Reply, or none.
        outcome: Outcome,
    },
    /// The deadline of [`DomainManager::poll_timeout`] was reached. An early call is harmless.
    Timeout,
    /// Rebuild the fabric.
    Rebuild {
        /// Remove all domains first.
        disruptive: bool,
    },
}

/// Action or event for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message; the port may be isolated.
    Send(Send),
    /// Domain of this switch; `None` if it was lost, in which case all logins must end.
    Domain(Option<u8>),
    /// Principal switch of the fabric.
    Principal {
        /// Name of the principal.
        name: Wwnn,
        /// Priority of the principal.
        priority: u8,
        /// True if this switch is the principal.
        ours: bool,
    },
    /// All domains of the fabric with their owners, sorted by domain.
    Domains(Vec<(u8, Wwnn)>),
    /// The neighbour belongs to the own fabric, so zone merge and path selection may start on the
    /// link. Emitted once each time a link comes up or the domains are removed.
    LinkReady {
        /// Port number.
        port: u16,
    },
    /// Isolate the port. From now on this machine treats it as down.
    Isolate {
        /// Port number.
        port: u16,
        /// Reason for the isolation.
        reason: Isolation,
    },
    /// Name of the fabric, which is the name of the principal switch.
    FabricName(Wwnn),
}

/// Principal selection and domain identifiers of one switch. See the [module](self).
#[derive(Debug)]
pub struct DomainManager {
    config: DomainConfig,
    selection: Selection,
    own: OwnDomain,
    list: DomainList,
    links: Links,
    relays: Relays,
    reported: Reported,
    outbox: Outbox,
}

impl DomainManager {
    /// Returns a switch without links. A switch with a preferred domain has it at once, so drain
    /// the outputs.
    pub fn new(now: Instant, config: DomainConfig) -> DomainManager {
        let mut manager = DomainManager {
            selection: Selection::new(&config),
            own: OwnDomain::default(),
            list: DomainList::default(),
            links: Links::default(),
            relays: Relays::default(),
            reported: Reported::default(),
            outbox: Outbox::default(),
            config,
        };
        manager.reset_alone(now);
        manager.flood(now);
        manager
    }

    /// Processes one input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp { port, neighbour } => self.link_up(now, port, neighbour),
            Input::LinkDown { port } => self.link_down(now, port),
            Input::Request { request, message } => self.on_request(now, request, message),
            Input::Outcome { tag, outcome } => self.on_outcome(now, tag, outcome),
            Input::Timeout => self.on_timeout(now),
            Input::Rebuild { disruptive } => {
                let kind = if disruptive { Kind::Disruptive } else { Kind::Gentle };
                self.start_rebuild(now, kind, None);
            }
        }
        if self.links.flood_at().is_some_and(|at| at <= now) {
            self.flood(now);
        }
    }

    /// Returns the next output; process outputs in this order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.poll_output()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let times = [self.selection.deadline(), self.links.flood_at(), self.list.reserved_until()];
        let times = times.into_iter().chain(self.own.deadlines()).flatten();
        times.filter(|at| *at != Instant::NEVER).min()
    }

    /// Domain of this switch, kept during a rebuild.
    pub fn domain(&self) -> Option<u8> {
        self.own.domain()
    }

    /// Principal switch, once it has granted the domain of this switch.
    pub fn principal(&self) -> Option<Wwnn> {
        self.has_confirmed_domain().then(|| self.selection.claim().name)
    }

    /// All domains of the fabric with their owners, as last emitted in [`Output::Domains`].
    pub fn domains(&self) -> &BTreeMap<u8, Wwnn> {
        self.reported.domains()
    }

    /// Port towards the principal switch; `None` if it is this switch or unknown.
    pub fn upstream(&self) -> Option<u16> {
        self.selection.upstream()
    }

    /// Reason why this machine isolated a port.
    pub fn isolated(&self, port: u16) -> Option<&Isolation> {
        self.links.isolation(port)
    }

    /// Number of rejected requests of neighbours, either invalid or from an isolated port.
    pub fn requests_rejected(&self) -> u64 {
        self.outbox.requests_rejected()
    }

    fn has_confirmed_domain(&self) -> bool {
        self.selection.is_joined() && self.own.is_confirmed()
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.list.end_reservation(now) {
            self.links.schedule_flood(now);
        }
        if self.own.take_give_up(now) {
            self.start_rebuild(now, Kind::Gentle, None);
        }
        self.on_phase_timeout(now);
        if self.own.take_request(now) {
            self.request_domain(now);
        }
    }

    /// Delay before a request is repeated.
    fn retry_delay(&self) -> Span {
        Span::from_ns(self.config.f_s_tov.as_ns() / 5)
    }
}
