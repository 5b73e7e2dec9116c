//! A cable between two network namespaces: slow, lossy, and cut whenever a test likes.
//!
//! ```text
//!   near: tun ── socat ── datagrams ── [ delay, loss, cut ] ── datagrams ── socat ── tun :far
//! ```
//!
//! Neither end sees a cut as an event: packets are lost, as between two buildings. (A cable by veth and netem would
//! depend on a kernel with netem, and the end of a veth says when the other one is down.)

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::{Tool, start, wait_until};

/// Ends with its processes and threads when it is dropped.
pub(crate) struct Cable {
    ends: Vec<Child>,
    line: Arc<Line>,
}

/// Both directions of a cable.
struct Line {
    /// One way.
    delay: Duration,
    is_cut: AtomicBool,
    is_gone: AtomicBool,
    /// One in so many packets is lost; 0: none.
    one_lost_in: AtomicU64,
    carried: AtomicU64,
}

/// An end: the `socat` of its namespace, and its address with the width of the network.
pub(crate) struct End {
    pub(crate) socat: Tool,
    pub(crate) device: String,
    pub(crate) address: String,
}

impl Cable {
    /// Lays it, with `delay` one way. Sockets are in `folder`. Fails with the reason where no tun device can be made.
    pub(crate) fn lay(folder: &Path, delay: Duration, ends: [End; 2]) -> Result<Cable, String> {
        let line = Arc::new(Line {
            delay,
            is_cut: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            one_lost_in: AtomicU64::new(0),
            carried: AtomicU64::new(0),
        });
        let mut cable = Cable { ends: Vec::new(), line };
        let sockets = ["near", "far"]
            .map(|name| (folder.join(format!("{name}.cable")), folder.join(format!("{name}.tun"))));
        let [near, far] = sockets
            .each_ref()
            .map(|(own, _)| Arc::new(UnixDatagram::bind(own).expect("a socket can be bound")));
        for (end, (own, tun)) in ends.into_iter().zip(&sockets) {
            cable.plug(end, own, tun)?;
        }
        cable.line.clone().carry(near.clone(), far.clone(), sockets[1].1.clone());
        cable.line.clone().carry(far, near, sockets[0].1.clone());
        Ok(cable)
    }

    fn plug(&mut self, end: End, own: &Path, tun: &Path) -> Result<(), String> {
        let End { socat, device, address } = end;
        let device = format!("TUN:{address},tun-name={device},iff-no-pi,iff-up");
        let sender = format!("UNIX-SENDTO:{},bind={}", own.display(), tun.display());
        let mut command = socat.args([device, sender]).into_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.ends.push(start(&mut command).expect("socat can be started"));
        let child = self.ends.last_mut().expect("it was just added");
        let mut ended = false;
        wait_until("an end of the cable", || {
            ended = child.try_wait().expect("a child can be waited for").is_some();
            ended || tun.exists()
        });
        if !ended {
            return Ok(());
        }
        let errors = child.stderr.take().map(std::io::read_to_string);
        Err(errors.and_then(Result::ok).unwrap_or_default())
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.line.is_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(crate) fn lose_one_in(&self, packets: u64) {
        self.line.one_lost_in.store(packets, Ordering::Relaxed);
    }
}

impl Line {
    /// Carries packets of one direction until the cable is gone.
    fn carry(self: Arc<Line>, from: Arc<UnixDatagram>, by: Arc<UnixDatagram>, to: PathBuf) {
        let (sender, packets) = mpsc::channel::<(Instant, Vec<u8>)>();
        from.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout can be set");
        let line = self.clone();
        std::thread::spawn(move || {
            let mut packet = vec![0; 1 << 16];
            while !self.is_gone.load(Ordering::Relaxed) {
                let Ok(length) = from.recv(&mut packet) else { continue };
                if !self.loses_one() {
                    let due = Instant::now() + self.delay;
                    sender.send((due, packet[..length].to_vec())).expect("its receiver lives");
                }
            }
        });
        std::thread::spawn(move || {
            for (due, packet) in packets {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if !line.is_cut.load(Ordering::Relaxed) {
                    // An end that is gone loses packets, as a cable does.
                    let _ = by.send_to(&packet, &to);
                }
            }
        });
    }

    fn loses_one(&self) -> bool {
        let packet = self.carried.fetch_add(1, Ordering::Relaxed);
        let one_in = self.one_lost_in.load(Ordering::Relaxed);
        self.is_cut.load(Ordering::Relaxed) || one_in > 0 && packet.is_multiple_of(one_in)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.line.is_gone.store(true, Ordering::Relaxed);
        for end in &mut self.ends {
            let _ = end.kill();
            let _ = end.wait();
        }
    }
}
