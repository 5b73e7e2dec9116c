//! The machine on which a number was measured. A number without it means nothing.

use std::fs;

use serde::{Deserialize, Serialize};

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
    /// Version of the laboratory.
    pub laboratory: String,
}

/// Looks at this machine. What cannot be read is "unknown": a missing name must not stop a
/// measurement.
pub fn read_environment(tools: Vec<(String, String)>) -> Environment {
    let uname = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Environment {
        host: text(uname.nodename()),
        kernel: [uname.sysname(), uname.release(), uname.machine()].map(text).join(" "),
        cpu: find_cpu_model(&cpuinfo).unwrap_or("unknown").to_owned(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: find_memory_bytes(&meminfo).unwrap_or(0),
        governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok()
            .map(|text| text.trim().to_owned()),
        virtualised: cpuinfo.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor")),
        tools,
        laboratory: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn find_cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Memory that programs could still have without swapping, in bytes.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    find_line(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

pub(crate) fn find_memory_bytes(meminfo: &str) -> Option<u64> {
    find_line(meminfo, "MemTotal:")
}

fn find_line(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

impl Environment {
    /// Differences to another environment that make numbers incomparable, in words.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let pairs = [
            ("host", &self.host, &other.host),
            ("kernel", &self.kernel, &other.kernel),
            ("processor", &self.cpu, &other.cpu),
        ];
        let mut found: Vec<String> = pairs
            .iter()
            .filter(|(_, mine, theirs)| mine != theirs)
            .map(|(what, mine, theirs)| format!("{what}: {mine} and {theirs}"))
            .collect();
        if self.cores != other.cores {
            found.push(format!("cores: {} and {}", self.cores, other.cores));
        }
        if self.memory_bytes != other.memory_bytes {
            found.push("memory".to_owned());
        }
        if self.tools != other.tools {
            found.push("versions of the tools".to_owned());
        }
        found
    }
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
}
