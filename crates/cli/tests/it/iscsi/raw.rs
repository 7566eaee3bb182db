//! iSCSI PDUs as bytes, for initiators that violate the protocol.

use std::io::{self, Read};
use std::net::TcpStream;

const HEAD_BYTES: usize = 48;

/// Composes a PDU without digests: header with the length of its data segment, data, padding.
pub fn pdu(fields: &[(usize, &[u8])], data: &[u8]) -> Vec<u8> {
    let mut pdu = vec![0; HEAD_BYTES];
    for (at, bytes) in fields {
        pdu[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    pdu[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
    pdu.extend_from_slice(data);
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    pdu
}

/// Returns the next PDU of the target, or `None` if the connection has ended.
pub fn read_pdu(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut pdu = vec![0; HEAD_BYTES];
    connection.read_exact(&mut pdu)?;
    let len = u32::from_be_bytes([0, pdu[5], pdu[6], pdu[7]]) as usize;
    pdu.resize(HEAD_BYTES + len.next_multiple_of(4), 0);
    connection.read_exact(&mut pdu[HEAD_BYTES..])?;
    Ok(pdu)
}
