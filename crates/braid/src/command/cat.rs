//! `braid cat`: a volume's content on standard output. Nothing is written, and root is not needed.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

use braid_block::Io;
use braid_engine::{Dev, Pending};
use braid_mem::Pool;
use braid_stack::Stack;
use braid_uring::{Config, Executor};

use super::stacks;
use crate::cli::Cat;
use braid_service::failure::{Context, Failure, FailureKind};
use braid_service::membership::Membership;
use braid_service::places::{Places, check_name};
use braid_service::record::Record;
use braid_service::refusal::said;
use braid_service::volume::{Built, IoMode, Media, OpenOptions, admit, build};

/// Bytes of a read.
const STEP: u64 = 1 << 20;
/// Reads under way.
const UNDER_WAY: usize = 8;
/// Memory for them, and for what the levels need besides.
const POOL: usize = 32 << 20;

/// A stack that is open for reading, and what carries its reads out.
pub(super) struct Opened {
    pub(super) built: Built,
    pub(super) pool: Pool,
    pub(super) executor: Rc<Executor>,
    /// The members.
    media: Media,
}

impl Opened {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// The volume has no such bytes, or they cannot be read.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        // Members are read in their blocks; the volume ends with one.
        let block = u64::from(self.built.dev.limits().logical_block);
        let first = offset / block * block;
        let len = (offset + bytes.len() as u64).next_multiple_of(block) - first;
        let (dev, pool) = (self.built.dev.clone(), self.pool.clone());
        let completion = self.executor.block_on(async move {
            let memory = pool.get_wait(len as usize).await;
            dev.start(Io::read(first, memory)).await
        });
        completion.result.map_err(io::Error::from)?;
        let from = (offset - first) as usize;
        bytes.copy_from_slice(&completion.payload.to_vec()[from..from + bytes.len()]);
        Ok(())
    }
}

impl braid_probe::ReadAt for Opened {
    fn size(&self) -> u64 {
        self.built.dev.limits().size
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let size = braid_probe::ReadAt::size(self);
        let count = size.saturating_sub(offset).min(bytes.len() as u64) as usize;
        if count > 0 {
            self.read(offset, &mut bytes[..count])?;
        }
        Ok(count)
    }
}

impl braid_files::ReadAt for Opened {
    fn size(&self) -> u64 {
        self.built.dev.limits().size
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read(offset, bytes)
    }
}

pub(super) fn cat(cat: &Cat) -> Result<(), Failure> {
    let opened = open(&cat.stack, cat.io)?;
    let range = range(cat, opened.built.dev.limits().size)?;
    opened.executor.block_on(copy(opened.built.dev.clone(), opened.pool.clone(), range))
}

/// Opens a stack as it is typed, or that of the volume with this name, for reading. Prints warnings.
pub(super) fn open(text: &str, io: IoMode) -> Result<Opened, Failure> {
    let opened = open_stack(&stack(text)?, io)?;
    let warnings = opened.media.warnings().into_iter();
    warnings.for_each(|warning| eprintln!("braid: warning: {}", warning.text));
    Ok(opened)
}

/// Opens a stack for reading.
pub(super) fn open_stack(stack: &Stack, io: IoMode) -> Result<Opened, Failure> {
    open_on(&executor(io)?, stack)
}

/// Starts the executor of this thread, which has one at a time.
pub(super) fn executor(io: IoMode) -> Result<Rc<Executor>, Failure> {
    let config = Config { mode: io.executor_mode(), ..Config::default() };
    Executor::new(config).context("cannot start").map(Rc::new)
}

/// Opens a stack for reading by this executor.
pub(super) fn open_on(executor: &Rc<Executor>, stack: &Stack) -> Result<Opened, Failure> {
    open_as(executor, stack, true)
}

/// Opens a stack of which a `cow` is the root, so that its store is all that is written.
pub(super) fn open_overlay(stack: &Stack) -> Result<Opened, Failure> {
    open_as(&executor(IoMode::Auto)?, stack, false)
}

fn open_as(executor: &Rc<Executor>, stack: &Stack, read_only: bool) -> Result<Opened, Failure> {
    let mut options = OpenOptions { read_only, degraded: true, ..OpenOptions::default() };
    options.unusable = admit(stack, &[], &options).map_err(|refusal| said(&refusal))?;
    let failed = |failure: Failure| Failure { kind: FailureKind::Failed, ..failure };
    let media = Media::open(stack, &options).map_err(|error| failed(error.failure()))?;
    let handle = executor.handle();
    let pool = Pool::new(POOL).context("no memory")?;
    let built = build(&media, &handle, read_only, None).context("cannot open the members")?;
    Ok(Opened { built, pool, executor: Rc::clone(executor), media })
}

/// A stack as it is typed, or that of the volume with this name.
fn stack(text: &str) -> Result<Stack, Failure> {
    let config = Places::from_environment().config_file(text);
    match check_name(text).is_ok() && config.exists() {
        true => {
            let record = Record::read(&config)?;
            let members = Membership::of(&record);
            members.notes().iter().for_each(|note| eprintln!("braid: warning: {note}"));
            if !members.changed.is_empty() {
                let changes = members.changes_in_words();
                eprintln!(
                    "braid: warning: the members are not what {text} was last up with:{changes}"
                );
            }
            Ok(members.resolve(&record.stack))
        }
        false => stacks::parse_for(text, true),
    }
}

/// The bytes that are asked for: from, to.
fn range(cat: &Cat, size: u64) -> Result<(u64, u64), Failure> {
    let from = cat.offset.bytes();
    let to = cat.length.map_or(Some(size), |length| from.checked_add(length.bytes()));
    match to {
        Some(to) if from <= to && to <= size => Ok((from, to)),
        _ => Err(Failure::usage(format!(
            "the volume has {size} bytes, which is less than what --offset and --length ask for"
        ))),
    }
}

/// Reads in order, some ahead, and writes what has come.
async fn copy(dev: Dev, pool: Pool, (from, to): (u64, u64)) -> Result<(), Failure> {
    let block = u64::from(dev.limits().logical_block);
    let mut reads: VecDeque<(u64, Pending)> = VecDeque::new();
    let mut next = from / block * block;
    let mut out = io::stdout().lock();
    loop {
        while reads.len() < UNDER_WAY && next < to {
            let len = STEP.min(to.next_multiple_of(block) - next);
            let buf = match pool.get(len as usize) {
                Some(buf) => buf,
                None if reads.is_empty() => pool.get_wait(len as usize).await,
                None => break,
            };
            reads.push_back((next, dev.start(Io::read(next, buf))));
            next += len;
        }
        let Some((offset, read)) = reads.pop_front() else { break };
        let completion = read.await;
        completion
            .result
            .map_err(io::Error::from)
            .context(format_args!("cannot read the volume at {offset}"))?;
        let bytes = completion.payload.to_vec();
        let first = from.saturating_sub(offset) as usize;
        let last = (to - offset).min(bytes.len() as u64) as usize;
        if let Err(error) = out.write_all(&bytes[first..last]) {
            return end_of_output(error);
        }
    }
    match out.flush() {
        Ok(()) => Ok(()),
        Err(error) => end_of_output(error),
    }
}

/// A closed pipe is not an error: its reader has enough.
fn end_of_output(error: io::Error) -> Result<(), Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error).context("standard output"),
    }
}
