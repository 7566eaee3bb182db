//! TCP ports.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

/// State of a socket that listens, in the table of the kernel.
const LISTEN: &str = "0A";

/// Returns a loopback address at which nothing listens.
pub fn free_port() -> String {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string()
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
