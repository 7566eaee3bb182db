//! Units of FCIP links as bytes, for captures of Ethernet links.

use super::contents;
use crate::fcip::Unit;
use crate::world::World;
use sanloom_fc::config::{Link, Node};
use sanloom_scsi::random::mix;
use sanloom_wire::Wwnn;
use sanloom_wire::crc::crc_bytes;
use sanloom_wire::delimiter::{Eof, Sof};
use sanloom_wire::fcip::{Encapsulated, Special, Stamp};

/// Time zero of the simulation: 2026-11-01, as for all captures that need a date.
const EPOCH_NS: u64 = 1_793_491_200_000_000_000;

/// Returns the bytes of a unit; `None` if its contents are not known.
pub(super) fn unit(world: &World, unit: &Unit) -> Option<Vec<u8>> {
    let stamp = |sent_ps: u64| Stamp::from_unix_ns(EPOCH_NS + sent_ps / 1_000);
    let mut out = Vec::new();
    match unit {
        Unit::Special { link, connection, sent_ps } => {
            let config = &world.lab.links[usize::from(*link)];
            let [listens, connects] = [0, 1].map(|side| switch_name(world, config, side));
            let keep_alive = config.fcoe?.fcip?.keep_alive.to_span();
            Special {
                changed: false,
                stamp: stamp(*sent_ps),
                source: connects,
                entity: config.ends[1].port.into(),
                nonce: mix(world.lab.run.seed ^ u64::from(*connection)),
                usage_flags: 0,
                usage_code: 0,
                destination: listens,
                k_a_tov_ms: u32::try_from(keep_alive.as_ms()).unwrap_or(u32::MAX),
            }
            .emit(&mut out);
        }
        Unit::KeepAlive { kind, sent_ps } => {
            let mut bytes = Vec::new();
            kind.frame(0).emit(&mut bytes);
            let (sof_code, eof_code) = (Sof::F.code(), Eof::class_3(true).code());
            let crc = crc_bytes(&bytes);
            Encapsulated { flags: 0, stamp: stamp(*sent_ps), sof_code, frame: &bytes, crc, eof_code }.emit(&mut out);
        }
        Unit::Frame { seen, sent_ps } => {
            let message = seen.message.as_ref().map(|(whole, bytes, parts)| (&whole.header, bytes.as_slice(), *parts));
            let (sof, last, bytes) = contents(world, &seen.frame, message)?;
            let (crc, eof_code) = (crc_bytes(&bytes), Eof::class_3(last).code());
            Encapsulated { flags: 0, stamp: stamp(*sent_ps), sof_code: sof.code(), frame: &bytes, crc, eof_code }
                .emit(&mut out);
        }
    }
    Some(out)
}

fn switch_name(world: &World, link: &Link, side: usize) -> Wwnn {
    match link.ends[side].node {
        Node::Switch(switch) => world.lab.switches[usize::from(switch)].wwn,
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => Wwnn(0),
    }
}
