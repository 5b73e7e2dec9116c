//! The committed corpus of expressions, and what chance makes of it, against the promises in
//! `braid_stack::fuzz`.

#[test]
fn stack_expression() {
    let again = "cargo test -p braid-stack --test fuzz stack_expression";
    braid_mutate::run("stack_expression", again, braid_stack::fuzz::fuzz_expression);
}
