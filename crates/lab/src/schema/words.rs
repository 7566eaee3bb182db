//! Words of the lab file and the values of [`sanloom_fc::config`] that they represent.

use super::Word;
use sanloom_fc::config::CostRule;
use sanloom_fc::config::{
    Affinity, Arbitration, Carrier, Congestion, ControllerAccess, Direction, Duplex, FlowControlModes, Forwarding,
    ForwardingGrain, GatewayMode, IoScheduler, IpoibMode, IslChoice, IslHash, MediumKind, Membership, PathPolicy,
    Priority, ProcessorPriority, ProcessorSharing, Queueing, SubnetRouting, ZoneDefault,
};
use sanloom_fc::nport::LoginScript;
use sanloom_fc::switch::{Addressing, DuplicateNames, HardZoning, NameLookup};
use sanloom_fc::zoning::{MergeControl, MergeRules};
use sanloom_scsi::iscsi::parameters::Digests;
use sanloom_scsi::scsi::AccessState;
use sanloom_storage::cache::{DestageOrder, Policy, WriteMode};
use sanloom_storage::disk::{DiskConfig, Scheduler, preset};
use sanloom_storage::flash::{self, DriveConfig};
use sanloom_storage::raid::Pass;
use sanloom_storage::trace::{BlockEvent, Format};

/// Declares two tables of equal length: the words with their descriptions, and the values.
macro_rules! words {
    ($words:ident, $values:ident: $type:ty { $($word:literal => $value:expr, $meaning:literal;)* }) => {
        pub(crate) const $words: &[Word] = &[$(Word { word: $word, meaning: $meaning },)*];
        pub(crate) const $values: &[$type] = &[$($value,)*];
    };
}

words!(FORWARDING, FORWARDINGS: Forwarding {
    "store-and-forward" => Forwarding::StoreAndForward, "a frame leaves when its last bit has arrived; a bad CRC ends here";
    "cut-through" => Forwarding::CutThrough, "a frame leaves as soon as its header has arrived and the output is free";
});

words!(QUEUEING, QUEUEINGS: Queueing {
    "fifo" => Queueing::Fifo, "one queue per input; only its head may cross (head-of-line blocking)";
    "any" => Queueing::Any, "any frame of an input may leave, several at once to different outputs; the crossbar has no limit";
    "voq" => Queueing::Voq, "one queue per input and output; one frame at a time crosses from an input";
});

words!(ARBITRATION, ARBITRATIONS: Arbitration {
    "round-robin" => Arbitration::RoundRobin, "the next input in round-robin order";
    "oldest-first" => Arbitration::OldestFirst, "the frame that has waited longest";
});

words!(ISL_CHOICE, ISL_CHOICES: IslChoice {
    "ingress" => IslChoice::Ingress, "by the port through which a frame arrived";
    "exchange" => IslChoice::Exchange, "by source, destination and exchange: an I/O keeps its path";
    "pair" => IslChoice::DevicePair, "by source and destination";
    "spray" => IslChoice::Spray, "frame by frame in round-robin order; frames may overtake each other";
    "least-loaded" => IslChoice::LeastLoaded, "frame by frame over the link with the fewest waiting frames; frames may overtake each other. `sanloom up` uses the links in turn";
});

words!(ISL_HASH, ISL_HASHES: IslHash {
    "salted" => IslHash::Salted, "each switch mixes its world-wide name into the hash, so that its choices are independent of those of other switches";
    "plain" => IslHash::Plain, "the same hash in every switch: behind a switch that splits its frames, some links stay empty (polarisation)";
});

words!(SCHEDULER, SCHEDULERS: IoScheduler {
    "fifo" => IoScheduler::Fifo, "in the order of arrival";
    "elevator" => IoScheduler::Elevator, "by LUN and address, upwards, then again from the bottom (C-LOOK)";
});

words!(PATH_POLICY, PATH_POLICIES: PathPolicy {
    "round-robin" => PathPolicy::RoundRobin, "the next usable path in round-robin order";
    "least-queue" => PathPolicy::LeastQueue, "the path with the fewest commands outstanding";
    "service-time" => PathPolicy::ServiceTime, "the path with the least outstanding bytes per recent throughput";
    "failover" => PathPolicy::Failover, "the first usable path only";
});

words!(AFFINITY, AFFINITIES: Affinity {
    "spread" => Affinity::Spread, "the core that is free first";
    "adapter" => Affinity::Adapter, "the core with the number of the adapter, modulo the number of cores";
});

words!(SUBNET_ROUTING, SUBNET_ROUTINGS: SubnetRouting {
    "minhop" => SubnetRouting::MinHop, "fewest hops; among equals the port with the fewest routes. A ring of switches can come to a deadlock";
    "updn" => SubnetRouting::UpDown, "fewest hops among the paths that never turn up after a step down, so that no deadlock is possible";
    "ftree" => SubnetRouting::FatTree, "balanced paths in a pure fat tree";
});

words!(IPOIB_MODE, IPOIB_MODES: IpoibMode {
    "datagram" => IpoibMode::Datagram, "unreliable datagrams: each packet of IP is one packet of InfiniBand";
    "connected" => IpoibMode::Connected, "a reliable connection between two interfaces, with packets of up to 65,520 bytes";
});

words!(MEMBERSHIP, MEMBERSHIPS: Membership {
    "full" => Membership::Full, "reaches all members of the partition";
    "limited" => Membership::Limited, "reaches full members only";
});

words!(PROCESSOR_SHARING, PROCESSOR_SHARINGS: ProcessorSharing {
    "one" => ProcessorSharing::One, "one for the whole switch; requests wait for each other";
    "per-port" => ProcessorSharing::PerPort, "one at each port; only requests through the same port wait for each other";
});

words!(PROCESSOR_PRIORITY, PROCESSOR_PRIORITIES: ProcessorPriority {
    "fabric-first" => ProcessorPriority::FabricFirst, "messages of other switches before requests of N_Ports";
    "none" => ProcessorPriority::None, "all in the order of arrival: a login storm delays the messages of the fabric";
});

words!(DUPLEX, DUPLEXES: Duplex {
    "half" => Duplex::Half, "one at a time, as PCI and PCI-X";
    "full" => Duplex::Full, "each at the rate of the bus, as PCI Express";
});

words!(PRIORITY, PRIORITIES: Priority {
    "high" => Priority::High, "channels 10 to 14: 60 parts of a busy line";
    "medium" => Priority::Medium, "channels 2 to 5: 30 parts";
    "low" => Priority::Low, "channels 8 and 9: 10 parts";
});

words!(ADDRESSING, ADDRESSINGS: Addressing {
    "area-per-port" => Addressing::AreaPerPort, "port p assigns addresses of area p: up to 256 logins, virtual ones included, and no logins beyond port 255";
    "flat" => Addressing::Flat, "every port assigns any of the 65,536 addresses of the domain";
});

words!(DUPLICATE_NAMES, DUPLICATE_NAMES_CHOICES: DuplicateNames {
    "new-wins" => DuplicateNames::NewWins, "the port that has the name is logged out";
    "old-wins" => DuplicateNames::OldWins, "the new login is rejected";
    "block" => DuplicateNames::Block, "as `old-wins`, and its port accepts no more logins until its link has been down";
});

words!(HARD_ZONING, HARD_ZONINGS: HardZoning {
    "zone-mates" => HardZoning::ZoneMates, "only the zone-mates of the port that logs in or out are compared";
    "standard" => HardZoning::Standard, "all addresses behind its switch port are compared with all behind the others (the NPIV paper, section V-IV)";
    "modified" => HardZoning::Modified, "the new address is compared with all addresses behind the other ports (the NPIV paper, section V-V), and a logout removes the permissions of its login";
    "off" => HardZoning::Off, "the name server hides ports, but every frame passes";
});

words!(NAME_LOOKUP, NAME_LOOKUPS: NameLookup {
    "indexed" => NameLookup::Indexed, "in an index";
    "linear" => NameLookup::Linear, "entry by entry, as the switch of the NPIV paper does";
});

words!(FLOW_CONTROL, FLOW_CONTROLS: FlowControlModes {
    "r-rdy" => FlowControlModes::RRdy, "R_RDY, mode 0002 of the standard";
    "vendor" => FlowControlModes::Vendor, "a vendor's own, mode 0001, and no other";
    "vendor-first" => FlowControlModes::VendorFirst, "mode 0001, and R_RDY with neighbours that lack it";
});

words!(ZONING_SUPPORT, ZONING_SUPPORTS: bool {
    "yes" => true, "it merges and distributes zones";
    "no" => false, "it rejects merge and change requests, and its neighbours isolate their links to it";
});

words!(COST_RULE, COST_RULES: CostRule {
    "standard" => CostRule::Standard, "by speed: 1000 at 1GFC, 500 at 2GFC, 62 at 16GFC (RFC 4626)";
    "brocade" => CostRule::Brocade, "1000 at 1GFC, 500 at any other speed, regardless of the width of a trunk";
    "cisco" => CostRule::Cisco, "by speed, the links of a bundle together";
});

words!(LOGIN_SCRIPT, LOGIN_SCRIPTS: LoginScript {
    "standard" => LoginScript::Standard, "those of Linux; an FDISC waits twice R_A_TOV for its answer";
    "npiv" => LoginScript::Npiv, "FDISC, SCR, LIRR and RFT_ID in sessions of their own (the NPIV paper, figure 6); an FDISC waits E_D_TOV";
});

words!(ZONE_DEFAULT, ZONE_DEFAULTS: ZoneDefault {
    "auto" => ZoneDefault::OpenWithoutZones, "ports in no zone may access each other while no zone is effective, and no other port otherwise; `all access` of Fabric OS";
    "open" => ZoneDefault::Open, "ports in no zone may access each other; `permit` of NX-OS";
    "closed" => ZoneDefault::Closed, "ports in no zone may access no other port, even without zones";
});

words!(MERGE_RULE, MERGE_RULES: MergeRules {
    "standard" => MergeRules::STANDARD, "zones of both are joined; those of one name must have the same members; of two default zones the stricter one applies: `closed`, then `auto`, then `open`";
    "enhanced" => MergeRules::ENHANCED, "likewise, and the default zones must be the same; joins only switches in enhanced mode, which ESS reports";
    "fabric-os" => MergeRules::FABRIC_OS, "the effective configurations must be the same, and the order of members matters";
});

words!(MERGE_CONTROL, MERGE_CONTROLS: MergeControl {
    "allow" => MergeControl::Allow, "those that can be merged";
    "restrict" => MergeControl::Restrict, "equal ones only";
});

/// Kind of an edit of a zone database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EditAction {
    Create,
    Delete,
    Rename,
    Add,
    Remove,
    Enable,
    Disable,
    Default,
}

words!(EDIT_ACTION, EDIT_ACTIONS: EditAction {
    "create" => EditAction::Create, "makes a `zone`, an `alias` or a `config`";
    "delete" => EditAction::Delete, "removes one; no object may refer to it at the end";
    "rename" => EditAction::Rename, "renames one to `to`, in all references";
    "add" => EditAction::Add, "adds `members`, `principals` or `zones`";
    "remove" => EditAction::Remove, "removes `members`, `principals` or `zones`";
    "enable" => EditAction::Enable, "makes the `config` effective, as it is at the end of the file";
    "disable" => EditAction::Disable, "leaves no configuration effective";
    "default" => EditAction::Default, "changes the default zone to `default`";
});

words!(DIRECTION, DIRECTIONS: Direction {
    "both" => Direction::Both, "both ways";
    "forward" => Direction::Forward, "from the link's `from` to its `to`";
    "backward" => Direction::Backward, "from the link's `to` to its `from`";
});

/// Distribution of requests, or of the ports of a range, to the elements of another range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spread {
    Blocks,
    RoundRobin,
}

words!(SPREAD, SPREADS: Spread {
    "blocks" => Spread::Blocks, "of n names for m, the first n/m go to the first, the next n/m to the second, …";
    "round-robin" => Spread::RoundRobin, "of n names for m, they are distributed in round-robin order: 1, m+1, … go to the first";
});

/// Location of requests, before the stride is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LocationKind {
    Random,
    Sequential,
    Strided,
}

words!(LOCATION, LOCATIONS: LocationKind {
    "random" => LocationKind::Random, "anywhere, aligned to the size of the request";
    "sequential" => LocationKind::Sequential, "each behind the one before, per LUN";
    "strided" => LocationKind::Strided, "each `stride` behind the beginning of the one before, per LUN";
});

/// RAID levels; `build::backstore` adds groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RaidLevel {
    Raid0,
    Raid1,
    Raid4,
    Raid5,
    Raid6,
    Raid10,
    Raid50,
    Raid60,
}

/// Protections of RAID groups; `build::backstore` adds the size of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConsistencyPolicy {
    Resync,
    Bitmap,
    Journal,
    PartialParityLog,
}

words!(RAID_LEVEL, RAID_LEVELS: RaidLevel {
    "raid0" => RaidLevel::Raid0, "striping; no disk may fail";
    "raid1" => RaidLevel::Raid1, "all disks hold the same data";
    "raid4" => RaidLevel::Raid4, "striping with parity on the last disk";
    "raid5" => RaidLevel::Raid5, "striping with parity that moves from disk to disk; one may fail";
    "raid6" => RaidLevel::Raid6, "striping with two parities; two disks may fail";
    "raid10" => RaidLevel::Raid10, "striping over pairs of disks with the same data";
    "raid50" => RaidLevel::Raid50, "striping over `groups` of RAID 5";
    "raid60" => RaidLevel::Raid60, "striping over `groups` of RAID 6";
});

words!(CONSISTENCY, CONSISTENCIES: ConsistencyPolicy {
    "resync" => ConsistencyPolicy::Resync, "nothing: after a power failure all stripes are synchronised";
    "bitmap" => ConsistencyPolicy::Bitmap, "a map of regions with writes in flight: only these are synchronised";
    "journal" => ConsistencyPolicy::Journal, "data and parity are written to a log on one more device before the disks; no write hole";
    "ppl" => ConsistencyPolicy::PartialParityLog, "a partial parity log on the disk with the parity: no write hole, but half the rate of small writes";
});

words!(SCRUB, SCRUBS: Pass {
    "check" => Pass::Check, "everything is read and compared, and unreadable blocks are written again";
    "repair" => Pass::Repair, "the same, and wrong parity or copies are written anew";
});

words!(CACHE_POLICY, CACHE_POLICIES: Policy {
    "lru" => Policy::Lru, "the line that was used least recently is replaced";
    "fifo" => Policy::Fifo, "the oldest line";
    "clock" => Policy::Clock, "the oldest line without a hit since the last turn";
    "slru" => Policy::Slru { segments: 4 }, "segmented LRU of four segments; a hit moves a line up";
    "2q" => Policy::TwoQ, "lines that were used once do not displace others";
    "arc" => Policy::Arc, "balances lines used once and more often by itself";
    "s3-fifo" => Policy::S3Fifo, "a small queue for new lines, a large one for lines with hits";
    "lfu" => Policy::Lfu, "the line with the fewest hits";
});

words!(CONTROLLER_ACCESS, CONTROLLER_ACCESSES: ControllerAccess {
    "symmetric" => ControllerAccess::Symmetric, "the controller of the port through which a command arrives";
    "alua" => ControllerAccess::Asymmetric, "its own one; the others forward commands to it, and hosts prefer its ports (asymmetric logical unit access)";
});

words!(CACHE_WRITE, CACHE_WRITES: WriteMode {
    "back" => WriteMode::Back { is_mirrored: false }, "a write ends in the cache, which has a battery";
    "mirrored" => WriteMode::Back { is_mirrored: true }, "the same, when the partner controller has a copy";
    "through" => WriteMode::Through { allocates: true }, "a write ends on the disks and stays in the cache";
    "around" => WriteMode::Through { allocates: false }, "a write ends on the disks; only lines that are in the cache change";
});

words!(DESTAGE, DESTAGES: DestageOrder {
    "address" => DestageOrder::Address, "in ascending addresses, then again from the lowest";
    "age" => DestageOrder::Age, "the line that became dirty first";
});

/// Kinds of faults; `build::faults` defines the keys of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    LinkDown,
    LinkUp,
    PortDown,
    SwitchReset,
    FrameLoss,
    CrcErrors,
    SlowReceiver,
    WithheldCredits,
    LostRRdy,
    Reordering,
    PauseStorm,
    LostCreditUpdates,
    VmMove,
    VmStop,
    DuplicateName,
    ForeignAddress,
    DiskFailure,
    LatentError,
    PowerFailure,
    ControllerFailure,
    CacheBattery,
    VolumeMove,
    MetadataCut,
}

words!(TROUBLE, TROUBLES: Trouble {
    "link-down" => Trouble::LinkDown, "`link` goes down and loses the frames on it; with `until` or `for` it comes up again";
    "link-up" => Trouble::LinkUp, "`link`, which went down before, comes up";
    "port-down" => Trouble::PortDown, "`port` goes offline and its link goes down; with `until` or `for` it comes back";
    "switch-reset" => Trouble::SwitchReset, "`switch` restarts: links down, buffers and logins lost, back at `until`";
    "frame-loss" => Trouble::FrameLoss, "frames on `link` disappear with `probability`";
    "crc-errors" => Trouble::CrcErrors, "frames on `link` arrive with a bad CRC (on Ethernet, a bad FCS) with `probability`";
    "slow-receiver" => Trouble::SlowReceiver, "`port` (or the `end` of `link`) returns each credit `delay` later";
    "withheld-credits" => Trouble::WithheldCredits, "`port` (or the `end` of `link`) returns no credits; on InfiniBand, the interface frees no buffer";
    "lost-r-rdy" => Trouble::LostRRdy, "each R_RDY sent by `port` (or by the `end` of `link`) is lost with `probability`";
    "reordering" => Trouble::Reordering, "frames on the Ethernet `link` arrive `delay` later with `probability`, behind those sent after them";
    "pause-storm" => Trouble::PauseStorm, "the interface `port` (or the `end` of `link`) of Ethernet pauses `priorities` of its link partner without a break";
    "lost-credit-updates" => Trouble::LostCreditUpdates, "each flow-control packet of InfiniBand sent by `port` (or by the `end` of `link`) is lost with `probability`; the next one replaces it";
    "vm-move" => Trouble::VmMove, "`vm` moves to the hypervisor `to`: its port names log in there while their old logins remain; with `until` or `for` it is stopped in between";
    "vm-stop" => Trouble::VmStop, "`vm` issues no more requests and logs out after the last one has ended";
    "duplicate-name" => Trouble::DuplicateName, "`vm` logs in with the port names of the host `of`; with `until` or `for` it takes its own back";
    "foreign-address" => Trouble::ForeignAddress, "the commands of `host` carry the addresses of the host `of` as S_ID";
    "disk-failure" => Trouble::DiskFailure, "the disk `member` of each LUN of `lun` loses its data; with `until` or `for` a new disk replaces it";
    "latent-error" => Trouble::LatentError, "`block` of the disk `member` of each LUN of `lun` cannot be read until it is written again";
    "power-failure" => Trouble::PowerFailure, "each storage system in `storage` has no power: its ports are offline, commands in flight and data of volatile caches are lost; with `until` or `for` the power returns";
    "controller-failure" => Trouble::ControllerFailure, "the controller `controller` of each storage system in `storage` fails: its ports go offline, and another one takes over its LUNs; with `until` or `for` it returns";
    "volume-move" => Trouble::VolumeMove, "the extents of `volume`, a virtual disk of a metadata server, move to the back end `to`, one after the other";
    "metadata-cut" => Trouble::MetadataCut, "messages between `host` and all metadata servers are lost";
    "cache-battery" => Trouble::CacheBattery, "the battery of the cache of each storage system in `storage` fails: its writes go through to the disks; with `until` or `for` the battery returns";
});

words!(CARRIER, CARRIERS: Carrier {
    "dgram" => Carrier::Datagram, "a unix datagram socket, one frame in each datagram (`-netdev dgram` of QEMU)";
    "stream" => Carrier::Stream, "a unix stream socket, each frame behind its length in four bytes (`-netdev stream` of QEMU)";
    "tap" => Carrier::Tap, "a tap interface of this machine";
    "packet" => Carrier::Packet, "any interface of this machine, through a packet socket; it cannot slow down its peer";
    "fd" => Carrier::Descriptor, "a datagram socket that the parent process opened";
});

words!(MEDIUM, MEDIA: MediumKind {
    "ram" => MediumKind::Ram, "memory; blocks that were never written take no memory";
    "file" => MediumKind::File, "sparse files";
    "pattern" => MediumKind::Pattern, "nothing: a block reads as a function of its address, and written data are discarded";
    "null" => MediumKind::Null, "nothing: reads return zeros, and written data are discarded";
    "volumes" => MediumKind::Volumes, "virtual disks: those of `[volume.NAME]` and of `sanloom volume`; `luns` and `lun_size` have no effect";
});

words!(GRAIN, GRAINS: ForwardingGrain {
    "command" => ForwardingGrain::Command, "all data of a command";
    "pdu" => ForwardingGrain::Pdu, "the data of a PDU";
    "frame" => ForwardingGrain::Frame, "the data of a frame";
});

words!(GATEWAY_MODE, GATEWAY_MODES: GatewayMode {
    "proxy" => GatewayMode::Proxy, "all hosts share the N_Port of `host`";
    "transparent" => GatewayMode::Transparent, "each host of `hosts` has a virtual N_Port of its own (NPIV)";
});

words!(CACHE, CACHES: bool {
    "write-through" => false, "before its status is sent";
    "write-back" => true, "when it is flushed";
});

words!(CONGESTION, CONGESTIONS: Congestion {
    "cubic" => Congestion::Cubic, "CUBIC (RFC 9438), as in Linux";
    "newreno" => Congestion::Reno, "NewReno (RFC 5681 and RFC 6582)";
    "dctcp" => Congestion::Dctcp, "DCTCP (RFC 8257): the window follows the share of marked segments. Switches need `ecn`";
});

words!(DIGEST, DIGESTS: Digests {
    "never" => Digests::Never, "none";
    "either" => Digests::Either, "as the initiator prefers";
    "always" => Digests::Always, "initiators without it are refused";
});

words!(ACCESS_STATE, ACCESS_STATES: AccessState {
    "active/optimized" => AccessState::Optimized, "all commands, at full performance";
    "active/non-optimized" => AccessState::NonOptimized, "all commands, but hosts prefer other ports";
    "standby" => AccessState::Standby, "only commands that need no medium";
    "unavailable" => AccessState::Unavailable, "only commands that report the state";
    "offline" => AccessState::Offline, "the same; a host cannot change it";
    "transitioning" => AccessState::Transitioning, "changing to another state; hosts wait";
});

/// Function that returns the parameters of a disk.
pub(crate) type DiskPreset = fn() -> DiskConfig;

words!(DISK, DISKS: DiskPreset {
    "hp-c2247a" => preset::c2247a, "HP C2247A, 1993: 1 GB, 5,400 rpm";
    "cheetah-9lp" => preset::cheetah_9lp, "Seagate ST39102 (Cheetah 9LP), 1997: 9 GB, 10,000 rpm";
    "atlas-10k" => preset::atlas_10k, "Quantum Atlas 10K, 1999: 9 GB, 10,000 rpm";
    "ultrastar-146z10" => preset::ultrastar_146z10, "IBM Ultrastar 146Z10: 146 GB, 10,000 rpm";
    "ultrastar-15k450" => preset::ultrastar_15k450, "Hitachi Ultrastar 15K450: 450 GB, 15,000 rpm";
    "travelstar-5k320" => preset::travelstar_5k320, "Hitachi Travelstar 5K320: 320 GB, 5,400 rpm, 2.5 inches";
    "travelstar-7k320" => preset::travelstar_7k320, "Hitachi Travelstar 7K320: 320 GB, 7,200 rpm, 2.5 inches";
    "savvio-10k4" => preset::savvio_10k4, "Seagate Savvio 10K.4: 600 GB, 10,000 rpm, 2.5 inches";
    "ultrastar-c15k600" => preset::ultrastar_c15k600, "HGST Ultrastar C15K600: 600 GB, 15,000 rpm";
    "st2000dm006" => preset::st2000dm006, "Seagate ST2000DM006: 2 TB, 7,200 rpm";
    "ultrastar-7k8" => preset::ultrastar_7k8, "HGST Ultrastar 7K8: 8 TB, 7,200 rpm";
    "ultrastar-dc-hc310" => preset::ultrastar_dc_hc310, "Western Digital Ultrastar DC HC310: 6 TB, 7,200 rpm";
});

/// An SSD with a capacity of at least so many bytes.
pub(crate) type SsdPreset = fn(u64) -> DriveConfig;

words!(SSD, SSDS: SsdPreset {
    "pm883" => flash::preset::pm883, "Samsung PM883, 2018: SATA, for data centres";
    "pm9a3" => flash::preset::pm9a3, "Samsung PM9A3, 2021: NVMe, for data centres";
    "870-evo" => flash::preset::evo_870, "Samsung 870 EVO, 2021: SATA, for desktops, without power-loss protection";
});

words!(SSD_STATE, SSD_STATES: bool {
    "preconditioned" => true, "filled, then overwritten twice at random: garbage collection is steady";
    "fresh" => false, "empty cells: nothing has to be collected until they are full";
});

words!(DISK_SCHEDULER, DISK_SCHEDULERS: Scheduler {
    "fcfs" => Scheduler::Fcfs, "first come, first served";
    "sstf" => Scheduler::Sstf, "shortest seek first";
    "look" => Scheduler::Look, "nearest in the direction of the arm, which turns behind the last one";
    "c-look" => Scheduler::CLook, "nearest towards the inner cylinders, then again from the outer ones";
    "sptf" => Scheduler::Sptf, "shortest positioning time first: seek and rotation";
    "aged-sptf" => Scheduler::AgedSptf { weight_permille: 10 }, "the same, minus 1 % of the time that a command has waited";
});

words!(TRACE_FORMAT, TRACE_FORMATS: Format {
    "disksim" => Format::Disksim, "DiskSim, ASCII";
    "validate" => Format::Validate, "DiskSim, validation of a disk: with response and think times";
    "spc" => Format::Spc, "Storage Performance Council (UMass: Financial, WebSearch)";
    "msr" => Format::Msr, "Microsoft Research Cambridge, CSV";
    "fio-2" => Format::Fio2, "I/O log of fio, version 2";
    "fio-3" => Format::Fio3, "I/O log of fio, version 3";
    "blktrace" => Format::Blktrace, "binary events of blktrace";
    "blkparse" => Format::Blkparse, "text of blkparse";
    "vscsi-1" => Format::Vscsi1, "CloudPhysics, version 1";
    "vscsi-2" => Format::Vscsi2, "CloudPhysics, version 2";
    "alibaba" => Format::Alibaba, "Alibaba, block traces of 2020";
    "tencent" => Format::Tencent, "Tencent, cloud block storage";
    "mqsim" => Format::Mqsim, "MQSim; `trace.time_unit` is the unit of its times";
    "fiu" => Format::Fiu, "Florida International University";
    "regex" => Format::Regex, "any text, by `trace.regex`";
});

words!(TRACE_EVENT, TRACE_EVENTS: BlockEvent {
    "queue" => BlockEvent::Queue, "a request enters the block layer";
    "issue" => BlockEvent::Issue, "a request is passed to the driver, after merges";
    "complete" => BlockEvent::Complete, "a request has ended";
});

words!(TRACE_TIME_UNIT, TRACE_TIME_UNITS: u64 {
    "s" => 1_000_000_000_000, "seconds";
    "ms" => 1_000_000_000, "milliseconds";
    "us" => 1_000_000, "microseconds";
    "100ns" => 100_000, "units of 100 ns";
    "ns" => 1_000, "nanoseconds";
});

/// Addresses of a trace on a LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TraceMap {
    Wrap,
    Linear,
    Keep,
}

words!(TRACE_MAP, TRACE_MAPS: TraceMap {
    "wrap" => TraceMap::Wrap, "modulo the size of the LUN";
    "linear" => TraceMap::Linear, "in proportion: `trace.space` of the trace becomes the LUN";
    "keep" => TraceMap::Keep, "as in the trace; a request behind the end of the LUN is an error";
});
