//! NOP, logout and rejects (RFC 7143, sections 11.14 to 11.19).

use super::session::{CloseReason, Session};
use crate::iscsi::sequence::UNNUMBERED;
use sanloom_wire::iscsi::code::{logout, logout_response};
use sanloom_wire::iscsi::{Head, LogoutRequest, LogoutResponse, NO_TAG, NopIn, NopOut, Reject, RejectReason};

impl Session {
    /// NOP-Out: echoed, unless it is the answer to our own NOP-In.
    pub(super) fn on_nop(&mut self, nop: &NopOut, data: &[u8]) {
        if nop.initiator_tag == NO_TAG {
            return;
        }
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let echo = &data[..data.len().min(self.parameters.send_bytes as usize)];
        let initiator_tag = nop.initiator_tag;
        let answer = NopIn { lun: nop.lun, initiator_tag, target_tag: NO_TAG, stat_sn, exp_cmd_sn, max_cmd_sn };
        self.send(answer, echo.into());
    }

    /// Logout: the session has one connection, so its end is the end of both.
    pub(super) fn on_logout(&mut self, request: &LogoutRequest) {
        let response = match request.reason {
            logout::CLOSE_SESSION => logout_response::CLOSED,
            logout::CLOSE_CONNECTION if request.cid == self.cid => logout_response::CLOSED,
            logout::CLOSE_CONNECTION => logout_response::NO_CONNECTION,
            _ => logout_response::NO_RECOVERY,
        };
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let answer = LogoutResponse {
            response,
            initiator_tag: request.initiator_tag,
            stat_sn,
            exp_cmd_sn,
            max_cmd_sn,
            time_to_wait: self.parameters.time_to_wait,
            time_to_retain: 0,
        };
        self.send(answer, Box::default());
        if response == logout_response::CLOSED {
            self.shut(CloseReason::Logout);
        }
    }

    /// A PDU is not taken; its header goes back.
    pub(super) fn reject(&mut self, head: &Head, reason: RejectReason) {
        self.counters.rejects += 1;
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let answer = Reject { reason, initiator_tag: NO_TAG, stat_sn, exp_cmd_sn, max_cmd_sn, data_sn: 0 };
        self.send(answer, head.to_bytes().into());
    }
}
