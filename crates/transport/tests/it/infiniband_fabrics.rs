//! Random fabrics of several families, and their text for ibsim.

use sanloom_scsi::random::SplitMix64;
use sanloom_transport::infiniband::fabric::{Fabric, Guid, NodeId, PortId};
use std::fmt::Write;

/// Family of random fabrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Tree of switches with additional links, some of them parallel.
    Graph,
    /// Tree of switches.
    Tree,
    /// Leaves and spines, with 1 to 3 parallel links.
    TwoLevels,
    /// Pods of leaves and middle switches under roots.
    ThreeLevels,
}

pub const FAMILIES: [Family; 4] = [Family::Graph, Family::Tree, Family::TwoLevels, Family::ThreeLevels];

/// Fabric with its manager.
pub struct Sample {
    pub fabric: Fabric,
    pub manager: PortId,
}

/// Builder that draws GUIDs and ports.
struct Draw {
    random: SplitMix64,
    fabric: Fabric,
    /// GUIDs are drawn, not counted.
    random_guids: bool,
    /// Cables take a random free port, not the next one.
    random_ports: bool,
    next: u64,
}

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.random.index(bound)
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    fn guid(&mut self) -> Guid {
        self.next += 16;
        let high = if self.random_guids { (self.random.bits() >> 24) << 16 } else { 1 << 32 };
        Guid(high | self.next)
    }

    fn switch(&mut self, ports: usize) -> NodeId {
        let guid = self.guid();
        self.fabric.switch(guid, ports).unwrap()
    }

    fn port(&mut self, node: NodeId) -> Option<PortId> {
        let data = self.fabric.node(node);
        let free: Vec<u8> = (1..=data.ports()).filter(|port| data.peer(*port).is_none()).collect();
        if free.is_empty() {
            return None;
        }
        let index = if self.random_ports { self.below(free.len()) } else { 0 };
        Some(PortId { node, port: free[index] })
    }

    /// Joins two nodes if both have a free port.
    fn join(&mut self, a: NodeId, b: NodeId) {
        if let (Some(a), Some(b)) = (self.port(a), self.port(b)) {
            self.fabric.connect(a, b).unwrap();
        }
    }

    fn host(&mut self, switch: NodeId) -> NodeId {
        let guid = self.guid();
        let host = self.fabric.adapter(guid, 1).unwrap();
        self.join(host, switch);
        host
    }

    fn two_ports(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let guid = self.guid();
        let host = self.fabric.adapter(guid, 2).unwrap();
        self.join(host, a);
        self.join(host, b);
        host
    }
}

/// Draws a fabric of a family.
pub fn draw(family: Family, seed: u64) -> Sample {
    let mut draw =
        Draw { random: SplitMix64(seed), fabric: Fabric::default(), random_guids: false, random_ports: false, next: 0 };
    draw.random_guids = draw.below(2) == 1;
    draw.random_ports = draw.below(2) == 1;
    let hosts = match family {
        Family::Graph => graph(&mut draw, true),
        Family::Tree => graph(&mut draw, false),
        Family::TwoLevels => two_levels(&mut draw),
        Family::ThreeLevels => three_levels(&mut draw),
    };
    let hosts: Vec<NodeId> =
        hosts.into_iter().filter(|host| draw.fabric.node(*host).links().next().is_some()).collect();
    let host = hosts[draw.below(hosts.len())];
    let (port, _) = draw.fabric.node(host).links().next().unwrap();
    Sample { manager: PortId { node: host, port }, fabric: draw.fabric }
}

fn graph(draw: &mut Draw, cycles: bool) -> Vec<NodeId> {
    let count = draw.between(1, 12);
    let switches: Vec<NodeId> = (0..count).map(|_| draw.switch(36)).collect();
    for index in 1..count {
        let parent = draw.below(index);
        draw.join(switches[index], switches[parent]);
    }
    if cycles && count > 1 {
        for _ in 0..draw.below(2 * count) {
            let (a, b) = (draw.below(count), draw.below(count));
            if a != b {
                draw.join(switches[a], switches[b]);
            }
        }
    }
    let hosts = draw.between(2, 24);
    (0..hosts)
        .map(|_| {
            let (a, b) = (draw.below(count), draw.below(count));
            if draw.below(4) == 0 { draw.two_ports(switches[a], switches[b]) } else { draw.host(switches[a]) }
        })
        .collect()
}

fn two_levels(draw: &mut Draw) -> Vec<NodeId> {
    let (leaves, spines, parallel) = (draw.between(2, 6), draw.between(1, 4), draw.between(1, 3));
    let spines: Vec<NodeId> = (0..spines).map(|_| draw.switch(36)).collect();
    let leaves: Vec<NodeId> = (0..leaves).map(|_| draw.switch(36)).collect();
    let full = draw.between(1, 6);
    let missing = draw.below(2) == 1;
    let mut hosts = Vec::new();
    for leaf in leaves {
        for _ in 0..if missing { draw.between(1, full) } else { full } {
            hosts.push(draw.host(leaf));
        }
        for spine in &spines {
            for _ in 0..parallel {
                draw.join(leaf, *spine);
            }
        }
    }
    hosts
}

fn three_levels(draw: &mut Draw) -> Vec<NodeId> {
    let (pods, leaves, middles) = (draw.between(2, 4), draw.between(1, 3), draw.between(1, 3));
    let (above, parallel) = (draw.between(1, 3), draw.between(1, 2));
    // Each middle switch of a pod has its own roots, or all share the same.
    let shared = draw.below(2) == 1;
    let roots: Vec<NodeId> = (0..if shared { above } else { above * middles }).map(|_| draw.switch(36)).collect();
    let full = draw.between(1, 4);
    let missing = draw.below(2) == 1;
    let mut hosts = Vec::new();
    for _ in 0..pods {
        let middles: Vec<NodeId> = (0..middles).map(|_| draw.switch(36)).collect();
        for (index, middle) in middles.iter().enumerate() {
            for root in 0..above {
                let root = roots[if shared { root } else { index * above + root }];
                for _ in 0..parallel {
                    draw.join(*middle, root);
                }
            }
        }
        for _ in 0..leaves {
            let leaf = draw.switch(36);
            for _ in 0..if missing { draw.between(1, full) } else { full } {
                hosts.push(draw.host(leaf));
            }
            for middle in &middles {
                draw.join(leaf, *middle);
            }
        }
    }
    hosts
}

/// Name of a node in the text.
pub fn name(node: NodeId) -> String {
    format!("n{node}")
}

/// Fabric in the format of ibsim, which is that of ibnetdiscover.
pub fn text(fabric: &Fabric) -> String {
    let mut text = String::new();
    for (id, node) in fabric.nodes().iter().enumerate() {
        let (key, kind) = if node.is_switch() { ("switchguid", "Switch") } else { ("caguid", "Hca") };
        writeln!(text, "{key}={:#x}", node.guid.0).unwrap();
        writeln!(text, "{kind} {} \"{}\"", node.ports(), name(id)).unwrap();
        for (port, peer) in node.links() {
            writeln!(text, "[{port}] \"{}\"[{}]", name(peer.node), peer.port).unwrap();
        }
        text.push('\n');
    }
    text
}
