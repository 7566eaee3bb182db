//! An FCoE host on an Ethernet port, without anybody who uses its disks: [`Adapter`].
//!
//! ```text
//!   Ethernet port <-> Agent (DCBX), Controller (FIP) <-> Hosts: the physical N_Port, then the virtual ones
//! ```
//!
//! Whoever has one waits for its port ([`Adapter::watch`]), and calls [`turn`](Adapter::turn), [`timers`](Adapter::timers) and, behind
//! everything that asks for something, [`send`](Adapter::send).

use super::controller::{Controller, Told};
use super::host::Host;
use crate::capture::Captures;
use crate::frame::{FrameBuf, Pool};
use crate::lldp::Agent;
use crate::offload::{Offloads, Segmenter, Spreader};
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, reason};
use crate::sys::batch::BATCH;
use sanloom_core::dcbx;
use sanloom_core::fip::enode::{Enode, EnodeConfig};
use sanloom_core::fip::vlan::VlanResponder;
use sanloom_core::fip::vn2vn::{Vn2vn, Vn2vnConfig};
use sanloom_core::time::{Instant, Span};
use sanloom_wire::ether::{MacAddr, VlanTag};
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::io;

/// How often the port is asked whether its peer is still there.
pub(super) const LOOK: Span = Span::from_ms(100);
/// What waits for longer for a peer that takes nothing is dropped.
const HOLD_TIME: Span = Span::from_ms(500);
/// Priority of FCoE frames with a tag (IEEE 802.1Q, as DCB networks have it).
pub(super) const FCOE_PRIORITY: u8 = 3;
/// How often forwarders are asked for their VLAN again, where none has answered.
const VLAN_REQUESTS: Span = Span::from_secs(5);

/// The VLAN of FCoE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vlan {
    /// Frames have no tag.
    #[default]
    Untagged,
    /// Frames have this tag.
    Tagged(u16),
    /// The one that an FCF names when it is asked (FIP VLAN discovery).
    Discover,
}

/// What an adapter is.
#[derive(Clone, Debug)]
pub struct AdapterConfig {
    /// Address of its Ethernet port.
    pub mac: MacAddr,
    /// Port name of the physical N_Port.
    pub wwpn: Wwpn,
    /// Node name.
    pub wwnn: Wwnn,
    /// It is a station of a segment without a fabric (VN2VN), instead of looking for a forwarder.
    pub vn2vn: bool,
    /// DCBX has to agree first that no frame of FCoE is lost.
    pub dcbx: bool,
    /// FCoE waits until `fcoemon` permits it, which speaks DCBX for all hosts of an interface.
    pub waits_for_permission: bool,
    /// Tells who asks that a VN2VN segment is in our VLAN.
    pub vlan_responder: bool,
    /// Where FCoE is.
    pub vlan: Vlan,
    /// From the first FCF to the choice of one.
    pub selection_delay: Span,
    /// Which offloads are on.
    pub offloads: Offloads,
}

impl AdapterConfig {
    /// An adapter of a fabric, with the default of everything else.
    pub fn new(mac: MacAddr, wwpn: Wwpn, wwnn: Wwnn) -> AdapterConfig {
        AdapterConfig {
            mac,
            wwpn,
            wwnn,
            vn2vn: false,
            dcbx: false,
            waits_for_permission: false,
            vlan_responder: false,
            vlan: Vlan::Untagged,
            selection_delay: Span::from_secs(2),
            offloads: Offloads::default(),
        }
    }
}

/// An adapter that runs.
#[derive(Debug)]
pub struct Adapter {
    pub(super) config: AdapterConfig,
    /// Its Ethernet port.
    pub port: EthernetPort,
    /// The FIP controller.
    pub controller: Controller,
    /// Everything behind it: the physical port, then the virtual ones. At least one.
    pub hosts: Vec<Host>,
    /// The LLDP agent, where DCBX has to agree before FCoE begins.
    pub agent: Option<Agent>,
    pub(super) responder: Option<VlanResponder>,
    /// Captures of the port.
    pub captures: Captures,
    pub(super) pool: Pool,
    pub(super) segmenter: Segmenter,
    pub(super) spreader: Spreader,
    pub(super) spare: Vec<FrameBuf>,
    pub(super) scratch: Vec<u8>,
    /// The VLAN in use; nothing until it is known.
    pub(super) tag: Option<Option<VlanTag>>,
    pub(super) link: bool,
    /// FCoE has begun.
    pub(super) begun: bool,
    /// Nobody who has a say in it keeps FCoE from beginning.
    pub(super) permitted: bool,
    /// The physical port has a fabric login.
    pub(super) base_up: bool,
    /// The host that sends next.
    pub(super) turn_of: usize,
    next_look: Instant,
    /// When to ask for the VLAN again.
    next_vlan_request: Instant,
    /// How often the link went down.
    pub(super) link_failures: u64,
    /// There may be something to read.
    readable: bool,
}

impl Adapter {
    /// An adapter on a port. `hosts`: the physical N_Port first.
    ///
    /// # Errors
    /// When the system gives us no threads for received frames.
    pub fn new(config: AdapterConfig, port: EthernetPort, hosts: Vec<Host>) -> io::Result<Adapter> {
        let controller = if config.vn2vn {
            let vn2vn = Vn2vnConfig::new(config.mac, config.wwpn, config.wwnn, true, false);
            Controller::Vn2vn(Box::new(Vn2vn::new(vn2vn)))
        } else {
            let selection_delay = config.selection_delay;
            let enode = EnodeConfig { selection_delay, ..EnodeConfig::new(config.mac, config.wwnn) };
            Controller::Fabric(Box::new(Enode::new(enode)))
        };
        let tag = match config.vlan {
            Vlan::Untagged => Some(None),
            Vlan::Tagged(vlan) => Some(Some(tag(vlan))),
            Vlan::Discover => None,
        };
        let responder = match config.vlan {
            Vlan::Tagged(vlan) if config.vlan_responder => Some(VlanResponder::vn2vn(config.mac, vec![vlan])),
            _ => None,
        };
        let mut pool = Pool::default();
        Ok(Adapter {
            agent: config.dcbx.then(|| Agent::new(config.mac, &port.name, true)),
            spare: (0..BATCH).map(|_| pool.take()).collect(),
            spreader: Spreader::start(&config.offloads)?,
            segmenter: Segmenter::new(&config.offloads),
            permitted: !config.waits_for_permission,
            config,
            port,
            controller,
            hosts,
            responder,
            captures: Captures::default(),
            pool,
            scratch: Vec::new(),
            tag,
            link: false,
            begun: false,
            base_up: false,
            turn_of: 0,
            next_look: Instant::ZERO,
            next_vlan_request: Instant::ZERO,
            link_failures: 0,
            readable: false,
        })
    }

    /// Waits for frames with this token, and for peers with the next.
    ///
    /// # Errors
    /// When a descriptor cannot be waited for.
    pub fn watch(&self, poller: &mut Poller, token: u64) -> io::Result<()> {
        let egress = &self.port.egress;
        let interest = Interest { read: true, write: egress.blocked && !egress.queue.is_empty() };
        poller.set(token, self.port.socket(), interest)?;
        poller.set(token + 1, self.port.listener(), Interest { read: true, write: false })
    }

    /// The poller has seen something.
    pub fn happened(&mut self, is_listener: bool, readable: bool, writable: bool) {
        if is_listener {
            self.next_look = Instant::ZERO;
            return;
        }
        self.readable |= readable;
        self.port.egress.blocked &= !writable;
    }

    /// Looks at the link, and takes what has come.
    pub fn turn(&mut self, now: Instant, poller: &mut Poller, token: u64) {
        if self.next_look <= now && self.look(now) {
            poller.forget(token);
        }
        if std::mem::take(&mut self.readable) {
            self.readable = self.receive(now);
        }
    }

    /// When to take a turn at the latest.
    pub fn poll_timeout(&self) -> Instant {
        let agent = self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout());
        let own = [self.controller.poll_timeout(), agent, self.port.egress.expires(HOLD_TIME)];
        let hosts = self.hosts.iter().map(Host::poll_timeout);
        own.into_iter().chain(hosts).flatten().fold(self.next_look, Instant::min)
    }

    /// Calls machines whose time has come.
    pub fn timers(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.controller.poll_timeout()) {
            self.tell(now, Told::Timeout);
        }
        if due(self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout())) {
            self.tell_agent(now, dcbx::Input::Timeout);
            self.settle_link(now);
        }
        for host in self.hosts.iter_mut().filter(|host| due(host.poll_timeout())) {
            host.timeout(now);
        }
        self.virtual_links(now);
    }

    /// Sends what there is to send. True if there is more to do that need not be waited for.
    pub fn send(&mut self, now: Instant) -> bool {
        self.pump(now);
        self.port.flush(&mut self.pool);
        let late = self.port.egress.expire(now, HOLD_TIME, &mut self.pool);
        if late > 0 {
            self.port.count(reason::HOLD_TIME, late);
        }
        self.readable || self.hosts.iter().any(Host::has_output) && !self.is_full()
    }

    /// FCoE has begun: the link is up, and DCBX has agreed where it has to.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// So much waits to leave that nobody should ask for more.
    pub fn is_full(&self) -> bool {
        self.port.egress.is_full()
    }

    /// Logs out everywhere. The answers take a moment.
    pub fn log_out(&mut self, now: Instant) {
        self.hosts.iter_mut().for_each(|host| host.log_out(now));
    }

    /// An N_Port is logged in to a fabric.
    pub fn is_logged_in(&self) -> bool {
        self.hosts.iter().any(|host| host.port_id() != FcId::ZERO)
    }

    /// Sends what is left, and tells the other end that nobody is here any more.
    pub fn end(&mut self, now: Instant) {
        self.pump(now);
        self.tell_agent(now, dcbx::Input::Shutdown);
        self.port.flush(&mut self.pool);
        self.captures.flush();
    }

    /// Finds out whether the peer has come or gone. True if frames come in through another socket from now on.
    fn look(&mut self, now: Instant) -> bool {
        self.next_look = now + LOOK;
        self.captures.flush();
        let moved = self.port.look_for_peer();
        let up = self.port.has_peer();
        if self.begun && self.tag.is_none() && self.next_vlan_request <= now {
            self.begin(now);
        }
        if std::mem::replace(&mut self.link, up) == up {
            return moved;
        }
        tracing::info!(port = self.port.name, up, "link");
        self.link_failures += u64::from(!up);
        self.tell_agent(now, if up { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
        self.settle_link(now);
        moved
    }

    /// FCoE begins when the link is up and DCBX agrees, and ends when one of them does not hold any more.
    pub(super) fn settle_link(&mut self, now: Instant) {
        let up = self.link && self.permitted && self.agent.as_ref().is_none_or(Agent::may_begin);
        if std::mem::replace(&mut self.begun, up) == up {
            return;
        }
        if up {
            self.begin(now);
            return;
        }
        self.tell(now, Told::LinkDown);
        self.forget_vlan(now);
    }

    /// Whoever comes next may be in another VLAN: it is asked for again, if nobody has said which one it is.
    pub(super) fn forget_vlan(&mut self, now: Instant) {
        if self.config.vlan == Vlan::Discover && self.tag.take().is_some() {
            self.next_vlan_request = now;
            self.tell(now, Told::LinkDown);
        }
    }

    /// Looks for a forwarder or for neighbours, or for the VLAN that they are in.
    fn begin(&mut self, now: Instant) {
        if self.tag.is_some() {
            self.tell(now, Told::LinkUp);
        } else {
            self.next_vlan_request = now + VLAN_REQUESTS;
            self.tell(now, Told::DiscoverVlans);
        }
    }

    /// Something happened to the LLDP agent, if there is one.
    fn tell_agent(&mut self, now: Instant, input: dcbx::Input) {
        if let Some(agent) = &mut self.agent {
            agent.machine.handle(now, input);
            self.drain_agent(now);
        }
    }

    pub(super) fn drain_agent(&mut self, now: Instant) {
        while let Some(agent) = &mut self.agent
            && let Some(pdu) = agent.poll()
        {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| agent.emit(&pdu, out));
            self.untagged_out(now, buffer);
        }
    }
}

/// The tag of frames in a VLAN.
pub(super) fn tag(vlan: u16) -> VlanTag {
    VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan }
}
