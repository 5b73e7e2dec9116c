//! The common parts of the monitor's tests: a monitor that runs, servers that note their requests, volumes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{self, MIB, Scratch, Tool, UpVolume, send_signal, start, wait_until};

/// Writes the port to a file, and what arrives to another, with the envelope in front of each mail. With a
/// certificate it wants STARTTLS, or TLS from the start.
pub(crate) const MAIL_SERVER: &str = r#"
import asyncio, sys, os, ssl
from aiosmtpd.smtp import SMTP
class Handler:
    async def handle_DATA(self, server, session, envelope):
        with open(sys.argv[1], "a") as file:
            file.write("ENVELOPE %s %s\n" % (envelope.mail_from, ",".join(envelope.rcpt_tos)))
            file.write(envelope.content.decode() + "\nEND\n")
        return "250 OK"
async def main():
    loop = asyncio.get_running_loop()
    mode, tls = sys.argv[3], None
    if mode in ("starttls", "tls"):
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(sys.argv[4], sys.argv[5])
    inside = {"tls_context": tls, "require_starttls": True} if mode == "starttls" else {}
    around = {"ssl": tls} if mode == "tls" else {}
    smtp = lambda: SMTP(Handler(), hostname="test", **inside)
    server = await loop.create_server(smtp, "127.0.0.1", 0, **around)
    with open(sys.argv[2] + ".new", "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    await server.serve_forever()
asyncio.run(main())
"#;

/// The same for HTTP: the first requests are turned away for now, as many as the third argument says.
pub(crate) const WEB_SERVER: &str = r#"
import sys, os, ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    refuse = int(sys.argv[3])
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if Handler.refuse > 0:
            Handler.refuse -= 1
            self.send_error(503)
            return
        assert self.headers["content-type"] == "application/json"
        with open(sys.argv[1], "ab") as file:
            file.write(body + b"\n")
        self.send_response(204)
        self.end_headers()
server = HTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 4:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(sys.argv[4], sys.argv[5])
    server.socket = tls.wrap_socket(server.socket, server_side=True)
with open(sys.argv[2] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[2] + ".new", sys.argv[2])
server.serve_forever()
"#;

/// A process that ends with this value.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn start(tool: Tool, log: PathBuf) -> Running {
        let mut command = tool.into_command();
        let to = |path: &Path| File::create(path).expect("a file for what it says");
        command.stdin(Stdio::null()).stdout(to(&log.with_extension("out"))).stderr(to(&log));
        Running { child: start(&mut command).expect("it starts"), log }
    }

    /// Its output so far.
    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// SIGTERM, and its end, which must be a good one.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        send_signal(self.child.id(), Signal::TERM);
        let mut status = None;
        wait_until("the monitor's end", || {
            status = self.child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "{status:?}: {}", self.text());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.text());
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            send_signal(self.child.id(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// A server in Python that notes what it gets in `NAME.got`; and its port.
pub(crate) fn server(scratch: &Scratch, name: &str, script: &str, more: &[&str]) -> (Running, u64) {
    let got = scratch.join(&format!("{name}.got"));
    File::create(&got).expect("a file");
    let port = scratch.join(&format!("{name}.port"));
    let tool = Tool::new("/usr/bin/python3").args(["-c", script]).arg(got).arg(&port);
    let tool = tool.args(more);
    let running = Running::start(tool, scratch.join(&format!("{name}.log")));
    let mut number = None;
    wait_until("the port of a server", || {
        number = std::fs::read_to_string(&port).ok().and_then(|text| text.parse().ok());
        number.is_some()
    });
    (running, number.expect("it was waited for"))
}

pub(crate) fn got(scratch: &Scratch, name: &str) -> String {
    std::fs::read_to_string(scratch.join(&format!("{name}.got"))).unwrap_or_default()
}

/// All events that the web server got.
pub(crate) fn hooked(scratch: &Scratch) -> Vec<Value> {
    let got = got(scratch, "web");
    let bodies = got.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    bodies.flat_map(|body| body["events"].as_array().expect("events").clone()).collect()
}

pub(crate) fn count(scratch: &Scratch, event: &str) -> usize {
    hooked(scratch).iter().filter(|one| one["event"] == event).count()
}

/// A shell script that can be run.
pub(crate) fn script(scratch: &Scratch, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch.join(name);
    let write = || {
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
    };
    common::with_files_open(write).expect("a script");
    path.display().to_string()
}

pub(crate) fn configure(scratch: &Scratch, text: &str) -> String {
    let path = scratch.join("monitor.toml");
    std::fs::write(&path, text).expect("a configuration");
    path.display().to_string()
}

pub(crate) fn watch(scratch: &Scratch, config: &str, log: &str) -> Running {
    watch_with(scratch, config, log, &[])
}

pub(crate) fn watch_with(scratch: &Scratch, config: &str, log: &str, options: &[&str]) -> Running {
    let tool = scratch.braid().args(["monitor", "--json", "--config", config]).args(options);
    Running::start(tool, scratch.join(log))
}

/// Events that a monitor has printed.
pub(crate) fn printed(running: &Running) -> Vec<Value> {
    let text = std::fs::read_to_string(running.log.with_extension("out")).unwrap_or_default();
    // The last line may be half there.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Waits until a monitor has printed this event of this volume; answers it.
#[track_caller]
pub(crate) fn wait_for(running: &Running, event: &str, volume: &str) -> Value {
    let mut found = None;
    wait_until(&format!("{event} of {volume}"), || {
        found = printed(running)
            .into_iter()
            .find(|one| one["event"] == event && one["volume"] == volume);
        found.is_some()
    });
    found.expect("it was waited for")
}

/// A mirror of two files, with superblocks.
pub(crate) fn mirror<'a>(scratch: &'a Scratch, name: &str) -> UpVolume<'a> {
    let [a, b] = ["a", "b"].map(|member| format!("{name}-{member}.img"));
    scratch.sparse(&a, 16 * MIB);
    scratch.sparse(&b, 16 * MIB);
    let create = ["create", name, "--level", "raid1", "--bitmap", "64K", "--assume-clean"];
    scratch.run(&[&create[..], &[&a, &b]].concat()).ok();
    UpVolume::start(scratch, name, &["--attach", "none"])
        .unwrap_or_else(|output| panic!("{output}"))
}
