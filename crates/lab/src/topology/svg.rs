//! The topology as a drawing.

use super::layout::{BOX_HEIGHT, Cable, Kind, Layout, Shape};
use super::names::compress;
use sanloom_core::config::Lab;
use std::fmt::Write;

/// So many parallel links are drawn one by one.
const MAX_PARALLEL: usize = 8;
/// In drawings with more cables than this, parallel links are one line.
const MANY_CABLES: usize = 60;
/// Distance of parallel lines.
const SPACING: f64 = 8.0;

/// A layered drawing: hosts at the top, switches by tier, storage at the bottom; many alike nodes as one box. It reads
/// well on light and dark pages. `colour` gives the utilisation of a link, 0 to 1, by its index; the busier, the redder
/// and thicker its line.
pub fn svg(lab: &Lab, colour: Option<&dyn Fn(usize) -> f64>) -> String {
    let layout = Layout::of(lab);
    let legend = if colour.is_some() { 36.0 } else { 0.0 };
    let (width, height) = (layout.width, layout.height + legend);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{}</title>\n{STYLE}",
        escape(&format!("Topology of {}", lab.name))
    );
    out.push_str("<g class=\"links\">\n");
    for cable in &layout.cables {
        let is_single = cable.links.len() <= if layout.cables.len() > MANY_CABLES { 1 } else { MAX_PARALLEL };
        draw_cable(lab, &layout.shapes, cable, is_single, colour, &mut out);
    }
    out.push_str("</g>\n<g class=\"nodes\">\n");
    for shape in &layout.shapes {
        draw_shape(shape, &mut out);
    }
    out.push_str("</g>\n");
    if colour.is_some() {
        draw_legend(layout.height, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "<style>
.host rect { fill: #dbeafe; stroke: #2563eb }
.switch rect { fill: #e5e7eb; stroke: #4b5563 }
.storage rect { fill: #dcfce7; stroke: #15803d }
.nodes text { fill: #111827; text-anchor: middle }
.links path { fill: none; stroke: #8a94a6; stroke-width: 1.6 }
.links path:hover { stroke-width: 5 }
.count, .legend text { fill: #6b7280; font-size: 11px }
@media (prefers-color-scheme: dark) {
.host rect { fill: #1e3a5f; stroke: #60a5fa }
.switch rect { fill: #374151; stroke: #9ca3af }
.storage rect { fill: #14402a; stroke: #4ade80 }
.nodes text { fill: #f3f4f6 }
.count, .legend text { fill: #9ca3af }
}
</style>
";

fn draw_shape(shape: &Shape, out: &mut String) {
    let (class, radius) = match shape.kind {
        Kind::Host => ("host", 4),
        Kind::Switch => ("switch", 12),
        Kind::Storage => ("storage", 4),
    };
    let _ = writeln!(
        out,
        "<g class=\"{class}\"><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{radius}\"/><text x=\"{:.1}\" y=\"{:.1}\" dy=\"0.35em\">{}</text></g>",
        escape(&shape.tooltip),
        shape.x - shape.width / 2.0,
        shape.y - BOX_HEIGHT / 2.0,
        shape.width,
        shape.x,
        shape.y,
        escape(&shape.label)
    );
}

fn draw_cable(
    lab: &Lab,
    shapes: &[Shape],
    cable: &Cable,
    single: bool,
    colour: Option<&dyn Fn(usize) -> f64>,
    out: &mut String,
) {
    let [a, b] = cable.shapes.map(|s| &shapes[s]);
    let (top, bottom) = if a.y <= b.y { (a, b) } else { (b, a) };
    let lines: Vec<&[usize]> = match single {
        true => cable.links.chunks(1).collect(),
        false => vec![&cable.links],
    };
    let middle = (lines.len() as f64 - 1.0) / 2.0;
    for (number, links) in lines.iter().enumerate() {
        let shift = (number as f64 - middle) * SPACING;
        let busy = colour.map(|of| links.iter().map(|&l| of(l)).fold(0.0, f64::max).clamp(0.0, 1.0));
        let style = match busy {
            Some(busy) => format!(" style=\"stroke: {}; stroke-width: {:.1}\"", heat(busy), 1.4 + 3.0 * busy),
            None if !single => " style=\"stroke-width: 4\"".to_owned(),
            None => String::new(),
        };
        let mut title = match links {
            [link] => {
                let link = &lab.links[*link];
                format!("{}, {}, light takes {}", link.name, link.rate, link.propagation)
            }
            _ => format!("{} links: {}", links.len(), compress(links.iter().map(|&l| lab.links[l].name.as_str()))),
        };
        if let Some(busy) = busy {
            let _ = write!(title, ", {:.0} % busy", busy * 100.0);
        }
        let _ =
            writeln!(out, "<path{style} d=\"{}\"><title>{}</title></path>", path(top, bottom, shift), escape(&title));
    }
    if !single && top.kind == Kind::Switch && bottom.kind == Kind::Switch {
        let _ = writeln!(
            out,
            "<text class=\"count\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            (top.x + bottom.x) / 2.0 + 5.0,
            (top.y + bottom.y) / 2.0,
            cable.links.len()
        );
    }
}

/// A straight line between rows, an arc between boxes of one row.
fn path(top: &Shape, bottom: &Shape, shift: f64) -> String {
    let half = BOX_HEIGHT / 2.0;
    if (top.y - bottom.y).abs() < 1.0 {
        let (left, right) = if top.x <= bottom.x { (top, bottom) } else { (bottom, top) };
        let depth = 20.0 + (right.x - left.x).abs() * 0.12 + shift;
        return format!(
            "M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}",
            left.x + shift,
            left.y + half,
            (left.x + right.x) / 2.0,
            left.y + half + depth.min(70.0) * 1.6,
            right.x - shift,
            right.y + half
        );
    }
    format!("M{:.1} {:.1} L{:.1} {:.1}", top.x + shift, top.y + half, bottom.x + shift, bottom.y - half)
}

/// Grey over orange to red: readable on white and black, and for eyes that do not tell red from green.
fn heat(busy: f64) -> String {
    let stops = [(0x8a, 0x94, 0xa6), (0xe6, 0x9f, 0x00), (0xd7, 0x26, 0x3d)];
    let at = busy * 2.0;
    let (from, to, part) = if at < 1.0 { (stops[0], stops[1], at) } else { (stops[1], stops[2], at - 1.0) };
    let mix = |a: i32, b: i32| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as i32;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn draw_legend(top: f64, out: &mut String) {
    out.push_str("<g class=\"legend\">");
    for (i, busy) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().enumerate() {
        let x = 24.0 + i as f64 * 70.0;
        let _ = write!(
            out,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"24\" height=\"6\" fill=\"{}\"/><text x=\"{:.0}\" y=\"{:.0}\">{:.0} %</text>",
            top + 4.0,
            heat(busy),
            x + 29.0,
            top + 11.0,
            busy * 100.0
        );
    }
    out.push_str("</g>\n");
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
