//! Disks or SSDs of a backstore, and the requests in them.

use super::NEVER;
use super::device::Device;
use super::loops::{LoopConfig, Loops};
use crate::disk::{Op, Request};
use crate::raid::Phase;

/// Part of a group that needs the end of a disk request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// A request to the group, by its number.
    Request(u32),
    /// A write of a log, for a request to the group.
    Log(u32),
    /// A step of a rebuild or scrub, or a repair, by its number.
    Step(u64),
}

/// A read or write of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DeviceIo {
    pub unit: u16,
    /// Number of the device, over all units.
    pub device: u32,
    pub owner: Owner,
    pub stripe: u64,
    pub phase: Phase,
    pub lba: u64,
    pub blocks: u32,
    pub op: Op,
}

#[derive(Clone, Debug)]
pub(super) struct Devices {
    idle: Device,
    devices: Vec<Device>,
    /// Next time of each disk.
    due_ps: Vec<u64>,
    /// Disks whose next time must be asked for. A disk is asked after all requests that arrive at
    /// one time, so that it compares them with each other.
    touched: Vec<u32>,
    /// Requests in the disks by their identifiers; `None` is unused.
    ios: Vec<Option<DeviceIo>>,
    free: Vec<u32>,
    in_flight: Vec<u32>,
    /// Loops between controllers and devices; `None`: each device has a line of its own.
    loops: Option<Loops>,
    /// Requests that were submitted, and with `true` those that ended, in order.
    #[cfg(test)]
    pub log: Vec<(bool, DeviceIo)>,
}

impl Devices {
    pub fn new(idle: Device, count: usize, loops: Option<LoopConfig>) -> Devices {
        Devices {
            loops: loops.map(|config| Loops::new(config, count)),
            devices: vec![idle.clone(); count],
            idle,
            due_ps: vec![NEVER; count],
            touched: Vec::new(),
            ios: Vec::new(),
            free: Vec::new(),
            in_flight: vec![0; count],
            #[cfg(test)]
            log: Vec::new(),
        }
    }

    pub fn submit(&mut self, now_ps: u64, io: DeviceIo) {
        let id = match self.free.pop() {
            Some(id) => {
                self.ios[id as usize] = Some(io);
                id
            }
            None => {
                self.ios.push(Some(io));
                self.ios.len() as u32 - 1
            }
        };
        #[cfg(test)]
        self.log.push((false, io));
        self.in_flight[io.device as usize] += 1;
        match &mut self.loops {
            Some(loops) => loops.send(now_ps, io.device, id, transfer(&io), true),
            None => self.arrive(now_ps, id, io),
        }
    }

    /// Passes a request to its device.
    fn arrive(&mut self, now_ps: u64, id: u32, io: DeviceIo) {
        let request = Request { id: id.into(), lbn: io.lba, blocks: u64::from(io.blocks).max(1), op: io.op };
        self.devices[io.device as usize].submit(now_ps, request);
        self.touched.push(io.device);
    }

    /// Requests in a disk.
    pub fn in_flight(&self, device: u32) -> u32 {
        self.in_flight[device as usize]
    }

    pub fn next_ps(&mut self) -> u64 {
        while let Some(device) = self.touched.pop() {
            self.due_ps[device as usize] = self.devices[device as usize].next_ps().unwrap_or(NEVER);
        }
        let due_ps = self.due_ps.iter().copied().min().unwrap_or(NEVER);
        self.loops.as_ref().map_or(due_ps, |loops| loops.next_ps().min(due_ps))
    }

    pub fn pop_ended(&mut self, now_ps: u64) -> Option<DeviceIo> {
        while let Some((id, has_arrived)) = self.loops.as_mut().and_then(|loops| loops.pop(now_ps)) {
            match self.ios[id as usize] {
                Some(io) if has_arrived => self.arrive(now_ps, id, io),
                _ => return self.end(id),
            }
        }
        while let Some(device) = self.due_ps.iter().position(|&due_ps| due_ps <= now_ps) {
            if let Some(ended) = self.devices[device].pop_ended(now_ps) {
                match (&mut self.loops, self.ios[ended as usize]) {
                    (Some(loops), Some(io)) => loops.send(now_ps, io.device, ended as u32, transfer(&io), false),
                    _ => return self.end(ended as u32),
                }
                continue;
            }
            self.due_ps[device] = NEVER;
            self.touched.push(device as u32);
        }
        None
    }

    fn end(&mut self, id: u32) -> Option<DeviceIo> {
        let io = self.ios[id as usize].take()?;
        self.free.push(id);
        self.in_flight[io.device as usize] -= 1;
        #[cfg(test)]
        self.log.push((true, io));
        Some(io)
    }

    /// Replaces a disk by a new one. `failed` receives the requests that were in the old one.
    pub fn replace(&mut self, device: u32, failed: &mut Vec<DeviceIo>) {
        let at = device as usize;
        self.devices[at] = self.idle.clone();
        self.due_ps[at] = NEVER;
        self.in_flight[at] = 0;
        let first = self.free.len();
        for (id, slot) in (0..).zip(&mut self.ios) {
            if let Some(io) = slot.take_if(|io| io.device == device) {
                failed.push(io);
                self.free.push(id);
            }
        }
        if let Some(loops) = &mut self.loops {
            loops.discard(&self.free[first..]);
        }
    }

    /// Adds idle devices.
    pub fn add(&mut self, count: usize) {
        let count = self.devices.len() + count;
        self.devices.resize(count, self.idle.clone());
        self.due_ps.resize(count, NEVER);
        self.in_flight.resize(count, 0);
        self.loops.iter_mut().for_each(|loops| loops.grow(count));
    }

    /// All devices lose their power and their requests. Returns the blocks lost in their caches.
    pub fn power_loss(&mut self, now_ps: u64) -> u64 {
        self.due_ps.fill(NEVER);
        self.in_flight.fill(0);
        self.touched.clear();
        self.ios.clear();
        self.free.clear();
        self.loops.iter_mut().for_each(Loops::power_loss);
        self.devices.iter_mut().map(|device| device.power_loss(now_ps, &self.idle)).sum()
    }

    /// Blocks of a device.
    pub fn blocks(&self) -> u64 {
        self.idle.blocks()
    }

    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    /// Time that the busiest loop was occupied in the measurement; `None` without loops.
    pub fn busiest_loop_ps(&self, now_ps: u64) -> Option<u64> {
        self.loops.as_ref().map(|loops| loops.busiest_ps(now_ps))
    }

    pub fn restart(&mut self, now_ps: u64) {
        self.loops.iter_mut().for_each(|loops| loops.restart(now_ps));
        self.devices.iter_mut().for_each(|device| device.restart(now_ps));
    }
}

/// Bytes that a request moves, and whether to the device.
fn transfer(io: &DeviceIo) -> (u64, bool) {
    let bytes = if io.op == Op::Flush { 0 } else { u64::from(io.blocks) * 512 };
    (bytes, matches!(io.op, Op::Write | Op::WriteThrough))
}
