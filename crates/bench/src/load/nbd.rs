//! Load generator for an NBD server: [`NbdLoad`], one connection to one export. Uses fixed newstyle
//! negotiation with GO, and simple replies.

use crate::load::{Course, LoadError, Served, TIME_LIMIT, Work, pattern};
use sanloom_wire::nbd::{
    BlockSizes, ClientOption, Command, Greeting, Info, InfoRequest, InfoType, OptionReply, OptionReplyBody, Request,
    SimpleReply, handshake,
};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Block sizes for servers that do not report them (NBD protocol, "Block size constraints").
const DEFAULT_SIZES: BlockSizes = BlockSizes { minimum: 512, preferred: 4096, maximum: 32 << 20 };
/// Maximum length of an option reply, in bytes.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// Target of the load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdLoadConfig {
    /// Path of the server's unix socket.
    pub socket: PathBuf,
    /// Name of the export; empty for the server's default.
    pub export: String,
}

/// A connection that generates load.
#[derive(Debug)]
pub struct NbdLoad {
    stream: BufReader<UnixStream>,
    /// Size of the export, in bytes.
    size_bytes: u64,
    sizes: BlockSizes,
    /// Header and data of the request being composed.
    request: Vec<u8>,
    answer: Vec<u8>,
    next_cookie: u64,
}

impl NbdLoad {
    /// Connects and selects the export.
    ///
    /// # Errors
    /// When no server listens, or it rejects the export.
    pub fn open(config: &NbdLoadConfig) -> Result<NbdLoad, LoadError> {
        let stream = UnixStream::connect(&config.socket)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        stream.set_write_timeout(Some(TIME_LIMIT))?;
        let mut load = NbdLoad {
            stream: BufReader::with_capacity(64 << 10, stream),
            size_bytes: 0,
            sizes: DEFAULT_SIZES,
            request: Vec::new(),
            answer: Vec::new(),
            next_cookie: 0,
        };
        load.negotiate(&config.export)?;
        Ok(load)
    }

    /// Returns the size of the export in bytes, and its block sizes.
    pub fn export(&self) -> (u64, BlockSizes) {
        (self.size_bytes, self.sizes)
    }

    fn negotiate(&mut self, export: &str) -> Result<(), LoadError> {
        let wrong =
            |error: sanloom_wire::ParseError| LoadError::Session(format!("the peer is not an NBD server: {error}"));
        let mut greeting = [0; Greeting::BYTES];
        self.stream.read_exact(&mut greeting).map_err(silent)?;
        let Greeting { flags } = Greeting::parse(&greeting).map_err(wrong)?;
        let flags = u32::from(flags & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES));
        let mut out = flags.to_be_bytes().to_vec();
        let wanted = vec![InfoType::BLOCK_SIZE];
        ClientOption::Go(InfoRequest { export: export.into(), wanted }).emit(&mut out);
        self.stream.get_mut().write_all(&out)?;
        loop {
            let mut reply = vec![0; OptionReply::HEAD_BYTES];
            self.stream.read_exact(&mut reply).map_err(silent)?;
            let more = u32::from_be_bytes([reply[16], reply[17], reply[18], reply[19]]) as usize;
            if more > MAX_REPLY_BYTES {
                return Err(LoadError::Session("an answer of the server is too long".to_owned()));
            }
            reply.resize(OptionReply::HEAD_BYTES + more, 0);
            self.stream.read_exact(&mut reply[OptionReply::HEAD_BYTES..]).map_err(silent)?;
            match OptionReply::parse(&reply).map_err(wrong)?.0.body {
                OptionReplyBody::Ack => return Ok(()),
                OptionReplyBody::Info(Info::Export { size_bytes, .. }) => self.size_bytes = size_bytes,
                OptionReplyBody::Info(Info::BlockSize(sizes)) => self.sizes = sizes,
                OptionReplyBody::Error { code, message } => {
                    return Err(LoadError::Session(format!(
                        "the server rejects the export `{export}`: {code} {message}"
                    )));
                }
                _ => {}
            }
        }
    }

    /// Generates load for the given time.
    ///
    /// # Errors
    /// When the connection is lost or a request fails.
    pub fn run(&mut self, work: Work, time: Duration, seed: u64) -> Result<Served, LoadError> {
        let block_bytes = self.sizes.minimum.max(1);
        let mut course = Course::begin(work, time, seed, (self.size_bytes / u64::from(block_bytes), block_bytes))?;
        let maximum = self.sizes.maximum;
        if work.bytes > maximum {
            return Err(LoadError::Command(format!("the server accepts requests of at most {maximum} bytes")));
        }
        self.request = pattern(if work.write { work.bytes } else { 0 }).collect();
        self.request.splice(0..0, [0; Request::BYTES]);
        self.answer.resize(if work.write { 0 } else { work.bytes as usize }, 0);
        while course.goes_on() {
            while let Some(place) = course.place() {
                let cookie = self.next_cookie;
                self.next_cookie += 1;
                let command = if work.write { Command::WRITE } else { Command::READ };
                let offset_bytes = place * u64::from(work.bytes);
                let request = Request { flags: 0, command, cookie, offset_bytes, len_bytes: work.bytes };
                self.request[..Request::BYTES].copy_from_slice(&request.to_bytes());
                self.stream.get_mut().write_all(&self.request).map_err(silent)?;
                course.began(cookie);
            }
            let mut head = [0; SimpleReply::BYTES];
            self.stream.read_exact(&mut head).map_err(silent)?;
            let SimpleReply { error, cookie } =
                SimpleReply::parse(&head).map_err(|error| LoadError::Session(error.to_string()))?;
            if error.0 != 0 {
                return Err(LoadError::Command(error.to_string()));
            }
            self.stream.read_exact(&mut self.answer).map_err(silent)?;
            course.ended(cookie);
        }
        Ok(course.finish())
    }
}

/// Maps a time-out to [`LoadError::Idle`].
fn silent(error: io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LoadError::Idle,
        _ => LoadError::Connection(error),
    }
}
