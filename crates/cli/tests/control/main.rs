//! A running instance (`sanloom up`) in the hands of an operator: its zones, its store, and what a crash leaves of both.

mod instance;
mod store;
mod zones;
