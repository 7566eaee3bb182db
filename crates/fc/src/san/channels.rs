//! Links with virtual channels: [`Lab::has_channels`].

use super::Lab;
use crate::config::{Link, Node};

impl Lab {
    /// Returns whether a link has virtual channels: it joins two switches that have them.
    pub fn has_channels(&self, link: &Link) -> bool {
        link.ends.iter().all(|end| match end.node {
            Node::Switch(switch) => self.switches[usize::from(switch)].virtual_channels.is_some(),
            _ => false,
        })
    }
}
