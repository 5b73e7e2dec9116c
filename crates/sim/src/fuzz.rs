//! From unchecked bytes to an array that serves: members are assembled as in production, and if that is
//! allowed, the array starts on simulated disks, writes, reads, and stops.
//!
//! ```text
//!   images ─▶ assembled ─▶ refused
//!                       ─▶ restarted ─▶ a write ─▶ read again: the same ─▶ shut down ─▶ assembled again
//! ```
//!
//! Deliberately absent: a check of the array's original content, which is unknown.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits};
use braid_engine::redundant::{Redundant, Speed};
use braid_engine::{Dev, Device};
use braid_md::Version;
use braid_md::fuzz::seal;

use crate::executor::Outcome;
use crate::found::{SimClock, assemble, label, look, number, tidy};
use crate::verify::{Process, begin, pool};
use crate::{Image, Sim, SimDisk};

/// Bytes of a member that is made of a fuzzer's input.
const MEMBER: usize = 16 << 20;
/// The length of the write and the read, in bytes.
const LEN: u64 = 4096;

/// The progress of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Got {
    /// They are no array that may be started, or one without redundancy.
    Refused,
    /// They were put together, and the start failed.
    Assembled,
    /// The array served.
    Served,
}

/// Any bytes as one to four members: the first say how the members differ, then comes a superblock, which gets a right
/// checksum, and the rest is what lies beside it.
///
/// # Panics
/// If something that was promised does not hold.
pub fn fuzz_start(data: &[u8]) {
    let Some((control, body)) = data.split_at_checked(8) else { return };
    let version = Version::ALL[usize::from(control[0]) % Version::ALL.len()];
    let Some(place) = version.superblock_offset(MEMBER as u64) else { return };
    let most = if version == Version::V0_90 { 4096 } else { 1024 };
    let (superblock, rest) = body.split_at(body.len().min(most));
    if rest.is_empty() {
        return;
    }
    let member = |index: u8| {
        let mut block = superblock.to_vec();
        block.resize(4096, 0);
        if version != Version::V0_90 {
            // Device number, identifier, events: the places of version 1.
            block[160..164].copy_from_slice(&u32::from(index).to_le_bytes());
            block[168] ^= index;
            block[200] = block[200].wrapping_add(control[2 + usize::from(index)]);
        }
        seal(version, &mut block);
        let mut image = Image::zeroes(MEMBER);
        // What lies beside superblocks: in front of the data, or at the end.
        let beside = [0, MEMBER - (192 << 10)].into_iter();
        for at in beside.flat_map(|start| (start..start + (128 << 10)).step_by(4096)) {
            image.write(at, &rest[..rest.len().min(4096)]);
        }
        image.write(place as usize, &block);
        image
    };
    let count = 1 + control[1] % 4;
    start((0..count).map(member).collect());
}

/// Starts the array of which these are members, if that may be; answers how far it got.
///
/// # Panics
/// If something that was promised does not hold.
pub fn start(images: Vec<Image>) -> Got {
    begin();
    let images: Vec<Option<Image>> = images.into_iter().map(Some).collect();
    let Ok(there) = look(&images) else { return Got::Refused };
    let Ok(assembled) = assemble(&there) else { return Got::Refused };
    for member in &assembled.members {
        let size = images[number(&member.label)].as_ref().map_or(0, Image::len) as u64;
        let end = member.superblock.data_offset.checked_add(member.usable);
        assert!(end.is_some_and(|end| end <= size), "data of {} outside", member.label);
    }
    let Some(layout) = assembled.level.redundant() else { return Got::Refused };
    let process = Process::default();
    let sim = Sim::new(1);
    sim.be_quiet();
    let handle = sim.handle();
    let disk = |(index, image): (usize, Option<Image>)| {
        let image = image.unwrap_or_default();
        let limits = Limits::new(image.len() as u64, 512);
        SimDisk::with_contents(&handle, label(index), limits, image)
    };
    let disks: Vec<SimDisk> = images.into_iter().enumerate().map(disk).collect();
    let devs = assembled.members.iter().map(|member| tidy(disks[number(&member.label)].clone()));
    let unix_start = Duration::from_secs(1_700_000_000);
    let clock = Rc::new(SimClock { handle: handle.clone(), unix_start });
    let Ok(mut setup) = assembled.setup(layout, devs.collect(), clock, || Ok(1)) else {
        return Got::Assembled;
    };
    setup.stripe_cache = 1 << 20;
    setup.speed = Speed { min: 1 << 30, ..Speed::default() };
    // Units of the largest chunks may need more memory than that.
    let Ok(array) = Redundant::new(setup) else { return Got::Assembled };
    process.of(&array);
    let got = Rc::new(Cell::new(Got::Assembled));
    let (answer, is_changed) = (Rc::clone(&got), assembled.is_changed);
    let outcome = sim.run_until(async move {
        if array.restart().await.is_err() {
            return;
        }
        handle.spawn("array", array.run());
        if is_changed && array.record().await.is_err() {
            return;
        }
        let dev = Dev::new(array.clone());
        let limits = array.limits();
        let len = LEN.min(limits.size) / 512 * 512;
        if len > 0 && len.is_multiple_of(u64::from(limits.logical_block)) {
            let mut buf = pool().get_wait(len as usize).await;
            buf.fill(0xa5);
            let written = dev.start(Io::write(0, buf, Flags::FUA)).await;
            let buf = pool().get_wait(len as usize).await;
            let read = dev.start(Io::read(0, buf)).await;
            if written.result.is_ok() && read.result.is_ok() {
                let is_same = |buf: &[u8]| buf.iter().all(|byte| *byte == 0xa5);
                assert!(read.payload.bufs().iter().all(|buf| is_same(buf)), "not what was written");
                answer.set(Got::Served);
            }
        }
        array.shut_down().await;
        let left = array.leftovers();
        assert!(array.status().broken || left.is_empty(), "left over: {}", left.join(", "));
    });
    if let Outcome::Stuck(stuck) = outcome {
        panic!("it does not end: {stuck}");
    }
    got.get()
}
