//! Third-party clients read and write disks in memory and in files.

use sanloom_block::{FileSpec, Source};
use sanloom_live::clock::Clock;
use sanloom_live::nbd::{NbdServer, local};
use sanloom_live::storage::medium::Medium;
use sanloom_live::storage::store::Store;
use sanloom_scsi::nbd::{Counters, Limits};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{fail, run, uri};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub const DISK_BYTES: u64 = 64 << 20;

/// A server with three exports: `ram` with blocks of 512 bytes, `file` with blocks of 4096 bytes,
/// and the read-only `look`.
pub struct Bed {
    pub folder: PathBuf,
    pub socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counters>>,
}

impl Bed {
    pub fn start(name: &str) -> Bed {
        Bed::start_with(name, Limits::default())
    }

    pub fn start_with(name: &str, limits: Limits) -> Bed {
        let folder = std::env::temp_dir().join(format!("sanloom-nbd-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("nbd.sock");
        let file = FileSpec { path: folder.join("disk.img"), size_bytes: DISK_BYTES, sparse: true, direct: true };
        let media = [(Source::Ram, 512), (Source::File(file), 4096), (Source::Pattern { seed: 7 }, 512)];
        let media = media.map(|(source, block)| (Store::open(&source).unwrap(), block));
        let media: Vec<(Arc<Medium>, u32)> =
            media.into_iter().map(|(store, block)| (Arc::new(Medium::new(store, block)), block)).collect();
        let exports = ["ram", "file", "look"].iter().zip(&media).enumerate().map(|(number, (name, (_, block)))| {
            let blocks = DISK_BYTES / u64::from(*block);
            local::export(number as u64, name, "a disk of the test", blocks, *block, *name == "look")
        });
        let mut server = NbdServer::listen(&socket, exports.collect(), limits).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            local::serve(&mut server, Clock::start(), &media, |_| !stopped.load(Ordering::Relaxed)).unwrap();
            server.counters()
        });
        Bed { folder, socket, stop, thread: Some(thread) }
    }

    pub fn uri(&self, export: &str) -> String {
        uri(&self.socket, export)
    }

    /// Ends the server and returns its counters.
    pub fn stop(&mut self) -> Counters {
        self.stop.store(true, Ordering::Relaxed);
        let counters = self.thread.take().unwrap().join().unwrap();
        assert!(!self.socket.exists(), "the socket is gone with its server");
        counters
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Pseudo-random bytes.
fn noise(path: &str, bytes: usize) {
    let mut state = 0x9e37_79b9_u32;
    let data: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(bytes)
    .collect();
    fs::write(path, data).unwrap();
}

#[needs("nbdinfo")]
#[test]
fn nbdinfo_reads_the_properties_of_the_exports() {
    let mut bed = Bed::start("info");
    let info = run("nbdinfo", &["--json", &bed.uri("file")]);
    for part in [
        "\"protocol\": \"newstyle-fixed\"",
        "\"structured\": true",
        "\"export-name\": \"file\"",
        "\"description\": \"a disk of the test\"",
        "\"base:allocation\"",
        "\"is_read_only\": false",
        "\"can_cache\": true",
        "\"can_df\": true",
        "\"can_flush\": true",
        "\"can_fua\": true",
        "\"can_multi_conn\": true",
        "\"can_trim\": true",
        "\"can_zero\": true",
        "\"block_size_minimum\": 4096",
        "\"block_size_maximum\": 33554432",
        "\"export-size\": 67108864",
    ] {
        assert!(info.contains(part), "no {part} in {info}");
    }
    assert!(run("nbdinfo", &["--json", &bed.uri("look")]).contains("\"is_read_only\": true"));
    let list = run("nbdinfo", &["--list", "--json", &bed.uri("")]);
    for name in ["ram", "file", "look"] {
        assert!(list.contains(&format!("\"export-name\": \"{name}\"")), "{list}");
    }
    assert_eq!(run("nbdinfo", &["--size", &bed.uri("ram")]).trim(), "67108864");
    let output = fail("nbdinfo", &[&bed.uri("nowhere")]);
    assert!(output.contains("nowhere") || output.contains("no such export"), "{output}");
    assert_eq!(bed.stop().protocol_errors, 0);
}

#[needs("nbdcopy")]
#[test]
fn nbdcopy_copies_both_ways_on_several_connections() {
    let mut bed = Bed::start("copy");
    let (source, back) = (bed.path("source"), bed.path("back"));
    noise(&source, DISK_BYTES as usize);
    for export in ["ram", "file"] {
        run("nbdcopy", &["--connections=4", "--requests=16", "--flush", &source, &bed.uri(export)]);
        run("nbdcopy", &["--connections=4", &bed.uri(export), &back]);
        assert!(fs::read(&source).unwrap() == fs::read(&back).unwrap(), "{export}");
    }
    // From one export to the other, and without structured replies: holes stay holes.
    run("nbdcopy", &["--synchronous", &bed.uri("ram"), &bed.uri("file")]);
    let counters = bed.stop();
    assert_eq!((counters.protocol_errors, counters.refused_requests, counters.failed_requests), (0, 0, 0));
}

#[needs("nbdinfo", "qemu-io")]
#[test]
fn holes_are_reported_and_created() {
    let bed = Bed::start("holes");
    for export in ["ram", "file"] {
        let uri = bed.uri(export);
        run("qemu-io", &["-f", "raw", "-c", "write -P 7 1M 2M", "-c", "discard 2M 1M", "-c", "flush", &uri]);
        let map: String = run("nbdinfo", &["--map", &uri]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(map, "0 1048576 3 hole,zero 1048576 1048576 0 data 2097152 65011712 3 hole,zero", "{export}");
    }
}

#[needs("qemu-img", "qemu-io")]
#[test]
fn qemu_writes_and_verifies_and_compares_images() {
    let mut bed = Bed::start("qemu");
    for export in ["ram", "file"] {
        let uri = bed.uri(export);
        let info = run("qemu-img", &["info", &uri]);
        assert!(info.contains("virtual size: 64 MiB"), "{info}");
        let commands = [
            "write -P 0xab 0 4k",
            "write -f -P 0xcd 1M 1M",
            "writev -P 0x11 8M 4k 8k 512k",
            "aio_write -P 0x22 16M 4M",
            "aio_write -P 0x33 24M 64k",
            "aio_flush",
            "write -z 1M 64k",
            "write -z -u 1088k 64k",
            "flush",
            "read -P 0xab 0 4k",
            "read -P 0 1M 128k",
            "read -P 0xcd 1152k 896k",
            "read -P 0x11 8M 524k",
            "read -P 0x22 16M 4M",
            "read -P 0x33 24M 64k",
        ];
        let mut arguments = vec!["-f", "raw"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
        arguments.push(&uri);
        let output = run("qemu-io", &arguments);
        assert!(!output.contains("failed") && !output.contains("rror"), "{output}");
    }
    let (ram, file) = (bed.uri("ram"), bed.uri("file"));
    assert!(run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &ram, &file]).contains("identical"));
    // A qcow2 image on the block device, checked by its own tool.
    run("qemu-img", &["create", "-f", "qcow2", &ram, "32M"]);
    run("qemu-io", &["-f", "qcow2", "-c", "write -P 5 3M 5M", &ram]);
    run("qemu-img", &["check", "-f", "qcow2", &ram]);
    // A read-only export rejects writes.
    let output = fail("qemu-io", &["-f", "raw", "-c", "write 0 4k", &bed.uri("look")]);
    assert!(output.contains("read-only") || output.contains("Permission denied"), "{output}");
    assert_eq!(bed.stop().protocol_errors, 0);
}

#[needs("fio")]
#[test]
fn fio_verifies_what_it_wrote_at_random() {
    let mut bed = Bed::start("fio");
    for export in ["ram", "file"] {
        let uri = format!("--uri={}", bed.uri(export));
        let output = run(
            "fio",
            &[
                "--name=nbd",
                "--ioengine=nbd",
                &uri,
                "--rw=randwrite",
                "--bsrange=4k-128k",
                "--blockalign=4k",
                "--iodepth=32",
                "--size=16m",
                "--verify=crc32c",
                "--do_verify=1",
                "--verify_fatal=1",
                "--verify_state_save=0",
                "--randseed=1",
                "--output-format=terse",
            ],
        );
        assert!(output.lines().any(|line| line.starts_with("3;fio-")), "{output}");
    }
    assert_eq!(bed.stop().failed_requests, 0);
}
