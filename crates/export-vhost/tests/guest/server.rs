//! An export of a RAM disk, or of another device, with one shard.

use std::cell::RefCell;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use braid_device::Ram;
use braid_engine::Dev;
use braid_export_vhost::{Export, ForServer, OnShard, Server};
use braid_mem::Pool;
use braid_uring::{Config, Executor, Remote};

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

/// The export, until it is dropped.
pub(crate) struct Served {
    pub(crate) socket: PathBuf,
    pub(crate) export: Export,
    pub(crate) ends: std::sync::mpsc::Receiver<String>,
    remote: Remote,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn new(size: u64) -> Served {
        Served::of(move || Dev::new(Ram::new(size).unwrap().device()))
    }

    /// An export of what `make` makes.
    pub(crate) fn of(make: impl FnOnce() -> Dev + Send + 'static) -> Served {
        let (send, receive) = channel();
        let thread = std::thread::spawn(move || {
            let executor = Executor::new(Config::default()).unwrap();
            let handle = executor.handle();
            let dev = make();
            let limits = *dev.limits();
            let server = Server::new(&handle, dev, Pool::new(8 << 20).unwrap());
            SERVER.with_borrow_mut(|slot| *slot = Some(server.clone()));
            send.send((handle.remote(), limits)).unwrap();
            executor.block_on(async move {
                while server.open_queues() > 0 || SERVER.with_borrow(Option::is_some) {
                    handle.sleep(std::time::Duration::from_millis(1)).await;
                }
            });
        });
        let (remote, limits) = receive.recv().unwrap();
        let shard = remote.clone();
        let on_shard: OnShard = Box::new(move |call: ForServer| {
            shard.call(move |_| {
                if let Some(server) = SERVER.with_borrow(Clone::clone) {
                    call(&server);
                }
            });
        });
        let (told, ends) = channel();
        let export = Export::new(limits, "disk", vec![on_shard], move |end| {
            // The test may be over.
            let _ = told.send(end.to_string());
        });
        let (export, folder) = (export.unwrap(), tempfile::tempdir().unwrap());
        let socket = folder.path().join("s");
        export.start(UnixListener::bind(&socket).unwrap().into()).unwrap();
        Served { socket, export, ends, remote, thread: Some(thread), _folder: folder }
    }

    /// Returns the reason of the end of the next connection.
    pub(crate) fn end(&self) -> String {
        self.ends.recv_timeout(std::time::Duration::from_secs(20)).expect("an end")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.export.stop();
        self.remote.call(|_| {
            if let Some(server) = SERVER.with_borrow_mut(Option::take) {
                server.stop();
            }
        });
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}
