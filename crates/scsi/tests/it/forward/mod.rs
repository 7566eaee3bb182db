//! Forwarding path of an iSCSI switch, compared with the conventional path, a plain disk and a
//! model in memory. The back ends are targets of this crate, or scripted.

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
