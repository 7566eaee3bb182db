//! Metrics of a running world, with the names that a live instance uses.

use crate::view;
use crate::world::{World, operator};
use sanloom_api::metrics::{Sheet, labels};
use sanloom_api::view::build::Which;
use sanloom_api::view::{EthernetPortRow, InfinibandPortRow, PORT_COUNTERS, PlaneWhich, PortRow, SwitchRow, Table};

/// Returns all metrics as text.
pub(super) fn text(world: &World) -> String {
    let mut sheet = Sheet::default();
    let lab = labels(&[("lab", &world.lab.name)]);
    let seconds = view::run_s(world);
    sheet.gauge("uptime_seconds", "Virtual time since the start of the workloads", [(lab, seconds)]);
    if let Table::Ports(table) = view::of(world, Which::Ports, None).table {
        ports(&mut sheet, &table.ports);
    }
    if let Table::Switch(table) = view::of(world, Which::Switch, None).table {
        switches(&mut sheet, &table.switches);
    }
    if let Table::Ethernet(table) = view::of_planes(world, PlaneWhich::Ethernet).table {
        ethernet(&mut sheet, &table.ports);
    }
    if let Table::Infiniband(table) = view::of_planes(world, PlaneWhich::Infiniband).table {
        infiniband(&mut sheet, &table.ports);
    }
    let totals = operator::state(world).into_iter().flat_map(|operator| operator.log.totals());
    let events = totals.map(|(severity, count)| (labels(&[("severity", severity.word())]), count));
    sheet.counter("events", "Events of the log, by severity", events);
    let rules = operator::state(world).map(operator::Operator::rules).unwrap_or_default().rules;
    let injected = rules.iter().map(|rule| {
        (labels(&[("port", &rule.port), ("rule", &rule.id.to_string()), ("act", &rule.act)]), rule.injected)
    });
    sheet.counter("injected_frames", "Frames with a fault injected by a rule", injected);
    sheet.text()
}

fn ports(sheet: &mut Sheet, rows: &[PortRow]) {
    let of = |row: &PortRow, more: &[(&str, &str)]| {
        let own = row.labels();
        let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, &**value)).collect();
        labels(&[&own, more].concat())
    };
    sheet.gauge(
        "port_up",
        "The link of the port carries light",
        rows.iter().map(|row| (of(row, &[]), f64::from(row.light))),
    );
    let both = |value: fn(&PortRow) -> [u64; 2]| {
        rows.iter().flat_map(move |row| {
            let [received, sent] = value(row);
            [(of(row, &[("direction", "in")]), received), (of(row, &[("direction", "out")]), sent)]
        })
    };
    sheet.counter("port_frames", "Frames of the port", both(|row| [row.frames_received, row.frames_sent]));
    let bytes = |row: &PortRow| [row.bytes_received, row.bytes_sent].map(Option::unwrap_or_default);
    sheet.counter("port_bytes", "Bytes of the port", both(bytes));
    let drops = rows
        .iter()
        .flat_map(|row| row.discards.iter().map(|(reason, frames)| (of(row, &[("reason", reason)]), *frames)));
    sheet.counter("port_dropped_frames", "Frames that were dropped, by reason", drops);
    for counter in PORT_COUNTERS {
        let values = rows.iter().filter_map(|row| Some((of(row, &[]), (counter.of)(&row.errors)?)));
        match counter.is_time() {
            true => sheet.seconds(&counter.metric(), counter.help, values),
            false => sheet.counter(&counter.metric(), counter.help, values),
        }
    }
}

fn switches(sheet: &mut Sheet, rows: &[SwitchRow]) {
    let of = |row: &SwitchRow| labels(&[("switch", &row.switch)]);
    let domains = rows.iter().map(|row| (of(row), f64::from(row.domain.unwrap_or(0))));
    sheet.gauge("switch_domain", "Domain; 0: none", domains);
    let logins = rows.iter().map(|row| (of(row), f64::from(row.logins)));
    sheet.gauge("switch_logins", "Number of N_Port_IDs that are logged in", logins);
    let isolated = rows.iter().map(|row| (of(row), f64::from(row.isolated_ports)));
    sheet.gauge("switch_isolated_ports", "Ports isolated from their neighbour", isolated);
    sheet.counter(
        "switch_rejected_logins",
        "Logins that were rejected",
        rows.iter().map(|row| (of(row), row.logins_rejected)),
    );
}

/// Adds the metrics of Ethernet, if the lab has it.
fn ethernet(sheet: &mut Sheet, rows: &[EthernetPortRow]) {
    if rows.is_empty() {
        return;
    }
    let of = |row: &EthernetPortRow, more: &[(&str, &str)]| {
        labels(&[&[("link", &*row.link), ("port", &*row.port)], more].concat())
    };
    let each = |value: fn(&EthernetPortRow) -> u64| rows.iter().map(move |row| (of(row, &[]), value(row)));
    let up = rows.iter().map(|row| (of(row, &[]), f64::from(row.light)));
    sheet.gauge("ethernet_port_up", "The link of the port is up", up);
    sheet.counter("ethernet_port_sent_frames", "Frames sent, without pause frames", each(|row| row.frames_sent));
    sheet.counter("ethernet_port_sent_bytes", "Bytes of the frames sent, with FCS", each(|row| row.bytes_sent));
    sheet.counter("ethernet_port_sent_pauses", "Pause frames sent", each(|row| row.pauses_sent));
    sheet.counter(
        "ethernet_port_marked_frames",
        "Frames marked in the queue of the port",
        each(|row| row.marked_frames),
    );
    let queued = rows.iter().map(|row| (of(row, &[]), row.queued_bytes as f64));
    sheet.gauge("ethernet_port_queued_bytes", "Bytes that wait for the line", queued);
    let drops = rows
        .iter()
        .flat_map(|row| row.discards.iter().map(|(reason, frames)| (of(row, &[("reason", reason)]), *frames)));
    sheet.counter("ethernet_port_dropped_frames", "Frames lost on the way to the port or at it, by reason", drops);
}

/// Adds the metrics of InfiniBand, if the lab has it.
fn infiniband(sheet: &mut Sheet, rows: &[InfinibandPortRow]) {
    if rows.is_empty() {
        return;
    }
    let of = |row: &InfinibandPortRow, more: &[(&str, &str)]| {
        labels(&[&[("link", &*row.link), ("port", &*row.port)], more].concat())
    };
    let each = |value: fn(&InfinibandPortRow) -> u64| rows.iter().map(move |row| (of(row, &[]), value(row)));
    let up = rows.iter().map(|row| (of(row, &[]), f64::from(row.light)));
    sheet.gauge("infiniband_port_up", "The link of the port is up", up);
    sheet.counter("infiniband_port_sent_packets", "Packets sent", each(|row| row.packets_sent));
    sheet.counter("infiniband_port_sent_bytes", "Bytes of the packets sent", each(|row| row.bytes_sent));
    let waits = each(|row| row.credit_waits);
    sheet.counter("infiniband_port_credit_waits", "Times that no packet had credit", waits);
    let drops = rows
        .iter()
        .flat_map(|row| row.discards.iter().map(|(reason, packets)| (of(row, &[("reason", reason)]), *packets)));
    sheet.counter("infiniband_port_dropped_packets", "Packets lost on the way to the port or at it, by reason", drops);
}
