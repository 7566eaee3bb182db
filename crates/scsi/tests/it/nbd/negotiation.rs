//! NBD options: each is answered according to the protocol document, also for clients that violate
//! it.

use crate::nbd::util::{Driver, SIZE_BYTES, export};
use sanloom_scsi::nbd::{CloseReason, Export, Input, Limits, MAX_OPTION_BYTES, Output, Wanted};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::nbd::*;

fn greeted(exports: Vec<Export>, flags: u32) -> Driver {
    let mut driver = Driver::new(exports, Limits::default());
    assert_eq!(Greeting::parse(&driver.sent), Ok(Greeting { flags: 3 }));
    driver.sent.clear();
    driver.write(&flags.to_be_bytes());
    driver
}

fn two() -> Vec<Export> {
    let second = Export { read_only: true, allocation: false, description: "".into(), ..export("lun1") };
    vec![export("lun0"), second]
}

fn closed(driver: &Driver) -> Option<CloseReason> {
    driver.others.iter().find_map(|output| match output {
        Output::Close(reason) => Some(*reason),
        _ => None,
    })
}

fn error(replies: &[OptionReplyBody]) -> Option<ReplyType> {
    match replies {
        [OptionReplyBody::Error { code, message }] => {
            assert!(!message.is_empty());
            Some(*code)
        }
        _ => None,
    }
}

fn info_request(export: &str, wanted: &[InfoType]) -> InfoRequest {
    InfoRequest { export: export.into(), wanted: wanted.to_vec() }
}

fn meta(export: &str, queries: &[&str]) -> MetaQuery {
    MetaQuery { export: export.into(), queries: queries.iter().map(|&query| query.into()).collect() }
}

#[test]
fn go_reports_size_flags_and_block_sizes_and_opens_the_export() {
    let mut driver = greeted(two(), 3);
    driver.option(&ClientOption::Go(info_request("lun1", &[InfoType::NAME, InfoType::DESCRIPTION])));
    let flags = 0x0503;
    assert_eq!(
        driver.option_replies(),
        [
            OptionReplyBody::Info(Info::Export { size_bytes: SIZE_BYTES, flags: flags | transmission::SEND_FLUSH | 8 }),
            OptionReplyBody::Info(Info::BlockSize(BlockSizes { minimum: 512, preferred: 4096, maximum: 256 << 10 })),
            OptionReplyBody::Info(Info::Name("lun1".into())),
            OptionReplyBody::Info(Info::Description("".into())),
            OptionReplyBody::Ack,
        ]
    );
    assert_eq!(driver.others, [Output::Opened { export: 1 }]);
    assert_eq!(driver.connection.export().map(|export| &*export.name), Some("lun1"));
    assert_eq!(driver.connection.wanted(), Wanted::Bytes(Request::BYTES));
    assert_eq!(driver.connection.poll_timeout(), None);
}

#[test]
fn info_opens_no_export_and_the_empty_name_is_the_first_export() {
    let mut driver = greeted(two(), 3);
    driver.option(&ClientOption::StructuredReply);
    assert_eq!(driver.option_replies(), [OptionReplyBody::Ack]);
    driver.option(&ClientOption::Info(info_request("", &[InfoType::NAME])));
    let replies = driver.option_replies();
    assert!(replies.contains(&OptionReplyBody::Info(Info::Name("lun0".into()))));
    let flags = replies.iter().find_map(|reply| match reply {
        OptionReplyBody::Info(Info::Export { flags, .. }) => Some(*flags),
        _ => None,
    });
    // HAS_FLAGS, FLUSH, FUA, TRIM, WRITE_ZEROES, DF, MULTI_CONN, CACHE.
    assert_eq!(flags, Some(0x05ed));
    assert!(driver.others.is_empty());
    assert_eq!(driver.connection.export(), None);
}

#[test]
fn an_export_name_is_answered_with_its_124_zeros_or_without() {
    for (flags, zeros) in [(1, 124), (3, 0)] {
        let mut driver = greeted(two(), flags);
        driver.option(&ClientOption::ExportName("lun0".into()));
        assert_eq!(driver.sent.len(), ExportAnswer::BYTES + zeros);
        assert_eq!(driver.sent[..8], SIZE_BYTES.to_be_bytes());
        assert_eq!(driver.others, [Output::Opened { export: 0 }]);
    }
    let mut driver = greeted(two(), 3);
    driver.option(&ClientOption::ExportName("lun7".into()));
    assert_eq!((driver.sent.len(), closed(&driver)), (0, Some(CloseReason::UnknownExport)));
}

#[test]
fn list_names_every_export() {
    let mut driver = greeted(two(), 3);
    driver.option(&ClientOption::List);
    assert_eq!(
        driver.option_replies(),
        [
            OptionReplyBody::Server { name: "lun0".into(), description: "a disk of the test".into() },
            OptionReplyBody::Server { name: "lun1".into(), description: "".into() },
            OptionReplyBody::Ack,
        ]
    );
}

#[test]
fn metadata_contexts_need_structured_replies_and_belong_to_one_export() {
    let mut driver = greeted(two(), 3);
    driver.option(&ClientOption::SetMetaContext(meta("lun0", &[BASE_ALLOCATION])));
    assert_eq!(error(&driver.option_replies()), Some(ReplyType::ERR_INVALID));
    driver.option(&ClientOption::StructuredReply);
    driver.sent.clear();

    let context = |id| OptionReplyBody::MetaContext { id, name: BASE_ALLOCATION.into() };
    for queries in [&[][..], &["base:"], &["x:y", BASE_ALLOCATION]] {
        driver.option(&ClientOption::ListMetaContext(meta("lun0", queries)));
        assert_eq!(driver.option_replies(), [context(0), OptionReplyBody::Ack], "{queries:?}");
    }
    for (export, queries) in [("lun0", &["base:"][..]), ("lun0", &[]), ("lun1", &[BASE_ALLOCATION])] {
        driver.option(&ClientOption::SetMetaContext(meta(export, queries)));
        assert_eq!(driver.option_replies(), [OptionReplyBody::Ack], "{export} {queries:?}");
    }
    driver.option(&ClientOption::SetMetaContext(meta("nowhere", &[BASE_ALLOCATION])));
    assert_eq!(error(&driver.option_replies()), Some(ReplyType::ERR_UNKNOWN));
    driver.option(&ClientOption::SetMetaContext(meta("lun0", &[BASE_ALLOCATION])));
    assert_eq!(driver.option_replies(), [context(1), OptionReplyBody::Ack]);

    // The context was set for another export.
    driver.option(&ClientOption::Go(info_request("lun1", &[])));
    driver.sent.clear();
    driver.request(Command::BLOCK_STATUS, 0, 1, 0, 512);
    assert!(matches!(driver.replies()[..], [(1, ChunkBody::Error { error: ErrorNumber::EINVAL, .. })]));
}

#[test]
fn unknown_exports_are_refused_and_negotiation_continues() {
    let mut driver = greeted(two(), 3);
    let other = |option, data: &[u8]| ClientOption::Other { option, data: data.into() };
    let refused = [
        (ClientOption::Go(info_request("nowhere", &[])), ReplyType::ERR_UNKNOWN),
        (ClientOption::Info(info_request("nowhere", &[])), ReplyType::ERR_UNKNOWN),
        (other(OptionCode::STARTTLS, &[]), ReplyType::ERR_UNSUP),
        (other(OptionCode::EXTENDED_HEADERS, &[]), ReplyType::ERR_UNSUP),
        (other(OptionCode(0x7777), &[1, 2, 3]), ReplyType::ERR_UNSUP),
        (other(OptionCode::LIST, &[1]), ReplyType::ERR_INVALID),
        (other(OptionCode::STRUCTURED_REPLY, &[1]), ReplyType::ERR_INVALID),
        (other(OptionCode::GO, &[0, 0, 0, 9, b'x']), ReplyType::ERR_INVALID),
        (other(OptionCode::GO, &[]), ReplyType::ERR_INVALID),
        (other(OptionCode(0x7777), &vec![0; MAX_OPTION_BYTES as usize + 1]), ReplyType::ERR_TOO_BIG),
    ];
    let count = refused.len() as u64;
    for (option, code) in refused {
        driver.option(&option);
        assert_eq!(error(&driver.option_replies()), Some(code), "{}", option.code());
    }
    assert_eq!(driver.connection.counters().refused_options, count);
    driver.option(&ClientOption::StructuredReply);
    driver.sent.clear();
    driver.option(&ClientOption::StructuredReply);
    assert_eq!(error(&driver.option_replies()), Some(ReplyType::ERR_INVALID));
    assert_eq!(closed(&driver), None);
    driver.option(&ClientOption::Abort);
    assert_eq!(driver.option_replies(), [OptionReplyBody::Ack]);
    assert_eq!(closed(&driver), Some(CloseReason::Client));
}

#[test]
fn a_client_that_violates_the_protocol_is_disconnected() {
    let unknown_flags = greeted(two(), 0x80);
    assert_eq!(closed(&unknown_flags), Some(CloseReason::Protocol));

    let mut noise = greeted(two(), 3);
    noise.write(&[0x5a; 40]);
    assert_eq!(closed(&noise), Some(CloseReason::Protocol));
    assert_eq!(noise.connection.counters().protocol_errors, 1);

    // Only fixed newstyle defines answers to options.
    let mut old = greeted(two(), 0);
    old.option(&ClientOption::List);
    assert_eq!(closed(&old), Some(CloseReason::Protocol));

    let mut liar = greeted(two(), 3);
    let mut bytes = Vec::new();
    OptionHeader { option: OptionCode(77), data_bytes: u32::MAX }.emit(&mut bytes);
    liar.write(&bytes);
    assert_eq!(closed(&liar), Some(CloseReason::Protocol));

    let mut not_text = greeted(two(), 3);
    not_text.option(&ClientOption::Other { option: OptionCode::EXPORT_NAME, data: Box::new([0xff]) });
    assert_eq!(closed(&not_text), Some(CloseReason::Protocol));
}

#[test]
fn a_silent_client_is_disconnected() {
    let mut driver = greeted(two(), 3);
    let deadline = Instant::ZERO + Limits::default().negotiation_timeout;
    assert_eq!(driver.connection.poll_timeout(), Some(deadline));
    driver.now = Instant::ZERO + Span::from_secs(1);
    driver.handle(Input::Timeout);
    assert_eq!(closed(&driver), None);
    driver.now = deadline;
    driver.handle(Input::Timeout);
    assert_eq!(closed(&driver), Some(CloseReason::NegotiationTimeout));
    assert_eq!(driver.connection.wanted(), Wanted::Nothing);
}

#[test]
fn a_stopping_server_answers_a_half_received_option() {
    let mut driver = greeted(two(), 3);
    let mut bytes = Vec::new();
    ClientOption::Go(info_request("lun0", &[])).emit(&mut bytes);
    driver.write(&bytes[..20]);
    driver.handle(Input::Shutdown);
    assert_eq!(error(&driver.option_replies()), Some(ReplyType::ERR_SHUTDOWN));
    assert_eq!(closed(&driver), Some(CloseReason::Shutdown));
}

#[test]
fn a_server_without_exports_has_no_default() {
    let mut driver = greeted(vec![], 3);
    driver.option(&ClientOption::List);
    assert_eq!(driver.option_replies(), [OptionReplyBody::Ack]);
    driver.option(&ClientOption::Go(info_request("", &[])));
    assert_eq!(error(&driver.option_replies()), Some(ReplyType::ERR_UNKNOWN));
}
