//! Requests and their replies ("Transmission phase").

use super::negotiation::BASE_ALLOCATION_ID;
use super::{CloseReason, Connection, Done, Export, Failure, Head, Io, IoOp, Output, State};
use sanloom_wire::nbd::{
    Chunk, ChunkBody, ChunkHeader, Command, ErrorNumber, OptionHeader, OptionReplyBody, ReplyType, Request,
    SimpleReply, StatusExtent, chunk_flag, command_flag,
};
use std::borrow::Cow;

/// Maximum number of extents in one BLOCK_STATUS reply.
const MAX_EXTENTS: usize = 4096;

/// Request that was not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    op: IoOp,
}

impl Connection {
    pub(super) fn on_request(&mut self, request: &Request) {
        self.counters.requests += 1;
        if request.command == Command::DISC {
            return self.drain(CloseReason::Client);
        }
        match self.check(request) {
            Ok(op) => {
                let tag = self.take_tag(Flight { request: *request, op });
                if request.data_bytes() > 0 {
                    self.state = State::Data(tag);
                } else {
                    self.start(tag);
                }
            }
            Err(failure) => {
                self.counters.refused_requests += 1;
                let head = self.failure(request, &failure);
                self.send(head.bytes().to_vec());
                if request.data_bytes() > 0 {
                    self.state = State::DataSkip(request.data_bytes());
                }
            }
        }
        if self.state == State::Request && self.is_full() {
            self.counters.stalls += 1;
        }
    }

    pub(super) fn on_data(&mut self, tag: u16) {
        self.state = State::Request;
        self.start(tag);
        if self.is_full() {
            self.counters.stalls += 1;
        }
    }

    fn start(&mut self, tag: u16) {
        if let Some(Flight { request, op }) = self.flight(tag).copied() {
            let Request { flags, offset_bytes, len_bytes, .. } = request;
            let fua = flags & command_flag::FUA != 0;
            self.outputs.push_back(Output::Io(Io { tag, op, offset_bytes, len_bytes, fua }));
        }
    }

    pub(super) fn on_io_done(&mut self, tag: u16, result: Result<Done, Failure>) {
        let reading = matches!(self.state, State::Data(waiting) if waiting == tag);
        let Some(Flight { request, op }) = self.flight(tag).copied().filter(|_| !reading) else {
            self.counters.protocol_errors += 1;
            return;
        };
        let (head, data_bytes) = match (op, result) {
            (_, Err(failure)) => {
                self.counters.failed_requests += 1;
                (self.failure(&request, &failure), 0)
            }
            (IoOp::Read, Ok(_)) => (self.read_head(&request), request.len_bytes),
            (IoOp::Status { one }, Ok(done)) => (self.status(&request, one, done), 0),
            _ => (simple(&request, ErrorNumber::NONE), 0),
        };
        self.release(tag);
        self.outputs.push_back(Output::Reply { tag, head, data_bytes });
        self.close_if_drained();
    }

    /// Starts a shutdown: requests in progress are answered as they end, an incomplete one is
    /// refused, and nothing more is read.
    pub(super) fn on_shutdown(&mut self) {
        const STOPS: &str = "the server stops";
        match self.state {
            State::OptionData(OptionHeader { option, .. }) | State::OptionSkip(option, _) => {
                let error = OptionReplyBody::Error { code: ReplyType::ERR_SHUTDOWN, message: STOPS.into() };
                self.reply(option, error);
            }
            State::Data(tag) => {
                if let Some(Flight { request, .. }) = self.flight(tag).copied() {
                    let head = self.failure(&request, &failed(ErrorNumber::ESHUTDOWN, STOPS));
                    self.send(head.bytes().to_vec());
                }
            }
            _ => {}
        }
        self.drain(CloseReason::Shutdown);
    }

    /// Checks a request completely; a request that passes needs no further checks.
    fn check(&self, request: &Request) -> Result<IoOp, Failure> {
        let Some(export) = self.export() else {
            return Err(failed(ErrorNumber::EINVAL, "no export chosen"));
        };
        let flag = |flag| request.flags & flag != 0;
        let (op, allowed) = match request.command {
            Command::READ => (IoOp::Read, command_flag::DF),
            Command::WRITE => (IoOp::Write, 0),
            Command::FLUSH => (IoOp::Flush, 0),
            Command::TRIM if export.trim || export.read_only => (IoOp::Trim, 0),
            Command::CACHE => (IoOp::Cache, 0),
            Command::WRITE_ZEROES => {
                (IoOp::WriteZeroes { no_hole: flag(command_flag::NO_HOLE) }, command_flag::NO_HOLE)
            }
            Command::BLOCK_STATUS if self.negotiated.has_allocation() => {
                (IoOp::Status { one: flag(command_flag::REQ_ONE) }, command_flag::REQ_ONE)
            }
            Command::BLOCK_STATUS => {
                return Err(failed(ErrorNumber::EINVAL, "no metadata context was agreed"));
            }
            _ => return Err(failed(ErrorNumber::EINVAL, "the export does not support this command")),
        };
        if request.flags & !(allowed | command_flag::FUA) != 0 {
            return Err(failed(ErrorNumber::EINVAL, "a flag that the command does not have"));
        }
        if op == IoOp::Flush {
            let whole = request.offset_bytes == 0 && request.len_bytes == 0;
            return if whole { Ok(op) } else { Err(failed(ErrorNumber::EINVAL, "a flush has no range")) };
        }
        let writes = matches!(op, IoOp::Write | IoOp::Trim | IoOp::WriteZeroes { .. });
        if writes && export.read_only {
            return Err(failed(ErrorNumber::EPERM, "the export is read-only"));
        }
        check_range(export, request, op)?;
        Ok(op)
    }

    fn read_head(&self, request: &Request) -> Head {
        if self.negotiated.structured_replies {
            Head::new(&ChunkHeader::offset_data(request.cookie, request.offset_bytes, request.len_bytes))
        } else {
            simple(request, ErrorNumber::NONE)
        }
    }

    fn status(&self, request: &Request, one: bool, done: Done) -> Head {
        let Done::Extents(mut extents) = done else {
            return self.failure(request, &failed(ErrorNumber::EIO, "the disk reported no extents"));
        };
        extents.truncate(if one { 1 } else { MAX_EXTENTS });
        // The extents must not exceed the request, and each must have at least one byte.
        let mut left = request.len_bytes;
        extents.retain_mut(|StatusExtent { len_bytes, .. }| {
            *len_bytes = (*len_bytes).min(left);
            left -= *len_bytes;
            *len_bytes > 0
        });
        if extents.is_empty() {
            return self.failure(request, &failed(ErrorNumber::EIO, "the disk reported no extents"));
        }
        chunk(request, ChunkBody::BlockStatus { context: BASE_ALLOCATION_ID, extents })
    }

    /// Builds an error reply, with the reason in words if the client supports structured replies.
    fn failure(&self, request: &Request, failure: &Failure) -> Head {
        if self.negotiated.structured_replies {
            chunk(request, ChunkBody::Error { error: failure.error, message: failure.message.as_ref().into() })
        } else {
            simple(request, failure.error)
        }
    }

    pub(super) fn flight(&self, tag: u16) -> Option<&Flight> {
        self.flights.get(usize::from(tag))?.as_ref()
    }

    fn take_tag(&mut self, flight: Flight) -> u16 {
        self.in_flight += 1;
        self.in_flight_bytes += flight.buffer_bytes();
        if let Some(tag) = self.free.pop() {
            self.flights[usize::from(tag)] = Some(flight);
            return tag;
        }
        self.flights.push(Some(flight));
        let tag = self.flights.len() - 1;
        debug_assert!(u16::try_from(tag).is_ok(), "`Limits` allow fewer requests in flight than tags exist");
        u16::try_from(tag).unwrap_or(u16::MAX)
    }

    pub(super) fn release(&mut self, tag: u16) {
        if let Some(flight) = self.flights.get_mut(usize::from(tag)).and_then(Option::take) {
            self.in_flight -= 1;
            self.in_flight_bytes -= flight.buffer_bytes();
            self.free.push(tag);
        }
    }
}

impl Flight {
    /// Size of the driver's buffer for this request, in bytes.
    fn buffer_bytes(&self) -> u64 {
        match self.op {
            IoOp::Read | IoOp::Write => self.request.len_bytes.into(),
            IoOp::Flush | IoOp::Trim | IoOp::WriteZeroes { .. } | IoOp::Cache | IoOp::Status { .. } => 0,
        }
    }
}

fn check_range(export: &Export, request: &Request, op: IoOp) -> Result<(), Failure> {
    let &Request { offset_bytes, len_bytes, .. } = request;
    if len_bytes == 0 {
        return Err(failed(ErrorNumber::EINVAL, "an empty range"));
    }
    let moves_data = matches!(op, IoOp::Read | IoOp::Write);
    if moves_data && len_bytes > export.sizes.maximum {
        let message = format!("more than the {} bytes of the largest request", export.sizes.maximum);
        return Err(failed(ErrorNumber::EINVAL, message));
    }
    let in_range = offset_bytes.checked_add(len_bytes.into()).is_some_and(|end| end <= export.size_bytes);
    if !in_range {
        let grows = matches!(op, IoOp::Write | IoOp::WriteZeroes { .. });
        let error = if grows { ErrorNumber::ENOSPC } else { ErrorNumber::EINVAL };
        return Err(failed(error, format!("beyond the export's {} bytes", export.size_bytes)));
    }
    let minimum = u64::from(export.sizes.minimum.max(1));
    if !offset_bytes.is_multiple_of(minimum) || !u64::from(len_bytes).is_multiple_of(minimum) {
        return Err(failed(ErrorNumber::EINVAL, format!("not a multiple of the block size of {minimum} bytes")));
    }
    Ok(())
}

fn failed(error: ErrorNumber, message: impl Into<Cow<'static, str>>) -> Failure {
    Failure { error, message: message.into() }
}

fn simple(request: &Request, error: ErrorNumber) -> Head {
    Head::new(&SimpleReply { error, cookie: request.cookie }.to_bytes())
}

fn chunk(request: &Request, body: ChunkBody) -> Head {
    let mut bytes = Vec::new();
    Chunk { flags: chunk_flag::DONE, cookie: request.cookie, body }.emit(&mut bytes);
    Head::new(&bytes)
}
