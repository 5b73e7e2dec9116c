//! An entry point for fuzzers: any bytes as a text, read as a stack, a size, a rate and a latency.
//!
//! Asserted beyond "does not panic": what was read is printed so that the same is read again; spans and
//! columns lie in the text; an error can be drawn under it.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/` has the target for
//! libFuzzer.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use crate::{Arg, ByteSize, Expr, Latency, ParseError, Rate, Span, Stack, parse_expr};

/// Any bytes as a text; what is no UTF-8 in it is replaced.
pub fn fuzz_expression(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let expr = parse_expr(text);
    match &expr {
        Ok(expr) => assert_spans(expr, text, Span::new(0, text.len())),
        Err(error) => assert_drawable(error, text),
    }
    match Stack::parse(text) {
        Ok(stack) => {
            assert!(expr.is_ok(), "a stack that is no expression");
            assert_stack(&stack, text);
        }
        Err(error) => assert_drawable(&error, text),
    }
    assert_same_again::<ByteSize>(text);
    assert_same_again::<Rate>(text);
    assert_same_again::<Latency>(text);
}

fn assert_stack(stack: &Stack, text: &str) {
    let printed = stack.to_string();
    match Stack::parse(&printed) {
        Ok(again) => {
            assert_eq!(&again, stack, "{printed:?}");
            assert_eq!(again.to_string(), printed, "printed again it is the same");
            assert_eq!(again.leaves().len(), stack.leaves().len());
        }
        Err(error) => panic!("{printed:?} of {text:?}: {error}"),
    }
    let mut below = vec![stack];
    while let Some(stack) = below.pop() {
        assert_in_text(stack.span, text);
        below.extend(stack.members());
    }
}

/// Spans of parts lie in the whole.
fn assert_spans(expr: &Expr, text: &str, whole: Span) {
    let span = expr.span();
    assert_in_text(span, text);
    assert!(whole.start <= span.start && span.end <= whole.end, "{span:?} outside {whole:?}");
    if let Expr::Call(call) = expr {
        for arg in &call.args {
            match arg {
                Arg::Positional(value) | Arg::Named { value, .. } => {
                    assert_spans(value, text, span)
                }
            }
        }
    }
}

fn assert_in_text(span: Span, text: &str) {
    assert!(text.get(span.start..span.end).is_some(), "{span:?} of {} bytes", text.len());
}

fn assert_drawable(error: &ParseError, text: &str) {
    assert_in_text(error.span(), text);
    assert!((1..=text.chars().count() + 1).contains(&error.column()), "{error}");
    let drawn = error.render(text);
    assert!(drawn.contains('^') && drawn.lines().count() >= 3, "{drawn}");
}

fn assert_same_again<T: FromStr + Display + Debug + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let printed = value.to_string();
        assert_eq!(printed.parse::<T>().ok(), Some(value), "{printed:?} of {text:?}");
    }
}
