//! Keys of the processors of hosts.

use super::{AFFINITY, Fallback, Key, Kind};

/// Returns a key for a time that is nothing by default.
const fn cost(path: &'static str, meaning: &'static str, example: &'static str) -> Key {
    Key { path, kind: Kind::Time, fallback: Fallback::Value("\"0s\""), meaning, example, also: &[] }
}

/// Keys of the processor of a host and of the costs of I/O on it.
pub(super) const PROCESSOR: [Key; 25] = [
    Key {
        path: "processor",
        kind: Kind::Table,
        fallback: Fallback::Absent("one core"),
        meaning: "The processor of the host. The costs of I/O on it are `cpu_per_io`, `interrupt.cost`, `fc_cost` and `tcp_cost`.",
        example: "{ cores = 8, lock_share = 0.02 }",
        also: &["cpu_cores"],
    },
    Key {
        path: "processor.cores",
        kind: Kind::Integer { min: 1, max: 1_024 },
        fallback: Fallback::Value("1"),
        meaning: "Number of cores.",
        example: "8",
        also: &["count"],
    },
    Key {
        path: "processor.affinity",
        kind: Kind::Choice(AFFINITY),
        fallback: Fallback::Value("\"spread\""),
        meaning: "Core that executes a piece of work.",
        example: "\"adapter\"",
        also: &[],
    },
    Key {
        path: "processor.lock_share",
        kind: Kind::Share,
        fallback: Fallback::Value("0"),
        meaning: "Share of its time by which work becomes longer for each further busy core, because of locks: `s` in `1 + s (n - 1) + k n (n - 1)` for `n` busy cores (Gunther, Guerrilla Capacity Planning, 2007).",
        example: "0.02",
        also: &["contention"],
    },
    Key {
        path: "processor.coherence_share",
        kind: Kind::Share,
        fallback: Fallback::Value("0"),
        meaning: "Share of its time by which work becomes longer for each pair of busy cores, because they exchange cache lines: `k` in the same expression.",
        example: "0.0005",
        also: &["coherence"],
    },
    Key {
        path: "fc_cost",
        kind: Kind::Table,
        fallback: Fallback::Absent(
            "I/O over Fibre Channel costs no processor time besides `cpu_per_io` and `interrupt`",
        ),
        meaning: "Processor time of the driver of the HBAs. The HBA moves the data by itself.",
        example: "{ per_command = \"14.6us\", per_kib_read = \"62.5ns\" }",
        also: &[],
    },
    cost("fc_cost.per_command", "Time of a command before it leaves.", "\"14.6us\""),
    cost("fc_cost.per_kib_read", "Time per KiB of a read, when its data have arrived.", "\"62.5ns\""),
    cost("fc_cost.per_kib_written", "Time per KiB of a write, before its command leaves.", "\"62.5ns\""),
    Key {
        path: "tcp_cost",
        kind: Kind::Table,
        fallback: Fallback::Absent("I/O over TCP costs no processor time besides `cpu_per_io` and `interrupt`"),
        meaning: "Processor time of iSCSI and TCP with a NIC.",
        example: "{ per_command = \"26.5us\", copy_received = \"1us\" }",
        also: &[],
    },
    cost("tcp_cost.per_command", "Time of a command before it leaves.", "\"26.5us\""),
    cost("tcp_cost.per_segment_received", "Time of each segment, or batch of segments, that arrives.", "\"4.75us\""),
    cost("tcp_cost.per_segment_sent", "Time of each segment, or batch of segments, that leaves.", "\"2us\""),
    Key {
        path: "tcp_cost.batch",
        kind: Kind::Size { min: 0, max: 1_048_576 },
        fallback: Fallback::Value("\"0B\""),
        meaning: "Data that the NIC or the driver joins to one unit of work in either direction (TSO and GRO); 0B: each segment is one.",
        example: "\"64KiB\"",
        also: &["offload"],
    },
    cost("tcp_cost.copy_received", "Time to copy a KiB that has arrived.", "\"1us\""),
    cost("tcp_cost.copy_sent", "Time to copy a KiB that leaves.", "\"1us\""),
    cost(
        "tcp_cost.checksum",
        "Time of the checksums of a KiB in either direction; 0 if the NIC computes them.",
        "\"500ns\"",
    ),
    cost("tcp_cost.interrupt", "Time of an interrupt of a NIC.", "\"3us\""),
    cost(
        "tcp_cost.interrupt_gap",
        "Shortest time between two interrupts of a NIC: frames that arrive earlier wait for the next one.",
        "\"125us\"",
    ),
    Key {
        path: "tcp_cost.min_interrupt_gap",
        kind: Kind::Time,
        fallback: Fallback::Absent("the gap is always `interrupt_gap`"),
        meaning: "Makes the gap adapt to the load: it doubles up to `interrupt_gap` after an interrupt with several frames, and halves down to this value after one with a single frame.",
        example: "\"5us\"",
        also: &["adaptive"],
    },
    Key {
        path: "tcp_cost.interrupt_frames",
        kind: Kind::Integer { min: 1, max: 4_096 },
        fallback: Fallback::Value("64"),
        meaning: "Number of frames that raise the interrupt at once.",
        example: "16",
        also: &[],
    },
    Key {
        path: "hba_processor",
        kind: Kind::Table,
        fallback: Fallback::Absent("the processor of an HBA is infinitely fast"),
        meaning: "The processor of each HBA, which handles one command after the other.",
        example: "{ per_read = \"28.4us\", per_write = \"48.5us\" }",
        also: &[],
    },
    cost("hba_processor.per_read", "Time of a read in the processor of the HBA.", "\"28.4us\""),
    cost("hba_processor.per_write", "Time of a write in the processor of the HBA.", "\"48.5us\""),
    cost("hba_processor.per_kib", "Time per KiB of data in the processor of the HBA.", "\"100ns\""),
];
