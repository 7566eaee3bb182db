//! iSCSI target configuration of a storage system: [`Iscsi`].

use core::net::SocketAddr;
use sanloom_scsi::iscsi::parameters::Digests;

/// Access to a storage system over TCP. A simulation ignores it.
#[derive(Clone, PartialEq, Debug)]
pub struct Iscsi {
    /// iSCSI name of the target.
    pub name: String,
    /// Alias of the target, for display.
    pub alias: Option<String>,
    /// Addresses on which the target listens.
    pub portals: Vec<SocketAddr>,
    /// iSCSI names of the initiators that may log in; empty: all.
    pub initiators: Vec<String>,
    /// Names and secrets for authentication.
    pub chap: Chap,
    /// Address to which logins are redirected, if any.
    pub redirect: Option<SocketAddr>,
    /// True if the redirection is permanent.
    pub redirect_permanent: bool,
    /// Accepted header digests.
    pub header_digest: Digests,
    /// Accepted data digests.
    pub data_digest: Digests,
    /// Longest accepted data segment, in bytes.
    pub max_segment_bytes: u32,
    /// Longest data sequence, in bytes.
    pub max_burst_bytes: u32,
    /// Maximum unsolicited data of a command, in bytes.
    pub first_burst_bytes: u32,
    /// Maximum number of outstanding R2Ts of a task.
    pub max_outstanding_r2t: u16,
    /// True if all data except immediate data requires an R2T.
    pub initial_r2t: bool,
    /// True if data may arrive in the command PDU.
    pub immediate_data: bool,
    /// Maximum number of commands in flight in a session.
    pub queue_depth: u16,
    /// True if reads and writes of virtual disks are forwarded PDU by PDU between hosts and back
    /// ends.
    pub forward: bool,
}

/// CHAP names and the files with their secrets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chap {
    /// Name with which initiators authenticate.
    pub name: Option<String>,
    /// File with the secret of that name.
    pub secret_file: Option<String>,
    /// Name with which the target authenticates to initiators that request it.
    pub own_name: Option<String>,
    /// File with the secret of that name.
    pub own_secret_file: Option<String>,
}
