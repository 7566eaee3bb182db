//! The SANSim paper, section 3: Figures 4 to 7, an initiator and a RAM disk on an arbitrated loop.

use super::super::verdict::{Kind, Verdict};
use super::UNIT;
use sanloom_console::exit::Failure;
use sanloom_console::report::html::{Cell, Table};
use sanloom_console::report::plot::{Level, Plot, PlotCurve, drawings};
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_console::run::{self, View};
use sanloom_fc::config::SizeDistribution;
use sanloom_fc::san::Lab;
use sanloom_lab::Override;
use std::sync::Arc;

/// The lab. This module sets the sizes, queue depths and directions.
const LAB: &str = include_str!("../../../labs/fc-al-validation.toml");

/// Sizes of Figures 4 and 5 in KB, and their queue depths.
const SIZES_BY_DEPTH: [u32; 4] = [2, 8, 16, 32];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Sizes of Figures 6 and 7 in KB, and their queue depths.
const SIZES: [u32; 9] = [2, 4, 8, 16, 32, 64, 128, 256, 512];
const DEPTHS_BY_SIZE: [u32; 3] = [1, 2, 8];

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    write: bool,
    size_kib: u32,
    depth: u32,
}

/// Results of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    iops: f64,
    /// In MB/s of 1000 * 1024 bytes.
    throughput: f64,
    response_us: f64,
    /// Share of the time in which the line of the data is busy.
    line: f64,
}

/// Returns the runs of all figures, each once.
pub fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for write in [false, true] {
        for (sizes, depths) in [(&SIZES_BY_DEPTH[..], &DEPTHS[..]), (&SIZES[..], &DEPTHS_BY_SIZE[..])] {
            for &size_kib in sizes {
                for &depth in depths {
                    let point = Point { write, size_kib, depth };
                    if !points.contains(&point) {
                        points.push(point);
                    }
                }
            }
        }
    }
    points
}

impl Point {
    /// Returns the lab of this run.
    ///
    /// # Errors
    /// The seed is invalid.
    pub fn lab(self, seed: u64) -> Result<Arc<Lab>, Failure> {
        let set = [
            ("run.seed", seed.to_string()),
            ("workload.io.depth", self.depth.to_string()),
            ("workload.io.read_share", if self.write { "0.0" } else { "1.0" }.to_owned()),
        ];
        let overrides: Vec<Override> =
            set.into_iter().map(|(key, value)| Override { key: key.to_owned(), value }).collect();
        let mut lab = sanloom_lab::load("fc-al-validation.toml", LAB, &overrides)?.lab;
        for workload in &mut lab.workloads {
            workload.size = SizeDistribution::Fixed(self.size_kib * 1024);
        }
        Ok(Arc::new(lab))
    }
}

/// Simulates a lab; returns `None` if the run was interrupted.
pub fn measure(lab: &Arc<Lab>) -> Option<Measured> {
    let results = run::run(lab, View::default()).results;
    let lines = results.links.iter().flat_map(|link| [&link.forward, &link.backward]);
    (!results.lab.interrupted).then(|| Measured {
        iops: results.totals.io.iops,
        throughput: results.totals.io.throughput_sansim_mb_per_s(),
        response_us: results.totals.io.latency.mean_us,
        line: lines.map(|line| line.utilisation).fold(0.0, f64::max),
    })
}

/// Returns the numbers of section 3.
pub fn judged(measured: &[(Point, Measured)]) -> Vec<Verdict> {
    let read = |size_kib, depth| find(measured, Point { write: false, size_kib, depth });
    let fit = "One of three published numbers that fit three constants of the target: its time for a command, and those \
               for a sequence and for a frame of data.";
    let number = |kind, id, what, paper, ours, unit| Verdict::shown(kind, id, what, paper, ours, unit);
    let iops_at = |size_kib, depth| read(size_kib, depth).map(|it| it.iops / 1e3);
    vec![
        number(
            Kind::Fit,
            "loop-8k-iops",
            "Figure 4, reads of 8 KB, most requests (depth 32)",
            17.5,
            iops_at(8, 32),
            "k/s",
        )
        .note(fit),
        number(Kind::Fit, "loop-2k-iops", "reads of 2 KB (depth 32)", 22.5, iops_at(2, 32), "k/s").note(fit),
        number(
            Kind::Fit,
            "loop-32k-throughput",
            "reads of 32 KB (depth 32)",
            175.0,
            read(32, 32).map(|it| it.throughput),
            UNIT,
        )
        .note(fit),
        number(
            Kind::Derived,
            "loop-8k-response",
            "reads of 8 KB, mean response at depth 8",
            471.0,
            read(8, 8).map(|it| it.response_us),
            "us",
        )
        .note(
            "The only number of section 3 that the document simulated and did not measure. By Little's law it follows \
             from the rate, which is a fit: 8 / 17.5 k/s = 457 us, 3 % less. The document states an error of less than 3 % \
             for reads.",
        ),
        number(
            Kind::Prediction,
            "loop-saturation",
            "reads of 8 KB, requests/s at depth 64 over those at depth 8",
            100.0,
            read(8, 64).zip(read(8, 8)).map(|(deep, eight)| 100.0 * deep.iops / eight.iops),
            "%",
        )
        .predicted(0.01)
        .tolerance_reason("beyond the critical queue depth the document sees no improvement")
        .note("\"When the queue depth is bigger than this critical value, the system shows no improvement\"."),
        number(
            Kind::Prediction,
            "loop-long-requests",
            "reads of 512 KB at depth 8, share of the time in which the line is busy",
            100.0,
            read(512, 8).map(|it| 100.0 * it.line),
            "%",
        )
        .predicted(0.1)
        .tolerance_reason("the document says that the bandwidth of the network limits requests of more than 128 KB")
        .note("The rest is the time of the target for each sequence and frame."),
    ]
}

fn find(measured: &[(Point, Measured)], point: Point) -> Option<Measured> {
    measured.iter().find(|(found, _)| *found == point).map(|(_, measured)| *measured)
}

/// A figure as a table and a chart: its title, its heads, and a row for each queue depth or size.
struct Figure {
    id: &'static str,
    title: &'static str,
    heads: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
    /// Labels of both axes.
    axes: [&'static str; 2],
    /// Origin of each curve.
    origins: Vec<&'static str>,
    /// Published numbers that parameters were fitted to, and their values on the vertical axis.
    fits: &'static [(&'static str, f64)],
}

const PREDICTED: &str = "prediction";
const FITTED: &str = "fit at depth 32";
/// Rates at a depth of 8 are those at a depth of 32, which are fits at three sizes.
const FOLLOWS: &str = "derived at 2, 8, 32 KB";
/// Sentence below a chart with such curves.
const ORIGINS: &str = "Parameters were fitted to the numbers of the document, which are levels. A point marked as derived \
                       follows from a fit. All other points of each curve are predictions.";

fn figures(measured: &[(Point, Measured)]) -> Vec<Figure> {
    let by_depth = |id, title, write| Figure {
        id,
        title,
        axes: ["queue depth", if write { "writes per second" } else { "reads per second" }],
        origins: SIZES_BY_DEPTH.map(|size| if write || size == 16 { PREDICTED } else { FITTED }).to_vec(),
        fits: if write {
            &[]
        } else {
            &[("document: 22.5 k/s, 2 KB", 22_500.0), ("document: 17.5 k/s, 8 KB", 17_500.0)]
        },
        heads: std::iter::once("Queue depth".to_owned())
            .chain(SIZES_BY_DEPTH.map(|size| format!("{size} KB")))
            .collect(),
        rows: (DEPTHS.iter())
            .map(|&depth| {
                let iops = |size_kib| find(measured, Point { write, size_kib, depth }).map(|it| it.iops);
                (depth.to_string(), SIZES_BY_DEPTH.map(iops).to_vec())
            })
            .collect(),
    };
    let by_size = |id, title, write| Figure {
        id,
        title,
        axes: ["size, KB", "MB/s"],
        origins: DEPTHS_BY_SIZE.map(|depth| if write || depth < 8 { PREDICTED } else { FOLLOWS }).to_vec(),
        fits: if write { &[] } else { &[("document: 175 MB/s, 32 KB", 175.0)] },
        heads: std::iter::once("Size".to_owned()).chain(DEPTHS_BY_SIZE.map(|depth| format!("depth {depth}"))).collect(),
        rows: (SIZES.iter())
            .map(|&size_kib| {
                let rate = |depth| find(measured, Point { write, size_kib, depth }).map(|it| it.throughput);
                (format!("{size_kib} KB"), DEPTHS_BY_SIZE.map(rate).to_vec())
            })
            .collect(),
    };
    vec![
        by_depth("figure4", "Figure 4: reads per second against queue depth", false),
        by_depth("figure5", "Figure 5: writes per second against queue depth", true),
        by_size("figure6", "Figure 6: throughput of reads against size, in MB/s of 1000 × 1024 bytes", false),
        by_size("figure7", "Figure 7: throughput of writes against size, in MB/s of 1000 × 1024 bytes", true),
    ]
}

fn shown(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.1}") })
}

/// Returns the figures as tables for a terminal.
pub fn tables(measured: &[(Point, Measured)], width: usize) -> String {
    let mut text = String::new();
    for figure in figures(measured) {
        let mut grid = Grid::new(figure.heads.iter().map(|head| Column::right(head)).collect());
        for (name, values) in figure.rows {
            grid.row(std::iter::once(name).chain(values.into_iter().map(shown)).collect());
        }
        text.push_str(&format!("{}\n{}\n", figure.title, grid.render(width)));
    }
    text
}

/// Returns the chart of a figure. The legend has the origin of each curve.
fn plot(figure: &Figure) -> Plot {
    let curve = |(number, (head, origin)): (usize, (&String, &&str))| {
        let points = figure.rows.iter().filter_map(|(name, values)| {
            let x: f64 = name.split(' ').next()?.parse().ok()?;
            Some((x, (*values.get(number)?)?))
        });
        PlotCurve { name: format!("{head} ({origin})"), points: points.collect() }
    };
    let [x, y] = figure.axes.map(str::to_owned);
    Plot {
        title: figure.title.split(':').next().unwrap_or_default().to_owned(),
        x,
        y,
        curves: figure.heads[1..].iter().zip(&figure.origins).enumerate().map(curve).collect(),
        levels: figure.fits.iter().map(|(name, y)| Level { name: (*name).to_owned(), y: *y }).collect(),
        is_log: true,
    }
}

/// Returns the figures as sections of a page: identifier, title, chart and table.
pub fn sections(measured: &[(Point, Measured)]) -> Vec<(&'static str, &'static str, String)> {
    let section = |figure: Figure| {
        let (first, others) = figure.heads.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
        let table = others.iter().fold(Table::new(figure.id).text(first), |table, head| table.number(head));
        let mut table = table;
        let mut chart = drawings(&[plot(&figure)]);
        if !figure.fits.is_empty() {
            chart.push_str(&format!("<p>{ORIGINS}</p>\n"));
        }
        for (name, values) in figure.rows {
            let values = values.into_iter().map(|value| Cell::number(value.unwrap_or(0.0), shown(value)));
            table.row(std::iter::once(Cell::text(&name)).chain(values).collect());
        }
        (figure.id, figure.title, chart + &table.html())
    };
    figures(measured).into_iter().map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_of_a_figure_has_a_run() {
        let one = Measured { iops: 1.0, throughput: 1.0, response_us: 1.0, line: 1.0 };
        let measured: Vec<(Point, Measured)> = points().into_iter().map(|point| (point, one)).collect();
        for figure in figures(&measured) {
            assert!(figure.rows.iter().flat_map(|(_, values)| values).all(Option::is_some), "{}", figure.title);
        }
    }

    /// 22.5 k/s of 2 KB, 17.5 k/s of 8 KB and 175 MB/s of 32 KB are the fits of the document. Their
    /// curves may not be shown as predictions, and no others may be shown as fits.
    #[test]
    fn each_curve_of_a_chart_has_all_points_and_its_origin() {
        let one = Measured { iops: 1.0, throughput: 1.0, response_us: 1.0, line: 1.0 };
        let measured: Vec<(Point, Measured)> = points().into_iter().map(|point| (point, one)).collect();
        let plots: Vec<Plot> = figures(&measured).iter().map(plot).collect();
        let curves = |plot: &Plot| {
            let names = plot.curves.iter().map(|curve| curve.name.split_once(" (").expect("an origin"));
            names.map(|(name, origin)| (name.to_owned(), origin.starts_with("prediction"))).collect::<Vec<_>>()
        };
        let named = |name: &str, is_predicted| (name.to_owned(), is_predicted);
        assert_eq!(
            curves(&plots[0]),
            [named("2 KB", false), named("8 KB", false), named("16 KB", true), named("32 KB", false)]
        );
        assert!(curves(&plots[1]).iter().all(|curve| curve.1));
        assert_eq!(curves(&plots[2]), [named("depth 1", true), named("depth 2", true), named("depth 8", false)]);
        assert!(curves(&plots[3]).iter().all(|curve| curve.1));
        let depths: Vec<f64> = plots[0].curves[3].points.iter().map(|point| point.0).collect();
        assert_eq!(depths, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        let sizes: Vec<f64> = plots[3].curves[2].points.iter().map(|point| point.0).collect();
        assert_eq!(sizes, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]);
    }
}
