//! From the output of `smartctl --json`, which is not trusted, to the few values that deserve a warning. Pure.
//!
//! | of | failing | a warning |
//! |---|---|---|
//! | all | the disk's own verdict (exit status bit 3) | it is warmer than its own limit |
//! | ATA | a pre-failure attribute at its threshold (bit 4) | attributes 5, 197, 198 above 0; another attribute at its threshold |
//! | NVMe | a critical warning but the temperature's | media errors; 90 % of its endurance used |
//! | SCSI | | grown defects; uncorrected errors; 90 % of its endurance used |
//!
//! Past conditions (bits 5 to 7: an attribute of the past, entries of the error and self-test logs) do not
//! last, and cause no warning.
//!
//! Source: smartctl(8), "EXIT STATUS"; the names of the JSON are smartmontools 7's (`json_format_version` 1);
//! NVM Express Base Specification 2.0, figure 207.

use braid_control::SmartStatus;
use serde_json::Value;

/// The command line or the device's type was not understood.
const NOT_UNDERSTOOD: i32 = 1;
/// The disk could not be opened or identified, or sleeps.
const NOT_OPENED: i32 = 1 << 1;
/// "DISK FAILING".
const FAILING: i32 = 1 << 3;
/// An attribute is at or below its threshold now.
const AT_THRESHOLD: i32 = 1 << 4;
/// The bit of NVMe's critical warning for the temperature, which has its own limit here.
const TOO_WARM: u64 = 1 << 1;
/// The used endurance from which there is a warning, in percent.
const WORN: u64 = 90;
/// The greatest length of texts from other programs.
const LONGEST: usize = 200;

/// The report of a disk at the time `seen`, in seconds since 1970, by a smartctl that ended with this exit
/// status.
///
/// # Errors
/// The reason why that is not an answer.
pub(crate) fn parse_smart(answer: &[u8], status: i32, seen: u64) -> Result<SmartStatus, String> {
    let json: Value = serde_json::from_slice(answer)
        .map_err(|error| format!("smartctl's answer is not understood: {error}"))?;
    if status & (NOT_UNDERSTOOD | NOT_OPENED) != 0 {
        return Err(match said(&json) {
            Some(said) => format!("smartctl: {said}"),
            None if status & NOT_UNDERSTOOD != 0 => {
                "smartctl does not know how to ask it".to_owned()
            }
            None => "smartctl cannot open it, or it sleeps".to_owned(),
        });
    }
    let nvme = &json["nvme_smart_health_information_log"];
    let mut smart = SmartStatus {
        seen,
        passed: json["smart_status"]["passed"].as_bool(),
        reallocated_sectors: attribute(&json, 5).or(json["scsi_grown_defect_list"].as_u64()),
        pending_sectors: attribute(&json, 197),
        uncorrectable: attribute(&json, 198).or_else(|| uncorrected(&json)),
        media_errors: nvme["media_errors"].as_u64(),
        percentage_used: nvme["percentage_used"]
            .as_u64()
            .or_else(|| json["scsi_percentage_used_endurance_indicator"].as_u64())
            .or_else(|| json["endurance_used"]["current_percent"].as_u64()),
        temperature_celsius: json["temperature"]["current"].as_i64(),
        temperature_limit_celsius: limit(&json),
        power_on_hours: json["power_on_time"]["hours"].as_u64(),
        ..SmartStatus::default()
    };
    let says_something = smart.passed.is_some()
        || [smart.reallocated_sectors, smart.pending_sectors, smart.media_errors]
            .iter()
            .any(Option::is_some);
    if !says_something && status & FAILING == 0 {
        let said = said(&json).map_or(String::new(), |said| format!(" (smartctl: {said})"));
        return Err(format!("it says nothing by SMART{said}"));
    }
    let critical = nvme["critical_warning"].as_u64();
    judge(&mut smart, &json, status, critical);
    Ok(smart)
}

fn judge(smart: &mut SmartStatus, json: &Value, status: i32, critical: Option<u64>) {
    let critical_but_warm = critical.unwrap_or(0) & !TOO_WARM;
    for (bit, what) in [
        (0, "its spare blocks run out"),
        (2, "it is degraded by errors"),
        (3, "it takes no more writes"),
        (4, "its memory is not backed up any more"),
        (5, "its persistent memory cannot be relied on"),
    ] {
        if critical_but_warm & (1 << bit) != 0 {
            smart.failing.push(what.to_owned());
        }
    }
    // NVMe's verdict is that there is a critical warning, of whatever kind.
    let has_failed = smart.passed == Some(false) || status & FAILING != 0;
    let is_only_warm = critical == Some(TOO_WARM);
    if has_failed && !is_only_warm && smart.failing.is_empty() {
        smart.failing.push("its overall health is: failed".to_owned());
    }
    for (name, is_prefailure) in at_threshold(json, status) {
        let what = format!("{name} is at its threshold");
        match is_prefailure {
            true => smart.failing.push(what),
            false => smart.warnings.push(what),
        }
    }
    for (count, what) in [
        (smart.reallocated_sectors, "sectors were reallocated"),
        (smart.pending_sectors, "sectors cannot be read, and wait to be reallocated"),
        (smart.uncorrectable, "errors could not be corrected"),
        (smart.media_errors, "media errors"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            smart.warnings.push(format!("{count} {what}"));
        }
    }
    if let Some(used) = smart.percentage_used.filter(|used| *used >= WORN) {
        smart.warnings.push(format!("{used} % of its endurance is used"));
    }
    let limit = smart.temperature_limit_celsius;
    match (smart.temperature_celsius, limit) {
        (Some(now), Some(limit)) if now > limit => {
            smart.warnings.push(format!("it has {now} °C, and {limit} °C is its limit"));
        }
        _ if is_only_warm => smart.warnings.push("it is warmer than it may be".to_owned()),
        _ => {}
    }
}

/// The raw value of an ATA attribute. Some disks put more than the count into its bytes: the text has the count
/// first, as smartctl's own database takes it apart.
fn attribute(json: &Value, id: u64) -> Option<u64> {
    let table = json["ata_smart_attributes"]["table"].as_array()?;
    let raw = &table.iter().find(|one| one["id"].as_u64() == Some(id))?["raw"];
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    raw["string"].as_str().and_then(digits).or_else(|| raw["value"].as_u64())
}

/// The attributes that are at their threshold now, and whether each foretells a failure. Bit 4 of the exit status
/// stands for those that the table does not name.
fn at_threshold(json: &Value, status: i32) -> Vec<(String, bool)> {
    let table = json["ata_smart_attributes"]["table"].as_array();
    let named: Vec<(String, bool)> = table
        .into_iter()
        .flatten()
        .filter(|one| one["when_failed"].as_str() == Some("now"))
        .map(|one| {
            let name = one["name"].as_str().map(plain).unwrap_or_default();
            let is_prefailure = one["flags"]["prefailure"].as_bool().unwrap_or(true);
            (format!("attribute {} ({name})", one["id"].as_u64().unwrap_or(0)), is_prefailure)
        })
        .collect();
    match named.iter().any(|(_, is_prefailure)| *is_prefailure) || status & AT_THRESHOLD == 0 {
        true => named,
        false => [named, vec![("a pre-failure attribute".to_owned(), true)]].concat(),
    }
}

/// Uncorrected errors of reads, writes and verifications; `None` if SCSI counts none of them.
fn uncorrected(json: &Value) -> Option<u64> {
    let log = &json["scsi_error_counter_log"];
    let counts = ["read", "write", "verify"]
        .iter()
        .filter_map(|way| log[way]["total_uncorrected_errors"].as_u64());
    counts.reduce(u64::saturating_add)
}

/// The greatest permitted temperature according to the disk, in °C; 0 counts as none.
fn limit(json: &Value) -> Option<i64> {
    let temperature = &json["temperature"];
    let limit = temperature["op_limit_max"]
        .as_i64()
        .or_else(|| temperature["drive_trip"].as_i64())
        .or_else(|| json["nvme_composite_temperature_threshold"]["warning"].as_i64());
    limit.filter(|limit| *limit > 0)
}

/// The messages of smartctl itself.
fn said(json: &Value) -> Option<String> {
    let messages = json["smartctl"]["messages"].as_array()?;
    let texts = messages.iter().filter_map(|one| one["string"].as_str());
    let text = plain(&texts.collect::<Vec<_>>().join("; "));
    (!text.is_empty()).then_some(text)
}

/// A text without what a terminal would take for an order, and not too long.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
