//! Name server entries that switches exchange (FC-SW, inter-switch name server): [`Entry`],
//! [`Entries`].

use crate::bytes::{Put, fixed, id_at, slice, u32_at, u64_at};
use crate::error::ParseError;
use crate::field::{DESCRIPTOR_BYTES, read_descriptor, write_descriptor};
use crate::id::{FcId, Wwnn, Wwpn};
use crate::ns::{NsObject, NsRecord, types_at};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A name server object and the switch that owns it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// Address of the owner's domain controller.
    pub owner: FcId,
    /// The object. If it has no symbolic names, the entry uses the short format.
    pub object: NsObject,
    /// FC-4 part, which only some formats have.
    pub fc4: Option<Box<EntryFc4>>,
}

/// The FC-4 part of an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EntryFc4 {
    /// FC-4 features, one nibble per type.
    pub features: [u8; 128],
    /// FC-4 type of `descriptor`.
    pub fc4_type: u8,
    /// Number of FC-4 descriptors that the port registered. The entry contains only one of them.
    pub descriptors: u8,
    /// The descriptor, at most 255 bytes.
    pub descriptor: Box<[u8]>,
}

/// Format flag: without symbolic names.
const SHORT: u8 = 0x01;
/// Format flag: with the FC-4 part.
const WITH_FC4: u8 = 0x02;
const FC4_BYTES: usize = 128 + 4 + DESCRIPTOR_BYTES;
/// Length of a symbolic name with its length byte, in bytes.
const NAME_BYTES: usize = 256;
const FIELD: &str = "name server entry";

impl Entry {
    fn is_short(&self) -> bool {
        self.object.symbolic_port_name.is_empty() && self.object.symbolic_node_name.is_empty()
    }

    /// Reads an entry at the start of `data`. Also returns its length in bytes.
    fn parse(data: &[u8]) -> Result<(Entry, usize), ParseError> {
        let head = fixed::<16>(FIELD, data)?;
        let mut at = head.len();
        let mut take = |bytes: usize| {
            let taken = slice(FIELD, data, at, bytes);
            at += bytes;
            taken
        };
        let format = head[0];
        let name = |take: &mut dyn FnMut(usize) -> Result<_, _>| -> Result<Box<[u8]>, ParseError> {
            match format & SHORT {
                0 => read_descriptor(take(NAME_BYTES)?),
                _ => Ok(Box::default()),
            }
        };
        let symbolic_port_name = name(&mut take)?;
        let node_name = Wwnn(u64_at(take(8)?, 0));
        let symbolic_node_name = name(&mut take)?;
        let b = take(88)?;
        let object = NsObject {
            port_type: head[4],
            port_id: id_at(head, 5),
            port_name: Wwpn(u64_at(head, 8)),
            symbolic_port_name,
            node_name,
            symbolic_node_name,
            process_associator: *fixed(FIELD, b)?,
            node_ip: *fixed(FIELD, &b[8..])?,
            classes: u32_at(b, 24),
            types: types_at(b, 28),
            port_ip: *fixed(FIELD, &b[60..])?,
            fabric_port_name: Wwpn(u64_at(b, 76)),
            hard_address: id_at(b, 85),
        };
        let fc4 = match format & WITH_FC4 {
            0 => None,
            _ => {
                let b = take(FC4_BYTES)?;
                let descriptor = read_descriptor(&b[132..])?;
                let features = *fixed(FIELD, b)?;
                Some(Box::new(EntryFc4 { features, fc4_type: b[128], descriptors: b[129], descriptor }))
            }
        };
        Ok((Entry { owner: id_at(head, 1), object, fc4 }, at))
    }

    fn emit(&self, out: &mut dyn Put) {
        let object = &self.object;
        let short = self.is_short();
        let format = if short { SHORT } else { 0 } | if self.fc4.is_some() { WITH_FC4 } else { 0 };
        out.put_word(format, self.owner);
        out.put_word(object.port_type, object.port_id);
        out.put_u64(object.port_name.0);
        if !short {
            write_descriptor(&object.symbolic_port_name, out);
        }
        out.put_u64(object.node_name.0);
        if !short {
            write_descriptor(&object.symbolic_node_name, out);
        }
        out.put_slice(&object.process_associator);
        out.put_slice(&object.node_ip);
        out.put_u32(object.classes);
        object.types.iter().for_each(|word| out.put_u32(*word));
        out.put_slice(&object.port_ip);
        out.put_u64(object.fabric_port_name.0);
        out.put_word(0, object.hard_address);
        if let Some(fc4) = &self.fc4 {
            out.put_slice(&fc4.features);
            out.put_slice(&[fc4.fc4_type, fc4.descriptors, 0, 0]);
            write_descriptor(&fc4.descriptor, out);
        }
    }
}

/// The entries of an accept. Clones share them.
#[derive(Clone, Debug)]
pub enum Entries {
    /// Entries as they were received, or as they are to be sent.
    Parsed(Arc<[Entry]>),
    /// Objects as a switch stores them. The switches of one process share them, so that they store
    /// the objects of a domain once. On a link, each object is encoded as an entry.
    Records(Arc<[Arc<NsRecord>]>),
}

impl Entries {
    /// Number of entries.
    pub fn count(&self) -> usize {
        match self {
            Entries::Parsed(entries) => entries.len(),
            Entries::Records(records) => records.len(),
        }
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Entry>> {
        (0..self.count()).map(|at| match self {
            Entries::Parsed(entries) => Cow::Borrowed(&entries[at]),
            Entries::Records(records) => Cow::Owned(Entry::from(&*records[at])),
        })
    }

    pub(super) fn parse(body: &[u8]) -> Result<Entries, ParseError> {
        let count = u32_at(fixed::<4>(FIELD, body)?, 0);
        let (mut entries, mut at) = (Vec::new(), 4);
        for _ in 0..count {
            let (entry, bytes) = Entry::parse(slice(FIELD, body, at, body.len() - at)?)?;
            entries.push(entry);
            at += bytes;
        }
        Ok(Entries::Parsed(entries.into()))
    }

    pub(super) fn emit(&self, out: &mut dyn Put) {
        out.put_len32(self.count());
        self.iter().for_each(|entry| entry.emit(out));
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Entries) -> bool {
        match (self, other) {
            (Entries::Records(own), Entries::Records(others)) if Arc::ptr_eq(own, others) => true,
            _ => self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Entries {}

impl Hash for Entries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|entry| entry.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_the_four_formats_has_its_layout() {
        let object = NsObject {
            port_type: 1,
            port_id: FcId::new(0x05_0102),
            port_name: Wwpn(0x1000_0000_c9aa_bbcc),
            fabric_port_name: Wwpn(0x2001_0000_c9aa_bbcc),
            ..NsObject::default()
        };
        let named = NsObject { symbolic_port_name: Box::new(*b"host"), ..object.clone() };
        let fc4 = EntryFc4 { features: [0; 128], fc4_type: 8, descriptors: 1, descriptor: Box::new([7, 8]) };
        let owner = FcId::domain_controller(5);
        let mut sizes = Vec::new();
        for (format, object, fc4) in [
            (0, &named, None),
            (1, &object, None),
            (2, &named, Some(Box::new(fc4.clone()))),
            (3, &object, Some(Box::new(fc4))),
        ] {
            let entry = Entry { owner, object: object.clone(), fc4 };
            let mut out = Vec::new();
            entry.emit(&mut out);
            assert_eq!(out[..16], [format, 0xff, 0xfc, 5, 1, 5, 1, 2, 0x10, 0, 0, 0, 0xc9, 0xaa, 0xbb, 0xcc]);
            assert_eq!(Entry::parse(&out), Ok((entry, out.len())));
            sizes.push(out.len());
        }
        assert_eq!(sizes, [624, 112, 1012, 500]);
    }

    #[test]
    fn records_are_encoded_as_entries_and_read_back_from_them() {
        let mut registered = NsRecord::from(Entry {
            owner: FcId::domain_controller(5),
            object: NsObject { port_type: 1, port_id: FcId::new(0x05_0102), port_name: Wwpn(7), ..NsObject::default() },
            fc4: None,
        });
        let plain = Arc::new(registered.clone());
        registered.listed = false;
        registered.set_features(8, 2);
        registered.set_features(0x20, 5);
        registered.set_symbolic_port_name(b"host");
        registered.set_rare(|rare| rare.descriptors = vec![(8, Box::new(*b"fcp"))]);
        let stored = vec![plain, Arc::new(registered)];
        let records = Entries::Records(stored.clone().into());
        let mut out = Vec::new();
        records.emit(&mut out);
        let parsed = Entries::parse(&out).unwrap();
        assert!(matches!(&parsed, Entries::Parsed(entries) if entries.len() == 2));
        assert_eq!(parsed, records);
        assert!(
            parsed.iter().map(|entry| NsRecord::from(entry.into_owned())).eq(stored.iter().map(|one| (**one).clone()))
        );
    }
}
