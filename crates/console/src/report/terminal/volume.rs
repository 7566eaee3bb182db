//! The tables of virtual disks, back ends and sessions, as text.

use super::grid::{Column, Grid};
use crate::report::format::{bytes, clean, grouped};
use sanloom_api::volume::{PathRow, PathsView, SessionsView, VolumesView};

pub(super) fn volumes(out: &mut String, table: &VolumesView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("volume"),
        Column::left("pool"),
        Column::right("bytes"),
        Column::left("layout"),
        Column::left("storage"),
        Column::right("LUN"),
        Column::right("epoch").rank(2),
        Column::right("tasks").rank(1),
        Column::right("forwarded"),
        Column::right("bytes forwarded").rank(1),
        Column::right("conventional"),
        Column::right("bytes conventional").rank(1),
    ]);
    for row in &table.volumes {
        let layout = match row.width {
            0 | 1 => "linear".to_owned(),
            width => format!("{width} x {}", bytes(row.stripe_bytes)),
        };
        let (storage, lun) = match &row.served {
            Some(served) => (clean(&served.storage), served.lun.map(|lun| lun.to_string()).unwrap_or_default()),
            None => ("nobody".to_owned(), String::new()),
        };
        grid.row(vec![
            clean(&row.name),
            clean(&row.pool),
            grouped(row.size_bytes),
            layout,
            storage,
            lun,
            row.epoch.to_string(),
            row.tasks.to_string(),
            grouped(row.forwarded.commands),
            grouped(row.forwarded.read_bytes + row.forwarded.written_bytes),
            grouped(row.conventional.commands),
            grouped(row.conventional.read_bytes + row.conventional.written_bytes),
        ]);
    }
    out.push_str(&grid.render(width));
    for row in table.volumes.iter().filter(|row| !row.runs.is_empty()) {
        let mut grid = Grid::new(vec![Column::right("from byte"), Column::right("bytes"), Column::left("at")]);
        for run in &row.runs {
            let places: Vec<String> =
                run.places.iter().map(|(name, at)| format!("{}+{}", clean(name), grouped(*at))).collect();
            grid.row(vec![grouped(run.at_bytes), grouped(run.bytes), places.join(" ")]);
        }
        out.push_str(&grid.render(width));
    }
    let mut grid =
        Grid::new(vec![Column::left("pool"), Column::right("extent"), Column::right("extents"), Column::right("used")]);
    for row in &table.pools {
        grid.row(vec![clean(&row.name), bytes(row.extent_bytes), grouped(row.extents), grouped(row.used)]);
    }
    out.push_str(&grid.render(width));
}

pub(super) fn paths(out: &mut String, table: &PathsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("back end"),
        Column::left("pool"),
        Column::left("target"),
        Column::right("LUN"),
        Column::left("through"),
        Column::right("bytes").rank(1),
        Column::right("extents").rank(2),
        Column::right("used").rank(2),
        Column::right("logins").rank(3),
        Column::right("lost").rank(3),
        Column::right("moved").rank(3),
        Column::right("forwarding").rank(1),
        Column::left("trouble"),
    ]);
    for row in &table.paths {
        grid.row(vec![
            clean(&row.back_end),
            clean(&row.pool),
            clean(&row.target),
            row.lun.to_string(),
            through(row),
            grouped(row.size_bytes),
            grouped(row.extents),
            grouped(row.used),
            grouped(row.logins),
            grouped(row.lost),
            grouped(row.moves),
            grouped(row.forwarding),
            clean(&row.trouble),
        ]);
    }
    out.push_str(&grid.render(width));
    let mut grid = Grid::new(vec![
        Column::left("back end"),
        Column::left("portal"),
        Column::left("used"),
        Column::right("group"),
        Column::left("state"),
        Column::left("preferred"),
    ]);
    for (row, portal) in table.paths.iter().flat_map(|row| row.portals.iter().map(move |portal| (row, portal))) {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        grid.row(vec![
            clean(&row.back_end),
            clean(&portal.portal),
            yes(portal.used),
            portal.group.map(|group| group.to_string()).unwrap_or_default(),
            if portal.state.is_empty() { "not known".to_owned() } else { clean(&portal.state) },
            yes(portal.preferred),
        ]);
    }
    out.push_str(&grid.render(width));
}

/// Describes the path of a session: the iSCSI portal and the source of a redirect, or our host port
/// and the address of the target port.
fn through(row: &PathRow) -> String {
    let address = |id: &Option<String>| id.as_deref().unwrap_or("none").to_owned();
    let Some(port) = &row.host_port else {
        let sent = row.redirected_by.as_deref().map_or_else(String::new, |by| format!(", redirected by {}", clean(by)));
        return clean(&address(&row.portal)) + &sent;
    };
    format!("{} {} to {}", clean(&port.name), address(&port.port_id), address(&row.portal))
}

pub(super) fn sessions(out: &mut String, table: &SessionsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("initiator"),
        Column::left("of"),
        Column::left("from").rank(1),
        Column::left("ISID").rank(3),
        Column::left("target"),
        Column::left("portal").rank(2),
        Column::right("tasks").rank(1),
        Column::right("commands"),
        Column::right("bytes read"),
        Column::right("bytes written"),
        Column::left("digests").rank(3),
        Column::right("forwarded"),
        Column::right("bytes forwarded").rank(1),
        Column::right("back ends").rank(2),
    ]);
    for row in &table.sessions {
        let digests = match row.digests {
            [false, false] => "none",
            [true, false] => "header",
            [false, true] => "data",
            [true, true] => "both",
        };
        grid.row(vec![
            clean(&row.initiator),
            if row.own { "this instance" } else { "a host" }.to_owned(),
            row.peer.clone(),
            row.isid.clone(),
            if row.target.is_empty() { "discovery".to_owned() } else { clean(&row.target) },
            row.portal.clone(),
            grouped(row.tasks),
            grouped(row.commands),
            grouped(row.read_bytes),
            grouped(row.written_bytes),
            digests.to_owned(),
            grouped(row.forwarded.commands),
            grouped(row.forwarded.read_bytes + row.forwarded.written_bytes),
            grouped(row.back_ends),
        ]);
    }
    out.push_str(&grid.render(width));
}
