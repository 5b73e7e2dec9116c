//! A RAM cache in front of a device, as its user meets it: what is on the origin, what is counted.

mod common;

use common::{KIB, MIB, Scratch, Tool, fill, skip_without};
use serde_json::Value;

fn cache_of(status: &Value) -> &Value {
    &status["caches"][0]
}

fn count(status: &Value, name: &str) -> u64 {
    cache_of(status)[name].as_u64().unwrap_or_else(|| panic!("{name} in {status:#}"))
}

#[test]
fn what_is_read_again_comes_from_memory_and_the_origin_has_everything() {
    let scratch = Scratch::new();
    scratch.file("a.img", 8 * MIB, 1);
    let before = scratch.read("a.img");
    for mode in ["write-through", "write-around"] {
        let stack = format!("cache(size=4M, mode={mode}, a.img)");
        let volume = scratch.up(&stack, &["--name", mode, "--attach", "none"]);
        let mut client = volume.client();
        for round in 0..3 {
            let read = client.read(MIB, (64 * KIB) as u32).expect("a read");
            assert!(read == before[MIB as usize..][..64 << 10], "round {round}");
        }
        let status = volume.status();
        assert_eq!(count(&status, "reads"), 3, "{status:#}");
        assert_eq!(count(&status, "cache_hits"), 2, "{status:#}");
        assert_eq!(count(&status, "bytes_from_ram"), 128 * KIB, "{status:#}");
        assert_eq!(count(&status, "bytes_from_origin"), 64 * KIB, "{status:#}");
        assert!(
            count(&status, "index_bytes") * 1000 <= count(&status, "size_bytes") * 15,
            "{status:#}"
        );

        assert_eq!(count(&status, "cache_misses") + count(&status, "uncached_reads"), 1);
        assert!(cache_of(&status)["origin_read_us"].as_u64().is_some(), "{status:#}");

        // What is answered is on the origin, whatever becomes of the cache.
        let mut written = vec![0; (16 * KIB) as usize];
        fill(&mut written, 7, 0);
        client.write(MIB + 4 * KIB, &written, false).expect("a write");
        let read = client.read(MIB + 4 * KIB, (16 * KIB) as u32).expect("a read");
        assert!(read == written, "{mode}");
        let hits = count(&volume.status(), "cache_hits");
        assert_eq!(hits, if mode == "write-through" { 3 } else { 2 }, "{mode}");
        let text = scratch.run(&["status", mode]).ok();
        assert!(text.out.contains(&format!("cache: {mode}, s3-fifo, ")), "{text}");
        assert!(text.out.contains("% of reads are hits"), "{text}");
        volume.kill();
        assert!(scratch.read("a.img")[(MIB + 4 * KIB) as usize..][..16 << 10] == written[..]);
        scratch.patch("a.img", 0, &before);
    }
}

/// Every policy, small and large blocks, smaller than what is written: blocks come and go.
#[test]
fn fio_finds_what_it_wrote() {
    skip_without!("fio");
    let scratch = Scratch::new();
    scratch.sparse("a.img", 32 * MIB);
    scratch.sparse("b.img", 32 * MIB);
    let cases = [
        ("s3-fifo", "write-through", "4K"),
        ("s3-fifo", "write-around", "64K"),
        ("lru", "write-through", "64K"),
        ("lru", "write-around", "4K"),
    ];
    for (policy, mode, block) in cases {
        let stack = format!(
            "cache(size=4M, mode={mode}, block={block}, policy={policy}, cutoff=2M, raid1(a.img, b.img))"
        );
        let name = format!("{policy}-{mode}");
        let volume = scratch.up(&stack, &["--name", &name, "--attach", "none"]);
        let output = Tool::new("fio")
            .args(["--name=v", "--ioengine=nbd", "--rw=randrw", "--bsrange=512-16k", "--size=32M"])
            .args(["--io_size=48M", "--iodepth=16", "--verify=crc32c", "--verify_backlog=64"])
            .arg("--random_distribution=zipf:1.1")
            .arg(format!("--uri={}", volume.uris[0]))
            .folder(scratch.path())
            .run();
        output.ok();
        let status = volume.status();
        assert!(count(&status, "cache_hits") > 0, "{status:#}");
        let asked = count(&status, "cache_misses") + count(&status, "uncached_reads");
        assert_eq!(count(&status, "reads"), count(&status, "cache_hits") + asked, "{status:#}");
        let (read, ram) = (count(&status, "bytes_read"), count(&status, "bytes_from_ram"));
        assert_eq!(read, ram + count(&status, "bytes_from_origin"), "{status:#}");
        volume.down();
    }
    let (a, b) = (scratch.read("a.img"), scratch.read("b.img"));
    assert!(a == b, "the copies under the cache");
}

/// A loop over one and a half times what LRU has room for: nothing hits, with the rest of it all does.
#[test]
fn advice_says_what_more_memory_saves() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 64 * MIB);
    let stack = "cache(size=8M, policy=lru, model(usb-flash, size=64M, latency=0.1ms, read=1G/s))";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    let early = scratch.run(&["cache", "advise", "v"]).ok();
    assert!(early.out.contains("Too few reads for advice: 0 of blocks by now"), "{early}");

    let mut client = volume.client();
    for _ in 0..4 {
        for offset in (0..12 * MIB).step_by(64 << 10) {
            client.read(offset, 64 << 10).expect("a read");
        }
    }
    let text = scratch.run(&["cache", "advise", "v"]).ok();
    assert!(text.out.contains("MiB more memory, "), "{text}");
    assert!(text.out.contains(" at the size that it has would save "), "{text}");
    assert!(text.out.contains("hits of lru, by size:"), "{text}");
    let json = scratch.run(&["cache", "advise", "v", "--json"]).ok().json();
    let cache = &json["caches"][0];
    assert_eq!((&json["output_version"], &cache["sound"]), (&2.into(), &true.into()), "{json:#}");
    assert_eq!(cache["block_reads"], 4 * 3072, "{json:#}");
    let point = |policy: &str, size: u64| {
        let points = cache["points"].as_array().expect("points");
        let is_it = |one: &&Value| one["policy"] == policy && one["size_bytes"] == size;
        points.iter().find(is_it).expect("this size").clone()
    };
    let number = |point: &Value, name: &str| point[name].as_f64().expect("a number");
    let (now, twice) = (point("lru", 8 * MIB), point("lru", 16 * MIB));
    assert!(number(&now, "hit_percent") < 1.0, "{json:#}");
    assert!((number(&twice, "hit_percent") - 75.0).abs() < 1.0, "{json:#}");
    assert_eq!(number(&now, "saved_ms_per_1000_reads"), 0.0, "{json:#}");
    assert!(number(&twice, "saved_ms_per_1000_reads") > 0.0, "{json:#}");
    assert_eq!(point("lru", 64 * MIB)["filled"], false, "{json:#}");

    let page = scratch.join("page.html");
    let page = page.to_str().expect("a path");
    scratch.run(&["cache", "advise", "v", "--html", page]).ok();
    let before = std::fs::read_to_string(page).expect("a page");
    assert!(before.contains("<svg") && before.contains("more memory"), "{before}");
    scratch.run(&["cache", "advise", "v", "--html", page]).fails(3, &["is there already"]);
    assert_eq!(std::fs::read_to_string(page).expect("the page"), before);
    scratch.run(&["cache", "advise", "w"]).fails(1, &["no volume called w is up"]);
    let plain = scratch.up("file(a.img)", &["--name", "plain", "--attach", "none"]);
    scratch.run(&["cache", "advise", "plain"]).fails(1, &["plain has no cache", "braid up"]);
    plain.down();
    volume.down();
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let before = scratch.read("a.img");
    let output = scratch.run(&["up", "cache(size=4T, a.img)", "--name", "v", "--attach", "none"]);
    assert!(!output.status.success(), "{output}");
    assert!(
        output.err.contains("is more than the") && output.err.contains("of memory"),
        "{output}"
    );
    assert!(scratch.read("a.img") == before);
}
