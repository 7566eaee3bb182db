//! Keys of IP over InfiniBand and of routers between InfiniBand and Ethernet.

use super::{Fallback, IPOIB_MODE, Key, Kind};

/// Keys of IPoIB, with the reason for its absence.
const fn ipoib(absent: &'static str, meaning: &'static str, level: Fallback) -> [Key; 5] {
    [
        Key {
            path: "ipoib",
            kind: Kind::Table,
            fallback: Fallback::Absent(absent),
            meaning,
            example: "{ mode = \"connected\", mtu = 65_520 }",
            also: &["ip_over_ib", "ib_ip"],
        },
        Key {
            path: "ipoib.mode",
            kind: Kind::Choice(IPOIB_MODE),
            fallback: Fallback::Value("\"datagram\""),
            meaning: "Transport of the packets. Two interfaces use a connection if both have the connected mode.",
            example: "\"connected\"",
            also: &["transport"],
        },
        Key {
            path: "ipoib.mtu",
            kind: Kind::Integer { min: 1, max: 65_535 },
            fallback: Fallback::Absent("the largest of the mode: `mtu` of [subnet] less 4 bytes, or 65,520"),
            meaning: "Largest packet of IP in bytes.",
            example: "2_044",
            also: &[],
        },
        Key {
            path: "ipoib.partition",
            kind: Kind::Integer { min: 1, max: 32_767 },
            fallback: Fallback::Value("32_767"),
            meaning: "Partition: the low 15 bits of the P_Key. Interfaces of different partitions exchange no packets.",
            example: "1",
            also: &["pkey", "p_key"],
        },
        Key {
            path: "ipoib.level",
            kind: Kind::Integer { min: 0, max: 15 },
            fallback: level,
            meaning: "Service level of the packets that its interfaces send, which chooses their lane.",
            example: "1",
            also: &["service_level", "sl"],
        },
    ]
}

const fn time(path: &'static str, fallback: Fallback, meaning: &'static str, example: &'static str) -> Key {
    Key { path, kind: Kind::Time, fallback, meaning, example, also: &[] }
}

/// IPoIB of a host, its costs, and its function as a router.
pub(super) const HOST_KEYS: [Key; 11] = {
    let [table, mode, mtu, partition, level] = ipoib(
        "no packet of IP uses its InfiniBand interfaces",
        "IP of the host at its InfiniBand interfaces, for sessions of iSCSI. The subnet's `mtu` and `partition` limit it. Addresses are known: there is no ARP and no multicast.",
        Fallback::Absent("`srp.level`"),
    );
    [
        table,
        mode,
        mtu,
        partition,
        level,
        Key {
            path: "ipoib_cost",
            kind: Kind::Table,
            fallback: Fallback::Absent("a packet costs as much as a segment of `tcp_cost`, and none are joined"),
            meaning: "Processor time of each packet of IPoIB. Adapters join and divide no packets of IPoIB; copies, checksums and interrupts are those of `tcp_cost`.",
            example: "{ per_packet_received = \"8us\", per_packet_sent = \"5us\" }",
            also: &[],
        },
        time(
            "ipoib_cost.per_packet_received",
            Fallback::Absent("`tcp_cost.per_segment_received`"),
            "Time of a packet that arrives.",
            "\"8us\"",
        ),
        time(
            "ipoib_cost.per_packet_sent",
            Fallback::Absent("`tcp_cost.per_segment_sent`"),
            "Time of a packet that leaves.",
            "\"5us\"",
        ),
        Key {
            path: "ip_router",
            kind: Kind::Table,
            fallback: Fallback::Absent("the host forwards no packets"),
            meaning: "The host routes packets of IP between its Ethernet and its InfiniBand interfaces, as the Ethernet gateway of an InfiniBand switch does. Hosts use it for storage that they do not reach otherwise.",
            example: "{ per_packet = \"4us\", queue = 512 }",
            also: &["ip_forward", "ib_gateway"],
        },
        time("ip_router.per_packet", Fallback::Value("\"1us\""), "Time that a packet occupies the router.", "\"4us\""),
        Key {
            path: "ip_router.queue",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            fallback: Fallback::Value("1_000"),
            meaning: "Most packets that wait for the router at each interface; further ones are dropped.",
            example: "512",
            also: &["backlog"],
        },
    ]
};

/// IPoIB of a storage system.
pub(super) const STORAGE_KEYS: [Key; 5] = ipoib(
    "no packet of IP uses its InfiniBand interfaces",
    "IP of the storage system at its InfiniBand interfaces, each of which is a portal of its iSCSI target.",
    Fallback::Value("0"),
);
