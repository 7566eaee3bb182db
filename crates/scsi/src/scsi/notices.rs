//! Output queue of a device: [`Notices`].

use super::step::{Ends, Notice, Output, Step, TaskId};
use std::collections::VecDeque;

/// Outputs that do not belong to a call of a transport.
#[derive(Debug)]
pub(super) struct Notices {
    queue: VecDeque<Output>,
    /// Number of ports of the device.
    ports: u16,
}

impl Notices {
    pub(super) fn new(ports: u16) -> Notices {
        Notices { queue: VecDeque::new(), ports }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// Sends the next step of a task to the transport of its port.
    pub(super) fn step(&mut self, port: u16, task: TaskId, step: Step) {
        debug_assert!(port < self.ports, "port {port} of {}", self.ports);
        self.queue.push_back(Output::Port { port, notice: Notice::Step { task, step } });
    }

    /// Notifies ports of tasks that end: port `only`, or all if it is `None`, except the port that
    /// ends its own tasks.
    pub(super) fn ends(&mut self, ends: Ends, only: Option<u16>, except: Option<u16>) {
        for port in 0..self.ports {
            if Some(port) != except && only.is_none_or(|only| only == port) {
                self.queue.push_back(Output::Port { port, notice: Notice::End(ends) });
            }
        }
    }

    /// Requests that a reservation record be stored.
    pub(super) fn persist(&mut self, seq: u64, unit: u16, record: Box<[u8]>) {
        self.queue.push_back(Output::Persist { seq, unit, record });
    }
}
