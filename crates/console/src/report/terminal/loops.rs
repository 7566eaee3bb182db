//! The table of arbitrated loops.

use super::*;
use sanloom_api::words::plural;

pub(super) fn table(out: &mut String, results: &Results, width: usize) {
    let rows: Vec<_> = results.loops.iter().flat_map(|of| of.ports.iter().map(move |port| (of, port))).collect();
    if rows.is_empty() {
        return;
    }
    let mut grid = Grid::new(vec![
        Column::left("Loops"),
        Column::left("port"),
        Column::left("AL_PA"),
        Column::right("tenancies"),
        Column::right("holds it"),
        Column::right("arbitration us"),
        Column::right("longest us"),
    ]);
    for (of, port) in rows.iter().take(MAX_ROWS) {
        grid.row(vec![
            of.name.clone(),
            port.name.clone(),
            port.al_pa.clone(),
            grouped(port.tenancies),
            percent(port.held_fraction),
            format!("{:.2}", port.arbitration_mean_us),
            format!("{:.2}", port.arbitration_max_us),
        ]);
    }
    grid.more(rows.len().saturating_sub(MAX_ROWS));
    out.push('\n');
    out.push_str(&grid.render(width));
    for of in results.loops.iter().filter(|of| of.initialisations > 0) {
        let times = plural(of.initialisations, "time");
        let _ = writeln!(out, "{} was initialised {times}, which took {} in all", of.name, seconds(of.down_s));
    }
}
