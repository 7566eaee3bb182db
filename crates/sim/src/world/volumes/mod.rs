//! Gateways: storage systems whose data are on other storage systems. The LUNs of a virtualization
//! switch (the iSCSI switch paper) are virtual disks; those of a gateway in front of Fibre Channel
//! may be the LUNs of an array.
//!
//! ```text
//!   host -> target::Session -> controller -> volume::Volumes -> sessions to back ends
//!                                        `-----------------`--> FcpInitiator of its host (relay)
//! ```
//!
//! A command of a host takes the service time of the controller, then the time of the processor of
//! the gateway. Requests to virtual disks wait for a lost back end as long as `retry` says. A
//! command for the LUNs of an array whose path is lost goes on over another one; without one it is
//! answered with BUSY, so that hosts repeat it.

mod hosts;
mod outcome;
mod paths;
mod seen;

mod switch;

pub(super) use hosts::{GatewayOrder, carry_out};
pub(crate) use seen::{BackPath, BackSeen, SwitchSeen, virtualization};
pub(super) use switch::{frame_bytes, units_of};

use super::World;
use super::relay::{RelayCommand, RelayOrder, Relayed};
use super::storage::Ended;
use crate::iscsi::{Event, Order, Peer};
use crate::net::Net;
use outcome::{is_aborted, status_through};
use sanloom_fc::config::MediumKind;
use sanloom_fc::fcp::initiator::Outcome;
use sanloom_fc::san::{self, Lab};
use sanloom_scsi::disk::{Done, Error, ErrorKind, Op, Request};
use sanloom_scsi::iscsi::initiator::Command;
use sanloom_scsi::map::{LunId, VolumeId};
use sanloom_scsi::scsi::{Io, IoOp, IoStatus, IoTag};
use sanloom_scsi::volume::{Buffer, Output, VolumeIo, Volumes};
use sanloom_wire::Wwpn;
use sanloom_wire::cdb::status;
use sanloom_wire::sense::{SenseCode, SenseKey};
use std::collections::{BTreeMap, VecDeque};
use switch::{Job, Pending, Piece, Route, Switch};

/// Bit of a tag that may be used again in the same session.
const AGAIN: u64 = 1 << 63;
/// Delay before a request that a back end refused is sent again, in ps.
const RETRY_PS: u64 = 10_000_000_000;
/// Bits of the number of a relayed command that hold the tag of its request; the index of the
/// storage system is above.
const TAG_BITS: u32 = 44;

/// A session of a virtualization switch with a back-end target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct BackSession {
    /// Index of the switch among the storage systems.
    pub switch: u16,
    /// Index of the storage system with the back-end LUNs.
    pub storage: u16,
    /// Number of the portal.
    pub portal: u16,
}

/// Returns the sessions of all virtualization switches with their back ends.
pub(super) fn sessions(lab: &Lab) -> Vec<BackSession> {
    if lab.ethernet_links.is_empty() || !lab.live.media.iter().any(|medium| medium.kind == MediumKind::Volumes) {
        return Vec::new();
    }
    let of = |(switch, storage, portal)| BackSession { switch, storage, portal };
    lab.iscsi_paths().back_ends().into_iter().map(of).collect()
}

/// Returns whether the LUNs of a storage system are virtual disks.
pub(crate) fn has_volumes(lab: &Lab, storage: u16) -> bool {
    lab.live.medium(storage).kind == MediumKind::Volumes
}

/// Returns whether a lab has gateways. Logins of their ports set the timer of gateways even if the
/// lab has no session of iSCSI: hosts may use SRP or Fibre Channel, or there may be no workload.
pub(super) fn has_gateways(lab: &Lab) -> bool {
    !lab.live.gateways.is_empty() || san::gateways(lab).next().is_some()
}

/// Work of one gateway since the end of the warm-up.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct GatewayCount {
    /// Commands that the gateway ended and issued again.
    pub conventional: u64,
    /// Commands that it forwarded PDU by PDU.
    pub forwarded: u64,
    /// Commands that it ended early.
    pub recalled: u64,
    /// Commands that it answered with ABORTED COMMAND.
    pub aborted: u64,
    /// Unit attentions that it reported to hosts.
    pub attentions: u64,
    /// Logouts of virtual N_Ports, because their host was lost.
    pub logouts: u64,
    /// Sessions and channels that it ended for want of a path.
    pub ended_sessions: u64,
    /// Busy share of the processor.
    pub busy: f64,
}

/// All gateways of a lab.
#[derive(Default)]
pub(super) struct Switches {
    switches: BTreeMap<u16, Switch>,
    /// Number of the first session with a back end; those of hosts have lower numbers.
    first: u32,
    /// Switch of each session from `first` on.
    owners: Vec<u16>,
    pub orders: VecDeque<(u32, Order)>,
    pub relay_orders: VecDeque<RelayOrder>,
    pub gateway_orders: VecDeque<GatewayOrder>,
    /// Commands that have ended: switch, session, tag and status.
    pub ended: VecDeque<(u16, u16, IoTag, IoStatus)>,
    /// Read data for hosts: switch, session, tag and number of bytes.
    pub passed: VecDeque<(u16, u16, IoTag, u32)>,
    /// Timer of the network for requests that wait.
    timer: u32,
}

impl Switches {
    /// Returns the gateways of a lab. Their sessions are numbered from `first` on. `nport` returns
    /// the N_Port of a port name.
    pub fn new(lab: &Lab, first: u32, timer: u32, nport: &dyn Fn(Wwpn) -> Option<u16>) -> Switches {
        let sessions = sessions(lab);
        let owners: Vec<u16> = sessions.iter().map(|session| session.switch).collect();
        let number = |switch: u16, storage: u16| {
            let at = sessions.iter().position(|session| (session.switch, session.storage) == (switch, storage));
            at.map(|at| first + at as u32)
        };
        let build = |switch: u16| (switch, Switch::new(lab, switch, |storage| number(switch, storage), nport));
        let switches = san::gateways(lab).map(build).collect();
        Switches { switches, first, owners, timer, ..Switches::default() }
    }

    /// Returns whether a session leads to a back end.
    pub fn owns(&self, session: u32) -> bool {
        session >= self.first && ((session - self.first) as usize) < self.owners.len()
    }

    /// Returns the virtual disks of a switch, and the one behind each unit.
    pub fn volumes(&mut self, storage: u16) -> Option<(&mut Volumes, &[Option<VolumeId>])> {
        let switch = self.switches.get_mut(&storage)?;
        Some((&mut switch.volumes, &switch.units))
    }

    /// Gives the processor of a switch the work of forwarded PDUs, and continues commands that
    /// waited for forwarded ones.
    pub fn forwarded(&mut self, net: &mut Net, storage: u16, pdus: u64, bytes: u64) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        if pdus > 0 {
            let cost = switch.gateway.cost;
            switch.owed_ps += cost.of_pdu(bytes).0 + (pdus - 1) * cost.per_pdu.0;
        }
        self.drain(net, storage);
    }

    /// Returns the time at which the processor of a gateway has done its work.
    pub fn work(&mut self, storage: u16, now_ps: u64) -> u64 {
        let Some(switch) = self.switches.get_mut(&storage) else { return now_ps };
        match std::mem::take(&mut switch.owed_ps) {
            0 => now_ps,
            owed_ps => switch.processor.occupy(now_ps, owed_ps),
        }
    }

    /// Restarts the counters at the end of the warm-up. `forwarded` returns the commands that a
    /// switch has forwarded so far, and `attentions` its unit attentions.
    pub fn restart(&mut self, now_ps: u64, forwarded: impl Fn(u16) -> u64, attentions: impl Fn(u16) -> u64) {
        for (storage, switch) in &mut self.switches {
            switch.forwarded_before = forwarded(*storage);
            switch.attentions_before = attentions(*storage);
            (switch.commands, switch.recalled, switch.aborted) = (0, 0, 0);
            (switch.logouts, switch.ended_sessions) = (0, 0);
            switch.processor.restart(now_ps);
        }
    }

    /// Returns the work of a gateway; `None` for another storage system.
    pub fn count(&self, storage: u16, now_ps: u64, [forwarded, attentions]: [u64; 2]) -> Option<GatewayCount> {
        let switch = self.switches.get(&storage)?;
        Some(GatewayCount {
            conventional: switch.commands,
            forwarded: forwarded - switch.forwarded_before,
            recalled: switch.recalled,
            aborted: switch.aborted,
            attentions: attentions - switch.attentions_before,
            logouts: switch.logouts,
            ended_sessions: switch.ended_sessions,
            busy: switch.processor.utilisation(now_ps),
        })
    }

    /// Takes note of a command that has reached the controller of a switch.
    pub fn arrive(&mut self, storage: u16, owner: u16, io: &Io) {
        if let Some(switch) = self.switches.get_mut(&storage) {
            switch.arrived.insert((owner, io.tag), (*io, false));
        }
    }

    /// Takes note of write data that have arrived before their command is complete.
    pub fn data_arrived(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag, bytes: u32) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let key = (owner, tag);
        let number = switch.by_task.get(&key).copied();
        // The controller may have refused the command, or its job may have ended.
        if number.is_some() || switch.arrived.contains_key(&key) {
            let before = switch.data.insert(key, bytes);
            if before == Some(bytes) {
                return;
            }
        }
        let Some(number) = number else { return };
        let pieces = switch.jobs.get(&number).map_or(&[][..], |job| &job.pieces);
        for Piece { at, tag, .. } in pieces {
            if let Some(nport) = switch.requests.get(tag).and_then(|pending| switch.nport_of(pending)) {
                let number = relayed(storage, *tag);
                self.relay_orders.push_back(RelayOrder::Arrived { nport, number, bytes: bytes.saturating_sub(*at) });
            }
        }
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Forgets a command that has left the controller of a switch without a result.
    pub fn cancel(&mut self, storage: u16, owner: u16, tag: IoTag) {
        if let Some(switch) = self.switches.get_mut(&storage) {
            switch.arrived.remove(&(owner, tag));
            switch.data.remove(&(owner, tag));
        }
    }

    /// Ends the requests of a command early, because its task was aborted or its host is lost.
    pub fn recall(&mut self, net: &mut Net, storage: u16, owner: u16, tag: IoTag) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let Some(&job) = switch.by_task.get(&(owner, tag)) else {
            // The command ends without a request when it leaves the controller.
            if let Some((_, is_recalled)) = switch.arrived.get_mut(&(owner, tag)) {
                switch.recalled += u64::from(!std::mem::replace(is_recalled, true));
            }
            return;
        };
        switch.recalled += 1;
        if let Some(job) = switch.jobs.get_mut(&job) {
            switch.recalled_jobs += usize::from(!std::mem::replace(&mut job.is_recalled, true));
        }
        for tag in switch.requests_of(job) {
            let Some(pending) = switch.requests.get_mut(&tag) else { continue };
            pending.until_ps = Some(0);
            let pending = *pending;
            if let Some(nport) = switch.nport_of(&pending) {
                self.relay_orders.push_back(RelayOrder::Abort { nport, number: relayed(storage, tag) });
            }
            // A request that waits for its path fails now.
            let waits = switch.due.iter().find(|(_, due)| *due == tag).copied();
            if let Some(entry) = waits {
                switch.due.remove(&entry);
                switch.due.insert((net.now(), tag));
            }
        }
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Starts the work of a command that the controller of a switch has processed. `peer`: the
    /// session of its host. Returns false if the storage system is no switch, or the command has
    /// failed there.
    pub fn begin(&mut self, net: &mut Net, storage: u16, ended: &Ended, peer: Option<Peer>) -> bool {
        let Some(switch) = self.switches.get_mut(&storage) else { return false };
        let key = (ended.nport, ended.tag);
        let Some((io, is_recalled)) = switch.arrived.remove(&key) else { return false };
        if ended.status != IoStatus::Good {
            switch.data.remove(&key);
            return false;
        }
        if is_recalled || !switch.has_unit(io.unit) {
            switch.data.remove(&key);
            let status = match is_recalled {
                true => IoStatus::Busy,
                // The pool has no room for the volume.
                false => IoStatus::Failed { key: SenseKey::NOT_READY, code: SenseCode::COMMUNICATION_FAILURE },
            };
            self.ended.push_back((storage, ended.nport, ended.tag, status));
            return true;
        }
        let host = peer.map(|peer| peer.host);
        let segment = peer.map_or(u32::MAX, |peer| peer.segment_bytes);
        let grain = switch.gateway.grain.bytes(segment, switch.frame_bytes);
        switch.next_job += 1;
        switch.commands += 1;
        let number = switch.next_job;
        let pieces = switch.spare.pop().unwrap_or_default();
        let job = Job { owner: ended.nport, io, host, grain, pieces, passed: 0, is_recalled };
        switch.jobs.insert(number, job);
        switch.by_task.insert(key, number);
        let cost = switch.gateway.cost.of_command(io.bytes.into());
        let at_ps = if cost.0 == 0 { net.now() } else { switch.processor.occupy(net.now(), cost.0) };
        if at_ps > net.now() {
            switch.prepared.insert((at_ps, number));
            net.set_timer_earlier(self.timer, at_ps);
        } else {
            self.start(net, storage, number);
        }
        true
    }

    /// Sets the timer if results or data wait for it.
    pub fn wake(&self, net: &mut Net) {
        if !(self.ended.is_empty() && self.passed.is_empty()) {
            net.set_timer_earlier(self.timer, net.now());
        }
    }

    /// Starts a job that the processor has prepared.
    fn start(&mut self, net: &mut Net, storage: u16, number: u64) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let Some(job) = switch.jobs.get(&number) else { return };
        // A write of a lost session of the host must not take effect after one of its next session.
        if job.is_recalled || switch.waits_for_orphan(job) {
            return self.finish(storage, number, IoStatus::Busy);
        }
        let Io { unit, op, lba, blocks, bytes, fua, .. } = job.io;
        match switch.volume(unit) {
            Some(volume) => {
                switch.volumes.submit(number, VolumeIo { volume, op, lba, blocks, bytes, fua });
            }
            None => {
                let op = match op {
                    IoOp::Read => Op::Read,
                    IoOp::Write => Op::Write,
                    IoOp::Flush => Op::Flush,
                    // The gateway answers other commands itself.
                    _ => return self.finish(storage, number, IoStatus::Good),
                };
                switch.next_request += 1;
                let tag = switch.next_request;
                let request = Request { tag, op, lba, blocks, fua };
                self.send(net, storage, number, (LunId(unit), request), Some(0));
            }
        }
        self.drain(net, storage);
    }

    /// Sends a request. `at` is the offset of its data in those of the job.
    fn send(&mut self, net: &mut Net, storage: u16, job: u64, (lun, request): (LunId, Request), at: Option<u32>) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let bytes = request.blocks * switch.luns[usize::from(lun.0)].block_bytes;
        switch
            .requests
            .insert(request.tag, Pending { job, lun, request, at, until_ps: None, path: None, lost_paths: 0 });
        if let (Some(at), Some(job)) = (at, switch.jobs.get_mut(&job)) {
            let place = job.pieces.partition_point(|piece| piece.at < at);
            job.pieces.insert(place, Piece { at, bytes, tag: request.tag, arrived: 0 });
        }
        switch.choose_path(net.now(), request.tag);
        self.order(storage, request.tag);
        net.set_timer_earlier(self.timer, net.now());
    }

    /// Executes the outputs of the volumes of a switch.
    fn drain(&mut self, net: &mut Net, storage: u16) {
        while let Some(switch) = self.switches.get_mut(&storage)
            && let Some(output) = switch.volumes.poll_output()
        {
            match output {
                Output::Request { lun, request, job, buffer, at } => {
                    let at = (buffer == Buffer::Data && matches!(request.op, Op::Read | Op::Write)).then_some(at);
                    self.send(net, storage, job, (lun, request), at);
                }
                // Payload does not exist, so nothing differs.
                Output::Repeat { .. } => {}
                Output::Compare { job, .. } => switch.volumes.compared(job, None),
                Output::Done { job, status } => self.finish(storage, job, status),
            }
        }
    }

    /// Ends a job.
    fn finish(&mut self, storage: u16, number: u64, status: IoStatus) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let Some(mut job) = switch.jobs.remove(&number) else { return };
        switch.recalled_jobs -= usize::from(job.is_recalled);
        job.pieces.clear();
        switch.spare.push(job.pieces);
        let key = (job.owner, job.io.tag);
        switch.by_task.remove(&key);
        switch.data.remove(&key);
        self.ended.push_back((storage, job.owner, job.io.tag, status));
    }

    /// Handles a change of a session with a back end.
    pub fn event(&mut self, net: &mut Net, event: Event) {
        let (Event::Up(session) | Event::Down(session) | Event::Done { session, .. }) = event;
        let storage = self.owners[(session - self.first) as usize];
        match event {
            Event::Down(_) => {}
            Event::Up(_) => {
                self.repeat(net.now(), storage, |switch, lun| {
                    matches!(switch.luns[usize::from(lun.0)].route, Some(Route::Session(own)) if own == session)
                });
            }
            Event::Done { tag, outcome, .. } => self.answered(net, storage, tag & !AGAIN, outcome),
        }
    }

    /// Sends requests that wait for their path again.
    fn repeat(&mut self, now_ps: u64, storage: u16, waits: impl Fn(&Switch, LunId) -> bool) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let again: Vec<u64> = switch.due.iter().map(|(_, tag)| *tag).collect();
        let waits =
            |switch: &Switch, tag: &u64| switch.requests.get(tag).is_some_and(|pending| waits(switch, pending.lun));
        let again: Vec<u64> = again.into_iter().filter(|tag| waits(switch, tag)).collect();
        switch.due.retain(|(_, tag)| !again.contains(tag));
        again.iter().for_each(|tag| switch.choose_path(now_ps, *tag));
        again.into_iter().for_each(|tag| self.order(storage, tag));
    }

    /// Handles a report of the N_Ports of gateways.
    pub fn relayed(&mut self, net: &mut Net, report: Relayed) {
        match report {
            Relayed::Done { number, outcome } => {
                let (storage, tag) = request_of(number);
                self.answered(net, storage, tag, outcome);
            }
            Relayed::Data { number, bytes } => {
                let (storage, tag) = request_of(number);
                self.read_data(net, storage, tag, bytes);
            }
            Relayed::Up { nport, target } => {
                let storage: Vec<u16> = self.switches.keys().copied().collect();
                for storage in storage {
                    self.path_changed(net.now(), storage, (nport, target), true);
                    self.repeat(net.now(), storage, |switch, lun| switch.paths.has(lun, (nport, target)));
                }
            }
            Relayed::Down { nport, target } => {
                let storage: Vec<u16> = self.switches.keys().copied().collect();
                for storage in storage {
                    self.path_changed(net.now(), storage, (nport, target), false);
                }
                net.set_timer_earlier(self.timer, net.now());
            }
        }
    }

    fn path_changed(&mut self, now_ps: u64, storage: u16, (nport, target): (u16, Wwpn), is_up: bool) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        for host in switch.paths.changed(now_ps, nport, target, is_up) {
            self.paths_returned(storage, host);
        }
    }

    /// Passes read data to the host, as far as they have arrived without a gap.
    fn read_data(&mut self, net: &mut Net, storage: u16, tag: u64, bytes: u32) {
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let Some(&Pending { job: number, at: Some(at), .. }) = switch.requests.get(&tag) else { return };
        let Some(job) = switch.jobs.get_mut(&number) else { return };
        job.arrived(at, bytes);
        if let Some(bytes) = job.take_passable() {
            self.passed.push_back((storage, job.owner, job.io.tag, bytes));
            net.set_timer_earlier(self.timer, net.now());
        }
    }

    /// Handles the result of a request.
    fn answered(&mut self, net: &mut Net, storage: u16, tag: u64, outcome: Outcome) {
        let now = net.now();
        let Some(switch) = self.switches.get_mut(&storage) else { return };
        let is_through = switch.gateway.through.is_some();
        let Some(pending) = switch.requests.get_mut(&tag) else { return };
        let (number, at, lun) = (pending.job, pending.at, pending.lun);
        let was_sent = pending.path.is_some_and(|(chosen, _)| chosen.is_up());
        if switch.fails_over(now, tag, outcome) {
            self.order(storage, tag);
            return net.set_timer_earlier(self.timer, now);
        }
        let Some(pending) = switch.requests.get_mut(&tag) else { return };
        if is_through {
            switch.requests.remove(&tag);
            let status = status_through(outcome, was_sent);
            let is_recalled = switch.jobs.get(&number).is_some_and(|job| job.is_recalled);
            switch.aborted += u64::from(is_aborted(status) && !is_recalled);
            net.set_timer_earlier(self.timer, now);
            return self.finish(storage, number, status);
        }
        let retry_ps = switch.luns[usize::from(lun.0)].retry_ps;
        let result = match outcome {
            Outcome::Completed { status: status::GOOD, .. } => Ok(Done::All),
            Outcome::Completed { status, .. } if !matches!(status, status::BUSY | status::TASK_SET_FULL) => {
                Err(Error { kind: ErrorKind::Medium, sense: None })
            }
            _ if pending.until_ps.is_some_and(|until_ps| until_ps <= now) => {
                Err(Error { kind: ErrorKind::PathLost, sense: None })
            }
            Outcome::Completed { .. } | Outcome::Aborted(_) | Outcome::PortGone => {
                let until_ps = *pending.until_ps.get_or_insert(now.saturating_add(retry_ps));
                let at_ps = if outcome == Outcome::PortGone { until_ps } else { now + RETRY_PS };
                switch.due.insert((at_ps, tag));
                return net.set_timer_earlier(self.timer, at_ps);
            }
        };
        switch.requests.remove(&tag);
        if let (Some(at), Ok(_), Some(job)) = (at, &result, switch.jobs.get_mut(&number)) {
            job.arrived(at, u32::MAX);
        }
        switch.volumes.ended(tag, result);
        self.drain(net, storage);
    }

    /// Sends requests again that are due, or fails them, and starts jobs that are prepared.
    pub fn timer_expired(&mut self, net: &mut Net) {
        let now = net.now();
        let mut from = 0;
        while let Some((&storage, _)) = self.switches.range(from..).next() {
            from = storage + 1;
            while let Some(switch) = self.switches.get_mut(&storage)
                && let Some(&(at_ps, job)) = switch.prepared.first().filter(|(at_ps, _)| *at_ps <= now)
            {
                switch.prepared.remove(&(at_ps, job));
                self.start(net, storage, job);
            }
            while let Some(switch) = self.switches.get_mut(&storage)
                && let Some(&(at_ps, tag)) = switch.due.first().filter(|(at_ps, _)| *at_ps <= now)
            {
                switch.due.remove(&(at_ps, tag));
                switch.choose_path(now, tag);
                self.order(storage, tag);
            }
            let logout_ps = self.log_out_lost(now, storage);
            let limit_ps = self.end_sessions(now, storage);
            let Some(switch) = self.switches.get(&storage) else { continue };
            let next = [switch.due.first(), switch.prepared.first()].into_iter().flatten().map(|(at_ps, _)| *at_ps);
            if let Some(at_ps) = next.chain(limit_ps).chain(logout_ps).min() {
                net.set_timer_earlier(self.timer, at_ps);
            }
        }
    }

    /// Sends a request.
    fn order(&mut self, storage: u16, tag: u64) {
        let Some(switch) = self.switches.get(&storage) else { return };
        let Some((pending, command)) = switch.command(tag) else { return };
        match switch.luns[usize::from(pending.lun.0)].route {
            // No extent is at a back end that is not reached, so no request goes there.
            None => {}
            Some(Route::Session(session)) => self.orders.push_back((session, Order::Submit(command))),
            Some(Route::Fabric | Route::Array) => {
                let target = pending.path.map(|(chosen, _)| chosen.target);
                let job = switch.jobs.get(&pending.job);
                let arrived = job.and_then(|job| switch.data.get(&(job.owner, job.io.tag)).copied());
                // Without a report, all data of a write have arrived with its command.
                let arrived = arrived.zip(pending.at).map_or(u32::MAX, |(bytes, at)| bytes.saturating_sub(at));
                let Command { lun, cdb, direction, bytes, .. } = command;
                self.relay_orders.push_back(RelayOrder::Submit(RelayCommand {
                    number: relayed(storage, tag),
                    // Without a path, no N_Port has the command, which ends as after the loss of
                    // one.
                    nport: switch.nport_of(pending).unwrap_or(u16::MAX),
                    target: target.unwrap_or_default(),
                    lun,
                    cdb,
                    direction,
                    bytes,
                    grain: job.and_then(|job| job.grain).filter(|_| pending.at.is_some()),
                    arrived,
                }));
            }
        }
    }
}

/// Returns the number of the relayed command of a request.
fn relayed(storage: u16, tag: u64) -> u64 {
    u64::from(storage) << TAG_BITS | tag
}

/// Returns the storage system and the tag of the request of a relayed command.
fn request_of(number: u64) -> (u16, u64) {
    ((number >> TAG_BITS) as u16, number & ((1 << TAG_BITS) - 1))
}

/// Returns the work of a gateway; `None` for another storage system.
pub fn gateway_count(world: &World, storage: u16) -> Option<GatewayCount> {
    let forwarded = world.iscsi.as_ref().map_or(0, |iscsi| iscsi.forwarded(storage));
    let attentions = world.storage.systems[usize::from(storage)].device.reported_attentions();
    world.switches.as_ref()?.count(storage, world.net.now(), [forwarded, attentions])
}

/// Restarts the counters of gateways at the end of the warm-up.
pub(super) fn restart(world: &mut World) {
    let World { switches, iscsi, net, storage: all, .. } = world;
    if let Some(switches) = switches {
        let forwarded = |storage| iscsi.as_ref().map_or(0, |iscsi| iscsi.forwarded(storage));
        let attentions = |storage| all.systems[usize::from(storage)].device.reported_attentions();
        switches.restart(net.now(), forwarded, attentions);
    }
}
