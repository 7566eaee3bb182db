//! One host and one array behind each of today's fabrics.

use sanloom_console::exit::Failure;
use sanloom_fc::config::{EthernetRate, InfinibandRate, LineRate, PACKET_OVERHEAD_BYTES, VirtualLink};
use sanloom_fc::san::Lab;
use std::fmt::Write as _;
use std::sync::Arc;

/// Data of a full frame of Fibre Channel, in bytes.
const FC_DATA: u16 = 2_048;
/// Its length from SOF to EOF: SOF 4, header 24, data, CRC 4, EOF 4.
const FC_FRAME: u16 = FC_DATA + 36;
/// Six words between two frames.
const FC_GAP: u16 = 24;
/// Payload of a frame of Ethernet.
const JUMBO_MTU: u16 = 9_000;
/// Headers of a segment: IP 20, TCP 20, time stamps 12.
const IP_AND_TCP: u16 = 52;
/// Addresses, type and FCS of a frame of Ethernet without a tag.
const ETHERNET_FRAME: u16 = 18;
/// Preamble, start delimiter and gap of a frame of Ethernet.
const ETHERNET_GAP: u16 = 20;
/// VLAN of FCoE.
const FCOE_VLAN: u16 = 100;
/// Payload of a packet of InfiniBand.
const INFINIBAND_MTU: u16 = 4_096;
/// Start and end symbols of a packet of InfiniBand.
const SYMBOLS: u16 = 2;

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
    /// headers of full packets. Headers of iSCSI PDUs count as data.
    pub fn line_bytes_per_s(self) -> f64 {
        let (rate, data, on_line) = match self {
            Fabric::Fc32 => (LineRate::Fc32.bytes_per_s(), FC_DATA, FC_FRAME + FC_GAP),
            Fabric::Iscsi25 | Fabric::Iscsi100 => {
                let rate = if self == Fabric::Iscsi25 { EthernetRate::G25 } else { EthernetRate::G100 };
                (rate.bytes_per_s(), JUMBO_MTU - IP_AND_TCP, JUMBO_MTU + ETHERNET_FRAME + ETHERNET_GAP)
            }
            Fabric::Fcoe100 => {
                let link =
                    VirtualLink { vlan: Some(FCOE_VLAN), priority: 3, pfc: true, buffer_bytes: None, fcip: None };
                (EthernetRate::G100.bytes_per_s(), FC_DATA, link.frame_bytes(FC_FRAME) + ETHERNET_GAP)
            }
            Fabric::SrpNdr => {
                let packet = INFINIBAND_MTU + PACKET_OVERHEAD_BYTES as u16 + SYMBOLS;
                (InfinibandRate::Ndr4.bytes_per_s(), INFINIBAND_MTU, packet)
            }
        };
        rate as f64 * f64::from(data) / f64::from(on_line)
    }

    fn network(self) -> String {
        let link = |from: &str, to: &str, keys: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n");
        match self {
            Fabric::Fc32 => format!("[switch.sw]\n{}", link("{host,array}", "sw", "rate = \"32GFC\"")),
            Fabric::Iscsi25 | Fabric::Iscsi100 => {
                let rate = if self == Fabric::Iscsi25 { "25GbE" } else { "100GbE" };
                let keys = format!("rate = \"{rate}\"\nmtu = {JUMBO_MTU}");
                format!("[ethernet_switch.sw]\nmemory = \"64MiB\"\n{}", link("{host,array}", "sw", &keys))
            }
            Fabric::Fcoe100 => {
                let keys = "rate = \"100GbE\"\nmtu = 2500";
                format!(
                    "[ethernet_switch.tor]\npfc = 3\nmemory = \"64MiB\"\n[switch.fcf]\n{}{}{}",
                    link("{host,array}", "tor", keys),
                    link("fcf", "tor", &format!("{keys}\ncount = 2")),
                    link("{host,array}", "fcf", &format!("ethernet = {{ vlan = {FCOE_VLAN} }}")),
                )
            }
            Fabric::SrpNdr => {
                let keys = "rate = \"4xNDR\"\nblocks = 2_048";
                format!(
                    "[subnet]\nmtu = {INFINIBAND_MTU}\n[infiniband_switch.sw]\n{}",
                    link("{host,array}", "sw", keys)
                )
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths are those of FC-FS-6, IEEE 802.3, RFC 9293 with RFC 7323, FC-BB-6 and the IBA.
    #[test]
    fn a_line_carries_its_rate_without_the_headers_of_full_packets() {
        let share = |data: f64, on_line: f64| data / on_line;
        for (fabric, rate, share) in [
            (Fabric::Fc32, 3_400e6, share(2_048.0, 2_108.0)),
            (Fabric::Iscsi25, 3_125e6, share(8_948.0, 9_038.0)),
            (Fabric::Iscsi100, 12_500e6, share(8_948.0, 9_038.0)),
            (Fabric::Fcoe100, 12_500e6, share(2_048.0, 2_136.0)),
            (Fabric::SrpNdr, 50_000e6, share(4_096.0, 4_124.0)),
        ] {
            assert!((fabric.line_bytes_per_s() - rate * share).abs() < 1.0, "{fabric:?}");
        }
    }
}
