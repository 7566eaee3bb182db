//! Scripts in a network namespace of their own, and the labs that they run.

use crate::initiator::bed::Bed;
use crate::sanloom::SANLOOM;
use sanloom_test_support::programs::run;
use std::fmt::Write;

/// Returns a lab with switches `sw1`, `sw2` and so on, each with a disk of the same number. Host
/// `server1` is behind the first of these links, and so on; each has the name of its switch and the
/// value of `ethernet`.
pub fn lab(switches: u32, links: &[(&str, &str)]) -> String {
    let mut lab = format!(
        "[live]\nfolder = \"{{folder}}\"\n[switch.\"sw{{1..{switches}}}\"]\n\
         [host.\"server{{1..{}}}\"]\nwwpn = \"20:00:52:54:00:00:00:01\"\n\
         [storage.\"disk{{1..{switches}}}\"]\nlun_size = \"64MiB\"\n",
        links.len()
    );
    for (number, (switch, ethernet)) in (1..).zip(links) {
        let _ = writeln!(lab, "[[link]]\nfrom = \"server{number}\"\nto = \"{switch}\"\nethernet = {ethernet}");
    }
    let _ = writeln!(lab, "[[link]]\nfrom = \"disk{{1..{switches}}}\"\nto = \"sw{{1..{switches}}}\"");
    lab
}

/// Beginning of every script.
const FUNCTIONS: &str = r#"
set -e
sanloom=$1
folder=$2
ip link set lo up
# A pair of interfaces that are joined.
pair() {
    ip link add $1 mtu 2500 type veth peer name $2 mtu 2500
    ip link set $1 up
    ip link set $2 up
}
# Starts sanloom with these arguments and waits until it is ready; $started is its process. Each has
# a FIFO of its own, because a writer may still have another one open.
started=0
start() {
    mkfifo $folder/ready.$started
    $sanloom "$@" --ready-fd 3 3>$folder/ready.$started 2>>$folder/log &
    read said <$folder/ready.$started
    started=$!
}
# Repeats a command until it succeeds, for 30 s.
until_good() {
    for try in $(seq 300); do
        "$@" && return
        sleep 0.1
    done
}
fcoeadm() {
    $sanloom fcoeadm --run-folder $folder/run "$@"
}
has_no_instance() {
    ! fcoeadm -i >/dev/null 2>&1
}
"#;

/// Returns the output of a script in its own network namespace. The script has the functions above,
/// `$sanloom`, and the folder of the bed as `$folder`.
pub fn in_namespace(bed: &Bed, script: &str) -> String {
    std::fs::write(bed.path("script"), format!("{FUNCTIONS}{script}")).unwrap();
    // Root keeps its capabilities outside the namespace, for receive buffers above the usual limit.
    let options = if rustix::process::geteuid().is_root() { "-nmpf" } else { "-rnmpf" };
    let arguments = [options, "--kill-child", "--mount-proc", "bash"];
    let own = [bed.path("script"), SANLOOM.to_owned(), bed.path("")];
    let own: Vec<&str> = own.iter().map(|argument| argument.trim_end_matches('/')).collect();
    run("unshare", &[&arguments[..], &own].concat())
}

/// Returns the text after the line `== name`, up to the next such line.
pub fn section<'a>(output: &'a str, name: &str) -> &'a str {
    let begin = output.split(&format!("== {name}\n")).nth(1).unwrap_or_default();
    begin.split("\n== ").next().unwrap_or_default()
}
