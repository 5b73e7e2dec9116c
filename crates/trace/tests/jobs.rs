//! fio's job files: what they ask for, and what is refused with its place.

use braid_trace::{Distribution, Extent, Job, Pattern, parse_jobs};

fn jobs(text: &str) -> Vec<Job> {
    parse_jobs(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const UNIFORM: Pattern = Pattern::Random { distribution: Distribution::Uniform, each_once: true };

#[test]
fn a_job_file_is_what_fio_makes_of_it() {
    let text = "; a comment\n# another\n[global]\nioengine=libaio\ndirect=1\nbs=8k\nruntime=90\n\
                time_based\ngroup_reporting\nfilename=/dev/sdx\nwrite_bw_log=x\n\n[a b]\nrw = randrw\n\
                rwmixread=70\niodepth=16\nnumjobs=4\nrandom_distribution=zipf:1.2\n[global]\nbs=1mi\n\
                [c]\nreadwrite=randwrite\nfdatasync=32\nsize=50%\noffset=1g\n[d]\nnorandommap\nrw=randread\n";
    let [a, c, d] = &jobs(text)[..] else { panic!("three sections beside [global]") };
    let expected = Job {
        name: "a b".to_owned(),
        pattern: Pattern::Random {
            distribution: Distribution::Zipf { theta: 1.2 },
            each_once: false,
        },
        read_percent: 70,
        block: 8192,
        size: Extent::Whole,
        io_size: None,
        depth: 16,
        jobs: 4,
        direct: true,
        flush_every: 0,
        runtime_ns: Some(90_000_000_000),
        time_based: true,
        offset: 0,
    };
    assert_eq!(*a, expected);
    let expected = Job {
        name: "c".to_owned(),
        pattern: UNIFORM,
        read_percent: 0,
        block: 1_000_000,
        size: Extent::Percent(50),
        depth: 1,
        jobs: 1,
        flush_every: 32,
        offset: 1 << 30,
        ..expected
    };
    assert_eq!(*c, expected);
    assert_eq!((d.read_percent, d.flush_every), (100, 0), "one section says nothing of another");
    let each_once = Pattern::Random { distribution: Distribution::Uniform, each_once: false };
    assert_eq!(d.pattern, each_once);
}

#[test]
fn defaults_and_units_are_fios() {
    let [job] = &jobs("[j]")[..] else { panic!("one job") };
    assert_eq!((job.pattern, job.read_percent, job.block), (Pattern::Sequential, 100, 4096));
    assert_eq!((job.depth, job.jobs, job.direct, job.runtime_ns), (1, 1, false, None));
    for (text, bytes) in [
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kB", 4096),
        ("4096b", 4096),
        ("1m", 1 << 20),
        ("2G", 2 << 30),
        ("1t", 1 << 40),
        ("1p", 1 << 50),
        ("4ki", 4000),
        ("1MiB", 1_000_000),
    ] {
        assert_eq!(jobs(&format!("[j]\nio_size={text}"))[0].io_size, Some(bytes), "{text}");
    }
    for (text, ns) in [
        ("30", 30_000_000_000),
        ("30s", 30_000_000_000),
        ("2m", 120_000_000_000),
        ("1H", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("500ms", 500_000_000),
        ("10usec", 10_000),
    ] {
        assert_eq!(jobs(&format!("[j]\nruntime={text}"))[0].runtime_ns, Some(ns), "{text}");
    }
    assert_eq!(jobs("[j]\nruntime=0")[0].runtime_ns, None);
    assert_eq!(jobs("[j]\nrw=rw\n")[0].read_percent, 50);
    assert_eq!(jobs("[j]\nrw=readwrite\nrwmixwrite=30")[0].read_percent, 70);
    assert_eq!(jobs("[j]\nrw=write\nrwmixread=30")[0].read_percent, 0, "it is not mixed");
    assert_eq!(jobs("[j]\niodepth=1")[0].depth, 1, "which psync has as well");
}

#[test]
fn what_is_not_known_is_refused_with_its_place() {
    for (text, line, column, found, expected) in [
        ("", 1, 1, "the end", "a section beside [global]"),
        ("[global]\nrw=read\n", 3, 1, "the end", "a section beside [global]"),
        ("rw=read\n", 1, 1, "\"rw=read\"", "such as [global]"),
        ("[j\n", 1, 1, "\"[j\"", "[NAME]"),
        ("[j]\n  bsrange=4k-8k\n", 2, 3, "\"bsrange\"", "bs (blocksize)"),
        ("[j]\nbssplit=4k/50\n", 2, 1, "\"bssplit\"", "a key that is known"),
        ("[j]\nrate_iops=7\n", 2, 1, "\"rate_iops\"", "a key that is known"),
        ("[j]\nstonewall\n", 2, 1, "\"stonewall\"", "a key that is known"),
        ("[j]\ninclude other.fio\n", 2, 1, "include other.fio", "nothing is included"),
        ("[j]\nsize=${SIZE}\n", 2, 1, "SIZE", "variables are not known"),
        ("[j]\nbs=4k,8k\n", 2, 4, "\"4k,8k\"", "one size"),
        ("[j]\nbs=0\n", 2, 4, "\"0\"", "at least 1 byte"),
        ("[j]\nbs = 4q\n", 2, 6, "\"4q\"", "such as 64k"),
        ("[j]\nsize=0%\n", 2, 6, "\"0%\"", "1% to 100%"),
        ("[j]\nsize=99999999p\n", 2, 6, "99999999p", "such as 64k"),
        ("[j]\nrw=randtrim\n", 2, 4, "\"randtrim\"", "randrw"),
        ("[j]\nrw=randread:8\n", 2, 4, "randread:8", "randrw"),
        ("[j]\nrwmixread=101\n", 2, 11, "\"101\"", "0 to 100"),
        ("[j]\ndirect\n", 2, 7, "the end", "0 or 1"),
        ("[j]\niodepth=0\n", 2, 9, "\"0\"", "from 1"),
        ("[j]\niodepth=8\n", 2, 9, "\"8\"", "ioengine=psync has one request under way"),
        ("[global]\niodepth=8\n[j]\nioengine=sync\n", 2, 9, "\"8\"", "ioengine=sync"),
        ("[j]\nioengine=rbd\n", 2, 10, "\"rbd\"", "libaio"),
        ("[j]\nruntime=5w\n", 2, 9, "\"5w\"", "such as 30s"),
        ("[j]\nrandom_distribution=pareto:0.9\n", 2, 21, "pareto", "zipf:THETA"),
        ("[j]\nrandom_distribution=zipf:1\n", 2, 21, "zipf:1", "not 1"),
        ("[j]\nrandom_distribution=zipf:nan\n", 2, 21, "zipf:nan", "above 0"),
        ("[j]\nkb_base=1000\n", 2, 9, "\"1000\"", "1024"),
    ] {
        let error = parse_jobs(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        assert!(error.found.contains(found), "{text:?}: {error}");
        assert!(error.expected.contains(expected), "{text:?}: {error}");
    }
}
