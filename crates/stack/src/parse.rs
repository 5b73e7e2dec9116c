//! Tokens to the generic expression, by recursive descent.
//!
//! ```text
//! expression := NAME "(" [ argument { "," argument } ] ")" | WORD | QUOTED
//! argument   := [ NAME "=" ] expression
//! ```
//!
//! Invariants: recursion is at most [`MAX_DEPTH`] calls deep, whatever the input.

use crate::Span;
use crate::error::{Fault, ParseError};
use crate::expr::{Arg, Call, Expr, Word, is_identifier};
use crate::lexer::{Token, TokenKind, lex};
use crate::problem::Problem;

/// The longest expression, in bytes: 384 members with long paths fit many times.
pub const MAX_LENGTH: usize = 1 << 18;

/// The greatest depth of nested calls.
pub const MAX_DEPTH: usize = 64;

/// Parses the generic form: any name, any arguments.
///
/// # Errors
/// Empty, too long or too deeply nested; a missing parenthesis, quote or argument; stray characters.
pub fn parse_expr(source: &str) -> Result<Expr, ParseError> {
    parse_tokens(source).map_err(|fault| fault.locate(source))
}

pub(crate) fn parse_tokens(source: &str) -> Result<Expr, Fault> {
    if source.len() > MAX_LENGTH {
        let problem = Problem::TooLong { length: source.len(), limit: MAX_LENGTH };
        return Err(Fault::new(problem, Span::at(0)));
    }
    let mut parser = Parser { tokens: lex(source)?, next: 0 };
    if parser.peek().kind == TokenKind::End {
        return Err(Fault::new(Problem::Empty, Span::at(0)));
    }
    let expr = parser.expression(0)?;
    parser.expect_end(&expr)?;
    Ok(expr)
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    /// The next token; [`TokenKind::End`] is never passed, so there always is one.
    fn peek(&self) -> &Token {
        &self.tokens[self.next]
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        if token.kind != TokenKind::End {
            self.next += 1;
        }
        token
    }

    fn unexpected(&self, expected: &'static str) -> Fault {
        let Token { kind, span } = self.peek();
        Fault::new(Problem::Unexpected { found: kind.describe(), expected }, *span)
    }

    fn expression(&mut self, depth: usize) -> Result<Expr, Fault> {
        if !matches!(self.peek().kind, TokenKind::Word(_) | TokenKind::Quoted(_)) {
            return Err(self.unexpected("a member or a value"));
        }
        let token = self.advance();
        let span = token.span;
        let word = match token.kind {
            TokenKind::Word(text) => Word { text, quoted: false, span },
            TokenKind::Quoted(text) => return Ok(Expr::Word(Word { text, quoted: true, span })),
            _ => return Err(self.unexpected("a member or a value")),
        };
        if self.peek().kind != TokenKind::Open {
            return Ok(Expr::Word(word));
        }
        if !is_identifier(&word.text) {
            let problem = Problem::ParenthesisInPath { word: word.text };
            return Err(Fault::new(problem, self.peek().span));
        }
        if depth == MAX_DEPTH {
            return Err(Fault::new(Problem::TooDeep { limit: MAX_DEPTH }, span));
        }
        self.call(word, depth)
    }

    fn call(&mut self, name: Word, depth: usize) -> Result<Expr, Fault> {
        self.advance();
        let mut args = Vec::new();
        if self.peek().kind != TokenKind::Close {
            args.push(self.argument(&name, depth)?);
            while self.peek().kind == TokenKind::Comma {
                self.advance();
                args.push(self.argument(&name, depth)?);
            }
        }
        match self.peek().kind {
            TokenKind::Close => {
                let close = self.advance().span;
                let span = Span::new(name.span.start, close.end);
                Ok(Expr::Call(Call { name, args, span }))
            }
            TokenKind::End => Err(self.missing_close(&name)),
            _ => Err(self.unexpected("`,` or `)`")),
        }
    }

    fn missing_close(&self, name: &Word) -> Fault {
        Fault::new(Problem::MissingParenthesis { name: name.text.clone() }, self.peek().span)
    }

    fn argument(&mut self, call: &Word, depth: usize) -> Result<Arg, Fault> {
        if self.peek().kind == TokenKind::End {
            return Err(self.missing_close(call));
        }
        let is_key = matches!(self.peek().kind, TokenKind::Word(_))
            && self.tokens.get(self.next + 1).is_some_and(|token| token.kind == TokenKind::Equals);
        if !is_key {
            return self.expression(depth + 1).map(Arg::Positional);
        }
        let token = self.advance();
        self.advance();
        let TokenKind::Word(text) = token.kind else { return Err(self.unexpected("a parameter")) };
        let key = Word { text, quoted: false, span: token.span };
        let value = self.expression(depth + 1)?;
        Ok(Arg::Named { key, value })
    }

    fn expect_end(&self, expr: &Expr) -> Result<(), Fault> {
        if self.peek().kind == TokenKind::End {
            return Ok(());
        }
        if let Expr::Word(word) = expr
            && !word.quoted
            && is_identifier(&word.text)
        {
            let problem = Problem::MissingOpening { name: word.text.clone() };
            return Err(Fault::new(problem, Span::at(word.span.end)));
        }
        Err(self.unexpected("the end of the expression"))
    }
}
