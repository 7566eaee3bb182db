//! Processors of hosts, and the costs of I/O on them: [`HostProcessor`].

use super::iscsi_hba::IscsiHba;
use super::units::Picos;

/// The processor of a host and the time that I/O takes on it. The default is one core on which
/// I/O costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostProcessor {
    /// Number of cores.
    pub cores: u16,
    /// Choice of the core for a piece of work.
    pub affinity: Affinity,
    /// Share of the time of work that each further busy core adds, because it holds a lock, in
    /// millionths: `s` of [`HostProcessor::scaled`].
    pub lock_share_ppm: u32,
    /// Share of the time that each pair of busy cores adds, because they exchange cache lines, in
    /// millionths: `k` of [`HostProcessor::scaled`].
    pub coherence_share_ppm: u32,
    /// Costs of I/O over Fibre Channel, without [`Interrupt`](super::Interrupt).
    pub fc: DriverCost,
    /// Costs of I/O over TCP, without [`Interrupt`](super::Interrupt).
    pub tcp: StackCost,
    /// Costs of packets over InfiniBand, in place of those of `tcp` for each segment.
    pub ipoib: Option<PacketCost>,
    /// Costs of I/O over SRP.
    pub srp: ChannelCost,
    /// Processor of each HBA.
    pub hba: AdapterProcessor,
    /// Adapters of iSCSI that end TCP themselves; `None`: NICs, and TCP in the host.
    pub iscsi_hba: Option<IscsiHba>,
}

impl Default for HostProcessor {
    fn default() -> HostProcessor {
        HostProcessor {
            cores: 1,
            affinity: Affinity::Spread,
            lock_share_ppm: 0,
            coherence_share_ppm: 0,
            fc: DriverCost::default(),
            tcp: StackCost::default(),
            ipoib: None,
            srp: ChannelCost::default(),
            hba: AdapterProcessor::default(),
            iscsi_hba: None,
        }
    }
}

impl HostProcessor {
    /// Returns the time of work that alone takes `cost`, while `busy` cores work:
    /// `cost` × (1 + s (n − 1) + k n (n − 1)). A closed load on n cores then has the throughput
    /// n / (cost (1 + s (n − 1) + k n (n − 1))), the universal scalability law (Gunther, *Guerrilla
    /// Capacity Planning*, 2007).
    pub fn scaled(&self, cost: Picos, busy: u16) -> Picos {
        if self.lock_share_ppm == 0 && self.coherence_share_ppm == 0 {
            return cost;
        }
        let (n, others) = (u128::from(busy.max(1)), u128::from(busy.saturating_sub(1)));
        let share = u128::from(self.lock_share_ppm) * others + u128::from(self.coherence_share_ppm) * n * others;
        Picos((u128::from(cost.0) * (1_000_000 + share) / 1_000_000) as u64)
    }
}

/// Choice of the core for a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Affinity {
    /// The core that is free first.
    Spread,
    /// The core with the number of the adapter, modulo the number of cores.
    Adapter,
}

/// Processor time of a driver whose adapter moves the data by itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriverCost {
    /// Time of a command, before it leaves.
    pub per_command: Picos,
    /// Time per KiB of reads, after the data have arrived.
    pub per_kib_read: Picos,
    /// Time per KiB of writes, before the command leaves.
    pub per_kib_written: Picos,
}

/// Processor time of TCP and of the driver of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StackCost {
    /// Time of a command, before it leaves.
    pub per_command: Picos,
    /// Time of a segment with data, or of a batch of them, that arrives.
    pub per_segment_received: Picos,
    /// Time of a segment, or of a batch of them, that leaves.
    pub per_segment_sent: Picos,
    /// Most bytes that the NIC or the driver joins to one unit of work (segmentation and receive
    /// offload); 0: each segment is one.
    pub batch_bytes: u32,
    /// Time to copy a KiB on arrival.
    pub copy_received: Picos,
    /// Time to copy a KiB on departure.
    pub copy_sent: Picos,
    /// Time of the checksums of a KiB, in either direction; 0 if the NIC computes them.
    pub checksum: Picos,
    /// Time of an interrupt of the NIC.
    pub interrupt: Picos,
    /// Shortest time between two interrupts of the NIC.
    pub interrupt_gap: Picos,
    /// Shortest gap, if it adapts to the load: it doubles after an interrupt with several frames,
    /// and halves after one with a single frame.
    pub min_interrupt_gap: Option<Picos>,
    /// Number of frames that raise the interrupt at once.
    pub interrupt_frames: u16,
}

impl StackCost {
    /// Returns whether the processor takes time for frames that arrive.
    pub fn takes_time_to_receive(&self) -> bool {
        let costs = [self.per_segment_received, self.copy_received, self.checksum, self.interrupt];
        costs.iter().any(|cost| *cost != Picos::ZERO)
    }

    /// Returns the number of units of work for frames with `bytes` of payload that arrive or leave
    /// together.
    pub fn units(&self, frames: u32, bytes: u64) -> u64 {
        match u64::from(self.batch_bytes) {
            0 => frames.into(),
            batch => bytes.div_ceil(batch).clamp(u64::from(frames > 0), frames.into()),
        }
    }
}

/// Processor time of packets of IP over InfiniBand. No adapter joins or divides them, so each
/// packet has its own cost. Copies, checksums and interrupts are those of [`StackCost`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketCost {
    /// Time of a packet that arrives.
    pub per_packet_received: Picos,
    /// Time of a packet that leaves.
    pub per_packet_sent: Picos,
}

/// Processor time of the driver of a channel adapter, which moves the data by itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChannelCost {
    /// Time of a command before it leaves, with the registration of its memory.
    pub per_command: Picos,
    /// Time of the completion of a response, with its interrupt.
    pub per_completion: Picos,
}

/// The processor of an adapter, which handles one command after the other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AdapterProcessor {
    /// Time of a read.
    pub per_read: Picos,
    /// Time of a write.
    pub per_write: Picos,
    /// Time per KiB of data.
    pub per_kib: Picos,
}

impl AdapterProcessor {
    /// Returns the time of a command with `bytes` of data.
    pub fn time_of(&self, is_write: bool, bytes: u32) -> Picos {
        let base = if is_write { self.per_write } else { self.per_read };
        Picos(base.0.saturating_add(per_kib(self.per_kib, u64::from(bytes)).0))
    }
}

/// Returns the time of `bytes` at `per_kib`.
pub fn per_kib(per_kib: Picos, bytes: u64) -> Picos {
    Picos((u128::from(per_kib.0) * u128::from(bytes) / 1_024) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_cores_slow_each_other_down_as_the_law_says() {
        let processor =
            HostProcessor { lock_share_ppm: 50_000, coherence_share_ppm: 2_000, ..HostProcessor::default() };
        let at = |busy| processor.scaled(Picos(1_000_000), busy).0;
        assert_eq!(at(1), 1_000_000);
        assert_eq!(at(2), 1_000_000 + 50_000 + 4_000);
        assert_eq!(at(8), 1_000_000 + 350_000 + 2_000 * 56);
        assert_eq!(HostProcessor::default().scaled(Picos(7), 30), Picos(7));
    }

    #[test]
    fn an_adapter_takes_the_time_of_its_command_and_of_its_data() {
        let hba = AdapterProcessor { per_read: Picos(28), per_write: Picos(48), per_kib: Picos(2) };
        assert_eq!(hba.time_of(false, 1_024), Picos(30));
        assert_eq!(hba.time_of(true, 512), Picos(49));
    }
}
