//! Expressions that are refused, with the exact text that a person sees.

use braid_stack::{MAX_DEPTH, MAX_LENGTH, MAX_MEMBERS, Stack};

fn rendered(source: &str) -> String {
    match Stack::parse(source) {
        Ok(stack) => panic!("`{source}` parses as `{stack}`"),
        Err(error) => error.render(source),
    }
}

/// Each text is the rendered error; its second line is the source.
const BAD: &[&str] = &[
    "column 7: `)` is missing for `raid0(`
  raid0(
        ^
help: add `)`",
    "column 19: `)` is missing for `raid0(`
  raid0(a.img, b.img
                    ^
help: add `)`",
    "column 13: found the end where a member or a value is needed
  raid0(chunk=
              ^",
    "column 36: `)` is missing for `linear(`
  linear(ram(1G), raid0(a.img, b.img)
                                     ^
help: add `)`",
    "column 4: `(` is missing behind `ram`
  ram 1G
     ^
help: write ram(…)",
    "column 1: `ram` needs its arguments in parentheses
  ram
  ^^^
help: the form is ram(SIZE, preallocate, huge, lock, overcommit, logical_block=512, image=PATH), for example ram(1G)",
    "column 21: found `)` where the end of the expression is needed
  linear(a.img, b.img))
                      ^",
    "column 14: found `b.img` where `,` or `)` is needed
  linear(a.img b.img)
               ^^^^^",
    "column 14: found `,` where a member or a value is needed
  linear(a.img,, b.img)
               ^",
    "column 21: found `)` where a member or a value is needed
  linear(a.img, b.img,)
                      ^",
    "column 8: found `,` where a member or a value is needed
  linear(, a.img)
         ^",
    "column 6: found `,` where the end of the expression is needed
  a.img, b.img
       ^",
    "column 7: found `b.img` where the end of the expression is needed
  a.img b.img
        ^^^^^",
    "column 1: found `(` where a member or a value is needed
  (a.img)
  ^",
    "column 1: found `=` where a member or a value is needed
  =
  ^",
    "column 14: found `=` where a member or a value is needed
  linear(chunk==4K, a.img)
               ^",
    r#"column 15: the quote is not closed
  linear(a.img, "b c.img)
                ^
help: end the path with ""#,
    r#"column 10: `\q` is not an escape
  linear("a\q.img")
           ^^
help: inside quotes write \\ for a backslash and \" for a quote"#,
    "column 10: `(` inside the path `/srv/disk`
  /srv/disk(1).img
           ^
help: put a path with parentheses, commas or spaces in double quotes",
    "column 1: `liner` is not a level
  liner(a.img)
  ^^^^^
help: did you mean `linear`?",
    "column 1: `lienar` is not a level
  lienar(a.img)
  ^^^^^^
help: did you mean `linear`?",
    "column 1: `raid7` is not a level
  raid7(a.img)
  ^^^^^
help: this version has ram, file, part, linear, raid0, raid1, raid10, raid4, raid5, raid6, md, cache, slice, holes, cow, model, nbd, rbd, error, missing",
    "column 1: `stripe` is not a level
  stripe(a.img)
  ^^^^^^
help: this version has ram, file, part, linear, raid0, raid1, raid10, raid4, raid5, raid6, md, cache, slice, holes, cow, model, nbd, rbd, error, missing",
    "column 1: `RAID0` is not a level
  RAID0(a.img)
  ^^^^^
help: did you mean `raid0`?",
    "column 1: `raid5` needs at least 2 members, not 1
  raid5(a.img)
  ^^^^^^^^^^^^
help: add members, or `missing` for those that come later",
    "column 1: `raid6` needs at least 4 members, not 3
  raid6(a.img, b.img, missing)
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: add members, or `missing` for those that come later",
    "column 23: 2 members of `raid5` are missing; it can do without 1
  raid5(a.img, missing, missing)
                        ^^^^^^^
help: name the members that hold the data",
    "column 23: 2 members of `raid4` are missing; it can do without 1
  raid4(missing, a.img, missing)
                        ^^^^^^^
help: name the members that hold the data",
    "column 32: 3 members of `raid6` are missing; it can do without 2
  raid6(a.img, missing, missing, missing)
                                 ^^^^^^^
help: name the members that hold the data",
    "column 13: `chunk` 96K is not a power of two
  raid5(chunk=96K, a.img, b.img, c.img)
              ^^^
help: the nearest are 64K and 128K",
    "column 14: `left-symetric` is not a layout
  raid5(layout=left-symetric, a.img, b.img)
               ^^^^^^^^^^^^^
help: did you mean `left-symmetric`?",
    "column 14: `ddf-N-restart` is not a layout
  raid5(layout=ddf-N-restart, a.img, b.img)
               ^^^^^^^^^^^^^
help: use one of left-symmetric (ls), left-asymmetric (la), right-symmetric (rs), right-asymmetric (ra), parity-first, parity-last",
    "column 14: `n2` is not a layout
  raid6(layout=n2, a.img, b.img, c.img, d.img)
               ^^
help: use one of left-symmetric (ls), left-asymmetric (la), right-symmetric (rs), right-asymmetric (ra), parity-first, parity-last, ddf-zero-restart, ddf-N-restart, ddf-N-continue, left-symmetric-6, left-asymmetric-6, right-symmetric-6, right-asymmetric-6, parity-first-6",
    "column 7: `raid4` has no parameter `layout`
  raid4(layout=ls, a.img, b.img)
        ^^^^^^
help: the form is raid4(chunk=512K, MEMBER, MEMBER|missing, …)",
    "column 1: `raid6` needs its arguments in parentheses
  raid6
  ^^^^^
help: the form is raid6(chunk=512K, layout=left-symmetric, MEMBER, MEMBER|missing, …)",
    "column 15: `missing` can only stand alone, in place of a member of a level with redundancy
  linear(a.img, missing)
                ^^^^^^^
help: the levels with redundancy are raid1, raid10, raid4, raid5, raid6",
    "column 1: `missing` can only stand alone, in place of a member of a level with redundancy
  missing
  ^^^^^^^
help: the levels with redundancy are raid1, raid10, raid4, raid5, raid6",
    "column 14: `missing` can only stand alone, in place of a member of a level with redundancy
  raid1(a.img, missing())
               ^^^^^^^^^
help: the levels with redundancy are raid1, raid10, raid4, raid5, raid6",
    "column 11: `missing` can only stand alone, in place of a member of a level with redundancy
  md(a.img, missing)
            ^^^^^^^
help: the levels with redundancy are raid1, raid10, raid4, raid5, raid6",
    "column 1: all members of `raid1` are missing; at least one must be there
  raid1(missing, missing)
  ^^^^^^^^^^^^^^^^^^^^^^^
help: name the members that hold the data",
    "column 1: `raid1` needs at least one member
  raid1()
  ^^^^^^^
help: the form is raid1(MEMBER, MEMBER|missing, …)",
    "column 7: `raid1` has no parameter `chunk`
  raid1(chunk=64K, a.img)
        ^^^^^
help: the form is raid1(MEMBER, MEMBER|missing, …)",
    "column 1: `raid10` has 2 members; 3 copies of everything need 3
  raid10(layout=n3, a.img, missing)
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: add members, or `missing` for those that come later",
    "column 14: `chunk` 12K is not a power of two
  raid10(chunk=12K, a.img, b.img)
               ^^^
help: the nearest are 8K and 16K",
    "column 15: `n1` is not a layout
  raid10(layout=n1, a.img, b.img)
                ^^
help: use one of n2 (near), f2 (far), o2 (offset), with 2 to 255 copies",
    "column 11: `md` takes files and block devices, which describe the array themselves
  md(a.img, ram(1G))
            ^^^^^^^
help: write their paths, or the level over these devices, as `braid rescue open` prints it",
    "column 4: `md` has no parameter `level`
  md(level=1, a.img)
     ^^^^^
help: the form is md(MEMBER, MEMBER, …), each a path, nbd(URI) or rbd(POOL/IMAGE)",
    "column 14: `./a.img` is a member twice
  raid1(a.img, ./a.img)
               ^^^^^^^
help: it is already at column 7; each member needs bytes of its own",
    "column 14: `rdb` is not a level
  raid0(a.img, rdb(pool/image))
               ^^^
help: did you mean `rbd`?",
    "column 18: `image` is no name of an image and its client: it names no pool: rbd(POOL/IMAGE)
  raid0(a.img, rbd(image))
                   ^^^^^",
    "column 1: `holes` needs the map of its holes: map=FILE
  holes(a.img)
  ^^^^^^^^^^^^
help: the form is holes(DEVICE, map=FILE)",
    "column 1: `cow` needs a device
  cow(store=a.cow)
  ^^^^^^^^^^^^^^^^
help: the form is cow(DEVICE, store=FILE)",
    "column 14: `slice` does not take this argument
  slice(a.img, b.img)
               ^^^^^
help: the form is slice(DEVICE, offset=SIZE, length=SIZE)",
    "column 21: `offset` 100 is not a multiple of 512
  slice(a.img, offset=100)
                      ^^^
help: the least is 512",
    "column 18: a path cannot be empty or contain a NUL character
  holes(a.img, map=\"\")
                   ^^",
    "column 5: `missing` can only stand alone, in place of a member of a level with redundancy
  cow(missing, store=a.cow)
      ^^^^^^^
help: the levels with redundancy are raid1, raid10, raid4, raid5, raid6",
    "column 33: `./a.img` is a member twice
  linear(cow(a.img, store=a.cow), ./a.img)
                                  ^^^^^^^
help: it is already at column 12; each member needs bytes of its own",
    "column 1: `cache` needs the memory that it may take: size=SIZE
  cache(a.img)
  ^^^^^^^^^^^^
help: the form is cache(size=SIZE, mode=write-through, block=4K, policy=s3-fifo, cutoff=SIZE, warm=PATH, saved=index, ORIGIN); with mode=write-back also log=PATH or volatile=yes, dirty=SIZE, age=30s, drain=RATE",
    "column 23: `cache` does not take this argument
  cache(size=1G, a.img, b.img)
                        ^^^^^
help: the form is cache(size=SIZE, mode=write-through, block=4K, policy=s3-fifo, cutoff=SIZE, warm=PATH, saved=index, ORIGIN); with mode=write-back also log=PATH or volatile=yes, dirty=SIZE, age=30s, drain=RATE",
    "column 1: `size` 16K is outside 64K to 8T
  cache(size=16K, block=64K, a.img)
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "column 22: `block` 12K is not a power of two
  cache(size=1G, block=12K, a.img)
                       ^^^
help: the nearest are 8K and 16K",
    "column 1: mode=write-back needs a log, which keeps over a crash what the origin does not have yet
  cache(size=1G, mode=write-back, a.img)
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: log=PATH names a file or a device for it; volatile=yes does without: what is dirty is lost with the power, and FLUSH writes all of it to the origin",
    "column 37: a cache with a log is not volatile
  cache(size=1G, mode=write-back, log=l.img, volatile=yes, a.img)
                                      ^^^^^
help: leave out log= or volatile=yes",
    "column 20: `log` is for mode=write-back
  cache(size=1G, log=l.img, a.img)
                     ^^^^^
help: add mode=write-back, or leave it out",
    "column 44: `a.img` is a member twice
  cache(size=1G, mode=write-back, a.img, log=a.img)
                                             ^^^^^
help: it is already at column 33; each member needs bytes of its own",
    "column 1: `sdb` is neither a level nor a path
  sdb
  ^^^
help: write ./sdb for a file, /dev/sdb for a device",
    "column 8: `64K` is neither a level nor a path
  linear(64K, a.img)
         ^^^
help: write ./64K for a file, /dev/64K for a device",
    "column 1: `linear` needs at least one member
  linear()
  ^^^^^^^^
help: the form is linear(MEMBER, MEMBER, …)",
    "column 1: `raid0` needs at least one member
  raid0(chunk=64K)
  ^^^^^^^^^^^^^^^^
help: the form is raid0(chunk=512K, layout=alternate, MEMBER, MEMBER, …)",
    "column 13: `chunk` cannot be zero
  raid0(chunk=0, a.img)
              ^",
    "column 13: `chunk` 1K is not a multiple of 4K
  raid0(chunk=1K, a.img)
              ^^
help: the least is 4K",
    "column 13: `chunk` 5K is not a multiple of 4K
  raid0(chunk=5K, a.img)
              ^^
help: the nearest are 4K and 8K",
    "column 13: `chunk` 128M is outside 4K to 64M
  raid0(chunk=128M, a.img)
              ^^^^",
    "column 13: `chunk` 18446744073709551615 is not a multiple of 4K
  raid0(chunk=18446744073709551615, a.img)
              ^^^^^^^^^^^^^^^^^^^^
help: the nearest is 18014398509481980K",
    "column 13: `chunk` cannot be `64Q`: `Q` is not a unit here; use K, M, G, T, P (1024), KiB … PiB (1024) or KB … PB (1000)
  raid0(chunk=64Q, a.img)
              ^^^",
    "column 13: `chunk` needs a plain value
  raid0(chunk=ram(1G), a.img)
              ^^^^^^^",
    "column 18: `chunk` is given twice
  raid0(chunk=64K, chunk=128K, a.img)
                   ^^^^^
help: keep one of them",
    "column 7: `raid0` has no parameter `chnk`
  raid0(chnk=64K, a.img)
        ^^^^
help: did you mean `chunk=`?",
    "column 7: `raid0` has no parameter `size`
  raid0(size=64K, a.img)
        ^^^^
help: the form is raid0(chunk=512K, layout=alternate, MEMBER, MEMBER, …)",
    "column 14: `orginal` is not a layout
  raid0(layout=orginal, a.img)
               ^^^^^^^
help: did you mean `original`?",
    "column 14: `near` is not a layout
  raid0(layout=near, a.img)
               ^^^^
help: use one of original, alternate",
    "column 8: `linear` has no parameter `chunk`
  linear(chunk=64K, a.img)
         ^^^^^
help: the form is linear(MEMBER, MEMBER, …)",
    "column 1: `ram` needs a size
  ram()
  ^^^^^
help: the form is ram(SIZE, preallocate, huge, lock, overcommit, logical_block=512, image=PATH), for example ram(1G)",
    "column 5: `size` cannot be zero
  ram(0)
      ^",
    "column 5: `size` 1000 is not a multiple of 512
  ram(1000)
      ^^^^
help: the nearest are 512 and 1K",
    "column 10: `1G` is not a word for a RAM disk
  ram(16P, 1G)
           ^^
help: use one of preallocate, huge, lock, overcommit",
    "column 9: `preallocat` is not a word for a RAM disk
  ram(1G, preallocat)
          ^^^^^^^^^^
help: did you mean `preallocate`?",
    "column 15: `lock` is given twice
  ram(1G, lock, lock)
                ^^^^
help: keep one of them",
    "column 23: `logical_block` 3K is not a power of two
  ram(1G, logical_block=3K)
                        ^^
help: the nearest are 2K and 4K",
    "column 23: `logical_block` 8K is outside 512 to 4K
  ram(1G, logical_block=8K)
                        ^^",
    "column 5: `size` 1536 is not a multiple of 1K
  ram(1536, logical_block=1K)
      ^^^^
help: the nearest are 1K and 2K",
    "column 15: a path cannot be empty or contain a NUL character
  ram(1G, image=\"\")
                ^^",
    "column 5: `size` 8192P is outside 512 to 4096P
  ram(8192P)
      ^^^^^",
    "column 5: `ram` has no parameter `size`
  ram(size=1G)
      ^^^^
help: the form is ram(SIZE, preallocate, huge, lock, overcommit, logical_block=512, image=PATH), for example ram(1G)",
    "column 5: `size` cannot be `big`: `big` does not begin with a number
  ram(big)
      ^^^",
    "column 20: `offset` 100 is not a multiple of 512
  file(a.img, offset=100)
                     ^^^
help: the least is 512",
    "column 20: `length` cannot be zero
  file(a.img, length=0)
                     ^",
    "column 1: `file` needs a path
  file()
  ^^^^^^
help: the form is file(PATH, offset=SIZE, length=SIZE), or the path alone",
    r#"column 1: a path cannot be empty or contain a NUL character
  ""
  ^^"#,
    r#"column 1: a path cannot be empty or contain a NUL character
  "a\u{0}b"
  ^^^^^^^^^"#,
    "column 6: `path` needs a plain value
  file(ram(1G))
       ^^^^^^^",
    "column 1: `model` needs a size
  model(hdd)
  ^^^^^^^^^^
help: the form is model(PROFILE|FILE.toml, size=SIZE, bus=NAME, read=RATE, write=RATE, latency=TIME, bus_rate=RATE)",
    "column 1: `model` needs a profile: a name, or a file's path
  model(size=1G)
  ^^^^^^^^^^^^^^
help: the form is model(PROFILE|FILE.toml, size=SIZE, bus=NAME, read=RATE, write=RATE, latency=TIME, bus_rate=RATE)",
    r#"column 7: `profile` cannot be `a b`
  model("a b", size=1G)
        ^^^^^
help: use letters, digits, `.`, `_`, `-` and `:`; the path of a file has a `/` or ends in `.toml`"#,
    "column 25: `bus` cannot be `a/b`
  model(hdd, size=1G, bus=a/b)
                          ^^^
help: use letters, digits, `.`, `_`, `-` and `:`",
    r#"column 7: a path cannot be empty or contain a NUL character
  model("a\u{0}.toml", size=1G)
        ^^^^^^^^^^^^^"#,
    "column 26: `read` cannot be `30M`: `30M` has no unit; add `/s`, as in 30M/s or 30MB/s
  model(hdd, size=1G, read=30M)
                           ^^^",
    "column 26: `read` cannot be zero
  model(hdd, size=1G, read=0M/s)
                           ^^^^",
    "column 29: `latency` cannot be `5`: `5` has no unit; add ns, us, ms or s
  model(hdd, size=1G, latency=5)
                              ^",
    "column 21: `./a.img` is a member twice
  raid0(a.img, b.img, ./a.img)
                      ^^^^^^^
help: it is already at column 7; each member needs bytes of its own",
    "column 32: `a.img` is a member twice
  linear(file(a.img, length=1M), file(a.img, offset=512K))
                                 ^^^^^^^^^^^^^^^^^^^^^^^^
help: it is already at column 8; each member needs bytes of its own",
    "column 19: `größe.img` is a member twice
  linear(größe.img, größe.img)
                    ^^^^^^^^^
help: it is already at column 8; each member needs bytes of its own",
];

#[test]
fn bad_expressions_are_drawn() {
    for expected in BAD {
        let source = expected.lines().nth(1).expect("a rendered error has a second line");
        let source = source.strip_prefix("  ").expect("the source is indented by two");
        assert_eq!(&rendered(source), expected);
    }
}

#[test]
fn an_empty_expression() {
    for source in ["", " \n\t "] {
        assert!(
            rendered(source).starts_with("column 1: the expression is empty\n"),
            "{}",
            rendered(source)
        );
    }
}

#[test]
fn a_long_expression_is_cut_around_the_place() {
    let disk = |n: u32| format!("/dev/disk/by-id/usb-SanDisk_Ultra_{n:04}");
    let middle = format!("linear({}, {}, {}, ram(1000), {})", disk(1), disk(2), disk(3), disk(4));
    assert_eq!(
        rendered(&middle),
        "\
column 132: `size` 1000 is not a multiple of 512
  …b-SanDisk_Ultra_0003, ram(1000), /dev/disk/by-id/usb-SanDisk_Ultra_0004)
                             ^^^^
help: the nearest are 512 and 1K"
    );
    let beginning = format!("liner({}, {})", disk(1), disk(2));
    assert_eq!(
        rendered(&beginning),
        "\
column 1: `liner` is not a level
  liner(/dev/disk/by-id/usb-SanDisk_Ultra_0001, /dev/disk/by-id/usb-SanDis…
  ^^^^^
help: did you mean `linear`?"
    );
    let end = format!("linear({}, {}", disk(1), disk(2));
    let lines: Vec<String> = rendered(&end).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "column 86: `)` is missing for `linear(`");
    assert!(lines[1].starts_with("  …") && lines[1].ends_with("Ultra_0002"), "{}", lines[1]);
    assert_eq!(lines[2].chars().count(), lines[1].chars().count() + 1);
    // The marked text itself is longer than the excerpt: the carets stay inside it.
    let wide = format!("linear(file(a.img), file(a.img, offset={:>100}))", "512");
    for line in rendered(&wide).lines().skip(1).take(2) {
        assert!(line.chars().count() <= 2 + 72 + 2, "{line}");
    }
}

#[test]
fn a_text_over_several_lines_is_drawn_as_one() {
    assert_eq!(
        rendered("linear(\n\ta.img,\n\tram(1)\n)"),
        "\
column 22: `size` 1 is not a multiple of 512
  linear(  a.img,  ram(1) )
                       ^
help: the least is 512"
    );
}

#[test]
fn too_many_members() {
    let count = MAX_MEMBERS + 1;
    let source = format!("linear({})", vec!["ram(1M)"; count].join(","));
    let error = Stack::parse(&source).unwrap_err();
    assert_eq!(error.to_string(), "column 3080: `linear` has 385 members; 1 to 384 are possible");
}

#[test]
fn hostile_depth_and_length() {
    let open = "linear(".repeat(MAX_DEPTH + 1);
    let source = format!("{open}a.img{}", ")".repeat(MAX_DEPTH + 1));
    let error = Stack::parse(&source).unwrap_err();
    assert_eq!(error.to_string(), "column 449: levels nest deeper than 64");
    for text in ["(", "linear(", "a=", "linear(x=linear(", "\"", ")"] {
        assert!(Stack::parse(&text.repeat(MAX_LENGTH / text.len())).is_err());
    }
    let error = Stack::parse(&"a".repeat(MAX_LENGTH + 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 1: the expression has 262145 bytes; at most 262144 are read"
    );
}

#[test]
fn the_longest_text_is_checked_quickly() {
    // 28 800 members: comparing each path with every other would take minutes.
    let group = |g: usize| {
        let paths: Vec<String> = (0..192).map(|n| format!("{g}/{n}")).collect();
        format!("linear({})", paths.join(","))
    };
    let groups: Vec<String> = (0..150).map(group).collect();
    let source = format!("linear({})", groups.join(","));
    assert!(source.len() <= MAX_LENGTH);
    assert_eq!(Stack::parse(&source).unwrap().leaves().len(), 150 * 192);
}
