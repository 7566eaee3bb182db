//! Objects of the name server as switches store them: [`NsRecord`].

use crate::header::FcType;
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{
    Entry, EntryFc4, Fc4Descriptors, Fc4Types, IpAddress, NsObject, ProcessAssociator, fcp_feature, feature, has_type,
    port_type, set_feature,
};

/// Object of the name server, without the attributes that no port registered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NsRecord {
    /// N_Port_ID; its domain identifies the switch that owns the object.
    pub port_id: FcId,
    /// Port type (see [`port_type`]).
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
    /// Attributes that few ports register.
    pub extra: Option<Box<NsExtra>>,
}

/// The limit keeps a fabric of 65 switches with 1,024 objects each small even if objects are not
/// shared.
const _: () = assert!(size_of::<NsRecord>() <= 112);

/// Attributes that take memory only if they are registered.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
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
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NsRare {
    /// Loop address that the port requests; zero if none is registered.
    pub hard_address: FcId,
    /// IP address of the port.
    pub port_ip: IpAddress,
    /// IP address of the node.
    pub node_ip: IpAddress,
    /// Initial process associator of the node.
    pub process_associator: ProcessAssociator,
    /// FC-4 descriptors, sorted by type.
    pub descriptors: Fc4Descriptors,
}

impl NsRecord {
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

    /// All FC-4 features in the format of GFF_ID.
    pub fn feature_map(&self) -> Box<[u8; 128]> {
        let mut map = Box::new([0; 128]);
        set_feature(&mut map, FcType::FCP.0, self.fcp_features);
        for &(fc4_type, bits) in self.extra.iter().flat_map(|extra| &extra.features) {
            set_feature(&mut map, fc4_type, bits);
        }
        map
    }

    /// Sets the feature nibble of an FC-4 type to the low four bits of `bits`.
    pub fn set_features(&mut self, fc4_type: u8, bits: u8) {
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

    /// Sets the symbolic port name.
    pub fn set_symbolic_port_name(&mut self, name: &[u8]) {
        if name != self.symbolic_port_name() {
            self.extra.get_or_insert_default().symbolic_port_name = name.into();
            self.drop_empty_extra();
        }
    }

    /// Sets the symbolic node name.
    pub fn set_symbolic_node_name(&mut self, name: &[u8]) {
        if name != self.symbolic_node_name() {
            self.extra.get_or_insert_default().symbolic_node_name = name.into();
            self.drop_empty_extra();
        }
    }

    /// Changes attributes of arbitrated loops and of IP over Fibre Channel.
    pub fn set_rare(&mut self, change: impl FnOnce(&mut NsRare)) {
        let extra = self.extra.get_or_insert_default();
        change(extra.rare.get_or_insert_default());
        if extra.rare.as_deref() == Some(&NsRare::default()) {
            extra.rare = None;
        }
        self.drop_empty_extra();
    }

    /// Object in the format of GA_NXT.
    pub fn to_object(&self, symbolic_node_name: &[u8]) -> NsObject {
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

impl From<&NsRecord> for Entry {
    /// A port that removed itself from the name server has the port type "unknown" for other
    /// switches.
    fn from(record: &NsRecord) -> Entry {
        let rare = record.rare();
        let first = rare.descriptors.first();
        let features = record.feature_map();
        let fc4 = (first.is_some() || features.iter().any(|bits| *bits != 0)).then(|| {
            let (fc4_type, descriptor) = first.cloned().unwrap_or_default();
            let descriptors = u8::try_from(rare.descriptors.len()).unwrap_or(u8::MAX);
            Box::new(EntryFc4 { features: *features, fc4_type, descriptors, descriptor })
        });
        let object = record.to_object(record.symbolic_node_name());
        let port_type = if record.listed { record.port_type } else { port_type::UNKNOWN };
        let object = NsObject { port_type, ..object };
        Entry { owner: FcId::domain_controller(record.port_id.domain()), object, fc4 }
    }
}

impl From<Entry> for NsRecord {
    fn from(entry: Entry) -> NsRecord {
        let Entry { object, fc4, .. } = entry;
        let listed = object.port_type != port_type::UNKNOWN;
        let features = fc4.as_ref().map_or([0; 128], |fc4| fc4.features);
        let others = (0..=u8::MAX).filter(|fc4_type| *fc4_type != FcType::FCP.0);
        let others = others.map(|fc4_type| (fc4_type, feature(&features, fc4_type)));
        let descriptors = fc4.filter(|fc4| fc4.descriptors > 0).map(|fc4| (fc4.fc4_type, fc4.descriptor));
        let rare = NsRare {
            hard_address: object.hard_address,
            port_ip: object.port_ip,
            node_ip: object.node_ip,
            process_associator: object.process_associator,
            descriptors: descriptors.into_iter().collect(),
        };
        let extra = NsExtra {
            symbolic_port_name: object.symbolic_port_name,
            symbolic_node_name: object.symbolic_node_name,
            features: others.filter(|(_, bits)| *bits != 0).collect(),
            rare: (rare != NsRare::default()).then(|| Box::new(rare)),
        };
        NsRecord {
            port_id: object.port_id,
            port_type: if listed { object.port_type } else { port_type::N_PORT },
            fcp_features: feature(&features, FcType::FCP.0),
            listed,
            classes: object.classes,
            port_name: object.port_name,
            node_name: object.node_name,
            fabric_port_name: object.fabric_port_name,
            types: object.types,
            extra: (extra != NsExtra::default()).then(|| Box::new(extra)),
        }
    }
}
