//! An emulated machine with a Debian of its own: what it is made of, what it is told, its disks.
//!
//! ```text
//!   scripts/guest-tree.sh ──▶ root.img ──▶ System: the package installed by dpkg in a guest ──▶ an overlay
//!                                                                                                   │
//!   test ──▶ scripts ────────────────────▶ tests/systemd/told.sh, root in the guest ◀── Machine ◀───┘
//!        └─▶ QMP: disks come, disks go ──▶ qemu ──────────────────────────────────────────┘
//! ```
//!
//! Rules: what tests write is their own, and a machine ends with its value; whatever fails shows the end of
//! the guest's console.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Scratch, Tool, start};

/// With a processor that is emulated, beside other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1200);
/// A processor that is not gets through in a second or two.
const ACCELERATED: Duration = Duration::from_secs(15);

/// A folder with `vmlinuz`, `initrd` and `root.img`, as scripts/guest-tree.sh makes it.
pub(crate) struct Debian(PathBuf);

impl Debian {
    /// The one below `$BRAID_GUEST`, or why there is none.
    pub(crate) fn find() -> Result<Debian, String> {
        let folder = std::env::var_os("BRAID_GUEST").filter(|path| !path.is_empty());
        let folder = folder.ok_or("$BRAID_GUEST names no guest: `make guest` makes one")?;
        let folder = PathBuf::from(folder).join("bookworm");
        match folder.join("made-of").is_file() {
            true => Ok(Debian(folder)),
            false => Err(format!("{} is not made: `make guest` does", folder.display())),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// True if guests run on this machine's processor. The existence of `/dev/kvm` is not enough: if it
    /// emulates, too, a guest does not get through its first instructions.
    fn is_accelerated(&self) -> bool {
        static IS: OnceLock<bool> = OnceLock::new();
        *IS.get_or_init(|| {
            let mut command = Tool::new("qemu-system-x86_64")
                .args(["-M", "q35", "-accel", "kvm", "-cpu", "max", "-m", "256", "-display"])
                .args(["none", "-nodefaults", "-no-reboot", "-append", "panic=-1", "-kernel"])
                .arg(self.file("vmlinuz"))
                .into_command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = start(&mut command).expect("qemu can be started");
            // Without a root file system it panics, and so resets, and so ends.
            let ended = wait_for_end(&mut child, ACCELERATED);
            let _ = (child.kill(), child.wait());
            let is = ended.is_some_and(|status| status.success());
            println!("guests are {}", if is { "accelerated by kvm" } else { "emulated" });
            is
        })
    }
}

fn wait_for_end(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The way from a guest to a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bus {
    Virtio,
    /// Reports its health on request.
    Nvme,
    /// All of these on one controller: many of them have room.
    Scsi,
}

/// A disk of the guest.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) image: PathBuf,
    pub(crate) bus: Bus,
}

impl Disk {
    /// `NAME.img` of the folder.
    pub(crate) fn of(scratch: &Scratch, name: &str) -> Disk {
        let image = scratch.join(&format!("{name}.img"));
        Disk { name: name.to_owned(), image, bus: Bus::Virtio }
    }

    fn node(&self) -> String {
        let file = self.image.display();
        format!("driver=raw,node-name=node-{},file.driver=file,file.filename={file}", self.name)
    }
}

/// The kernel, the files and the disks that a machine boots with.
pub(crate) struct Boot<'a> {
    pub(crate) initrd: PathBuf,
    /// The kernel's command line, `root=` and what else is wanted.
    pub(crate) append: String,
    /// A qcow2 image that becomes `vda`, if any.
    pub(crate) system: Option<&'a Path>,
    /// Each behind a port of its own, so that it can be unplugged, but for those of SCSI; `/dev/disk/by-id/virtio-NAME`,
    /// `nvme-QEMU_NVMe_Ctrl_NAME`, `scsi-0QEMU_QEMU_HARDDISK_NAME`.
    pub(crate) disks: Vec<Disk>,
}

/// The guest, as a process.
fn qemu(scratch: &Scratch, debian: &Debian, boot: &Boot<'_>) -> Tool {
    let append = format!(
        "console=ttyS0 panic=-1 quiet systemd.show_status=no systemd.log_target=journal {}",
        boot.append
    );
    let mut qemu = Tool::new("qemu-system-x86_64").folder(scratch.path());
    qemu = match debian.is_accelerated() {
        true => qemu.args(["-accel", "kvm"]),
        false => qemu.args(["-accel", "tcg,thread=multi,tb-size=512"]),
    };
    // An attached volume has some 200 MiB, locked.
    let memory = (1536 + 64 * boot.disks.len()).to_string();
    qemu = qemu
        .args(["-M", "q35", "-cpu", "max", "-m", &memory, "-display", "none", "-nodefaults"])
        .args(["-no-reboot", "-smp", "2", "-serial", "file:console"])
        .arg("-kernel")
        .arg(debian.file("vmlinuz"))
        .arg("-initrd")
        .arg(&boot.initrd)
        .args(["-append", &append]);
    if let Some(system) = boot.system {
        let drive = format!("if=none,id=system,format=qcow2,file={}", system.display());
        qemu = qemu.args(["-drive", &drive, "-device", "virtio-blk-pci,drive=system"]);
    }
    if boot.disks.iter().any(|disk| disk.bus == Bus::Scsi) {
        qemu = qemu.args(["-device", "virtio-scsi-pci,id=scsi"]);
    }
    for (index, disk) in boot.disks.iter().enumerate() {
        if disk.bus != Bus::Scsi {
            let port = format!("pcie-root-port,id=port-{},chassis={}", disk.name, index + 1);
            qemu = qemu.args(["-device", &port]);
        }
        let device = on_bus(disk.bus, &disk.name);
        qemu = qemu.args(["-blockdev", &disk.node(), "-device", &device]);
    }
    qemu
}

/// Boots what powers itself off; answers what it said on its console.
#[track_caller]
pub(crate) fn run(scratch: &Scratch, debian: &Debian, boot: &Boot<'_>) -> String {
    let ended = qemu(scratch, debian, boot).limit(PATIENCE).run();
    let said = fs::read(scratch.join("console")).expect("a console");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.code() == 0, "{ended}\n{said}");
    said
}

/// A guest that is up. It is ended with this value.
pub(crate) struct Machine<'a> {
    scratch: &'a Scratch,
    child: Child,
    told: BufReader<UnixStream>,
    qmp: BufReader<UnixStream>,
}

impl<'a> Machine<'a> {
    /// Boots, and waits until the guest listens.
    #[track_caller]
    pub(crate) fn boot(scratch: &'a Scratch, debian: &Debian, boot: &Boot<'_>) -> Machine<'a> {
        let listen = |name: &str| {
            let path = scratch.join(name);
            let _ = fs::remove_file(&path);
            UnixListener::bind(path).expect("a socket")
        };
        let (told, qmp) = (listen("told.sock"), listen("qmp.sock"));
        let qemu = qemu(scratch, debian, boot)
            .args(["-qmp", "unix:qmp.sock"])
            .args(["-chardev", "socket,id=told,path=told.sock", "-device", "virtio-serial-pci"])
            .args(["-device", "virtserialport,chardev=told,name=told"]);
        let mut command = qemu.into_command();
        let said = fs::File::create(scratch.join("qemu")).expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let child = start(&mut command).expect("qemu can be started");
        let accept = |listener: UnixListener| {
            let (stream, _) = listener.accept().expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
            BufReader::new(stream)
        };
        // In the order in which qemu connects.
        let (told, qmp) = (accept(told), accept(qmp));
        let mut machine = Machine { scratch, child, told, qmp };
        let greeting = machine.hear();
        assert!(greeting.get("QMP").is_some(), "{greeting}");
        machine.order("qmp_capabilities", json!({}));
        machine.ok("true");
        machine
    }

    /// Has the guest's root do `script`; answers what it said.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub(crate) fn ok(&mut self, script: &str) -> String {
        let (status, said) = self.tell(script);
        assert!(status == 0, "in the guest: {script}\nstatus {status}\n{said}\n{}", self.journal());
        said
    }

    /// As [`Machine::ok`], with the exit status.
    #[track_caller]
    pub(crate) fn tell(&mut self, script: &str) -> (i32, String) {
        match self.try_tell(script) {
            Ok(answer) => answer,
            Err(error) => panic!("{error}: the guest did not answer {script}\n{}", self.console()),
        }
    }

    fn try_tell(&mut self, script: &str) -> std::io::Result<(i32, String)> {
        let script = format!("{script}\n");
        write!(self.told.get_mut(), "{}\n{script}", script.len())?;
        let mut line = String::new();
        self.told.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::parse::<i32>);
        let (Some(Ok(status)), Some(Ok(length))) = (words.next(), words.next()) else {
            return Err(std::io::Error::other(format!("{line:?} is no answer")));
        };
        let mut said = vec![0; length.unsigned_abs() as usize];
        self.told.read_exact(&mut said)?;
        Ok((status, String::from_utf8_lossy(&said).trim_end().to_owned()))
    }

    /// Waits until a script succeeds in the guest, which asks again and again.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: &str, condition: &str) {
        let seconds = PATIENCE.as_secs() / 2;
        let script = format!(
            "uptime() {{ cut -d . -f 1 /proc/uptime; }}
             end=$(($(uptime) + {seconds}))
             until {condition}; do [ $(uptime) -lt $end ] || exit 1; sleep 0.2; done"
        );
        let (status, said) = self.tell(&script);
        assert!(status == 0, "waited in vain: {what}\n{said}\n{}", self.journal());
    }

    /// Has the guest note when `first` holds, and then when `second` does, from now on.
    #[track_caller]
    pub(crate) fn watch(&mut self, first: &str, second: &str) {
        self.ok(&format!(
            "rm -f /run/watched
             cat >/run/watch <<'END'
until {first}; do sleep 0.02; done
read -r began rest </proc/uptime
until {second}; do :; done
read -r ended rest </proc/uptime
echo \"$began $ended\" >/run/noted && mv /run/noted /run/watched
END
             sh /run/watch >/dev/null 2>&1 &"
        ));
    }

    /// The seconds that it noted between both.
    #[track_caller]
    pub(crate) fn watched(&mut self, what: &str) -> f64 {
        self.wait_until(what, "test -e /run/watched");
        let said = self.ok("cat /run/watched");
        let times: Vec<f64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        times[1] - times[0]
    }

    /// `braid status NAME` of the guest.
    #[track_caller]
    pub(crate) fn status(&mut self, volume: &str) -> Value {
        let said = self.ok(&format!("braid status {volume} --json"));
        let status: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        status["volumes"][0].clone()
    }

    /// For messages: what braid and systemd said.
    fn journal(&mut self) -> String {
        let script =
            "journalctl -b --no-pager -o short-monotonic -n 60; tail -n 20 /run/braid/*.log";
        self.try_tell(script).map_or_else(|error| error.to_string(), |(_, said)| said)
    }

    fn console(&self) -> String {
        let read = |name: &str| fs::read(self.scratch.join(name)).unwrap_or_default();
        let text = [read("qemu"), read("console")].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    #[track_caller]
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        let heard = self.qmp.read_line(&mut line);
        assert!(heard.is_ok_and(|count| count > 0), "qemu is gone\n{}", self.console());
        serde_json::from_str(&line).expect("qemu speaks JSON")
    }

    /// Gives qemu an order.
    #[track_caller]
    fn order(&mut self, order: &str, arguments: Value) {
        let text = json!({"execute": order, "arguments": arguments}).to_string();
        self.qmp.get_mut().write_all(text.as_bytes()).expect("qemu listens");
        let answer = loop {
            let said = self.hear();
            if said.get("event").is_none() {
                break said;
            }
        };
        assert!(answer.get("return").is_some(), "{text}: {answer}");
    }

    /// Takes a disk out, and waits until it is.
    #[track_caller]
    pub(crate) fn unplug(&mut self, disk: &str) {
        self.order("device_del", json!({"id": disk}));
        loop {
            let said = self.hear();
            if said["event"] == "DEVICE_DELETED" && said["data"]["device"] == disk {
                return;
            }
        }
    }

    /// Puts a disk that was unplugged in again.
    #[track_caller]
    pub(crate) fn plug(&mut self, disk: &str) {
        self.add(&on_bus(Bus::Virtio, disk));
    }

    /// Changes a property of a disk.
    #[track_caller]
    pub(crate) fn set(&mut self, disk: &str, property: &str, value: Value) {
        let path = format!("/machine/peripheral/{disk}");
        self.order("qom-set", json!({"path": path, "property": property, "value": value}));
    }

    #[track_caller]
    fn add(&mut self, device: &str) {
        let pair = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or(("driver", word));
            (key.to_owned(), Value::from(value))
        };
        let arguments: serde_json::Map<String, Value> = device.split(',').map(pair).collect();
        self.order("device_add", arguments.into());
    }

    /// Shuts it down as its power button does, and waits for its end.
    #[track_caller]
    pub(crate) fn power_off(mut self) {
        self.ok("sync; systemctl poweroff --no-block");
        let ended = wait_for_end(&mut self.child, PATIENCE);
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{}", self.console());
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // It may have ended.
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn on_bus(bus: Bus, disk: &str) -> String {
    let (driver, bus) = match bus {
        Bus::Virtio => ("virtio-blk-pci", format!("port-{disk}")),
        Bus::Nvme => ("nvme", format!("port-{disk}")),
        Bus::Scsi => ("scsi-hd", "scsi.0".to_owned()),
    };
    format!("{driver},id={disk},drive=node-{disk},serial={disk},bus={bus}")
}
