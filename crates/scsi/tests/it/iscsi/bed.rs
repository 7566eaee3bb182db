//! Session with a disk in memory; the tests act as initiator.

use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::target::{Destination, Established, Input, Limits, Node, Output, Session, SessionKey, Target};
use sanloom_scsi::scsi::{Device, DeviceConfig, Io, IoOp, IoStatus, IoTag, Notice, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::Instant;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::code::{attribute, flag};
use sanloom_wire::iscsi::{DataOut, Head, Header, NO_TAG, ScsiCommand};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const BLOCK: u32 = 512;
pub const BLOCKS: u64 = 4096;
pub const INITIATOR: &str = "iqn.2026-11.net.example:host";

pub fn device() -> Device {
    let name = PortName::Iscsi { target: "iqn.2026-11.net.example:disk".into(), portal_group: 1 };
    let units = vec![UnitConfig { write_back: true, thin: true, ..UnitConfig::new(BLOCKS, BLOCK) }; 2];
    Device::new(DeviceConfig {
        ports: vec![PortConfig { name, group: 1 }],
        units,
        attentions: false,
        ..DeviceConfig::default()
    })
}

pub fn established(isid: u8, parameters: Parameters) -> Established {
    Established {
        key: SessionKey { target: Some(0), initiator: INITIATOR.into(), isid: [isid; 6], group: 1 },
        tsih: 1,
        cid: 0,
        parameters,
        exp_cmd_sn: 1,
        stat_sn: 1,
        replaces: None,
    }
}

pub fn node() -> Arc<Node> {
    Arc::new(Node { targets: vec![Target::new("iqn.2026-11.net.example:disk")], ..Node::default() })
}

pub struct Bed {
    pub device: Device,
    pub session: Session,
    pub now: Instant,
    pub disk: Vec<u8>,
    pub buffers: BTreeMap<IoTag, Vec<u8>>,
    /// Block I/O that waits for [`Bed::work`].
    pub ios: Vec<Io>,
    /// True if I/O completes at once.
    pub prompt: bool,
    pub cmd_sn: u32,
}

impl Bed {
    pub fn new(parameters: Parameters) -> Bed {
        Bed::with_limits(parameters, Limits::default())
    }

    pub fn with_limits(parameters: Parameters, limits: Limits) -> Bed {
        let mut device = device();
        let now = Instant::ZERO;
        let established = established(1, parameters);
        let session = Session::new(now, established, node(), limits, Some((0, &mut device)));
        let disk = vec![0; (BLOCKS * u64::from(BLOCK)) as usize];
        Bed { device, session, now, disk, buffers: BTreeMap::new(), ios: Vec::new(), prompt: true, cmd_sn: 1 }
    }

    /// Passes one input and returns all resulting outputs; data are joined to their PDUs.
    pub fn input(&mut self, input: Input) -> Vec<Output> {
        self.session.handle(self.now, input, Some(&mut self.device));
        self.drain()
    }

    pub fn drain(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        loop {
            while let Some(output) = self.session.poll_output() {
                match output {
                    Output::Io(io) if self.prompt => self.perform(io),
                    Output::Io(io) => {
                        self.ios.push(io);
                        outputs.push(Output::Io(io));
                    }
                    Output::Fetch { tag, bytes } => {
                        let list = self.buffers[&tag][..bytes as usize].to_vec();
                        self.session.handle(self.now, Input::Parameters { tag, bytes: list }, Some(&mut self.device));
                    }
                    Output::Data { tag, head, at } => {
                        let end = (at + head.data_bytes) as usize;
                        let data = self.buffers[&tag][at as usize..end].into();
                        outputs.push(Output::Send { head, data });
                    }
                    Output::Release(tag) | Output::Cancel(tag) => {
                        self.buffers.remove(&tag);
                        if matches!(output, Output::Cancel(_)) {
                            outputs.push(output);
                        }
                    }
                    Output::Ends(_) => {
                        outputs.push(output);
                        self.session.handle(self.now, Input::OthersEnded, Some(&mut self.device));
                    }
                    other => outputs.push(other),
                }
            }
            let Some(output) = self.device.poll_output() else { return outputs };
            if let sanloom_scsi::scsi::Output::Port { notice, .. } = output {
                self.session.handle(self.now, Input::Notice(notice), Some(&mut self.device));
            }
        }
    }

    fn perform(&mut self, io: Io) {
        let from = (io.lba * u64::from(BLOCK)) as usize;
        match io.op {
            IoOp::Read => {
                let data = self.disk[from..from + io.bytes as usize].to_vec();
                self.buffers.insert(io.tag, data);
            }
            IoOp::Write => {
                let whole = (io.bytes / BLOCK * BLOCK) as usize;
                // The buffer of a cancelled task is free already.
                if let Some(buffer) = self.buffers.get(&io.tag).filter(|_| whole > 0) {
                    self.disk[from..from + whole].copy_from_slice(&buffer[..whole]);
                }
            }
            _ => {}
        }
        let done = Input::IoDone { tag: io.tag, status: IoStatus::Good };
        self.session.handle(self.now, done, Some(&mut self.device));
    }

    /// Completes the waiting I/O.
    pub fn work(&mut self) -> Vec<Output> {
        for io in std::mem::take(&mut self.ios) {
            self.perform(io);
        }
        self.drain()
    }

    /// Passes a complete PDU.
    pub fn pdu(&mut self, head: Head, data: &[u8]) -> Vec<Output> {
        let head = Head { data_bytes: data.len() as u32, ..head };
        let mut outputs = self.input(Input::Header(head));
        if !data.is_empty() {
            outputs.extend(self.segment(data, true));
        }
        outputs
    }

    /// The data segment of the last header.
    pub fn segment(&mut self, data: &[u8], intact: bool) -> Vec<Output> {
        let input = match self.session.destination() {
            Destination::Text => Input::Text { data: data.into(), intact },
            Destination::Skip => Input::Segment { intact },
            Destination::Buffer { id: tag, at } => {
                let buffer = self.buffers.entry(tag).or_default();
                let end = at as usize + data.len();
                buffer.resize(buffer.len().max(end), 0);
                buffer[at as usize..end].copy_from_slice(data);
                Input::Segment { intact }
            }
        };
        self.input(input)
    }

    /// Returns the next command number.
    pub fn number(&mut self) -> u32 {
        self.cmd_sn += 1;
        self.cmd_sn - 1
    }

    pub fn command(&mut self, initiator_tag: u32, flags: u8, cdb: Cdb, expected_bytes: u32) -> Head {
        let cmd_sn = self.number();
        command(initiator_tag, cmd_sn, flags, cdb, expected_bytes)
    }

    pub fn read(&mut self, initiator_tag: u32, lba: u64, blocks: u32) -> Vec<Output> {
        let head = self.command(initiator_tag, READ, Cdb::Read { lba, blocks, fua: false }, blocks * BLOCK);
        self.pdu(head, &[])
    }

    /// Passes a notice, as if another initiator's session with the same device had ended tasks.
    pub fn notice(&mut self, notice: Notice) -> Vec<Output> {
        self.input(Input::Notice(notice))
    }
}

pub const READ: u8 = flag::FINAL | flag::READ | attribute::SIMPLE;
pub const WRITE: u8 = flag::FINAL | flag::WRITE | attribute::SIMPLE;
/// Flags of a write with unsolicited data to follow.
pub const WRITE_ON: u8 = flag::WRITE | attribute::SIMPLE;

pub fn command(initiator_tag: u32, cmd_sn: u32, flags: u8, cdb: Cdb, expected_bytes: u32) -> Head {
    Head::new(ScsiCommand {
        flags,
        lun: [0; 8],
        initiator_tag,
        expected_bytes,
        cmd_sn,
        exp_stat_sn: 1,
        cdb: cdb.to_bytes(),
    })
}

pub fn data_out(initiator_tag: u32, target_tag: u32, data_sn: u32, offset: u32, last: bool) -> Head {
    Head::new(DataOut {
        flags: if last { flag::FINAL } else { 0 },
        lun: [0; 8],
        initiator_tag,
        target_tag,
        exp_stat_sn: 1,
        data_sn,
        offset,
    })
}

pub fn write_cdb(lba: u64, blocks: u32) -> Cdb {
    Cdb::Write { lba, blocks, fua: false }
}

/// R2Ts among the outputs: tag, offset, length.
pub fn r2ts(outputs: &[Output]) -> Vec<(u32, u32, u32)> {
    let r2t = |output: &Output| match output {
        Output::Send { head: Head { header: Header::R2t(r2t), .. }, .. } => {
            Some((r2t.target_tag, r2t.offset, r2t.desired_bytes))
        }
        _ => None,
    };
    outputs.iter().filter_map(r2t).collect()
}

/// One line per output.
pub fn lines(outputs: &[Output]) -> String {
    let line = |output: &Output| match output {
        Output::Send { head, data } => match head.header {
            Header::ScsiResponse(response) => {
                let sense = sanloom_wire::iscsi::SenseSegment::parse(data).expect("a sense segment").sense;
                let sense = if sense.is_empty() {
                    String::new()
                } else {
                    format!(" sense {:x} {:02x}{:02x}", sense[2], sense[12], sense[13])
                };
                let residual = match response.flags {
                    flag::OVERFLOW => format!(" over {}", response.residual),
                    flag::UNDERFLOW => format!(" under {}", response.residual),
                    _ => String::new(),
                };
                format!("SCSI Response to {} status {:02x}{sense}{residual}", response.initiator_tag, response.status)
            }
            Header::TaskResponse(response) => format!(
                "Task Response to {}: {}",
                response.initiator_tag,
                sanloom_wire::iscsi::code::task_response::name(response.response).unwrap_or("?")
            ),
            Header::DataIn(data) => {
                let status =
                    if data.flags & flag::STATUS != 0 { format!(" status {:02x}", data.status) } else { String::new() };
                let last = if data.flags & flag::FINAL != 0 { " F" } else { "" };
                format!(
                    "Data-In {} #{} {}+{}{last}{status}",
                    data.initiator_tag, data.data_sn, data.offset, head.data_bytes
                )
            }
            Header::R2t(r2t) => {
                format!("R2T {} #{} {}+{}", r2t.initiator_tag, r2t.r2t_sn, r2t.offset, r2t.desired_bytes)
            }
            Header::Reject(reject) => format!("Reject: {}", reject.reason),
            _ => head.to_string(),
        },
        Output::Io(io) => format!("{:?} {}+{}", io.op, io.lba, io.blocks),
        Output::Cancel(_) => "buffer free".to_owned(),
        Output::Ends(ends) => format!("others: end tasks of unit {:?}", ends.unit),
        Output::Close(reason) => format!("close: {reason:?}"),
        other => format!("{other:?}"),
    };
    outputs.iter().map(|output| format!("      {}\n", line(output))).collect()
}

/// Parameters of a typical case.
pub fn parameters() -> Parameters {
    Parameters { initial_r2t: false, ..Parameters::default() }
}

/// Last status among the outputs: initiator task tag and SCSI status.
pub fn status(outputs: &[Output]) -> Option<(u32, u8)> {
    outputs.iter().rev().find_map(|output| match output {
        Output::Send { head, .. } => match head.header {
            Header::ScsiResponse(response) => Some((response.initiator_tag, response.status)),
            Header::DataIn(data) if data.flags & flag::STATUS != 0 => Some((data.initiator_tag, data.status)),
            _ => None,
        },
        _ => None,
    })
}

pub const UNSOLICITED: u32 = NO_TAG;
