//! Frames of loop initialisation (FC-AL-2, loop initialisation sequences): LISM, LIFA,
//! LIPA, LIHA, LISA, LIRP and LILP.
//!
//! Every frame is a single-frame extended link service, in class 3, without replies: SOFil, which
//! is coded as SOFi3, and EOFt (Fujitsu MAT3300FC manual, figure 1.45). The identifier shares its
//! first byte with the ELS TEST, so the caller must know that the loop initialises.

use crate::arbitrated_loop::{AL_PA_COUNT, AddressMap, AlPa};
use crate::bytes::{Put, counted, fixed, u32_at, u64_at};
use crate::error::ParseError;
use crate::header::{FCtl, FcType, Header, RCtl, RX_ID_UNASSIGNED};
use crate::id::{FcId, Wwpn};

/// S_ID and D_ID of an initialising NL_Port.
pub const NL_PORT_ID: FcId = FcId::from_parts(0, 0, 0xef);
/// S_ID and D_ID of an initialising FL_Port.
pub const FL_PORT_ID: FcId = FcId::ZERO;

/// Step in which a port takes an address, from the oldest claim to the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// LIFA: addresses assigned by the fabric.
    Fabric,
    /// LIPA: addresses that ports had before.
    Previous,
    /// LIHA: hard addresses, for example from a backplane.
    Hard,
    /// LISA: the lowest free address.
    Soft(AcceptsMap),
}

/// Ability of all ports up to this one to process LIRP and LILP, which LISA collects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AcceptsMap {
    /// A port on the loop cannot.
    No,
    /// All ports up to here can.
    Yes,
}

/// Order of the participating ports on the loop, beginning with the loop master: 128 bytes, a count
/// and the addresses; unused bytes are FF.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PositionMap {
    addresses: Vec<AlPa>,
}

/// Payload of a loop initialisation frame.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LoopInit {
    /// LISM: selection of the loop master by the lowest name.
    Master {
        /// Name of the candidate.
        port_name: Wwpn,
    },
    /// LIFA, LIPA, LIHA or LISA: addresses taken so far.
    Addresses {
        /// The frame's step.
        step: Step,
        /// Taken addresses and the L_bit.
        map: AddressMap,
    },
    /// LIRP: each port appends its address.
    ReportPosition(PositionMap),
    /// LILP: the complete map goes round.
    LoopPosition(PositionMap),
}

const LISM: u32 = 0x1101_0000;
const LIFA: u32 = 0x1102_0000;
const LIPA: u32 = 0x1103_0000;
const LIHA: u32 = 0x1104_0000;
const LISA: u32 = 0x1105_0000;
const LISA_WITH_MAP: u32 = 0x1105_0100;
const LIRP: u32 = 0x1106_0000;
const LILP: u32 = 0x1107_0000;
const MAP_BYTES: usize = AL_PA_COUNT + 1;

impl LoopInit {
    /// Reads a payload. Bytes beyond the end of the layout are ignored.
    pub fn parse(payload: &[u8]) -> Result<LoopInit, ParseError> {
        let identifier = u32_at(fixed::<4>("loop initialisation identifier", payload)?, 0);
        Ok(match identifier {
            LISM => LoopInit::Master { port_name: Wwpn(u64_at(fixed::<12>("LISM", payload)?, 4)) },
            LIFA => addresses(Step::Fabric, payload)?,
            LIPA => addresses(Step::Previous, payload)?,
            LIHA => addresses(Step::Hard, payload)?,
            LISA => addresses(Step::Soft(AcceptsMap::No), payload)?,
            LISA_WITH_MAP => addresses(Step::Soft(AcceptsMap::Yes), payload)?,
            LIRP => LoopInit::ReportPosition(PositionMap::parse(payload)?),
            LILP => LoopInit::LoopPosition(PositionMap::parse(payload)?),
            got => return Err(ParseError::Unsupported { field: "loop initialisation identifier", got }),
        })
    }

    /// Appends the payload.
    pub fn emit(&self, out: &mut dyn Put) {
        out.put_u32(self.identifier());
        match self {
            LoopInit::Master { port_name } => out.put_u64(port_name.0),
            LoopInit::Addresses { map, .. } => out.put_slice(&map.0),
            LoopInit::ReportPosition(map) | LoopInit::LoopPosition(map) => map.emit(out),
        }
    }

    /// Number of bytes that [`emit`](Self::emit) appends: 12, 20 or 132.
    pub fn encoded_len(&self) -> usize {
        counted(|_, out| self.emit(out))
    }

    /// Identifier in the first four bytes.
    pub const fn identifier(&self) -> u32 {
        match self {
            LoopInit::Master { .. } => LISM,
            LoopInit::Addresses { step: Step::Fabric, .. } => LIFA,
            LoopInit::Addresses { step: Step::Previous, .. } => LIPA,
            LoopInit::Addresses { step: Step::Hard, .. } => LIHA,
            LoopInit::Addresses { step: Step::Soft(AcceptsMap::No), .. } => LISA,
            LoopInit::Addresses { step: Step::Soft(AcceptsMap::Yes), .. } => LISA_WITH_MAP,
            LoopInit::ReportPosition(_) => LIRP,
            LoopInit::LoopPosition(_) => LILP,
        }
    }

    /// Name in the standard, for example LISM.
    pub const fn name(&self) -> &'static str {
        match self {
            LoopInit::Master { .. } => "LISM",
            LoopInit::Addresses { step: Step::Fabric, .. } => "LIFA",
            LoopInit::Addresses { step: Step::Previous, .. } => "LIPA",
            LoopInit::Addresses { step: Step::Hard, .. } => "LIHA",
            LoopInit::Addresses { step: Step::Soft(_), .. } => "LISA",
            LoopInit::ReportPosition(_) => "LIRP",
            LoopInit::LoopPosition(_) => "LILP",
        }
    }

    /// Header of the frame. `id` is [`NL_PORT_ID`] or [`FL_PORT_ID`] and becomes S_ID and D_ID.
    pub fn header(id: FcId) -> Header {
        Header {
            r_ctl: RCtl::ELS_REQUEST,
            d_id: id,
            cs_ctl: 0,
            s_id: id,
            fc_type: FcType::ELS,
            f_ctl: FCtl::new(FCtl::FIRST_SEQUENCE | FCtl::LAST_SEQUENCE | FCtl::END_SEQUENCE),
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id: RX_ID_UNASSIGNED,
            rx_id: RX_ID_UNASSIGNED,
            parameter: 0,
        }
    }
}

fn addresses(step: Step, payload: &[u8]) -> Result<LoopInit, ParseError> {
    let b = fixed::<20>("bit map of loop addresses", payload)?;
    let mut map = [0; 16];
    map.copy_from_slice(&b[4..]);
    Ok(LoopInit::Addresses { step, map: AddressMap(map) })
}

impl PositionMap {
    /// Addresses in the order of the loop, the loop master first.
    pub fn addresses(&self) -> &[AlPa] {
        &self.addresses
    }
    /// Appends the address of the next port. Returns false if the map has 127 addresses or contains
    /// this one.
    pub fn append(&mut self, address: AlPa) -> bool {
        let fits = self.addresses.len() < AL_PA_COUNT && !self.addresses.contains(&address);
        if fits {
            self.addresses.push(address);
        }
        fits
    }
    fn parse(payload: &[u8]) -> Result<PositionMap, ParseError> {
        let b = fixed::<{ 4 + MAP_BYTES }>("loop position map", payload)?;
        let count = usize::from(b[4]);
        let rule = "one of the 127 AL_PA values, and only once";
        let Some(values) = b[5..].get(..count) else {
            return Err(ParseError::Value { field: "count of loop positions", got: b[4].into(), rule: "at most 127" });
        };
        let mut map = PositionMap::default();
        for value in values {
            if !AlPa::new(*value).is_some_and(|address| map.append(address)) {
                return Err(ParseError::Value { field: "address in a loop position map", got: (*value).into(), rule });
            }
        }
        Ok(map)
    }
    fn emit(&self, out: &mut dyn Put) {
        out.put_len8(self.addresses.len());
        self.addresses.iter().for_each(|address| out.put_u8(address.value()));
        (self.addresses.len()..AL_PA_COUNT).for_each(|_| out.put_u8(0xff));
    }
}
