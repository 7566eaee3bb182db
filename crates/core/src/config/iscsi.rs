//! A storage system as an iSCSI target: [`Iscsi`].

use crate::iscsi::parameters::Digests;
use core::net::SocketAddr;

/// How a storage system is reached over TCP. A simulation does not look at it.
#[derive(Clone, PartialEq, Debug)]
pub struct Iscsi {
    /// iSCSI name of the target.
    pub name: String,
    /// What people call it.
    pub alias: Option<String>,
    /// Where it listens.
    pub portals: Vec<SocketAddr>,
    /// iSCSI names of those who may log in; empty: everybody.
    pub initiators: Vec<String>,
    /// Who proves what.
    pub chap: Chap,
    /// Logins are sent there.
    pub redirect: Option<SocketAddr>,
    /// They go there for ever.
    pub redirect_permanent: bool,
    /// Which header digests are taken.
    pub header_digest: Digests,
    /// Which data digests are taken.
    pub data_digest: Digests,
    /// Longest data segment that it takes, in bytes.
    pub max_segment_bytes: u32,
    /// Longest sequence of data, in bytes.
    pub max_burst_bytes: u32,
    /// Most unsolicited data of a command, in bytes.
    pub first_burst_bytes: u32,
    /// R2Ts of a task that may be open.
    pub max_outstanding_r2t: u16,
    /// R2T for all data but immediate ones.
    pub initial_r2t: bool,
    /// Data may come with the command.
    pub immediate_data: bool,
    /// Commands of a session at once.
    pub queue_depth: u16,
    /// Reads and writes of virtual disks pass PDU by PDU between hosts and back ends.
    pub forward: bool,
}

/// Names, and the files of secrets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chap {
    /// Name that initiators prove.
    pub name: Option<String>,
    /// File of its secret.
    pub secret_file: Option<String>,
    /// Name that the target proves to initiators that ask for it.
    pub own_name: Option<String>,
    /// File of its secret.
    pub own_secret_file: Option<String>,
}
