//! Observations: the statements of the inputs, each with its place, before they are merged.

use super::index::{Index, References};
use sanloom_fc::config::ZoneDefault;
use std::collections::{BTreeMap, BTreeSet};

/// A line of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct At {
    pub file: u32,
    pub line: u32,
}

/// Operating system of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Os {
    FabricOs,
    NxOs,
}

/// A switch as one input shows it.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub at: At,
    pub os: Option<Os>,
    pub name: Option<String>,
    pub wwn: Option<u64>,
    /// Domain of the whole switch (Fabric OS).
    pub domain: Option<u8>,
    /// Line of the domain.
    pub domain_line: Option<u32>,
    /// An access gateway, which is no switch of the fabric (Fabric OS).
    pub is_gateway: bool,
    /// Speeds and modes of interfaces (NX-OS), by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Address of the management interface (NX-OS).
    pub address: Option<String>,
    /// The switch is a logical switch of a chassis (Fabric OS).
    pub logical: Option<Logical>,
}

/// A logical switch of Fabric OS (Virtual Fabrics).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Logical {
    pub at: At,
    /// Fabric ID, which both ends of an ISL share.
    pub fid: u16,
    /// The switch that has all ports of a chassis unless others have been made.
    pub is_default: bool,
    /// The switch whose ISLs carry those of others (XISL).
    pub is_base: bool,
}

impl Logical {
    /// A logical switch of which only the fabric ID is known. The default switch has 128, unless
    /// an administrator has changed it.
    pub fn of(at: At, fid: u16) -> Logical {
        Logical { at, fid, is_default: fid == 128, is_base: false }
    }
}

/// A row of the list of logical switches that the REST interface has.
#[derive(Clone, Debug)]
pub(super) struct LogicalRow {
    /// Number of the list: each is of one chassis.
    pub list: usize,
    pub wwn: Option<u64>,
    pub logical: Logical,
    /// Ports as `slot/port`.
    pub ports: Vec<String>,
}

/// An interface of NX-OS.
#[derive(Clone, Debug, Default)]
pub(super) struct Interface {
    pub at: At,
    /// Speed in Gbit/s; of a port-channel, that of a member or the sum of all.
    pub gfc: Option<u32>,
    /// Speed that the configuration sets, in Gbit/s; of each member of a port-channel.
    pub set_gfc: Option<u32>,
    /// Different speeds that the file states, with the first line of each; no sums.
    pub stated: Vec<(u32, At)>,
    pub channel: Option<String>,
    pub vsan: Option<u16>,
    /// Other end that the mode of the configuration is for, with the line of the mode.
    pub set_far: Option<(FarEnd, At)>,
    /// The configuration enables the interface.
    pub is_enabled: bool,
}

/// Kind of the other end of a link, by the mode of the port (NX-OS).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FarEnd {
    /// A switch of the same fabric.
    Switch,
    /// A switch that the own one, in NPV mode, is a node of.
    Core,
    /// Hosts, storage, or a switch in NPV mode.
    Devices,
}

impl FarEnd {
    /// Reads the mode of a port. `None` for other words and for modes without a link, such as SD.
    pub fn of_mode(mode: &str) -> Option<FarEnd> {
        match mode {
            "E" | "TE" | "B" => Some(FarEnd::Switch),
            "NP" | "TNP" => Some(FarEnd::Core),
            "F" | "TF" | "FL" | "TL" => Some(FarEnd::Devices),
            _ => None,
        }
    }
}

/// State of an interface in a table of interfaces (NX-OS).
#[derive(Clone, Debug)]
pub(super) struct State {
    pub at: At,
    pub seen: usize,
    pub interface: String,
    /// The other end of an interface that is up. `None` if it is down or of an unknown mode.
    pub far: Option<FarEnd>,
}

impl Interface {
    /// Notes a line of a configuration that sets the speed. It may replace all statements so far.
    pub fn set(&mut self, gfc: u32, at: At, replaces: bool) {
        if replaces {
            (self.gfc, self.set_gfc) = (None, None);
            self.stated.clear();
        }
        self.state(gfc, at);
        self.set_gfc.get_or_insert(gfc);
    }

    /// Notes a statement of the speed. The first one is kept.
    pub fn state(&mut self, gfc: u32, at: At) {
        self.gfc.get_or_insert(gfc);
        if self.stated.iter().all(|(other, _)| *other != gfc) {
            self.stated.push((gfc, at));
        }
    }
}

/// A port of a switch as written: its number, or the name of the interface.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PortRef {
    Number(u16),
    Name(String),
}

/// A row of a table of switch ports.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchPort {
    pub at: At,
    pub seen: usize,
    pub number: u16,
    pub gfc: Option<u32>,
    /// Address of the port, without its last byte.
    pub area: Option<u32>,
    /// The row has the rate of a port with light. Others have that of the optics, or any.
    pub is_online: bool,
    /// A device is logged in there.
    pub is_occupied: bool,
    /// An arbitrated loop is there.
    pub is_loop: bool,
}

/// A statement that a port name is logged in at a switch port.
#[derive(Clone, Debug)]
pub(super) struct Login {
    pub at: At,
    pub seen: usize,
    pub vsan: Option<u16>,
    pub port: PortRef,
    pub wwpn: u64,
    pub wwnn: Option<u64>,
}

/// An entry of a name server.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub at: At,
    pub seen: usize,
    pub vsan: Option<u16>,
    pub address: u32,
    pub wwpn: u64,
    pub wwnn: Option<u64>,
    pub is_initiator: bool,
    pub is_target: bool,
    pub is_virtual: bool,
    /// The switch has INQUIRY data of the device, which only targets return.
    pub has_inquiry: bool,
    pub symbols: Vec<String>,
    /// Name of the switch port.
    pub fabric_port: Option<u64>,
    pub permanent: Option<u64>,
    /// Number of the switch port, for entries of the switch itself.
    pub index: Option<u16>,
    pub gfc: Option<u32>,
}

/// One end of a link between switches.
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    pub at: At,
    pub seen: usize,
    pub vsan: Option<u16>,
    pub port: PortRef,
    pub peer_port: Option<PortRef>,
    pub peer_wwn: Option<u64>,
    pub peer_name: Option<String>,
    /// IP address of the neighbour (NX-OS).
    pub peer_address: Option<String>,
    pub peer_domain: Option<u8>,
    pub gfc: Option<u32>,
    /// Port of the same switch whose trunk the link belongs to.
    pub master: Option<u16>,
    /// Links of the trunk, if the input states only their number.
    pub width: u32,
}

/// A switch that another one lists.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub at: At,
    pub seen: usize,
    pub vsan: Option<u16>,
    pub wwn: u64,
    pub domain: u8,
    pub name: Option<String>,
    /// The listing switch itself.
    pub is_local: bool,
}

/// A zone object as written, with the place of its definition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Object {
    pub at: At,
    pub members: Vec<String>,
    pub principals: Vec<String>,
    /// Members of a smart zone that are both initiator and target.
    pub both: Vec<String>,
    /// Members by name, while commands change them.
    pub index: Option<Box<Index>>,
}

/// Zone objects by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Objects {
    pub aliases: BTreeMap<String, Object>,
    pub zones: BTreeMap<String, Object>,
    pub configs: BTreeMap<String, Object>,
}

/// Kind of a zone object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Alias,
    Zone,
    Config,
}

pub(super) const KINDS: [Kind; 3] = [Kind::Alias, Kind::Zone, Kind::Config];

impl Kind {
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Alias => "alias",
            Kind::Zone => "zone",
            Kind::Config => "configuration",
        }
    }

    pub fn with_article(self) -> &'static str {
        match self {
            Kind::Alias => "an alias",
            Kind::Zone => "a zone",
            Kind::Config => "a configuration",
        }
    }
}

impl Objects {
    pub fn of(&self, kind: Kind) -> &BTreeMap<String, Object> {
        match kind {
            Kind::Alias => &self.aliases,
            Kind::Zone => &self.zones,
            Kind::Config => &self.configs,
        }
    }

    pub fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<String, Object> {
        match kind {
            Kind::Alias => &mut self.aliases,
            Kind::Zone => &mut self.zones,
            Kind::Config => &mut self.configs,
        }
    }
}

/// The zone database of one switch and VSAN, as one output shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneBase {
    pub at: At,
    pub seen: usize,
    pub vsan: Option<u16>,
    pub defined: Objects,
    /// Zones in force, expanded.
    pub active: Objects,
    /// Name of the configuration in force.
    pub enabled: Option<(String, At)>,
    /// The input states that no configuration is in force.
    pub is_disabled: bool,
    pub default: Option<(ZoneDefault, At)>,
    pub is_enhanced: bool,
    pub is_smart: Option<bool>,
    /// Definitions by the names of their members, while commands change them.
    pub references: Option<References>,
}

/// All observations.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub files: Vec<String>,
    pub sightings: Vec<Sighting>,
    pub ports: Vec<SwitchPort>,
    pub logins: Vec<Login>,
    /// Port names of the management interfaces of supervisors (NX-OS).
    pub supervisors: BTreeSet<u64>,
    pub states: Vec<State>,
    pub entries: Vec<Entry>,
    pub trunks: Vec<Trunk>,
    /// Trunks of REST documents that do not name their switch, one list for each file.
    pub loose_trunks: Vec<Vec<Trunk>>,
    pub members: Vec<Member>,
    pub zones: Vec<ZoneBase>,
    /// Lines of members that are names, by the place of their object, if they are not on its line.
    pub member_lines: BTreeMap<(At, String), At>,
    /// Domains that the configuration of a switch fixes, by sighting and VSAN (NX-OS).
    pub domains: Vec<(At, usize, u16, u8)>,
    /// Priorities in the selection of the principal switch, by sighting and VSAN (NX-OS).
    pub priorities: Vec<(usize, u16, u8)>,
    /// VSANs that the configuration of a switch creates (NX-OS), by sighting.
    pub vsans: Vec<(usize, u16)>,
    /// Logical switches in lists of the REST interface (Fabric OS).
    pub logical: Vec<LogicalRow>,
    /// Fabric IDs that `lscfg --show` lists, by sighting (Fabric OS).
    pub created: Vec<(At, usize, Vec<u16>)>,
    /// Ports by sighting and `slot/port` (REST of Fabric OS).
    pub slots: BTreeMap<(usize, String), u16>,
    /// Device aliases of a whole switch (NX-OS), by sighting.
    pub device_aliases: Vec<(usize, String, Object)>,
    /// Device aliases that a command removes, by sighting and name: those among the first of the
    /// list, of which this is the number.
    pub removed_device_aliases: BTreeMap<(usize, String), usize>,
}

impl Facts {
    /// Takes out what commands have removed, when all inputs are read.
    pub fn settle(&mut self) {
        for base in &mut self.zones {
            base.references = None;
            for objects in [&mut base.defined, &mut base.active] {
                KINDS.into_iter().for_each(|kind| objects.of_mut(kind).values_mut().for_each(Object::settle));
            }
        }
        let removed = std::mem::take(&mut self.removed_device_aliases);
        if !removed.is_empty() {
            let mut places = 0..;
            self.device_aliases.retain(|(seen, name, _)| {
                let place = places.next().unwrap_or(usize::MAX);
                removed.get(&(*seen, name.clone())).is_none_or(|number| place >= *number)
            });
        }
    }
}

/// Parses a world-wide name with colons, in any case.
pub(super) fn wwn(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_form = text.len() == 23 && text.is_ascii();
    if !is_form {
        return None;
    }
    text.parse::<sanloom_wire::Wwpn>().ok().map(|name| name.0)
}

/// Returns the low six bytes of a name: those that the ports of a switch share with it.
pub(super) fn tail(name: u64) -> u64 {
    name & 0xffff_ffff_ffff
}

/// Parses a speed as [`speed`] does. A text without a digit, such as `AN`, names no rate, and is
/// none that cannot be read.
pub(super) fn rate(text: &str) -> Result<Option<u32>, ()> {
    match speed(text) {
        None if text.bytes().any(|byte| byte.is_ascii_digit()) => Err(()),
        rate => Ok(rate),
    }
}

/// Parses a speed such as `N16`, `16G`, `8Gbps`, `16.000G` or `16000` (Mbit/s). Automatic speeds
/// have no number.
pub(super) fn speed(text: &str) -> Option<u32> {
    let text = text.trim().trim_start_matches(['N', 'n']);
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().ok()?;
    let rate = if number >= 1_000 { number / 1_000 } else { number };
    [1, 2, 4, 8, 10, 16, 32, 64, 128, 256].contains(&rate).then_some(rate)
}
