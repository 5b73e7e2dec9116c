//! Failures at any moment: no data is lost, nothing is left behind, and the message helps.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use braid_lab::store::Store;
use rustix::process::Signal;

use super::{Lab, read, tally};
use crate::common::{
    LoopDevice, Mounted, Scratch, Tool, is_alive, send_signal, skip_unless_root, skip_without,
    start, wait_until, with_files_open,
};

/// Two subjects in memory, four cells, so many repetitions. Page caches are kept: dropping them delays every
/// test of the machine.
fn campaign(repetitions: u32, runtime_s: f64) -> String {
    format!(
        "name = \"small\"\nrepetitions = {repetitions}\nruntime_s = {runtime_s}\nregion = \"8M\"\n\
         drop_caches = false\n\
         [[subject]]\nname = \"single\"\nstack = \"ram(32M)\"\nbaseline = true\n\
         [[subject]]\nname = \"stripe\"\nstack = \"raid0(ram(32M), ram(32M))\"\n\
         [[job]]\npattern = \"rand\"\nop = [\"read\", \"write\"]\nblock_size = \"4K\"\n"
    )
}

/// Half of the cells of [`campaign`].
fn writes_of(campaign: &str) -> String {
    campaign.replace("[\"read\", \"write\"]", "\"write\"")
}

/// A program of this name that is a shell script, in a folder of its own.
fn impostor(scratch: &Scratch, name: &str, script: &str) -> String {
    let folder = scratch.join("impostors");
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
    };
    with_files_open(write).expect("a script can be written");
    format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.display())
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Starts a run, waits until three trials are saved, which are of more than one workload in whatever order, and
/// sends signals.
fn end_in_the_middle(lab: &Lab, file: &str, more: &[&str], signals: &[Signal]) {
    let results = lab.results().display().to_string();
    let tool = lab.tool(&["run", file, "--out", &results, "--quiet"]).args(more);
    let mut command = tool.into_command();
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = start(&mut command).expect("braid can be started");
    let raw = lab.results().join("raw");
    // A trial's raw files are there before its row: with those of a fourth, three have rows.
    let saved = || std::fs::read_dir(&raw).map_or(0, Iterator::count) >= 4;
    wait_until("three trials are saved", || {
        let ended = child.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "it has ended by itself: {ended:?}");
        saved()
    });
    let children = children_of(child.id());
    for signal in signals {
        send_signal(child.id(), *signal);
    }
    child.wait().expect("it ends");
    if signals.contains(&Signal::KILL) {
        // A killed run can take nothing away, but its notes say what it had.
        assert!(lab.results().join("held.json").is_file(), "nothing is noted");
        return;
    }
    for pid in children {
        assert!(!is_alive(pid), "process {pid} was left");
    }
    lab.assert_nothing_is_left(&lab.results());
}

#[test]
fn interrupted_and_killed_runs_go_on_where_they_were() {
    skip_without!("fio");
    // A terminal that closes sends SIGHUP.
    at_once([Signal::INT, Signal::HUP, Signal::KILL], |signal| {
        let lab = Lab::new();
        let file = lab.campaign(&campaign(2, 0.1));
        end_in_the_middle(&lab, &file, &[], &[signal]);
        let results = lab.results().display().to_string();
        lab.run(&["resume", &results, "--quiet"]).ok();
        let found = tally(&lab.results());
        assert_eq!((found.measured, found.planned, found.sessions), (8, 8, 2), "{found:?}");
        lab.assert_nothing_is_left(&lab.results());
    });
}

/// Checks all cases beside each other: most of a trial is waiting.
fn at_once<T: Send, const N: usize>(cases: [T; N], check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| check(case));
        }
    });
}

/// `timeout` signals the process, and the group in which that is; a terminal and a service manager
/// may both have their say.
#[test]
fn what_is_told_to_end_twice_at_once_puts_everything_down() {
    skip_without!("fio");
    let lab = Lab::new();
    let file = lab.campaign(&campaign(5, 0.2));
    // Two of one kind could arrive as one.
    end_in_the_middle(&lab, &file, &[], &[Signal::TERM, Signal::INT]);
}

/// `braid lab run … 2>&1 | head -1`: a closed output is no reason to leave volumes behind.
#[test]
fn a_run_goes_on_when_nobody_reads_what_it_says() {
    skip_without!("fio");
    let lab = Lab::new();
    let file = lab.campaign(&campaign(1, 0.1));
    let results = lab.results().display().to_string();
    let mut command = lab.tool(&["run", &file, "--out", &results]).into_command();
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let both = writer.try_clone().expect("a pipe has two ends");
    command.stdout(both).stderr(writer);
    let status = start(&mut command).expect("braid can be started").wait().expect("it ends");
    assert!(status.success(), "{status}");
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.planned, found.sessions), (4, 4, 1), "{found:?}");
    lab.assert_nothing_is_left(&lab.results());
}

#[test]
fn who_ignores_a_hangup_is_not_stopped_by_it() {
    skip_without!("fio", "nohup");
    let lab = Lab::new();
    let file = lab.campaign(&campaign(2, 0.1));
    let results = lab.results().display().to_string();
    let braid = lab.tool(&["run", &file, "--out", &results, "--quiet"]).into_command();
    let mut command = std::process::Command::new("nohup");
    command.arg(braid.get_program()).args(braid.get_args());
    command.envs(braid.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(lab.scratch.path());
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = start(&mut command).expect("braid can be started");
    wait_until("a trial is saved", || {
        std::fs::read_dir(lab.results().join("raw")).map_or(0, Iterator::count) > 0
    });
    send_signal(child.id(), Signal::HUP);
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.planned), (8, 8), "{found:?}");
}

/// An exit status of 0 would say that there are numbers.
#[test]
fn a_run_that_can_measure_nothing_fails_and_says_why() {
    skip_without!("fio");
    let lab = Lab::new();
    let file = lab.campaign(&format!("{}health = \"degraded\"\n", campaign(1, 0.2)));
    let results = lab.results().display().to_string();
    lab.run(&["plan", &file]).ok();
    for _ in 0..2 {
        let run = lab.run(&["run", &file, "--out", &results, "--quiet"]);
        run.fails(1, &["nothing could be measured", "4 × it is not an array that survives"]);
    }
    lab.assert_nothing_is_left(&lab.results());
}

/// Nested and mixed arrays too: what is left out is not named to be overwritten.
#[test]
fn an_array_of_arrays_is_measured_without_one_of_its_members() {
    skip_unless_root!();
    skip_without!("fio");
    let lab = Lab::new();
    let images =
        ["a.img", "b.img", "c.img", "d.img"].map(|name| lab.scratch.sparse(name, 32 << 20));
    let [a, b, c, d] = images.map(|path| path.display().to_string());
    let text = format!(
        "name = \"nested\"\nrepetitions = 1\nruntime_s = 0.2\nregion = \"4M\"\n\
         [[subject]]\nname = \"nested\"\nstack = \"raid0(raid1({a}, {b}), raid1({c}, {d}))\"\n\
         [[job]]\npattern = \"rand\"\nop = \"write\"\nhealth = [\"healthy\", \"degraded\"]\n"
    );
    let file = lab.campaign(&text);
    let results = lab.results().display().to_string();
    let destroy = [&a, &b, &c, &d].map(|path| ["--destroy", path.as_str()]).concat();
    let words = [&["run", &file, "--out", &results, "--quiet"], &destroy[..]].concat();
    lab.run(&words).ok();
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.planned), (2, 2), "{found:?}");
    lab.assert_nothing_is_left(&lab.results());
}

/// A volume that is attached, a loop device, a file system on each: all that a run can hold.
#[test]
fn what_a_killed_run_has_left_is_taken_away_by_the_next() {
    skip_unless_root!();
    skip_without!("fio", "losetup", "mkfs.ext4");
    at_once([true, false], kill_and_go_on);
}

/// The note of a volume may be missing: of one that was just coming up, in results of earlier
/// versions.
fn kill_and_go_on(is_volume_noted: bool) {
    let lab = Lab::new();
    let images = ["a.img", "b.img", "c.img"].map(|name| lab.scratch.sparse(name, 48 << 20));
    let [a, b, c] = images.map(|path| path.display().to_string());
    let text = format!(
        "name = \"held\"\nrepetitions = 3\nruntime_s = 0.1\nregion = \"4M\"\n\
         drop_caches = false\ncontrol = false\n\
         [[subject]]\nname = \"mirror\"\nstack = \"raid1({a}, {b})\"\n\
         [[subject]]\nname = \"bare\"\npath = \"{c}\"\nbaseline = true\n\
         [[job]]\npattern = \"rand\"\nop = \"write\"\nfilesystem = \"ext4\"\n"
    );
    let file = lab.campaign(&text);
    let destroy = [&a, &b, &c].map(|path| ["--destroy", path.as_str()]).concat();
    end_in_the_middle(&lab, &file, &destroy, &[Signal::KILL]);
    let noted = read(&lab.results().join("held.json"));
    for kind in ["volume", "loop", "superblocks", "folder"] {
        assert!(noted.contains(&format!("\"kind\": \"{kind}\"")), "{kind}: {noted}");
    }
    if !is_volume_noted {
        let mut notes: serde_json::Value = serde_json::from_str(&noted).expect("notes are JSON");
        let all = notes["notes"].as_array_mut().expect("notes are a list");
        all.retain(|note| note["kind"] != "volume");
        with_files_open(|| std::fs::write(lab.results().join("held.json"), notes.to_string()))
            .expect("notes can be written");
    }
    let results = lab.results().display().to_string();
    let words = [&["resume", &results, "--quiet"], &destroy[..]].concat();
    let resumed = lab.run(&words).ok();
    assert!(resumed.err.contains("an earlier run was killed here"), "{resumed}");
    assert!(!resumed.err.contains("warning"), "{resumed}");
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.planned), (6, 6), "{found:?}");
    if !is_volume_noted {
        // The volume has ended, but its name was not noted, so its log was not put away.
        for name in names_in(&lab.scratch.join("run")) {
            assert!(name.ends_with(".log"), "{name} is left");
            std::fs::remove_file(lab.scratch.join("run").join(name)).expect("it can be removed");
        }
    }
    lab.assert_nothing_is_left(&lab.results());
    // What lay beside the results, for instance in memory, has gone too.
    let noted: serde_json::Value = serde_json::from_str(&noted).expect("notes are JSON");
    for note in noted["notes"].as_array().expect("notes are a list") {
        if let Some(path) = note["path"].as_str() {
            assert!(!Path::new(path).exists(), "{path} is there");
        }
    }
}

#[test]
fn a_tool_that_is_missing_is_named_with_its_package_and_the_rest_runs() {
    skip_without!("fio");
    let lab = Lab::new();
    let file = lab.campaign(&format!(
        "{}[[job]]\ntool = \"sysbench\"\nmode = \"rndrd\"\ntotal_size = \"8M\"\n",
        campaign(1, 0.2)
    ));
    let results = lab.results().display().to_string();
    let path = impostor(&lab.scratch, "fio", "exec /usr/bin/fio \"$@\"");
    let only = path.split(':').next().expect("a folder").to_owned();
    // Only what is linked here can be found.
    for program in ["env", "losetup", "blockdev", "mkfs.ext4", "mount", "umount"] {
        let real = crate::common::find_program(program).expect("a basic program");
        let link = Path::new(&only).join(program);
        std::os::unix::fs::symlink(real, link).expect("a link can be made");
    }
    let output = lab.tool(&["run", &file, "--out", &results, "--quiet"]).env("PATH", &only).run();
    output.fails(1, &["sysbench cannot be started", "apt-get install sysbench"]);
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.failed.len()), (4, 2), "{found:?}");
}

#[test]
fn tools_that_crash_or_print_garbage_fail_their_trials_alone() {
    skip_without!("fio");
    let version = "case \"$*\" in *--version*) exec /usr/bin/fio --version;; esac";
    let cases = [
        ("kill -SEGV $$", "killed by signal 11"),
        ("echo 'fio: out of tapes' >&2; exit 3", "out of tapes"),
        ("head -c 100000 /dev/urandom", "not its output format"),
        ("echo '{\"jobs\": [{\"name\": 7}]}'", "not its output format"),
        ("echo '{\"fio version\": \"fio-9\", \"tasks\": []}'", "not its output format"),
        (":", "not its output format"),
    ];
    at_once(cases, |(script, expected)| {
        let lab = Lab::new();
        let file = lab.campaign(&writes_of(&campaign(1, 0.1)));
        let results = lab.results().display().to_string();
        let path = impostor(&lab.scratch, "fio", &format!("{version}\n{script}"));
        let run = lab.tool(&["run", &file, "--out", &results, "--quiet"]).env("PATH", &path).run();
        run.fails(1, &[expected]);
        // With the real one, the same folder is completed.
        lab.run(&["resume", &results, "--quiet"]).ok();
        let found = tally(&lab.results());
        assert_eq!((found.measured, found.planned), (2, 2), "after {script}: {found:?}");
    });
}

/// A child in a session of its own is in no group that is ended with the tool.
#[test]
fn what_a_tool_leaves_in_another_group_is_ended_with_the_run() {
    skip_without!("fio", "setsid");
    let lab = Lab::new();
    let file = lab.campaign(&writes_of(&campaign(1, 0.1)));
    let results = lab.results().display().to_string();
    let pid = lab.scratch.join("pid");
    let script = format!(
        "case \"$*\" in *--version*) exec /usr/bin/fio --version;; esac\n\
         setsid sleep 1000 >/dev/null 2>&1 & echo $! > {}\nexec /usr/bin/fio \"$@\"",
        pid.display()
    );
    let path = impostor(&lab.scratch, "fio", &script);
    lab.tool(&["run", &file, "--out", &results, "--quiet"]).env("PATH", &path).run().ok();
    let command_line = format!("/proc/{}/cmdline", read(&pid).trim());
    // One that has ended and was not waited for has no command line any more.
    let left = std::fs::read(command_line).unwrap_or_default();
    assert!(left.is_empty(), "{} is there", String::from_utf8_lossy(&left));
}

#[test]
fn a_full_results_disk_stops_the_run_and_it_goes_on_when_there_is_room() {
    skip_unless_root!();
    skip_without!("fio");
    let lab = Lab::new();
    let Some(small) = Mounted::tmpfs(&lab.scratch.join("small"), 256 << 10) else { return };
    let results = small.point().join("results").display().to_string();
    let file = lab.campaign(&campaign(2, 0.1));
    let output = lab.run(&["run", &file, "--out", &results, "--quiet"]);
    assert_eq!(output.code(), 1, "{output}");
    assert!(
        output.err.contains("No space left") || output.err.contains("disk is full"),
        "{output}"
    );
    small.resize(64 << 20);
    lab.run(&["resume", &results, "--quiet"]).ok();
    let found = tally(Path::new(&results));
    assert_eq!((found.measured, found.planned), (8, 8), "{found:?}");
}

#[test]
fn a_device_that_goes_fails_its_own_trials() {
    skip_unless_root!();
    skip_without!("fio", "losetup");
    let lab = Lab::new();
    let image = lab.scratch.sparse("a.img", 32 << 20);
    let text = campaign(2, 0.2).replace("raid0(ram(32M), ram(32M))", &image.display().to_string());
    let file = lab.campaign(&text);
    let results = lab.results().display().to_string();
    // It goes when the second repetition begins: fio's impostor takes it away.
    let script = format!(
        "n=$(cat {dir}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {dir}/n\n\
         [ $n -lt 8 ] || rm -f {image}\nexec /usr/bin/fio \"$@\"",
        dir = lab.scratch.path().display(),
        image = image.display()
    );
    let path = impostor(&lab.scratch, "fio", &script);
    let image = image.display().to_string();
    let words = ["run", &file, "--out", &results, "--quiet", "--destroy", &image];
    let output = lab.tool(&words).env("PATH", &path).run();
    assert!([0, 1].contains(&output.code()), "{output}");
    let found = tally(&lab.results());
    assert_eq!(found.planned, 8);
    assert!(found.measured >= 4, "{found:?}: {output}");
}

/// Starts a run of a campaign; `while_it_runs` is called when its first trial is saved.
fn beside_a_run(lab: &Lab, file: &str, destroy: &str, while_it_runs: impl FnOnce(&Path)) {
    let out = lab.scratch.join("first");
    let words = ["run", file, "--out", &out.display().to_string(), "--quiet", "--destroy", destroy];
    let mut command = lab.tool(&words).into_command();
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = start(&mut command).expect("braid can be started");
    wait_until("the first trial is saved", || {
        let ended = child.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "it has ended by itself: {ended:?}");
        std::fs::read_dir(out.join("raw")).map_or(0, Iterator::count) > 0
    });
    while_it_runs(&out);
    send_signal(child.id(), Signal::INT);
    child.wait().expect("it ends");
}

/// A campaign with one subject.
fn campaign_on(subject: &str) -> String {
    format!(
        "name = \"one\"\nrepetitions = 200\nruntime_s = 0.3\nregion = \"8M\"\n\
         [[subject]]\nname = \"it\"\n{subject}\nbaseline = true\n\
         [[job]]\npattern = \"rand\"\nop = [\"read\", \"write\"]\n"
    )
}

fn refuses(lab: &Lab, subject: &str, named: &str, out: &Path) {
    let file = lab.scratch.join("second.toml");
    with_files_open(|| std::fs::write(&file, campaign_on(subject))).expect("a file");
    let words = ["run", &file.display().to_string(), "--out", &out.display().to_string()];
    lab.tool(&words).args(["--quiet", "--destroy", named]).run().fails(3, &["another run uses"]);
}

#[test]
fn two_runs_on_one_device_are_refused() {
    skip_without!("fio");
    let lab = Lab::new();
    let image = lab.scratch.sparse("a.img", 32 << 20);
    let link = lab.scratch.join("hard.img");
    std::fs::hard_link(&image, &link).expect("a link can be made");
    let (image, link) = (image.display().to_string(), link.display().to_string());
    let file = lab.campaign(&campaign_on(&format!("stack = \"{image}\"")));
    beside_a_run(&lab, &file, &image, |first| {
        let second = lab.scratch.join("second");
        for name in [&image, &link] {
            refuses(&lab, &format!("stack = \"raid0({name}, ram(32M))\""), name, &second);
            refuses(&lab, &format!("path = \"{name}\""), name, &second);
        }
        // The folder, too, though the campaign is the same.
        let words = ["run", &file, "--out", &first.display().to_string(), "--destroy", &image];
        lab.run(&words).fails(3, &["another run uses"]);
    });
}

#[test]
fn two_runs_on_a_loop_device_and_its_file_are_refused() {
    skip_unless_root!();
    skip_without!("fio", "losetup");
    let lab = Lab::new();
    let image = lab.scratch.sparse("a.img", 32 << 20);
    let Some(device) = LoopDevice::attach(&image) else { return };
    let image = image.display().to_string();
    let file = lab.campaign(&campaign_on(&format!("path = \"{}\"", device.text())));
    beside_a_run(&lab, &file, device.text(), |_| {
        let second = lab.scratch.join("second");
        refuses(&lab, &format!("path = \"{image}\""), &image, &second);
    });
}

#[test]
fn two_runs_on_one_export_are_refused() {
    skip_without!("fio");
    let lab = Lab::new();
    let volume = lab.scratch.serve("ram(32M)", &[]);
    let uri = volume.uri().to_owned();
    let file = lab.campaign(&campaign_on(&format!("nbd = \"{uri}\"")));
    beside_a_run(&lab, &file, &uri, |_| {
        refuses(&lab, &format!("nbd = \"{uri}\""), &uri, &lab.scratch.join("second"));
    });
}

/// A relative path is relative to the folder where the campaign was begun, wherever it is resumed.
#[test]
fn going_on_from_another_folder_measures_the_same_files() {
    skip_without!("fio");
    let lab = Lab::new();
    let [c1, c2] = ["c1", "c2"].map(|name| lab.scratch.join(name));
    for (folder, size) in [(&c1, 32 << 20), (&c2, 48 << 20)] {
        std::fs::create_dir(folder).expect("a folder can be made");
        lab.scratch.sparse(&folder.join("x.img").display().to_string(), size);
    }
    let file = lab.campaign(
        "name = \"here\"\nrepetitions = 3\nruntime_s = 0.2\nregion = \"4M\"\n\
         [[subject]]\nname = \"x\"\nstack = \"./x.img\"\nbaseline = true\n\
         [[job]]\npattern = \"rand\"\nop = \"read\"\nblock_size = \"4K\"\n",
    );
    let results = lab.results().display().to_string();
    // All but the first trial fail.
    let script = format!(
        "case \"$*\" in *--version*) exec /usr/bin/fio --version;; esac\n\
         [ -e {once} ] && exit 3\ntouch {once}\nexec /usr/bin/fio \"$@\"",
        once = lab.scratch.join("once").display()
    );
    let path = impostor(&lab.scratch, "fio", &script);
    let words = ["run", &file, "--out", &results, "--quiet"];
    lab.tool(&words).folder(&c1).env("PATH", &path).run().fails(1, &["2 trials failed"]);

    let other = lab.tool(&words).folder(&c2).run();
    other.fails(3, &["relative to", &c1.display().to_string(), "braid lab resume"]);
    lab.tool(&["resume", &results, "--quiet"]).folder(&c2).run().ok();
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.planned), (3, 3), "{found:?}");
    let held =
        with_files_open(|| Store::open(&lab.results())?.results()).expect("there are results");
    assert_eq!(held.facts[0].size_bytes, Some(32 << 20));
    let measured = c1.join("x.img").display().to_string();
    assert_eq!(held.facts[0].members[0].member, measured);
    assert!(held.facts[0].commands.concat().contains(&measured), "{:?}", held.facts);
}

#[test]
fn results_go_where_nothing_else_is() {
    let lab = Lab::new();
    let text = format!("# mine\n{}", campaign(1, 0.2));
    let file = lab.campaign(&text);
    let before = names_in(lab.scratch.path());
    lab.run(&["run", &file, "--out", ".", "--format", "csv,md"])
        .fails(3, &["is not empty", "--out"]);
    assert_eq!(read(Path::new(&file)), text);
    assert_eq!(names_in(lab.scratch.path()), before);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder can be listed").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A run that has ended, and one that was killed with its log beside the database.
#[test]
fn results_can_be_looked_at_where_nothing_can_be_written() {
    skip_unless_root!();
    skip_without!("fio");
    let lab = Lab::new();
    let Some(disk) = Mounted::tmpfs(&lab.scratch.join("disk"), 64 << 20) else { return };
    let file = lab.campaign(&campaign(1, 0.4));
    let [ended, killed, torn] = ["ended", "killed", "torn"].map(|name| disk.point().join(name));
    let words = |out: &Path| {
        ["run", &file, "--quiet", "--out", &out.display().to_string()].map(String::from)
    };
    let ended_words = words(&ended);
    lab.run(&ended_words.each_ref().map(String::as_str)).ok();
    let file = lab.campaign(&campaign(2, 0.4));
    end_in_the_middle(&lab, &file, &[], &[Signal::KILL]);
    for copy in [&killed, &torn] {
        Tool::new("cp").arg("-r").arg(lab.results()).arg(copy).run().ok();
    }
    assert!(killed.join("results.sqlite-wal").exists(), "{:?}", names_in(&killed));
    std::fs::remove_file(torn.join("results.sqlite-shm")).expect("a file can be removed");
    Tool::new("mount").args(["-o", "remount,ro"]).arg(disk.point()).run().ok();

    let text = |path: &Path| path.display().to_string();
    let listed = lab.run(&["list", &text(disk.point())]).ok();
    assert!(listed.out.contains("4 of 4 trials"), "{listed}");
    assert!(listed.out.contains("of 8 trials"), "{listed}");
    assert!(listed.out.contains("copy the folder"), "{listed}");
    for folder in [&ended, &killed] {
        let shown = lab.run(&["show", &text(folder), "*read*"]).ok();
        assert!(shown.out.contains("fio "), "{shown}");
    }
    lab.run(&["compare", &text(&ended), &text(&ended)]).ok();
    // What is left of the killed one goes with the next run.
    lab.run(&["resume", &text(&lab.results()), "--quiet"]).ok();
}

#[test]
fn what_exists_is_not_overwritten() {
    let lab = Lab::new();
    let image = lab.scratch.file("precious.img", 1 << 20, 7);
    let before = lab.scratch.read("precious.img");
    let text = campaign(1, 0.2).replacen("ram(32M)", &image.display().to_string(), 1);
    let file = lab.campaign(&text);
    lab.run(&["run", &file]).fails(3, &["refused to overwrite", "--destroy"]);
    lab.run(&["plan", &file]).ok();
    assert_eq!(lab.scratch.read("precious.img"), before);
}

/// The word is all that changes: the same options, the same refusals, the same exit status.
#[test]
fn what_is_run_can_be_planned_by_changing_one_word() {
    skip_without!("fio");
    let lab = Lab::new();
    let image = lab.scratch.sparse("a.img", 32 << 20).display().to_string();
    let text = writes_of(&campaign(1, 0.1)).replacen("ram(32M)", &image, 1);
    let file = lab.campaign(&text);
    let results = lab.results().display().to_string();
    let rest = [
        file.as_str(),
        "--destroy",
        &image,
        "--out",
        &results,
        "--format",
        "md",
        "--quiet",
        "--repetitions",
        "2",
    ];
    let with = |word: &str| lab.run(&[&[word], &rest[..]].concat());
    let plan = with("plan").ok();
    assert!(plan.out.contains("as --destroy says") && !plan.out.contains("to agree"), "{plan}");
    assert!(!lab.results().exists(), "a plan writes nothing");
    with("run").ok();
    let again = with("plan").ok();
    assert!(again.out.contains("are measured already"), "{again}");
    // Another seed, or fewer repetitions, are another campaign, for both; more go on with it.
    for (word, other) in
        [("plan", "--seed"), ("run", "--seed"), ("plan", "--repetitions"), ("run", "--repetitions")]
    {
        lab.run(&[word, &file, "--destroy", &image, "--out", &results, other, "1"])
            .fails(3, &["already holds results of another campaign"]);
    }
    lab.run(&["plan", &file, "--destroy", &image, "--out", &results, "--repetitions", "3"]).ok();
    let resumed = ["resume", &results, "--repetitions", "3", "--destroy", &image, "--quiet"];
    lab.run(&resumed).ok();
    assert_eq!(tally(&lab.results()).measured, 6);
    lab.run(&["resume", &results, "--repetitions", "2", "--destroy", &image])
        .fails(2, &["has 3", "give more"]);
    std::fs::remove_file(&image).expect("an image");
    let elsewhere = lab.scratch.path().join("elsewhere").display().to_string();
    for word in ["plan", "run"] {
        let other = lab.run(&[word, &file, "--destroy", &image, "--out", &elsewhere]);
        other.fails(1, &["a.img does not exist; make it"]);
    }
    assert!(!std::path::Path::new(&elsewhere).exists());
}

#[test]
fn what_is_mistyped_is_named_with_what_was_meant() {
    let lab = Lab::new();
    let file = lab.campaign(&campaign(1, 0.2).replace("pattern", "patern"));
    lab.run(&["plan", &file]).fails(2, &["patern", "did you mean \"pattern\"?"]);
    lab.run(&["plan", "quik"]).fails(2, &["neither a file nor a preset"]);
    lab.run(&["plan", "rally2"]).fails(2, &["--member stick1=DEVICE", "--modelled"]);
    lab.run(&["report", "nowhere"]).fails(1, &["holds no results"]);
}

/// One that is right, one that fails in the middle of a pipe, and one that leaves a process behind which has the
/// file system open.
#[test]
fn a_command_is_timed_or_fails_with_its_own_words_and_leaves_nothing() {
    skip_unless_root!();
    skip_without!("losetup", "mkfs.ext4", "setsid");
    let lab = Lab::new();
    let image = lab.scratch.sparse("a.img", 48 << 20).display().to_string();
    let file = lab.campaign(&format!(
        "name = \"commands\"\nrepetitions = 1\nregion = \"4M\"\ndrop_caches = false\n\
         [[subject]]\nname = \"disk\"\npath = \"{image}\"\nbaseline = true\n\
         [[job]]\ntool = \"command\"\nprepare = \"seq 9 >{{folder}}/numbers\"\n\
         command = [\"sort -r numbers >sorted\", \"cat missing | sort\", \"setsid sleep 1000 & true\"]\n"
    ));
    let results = lab.results().display().to_string();
    lab.run(&["run", &file, "--destroy", &image, "--out", &results, "--quiet"])
        .fails(1, &["1 trial failed"]);
    let found = tally(&lab.results());
    assert_eq!((found.measured, found.failed.len()), (2, 1), "{found:?}");
    let why = &found.failed[0];
    assert!(why.contains("exit status 1") && why.contains("missing: No such file"), "{why}");
    lab.assert_nothing_is_left(&lab.results());
}
