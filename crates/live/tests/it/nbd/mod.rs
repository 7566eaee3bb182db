//! The NBD server over media of this process, with third-party clients: libnbd, QEMU, fio.

mod local;
mod raw;
