//! Text tables of links, Ethernet and InfiniBand.

use super::grid::{Column, Grid};
use crate::report::format::{clean, grouped, seconds};
use sanloom_api::view::{ChannelsView, ConnectionsView, EthernetView, InfinibandView, LinksView, Plane};
use std::collections::BTreeMap;

pub(super) fn links(out: &mut String, table: &LinksView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("link"),
        Column::left("plane"),
        Column::left("rate"),
        Column::left("from"),
        Column::left("to"),
        Column::left("state"),
        Column::left("reason"),
    ]);
    for row in &table.links {
        let plane = match row.plane {
            Plane::FibreChannel => "Fibre Channel",
            Plane::Virtual => "virtual",
            Plane::Ethernet => "Ethernet",
            Plane::Infiniband => "InfiniBand",
        };
        grid.row(vec![
            clean(&row.link),
            plane.to_owned(),
            row.rate.clone(),
            clean(&row.ends[0]),
            clean(&row.ends[1]),
            state(row.up),
            clean(&row.reason),
        ]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn ethernet(out: &mut String, table: &EthernetView, width: usize) {
    let mut switches = Grid::new(vec![
        Column::left("switch"),
        Column::right("ports"),
        Column::right("memory"),
        Column::right("held"),
        Column::right("most held"),
        Column::right("pauses").rank(1),
        Column::right("marked").rank(2),
        Column::left("discards").rank(3),
    ]);
    for row in &table.switches {
        switches.row(vec![
            clean(&row.switch),
            row.ports.to_string(),
            grouped(row.memory_bytes),
            grouped(row.memory_held_bytes),
            grouped(row.memory_max_bytes),
            unless_zero(row.pauses_sent),
            unless_zero(row.marked_frames),
            reasons(&row.discards),
        ]);
    }
    let mut ports = Grid::new(vec![
        Column::left("port"),
        Column::left("attached"),
        Column::left("rate"),
        Column::left("state"),
        Column::right("frames out"),
        Column::right("bytes out").rank(2),
        Column::right("pauses out").rank(1),
        Column::left("paused").rank(2),
        Column::right("marked").rank(3),
        Column::right("queued").rank(3),
        Column::right("longest queue").rank(3),
        Column::right("headroom used").rank(4),
        Column::left("discards").rank(2),
        Column::left("link").rank(4),
    ]);
    for row in &table.ports {
        let paused: Vec<String> =
            row.paused_s.iter().map(|(priority, s)| format!("{priority}: {}", seconds(*s))).collect();
        ports.row(vec![
            clean(&row.port),
            clean(&row.attached),
            row.rate.clone(),
            state(row.light),
            grouped(row.frames_sent),
            grouped(row.bytes_sent),
            unless_zero(row.pauses_sent),
            paused.join(", "),
            unless_zero(row.marked_frames),
            unless_zero(row.queued_bytes),
            unless_zero(row.queue_max_bytes),
            unless_zero(row.headroom_max_bytes),
            reasons(&row.discards),
            clean(&row.link),
        ]);
    }
    if !table.switches.is_empty() {
        out.push_str(&switches.render(width));
    }
    out.push_str(&ports.render(width));
}

pub(super) fn connections(out: &mut String, table: &ConnectionsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("end"),
        Column::left("peer"),
        Column::left("carries").rank(2),
        Column::left("state"),
        Column::right("window"),
        Column::right("threshold").rank(3),
        Column::right("round trip").rank(1),
        Column::right("receive buffer").rank(4),
        Column::right("acknowledged").rank(2),
        Column::right("received").rank(2),
        Column::right("repeated").rank(1),
        Column::right("time-outs").rank(2),
        Column::right("recoveries").rank(3),
        Column::right("marks").rank(3),
    ]);
    for row in &table.connections {
        grid.row(vec![
            clean(&row.end),
            clean(&row.peer),
            row.carries.clone(),
            row.state.clone(),
            grouped(row.window_bytes),
            row.threshold_bytes.map(grouped).unwrap_or_default(),
            row.round_trip_us.map(|us| format!("{us:.1} us")).unwrap_or_default(),
            grouped(row.receive_buffer_bytes),
            grouped(row.acknowledged_bytes),
            grouped(row.received_bytes),
            unless_zero(row.retransmissions),
            unless_zero(row.timeouts),
            unless_zero(row.recoveries),
            unless_zero(row.marks),
        ]);
    }
    out.push_str(&grid.render(width));
}

/// Formats ascending LIDs as ranges: `1-3 7`.
fn lids(lids: &[u16]) -> String {
    let runs = lids.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(" ")
}

pub(super) fn infiniband(out: &mut String, table: &InfinibandView, width: usize) {
    let mut switches = Grid::new(vec![
        Column::left("switch"),
        Column::left("GUID"),
        Column::right("LID"),
        Column::right("ports"),
        Column::right("routes"),
    ]);
    for row in &table.switches {
        switches.row(vec![
            clean(&row.switch),
            row.guid.clone(),
            row.lid.map(|lid| lid.to_string()).unwrap_or_default(),
            row.ports.to_string(),
            row.routes.to_string(),
        ]);
    }
    if !table.switches.is_empty() {
        out.push_str(&switches.render(width));
    }
    let mut grid = Grid::new(vec![
        Column::left("port"),
        Column::left("GUID").rank(3),
        Column::right("LID"),
        Column::left("routes").rank(1),
        Column::left("attached"),
        Column::left("rate"),
        Column::left("state"),
        Column::right("packets out"),
        Column::right("bytes out").rank(2),
        Column::right("flow control").rank(4),
        Column::left("credit by lane").rank(1),
        Column::right("blocks").rank(2),
        Column::right("queued").rank(3),
        Column::right("credit waits").rank(2),
        Column::right("waited").rank(3),
        Column::right("stalls").rank(4),
        Column::left("discards").rank(2),
        Column::left("link").rank(4),
    ]);
    for row in &table.ports {
        let credits: Vec<String> = row.lane_credits.iter().map(u16::to_string).collect();
        grid.row(vec![
            clean(&row.port),
            row.guid.clone().unwrap_or_default(),
            row.lid.map(|lid| lid.to_string()).unwrap_or_default(),
            lids(&row.routes),
            clean(&row.attached),
            row.rate.clone(),
            state(row.light),
            grouped(row.packets_sent),
            grouped(row.bytes_sent),
            grouped(row.flow_sent),
            credits.join(" "),
            row.blocks.to_string(),
            unless_zero(row.queued_packets),
            unless_zero(row.credit_waits),
            if row.credit_waits > 0 { seconds(row.credit_wait_s) } else { String::new() },
            unless_zero(row.lane_stalls),
            reasons(&row.discards),
            clean(&row.link),
        ]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn channels(out: &mut String, table: &ChannelsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("initiator"),
        Column::left("target"),
        Column::left("state"),
        Column::right("connections").rank(2),
        Column::right("requests"),
        Column::right("responses"),
        Column::right("credit waits").rank(1),
        Column::right("bytes written").rank(2),
        Column::right("bytes read").rank(2),
        Column::right("repetitions").rank(3),
    ]);
    for row in &table.channels {
        grid.row(vec![
            clean(&row.initiator),
            clean(&row.target),
            if row.up { "logged in" } else { "not logged in" }.to_owned(),
            row.connections.to_string(),
            grouped(row.requests),
            grouped(row.responses),
            unless_zero(row.credit_waits),
            grouped(row.rdma_written_bytes),
            grouped(row.rdma_read_bytes),
            unless_zero(row.repetitions),
        ]);
    }
    out.push_str(&grid.render(width));
}

fn state(up: bool) -> String {
    if up { "up" } else { "down" }.to_owned()
}

fn reasons(discards: &BTreeMap<String, u64>) -> String {
    let each = discards.iter().map(|(reason, count)| format!("{} {}", grouped(*count), clean(reason)));
    each.collect::<Vec<_>>().join(", ")
}

fn unless_zero(value: u64) -> String {
    if value == 0 { String::new() } else { grouped(value) }
}
