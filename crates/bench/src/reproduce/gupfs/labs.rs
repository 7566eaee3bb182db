//! Labs of the tests of the GUPFS report.

use sanloom_console::exit::Failure;
use sanloom_console::run::{self, View};
use sanloom_fc::config::{Link, Node};
use sanloom_fc::san::Lab;
use std::fmt::Write as _;
use std::sync::Arc;

/// Three failed joins of switches.
const THREE_SWITCHES: &str = include_str!("../../../labs/vendor-three-switches.toml");

/// A trunk of four lines of 2GFC between switches of two makers that join. The document names no
/// pair that it tried.
const TWO_MAKERS: &str = r#"
[run]
duration = "50ms"
[switch.sanbox2]
fabric = { vendor = "QLogic" }
[switch.sn5428]
fabric = { vendor = "Cisco" }
[host.h]
[storage.s]
[[link]]
from = "{h,s}"
to = "{sanbox2,sn5428}"
rate = "2GFC"
[[isl]]
from = "sanbox2"
to = "sn5428"
rate = "2GFC"
count = 4
bundle = true
[workload.w]
hosts = "h"
targets = "s"
"#;

/// Time that frames towards the host lose in the SilkWorm 3800, in ns. Fitted to the 3 to 4 % of
/// section 1; the document names no cause.
pub const SILKWORM_GAP_NS: u32 = 360;

/// The host of the tests that count processor time.
const SERVER: &str = "[host.h]\npreset = \"server-2003\"\n";

/// The adapter of iSCSI. Its processor is an assumption: slower than that of the server. The time
/// of its driver is half of that of software iSCSI, as the document has measured.
pub const ISCSI_HBA: &str = "iscsi_hba = { per_command = \"80us\", per_pdu = \"25us\", per_kib = \"10us\", \
                             driver_per_command = \"15us\", driver_per_kib = \"1.72us\" }\n";
/// The iSCSI router, whose window is fixed at 256 KB.
const SN5428: &str = "[storage.router]\niscsi = { tcp = { window = \"256KiB\" } }\n\
                      gateway = { host = \"port\", target_port = \"s\", forwarding = \"pdu\" }\n";
/// Payload of a packet of InfiniBand in 2003, in bytes: an assumption, the same for SRP and IPoIB.
pub const MTU_2003: u16 = 1_024;

/// Returns the subnet of the InfiniBand switches.
fn infiniband() -> String {
    format!("[subnet]\nmtu = {MTU_2003}\n[infiniband_switch.ib]\n")
}

/// Returns a gateway from SRP to Fibre Channel, with its port in the fabric. Its time for a command
/// is an assumption.
fn gateway(name: &str, port: &str, storage: &str) -> String {
    format!(
        "[host.{port}]\nqueue_depth = 64\n[storage.{name}]\nsrp = {{}}\n\
         gateway = {{ host = \"{port}\", target_port = \"{storage}\", forwarding = \"frame\", per_command = \"15us\" }}\n"
    )
}

/// Attachment of the storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fabric {
    /// One cable of 2GFC.
    Direct,
    /// A switch as the QLogic SANbox2-16.
    SanBox,
    /// A switch as the Brocade SilkWorm 3800.
    SilkWorm,
    /// Two switches with a trunk of four lines of 2GFC, four hosts and four storage ports.
    Trunk,
    /// One host with a faster adapter, and storage with four ports of 2GFC.
    FourPorts,
    /// A server of 2003 behind a switch of 2GFC.
    Server,
    /// The same server with software iSCSI over a switch of 1GbE.
    SoftwareIscsi,
    /// The same server with software iSCSI, and a router as the Cisco SN5428 in front of storage on
    /// 2GFC.
    Router,
    /// The same with an iSCSI adapter as the Intel PRO/1000 T IP.
    RouterHba,
    /// The same with IPoIB at 1x SDR, through a gateway to 1GbE and then through that router.
    Ipoib,
    /// The same server with SRP at 1x SDR, through a gateway to one port of 2GFC.
    Srp1x,
    /// The same server with SRP at 4x SDR, through a gateway to one port of 2GFC.
    Srp4x,
    /// The same with two gateway cards of two ports of 2GFC, each behind a link of 1x SDR.
    TwoCards,
    /// Two gateway cards behind links of 4x SDR, and a bus of the host.
    HostBus,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Case {
    /// A load on one fabric.
    Load { fabric: Fabric, write: bool, size_kib: u32, depth: u32 },
    /// The fabric of three switches.
    ThreeSwitches,
}

/// Numbers of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Data of all requests.
    pub bytes_per_s: f64,
    /// Isolated ports of all switches.
    pub isolated_ports: u64,
    /// Busy share of the processor of the first host.
    pub cpu: f64,
    /// Processor time of the first host per 10^9 bytes, in seconds.
    pub cpu_s_per_gb: f64,
}

impl Measured {
    /// Throughput in megabytes of the document, which have 1000 * 1024 bytes.
    pub fn document_mb_per_s(&self) -> f64 {
        self.bytes_per_s / 1_024_000.0
    }
}

impl Case {
    fn text(self, seed: u64) -> String {
        let Case::Load { fabric, write, size_kib, depth } = self else { return THREE_SWITCHES.to_owned() };
        let mut text = format!("[run]\nseed = {seed}\nduration = \"400ms\"\nwarmup = \"100ms\"\n");
        // All data are in the cache of the array, so a request takes a constant time.
        let gap = if fabric == Fabric::SilkWorm {
            format!("frame_overhead = \"{SILKWORM_GAP_NS}ns\"\n")
        } else {
            String::new()
        };
        let storage = |name: &str| {
            format!("[storage.{name}]\nservers = 64\nservice_time = \"100us\"\nmax_burst = \"1MiB\"\n{gap}")
        };
        let link = |from: &str, to: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"2GFC\"\n");
        let (workload, hosts, targets) = match fabric {
            Fabric::Direct => {
                let _ = write!(text, "[host.h]\n{}{}", storage("s"), link("h", "s"));
                ("w", "h", "s")
            }
            Fabric::SanBox | Fabric::SilkWorm => {
                let switch = "[switch.sw]\npreset = \"fixed-port-2g\"\n";
                let _ = write!(text, "{switch}[host.h]\n{}{}", storage("s"), link("{h,s}", "sw"));
                ("w", "h", "s")
            }
            Fabric::Trunk => {
                let switch = "[switch.\"sw{1..2}\"]\npreset = \"fixed-port-2g\"\n";
                let _ = write!(text, "{switch}[host.\"h{{1..4}}\"]\n{}", storage("\"s{1..4}\""));
                let _ = write!(text, "{}{}", link("h{1..4}", "sw1"), link("s{1..4}", "sw2"));
                text.push_str("[[isl]]\nfrom = \"sw1\"\nto = \"sw2\"\nrate = \"2GFC\"\ncount = 4\nbundle = true\n");
                ("\"w{1..4}\"", "h{1..4}", "s{1..4}")
            }
            Fabric::Server => {
                let _ = write!(
                    text,
                    "[switch.sw]\npreset = \"fixed-port-2g\"\n{SERVER}{}{}",
                    storage("s"),
                    link("{h,s}", "sw")
                );
                ("w", "h", "s")
            }
            Fabric::SoftwareIscsi => {
                let _ = write!(text, "[ethernet_switch.sw]\n{SERVER}{}iscsi = {{}}\n", storage("s"));
                text.push_str(&link("{h,s}", "sw").replace("2GFC", "1GbE"));
                ("w", "h", "s")
            }
            Fabric::Router | Fabric::RouterHba => {
                let adapter = if fabric == Fabric::RouterHba { ISCSI_HBA } else { "" };
                let _ = write!(text, "[ethernet_switch.lan]\n[switch.sw]\npreset = \"fixed-port-2g\"\n");
                let _ = write!(text, "{SERVER}{adapter}[host.port]\n{}", storage("s"));
                text.push_str(SN5428);
                text.push_str(&link("{port,s}", "sw"));
                text.push_str(&link("{h,router}", "lan").replace("2GFC", "1GbE"));
                ("w", "h", "router")
            }
            Fabric::Ipoib => {
                let _ = write!(
                    text,
                    "{}[ethernet_switch.lan]\n[switch.sw]\npreset = \"fixed-port-2g\"\n\
                     {SERVER}ipoib = {{}}\n\
                     [host.port]\n[host.vex]\nipoib = {{}}\nip_router = {{ per_packet = \"5us\" }}\n{}{SN5428}",
                    infiniband(),
                    storage("s"),
                );
                text.push_str(&link("{port,s}", "sw"));
                text.push_str(&link("{h,vex}", "ib").replace("2GFC", "1xSDR"));
                text.push_str(&link("{vex,router}", "lan").replace("2GFC", "1GbE"));
                ("w", "h", "router")
            }
            Fabric::Srp1x | Fabric::Srp4x => {
                let line = if fabric == Fabric::Srp1x { "1xSDR" } else { "4xSDR" };
                let (subnet, gateway) = (infiniband(), gateway("g", "r", "s"));
                let _ = write!(text, "{subnet}{SERVER}{}{gateway}", storage("s"));
                let _ = write!(text, "[switch.sw]\npreset = \"fixed-port-2g\"\n{}", link("{r,s}", "sw"));
                text.push_str(&link("{h,g}", "ib").replace("2GFC", line));
                ("w", "h", "g")
            }
            Fabric::TwoCards | Fabric::HostBus => {
                let line = if fabric == Fabric::TwoCards { "1xSDR" } else { "4xSDR" };
                let bus = match fabric {
                    Fabric::HostBus => format!("bus = {{ bits = 64, clock = \"{}kHz\" }}\n", super::bridges::BUS_KHZ),
                    _ => String::new(),
                };
                let subnet = infiniband();
                let _ = write!(text, "{subnet}{SERVER}queue_depth = 64\n{bus}[switch.sw]\n");
                // Each port of a card is a host of its own for the fabric.
                for port in 1..=4 {
                    let _ = write!(
                        text,
                        "{}{}",
                        storage(&format!("s{port}")),
                        gateway(&format!("g{port}"), &format!("r{port}"), &format!("s{port}"))
                    );
                }
                text.push_str(&link("{r,s}{1..4}", "sw"));
                text.push_str("[infiniband_switch.\"card{1..2}\"]\n");
                text.push_str(&link("h", "ib").replace("2GFC", "4xSDR"));
                text.push_str(&link("g{1..4}", "card{1..2}").replace("2GFC", "4xSDR"));
                text.push_str(&link("card{1..2}", "ib").replace("[[link]]", "[[isl]]").replace("2GFC", line));
                ("w", "h", "g{1..4}")
            }
            Fabric::FourPorts => {
                let _ = write!(text, "[switch.sw]\n[host.h]\n{}ports = 4\n", storage("s"));
                text.push_str("[[link]]\nfrom = \"h\"\nto = \"sw\"\nrate = \"16GFC\"\n");
                text.push_str("[[link]]\nfrom = \"s\"\nto = \"sw\"\nrate = \"2GFC\"\ncount = 4\n");
                ("w", "h", "s")
            }
        };
        let share = if write { "0.0" } else { "1.0" };
        let _ = write!(
            text,
            "[workload.{workload}]\nhosts = \"{hosts}\"\ntargets = \"{targets}\"\nlocation = \"sequential\"\nread_share = {share}\n\
             size = \"{size_kib}KiB\"\ndepth = {depth}\n"
        );
        text
    }

    /// Returns the lab of this run.
    ///
    /// # Errors
    /// If the lab has mistakes.
    pub fn lab(self, seed: u64) -> Result<Arc<Lab>, Failure> {
        Ok(Arc::new(sanloom_lab::load("gupfs.toml", &self.text(seed), &[])?.lab))
    }
}

/// Returns the lines of a trunk between two makers that stay single.
///
/// # Errors
/// If the lab has mistakes.
pub fn single_lines() -> Result<usize, Failure> {
    let lab = sanloom_lab::load("two-makers.toml", TWO_MAKERS, &[])?.lab;
    let is_isl = |link: &&Link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    Ok(lab.links.iter().filter(is_isl).filter(|link| link.bundle.is_none()).count())
}

/// Simulates a lab; returns `None` if the run was interrupted.
pub fn measure(lab: &Arc<Lab>) -> Option<Measured> {
    let results = run::run(lab, View::default()).results;
    let isolated_ports = results.switches.iter().map(|switch| switch.isolated_ports).sum();
    let bytes_per_s = results.totals.io.throughput_bytes_per_s;
    let cpu = results.hosts.first().map_or(0.0, |host| host.cpu_utilisation);
    let cpu_s_per_gb = results.hosts.first().map_or(0.0, |host| host.cpu_s_per_gb);
    (!results.lab.interrupted).then_some(Measured { bytes_per_s, isolated_ports, cpu, cpu_s_per_gb })
}
