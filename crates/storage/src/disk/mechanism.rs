//! Arm and rotation: times at which blocks pass the head.

use super::check::ConfigError;
use super::config::{DiskConfig, ps};
use super::geometry::{Geometry, Place};
use super::seek::Seek;

/// Rounding errors of angles stay below this time. A block that has passed by less is still there.
const SLACK_PS: u64 = 16;

/// Track on which a head stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arm {
    /// Cylinder.
    pub cylinder: u32,
    /// Head, from 0.
    pub head: u32,
}

/// Fixed properties of the mechanics of a disk.
#[derive(Clone, PartialEq, Debug)]
pub struct Mechanism {
    /// Layout.
    pub geometry: Geometry,
    /// Seek times.
    pub seek: Seek,
    /// Time of a head switch.
    pub head_switch_ps: u64,
    /// Additional time after a movement before a write.
    pub write_settle_ps: u64,
}

/// Parts of an access to the first block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Approach {
    /// Time of the seek or head switch, with the settling before a write.
    pub move_ps: u64,
    /// Time from the end of the movement to the start of the block.
    pub wait_ps: u64,
}

impl Mechanism {
    /// Computes the layout and the seek times.
    ///
    /// # Errors
    /// If [`Geometry::new`] rejects the parameters.
    pub fn new(config: &DiskConfig) -> Result<Mechanism, ConfigError> {
        let geometry = Geometry::new(config)?;
        let seek = Seek::new(&config.seek, geometry.cylinders(), geometry.revolution_ps());
        let (head_switch_ps, write_settle_ps) = (ps(config.head_switch_ms), ps(config.write_settle_ms));
        Ok(Mechanism { geometry, seek, head_switch_ps, write_settle_ps })
    }

    /// Returns the time to move from one track to another. Seek and head switch overlap.
    pub fn move_ps(&self, from: Arm, to: Arm, is_write: bool) -> u64 {
        if from == to {
            return 0;
        }
        let seek_ps = self.seek.time(from.cylinder.abs_diff(to.cylinder)).time_ps;
        let switch_ps = if from.head == to.head { 0 } else { self.head_switch_ps };
        seek_ps.max(switch_ps) + if is_write { self.write_settle_ps } else { 0 }
    }

    /// Returns the time from `at_ps` until an angle passes the head.
    pub fn wait_ps(&self, at_ps: u64, angle_ps: u64) -> u64 {
        let revolution_ps = self.geometry.revolution_ps();
        let now_ps = at_ps % revolution_ps;
        let wait_ps = if angle_ps >= now_ps { angle_ps - now_ps } else { angle_ps + revolution_ps - now_ps };
        if wait_ps + SLACK_PS >= revolution_ps { 0 } else { wait_ps }
    }

    /// Returns movement and rotational wait for a block, from `at_ps` on.
    pub fn approach(&self, at_ps: u64, from: Arm, place: &Place, is_write: bool) -> Approach {
        let move_ps = self.move_ps(from, place.arm(), is_write);
        Approach { move_ps, wait_ps: self.wait_ps(at_ps + move_ps, place.angle_ps) }
    }

    /// Returns the end of a write of `blocks` whose head is on its track at `ready_ps`.
    pub fn write_end_ps(&self, lbn: u64, blocks: u64, ready_ps: u64, is_zero_latency: bool) -> u64 {
        let place = self.geometry.place(lbn);
        let wait_ps = self.wait_ps(ready_ps, place.angle_ps);
        let here = blocks.min(u64::from(place.left_on_track));
        let revolution_ps = self.geometry.revolution_ps();
        let span_ps = place.blocks_ps(here);
        let starts_inside = is_zero_latency && wait_ps + span_ps > revolution_ps;
        if !starts_inside {
            return Stream::new(lbn, place, ready_ps + wait_ps).end_ps(self, blocks, true);
        }
        let end_ps = ready_ps + revolution_ps;
        if here == blocks {
            return end_ps;
        }
        let mut stream = Stream::new(lbn, place, ready_ps);
        stream.next_track(self, lbn + here, end_ps, true);
        stream.end_ps(self, blocks - here, true)
    }
}

impl Place {
    /// Track of the block.
    pub fn arm(&self) -> Arm {
        Arm { cylinder: self.cylinder, head: self.head }
    }
}

/// Adjacent blocks that pass the head one after the other, with head switches and seeks between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Address of a block.
    lbn: u64,
    /// Its place, so that blocks on the same track need no computation.
    place: Place,
    /// Time at which this block starts to pass the head.
    begin_ps: u64,
}

impl Stream {
    /// Creates a stream whose block `lbn`, at `place`, starts to pass the head at `begin_ps`.
    pub fn new(lbn: u64, place: Place, begin_ps: u64) -> Stream {
        Stream { lbn, place, begin_ps }
    }

    /// Address of the block that starts the stream, or the current track of it.
    pub fn lbn(&self) -> u64 {
        self.lbn
    }

    /// Continues with block `lbn`, the first of its track, after the end of the current track.
    fn next_track(&mut self, mechanism: &Mechanism, lbn: u64, end_ps: u64, is_write: bool) {
        let next = mechanism.geometry.place(lbn);
        let approach = mechanism.approach(end_ps, self.place.arm(), &next, is_write);
        let begin_ps = end_ps + approach.move_ps + approach.wait_ps;
        *self = Stream { lbn, place: next, begin_ps };
    }

    /// Track of the head.
    pub fn arm(&self) -> Arm {
        self.place.arm()
    }

    /// Returns the time at which the last of `blocks` has passed.
    #[inline]
    pub fn end_ps(mut self, mechanism: &Mechanism, blocks: u64, is_write: bool) -> u64 {
        self.pass(mechanism, blocks, is_write)
    }

    /// Continues to the track of the last of `blocks`, and returns the time at which this block has
    /// passed.
    pub fn pass(&mut self, mechanism: &Mechanism, mut blocks: u64, is_write: bool) -> u64 {
        loop {
            let place = self.place;
            let here = blocks.min(u64::from(place.left_on_track));
            let end_ps = self.begin_ps + place.blocks_ps(here);
            if here == blocks || self.lbn + here >= mechanism.geometry.blocks() {
                return end_ps;
            }
            blocks -= here;
            self.next_track(mechanism, self.lbn + here, end_ps, is_write);
        }
    }

    /// Returns the address behind the last block below `limit_lbn` that has passed at `now_ps`, and
    /// the track of the head.
    pub fn until(&mut self, mechanism: &Mechanism, limit_lbn: u64, now_ps: u64) -> (u64, Arm) {
        loop {
            let place = self.place;
            let left = u64::from(place.left_on_track);
            let track_ps = place.blocks_ps(left);
            let end_lbn = self.lbn + left;
            if self.begin_ps + track_ps > now_ps || end_lbn >= limit_lbn {
                if now_ps <= self.begin_ps {
                    return (self.lbn.min(limit_lbn), place.arm());
                }
                let elapsed_ps = (now_ps - self.begin_ps).min(track_ps);
                let turn_ps = mechanism.geometry.revolution_ps();
                let passed = (elapsed_ps + SLACK_PS) * u64::from(place.blocks_per_track) / turn_ps;
                return ((self.lbn + passed.min(left)).min(limit_lbn), place.arm());
            }
            self.next_track(mechanism, end_lbn, self.begin_ps + track_ps, false);
        }
    }
}
