//! A switch while it runs: its machines, its forwarding table, and what its ports are attached to.

use super::zones::SwitchZones;
use crate::sequence::Reassembly;
use sanloom_core::fabric::{Egress, Fib, Leg};
use sanloom_core::fabric_switch::FabricSwitch;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;

/// What is at a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// Nothing.
    Nothing,
    /// An Ethernet segment, by index.
    Segment(usize),
    /// A port of a storage system of this process.
    Storage {
        /// Index of the system.
        system: usize,
        /// Its port.
        port: u16,
    },
    /// A host port of the instance, by index: it logs in for its back ends.
    Host(usize),
    /// A port of another switch of this process.
    Cable {
        /// Index of the switch.
        switch: usize,
        /// Its port.
        port: u16,
    },
}

/// A switch.
#[derive(Debug)]
pub struct LiveSwitch {
    /// Name in the lab.
    pub name: String,
    /// Services and what joins it with others.
    pub machine: FabricSwitch,
    /// One decision for each frame.
    pub fib: Fib,
    /// By port.
    pub attachments: Vec<Attachment>,
    /// Messages to its services that come in several frames.
    pub reassembly: Reassembly,
    /// Frames from inside the process that were dropped, by reason; others are counted at their Ethernet port.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames that were forwarded.
    pub forwarded: u64,
    /// Ports of each bundle.
    pub bundles: BTreeMap<u16, Vec<u16>>,
    /// What operators do with its zones.
    pub zones: SwitchZones,
    /// Learned addresses that the store could not keep.
    pub unkept_addresses: BTreeMap<Wwpn, FcId>,
    /// The next member of a bundle or spray group.
    turn: usize,
}

impl LiveSwitch {
    /// A switch whose ports are all down.
    pub fn new(
        name: &str,
        machine: FabricSwitch,
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
            bundles,
            zones: SwitchZones::default(),
            unkept_addresses: BTreeMap::new(),
            turn: 0,
        }
    }

    /// What is at a port.
    pub fn attachment(&self, port: u16) -> Attachment {
        self.attachments.get(usize::from(port)).copied().unwrap_or(Attachment::Nothing)
    }

    /// The port that a frame leaves through. Members of a bundle are taken by exchange, so that frames of one stay in order.
    pub fn port_of(&mut self, ingress: u16, egress: Egress, ox_id: u16) -> Option<u16> {
        match egress {
            Egress::Port(port) => Some(port),
            Egress::Bundle(bundle) => {
                let members = self.bundles.get(&bundle)?;
                members.get(usize::from(ox_id) % members.len().max(1)).copied()
            }
            Egress::Spray(group) => {
                let legs = self.fib.spray_members(group);
                let mut turns = (1..=2).map(|turn| self.turn.wrapping_add(turn) % legs.len().max(1));
                let turn = turns.find(|turn| legs.get(*turn).is_some_and(|leg| !self.fib.leads_back(ingress, *leg)))?;
                self.turn = turn;
                match legs[turn] {
                    Leg::Port(port) => Some(port),
                    Leg::Bundle(bundle) => self.port_of(ingress, Egress::Bundle(bundle), ox_id),
                }
            }
        }
    }
}
