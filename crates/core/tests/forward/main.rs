//! The forwarding path of an iSCSI switch: against the conventional path, a plain disk and a model in memory, with back ends that are
//! our own targets, and in cases of its own.

mod bed;
mod cases;
mod check;
mod cut_through;
mod disk;
mod durable;
mod management;
mod noise;
mod resets;
mod script;
mod served;
mod streams;
mod unusual;
