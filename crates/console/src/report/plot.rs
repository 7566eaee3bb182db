//! Plots of curves with many points, each panel with a scale of its own, as SVG.

use super::figure9::{COLOURS, nice_end, ticks};
use super::format;
use super::html::escape;
use serde::Serialize;
use std::fmt::Write as _;

/// A plot with its own scale.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Plot {
    /// Title above the plot.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    pub curves: Vec<PlotCurve>,
    /// Reference values from other sources, drawn as levels.
    pub levels: Vec<Level>,
    /// The horizontal axis is logarithmic, with a tick at each power of two. Values are at least 1.
    #[serde(skip)]
    pub is_log: bool,
}

/// One curve.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PlotCurve {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right, in the units of the axes.
    pub points: Vec<(f64, f64)>,
}

/// A horizontal line.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Level {
    /// Name in the legend.
    pub name: String,
    /// Value on the vertical axis.
    pub y: f64,
}

const WIDTH: f64 = 540.0;
/// Left, top, width and height of the frame; the legend is below it.
const FRAME: (f64, f64, f64, f64) = (62.0, 40.0, 460.0, 220.0);
const LEGEND_LINE: f64 = 15.0;

/// Returns the SVG elements of several plots, one after another.
pub fn drawings(plots: &[Plot]) -> String {
    plots.iter().map(|plot| format!("<div class=\"drawing\">{}</div>\n", svg(plot))).collect()
}

/// The plot as an SVG element.
pub fn svg(plot: &Plot) -> String {
    let (left, top, width, height) = FRAME;
    let (right, bottom) = (left + width, top + height);
    let lines = plot.curves.len() + plot.levels.len();
    let total = bottom + 50.0 + LEGEND_LINE * lines.div_ceil(2) as f64;
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let x_end = points().map(|point| point.0).fold(0.0, f64::max);
    let (x_max, x_ticks) = if plot.is_log {
        let doublings = x_end.max(2.0).log2().ceil() as i32;
        (2f64.powi(doublings), (0..=doublings).map(|power| 2f64.powi(power)).collect())
    } else {
        (nice_end(x_end), ticks(nice_end(x_end)))
    };
    let highest = points().map(|point| point.1).chain(plot.levels.iter().map(|level| level.y)).fold(0.0, f64::max);
    let y_max = nice_end(highest * 1.05);
    let part = |value: f64| if plot.is_log { value.max(1.0).ln() / x_max.ln() } else { value / x_max };
    let at_x = |value: f64| left + width * part(value).clamp(0.0, 1.0);
    let at_y = |value: f64| bottom - height * (value / y_max).clamp(0.0, 1.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" width=\"{WIDTH}\" height=\"{total}\" \
         role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{total}\" fill=\"#ffffff\"/>\n\
         <text x=\"{left}\" y=\"{:.1}\" font-size=\"14\" font-weight=\"600\" fill=\"#1b2330\">{}</text>\n",
        top - 14.0,
        escape(&plot.title)
    );
    for value in ticks(y_max) {
        let _ = writeln!(
            out,
            "<path d=\"M{left} {:.1}H{right}\" stroke=\"#e3e7ee\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5c6778\">{}</text>",
            at_y(value),
            left - 6.0,
            at_y(value) + 4.0,
            format::plain(value)
        );
    }
    for value in x_ticks {
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {bottom}v4\" stroke=\"#8a94a5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5c6778\">{}</text>",
            at_x(value),
            at_x(value),
            bottom + 16.0,
            format::plain(value)
        );
    }
    let _ = writeln!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#8a94a5\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5c6778\">{}</text>\n\
         <text transform=\"translate({:.1} {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#5c6778\">{}</text>",
        left + width / 2.0,
        bottom + 32.0,
        escape(&plot.x),
        left - 42.0,
        top + height / 2.0,
        escape(&plot.y)
    );
    let mut names: Vec<(&str, &str, &str)> = Vec::new();
    for (number, curve) in plot.curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        // More curves than colours: the later ones are dashed.
        let dashes = if number < COLOURS.len() { "" } else { "4 3" };
        let mut path = String::new();
        for (at, (x, y)) in curve.points.iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, at_x(*x), at_y(*y));
        }
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\"/>"
        );
        names.push((&curve.name, colour, dashes));
    }
    for level in &plot.levels {
        let colour = "#5c6778";
        let _ = writeln!(
            out,
            "<path d=\"M{left} {:.1}H{right}\" stroke=\"{colour}\" stroke-width=\"1.2\" stroke-dasharray=\"7 4\"/>",
            at_y(level.y)
        );
        names.push((&level.name, colour, "7 4"));
    }
    for (number, (name, colour, dashes)) in names.into_iter().enumerate() {
        let x = left + width / 2.0 * (number % 2) as f64;
        let y = bottom + 50.0 + LEGEND_LINE * (number / 2) as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1}h22\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{:.1}\" y=\"{y:.1}\" fill=\"#1b2330\">{}</text>",
            y - 4.0,
            x + 28.0,
            escape(name)
        );
    }
    out.push_str("</svg>\n");
    out
}
