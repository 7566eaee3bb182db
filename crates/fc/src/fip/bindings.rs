//! Virtual-link check of received FCoE frames, and destination MAC address of sent ones:
//! [`Bindings`].

use sanloom_wire::FcId;
use sanloom_wire::ether::{FcMap, MacAddr};
use std::collections::BTreeMap;

/// Change of the table. A [`Fcf`](super::fcf::Fcf) emits it before the outputs that depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BindingChange {
    /// The N_Port_ID with its fabric-provided MAC address is attached to this switch port.
    Bind {
        /// N_Port_ID of the switch's domain.
        port_id: FcId,
        /// Switch port number.
        port: u16,
    },
    /// The N_Port_ID is no longer attached.
    Unbind {
        /// N_Port_ID that was bound.
        port_id: FcId,
    },
    /// The FCF with this MAC address is at the other end of this switch port.
    Join {
        /// MAC address of the other FCF.
        mac: MacAddr,
        /// Switch port number.
        port: u16,
    },
    /// The FCF is no longer attached.
    Part {
        /// MAC address of the other FCF.
        mac: MacAddr,
    },
}

/// Classification of a received FCoE frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ingress {
    /// Accepted; the frame enters through this switch port.
    Port(u16),
    /// Not addressed to this FCF.
    NotForUs,
    /// Pre-FIP login, which this FCF does not answer.
    PreFip,
    /// The source address belongs to no virtual link.
    UnknownSource,
    /// S_ID and source address do not match each other or a login.
    Spoofed,
}

impl Ingress {
    /// Name for counters, lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Ingress::Port(_) => "taken",
            Ingress::NotForUs => "not_for_us",
            Ingress::PreFip => "pre_fip",
            Ingress::UnknownSource => "unknown_source",
            Ingress::Spoofed => "spoofed",
        }
    }
}

/// Virtual links of one FCF, for the data path: two table reads per frame, no search.
///
/// Drivers that forward on several threads give each thread a copy, and apply the same
/// [`BindingChange`]s to all copies.
#[derive(Clone, Debug)]
pub struct Bindings {
    mac: MacAddr,
    fc_map: FcMap,
    /// Common domain of all bound N_Port_IDs.
    domain: u8,
    /// Switch ports by area and port byte of the N_Port_ID; one page for each area in use.
    pages: Vec<Option<Box<Page>>>,
    peers: BTreeMap<MacAddr, u16>,
    /// MAC addresses of other FCFs by switch port.
    peer_of: BTreeMap<u16, MacAddr>,
}

#[derive(Clone, Debug)]
struct Page {
    ports: [u16; 256],
    bound: u16,
}

/// Marks a free entry; no switch port has this number.
const NONE: u16 = u16::MAX;

impl Bindings {
    /// Returns the table of an FCF without virtual links.
    pub fn new(mac: MacAddr, fc_map: FcMap) -> Bindings {
        Bindings { mac, fc_map, domain: 0, pages: vec![None; 256], peers: BTreeMap::new(), peer_of: BTreeMap::new() }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: BindingChange) {
        match change {
            BindingChange::Bind { port_id, port } => {
                if self.domain != port_id.domain() {
                    self.pages.fill(None);
                    self.domain = port_id.domain();
                }
                let page = self.pages[usize::from(port_id.area())]
                    .get_or_insert_with(|| Box::new(Page { ports: [NONE; 256], bound: 0 }));
                let entry = &mut page.ports[usize::from(port_id.port())];
                page.bound += u16::from(*entry == NONE);
                *entry = port;
            }
            BindingChange::Unbind { port_id } => {
                if self.domain != port_id.domain() {
                    return;
                }
                let slot = &mut self.pages[usize::from(port_id.area())];
                if let Some(page) = slot {
                    let entry = &mut page.ports[usize::from(port_id.port())];
                    page.bound -= u16::from(*entry != NONE);
                    *entry = NONE;
                    if page.bound == 0 {
                        *slot = None;
                    }
                }
            }
            BindingChange::Join { mac, port } => {
                self.peers.insert(mac, port);
                self.peer_of.insert(port, mac);
            }
            BindingChange::Part { mac } => {
                if let Some(port) = self.peers.remove(&mac) {
                    self.peer_of.remove(&port);
                }
            }
        }
    }

    /// Classifies a received FCoE frame by its addresses.
    pub fn ingress(&self, to: MacAddr, from: MacAddr, s_id: FcId) -> Ingress {
        if to != self.mac {
            return if to == MacAddr::PRE_FIP_FCF { Ingress::PreFip } else { Ingress::NotForUs };
        }
        if from.fc_map() == self.fc_map {
            return match self.port_of(s_id) {
                Some(port) if from.fc_id() == s_id => Ingress::Port(port),
                _ => Ingress::Spoofed,
            };
        }
        self.peers.get(&from).map_or(Ingress::UnknownSource, |port| Ingress::Port(*port))
    }

    /// Switch port to which an N_Port_ID is attached.
    pub fn port_of(&self, id: FcId) -> Option<u16> {
        let page = self.pages[usize::from(id.area())].as_ref().filter(|_| id.domain() == self.domain)?;
        Some(page.ports[usize::from(id.port())]).filter(|port| *port != NONE)
    }

    /// Destination MAC address of a frame that leaves through this port with this D_ID: the FCF at
    /// the other end, or the VN_Port.
    pub fn egress(&self, port: u16, d_id: FcId) -> MacAddr {
        self.peer_of.get(&port).copied().unwrap_or(MacAddr::fpma(self.fc_map, d_id))
    }

    /// Source MAC address of every FCoE frame sent.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Memory that grows with the number of logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.pages.iter().flatten().count() * size_of::<Page>()
    }
}
