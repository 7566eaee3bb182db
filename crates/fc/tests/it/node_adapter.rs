//! Registration of adapters at the HBA management service (FDMI).

use crate::switch_util::{config, open};
use sanloom_fc::nport::{self, Adapter, FabricState, NPort, NPortConfig};
use sanloom_fc::switch::{self, PortKind, Switch};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::fdmi::{hba_attribute, port_attribute};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwnn, Wwpn};
use std::collections::VecDeque;

const HOST: Wwpn = Wwpn(0x2000_02fc_0000_0001);
const PORT: u16 = 3;

fn port() -> NPort {
    let mut port = NPort::new(NPortConfig {
        wwpn: HOST,
        wwnn: Wwnn(0x1000_02fc_0000_0001),
        receive_size_bytes: 2112,
        bb_credit: 10,
        bb_sc_n: 0,
        initiator: true,
        target: false,
        symbolic_name: "node".to_owned(),
        e_d_tov: Span::from_secs(2),
        r_a_tov: Span::from_secs(10),
        seed: 0,
        virtual_port: None,
    });
    port.describe(Adapter { manufacturer: "ab".to_owned(), host_name: "host1".to_owned(), ..Adapter::default() });
    port
}

/// A node port at a switch. `edit` may replace or drop what the port receives.
struct Link<F> {
    now: Instant,
    node: NPort,
    switch: Switch,
    /// Frames that the node has sent to the management server.
    sent: Vec<Frame>,
    edit: F,
}

impl<F: FnMut(&Frame) -> Option<Frame>> Link<F> {
    fn up(edit: F) -> Link<F> {
        let (node, switch) = (port(), Switch::new(config(1, open())));
        let mut link = Link { now: Instant::ZERO, node, switch, sent: Vec::new(), edit };
        link.switch.handle(link.now, switch::Input::PortUp { port: PORT, kind: PortKind::F });
        link.node.handle(link.now, nport::Input::LinkUp);
        link.settle_for(Span::from_ms(100));
        link
    }

    /// Passes frames to and fro until there is none, for this time.
    fn settle_for(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let mut frames = VecDeque::new();
            while let Some(output) = self.node.poll_output() {
                if let nport::Output::Send(frame) = output {
                    if frame.header.d_id == FcId::MANAGEMENT_SERVER {
                        self.sent.push(frame.clone());
                    }
                    frames.push_back(frame);
                }
            }
            let quiet = frames.is_empty();
            for frame in frames {
                self.switch.handle(self.now, switch::Input::Frame { port: PORT, frame });
            }
            while let Some(output) = self.switch.poll_output() {
                if let switch::Output::Send { port: PORT, frame } = output
                    && let Some(frame) = (self.edit)(&frame)
                {
                    self.node.handle(self.now, nport::Input::Frame(frame));
                }
            }
            if quiet {
                let next = self.node.poll_timeout().into_iter().chain(self.switch.poll_timeout()).min();
                let Some(next) = next.filter(|next| *next <= end) else { break };
                self.now = next;
                self.node.handle(next, nport::Input::Timeout);
                self.switch.handle(next, switch::Input::Timeout);
            }
        }
        self.now = end;
    }
}

fn hex(frame: &Frame) -> String {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(attributes: &[sanloom_wire::fdmi::Attribute], kind: u16) -> String {
    let found = attributes.iter().find(|attribute| attribute.attribute == kind).expect("the attribute");
    String::from_utf8_lossy(&found.value).trim_end_matches('\0').to_owned()
}

#[test]
fn a_switch_stores_the_adapter_that_a_port_registers_until_the_port_logs_out() {
    let mut link = Link::up(|frame| Some(frame.clone()));
    assert_eq!(link.node.state(), FabricState::Ready);
    let adapters: Vec<_> = link.switch.adapters().collect();
    assert_eq!((adapters.len(), adapters[0].hba), (1, HOST));
    assert_eq!(text(adapters[0].attributes, hba_attribute::MANUFACTURER), "ab");
    let (name, attributes) = adapters[0].ports[0];
    assert_eq!((name, &*text(attributes, port_attribute::HOST_NAME)), (HOST, "host1"));
    assert_eq!(link.node.counters().registrations_refused, 0);
    link.node.handle(link.now, nport::Input::LogOut);
    link.settle_for(Span::from_ms(100));
    assert_eq!(link.switch.adapters().count(), 0);
    link.node.handle(link.now, nport::Input::LinkUp);
    link.settle_for(Span::from_ms(100));
    assert_eq!(link.switch.adapters().count(), 1);
}

/// Bytes from the layout of the standard (FC-GS, HBA management service), written by hand.
#[test]
fn registrations_of_an_adapter_have_the_bytes_of_the_standard() {
    let link = Link::up(|frame| Some(frame.clone()));
    let bodies: Vec<String> = link.sent[1..].iter().map(|frame| hex(frame)[48..].to_owned()).collect();
    let preamble = |command: &str| format!("01000000fa100000{command}000000000000");
    let rhba = [
        &*preamble("0200"),
        "200002fc00000001",         // HBA
        "00000001200002fc00000001", // one port
        "00000004",                 // attributes
        "0001000c100002fc00000001",
        "0002000861620000",
        "000c000c6e6f646500000000",
        "000e000800000001",
    ];
    let rpa = [
        &*preamble("0211"),
        "200002fc00000001",
        "00000006",
        "0004000800000840",
        "0006000c686f737431000000",
        "0007000c100002fc00000001",
        "0008000c200002fc00000001",
        "0009000c6e6f646500000000",
        "0103000800010300",
    ];
    assert_eq!(bodies, [rhba.concat(), rpa.concat()]);
    // A message that is cut off is no registration.
    for frame in &link.sent[1..] {
        let Payload::Typed(Message::Ct(ct)) = &frame.payload else { panic!("no CT") };
        let mut bytes = Vec::new();
        ct.emit(&mut bytes);
        for length in 16..bytes.len() {
            assert!(Ct::parse(&bytes[..length], None).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn a_port_goes_on_without_an_hba_management_service() {
    let reject = LsRjt { reason: LsRjtReason::UNABLE, explanation: LsRjtExplanation::NONE, vendor: 0 };
    let rejected = move |frame: &Frame| match frame.header.s_id {
        FcId::MANAGEMENT_SERVER => {
            Some(Frame { payload: Payload::Typed(Message::from(Els::LsRjt(reject))), ..frame.clone() })
        }
        _ => Some(frame.clone()),
    };
    let refuse = CtReject { reason: CtReason::NOT_SUPPORTED, explanation: 0, vendor: 0 };
    let refused = move |frame: &Frame| match &frame.payload {
        Payload::Typed(Message::Ct(ct)) if ct.service == Service::FDMI => {
            let ct = Ct { body: CtBody::Reject(refuse), ..(**ct).clone() };
            Some(Frame { payload: Payload::Typed(Message::from(ct)), ..frame.clone() })
        }
        _ => Some(frame.clone()),
    };
    let silent = |frame: &Frame| (frame.header.s_id != FcId::MANAGEMENT_SERVER).then(|| frame.clone());
    type Edit = Box<dyn FnMut(&Frame) -> Option<Frame>>;
    let answers: [(Edit, usize); 3] = [(Box::new(rejected), 1), (Box::new(refused), 2), (Box::new(silent), 1)];
    for (edit, requests) in answers {
        let mut link = Link::up(edit);
        link.settle_for(Span::from_secs(120));
        assert_eq!((link.node.state(), link.sent.len()), (FabricState::Ready, requests));
        assert_eq!(link.node.counters().fabric_logins, 1, "the port keeps its login");
        assert_eq!(link.node.counters().registrations_refused, 1);
    }
}
