//! An expression as a tree.

/// A node, and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    /// The byte of the text at which it, or its operator, begins.
    pub(super) at: usize,
    /// Nodes and clauses on the longest way down, itself included.
    pub(super) depth: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Flag(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Name(String),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a < b <= c`: each operand is evaluated once, and none after the first comparison that fails.
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    /// `and`, or else `or`; the value is that of the operand which decides.
    Logic {
        is_and: bool,
        operands: Vec<Expr>,
    },
    If {
        then: Box<Expr>,
        condition: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Display(Bracket, Vec<Expr>),
    Comprehension(Bracket, Box<Comprehension>),
    Call {
        function: String,
        arguments: Vec<Expr>,
        keywords: Vec<(String, Expr)>,
    },
    /// Only after `key=`.
    Lambda {
        variable: String,
        body: Box<Expr>,
    },
    Index(Box<Expr>, Box<Expr>),
    /// `of[from:to]`
    Slice {
        of: Box<Expr>,
        from: Option<Box<Expr>>,
        to: Option<Box<Expr>>,
    },
}

/// `element for target in source if condition …`
#[derive(Debug, Clone)]
pub(super) struct Comprehension {
    pub(super) element: Expr,
    pub(super) clauses: Vec<Clause>,
}

#[derive(Debug, Clone)]
pub(super) struct Clause {
    /// One name, or as many as an item has parts.
    pub(super) targets: Vec<String>,
    /// Whether items are taken apart: also by one name with a comma.
    pub(super) unpacks: bool,
    pub(super) source: Expr,
    pub(super) conditions: Vec<Expr>,
}

/// What is around several values: of a comprehension `Round` is a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    Round,
    Square,
    Curly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    In,
    NotIn,
}

impl Compare {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::In => "in",
            Self::NotIn => "not in",
        }
    }
}

impl Expr {
    pub(super) fn new(at: usize, kind: Kind) -> Self {
        let mut below = 0;
        kind.each_child(&mut |child| below = below.max(child.depth));
        // The clauses of a comprehension lie in each other.
        let own = if let Kind::Comprehension(_, inner) = &kind { inner.clauses.len() } else { 0 };
        Self { at, depth: below + own + 1, kind }
    }
}

impl Kind {
    fn each_child(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Self::Flag(_) | Self::Integer(_) | Self::Float(_) | Self::Text(_) | Self::Name(_) => {}
            Self::Not(one) | Self::Negative(one) | Self::Positive(one) => visit(one),
            Self::Lambda { body, .. } => visit(body),
            Self::Binary(_, left, right) | Self::Index(left, right) => {
                visit(left);
                visit(right);
            }
            Self::Slice { of, from, to } => {
                [Some(of), from.as_ref(), to.as_ref()]
                    .into_iter()
                    .flatten()
                    .for_each(|one| visit(one));
            }
            Self::Compare(first, rest) => {
                visit(first);
                rest.iter().for_each(|(_, one)| visit(one));
            }
            Self::Logic { operands, .. } | Self::Display(_, operands) => {
                operands.iter().for_each(visit)
            }
            Self::If { then, condition, otherwise } => {
                [then, condition, otherwise].into_iter().for_each(|one| visit(one));
            }
            Self::Comprehension(_, inner) => {
                visit(&inner.element);
                for clause in &inner.clauses {
                    visit(&clause.source);
                    clause.conditions.iter().for_each(&mut *visit);
                }
            }
            Self::Call { arguments, keywords, .. } => {
                arguments.iter().for_each(&mut *visit);
                keywords.iter().for_each(|(_, one)| visit(one));
            }
        }
    }
}
