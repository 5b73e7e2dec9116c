//! From images of disks to an array, as production does it: every disk is read by
//! [`braid_engine::assembled`], which decides which members take part.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Io, Limits, Op, Span};
use braid_cache::WriteBackConfig;
use braid_engine::assembled::{self, Assembled, Carried, CarriedError, Refusal, Source};
use braid_engine::redundant::{Branch, Home, Layout, MemberState, Redundant, Setup, Speed};
use braid_engine::{Clock, Dev, Device, Extents, Pending, Tasks};
use braid_md::Version;
use braid_md::assembly::{Options, Reason, group};
use braid_wiring::{Described, Ground, wire};

use crate::contents::{Holder, View};
use crate::front::Front;
use crate::{Handle, Image, SimDisk};

/// Returns the metadata of an array that a disk with this `image` carries.
///
/// # Errors
/// Nothing, or nothing that can be believed.
pub fn carried(image: &Image) -> Result<Carried, CarriedError> {
    let mut read = |offset: u64, bytes: &mut [u8]| {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > image.len() as u64) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        image.read(offset as usize, bytes);
        Ok(())
    };
    Carried::read(&mut Source { size: image.len() as u64, read: &mut read })
}

/// A disk that is there, by its number among all.
pub struct There {
    /// Its number.
    pub disk: usize,
    /// Metadata that it carries.
    pub carried: Carried,
}

/// Those of `images` that carry something of the array; blank ones do not.
///
/// # Errors
/// Describes carried data that cannot be believed.
pub fn look(images: &[Option<Image>]) -> Result<Vec<There>, String> {
    let mut there = Vec::new();
    for (disk, image) in images.iter().enumerate() {
        let Some(image) = image else { continue };
        match carried(image) {
            Ok(carried) => there.push(There { disk, carried }),
            Err(CarriedError::NoSuperblock(found)) if found.is_empty() => {}
            // A write of several sectors that failed may have torn it: it cannot be used then.
            Err(CarriedError::NoSuperblock(found))
                if found.iter().all(|one| one.version == Version::V0_90) => {}
            Err(why) => return Err(format!("disk{disk} cannot be read: {why:?}")),
        }
    }
    Ok(there)
}

/// Puts them together, also without some of them.
///
/// # Errors
/// Why that is refused.
pub fn assemble(there: &[There]) -> Result<Assembled, Refusal> {
    let members: Vec<(String, &Carried)> =
        there.iter().map(|one| (label(one.disk), &one.carried)).collect();
    let options = assembled::Options { read_only: false, degraded: true, raid0_layout: None };
    assembled::assemble(&members, options)
}

/// The same; if that is refused because of members that seem to have gone on alone, without these,
/// as the refusal says: a stale one seems so if all whom it knew were replaced since.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_as_told(there: &mut Vec<There>) -> Result<Assembled, Refusal> {
    let assembled = assemble(there);
    if assembled.is_ok() {
        return assembled;
    }
    let alone = diverged(there);
    there.retain(|one| !alone.contains(&one.disk));
    if alone.is_empty() || there.is_empty() { assembled } else { assemble(there) }
}

/// The disks that seem to have gone on alone.
pub fn diverged(there: &[There]) -> Vec<usize> {
    let sets = group(there.iter().map(|one| one.carried.candidate(label(one.disk))).collect());
    let supported = assembled::is_served;
    let (force, read_only, degraded) = (false, false, true);
    let raid0_layout = None;
    let options = Options { force, read_only, degraded, raid0_layout, supported: &supported };
    let left_out = sets.iter().flat_map(|set| set.assess(options).left_out);
    let alone = left_out.filter(|one| matches!(one.reason, Reason::Diverged { .. }));
    alone.map(|one| number(&one.label)).collect()
}

/// Returns the name of a disk in messages.
pub fn label(disk: usize) -> String {
    format!("disk{disk}")
}

/// The disk that a label means.
///
/// # Panics
/// If it is none of [`label`]'s.
pub fn number(label: &str) -> usize {
    label.trim_start_matches("disk").parse().expect("a disk's label")
}

/// The array's geometry.
///
/// # Panics
/// If it survives no loss.
pub fn layout(assembled: &Assembled) -> Layout {
    assembled.level.redundant().expect("an array that survives losses")
}

/// By role: the disks that have it, and up to where in bytes, by what superblocks say.
pub fn holders(assembled: &Assembled) -> Vec<Vec<(usize, u64)>> {
    let mut holders = vec![Vec::new(); assembled.superblock.raid_disks as usize];
    for member in &assembled.members {
        let Some(role) = member.role else { continue };
        let up_to = match member.state {
            MemberState::InSync => u64::MAX,
            MemberState::Recovering(done) if !member.by_bitmap => done.get(),
            _ => 0,
        };
        holders[role.index()].push((number(&member.label), up_to));
    }
    holders
}

/// The assembled members' images as an array.
pub fn view<'a>(assembled: &Assembled, images: &'a [Option<Image>]) -> View<'a> {
    let data_offset = assembled.superblock.data_offset as usize;
    let by_role = holders(assembled).into_iter().map(|role| {
        let holder = |(disk, up_to): (usize, u64)| {
            let image = images[disk].as_ref()?;
            Some(Holder { image, data_offset, up_to })
        };
        role.into_iter().filter_map(holder).collect()
    });
    View::new(layout(assembled), by_role.collect())
}

/// Parameters of a running array, beside its members.
pub struct Frame<'a> {
    /// The simulation.
    pub handle: &'a Handle,
    /// Seconds since 1970 at its start.
    pub unix_start: Duration,
    /// Speed of passes.
    pub speed: Speed,
    /// Nonce of the log.
    pub nonce: u64,
}

/// The array, over `disks` by their numbers.
///
/// # Panics
/// If there is no memory.
pub fn build(assembled: &Assembled, frame: &Frame<'_>, disks: &[SimDisk]) -> Redundant {
    build_on(assembled, frame, |disk| tidy(disks[disk].clone()))
}

/// The same, over what `open` makes of a disk's number.
pub(crate) fn build_on(
    assembled: &Assembled,
    frame: &Frame<'_>,
    open: impl Fn(usize) -> Dev,
) -> Redundant {
    build_nested(assembled, frame, Front::default(), open).0
}

/// The same with the device that `front` makes of it.
pub(crate) fn build_nested(
    assembled: &Assembled,
    frame: &Frame<'_>,
    front: Front,
    open: impl Fn(usize) -> Dev,
) -> (Redundant, Dev) {
    let part = front.before(assembled);
    let bed = Bed { frame, open, home: RefCell::default() };
    let mut wired = wire(&part, &bed).expect("memory");
    (wired.arrays.pop().expect("an array that survives losses").array, wired.dev)
}

/// The array as a shard has it that it does not live on; `home` is the way to it.
pub(crate) fn build_branch(
    assembled: &Assembled,
    frame: &Frame<'_>,
    home: Box<dyn Home>,
    open: impl Fn(usize) -> Dev,
) -> Branch {
    let part = Front::default().before(assembled);
    let bed = Bed { frame, open, home: RefCell::new(Some(home)) };
    wire(&part, &bed).expect("memory").branches.pop().expect("an array that survives losses")
}

/// The ground of an array over disks by their numbers.
struct Bed<'a, F> {
    frame: &'a Frame<'a>,
    open: F,
    /// The way to the array, if it lives on another shard.
    home: RefCell<Option<Box<dyn Home>>>,
}

impl<'s, F: Fn(usize) -> Dev> Ground for Bed<'s, F> {
    type Leaf = Infallible;
    type Md = &'s Assembled;
    type Cache = ();

    fn leaf(&self, leaf: &Infallible) -> io::Result<Dev> {
        match *leaf {}
    }

    fn label(&self, leaf: &Infallible, _role: usize) -> String {
        match *leaf {}
    }

    fn described<'a>(&self, assembled: &'a &'s Assembled) -> io::Result<Described<'a>> {
        let devs = assembled.members.iter().map(|member| (self.open)(number(&member.label)));
        Ok(Described { assembled, devs: devs.collect() })
    }

    fn nonce(&self) -> io::Result<u64> {
        Ok(self.frame.nonce)
    }

    fn write_back(
        &self,
        (): &(),
        _origin: &Dev,
        _log: Option<Dev>,
    ) -> io::Result<Option<WriteBackConfig>> {
        Ok(None)
    }

    fn clock(&self) -> Rc<dyn Clock> {
        let Frame { handle, unix_start, .. } = *self.frame;
        Rc::new(SimClock { handle: handle.clone(), unix_start })
    }

    fn home(&self, _: usize) -> Option<Box<dyn Home>> {
        self.home.take()
    }

    fn adjust(&self, setup: &mut Setup) {
        setup.stripe_cache = 1 << 20;
        setup.speed = self.frame.speed;
    }
}

/// A disk as members are opened: see [`Tidy`].
pub fn tidy(disk: impl Device + 'static) -> Dev {
    Dev::new(Tidy(Dev::new(disk)))
}

/// A disk on which discarded blocks stay as they are, so that discards leave equal copies equal:
/// md makes no promise for them.
struct Tidy(Dev);

impl Device for Tidy {
    fn limits(&self) -> Limits {
        *self.0.limits()
    }

    fn start(&self, io: Io) -> Pending {
        match io.op {
            Op::Discard => Pending::ready(io.complete(Ok(()))),
            _ => self.0.start(io),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.0.extents(span)
    }
}

/// A clock that stands: nothing that waits goes on, so an array's own work is not done.
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::pending())
    }
}

/// The simulation's clock.
pub struct SimClock {
    /// Whose.
    pub handle: Handle,
    /// Since 1970, at the simulation's start.
    pub unix_start: Duration,
}

impl Clock for SimClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.handle.now())
    }

    fn unix_time(&self) -> Duration {
        self.handle.clock_for(self.unix_start + self.now())
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.sleep(duration.as_nanos() as u64).await })
    }
}

impl Tasks for SimClock {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()>>>) {
        self.handle.spawn("a device", task);
    }
}

/// Something that went wrong, told once; clones are the same.
#[derive(Clone, Default)]
pub struct Trouble {
    first: Rc<RefCell<Option<String>>>,
}

impl Trouble {
    /// Takes note, unless something was wrong before, and stops the simulation.
    pub fn tell(&self, handle: &Handle, what: impl Into<String>) {
        self.first.borrow_mut().get_or_insert_with(|| what.into());
        handle.halt();
    }

    /// As [`Trouble::tell`] of an error.
    pub fn note<T>(&self, handle: &Handle, result: Result<T, String>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(what) => {
                self.tell(handle, what);
                None
            }
        }
    }

    /// Reports the first fault.
    ///
    /// # Errors
    /// It.
    pub fn check(&self) -> Result<(), String> {
        match &*self.first.borrow() {
            None => Ok(()),
            Some(what) => Err(what.clone()),
        }
    }
}
