//! Arrays that run, in the format of `/proc/mdstat`.
//!
//! ```text
//! Personalities : [raid1]
//! md0 : active raid1 sdb1[1] sda1[0]
//!       15360 blocks super 1.2 [2/2] [UU]
//!       [==>..................]  resync = 12.5% (1920/15360) finish=0.1min speed=1920K/sec
//!       bitmap: 1/1 pages [4KB], 64KB chunk
//!
//! unused devices: <none>
//! ```
//!
//! Invariants: the text is that of the kernel, space for space, because programs read it; members
//! come with the highest number first, as the kernel lists them. Deliberately absent: where the
//! values come from.
//!
//! Source: Linux 6.12 `drivers/md/md.c` (`md_seq_show`, `status_resync`), `md-bitmap.c`, and the
//! levels' `status` functions.

use std::fmt::{self, Write as _};

use braid_md::{Level, SECTOR, Version};

/// All of `/proc/mdstat`.
///
/// `personalities` are the levels that there is code for, in the order in which they are listed.
#[must_use]
pub fn mdstat(personalities: &[&str], arrays: &[Array]) -> String {
    let mut out = String::new();
    write_all(&mut out, personalities, arrays).expect("a string takes everything");
    out
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Such as `md0`.
    pub name: String,
    /// The state of a running array; `None` for one that is only assembled (inactive).
    pub running: Option<Running>,
    /// The place of the superblocks.
    pub metadata: Metadata,
    /// The devices, in any order.
    pub members: Vec<Member>,
    /// The bytes of data in the array; for an inactive one, the sum of its members' sizes.
    pub size: u64,
    /// The write-intent bitmap.
    pub bitmap: Option<Bitmap>,
}

/// The state that only a running array has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The permitted access.
    pub access: Access,
    /// The RAID level.
    pub level: Level,
    /// md's number of the layout.
    pub layout: u32,
    /// Chunk (or linear's rounding) in bytes.
    pub chunk: u64,
    /// For each member in order whether it is there and in sync: `U` or `_`.
    pub in_sync: Vec<bool>,
    /// The work in progress.
    pub action: Action,
}

/// The permitted access to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes.
    ReadWrite,
    /// It cannot.
    ReadOnly,
    /// It can be with the first write.
    AutoReadOnly,
}

/// The place of an array's superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// On the members.
    Internal(Version),
    /// Nowhere.
    NonPersistent,
}

/// A device of an array.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Member {
    /// Such as `sda1`.
    pub name: String,
    /// Its number in the array, not its role.
    pub number: u32,
    /// Reads avoid it: `(W)`.
    pub write_mostly: bool,
    /// Holds the journal: `(J)`.
    pub journal: bool,
    /// Failed: `(F)`.
    pub faulty: bool,
    /// Has no role: `(S)`.
    pub spare: bool,
    /// Is filled to replace a member that works: `(R)`.
    pub replacement: bool,
}

/// A write-intent bitmap in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Pages of counters that are in use.
    pub used_pages: u64,
    /// Pages of counters that there would be if all were.
    pub pages: u64,
    /// Size of a page in bytes.
    pub page_size: u64,
    /// The bytes that a bit stands for.
    pub chunk: u64,
}

/// The work in progress in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No work.
    Idle,
    /// A resync is due and waits for a write or for permission.
    Pending,
    /// A resync, recovery, check or reshape waits for another array on the same disks.
    Delayed,
    /// Work is under way.
    Working(Progress),
}

/// The progress of a resync, recovery, check or reshape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The kind of work.
    pub work: Work,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Bytes done within the last `window_s` seconds, from which the rate is estimated.
    pub recent: u64,
    /// Seconds; none is taken for one.
    pub window_s: u64,
}

/// Work on all stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Copies and parity are made to agree.
    Resync,
    /// A member is filled.
    Recovery,
    /// Copies and parity are compared.
    Check,
    /// The shape changes.
    Reshape,
}

/// The start of a new line.
const INDENT: &str = "\n      ";

/// The kernel's unit here is a block of 1 KiB.
const BLOCK: u64 = 1024;

fn write_all(out: &mut String, personalities: &[&str], arrays: &[Array]) -> fmt::Result {
    out.push_str("Personalities : ");
    for name in personalities {
        write!(out, "[{name}] ")?;
    }
    out.push('\n');
    for array in arrays {
        write_array(out, array)?;
    }
    writeln!(out, "unused devices: <none>")
}

fn write_array(out: &mut String, array: &Array) -> fmt::Result {
    write!(out, "{} : ", array.name)?;
    match &array.running {
        None => out.push_str("inactive"),
        Some(running) => {
            let access = match running.access {
                Access::ReadWrite => "",
                Access::ReadOnly => " (read-only)",
                Access::AutoReadOnly => " (auto-read-only)",
            };
            write!(out, "active{access} {}", running.level)?;
        }
    }
    write_members(out, &array.members)?;
    if !array.members.is_empty() {
        write!(out, "{INDENT}{} blocks", array.size / BLOCK)?;
    }
    match array.metadata {
        Metadata::Internal(Version::V0_90) => {}
        Metadata::Internal(version) => write!(out, " super {version}")?,
        Metadata::NonPersistent => out.push_str(" super non-persistent"),
    }
    match &array.running {
        None => write!(out, "{INDENT} ")?,
        Some(running) => {
            write_level(out, running)?;
            out.push_str(INDENT);
            if write_action(out, running.action)? {
                out.push_str(INDENT);
            }
        }
    }
    if let Some(bitmap) = array.bitmap {
        write_bitmap(out, bitmap)?;
    }
    writeln!(out)
}

fn write_members(out: &mut String, members: &[Member]) -> fmt::Result {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by_key(|member| std::cmp::Reverse(member.number));
    for member in sorted {
        write!(out, " {}[{}]", member.name, member.number)?;
        // Of a failed device nothing else is said.
        let working = !member.faulty;
        for (flag, letter) in [
            (member.write_mostly, 'W'),
            (member.journal, 'J'),
            (member.faulty, 'F'),
            (member.spare && working, 'S'),
            (member.replacement && working, 'R'),
        ] {
            if flag {
                write!(out, "({letter})")?;
            }
        }
    }
    Ok(())
}

fn write_level(out: &mut String, running: &Running) -> fmt::Result {
    let (chunk, layout) = (running.chunk / BLOCK, running.layout);
    match running.level {
        Level::Linear => return write!(out, " {chunk}k rounding"),
        Level::Raid0 => return write!(out, " {chunk}k chunks"),
        Level::Raid1 => {}
        Level::Raid10 => write_raid10(out, running)?,
        Level::Raid4 | Level::Raid5 | Level::Raid6 => {
            let level = running.level.number();
            write!(out, " level {level}, {chunk}k chunk, algorithm {layout}")?;
        }
    }
    let present = running.in_sync.iter().filter(|in_sync| **in_sync).count();
    write!(out, " [{}/{present}] [", running.in_sync.len())?;
    out.extend(running.in_sync.iter().map(|in_sync| if *in_sync { 'U' } else { '_' }));
    write!(out, "]")
}

fn write_raid10(out: &mut String, running: &Running) -> fmt::Result {
    let layout = running.layout;
    let (near, far) = (layout & 255, layout >> 8 & 255);
    let disks = u32::try_from(running.in_sync.len()).unwrap_or(u32::MAX);
    if near < disks {
        write!(out, " {}K chunks", running.chunk / BLOCK)?;
    }
    if near > 1 {
        write!(out, " {near} near-copies")?;
    }
    if far <= 1 {
        return Ok(());
    }
    let kind = if layout & 0x10000 == 0 { "far" } else { "offset" };
    write!(out, " {far} {kind}-copies")?;
    // Bits 17 and 18: the far copies stay within sets of members.
    let set = match layout >> 17 {
        1 => disks / far,
        2 => far * near,
        _ => disks,
    };
    if set != disks {
        write!(out, " {set} devices per set")?;
    }
    Ok(())
}

/// Returns true if there was something to write.
fn write_action(out: &mut String, action: Action) -> Result<bool, fmt::Error> {
    match action {
        Action::Idle => return Ok(false),
        Action::Pending => out.push_str("\tresync=PENDING"),
        Action::Delayed => out.push_str("\tresync=DELAYED"),
        Action::Working(progress) => write_progress(out, progress)?,
    }
    Ok(true)
}

fn write_progress(out: &mut String, progress: Progress) -> fmt::Result {
    let total = progress.total / SECTOR;
    let done = (progress.done / SECTOR).min(total);
    let per_mille = per_mille(done, total);
    let bar = (per_mille / 50) as usize;
    let (past, rest) = ("=".repeat(bar), ".".repeat(20 - bar));
    let name = match progress.work {
        Work::Resync => "resync",
        Work::Recovery => "recovery",
        Work::Check => "check",
        Work::Reshape => "reshape",
    };
    let (percent, tenth) = (per_mille / 10, per_mille % 10);
    let (done_kb, total_kb) = (done / 2, total / 2);
    write!(out, "[{past}>{rest}]  {name} ={percent:3}.{tenth}% ({done_kb}/{total_kb})")?;
    let window_s = progress.window_s.max(1);
    let recent = progress.recent / SECTOR;
    // The rate is scaled by 32 and never nothing, so that the estimate has an end.
    let left_s = (u128::from((total - done) / (recent / 32 + 1)) * u128::from(window_s)) >> 5;
    let (minutes, tenth) = (left_s / 60, left_s % 60 / 6);
    write!(out, " finish={minutes}.{tenth}min speed={}K/sec", recent / 2 / window_s)
}

/// Thousandths done, counted in units of 1024 sectors (more for what is beyond 4 PiB): below
/// 1000 always, so that the bar stays within its ends.
fn per_mille(done: u64, total: u64) -> u64 {
    let mut scale = 10;
    while total / 2 > 1 << (scale + 32) {
        scale += 1;
    }
    (done >> scale) * 1000 / ((total >> scale) + 1)
}

fn write_bitmap(out: &mut String, bitmap: Bitmap) -> fmt::Result {
    let Bitmap { used_pages, pages, page_size, chunk } = bitmap;
    let used_kb = used_pages.saturating_mul(page_size) / BLOCK;
    let (count, unit) = if chunk < BLOCK { (chunk, "B") } else { (chunk / BLOCK, "KB") };
    writeln!(out, "bitmap: {used_pages}/{pages} pages [{used_kb}KB], {count}{unit} chunk")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, number: u32) -> Member {
        Member { name: name.to_owned(), number, ..Member::default() }
    }

    /// Three members of 15 MiB, the last of which is missing.
    fn raid(level: Level, layout: u32, chunk: u64, action: Action) -> Array {
        Array {
            name: "md0".to_owned(),
            running: Some(Running {
                access: Access::ReadWrite,
                level,
                layout,
                chunk,
                in_sync: vec![true, true, false],
                action,
            }),
            metadata: Metadata::Internal(Version::V1_2),
            members: vec![member("sda1", 0), member("sdb1", 1)],
            size: 30 << 20,
            bitmap: None,
        }
    }

    fn text(array: Array) -> String {
        mdstat(&["raid1"], &[array])
    }

    #[test]
    fn without_arrays_there_is_a_head_and_an_end() {
        assert_eq!(mdstat(&[], &[]), "Personalities : \nunused devices: <none>\n");
    }

    #[test]
    fn a_recovery_has_a_bar_and_a_bitmap_a_line() {
        let progress = Progress {
            work: Work::Recovery,
            done: 1_910_016 << 10,
            total: 15_360_000 << 10,
            recent: 60_000 << 10,
            window_s: 3,
        };
        let bitmap = Bitmap { used_pages: 1, pages: 8, page_size: 4096, chunk: 64 << 20 };
        let array = raid(Level::Raid5, 2, 64 << 10, Action::Working(progress));
        assert_eq!(
            text(Array { bitmap: Some(bitmap), ..array }),
            "Personalities : [raid1] \n\
             md0 : active raid5 sdb1[1] sda1[0]\n      \
             30720 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/2] [UU_]\n      \
             [==>..................]  recovery = 12.4% (1910016/15360000) finish=11.2min speed=20000K/sec\n      \
             bitmap: 1/8 pages [4KB], 65536KB chunk\n\n\
             unused devices: <none>\n"
        );
    }

    #[test]
    fn bars_stay_within_their_ends() {
        for (done, total, bar) in [
            (0, 0, "[>....................]  check =  0.0% (0/0) finish=0.0min speed=0K/sec"),
            (0, 1 << 30, "[>....................]  check =  0.0% (0/1048576)"),
            (1 << 40, 1 << 40, "[===================>.]  check = 99.9%"),
            (u64::MAX, u64::MAX, "[===================>.]  check = 99.9%"),
            (u64::MAX, 1 << 20, "[=============>.......]  check = 66.6% (1024/1024)"),
        ] {
            let work = Work::Check;
            let progress = Progress { work, done, total, recent: 0, window_s: 0 };
            let text = text(raid(Level::Raid1, 0, 0, Action::Working(progress)));
            assert!(text.contains(bar), "{done} of {total}: {text}");
        }
    }

    #[test]
    fn what_waits_says_so() {
        for (action, word) in [(Action::Pending, "PENDING"), (Action::Delayed, "DELAYED")] {
            let text = text(raid(Level::Raid1, 0, 0, action));
            let line = format!(" [3/2] [UU_]\n      \tresync={word}\n      \nunused");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn members_come_by_number_with_their_flags() {
        let mut array = raid(Level::Raid1, 0, 0, Action::Idle);
        array.members = vec![
            Member { write_mostly: true, ..member("a", 0) },
            Member { faulty: true, spare: true, ..member("b", 3) },
            Member { spare: true, ..member("c", 10) },
            Member { replacement: true, ..member("d", 2) },
            Member { journal: true, ..member("e", 4) },
        ];
        assert!(text(array).contains(" raid1 c[10](S) e[4](J) b[3](F) d[2](R) a[0](W)\n"));
    }

    #[test]
    fn arrays_that_cannot_be_written_or_do_not_run() {
        let array = raid(Level::Raid1, 0, 0, Action::Idle);
        for (access, words) in [
            (Access::ReadOnly, "active (read-only) raid1 "),
            (Access::AutoReadOnly, "active (auto-read-only) raid1 "),
        ] {
            let running = Running { access, ..array.running.clone().expect("it runs") };
            let text = text(Array { running: Some(running), ..array.clone() });
            assert!(text.contains(words), "{text}");
        }
        let inactive = Array {
            running: None,
            metadata: Metadata::NonPersistent,
            ..raid(Level::Raid1, 0, 0, Action::Idle)
        };
        assert_eq!(
            text(inactive),
            "Personalities : [raid1] \n\
             md0 : inactive sdb1[1] sda1[0]\n      30720 blocks super non-persistent\n       \n\
             unused devices: <none>\n"
        );
    }

    #[test]
    fn layouts_of_raid10() {
        for (layout, words) in [
            (0x102, " 64K chunks 2 near-copies [3/2]"),
            (0x201, " 64K chunks 2 far-copies [3/2]"),
            (0x10201, " 64K chunks 2 offset-copies [3/2]"),
            (0x103, " 3 near-copies [3/2]"),
            (0x20201, " 64K chunks 2 far-copies 1 devices per set [3/2]"),
            (0x40201, " 64K chunks 2 far-copies 2 devices per set [3/2]"),
        ] {
            let text = text(raid(Level::Raid10, layout, 64 << 10, Action::Idle));
            assert!(text.contains(&format!(" super 1.2{words}")), "{text}");
        }
    }
}
