//! `sanloom ps`: the running instances.

use crate::running::{self, Running};
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::outputs::Json;
use sanloom_console::report::terminal::grid::{Column, Grid};
use std::time::Duration;

/// Options of `sanloom ps`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    json: Json,
}

/// Lists the instances.
///
/// # Errors
/// If the list cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let running = running::all();
    args.json.write_or_print(&running, || table(&running))
}

fn table(running: &[Running]) -> String {
    if running.is_empty() {
        return "No instance is running; start one with `sanloom up LAB`.\n".to_owned();
    }
    let mut grid = Grid::new(vec![
        Column::left("lab"),
        Column::left("switch"),
        Column::right("PID"),
        Column::right("up for"),
        Column::left("file"),
    ]);
    for one in running {
        grid.row(vec![
            one.lab.clone(),
            match (&one.switch, one.simulated) {
                (Some(switch), _) => switch.clone(),
                (None, true) => "all, simulated".to_owned(),
                (None, false) => "all".to_owned(),
            },
            one.pid.to_string(),
            age(one.age()),
            one.file.clone(),
        ]);
    }
    grid.render(output::width())
}

/// A time with its two largest units.
fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_its_two_largest_units() {
        for (seconds, text) in [(0, "0 s"), (61, "1 min 1 s"), (7_260, "2 h 1 min"), (90_000, "1 d 1 h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
