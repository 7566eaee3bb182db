//! The expression language of fault injection rules.

use sanloom_api::inject::{Direction, Matcher, Seen};
use sanloom_wire::els::Els;
use sanloom_wire::{FcId, Header, Message};

const HOST: FcId = FcId::new(0x010200);
const DISK: FcId = FcId::new(0x010300);

/// A frame with one message.
struct Sample {
    header: Header,
    payload: Vec<u8>,
}

impl Sample {
    fn new(message: Message) -> Sample {
        let mut payload = Vec::new();
        message.emit(&mut payload);
        Sample { header: message.header(HOST, DISK, 0x17, 0xffff), payload }
    }

    fn is(&self, text: &str) -> bool {
        let matcher: Matcher = text.parse().unwrap_or_else(|bad| panic!("{bad}"));
        matcher.holds(&Seen { direction: Direction::In, header: &self.header, payload: &self.payload })
    }
}

fn plogi() -> Sample {
    let request = Sample::new(Els::Rtv.into());
    let mut payload = vec![0; 116];
    payload[0] = sanloom_wire::els::command::PLOGI;
    Sample { payload, ..request }
}

#[test]
fn fields_are_compared_and_joined() {
    let plogi = plogi();
    for text in [
        "els==PLOGI",
        "els == plogi && s_id==010200",
        "els==0x03&&d_id==0x010300",
        "els!=FLOGI",
        "ox_id==23 && ox_id==0x17",
        "ox_id>=23 && ox_id<=23 && ox_id>22 && ox_id<24",
        "!(els==FLOGI || els==FDISC)",
        "els==FLOGI || els==PLOGI && direction==in",
        "(els==FLOGI || els==PLOGI) && r_ctl==0x22 && type==1",
        "!els==LOGO",
        "length==116 && seq_cnt==0",
        " ( ( els==PLOGI ) ) ",
    ] {
        assert!(plogi.is(text), "{text}");
    }
    for text in [
        "els==FLOGI",
        "els==PLOGI && s_id==010201",
        "direction==out",
        "!(els==PLOGI)",
        "els==FLOGI && els==PLOGI || ox_id==24",
        // A PLOGI has none of these fields, so every comparison with them is false.
        "bls==ABTS",
        "bls!=ABTS",
        "ct==GID_FT",
        "ct!=GID_FT",
        "sw_ils!=ELP",
        "scsi>=0",
        "lun==0",
        "fcp!=CMND",
    ] {
        assert!(!plogi.is(text), "{text}");
    }
}

#[test]
fn every_kind_of_message_is_compared_by_name() {
    use sanloom_wire::bls::Bls;
    use sanloom_wire::cdb::Cdb;
    use sanloom_wire::fcp::FcpCmnd;
    let read = Cdb::Read { lba: 0, blocks: 8, fua: false }.to_bytes();
    let command = FcpCmnd {
        lun: sanloom_wire::lun::to_bytes(5).unwrap(),
        crn: 0,
        attribute: 0,
        task_management: 0,
        flags: FcpCmnd::READ,
        cdb: read,
        data_len: 4096,
    };
    let command = Sample::new(Message::FcpCmnd(command));
    assert!(command.is("fcp==CMND && fcp==FCP_CMND && lun==5 && (scsi==READ_10 || scsi==READ_16)"));
    assert!(!command.is("scsi==WRITE_10"));
    let abort = Sample::new(Message::Bls(Bls::Abts));
    assert!(abort.is("bls==ABTS && bls==0x81"));
    let merge = Sample::new(sanloom_wire::sw_ils::SwIls::Ufc.into());
    assert!(merge.is("sw_ils==UFC"));
    // A CT unit of the name server: preamble and GID_FT.
    let mut unit = vec![1, 0, 0, 0, 0xfc, 2, 0, 0, 0x01, 0x71, 0, 0, 0, 0, 0, 0];
    unit.extend([0, 0, 0, 8]);
    let header =
        Header { r_ctl: sanloom_wire::RCtl::UNSOLICITED_CONTROL, fc_type: sanloom_wire::FcType::CT, ..abort.header };
    let question = Sample { header, payload: unit };
    assert!(question.is("ct==GID_FT && ct==0x0171"));
    // A frame in the middle of a sequence has no command field.
    let later = Sample { header: Header { seq_cnt: 1, ..question.header }, payload: question.payload.clone() };
    assert!(!later.is("ct==GID_FT"));
    let empty = Sample { payload: Vec::new(), ..question };
    assert!(!empty.is("ct==GID_FT") && empty.is("length==0"));
}

#[test]
fn an_error_has_a_position_a_reason_and_a_remedy() {
    let cases = [
        ("", 0, "a comparison is missing here", "fields are s_id, d_id"),
        ("els", 3, "`els` has no comparison operator", "write =="),
        ("els=PLOGI", 3, "`els` has no comparison operator", "write =="),
        ("els==", 5, "the value of `els` is missing", "such as PLOGI"),
        ("els==PLOGY", 5, "`PLOGY` is not a value of `els`", "such as PLOGI"),
        ("ells==PLOGI", 0, "there is no field `ells`", "fields are"),
        ("s_id==1", 6, "`1` is not a value of `s_id`", "six hexadecimal digits"),
        ("s_id==0x1000000", 6, "is too large for `s_id`", "six hexadecimal digits"),
        ("ox_id==65536", 7, "is too large for `ox_id`", "from 0 to 65535"),
        ("ox_id==99999999999999999999", 7, "is not a value of `ox_id`", "from 0 to 65535"),
        ("(els==PLOGI", 11, "a closing bracket is missing here", "add )"),
        ("els==PLOGI)", 10, "unexpected text after the expression", "join comparisons"),
        ("els==PLOGI els==FLOGI", 11, "unexpected text after the expression", "join comparisons"),
        ("els==PLOGI &&", 13, "a comparison is missing here", "fields are"),
        ("els==PLOGI & s_id==010200", 11, "unexpected text", "join comparisons"),
        ("direction==up", 11, "`up` is not a value of `direction`", "write in or out"),
        ("ätsch==1", 0, "there is no field `ätsch`", "fields are"),
    ];
    for (text, at, reason, remedy) in cases {
        let bad = text.parse::<Matcher>().expect_err(text);
        assert_eq!(bad.at, at, "{text}: {bad}");
        assert!(bad.reason.contains(reason) && bad.remedy.contains(remedy), "{text}: {bad}");
    }
    let shown = "els==PLOGI && s_id==xyz".parse::<Matcher>().unwrap_err().to_string();
    let expected = "`xyz` is not a value of `s_id`\n  els==PLOGI && s_id==xyz\n                      ^^^\n  help: an address is six hexadecimal digits, such as 010200";
    assert_eq!(shown, expected);
}

#[test]
fn arbitrary_expressions_never_panic() {
    let good = "!(els==PLOGI||bls!=ABTS)&&(s_id==010200&&ox_id>=0x10)||direction==out";
    for from in 0..good.len() {
        for to in from..=good.len() {
            let _ = good[from..to].parse::<Matcher>().map_err(|bad| bad.to_string());
        }
    }
    for text in
        ["(".repeat(900), "!".repeat(900), "els==PLOGI&&".repeat(80), "é".repeat(450), "x".repeat(2_000), "a\nb".into()]
    {
        let bad = text.parse::<Matcher>().expect_err("no expression");
        assert!(!bad.to_string().is_empty());
    }
}
