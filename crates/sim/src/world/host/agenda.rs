//! Scheduled jobs of a host.

use super::{Hosts, Job, tcp};
use crate::host::{Event, Input as MultipathInput};
use crate::net::{FrameRef, NEVER};
use crate::world::Env;
use std::cmp::Reverse;

/// Interval at which a stopping machine checks whether its last request has ended, in ps.
const STOP_CHECK_PS: u64 = 1_000_000_000;

/// Result of a job that concerns the layers below the hosts.
pub(in crate::world) enum Due {
    /// The bus has moved a frame for `nport` into memory. The frame still holds a receive buffer of
    /// `plane`.
    Received { nport: u16, plane: u16, frame: FrameRef },
    /// The virtual machine has ended its last request, so its ports log out.
    LogOut,
    /// The error handler of an HBA resets it: it logs in again.
    ResetHba { nport: u16 },
}

impl Hosts {
    /// Starts the streams of all hosts. Stream times count from now.
    pub(in crate::world) fn start_streams(&mut self, env: &mut Env<'_>) {
        let now = env.net.now();
        for host in 0..self.nodes.len() as u16 {
            let node = &mut self.nodes[usize::from(host)];
            node.measured.last_end_ps = now;
            node.measured.outage.request(now);
            for stream in 0..node.streams.len() as u32 {
                while let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(now + at, Job::Arrival(stream));
                    if node.streams[stream as usize].1.closed_depth().is_none() {
                        break;
                    }
                }
            }
            self.arm(env, host);
        }
    }

    /// Runs the jobs of a host that are due. Returns at the first result for the layers below; call
    /// it again until it returns `None`.
    pub(in crate::world) fn run_jobs(&mut self, env: &mut Env<'_>, host: u16) -> Option<Due> {
        let now = env.net.now();
        while self.node(host).next_job_ps() <= now {
            let Some(Reverse((_, _, job))) = self.nodes[usize::from(host)].agenda.pop() else { break };
            let due = self.run_job(env, host, job);
            if due.is_some() {
                return due;
            }
        }
        self.send_requests(env, host);
        self.arm(env, host);
        None
    }

    fn run_job(&mut self, env: &mut Env<'_>, host: u16, job: Job) -> Option<Due> {
        let now = env.net.now();
        let node = &mut self.nodes[usize::from(host)];
        match job {
            Job::Arrival(stream) => {
                let open = node.streams[stream as usize].1.closed_depth().is_none();
                self.create_request(env, host, stream);
                let node = &mut self.nodes[usize::from(host)];
                if open && let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(env.start_ps + at, Job::Arrival(stream));
                }
            }
            Job::AfterThinkTime(stream) => self.create_request(env, host, stream),
            Job::Carry(command, generation) if node.waits(command, generation) => self.carry(env, host, command),
            Job::Submit(command, generation) if node.waits(command, generation) => self.submit(env, host, command),
            Job::Carry(..) | Job::Submit(..) => {}
            Job::InterruptHandled(hba, count) => self.process(env, host, hba, count),
            Job::Interrupt(hba) => {
                if let Some(interrupt) = node.interrupts[usize::from(hba)].timeout(now, &mut node.cpu) {
                    self.interrupt_raised(env, host, hba, interrupt);
                }
            }
            Job::DmaIn(hba, slot) => {
                let nport = node.nports[usize::from(hba)];
                return node.dma.remove(slot).map(|(plane, frame)| Due::Received { nport, plane, frame });
            }
            Job::DmaOut(slot) => {
                if let Some((plane, frame)) = node.dma.remove(slot) {
                    env.net.send_frame(plane, frame);
                }
            }
            Job::Stop if node.is_busy() => node.plan(now + STOP_CHECK_PS, Job::Stop),
            Job::Stop => {
                node.is_logged_out = true;
                return Some(Due::LogOut);
            }
            Job::Unblock(device) => {
                node.unblock(device);
                self.continue_device(env, host, device);
            }
            Job::Release(device) => self.continue_device(env, host, device),
            Job::ErrorHandler(hba) => self.handle_recovery(env, host, hba, Event::Timeout),
            Job::ResetHba(hba) => match node.nports.get(usize::from(hba)) {
                Some(&nport) => return Some(Due::ResetHba { nport }),
                None => tcp::restart(self, env, host, hba),
            },
            Job::PathCheck(system) => node.paths.system(system).check_preference(),
            Job::Paths(system) => {
                node.paths.armed(system, NEVER);
                node.paths.system(system).multipath.handle(now, MultipathInput::Timeout);
                self.drain_paths(env, host, system);
            }
        }
        None
    }
}
