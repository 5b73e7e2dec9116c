//! The file system of one file, over `/dev/fuse`.

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use braid_block::Op;
use braid_export_fuse::{Mount, MountError};
use braid_uring::Mode;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use support::{Served, Wish, is_possible, open_direct, pattern, read_at, wait_until, write_at};

fn unmount(mut served: Served) {
    let dir = served.dir.clone();
    served.mount.take().unwrap().unmount(Duration::from_secs(5)).unwrap();
    assert!(!dir.exists(), "the directory that was made is removed");
    served.finish().unwrap();
}

fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}

/// Sizes around every boundary there is: block, page, what is copied, the longest request.
const SIZES: &[usize] =
    &[512, 4096, 4608, 65_024, 65_536, 66_048, 1 << 20, (1 << 20) + 512, 3 << 20];

fn write_and_read(served: &Served) {
    let file = open_direct(&served.volume());
    let mut oracle = vec![0; 64 << 20];
    for (index, size) in SIZES.iter().enumerate() {
        let at = index * (7 << 20) + 512 * index;
        let data = pattern(*size, index as u64);
        write_at(&file, &data, at as u64);
        oracle[at..at + size].copy_from_slice(&data);
    }
    file.sync_all().unwrap();
    assert!(read_at(&file, 64 << 20, 0) == oracle);
    for (index, size) in SIZES.iter().enumerate() {
        let at = index * (7 << 20) + 512 * index;
        assert!(read_at(&file, *size, at as u64) == oracle[at..at + size], "{size} bytes");
    }
}

#[test]
fn what_is_written_is_read() {
    if !is_possible() {
        return;
    }
    for mode in [Mode::Auto, Mode::Threads] {
        let served = Served::new(Wish { mode, ..Wish::default() });
        write_and_read(&served);
        assert!(served.trouble.count(Op::Flush) >= 1);
        assert_eq!(served.counters.read().read_bytes % 512, 0);
        unmount(served);
    }
}

#[test]
fn a_slow_volume_with_little_memory() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish { pool: 2 << 20, ..Wish::default() });
    served.trouble.slow.store(true, Relaxed);
    write_and_read(&served);
    // Many at once, so that memory is spent and requests wait in the kernel.
    let file = open_direct(&served.volume());
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..8 {
                    let at = thread * (4 << 20) + round * 4096;
                    let data = pattern(if round % 2 == 0 { 1 << 20 } else { 4096 }, at);
                    write_at(file, &data, at);
                    assert!(read_at(file, data.len(), at) == data);
                }
            });
        }
    });
    drop(file);
    unmount(served);
}

#[test]
fn what_the_volume_does_not_take() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish::default());
    let file = open_direct(&served.volume());
    let size = served.limits.size;
    assert_eq!(errno(&file.write_at(&[0; 100], 0).unwrap_err()), Some(22));
    assert_eq!(errno(&file.write_at(&[0; 512], 7).unwrap_err()), Some(22));
    assert_eq!(errno(&file.read_at(&mut [0; 100], 0).unwrap_err()), Some(22));
    assert_eq!(errno(&file.write_at(&[0; 512], size).unwrap_err()), Some(22));
    assert_eq!(file.read_at(&mut [0; 4096], size - 512).unwrap(), 512, "the end");
    assert_eq!(file.read_at(&mut [0; 4096], size).unwrap(), 0);
    assert_eq!(file.metadata().unwrap().size(), size, "the size stays");
    served.trouble.failing.store(true, Relaxed);
    assert_eq!(errno(&file.write_at(&[0; 512], 0).unwrap_err()), Some(28));
    assert_eq!(errno(&file.read_at(&mut [0; 512], 0).unwrap_err()), Some(28));
    assert_eq!(errno(&file.sync_all().unwrap_err()), Some(28));
    assert_eq!(served.counters.read().errors, 3);
    served.trouble.failing.store(false, Relaxed);
    file.write_all_at(&[7; 512], 0).unwrap();
    drop(file);
    unmount(served);
}

/// The kernel sends no FSYNC for such a file: whether a write is to be durable stands in the write alone.
#[test]
fn writes_of_a_file_opened_with_o_dsync_are_durable() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish::default());
    // The large one comes in pieces over io_uring.
    let each = 1 + (1 << 20) / served.over.most_data() as u64;
    for (flags, forced) in [(OFlags::empty(), 0), (OFlags::DSYNC, each), (OFlags::SYNC, 2 * each)] {
        let flags = (OFlags::DIRECT | flags).bits().cast_signed();
        let file = OpenOptions::new().write(true).custom_flags(flags).open(served.volume());
        let file = file.unwrap();
        // Of the memory of a small request, and of that of a large one.
        write_at(&file, &[1; 4096], 0);
        write_at(&file, &[2; 1 << 20], 1 << 20);
        assert_eq!(served.trouble.forced.load(Relaxed), forced, "opened with {flags:#o}");
    }
    unmount(served);
}

#[test]
fn holes_are_punched_and_found() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish::default());
    let file = open_direct(&served.volume());
    write_at(&file, &pattern(4 << 20, 1), 8 << 20);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 9 << 20, 1 << 20).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 11 << 20, 4096).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4096).unwrap();
    let mut expected = pattern(4 << 20, 1);
    expected[1 << 20..2 << 20].fill(0);
    expected[3 << 20..(3 << 20) + 4096].fill(0);
    assert!(read_at(&file, 4 << 20, 8 << 20) == expected);
    assert_eq!(served.trouble.count(Op::WriteZeroes), 2);

    let seek = |from| rustix::fs::seek(&file, from).map_err(|error| error.raw_os_error());
    assert_eq!(seek(SeekFrom::Data(4096)), Ok(8 << 20));
    assert_eq!(seek(SeekFrom::Hole((8 << 20) + 5)), Ok(9 << 20));
    assert_eq!(seek(SeekFrom::Data((9 << 20) + 5)), Ok(10 << 20));
    assert_eq!(seek(SeekFrom::Data(20 << 20)), Err(6));
    assert_eq!(seek(SeekFrom::Hole((64 << 20) - 1)), Ok((64 << 20) - 1));
    drop(file);
    unmount(served);
}

#[test]
fn the_directory_is_what_it_is() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish::default());
    let names: Vec<_> =
        fs::read_dir(&served.dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["volume"]);
    let metadata = fs::metadata(served.volume()).unwrap();
    assert_eq!((metadata.size(), metadata.mode()), (64 << 20, 0o100_600));
    assert_eq!(fs::metadata(&served.dir).unwrap().mode(), 0o040_555);
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    let volume = served.volume();
    assert_eq!(kind(fs::metadata(served.dir.join("nothing")).map(drop)), ErrorKind::NotFound);
    assert_eq!(
        kind(OpenOptions::new().write(true).open(&volume).unwrap().set_len(0)),
        ErrorKind::PermissionDenied
    );
    assert_eq!(
        kind(OpenOptions::new().write(true).truncate(true).open(&volume).map(drop)),
        ErrorKind::PermissionDenied
    );
    assert!(fs::remove_file(&volume).is_err());
    assert!(fs::write(served.dir.join("new"), "x").is_err());
    assert_eq!(rustix::fs::statfs(&served.dir).unwrap().f_blocks, (64 << 20) / 4096);
    assert_eq!(fs::metadata(&volume).unwrap().size(), 64 << 20);
    unmount(served);
}

#[test]
fn a_read_only_volume() {
    if !is_possible() {
        return;
    }
    let served = Served::new(Wish { read_only: true, ..Wish::default() });
    let error = OpenOptions::new().write(true).open(served.volume()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
    let file = File::open(served.volume()).unwrap();
    file.read_exact_at(&mut [1; 4096], 0).unwrap();
    drop(file);
    unmount(served);
}

#[test]
fn a_mount_in_use_stays_until_it_is_forced() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let file = open_direct(&served.volume());
    let mut mount = served.mount.take().unwrap();
    let busy = mount.unmount(Duration::from_millis(20)).unwrap_err();
    assert!(matches!(busy, MountError::Busy { .. }), "{busy}");
    let again = Mount::new(&served.dir, "other", false).unwrap_err();
    assert!(matches!(again, MountError::AlreadyMounted { .. }), "{again}");
    file.write_all_at(&[7; 512], 0).unwrap();

    // A request under way gets an error, and the server ends.
    served.trouble.stuck.store(true, Relaxed);
    let writes = || served.trouble.count(Op::Write);
    let before = writes();
    let waiting = std::thread::spawn(move || file.write_all_at(&[7; 512], 0));
    wait_until("the write to be in flight", || writes() > before);
    mount.unmount_force();
    assert!(waiting.join().unwrap().is_err());
    assert!(!served.dir.exists());
    served.trouble.stuck.store(false, Relaxed);
    served.finish().unwrap();
}

#[test]
fn names_that_do_not_fit_are_refused() {
    for name in ["", "a b", "a,b", "a/b", "ü"] {
        let error = Mount::new(Path::new("/nonexistent/x"), name, false).unwrap_err();
        assert!(matches!(error, MountError::Name { .. }), "{name}");
    }
    let error = Mount::new(Path::new("/nonexistent/x"), "x", false).unwrap_err();
    assert!(matches!(error, MountError::Io { .. }), "{error}");
}
