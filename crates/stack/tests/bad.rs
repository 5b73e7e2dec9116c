//! Expressions that are refused, with the exact text that a person sees.

use braid_stack::{MAX_DEPTH, MAX_LENGTH, MAX_MEMBERS, Stack};

fn rendered(source: &str) -> String {
    match Stack::parse(source) {
        Ok(stack) => panic!("`{source}` parses as `{stack}`"),
        Err(error) => error.render(source),
    }
}

/// Each text is the rendered error; its second line is the source.
const BAD: &[&str] = &["@@"];

#[test]
fn bad_expressions_are_drawn() {
    for expected in BAD {
        let source = expected.lines().nth(1).expect("a rendered error has a second line");
        let source = source.strip_prefix("  ").expect("the source is indented by two");
        assert_eq!(&rendered(source), expected);
    }
}
