//! Reads and writes of a disk: cache, read-ahead, medium and bus of one request.

use super::config::ReadAhead;
use super::geometry::Place;
use super::mechanism::{Arm, Stream};
use super::model::{Ahead, Disk, Extent, Submitted};
use super::request::{Op, Phases, Source};
use super::schedule::Waiting;

impl Disk {
    /// Returns the track of the head, which a read-ahead may have moved.
    pub(super) fn arm_at(&mut self, at_ps: u64) -> Arm {
        self.update_read_ahead(at_ps);
        self.arm
    }

    /// Enters into the cache what the read-ahead has read at `at_ps`.
    fn update_read_ahead(&mut self, at_ps: u64) {
        if at_ps <= self.arm_free_ps {
            // The access that the read-ahead continues has not ended.
            return;
        }
        if let Some(ahead) = &mut self.ahead {
            let (end_lbn, arm) = ahead.stream.until(&self.mechanism, ahead.limit_lbn, at_ps);
            self.segments.extend(ahead.segment, end_lbn);
            self.arm = arm;
        }
    }

    /// Ends the read-ahead, because the arm moves at `at_ps`.
    fn stop_read_ahead(&mut self, at_ps: u64) {
        self.update_read_ahead(at_ps);
        self.ahead = None;
    }

    /// Returns the address at which a read-ahead behind `lbn..end_lbn` ends. The track that holds
    /// `known_end_lbn` - 1 is known to end there.
    fn read_ahead_limit(&self, lbn: u64, end_lbn: u64, known_end_lbn: u64) -> u64 {
        let cache = &self.config.cache;
        let geometry = &self.mechanism.geometry;
        let is_sequential = lbn == self.last_read_end_lbn;
        if cache.read_ahead_only_if_sequential && !is_sequential {
            return end_lbn;
        }
        let track_end = || if end_lbn <= known_end_lbn { known_end_lbn } else { geometry.track_end(end_lbn - 1) };
        let limit_lbn = match cache.read_ahead {
            ReadAhead::None => end_lbn,
            ReadAhead::ToEndOfTrack => track_end(),
            ReadAhead::ToEndOfCylinder => geometry.cylinder_end(end_lbn - 1),
            ReadAhead::UntilFull => u64::MAX,
            ReadAhead::OneTrackAhead if is_sequential => geometry.track_end(track_end()),
            ReadAhead::OneTrackAhead => track_end(),
        };
        limit_lbn.min(end_lbn.saturating_add(cache.max_read_ahead_blocks)).min(geometry.blocks())
    }

    fn after(&self) -> usize {
        usize::from(self.last_op != Op::Read)
    }

    /// Serves a read whose blocks are in the cache, or are about to be read by the read-ahead.
    /// Returns false if the arm must move.
    pub(super) fn read_from_cache(&mut self, now_ps: u64, submitted: &Submitted) -> bool {
        let request = submitted.request;
        let (lbn, end_lbn) = (request.lbn, request.lbn + request.blocks);
        self.update_read_ahead(now_ps);
        let Some(index) = self.segments.find(lbn) else { return false };
        let is_complete = end_lbn <= self.segments.get(index).end_lbn;
        let ahead = self.ahead.filter(|ahead| ahead.segment == index && lbn < ahead.limit_lbn);
        if !is_complete && ahead.is_none() {
            return false;
        }
        let overhead_ps = self.times.read_hit[self.after()];
        let start_ps = now_ps.max(self.command_free_ps);
        self.command_free_ps = start_ps + overhead_ps;
        let (bus_block_ps, completion_ps) = (self.times.bus_read_block, self.times.read_completion);
        let bus_ps = request.blocks * bus_block_ps;
        let bus_start_ps = self.bus.reserve(self.command_free_ps, bus_ps);
        let mut medium_ps = 0;
        let mut end_ps = bus_start_ps + bus_ps;
        if now_ps < self.arm_free_ps && self.arriving == Some(index) {
            // The blocks are part of an access that has not ended.
            medium_ps = self.arm_free_ps.saturating_sub(self.command_free_ps);
            end_ps = end_ps.max(self.arm_free_ps + bus_block_ps);
        }
        if let Some(mut ahead) = ahead {
            if !is_complete {
                let blocks = end_lbn - ahead.stream.lbn();
                let read_ps = ahead.stream.end_ps(&self.mechanism, blocks, false);
                medium_ps = read_ps.saturating_sub(self.command_free_ps);
                end_ps = end_ps.max(read_ps + bus_block_ps);
                self.arm_free_ps = self.arm_free_ps.max(read_ps);
                self.media_free_ps = self.arm_free_ps;
                self.arriving = Some(index);
            }
            ahead.limit_lbn = ahead.limit_lbn.max(self.read_ahead_limit(lbn, end_lbn, 0));
            self.ahead = Some(ahead);
        }
        self.segments.touch(index);
        self.segments.extend(index, end_lbn);
        if !self.config.cache.keeps_read_blocks {
            self.segments.discard_read(index, end_lbn);
        }
        self.last_read_end_lbn = end_lbn;
        self.last_op = Op::Read;
        let phases = Phases {
            queue_ps: start_ps - submitted.at_ps,
            overhead_ps: overhead_ps + completion_ps,
            medium_ps,
            bus_ps: end_ps - self.command_free_ps - medium_ps,
            ..Phases::default()
        };
        let source = if is_complete { Source::Cache } else { Source::ReadAhead };
        self.end(submitted, end_ps + completion_ps, source, phases);
        true
    }

    /// Reads from the medium, as soon as the arm is free.
    pub(super) fn read_from_medium(&mut self, submitted: &Submitted, place: Place) {
        let request = submitted.request;
        let (lbn, end_lbn) = (request.lbn, request.lbn + request.blocks);
        let command_ps = submitted.at_ps.max(self.media_free_ps);
        let overhead_ps = self.times.read_miss[self.after()];
        let start_ps = (command_ps + overhead_ps).max(self.arm_free_ps);
        self.stop_read_ahead(start_ps);
        // Blocks at the start of the request may be in the cache already.
        let known = self.segments.find(lbn);
        let known_lbn = known.map_or(lbn, |index| self.segments.get(index).end_lbn.clamp(lbn, end_lbn - 1));
        let place = if known_lbn == lbn { place } else { self.mechanism.geometry.place(known_lbn) };
        let limit_lbn = self.read_ahead_limit(lbn, end_lbn, known_lbn + u64::from(place.left_on_track));
        let approach = self.mechanism.approach(start_ps, self.arm, &place, false);
        let begin_ps = start_ps + approach.move_ps + approach.wait_ps;
        let mut stream = Stream::new(known_lbn, place, begin_ps);
        let blocks = end_lbn - known_lbn;
        let first_stream = stream;
        let mut read_ps = stream.pass(&self.mechanism, blocks, false);
        let revolution_ps = self.mechanism.geometry.revolution_ps();
        let is_on_one_track = blocks <= u64::from(place.left_on_track);
        if self.config.cache.zero_latency_reads && is_on_one_track {
            // The head may reach its track among the blocks; one revolution later all are read.
            read_ps = read_ps.min(begin_ps - approach.wait_ps + revolution_ps);
        }
        self.count_access(self.arm, place.arm(), read_ps - start_ps);
        let (bus_block_ps, completion_ps) = (self.times.bus_read_block, self.times.read_completion);
        let percent = u64::from(self.config.cache.read_watermark_percent);
        let first = (request.blocks * percent).div_ceil(100).max(1).saturating_sub(known_lbn - lbn).max(1);
        let first_ps = first_stream.end_ps(&self.mechanism, first, false);
        let bus_ps = request.blocks * bus_block_ps;
        let bus_start_ps = self.bus.reserve(first_ps, bus_ps);
        let end_ps = (bus_start_ps + bus_ps).max(read_ps + bus_block_ps);
        // A segment holds only so many blocks, so the medium cannot be further ahead of the bus.
        let held_ps = self.config.cache.segment_blocks.min(request.blocks) * bus_block_ps;
        self.arm_free_ps = read_ps.max(end_ps - held_ps);
        self.media_free_ps = self.arm_free_ps;
        self.arm = stream.arm();
        self.arriving = known.or_else(|| self.segments.take(lbn));
        if let Some(index) = self.arriving {
            self.segments.touch(index);
            self.segments.extend(index, end_lbn);
            if !self.config.cache.keeps_read_blocks {
                self.segments.discard_read(index, end_lbn);
            }
            if limit_lbn > end_lbn {
                self.ahead = Some(Ahead { segment: index, stream, limit_lbn });
            }
        }
        self.last_read_end_lbn = end_lbn;
        self.last_op = Op::Read;
        let phases = Phases {
            queue_ps: start_ps - overhead_ps - submitted.at_ps,
            overhead_ps: overhead_ps + completion_ps,
            seek_ps: approach.move_ps,
            rotation_ps: approach.wait_ps,
            medium_ps: read_ps - begin_ps,
            bus_ps: end_ps - read_ps,
        };
        self.end(submitted, end_ps + completion_ps, Source::Medium, phases);
    }

    /// Takes a write into the cache, which has room for it.
    pub(super) fn write_to_cache(&mut self, now_ps: u64, submitted: &Submitted) {
        let request = submitted.request;
        let overhead_ps = self.times.write[self.after()];
        let command_ps = submitted.at_ps.max(self.command_free_ps);
        // A write without room has had its overhead while it waited.
        let start_ps = (command_ps + overhead_ps).max(now_ps);
        self.command_free_ps = start_ps;
        let bus_ps = request.blocks * self.times.bus_write_block;
        let bus_start_ps = self.bus.reserve(start_ps + self.times.write_transfer_delay, bus_ps);
        let ready_ps = bus_start_ps + bus_ps;
        self.update_read_ahead(now_ps);
        let end_of = |disk: &Disk, segment: Option<usize>| segment.map(|index| disk.segments.get(index).end_lbn);
        let (ahead, arriving) = (self.ahead.map(|ahead| ahead.segment), self.arriving);
        let end_lbns = [end_of(self, ahead), end_of(self, arriving)];
        self.segments.write(request.lbn, request.blocks);
        // The write may have taken the segment that the medium fills.
        if end_of(self, ahead) != end_lbns[0] {
            self.ahead = None;
        }
        if end_of(self, arriving) != end_lbns[1] {
            self.arriving = None;
        }
        self.last_write_end_lbn = request.lbn + request.blocks;
        self.dirty_blocks += request.blocks;
        let last = self.last_extent.filter(|_| self.extends_last(&request));
        if let Some(index) = last {
            let extent = self.extents.get_mut(index);
            extent.blocks += request.blocks;
            extent.ready_ps = ready_ps;
        } else {
            let lbn = request.lbn;
            let extent = Extent { lbn, blocks: request.blocks, start_ps, ready_ps };
            let index = self.extents.put(extent);
            let place = self.mechanism.geometry.place(lbn);
            self.dirty.push(Waiting::new(index, true, &place, now_ps));
            self.last_extent = Some(index);
        }
        self.last_op = Op::Write;
        let phases = Phases {
            queue_ps: start_ps - overhead_ps - submitted.at_ps,
            overhead_ps,
            bus_ps: ready_ps - start_ps,
            ..Phases::default()
        };
        self.end(submitted, ready_ps, Source::Cache, phases);
    }

    /// Writes an extent of the cache to the medium.
    pub(super) fn write_back(&mut self, at_ps: u64, extent: &Extent) {
        let start_ps = at_ps.max(extent.start_ps);
        let end_ps = self.write(start_ps, extent.ready_ps, extent.lbn, extent.blocks);
        self.writing_blocks = extent.blocks;
        self.stats.write_backs += 1;
        self.stats.write_back_ps += end_ps - start_ps;
    }

    /// Writes a request to the medium, as soon as the arm is free.
    pub(super) fn write_to_medium(&mut self, submitted: &Submitted) {
        let request = submitted.request;
        let command_ps = submitted.at_ps.max(self.media_free_ps);
        let overhead_ps = self.times.write[self.after()];
        let start_ps = (command_ps + overhead_ps).max(self.arm_free_ps);
        let bus_ps = request.blocks * self.times.bus_write_block;
        let ready_ps = self.bus.reserve(start_ps + self.times.write_transfer_delay, bus_ps) + bus_ps;
        self.stop_read_ahead(start_ps);
        let place = self.mechanism.geometry.place(request.lbn);
        let seek_ps = self.mechanism.move_ps(self.arm, place.arm(), true);
        let end_ps = self.write(start_ps, ready_ps, request.lbn, request.blocks);
        self.stats.busy_ps += end_ps - start_ps;
        self.media_free_ps = end_ps;
        self.segments.write(request.lbn, request.blocks);
        self.last_write_end_lbn = request.lbn + request.blocks;
        self.last_op = request.op;
        let completion_ps = self.times.write_completion;
        let on_track_ps = (start_ps + seek_ps).max(ready_ps);
        let rotation_ps = self.mechanism.wait_ps(on_track_ps, place.angle_ps).min(end_ps - on_track_ps);
        let phases = Phases {
            queue_ps: start_ps - overhead_ps - submitted.at_ps,
            overhead_ps: overhead_ps + completion_ps,
            seek_ps,
            rotation_ps,
            medium_ps: end_ps - on_track_ps - rotation_ps,
            bus_ps: on_track_ps - start_ps - seek_ps,
        };
        self.end(submitted, end_ps + completion_ps, Source::Medium, phases);
    }

    /// Moves the arm at `start_ps`, writes blocks that are in the cache at `ready_ps`, and returns
    /// the end.
    fn write(&mut self, start_ps: u64, ready_ps: u64, lbn: u64, blocks: u64) -> u64 {
        self.stop_read_ahead(start_ps);
        let geometry = &self.mechanism.geometry;
        let place = geometry.place(lbn);
        let last = geometry.place(lbn + blocks - 1);
        let move_ps = self.mechanism.move_ps(self.arm, place.arm(), true);
        let is_zero_latency = self.config.cache.zero_latency_writes;
        let end_ps = self.mechanism.write_end_ps(lbn, blocks, (start_ps + move_ps).max(ready_ps), is_zero_latency);
        self.stats.accesses += 1;
        self.stats.seek_cylinders += u64::from(self.arm.cylinder.abs_diff(place.cylinder));
        self.arm = last.arm();
        self.arm_free_ps = end_ps;
        self.arriving = None;
        end_ps
    }

    fn count_access(&mut self, from: Arm, to: Arm, busy_ps: u64) {
        self.stats.accesses += 1;
        self.stats.seek_cylinders += u64::from(from.cylinder.abs_diff(to.cylinder));
        self.stats.busy_ps += busy_ps;
    }
}
