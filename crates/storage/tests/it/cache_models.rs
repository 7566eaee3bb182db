//! Plain second models of the replacement policies: vectors, searched from end to end.

use sanloom_storage::cache::Policy;

/// An object of a plain model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    key: u64,
    size: u64,
    hits: u64,
}

/// Vectors of objects, newest first.
type Queue = Vec<Object>;

/// A cache as its publication describes it, without any index.
#[derive(Debug)]
pub(crate) struct Plain {
    policy: Policy,
    capacity: u64,
    /// Resident queues. Their meaning depends on the policy.
    queues: Vec<Queue>,
    ghosts: [Queue; 2],
    target: u64,
}

fn units(queue: &[Object]) -> u64 {
    queue.iter().map(|object| object.size).sum()
}

fn take(queue: &mut Queue, key: u64) -> Option<Object> {
    queue.iter().position(|object| object.key == key).map(|at| queue.remove(at))
}

impl Plain {
    pub(crate) fn new(policy: Policy, capacity: u64) -> Plain {
        let queues = match policy {
            Policy::Fifo | Policy::Lru | Policy::Clock | Policy::Lfu => 1,
            Policy::TwoQ | Policy::Arc | Policy::S3Fifo => 2,
            Policy::Slru { segments } => usize::from(segments),
        };
        Plain { policy, capacity, queues: vec![Vec::new(); queues], ghosts: [Vec::new(), Vec::new()], target: 0 }
    }

    /// Looks up a key and inserts it if it is absent. Returns whether it was a hit.
    pub(crate) fn access(&mut self, key: u64, size: u64) -> bool {
        if self.hit(key) {
            return true;
        }
        if size > self.capacity {
            return false;
        }
        let in_ghosts = [0, 1].map(|at| self.ghosts[at].iter().any(|object| object.key == key));
        if self.policy == Policy::Arc {
            let ghosts = [units(&self.ghosts[0]), units(&self.ghosts[1])];
            if in_ghosts[0] {
                self.target = self.capacity.min(self.target + size * (ghosts[1] / ghosts[0]).max(1));
            } else if in_ghosts[1] {
                self.target = self.target.saturating_sub(size * (ghosts[0] / ghosts[1]).max(1));
            }
        }
        while self.used() + size > self.capacity {
            self.evict(in_ghosts[1]);
        }
        let known = take(&mut self.ghosts[0], key).is_some() | take(&mut self.ghosts[1], key).is_some();
        self.queues[usize::from(known)].insert(0, Object { key, size, hits: 0 });
        self.trim_ghosts();
        false
    }

    pub(crate) fn used(&self) -> u64 {
        self.queues.iter().map(|queue| units(queue)).sum()
    }

    fn hit(&mut self, key: u64) -> bool {
        let Some((from, at)) = self
            .queues
            .iter()
            .enumerate()
            .find_map(|(from, queue)| queue.iter().position(|object| object.key == key).map(|at| (from, at)))
        else {
            return false;
        };
        let object = &mut self.queues[from][at];
        object.hits += 1;
        let to = match self.policy {
            Policy::Fifo | Policy::Clock | Policy::S3Fifo => return true,
            Policy::TwoQ if from == 0 => return true,
            Policy::Lru | Policy::Lfu => 0,
            Policy::TwoQ | Policy::Arc => 1,
            Policy::Slru { segments } => (from + 1).min(usize::from(segments) - 1),
        };
        let object = self.queues[from].remove(at);
        self.queues[to].insert(0, object);
        if let Policy::Slru { segments } = self.policy {
            for above in (1..=to).rev() {
                while units(&self.queues[above]) > self.capacity / u64::from(segments) {
                    let object = self.queues[above].pop().expect("the segment has a size");
                    self.queues[above - 1].insert(0, object);
                }
            }
        }
        true
    }

    /// Gives up one object. `was_frequent`: the key to insert is a ghost of the second kind.
    fn evict(&mut self, was_frequent: bool) {
        match self.policy {
            Policy::Fifo | Policy::Lru => {
                self.queues[0].pop();
            }
            Policy::Clock => loop {
                let object = self.queues[0].pop().expect("a full cache has objects");
                if object.hits == 0 {
                    break;
                }
                self.queues[0].insert(0, Object { hits: 0, ..object });
            },
            Policy::Lfu => {
                let fewest = self.queues[0].iter().map(|object| object.hits).min();
                let at = self.queues[0].iter().rposition(|object| Some(object.hits) == fewest);
                self.queues[0].remove(at.expect("a full cache has objects"));
            }
            Policy::Slru { .. } => {
                let lowest = self.queues.iter_mut().find(|queue| !queue.is_empty());
                lowest.and_then(Queue::pop);
            }
            Policy::TwoQ => {
                let is_first = units(&self.queues[0]) > self.capacity / 4 || self.queues[1].is_empty();
                if is_first {
                    let object = self.queues[0].pop().expect("the queue has a size");
                    self.ghosts[0].insert(0, object);
                } else {
                    self.queues[1].pop();
                }
            }
            Policy::Arc => {
                let recent = units(&self.queues[0]);
                let is_recent = recent > 0 && (recent > self.target || (was_frequent && recent == self.target))
                    || self.queues[1].is_empty();
                let from = usize::from(!is_recent);
                let object = self.queues[from].pop().expect("the list has a size");
                self.ghosts[from].insert(0, object);
            }
            Policy::S3Fifo => self.evict_s3_fifo(),
        }
    }

    fn evict_s3_fifo(&mut self) {
        let takes_main = units(&self.queues[1]) > self.capacity * 9 / 10 || self.queues[0].is_empty();
        if !takes_main {
            while let Some(object) = self.queues[0].pop() {
                if object.hits < 2 {
                    self.ghosts[0].insert(0, object);
                    return;
                }
                self.queues[1].insert(0, Object { hits: 0, ..object });
            }
        }
        loop {
            let object = self.queues[1].pop().expect("a full cache has objects");
            let hits = object.hits.min(3);
            if hits == 0 {
                return;
            }
            self.queues[1].insert(0, Object { hits: hits - 1, ..object });
        }
    }

    fn trim_ghosts(&mut self) {
        let capacity = self.capacity;
        match self.policy {
            Policy::Arc => {
                while !self.ghosts[0].is_empty() && units(&self.queues[0]) + units(&self.ghosts[0]) > capacity {
                    self.ghosts[0].pop();
                }
                while self.used() + units(&self.ghosts[0]) + units(&self.ghosts[1]) > 2 * capacity {
                    self.ghosts[1].pop();
                }
            }
            Policy::TwoQ => self.trim(capacity / 2),
            Policy::S3Fifo => self.trim(capacity * 9 / 10),
            _ => {}
        }
    }

    fn trim(&mut self, ghost_units: u64) {
        while units(&self.ghosts[0]) > ghost_units {
            self.ghosts[0].pop();
        }
    }
}
