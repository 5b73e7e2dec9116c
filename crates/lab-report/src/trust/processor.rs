//! Processor time and heat: whether the machine could have driven the subject harder.

use super::Checked;
use super::campaign::is_modelled;
use super::case::{TrialCase, percent};
use braid_lab::metric::Metric;

/// Share of the cores that a tool can use, from which on the tool is taken for the limit. Starting
/// up and printing take some of a trial's time, so a busy tool never shows quite 100 %.
const CLIENT_BUSY: f64 = 0.90;
/// The share of all processors from which no process on this machine could have done more. The rest is lost in
/// the kernel's accounting by ticks.
const MACHINE_BUSY: f64 = 0.95;
/// The share of the processors used by neither the tool nor the server from which other programs are blamed for
/// a full machine.
const OTHERS: f64 = 0.20;

/// Rule `cpu-bound-client`.
pub(super) fn check_client(case: &TrialCase<'_>) -> Checked {
    // A model takes its device's time whatever else the processors do: of members that allow 10 and
    // 12 MB/s, all trials of a machine that was fully busy lay within 0.1 % of that.
    if case.subject.is_some_and(is_modelled) {
        return Checked::Fine;
    }
    let evidence = case.evidence;
    let reported = [Metric::ToolCpuUser, Metric::ToolCpuSystem].map(|part| case.get(part));
    let reported = reported.into_iter().flatten().reduce(|user, system| user + system);
    // What the kernel counted is better than what the tool says of itself, and sees all children.
    let used = evidence.tool_cores.or(reported.map(|percent| percent / 100.0));
    if let (Some(used), Some(cores)) = (used, usable_cores(case))
        && used >= CLIENT_BUSY * cores
    {
        return Checked::suspect(format!(
            "the tool used {used:.2} of the {cores} {} that its processes can use",
            if cores == 1.0 { "core" } else { "cores" }
        ));
    }
    match (evidence.cpu_busy, used) {
        (Some(busy), _) if busy >= MACHINE_BUSY => full_machine(case, busy),
        (None, None) => Checked::Unknown,
        _ => Checked::Fine,
    }
}

/// A core for each process or thread of the tool, but no more than there are.
fn usable_cores(case: &TrialCase<'_>) -> Option<f64> {
    let settings = &case.workload.settings;
    let threads = ["threads", "jobs", "numjobs"].iter().find_map(|name| settings.count(name));
    let processes = u64::from(case.workload.setup.processes).max(1);
    let wanted = threads.unwrap_or(1).max(1).saturating_mul(processes);
    let cores = wanted.min(u64::from(case.evidence.cpu_count?));
    (cores > 0).then_some(cores as f64)
}

/// A machine that is full of the trial itself gives a true number for such a machine: a remark.
/// Full of something else, it gives what that left over.
fn full_machine(case: &TrialCase<'_>, busy: f64) -> Checked {
    let evidence = case.evidence;
    let why = format!("all processors of the machine were {} busy", percent(busy));
    let server = evidence.server_cpu_s.zip(evidence.span_s).map_or(0.0, |(used, span)| used / span);
    let own = evidence.tool_cores.map(|tool| tool + server);
    let Some((own, count)) = own.zip(evidence.cpu_count) else {
        return Checked::suspect(why);
    };
    let why = format!("{why}; the tool and the server had {own:.1} of {count}");
    if busy - own / f64::from(count) < OTHERS {
        return Checked::remark(format!("{why}, so this is what the processors allow"));
    }
    Checked::suspect(format!("{why}, and the rest went to the kernel and to other programs"))
        .but_do("stop what else runs on this machine and run the trials again")
}

/// Rule `throttled`.
pub(super) fn check_heat(case: &TrialCase<'_>) -> Checked {
    let evidence = case.evidence;
    if let Some(count) = evidence.throttled.filter(|count| *count > 0) {
        return Checked::suspect(format!(
            "the processor was throttled {count} times during the trial"
        ));
    }
    match &evidence.heat {
        Some(heat) if heat.celsius >= heat.limit_celsius => Checked::suspect(format!(
            "{} was at {:.0} °C, and its limit is {:.0} °C ({})",
            heat.sensor,
            heat.celsius,
            heat.limit_celsius,
            meaning_of(&heat.sensor)
        )),
        None if evidence.throttled.is_none() => Checked::Unknown,
        _ => Checked::Fine,
    }
}

/// The meaning of a sensor's limit.
fn meaning_of(sensor: &str) -> &'static str {
    match sensor {
        "nvme" => "the drive's own warning of overheating",
        "drivetemp" => "the most that its maker recommends for continuous work",
        _ => "from there on the processor slows itself down",
    }
}
