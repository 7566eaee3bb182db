//! Faults: what goes wrong, and when.

use super::Lab;
use super::fabric::Node;
use super::units::Picos;
use std::collections::BTreeSet;

/// One fault of a lab.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fault {
    /// When it begins, counted from the start of the workloads.
    pub at: Picos,
    /// When it ends by itself; `None`: it stays, or is a single event.
    pub until: Option<Picos>,
    /// What happens.
    pub kind: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FaultKind {
    /// The link goes down; at `until` it comes up again. Frames on it are lost.
    LinkDown {
        /// Index into `links`.
        link: u16,
    },
    /// A link that went down comes up.
    LinkUp {
        /// Index into `links`.
        link: u16,
    },
    /// A port goes offline; the link at it goes down.
    PortDown {
        /// Index into `links`: the link at the port.
        link: u16,
        /// Which end of the link.
        end: u8,
    },
    /// A switch restarts: all its links go down, its buffers and logins are lost; it is back at `until`.
    SwitchReset {
        /// Index into `switches`.
        switch: u16,
    },
    /// Frames disappear.
    FrameLoss {
        /// Index into `links`.
        link: u16,
        /// Which way.
        direction: Direction,
        /// Probability that a frame disappears, 0 to 1.
        probability: f64,
    },
    /// Frames arrive with a bad CRC.
    CrcErrors {
        /// Index into `links`.
        link: u16,
        /// Which way.
        direction: Direction,
        /// Probability for a frame, 0 to 1.
        probability: f64,
    },
    /// The receiver at one end of a link gives its credits back late.
    SlowReceiver {
        /// Index into `links`.
        link: u16,
        /// The slow end.
        end: u8,
        /// Added time before each R_RDY, one frame after the other.
        delay: Picos,
    },
    /// The receiver at one end of a link gives no credits back at all while the fault lasts.
    WithheldCredits {
        /// Index into `links`.
        link: u16,
        /// The end that withholds.
        end: u8,
    },
    /// R_RDYs get lost on the way: the credit is gone until the link is reset.
    LostRRdy {
        /// Index into `links`.
        link: u16,
        /// The end whose R_RDYs are lost on their way to the other.
        end: u8,
        /// Probability for each, 0 to 1.
        probability: f64,
    },
    /// A virtual machine goes on under another hypervisor, at once or at `until`: its port names log in there while their old
    /// logins stand.
    VmMove {
        /// Index into `hosts`: the virtual machine.
        host: u16,
        /// Index into `hosts`: the hypervisor it moves to.
        to: u16,
    },
    /// A virtual machine stops: no more requests, and when the last has ended its ports log out.
    VmStop {
        /// Index into `hosts`: the virtual machine.
        host: u16,
    },
}

/// A direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the first end to the second.
    Forward,
    /// From the second end to the first.
    Backward,
    /// Both.
    Both,
}

impl Lab {
    /// Links between switches that faults keep dark from the start of the workloads on. They have no light before, either:
    /// the fabrics at their ends form without each other.
    pub fn dark_links(&self) -> BTreeSet<u16> {
        let from_the_start = self.faults.iter().filter(|fault| fault.at == Picos::ZERO);
        let links = from_the_start.filter_map(|fault| match fault.kind {
            FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => Some(link),
            _ => None,
        });
        let is_isl = |link: &u16| {
            let link = self.links.get(usize::from(*link));
            link.is_some_and(|link| link.ends.iter().all(|end| matches!(end.node, Node::Switch(_))))
        };
        links.filter(is_isl).collect()
    }
}
