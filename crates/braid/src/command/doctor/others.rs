//! Findings on what other programs and machines can do with a volume of this machine, and on Ceph (docs/others.md,
//! docs/ceph.md).
//!
//! Deliberately absent: whether they are configured. Only what is installed is looked at.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Finding, Verdict, is_installed};

/// Folders of libraries that are looked in, beside those below /usr/lib that are named after an architecture.
const LIBRARIES: [&str; 5] =
    ["/usr/lib", "/usr/lib64", "/lib64", "/usr/local/lib", "/usr/local/lib64"];

pub(super) fn findings() -> Vec<Finding> {
    vec![
        ceph(),
        qemu(),
        target("iSCSI", "iscsi_target_mod", "targetcli", "targetcli-fb"),
        target("NVMe/TCP", "nvmet_tcp", "nvmetcli", "nvmetcli"),
    ]
}

fn ceph() -> Finding {
    match library("librbd.so.1") {
        Some(path) => {
            Finding::ok("Ceph", format!("{}: rbd(POOL/IMAGE) can be opened", path.display()))
        }
        None => Finding::lacking(
            "Ceph",
            Verdict::Missing,
            "no librbd: rbd(POOL/IMAGE) cannot be opened",
            "nothing needed without a Ceph cluster; else apt-get install librbd1",
        ),
    }
}

fn qemu() -> Finding {
    let all = ["virsh", "qemu-system-x86_64", "qemu-system-aarch64", "qemu-img"];
    let there: Vec<&str> = all.into_iter().filter(|one| is_installed(one)).collect();
    if there.is_empty() {
        return Finding::lacking(
            "guests",
            Verdict::Missing,
            "neither libvirt nor qemu: no guests on this machine use volumes",
            "nothing needed; `--nbd` and `--vhost-user` serve guests",
        );
    }
    Finding::ok("guests", format!("{}: guests can use volumes by NBD", there.join(", ")))
}

/// Returns the finding on a target of the kernel, which exports block devices to other machines.
fn target(what: &'static str, module: &str, tool: &str, package: &str) -> Finding {
    let (has_module, has_tool) = (has_module(module), is_installed(tool));
    match (has_module, has_tool) {
        (true, true) => {
            Finding::ok(what, format!("{module} and {tool}: attached volumes can be exported"))
        }
        (true, false) => Finding::lacking(
            what,
            Verdict::Missing,
            format!("the kernel has {module}, but there is no {tool}"),
            format!("nothing needed; apt-get install {package} to export attached volumes"),
        ),
        (false, _) => Finding::lacking(
            what,
            Verdict::Missing,
            format!("the kernel has no {module}: it exports no attached volumes"),
            "nothing needed; NBD works without the kernel",
        ),
    }
}

/// Returns true if a module of the kernel is loaded or built in, or can be loaded.
fn has_module(name: &str) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let folder = Path::new("/lib/modules").join(release);
    let is_listed = |list: &str| {
        let text = fs::read_to_string(folder.join(list)).unwrap_or_default();
        let file = format!("/{name}.ko");
        text.replace('-', "_")
            .lines()
            .any(|line| line.split(':').next().is_some_and(|one| one.contains(&file)))
    };
    Path::new("/sys/module").join(name).is_dir()
        || is_listed("modules.dep")
        || is_listed("modules.builtin")
}

/// Returns the path of a shared library.
fn library(name: &str) -> Option<PathBuf> {
    let inner = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = LIBRARIES.iter().map(PathBuf::from).chain(inner);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}
