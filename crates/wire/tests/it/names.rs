//! Codes and messages print with the names of the standards and of other tools.

use sanloom_wire::bls::{BaRjt, Bls};
use sanloom_wire::ct::{Ct, CtBody, CtReason, CtReject, Service};
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::link_control::{LinkControl, Reject};
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, FcType, Message, ParseError, RCtl, els, ns};

#[test]
fn messages_print_their_names() {
    let reject = LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES);
    let request = Ct::ns_request(NsRequest::GpnFt { domain: 0, area: 0, fc4_type: 8 });
    let no_types = CtReject { reason: CtReason::UNABLE, explanation: 7, vendor: 0 };
    let rejected = request.reply(CtBody::Reject(no_types));
    let foreign = Ct { service: Service::ALIAS, body: CtBody::Reject(no_types), ..request.clone() };
    let ba_rjt = Bls::BaRjt(BaRjt { reason: 9, explanation: 3, vendor: 0 });
    let p_rjt = LinkControl::PRjt(Reject { action: 2, reason: 0x16, vendor: 0 });
    let f_bsy = LinkControl::FBsy(Reject { action: 0, reason: 9, vendor: 0 });
    let messages: [(Message, &str); 9] = [
        (Els::Rtv.into(), "RTV"),
        (Els::Other { command: 0xee, body: Box::new([0; 3]) }.into(), "ELS ee"),
        (Els::LsRjt(reject).into(), "LS_RJT: unable to perform, insufficient resources"),
        (request.into(), "GPN_FT"),
        (rejected.into(), "FS_RJT: unable to perform command request, FC-4 types not registered"),
        (foreign.into(), "FS_RJT: unable to perform command request, explanation 07"),
        (Message::Bls(ba_rjt), "BA_RJT: unable to perform command request, invalid OX_ID/RX_ID combination"),
        (Message::LinkControl(p_rjt), "P_RJT: login required"),
        (Message::LinkControl(f_bsy), "F_BSY of a data frame: unknown reason"),
    ];
    for (message, text) in messages {
        assert_eq!(message.to_string(), text);
    }
}

#[test]
fn unknown_codes_print_their_numbers() {
    assert_eq!(RCtl(0x77).to_string(), "R_CTL 77");
    assert_eq!(FcType(0xee).to_string(), "TYPE ee");
    assert_eq!(LsRjtReason(0x66).to_string(), "reason 66");
    assert_eq!(els::command::name(0xee), None);
    assert_eq!(ns::command::name(0x0172), Some("GPN_FT"));
}

#[test]
fn headers_print_on_one_line() {
    let header = Message::FcpConf.header(FcId::new(0x010203), FcId::new(0x021000), 0x12, 0x8034);
    assert_eq!(
        header.to_string(),
        "010203 -> 021000 solicited control / FCP, ox_id 0012 rx_id 8034, f_ctl 190000, seq_id 00 seq_cnt 0, parameter 00000000"
    );
}

#[test]
fn errors_name_the_field_and_the_missing_bytes() {
    let short = Els::parse(&[5, 0, 0, 0, 0], None).map_err(|error| error.to_string());
    assert_eq!(short, Err("LOGO needs 16 bytes, but has only 5".to_owned()));
    let page = Els::parse(&[0x20, 8, 0, 20], None).map_err(|error| error.to_string());
    assert_eq!(page, Err("service parameter page is 8 bytes, but must be 16 bytes".to_owned()));
    let revision = ParseError::Unsupported { field: "CT revision", got: 2 };
    assert_eq!(Ct::parse(&[2; 16], None), Err(revision));
}
