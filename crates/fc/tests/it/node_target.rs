//! FCP target, message by message: answers to valid, invalid and late commands.

use sanloom_fc::exchange::{Accepted, DataFrame};
use sanloom_fc::fcp::target::{self, FcpTargetConfig, Input, Output};
use sanloom_scsi::scsi::{Device, DeviceConfig, Io, IoOp, IoStatus, PortConfig, PortName, UnitConfig};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::bls::Bls;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::els::{Els, ExchangeRef};
use sanloom_wire::fcp::{FcpCmnd, FcpRsp, FcpXferRdy, Residual, response, task_management};
use sanloom_wire::sense::{Sense, SenseCode};
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl, Wwnn, Wwpn, lun};

const TARGET: FcId = FcId::new(0x010200);
const HOST: FcId = FcId::new(0x010100);
const OTHER_HOST: FcId = FcId::new(0x010300);
const BLOCKS: u64 = 1000;
const PORT_NAME: Wwpn = Wwpn(0x5100_0000_0000_0001);

/// Target port with its device.
struct FcpTarget {
    port: target::FcpTarget,
    device: Device,
}

impl FcpTarget {
    fn handle(&mut self, now: Instant, input: Input) {
        self.port.handle(now, input, &mut self.device);
    }
}

impl std::ops::Deref for FcpTarget {
    type Target = target::FcpTarget;
    fn deref(&self) -> &target::FcpTarget {
        &self.port
    }
}

impl std::ops::DerefMut for FcpTarget {
    fn deref_mut(&mut self) -> &mut target::FcpTarget {
        &mut self.port
    }
}

fn target() -> FcpTarget {
    target_with(8)
}

fn target_with(max_exchanges: u16) -> FcpTarget {
    target_with_timeout(max_exchanges, Span::from_secs(2))
}

fn target_with_timeout(max_exchanges: u16, e_d_tov: Span) -> FcpTarget {
    let port = target::FcpTarget::new(FcpTargetConfig {
        e_d_tov,
        r_a_tov: Span::from_secs(10),
        max_burst_bytes: 8192,
        max_exchanges,
        in_order: true,
        port: 0,
        port_name: PORT_NAME,
    });
    let device = Device::new(DeviceConfig {
        wwnn: Wwnn(0x5000_0000_0000_0001),
        ports: vec![PortConfig { name: PortName::Fcp(PORT_NAME), group: 0 }],
        units: vec![UnitConfig::new(BLOCKS, 512); 2],
        ..DeviceConfig::default()
    });
    let mut target = FcpTarget { port, device };
    target.handle(Instant::ZERO, Input::LocalId(TARGET));
    for port_id in [HOST, OTHER_HOST] {
        target.handle(Instant::ZERO, Input::LoginUp { port_id, port_name: name_of(port_id), frame_size_bytes: 2048 });
    }
    target
}

fn name_of(port_id: FcId) -> Wwpn {
    Wwpn(0x2000_0000_0000_0000 | u64::from(port_id.to_u32()))
}

fn command(cdb: Cdb, flags: u8, data_len: u32) -> FcpCmnd {
    FcpCmnd { lun: [0; 8], crn: 0, attribute: 0, task_management: 0, flags, cdb: cdb.to_bytes(), data_len }
}

fn read(lba: u64, blocks: u32, data_len: u32) -> FcpCmnd {
    command(Cdb::Read { lba, blocks, fua: false }, FcpCmnd::READ, data_len)
}

fn write(lba: u64, blocks: u32, data_len: u32) -> FcpCmnd {
    command(Cdb::Write { lba, blocks, fua: false }, FcpCmnd::WRITE, data_len)
}

fn frame(s_id: FcId, ox_id: u16, message: Message) -> Input {
    let header = message.header(s_id, TARGET, ox_id, 0xffff);
    Input::Frame(Frame { header, payload: Payload::Typed(message) })
}

fn outputs(target: &mut FcpTarget) -> Vec<Output> {
    std::iter::from_fn(|| target.poll_output()).collect()
}

fn handle(target: &mut FcpTarget, now: Instant, input: Input) -> Vec<Output> {
    target.handle(now, input);
    outputs(target)
}

fn submit(target: &mut FcpTarget, command: FcpCmnd) -> Vec<Output> {
    handle(target, Instant::ZERO, frame(HOST, 7, Message::FcpCmnd(command)))
}

fn io(outputs: &[Output]) -> Io {
    match outputs {
        [Output::Io(io)] => *io,
        other => unreachable!("expected only an I/O, not {other:?}"),
    }
}

/// Bytes of the data frames, and the response that follows them.
fn answer(outputs: &[Output]) -> (Vec<u8>, FcpRsp) {
    let mut data = Vec::new();
    for output in outputs {
        match output {
            Output::Send(Frame { payload: Payload::Bytes(bytes), .. }) => data.extend_from_slice(bytes),
            Output::Send(Frame { payload: Payload::Typed(Message::FcpRsp(response)), .. }) => {
                return (data, response.clone());
            }
            _ => {}
        }
    }
    unreachable!("no response in {outputs:?}")
}

fn sense_code(outputs: &[Output]) -> SenseCode {
    let (_, response) = answer(outputs);
    assert_eq!(response.status, status::CHECK_CONDITION);
    Sense::parse(&response.sense.expect("sense")).expect("fixed format").code
}

#[test]
fn a_read_is_an_io_then_data_then_a_response() {
    let mut target = target();
    let io = io(&submit(&mut target, read(10, 8, 4096)));
    assert_eq!((io.unit, io.op, io.lba, io.blocks, io.bytes), (0, IoOp::Read, 10, 8, 4096));
    let outputs = handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::Good });
    let [Output::Transmit(sequence), Output::Send(response)] = outputs.as_slice() else { unreachable!("{outputs:?}") };
    let mut sequence = *sequence;
    assert_eq!((sequence.s_id, sequence.d_id, sequence.ox_id), (TARGET, HOST, 7));
    assert_eq!(sequence.next_frame(), Some(DataFrame { seq_cnt: 0, offset: 0, len: 2048, last: false }));
    assert_eq!(response.header.seq_id, sequence.seq_id + 1);
    assert_eq!(target.exchanges_in_use(), 0);
}

#[test]
fn a_write_is_bursts_of_whole_frames_then_an_io_then_a_response() {
    let mut target = target_with(8);
    let mut emitted = submit(&mut target, write(0, 40, 20_480));
    for (offset, burst_len) in [(0, 8192), (8192, 8192), (16_384, 4096)] {
        let [Output::Send(Frame { header, payload: Payload::Typed(Message::FcpXferRdy(ready)) })] = emitted.as_slice()
        else {
            unreachable!("{emitted:?}")
        };
        assert_eq!(*ready, FcpXferRdy { offset, burst_len });
        let rx_id = header.rx_id;
        let frames = burst_len / 2048;
        for n in 0..frames {
            let rx = target.data(rx_id).expect("takes data");
            let accepted = rx.accept((offset / 2048 + n) as u16, 2048);
            assert_eq!(accepted, if n + 1 == frames { Accepted::Complete } else { Accepted::More });
        }
        emitted = handle(&mut target, Instant::ZERO, Input::Data { rx_id, accepted: Accepted::Complete });
    }
    let io = io(&emitted);
    assert_eq!((io.op, io.bytes), (IoOp::Write, 20_480));
    let (_, response) =
        answer(&handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::Good }));
    assert_eq!((response.status, response.residual), (status::GOOD, Residual::None));
}

#[test]
fn the_residual_follows_from_fcp_dl_and_cdb() {
    let cases = [(read(0, 8, 8192), 4096, Residual::Under(4096)), (read(0, 8, 1024), 1024, Residual::Over(3072))];
    for (command, bytes, residual) in cases {
        let mut target = target();
        let io = io(&submit(&mut target, command));
        assert_eq!(io.bytes, bytes);
        let (_, response) =
            answer(&handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::Good }));
        assert_eq!(response.residual, residual);
    }
}

#[test]
fn rejects_inconsistent_transfers() {
    let cases = [
        (read(BLOCKS - 7, 8, 4096), SenseCode::LBA_OUT_OF_RANGE),
        (read(u64::MAX, 1, 512), SenseCode::LBA_OUT_OF_RANGE),
        (write(BLOCKS, 1, 512), SenseCode::LBA_OUT_OF_RANGE),
        (write(0, 8, 4095), SenseCode(0x0e03)),
        (command(Cdb::Other([0x4d; 16]), 0, 0), SenseCode::INVALID_OPERATION),
        (FcpCmnd { lun: lun::to_bytes(2).unwrap(), ..read(0, 1, 512) }, SenseCode::LUN_NOT_SUPPORTED),
        (FcpCmnd { lun: [0xff; 8], ..read(0, 1, 512) }, SenseCode::LUN_NOT_SUPPORTED),
        (
            command(Cdb::Inquiry { vpd_page: Some(0xc0), allocation_len: 255 }, FcpCmnd::READ, 255),
            SenseCode::INVALID_FIELD_IN_CDB,
        ),
    ];
    for (command, code) in cases {
        assert_eq!(sense_code(&submit(&mut target(), command)), code, "{command:?}");
    }
}

#[test]
fn refuses_a_direction_that_contradicts_the_cdb() {
    for command in [FcpCmnd { flags: FcpCmnd::WRITE, ..read(0, 1, 512) }, FcpCmnd { flags: 3, ..write(0, 1, 512) }] {
        let (_, response) = answer(&submit(&mut target(), command));
        assert_eq!(response.response_code, Some(response::INVALID_FIELDS));
    }
}

#[test]
fn inquiry_and_capacity_describe_the_target_and_its_units() {
    let mut target = target();
    let (data, response) =
        answer(&submit(&mut target, command(Cdb::Inquiry { vpd_page: None, allocation_len: 255 }, FcpCmnd::READ, 255)));
    assert_eq!((data.len(), data[0], &data[8..16]), (96, 0, &b"SANLOOM "[..]));
    assert_eq!(response.residual, Residual::Under(255 - 96));
    let absent = FcpCmnd {
        lun: [0, 9, 0, 0, 0, 0, 0, 0],
        ..command(Cdb::Inquiry { vpd_page: None, allocation_len: 5 }, FcpCmnd::READ, 5)
    };
    let (data, _) = answer(&submit(&mut target, absent));
    assert_eq!((data.len(), data[0]), (5, 0x7f));
    let (data, _) = answer(&submit(&mut target, command(Cdb::ReadCapacity10, FcpCmnd::READ, 8)));
    assert_eq!(data, [0, 0, 3, 0xe7, 0, 0, 2, 0]);
    let (data, _) =
        answer(&submit(&mut target, command(Cdb::ReadCapacity16 { allocation_len: 32 }, FcpCmnd::READ, 32)));
    assert_eq!((data.len(), &data[..12]), (32, &[0, 0, 0, 0, 0, 0, 3, 0xe7, 0, 0, 2, 0][..]));
    let (data, _) =
        answer(&submit(&mut target, command(Cdb::ReportLuns { allocation_len: 4096 }, FcpCmnd::READ, 4096)));
    assert_eq!(data, [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let (data, response) = answer(&submit(&mut target, command(Cdb::TestUnitReady, 0, 0)));
    assert_eq!((data.len(), response.status), (0, status::GOOD));
    let identification = |target: &mut FcpTarget| {
        answer(&submit(target, command(Cdb::Inquiry { vpd_page: Some(0x83), allocation_len: 255 }, FcpCmnd::READ, 255)))
            .0
    };
    let (first, second) = (identification(&mut target), {
        let lun = lun::to_bytes(1).unwrap();
        let command = command(Cdb::Inquiry { vpd_page: Some(0x83), allocation_len: 255 }, FcpCmnd::READ, 255);
        answer(&submit(&mut target, FcpCmnd { lun, ..command })).0
    });
    assert_ne!(first, second, "two units must not look like two paths to one");
}

#[test]
fn too_many_commands_are_answered_task_set_full() {
    let mut target = target_with(2);
    for ox_id in 0..3 {
        target.handle(Instant::ZERO, frame(HOST, ox_id, Message::FcpCmnd(read(0, 1, 512))));
    }
    let (_, response) = answer(&outputs(&mut target));
    assert_eq!((response.status, response.residual), (status::TASK_SET_FULL, Residual::Under(512)));
    assert_eq!(target.exchanges_in_use(), 2);
}

#[test]
fn a_medium_that_fails_is_a_check_condition() {
    let mut target = target();
    let io = io(&submit(&mut target, read(0, 1, 512)));
    let emitted = handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::MediumError });
    assert_eq!(sense_code(&emitted), SenseCode::UNRECOVERED_READ_ERROR);
}

#[test]
fn an_aborted_exchange_cancels_its_io_and_rests() {
    let mut target = target();
    let io = io(&submit(&mut target, read(0, 1, 512)));
    let abts = || frame(HOST, 7, Message::Bls(Bls::Abts));
    for again in [false, true] {
        let emitted = handle(&mut target, Instant::ZERO, abts());
        let accepted = emitted.iter().any(|output| {
            matches!(output, Output::Send(Frame { payload: Payload::Typed(Message::Bls(Bls::BaAcc(accept))), .. })
                if (accept.ox_id, accept.rx_id) == (7, io.tag.rx_id()))
        });
        assert!(accepted, "{emitted:?}");
        assert_eq!(emitted.contains(&Output::Cancel(io.tag)), !again);
    }
    // Late results of the medium have no effect.
    assert_eq!(handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::Good }), []);
    assert_eq!(target.exchanges_in_use(), 1);
    let rested = Instant::ZERO + Span::from_secs(10);
    assert_eq!(target.poll_timeout(), Some(rested));
    target.handle(rested, Input::Timeout);
    assert_eq!(target.exchanges_in_use(), 0);
    let emitted = handle(&mut target, rested, abts());
    assert!(matches!(emitted[..], [Output::Send(Frame { payload: Payload::Typed(Message::Bls(Bls::BaRjt(_))), .. })]));
}

/// FCP-4, table 30: a target waits for the data of a burst for at least RR_TOV_SEQ_INIT, 2 s.
#[test]
fn the_first_frame_of_a_burst_may_take_longer_than_the_next_ones() {
    let ms = |ms| Instant::ZERO + Span::from_ms(ms);
    let expire_until = |target: &mut FcpTarget, until: Instant| {
        while let Some(at) = target.poll_timeout().filter(|&at| at <= until) {
            target.handle(at, Input::Timeout);
        }
    };
    for (burst, first_ms) in [(0, 1_990), (1, 3_980)] {
        let mut target = target_with_timeout(8, Span::from_ms(20));
        let emitted = submit(&mut target, write(0, 40, 20_480));
        let [Output::Send(Frame { header: Header { rx_id, .. }, .. })] = emitted[..] else {
            unreachable!("{emitted:?}")
        };
        // All bursts before this one arrive late, but complete.
        for earlier in 0..burst {
            expire_until(&mut target, ms(1_990));
            for seq_cnt in 4 * earlier..4 * earlier + 4 {
                target.data(rx_id).expect("takes data").accept(seq_cnt, 2048);
            }
            let complete = Input::Data { rx_id, accepted: Accepted::Complete };
            assert_eq!(handle(&mut target, ms(1_990), complete).len(), 1, "the next XFER_RDY");
        }
        expire_until(&mut target, ms(first_ms));
        let accepted = target.data(rx_id).expect("waits for the first frame").accept(4 * burst, 2048);
        assert_eq!(accepted, Accepted::More);
        // The second frame is missing.
        expire_until(&mut target, ms(first_ms + 9));
        assert_eq!(target.counters().stalled, 0);
        expire_until(&mut target, ms(first_ms + 10 + 2 * 20));
        assert_eq!(target.counters().stalled, 1);
    }
    let mut target = target_with_timeout(8, Span::from_ms(20));
    submit(&mut target, write(0, 40, 20_480));
    expire_until(&mut target, ms(1_999));
    assert_eq!(target.counters().stalled, 0);
    expire_until(&mut target, ms(2_000));
    assert_eq!(target.counters().stalled, 1);
}

#[test]
fn only_a_write_without_progress_ends_after_the_timeout() {
    let mut target = target();
    let emitted = submit(&mut target, write(0, 40, 20_480));
    let [Output::Send(Frame { header: Header { rx_id, .. }, .. })] = emitted[..] else { unreachable!("{emitted:?}") };
    let mut now = Instant::ZERO;
    for seq_cnt in 0..3 {
        now += Span::from_secs(2);
        assert_eq!(target.data(rx_id).expect("takes data").accept(seq_cnt, 2048), Accepted::More);
        target.handle(now, Input::Timeout);
        assert_eq!(target.counters().stalled, 0);
    }
    target.handle(now + Span::from_secs(2), Input::Timeout);
    assert_eq!(target.counters().stalled, 1);
    assert!(target.data(rx_id).is_none());
}

#[test]
fn a_port_without_a_login_receives_one_logo() {
    let mut target = target();
    let unrelated = FcId::new(0x010900);
    let mut logos = 0;
    for ox_id in 0..5 {
        for output in handle(&mut target, Instant::ZERO, frame(unrelated, ox_id, Message::FcpCmnd(read(0, 1, 512)))) {
            let Output::Send(Frame { header, payload: Payload::Typed(Message::Els(els)) }) = output else {
                unreachable!("a port without a login receives only a LOGO")
            };
            assert!(matches!(*els, Els::Logo(_)));
            assert_eq!(header.d_id, unrelated);
            logos += 1;
        }
    }
    assert_eq!((logos, target.counters().not_logged_in), (1, 5));
}

#[test]
fn an_abts_is_answered_with_or_without_a_login() {
    let mut target = target();
    let abts = frame(FcId::new(0x010900), 7, Message::Bls(Bls::Abts));
    let emitted = handle(&mut target, Instant::ZERO, abts);
    assert!(matches!(emitted[..], [Output::Send(Frame { payload: Payload::Typed(Message::Bls(Bls::BaRjt(_))), .. })]));
}

#[test]
fn a_logout_ends_the_tasks_of_that_initiator_only() {
    let mut target = target();
    for (host, ox_id) in [(HOST, 1), (OTHER_HOST, 2)] {
        target.handle(Instant::ZERO, frame(host, ox_id, Message::FcpCmnd(read(0, 1, 512))));
    }
    outputs(&mut target);
    let emitted = handle(&mut target, Instant::ZERO, Input::LoginDown { port_id: HOST });
    assert!(matches!(emitted[..], [Output::Cancel(tag)] if tag.rx_id() == 0), "{emitted:?}");
}

#[test]
fn task_management_ends_the_named_tasks_and_notifies_the_others() {
    let cases = [
        (task_management::ABORT_TASK_SET, 0, response::COMPLETE, 1, 0),
        (task_management::LUN_RESET, 0, response::COMPLETE, 2, 1),
        (task_management::CLEAR_TASK_SET, 0, response::COMPLETE, 2, 1),
        (task_management::TARGET_RESET, 0, response::COMPLETE, 3, 2),
        (task_management::LUN_RESET, 5, response::INVALID_LUN, 0, 0),
        (task_management::CLEAR_ACA, 0, response::COMPLETE, 0, 0),
        (0x80, 0, response::TMF_REJECTED, 0, 0),
    ];
    for (function, unit, code, cancelled, reported) in cases {
        let mut target = target();
        for (host, ox_id, number) in [(HOST, 1, 0), (OTHER_HOST, 2, 0), (OTHER_HOST, 3, 1)] {
            let lun = lun::to_bytes(number).unwrap();
            let command = FcpCmnd { lun, ..read(0, 1, 512) };
            target.handle(Instant::ZERO, frame(host, ox_id, Message::FcpCmnd(command)));
        }
        outputs(&mut target);
        let lun = lun::to_bytes(unit).unwrap();
        let request = FcpCmnd { task_management: function, lun, ..command(Cdb::TestUnitReady, 0, 0) };
        let emitted = submit(&mut target, request);
        let responses: Vec<&FcpRsp> = emitted
            .iter()
            .filter_map(|output| match output {
                Output::Send(Frame { payload: Payload::Typed(Message::FcpRsp(response)), .. }) => Some(response),
                _ => None,
            })
            .collect();
        let (last, others) = responses.split_last().expect("a response");
        assert_eq!(last.response_code, Some(code), "function {function:02x}");
        assert!(others.iter().all(|response| response.status == status::TASK_ABORTED));
        let cancels = emitted.iter().filter(|output| matches!(output, Output::Cancel(_))).count();
        assert_eq!((cancels, others.len()), (cancelled, reported), "function {function:02x}");
    }
}

#[test]
fn srr_is_rejected_and_its_exchange_continues() {
    let mut target = target();
    let io = io(&submit(&mut target, read(10, 8, 4096)));
    // SRR (FCP-4): command 14, OX_ID and RX_ID, relative offset, R_CTL of the information unit
    // wanted.
    let mut srr = vec![0x14, 0, 0, 0, 0, 7, 0, 0];
    srr.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    let of_els = Message::from(Els::Rec(ExchangeRef { originator: HOST, ox_id: 7, rx_id: 0 }));
    let header = of_els.header(HOST, TARGET, 9, 0xffff);
    let header = Header { r_ctl: RCtl::FC4_LS_REQUEST, fc_type: FcType::FCP, ..header };
    let emitted =
        handle(&mut target, Instant::ZERO, Input::Frame(Frame { header, payload: Payload::Bytes(srr.into()) }));
    let [Output::Send(Frame { header, payload: Payload::Bytes(bytes) })] = emitted.as_slice() else {
        panic!("{emitted:?}")
    };
    assert_eq!((header.r_ctl, header.fc_type, header.ox_id), (RCtl::FC4_LS_REPLY, FcType::FCP, 9));
    assert!(header.f_ctl.has(FCtl::EXCHANGE_RESPONDER) && header.f_ctl.has(FCtl::LAST_SEQUENCE));
    // LS_RJT: command not supported, request not supported.
    assert_eq!(bytes[..], [1, 0, 0, 0, 0, 0x0b, 0x2c, 0]);
    assert_eq!(target.counters().unexpected_frames, 1);
    let emitted = handle(&mut target, Instant::ZERO, Input::IoDone { tag: io.tag, status: IoStatus::Good });
    assert!(matches!(emitted.as_slice(), [Output::Transmit(_), Output::Send(_)]), "{emitted:?}");
}
