//! iSCSI machines: logins, sessions, data, task management, of the target and of the initiator.

mod bed;
mod data;
mod initiator;
mod login;
mod management;
mod negotiation;
mod session;
