//! TCP ports.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// First and number of the ports of tests. The kernel assigns none of them to a client unasked.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// State of a socket that listens, in the table of the kernel.
const LISTEN: &str = "0A";

/// Returns a loopback address at which nothing listens, and another one with each call.
///
/// # Panics
/// Every port of tests is in use.
pub fn free_port() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Processes that run at the same time begin at different ports.
        let number = process::id().wrapping_mul(1_009).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + (number % u32::from(COUNT)) as u16;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr().unwrap().to_string();
        }
    }
    panic!("all ports from {FIRST} to {} are in use", FIRST + COUNT - 1);
}

/// Number of bytes that clients have sent to this IPv4 address and that its process has not read
/// yet, over all connections.
pub fn unread_bytes(address: &str) -> u64 {
    unread(address, 1)
}

/// Number of bytes that were sent from this IPv4 address and that its clients have not read yet.
pub fn unread_bytes_from(address: &str) -> u64 {
    unread(address, 2)
}

/// `column`: of the address in the table of the kernel; 1: own address, 2: that of the peer.
fn unread(address: &str, column: usize) -> u64 {
    let address: SocketAddrV4 = address.parse().unwrap();
    let address = format!("{:08X}:{:04X}", u32::from_le_bytes(address.ip().octets()), address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // The queue of a listener has connections instead of bytes.
    let connections = rows.filter(|row| row.get(column) == Some(&&*address) && row.get(3) != Some(&LISTEN));
    // Bytes to send and bytes to read, in hexadecimal digits.
    connections.map(|row| u64::from_str_radix(row[4].split_once(':').unwrap().1, 16).unwrap()).sum()
}
