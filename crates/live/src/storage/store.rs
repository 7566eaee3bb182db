//! Storage of the bytes of a LUN: [`Store`].

use super::direct::DirectFile;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use sanloom_block::{FileSpec, Memory, Source};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read and written at any offset.
#[derive(Debug)]
pub enum Store {
    /// In memory, or discarded.
    Memory(Memory),
    /// In a file, through the page cache.
    File(File),
    /// In a file, without the page cache.
    Direct(DirectFile),
}

impl Store {
    /// Opens a source. A missing file is created, and a file that is too short grows.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn open(source: &Source) -> io::Result<Store> {
        match (Memory::new(source), source) {
            (Some(memory), _) => Ok(Store::Memory(memory)),
            (None, Source::File(spec)) => open_file(spec),
            (None, other) => Err(io::Error::other(format!("{other:?} is neither memory nor a file"))),
        }
    }

    /// Reads from `offset`.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Store::Memory(memory) => {
                memory.read(offset, out);
                Ok(())
            }
            Store::File(file) => file.read_exact_at(out, offset),
            Store::Direct(direct) => direct.read(offset, out),
        }
    }

    /// Writes at `offset`.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Store::Memory(memory) => {
                memory.write(offset, data);
                Ok(())
            }
            Store::File(file) => file.write_all_at(data, offset),
            Store::Direct(direct) => direct.write(offset, data),
        }
    }

    /// Grows the store to at least `bytes`; its content stays.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn grow(&self, bytes: u64) -> io::Result<()> {
        let (file, bytes) = match self {
            // Memory is allocated when it is written.
            Store::Memory(_) => return Ok(()),
            Store::File(file) => (file, bytes),
            Store::Direct(direct) => (direct.file(), direct.len_for(bytes)),
        };
        if file.metadata()?.len() < bytes {
            file.set_len(bytes)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Releases the space of a range, which then reads as zeros.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        match self {
            Store::Memory(memory) => {
                memory.discard(offset, len);
                Ok(())
            }
            Store::File(file) => punch_hole(file, offset, len),
            Store::Direct(direct) => direct.exclusively(|file| punch_hole(file, offset, len)),
        }
    }

    /// Makes all written data durable, if the store survives a crash of the machine at all.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Store::Memory(_) => Ok(()),
            Store::File(file) => file.sync_data(),
            Store::Direct(direct) => direct.file().sync_data(),
        }
    }

    /// Returns whether the byte at `offset` is allocated, and the number of bytes from there, up to
    /// `len`, with the same state.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn mapping(&self, offset: u64, len: u64) -> io::Result<(bool, u64)> {
        let end = offset + len;
        let file = match self {
            Store::Memory(memory) => return Ok(memory.mapping(offset, len)),
            Store::File(file) => file,
            Store::Direct(direct) => direct.file(),
        };
        let data = match seek(file, SeekFrom::Data(offset)) {
            Ok(data) => data,
            // The rest of the file is a hole.
            Err(rustix::io::Errno::NXIO) => end,
            Err(error) => return Err(error.into()),
        };
        if data > offset {
            return Ok((false, data.min(end) - offset));
        }
        Ok((true, seek(file, SeekFrom::Hole(offset))?.min(end) - offset))
    }
}

fn punch_hole(file: &File, offset: u64, len: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)?)
}

fn open_file(spec: &FileSpec) -> io::Result<Store> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&spec.path)?;
    if file.metadata()?.len() < spec.size_bytes {
        file.set_len(spec.size_bytes)?;
        if !spec.sparse {
            fallocate(&file, FallocateFlags::empty(), 0, spec.size_bytes)?;
        }
        file.sync_all()?;
    }
    if !spec.direct {
        return Ok(Store::File(file));
    }
    match DirectFile::open(&spec.path) {
        Ok(direct) => {
            let direct = Store::Direct(direct);
            direct.grow(spec.size_bytes)?;
            Ok(direct)
        }
        Err(error) => {
            let path = spec.path.display();
            tracing::warn!(%path, %error, "the file system does not support direct I/O; the page cache is used");
            Ok(Store::File(file))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_test_support::needs;

    /// A file of 1 MiB whose name is removed already.
    fn file(name: &str, sparse: bool, direct: bool) -> Store {
        let path = std::env::temp_dir().join(format!("sanloom-store-{}-{name}", std::process::id()));
        let spec = FileSpec { path: path.clone(), size_bytes: 1 << 20, sparse, direct };
        let store = Store::open(&Source::File(spec)).unwrap();
        std::fs::remove_file(path).unwrap();
        store
    }

    fn stores(name: &str) -> Vec<Store> {
        let files = [false, true].map(|direct| file(&format!("{name}-{direct}"), true, direct));
        [Store::open(&Source::Ram).unwrap()].into_iter().chain(files).collect()
    }

    #[test]
    fn a_file_takes_its_space_at_the_start_unless_it_is_sparse() {
        use std::os::unix::fs::MetadataExt;
        for (sparse, name) in [(true, "thin"), (false, "thick")] {
            let Store::File(file) = file(name, sparse, false) else { unreachable!("a file") };
            let metadata = file.metadata().unwrap();
            assert_eq!((metadata.len(), metadata.blocks() >= 2048), (1 << 20, !sparse));
        }
    }

    #[test]
    fn writes_across_pages_are_read_back_and_unwritten_bytes_are_zero() {
        for store in stores("pages") {
            let data: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
            store.write(60_000, &data).unwrap();
            let mut out = vec![1; 300_000];
            store.read(10_000, &mut out).unwrap();
            assert!(out[..50_000].iter().all(|byte| *byte == 0));
            assert_eq!(out[50_000..250_000], data);
            assert!(out[250_000..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn discarded_ranges_read_as_zeros_and_use_no_space() {
        for store in stores("holes") {
            store.write(0, &[7; 512 << 10]).unwrap();
            assert_eq!(store.mapping(0, 1 << 20).unwrap(), (true, 512 << 10));
            store.discard(4_096, 256 << 10).unwrap();
            let mut out = vec![1; 512 << 10];
            store.read(0, &mut out).unwrap();
            let zeros = out.iter().filter(|byte| **byte == 0).count();
            assert_eq!((zeros, out[4_095], out[4_096 + (256 << 10)]), (256 << 10, 7, 7));
            assert!(!store.mapping(128 << 10, 64 << 10).unwrap().0);
        }
    }

    #[needs("direct-io")]
    #[test]
    fn requests_of_all_sizes_go_past_the_page_cache_where_the_file_system_can() {
        let folder = std::env::temp_dir().join(format!("sanloom-cached-{}", std::process::id()));
        let spec = FileSpec { path: folder.clone(), size_bytes: 1_000_000, sparse: true, direct: true };
        let store = Store::open(&Source::File(spec)).unwrap();
        std::fs::remove_file(folder).unwrap();
        let Store::Direct(direct) = &store else {
            panic!("the store does not use direct I/O");
        };
        for (at, len) in [(0, 512), (512, 3_584), (4_096, 4_096), (7_000 * 128, 103_936), (100 * 512, 300 * 512)] {
            let data: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            store.write(at, &data).unwrap();
            let mut there = vec![0; len];
            store.read(at, &mut there).unwrap();
            assert!(there == data, "{len} bytes at {at}");
        }
        // Data in the page cache stay readable, and the hole begins and ends inside pages.
        store.discard(100 * 512 + 700, 10_000).unwrap();
        let mut there = vec![1; 10_000];
        store.read(100 * 512 + 700, &mut there).unwrap();
        assert!(there.iter().all(|byte| *byte == 0));
        store.read(100 * 512 + 10_700, &mut there[..1]).unwrap();
        assert_eq!(there[0], (10_700 % 251) as u8);
        assert!(direct.file().metadata().unwrap().len() >= 1_000_000);
    }
}
