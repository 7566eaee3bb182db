//! Work of Ethernet ports on several threads: [`Spread`].
//!
//! A step that finds frames at several ports has three phases:
//!
//! | phase | threads | work |
//! |---|---|---|
//! | receive | all, a port each | reads batches, and decides the way of each data frame by the tables of the step |
//! | order | the instance's | puts frames into egress queues, port by port in the order of reception; passes all others to the machines |
//! | send | all, a port each | empties egress queues |
//!
//! So machines, counters and egress queues have one owner, and no replica of a table can be old.
//! The frames of an exchange enter through one port, and stay in order. Tables change between the
//! phases only: a data frame that was received together with a control frame is decided by the
//! tables before it, whichever came first.

use super::fabric::{Fabric, Way};
use super::ports::{LivePort, Ports};
use crate::frame::{FrameBuf, Pool};
use crate::sys::batch::BATCH;
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time for which the other threads look for work without sleep. A wake-up takes longer than a
/// phase, so a thread that sleeps between phases gets no work.
const AWAKE: Duration = Duration::from_micros(300);
/// Maximum batches of a port in one receive phase.
pub const BATCHES: usize = 2;
/// Largest number of threads that is chosen without an option. Each further one gains less, because
/// the second phase has one.
const MAX_THREADS: usize = 4;
/// Smallest number of Ethernet ports for which threads are started without an option: two pairs.
const MIN_PORTS: usize = 4;

/// Threads that share the work of Ethernet ports, and their buffers.
#[derive(Debug, Default)]
pub struct Spread {
    /// Number of threads from the options; 0: chosen by the processors as soon as there are enough
    /// ports.
    wanted: usize,
    /// The number comes from the options.
    is_asked: bool,
    /// The threads, the instance's included; `None`: it has the only one.
    pool: Option<Arc<ThreadPool>>,
    attention: Arc<Attention>,
    /// Batches that no port uses now.
    batches: Vec<Batch>,
    /// Buffers of sent frames, by sending port of the phase.
    sent: Vec<Pool>,
}

/// Keeps the other threads awake while there is work.
#[derive(Debug, Default)]
struct Attention {
    /// Number of phases so far.
    phases: AtomicU64,
    /// Number of threads that are awake.
    awake: AtomicUsize,
}

/// Frames of a port from one receive phase.
#[derive(Debug, Default)]
pub struct Batch {
    /// The port, by index.
    pub port: usize,
    /// Place of the port among those of the phase, in the order of the events.
    place: usize,
    /// Received frames in order, with the way that each takes.
    pub frames: Vec<(FrameBuf, Way)>,
    /// The socket may have more frames.
    has_more: bool,
    /// Buffers for the next frames.
    spare: Vec<FrameBuf>,
}

impl Spread {
    /// Returns the threads for an option; 0 chooses by the processors and ports. No thread is
    /// started yet.
    pub fn new(wanted: usize) -> Spread {
        Spread { wanted, is_asked: wanted > 0, ..Spread::default() }
    }

    /// Starts the threads, if there are enough processors and ports. The calling thread is the
    /// first one of them, and must be the one that runs the instance.
    pub fn start(&mut self, ports: usize) {
        if self.pool.is_some() {
            return;
        }
        if self.wanted == 0 && ports >= MIN_PORTS {
            // The processors are counted once, because the call reads files of the system.
            self.wanted = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        }
        if self.wanted < 2 {
            return;
        }
        let builder = rayon::ThreadPoolBuilder::new().num_threads(self.wanted).use_current_thread();
        match builder.thread_name(|number| format!("ports-{number}")).build() {
            Ok(pool) => self.pool = Some(Arc::new(pool)),
            Err(error) => {
                tracing::warn!(%error, "one thread does the work of all Ethernet ports");
                self.wanted = 1;
            }
        }
    }

    /// Returns whether several threads share the work.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.pool.is_some()
    }

    /// The threads for sessions of iSCSI, if the options ask for several. Without an option,
    /// sessions have one thread, because a gain was *undecided* where hosts, switch and storage
    /// shared two processors (`sanloom bench sessions`).
    pub fn for_sessions(&self) -> Option<&Arc<ThreadPool>> {
        self.pool.as_ref().filter(|_| self.is_asked)
    }

    /// Number of phases that threads have shared.
    #[cfg(test)]
    pub fn phases(&self) -> u64 {
        self.attention.phases.load(Ordering::Relaxed)
    }

    /// Receives frames from the ports with these indexes that are not held back, and decides their
    /// ways. Returns a batch of each that had frames.
    pub fn receive(&mut self, ports: &mut Ports, fabric: &Fabric, readable: &[usize]) -> Vec<Batch> {
        let Some(pool) = &self.pool else { return Vec::new() };
        let able: Vec<usize> = readable.iter().copied().filter(|number| ports[*number].may_receive()).collect();
        if able.is_empty() {
            return Vec::new();
        }
        for _ in self.batches.len()..able.len() {
            self.batches.push(Batch::default());
        }
        let mut used = self.batches.split_off(self.batches.len() - able.len());
        for ((place, batch), port) in used.iter_mut().enumerate().zip(&able) {
            (batch.place, batch.port) = (place, *port);
            let missing = (BATCHES * BATCH).saturating_sub(batch.spare.len());
            batch.spare.extend((0..missing).map(|_| ports.pool.take()));
        }
        // In the order of the ports, as `pick` returns them.
        used.sort_unstable_by_key(|batch| batch.port);
        let picked = pick(ports.list_mut(), used.iter().map(|batch| batch.port).collect());
        let mut jobs: Vec<(&mut LivePort, &mut Batch)> = picked.into_iter().zip(&mut used).collect();
        if jobs.len() > 1 {
            self.attention.call(pool);
        }
        pool.install(|| jobs.par_iter_mut().with_max_len(1).for_each(|(port, batch)| batch.receive(port, fabric)));
        // The order of the events, so that no port is always the first.
        used.sort_unstable_by_key(|batch| batch.place);
        for batch in &used {
            if !batch.has_more || ports[batch.port].ethernet.may_pause() {
                ports.mark(batch.port);
            }
        }
        used
    }

    /// Keeps the memory of a batch whose frames were taken.
    pub fn reuse(&mut self, mut batch: Batch) {
        batch.frames.clear();
        self.batches.push(batch);
    }

    /// Sends the queued frames of the ports with these indexes, of which one is named once.
    pub fn send(&mut self, ports: &mut [LivePort], changed: &[usize], free: &mut Pool) {
        let Some(pool) = &self.pool else { return };
        let mut able: Vec<usize> = changed.iter().copied().filter(|number| ports[*number].may_send()).collect();
        if able.len() < 2 {
            return;
        }
        able.sort_unstable();
        self.sent.resize_with(self.sent.len().max(able.len()), Pool::default);
        let picked = pick(ports, able);
        let mut jobs: Vec<(&mut LivePort, &mut Pool)> = picked.into_iter().zip(&mut self.sent).collect();
        self.attention.call(pool);
        pool.install(|| jobs.par_iter_mut().with_max_len(1).for_each(|(port, sent)| port.ethernet.flush(sent)));
        self.sent.iter_mut().for_each(|sent| free.append(sent));
    }
}

impl Attention {
    /// Announces a phase, and wakes the other threads if all of them sleep.
    fn call(self: &Arc<Attention>, pool: &ThreadPool) {
        self.phases.fetch_add(1, Ordering::Relaxed);
        // The call of the other threads is also queued for this one, which does nothing for it.
        while rayon::yield_local() == Some(rayon::Yield::Executed) {}
        let others = pool.current_num_threads() - 1;
        if self.awake.compare_exchange(0, others, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let attention = self.clone();
            pool.spawn_broadcast(move |thread| {
                // The first one is the instance's.
                if thread.index() > 0 {
                    attention.look_for_work();
                    attention.awake.fetch_sub(1, Ordering::AcqRel);
                }
            });
        }
    }

    /// Takes work from other threads until there was no phase for a while.
    fn look_for_work(&self) {
        let (mut phases, mut since) = (0, Instant::now());
        loop {
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                std::hint::spin_loop();
            }
            let now = self.phases.load(Ordering::Relaxed);
            if now != phases {
                (phases, since) = (now, Instant::now());
            } else if since.elapsed() > AWAKE {
                return;
            }
        }
    }
}

impl Batch {
    /// Receives frames of a port, and decides their ways.
    fn receive(&mut self, port: &mut LivePort, fabric: &Fabric) {
        for _ in 0..BATCHES {
            let room = self.spare.len().saturating_sub(BATCH);
            let Some((got, cut)) = port.receive(&mut self.spare[room..]) else { break };
            for (frame, bit) in self.spare.drain(room..room + got).zip(0..) {
                let mut frame = frame;
                let way = match cut >> bit & 1 {
                    0 => fabric.way(&port.segments, &mut frame),
                    _ => Way::Nowhere,
                };
                self.frames.push((frame, way));
            }
        }
        self.has_more = port.may_receive();
    }
}

/// Returns the places with these indexes, which ascend.
fn pick<T>(mut list: &mut [T], indexes: Vec<usize>) -> Vec<&mut T> {
    let mut first = 0;
    let mut picked = Vec::with_capacity(indexes.len());
    for index in indexes {
        debug_assert!(index >= first, "the indexes do not ascend");
        let Some((place, rest)) = list.get_mut(index.wrapping_sub(first)..).and_then(<[T]>::split_first_mut) else {
            debug_assert!(false, "place {index} does not exist");
            break;
        };
        picked.push(place);
        list = rest;
        first = index + 1;
    }
    picked
}
