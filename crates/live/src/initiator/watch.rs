//! Continuous discovery of an interface's FCoE VLANs: [`VlanWatch`], by which `fcoemon` starts and
//! stops hosts.
//!
//! The watch repeats its requests, because forwarders do not announce VLANs unasked. It also runs
//! DCBX for all hosts of the interface, because an interface has one LLDP agent regardless of its
//! number of VLANs.

use crate::clock::{Clock, until};
use crate::frame::{FrameBuf, Pool};
use crate::lldp::Agent;
use crate::poll::{Interest, Poller};
use crate::ports::{Driver, EthernetPort, Packet, PortError};
use crate::sys::batch::BATCH;
use sanloom_fc::dcbx;
use sanloom_fc::fip::enode::{self, Enode, EnodeConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Interval between checks of the link, and between calls of `go_on`.
const CHECK_INTERVAL: Span = Span::from_ms(100);
/// Interval between VLAN requests.
const REQUESTS: Span = Span::from_secs(5);
/// Time after which a silent forwarder is considered gone while others answer. By then requests of
/// its hosts have failed.
const SILENCE: Span = Span::from_secs(60);

/// Highest VLAN identifier of a frame; 4095 is reserved.
const MAX_VLAN: u16 = 4094;
/// Maximum number of VLANs per interface on which hosts are started, lowest first. Each host is a
/// process.
const MAX_VLANS: usize = 32;
/// Maximum number of forwarders whose replies are stored.
const MAX_FORWARDERS: usize = 64;

const PORT: u64 = 0;

/// Discovery result of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// VLANs that carry FCoE, 1 to 4094, or 0 for frames without a tag.
    pub vlans: BTreeSet<u16>,
    /// True if the link is up and DCBX has agreed if it is required.
    pub may_begin: bool,
}

/// Replies of forwarders. While no forwarder answers, the result stays unchanged, because hosts
/// wait for their forwarder themselves. After the first reply that follows, the other forwarders
/// have the full [`SILENCE`] time to answer before their hosts are stopped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Replies {
    answers: BTreeMap<MacAddr, (Instant, Vec<u16>)>,
    /// Start of the period in which replies were never more than [`SILENCE`] apart.
    since: Instant,
    last: Instant,
}

impl Replies {
    fn answer(&mut self, now: Instant, fcf: MacAddr, mut vlans: Vec<u16>) {
        vlans.retain(|vlan| *vlan <= MAX_VLAN);
        // Any station on the segment can send replies with any number of addresses.
        if self.answers.len() < MAX_FORWARDERS || self.answers.contains_key(&fcf) {
            self.answers.insert(fcf, (now, vlans));
        }
        if now.since(self.last) >= SILENCE {
            self.since = now;
        }
        self.last = now;
        let since = self.since;
        self.answers.retain(|_, (at, _)| now.since(since.max(*at)) < SILENCE);
    }

    fn vlans(&self) -> BTreeSet<u16> {
        let all: BTreeSet<u16> = self.answers.values().flat_map(|(_, vlans)| vlans).copied().collect();
        all.into_iter().take(MAX_VLANS).collect()
    }
}

/// A watched interface.
#[derive(Debug)]
pub struct VlanWatch {
    port: EthernetPort,
    enode: Enode,
    agent: Option<Agent>,
    clock: Clock,
    poller: Poller,
    pool: Pool,
    buffers: Vec<FrameBuf>,
    scratch: Vec<u8>,
    link: bool,
    next_check: Instant,
    next_request: Instant,
    replies: Replies,
    seen: Seen,
}

impl VlanWatch {
    /// Receives FIP and LLDP frames from an interface, in parallel with its hosts. With `dcbx`,
    /// requests are sent only after DCBX has agreed.
    ///
    /// # Errors
    /// Without permission, or when the interface does not exist.
    pub fn open(interface: &str, mac: MacAddr, dcbx: bool) -> Result<VlanWatch, PortError> {
        let protocols = [EtherType::FIP, EtherType::LLDP];
        let port = EthernetPort::new(interface, Driver::Packet(Packet::open_for(interface, &protocols)?));
        let mut pool = Pool::default();
        let failed = |error| PortError::Interface { name: interface.to_owned(), error };
        Ok(VlanWatch {
            port,
            enode: Enode::new(EnodeConfig::new(mac, Wwnn(0x1000 << 48 | mac.to_u64()))),
            agent: dcbx.then(|| Agent::new(mac, interface, true)),
            clock: Clock::start(),
            poller: Poller::new().map_err(failed)?,
            buffers: (0..BATCH).map(|_| pool.take()).collect(),
            pool,
            scratch: Vec::new(),
            link: false,
            next_check: Instant::ZERO,
            next_request: Instant::ZERO,
            replies: Replies::default(),
            seen: Seen::default(),
        })
    }

    /// Watches until `go_on` returns false. `go_on` is called every 100 ms with the current result.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn run(&mut self, mut go_on: impl FnMut(&Seen) -> bool) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            if self.next_check <= now {
                self.check_link(now);
                if !go_on(&self.seen) {
                    break;
                }
            }
            self.timers(now);
            self.port.flush(&mut self.pool);
            let interest = Interest { read: true, write: self.port.egress.blocked };
            self.poller.set(PORT, self.port.socket(), interest)?;
            for event in self.poller.wait(until(now, self.next_timer()))? {
                self.port.egress.blocked &= !event.writable;
            }
            self.receive();
        }
        self.agent_input(self.clock.now(), dcbx::Input::Shutdown);
        self.port.flush(&mut self.pool);
        Ok(())
    }

    fn next_timer(&self) -> Instant {
        let agent = self.agent.as_ref().and_then(|agent| agent.machine.poll_timeout());
        let machines = [self.enode.poll_timeout(), agent];
        machines.into_iter().flatten().fold(self.next_check, Instant::min)
    }

    fn timers(&mut self, now: Instant) {
        self.enode.handle(now, enode::Input::Timeout);
        self.agent_input(now, dcbx::Input::Timeout);
        let may_begin = self.link && self.agent.as_ref().is_none_or(Agent::may_begin);
        let begins = !std::mem::replace(&mut self.seen.may_begin, may_begin) && may_begin;
        if may_begin && (begins || self.next_request <= now) {
            self.next_request = now + REQUESTS;
            self.enode.handle(now, enode::Input::DiscoverVlans);
        }
        self.drain(now);
    }

    fn check_link(&mut self, now: Instant) {
        self.next_check = now + CHECK_INTERVAL;
        if self.port.check_peer() {
            self.poller.forget(PORT);
        }
        let up = self.port.has_peer();
        if std::mem::replace(&mut self.link, up) != up {
            self.agent_input(now, if up { dcbx::Input::LinkUp } else { dcbx::Input::LinkDown });
        }
    }

    fn receive(&mut self) {
        let Ok((got, _)) = self.port.receive(&mut self.buffers) else { return };
        let now = self.clock.now();
        for place in 0..got {
            let buffer = &self.buffers[place];
            let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(buffer.bytes()) else { continue };
            match buffer.ether_type() {
                // Requests and replies are untagged (FC-BB, FIP VLAN discovery).
                Some(EtherType::FIP) if buffer.tag.is_none_or(|tag| tag.vlan == 0) => {
                    self.enode.handle(now, enode::Input::Fip { to, from, pdu: pdu.into() });
                }
                Some(EtherType::LLDP) => {
                    if let Some(agent) = &mut self.agent {
                        agent.frame_in(now, &self.buffers[place]);
                    }
                }
                _ => {}
            }
        }
        self.drain(now);
    }

    fn agent_input(&mut self, now: Instant, input: dcbx::Input) {
        if let Some(agent) = &mut self.agent {
            agent.machine.handle(now, input);
            self.drain(now);
        }
    }

    fn drain(&mut self, now: Instant) {
        while let Some(agent) = &mut self.agent
            && let Some(pdu) = agent.poll()
        {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| agent.emit(&pdu, out));
            self.port.push(now, buffer);
        }
        while let Some(output) = self.enode.poll_output() {
            match output {
                enode::Output::Fip(packet) => {
                    let mut buffer = self.pool.take();
                    buffer.compose(&mut self.scratch, |out| packet.emit(None, out));
                    self.port.push(now, buffer);
                }
                enode::Output::Vlans { fcf, vlans } => {
                    self.replies.answer(now, fcf, vlans);
                    self.seen.vlans = self.replies.vlans();
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_is_removed_when_a_reply_lacks_it_or_its_forwarder_falls_silent() {
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let (one, other) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let mut replies = Replies::default();
        replies.answer(at(0), one, vec![152, 153]);
        replies.answer(at(1), other, vec![154]);
        assert_eq!(replies.vlans(), BTreeSet::from([152, 153, 154]));
        replies.answer(at(5), one, vec![153]);
        assert_eq!(replies.vlans(), BTreeSet::from([153, 154]));
        replies.answer(at(60), one, vec![153]);
        assert_eq!(replies.vlans(), BTreeSet::from([153, 154]));
        replies.answer(at(61), one, vec![153]);
        assert_eq!(replies.vlans(), BTreeSet::from([153]));
        // After an hour without replies, the other forwarders have one minute from the first reply.
        replies.answer(at(3_661), other, vec![155]);
        assert_eq!(replies.vlans(), BTreeSet::from([153, 155]));
        replies.answer(at(3_720), other, vec![155]);
        assert_eq!(replies.vlans(), BTreeSet::from([153, 155]));
        replies.answer(at(3_721), other, vec![155]);
        assert_eq!(replies.vlans(), BTreeSet::from([155]));
    }
}
