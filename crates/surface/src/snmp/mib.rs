//! Objects of a switch: the system group, interfaces (RFC 2863), ports of Fibre Channel (RFC 4044),
//! and the tables that monitoring templates for Fabric OS read (SW-MIB).

use super::ber::Oid;
use super::message::Value;
use super::tree::Tree;
use crate::fos::FIRMWARE;
use crate::fos::counters::counted;
use crate::fos::fault::Fault;
use crate::fos::ports::{Port, all, speed};
use crate::fos::room::Room;
use crate::fos::switches::{Date, PRODUCT};
use crate::fos::system::is_online;
use crate::server::process::Usage;
use sanloom_api::view::{PortMode, SwitchRow};
use std::collections::BTreeMap;

const SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 1];
const INTERFACES: &[u32] = &[1, 3, 6, 1, 2, 1, 2];
const FIBRE_CHANNEL: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 56, 1];
const IF_X_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1];
const SWITCH: &[u32] = &[1, 3, 6, 1, 4, 1, 1588, 2, 1, 1, 1];
const ENTITIES: &[u32] = &[1, 3, 6, 1, 2, 1, 47];
/// Classes of physical entities.
const CHASSIS: u32 = 3;
const PORT: u32 = 10;
/// `fibreChannel` of the registry of interface types.
const IF_TYPE: i32 = 56;
/// Largest payload of a frame.
const MTU: i32 = 2_112;

struct Builder(Vec<(Oid, Value)>);

impl Builder {
    fn add(&mut self, base: &[u32], rest: &[u32], value: Value) {
        self.0.push(([base, rest].concat(), value));
    }

    /// Columns of a row of a table.
    fn row(&mut self, table: &[u32], index: &[u32], columns: impl IntoIterator<Item = (u32, Value)>) {
        for (column, value) in columns {
            self.add(table, &[&[1, column], index].concat(), value);
        }
    }
}

/// A counter of 32 bits wraps.
fn wrapped(value: u64) -> Value {
    Value::Counter32(value as u32)
}

/// Bytes of a world-wide name.
fn name_bytes(name: &str) -> Vec<u8> {
    name.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

fn truth(is_true: bool) -> Value {
    Value::Integer(if is_true { 1 } else { 2 })
}

fn port_name(number: u32) -> String {
    format!("0/{number}")
}

/// Reads the objects of a switch.
pub fn read(room: &mut Room<'_>) -> Result<Tree, Fault> {
    let (own, ports) = all(room)?;
    let is_online = is_online(&own);
    let mut builder = Builder(Vec::new());
    system(&mut builder, room, &own, is_online);
    builder.add(INTERFACES, &[1, 0], Value::Integer(i32::try_from(ports.len()).unwrap_or(i32::MAX)));
    builder.add(SWITCH, &[6, 1, 0], Value::Integer(i32::try_from(ports.len()).unwrap_or(i32::MAX)));
    let mut names = Vec::new();
    for port in &ports {
        let name = port.name(room);
        port_rows(&mut builder, &own, port, &name);
        names.push((port.number, name));
    }
    let chassis = (room.chassis_name(&own)?, room.chassis_wwn(&own)?);
    entities(&mut builder, &chassis, &names);
    if let Some(usage) = Usage::read() {
        let memory = usage.memory_bytes.saturating_mul(100) / usage.total_bytes.max(1);
        for (object, percent) in [(1, usage.processor_percent), (6, memory)] {
            builder.add(SWITCH, &[26, object, 0], Value::Integer(i32::try_from(percent).unwrap_or(i32::MAX)));
        }
    }
    Ok(Tree::new(builder.0))
}

fn system(builder: &mut Builder, room: &Room<'_>, own: &SwitchRow, is_online: bool) {
    let version = env!("CARGO_PKG_VERSION");
    let ticks = (room.uptime_s.max(0.0) * 100.0) as u64 as u32;
    let name = room.friendly_name();
    let group = [
        (1, Value::text(&format!("{PRODUCT} {version}: a switch of a laboratory"))),
        (2, Value::Oid(SWITCH.to_vec())),
        (3, Value::TimeTicks(ticks)),
        (4, Value::text("")),
        (5, Value::text(&name)),
        (6, Value::text("")),
        // Functions of the data link layer.
        (7, Value::Integer(2)),
    ];
    for (object, value) in group {
        builder.add(SYSTEM, &[object, 0], value);
    }
    let now = room.now.unix_s;
    let start = now.saturating_sub(room.uptime_s.max(0.0) as u64);
    let state = Value::Integer(if is_online { 1 } else { 2 });
    let objects: [(&[u32], Value); 8] = [
        (&[1, 1, 0], Value::text(&Date::line(now))),
        (&[1, 2, 0], Value::text(&Date::line(start))),
        (&[1, 6, 0], Value::text(FIRMWARE)),
        (&[1, 7, 0], state.clone()),
        (&[1, 8, 0], state),
        (&[1, 10, 0], Value::text(&own.switch_name.replace(':', ""))),
        (&[2, 1, 0], Value::Integer(own.domain.unwrap_or_default().into())),
        (&[2, 2, 0], truth(own.principal)),
    ];
    for (object, value) in objects {
        builder.add(SWITCH, object, value);
    }
    let instance = [
        (2, Value::Octets(name_bytes(&own.switch_name))),
        (6, Value::Integer(if is_online { 2 } else { 3 })),
        (7, Value::text(&name)),
        (8, Value::text(&format!("{PRODUCT} switch"))),
    ];
    builder.row(&[FIBRE_CHANNEL, &[1]].concat(), &[1], instance);
    let switch = [
        (2, Value::Integer(own.domain.unwrap_or_default().into())),
        (3, truth(own.principal)),
        (4, Value::Octets(name_bytes(&own.switch_name))),
    ];
    builder.row(&[FIBRE_CHANNEL, &[2]].concat(), &[1, 1], switch);
}

/// Values of a port for all tables.
struct Seen<'p> {
    port: &'p Port,
    name: &'p str,
    /// World-wide name in bytes.
    wwn: Vec<u8>,
    counters: BTreeMap<&'static str, u64>,
    bits: u64,
}

impl Seen<'_> {
    /// A counter. Bytes may be absent.
    fn of(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }

    fn discards(&self) -> u64 {
        self.of("class-3-discards").unwrap_or_default()
    }
}

fn port_rows(builder: &mut Builder, own: &SwitchRow, port: &Port, name: &str) {
    let row = port.row.as_ref();
    let seen = Seen {
        port,
        name,
        wwn: name_bytes(&port.wwn),
        counters: row.map(counted).unwrap_or_default(),
        bits: row.and_then(speed).unwrap_or_default(),
    };
    let Some(index) = port.number.checked_add(1) else { return };
    builder.row(&[INTERFACES, &[2]].concat(), &[index], interface(&seen, index));
    builder.row(IF_X_TABLE, &[index], interface_x(&seen));
    builder.row(&[SWITCH, &[6, 2]].concat(), &[index], switch_port(&seen, index));
    builder.row(&[FIBRE_CHANNEL, &[3]].concat(), &[index], managed_port(&seen, own));
    let statistics =
        [(1, "bb-credit-zero"), (16, "in-frames"), (17, "in-octets"), (18, "out-frames"), (19, "out-octets")];
    let statistics =
        statistics.into_iter().filter_map(|(column, name)| Some((column, Value::Counter64(seen.of(name)?))));
    let discards = (20, Value::Counter64(seen.discards()));
    builder.row(&[FIBRE_CHANNEL, &[4]].concat(), &[index], statistics.chain([discards]));
    let errors = [
        (1, "in-link-resets"),
        (2, "out-link-resets"),
        (6, "link-failures"),
        (8, "loss-of-signal"),
        (11, "crc-errors"),
        (13, "frames-too-long"),
        (14, "truncated-frames"),
    ];
    let errors = errors.into_iter().filter_map(|(column, name)| Some((column, wrapped(seen.of(name)?))));
    builder.row(&[FIBRE_CHANNEL, &[6]].concat(), &[index], errors);
}

/// Columns of `fcmPortTable` (RFC 4044). Types of ports: 1 unknown, 8 F_Port, 9 E_Port.
fn managed_port(seen: &Seen<'_>, own: &SwitchRow) -> Vec<(u32, Value)> {
    let mode = seen.port.row.as_ref().map(|row| row.mode).filter(|_| seen.port.online());
    // Bits of the classes of service: class F is the first, class 3 the fourth.
    let (kind, classes) = match mode {
        Some(PortMode::F) => (8, 0x10),
        Some(PortMode::E) => (9, 0x90),
        _ => (1, 0),
    };
    vec![
        (1, Value::Gauge32(1)),
        (2, Value::Octets(seen.wwn.clone())),
        (3, Value::Octets(name_bytes(&own.switch_name))),
        (5, Value::Gauge32(kind)),
        (6, Value::Octets(vec![0x90])),
        (7, Value::Octets(vec![classes])),
        (11, Value::Gauge32(seen.port.number)),
        // The speed is negotiated.
        (12, Value::Integer(1)),
    ]
}

/// The chassis and its ports (ENTITY-MIB, RFC 6933). The chassis is the first entity.
fn entities(builder: &mut Builder, (chassis, wwn): &(String, String), ports: &[(u32, String)]) {
    let integer = |number: u32| Value::Integer(i32::try_from(number).unwrap_or(i32::MAX));
    let mut entity = |index: u32, about: String, inside: u32, class: u32, place: u32, name: &str| {
        let mut columns = vec![
            (2, Value::text(&about)),
            (3, Value::Oid(vec![0, 0])),
            (4, integer(inside)),
            (5, integer(class)),
            (6, integer(place)),
            (7, Value::text(name)),
            (12, Value::text(PRODUCT)),
            (16, truth(false)),
        ];
        if class == CHASSIS {
            columns.extend([
                (10, Value::text(FIRMWARE)),
                (11, Value::text(&wwn.replace(':', ""))),
                (13, Value::text(&format!("{PRODUCT} switch"))),
            ]);
        }
        builder.row(&[ENTITIES, &[1, 1, 1]].concat(), &[index], columns);
    };
    entity(1, format!("{PRODUCT} switch of a laboratory"), 0, CHASSIS, 0, chassis);
    for (number, name) in ports {
        let Some(index) = number.checked_add(2) else { continue };
        entity(index, format!("FC port {}", port_name(*number)), 1, PORT, *number, name);
    }
    for (number, _) in ports {
        let (Some(index), Some(interface)) = (number.checked_add(2), number.checked_add(1)) else { continue };
        let of_interface = [INTERFACES, &[2, 1, 1, interface]].concat();
        builder.row(&[ENTITIES, &[1, 3, 2]].concat(), &[index, 0], [(2, Value::Oid(of_interface))]);
    }
}

fn interface(seen: &Seen<'_>, index: u32) -> Vec<(u32, Value)> {
    let up = |is_up: bool| Value::Integer(if is_up { 1 } else { 2 });
    let mut columns = vec![
        (1, Value::Integer(i32::try_from(index).unwrap_or(i32::MAX))),
        (2, Value::text(&format!("FC port {}", port_name(seen.port.number)))),
        (3, Value::Integer(IF_TYPE)),
        (4, Value::Integer(MTU)),
        (5, Value::Gauge32(u32::try_from(seen.bits).unwrap_or(u32::MAX))),
        (6, Value::Octets(seen.wwn.clone())),
        (7, up(!seen.port.disabled())),
        (8, up(seen.port.online())),
        (9, Value::TimeTicks(0)),
        // Devices send no broadcast and no multicast frames.
        (12, Value::Counter32(0)),
        (18, Value::Counter32(0)),
        (21, Value::Gauge32(0)),
        (13, wrapped(seen.of("class3-in-discards").unwrap_or_default())),
        (14, wrapped(seen.of("crc-errors").unwrap_or_default() + seen.of("frames-too-long").unwrap_or_default())),
        (15, Value::Counter32(0)),
        (19, wrapped(seen.of("class3-out-discards").unwrap_or_default())),
        (20, Value::Counter32(0)),
    ];
    let counters = [(10, "in-octets"), (11, "in-frames"), (16, "out-octets"), (17, "out-frames")];
    columns.extend(counters.into_iter().filter_map(|(column, name)| Some((column, wrapped(seen.of(name)?)))));
    columns
}

fn interface_x(seen: &Seen<'_>) -> Vec<(u32, Value)> {
    let mut columns = vec![
        (1, Value::text(&port_name(seen.port.number))),
        (15, Value::Gauge32(u32::try_from(seen.bits / 1_000_000).unwrap_or(u32::MAX))),
        (14, Value::Integer(2)),
        (16, truth(false)),
        (17, truth(true)),
        (18, Value::text(seen.name)),
        (19, Value::TimeTicks(0)),
    ];
    columns.extend([2, 3, 4, 5].map(|column| (column, Value::Counter32(0))));
    columns.extend([8, 9, 12, 13].map(|column| (column, Value::Counter64(0))));
    let counters = [(6, "in-octets"), (7, "in-frames"), (10, "out-octets"), (11, "out-frames")];
    let counters = counters.into_iter().filter_map(|(column, name)| Some((column, Value::Counter64(seen.of(name)?))));
    columns.extend(counters);
    columns
}

fn switch_port(seen: &Seen<'_>, index: u32) -> Vec<(u32, Value)> {
    let port = seen.port;
    let mode = port.row.as_ref().map(|row| row.mode);
    let physical = match &port.row {
        // No transceiver, in synchronisation, no light.
        None => 2,
        Some(row) if row.light => 6,
        Some(_) => 4,
    };
    let kind = match mode.filter(|_| port.online()) {
        Some(PortMode::F) => 4,
        Some(PortMode::E) => 5,
        _ => 6,
    };
    let online = |is_online: bool| Value::Integer(if is_online { 1 } else { 2 });
    let mut columns = vec![
        (1, Value::Integer(i32::try_from(index).unwrap_or(i32::MAX))),
        // A type of chip that is none of the list.
        (2, Value::Integer(7)),
        (3, Value::Integer(physical)),
        (4, online(port.online())),
        (5, online(!port.disabled())),
        (6, online(!port.disabled())),
        (7, Value::Integer(1)),
        (28, wrapped(seen.discards())),
        (34, Value::Octets(seen.wwn.clone())),
        (36, Value::text(seen.name)),
        (37, Value::text(&port_name(port.number))),
        (39, Value::Integer(kind)),
    ];
    // A word has four bytes.
    let words = [(11, "out-octets"), (12, "in-octets")];
    columns.extend(words.into_iter().filter_map(|(column, name)| Some((column, wrapped(seen.of(name)? / 4)))));
    let counters = [
        (13, "out-frames"),
        (14, "in-frames"),
        (16, "class-3-frames"),
        (20, "bb-credit-zero"),
        (22, "crc-errors"),
        (23, "truncated-frames"),
        (24, "frames-too-long"),
    ];
    columns.extend(counters.into_iter().filter_map(|(column, name)| Some((column, wrapped(seen.of(name)?)))));
    columns
}
