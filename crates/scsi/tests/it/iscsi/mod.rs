//! iSCSI machines of target and initiator: logins, sessions, data, task management.

mod bed;
mod data;
mod initiator;
mod login;
mod management;
mod negotiation;
mod session;
