//! Batched transfer of frames: `recvmmsg` and `sendmmsg`.

#![allow(unsafe_code)]

use crate::frame::FrameBuf;
use sanloom_wire::ether::VlanTag;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of frames per system call.
pub const BATCH: usize = 32;
/// Words for one `tpacket_auxdata` and its header.
const CONTROL_WORDS: usize = 8;

/// Receives frames from a datagram or packet socket without blocking, one into each buffer. Returns
/// their number and a bit mask by position of frames longer than their buffer. With `aside`, the
/// kernel may deliver a tag separately from its frame (`PACKET_AUXDATA`).
///
/// # Errors
/// Errors of `recvmmsg`; `WouldBlock` when no frame is available.
pub fn receive(socket: BorrowedFd<'_>, buffers: &mut [FrameBuf], aside: bool) -> io::Result<(usize, u32)> {
    let count = buffers.len().min(BATCH);
    // SAFETY: all-zero is a valid value of these plain structs of integers and pointers.
    let (mut parts, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { (zeroed(), zeroed()) };
    let mut control = [[0u64; CONTROL_WORDS]; BATCH];
    for (((part, header), control), buffer) in
        parts.iter_mut().zip(&mut headers).zip(&mut control).zip(buffers.iter_mut())
    {
        let room = buffer.room();
        *part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        if aside {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of_val(control);
        }
    }
    // SAFETY: the first `count` headers point to parts and control words that live until the call
    // returns, and each part to the room of a buffer that is borrowed mutably for as long.
    let got = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let mut cut = 0;
    for (number, (header, buffer)) in headers.iter().zip(buffers.iter_mut()).take(got).enumerate() {
        cut |= u32::from(header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0) << number;
        let tag = if aside { tag_aside(&header.msg_hdr) } else { None };
        buffer.received(header.msg_len as usize, tag);
    }
    Ok((got, cut))
}

/// Returns the 802.1Q tag that a packet socket removed from a frame.
fn tag_aside(header: &libc::msghdr) -> Option<VlanTag> {
    // SAFETY: the header is as `recvmmsg` left it: `msg_control` points to `msg_controllen` bytes
    // of well-formed messages.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, so it points to a whole header inside the control words, which are
        // aligned for it.
        let (level, kind, len) = unsafe { ((*message).cmsg_level, (*message).cmsg_type, (*message).cmsg_len) };
        // `cmsg_len` counts the header and the padding behind it, too.
        // SAFETY: a calculation without memory.
        let needed = unsafe { libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as libc::c_uint) } as usize;
        if level == libc::SOL_PACKET && kind == libc::PACKET_AUXDATA && len >= needed {
            // SAFETY: there is a whole struct behind the header, which any bytes are a value of.
            let data = unsafe { libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned() };
            let valid = data.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
            return valid.then(|| VlanTag::from_bits(data.tp_vlan_tci));
        }
        // SAFETY: `message` came from this header.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

/// Sends frames through a connected datagram or packet socket without blocking. Returns the number
/// of frames sent, at least 1.
///
/// # Errors
/// Errors of `sendmmsg` for the first frame.
pub fn send<'f>(socket: BorrowedFd<'_>, frames: impl Iterator<Item = &'f [u8]>) -> io::Result<usize> {
    // SAFETY: as in `receive`.
    let (mut parts, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) = unsafe { (zeroed(), zeroed()) };
    let mut count = 0;
    for ((part, header), frame) in parts.iter_mut().zip(&mut headers).zip(frames) {
        *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers point to parts that live until the call returns, and each
    // part to a frame that is borrowed for as long; sending does not write to it.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control message with this `cmsg_len` and the tag of VLAN 77.
    fn tag_of(len: usize) -> Option<VlanTag> {
        let mut words = [0u64; CONTROL_WORDS];
        // SAFETY: all-zero is a valid value of these plain structs.
        let (mut header, mut data): (libc::msghdr, libc::tpacket_auxdata) = unsafe { (zeroed(), zeroed()) };
        header.msg_control = words.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&words);
        (data.tp_status, data.tp_vlan_tci) = (libc::TP_STATUS_VLAN_VALID, 77);
        // SAFETY: the control words are aligned for a header, and longer than one with its data.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(&header);
            (*message).cmsg_level = libc::SOL_PACKET;
            (*message).cmsg_type = libc::PACKET_AUXDATA;
            (*message).cmsg_len = len as _;
            libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().write_unaligned(data);
        }
        tag_aside(&header)
    }

    #[test]
    fn a_tag_is_read_only_from_a_control_message_that_holds_all_of_it() {
        // SAFETY: a calculation without memory.
        let whole = unsafe { libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as libc::c_uint) } as usize;
        assert_eq!(tag_of(whole), Some(VlanTag::from_bits(77)));
        // As long as the data alone, so that a part of them is missing.
        assert_eq!(tag_of(size_of::<libc::tpacket_auxdata>()), None);
        assert_eq!(tag_of(whole - 1), None);
    }
}
