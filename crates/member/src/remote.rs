//! Exports of NBD servers.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use braid_block::{Limits, Span};
use braid_device::{Access, Metered};
use braid_engine::Dev;
use braid_engine::decorators::Slice;
use braid_nbd::uri::Uri;
use braid_probe::{ReadAt, Signature, scan_signatures};
use braid_remote::{Address, Config, Dial, Direct, Offer, RemoteDevice, Traffic, Unfit};
use braid_stack::{Nbd, Stack};
use braid_uring::{ExecutorClock, Failures};

use crate::kind::{Kind, MemberError, OnShard};

/// The longest wait for a server at the opening.
const PATIENCE: Duration = Duration::from_secs(5);

/// An export of an NBD server; clones are the same member.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
    /// The part of it that is used; `None` for all.
    window: Option<Span>,
}

struct Shared {
    nbd: Nbd,
    address: Address,
    export: String,
    offer: Offer,
    read_only: bool,
    /// The connection that the export was examined by, until the member is at work.
    direct: Mutex<Option<Direct>>,
    traffic: Arc<Traffic>,
    failures: Arc<Failures>,
}

impl Remote {
    /// Connects to the export that `nbd` names, and examines what the server offers.
    ///
    /// # Errors
    /// [`MemberError::Remote`]: the server cannot be reached, or its export is no member.
    pub fn open(nbd: &Nbd, access: Access) -> Result<Remote, MemberError> {
        let failed = |why: String| MemberError::Remote { uri: nbd.uri.clone(), why };
        let parsed = Uri::parse_with_tls(&nbd.uri).map_err(|error| failed(error.to_string()));
        let (Uri { socket: place, export }, tls) = parsed?;
        let address = Address { place, tls };
        let limit = PATIENCE.min(nbd.deadline.duration());
        let direct = Direct::connect(&address, &export, limit);
        let direct = direct.map_err(|error| failed(error.to_string()))?;
        let offer = *direct.offer();
        let read_only = access == Access::ReadOnly;
        if !read_only {
            match offer.check_writable(nbd.may_lack_flush) {
                Ok(()) => {}
                Err(Unfit::ReadOnly) => {
                    let why = "its server refuses every change";
                    return Err(MemberError::RemoteReadOnly { uri: nbd.uri.clone(), why });
                }
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        let shared = Shared {
            nbd: nbd.clone(),
            address,
            export,
            offer,
            read_only,
            direct: Mutex::new(Some(direct)),
            traffic: Arc::default(),
            failures: Arc::default(),
        };
        Ok(Remote { shared: Arc::new(shared), window: None })
    }

    /// Returns `length` bytes from `offset` on (all that follow, if `None`).
    ///
    /// # Errors
    /// `InvalidInput` if the part is empty, unaligned or past the end.
    pub fn part(&self, offset: u64, length: Option<u64>) -> io::Result<Remote> {
        let limits = self.shared.offer.limits(self.shared.read_only);
        let window = window(&limits, offset, length)?;
        Ok(Remote { shared: Arc::clone(&self.shared), window })
    }

    /// Returns the signatures of file systems, partition tables and the like on the export.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn signatures(&self) -> io::Result<Vec<Signature>> {
        scan_signatures(self)
    }

    /// Calls `with` for a connection of this thread; makes one if there is none.
    fn directly<T>(&self, with: impl FnOnce(&mut Direct) -> io::Result<T>) -> io::Result<T> {
        let mut direct = self.shared.direct.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match direct.take() {
            Some(connection) => connection,
            None => {
                let Shared { address, export, offer, .. } = &*self.shared;
                let direct =
                    Direct::connect(address, export, PATIENCE).map_err(io::Error::other)?;
                offer.check_again(direct.offer()).map_err(io::Error::other)?;
                direct
            }
        };
        let result = with(&mut connection)?;
        // A connection that failed is in an unknown state, and is not used again.
        *direct = Some(connection);
        Ok(result)
    }
}

/// Returns the part of a member of `limits` that has `length` bytes (all that follow, if `None`) from `offset` on; `None`
/// for the whole.
pub(crate) fn window(
    limits: &Limits,
    offset: u64,
    length: Option<u64>,
) -> io::Result<Option<Span>> {
    if (offset, length) == (0, None) {
        return Ok(None);
    }
    let block = u64::from(limits.logical_block);
    let left = limits.size.checked_sub(offset).ok_or(io::ErrorKind::InvalidInput)?;
    let span = Span::new(offset, length.unwrap_or(left) / block * block);
    if span.is_empty() || !span.is_within(limits.size) || !offset.is_multiple_of(block) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(Some(span))
}

impl Kind for Remote {
    fn limits(&self) -> Limits {
        let limits = self.shared.offer.limits(self.shared.read_only);
        self.window.map_or(limits, |span| Slice::limits(limits, span))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = self.window.map_or(0, |span| span.offset);
        self.directly(|direct| direct.read_at(start + offset, bytes))
    }

    /// The rest of the blocks that `bytes` begin and end in is written with them as it was.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = offset + self.window.map_or(0, |span| span.offset);
        let block = u64::from(self.shared.offer.block);
        let size = self.shared.offer.size;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= size);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        let start = offset / block * block;
        let mut whole = vec![0; (end.next_multiple_of(block) - start) as usize];
        self.directly(|direct| {
            direct.read_at(start, &mut whole)?;
            let at = (offset - start) as usize;
            whole[at..at + bytes.len()].copy_from_slice(bytes);
            direct.write_at(start, &whole)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.directly(Direct::flush)
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        // Servers that take one connection only have to see the end of this one first.
        self.shared.direct.lock().unwrap_or_else(PoisonError::into_inner).take();
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        let config = Config {
            export: self.shared.export.clone(),
            offer: self.shared.offer,
            connections: self.shared.nbd.connections,
            deadline: self.shared.nbd.deadline.duration(),
            read_only: self.shared.read_only,
            traffic: Arc::clone(&self.shared.traffic),
            failures: Arc::clone(&self.shared.failures),
        };
        let address = self.shared.address.clone();
        let dial = Dial { handle: shard.handle.clone(), address };
        let device = RemoteDevice::new(config, dial, tasks.clone(), shard.pool.clone());
        // The session itself keeps the deadline: it knows whether a request was sent.
        let dev = Dev::new(Metered::new(device, shard.label, shard.tally, tasks, None));
        Ok(self.window.map_or(dev.clone(), |span| Dev::new(Slice::new(dev, span))))
    }

    fn path(&self, label: &str) -> Option<String> {
        Some(label.to_owned())
    }

    fn is_at(&self, path: &Path) -> bool {
        Stack::remote_called(path)
            .is_some_and(|one| one.remote_identity().as_deref() == Some(&self.shared.nbd.uri))
    }

    fn failures(&self) -> Option<&Arc<Failures>> {
        Some(&self.shared.failures)
    }

    fn traffic(&self) -> Option<&Arc<Traffic>> {
        Some(&self.shared.traffic)
    }
}

impl ReadAt for Remote {
    fn size(&self) -> u64 {
        self.shared.offer.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.shared.offer.size.saturating_sub(offset);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.directly(|direct| direct.read_at(offset, &mut buffer[..len]))?;
        Ok(len)
    }
}
