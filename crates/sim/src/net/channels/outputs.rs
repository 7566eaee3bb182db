//! Outputs of a switch for virtual channels.

use crate::net::lane::End;
use crate::net::{NetPlan, SwitchPlane};
use sanloom_fc::config::{ChannelCredits, FABRIC_CHANNEL, Priority};

/// Outputs of a switch for virtual channels, numbered after the outputs of the ports.
#[derive(Debug)]
pub(in crate::net) struct ChannelOutputs {
    /// Number of ports.
    ports: u16,
    /// For each port that has them: its first channel output and its channels.
    of_port: Vec<Option<(u16, ChannelCredits)>>,
    /// Port and channel of each channel output, from the first one on.
    of_output: Vec<(u16, u8)>,
}

impl ChannelOutputs {
    /// Returns the outputs for the lanes with channels that begin at a switch, or `None` if there
    /// are none. `output_of` has the output of each port, which is the first port of its trunk.
    pub(in crate::net) fn of_switch(switch: u16, output_of: &[u16], net: &NetPlan) -> Option<Box<ChannelOutputs>> {
        let ports = output_of.len();
        let mut outputs = ChannelOutputs { ports: ports as u16, of_port: vec![None; ports], of_output: Vec::new() };
        for (lane, credits) in &net.channels {
            let End::Switch { switch: from, port } = net.lanes[*lane as usize].from else { continue };
            let port = output_of.get(usize::from(port)).copied().filter(|_| from == switch);
            let Some(port) = port else { continue };
            let first = outputs.ports + outputs.of_output.len() as u16;
            let of_port = &mut outputs.of_port[usize::from(port)];
            if let Some((_, other)) = of_port {
                debug_assert!(other.has_same_channels(credits), "the lanes of a trunk have the same channels");
            } else {
                *of_port = Some((first, *credits));
                outputs.of_output.extend(credits.channels().map(|channel| (port, channel)));
            }
        }
        (!outputs.of_output.is_empty()).then(|| Box::new(outputs))
    }

    /// Returns the ports of the channel outputs, in the order of the outputs.
    pub(in crate::net) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_output.iter().map(|&(port, _)| port)
    }

    /// Returns the first channel output of a port and the number of its channels.
    pub(super) fn range(&self, port: u16) -> Option<(u16, usize)> {
        let (first, credits) = self.of_port.get(usize::from(port))?.as_ref()?;
        Some((*first, credits.channels().count()))
    }

    /// Returns the output of a port for a frame with this priority; `None`: between switches.
    pub(super) fn output(&self, port: u16, priority: Option<Priority>, d_id: u32) -> u16 {
        let Some(Some((first, credits))) = self.of_port.get(usize::from(port)) else { return port };
        let channel = priority.map_or(FABRIC_CHANNEL, |priority| credits.channel_of(priority, d_id));
        first + credits.channels().take_while(|&other| other != channel).count() as u16
    }
}

impl SwitchPlane {
    /// Returns the port of an output: its own number, or the port of a channel output.
    pub(in crate::net) fn port_of(&self, output: u16) -> u16 {
        let of_channel = || {
            let outputs = self.channels.as_ref()?;
            outputs.of_output.get(usize::from(output.checked_sub(outputs.ports)?)).map(|&(port, _)| port)
        };
        of_channel().unwrap_or(output)
    }

    /// Returns the virtual channel of an output.
    pub(in crate::net) fn channel_of(&self, output: u16) -> Option<u8> {
        let outputs = self.channels.as_ref()?;
        outputs.of_output.get(usize::from(output.checked_sub(outputs.ports)?)).map(|&(_, channel)| channel)
    }

    /// Returns all outputs of a port: its own and those of its channels.
    pub(in crate::net) fn outputs_of(&self, port: u16) -> impl Iterator<Item = u16> + use<> {
        let (first, count) = self.channels.as_ref().and_then(|outputs| outputs.range(port)).unwrap_or_default();
        std::iter::once(port).chain(first..first + count as u16)
    }
}
