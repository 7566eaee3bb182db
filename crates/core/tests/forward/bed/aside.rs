//! What is done to a bed beside its script: PDUs that no session of its own would send, other hosts, and what is looked at in the end.

use super::{Bed, Conn, Input, Shapes};
use crate::served::Pdu;
use sanloom_core::iscsi::target::Output;
use sanloom_core::scsi::{Managed, Notice, TaskManagement};
use sanloom_wire::iscsi::{Head, Header, NO_TAG, TaskRequest};
use sanloom_wire::scsi::transport_id::TransportId;

impl Bed {
    /// Initiator task tag and number of the last command that the host has sent and the switch has not heard.
    pub fn last_command(&self) -> (u32, u32) {
        let commands =
            self.to_switch.iter().rev().filter_map(|(header, _)| match Head::parse(header).unwrap().header {
                Header::ScsiCommand(command) => Some((command.initiator_tag, command.cmd_sn)),
                _ => None,
            });
        commands.into_iter().next().expect("a command")
    }

    /// The next PDU that the host has sent and the switch has not heard.
    pub fn next_of_host(&self) -> Option<Head> {
        self.to_switch.front().map(|(header, _)| Head::parse(header).unwrap())
    }

    /// The host sends a PDU that its own session knows nothing of, and the switch hears it before anything else.
    pub fn host_says(&mut self, head: Head) {
        let pdu: Pdu = (head.to_bytes(), Vec::new());
        self.switch_hears(Conn::Host, pdu);
        while self.streams.as_ref().is_some_and(|streams| streams.is_unread(Conn::Host)) {
            self.switch_reads(0);
        }
    }

    /// The host asks for a function of its unit, behind everything that it has sent.
    pub fn ask(&mut self, function: u8) {
        self.asked += 1;
        let request = TaskRequest {
            function,
            lun: [0; 8],
            initiator_tag: 0x7000_0000 + self.asked as u32,
            referenced_tag: NO_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 1,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        };
        let head = Head { immediate: true, ..Head::new(request) };
        self.to_switch.push_back((head.to_bytes(), Vec::new()));
    }

    /// The session of the host is over, and so are those with back ends: everybody logs in again, and finds the same media.
    pub fn logged_in_again(mut self, shapes: &Shapes, seed: u64) -> Bed {
        self.close();
        for back in 0..self.backs.len() as u8 {
            self.forward.ended_at(back, &mut self.volumes);
        }
        self.end_jobs();
        assert!(self.volumes.is_idle(), "somebody still has blocks");
        Bed { volumes: self.volumes, media: self.media, ..Bed::new(self.way, shapes, seed) }
    }

    /// The next PDU of the host reaches the switch, and none behind it.
    pub fn host_once(&mut self) {
        let pdu = self.to_switch.pop_front().expect("a PDU of the host");
        self.switch_hears(Conn::Host, pdu);
    }

    /// What is for the host reaches it, and no answer the switch.
    pub fn host_hears_all(&mut self) {
        while let Some(pdu) = self.to_host.pop_front() {
            self.host_hears(&pdu);
        }
    }

    /// A back end has done all that it was asked for, and the switch has heard nothing of it.
    pub fn back_does(&mut self, back: u8) {
        let number = usize::from(back);
        loop {
            let pdu = self.to_back[number].pop_front();
            let works = self.backs[number].as_ref().is_some_and(|served| !served.ios.is_empty());
            match (pdu, works) {
                (Some(pdu), _) => {
                    let now = self.now;
                    self.backs[number].as_mut().expect("it is there").hear(now, &pdu);
                    self.after_back(number);
                }
                (None, true) => self.back_works(number),
                (None, false) => return,
            }
        }
    }

    /// The next PDU of a back end reaches the switch.
    pub fn back_once(&mut self, back: u8) {
        let pdu = self.from_back[usize::from(back)].pop_front().expect("a PDU of the back end");
        self.switch_hears(Conn::Back(back), pdu);
    }

    /// What is on its way to a back end.
    pub fn on_the_way(&self, back: u8) -> Vec<Head> {
        self.to_back[usize::from(back)].iter().map(|(header, _)| Head::parse(header).unwrap()).collect()
    }

    /// Another host, logged in to the same port, asks for a function.
    pub fn another_host(&mut self, function: TaskManagement) {
        let other = TransportId::iscsi("iqn.2026-11.net.example:other", Some([9; 6]));
        let device = &mut self.front.device;
        let nexus = device.connect(0, other);
        let Managed::Complete(Some(ends)) = device.manage(nexus, Some(0), function) else { panic!("it ends tasks") };
        self.front.session.handle(self.now, Input::Notice(Notice::End(ends)), Some(&mut self.front.device));
        self.after_switch();
    }

    /// The session of the host is over, as its driver ends it: what is left is a matter of the back ends.
    pub fn close(&mut self) {
        self.front.session.close(Some(&mut self.front.device));
        self.forward.close(&mut self.volumes);
    }

    /// Tasks of the host: of its session, and of them those that are forwarded.
    pub fn tasks(&self) -> [u32; 2] {
        [self.front.session.tasks() as u32, self.forward.tasks()]
    }

    /// Why the session of the host has to be closed, if it has to.
    pub fn to_be_closed(&self) -> &[Output] {
        &self.front.over
    }

    /// The blocks of the volume as they lie on the media.
    pub fn content(&mut self) -> Vec<u8> {
        let volume = self.disks[0].unwrap();
        let map = self.volumes.map();
        let epoch = map.epoch(volume).unwrap();
        let blocks = map.volume(volume).unwrap().layout.blocks();
        let pieces: Vec<_> = map.resolve(epoch, 0, blocks as u32).unwrap().collect();
        let mut content = Vec::new();
        for piece in pieces {
            for n in 0..u64::from(piece.blocks) {
                content.extend_from_slice(self.media[usize::from(piece.place.lun.0)].block(piece.place.lba + n));
            }
        }
        content
    }

    /// Nothing is under way anywhere.
    pub fn assert_idle(&self) {
        assert_eq!((self.host.commands(), self.front.session.tasks(), self.forward.tasks()), (0, 0, 0));
        assert!(self.volumes.is_idle(), "somebody still has blocks");
        let map = self.volumes.map();
        assert_eq!(map.tasks(map.epoch(self.disks[0].unwrap()).unwrap()), Some(0));
        assert_eq!(self.front.device.active(0), 0);
        for served in self.backs.iter().flatten() {
            assert_eq!((served.session.tasks(), served.device.active(0)), (0, 0));
        }
        // An answer to ABORT TASK may meet a command that has ended.
        let unexpected = self.host.counters().unexpected;
        assert!(unexpected <= self.host.counters().aborted + self.asked, "PDUs about nothing");
        assert_eq!(self.host.counters().rejects, 0);
    }
}
