//! A whole storage area network as validated values: [`Lab`], the content of a lab file.
//!
//! The crate `sanloom-lab` builds these values from text and stores the position of each.
//! [`Lab::validate`] finds errors of the whole lab and reports a [`Place`], which `sanloom-lab`
//! converts to line and column. This module is above the machines, because some errors are found by
//! running them, see [`crate::fabric_switch::Trial`].

mod attached;
mod change;
mod channels;
mod dark;
mod dcb;
mod ethernet;
mod fcoe;
mod gateways;
mod infiniband;
mod ipoib;
mod join;
mod masks;
mod permitted;
mod precision;
mod problem;
mod segments;
mod session_reach;
mod subnet;
mod switches;
mod validate;
mod virtual_disks;
mod virtual_fabrics;
mod volumes;

pub use attached::AttachedPort;
pub use change::ScheduledChange;
pub use dark::{ethernet_links_down_at_start, infiniband_links_down_at_start};
pub use dcb::{DcbMismatch, DcbPort, dcb_mismatches, dcb_ports};
pub use ethernet::{EthernetInterface, IscsiPaths};
pub use fcoe::{
    FcoePath, ForwarderMismatch, ethernet_node, fcoe_paths, fcoe_paths_without, forwarder_mismatch, rate_names,
    switches_below, virtual_rates,
};
pub use gateways::{Behind, behind, gateways, hosts_of_gateway, is_gateway};
pub use infiniband::{InfinibandInterface, SrpPaths, ipoib_level};
pub use ipoib::{IpPaths, IpWay};
pub use join::{JoinEnd, Joined, Obstacle, join};
pub use masks::{LunGroup, users_of};
pub use permitted::PermittedPairs;
pub use precision::{Precision, Quantity};
pub use problem::{Place, Problem, ProblemKind, Section};
pub use session_reach::{NetworkPart, SessionReach};
pub use subnet::{SubnetGraph, SubnetRoutes, infiniband_adapter_guid, infiniband_switch_guid, srp_port, subnet_config};
pub use switches::lab_configs;
pub use validate::{
    LimitedEnds, MAX_BLOCKS, MAX_DURATION, MAX_LINKS, MAX_NODES, MAX_SAMPLES, MAX_SWITCHES, WindowLimit, window_limits,
};
pub use virtual_disks::{LunOfLab, VirtualDisks};
pub use volumes::{back_end_luns, lun_of_back_end, storage_of_iscsi, storage_of_port};

use crate::config::{
    ArbitratedLoop, EthernetLink, EthernetSwitch, Fault, Host, Infiniband, Link, Live, Picos, Priority, Storage,
    Switch, Timers, Workload, ZonePolicy, Zoning,
};
use crate::zoning::ZoneDatabase;
use std::collections::BTreeMap;

/// A whole lab: a storage area network, its workloads and its faults.
#[derive(Clone, PartialEq, Debug)]
pub struct Lab {
    /// Short name, used for report folders.
    pub name: String,
    /// Description in the user's words.
    pub description: String,
    /// Length, warm-up and seed of a simulation.
    pub run: Run,
    /// Fabric-wide timers.
    pub timers: Timers,
    /// Switches; links and faults refer to them by index.
    pub switches: Vec<Switch>,
    /// Hosts; links and workloads refer to them by index.
    pub hosts: Vec<Host>,
    /// Storage systems; links and workloads refer to them by index.
    pub storage: Vec<Storage>,
    /// Arbitrated loops; links refer to them by index.
    pub loops: Vec<ArbitratedLoop>,
    /// Links of hosts and storage to switches, loops and each other, and between switches.
    pub links: Vec<Link>,
    /// Ethernet switches; Ethernet links refer to them by index.
    pub ethernet_switches: Vec<EthernetSwitch>,
    /// Ethernet links of switches, hosts and storage.
    pub ethernet_links: Vec<EthernetLink>,
    /// InfiniBand switches, links, subnet and SRP targets.
    pub infiniband: Infiniband,
    /// Effective zoning: the effective zones of `zone_database` and its default zone.
    pub zoning: Zoning,
    /// Defined and effective zoning.
    pub zone_database: ZoneDatabase,
    /// Size limits and merge settings of the zone database.
    pub zone_policy: ZonePolicy,
    /// Zones that belong to only one virtual fabric (VF_ID), by name.
    pub zone_fabrics: BTreeMap<String, u16>,
    /// Zones with another priority than medium, by name.
    pub zone_priorities: BTreeMap<String, Priority>,
    /// Streams of requests.
    pub workloads: Vec<Workload>,
    /// Faults, sorted by time.
    pub faults: Vec<Fault>,
    /// Scheduled zone changes of administrators, sorted by time.
    pub changes: Vec<ScheduledChange>,
    /// Bounds that the results must satisfy; the exit code is 1 otherwise.
    pub expectations: Vec<Expectation>,
    /// Settings for a live run on real Ethernet ports.
    pub live: Live,
}

/// Length, warm-up and seed of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Simulated time from the start of the workloads to the end, including the warm-up.
    pub duration: Picos,
    /// Initial part that is excluded from the results.
    pub warmup: Picos,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Width of a step of the time series.
    pub sample_interval: Picos,
    /// Time at which the workloads stop issuing requests. The run then lasts until everything in
    /// flight has ended, at most until `duration`. `None`: they issue requests until the end.
    pub stop_issuing: Option<Picos>,
    /// Precision at which the run ends before `duration`; `None`: it lasts until `duration`.
    pub until: Option<Precision>,
}

/// Bound on one number of the results.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// Path into the JSON results, for example `hosts.server1.throughput_bytes_per_s` or
    /// `totals.ios_failed`.
    pub metric: String,
    /// Lower bound, inclusive.
    pub min: Option<f64>,
    /// Upper bound, inclusive.
    pub max: Option<f64>,
}
