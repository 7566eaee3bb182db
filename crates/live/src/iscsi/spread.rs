//! Connections that several threads serve in one step: [`Crew`].
//!
//! | phase | threads | work |
//! |---|---|---|
//! | serve | all, a connection each | reads and writes the sockets of the host's session, to the host and to back ends; calls the machines with the lock of [`Common`] held |
//! | finish | the instance's | everything between connections: notices, logins, reinstatement, timers, tables |
//!
//! A connection belongs to one thread during a step, so its commands, data and responses stay in
//! order. Its back-end sessions move with it. The storage systems, with reservations and unit
//! attentions, and the volumes, with the order of their blocks, exist once. Each call of a machine
//! holds the lock, so threads alternate call by call, as connections do on one thread. Reads and
//! writes of sessions in use, which copy the data, hold no lock; logins at back ends and records of
//! reservations do.

use super::connection::Connection;
use super::shared::{Common, Local};
use super::{Context, IscsiServer, ServerContext};
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use std::sync::{Arc, Mutex, PoisonError};

/// Threads that serve connections, with the memory of each.
#[derive(Debug)]
pub(super) struct Crew {
    /// The threads, the instance's included; `None`: it is the only one.
    pool: Option<Arc<ThreadPool>>,
    /// Memory by thread; that of the instance's is the first, and always exists. A thread locks its
    /// own only.
    locals: Vec<Mutex<Local>>,
    /// Number of steps in which threads have shared connections.
    steps: u64,
}

impl Default for Crew {
    fn default() -> Crew {
        Crew { pool: None, locals: vec![Mutex::default()], steps: 0 }
    }
}

impl Crew {
    /// Memory of the instance's thread.
    pub(super) fn local(&mut self) -> &mut Local {
        self.locals[0].get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IscsiServer {
    /// Lets threads share the connections of a step. The thread that calls the server is the first
    /// one of the pool.
    pub fn spread(&mut self, pool: &Arc<ThreadPool>) {
        if self.crew.pool.is_none() {
            self.crew.locals.resize_with(pool.current_num_threads(), Mutex::default);
            self.crew.pool = Some(pool.clone());
        }
    }

    /// Number of steps in which threads have shared connections.
    pub fn shared_steps(&self) -> u64 {
        self.crew.steps
    }

    /// Calls a connection on the instance's thread. `None` if there is no such connection.
    pub(super) fn call<R>(
        &mut self,
        cx: &mut ServerContext<'_, '_>,
        id: u64,
        call: impl FnOnce(&mut Connection, &mut Context<'_, '_>) -> R,
    ) -> Option<R> {
        let connection = self.connections.get_mut(&id)?;
        let common = Mutex::new(Common { shared: &mut self.shared, stores: cx.stores.reborrow() });
        Some(call(connection, &mut Context { now: cx.now, local: self.crew.local(), common: &common }))
    }

    /// Calls those of the connections that threads can share, if there are two or more. Returns
    /// their numbers, which ascend as `ids` do, with the outcomes.
    pub(super) fn serve_together<R: Send>(
        &mut self,
        cx: &mut ServerContext<'_, '_>,
        ids: impl Iterator<Item = u64>,
        call: impl Fn(&mut Connection, &mut Context<'_, '_>) -> R + Sync,
    ) -> Vec<(u64, R)> {
        let Some(pool) = self.crew.pool.clone() else { return Vec::new() };
        let is_shared = |id: &u64| self.connections.get(id).is_some_and(|connection| connection.spreads);
        let ids: Vec<u64> = ids.filter(is_shared).collect();
        if ids.len() < 2 {
            return Vec::new();
        }
        self.crew.steps += 1;
        let remove = |id| Some((id, self.connections.remove(&id)?));
        let mut served: Vec<(u64, Box<Connection>)> = ids.into_iter().filter_map(remove).collect();
        let (now, locals) = (cx.now, &self.crew.locals);
        let common = Mutex::new(Common { shared: &mut self.shared, stores: cx.stores.reborrow() });
        let serve = |(id, connection): &mut (u64, Box<Connection>)| {
            let thread = rayon::current_thread_index().unwrap_or(0);
            let mut local = locals[thread].lock().unwrap_or_else(PoisonError::into_inner);
            (*id, call(connection, &mut Context { now, local: &mut local, common: &common }))
        };
        let outcomes = pool.install(|| served.par_iter_mut().with_max_len(1).map(serve).collect());
        self.connections.extend(served);
        outcomes
    }
}
