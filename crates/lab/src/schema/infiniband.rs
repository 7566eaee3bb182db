//! InfiniBand switches, the subnet, and the keys of InfiniBand links and of SRP.

use super::{Fallback, Form, Key, Kind, MEMBERSHIP, SUBNET_ROUTING, SectionDef, join};

/// Returns a key for a number of blocks.
const fn blocks(path: &'static str, fallback: Fallback, meaning: &'static str) -> Key {
    let kind = Kind::Integer { min: 1, max: 2_048 };
    Key { path, kind, fallback, meaning, example: "512", also: &["credits", "buffers"] }
}

/// Returns the keys of arbitration and of service levels, with the consequence of their absence.
const fn lanes([arbitration, levels]: [&'static str; 2]) -> [Key; 5] {
    [
        Key {
            path: "arbitration",
            kind: Kind::Table,
            fallback: Fallback::Absent(arbitration),
            meaning: "Arbitration of the lanes at each port that sends (IBA volume 1, 7.6.9). The table of high priority sends first, up to its limit; each table takes its entries in turn.",
            example: "{ high = \"2:8\", low = [\"0:64\", \"1:192\"], limit = 4 }",
            also: &["vlarb", "arbitration_table", "qos"],
        },
        Key {
            path: "arbitration.high",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("no lane has high priority"),
            meaning: "Table of high priority: lanes, each with its weight in units of 64 bytes from 0 to 255. A lane may have several entries. A packet that begins within the weight is sent whole.",
            example: "\"2:8\"",
            also: &["high_priority", "vlarb_high", "qos_vlarb_high"],
        },
        Key {
            path: "arbitration.low",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("all lanes, each with weight 64"),
            meaning: "Table of low priority, in the same form. Packets of a lane without weight in either table never leave.",
            example: "[\"0:64\", \"1:192\"]",
            also: &["low_priority", "vlarb_low", "qos_vlarb_low"],
        },
        Key {
            path: "arbitration.limit",
            kind: Kind::Integer { min: 0, max: 255 },
            fallback: Fallback::Value("0"),
            meaning: "Data of high priority, in units of 4,096 bytes, before a packet of low priority that waits is sent: 0 for one packet, 255 for no limit.",
            example: "4",
            also: &["high_limit", "qos_high_limit", "limit_of_high_priority"],
        },
        Key {
            path: "levels",
            kind: Kind::Patterns,
            fallback: Fallback::Absent(levels),
            meaning: "Service levels, each with its lane. Lane 15 discards the packets of its level.",
            example: "[\"0:0\", \"{1..15}:1\"]",
            also: &["sl2vl", "service_levels", "qos_sl2vl"],
        },
    ]
}

pub(super) const SWITCH: SectionDef = SectionDef {
    name: "infiniband_switch",
    form: Form::Named,
    meaning: "InfiniBand switches, with buffers at their inputs. A switch has as many ports as links. All InfiniBand links of a lab form one subnet, whose manager runs at the first host.",
    also: &["infiniband_switches", "infiniband", "ib_switch", "ib"],
    keys: &join::<10>(&[&SWITCH_KEYS, &lanes(["that of [subnet]", "the lane of the level in [subnet]"])]),
};

const SWITCH_KEYS: [Key; 5] = [
    blocks(
        "blocks",
        Fallback::Value("256"),
        "Blocks of 64 bytes that each port holds for each lane: the credit of its neighbour.",
    ),
    Key {
        path: "latency",
        kind: Kind::Time,
        fallback: Fallback::Value("\"100ns\""),
        meaning: "Time from the arrival of a packet until it may leave.",
        example: "\"200ns\"",
        also: &["delay"],
    },
    Key {
        path: "cut_through",
        kind: Kind::Flag,
        fallback: Fallback::Value("true"),
        meaning: "A packet may leave before its end has arrived, if its output is free.",
        example: "false",
        also: &["cutthrough", "forwarding"],
    },
    Key {
        path: "lifetime",
        kind: Kind::Integer { min: 0, max: 31 },
        fallback: Fallback::Value("18"),
        meaning: "A packet that waits at the head of its queue for longer than 4.096 us times 2 to this power is dropped, on the way to another switch; from 20 on it never is.",
        example: "14",
        also: &["hoq_life", "head_of_queue_lifetime"],
    },
    Key {
        path: "last_lifetime",
        kind: Kind::Integer { min: 0, max: 31 },
        fallback: Fallback::Value("16"),
        meaning: "The same on the way to a host or storage system.",
        example: "12",
        also: &["leaf_lifetime", "leaf_hoq_life"],
    },
];

pub(super) const SUBNET: SectionDef = SectionDef {
    name: "subnet",
    form: Form::Single,
    meaning: "The InfiniBand subnet: its manager, and settings of all its ports and connections.",
    also: &["subnet_manager", "sm", "opensm"],
    keys: &join::<13>(&[
        &SUBNET_KEYS,
        &lanes(["each lane has the same share of a line", "a level uses the lane of its number modulo `lanes`"]),
    ]),
};

const SUBNET_KEYS: [Key; 8] = [
    Key {
        path: "routing",
        kind: Kind::Choice(SUBNET_ROUTING),
        fallback: Fallback::Value("\"minhop\""),
        meaning: "Routing engine. If it refuses the topology, `minhop` replaces it.",
        example: "\"ftree\"",
        also: &["routing_engine", "engine"],
    },
    Key {
        path: "roots",
        kind: Kind::Patterns,
        fallback: Fallback::Absent("the routing engine finds them; in a ring there are none"),
        meaning: "Root switches of `updn` and `ftree`; `minhop` has none.",
        example: "\"spine{1..2}\"",
        also: &["root", "root_guid_file"],
    },
    Key {
        path: "lmc",
        kind: Kind::Integer { min: 0, max: 7 },
        fallback: Fallback::Value("0"),
        meaning: "LID mask control: each interface has 2 to this power of LIDs, with paths of their own where there are several. Each connection uses one of them, in turn.",
        example: "2",
        also: &["lid_mask_control", "lids"],
    },
    Key {
        path: "sweep",
        kind: Kind::Time,
        fallback: Fallback::Value("\"10ms\""),
        meaning: "Time from a change of a link to new forwarding tables.",
        example: "\"1s\"",
        also: &["sweep_time", "sweep_interval"],
    },
    Key {
        path: "mtu",
        kind: Kind::Integer { min: 256, max: 4_096 },
        fallback: Fallback::Value("2048"),
        meaning: "Largest payload of a packet in bytes: 256, 512, 1024, 2048 or 4096.",
        example: "4096",
        also: &["path_mtu"],
    },
    Key {
        path: "lanes",
        kind: Kind::Integer { min: 1, max: 15 },
        fallback: Fallback::Value("1"),
        meaning: "Data lanes (virtual lanes) of each link, with buffers of their own. `arbitration` has their shares, and `levels` their service levels.",
        example: "4",
        also: &["virtual_lanes", "vls"],
    },
    Key {
        path: "ack_timeout",
        kind: Kind::Integer { min: 1, max: 31 },
        fallback: Fallback::Value("14"),
        meaning: "A connection repeats its packets if no acknowledgement arrives for 4.096 us times 2 to this power.",
        example: "16",
        also: &["local_ack_timeout", "timeout"],
    },
    Key {
        path: "retries",
        kind: Kind::Integer { min: 0, max: 7 },
        fallback: Fallback::Value("7"),
        meaning: "Repetitions without progress after which a connection fails.",
        example: "3",
        also: &["retry_count"],
    },
];

/// Keys of an InfiniBand link.
pub(super) const LINK: [Key; 1] = [blocks(
    "blocks",
    Fallback::Absent("`blocks` of the switch, or `srp.blocks` of the host or storage"),
    "Blocks of 64 bytes that both ends of an InfiniBand link hold for each lane.",
)];

const INTERFACE_BLOCKS: Key = blocks(
    "srp.blocks",
    Fallback::Value("256"),
    "Blocks of 64 bytes that each InfiniBand interface holds for each lane.",
);

const MEMBER: Key = Key {
    path: "srp.membership",
    kind: Kind::Choice(MEMBERSHIP),
    fallback: Fallback::Value("\"full\""),
    meaning: "Membership of the interfaces in the partition. In practice, hosts that must not see each other are limited members, and their storage is a full one.",
    example: "\"limited\"",
    also: &["member"],
};

/// SRP initiator of a host.
pub(super) const INITIATOR: [Key; 9] = [
    Key {
        path: "srp",
        kind: Kind::Table,
        fallback: Fallback::Absent("the defaults below, at each InfiniBand interface"),
        meaning: "The SRP initiator of the host. It has a channel from each of its InfiniBand interfaces to each of those of the SRP targets that its workloads use.",
        example: "{ queue_depth = 128 }",
        also: &["infiniband"],
    },
    Key {
        path: "srp.queue_depth",
        kind: Kind::Integer { min: 1, max: 4_096 },
        fallback: Fallback::Value("62"),
        meaning: "Maximum number of commands in flight at a channel.",
        example: "128",
        also: &["depth", "queue"],
    },
    Key {
        path: "srp.level",
        kind: Kind::Integer { min: 0, max: 15 },
        fallback: Fallback::Value("0"),
        meaning: "Service level of the packets of both directions, which chooses their lane.",
        example: "1",
        also: &["service_level", "sl"],
    },
    Key {
        path: "srp.partition",
        kind: Kind::Integer { min: 1, max: 32_767 },
        fallback: Fallback::Value("32_767"),
        meaning: "Partition of the channels: the low 15 bits of the P_Key. Only targets in this partition accept them.",
        example: "1",
        also: &["pkey", "p_key"],
    },
    MEMBER,
    INTERFACE_BLOCKS,
    Key {
        path: "srp_cost",
        kind: Kind::Table,
        fallback: Fallback::Absent("I/O over SRP costs no processor time besides `cpu_per_io`"),
        meaning: "Processor time of SRP. The channel adapter moves the data by itself.",
        example: "{ per_command = \"5us\", per_completion = \"3us\" }",
        also: &[],
    },
    Key {
        path: "srp_cost.per_command",
        kind: Kind::Time,
        fallback: Fallback::Value("\"0s\""),
        meaning: "Time of a command before it leaves, with the registration of its memory.",
        example: "\"5us\"",
        also: &[],
    },
    Key {
        path: "srp_cost.per_completion",
        kind: Kind::Time,
        fallback: Fallback::Value("\"0s\""),
        meaning: "Time of a response, with its interrupt.",
        example: "\"3us\"",
        also: &["interrupt"],
    },
];

/// SRP target of a storage system.
pub(super) const TARGET: [Key; 7] = [
    Key {
        path: "srp",
        kind: Kind::Table,
        fallback: Fallback::Absent("hosts do not reach it over InfiniBand"),
        meaning: "The storage system is an SRP target: at its InfiniBand interfaces in a simulation, and at `portals` in `sanloom up`.",
        example: "{ request_limit = 256 }",
        also: &["infiniband"],
    },
    Key {
        path: "srp.request_limit",
        kind: Kind::Integer { min: 2, max: 4_095 },
        fallback: Fallback::Value("128"),
        meaning: "Requests that an initiator may have outstanding at a channel. It keeps one of them for task management.",
        example: "256",
        also: &["queue_depth", "depth"],
    },
    Key {
        path: "srp.partitions",
        kind: Kind::Numbers { min: 1, max: 32_767 },
        fallback: Fallback::Absent("the default partition, 32,767, alone"),
        meaning: "In a simulation, partitions of the target, whose hosts may log in.",
        example: "[1, 2]",
        also: &["pkeys", "p_keys", "partition", "pkey"],
    },
    MEMBER,
    Key {
        path: "srp.portals",
        kind: Kind::Patterns,
        fallback: Fallback::Absent("`sanloom up` does not serve it over SRP"),
        meaning: "In `sanloom up`, IPv4 addresses where it serves SRP over RoCEv2, each with a port of the RDMA connection manager. All packets go to UDP port 4791. Several targets may share an address with different ports. Identifier extension and GUID of the target are its `wwnn`. Simulations ignore it.",
        example: "\"192.0.2.1:5555\"",
        also: &["portal", "roce", "listen", "address", "addresses"],
    },
    Key {
        path: "srp.initiators",
        kind: Kind::Patterns,
        fallback: Fallback::Absent("all initiators may log in"),
        meaning: "In `sanloom up`, port identifiers of the initiators that may log in: identifier extension and GUID in 32 hexadecimal digits. Linux has an extension of zero and the GUID of its adapter. Simulations ignore it.",
        example: "\"0x00000000000000005054000000000002\"",
        also: &["allow", "acl", "access", "hosts"],
    },
    INTERFACE_BLOCKS,
];
