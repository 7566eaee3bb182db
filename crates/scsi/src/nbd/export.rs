//! Exports of an NBD server: [`Export`].

use sanloom_wire::nbd::{BlockSizes, transmission};

/// Disk offered under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Driver's number of the disk.
    pub disk: u64,
    /// Name that clients request.
    pub name: Box<str>,
    /// Description for people; may be empty.
    pub description: Box<str>,
    /// Size in bytes, a multiple of the minimum block size.
    pub size_bytes: u64,
    /// Block sizes that requests must respect.
    pub sizes: BlockSizes,
    /// True if write requests are refused.
    pub read_only: bool,
    /// True if the medium rotates, so that the order of access matters.
    pub rotational: bool,
    /// True if TRIM has an effect.
    pub trim: bool,
    /// True if the disk reports holes and zeros: BLOCK_STATUS with `base:allocation`.
    pub allocation: bool,
}

impl Export {
    /// Returns the [`transmission`] flags. FUA, FLUSH and CACHE are always set, WRITE_ZEROES unless
    /// the export is read-only, because every disk can emulate them with plain writes and reads.
    /// CAN_MULTI_CONN is set because a flush affects the disk as a whole, for all connections.
    pub fn flags(&self, structured_replies: bool) -> u16 {
        let mut flags = transmission::HAS_FLAGS
            | transmission::SEND_FLUSH
            | transmission::SEND_FUA
            | transmission::CAN_MULTI_CONN
            | transmission::SEND_CACHE;
        let when = [
            (self.read_only, transmission::READ_ONLY),
            (!self.read_only, transmission::SEND_WRITE_ZEROES),
            (self.rotational, transmission::ROTATIONAL),
            (self.trim && !self.read_only, transmission::SEND_TRIM),
            (structured_replies, transmission::SEND_DF),
        ];
        for (is, flag) in when {
            if is {
                flags |= flag;
            }
        }
        flags
    }
}

/// Returns the index of the export with a name. The empty name selects the first one.
pub fn export_named(exports: &[Export], name: &str) -> Option<usize> {
    match name {
        "" if !exports.is_empty() => Some(0),
        _ => exports.iter().position(|export| *export.name == *name),
    }
}
