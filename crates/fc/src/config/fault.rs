//! Faults to inject, with their times.

use super::units::Picos;

/// Fault of a lab.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fault {
    /// Start of the fault, relative to the start of the workloads.
    pub at: Picos,
    /// Automatic end of the fault; `None`: it is permanent or a single event.
    pub until: Option<Picos>,
    /// Kind of fault.
    pub kind: FaultKind,
}

/// Kind of fault.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FaultKind {
    /// The link goes down and comes up again at `until`. Frames on it are lost.
    LinkDown {
        /// Index into `links`.
        link: u16,
    },
    /// A link that is down comes up.
    LinkUp {
        /// Index into `links`.
        link: u16,
    },
    /// A port goes offline, and its link goes down.
    PortDown {
        /// Index into `links` of the link at the port.
        link: u16,
        /// End of the link, 0 or 1.
        end: u8,
    },
    /// A switch restarts at `until`. Meanwhile all its links are down, and its buffers and logins
    /// are lost.
    SwitchReset {
        /// Index into `switches`.
        switch: u16,
    },
    /// Frames are lost at random.
    FrameLoss {
        /// Index into `links`.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Loss probability per frame, 0 to 1.
        probability: f64,
    },
    /// Frames are corrupted and arrive with a bad CRC.
    CrcErrors {
        /// Index into `links`.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Corruption probability per frame, 0 to 1.
        probability: f64,
    },
    /// The receiver at one end of a link returns credits late.
    SlowReceiver {
        /// Index into `links`.
        link: u16,
        /// Slow end, 0 or 1.
        end: u8,
        /// Delay added before each R_RDY; the delays of successive frames add up.
        delay: Picos,
    },
    /// The receiver at one end of a link returns no credits during the fault.
    WithheldCredits {
        /// Index into `links`.
        link: u16,
        /// End that withholds credits, 0 or 1.
        end: u8,
    },
    /// R_RDYs are lost in transit; the credit is missing until the link is reset.
    LostRRdy {
        /// Index into `links`.
        link: u16,
        /// End that sends the lost R_RDYs, 0 or 1.
        end: u8,
        /// Loss probability per R_RDY, 0 to 1.
        probability: f64,
    },
    /// A virtual machine moves to another hypervisor, at once or at `until`. Its port names log in
    /// there while its old logins still exist.
    VmMove {
        /// Index into `hosts` of the virtual machine.
        host: u16,
        /// Index into `hosts` of the destination hypervisor.
        to: u16,
    },
    /// A virtual machine stops: it issues no more requests, and its ports log out after the last
    /// one has ended.
    VmStop {
        /// Index into `hosts` of the virtual machine.
        host: u16,
    },
    /// A virtual machine logs in with the port names of another host, until it takes its own back
    /// at `until`.
    DuplicateName {
        /// Index into `hosts` of the virtual machine.
        host: u16,
        /// Index into `hosts` of the host whose names it uses.
        of: u16,
    },
    /// The commands of a host carry the addresses of another host as S_ID.
    ForeignAddress {
        /// Index into `hosts` of the host that sends them.
        host: u16,
        /// Index into `hosts` of the host whose addresses they carry.
        of: u16,
    },
    /// A disk of a LUN loses its data. At `until`, a new one replaces it.
    DiskFailure {
        /// Index into `storage`.
        storage: u16,
        /// Number of the LUN.
        lun: u16,
        /// Number of the disk in the group of the LUN.
        member: u32,
    },
    /// A block of a disk of a LUN becomes unreadable, until it is written again.
    LatentError {
        /// Index into `storage`.
        storage: u16,
        /// Number of the LUN.
        lun: u16,
        /// Number of the disk in the group of the LUN.
        member: u32,
        /// Number of the block on the disk, in blocks of 512 bytes.
        block: u64,
    },
    /// A change of out-of-band virtualization, or a fault of its network.
    OutOfBand(OutOfBandFault),
    /// A storage system has no power, until `until`: its ports are offline, commands in flight are
    /// lost, and so are the data of volatile caches.
    PowerFailure {
        /// Index into `storage`.
        storage: u16,
    },
    /// A controller of a storage system fails and returns at `until`: its ports are offline, and
    /// another controller takes over its LUNs.
    ControllerFailure {
        /// Index into `storage`.
        storage: u16,
        /// Number of the controller.
        controller: u8,
    },
    /// The battery of the cache of a storage system fails and returns at `until`.
    CacheBattery {
        /// Index into `storage`.
        storage: u16,
    },
    /// Fault of Ethernet.
    Ethernet(EthernetFault),
    /// Fault of InfiniBand.
    Infiniband(InfinibandFault),
}

/// Fault of an InfiniBand link or switch. Links are indices into the links of
/// [`Infiniband`](super::Infiniband).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InfinibandFault {
    /// The link goes down and comes up again at `until`. Packets on it and queued for it are lost.
    LinkDown {
        /// Index of the link.
        link: u16,
    },
    /// A link that is down comes up.
    LinkUp {
        /// Index of the link.
        link: u16,
    },
    /// A port or an interface goes offline, and its link goes down.
    PortDown {
        /// Index of the link at the port.
        link: u16,
        /// End of the link, 0 or 1.
        end: u8,
    },
    /// A switch restarts at `until`. Meanwhile all its links are down, and its packets are lost.
    SwitchReset {
        /// Index into the switches of [`Infiniband`](super::Infiniband).
        switch: u16,
    },
    /// Packets are lost at random.
    PacketLoss {
        /// Index of the link.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Loss probability per packet, 0 to 1.
        probability: f64,
    },
    /// Packets are corrupted and arrive with a bad CRC.
    CrcErrors {
        /// Index of the link.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Corruption probability per packet, 0 to 1.
        probability: f64,
    },
    /// Flow-control packets are lost in transit; the next one of the lane replaces them.
    LostCreditUpdates {
        /// Index of the link.
        link: u16,
        /// End that sends the lost packets, 0 or 1.
        end: u8,
        /// Loss probability per flow-control packet, 0 to 1.
        probability: f64,
    },
    /// The interface at one end of a link frees no buffer of packets that arrive during the fault.
    WithheldCredits {
        /// Index of the link.
        link: u16,
        /// End of the interface, 0 or 1.
        end: u8,
    },
}

/// Fault of an Ethernet link or switch. Links are indices into `ethernet_links`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EthernetFault {
    /// The link goes down and comes up again at `until`. Frames on it and queued for it are lost.
    LinkDown {
        /// Index of the link.
        link: u16,
    },
    /// A link that is down comes up.
    LinkUp {
        /// Index of the link.
        link: u16,
    },
    /// A port or an interface goes offline, and its link goes down.
    PortDown {
        /// Index of the link at the port.
        link: u16,
        /// End of the link, 0 or 1.
        end: u8,
    },
    /// A switch restarts at `until`. Meanwhile all its links are down, and its frames are lost.
    SwitchReset {
        /// Index into `ethernet_switches`.
        switch: u16,
    },
    /// Frames are lost at random, pause frames included.
    FrameLoss {
        /// Index of the link.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Loss probability per frame, 0 to 1.
        probability: f64,
    },
    /// Frames are corrupted and arrive with a bad FCS.
    FcsErrors {
        /// Index of the link.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Corruption probability per frame, 0 to 1.
        probability: f64,
    },
    /// Frames arrive late, behind frames that were sent after them.
    Reordering {
        /// Index of the link.
        link: u16,
        /// Affected direction.
        direction: Direction,
        /// Probability per frame, 0 to 1.
        probability: f64,
        /// Extra time of such a frame.
        delay: Picos,
    },
    /// The interface at one end of a link pauses priorities of its link partner without a break.
    PauseStorm {
        /// Index of the link.
        link: u16,
        /// End of the interface, 0 or 1.
        end: u8,
        /// Paused priorities, as a mask.
        priorities: u8,
    },
}

/// Direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
    /// Both directions.
    Both,
}

/// Change of out-of-band virtualization, or fault of its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutOfBandFault {
    /// The extents of a virtual disk move to a back end, one after the other.
    VolumeMove {
        /// Index into [`Live::volumes`](super::Live::volumes).
        volume: u16,
        /// Index into [`Live::back_ends`](super::Live::back_ends).
        to: u16,
    },
    /// Messages between a host and all metadata servers are lost, until `until`.
    MetadataCut {
        /// Index into `hosts`.
        host: u16,
    },
}
