//! A minimal host that composes its PDUs as bytes: [`Host`]; and resource usage of a process.

use crate::iscsi::raw::{pdu, read_pdu};
use crate::iscsi_switch::bed::{HOSTS_TARGET, Switch};
use sanloom_test_support::wait::{self, TIMEOUT};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

pub const BLOCK: usize = 512;

/// A minimal iSCSI host.
pub struct Host {
    pub connection: TcpStream,
    /// Number of the next command.
    pub number: u32,
    /// Logical unit of its commands.
    pub lun: u8,
    /// Received data of in-flight commands, by task tag, because PDUs of several commands may
    /// interleave.
    data: BTreeMap<[u8; 4], Vec<u8>>,
}

impl Host {
    /// Logs in with this part of its session identifier.
    pub fn log_in(portal: &str, session: u16) -> Host {
        Host::log_in_to(portal, HOSTS_TARGET, session, "")
    }

    /// The same to another target, with more keys.
    pub fn log_in_to(portal: &str, target: &str, session: u16, keys: &str) -> Host {
        Host::try_log_in(portal, target, session, keys).unwrap()
    }

    /// Logs in if the portal accepts the connection.
    pub fn try_log_in(portal: &str, target: &str, session: u16, keys: &str) -> io::Result<Host> {
        let mut connection = TcpStream::connect(portal)?;
        connection.set_nodelay(true).unwrap();
        connection.set_read_timeout(Some(TIMEOUT)).unwrap();
        let names = format!("InitiatorName=iqn.2026-11.net.example:raw\0TargetName={target}\0{keys}");
        let text = names + "InitialR2T=No\0ImmediateData=Yes\0MaxRecvDataSegmentLength=262144\0";
        let [high, low] = session.to_be_bytes();
        let isid = [0x80, 0, 0, 1, high, low];
        let login = pdu(&[(0, &[0x43, 0x87]), (8, &isid), (19, &[1]), (27, &[1])], text.as_bytes());
        connection.write_all(&login)?;
        let answer = read_pdu(&mut connection)?;
        assert_eq!((answer[0], answer[1], answer[36]), (0x23, 0x87, 0), "{answer:02x?}");
        Ok(Host { connection, number: 1, lun: 0, data: BTreeMap::new() })
    }

    /// Logs in and waits until commands are forwarded, if the lab of the switch permits it.
    pub fn ready(switch: &Switch<'_>, portal: &str, session: u16) -> Host {
        let mut host = Host::log_in(portal, session);
        host.until_good(|host| host.send(0x80, 0, &[0; 6], &[]));
        switch.wait_for_forwarding_of(HOSTS_TARGET, &Host::isid(session));
        host
    }

    /// Initiator session identifier with this part, in hexadecimal digits.
    pub fn isid(session: u16) -> String {
        format!("80000001{session:04x}")
    }

    /// Sends a command with these flags, expected length and immediate data. If the switch has
    /// closed the connection, the read of the response fails.
    pub fn send(&mut self, flags: u8, bytes: usize, cdb: &[u8], data: &[u8]) {
        let number = self.number.to_be_bytes();
        self.number += 1;
        let expected = (bytes as u32).to_be_bytes();
        let fields: [(usize, &[u8]); 6] =
            [(0, &[0x01, flags | 1]), (9, &[self.lun]), (16, &number), (20, &expected), (24, &number), (32, cdb)];
        match self.connection.write_all(&pdu(&fields, data)) {
            Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                panic!("{error}")
            }
            _ => {}
        }
    }

    /// READ(10).
    pub fn read(&mut self, lba: u32, blocks: u16) {
        let ([a, b, c, d], [high, low]) = (lba.to_be_bytes(), blocks.to_be_bytes());
        self.send(0xc0, usize::from(blocks) * BLOCK, &[0x28, 0, a, b, c, d, 0, high, low, 0], &[]);
    }

    /// WRITE(10), all data immediate.
    pub fn write(&mut self, lba: u32, data: &[u8]) {
        let ([a, b, c, d], [high, low]) = (lba.to_be_bytes(), ((data.len() / BLOCK) as u16).to_be_bytes());
        self.send(0xa0, data.len(), &[0x2a, 0, a, b, c, d, 0, high, low, 0], data);
    }

    /// Replaces `old` by `new`.
    pub fn compare_and_write(&mut self, lba: u32, old: u8, new: u8) {
        let [a, b, c, d] = lba.to_be_bytes();
        let data = [[old; BLOCK], [new; BLOCK]].concat();
        self.send(0xa0, data.len(), &[0x89, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 1, 0, 0], &data);
    }

    /// Sends a task management function that does not refer to a task.
    pub fn ask(&mut self, function: u8) {
        let number = self.number.to_be_bytes();
        let fields: [(usize, &[u8]); 4] =
            [(0, &[0x42, 0x80 | function]), (16, &[0xf0, 0, 0, function]), (20, &[0xff; 4]), (24, &number)];
        self.connection.write_all(&pdu(&fields, &[])).unwrap();
    }

    /// ABORT TASK of the last command.
    pub fn abort(&mut self) {
        let (task, number) = ((self.number - 1).to_be_bytes(), self.number.to_be_bytes());
        let fields: [(usize, &[u8]); 5] =
            [(0, &[0x42, 0x81]), (16, &[0xf0, 0, 0, 1]), (20, &task), (24, &number), (32, &task)];
        self.connection.write_all(&pdu(&fields, &[])).unwrap();
    }

    /// Returns the result, if the connection exists for that long.
    pub fn function_response(&mut self) -> Option<u8> {
        loop {
            let received = read_pdu(&mut self.connection).ok()?;
            if received[0] == 0x22 {
                return Some(received[2]);
            }
        }
    }

    /// Requires that the switch closes the connection, after any further PDUs.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match read_pdu(&mut self.connection) {
                Ok(_) => {}
                Err(error) => return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
        }
    }

    /// Returns status and data of the next completed command.
    pub fn answer(&mut self) -> (u8, Vec<u8>) {
        self.try_answer().unwrap()
    }

    /// The same, with the error of a connection that the switch has closed.
    pub fn try_answer(&mut self) -> io::Result<(u8, Vec<u8>)> {
        self.tagged_answer().map(|(_, status, data)| (status, data))
    }

    /// The same, with the [`number`](Self::number) of the command.
    pub fn tagged_answer(&mut self) -> io::Result<(u32, u8, Vec<u8>)> {
        loop {
            let received = read_pdu(&mut self.connection)?;
            let (tag, flags, status) = (received[16..20].try_into().unwrap(), received[1], received[3]);
            if received[0] == 0x25 {
                let data = self.data.entry(tag).or_default();
                let [len, at] = [[0, received[5], received[6], received[7]], received[40..44].try_into().unwrap()];
                assert_eq!(u32::from_be_bytes(at) as usize, data.len(), "{:02x?}", &received[..48]);
                data.extend_from_slice(&received[48..48 + u32::from_be_bytes(len) as usize]);
            }
            if received[0] == 0x21 || (received[0] == 0x25 && flags & 1 != 0) {
                return Ok((u32::from_be_bytes(tag), status, self.data.remove(&tag).unwrap_or_default()));
            }
        }
    }

    /// Returns the status of the next completed command, with sense key, code and qualifier if it
    /// has sense data.
    pub fn verdict(&mut self) -> (u8, [u8; 3]) {
        loop {
            let received = read_pdu(&mut self.connection).unwrap();
            match (received[0], received[1] & 1) {
                (0x21, _) => return (received[3], sense(&received)),
                (0x25, 1) => return (received[3], [0; 3]),
                _ => {}
            }
        }
    }

    /// Repeats the command until it succeeds; first responses may be a unit attention or BUSY.
    pub fn until_good(&mut self, command: impl Fn(&mut Host)) -> Vec<u8> {
        let last = Cell::new(0);
        wait::value(
            || format!("status {:#x}", last.get()),
            || {
                command(self);
                let (status, data) = self.answer();
                last.set(status);
                (status == 0).then_some(data)
            },
        )
    }

    /// Requires that blocks contain this byte, and still do so when they are read again: no earlier
    /// write of them arrives later. Its data have arrived before the call.
    pub fn assert_stays(&mut self, lba: u32, blocks: u16, byte: u8) {
        for _ in 0..8 {
            let found = self.until_good(|host| host.read(lba, blocks));
            assert!(found.iter().all(|one| *one == byte), "{:#x} instead of {byte:#x}", found[0]);
        }
    }
}

/// Sense key, code and qualifier of a SCSI Response; zeros without sense data.
pub fn sense(response: &[u8]) -> [u8; 3] {
    match response.get(48..) {
        // Sense data follow their length.
        Some(data) if data.len() > 15 => [data[4] & 0x0f, data[14], data[15]],
        _ => [0; 3],
    }
}

/// Memory of a process in KiB.
pub fn memory(id: u32) -> u64 {
    of_status(id, "VmRSS:")
}

/// Peak memory of a process since [`forget_most`], in KiB.
pub fn most_memory(id: u32) -> u64 {
    of_status(id, "VmHWM:")
}

/// Resets the peak to the current memory.
pub fn forget_most(id: u32) {
    fs::write(format!("/proc/{id}/clear_refs"), "5").unwrap();
}

fn of_status(id: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
