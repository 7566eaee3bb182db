//! The topology as an SVG drawing.

use super::layout::{BOX_HEIGHT, CELL_HEIGHT, Cable, Column, HEADING, Kind, Layout, Shape};
use super::names::compress;
use super::wires::{Wire, wires};
use sanloom_fc::san::Lab;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Limit on parallel links that are drawn separately.
const MAX_PARALLEL: usize = 8;
/// Number of cables above which parallel links are drawn as one line.
const MANY_CABLES: usize = 60;
/// Number of links above which lines do not carry the names of their links, because the drawing
/// would take more than a megabyte.
const MAX_NAMED_LINKS: usize = 4_000;
/// Distance between parallel lines.
const SPACING: f64 = 8.0;
/// Space of the legend below the drawing.
const LEGEND: f64 = 36.0;

/// Results of a run that the drawing shows.
#[derive(Default)]
pub struct Marks<'a> {
    /// Indices of the links that the switches isolate.
    pub isolated: &'a [usize],
    /// Utilisation of a link by its index, from 0 to 1: links of Fibre Channel, then of Ethernet,
    /// then of InfiniBand. Busier links have redder and thicker lines.
    pub busy: Option<&'a dyn Fn(usize) -> f64>,
    /// Names of links, switches, hosts and storage systems with a fault.
    pub faults: BTreeSet<String>,
    /// Names of links, ports and nodes that a finding names as the cause.
    pub culprits: BTreeSet<String>,
    /// Names of nodes that a finding names as affected.
    pub victims: BTreeSet<String>,
}

impl Marks<'_> {
    /// Classes of a link or node, each with a leading blank. `server1:0` also marks `server1`.
    fn classes(&self, name: &str) -> String {
        let has = |names: &BTreeSet<String>| {
            names.contains(name)
                || names.iter().any(|marked| marked.rsplit_once(':').is_some_and(|(node, _)| node == name))
        };
        let all = [(&self.faults, " fault"), (&self.culprits, " culprit"), (&self.victims, " victim")];
        all.into_iter().filter(|(names, _)| has(names)).map(|(_, class)| class).collect()
    }
}

/// Returns a layered drawing: hosts at the top, switches by tier, storage at the bottom, and each
/// fabric in a column of its own. Many nodes with the same links share a panel. The drawing is
/// readable on light and dark pages. `colour` returns the utilisation of a link by its index, 0 to
/// 1.
///
/// Links in `isolated`, and links that are dark at the start, join no fabrics.
pub fn svg(lab: &Lab, isolated: &[usize], colour: Option<&dyn Fn(usize) -> f64>) -> String {
    marked_svg(lab, &Marks { busy: colour, isolated, ..Marks::default() })
}

/// Like [`svg`], with the results of a run.
pub fn marked_svg(lab: &Lab, marks: &Marks<'_>) -> String {
    let wires = wires(lab);
    let layout = Layout::of(lab, &wires, marks.isolated);
    let legend = if marks.busy.is_some() { LEGEND } else { 0.0 };
    let (width, height) = (layout.width, layout.height + legend);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{}</title>\n{STYLE}",
        escape(&format!("Topology of {}", lab.name))
    );
    out.push_str("<g class=\"fabrics\">\n");
    layout.columns.iter().for_each(|column| draw_column(column, &mut out));
    out.push_str("</g>\n<g class=\"links\">\n");
    for cable in &layout.cables {
        let is_single = cable.links.len() <= if layout.cables.len() > MANY_CABLES { 1 } else { MAX_PARALLEL };
        draw_cable(&wires, &layout.shapes, cable, is_single, marks, &mut out);
    }
    // Headings stand above the lines that cross them.
    out.push_str("</g>\n<g class=\"headings\">\n");
    layout.columns.iter().for_each(|column| draw_heading(column, &mut out));
    out.push_str("</g>\n<g class=\"nodes\">\n");
    for shape in &layout.shapes {
        draw_shape(shape, marks, &mut out);
    }
    out.push_str("</g>\n<g class=\"counts\">\n");
    for count in &layout.counts {
        let (x, y) = (count.left + count.width / 2.0, count.top + count.height / 2.0);
        let (left, top, text) = (count.left, count.top, escape(&count.text));
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\"/><text x=\"{x:.1}\" y=\"{y:.1}\" dy=\"0.35em\">{text}</text>",
            count.width, count.height
        );
    }
    out.push_str("</g>\n");
    if marks.busy.is_some() {
        draw_legend(layout.height, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "<style>
.host rect { fill: #dbeafe; stroke: #2563eb }
.switch rect { fill: #e5e7eb; stroke: #4b5563 }
.storage rect { fill: #dcfce7; stroke: #15803d }
.panel > rect { fill: #ffffff; stroke-width: 1.4 }
.cell rect { stroke-width: .6 }
.cell text { font-size: 11px }
.nodes text { fill: #111827; text-anchor: middle }
.nodes text.heading { text-anchor: start; font-weight: 600 }
.fabrics rect { fill: #f3f4f6; stroke: #d1d5db; stroke-dasharray: 6 4 }
.headings text { fill: #4b5563; font-weight: 600; paint-order: stroke; stroke: #f3f4f6; stroke-width: 5px }
.links path { fill: none; stroke: #8a94a6; stroke-width: 1.6 }
.links path:hover { stroke-width: 6 }
.links path.fault { stroke-dasharray: 7 5 }
.links path.culprit { stroke: #d7263d; stroke-width: 4 }
.counts { pointer-events: none }
.counts rect { fill: #f3f4f6 }
.counts text { fill: #4b5563; font-size: 11px; text-anchor: middle }
.legend text { fill: #6b7280; font-size: 11px }
.nodes .fault > rect { stroke: #d7263d; stroke-width: 2.4; stroke-dasharray: 7 5 }
.nodes .victim > rect { fill: #fde68a; stroke: #b45309 }
.nodes .culprit > rect { fill: #fecaca; stroke: #d7263d; stroke-width: 3 }
@media (prefers-color-scheme: dark) {
.host rect { fill: #1e3a5f; stroke: #60a5fa }
.switch rect { fill: #374151; stroke: #9ca3af }
.storage rect { fill: #14402a; stroke: #4ade80 }
.panel > rect { fill: #191f29 }
.nodes text { fill: #f3f4f6 }
.fabrics rect, .counts rect { fill: #1d242f; stroke: #374151 }
.counts rect { stroke: none }
.headings text, .counts text, .legend text { fill: #9ca3af }
.headings text { stroke: #1d242f }
.nodes .victim > rect { fill: #6b4a0f; stroke: #f0b14d }
.nodes .culprit > rect { fill: #7f1d2c; stroke: #ff7f91 }
}
</style>
";

fn draw_column(column: &Column, out: &mut String) {
    let Column { left, top, width, height, .. } = column;
    let _ =
        writeln!(out, "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"10\"/>");
}

fn draw_heading(column: &Column, out: &mut String) {
    let (x, y, label) = (column.left + 8.0, column.top + HEADING / 2.0, escape(&column.label));
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" dy=\"0.35em\">{label}</text>");
}

fn draw_shape(shape: &Shape, marks: &Marks<'_>, out: &mut String) {
    let (class, radius) = match shape.kind {
        Kind::Host => ("host", 4),
        Kind::Switch => ("switch", 12),
        Kind::Storage => ("storage", 4),
    };
    let (left, top) = (shape.x - shape.width / 2.0, shape.y - shape.height / 2.0);
    let (width, height) = (shape.width, shape.height);
    if shape.cells.is_empty() {
        let _ = writeln!(
            out,
            "<g class=\"{class}{}\" data-node=\"{name}\"><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{radius}\"/><text x=\"{:.1}\" y=\"{:.1}\" dy=\"0.35em\">{name}</text></g>",
            marks.classes(&shape.label),
            escape(&shape.tooltip),
            shape.x,
            shape.y,
            name = escape(&shape.label)
        );
        return;
    }
    let _ = writeln!(
        out,
        "<g class=\"{class} panel\"><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/><text class=\"heading\" x=\"{:.1}\" y=\"{:.1}\" dy=\"0.35em\">{}</text>",
        escape(&shape.tooltip),
        left + 8.0,
        top + HEADING / 2.0,
        escape(&shape.label)
    );
    for cell in &shape.cells {
        let _ = writeln!(
            out,
            "<g class=\"cell{}\" data-node=\"{name}\"><title>{}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{CELL_HEIGHT}\" rx=\"3\"/><text x=\"{:.1}\" y=\"{:.1}\" dy=\"0.35em\">{name}</text></g>",
            marks.classes(&cell.name),
            escape(&cell.tooltip),
            cell.x - cell.width / 2.0,
            cell.y - CELL_HEIGHT / 2.0,
            cell.width,
            cell.x,
            cell.y,
            name = escape(&cell.name)
        );
    }
    out.push_str("</g>\n");
}

fn draw_cable(wires: &[Wire<'_>], shapes: &[Shape], cable: &Cable, single: bool, marks: &Marks<'_>, out: &mut String) {
    let [a, b] = cable.shapes.map(|s| &shapes[s]);
    let (top, bottom) = if a.y <= b.y { (a, b) } else { (b, a) };
    let lines: Vec<&[usize]> = match single {
        true => cable.links.chunks(1).collect(),
        false => vec![&cable.links],
    };
    let middle = (lines.len() as f64 - 1.0) / 2.0;
    for (number, links) in lines.iter().enumerate() {
        let shift = (number as f64 - middle) * SPACING;
        let busy = marks.busy.map(|of| links.iter().map(|&l| of(l)).fold(0.0, f64::max).clamp(0.0, 1.0));
        let style = match busy {
            Some(busy) => format!(" style=\"stroke: {}; stroke-width: {:.1}\"", heat(busy), 1.4 + 3.0 * busy),
            None if !single => " style=\"stroke-width: 4\"".to_owned(),
            None => String::new(),
        };
        let mut title = match links {
            [link] => {
                let link = &wires[*link];
                format!("{}, {}, light takes {}", link.name, link.rate, link.propagation)
            }
            _ if wires.len() > MAX_NAMED_LINKS => format!("{} links", links.len()),
            _ => format!("{} links: {}", links.len(), compress(links.iter().map(|&l| wires[l].name))),
        };
        if let Some(busy) = busy {
            let _ = write!(title, ", {:.0} % busy", busy * 100.0);
        }
        let names = links.iter().map(|&link| wires[link].name);
        let data = match wires.len() {
            0..=MAX_NAMED_LINKS => escape(&names.clone().collect::<Vec<_>>().join(" ")),
            _ => String::new(),
        };
        let mut classes: Vec<String> = names.map(|name| marks.classes(name)).collect();
        classes.sort();
        classes.dedup();
        let class = classes.concat();
        let class = if class.is_empty() { class } else { format!(" class=\"{}\"", class.trim_start()) };
        let _ = writeln!(
            out,
            "<path{class}{style} data-links=\"{}\" d=\"{}\"><title>{}</title></path>",
            data,
            path(top, bottom, shift),
            escape(&title)
        );
    }
}

/// Returns a straight line between rows, or an arc between boxes of one row.
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
    let (from, to) = (foot(top, bottom.x), foot(bottom, top.x));
    let (high, low) = (top.y + top.height / 2.0, bottom.y - bottom.height / 2.0);
    format!("M{:.1} {high:.1} L{:.1} {low:.1}", from + shift, to + shift)
}

/// The place at the edge of a shape where a line towards `x` ends. A panel is wide, so its lines
/// begin near their other end.
fn foot(shape: &Shape, x: f64) -> f64 {
    let half = if shape.cells.is_empty() { 0.0 } else { (shape.width / 2.0 - 14.0).max(0.0) };
    shape.x + (x - shape.x).clamp(-half, half)
}

/// Returns a colour from grey through orange to red. The scale is readable on white and black, and
/// for readers with red-green colour blindness.
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
