//! A running switch: [`LiveSwitch`] with its machines, its forwarding table, and the attachments of
//! its ports.

use crate::driven::Driven;
use crate::runtime::operations::zones::SwitchZones;
use crate::sequence::Reassembly;
use sanloom_fc::fabric::{Egress, Fib, Leg};
use sanloom_fc::fabric_switch::FabricSwitch;
use sanloom_wire::{FcId, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

/// The other end of a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// Nothing.
    Nothing,
    /// An Ethernet segment, by index.
    Segment(usize),
    /// An FCIP link, by index of its port.
    Tunnel(usize),
    /// A port of a storage system of this process.
    Storage {
        /// Index of the system.
        system: usize,
        /// Its port.
        port: u16,
    },
    /// A host port of the instance, by index, which logs in to reach back ends.
    Host(usize),
    /// A port of another switch of this process.
    Cable {
        /// Index of the switch.
        switch: usize,
        /// Its port.
        port: u16,
    },
}

/// Traffic of a port without Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InnerTraffic {
    /// Received frames.
    pub received: u64,
    /// Sent frames.
    pub sent: u64,
}

/// A switch.
#[derive(Debug)]
pub struct LiveSwitch {
    /// Name in the lab.
    pub name: String,
    /// Services, and protocols between switches.
    pub machine: Driven<FabricSwitch>,
    /// The forwarding table.
    pub fib: Fib,
    /// The other end of each port.
    pub attachments: Vec<Attachment>,
    /// Reassembly of multi-frame messages to its services.
    pub reassembly: Reassembly,
    /// Dropped frames from inside the process, by reason. Frames from Ethernet are counted at their
    /// port.
    pub drops: BTreeMap<&'static str, u64>,
    /// Number of forwarded frames.
    pub forwarded: u64,
    /// Traffic of each inner port. Ethernet ports have their own counters.
    inner: Vec<InnerTraffic>,
    /// Ports of each bundle.
    pub bundles: BTreeMap<u16, Vec<u16>>,
    /// Transaction and committed zones.
    pub zones: SwitchZones,
    /// Ports that an operator has disabled, also while their switch is disabled. An Ethernet port
    /// for several hosts has the number of its port in the lab.
    pub disabled: BTreeSet<u16>,
    /// An operator has disabled the switch.
    pub off: bool,
    /// Times that the peer of an Ethernet or FCIP port disappeared while the port was enabled, by
    /// port; absent: 0.
    pub failures: BTreeMap<u16, u64>,
    /// Learned addresses that could not be stored.
    pub unkept_addresses: BTreeMap<Wwpn, FcId>,
    /// The spray leg of the last frame.
    last_leg: usize,
}

impl LiveSwitch {
    /// Returns a switch with all ports down.
    pub fn new(
        name: &str,
        machine: Driven<FabricSwitch>,
        fib: Fib,
        attachments: Vec<Attachment>,
        bundles: BTreeMap<u16, Vec<u16>>,
    ) -> LiveSwitch {
        LiveSwitch {
            name: name.to_owned(),
            machine,
            fib,
            attachments,
            reassembly: Reassembly::default(),
            drops: BTreeMap::new(),
            forwarded: 0,
            inner: Vec::new(),
            bundles,
            zones: SwitchZones::default(),
            disabled: BTreeSet::new(),
            off: false,
            failures: BTreeMap::new(),
            unkept_addresses: BTreeMap::new(),
            last_leg: 0,
        }
    }

    /// Returns whether a port is dark, because it or its switch is disabled.
    pub fn holds(&self, port: u16) -> bool {
        self.off || self.disabled.contains(&port)
    }

    /// The other end of a port.
    pub fn attachment(&self, port: u16) -> Attachment {
        self.attachments.get(usize::from(port)).copied().unwrap_or(Attachment::Nothing)
    }

    /// Counters of an inner port.
    pub fn inner(&self, port: u16) -> InnerTraffic {
        self.inner.get(usize::from(port)).copied().unwrap_or_default()
    }

    /// Mutable counters of an inner port.
    #[inline]
    pub fn inner_mut(&mut self, port: u16) -> &mut InnerTraffic {
        let port = usize::from(port);
        if self.inner.len() <= port {
            self.inner.resize(port + 1, InnerTraffic::default());
        }
        &mut self.inner[port]
    }

    /// Returns the egress port of a frame, unless frames take turns. Bundle members are selected by
    /// exchange, so that the frames of an exchange stay in order.
    #[inline]
    pub fn fixed_port_of(&self, egress: Egress, ox_id: u16) -> Option<u16> {
        match egress {
            Egress::Port(port) => Some(port),
            Egress::Bundle(bundle) => {
                let members = self.bundles.get(&bundle)?;
                members.get(usize::from(ox_id) % members.len().max(1)).copied()
            }
            Egress::Spray(_) => None,
        }
    }

    /// Returns the egress port of a frame.
    pub fn port_of(&mut self, ingress: u16, egress: Egress, ox_id: u16) -> Option<u16> {
        match egress {
            Egress::Port(_) | Egress::Bundle(_) => self.fixed_port_of(egress, ox_id),
            Egress::Spray(group) => {
                let legs = self.fib.spray_members(group);
                let mut next = (1..=2).map(|step| self.last_leg.wrapping_add(step) % legs.len().max(1));
                let number =
                    next.find(|number| legs.get(*number).is_some_and(|leg| !self.fib.leads_back(ingress, *leg)))?;
                self.last_leg = number;
                match legs[number] {
                    Leg::Port(port) => Some(port),
                    Leg::Bundle(bundle) => self.fixed_port_of(Egress::Bundle(bundle), ox_id),
                }
            }
        }
    }
}
