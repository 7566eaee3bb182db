//! ESS (FC-SW, exchange switch support): identity of a switch and its supported fabric services.
//! Request and accept.

use crate::bytes::{Put, fixed, len8, put_counted, slice, u16_at, u32_at};
use crate::error::ParseError;

/// Identity and capabilities of a switch. Request and accept have the same layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ess {
    /// Revision.
    pub revision: u32,
    /// Texts about the switch without terminating zeros: vendor, model, release, then further
    /// vendor texts. No text contains a zero byte. Texts beyond 252 bytes in total, terminating
    /// zeros included, are not sent.
    pub info: Vec<Box<[u8]>>,
    /// Capabilities by service. At most 65,535 are sent.
    pub capabilities: Vec<EssCapability>,
}

/// Capabilities of a switch for one service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EssCapability {
    /// Type of the generic service, as in CT: FC directory, FA management, FD fabric controller.
    pub service: u8,
    /// Subtype of the service, as in CT.
    pub subtype: u8,
    /// Flags, 8 bytes each. At most 255 are sent.
    pub entries: Vec<[u8; 8]>,
}

impl EssCapability {
    const HEAD_BYTES: usize = 4;

    fn entries(&self) -> &[[u8; 8]] {
        &self.entries[..self.entries.len().min(u8::MAX.into())]
    }
}

impl Ess {
    /// Length of command word, revision, length, information and number of capabilities, in bytes.
    const HEAD_BYTES: usize = 272;
    /// Offset from which the length field counts, in bytes: the start of the information.
    const COUNTED_FROM: usize = 12;
    const INFO_AT: usize = 16;
    const MAX_INFO_BYTES: usize = 252;

    /// Reads the payload, the command word included. A text without a terminating zero is not
    /// stored.
    pub fn parse(payload: &[u8]) -> Result<Ess, ParseError> {
        let b = fixed::<{ Self::HEAD_BYTES }>("ESS", payload)?;
        let info_bytes = usize::from(b[Self::INFO_AT - 1]).min(Self::MAX_INFO_BYTES);
        let info = b[Self::INFO_AT..Self::INFO_AT + info_bytes]
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|text| text.strip_suffix(&[0]).map(Box::from))
            .collect();
        let mut at = Self::HEAD_BYTES;
        let mut capabilities = Vec::new();
        for _ in 0..u16_at(b, Self::HEAD_BYTES - 4) {
            let head = slice("ESS capability", payload, at, EssCapability::HEAD_BYTES)?;
            at += EssCapability::HEAD_BYTES;
            let entries = slice("ESS capability entries", payload, at, 8 * usize::from(head[3]))?;
            at += entries.len();
            let (entries, _) = entries.as_chunks::<8>();
            capabilities.push(EssCapability { service: head[0], subtype: head[1], entries: entries.to_vec() });
        }
        Ok(Ess { revision: u32_at(b, 4), info, capabilities })
    }

    /// Appends the payload, beginning with the command word.
    pub fn emit(&self, command: u8, out: &mut dyn Put) {
        put_counted(out, |len, out| self.put(command, len, out));
    }

    fn put(&self, command: u8, len: usize, out: &mut dyn Put) {
        out.put_u32(u32::from(command) << 24);
        out.put_u32(self.revision);
        out.put_len32(len.saturating_sub(Self::COUNTED_FROM));
        let mut info = Vec::new();
        for text in &self.info {
            if info.len() + text.len() + 1 > Self::MAX_INFO_BYTES {
                break;
            }
            info.extend_from_slice(text);
            info.push(0);
        }
        out.put_len32(info.len());
        info.resize(Self::MAX_INFO_BYTES, 0);
        out.put_slice(&info);
        out.put_len16(self.capabilities().len());
        out.put_u16(0);
        for capability in self.capabilities() {
            let entries = capability.entries();
            out.put_slice(&[capability.service, capability.subtype, 0, len8(entries.len())]);
            out.put_slice(entries.as_flattened());
        }
    }

    fn capabilities(&self) -> &[EssCapability] {
        &self.capabilities[..self.capabilities.len().min(u16::MAX.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sw_ils::{SwIls, command};

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let ess = Ess {
            revision: 1,
            info: [&b"loom"[..], b"m", b"1.0"].map(Box::from).to_vec(),
            capabilities: vec![EssCapability { service: 0xfc, subtype: 2, entries: vec![[0, 0, 0, 0x1f, 0, 0, 0, 0]] }],
        };
        let mut expected = vec![0; 272];
        expected[..16].copy_from_slice(&[0x31, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0x10, 0, 0, 0, 11]);
        expected[16..27].copy_from_slice(b"loom\0m\x001.0\0");
        expected[269] = 1;
        expected.extend([0xfc, 2, 0, 1, 0, 0, 0, 0x1f, 0, 0, 0, 0]);
        let mut bytes = Vec::new();
        ess.emit(command::ESS, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(SwIls::parse(&expected, None), Ok(SwIls::Ess(ess)));
    }

    #[test]
    fn texts_that_do_not_fit_or_do_not_end_are_left_out() {
        let ess = Ess { revision: 1, info: vec![[b'a'; 251].into(), [b'b'; 1].into()], capabilities: Vec::new() };
        let mut bytes = Vec::new();
        ess.emit(command::ESS, &mut bytes);
        assert_eq!(Ess::parse(&bytes).unwrap().info, ess.info[..1]);
        bytes[15] = 9;
        assert_eq!(Ess::parse(&bytes).unwrap().info, Vec::<Box<[u8]>>::new());
    }
}
