//! What a fabric looks like at one moment, as `sanloom show` prints it: [`View`].
//!
//! The same values come from a simulation stopped at a time and from a running fabric. Names are those that an
//! administrator types (ports as `edge1:3`), addresses six hexadecimal digits, names of ports and nodes eight bytes with
//! colons. Lists are sorted as their documentation says, so two views of one state are equal.

pub mod build;
mod fabric;
mod live;
mod port;
mod zone;

pub use fabric::{FabricSwitch, FabricView, IslEnd, RouteRow, RoutesView, SwitchRow, SwitchView};
pub use live::{CounterRow, CountersView, GroupRow, GroupsView, LunRow, LunsView};
pub use port::{FlogiView, LoginKind, LoginRow, NameRow, NsView, PortMode, PortRow, PortsView};
pub use zone::{OnlineMember, ZoneDefault, ZoneMemberRow, ZoneRow, ZoneView};

use crate::inject::RulesView;
use crate::volume::{PathsView, SessionsView, VolumesView};
use serde::{Deserialize, Serialize};

/// Name of the JSON format.
pub const FORMAT: &str = "sanloom-view";
/// Version of the JSON format: grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// One table with its moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Lab or instance that it shows.
    pub of: String,
    /// When, in seconds since the workloads began; negative while the fabric logs in.
    pub at_s: f64,
    /// The table.
    #[serde(flatten)]
    pub table: Table,
}

/// The tables of `sanloom show`. In JSON `view` names the table, and its fields stand beside it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "snake_case")]
pub enum Table {
    /// The switches.
    Switch(SwitchView),
    /// What is logged in.
    Flogi(FlogiView),
    /// The name server.
    Ns(NsView),
    /// The zones.
    Zone(ZoneView),
    /// Domains, principal switch and ISLs.
    Fabric(FabricView),
    /// Paths between domains.
    Routes(RoutesView),
    /// The ports of the switches.
    Ports(PortsView),
    /// The LUNs of a running instance.
    Luns(LunsView),
    /// Target port groups of a running instance.
    Groups(GroupsView),
    /// What a running instance counts.
    Counters(CountersView),
    /// What a running instance does to frames by order of an operator.
    Injections(RulesView),
    /// Virtual disks.
    Volumes(VolumesView),
    /// Back ends and the ways to them.
    Paths(PathsView),
    /// iSCSI sessions of hosts.
    Sessions(SessionsView),
}

impl View {
    /// A table of a lab at a time.
    pub fn new(of: &str, at_s: f64, table: Table) -> View {
        View { format: FORMAT.to_owned(), version: VERSION, of: of.to_owned(), at_s, table }
    }
}
