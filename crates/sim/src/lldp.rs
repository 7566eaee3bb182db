//! LLDP with DCBX on the Ethernet of a lab (IEEE 802.1AB, IEEE 802.1Qaz).
//!
//! Each end of a link runs [`Dcbx`], the agent of the live runtime, if a switch at the link has PFC
//! or shares. Its LLDPDUs are frames of the plane, which leave at link-up, every second for a new
//! peer, and then every 30 s. A bridge never forwards them.
//!
//! The settings in force of an interface are those of its switch from the start on, as the agents
//! agree on them: a test compares both. Faults that keep an agent from its peer do not change them.

use crate::agenda::Agenda;
use crate::net::ethernet::{Packet, Station};
use crate::net::{NEVER, Net};
use sanloom_fc::dcbx::{Dcbx, DcbxConfig, Input, Output};
use sanloom_fc::san::{Lab, dcb_ports};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::lldp::Lldpdu;

/// Bytes of a frame beside its LLDPDU: header and FCS.
const FRAME_BYTES: usize = 14 + 4;
/// Queue of LLDP: priority 7, network control (IEEE 802.1Q). The frames have no tag.
const PRIORITY: u8 = 7;

/// An agent at the sender of a line.
#[derive(Debug)]
struct Port {
    agent: Dcbx,
    mac: MacAddr,
    has_light: bool,
    /// Time of the entry of the agenda that counts.
    planned_ps: u64,
    /// The last LLDPDU, and its bytes.
    sent: (Lldpdu, Box<[u8]>),
}

/// Agents of all lines.
#[derive(Debug)]
pub struct Lldp {
    /// By number of the line.
    ports: Vec<Option<Box<Port>>>,
    agenda: Agenda<(u64, u32)>,
}

/// Returns whether a lab has ports with DCBX.
pub(crate) fn is_used(lab: &Lab) -> bool {
    dcb_ports(lab).iter().any(Option::is_some)
}

impl Lldp {
    /// Returns agents without a link. `mac` is the address of the sender of a line.
    pub(crate) fn new(lab: &Lab, timer: u32, mac: impl Fn(u32) -> MacAddr) -> Lldp {
        let mut ports = Vec::new();
        for ((link, config), agents) in lab.ethernet_links.iter().enumerate().zip(dcb_ports(lab)) {
            for side in 0..2 {
                let line = (2 * link + side) as u32;
                let port = agents.as_ref().map(|agents| {
                    let port = &agents[side];
                    let end = config.ends[side].name(lab);
                    let system = end.split(':').next().unwrap_or_default().to_owned();
                    Box::new(Port {
                        agent: Dcbx::new(DcbxConfig {
                            mac: mac(line),
                            interface: end,
                            system_name: system,
                            willing: port.willing,
                            recommendation: (!port.willing).then_some(port.settings.traffic),
                            settings: port.settings.clone(),
                            max_classes: 8,
                            interval: Span::from_secs(30),
                        }),
                        mac: mac(line),
                        has_light: false,
                        planned_ps: NEVER,
                        sent: Default::default(),
                    })
                });
                ports.push(port);
            }
        }
        Lldp { ports, agenda: Agenda::new(timer) }
    }

    /// Returns the agent at the sender of a line; `None` if it has none.
    pub fn agent(&self, line: u32) -> Option<&Dcbx> {
        Some(&self.ports.get(line as usize)?.as_ref()?.agent)
    }

    /// Returns the address and the last LLDPDU of the sender of a line.
    pub fn sent(&self, line: u32) -> Option<(MacAddr, &Lldpdu)> {
        let port = self.ports.get(line as usize)?.as_ref()?;
        Some((port.mac, &port.sent.0))
    }

    /// Follows the light of all links.
    pub(crate) fn follow(&mut self, net: &mut Net) {
        for line in 0..self.ports.len() as u32 {
            let up = net.ethernet.lines()[line as usize].up;
            let Some(port) = &mut self.ports[line as usize] else { continue };
            if std::mem::replace(&mut port.has_light, up) != up {
                self.handle(net, line, if up { Input::LinkUp } else { Input::LinkDown });
            }
        }
    }

    /// Handles a frame at the receiver of its line.
    pub(crate) fn packet(&mut self, net: &mut Net, packet: &Packet) {
        let line = packet.flow;
        let Some(sender) = &self.ports[line as usize] else { return };
        let input = Input::Lldp { from: sender.mac, pdu: sender.sent.1.clone() };
        self.handle(net, line ^ 1, input);
    }

    /// Handles the timer of the agents.
    pub(crate) fn timer(&mut self, net: &mut Net) {
        while let Some((at_ps, line)) = self.agenda.pop_due(net.now()) {
            if let Some(port) = &mut self.ports[line as usize]
                && port.planned_ps == at_ps
            {
                port.planned_ps = NEVER;
                self.handle(net, line, Input::Timeout);
            }
        }
        self.agenda.arm(net);
    }

    fn handle(&mut self, net: &mut Net, line: u32, input: Input) {
        let Some(port) = &mut self.ports[line as usize] else { return };
        port.agent.handle(Instant::from_ns(net.now() / 1_000), input);
        while let Some(output) = port.agent.poll_output() {
            let Output::Send(pdu) = output else { continue };
            let mut bytes = Vec::new();
            pdu.emit(&mut bytes);
            let length = (bytes.len() + FRAME_BYTES) as u16;
            port.sent = (pdu, bytes.into());
            let ends = [net.ethernet.lines()[line as usize].from, net.ethernet.lines()[line as usize].to];
            let [from, to] = ends.map(|end| match end {
                Station::Interface(interface) => interface,
                Station::Switch { .. } => u16::MAX,
            });
            let packet = Packet::new(from, to, line, 0, length).with_priority(PRIORITY).with_lldp();
            net.send_on_line(line, packet);
        }
        let next_ps = port.agent.poll_timeout().map_or(NEVER, |at| at.as_ns().saturating_mul(1_000));
        if next_ps < port.planned_ps {
            port.planned_ps = next_ps;
            self.agenda.plan(net, next_ps, (next_ps, line));
        }
    }
}
