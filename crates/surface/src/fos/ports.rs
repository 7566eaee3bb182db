//! Ports: `interface/fibrechannel`.

use super::counters;
use super::fault::Fault;
use super::resources::Change;
use super::room::Room;
use super::switches::check_name;
use super::tree::Element;
use sanloom_api::control::{PortChange, Request};
use sanloom_api::view::build::port_name_of;
use sanloom_api::view::{Dark, LoginKind, LoginRow, PortMode, PortRow, SwitchRow};
use std::collections::{BTreeMap, BTreeSet};

/// A port of the switch; `None` instead of the row for a port without a link.
pub struct Port {
    /// Number of the port on the switch.
    pub number: u32,
    /// World-wide name; every port has one, with or without a link.
    pub wwn: String,
    /// Values of the port.
    pub row: Option<PortRow>,
    /// True for a port without a link that an operator has disabled.
    disabled_alone: bool,
}

/// All ports of the switch, also those without a link.
pub fn all(room: &mut Room<'_>) -> Result<(SwitchRow, Vec<Port>), Fault> {
    let own = room.own()?;
    let mut rows: BTreeMap<u32, PortRow> = room.ports()?.ports.into_iter().map(|row| (row.number, row)).collect();
    counters::sample(room, rows.values());
    let mut numbers = own_numbers(&own);
    numbers.extend(rows.keys());
    let port = |number: u32| {
        let row = rows.remove(&number);
        let derived = || u16::try_from(number).ok().and_then(|number| port_name_of(&own.switch_name, number));
        let wwn = row.as_ref().map(|row| row.port_name.clone()).or_else(derived).unwrap_or_default();
        let disabled_alone = row.is_none() && own.disabled_ports.contains(&number);
        Port { number, wwn, row, disabled_alone }
    };
    let ports = numbers.into_iter().map(port).collect();
    Ok((own, ports))
}

/// Numbers of the ports of a switch. A logical switch has the numbers of its chassis.
fn own_numbers(own: &SwitchRow) -> BTreeSet<u32> {
    match own.chassis {
        Some(_) => own.port_numbers.iter().copied().collect(),
        None => (0..own.ports).collect(),
    }
}

/// Numbers of the ports of a switch of the instance, in order. `rows`: the ports with a link.
pub fn numbers(rows: &[PortRow], own: &SwitchRow) -> BTreeSet<u32> {
    let prefix = format!("{}:", own.switch);
    let linked = rows.iter().filter(|port| port.port.starts_with(&prefix)).map(|port| port.number);
    own_numbers(own).into_iter().chain(linked).collect()
}

/// Speed of a link in bits per second; the speed of Ethernet is not known.
pub fn speed(row: &PortRow) -> Option<u64> {
    let digits: String = row.rate.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u64>().ok().filter(|_| row.rate.contains("GFC")).map(|gigabits| gigabits * 1_000_000_000)
}

impl Port {
    /// True if the port has a link with light, and is part of the fabric.
    pub fn online(&self) -> bool {
        let up = |row: &PortRow| row.light && !row.blocked && matches!(row.mode, PortMode::E | PortMode::F);
        self.row.as_ref().is_some_and(up)
    }

    /// True if an operator has disabled the port itself, also while its switch is disabled.
    pub fn disabled(&self) -> bool {
        self.disabled_alone || self.row.as_ref().is_some_and(|row| row.dark == Some(Dark::Disabled))
    }

    /// Number and name of the type.
    pub fn kind(&self) -> (u32, &'static str) {
        match self.row.as_ref().map(|row| (row.mode, &*row.rate)) {
            Some((PortMode::E, _)) => (7, "e-port"),
            Some((PortMode::F, "Ethernet")) => (17, "fcoe-port"),
            Some((PortMode::F, _)) => (15, "f-port"),
            _ => (11, "u-port"),
        }
    }

    /// State of the light.
    pub fn physical_state(&self) -> &'static str {
        match &self.row {
            _ if self.disabled() => "disabled",
            Some(row) if row.light => "online",
            _ => "no_light",
        }
    }

    /// Name of the port in the lab.
    pub fn lab_name(&self, switch: &str) -> String {
        format!("{switch}:{}", self.number)
    }

    /// Key of the name that a client has given.
    pub fn key(&self) -> String {
        format!("port {}", self.number)
    }

    /// Name for people.
    pub fn name(&self, room: &Room<'_>) -> String {
        room.shared.name(&self.key()).unwrap_or_else(|| format!("port{}", self.number))
    }
}

/// Number of a port in the form `0/1`.
pub fn number(name: &str) -> Result<u32, Fault> {
    let port = name.trim().strip_prefix("0/").and_then(|number| number.parse().ok());
    let port = port.filter(|port: &u32| name.trim() == format!("0/{port}"));
    port.ok_or_else(|| Fault::invalid(format!("`{name}` is not a port; write slot and port, such as 0/1")))
}

/// Address of a port as the switch shows it: that of the login of its N_Port, or else one from its
/// number. A domain has 256 areas. A port above 255 has the area of its number modulo 256, and the
/// higher bits in the first two bits of the last byte, as in the ten-bit mode of a switch.
pub fn address(own: &SwitchRow, number: u32, login: Option<&str>) -> u32 {
    let of_login = login.and_then(|id| u32::from_str_radix(id, 16).ok());
    let domain = u32::from(own.domain.unwrap_or_default());
    of_login.unwrap_or(domain << 16 | (number & 0xff) << 8 | (number >> 8 & 3) << 6)
}

/// Addresses of the N_Ports that are logged in with FLOGI, by the name of the switch port.
pub fn bases(logins: &[LoginRow]) -> BTreeMap<String, String> {
    let physical = logins.iter().filter(|login| login.login == LoginKind::Flogi);
    physical.map(|login| (login.port.clone(), login.port_id.clone())).collect()
}

fn online_number(online: bool) -> u32 {
    if online { 2 } else { 3 }
}

/// GET of `fibrechannel`.
pub fn fibrechannel(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (own, ports) = all(room)?;
    let logged_in = room.logins()?.logins;
    let bases = bases(&logged_in);
    let (wwns, neighbours) = neighbours(room, logged_in)?;
    let entries = ports.iter().map(|port| {
        let online = port.online();
        let (kind, kind_name) = port.kind();
        let mut leaves = vec![Element::text("name", format!("0/{}", port.number)), Element::text("wwn", &port.wwn)];
        leaves.extend([
            Element::number("port-type", kind),
            Element::text("port-type-string", kind_name),
            Element::text("user-friendly-name", port.name(room)),
            Element::number("operational-status", online_number(online)),
            Element::text("operational-status-string", if online { "online" } else { "offline" }),
            Element::number("enabled-state", if port.disabled() { 6 } else { 2 }),
            Element::bool("is-enabled-state", !port.disabled()),
            Element::number("persistent-disable", u32::from(port.disabled())),
            Element::text("physical-state", port.physical_state()),
            Element::number("index", port.number),
            Element::number("default-index", port.number),
            Element::number("long-distance", 0),
        ]);
        if let Some(bits) = port.row.as_ref().and_then(speed) {
            leaves.extend(["speed", "max-speed"].map(|name| Element::number(name, bits)));
        }
        if own.domain.is_some() {
            let login = port.row.as_ref().and_then(|row| bases.get(&row.port));
            let id = address(&own, port.number, login.map(String::as_str));
            leaves.push(Element::number("fcid", id));
            leaves.push(Element::text("fcid-hex", format!("0x{id:06x}")));
        }
        if port.disabled() {
            leaves.push(Element::text("disable-reason", "Disabled by an operator"));
        }
        if let Some(row) = &port.row {
            if let Some(reason) = &row.isolated {
                leaves.push(Element::text("segmentation-reason", reason));
            }
            let empty = Vec::new();
            let logins = wwns.get(&row.port).unwrap_or(&empty);
            let neighbour = neighbours.get(&row.attached).filter(|_| row.mode == PortMode::E);
            let names = neighbour.map(|(name, ..)| name).into_iter().chain(logins.iter().map(|(port, _)| port));
            leaves.push(Element::texts("neighbor", "wwn", names));
            if let Some((_, node)) = logins.first() {
                leaves.push(Element::text("neighbor-node-wwn", node));
            }
            if let Some((_, node, switch, number)) = neighbour {
                leaves.push(Element::text("neighbor-node-wwn", node));
                leaves.push(Element::text("neighbor-slot-port", format!("0/{number}")));
                leaves.push(Element::text("neighbor-switch-user-friendly-name", switch));
            }
        } else {
            leaves.push(Element::container("neighbor", Vec::new()));
        }
        Element::entry("fibrechannel", leaves)
    });
    Ok(entries.collect())
}

/// Port names and node names that are logged in, by the name of the switch port.
type Logins = BTreeMap<String, Vec<(String, String)>>;
/// Port name, switch name, name for people and number of each switch port, by the name of the port.
type Neighbours = BTreeMap<String, (String, String, String, u32)>;

fn neighbours(room: &mut Room<'_>, logged_in: Vec<LoginRow>) -> Result<(Logins, Neighbours), Fault> {
    let mut logins = Logins::new();
    for login in logged_in {
        logins.entry(login.port).or_default().push((login.port_name, login.node_name));
    }
    let switches: BTreeMap<String, String> =
        room.switches()?.into_iter().map(|row| (row.switch, row.switch_name)).collect();
    let all = room.all_ports()?.ports;
    let ports = all.into_iter().filter_map(|row| {
        let (switch, _) = row.port.rsplit_once(':')?;
        let node = switches.get(switch)?.clone();
        let name = room.shared.name_of(switch);
        Some((row.port.clone(), (row.port_name, node, name, row.number)))
    });
    Ok((logins, ports.collect()))
}

/// Port that an entry names.
pub fn find(room: &mut Room<'_>, entry: &Element) -> Result<Port, Fault> {
    let (_, ports) = all(room)?;
    take(&mut by_number(ports), entry)
}

fn by_number(ports: Vec<Port>) -> BTreeMap<u32, Port> {
    ports.into_iter().map(|port| (port.number, port)).collect()
}

/// Takes the port that an entry names.
fn take(ports: &mut BTreeMap<u32, Port>, entry: &Element) -> Result<Port, Fault> {
    let name = entry.leaf("name").ok_or_else(|| Fault::invalid("the body names no port; add its name, such as 0/1"))?;
    ports.remove(&number(&name)?).ok_or_else(|| Fault::missing(format!("the switch has no port {name}")))
}

/// Notes the state that a leaf gives to a port or switch.
///
/// # Errors
/// Another leaf of the entry gives the opposite.
pub fn agree(state: &mut Option<bool>, enabled: bool, leaf: &Element) -> Result<(), Fault> {
    match state.replace(enabled) {
        Some(other) if other != enabled => {
            Err(Fault::invalid(format!("the body both enables and disables: {} contradicts another leaf", leaf.name)))
        }
        _ => Ok(()),
    }
}

/// PATCH of `fibrechannel`. All ports change, or none does.
pub fn patch_ports(room: &mut Room<'_>, entries: &[Element]) -> Result<Change, Fault> {
    let (_, ports) = all(room)?;
    let mut ports = by_number(ports);
    let (mut states, mut names) = (Vec::new(), Vec::new());
    for entry in entries {
        let port = take(&mut ports, entry)?;
        let (enabled, name) = wanted(entry)?;
        names.extend(name.map(|name| (port.key(), name)));
        states.extend(enabled.map(|enabled| (port, enabled)));
    }
    Ok(Box::new(move |room| {
        let switch = room.switch.clone();
        set_enabled(room, states.iter().map(|(port, enabled)| (&*switch, port, *enabled)))?;
        room.shared.lock().names.extend(names);
        Ok(())
    }))
}

/// State and name that an entry gives to its port.
fn wanted(entry: &Element) -> Result<(Option<bool>, Option<String>), Fault> {
    // A port that is not disabled for good may be disabled all the same.
    let (mut given, mut enable, mut not_for_good) = (None, None, false);
    for leaf in entry.children() {
        let value = leaf.value();
        let wrong = || Fault::invalid(format!("`{value}` is not a value of {}", leaf.name));
        match (&*leaf.name, value.trim()) {
            ("enabled-state", "2") | ("is-enabled-state", "true") => agree(&mut enable, true, leaf)?,
            ("persistent-disable", "0" | "false") => not_for_good = true,
            ("enabled-state", "6") | ("is-enabled-state", "false") | ("persistent-disable", "1" | "true") => {
                agree(&mut enable, false, leaf)?;
            }
            ("user-friendly-name", name) => {
                check_name(name, 128)?;
                given = Some(name.to_owned());
            }
            ("name", _) => {}
            _ => return Err(wrong()),
        }
    }
    Ok((enable.or(not_for_good.then_some(true)), given))
}

/// Enables or disables ports, each with the name of its switch, in one request: all change, or none
/// does. A port stays dark while its switch is disabled.
pub fn set_enabled<'p>(
    room: &mut Room<'_>,
    ports: impl Iterator<Item = (&'p str, &'p Port, bool)>,
) -> Result<(), Fault> {
    let changed = ports.filter(|(_, port, enabled)| *enabled == port.disabled());
    let changes: Vec<PortChange> =
        changed.map(|(switch, port, enabled)| PortChange { port: port.lab_name(switch), enabled }).collect();
    if !changes.is_empty() {
        let by = Some(room.user());
        room.ask(Request::Ports { changes, by })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_ports_of_a_switch_are_all_different() {
        let own = SwitchRow { domain: Some(0x13), ..SwitchRow::default() };
        for (number, expected) in
            [(0, 0x13_0000), (255, 0x13_ff00), (256, 0x13_0040), (319, 0x13_3f40), (512, 0x13_0080)]
        {
            assert_eq!(address(&own, number, None), expected, "port {number}");
        }
        assert_eq!(address(&own, 256, Some("130703")), 0x13_0703, "a login has its own address");
        let all: std::collections::BTreeSet<u32> = (0..1_024).map(|number| address(&own, number, None)).collect();
        assert_eq!(all.len(), 1_024);
    }
}
