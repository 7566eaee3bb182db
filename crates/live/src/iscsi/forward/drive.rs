//! Forwarding part of a host's connection: moves bytes between its own socket and those of back
//! ends, as [`Mover`](sanloom_scsi::iscsi::forward::Mover) requests.

use super::{Forwarding, Up};
use crate::iscsi::connection::{Connection, Machine};
use crate::iscsi::{Context, Stores};
use crate::session::buffers::Spare;
use crate::session::{Arrived, Egress};
use crate::storage::StorageSystem;
use sanloom_scsi::iscsi::forward::mover::{Outlet, Output, Piece, RunContext, Stop};
use sanloom_scsi::iscsi::forward::{CloseReason, Conn, Switch};
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::scsi::IoTag;
use std::io;
use std::mem;
use std::sync::Arc;

/// Maximum reads from one back end per step.
const MAX_READS: usize = 16;
/// Bytes for the host up to this number are copied into the output queue of the session, so that
/// both leave with one system call.
const COPIED_BYTES: usize = 4 << 10;
/// A buffer is kept if at least this share of it (1/4) is unsent. Otherwise the unsent bytes are
/// copied, so that buffers never hold many times the unsent bytes.
const KEPT_SHARE: usize = 4;

impl Connection {
    /// Calls `run` with the state of the forwarding path, if the session has one.
    fn with_forward<R>(
        &mut self,
        stores: &mut Stores<'_>,
        run: impl FnOnce(&mut Forwarding, &mut Switch<'_>, &mut Statuses) -> R,
    ) -> Option<R> {
        let Machine::Full(session) = &mut self.machine else { return None };
        let forwarding = self.forwarding.as_deref_mut()?;
        let StorageSystem { device, disks, .. } = stores.systems.get_mut(self.behind?.system)?;
        let volumes = stores.volumes.as_deref_mut()?.volumes_mut();
        let mut switch = Switch { session, device, volumes, disks };
        // Both paths take their StatSN from this counter.
        let statuses = self.transport.egress.statuses()?;
        Some(run(forwarding, &mut switch, statuses))
    }

    /// Returns whether a PDU of a back end is half sent to the host.
    pub(in crate::iscsi) fn is_open(&self) -> bool {
        self.forwarding.as_ref().is_some_and(|forwarding| forwarding.mover.is_open(Conn::Host).is_some())
    }

    /// Reads once from the host. Returns whether the socket may have more.
    pub(in crate::iscsi) fn read_forwarding(&mut self, cx: &mut Context<'_, '_>, input: &mut [u8]) -> io::Result<bool> {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return Ok(false) };
        let Some(arrived) = forwarding.rest.read(&mut self.transport.stream, input)? else { return Ok(false) };
        let used = self.follow(cx, Conn::Host, &mut input[..arrived.bytes]);
        if let Some(forwarding) = self.forwarding.as_deref_mut() {
            forwarding.rest.keep(&input[used..arrived.bytes]);
        }
        Ok(arrived.is_full)
    }

    /// Passes input of a connection to the mover. Returns the number of consumed bytes.
    fn follow(&mut self, cx: &mut Context<'_, '_>, from: Conn, input: &mut [u8]) -> usize {
        let mut at = 0;
        while !self.is_leaving() {
            let now = cx.now;
            let stop = self.with_forward(&mut cx.lock().stores, |forwarding, switch, statuses| {
                let Forwarding { forward, mover, out, .. } = forwarding;
                let outlet = Outlet { output: out, statuses };
                mover.run(&mut RunContext { now, forward, switch, outlet }, from, input, &mut at)
            });
            match stop {
                None | Some(Stop::More) => break,
                Some(Stop::Blocked) => {
                    if let (Conn::Back(back), Some(forwarding)) = (from, self.forwarding.as_deref_mut()) {
                        forwarding.links[usize::from(back)].stalled = true;
                    }
                    break;
                }
                Some(Stop::Session) => {
                    self.emit_to_host(cx, input);
                    self.drain(cx);
                }
                Some(Stop::Conventional(range)) => {
                    self.emit_to_host(cx, input);
                    self.receive(cx, &input[range]);
                }
                Some(Stop::HeaderDigest) => {
                    tracing::warn!(connection = self.id, ?from, "wrong header digest");
                    match (from, self.forwarding.as_deref_mut()) {
                        (Conn::Back(back), Some(forwarding)) => {
                            forwarding.failed.push((back.into(), "wrong header digest".to_owned()));
                        }
                        _ => self.close_when_sent(),
                    }
                    break;
                }
            }
        }
        self.emit(cx, input);
        self.drain_device(cx);
        at
    }

    /// Sends the mover's bytes for the host, or queues them before the outputs of the session.
    fn emit_to_host(&mut self, cx: &mut Context<'_, '_>, input: &[u8]) {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
        let to_host = &mut forwarding.out.to_host;
        match to_host.iter().map(Piece::len).sum::<usize>() {
            0 => return,
            1..=COPIED_BYTES => {
                let bytes: Vec<&[u8]> = to_host.iter().map(|piece| piece.bytes(input)).collect();
                self.transport.egress.push_bytes(bytes.concat().into());
            }
            _ => {
                self.broken |= self
                    .transport
                    .egress
                    .send(&mut self.transport.stream, to_host, input, &mut cx.local.buffers)
                    .is_err()
            }
        }
        to_host.clear();
    }

    /// Sends the mover's output and drops lost back ends. `input`: the bytes that the mover has
    /// processed.
    pub(in crate::iscsi) fn emit(&mut self, cx: &mut Context<'_, '_>, input: &[u8]) {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
        if forwarding.is_idle() {
            return;
        }
        let Output { to_host, to_backs, closes } = &mut forwarding.out;
        if !to_host.is_empty() {
            self.broken |=
                self.transport.egress.send(&mut self.transport.stream, to_host, input, &mut cx.local.buffers).is_err();
            to_host.clear();
        }
        for (number, (link, pieces)) in forwarding.links.iter_mut().zip(to_backs).enumerate() {
            if !pieces.is_empty()
                && let Err(error) = link.send(pieces, input, &mut cx.local.buffers)
            {
                forwarding.failed.push((number, error.to_string()));
            }
            pieces.clear();
        }
        for (conn, reason) in closes.drain(..) {
            match conn {
                Conn::Back(back) => {
                    if reason == CloseReason::Changed
                        && let Some(engine) = cx.lock().stores.volumes.as_deref_mut()
                    {
                        engine.doubt(cx.now, back.into(), true);
                    }
                    forwarding.failed.push((back.into(), reason.to_string()));
                }
                Conn::Host => self.broken = true,
            }
        }
        while let Some((back, why)) = self.forwarding.as_deref_mut().and_then(|forwarding| forwarding.failed.pop()) {
            self.lose_back(cx, back, &why);
        }
    }

    /// Ends the sessions with back ends in `refused`, because a LUN is another disk than before.
    /// Returns whether there was one.
    pub(in crate::iscsi) fn leave_back_ends(&mut self, cx: &mut Context<'_, '_>, refused: &[usize]) -> bool {
        let mut left = false;
        for back in refused {
            if self.forwarding.as_deref().is_some_and(|forwarding| forwarding.is_up(*back)) {
                left = true;
                self.lose_back(cx, *back, "a LUN of the target is another disk than before");
            }
        }
        left
    }

    /// Handles the loss of the connection to a back end.
    fn lose_back(&mut self, cx: &mut Context<'_, '_>, back: usize, why: &str) {
        let now = cx.now;
        let number = back as u8;
        let half = self.with_forward(&mut cx.lock().stores, |forwarding, switch, statuses| {
            let Forwarding { forward, mover, links, out, actions, .. } = forwarding;
            if !links[back].is_up() {
                return None;
            }
            links[back].lose(now);
            forwarding.lost += 1;
            let half = mover.disconnect(number);
            forward.disconnect(now, number, switch, actions);
            mover.execute(actions, &mut Outlet { output: out, statuses });
            Some(half)
        });
        let Some(half) = half.flatten() else { return };
        if let Some(engine) = cx.lock().stores.volumes.as_deref_mut() {
            engine.doubt(cx.now, back, false);
        }
        tracing::info!(connection = self.id, back, why, "a back-end session of a host ended");
        if half {
            // The start of the PDU has been sent, and the rest will never arrive.
            tracing::warn!(connection = self.id, peer = %self.peer, "closed: a back end was lost in the middle of a PDU for this host");
            self.broken = true;
            return;
        }
        self.drain(cx);
        self.emit(cx, &[]);
    }

    /// Aborts a forwarded task.
    pub(in crate::iscsi) fn recall(&mut self, cx: &mut Context<'_, '_>, tag: IoTag) {
        let now = cx.now;
        self.with_forward(&mut cx.lock().stores, |forwarding, switch, statuses| {
            let Forwarding { forward, mover, out, actions, .. } = forwarding;
            forward.recall(now, tag, switch, actions);
            mover.execute(actions, &mut Outlet { output: out, statuses });
        });
    }

    /// Runs the timers of back ends.
    pub(in crate::iscsi) fn forward_timeout(&mut self, cx: &mut Context<'_, '_>) {
        let now = cx.now;
        let backlog = self.unsent_bytes();
        self.with_forward(&mut cx.lock().stores, |forwarding, _, statuses| {
            let blocked: Vec<usize> =
                (0..forwarding.links.len()).filter(|link| !forwarding.may_read(*link, backlog)).collect();
            let Forwarding { forward, mover, out, actions, .. } = forwarding;
            blocked.into_iter().for_each(|link| forward.restart_timers(now, link as u8));
            forward.timeout(now, actions);
            mover.execute(actions, &mut Outlet { output: out, statuses });
        });
        self.emit(cx, &[]);
    }

    /// Processes the events of back ends. Returns whether there may be more.
    pub(in crate::iscsi) fn serve_links(&mut self, cx: &mut Context<'_, '_>) -> bool {
        self.advance_links(cx);
        for _ in 0..MAX_READS {
            let mut silent = true;
            let links = self.forwarding.as_ref().map_or(0, |forwarding| forwarding.links.len());
            for back in 0..links {
                if self.is_leaving() {
                    return false;
                }
                let unsent_bytes = self.unsent_bytes();
                let Some(forwarding) = self.forwarding.as_deref_mut() else { return false };
                let reads = forwarding.may_read(back, unsent_bytes);
                let link = &mut forwarding.links[back];
                if !link.is_up() {
                    continue;
                }
                let mut outcome = link.send(&[], &[], &mut cx.local.buffers);
                if outcome.is_ok() && !reads && link.readable {
                    outcome = link.check();
                }
                if outcome.is_ok() && reads && (link.readable || link.stalled) {
                    silent = false;
                    outcome = self.read_link(cx, back);
                }
                if let Err(error) = outcome {
                    self.lose_back(cx, back, &error.to_string());
                }
            }
            if silent {
                return false;
            }
        }
        true
    }

    /// Returns the buffer for the next read. Unsent bytes keep the current buffer, unless they are
    /// few.
    pub(in crate::iscsi) fn keep_input(&mut self, input: Vec<u8>, spare: &mut Spare) -> Vec<u8> {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return input };
        let all = || forwarding.links.iter().map(|link| &link.output).chain([&self.transport.egress]);
        let waits: usize = all().map(Egress::borrowed_bytes).sum();
        let every = forwarding.links.iter_mut().map(|link| &mut link.output).chain([&mut self.transport.egress]);
        if waits < input.len() / KEPT_SHARE {
            if waits > 0 {
                every.for_each(|output| output.copy(&input));
            }
            return input;
        }
        let len = input.len();
        let input = Arc::new(input);
        every.for_each(|output| output.keep(&input));
        let mut next = spare.take();
        next.resize(len, 0);
        next
    }

    /// Reads once from a back end, or processes again the bytes that were blocked.
    fn read_link(&mut self, cx: &mut Context<'_, '_>, back: usize) -> io::Result<()> {
        let Some(link) = self.forwarding.as_deref_mut().map(|forwarding| &mut forwarding.links[back]) else {
            return Ok(());
        };
        let mut input = mem::take(&mut cx.local.input);
        let arrived = match mem::take(&mut link.stalled) {
            true => Ok(Some(Arrived { bytes: link.rest.restore(&mut input), is_full: link.readable })),
            false => link.read(&mut input),
        };
        let bytes = match arrived {
            Ok(Some(Arrived { bytes, is_full })) => {
                link.readable = is_full;
                bytes
            }
            Ok(None) => {
                link.readable = false;
                0
            }
            Err(error) => {
                cx.local.input = input;
                return Err(error);
            }
        };
        if bytes > 0 {
            let used = self.follow(cx, Conn::Back(back as u8), &mut input[..bytes]);
            if let Some(link) = self.forwarding.as_deref_mut().map(|forwarding| &mut forwarding.links[back])
                && link.is_up()
            {
                link.rest.keep(&input[used..bytes]);
            }
        }
        cx.local.input = self.keep_input(input, &mut cx.local.buffers);
        Ok(())
    }

    /// Continues with connections that are not up.
    pub(in crate::iscsi) fn advance_links(&mut self, cx: &mut Context<'_, '_>) {
        let links = self.forwarding.as_ref().map_or(0, |forwarding| forwarding.links.len());
        for back in 0..links {
            let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
            let link = &forwarding.links[back];
            if link.is_up() || !(link.is_due(cx.now) || link.readable) {
                continue;
            }
            let mut common = cx.lock();
            let Some(engine) = common.stores.volumes.as_deref_mut() else { return };
            let Some(port) = forwarding.port(engine) else { return };
            let route = engine.route_to(back, port);
            let Some(Up { established, units }) = forwarding.links[back].advance(cx.now, &forwarding.front, route)
            else {
                forwarding.give_up(cx.now, engine);
                continue;
            };
            if !forwarding.confirm_end_of_previous(cx.now, back, engine) {
                continue;
            }
            let Forwarding { forward, mover, actions, out, .. } = forwarding;
            mover.connect(back as u8, &established.parameters);
            let fit = forward.connect(cx.now, back as u8, &established, &units, engine.volumes_mut(), actions);
            let Some(statuses) = self.transport.egress.statuses() else { return };
            mover.execute(actions, &mut Outlet { output: out, statuses });
            forwarding.logins += 1;
            drop(common);
            match fit {
                Ok(()) => tracing::debug!(connection = self.id, back, "reads and writes are forwarded"),
                Err(why) => {
                    tracing::info!(connection = self.id, back, %why, "reads and writes to this target are not forwarded")
                }
            }
            self.emit(cx, &[]);
        }
    }
}
