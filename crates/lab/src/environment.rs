//! The machine of a measurement. A number without it means nothing.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::evidence::{Roots, find_memory_bytes};

/// Largest difference of memory sizes that is ignored, as a part of the larger: the kernel's own share differs
/// from start to start and from version to version.
const MEMORY_NOISE: f64 = 0.01;

/// The fingerprint of the machine and the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// `uname -srm`.
    pub kernel: String,
    /// Model of the first processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor of the first processor, where there is one.
    pub governor: Option<String>,
    /// Hypervisor or container, where it can be told.
    pub virtualised: bool,
    /// Names and versions of the tools used.
    pub tools: Vec<(String, String)>,
    /// Version of the laboratory, which is that of braid.
    pub laboratory: String,
    /// The models behind the numbers; `None`: the numbers were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
}

/// The models behind predicted numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// The names of the devices' profiles.
    pub profiles: Vec<String>,
    /// Error of the models, as |ln(model / real)| in hundredths.
    pub error_percent: u32,
    /// The published rows that support the error: a sentence without its full stop. Empty in older results.
    #[serde(default)]
    pub grounds: String,
}

impl Prediction {
    /// Returns the error of a logarithm.
    pub fn log_error(&self) -> f64 {
        f64::from(self.error_percent) / 100.0
    }

    /// Returns the error as a percentage, or as a factor where a percentage differs by direction.
    pub fn size(&self) -> String {
        error_size(self.log_error())
    }

    /// Returns the error in words: its grounds, or the bare number.
    pub fn off_by(&self) -> String {
        match self.grounds.as_str() {
            "" => format!("models are taken to be off by up to {}", self.size()),
            grounds => grounds.to_owned(),
        }
    }
}

/// Returns an error of a logarithm as a percentage, or from 0.3 on as a factor.
pub fn error_size(log_error: f64) -> String {
    match log_error {
        log if log < 0.3 => format!("{:.0} %", log * 100.0),
        log => format!("a factor of {:.2}", log.exp()),
    }
}

/// Reads this machine. Unreadable values are "unknown": a missing name must not stop a measurement.
pub fn read_environment(tools: Vec<(String, String)>) -> Environment {
    read_environment_under(&Roots::default(), tools)
}

/// As [`read_environment`], under other roots. The names and the number of processors are still those of this
/// machine.
pub fn read_environment_under(roots: &Roots, tools: Vec<(String, String)>) -> Environment {
    let Roots { proc, sys } = roots;
    let uname = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string(proc.join("cpuinfo")).unwrap_or_default();
    let meminfo = fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    Environment {
        host: text(uname.nodename()),
        kernel: [uname.sysname(), uname.release(), uname.machine()].map(text).join(" "),
        cpu: find_cpu_model(&cpuinfo).unwrap_or("unknown").to_owned(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: find_memory_bytes(&meminfo).unwrap_or(0),
        governor: fs::read_to_string(sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor"))
            .ok()
            .map(|text| text.trim().to_owned()),
        virtualised: cpuinfo.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor")),
        tools,
        laboratory: env!("CARGO_PKG_VERSION").to_owned(),
        prediction: None,
    }
}

/// Returns the environment of predicted numbers, which are the same on every machine.
pub(crate) fn no_environment(prediction: Prediction) -> Environment {
    let none = || "none".to_owned();
    Environment {
        host: none(),
        kernel: none(),
        cpu: none(),
        cores: 0,
        memory_bytes: 0,
        governor: None,
        virtualised: false,
        tools: Vec::new(),
        laboratory: env!("CARGO_PKG_VERSION").to_owned(),
        prediction: Some(prediction),
    }
}

fn find_cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

impl Environment {
    /// Returns the origin of the numbers in words: a machine, or models.
    pub fn origin(&self) -> String {
        match &self.prediction {
            Some(by) => {
                format!("predicted by braid {} from {}", self.laboratory, by.profiles.join(", "))
            }
            None => format!("measured on {}", self.host),
        }
    }

    /// Returns the differences to another environment that make numbers incomparable: each in words, with both
    /// values, this one's first. A tool that only one of them has is no difference.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        if self.prediction.is_some() != other.prediction.is_some() {
            return vec![format!("{} and {}", self.origin(), other.origin())];
        }
        let governor = |of: &Self| of.governor.clone().unwrap_or_else(|| "none".to_owned());
        let pairs = [
            ("host", self.host.clone(), other.host.clone()),
            ("kernel", self.kernel.clone(), other.kernel.clone()),
            ("processor", self.cpu.clone(), other.cpu.clone()),
            ("cores", self.cores.to_string(), other.cores.to_string()),
            ("frequency governor", governor(self), governor(other)),
            ("braid", self.laboratory.clone(), other.laboratory.clone()),
        ];
        let mut found: Vec<String> = pairs
            .iter()
            .filter(|(_, mine, theirs)| mine != theirs)
            .map(|(what, mine, theirs)| format!("{what}: {mine} and {theirs}"))
            .collect();
        if let Some((mine, theirs)) = apart(self.memory_bytes, other.memory_bytes) {
            found.push(format!("memory: {mine} and {theirs}"));
        }
        for (tool, mine) in &self.tools {
            let theirs = other.tools.iter().find(|(name, _)| name == tool);
            if let Some((_, theirs)) = theirs.filter(|(_, theirs)| theirs != mine) {
                found.push(format!("{tool}: {mine} and {theirs}"));
            }
        }
        found
    }
}

/// Returns two sizes of memory in words, if they differ by more than [`MEMORY_NOISE`].
fn apart(mine: u64, theirs: u64) -> Option<(String, String)> {
    let gap = mine.abs_diff(theirs) as f64;
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    (gap > MEMORY_NOISE * mine.max(theirs) as f64).then(|| (gib(mine), gib(theirs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(find_cpu_model("processor\t: 0\nmodel name\t: Xeon 6\n"), Some("Xeon 6"));
        assert_eq!(find_memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(find_memory_bytes("MemTotal: many"), None);
    }

    #[test]
    fn a_changed_kernel_is_noticed() {
        let now = read_environment(Vec::new());
        assert!(now.differences(&now).is_empty());
        let other = Environment { kernel: "Linux 2.6.32".into(), ..now.clone() };
        assert!(now.differences(&other)[0].starts_with("kernel: "));
    }

    fn now() -> Environment {
        Environment {
            memory_bytes: 16 << 30,
            governor: Some("performance".into()),
            tools: vec![("fio".into(), "fio-3.33".into()), ("dd".into(), "coreutils-9.1".into())],
            laboratory: "0.1.0".into(),
            ..read_environment(Vec::new())
        }
    }

    #[test]
    fn a_governor_and_a_version_of_braid_are_differences() {
        let other = Environment { governor: Some("powersave".into()), ..now() };
        assert_eq!(now().differences(&other), ["frequency governor: performance and powersave"]);
        let none = Environment { governor: None, ..now() };
        assert_eq!(none.differences(&now()), ["frequency governor: none and performance"]);
        let other = Environment { laboratory: "0.2.0".into(), ..now() };
        assert_eq!(now().differences(&other), ["braid: 0.1.0 and 0.2.0"]);
    }

    /// The kernel's own part of the memory differs by some KiB from start to start.
    #[test]
    fn memory_may_differ_by_a_hundredth() {
        let with = |bytes: u64| Environment { memory_bytes: bytes, ..now() };
        let of = |bytes: u64| now().differences(&with(bytes));
        assert_eq!(of((16 << 30) - 4096), Vec::<String>::new());
        assert_eq!(of((16 << 30) / 100 * 99 + 100), Vec::<String>::new());
        assert_eq!(of((16 << 30) / 100 * 99 - 100), ["memory: 16.0 GiB and 15.8 GiB"]);
        assert_eq!(of(8 << 30), ["memory: 16.0 GiB and 8.0 GiB"]);
        assert_eq!(with(0).differences(&with(0)), Vec::<String>::new());
    }

    #[test]
    fn tools_are_compared_where_both_have_them() {
        let with = |tools: &[(&str, &str)]| Environment {
            tools: tools.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            ..now()
        };
        let newer = with(&[("dd", "coreutils-9.1"), ("fio", "fio-3.36"), ("hdparm", "hdparm-9")]);
        assert_eq!(now().differences(&newer), ["fio: fio-3.33 and fio-3.36"]);
        assert_eq!(now().differences(&with(&[("hdparm", "hdparm-9")])), Vec::<String>::new());
    }

    #[test]
    fn a_machine_of_files_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().join("proc"), sys: dir.path().join("sys") };
        let policy = roots.sys.join("devices/system/cpu/cpu0/cpufreq");
        fs::create_dir_all(&roots.proc).unwrap();
        fs::create_dir_all(&policy).unwrap();
        fs::write(roots.proc.join("meminfo"), "MemTotal:  2048 kB\n").unwrap();
        fs::write(roots.proc.join("cpuinfo"), "model name\t: Xeon 6\n").unwrap();
        fs::write(policy.join("scaling_governor"), "powersave\n").unwrap();
        let read = read_environment_under(&roots, Vec::new());
        assert_eq!((read.cpu.as_str(), read.memory_bytes), ("Xeon 6", 2 << 20));
        assert_eq!(read.governor.as_deref(), Some("powersave"));
        assert!(!read.virtualised);
    }
}
