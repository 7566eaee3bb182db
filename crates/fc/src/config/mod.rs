//! Vocabulary of a storage area network: switches, hosts, storage, links, zones, workloads, faults.
//!
//! All items are plain values. The module imports no machine; the machines import it. The whole lab
//! and its validation are in [`crate::san`], above the machines.

mod arbitrated_loop;
mod channels;
mod cost;
mod ethernet;
mod fabric;
mod fault;
mod fcip;
mod fcoe;
mod gateway;
mod host_processor;
mod infiniband;
mod ipoib;
mod iscsi;
mod iscsi_hba;
mod joining;
mod lanes;
mod live;
mod node;
mod out_of_band;
mod policy;
mod port_groups;
mod srp;
mod tcp;
mod units;
mod virtual_fabric;
mod volumes;
mod workload;
mod zoning;

pub use arbitrated_loop::ArbitratedLoop;
pub use channels::{
    ChannelCredits, FABRIC_CHANNEL, MAX_CHANNELS, MAX_FRAME_BYTES, Priority, SlowDrain, VirtualChannels,
    buffers_to_fill, buffers_with_data,
};
pub use cost::{CostRule, standard as standard_cost};
pub use ethernet::{
    EcnMarks, EthernetEnd, EthernetLink, EthernetNode, EthernetRate, EthernetSwitch, FRAME_OVERHEAD_BYTES, MAX_VLAN,
    MAX_VLANS, PRIORITIES, VlanNumbers,
};
pub use fabric::{
    Arbitration, CrossbarLimits, Forwarding, IslChoice, IslHash, Link, LinkEnd, Node, Processor, ProcessorPriority,
    ProcessorSharing, Queueing, Switch, Timers, common_bb_sc_n,
};
pub use fault::{Direction, EthernetFault, Fault, FaultKind, InfinibandFault, OutOfBandFault};
pub use fcip::{FCIP_BUFFER_BYTES, FCIP_OVERHEAD_BYTES, FcipAddresses, FcipTunnel, K_A_TOV};
pub use fcoe::{FCOE_BUFFER_BYTES, FCOE_MTU, FCOE_OVERHEAD_BYTES, FCOE_QUEUE_FRAMES, TAG_BYTES, VirtualLink};
pub use gateway::{ForwardingGrain, Gateway, GatewayCost, GatewayHost, GatewayMode, GatewayPorts};
pub use host_processor::{
    AdapterProcessor, Affinity, ChannelCost, DriverCost, HostProcessor, PacketCost, StackCost, per_kib,
};
pub use infiniband::{
    BLOCK_BYTES, Infiniband, InfinibandEnd, InfinibandLink, InfinibandNode, InfinibandRate, InfinibandSwitch,
    MAX_BLOCKS, MAX_DATA_LANES, MAX_INFINIBAND_PORTS, MAX_LMC, Membership, PACKET_OVERHEAD_BYTES, PacketHold, SrpHost,
    SrpTarget, Subnet, SubnetRouting,
};
pub use ipoib::{
    DEFAULT_PARTITION, IPOIB_HEADER_BYTES, IpRouter, Ipoib, IpoibMode, IpoibOfLab, MAX_CONNECTED_MTU, MIN_IP_MTU,
};
pub use iscsi::{Chap, Iscsi, IscsiHost};
pub use iscsi_hba::IscsiHba;
pub use joining::{DEFAULT_PRIORITY, FlowControlModes, Joining};
pub use lanes::{
    DEFAULT_LANE_WEIGHT, DISCARDED_LANE, LaneArbitration, LaneSettings, LaneWeight, MAX_LANE_WEIGHTS, SERVICE_LEVELS,
};
pub use live::{Carrier, Ethernet, Fcoe, Live, Mask, Medium, MediumKind, Uplink};
pub use node::{
    Bus, ControllerAccess, Controllers, DeviceFailures, Duplex, ErrorRecovery, Hba, Host, Interrupt, IoQueue,
    IoScheduler, LoginScript, Lun, Multipath, PathPolicy, Service, SsdConfig, Storage, StoragePort, VirtualMachine,
};
pub use out_of_band::OutOfBand;
pub use policy::{Addressing, DuplicateNames, HardZoning, LoginLimits, NameLookup, Policy};
pub use port_groups::PortGroupSpec;
pub use srp::{SrpPortals, srp_target_port};
pub use tcp::{Congestion, Tcp};
pub use units::{LineRate, Picos, Rate};
pub use virtual_fabric::{MAX_VF_ID, VirtualFabric};
pub use volumes::{BackEnd, BackEndTarget, FcpBackEnd, IscsiBackEnd, Pool, VolumeSpec};
pub use workload::{
    Arrival, HotSet, Load, Location, SizeDistribution, Target, TimeDistribution, TraceLoad, TraceSelection, Workload,
};
pub use zoning::{
    BadZoneMember, MAX_ZONE_NAME_CHARS, MergeControl, MergeRules, Zone, ZoneDefault, ZoneLimits, ZoneMember,
    ZonePolicy, Zoning,
};
