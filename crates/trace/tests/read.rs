//! Traces that real tools wrote, errors with their places, and what is printed so that it is read again.
//!
//! `data/fio-3.33*.iolog` are fio's. `data/blkparse*.txt` is what blkparse printed of events that
//! `data/blktrace.py` made: a kernel that is locked down records none. `data/version-2.iolog` is by hand,
//! and fio 3.33 replays it in the times that are expected here: it writes version 3 alone.

use braid_trace::Kind::{Discard, Flush, Read, Write};
use braid_trace::{Format, Kind, Reader, Request, Summary, Trace, TraceError, iolog, parse};
use proptest::prelude::*;

const BLKPARSE: &str = include_str!("data/blkparse.txt");
const TWO_DEVICES: &str = include_str!("data/blkparse-two-devices.txt");
const FIO: &str = include_str!("data/fio-3.33.iolog");
const TWO_FILES: &str = include_str!("data/fio-3.33-two-files.iolog");
const VERSION_2: &str = include_str!("data/version-2.iolog");

fn read(text: &str) -> Trace {
    parse(text.as_bytes(), None).expect("a trace")
}

fn request(at_ns: u64, kind: Kind, offset: u64, length: u64) -> Request {
    Request { at_ns, offset, length, kind, fua: false }
}

fn fua(request: Request) -> Request {
    Request { fua: true, ..request }
}

#[test]
fn what_blkparse_printed() {
    let trace = read(BLKPARSE);
    let expected = [
        request(0, Read, 2048 * 512, 4096),
        request(22_600, Read, 2056 * 512, 131_072),
        request(45_200, Write, 8192 * 512, 4096),
        request(67_800, Write, 8200 * 512, 4096),
        fua(request(68_800, Write, 16_384 * 512, 8192)),
        Request::flush(91_400),
        // A flush before the data, and forced unit access: two requests.
        Request::flush(114_000),
        fua(request(114_000, Write, 24_576 * 512, 4096)),
        Request::flush(136_600),
        request(159_200, Discard, 32_768 * 512, 1 << 20),
        request(181_800, Read, 9000 * 512, 4096),
        // A command, which is no request for blocks, stands between.
        request(1_500_204_600, Read, 2064 * 512, 512),
    ];
    assert_eq!(trace.requests, expected);
    assert_eq!((trace.format, &*trace.name), (Format::Blkparse, "8,0"));
    assert_eq!((trace.has_times, trace.torn_line), (true, None));
    let totals = trace.totals();
    assert_eq!((totals.reads, totals.writes, totals.discards, totals.flushes), (4, 4, 1, 3));
    assert_eq!((totals.read_bytes, totals.written_bytes), (139_776, 20_480));
    assert_eq!((totals.duration_ns, totals.fua_writes), (1_500_204_600, 2));
    assert_eq!(totals.largest_end, 32_768 * 512 + (1 << 20));
    assert_eq!(totals.sequential, 2, "8200 goes on at the end of 8192, 2056 at that of 2048");
    assert_eq!((totals.read_share(), totals.mean_length()), (Some(0.5), Some(20_032.0)));
    let summary = Summary::of(&trace);
    let sizes: Vec<_> =
        summary.sizes.iter().map(|class| (class.from, class.reads, class.writes)).collect();
    assert_eq!(sizes, [(512, 1, 0), (4096, 2, 3), (8192, 0, 1), (131_072, 1, 0)]);
    // All but the last, which lies in the second.
    assert_eq!(summary.working_set, 4096 + 131_072 + 4096 * 2 + 8192 + 4096 + (1 << 20) + 4096);
    let burst = summary.burst.expect("there are requests");
    assert_eq!((burst.median, burst.largest), (5, 5), "of 5, 2 and 1");
    let busiest = summary.busiest.expect("there are requests");
    assert_eq!((busiest.second, busiest.requests, busiest.bytes), (0, 11, 159_744));
}

#[test]
fn what_fio_wrote() {
    let trace = read(FIO);
    assert_eq!((trace.format, &*trace.name), (Format::Iolog3, "/srv/g.img"));
    assert_eq!(trace.requests.len(), 18);
    assert_eq!(trace.requests[0], request(271_000, Write, 249_856, 4096));
    assert_eq!(trace.requests[16], Request::flush(5_506_000));
    let totals = trace.totals();
    assert_eq!((totals.reads, totals.writes, totals.flushes), (9, 8, 1));
    assert_eq!(totals.read_bytes + totals.written_bytes, 160 << 10, "fio's io_size");
}

#[test]
fn version_2_waits_as_fio_does() {
    let trace = read(VERSION_2);
    let ms = 1_000_000;
    let expected = [
        request(0, Read, 0, 4096),
        request(1500 * ms, Write, 4096, 8192),
        Request::flush(2000 * ms),
        request(2000 * ms, Discard, 65_536, 65_536),
        Request::flush(2000 * ms),
    ];
    assert_eq!(trace.requests, expected);
    assert!(trace.has_times);
    let without: Vec<&str> = VERSION_2.lines().filter(|line| !line.contains("wait")).collect();
    let trace = read(&(without.join("\n") + "\n"));
    assert!(!trace.has_times && trace.requests.iter().all(|request| request.at_ns == 0));
    assert_eq!((Summary::of(&trace).burst, Summary::of(&trace).busiest), (None, None));
}

#[test]
fn one_of_several_has_to_be_selected() {
    let several = |what, names: &[&str]| TraceError::Several {
        what,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let devices = parse(TWO_DEVICES.as_bytes(), None).expect_err("two devices");
    assert_eq!(devices, several("devices", &["8,0", "259,12"]));
    assert_eq!(devices.to_string(), "the trace is of several devices: 8,0, 259,12");
    let files = parse(TWO_FILES.as_bytes(), None).expect_err("two files");
    assert_eq!(files, several("files", &["/srv/g.img", "/srv/f.img"]));
    let one = parse(TWO_DEVICES.as_bytes(), Some("259,12")).expect("it is there");
    assert_eq!(one.requests, [request(204_600, Read, 64 * 512, 4096)]);
    let other = parse(TWO_FILES.as_bytes(), Some("/srv/f.img")).expect("it is there");
    assert_eq!(other.totals().written_bytes, 256 << 10);
    let error = parse(TWO_FILES.as_bytes(), Some("/srv/x.img")).expect_err("not there");
    assert!(
        error.to_string().contains("no requests to /srv/x.img, only to: /srv/g.img, /srv/f.img")
    );
    let many: String = (0..100).map(|n| format!("0 f{n} read 0 1\n")).collect();
    let text = format!("{}\n{many}", iolog::VERSION_3);
    let Err(TraceError::Several { names, .. }) = parse(text.as_bytes(), None) else {
        panic!("several files")
    };
    assert_eq!((names.len(), &*names[31], &*names[32]), (33, "f31", "…"));
    assert_eq!(parse(text.as_bytes(), Some("f77")).expect("it is there").requests.len(), 1);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let error = |text: &str| match parse(text.as_bytes(), None) {
        Err(TraceError::Syntax(error)) => error,
        other => panic!("{text:?}: {other:?}"),
    };
    let v2 = |line: &str| error(&format!("{}\n{line}\n", iolog::VERSION_2));
    let v3 = |line: &str| error(&format!("{}\n\n{line}\n", iolog::VERSION_3));
    let blk = |line: &str| error(&format!("  8,0    0  4 0.000000000 42  P   N [fio]\n{line}\n"));
    for (error, line, column, found, expected) in [
        (error(""), 1, 1, "found the end of the line", "blkparse's text"),
        (error("hello\n"), 1, 1, "found \"hello\"", "fio version 3 iolog"),
        (error("\x07taexxx\n"), 1, 1, "taexxx", "blkparse -i FILE"),
        (error("fio version 4 iolog\n"), 1, 1, "version 4", "fio version 3 iolog"),
        (v2("f"), 2, 2, "end of the line", "add, open"),
        (v2("f frob 0 1"), 2, 3, "found \"frob\"", "datasync, wait"),
        (v2("f read 0"), 2, 9, "end of the line", "a length in bytes"),
        (v2("f wait 99999999999999999 0"), 2, 8, "99999", "584 years"),
        (v3("12 f wait 0 1"), 3, 6, "found \"wait\"", "datasync"),
        (v3("1x f read 0 1"), 3, 1, "found \"1x\"", "microseconds"),
        (v3("99999999999999999999 f read 0 1"), 3, 1, "99999", "microseconds"),
        (v3("1 f read -1 1"), 3, 10, "found \"-1\"", "an offset in bytes"),
        (v3("1 f read 0 0"), 3, 12, "found \"0\"", "at least 1"),
        (v3("1 f read 18446744073709551615 1"), 3, 31, "found \"1\"", "below 2^64"),
        (v3("1 f write 0 1 fua x"), 3, 19, "found \"x\"", "the end of the line"),
        (v3("1 f read 0 1 fua"), 3, 14, "found \"fua\"", "the end of the line"),
        (v3("1 f open 3"), 3, 10, "found \"3\"", "the end of the line"),
        (blk("fio (42)"), 2, 1, "found \"fio\"", "MAJOR,MINOR"),
        (blk("  8,0 0 4 1.5 42 Q R 0 + 8 [fio]"), 2, 11, "found \"1.5\"", "nine decimals"),
        (blk("  8,0 0 4 0.000000000 42 Q"), 2, 27, "end of the line", "R, W, D or N"),
        (blk("  8,0 0 4 0.000000000 42 Q Rx 0 + 8 [fio]"), 2, 28, "\"Rx\"", "capital letters"),
        (blk("  8,0 0 4 0.000000000 42 Q R x + 8 [fio]"), 2, 30, "\"x\"", "a sector"),
        (blk("  8,0 0 4 0.000000000 42 Q R 8 + 0 [fio]"), 2, 34, "\"0\"", "at least 1"),
        (blk(&"x".repeat(5000)), 2, 1, "xxx", "at most 4096 bytes"),
    ] {
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.found.contains(found) && error.expected.contains(expected), "{error}");
    }
    let told = v3("1 f read -1 1").to_string();
    assert_eq!(told, "line 3, column 10: found \"-1\", but expected an offset in bytes");
}

#[test]
fn a_line_without_an_end_does_not_count_and_is_told() {
    let whole = "fio version 3 iolog\n0 a add\n5 a write 0 4096\n9 a write 4096 4096";
    // Torn anywhere in its last line, it is the same: also where what is left could be read.
    let start = whole.rfind('\n').expect("several lines") + 1;
    for end in start + 1..=whole.len() {
        let trace = read(&whole[..end]);
        assert_eq!(trace.requests, [request(5000, Write, 0, 4096)], "{:?}", &whole[..end]);
        assert_eq!(trace.torn_line, Some(4));
    }
    assert_eq!(read(&whole[..start]).torn_line, None);
    let notice = read("Input file x.blktrace.0 added\n8,0 0 4 0.000000000 42 Q FN [fio]\n");
    assert_eq!(notice.requests, [Request::flush(0)]);
    let text = &BLKPARSE[..BLKPARSE.find("CPU0").expect("a summary") + 4];
    assert_eq!(read(text).torn_line, Some(77));
}

#[test]
fn a_long_trace_takes_32_bytes_a_request() {
    let line = b"17 a read 4096 4096\n";
    let mut reader = Reader::new(None);
    reader.push(format!("{}\n", iolog::VERSION_3).as_bytes()).expect("a head");
    for _ in 0..1000 {
        reader.push(&line.repeat(100)).expect("lines");
    }
    let trace = reader.finish().expect("a trace");
    assert_eq!(trace.requests.len(), 100_000);
    assert!(trace.requests.capacity() * size_of::<Request>() <= 32 * 100_000);
}

/// In the formats that nothing but a test writes.
fn as_blkparse(requests: &[Request]) -> String {
    let line = |request: &Request| {
        let (seconds, ns) = (request.at_ns / 1_000_000_000, request.at_ns % 1_000_000_000);
        let what = match (request.kind, request.fua) {
            (Read, _) => "RS",
            (Write, false) => "W",
            (Write, true) => "WFS",
            (Discard, _) => "D",
            (Flush, _) => "FWS",
        };
        let range = match request.kind {
            Flush => String::new(),
            _ => format!("{} + {} ", request.offset / 512, request.length / 512),
        };
        format!(
            "{:>3},{:<3} {:2} {:8} {seconds:5}.{ns:09} {:5} {:>2} {what:>3} {range}[a b]\n",
            8, 16, 3, 7, 9, "Q"
        )
    };
    requests.iter().map(line).collect::<String>() + "CPU0 (x):\n Reads Queued: 1\n\nTotal (x):\n"
}

fn as_version_2(requests: &[Request]) -> String {
    let mut text = format!("{}\na add\na open\n", iolog::VERSION_2);
    for request in requests {
        let action = match request.kind {
            Read => "read",
            Write => "write",
            Discard => "trim",
            Flush => "sync",
        };
        let Request { at_ns, offset, length, .. } = request;
        text += &format!("a wait {} 0\na {action} {offset} {length}\n", at_ns / 1_000_000);
    }
    text + "a close\n"
}

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    let kind = prop_oneof![Just(Read), Just(Write), Just(Discard), Just(Flush)];
    let one = (0u64..1 << 33, 0u64..1 << 40, 1u64..1 << 12, kind, any::<bool>());
    let one = one.prop_map(|(at, sector, sectors, kind, fua)| match kind {
        Flush => Request::flush(at),
        _ => Request {
            at_ns: at,
            offset: sector * 512,
            length: sectors * 512,
            kind,
            fua: fua && kind == Write,
        },
    });
    proptest::collection::vec(one, 1..40).prop_map(|mut all| {
        all.sort_by_key(|request| request.at_ns);
        all
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(requests in any_requests(), unit in 1u64..3) {
        prop_assert_eq!(&read(&as_blkparse(&requests)).requests, &requests);
        // Coarser times, and no FUA in version 2.
        let coarse = |ns: u64, fua: bool| -> Vec<Request> {
            let one = |one: &Request| Request { at_ns: one.at_ns / ns * ns, fua: one.fua && fua, ..*one };
            requests.iter().map(one).collect()
        };
        prop_assert_eq!(read(&as_version_2(&requests)).requests, coarse(1_000_000, false));
        let mut text = iolog::head("a").into_bytes();
        for request in &requests {
            let before = text.len();
            iolog::line(&mut text, "a", request);
            prop_assert!(text.len() - before <= iolog::LONGEST_LINE + 1);
        }
        text.extend_from_slice(iolog::tail("a", 1 << 40).as_bytes());
        let trace = parse(&text, None).expect("a trace");
        prop_assert_eq!(&trace.requests, &coarse(1000, true));
        // In pieces, and with events that come late.
        let mut reader = Reader::new(Some("a"));
        for piece in text.chunks(usize::try_from(unit).expect("small")) {
            reader.push(piece).expect("as before");
        }
        prop_assert_eq!(reader.finish().expect("a trace").requests, coarse(1000, true));
        let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        lines[3..].reverse();
        let mut late = coarse(1000, true);
        late.reverse();
        late.sort_by_key(|request| request.at_ns);
        prop_assert_eq!(parse(&lines.concat(), None).expect("a trace").requests, late);
    }
}
