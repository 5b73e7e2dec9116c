//! The committed corpora of campaign files and of what tools print, and what chance makes of them,
//! against the promises in the modules `fuzz` of `braid_lab`.

fn run(target: &str, entry: fn(&[u8])) {
    braid_mutate::run(target, &format!("cargo test -p braid-lab --test fuzz {target}"), entry);
}

#[test]
fn campaign() {
    run("campaign", braid_lab::matrix::fuzz::fuzz_campaign);
}

#[test]
fn tool_output() {
    run("tool_output", braid_lab::tool::fuzz::fuzz_output);
}
