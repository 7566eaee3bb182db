//! Target with one disk in memory and scripted faults, and the driver between it and the machine.

use sanloom_scsi::disk::{Command, Data, Disk, DiskConfig, Done, End, Error, Input, Op, Output, Reply, Request};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::{Cdb, operation, status};
use sanloom_wire::scsi::lba_status::{self, LbaStatus};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use std::collections::{BTreeMap, VecDeque};

pub const BLOCK: usize = 512;
pub const BLOCKS: u64 = 2048;

/// Properties of the disk, and its faults.
pub struct Target {
    pub medium: Vec<u8>,
    pub naa: [u8; 16],
    /// VPD pages by number.
    pub pages: BTreeMap<u8, Vec<u8>>,
    pub write_cache: bool,
    pub dpofua: bool,
    pub long_capacity: bool,
    pub write_same: bool,
    pub synchronize: bool,
    pub provisioned: bool,
    /// Scripted results for the next commands of any kind.
    pub script: VecDeque<End>,
}

pub fn good(data: Vec<u8>, transferred: usize) -> End {
    End::Status { status: status::GOOD, sense: Box::default(), transferred: transferred as u32, data: data.into() }
}

pub fn bare(status: u8) -> End {
    End::Status { status, sense: Box::default(), transferred: 0, data: Box::default() }
}

pub fn check(key: SenseKey, code: SenseCode) -> End {
    let sense = Sense::new(key, code).to_bytes();
    End::Status { status: status::CHECK_CONDITION, sense, transferred: 0, data: Box::default() }
}

pub fn attention(code: SenseCode) -> End {
    check(SenseKey::UNIT_ATTENTION, code)
}

impl Target {
    pub fn new() -> Target {
        let naa = *b"\x60\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07";
        let mut limits = vec![0; 60];
        // Transfers of at most 64 blocks, UNMAP of 100 blocks and one descriptor, WRITE SAME of
        // 1000.
        limits[4..8].copy_from_slice(&64_u32.to_be_bytes());
        limits[8..12].copy_from_slice(&8_u32.to_be_bytes());
        limits[16..20].copy_from_slice(&100_u32.to_be_bytes());
        limits[20..24].copy_from_slice(&1_u32.to_be_bytes());
        limits[32..40].copy_from_slice(&1000_u64.to_be_bytes());
        let pages = BTreeMap::from([
            (0x80, b"  serial-1 ".to_vec()),
            (0xb0, limits),
            (0xb1, vec![0, 1]),
            (0xb2, vec![0, 0xe4, 2, 0]),
        ]);
        Target {
            medium: vec![0x11; BLOCKS as usize * BLOCK],
            naa,
            pages,
            write_cache: false,
            dpofua: true,
            long_capacity: true,
            write_same: true,
            synchronize: true,
            provisioned: true,
            script: VecDeque::new(),
        }
    }

    fn execute(&mut self, command: &Command, buffers: &mut BTreeMap<u64, Vec<u8>>) -> End {
        let refused = || check(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_OPERATION);
        let answer = |mut data: Vec<u8>| {
            data.truncate(command.data.bytes() as usize);
            let transferred = data.len();
            good(data, transferred)
        };
        let cdb = &command.cdb;
        let long_lba = u64::from_be_bytes(cdb[2..10].try_into().unwrap()) as usize;
        let long_len = u32::from_be_bytes(cdb[10..14].try_into().unwrap()) as usize;
        match Cdb::parse(cdb) {
            Cdb::TestUnitReady => good(vec![], 0),
            Cdb::Inquiry { vpd_page: None, .. } => {
                answer([&[0, 0, 6, 2, 31, 0, 0, 2][..], b"MAKER   ", b"TEST DISK       ", b"0042"].concat())
            }
            Cdb::Inquiry { vpd_page: Some(0), .. } => {
                let list: Vec<u8> = [0, 0x83].into_iter().chain(self.pages.keys().copied()).collect();
                answer(vpd(0, &list))
            }
            Cdb::Inquiry { vpd_page: Some(0x83), .. } => {
                let port = [&[0x61, 0x93, 0, 8][..], &[0x50; 8]].concat();
                let unit = [&[0x01, 0x03, 0, 16][..], &self.naa].concat();
                let name = [&[0x02, 0x01, 0, 4][..], b"name"].concat();
                answer(vpd(0x83, &[port, name, unit].concat()))
            }
            Cdb::Inquiry { vpd_page: Some(page), .. } => match self.pages.get(&page) {
                Some(body) => answer(vpd(page, body)),
                None => check(SenseKey::ILLEGAL_REQUEST, SenseCode::INVALID_FIELD_IN_CDB),
            },
            Cdb::ReadCapacity16 { .. } if self.long_capacity => {
                let last = (self.medium.len() / BLOCK) as u64 - 1;
                let mut data = [&last.to_be_bytes()[..], &(BLOCK as u32).to_be_bytes()].concat();
                data.extend_from_slice(&[0, 3, if self.provisioned { 0xc0 } else { 0 }, 0]);
                data.resize(32, 0);
                answer(data)
            }
            Cdb::ReadCapacity10 => {
                let last = (self.medium.len() / BLOCK) as u32 - 1;
                answer([last.to_be_bytes(), (BLOCK as u32).to_be_bytes()].concat())
            }
            Cdb::Read { lba, blocks, .. } => {
                let Data::Buffer { tag, at, bytes, write: false } = command.data else { panic!("{command:?}") };
                assert_eq!(bytes, blocks * BLOCK as u32);
                let Some(data) = self.range(lba as usize, blocks as usize) else { return out_of_range() };
                let data = data.to_vec();
                buffers.get_mut(&tag).unwrap()[at as usize..][..data.len()].copy_from_slice(&data);
                good(vec![], data.len())
            }
            Cdb::Write { lba, blocks, .. } => {
                let data = match command.data {
                    Data::Buffer { tag, at, bytes, write: true } => {
                        buffers[&tag][at as usize..][..bytes as usize].to_vec()
                    }
                    Data::Zeroes { bytes } => vec![0; bytes as usize],
                    _ => panic!("{command:?}"),
                };
                assert_eq!(data.len(), blocks as usize * BLOCK);
                let Some(range) = self.range(lba as usize, blocks as usize) else { return out_of_range() };
                range.copy_from_slice(&data);
                good(vec![], data.len())
            }
            _ if cdb[0] == operation::MODE_SENSE_6 => {
                let specific = if self.dpofua { 0x10 } else { 0 };
                let page = [0x08, 0x12, if self.write_cache { 4 } else { 0 }];
                answer([&[23, 0, specific, 0][..], &page, &[0; 17]].concat())
            }
            _ if cdb[0] == operation::SYNCHRONIZE_CACHE_10 && self.synchronize => good(vec![], 0),
            _ if cdb[0] == operation::WRITE_SAME_16 && self.write_same => {
                assert_eq!(command.data, Data::Zeroes { bytes: BLOCK as u32 });
                self.range(long_lba, long_len).unwrap().fill(0);
                good(vec![], BLOCK)
            }
            _ if cdb[0] == operation::UNMAP && self.provisioned => {
                let Data::Out(list) = &command.data else { panic!("{command:?}") };
                let lba = u64::from_be_bytes(list[8..16].try_into().unwrap()) as usize;
                let blocks = u32::from_be_bytes(list[16..20].try_into().unwrap()) as usize;
                self.range(lba, blocks).unwrap().fill(0);
                good(vec![], list.len())
            }
            _ if cdb[..2] == [0x9e, 0x12] && self.provisioned => {
                let mut lba = long_lba as u64;
                let blocks: Vec<bool> =
                    self.medium[long_lba * BLOCK..].chunks(BLOCK).map(|block| block.iter().any(|b| *b != 0)).collect();
                let mut list = Vec::new();
                for run in blocks.chunk_by(|a, b| a == b) {
                    let provisioning = if run[0] { lba_status::MAPPED } else { lba_status::DEALLOCATED };
                    list.push(LbaStatus { lba, blocks: run.len() as u32, provisioning });
                    lba += run.len() as u64;
                }
                let mut data = Vec::new();
                lba_status::emit(&list, &mut data);
                answer(data)
            }
            _ => refused(),
        }
    }

    fn range(&mut self, lba: usize, blocks: usize) -> Option<&mut [u8]> {
        self.medium.get_mut(lba * BLOCK..(lba + blocks) * BLOCK)
    }
}

fn out_of_range() -> End {
    check(SenseKey::ILLEGAL_REQUEST, SenseCode::LBA_OUT_OF_RANGE)
}

fn vpd(page: u8, body: &[u8]) -> Vec<u8> {
    [&[0, page][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// Disk machine, target and driver.
pub struct Bed {
    pub disk: Disk,
    pub target: Target,
    pub now: Instant,
    pub buffers: BTreeMap<u64, Vec<u8>>,
    /// CDBs of the commands that were sent.
    pub sent: Vec<[u8; 16]>,
    /// Unanswered commands; with `hold`, every command waits here.
    pub open: Vec<Command>,
    pub hold: bool,
    pub done: BTreeMap<u64, Result<Done, Error>>,
    pub others: Vec<Output>,
}

impl Bed {
    pub fn new(config: DiskConfig, target: Target) -> Bed {
        Bed {
            disk: Disk::new(Instant::ZERO, config),
            target,
            now: Instant::ZERO,
            buffers: BTreeMap::new(),
            sent: Vec::new(),
            open: Vec::new(),
            hold: false,
            done: BTreeMap::new(),
            others: Vec::new(),
        }
    }

    /// Creates a disk that is ready, with no trace of its probe.
    pub fn ready(target: Target) -> Bed {
        Bed::ready_with(DiskConfig::default(), target)
    }

    pub fn ready_with(config: DiskConfig, target: Target) -> Bed {
        let mut bed = Bed::new(config, target);
        bed.handle(Input::PathUp);
        assert!(matches!(bed.others[..], [Output::Ready(_)]), "{:?}", bed.others);
        bed.others.clear();
        bed.sent.clear();
        bed
    }

    pub fn handle(&mut self, input: Input) {
        self.disk.handle(self.now, input);
        while let Some(output) = self.disk.poll_output() {
            match output {
                Output::Command(command) => {
                    self.sent.push(command.cdb);
                    self.open.push(command);
                }
                Output::Done { tag, result } => {
                    assert!(self.done.insert(tag, result).is_none(), "request {tag} ended twice");
                }
                other => self.others.push(other),
            }
        }
        if !self.hold && !self.open.is_empty() {
            self.answer(0);
        }
    }

    /// The target answers one of the open commands.
    pub fn answer(&mut self, index: usize) {
        let command = self.open.remove(index);
        let end = match self.target.script.pop_front() {
            Some(end) => end,
            None => self.target.execute(&command, &mut self.buffers),
        };
        self.reply(command.id, end);
    }

    pub fn reply(&mut self, id: u64, end: End) {
        self.handle(Input::Reply(Reply { id, end }));
    }

    pub fn submit(&mut self, tag: u64, op: Op, lba: u64, blocks: u32, fua: bool) {
        self.handle(Input::Submit(Request { tag, op, lba, blocks, fua }));
    }

    pub fn write(&mut self, tag: u64, lba: u64, blocks: u32, byte: u8) {
        self.buffers.insert(tag, vec![byte; blocks as usize * BLOCK]);
        self.submit(tag, Op::Write, lba, blocks, false);
    }

    pub fn read(&mut self, tag: u64, lba: u64, blocks: u32) {
        self.buffers.insert(tag, vec![0xee; blocks as usize * BLOCK]);
        self.submit(tag, Op::Read, lba, blocks, false);
    }

    /// Lets time pass and fires every timer of the machine.
    pub fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(at) = self.disk.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.handle(Input::Timeout);
        }
        self.now = end;
    }

    pub fn operations(&self) -> Vec<u8> {
        self.sent.iter().map(|cdb| cdb[0]).collect()
    }
}
