//! Sections of hosts and storage.

use super::infiniband::INITIATOR as SRP;
use super::ipoib::HOST_KEYS as IPOIB;
use super::iscsi_hba::ISCSI_HBA;
use super::live::UPLINK;
use super::processor::PROCESSOR;
use super::tcp::{INITIATOR, TCP};
use super::{DUPLEX, Fallback, Form, Key, Kind, LOGIN_SCRIPT, PATH_POLICY, SCHEDULER, SectionDef, join};

pub(super) const WWNN: Key = Key {
    path: "wwnn",
    kind: Kind::Wwn,
    fallback: Fallback::Absent("made from the number of the node"),
    meaning: "World-wide name of the node. In a range it counts up.",
    example: "\"20:00:00:24:ff:00:00:01\"",
    also: &["node_name"],
};

pub(super) const WWPN: Key = Key {
    path: "wwpn",
    kind: Kind::Wwn,
    fallback: Fallback::Absent("made from the numbers of node and port"),
    meaning: "World-wide name of the first port; further ports, and further nodes of a range, count up.",
    example: "\"21:00:00:24:ff:00:00:01\"",
    also: &["port_name", "wwn"],
};

pub(super) const WWPNS: Key = Key {
    path: "wwpns",
    kind: Kind::Patterns,
    fallback: Fallback::Absent("names that count up from `wwpn`"),
    meaning: "World-wide names of all ports in their order, for names that do not count up. In a range of nodes, the names of the first node come first.",
    example: "[\"21:00:00:24:ff:00:00:01\", \"21:00:00:24:ff:7c:00:02\"]",
    also: &["port_names", "wwns"],
};

pub(super) const FRAME_BUFFERS: Key = Key {
    path: "frame_buffers",
    kind: Kind::Integer { min: 1, max: 65_535 },
    fallback: Fallback::Value("64"),
    meaning: "Receive buffers of each port in frames: the buffer-to-buffer credit granted to the switch.",
    example: "32",
    also: &["buffers", "credits", "bb_credit"],
};

/// BB_SC_N of the ports of a switch, host or storage system.
pub(super) const BB_SC: Key = Key {
    path: "bb_sc",
    kind: Kind::Integer { min: 0, max: 15 },
    fallback: Fallback::Value("0"),
    meaning: "Credit recovery (BB_SC_N): after every 2^n frames and R_RDYs the ends of a link compare their counts and restore lost credits. The larger value of both ends counts; 0 at one end: no recovery.",
    example: "8",
    also: &["bb_sc_n", "bbscn", "credit_recovery"],
};

/// Adapters can receive 2112 bytes, but Linux and common firmware send data frames of 2048 bytes.
pub(super) const RECEIVE_SIZE: Key = Key {
    path: "receive_size",
    kind: Kind::Size { min: 256, max: 2112 },
    fallback: Fallback::Value("\"2048B\""),
    meaning: "Largest data field of a frame that a port receives, a multiple of 4 bytes.",
    example: "\"2112B\"",
    also: &["frame_size", "mtu", "payload", "mfs"],
};

pub(super) const BUS_BITS: Key = Key {
    path: "bus.bits",
    kind: Kind::Integer { min: 8, max: 256 },
    fallback: Fallback::Value("64"),
    meaning: "Width in bits: 8, 16, 32, 64, 128 or 256.",
    example: "64",
    also: &["width"],
};

pub(super) const BUS_CLOCK: Key = Key {
    path: "bus.clock",
    kind: Kind::Clock,
    fallback: Fallback::Value("\"66MHz\""),
    meaning: "Clock; one word moves per tick.",
    example: "\"66MHz\"",
    also: &["frequency"],
};

pub(super) const BUS_DUPLEX: Key = Key {
    path: "bus.duplex",
    kind: Kind::Choice(DUPLEX),
    fallback: Fallback::Value("\"half\""),
    meaning: "How data to and from the memory share the bus.",
    example: "\"full\"",
    also: &["directions"],
};

pub(super) const INTERRUPT_COST: Key = Key {
    path: "interrupt.cost",
    kind: Kind::Time,
    fallback: Fallback::Value("\"2us\""),
    meaning: "Processor time of one interrupt.",
    example: "\"2us\"",
    also: &[],
};

pub(super) const HOST: SectionDef = SectionDef {
    name: "host",
    form: Form::Named,
    meaning: "Hosts. The name may be a range: `[host.\"server{1..8}\"]`. `[host.\"*\"]` sets defaults for all hosts; a table for one name adds to the range that covers it.",
    also: &["hosts", "server", "servers", "initiator", "client"],
    keys: &join::<
        { KEYS.len() + PROCESSOR.len() + ISCSI_HBA.len() + INITIATOR.len() + TCP.len() + SRP.len() + IPOIB.len() },
    >(&[KEYS, &PROCESSOR, &ISCSI_HBA, &INITIATOR, &TCP, &SRP, &IPOIB]),
};

const KEYS: &[Key] = &[
    Key {
        path: "preset",
        kind: Kind::HostPreset,
        fallback: Fallback::Absent("the defaults below"),
        meaning: "Costs of I/O on a class of machine; the [host presets](#host-presets) are listed below.",
        example: "\"server-2011\"",
        also: &["class", "model"],
    },
    Key {
        path: "hbas",
        kind: Kind::Integer { min: 1, max: 256 },
        fallback: Fallback::Value("1"),
        meaning: "Number of host bus adapters, each with one port.",
        example: "2",
        also: &["ports", "hba", "adapters"],
    },
    WWNN,
    WWPN,
    WWPNS,
    FRAME_BUFFERS,
    BB_SC,
    RECEIVE_SIZE,
    Key {
        path: "data_frames_in_flight",
        kind: Kind::IntegerOr { word: "unlimited", min: 1, max: 4_294_967_295 },
        fallback: Fallback::Value("\"unlimited\""),
        meaning: "Maximum number of data frames in flight to and from an HBA. A request starts only when the frames of its data fit.",
        example: "32",
        also: &["max_data_frames"],
    },
    Key {
        path: "queue_depth",
        kind: Kind::Integer { min: 1, max: 65_535 },
        fallback: Fallback::Value("32"),
        meaning: "Maximum number of requests in flight, up to 16384; further requests wait in the host. It is also the largest queue depth of a LUN on a path, which TASK SET FULL reduces.",
        example: "32",
        also: &["max_outstanding", "depth", "qd"],
    },
    Key {
        path: "max_waiting",
        kind: Kind::IntegerOr { word: "unlimited", min: 0, max: 4_294_967_295 },
        fallback: Fallback::Value("\"unlimited\""),
        meaning: "Maximum number of waiting requests; further requests are refused and counted.",
        example: "1000",
        also: &["waiting"],
    },
    Key {
        path: "scheduler",
        kind: Kind::Choice(SCHEDULER),
        fallback: Fallback::Value("\"fifo\""),
        meaning: "Order of the waiting requests.",
        example: "\"elevator\"",
        also: &["io_scheduler", "queueing"],
    },
    Key {
        path: "max_io",
        kind: Kind::Size { min: 0, max: 33_553_920 },
        fallback: Fallback::Value("\"0B\""),
        meaning: "Adjacent waiting requests in the same direction are merged up to this size. 0B: never.",
        example: "\"128KiB\"",
        also: &["merge_up_to", "merge"],
    },
    Key {
        path: "cpu_per_io",
        kind: Kind::Time,
        fallback: Fallback::Value("\"0s\""),
        meaning: "Processor time of a request before its command leaves.",
        example: "\"5us\"",
        also: &["cpu", "cpu_time"],
    },
    Key {
        path: "guest_cpu_per_io",
        kind: Kind::Time,
        fallback: Fallback::Value("\"0s\""),
        meaning: "Of a hypervisor: time of its processor for each command of its virtual machines, after the `cpu_per_io` of the machine.",
        example: "\"4us\"",
        also: &["vm_cpu_per_io", "hypervisor_cpu_per_io"],
    },
    Key {
        path: "interrupt",
        kind: Kind::Table,
        fallback: Fallback::Absent("completions are handled at once and cost no time"),
        meaning: "Interrupt coalescing of the HBAs.",
        example: "{ cost = \"2us\", max_frames = 8, max_wait = \"50us\" }",
        also: &["interrupts", "irq"],
    },
    INTERRUPT_COST,
    Key {
        path: "interrupt.max_frames",
        kind: Kind::Integer { min: 1, max: 65_535 },
        fallback: Fallback::Value("1"),
        meaning: "Number of completions that raise an interrupt.",
        example: "8",
        also: &["frames"],
    },
    Key {
        path: "interrupt.max_wait",
        kind: Kind::Time,
        fallback: Fallback::Value("\"50us\""),
        meaning: "Longest wait of the first completion.",
        example: "\"50us\"",
        also: &["wait"],
    },
    Key {
        path: "interrupt.min_wait",
        kind: Kind::Time,
        fallback: Fallback::Absent("the wait is always `max_wait`"),
        meaning: "Makes the wait adapt to the load: it doubles up to `max_wait` after an interrupt with several completions, and halves down to this value after one with a single completion.",
        example: "\"5us\"",
        also: &["adaptive"],
    },
    Key {
        path: "bus",
        kind: Kind::Table,
        fallback: Fallback::Absent("the bus is infinitely fast"),
        meaning: "The system bus between memory and adapters: every data frame occupies it.",
        example: "{ bits = 64, clock = \"66MHz\", shared_by = 1 }",
        also: &["pci"],
    },
    BUS_BITS,
    BUS_CLOCK,
    Key {
        path: "bus.shared_by",
        kind: Kind::Integer { min: 1, max: 256 },
        fallback: Fallback::Value("1"),
        meaning: "Adapters on one bus: HBAs, Ethernet interfaces and channel adapters are each grouped in their order.",
        example: "2",
        also: &["shared"],
    },
    BUS_DUPLEX,
    Key {
        path: "multipath",
        kind: Kind::Table,
        fallback: Fallback::Absent("the defaults of its keys"),
        meaning: "Choice of paths, and the reaction to a failed path.",
        example: "{ policy = \"least-queue\", fast_io_fail = \"1s\" }",
        also: &["mpio", "paths"],
    },
    Key {
        path: "multipath.policy",
        kind: Kind::Choice(PATH_POLICY),
        fallback: Fallback::Value("\"round-robin\""),
        meaning: "Choice of the path of a command.",
        example: "\"service-time\"",
        also: &[],
    },
    Key {
        path: "multipath.fast_io_fail",
        kind: Kind::Time,
        fallback: Fallback::Value("\"5s\""),
        meaning: "Time after the loss of the remote port at which a path returns its commands.",
        example: "\"1s\"",
        also: &[],
    },
    Key {
        path: "multipath.dev_loss",
        kind: Kind::Time,
        fallback: Fallback::Value("\"30s\""),
        meaning: "Time after the loss of the remote port at which the path is removed.",
        example: "\"30s\"",
        also: &["dev_loss_tmo"],
    },
    Key {
        path: "multipath.polling_interval",
        kind: Kind::Time,
        fallback: Fallback::Value("\"5s\""),
        meaning: "Interval at which the path checker tests a path on which a command failed, with TEST UNIT READY (multipath.conf(5), `polling_interval` and `path_checker tur`).",
        example: "\"5s\"",
        also: &["checker_interval", "polling"],
    },
    Key {
        path: "multipath.no_path_retry",
        kind: Kind::IntegerOr { word: "queue", min: 0, max: 1_000_000 },
        fallback: Fallback::Value("12"),
        meaning: "Polling intervals for which a request without a path waits before it fails; 0: it fails at once, as with `fail` of multipath.conf(5).",
        example: "\"queue\"",
        also: &["no_path_timeout"],
    },
    Key {
        path: "command_timeout",
        kind: Kind::Time,
        fallback: Fallback::Value("\"30s\""),
        meaning: "Time after which an incomplete command is aborted (`SD_TIMEOUT` of drivers/scsi/sd.h).",
        example: "\"5s\"",
        also: &["timeout", "io_timeout"],
    },
    Key {
        path: "retries",
        kind: Kind::Integer { min: 0, max: 255 },
        fallback: Fallback::Value("5"),
        meaning: "Number of repetitions of a command on one path (`SD_MAX_RETRIES` of drivers/scsi/sd.h). TASK SET FULL and BUSY are repeated for (`retries` + 1) × `command_timeout` (drivers/scsi/scsi_lib.c). Then another path is used; without one, the request fails.",
        example: "5",
        also: &["retry"],
    },
    Key {
        path: "abort_timeout",
        kind: Kind::Time,
        fallback: Fallback::Value("\"10s\""),
        meaning: "Time to wait for the answer to an ABTS (`FC_SCSI_TM_TOV` of drivers/scsi/libfc/fc_fcp.c). Then the error handler of the HBA starts.",
        example: "\"2s\"",
        also: &["abts_timeout"],
    },
    Key {
        path: "reset_timeout",
        kind: Kind::Time,
        fallback: Fallback::Value("\"10s\""),
        meaning: "Time to wait for the answer to LOGICAL UNIT RESET, and then to TARGET RESET (`FC_SCSI_TM_TOV` of drivers/scsi/libfc/fc_fcp.c).",
        example: "\"2s\"",
        also: &["eh_timeout", "tmf_timeout"],
    },
    Key {
        path: "eh_deadline",
        kind: Kind::TimeOr { word: "off" },
        fallback: Fallback::Value("\"off\""),
        meaning: "Time after the first command timeout from which on the error handler skips the resets of LUNs and targets and resets the HBA (`eh_deadline` of drivers/scsi/scsi_error.c).",
        example: "\"5s\"",
        also: &[],
    },
    Key {
        path: "queue_ramp_up",
        kind: Kind::Time,
        fallback: Fallback::Value("\"120s\""),
        meaning: "Time without TASK SET FULL after which a reduced queue depth of a LUN grows by one (`queue_ramp_up_period` of drivers/scsi/scsi_sysfs.c).",
        example: "\"10s\"",
        also: &["queue_ramp_up_period"],
    },
    Key {
        path: "discovery",
        kind: Kind::Flag,
        fallback: Fallback::Value("true"),
        meaning: "The HBAs discover storage and log in to it; `false`: they log in to the fabric only.",
        example: "false",
        also: &["discover", "initiator"],
    },
    Key {
        path: "on",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("the host is a machine with links of its own"),
        meaning: "Makes the host a virtual machine: its HBAs are virtual ports (NPIV) on those of this host, its hypervisor. A range of virtual machines is distributed in round-robin order over a range of hypervisors, and over the HBAs of each hypervisor.",
        example: "\"hypervisor{1..4}\"",
        also: &["hypervisor", "vm_on", "parent"],
    },
    Key {
        path: "start",
        kind: Kind::Time,
        fallback: Fallback::Absent("before the workloads, when its hypervisor has logged in"),
        meaning: "Time from the start of the workloads at which the virtual machine is created and its ports log in (FDISC).",
        example: "\"100ms\"",
        also: &["created", "create_at", "at"],
    },
    Key {
        path: "boot",
        kind: Kind::Times,
        fallback: Fallback::Value("{ distribution = \"uniform\", min = \"300ms\", max = \"800ms\" }"),
        meaning: "Time from the creation of a virtual machine with `start` until its ports log in; a time, or a distribution as listed below.",
        example: "\"500ms\"",
        also: &["boot_time", "power_on"],
    },
    Key {
        path: "interval",
        kind: Kind::Time,
        fallback: Fallback::Value("\"0s\""),
        meaning: "Time between the creations of the virtual machines of a range, from `start` on.",
        example: "\"1ms\"",
        also: &["every", "spacing"],
    },
    Key {
        path: "login",
        kind: Kind::Choice(LOGIN_SCRIPT),
        fallback: Fallback::Value("\"standard\""),
        meaning: "Steps by which a virtual machine logs in.",
        example: "\"npiv\"",
        also: &["script", "login_script"],
    },
    UPLINK[0],
    UPLINK[1],
    UPLINK[2],
    UPLINK[3],
    UPLINK[4],
    UPLINK[5],
];
