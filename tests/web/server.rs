//! `braid web` as a guard, and what asks it: a few lines of HTTP of our own, so that anything can be sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::common::{LIMIT, MIB, Scratch, start};

/// The server: killed when dropped.
pub(crate) struct Web<'a> {
    child: Child,
    /// The line that it printed: the address with the token.
    pub(crate) printed: String,
    _scratch: &'a Scratch,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The bytes received over a connection that was closed.
    pub(crate) fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Its body, if all went well.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Checks that it is a refusal that says why and what to do; answers its code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, why: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let error = self.json()["why"].as_str().expect("why").to_owned();
        assert!(error.contains(why), "{why:?} is not in {error:?}");
        self.json()["code"].as_str().expect("a code").to_owned()
    }
}

impl<'a> Web<'a> {
    #[track_caller]
    pub(crate) fn start(scratch: &'a Scratch, options: &[&str]) -> Web<'a> {
        let listen = match options.contains(&"--listen") {
            true => &[][..],
            false => &["--listen", "127.0.0.1:0"],
        };
        let mut command = scratch.braid().arg("web").args(listen).args(options).into_command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = start(&mut command).expect("braid can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(line);
        });
        let printed = receive.recv_timeout(LIMIT).unwrap_or_default().trim().to_owned();
        let web = Web { child, printed, _scratch: scratch };
        assert!(!web.printed.is_empty(), "braid web did not start");
        web
    }

    /// Bytes that it has in memory.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kib << 10
    }

    pub(crate) fn token(&self) -> &str {
        self.printed.split_once("#token=").expect("the token is printed").1
    }

    /// Its name and port.
    pub(crate) fn host(&self) -> &str {
        let rest = self.printed.strip_prefix("http://").expect("an address");
        rest.split('/').next().expect("a host")
    }

    /// A connection that does not wait for ever.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream
    }

    /// A stream of events, and the line of the answer's status.
    pub(crate) fn follow(&self) -> (BufReader<TcpStream>, String) {
        self.follow_as(self.token(), "", "")
    }

    /// The same with another token, a query, and lines of headers.
    pub(crate) fn follow_as(
        &self,
        token: &str,
        query: &str,
        headers: &str,
    ) -> (BufReader<TcpStream>, String) {
        let mut stream = self.connect();
        let host = self.host();
        let request = format!(
            "GET /api/v1/events{query} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (mut reader, mut line) = (BufReader::new(stream), String::new());
        reader.read_line(&mut line).unwrap();
        (reader, line)
    }

    /// Sends these bytes and reads until the end.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A client that was refused early may not take the rest.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::parse(&answer)
    }

    /// A request with these headers besides what HTTP needs.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("content-length: {}\r\n", body.len());
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    /// As a program asks that has the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token());
        self.send("GET", path, &[("host", self.host()), ("authorization", &bearer)], "")
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token());
        self.send("DELETE", path, &[("host", self.host()), ("authorization", &bearer)], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token());
        let headers = [
            ("host", self.host()),
            ("authorization", &bearer),
            ("content-type", "application/json"),
        ];
        self.send("POST", path, &headers, &body.to_string())
    }
}

/// A request over a Unix socket.
pub(crate) fn over_unix(socket: &std::path::Path, request: &str) -> Answer {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    stream.write_all(request.as_bytes()).expect("it takes requests");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    Answer::parse(&answer)
}

impl Drop for Web<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// The answer itself, where interim ones (1xx) came before.
    pub(crate) fn after_interim(self) -> Answer {
        match self.status {
            100..=199 => Answer::parse(self.body.as_bytes()).after_interim(),
            _ => self,
        }
    }
}

/// Puts results of the laboratory into `folder`, without a page.
pub(crate) fn with_results(scratch: &Scratch, folder: &std::path::Path) {
    let campaign = "name = \"sticks\"\nrepetitions = 2\nruntime_s = 2\nregion = \"16M\"\nfill = false\n\
        [[subject]]\nname = \"one\"\nbaseline = true\nstack = \"model(cruzer-titanium, size=64M)\"\n\
        [[subject]]\nname = \"two\"\nstack = \"raid0(model(cruzer-titanium, size=64M, bus=usb2:0), \
        model(cruzer-titanium, size=64M, bus=usb2:1))\"\n\
        [[job]]\npattern = \"seq\"\nop = \"read\"\nblock_size = \"480K\"\n";
    let file = scratch.join("campaign.toml");
    std::fs::write(&file, campaign).expect("a file");
    let [file, out] = [file.as_path(), folder].map(|path| path.to_str().expect("a plain path"));
    scratch.run(&["model", "predict", file, "--output", out]).ok();
    std::fs::remove_file(folder.join("report.html")).expect("a page");
}

/// A raid1 of two members that agree, called `home`, up without a device.
pub(crate) fn with_home(scratch: &Scratch) {
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch
        .run(&[
            "create",
            "home",
            "--level",
            "raid1",
            "a.img",
            "b.img",
            "--assume-clean",
            "--bitmap",
            "internal",
        ])
        .ok();
    scratch.run(&["up", "home", "--attach", "none"]).ok();
}
