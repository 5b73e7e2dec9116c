//! Servers at the far end: killed when dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::common::{Client, Scratch, Tool, start, wait_until};

/// A server at a Unix socket.
pub(crate) struct Far(Child);

impl Far {
    /// `braid serve` with `stack`, of which a killed server may have left the socket.
    pub(crate) fn braid(scratch: &Scratch, stack: &str, socket: &Path) -> Far {
        let address = format!("unix:{}", socket.display());
        Far::start(scratch.braid().args(["serve", stack, "--nbd", &address]), socket)
    }

    /// nbdkit with these arguments.
    pub(crate) fn nbdkit(args: &[&str], socket: &Path) -> Far {
        let tool = Tool::new("nbdkit").args(["--foreground", "--unix"]).arg(socket);
        Far::start(tool.args(args), socket)
    }

    /// Starts a program that listens on `socket`, and waits until it does.
    pub(crate) fn start(tool: Tool, socket: &Path) -> Far {
        let _ = std::fs::remove_file(socket);
        let mut command = tool.into_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut far = Far(start(&mut command).expect("a server can be started"));
        wait_until("a server to listen", || {
            let ended = far.0.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            socket.exists() && Client::connect(socket).is_ok()
        });
        far
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A socket in the folder of a test.
pub(crate) fn socket(scratch: &Scratch) -> PathBuf {
    scratch.join("far.nbd")
}

/// The member at a socket; `more` begins with a comma.
pub(crate) fn member(socket: &Path, more: &str) -> String {
    format!("nbd(nbd+unix:///?socket={}{more})", socket.display())
}
