//! Hosts (the SANSim paper, section 2.2): the layers between a request of an application and the
//! HBA.
//!
//! A request enters the [`IoQueue`], where it may be merged and reordered. It takes processor time
//! of the [`Cpu`]. It leaves on a path selected by [`Multipath`], through an HBA whose
//! [`FrameWindow`] has space. Its data moves over the [`Bus`], and the host sees its completion
//! when [`Interrupts`] raises an interrupt.

mod bus;
mod cpu;
mod edges;
mod elevator;
mod error_handler;
mod interrupt;
mod multipath;
mod pool;
mod queue;
mod queue_depth;
mod server;
mod window;

pub use bus::{Bus, Direction};
pub use cpu::{Cpu, Work};
pub use error_handler::{Action, Device, ErrorHandler, Event, HBA_RESET_PS};
pub use interrupt::{Arrival, Interface, Interrupts, RaisedInterrupt};
pub use multipath::{Choice, End, Input, Multipath, Output, PathState};
pub use pool::{Command, CommandId, Member};
pub use queue::{IoQueue, Pushed, QueueCounters};
pub use queue_depth::{EVENT_PS, IDLE_PAUSE_PS, QueueDepth, SEND_PS};
pub use server::FifoServer;
pub use window::FrameWindow;
