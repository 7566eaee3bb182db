//! The topology as a value for the page: [`graph`].

use super::layout::{Column, Kind, Layout, Shape};
use super::wires::wires;
use sanloom_api::graph::{self, Graph, GraphCable, GraphFabric, GraphLink, GraphShape, ShapeKind};
use sanloom_api::view::Plane;
use sanloom_fc::san::Lab;

/// Returns the drawing of [`svg`](super::svg) as a value.
pub fn graph(lab: &Lab, isolated: &[usize]) -> Graph {
    let wires = wires(lab);
    let layout = Layout::of(lab, &wires, isolated);
    let links = wires.iter().map(|wire| GraphLink {
        name: wire.name.to_owned(),
        ends: wire.ports.clone(),
        rate: wire.rate.clone(),
        rate_bytes_per_s: wire.bytes_per_s as f64,
        plane: if wire.plane == Plane::Virtual { Plane::FibreChannel } else { wire.plane },
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
    let Shape { label, plane, members, tooltip, .. } = shape;
    GraphShape { label, kind, fabric, plane, x, y, width, height, members, tooltip }
}
