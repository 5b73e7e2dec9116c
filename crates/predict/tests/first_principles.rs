//! Results that must hold for all constants.

use braid_array::geometry::Raid0;
use braid_level::Raid0Layout;
use braid_model::{BusProfile, Flash, Host, Kind, profile};
use braid_predict::{
    Closed, Layout, Machine, MemberModel, Places, Random, Reading, closed, closed_cut,
    random_reads, random_writes, read_ahead, write_back,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TRANSFER: u64 = 120 * KIB;

const HOST: Host = Host {
    page_bytes: 4096,
    readahead_bytes: 128 * KIB,
    copy_rate: 2e9,
    call_ns: 300.0,
    file_ns: 0.0,
    stdio_ns: 0.0,
    cache_bytes: 1 << 30,
    dirty_bytes: 0,
};

fn stick() -> Flash {
    let Kind::Flash(flash) = profile("cruzer-titanium").unwrap().kind else { panic!("a stick") };
    flash
}

fn usb() -> BusProfile {
    let Kind::Bus(bus) = profile("usb2-ich9").unwrap().kind else { panic!("a bus") };
    bus
}

/// Sticks in a stripe, each on the bus that `buses` says.
fn stripe(flash: Flash, chunk: u64, buses: &[usize]) -> Machine {
    let size = 2000 * MIB / chunk * chunk;
    let member = |bus: &usize| MemberModel { kind: Kind::Flash(flash), size, bus: *bus };
    let members: Vec<_> = buses.iter().map(member).collect();
    let layout = match members.len() {
        1 => Layout::Single,
        count => {
            let raid0 = Raid0::new(&vec![size; count], chunk, Raid0Layout::Original, 512);
            Layout::Of(Box::new(raid0.unwrap()))
        }
    };
    Machine::new(layout, &members, &[usb(); 6], TRANSFER)
}

fn read(machine: &mut Machine, window: u64) -> f64 {
    read_ahead(machine, &HOST, Reading { bytes: 96 * MIB, window, request: MIB })
}

fn write(machine: &mut Machine) -> f64 {
    write_back(machine, &HOST, 96 * MIB, 64 * MIB)
}

#[test]
fn one_stick_does_what_its_commands_take() {
    let flash = stick();
    let seconds = |bytes: u64, rate: u64| {
        (flash.command_ns + usb().turn_ns) as f64 / 1e9 + bytes as f64 / rate as f64
    };
    // A window of 128 KiB is a command of 120 KiB and one of 8.
    let window = seconds(TRANSFER, flash.read_rate) + seconds(8 * KIB, flash.read_rate);
    let rate = read(&mut stripe(flash, 64 * KIB, &[0]), 128 * KIB);
    assert!((rate / (128.0 * 1024.0 / window) - 1.0).abs() < 0.01, "{rate}");
    let rate = write(&mut stripe(flash, 64 * KIB, &[0]));
    assert!(
        (rate / (TRANSFER as f64 / seconds(TRANSFER, flash.write_rate)) - 1.0).abs() < 0.01,
        "{rate}"
    );
}

#[test]
fn sticks_below_the_limit_of_the_bus_add_up_and_at_it_they_do_not() {
    let one = write(&mut stripe(stick(), 128 * KIB, &[0]));
    for count in 2..=6 {
        let rate = write(&mut stripe(stick(), 128 * KIB, &vec![0; count]));
        let most = usb().rate_out as f64;
        let expected = (count as f64 * one).min(most);
        assert!((rate / expected - 1.0).abs() < 0.03, "{count} sticks: {rate}, not {expected}");
    }
    for count in 3..=6 {
        let rate = read(&mut stripe(stick(), 128 * KIB, &vec![0; count]), 256 * KIB * count as u64);
        assert!((rate / usb().rate_in as f64 - 1.0).abs() < 0.01, "{count} sticks: {rate}");
    }
}

#[test]
fn the_order_over_balanced_buses_does_not_matter() {
    for (window, chunk) in [(12 * 128 * KIB, 128 * KIB), (12 * 32 * KIB, 32 * KIB)] {
        let [interleaved, grouped] = [[0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]].map(|buses| {
            let reads = read(&mut stripe(stick(), chunk, &buses), window);
            [reads, write(&mut stripe(stick(), chunk, &buses))]
        });
        for (one, other) in interleaved.iter().zip(&grouped) {
            assert!((one / other - 1.0).abs() < 0.03, "{one} and {other}");
        }
    }
}

#[test]
fn a_window_below_the_stripe_leaves_sticks_idle() {
    let rate = |window: u64| read(&mut stripe(stick(), 128 * KIB, &[0, 1, 2, 3]), window);
    // At most two windows are under way: of these one covers one stick, and two of them two.
    let [narrow, half, stripe, two] = [1, 2, 4, 8].map(|chunks| rate(chunks * 128 * KIB));
    assert!(narrow < 0.6 * two && narrow < half && half < stripe && stripe <= 1.01 * two);
}

#[test]
fn writes_below_the_allocation_unit_cost_the_unit() {
    let flash = stick();
    let load = |request| Random { count: 200, request, range: 1500 * MIB, processes: 1 };
    let rate = |flash: Flash, request: u64| {
        let mut machine = stripe(flash, 128 * KIB, &[0]);
        let rate = random_writes(&mut machine, load(request), 1) * request as f64;
        let wear = machine.wear().next().flatten().expect("a stick wears");
        (rate, wear.amplification())
    };
    let (small, amplified) = rate(flash, 64 * KIB);
    let (whole, once) = rate(flash, flash.unit_bytes);
    assert!(amplified > 50.0 && (once - 1.0).abs() < 1e-9, "{amplified} and {once}");
    assert!(whole > 15.0 * small, "{whole} and {small}");
    // A unit of half the size is rewritten in half the time.
    let (halved, _) = rate(Flash { unit_bytes: flash.unit_bytes / 2, ..flash }, 64 * KIB);
    assert!((1.8..2.1).contains(&(halved / small)), "{halved} and {small}");
}

#[test]
fn readers_spread_over_sticks_until_each_has_one() {
    let rate = |processes| {
        let load = Random { count: 4000, request: 4096, range: 6000 * MIB, processes };
        random_reads(&mut stripe(stick(), 64 * KIB, &[0, 1, 2, 3]), &HOST, load, 0.0)
    };
    let one = rate(1);
    // Of n readers at random on 4 sticks, n / (n + 3) of 4 are at work if times vary as they like, and as
    // many as n balls hit of 4 bins if all take turns at once; these take equal times, not turns.
    for readers in [2, 4, 16_u64] {
        let n = readers as f64;
        let bounds = 4.0 * n / (n + 3.0)..4.0 * (1.0 - 0.75_f64.powf(n));
        let busy = rate(readers) / one;
        assert!(
            busy > 0.97 * bounds.start && busy < 1.03 * bounds.end,
            "{readers}: {busy} of {bounds:?}"
        );
    }
}

/// A disk's write cache is no part of how fast a long run is, however few of its requests are counted.
#[test]
fn long_runs_of_writes_wait_for_the_medium() {
    let profile = profile("barracuda-500").unwrap();
    let (size, Kind::Disk(disk)) = (profile.capacity.unwrap(), &profile.kind) else {
        panic!("a disk")
    };
    let machine = || {
        let member = MemberModel { kind: profile.kind.clone(), size, bus: 0 };
        Machine::new(Layout::Single, &[member], &[BusProfile::default()], 512 * KIB)
    };
    let load = |count| Closed {
        count,
        request: 4096,
        reads: 0,
        places: Places::Uniform,
        range: size,
        processes: 1,
        depth: 32,
    };
    // The way to the next of 32 that are sorted, some 2 ms, and half a revolution, 4.2 ms.
    let cut = closed_cut(&mut machine(), &[load(u64::MAX)], 1500).per_second();
    assert!((140.0..170.0).contains(&cut), "{cut} a second");
    // All of a run of twelve caches, less what is in the cache at its end.
    let written = 12 * disk.write_cache / 4096;
    let whole = closed(&mut machine(), &[load(written)]).per_second() * 11.0 / 12.0;
    assert!((cut / whole - 1.0).abs() < 0.05, "{cut} and {whole} a second");
    // Through the page cache in sequence: the outer zone's rate, not that of the cache.
    let long = write_back(&mut machine(), &HOST, 48 * MIB, 64 * MIB);
    assert!((long / disk.outer_rate - 1.0).abs() < 0.02, "{long}");
}
