//! iSCSI host bus adapters: [`IscsiHba`].

use super::host_processor::per_kib;
use super::units::Picos;

/// An adapter that ends TCP and iSCSI itself. Its processor handles the PDUs of one target one
/// after the other, and those of different targets side by side. The host only starts commands and
/// receives their results.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IscsiHba {
    /// Time of a command in the adapter, before it leaves.
    pub per_command: Picos,
    /// Time of a PDU in the adapter, in either direction.
    pub per_pdu: Picos,
    /// Time per KiB of data in the adapter, in either direction.
    pub per_kib: Picos,
    /// Time of a command in the processor of the host, before it leaves.
    pub driver_per_command: Picos,
    /// Time per KiB of its data in the processor of the host, when it has ended.
    pub driver_per_kib: Picos,
}

impl IscsiHba {
    /// Returns the time in the adapter of PDUs of which some begin a command, with `bytes` bytes in
    /// all.
    pub fn time_of(&self, pdus: u64, commands: u64, bytes: u64) -> Picos {
        let fixed = pdus.saturating_mul(self.per_pdu.0).saturating_add(commands.saturating_mul(self.per_command.0));
        Picos(fixed.saturating_add(per_kib(self.per_kib, bytes).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_takes_its_time_for_commands_pdus_and_data() {
        let hba = IscsiHba { per_command: Picos(100), per_pdu: Picos(20), per_kib: Picos(8), ..IscsiHba::default() };
        assert_eq!(hba.time_of(3, 1, 2_048), Picos(176));
        assert_eq!(hba.time_of(1, 0, 512), Picos(24));
    }
}
