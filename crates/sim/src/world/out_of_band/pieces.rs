//! Requests to virtual disks and their pieces.

use super::domain::Part;
use super::{Event, OutOfBand, PIECE, put_back};
use crate::host::{Member, Pushed};
use crate::workload::{Request, RequestOp};
use crate::world::Env;
use crate::world::host::{CommandEnd, Hosts, fail_request};
use crate::world::instant_of;
use sanloom_fc::config::Target;
use sanloom_scsi::map::LunBlock;
use sanloom_scsi::out_of_band::{Extent, HostId, HostOutput};

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    pub host: u16,
    pub member: Member,
    /// Pieces that have not ended.
    left: u32,
    failed: bool,
}

/// A piece of a request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    parent: usize,
    domain: usize,
    /// `None`: the piece needs no place, because it flushes a whole LUN.
    extent: Option<Extent>,
    /// Distance from the begin of the extent, in blocks.
    offset: u64,
    /// Request to a back end, once the place is known.
    request: Request,
    /// Time of the miss.
    since_ps: u64,
    /// True while the piece waits for the map.
    waits: bool,
}

impl OutOfBand {
    /// Sends the messages of a host, and collects the pieces that may continue.
    pub(super) fn drain_host(&mut self, now_ps: u64, number: usize, host: HostId) {
        while let Some(output) = self.domains[number].map(host).poll_output() {
            match output {
                HostOutput::Send(request) => self.send(now_ps, number, host, request),
                HostOutput::Go { token, place } => {
                    if let Some(piece) = self.pieces.get_mut(token as usize) {
                        let latency_ps = now_ps - piece.since_ps;
                        self.domains[number].counts.miss_latency.record_ps(latency_ps);
                        self.placed(token, place);
                    }
                }
                HostOutput::Flush { token } => self.ready.push_back(token),
                HostOutput::Fail { token } => {
                    self.domains[number].counts.unanswered += 1;
                    self.failed.push_back(token);
                }
            }
        }
        if let Some(at_ps) = self.domains[number].next_host_timeout(now_ps, host) {
            self.plan(at_ps, number, Event::HostTimeout(host));
        }
    }

    /// Completes the request of a piece whose place is known.
    fn placed(&mut self, number: u32, place: LunBlock) {
        let Some(piece) = self.pieces.get_mut(number as usize) else { return };
        let (target, block_bytes) = self.domains[piece.domain].target(place);
        piece.request.lba = place.lba + piece.offset;
        piece.request.bytes = piece.request.blocks * block_bytes;
        piece.request.lun = target;
        self.ready.push_back(number);
    }

    /// Looks the place of a piece up. Returns whether it waits for the server.
    fn access(&mut self, now_ps: u64, host: u16, number: u32) -> bool {
        let Some(piece) = self.pieces.get_mut(number as usize) else { return false };
        (piece.since_ps, piece.waits) = (now_ps, false);
        let domain = piece.domain;
        let Some(extent) = piece.extent else {
            let waits = !self.domains[domain].map(HostId(host)).flush(instant_of(now_ps), number);
            piece.waits = waits;
            match waits {
                true => self.drain_host(now_ps, domain, HostId(host)),
                false => self.ready.push_back(number),
            }
            return waits;
        };
        match self.domains[domain].access(now_ps, HostId(host), number, extent) {
            Some(place) => {
                self.placed(number, place);
                false
            }
            None => {
                piece.waits = true;
                self.drain_host(now_ps, domain, HostId(host));
                true
            }
        }
    }

    /// Ends a piece. Returns its request, and whether that has failed, if this was the last piece.
    fn end(&mut self, number: u32, good: bool) -> Option<(Member, bool)> {
        let piece = self.pieces.try_remove(number as usize)?;
        let parent = self.parents.get_mut(piece.parent)?;
        parent.left -= 1;
        parent.failed |= !good;
        if parent.left > 0 {
            return None;
        }
        let parent = self.parents.try_remove(piece.parent)?;
        Some((parent.member, parent.failed))
    }
}

/// Takes a new request if it is for a virtual disk of a metadata server.
#[inline(never)]
pub(in crate::world) fn begin(hosts: &mut Hosts, env: &mut Env<'_>, host: u16, stream: u32, request: Request) -> bool {
    let Some(mut own) = hosts.out_of_band.take_if(|own| own.owns(request.lun.storage)) else { return false };
    let now_ps = env.net.now();
    let number = own.domains.iter().position(|domain| domain.storage == request.lun.storage).unwrap_or(0);
    let mut parts = std::mem::take(&mut own.parts);
    let domain = &own.domains[number];
    let lun = request.lun.lun;
    let part_of = |extent, offset, blocks, target| Piece {
        parent: 0,
        domain: number,
        extent,
        offset,
        request: Request { lba: 0, blocks, bytes: 0, lun: target, ..request },
        since_ps: now_ps,
        waits: false,
    };
    match request.op {
        RequestOp::Flush => parts.extend(domain.back_ends(lun).into_iter().map(|target| part_of(None, 0, 0, target))),
        RequestOp::Read | RequestOp::Write => {
            let none = Target { storage: 0, lun: 0 };
            let add = |part: Part| parts.push(part_of(Some(part.extent), part.offset, part.blocks, none));
            if domain.parts(lun, request.lba, request.blocks, add).is_none() {
                parts.clear();
            }
        }
    }
    let member = Member { request, arrival_ps: now_ps, stream };
    let node = &mut hosts.nodes[usize::from(host)];
    // Pieces that wait for the server count against the limit of the queue.
    if node.held > 0 && node.queue.refuse_if_full(u64::from(node.held)) || parts.is_empty() {
        fail_request(hosts, env, host, &member);
    } else {
        let parent = own.parents.insert(Parent { host, member, left: parts.len() as u32, failed: false });
        for piece in parts.drain(..) {
            let piece = own.pieces.insert(Piece { parent, ..piece }) as u32;
            let waits = own.access(now_ps, host, piece);
            hosts.nodes[usize::from(host)].held += u32::from(waits);
        }
        queue_ready(hosts, env, &mut own);
        own.dirty.clear();
    }
    parts.clear();
    own.parts = parts;
    put_back(hosts, env, own);
    true
}

/// Queues pieces that may continue at their hosts, and fails those that may not.
pub(super) fn queue_ready(hosts: &mut Hosts, env: &mut Env<'_>, own: &mut OutOfBand) {
    let now_ps = env.net.now();
    loop {
        if let Some(number) = own.ready.pop_front() {
            let Some(piece) = own.pieces.get_mut(number as usize) else { continue };
            let (request, waited) = (piece.request, std::mem::take(&mut piece.waits));
            let Some(host) = own.parents.get_mut(piece.parent).map(|parent| parent.host) else { continue };
            let node = &mut hosts.nodes[usize::from(host)];
            node.held -= u32::from(waited);
            own.dirty.insert(host);
            match node.queue.push(request, now_ps, PIECE | number) {
                Pushed::Queued(_) | Pushed::Merged(_) => *own.queued.entry(host).or_insert(0) += 1,
                Pushed::Refused => {
                    release(own, now_ps, number);
                    own.failed.push_back(number);
                }
            }
        } else if let Some(number) = own.failed.pop_front() {
            let Some(piece) = own.pieces.get_mut(number as usize) else { continue };
            let waited = std::mem::take(&mut piece.waits);
            let Some(host) = own.parents.get_mut(piece.parent).map(|parent| parent.host) else { continue };
            hosts.nodes[usize::from(host)].held -= u32::from(waited);
            if let Some((member, _)) = own.end(number, false) {
                fail_request(hosts, env, host, &member);
            }
        } else {
            break;
        }
    }
}

/// Ends the use of the place of a piece in the map of its host.
fn release(own: &mut OutOfBand, now_ps: u64, number: u32) {
    let Some(&mut Piece { extent, domain, parent, .. }) = own.pieces.get_mut(number as usize) else { return };
    let Some(host) = own.parents.get_mut(parent).map(|parent| HostId(parent.host)) else { return };
    let map = own.domains[domain].map(host);
    match extent {
        Some(extent) => map.ended(instant_of(now_ps), extent),
        None => map.flushed(instant_of(now_ps)),
    }
    own.drain_host(now_ps, domain, host);
}

/// Replaces the pieces of a command that has ended by the requests that end with them. Requests
/// that failed before their last piece ended well are failed here.
#[inline(never)]
pub(in crate::world) fn settle(
    hosts: &mut Hosts,
    env: &mut Env<'_>,
    host: u16,
    members: &mut Vec<Member>,
    end: CommandEnd,
) {
    let Some(mut own) = hosts.out_of_band.take() else { return };
    let now_ps = env.net.now();
    members.retain_mut(|member| {
        if member.stream & PIECE == 0 {
            return true;
        }
        let number = member.stream & !PIECE;
        own.queued.entry(host).and_modify(|queued| *queued -= 1);
        let Some(&mut Piece { domain, .. }) = own.pieces.get_mut(number as usize) else { return false };
        // Only a command with a status may have been refused because of a fence.
        if end == CommandEnd::Status && own.domains[domain].server.is_fenced(HostId(host)) {
            own.domains[domain].counts.refused += 1;
            own.domains[domain].map(HostId(host)).refused(instant_of(now_ps));
            release(&mut own, now_ps, number);
            let waits = own.access(now_ps, host, number);
            hosts.nodes[usize::from(host)].held += u32::from(waits);
            return false;
        }
        release(&mut own, now_ps, number);
        let good = end == CommandEnd::Good;
        match own.end(number, good) {
            Some((request, failed)) if failed != good => {
                *member = request;
                true
            }
            Some((request, _)) => {
                fail_request(hosts, env, host, &request);
                false
            }
            None => false,
        }
    });
    queue_ready(hosts, env, &mut own);
    own.dirty.clear();
    put_back(hosts, env, own);
}
