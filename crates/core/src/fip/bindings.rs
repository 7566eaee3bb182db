//! Which frames may enter through a virtual link, and where frames leave to: [`Bindings`].

use sanloom_wire::FcId;
use sanloom_wire::ether::{FcMap, MacAddr};
use std::collections::BTreeMap;

/// One change of the table. A [`Fcf`](super::fcf::Fcf) says it before it says what depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BindingChange {
    /// The N_Port_ID, with its fabric-provided address, is behind this port of the switch.
    Bind {
        /// An FC_ID of the switch's domain.
        port_id: FcId,
        /// Port of the switch.
        port: u16,
    },
    /// It is behind none.
    Unbind {
        /// The FC_ID.
        port_id: FcId,
    },
    /// The FCF at this address is at the other end of this port of the switch.
    Join {
        /// Its address.
        mac: MacAddr,
        /// Port of the switch.
        port: u16,
    },
    /// It is not any more.
    Part {
        /// Its address.
        mac: MacAddr,
    },
}

/// What a received FCoE frame is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ingress {
    /// It comes in through this port of the switch.
    Port(u16),
    /// Not addressed to this FCF.
    NotForUs,
    /// A login as it was before FIP, which this FCF does not answer.
    PreFip,
    /// The source address is that of no virtual link.
    UnknownSource,
    /// S_ID and source address do not belong together, or to a login.
    Spoofed,
}

impl Ingress {
    /// A name for counters, lower case with underscores.
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

/// The virtual links of one FCF, for the path that every frame takes: two table accesses, no search.
///
/// Drivers that forward on several threads give each a copy and feed all of them the same [`BindingChange`]s.
#[derive(Clone, Debug)]
pub struct Bindings {
    mac: MacAddr,
    fc_map: FcMap,
    /// The domain of the ids that are bound; they are all of one.
    domain: u8,
    /// Ports by area and port of the id, one page for each area that has any.
    pages: Vec<Option<Box<Page>>>,
    peers: BTreeMap<MacAddr, u16>,
    /// Other ends by port.
    peer_of: BTreeMap<u16, MacAddr>,
}

#[derive(Clone, Debug)]
struct Page {
    ports: [u16; 256],
    bound: u16,
}

/// No port: none of a switch has this number.
const NONE: u16 = u16::MAX;

impl Bindings {
    /// Of an FCF without a virtual link.
    pub fn new(mac: MacAddr, fc_map: FcMap) -> Bindings {
        Bindings { mac, fc_map, domain: 0, pages: vec![None; 256], peers: BTreeMap::new(), peer_of: BTreeMap::new() }
    }

    /// Puts a change in force.
    pub fn apply(&mut self, change: BindingChange) {
        match change {
            BindingChange::Bind { port_id, port } => {
                if self.domain != port_id.domain() {
                    self.pages.fill(None);
                    self.domain = port_id.domain();
                }
                let page = self.pages[usize::from(port_id.area())]
                    .get_or_insert_with(|| Box::new(Page { ports: [NONE; 256], bound: 0 }));
                let place = &mut page.ports[usize::from(port_id.port())];
                page.bound += u16::from(*place == NONE);
                *place = port;
            }
            BindingChange::Unbind { port_id } => {
                if self.domain != port_id.domain() {
                    return;
                }
                let slot = &mut self.pages[usize::from(port_id.area())];
                if let Some(page) = slot {
                    let place = &mut page.ports[usize::from(port_id.port())];
                    page.bound -= u16::from(*place != NONE);
                    *place = NONE;
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

    /// Judges a received FCoE frame by its addresses.
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

    /// The port that an N_Port_ID is behind.
    pub fn port_of(&self, id: FcId) -> Option<u16> {
        let page = self.pages[usize::from(id.area())].as_ref().filter(|_| id.domain() == self.domain)?;
        Some(page.ports[usize::from(id.port())]).filter(|port| *port != NONE)
    }

    /// Where a frame goes that leaves through this port to this D_ID: to the FCF at its other end, or to the VN_Port.
    pub fn egress(&self, port: u16, d_id: FcId) -> MacAddr {
        self.peer_of.get(&port).copied().unwrap_or(MacAddr::fpma(self.fc_map, d_id))
    }

    /// Source of every FCoE frame that leaves.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Memory that grows with the logins, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.pages.iter().flatten().count() * size_of::<Page>()
    }
}
