//! A minimal host for load: [`Station`] finds the FCF, logs in, and sends the given frames.

use super::Folder;
use sanloom_console::exit::Failure;
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::ports::EthernetPort;
use sanloom_live::sys::batch::BATCH;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, EtherType, MacAddr, readdress};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::header::MAX_DATA_FIELD_BYTES;
use sanloom_wire::login::Login;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn, fcoe};
use std::io;
use std::time::{Duration, Instant};

/// Time limit for every response.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const PORT: u64 = 0;

/// Response to a login.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// OX_ID of the request.
    pub ox_id: u16,
    /// Assigned N_Port_ID and Ethernet address; absent if the login was rejected.
    pub granted: Option<(FcId, MacAddr)>,
}

/// A host at an Ethernet port.
#[derive(Debug)]
pub struct Station {
    /// Ethernet port of the host.
    pub port: EthernetPort,
    /// Ethernet address of the host.
    mac: MacAddr,
    /// Ethernet address of the FCF.
    pub fcf: MacAddr,
    poller: Poller,
    pool: Pool,
    spare: Vec<FrameBuf>,
    scratch: Vec<u8>,
    clock: sanloom_live::clock::Clock,
}

/// Returns the port name that Linux derives from an Ethernet address.
fn name_of(mac: MacAddr) -> Wwpn {
    Wwpn(0x2000 << 48 | mac.to_u64())
}

impl Station {
    /// Creates a host at the other end of the sockets of a link, and waits until it has found the
    /// FCF.
    ///
    /// # Errors
    /// If no FCF advertises itself in time.
    pub fn start(folder: &Folder, link: &str, mac: MacAddr) -> Result<Station, Failure> {
        let own = format!("{link}.peer.sock");
        Station::at(folder.port(&own, &format!("{link}.sock")).map_err(Failure::environment)?, mac)
    }

    /// Creates a host at an Ethernet port, and waits until it has found the FCF.
    ///
    /// # Errors
    /// If no FCF advertises itself in time.
    pub fn at(port: EthernetPort, mac: MacAddr) -> Result<Station, Failure> {
        let mut pool = Pool::default();
        let mut station = Station {
            port,
            mac,
            fcf: MacAddr::ZERO,
            poller: Poller::new().map_err(Failure::environment)?,
            spare: (0..BATCH).map(|_| pool.take()).collect(),
            pool,
            scratch: Vec::new(),
            clock: sanloom_live::clock::Clock::start(),
        };
        let descriptors = vec![
            Descriptor::Mac(mac),
            Descriptor::Name(Wwnn(0x1000 << 48 | mac.to_u64())),
            Descriptor::MaxFcoeBytes(fcoe::MAX_PDU_BYTES as u16),
        ];
        let solicitation = Fip { operation: Operation::SOLICITATION, flags: flag::FPMA, descriptors };
        let begun = Instant::now();
        // The switch checks for its peers every 100 ms, and obtains a domain shortly after its
        // start.
        while station.fcf == MacAddr::ZERO {
            if begun.elapsed() > TIME_LIMIT {
                return Err(Failure::environment("the switch has sent no FIP advertisement"));
            }
            station.fip(MacAddr::ALL_FCFS, solicitation.clone());
            let until = Instant::now() + Duration::from_millis(200);
            while station.fcf == MacAddr::ZERO && Instant::now() < until {
                let mut found = None;
                station.receive(Duration::from_millis(50), |from, packet| {
                    if packet.operation == Operation::ADVERTISEMENT && packet.has(flag::AVAILABLE | flag::SOLICITED) {
                        found = Some(from);
                    }
                })?;
                station.fcf = found.unwrap_or_default();
            }
        }
        Ok(station)
    }

    /// Logs in, and waits for the response.
    ///
    /// # Errors
    /// If the login is rejected, or no response arrives.
    pub fn log_in(&mut self) -> Result<(FcId, MacAddr), Failure> {
        self.ask(LinkService::Flogi, name_of(self.mac), 0xffff - 1);
        let begun = Instant::now();
        while begun.elapsed() < TIME_LIMIT {
            if let Some(answer) = self.answers(Duration::from_millis(100))?.pop() {
                return answer.granted.ok_or_else(|| Failure::environment("the switch rejected the login"));
            }
        }
        Err(Failure::environment("the switch has not answered the login"))
    }

    /// Returns a full data frame of class 3 for another N_Port, as the host with this N_Port_ID and
    /// Ethernet address sends it.
    pub fn data_frame(&self, (s_id, mac): (FcId, MacAddr), d_id: FcId) -> FrameBuf {
        let header = Header {
            r_ctl: RCtl::SOLICITED_DATA,
            d_id,
            cs_ctl: 0,
            s_id,
            fc_type: FcType::FCP,
            f_ctl: FCtl::default(),
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 1,
            ox_id: 1,
            rx_id: 1,
            parameter: 0,
        };
        let mut frame = Pool::default().take();
        frame.fill_fcoe(&header, &[0xa5; MAX_DATA_FIELD_BYTES]);
        readdress(frame.bytes_mut(), self.fcf, mac);
        frame
    }

    /// Returns the keep-alives of the host and of its N_Port with this address, as FC-BB-5
    /// requires them in each period of the FCF.
    pub fn keep_alives(&self, (port_id, mac): (FcId, MacAddr)) -> Vec<FrameBuf> {
        let vn_port = Descriptor::VxPort { mac, port_id, port_name: name_of(self.mac) };
        let of_host = (self.mac, vec![Descriptor::Mac(self.mac)]);
        let of_port = (mac, vec![Descriptor::Mac(self.mac), vn_port]);
        let frame = |(from, descriptors)| {
            let packet = Fip { operation: Operation::KEEP_ALIVE, flags: flag::FPMA, descriptors };
            let mut buffer = Pool::default().take();
            buffer.compose(&mut Vec::new(), |out| {
                FipFrame { to: self.fcf, from, padded_bytes: 0, packet }.emit(None, out)
            });
            buffer
        };
        [of_host, of_port].map(frame).into()
    }

    /// Sends a FLOGI or FDISC with this port name.
    pub fn ask(&mut self, service: LinkService, name: Wwpn, ox_id: u16) {
        let login = Login::of_linux_host(name, Wwnn(0x1000 << 48 | self.mac.to_u64()));
        let message = Message::from(match service {
            LinkService::Fdisc => Els::Fdisc(login),
            _ => Els::Flogi(login),
        });
        let header = message.header(FcId::ZERO, FcId::F_PORT, ox_id, 0xffff);
        let frame = Box::new(Frame { header, payload: Payload::Typed(message) });
        let descriptors = vec![Descriptor::LinkService { service, frame }, Descriptor::Mac(MacAddr::ZERO)];
        self.fip(self.fcf, Fip { operation: Operation::LINK_SERVICE_REQUEST, flags: flag::FPMA, descriptors });
    }

    fn fip(&mut self, to: MacAddr, packet: Fip) {
        let frame = FipFrame { to, from: self.mac, padded_bytes: 0, packet };
        let mut buffer = self.pool.take();
        buffer.compose(&mut self.scratch, |out| frame.emit(None, out));
        self.port.push(self.clock.now(), buffer);
    }

    /// Sends queued frames, and returns the login responses that arrive within this time.
    ///
    /// # Errors
    /// If the port fails.
    pub fn answers(&mut self, wait: Duration) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::new();
        self.receive(wait, |_, packet| {
            if packet.operation != Operation::LINK_SERVICE_REPLY {
                return;
            }
            let Some((_, Frame { header, payload: Payload::Typed(Message::Els(els)) })) = packet.link_service() else {
                return;
            };
            let granted = match (&**els, packet.mac()) {
                (Els::LsAcc(LsAcc::Login(_)), Some(mac)) => Some((header.d_id, mac)),
                _ => None,
            };
            answers.push(Answer { ox_id: header.ox_id, granted });
        })?;
        Ok(answers)
    }

    /// Sends queued frames, and receives for this time. `take` is called with the sender and the
    /// payload of each FIP frame.
    fn receive(&mut self, wait: Duration, mut take: impl FnMut(MacAddr, &Fip)) -> Result<(), Failure> {
        if !self.port.has_peer() {
            self.port.check_peer();
        }
        if !self.port.egress.blocked {
            self.port.flush(&mut self.pool);
        }
        let interest = Interest { read: true, write: self.port.egress.blocked };
        self.poller.set(PORT, self.port.socket(), interest).map_err(Failure::environment)?;
        for event in self.poller.wait(wait).map_err(Failure::environment)? {
            self.port.egress.blocked &= !event.writable;
        }
        loop {
            let got = match self.port.receive(&mut self.spare) {
                Ok((got, _)) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Failure::environment(error)),
            };
            for frame in &self.spare[..got] {
                let Ok((EtherHeader { from, .. }, _)) = EtherHeader::parse(frame.bytes()) else { continue };
                if frame.ether_type() == Some(EtherType::FIP)
                    && let Ok(packet) = Fip::parse(&frame.bytes()[ETHER_BYTES..])
                {
                    take(from, &packet);
                }
            }
        }
    }
}
