//! iSCSI machines of the target: logins, sessions, data, task management.

mod bed;
mod data;
mod login;
mod management;
mod negotiation;
mod session;
