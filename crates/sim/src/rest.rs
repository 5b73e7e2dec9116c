//! Checks of an array that is up, and of one at rest: the whole content is read, copies and parity agree except
//! in parts that superblocks or bitmap exclude, and any set of surviving members reads the same.

use std::future::Future;

use braid_block::Io;
use braid_engine::Dev;
use braid_engine::assembled::Assembled;
use braid_engine::redundant::Redundant;
use braid_md::Resync;
use braid_mem::Pool;

use crate::atlas::is_readable;
use crate::brief::{brief, describe};
use crate::contents::{BLOCK, View, losses};
use crate::found;
use crate::spec::Spec;
use crate::{Image, Rng, SimDisk};

/// An event may overtake tasks that are ready, so a long wait is divided into steps.
pub(crate) const STEP_NS: u64 = 50_000_000;

/// The longest time in which an array must come to rest, in steps of [`STEP_NS`].
const PATIENCE: u64 = 4000;

/// A read of the whole array is divided into pieces of this many bytes.
const PIECE: u64 = 64 << 10;

/// Reads the whole of a volume.
///
/// # Errors
/// A read that fails.
pub(crate) async fn read_all(dev: &Dev) -> Result<Vec<u8>, String> {
    let size = dev.limits().size;
    let mut contents = Vec::with_capacity(size as usize);
    // Of its own: a life that is looked into holds memory of others while it stands still.
    let pool = Pool::new(PIECE as usize).map_err(|why| format!("no memory for reads: {why}"))?;
    while (contents.len() as u64) < size {
        let len = (size - contents.len() as u64).min(PIECE);
        let buf = pool.get_wait(len as usize).await;
        let done = dev.start(Io::read(contents.len() as u64, buf)).await;
        if let Err(errno) = done.result {
            return Err(format!("a read of {len} bytes at {} fails: {errno}", contents.len()));
        }
        done.payload.bufs().iter().for_each(|buf| contents.extend_from_slice(buf));
    }
    Ok(contents)
}

/// Checks that an array comes to rest, after `pause`, reads as before, that copies and parity agree then, and
/// that it would read the same without some members.
///
/// # Errors
/// The first error.
pub(crate) async fn check_at_rest(
    spec: &Spec,
    array: &Redundant,
    disks: &[SimDisk],
    contents: &[u8],
    dice: &mut Rng,
    pause: impl Future<Output = ()>,
) -> Result<(), String> {
    let before = array.status();
    if before.resync == Resync::Clean && spec.has_parity() {
        check_agreement(disks, "when it is up")?;
    }
    pause.await;
    let clock_handle = disks[0].handle();
    let mut left = PATIENCE;
    loop {
        let status = array.status();
        if status.resync == Resync::Clean && status.job.is_none() && !status.active {
            break;
        }
        if left == 0 {
            return Err(format!("it does not come to rest: {}", brief(array)));
        }
        left -= 1;
        clock_handle.sleep(STEP_NS).await;
    }
    let then = read_all(&Dev::new(array.clone())).await?;
    if let Some(block) = first_difference(contents, &then) {
        return Err(format!("what was read at {block} is another now; {}", brief(array)));
    }
    let found = check_agreement(disks, "at rest")?;
    check_losses(&found, contents, dice)
}

/// An array at rest, by its disks.
pub(crate) struct AtRest {
    images: Vec<Option<Image>>,
    pub(crate) assembled: Assembled,
}

/// Checks that all active members agree, according to the superblocks; `when` is for the message.
pub(crate) fn check_agreement(disks: &[SimDisk], when: &str) -> Result<AtRest, String> {
    let image = |disk: &SimDisk| Some(disk.contents()).filter(|one| one.len() > 4096);
    let images: Vec<_> =
        disks.iter().map(|disk| if disk.is_gone() { None } else { image(disk) }).collect();
    let mut there = found::look(&images)?;
    let assembled = found::assemble_as_told(&mut there)
        .map_err(|why| format!("{when} refused: {why}; {}", describe(&there)))?;
    let misfits = found::view(&assembled, &images).misfits();
    if let Some(offset) = misfits.first() {
        let count = misfits.len();
        return Err(format!("{when} copies or parity differ at {offset} ({count} such blocks)"));
    }
    Ok(AtRest { images, assembled })
}

/// Checks that an array holds `contents` also without members, as many as it can do without.
fn check_losses(at_rest: &AtRest, contents: &[u8], dice: &mut Rng) -> Result<(), String> {
    let AtRest { images, assembled } = at_rest;
    let view = found::view(assembled, images);
    let in_sync = view.in_sync();
    let layout = found::layout(assembled);
    let sets: Vec<Vec<usize>> = losses(in_sync.len(), 2)
        .into_iter()
        .filter(|lost| is_readable(&layout, &|role| in_sync[role] && !lost.contains(&role)))
        .collect();
    for _ in 0..2 {
        let Some(lost) = sets.get(dice.index(sets.len().max(1))) else {
            return Err("at rest it cannot be read".to_owned());
        };
        let view = view.without(lost);
        let (mut choice, mut copies) = (0, 1);
        while choice < copies.min(3) {
            copies = check_view(&view, choice, contents)
                .map_err(|why| format!("at rest, without the roles {lost:?}, {why}"))?;
            choice += 1;
        }
    }
    Ok(())
}

/// Checks that copies number `choice` are `contents`. Returns the most copies of a block.
fn check_view(view: &View<'_>, choice: usize, contents: &[u8]) -> Result<usize, String> {
    let (mut gone, mut other) = (None::<u64>, None::<u64>);
    let least = |one: Option<u64>, at| Some(one.map_or(at, |one| one.min(at)));
    let copies = view.each_block(choice, |at, block| match block {
        None => gone = least(gone, at),
        Some(block) if contents[at as usize..][..block.len()] != *block => other = least(other, at),
        Some(_) => {}
    });
    match (gone, other) {
        (Some(offset), _) => Err(format!("the block at {offset} is gone")),
        (None, Some(offset)) => Err(format!("the block at {offset} is another")),
        (None, None) => Ok(copies),
    }
}

/// The first block in which two contents differ.
pub(crate) fn first_difference(a: &[u8], b: &[u8]) -> Option<u64> {
    if a == b {
        return None;
    }
    let block = BLOCK as usize;
    let differing = a.chunks(block).zip(b.chunks(block)).position(|(a, b)| a != b);
    Some(differing.map_or(a.len().min(b.len()) as u64, |index| index as u64 * BLOCK))
}
