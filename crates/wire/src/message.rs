//! A control message and the frame header that carries it: [`Message`], [`ReplyTo`].

use crate::bls::Bls;
use crate::ct::{Ct, Service};
use crate::els::Els;
use crate::error::ParseError;
use crate::fcp::{FcpCmnd, FcpRsp, FcpXferRdy};
use crate::header::{FCtl, FcType, Header, RCtl};
use crate::id::FcId;
use crate::link_control::LinkControl;
use crate::sw_ils::SwIls;
use std::fmt;

/// A control message: every frame payload except data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Extended link service, request or reply.
    Els(Box<Els>),
    /// Common transport: name server and other generic services.
    Ct(Box<Ct>),
    /// Switch fabric internal link service, request or reply.
    SwIls(Box<SwIls>),
    /// Basic link service.
    Bls(Bls),
    /// ACK, reject, busy.
    LinkControl(LinkControl),
    /// FCP command.
    FcpCmnd(FcpCmnd),
    /// FCP transfer ready.
    FcpXferRdy(FcpXferRdy),
    /// FCP response.
    FcpRsp(FcpRsp),
    /// FCP confirmation.
    FcpConf,
}

/// Request that a reply answers. LS_ACC and CT accepts do not identify their request, but their
/// layout depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReplyTo {
    /// An extended link service, by command code (see [`crate::els::command`]).
    Els(u8),
    /// A generic service and its command code.
    Ct(Service, u16),
    /// A switch fabric internal link service, by command code (see [`crate::sw_ils::command`]).
    SwIls(u8),
}

impl Message {
    /// Reads the payload of a whole sequence: one frame without its fill bytes, or the joined data
    /// fields of all its frames. `header` is the header of the first frame. Data frames, optional
    /// headers and unsupported protocols are [`ParseError::Unsupported`]. Without `reply_to`,
    /// accepts parse to `Other`.
    pub fn parse(header: &Header, payload: &[u8], reply_to: Option<ReplyTo>) -> Result<Message, ParseError> {
        if header.r_ctl.is_link_control() {
            return LinkControl::parse(header).map(Message::LinkControl);
        }
        if header.df_ctl != 0 {
            return Err(ParseError::Unsupported { field: "DF_CTL", got: header.df_ctl.into() });
        }
        Ok(match (header.fc_type, header.r_ctl) {
            (FcType::BLS, _) => Message::Bls(Bls::parse(header, payload)?),
            (FcType::ELS, RCtl::ELS_REQUEST | RCtl::ELS_REPLY) => {
                let request = match reply_to {
                    Some(ReplyTo::Els(command)) => Some(command),
                    _ => None,
                };
                Message::Els(Box::new(Els::parse(payload, request)?))
            }
            (FcType::CT, RCtl::UNSOLICITED_CONTROL | RCtl::SOLICITED_CONTROL) => {
                let request = match reply_to {
                    Some(ReplyTo::Ct(service, command)) => Some((service, command)),
                    _ => None,
                };
                Message::Ct(Box::new(Ct::parse(payload, request)?))
            }
            (FcType::SW_ILS, RCtl::UNSOLICITED_CONTROL | RCtl::SOLICITED_CONTROL) => {
                let request = match reply_to {
                    Some(ReplyTo::SwIls(command)) => Some(command),
                    _ => None,
                };
                Message::SwIls(Box::new(SwIls::parse(payload, request)?))
            }
            (FcType::FCP, RCtl::UNSOLICITED_COMMAND) => Message::FcpCmnd(FcpCmnd::parse(payload)?),
            (FcType::FCP, RCtl::DATA_DESCRIPTOR) => Message::FcpXferRdy(FcpXferRdy::parse(payload)?),
            (FcType::FCP, RCtl::COMMAND_STATUS) => Message::FcpRsp(FcpRsp::parse(payload)?),
            (FcType::FCP, RCtl::SOLICITED_CONTROL) => Message::FcpConf,
            (fc_type, r_ctl) => {
                let got = u32::from(r_ctl.0) << 8 | u32::from(fc_type.0);
                return Err(ParseError::Unsupported { field: "R_CTL and TYPE", got });
            }
        })
    }

    /// Appends the payload.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Message::Els(els) => els.emit(out),
            Message::Ct(ct) => ct.emit(out),
            Message::SwIls(ils) => ils.emit(out),
            Message::Bls(bls) => bls.emit(out),
            Message::FcpCmnd(command) => command.emit(out),
            Message::FcpXferRdy(ready) => ready.emit(out),
            Message::FcpRsp(response) => response.emit(out),
            Message::LinkControl(_) | Message::FcpConf => {}
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            Message::Els(els) => els.encoded_len(),
            Message::Ct(ct) => ct.encoded_len(),
            Message::SwIls(ils) => ils.encoded_len(),
            Message::Bls(bls) => bls.encoded_len(),
            Message::FcpCmnd(_) => FcpCmnd::BYTES,
            Message::FcpXferRdy(_) => FcpXferRdy::BYTES,
            Message::FcpRsp(response) => response.encoded_len(),
            Message::LinkControl(_) | Message::FcpConf => 0,
        }
    }

    /// Header of a single-frame sequence with this message and SEQ_ID 0. The exchange originator
    /// sends requests and its responder sends replies, with the F_CTL values of Linux hosts. Link
    /// control gets the F_CTL of a reply to a single-frame request.
    pub fn header(&self, s_id: FcId, d_id: FcId, ox_id: u16, rx_id: u16) -> Header {
        let Envelope { r_ctl, fc_type, f_ctl } = self.envelope();
        let parameter = match self {
            Message::LinkControl(link_control) => link_control.parameter(),
            _ => 0,
        };
        Header {
            r_ctl,
            d_id,
            cs_ctl: 0,
            s_id,
            fc_type,
            f_ctl: f_ctl.with_fill_for(self.encoded_len()),
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id,
            rx_id,
            parameter,
        }
    }

    /// Value that [`parse`](Self::parse) needs as `reply_to` to read the reply to this request.
    /// `None` for replies, and for requests whose reply parses without it.
    pub fn reply_key(&self) -> Option<ReplyTo> {
        match self {
            Message::Els(els) if !els.is_reply() => Some(ReplyTo::Els(els.command())),
            Message::Ct(ct) if !ct.is_reply() => Some(ReplyTo::Ct(ct.service, ct.command())),
            Message::SwIls(ils) if !ils.is_reply() => Some(ReplyTo::SwIls(ils.command())),
            _ => None,
        }
    }

    fn envelope(&self) -> Envelope {
        let envelope = |r_ctl, fc_type, f_ctl| Envelope { r_ctl, fc_type, f_ctl: FCtl::new(f_ctl) };
        const REQUEST: u32 = FCtl::REQUEST.bits();
        const REPLY: u32 = FCtl::REPLY.bits();
        match self {
            Message::Els(els) if els.is_reply() => envelope(RCtl::ELS_REPLY, FcType::ELS, REPLY),
            Message::Els(_) => envelope(RCtl::ELS_REQUEST, FcType::ELS, REQUEST),
            Message::Ct(ct) if ct.is_reply() => envelope(RCtl::SOLICITED_CONTROL, FcType::CT, REPLY),
            Message::Ct(_) => envelope(RCtl::UNSOLICITED_CONTROL, FcType::CT, REQUEST),
            Message::SwIls(ils) if ils.is_reply() => envelope(RCtl::SOLICITED_CONTROL, FcType::SW_ILS, REPLY),
            Message::SwIls(_) => envelope(RCtl::UNSOLICITED_CONTROL, FcType::SW_ILS, REQUEST),
            Message::Bls(bls @ (Bls::BaAcc(_) | Bls::BaRjt(_))) => envelope(bls.r_ctl(), FcType::BLS, REPLY),
            Message::Bls(bls) => {
                let end = FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE;
                envelope(bls.r_ctl(), FcType::BLS, end)
            }
            Message::LinkControl(link_control) => {
                let answer = REQUEST | FCtl::EXCHANGE_RESPONDER | FCtl::SEQUENCE_RECIPIENT;
                envelope(link_control.r_ctl(), link_control.fc_type(), answer)
            }
            Message::FcpCmnd(_) => envelope(RCtl::UNSOLICITED_COMMAND, FcType::FCP, REQUEST),
            Message::FcpXferRdy(_) => envelope(
                RCtl::DATA_DESCRIPTOR,
                FcType::FCP,
                FCtl::EXCHANGE_RESPONDER | FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE,
            ),
            // If FCP_CONF follows, the exchange stays open and the response transfers the sequence
            // initiative.
            Message::FcpRsp(response) => envelope(
                RCtl::COMMAND_STATUS,
                FcType::FCP,
                FCtl::EXCHANGE_RESPONDER
                    | FCtl::END_SEQUENCE
                    | if response.confirm { FCtl::TRANSFER_INITIATIVE } else { FCtl::LAST_SEQUENCE },
            ),
            Message::FcpConf => envelope(
                RCtl::SOLICITED_CONTROL,
                FcType::FCP,
                FCtl::LAST_SEQUENCE | FCtl::END_SEQUENCE | FCtl::TRANSFER_INITIATIVE,
            ),
        }
    }
}

struct Envelope {
    r_ctl: RCtl,
    fc_type: FcType,
    f_ctl: FCtl,
}

impl From<Els> for Message {
    fn from(els: Els) -> Message {
        Message::Els(Box::new(els))
    }
}

impl From<Ct> for Message {
    fn from(ct: Ct) -> Message {
        Message::Ct(Box::new(ct))
    }
}

impl From<SwIls> for Message {
    fn from(ils: SwIls) -> Message {
        Message::SwIls(Box::new(ils))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Els(els) => els.fmt(f),
            Message::Ct(ct) => ct.fmt(f),
            Message::SwIls(ils) => ils.fmt(f),
            Message::Bls(bls) => bls.fmt(f),
            Message::LinkControl(link_control) => link_control.fmt(f),
            Message::FcpCmnd(_) => f.pad("FCP_CMND"),
            Message::FcpXferRdy(_) => f.pad("FCP_XFER_RDY"),
            Message::FcpRsp(_) => f.pad("FCP_RSP"),
            Message::FcpConf => f.pad("FCP_CONF"),
        }
    }
}
