//! Sparse memory: [`Ram`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Unit of allocation, in bytes.
const PAGE_BYTES: u64 = 64 << 10;
/// Number of tables over which pages are distributed, so that writers seldom wait for the same
/// lock.
const SHARDS: u64 = 16;

type Page = Box<[u8]>;
type Table = BTreeMap<u64, Page>;

/// Sparse memory that reads as zeros until it is written. A call that spans several pages is not
/// atomic. Callers that need atomicity, such as COMPARE AND WRITE, hold a lock of their own.
#[derive(Debug)]
pub struct Ram {
    shards: Vec<RwLock<Table>>,
}

impl Default for Ram {
    fn default() -> Ram {
        Ram::new()
    }
}

impl Ram {
    /// Creates a memory without pages.
    pub fn new() -> Ram {
        Ram { shards: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }

    // A thread that panicked while it held the lock may have left partly written bytes, but the
    // table itself is intact.
    fn table(&self, page: u64) -> RwLockReadGuard<'_, Table> {
        self.shards[(page % SHARDS) as usize].read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self, page: u64) -> RwLockWriteGuard<'_, Table> {
        self.shards[(page % SHARDS) as usize].write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `out` with the bytes from `offset`.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        pieces(offset, out.len() as u64, |page, within, of_caller| {
            let part = &mut out[of_caller];
            match self.table(page).get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within]),
                None => part.fill(0),
            }
        });
    }

    /// Writes `data` at `offset`.
    pub fn write(&self, offset: u64, data: &[u8]) {
        pieces(offset, data.len() as u64, |page, within, of_caller| {
            let mut table = self.table_mut(page);
            let bytes = table.entry(page).or_insert_with(|| vec![0; PAGE_BYTES as usize].into());
            bytes[within].copy_from_slice(&data[of_caller]);
        });
    }

    /// Makes the range read as zeros and frees its whole pages.
    pub fn discard(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for shard in &self.shards {
            let mut table = shard.write().unwrap_or_else(PoisonError::into_inner);
            let touched: Vec<u64> =
                table.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)).map(|(&page, _)| page).collect();
            for page in touched {
                let start = page * PAGE_BYTES;
                let from = offset.max(start) - start;
                let to = end.min(start.saturating_add(PAGE_BYTES)) - start;
                if (from, to) == (0, PAGE_BYTES) {
                    table.remove(&page);
                } else if let Some(bytes) = table.get_mut(&page) {
                    bytes[from as usize..to as usize].fill(0);
                }
            }
        }
    }

    /// Returns whether the page of the byte at `offset` is allocated, and the number of bytes from
    /// there, at most `len`, in the same state.
    pub fn mapping(&self, offset: u64, len: u64) -> (bool, u64) {
        let end = offset.saturating_add(len);
        let first = offset / PAGE_BYTES;
        let mapped = self.table(first).contains_key(&first);
        let change = if mapped {
            // Allocated pages occupy memory, so there are not too many to search.
            (first + 1..end.div_ceil(PAGE_BYTES)).find(|&page| !self.table(page).contains_key(&page))
        } else {
            let next = |shard: &RwLock<Table>| {
                let table = shard.read().unwrap_or_else(PoisonError::into_inner);
                table.range(first + 1..).next().map(|(&page, _)| page)
            };
            self.shards.iter().filter_map(next).min()
        };
        let until = change.map_or(end, |page| (page * PAGE_BYTES).min(end));
        (mapped, until - offset)
    }

    /// Allocated memory, in bytes.
    pub fn used_bytes(&self) -> u64 {
        let pages = |shard: &RwLock<Table>| shard.read().unwrap_or_else(PoisonError::into_inner).len() as u64;
        self.shards.iter().map(pages).sum::<u64>() * PAGE_BYTES
    }
}

/// Calls `each` for every page of the range: with the page number, the range within the page, and
/// the range within the caller's bytes.
fn pieces(offset: u64, len: u64, mut each: impl FnMut(u64, Range<usize>, Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done;
        let within = at % PAGE_BYTES;
        let piece = (PAGE_BYTES - within).min(len - done);
        let range = |from: u64| from as usize..(from + piece) as usize;
        each(at / PAGE_BYTES, range(within), range(done));
        done += piece;
    }
}
