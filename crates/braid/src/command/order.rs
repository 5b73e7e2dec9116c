//! Orders to running volumes: given, or asked as a question.

use crate::cli::Giving;
use braid_service::control::{self, OUTPUT_VERSION, Order, Plan, Status, WholeOrder};
use braid_service::failure::Failure;
use braid_service::places::{Places, check_name};

/// Gives an order, and prints what was done; or prints its plan.
pub(super) fn give(volume: &str, order: &Order, how: Giving) -> Result<(), Failure> {
    let json = match (how.plan, how.json) {
        (_, false) => {
            println!("{}", outcome(volume, order, how)?);
            return Ok(());
        }
        (true, true) => {
            let Plan { effect, loss, changes, .. } = plan(volume, order)?;
            serde_json::json!({
                "output_version": OUTPUT_VERSION, "effect": effect, "loss": loss, "changes": changes,
            })
        }
        (false, true) => {
            let done = carried_out(volume, order)?;
            serde_json::json!({ "output_version": OUTPUT_VERSION, "done": done })
        }
    };
    println!("{json}");
    Ok(())
}

/// Gives an order, and returns what was done; or returns its plan, as lines.
pub(super) fn outcome(volume: &str, order: &Order, how: Giving) -> Result<String, Failure> {
    if !how.plan {
        return carried_out(volume, order);
    }
    let Plan { effect, loss, changes, .. } = plan(volume, order)?;
    Ok(match (changes, loss) {
        (false, _) => format!("Nothing to do: {effect}."),
        (true, None) => effect,
        (true, Some(loss)) => format!("{effect}\nRisk: {loss}"),
    })
}

/// Returns the plan of an order, as the volume makes it.
///
/// # Errors
/// The order is refused.
fn plan(volume: &str, order: &Order) -> Result<Plan, Failure> {
    check_name(volume)?;
    let socket = Places::from_environment().control(volume);
    let mut plan = control::post_plan(&socket, order).map_err(|error| error.failure(volume))?;
    plan.refusal.take().map_or(Ok(plan), Err)
}

/// Sends an order to the volume, and returns what was done.
pub(super) fn carried_out(volume: &str, order: &Order) -> Result<String, Failure> {
    check_name(volume)?;
    let content = match order {
        Order::Whole(WholeOrder::Save { .. } | WholeOrder::Restore { .. }) => {
            status(volume)?.device.size_bytes
        }
        _ => 0,
    };
    let socket = Places::from_environment().control(volume);
    verbose!("gives {} the order {order:?}", socket.display());
    let answer = control::post_order(&socket, order, order.bytes_of_work(content));
    answer.map_err(|error| error.failure(volume))?.map(|carried| carried.text)
}

/// Returns the status of a running volume.
pub(super) fn status(volume: &str) -> Result<Status, Failure> {
    check_name(volume)?;
    let socket = Places::from_environment().control(volume);
    control::get_status(&socket).map_err(|error| error.failure(volume))
}
