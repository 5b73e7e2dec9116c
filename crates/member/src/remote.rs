//! Exports of NBD servers.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use braid_block::Limits;
use braid_device::{Access, Metered};
use braid_engine::Dev;
use braid_nbd::uri::Uri;
use braid_remote::{Address, Config, Dial, Direct, Offer, RemoteDevice, Traffic, Unfit};
use braid_stack::Nbd;
use braid_uring::{ExecutorClock, Failures};

use crate::kind::{Kind, MemberError, OnShard};

/// The longest wait for a server at the opening.
const PATIENCE: Duration = Duration::from_secs(5);

/// An export of an NBD server.
pub struct Remote {
    nbd: Nbd,
    uri: Uri,
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
        let uri: Uri = nbd.uri.parse().map_err(|error| failed(format!("{error}")))?;
        let address = Address(uri.socket.clone());
        let limit = PATIENCE.min(nbd.deadline.duration());
        let direct = Direct::connect(&address, &uri.export, limit);
        let direct = direct.map_err(|error| failed(error.to_string()))?;
        let offer = *direct.offer();
        let read_only = access == Access::ReadOnly;
        if !read_only {
            match offer.check_writable(nbd.may_lack_flush) {
                Ok(()) => {}
                Err(Unfit::ReadOnly) => {
                    return Err(MemberError::RemoteReadOnly { uri: nbd.uri.clone() });
                }
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        Ok(Remote {
            nbd: nbd.clone(),
            uri,
            offer,
            read_only,
            direct: Mutex::new(Some(direct)),
            traffic: Arc::default(),
            failures: Arc::default(),
        })
    }

    /// Calls `with` for a connection of this thread; makes one if there is none.
    fn directly<T>(&self, with: impl FnOnce(&mut Direct) -> io::Result<T>) -> io::Result<T> {
        let mut direct = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match direct.take() {
            Some(connection) => connection,
            None => {
                let address = Address(self.uri.socket.clone());
                Direct::connect(&address, &self.uri.export, PATIENCE).map_err(io::Error::other)?
            }
        };
        let result = with(&mut connection)?;
        // A connection that failed is in an unknown state, and is not used again.
        *direct = Some(connection);
        Ok(result)
    }

    /// Writes whole blocks at `offset`, in the call, and makes them durable.
    ///
    /// # Errors
    /// Parts of blocks; the server's error; the connection failed.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.directly(|direct| {
            direct.write_at(offset, bytes)?;
            direct.flush()
        })
    }
}

impl Kind for Remote {
    fn limits(&self) -> Limits {
        self.offer.limits(self.read_only)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.directly(|direct| direct.read_at(offset, bytes))
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        // Servers that take one connection only have to see the end of this one first.
        self.direct.lock().unwrap_or_else(PoisonError::into_inner).take();
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        let config = Config {
            export: self.uri.export.clone(),
            offer: self.offer,
            connections: self.nbd.connections,
            deadline: self.nbd.deadline.duration(),
            read_only: self.read_only,
            traffic: Arc::clone(&self.traffic),
            failures: Arc::clone(&self.failures),
        };
        let address = Address(self.uri.socket.clone());
        let dial = Dial { handle: shard.handle.clone(), address };
        let device = RemoteDevice::new(config, dial, tasks.clone(), shard.pool.clone());
        // The session itself keeps the deadline: it knows whether a request was sent.
        Ok(Dev::new(Metered::new(device, shard.label, shard.tally, tasks, None)))
    }

    fn path(&self, label: &str) -> Option<String> {
        Some(label.to_owned())
    }

    fn is_at(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| path == self.nbd.uri)
    }

    fn failures(&self) -> Option<&Arc<Failures>> {
        Some(&self.failures)
    }

    fn traffic(&self) -> Option<&Arc<Traffic>> {
        Some(&self.traffic)
    }
}
