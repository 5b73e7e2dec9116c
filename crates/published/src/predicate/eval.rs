//! From a tree to its value.

mod functions;
mod index;

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::expr::{Binary, Bracket, Clause, Compare, Comprehension, Expr, Kind};
use super::value::{Items, Number, Value};
use super::{arithmetic, format};

/// Nodes that are evaluated, and values that are handled, of one predicate.
const MOST_STEPS: u64 = 1_000_000;

/// Where values of rows and probes come from: the value, or why there is none.
pub type Source<'a> = &'a dyn Fn(&str) -> Result<f64, String>;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failed {
    /// At a byte of the text.
    At(usize, String),
    /// A row or a probe without a value: its id, and why.
    NoValue(String, String),
}

/// A comparison that was made, with what it compared.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) first: Value,
    pub(super) rest: Vec<(Compare, Value)>,
    /// Names that had a value then.
    pub(super) names: Vec<(String, Value)>,
}

type Outcome<T = Value> = Result<T, Failed>;
/// What is done with each item of something that is gone through.
type Visit<'v, 'e, 's> =
    &'v mut dyn FnMut(&mut Evaluation<'e, 's>, Value) -> Outcome<ControlFlow<()>>;

pub(super) struct Evaluation<'e, 's> {
    source: Source<'s>,
    names: Vec<(&'e str, Value)>,
    steps: u64,
    /// The last comparison.
    pub(super) seen: Option<Seen>,
}

impl<'e, 's> Evaluation<'e, 's> {
    pub(super) fn new(source: Source<'s>) -> Self {
        Self { source, names: Vec::new(), steps: 0, seen: None }
    }

    fn spend(&mut self, expr: &Expr, steps: u64) -> Outcome<()> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps > MOST_STEPS {
            true => Err(expr.failed(format!("more than {MOST_STEPS} steps"))),
            false => Ok(()),
        }
    }

    pub(super) fn value(&mut self, expr: &'e Expr) -> Outcome {
        self.spend(expr, 1)?;
        match &expr.kind {
            Kind::Flag(flag) => Ok(Value::Flag(*flag)),
            Kind::Integer(value) => Ok(Value::Integer(*value)),
            Kind::Float(value) => Ok(Value::Float(*value)),
            Kind::Text(text) => Ok(Value::text(text.as_str())),
            Kind::Name(name) => self.named(name).ok_or_else(|| match functions::exists(name) {
                true => expr.failed(format!("{name} is a function: {name}(…)")),
                false => expr.failed(format!("{name:?} has no value")),
            }),
            Kind::Not(one) => Ok(Value::Flag(!self.value(one)?.is_true())),
            Kind::Negative(one) => self.signed(expr, one, -1),
            Kind::Positive(one) => self.signed(expr, one, 1),
            Kind::Binary(binary, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(expr, *binary, &left, &right)
            }
            Kind::Compare(first, rest) => self.compare(first, rest),
            Kind::Logic { is_and, operands } => self.logic(*is_and, operands),
            Kind::If { then, condition, otherwise } => {
                let chosen = if self.value(condition)?.is_true() { then } else { otherwise };
                self.value(chosen)
            }
            Kind::Display(bracket, items) => {
                let items = items.iter().map(|item| self.value(item)).collect::<Outcome<_>>()?;
                match bracket {
                    Bracket::Round => Ok(Value::Items(Items::Tuple, items)),
                    Bracket::Square => Ok(Value::Items(Items::List, items)),
                    Bracket::Curly => self.set(expr, &items),
                }
            }
            Kind::Comprehension(bracket, _) => {
                let items = self.all_of(expr)?;
                match bracket {
                    Bracket::Round => Ok(Value::Items(Items::Stream, items.into())),
                    Bracket::Square => Ok(Value::Items(Items::List, items.into())),
                    Bracket::Curly => self.set(expr, &items),
                }
            }
            Kind::Call { function, arguments, keywords } => {
                if self.named(function).is_some() {
                    return Err(expr.failed(format!("{function} is a value here, no function")));
                }
                self.call(expr, function, arguments, keywords)
            }
            Kind::Lambda { .. } => Err(expr.failed("a lambda stands only after key=".to_owned())),
            Kind::Index(of, index) => self.index(expr, of, index),
            Kind::Slice { of, from, to } => self.slice(expr, of, from.as_deref(), to.as_deref()),
        }
    }

    fn named(&self, name: &str) -> Option<Value> {
        let found = self.names.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    }

    fn signed(&mut self, expr: &Expr, one: &'e Expr, sign: i64) -> Outcome {
        let value = self.value(one)?;
        let number = value.number();
        let number = number.ok_or_else(|| expr.failed(format!("{} has no sign", value.kind())))?;
        let sign = Number::Integer(sign);
        arithmetic::arithmetic(Binary::Multiply, number, sign).map_err(|why| expr.failed(why))
    }

    fn binary(&mut self, expr: &Expr, binary: Binary, left: &Value, right: &Value) -> Outcome {
        if let (Some(left), Some(right)) = (left.number(), right.number()) {
            return arithmetic::arithmetic(binary, left, right).map_err(|why| expr.failed(why));
        }
        match (binary, left, right) {
            (Binary::Remainder, Value::Text(text), values) => {
                self.spend(expr, values.size(MOST_STEPS))?;
                let text = format::format(text, values).map_err(|why| expr.failed(why))?;
                self.spend(expr, text.len() as u64 / 64)?;
                Ok(Value::text(text))
            }
            (Binary::Add, Value::Text(left), Value::Text(right)) => {
                self.spend(expr, (left.len() + right.len()) as u64 / 64)?;
                Ok(Value::text(format!("{left}{right}")))
            }
            (Binary::Add, Value::Items(kind, left), Value::Items(other, right))
                if kind == other && matches!(kind, Items::Tuple | Items::List) =>
            {
                self.spend(expr, (left.len() + right.len()) as u64)?;
                Ok(Value::Items(*kind, left.iter().chain(&**right).cloned().collect()))
            }
            _ => {
                let (left, right) = (left.kind(), right.kind());
                Err(expr.failed(format!("no such operation on {left} and {right}")))
            }
        }
    }

    fn compare(&mut self, first: &'e Expr, rest: &'e [(Compare, Expr)]) -> Outcome {
        let mut left = self.value(first)?;
        let mut seen = Seen { first: left.clone(), rest: Vec::new(), names: Vec::new() };
        let mut holds = true;
        for (compare, expr) in rest {
            let right = self.value(expr)?;
            seen.rest.push((*compare, right.clone()));
            holds = self.compare_two(expr, *compare, &left, &right)?;
            if !holds {
                break;
            }
            left = right;
        }
        seen.names =
            self.names.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.seen = Some(seen);
        Ok(Value::Flag(holds))
    }

    fn compare_two(
        &mut self,
        expr: &Expr,
        how: Compare,
        left: &Value,
        right: &Value,
    ) -> Outcome<bool> {
        self.spend(expr, left.size(MOST_STEPS).saturating_mul(1 + right.size(MOST_STEPS) / 64))?;
        self.spend(expr, right.size(MOST_STEPS))?;
        let is: fn(Ordering) -> bool = match how {
            Compare::Equal => return Ok(left.equals(right)),
            Compare::NotEqual => return Ok(!left.equals(right)),
            Compare::In => return contains(expr, right, left),
            Compare::NotIn => return contains(expr, right, left).map(|found| !found),
            Compare::Less => Ordering::is_lt,
            Compare::LessOrEqual => Ordering::is_le,
            Compare::Greater => Ordering::is_gt,
            Compare::GreaterOrEqual => Ordering::is_ge,
        };
        let order = self.order(expr, left, right)?;
        Ok(order.is_some_and(is))
    }

    fn order(&mut self, expr: &Expr, left: &Value, right: &Value) -> Outcome<Option<Ordering>> {
        left.order(right).map_err(|_| {
            expr.failed(format!("neither of {} and {} is the smaller", left.kind(), right.kind()))
        })
    }

    fn logic(&mut self, is_and: bool, operands: &'e [Expr]) -> Outcome {
        let mut decided = Value::Flag(is_and);
        for operand in operands {
            decided = self.value(operand)?;
            if decided.is_true() != is_and {
                break;
            }
        }
        Ok(decided)
    }

    /// The values, each once.
    fn set(&mut self, expr: &Expr, items: &[Value]) -> Outcome {
        let mut kept: Vec<Value> = Vec::new();
        for item in items {
            if matches!(item, Value::Items(kind, _) if *kind != Items::Tuple) {
                return Err(expr.failed(format!("{} cannot be in a set", item.kind())));
            }
            self.spend(expr, (1 + kept.len() as u64) * item.size(MOST_STEPS))?;
            if !kept.iter().any(|known| known.equals(item)) {
                kept.push(item.clone());
            }
        }
        Ok(Value::Items(Items::Set, kept.into()))
    }

    /// Everything that an expression goes through.
    fn all_of(&mut self, expr: &'e Expr) -> Outcome<Vec<Value>> {
        let mut items = Vec::new();
        self.each(expr, &mut |_, item| {
            items.push(item);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(items)
    }

    /// Goes through the values of an expression: those of a comprehension as they come, so that whoever
    /// has seen enough asks for no more.
    fn each(&mut self, expr: &'e Expr, visit: Visit<'_, 'e, 's>) -> Outcome<()> {
        if let Kind::Comprehension(_, inner) = &expr.kind {
            return self.clauses(inner, 0, visit).map(|_| ());
        }
        let value = self.value(expr)?;
        for item in self.items(expr, &value)?.iter() {
            if visit(self, item.clone())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The values of a value.
    fn items(&mut self, expr: &Expr, value: &Value) -> Outcome<std::rc::Rc<[Value]>> {
        let items: std::rc::Rc<[Value]> = match value {
            Value::Items(_, items) => std::rc::Rc::clone(items),
            Value::Text(text) => text.chars().map(|c| Value::text(c.to_string())).collect(),
            other => return Err(expr.failed(format!("{} has no items", other.kind()))),
        };
        self.spend(expr, items.len() as u64)?;
        Ok(items)
    }

    fn clauses(
        &mut self,
        of: &'e Comprehension,
        next: usize,
        visit: Visit<'_, 'e, 's>,
    ) -> Outcome<ControlFlow<()>> {
        let Some(clause) = of.clauses.get(next) else {
            let item = self.value(&of.element)?;
            return visit(self, item);
        };
        let mut flow = ControlFlow::Continue(());
        let known = self.names.len();
        self.each(&clause.source, &mut |this: &mut Self, item| {
            this.bind(clause, item)?;
            let mut is_wanted = true;
            for condition in &clause.conditions {
                is_wanted = is_wanted && this.value(condition)?.is_true();
            }
            if is_wanted {
                flow = this.clauses(of, next + 1, visit)?;
            }
            this.names.truncate(known);
            Ok(flow)
        })?;
        Ok(flow)
    }

    /// Gives the names of a clause their values.
    fn bind(&mut self, clause: &'e Clause, item: Value) -> Outcome<()> {
        let targets = &clause.targets;
        if !clause.unpacks {
            self.names.extend(targets.iter().map(|name| (name.as_str(), item.clone())));
            return Ok(());
        }
        let parts = self.items(&clause.source, &item)?;
        if parts.len() != targets.len() {
            let (parts, names) = (parts.len(), targets.len());
            return Err(clause
                .source
                .failed(format!("an item has {parts} parts for {names} names")));
        }
        self.names.extend(targets.iter().map(String::as_str).zip(parts.iter().cloned()));
        Ok(())
    }
}

fn contains(expr: &Expr, whole: &Value, part: &Value) -> Outcome<bool> {
    match (whole, part) {
        (Value::Items(_, items), part) => Ok(items.iter().any(|item| item.equals(part))),
        (Value::Text(whole), Value::Text(part)) => Ok(whole.contains(&**part)),
        (whole, part) => Err(expr.failed(format!("{} cannot be in {}", part.kind(), whole.kind()))),
    }
}

impl Expr {
    fn failed(&self, why: impl Into<String>) -> Failed {
        Failed::At(self.at, why.into())
    }
}
