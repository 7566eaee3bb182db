//! What a server offers: [`Export`].

use sanloom_wire::nbd::{BlockSizes, transmission};

/// A disk under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The driver's own number of the disk.
    pub disk: u64,
    /// As clients ask for it.
    pub name: Box<str>,
    /// For people; may be empty.
    pub description: Box<str>,
    /// A multiple of the minimum block size.
    pub size_bytes: u64,
    /// What requests must keep to.
    pub sizes: BlockSizes,
    /// No request may write.
    pub read_only: bool,
    /// The disk turns, so that order of access matters.
    pub rotational: bool,
    /// TRIM does something.
    pub trim: bool,
    /// The disk knows its holes and zeros: BLOCK_STATUS with `base:allocation`.
    pub allocation: bool,
}

impl Export {
    /// [`transmission`] flags. FUA, FLUSH, WRITE_ZEROES and CACHE are always there: a disk that has no better way obeys them
    /// with plain writes and reads. All connections see one disk, so a flush holds for all of them.
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

/// Index of the export with a name; the empty name means the first.
pub fn export_named(exports: &[Export], name: &str) -> Option<usize> {
    match name {
        "" if !exports.is_empty() => Some(0),
        _ => exports.iter().position(|export| *export.name == *name),
    }
}
