//! Target of the test beds: session, device and buffers.

use crate::forward::disk::BLOCK;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::sequence::Statuses;
use sanloom_scsi::iscsi::target::{Destination, Established, Input, Limits, Node, Output, Session, SessionKey, Target};
use sanloom_scsi::scsi::{Device, DeviceConfig, Io, IoTag, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::Instant;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub type Pdu = ([u8; BHS_BYTES], Vec<u8>);

/// Block I/O, recalls, and cancelled tasks.
pub type Drained = (Vec<Io>, Vec<IoTag>, Vec<IoTag>);

/// Target with its uncompleted block I/O.
pub struct Served {
    pub session: Session,
    pub device: Device,
    pub statuses: Statuses,
    pub buffers: BTreeMap<IoTag, Vec<u8>>,
    /// Buffers that the medium uses until its I/O completes.
    pub at_work: BTreeMap<IoTag, Vec<u8>>,
    pub ios: Vec<Io>,
    /// Outputs that end the session or reset its target.
    pub over: Vec<Output>,
}

impl Served {
    pub fn new(parameters: Parameters, depth: u16, blocks: u64) -> Served {
        let name = PortName::Iscsi { target: "iqn.2026-11.net.example:disk".into(), portal_group: 1 };
        let unit = UnitConfig { write_back: true, ..UnitConfig::new(blocks, BLOCK as u32) };
        let mut device = Device::new(DeviceConfig {
            ports: vec![PortConfig { name, group: 1 }],
            units: vec![unit],
            attentions: true,
            ..DeviceConfig::default()
        });
        let established = Established {
            key: SessionKey {
                target: Some(0),
                initiator: "iqn.2026-11.net.example:host".into(),
                isid: [1; 6],
                group: 1,
            },
            tsih: 1,
            cid: 0,
            parameters,
            exp_cmd_sn: 1,
            stat_sn: 1,
            replaces: None,
        };
        let target = Target { ping: None, ..Target::new("iqn.2026-11.net.example:disk") };
        let node = Arc::new(Node { targets: vec![target], ..Node::default() });
        let limits = Limits { depth, ..Limits::default() };
        let session = Session::new(Instant::ZERO, established, node, limits, Some((0, &mut device)));
        Served {
            session,
            device,
            statuses: Statuses::new(1),
            buffers: BTreeMap::new(),
            at_work: BTreeMap::new(),
            ios: Vec::new(),
            over: Vec::new(),
        }
    }

    /// Passes a PDU to the session; the answers are appended to `out`.
    pub fn receive(&mut self, now: Instant, (header, data): &Pdu) {
        let head = Head::parse(header);
        self.session.handle(now, Input::Header(head), Some(&mut self.device));
        if data.is_empty() {
            return;
        }
        let input = match self.session.destination() {
            Destination::Text => Input::Text { data: data[..].into(), intact: true },
            Destination::Skip => Input::Segment { intact: true },
            Destination::Buffer { id: tag, at } => {
                let buffer = self.buffers.entry(tag).or_default();
                let end = at as usize + data.len();
                buffer.resize(buffer.len().max(end), 0);
                buffer[at as usize..end].copy_from_slice(data);
                Input::Segment { intact: true }
            }
        };
        self.session.handle(now, input, Some(&mut self.device));
    }

    pub fn number(&mut self, header: [u8; BHS_BYTES]) -> [u8; BHS_BYTES] {
        let mut bhs = Bhs(header);
        self.statuses.number(&mut bhs);
        bhs.0
    }

    /// Drains the session: PDUs go to `out`, block I/O and recalls to the caller.
    pub fn drain(&mut self, now: Instant, out: &mut VecDeque<Pdu>) -> Drained {
        let (mut ios, mut recalls, mut cancels) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send { head, data } => {
                    let header = self.number(head.to_bytes());
                    out.push_back((header, data.into()));
                }
                Output::Data { tag, head, at } => {
                    let end = (at + head.data_bytes) as usize;
                    let data = self.buffers[&tag][at as usize..end].to_vec();
                    let header = self.number(head.to_bytes());
                    out.push_back((header, data));
                }
                Output::Io(io) => {
                    self.at_work.insert(io.tag, self.buffers.remove(&io.tag).unwrap_or_default());
                    ios.push(io);
                }
                Output::Fetch { tag, bytes } => {
                    let list = self.buffers[&tag][..bytes as usize].to_vec();
                    self.session.handle(now, Input::Parameters { tag, bytes: list }, Some(&mut self.device));
                }
                Output::Release(tag) => {
                    self.buffers.remove(&tag);
                }
                Output::Cancel(tag) => {
                    self.buffers.remove(&tag);
                    self.at_work.remove(&tag);
                    ios.retain(|io: &Io| io.tag != tag);
                    self.ios.retain(|io| io.tag != tag);
                    cancels.push(tag);
                }
                Output::Recall(tag) => recalls.push(tag),
                Output::Arrived { .. } => {}
                Output::Ends(_) => self.session.handle(now, Input::OthersEnded, Some(&mut self.device)),
                over @ (Output::Reset | Output::Close(_)) => self.over.push(over),
            }
        }
        while self.device.poll_output().is_some() {}
        (ios, recalls, cancels)
    }
}
