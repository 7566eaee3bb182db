//! The table of `sanloom bench io`.

use super::{Mean, Op, Report, Terms};
use sanloom_console::report::format;
use std::fmt::Write;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let places = if report.random { "random addresses" } else { "sequential addresses" };
    let Report { sessions, seconds, rounds, .. } = report;
    let _ = writeln!(text, "{sessions} session(s) on each path, {places}; medians of {rounds} slices of {seconds} s");
    for path in &report.paths {
        let _ = writeln!(text, "  {}: {}; {}", path.name, path.target, terms(&path.terms));
    }
    let width = report.paths.iter().map(|path| path.name.chars().count()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "\n{:<5} {:>8} {:>5}  {:<width$} {:>9} {:>6} {:<14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}",
        "", "", "", "", "", "", "", "", "p50", "p95", "p99", "p99.9", "own", "process"
    );
    let _ = writeln!(
        text,
        "{:<5} {:>8} {:>5}  {:<width$} {:>9} {:>6} {:<14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}",
        "", "size", "depth", "path", "MB/s", "ratio", "interval", "IOPS", "us", "us", "us", "us", "ms/GB", "ms/GB"
    );
    for cell in &report.cells {
        for (number, row) in cell.paths.iter().enumerate() {
            let (op, size, depth) = match number {
                0 => (word(cell.op), format::bytes(cell.size_bytes.into()), cell.depth.to_string()),
                _ => ("", String::new(), String::new()),
            };
            let [p50, p95, p99, p999] = row.latency_us.map(|us| format!("{us:.0}"));
            let [low, high] = row.ratio_interval;
            let interval = format!("[{low:.2}, {high:.2}]");
            let process = row.process_cpu_ms_per_gb.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.0}"));
            let _ = writeln!(
                text,
                "{op:<5} {size:>8} {depth:>5}  {:<width$} {:>9.1} {:>6.2} {interval:<14} {:>9} {p50:>9} {p95:>9} {p99:>9} {p999:>9} {:>8.0} {process:>8}",
                row.name,
                row.mb_per_s,
                row.ratio,
                format::rate(row.iops),
                row.own_cpu_ms_per_gb,
            );
        }
    }
    if report.paths.len() > 1 {
        let first = &report.paths[0].name;
        for mean in report.means.iter().filter(|mean| mean.name != *first) {
            let Mean { name, op, ratio, ratio_interval: [low, high] } = mean;
            let op = word(*op);
            let _ = writeln!(text, "{name} to {first}, {op}: {ratio:.2} [{low:.2}, {high:.2}] (geometric mean)");
        }
    }
    text
}

fn terms(terms: &Terms) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    match terms {
        Terms::Iscsi(terms) => format!(
            "segments {} to the target, {} from it, bursts {}, first {}, InitialR2T {}, ImmediateData {}, R2Ts {}, digests {}/{}",
            format::bytes(terms.send_bytes.into()),
            format::bytes(terms.receive_bytes.into()),
            format::bytes(terms.max_burst_bytes.into()),
            format::bytes(terms.first_burst_bytes.into()),
            yes(terms.initial_r2t),
            yes(terms.immediate_data),
            terms.max_outstanding_r2t,
            yes(terms.digests[0]),
            yes(terms.digests[1]),
        ),
        Terms::Fcoe(terms) => format!(
            "from {} to {}, {} bytes in a frame, {} in a command",
            terms.port_id,
            terms.target_id,
            terms.receive_bytes,
            format::bytes(terms.max_transfer_bytes),
        ),
        Terms::Nbd(terms) => format!(
            "{}, requests from {} to {}",
            format::bytes(terms.export_bytes),
            format::bytes(terms.min_bytes.into()),
            format::bytes(terms.max_bytes.into()),
        ),
    }
}

pub(super) fn word(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}
