//! Requests and accepts of the management service: FDMI and the fabric configuration server.

use super::{HOST, HOST_NODE, HOST_PORT, STORAGE_PORT};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::fcs::{self, AttachedPort, FcsAccept, FcsRequest, PortEntry};
use sanloom_wire::fdmi::{self, Attribute, Attributes, FdmiAccept, FdmiRequest, hba_attribute, port_attribute};
use sanloom_wire::{Message, ReplyTo};

pub fn messages() -> Vec<(Message, Option<ReplyTo>)> {
    let requests = fdmi_requests().into_iter().map(|request| (Service::FDMI, CtBody::Fdmi(request)));
    let requests =
        requests.chain(fcs_requests().into_iter().map(|request| (Service::FABRIC_CONFIGURATION, CtBody::Fcs(request))));
    let replies = fdmi_accepts().into_iter().map(|(to, accept)| (Service::FDMI, to, CtBody::FdmiAccept(accept)));
    let replies = replies.chain(
        fcs_accepts().into_iter().map(|(to, accept)| (Service::FABRIC_CONFIGURATION, to, CtBody::FcsAccept(accept))),
    );
    let reject = CtReject { reason: CtReason::UNABLE, explanation: fdmi::explanation::HBA_NOT_REGISTERED, vendor: 0 };
    let replies = replies.chain([(Service::FDMI, fdmi::command::GHAT, CtBody::Reject(reject))]);
    requests
        .map(|(service, body)| (Ct::request(service, body).into(), None))
        .chain(replies.map(|(service, to, body)| (Ct::request(service, body).into(), Some(ReplyTo::Ct(service, to)))))
        .collect()
}

fn attributes() -> Attributes {
    vec![
        Attribute { attribute: hba_attribute::MODEL, value: (*b"model\0\0\0").into() },
        Attribute { attribute: port_attribute::SUPPORTED_SPEEDS, value: [0, 0, 0, 0x10].into() },
    ]
}

fn fdmi_requests() -> Vec<FdmiRequest> {
    let (hba, port) = (HOST_PORT, STORAGE_PORT);
    vec![
        FdmiRequest::Grhl {},
        FdmiRequest::Ghat { hba },
        FdmiRequest::Grpl { hba },
        FdmiRequest::Gpat { port },
        FdmiRequest::Rhba { hba, ports: vec![HOST_PORT, STORAGE_PORT], attributes: attributes() },
        FdmiRequest::Rhat { hba, attributes: attributes() },
        FdmiRequest::Rprt { hba, port, attributes: vec![] },
        FdmiRequest::Rpa { port, attributes: attributes() },
        FdmiRequest::Dhba { hba },
        FdmiRequest::Dhat { hba },
        FdmiRequest::Dprt { port },
        FdmiRequest::Dpa { port },
    ]
}

fn fdmi_accepts() -> Vec<(u16, FdmiAccept)> {
    use fdmi::command::*;
    vec![
        (GRHL, FdmiAccept::Names(vec![HOST_PORT])),
        (GRPL, FdmiAccept::Names(vec![HOST_PORT, STORAGE_PORT])),
        (GHAT, FdmiAccept::Hba { ports: vec![HOST_PORT], attributes: attributes() }),
        (GPAT, FdmiAccept::Port(attributes())),
        (RHBA, FdmiAccept::Empty),
    ]
}

fn fcs_requests() -> Vec<FcsRequest> {
    let (element, port) = (HOST_NODE, HOST_PORT);
    vec![
        FcsRequest::Giel {},
        FcsRequest::Giet { element },
        FcsRequest::Gdid { element },
        FcsRequest::Gmid { element },
        FcsRequest::Gfn { element },
        FcsRequest::Gieln { element },
        FcsRequest::Gmal { element },
        FcsRequest::Gieil { element },
        FcsRequest::Gpl { element },
        FcsRequest::Gpt { port },
        FcsRequest::Gppn { port },
        FcsRequest::Gapnl { port },
        FcsRequest::Gps { port },
    ]
}

fn fcs_accepts() -> Vec<(u16, FcsAccept)> {
    use fcs::command::*;
    let port = PortEntry { name: HOST_PORT, module: 1, transmitter: 2, port_type: 0x81 };
    let attached = AttachedPort { name: STORAGE_PORT, flags: 3, port_type: 1 };
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().into()).collect();
    vec![
        (GIEL, FcsAccept::Elements(vec![(HOST_NODE, 1), (HOST_NODE, 2)])),
        (GIET, FcsAccept::ElementType(1)),
        (GDID, FcsAccept::DomainId(7)),
        (GMID, FcsAccept::ManagementId(HOST)),
        (GFN, FcsAccept::FabricName(HOST_NODE)),
        (GIELN, FcsAccept::LogicalName((*b"core-1").into())),
        (GMAL, FcsAccept::ManagementAddresses(texts(&["http://10.0.0.1", "snmp://10.0.0.1"]))),
        (GIEIL, FcsAccept::Information(texts(&["sanloom", "switch", "0.1"]))),
        (GPL, FcsAccept::Ports(vec![port, port])),
        (GPT, FcsAccept::PortType(0x84)),
        (GPPN, FcsAccept::PhysicalNumber(0x0102_0304)),
        (GAPNL, FcsAccept::AttachedPorts(vec![attached])),
        (GPS, FcsAccept::PortState { port_type: 0x81, state: 1 }),
    ]
}
