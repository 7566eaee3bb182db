//! PDUs of targets as received by the initiator.

use super::{BLOCK, NAME, texts};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::chap::Credentials;
use sanloom_scsi::iscsi::initiator::{
    Command, Destination, Established, Input, Login, LoginConfig, Output, Session, SessionConfig, login,
};
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_scsi::scsi::DataDirection;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, Head, NO_TAG, at};
use std::collections::BTreeMap;

/// The first byte selects a login without a proof, a login with a proof of one or both sides, or a
/// session after the login.
pub fn initiator(data: &[u8]) {
    match data.split_first() {
        Some((first, rest)) if first & 1 == 0 => answers_to_a_login(first & 2 != 0, rest),
        Some((_, rest)) => _ = answered(rest),
        None => {}
    }
}

/// PDUs in the format of the target's `login`. A login ends in an error or in a session with valid
/// parameters. If a proof is required and missing, there is no session.
fn answers_to_a_login(proof: bool, data: &[u8]) {
    let secret = |name: &str| Credentials { name: name.into(), secret: format!("a secret of the {name}").into() };
    let config = LoginConfig {
        initiator: "iqn.2026-11.net.example:host".into(),
        target: Some(NAME.into()),
        isid: [0x80, 0, 0, 0, 0, 1],
        offers: Offers::default(),
        own: proof.then(|| secret("host")),
        target_proof: proof.then(|| secret("array")),
        challenge: [7; 16],
        timeout: Span::from_secs(5),
    };
    let mut ours = Login::new(Instant::ZERO, config);
    assert!(matches!(ours.poll_output(), Some(login::Output::Send { .. })));
    let status = |fields: u8| [fields >> 2 & 3, fields & 3];
    let mut over = false;
    for (head, text) in texts(data, |bhs, fields| {
        bhs.0[0] = 0x23;
        bhs.0[36..38].copy_from_slice(&status(fields));
    }) {
        ours.handle(Instant::ZERO, login::Input::Pdu { head, text: text.into() });
        let mut requests = 0;
        while let Some(output) = ours.poll_output() {
            assert!(!over, "output after the end: {output:?}");
            match output {
                login::Output::Send { text, .. } => {
                    assert!(text.len() <= 8 << 10, "a text of {} bytes", text.len());
                    requests += 1;
                }
                login::Output::Done(established) => {
                    assert!(!proof, "in though the target has not proved itself");
                    let Parameters { send_bytes, max_burst_bytes, first_burst_bytes, max_outstanding_r2t, .. } =
                        established.parameters;
                    let lengths = [send_bytes, max_burst_bytes, first_burst_bytes];
                    assert!(lengths.iter().all(|bytes| (512..1 << 24).contains(bytes)), "{lengths:?}");
                    assert!(first_burst_bytes <= max_burst_bytes && max_outstanding_r2t > 0);
                    over = true;
                }
                login::Output::Failed(_) => over = true,
            }
        }
        assert!(requests <= 1, "{requests} requests for one answer");
    }
}

/// Runs a session with a read, a write, a command without data and a reset in flight. Records of
/// six bytes are nearly valid PDUs (type, flags, tag, offset, status, length of the data that
/// follow). Accesses stay within the buffers, everything ends at most once, and nothing follows the
/// end of the session. Returns the number of commands that ended.
pub fn answered(data: &[u8]) -> usize {
    const READ_BYTES: u32 = 1024;
    const WRITE_BYTES: u32 = 4096;
    let parameters = Parameters { first_burst_bytes: 512, ..Parameters::default() };
    let (tsih, cmd_sn, max_cmd_sn, exp_stat_sn, portal_group) = (1, 1, 2, 1, None);
    let established = Established { tsih, parameters, cmd_sn, max_cmd_sn, exp_stat_sn, portal_group };
    let mut session = Session::new(Instant::ZERO, established, SessionConfig::default());
    let commands = [
        (Cdb::Read { lba: 0, blocks: READ_BYTES / BLOCK, fua: false }, DataDirection::Read, READ_BYTES),
        (Cdb::Write { lba: 0, blocks: WRITE_BYTES / BLOCK, fua: false }, DataDirection::Write, WRITE_BYTES),
        (Cdb::TestUnitReady, DataDirection::None, 0),
    ];
    let mut room = BTreeMap::new();
    let mut now = Instant::ZERO;
    for (id, (cdb, direction, bytes)) in (0..).zip(commands) {
        room.insert(id, bytes);
        let command = Command { id, lun: [0; 8], cdb: cdb.to_bytes(), direction, bytes };
        session.handle(now, Input::Submit(command));
    }
    session.handle(now, Input::Reset { id: 3, lun: [0; 8] });
    let mut ended = Vec::new();
    let mut over = false;
    let mut drain = |session: &mut Session| {
        while let Some(output) = session.poll_output() {
            assert!(!over, "output after the end: {output:?}");
            match output {
                Output::Data { id, head, at } => assert!(at + head.data_bytes <= room[&id], "{head} at {at}"),
                Output::Done { id, .. } => {
                    assert!(!ended.contains(&id), "{id} ends again");
                    ended.push(id);
                }
                Output::Broken(_) => over = true,
                Output::Send { .. } => {}
            }
        }
    };
    drain(&mut session);
    let mut rest = data;
    while let Some(([kind, flags, tag, place, status, length], behind)) = rest.split_first_chunk::<6>() {
        let (segment, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        let kinds = [0x21, 0x25, 0x25, 0x31, 0x31, 0x20, 0x22, 0x26, 0x32, 0x3f];
        let Some(opcode) = kinds.get(usize::from(kind & 0x0f)) else {
            now += Span::from_secs(u64::from(*place));
            session.handle(now, Input::Timeout);
            drain(&mut session);
            continue;
        };
        let mut bhs = Bhs([0; BHS_BYTES]);
        (bhs.0[0], bhs.0[1], bhs.0[3]) = (*opcode, *flags, *status);
        (bhs.0[2], bhs.0[36]) = (*status, *status);
        bhs.set_word(at::INITIATOR_TAG, u32::from(tag & 7));
        bhs.set_word(at::TARGET_TAG, if tag & 0x80 == 0 { NO_TAG } else { u32::from(*tag) });
        bhs.set_word(at::CMD_SN, u32::from(tag >> 3 & 7));
        bhs.set_word(at::EXP_SN, 2);
        bhs.set_word(at::MAX_CMD_SN, u32::from(flags & 0x0f));
        bhs.set_word(at::OFFSET, u32::from(*place) * 4);
        bhs.set_word(at::LENGTH, u32::from(*status) * 512);
        let head = Head { data_bytes: segment.len() as u32, ..Head::parse(&bhs.0) };
        session.handle(now, Input::Header(head));
        let intact = kind & 0x10 == 0;
        if !segment.is_empty() {
            let input = match session.destination() {
                Destination::Text => Input::Text { data: segment.into(), intact },
                Destination::Skip => Input::Segment { intact },
                Destination::Buffer { id, at } => {
                    assert!(at + head.data_bytes <= room[&id], "{head} at {at}");
                    Input::Segment { intact }
                }
            };
            session.handle(now, input);
        }
        drain(&mut session);
    }
    ended.len()
}
