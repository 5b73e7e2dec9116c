//! An order as it would be typed: the arguments of this program. Pure.
//!
//! Options come first, with their values in one word; then `--`; then what could begin with a dash. So
//! nothing that a request names becomes an option.

use std::path::Path;

use braid_control::{CacheOrder, DeviceOrder, Order, WholeOrder};
use braid_shell::{shell_path, shell_word};

/// A command line of this program, without the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    words: Vec<String>,
    options: Vec<String>,
    named: Vec<String>,
    /// Whether it can be told to answer in JSON.
    has_json: bool,
    /// Its JSON says what failed, and is the answer then.
    tells_failures: bool,
}

impl Line {
    pub(crate) fn new(words: &[&str]) -> Line {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Line {
            words,
            options: Vec::new(),
            named: Vec::new(),
            has_json: true,
            tells_failures: false,
        }
    }

    /// An option with a value, if there is one.
    pub(crate) fn option(mut self, name: &str, value: Option<impl std::fmt::Display>) -> Line {
        self.options.extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    /// An option without a value.
    pub(crate) fn flag(mut self, name: &str, is_set: bool) -> Line {
        self.options.extend(is_set.then(|| format!("--{name}")));
        self
    }

    /// What it is about.
    pub(crate) fn name(mut self, name: impl Into<String>) -> Line {
        self.named.push(name.into());
        self
    }

    pub(crate) fn path(self, path: &Path) -> Line {
        self.name(path.to_string_lossy())
    }

    pub(crate) fn without_json(self) -> Line {
        Line { has_json: false, ..self }
    }

    /// Takes its JSON for the answer also if it failed.
    pub(crate) fn telling_failures(self) -> Line {
        Line { tells_failures: true, ..self }
    }

    pub(crate) fn tells_failures(&self) -> bool {
        self.tells_failures
    }

    /// The arguments to run it with.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let json = self.has_json.then(|| "--json".to_owned());
        let dashes = std::iter::once("--".to_owned());
        let options = self.words.iter().chain(&self.options).cloned().chain(json);
        options.chain(dashes).chain(self.named.iter().cloned()).collect()
    }

    /// As a person would type it.
    pub(crate) fn typed(&self) -> String {
        let options = self.words.iter().chain(&self.options).map(|word| shell_word(word));
        let named = self.named.iter().map(shell_path);
        let all = std::iter::once("braid".to_owned()).chain(options).chain(named);
        all.collect::<Vec<_>>().join(" ")
    }
}

/// What carries out `order` on the volume called `volume`.
pub(crate) fn of_order(volume: &str, order: &Order) -> Line {
    let on_array = |words: &[&str], array: &Option<String>| {
        Line::new(words).option("array", array.as_ref()).name(volume)
    };
    match order {
        Order::Fail { member, array } => on_array(&["member", "fail"], array).name(member),
        Order::Remove { member, array } => on_array(&["member", "remove"], array).name(member),
        Order::Retest { array } => on_array(&["member", "retest"], array),
        Order::Add { member, force, again, array } => {
            let word = if *again { "re-add" } else { "add" };
            on_array(&["member", word], array).flag("force", *force).path(member)
        }
        Order::Device(DeviceOrder::Back { device }) => {
            Line::new(&["incremental"]).without_json().path(device)
        }
        Order::Device(DeviceOrder::Gone { device }) => {
            Line::new(&["incremental"]).without_json().option("fail", Some(device))
        }
        Order::Replace { member, with, force, array } => {
            on_array(&["member", "replace"], array).flag("force", *force).name(member).path(with)
        }
        Order::Scrub { repair, force, cancel, array } => {
            // The command takes one of them; an order to end a scrub is one, whatever else it says.
            on_array(&["scrub"], array)
                .flag("repair", *repair && !cancel)
                .flag("force", *force && *repair && !cancel)
                .flag("cancel", *cancel)
        }
        Order::ScrubUntil { repair, force, until_ms, latency_us_p99, array } => {
            on_array(&["scrub"], array)
                .flag("repair", *repair)
                .flag("force", *force && *repair)
                .option("until", Some(format!("@{until_ms}")))
                .option("latency", latency_us_p99.map(|us| format!("{us}us")))
        }
        Order::Speed { min_bytes_per_second, max_bytes_per_second, latency_us_p99, array } => {
            let latency =
                latency_us_p99.map(|us| if us == 0 { "0".into() } else { format!("{us}us") });
            on_array(&["speed"], array)
                .option("min", *min_bytes_per_second)
                .option("max", *max_bytes_per_second)
                .option("latency", latency)
        }
        Order::RaidDisks { count, array } => {
            on_array(&["grow"], array).option("raid-devices", Some(count))
        }
        Order::MemberSize { bytes, array } => {
            let size = bytes.map_or("max".to_owned(), |bytes| bytes.to_string());
            on_array(&["grow"], array).option("size", Some(size))
        }
        Order::Bitmap { none, chunk_bytes, array } => {
            let bitmap = match (none, chunk_bytes) {
                (true, _) => "none".to_owned(),
                (false, None) => "internal".to_owned(),
                (false, Some(chunk)) => chunk.to_string(),
            };
            on_array(&["grow"], array).option("bitmap", Some(bitmap))
        }
        Order::Whole(whole) => of_whole(volume, whole),
        Order::Cache(cache) => of_cache(volume, cache),
    }
}

fn of_whole(volume: &str, order: &WholeOrder) -> Line {
    let on = |word: &str| Line::new(&[word]).name(volume);
    match order {
        WholeOrder::Lock { force } => on("lock").flag("force", *force),
        WholeOrder::Unlock => on("unlock"),
        WholeOrder::Erase { force } => on("erase").flag("force", *force),
        WholeOrder::Resize { bytes, .. } => on("resize").name(bytes.to_string()),
        WholeOrder::Save { file, force } => on("save").flag("force", *force).path(file),
        WholeOrder::Restore { file, force } => on("restore").flag("force", *force).path(file),
    }
}

fn of_cache(volume: &str, order: &CacheOrder) -> Line {
    let on = |word: &str| Line::new(&["cache", word]).name(volume);
    // Parameters are separated as in a stack; each is a word.
    let with = |line: Line, parameters: &str| {
        let each = parameters.split(',').map(str::trim).filter(|one| !one.is_empty());
        each.fold(line, |line, one| line.name(one))
    };
    match order {
        CacheOrder::Attach { parameters, .. } => with(on("attach"), parameters),
        CacheOrder::Detach => on("detach"),
        CacheOrder::Resize { bytes, .. } => on("resize").name(bytes.to_string()),
        CacheOrder::Mode { mode, parameters } => with(on("mode").name(mode), parameters),
        CacheOrder::Drain { bytes_per_second } => on("drain")
            .name(bytes_per_second.map_or("unlimited".to_owned(), |bytes| format!("{bytes}/s"))),
    }
}

/// A path in an order that is not a whole one: it would be looked for in the folder of this server.
pub(crate) fn relative_path(order: &Order) -> Option<&Path> {
    let path = match order {
        Order::Add { member, .. } | Order::Device(DeviceOrder::Back { device: member }) => member,
        Order::Replace { with, .. } => with,
        Order::Whole(WholeOrder::Save { file, .. } | WholeOrder::Restore { file, .. }) => file,
        _ => return None,
    };
    (!path.is_absolute()).then_some(path.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order in JSON, as it is run and as it is typed.
    fn lines(order: &str) -> (String, String) {
        let line = of_order("home", &serde_json::from_str(order).expect("an order"));
        (line.arguments().join(" "), line.typed())
    }

    #[test]
    fn orders_are_command_lines() {
        let cases = [
            (
                r#"{"fail":{"member":"/a b"}}"#,
                "member fail --json -- home /a b",
                "braid member fail home '/a b'",
            ),
            (
                r#"{"add":{"member":"/a","again":true,"force":true,"array":"x"}}"#,
                "member re-add --array=x --force --json -- home /a",
                "braid member re-add --array=x --force home /a",
            ),
            (
                r#"{"replace":{"member":"/a","with":"/b"}}"#,
                "member replace --json -- home /a /b",
                "braid member replace home /a /b",
            ),
            (
                r#"{"scrub":{"repair":true}}"#,
                "scrub --repair --json -- home",
                "braid scrub --repair home",
            ),
            (
                r#"{"scrub":{"repair":true,"force":true}}"#,
                "scrub --repair --force --json -- home",
                "braid scrub --repair --force home",
            ),
            (
                r#"{"device":{"gone":{"device":"8:16"}}}"#,
                "incremental --fail=8:16 --",
                "braid incremental --fail=8:16",
            ),
            (
                r#"{"scrub":{"repair":true,"cancel":true}}"#,
                "scrub --cancel --json -- home",
                "braid scrub --cancel home",
            ),
            (
                r#"{"speed":{"max_bytes_per_second":0,"latency_us_p99":20000}}"#,
                "speed --max=0 --latency=20000us --json -- home",
                "braid speed --max=0 --latency=20000us home",
            ),
            (
                r#"{"member-size":{}}"#,
                "grow --size=max --json -- home",
                "braid grow --size=max home",
            ),
            (
                r#"{"bitmap":{"chunk_bytes":65536}}"#,
                "grow --bitmap=65536 --json -- home",
                "braid grow --bitmap=65536 home",
            ),
            (
                r#"{"whole":{"resize":{"bytes":4096}}}"#,
                "resize --json -- home 4096",
                "braid resize home 4096",
            ),
            (r#"{"whole":"unlock"}"#, "unlock --json -- home", "braid unlock home"),
            (
                r#"{"cache":{"attach":{"parameters":"size=8M, policy=lru"}}}"#,
                "cache attach --json -- home size=8M policy=lru",
                "braid cache attach home size=8M policy=lru",
            ),
            (
                r#"{"cache":{"drain":{}}}"#,
                "cache drain --json -- home unlimited",
                "braid cache drain home unlimited",
            ),
        ];
        for (order, run, typed) in cases {
            assert_eq!(lines(order), (run.to_owned(), typed.to_owned()), "{order}");
        }
    }

    #[test]
    fn nothing_that_is_named_becomes_an_option() {
        let (run, typed) = lines(r#"{"fail":{"member":"--force","array":"--json"}}"#);
        assert_eq!(run, "member fail --array=--json --json -- home --force");
        assert_eq!(typed, "braid member fail --array=--json home ./--force");
    }

    #[test]
    fn paths_are_whole() {
        let relative = |order: &str| relative_path(&serde_json::from_str(order).unwrap()).is_some();
        assert!(relative(r#"{"add":{"member":"a.img"}}"#));
        assert!(relative(r#"{"whole":{"save":{"file":"../x"}}}"#));
        assert!(!relative(r#"{"add":{"member":"/a.img"}}"#));
        assert!(!relative(r#"{"fail":{"member":"member 2 of home"}}"#), "a name, as status has it");
    }
}
