//! Any bytes as a body on the control socket: a status that was accepted can be shown.

fn entry(data: &[u8]) {
    if let Some(status) = braid_control::fuzz_bodies(data) {
        assert!(super::status::render(&status).contains("volume"));
        if let Ok(text) = super::mdstat::render(&status) {
            assert!(text.starts_with("Personalities"));
        }
    }
}

#[test]
fn control_body() {
    braid_mutate::run(
        "control_body",
        2_000_000,
        "cargo test -p braid --bin braid control_body",
        entry,
    );
}
