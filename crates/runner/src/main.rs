//! The command line of the runner: see the library.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use braid_runner::plan::Rules;
use braid_runner::procfs;
use braid_runner::program::{Program, Test, list_tests, parse_messages};
use braid_runner::report::{Summary, Times};
use braid_runner::run::Runner;
use clap::Parser;

/// Run test programs beside each other
#[derive(Parser)]
struct Arguments {
    /// Output of `cargo test --no-run --message-format=json`; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "slow")]
    messages: Option<PathBuf>,
    /// The groups and limits of tests
    #[arg(long, value_name = "FILE", default_value = "tests/run.toml")]
    rules: PathBuf,
    /// Times of the last run; this run updates the file
    #[arg(long, value_name = "FILE", default_value = "target/test-times.json")]
    times: PathBuf,
    /// Run all tests this many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,
    /// Keep this many processors busy with loops meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: usize,
    /// Print the slowest tests of the last run, and run none
    #[arg(long)]
    slow: bool,
    /// These are all test programs: an entry of the rules that matches no test is an error
    #[arg(long)]
    whole: bool,
    /// Print what passing tests print, too
    #[arg(long)]
    show: bool,
    /// Leave out tests whose package, target and name, separated by spaces, contain this
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,
    /// Run only tests whose package, target and name, separated by spaces, contain one of these
    #[arg(value_name = "TEXT")]
    only: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("braid-runner: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let last = read_times(&arguments.times);
    if arguments.slow {
        let times = last.ok_or("no run was noted yet: `make test` runs all tests")?;
        print!("{}", times.render(25));
        return Ok(true);
    }
    let rules = read(&arguments.rules).and_then(|text| Rules::parse(&text));
    let rules = rules.map_err(|why| format!("{}: {why}", arguments.rules.display()))?;
    let messages = arguments.messages.as_deref().expect("clap requires it unless --slow is given");
    let programs = parse_messages(&read(messages)?)?;
    let all = list_tests(&programs)?;
    let ids: Vec<&str> = all.iter().map(|test| test.id.as_str()).collect();
    let unused = rules.unused(&ids);
    if arguments.whole && !unused.is_empty() {
        return Err(format!(
            "{} has entries that match no test: {unused:?}",
            arguments.rules.display()
        ));
    }
    let has =
        |texts: &[String], test: &Test| texts.iter().any(|text| test.id.contains(text.as_str()));
    let wanted = |test: &Test| {
        (arguments.only.is_empty() || has(&arguments.only, test)) && !has(&arguments.skip, test)
    };
    let tests: Vec<Test> = all.iter().filter(|test| wanted(test)).cloned().collect();
    if tests.is_empty() {
        return Err(format!("no test matches {:?}", arguments.only));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| error.to_string())?;
    }
    let _loops = BusyLoops::start(arguments.busy);
    let mut is_good = true;
    let mut times = last.unwrap_or_default();
    for round in 1..=arguments.rounds {
        if arguments.rounds > 1 {
            println!("round {round} of {}", arguments.rounds);
        }
        let summary = one_round((&programs, &tests), &rules, &times, arguments.show, &interrupted)?;
        print!("{}", summary.render());
        is_good &= summary.is_good();
        // What was not run keeps its times.
        let Times { wall, processor, tests } = summary.times;
        times.tests.extend(tests);
        if arguments.whole {
            times.tests.retain(|id, _| ids.contains(&id.as_str()));
            (times.wall, times.processor) = (wall, processor);
        }
        let text = serde_json::to_string(&times).map_err(|error| error.to_string())?;
        std::fs::write(&arguments.times, text)
            .map_err(|error| format!("{}: {error}", arguments.times.display()))?;
    }
    Ok(is_good)
}

fn one_round(
    (programs, tests): (&[Program], &[Test]),
    rules: &Rules,
    times: &Times,
    show: bool,
    interrupted: &AtomicBool,
) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    let (start, before) = (Instant::now(), procfs::time_of_children());
    let mut said = Instant::now();
    let mut tell = |outcome: braid_runner::run::Outcome, left: usize| {
        let test = &tests[outcome.test];
        summary.add(test, &outcome);
        match &outcome.failure {
            Some(why) => println!("---- {}: {why}\n{}", test.id, outcome.output.trim_end()),
            None if show => println!("---- {}\n{}", test.id, outcome.output.trim_end()),
            None => {}
        }
        if said.elapsed() > Duration::from_secs(30) || left == 0 {
            said = Instant::now();
            println!(
                "{} of {} tests, {:.0} s",
                tests.len() - left,
                tests.len(),
                start.elapsed().as_secs_f64()
            );
        }
        let _ = io::stdout().flush();
    };
    let runner = Runner::new((programs, tests), rules, &times.wall_seconds(), &root, interrupted);
    let result = runner.run(&mut tell);
    summary.times.wall = start.elapsed().as_secs_f64();
    summary.times.processor = (procfs::time_of_children() - before).as_secs_f64();
    match result {
        Ok(()) => Ok(summary),
        Err(error) => {
            print!("{}", summary.render());
            Err(error.to_string())
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let result = if path == Path::new("-") {
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads the times of the last run; none if the file is absent or of another version.
fn read_times(path: &Path) -> Option<Times> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// Threads that do nothing, as fast as they can.
struct BusyLoops(Arc<AtomicBool>);

impl BusyLoops {
    fn start(count: usize) -> BusyLoops {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..count {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        BusyLoops(stop)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
