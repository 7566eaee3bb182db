//! The SCSI target device (SAM, SPC, SBC): logical units, who may use them, and what commands do. One for FCP and iSCSI.
//!
//! # How a transport uses it
//!
//! A [`Device`] is called inline by the transports of its ports ([`crate::fcp::target`], iSCSI); a driver has to look only
//! after [`Device::poll_output`].
//!
//! ```text
//!   login                 Device::connect -> NexusId
//!   command               Device::unit, Device::begin -> Step
//!     Step::Io              receive the data of a write; block I/O by the driver; Device::io_done -> Step
//!     Step::Parameters      receive the list; Device::parameters -> Step
//!     Step::Wait            Notice::Step comes
//!     Step::Done            data and status to the initiator
//!   abort, logout         Device::abandon for every task; Device::disconnect
//!   task management       Device::manage -> which tasks end; other ports hear Notice::End
//! ```
//!
//! Data of reads and writes never enters a device: the driver moves it between its buffers and the medium, by the
//! [`IoTag`]. READ and WRITE take a short path while nothing unusual is in force (no reservation, no unit attention to
//! report, nothing ordered); the simulator lives on that.

mod attention;
mod command;
mod config;
mod device;
mod groups;
mod inquiry;
mod io;
mod mode;
mod nexus;
mod opcodes;
mod persistent;
mod reservation;
mod step;
mod tasks;
mod unit;

pub use config::{DeviceConfig, InitiatorName, LunMap, Masking, PortConfig, PortName, UnitConfig};
pub use device::Device;
pub use groups::{AccessState, PortGroup};
pub use io::{BlockIo, Io, IoOp, IoStatus, IoTag};
pub use nexus::NexusId;
pub(crate) use step::INVALID_COMMAND_IU;
pub use step::{Attribute, Command, Ends, Managed, Notice, Output, Response, Step, TaskId, TaskManagement};
