//! The committed corpora of campaign files and of what tools print, and what chance makes of them,
//! against the promises of the two entry points.

mod campaign;
mod tool_output;

fn run(target: &str, entry: fn(&[u8])) {
    braid_mutate::run(target, &format!("cargo test -p braid-lab --test fuzz {target}"), entry);
}

#[test]
fn campaign() {
    run("campaign", campaign::fuzz_campaign);
}

#[test]
fn tool_output() {
    run("tool_output", tool_output::fuzz_output);
}
