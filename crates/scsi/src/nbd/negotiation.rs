//! Option haggling, from the greeting to the choice of an export ("Handshake phase").

use super::export::export_named;
use super::{CloseReason, Connection, MAX_OPTION_BYTES, Output, State};
use sanloom_wire::ParseError;
use sanloom_wire::nbd::{
    BASE_ALLOCATION, ClientOption, ExportAnswer, Info, InfoRequest, InfoType, MetaQuery, OptionCode, OptionHeader,
    OptionReply, OptionReplyBody, ReplyType, handshake,
};

/// Context ID of [`BASE_ALLOCATION`] in replies.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;
/// Maximum length of skipped option data in bytes; longer data end the connection.
const MAX_SKIPPED_BYTES: u32 = 32 << 20;
/// Query for all contexts of the base namespace in LIST_META_CONTEXT.
const BASE: &str = "base:";

/// Result of the negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Negotiated {
    /// Client flags.
    flags: u16,
    pub(super) structured_replies: bool,
    /// Export for which [`BASE_ALLOCATION`] was set. After the choice of an export: that export or
    /// none.
    allocation_of: Option<usize>,
    /// Index of the chosen export.
    pub(super) export: Option<usize>,
}

impl Negotiated {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether BLOCK_STATUS is permitted.
    pub(super) fn has_allocation(&self) -> bool {
        self.allocation_of.is_some()
    }
}

impl Connection {
    pub(super) fn on_client_flags(&mut self, flags: u32) {
        let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        if flags & !known != 0 {
            self.counters.protocol_errors += 1;
            return self.drain(CloseReason::Protocol);
        }
        self.negotiated.flags = (flags & known & 0xffff) as u16;
        self.state = State::Option;
    }

    pub(super) fn on_option_header(&mut self, header: OptionHeader) {
        let OptionHeader { option, data_bytes } = header;
        let answerable = self.negotiated.has(handshake::FIXED_NEWSTYLE) && option != OptionCode::EXPORT_NAME;
        let fits = data_bytes <= if answerable { MAX_SKIPPED_BYTES } else { MAX_OPTION_BYTES };
        if !fits || !answerable && option != OptionCode::EXPORT_NAME {
            self.counters.protocol_errors += 1;
            return self.drain(CloseReason::Protocol);
        }
        if data_bytes > MAX_OPTION_BYTES {
            self.state = State::OptionSkip(option, data_bytes);
            return;
        }
        self.state = State::OptionData(header);
        if data_bytes == 0 {
            match ClientOption::parse(option, &[]) {
                Ok(option) => self.on_option(&option),
                Err(error) => self.on_malformed_option(option, error),
            }
        }
    }

    pub(super) fn on_skipped_option(&mut self, option: OptionCode) {
        self.state = State::Option;
        self.refuse(option, ReplyType::ERR_TOO_BIG, "more than 64 KiB of data");
    }

    pub(super) fn on_malformed_option(&mut self, option: OptionCode, error: ParseError) {
        if option == OptionCode::EXPORT_NAME {
            self.counters.protocol_errors += 1;
            return self.drain(CloseReason::Protocol);
        }
        self.state = State::Option;
        self.refuse(option, ReplyType::ERR_INVALID, &error.to_string());
    }

    pub(super) fn on_option(&mut self, option: &ClientOption) {
        self.counters.options += 1;
        self.state = State::Option;
        let code = option.code();
        match option {
            ClientOption::ExportName(name) => self.on_export_name(name),
            ClientOption::Abort => {
                self.reply(code, OptionReplyBody::Ack);
                self.drain(CloseReason::Client);
            }
            ClientOption::List => self.on_list(),
            ClientOption::Info(request) => {
                self.on_info(code, request);
            }
            ClientOption::Go(request) => {
                if let Some(export) = self.on_info(code, request) {
                    self.open(export);
                }
            }
            ClientOption::StructuredReply if self.negotiated.structured_replies => {
                self.refuse(code, ReplyType::ERR_INVALID, "structured replies are agreed already");
            }
            ClientOption::StructuredReply => {
                self.negotiated.structured_replies = true;
                self.reply(code, OptionReplyBody::Ack);
            }
            ClientOption::ListMetaContext(query) => {
                let matches =
                    |query: &MetaQuery| query.queries.is_empty() || query.queries.iter().any(|q| matches_context(q));
                if let Some(export) = self.meta_export(code, query) {
                    self.answer_meta(code, export, matches(query));
                }
            }
            ClientOption::SetMetaContext(query) => {
                if let Some(export) = self.meta_export(code, query) {
                    let matches = query.queries.iter().any(|query| **query == *BASE_ALLOCATION);
                    let set = self.answer_meta(code, export, matches);
                    self.negotiated.allocation_of = set.then_some(export);
                }
            }
            ClientOption::Other {
                option: OptionCode::ABORT | OptionCode::LIST | OptionCode::STRUCTURED_REPLY, ..
            } => {
                self.refuse(code, ReplyType::ERR_INVALID, "the option has no data");
            }
            ClientOption::Other { .. } => self.refuse(code, ReplyType::ERR_UNSUP, "no such option here"),
        }
    }

    fn on_export_name(&mut self, name: &str) {
        let Some(export) = export_named(&self.exports, name) else {
            return self.drain(CloseReason::UnknownExport);
        };
        let chosen = &self.exports[export];
        let answer =
            ExportAnswer { size_bytes: chosen.size_bytes, flags: chosen.flags(self.negotiated.structured_replies) };
        let mut bytes = Vec::new();
        answer.emit(!self.negotiated.has(handshake::NO_ZEROES), &mut bytes);
        self.send(bytes);
        self.open(export);
    }

    fn on_list(&mut self) {
        let exports = self.exports.clone();
        for export in exports.iter() {
            let (name, description) = (export.name.clone(), export.description.clone());
            self.reply(OptionCode::LIST, OptionReplyBody::Server { name, description });
        }
        self.reply(OptionCode::LIST, OptionReplyBody::Ack);
    }

    /// Answers INFO and GO. The block sizes are sent without request, because a client that ignores
    /// them gets errors.
    fn on_info(&mut self, option: OptionCode, request: &InfoRequest) -> Option<usize> {
        let Some(index) = export_named(&self.exports, &request.export) else {
            self.refuse(option, ReplyType::ERR_UNKNOWN, "no such export");
            return None;
        };
        let export = &self.exports[index];
        let mut infos = vec![
            Info::Export { size_bytes: export.size_bytes, flags: export.flags(self.negotiated.structured_replies) },
            Info::BlockSize(export.sizes),
        ];
        if request.wanted.contains(&InfoType::NAME) {
            infos.push(Info::Name(export.name.clone()));
        }
        if request.wanted.contains(&InfoType::DESCRIPTION) {
            infos.push(Info::Description(export.description.clone()));
        }
        for info in infos {
            self.reply(option, OptionReplyBody::Info(info));
        }
        self.reply(option, OptionReplyBody::Ack);
        Some(index)
    }

    /// Returns the export of a metadata query, or answers with an error.
    fn meta_export(&mut self, option: OptionCode, query: &MetaQuery) -> Option<usize> {
        if !self.negotiated.structured_replies {
            self.refuse(option, ReplyType::ERR_INVALID, "structured replies have to be agreed first");
            return None;
        }
        let export = export_named(&self.exports, &query.export);
        if export.is_none() {
            self.refuse(option, ReplyType::ERR_UNKNOWN, "no such export");
        }
        export
    }

    /// Reports the base:allocation context if it is requested and available. Returns whether it was
    /// reported.
    fn answer_meta(&mut self, option: OptionCode, export: usize, matches: bool) -> bool {
        let named = matches && self.exports[export].allocation;
        if named {
            // The ID is only significant in answers to SET_META_CONTEXT.
            let id = if option == OptionCode::SET_META_CONTEXT { BASE_ALLOCATION_ID } else { 0 };
            self.reply(option, OptionReplyBody::MetaContext { id, name: BASE_ALLOCATION.into() });
        }
        self.reply(option, OptionReplyBody::Ack);
        named
    }

    /// Enters the transmission phase with the chosen export.
    fn open(&mut self, export: usize) {
        self.negotiated.export = Some(export);
        if self.negotiated.allocation_of != Some(export) {
            self.negotiated.allocation_of = None;
        }
        self.deadline = None;
        self.state = State::Request;
        self.outputs.push_back(Output::Opened { export });
    }

    fn refuse(&mut self, option: OptionCode, code: ReplyType, message: &str) {
        self.counters.refused_options += 1;
        self.reply(option, OptionReplyBody::Error { code, message: message.into() });
    }

    pub(super) fn reply(&mut self, option: OptionCode, body: OptionReplyBody) {
        let mut bytes = Vec::new();
        OptionReply { option, body }.emit(&mut bytes);
        self.send(bytes);
    }
}

fn matches_context(query: &str) -> bool {
    query == BASE || query == BASE_ALLOCATION
}
