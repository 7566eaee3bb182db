//! Network interfaces: tap devices and packet sockets, with the calls that only exist in C.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// What a packet socket has seen since it was asked last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketCount {
    /// Frames, those that were dropped among them.
    pub seen: u32,
    /// Frames that the kernel dropped because the socket was full.
    pub dropped: u32,
}

/// Opens the tap interface of this name, makes it if it is not there, and takes frames without a header in front.
///
/// # Errors
/// Without permission, or when the interface belongs to somebody else.
pub fn open_tap(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    put_name(&mut request, name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(file)
}

/// Sets MTU and "up" of an interface, as far as we are allowed to.
///
/// # Errors
/// Without permission, or without such an interface.
pub fn bring_up(name: &str, mtu: u16) -> io::Result<()> {
    let socket = datagram_socket()?;
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    put_name(&mut request, name);
    request.ifr_ifru.ifru_mtu = i32::from(mtu);
    // SAFETY: SIOCSIFMTU reads one `ifreq`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU, &raw mut request) })?;
    let flags = flags_of(&socket, name)? | libc::IFF_UP as libc::c_short;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })?;
    Ok(())
}

/// The number of an interface.
///
/// # Errors
/// Without such an interface.
pub fn index_of(name: &str) -> io::Result<u32> {
    let c_name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends with a zero and lives until the call returns.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Sets how many frames the kernel keeps in front of an interface (rtnetlink, IFLA_TXQLEN; the `ioctl` for it takes more rights).
///
/// # Errors
/// Without permission, or without such an interface.
pub fn set_queue(name: &str, frames: u32) -> io::Result<()> {
    // `ifinfomsg`: family, type, index, flags, which of them change.
    let mut body = vec![0; 4];
    body.extend(index_of(name)?.to_ne_bytes());
    body.extend([0; 8]);
    body.extend(attribute(libc::IFLA_TXQLEN, &frames.to_ne_bytes()));
    change_link(0, &body)
}

/// Makes a VLAN device, and brings it up (rtnetlink, RTM_NEWLINK of kind "vlan").
///
/// # Errors
/// Without permission, without such a parent, or when there is a device of this name.
pub fn add_vlan(parent: &str, name: &str, vlan: u16) -> io::Result<()> {
    const KIND: &[u8] = b"vlan";
    const IFLA_VLAN_ID: u16 = 1;
    let index = index_of(parent)?;
    let id = attribute(IFLA_VLAN_ID, &vlan.to_ne_bytes());
    let details = [attribute(libc::IFLA_INFO_KIND, KIND), attribute(libc::IFLA_INFO_DATA, &id)].concat();
    // `ifinfomsg`: family, type, index, flags, which of them change.
    let mut body = vec![0; 8];
    body.extend((libc::IFF_UP as u32).to_ne_bytes());
    body.extend((libc::IFF_UP as u32).to_ne_bytes());
    body.extend(attribute(libc::IFLA_LINK, &index.to_ne_bytes()));
    body.extend(attribute(libc::IFLA_IFNAME, &[name.as_bytes(), b"\0"].concat()));
    body.extend(attribute(libc::IFLA_LINKINFO, &details));
    change_link(libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// An attribute of rtnetlink.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends RTM_NEWLINK, and takes its answer.
fn change_link(flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags;
    // `nlmsghdr`: length, type, flags, number, port.
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([1_u32.to_ne_bytes(), [0; 4]].concat());
    message.extend(body);
    // The protocol NETLINK_ROUTE has the number 0, which is what no protocol means.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 4_096];
    let (got, _) = recv(&socket, &mut answer[..], rustix::net::RecvFlags::empty())?;
    // `nlmsgerr` behind the header: 0, or a negative error number.
    let error = answer[..got].get(16..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
    if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(()) }
}

/// The interface is up and has a carrier.
///
/// # Errors
/// When there is no such interface (any more).
pub fn is_running(name: &str) -> io::Result<bool> {
    let flags = i32::from(flags_of(&datagram_socket()?, name)?);
    Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
}

/// A packet socket that hears everything on the interface of this number, also frames for other addresses, but not what is sent through it,
/// and has tags handed over beside the frames. With `types` (at most 255) it hears frames of these Ethernet types alone.
///
/// # Errors
/// Without permission (CAP_NET_RAW), or without such an interface.
pub fn open_packet(index: u32, receive_buffer_bytes: i32, types: &[u16]) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no memory is passed. Protocol 0: nothing arrives before the socket is bound.
    let socket =
        check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1_i32)?;
    option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
    if option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &receive_buffer_bytes).is_err() {
        option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &receive_buffer_bytes)?;
    }
    if !types.is_empty() {
        filter(&socket, types)?;
    }
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = all;
    address.sll_ifindex = index as libc::c_int;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address has the length that is given.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(socket)
}

/// Has the kernel discard what is of none of these Ethernet types (a program for its packet filter, BPF).
fn filter(socket: &OwnedFd, types: &[u16]) -> io::Result<()> {
    const TYPE_OFFSET: u32 = 12;
    let code =
        |code: u32, jump_if_true: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump_if_true, jf: 0, k };
    let mut program = vec![code(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, TYPE_OFFSET)];
    // Each comparison jumps over those behind it and over "nothing of it".
    let jumps = (1..=types.len() as u8).rev();
    program.extend(
        types
            .iter()
            .zip(jumps)
            .map(|(ether_type, jump)| code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump, u32::from(*ether_type))),
    );
    let (nothing, everything) = (0, u32::MAX);
    program.extend([nothing, everything].map(|bytes| code(libc::BPF_RET | libc::BPF_K, 0, bytes)));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// What a packet socket has seen since the last call.
///
/// # Errors
/// When the socket is no packet socket.
pub fn packet_count(socket: BorrowedFd<'_>) -> io::Result<PacketCount> {
    // SAFETY: all-zero is a valid value.
    let mut stats: libc::tpacket_stats = unsafe { zeroed() };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `stats`.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        )
    })?;
    Ok(PacketCount { seen: stats.tp_packets, dropped: stats.tp_drops })
}

/// A descriptor that the parent process left open for us, to be owned from now on.
///
/// # Errors
/// When no such descriptor is open, or it is one that we opened ourselves.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD passes no memory.
    let flags = check(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // No descriptor comes through exec with this mark, and what we open ourselves, and keep, has it.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is open, nothing of ours has it, and its number was given to us by the user as ours.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: F_SETFD passes no memory.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    Ok(descriptor)
}

fn option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes from `value`.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) })?;
    Ok(())
}

fn flags_of(socket: &OwnedFd, name: &str) -> io::Result<libc::c_short> {
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    put_name(&mut request, name);
    // SAFETY: SIOCGIFFLAGS reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: the kernel has written the flags.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

fn datagram_socket() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let socket = check(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// The name, cut so that a zero stays at its end.
fn put_name(request: &mut libc::ifreq, name: &str) {
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
