//! Volumes with a cache beside the same without, each served at a socket.

use std::path::Path;
use std::time::Duration;

use braid_bench::args::Args;
use braid_bench::attached::{BraidUp, Loop};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::peer::{Folder, Server};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu, load};

use crate::add;

/// A disk with a seek and a rotation of 8 ms.
const DISK: &str = "model(usb-flash, size=1G, read=150MB/s, write=150MB/s, latency=8ms)";

/// The cache has room for all writes of a round, in memory and in the log.
const WRITE_BACK: &str = "size=1G, mode=write-back, dirty=768M, \
    log=model(usb-flash, size=1G, read=150MB/s, write=150MB/s, latency=8ms)";

/// The cache stands before one half of the disk; the other half is its log.
const HALF: u64 = 512 << 20;
const WRITE_BACK_ON_ONE: &str = "size=512M, mode=write-back, dirty=256M, log=LOG";

/// The figure that is compared.
#[derive(Clone, Copy)]
enum Figure {
    /// Processor time of the server for each request; without a workload of fio, requests are sent in batches.
    Cpu,
    /// Bytes a second.
    Rate,
    /// Bytes a second with a flush after every 32 writes; the cache begins empty.
    Burst,
    /// The time of a request, if requests follow one another.
    Time,
}

struct Row {
    name: &'static str,
    /// The origin; `FILE` is the path of a file, `HALF` half of an attached [`DISK`].
    origin: &'static str,
    /// The cache before the origin, without its argument for the origin; `LOG` is the other half.
    cache: &'static str,
    workload: Option<Workload>,
    figure: Figure,
    target: Target,
}

const fn fio(rw: &'static str, block: u64, depth: u32) -> Option<Workload> {
    Some(Workload { name: "", rw, block, depth, jobs: 1 })
}

const fn cpu(name: &'static str, workload: Option<Workload>, target: Target) -> Row {
    Row { name, origin: "ram(256M)", cache: "size=320M", workload, figure: Figure::Cpu, target }
}

const fn write(name: &'static str, origin: &'static str, workload: Option<Workload>) -> Row {
    let target = Target::AtLeast(0.98);
    Row { name, origin, cache: "size=64M", workload, figure: Figure::Rate, target }
}

const fn miss(name: &'static str, origin: &'static str) -> Row {
    let (workload, target) = (fio("randread", 4096, 1), Target::AtMost(1.05));
    // The file is 256 times as large as the cache, so nearly all requests miss.
    Row { name, origin, cache: "size=4M", workload, figure: Figure::Time, target }
}

const ROWS: [Row; 11] = [
    cpu(
        "hit: 4 KiB random read, depth 1: server CPU / bare RAM's",
        fio("randread", 4096, 1),
        Target::AtMost(1.10),
    ),
    cpu(
        "hit: 4 KiB random read, depth 32: server CPU / bare RAM's",
        fio("randread", 4096, 32),
        Target::AtMost(1.10),
    ),
    // In batches, only the copies and the index remain of a request's cost.
    cpu("hit: the same, in batches: server CPU / bare RAM's", None, Target::AtMost(1.10)),
    write("disk, write-through: 1 MiB sequential, depth 8 / bare", DISK, fio("write", 1 << 20, 8)),
    write("disk, write-through: 4 KiB random, depth 8 / bare", DISK, fio("randwrite", 4096, 8)),
    write(
        "file, write-through: 1 MiB sequential, depth 8 / bare",
        "FILE",
        fio("write", 1 << 20, 8),
    ),
    write("file, write-through: 4 KiB random, depth 32 / bare", "FILE", fio("randwrite", 4096, 32)),
    Row {
        name: "disk, write-back, log on another: 4 KiB random, flushed / bare",
        origin: DISK,
        cache: WRITE_BACK,
        workload: fio("randwrite", 4096, 32),
        figure: Figure::Burst,
        target: Target::AtLeast(20.0),
    },
    Row {
        name: "disk, write-back, log on the same: 4 KiB random, flushed / bare",
        origin: "HALF",
        cache: WRITE_BACK_ON_ONE,
        workload: fio("randwrite", 4096, 32),
        figure: Figure::Burst,
        target: Target::AtLeast(5.0),
    },
    miss("disk, miss: 4 KiB random read, depth 1: time / bare", DISK),
    miss("file, miss: 4 KiB random read, depth 1: time / bare", "FILE"),
];

pub(crate) fn run(args: &Args, table: &mut Table) -> Result<()> {
    let rounds = args.value("--rounds", 7usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 1.0)?;
    let rows: Vec<&Row> = ROWS.iter().filter(|row| args.wants(row.name)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    fio::require()?;
    let braid = args.braid()?;
    let folder = Folder::new()?;
    let files = match args.text("--folder") {
        Some(folder) => folder.into(),
        None => std::env::temp_dir(),
    };
    for row in rows {
        eprintln!("{} ...", row.name);
        let images = tempfile::tempdir_in(&files).map_err(Error::io("a folder for files"))?;
        let (figures, estimate) = match row.origin {
            "HALF" => on_one_disk(row, &braid, folder.path(), rounds, seconds)?,
            _ => side_by_side(row, &braid, [folder.path(), images.path()], rounds, seconds)?,
        };
        let middle =
            figures.each_ref().map(|values| shown(row.figure, median(&mut values.clone())));
        add(table, row.name, middle, estimate, row.target);
    }
    Ok(())
}

/// The figures of each round: with the cache, and without.
type Figures = ([Vec<f64>; 2], Estimate);

fn side_by_side(
    row: &Row,
    braid: &Path,
    [sockets, images]: [&Path; 2],
    rounds: usize,
    seconds: f64,
) -> Result<Figures> {
    let bare = origin(row, images, "a")?;
    let stack = format!("cache({}, {})", row.cache, origin(row, images, "b")?);
    let start = || {
        let serve = |name, stack: &str| Server::braid(braid, name, stack, sockets);
        Ok::<_, Error>([serve("cached", &stack)?, serve("bare", &bare)?])
    };
    let mut servers = start()?;
    if matches!(row.figure, Figure::Cpu) {
        for server in &servers {
            fio::fill(Subject::Nbd(server.socket()))?;
        }
    }
    let mut figures: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        if matches!(row.figure, Figure::Time | Figure::Burst) && round > 0 {
            // fio asks for the same places in every round: the cache would hold them by now.
            drop(servers);
            servers = start()?;
        }
        for turn in 0..servers.len() {
            let index = (round + turn) % servers.len();
            figures[index].push(measure(&servers[index], row, seconds)?);
        }
    }
    let estimate = Estimate::of_ratio(&figures[0], &figures[1]);
    Ok((figures, estimate))
}

/// Runs one server after the other: both use the same disk, whose other half is the log.
fn on_one_disk(
    row: &Row,
    braid: &Path,
    sockets: &Path,
    rounds: usize,
    seconds: f64,
) -> Result<Figures> {
    let mut figures: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        for turn in 0..figures.len() {
            let index = (round + turn) % figures.len();
            // The disk is new each time, so that it need not drain the writes of the previous server's cache.
            let disk = BraidUp::new(braid, DISK)?;
            let half = Loop::over_part(disk.as_ref(), 0, HALF)?;
            let log = Loop::over_part(disk.as_ref(), HALF, HALF)?;
            let bare = half.path().display().to_string();
            let cache = row.cache.replace("LOG", &log.path().display().to_string());
            let stack = [format!("cache({cache}, {bare})"), bare];
            let server = Server::braid(braid, ["cached", "bare"][index], &stack[index], sockets)?;
            figures[index].push(measure(&server, row, seconds)?);
        }
    }
    let estimate = Estimate::of_ratio(&figures[0], &figures[1]);
    Ok((figures, estimate))
}

/// The origin of a row; for `FILE`, a file of a gigabyte that was written once.
fn origin(row: &Row, folder: &Path, name: &str) -> Result<String> {
    if row.origin != "FILE" {
        return Ok(row.origin.to_owned());
    }
    let path = folder.join(name);
    let failed = || Error::io("a file as an origin");
    let mut file = std::fs::File::create(&path).map_err(failed())?;
    let piece = vec![1; 1 << 20];
    for _ in 0..1024 {
        std::io::Write::write_all(&mut file, &piece).map_err(failed())?;
    }
    file.sync_all().map_err(failed())?;
    Ok(path.display().to_string())
}

fn measure(server: &Server, row: &Row, seconds: f64) -> Result<f64> {
    let before = cpu::process_ns(server.pid())?;
    let (requests, bytes, ran) = match &row.workload {
        Some(workload) => {
            let every = if matches!(row.figure, Figure::Burst) { 32 } else { 0 };
            let subject = Subject::Nbd(server.socket());
            let outcome = fio::run_flushing(subject, workload, seconds, every)?;
            (outcome.requests, outcome.bytes, outcome.seconds)
        }
        None => {
            let duration = Duration::from_secs_f64(seconds);
            let outcome = load::random_reads(server.socket(), 32, duration)?;
            (outcome.requests as f64, 0.0, outcome.seconds)
        }
    };
    let used = cpu::process_ns(server.pid())? - before;
    Ok(match row.figure {
        Figure::Cpu => used as f64 / 1e3 / requests,
        Figure::Rate | Figure::Burst => bytes / ran / 1e6,
        Figure::Time => ran * 1e6 / requests,
    })
}

fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Cpu => format!("{value:.2} µs"),
        Figure::Rate | Figure::Burst => format!("{value:.1} MB/s"),
        Figure::Time => format!("{value:.0} µs"),
    }
}
