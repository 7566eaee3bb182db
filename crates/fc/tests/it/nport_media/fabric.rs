//! Switch with an FL_Port for the loop and F_Ports for other nodes.

use super::{E_D_TOV, Event, LATENCY, Medium, R_A_TOV};
use crate::switch_util;
use sanloom_fc::config::IslChoice;
use sanloom_fc::fabric::{Decision, Egress, Fib};
use sanloom_fc::nport;
use sanloom_fc::switch::{Input, Output, PortKind, Switch, SwitchConfig};
use sanloom_scsi::time::Span;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::{FcId, Frame, Payload, ReplyTo};
use std::collections::BTreeMap;

/// Port of the switch that is the FL_Port of the loop.
const LOOP_PORT: u16 = 3;
/// Number of the F_Port of node 0, if it is far.
const FAR_PORTS: u16 = 10;

pub(super) struct Fabric {
    pub(super) switch: Switch,
    fib: Fib,
    /// Keys of the requests of the switch.
    requests: BTreeMap<u16, ReplyTo>,
    /// A loop initialisation is in progress, so no frame passes.
    is_interrupted: bool,
}

impl Medium {
    /// Connects the loop to a switch. The last `far` nodes are at F_Ports.
    pub(super) fn with_fabric(mut self, far: usize) -> Medium {
        let config = SwitchConfig {
            e_d_tov: E_D_TOV,
            r_a_tov: R_A_TOV,
            rscn_delay: Span::from_ms(1),
            ..switch_util::config(1, switch_util::open())
        };
        let fib = Fib::new(1, config.ports, IslChoice::Exchange);
        let switch = Switch::new(config);
        self.fabric = Some(Fabric { switch, fib, requests: BTreeMap::new(), is_interrupted: false });
        self.drain_switch();
        for at in self.nodes.len() - far..self.nodes.len() {
            self.nodes[at].is_far = true;
            self.switch_input(Input::PortUp { port: FAR_PORTS + at as u16, kind: PortKind::F });
            self.input(at, nport::Input::LinkUp);
        }
        self
    }

    /// Port of the switch that a frame of a node enters; `None` if it stays on the medium.
    pub(super) fn switch_port(&self, from: usize, d_id: FcId) -> Option<u16> {
        self.fabric.as_ref()?;
        let node = &self.nodes[from];
        if node.is_far {
            return Some(FAR_PORTS + from as u16);
        }
        let own_loop = |id: FcId| id.to_u32() >> 8;
        (d_id.port() == 0 || own_loop(d_id) != own_loop(node.address)).then_some(LOOP_PORT)
    }

    pub(super) fn at_switch(&mut self, port: u16, frame: Frame) {
        let header = frame.header;
        let Some(fabric) = &mut self.fabric else { return };
        if port == LOOP_PORT && fabric.is_interrupted {
            return;
        }
        match fabric.fib.decide(port, header.s_id, header.d_id, header.ox_id) {
            Decision::Local => self.switch_input(Input::Frame { port, frame }),
            Decision::Forward(Egress::Port(egress)) => self.send_from_switch(egress, frame),
            Decision::Forward(_) | Decision::Drop(_) => {}
        }
    }

    pub(super) fn switch_input(&mut self, input: Input) {
        let now = self.now;
        if let Some(fabric) = &mut self.fabric {
            fabric.switch.handle(now, input);
        }
        self.drain_switch();
    }

    pub(super) fn switch_timeout(&mut self) {
        let now = self.now;
        let at = self.fabric.as_ref().and_then(|fabric| fabric.switch.poll_timeout());
        if at.is_some_and(|at| at <= now) {
            self.switch_input(Input::Timeout);
        }
    }

    fn drain_switch(&mut self) {
        while let Some(output) = self.fabric.as_mut().and_then(|fabric| fabric.switch.poll_output()) {
            match output {
                Output::Send { port, frame } => {
                    let Payload::Typed(message) = &frame.payload else { unreachable!("messages are typed") };
                    self.log.push(format!("switch: {message} {} > {}", frame.header.s_id, frame.header.d_id));
                    if let (Some(key), Some(fabric)) = (message.reply_key(), &mut self.fabric) {
                        fabric.requests.insert(frame.header.ox_id, key);
                    }
                    let number = self.frames;
                    self.frames += 1;
                    if !(self.is_lost)(number) {
                        self.send_from_switch(port, frame);
                    }
                }
                Output::Fib(delta) => {
                    if let Some(fabric) = &mut self.fabric {
                        fabric.fib.apply(&delta);
                    }
                }
                Output::Peer(_) | Output::Persist { .. } | Output::ChangeZones { .. } => {}
            }
        }
    }

    fn send_from_switch(&mut self, port: u16, frame: Frame) {
        let is_interrupted = self.fabric.as_ref().is_some_and(|fabric| fabric.is_interrupted);
        let to = match port {
            LOOP_PORT if is_interrupted => None,
            LOOP_PORT => self.at_al_pa(frame.header.d_id),
            far => usize::from(far).checked_sub(usize::from(FAR_PORTS)),
        };
        let Payload::Typed(message) = &frame.payload else { unreachable!("messages are typed") };
        if let Some(to) = to {
            let frame = self.through_the_codecs(to, &frame.header, message);
            self.schedule(self.now + LATENCY, Event::Frame { to, frame });
        }
    }

    /// Begins a loop initialisation.
    pub(super) fn interrupt_loop(&mut self) {
        if let Some(fabric) = &mut self.fabric {
            fabric.is_interrupted = true;
        }
        let on_loop: Vec<usize> = (0..self.nodes.len()).filter(|&at| !self.nodes[at].is_far).collect();
        on_loop.into_iter().for_each(|at| self.input(at, nport::Input::LoopInterrupted));
    }

    /// Ends a loop initialisation at the FL_Port.
    pub(super) fn loop_up_at_switch(&mut self, positions: &[(usize, FcId)]) {
        if let Some(fabric) = &mut self.fabric {
            fabric.is_interrupted = false;
        }
        let al_pas = positions.iter().filter_map(|(_, loop_id)| AlPa::new(loop_id.port())).collect();
        self.switch_input(Input::LoopUp { port: LOOP_PORT, al_pas });
    }

    /// Ends a loop initialisation at the nodes. All nodes without a position leave the loop.
    pub(super) fn loop_up_at_nodes(&mut self, positions: &[(usize, FcId)]) {
        let public = self.fabric.is_some();
        let addresses: Vec<FcId> = positions.iter().map(|&(_, loop_id)| loop_id).collect();
        for at in (0..self.nodes.len()).filter(|&at| !self.nodes[at].is_far).collect::<Vec<_>>() {
            let position = positions.iter().find(|&&(node, _)| node == at);
            self.nodes[at].is_present = position.is_some();
            match position {
                Some(&(_, loop_id)) => self.nodes[at].loop_id = loop_id,
                None => self.input(at, nport::Input::LinkDown),
            }
        }
        for &(at, port_id) in positions {
            let others = addresses.iter().copied().filter(|&other| other != port_id).collect();
            self.input(at, nport::Input::LoopUp { port_id, public, others });
        }
    }
}
