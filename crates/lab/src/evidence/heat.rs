//! Heat: throttles of processors, and sensors with a limit.
//!
//! Only sensors of processors and disks with a limit are read: a board's other sensors may take milliseconds
//! each and do not concern a trial.
//!
//! Each driver defines the limit that slows a trial down, and no limit replaces another: a typical `coretemp`
//! has a "max" of 80 °C, at which fans should be at their fastest, and works at full speed up to its "crit" of
//! 100 °C.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A sensor and its limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Name of the driver: `nvme`, `coretemp`.
    pub sensor: String,
    /// Degrees Celsius.
    pub celsius: f64,
    /// Limit in degrees Celsius, at which processors slow down, and above which disk makers warn.
    pub limit_celsius: f64,
}

/// Drivers whose sensors concern a trial, and the file with the limit (`Documentation/hwmon` of the kernel, and
/// the thresholds of NVMe):
///
/// * `coretemp`: `crit` is the temperature at which the processor cools itself down by force, `max`
///   is for the fans;
/// * `k10temp`: `crit` is where the processor throttles itself, if the firmware has that on; `max`
///   is 70 °C for all before Zen, on a scale that is no temperature;
/// * `nvme`: `max` is the warning threshold (WCTEMP), at which the host should reduce the load and
///   drives begin to do it themselves; at `crit` they stop;
/// * `drivetemp`: `max` is the highest recommended for continuous work; at `crit` they break.
const DRIVERS: [(&str, &str); 4] = [
    ("coretemp", "temp1_crit"),
    ("k10temp", "temp1_crit"),
    ("nvme", "temp1_max"),
    ("drivetemp", "temp1_max"),
];

/// Returns the number of throttles since the machine started: each core's count, and the largest of the
/// package's, which all its cores repeat. `None` if the kernel does not count them.
pub(super) fn read_throttles(sys: &Path) -> Option<u64> {
    let mut cores: Option<u64> = None;
    let mut package: Option<u64> = None;
    for cpu in fs::read_dir(sys.join("devices/system/cpu")).ok()?.filter_map(Result::ok) {
        let counts = cpu.path().join("thermal_throttle");
        if let Some(count) = read_number(&counts.join("core_throttle_count")) {
            cores = Some(cores.unwrap_or(0).saturating_add(count));
        }
        package = package.max(read_number(&counts.join("package_throttle_count")));
    }
    (cores.is_some() || package.is_some())
        .then(|| cores.unwrap_or(0).saturating_add(package.unwrap_or(0)))
}

/// Returns the sensor nearest to its limit, or furthest beyond it.
pub(super) fn read_heat(sys: &Path) -> Option<Heat> {
    let sensors = fs::read_dir(sys.join("class/hwmon")).ok()?;
    let heats = sensors.filter_map(Result::ok).filter_map(|sensor| heat_of(&sensor.path()));
    let room = |heat: &Heat| heat.limit_celsius - heat.celsius;
    heats.min_by(|a, b| room(a).total_cmp(&room(b)))
}

/// Returns the first sensor of a driver: a disk's composite temperature, a processor's package.
fn heat_of(sensor: &Path) -> Option<Heat> {
    let driver = fs::read_to_string(sensor.join("name")).ok()?;
    let driver = driver.trim();
    let (_, limit) = DRIVERS.iter().find(|(name, _)| *name == driver)?;
    let degrees = |file: &str| {
        let text = fs::read_to_string(sensor.join(file)).ok()?;
        parse_millidegrees(&text)
    };
    Some(Heat {
        sensor: driver.to_owned(),
        celsius: degrees("temp1_input")?,
        limit_celsius: degrees(limit)?,
    })
}

/// Parses a value of hwmon in thousandths of a degree. 0 K and below, and 1000 °C and above, mean that the
/// sensor has no value.
pub(super) fn parse_millidegrees(text: &str) -> Option<f64> {
    let value: i32 = text.trim().parse().ok()?;
    (-273_150..=1_000_000).contains(&value).then(|| f64::from(value) / 1000.0)
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
