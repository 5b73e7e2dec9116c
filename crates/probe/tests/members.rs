//! Paths that may become members and paths that may not, with files, loop devices and mounts.

mod support;

use std::fs::{self, File, hard_link};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use braid_probe::{
    FileKind, Holder, Policy, Purpose, Reason, Refusal, Relation, check_member, check_members,
    find_duplicates, find_users, identify, physical_device, physical_devices, served_by,
};
use support::{Loop, Mount, Process, image, run, skip, text};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A temporary directory, for one test at a time.
///
/// A process that another test has forked but not yet executed still has every file of this process
/// open:
///
/// ```text
///  this test     create a.img ───────── close ─── who has a.img open?
///  another test            fork ──────────────────────────│────────── exec (closes it)
/// ```
struct Directory {
    files: TempDir,
    // Dropped after the files.
    _turn: MutexGuard<'static, ()>,
}

impl Directory {
    fn path(&self) -> &Path {
        self.files.path()
    }
}

fn directory() -> Directory {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that would disturb the next.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Directory { files: tempfile::tempdir().expect("a temporary directory"), _turn: turn }
}

fn refused(path: &Path, policy: &Policy<'_>) -> Refusal {
    check_member(path, policy).expect_err("it must be refused")
}

/// The rendered refusal with the temporary directory's name taken out.
fn rendered(refusal: &Refusal, directory: &Directory) -> String {
    let both = format!("{refusal}\n  next: {}", refusal.next());
    both.replace(text(directory.path()), "DIR")
}

#[test]
fn an_empty_file_is_a_good_member() {
    let directory = directory();
    let path = image(directory.path(), "a.img", 4 * MIB);
    let facts = check_member(&path, &Policy { min_bytes: 4 * MIB, ..Policy::default() }).unwrap();
    assert_eq!((facts.kind, facts.size), (FileKind::Regular, 4 * MIB));
    assert_eq!((facts.model, facts.serial), (None, None));
    assert_eq!((facts.signatures, facts.holders), (vec![], vec![]));
}

#[test]
fn what_is_no_member_is_refused_with_the_next_step() {
    let directory = directory();
    let missing = directory.path().join("missing.img");
    assert_eq!(
        rendered(&refused(&missing, &Policy::default()), &directory),
        "DIR/missing.img is refused: it does not exist\n  \
         next: for a new image file: truncate -s SIZE DIR/missing.img"
    );
    let awkward = [("-x", "./-x"), ("a b", "'a b'"), ("-it's", r"'./-it'\''s'")];
    for (path, word) in awkward {
        let next = refused(Path::new(path), &Policy::default()).next();
        assert_eq!(next, format!("for a new image file: truncate -s SIZE {word}"));
    }
    let elsewhere = refused(&directory.path().join("no/a.img"), &Policy::default());
    assert!(elsewhere.next().starts_with("check the path: there is no folder"), "{elsewhere}");
    let device = refused(Path::new("/dev/disk/by-id/usb-none"), &Policy::default());
    assert!(device.next().starts_with("look for the device: lsblk"), "{device}");
    let log = Refusal { purpose: Purpose::Log, ..refused(&missing, &Policy::default()) };
    assert!(log.next().starts_with("bring it back: it may hold flushed writes"), "{log}");
    let inside = directory.path().join("d");
    fs::create_dir(&inside).unwrap();
    assert_eq!(
        rendered(&refused(&inside, &Policy::default()), &directory),
        "DIR/d is refused: it is a directory\n  next: name a regular file or a block device"
    );
    let socket = directory.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    let refusal = refused(&socket, &Policy::default());
    assert!(matches!(refusal.reason, Reason::WrongKind { kind: FileKind::Socket }), "{refusal}");
    let refusal = refused(Path::new("/dev/null"), &Policy::default());
    assert!(matches!(refusal.reason, Reason::WrongKind { kind: FileKind::Character }), "{refusal}");
    let small = image(directory.path(), "small.img", 4096);
    let policy = Policy { min_bytes: MIB, read_only: true, ..Policy::default() };
    assert_eq!(
        rendered(&refused(&small, &policy), &directory),
        "DIR/small.img is refused: it has 4 KiB, and at least 1 MiB are needed\n  \
         DIR/small.img: a regular file, 4 KiB\n  \
         next: truncate -s 1048576 DIR/small.img, or name a larger one"
    );
}

#[test]
fn a_pipe_is_refused_without_waiting_for_its_writer() {
    let directory = directory();
    let pipe = directory.path().join("p");
    match run("mkfifo", &[text(&pipe)]) {
        Ok(_) => {
            let refusal = refused(&pipe, &Policy::default());
            assert!(
                matches!(refusal.reason, Reason::WrongKind { kind: FileKind::Pipe }),
                "{refusal}"
            );
        }
        Err(error) => skip("named pipes", &error),
    }
}

#[test]
fn contents_are_refused_unless_the_path_is_named_again() {
    let directory = directory();
    let path = directory.path().join("a.img");
    let mut bytes = vec![0; 1 << 20];
    bytes[..16].copy_from_slice(b"XFSB\0\0\x10\0\0\0\0\0\0\x04\0\0");
    bytes[108..112].copy_from_slice(b"logs");
    fs::write(&path, bytes).unwrap();
    let refusal = refused(&path, &Policy::default());
    assert_eq!(
        rendered(&refusal, &directory),
        "DIR/a.img is refused: it contains xfs \"logs\" (1 GiB)\n  \
         DIR/a.img: a regular file, 1 MiB\n  \
         next: to overwrite it: --force DIR/a.img"
    );
    assert!(refusal.is_forceable());
    let served = Refusal { purpose: Purpose::Served, ..refused(&path, &Policy::default()) };
    assert!(served.next().starts_with("a start writes nothing to it"), "{served}");
    let other = [directory.path().join("b.img")];
    refused(&path, &Policy { force: &other, ..Policy::default() });
    let named = [path.clone()];
    let facts = check_member(&path, &Policy { force: &named, ..Policy::default() }).unwrap();
    assert_eq!(facts.signatures.len(), 1);
    assert!(check_member(&path, &Policy { read_only: true, ..Policy::default() }).is_ok());
}

#[test]
fn a_virtual_disk_is_not_raw_even_for_reading() {
    let directory = directory();
    let path = directory.path().join("a.qcow2");
    fs::write(&path, [&b"QFI\xfb\0\0\0\x03"[..], &[0; 4096]].concat()).unwrap();
    let read_only = Policy { read_only: true, ..Policy::default() };
    assert_eq!(
        rendered(&refused(&path, &read_only), &directory),
        "DIR/a.qcow2 is refused: it is a qcow2 image, not a raw one\n  \
         DIR/a.qcow2: a regular file, 4.01 KiB, contains qcow2 (0 B)\n  \
         next: qemu-img convert -O raw DIR/a.qcow2 RAW; \
         to take its bytes as they are: --force DIR/a.qcow2"
    );
}

#[test]
fn one_file_under_several_names() {
    let directory = directory();
    let a = image(directory.path(), "a.img", MIB);
    let b = image(directory.path(), "b.img", MIB);
    let soft = directory.path().join("soft.img");
    let hard = directory.path().join("hard.img");
    symlink(&a, &soft).unwrap();
    hard_link(&a, &hard).unwrap();
    assert_eq!(find_duplicates(&[a.clone(), b.clone()]).unwrap(), []);
    for other in [&soft, &hard, &a] {
        let found = find_duplicates(&[a.clone(), b.clone(), other.clone()]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].first, &found[0].second), (&a, other));
        assert_eq!(found[0].relation, Relation::Same);
    }
    let refusal = check_members(&[a.clone(), b.clone(), soft], &Policy::default()).unwrap_err();
    assert_eq!(
        rendered(&refusal, &directory),
        "DIR/soft.img is refused: it is the same as DIR/a.img\n  \
         DIR/soft.img: a regular file, 1 MiB\n  next: name each member once"
    );
    assert_eq!(check_members(&[a, b], &Policy::default()).unwrap().len(), 2);
}

#[test]
fn a_file_that_another_process_has_open() {
    let directory = directory();
    let path = image(directory.path(), "a.img", MIB);
    for can_write in [false, true] {
        let file = File::options().read(true).write(can_write).open(&path).unwrap();
        let process = Process::holding(file);
        let pid = process.0.id();
        let users = find_users(&path).unwrap();
        let command = users.holders.iter().find_map(|holder| match holder {
            Holder::Process { command, .. } => Some(command.clone()),
            _ => None,
        });
        let command = command.expect("the process is found");
        assert_eq!(users.holders, [Holder::Process { pid, command: command.clone(), can_write }]);
        let refusal = refused(&path, &Policy::default());
        assert_eq!(
            rendered(&refusal, &directory),
            format!(
                "DIR/a.img is refused: it is in use: open by {command} (pid {pid})\n  \
                 DIR/a.img: a regular file, 1 MiB\n  next: end {command} (pid {pid})"
            )
        );
        assert!(!refusal.is_forceable());
        // Reading beside it is fine; forcing is not.
        assert!(check_member(&path, &Policy { read_only: true, ..Policy::default() }).is_ok());
        refused(&path, &Policy { force: std::slice::from_ref(&path), ..Policy::default() });
    }
    assert!(check_member(&path, &Policy::default()).is_ok());

    // Of several members, each has its own users.
    let other = image(directory.path(), "b.img", MIB);
    let members = [path.clone(), other.clone()];
    for held in [&path, &other] {
        let process = Process::holding(File::open(held).unwrap());
        let refusal = check_members(&members, &Policy::default()).unwrap_err();
        assert_eq!(&refusal.path, held);
        let Reason::InUse { holders } = &refusal.reason else { panic!("{refusal}") };
        let pid = process.0.id();
        assert!(
            matches!(&holders[..], [Holder::Process { pid: found, .. }] if *found == pid),
            "{refusal}"
        );
    }
    assert!(check_members(&members, &Policy::default()).is_ok());
}

#[test]
fn files_of_one_directory_share_their_disk() {
    let directory = directory();
    let a = image(directory.path(), "a.img", MIB);
    let b = image(directory.path(), "b.img", MIB);
    assert_eq!(physical_devices(&a).unwrap(), physical_devices(&b).unwrap());
    assert_eq!(physical_device(&a).unwrap(), physical_device(directory.path()).unwrap());
}

/// The holders of a device but for passing readers: where udev runs, it looks at each new device.
fn lasting_holders(path: &Path) -> Vec<Holder> {
    let holders = find_users(path).unwrap().holders.into_iter();
    holders.filter(|holder| !matches!(holder, Holder::Process { can_write: false, .. })).collect()
}

/// An image with an ext4 file system on a loop device, or why not.
fn ext4_on_loop(directory: &Directory) -> Result<(PathBuf, Loop), String> {
    let file = image(directory.path(), "ext4.img", 16 * MIB);
    run("mkfs.ext4", &["-q", "-L", "photos", text(&file)])?;
    let device = Loop::attach(&file)?;
    Ok((file, device))
}

#[test]
fn a_loop_device_and_its_backing_file() {
    let directory = directory();
    let file = image(directory.path(), "a.img", 4 * MIB);
    let device = match Loop::attach(&file) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    let facts = check_member(&device.device, &Policy::default()).unwrap();
    assert_eq!((facts.kind, facts.size), (FileKind::Block, 4 * MIB));
    assert_eq!(facts.logical_block_size, Some(512));
    assert_eq!(physical_devices(&device.device).unwrap(), physical_devices(&file).unwrap());

    let holder = Holder::BackingFile { device: device.device.clone() };
    assert_eq!(lasting_holders(&file), [holder]);
    let refusal = refused(&file, &Policy::default());
    let next = format!("losetup --detach {}", device.device.display());
    assert_eq!(refusal.next(), next);
    assert!(check_member(&file, &Policy { read_only: true, ..Policy::default() }).is_ok());
}

/// A volume of another namespace may have stopped, and a reader of its device would wait for it.
#[test]
fn a_loop_device_of_a_file_that_another_namespace_has_mounted() {
    let directory = directory();
    let seen = image(directory.path(), "a.img", MIB);
    let device = match Loop::attach(&seen) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    assert_eq!(served_by(&device.device).unwrap(), None);
    let script = "truncate -s 1M b.img && losetup --find --show $PWD/b.img";
    let folder = directory.path().join("m");
    fs::create_dir(&folder).unwrap();
    let script = format!("mount -t tmpfs none {0} && cd {0} && {script}", text(&folder));
    let device = match run("unshare", &["--mount", "sh", "-c", &script]) {
        Ok(device) => Loop { device: PathBuf::from(device.trim()) },
        Err(error) => return skip("namespaces of mounts", &error),
    };
    let server = served_by(&device.device).unwrap().unwrap();
    assert!(server.starts_with("the owner of /"), "{server}");
    assert!(server.ends_with("b.img, which is unseen from here"), "{server}");
}

#[test]
fn two_nodes_of_one_device() {
    let directory = directory();
    let file = image(directory.path(), "a.img", MIB);
    let device = match Loop::attach(&file) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    let (_, identity) = identify(&device.device).unwrap();
    let braid_probe::Identity::Block(number) = identity else { panic!("{identity:?}") };
    let node = directory.path().join("node");
    let (major, minor) = (number.major.to_string(), number.minor.to_string());
    if let Err(error) = run("mknod", &[text(&node), "b", &major, &minor]) {
        return skip("a second device node", &error);
    }
    let found = find_duplicates(&[device.device.clone(), node.clone()]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].first, &found[0].second), (&device.device, &node));
}

#[test]
fn a_mounted_device_is_refused_and_cannot_be_forced() {
    let directory = directory();
    let (file, device) = match ext4_on_loop(&directory) {
        Ok(made) => made,
        Err(error) => return skip("loop devices", &error),
    };
    let refusal = refused(&device.device, &Policy::default());
    let Reason::Contents { signatures } = &refusal.reason else { panic!("{refusal}") };
    assert_eq!(signatures[0].to_string(), "ext4 \"photos\" (16 MiB)");

    let point = directory.path().join("mount point");
    fs::create_dir(&point).unwrap();
    let mount = match Mount::new(&device.device, &point) {
        Ok(mount) => mount,
        Err(error) => return skip("mounts", &error),
    };
    let mounted = Holder::Mounted { at: mount.at.clone() };
    for path in [&device.device, &file] {
        let holders = find_users(path).unwrap().holders;
        assert!(holders.contains(&mounted), "{holders:?}");
        let named = [path.clone()];
        for read_only in [false, true] {
            let refusal = refused(path, &Policy { force: &named, read_only, ..Policy::default() });
            let text = rendered(&refusal, &directory);
            assert!(text.contains("mounted at DIR/mount point"), "{text}");
            assert!(text.ends_with("next: umount 'DIR/mount point'"), "{text}");
            assert!(!refusal.is_forceable());
        }
    }
    // A file inside the mount is on the disk that the image is on.
    let inside = image(&mount.at, "b.img", MIB);
    assert_eq!(physical_devices(&inside).unwrap(), physical_devices(&file).unwrap());
    drop(mount);
    assert_eq!(lasting_holders(&device.device), []);
}

#[test]
fn a_claimed_device_is_found_without_knowing_the_claimant() {
    use std::os::unix::fs::OpenOptionsExt;

    let directory = directory();
    let file = image(directory.path(), "a.img", MIB);
    let device = match Loop::attach(&file) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    // This process is left out of the list of processes, but the kernel knows of the claim.
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let claim = File::options().read(true).custom_flags(exclusive).open(&device.device).unwrap();
    assert_eq!(lasting_holders(&device.device), [Holder::Exclusive]);
    let read_only = Policy { read_only: true, ..Policy::default() };
    assert!(matches!(refused(&device.device, &read_only).reason, Reason::InUse { .. }));
    drop(claim);
    assert_eq!(lasting_holders(&device.device), []);
}

#[test]
fn a_claim_that_passes_is_waited_for() {
    let directory = directory();
    let file = image(directory.path(), "a.img", MIB);
    let device = match Loop::attach(&file) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    let mut writer = Process::holding(File::options().write(true).open(&device.device).unwrap());
    std::thread::scope(|scope| {
        let member = scope.spawn(|| check_member(&device.device, &Policy::default()));
        let seen = || find_users(&device.device).unwrap().holders;
        assert!(seen().iter().any(|one| matches!(one, Holder::Process { can_write: true, .. })));
        writer.0.kill().unwrap();
        writer.0.wait().unwrap();
        assert!(member.join().unwrap().is_ok());
    });
    assert_eq!(lasting_holders(&device.device), []);
}

#[test]
fn readers_of_a_block_device_are_no_obstacle_but_writers_are() {
    let directory = directory();
    let file = image(directory.path(), "a.img", MIB);
    let device = match Loop::attach(&file) {
        Ok(device) => device,
        Err(error) => return skip("loop devices", &error),
    };
    let reader = Process::holding(File::open(&device.device).unwrap());
    let facts = check_member(&device.device, &Policy::default()).unwrap();
    let pid = reader.0.id();
    let is_reader =
        |holder: &Holder| matches!(holder, Holder::Process { pid: other, .. } if *other == pid);
    assert!(facts.holders.iter().any(is_reader), "{:?}", facts.holders);
    drop(reader);
    let writable = File::options().read(true).write(true).open(&device.device).unwrap();
    let _writer = Process::holding(writable);
    assert!(matches!(refused(&device.device, &Policy::default()).reason, Reason::InUse { .. }));
}

/// A disk of 16 MiB with one ext4 partition from 1 MiB on, or why not.
fn partitioned_loop(directory: &Directory) -> Result<(PathBuf, Loop, PathBuf), String> {
    let file = image(directory.path(), "disk.img", 16 * MIB);
    // One entry, in sectors: Linux, 2048 to 32767; then the mark of an MBR.
    let mut sector = vec![0; 512];
    sector[450] = 0x83;
    sector[454..458].copy_from_slice(&2048_u32.to_le_bytes());
    sector[458..462].copy_from_slice(&30720_u32.to_le_bytes());
    sector[510..].copy_from_slice(b"\x55\xaa");
    File::options().write(true).open(&file).unwrap().write_all_at(&sector, 0).unwrap();
    let device = Loop::attach(&file)?;
    let partition = PathBuf::from(format!("{}p1", device.device.display()));
    // A kernel without MBR support does not find it, but can be told.
    if !partition.exists() {
        run("addpart", &[text(&device.device), "1", "2048", "30720"])?;
    }
    if !partition.exists() {
        return Err(format!("{} does not appear", partition.display()));
    }
    run("mkfs.ext4", &["-q", text(&partition)])?;
    Ok((file, device, partition))
}

#[test]
fn a_partition_and_its_whole_disk() {
    let directory = directory();
    let (file, disk, partition) = match partitioned_loop(&directory) {
        Ok(made) => made,
        Err(error) => return skip("partitions of loop devices", &error),
    };
    let found = find_duplicates(&[partition.clone(), disk.device.clone()]).unwrap();
    assert_eq!((&found[0].first, &found[0].second), (&partition, &disk.device));
    assert_eq!(found[0].relation, Relation::PartOfSecond);
    let both = [disk.device.clone(), partition.clone()];
    let refusal = check_members(&both, &Policy { force: &both, ..Policy::default() }).unwrap_err();
    let expected = format!("it is a partition of {}", disk.device.display());
    assert_eq!((refusal.path, refusal.reason.to_string()), (partition.clone(), expected));
    assert_eq!(physical_devices(&partition).unwrap(), physical_devices(&file).unwrap());

    let point = directory.path().join("mnt");
    fs::create_dir(&point).unwrap();
    let mount = match Mount::new(&partition, &point) {
        Ok(mount) => mount,
        Err(error) => return skip("mounts", &error),
    };
    // A mount of the partition is a use of the disk, and of the file behind it.
    for path in [&partition, &disk.device, &file] {
        let holders = find_users(path).unwrap().holders;
        assert!(holders.contains(&Holder::Mounted { at: mount.at.clone() }), "{holders:?}");
    }
}
