//! Labs of the simulator benchmarks: core/edge fabrics under saturated reads, with 32 requests in
//! flight on each host.

use sanloom_bare::{Rules, Shape, ZONED_TARGETS};
use std::fmt::Write as _;

/// Number of nodes, half of them hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Nodes {
    /// Four edge switches with four nodes and two links to the core each.
    #[value(name = "16")]
    N16,
    /// Sixty-four edge switches with sixteen nodes and eight links to the core each; thirty-two
    /// with thirty-two nodes in the fabric `voq`.
    #[value(name = "1024")]
    N1024,
    /// Sixty-four edge switches with thirty-two nodes and eight links to the core each.
    #[value(name = "2048")]
    N2048,
    /// The same with 128 edge switches.
    #[value(name = "4096")]
    N4096,
}

/// Fabric of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Fabric {
    /// "F8-hops v2": 2GFC and one core like Figure 8 of the SANSim paper, reads of 32 KB, any frame
    /// of a buffer may leave, inter-switch links alternate frame by frame.
    Sansim,
    /// 8GFC and two cores, reads of 16 KiB, zones of sixteen hosts and sixteen devices, virtual
    /// output queues, and the other defaults of a lab.
    Voq,
}

/// Enforcement of zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Enforced {
    /// The name server hides ports; every frame passes.
    Soft,
    /// The forwarding tables drop frames as well.
    Hard,
}

impl Nodes {
    /// Returns the cabling.
    pub fn shape(self, fabric: Fabric) -> Shape {
        let (edges, nodes_per_edge, isls) = match (self, fabric) {
            (Nodes::N16, _) => (4, 4, 2),
            (Nodes::N1024, Fabric::Sansim) => (64, 16, 8),
            (Nodes::N1024, Fabric::Voq) => (32, 32, 8),
            (Nodes::N2048, _) => (64, 32, 8),
            (Nodes::N4096, _) => (128, 32, 8),
        };
        let cores = if fabric == Fabric::Voq { 2 } else { 1 };
        Shape { edges, nodes_per_edge, cores, isls_per_core: isls / cores }
    }

    /// Simulated time of a run, enough for a second of processor time.
    pub fn duration(self, fabric: Fabric) -> &'static str {
        match (self, fabric) {
            (Nodes::N16, Fabric::Sansim) => "3s",
            (Nodes::N16, Fabric::Voq) => "1s",
            (Nodes::N1024, Fabric::Sansim) => "100ms",
            (Nodes::N1024, Fabric::Voq) => "20ms",
            (Nodes::N2048, _) => "10ms",
            (Nodes::N4096, _) => "5ms",
        }
    }
}

impl Fabric {
    /// Returns the settings of the bare credit program.
    pub fn rules(self) -> Rules {
        match self {
            Fabric::Sansim => {
                Rules { ps_per_byte: 4706, buffers: 4, header_bytes: None, latency_ps: 700_000, frames: 16 }
            }
            Fabric::Voq => {
                Rules { ps_per_byte: 1176, buffers: 16, header_bytes: Some(28), latency_ps: 700_000, frames: 8 }
            }
        }
    }

    /// Returns the text of the lab.
    ///
    /// With zones, each host has its own zone with 16 devices on different storage edges. If there
    /// are at most 16 devices, a zone holds all of them, and exists only if `zoning` is given.
    /// Unzoned, every host logs in to every device.
    pub fn lab(self, nodes: Nodes, unzoned: bool, zoning: Option<Enforced>, duration: &str) -> String {
        let shape = nodes.shape(self);
        let policy = if zoning == Some(Enforced::Soft) { "hard_zoning = \"off\"\n" } else { "" };
        match self {
            Fabric::Sansim => sansim(shape, unzoned, zoning, policy, duration),
            Fabric::Voq => voq(shape, unzoned, policy, duration),
        }
    }
}

fn sansim(shape: Shape, unzoned: bool, zoning: Option<Enforced>, policy: &str, duration: &str) -> String {
    let Shape { edges, nodes_per_edge, isls_per_core: isls_per_edge, .. } = shape;
    let hosts = shape.hosts();
    let mut lab = format!(
        "[lab]\nname = \"bench-{}\"\npreset = \"sansim-2004\"\n\n\
         [run]\nduration = \"{duration}\"\nwarmup = \"0s\"\nseed = 1\n\n\
         [switch.\"edge{{1..{edges}}}\"]\n{policy}[switch.core]\n{policy}\n\
         [host.\"host{{1..{hosts}}}\"]\ndata_frames_in_flight = \"unlimited\"\n\n[storage.\"disk{{1..{hosts}}}\"]\nsequence_overhead = \"0s\"\n",
        shape.nodes()
    );
    // Host edges and storage edges alternate.
    for pair in 0..edges / 2 {
        let (first, last) = (pair * nodes_per_edge + 1, (pair + 1) * nodes_per_edge);
        for (node, edge) in [("host", 2 * pair + 1), ("disk", 2 * pair + 2)] {
            let _ = write!(lab, "\n[[link]]\nfrom = \"{node}{{{first}..{last}}}\"\nto = \"edge{edge}\"\n");
        }
    }
    let _ = write!(
        lab,
        "\n[[isl]]\nfrom = \"edge{{1..{edges}}}\"\nto = \"core\"\ncount = {isls_per_edge}\n\
         name = \"ISL{{1..{}}}\"\n",
        edges * isls_per_edge
    );
    let targets = ZONED_TARGETS.min(hosts);
    if unzoned || targets == hosts && zoning.is_none() {
        let _ = write!(
            lab,
            "\n[workload.reads]\nhosts = \"host{{1..{hosts}}}\"\ntargets = \"disk{{1..{hosts}}}\"\n\
             size = \"32KiB\"\ndepth = 32\n"
        );
        return lab;
    }
    lab.push_str("\n[zoning]\ndefault = \"closed\"\n\n[workload.\"*\"]\nsize = \"32KiB\"\ndepth = 32\n");
    for host in 0..hosts {
        let disks: Vec<String> =
            (0..targets).map(|n| format!("\"disk{}\"", (host + n * (hosts / targets)) % hosts + 1)).collect();
        let disks = disks.join(", ");
        let host = host + 1;
        let _ = write!(
            lab,
            "\n[[zone]]\nname = \"zone{host}\"\nmembers = [\"host{host}\", {disks}]\n\
             [workload.reads{host}]\nhosts = \"host{host}\"\ntargets = [{disks}]\n"
        );
    }
    lab
}

fn voq(shape: Shape, unzoned: bool, policy: &str, duration: &str) -> String {
    let Shape { edges, cores, isls_per_core, .. } = shape;
    let hosts = shape.hosts();
    let zones = if unzoned { 1 } else { (hosts / ZONED_TARGETS).max(1) };
    let mut lab = format!(
        "[lab]\nname = \"bench-voq-{nodes}\"\n\n\
         [run]\nduration = \"{duration}\"\nwarmup = \"0s\"\nseed = 1\n\n\
         [switch.\"*\"]\n{policy}[switch.\"edge{{1..{edges}}}\"]\n[switch.\"core{{1..{cores}}}\"]\n\n\
         [host.\"host{{1..{hosts}}}\"]\n[storage.\"disk{{1..{hosts}}}\"]\n\n\
         [[link]]\nfrom = \"host{{1..{hosts}}}\"\nto = \"edge{{1..{half}}}\"\nrate = \"8GFC\"\n\n\
         [[link]]\nfrom = \"disk{{1..{hosts}}}\"\nto = \"edge{{{storage}..{edges}}}\"\nrate = \"8GFC\"\n\n\
         [[zone]]\nname = \"zone{{1..{zones}}}\"\nmembers = [\"host{{1..{hosts}}}\", \"disk{{1..{hosts}}}\"]\n\
         spread = \"round-robin\"\n\n\
         [workload.\"reads{{1..{zones}}}\"]\nhosts = \"host{{1..{hosts}}}\"\ntargets = \"disk{{1..{hosts}}}\"\n\
         size = \"16KiB\"\ndepth = 32\nspread = \"round-robin\"\n",
        nodes = shape.nodes(),
        half = edges / 2,
        storage = edges / 2 + 1,
    );
    for core in 1..=cores {
        let _ = write!(
            lab,
            "\n[[isl]]\nfrom = \"edge{{1..{edges}}}\"\nto = \"core{core}\"\ncount = {isls_per_core}\nrate = \"8GFC\"\n"
        );
    }
    lab
}
