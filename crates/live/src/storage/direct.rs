//! A file that is read and written without the page cache (O_DIRECT): [`DirectFile`].
//!
//! The kernel accepts such requests only at multiples of the block size of the device, from memory
//! aligned as its controller requires (statx, STATX_DIOALIGN). Requests of hosts are neither:
//! blocks may be smaller than the device's, and data are stored where a PDU or frame put them.
//! Therefore other requests pass through an aligned buffer. A write of a part of a device's block
//! first reads the whole block, and excludes all other writes meanwhile.

use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

/// Size of the aligned buffers, in bytes.
const PIECE_BYTES: u64 = 1 << 20;
/// Alignment that fits all devices, for kernels before 6.1 and file systems that do not report
/// theirs.
const USUAL_BYTES: u32 = 4_096;
/// Number of buffers kept; as many as threads that do I/O.
const SPARE_BUFFERS: usize = 4;

/// Alignment of requests in bytes; powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Alignment {
    /// Address in memory.
    memory: usize,
    /// Offset in the file, and length.
    offset: u64,
}

/// A file without the page cache.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    alignment: Alignment,
    /// Buffers not in use.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Held exclusively by a write of a part of a device's block.
    whole_blocks: RwLock<()>,
}

impl DirectFile {
    /// Opens an existing file.
    ///
    /// # Errors
    /// Errors of the file, and of file systems without direct I/O.
    pub fn open(path: &Path) -> io::Result<DirectFile> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
        let direct = DirectFile::new(alignment(&file)?, file);
        // Some file systems accept the flag and reject the first request.
        direct.read(0, &mut [0])?;
        Ok(direct)
    }

    fn new(alignment: Alignment, file: File) -> DirectFile {
        DirectFile { file, alignment, spare: Mutex::default(), whole_blocks: RwLock::default() }
    }

    /// Returns the file, for calls that move no data.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the length of a file with room for `bytes` that ends at the end of a device's block.
    pub fn len_for(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.alignment.offset)
    }

    /// Reads from `offset`.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.fits(offset, out) {
            return self.file.read_exact_at(out, offset);
        }
        self.in_pieces(offset, out.len(), |piece, at, part| {
            self.read_whole(piece, at)?;
            out[part.of_caller].copy_from_slice(&piece[part.of_piece]);
            Ok(())
        })
    }

    /// Writes at `offset`. Two writes in one block of the device do not undo each other.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let whole = self.is_whole(offset, data.len() as u64);
        let (shared, exclusive) = match whole {
            true => (Some(self.whole_blocks.read().unwrap_or_else(PoisonError::into_inner)), None),
            false => (None, Some(self.whole_blocks.write().unwrap_or_else(PoisonError::into_inner))),
        };
        let done = match self.fits(offset, data) {
            true => self.file.write_all_at(data, offset),
            false => self.in_pieces(offset, data.len(), |piece, at, part| {
                // Only the first and the last block can be incomplete.
                let block = self.alignment.offset as usize;
                if part.of_piece.start > 0 {
                    self.read_whole(&mut piece[..block], at)?;
                }
                let last = piece.len() - block;
                if part.of_piece.end < piece.len() && (last > 0 || part.of_piece.start == 0) {
                    self.read_whole(&mut piece[last..], at + last as u64)?;
                }
                piece[part.of_piece].copy_from_slice(&data[part.of_caller]);
                self.file.write_all_at(piece, at)
            }),
        };
        drop((shared, exclusive));
        done
    }

    /// Calls `run` while no write of a part of a block is in progress.
    pub fn exclusively<R>(&self, run: impl FnOnce(&File) -> R) -> R {
        let _exclusive = self.whole_blocks.write().unwrap_or_else(PoisonError::into_inner);
        run(&self.file)
    }

    fn is_whole(&self, offset: u64, len: u64) -> bool {
        offset.is_multiple_of(self.alignment.offset) && len.is_multiple_of(self.alignment.offset)
    }

    fn fits(&self, offset: u64, data: &[u8]) -> bool {
        data.as_ptr().addr().is_multiple_of(self.alignment.memory) && self.is_whole(offset, data.len() as u64)
    }

    /// Reads whole blocks; bytes beyond the end of the file are zeros.
    fn read_whole(&self, mut out: &mut [u8], mut at: u64) -> io::Result<()> {
        while !out.is_empty() {
            match self.file.read_at(out, at) {
                Ok(got) if got > 0 && (got as u64).is_multiple_of(self.alignment.offset) => {
                    out = &mut out[got..];
                    at += got as u64;
                }
                Ok(got) => {
                    out[got..].fill(0);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Calls `run` for each piece of a range that is widened to whole blocks, with an aligned
    /// buffer of its length.
    fn in_pieces(
        &self,
        offset: u64,
        len: usize,
        mut run: impl FnMut(&mut [u8], u64, Part) -> io::Result<()>,
    ) -> io::Result<()> {
        let Alignment { memory, offset: block } = self.alignment;
        let (end, piece_bytes) = (offset + len as u64, PIECE_BYTES.max(block));
        let (first, last) = (offset / block * block, end.next_multiple_of(block));
        let longest = piece_bytes.min(last - first) as usize;
        let mut buffer = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if buffer.len() < longest + memory {
            buffer.resize(longest + memory, 0);
        }
        let aligned = buffer.as_ptr().align_offset(memory);
        let mut done = Ok(());
        for at in (first..last).step_by(piece_bytes as usize) {
            let piece_end = (at + piece_bytes).min(last);
            let (from, to) = (at.max(offset), piece_end.min(end));
            let part = Part {
                of_piece: (from - at) as usize..(to - at) as usize,
                of_caller: (from - offset) as usize..(to - offset) as usize,
            };
            done = run(&mut buffer[aligned..aligned + (piece_end - at) as usize], at, part);
            if done.is_err() {
                break;
            }
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_BUFFERS {
            spare.push(buffer);
        }
        done
    }
}

/// The requested part of a piece: its range in the piece and in the caller's data.
struct Part {
    of_piece: std::ops::Range<usize>,
    of_caller: std::ops::Range<usize>,
}

/// Returns the alignment that the kernel reports for a file.
fn alignment(file: &File) -> io::Result<Alignment> {
    let usual = Alignment { memory: USUAL_BYTES as usize, offset: u64::from(USUAL_BYTES) };
    let Ok(reported) = statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return Ok(usual) };
    if reported.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(usual);
    }
    let (memory, offset) = (reported.stx_dio_mem_align, reported.stx_dio_offset_align);
    if !memory.is_power_of_two() || !offset.is_power_of_two() {
        return Err(io::Error::other("its file system does not support direct I/O"));
    }
    Ok(Alignment { memory: memory as usize, offset: u64::from(offset) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread;

    const FILE_BYTES: usize = 3 << 20;

    /// A file with the alignment of another device. Requests to the kernel must be multiples of it,
    /// even if the kernel does not require that.
    fn file(name: &str, alignment: Alignment) -> DirectFile {
        let path = std::env::temp_dir().join(format!("sanloom-direct-{}-{name}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(FILE_BYTES as u64).unwrap();
        std::fs::remove_file(path).unwrap();
        DirectFile::new(alignment, file)
    }

    /// Offset and length of requests in blocks of 512 bytes, the byte that is written, and the
    /// distance of the caller's data from an aligned address.
    fn request() -> impl Strategy<Value = (usize, usize, Option<u8>, usize)> {
        (0..FILE_BYTES / 512 - 4_200, prop_oneof![1..20_usize, 2_000..4_200_usize], any::<Option<u8>>(), 0..8_usize)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn blocks_of_any_device_are_an_array_of_bytes(
            memory in prop::sample::select(vec![4_usize, 512, 4_096]),
            offset in prop::sample::select(vec![512_u64, 4_096, 65_536]),
            requests in prop::collection::vec(request(), 1..30),
        ) {
            let file = file("array", Alignment { memory, offset });
            let mut model = vec![0; FILE_BYTES];
            for (block, blocks, written, shift) in requests {
                let (at, len) = (block * 512, blocks * 512);
                let mut data = vec![written.unwrap_or(0xee); len + shift];
                match written {
                    Some(byte) => {
                        file.write(at as u64, &data[shift..]).unwrap();
                        model[at..at + len].fill(byte);
                    }
                    None => {
                        file.read(at as u64, &mut data[shift..]).unwrap();
                        prop_assert!(data[shift..] == model[at..at + len]);
                    }
                }
            }
            let mut all = vec![1; FILE_BYTES];
            file.read(0, &mut all).unwrap();
            prop_assert!(all == model);
        }
    }

    #[test]
    fn neighbours_in_one_block_of_the_device_do_not_undo_each_other() {
        let file = file("neighbours", Alignment { memory: 512, offset: 4_096 });
        thread::scope(|scope| {
            for block in 0..8_u64 {
                let file = &file;
                scope.spawn(move || {
                    let mut there = [0; 512];
                    for round in 0..=255 {
                        file.write(block * 512, &[round; 512]).unwrap();
                        file.read(block * 512, &mut there).unwrap();
                        assert_eq!(there, [round; 512], "block {block}");
                    }
                });
            }
        });
    }

    #[test]
    fn bytes_beyond_the_end_read_as_zeros() {
        let file = file("end", Alignment { memory: 512, offset: 4_096 });
        file.file().set_len(5_000).unwrap();
        let mut there = [1; 8_192];
        file.read(1, &mut there).unwrap();
        assert_eq!(there, [0; 8_192]);
        assert_eq!((file.len_for(5_000), file.len_for(8_192)), (8_192, 8_192));
    }
}
