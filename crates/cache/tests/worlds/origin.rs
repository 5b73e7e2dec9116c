//! Origins of caches: a disk, or an array that is assembled from its members' superblocks.
//!
//! ```text
//!   cache ──▶ disk                    images: one
//!   cache ──▶ Redundant ──▶ disks     images: one a member, none for those that are lost
//! ```

use std::future::Future;
use std::time::Duration;

use braid_block::{Io, Limits};
use braid_engine::Dev;
use braid_engine::redundant::{Redundant, Speed};
use braid_md::{Level, Resync, Version};
use braid_mem::Pool;
use braid_seed::Rng;
use braid_sim::found::{self, Frame};
use braid_sim::spec::{Policy, Spec};
use braid_sim::{Image, Oracle, Sim, SimDisk, atlas};

use super::SIZE;

/// Maximum delay of a task by the processor, in nanoseconds.
pub(crate) const DELAY_NS: u64 = 2_000_000;

/// Arrays that survive the loss of a member with a crash.
pub(crate) const ARRAYS: [Spec; 4] = [
    tiny(Level::Raid1, 0, 2, SIZE, Policy::Resync),
    tiny(Level::Raid1, 0, 2, SIZE, Policy::Bitmap),
    tiny(Level::Raid5, 2, 3, SIZE / 2, Policy::Log),
    tiny(Level::Raid5, 2, 3, SIZE / 2, Policy::Ppl),
];

const fn tiny(level: Level, layout: u32, members: usize, member_size: u64, policy: Policy) -> Spec {
    let chunk = if matches!(level, Level::Raid1) { 0 } else { 4096 };
    Spec { level, layout, members, chunk, member_size, policy, version: Version::V1_2 }
}

/// Content of each disk; `None` for a lost member.
pub(crate) type Images = Vec<Option<Image>>;

/// The disks, and the array that they are.
pub(crate) struct Origin {
    pub(crate) disks: Vec<SimDisk>,
    pub(crate) array: Option<Redundant>,
    /// The superblocks must record a change at once.
    is_changed: bool,
    has_parity: bool,
}

/// Returns the content of a new origin: zeroes, with valid parity.
pub(crate) fn zeroes(spec: Option<Spec>) -> Images {
    let Some(spec) = spec else { return vec![Some(Image::zeroes(SIZE as usize))] };
    assert_eq!(spec.size(), SIZE, "{spec:?}");
    let data = vec![0; spec.member_size as usize];
    (0..spec.members).map(|role| Some(spec.disk(role, &data, |_| {}))).collect()
}

impl Origin {
    /// Creates the origin from `images`; a disk has blocks of `block` bytes.
    ///
    /// # Errors
    /// The array is refused.
    pub(crate) fn new(
        sim: &Sim,
        spec: Option<Spec>,
        block: u32,
        images: &Images,
    ) -> Result<Origin, String> {
        let handle = sim.handle();
        let disk = |(number, image): (usize, &Option<Image>)| {
            // A lost disk gets no requests.
            let image = image.clone().unwrap_or_else(|| Image::zeroes(4096));
            let size = image.len() as u64;
            let limits = match spec {
                Some(_) => Limits::new(size, 512),
                None => Limits { discard: true, ..Limits::new(size, block) },
            };
            SimDisk::with_contents(&handle, found::label(number), limits, image)
        };
        let disks: Vec<SimDisk> = images.iter().enumerate().map(disk).collect();
        let Some(spec) = spec else {
            return Ok(Origin { disks, array: None, is_changed: false, has_parity: false });
        };
        images
            .iter()
            .zip(&disks)
            .filter(|(image, _)| image.is_none())
            .for_each(|(_, disk)| disk.vanish());
        sim.be_prompt(DELAY_NS);
        let mut there = found::look(images)?;
        let assembled =
            found::assemble_as_told(&mut there).map_err(|why| format!("refused: {why}"))?;
        let speed = Speed { min: 100 << 20, ..Speed::default() };
        let unix_start = Duration::from_secs(1_700_000_000);
        let frame = Frame { handle: &handle, unix_start, speed, nonce: handle.seed() };
        let array = Some(found::build(&assembled, &frame, &disks));
        let (is_changed, has_parity) = (assembled.is_changed, spec.has_parity());
        Ok(Origin { disks, array, is_changed, has_parity })
    }

    pub(crate) fn dev(&self) -> Dev {
        match &self.array {
            None => Dev::new(self.disks[0].clone()),
            Some(array) => Dev::new(array.clone()),
        }
    }

    /// Recovers an array after a crash, and starts its tasks.
    pub(crate) fn start(
        &self,
        sim: &braid_sim::Handle,
    ) -> impl Future<Output = Result<(), String>> + use<> {
        let (array, handle, is_changed) = (self.array.clone(), sim.clone(), self.is_changed);
        async move {
            let Some(array) = array else { return Ok(()) };
            array.restart().await.map_err(|why| format!("not restarted: {why}"))?;
            handle.spawn("array", array.run());
            match is_changed {
                true => array.record().await.map_err(|why| format!("not recorded: {why}")),
                false => Ok(()),
            }
        }
    }

    /// Returns whether a member may be lost: one, if its data are not in doubt.
    pub(crate) fn may_lose(&self) -> bool {
        let Some(array) = &self.array else { return false };
        let is_doubtful = self.has_parity && array.status().resync != Resync::Clean;
        !is_doubtful && !self.disks.iter().any(SimDisk::is_gone)
    }

    /// Returns the images after a crash; with `loses`, a member may be lost.
    pub(crate) fn crash(&self, loses: bool, rng: &mut Rng) -> Images {
        let is_lost = loses && self.may_lose() && rng.percent(20);
        let lost = is_lost.then(|| rng.index(self.disks.len()));
        let image = |(number, disk): (usize, &SimDisk)| {
            let image = image(disk, rng);
            (!disk.is_gone() && lost != Some(number)).then_some(image)
        };
        self.disks.iter().enumerate().map(image).collect()
    }

    /// Returns the durable content, as read by a new process.
    ///
    /// # Errors
    /// The origin does not start.
    pub(crate) fn durable(&self, spec: Option<Spec>) -> Result<Vec<u8>, String> {
        let durable = |disk: &SimDisk| (!disk.is_gone()).then(|| disk.durable());
        contents(spec, &self.disks.iter().map(durable).collect())
    }
}

impl Drop for Origin {
    /// Requests without a waiting caller would keep an array alive.
    fn drop(&mut self) {
        self.array.iter().for_each(Redundant::abandon);
    }
}

/// Draws an image of a disk after a crash.
pub(crate) fn image(disk: &SimDisk, rng: &mut Rng) -> Image {
    match rng.below(4) {
        0 => disk.durable(),
        1 => disk.contents(),
        _ => disk.crash_image(rng),
    }
}

/// Returns the content of the volume in `images`.
///
/// # Errors
/// The volume does not start, or cannot be read.
pub(crate) fn contents(spec: Option<Spec>, images: &Images) -> Result<Vec<u8>, String> {
    if let (None, Some(Some(image))) = (spec, images.first()) {
        return Ok(image.to_vec());
    }
    let (sim, pool) = (Sim::new(1), Pool::new(1 << 20).expect("memory"));
    sim.be_quiet();
    let origin = Origin::new(&sim, spec, 512, images)?;
    let (dev, started) = (origin.dev(), origin.start(&sim.handle()));
    let read = sim.try_block_on(async move {
        started.await?;
        let done = dev.start(Io::read(0, pool.get(SIZE as usize).expect("memory"))).await;
        done.result.map_err(|errno| format!("cannot be read: {errno}"))?;
        Ok(done.payload.to_vec())
    });
    // Before the array, because its process ends later.
    drop(sim);
    read.map_err(|stuck| stuck.to_string())?
}

/// Returns the oracle with the losses that a crash with these `images` of an array excuses: see
/// [`atlas::may_be_anything`].
///
/// # Errors
/// The array is refused.
pub(crate) fn excuse(spec: &Spec, images: &Images, before: &Oracle) -> Result<Oracle, String> {
    let mut there = found::look(images)?;
    let assembled = found::assemble_as_told(&mut there).map_err(|why| format!("refused: {why}"))?;
    let layout = found::layout(&assembled);
    let readable = found::view(&assembled, images).in_sync();
    let mut oracle = before.clone();
    oracle.crash(|offset| atlas::may_be_anything(spec, &layout, before, &readable, true, offset));
    Ok(oracle)
}
