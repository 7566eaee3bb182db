//! SCSI target device (SAM, SPC, SBC) for FCP and iSCSI: logical units, LUN masking and command
//! execution.
//!
//! # How a transport uses it
//!
//! The transports of its ports (FCP targets in `sanloom-fc`, iSCSI sessions in
//! [`crate::iscsi::target`]) call a [`Device`] inline. A driver only has to handle
//! [`Device::poll_output`].
//!
//! ```text
//!   login                 Device::connect -> NexusId
//!   command               Device::unit, Device::begin -> Step
//!     Step::Io              receive write data; block I/O by the driver; Device::io_done -> Step
//!     Step::Parameters      receive the list; Device::parameters -> Step
//!     Step::Wait            a Notice::Step follows: Device::confirm
//!     Step::Done            send data and status to the initiator
//!   abort, logout         Device::abandon for every task; Device::disconnect
//!   task management       Device::manage -> tasks to end; other ports receive Notice::End
//! ```
//!
//! Data of reads and writes never enter a device. The driver moves them between its buffers and the
//! medium, identified by [`IoTag`]. READ and WRITE take a short path while nothing unusual is in
//! force (no reservation, no pending unit attention, no ordered task). The speed of the simulator
//! depends on that path.

mod attention;
mod command;
mod config;
mod device;
mod direction;
mod groups;
mod inquiry;
mod io;
mod medium;
mod mode;
mod nexus;
mod notices;
mod opcodes;
mod persistent;
mod reservation;
mod step;
mod tasks;
mod unit;

pub use config::{DeviceConfig, InitiatorName, LunMap, Masking, PortConfig, PortName, UnitConfig};
pub use device::Device;
pub use direction::DataDirection;
pub use groups::{AccessState, PortGroup};
pub use io::{BlockIo, Io, IoOp, IoStatus, IoTag};
pub use nexus::NexusId;
pub use step::INVALID_COMMAND_IU;
pub use step::{Attribute, Command, Ends, Managed, Notice, Output, Response, Step, TaskId, TaskManagement};
