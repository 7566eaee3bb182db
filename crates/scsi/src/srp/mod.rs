//! SCSI RDMA Protocol (SRP, ANSI INCITS 365): one channel of an initiator and of a target.
//!
//! Information units travel as SENDs of a reliable connection, and data by RDMA, which the driver
//! does. Payload never enters the machines. The request limit is the credit of the initiator: each
//! command and each task management request takes one, and a response returns it.

pub mod initiator;
pub mod target;
