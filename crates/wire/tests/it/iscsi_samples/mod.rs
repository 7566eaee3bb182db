//! One iSCSI header of every kind with its bytes, written by hand from RFC 7143, field by field.

use sanloom_wire::iscsi::code::{flag, function, logout, snack, stage};
use sanloom_wire::iscsi::*;

const LUN: [u8; 8] = [0, 5, 0, 0, 0, 0, 0, 0];
const ISID: [u8; 6] = [0x40, 0, 1, 0x37, 0, 9];
const READ_10: [u8; 16] = [0x28, 0, 0, 0, 0x10, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0];

fn immediate(header: impl Into<Header>) -> Head {
    Head { immediate: true, ..Head::new(header) }
}

/// Bytes in hexadecimal, and the expected value.
pub fn all() -> Vec<(&'static str, Head)> {
    vec![
        (
            "40800000 00000004 0005000000000000 00000007 ffffffff 00000010 00000020 00000000000000000000000000000000",
            Head {
                data_bytes: 4,
                ..immediate(NopOut { lun: LUN, initiator_tag: 7, target_tag: NO_TAG, cmd_sn: 16, exp_stat_sn: 32 })
            },
        ),
        (
            "01c10000 02000000 0005000000000000 00000008 00001000 00000011 00000021 28000000100000000800000000000000",
            Head {
                ahs_words: 2,
                ..Head::new(ScsiCommand {
                    flags: flag::FINAL | flag::READ | code::attribute::SIMPLE,
                    lun: LUN,
                    initiator_tag: 8,
                    expected_bytes: 4096,
                    cmd_sn: 17,
                    exp_stat_sn: 33,
                    cdb: READ_10,
                })
            },
        ),
        (
            "42810000 00000000 0005000000000000 00000009 00000008 00000012 00000021 00000011 00000003 0000000000000000",
            immediate(TaskRequest {
                function: function::ABORT_TASK,
                lun: LUN,
                initiator_tag: 9,
                referenced_tag: 8,
                cmd_sn: 18,
                exp_stat_sn: 33,
                ref_cmd_sn: 17,
                exp_data_sn: 3,
            }),
        ),
        (
            "43870000 00000123 400001370009 0000 00000001 00020000 00000001 00000000 00000000000000000000000000000000",
            Head {
                data_bytes: 0x123,
                ..immediate(LoginRequest {
                    flags: flag::TRANSIT | stage::OPERATIONAL << 2 | stage::FULL_FEATURE,
                    version_max: 0,
                    version_min: 0,
                    isid: ISID,
                    tsih: 0,
                    initiator_tag: 1,
                    cid: 2,
                    cmd_sn: 1,
                    exp_stat_sn: 0,
                })
            },
        ),
        (
            "04800000 00000010 0000000000000000 00000002 ffffffff 00000003 00000004 00000000000000000000000000000000",
            Head::with_data(
                TextRequest {
                    flags: flag::FINAL,
                    lun: [0; 8],
                    initiator_tag: 2,
                    target_tag: NO_TAG,
                    cmd_sn: 3,
                    exp_stat_sn: 4,
                },
                16,
            ),
        ),
        (
            "05800000 00000200 0005000000000000 0000000a 00000b00 00000000 00000022 00000000 00000001 00000400 00000000",
            Head::with_data(
                DataOut {
                    flags: flag::FINAL,
                    lun: LUN,
                    initiator_tag: 10,
                    target_tag: 0xb00,
                    exp_stat_sn: 34,
                    data_sn: 1,
                    offset: 1024,
                },
                512,
            ),
        ),
        (
            "46810000 00000000 0000000000000000 0000000b 00020000 00000013 00000023 00000000000000000000000000000000",
            immediate(LogoutRequest {
                reason: logout::CLOSE_CONNECTION,
                initiator_tag: 11,
                cid: 2,
                cmd_sn: 19,
                exp_stat_sn: 35,
            }),
        ),
        (
            "10810000 00000000 0000000000000000 ffffffff ffffffff 00000000 00000024 0000000000000000 00000005 00000001",
            Head::new(Snack {
                kind: snack::STATUS,
                lun: [0; 8],
                initiator_tag: NO_TAG,
                target_tag: NO_TAG,
                exp_stat_sn: 36,
                begin: 5,
                run: 1,
            }),
        ),
        (
            "20800000 00000000 0005000000000000 ffffffff 0000000c 00000025 00000014 00000034 000000000000000000000000",
            Head::new(NopIn {
                lun: LUN,
                initiator_tag: NO_TAG,
                target_tag: 12,
                stat_sn: 37,
                exp_cmd_sn: 20,
                max_cmd_sn: 52,
            }),
        ),
        (
            "21820002 00000014 0000000000000000 0000000d 00000000 00000026 00000015 00000035 00000002 00000000 00000200",
            Head::with_data(
                ScsiResponse {
                    flags: flag::UNDERFLOW,
                    response: code::response::COMPLETED,
                    status: 2,
                    initiator_tag: 13,
                    snack_tag: 0,
                    stat_sn: 38,
                    exp_cmd_sn: 21,
                    max_cmd_sn: 53,
                    exp_data_sn: 2,
                    read_residual: 0,
                    residual: 512,
                },
                20,
            ),
        ),
        (
            "22800100 00000000 0000000000000000 00000009 00000000 00000027 00000016 00000036 000000000000000000000000",
            Head::new(TaskResponse {
                response: code::task_response::NO_TASK,
                initiator_tag: 9,
                stat_sn: 39,
                exp_cmd_sn: 22,
                max_cmd_sn: 54,
            }),
        ),
        (
            "23870000 00000000 400001370009 0003 00000001 00000000 00000028 00000017 00000037 0201 000000000000 00000000",
            Head::new(LoginResponse {
                flags: flag::TRANSIT | stage::OPERATIONAL << 2 | stage::FULL_FEATURE,
                version_max: 0,
                version_active: 0,
                isid: ISID,
                tsih: 3,
                initiator_tag: 1,
                stat_sn: 40,
                exp_cmd_sn: 23,
                max_cmd_sn: 55,
                status: LoginStatus::AUTHENTICATION_FAILURE,
            }),
        ),
        (
            "24400000 00000008 0000000000000000 00000002 0000000e 00000029 00000018 00000038 000000000000000000000000",
            Head::with_data(
                TextResponse {
                    flags: flag::CONTINUE,
                    lun: [0; 8],
                    initiator_tag: 2,
                    target_tag: 14,
                    stat_sn: 41,
                    exp_cmd_sn: 24,
                    max_cmd_sn: 56,
                },
                8,
            ),
        ),
        (
            "25830000 00000200 0000000000000000 0000000f ffffffff 0000002a 00000019 00000039 00000003 00000600 00000800",
            Head::with_data(
                DataIn {
                    flags: flag::FINAL | flag::UNDERFLOW | flag::STATUS,
                    status: 0,
                    lun: [0; 8],
                    initiator_tag: 15,
                    target_tag: NO_TAG,
                    stat_sn: 42,
                    exp_cmd_sn: 25,
                    max_cmd_sn: 57,
                    data_sn: 3,
                    offset: 1536,
                    residual: 2048,
                },
                512,
            ),
        ),
        (
            "26800000 00000000 0000000000000000 0000000b 00000000 0000002b 0000001a 0000003a 00000000 00020014 00000000",
            Head::new(LogoutResponse {
                response: code::logout_response::CLOSED,
                initiator_tag: 11,
                stat_sn: 43,
                exp_cmd_sn: 26,
                max_cmd_sn: 58,
                time_to_wait: 2,
                time_to_retain: 20,
            }),
        ),
        (
            "31800000 00000000 0005000000000000 0000000a 00000b00 0000002c 0000001b 0000003b 00000000 00000400 00010000",
            Head::new(R2t {
                lun: LUN,
                initiator_tag: 10,
                target_tag: 0xb00,
                stat_sn: 44,
                exp_cmd_sn: 27,
                max_cmd_sn: 59,
                r2t_sn: 0,
                offset: 1024,
                desired_bytes: 65536,
            }),
        ),
        (
            "32800000 00000000 0000000000000000 ffffffff 00000000 0000002d 0000001c 0000003c 01000000 0000001e 00000000",
            Head::new(AsyncMessage {
                lun: [0; 8],
                initiator_tag: NO_TAG,
                stat_sn: 45,
                exp_cmd_sn: 28,
                max_cmd_sn: 60,
                event: AsyncEvent::LOGOUT,
                vendor_code: 0,
                parameter1: 0,
                parameter2: 0,
                parameter3: 30,
            }),
        ),
        (
            "3f800400 00000030 0000000000000000 ffffffff 00000000 0000002e 0000001d 0000003d 00000001 0000000000000000",
            Head::with_data(
                Reject {
                    reason: RejectReason::PROTOCOL_ERROR,
                    initiator_tag: NO_TAG,
                    stat_sn: 46,
                    exp_cmd_sn: 29,
                    max_cmd_sn: 61,
                    data_sn: 1,
                },
                48,
            ),
        ),
    ]
}
