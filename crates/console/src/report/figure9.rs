//! Figure 9 of the SANSim paper, section 4.3: throughput against offered load, with one panel per
//! failure case.
//!
//! The text of the paper does not contain its curves. The numbers stated in the text are drawn as
//! points and levels beside ours.

use super::format;
use super::html::{Cell, Table, escape, plain_page};
use std::fmt::Write as _;

/// One panel: one failure case at one request size.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Panel {
    /// `Case I: no link failure`.
    pub title: String,
    /// Simulated curves.
    pub curves: Vec<Curve>,
    /// Values stated in the paper.
    pub paper: Vec<PaperPoint>,
}

/// A simulated curve.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curve {
    /// `servers 1–4, 32 KB`.
    pub name: String,
    /// Offered load and throughput of one server, both in the unit of the axes, by rising load.
    pub points: Vec<(f64, f64)>,
}

/// A value stated in the paper.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PaperPoint {
    /// `paper: 80 MB/s`.
    pub name: String,
    /// Offered load of the value; `None` means at saturation, drawn as a level.
    pub offered: Option<f64>,
    /// Value in the unit of the axes.
    pub throughput: f64,
    /// Index of the curve to compare with, which has the same colour.
    pub curve: usize,
}

const WIDTH: f64 = 1080.0;
const PANEL_WIDTH: f64 = 540.0;
const PANEL_HEIGHT: f64 = 350.0;
/// Margins of a panel: left, right, top, bottom.
const ROOM: (f64, f64, f64, f64) = (62.0, 18.0, 40.0, 92.0);
pub(super) const COLOURS: [&str; 6] = ["#2563eb", "#e07b0c", "#0f9d8a", "#9333ea", "#5c9a12", "#db2777"];

/// The figure as SVG, two panels in a row. `unit` names both axes, for example `MB/s of 1000 × 1024
/// bytes`.
pub fn svg(panels: &[Panel], unit: &str) -> String {
    let rows = panels.len().div_ceil(2).max(1);
    let height = PANEL_HEIGHT * rows as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"11\">\n\
         <title>Throughput against offered load</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    // All panels have the same scale, so that they can be compared.
    let x_max = nice_end(
        panels
            .iter()
            .flat_map(|panel| &panel.curves)
            .flat_map(|curve| &curve.points)
            .map(|point| point.0)
            .fold(0.0, f64::max),
    );
    let ours = panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points).map(|point| point.1);
    let papers = panels.iter().flat_map(|panel| &panel.paper).map(|point| point.throughput);
    let y_max = nice_end(ours.chain(papers).fold(0.0, f64::max) * 1.05);
    for (i, panel) in panels.iter().enumerate() {
        let axes = Axes {
            left: PANEL_WIDTH * (i % 2) as f64 + ROOM.0,
            top: PANEL_HEIGHT * (i / 2) as f64 + ROOM.2,
            width: PANEL_WIDTH - ROOM.0 - ROOM.1,
            height: PANEL_HEIGHT - ROOM.2 - ROOM.3,
            x_max,
            y_max,
        };
        draw_panel(&mut out, &axes, panel, unit);
    }
    out.push_str("</svg>\n");
    out
}

/// Returns a complete page with the figure, a table of its numbers, and the command that reproduces
/// it.
pub fn html(panels: &[Panel], unit: &str, command: &str) -> String {
    let mut table =
        Table::new("figure9").text("Case").text("Curve").number("Offered").number("Throughput").number("Paper");
    for panel in panels {
        for (index, curve) in panel.curves.iter().enumerate() {
            let last = curve.points.len().saturating_sub(1);
            for (i, (offered, throughput)) in curve.points.iter().enumerate() {
                let stated = panel
                    .paper
                    .iter()
                    .find(|paper| paper.curve == index && paper.offered.map_or(i == last, |at| at == *offered));
                table.row(vec![
                    Cell::text(&panel.title),
                    Cell::text(&curve.name),
                    Cell::number(*offered, format::plain(*offered)),
                    Cell::number(*throughput, format::plain(*throughput)),
                    match stated {
                        Some(paper) => Cell::number(paper.throughput, format::plain(paper.throughput)),
                        None => Cell::text(""),
                    },
                ]);
            }
        }
    }
    plain_page(
        "Figure 9: throughput against offered load",
        "The SANSim paper, section 4. Curves are ours; dashed levels and diamonds are the numbers that the paper's text states.",
        &[format!("axes in {unit}, per server")],
        vec![
            ("figure", "Figure", format!("<div class=\"drawing figure\">{}</div>\n", svg(panels, unit))),
            ("numbers", "Numbers", table.html()),
            ("command", "Command", format!("<pre class=\"command\">{}</pre>\n", escape(command))),
        ],
    )
}

struct Axes {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x_max: f64,
    y_max: f64,
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        self.left + self.width * (value / self.x_max).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - (value / self.y_max).clamp(0.0, 1.0))
    }
}

fn draw_panel(out: &mut String, axes: &Axes, panel: &Panel, unit: &str) {
    let (right, bottom) = (axes.left + axes.width, axes.top + axes.height);
    let _ = writeln!(
        out,
        "<g>\n<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"14\" font-weight=\"600\" fill=\"#1b2330\">{}</text>",
        axes.left,
        axes.top - 14.0,
        escape(&panel.title)
    );
    for value in ticks(axes.y_max) {
        let y = axes.y(value);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {y:.1}H{right:.1}\" stroke=\"#e3e7ee\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5c6778\">{}</text>",
            axes.left,
            axes.left - 6.0,
            y + 4.0,
            format::plain(value)
        );
    }
    for value in ticks(axes.x_max) {
        let x = axes.x(value);
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {bottom:.1}v4\" stroke=\"#8a94a5\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5c6778\">{}</text>",
            bottom + 16.0,
            format::plain(value)
        );
    }
    // Line where throughput equals offered load; a curve that leaves it is saturated.
    let end = axes.x_max.min(axes.y_max);
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {bottom:.1}L{:.1} {:.1}\" stroke=\"#c3cad6\" stroke-dasharray=\"1 4\"/>\n\
         <path d=\"M{:.1} {:.1}V{bottom:.1}H{right:.1}\" fill=\"none\" stroke=\"#8a94a5\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5c6778\">offered load per server, {u}</text>\n\
         <text transform=\"translate({:.1} {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#5c6778\">\
         throughput per server</text>",
        axes.left,
        axes.x(end),
        axes.y(end),
        axes.left,
        axes.top,
        axes.left + axes.width / 2.0,
        bottom + 32.0,
        axes.left - 42.0,
        axes.top + axes.height / 2.0,
        u = escape(unit)
    );
    for paper in &panel.paper {
        draw_paper(out, axes, paper);
    }
    for (i, curve) in panel.curves.iter().enumerate() {
        draw_curve(out, axes, curve, COLOURS[i % COLOURS.len()]);
    }
    legend(out, axes, panel);
    out.push_str("</g>\n");
}

fn draw_curve(out: &mut String, axes: &Axes, curve: &Curve, colour: &str) {
    let mut path = String::new();
    for (i, (x, y)) in curve.points.iter().enumerate() {
        let command = if i == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", axes.x(*x), axes.y(*y));
    }
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>"
    );
    for (x, y) in &curve.points {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {} offered, {} served</title></circle>",
            axes.x(*x),
            axes.y(*y),
            escape(&curve.name),
            format::plain(*x),
            format::plain(*y)
        );
    }
}

fn draw_paper(out: &mut String, axes: &Axes, paper: &PaperPoint) {
    let colour = COLOURS[paper.curve % COLOURS.len()];
    let y = axes.y(paper.throughput);
    let title = escape(&paper.name);
    match paper.offered {
        Some(offered) => {
            let x = axes.x(offered);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {:.1}l6 6l-6 6l-6 -6z\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"1.8\">\
                 <title>{title}</title></path>",
                y - 6.0
            );
        }
        None => {
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"{colour}\" stroke-width=\"1.4\" stroke-dasharray=\"7 4\" \
                 opacity=\"0.75\"><title>{title}</title></path>",
                axes.left,
                axes.left + axes.width
            );
        }
    }
}

/// Two columns below the axis: curves, then values of the paper.
fn legend(out: &mut String, axes: &Axes, panel: &Panel) {
    let curves = panel.curves.iter().enumerate().map(|(i, curve)| (i, curve.name.as_str(), ""));
    let papers = panel.paper.iter().map(|paper| {
        let dashes = if paper.offered.is_none() { "7 4" } else { "2 2" };
        (paper.curve, paper.name.as_str(), dashes)
    });
    for (i, (colour, name, dashes)) in curves.chain(papers).enumerate() {
        let x = axes.left + axes.width / 2.0 * (i % 2) as f64;
        let y = axes.top + axes.height + 50.0 + 15.0 * (i / 2) as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1}h22\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{:.1}\" y=\"{y:.1}\" fill=\"#1b2330\">{}</text>",
            y - 4.0,
            COLOURS[colour % COLOURS.len()],
            x + 28.0,
            escape(name)
        );
    }
}

/// Step of about five ticks: 1, 2 or 5 times a power of ten.
fn step(end: f64) -> f64 {
    let raw = end / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let unit = raw / power;
    power
        * match unit {
            u if u <= 1.0 => 1.0,
            u if u <= 2.0 => 2.0,
            u if u <= 5.0 => 5.0,
            _ => 10.0,
        }
}

pub(super) fn nice_end(max: f64) -> f64 {
    if max > 0.0 && max.is_finite() {
        let step = step(max);
        (max / step).ceil() * step
    } else {
        1.0
    }
}

pub(super) fn ticks(end: f64) -> Vec<f64> {
    let step = step(end);
    let count = (end / step).round() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_a_round_number() {
        assert_eq!(nice_end(83.0), 100.0);
        assert_eq!(nice_end(48.1), 50.0);
        assert_eq!(nice_end(0.0), 1.0);
        assert_eq!(nice_end(f64::INFINITY), 1.0);
        assert_eq!(ticks(100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }
}
