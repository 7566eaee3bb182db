//! Outputs of a switch for virtual channels.

use crate::net::End;
use crate::net::{NetPlan, SwitchPlane};
use sanloom_fc::config::{ChannelCredits, Priority};

/// Outputs of a switch for virtual channels, numbered after the outputs of the ports.
#[derive(Debug)]
pub(in crate::net) struct ChannelOutputs {
    /// Number of ports.
    ports: u16,
    /// Outputs of each port that has them.
    of_port: Vec<Option<PortOutputs>>,
    /// Port and channel of each channel output, from the first one on.
    of_output: Vec<(u16, u8)>,
}

/// Channel outputs of a port, one for each channel, by number.
#[derive(Clone, Debug)]
struct PortOutputs {
    first: u16,
    count: u16,
    /// First output and number of outputs for each priority. A priority without a channel uses the
    /// outputs of medium priority.
    of_priority: [(u16, u32); Priority::ALL.len()],
    credits: ChannelCredits,
}

impl PortOutputs {
    fn new(first: u16, credits: &ChannelCredits) -> PortOutputs {
        let of_priority = Priority::ALL.map(|priority| {
            let lowest = credits.channel_of(priority, 0);
            let of_class = Priority::of_channel(lowest).channels();
            let before = credits.channels().take_while(|&channel| channel < lowest).count();
            (first + before as u16, credits.channels().filter(|channel| of_class.contains(channel)).count() as u32)
        });
        PortOutputs { first, count: credits.channels().count() as u16, of_priority, credits: *credits }
    }
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
            if let Some(other) = of_port {
                debug_assert!(other.credits.has_same_channels(credits), "the lanes of a trunk have the same channels");
            } else {
                *of_port = Some(PortOutputs::new(first, credits));
                outputs.of_output.extend(credits.channels().map(|channel| (port, channel)));
            }
        }
        (!outputs.of_output.is_empty()).then(|| Box::new(outputs))
    }

    /// Returns the ports of the channel outputs, in the order of the outputs.
    pub(in crate::net) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.of_output.iter().map(|&(port, _)| port)
    }

    /// Returns the port of an output, the first channel output of this port, and the number of its
    /// channels.
    #[inline]
    pub(in crate::net) fn of(&self, output: u16) -> Option<(u16, u16, u16)> {
        let port = match output.checked_sub(self.ports) {
            Some(at) => self.of_output.get(usize::from(at))?.0,
            None => output,
        };
        let outputs = self.of_port.get(usize::from(port))?.as_ref()?;
        Some((port, outputs.first, outputs.count))
    }

    /// Returns the output of a port for a frame with this priority; `None`: between switches.
    pub(super) fn output(&self, port: u16, priority: Option<Priority>, d_id: u32) -> u16 {
        let Some(Some(outputs)) = self.of_port.get(usize::from(port)) else { return port };
        // The lowest channel is that of frames between switches.
        let Some(priority) = priority else { return outputs.first };
        let (first, count) = outputs.of_priority[priority as usize];
        first + (ChannelCredits::turn_of(d_id) % count.max(1)) as u16
    }
}

impl SwitchPlane {
    /// Returns the virtual channel of an output.
    pub(in crate::net) fn channel_of(&self, output: u16) -> Option<u8> {
        let outputs = self.channels.as_ref()?;
        outputs.of_output.get(usize::from(output.checked_sub(outputs.ports)?)).map(|&(_, channel)| channel)
    }

    /// Returns all outputs of a port: its own and those of its channels.
    pub(in crate::net) fn outputs_of(&self, port: u16) -> impl Iterator<Item = u16> + use<> {
        let (_, first, count) = self.channels.as_ref().and_then(|outputs| outputs.of(port)).unwrap_or_default();
        std::iter::once(port).chain(first..first + count)
    }
}
