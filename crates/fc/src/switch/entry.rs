//! Name-server object of one port: [`NsEntry`].

use super::names::port_number;
use crate::fabric::PortIdentity;
use sanloom_scsi::time::Instant;
use sanloom_wire::ns::{
    Fc4Descriptors, Fc4Types, IpAddress, NsObject, ProcessAssociator, fcp_feature, has_type, set_feature,
};
use sanloom_wire::{FcId, FcType, Wwnn, Wwpn};

/// Object of the name server (FC-GS, name server).
///
/// The switch at which the port is logged in creates and changes it. Other switches of the same
/// process share it through the `Arc`, so a fabric stores each object once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NsEntry {
    /// N_Port_ID; its domain identifies the switch that owns the object.
    pub port_id: FcId,
    /// Port type (see [`sanloom_wire::ns::port_type`]).
    pub port_type: u8,
    /// FC-4 features of FCP, one nibble (see [`fcp_feature`]).
    pub fcp_features: u8,
    /// False after the port removed itself from the name server with DA_ID. Zoning and forwarding
    /// still include the port.
    pub listed: bool,
    /// Classes of service, bit n for class n.
    pub classes: u32,
    /// World-wide port name from the fabric login.
    pub port_name: Wwpn,
    /// World-wide node name.
    pub node_name: Wwnn,
    /// Name of the F_Port at which the port is logged in.
    pub fabric_port_name: Wwpn,
    /// Registered FC-4 types, one bit each.
    pub types: Fc4Types,
    /// Time of the login. It decides which of two ports with the same name stays.
    pub logged_in_at: Instant,
    /// Attributes that few ports register.
    pub extra: Option<Box<NsExtra>>,
}

/// The limit keeps a fabric of 65 switches with 1,024 objects each small even if objects are not
/// shared.
const _: () = assert!(size_of::<NsEntry>() <= 120);

/// Attributes that take memory only if they are registered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NsExtra {
    /// Symbolic port name, at most 255 bytes.
    pub symbolic_port_name: Box<[u8]>,
    /// Symbolic node name, at most 255 bytes.
    pub symbolic_node_name: Box<[u8]>,
    /// Features of FC-4 types other than FCP: type and nibble, sorted by type.
    pub features: Vec<(u8, u8)>,
    /// Attributes that hardly any port registers.
    pub rare: Option<Box<NsRare>>,
}

/// Attributes of arbitrated loops and of IP over Fibre Channel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NsRare {
    /// Loop address that the port requests; zero if none is registered.
    pub hard_address: FcId,
    /// IP address of the port.
    pub port_ip: IpAddress,
    /// IP address of the node.
    pub node_ip: IpAddress,
    /// Initial process associator of the node.
    pub process_associator: ProcessAssociator,
    /// FC-4 descriptors, at most [`MAX_DESCRIPTORS`].
    pub descriptors: Fc4Descriptors,
}

/// Maximum number of FC-4 descriptors stored per port.
pub const MAX_DESCRIPTORS: usize = 8;

impl NsEntry {
    /// Identity that zone members are compared with. The switch port number is derived from the
    /// F_Port name.
    pub fn identity(&self) -> PortIdentity {
        PortIdentity {
            port_id: self.port_id,
            port_name: self.port_name,
            node_name: self.node_name,
            domain: self.port_id.domain(),
            port: port_number(self.fabric_port_name).unwrap_or(PortIdentity::NO_PORT),
        }
    }

    /// Returns true if the port registered the FC-4 type.
    pub fn has_type(&self, fc4_type: u8) -> bool {
        has_type(&self.types, fc4_type)
    }

    /// Feature nibble of an FC-4 type; zero if none is registered.
    pub fn features_of(&self, fc4_type: u8) -> u8 {
        if fc4_type == FcType::FCP.0 {
            return self.fcp_features;
        }
        let others = self.extra.as_ref().map_or(&[][..], |extra| &extra.features);
        others.iter().find(|(of, _)| *of == fc4_type).map_or(0, |(_, bits)| *bits)
    }

    /// Returns true if the port registered the FCP target feature.
    pub fn is_target(&self) -> bool {
        self.fcp_features & fcp_feature::TARGET != 0
    }

    /// Symbolic port name; empty if none is registered.
    pub fn symbolic_port_name(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.symbolic_port_name)
    }

    /// Symbolic node name; empty if none is registered through this port.
    pub fn symbolic_node_name(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.symbolic_node_name)
    }

    /// Attributes that hardly any port registers; all zero or empty if none is registered.
    pub fn rare(&self) -> &NsRare {
        const NOTHING: &NsRare = &NsRare {
            hard_address: FcId::ZERO,
            port_ip: [0; 16],
            node_ip: [0; 16],
            process_associator: [0; 8],
            descriptors: Vec::new(),
        };
        self.extra.as_ref().and_then(|extra| extra.rare.as_deref()).unwrap_or(NOTHING)
    }

    /// Key that orders ports with the same name by login time; never equal for two ports.
    pub(super) fn precedence(&self) -> (Instant, FcId) {
        (self.logged_in_at, self.port_id)
    }

    /// All FC-4 features in the format of GFF_ID.
    pub(crate) fn feature_map(&self) -> Box<[u8; 128]> {
        let mut map = Box::new([0; 128]);
        set_feature(&mut map, FcType::FCP.0, self.fcp_features);
        for &(fc4_type, bits) in self.extra.iter().flat_map(|extra| &extra.features) {
            set_feature(&mut map, fc4_type, bits);
        }
        map
    }

    pub(crate) fn set_features(&mut self, fc4_type: u8, bits: u8) {
        let bits = bits & 0x0f;
        if fc4_type == FcType::FCP.0 {
            self.fcp_features = bits;
            return;
        }
        if bits == 0 && self.extra.is_none() {
            return;
        }
        let features = &mut self.extra.get_or_insert_default().features;
        features.retain(|(of, _)| *of != fc4_type);
        if bits != 0 {
            let at = features.partition_point(|(of, _)| *of < fc4_type);
            features.insert(at, (fc4_type, bits));
        }
        self.drop_empty_extra();
    }

    pub(super) fn set_symbolic_port_name(&mut self, name: &[u8]) {
        if name != self.symbolic_port_name() {
            self.extra.get_or_insert_default().symbolic_port_name = name.into();
            self.drop_empty_extra();
        }
    }

    pub(super) fn set_symbolic_node_name(&mut self, name: &[u8]) {
        if name != self.symbolic_node_name() {
            self.extra.get_or_insert_default().symbolic_node_name = name.into();
            self.drop_empty_extra();
        }
    }

    pub(super) fn set_rare(&mut self, change: impl FnOnce(&mut NsRare)) {
        let extra = self.extra.get_or_insert_default();
        change(extra.rare.get_or_insert_default());
        if extra.rare.as_deref() == Some(&NsRare::default()) {
            extra.rare = None;
        }
        self.drop_empty_extra();
    }

    /// Removes everything that the port registered; the attributes from its login stay.
    pub(super) fn deregister(&mut self) {
        self.listed = false;
        self.types = [0; 8];
        self.fcp_features = 0;
        self.extra = None;
    }

    /// Returns true if the change from `self` to `new` affects discovery and therefore needs an
    /// RSCN. Changes of names alone do not.
    pub(super) fn differs_for_discovery(&self, new: &NsEntry) -> bool {
        let features = |entry: &NsEntry| entry.extra.as_ref().map(|e| e.features.clone()).unwrap_or_default();
        self.types != new.types
            || self.fcp_features != new.fcp_features
            || self.listed != new.listed
            || self.port_name != new.port_name
            || features(self) != features(new)
    }

    /// Object in the format of GA_NXT.
    pub(super) fn to_object(&self, symbolic_node_name: &[u8]) -> NsObject {
        let rare = self.rare();
        NsObject {
            port_type: self.port_type,
            port_id: self.port_id,
            port_name: self.port_name,
            symbolic_port_name: self.symbolic_port_name().into(),
            node_name: self.node_name,
            symbolic_node_name: symbolic_node_name.into(),
            process_associator: rare.process_associator,
            node_ip: rare.node_ip,
            classes: self.classes,
            types: self.types,
            port_ip: rare.port_ip,
            fabric_port_name: self.fabric_port_name,
            hard_address: rare.hard_address,
        }
    }

    fn drop_empty_extra(&mut self) {
        if self.extra.as_deref() == Some(&NsExtra::default()) {
            self.extra = None;
        }
    }
}
