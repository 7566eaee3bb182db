//! Results of storage systems.

use super::{Latency, QueueDepth};
use serde::{Deserialize, Serialize};

/// One storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageResult {
    /// Name of the storage system.
    pub name: String,
    /// Commands completed successfully.
    pub ios_completed: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Data read, in bytes.
    pub read_bytes: u64,
    /// Data written, in bytes.
    pub written_bytes: u64,
    /// Data of completed commands per second of measured time.
    pub throughput_bytes_per_s: f64,
    /// Completed commands per second.
    pub iops: f64,
    /// Fraction of the time in which the controller was busy, 0 to 1 (mean over its servers, and
    /// over all controllers).
    pub utilisation: f64,
    /// Commands in the controller, waiting or in service.
    pub queue: QueueDepth,
    /// Commands rejected with TASK SET FULL.
    pub task_set_full: u64,
    /// Time from the arrival of a command at the controller (a write: with all its data) to its
    /// completion there.
    pub latency: Latency,
    /// Part of that time before the controller starts the command.
    pub waiting: Latency,
    /// Controllers; empty if there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<ControllerResult>,
    /// Work of a gateway; absent unless its data are on other storage systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayResult>,
    /// Work of a metadata server; absent without `out_of_band`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataResult>,
    /// Buses and interrupts of the ports; absent without `bus` and `interrupt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapters: Option<AdapterResult>,
    /// Fraction of the time in which the busiest loop of disks was occupied, 0 to 1; absent without
    /// `disk_loops`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_loop_utilisation: Option<f64>,
    /// Cache of the controllers; absent without `controller_cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// Data that the disks or SSDs have lost; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_loss: Option<DataLossResult>,
    /// RAID groups, one for each LUN; empty without `raid`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raid: Vec<RaidResult>,
    /// Disks behind the controller; empty without `disk`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskResult>,
    /// SSDs, in the order of LUNs and members; empty without `ssd`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ssds: Vec<SsdResult>,
}

/// Work of a gateway between its hosts and the storage behind it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayResult {
    /// Commands that it ended and issued again (conventional path).
    pub conventional: u64,
    /// Commands that it forwarded PDU by PDU.
    pub forwarded: u64,
    /// Commands that it ended early, because of task management or a lost host.
    pub recalled: u64,
    /// Commands that it answered with ABORTED COMMAND, because they were in flight on the last path
    /// to the storage behind when it was lost, or their exchange failed.
    pub aborted: u64,
    /// Unit attentions that it reported to hosts, one for each nexus and LUN, because the storage
    /// behind was gone and has returned.
    pub unit_attentions: u64,
    /// Logouts of virtual N_Ports, because all sessions of their host were lost.
    pub logouts: u64,
    /// Sessions and channels of hosts that it ended, because no path to the storage behind returned
    /// within `path_timeout`.
    pub ended_sessions: u64,
    /// Fraction of the time in which its processor was busy, 0 to 1.
    pub cpu_utilisation: f64,
}

/// Work of a metadata server, and of the maps of its hosts. A request to a virtual disk has a piece
/// for each extent that it concerns. Each piece with data is a hit or a miss, and again when it is
/// repeated.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MetadataResult {
    /// Pieces whose place was in the map of their host.
    pub hits: u64,
    /// Pieces whose host had to ask the server.
    pub misses: u64,
    /// Part of hits among all pieces, 0 to 1.
    pub hit_share: f64,
    /// Time from a miss to the answer of the server.
    pub miss_latency: Latency,
    /// Pieces that failed because no answer came in time.
    pub unanswered: u64,
    /// Messages of hosts that the server has handled.
    pub messages: u64,
    /// Messages that hosts have repeated.
    pub repeated: u64,
    /// Messages at the server, waiting or in service.
    pub queue: QueueDepth,
    /// Fraction of the time in which the server was busy, 0 to 1.
    pub utilisation: f64,
    /// Epoch of the newest map at the end.
    pub epoch: u64,
    /// Changes of the map that came into force.
    pub changes: u64,
    /// Mean time of a change from its begin until it was in force, in microseconds.
    pub change_mean_us: f64,
    /// Longest such time, in microseconds.
    pub change_max_us: f64,
    /// Moves without effect: the extent was at the back end already, or the back end has no room.
    pub useless_moves: u64,
    /// Requests for places that the server held until a change was in force.
    pub stalled: u64,
    /// Hosts that were fenced because they did not acknowledge a change.
    pub fenced: u64,
    /// Commands that back ends refused because their host was fenced.
    pub refused: u64,
}

/// One of several controllers of a storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ControllerResult {
    /// Number of the controller, from 0.
    pub controller: u32,
    /// True if it works at the end.
    pub works: bool,
    /// LUNs that it serves at the end.
    pub luns: u32,
    /// Commands that arrived through its ports.
    pub commands: u64,
    /// Commands that it forwarded to the controllers of their LUNs.
    pub forwarded: u64,
    /// Times that it took over the LUNs of a controller, including its own.
    pub takeovers: u64,
    /// Fraction of the time in which it was busy, 0 to 1 (mean over its servers).
    pub utilisation: f64,
}

/// Buses and interrupts of the ports of a storage system.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdapterResult {
    /// Fraction of the time in which the busiest bus was busy, 0 to 1.
    pub bus_utilisation: f64,
    /// Fraction of the time in which the processor was busy with interrupts, 0 to 1.
    pub cpu_utilisation: f64,
    /// Interrupts raised.
    pub interrupts: u64,
}

/// Cache of a controller. Shares are from 0 to 1, and blocks have 512 bytes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheResult {
    /// Reads that the cache has accepted.
    pub reads: u64,
    /// Writes that the cache has accepted.
    pub writes: u64,
    /// Share of read blocks that needed no new read of a disk.
    pub read_hit_share: f64,
    /// Share of blocks read ahead that a host read later.
    pub read_ahead_used_share: f64,
    /// Share of written blocks that were dirty already, so that one write of a disk serves several.
    pub coalesced_share: f64,
    /// Writes to the disks of dirty data.
    pub destages: u64,
    /// Mean size of such a write in blocks.
    pub blocks_per_destage: f64,
    /// Requests that found no line, and waited for one.
    pub stalls: u64,
    /// Dirty blocks at the end.
    pub dirty_blocks: u64,
    /// Written blocks, acknowledged to a host, that no disk could take, since the start of the run.
    pub lost_blocks: u64,
}

/// Lost and wrong data of a storage system since the start of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DataLossResult {
    /// Requests of hosts that ended with MEDIUM ERROR.
    pub lost_requests: u64,
    /// Reads of hosts that ended well, but with wrong data.
    pub wrong_reads: u64,
    /// Written blocks of 512 bytes, acknowledged to a host, that were lost in caches.
    pub lost_blocks: u64,
    /// Stripes with data that power failures may have damaged, although nobody wrote them.
    pub damaged_stripes: u64,
    /// The first of these requests, in the order of time.
    pub first_requests: Vec<LostRequest>,
}

/// A request that was lost, or returned wrong data.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LostRequest {
    /// Time in seconds since the start of the workloads.
    pub at_s: f64,
    /// Number of the LUN.
    pub lun: u32,
    /// First block, in blocks of the LUN.
    pub block: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// True for a write.
    pub write: bool,
    /// Result of the request, and the reason for it.
    pub reason: String,
}

/// RAID group of a LUN.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RaidResult {
    /// Number of the LUN.
    pub lun: u32,
    /// Condition at the end: `optimal`, `degraded` or `failed`.
    pub condition: String,
    /// Blocks of 512 bytes whose data are lost at the end.
    pub lost_blocks: u64,
    /// Unused spares at the end.
    pub spares: u32,
    /// Fraction of a new disk that is rebuilt at the end, 0 to 1; absent if no rebuild runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<f64>,
    /// Blocks of 512 bytes that the rebuild has written.
    pub rebuilt_blocks: u64,
    /// Requests of hosts, or of the cache, that ended well.
    pub requests: u64,
    /// Requests that failed, because too few disks hold the blocks.
    pub lost_requests: u64,
    /// Reads that returned wrong data.
    pub wrong_requests: u64,
    /// Blocks of 512 bytes with a latent sector error at the end.
    pub unreadable_blocks: u64,
    /// Parity stripes, or chunks of a mirror, whose redundancy is wrong at the end after a power
    /// failure.
    pub inconsistent_stripes: u64,
    /// Part of the disks behind a scrub or resync at the end, 0 to 1; absent if none runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrubbed: Option<f64>,
    /// Blocks of 512 bytes that scrub and resync have read.
    pub scrubbed_blocks: u64,
    /// Reads of requests that met a latent sector error.
    pub media_errors: u64,
    /// Unreadable blocks that were written again from redundancy.
    pub repaired_blocks: u64,
    /// Stripes whose redundancy scrub or resync has written anew.
    pub corrected_stripes: u64,
    /// Chunks that the rebuild could not compute because of latent sector errors.
    pub unrebuilt_chunks: u64,
    /// Blocks of 512 bytes written to a journal or partial parity log.
    pub log_blocks: u64,
    /// Requests that were begun anew, because a disk failed meanwhile.
    pub repeated: u64,
    /// Requests that waited for a write of the same stripe or for a rebuild.
    pub waited: u64,
    /// Stripes, or parts of them, that were written without a read.
    pub full_stripes: u64,
    /// Parts of stripes written after old data and old parity were read.
    pub read_modify_writes: u64,
    /// Parts of stripes written after the data that stay were read.
    pub reconstruct_writes: u64,
    /// Parts of stripes that were computed from other disks.
    pub degraded: u64,
    /// Reads of disks, for requests and rebuild.
    pub disk_reads: u64,
    /// Writes of disks, for requests and rebuild.
    pub disk_writes: u64,
}

/// One disk behind a controller. Times are means over its completed commands; their sum is the
/// response time of the disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskResult {
    /// Number of the LUN on the disk.
    pub lun: u32,
    /// Number of the disk in the RAID group of the LUN; 0 without RAID.
    pub member: u32,
    /// Model of the disk.
    pub model: String,
    /// Completed commands.
    pub commands: u64,
    /// Reads whose blocks were in the cache of the disk, or about to be read ahead.
    pub read_hits: u64,
    /// Reads from the medium.
    pub read_misses: u64,
    /// Writes that ended in the cache.
    pub cached_writes: u64,
    /// Writes that ended on the medium.
    pub medium_writes: u64,
    /// Fraction of the time in which the arm worked for commands or write-back, 0 to 1.
    pub utilisation: f64,
    /// Response time in ms.
    pub response_ms: f64,
    /// Wait for other commands, for the arm, and for room in the cache, in ms.
    pub queue_ms: f64,
    /// Command overhead in ms.
    pub overhead_ms: f64,
    /// Seek in ms.
    pub seek_ms: f64,
    /// Rotational wait in ms.
    pub rotation_ms: f64,
    /// Transfer from or to the medium in ms.
    pub medium_ms: f64,
    /// Transfer over the bus that does not overlap with the medium, in ms.
    pub bus_ms: f64,
    /// Mean seek distance of accesses to the medium, in cylinders.
    pub seek_cylinders: f64,
    /// Written blocks of 512 bytes that are not on the medium at the end.
    pub dirty_blocks: u64,
}

/// An SSD.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SsdResult {
    /// Number of the LUN on the SSD.
    pub lun: u32,
    /// Number of the SSD in the RAID group of the LUN; 0 without RAID.
    pub member: u32,
    /// Model of the SSD.
    pub model: String,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Completed flushes.
    pub flushes: u64,
    /// Mean response time of reads in microseconds.
    pub read_response_us: f64,
    /// Mean response time of writes in microseconds.
    pub write_response_us: f64,
    /// Fraction of the time in which the dies read, programmed or erased, 0 to 1.
    pub utilisation: f64,
    /// Fraction of the time in which the dies copied and erased for garbage collection, 0 to 1.
    pub collection: f64,
    /// Programmed pages per page that hosts wrote; 1 if nothing was written.
    pub write_amplification: f64,
    /// Erased blocks.
    pub erases: u64,
    /// Writes that waited for room in the write buffer.
    pub stalls: u64,
    /// Most erases of a block since the SSD was made.
    pub most_erases: u32,
    /// Written blocks of 512 bytes that are not in the cells at the end.
    pub dirty_blocks: u64,
}
