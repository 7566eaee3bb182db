//! Configuration for running a lab on real Ethernet: `[live]`, `[[mask]]`, and keys of switches,
//! hosts, links and storage.

use super::{ACCESS_STATE, CACHE, CARRIER, Fallback, Form, Key, Kind, MEDIUM, SectionDef};

pub(super) const LIVE: SectionDef = SectionDef {
    name: "live",
    form: Form::Single,
    meaning: "Folder, sockets and addresses of a running instance (`sanloom up`). Simulations ignore it.",
    also: &["up", "instance", "runtime"],
    keys: &[
        Key {
            path: "folder",
            kind: Kind::Text,
            fallback: Fallback::Absent("a folder named after the lab, for this user"),
            meaning: "Folder of sockets and images without a path of their own. Paths that do not begin with `/` are relative to it.",
            example: "\"/run/san\"",
            also: &["run_dir", "directory", "dir"],
        },
        Key {
            path: "control",
            kind: Kind::Text,
            fallback: Fallback::Value("\"control.sock\""),
            meaning: "Path of the control socket.",
            example: "\"/run/san/control.sock\"",
            also: &["control_socket", "socket", "api"],
        },
        Key {
            path: "metrics",
            kind: Kind::Text,
            fallback: Fallback::Absent("no address; the control socket provides the metrics"),
            meaning: "Address and port where Prometheus reads `/metrics`.",
            example: "\"127.0.0.1:9464\"",
            also: &["prometheus", "metrics_address", "exporter"],
        },
    ],
};

pub(super) const MASK: SectionDef = SectionDef {
    name: "mask",
    form: Form::List,
    meaning: "LUN masking: the LUNs that an initiator sees. If any table of a storage system names an initiator of the same transport, an initiator sees only the LUNs that its tables list; otherwise it sees all LUNs. Tables for Fibre Channel hide nothing from initiators of iSCSI, and vice versa; no table hides anything from those of SRP. (`initiators` of the target restricts iSCSI logins.) A simulated host uses a LUN over the ports that see it.",
    also: &["masks", "masking", "lun_masking", "acl"],
    keys: &[
        Key {
            path: "hosts",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Hosts, ports of hosts such as `server1:0`, port names such as `21:00:00:24:ff:00:00:01`, or iSCSI names. A host stands for all its ports, and for its iSCSI name if all its links are of Ethernet.",
            example: "[\"server1\", \"21:00:00:24:ff:00:00:01\", \"iqn.2026-11.net.example:server{2..4}\"]",
            also: &["initiators", "host"],
        },
        Key {
            path: "targets",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Storage systems or LUNs of them; of virtual disks, LUNs.",
            example: "\"disk1:lun{0..3}\"",
            also: &["luns", "storage", "target"],
        },
    ],
};

pub(super) const PORT_GROUP: SectionDef = SectionDef {
    name: "port_group",
    form: Form::Named,
    meaning: "A target port group (ALUA): ports and portals of a storage system with the same access state. Its portals form a portal group. A storage system without such a table has one group, active/optimized; otherwise each of its ports must be in one group. Simulations ignore it.",
    also: &["port_groups", "alua", "target_port_group", "tpg"],
    keys: &[
        Key {
            path: "storage",
            kind: Kind::Text,
            fallback: Fallback::Required,
            meaning: "The storage system.",
            example: "\"array\"",
            also: &["target", "of"],
        },
        Key {
            path: "ports",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Its portals, and ports in a fabric such as `array:0`, that are in the group.",
            example: "[\"192.0.2.1:3260\", \"array:{0..1}\"]",
            also: &["portals", "members", "portal", "port"],
        },
        Key {
            path: "state",
            kind: Kind::Choice(ACCESS_STATE),
            fallback: Fallback::Value("\"active/optimized\""),
            meaning: "Access state at the start; `sanloom port group` and hosts can change it later.",
            example: "\"active/non-optimized\"",
            also: &["access_state", "access", "alua_state"],
        },
        Key {
            path: "preferred",
            kind: Kind::Flag,
            fallback: Fallback::Value("false"),
            meaning: "Hosts prefer the group to others in the same state.",
            example: "true",
            also: &["pref"],
        },
    ],
};

/// FCoE keys of `[switch.NAME]`.
pub(super) const FCOE: [Key; 4] = [
    Key {
        path: "fcoe",
        kind: Kind::Table,
        fallback: Fallback::Absent("the defaults of its keys"),
        meaning: "The switch as an FCoE forwarder, for `sanloom up`.",
        example: "{ priority = 1, keep_alive = \"1s\" }",
        also: &["fip", "fcf"],
    },
    Key {
        path: "fcoe.priority",
        kind: Kind::Integer { min: 0, max: 255 },
        fallback: Fallback::Value("128"),
        meaning: "Priority of the forwarder. Hosts that receive several advertisements choose the lowest number.",
        example: "1",
        also: &["fcf_priority"],
    },
    Key {
        path: "fcoe.keep_alive",
        kind: Kind::Time,
        fallback: Fallback::Value("\"8s\""),
        meaning: "Period of advertisements and of keep-alives of hosts (FKA_ADV_PERIOD); 250 ms to 90 s. A peer that is silent for 2.5 periods is logged out. Linux uses 8 s if the value is below 500 ms.",
        example: "\"1s\"",
        also: &["fka", "fka_period", "advertisement"],
    },
    Key {
        path: "fcoe.fc_map",
        kind: Kind::Integer { min: 0, max: 255 },
        fallback: Fallback::Value("0"),
        meaning: "Last byte of the FC-MAP, behind 0E:FC. Fabrics that share a VLAN need different ones.",
        example: "1",
        also: &["map"],
    },
];

/// Ethernet keys of `[[link]]` and `[[isl]]`.
pub(super) const ETHERNET: [Key; 10] = [
    Key {
        path: "ethernet",
        kind: Kind::Table,
        fallback: Fallback::Absent("`sanloom up` keeps the link inside its process; a host at its end does not exist"),
        meaning: "The link is one of FCoE. In `sanloom up` it is an Ethernet port, whose other end is outside the process. A simulation carries its frames over the Ethernet of the lab, if both ends have a link with a rate of Ethernet; otherwise it treats the link as one of Fibre Channel.",
        example: "{ carrier = \"dgram\" }",
        also: &["eth", "fcoe"],
    },
    Key {
        path: "ethernet.carrier",
        kind: Kind::Choice(CARRIER),
        fallback: Fallback::Value("\"dgram\""),
        meaning: "Carrier of the Ethernet frames.",
        example: "\"packet\"",
        also: &["driver", "type", "kind"],
    },
    Key {
        path: "ethernet.address",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`LINK.sock` in the folder of `[live]`"),
        meaning: "Path of the socket, name of the interface, or number of the descriptor: as many as links. Links with the same address share one port, with a VLAN of its own each.",
        example: "\"/run/san/server{1..4}.sock\"",
        also: &["path", "interface", "socket", "device", "fd"],
    },
    Key {
        path: "ethernet.peer",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`LINK.peer.sock` in the folder of `[live]`"),
        meaning: "Path of the datagram socket at the other end: as many as links. For a stream: connect there instead of listening. For `packet`: name of the interface at the other end, if a host or another process of sanloom uses it.",
        example: "\"/run/san/server{1..4}.peer.sock\"",
        also: &["remote", "peer_path"],
    },
    Key {
        path: "ethernet.vlan",
        kind: Kind::Integer { min: 1, max: 4_094 },
        fallback: Fallback::Absent("frames are untagged"),
        meaning: "VLAN of FCoE at this port. Hosts learn it by FIP VLAN discovery.",
        example: "100",
        also: &["vlan_id", "vid"],
    },
    Key {
        path: "ethernet.priority",
        kind: Kind::Integer { min: 0, max: 7 },
        fallback: Fallback::Value("3"),
        meaning: "Priority of FCoE in a simulation. The Ethernet switches on the way keep it lossless if their `pfc` has it.",
        example: "4",
        also: &["pcp", "cos"],
    },
    Key {
        path: "ethernet.pfc",
        kind: Kind::Flag,
        fallback: Fallback::Value("true"),
        meaning: "In a simulation, the adapters at both ends use PFC for this priority, as after an agreement by DCBX. `false`: the adapters neither send pauses nor obey them.",
        example: "false",
        also: &["lossless", "flow_control"],
    },
    Key {
        path: "ethernet.buffer",
        kind: Kind::Size { min: 4_096, max: 1 << 30 },
        fallback: Fallback::Absent("64 KiB, and the headroom that rate and length of the Ethernet link need"),
        meaning: "Receive buffer at each end of the virtual link in a simulation. A pause is sent when only the headroom is left.",
        example: "\"256KiB\"",
        also: &["receive_buffer", "rx_buffer"],
    },
    Key {
        path: "ethernet.enodes",
        kind: Kind::Integer { min: 1, max: 1_024 },
        fallback: Fallback::Value("1"),
        meaning: "Hosts (ENodes) that may log in through the port at once. Virtual ports (NPIV) of a host do not count.",
        example: "16",
        also: &["hosts", "max_enodes"],
    },
    Key {
        path: "ethernet.dcbx",
        kind: Kind::Flag,
        fallback: Fallback::Value("false"),
        meaning: "FCoE starts when DCBX (IEEE 802.1Qaz in LLDP) has agreed on a lossless priority for it: priority 3 with priority flow control. The switch sets the configuration; hosts are willing.",
        example: "true",
        also: &["dcb", "lldp"],
    },
];

/// Media keys of `[storage.NAME]`.
pub(super) const MEDIA: [Key; 4] = [
    Key {
        path: "medium",
        kind: Kind::Choice(MEDIUM),
        fallback: Fallback::Value("\"ram\""),
        meaning: "Medium of the LUNs in `sanloom up`.",
        example: "\"file\"",
        also: &["backing", "backend", "store"],
    },
    Key {
        path: "file",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`NAME-lunN.img` in the folder of `[live]`"),
        meaning: "Paths of the files of `medium = \"file\"`: as many as LUNs. A file that is not there is made, sparse.",
        example: "\"/srv/disk1-lun{0..3}.img\"",
        also: &["files", "image", "path"],
    },
    Key {
        path: "direct",
        kind: Kind::Flag,
        fallback: Fallback::Value("true"),
        meaning: "`sanloom up` reads and writes files past the page cache of its machine (O_DIRECT). If the file system does not support that, the log and `show luns` report it. `false`: through the page cache.",
        example: "false",
        also: &["o_direct", "direct_io"],
    },
    Key {
        path: "cache",
        kind: Kind::Choice(CACHE),
        fallback: Fallback::Value("\"write-through\""),
        meaning: "Time at which the data of a write are on stable storage, for `sanloom up`.",
        example: "\"write-back\"",
        also: &["write_cache", "caching"],
    },
];

/// Uplink keys of `[host.NAME]`.
pub(super) const UPLINK: [Key; 6] = [
    Key {
        path: "fcoe",
        kind: Kind::Table,
        fallback: Fallback::Absent("the host is reached through its links"),
        meaning: "In `sanloom up`, the first port of the host is an FCoE port of this machine, on any forwarder. A `[back_end.NAME]` that names the host uses it. Simulations ignore it.",
        example: "{ carrier = \"packet\", address = \"eth1\", vlan = \"auto\" }",
        also: &["uplink", "cna"],
    },
    Key {
        path: "fcoe.carrier",
        kind: Kind::Choice(CARRIER),
        fallback: Fallback::Value("\"dgram\""),
        meaning: "Carrier of the Ethernet frames.",
        example: "\"packet\"",
        also: &["driver", "type", "kind"],
    },
    Key {
        path: "fcoe.address",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`NAME.sock` in the folder of `[live]`"),
        meaning: "Path of the socket, name of the interface, or number of the descriptor: as many as hosts.",
        example: "\"eth1\"",
        also: &["path", "interface", "socket", "device", "fd"],
    },
    Key {
        path: "fcoe.peer",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`NAME.peer.sock` in the folder of `[live]`"),
        meaning: "Path of the datagram socket at the other end. For a stream: connect there instead of listening.",
        example: "\"/run/san/gateway-sw1.sock\"",
        also: &["remote", "peer_path"],
    },
    Key {
        path: "fcoe.vlan",
        kind: Kind::IntegerOr { word: "auto", min: 1, max: 4_094 },
        fallback: Fallback::Absent("frames are untagged"),
        meaning: "VLAN of FCoE at this port; `auto`: the one that a forwarder reports (FIP VLAN discovery).",
        example: "\"auto\"",
        also: &["vlan_id", "vid"],
    },
    Key {
        path: "fcoe.dcbx",
        kind: Kind::Flag,
        fallback: Fallback::Value("false"),
        meaning: "FCoE starts when DCBX has agreed with the other end on a lossless priority for it.",
        example: "true",
        also: &["dcb", "lldp"],
    },
];

/// VN2VN keys of `[storage.NAME]`.
pub(super) const VN2VN: [Key; 5] = [
    Key {
        path: "vn2vn",
        kind: Kind::Table,
        fallback: Fallback::Absent("the storage system is reached through its links"),
        meaning: "In `sanloom up`, the first port is a station of an Ethernet segment without a switch (VN2VN), where hosts discover it. Simulations ignore it.",
        example: "{ carrier = \"packet\", address = \"veth0\" }",
        also: &["station", "vn_port"],
    },
    Key {
        path: "vn2vn.carrier",
        kind: Kind::Choice(CARRIER),
        fallback: Fallback::Value("\"dgram\""),
        meaning: "Carrier of the Ethernet frames.",
        example: "\"packet\"",
        also: &["driver", "type", "kind"],
    },
    Key {
        path: "vn2vn.address",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`NAME.sock` in the folder of `[live]`"),
        meaning: "Path of the socket, name of the interface, or number of the descriptor: as many as storage systems.",
        example: "\"/run/san/disk{1..4}.sock\"",
        also: &["path", "interface", "socket", "device", "fd"],
    },
    Key {
        path: "vn2vn.peer",
        kind: Kind::Pattern,
        fallback: Fallback::Absent("`NAME.peer.sock` in the folder of `[live]`"),
        meaning: "Path of the datagram socket at the other end. For a stream: connect there instead of listening.",
        example: "\"/run/san/disk{1..4}.peer.sock\"",
        also: &["remote", "peer_path"],
    },
    Key {
        path: "vn2vn.vlan",
        kind: Kind::Integer { min: 1, max: 4_094 },
        fallback: Fallback::Absent("frames are untagged"),
        meaning: "VLAN of FCoE at this port.",
        example: "100",
        also: &["vlan_id", "vid"],
    },
];
