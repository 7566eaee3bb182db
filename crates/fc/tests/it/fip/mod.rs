//! FIP: FCFs, ENodes, VN2VN and DCBX, alone and against each other over a segment that may lose,
//! repeat and reorder frames.

mod conversation;
mod enode;
mod fcf;
mod host;
mod hostile;
mod model;
mod net;
mod peer;
mod states;
mod switches;
mod vn2vn;
