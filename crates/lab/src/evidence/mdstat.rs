//! `/proc/mdstat`: arrays that are being rebuilt or checked.
//!
//! ```text
//! md0 : active raid1 sdc1[2] sdb1[0]
//!       1046528 blocks super 1.2 [2/1] [U_]
//!       [====>................]  recovery = 23.4 % (...) finish=0.2min speed=61440K/sec
//! ```

/// The activity of an array, such as `md0: recovery 23.4 %`, with the kernel names of the array and its
/// members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Activity {
    /// The array, then its members.
    pub(super) devices: Vec<String>,
    /// The activity in words.
    pub(super) text: String,
}

/// The words in `/proc/mdstat` for activities that move data.
const WORK: [&str; 5] = ["recovery", "resync", "check", "repair", "reshape"];

/// Returns all running activities. Waiting ones (`resync=DELAYED`, `resync=PENDING`) move no data and are left
/// out.
pub(super) fn parse_mdstat(text: &str) -> Vec<Activity> {
    let mut found = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some((name, rest)) = line.split_once(" : ") {
            // "Personalities : [raid1]" has members like `[raid1]`, whose name is empty.
            let members = rest
                .split_ascii_whitespace()
                .filter_map(|word| word.split_once('[').map(|(member, _)| member.to_owned()));
            devices = std::iter::once(name.to_owned()).chain(members).collect();
        } else if let Some(text) = activity_of(line) {
            let array = devices.first().map_or("md", String::as_str);
            found.push(Activity { text: format!("{array}: {text}"), devices: devices.clone() });
        }
    }
    found
}

/// Returns `recovery 23.4 %` of `[==>...]  recovery = 23.4% (245/1046) finish=...`. The bar contains `=`, and
/// at 100 % there is no blank before the number.
fn activity_of(line: &str) -> Option<String> {
    let (_bar, rest) = line.split_once(']')?;
    let (work, rest) = rest.split_once('=')?;
    let work = work.trim();
    let percent: f64 = rest.split_once('%')?.0.trim().parse().ok()?;
    (WORK.contains(&work) && percent.is_finite()).then(|| format!("{work} {percent} %"))
}
