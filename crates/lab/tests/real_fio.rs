//! A short campaign with the real fio on a temporary file. Skipped, saying so, without fio.

use std::path::PathBuf;

use braid_lab::campaign::parse_campaign;
use braid_lab::store::Store;
use braid_lab::tool::Metric;
use braid_lab::{LabOptions, StopFlag};

fn has_fio() -> bool {
    let found = std::process::Command::new("fio").arg("--version").output().is_ok();
    if !found {
        println!("skipped: fio is not installed (apt install fio)");
    }
    found
}

fn options(dir: &std::path::Path, destroy: Vec<PathBuf>) -> LabOptions {
    LabOptions {
        destroy,
        quiet: true,
        stop: StopFlag::default(),
        ..LabOptions::new(dir.join("results")).unwrap()
    }
}

#[test]
fn a_file_is_measured_with_real_fio() {
    if !has_fio() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("with:colon.img");
    std::fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let text = format!(
        "name = \"file\"\nrepetitions = 1\nruntime_s = 0.1\nregion = \"4M\"\n\
         [[subject]]\nname = \"file\"\npath = {:?}\nbaseline = true\n\
         [[job]]\npattern = \"rand\"\nop = [\"read\", \"write\"]\nblock_size = \"4K\"\ndirect = false\n",
        image.display().to_string()
    );
    let campaign = parse_campaign(&text, "test").unwrap();
    let refused = braid_lab::run(&campaign, &options(dir.path(), Vec::new())).unwrap_err();
    assert!(refused.to_string().contains("--destroy"), "{refused}");

    let summary = braid_lab::run(&campaign, &options(dir.path(), vec![image.clone()])).unwrap();
    assert_eq!(summary.tally.unwrap().measured, 2, "{}", summary.table);
    assert!(summary.html.is_file());
    assert_eq!(std::fs::metadata(&image).unwrap().len(), 4 << 20, "fio must not grow the file");
    let store = Store::open(&dir.path().join("results")).unwrap();
    for (trial, samples) in store.trials().unwrap() {
        let iops = samples.iter().find(|sample| sample.metric == Metric::Iops).unwrap();
        assert!(iops.value > 0.0, "{trial:?}");
    }
}

/// A server that is stopped even when the test fails.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().expect("nbdkit can be killed");
        self.0.wait().expect("nbdkit can be waited for");
    }
}

#[test]
fn an_nbd_server_is_measured_with_real_fio() {
    if !has_fio() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s.sock");
    let started = std::process::Command::new("nbdkit")
        .args(["memory", "8M", "-f", "-U"])
        .arg(&socket)
        .spawn();
    let Ok(child) = started else {
        println!("skipped: nbdkit is not installed (apt install nbdkit)");
        return;
    };
    let _server = Server(child);
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    // Ready as soon as it answers; a minute is for a machine that is very busy.
    let ready = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        braid_lab::nbd::query_size(&uri).is_ok_and(|size| size == 8 << 20)
    });
    assert!(ready, "nbdkit does not answer");
    let text = format!(
        "name = \"nbd\"\nrepetitions = 1\nruntime_s = 0.1\nregion = \"4M\"\n\
         [[subject]]\nname = \"memory\"\nnbd = {uri:?}\nbaseline = true\n\
         [[job]]\npattern = \"seq\"\nop = \"write\"\nblock_size = \"64K\"\nprocesses = 2\n"
    );
    let campaign = parse_campaign(&text, "test").unwrap();
    let destroy = vec![PathBuf::from(&uri)];
    let summary = braid_lab::run(&campaign, &options(dir.path(), destroy)).unwrap();
    assert_eq!(summary.tally.unwrap().measured, 1, "{}", summary.table);
}

#[test]
fn stacks_are_served_and_leave_nothing_behind() {
    let no_nbdkit = std::process::Command::new("nbdkit").arg("--version").output().is_err();
    if !has_fio() || no_nbdkit {
        println!("skipped: fio or nbdkit is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Both have the path, so they take turns although the stand-in opens nothing.
    let shared = dir.path().join("a.img");
    std::fs::write(&shared, b"").unwrap();
    let text = format!(
        "name = \"stacks\"\nrepetitions = 2\nruntime_s = 0.1\nregion = \"1M\"\n\
         [[subject]]\nname = \"single\"\nstack = {0:?}\nbaseline = true\n\
         [[subject]]\nname = \"two\"\nstack = \"linear({0}, ram(8M))\"\n\
         [[job]]\npattern = \"rand\"\nop = \"read\"\nblock_size = \"4K\"\n",
        shared.display().to_string()
    );
    let campaign = parse_campaign(&text, "test").unwrap();
    let mut options = options(dir.path(), Vec::new());
    options.braid_binary =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/serve-with-nbdkit.sh"));
    let summary = braid_lab::run(&campaign, &options).unwrap();
    assert_eq!(summary.tally.unwrap().measured, 4, "{}", summary.table);
    let store = Store::open(&dir.path().join("results")).unwrap();
    for facts in store.subjects().unwrap() {
        let socket = facts.serve_command.unwrap().rsplit_once("unix:").unwrap().1.to_owned();
        assert!(!std::path::Path::new(&socket).exists(), "{socket} was left");
    }
    let again = braid_lab::run(&campaign, &options).unwrap().tally.unwrap();
    assert_eq!((again.skipped, again.measured), (4, 0));
}

#[test]
fn a_server_that_refuses_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    if !has_fio() {
        return;
    }
    let subjects = [("two".to_owned(), "linear(ram(8M), ram(8M))".to_owned())];
    let campaign = braid_lab::quick_campaign("ram(8M)", &subjects).unwrap();
    let mut options = options(dir.path(), Vec::new());
    options.braid_binary = PathBuf::from("ls");
    let error = braid_lab::run(&campaign, &options).unwrap_err().to_string();
    assert!(error.contains("ended before it was ready: exit status 2"), "{error}");
    assert!(error.contains("| ls: "), "{error}");
}
