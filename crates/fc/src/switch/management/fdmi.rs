//! Host bus adapters registered by their ports: [`Fdmi`] (FC-GS, HBA management service).
//!
//! An entry belongs to the port that registered it and is removed when that port logs out of the
//! fabric. A port registers for itself and for the ports of an adapter that it registered. A
//! virtual port adds itself to the adapter behind its F_Port. Therefore each adapter has one owner,
//! and no port changes the entries of another. Adapters of other switches are not known here.

use sanloom_wire::ct::CtReject;
use sanloom_wire::fdmi::{Attribute, Attributes, FdmiAccept, FdmiRequest, explanation};
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of adapters that one port may register.
const MAX_HBAS: usize = 2;
/// Maximum number of ports whose attributes one port may register; virtual ports register their
/// own.
const MAX_OWN_PORTS: usize = 16;
/// Maximum number of ports of an adapter, physical and virtual.
const MAX_PORTS: usize = 256;
/// Maximum length of an attribute block, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// All registered adapters and ports.
#[derive(Debug, Default)]
pub(super) struct Fdmi {
    hbas: BTreeMap<Wwpn, Hba>,
    ports: BTreeMap<Wwpn, Port>,
    owned: BTreeMap<FcId, Owned>,
}

/// A registered adapter with its ports.
#[derive(Clone, Debug)]
pub struct RegisteredAdapter<'a> {
    /// Name of the adapter.
    pub hba: Wwpn,
    /// Attributes of the adapter.
    pub attributes: &'a [Attribute],
    /// Its ports with their attributes; empty for a port that has registered none. Ports that are
    /// registered with another adapter are not among them.
    pub ports: Vec<(Wwpn, &'a [Attribute])>,
}

#[derive(Debug)]
struct Hba {
    owner: FcId,
    ports: BTreeSet<Wwpn>,
    attributes: Attributes,
}

#[derive(Debug)]
struct Port {
    owner: FcId,
    hba: Wwpn,
    attributes: Attributes,
}

/// Names of the adapters and ports that one port registered.
#[derive(Debug, Default)]
struct Owned {
    hbas: BTreeSet<Wwpn>,
    ports: BTreeSet<Wwpn>,
}

impl Fdmi {
    /// Returns the registered adapters in the order of their names.
    pub(super) fn adapters(&self) -> impl Iterator<Item = RegisteredAdapter<'_>> {
        self.hbas.iter().map(|(name, hba)| {
            // A port may be listed by the owner of one adapter and registered with another.
            let port = |port: &Wwpn| match self.ports.get(port) {
                Some(known) if known.hba != *name => None,
                known => Some((*port, known.map_or(&[][..], |known| &known.attributes))),
            };
            let ports = hba.ports.iter().filter_map(port).collect();
            RegisteredAdapter { hba: *name, attributes: &hba.attributes, ports }
        })
    }

    /// Removes everything that a port registered.
    pub(super) fn deregister(&mut self, id: FcId) {
        if let Some(owned) = self.owned.remove(&id) {
            owned.hbas.into_iter().for_each(|hba| self.remove_hba(hba));
            owned.ports.into_iter().for_each(|port| _ = self.remove_port(port));
        }
    }

    /// Handles a request of the port `id` with the name `own_name`. `at_same_port` returns true for
    /// an N_Port_ID that is logged in at the F_Port of `id`.
    pub(super) fn request(
        &mut self,
        id: FcId,
        own_name: Option<Wwpn>,
        at_same_port: impl Fn(FcId) -> bool,
        request: &FdmiRequest,
    ) -> Result<FdmiAccept, CtReject> {
        use explanation::*;
        match request {
            FdmiRequest::Grhl {} if self.hbas.is_empty() => return Err(CtReject::unable(HBA_NOT_REGISTERED)),
            FdmiRequest::Grhl {} => return Ok(FdmiAccept::Names(self.hbas.keys().copied().collect())),
            FdmiRequest::Ghat { hba } => {
                let found = self.hbas.get(hba).ok_or(CtReject::unable(HBA_NOT_REGISTERED))?;
                let (ports, attributes) = (found.ports.iter().copied().collect(), found.attributes.clone());
                return Ok(FdmiAccept::Hba { ports, attributes });
            }
            FdmiRequest::Grpl { hba } => {
                let found = self.hbas.get(hba).ok_or(CtReject::unable(HBA_NOT_REGISTERED))?;
                return Ok(FdmiAccept::Names(found.ports.iter().copied().collect()));
            }
            FdmiRequest::Gpat { port } => {
                let found = self.ports.get(port).ok_or(CtReject::unable(PORT_NOT_REGISTERED))?;
                return Ok(FdmiAccept::Port(found.attributes.clone()));
            }
            FdmiRequest::Rhba { hba, ports, attributes } => self.register_hba(id, own_name, *hba, ports, attributes)?,
            FdmiRequest::Rhat { hba, attributes } => {
                check(attributes, DUPLICATE_HBA_ATTRIBUTE)?;
                self.own_hba(id, *hba)?.attributes.clone_from(attributes);
            }
            FdmiRequest::Rprt { hba, port, attributes } => {
                let owner = self.hbas.get(hba).map(|hba| hba.owner);
                if owner.is_some_and(|owner| !at_same_port(owner)) {
                    return Err(CtReject::unable(AUTHORIZATION));
                }
                self.register_port(id, own_name, *hba, *port, attributes)?;
            }
            FdmiRequest::Rpa { port, attributes } => {
                let hba = self.hba_of(id, *port)?;
                self.register_port(id, own_name, hba, *port, attributes)?;
            }
            FdmiRequest::Dhba { hba } => {
                self.own_hba(id, *hba)?;
                self.remove_hba(*hba);
            }
            FdmiRequest::Dhat { hba } => self.own_hba(id, *hba)?.attributes.clear(),
            FdmiRequest::Dprt { port } => {
                let hba = self.hba_of(id, *port)?;
                if !self.remove_port(*port) {
                    self.own_hba(id, hba)?.ports.remove(port);
                }
            }
            FdmiRequest::Dpa { port } => {
                let hba = self.hba_of(id, *port)?;
                if self.ports.contains_key(port) {
                    self.register_port(id, own_name, hba, *port, &Attributes::new())?;
                }
            }
        }
        Ok(FdmiAccept::Empty)
    }

    /// Returns the adapter if the port `id` owns it.
    fn own_hba(&mut self, id: FcId, hba: Wwpn) -> Result<&mut Hba, CtReject> {
        let found = self.hbas.get_mut(&hba).ok_or(CtReject::unable(explanation::HBA_NOT_REGISTERED))?;
        if found.owner == id { Ok(found) } else { Err(CtReject::unable(explanation::AUTHORIZATION)) }
    }

    /// Returns the adapter of a port, if the port `id` may change it. It may if it registered the
    /// port or the adapter.
    fn hba_of(&self, id: FcId, port: Wwpn) -> Result<Wwpn, CtReject> {
        let known = self.ports.get(&port);
        if let Some(known) = known.filter(|known| known.owner == id) {
            return Ok(known.hba);
        }
        let owned = self.owned.get(&id).into_iter().flat_map(|owned| &owned.hbas);
        let lists = |hba: &&Wwpn| self.hbas.get(*hba).is_some_and(|hba| hba.ports.contains(&port));
        let why = if known.is_some() { explanation::AUTHORIZATION } else { explanation::PORT_NOT_REGISTERED };
        owned.copied().find(|hba| lists(&hba)).ok_or(CtReject::unable(why))
    }

    /// Registers or re-registers an adapter. `own_name` is the name of the registering port.
    fn register_hba(
        &mut self,
        id: FcId,
        own_name: Option<Wwpn>,
        hba: Wwpn,
        ports: &[Wwpn],
        attributes: &Attributes,
    ) -> Result<(), CtReject> {
        check(attributes, explanation::DUPLICATE_HBA_ATTRIBUTE)?;
        let owned = self.owned.get(&id).map_or(0, |owned| owned.hbas.len());
        match self.hbas.get(&hba) {
            // A port may always register the adapter with its own name.
            Some(known) if known.owner != id && own_name != Some(hba) => {
                return Err(CtReject::unable(explanation::AUTHORIZATION));
            }
            None if owned >= MAX_HBAS => return Err(CtReject::unable(explanation::DATABASE_FULL)),
            _ if ports.len() > MAX_PORTS => return Err(CtReject::unable(explanation::DATABASE_FULL)),
            Some(_) => self.remove_hba(hba),
            None => {}
        }
        let entry = Hba { owner: id, ports: ports.iter().copied().collect(), attributes: attributes.clone() };
        self.hbas.insert(hba, entry);
        self.owned.entry(id).or_default().hbas.insert(hba);
        Ok(())
    }

    /// Adds a port with its attributes to an adapter. `own_name` is the name of the registering
    /// port.
    fn register_port(
        &mut self,
        id: FcId,
        own_name: Option<Wwpn>,
        hba: Wwpn,
        port: Wwpn,
        attributes: &Attributes,
    ) -> Result<(), CtReject> {
        check(attributes, explanation::DUPLICATE_PORT_ATTRIBUTE)?;
        let entry = self.hbas.get(&hba).ok_or(CtReject::unable(explanation::HBA_NOT_REGISTERED))?;
        if own_name != Some(port) && entry.owner != id {
            return Err(CtReject::unable(explanation::AUTHORIZATION));
        }
        if !entry.ports.contains(&port) && entry.ports.len() >= MAX_PORTS {
            return Err(CtReject::unable(explanation::DATABASE_FULL));
        }
        match self.ports.get(&port) {
            Some(known) if known.owner != id && own_name != Some(port) => {
                return Err(CtReject::unable(explanation::AUTHORIZATION));
            }
            Some(known) if known.owner == id => _ = self.remove_port(port),
            _ if self.owned.get(&id).is_some_and(|owned| owned.ports.len() >= MAX_OWN_PORTS) => {
                return Err(CtReject::unable(explanation::DATABASE_FULL));
            }
            Some(_) => _ = self.remove_port(port),
            None => {}
        }
        self.ports.insert(port, Port { owner: id, hba, attributes: attributes.clone() });
        self.owned.entry(id).or_default().ports.insert(port);
        if let Some(entry) = self.hbas.get_mut(&hba) {
            entry.ports.insert(port);
        }
        Ok(())
    }

    /// Removes an adapter and the registrations of its ports.
    fn remove_hba(&mut self, hba: Wwpn) {
        let Some(entry) = self.hbas.remove(&hba) else {
            return;
        };
        self.disown(entry.owner, |owned| owned.hbas.remove(&hba));
        for port in entry.ports {
            if self.ports.get(&port).is_some_and(|known| known.hba == hba) {
                self.remove_port(port);
            }
        }
    }

    /// Removes the registration of a port. Returns false if there is none.
    fn remove_port(&mut self, port: Wwpn) -> bool {
        let Some(known) = self.ports.remove(&port) else {
            return false;
        };
        self.disown(known.owner, |owned| owned.ports.remove(&port));
        if let Some(hba) = self.hbas.get_mut(&known.hba) {
            hba.ports.remove(&port);
        }
        true
    }

    fn disown(&mut self, owner: FcId, remove: impl FnOnce(&mut Owned) -> bool) {
        if let Some(owned) = self.owned.get_mut(&owner) {
            remove(owned);
            if owned.hbas.is_empty() && owned.ports.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }
}

/// Rejects an attribute block that contains an attribute twice or is too long to store.
fn check(attributes: &Attributes, duplicate: u8) -> Result<(), CtReject> {
    let kinds: BTreeSet<u16> = attributes.iter().map(|attribute| attribute.attribute).collect();
    if kinds.len() != attributes.len() {
        return Err(CtReject::unable(duplicate));
    }
    let bytes: usize = attributes.iter().map(|attribute| 4 + attribute.value.len()).sum();
    if bytes > MAX_ATTRIBUTE_BYTES { Err(CtReject::unable(explanation::DATABASE_FULL)) } else { Ok(()) }
}
