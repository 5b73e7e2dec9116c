//! The volume as a disk of a virtual machine, over vhost-user-blk: a socket for the machine's program, and a server of
//! queues on each shard.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use braid_device::Tally;
use braid_export_nbd::{Address, Listener, Users};
use braid_export_vhost::{Counters, Counts, End, Export as Disk, ForServer, OnShard, Server};
use braid_uring::Remote;

use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Counters as _, ExportStatus};
use crate::volume::error::{ExportError, RunError, system};
use crate::volume::shard::{Local, Shard, ask, call};
use crate::volume::sides::Side;
use crate::volume::spec::Spec;
use crate::volume::warnings::Warning;

/// A killed process leaves its socket, which the next one recognises as stale.
pub(super) const KIND: Kind = Kind { prepare, clear_left: |_, _| Ok(None), takes_over: |_| false };

struct Vhost {
    listener: Mutex<Option<Listener>>,
    /// The path of the socket.
    path: String,
    served: OnceLock<Served>,
    /// Latencies of the machine's requests.
    asked: Tally,
}

/// The parts of an export that was started.
struct Served {
    disk: Disk,
    /// Counts of each shard.
    counters: Vec<Arc<Counters>>,
    first: Remote,
}

fn prepare(spec: &Spec, _: &mut Vec<Warning>) -> Prepared {
    let Some(path) = &spec.vhost else { return Ok(None) };
    // Open to its owner alone.
    let listener = Address::Unix(path.clone(), Users::default()).listen(false)?;
    let path = path.display().to_string();
    let listener = Mutex::new(Some(listener));
    let (served, asked) = (OnceLock::new(), Tally::default());
    Ok(Some(Box::new(Vhost { listener, path, served, asked })))
}

impl Vhost {
    fn counts(&self) -> Counts {
        let Some(served) = self.served.get() else { return Counts::default() };
        let shards = served.counters.iter().map(|shard| shard.read());
        shards.fold(served.disk.counts(), |sum, shard| sum.plus(shard))
    }

    fn serve(&self, on: &Start<'_>) -> io::Result<()> {
        let add = |shard: &Shard| {
            let asked = self.asked.clone();
            shard.ask(move |handle, local| {
                let server = Server::new(handle, local.offered(handle, &asked), local.pool.clone());
                let counters = server.counters();
                local.sides.add(server);
                counters
            })
        };
        let counters = on.shards.iter().map(add).collect::<io::Result<Vec<_>>>()?;
        let shards = on.shards.iter().map(|shard| on_shard(shard.facts.remote.clone())).collect();
        let disk = Disk::new(on.limits, &on.spec.name, shards, log_end)?;
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*listener {
            disk.start(listener.try_clone_fd()?)?;
        }
        let first = on.shards[0].facts.remote.clone();
        // Once in a life.
        let _ = self.served.set(Served { disk, counters, first });
        Ok(())
    }
}

/// Carries calls to the shard of `remote`, or to the first one while that serves its requests.
fn on_shard(remote: Remote) -> OnShard {
    Box::new(move |serve: ForServer| {
        call(&remote, move |_, local| match local.following.first() {
            None => with_server(local, serve),
            Some(first) => call(&first, move |_, local| with_server(local, serve)),
        });
    })
}

fn with_server(local: &Local, serve: ForServer) {
    if let Some(server) = local.sides.get::<Server>() {
        serve(&server);
    }
}

fn log_end(end: &End) {
    if end.is_protocol_error() {
        eprintln!("vhost: {end}");
    }
}

impl Export for Vhost {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        self.serve(on).map_err(system("cannot serve virtual machines"))?;
        Ok(Vec::new())
    }

    fn status(&self) -> ExportStatus {
        let counts = self.counts();
        ExportStatus {
            kind: "vhost".to_owned(),
            address: self.path.clone(),
            uris: vec![self.path.clone()],
            link: None,
            mount: None,
            transport: None,
            users: Vec::new(),
            tls: None,
            connections: counts.connections(),
            counts,
            io: self.asked.read().into(),
        }
    }

    fn is_device(&self) -> bool {
        false
    }

    fn users(&self) -> Result<Vec<String>, ExportError> {
        let is_used = self.counts().connections() > 0;
        let text = "a virtual machine is connected by vhost-user".to_owned();
        Ok(is_used.then_some(text).into_iter().collect())
    }

    /// A machine is told of the size. It knows whether it may write when it starts; a write that it may not is refused.
    fn follow(&self, change: Change) -> io::Result<Option<String>> {
        let (Change::Size(_), Some(served)) = (change, self.served.get()) else { return Ok(None) };
        let limits = ask(&served.first, |_, local| {
            local.sides.get::<Server>().map(|server| server.limits())
        });
        let limits = limits.flatten().ok_or_else(|| io::Error::other("a shard does not answer"))?;
        served.disk.change(limits);
        Ok(None)
    }

    /// Machines do not keep a volume from going down.
    fn check_unused(&self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Closes the socket; shards that stop answer what is in flight.
    fn take_down(&self, _: bool) -> Result<(), ExportError> {
        if let Some(served) = self.served.get() {
            served.disk.stop();
        }
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}

impl Side for Server {
    fn stop(&self) {
        Server::stop(self);
    }

    fn clients(&self) -> usize {
        self.open_queues()
    }
}
