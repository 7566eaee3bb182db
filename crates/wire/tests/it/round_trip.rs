//! Every value survives a round trip for all values of its fields, and no byte stream makes a
//! parser panic.

use crate::entry_points;
use crate::values;
use proptest::prelude::*;
use sanloom_wire::cdb::Cdb;
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};
use sanloom_wire::{FCtl, FcType, Frame, Header, Message, Payload, RCtl};

prop_compose! {
    fn header()(
        (r_ctl, fc_type, f_ctl) in any::<(u8, u8, u32)>(),
        (d_id, s_id) in (values::id(), values::id()),
        (cs_ctl, seq_id, df_ctl, seq_cnt) in any::<(u8, u8, u8, u16)>(),
        (ox_id, rx_id, parameter) in any::<(u16, u16, u32)>(),
    ) -> Header {
        Header {
            r_ctl: RCtl(r_ctl),
            d_id,
            cs_ctl,
            s_id,
            fc_type: FcType(fc_type),
            f_ctl: FCtl::new(f_ctl),
            seq_id,
            df_ctl,
            seq_cnt,
            ox_id,
            rx_id,
            parameter,
        }
    }
}

fn cdb() -> impl Strategy<Value = Cdb> {
    let range = (any::<u64>(), any::<u32>(), any::<bool>(), 0..64_u32, 0..32_u32)
        .prop_map(|(lba, blocks, fua, lba_shift, shift)| (lba >> lba_shift, blocks >> shift, fua));
    prop_oneof![
        Just(Cdb::TestUnitReady),
        Just(Cdb::ReadCapacity10),
        any::<(Option<u8>, u16)>().prop_map(|(vpd_page, allocation_len)| Cdb::Inquiry { vpd_page, allocation_len }),
        any::<u32>().prop_map(|allocation_len| Cdb::ReadCapacity16 { allocation_len }),
        any::<u32>().prop_map(|allocation_len| Cdb::ReportLuns { allocation_len }),
        range.clone().prop_map(|(lba, blocks, fua)| Cdb::Read { lba, blocks, fua }),
        range.clone().prop_map(|(lba, blocks, fua)| Cdb::Write { lba, blocks, fua }),
        range.clone().prop_map(|(lba, blocks, on)| Cdb::Verify { lba, blocks, byte_check: u8::from(on) * 3 }),
        range.clone().prop_map(|(lba, blocks, on)| Cdb::WriteAndVerify { lba, blocks, byte_check: on.into() }),
        range.clone().prop_map(|(lba, blocks, immediate)| Cdb::SynchronizeCache { lba, blocks, immediate }),
        range.clone().prop_map(|(lba, blocks, immediate)| Cdb::Prefetch { lba, blocks, immediate }),
        (range, any::<[bool; 3]>()).prop_map(|((lba, blocks, _), [unmap, anchor, no_data])| Cdb::WriteSame {
            lba,
            blocks,
            unmap,
            anchor,
            no_data
        }),
        // Commands parsed from random bytes: emitting them must give the same value again.
        any::<[u8; 16]>().prop_map(|bytes| Cdb::parse(&bytes)),
        any::<[u8; 15]>().prop_map(|rest| {
            let mut bytes = [0xc3; 16];
            bytes[1..].copy_from_slice(&rest);
            Cdb::Other(bytes)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_survive((message, reply_to) in values::messages(), s_id in values::id(), d_id in values::id()) {
        let header = message.header(s_id, d_id, 0x1234, 0x5678);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), message.encoded_len());
        prop_assert_eq!(header.f_ctl.fill_bytes(), bytes.len().wrapping_neg() & 3);
        let parsed = Message::parse(&header, &bytes, reply_to);
        prop_assert_eq!(parsed.as_ref(), Ok(&message));

        let frame = Frame { header, payload: Payload::Typed(message) };
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), frame.encoded_len());
        prop_assert_eq!(Frame::parse(&bytes, reply_to), Ok(frame));
    }

    #[test]
    fn headers_survive(header in header()) {
        let mut bytes = [0xa5; 24];
        header.emit(&mut bytes);
        prop_assert_eq!(Header::parse(&bytes), Ok(header));
    }

    #[test]
    fn cdbs_survive(cdb in cdb()) {
        let mut bytes = [0xa5; 16];
        cdb.emit(&mut bytes);
        prop_assert_eq!(Cdb::parse(&bytes), cdb);
    }

    #[test]
    fn sense_data_survives(
        (deferred, key, code) in (any::<bool>(), 0..16_u8, any::<u16>()),
        information: Option<u32>,
        key_specific: [u8; 3],
        descriptor: bool,
    ) {
        let (key, code, information) = (SenseKey(key), SenseCode(code), information.map(u64::from));
        let sense = Sense { deferred, key, code, information, key_specific, descriptor };
        prop_assert_eq!(Sense::parse(&sense.to_bytes()), Ok(sense));
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..700)) {
        for (_, run) in entry_points::ALL {
            run(&data);
        }
    }

    #[test]
    fn damaged_messages_never_panic(
        (message, reply_to) in values::messages(),
        damage in proptest::collection::vec(any::<(prop::sample::Index, u8)>(), 1..5),
    ) {
        let header = message.header(sanloom_wire::FcId::ZERO, sanloom_wire::FcId::ZERO, 1, 2);
        let mut bytes = header.to_bytes().to_vec();
        message.emit(&mut bytes);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(frame) = Frame::parse(&bytes, reply_to) {
            let mut again = Vec::new();
            frame.emit(&mut again);
            prop_assert_eq!(Frame::parse(&again, reply_to).map(|frame| frame.payload), Ok(frame.payload));
        }
    }
}
