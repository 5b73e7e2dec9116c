//! Cases that are made anew by the real kernel, with file systems on them, and judged by it: every recipe of `mkbroken`,
//! beside klab.
//!
//! ```text
//!   mkbroken make RECIPE --seed N ──▶ images, maps, the truth      `scan`, `open`, `copy`                    ──▶ mkbroken check
//!                                                             `solve`, `copy --hypothesis 1`   ──▶ mkbroken check
//!                                                                                                  mkbroken untouched
//! ```
//!
//! Rules
//! * Exit status 0 with wrong content is a failure; status 4 and "not decided" are answers, and are counted.
//! * What the truth calls recoverable is got, by `open` or by `solve`, in 95 of 100 cases with 60 MiB of content.
//! * No byte of an image changes.
//!
//! Only with `$BRAID_RECIPES`, the number of seeds of each recipe, or with `$BRAID_INTEROP`, as `make interop` sets it, which
//! takes one: each case boots guests. Words in `$BRAID_INTEROP` other than `all` choose recipes whose names contain one of
//! them; `$BRAID_RESCUE_SEED` is the first seed. Otherwise seeds are new each time, and in the table.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::common::{MIB, Output, Scratch, Tool};

/// Recipes whose damage only content may show. `open` and `solve` compare no data of files: `verify` has to find it.
///
/// * Silent flips: the superblocks are those of a sound array, and so is what says where it belongs.
/// * A stale member that was forced in, if the superblock of the one that was left out does not tell.
const SEEN_BY_VERIFY: [&str; 2] = ["bitrot-one", "stale-assembled-forced"];

/// Recipes whose content is not got, with the reason. They are rescued and judged as all others, and do not count for the
/// share: docs/rescue.md says so, too.
const BEYOND: [(&str, &str); 1] =
    [("reshape-lost-backup-file", "between two blocks nothing says how far the reshape came")];

/// A case is some 200 MiB, and its guests may be emulated.
const LIMIT: Duration = Duration::from_secs(900);
/// Seeds from which a case is made, until its guest came to what the recipe says, and the distance between them.
const MOST_TRIES: u64 = 3;
const APART: u64 = 1_000_000_000;
/// Content from which on a case counts for the share that is got, and this share, in hundredths.
const LEAST_BYTES: u64 = 60 * MIB;
const LEAST_SHARE: usize = 95;

/// `mkbroken`, or why it cannot be used.
pub(crate) fn mkbroken() -> Result<PathBuf, String> {
    if std::env::var_os("BRAID_INTEROP").is_none() && std::env::var_os("BRAID_RECIPES").is_none() {
        let why =
            "each case boots two guests; `make interop` has one of each recipe, `make nightly` ten";
        return Err(why.to_owned());
    }
    let klab = std::env::var_os("KLAB").filter(|path| !path.is_empty());
    let klab = klab.map(PathBuf::from).ok_or("there is no klab by $KLAB")?;
    let path = klab.with_file_name("mkbroken");
    if path.is_file() { Ok(path) } else { Err(format!("{} is not there", path.display())) }
}

pub(crate) fn is_wanted(recipe: &str) -> bool {
    let wanted = std::env::var("BRAID_INTEROP").unwrap_or_else(|_| "all".to_owned());
    wanted == "all" || wanted.split(',').any(|part| recipe.contains(part))
}

/// `mkbroken` with these words, in the folder of a case.
pub(crate) fn run(mkbroken: &Path, folder: &Path, words: &[&str]) -> Output {
    let engine = std::env::var("KLAB_ENGINE").unwrap_or_default();
    let tool = Tool::new(mkbroken).args(words).folder(folder).limit(LIMIT);
    match !matches!(words[0], "untouched" | "list") && !engine.is_empty() {
        true => tool.args(["--engine", &engine]).run(),
        false => tool.run(),
    }
}

#[test]
fn every_recipe_is_got_or_not_decided() {
    let mkbroken = match mkbroken() {
        Ok(mkbroken) => mkbroken,
        Err(why) => return println!("skipped: {why}"),
    };
    let list = run(&mkbroken, Path::new("."), &["list"]).ok().out;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let recipes: Vec<&str> = names.filter(|name| is_wanted(name)).collect();
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
    let first = number("BRAID_RESCUE_SEED").unwrap_or(now.as_secs() % 10_000_000 * 100);
    let seeds = first..first + number("BRAID_RECIPES").unwrap_or(1);
    // All recipes of a seed first, so that a table that is not complete has all of them.
    let cases: Vec<(&str, u64)> =
        seeds.flat_map(|seed| recipes.iter().map(move |recipe| (*recipe, seed))).collect();
    println!(
        "| recipe | seed | level/members, file system, MiB | open | solve | seconds: scan, open, solve |"
    );
    println!("|---|---|---|---|---|---|");
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((recipe, seed)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = rescued(&mkbroken, recipe, *seed);
                    println!("{}", row.text);
                    rows.lock().expect("no panic").push(row);
                }
            });
        }
    });
    judge(&rows.into_inner().expect("no panic"));
}

/// Prints the sums, and fails if a rule does not hold.
fn judge(rows: &[Row]) {
    let count = |is: &dyn Fn(&&Row) -> bool| rows.iter().filter(is).count();
    let large = count(&|row| row.counts && row.bytes >= LEAST_BYTES);
    let got = count(&|row| row.counts && row.bytes >= LEAST_BYTES && row.is_got);
    println!("\n{} cases; of {large} that count, {got} are got. These do not count:", rows.len());
    BEYOND.iter().for_each(|(recipe, why)| println!("* {recipe}: {why}"));
    println!("* wrong files that `verify` sees: {}", SEEN_BY_VERIFY.join(", "));
    let (solved, decided) =
        (count(&|row| row.solved.is_some()), count(&|row| row.solved == Some(true)));
    println!("By evidence alone, {decided} of {solved} are decided.");
    let wrong: Vec<&str> = rows.iter().flat_map(|row| &row.wrong).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(got * 100 >= large * LEAST_SHARE, "{got} of {large} are got");
}

/// A case, and the answers to it.
struct Row {
    text: String,
    /// Content of the largest volume.
    bytes: u64,
    /// True if all volumes are right, by `open`, or the array by `solve`.
    is_got: bool,
    /// True if it counts for the share that is got.
    counts: bool,
    /// For a single array, whether `solve` decided.
    solved: Option<bool>,
    /// Violations of a rule.
    wrong: Vec<String>,
}

/// One case, while answers are collected.
struct Case<'a> {
    mkbroken: &'a Path,
    recipe: &'a str,
    seed: u64,
    scratch: Scratch,
    /// The truth.
    manifest: Value,
    wrong: Vec<String>,
    is_seen_by_verify: bool,
}

/// An answer beside the truth.
struct Judged {
    text: String,
    is_right: bool,
}

/// Makes a case, rescues it, and judges what was copied.
fn rescued(mkbroken: &Path, recipe: &str, seed: u64) -> Row {
    let scratch = Scratch::new();
    let make = |seed: &u64| {
        let words = ["make", recipe, "--seed", &seed.to_string(), "--out", "."];
        run(mkbroken, scratch.path(), &words)
    };
    // A reshape of a small array may be over before the guest stops in the middle of it: then another one is made.
    let mut seeds = (0..MOST_TRIES).map(|more| seed + more * APART);
    let made = seeds.find(|seed| make(seed).status.success());
    let seed = made.unwrap_or_else(|| {
        make(&(seed + MOST_TRIES * APART)).ok();
        seed + MOST_TRIES * APART
    });
    let manifest = std::fs::read(scratch.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest");
    let mut case = Case {
        mkbroken,
        recipe,
        seed,
        scratch,
        manifest,
        wrong: Vec::new(),
        is_seen_by_verify: false,
    };
    let scan = case.scan();
    let (opened, open) = case.braid(&["open", "home", "--json"]);
    let opens = case.opens(&opened);
    let (solved, solve) = case.braid(&["solve", "home", "--json"]);
    let found = case.solved(&solved);
    let untouched = run(mkbroken, case.scratch.path(), &["untouched", "."]);
    if !untouched.status.success() {
        case.accuse("a member was written", &untouched);
    }
    let texts: Vec<&str> = opens.iter().map(|one| one.text.as_str()).collect();
    let (kind, texts, bytes) = (case.kind(), texts.join("; "), case.bytes());
    let (text, is_solved, solved) = match found {
        Some((judged, is_decided)) => (judged.text, judged.is_right, Some(is_decided)),
        None => ("-".to_owned(), false, None),
    };
    Row {
        text: format!(
            "| {recipe} | {seed} | {kind}, {} | {texts} | {text} | {scan:.1}, {open:.1}, {solve:.1} |",
            bytes / MIB
        ),
        bytes,
        counts: BEYOND.iter().all(|(name, _)| *name != recipe) && !case.is_seen_by_verify,
        is_got: opens.iter().all(|one| one.is_right) || is_solved,
        solved,
        wrong: case.wrong,
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Case<'_> {
    /// Runs `braid rescue` with these words, and returns the seconds that it took.
    fn braid(&self, words: &[&str]) -> (Output, f64) {
        let start = Instant::now();
        let output = self.scratch.braid().arg("rescue").args(words).limit(LIMIT).run();
        (output, start.elapsed().as_secs_f64())
    }

    fn accuse(&mut self, what: &str, output: &Output) {
        self.wrong.push(format!("{}, seed {}: {what}\n{output}", self.recipe, self.seed));
    }

    /// Scans the images, with their maps.
    fn scan(&mut self) -> f64 {
        let mut words = vec!["scan".to_owned(), "home".to_owned()];
        for image in list(&self.manifest["images"]) {
            let file = text(&image["file"]);
            if let Some(map) = image["map"].as_str() {
                words.extend(["--map".to_owned(), format!("{file}={map}")]);
            }
            words.push(file);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (output, seconds) = self.braid(&words);
        if !output.status.success() {
            self.accuse("the scan failed", &output);
        }
        seconds
    }

    /// Copies and judges each volume as superblocks tell it.
    fn opens(&mut self, opened: &Output) -> Vec<Judged> {
        let arrays = list(&self.manifest["arrays"]);
        let volumes = serde_json::from_str::<Value>(&opened.out).unwrap_or_default();
        let volumes = list(&volumes["volumes"]);
        let judged = list(&self.manifest["volumes"]).into_iter().map(|volume| {
            let (name, segments) = (text(&volume["name"]), list(&volume["segments"]));
            let array = arrays.iter().find(|one| one["name"] == segments[0][0]);
            let of_size = volumes.iter().find(|one| one["size_bytes"] == volume["bytes"]);
            let selected = match (segments.len() > 1 || segments[0][1] != 0, of_size) {
                (true, Some(volume)) => vec!["--volume".to_owned(), text(&volume["name"])],
                _ if arrays.len() > 1 => {
                    vec!["--array".to_owned(), uuid(&array.expect("its array")["uuid"])]
                }
                _ => Vec::new(),
            };
            let judged = self.copied(&name, &selected);
            Judged { text: format!("{name}: {}", judged.text), ..judged }
        });
        judged.collect()
    }

    /// The answer of `solve`, and whether it is decided; `None` of several arrays.
    fn solved(&mut self, solved: &Output) -> Option<(Judged, bool)> {
        let Ok(answer) = serde_json::from_str::<Value>(&solved.out) else {
            self.accuse("solve has no answer", solved);
            return None;
        };
        let arrays = list(&self.manifest["arrays"]);
        if arrays.len() > 1 {
            return None;
        }
        if answer["answer"] == "undecided" {
            return Some((Judged { text: "not decided".to_owned(), is_right: false }, false));
        }
        let judged = self.copied("data", &["--hypothesis".to_owned(), "1".to_owned()]);
        let (array, found) = (&arrays[0], text(&answer["hypotheses"][0]["geometry"]));
        let mut parts =
            vec![format!("raid{}", array["level"]), format!("{} members", array["raid_disks"])];
        parts.extend(
            array["chunk_bytes"]
                .as_u64()
                .filter(|bytes| *bytes > 0)
                .map(|bytes| format!("chunk {} KiB", bytes / 1024)),
        );
        let is_told = !judged.is_right && parts.iter().all(|part| found.contains(part.as_str()));
        let geometry = if is_told { ", the geometry is right" } else { "" };
        Some((Judged { text: format!("decided, {}{geometry}", judged.text), ..judged }, true))
    }

    /// Copies a volume, and judges the copy. Wrong content with exit status 0 is a violation, unless this is a case of
    /// [`SEEN_BY_VERIFY`], and `verify` is in doubt.
    fn copied(&mut self, volume: &str, selected: &[String]) -> Judged {
        let selected: Vec<&str> = selected.iter().map(String::as_str).collect();
        let (copied, _) =
            self.braid(&[&["copy", "home", "--to", "copy.img"][..], &selected].concat());
        let status = copied.code();
        if status == 1 {
            return Judged { text: "refused (1)".to_owned(), is_right: false };
        }
        if !matches!(status, 0 | 4) {
            self.accuse("copy has another exit status", &copied);
            return Judged { text: format!("failed ({status})"), is_right: false };
        }
        let judged = run(
            self.mkbroken,
            self.scratch.path(),
            &["check", ".", "copy.img", "--volume", volume],
        );
        // Its first line says how the copy was read.
        let map = std::fs::read_to_string(self.scratch.join("copy.img.map")).expect("a map");
        let read = map.lines().next().unwrap_or_default();
        for name in ["copy.img", "copy.img.map"] {
            std::fs::remove_file(self.scratch.join(name)).expect("it was copied");
        }
        if !matches!(judged.code(), 0 | 1) {
            self.accuse("the copy could not be judged", &judged);
            return Judged { text: "not judged".to_owned(), is_right: false };
        }
        let is_right = judged.status.success();
        let mut text = format!("{} ({status})", if is_right { "right" } else { "in doubt" });
        if !is_right && status == 0 {
            text = "WRONG (0)".to_owned();
            let (verified, _) = self.braid(&[&["verify", "home"][..], &selected].concat());
            match SEEN_BY_VERIFY.contains(&self.recipe) && verified.code() == 4 {
                true => {
                    text = "wrong (0), seen by verify (4)".to_owned();
                    self.is_seen_by_verify = true;
                }
                false => {
                    let what = format!("wrong content with exit status 0: {read}");
                    self.accuse(&what, &judged);
                }
            }
        }
        Judged { text, is_right }
    }

    /// Levels, members and file systems.
    fn kind(&self) -> String {
        let array = |array: &Value| format!("{}/{}", array["level"], array["raid_disks"]);
        let arrays: Vec<String> = list(&self.manifest["arrays"]).iter().map(array).collect();
        let of = |volume: &Value| text(&volume["fs"]["type"]);
        let systems: Vec<String> = list(&self.manifest["volumes"]).iter().map(of).collect();
        format!("{}, {}", arrays.join(" "), systems.join(" "))
    }

    /// Content of the largest volume.
    fn bytes(&self) -> u64 {
        let volumes = list(&self.manifest["volumes"]);
        volumes.iter().filter_map(|volume| volume["bytes"].as_u64()).max().unwrap_or(0)
    }
}

/// A UUID as md writes it.
fn uuid(value: &Value) -> String {
    let digits: Vec<char> = text(value).chars().filter(char::is_ascii_hexdigit).collect();
    let words: Vec<String> = digits.chunks(8).map(|word| word.iter().collect()).collect();
    words.join(":")
}
