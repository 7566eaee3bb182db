//! SCSI parameter data: what commands carry besides their CDB (SPC, SBC). CDBs are in [`crate::cdb`], sense data in
//! [`crate::sense`], logical unit numbers in [`crate::lun`].

pub mod transport_id;
