//! The simulator's command line; see `--help`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use braid_sim::campaign::{Sum, keep_panics, run_scenario, run_seed, run_seeds};
use braid_sim::draw::HALVES;
use braid_sim::exhaust::{self, exhaust};
use braid_sim::failing::{Tally, fail_everywhere};
use braid_sim::keep::{keep, list};
use braid_sim::rot;
use braid_sim::scenario::Scenario;
use braid_sim::shrink::{shrink, size};
use braid_sim::speed::measure;
use braid_sim::timeline::Timeline;

const HELP: &str = "\
braid-sim: the whole stack on a virtual clock, with faults that it must survive

  --seed N [--trace]      run one seed; with --trace tell what happened, request by request; one
                          that fails is shrunk first, unless --whole is given, too
  --seeds A..B            run these
  --minutes M [--from N]  run fresh seeds for so long
                          (from 1099511627776, 2^40, on: harsh ones, with more faults at once;
                          from 2199023255552, 2^41, on: with bitmaps that come, change and go,
                          and passes that are held;
                          from 4398046511104, 2^42, on: with bitmaps of two pages;
                          from 8796093022208, 2^43, on: with members that hang;
                          from 17592186044416, 2^44, on: with halves of arrays that meet;
                          from 35184372088832, 2^45, on: with clocks that are set;
                          from 70368744177664, 2^46, on: with memory that is spent;
                          from 281474976710656, 2^48, on: with clients of several shards;
                          from 562949953421312, 2^49, on: with members that answer in the call)
  --canaries [--from N]   plant each known bug, or --only NAME, and find it
  exhaust --points N [--from S]
                          crash short loads at every event, with every subset of what was not flushed
  failing --loads N [--from S]
                          have each request of each disk fail in short loads, once and for ever
  rot --lives N [--from S]
                          flip a bit in each block of md's own areas after short lives, and start
  --speed                 how much faster than the wall a raid5 of four modelled sticks is
  --keep COMMIT           add seeds that fail to testdata/seeds/failed.txt
  --threads T             on so many threads (default: all cores)
  --most F                stop after so many failures (default: 20)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

struct Arguments<'a>(&'a [String]);

impl Arguments<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one == name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|one| one == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name} wants a number, not {text:?}"))
    }
}

fn command(arguments: &[String]) -> Result<ExitCode, String> {
    keep_panics();
    let arguments = Arguments(arguments);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.number("--threads")?.map_or(cores, |threads| threads as usize);
    let most = arguments.number("--most")?.map_or(20, |most| most as usize);
    if arguments.has("--help") {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(seed) = arguments.number("--seed")? {
        let (trace, whole) = (arguments.has("--trace"), arguments.has("--whole"));
        return Ok(one_seed(seed, trace, whole));
    }
    let commit = arguments.text("--keep");
    let failed = |seed: u64, what: &str| {
        if let Some(commit) = commit
            && let Err(error) = keep(&list(), seed, commit, what)
        {
            eprintln!("the seed is not kept: {error}");
        }
        println!("seed {seed} fails: {what}\n  to repeat: {} --seed {seed} --trace", COMMAND);
    };
    if let Some(range) = arguments.text("--seeds") {
        let parsed = range
            .split_once("..")
            .and_then(|(first, end)| Some((first.parse::<u64>().ok()?, end.parse::<u64>().ok()?)));
        let (first, end) = parsed.ok_or_else(|| format!("--seeds wants A..B, not {range:?}"))?;
        let begun = Instant::now();
        let sum = run_seeds(first, end.saturating_sub(first), None, most, threads, &failed);
        return Ok(tell(&sum, begun));
    }
    if let Some(minutes) = arguments.number("--minutes")? {
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let first = arguments.number("--from")?.unwrap_or(since_1970.as_millis() as u64 * 1000);
        println!("seeds from {first} on, for {minutes} minutes");
        let begun = Instant::now();
        let until = begun + Duration::from_secs(60 * minutes);
        let sum = run_seeds(first, u64::MAX, Some(until), most, threads, &failed);
        return Ok(tell(&sum, begun));
    }
    if arguments.has("exhaust") {
        let points = arguments.number("--points")?.unwrap_or(100_000);
        return Ok(exhausted(arguments.number("--from")?.unwrap_or(0), points, threads));
    }
    if arguments.has("failing") {
        let loads = arguments.number("--loads")?.unwrap_or(100);
        return Ok(failing(arguments.number("--from")?.unwrap_or(0), loads, threads));
    }
    if arguments.has("rot") {
        let lives = arguments.number("--lives")?.unwrap_or(rot::turn());
        return Ok(rotten(arguments.number("--from")?.unwrap_or(0), lives, threads));
    }
    if arguments.has("--speed") {
        let measured = measure(20_000)?;
        println!("{measured:?}: {:.0} times as fast as the wall", measured.ratio());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.has("--canaries") {
        let first = arguments.number("--from")?.unwrap_or(0);
        return canaries(arguments.text("--only"), first, threads);
    }
    Err("nothing is asked for".to_owned())
}

fn exhausted(first: u64, points: u64, threads: usize) -> ExitCode {
    let begun = Instant::now();
    let tally = exhaust(first, points, threads);
    let exhaust::Tally { points, looked_at, again, loads, failed } = &tally;
    for (seed, what) in failed {
        println!("exhaust --from {seed} --points 1 fails: {what}");
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{points} crash points and {again} in restarts, of {loads} loads, in {seconds:.1} s ({:.0} a \
         second); {looked_at} differed; {} loads failed",
        (points + again) as f64 / seconds,
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn failing(first: u64, loads: u64, threads: usize) -> ExitCode {
    let begun = Instant::now();
    let Tally { loads, runs, failed } = fail_everywhere(first, loads, threads);
    for (seed, failure, what) in &failed {
        println!("failing --from {seed} --loads 1 fails with {failure:?}: {what}");
    }
    let seconds = begun.elapsed().as_secs_f64();
    let wrong = failed.len();
    println!("{runs} runs with a failure, of {loads} loads, in {seconds:.1} s; {wrong} went wrong");
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rotten(first: u64, lives: u64, threads: usize) -> ExitCode {
    let begun = Instant::now();
    let rot::Tally { lives, flips, refused, without, failed } =
        rot::rot_everywhere(first, lives, threads);
    for (seed, what) in &failed {
        println!("rot --from {seed} --lives 1 fails: {what}");
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{flips} starts with a flipped bit, after {lives} lives, in {seconds:.1} s: {refused} refused, \
         {without} without the member; {} went wrong",
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Finds every canary, or says which survived.
fn canaries(only: Option<&str>, first: u64, threads: usize) -> Result<ExitCode, String> {
    use braid_engine::canary::Canary;
    use braid_sim::canaries::{BUDGET, Found, hunt};
    let begun = Instant::now();
    let tell = |found: &Found| match &found.by {
        Some((seed, count, what)) => {
            let what: String = what.chars().take(120).collect();
            println!("{:32} found by seed {seed}, after {count}: {what}", found.canary.name());
        }
        None => println!("{:32} SURVIVED {BUDGET} seeds", found.canary.name()),
    };
    let all = Canary::ALL.iter().copied();
    let chosen: Vec<Canary> =
        all.filter(|one| only.is_none_or(|name| one.name().contains(name))).collect();
    let found = hunt(&chosen, first, threads, &tell);
    let survived = found.iter().filter(|one| one.by.is_none()).count();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} canaries, {survived} survived, {seconds:.0} s", found.len());
    Ok(if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const COMMAND: &str = "cargo run -p braid-sim --release --";

/// As many candidates are tried while a failing seed is shrunk.
const MOST_CANDIDATES: usize = 4000;

fn one_seed(seed: u64, trace: bool, whole: bool) -> ExitCode {
    if seed & HALVES != 0 {
        let result = run_seed(seed);
        println!("seed {seed}: {result:?}");
        return if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let scenario = Scenario::of(seed);
    let result = run_scenario(&scenario, &Timeline::default());
    let small = match &result {
        Err(what) if !whole => {
            println!("seed {seed} fails, {:?}: {what}", scenario.spec);
            println!("its {} parts are made fewer …", size(&scenario));
            shrink(&scenario, what, MOST_CANDIDATES)
        }
        _ => scenario,
    };
    let timeline = if trace { Timeline::kept() } else { Timeline::default() };
    let result = run_scenario(&small, &timeline);
    if trace {
        println!("{small:#?}\n{timeline}");
    }
    match result {
        Ok(report) => {
            println!("seed {seed} is well: {report:?}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("seed {seed} fails, {} parts, {:?}: {what}", size(&small), small.spec);
            ExitCode::FAILURE
        }
    }
}

fn tell(sum: &Sum, begun: Instant) -> ExitCode {
    let Sum { seeds, report, failed } = sum;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds in {seconds:.1} s ({:.0} a second), {} failed\n{report:?}",
        *seeds as f64 / seconds,
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
