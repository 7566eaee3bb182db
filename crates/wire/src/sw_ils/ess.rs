//! ESS (FC-SW, exchange switch support): what a switch is, and which services of the fabric it can do. Request and accept.

use crate::bytes::{Put, fixed, slice, u16_at, u32_at};
use crate::error::ParseError;

/// What a switch is and can do; request and accept have the same shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ess {
    /// Revision.
    pub revision: u32,
    /// Texts about the switch without their final zero: vendor, model, release, then whatever else the vendor has to say.
    /// They contain no zero. Only those go out that fit into 252 bytes, final zeros counted.
    pub info: Vec<Box<[u8]>>,
    /// Capabilities, by service. At most 65,535 go out.
    pub capabilities: Vec<EssCapability>,
}

/// What a switch can do of one service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EssCapability {
    /// Type of the generic service, as in CT: FC directory, FA management, FD fabric controller.
    pub service: u8,
    /// Its subtype, as in CT.
    pub subtype: u8,
    /// Flags, 8 bytes each. At most 255 go out.
    pub entries: Vec<[u8; 8]>,
}

impl EssCapability {
    const HEAD_BYTES: usize = 4;

    fn entries(&self) -> &[[u8; 8]] {
        &self.entries[..self.entries.len().min(u8::MAX.into())]
    }

    fn encoded_len(&self) -> usize {
        Self::HEAD_BYTES + 8 * self.entries().len()
    }
}

impl Ess {
    /// Command word, revision, length, information, number of capabilities.
    const HEAD_BYTES: usize = 272;
    /// From the information on.
    const COUNTED_FROM: usize = 12;
    const INFO_AT: usize = 16;
    const MAX_INFO_BYTES: usize = 252;

    /// Reads the payload, the command word included. A text without a final zero is not kept.
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
    pub fn emit(&self, command: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(u32::from(command) << 24);
        out.put_u32(self.revision);
        out.put_u32((self.encoded_len() - Self::COUNTED_FROM) as u32);
        let mut info = Vec::new();
        for text in &self.info {
            if info.len() + text.len() + 1 > Self::MAX_INFO_BYTES {
                break;
            }
            info.extend_from_slice(text);
            info.push(0);
        }
        out.put_u32(info.len() as u32);
        out.extend_from_slice(&info);
        out.resize(start + Self::HEAD_BYTES - 4, 0);
        out.put_u16(self.capabilities().len() as u16);
        out.put_u16(0);
        for capability in self.capabilities() {
            let entries = capability.entries();
            out.extend_from_slice(&[capability.service, capability.subtype, 0, entries.len() as u8]);
            out.extend_from_slice(entries.as_flattened());
        }
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub fn encoded_len(&self) -> usize {
        Self::HEAD_BYTES + self.capabilities().iter().map(EssCapability::encoded_len).sum::<usize>()
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
    fn bytes_stand_where_the_table_has_them() {
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
