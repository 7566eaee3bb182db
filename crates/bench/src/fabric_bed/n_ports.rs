//! N_Ports that log in and register: [`NPort`].

use super::plan::{FabricPlan, port_name};
use super::{FabricBed, Flight};
use sanloom_fc::fabric_switch::Input;
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::Span;
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::login::Login;
use sanloom_wire::ns::{NsAccept, NsRequest, fcp_feature, one_type};
use sanloom_wire::{FcId, FcType, Frame, Message, Payload, Wwnn};

/// An N_Port with its location.
#[derive(Clone, Copy, Debug)]
pub(super) struct NPort {
    pub(super) node: usize,
    pub(super) port: u16,
    /// Address after login.
    pub(super) id: Option<FcId>,
}

impl NPort {
    pub(super) fn new(plan: &FabricPlan, number: usize) -> NPort {
        let (node, port) = plan.place(number);
        NPort { node, port, id: None }
    }
}

/// SCR function: changes detected by the fabric and by N_Ports.
const ALL_CHANGES: u8 = 3;

impl FabricBed {
    /// Logs in the initial N_Ports, as soon as their switches have a domain.
    pub fn log_in_first(&mut self) {
        (0..self.plan.ports()).for_each(|n_port| self.log_in(n_port));
    }

    /// Registers all N_Ports for state changes, including those already logged in. An N_Port that
    /// is notified of a change queries all FCP ports.
    pub fn discover(&mut self) {
        self.discovery = true;
        for number in 0..self.n_ports.len() {
            self.ask_for_changes(number);
        }
    }

    /// Logs in the remaining N_Ports, one every `pace`.
    pub fn log_in_later(&mut self, pace: Span) {
        for number in self.plan.ports()..self.plan.names() {
            self.log_in(number);
            self.run(pace);
        }
    }

    fn log_in(&mut self, number: usize) {
        let NPort { node, port, .. } = self.n_ports[number];
        self.input(node, Input::PortUp { port, kind: PortKind::F });
        self.send_from_n_port(number, FcId::F_PORT, Els::Flogi(parameters(number)));
    }

    pub(super) fn receive_at_n_port(&mut self, number: usize, frame: &Frame) {
        let header = &frame.header;
        let Payload::Typed(message) = &frame.payload else { return };
        match message {
            Message::Els(els) => match &**els {
                Els::LsAcc(LsAcc::Login(_)) if header.s_id == FcId::F_PORT => {
                    self.n_ports[number].id = Some(header.d_id);
                    self.register(number, header.d_id);
                }
                Els::Logo(_) if header.s_id == FcId::F_PORT => {
                    self.n_ports[number].id = None;
                    self.send_from_n_port(number, FcId::F_PORT, Els::Flogi(parameters(number)));
                }
                Els::Rscn(_) => {
                    self.traffic.rscns += 1;
                    self.n_port_answers(number, frame, Els::LsAcc(LsAcc::Empty));
                    self.ns(number, NsRequest::GpnFt { domain: 0, area: 0, fc4_type: FcType::FCP.0 });
                }
                _ => {}
            },
            Message::Ct(ct) => {
                if let CtBody::NsAccept(NsAccept::PortNames(ports)) = &ct.body {
                    self.traffic.ports_found += ports.len() as u64;
                }
            }
            _ => {}
        }
    }

    fn register(&mut self, number: usize, port_id: FcId) {
        self.send_from_n_port(number, FcId::NAME_SERVER, Els::Plogi(parameters(number)));
        self.ns(number, NsRequest::RftId { port_id, types: one_type(FcType::FCP.0) });
        let features = match self.plan.is_principal(number) {
            true => fcp_feature::TARGET,
            false => fcp_feature::INITIATOR,
        };
        self.ns(number, NsRequest::RffId { port_id, features, fc4_type: FcType::FCP.0 });
        if self.discovery {
            self.ask_for_changes(number);
            self.ns(number, NsRequest::GpnFt { domain: 0, area: 0, fc4_type: FcType::FCP.0 });
        }
    }

    fn ask_for_changes(&mut self, number: usize) {
        if self.n_ports[number].id.is_some() {
            self.send_from_n_port(number, FcId::FABRIC_CONTROLLER, Els::Scr { function: ALL_CHANGES });
        }
    }

    fn ns(&mut self, number: usize, request: NsRequest) {
        self.send_from_n_port(number, FcId::NAME_SERVER, Ct::ns_request(request));
    }

    fn send_from_n_port(&mut self, number: usize, to: FcId, message: impl Into<Message>) {
        let message = message.into();
        let from = self.n_ports[number].id.unwrap_or(FcId::ZERO);
        let header = message.header(from, to, 1, 0xffff);
        self.n_port_sends(number, Frame { header, payload: Payload::Typed(message) });
    }

    fn n_port_answers(&mut self, number: usize, request: &Frame, message: impl Into<Message>) {
        let (message, request_header) = (message.into(), &request.header);
        let header = message.header(request_header.d_id, request_header.s_id, request_header.ox_id, 0);
        self.n_port_sends(number, Frame { header, payload: Payload::Typed(message) });
    }

    fn n_port_sends(&mut self, number: usize, frame: Frame) {
        self.traffic.from_n_ports += 1;
        let NPort { node, port, .. } = self.n_ports[number];
        self.flight.push_back(Flight { at: self.now + super::DELAY, node, port, to_n_port: false, frame });
    }
}

/// Returns the node name of an N_Port; every N_Port is a node of its own.
pub(super) fn node_name(number: usize) -> Wwnn {
    Wwnn(port_name(number).0 - (1 << 56))
}

fn parameters(number: usize) -> Login {
    Login::of_linux_host(port_name(number), node_name(number))
}
