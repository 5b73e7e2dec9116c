//! Power cuts under the real program: its members lie in a file system that keeps durable and volatile writes
//! apart ([`medium`]), and its clients know what they were promised ([`promises`]).
//!
//! ```text
//!   clients   write, flush ─────────┐ errors      read and compare ── scrub
//!   volume    up ───────────────────┤ killed   up again (a member short)
//!   members   content, volatile ── cut ── settled: kept, dropped, torn
//! ```
//!
//! Each round draws its export, driver and the moment of the cut from a seed; six in a row have all levels. Seeds
//! change with the commit.
//! `BRAID_CUTS=n` runs n rounds of each test, `BRAID_CUT_SEED=n` those from that seed on.

mod medium;
mod promises;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use braid_nbd::protocol::Command;
use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::process::Signal;

use self::medium::Medium;
use self::promises::{Promises, SECTOR, Step, bytes_of};
use crate::common::{
    Client, LoopDevice, MIB, Random, Scratch, UpVolume, is_alive, send_signal, skip_unless_root,
    wait_until,
};

/// The size of the part of a volume that is written.
const WRITTEN: u64 = 4 * MIB;
const CLIENTS: u64 = 4;
/// The greatest number of changes for each member before a cut.
const CHANGES: u64 = 200;
const ROUNDS: u64 = LEVELS.len() as u64;

/// The kind of a volume's members.
#[derive(Clone, Copy, Debug)]
enum Members {
    Files,
    /// Files for which the kernel does not pass on `RWF_DSYNC`.
    DirectFiles,
    /// Block devices on files, which are written with `RWF_DSYNC`.
    LoopDevices,
}

/// A level, its members, the options that create it, whether a crash and the loss of a member are survived together.
const LEVELS: [(&str, u64, &[&str], bool); 6] = [
    ("raid1", 2, &["--bitmap", "64K"], true),
    ("raid5", 4, &["--chunk", "16K", "--consistency", "ppl"], true),
    ("raid6", 5, &["--chunk", "16K", "--consistency", "log"], true),
    ("raid10", 4, &["--chunk", "16K"], true),
    ("cache", 2, &[], true),
    ("raid0", 2, &["--chunk", "16K"], false),
];

/// A client of a volume.
enum Access {
    Nbd(Box<Client>),
    Device(File),
}

impl Access {
    fn of(volume: &UpVolume) -> Access {
        match &volume.device {
            None => Access::Nbd(Box::new(volume.client())),
            Some(device) => {
                let mut options = OpenOptions::new();
                options.read(true).write(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
                Access::Device(options.open(device).expect("the device opens"))
            }
        }
    }

    /// Carries a step out; false if it failed.
    fn carry_out(&mut self, step: &Step) -> bool {
        match (self, step) {
            (Access::Nbd(client), Step::Flush(_)) => client.flush().is_ok(),
            (Access::Nbd(client), Step::Write { sectors, version, fua }) => {
                let bytes = bytes_of(sectors, *version);
                client.write(sectors.start * SECTOR, &bytes, *fua).is_ok()
            }
            (Access::Nbd(client), Step::Zeroes { sectors, fua, .. }) => {
                let (offset, length) =
                    (sectors.start * SECTOR, (sectors.end - sectors.start) * SECTOR);
                let (fua, no_hole) = (*fua, sectors.start.is_multiple_of(16));
                let fast_zero = false;
                let zeroes = Command::WriteZeroes { offset, length, fua, no_hole, fast_zero };
                client.request(zeroes, &[]).is_ok()
            }
            (Access::Device(file), Step::Flush(_)) => file.sync_data().is_ok(),
            (Access::Device(file), Step::Write { sectors, version, fua }) => {
                write_direct(file, sectors.start * SECTOR, &bytes_of(sectors, *version), *fua)
            }
            (Access::Device(file), Step::Zeroes { sectors, fua, .. }) => {
                let len = (sectors.end - sectors.start) * SECTOR;
                braid_sys::block::zero_out(&*file, sectors.start * SECTOR, len).is_ok()
                    && (!*fua || file.sync_data().is_ok())
            }
        }
    }
}

/// Writes past the page cache: from memory on a page boundary.
fn write_direct(file: &File, offset: u64, bytes: &[u8], fua: bool) -> bool {
    let mut memory = vec![0; bytes.len() + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let memory = &mut memory[start..start + bytes.len()];
    memory.copy_from_slice(bytes);
    if !fua {
        return file.write_all_at(memory, offset).is_ok();
    }
    let parts = [std::io::IoSlice::new(memory)];
    let written = rustix::io::pwritev2(file, &parts, offset, ReadWriteFlags::DSYNC);
    written.is_ok_and(|count| count == bytes.len())
}

/// The random choices of one round.
struct Round {
    seed: u64,
    members: Members,
    random: Random,
    level: &'static str,
    count: u64,
    options: &'static [&'static str],
    may_lose: bool,
    is_attached: bool,
    driver: &'static str,
}

impl Round {
    fn new(seed: u64, members: Members) -> Round {
        let mut random = Random::new(seed);
        let (level, count, options, may_lose) = LEVELS[(seed % ROUNDS) as usize];
        // The device on top is FUSE, too, and tells less of what was asked.
        let is_attached = random.below(3) == 0;
        let driver = ["uring", "threads"][random.below(2) as usize];
        Round { seed, members, random, level, count, options, may_lose, is_attached, driver }
    }

    fn up<'a>(
        &self,
        scratch: &'a Scratch,
        members: &[PathBuf],
        medium: &Medium,
        more: &[&str],
    ) -> UpVolume<'a> {
        let texts: Vec<String> = members.iter().map(|path| path.display().to_string()).collect();
        let log = medium.path("log");
        let stack = match self.level {
            "cache" => format!(
                "cache(size=2M, mode=write-back, log={}, md({}))",
                log.display(),
                texts.join(", ")
            ),
            _ => format!("md({})", texts.join(", ")),
        };
        let attach = if self.is_attached { "fuse" } else { "none" };
        let options = ["--name", "w", "--attach", attach, "--io", self.driver];
        // What an earlier life remembers of its members is not what this one has.
        let _ = std::fs::remove_file(scratch.config_file("w"));
        scratch.up(&stack, &[&options[..], more].concat())
    }

    /// Creates, writes, cuts, assembles and compares. False where this cannot be had here.
    fn run(mut self) -> bool {
        let Round { seed, level, driver, is_attached, .. } = self;
        println!(
            "{:?}, {level}, {}, --io {driver}: BRAID_CUT_SEED={seed}",
            self.members,
            if is_attached { "attached" } else { "NBD" },
        );
        let scratch = Scratch::new();
        let names: Vec<String> = (0..self.count).map(|index| index.to_string()).collect();
        let sizes = names.iter().map(|name| (name.clone(), 8 * MIB));
        let files: Vec<(String, u64)> = sizes.chain([("log".into(), 4 * MIB)]).collect();
        let is_direct = matches!(self.members, Members::DirectFiles);
        let point = scratch.join("medium");
        let Some(medium) = Medium::new(&point, &files, is_direct) else { return false };
        let Some((paths, loops)) = self.paths(&medium, &names) else { return false };
        let level = if level == "cache" { "raid1" } else { level };
        let create = scratch.braid().args(["create", "v", "--level", level]).args(self.options);
        let create = if level == "raid0" { create } else { create.arg("--assume-clean") };
        create.args(&paths).run().ok();
        let volume = self.up(&scratch, &paths, &medium, &[]);
        let promises = Mutex::new(Promises::new(WRITTEN, &mut self.random));
        medium.cut_after(1 + self.random.below(CHANGES * self.count));
        std::thread::scope(|threads| {
            for _ in 0..CLIENTS {
                let random = Random::new(self.random.next());
                let access = Access::of(&volume);
                threads.spawn(|| write_to_the_end(access, &promises, random));
            }
            medium.wait_for_cut();
            // Members answer nothing any more: the process learns nothing of the cut.
            send_signal(volume.pid, Signal::KILL);
            medium.release();
            wait_until("the end of a killed process", || !is_alive(volume.pid));
        });
        let promises = promises.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop(loops);
        let volatile = medium.settle(&mut self.random);
        println!("  {} promises, {volatile} volatile writes", promises.given);
        drop(volume);
        self.compare(&scratch, &medium, names, &promises);
        true
    }

    /// Brings the volume up from what is left, perhaps without a member, and compares.
    fn compare(
        mut self,
        scratch: &Scratch,
        medium: &Medium,
        mut names: Vec<String>,
        promises: &Promises,
    ) {
        let loses = self.may_lose && self.random.below(3) == 0;
        if loses {
            let lost = names.remove(self.random.below(self.count) as usize);
            println!("  without member {lost}");
            medium.erase(&lost);
        }
        let (paths, loops) = self.paths(medium, &names).expect("as before");
        let more: &[&str] = if loses { &["--degraded"] } else { &[] };
        let volume = self.up(scratch, &paths, medium, more);
        let read = || volume_bytes(&volume);
        // Logs of parity hold not all of what was being written to a member that is lost in the crash.
        promises.check(&read(), loses && ["raid5", "raid6"].contains(&self.level));
        if self.level != "raid0" && !loses {
            let scrub = scratch.run(&["scrub", "w", "--wait"]);
            assert!(!scrub.err.contains("differ"), "{scrub}");
            promises.check(&read(), false);
        }
        volume.down();
        drop(loops);
    }

    fn paths(&self, medium: &Medium, names: &[String]) -> Option<(Vec<PathBuf>, Vec<LoopDevice>)> {
        let files: Vec<PathBuf> = names.iter().map(|name| medium.path(name)).collect();
        if !matches!(self.members, Members::LoopDevices) {
            return Some((files, Vec::new()));
        }
        let loops = files.iter().map(|file| LoopDevice::direct(file));
        let loops: Vec<LoopDevice> = loops.collect::<Option<_>>()?;
        Some((loops.iter().map(|device| device.path().to_owned()).collect(), loops))
    }
}

fn write_to_the_end(mut access: Access, promises: &Mutex<Promises>, mut random: Random) {
    let lock = || promises.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let step = lock().draw(&mut random);
        if !access.carry_out(&step) {
            return;
        }
        lock().answered(step);
    }
}

fn volume_bytes(volume: &UpVolume) -> Vec<u8> {
    match &volume.device {
        None => volume.client().read(0, WRITTEN as u32).expect("a read is answered"),
        Some(device) => {
            let mut bytes = vec![0; WRITTEN as usize];
            let file = crate::common::with_files_open(|| File::open(device));
            file.expect("the device opens").read_exact_at(&mut bytes, 0).expect("a read");
            bytes
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn cut(members: Members, test: u64) {
    skip_unless_root!();
    let first = braid_seed::first_of_commit(&braid_seed::commit());
    let first = number("BRAID_CUT_SEED").unwrap_or(braid_seed::mix(&[first, test]));
    for round in 0..number("BRAID_CUTS").unwrap_or(ROUNDS) {
        if !Round::new(first.wrapping_add(round), members).run() {
            return;
        }
    }
}

#[test]
fn power_cut_over_files() {
    cut(Members::Files, 0);
}

#[test]
fn power_cut_over_files_that_pass_no_dsync_on() {
    cut(Members::DirectFiles, 1);
}

#[test]
fn power_cut_over_block_devices() {
    cut(Members::LoopDevices, 2);
}

/// A write and zeroes with FUA are durable when they are answered, also where the kernel passes no `RWF_DSYNC` on.
#[test]
fn fua_is_durable_in_a_file_system_in_user_space() {
    skip_unless_root!();
    for is_direct in [false, true] {
        let scratch = Scratch::new();
        let files = [("0".to_owned(), 8 * MIB)];
        let medium = Medium::new(&scratch.join("medium"), &files, is_direct);
        let Some(medium) = medium else { return };
        let stack = medium.path("0").display().to_string();
        let volume = scratch.up(&stack, &["--name", "w", "--attach", "none"]);
        let mut client = volume.client();
        let (offset, length, fua) = (0, 4096, true);
        client.write(offset, &[7; 4096], fua).expect("it is written");
        assert_eq!(medium.durable("0", 0..4096), [7; 4096], "direct: {is_direct}");
        for no_hole in [true, false] {
            let zeroes = Command::WriteZeroes { offset, length, fua, no_hole, fast_zero: false };
            client.request(zeroes, &[]).expect("they are written");
            assert_eq!(medium.durable("0", 0..4096), [0; 4096], "direct: {is_direct}");
            client.write(offset, &[7; 4096], fua).expect("it is written");
        }
        drop(client);
        volume.down();
    }
}
