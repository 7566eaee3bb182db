//! An FCoE host on an Ethernet port, without the users of its disks: [`Adapter`].
//!
//! ```text
//!   Ethernet port <-> Agent (DCBX), Controller (FIP) <-> Hosts: the physical N_Port, then the virtual ones
//! ```
//!
//! The owner waits for the port ([`Adapter::watch`]). It calls
//! [`process_events`](Adapter::process_events) and [`timers`](Adapter::timers), and then
//! [`send`](Adapter::send) for the output.

use super::controller::{Controller, ControllerInput};
use super::host::Host;
use crate::capture::Captures;
use crate::frame::{FrameBuf, Pool};
use crate::lldp::Agent;
use crate::offload::{Offloads, Segmenter};
use crate::poll::{Interest, Poller};
use crate::ports::{EthernetPort, reason};
use crate::sys::batch::BATCH;
use sanloom_fc::dcbx;
use sanloom_fc::fip::enode::{Enode, EnodeConfig};
use sanloom_fc::fip::vlan::VlanResponder;
use sanloom_fc::fip::vn2vn::{Vn2vn, Vn2vnConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::{MacAddr, VlanTag};
use sanloom_wire::fdmi::port_speed;
use sanloom_wire::{FcId, Wwnn, Wwpn};
use std::io;

/// Interval between checks of the port's peer.
pub(super) const CHECK_INTERVAL: Span = Span::from_ms(100);
/// Hold time: frames queued longer for a blocked peer are dropped.
const HOLD_TIME: Span = Span::from_ms(500);
/// Priority of tagged FCoE frames (IEEE 802.1Q, as usual in DCB networks).
pub(super) const FCOE_PRIORITY: u8 = 3;
/// Interval between VLAN requests while no forwarder has answered.
const VLAN_REQUESTS: Span = Span::from_secs(5);

/// VLAN of the FCoE frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vlan {
    /// Untagged frames.
    #[default]
    Untagged,
    /// Frames with this VLAN identifier.
    Tagged(u16),
    /// The VLAN that an FCF reports (FIP VLAN discovery).
    Discover,
}

/// Configuration of an adapter.
#[derive(Clone, Debug)]
pub struct AdapterConfig {
    /// MAC address of the Ethernet port.
    pub mac: MacAddr,
    /// Port name of the physical N_Port.
    pub wwpn: Wwpn,
    /// Node name.
    pub wwnn: Wwnn,
    /// True if the adapter is a station of a segment without a fabric (VN2VN) and does not look for
    /// a forwarder.
    pub vn2vn: bool,
    /// True if FCoE waits until DCBX has agreed on lossless transport.
    pub dcbx: bool,
    /// True if FCoE waits for permission from `fcoemon`, which runs DCBX for all hosts of an
    /// interface.
    pub waits_for_permission: bool,
    /// True if the adapter answers VLAN requests with its VLAN on behalf of a VN2VN segment.
    pub vlan_responder: bool,
    /// VLAN selection.
    pub vlan: Vlan,
    /// Delay from the first FCF advertisement to the selection of an FCF.
    pub selection_delay: Span,
    /// Selection of offloads.
    pub offloads: Offloads,
}

impl AdapterConfig {
    /// Creates the configuration of an adapter in a fabric with the names that Linux derives from
    /// its MAC address, with the prefixes 20:00 and 10:00.
    pub fn named_by(mac: MacAddr) -> AdapterConfig {
        AdapterConfig::new(mac, Wwpn(0x2000 << 48 | mac.to_u64()), Wwnn(0x1000 << 48 | mac.to_u64()))
    }

    /// Creates the configuration of an adapter in a fabric, with defaults for all other fields.
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

/// A running adapter.
#[derive(Debug)]
pub struct Adapter {
    pub(super) config: AdapterConfig,
    pub port: EthernetPort,
    /// The FIP controller.
    pub controller: Controller,
    /// The physical N_Port, then the virtual ones; never empty.
    pub hosts: Vec<Host>,
    /// LLDP agent, if FCoE waits for DCBX.
    pub agent: Option<Agent>,
    pub(super) responder: Option<VlanResponder>,
    pub captures: Captures,
    pub(super) pool: Pool,
    pub(super) segmenter: Segmenter,
    pub(super) spare: Vec<FrameBuf>,
    pub(super) scratch: Vec<u8>,
    /// Tag in use: outer `None` until the VLAN is known, inner `None` for untagged frames.
    pub(super) tag: Option<Option<VlanTag>>,
    pub(super) link: bool,
    /// True if FCoE has begun.
    pub(super) begun: bool,
    /// True if `fcoemon` permits FCoE; always true without it.
    pub(super) permitted: bool,
    /// True if the physical port has a fabric login.
    pub(super) base_up: bool,
    /// Index of the host that sends next.
    pub(super) next_host: usize,
    next_check: Instant,
    /// Time of the next VLAN request.
    next_vlan_request: Instant,
    /// Number of link failures.
    pub(super) link_failures: u64,
    /// The port may have frames to read.
    readable: bool,
}

impl Adapter {
    /// Creates an adapter on a port. `hosts` begins with the physical N_Port.
    ///
    /// # Errors
    /// When the system cannot start the threads for received frames.
    pub fn new(config: AdapterConfig, port: EthernetPort, hosts: Vec<Host>) -> io::Result<Adapter> {
        debug_assert!(!hosts.is_empty(), "an adapter has a physical N_Port");
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
            next_host: 0,
            next_check: Instant::ZERO,
            next_vlan_request: Instant::ZERO,
            link_failures: 0,
            readable: false,
        })
    }

    /// Registers the port's socket with `token` and its listener with `token + 1`.
    ///
    /// # Errors
    /// When a descriptor cannot be registered.
    pub fn watch(&self, poller: &mut Poller, token: u64) -> io::Result<()> {
        let egress = &self.port.egress;
        let interest = Interest { read: true, write: egress.blocked && !egress.is_empty() };
        poller.set(token, self.port.socket(), interest)?;
        self.port.watch_listener(poller, token + 1)
    }

    /// Records a readiness event of the poller.
    pub fn happened(&mut self, is_listener: bool, readable: bool, writable: bool) {
        if is_listener {
            self.next_check = Instant::ZERO;
            return;
        }
        self.readable |= readable;
        self.port.egress.blocked &= !writable;
    }

    /// Checks the link and processes received frames.
    pub fn process_events(&mut self, now: Instant, poller: &mut Poller, token: u64) {
        if self.next_check <= now && self.check_peer(now) {
            poller.forget(token);
        }
        if std::mem::take(&mut self.readable) {
            self.readable = self.receive(now);
        }
    }

    /// Latest time for the next call of [`process_events`](Adapter::process_events).
    pub fn poll_timeout(&self) -> Instant {
        let agent = self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout());
        let egress = &self.port.egress;
        let port = [egress.expires(HOLD_TIME), egress.resumes(), self.port.repeats_pause()];
        let own = [self.controller.poll_timeout(), agent].into_iter().chain(port);
        let hosts = self.hosts.iter().map(Host::poll_timeout);
        own.chain(hosts).flatten().fold(self.next_check, Instant::min)
    }

    /// Runs expired timers of the machines.
    pub fn timers(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.controller.poll_timeout()) {
            self.controller_input(now, ControllerInput::Timeout);
        }
        if due(self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout())) {
            self.agent_input(now, dcbx::Input::Timeout);
            self.update_fcoe(now);
        }
        for host in self.hosts.iter_mut().filter(|host| due(host.poll_timeout())) {
            host.timeout(now);
        }
        self.virtual_links(now);
    }

    /// Sends pending frames. Returns true if more work can be done without waiting.
    pub fn send(&mut self, now: Instant) -> bool {
        self.pump(now);
        self.pause_peer(now);
        self.port.egress.resume(now);
        self.port.flush(&mut self.pool);
        let late = self.port.egress.expire(now, HOLD_TIME, &mut self.pool);
        if late > 0 {
            self.port.count(reason::HOLD_TIME, late);
        }
        self.readable || self.hosts.iter().any(Host::has_output) && !self.is_full()
    }

    /// Returns whether FCoE has begun: the link is up, and DCBX has agreed if it is required.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns whether the egress queue is full, so that no new requests should be accepted.
    pub fn is_full(&self) -> bool {
        self.port.egress.is_full()
    }

    /// Starts the logout from all ports. The replies arrive later.
    pub fn log_out(&mut self, now: Instant) {
        self.hosts.iter_mut().for_each(|host| host.log_out(now));
    }

    /// Returns whether an N_Port is logged in to a fabric.
    pub fn is_logged_in(&self) -> bool {
        self.hosts.iter().any(|host| host.port_id() != FcId::ZERO)
    }

    /// Sends the remaining frames and announces the shutdown to the LLDP peer.
    pub fn end(&mut self, now: Instant) {
        self.pump(now);
        self.agent_input(now, dcbx::Input::Shutdown);
        self.port.flush(&mut self.pool);
        self.captures.flush();
    }

    /// Updates the peer state. Returns true if frames are received through another socket from now
    /// on.
    fn check_peer(&mut self, now: Instant) -> bool {
        self.next_check = now + CHECK_INTERVAL;
        self.captures.flush();
        let moved = self.port.check_peer();
        let up = self.port.has_peer();
        if self.begun && self.tag.is_none() && self.next_vlan_request <= now {
            self.begin(now);
        }
        if std::mem::replace(&mut self.link, up) == up {
            return moved;
        }
        tracing::info!(port = self.port.name, up, "link");
        if up {
            // The port registers with the fabric at its next login.
            let speed = self.port.speed_mbit_per_s().map_or(0, port_speed::of_ethernet);
            self.hosts.iter_mut().for_each(|host| host.login.set_speed(speed));
        }
        self.link_failures += u64::from(!up);
        self.agent_input(now, if up { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
        self.update_fcoe(now);
        moved
    }

    /// Begins FCoE when the link is up and DCBX agrees, and ends it when one of the conditions
    /// fails.
    pub(super) fn update_fcoe(&mut self, now: Instant) {
        let up = self.link && self.permitted && self.agent.as_ref().is_none_or(Agent::may_begin);
        if std::mem::replace(&mut self.begun, up) == up {
            return;
        }
        if up {
            self.begin(now);
            return;
        }
        self.controller_input(now, ControllerInput::LinkDown);
        self.forget_vlan(now);
    }

    /// Discards a discovered VLAN, because the next peer may use another one. A configured VLAN is
    /// kept.
    pub(super) fn forget_vlan(&mut self, now: Instant) {
        if self.config.vlan == Vlan::Discover && self.tag.take().is_some() {
            self.next_vlan_request = now;
            self.controller_input(now, ControllerInput::LinkDown);
        }
    }

    /// Starts the discovery of a forwarder or of neighbours, or of their VLAN.
    fn begin(&mut self, now: Instant) {
        if self.tag.is_some() {
            self.controller_input(now, ControllerInput::LinkUp);
        } else {
            self.next_vlan_request = now + VLAN_REQUESTS;
            self.controller_input(now, ControllerInput::DiscoverVlans);
        }
    }

    /// Passes an input to the LLDP agent, if there is one.
    fn agent_input(&mut self, now: Instant, input: dcbx::Input) {
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
        let agreed = self.agent.as_ref().and_then(Agent::agreed);
        self.port.egress.configure(agreed);
    }
}

/// Returns the tag of FCoE frames in a VLAN.
pub(super) fn tag(vlan: u16) -> VlanTag {
    VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan }
}
