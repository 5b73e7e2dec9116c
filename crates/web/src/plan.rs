//! Plans: what a request would do, said before it is done. Orders are planned by the volume; what needs no volume is
//! planned here.

use braid_control::{ErrorCode, Failure, Status};
use serde::Serialize;

/// A plan, as the API has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Plan {
    /// Sentences about the effect.
    pub(crate) does: String,
    /// Sentences about data that may be lost.
    pub(crate) loses: Option<String>,
    /// False if the wanted state is there already, or the request is refused.
    pub(crate) changes: bool,
    /// True if the request is not refused now.
    pub(crate) possible: bool,
    /// Reason of a refusal.
    pub(crate) why_not: Option<String>,
    /// The code of a refusal.
    pub(crate) code: Option<ErrorCode>,
    /// The next command after a refusal.
    pub(crate) next: Option<String>,
    /// The command that does the same.
    pub(crate) command: String,
}

impl Plan {
    /// Returns the plan of a request that may be tried.
    pub(crate) fn possible(does: String, loses: Option<String>, command: String) -> Plan {
        let (why_not, code, next) = (None, None, None);
        Plan { does, loses, changes: true, possible: true, why_not, code, next, command }
    }

    /// Returns the plan of a request whose wanted state is there already.
    pub(crate) fn nothing(does: String, command: String) -> Plan {
        Plan { changes: false, ..Plan::possible(does, None, command) }
    }

    /// Returns the plan of a request that is refused.
    pub(crate) fn refused(failure: Failure, command: String) -> Plan {
        Plan {
            possible: false,
            why_not: Some(failure.why),
            code: Some(failure.code),
            next: failure.next,
            ..Plan::nothing("Nothing.".to_owned(), command)
        }
    }

    /// Returns the plan that a volume made of an order.
    pub(crate) fn of_order(plan: braid_control::Plan, command: String) -> Plan {
        match plan.refusal {
            Some(failure) => Plan::refused(failure, command),
            None if plan.changes => Plan::possible(plan.effect, plan.loss, command),
            None => Plan::nothing(format!("Nothing: {}.", plan.effect), command),
        }
    }
}

/// Returns the effect of stopping a volume, and what may be lost. A volume that does not answer has no status.
pub(crate) fn stop(name: &str, status: Option<&Status>, force: bool) -> (String, Option<String>) {
    let Some(status) = status else {
        let does = format!("Ends what is left of {name}, and removes what it left.");
        return (does, Some("What was being written and was not flushed may be lost.".to_owned()));
    };
    let device = status.device_export().map(|device| format!("{} goes away, ", device.address));
    let does = format!(
        "Ends {name}: {}what is under way is answered and flushed. It can be brought up again.",
        device.unwrap_or_default()
    );
    let mut loses = Vec::new();
    if status.device.volatile {
        loses.push(
            "Its content is lost: it is in memory alone, unless it is saved to an image."
                .to_owned(),
        );
    }
    match (force, status.device_export(), status.connections()) {
        (true, Some(_), _) => {
            loses.push("The device is taken away from the programs that use it.".to_owned())
        }
        (false, Some(_), _) => {
            loses.push("It is refused while anybody uses the device.".to_owned())
        }
        (_, None, 0) => {}
        (_, None, clients) => loses.push(format!("Connections of clients end: {clients}.")),
    }
    (does, (!loses.is_empty()).then(|| loses.join(" ")))
}
