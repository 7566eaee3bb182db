//! Metrics of a running world, with the names that a live instance uses.

use crate::view;
use crate::world::{World, operator};
use sanloom_api::metrics::{Sheet, labels};
use sanloom_api::view::build::Which;
use sanloom_api::view::{PortRow, SwitchRow, Table};

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
    let rules = operator::state(world).map(operator::Operator::rules).unwrap_or_default().rules;
    let injected = rules.iter().map(|rule| {
        (labels(&[("port", &rule.port), ("rule", &rule.id.to_string()), ("act", &rule.act)]), rule.injected)
    });
    sheet.counter("injected_frames", "Frames with a fault injected by a rule", injected);
    sheet.text()
}

fn ports(sheet: &mut Sheet, rows: &[PortRow]) {
    let of =
        |row: &PortRow, more: &[(&str, &str)]| labels(&[&[("link", &*row.link), ("port", &*row.port)], more].concat());
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
