//! Network interfaces: tap devices and packet sockets, through calls that have no safe binding.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Counters of a packet socket since the previous query.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketCount {
    /// Frames dropped by the kernel because the socket's buffer was full.
    pub dropped: u32,
}

/// Device that creates tap interfaces.
const TUN: &str = "/dev/net/tun";

/// Opens the tap interface of this name and creates it if it does not exist. Frames have no packet
/// information header.
///
/// # Errors
/// Without permission, or when another process uses the interface.
pub fn open_tap(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TUN);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("{TUN} is missing; load the kernel module tun"))
        }
        _ => error,
    })?;
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    put_name(&mut request, name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    Ok(file)
}

/// Sets the MTU of an interface and brings it up, as far as permissions allow.
///
/// # Errors
/// Without permission, or when the interface does not exist.
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

/// Request for the settings of a link, `struct ethtool_cmd` of the kernel's `uapi/linux/ethtool.h`.
/// The kernel translates it for drivers with newer settings.
#[repr(C)]
#[derive(Default)]
struct LinkSettings {
    command: u32,
    supported: u32,
    advertised: u32,
    speed_low: u16,
    duplex_and_port: [u8; 2],
    details: [u8; 4],
    packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    partner: u32,
    reserved: [u32; 2],
}

/// ETHTOOL_GSET.
const GET_LINK_SETTINGS: u32 = 1;
/// SPEED_UNKNOWN.
const UNKNOWN_SPEED: u32 = u32::MAX;

/// Returns the current speed of an interface in Mb/s, or `None` if it is unknown, as without a
/// link.
///
/// # Errors
/// When the interface does not exist, or its driver knows no speed.
pub fn speed_of(name: &str) -> io::Result<Option<u32>> {
    let socket = datagram_socket()?;
    let mut settings = LinkSettings { command: GET_LINK_SETTINGS, ..LinkSettings::default() };
    // SAFETY: all-zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    put_name(&mut request, name);
    request.ifr_ifru.ifru_data = (&raw mut settings).cast();
    // SAFETY: SIOCETHTOOL reads one `ifreq`, and with ETHTOOL_GSET reads and writes one
    // `ethtool_cmd`, which has this layout. Both live until the call returns.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    let speed = u32::from(settings.speed_high) << 16 | u32::from(settings.speed_low);
    Ok(Some(speed).filter(|&speed| speed != UNKNOWN_SPEED && speed != 0))
}

/// Returns the index of an interface.
///
/// # Errors
/// When the interface does not exist.
pub fn index_of(name: &str) -> io::Result<u32> {
    let c_name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends with a zero and lives until the call returns.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Sets the length of an interface's transmit queue in frames (rtnetlink, IFLA_TXQLEN; the `ioctl`
/// requires more privileges).
///
/// # Errors
/// Without permission, or when the interface does not exist.
pub fn set_queue(name: &str, frames: u32) -> io::Result<()> {
    // `ifinfomsg`: family, type, index, flags, change mask.
    let mut body = vec![0; 4];
    body.extend(index_of(name)?.to_ne_bytes());
    body.extend([0; 8]);
    body.extend(attribute(libc::IFLA_TXQLEN, &frames.to_ne_bytes()));
    change_link(0, &body)
}

/// Creates a VLAN device and brings it up (rtnetlink, RTM_NEWLINK of kind "vlan").
///
/// # Errors
/// Without permission, when the parent does not exist, or when a device of this name exists.
pub fn add_vlan(parent: &str, name: &str, vlan: u16) -> io::Result<()> {
    const KIND: &[u8] = b"vlan";
    const IFLA_VLAN_ID: u16 = 1;
    let index = index_of(parent)?;
    let id = attribute(IFLA_VLAN_ID, &vlan.to_ne_bytes());
    let details = [attribute(libc::IFLA_INFO_KIND, KIND), attribute(libc::IFLA_INFO_DATA, &id)].concat();
    // `ifinfomsg`: family, type, index, flags, change mask.
    let mut body = vec![0; 8];
    body.extend((libc::IFF_UP as u32).to_ne_bytes());
    body.extend((libc::IFF_UP as u32).to_ne_bytes());
    body.extend(attribute(libc::IFLA_LINK, &index.to_ne_bytes()));
    body.extend(attribute(libc::IFLA_IFNAME, &[name.as_bytes(), b"\0"].concat()));
    body.extend(attribute(libc::IFLA_LINKINFO, &details));
    change_link(libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// Encodes an rtnetlink attribute.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends RTM_NEWLINK and reads the acknowledgement.
fn change_link(flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags;
    // `nlmsghdr`: length, type, flags, sequence number, port.
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([1_u32.to_ne_bytes(), [0; 4]].concat());
    message.extend(body);
    // `None` selects protocol 0, which is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 4_096];
    let (got, _) = recv(&socket, &mut answer[..], rustix::net::RecvFlags::empty())?;
    // `nlmsgerr` follows the header: 0, or a negative error number.
    let error = answer[..got].get(16..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
    if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(()) }
}

/// Returns whether the interface is up and has a carrier.
///
/// # Errors
/// When the interface does not exist (any more).
pub fn is_running(name: &str) -> io::Result<bool> {
    let flags = i32::from(flags_of(&datagram_socket()?, name)?);
    Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
}

/// Opens a packet socket on the interface with this index. It receives all frames, also those for
/// other addresses, but not frames sent through it. The kernel delivers tags separately from the
/// frames. A non-empty `types` (at most 255) limits reception to these EtherTypes.
///
/// # Errors
/// Without permission (CAP_NET_RAW), or when the interface does not exist.
pub fn open_packet(index: u32, receive_buffer_bytes: i32, types: &[u16]) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no memory is passed. Protocol 0: the socket receives nothing before it is bound.
    let socket =
        check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
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

/// Installs a packet filter (BPF program) that discards frames of other EtherTypes.
fn filter(socket: &OwnedFd, types: &[u16]) -> io::Result<()> {
    const TYPE_OFFSET: u32 = 12;
    let code =
        |code: u32, jump_if_true: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump_if_true, jf: 0, k };
    let mut program = vec![code(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, TYPE_OFFSET)];
    // Each match jumps over the remaining comparisons and the reject instruction.
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

/// Returns the counters of a packet socket since the last call.
///
/// # Errors
/// When the socket is not a packet socket.
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
    Ok(PacketCount { dropped: stats.tp_drops })
}

/// Receive buffer of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveMemory {
    /// Memory of the queued frames, with the kernel's own, in bytes.
    pub used_bytes: u32,
    /// Limit of `used_bytes`; further frames are dropped.
    pub limit_bytes: u32,
}

/// Returns how full the receive buffer of a socket is (SO_MEMINFO, since Linux 4.12).
///
/// # Errors
/// When the kernel is older.
pub fn receive_memory(socket: BorrowedFd<'_>) -> io::Result<ReceiveMemory> {
    // SK_MEMINFO_VARS of the kernel's `uapi/linux/sock_diag.h`: the first is SK_MEMINFO_RMEM_ALLOC,
    // the second SK_MEMINFO_RCVBUF.
    let mut values = [0_u32; 9];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `values`.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, (&raw mut values).cast(), &raw mut len)
    })?;
    Ok(ReceiveMemory { used_bytes: values[0], limit_bytes: values[1] })
}

/// Takes ownership of a descriptor that the parent process left open.
///
/// # Errors
/// When no such descriptor is open, or when this process opened it.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD passes no memory.
    let flags = check(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // A descriptor with this flag cannot have come through exec, and every descriptor that we open
    // and keep has it.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is open, nothing of ours owns it, and the user passed its number to
    // us.
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
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Writes the name, truncated so that a terminating zero remains.
fn put_name(request: &mut libc::ifreq, name: &str) {
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
