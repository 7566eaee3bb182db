//! A minimal peer of a switch's Ethernet port: [`RawPort`] logs in, and sends and receives frames
//! as bytes.

use crate::control::instance::Instance;
use sanloom_test_support::wait::TIMEOUT;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::header::{FCtl, FcType, RCtl};
use sanloom_wire::login::Login;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwnn, Wwpn, fcoe};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

/// A host at the end of a link.
pub struct RawPort {
    pub socket: UnixDatagram,
    /// MAC address of the forwarder.
    pub fcf: MacAddr,
    pub port_id: FcId,
    /// MAC address that the forwarder assigned.
    pub mac: MacAddr,
}

impl RawPort {
    /// Logs in through the sockets of a link.
    pub fn log_in(instance: &Instance, link: &str, number: u8) -> RawPort {
        RawPort::log_in_at(instance, [&format!("{link}.sock"), &format!("{link}.peer.sock")], number)
    }

    /// Logs in through the given sockets of the switch and of this port.
    pub fn log_in_at(instance: &Instance, [theirs, ours]: [&str; 2], number: u8) -> RawPort {
        let ours = instance.folder.join(ours);
        // A previous process may have left the socket file.
        let _ = std::fs::remove_file(&ours);
        let socket = UnixDatagram::bind(ours).unwrap();
        socket.connect(instance.folder.join(theirs)).unwrap();
        RawPort::over(socket, number)
    }

    /// Another host behind the same socket logs in.
    pub fn log_in_another(&self, number: u8) {
        RawPort::over(self.socket.try_clone().unwrap(), number);
    }

    fn over(socket: UnixDatagram, number: u8) -> RawPort {
        let own = MacAddr([0x52, 0x54, 0, 0, 0, number]);
        let (wwpn, wwnn) = (Wwpn(0x2000 << 48 | own.to_u64()), Wwnn(0x1000 << 48 | own.to_u64()));
        let mut port = RawPort { socket, fcf: MacAddr::ZERO, port_id: FcId::ZERO, mac: own };
        let descriptors =
            vec![Descriptor::Mac(own), Descriptor::Name(wwnn), Descriptor::MaxFcoeBytes(fcoe::MAX_PDU_BYTES as u16)];
        let solicitation = Fip { operation: Operation::SOLICITATION, flags: flag::FPMA, descriptors };
        // The switch detects this port at its next peer check; frames sent earlier are lost.
        port.fcf = port.ask(MacAddr::ALL_FCFS, &solicitation, |from, packet| {
            let usable = flag::AVAILABLE | flag::SOLICITED;
            (packet.operation == Operation::ADVERTISEMENT && packet.has(usable)).then_some(from)
        });
        let message = Message::from(Els::Flogi(Login::of_linux_host(wwpn, wwnn)));
        let header = message.header(FcId::ZERO, FcId::F_PORT, 1, 0xffff);
        let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
        let descriptors =
            vec![Descriptor::LinkService { service: LinkService::Flogi, frame }, Descriptor::Mac(MacAddr::ZERO)];
        let login = Fip { operation: Operation::LINK_SERVICE_REQUEST, flags: flag::FPMA, descriptors };
        let granted = port.ask(port.fcf, &login, |_, packet| {
            let (_, Frame { header, payload: Payload::Typed(Message::Els(els)) }) = packet.link_service()? else {
                return None;
            };
            matches!(**els, Els::LsAcc(LsAcc::Login(_))).then_some((header.d_id, packet.mac()?))
        });
        (port.port_id, port.mac) = granted;
        port
    }

    fn ask<T>(&self, to: MacAddr, packet: &Fip, answer: impl Fn(MacAddr, &Fip) -> Option<T>) -> T {
        let begun = Instant::now();
        let mut buffer = [0; 4_096];
        self.socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        while begun.elapsed() < TIMEOUT {
            let mut bytes = Vec::new();
            FipFrame { to, from: self.mac, padded_bytes: 0, packet: packet.clone() }.emit(None, &mut bytes);
            self.socket.send(&bytes).unwrap();
            while let Ok(got) = self.socket.recv(&mut buffer) {
                let Ok((EtherHeader { from, ether_type: EtherType::FIP, .. }, pdu)) =
                    EtherHeader::parse(&buffer[..got])
                else {
                    continue;
                };
                if let Some(answer) = Fip::parse(pdu).ok().and_then(|packet| answer(from, &packet)) {
                    return answer;
                }
            }
        }
        panic!("no answer to {packet:?}");
    }

    /// Maximum time until the switch clears our virtual link.
    pub fn receives_clear(&self, wait: Duration) -> bool {
        let begun = Instant::now();
        let mut buffer = [0; 4_096];
        self.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while begun.elapsed() < wait {
            let Ok(got) = self.socket.recv(&mut buffer) else { continue };
            let Ok((EtherHeader { ether_type: EtherType::FIP, .. }, pdu)) = EtherHeader::parse(&buffer[..got]) else {
                continue;
            };
            if Fip::parse(pdu).is_ok_and(|packet| packet.operation == Operation::CLEAR_VIRTUAL_LINKS) {
                return true;
            }
        }
        false
    }

    /// Sends a keep-alive for the host `number`.
    pub fn keep_alive(&self, number: u8) {
        let own = MacAddr([0x52, 0x54, 0, 0, 0, number]);
        let packet =
            Fip { operation: Operation::KEEP_ALIVE, flags: flag::FPMA, descriptors: vec![Descriptor::Mac(own)] };
        let mut bytes = Vec::new();
        FipFrame { to: self.fcf, from: own, padded_bytes: 0, packet }.emit(None, &mut bytes);
        self.socket.send(&bytes).unwrap();
    }

    /// Composes a data frame to another port that contains a number; `bytes` is the length of its
    /// data field.
    pub fn frame(&self, to: FcId, number: u32, bytes: usize) -> Vec<u8> {
        let header = Header {
            r_ctl: RCtl::SOLICITED_DATA,
            d_id: to,
            cs_ctl: 0,
            s_id: self.port_id,
            fc_type: FcType::FCP,
            f_ctl: FCtl::default(),
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 1,
            ox_id: 1,
            rx_id: 1,
            parameter: number,
        };
        let frame = Frame { header, payload: Payload::Bytes(vec![0xa5; bytes].into()) };
        let mut out = Vec::new();
        fcoe::encapsulate(self.fcf, self.mac, None, &frame, &mut out);
        out
    }

    /// Returns the next FCoE frame within this time. FIP frames are skipped.
    pub fn next(&self, wait: Duration) -> Option<Vec<u8>> {
        let begun = Instant::now();
        let mut buffer = [0; 4_096];
        while let Some(left) = wait.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left)).unwrap();
            match self.socket.recv(&mut buffer) {
                Ok(got) if buffer[12..14] == EtherType::FCOE.0.to_be_bytes() => return Some(buffer[..got].to_vec()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
                Err(error) => panic!("{error}"),
            }
        }
        None
    }
}

/// Number of a frame of [`RawPort::frame`].
pub fn number_of(frame: &[u8]) -> u32 {
    let pdu = fcoe::Fcoe::parse(&frame[ETHER_BYTES..]).unwrap();
    pdu.header().unwrap().parameter
}
