//! fio's job files, as far as they say what is asked of one device.
//!
//! ```text
//!   [global]                  for the sections that follow
//!   ioengine=libaio
//!   [name]                    a job; all of them go on at the same time
//!   rw=randrw                 a key that is known, or is without effect on the requests
//! ```
//!
//! Whatever else would change the requests is refused: a workload is what fio would do, or an error.
//! Numbers are as fio reads them without `kb_base`: `4k` is 4096, and `4ki` is 4000.
//!
//! Deliberately absent: `include`, variables, phases (`stonewall`), rates, several files.

mod value;

use crate::SyntaxError;
use value::Value;

/// The work of one section of a job file.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The section's name.
    pub name: String,
    /// The source of offsets.
    pub pattern: Pattern,
    /// The number of reads in 100 requests.
    pub read_percent: u8,
    /// Bytes of each request, at least 1.
    pub block: u64,
    /// The part of the device that is used, from `offset` on.
    pub size: Extent,
    /// Bytes that are moved; `None`: as many as `size` has, once.
    pub io_size: Option<u64>,
    /// Requests that are under way at a time, at least 1.
    pub depth: u32,
    /// So many of this job go on beside each other, at least 1.
    pub jobs: u32,
    /// Past the page cache.
    pub direct: bool,
    /// A flush after so many writes of each; 0 for none.
    pub flush_every: u32,
    /// It ends after this time, in nanoseconds, if it has not before.
    pub runtime_ns: Option<u64>,
    /// It goes on until `runtime_ns`, beginning anew as often as it takes.
    pub time_based: bool,
    /// The start of its part, in bytes.
    pub offset: u64,
}

/// The source of offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Each at the end of the previous one.
    Sequential,
    /// Drawn.
    Random {
        /// The distribution of the offsets.
        distribution: Distribution,
        /// No block is drawn again before all others were drawn; fio does so unless `norandommap` is given.
        each_once: bool,
    },
}

/// The distribution of offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All blocks with the same probability.
    Uniform,
    /// By Zipf's law: the k-th most frequent in proportion to k^−θ.
    Zipf {
        /// Above 0, and not 1.
        theta: f64,
    },
}

/// The length of a part of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The rest of the device.
    Whole,
    /// So many bytes, at least 1.
    Bytes(u64),
    /// So much of the device, from 1 to 100.
    Percent(u8),
}

/// The values of a section, each with its place.
#[derive(Clone)]
struct Section {
    job: Job,
    is_random: bool,
    each_once: bool,
    distribution: Distribution,
    /// The direction, and how many of 100 mixed requests are reads.
    direction: Direction,
    mixed_percent: u8,
    /// True if the engine keeps several requests in flight, and its name.
    engine: (bool, String),
    /// The line and column of `iodepth`.
    depth_at: Option<(u64, usize)>,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
    Mixed,
}

/// Keys that change what is asked, and are understood.
const KNOWN: &str = "rw (readwrite), rwmixread, rwmixwrite, bs (blocksize), size, io_size, iodepth, numjobs, \
                     direct, fsync, fdatasync, runtime, time_based, offset, random_distribution, norandommap, \
                     ioengine";

/// Keys that say where to, how to measure and what to print; and what data is written, which no trace has.
const IGNORED: [&str; 62] = [
    "allow_file_create",
    "allow_mounted_write",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "clat_percentiles",
    "clocksource",
    "continue_on_error",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_only",
    "create_serialize",
    "dedupe_percentage",
    "description",
    "directory",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "end_fsync",
    "error_dump",
    "exitall",
    "exitall_on_error",
    "fallocate",
    "filename",
    "filename_format",
    "fsync_on_close",
    "gid",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "invalidate",
    "ioprio",
    "kb_base",
    "lat_percentiles",
    "log_avg_msec",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "mem",
    "name",
    "new_group",
    "nice",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "percentile_list",
    "ramp_time",
    "randrepeat",
    "randseed",
    "refill_buffers",
    "scramble_buffers",
    "slat_percentiles",
    "thread",
    "uid",
    "unified_rw_reporting",
    "unlink",
    "zero_buffers",
    "uri",
];

/// Reads a job file: its jobs, at least one, which go on at the same time.
///
/// # Errors
/// The place of a setting that is not understood, would change the requests in an unknown way, or has no effect
/// though it seems to.
pub fn parse_jobs(text: &str) -> Result<Vec<Job>, SyntaxError> {
    let mut global = Section::new();
    let mut sections: Vec<Section> = Vec::new();
    // Whether keys are those of `[global]`; none before the first section.
    let mut is_global = None;
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        let value = Value::new(number, line, 0, line.len());
        match value.text.bytes().next() {
            None | Some(b';' | b'#') => continue,
            Some(b'[') => {
                let name = value.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let name = name.filter(|name| !name.is_empty() && !name.contains(['[', ']']));
                let name = name.ok_or_else(|| value.error("[NAME] alone on its line"))?;
                is_global = Some(name == "global");
                if name != "global" {
                    let mut section = global.clone();
                    section.job.name = name.to_owned();
                    sections.push(section);
                }
            }
            Some(_) => {
                let section = match is_global {
                    Some(true) => &mut global,
                    Some(false) => sections.last_mut().unwrap_or(&mut global),
                    None => return Err(value.error("a section, such as [global]")),
                };
                section.key(&value)?;
            }
        }
    }
    if sections.is_empty() {
        return Err(SyntaxError::new(number + 1, 1, b"", "a section beside [global]"));
    }
    sections.into_iter().map(Section::finish).collect()
}

impl Section {
    /// fio's defaults.
    fn new() -> Section {
        let distribution = Distribution::Uniform;
        let job = Job {
            name: String::new(),
            pattern: Pattern::Sequential,
            read_percent: 100,
            block: 4096,
            size: Extent::Whole,
            io_size: None,
            depth: 1,
            jobs: 1,
            direct: false,
            flush_every: 0,
            runtime_ns: None,
            time_based: false,
            offset: 0,
        };
        Section {
            job,
            is_random: false,
            each_once: true,
            distribution,
            direction: Direction::Read,
            mixed_percent: 50,
            engine: (false, "psync".to_owned()),
            depth_at: None,
        }
    }

    /// Takes a line with a key.
    fn key(&mut self, line: &Value<'_>) -> Result<(), SyntaxError> {
        let (key, value) = line.split();
        if line.text.contains('$') {
            return Err(line.error("a value as it stands: variables are not known"));
        }
        let job = &mut self.job;
        match key.text {
            "rw" | "readwrite" => (self.is_random, self.direction) = value.pattern()?,
            "rwmixread" => self.mixed_percent = value.percent()?,
            "rwmixwrite" => self.mixed_percent = 100 - value.percent()?,
            "bs" | "blocksize" => job.block = value.size()?,
            "size" => job.size = value.extent()?,
            "io_size" => job.io_size = Some(value.size()?),
            "iodepth" => {
                job.depth = value.count(1)?;
                self.depth_at = Some((value.line, value.column));
            }
            "numjobs" => job.jobs = value.count(1)?,
            "direct" => job.direct = value.flag()?,
            "fsync" | "fdatasync" => job.flush_every = value.count(0)?,
            "runtime" => job.runtime_ns = Some(value.time_ns()?).filter(|time| *time > 0),
            "time_based" => job.time_based = value.is_absent() || value.flag()?,
            "offset" => job.offset = value.bytes()?,
            "random_distribution" => self.distribution = value.distribution()?,
            "norandommap" => self.each_once = !(value.is_absent() || value.flag()?),
            "ioengine" => self.engine = value.engine()?,
            "kb_base" if value.text != "1024" => return Err(value.error("1024")),
            name if IGNORED.contains(&name) || name.starts_with("write_") => {}
            name if name.starts_with("include ") => {
                return Err(line.error("what the file has in its place: nothing is included"));
            }
            _ => return Err(key.error(format!("a key that is known: {KNOWN}"))),
        }
        Ok(())
    }

    fn finish(self) -> Result<Job, SyntaxError> {
        let Section { mut job, is_random, each_once, distribution, engine, .. } = self;
        job.read_percent = match self.direction {
            Direction::Read => 100,
            Direction::Write => 0,
            Direction::Mixed => self.mixed_percent,
        };
        if is_random {
            // fio keeps no map of what it drew by a law.
            let each_once = each_once && distribution == Distribution::Uniform;
            job.pattern = Pattern::Random { distribution, each_once };
        }
        if let (false, Some((line, column))) = (engine.0, self.depth_at)
            && job.depth > 1
        {
            let expected = format!(
                "1: ioengine={} has one request under way (ioengine=libaio has several)",
                engine.1
            );
            let found = job.depth.to_string();
            return Err(SyntaxError::new(line, column, found.as_bytes(), expected));
        }
        Ok(job)
    }
}
