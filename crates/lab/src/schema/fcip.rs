//! FCIP keys of `[[isl]]`.

use super::{Fallback, Key, Kind};

pub(super) const FCIP: [Key; 6] = [
    Key {
        path: "fcip",
        kind: Kind::Table,
        fallback: Fallback::Absent("the link is one of Fibre Channel, or of FCoE"),
        meaning: "The link is one of FCIP (RFC 3821): its ports are VE_Ports, and a TCP connection carries its frames. In `sanloom up` the switch in `to` connects to the one in `from`.",
        example: "{ listen = \"0.0.0.0:3225\", peer = \"192.0.2.1:3225\" }",
        also: &["tunnel", "ve_port"],
    },
    Key {
        path: "fcip.listen",
        kind: Kind::Text,
        fallback: Fallback::Value("\"0.0.0.0:3225\""),
        meaning: "Address and TCP port at which the switch in `from` listens in `sanloom up`.",
        example: "\"192.0.2.1:3225\"",
        also: &["local", "local_ip", "bind"],
    },
    Key {
        path: "fcip.peer",
        kind: Kind::Text,
        fallback: Fallback::Absent("127.0.0.1 and the TCP port of `listen`"),
        meaning: "Address and TCP port to which the switch in `to` connects in `sanloom up`.",
        example: "\"192.0.2.1:3225\"",
        also: &["remote", "remote_ip", "connect"],
    },
    Key {
        path: "fcip.keep_alive",
        kind: Kind::Time,
        fallback: Fallback::Value("\"10s\""),
        meaning: "Keep-alive time-out (K_A_TOV), 100 ms to 1 h. After this idle time the end sends an LKA, and after the same time without an answer it closes the connection.",
        example: "\"2s\"",
        also: &["k_a_tov", "keepalive"],
    },
    Key {
        path: "fcip.window",
        kind: Kind::Size { min: 4_096, max: 1 << 30 },
        fallback: Fallback::Absent("it grows with the need, from 64 KiB to 3 MiB"),
        meaning: "Receive window of TCP in a simulation: the bytes that may be on their way. `sanloom up` uses the settings of the kernel.",
        example: "\"16MiB\"",
        also: &["receive_window", "rcvbuf"],
    },
    Key {
        path: "fcip.send_buffer",
        kind: Kind::Size { min: 4_096, max: 1 << 30 },
        fallback: Fallback::Absent("it grows with the need, from 16 KiB to 4 MiB"),
        meaning: "Buffer of each gateway in a simulation: the bytes that it keeps until the other end has acknowledged them.",
        example: "\"16MiB\"",
        also: &["buffer", "sndbuf"],
    },
];
