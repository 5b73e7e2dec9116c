//! The laboratory itself: its own time in a campaign, the time of a report over many samples, the
//! size of a page and the time in which a browser draws it.
//!
//! `cargo run --release -p braid-bench --bin laboratory`
//!
//! ```text
//! own time   a small campaign with fio over RAM: wall time that is neither fio's nor set-up
//! samples    100,000 made-up samples: read from the store, analysed, every file written
//! page       a made-up full `two-disk-levels`: bytes of report.html; Chromium with it, less
//!            Chromium with an empty page, in turn
//! ```
//!
//! The numbers in the made-up campaigns are noise around plausible values, from a seed.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use braid_bench::args::{Args, finish};
use braid_bench::stats::{Estimate, Target};
use braid_bench::table::Table;
use braid_bench::{Error, Result, process};
use braid_lab::environment::read_environment;
use braid_lab::matrix::{Planned, parse_campaign};
use braid_lab::metric::{METRICS, Measured, Sample};
use braid_lab::preset::{Choices, Preset};
use braid_lab::store::{Outcome, Store, StoredTrial};
use braid_lab::{Campaign, LabOptions};
use braid_lab_report::report::render::Formats;
use braid_seed::Rng;

const USAGE: &str = "\
laboratory [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH]
  --rounds   rounds of each row (3)
  --runtime  seconds of one trial of the small campaign (1)
  --only     rows with this in their name
  --braid    the braid binary (the one beside this program)";

/// Metrics of a made-up trial.
const METRICS_OF_A_TRIAL: usize = 10;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--only", "--braid"], USAGE)?;
    let rounds: usize = args.value("--rounds", 3)?;
    let mut table = Table::new(["what", "median [least, most]", "target", "verdict"]);
    let mut row = |name: &str, values: &[f64], unit: &str, target: Target| {
        let estimate = Estimate::of(values);
        let wanted = target.to_string();
        table.row([
            name.to_owned(),
            format!("{estimate:.3} {unit}").trim_end().to_owned(),
            wanted,
            target.verdict(estimate),
        ]);
    };
    if args.wants("own time") {
        let shares = own_time(&args, rounds)?;
        row("own time of a campaign, share of its wall time", &shares, "", Target::AtMost(0.02));
    }
    if args.wants("samples") {
        let (loading, all) = many_samples(rounds)?;
        row("100,000 samples: read and analysed", &loading, "s", Target::None);
        row("100,000 samples: read, analysed, all reports", &all, "s", Target::AtMost(5.0));
    }
    if args.wants("page") {
        let (mebibytes, seconds) = full_page(rounds)?;
        row("page of a full two-disk-levels", &mebibytes, "MB", Target::AtMost(3.0));
        row("the same, drawn by Chromium", &seconds, "s", Target::AtMost(2.0));
    }
    print!("{table}");
    Ok(())
}

fn lab<T>(result: std::result::Result<T, braid_lab::LabError>) -> Result<T> {
    result.map_err(|error| Error::Usage(error.to_string()))
}

fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|error| Error::Usage(format!("no temporary folder: {error}")))
}

/// The laboratory's own share of a small campaign's wall time.
fn own_time(args: &Args, rounds: usize) -> Result<Vec<f64>> {
    process::require("fio", "fio")?;
    let runtime: f64 = args.value("--runtime", 1.0)?;
    let text = format!(
        "name = \"own-time\"\nrepetitions = 3\nruntime_s = {runtime}\nregion = \"16M\"\n\
         [[subject]]\nname = \"ram\"\nstack = \"ram(64M)\"\nbaseline = true\n\
         [[subject]]\nname = \"stripe\"\nstack = \"raid0(ram(64M), ram(64M))\"\n\
         [[job]]\npattern = \"rand\"\nop = [\"read\", \"write\"]\nblock_size = [\"4K\", \"64K\"]\n"
    );
    let campaign = lab(parse_campaign(&text, "own-time"))?;
    (0..rounds)
        .map(|_| {
            let dir = folder()?;
            let options = LabOptions {
                braid_binary: args.braid()?,
                quiet: true,
                ..lab(LabOptions::new(dir.path()))?
            };
            let times = lab(braid_lab::run(&campaign, &options))?.times;
            Ok(times.overhead_s / (times.busy_s + times.set_up_s + times.overhead_s))
        })
        .collect()
}

/// Seconds to read and analyse, and to do that and write every file.
fn many_samples(rounds: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    // 8 subjects × 25 workloads × 50 repetitions × 10 metrics.
    let mut text = "name = \"many\"\nrepetitions = 50\n".to_owned();
    for index in 0..8 {
        let baseline = if index == 0 { "baseline = true\n" } else { "" };
        text += &format!("[[subject]]\nname = \"s{index}\"\nstack = \"ram(1G)\"\n{baseline}");
    }
    text += "[[job]]\npattern = \"rand\"\nop = \"read\"\n\
             block_size = [\"4K\", \"8K\", \"16K\", \"64K\", \"1M\"]\niodepth = [1, 2, 4, 8, 16]\n";
    let campaign = lab(parse_campaign(&text, "many"))?;
    let dir = folder()?;
    make_up(&campaign, dir.path())?;
    let (mut loading, mut all) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        let results = lab(lab(Store::open(dir.path()))?.results())?;
        let analysis = braid_lab_report::analysis::analyse(&results);
        assert_eq!(analysis.done, 10_000, "the made-up campaign is whole");
        loading.push(began.elapsed().as_secs_f64());
        drop((analysis, results));
        let began = Instant::now();
        lab(braid_lab_report::report(dir.path(), &Formats::ALL, false))?;
        all.push(began.elapsed().as_secs_f64());
    }
    Ok((loading, all))
}

/// Megabytes of a full page, and seconds that Chromium takes for it beyond an empty one.
fn full_page(rounds: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let preset = Preset::find("two-disk-levels")
        .ok_or_else(|| Error::Usage("there is no preset two-disk-levels".to_owned()))?;
    let campaign = lab(preset.campaign(&Choices { modelled: true, ..Choices::default() }))?;
    let dir = folder()?;
    make_up(&campaign, dir.path())?;
    lab(braid_lab_report::report(dir.path(), &Formats { html: true, ..Formats::NONE }, false))?;
    let page = dir.path().join("report.html");
    let bytes = std::fs::metadata(&page)
        .map_err(|error| Error::Usage(format!("{}: {error}", page.display())))?
        .len();
    let empty = dir.path().join("empty.html");
    std::fs::write(&empty, "<!doctype html><title>empty</title>")
        .map_err(|error| Error::Usage(format!("{}: {error}", empty.display())))?;
    process::require("chromium", "chromium")?;
    let mut seconds = Vec::new();
    for _ in 0..rounds {
        let without = draw(dir.path(), &empty)?;
        seconds.push(draw(dir.path(), &page)? - without);
    }
    Ok((vec![bytes as f64 / 1e6], seconds))
}

/// Seconds from the start of Chromium to the end of a screenshot.
fn draw(folder: &Path, page: &Path) -> Result<f64> {
    let mut command = Command::new("chromium");
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--screenshot={}", folder.join("picture.png").display()))
        .arg(format!("file://{}", page.display()));
    let began = Instant::now();
    process::run(&mut command)?;
    Ok(began.elapsed().as_secs_f64())
}

/// Results of a whole campaign, without running it.
fn make_up(campaign: &Campaign, dir: &Path) -> Result<()> {
    let mut rng = Rng::new(campaign.seed());
    let subjects = campaign.expand();
    let mut store = lab(Store::create(dir, campaign))?;
    let session = lab(store.begin_session(1_790_000_000, &read_environment(Vec::new())))?;
    for trial in Planned::of(campaign).trials {
        let workload = &trial.cell.workload;
        let subject = &subjects[trial.cell.subject];
        let headline = workload.headline();
        let others = METRICS.iter().copied().filter(|metric| *metric != headline);
        let mut measured = Measured::default();
        for metric in std::iter::once(headline).chain(others.take(METRICS_OF_A_TRIAL - 1)) {
            let noise = 0.9 + 0.2 * (rng.below(1 << 20) as f64 / f64::from(1 << 20));
            let scale = 100.0 + 10.0 * trial.cell.subject as f64;
            measured.samples.push(Sample { metric, value: scale * noise });
        }
        let mut dimensions = workload.dimensions();
        dimensions.extend(subject.dimensions.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
        let kept = StoredTrial {
            number: trial.number,
            repetition: trial.repetition,
            subject: subject.name.clone(),
            workload: workload.label(),
            dimensions,
            seed: trial.seed,
            region_bytes: campaign.region.0,
            commands: vec!["tool --with arguments".to_owned()],
            started_unix_s: 1_790_000_000 + u64::from(trial.number),
            duration_s: 100.0,
            outcome: Outcome::Ok,
            measured,
            evidence: Default::default(),
            events: Vec::new(),
            raw: Store::raw_folder(trial.number),
        };
        lab(store.save_trial(session, &kept, None))?;
    }
    Ok(())
}
