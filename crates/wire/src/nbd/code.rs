//! Codes of the protocol: options, replies, commands, chunks, errors ("Values").

use crate::codes::codes;

/// Option that a client sends during negotiation ("option types").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OptionCode(pub u32);

codes!(OptionCode, u32, "option" {
    EXPORT_NAME = 1, "EXPORT_NAME";
    ABORT = 2, "ABORT";
    LIST = 3, "LIST";
    PEEK_EXPORT = 4, "PEEK_EXPORT";
    STARTTLS = 5, "STARTTLS";
    INFO = 6, "INFO";
    GO = 7, "GO";
    STRUCTURED_REPLY = 8, "STRUCTURED_REPLY";
    LIST_META_CONTEXT = 9, "LIST_META_CONTEXT";
    SET_META_CONTEXT = 10, "SET_META_CONTEXT";
    EXTENDED_HEADERS = 11, "EXTENDED_HEADERS";
});

/// Type of a reply to an option ("option reply types"); errors have the top bit set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplyType(pub u32);

codes!(ReplyType, u32, "reply" {
    ACK = 1, "ACK";
    SERVER = 2, "SERVER";
    INFO = 3, "INFO";
    META_CONTEXT = 4, "META_CONTEXT";
    ERR_UNSUP = 0x8000_0001, "ERR_UNSUP";
    ERR_POLICY = 0x8000_0002, "ERR_POLICY";
    ERR_INVALID = 0x8000_0003, "ERR_INVALID";
    ERR_PLATFORM = 0x8000_0004, "ERR_PLATFORM";
    ERR_TLS_REQD = 0x8000_0005, "ERR_TLS_REQD";
    ERR_UNKNOWN = 0x8000_0006, "ERR_UNKNOWN";
    ERR_SHUTDOWN = 0x8000_0007, "ERR_SHUTDOWN";
    ERR_BLOCK_SIZE_REQD = 0x8000_0008, "ERR_BLOCK_SIZE_REQD";
    ERR_TOO_BIG = 0x8000_0009, "ERR_TOO_BIG";
    ERR_EXT_HEADER_REQD = 0x8000_000a, "ERR_EXT_HEADER_REQD";
});

impl ReplyType {
    /// True if the reply reports an error.
    pub const fn is_error(self) -> bool {
        self.0 & 1 << 31 != 0
    }
}

/// Information about an export in replies to INFO and GO ("information types").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InfoType(pub u16);

codes!(InfoType, u16, "information" {
    EXPORT = 0, "EXPORT";
    NAME = 1, "NAME";
    DESCRIPTION = 2, "DESCRIPTION";
    BLOCK_SIZE = 3, "BLOCK_SIZE";
});

/// Command of a request ("request types").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Command(pub u16);

codes!(Command, u16, "command" {
    READ = 0, "READ";
    WRITE = 1, "WRITE";
    DISC = 2, "DISC";
    FLUSH = 3, "FLUSH";
    TRIM = 4, "TRIM";
    CACHE = 5, "CACHE";
    WRITE_ZEROES = 6, "WRITE_ZEROES";
    BLOCK_STATUS = 7, "BLOCK_STATUS";
    RESIZE = 8, "RESIZE";
});

/// Content of a chunk of a structured reply ("structured reply types"); errors have the top bit
/// set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChunkType(pub u16);

codes!(ChunkType, u16, "chunk" {
    NONE = 0, "NONE";
    OFFSET_DATA = 1, "OFFSET_DATA";
    OFFSET_HOLE = 2, "OFFSET_HOLE";
    BLOCK_STATUS = 5, "BLOCK_STATUS";
    ERROR = 0x8001, "ERROR";
    ERROR_OFFSET = 0x8002, "ERROR_OFFSET";
});

/// Error of a request ("error values").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ErrorNumber(pub u32);

codes!(ErrorNumber, u32, "error" {
    NONE = 0, "no error";
    EPERM = 1, "operation not permitted";
    EIO = 5, "input/output error";
    ENOMEM = 12, "out of memory";
    EINVAL = 22, "invalid argument";
    ENOSPC = 28, "no space left";
    EOVERFLOW = 75, "value too large";
    ENOTSUP = 95, "operation not supported";
    ESHUTDOWN = 108, "server is shutting down";
});
