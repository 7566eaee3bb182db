//! Hosts of a gateway: their sessions, the virtual N_Ports that log out with them, and the end of
//! sessions behind which nothing is left.

use super::Switches;
use super::switch::{Job, Switch};
use crate::net::Net;
use crate::world::{World, iscsi, srp};
use sanloom_fc::config::{GatewayMode, InfinibandNode};
use sanloom_fc::san::{Lab, srp_port};
use sanloom_scsi::scsi::{InitiatorName, IoOp};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::sense::SenseCode;

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
}

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
    /// True if the gateway has ended the sessions, until the next one begins.
    is_ended: bool,
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
    pub fn session_began(&mut self, net: &mut Net, storage: u16, host: u16) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let port = switch.port_of(host);
        let own = switch.hosts.entry(host).or_default();
        own.sessions += 1;
        own.is_ended = false;
        let before = std::mem::take(&mut own.stage);
        if let Some(port) = port.filter(|_| before == Stage::Away) {
            switch.paths.logs_in(host, net.now());
            self.gateway_orders.push_back(GatewayOrder::LogIn(port));
        }
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Takes note of the end of a session or channel of a host.
    pub fn session_ended(&mut self, net: &mut Net, storage: u16, host: u16) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let own = switch.hosts.entry(host).or_default();
        debug_assert!(own.sessions > 0, "a session of host {host} ends once");
        own.sessions = own.sessions.saturating_sub(1);
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Returns whether a host may log in: the gateway has a path to the storage behind, or lost the
    /// last one a short time ago.
    pub fn admits(&self, storage: u16, host: u16) -> bool {
        self.switches.get(&storage).is_none_or(|switch| !switch.paths.has_given_up(host))
    }

    /// Logs out the virtual N_Ports of hosts that have no session left and whose exchanges have
    /// ended. A host whose sessions the gateway ended for want of a path keeps its N_Port, because
    /// only a login shows that the path has returned.
    pub(super) fn log_out_lost(&mut self, storage: u16) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let lost: Vec<u16> = switch
            .hosts
            .iter()
            .filter(|(_, own)| own.sessions == 0 && own.stage != Stage::Away && !own.is_ended)
            .map(|(host, _)| *host)
            .collect();
        for host in lost {
            let Some(port) = switch.port_of(host) else { continue };
            let stage = if switch.has_request_of(host) { Stage::Leaving } else { Stage::Away };
            switch.hosts.entry(host).or_default().stage = stage;
            if stage == Stage::Away {
                switch.logouts += 1;
                switch.paths.logs_out(host);
                self.gateway_orders.push_back(GatewayOrder::LogOut(port));
            }
        }
    }

    /// Ends the sessions of hosts whose paths have not returned in time. Returns the time in ps at
    /// which the next ones end.
    pub(super) fn end_sessions(&mut self, now_ps: u64, storage: u16) -> Option<u64> {
        let switch = self.switches.get_mut(&storage)?;
        let limit_ps = switch.gateway.path_timeout.0;
        for host in switch.paths.give_up(now_ps, limit_ps) {
            let ended = switch.hosts.iter_mut().filter(|(own, _)| host.is_none_or(|host| host == **own));
            for (_, own) in ended.filter(|(_, own)| own.sessions > 0) {
                switch.ended_sessions += u64::from(own.sessions);
                own.is_ended = true;
            }
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
            let concerns = |initiator: &TransportId| host.is_none_or(|host| is_of(lab, host, initiator));
            all.systems[usize::from(storage)].device.report_change(code, concerns);
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
