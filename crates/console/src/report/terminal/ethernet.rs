//! The tables of Ethernet links and switches.

use super::*;
use sanloom_api::results::{EthernetDirection, EthernetLinkResult, IscsiSessionResult};

pub(super) fn tables(out: &mut String, results: &Results, width: usize) {
    links(out, results, width);
    switches(out, results, width);
    sessions(out, results, width);
    tunnels(out, results, width);
}

fn links(out: &mut String, results: &Results, width: usize) {
    let worst = worst(
        &results.ethernet_links,
        |link: &EthernetLinkResult| [&link.forward, &link.backward],
        |way: &EthernetDirection| way.utilisation.max(way.paused_fraction),
    );
    if worst.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Ethernet links, worst first"),
        Column::left("direction").rank(1),
        Column::right("busy"),
        Column::right("MB/s"),
        Column::right("paused"),
        Column::right("dropped"),
        Column::right("lost"),
        Column::right("marked").rank(2),
        Column::right("queue KB").rank(2),
        Column::right("headroom").rank(3),
    ]);
    for (link, way) in worst.iter().take(LINK_ROWS) {
        let headroom = match way.headroom_bytes {
            0 => String::new(),
            bytes => format!("{}/{bytes}", way.headroom_max_bytes),
        };
        grid.row(vec![
            clean(&link.name),
            clean(&format!("{} > {}", way.from, way.to)),
            percent(way.utilisation),
            megabytes(way.throughput_bytes_per_s),
            percent(way.paused_fraction),
            grouped(way.queue_drops),
            grouped(way.frames_lost),
            grouped(way.marked_frames),
            format!("{:.1}", way.queue_max_bytes as f64 / 1e3),
            headroom,
        ]);
    }
    grid.more(worst.len().saturating_sub(LINK_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

fn switches(out: &mut String, results: &Results, width: usize) {
    if results.ethernet_switches.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Ethernet switches"),
        Column::right("memory KB"),
        Column::right("most used"),
        Column::right("pauses"),
        Column::right("marked"),
        Column::right("dropped"),
        Column::right("headroom drops").rank(1),
    ]);
    for switch in results.ethernet_switches.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&switch.name),
            format!("{:.0}", switch.memory_bytes as f64 / 1e3),
            format!("{:.1}", switch.memory_max_bytes as f64 / 1e3),
            grouped(switch.pauses),
            grouped(switch.marked_frames),
            grouped(switch.frames_dropped),
            grouped(switch.headroom_drops),
        ]);
    }
    grid.more(results.ethernet_switches.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

/// Sessions that TCP had to repair, and those that are down; others need no row.
fn sessions(out: &mut String, results: &Results, width: usize) {
    let repaired = |session: &&IscsiSessionResult| session.segments_retransmitted > 0 || session.state != "up";
    let mut rows: Vec<&IscsiSessionResult> = results.iscsi_sessions.iter().filter(repaired).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|session| std::cmp::Reverse(session.segments_retransmitted));
    let mut grid = Grid::new(vec![
        Column::left("iSCSI sessions, most repairs first"),
        Column::left("state"),
        Column::right("sent again"),
        Column::right("time-outs"),
        Column::right("recoveries"),
        Column::right("logins").rank(1),
    ]);
    for session in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&session.name),
            clean(&session.state),
            grouped(session.segments_retransmitted),
            grouped(session.retransmission_timeouts),
            grouped(session.fast_recoveries),
            grouped(session.connections),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}

/// FCIP links with the counters of their TCP.
fn tunnels(out: &mut String, results: &Results, width: usize) {
    if results.fcip_links.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("FCIP links"),
        Column::left("state"),
        Column::right("sent again"),
        Column::right("time-outs"),
        Column::right("recoveries"),
        Column::right("connections").rank(1),
        Column::right("round trip").rank(2),
        Column::right("windows KB").rank(3),
    ]);
    for link in results.fcip_links.iter().take(MAX_ROWS) {
        let [from, to] = [link.from_window_bytes, link.to_window_bytes].map(|bytes| bytes as f64 / 1e3);
        grid.row(vec![
            clean(&link.name),
            clean(&link.state),
            grouped(link.segments_retransmitted),
            grouped(link.retransmission_timeouts),
            grouped(link.fast_recoveries),
            grouped(link.connections),
            us(link.round_trip_us),
            format!("{from:.1}/{to:.1}"),
        ]);
    }
    grid.more(results.fcip_links.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}
