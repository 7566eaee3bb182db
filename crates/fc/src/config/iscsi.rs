//! iSCSI configuration of storage systems, [`Iscsi`], and of hosts, [`IscsiHost`].

use super::tcp::Tcp;
use core::net::SocketAddr;
use sanloom_scsi::iscsi::parameters::{Digests, Offers};

/// iSCSI initiator of a simulated host: its sessions with the targets that its Ethernet interfaces
/// reach.
#[derive(Clone, PartialEq, Debug)]
pub struct IscsiHost {
    /// iSCSI name of the initiator.
    pub name: String,
    /// Values that the initiator offers at login.
    pub offers: Offers,
    /// Sessions of each pair of an interface of the host and a portal.
    pub sessions: u16,
    /// Maximum number of commands in flight in a session.
    pub queue_depth: u16,
    /// Priority of the frames of both directions; `None`: no tag, unless there is a VLAN.
    pub priority: Option<u8>,
    /// VLAN of the frames of both directions; `None`: no VLAN.
    pub vlan: Option<u16>,
    /// TCP settings of the host.
    pub tcp: Tcp,
}

impl IscsiHost {
    /// Default initiator of the host with this name.
    pub fn of(host: &str) -> IscsiHost {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        IscsiHost {
            name: format!("iqn.2026-11.example.sanloom:{}", host.chars().map(plain).collect::<String>()),
            offers: Offers::default(),
            sessions: 1,
            queue_depth: 128,
            priority: None,
            vlan: None,
            tcp: Tcp::default(),
        }
    }

    /// Priority and VLAN of the tag of its frames; `None`: frames without a tag.
    pub fn tag(&self) -> Option<(u8, Option<u16>)> {
        (self.priority.is_some() || self.vlan.is_some()).then_some((self.priority.unwrap_or(0), self.vlan))
    }
}

/// Access to a storage system over TCP. In a simulation, portal i is the Ethernet interface i of
/// the storage system, modulo their number; `portals` are the addresses of the live program.
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
    /// TCP settings of the storage system in a simulation.
    pub tcp: Tcp,
}

impl Iscsi {
    /// Values that the target offers at login.
    pub fn offers(&self) -> Offers {
        Offers {
            header_digest: self.header_digest,
            data_digest: self.data_digest,
            receive_bytes: self.max_segment_bytes,
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            max_burst_bytes: self.max_burst_bytes,
            first_burst_bytes: self.first_burst_bytes,
            max_outstanding_r2t: self.max_outstanding_r2t,
        }
    }
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
