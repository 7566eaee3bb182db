//! Disks or SSDs of a backstore, and the requests in them.

use super::NEVER;
use super::device::Device;
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
    /// Requests that were submitted, and with `true` those that ended, in order.
    #[cfg(test)]
    pub log: Vec<(bool, DeviceIo)>,
}

impl Devices {
    pub fn new(idle: Device, count: usize) -> Devices {
        Devices {
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
        self.due_ps.iter().copied().min().unwrap_or(NEVER)
    }

    pub fn pop_ended(&mut self, now_ps: u64) -> Option<DeviceIo> {
        while let Some(device) = self.due_ps.iter().position(|&due_ps| due_ps <= now_ps) {
            if let Some(ended) = self.devices[device].pop_ended(now_ps) {
                let io = self.ios[ended as usize].take();
                self.free.push(ended as u32);
                self.in_flight[device] -= 1;
                if let Some(io) = io {
                    #[cfg(test)]
                    self.log.push((true, io));
                    return Some(io);
                }
                continue;
            }
            self.due_ps[device] = NEVER;
            self.touched.push(device as u32);
        }
        None
    }

    /// Replaces a disk by a new one. `failed` receives the requests that were in the old one.
    pub fn replace(&mut self, device: u32, failed: &mut Vec<DeviceIo>) {
        let at = device as usize;
        self.devices[at] = self.idle.clone();
        self.due_ps[at] = NEVER;
        self.in_flight[at] = 0;
        for (id, slot) in (0..).zip(&mut self.ios) {
            if let Some(io) = slot.take_if(|io| io.device == device) {
                failed.push(io);
                self.free.push(id);
            }
        }
    }

    /// Adds idle devices.
    pub fn add(&mut self, count: usize) {
        let count = self.devices.len() + count;
        self.devices.resize(count, self.idle.clone());
        self.due_ps.resize(count, NEVER);
        self.in_flight.resize(count, 0);
    }

    /// All devices lose their power and their requests. Returns the blocks lost in their caches.
    pub fn power_loss(&mut self, now_ps: u64) -> u64 {
        self.due_ps.fill(NEVER);
        self.in_flight.fill(0);
        self.touched.clear();
        self.ios.clear();
        self.free.clear();
        self.devices.iter_mut().map(|device| device.power_loss(now_ps, &self.idle)).sum()
    }

    /// Blocks of a device.
    pub fn blocks(&self) -> u64 {
        self.idle.blocks()
    }

    pub fn all(&self) -> &[Device] {
        &self.devices
    }

    pub fn restart(&mut self, now_ps: u64) {
        self.devices.iter_mut().for_each(|device| device.restart(now_ps));
    }
}
