//! A storage area network as checked values: what a lab file means.
//!
//! The crate `lab` makes these values out of text and remembers where each came from; [`Lab::validate`] finds what is
//! wrong with the whole, and names a [`Place`] that `lab` turns into line and column.

mod attached;
mod change;
mod fabric;
mod fault;
mod iscsi;
mod joining;
mod live;
mod node;
mod port_groups;
mod problem;
mod units;
mod validate;
mod virtual_fabric;
mod volumes;
mod workload;
mod zoning;

pub use attached::AttachedPort;
pub use change::ScheduledChange;
pub use fabric::{
    Arbitration, Forwarding, IslChoice, Link, LinkEnd, Node, Processor, ProcessorSharing, Queueing, Switch, Timers,
};
pub use fault::{Direction, Fault, FaultKind};
pub use iscsi::{Chap, Iscsi};
pub use joining::{FlowControlModes, Joining};
pub use live::{Carrier, Ethernet, Fcoe, Live, Mask, Medium, MediumKind, Uplink};
pub use node::{
    Bus, Hba, Host, Interrupt, IoQueue, IoScheduler, Lun, Multipath, PathPolicy, Service, Storage, StoragePort,
    VirtualMachine,
};
pub use port_groups::PortGroupSpec;
pub use problem::{Place, Problem, ProblemKind, Section};
pub use units::{LineRate, Picos, Rate};
pub use validate::{MAX_DURATION, MAX_LINKS, MAX_NODES, MAX_SAMPLES, MAX_SWITCHES};
pub use virtual_fabric::{MAX_VF_ID, VirtualFabric};
pub use volumes::{BackEnd, BackEndTarget, FcpBackEnd, IscsiBackEnd, Pool, VolumeSpec};
pub use workload::{Arrival, HotSet, Load, Location, SizeDistribution, Target, Workload};
pub use zoning::{BadZoneMember, Zone, ZoneDefault, ZoneMember, ZonePolicy, Zoning};

use crate::zoning::ZoneDatabase;
use std::collections::BTreeMap;

/// A whole lab: one storage area network, what it is asked to do, and what happens to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Lab {
    /// Short name, used for report folders.
    pub name: String,
    /// What the lab shows, in the user's words.
    pub description: String,
    /// Length, warm-up and seed of a simulation.
    pub run: Run,
    /// Fabric-wide timers.
    pub timers: Timers,
    /// Switches.
    pub switches: Vec<Switch>,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// Storage systems.
    pub storage: Vec<Storage>,
    /// Links between ports, hosts and storage to switches and switches to each other.
    pub links: Vec<Link>,
    /// Who may talk to whom: the effective zones of `zone_database` and its default zone.
    pub zoning: Zoning,
    /// Everything that zoning defines, and what of it is in force.
    pub zone_database: ZoneDatabase,
    /// How large the zone database may become, and what it merges with.
    pub zone_policy: ZonePolicy,
    /// Zones that are of one virtual fabric (VF_ID) alone, by name.
    pub zone_fabrics: BTreeMap<String, u16>,
    /// Streams of requests.
    pub workloads: Vec<Workload>,
    /// What goes wrong, sorted by time.
    pub faults: Vec<Fault>,
    /// What administrators change in the zones while it runs, sorted by time.
    pub changes: Vec<ScheduledChange>,
    /// What the results must satisfy; exit code 1 if one does not.
    pub expectations: Vec<Expectation>,
    /// What it needs to run on real Ethernet ports.
    pub live: Live,
}

/// Length, warm-up and seed of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Simulated time from the start of the workloads to the end, warm-up included.
    pub duration: Picos,
    /// The part at the beginning that results leave out.
    pub warmup: Picos,
    /// Seed of every random number.
    pub seed: u64,
    /// Width of one step of the time series.
    pub sample_interval: Picos,
    /// The workloads stop issuing at this time and the run lasts until everything in flight has ended, at most until
    /// `duration`. `None`: they issue until the end.
    pub stop_issuing: Option<Picos>,
}

/// A bound on one number of the results.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// Path into the JSON results, for example `hosts.server1.throughput_bytes_per_s` or `totals.ios_failed`.
    pub metric: String,
    /// Lower bound, inclusive.
    pub min: Option<f64>,
    /// Upper bound, inclusive.
    pub max: Option<f64>,
}
