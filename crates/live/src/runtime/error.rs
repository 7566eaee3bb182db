//! Errors of the start of a lab: [`UpError`].

use crate::iscsi::secret::SecretError;
use crate::ports::PortError;
use crate::state::StateError;
use sanloom_api::control::{ErrorKind, RequestError};
use std::io;
use std::path::PathBuf;

/// Remedy for a portal that cannot be opened.
fn portal_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "end the process that listens there, or set another port in `portals`",
        io::ErrorKind::AddrNotAvailable => "set an address of this machine in `portals`, or assign this one to it",
        io::ErrorKind::PermissionDenied => "set a port from 1024 on in `portals`, or run as root",
        _ => "set another address or port in `portals`",
    }
}

/// Reason why a lab cannot start.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// An Ethernet port cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The file of a LUN cannot be used.
    #[error("cannot use {} for {lun}: {error}", path.display())]
    File {
        /// The LUN.
        lun: String,
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A CHAP secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A storage system is a gateway that only a simulation has.
    #[error(
        "`{storage}` is a gateway for the LUNs of an array, which only a simulation has; use medium = \"volumes\" with back ends on `host` and `target_port`"
    )]
    Gateway {
        /// Name of the storage system.
        storage: String,
    },
    /// A back end has several paths, which only a simulation has.
    #[error(
        "the back end `{back_end}` has several paths, which only a simulation has; name one port in `host` and in `target_port`, such as gateway:0 and array:0"
    )]
    BackEndPaths {
        /// Name of the back end.
        back_end: String,
    },
    /// The host of a back end is another machine, which only a simulation has.
    #[error(
        "the back end `{back_end}` logs in with `{host}`, which is a machine of its own at the other end of the Ethernet link `{link}`; remove `ethernet` from the link, so that the host is inside the process"
    )]
    BackEndElsewhere {
        /// Name of the back end.
        back_end: String,
        /// Name of the host.
        host: String,
        /// Name of the link.
        link: String,
    },
    /// A storage system is a metadata server, which only a simulation has.
    #[error(
        "`{storage}` is a metadata server (out_of_band), which only a simulation has; remove `out_of_band`, so that commands for its virtual disks pass through it"
    )]
    MetadataServer {
        /// Name of the storage system.
        storage: String,
    },
    /// The process cannot listen at an iSCSI portal.
    #[error("cannot listen at {address} for iSCSI: {error}; {}", portal_remedy(error))]
    Portal {
        /// The portal.
        address: std::net::SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The process cannot open a portal of SRP.
    #[error("cannot open UDP port 4791 at {} for SRP: {error}; {}", address.ip(), portal_remedy(error))]
    SrpPortal {
        /// The portal.
        address: std::net::SocketAddrV4,
        /// The error.
        error: io::Error,
    },
    /// The folder of the instance cannot be created.
    #[error("cannot create the folder {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The system provides no more of a resource.
    #[error("the system provides no {what}: {error}")]
    System {
        /// The resource.
        what: &'static str,
        /// The error.
        error: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store has other zones or addresses than the lab file.
    #[error(
        "the lab file and {} differ:\n{}\nuse --apply to apply the changes of the file to the store, or \
         --reset to replace the content of the store with the file",
        path.display(),
        differences.join("\n")
    )]
    Differs {
        /// The store.
        path: PathBuf,
        /// The differences, one sentence each.
        differences: Vec<String>,
    },
    /// A capture file cannot be written.
    #[error("cannot write the capture {}: {error}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A recording cannot be written.
    #[error("cannot write the recording {}: {error}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The lab has no such object.
    #[error("the lab has no {what} `{name}`")]
    Unknown {
        /// Kind of the object.
        what: &'static str,
        /// The name.
        name: String,
    },
}

impl UpError {
    /// True if the lab or the request is wrong, and not the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            UpError::Unknown { .. } | UpError::Differs { .. } => true,
            // The port is captured already.
            UpError::Capture { error, .. } => error.kind() == io::ErrorKind::AlreadyExists,
            _ => false,
        }
    }
}

impl From<UpError> for RequestError {
    fn from(error: UpError) -> RequestError {
        let kind = if error.is_usage() { ErrorKind::Usage } else { ErrorKind::Environment };
        RequestError { reason: error.to_string(), kind }
    }
}

impl From<StateError> for RequestError {
    fn from(error: StateError) -> RequestError {
        RequestError::environment(error.to_string())
    }
}
