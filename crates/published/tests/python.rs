//! Predicates have the values that Python gives them: those of the built-in files with their published
//! figures, some that nobody published, and generated ones.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use braid_published::built_in;
use braid_published::predicate::{Items, NoAnswer, Predicate, Value};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value as Json, json};

/// Evaluates a JSON list of expressions, one a line: the kind and the value of each, or that there is none.
/// Numbers are exact: a float is given as its shortest digits.
const PYTHON: &str = r#"
import json, sys
task = json.load(sys.stdin)
def f(id):
    if not isinstance(id, str): raise TypeError
    return task["values"][id]
def told(value):
    if isinstance(value, bool): return ["flag", value]
    if isinstance(value, int): return ["integer", str(value)]
    if isinstance(value, float): return ["float", repr(value)]
    if isinstance(value, str): return ["text", value]
    if isinstance(value, tuple): return ["tuple", [told(one) for one in value]]
    if isinstance(value, list): return ["list", [told(one) for one in value]]
    if isinstance(value, (set, frozenset)): return ["set", [told(one) for one in value]]
    if isinstance(value, range): return ["range", [told(one) for one in value]]
    return ["other", type(value).__name__]
out = []
for text in task["texts"]:
    try: out.append(told(eval(text, {"f": f})))
    except Exception as error: out.append(["error", type(error).__name__])
json.dump(out, sys.stdout)
"#;

/// What Python makes of these; `None` where there is none, which is said.
fn python(texts: &[String], values: &BTreeMap<String, f64>) -> Option<Vec<Json>> {
    let mut python = Command::new("python3");
    let started = python
        .args(["-W", "ignore", "-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = match started {
        Ok(python) => python,
        Err(error) => {
            println!("skipped: python3 does not start: {error}");
            return None;
        }
    };
    let task = json!({ "texts": texts, "values": values }).to_string();
    let mut input = python.stdin.take().expect("its input is a pipe");
    // What is said is read only after all was given: it is small.
    let given = std::thread::spawn(move || input.write_all(task.as_bytes()));
    let output = python.wait_with_output().expect("it ends");
    given.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "python3 failed");
    Some(serde_json::from_slice(&output.stdout).expect("it says JSON"))
}

fn told(value: &Value) -> Json {
    let all = |items: &[Value]| items.iter().map(told).collect::<Vec<_>>();
    match value {
        Value::Flag(flag) => json!(["flag", flag]),
        Value::Integer(value) => json!(["integer", value.to_string()]),
        Value::Float(_) => json!(["float", value.to_string()]),
        Value::Text(text) => json!(["text", &**text]),
        Value::Items(Items::Tuple, items) => json!(["tuple", all(items)]),
        Value::Items(Items::List, items) => json!(["list", all(items)]),
        Value::Items(Items::Range, items) => json!(["range", all(items)]),
        Value::Items(Items::Set, items) => json!(["set", all(items)]),
        Value::Items(Items::Stream, _) => json!(["other", "generator"]),
    }
}

fn evaluate(text: &str, values: &BTreeMap<String, f64>) -> Result<Value, String> {
    let predicate = Predicate::parse(text).map_err(|error| error.to_string())?;
    let source = |id: &str| values.get(id).copied().ok_or_else(|| "not there".to_owned());
    predicate.evaluate(&source).map(|evaluated| evaluated.value).map_err(|error| error.to_string())
}

/// Equal; sets in any order, and floats but for the last digits, in which sums of newer Pythons are nearer.
fn is_same(ours: &Json, theirs: &Json) -> bool {
    let float = |value: &Json| value[1].as_str().and_then(|text| text.parse::<f64>().ok());
    let (Some(kind), Some(other)) = (ours[0].as_str(), theirs[0].as_str()) else { return false };
    if kind != other {
        return false;
    }
    if kind == "float" {
        let (Some(ours), Some(theirs)) = (float(ours), float(theirs)) else { return false };
        let is_near = (ours - theirs).abs() <= 1e-13 * ours.abs().max(theirs.abs());
        return is_near && ours.is_sign_negative() == theirs.is_sign_negative();
    }
    let (Some(all), Some(others)) = (ours[1].as_array(), theirs[1].as_array()) else {
        return ours == theirs;
    };
    let is_in_place = || all.iter().zip(others).all(|(one, other)| is_same(one, other));
    let is_anywhere = || all.iter().all(|one| others.iter().any(|other| is_same(one, other)));
    all.len() == others.len() && if kind == "set" { is_anywhere() } else { is_in_place() }
}

fn published() -> BTreeMap<String, f64> {
    let studies = built_in();
    let rows = studies.iter().flat_map(|study| &study.rows);
    rows.map(|row| (row.asked.id.clone(), row.published)).collect()
}

#[test]
fn built_in_predicates_are_as_in_python() {
    let mut values = published();
    let mut texts = Vec::new();
    // What claims call by other names, and probes, here have some value.
    for (at, study) in built_in().iter().enumerate() {
        for (place, probe) in study.probes.iter().enumerate() {
            values
                .insert(probe.asked.id.clone(), 1e7 * (1.0 + ((place * 7 + at) % 11) as f64 / 5.0));
        }
        for row in
            study.rows.iter().filter(|row| row.asked.unit == braid_published::Unit::BytesPerSecond)
        {
            values.insert(format!("{}.iops", row.asked.id), row.published / 65536.0);
            values.insert(format!("{}.seconds", row.asked.id), 1e9 / row.published);
        }
        for row in study.rows.iter().filter(|row| row.asked.subject == "disk1") {
            values.insert(row.asked.id.replace("disk1", "disk-average"), row.published * 1.05);
        }
        texts.extend(study.claims.iter().map(|claim| claim.predicate.text().to_owned()));
    }
    assert_eq!(texts.len(), 40);
    let ours: Vec<Json> = texts
        .iter()
        .map(|text| told(&evaluate(text, &values).unwrap_or_else(|why| panic!("{text}: {why}"))))
        .collect();
    let Some(theirs) = python(&texts, &values) else { return };
    for ((text, ours), theirs) in texts.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{text}");
    }
    let held = ours.iter().filter(|value| value[1] == true).count();
    assert!((10..40).contains(&held), "{held} hold: both answers should occur");
}

/// Neighbours of what was published, and corners. `!` before one says that neither has a value for it.
const CORNERS: &str = r#"
-2**2, 2**-1, 2**3**2, -7//2, 7//-2, -7%3, 7%-3, -7.5//2, -7.5%2, 7.5%-2.5, 1e300*10, 0.1+0.2
5%2 == 1 and 5.0%2 == 1.0 or False
1 < 2 < 3, 1 < 2 > 1.5, 3 > 2 == 2, not 1 == 2, not not 0
1 if [] else 2 if () else 'x'
[x*y for x in (1,2,3) if x != 2 for y in range(x)]
sum(x > 1 for x in (1,2,3)), sum([]), sum((0.5,) * 1) if False else 0.25
sorted([3,1,2.5]), sorted(('b','a','ab')), sorted([(2,1),(1,5)], key=lambda p: p[1]), sorted([1,2,3], reverse=True)
max(1, 2.0, 2), max(2.0, 2), min((3,1,2), key=lambda k: -k), max(['aa','b'], key=len)
'%d of %d' % (3, 4.9), '%s' % 1.0, '%s %s' % ('a', (1,)), '%05.1f|%-4d|%+d|%3s' % (2.25, 7, 7, 'ab'), '100%%' % (), '%.3d' % -5
'a' + 'b' "c", 'ab'[1], 'ab'[-1], (1,2,3)[-3], [1,2][True]
1 in (1,2), 1.0 in {1,2}, 3 not in range(3), 'b' in 'abc', '' in 'abc', (1,) in [(1,)]
len(set([1, 1.0, True, 'a', (1,2), (1.0,2)])), {1,2} == {2,1,1.0}, set() == set([])
[a+b for a, b in zip((1,2),(10,20,30))], [(i, c) for i, c in enumerate('ab')], [a for a, in [(1,),(2,)]]
round(2.5), round(3.5), round(-2.5), round(2.675, 2), round(1e22, 1), round(5, 2), round(0.5)
abs(-3), abs(-2.5), abs(True), abs(-0.0), int(-2.9), float(3), str(1e16), str(1e-5), str(123456789012345680.0), bool(''), bool([0])
list(range(10, 0, -3)), tuple(range(2)), list('ab'), range(3) == range(0,3)
(1,2) < (1,3), (1,) < (1,0), [1,2] == [1,2.0], [1] == (1,), 'a' < 'b', 'a' == 1, None_ if False else 1
1_000 + 1e3 + .5 + 5. + 1_0.0_1, 007 if False else 0
(1), (1,), (), [1,], [[]], ((1,2),(3,))
(1,2,3)[1:], (1,2,3)[:-1], [1,2,3][-2:2], [1,2][5:], [1,2][:-9], 'abc'[1:2], 'abc'[:], range(5)[2:4], (1,2,3)[2:1]
all(a < b for a, b in zip((1,2,3), (1,2,3)[1:])), '%05d|%+06.1f|%-5d|%05d' % (-7, -2.25, -3, 7)
any(x for x in ()), all(x for x in ()), any([0, 'x']), 0 or 'x', 0 and 1, '' or () or 0
[n for n in (1,2,3,4) if n > 1 if n < 4], (lambda_ for lambda_ in (1,)) == 1
max(k for k in (1,2)), min([5]), all(a < b for a, b in ((1,2),(3,4)))
9007199254740993 == 9007199254740992.0, 9007199254740993 > 9007199254740992.0, 2**53 == 2.0**53
-0.0, 0.0 * -1, 1/3, 2/1, 1e16, 1e15, 1.5e-7, 123456.789e3, 3//0.7, -3//0.7, 3%0.7, -3%0.7, 1e17//3.0
!1/0
!1%0
!1.5//0
!0**-1
!'a' < 1
!(1,2)[2]
!max(())
!f(1)
!f('nothing')
!len(3)
!len(x for x in (1,))
!'%d' % 'a'
!'%d %d' % 1
!'%d' % (1, 2)
!'a' + 1
!sum(('a', 'b'))
!{[1]}
!nothing
!range(1, 2, 0)
![a for a, b in [(1,2,3)]]
!sorted([1, 'a'])
!{1} < 'a'
!1 2
!(1
!'a
!f(
!1 +
!a = 1
!lambda
!for x in y
![for x in y]
!x for x in (1,2)
!max(x for x in (1,2), key=abs)
!01
!1 if 2
!f('a' for)
![1,,2]
!5(3)
!(1,2)[]
!{1}[0:1]
!(1,2)['a':]
"#;

#[test]
fn corners_are_as_in_python() {
    let lines: Vec<&str> = CORNERS.lines().filter(|line| !line.is_empty()).collect();
    let text = |line: &&str| line.strip_prefix('!').map_or(format!("({line})"), str::to_owned);
    let texts: Vec<String> = lines.iter().map(text).collect();
    let values = published();
    let theirs = python(&texts, &values);
    for (at, (line, text)) in lines.iter().zip(&texts).enumerate() {
        let ours = evaluate(text, &values);
        let theirs = theirs.as_ref().map(|theirs| &theirs[at]);
        if line.starts_with('!') {
            assert!(ours.is_err(), "{text}: {ours:?}");
            assert!(theirs.is_none_or(|theirs| theirs[0] == "error"), "{text}: {theirs:?}");
            continue;
        }
        match (ours, theirs) {
            (Ok(ours), Some(theirs)) => {
                assert!(is_same(&told(&ours), theirs), "{text}: {} and not {theirs}", told(&ours));
            }
            (Ok(_), None) => {}
            // Whole words that neither side has stand in the lines for the parser alone.
            (Err(why), theirs) => {
                let is_none = theirs.is_some_and(|theirs| theirs[0] == "error");
                assert!(is_none, "{text}: {why}, and not {theirs:?}");
            }
        }
    }
}

/// Expressions of every operation, with few names and small numbers.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => (0..12i64).prop_map(|value| value.to_string()),
        4 => (0..64i32).prop_map(|value| format!("{:?}", f64::from(value) / 8.0)),
        1 => prop_oneof![Just("True"), Just("False"), Just("()"), Just("''")].prop_map(str::to_owned),
        2 => prop_oneof![Just("a"), Just("b")].prop_map(|id| format!("f('{id}')")),
        1 => prop_oneof![Just("'a'"), Just("'b%d'"), Just("'%s-%s'"), Just("'%.2f'")].prop_map(str::to_owned),
        2 => prop_oneof![Just("n"), Just("m")].prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        let operator = prop_oneof![
            Just("+"), Just("-"), Just("*"), Just("/"), Just("//"), Just("%"),
            Just("<"), Just("<="), Just(">"), Just(">="), Just("=="), Just("!="),
            Just("and"), Just("or"), Just("in"), Just("not in"),
        ];
        let several = proptest::collection::vec(inner.clone(), 1..4);
        let through = prop_oneof![
            Just("sum"),
            Just("max"),
            Just("min"),
            Just("all"),
            Just("any"),
            Just("sorted"),
            Just("list"),
            Just("tuple"),
        ];
        let function = prop_oneof![
            Just("sum"), Just("max"), Just("min"), Just("all"), Just("any"), Just("len"),
            Just("sorted"), Just("list"), Just("tuple"), Just("abs"), Just("round"), Just("str"),
            Just("int"), Just("float"), Just("bool"),
        ];
        prop_oneof![
            4 => (two.clone(), operator.clone()).prop_map(|((a, b), op)| format!("{a} {op} {b}")),
            4 => (two.clone(), operator).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            1 => two.clone().prop_map(|(a, b)| format!("({a}) ** (({b}) % 4)")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a} < {b} <= {c}")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => inner.clone().prop_map(|a| format!("not {a}")),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            2 => several.clone().prop_map(|all| format!("({},)", all.join(", "))),
            1 => several.clone().prop_map(|all| format!("[{}]", all.join(", "))),
            // The order of a set is nobody's business.
            1 => several.clone().prop_map(|all| format!("len({{{}}})", all.join(", "))),
            1 => several.clone().prop_map(|all| format!("({{{0}}} == set([{0}]))", all.join(", "))),
            3 => (function.clone(), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            // Others do not go through a generator, which in Python then fails at nothing.
            2 => (through, inner.clone(), inner.clone()).prop_map(|(name, a, of)| format!("{name}({a} for n in {of})")),
            1 => (inner.clone(), several.clone(), inner.clone())
                .prop_map(|(a, of, when)| format!("[{a} for n in ({},) if {when} for k in range(3)]", of.join(", "))),
            1 => (several.clone(), inner.clone())
                .prop_map(|(of, by)| format!("max(({},), key=lambda n: {by})", of.join(", "))),
            1 => two.prop_map(|(a, at)| format!("({a})[{at}]")),
        ]
    })
}

#[test]
fn generated_expressions_are_as_in_python() {
    let config = Config {
        rng_seed: RngSeed::Fixed(20_261_125),
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let strategy = expressions();
    let texts: Vec<String> = (0..8_000)
        .map(|_| strategy.new_tree(&mut runner).expect("no expression is rejected").current())
        .map(|text| format!("[{text} for n, m in ((2, 0.5),)][0]"))
        .collect();
    let values = BTreeMap::from([("a".to_owned(), 1.5), ("b".to_owned(), 4e7)]);
    let Some(theirs) = python(&texts, &values) else { return };
    let mut valued = 0;
    for (text, theirs) in texts.iter().zip(&theirs) {
        let ours = evaluate(text, &values);
        if theirs[0] == "error" {
            assert!(ours.is_err(), "{text}: {ours:?}, and {theirs} in Python");
            continue;
        }
        match &ours {
            Ok(ours) => {
                valued += 1;
                assert!(is_same(&told(ours), theirs), "{text}: {} and not {theirs}", told(ours));
            }
            // What Python has and this has not, on purpose.
            Err(why) => {
                let known = [
                    "63 bits",
                    "too large",
                    "no such operation",
                    "smaller",
                    "root of",
                    "is for",
                    "is wanted",
                    "before the point",
                    "has no text",
                ];
                assert!(
                    known.iter().any(|known| why.contains(known)),
                    "{text}: {why}, and not {theirs}"
                );
            }
        }
    }
    println!("{valued} of {} have a value in both", texts.len());
    assert!(valued > texts.len() / 10, "{valued} have a value");
}

#[test]
fn what_takes_too_long_ends() {
    let doubling =
        (0..40).map(|at| format!("for x{} in (x{at} + x{at},)", at + 1)).collect::<Vec<_>>();
    let doubling = format!("[1 for x0 in ((1,2,3),) {}]", doubling.join(" "));
    let pairs =
        (0..40).map(|at| format!("for x{} in ((x{at}, x{at}),)", at + 1)).collect::<Vec<_>>();
    let pairs = |last: &str| format!("[{last} for x0 in (1,) {}]", pairs.join(" "));
    for text in [
        "sum(1 for a in range(10000) for b in range(10000))",
        "len(range(1000000000))",
        "all(1 for a in range(2000) for b in range(2000))",
        "sorted([n for n in range(100000)])[0] + sum(n for n in range(1000000))",
        "[set(range(n)) for n in range(3000)]",
        &doubling,
        &pairs("str(x40)"),
        &pairs("'%s' % x40"),
        &pairs("x40 < x39"),
        &pairs("len({x40})"),
    ] {
        let predicate = Predicate::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let answer = predicate.evaluate(&|_| Err(String::new()));
        assert!(
            matches!(&answer, Err(NoAnswer::Failed(why)) if why.reason.contains("steps")),
            "{text}: {answer:?}"
        );
    }
    let (open, close) = ("(".repeat(100_000), ")".repeat(100_000));
    for text in [
        format!("{open}1{close}"),
        format!("{}1", "-".repeat(10_000)),
        format!("{}1", "not ".repeat(10_000)),
        vec!["1"; 10_000].join("+"),
        vec!["2"; 10_000].join("**"),
        format!("1{}", "[0]".repeat(10_000)),
        format!("{}1{}", "f(".repeat(1000), ")".repeat(1000)),
        format!("1{}", " if 1 else 1".repeat(2000)),
        format!("[1 {}]", "for x in (1,) ".repeat(2000)),
    ] {
        let why = Predicate::parse(&text).expect_err("too deep or too long").reason;
        assert!(why.contains("lie in each other") || why.contains("longer"), "{why}");
    }
}
