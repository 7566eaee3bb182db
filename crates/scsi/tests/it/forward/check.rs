//! External check of the guarantees to a host: [`Wire`] reads every PDU of a target (RFC 7143,
//! sections 4.2.2 and 11).

use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::sequence::before;
use sanloom_wire::cdb::status;
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, Header, NO_TAG, ScsiResponse};
use std::collections::BTreeMap;

#[derive(Default)]
struct Task {
    reads: bool,
    expected_bytes: u32,
    /// Data that the host has sent for the task, in bytes.
    sent_bytes: u32,
    data_sn: u32,
    offset: u32,
    burst: u32,
    r2t_end: u32,
}

impl Task {
    /// A failed command has moved as many bytes as its residual implies, wherever it failed.
    fn assert_residual(&self, response: &ScsiResponse) {
        let left = if response.flags & flag::UNDERFLOW == 0 { 0 } else { response.residual };
        let moved = self.expected_bytes - left;
        if self.reads {
            assert_eq!(moved, self.offset, "residual of a read: {response:?}");
        } else {
            assert!(moved <= self.sent_bytes, "residual of a write of {} bytes: {response:?}", self.sent_bytes);
        }
    }
}

pub struct Wire {
    /// Parameters from the host's point of view.
    parameters: Parameters,
    stat_sn: u32,
    max_cmd_sn: u32,
    tasks: BTreeMap<u32, Task>,
}

impl Wire {
    pub fn new(parameters: Parameters) -> Wire {
        Wire { parameters, stat_sn: 1, max_cmd_sn: 0, tasks: BTreeMap::new() }
    }

    fn status(&mut self, stat_sn: u32) {
        assert_eq!(stat_sn, self.stat_sn, "StatSN");
        self.stat_sn += 1;
    }

    fn window(&mut self, max_cmd_sn: u32) {
        assert!(!before(max_cmd_sn, self.max_cmd_sn), "MaxCmdSN goes back");
        self.max_cmd_sn = max_cmd_sn;
    }

    /// Records a PDU that the host sends.
    pub fn send(&mut self, head: &Head) {
        match head.header {
            Header::ScsiCommand(command) => {
                let (reads, expected_bytes) = (command.flags & flag::READ != 0, command.expected_bytes);
                let task = Task { reads, expected_bytes, sent_bytes: head.data_bytes, ..Task::default() };
                self.tasks.insert(command.initiator_tag, task);
            }
            Header::DataOut(data) => {
                if let Some(task) = self.tasks.get_mut(&data.initiator_tag) {
                    task.sent_bytes += head.data_bytes;
                }
            }
            _ => {}
        }
    }

    /// Checks a PDU that the host receives.
    pub fn see(&mut self, head: &Head) {
        assert!(head.data_bytes <= self.parameters.receive_bytes, "a segment of {} bytes", head.data_bytes);
        match head.header {
            Header::DataIn(data) => {
                self.window(data.max_cmd_sn);
                let burst = self.parameters.max_burst_bytes;
                let task = self.tasks.entry(data.initiator_tag).or_default();
                assert_eq!((data.data_sn, data.offset), (task.data_sn, task.offset), "DataSN and offset");
                assert_eq!(data.target_tag, NO_TAG);
                task.data_sn += 1;
                task.offset += head.data_bytes;
                task.burst += head.data_bytes;
                assert!(task.burst <= burst, "a burst of {} bytes", task.burst);
                if data.flags & flag::FINAL != 0 {
                    task.burst = 0;
                }
                if data.flags & flag::STATUS != 0 {
                    assert!(data.flags & flag::FINAL != 0);
                    self.tasks.remove(&data.initiator_tag);
                    self.status(data.stat_sn);
                }
            }
            Header::R2t(r2t) => {
                self.window(r2t.max_cmd_sn);
                assert_eq!(r2t.stat_sn, self.stat_sn);
                assert!(r2t.desired_bytes <= self.parameters.max_burst_bytes && r2t.desired_bytes > 0);
                let task = self.tasks.entry(r2t.initiator_tag).or_default();
                assert_eq!(r2t.r2t_sn, task.data_sn, "R2TSN");
                assert!(r2t.offset >= task.r2t_end, "R2Ts out of order");
                (task.data_sn, task.r2t_end) = (task.data_sn + 1, r2t.offset + r2t.desired_bytes);
            }
            Header::ScsiResponse(response) => {
                self.window(response.max_cmd_sn);
                self.status(response.stat_sn);
                let task = self.tasks.remove(&response.initiator_tag).unwrap_or_default();
                assert_eq!(response.exp_data_sn, task.data_sn, "ExpDataSN");
                if response.status == status::CHECK_CONDITION {
                    task.assert_residual(&response);
                }
            }
            Header::TaskResponse(response) => {
                self.window(response.max_cmd_sn);
                self.status(response.stat_sn);
            }
            Header::NopIn(nop) if nop.initiator_tag != NO_TAG => self.status(nop.stat_sn),
            Header::Reject(reject) => self.status(reject.stat_sn),
            _ => {}
        }
    }
}
