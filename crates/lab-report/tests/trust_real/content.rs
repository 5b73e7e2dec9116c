//! The data that tools write, and their size on compressing devices.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use braid_lab::campaign::{FileSystem, Setup};
use braid_lab::command::{Exit, Step, Target};
use braid_lab::evidence::Watch;
use braid_lab::metric::Metric;
use braid_lab::settings::Settings;
use braid_lab::story::Story;
use braid_lab::tool::source::make_source;
use braid_lab::tool::{Content, TrialSpec, find};
use braid_lab_report::trust::Standing;

use braid_lab::{StopFlag, SystemWorld, World};

use crate::campaign::{Lab, leave};
use crate::machine::{Loop, MIB, Mounted, alone, has, watch};
use crate::runs::{dd, found, workload};

const LONGEST: Duration = Duration::from_secs(300);
/// The unit of zram's compression, and the smallest one of a file system.
const PAGE: usize = 4096;
/// The number of examined pages.
const PAGES: usize = 48;

/// The size of some bytes when each page is compressed by itself, in percent.
fn percent_kept(bytes: &[u8]) -> f64 {
    let pages: Vec<&[u8]> = bytes.chunks_exact(PAGE).collect();
    assert!(!pages.is_empty(), "there is not a page of data");
    let step = pages.len().div_ceil(PAGES);
    let some: Vec<&&[u8]> = pages.iter().step_by(step).collect();
    let kept: usize = some.iter().map(|page| compressed(page).min(PAGE)).sum();
    100.0 * kept as f64 / (some.len() * PAGE) as f64
}

/// By gzip, without its header and trailer.
fn compressed(page: &[u8]) -> usize {
    let mut gzip = Command::new("gzip");
    let mut child = gzip.arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(page).unwrap();
    child.wait_with_output().unwrap().stdout.len() - 18
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files_below(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

/// A tool and a setting of it, as a campaign writes it.
fn settings(tool: &str, values: &str) -> Settings {
    let tool = find(tool).unwrap();
    let table: toml::Table = values.parse().unwrap();
    table.into_iter().fold(Settings::defaults(tool.parameters()), |settings, (name, value)| {
        let parameter = tool.parameters().iter().find(|known| known.name == name).unwrap();
        settings.with(&name, parameter.check(&value).unwrap())
    })
}

/// Runs a tool in a folder as the runner does, and gives what it left there before it cleans up.
/// `None`, saying so, where it is not installed. bonnie++ takes its file away itself, so what is
/// there is also collected while it runs.
fn left_by(name: &str, settings: &Settings, parent: &Path) -> Option<Vec<u8>> {
    let tool = find(name).unwrap();
    let mut world = SystemWorld::new();
    let stop = StopFlag::default();
    if world.run(&tool.version_command(), LONGEST, &stop).is_err() {
        println!("skipped: {name} is not installed (apt install {})", tool.about().package);
        return None;
    }
    let (scratch, sources) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    if let Some(data) = tool.work(settings, 1).source {
        make_source(data, sources.path(), 1, &stop, &mut world).unwrap();
    }
    let folder = world.make_folder(parent).unwrap();
    let target = Target::Folder(folder.clone());
    let spec = TrialSpec {
        settings,
        target: &target,
        processes: 1,
        region_bytes: 16 * MIB,
        room_bytes: 16 * MIB,
        runtime_s: 0.5,
        ramp_s: 0.0,
        seed: 3,
        scratch: scratch.path(),
        sources: sources.path(),
    };
    let script = tool.plan(&spec).unwrap();
    let carry_out = |world: &mut SystemWorld, steps: &[Step]| {
        for step in steps {
            world.perform(step, LONGEST, &stop).unwrap();
        }
    };
    carry_out(&mut world, &script.prepare);
    carry_out(&mut world, &script.warm);
    let all = || -> Vec<u8> {
        files_below(&folder)
            .iter()
            .map(|path| fs::read(path).unwrap_or_default())
            .collect::<Vec<_>>()
            .concat()
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    let (ended, seen) = std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let mut most = Vec::new();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let now = all();
                most = if now.len() > most.len() { now } else { most };
            }
            most
        });
        let ended = world.run_all(&script.measured, LONGEST, &stop, &mut Story::none());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        (ended.unwrap(), collector.join().unwrap())
    });
    for process in &ended {
        assert_eq!(process.exit, Exit::Code(0), "{name}: {}{}", process.stdout, process.stderr);
    }
    let after = all();
    carry_out(&mut world, &script.clean_up);
    world.remove_folder(&folder, true).unwrap();
    Some(if after.len() >= PAGE { after } else { seen })
}

/// Each tool against what it says of its data.
#[test]
fn tools_write_what_they_say() {
    let _turn = alone();
    if !has("gzip", "gzip") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, values) in [
        ("fio", "op = \"write\"\npattern = \"seq\"\nblock_size = \"64K\"\ndirect = false"),
        ("fio", "op = \"write\"\npattern = \"rand\"\nblock_size = \"4K\"\ndirect = false"),
        ("fio", "op = \"read\"\npattern = \"seq\"\ndirect = false"),
        (
            "fio",
            "op = \"write\"\npattern = \"seq\"\nblock_size = \"64K\"\ndirect = false\ncompressible = 50",
        ),
        (
            "fio",
            "op = \"write\"\npattern = \"seq\"\nblock_size = \"64K\"\ndirect = false\ncompressible = 100",
        ),
        ("dd", "op = \"write\"\nsize = \"4M\""),
        ("dd", "op = \"write\"\nsize = \"4M\"\nsource = \"file\""),
        ("dd", "op = \"read\"\nsize = \"4M\""),
        ("bonnie", "size = \"16M\"\nfiles = 0\nper_char = false"),
        ("bonnie", "size = \"4M\"\nfiles = 0"),
        ("sysbench", "mode = \"seqrd\"\ntotal_size = \"4M\"\nfiles = 2\ndirect = false"),
        ("sysbench", "mode = \"rndwr\"\ntotal_size = \"4M\"\nfiles = 2\ndirect = false"),
        ("untar", "size = \"4M\""),
        ("cp-tree", "size = \"4M\""),
        ("cp-cached", "size = \"4M\""),
        ("cp-read", "size = \"4M\""),
    ] {
        let settings = settings(name, values);
        let Some(bytes) = left_by(name, &settings, dir.path()) else { continue };
        let gone = 100.0 - percent_kept(&bytes);
        let content = find(name).unwrap().work(&settings, 1).content;
        println!("{name} {values:?}: {content:?}, {gone:.0} % of {} bytes", bytes.len());
        let holds = match content {
            // fio's generator of noise leaves a tenth.
            Content::Random => gone <= 15.0,
            Content::Compressible(percent) | Content::Text(percent) => {
                (gone - percent as f64).abs() <= 10.0
            }
            Content::Constant => gone >= 95.0,
        };
        assert!(holds, "{name} {values:?}: {content:?}, but {gone:.0} % compress away");
    }
}

/// The value of one repetition of a tool on ext4 upon a compressed RAM disk.
#[test]
fn constant_data_on_a_compressed_ram_disk() {
    let _turn = alone();
    for (job, expected) in [
        ("tool = \"sysbench\"\nmode = \"seqwr\"\ntotal_size = \"8M\"\nfiles = 2", true),
        ("tool = \"sysbench\"\nmode = \"seqrd\"\ntotal_size = \"8M\"\nfiles = 2", true),
        ("tool = \"bonnie\"\nsize = \"8M\"\nfiles = 0\nper_char = false", true),
        ("tool = \"dd\"\nop = \"write\"\nsize = \"8M\"", true),
        ("tool = \"dd\"\nop = \"write\"\nsize = \"8M\"\nsource = \"file\"", false),
    ] {
        let lab = Lab::on("zram = \"200M\"", 1, &format!("filesystem = \"ext4\"\n{job}"));
        let tally = lab.run(Path::new("/sys"), leave);
        if tally.measured == 0 {
            println!("skipped: {job:?} on zram: {:?}", lab.results().trials);
            continue;
        }
        let finding = lab.found("compressible");
        let standing = finding.map(|finding| finding.standing);
        assert_eq!(standing, expected.then_some(Standing::Invalid), "{job}");
    }
}

#[test]
fn zeros_on_a_compressing_file_system() {
    let _turn = alone();
    if !has("mkfs.btrfs", "btrfs-progs") {
        return;
    }
    if !fs::read_to_string("/proc/filesystems").unwrap().contains("\tbtrfs\n") {
        println!("skipped: this kernel has no btrfs");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    fs::File::create(&file).unwrap().set_len(512 * MIB).unwrap();
    let Some(device) = Loop::attach(&file, true) else { return };
    let zeros = |options: &str| {
        let mounted = Mounted::mount("btrfs", options, &device, &dir.path().join("mnt"));
        let watch = Watch { mountpoint: Some(mounted.0.clone()), ..watch(&device, &file) };
        let of = format!("of={}", mounted.0.join("zeros").display());
        let args = ["if=/dev/zero", &of, "bs=1M", "count=64", "conv=fsync"];
        let run = dd(&watch, Metric::BytesWritten, 64 * MIB, &args);
        let btrfs = Setup { filesystem: FileSystem::Btrfs, ..Setup::default() };
        found(&workload("dd", false, btrfs), &file, run, "compressible")
    };
    let finding = zeros("compress=zstd").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("compress=zstd"), "{finding:?}");
    assert_eq!(zeros(""), None);
}
