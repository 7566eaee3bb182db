//! The ranking as text and as CSV.

use super::outcome::Case;
use sanloom_api::results::{CutOff, WhatIfRow};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_console::report::{csv, format};
use sanloom_console::whatif::failure::LeftOut;
use sanloom_console::whatif::{NO_FAILURES, NOTE_ON_SERVERS, is_server};
use std::io::{self, Write};

/// Rows of the table; the files have all.
const ROWS: usize = 60;
/// Pairs in a line of the list of what is cut off; the files have all.
const PAIRS: usize = 6;

/// Values above the table.
pub struct Heading<'a> {
    pub lab: &'a str,
    pub at_s: f64,
    pub left_out: LeftOut,
    /// Longest time without a completed request in the run without a failure, in seconds.
    pub healthy_stall_s: f64,
}

/// Formats the ranking for a terminal.
pub fn text(heading: &Heading<'_>, cases: &[Case], width: usize) -> String {
    if cases.is_empty() {
        return format!("What if: {}\n{NO_FAILURES}\n", format::clean(heading.lab));
    }
    let mut grid = Grid::new(vec![
        Column::left("What fails"),
        Column::left("Kind").rank(7),
        Column::right("Left"),
        Column::right("Worst step, MB/s").rank(6),
        Column::left("Worst host").rank(5),
        Column::right("its MB/s").rank(4),
        Column::right("Recovery").rank(3),
        Column::right("Longest stall"),
        Column::left("of").rank(2),
        Column::right("Longest request").rank(8),
        Column::right("Paths lost").rank(1),
        Column::right("Cut off"),
        Column::right("Failed I/O"),
        Column::right("Unfinished"),
    ]);
    for case in cases.iter().take(ROWS) {
        let row = &case.row;
        let worst = case.worst_host();
        let left = match row.intervals.get("left") {
            Some(interval) => {
                format!("{} ± {}", format::percent(interval.mean), format::percent(interval.half_width))
            }
            None => row.left().map_or_else(|| "not measured".to_owned(), format::percent),
        };
        grid.row(vec![
            format::clean(&row.name),
            row.kind.clone(),
            left,
            format::plain(row.worst_bytes_per_s / 1e6),
            worst.map_or_else(String::new, |host| format::clean(&host.name)),
            worst.map_or_else(String::new, |host| format::plain(host.throughput_bytes_per_s / 1e6)),
            recovery(row),
            stall(row.longest_stall_s, row.stall_ended),
            format::clean(&row.stalled_host),
            format::us(row.longest_request_us),
            row.paths_lost.to_string(),
            row.pairs_cut_off.to_string(),
            row.ios_failed.to_string(),
            row.ios_unfinished.to_string(),
        ]);
    }
    grid.more(cases.len().saturating_sub(ROWS));
    let left_out = left_out(heading.left_out);
    let mut out = format!(
        "What if: {}\n{left_out}One element fails at {} and stays broken. \"Left\" is the throughput after the recovery, as \
         a share of the same interval without a failure. Without a failure the longest stall is {}.\n\n{}",
        format::clean(heading.lab),
        format::seconds(heading.at_s),
        format::seconds(heading.healthy_stall_s),
        grid.render(width)
    );
    let cut: Vec<&Case> = cases.iter().take(ROWS).filter(|case| !case.row.cut_off.is_empty()).collect();
    let has_server = cut.iter().any(|case| is_server(&case.row));
    if !cut.is_empty() {
        out.push_str("\nCut off for good\n");
    }
    for case in cut {
        let pairs: Vec<String> = case.row.cut_off.iter().take(PAIRS).map(pair).collect();
        let more = match case.row.cut_off.len().saturating_sub(PAIRS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        out.push_str(&format!(
            "  {} ({}): {}{more}\n",
            format::clean(&case.row.name),
            case.row.kind,
            format::clean(&pairs.join("; "))
        ));
    }
    if has_server {
        out.push_str(&format!("\n{NOTE_ON_SERVERS}\n"));
    }
    out
}

/// Names the events of the lab that no run has; empty without any.
fn left_out(LeftOut { faults, changes }: LeftOut) -> String {
    let counted = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(noun.to_owned()),
        count => Some(format!("{count} {noun}s")),
    };
    let parts: Vec<String> =
        [counted(faults, "fault"), counted(changes, "zone change")].into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false => {
            let verb = if faults + changes == 1 { "is" } else { "are" };
            format!("The lab's own {} {verb} left out of every run.\n", parts.join(" and "))
        }
    }
}

/// `esx01 from array1:lun0, array1:lun1`.
fn pair(cut: &CutOff) -> String {
    format!("{} from {}", cut.host, cut.luns.join(", "))
}

/// Time of the recovery. Storage that is cut off never recovers.
fn recovery(row: &WhatIfRow) -> String {
    match (row.recovery_s, row.pairs_cut_off) {
        (None, _) => "none".to_owned(),
        (Some(recovery_s), _) if is_server(row) => format::seconds(recovery_s),
        (Some(recovery_s), 0) => format::seconds(recovery_s),
        (Some(recovery_s), _) => format!("others {}", format::seconds(recovery_s)),
    }
}

/// A stall that nothing ended lasts for good.
fn stall(stall_s: f64, ended: bool) -> String {
    if ended { format::seconds(stall_s) } else { "for good".to_owned() }
}

/// Writes one line per failure (RFC 4180).
///
/// # Errors
/// The output cannot be written.
pub fn write_csv(out: &mut dyn Write, cases: &[Case]) -> io::Result<()> {
    use super::outcome::{NUMBERS, number};
    let with_intervals = cases.iter().any(|case| !case.row.intervals.is_empty());
    let mut head = vec!["name".to_owned(), "kind".to_owned()];
    for name in NUMBERS {
        head.push(name.to_owned());
        if with_intervals {
            head.extend([format!("{name}.mean"), format!("{name}.half_width")]);
        }
    }
    head.extend(["from_s", "until_s", "stalled_host", "stall_ended", "cut_off"].map(str::to_owned));
    csv::write_line(out, &head)?;
    for case in cases {
        let row = &case.row;
        let mut cells = vec![row.name.clone(), row.kind.clone()];
        for name in NUMBERS {
            cells.push(number(row, name).map_or_else(String::new, |value| value.to_string()));
            if with_intervals {
                let interval = row.intervals.get(name);
                cells.extend([
                    interval.map_or_else(String::new, |interval| interval.mean.to_string()),
                    interval.map_or_else(String::new, |interval| interval.half_width.to_string()),
                ]);
            }
        }
        let pairs: Vec<String> = row.cut_off.iter().map(pair).collect();
        cells.extend([row.from_s.to_string(), row.until_s.to_string(), row.stalled_host.clone()]);
        cells.extend([row.stall_ended.to_string(), pairs.join("; ")]);
        csv::write_line(out, &cells)?;
    }
    Ok(())
}
