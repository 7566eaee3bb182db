//! Hosts and storage.

use super::units::Picos;
use crate::nport::LoginScript;
use sanloom_wire::{Wwnn, Wwpn};

/// A host: HBAs, and what stands between an application's request and the HBA (document 001, section 2.2).
#[derive(Clone, PartialEq, Debug)]
pub struct Host {
    /// Name, unique in the lab.
    pub name: String,
    /// Node name.
    pub wwnn: Wwnn,
    /// Host bus adapters.
    pub hbas: Vec<Hba>,
    /// Waiting and outstanding queue.
    pub queue: IoQueue,
    /// Processor time that a request takes before its command leaves. The host has one processor.
    pub cpu_per_io: Picos,
    /// Interrupt coalescing; `None`: completions are seen at once and cost nothing.
    pub interrupt: Option<Interrupt>,
    /// The system bus; `None`: infinitely fast.
    pub bus: Option<Bus>,
    /// Path choice and failover.
    pub multipath: Multipath,
    /// A command that has not ended after this time is aborted and tried again.
    pub command_timeout: Picos,
    /// How often a command is tried again before the request fails.
    pub retries: u8,
    /// Its HBAs look for storage and log in to it; otherwise they only log in to the fabric.
    pub discovery: bool,
    /// Set for a virtual machine.
    pub virtual_machine: Option<VirtualMachine>,
}

/// What makes a host a virtual machine: its HBAs are virtual ports (N_Port_ID virtualisation) on those of another host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualMachine {
    /// Index into `hosts`: the hypervisor that it is on at first.
    pub on: u16,
    /// Its number among the virtual machines of that hypervisor. Its first virtual port is on the HBA of this number, the next
    /// on the next, counted round.
    pub number: u16,
    /// When it is created, counted from the start of the workloads; `None`: before, as soon as its hypervisor is logged in.
    pub start: Option<Picos>,
    /// The steps of its logins.
    pub script: LoginScript,
}

impl VirtualMachine {
    /// The HBA, of the `hbas` that a hypervisor has, that carries a virtual port.
    pub fn carrier(&self, port: u16, hbas: usize) -> u16 {
        ((usize::from(self.number) + usize::from(port)) % hbas.max(1)) as u16
    }
}

/// A host bus adapter with one port.
#[derive(Clone, PartialEq, Debug)]
pub struct Hba {
    /// Port name.
    pub wwpn: Wwpn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// At most this many data frames may be on their way to or from the HBA: a request starts only when the frames of
    /// its data fit. `None`: no limit. (Our reading of document 001's "32 frame buffers" of a controller.)
    pub data_frames_in_flight: Option<u32>,
}

/// Waiting and outstanding queue of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct IoQueue {
    /// Requests sent and not yet ended, at most.
    pub max_outstanding: u32,
    /// Requests that may wait; more are refused and counted. `None`: no limit.
    pub max_waiting: Option<u32>,
    /// Order of the waiting queue.
    pub scheduler: IoScheduler,
    /// Contiguous waiting requests of one direction are merged up to this size. 0: never.
    pub merge_up_to_bytes: u32,
}

/// Order in which waiting requests leave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoScheduler {
    /// As they came.
    Fifo,
    /// C-LOOK by LUN and LBA.
    Elevator,
}

/// Interrupt coalescing of an HBA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Processor time of one interrupt.
    pub cost: Picos,
    /// This many completions raise it.
    pub max_frames: u32,
    /// The first completion waits at most this long.
    pub max_wait: Picos,
}

/// A parallel system bus: every data frame occupies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    /// Width in bits.
    pub bits: u32,
    /// Clock in hertz.
    pub clock_hz: u64,
    /// HBAs on one bus; the host's HBAs are grouped in their order.
    pub shared_by: u16,
}

impl Bus {
    /// Time to move `bytes`, one bus word per clock: 8 KB over 64 bits at 66 MHz take 15.5 µs.
    pub fn time_of(&self, bytes: u64) -> Picos {
        let words = (bytes * 8).div_ceil(u64::from(self.bits));
        Picos((u128::from(words) * 1_000_000_000_000 / u128::from(self.clock_hz)) as u64)
    }
}

/// Path choice and failover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipath {
    /// Which path a command takes.
    pub policy: PathPolicy,
    /// After this long without its remote port a path's commands fail back to the multipath layer.
    pub fast_io_fail: Picos,
    /// After this long the remote port is forgotten.
    pub dev_loss: Picos,
    /// A request with no path left waits this long for one, then fails.
    pub no_path_timeout: Picos,
}

/// Which path a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PathPolicy {
    /// The next usable path in turn.
    RoundRobin,
    /// The path with the fewest commands outstanding.
    LeastQueue,
    /// The path with the least outstanding bytes per recent throughput.
    ServiceTime,
    /// The first usable path only.
    Failover,
}

/// A storage system: a controller with ports and LUNs.
#[derive(Clone, PartialEq, Debug)]
pub struct Storage {
    /// Name, unique in the lab.
    pub name: String,
    /// Node name.
    pub wwnn: Wwnn,
    /// Ports.
    pub ports: Vec<StoragePort>,
    /// Command processing.
    pub service: Service,
    /// LUNs, reachable through every port; the LUN number is the index.
    pub luns: Vec<Lun>,
    /// Largest burst that one XFER_RDY asks for, in bytes.
    pub max_burst_bytes: u32,
}

/// A port of a storage system.
#[derive(Clone, PartialEq, Debug)]
pub struct StoragePort {
    /// Port name.
    pub wwpn: Wwpn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Time of the port for each data sequence that does not overlap with the wire (calibrated from document 001's
    /// 175 MB/s of a single device).
    pub sequence_overhead: Picos,
}

/// How a controller processes commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Time of one command: the inverse of the transaction rate.
    pub time: Picos,
    /// Commands processed at once.
    pub servers: u32,
    /// Commands that may wait for the controller; more are answered TASK SET FULL.
    pub max_queued: u32,
    /// Added latency of the medium, without occupying the controller (a RAM disk: 0).
    pub media_latency: Picos,
}

/// A logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lun {
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
}
