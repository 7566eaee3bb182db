//! State of a fabric at one moment, as printed by `sanloom show`: [`View`].
//!
//! The values come from a simulation stopped at a given time, or from a running fabric. Names are
//! those that an administrator types (ports as `edge1:3`). Addresses are six hexadecimal digits;
//! port and node names are eight bytes with colons. Lists have the documented order, so two views
//! of the same state are equal.

mod adapter;
pub mod build;
mod events;
mod fabric;
mod live;
mod node;
mod plane;
mod port;
mod zone;

pub use adapter::{AdapterPortRow, AdapterRow, FdmiView};
pub use events::{EventRow, EventsView, Severity};
pub use fabric::{FabricSwitch, FabricView, IslEnd, RouteRow, RoutesView, SwitchRow, SwitchView};
pub use live::{CaptureRow, CapturesView, CounterRow, CountersView, GroupRow, GroupsView, LunRow, LunsView};
pub use node::{Attachment, NodeKind, NodeRow, NodesView};
pub use plane::{
    ChannelRow, ChannelsView, ConnectionRow, ConnectionsView, EthernetPortRow, EthernetSwitchRow, EthernetView,
    InfinibandPortRow, InfinibandSwitchRow, InfinibandView, LinkRow, LinksView, Plane, PlaneWhich,
};
pub use port::{
    Dark, FcipRow, FlogiView, LoginKind, LoginRow, NameRow, NsView, PORT_COUNTERS, PortCounter, PortErrors, PortMode,
    PortRow, PortsView,
};
pub use zone::{OnlineMember, ZoneDefault, ZoneMemberRow, ZoneRow, ZoneView};

use crate::inject::RulesView;
use crate::volume::{PathsView, SessionsView, VolumesView};
use serde::{Deserialize, Serialize};

/// Name of the JSON format.
pub const FORMAT: &str = "sanloom-view";
/// Version of the JSON format. It increases when a field changes its meaning or is removed.
pub const VERSION: u32 = 1;

/// One table and its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Name of the lab or instance.
    pub of: String,
    /// Time of the table in seconds since the start of the workloads; negative during the fabric
    /// login.
    pub at_s: f64,
    /// The table with its rows.
    #[serde(flatten)]
    pub table: Table,
}

/// The tables of `sanloom show`. In JSON, the field `view` contains the name of the table, and its
/// fields are part of the same object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "snake_case")]
pub enum Table {
    /// The switches.
    Switch(SwitchView),
    /// Fabric logins.
    Flogi(FlogiView),
    /// The name server.
    Ns(NsView),
    /// Adapters that have registered with the management service.
    Fdmi(FdmiView),
    /// The effective zones.
    Zone(ZoneView),
    /// Domains, principal switch and ISLs.
    Fabric(FabricView),
    /// Paths between domains.
    Routes(RoutesView),
    /// The ports of the switches.
    Ports(PortsView),
    /// The ports of hosts and storage systems.
    Nodes(NodesView),
    /// The event log.
    Events(EventsView),
    /// The LUNs of a running instance.
    Luns(LunsView),
    /// Target port groups of a running instance.
    Groups(GroupsView),
    /// Counters of a running instance.
    Counters(CountersView),
    /// Fault injection rules of a running instance.
    Injections(RulesView),
    /// Captures of a running instance.
    Captures(CapturesView),
    /// Virtual disks.
    Volumes(VolumesView),
    /// Back ends and the paths to them.
    Paths(PathsView),
    /// iSCSI sessions.
    Sessions(SessionsView),
    /// The links of all planes.
    Links(LinksView),
    /// Ethernet switches, ports and interfaces.
    Ethernet(EthernetView),
    /// TCP connections.
    Connections(ConnectionsView),
    /// Ports of InfiniBand.
    Infiniband(InfinibandView),
    /// SRP channels.
    Channels(ChannelsView),
}

impl View {
    /// Creates the view of a table of a lab or instance at a time.
    pub fn new(of: &str, at_s: f64, table: Table) -> View {
        View { format: FORMAT.to_owned(), version: VERSION, of: of.to_owned(), at_s, table }
    }
}
