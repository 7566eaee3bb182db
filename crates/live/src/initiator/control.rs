//! Control requests of an [`Initiator`]: [`sanloom_api::fcoe`].

use super::Initiator;
use super::adapter::{Adapter, FCOE_PRIORITY};
use super::controller::{Controller, ControllerInput};
use super::exports::device_name;
use super::host::{Host, lun_name};
use crate::control::{Control, ControlRequest};
use sanloom_api::control::{Answer, Request};
use sanloom_api::fcoe::{
    FcoeAnswer, FcoeRequest, Forwarder, Instance, NameQuery, Named, Port, Statistics, Target, Unit,
};
use sanloom_scsi::time::Instant;
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ns::{NsAccept, NsRequest};
use sanloom_wire::{FcId, Message, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// A request to the fabric, with the client that waits for its answer.
#[derive(Debug)]
pub(super) struct Question {
    begun: Instant,
    /// Payload of an ECHO.
    echo: Option<Box<[u8]>>,
    answer: Sender<Answer>,
}

impl Initiator {
    /// Answers pending control requests. Returns false if a client requests the end of the
    /// instance.
    pub fn answer(&mut self, control: &Control) -> bool {
        let mut go_on = true;
        for ControlRequest { request, answer, .. } in control.take() {
            let reply = match request {
                Request::Stop => {
                    go_on = false;
                    Answer::Done
                }
                Request::Fcoe(request) => match self.fcoe(request, &answer) {
                    Some(reply) => reply,
                    None => continue,
                },
                _ => failed("this is an FCoE host; send the request to an instance of `sanloom up`"),
            };
            // An error here means that the client has disconnected.
            let _ = answer.send(reply);
        }
        go_on
    }

    /// Returns the answer, or `None` if it depends on a reply of the fabric.
    fn fcoe(&mut self, request: FcoeRequest, answer: &Sender<Answer>) -> Option<Answer> {
        let now = self.clock.now();
        Some(match request {
            FcoeRequest::Describe => Answer::Fcoe(FcoeAnswer::Instance(Box::new(self.describe(now)))),
            FcoeRequest::Reset => {
                tracing::info!("reset by an operator");
                for adapter in self.adapters_mut() {
                    adapter.controller_input(now, ControllerInput::LinkDown);
                    adapter.forget_vlan(now);
                    if adapter.begun && adapter.tag.is_some() {
                        adapter.controller_input(now, ControllerInput::LinkUp);
                    }
                }
                Answer::Done
            }
            FcoeRequest::Permit { agreed } => {
                for adapter in self.adapters_mut() {
                    adapter.permitted = agreed || !adapter.config.waits_for_permission;
                    adapter.update_fcoe(now);
                }
                Answer::Done
            }
            FcoeRequest::Scan => {
                self.adapters_mut().flat_map(|adapter| &mut adapter.hosts).for_each(|host| host.scan(now));
                Answer::Done
            }
            FcoeRequest::NameServer { query } => {
                let body = CtBody::Ns(ns_request(query));
                let ct = Ct { in_id: 0, service: Service::NAME_SERVER, options: 0, max_or_residual_words: 0, body };
                return self.ask(now, FcId::NAME_SERVER, Message::Ct(Box::new(ct)), None, answer);
            }
            FcoeRequest::Echo { port_id, bytes } => {
                let data: Box<[u8]> = (0..bytes.min(2_108) & !3).map(|n| n as u8).collect();
                let message = Message::from(Els::Echo(data.clone()));
                return self.ask(now, FcId::new(port_id & 0xff_ffff), message, Some(data), answer);
            }
            FcoeRequest::Create { .. } | FcoeRequest::Destroy { .. } => {
                failed("only fcoemon creates and destroys instances")
            }
        })
    }

    fn ask(
        &mut self,
        now: Instant,
        to: FcId,
        message: Message,
        echo: Option<Box<[u8]>>,
        answer: &Sender<Answer>,
    ) -> Option<Answer> {
        let Some(number) = self.adapter.hosts[0].ask(now, to, message) else {
            return Some(failed("the host is not logged in"));
        };
        self.questions.insert(number, Question { begun: now, echo, answer: answer.clone() });
        None
    }

    /// Completes a request with the fabric's reply, or with `None` after a time-out.
    pub(super) fn answered(&mut self, now: Instant, number: u16, message: Option<Message>) {
        let Some(Question { begun, echo, answer }) = self.questions.remove(&number) else { return };
        let micros = now.since(begun).as_ns() / 1_000;
        let reply = match message {
            None => failed("no answer in time"),
            Some(Message::Els(els)) => match (*els, echo) {
                (Els::LsAcc(LsAcc::Echo(back)), Some(sent)) => {
                    Answer::Fcoe(FcoeAnswer::Echoed { micros, same: back == sent })
                }
                (Els::LsRjt(reject), _) => failed(&format!("rejected: {reject}")),
                _ => failed("the answer is invalid"),
            },
            Some(Message::Ct(ct)) => match ct.body {
                CtBody::NsAccept(accept) => match named(accept) {
                    Some(found) => Answer::Fcoe(FcoeAnswer::Named { found }),
                    None => failed("the answer is invalid"),
                },
                CtBody::Reject(reject) => {
                    failed(&format!("rejected: {}, explanation {:#04x}", reject.reason, reject.explanation))
                }
                _ => failed("the answer is invalid"),
            },
            Some(_) => failed("the answer is invalid"),
        };
        let _ = answer.send(reply);
    }

    fn describe(&self, now: Instant) -> Instance {
        let others = self.others.iter().map(|other| self.describe_adapter(now, other, &other.port.name)).collect();
        let name = self.config.name.as_deref().unwrap_or(&self.adapter.port.name);
        Instance { others, disks: self.describe_disks(), ..self.describe_adapter(now, &self.adapter, name) }
    }

    /// Describes an Ethernet port with its hosts. `name`: the name for tools, without the VLAN.
    fn describe_adapter(&self, now: Instant, adapter: &Adapter, name: &str) -> Instance {
        let vlan = adapter.tag.flatten().map(|tag| tag.vlan);
        let interface = adapter.port.name.clone();
        let name = match vlan {
            Some(vlan) => format!("{name}.{vlan}-fcoe"),
            None => name.to_owned(),
        };
        let fcf = adapter.controller.fcf().map(|fcf| Forwarder {
            mac: fcf.mac.to_string(),
            fabric_name: fcf.fabric_name.0,
            switch_name: fcf.switch_name.0,
            priority: fcf.priority,
            keep_alive_ms: fcf.period.as_ms(),
        });
        let permitted = adapter.config.waits_for_permission.then_some(adapter.permitted);
        Instance {
            name,
            interface,
            mac: adapter.config.mac.to_string(),
            vlan,
            priority: FCOE_PRIORITY,
            vn2vn: adapter.config.vn2vn,
            link: adapter.link,
            dcbx: adapter.agent.as_ref().map(|agent| agent.may_begin()).or(permitted),
            fcf,
            nbd: self.config.nbd.display().to_string(),
            speed_mbit_per_s: adapter.port.speed_mbit_per_s(),
            ports: (adapter.hosts.iter().enumerate())
                .map(|(number, host)| self.describe_port(adapter, number, host))
                .collect(),
            statistics: statistics(adapter, now),
            others: Vec::new(),
            disks: Vec::new(),
        }
    }

    fn describe_port(&self, adapter: &Adapter, number: usize, host: &Host) -> Port {
        let through = (number > 0).then(|| host.login.wwpn());
        let port_id = Some(host.port_id()).filter(|id| *id != FcId::ZERO);
        let targets = host.targets().map(|(port_name, remote)| {
            let units = host.disks().filter(|disk| disk.target == port_name).map(|disk| {
                let found = disk.properties;
                let text = |get: fn(&sanloom_scsi::disk::Properties) -> &str| found.map_or("", get).to_owned();
                Unit {
                    lun: lun_name(disk.lun),
                    device: device_name(through, &disk),
                    vendor: text(|found| &found.vendor),
                    product: text(|found| &found.product),
                    revision: text(|found| &found.revision),
                    blocks: found.map_or(0, |found| found.blocks),
                    block_bytes: found.map_or(0, |found| found.block_bytes),
                    ready: disk.ready,
                }
            });
            Target {
                port_name: port_name.0,
                node_name: remote.map_or(0, |remote| remote.wwnn.0),
                port_id: remote.map(|remote| remote.port_id.to_u32()),
                max_frame_bytes: remote.map_or(0, |remote| remote.receive_size_bytes),
                units: units.collect(),
            }
        });
        Port {
            symbolic_name: self.config.symbolic_name.clone(),
            node_name: host.login.wwnn().0,
            port_name: host.login.wwpn().0,
            port_id: port_id.map(FcId::to_u32),
            vn_mac: port_id.and_then(|id| adapter.controller.mac(id)).map(|mac| mac.to_string()),
            max_frame_bytes: 2112,
            targets: targets.collect(),
        }
    }
}

fn statistics(adapter: &Adapter, now: Instant) -> Statistics {
    let unexpected = adapter.hosts.iter().map(|host| host.unexpected).sum::<u64>();
    let frames = adapter.port.drops.iter().map(|(reason, frames)| ((*reason).to_owned(), *frames));
    let fip = adapter.controller.discards().iter().map(|(why, packets)| (format!("FIP: {}", why.name()), packets));
    let drops = frames.chain(fip).chain([("unexpected frames".to_owned(), unexpected)]);
    let drops: BTreeMap<String, u64> = drops.filter(|(_, count)| *count > 0).collect();
    let mut sum = Statistics {
        seconds: now.as_ns() / 1_000_000_000,
        tx_frames: adapter.port.sent.frames,
        tx_bytes: adapter.port.sent.bytes,
        rx_frames: adapter.port.received.frames,
        rx_bytes: adapter.port.received.bytes,
        error_frames: drops.values().sum(),
        drops,
        invalid_crcs: adapter.port.drops.get(super::frames::reason::BAD_CRC).copied().unwrap_or(0),
        link_failures: adapter.link_failures,
        ..Statistics::default()
    };
    let (mut input_bytes, mut output_bytes) = (0, 0);
    for Host { counted, .. } in &adapter.hosts {
        sum.control_requests += counted.control_requests;
        sum.input_requests += counted.input_requests;
        sum.output_requests += counted.output_requests;
        input_bytes += counted.input_bytes;
        output_bytes += counted.output_bytes;
    }
    (sum.input_megabytes, sum.output_megabytes) = (input_bytes / 1_000_000, output_bytes / 1_000_000);
    sum
}

impl Controller {
    /// Returns the MAC address of one of our VN_Ports.
    fn mac(&self, port_id: FcId) -> Option<sanloom_wire::ether::MacAddr> {
        use sanloom_wire::ether::{FcMap, MacAddr};
        match self {
            Controller::Fabric(enode) => enode.vn_ports().find(|(id, ..)| *id == port_id).map(|(_, mac, _)| mac),
            Controller::Vn2vn(_) => Some(MacAddr::fpma(FcMap::VN2VN, port_id)),
        }
    }
}

fn failed(reason: &str) -> Answer {
    Answer::failed(reason)
}

fn ns_request(query: NameQuery) -> NsRequest {
    let id = |port_id: u32| FcId::new(port_id & 0xff_ffff);
    match query {
        NameQuery::PortName { port_id } => NsRequest::GpnId { port_id: id(port_id) },
        NameQuery::NodeName { port_id } => NsRequest::GnnId { port_id: id(port_id) },
        NameQuery::SymbolicPortName { port_id } => NsRequest::GspnId { port_id: id(port_id) },
        NameQuery::SymbolicNodeName { node_name } => NsRequest::GsnnNn { node_name: Wwnn(node_name) },
        NameQuery::PortIdOfPort { port_name } => NsRequest::GidPn { port_name: Wwpn(port_name) },
        NameQuery::PortIdOfNode { node_name } => NsRequest::GidNn { node_name: Wwnn(node_name) },
        NameQuery::Next { port_id } => NsRequest::GaNxt { port_id: id(port_id) },
    }
}

fn named(accept: NsAccept) -> Option<Named> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match accept {
        NsAccept::PortName(name) => Named::PortName { name: name.0 },
        NsAccept::NodeName(name) => Named::NodeName { name: name.0 },
        NsAccept::SymbolicName(name) => Named::SymbolicName { name: text(&name) },
        NsAccept::PortId(id) => Named::PortId { port_id: id.to_u32() },
        NsAccept::PortIds(ids) => Named::PortId { port_id: ids.first()?.to_u32() },
        NsAccept::Object(object) => Named::Port {
            port_id: object.port_id.to_u32(),
            port_name: object.port_name.0,
            node_name: object.node_name.0,
            symbolic_port_name: text(&object.symbolic_port_name),
            symbolic_node_name: text(&object.symbolic_node_name),
        },
        _ => return None,
    })
}
