//! Positions of boxes and lines in a drawing: hosts at the top, switches in tiers, storage at the
//! bottom. The switches of each fabric have a column of their own.

mod collect;
mod place;

use super::wires::Wire;
use sanloom_api::view::Plane;
use sanloom_fc::san::Lab;

/// A node, or a panel with nodes that have the same links.
pub(super) struct Shape {
    pub kind: Kind,
    /// Name of the node, or the heading of the panel.
    pub label: String,
    pub tooltip: String,
    /// Horizontal centre.
    pub x: f64,
    /// Vertical centre.
    pub y: f64,
    pub width: f64,
    pub height: f64,
    /// The nodes of a panel; empty for a single node.
    pub cells: Vec<Cell>,
    /// Names of the nodes, if the shape stands for several.
    pub members: Vec<String>,
    /// Network of a switch.
    pub plane: Plane,
    row: usize,
    /// Index of the fabric of a switch, or of its network behind the fabrics.
    fabric: usize,
}

impl Shape {
    /// Index of the fabric of a switch, or of its network behind the fabrics.
    pub fn fabric(&self) -> usize {
        self.fabric
    }
}

/// A node in a panel.
pub(super) struct Cell {
    pub name: String,
    pub tooltip: String,
    /// Horizontal centre.
    pub x: f64,
    /// Vertical centre.
    pub y: f64,
    pub width: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Host,
    Switch,
    Storage,
}

/// All links between two shapes.
pub(super) struct Cable {
    pub shapes: [usize; 2],
    /// Indices into the links of all networks ([`super::wires::wires`]).
    pub links: Vec<usize>,
}

/// The background of the switches of a fabric, or of a network.
pub(super) struct Column {
    pub label: String,
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A text with its rectangle.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Label {
    pub text: String,
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A drawing without colours.
pub(super) struct Layout {
    pub shapes: Vec<Shape>,
    pub cables: Vec<Cable>,
    /// Empty if the lab has one fabric or network.
    pub columns: Vec<Column>,
    /// Numbers of parallel links, at cables between switches.
    pub counts: Vec<Label>,
    pub width: f64,
    pub height: f64,
}

pub(super) const MARGIN: f64 = 24.0;
/// Height of the box of a single node.
pub(super) const BOX_HEIGHT: f64 = 34.0;
/// Height of a node in a panel.
pub(super) const CELL_HEIGHT: f64 = 22.0;
/// Height of the heading of a panel or fabric.
pub(super) const HEADING: f64 = 24.0;
/// Width of a character in the label font.
const LETTER: f64 = 7.2;
/// Height of a line of text.
const LINE: f64 = 14.0;

impl Layout {
    /// Links in `isolated`, and links that are dark at the start, join no fabrics.
    pub fn of(lab: &Lab, wires: &[Wire<'_>], isolated: &[usize]) -> Layout {
        let mut shapes = Vec::new();
        let shape_of = collect::shapes(lab, wires, &mut shapes);
        let cables = collect::cables(wires, &shape_of);
        let rows = collect::rows(&mut shapes, &cables);
        let fabrics = collect::fabrics(&mut shapes, &lab.junctions_without(&lab.links_apart(isolated)));
        let mut layout = Layout { shapes, cables, columns: Vec::new(), counts: Vec::new(), width: 0.0, height: 0.0 };
        layout.place(rows, &fabrics);
        layout.place_counts();
        layout
    }

    /// Every text of the drawing with its rectangle.
    pub fn labels(&self) -> Vec<Label> {
        let mut labels = self.counts.clone();
        labels.extend(self.columns.iter().map(|column| heading(&column.label, column.left, column.top)));
        for shape in &self.shapes {
            if shape.cells.is_empty() {
                labels.push(centred(&shape.label, shape.x, shape.y));
            } else {
                let (left, top) = (shape.x - shape.width / 2.0, shape.y - shape.height / 2.0);
                labels.push(heading(&shape.label, left, top));
            }
            labels.extend(shape.cells.iter().map(|cell| centred(&cell.name, cell.x, cell.y)));
        }
        labels
    }
}

/// Estimated width of a text.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

fn centred(text: &str, x: f64, y: f64) -> Label {
    let width = text_width(text);
    Label { text: text.to_owned(), left: x - width / 2.0, top: y - LINE / 2.0, width, height: LINE }
}

/// A heading in the upper left corner of a box.
fn heading(text: &str, left: f64, top: f64) -> Label {
    let top = top + (HEADING - LINE) / 2.0;
    Label { text: text.to_owned(), left: left + 8.0, top, width: text_width(text), height: LINE }
}

impl Label {
    /// True if two rectangles have an area in common.
    pub fn overlaps(&self, other: &Label) -> bool {
        self.left < other.left + other.width
            && other.left < self.left + self.width
            && self.top < other.top + other.height
            && other.top < self.top + self.height
    }
}

#[cfg(test)]
mod tests {
    use super::super::wires::wires;
    use super::*;

    /// Dual-fabric lab: hosts at `edges` edge switches of each fabric, arrays at one more.
    fn dual(hosts: usize, edges: usize, arrays: usize) -> String {
        let mut text = String::from("[switch.coreA]\n[switch.coreB]\n");
        text += &format!("[switch.\"edgeA{{1..{edges}}}\"]\n[switch.\"edgeB{{1..{edges}}}\"]\n");
        text +=
            &format!("[host.\"esx{{001..{hosts:03}}}\"]\nhbas = 2\n[storage.\"array{{1..{arrays}}}\"]\nports = 2\n");
        for (port, side) in [(0, 'A'), (1, 'B')] {
            text += &format!(
                "[[link]]\nfrom = \"esx{{001..{hosts:03}}}:{port}\"\nto = \"edge{side}{{1..{edges}}}\"\n\
                 [[link]]\nfrom = \"array{{1..{arrays}}}:{port}\"\nto = \"core{side}\"\n\
                 [[isl]]\nfrom = \"edge{side}{{1..{edges}}}\"\nto = \"core{side}\"\ncount = 4\n"
            );
        }
        text
    }

    /// Single-fabric lab whose hosts have no two alike: host i is at two switches.
    fn mesh(hosts: usize, switches: usize) -> String {
        let mut text =
            format!("[switch.\"leaf{{1..{switches}}}\"]\n[host.\"server{{1..{hosts}}}\"]\nhbas = 2\n[storage.disk]\n");
        for host in 0..hosts {
            let (one, other) = (host % switches + 1, (host / switches + host + 1) % switches + 1);
            text += &format!(
                "[[link]]\nfrom = \"server{h}:0\"\nto = \"leaf{one}\"\n[[link]]\nfrom = \"server{h}:1\"\nto = \"leaf{other}\"\n",
                h = host + 1
            );
        }
        text += "[[link]]\nfrom = \"disk\"\nto = \"leaf1\"\n";
        for switch in 1..switches {
            text += &format!("[[isl]]\nfrom = \"leaf{switch}\"\nto = \"leaf{}\"\ncount = 2\n", switch + 1);
        }
        text
    }

    fn layout(text: &str) -> Layout {
        let loaded = crate::load("lab.toml", text, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
        Layout::of(&loaded.lab, &wires(&loaded.lab), &loaded.isolated)
    }

    #[test]
    fn no_label_is_over_another_at_40_and_at_500_hosts() {
        for (name, text) in [
            ("small", dual(4, 2, 2)),
            ("40 hosts", dual(40, 4, 4)),
            ("500 hosts", dual(500, 10, 20)),
            ("500 hosts at 2 edges", dual(500, 2, 20)),
            ("40 hosts in a mesh", mesh(40, 8)),
            ("500 hosts in a mesh", mesh(500, 20)),
        ] {
            let layout = layout(&text);
            let labels = layout.labels();
            for (index, label) in labels.iter().enumerate() {
                let right = label.left + label.width;
                assert!(label.left >= 0.0 && right <= layout.width, "{name}: {label:?} is outside of {}", layout.width);
                assert!(label.top >= 0.0 && label.top + label.height <= layout.height, "{name}: {label:?}");
                for other in &labels[index + 1..] {
                    assert!(!label.overlaps(other), "{name}: {label:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn every_host_is_named_as_the_lab_writes_it() {
        let layout = layout(&dual(500, 10, 20));
        let labels = layout.labels();
        for host in ["esx001", "esx040", "esx500"] {
            assert!(labels.iter().any(|label| label.text == host), "{host}");
        }
    }

    #[test]
    fn fabrics_are_drawn_in_separate_columns() {
        for text in [dual(40, 4, 4), dual(500, 10, 20)] {
            let layout = layout(&text);
            let [a, b] = &layout.columns[..] else { panic!("{} columns", layout.columns.len()) };
            assert!(a.left + a.width < b.left);
            for shape in layout.shapes.iter().filter(|shape| shape.kind == Kind::Switch) {
                let column = if shape.label.contains('A') { a } else { b };
                let (left, right) = (shape.x - shape.width / 2.0, shape.x + shape.width / 2.0);
                assert!(left >= column.left && right <= column.left + column.width, "{}", shape.label);
            }
        }
    }

    #[test]
    fn a_drawing_of_500_hosts_has_the_shape_of_a_screen() {
        let layout = layout(&dual(500, 10, 20));
        let ratio = layout.width / layout.height;
        assert!((0.8..4.0).contains(&ratio), "{} by {}", layout.width, layout.height);
    }
}
