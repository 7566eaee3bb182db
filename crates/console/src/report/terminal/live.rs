//! Text tables that only a running instance has.

use super::grid::{Column, Grid};
use crate::report::format::{clean, grouped, seconds};
use sanloom_api::inject::RulesView;
use sanloom_api::view::{CapturesView, CountersView, EventsView, GroupsView, LunsView};

pub(super) fn luns(out: &mut String, table: &LunsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("storage"),
        Column::right("LUN"),
        Column::right("bytes"),
        Column::right("block").rank(3),
        Column::left("medium"),
        Column::left("cache").rank(2),
        Column::left("seen by"),
        Column::right("registrations").rank(2),
        Column::left("reservation").rank(1),
        Column::right("active").rank(3),
    ]);
    for row in &table.luns {
        let seen_by: Vec<String> = row.seen_by.iter().map(|name| clean(name)).collect();
        grid.row(vec![
            clean(&row.storage),
            row.lun.to_string(),
            grouped(row.size_bytes),
            row.block_bytes.to_string(),
            {
                let medium = match row.direct {
                    Some(true) => format!("{}, direct", clean(&row.medium)),
                    Some(false) => format!("{}, page cache", clean(&row.medium)),
                    None => clean(&row.medium),
                };
                if row.disk_full { format!("{medium}, disk full") } else { medium }
            },
            if row.write_back { "write-back" } else { "none" }.to_owned(),
            match (row.everybody, seen_by.is_empty()) {
                (true, _) => "everybody".to_owned(),
                (false, true) => "nobody".to_owned(),
                _ => seen_by.join(" "),
            },
            row.registrations.to_string(),
            row.reservation.as_deref().map(clean).unwrap_or_default(),
            row.active_tasks.to_string(),
        ]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn events(out: &mut String, table: &EventsView, width: usize) {
    if table.events.is_empty() {
        out.push_str("the log has no event\n");
        return;
    }
    let mut grid = Grid::new(vec![
        Column::right("number").rank(3),
        Column::right("time"),
        Column::left("severity"),
        Column::left("message").rank(1),
        Column::left("object"),
        Column::left("user").rank(2),
        Column::left("event"),
        Column::right("times").rank(4),
    ]);
    for row in &table.events {
        let time = if row.at_s < 0.0 { format!("-{}", seconds(-row.at_s)) } else { seconds(row.at_s) };
        grid.row(vec![
            row.sequence.to_string(),
            time,
            row.severity.word().to_owned(),
            row.id.clone(),
            clean(if row.port.is_empty() { &row.switch } else { &row.port }),
            clean(&row.user),
            clean(&row.text),
            if row.count > 1 { grouped(row.count) } else { String::new() },
        ]);
    }
    out.push_str(&grid.render(width));
    if table.discarded > 0 {
        out.push_str(&format!("{} older events have left the log\n", grouped(table.discarded)));
    }
}

pub(super) fn groups(out: &mut String, table: &GroupsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("group"),
        Column::left("storage"),
        Column::right("number"),
        Column::left("state"),
        Column::left("preferred"),
        Column::left("ports"),
        Column::left("relative").rank(1),
    ]);
    for row in &table.groups {
        let relative: Vec<String> = row.relative_ports.iter().map(u16::to_string).collect();
        let ports: Vec<String> = row.ports.iter().map(|port| clean(port)).collect();
        grid.row(vec![
            clean(&row.group),
            clean(&row.storage),
            row.number.to_string(),
            clean(&row.state),
            if row.preferred { "yes" } else { "no" }.to_owned(),
            ports.join(" "),
            relative.join(" "),
        ]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn counters(out: &mut String, table: &CountersView, width: usize) {
    let mut grid = Grid::new(vec![Column::left("of"), Column::left("counter"), Column::right("value")]);
    for row in &table.counters {
        for (name, value) in row.counters.iter().filter(|(_, value)| **value > 0) {
            grid.row(vec![clean(&row.of), clean(name), grouped(*value)]);
        }
    }
    out.push_str(&grid.render(width));
    out.push_str("counters that are 0 are left out; --json has them all\n");
}

pub(super) fn captures(out: &mut String, table: &CapturesView, width: usize) {
    let mut grid =
        Grid::new(vec![Column::left("port"), Column::right("frames"), Column::left("state"), Column::left("file")]);
    for row in &table.captures {
        let state = match &row.error {
            Some(error) => format!("ended: {}", clean(error)),
            None => "running".to_owned(),
        };
        grid.row(vec![clean(&row.port), grouped(row.frames), state, clean(&row.file)]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn injections(out: &mut String, table: &RulesView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::right("rule"),
        Column::left("port"),
        Column::left("match"),
        Column::left("do"),
        Column::right("done"),
        Column::right("left"),
    ]);
    for row in &table.rules {
        grid.row(vec![
            row.id.to_string(),
            clean(&row.port),
            clean(&row.matches),
            clean(&row.act),
            grouped(row.injected),
            row.left.map_or_else(|| "all".to_owned(), grouped),
        ]);
    }
    out.push_str(&grid.render(width));
}
