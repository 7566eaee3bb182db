//! NBD client on bytes, and a driver with a RAM disk around the server's machine.

use sanloom_scsi::nbd::{Connection, Done, Export, Failure, Input, Io, IoOp, Limits, Output, Wanted};
use sanloom_scsi::time::Instant;
use sanloom_wire::nbd::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const SIZE_BYTES: u64 = 1 << 20;

pub fn export(name: &str) -> Export {
    Export {
        disk: 0,
        name: name.into(),
        description: "a disk of the test".into(),
        size_bytes: SIZE_BYTES,
        sizes: BlockSizes { minimum: 512, preferred: 4096, maximum: 256 << 10 },
        read_only: false,
        rotational: false,
        trim: true,
        allocation: true,
    }
}

/// Connection between a scripted client and a RAM disk.
pub struct Driver {
    pub connection: Connection,
    pub now: Instant,
    /// Bytes from the client that were not read yet.
    unread: Vec<u8>,
    /// Bytes sent by the server.
    pub sent: Vec<u8>,
    /// I/O that has not ended.
    pub ios: Vec<Io>,
    buffers: BTreeMap<u16, Vec<u8>>,
    pub disk: Vec<u8>,
    pub others: Vec<Output>,
}

impl Driver {
    pub fn new(exports: Vec<Export>, limits: Limits) -> Driver {
        let connection = Connection::new(Instant::ZERO, Arc::from(exports), limits);
        let mut driver = Driver {
            connection,
            now: Instant::ZERO,
            unread: Vec::new(),
            sent: Vec::new(),
            ios: Vec::new(),
            buffers: BTreeMap::new(),
            disk: vec![0; SIZE_BYTES as usize],
            others: Vec::new(),
        };
        driver.drain();
        driver
    }

    /// Opens a connection with one export, structured replies and `base:allocation`, and drops the
    /// negotiation's output.
    pub fn opened(limits: Limits) -> Driver {
        let mut driver = Driver::new(vec![export("lun0")], limits);
        driver.write(&3_u32.to_be_bytes());
        driver.option(&ClientOption::StructuredReply);
        let queries = vec![BASE_ALLOCATION.into()];
        driver.option(&ClientOption::SetMetaContext(MetaQuery { export: "lun0".into(), queries }));
        driver.option(&ClientOption::Go(InfoRequest { export: "lun0".into(), wanted: vec![] }));
        driver.sent.clear();
        assert_eq!(driver.others, [Output::Opened { export: 0 }]);
        driver.others.clear();
        driver
    }

    pub fn handle(&mut self, input: Input) {
        self.connection.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.connection.poll_output() {
            match output {
                Output::Send(bytes) => self.sent.extend_from_slice(&bytes),
                Output::Io(io) => self.ios.push(io),
                Output::Reply { tag, head, data_bytes } => {
                    self.sent.extend_from_slice(head.bytes());
                    let data = self.buffers.remove(&tag).unwrap_or_default();
                    self.sent.extend_from_slice(&data[..data_bytes as usize]);
                }
                other => self.others.push(other),
            }
        }
    }

    /// Sends bytes of the client; the server reads as many as it accepts.
    pub fn write(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        self.read();
    }

    /// Lets the server read as many bytes as it accepts.
    pub fn read(&mut self) {
        loop {
            let (wanted, needed) = match self.connection.wanted() {
                Wanted::Nothing => return,
                wanted @ Wanted::Bytes(bytes) => (wanted, bytes),
                wanted @ (Wanted::Skip(bytes) | Wanted::Data { len_bytes: bytes, .. }) => (wanted, bytes as usize),
            };
            if needed > self.unread.len() {
                return;
            }
            let bytes: Vec<u8> = self.unread.drain(..needed).collect();
            let input = match wanted {
                Wanted::Data { tag, .. } => {
                    self.buffers.insert(tag, bytes);
                    Input::Data { tag }
                }
                Wanted::Skip(_) => Input::Skipped,
                Wanted::Bytes(_) | Wanted::Nothing => self.connection.parse(&bytes),
            };
            self.handle(input);
        }
    }

    pub fn option(&mut self, option: &ClientOption) {
        let mut bytes = Vec::new();
        option.emit(&mut bytes);
        self.write(&bytes);
    }

    pub fn request(&mut self, command: Command, flags: u16, cookie: u64, offset_bytes: u64, len_bytes: u32) {
        self.write(&Request { flags, command, cookie, offset_bytes, len_bytes }.to_bytes());
    }

    /// Completes one of the open I/Os on the disk.
    pub fn finish(&mut self, index: usize) {
        let io = self.ios.remove(index);
        let done = self.execute(&io);
        self.handle(Input::IoDone { tag: io.tag, result: Ok(done) });
        self.read();
    }

    pub fn finish_all(&mut self) {
        while !self.ios.is_empty() {
            self.finish(0);
        }
    }

    pub fn fail(&mut self, error: ErrorNumber, message: &'static str) {
        let io = self.ios.remove(0);
        self.handle(Input::IoDone { tag: io.tag, result: Err(Failure { error, message: message.into() }) });
    }

    fn execute(&mut self, io: &Io) -> Done {
        let range = io.offset_bytes as usize..io.offset_bytes as usize + io.len_bytes as usize;
        match io.op {
            IoOp::Read => {
                self.buffers.insert(io.tag, self.disk[range].to_vec());
            }
            IoOp::Write => {
                let data = self.buffers.remove(&io.tag).expect("data of a write come first");
                self.disk[range].copy_from_slice(&data);
            }
            IoOp::Trim | IoOp::WriteZeroes { .. } => self.disk[range].fill(0),
            IoOp::Flush | IoOp::Cache => {}
            IoOp::Status { .. } => {
                let extents = self.disk[range].chunk_by(|a, b| (*a == 0) == (*b == 0)).map(|run| StatusExtent {
                    len_bytes: run.len() as u32,
                    flags: if run[0] == 0 { allocation::HOLE | allocation::ZERO } else { 0 },
                });
                return Done::Extents(extents.collect());
            }
        }
        Done::All
    }

    /// Bytes sent by the server since the last call, parsed as replies to options.
    pub fn option_replies(&mut self) -> Vec<OptionReplyBody> {
        let sent = std::mem::take(&mut self.sent);
        let mut rest = &sent[..];
        let mut replies = Vec::new();
        while !rest.is_empty() {
            let (reply, used) = OptionReply::parse(rest).expect("a reply to an option");
            replies.push(reply.body);
            rest = &rest[used..];
        }
        replies
    }

    /// Bytes sent by the server since the last call, parsed as replies to requests; simple replies
    /// carry no data.
    pub fn replies(&mut self) -> Vec<(u64, ChunkBody)> {
        let sent = std::mem::take(&mut self.sent);
        let mut rest = &sent[..];
        let mut replies = Vec::new();
        while !rest.is_empty() {
            if let Ok(reply) = SimpleReply::parse(rest) {
                assert_eq!(reply.error, ErrorNumber::NONE, "structured replies carry errors");
                replies.push((reply.cookie, ChunkBody::None));
                rest = &rest[SimpleReply::BYTES..];
                continue;
            }
            let (chunk, used) = Chunk::parse(rest).expect("a reply to a request");
            assert_eq!(chunk.flags, chunk_flag::DONE);
            replies.push((chunk.cookie, chunk.body));
            rest = &rest[used..];
        }
        replies
    }
}
