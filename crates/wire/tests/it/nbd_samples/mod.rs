//! One NBD message of every kind with its bytes, written by hand from the protocol document, field
//! by field.

use sanloom_wire::nbd::*;

/// A message of any kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Unit {
    Greeting(Greeting),
    Option(ClientOption),
    OptionReply(OptionReply),
    Request(Request),
    SimpleReply(SimpleReply),
    Chunk(Chunk),
}

impl Unit {
    /// Bytes that the codec emits for the message.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Unit::Greeting(greeting) => out.extend_from_slice(&greeting.to_bytes()),
            Unit::Option(option) => option.emit(&mut out),
            Unit::OptionReply(reply) => reply.emit(&mut out),
            Unit::Request(request) => out.extend_from_slice(&request.to_bytes()),
            Unit::SimpleReply(reply) => out.extend_from_slice(&reply.to_bytes()),
            Unit::Chunk(chunk) => chunk.emit(&mut out),
        }
        out
    }
}

/// Bytes in hexadecimal, and the expected value.
pub fn all() -> Vec<(&'static str, Unit)> {
    let mut all = vec![
        ("4e42444d41474943 49484156454f5054 0003", Unit::Greeting(Greeting { flags: 3 })),
        (
            "25609513 0001 0001 0102030405060708 0000000000001000 00000200",
            Unit::Request(Request {
                flags: command_flag::FUA,
                command: Command::WRITE,
                cookie: 0x0102_0304_0506_0708,
                offset_bytes: 4096,
                len_bytes: 512,
            }),
        ),
        (
            "67446698 0000001c 0102030405060708",
            Unit::SimpleReply(SimpleReply { error: ErrorNumber::ENOSPC, cookie: 0x0102_0304_0506_0708 }),
        ),
    ];
    all.extend(options().into_iter().map(|(hex, option)| (hex, Unit::Option(option))));
    all.extend(
        option_replies().into_iter().map(|(hex, option, body)| (hex, Unit::OptionReply(OptionReply { option, body }))),
    );
    all.extend(chunks().into_iter().map(|(hex, flags, body)| (hex, Unit::Chunk(Chunk { flags, cookie: 7, body }))));
    all
}

fn options() -> Vec<(&'static str, ClientOption)> {
    let info = || InfoRequest { export: "lun0".into(), wanted: vec![InfoType::BLOCK_SIZE, InfoType::NAME] };
    let query = || MetaQuery { export: "lun0".into(), queries: vec!["base:".into(), "x".into()] };
    vec![
        ("49484156454f5054 00000001 00000004 6c756e30", ClientOption::ExportName("lun0".into())),
        ("49484156454f5054 00000002 00000000", ClientOption::Abort),
        ("49484156454f5054 00000003 00000000", ClientOption::List),
        ("49484156454f5054 00000006 0000000e 00000004 6c756e30 0002 0003 0001", ClientOption::Info(info())),
        ("49484156454f5054 00000007 0000000e 00000004 6c756e30 0002 0003 0001", ClientOption::Go(info())),
        ("49484156454f5054 00000008 00000000", ClientOption::StructuredReply),
        (
            "49484156454f5054 00000009 0000001a 00000004 6c756e30 00000002 00000005 626173653a 00000001 78",
            ClientOption::ListMetaContext(query()),
        ),
        (
            "49484156454f5054 0000000a 0000001a 00000004 6c756e30 00000002 00000005 626173653a 00000001 78",
            ClientOption::SetMetaContext(query()),
        ),
        (
            "49484156454f5054 0000000b 00000002 abcd",
            ClientOption::Other { option: OptionCode::EXTENDED_HEADERS, data: Box::new([0xab, 0xcd]) },
        ),
    ]
}

fn option_replies() -> Vec<(&'static str, OptionCode, OptionReplyBody)> {
    let sizes = BlockSizes { minimum: 512, preferred: 4096, maximum: 32 << 20 };
    let info = |info| OptionReplyBody::Info(info);
    vec![
        ("0003e889045565a9 00000007 00000001 00000000", OptionCode::GO, OptionReplyBody::Ack),
        (
            "0003e889045565a9 00000003 00000002 0000000c 00000004 6c756e30 6469736b",
            OptionCode::LIST,
            OptionReplyBody::Server { name: "lun0".into(), description: "disk".into() },
        ),
        (
            "0003e889045565a9 00000007 00000003 0000000c 0000 0000000000010000 016d",
            OptionCode::GO,
            info(Info::Export { size_bytes: 65_536, flags: 0x016d }),
        ),
        (
            "0003e889045565a9 00000006 00000003 00000006 0001 6c756e30",
            OptionCode::INFO,
            info(Info::Name("lun0".into())),
        ),
        (
            "0003e889045565a9 00000006 00000003 00000006 0002 6469736b",
            OptionCode::INFO,
            info(Info::Description("disk".into())),
        ),
        (
            "0003e889045565a9 00000006 00000003 0000000e 0003 00000200 00001000 02000000",
            OptionCode::INFO,
            info(Info::BlockSize(sizes)),
        ),
        (
            "0003e889045565a9 00000006 00000003 00000003 0009 55",
            OptionCode::INFO,
            info(Info::Other { info: InfoType(9), data: Box::new([0x55]) }),
        ),
        (
            "0003e889045565a9 0000000a 00000004 00000013 00000001 626173653a616c6c6f636174696f6e",
            OptionCode::SET_META_CONTEXT,
            OptionReplyBody::MetaContext { id: 1, name: BASE_ALLOCATION.into() },
        ),
        (
            "0003e889045565a9 00000005 80000001 00000002 6e6f",
            OptionCode::STARTTLS,
            OptionReplyBody::Error { code: ReplyType::ERR_UNSUP, message: "no".into() },
        ),
        (
            "0003e889045565a9 00000003 00000063 00000001 aa",
            OptionCode::LIST,
            OptionReplyBody::Other { reply: ReplyType(99), data: Box::new([0xaa]) },
        ),
    ]
}

fn chunks() -> Vec<(&'static str, u16, ChunkBody)> {
    let extents = vec![StatusExtent { len_bytes: 4096, flags: 3 }, StatusExtent { len_bytes: 512, flags: 0 }];
    vec![
        ("668e33ef 0001 0000 0000000000000007 00000000", 1, ChunkBody::None),
        (
            "668e33ef 0000 0001 0000000000000007 0000000a 0000000000001000 0102",
            0,
            ChunkBody::OffsetData { offset_bytes: 4096, data: Box::new([1, 2]) },
        ),
        (
            "668e33ef 0000 0002 0000000000000007 0000000c 0000000000001000 00000200",
            0,
            ChunkBody::OffsetHole { offset_bytes: 4096, len_bytes: 512 },
        ),
        (
            "668e33ef 0001 0005 0000000000000007 00000014 00000001 00001000 00000003 00000200 00000000",
            1,
            ChunkBody::BlockStatus { context: 1, extents },
        ),
        (
            "668e33ef 0001 8001 0000000000000007 00000009 00000005 0003 626164",
            1,
            ChunkBody::Error { error: ErrorNumber::EIO, message: "bad".into() },
        ),
        (
            "668e33ef 0001 8002 0000000000000007 00000011 00000005 0003 626164 0000000000002000",
            1,
            ChunkBody::ErrorOffset { error: ErrorNumber::EIO, message: "bad".into(), offset_bytes: 8192 },
        ),
        (
            "668e33ef 0001 8009 0000000000000007 00000001 77",
            1,
            ChunkBody::Other { chunk: ChunkType(0x8009), payload: Box::new([0x77]) },
        ),
    ]
}
