//! Boundaries of frames in the bytes of a connection: [`Framer`].

use sanloom_wire::fcip::{Encapsulated, HEADER_BYTES, Head, Special};

/// Maximum number of bytes that are skipped in search of a frame. A connection that needs more is
/// closed.
pub const RESYNC_LIMIT_BYTES: usize = 64 << 10;

/// Next step of a reader whose unread bytes a [`Framer`] has inspected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// At least this many unread bytes are required, counted from the first one.
    Need(usize),
    /// The first bytes are no frame; skip them and call again.
    Skip(usize),
    /// The first bytes, [`Encapsulated::encoded_len`] of them, are this frame.
    Frame(Encapsulated<'a>),
    /// The first bytes, as many as the length, are a special frame.
    Special(Special),
    /// No frame was found within [`RESYNC_LIMIT_BYTES`]: close the connection.
    Lost,
}

/// Reader of one direction of a connection.
///
/// A damaged header or delimiter ends the synchronisation (RFC 3821, section 5.6.2). Then the next
/// frame counts only if its header and its delimiters are valid and another valid header follows
/// it, because payload may resemble a header.
#[derive(Clone, Debug)]
pub struct Framer {
    synchronised: bool,
    /// Bytes skipped since the synchronisation was lost.
    skipped: usize,
    losses: u64,
    skipped_total: u64,
}

impl Default for Framer {
    fn default() -> Framer {
        Framer::new()
    }
}

impl Framer {
    /// A reader at the start of a connection.
    pub const fn new() -> Framer {
        Framer { synchronised: true, skipped: 0, losses: 0, skipped_total: 0 }
    }

    /// Number of times that the synchronisation was lost.
    pub const fn losses(&self) -> u64 {
        self.losses
    }

    /// Bytes skipped in search of frames.
    pub const fn skipped_bytes(&self) -> u64 {
        self.skipped_total
    }

    /// Inspects the unread bytes. The caller skips as many bytes as the step says.
    pub fn next<'a>(&mut self, unread: &'a [u8]) -> Step<'a> {
        if self.synchronised {
            match unit(unread) {
                Unit::Short(needed) => return Step::Need(needed),
                Unit::Frame(frame) => return Step::Frame(frame),
                Unit::Special(special) => return Step::Special(special),
                Unit::Bad => {
                    self.synchronised = false;
                    self.losses += 1;
                    self.skipped = 0;
                    return self.skip(1);
                }
            }
        }
        self.search(unread)
    }

    fn skip(&mut self, bytes: usize) -> Step<'static> {
        self.skipped += bytes;
        self.skipped_total += bytes as u64;
        if self.skipped > RESYNC_LIMIT_BYTES { Step::Lost } else { Step::Skip(bytes) }
    }

    fn search<'a>(&mut self, unread: &'a [u8]) -> Step<'a> {
        for at in 0..unread.len() {
            let frame = match unit(&unread[at..]) {
                Unit::Bad => continue,
                // A special frame is expected at the start of a connection only.
                Unit::Special(_) => continue,
                Unit::Short(_) if at > 0 => return self.skip(at),
                Unit::Short(needed) => return Step::Need(needed),
                Unit::Frame(frame) => frame,
            };
            let len = frame.encoded_len();
            let behind = &unread[at + len..];
            if behind.len() < HEADER_BYTES {
                return if at > 0 { self.skip(at) } else { Step::Need(len + HEADER_BYTES) };
            }
            if Head::parse(behind).is_ok() {
                self.synchronised = true;
                return if at > 0 { self.skip(at) } else { Step::Frame(frame) };
            }
        }
        if unread.is_empty() { Step::Need(HEADER_BYTES) } else { self.skip(unread.len()) }
    }
}

enum Unit<'a> {
    /// The bytes may be a frame; this many are required.
    Short(usize),
    Frame(Encapsulated<'a>),
    Special(Special),
    Bad,
}

fn unit(bytes: &[u8]) -> Unit<'_> {
    if bytes.len() < HEADER_BYTES {
        // The first eight bytes of all headers are equal.
        let expected = Head { flags: 0, words: 0, stamp: Default::default() }.to_bytes();
        let shared = bytes.len().min(8);
        return if bytes[..shared] == expected[..shared] { Unit::Short(HEADER_BYTES) } else { Unit::Bad };
    }
    let Ok(head) = Head::parse(bytes) else { return Unit::Bad };
    if bytes.len() < head.bytes() {
        return Unit::Short(head.bytes());
    }
    if head.is_special() {
        return Special::parse(bytes).map_or(Unit::Bad, Unit::Special);
    }
    Encapsulated::behind(head, bytes).map_or(Unit::Bad, Unit::Frame)
}
