//! A cluster of its own for a test, which ends with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::common::{Output, Tool};

/// Ends the test, saying why, without the programs of a cluster.
macro_rules! skip_without_ceph {
    () => {
        if std::env::var_os("BRAID_CEPH").is_none() {
            println!("skipped: it takes a Ceph cluster, which `make ceph` starts");
            return;
        }
        crate::common::skip_without!("ceph", "rbd", "ceph-mon", "ceph-mgr", "ceph-osd", "setsid");
    };
}
pub(crate) use skip_without_ceph;

/// A cluster of three OSDs in memory.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts a cluster, and waits until it is healthy. Its pool is called `rbd`.
    pub(crate) fn start() -> Cluster {
        // Paths of sockets are short, so it is not below the test's own folder.
        let folder = tempfile::Builder::new().prefix("braid-ceph-").tempdir_in("/var/tmp").unwrap();
        let cluster = Cluster { folder };
        cluster.script(&["start"], &[&free_ports().to_string()]).ok();
        cluster
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The cluster's configuration.
    pub(crate) fn conf(&self) -> PathBuf {
        self.folder().join("ceph.conf")
    }

    /// The expression of an image.
    pub(crate) fn stack(&self, name: &str, more: &str) -> String {
        format!("rbd({name}, conf={}{more})", self.conf().display())
    }

    fn script(&self, verb: &[&str], more: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph-loopback.sh");
        let tool = Tool::new(script).args(verb).arg(self.folder()).args(more);
        tool.limit(Duration::from_secs(180)).run()
    }

    /// Ends an OSD at once.
    pub(crate) fn kill(&self, osd: u32) {
        self.script(&["kill"], &[&osd.to_string()]).ok();
    }

    /// Runs Ceph's `rbd`.
    pub(crate) fn rbd(&self, args: &[&str]) -> Output {
        Tool::new("rbd").arg("-c").arg(self.conf()).args(args).limit(LIMIT).run()
    }

    /// Runs `ceph`.
    pub(crate) fn ceph(&self, args: &[&str]) -> Output {
        Tool::new("ceph").arg("-c").arg(self.conf()).args(args).limit(LIMIT).run()
    }
}

const LIMIT: Duration = Duration::from_secs(60);

impl Drop for Cluster {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph-loopback.sh");
        let _ = Command::new(script).arg("stop").arg(self.folder()).status();
    }
}

/// Returns the first of two ports in a row that are free, of which no other test of this process has heard. They lie below
/// those that the kernel gives by itself, so that they are not given away until the monitor listens.
fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + (std::process::id() % 1_000) as u16 * 10;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut ports = std::iter::repeat_with(|| start + 2 * NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| is_free(*port) && is_free(port + 1)).expect("two free ports")
}
