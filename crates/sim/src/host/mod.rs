//! Hosts (document 001, section 2.2): what stands between an application's request and the HBA.
//!
//! A request enters the [`IoQueue`], may be merged and re-ordered there, takes processor time of the [`Cpu`], leaves on
//! a path that [`Multipath`] chooses through an HBA whose [`FrameWindow`] has room, moves its data over the [`Bus`],
//! and is seen to have ended when [`Interrupts`] says so.

mod bus;
mod cpu;
mod edges;
mod elevator;
mod interrupt;
mod multipath;
mod pool;
mod queue;
mod server;
mod window;

pub use bus::Bus;
pub use cpu::{Cpu, Work};
pub use interrupt::{Interrupts, Seen};
pub use multipath::{Choice, End, FAILURES_TO_DEMOTE, Input, Multipath, Output, PROBE_INTERVAL_PS, PathState};
pub use pool::{Command, CommandId, Member};
pub use queue::{IoQueue, Pushed, QueueCounters};
pub use server::FifoServer;
pub use window::FrameWindow;
