//! Parameter files of disks: TOML, and those of DiskSim with their seek files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sanloom_storage::disk::{Disk, DiskConfig, Op, Request, file, import};

fuzz_target!(|text: &str| {
    if let Ok(config) = file::read(text) {
        serve(&config);
    }
    // One text in three parts: the disk, its model, and its seek curve.
    let mut parts = text.split('\0');
    let mut next = || parts.next().unwrap_or("").to_owned();
    let (disk, model, seek) = (next(), next(), next());
    let files = |name: &str| match name {
        "a.diskspecs" => Ok(disk.clone()),
        "a.model" => Ok(model.clone()),
        "a.seek" => Ok(seek.clone()),
        _ => Err("no such file".to_owned()),
    };
    if let Ok(imported) = import::disksim("a.diskspecs", &files) {
        serve(&imported.config);
    }
});

/// Serves a few requests. Each of them ends.
fn serve(config: &DiskConfig) {
    let mut disk = Disk::new(config).expect("an accepted file is a disk");
    let last = disk.mechanism().geometry.blocks() - 1;
    for (id, op) in [Op::Read, Op::Write, Op::Read].into_iter().enumerate() {
        disk.submit(0, Request { id: id as u64, lbn: last / 2, blocks: 8, op });
    }
    let mut ended = 0;
    while let Some(now_ps) = disk.next_ps() {
        while disk.pop_ended(now_ps).is_some() {
            ended += 1;
        }
    }
    assert_eq!(ended, 3);
}
