//! The topology as a value for the page: [`graph`].

use super::layout::{Column, Kind, Layout, Shape};
use sanloom_api::graph::{self, Graph, GraphCable, GraphFabric, GraphLink, GraphShape, ShapeKind};
use sanloom_fc::config::LinkEnd;
use sanloom_fc::config::Node;
use sanloom_fc::san::{Lab, virtual_rates};

/// Returns the drawing of [`svg`](super::svg) as a value.
pub fn graph(lab: &Lab, isolated: &[usize]) -> Graph {
    let layout = Layout::of(lab, isolated);
    let port = |end: &LinkEnd| {
        let name = match end.node {
            Node::Switch(number) => &lab.switches[usize::from(number)].name,
            Node::Host(number) => &lab.hosts[usize::from(number)].name,
            Node::Storage(number) => &lab.storage[usize::from(number)].name,
            Node::Loop(number) => &lab.loops[usize::from(number)].name,
        };
        format!("{name}:{}", end.port)
    };
    let on_ethernet = virtual_rates(lab);
    let links = (0..).zip(&lab.links).map(|(number, link)| {
        let (rate, bytes_per_s) = match on_ethernet.get(&number) {
            Some(rate) => (rate.name().to_owned(), rate.bytes_per_s()),
            None => (link.rate.to_string(), link.rate.bytes_per_s()),
        };
        GraphLink {
            name: link.name.clone(),
            ends: [port(&link.ends[0]), port(&link.ends[1])],
            rate,
            rate_bytes_per_s: bytes_per_s as f64,
        }
    });
    Graph {
        format: graph::FORMAT.to_owned(),
        version: graph::VERSION,
        of: lab.name.clone(),
        width: tenth(layout.width),
        height: tenth(layout.height),
        fabrics: layout.columns.iter().map(fabric).collect(),
        shapes: layout.shapes.into_iter().map(shape).collect(),
        cables: layout
            .cables
            .into_iter()
            .map(|cable| GraphCable {
                shapes: cable.shapes.map(|shape| shape as u32),
                links: cable.links.into_iter().map(|link| link as u32).collect(),
            })
            .collect(),
        links: links.collect(),
    }
}

/// Short numbers make the document smaller.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn fabric(column: &Column) -> GraphFabric {
    let [left, top, width, height] = [column.left, column.top, column.width, column.height].map(tenth);
    GraphFabric { label: column.label.clone(), left, top, width, height }
}

fn shape(shape: Shape) -> GraphShape {
    let [x, y, width, height] = [shape.x, shape.y, shape.width, shape.height].map(tenth);
    let kind = match shape.kind {
        Kind::Host => ShapeKind::Host,
        Kind::Switch => ShapeKind::Switch,
        Kind::Storage => ShapeKind::Storage,
    };
    let fabric = (shape.kind == Kind::Switch).then(|| shape.fabric() as u32);
    GraphShape { label: shape.label, kind, fabric, x, y, width, height, members: shape.members, tooltip: shape.tooltip }
}
