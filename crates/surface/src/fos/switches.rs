//! Switch, chassis, fabric, trunks, logical switches, and the settings of the interface.

use super::fault::Fault;
use super::resources::Change;
use super::room::Room;
use super::tree::Element;
use super::{FIRMWARE, SESSION_TTL, ports, system};
use crate::server::users::Role;
use sanloom_api::view::{FabricSwitch, IslEnd, PortRow, SwitchRow};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Model number that clients expect; it stands for no product.
const MODEL: &str = "170.0";
/// Maker and product of the chassis.
pub const PRODUCT: &str = "sanloom";

/// Role of a user who reads only.
pub const USER: &str = "user";
/// Role of a user who changes the switch.
pub const ADMIN: &str = "admin";

/// Address of the fabric controller of a domain, such as `fffc01`.
pub fn controller(domain: Option<u8>) -> u32 {
    0xff_fc00 | u32::from(domain.unwrap_or_default())
}

fn virtual_fabric(row: &SwitchRow) -> i128 {
    row.vf_id.map_or(-1, i128::from)
}

/// Body of the answer to a login.
pub fn login_parameters(room: &mut Room<'_>) -> Result<Element, Fault> {
    let own = room.own()?;
    let ids: BTreeSet<u16> = chassis_switches(room, &own)?.iter().filter_map(|row| row.vf_id).collect();
    let role = if room.who.role == Role::View { USER } else { ADMIN };
    let number = |ids: &BTreeSet<u16>, name: &str| -> Vec<Element> {
        let ids = if ids.is_empty() { BTreeSet::from([128]) } else { ids.clone() };
        ids.into_iter().map(|id| Element { in_list: true, ..Element::number(name, id) }).collect()
    };
    let roles = number(&ids, "role-id").into_iter().map(|id| {
        let id = id.value();
        Element { in_list: true, ..Element::text("role-id", format!("{id}={role}")) }
    });
    Ok(Element::container(
        "switch-parameters",
        vec![
            Element::text("user-name", &room.who.user),
            Element::text("user-role", role),
            Element::text("chassis-access-role", role),
            Element::number("home-virtual-fabric", own.vf_id.unwrap_or(128)),
            Element::container("virtual-fabric-role-ids", roles.collect()),
            Element::bool("virtual-fabric-enabled", own.chassis.is_some()),
            Element::bool("virtual-fabric-supported", own.chassis.is_some()),
            Element::container("virtual-fabric-ids", number(&ids, "fabric-id")),
            Element::text("firmware-version", FIRMWARE),
            Element::text("model", MODEL),
        ],
    ))
}

/// Logical switches of the chassis, or the switch alone.
fn chassis_switches(room: &mut Room<'_>, own: &SwitchRow) -> Result<Vec<SwitchRow>, Fault> {
    let same = |row: &SwitchRow| row.switch == own.switch || own.chassis.is_some() && row.chassis == own.chassis;
    Ok(room.switches()?.into_iter().filter(same).collect())
}

/// GET of `fibrechannel-switch`.
pub fn switch(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let own = room.own()?;
    let id = controller(own.domain);
    let enabled = own.up && !own.disabled;
    let online = system::is_online(&own);
    let leaves = vec![
        Element::text("name", &own.switch_name),
        Element::number("domain-id", own.domain.unwrap_or_default()),
        Element::text("user-friendly-name", room.friendly_name()),
        Element::number("fcid", id),
        Element::text("fcid-hex", format!("0x{id:06x}")),
        Element::number("vf-id", virtual_fabric(&own)),
        Element::number("principal", u32::from(own.principal)),
        Element::bool("is-principal", own.principal),
        Element::number("enabled-state", if enabled { 2 } else { 3 }),
        Element::bool("is-enabled-state", enabled),
        Element::number("operational-status", if online { 2 } else { 3 }),
        Element::text("operational-status-string", if online { "online" } else { "offline" }),
        Element::number("up-time", room.uptime_s.max(0.0) as u64),
        Element::text("model", MODEL),
        Element::text("firmware-version", FIRMWARE),
        Element::texts("ip-address", "ip-address", [address(room, &room.switch)]),
        Element::container("ip-static-gateway-list", Vec::new()),
        Element::container("dns-servers", Vec::new()),
        Element::text("fabric-user-friendly-name", room.shared.name("fabric").unwrap_or_default()),
        Element::number("ag-mode", 1),
        Element::text("ag-mode-string", "not configured"),
        Element::text("banner", banner(room)),
    ];
    Ok(vec![Element::entry("fibrechannel-switch", leaves)])
}

/// Banner of the switch.
pub fn banner(room: &Room<'_>) -> String {
    room.shared.name("banner").unwrap_or_else(|| format!("{PRODUCT}: switch {} of a laboratory", room.switch))
}

/// Fails for a text that is not a name of at most this number of characters.
pub fn check_name(value: &str, limit: usize) -> Result<(), Fault> {
    if value.chars().count() > limit || value.chars().any(char::is_control) {
        return Err(Fault::invalid(format!("the name has at most {limit} characters, without control characters")));
    }
    Ok(())
}

/// PATCH of `fibrechannel-switch`.
pub fn patch_switch(room: &mut Room<'_>, entry: &Element) -> Result<Change, Fault> {
    let own = room.own()?;
    if entry.leaf("name").is_some_and(|name| !name.eq_ignore_ascii_case(&own.switch_name)) {
        return Err(Fault::missing(format!("this address belongs to the switch {}", own.switch_name)));
    }
    let (mut names, mut enable) = (Vec::new(), None);
    for leaf in entry.children() {
        let value = leaf.value();
        let (of, limit) = match (&*leaf.name, value.trim()) {
            ("user-friendly-name", _) if value.is_empty() => return Err(Fault::invalid("the name is empty")),
            ("user-friendly-name", _) => ("switch", 30),
            ("fabric-user-friendly-name", _) => ("fabric", 128),
            ("banner", _) => ("banner", 1_022),
            ("enabled-state", "2") | ("is-enabled-state", "true") => {
                ports::agree(&mut enable, true, leaf)?;
                continue;
            }
            ("enabled-state", "3") | ("is-enabled-state", "false") => {
                ports::agree(&mut enable, false, leaf)?;
                continue;
            }
            ("enabled-state" | "is-enabled-state", _) => {
                return Err(Fault::invalid(format!("`{value}` is not a value of {}", leaf.name)));
            }
            _ => continue,
        };
        check_name(&value, limit)?;
        names.push((of.to_owned(), value));
    }
    Ok(Box::new(move |room| {
        if let Some(enabled) = enable {
            system::set_enabled(room, enabled)?;
        }
        room.shared.lock().names.extend(names);
        Ok(())
    }))
}

/// Switches of the fabric of the switch, as far as they run in the instance, with their views.
pub fn members(room: &mut Room<'_>) -> Result<Vec<(SwitchRow, FabricSwitch)>, Fault> {
    let fabrics = room.fabrics()?.switches;
    let own = fabrics.iter().find(|row| row.switch == room.switch).cloned();
    let own = own.ok_or_else(|| Fault::failed("Chassis is not ready for management"))?;
    let rows: BTreeMap<String, SwitchRow> = room.switches()?.into_iter().map(|row| (row.switch.clone(), row)).collect();
    let same = |row: &FabricSwitch| {
        row.switch == own.switch || own.fabric_name.is_some() && row.fabric_name == own.fabric_name
    };
    let mut found: Vec<(SwitchRow, FabricSwitch)> =
        (fabrics.into_iter().filter(same)).filter_map(|row| Some((rows.get(&row.switch)?.clone(), row))).collect();
    found.sort_by_key(|(row, _)| row.domain);
    Ok(found)
}

/// Address of the interfaces of a switch. Without one, a switch has that of the connection.
pub fn address(room: &Room<'_>, switch: &str) -> String {
    let of_connection = (switch == room.switch).then_some(room.address);
    let address = room.shared.address(switch).or(of_connection);
    address.map_or_else(|| "0.0.0.0".to_owned(), |address| address.to_string())
}

/// Rows of `fabricshow` and `fabric-switch`: the switch, its name for people and its address.
pub fn fabric_rows(room: &mut Room<'_>) -> Result<Vec<(SwitchRow, String, String)>, Fault> {
    let members = members(room)?;
    let row = |(row, _): (SwitchRow, FabricSwitch)| {
        let (name, address) = (room.shared.name_of(&row.switch), address(room, &row.switch));
        (row, name, address)
    };
    Ok(members.into_iter().map(row).collect())
}

/// GET of `fabric-switch`.
pub fn fabric_switch(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let routes = room.routes()?.routes;
    let rows = fabric_rows(room)?;
    let mut entries = Vec::new();
    for (row, name, address) in rows {
        let (chassis, chassis_wwn) = (room.chassis_name(&row)?, room.chassis_wwn(&row)?);
        let id = controller(row.domain);
        let paths = routes.iter().find(|route| Some(route.domain) == row.domain).map_or(0, |route| route.legs.len());
        let leaves = vec![
            Element::text("name", &row.switch_name),
            Element::text("switch-user-friendly-name", &name),
            Element::text("chassis-wwn", chassis_wwn),
            Element::text("chassis-user-friendly-name", chassis),
            Element::number("domain-id", row.domain.unwrap_or_default()),
            Element::number("principal", u32::from(row.principal)),
            Element::bool("is-principal", row.principal),
            Element::number("fcid", id),
            Element::text("fcid-hex", format!("0x{id:06x}")),
            Element::text("ip-address", address),
            Element::text("fcip-address", "0.0.0.0"),
            Element::text("ipv6-address", "::"),
            Element::text("firmware-version", FIRMWARE),
            Element::number("path-count", paths as u64),
        ];
        entries.push(Element::entry("fabric-switch", leaves));
    }
    Ok(entries)
}

/// Numbers of the egress ports of a path: `core:1`, or `bundle 3 (core:1, core:2)`.
fn egress(legs: &[String]) -> Vec<String> {
    let parts = legs.iter().flat_map(|leg| leg.split([' ', ',', '(', ')']));
    parts.filter_map(|part| part.rsplit_once(':').map(|(_, number)| number.to_owned())).collect()
}

/// GET of `topology-domain`.
pub fn topology_domain(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let fabric = members(room)?.into_iter().find(|(row, _)| row.switch == room.switch);
    let costs: BTreeMap<String, u32> = fabric
        .iter()
        .flat_map(|(_, fabric)| &fabric.isls)
        .map(|isl| (isl.port.rsplit_once(':').map_or_else(String::new, |(_, port)| port.to_owned()), isl.cost))
        .collect();
    let entries = room.routes()?.routes.into_iter().filter(|route| !route.legs.is_empty()).map(|route| {
        let ports = egress(&route.legs);
        let mut leaves =
            vec![Element::number("domain-id", route.domain), Element::number("path-count", route.legs.len() as u64)];
        // The cost of the whole path is known for a neighbour only.
        let direct = fabric
            .iter()
            .flat_map(|(_, fabric)| &fabric.isls)
            .any(|isl| isl.neighbour.rsplit_once(':').is_some_and(|(switch, _)| switch == route.to));
        if let Some(cost) = ports.first().and_then(|port| costs.get(port)).filter(|_| direct) {
            leaves.push(Element::number("metric", *cost));
        }
        leaves.push(Element::texts("out-ports", "port", ports));
        Element::entry("topology-domain", leaves)
    });
    Ok(entries.collect())
}

/// GET of `topology-route`.
pub fn topology_route(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (_, ports) = ports::all(room)?;
    let inputs: Vec<String> = ports.iter().filter(|port| port.online()).map(|port| port.number.to_string()).collect();
    let mut entries = Vec::new();
    for route in room.routes()?.routes {
        for port in egress(&route.legs) {
            let others = inputs.iter().filter(|input| **input != port);
            entries.push(Element::entry(
                "topology-route",
                vec![
                    Element::number("domain-id", route.domain),
                    Element::text("out-port", &port),
                    Element::texts("in-ports", "port", others),
                ],
            ));
        }
    }
    Ok(entries)
}

/// Bundles of the switch with their links.
pub fn bundles(room: &mut Room<'_>) -> Result<BTreeMap<String, Vec<IslEnd>>, Fault> {
    let mut bundles: BTreeMap<String, Vec<IslEnd>> = BTreeMap::new();
    for (row, fabric) in members(room)? {
        if row.switch == room.switch {
            for isl in fabric.isls.into_iter().filter(|isl| isl.state == "up") {
                if let Some(bundle) = &isl.bundle {
                    bundles.entry(bundle.clone()).or_default().push(isl);
                }
            }
        }
    }
    Ok(bundles)
}

/// GET of `trunk`.
pub fn trunk(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let switches: BTreeMap<String, SwitchRow> =
        room.switches()?.into_iter().map(|row| (row.switch.clone(), row)).collect();
    let mut entries = Vec::new();
    for (group, isls) in (1_u32..).zip(bundles(room)?.into_values()) {
        for (index, isl) in isls.iter().enumerate() {
            let port = |name: &str| name.rsplit_once(':').and_then(|(_, port)| port.parse::<u32>().ok()).unwrap_or(0);
            let far = isl.neighbour.rsplit_once(':').and_then(|(switch, _)| switches.get(switch));
            let mut leaves = vec![
                Element::number("group", group),
                Element::number("source-port", port(&isl.port)),
                Element::number("destination-port", port(&isl.neighbour)),
                Element::bool("master", index == 0),
            ];
            if let Some(far) = far {
                leaves.push(Element::text("neighbor-wwn", &far.switch_name));
                leaves.push(Element::text("neighbor-switch-name", room.shared.name_of(&far.switch)));
                leaves.push(Element::number("neighbor-domain-id", far.domain.unwrap_or_default()));
            }
            entries.push(Element::entry("trunk", leaves));
        }
    }
    if entries.is_empty() { Err(Fault::empty("No trunking Links")) } else { Ok(entries) }
}

/// GET of `fibrechannel-logical-switch`.
pub fn logical_switch(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let own = room.own()?;
    if own.chassis.is_none() {
        return Err(Fault::no_virtual_fabrics());
    }
    let ports: Vec<PortRow> = room.all_ports()?.ports;
    let entries = chassis_switches(room, &own)?.into_iter().map(|row| {
        let default = row.vf_id == Some(128);
        let members = ports::numbers(&ports, &row).into_iter().map(|number| format!("0/{number}"));
        Element::entry(
            "fibrechannel-logical-switch",
            vec![
                Element::number("fabric-id", row.vf_id.unwrap_or(128)),
                Element::text("switch-wwn", &row.switch_name),
                Element::number("base-switch-enabled", 0),
                Element::number("default-switch", u32::from(default)),
                Element::number("default-switch-status", u32::from(default)),
                Element::number("logical-isl-enabled", 0),
                Element::number("ficon-mode-enabled", 0),
                Element::texts("port-member-list", "port-member", members),
            ],
        )
    });
    Ok(entries.collect())
}

/// GET of `fibrechannel-configuration/fabric`.
pub fn fabric_configuration(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let own = room.own()?;
    let leaves = vec![Element::bool("principal-selection-enabled", own.domain.is_some())];
    Ok(vec![Element::container("fabric", leaves)])
}

/// GET of `port-configuration`. Clients add the recovery of credit, which they read at the command
/// line.
pub fn port_configuration(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    Ok(vec![Element::container("port-configuration", vec![Element::text("portname-mode", "default")])])
}

/// GET of `zone-configuration`.
pub fn zone_configuration(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let timeout = room.shared.lock().lock_timeout_s;
    Ok(vec![Element::container("zone-configuration", vec![Element::number("fabric-lock-timeout", timeout)])])
}

/// GET of `chassis-config-settings`.
pub fn chassis_settings(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let ttl = room.shared.chassis().session_ttl_s;
    Ok(vec![Element::container("chassis-config-settings", vec![Element::number("http-session-ttl", ttl)])])
}

/// GET of `management-interface-configuration`.
pub fn management(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let sessions = room.shared.max_sessions(room.mode);
    let leaves = vec![Element::bool("rest-enabled", true), Element::number("max-rest-sessions", sessions)];
    Ok(vec![Element::container("management-interface-configuration", leaves)])
}

/// PATCH of the settings of the interface.
pub fn patch_limits(room: &mut Room<'_>, entry: &Element) -> Result<Change, Fault> {
    let within = |value: &str, range: RangeInclusive<u32>| -> Result<u32, Fault> {
        let number = value.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| Fault::invalid(format!("`{value}` is not between {} and {}", range.start(), range.end())))
    };
    let limit = |leaf: &str, range: RangeInclusive<u32>| -> Result<Option<u32>, Fault> {
        entry.leaf(leaf).map(|value| within(&value, range)).transpose()
    };
    let lock = limit("fabric-lock-timeout", 300..=1_830)?;
    let ttl = limit("http-session-ttl", SESSION_TTL)?;
    // A client may send the present limit back, also one above the range.
    let present = room.shared.max_sessions(room.mode).to_string();
    let is_present = entry.leaf("max-rest-sessions").is_some_and(|value| value.trim() == present);
    let sessions = if is_present { None } else { limit("max-rest-sessions", 1..=10)? };
    Ok(Box::new(move |room| {
        let mut settings = room.shared.lock();
        settings.lock_timeout_s = lock.unwrap_or(settings.lock_timeout_s);
        let mut chassis = room.shared.chassis();
        chassis.session_ttl_s = ttl.unwrap_or(chassis.session_ttl_s);
        chassis.max_sessions = sessions.or(chassis.max_sessions);
        Ok(())
    }))
}

/// GET of `chassis`.
pub fn chassis(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let own = room.own()?;
    let (name, wwn) = (room.chassis_name(&own)?, room.chassis_wwn(&own)?);
    let date = Date::of(room.now.unix_s);
    let leaves = vec![
        Element::text("chassis-user-friendly-name", name),
        Element::text("chassis-wwn", wwn),
        Element::text("manufacturer", PRODUCT),
        Element::text("product-name", PRODUCT),
        Element::bool("vf-enabled", own.chassis.is_some()),
        Element::bool("vf-supported", own.chassis.is_some()),
        Element::number("max-blades-supported", 1),
        Element::text(
            "date",
            format!(
                "{:02}/{:02}/{:04}-{:02}:{:02}:{:02}",
                date.month, date.day, date.year, date.hour, date.minute, date.second
            ),
        ),
    ];
    Ok(vec![Element::container("chassis", leaves)])
}

/// PATCH of `chassis`.
pub fn patch_chassis(_: &mut Room<'_>, entry: &Element) -> Result<Change, Fault> {
    let name = entry.leaf("chassis-user-friendly-name");
    name.as_ref().map_or(Ok(()), |name| check_name(name, 31))?;
    Ok(Box::new(move |room| {
        if let Some(name) = name {
            room.shared.chassis().name = Some(name);
        }
        Ok(())
    }))
}

/// GET of `switch-status-policy-report`. Only the state of the switch and its ports is known.
pub fn status_policy(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (own, ports) = ports::all(room)?;
    let online = system::is_online(&own);
    let isolated = ports.iter().any(|port| port.row.as_ref().is_some_and(|row| row.isolated.is_some()));
    let health = |good: bool, bad| if good { "healthy" } else { bad };
    let leaves = vec![
        Element::text("switch-health", health(online, "down")),
        Element::text("error-port-health", health(!isolated, "marginal")),
        Element::text("marginal-port-health", "healthy"),
        Element::text("faulty-port-health", "healthy"),
    ];
    Ok(vec![Element::container("switch-status-policy-report", leaves)])
}

/// GET of `time-zone`.
pub fn time_zone(_: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let leaves = vec![
        Element::text("name", "Etc/UTC"),
        Element::number("gmt-offset-hours", 0),
        Element::number("gmt-offset-minutes", 0),
    ];
    Ok(vec![Element::container("time-zone", leaves)])
}

/// Date and time in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Date {
    /// Year.
    pub year: u64,
    /// Month, from 1.
    pub month: u64,
    /// Day, from 1.
    pub day: u64,
    /// Hour.
    pub hour: u64,
    /// Minute.
    pub minute: u64,
    /// Second.
    pub second: u64,
}

impl Date {
    /// Date of a number of seconds since 1970, in the Gregorian calendar.
    pub fn of(unix_s: u64) -> Date {
        let (days, second) = (unix_s / 86_400, unix_s % 86_400);
        // Eras of 400 years begin on 1 March (Hinnant, "chrono-compatible date algorithms").
        let days = days + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let (month, day) =
            (if shifted < 10 { shifted + 3 } else { shifted - 9 }, of_year - (153 * shifted + 2) / 5 + 1);
        let year = year + era * 400 + u64::from(month <= 2);
        Date { year, month, day, hour: second / 3_600, minute: second / 60 % 60, second: second % 60 }
    }

    /// Name of the month, in three letters.
    pub fn month_name(&self) -> &'static str {
        const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        MONTHS[(self.month as usize).saturating_sub(1) % 12]
    }

    /// Date and time in UTC, as `date` prints it.
    pub fn line(unix_s: u64) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        let date = Date::of(unix_s);
        let (weekday, month) = (DAYS[(unix_s / 86_400 % 7) as usize], date.month_name());
        let Date { year, day, hour, minute, second, .. } = date;
        format!("{weekday} {month} {day:>2} {hour:02}:{minute:02}:{second:02} UTC {year}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |unix_s| {
            let Date { year, month, day, hour, minute, second } = Date::of(unix_s);
            (year, month, day, hour, minute, second)
        };
        assert_eq!(date(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(date(951_827_696), (2000, 2, 29, 12, 34, 56));
        assert_eq!(date(1_710_465_925), (2024, 3, 15, 1, 25, 25));
    }
}
