//! Hosts of a gateway: their sessions, the virtual N_Ports that log out with them, and the end of
//! sessions behind which nothing is left.

use super::Switches;
use super::switch::{Job, Switch};
use crate::net::Net;
use crate::world::{World, iscsi, srp};
use sanloom_fc::config::{GatewayMode, InfinibandNode};
use sanloom_fc::san::{Lab, srp_port};
use sanloom_scsi::scsi::{InitiatorName, IoOp, NexusId};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::SenseCode;
use std::collections::BTreeMap;

/// Order of a gateway to the world around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::world) enum GatewayOrder {
    /// Log the virtual N_Ports of this host of the lab out of the fabric (LOGO).
    LogOut(u16),
    /// Log them in (FDISC).
    LogIn(u16),
    /// End the sessions and channels of a host with a storage system; `None`: of all hosts.
    EndSessions { storage: u16, host: Option<u16> },
    /// Report a unit attention to the nexuses of a host; `None`: of all hosts.
    Attention { storage: u16, host: Option<u16>, code: SenseCode },
    /// Report the loss of the nexus before it to a new nexus.
    NexusLoss { storage: u16, nexus: NexusId },
}

/// Time for which the virtual N_Port of a host whose login was refused waits for its path at least,
/// in ps: longer than a host waits from a login without an answer to the next one.
const MIN_WAIT_PS: u64 = 20_000_000_000_000;

/// Progress of the logout of a virtual N_Port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    /// Logged in, or about to log in.
    #[default]
    Present,
    /// The host is lost, and its exchanges are being aborted.
    Leaving,
    /// Logged out until the host returns.
    Away,
}

/// A host with sessions.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OwnHost {
    /// Sessions and channels.
    sessions: u32,
    stage: Stage,
    /// Time up to which its virtual N_Port waits for a path without a session, because the gateway
    /// has refused a login, in ps.
    waits_until_ps: u64,
}

/// Losses of nexuses of hosts with the storage behind a gateway.
///
/// The loss of an I_T nexus establishes a unit attention condition for its initiator port, which
/// the next command of that port receives, in the nexus that follows (SAM-5, 5.14 and 6.3.4).
#[derive(Default, Debug)]
pub(super) struct NexusLosses {
    /// Losses so far, by host.
    of: BTreeMap<u16, u32>,
    /// Losses of its host up to the end of the last nexus of an initiator port.
    known: BTreeMap<TransportId, u32>,
}

impl NexusLosses {
    /// Counts a loss for a host, or for all hosts that have had a nexus.
    fn count(&mut self, host: Option<u16>) {
        match host {
            Some(host) => *self.of.entry(host).or_default() += 1,
            None => self.of.values_mut().for_each(|losses| *losses += 1),
        }
    }

    /// Returns whether a new nexus of an initiator port follows one that did not live through all
    /// losses of its host.
    fn begin(&mut self, host: u16, initiator: &TransportId) -> bool {
        let losses = *self.of.entry(host).or_default();
        self.known.get(initiator).is_some_and(|known| *known != losses)
    }

    fn end(&mut self, host: u16, initiator: TransportId) {
        self.known.insert(initiator, self.of.get(&host).copied().unwrap_or_default());
    }
}

impl Switch {
    /// Returns the host of the lab with the virtual N_Ports of a host.
    fn port_of(&self, host: u16) -> Option<u16> {
        let own = self.gateway.hosts.iter().find(|own| own.host == host);
        own.filter(|_| self.gateway.mode == GatewayMode::Transparent).map(|own| own.port)
    }

    /// Returns whether a job writes blocks that a write of an earlier session of its host may still
    /// write, because that one is being aborted.
    pub(super) fn waits_for_orphan(&self, job: &Job) -> bool {
        let blocks = |job: &Job| job.io.lba..job.io.lba.saturating_add(job.io.blocks.into());
        let own = blocks(job);
        let is_orphan = |other: &Job| {
            let of_host = other.is_recalled && other.host == job.host && other.owner != job.owner;
            let written = blocks(other);
            let overlaps = written.start < own.end && own.start < written.end;
            of_host && overlaps && (other.io.unit, other.io.op) == (job.io.unit, IoOp::Write)
        };
        // Virtual disks keep the order of overlapping requests themselves.
        let writes = job.io.op == IoOp::Write && job.host.is_some() && self.gateway.through.is_some();
        self.recalled_jobs > 0 && writes && self.jobs.values().any(is_orphan)
    }

    fn has_request_of(&self, host: u16) -> bool {
        let is_its = |job: &Job| job.host == Some(host);
        self.requests.values().any(|pending| self.jobs.get(&pending.job).is_some_and(is_its))
    }
}

impl Switches {
    /// Takes note of a new session or channel of a host, whose virtual N_Port logs in again if it
    /// was logged out.
    pub fn session_began(&mut self, net: &mut Net, (storage, host): (u16, u16), nexus: (NexusId, &TransportId)) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        switch.hosts.entry(host).or_default().sessions += 1;
        if switch.nexus_losses.begin(host, nexus.1) {
            self.gateway_orders.push_back(GatewayOrder::NexusLoss { storage, nexus: nexus.0 });
        }
        self.log_in(net.now(), storage, host);
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Logs the virtual N_Ports of a host in, if they are logged out.
    fn log_in(&mut self, now_ps: u64, storage: u16, host: u16) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let port = switch.port_of(host);
        let before = std::mem::take(&mut switch.hosts.entry(host).or_default().stage);
        if let Some(port) = port.filter(|_| before == Stage::Away) {
            switch.paths.logs_in(host, now_ps);
            self.gateway_orders.push_back(GatewayOrder::LogIn(port));
        }
    }

    /// Takes note of the end of a session or channel of a host.
    pub fn session_ended(&mut self, net: &mut Net, (storage, host): (u16, u16), initiator: Option<TransportId>) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        if let Some(initiator) = initiator {
            switch.nexus_losses.end(host, initiator);
        }
        let own = switch.hosts.entry(host).or_default();
        debug_assert!(own.sessions > 0, "a session of host {host} ends once");
        own.sessions = own.sessions.saturating_sub(1);
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Returns whether a host may log in: the gateway has a path to the storage behind, or lost the
    /// last one a short time ago. If it has not, the virtual N_Ports of the host log in, because
    /// only their login shows whether a path has returned; the host repeats its login.
    pub fn admits(&mut self, net: &mut Net, storage: u16, host: u16) -> bool {
        let Some(switch) = self.switches.get_mut(&storage) else { return true };
        if !switch.paths.has_given_up(host) {
            return true;
        }
        let wait_ps = switch.gateway.path_timeout.0.max(MIN_WAIT_PS);
        switch.hosts.entry(host).or_default().waits_until_ps = net.now().saturating_add(wait_ps);
        self.log_in(net.now(), storage, host);
        net.set_timer_earlier(self.timer, net.now());
        false
    }

    /// Logs out the virtual N_Ports of hosts that have no session left and whose exchanges have
    /// ended. Returns the time in ps at which the next ones log out.
    pub(super) fn log_out_lost(&mut self, now_ps: u64, storage: u16) -> Option<u64> {
        let switch = self.switches.get_mut(&storage)?;
        let idle = switch.hosts.iter().filter(|(_, own)| own.sessions == 0 && own.stage != Stage::Away);
        let (lost, waiting): (Vec<_>, Vec<_>) =
            idle.map(|(host, own)| (*host, own.waits_until_ps)).partition(|(_, until_ps)| *until_ps <= now_ps);
        let next_ps = waiting.into_iter().map(|(_, until_ps)| until_ps).min();
        for (host, _) in lost {
            let Some(port) = switch.port_of(host) else { continue };
            let stage = if switch.has_request_of(host) { Stage::Leaving } else { Stage::Away };
            switch.hosts.entry(host).or_default().stage = stage;
            if stage == Stage::Away {
                switch.logouts += 1;
                switch.paths.logs_out(host);
                switch.nexus_losses.count(Some(host));
                self.gateway_orders.push_back(GatewayOrder::LogOut(port));
            }
        }
        next_ps
    }

    /// Ends the sessions of hosts whose paths have not returned in time. Returns the time in ps at
    /// which the next ones end.
    pub(super) fn end_sessions(&mut self, now_ps: u64, storage: u16) -> Option<u64> {
        let switch = self.switches.get_mut(&storage)?;
        let limit_ps = switch.gateway.path_timeout.0;
        for host in switch.paths.give_up(now_ps, limit_ps) {
            let ended = switch.hosts.iter().filter(|(own, _)| host.is_none_or(|host| host == **own));
            switch.ended_sessions += ended.map(|(_, own)| u64::from(own.sessions)).sum::<u64>();
            self.gateway_orders.push_back(GatewayOrder::EndSessions { storage, host });
        }
        switch.paths.next_limit_ps(limit_ps)
    }

    /// Reports a unit attention, because the paths of a host have returned: in transparent mode its
    /// own nexus with the array was lost, and in proxy mode the LUNs behind were.
    pub(super) fn paths_returned(&mut self, storage: u16, host: Option<u16>) {
        let code = match host {
            Some(_) => SenseCode::I_T_NEXUS_LOSS,
            None => SenseCode::REPORTED_LUNS_CHANGED,
        };
        if let Some(switch) = self.switches.get_mut(&storage) {
            switch.nexus_losses.count(host);
        }
        self.gateway_orders.push_back(GatewayOrder::Attention { storage, host, code });
    }
}

/// Carries out an order of a gateway.
#[inline(never)]
pub(in crate::world) fn carry_out(world: &mut World, order: GatewayOrder) {
    match order {
        GatewayOrder::LogOut(port) => world.log_out_machine(port),
        GatewayOrder::LogIn(port) => world.create_machine(port),
        GatewayOrder::EndSessions { storage, host } => {
            iscsi::end_sessions(world, storage, host);
            srp::end_channels(world, storage, host);
        }
        GatewayOrder::Attention { storage, host, code } => {
            let World { lab, storage: all, .. } = world;
            let concerns = |_, initiator: &TransportId| host.is_none_or(|host| is_of(lab, host, initiator));
            all.systems[usize::from(storage)].device.report_change(code, concerns);
        }
        GatewayOrder::NexusLoss { storage, nexus } => {
            let device = &mut world.storage.systems[usize::from(storage)].device;
            device.report_change(SenseCode::I_T_NEXUS_LOSS, |own, _| own == nexus);
        }
    }
}

/// Returns whether an initiator port is that of a host.
fn is_of(lab: &Lab, host: u16, initiator: &TransportId) -> bool {
    match InitiatorName::from(initiator) {
        InitiatorName::Iscsi(name) => lab.hosts[usize::from(host)].iscsi.name == *name,
        InitiatorName::Srp(port) => {
            let paths = lab.srp_paths();
            let own = paths.interfaces_of(InfinibandNode::Host(host));
            own.iter().any(|interface| srp_port(*interface) == *port)
        }
        InitiatorName::Fcp(_) => false,
    }
}
