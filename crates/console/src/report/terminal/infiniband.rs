//! The tables of InfiniBand links and SRP channels.

use super::*;
use sanloom_api::results::{InfinibandDirection, InfinibandLinkResult};

pub(super) fn tables(out: &mut String, results: &Results, width: usize) {
    links(out, results, width);
    channels(out, results, width);
}

fn links(out: &mut String, results: &Results, width: usize) {
    let worst = worst(
        &results.infiniband_links,
        |link: &InfinibandLinkResult| [&link.forward, &link.backward],
        |way: &InfinibandDirection| way.utilisation.max(way.credit_wait_fraction),
    );
    if worst.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("InfiniBand links, worst first"),
        Column::left("direction").rank(1),
        Column::right("busy"),
        Column::right("MB/s"),
        Column::right("no credit"),
        Column::right("dropped"),
        Column::right("lifetime").rank(2),
        Column::right("blocks").rank(2),
        Column::right("credit packets").rank(3),
    ]);
    for (link, way) in worst.iter().take(LINK_ROWS) {
        grid.row(vec![
            clean(&link.name),
            clean(&format!("{} > {}", way.from, way.to)),
            percent(way.utilisation),
            megabytes(way.throughput_bytes_per_s),
            percent(way.credit_wait_fraction),
            grouped(way.packets_lost),
            grouped(way.lifetime_drops),
            way.blocks.to_string(),
            grouped(way.flow_packets),
        ]);
    }
    grid.more(worst.len().saturating_sub(LINK_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
    if let Some(subnet) = &results.subnet
        && let Some(refusal) = &subnet.refusal
    {
        let text = format!("The subnet is routed by {} instead: {refusal}", subnet.routing);
        out.push_str(&wrap(&clean(&text), width, 2));
    }
}

fn channels(out: &mut String, results: &Results, width: usize) {
    if results.srp_channels.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("SRP channels"),
        Column::right("requests"),
        Column::right("responses"),
        Column::right("limit waits").rank(1),
        Column::right("to host MB"),
        Column::right("from host MB"),
        Column::right("repetitions"),
        Column::right("logins").rank(2),
    ]);
    for channel in results.srp_channels.iter().take(MAX_ROWS) {
        grid.row(vec![
            clean(&channel.name),
            grouped(channel.requests),
            grouped(channel.responses),
            grouped(channel.credit_waits),
            format!("{:.1}", channel.rdma_written_bytes as f64 / 1e6),
            format!("{:.1}", channel.rdma_read_bytes as f64 / 1e6),
            grouped(channel.repetitions),
            grouped(channel.connections),
        ]);
    }
    grid.more(results.srp_channels.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
}
