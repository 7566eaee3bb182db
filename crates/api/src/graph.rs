//! Drawing of a lab as a value: [`Graph`]. `GET /api/v1/graph` returns it as JSON.
//!
//! Positions are in the units of the drawing of `sanloom check --svg`: hosts at the top, switches
//! in tiers, storage at the bottom, and each fabric in a column of its own.

use crate::view::Plane;
use serde::{Deserialize, Serialize};

/// Name of the JSON format.
pub const FORMAT: &str = "sanloom-graph";
/// Version of the JSON format. It increases when a field changes its meaning or is removed.
pub const VERSION: u32 = 1;

/// Nodes, links and positions of a lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Graph {
    /// Always [`FORMAT`].
    pub format: String,
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Name of the lab.
    pub of: String,
    /// Width of the drawing.
    pub width: f64,
    /// Height of the drawing.
    pub height: f64,
    /// Backgrounds of the fabrics; empty if the lab has one fabric.
    pub fabrics: Vec<GraphFabric>,
    /// Boxes of the drawing.
    pub shapes: Vec<GraphShape>,
    /// Lines of the drawing: all links between two shapes.
    pub cables: Vec<GraphCable>,
    /// Links: those of Fibre Channel, then of Ethernet, then of InfiniBand, each in the order of
    /// the lab.
    pub links: Vec<GraphLink>,
}

/// Background of the switches of a fabric, or of a network.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphFabric {
    /// Name in the drawing.
    pub label: String,
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// Kind of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeKind {
    /// Hosts.
    #[default]
    Host,
    /// A switch or an arbitrated loop.
    Switch,
    /// Storage systems.
    Storage,
}

/// A node, or several nodes with the same links.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphShape {
    /// Name of the node, or the number of nodes.
    pub label: String,
    /// Kind of its nodes.
    pub kind: ShapeKind,
    /// Index of the fabric of a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<u32>,
    /// Plane of a switch.
    #[serde(skip_serializing_if = "is_fibre_channel")]
    pub plane: Plane,
    /// Horizontal centre.
    pub x: f64,
    /// Vertical centre.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Names of the nodes, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Description.
    pub tooltip: String,
}

/// All links between two shapes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphCable {
    /// Indices of the shapes.
    pub shapes: [u32; 2],
    /// Indices of the links.
    pub links: Vec<u32>,
}

/// A link of the lab.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphLink {
    /// Name of the link.
    pub name: String,
    /// Ports at its ends, for example `edge1:3`.
    pub ends: [String; 2],
    /// Speed, for example `32GFC`.
    pub rate: String,
    /// Capacity of each direction, in bytes per second.
    pub rate_bytes_per_s: f64,
    /// Plane of the link.
    #[serde(skip_serializing_if = "is_fibre_channel")]
    pub plane: Plane,
}

fn is_fibre_channel(plane: &Plane) -> bool {
    *plane == Plane::FibreChannel
}
