//! Which kind of device it is: the one whose model errs least on experiments held out.

use crate::fitted::{Errors, Fit};
use crate::glance::{Glance, glance};
use crate::held_out::{self, Differences, replay};
use crate::kinds::{Candidate, disk, flash, plain, queue_depth};
use crate::measured::Measured;
use crate::plan::{Permission, Plan, large_enough};
use crate::reading::{self, DEPTHS, Reading};
use crate::session::{Fault, Session};
use crate::text;
use crate::turning;
use crate::writing::{self, Writing};

/// No device answers a read of 4 KiB so quickly; a file system answers one so of a block that was reserved and
/// never written.
const FROM_MEMORY_NS: f64 = 4000.0;

/// Measures a device and finds its profile, which is called `label`. `announce` gets the plan after a few reads
/// and before anything else.
///
/// # Errors
/// [`Fault`]: the device is too small, too slow for the limit, or failed.
pub fn fit(
    device: &mut dyn Measured,
    label: &str,
    permission: Permission,
    announce: &mut dyn FnMut(&Plan),
) -> Result<Fit, Fault> {
    large_enough(device.size())?;
    let mut session = Session::new(device, permission.limit);
    let glance = glance(&mut session)?;
    let plan = Plan::new(&session, glance, permission)?;
    announce(&plan);

    let repetitions = plan.repetitions as usize;
    let reading = reading::read(&mut session, repetitions)?;
    let turning = match glance.turns {
        true => Some(turning::turning(&mut session, &reading, repetitions)?),
        false => None,
    };
    let (mut writing, mut cache) = (None, None);
    match (permission.destroy, &turning) {
        (true, Some(_)) => cache = turning::write_cache(&mut session, reading.command.value)?,
        (true, None) => {
            writing = Some(writing::write(&mut session, reading.transfer_max, repetitions)?);
        }
        (false, _) => {}
    }
    held_out::run(&mut session, writing.is_some())?;

    // The simplest first.
    let mut candidates = vec![plain(&reading, writing.as_ref())];
    candidates.push(flash(&reading, writing.as_ref()));
    let size = session.size;
    if let Some(turning) = &turning {
        let mut disk = disk(&reading, turning, cache, permission.destroy);
        disk.constants.push(queue_depth(&disk, size, &session.record)?);
        candidates.push(disk);
    }
    let mut facts = facts(&reading, writing.as_ref());
    let mut judged: Vec<(Candidate, Differences, f64)> = Vec::new();
    for candidate in candidates {
        let profile = match candidate.profile(label, size) {
            Ok(profile) => profile,
            Err(error) => {
                facts.push(format!("what was measured is no {}: {error}", candidate.kind));
                continue;
            }
        };
        let differences = replay(&profile, size, &session.record)?;
        let count = differences.held_out.len().max(1) as f64;
        let mean = differences.held_out.iter().sum::<f64>() / count;
        judged.push((candidate, differences, mean));
    }
    let tried = judged.iter().map(|(candidate, _, mean)| (candidate.kind, *mean)).collect();
    // A kind with more constants has to explain more than what repetitions differ by.
    let better = judged
        .into_iter()
        .reduce(|best, next| if next.2 < 0.8 * best.2 && best.2 > 0.005 { next } else { best });
    let Some((Candidate { kind, constants }, differences, _)) = better else {
        return Err(Fault::Nonsense(facts.join("; ")));
    };
    let held_out = Errors::of(&differences.held_out);
    let used = Errors::of(&differences.used);
    let mut warnings = warnings(&glance, &reading, held_out, used);
    warnings.extend(turning.and_then(|turning| turning.doubt).filter(|_| kind == "disk"));
    warnings.extend(contended(session.processor_waits()));
    let text = String::new();
    let mut fit = Fit { kind, size, constants, held_out, used, tried, facts, warnings, text };
    fit.text = text::profile(kind, label, size, &fit.constants, &text::comments(&fit));
    Ok(fit)
}

fn facts(reading: &Reading, writing: Option<&Writing>) -> Vec<String> {
    let alone = reading.at_depth[0].max(1e-9);
    let gains = DEPTHS.iter().zip(&reading.at_depth).skip(1);
    let gains: Vec<String> =
        gains.map(|(depth, rate)| format!("{depth}: {:.2}", rate / alone)).collect();
    let mut facts = vec![format!(
        "random reads a second, {alone:.0} one at a time; with more under way, times that: {}; of the models a disk chooses \
         among them (queue_depth), others take one at a time",
        gains.join(", ")
    )];
    if let Some(writing) = writing {
        facts.push(format!(
            "a write costs {:.0} us before its first byte, a read {:.0} us; the model has the latter for both",
            writing.command.value / 1e3,
            reading.command.value / 1e3
        ));
        facts.push(format!(
            "a random read at once after a write takes {:.0} us",
            writing.read_after.value / 1e3
        ));
    }
    facts
}

/// The share of the time in which tasks may wait for processors before times are doubted.
const CONTENDED: f64 = 0.1;
/// The error in the median beyond which constants do not explain what was measured.
const UNEXPLAINED: f64 = 0.1;

/// Doubts times that were measured while tasks waited for processors so much of the time.
fn contended(share: f64) -> Option<String> {
    (share > CONTENDED).then(|| {
        format!(
            "tasks waited for a processor for {:.0} % of the measuring: answers came late, so measure again when \
             the machine is not busy",
            100.0 * share
        )
    })
}

fn warnings(glance: &Glance, reading: &Reading, held_out: Errors, used: Errors) -> Vec<String> {
    let mut warnings = Vec::new();
    if glance.request_ns < FROM_MEMORY_NS {
        warnings.push(format!(
            "a random read takes {:.1} us: that comes from memory, or from what was never written",
            glance.request_ns / 1e3
        ));
    }
    if reading.spread > 0.25 {
        warnings.push(format!(
            "equal reads differ by {:.0} %: the device or the machine was busy, so measure again when it is not",
            100.0 * reading.spread
        ));
    }
    let errors = [
        (held_out.median, "where nothing was fitted"),
        (used.median, "on the experiments that its constants are from"),
    ];
    for (median, place) in errors.into_iter().filter(|error| error.0 > UNEXPLAINED) {
        warnings.push(format!(
            "the model errs by {:.0} % in the median {place}: the device is of none of these kinds, or was busy",
            100.0 * median
        ));
    }
    warnings
}
