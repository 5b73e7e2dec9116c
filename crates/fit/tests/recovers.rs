//! A profile fitted to a modelled device has its constants.

use std::time::Duration;

use braid_fit::{Batch, Fault, Fit, Measured, Modelled, Permission, Timing, fit};
use braid_model::{BusProfile, Profile};
use braid_seed::Rng;

const HOURS: Duration = Duration::from_secs(36_000);

/// A device whose times are off by shares with this standard deviation.
struct Noisy {
    device: Modelled,
    share: f64,
    rng: Rng,
    /// By what all of its times are multiplied.
    clock: f64,
    /// Writes that it was asked for.
    writes: usize,
}

impl Noisy {
    fn new(profile: &Profile, size: u64, share: f64, seed: u64) -> Noisy {
        let device = Modelled::new(profile, BusProfile::default(), size);
        let device = device.expect("a kind that is a device");
        Noisy { device, share, rng: Rng::new(seed), clock: 1.0, writes: 0 }
    }
}

impl Measured for Noisy {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn block(&self) -> u64 {
        self.device.block()
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
        let mut timings = self.device.run(batch)?;
        self.writes += batch.requests.iter().filter(|request| request.write).count();
        for timing in &mut timings {
            // Twelve uniform numbers are nearly normal.
            let uniform = |rng: &mut Rng| rng.below(1 << 20) as f64 / f64::from(1 << 20);
            let normal = (0..12).map(|_| uniform(&mut self.rng)).sum::<f64>() - 6.0;
            let took = timing.took_ns() * self.clock * (1.0 + self.share * normal).max(0.1);
            timing.end_ns = timing.start_ns + took as u64;
        }
        Ok(timings)
    }
}

/// Constants of a profile by name.
type Constants = Vec<(String, f64)>;

fn profile(kind: &str, constants: &Constants) -> Profile {
    let lines: String = constants
        .iter()
        .map(|(name, value)| format!("{name} = [{value:?}, \"drawn\"]\n"))
        .collect();
    let text = format!("kind = \"{kind}\"\nlabel = \"drawn\"\n[constant]\n{lines}");
    Profile::parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// A number between, whose logarithm is uniform.
fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    let share = rng.below(1 << 20) as f64 / f64::from(1 << 20);
    low * (high / low).powf(share)
}

fn named(constants: &[(&str, f64)]) -> Constants {
    constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn one(rng: &mut Rng, of: &[f64]) -> f64 {
    of[rng.index(of.len())]
}

fn flash(rng: &mut Rng) -> Constants {
    let unit = one(rng, &[256.0, 512.0, 768.0, 1024.0, 2048.0, 3072.0, 4096.0, 8192.0]) * 1024.0;
    named(&[
        ("command_us", between(rng, 100.0, 2000.0)),
        ("settle_us", one(rng, &[0.0, 500.0, 2840.0])),
        ("random_us", between(rng, 200.0, 4000.0)),
        ("transfer_max", one(rng, &[32.0, 64.0, 120.0, 128.0, 240.0, 256.0, 512.0]) * 1024.0),
        ("read_rate", between(rng, 15e6, 200e6)),
        ("write_rate", between(rng, 5e6, 100e6)),
        ("page_bytes", one(rng, &[2048.0, 4096.0, 8192.0, 16_384.0])),
        ("erase_block_bytes", 128.0 * 1024.0),
        ("unit_bytes", unit),
        ("copy_rate", between(rng, 8e6, 60e6)),
        ("open_units", one(rng, &[1.0, 2.0, 4.0, 6.0, 8.0])),
        ("endurance_cycles", 10_000.0),
    ])
}

fn disk(rng: &mut Rng) -> Constants {
    let track = between(rng, 0.5, 1.5);
    let full = between(rng, 12.0, 25.0);
    // The average of a curve that rises lies between a third and 8/15 of the way.
    let share = between(rng, 0.36, 0.51);
    let outer = between(rng, 60e6, 250e6);
    named(&[
        ("rpm", one(rng, &[5400.0, 5900.0, 7200.0, 10_000.0, 6543.0])),
        ("seek_track_ms", track),
        ("seek_average_ms", track + share * (full - track)),
        ("seek_full_ms", full),
        ("outer_rate", outer),
        ("inner_rate", outer * between(rng, 0.4, 0.8)),
        ("command_us", between(rng, 50.0, 300.0)),
        ("write_cache", one(rng, &[8.0, 16.0, 64.0]) * 1024.0 * 1024.0),
        ("queue_depth", one(rng, &[1.0, 4.0, 8.0, 16.0, 32.0])),
    ])
}

fn plain(rng: &mut Rng) -> Constants {
    named(&[
        ("read_rate", between(rng, 10e6, 500e6)),
        ("write_rate", between(rng, 5e6, 500e6)),
        ("latency_us", between(rng, 50.0, 5000.0)),
        ("bus_rate", 0.0),
    ])
}

const DESTROY: Permission = Permission { destroy: true, limit: HOURS };

fn fitted(device: &mut Noisy) -> Fit {
    let mut announced = 0;
    let fit = fit(device, "drawn", DESTROY, &mut |_| announced += 1);
    assert_eq!(announced, 1, "the plan is said once");
    fit.unwrap_or_else(|error| panic!("{error}"))
}

/// Constants that no experiment can see in this device, since what they do drowns in what they stand beside.
fn hidden(constants: &Constants, share: f64) -> Vec<&'static str> {
    let of = |name: &str| constants.iter().find(|one| one.0 == name).map_or(0.0, |one| one.1);
    let mut hidden = vec!["endurance_cycles", "erase_block_bytes", "bus_rate"];
    let command = of("command_us") * 1e3;
    let long = of("transfer_max") / of("read_rate") * 1e9;
    if command < (0.03 + 3.0 * share) * long {
        hidden.push("transfer_max");
    }
    let page = of("page_bytes") / of("write_rate") * 1e9;
    if page < (0.05 + 5.0 * share) * command {
        hidden.push("page_bytes");
    }
    hidden
}

/// The constants that are off by more than `tolerance`.
fn off(kind: &str, drawn: &Constants, fit: &Fit, tolerance: f64, share: f64) -> Vec<String> {
    let mut off = Vec::new();
    if fit.kind != kind {
        off.push(format!("{} for {kind}: {:?}", fit.kind, fit.tried));
        return off;
    }
    let hidden = hidden(drawn, share);
    let profile = Profile::parse(&fit.text).expect("a fit's text is a profile");
    for (name, value) in drawn.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
        let found = profile.constant(name).expect("all constants of a kind are there");
        let is_near = match *value == 0.0 {
            true => found < 25.0,
            false => (found / value - 1.0).abs() <= tolerance,
        };
        if !is_near {
            off.push(format!("{name} {value} became {found} of {drawn:?}"));
        }
    }
    off
}

/// A kind, its size, and what draws its constants.
type Draw = (&'static str, u64, fn(&mut Rng) -> Constants);
const DRAWS: [Draw; 3] = [
    ("plain", 4 << 30, plain),
    ("usb-flash", 2_000_000_000, flash),
    ("disk", 500_107_862_016, disk),
];

fn all_near(share: f64, tolerance: f64, draws: u64) {
    let mut wrong = Vec::new();
    for (kind, size, draw) in DRAWS {
        for seed in 0..draws {
            let drawn = draw(&mut Rng::new(seed));
            let fit = fitted(&mut Noisy::new(&profile(kind, &drawn), size, share, seed));
            let off = off(kind, &drawn, &fit, tolerance, share);
            wrong.extend(off.iter().map(|off| format!("{kind} {seed}: {off}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_model_gets_its_constants_back_within_five_per_cent() {
    all_near(0.0, 0.05, 24);
}

#[test]
fn times_that_are_off_by_three_per_cent_move_constants_by_ten_at_most() {
    all_near(0.03, 0.10, 24);
}

/// The tests above find an estimator that is wrong by a little more than they permit.
#[test]
fn a_clock_that_is_six_per_cent_fast_is_found() {
    for (kind, size, draw) in DRAWS {
        let drawn = draw(&mut Rng::new(3));
        let mut device = Noisy::new(&profile(kind, &drawn), size, 0.0, 3);
        device.clock = 1.06;
        let off = off(kind, &drawn, &fitted(&mut device), 0.05, 0.0);
        let rate = off.iter().any(|off| off.contains("rate") || off.contains("rpm"));
        assert!(rate, "{kind}: {off:?}");
    }
}

#[test]
fn the_devices_that_come_with_braid_are_found() {
    for name in ["rally2", "adata", "cruzer-titanium", "barracuda-500", "sata-7200", "usb-flash"] {
        let profile = braid_model::profile(name).expect("a profile that comes with braid");
        let size = profile.capacity.unwrap_or(4 << 30);
        let fit = fitted(&mut Noisy::new(&profile, size, 0.0, 1));
        let drawn: Constants =
            profile.constants.iter().map(|one| (one.name.clone(), one.value)).collect();
        let off = off(profile.kind.name(), &drawn, &fit, 0.05, 0.0);
        assert!(off.is_empty(), "{name}: {}", off.join("\n"));
        assert!(fit.held_out.median < 0.02 && fit.warnings.is_empty(), "{name}: {}", fit.text);
    }
}

#[test]
fn without_permission_nothing_is_written_and_the_profile_says_so() {
    for (kind, size, draw) in DRAWS {
        let drawn = draw(&mut Rng::new(5));
        let mut device = Noisy::new(&profile(kind, &drawn), size, 0.0, 5);
        let permission = Permission { destroy: false, limit: HOURS };
        let mut writes = 1;
        let fit = fit(&mut device, "drawn", permission, &mut |plan| writes = plan.writes);
        let fit = fit.expect("a fit");
        assert_eq!((writes, device.writes, fit.kind), (0, 0, kind));
        let name = if kind == "disk" { "write_cache" } else { "write_rate" };
        let write = fit.constants.iter().find(|one| one.name == name).expect("a constant");
        assert!(!write.measured && write.source.starts_with("not measured; assumed"), "{write:?}");
        // What only reads could tell is as near as with writes.
        let unseen = ["write", "page", "unit", "copy", "open"];
        let read: Constants = drawn
            .into_iter()
            .filter(|one| !unseen.iter().any(|part| one.0.contains(part)))
            .collect();
        assert_eq!(off(kind, &read, &fit, 0.05, 0.0), [""; 0]);
    }
}

#[test]
fn a_device_that_is_too_small_or_too_slow_is_refused_before_anything_is_written() {
    let drawn = profile("usb-flash", &flash(&mut Rng::new(7)));
    let mut small = Noisy::new(&drawn, 500 << 20, 0.0, 7);
    let mut announced = 0;
    let mut run = |device: &mut Noisy, limit| {
        let permission = Permission { destroy: true, limit };
        fit(device, "drawn", permission, &mut |_| announced += 1).map(|fit| fit.kind)
    };
    let what = "experiments that write";
    let too_small = Fault::TooSmall { size: 500 << 20, least: 576 << 20, what };
    assert_eq!(run(&mut small, HOURS), Err(too_small));
    let mut tiny = Noisy::new(&drawn, 1 << 20, 0.0, 7);
    assert!(matches!(run(&mut tiny, HOURS), Err(Fault::TooSmall { what: "a fit", .. })));
    let mut hasty = Noisy::new(&drawn, 2_000_000_000, 0.0, 7);
    let late = run(&mut hasty, Duration::from_secs(10));
    assert!(matches!(late, Err(Fault::Late { needs: Some(_), .. })), "{late:?}");
    assert_eq!(small.writes + tiny.writes + hasty.writes + announced, 0);
}

/// A device that becomes slow after its first answers.
#[test]
fn the_limit_holds_though_the_plan_was_wrong() {
    struct Tired(Noisy, usize);
    impl Measured for Tired {
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn block(&self) -> u64 {
            self.0.block()
        }
        fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
            self.1 += 1;
            self.0.clock = if self.1 > 4 { 1000.0 } else { 1.0 };
            self.0.run(batch)
        }
    }
    let drawn = profile("plain", &plain(&mut Rng::new(7)));
    let mut tired = Tired(Noisy::new(&drawn, 2_000_000_000, 0.0, 7), 0);
    let permission = Permission { destroy: false, limit: Duration::from_secs(600) };
    let late = fit(&mut tired, "drawn", permission, &mut |_| ());
    assert!(matches!(late, Err(Fault::Late { needs: None, .. })), "{late:?}");
    assert!(tired.1 < 200, "{} batches", tired.1);
}

/// Whatever seems to be there in times that say nothing: it is doubted, and no failure.
#[test]
fn a_busy_device_is_warned_of() {
    for seed in 0..12 {
        let drawn = profile("plain", &plain(&mut Rng::new(seed)));
        let fit = fitted(&mut Noisy::new(&drawn, 4 << 30, 0.4, seed));
        assert!(fit.warnings.iter().any(|warning| warning.contains("busy")), "{:?}", fit.warnings);
        // Memory has no units, however much its times differ.
        let memory = braid_model::profile("ram").expect("a profile that comes with braid");
        let fit = fitted(&mut Noisy::new(&memory, 4 << 30, 0.4, seed));
        let of = |name| fit.constants.iter().find(|one| one.name == name).map(|one| one.estimate);
        assert_eq!(of("unit_bytes").map(|one| one.value), of("page_bytes").map(|one| one.value));
    }
}

/// The least devices are read and written within their bounds.
#[test]
fn small_devices_have_an_end() {
    for (size, destroy) in [(16 << 20, false), ((20 << 20) + 4096, false), (576 << 20, true)] {
        for (kind, _, draw) in DRAWS {
            let mut device = Noisy::new(&profile(kind, &draw(&mut Rng::new(11))), size, 0.0, 11);
            let permission = Permission { destroy, limit: HOURS };
            let fit = fit(&mut device, "drawn", permission, &mut |_| ());
            let fit = fit.unwrap_or_else(|error| panic!("{kind} of {size}: {error}"));
            assert_eq!(fit.size, size);
        }
    }
}

/// A device whose answers come late to a host whose processors are busy: a share of them, by a time that is drawn
/// for each. The next request is made when the answer before it was seen.
struct Late {
    device: Modelled,
    percent: u64,
    most_ns: u64,
    rng: Rng,
}

impl Measured for Late {
    fn size(&self) -> u64 {
        self.device.size()
    }

    fn block(&self) -> u64 {
        self.device.block()
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
        let mut late = || match self.rng.percent(self.percent) {
            true => self.rng.below(self.most_ns),
            false => 0,
        };
        if batch.depth > 1 {
            let mut timings = self.device.run(batch)?;
            timings.iter_mut().for_each(|timing| timing.end_ns += late());
            return Ok(timings);
        }
        let (mut timings, mut before_ns) = (Vec::new(), 0);
        for request in &batch.requests {
            let (requests, pause_ns) = (vec![*request], batch.pause_ns + before_ns);
            before_ns = late();
            let answers = self.device.run(&Batch { requests, depth: 1, pause_ns })?;
            timings.extend(
                answers.into_iter().map(|one| Timing { end_ns: one.end_ns + before_ns, ..one }),
            );
        }
        Ok(timings)
    }
}

/// The device reports how scarce processors were, and the profile contains it.
#[test]
fn a_fit_while_tasks_wait_for_processors_is_doubted() {
    struct Wanted(Noisy, f64);
    impl Measured for Wanted {
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn block(&self) -> u64 {
            self.0.block()
        }
        fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
            self.0.run(batch)
        }
        fn processor_waits(&self) -> f64 {
            self.1
        }
    }
    let drawn = profile("plain", &plain(&mut Rng::new(7)));
    let permission = Permission { destroy: false, limit: HOURS };
    for (share, doubts) in [(0.05, 0), (0.4, 1)] {
        let mut device = Wanted(Noisy::new(&drawn, 2_000_000_000, 0.0, 7), share);
        let fit = fit(&mut device, "wanted", permission, &mut |_| ()).expect("a fit");
        assert_eq!(fit.warnings.len(), doubts, "{:?}", fit.warnings);
        let said = fit.text.contains("Warning: tasks waited for a processor for 40 %");
        assert_eq!(said, doubts > 0, "{}", fit.text);
    }
}

/// A disk on a busy host has its constants, or its profile says that it may not be believed.
#[test]
fn a_disk_whose_answers_come_late_is_doubted_or_found() {
    let profile = braid_model::profile("sata-7200").expect("a profile that comes with braid");
    let (mut found, mut wrong) = (0, Vec::new());
    for seed in 0..60 {
        let device = Modelled::new(&profile, BusProfile::default(), 4400 << 20).expect("a disk");
        let mut rng = Rng::new(seed);
        let (percent, most_ns) = (rng.below(100), rng.below(20_000_000) + 1);
        let mut late = Late { device, percent, most_ns, rng };
        let permission = Permission { destroy: false, limit: HOURS };
        let fit = fit(&mut late, "late", permission, &mut |_| ()).expect("a fit");
        let text = Profile::parse(&fit.text).expect("a fit's text is a profile");
        let near = [
            ("rpm", 0.99, 1.01),
            ("seek_average_ms", 0.9, 1.1),
            ("outer_rate", 0.85, 1.05),
            ("queue_depth", 0.5, 2.0),
        ];
        let off = near.into_iter().filter(|(name, least, most)| {
            let ratio = text.constant(name).zip(profile.constant(name)).map(|(a, b)| a / b);
            !ratio.is_some_and(|ratio| (*least..=*most).contains(&ratio))
        });
        let off: Vec<_> = off.map(|one| (one.0, text.constant(one.0))).collect();
        found += usize::from(off.is_empty());
        let rpm = fit.constants.iter().find(|one| one.name == "rpm").map(|one| one.estimate);
        let is_tight = rpm.is_some_and(|rpm| rpm.low > 7200.0 || rpm.high < 7200.0);
        if (!off.is_empty() && fit.warnings.is_empty()) || is_tight {
            wrong.push(format!(
                "{seed}, {percent} % by {most_ns}: {off:?}, {rpm:?}, {:?}",
                fit.warnings
            ));
        }
    }
    assert!(found > 15, "{found} of 60 were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
