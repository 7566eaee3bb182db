//! iSCSI adapters of hosts, which end TCP themselves. Sessions over InfiniBand have none.

use super::HostNode;
use crate::host::CommandId;
use crate::iscsi::{Direction, Load};
use sanloom_fc::config::per_kib;

/// Gives an adapter the PDUs of a load that leaves. Returns the end of this work in ps; `None` if
/// the host has NICs, or for packets of IPoIB. Frames that arrive take no time until their PDU is
/// complete.
pub(super) fn charge(node: &mut HostNode, now_ps: u64, interface: u16, load: Load) -> Option<u64> {
    let adapter = node.cpu.config().iscsi_hba.filter(|_| !load.is_ipoib)?;
    if load.direction == Direction::Receive {
        return Some(now_ps);
    }
    let time = adapter.time_of(load.pdus.into(), load.commands.into(), load.bytes);
    Some(occupy(node, now_ps, (interface, load.target), time.0))
}

/// Gives an adapter a PDU that has arrived from a storage system, with `bytes` of data. Returns the
/// end of this work in ps.
pub(in crate::world) fn handle_pdu(node: &mut HostNode, now_ps: u64, way: (u16, u16), bytes: u64) -> u64 {
    match node.cpu.config().iscsi_hba {
        None => now_ps,
        Some(adapter) => occupy(node, now_ps, way, adapter.time_of(1, 0, bytes).0),
    }
}

fn occupy(node: &mut HostNode, now_ps: u64, way: (u16, u16), time_ps: u64) -> u64 {
    match time_ps {
        0 => now_ps,
        _ => node.iscsi_hbas.entry(way).or_default().occupy(now_ps, time_ps),
    }
}

/// Returns the time that the driver takes for the data of a completed command, in ps.
#[inline(never)]
pub(super) fn data_cost_ps(node: &HostNode, hba: u16, tag: u64) -> u64 {
    let adapter = node.cpu.config().iscsi_hba.filter(|_| hba < node.first_ipoib);
    let command = node.queue.command(CommandId(tag as u32));
    adapter.zip(command).map_or(0, |(adapter, command)| per_kib(adapter.driver_per_kib, command.bytes.into()).0)
}
