//! Operations on a test bed outside of its script: PDUs that no session would send, other hosts,
//! and final checks.

use super::{Bed, Conn, Input, Shapes};
use crate::forward::served::Pdu;
use sanloom_scsi::iscsi::target::Output;
use sanloom_scsi::scsi::{Managed, Notice, TaskManagement};
use sanloom_wire::iscsi::{Head, Header, NO_TAG, TaskRequest};
use sanloom_wire::scsi::transport_id::TransportId;

impl Bed {
    /// Initiator task tag and number of the last command in transit from the host to the switch.
    pub fn last_command(&self) -> (u32, u32) {
        let commands = self.to_switch.iter().rev().filter_map(|(header, _)| match Head::parse(header).header {
            Header::ScsiCommand(command) => Some((command.initiator_tag, command.cmd_sn)),
            _ => None,
        });
        commands.into_iter().next().expect("a command")
    }

    /// Next PDU in transit from the host to the switch.
    pub fn next_of_host(&self) -> Option<Head> {
        self.to_switch.front().map(|(header, _)| Head::parse(header))
    }

    /// Sends a PDU that the host's session does not know; the switch processes it first.
    pub fn host_sends(&mut self, head: Head) {
        let pdu: Pdu = (head.to_bytes(), Vec::new());
        self.deliver_to_switch(Conn::Host, pdu);
        while self.streams.as_ref().is_some_and(|streams| streams.is_unread(Conn::Host)) {
            self.switch_reads(0);
        }
    }

    /// Sends a task management function of the host, after all its earlier PDUs.
    pub fn request_function(&mut self, function: u8) {
        self.functions += 1;
        let request = TaskRequest {
            function,
            lun: [0; 8],
            initiator_tag: 0x7000_0000 + self.functions as u32,
            referenced_tag: NO_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 1,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        };
        let head = Head { immediate: true, ..Head::new(request) };
        self.to_switch.push_back((head.to_bytes(), Vec::new()));
    }

    /// Ends the sessions of the host and of the back ends and logs in again, with the same media.
    pub fn logged_in_again(mut self, shapes: &Shapes, seed: u64) -> Bed {
        self.close();
        for back in 0..self.backs.len() as u8 {
            self.forward.end_lost_writes(back, &mut self.volumes);
        }
        self.end_jobs();
        assert!(self.volumes.is_idle(), "blocks are still locked");
        Bed { volumes: self.volumes, media: self.media, ..Bed::new(self.setup, shapes, seed) }
    }

    /// Delivers the next PDU of the host to the switch.
    pub fn host_once(&mut self) {
        let pdu = self.to_switch.pop_front().expect("a PDU of the host");
        self.deliver_to_switch(Conn::Host, pdu);
    }

    /// Delivers all PDUs for the host, without its answers.
    pub fn deliver_all_to_host(&mut self) {
        while let Some(pdu) = self.to_host.pop_front() {
            self.deliver_to_host(&pdu);
        }
    }

    /// Lets a back end complete all its commands, without delivery to the switch.
    pub fn back_does(&mut self, back: u8) {
        let number = usize::from(back);
        loop {
            let pdu = self.to_back[number].pop_front();
            let works = self.backs[number].as_ref().is_some_and(|served| !served.ios.is_empty());
            match (pdu, works) {
                (Some(pdu), _) => {
                    let now = self.now;
                    self.backs[number].as_mut().expect("it is there").receive(now, &pdu);
                    self.after_back(number);
                }
                (None, true) => self.back_works(number),
                (None, false) => return,
            }
        }
    }

    /// Delivers the next PDU of a back end to the switch.
    pub fn back_once(&mut self, back: u8) {
        let pdu = self.from_back[usize::from(back)].pop_front().expect("a PDU of the back end");
        self.deliver_to_switch(Conn::Back(back), pdu);
    }

    /// Headers in transit to a back end.
    pub fn in_transit(&self, back: u8) -> Vec<Head> {
        self.to_back[usize::from(back)].iter().map(|(header, _)| Head::parse(header)).collect()
    }

    /// Executes a function for another host that is logged in to the same port.
    pub fn another_host(&mut self, function: TaskManagement) {
        let other = TransportId::iscsi("iqn.2026-11.net.example:other", Some([9; 6]));
        let device = &mut self.front.device;
        let nexus = device.connect(0, other);
        let Managed::Complete(Some(ends)) = device.manage(nexus, Some(0), function) else { panic!("it ends tasks") };
        self.front.session.handle(self.now, Input::Notice(Notice::End(ends)), Some(&mut self.front.device));
        self.after_switch();
    }

    /// Ends the session of the host as its driver does; tasks at back ends stay.
    pub fn close(&mut self) {
        self.front.session.close(Some(&mut self.front.device));
        self.forward.close(&mut self.volumes);
    }

    /// Number of tasks in the host's session, and how many of them are forwarded.
    pub fn tasks(&self) -> [u32; 2] {
        [self.front.session.tasks() as u32, self.forward.tasks()]
    }

    /// Reasons to close the host's session, if there are any.
    pub fn to_be_closed(&self) -> &[Output] {
        &self.front.over
    }

    /// Content of the volume as stored on the media.
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

    /// Asserts that nothing is in flight anywhere.
    pub fn assert_idle(&self) {
        assert_eq!((self.host.commands(), self.front.session.tasks(), self.forward.tasks()), (0, 0, 0));
        assert!(self.volumes.is_idle(), "blocks are still locked");
        let map = self.volumes.map();
        assert_eq!(map.tasks(map.epoch(self.disks[0].unwrap()).unwrap()), Some(0));
        assert_eq!(self.front.device.active(0), 0);
        for served in self.backs.iter().flatten() {
            assert_eq!((served.session.tasks(), served.device.active(0)), (0, 0));
        }
        // A response to ABORT TASK may arrive after the command has ended.
        let unexpected = self.host.counters().unexpected;
        assert!(unexpected <= self.host.counters().aborted + self.functions, "PDUs about nothing");
        assert_eq!(self.host.counters().rejects, 0);
    }
}
