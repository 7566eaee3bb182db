//! The fabric of the simulator benchmarks, "F8-hops v2": a core/edge fabric like Figure 8 of
//! document 001 under saturated 32 KB reads, with 32 requests in flight on each host, credits and
//! arbitration on, and inter-switch links that alternate frame by frame.

use std::fmt::Write as _;

/// Number of nodes, half of them hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Nodes {
    /// Four edge switches with four nodes and two links to the core each.
    #[value(name = "16")]
    N16,
    /// Sixty-four edge switches with sixteen nodes and eight links to the core each.
    #[value(name = "1024")]
    N1024,
}

/// Enforcement of zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Enforced {
    /// The name server hides ports; every frame passes.
    Soft,
    /// The forwarding tables drop frames as well.
    Hard,
}

/// Number of targets in the zone of a host.
const ZONED_TARGETS: u32 = 16;

struct Size {
    edges: u32,
    nodes_per_edge: u32,
    isls_per_edge: u32,
}

impl Nodes {
    fn size(self) -> Size {
        match self {
            Nodes::N16 => Size { edges: 4, nodes_per_edge: 4, isls_per_edge: 2 },
            Nodes::N1024 => Size { edges: 64, nodes_per_edge: 16, isls_per_edge: 8 },
        }
    }

    /// Number of nodes.
    pub fn count(self) -> u32 {
        let size = self.size();
        size.edges * size.nodes_per_edge
    }

    /// Simulated time of a run, enough for a second of processor time.
    pub fn duration(self) -> &'static str {
        match self {
            Nodes::N16 => "3s",
            Nodes::N1024 => "100ms",
        }
    }

    /// Returns the text of the lab. Host edges and storage edges alternate.
    ///
    /// With zones, each host has its own zone with 16 devices on different storage edges. If there
    /// are at most 16 devices, a zone holds all of them, and exists only if `zoning` is given.
    /// Unzoned, every host logs in to every device.
    pub fn lab(self, unzoned: bool, zoning: Option<Enforced>, duration: &str) -> String {
        let Size { edges, nodes_per_edge, isls_per_edge } = self.size();
        let hosts = edges / 2 * nodes_per_edge;
        let policy = if zoning == Some(Enforced::Soft) { "hard_zoning = \"off\"\n" } else { "" };
        let mut lab = format!(
            "[lab]\nname = \"bench-{}\"\npreset = \"sansim-2004\"\n\n\
             [run]\nduration = \"{duration}\"\nwarmup = \"0s\"\nseed = 1\n\n\
             [switch.\"edge{{1..{edges}}}\"]\n{policy}[switch.core]\n{policy}\n\
             [host.\"host{{1..{hosts}}}\"]\ndata_frames_in_flight = \"unlimited\"\n\n[storage.\"disk{{1..{hosts}}}\"]\nsequence_overhead = \"0s\"\n",
            self.count()
        );
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
}
