//! Hosts and storage systems.

use super::host_processor::HostProcessor;
use super::infiniband::SrpHost;
use super::iscsi::IscsiHost;
use super::units::Picos;
use super::workload::TimeDistribution;
use sanloom_storage::backstore::{BackstoreConfig, Protection};
use sanloom_storage::disk::DiskConfig;
use sanloom_storage::flash::DriveConfig;
use sanloom_wire::{Wwnn, Wwpn};
use std::sync::Arc;

/// Host: its HBAs, and the path of an application's request to the HBA (the SANSim paper, section
/// 2.2).
#[derive(Clone, PartialEq, Debug)]
pub struct Host {
    /// Name, unique in the lab.
    pub name: String,
    /// World-wide node name.
    pub wwnn: Wwnn,
    /// Host bus adapters.
    pub hbas: Vec<Hba>,
    /// Waiting and outstanding queues.
    pub queue: IoQueue,
    /// Processor and the costs of I/O on it.
    pub processor: HostProcessor,
    /// Processor time of a request before its command leaves.
    pub cpu_per_io: Picos,
    /// Processor time of a hypervisor for each command of its virtual machines, after their own
    /// `cpu_per_io`.
    pub guest_cpu_per_io: Picos,
    /// Interrupt coalescing; `None`: completions take effect at once and cost nothing.
    pub interrupt: Option<Interrupt>,
    /// System bus; `None`: infinitely fast.
    pub bus: Option<Bus>,
    /// Path selection and failover.
    pub multipath: Multipath,
    /// Time after which an unfinished command is aborted.
    pub command_timeout: Picos,
    /// Number of retries of a command on one path.
    pub retries: u8,
    /// Limits of error recovery.
    pub recovery: ErrorRecovery,
    /// True if its HBAs discover storage and log in to it; otherwise they only log in to the
    /// fabric.
    pub discovery: bool,
    /// `Some` for a virtual machine.
    pub virtual_machine: Option<VirtualMachine>,
    /// iSCSI initiator at the Ethernet interfaces of the host.
    pub iscsi: IscsiHost,
    /// SRP initiator at the InfiniBand interfaces of the host.
    pub srp: SrpHost,
}

/// Limits of error recovery, with the values of Linux as defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorRecovery {
    /// Time to wait for the answer to an ABTS (`FC_SCSI_TM_TOV` of drivers/scsi/libfc/fc_fcp.c).
    pub abort_timeout: Picos,
    /// Time to wait for the answer to LOGICAL UNIT RESET and TARGET RESET (`FC_SCSI_TM_TOV`).
    pub reset_timeout: Picos,
    /// Time after the first command timeout from which on resets of logical units and targets are
    /// skipped (`eh_deadline` of drivers/scsi/scsi_error.c); `None`: they are never skipped.
    pub eh_deadline: Option<Picos>,
    /// Time without TASK SET FULL after which a reduced queue depth grows by one
    /// (`SCSI_DEFAULT_QUEUE_RAMP_UP_PERIOD` of drivers/scsi/scsi_scan.c).
    pub queue_ramp_up: Picos,
}

impl Default for ErrorRecovery {
    fn default() -> ErrorRecovery {
        ErrorRecovery {
            abort_timeout: Picos::from_secs(10),
            reset_timeout: Picos::from_secs(10),
            eh_deadline: None,
            queue_ramp_up: Picos::from_secs(120),
        }
    }
}

/// Settings of a virtual machine: a host whose HBAs are virtual ports (N_Port_ID virtualisation) on
/// those of another host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VirtualMachine {
    /// Index into `hosts` of the initial hypervisor.
    pub on: u16,
    /// Number among the virtual machines of that hypervisor. The first virtual port uses the HBA
    /// with this number modulo the number of HBAs, and each further one uses the next HBA in cyclic
    /// order.
    pub number: u16,
    /// Creation time relative to the start of the workloads; `None`: earlier, as soon as its
    /// hypervisor is logged in.
    pub start: Option<Picos>,
    /// Time from its creation at `start` until its ports log in.
    pub boot: TimeDistribution,
    /// Steps of its logins.
    pub script: LoginScript,
}

impl VirtualMachine {
    /// HBA that carries a virtual port, on a hypervisor with `hbas` HBAs.
    pub fn carrier(&self, port: u16, hbas: usize) -> u16 {
        ((usize::from(self.number) + usize::from(port)) % hbas.max(1)) as u16
    }
}

/// Host bus adapter with one port.
#[derive(Clone, PartialEq, Debug)]
pub struct Hba {
    /// World-wide port name.
    pub wwpn: Wwpn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Maximum number of data frames in flight to or from the HBA; a request starts only when the
    /// frames of its data fit. `None`: no limit. (Interpretation of the "32 frame buffers" of a
    /// controller in the SANSim paper.)
    pub data_frames_in_flight: Option<u32>,
}

/// Waiting and outstanding queues of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct IoQueue {
    /// Maximum number of requests in flight.
    pub max_outstanding: u32,
    /// Maximum number of waiting requests; further ones are rejected and counted. `None`: no limit.
    pub max_waiting: Option<u32>,
    /// Order of the waiting queue.
    pub scheduler: IoScheduler,
    /// Maximum size in bytes up to which contiguous waiting requests of one direction are merged; 0
    /// disables merging.
    pub merge_up_to_bytes: u32,
}

/// Order in which waiting requests leave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IoScheduler {
    /// Order of arrival.
    Fifo,
    /// C-LOOK by LUN and LBA.
    Elevator,
}

/// Interrupt coalescing of an HBA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Processor time of one interrupt.
    pub cost: Picos,
    /// Number of completions that raises the interrupt.
    pub max_frames: u32,
    /// Maximum delay of the interrupt after the first completion.
    pub max_wait: Picos,
    /// Shortest delay of an adapter that adapts it to the load: the delay doubles up to `max_wait`
    /// after an interrupt with several completions, and halves down to this one after an
    /// interrupt with a single one. `None`: the delay is always `max_wait`.
    pub min_wait: Option<Picos>,
}

/// System bus, occupied by every data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    /// Bus width in bits.
    pub bits: u32,
    /// Clock frequency in hertz.
    pub clock_hz: u64,
    /// Number of adapters per bus; the adapters of a node are grouped in their order.
    pub shared_by: u16,
    /// Directions that share the time of the bus.
    pub duplex: Duplex,
}

/// Directions in which a bus moves data at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplex {
    /// One at a time, as the parallel buses PCI and PCI-X, whose devices share the lines AD (PCI
    /// Local Bus Specification 3.0, section 2.2).
    #[default]
    Half,
    /// Both, each at the rate of the bus, as PCI Express (PCI Express Base Specification 2.0,
    /// section 1.2: a link has one pair of wires for each direction).
    Full,
}

impl Bus {
    /// Time to transfer `bytes`, one bus word per clock: 8 KB over 64 bits at 66 MHz take 15.5 µs.
    pub fn time_of(&self, bytes: u64) -> Picos {
        let words = (bytes * 8).div_ceil(u64::from(self.bits));
        Picos((u128::from(words) * 1_000_000_000_000 / u128::from(self.clock_hz)) as u64)
    }
}

/// Path selection and failover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multipath {
    /// Path selection for a command.
    pub policy: PathPolicy,
    /// Time without its remote port after which a path returns its commands to the multipath layer
    /// as failed.
    pub fast_io_fail: Picos,
    /// Time after which the remote port is removed.
    pub dev_loss: Picos,
    /// Interval at which a failed path is tested, and unit of `no_path_retry`.
    pub polling_interval: Picos,
    /// Number of polling intervals for which a request without a path waits before it fails.
    /// `None`: it waits without limit.
    pub no_path_retry: Option<u32>,
}

impl Multipath {
    /// Time for which a request without a path waits before it fails; `None`: no limit.
    pub fn no_path_time(&self) -> Option<Picos> {
        self.no_path_retry.map(|intervals| Picos(self.polling_interval.0.saturating_mul(intervals.into())))
    }
}

/// Path selection for a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PathPolicy {
    /// Usable paths in cyclic order.
    RoundRobin,
    /// Path with the fewest commands in flight.
    LeastQueue,
    /// Path with the fewest outstanding bytes relative to its recent throughput.
    ServiceTime,
    /// First usable path only.
    Failover,
}

/// Storage system: a controller with ports and LUNs.
#[derive(Clone, PartialEq, Debug)]
pub struct Storage {
    /// Name, unique in the lab.
    pub name: String,
    /// World-wide node name.
    pub wwnn: Wwnn,
    /// Ports of the controller.
    pub ports: Vec<StoragePort>,
    /// Command processing of each controller.
    pub service: Service,
    /// Number and cooperation of the controllers.
    pub controllers: Controllers,
    /// LUNs, reachable through every port; the LUN number is the index.
    pub luns: Vec<Lun>,
    /// Model of the disks behind the controller; `None`: the medium takes no time of its own.
    pub disk: Option<Arc<DiskConfig>>,
    /// Model of the SSDs behind the controller, instead of disks.
    pub ssd: Option<Arc<SsdConfig>>,
    /// RAID and cache in front of the disks; each LUN has its own group of them.
    pub backstore: BackstoreConfig,
    /// Faults of the media, and the protection of the groups.
    pub protection: Protection,
    /// Assumptions on failures of the devices.
    pub failures: DeviceFailures,
    /// Largest burst requested by one XFER_RDY, in bytes.
    pub max_burst_bytes: u32,
    /// Interrupt coalescing of the ports; `None`: commands reach the controller at once.
    pub interrupt: Option<Interrupt>,
    /// Bus between memory and ports; `None`: infinitely fast.
    pub bus: Option<Bus>,
}

/// Assumptions on failures of disks or SSDs, from which the mean time to data loss follows. A
/// simulation does not use them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceFailures {
    /// Mean time to failure in hours.
    pub mttf_h: f64,
    /// Mean time until a new device replaces a failed one, or becomes a spare.
    pub replacement: Picos,
    /// Unrecoverable read errors per bit.
    pub errors_per_bit: f64,
}

impl Default for DeviceFailures {
    /// Values of data sheets of disks for servers.
    fn default() -> DeviceFailures {
        DeviceFailures { mttf_h: 1.2e6, replacement: Picos::from_secs(24 * 3600), errors_per_bit: 1e-15 }
    }
}

/// SSDs of a storage system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SsdConfig {
    /// Model.
    pub drive: DriveConfig,
    /// Number of times that all pages have been overwritten at random after the first filling;
    /// `None`: the cells are empty.
    pub preconditioned_turns: Option<u32>,
}

impl Storage {
    /// Name and capacity of a disk or SSD behind the controller, in blocks of 512 bytes. A model
    /// that contradicts itself has 0 blocks.
    pub fn device(&self) -> Option<(&str, u64)> {
        if let Some(ssd) = &self.ssd {
            return Some((&ssd.drive.name, ssd.drive.blocks()));
        }
        let disk = self.disk.as_ref()?;
        Some((&disk.name, disk.capacity_bytes().unwrap_or(0) / 512))
    }
}

/// Port of a storage system.
#[derive(Clone, PartialEq, Debug)]
pub struct StoragePort {
    /// World-wide port name.
    pub wwpn: Wwpn,
    /// Receive data field size in bytes, 256 to 2112.
    pub receive_size_bytes: u16,
    /// Port time for each data sequence that does not overlap with transmission (calibrated from
    /// the 175 MB/s of a single device in the SANSim paper).
    pub sequence_overhead: Picos,
    /// Further work before each data sequence, for each frame of it.
    pub frame_overhead: Picos,
}

/// Controllers of a storage system, which share its LUNs and disks.
///
/// Ports belong to controllers in equal shares, in their order. Each LUN has an own controller, in
/// turn; another one takes over the LUNs of a failed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Controllers {
    /// Number of controllers.
    pub count: u8,
    /// Controllers that serve a LUN.
    pub access: ControllerAccess,
    /// Time from the failure of a controller until another one serves its LUNs. Commands for them
    /// wait.
    pub takeover: Picos,
    /// Time from the return of a controller until it serves its own LUNs again; `None`: they stay
    /// where they are.
    pub failback: Option<Picos>,
    /// Time that a command needs from one controller to another.
    pub forward: Picos,
}

/// Controllers that serve a LUN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControllerAccess {
    /// The controller of the port through which a command arrives.
    Symmetric,
    /// The own controller of the LUN. Others accept commands and forward them, so their ports are
    /// active/non-optimized (SPC-4, 5.15.2: asymmetric logical unit access).
    Asymmetric,
}

impl Default for Controllers {
    /// One controller.
    fn default() -> Controllers {
        Controllers {
            count: 1,
            access: ControllerAccess::Symmetric,
            takeover: Picos::ZERO,
            failback: None,
            forward: Picos::ZERO,
        }
    }
}

impl Controllers {
    /// Controller of a port of a system with `ports` ports.
    pub fn of_port(&self, port: u16, ports: usize) -> u8 {
        (usize::from(port) * usize::from(self.count) / ports.max(1)) as u8
    }

    /// Own controller of a LUN.
    pub fn of_lun(&self, lun: u16) -> u8 {
        (lun % u16::from(self.count.max(1))) as u8
    }
}

/// Command processing of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Service {
    /// Processing times of the commands; the mean is the inverse of the transaction rate.
    pub time: TimeDistribution,
    /// Number of commands processed concurrently.
    pub servers: u32,
    /// Maximum number of commands queued at a controller; further ones get TASK SET FULL.
    pub max_queued: u32,
    /// Additional latency of the medium, which does not occupy the controller (0 for a RAM disk).
    pub media_latency: Picos,
}

/// Logical unit of a storage system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lun {
    /// Number of blocks.
    pub blocks: u64,
    /// Block size in bytes.
    pub block_bytes: u32,
}

/// Steps of a node port between its fabric login and the ready state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoginScript {
    /// Steps of Linux (libfc). The timeout of an FDISC is 2 × R_A_TOV.
    #[default]
    Standard,
    /// Steps of the NPIV paper, figure 6: FDISC, SCR, a session with the management server for
    /// LIRR, one with the name server for RFT_ID.
    ///
    /// The timeout of an FDISC is E_D_TOV, which a hypervisor must not exceed according to that
    /// document. An initiator continues with another name-server session to find its targets.
    Npiv,
}
