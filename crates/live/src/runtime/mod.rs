//! The running lab: [`Runtime`], one thread that waits for its ports, carries frames, and calls the machines.
//!
//! ```text
//!   Ethernet port ──▶ Segment (Bindings, Fcf) ──▶ LiveSwitch (Fib, FabricSwitch) ──▶ Segment ──▶ egress queue ──▶ port
//!                                                   ▲        │
//!                              StoragePort ─────────┘        └──▶ StorageSystem, or another switch of the process
//!
//!   Ethernet port ──▶ Station (Vn2vn) ──▶ StorageSystem ──▶ egress queue ──▶ port
//! ```
//!
//! Frames are taken in batches. A full egress queue holds back whoever brought the frame, by not reading it any more; what
//! waits for longer than the hold time is dropped and counted.

mod apply;
mod control;
mod forward;
mod hold;
mod hosts;
mod inject;
mod metrics;
mod operate;
pub mod plan;
mod segment;
mod station;
mod switch;
mod tables;
mod taps;
mod turn;
mod volume_tables;
mod volumes;
mod zones;

pub use forward::{Source, reason};
pub use segment::Segment;
pub use station::Station;
pub use switch::{Attachment, LiveSwitch};
pub use zones::SwitchZones;

use crate::capture::Captures;
use crate::clock::Clock;
use crate::frame::{FrameBuf, Pool};
use crate::iscsi::IscsiServer;
use crate::iscsi::secret::SecretError;
use crate::lldp::Agent;
use crate::poll::{Poller, Polling};
use crate::ports::{EthernetPort, PortError};
use crate::record::Recorder;
use crate::state::{StateError, StateStore};
use crate::storage::StorageSystem;
use crate::storage::workers::Workers;
use crate::volumes::VolumeEngine;
use apply::ApplyAsked;
use forward::Entering;
use inject::Injector;
use sanloom_core::config::{Lab, VolumeSpec};
use sanloom_core::fip::vlan::VlanResponder;
use sanloom_core::time::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use zones::ZoneChangeAsked;

/// What helps where a portal cannot be had.
fn portal_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "end the process that listens there, or write another port in `portals`",
        io::ErrorKind::AddrNotAvailable => "write an address of this machine in `portals`, or give it this one",
        io::ErrorKind::PermissionDenied => "write a port from 1024 on in `portals`, or run it as root",
        _ => "write another address or port in `portals`",
    }
}

/// Why a lab cannot be brought up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// A port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A file of a LUN.
    #[error("cannot use {} for {lun}: {error}", path.display())]
    File {
        /// The LUN.
        lun: String,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A secret of CHAP.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// An iSCSI portal.
    #[error("cannot listen at {address} for iSCSI: {error}; {}", portal_remedy(error))]
    Portal {
        /// The portal.
        address: std::net::SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The folder of the instance.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something that the process needs from the system.
    #[error("the system gives us no {what}: {error}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// The store of zones and addresses.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store has other zones or addresses than the lab file.
    #[error(
        "the lab file is not what {} keeps:\n{}\nwith --apply what was changed in the file is done in the store, with \
         --reset the file counts and what the store has beyond it is gone",
        path.display(),
        differences.join("\n")
    )]
    Differs {
        /// The store.
        path: PathBuf,
        /// What differs, in sentences.
        differences: Vec<String>,
    },
    /// A capture file.
    #[error("cannot write the capture {}: {error}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A recording.
    #[error("cannot write the recording {}: {error}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No such name in the lab.
    #[error("the lab has no {what} `{name}`")]
    Unknown {
        /// What it should be.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// An Ethernet port and who listens there.
#[derive(Debug)]
pub struct LivePort {
    /// The port.
    pub ethernet: EthernetPort,
    /// Index of the link of the lab that it is; nothing for a storage system without one.
    pub link: Option<usize>,
    /// Segments that hear it, by index.
    pub segments: Vec<usize>,
    /// The station at it, by index.
    pub station: Option<usize>,
    /// Answers VLAN requests where all segments have a VLAN.
    vlans: Option<VlanResponder>,
    /// There was something to read at the last look.
    ready: bool,
    /// Full egress queues that hold it back.
    held: u16,
    /// Whom its own full egress queue holds back.
    holds: Vec<Source>,
    /// Somebody is at the other end.
    light: bool,
    /// Its segments were told that the link is up.
    up: bool,
    /// The LLDP agent, where DCBX has to agree before FCoE begins.
    pub agent: Option<Agent>,
}

impl LivePort {
    fn new(ethernet: EthernetPort, link: Option<usize>) -> LivePort {
        let (segments, holds) = (Vec::new(), Vec::new());
        LivePort {
            ethernet,
            link,
            segments,
            station: None,
            vlans: None,
            ready: false,
            held: 0,
            holds,
            light: false,
            up: false,
            agent: None,
        }
    }
}

/// A lab that runs.
#[derive(Debug)]
pub struct Runtime {
    /// What runs.
    pub lab: Arc<Lab>,
    /// Time since the start.
    pub clock: Clock,
    /// Ethernet ports.
    pub ports: Vec<LivePort>,
    /// Places where switches hear FIP and FCoE.
    pub segments: Vec<Segment>,
    /// Storage ports on segments without a switch.
    pub stations: Vec<Station>,
    /// Switches that run here; others of the lab run elsewhere.
    pub switches: Vec<LiveSwitch>,
    /// Index in the lab of each switch.
    pub lab_switches: Vec<u16>,
    /// Storage inside the process.
    pub systems: Vec<StorageSystem>,
    /// Storage over TCP.
    pub iscsi: Option<IscsiServer>,
    /// Virtual disks.
    pub volumes: Option<VolumeEngine>,
    /// Volumes of the lab that are still to be created.
    wanted_volumes: Vec<VolumeSpec>,
    /// Captures.
    pub captures: Captures,
    poller: Poller,
    workers: Option<Workers>,
    /// They have something done.
    rung: bool,
    /// Whoever runs the loop is to be asked whether it goes on.
    called: bool,
    /// How long the loop asks before it sleeps.
    polling: Polling,
    pool: Pool,
    /// Buffers that the next frames are received into.
    spare: Vec<FrameBuf>,
    scratch: Vec<u8>,
    inside: VecDeque<Entering>,
    hold_time: Span,
    next_look: Instant,
    /// When the store is asked again to keep what it could not.
    keep_again: Instant,
    /// Zones and addresses that outlive us.
    state: StateStore,
    /// What operators do to frames.
    injector: Injector,
    /// Operators who wait for their change of zones, by its tag.
    zone_changes: BTreeMap<u32, ZoneChangeAsked>,
    next_zone_change: u32,
    /// An operator who waits for a lab to be applied.
    applying: Option<ApplyAsked>,
    /// What machines are told and say.
    recorder: Option<Recorder>,
}
