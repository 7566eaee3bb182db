//! The table of metadata servers.

use super::*;
use sanloom_api::results::MetadataResult;
use sanloom_api::words::plural;

pub(super) fn table(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<(&String, &MetadataResult)> =
        results.storage.iter().filter_map(|storage| Some((&storage.name, storage.metadata.as_ref()?))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Metadata servers"),
        Column::right("hits"),
        Column::right("misses"),
        Column::right("miss us"),
        Column::right("longest us"),
        Column::right("messages").rank(1),
        Column::right("longest queue"),
        Column::right("busy").rank(2),
        Column::right("changes"),
        Column::right("stalled"),
    ]);
    for (name, own) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            (*name).clone(),
            grouped(own.hits),
            grouped(own.misses),
            format!("{:.1}", own.miss_latency.mean_us),
            format!("{:.1}", own.miss_latency.max_us),
            grouped(own.messages),
            grouped(own.queue.max),
            percent(own.utilisation),
            grouped(own.changes),
            grouped(own.stalled),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
    for (name, own) in rows.iter().take(MAX_ROWS) {
        if own.changes > 0 {
            let (mean, longest) = (own.change_mean_us, own.change_max_us);
            let _ = writeln!(out, "Changes at {name} took {mean:.1} us on average and {longest:.1} us at most");
        }
        if own.useless_moves > 0 {
            let moves = plural(own.useless_moves, "move");
            let _ = writeln!(out, "{moves} at {name} had no effect: the data were there, or the back end had no room");
        }
        if own.fenced > 0 {
            let (hosts, commands) = (plural(own.fenced, "host"), plural(own.refused, "command"));
            let _ = writeln!(out, "{name} fenced {hosts}; back ends refused {commands}");
        }
        if own.unanswered > 0 {
            let _ = writeln!(out, "{} at {name} failed without an answer", plural(own.unanswered, "piece"));
        }
    }
}
