//! Virtual fabrics: several switches in one chassis, [`VirtualFabric`].

/// Highest VF_ID of a virtual fabric; values from FEFh on are reserved (FC-FS, virtual fabric
/// tagging header).
pub const MAX_VF_ID: u16 = 0xfee;

/// Virtual fabric of a switch that is one of several in a chassis. It owns some of the ports of the
/// chassis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtualFabric {
    /// Name of the chassis.
    pub chassis: String,
    /// Virtual fabric ID (VF_ID), 1 to [`MAX_VF_ID`], equal in all chassis that are part of the
    /// virtual fabric.
    pub id: u16,
    /// Port numbers in the chassis, which are also those of the switch; sorted and without
    /// duplicates.
    pub ports: Vec<u16>,
}
