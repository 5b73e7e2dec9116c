//! Entry points for fuzzers: any bytes as a trace, and as a job file.
//!
//! Asserted beyond "does not panic": errors tell a place in the text; a trace is in order, and what was
//! read is printed so that the same is read again; a text is the same in pieces.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/` has the targets for
//! libFuzzer.

use crate::{Reader, Request, Summary, SyntaxError, Trace, TraceError, iolog, parse, parse_jobs};

/// Any bytes as a trace.
pub fn fuzz_trace(data: &[u8]) {
    let read = parse(data, None);
    assert_eq!(read_in_pieces(data), read, "in pieces it is the same");
    match read {
        Ok(trace) => assert_trace(&trace),
        Err(TraceError::Syntax(error)) => assert_in_text(&error, data),
        Err(TraceError::Several { names, .. }) => {
            assert!(names.len() > 1);
            if let Ok(trace) = parse(data, Some(&names[0])) {
                assert_trace(&trace);
            }
        }
        Err(TraceError::NotThere { .. }) => panic!("no device was selected"),
    }
}

/// Any bytes as a job file; what is no UTF-8 in it is replaced.
pub fn fuzz_jobs(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    match parse_jobs(text) {
        Ok(jobs) => {
            assert!(!jobs.is_empty());
            for job in jobs {
                assert!(job.block > 0 && job.depth > 0 && job.jobs > 0 && job.read_percent <= 100);
            }
        }
        Err(error) => assert_in_text(&error, text.as_bytes()),
    }
}

fn read_in_pieces(data: &[u8]) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(None);
    for piece in data.chunks(7) {
        reader.push(piece)?;
    }
    reader.finish()
}

fn assert_trace(trace: &Trace) {
    assert!(trace.requests.is_sorted_by_key(|request| request.at_ns));
    let (summary, totals) = (Summary::of(trace), trace.totals());
    assert!(
        summary.working_set <= totals.largest_end && totals.sequential <= totals.data_requests()
    );
    let whole = |request: &Request| Request { at_ns: request.at_ns / 1000 * 1000, ..*request };
    let requests: Vec<Request> = trace.requests.iter().map(whole).collect();
    let mut text = iolog::head("a").into_bytes();
    for request in &requests {
        iolog::line(&mut text, "a", request);
    }
    text.extend_from_slice(iolog::tail("a", 0).as_bytes());
    let again = parse(&text, None).expect("what is printed can be read");
    assert_eq!(again.requests, requests);
}

fn assert_in_text(error: &SyntaxError, data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let line = usize::try_from(error.line - 1).expect("a line of a text in memory");
    // At the end of the text, too.
    let len = lines.get(line).map_or(0, |line| line.len());
    assert!(line <= lines.len() && (1..=len + 1).contains(&error.column), "{error}");
}
