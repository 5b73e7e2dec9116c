//! The functions: `f`, and some of Python's.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::{Evaluation, Failed, MOST_STEPS, Outcome};
use crate::predicate::arithmetic::{self, arithmetic as calculate};
use crate::predicate::expr::{Binary, Expr, Kind};
use crate::predicate::value::{Items, Number, Value};

const NAMES: [&str; 19] = [
    "f",
    "abs",
    "all",
    "any",
    "bool",
    "enumerate",
    "float",
    "int",
    "len",
    "list",
    "max",
    "min",
    "range",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
];
const ZIP: &str = "zip";

pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name) || name == ZIP
}

/// A call: where it stands, its function's name, and what it was given.
struct Call<'e> {
    expr: &'e Expr,
    function: &'e str,
    arguments: &'e [Expr],
}

impl<'e> Call<'e> {
    fn failed(&self, why: impl std::fmt::Display) -> Failed {
        self.expr.failed(format!("{}: {why}", self.function))
    }

    /// So many arguments, or an error.
    fn count(&self, least: usize, most: usize) -> Outcome<()> {
        match self.arguments.len() {
            count if (least..=most).contains(&count) => Ok(()),
            count if least == most => {
                Err(self.failed(format!("{least} values are wanted, not {count}")))
            }
            count => Err(self.failed(format!("{least} to {most} values are wanted, not {count}"))),
        }
    }

    fn number(&self, value: &Value) -> Outcome<Number> {
        value
            .number()
            .ok_or_else(|| self.failed(format!("a number is wanted, not {}", value.kind())))
    }

    fn whole(&self, value: &Value) -> Outcome<i64> {
        match value.number() {
            Some(Number::Integer(whole)) => Ok(whole),
            _ => Err(self.failed(format!("a whole number is wanted, not {}", value.kind()))),
        }
    }
}

impl<'e> Evaluation<'e, '_> {
    pub(super) fn call(
        &mut self,
        expr: &'e Expr,
        function: &'e str,
        arguments: &'e [Expr],
        keywords: &'e [(String, Expr)],
    ) -> Outcome {
        let call = Call { expr, function, arguments };
        let allowed: &[&str] = match function {
            "max" | "min" => &["key"],
            "sorted" => &["key", "reverse"],
            _ => &[],
        };
        let (mut key, mut reverse) = (None, false);
        for (name, value) in keywords {
            match name.as_str() {
                name if !allowed.contains(&name) => {
                    return Err(call.failed(format!("{name}= is not available")));
                }
                "key" => key = Some(value),
                _ => reverse = self.value(value)?.is_true(),
            }
        }
        match function {
            "all" | "any" => self.all_or_any(&call),
            "max" | "min" => self.extreme(&call, key),
            "sum" => self.sum(&call),
            "sorted" => self.sorted(&call, key, reverse),
            "list" | "tuple" | "set" => {
                call.count(0, 1)?;
                let items = arguments.first().map_or(Ok(Vec::new()), |one| self.all_of(one))?;
                match function {
                    "list" => Ok(Value::Items(Items::List, items.into())),
                    "tuple" => Ok(Value::Items(Items::Tuple, items.into())),
                    _ => self.set(expr, &items),
                }
            }
            "zip" | "enumerate" => self.together(&call),
            "range" => {
                call.count(1, 3)?;
                self.range(&call)
            }
            "round" => {
                call.count(1, 2)?;
                let number = self.value(&arguments[0])?;
                let digits = arguments.get(1).map(|one| self.value(one)).transpose()?;
                let digits = digits.map(|digits| call.whole(&digits)).transpose()?;
                let rounded = arithmetic::round(call.number(&number)?, digits);
                rounded.map_err(|why| call.failed(why))
            }
            _ => {
                call.count(1, 1)?;
                let value = self.value(&arguments[0])?;
                self.of_one(&call, &value)
            }
        }
    }

    /// Functions of one value, which a key can be as well.
    fn of_one(&mut self, call: &Call<'_>, value: &Value) -> Outcome {
        match (call.function, value) {
            ("f", Value::Text(id)) => match (self.source)(id) {
                Ok(value) => Ok(Value::Float(value)),
                Err(why) => Err(Failed::NoValue(id.to_string(), why)),
            },
            ("f", value) => {
                Err(call.failed(format!("an id in quotes is wanted, not {}", value.kind())))
            }
            ("abs", value) => {
                let number = call.number(value)?;
                let sign = if number.float() < 0.0 { -1 } else { 1 };
                let absolute = calculate(Binary::Multiply, number, Number::Integer(sign));
                // Zero has no sign then.
                let absolute = match absolute {
                    Ok(Value::Float(value)) => Ok(Value::Float(value.abs())),
                    other => other,
                };
                absolute.map_err(|why| call.failed(why))
            }
            ("bool", value) => Ok(Value::Flag(value.is_true())),
            ("str", Value::Text(text)) => Ok(Value::Text(text.clone())),
            ("str", value) => {
                self.spend(call.expr, value.size(MOST_STEPS))?;
                match value.has_text() {
                    true => Ok(Value::text(value.to_string())),
                    false => Err(call.failed(format!("{} has no text", value.kind()))),
                }
            }
            ("float", value) => Ok(Value::Float(call.number(value)?.float())),
            ("int", value) => match call.number(value)? {
                Number::Integer(whole) => Ok(Value::Integer(whole)),
                Number::Float(value) => {
                    arithmetic::to_whole(value).map(Value::Integer).map_err(|why| call.failed(why))
                }
            },
            ("len", value) => {
                let length = match value {
                    Value::Items(kind, items) if *kind != Items::Stream => Some(items.len()),
                    Value::Text(text) => Some(text.chars().count()),
                    _ => None,
                };
                let length = length.and_then(|length| i64::try_from(length).ok());
                length
                    .map(Value::Integer)
                    .ok_or_else(|| call.failed(format!("{} has no length", value.kind())))
            }
            (name, _) if exists(name) => Err(call.failed("cannot be a key")),
            (name, _) => {
                let known = format!("{}, {ZIP}", NAMES.join(", "));
                Err(call.expr.failed(format!("there is no function {name:?}; there are {known}")))
            }
        }
    }

    fn all_or_any(&mut self, call: &Call<'e>) -> Outcome {
        call.count(1, 1)?;
        let is_all = call.function == "all";
        let mut outcome = is_all;
        self.each(&call.arguments[0], &mut |_, item| {
            if item.is_true() == is_all {
                return Ok(ControlFlow::Continue(()));
            }
            outcome = !is_all;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(Value::Flag(outcome))
    }

    /// The values that are given one by one, or in one.
    fn candidates(&mut self, call: &Call<'e>) -> Outcome<Vec<Value>> {
        match call.arguments {
            [] => Err(call.failed("values are wanted")),
            [one] => self.all_of(one),
            several => several.iter().map(|one| self.value(one)).collect(),
        }
    }

    fn extreme(&mut self, call: &Call<'e>, key: Option<&'e Expr>) -> Outcome {
        let wanted = if call.function == "max" { Ordering::Greater } else { Ordering::Less };
        let mut best: Option<(Value, Value)> = None;
        for item in self.candidates(call)? {
            let by = self.keyed(call, key, &item)?;
            let is_better = match &best {
                None => true,
                Some((known, _)) => {
                    self.spend(call.expr, by.size(MOST_STEPS))?;
                    self.order(call.expr, &by, known)? == Some(wanted)
                }
            };
            if is_better {
                best = Some((by, item));
            }
        }
        best.map(|(_, item)| item).ok_or_else(|| call.failed("of no values"))
    }

    /// What an item is compared by.
    fn keyed(&mut self, call: &Call<'_>, key: Option<&'e Expr>, item: &Value) -> Outcome {
        let Some(key) = key else { return Ok(item.clone()) };
        match &key.kind {
            Kind::Lambda { variable, body } => {
                self.names.push((variable, item.clone()));
                let by = self.value(body)?;
                self.names.pop();
                Ok(by)
            }
            Kind::Name(function) if self.named(function).is_none() => {
                self.of_one(&Call { expr: key, function, arguments: call.arguments }, item)
            }
            _ => Err(key.failed("key= is a lambda or the name of a function")),
        }
    }

    fn sum(&mut self, call: &Call<'e>) -> Outcome {
        call.count(1, 2)?;
        let mut sum = Value::Integer(0);
        if let Some(start) = call.arguments.get(1) {
            sum = self.value(start)?;
        }
        let expr = call.expr;
        self.each(&call.arguments[0], &mut |this, item| {
            if matches!(item, Value::Text(_)) {
                return Err(expr.failed("sum: of texts"));
            }
            sum = this.binary(expr, Binary::Add, &sum, &item)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(sum)
    }

    fn sorted(&mut self, call: &Call<'e>, key: Option<&'e Expr>, reverse: bool) -> Outcome {
        call.count(1, 1)?;
        let mut items = Vec::new();
        for item in self.all_of(&call.arguments[0])? {
            let by = self.keyed(call, key, &item)?;
            self.spend(call.expr, by.size(MOST_STEPS).saturating_mul(16))?;
            items.push((by, item));
        }
        // All are of kinds that have an order with the first, or the first error is the answer.
        let mut failed = None;
        items.sort_by(|(left, _), (right, _)| {
            let (left, right) = if reverse { (right, left) } else { (left, right) };
            left.order(right).ok().flatten().unwrap_or_else(|| {
                failed = Some(call.failed(format!("{} and {}", left.kind(), right.kind())));
                Ordering::Equal
            })
        });
        match failed {
            Some(failed) => Err(failed),
            None => {
                Ok(Value::Items(Items::List, items.into_iter().map(|(_, item)| item).collect()))
            }
        }
    }

    /// `zip` and `enumerate`.
    fn together(&mut self, call: &Call<'e>) -> Outcome {
        let mut columns: Vec<Vec<Value>> = Vec::new();
        if call.function == "enumerate" {
            call.count(1, 1)?;
            let items = self.all_of(&call.arguments[0])?;
            columns.push((0..).take(items.len()).map(Value::Integer).collect());
            columns.push(items);
        } else {
            for one in call.arguments {
                columns.push(self.all_of(one)?);
            }
        }
        let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
        self.spend(call.expr, (rows * columns.len()) as u64)?;
        let row = |at: usize| columns.iter().map(|column| column[at].clone()).collect();
        let rows = (0..rows).map(|at| Value::Items(Items::Tuple, row(at))).collect();
        Ok(Value::Items(Items::Stream, rows))
    }

    fn range(&mut self, call: &Call<'e>) -> Outcome {
        let mut numbers = Vec::new();
        for one in call.arguments {
            let value = self.value(one)?;
            numbers.push(call.whole(&value)?);
        }
        let (from, to, step) = match numbers[..] {
            [to] => (0, to, 1),
            [from, to] => (from, to, 1),
            [from, to, step, ..] => (from, to, step),
            [] => (0, 0, 1),
        };
        if step == 0 {
            return Err(call.failed("the step is 0"));
        }
        let mut items = Vec::new();
        let mut next = Some(from);
        while let Some(value) = next.filter(|at| if step > 0 { *at < to } else { *at > to }) {
            self.spend(call.expr, 1)?;
            items.push(Value::Integer(value));
            next = value.checked_add(step);
        }
        Ok(Value::Items(Items::Range, items.into()))
    }
}
