//! Settings of the parts of mixed labs, each of which some labs have.

use super::draw::Draft;
use std::fmt::Write;

/// Settings, by the names under which they are counted.
pub(super) const VARIANTS: [&str; 26] = [
    "alpha",
    "arbitration",
    "arbitration of a switch",
    "dctcp",
    "ecn step",
    "ecn ramp",
    "ets",
    "ftree",
    "headroom",
    "high priority",
    "ipoib level",
    "lanes",
    "levels",
    "lmc",
    "mask",
    "mtu",
    "nagle",
    "no sack",
    "no window scaling",
    "pacing",
    "partitions",
    "priority",
    "roots",
    "srp level",
    "trunk",
    "updn",
];

impl Draft {
    /// Returns whether a lab has a setting: one of `of` labs.
    pub(super) fn varies(&mut self, variant: &'static str, of: u64) -> bool {
        assert!(VARIANTS.contains(&variant), "{variant}");
        let has = self.dice.chance(1, of);
        if has {
            self.variants.insert(variant);
        }
        has
    }

    /// Returns keys of the Ethernet switches.
    pub(super) fn ethernet_keys(&mut self) -> String {
        let mut keys = "pfc = 3\n".to_owned();
        if self.varies("headroom", 4) {
            let _ = writeln!(keys, "headroom = \"{}KiB\"", self.dice.range(64, 256));
        }
        if self.varies("alpha", 4) {
            let (lossless, lossy) = (self.dice.pick(&["0.03125", "0.5", "8"]), self.dice.pick(&["0.125", "1", "4"]));
            let _ = writeln!(keys, "alpha = {lossless}\nlossy_alpha = {lossy}");
        }
        if self.varies("ets", 3) {
            let share = self.dice.range(1, 9) * 10;
            let _ = writeln!(keys, "ets = {{ 0 = {}, 3 = {share} }}", 100 - share);
        }
        if self.varies("ecn step", 4) {
            let _ = writeln!(keys, "ecn = {{ from = \"{}KiB\" }}", self.dice.range(10, 100));
        } else if self.varies("ecn ramp", 4) {
            let (from, more) = (self.dice.range(5, 50), self.dice.range(10, 300));
            let _ = writeln!(keys, "ecn = {{ from = \"{from}KiB\", to = \"{}KiB\", chance = 0.2 }}", from + more);
        }
        keys
    }

    /// Returns tables of the subnet and of its switches.
    pub(super) fn subnet(&mut self) -> String {
        let mut subnet = "[subnet]\nsweep = \"5ms\"\n".to_owned();
        if self.varies("updn", 4) {
            subnet += "routing = \"updn\"\n";
        } else if self.varies("ftree", 4) {
            // Two switches with hosts at both are no fat tree: `minhop` replaces it.
            subnet += "routing = \"ftree\"\n";
        }
        if subnet.contains("routing") && self.varies("roots", 2) {
            subnet += "roots = \"ib1\"\n";
        }
        if self.varies("lmc", 3) {
            let _ = writeln!(subnet, "lmc = {}", self.dice.range(1, 3));
        }
        if self.varies("mtu", 3) {
            let _ = writeln!(subnet, "mtu = {}", self.dice.pick(&["1024", "4096"]));
        }
        let lanes = if self.varies("lanes", 2) { self.dice.range(2, 4) } else { 1 };
        let _ = writeln!(subnet, "lanes = {lanes}");
        if self.varies("levels", 3) {
            let lane = |draft: &mut Draft| draft.dice.range(0, lanes - 1);
            let (low, high) = (lane(self), lane(self));
            let _ = writeln!(subnet, "levels = [\"{{0..2}}:{low}\", \"{{3..15}}:{high}\"]");
        }
        if self.varies("arbitration", 3) {
            subnet += &self.arbitration(lanes);
        }
        let mut switches = "[infiniband_switch.\"ib{1..2}\"]\n".to_owned();
        if self.varies("arbitration of a switch", 3) {
            let tables = self.arbitration(lanes);
            let _ = write!(switches, "[infiniband_switch.ib1]\n{tables}");
        }
        subnet + &switches
    }

    /// Returns arbitration tables in which every lane has a weight.
    fn arbitration(&mut self, lanes: u64) -> String {
        let entries = (0..lanes).map(|lane| format!("\"{lane}:{}\"", self.dice.range(1, 255)));
        let low = entries.collect::<Vec<String>>().join(", ");
        let high = match self.varies("high priority", 2) {
            true => format!("high = \"{}:{}\", ", self.dice.range(0, lanes - 1), self.dice.range(1, 255)),
            false => String::new(),
        };
        let limit = self.dice.pick(&["0", "1", "16", "255"]);
        format!("arbitration = {{ {high}low = [{low}], limit = {limit} }}\n")
    }

    /// Returns the keys of SRP of a host and of its storage system.
    pub(super) fn srp_keys(&mut self) -> [String; 2] {
        let (mut host, mut storage) = (Vec::new(), String::new());
        if self.varies("srp level", 3) {
            host.push(format!("level = {}", self.dice.range(1, 15)));
        }
        if self.varies("partitions", 3) {
            let own = self.dice.range(1, 100);
            host.push(format!("partition = {own}"));
            storage = format!("partitions = [{own}, {}]", own + self.dice.range(1, 100));
        }
        let host = if host.is_empty() { String::new() } else { format!("\nsrp = {{ {} }}", host.join(", ")) };
        [host, format!("srp = {{ {storage} }}")]
    }

    /// Returns the service level of an IPoIB interface.
    pub(super) fn ipoib_level(&mut self) -> String {
        match self.varies("ipoib level", 3) {
            true => format!(", level = {}", self.dice.range(1, 15)),
            false => String::new(),
        }
    }

    /// Returns keys of TCP and of the priority of an initiator of iSCSI.
    pub(super) fn tcp_keys(&mut self) -> String {
        let mut keys = Vec::new();
        if self.varies("dctcp", 4) {
            keys.push("congestion = \"dctcp\"");
        }
        for (variant, key) in [
            ("pacing", "pacing = true"),
            ("nagle", "nagle = true"),
            ("no sack", "sack = false"),
            ("no window scaling", "window_scaling = false, window = \"64KiB\""),
        ] {
            if self.varies(variant, 4) {
                keys.push(key);
            }
        }
        let priority = match self.varies("priority", 4) {
            true => format!(", priority = {}", self.dice.pick(&["3", "4", "7"])),
            false => String::new(),
        };
        format!("{priority}, tcp = {{ {} }}", keys.join(", "))
    }

    /// Adds a mask that shows the LUNs of a gateway to its host.
    pub(super) fn mask(&mut self, host: &str, storage: &str) {
        if self.varies("mask", 3) {
            self.node(&format!("[[mask]]\nhosts = \"{host}\"\ntargets = \"{storage}\""));
        }
    }
}
