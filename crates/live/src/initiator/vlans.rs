//! VLANs that carry FCoE: FIP VLAN discovery on a port without another user, as `fipvlan` does it.

use crate::clock::{Clock, until};
use crate::frame::Pool;
use crate::poll::{Interest, Poller};
use crate::ports::EthernetPort;
use crate::sys::batch::BATCH;
use sanloom_fc::fip::enode::{self, Enode, EnodeConfig};
use sanloom_scsi::time::Span;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// Maximum wait for a peer on the port.
const PEER: Span = Span::from_secs(2);
/// Wait for replies of further forwarders after the first.
const OTHERS: Span = Span::from_ms(500);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A VLAN and the forwarder that reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FoundVlan {
    /// 1 to 4094, or 0 for frames without a tag.
    pub vlan: u16,
    /// MAC address of the forwarder.
    pub fcf: MacAddr,
}

/// Sends at most three requests and returns all replies in order. Returns an empty list without a
/// peer.
///
/// # Errors
/// When the poller fails.
pub fn discover_vlans(port: &mut EthernetPort, mac: MacAddr) -> io::Result<Vec<FoundVlan>> {
    const PORT: u64 = 0;
    let clock = Clock::start();
    let (mut poller, mut pool) = (Poller::new()?, Pool::default());
    let mut buffers: Vec<_> = (0..BATCH).map(|_| pool.take()).collect();
    let mut scratch = Vec::new();
    while !port.has_peer() && clock.now() < sanloom_scsi::time::Instant::ZERO + PEER {
        std::thread::sleep(CHECK_INTERVAL);
        port.check_peer();
    }
    let mut enode = Enode::new(EnodeConfig::new(mac, Wwnn(0x1000 << 48 | mac.to_u64())));
    enode.handle(clock.now(), enode::Input::DiscoverVlans);
    let (mut found, mut end) = (BTreeSet::new(), None);
    loop {
        let now = clock.now();
        while let Some(output) = enode.poll_output() {
            match output {
                enode::Output::Fip(packet) => {
                    let mut buffer = pool.take();
                    buffer.compose(&mut scratch, |out| packet.emit(None, out));
                    port.push(now, buffer);
                }
                enode::Output::Vlans { fcf, vlans } => {
                    end.get_or_insert(now + OTHERS);
                    found.extend(vlans.into_iter().map(|vlan| FoundVlan { vlan, fcf }));
                }
                _ => {}
            }
        }
        port.flush(&mut pool);
        // Without a reply the machine stops sending requests, which ends the wait.
        let Some(next) = end.or_else(|| enode.poll_timeout()) else { break };
        if end.is_some_and(|end| end <= now) {
            break;
        }
        poller.set(PORT, port.socket(), Interest { read: true, write: port.egress.blocked })?;
        for event in poller.wait(until(now, next))? {
            port.egress.blocked &= !event.writable;
        }
        if let Ok((got, _)) = port.receive(&mut buffers) {
            for buffer in &buffers[..got] {
                if let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(buffer.bytes())
                    && buffer.ether_type() == Some(EtherType::FIP)
                {
                    enode.handle(clock.now(), enode::Input::Fip { to, from, pdu: pdu.into() });
                }
            }
        }
        enode.handle(clock.now(), enode::Input::Timeout);
    }
    Ok(found.into_iter().collect())
}
