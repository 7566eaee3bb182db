//! One host and one array behind each of today's fabrics.

use sanloom_console::exit::Failure;
use sanloom_fc::san::Lab;
use std::fmt::Write as _;
use std::sync::Arc;

/// A fabric of today.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fabric {
    Fc32,
    Iscsi25,
    Iscsi100,
    Fcoe100,
    SrpNdr,
}

/// Requests in flight of the busy host.
pub const DEPTH: u32 = 32;

impl Fabric {
    pub const ALL: [Fabric; 5] = [Fabric::Fc32, Fabric::Iscsi25, Fabric::Iscsi100, Fabric::Fcoe100, Fabric::SrpNdr];

    /// Name in tables and figures.
    pub fn name(self) -> &'static str {
        match self {
            Fabric::Fc32 => "FC, 32GFC",
            Fabric::Iscsi25 => "iSCSI, 25GbE",
            Fabric::Iscsi100 => "iSCSI, 100GbE",
            Fabric::Fcoe100 => "FCoE, 100GbE",
            Fabric::SrpNdr => "SRP, 4xNDR",
        }
    }

    /// Data that the line carries in one direction, in bytes per second: the line rate without the
    /// headers of full packets.
    pub fn line_bytes_per_s(self) -> f64 {
        match self {
            // 28.05 Gb/s, 64b/66b, frames of 2,112 bytes and 6 words between them: 2,048 of data.
            Fabric::Fc32 => 3_303.2e6,
            // MTU 9000 with time stamps: 8,948 bytes of 9,038; PDUs of 256 KiB.
            Fabric::Iscsi25 => 3_125e6 * 8_948.0 / 9_038.0,
            Fabric::Iscsi100 => 12_500e6 * 8_948.0 / 9_038.0,
            // 2,112 bytes of 2,200 with tag, preamble and gap; frames of 2,048.
            Fabric::Fcoe100 => 12_500e6 * 2_048.0 / 2_136.0,
            // Packets of 4,096 bytes with 28 of headers and symbols.
            Fabric::SrpNdr => 50_000e6 * 4_096.0 / 4_124.0,
        }
    }

    fn network(self) -> String {
        let link = |from: &str, to: &str, keys: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n");
        match self {
            Fabric::Fc32 => format!("[switch.sw]\n{}", link("{host,array}", "sw", "rate = \"32GFC\"")),
            Fabric::Iscsi25 | Fabric::Iscsi100 => {
                let rate = if self == Fabric::Iscsi25 { "25GbE" } else { "100GbE" };
                let keys = format!("rate = \"{rate}\"\nmtu = 9000");
                format!("[ethernet_switch.sw]\nmemory = \"64MiB\"\n{}", link("{host,array}", "sw", &keys))
            }
            Fabric::Fcoe100 => {
                let keys = "rate = \"100GbE\"\nmtu = 2500";
                format!(
                    "[ethernet_switch.tor]\npfc = 3\nmemory = \"64MiB\"\n[switch.fcf]\n{}{}{}",
                    link("{host,array}", "tor", keys),
                    link("fcf", "tor", &format!("{keys}\ncount = 2")),
                    link("{host,array}", "fcf", "ethernet = { vlan = 100 }"),
                )
            }
            Fabric::SrpNdr => {
                let keys = "rate = \"4xNDR\"\nblocks = 2_048";
                format!("[subnet]\nmtu = 4096\n[infiniband_switch.sw]\n{}", link("{host,array}", "sw", keys))
            }
        }
    }

    /// Returns the lab of reads of one size with some of them in flight.
    ///
    /// # Errors
    /// If the lab has mistakes.
    pub fn lab(self, size_kib: u32, depth: u32, seed: u64) -> Result<Arc<Lab>, Failure> {
        let mut text = format!(
            "[run]\nseed = {seed}\nduration = \"60ms\"\nwarmup = \"20ms\"\n\
             [host.host]\npreset = \"server-2021\"\nqueue_depth = 64\n\
             srp_cost = {{ per_command = \"3us\", per_completion = \"1us\" }}\n\
             [storage.array]\nservers = 64\nservice_time = \"80us\"\nmax_burst = \"1MiB\"\n"
        );
        text.push_str(match self {
            Fabric::Iscsi25 | Fabric::Iscsi100 => "iscsi = {}\n",
            Fabric::SrpNdr => "srp = {}\n",
            Fabric::Fc32 | Fabric::Fcoe100 => "",
        });
        text.push_str(&self.network());
        let _ = write!(
            text,
            "[workload.reads]\nhosts = \"host\"\ntargets = \"array\"\ndepth = {depth}\nsize = \"{size_kib}KiB\"\n"
        );
        Ok(Arc::new(sanloom_lab::load("today.toml", &text, &[])?.lab))
    }
}
