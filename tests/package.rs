//! `make install` and the Debian package, made of the program as it is tested: what they put where, that
//! volumes go on when another version comes, and that nothing is lost or left when it goes.
//!
//! The package is installed by dpkg into a folder, with a database of its own there; its scripts run
//! outside (`DPKG_ROOT`), and so touch nothing of this machine.

mod common;

use std::path::{Path, PathBuf};

use common::{Output, Scratch, Tool, fill, is_alive, package, skip_without, sources, wait_until};

const BRAID: &str = env!("CARGO_BIN_EXE_braid");

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    let within =
        |path: PathBuf| path.strip_prefix(folder).expect("it is below").display().to_string();
    let mut names: Vec<String> = found.into_iter().map(within).collect();
    names.sort();
    names
}

/// The files of every installation, below its prefix.
const EXPECTED: [&str; 12] = [
    "bin/braid",
    "lib/systemd/system-generators/braid",
    "libexec/braid/braid-volume",
    "lib/systemd/system/braid@.service",
    "share/bash-completion/completions/braid",
    "share/doc/braid/LICENSE-MIT",
    "share/doc/braid/arrays.md",
    "share/fish/vendor_completions.d/braid.fish",
    "share/man/man1/braid-member-fail.1.gz",
    "share/man/man1/braid-up.1.gz",
    "share/man/man1/braid.1.gz",
    "share/man/man7/braid-arrays.7.gz",
];

fn make(root: &Path, target: &str) -> Tool {
    Tool::new("make")
        .args([target, "PREFIX=/opt/braid-it"])
        .arg(format!("DESTDIR={}", root.display()))
        .arg(format!("BINARY={BRAID}"))
        .folder(&sources())
}

#[test]
fn what_make_install_puts_there_make_uninstall_takes_away() {
    skip_without!("make", "strip", "gzip", "readelf");
    let scratch = Scratch::new();
    let root = scratch.join("root");
    let prefix = root.join("opt/braid-it");
    make(&root, "install").run().ok();
    let installed = files(&prefix);
    for file in EXPECTED.iter().chain(&["share/zsh/site-functions/_braid"]) {
        assert!(installed.contains(&(*file).to_owned()), "{file} in {installed:#?}");
    }
    let program = prefix.join("bin/braid");
    let version = Tool::new(&program).arg("--version").run().ok();
    assert!(version.out.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let sections = Tool::new("readelf").args(["--sections", "--wide"]).arg(&program).run().ok();
    assert!(!sections.out.contains(".debug_info"), "it has debug symbols");
    let unit = std::fs::read_to_string(prefix.join("lib/systemd/system/braid@.service"));
    let unit = unit.expect("a unit");
    assert!(unit.contains("ExecStart=/opt/braid-it/bin/braid "), "{unit}");
    assert!(!unit.contains("/usr/bin/braid") && !unit.contains("/usr/share/doc"), "{unit}");

    // An unchanged configuration is removed, and a changed one stays.
    let configuration = prefix.join("etc/braid/monitor.toml");
    assert!(configuration.exists());
    make(&root, "uninstall").run().ok();
    assert_eq!(files(&root), [""; 0]);
    make(&root, "install").run().ok();
    std::fs::write(&configuration, "# changed\n").expect("a file");

    // Files of other packages stay; files of an earlier version are removed by an installation of this one.
    let (other, earlier) = (prefix.join("share/doc/braid/notes"), prefix.join("share/man/earlier"));
    std::fs::write(&other, "precious").expect("a file");
    std::fs::write(&earlier, "of an earlier version").expect("a file");
    let list = prefix.join("share/braid/installed");
    let text = std::fs::read_to_string(&list).expect("the list");
    std::fs::write(&list, text + "/opt/braid-it/share/man/earlier\n").expect("the list");
    make(&root, "install").run().ok();
    assert!(!earlier.exists());
    make(&root, "uninstall").run().ok();
    let left = ["opt/braid-it/etc/braid/monitor.toml", "opt/braid-it/share/doc/braid/notes"];
    assert_eq!(files(&root), left);
    assert_eq!(std::fs::read_to_string(&configuration).expect("a file"), "# changed\n");
    let again = make(&root, "uninstall").run();
    again.fails(2, &["nothing is installed below"]);

    let missing = make(&root, "install").arg("BINARY=/none").run();
    missing.fails(2, &["there is no program /none", "make build"]);
    assert_eq!(files(&root), left);
}

/// A folder that dpkg takes for the root of a machine.
struct Root<'a> {
    scratch: &'a Scratch,
    root: PathBuf,
}

impl Root<'_> {
    /// With nothing but what the package depends on, which is only said to be there.
    fn new(scratch: &Scratch) -> Root<'_> {
        let root = scratch.join("root");
        std::fs::create_dir_all(root.join("var/lib/dpkg/info")).expect("a folder");
        std::fs::create_dir_all(root.join("var/lib/dpkg/updates")).expect("a folder");
        Root { scratch, root }
    }

    fn depends_on(&self, package: &Path) {
        let field = |name: &str| {
            let output = Tool::new("dpkg-deb").arg("--field").arg(package).arg(name).run().ok();
            output.out.trim().to_owned()
        };
        let architecture = field("Architecture");
        let stanza = |dependency: &str| {
            let name = dependency.split_whitespace().next().unwrap_or_default().to_owned();
            format!(
                "Package: {name}\nStatus: install ok installed\nMaintainer: nobody <nobody@braid.invalid>\n\
                 Architecture: {architecture}\nMulti-Arch: same\nVersion: 999\nDescription: said to be there\n\n"
            )
        };
        let depends = field("Depends");
        assert!(depends.contains("libc6"), "{depends}");
        let status: String = depends.split(", ").map(stanza).collect();
        std::fs::write(self.root.join("var/lib/dpkg/status"), status).expect("a database");
    }

    fn dpkg(&self, action: &str, what: &Path) -> Output {
        Tool::new("dpkg")
            .arg(format!("--root={}", self.root.display()))
            .args(["--force-script-chrootless", "--force-not-root"])
            .arg(format!("--log={}", self.scratch.join("dpkg.log").display()))
            .arg(action)
            .arg(what)
            // Where dpkg looks for what its scripts need.
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .run()
    }

    /// The installed program, as on a machine of its own.
    fn braid(&self, args: &[&str]) -> Tool {
        Tool::new(self.root.join("usr/bin/braid"))
            .env("BRAID_RUN_DIR", self.root.join("run/braid"))
            .env("BRAID_CONFIG_DIR", self.root.join("etc/braid"))
            .env("BRAID_STATE_DIR", self.root.join("var/lib/braid"))
            .env("BRAID_DEV_DIR", self.root.join("dev/braid"))
            .args(args)
    }

    /// All files but dpkg's own.
    fn files(&self) -> Vec<String> {
        let mut files = files(&self.root);
        files.retain(|file| !file.starts_with("var/lib/dpkg/"));
        files
    }
}

impl Drop for Root<'_> {
    /// Ends what a test that failed has left.
    fn drop(&mut self) {
        if self.root.join("run/braid/v.sock").exists() {
            let down = Tool::new(BRAID).env("BRAID_RUN_DIR", self.root.join("run/braid"));
            let down = down.args(["down", "v", "--force"]);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| down.run()));
        }
    }
}

#[test]
fn the_package_is_installed_upgraded_under_a_volume_removed_and_purged() {
    skip_without!("dpkg", "dpkg-deb", "strip", "gzip");
    let scratch = Scratch::new();
    let root = Root::new(&scratch);
    let (first, second) =
        ["0.0.1", "0.0.2"].map(|version| package(&scratch, Path::new(BRAID), version)).into();
    root.depends_on(&first);
    let before = root.files();
    root.dpkg("--install", &first).ok();
    let installed = root.files();
    for file in
        EXPECTED.iter().chain(&["share/doc/braid/copyright", "share/doc/braid/THIRD-PARTY.gz"])
    {
        assert!(installed.contains(&format!("usr/{file}")), "{file} in {installed:#?}");
    }
    assert!(root.root.join("etc/braid").is_dir());

    // Another version comes while a volume is up: it goes on, and its data is there.
    root.braid(&["up", "ram(4M)", "--name", "v", "--attach", "none"]).run().ok();
    let status = || root.braid(&["status", "v", "--json"]).run().ok().json()["volumes"][0].clone();
    let pid = status()["pid"].as_u64().expect("a process") as u32;
    let socket = root.root.join("run/braid/v.nbd");
    let mut data = vec![0; 1 << 20];
    fill(&mut data, 3, 0);
    let mut client = common::Client::connect(&socket).expect("a client");
    client.write(0, &data, true).expect("a write");
    let configuration = root.root.join("etc/braid/monitor.toml");
    let changed = std::fs::read_to_string(&configuration).expect("a default") + "# changed\n";
    std::fs::write(&configuration, &changed).expect("a file");
    let upgraded = root.dpkg("--install", &second).ok();
    assert_eq!(std::fs::read_to_string(&configuration).expect("a file"), changed);
    assert!(upgraded.out.contains("braid down v && braid up v"), "{upgraded}");
    assert!(client.read(0, 1 << 20).expect("a read") == data, "its client is still served");
    assert_eq!(status()["pid"], pid);
    assert_eq!(status()["program_replaced"], true);
    let text = root.braid(&["status", "v"]).run().ok();
    assert!(text.out.contains("replaced since"), "{text}");

    // The package is not taken from under it.
    let refused = root.dpkg("--remove", Path::new("braid"));
    refused.fails(1, &["not removed while volumes are up", "next: braid down v"]);
    assert!(is_alive(pid) && client.read(0, 1 << 20).expect("a read") == data);
    assert_eq!(root.files().iter().filter(|file| *file == "usr/bin/braid").count(), 1);
    root.braid(&["status", "v"]).run().ok();
    drop(client);
    root.braid(&["down", "v"]).run().ok();
    wait_until("the end of its process", || !is_alive(pid));

    // One that has no name here counts, too.
    let uri = format!("unix:{}", scratch.join("served").display());
    let mut served = root.braid(&["serve", "ram(1M)", "--nbd", &uri]).into_command();
    served.stdout(std::process::Stdio::null());
    let mut child = common::start(&mut served).expect("a process");
    wait_until("a volume in the foreground", || scratch.join("served").exists());
    let refused = root.dpkg("--remove", Path::new("braid"));
    let _ = (child.kill(), child.wait());
    refused.fails(
        1,
        &["not removed while volumes are up", &format!("process {}", child.id()), "serve"],
    );

    // With its volumes down it goes, and what they are made of stays.
    root.dpkg("--remove", Path::new("braid")).ok();
    let record = "etc/braid/v.toml".to_owned();
    assert!(root.files().contains(&record) && configuration.exists());
    let purged = root.dpkg("--purge", Path::new("braid")).ok();
    assert!(purged.out.contains("etc/braid is not empty"), "{purged}");
    assert!(root.files().contains(&record), "a volume is not the package's");
    assert!(!configuration.exists());

    // Without any, nothing is left.
    std::fs::remove_file(root.root.join(&record)).expect("a record");
    root.dpkg("--install", &second).ok();
    root.dpkg("--purge", Path::new("braid")).ok();
    assert_eq!(root.files(), before);
    let left =
        ["usr", "etc", "run/braid", "lib", "opt"].map(|folder| root.root.join(folder).exists());
    assert_eq!(left, [false; 5], "folders are left: {:?}", std::fs::read_dir(&root.root));
}
