//! NOP, logout and asynchronous messages (RFC 7143, sections 11.9, 11.14, 11.15, 11.18 and 11.19).

use super::event::CloseReason;
use super::keepalive::LOGOUT_SECONDS;
use super::session::Session;
use crate::iscsi::sequence::UNNUMBERED;
use crate::time::Instant;
use sanloom_wire::iscsi::code::{logout, logout_response};
use sanloom_wire::iscsi::{AsyncEvent, AsyncMessage, LogoutRequest, LogoutResponse, NO_TAG, NopIn, NopOut};

impl Session {
    /// Handles NOP-Out: echoes it, unless it is the reply to a NOP-In of this target.
    pub(super) fn on_nop(&mut self, nop: &NopOut, data: &[u8]) {
        if nop.initiator_tag == NO_TAG {
            return;
        }
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.engine.window.numbers();
        let echo = &data[..data.len().min(self.parameters().send_bytes as usize)];
        let initiator_tag = nop.initiator_tag;
        let answer = NopIn { lun: nop.lun, initiator_tag, target_tag: NO_TAG, stat_sn, exp_cmd_sn, max_cmd_sn };
        self.engine.out.send(answer, echo.into());
    }

    /// Sends a NOP-In that the initiator has to answer.
    pub(super) fn ping(&mut self) {
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.engine.window.numbers();
        let nop = NopIn { lun: [0; 8], initiator_tag: NO_TAG, target_tag: 0, stat_sn, exp_cmd_sn, max_cmd_sn };
        self.engine.out.send(nop, Box::default());
    }

    /// Handles a logout. Because the session has one connection, either reason ends both.
    pub(super) fn on_logout(&mut self, request: &LogoutRequest) {
        let response = match request.reason {
            logout::CLOSE_SESSION => logout_response::CLOSED,
            logout::CLOSE_CONNECTION if request.cid == self.cid => logout_response::CLOSED,
            logout::CLOSE_CONNECTION => logout_response::NO_CONNECTION,
            _ => logout_response::NO_RECOVERY,
        };
        let stat_sn = UNNUMBERED;
        let (exp_cmd_sn, max_cmd_sn) = self.engine.window.numbers();
        let answer = LogoutResponse {
            response,
            initiator_tag: request.initiator_tag,
            stat_sn,
            exp_cmd_sn,
            max_cmd_sn,
            time_to_wait: self.parameters().time_to_wait,
            time_to_retain: 0,
        };
        self.engine.out.send(answer, Box::default());
        if response == logout_response::CLOSED {
            self.end(CloseReason::Logout);
        }
    }

    /// Requests a logout because the target is shutting down.
    pub(super) fn request_logout(&mut self, now: Instant) {
        if !self.keepalive.start_logout(now) {
            return;
        }
        let (exp_cmd_sn, max_cmd_sn) = self.engine.window.numbers();
        let message = AsyncMessage {
            lun: [0; 8],
            initiator_tag: NO_TAG,
            stat_sn: UNNUMBERED,
            exp_cmd_sn,
            max_cmd_sn,
            event: AsyncEvent::LOGOUT,
            vendor_code: 0,
            parameter1: 0,
            parameter2: 0,
            parameter3: LOGOUT_SECONDS,
        };
        self.engine.out.send(message, Box::default());
    }
}
