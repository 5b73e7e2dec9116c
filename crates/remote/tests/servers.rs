//! Real servers and hostile ones: nbdkit that is killed in the middle, and servers that lie.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_block::{Flags, Io, Payload};
use braid_engine::Dev;
use braid_mem::{Buf, Pool};
use braid_nbd::uri::Socket;
use braid_remote::{Address, Config, Dial, Direct, RemoteDevice, Traffic};
use braid_uring::{Executor, ExecutorClock};

const LIMIT: Duration = Duration::from_secs(5);
const SIZE: u64 = 8 << 20;
const STEP: u64 = 64 << 10;

/// An nbdkit that ends with this value.
struct Server(Child);

impl Server {
    fn start(socket: &Path, disk: &Path) -> Option<Server> {
        let _ = std::fs::remove_file(socket);
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix"]).arg(socket).arg("file").arg(disk);
        let server = Server(command.stderr(Stdio::null()).spawn().ok()?);
        let begun = Instant::now();
        while !socket.exists() {
            assert!(begun.elapsed() < LIMIT, "nbdkit does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn address(socket: &Path) -> Address {
    let place = Socket::Unix(socket.to_str().expect("a path of text").to_owned());
    Address { place, tls: None }
}

/// Writes all of the disk, flushes now and then, and reads it back.
async fn load(dev: Dev) {
    for turn in 0..SIZE / STEP {
        let mut buf = Buf::apart(STEP as usize).expect("memory");
        buf.fill(turn as u8);
        let io = Io::write(turn * STEP, Payload::One(buf), Flags::NONE);
        assert_eq!(dev.start(io).await.result, Ok(()), "write {turn}");
        if turn % 16 == 0 {
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()), "flush {turn}");
        }
    }
    for turn in 0..SIZE / STEP {
        let payload = Payload::One(Buf::apart(STEP as usize).expect("memory"));
        let done = dev.start(Io::read(turn * STEP, payload)).await;
        assert_eq!(done.result, Ok(()), "read {turn}");
        assert!(done.payload.to_vec().iter().all(|byte| *byte == turn as u8), "read {turn}");
    }
    assert_eq!(dev.start(Io::flush()).await.result, Ok(()), "the last flush");
}

#[test]
fn no_request_is_lost_though_nbdkit_is_killed_again_and_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let [socket, disk] = ["s", "disk"].map(|name| folder.path().join(name));
    std::fs::File::create(&disk).and_then(|file| file.set_len(SIZE)).expect("a disk");
    let Some(server) = Server::start(&socket, &disk) else {
        println!("skipped: nbdkit is not installed");
        return;
    };
    let direct = Direct::connect(&address(&socket), "", LIMIT).expect("an offer");
    let offer = *direct.offer();
    drop(direct);
    let traffic: Arc<Traffic> = Arc::default();
    let config = Config {
        export: String::new(),
        offer,
        connections: 4,
        deadline: Duration::from_secs(30),
        read_only: false,
        traffic: Arc::clone(&traffic),
        failures: Arc::default(),
    };
    let (seen, place): (_, (PathBuf, PathBuf)) = (Arc::clone(&traffic), (socket.clone(), disk));
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        let mut server = Some(server);
        loop {
            match is_done.recv_timeout(Duration::from_millis(40)) {
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if seen.read().reconnects < 8 => {
                    drop(server.take());
                    server = Server::start(&place.0, &place.1);
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    });
    let executor = Executor::new(braid_uring::Config::default()).expect("an executor");
    let handle = executor.handle();
    executor.block_on(async move {
        let clock = Rc::new(ExecutorClock::new(&handle));
        let dial = Dial { handle, address: address(&socket) };
        let pool = Pool::new(1 << 20).expect("memory");
        let dev = Dev::new(RemoteDevice::new(config, dial, clock, pool));
        for _ in 0..8 {
            load(dev.clone()).await;
        }
    });
    drop(done);
    killer.join().expect("the killer");
    let counted = traffic.read();
    assert_eq!(counted.overdue, 0, "{counted:?}");
    println!("{counted:?}");
}

/// Connects to a server that answers with `script`, whatever it is asked.
fn refused(script: &'static [u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        // The client may have gone by then.
        let _ = stream.write_all(script);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let result = Direct::connect(&address(&socket), "", LIMIT);
    let why = result.err().expect("no such server is used").to_string();
    server.join().expect("the server");
    why
}

/// A server of the oldest kind of newstyle: greeting without flags, then size and flags.
const fn export_of(size: u64) -> [u8; 18 + 10 + 124] {
    let mut script = [0; 18 + 10 + 124];
    let (greeting, size) = (*b"NBDMAGICIHAVEOPT\0\0", size.to_be_bytes());
    let mut at = 0;
    while at < 18 {
        script[at] = greeting[at];
        at += 1;
    }
    while at < 26 {
        script[at] = size[at - 18];
        at += 1;
    }
    script[27] = 1;
    script
}

#[test]
fn hostile_servers_are_refused_with_the_reason() {
    static TINY: [u8; 152] = export_of(100);
    static HUGE: [u8; 152] = export_of(u64::MAX);
    let cases: [(&[u8], &str); 5] = [
        (b"", "closed the connection"),
        (b"SSH-2.0-OpenSSH_9.2 and more", "not a newstyle NBD server"),
        (b"NBDMAGICIHAVEOPT\0\x03garbage of twenty bytes", "an option reply starts with"),
        (&TINY, "less than a block"),
        (&HUGE, "more than a device can have"),
    ];
    for (script, expected) in cases {
        let why = refused(script);
        assert!(why.contains(expected), "{why}");
    }
}
