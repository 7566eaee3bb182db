//! A disk that QEMU writes to, and that has to have it.

use crate::peer::run;

/// Writes to an export of at least 64 MiB with every kind of request, and reads back what was written.
pub fn write_and_verify(qemu_io: &str, uri: &str) {
    let commands = [
        "write -P 0xab 0 4k",
        "write -f -P 0xcd 1M 1M",
        "aio_write -P 0x22 16M 4M",
        "aio_write -P 0x33 24M 64k",
        "aio_write -P 0x44 32M 512",
        "aio_flush",
        "write -z 1M 64k",
        "discard 1088k 64k",
        "flush",
        "read -P 0xab 0 4k",
        // What was discarded is anybody's guess.
        "read -P 0 1M 64k",
        "read -P 0xcd 1152k 896k",
        "read -P 0x22 16M 4M",
        "read -P 0x33 24M 64k",
        "read -P 0x44 32M 512",
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    arguments.push(uri);
    let said = run(qemu_io, &arguments);
    assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
}
