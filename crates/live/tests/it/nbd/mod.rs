//! The NBD server over media of this process, with clients that nobody here wrote: libnbd, QEMU,
//! fio.

mod local;
mod raw;
