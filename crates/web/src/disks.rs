//! Disks and what is on them, and what overwrites superblocks: `disks`, `examine`, `assemble`, `wipe`, `undo`. The
//! command line is the one place that can do these, so each is a command; its JSON is the body.
//!
//! ```text
//!   POST …?plan=1 {request}          ──▶ the plan, and a ticket        nothing is written
//!   POST …        {request, ticket}  ──▶ the plan is made again; done if it is the same, else refused
//! ```

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use braid_control::ErrorCode;
use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::asked::{Asked, only_planned, read};
use crate::plan::Plan;
use crate::program;
use crate::shared::{Shared, blocking};
use crate::up::check_name;

/// A request about members of arrays that are not up.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiskOrder {
    /// Find the members of an array, and record it as a volume.
    Assemble(Assemble),
    /// Remove superblocks.
    Wipe(Wipe),
    /// Put back what a command overwrote.
    Undo(Undo),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assemble {
    #[serde(default)]
    members: Vec<String>,
    /// Search all block devices.
    #[serde(default)]
    scan: bool,
    /// The array, if several are found.
    uuid: Option<String>,
    /// The name of the volume; without it, that of the array.
    volume: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    degraded: bool,
    /// Superblocks are rewritten.
    #[serde(default)]
    force: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wipe {
    members: Vec<String>,
    /// Only the superblock of this version.
    metadata: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// The number of the change, as `GET /api/v1/changes` has it.
    change: u64,
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    order: DiskOrder,
    ticket: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Examine {
    members: Vec<String>,
}

fn changes_line() -> CommandLine {
    CommandLine::new(&["undo"]).flag("list", true)
}

fn with_members(line: CommandLine, members: &[String]) -> Result<CommandLine, Refusal> {
    if let Some(path) = members.iter().find(|path| !path.starts_with('/')) {
        return Err(Refusal::bad(format!("{path:?} is no whole path"))
            .next("name members from the root, as /dev/sdb"));
    }
    Ok(members.iter().fold(line, |line, path| line.name(path)))
}

impl DiskOrder {
    /// Returns the command that carries out the order; with `plan`, the command that prints its effect.
    ///
    /// # Errors
    /// The request makes no sense.
    fn line(&self, plan: bool) -> Result<CommandLine, Refusal> {
        match self {
            DiskOrder::Assemble(assemble) => {
                assemble.volume.as_deref().map_or(Ok(()), check_name)?;
                let line = CommandLine::new(&["assemble"])
                    .option("uuid", assemble.uuid.as_ref())
                    .option("as", assemble.volume.as_ref())
                    .flag("scan", assemble.scan)
                    .flag("read-only", assemble.read_only)
                    .flag("degraded", assemble.degraded)
                    .flag("force", assemble.force)
                    .flag("plan", plan);
                with_members(line, &assemble.members)
            }
            DiskOrder::Wipe(wipe) => {
                let line = CommandLine::new(&["wipe"]).option("metadata", wipe.metadata.as_ref());
                with_members(line.flag("plan", plan), &wipe.members)
            }
            DiskOrder::Undo(_) if plan => Ok(changes_line()),
            DiskOrder::Undo(undo) => {
                let line = CommandLine::new(&["undo"]).flag("force", undo.force);
                Ok(line.name(undo.change.to_string()))
            }
        }
    }

    /// The effect, for people, and possible data loss.
    fn does(&self) -> (&'static str, Option<&'static str>) {
        match self {
            DiskOrder::Assemble(Assemble { force: false, .. }) => {
                ("Records the array as a volume. Nothing is written to its members.", None)
            }
            DiskOrder::Assemble(_) => (
                "Rewrites superblocks, so that stale members count again, and records the array as a volume. Undo puts \
                 the superblocks back.",
                Some("Writes that the stale members missed are lost, and files may be damaged."),
            ),
            DiskOrder::Wipe(_) => (
                "Removes the superblocks of the members. They are saved before, and undo puts them back.",
                Some("The members are no array any more."),
            ),
            DiskOrder::Undo(Undo { force: false, .. }) => {
                ("Puts back the bytes that the change overwrote, and forgets its record.", None)
            }
            DiskOrder::Undo(_) => (
                "Puts back the bytes that the change overwrote, also where the place was written since.",
                Some("What was written there since is lost."),
            ),
        }
    }

    /// Returns true if the order overwrites something, so that its plan has to be seen before.
    fn needs_ticket(&self) -> bool {
        !matches!(self, DiskOrder::Assemble(Assemble { force: false, .. }))
    }

    /// Makes the plan: what the command says that it would do.
    fn plan(&self, shared: &Shared) -> Result<Value, Refusal> {
        let _permit = shared.begin()?;
        let answer = program::run(&shared.program, &self.line(true)?)?;
        let DiskOrder::Undo(undo) = self else { return Ok(answer) };
        let changes = answer["changes"].as_array().cloned().unwrap_or_default();
        let found = changes.into_iter().find(|change| change["number"] == undo.change);
        found.ok_or_else(|| {
            Refusal::not_found(format!("there is no change {} to undo", undo.change))
                .next("GET /api/v1/changes lists those that there are")
        })
    }

    /// Returns the subject of a ticket: this request with that plan.
    fn sealed(&self, plan: &Value) -> String {
        json!([self, plan]).to_string()
    }
}

pub(crate) async fn give(
    State(shared): Asked,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let only_plan = only_planned(query.as_deref())?;
    let Ordered { order, ticket } = read(&body)?;
    let line = order.line(false)?;
    if only_plan {
        return blocking(move || planned(&shared, &order, &line)).await.map(Json);
    }
    if order.needs_ticket() {
        let asked = shared.clone();
        blocking(move || confirmed(&asked, &order, ticket.as_deref())).await?;
    }
    shared.carry_out(line).await
}

fn planned(shared: &Shared, order: &DiskOrder, line: &CommandLine) -> Result<Value, Refusal> {
    let plan = order.plan(shared)?;
    let (does, loses) = order.does();
    let mut said = json!(Plan::possible(does.to_owned(), loses.map(str::to_owned), line.typed()));
    let ticket = order.needs_ticket().then(|| {
        let issued = shared.tickets.issue(order.sealed(&plan), Instant::now());
        issued.map_err(|error| Refusal::broken(error.to_string()))
    });
    said["ticket"] = ticket.transpose()?.into();
    said["plan"] = plan;
    Ok(said)
}

/// Makes sure that the plan was seen, and is the same now.
fn confirmed(shared: &Arc<Shared>, order: &DiskOrder, ticket: Option<&str>) -> Result<(), Refusal> {
    let again = "?plan=1 gives a plan with a ticket, which holds once and for a minute";
    let Some(ticket) = ticket else {
        let text = "it overwrites something, and goes with the ticket of its plan";
        return Err(Refusal::conflict(text).next(again).code(ErrorCode::NotPossible));
    };
    let seen = shared.tickets.redeem(ticket, Instant::now());
    if seen.is_some_and(|seen| order.plan(shared).is_ok_and(|plan| seen == order.sealed(&plan))) {
        return Ok(());
    }
    let text = "the ticket is used or too old, or the plan is not what it was: nothing was done";
    Err(Refusal::conflict(text).next(again).code(ErrorCode::StateChanged))
}

/// Runs a command that only reads, and answers its JSON.
async fn asked(shared: Arc<Shared>, line: CommandLine) -> Result<Json<Value>, Refusal> {
    blocking(move || {
        let _permit = shared.begin()?;
        program::run(&shared.program, &line).map(Json)
    })
    .await
}

pub(crate) async fn disks(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    asked(shared, CommandLine::new(&["disks"])).await
}

pub(crate) async fn changes(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    asked(shared, changes_line()).await
}

pub(crate) async fn examine(State(shared): Asked, body: Bytes) -> Result<Json<Value>, Refusal> {
    let Examine { members } = read(&body)?;
    if members.is_empty() {
        return Err(Refusal::bad("no member is named").next("name members from the root"));
    }
    asked(shared, with_members(CommandLine::new(&["examine"]).telling_failures(), &members)?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_command_lines_and_what_overwrites_needs_a_ticket() {
        let order = |text: &str| serde_json::from_str::<DiskOrder>(text).expect("an order");
        let line = |text: &str, plan| {
            order(text).line(plan).map(|line| line.arguments().join(" ")).map_err(|no| no.why)
        };
        for (text, plan, expected, ticket) in [
            (
                r#"{"assemble":{"members":["/a"],"volume":"v","degraded":true}}"#,
                true,
                "assemble --as=v --degraded --plan --json -- /a",
                false,
            ),
            (
                r#"{"assemble":{"scan":true,"uuid":"u","force":true}}"#,
                false,
                "assemble --uuid=u --scan --force --json --",
                true,
            ),
            (r#"{"wipe":{"members":["/a","/b"]}}"#, true, "wipe --plan --json -- /a /b", true),
            (r#"{"undo":{"change":7}}"#, true, "undo --list --json --", true),
            (r#"{"undo":{"change":7,"force":true}}"#, false, "undo --force --json -- 7", true),
        ] {
            assert_eq!(line(text, plan).as_deref(), Ok(expected));
            assert_eq!(order(text).needs_ticket(), ticket, "{text}");
        }
        let refused = line(r#"{"wipe":{"members":["--force"]}}"#, false).unwrap_err();
        assert!(refused.contains("no whole path"), "{refused}");
    }
}
