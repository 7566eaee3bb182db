//! Tables of Ethernet, InfiniBand, and what they carry.

use super::table::ALL_IN_JSON;
use super::{Cell, Table};
use crate::report::routers::worst_first;
use sanloom_api::results::{IscsiSessionResult, Results};
use std::cmp::Reverse;

const ROWS: usize = 1_000;

/// All tables of this module; empty without other fabrics than Fibre Channel.
pub fn tables(results: &Results) -> String {
    [ethernet(results), switches(results), iscsi(results), fcip(results), infiniband(results), routers(results)]
        .concat()
}

/// Directions of Ethernet links; empty without Ethernet.
fn ethernet(results: &Results) -> String {
    if results.ethernet_links.is_empty() {
        return String::new();
    }
    let mut table = Table::new("ethernet")
        .text("Ethernet link")
        .text("From")
        .text("To")
        .number("Frames")
        .number("Busy")
        .number("Paused")
        .number("Marked")
        .number("Dropped")
        .number("Lost")
        .number("Headroom drops")
        .cap(ROWS, ALL_IN_JSON);
    for (link, way) in results.ethernet_links.iter().flat_map(|link| [(link, &link.forward), (link, &link.backward)]) {
        table.row(vec![
            Cell::text(&link.name),
            Cell::text(&way.from),
            Cell::text(&way.to),
            Cell::count(way.frames),
            Cell::share(way.utilisation, "load"),
            Cell::share(way.paused_fraction, "load"),
            Cell::count(way.marked_frames),
            Cell::count(way.queue_drops),
            Cell::count(way.frames_lost),
            Cell::count(way.headroom_drops),
        ]);
    }
    format!("<h3>Ethernet</h3>\n{}", table.html())
}

/// Directions of InfiniBand links, and SRP channels; empty without InfiniBand.
fn infiniband(results: &Results) -> String {
    if results.infiniband_links.is_empty() {
        return String::new();
    }
    let mut table = Table::new("infiniband")
        .text("InfiniBand link")
        .text("From")
        .text("To")
        .number("Packets")
        .number("Busy")
        .number("No credit")
        .number("Blocks")
        .number("Lost")
        .number("Lifetime drops")
        .cap(ROWS, ALL_IN_JSON);
    let ways = results.infiniband_links.iter().flat_map(|link| [(link, &link.forward), (link, &link.backward)]);
    for (link, way) in ways {
        table.row(vec![
            Cell::text(&link.name),
            Cell::text(&way.from),
            Cell::text(&way.to),
            Cell::count(way.packets),
            Cell::share(way.utilisation, "load"),
            Cell::share(way.credit_wait_fraction, "load"),
            Cell::count(way.blocks),
            Cell::count(way.packets_lost),
            Cell::count(way.lifetime_drops),
        ]);
    }
    let mut channels = Table::new("srp")
        .text("SRP channel")
        .number("Requests")
        .number("Responses")
        .number("Waits for the request limit")
        .number("Repetitions")
        .number("Logins")
        .cap(ROWS, ALL_IN_JSON);
    for channel in &results.srp_channels {
        channels.row(vec![
            Cell::text(&channel.name),
            Cell::count(channel.requests),
            Cell::count(channel.responses),
            Cell::count(channel.credit_waits),
            Cell::count(channel.repetitions),
            Cell::count(channel.connections),
        ]);
    }
    format!("<h3>InfiniBand</h3>\n{}{}", table.html(), channels.html())
}

/// Routers of IP between Ethernet and InfiniBand; empty without one.
fn routers(results: &Results) -> String {
    let rows = worst_first(results);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new("routers")
        .text("Router of IP")
        .number("Packets")
        .number("Dropped")
        .number("Busy")
        .cap(ROWS, ALL_IN_JSON);
    for (host, router) in rows {
        table.row(vec![
            Cell::text(&host.name),
            Cell::count(router.forwarded),
            Cell::bad_count(router.dropped),
            Cell::share(router.utilisation, "load"),
        ]);
    }
    format!("<h3>Routers of IP</h3>\n{}", table.html())
}

/// Switches of Ethernet with their memory; empty without one.
fn switches(results: &Results) -> String {
    if results.ethernet_switches.is_empty() {
        return String::new();
    }
    let mut table = Table::new("ethernet-switches")
        .text("Ethernet switch")
        .number("Memory, bytes")
        .number("Most used")
        .number("Pauses")
        .number("Marked")
        .number("Dropped")
        .number("Headroom drops")
        .cap(ROWS, ALL_IN_JSON);
    for switch in &results.ethernet_switches {
        table.row(vec![
            Cell::text(&switch.name),
            Cell::count(switch.memory_bytes),
            Cell::count(switch.memory_max_bytes),
            Cell::count(switch.pauses),
            Cell::count(switch.marked_frames),
            Cell::bad_count(switch.frames_dropped),
            Cell::bad_count(switch.headroom_drops),
        ]);
    }
    format!("<h3>Switches of Ethernet</h3>\n{}", table.html())
}

/// Sessions of iSCSI with the counters of their TCP, first those that repaired the most; empty
/// without iSCSI.
fn iscsi(results: &Results) -> String {
    if results.iscsi_sessions.is_empty() {
        return String::new();
    }
    let mut rows: Vec<&IscsiSessionResult> = results.iscsi_sessions.iter().collect();
    rows.sort_by_key(|session| Reverse(session.segments_retransmitted));
    let mut table = Table::new("iscsi")
        .text("iSCSI session")
        .text("State")
        .number("Logins")
        .number("Commands")
        .number("Commands that waited")
        .number("R2Ts")
        .number("Segments sent again")
        .number("Time-outs")
        .number("Fast recoveries")
        .number("Window of the host, bytes")
        .number("Window of the storage, bytes")
        .cap(ROWS, ALL_IN_JSON);
    for session in rows {
        table.row(vec![
            Cell::text(&session.name),
            Cell::text(&session.state),
            Cell::count(session.connections),
            Cell::count(session.commands),
            Cell::count(session.command_waits),
            Cell::count(session.r2ts),
            Cell::bad_count(session.segments_retransmitted),
            Cell::bad_count(session.retransmission_timeouts),
            Cell::count(session.fast_recoveries),
            Cell::count(session.host_window_bytes),
            Cell::count(session.storage_window_bytes),
        ]);
    }
    format!("<h3>Sessions of iSCSI</h3>\n{}", table.html())
}

/// FCIP links with the counters of their TCP; empty without one.
fn fcip(results: &Results) -> String {
    if results.fcip_links.is_empty() {
        return String::new();
    }
    let mut table = Table::new("fcip")
        .text("FCIP link")
        .text("State")
        .number("Connections")
        .number("Frames")
        .number("Segments sent again")
        .number("Time-outs")
        .number("Fast recoveries")
        .number("Round trip")
        .number("Window of the first end, bytes")
        .number("Window of the other end, bytes")
        .cap(ROWS, ALL_IN_JSON);
    for link in &results.fcip_links {
        table.row(vec![
            Cell::text(&link.name),
            Cell::text(&link.state),
            Cell::count(link.connections),
            Cell::count(link.frames),
            Cell::bad_count(link.segments_retransmitted),
            Cell::bad_count(link.retransmission_timeouts),
            Cell::count(link.fast_recoveries),
            Cell::us(link.round_trip_us),
            Cell::count(link.from_window_bytes),
            Cell::count(link.to_window_bytes),
        ]);
    }
    format!("<h3>FCIP links</h3>\n{}", table.html())
}
