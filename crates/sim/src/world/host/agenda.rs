//! What a host has planned for later, and its buses.

use super::{Job, Stage};
use crate::host::Input as MultipathInput;
use crate::net::{FrameRef, NEVER};
use crate::world::{Owner, World};
use sanloom_core::exchange::SeqTx;
use std::cmp::Reverse;

impl World {
    /// The streams of all hosts begin; their times count from now.
    pub(in crate::world) fn start_streams(&mut self) {
        for host in 0..self.hosts.len() as u16 {
            let now = self.net.now();
            let node = &mut self.hosts[usize::from(host)];
            node.measured.last_end_ps = now;
            for stream in 0..node.streams.len() as u32 {
                while let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(now + at, Job::Arrival(stream));
                    if node.streams[stream as usize].1.closed_depth().is_none() {
                        break;
                    }
                }
            }
            self.arm_host(host);
        }
    }

    pub(in crate::world) fn arm_host(&mut self, host: u16) {
        let at = self.hosts[usize::from(host)].next_job_at();
        self.net.set_timer_earlier(self.timers.host + u32::from(host), at);
    }

    /// Something planned by a host is due.
    pub(in crate::world) fn host_timeout(&mut self, host: u16) {
        let now = self.net.now();
        while self.hosts[usize::from(host)].next_job_at() <= now {
            let Some(Reverse((_, _, job))) = self.hosts[usize::from(host)].agenda.pop() else { break };
            self.host_job(host, job);
        }
        self.pump(host);
        self.arm_host(host);
    }

    fn host_job(&mut self, host: u16, job: Job) {
        let now = self.net.now();
        let start = self.start_ps;
        let node = &mut self.hosts[usize::from(host)];
        match job {
            Job::Arrival(stream) => {
                let open = node.streams[stream as usize].1.closed_depth().is_none();
                self.request(host, stream);
                let node = &mut self.hosts[usize::from(host)];
                if open && let Some(at) = node.streams[stream as usize].1.next_arrival_ps() {
                    node.plan(start + at, Job::Arrival(stream));
                }
            }
            Job::Follow(stream) => self.request(host, stream),
            Job::Submit(command, generation) => {
                let sent = &node.commands[command as usize];
                if sent.generation == generation && sent.stage == Stage::Waiting {
                    self.submit(host, command);
                }
            }
            Job::Seen(hba, count) => self.see(host, hba, count),
            Job::Interrupt(hba) => {
                if let Some(seen) = node.interrupts[usize::from(hba)].timeout(now, &mut node.cpu) {
                    self.seen(host, hba, seen);
                }
            }
            Job::DmaIn(hba, slot) => {
                let nport = node.nports[usize::from(hba)];
                if let Some((plane, frame)) = self.dma.remove(slot) {
                    self.net.release(plane, now);
                    self.accept_data(nport, frame);
                }
            }
            Job::DmaOut(slot) => {
                if let Some((plane, frame)) = self.dma.remove(slot) {
                    self.net.send_frame(plane, frame);
                }
            }
            Job::Stop => self.stop_when_idle(host),
            Job::Paths(system) => {
                node.paths.armed(system, NEVER);
                node.paths.system(system).multipath.handle(now, MultipathInput::Timeout);
                self.drain_paths(host, system);
            }
        }
    }

    /// A data frame that holds a receive buffer of `plane` goes over the bus into memory.
    pub(in crate::world) fn host_dma_in(&mut self, host: u16, hba: u16, done_ps: u64, plane: u16, frame: FrameRef) {
        let slot = self.dma.insert(plane, frame);
        self.hosts[usize::from(host)].plan(done_ps, Job::DmaIn(hba, slot));
        self.arm_host(host);
    }

    /// Write data goes out, over the bus if there is one.
    pub(in crate::world) fn host_transmit(&mut self, host: u16, plane: u16, mut seq: SeqTx) {
        let now = self.net.now();
        if !self.has_bus(plane) {
            self.net.send_data(plane, seq);
            return;
        }
        while let Some(frame) = seq.next_frame() {
            if let Some(done_ps) = self.occupy_bus(now, plane, frame.len) {
                let slot = self.dma.insert(plane, FrameRef::data(&seq, &frame));
                self.hosts[usize::from(host)].plan(done_ps, Job::DmaOut(slot));
            }
        }
        self.arm_host(host);
    }

    fn has_bus(&self, plane: u16) -> bool {
        match self.nodes[usize::from(plane)].owner {
            Owner::Host { host, .. } => !self.hosts[usize::from(host)].buses.is_empty(),
            Owner::Storage { .. } => false,
        }
    }

    /// When the bus behind an N_Port will have moved a frame, `None` if there is no bus.
    #[inline]
    pub(in crate::world) fn occupy_bus(&mut self, now: u64, plane: u16, bytes: u16) -> Option<u64> {
        match self.nodes[usize::from(plane)].owner {
            Owner::Host { host, hba } => self.hosts[usize::from(host)].occupy_bus(now, hba, bytes),
            Owner::Storage { .. } => None,
        }
    }
}
