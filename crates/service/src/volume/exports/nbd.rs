//! The volume over NBD, on Unix sockets and TCP: a server on each shard. The first shard accepts connections and deals
//! each out to the shard with the fewest.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use braid_device::Tally;
use braid_export_nbd::{
    Address, Bounds, Counters, Counts, End, Listener, Overlaps, Protection, Rights, Security,
    Server, Visitor,
};
use braid_uring::{Fd, Handle, Remote};

use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Counters as _, ExportStatus};
use crate::volume::error::{ExportError, RunError, system};
use crate::volume::shard::{Local, Shard, call};
use crate::volume::sides::Side;
use crate::volume::spec::Spec;
use crate::volume::warnings::Warning;

/// A killed process leaves sockets, which the next one recognises as stale.
pub(super) const KIND: Kind = Kind { prepare, clear_left: |_, _| Ok(None), takes_over: |_| false };

struct Nbd {
    listeners: Mutex<Vec<Listener>>,
    uris: Vec<String>,
    /// Rights of listed users.
    users: Vec<String>,
    /// TLS, if it is used.
    security: Option<Security>,
    /// The servers, one for each shard.
    counters: OnceLock<Vec<Arc<Counters>>>,
    /// Latencies of client requests.
    asked: Tally,
}

fn prepare(spec: &Spec, warnings: &mut Vec<Warning>) -> Prepared {
    if spec.nbd.is_empty() {
        return Ok(None);
    }
    let security = spec.tls.security()?;
    let protection = |address: &Address| address.protection(security.as_ref());
    let listen = |text: &String| {
        let address = text.parse::<Address>()?;
        let is_encrypted = protection(&address) != Protection::None;
        Ok(address.listen(spec.insecure || is_encrypted)?)
    };
    let listeners = spec.nbd.iter().map(listen).collect::<Result<Vec<Listener>, RunError>>()?;
    let addresses = || listeners.iter().map(Listener::address);
    let risks = addresses().filter_map(|one| one.risk(spec.read_only, protection(one)));
    warnings.extend(risks.map(Warning::lasting));
    let uris = addresses().map(|one| one.uri(protection(one))).collect();
    let users = addresses().flat_map(Address::users).collect();
    let (counters, asked) = (OnceLock::new(), Tally::default());
    let listeners = Mutex::new(listeners);
    Ok(Some(Box::new(Nbd { listeners, uris, users, security, counters, asked })))
}

impl Nbd {
    fn counts(&self) -> Counts {
        let shards = self.counters.get().into_iter().flatten();
        shards.fold(Counts::default(), |sum, shard| sum.plus(shard.read()))
    }

    /// Clients that are connected now.
    fn connections(&self) -> u64 {
        self.counts().connections()
    }
}

impl Export for Nbd {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        if let Some(security) = &self.security {
            let followed = crate::volume::tls::follow(&security.certificates);
            followed.map_err(system("cannot follow the certificates"))?;
        }
        let overlaps = Overlaps::default();
        // A quarter of the memory is left for short requests.
        let payload = on.budget.pool / 4 * 3;
        // Half of the files are for members and for what else the volume opens.
        let files =
            braid_sys::process::raise_open_files().map_err(system("cannot raise a limit"))?;
        let files = usize::try_from(files).unwrap_or(usize::MAX) / 2 / on.shards.len();
        let connections = on.budget.connections.min(files).max(1);
        let serve = |shard: &Shard| {
            let (name, overlaps) = (on.spec.name.clone(), overlaps.clone());
            let (asked, security) = (self.asked.clone(), self.security.clone());
            shard.ask(move |handle, local| {
                let (offered, pool) = (local.offered(handle, &asked), local.pool.clone());
                let bounds = Bounds { connections, payload, ..Bounds::default() };
                let ends = ends();
                let server = Server::new(handle, offered, pool, &name, bounds, &overlaps, ends)?;
                security.map_or(Ok(()), |security| server.secure(security))?;
                let counters = server.counters();
                local.sides.add(server);
                Ok(counters)
            })?
        };
        let counters = on.shards.iter().map(serve).collect::<io::Result<Vec<_>>>();
        let counters = counters.map_err(system("cannot serve over NBD"))?;
        let remotes = on.shards.iter().map(|shard| shard.facts.remote.clone());
        let places = remotes.zip(&counters).map(Place::new).collect::<Arc<[Place]>>();
        // Once in a life.
        let _ = self.counters.set(counters);
        for listener in &*self.listeners.lock().unwrap_or_else(PoisonError::into_inner) {
            let fd = listener.try_clone_fd().map_err(system("cannot accept connections"))?;
            let places = Arc::clone(&places);
            let rights = listener.rights().clone();
            on.shards[0].call(move |handle, local| accept(handle, local, (fd, rights), places));
        }
        Ok(Vec::new())
    }

    fn status(&self) -> ExportStatus {
        let counts = self.counts();
        ExportStatus {
            kind: "nbd".to_owned(),
            address: self.uris[0].clone(),
            uris: self.uris.clone(),
            users: self.users.clone(),
            tls: self.security.as_ref().map(crate::volume::tls::status_of),
            connections: counts.connections(),
            counts,
            io: self.asked.read().into(),
            ..ExportStatus::default()
        }
    }

    fn is_device(&self) -> bool {
        false
    }

    fn users(&self) -> Result<Vec<String>, ExportError> {
        Ok(match self.connections() {
            0 => Vec::new(),
            1 => vec!["an NBD client is connected".to_owned()],
            count => vec![format!("{count} NBD clients are connected")],
        })
    }

    /// A client is told of the size, and of whether it may write, when it connects.
    fn follow(&self, change: Change) -> io::Result<Option<String>> {
        let is_told = matches!(change, Change::Size(_)) && self.connections() > 0;
        let text = "NBD clients that are connected see that when they connect again";
        Ok(is_told.then(|| text.to_owned()))
    }

    /// Clients do not keep a volume from going down.
    fn check_unused(&self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Closes the listeners; shards that stop answer what is under way.
    fn take_down(&self, _: bool) -> Result<(), ExportError> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

impl Side for Server {
    fn stop(&self) {
        Server::stop(self);
    }

    fn clients(&self) -> usize {
        self.open_connections()
    }
}

/// Logs connections that ended badly: the first, and then ever fewer, so that clients do not fill the log. A status
/// counts all of them.
pub(super) fn ends() -> impl Fn(&End) + 'static {
    let bad = Cell::new(0u64);
    move |end| {
        if !end.is_protocol_error() && !matches!(end, End::Idle) {
            return;
        }
        bad.set(bad.get() + 1);
        match bad.get() {
            1 => eprintln!("nbd: {end}"),
            count if count.is_power_of_two() => {
                eprintln!("nbd: {end} (the {count}th connection that ended so or alike)");
            }
            _ => {}
        }
    }
}

/// A shard, as connections are dealt out to it.
struct Place {
    remote: Remote,
    counters: Arc<Counters>,
    /// Connections that it was given, less those that it gave on.
    given: AtomicU64,
}

impl Place {
    fn new((remote, counters): (Remote, &Arc<Counters>)) -> Place {
        Place { remote, counters: Arc::clone(counters), given: AtomicU64::new(0) }
    }

    /// Connections that it has, or is about to have.
    fn load(&self) -> u64 {
        let counts = self.counters.read();
        // The refused have ended, too; users without rights were not given.
        self.given.load(Ordering::Relaxed).saturating_sub(counts.connections_ended)
    }
}

/// Accepts connections on `listener` and deals each out to the shard with the fewest; of equal ones to the first, on
/// which arrays with redundancy live.
fn accept(
    handle: &Handle,
    local: &Local,
    (listener, rights): (OwnedFd, Rights),
    places: Arc<[Place]>,
) {
    let Some(server) = local.sides.get::<Server>() else { return };
    let listener = Fd::new(listener);
    handle.spawn(async move {
        let place = |fd: OwnedFd, visitor: Visitor| {
            let loads = places.iter().map(Place::load).enumerate();
            let index = loads.min_by_key(|(_, load)| *load).map_or(0, |(index, _)| index);
            places[index].given.fetch_add(1, Ordering::Relaxed);
            let all = Arc::clone(&places);
            call(&places[index].remote, move |_, local| match local.following.first() {
                None => connect(local, fd, visitor),
                Some(first) => {
                    all[index].given.fetch_sub(1, Ordering::Relaxed);
                    all[0].given.fetch_add(1, Ordering::Relaxed);
                    call(&first, move |_, local| connect(local, fd, visitor));
                }
            });
        };
        if let Err(error) = server.accept(&listener, &rights, place).await {
            eprintln!("nbd: no more connections are accepted: {error}");
        }
    });
}

fn connect(local: &Local, fd: OwnedFd, visitor: Visitor) {
    if let Some(server) = local.sides.get::<Server>() {
        server.connect(fd, visitor);
    }
}
