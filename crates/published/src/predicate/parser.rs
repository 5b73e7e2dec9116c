//! From words to a tree, by recursive descent.
//!
//! ```text
//! expression  logic ["if" logic "else" expression]
//! logic       or: and: not: comparison
//! comparison  sum {("<" | "<=" | … | ["not"] "in") sum}
//! sum         product {("+" | "-") product}
//! product     factor {("*" | "/" | "//" | "%") factor}
//! factor      ("-" | "+") factor | power
//! power       postfix ["**" factor]
//! postfix     atom {"[" expression "]" | "[" [expression] ":" [expression] "]"}
//! atom        number | text {text} | name | name "(" arguments ")" | brackets
//! ```

use super::expr::{Binary, Bracket, Clause, Compare, Comprehension, Expr, Kind};
use super::lexer::{Token, tokens};
use super::{SyntaxError, error_at};

/// Expressions inside of each other, and nodes below each other.
const DEEPEST: usize = 64;
/// Bytes of a text.
const LONGEST: usize = 64 * 1024;
const KEYWORDS: [&str; 10] =
    ["and", "or", "not", "in", "if", "else", "for", "lambda", "None", "is"];

pub(super) fn parse(text: &str) -> Result<Expr, SyntaxError> {
    if text.len() > LONGEST {
        return Err(error_at(text, 0, format!("longer than {LONGEST} bytes")));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, nesting: 0 };
    let expr = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The last is the end, which is never taken.
    tokens: Vec<(usize, Token)>,
    next: usize,
    nesting: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn expected(&self, what: &str) -> SyntaxError {
        error_at(
            self.text,
            self.at(),
            format!("{what} is expected, not {}", self.peek().describe()),
        )
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if found == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn want(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("{sign:?}"))) }
    }

    fn want_word(&mut self, word: &str) -> Result<(), SyntaxError> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&format!("{word:?}"))) }
    }

    /// A name that may be given: none that means something already.
    fn want_name(&mut self) -> Result<String, SyntaxError> {
        match self.peek() {
            Token::Name(name)
                if !KEYWORDS.contains(&name.as_str()) && name != "True" && name != "False" =>
            {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected("a name")),
        }
    }

    fn node(&self, at: usize, kind: Kind) -> Result<Expr, SyntaxError> {
        let expr = Expr::new(at, kind);
        if expr.depth > DEEPEST { Err(self.too_deep(at)) } else { Ok(expr) }
    }

    fn too_deep(&self, at: usize) -> SyntaxError {
        error_at(self.text, at, format!("more than {DEEPEST} expressions lie in each other"))
    }

    /// Whatever may be nested comes through here.
    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expr, SyntaxError>,
    ) -> Result<Expr, SyntaxError> {
        if self.nesting == DEEPEST {
            return Err(self.too_deep(self.at()));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn expression(&mut self) -> Result<Expr, SyntaxError> {
        self.nested(|parser| {
            let then = parser.logic(false)?;
            let at = parser.at();
            if !parser.take_word("if") {
                return Ok(then);
            }
            let condition = Box::new(parser.logic(false)?);
            parser.want_word("else")?;
            let otherwise = Box::new(parser.expression()?);
            parser.node(at, Kind::If { then: Box::new(then), condition, otherwise })
        })
    }

    /// Operands of `and`, joined by `or`; or what `and` joins.
    fn logic(&mut self, is_and: bool) -> Result<Expr, SyntaxError> {
        let at = self.at();
        let one = |parser: &mut Self| if is_and { parser.not() } else { parser.logic(true) };
        let mut operands = vec![one(self)?];
        while self.take_word(if is_and { "and" } else { "or" }) {
            operands.push(one(self)?);
        }
        match operands.len() {
            1 => Ok(operands.remove(0)),
            _ => self.node(at, Kind::Logic { is_and, operands }),
        }
    }

    fn not(&mut self) -> Result<Expr, SyntaxError> {
        let at = self.at();
        if !self.take_word("not") {
            return self.comparison();
        }
        let operand = self.nested(Self::not)?;
        self.node(at, Kind::Not(Box::new(operand)))
    }

    fn comparison(&mut self) -> Result<Expr, SyntaxError> {
        let first = self.sum()?;
        let at = self.at();
        let mut rest = Vec::new();
        while let Some(compare) = self.compare()? {
            rest.push((compare, self.sum()?));
        }
        match rest.is_empty() {
            true => Ok(first),
            false => self.node(at, Kind::Compare(Box::new(first), rest)),
        }
    }

    fn compare(&mut self) -> Result<Option<Compare>, SyntaxError> {
        use Compare::{Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual, NotEqual, NotIn};
        let signs = [Less, LessOrEqual, Greater, GreaterOrEqual, Equal, NotEqual];
        if let Some(compare) = signs.into_iter().find(|one| self.take(one.text())) {
            return Ok(Some(compare));
        }
        if self.take_word("not") {
            return self.want_word("in").map(|()| Some(NotIn));
        }
        Ok(self.take_word("in").then_some(In))
    }

    fn chain(
        &mut self,
        signs: &[(&str, Binary)],
        operand: fn(&mut Self) -> Result<Expr, SyntaxError>,
    ) -> Result<Expr, SyntaxError> {
        let mut left = operand(self)?;
        loop {
            let at = self.at();
            let found = signs.iter().find(|(sign, _)| self.take(sign));
            let Some((_, binary)) = found else { return Ok(left) };
            let right = Box::new(operand(self)?);
            left = self.node(at, Kind::Binary(*binary, Box::new(left), right))?;
        }
    }

    fn sum(&mut self) -> Result<Expr, SyntaxError> {
        self.chain(&[("+", Binary::Add), ("-", Binary::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Expr, SyntaxError> {
        let signs = [
            ("*", Binary::Multiply),
            ("/", Binary::Divide),
            ("//", Binary::FloorDivide),
            ("%", Binary::Remainder),
        ];
        self.chain(&signs, Self::factor)
    }

    fn factor(&mut self) -> Result<Expr, SyntaxError> {
        let at = self.at();
        let kind: fn(Box<Expr>) -> Kind = match () {
            () if self.take("-") => Kind::Negative,
            () if self.take("+") => Kind::Positive,
            () => return self.power(),
        };
        let operand = self.nested(Self::factor)?;
        self.node(at, kind(Box::new(operand)))
    }

    fn power(&mut self) -> Result<Expr, SyntaxError> {
        let base = self.postfix()?;
        let at = self.at();
        if !self.take("**") {
            return Ok(base);
        }
        let exponent = Box::new(self.nested(Self::factor)?);
        self.node(at, Kind::Binary(Binary::Power, Box::new(base), exponent))
    }

    fn postfix(&mut self) -> Result<Expr, SyntaxError> {
        let mut expr = self.atom()?;
        loop {
            let at = self.at();
            if !self.take("[") {
                return Ok(expr);
            }
            let (of, from) = (Box::new(expr), self.bound(":")?);
            let kind = match from {
                from if self.take(":") => Kind::Slice { of, from, to: self.bound("]")? },
                Some(index) => Kind::Index(of, index),
                None => return Err(self.expected("an index")),
            };
            self.want("]")?;
            expr = self.node(at, kind)?;
        }
    }

    /// An end of a slice, which may be left out before this sign.
    fn bound(&mut self, sign: &str) -> Result<Option<Box<Expr>>, SyntaxError> {
        match self.peek() {
            Token::Sign(next) if *next == sign => Ok(None),
            _ => Ok(Some(Box::new(self.expression()?))),
        }
    }

    fn atom(&mut self) -> Result<Expr, SyntaxError> {
        let at = self.at();
        let kind = match self.peek().clone() {
            Token::Integer(value) => Kind::Integer(value),
            Token::Float(value) => Kind::Float(value),
            Token::Text(mut text) => {
                while let Token::Text(more) = &self.tokens[self.next + 1].1 {
                    text += more;
                    self.next += 1;
                }
                Kind::Text(text)
            }
            Token::Sign("(") => return self.bracket(Bracket::Round, ")"),
            Token::Sign("[") => return self.bracket(Bracket::Square, "]"),
            Token::Sign("{") => return self.bracket(Bracket::Curly, "}"),
            Token::Name(name) if name == "True" || name == "False" => Kind::Flag(name == "True"),
            Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => {
                self.next += 1;
                if self.take("(") {
                    return self.call(at, name);
                }
                return self.node(at, Kind::Name(name));
            }
            Token::Name(_) | Token::Sign(_) | Token::End => return Err(self.expected("a value")),
        };
        self.next += 1;
        self.node(at, kind)
    }

    /// What is in brackets: one value, several, or a comprehension.
    fn bracket(&mut self, bracket: Bracket, close: &str) -> Result<Expr, SyntaxError> {
        let at = self.at();
        self.next += 1;
        if self.take(close) {
            return match bracket {
                Bracket::Curly => {
                    Err(error_at(self.text, at, "dictionaries are not available; set() is empty"))
                }
                bracket => self.node(at, Kind::Display(bracket, Vec::new())),
            };
        }
        let first = self.expression()?;
        if self.is_word("for") {
            let comprehension = Box::new(self.comprehension(first)?);
            self.want(close)?;
            return self.node(at, Kind::Comprehension(bracket, comprehension));
        }
        if bracket == Bracket::Round && self.take(close) {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take(",") {
            if self.take(close) {
                return self.node(at, Kind::Display(bracket, items));
            }
            items.push(self.expression()?);
        }
        match self.take(close) {
            true => self.node(at, Kind::Display(bracket, items)),
            false => Err(self.expected(&format!("\",\" or {close:?}"))),
        }
    }

    fn comprehension(&mut self, element: Expr) -> Result<Comprehension, SyntaxError> {
        let mut clauses = Vec::new();
        while self.take_word("for") {
            let (targets, unpacks) = self.targets()?;
            self.want_word("in")?;
            let source = self.logic(false)?;
            let mut conditions = Vec::new();
            while self.take_word("if") {
                conditions.push(self.logic(false)?);
            }
            clauses.push(Clause { targets, unpacks, source, conditions });
        }
        Ok(Comprehension { element, clauses })
    }

    /// `a`, `a, b`, or either in parentheses.
    fn targets(&mut self) -> Result<(Vec<String>, bool), SyntaxError> {
        let in_brackets = self.take("(");
        let mut names = vec![self.want_name()?];
        let mut unpacks = false;
        while self.take(",") {
            unpacks = true;
            if matches!(self.peek(), Token::Name(name) if !KEYWORDS.contains(&name.as_str())) {
                names.push(self.want_name()?);
            }
        }
        if in_brackets {
            self.want(")")?;
        }
        Ok((names, unpacks))
    }

    /// The arguments of a function, after its parenthesis.
    fn call(&mut self, at: usize, function: String) -> Result<Expr, SyntaxError> {
        let (mut arguments, mut keywords) = (Vec::new(), Vec::new());
        while !self.take(")") {
            let (start, next) = (self.at(), self.next + 1);
            let is_keyword = matches!(self.peek(), Token::Name(_))
                && matches!(self.tokens.get(next), Some((_, Token::Sign("="))));
            if is_keyword {
                let name = self.want_name()?;
                self.want("=")?;
                let value =
                    if self.is_word("lambda") { self.lambda()? } else { self.expression()? };
                keywords.push((name, value));
            } else if !keywords.is_empty() {
                return Err(error_at(self.text, start, "values with names come last"));
            } else {
                let argument = self.expression()?;
                if self.is_word("for") {
                    let inner = Box::new(self.comprehension(argument)?);
                    arguments.push(self.node(start, Kind::Comprehension(Bracket::Round, inner))?);
                    // Python wants parentheses around it wherever there is anything else.
                    if arguments.len() > 1 || !self.take(")") {
                        let why = "a generator among other values has parentheses of its own";
                        return Err(error_at(self.text, start, why));
                    }
                    break;
                }
                arguments.push(argument);
            }
            if !self.take(",") && !matches!(self.peek(), Token::Sign(")")) {
                return Err(self.expected("\",\" or \")\""));
            }
        }
        self.node(at, Kind::Call { function, arguments, keywords })
    }

    fn lambda(&mut self) -> Result<Expr, SyntaxError> {
        let at = self.at();
        self.next += 1;
        let variable = self.want_name()?;
        self.want(":")?;
        let body = Box::new(self.expression()?);
        self.node(at, Kind::Lambda { variable, body })
    }
}
