//! What a connection of a host does for the forwarding path: it carries bytes between its own socket and those of back ends, in the
//! order that [`Mover`](sanloom_core::iscsi::forward::Mover) says.

use super::{Forwarding, Up};
use crate::iscsi::buffers::Spare;
use crate::iscsi::connection::{Connection, Machine};
use crate::iscsi::output::Egress;
use crate::iscsi::{Shared, Stores};
use crate::storage::StorageSystem;
use sanloom_core::iscsi::forward::mover::{Output, Piece, Stop, Turn};
use sanloom_core::iscsi::forward::{CloseReason, Conn, Switch};
use sanloom_core::scsi::IoTag;
use sanloom_core::time::Instant;
use std::io::{self, Read};
use std::mem;
use std::sync::Arc;

/// Reads of back ends in one turn.
const READS_IN_TURN: usize = 16;
/// So few bytes for the host are copied behind what the session has for it, to leave with that.
const COPIED_BYTES: usize = 4 << 10;
/// Where one read of a back end brings so much, more has come while that left: looking costs less than waiting.
const BULK_BYTES: usize = 16 << 10;
/// A buffer is kept for what waits in it from this share of it on, so that what is kept is never many times what waits.
const KEPT_SHARE: usize = 4;

impl Connection {
    /// Everything that the forwarding path needs, if the session has one.
    fn with_forward<R>(
        &mut self,
        stores: &mut Stores<'_>,
        act: impl FnOnce(&mut Forwarding, &mut Switch<'_>) -> R,
    ) -> Option<R> {
        let Machine::Full(session) = &mut self.machine else { return None };
        let forwarding = self.forwarding.as_deref_mut()?;
        let StorageSystem { device, disks, .. } = stores.systems.get_mut(self.behind?.system)?;
        let volumes = stores.volumes.as_deref_mut()?.volumes_mut();
        let mut switch = Switch { session, device, volumes, disks };
        // One sequence of numbers for both paths.
        let numbers = self.output.statuses();
        if let Some(numbers) = numbers {
            *forwarding.mover.statuses() = *numbers;
        }
        let outcome = act(forwarding, &mut switch);
        *numbers = Some(*forwarding.mover.statuses());
        Some(outcome)
    }

    /// A PDU of a back end is half sent to the host.
    pub(in crate::iscsi) fn is_open(&self) -> bool {
        self.forwarding.as_ref().is_some_and(|forwarding| forwarding.mover.is_open(Conn::Host).is_some())
    }

    /// Reads once from the host. False if there was nothing, or not as much as there was room for.
    pub(in crate::iscsi) fn read_forwarding(
        &mut self,
        input: &mut [u8],
        now: Instant,
        shared: &mut Shared,
        stores: &mut Stores<'_>,
    ) -> io::Result<bool> {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return Ok(false) };
        let kept = forwarding.rest.len();
        input[..kept].copy_from_slice(&forwarding.rest);
        let got = match self.stream.read(&mut input[kept..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => got,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        forwarding.rest.clear();
        let used = self.follow(now, Conn::Host, &mut input[..kept + got], shared, stores);
        if let Some(forwarding) = self.forwarding.as_deref_mut() {
            forwarding.rest.extend_from_slice(&input[used..kept + got]);
        }
        Ok(kept + got == input.len())
    }

    /// Follows the bytes of a connection. How many were used.
    fn follow(
        &mut self,
        now: Instant,
        from: Conn,
        input: &mut [u8],
        shared: &mut Shared,
        stores: &mut Stores<'_>,
    ) -> usize {
        let mut at = 0;
        while !self.is_leaving() {
            let stop = self.with_forward(stores, |forwarding, switch| {
                let Forwarding { forward, mover, out, .. } = forwarding;
                mover.run(&mut Turn { now, forward, switch, output: out }, from, input, &mut at)
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
                    self.emit_to_host(input, shared);
                    self.drain(now, shared, stores);
                }
                Some(Stop::Conventional(range)) => {
                    self.emit_to_host(input, shared);
                    self.hear(now, &input[range], shared, stores);
                }
                Some(Stop::HeaderDigest) => {
                    tracing::warn!(connection = self.id, ?from, "a header digest is wrong");
                    match (from, self.forwarding.as_deref_mut()) {
                        (Conn::Back(back), Some(forwarding)) => {
                            forwarding.failed.push((back.into(), "a header digest is wrong".to_owned()));
                        }
                        _ => self.close_when_sent(),
                    }
                    break;
                }
            }
        }
        self.emit(now, input, shared, stores);
        self.settle_device(now, stores);
        at
    }

    /// What goes to the host leaves, or stands before what the session has for it.
    fn emit_to_host(&mut self, input: &[u8], shared: &mut Shared) {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
        let to_host = &mut forwarding.out.to_host;
        match to_host.iter().map(Piece::len).sum::<usize>() {
            0 => return,
            1..=COPIED_BYTES => {
                let bytes: Vec<&[u8]> = to_host.iter().map(|piece| piece.bytes(input)).collect();
                self.output.push_bytes(bytes.concat().into());
            }
            _ => self.broken |= self.output.send(&mut self.stream, to_host, input, &mut shared.buffers).is_err(),
        }
        to_host.clear();
    }

    /// What is to leave leaves, and back ends that are lost are left. `input`: the bytes that were followed.
    pub(in crate::iscsi) fn emit(&mut self, now: Instant, input: &[u8], shared: &mut Shared, stores: &mut Stores<'_>) {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
        if forwarding.is_silent() {
            return;
        }
        let Output { to_host, to_backs, closes } = &mut forwarding.out;
        if !to_host.is_empty() {
            self.broken |= self.output.send(&mut self.stream, to_host, input, &mut shared.buffers).is_err();
            to_host.clear();
        }
        for (number, (link, pieces)) in forwarding.links.iter_mut().zip(to_backs).enumerate() {
            if !pieces.is_empty()
                && let Err(error) = link.send(pieces, input, &mut shared.buffers)
            {
                forwarding.failed.push((number, error.to_string()));
            }
            pieces.clear();
        }
        for (conn, reason) in closes.drain(..) {
            match conn {
                Conn::Back(back) => {
                    if let Some(engine) = stores.volumes.as_deref_mut().filter(|_| reason == CloseReason::Changed) {
                        engine.doubt(now, back.into(), true);
                    }
                    forwarding.failed.push((back.into(), reason.to_string()));
                }
                Conn::Host => self.broken = true,
            }
        }
        while let Some((back, why)) = self.forwarding.as_deref_mut().and_then(|forwarding| forwarding.failed.pop()) {
            self.lose_back(now, back, &why, shared, stores);
        }
    }

    /// Leaves back ends with a LUN that is another disk than it was. True if there was a session with one.
    pub(in crate::iscsi) fn leave_back_ends(
        &mut self,
        now: Instant,
        refused: &[usize],
        shared: &mut Shared,
        stores: &mut Stores<'_>,
    ) -> bool {
        let mut left = false;
        for back in refused {
            if self.forwarding.as_deref().is_some_and(|forwarding| forwarding.is_up(*back)) {
                left = true;
                self.lose_back(now, *back, "a LUN there is another disk than it was", shared, stores);
            }
        }
        left
    }

    /// The connection to a back end is gone.
    fn lose_back(&mut self, now: Instant, back: usize, why: &str, shared: &mut Shared, stores: &mut Stores<'_>) {
        let number = back as u8;
        let half = self.with_forward(stores, |forwarding, switch| {
            let Forwarding { forward, mover, links, out, actions, .. } = forwarding;
            if !links[back].is_up() {
                return None;
            }
            links[back].lose(now);
            forwarding.lost += 1;
            let half = mover.lost(number);
            forward.lost(now, number, switch, actions);
            mover.execute(actions, out);
            Some(half)
        });
        let Some(half) = half.flatten() else { return };
        if let Some(engine) = stores.volumes.as_deref_mut() {
            engine.doubt(now, back, false);
        }
        tracing::info!(connection = self.id, back, why, "a back-end session of a host is gone");
        if half {
            // What has left cannot be taken back, and the rest will never come.
            tracing::warn!(connection = self.id, peer = %self.peer, "closed in the middle of a PDU of a lost back end");
            self.broken = true;
            return;
        }
        self.drain(now, shared, stores);
        self.emit(now, &[], shared, stores);
    }

    /// A task is aborted that is forwarded.
    pub(in crate::iscsi) fn recall(&mut self, now: Instant, tag: IoTag, stores: &mut Stores<'_>) {
        self.with_forward(stores, |forwarding, switch| {
            let Forwarding { forward, mover, out, actions, .. } = forwarding;
            forward.recall(now, tag, switch, actions);
            mover.execute(actions, out);
        });
    }

    /// Time has passed for back ends.
    pub(in crate::iscsi) fn forward_timeout(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        let backlog = self.output.bytes;
        self.with_forward(stores, |forwarding, _| {
            let blocked: Vec<usize> =
                (0..forwarding.links.len()).filter(|link| !forwarding.may_read(*link, backlog)).collect();
            let Forwarding { forward, mover, out, actions, .. } = forwarding;
            blocked.into_iter().for_each(|link| forward.unheard(now, link as u8));
            forward.timeout(now, actions);
            mover.execute(actions, out);
        });
        self.emit(now, &[], shared, stores);
    }

    /// Serves back ends. True if there may be more.
    pub(in crate::iscsi) fn serve_links(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) -> bool {
        self.tend_links(now, shared, stores);
        for _ in 0..READS_IN_TURN {
            let mut silent = true;
            let links = self.forwarding.as_ref().map_or(0, |forwarding| forwarding.links.len());
            for back in 0..links {
                if self.is_leaving() {
                    return false;
                }
                let Some(forwarding) = self.forwarding.as_deref_mut() else { return false };
                let reads = forwarding.may_read(back, self.output.bytes);
                let link = &mut forwarding.links[back];
                if !link.is_up() {
                    continue;
                }
                let mut outcome = link.send(&[], &[], &mut shared.buffers);
                if outcome.is_ok() && !reads && link.readable {
                    outcome = link.look();
                }
                if outcome.is_ok() && reads && (link.readable || link.stalled) {
                    silent = false;
                    outcome = self.read_link(now, back, shared, stores);
                }
                if let Err(error) = outcome {
                    self.lose_back(now, back, &error.to_string(), shared, stores);
                }
            }
            if silent {
                return false;
            }
        }
        true
    }

    /// The buffer for what is read next. What waits of this one stays in it, unless it is little.
    pub(in crate::iscsi) fn keep_input(&mut self, input: Vec<u8>, spare: &mut Spare) -> Vec<u8> {
        let Some(forwarding) = self.forwarding.as_deref_mut() else { return input };
        let all = || forwarding.links.iter().map(|link| &link.output).chain([&self.output]);
        let waits: usize = all().map(Egress::borrowed_bytes).sum();
        let every = forwarding.links.iter_mut().map(|link| &mut link.output).chain([&mut self.output]);
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

    /// Reads once from a back end, or looks again at what was read.
    fn read_link(&mut self, now: Instant, back: usize, shared: &mut Shared, stores: &mut Stores<'_>) -> io::Result<()> {
        let mut input = mem::take(&mut shared.input);
        let Some(link) = self.forwarding.as_deref_mut().map(|forwarding| &mut forwarding.links[back]) else {
            return Ok(());
        };
        let kept = link.rest.len();
        input[..kept].copy_from_slice(&link.rest);
        let read = match mem::take(&mut link.stalled) {
            true => Ok(Some(0)),
            false => link.read(&mut input[kept..]),
        };
        let got = match read {
            Ok(got) => {
                let more = got.is_some_and(|got| got >= BULK_BYTES || kept + got == input.len());
                // What was only looked at again says nothing of the socket.
                link.readable = more || (got == Some(0) && link.readable);
                got.unwrap_or(0)
            }
            Err(error) => {
                shared.input = input;
                return Err(error);
            }
        };
        link.rest.clear();
        let used = self.follow(now, Conn::Back(back as u8), &mut input[..kept + got], shared, stores);
        if let Some(link) = self.forwarding.as_deref_mut().map(|forwarding| &mut forwarding.links[back])
            && link.is_up()
        {
            link.rest.extend_from_slice(&input[used..kept + got]);
        }
        shared.input = self.keep_input(input, &mut shared.buffers);
        Ok(())
    }

    /// Goes on with connections that are not up.
    pub(in crate::iscsi) fn tend_links(&mut self, now: Instant, shared: &mut Shared, stores: &mut Stores<'_>) {
        let links = self.forwarding.as_ref().map_or(0, |forwarding| forwarding.links.len());
        for back in 0..links {
            let Some(forwarding) = self.forwarding.as_deref_mut() else { return };
            let Some(engine) = stores.volumes.as_deref_mut() else { return };
            let link = &forwarding.links[back];
            if link.is_up() || !(link.is_due(now) || link.readable) {
                continue;
            }
            let Some(port) = forwarding.port(engine) else { return };
            let way = engine.way_to(back, port);
            let Some(Up { established, units }) = forwarding.links[back].tend(now, &forwarding.front, way) else {
                forwarding.give_up(now, engine);
                continue;
            };
            if !forwarding.may_settle(now, back, engine) {
                continue;
            }
            let Forwarding { forward, mover, actions, out, .. } = forwarding;
            mover.back_up(back as u8, &established.parameters);
            let fit = forward.back_up(now, back as u8, &established, &units, engine.volumes_mut(), actions);
            mover.execute(actions, out);
            forwarding.logins += 1;
            match fit {
                Ok(()) => tracing::debug!(connection = self.id, back, "reads and writes are forwarded"),
                Err(why) => tracing::info!(connection = self.id, back, %why, "nothing is forwarded there"),
            }
            self.emit(now, &[], shared, stores);
        }
    }
}
