//! What the name server knows of one port: [`NsEntry`].

use super::login::port_number;
use crate::fabric::PortIdentity;
use crate::time::Instant;
use sanloom_wire::ns::{
    Fc4Descriptors, Fc4Types, IpAddress, NsObject, ProcessAssociator, fcp_feature, has_type, set_feature,
};
use sanloom_wire::{FcId, FcType, Wwnn, Wwpn};

/// An object of the name server (FC-GS, name server).
///
/// The switch where the port is logged in makes it and changes it; the other switches hold it through the same `Arc` when
/// they live in one process, so a fabric stores each object once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NsEntry {
    /// Address; its domain is the owner of the object.
    pub port_id: FcId,
    /// Port type (see [`sanloom_wire::ns::port_type`]).
    pub port_type: u8,
    /// FC-4 features of FCP, one nibble (see [`fcp_feature`]).
    pub fcp_features: u8,
    /// The port has not taken itself out of the name server with DA_ID. Zoning and forwarding know it all the same.
    pub listed: bool,
    /// Classes of service, bit n for class n.
    pub classes: u32,
    /// Port name.
    pub port_name: Wwpn,
    /// Node name.
    pub node_name: Wwnn,
    /// Name of the F_Port.
    pub fabric_port_name: Wwpn,
    /// FC-4 types.
    pub types: Fc4Types,
    /// When the port logged in: of two ports with one name that decides who stays.
    pub logged_in_at: Instant,
    /// What few ports register.
    pub extra: Option<Box<NsExtra>>,
}

/// A fabric of 65 switches that each hold 1,024 objects must stay small even where objects are not shared.
const _: () = assert!(size_of::<NsEntry>() <= 120);

/// The parts of an object that take memory only where they are registered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NsExtra {
    /// Symbolic port name, at most 255 bytes.
    pub symbolic_port_name: Box<[u8]>,
    /// Symbolic node name, at most 255 bytes.
    pub symbolic_node_name: Box<[u8]>,
    /// Features of other FC-4 types than FCP: type and nibble, sorted by type.
    pub features: Vec<(u8, u8)>,
    /// What hardly any port registers.
    pub rare: Option<Box<NsRare>>,
}

/// Attributes from the time of loops and of IP over Fibre Channel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NsRare {
    /// Address that the port would like on a loop, zero where none is registered.
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

/// FC-4 descriptors that the name server keeps of one port.
pub const MAX_DESCRIPTORS: usize = 8;

impl NsEntry {
    /// The port as zones see it. The number of its switch port is taken from the name of the F_Port.
    pub fn identity(&self) -> PortIdentity {
        PortIdentity {
            port_id: self.port_id,
            port_name: self.port_name,
            node_name: self.node_name,
            domain: self.port_id.domain(),
            port: port_number(self.fabric_port_name).unwrap_or(PortIdentity::NO_PORT),
        }
    }

    /// The port supports the FC-4 type.
    pub fn has_type(&self, fc4_type: u8) -> bool {
        has_type(&self.types, fc4_type)
    }

    /// Feature nibble of an FC-4 type, zero where none is registered.
    pub fn features_of(&self, fc4_type: u8) -> u8 {
        if fc4_type == FcType::FCP.0 {
            return self.fcp_features;
        }
        let others = self.extra.as_ref().map_or(&[][..], |extra| &extra.features);
        others.iter().find(|(of, _)| *of == fc4_type).map_or(0, |(_, bits)| *bits)
    }

    /// The port is an FCP target.
    pub fn is_target(&self) -> bool {
        self.fcp_features & fcp_feature::TARGET != 0
    }

    /// Symbolic port name, empty where none is registered.
    pub fn symbolic_port_name(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.symbolic_port_name)
    }

    /// Symbolic node name, empty where none is registered through this port.
    pub fn symbolic_node_name(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |extra| &extra.symbolic_node_name)
    }

    /// What hardly any port registers; nothing of it where nothing is registered.
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

    /// Orders ports with one name by age, and no two alike.
    pub(super) fn precedence(&self) -> (Instant, FcId) {
        (self.logged_in_at, self.port_id)
    }

    /// All features as GFF_ID returns them.
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
        self.tidy();
    }

    pub(super) fn set_symbolic_port_name(&mut self, name: &[u8]) {
        if name != self.symbolic_port_name() {
            self.extra.get_or_insert_default().symbolic_port_name = name.into();
            self.tidy();
        }
    }

    pub(super) fn set_symbolic_node_name(&mut self, name: &[u8]) {
        if name != self.symbolic_node_name() {
            self.extra.get_or_insert_default().symbolic_node_name = name.into();
            self.tidy();
        }
    }

    pub(super) fn set_rare(&mut self, change: impl FnOnce(&mut NsRare)) {
        let extra = self.extra.get_or_insert_default();
        change(extra.rare.get_or_insert_default());
        if extra.rare.as_deref() == Some(&NsRare::default()) {
            extra.rare = None;
        }
        self.tidy();
    }

    /// Takes away everything that the port registered; what its login said stays.
    pub(super) fn deregister(&mut self) {
        self.listed = false;
        self.types = [0; 8];
        self.fcp_features = 0;
        self.extra = None;
    }

    /// A change from `self` to `new` that other ports are told of: what they find by discovery, not the names.
    pub(super) fn differs_for_discovery(&self, new: &NsEntry) -> bool {
        let features = |entry: &NsEntry| entry.extra.as_ref().map(|e| e.features.clone()).unwrap_or_default();
        self.types != new.types
            || self.fcp_features != new.fcp_features
            || self.listed != new.listed
            || self.port_name != new.port_name
            || features(self) != features(new)
    }

    /// As GA_NXT returns it.
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

    fn tidy(&mut self) {
        if self.extra.as_deref() == Some(&NsExtra::default()) {
            self.extra = None;
        }
    }
}
