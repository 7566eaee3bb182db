//! Probes the peers of the tests once per build and passes the missing ones to the attribute
//! `needs`. The probes run again when PATH, a directory on PATH or SANLOOM_REQUIRE_PEERS changes.

mod required;

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv6Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// O_DIRECT of Linux on x86-64.
const O_DIRECT: i32 = 0o40000;

/// Library of ibsim that replaces the device of InfiniBand management.
const UMAD2SIM: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";

/// Programs, with the Debian package that contains each.
const PROGRAMS: [(&str, &str); 23] = [
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("fio", "fio"),
    ("iscsi-inq", "libiscsi-bin"),
    ("iscsi-ls", "libiscsi-bin"),
    ("iscsi-perf", "libiscsi-bin"),
    ("iscsi-test-cu", "libiscsi-bin"),
    ("istgt", "istgt"),
    ("lldpad", "lldpad"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdinfo", "libnbd-bin"),
    ("opensm", "opensm"),
    ("prlimit", "util-linux"),
    ("promtool", "prometheus"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("qemu-nbd", "qemu-utils"),
    ("snmpwalk", "snmp"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("strace", "strace"),
    ("tgtadm", "tgt"),
    ("tshark", "tshark"),
];

/// Programs that build and run the guest.
const GUEST: [&str; 5] = ["qemu-system-x86_64", "apt-get", "dpkg-deb", "cpio", "xz"];

fn main() {
    for file in ["build.rs", "required.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for variable in ["PATH", "SANLOOM_REQUIRE_PEERS", "SANLOOM_TRACES"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    for folder in path().iter().filter(|folder| folder.is_dir()) {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let mut names = Vec::new();
    let mut missing = Vec::new();
    let mut peer = |name: &str, reason: Option<String>| {
        names.push(name.to_owned());
        missing.extend(reason.map(|reason| format!("{name}={reason}")));
    };
    for (program, package) in PROGRAMS {
        peer(program, absent(program).map(|reason| format!("{reason} (package {package})")));
    }
    peer("jsonschema", jsonschema());
    peer("ibsim", ibsim());
    peer("pyfos", pyfos());
    peer("ssh-clients", ssh_clients());
    peer("ansible", ansible());
    peer("qemu-iscsi", qemu_iscsi());
    peer("namespace", namespace());
    peer("guest", GUEST.into_iter().find_map(absent));
    peer("ns-3", ns3());
    peer("ipv6", ipv6());
    peer("direct-io", direct_io());
    peer("io-uring", io_uring());
    peer("cache-trace", cache_trace());
    peer("axe", axe());
    println!("cargo:rustc-env=KNOWN_PEERS={}", names.join("\t"));
    println!("cargo:rustc-env=MISSING_PEERS={}", missing.join("\t"));
    println!("cargo:rustc-env=PEERS_ARE_REQUIRED={}", u8::from(required::peers_are_required()));
}

/// Returns the reason if the public trace of the cache policies was not fetched.
fn cache_trace() -> Option<String> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/traces");
    let folder = env::var_os("SANLOOM_TRACES").map_or_else(|| PathBuf::from(fetched), PathBuf::from);
    let trace = folder.join("cloudPhysicsIO.oracleGeneral.bin");
    println!("cargo:rerun-if-changed={}", trace.display());
    (!trace.is_file()).then(|| "tests/traces/fetch.sh was not run".to_owned())
}

/// Returns the reason if the checker of accessibility was not fetched.
fn axe() -> Option<String> {
    let script = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/axe/axe-4.14.1.js"));
    println!("cargo:rerun-if-changed={}", script.display());
    (!script.is_file()).then(|| "tests/page/fetch.sh was not run".to_owned())
}

fn path() -> Vec<PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect()
}

/// Returns the reason if no Python interpreter has the validator of JSON Schema.
fn jsonschema() -> Option<String> {
    let has_validator = |python: &str| {
        let mut probe = Command::new(python);
        probe.args(["-c", "import tomllib, jsonschema"]).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    let missing = !["python3", "/usr/bin/python3"].into_iter().any(has_validator);
    missing.then(|| "no python3 has jsonschema (package python3-jsonschema)".to_owned())
}

/// Returns the reason if the Python environment of the tests has no pyfos, or if the test may not
/// listen at the ports of a switch.
fn pyfos() -> Option<String> {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/pyfos");
    let python = PathBuf::from(built).join("bin/python");
    println!("cargo:rerun-if-changed={}", python.display());
    if !python.is_file() {
        return Some("tests/pyfos/install.sh was not run".to_owned());
    }
    TcpListener::bind(("127.1.255.254", 80)).err().map(|error| format!("port 80 cannot be used: {error}"))
}

/// Returns the reason if the Python environment of the tests has no Ansible.
fn ansible() -> Option<String> {
    let python = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/ansible/bin/python"));
    println!("cargo:rerun-if-changed={}", python.display());
    (!python.is_file()).then(|| "tests/ansible/install.sh was not run".to_owned())
}

/// Returns the reason if the Python environment of the tests has no clients of SSH.
fn ssh_clients() -> Option<String> {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/ssh-clients");
    let python = PathBuf::from(built).join("bin/python");
    println!("cargo:rerun-if-changed={}", python.display());
    (!python.is_file()).then(|| "tests/ssh/install.sh was not run".to_owned())
}

/// Returns the reason if no directory on PATH contains the program.
fn absent(program: &str) -> Option<String> {
    let executable = |folder: &PathBuf| {
        folder.join(program).metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    (!path().iter().any(executable)).then(|| format!("{program} is not installed"))
}

/// QEMU's block driver for iSCSI is a module in a package of its own.
fn qemu_iscsi() -> Option<String> {
    let missing = ["qemu-img", "qemu-io"].into_iter().find_map(absent);
    missing.or_else(|| {
        let refused = "iscsi://127.0.0.1:1/iqn.2026-11.net.example:none/0";
        let output = Command::new("qemu-img").args(["info", "-f", "raw", refused]).output().ok()?;
        let unknown = String::from_utf8_lossy(&output.stderr).contains("Unknown protocol");
        unknown.then(|| "QEMU has no driver for iSCSI (package qemu-block-extra)".to_owned())
    })
}

/// ibsim connects with OpenSM through a library that is preloaded.
fn ibsim() -> Option<String> {
    absent("ibsim").map(|reason| format!("{reason} (package ibsim-utils)")).or_else(|| {
        let library = PathBuf::from(UMAD2SIM);
        println!("cargo:rerun-if-changed={}", library.display());
        (!library.is_file()).then(|| format!("{UMAD2SIM} is not installed (package libumad2sim0)"))
    })
}

fn namespace() -> Option<String> {
    ["unshare", "ip"].into_iter().find_map(absent).or_else(|| {
        let made = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
        (!made.is_ok_and(|status| status.success())).then(|| "network namespaces require root".to_owned())
    })
}

fn ns3() -> Option<String> {
    absent("c++").or_else(|| {
        let mut preprocessor = Command::new("c++");
        preprocessor.args(["-std=c++17", "-E", "-x", "c++", "-"]);
        let preprocessor = preprocessor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = preprocessor.spawn().ok()?;
        let written = child.stdin.take()?.write_all(b"#include <ns3/point-to-point-module.h>\n");
        let found = written.is_ok() && child.wait().is_ok_and(|status| status.success());
        (!found).then(|| "ns-3 is not installed (package libns3-dev)".to_owned())
    })
}

fn ipv6() -> Option<String> {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err().then(|| "this machine has no IPv6".to_owned())
}

/// True if the directory of temporary files supports O_DIRECT.
fn direct_io() -> Option<String> {
    let file = env::temp_dir().join(format!("sanloom-direct-io-{}", std::process::id()));
    let opened = OpenOptions::new().create(true).truncate(true).write(true).custom_flags(O_DIRECT).open(&file);
    let _ = std::fs::remove_file(&file);
    opened.is_err().then(|| "the directory of temporary files does not support direct I/O".to_owned())
}

/// True if the system supports and permits io_uring.
fn io_uring() -> Option<String> {
    io_uring::IoUring::new(8).err().map(|error| format!("the system does not permit io_uring: {error}"))
}
