//! Images of a Ceph cluster.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Limits, Span};
use braid_device::{Access, Deadline, Metered};
use braid_engine::Dev;
use braid_engine::decorators::Slice;
use braid_probe::{ReadAt, Signature, scan_signatures};
use braid_rbd::{CephQueue, Image, RbdDevice, Source};
use braid_stack::{Node, Rbd, Stack};
use braid_uring::{ExecutorClock, Failures};

use crate::kind::{Kind, MemberError, OnShard};
use crate::remote::window;

/// An image of a Ceph cluster; clones are the same member.
#[derive(Clone)]
pub struct Ceph {
    image: Arc<Image>,
    rbd: Arc<Rbd>,
    failures: Arc<Failures>,
    /// The part of it that is used; `None` for all.
    window: Option<Span>,
}

impl Ceph {
    /// Opens the image that `rbd` names. To be written, it is locked.
    ///
    /// # Errors
    /// [`MemberError::Rbd`]: the cluster does not answer, or the image is not to be had. [`MemberError::RemoteReadOnly`] for a
    /// snapshot that is to be written.
    pub fn open(rbd: &Rbd, access: Access) -> Result<Ceph, MemberError> {
        let is_read = access == Access::ReadOnly;
        if rbd.snapshot.is_some() && !is_read {
            let (uri, why) = (format!("rbd({})", rbd.name()), "it is a snapshot");
            return Err(MemberError::RemoteReadOnly { uri, why });
        }
        let source = Source {
            pool: rbd.pool.clone(),
            namespace: rbd.namespace.clone(),
            image: rbd.image.clone(),
            snapshot: rbd.snapshot.clone(),
            conf: rbd.conf.clone(),
            id: rbd.id.clone(),
        };
        let image = Image::open(&source, is_read, rbd.deadline.duration());
        let image = image.map_err(|error| MemberError::Rbd { name: source.name(), error })?;
        let (image, rbd) = (Arc::new(image), Arc::new(rbd.clone()));
        Ok(Ceph { image, rbd, failures: Arc::default(), window: None })
    }

    /// Returns `length` bytes from `offset` on (all that follow, if `None`).
    ///
    /// # Errors
    /// `InvalidInput` if the part is empty, unaligned or past the end.
    pub fn part(&self, offset: u64, length: Option<u64>) -> io::Result<Ceph> {
        let window = window(&self.image.limits(), offset, length)?;
        Ok(Ceph { window, ..self.clone() })
    }

    /// Returns the signatures of file systems, partition tables and the like on the image.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn signatures(&self) -> io::Result<Vec<Signature>> {
        scan_signatures(self)
    }
}

impl Kind for Ceph {
    fn limits(&self) -> Limits {
        let limits = self.image.limits();
        self.window.map_or(limits, |span| Slice::limits(limits, span))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = self.window.map_or(0, |span| span.offset);
        self.image.read_at(start + offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = self.window.map_or(0, |span| span.offset);
        let end = (start + offset).checked_add(bytes.len() as u64);
        end.filter(|end| *end <= self.image.limits().size).ok_or(io::ErrorKind::InvalidInput)?;
        self.image.write_at(start + offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.image.flush()
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        let queue = CephQueue::new(Arc::clone(&self.image));
        let failures = Arc::clone(&self.failures);
        let device = RbdDevice::new(queue, self.image.limits(), failures, shard.handle)?;
        let (limit, failures) = (self.rbd.deadline.duration(), Arc::clone(&self.failures));
        let deadline = Some(Deadline { limit, failures });
        let dev = Dev::new(Metered::new(device, shard.label, shard.tally, tasks, deadline));
        Ok(self.window.map_or(dev.clone(), |span| Dev::new(Slice::new(dev, span))))
    }

    fn path(&self, label: &str) -> Option<String> {
        Some(label.to_owned())
    }

    fn is_at(&self, path: &Path) -> bool {
        let own = Stack::from(Node::Rbd((*self.rbd).clone()));
        Stack::remote_called(path).is_some_and(|one| one.remote_identity() == own.remote_identity())
    }

    fn vanished(&self) -> Option<&'static str> {
        self.image.vanished()
    }

    fn failures(&self) -> Option<&Arc<Failures>> {
        Some(&self.failures)
    }

    fn release(&self) {
        self.image.unlock();
    }

    fn is_on_one_shard(&self) -> bool {
        true
    }
}

impl ReadAt for Ceph {
    fn size(&self) -> u64 {
        self.image.limits().size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.image.limits().size.saturating_sub(offset);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.image.read_at(offset, &mut buffer[..len])?;
        Ok(len)
    }
}
