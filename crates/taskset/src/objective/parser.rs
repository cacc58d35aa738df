//! From the text of an expression to its operations: precedence climbing, with numbers computed as
//! they are read.

use std::ops::Range;

use super::{Operation, LONGEST_OBJECTIVE};
use crate::duration::{parse_duration, quote};
use crate::explain::nearest;

/// The most levels of parentheses, functions and signs within each other.
pub(super) const MOST_NESTED: usize = 16;

const ATTRIBUTES: [(&str, Operation); 7] = [
    ("release", Operation::Release),
    ("finish", Operation::Finish),
    ("period", Operation::Period),
    ("deadline", Operation::Deadline),
    ("budget", Operation::Budget),
    ("priority", Operation::Priority),
    ("offset", Operation::Offset),
];

/// With what each is written as.
const FUNCTIONS: [(&str, Operation, &str); 3] = [
    ("min", Operation::Min, "min(a, b)"),
    ("max", Operation::Max, "max(a, b)"),
    ("abs", Operation::Abs, "abs(a)"),
];

/// What is wrong with an expression, and where in its text, in bytes.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: Range<usize>,
    pub(crate) cause: String,
    pub(crate) help: String,
}

fn fault<T>(
    at: Range<usize>,
    cause: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, Fault> {
    Err(Fault { at, cause: cause.into(), help: help.into() })
}

pub(super) struct Parser<'t> {
    text: &'t str,
    /// Where the next token begins, in bytes.
    at: usize,
    nested: usize,
    operations: Vec<Operation>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Parser { text, at: 0, nested: 0, operations: Vec::new() }
    }

    /// Reads the whole text.
    pub(super) fn whole(mut self) -> Result<Vec<Operation>, Fault> {
        let all = 0..self.text.len();
        let length = self.text.chars().count();
        if length > LONGEST_OBJECTIVE {
            let cause = format!("it has {length} characters, more than {LONGEST_OBJECTIVE}");
            return fault(all, cause, "shorten it");
        }
        if self.text.trim().is_empty() {
            return fault(all, "it is empty", "write an expression such as finish - budget");
        }
        self.expression(1)?;
        match self.peek() {
            None => Ok(self.operations),
            Some(')') => fault(self.here(), "\")\" closes nothing", "remove it"),
            Some(',') => {
                fault(self.here(), "\",\" is outside of a function", "use min(a, b) or max(a, b)")
            }
            Some(_) => {
                let cause = format!("{} stands where an operator is missing", self.token());
                fault(self.here(), cause, "write one of + - * / % before it")
            }
        }
    }

    /// Reads operands and those operators that bind at least as `least`, from left to right.
    fn expression(&mut self, least: u8) -> Result<(), Fault> {
        self.operand()?;
        while let Some((operation, binds)) = self.operator().filter(|(_, binds)| *binds >= least) {
            let at = self.here();
            self.at = at.end;
            self.expression(binds + 1)?;
            self.push(operation, at)?;
        }
        Ok(())
    }

    /// The next token, if it is a binary operator, with its precedence.
    fn operator(&mut self) -> Option<(Operation, u8)> {
        Some(match self.peek()? {
            '+' => (Operation::Add, 1),
            '-' => (Operation::Subtract, 1),
            '*' => (Operation::Multiply, 2),
            '/' => (Operation::Divide, 2),
            '%' => (Operation::Remainder, 2),
            _ => return None,
        })
    }

    fn operand(&mut self) -> Result<(), Fault> {
        let next = self.peek();
        let at = self.here();
        match next {
            Some('-') => {
                self.at = at.end;
                self.nest(&at, Self::operand)?;
                self.push(Operation::Negate, at)
            }
            Some('(') => {
                self.at = at.end;
                self.nest(&at, |parser| parser.expression(1))?;
                self.close(at)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if is_of_name(c) => self.name(),
            Some(_) => {
                let cause = format!("{} stands where a value is missing", self.token());
                fault(at, cause, "write a number, a duration, an attribute or a function there")
            }
            None => fault(at, "it ends where a value is missing", "complete it, or shorten it"),
        }
    }

    /// A whole number, or a duration with its unit.
    fn number(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let blanks = rest[digits..].len() - rest[digits..].trim_start().len();
        let unit = &rest[digits + blanks..];
        let unit = unit.find(|c| !is_of_name(c)).unwrap_or(unit.len());
        let length = if unit == 0 { digits } else { digits + blanks + unit };
        let (word, at) = (&rest[..length], self.at..self.at + length);
        let value = if unit == 0 {
            if word.contains('.') {
                let help = "write a fraction of whole numbers, such as 3 / 2, or a duration";
                return fault(at, format!("{} is no whole number", quote(word)), help);
            }
            match word.parse::<i64>() {
                Ok(value) => value.into(),
                Err(_) => {
                    let cause = format!("{} is more than 2^63 - 1", quote(word));
                    return fault(at, cause, "write a smaller number");
                }
            }
        } else {
            match parse_duration(word) {
                Ok(ns) => ns.into(),
                Err(error) => return fault(at, error.cause, error.help),
            }
        };
        self.at = at.end;
        self.operations.push(Operation::Literal(value));
        Ok(())
    }

    /// An attribute, or a function with its arguments.
    fn name(&mut self) -> Result<(), Fault> {
        let at = self.here();
        let name = &self.text[at.clone()];
        self.at = at.end;
        let called = self.peek() == Some('(');
        if let Some((_, attribute)) = ATTRIBUTES.iter().find(|(of, _)| *of == name && !called) {
            self.operations.push(*attribute);
            return Ok(());
        }
        let Some((_, function, form)) = FUNCTIONS.iter().find(|(of, ..)| *of == name) else {
            return fault(at, format!("unknown name {}", quote(name)), instead(name, called));
        };
        let wrong = || fault(at.clone(), format!("{name} lacks an argument"), write(form));
        if !called {
            return wrong();
        }
        let open = self.here();
        self.at = open.end;
        self.nest(&at, |parser| parser.expression(1))?;
        if !function.is_unary() {
            if self.peek() != Some(',') {
                return wrong();
            }
            self.at = self.here().end;
            self.nest(&at, |parser| parser.expression(1))?;
        }
        if self.peek() == Some(',') {
            return fault(self.here(), format!("{name} has too many arguments"), write(form));
        }
        self.close(open)?;
        self.push(*function, at)
    }

    fn close(&mut self, open: Range<usize>) -> Result<(), Fault> {
        match self.peek() {
            Some(')') => self.at = self.here().end,
            None => return fault(open, "\"(\" is not closed", "add \")\""),
            Some(_) => {
                let cause = format!("{} stands where \")\" is missing", self.token());
                return fault(self.here(), cause, "write \")\" or an operator before it");
            }
        }
        Ok(())
    }

    fn nest(
        &mut self,
        at: &Range<usize>,
        read: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.nested == MOST_NESTED {
            let cause = format!("it is nested in more than {MOST_NESTED} levels");
            return fault(at.clone(), cause, "use fewer parentheses");
        }
        self.nested += 1;
        read(self)?;
        self.nested -= 1;
        Ok(())
    }

    /// Adds an operator that stands at `at`, or its value if that is known.
    fn push(&mut self, operation: Operation, at: Range<usize>) -> Result<(), Fault> {
        let (left, right) = match self.operations[..] {
            [.., Operation::Literal(value)] if operation.is_unary() => (Some(value), value),
            [.., Operation::Literal(left), Operation::Literal(right)] => (Some(left), right),
            [.., Operation::Literal(right)] => (None, right),
            _ => (None, 1),
        };
        let operator = &self.text[at.clone()];
        if operation.divides() && right == 0 {
            let cause = format!("{} divides by zero", quote(operator));
            return fault(at, cause, "divide by another number");
        }
        let Some(left) = left else {
            self.operations.push(operation);
            return Ok(());
        };
        let Ok(value) = operation.apply(left, right) else {
            let cause = format!("the value of {} does not fit into 128 bits", quote(operator));
            return fault(at, cause, "use smaller numbers");
        };
        let operands = if operation.is_unary() { 1 } else { 2 };
        self.operations.truncate(self.operations.len() - operands);
        self.operations.push(Operation::Literal(value));
        Ok(())
    }

    /// The first character of the next token.
    fn peek(&mut self) -> Option<char> {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// The place of the next token: a name or number, or one character.
    fn here(&mut self) -> Range<usize> {
        let first = self.peek().map_or(0, char::len_utf8);
        let rest = &self.text[self.at..];
        let word = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        self.at..self.at + word.max(first)
    }

    fn token(&mut self) -> String {
        let at = self.here();
        quote(&self.text[at])
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn write(form: &str) -> String {
    format!("write {form}")
}

/// Help for an unknown attribute or function.
fn instead(name: &str, called: bool) -> String {
    let (attributes, functions) = (ATTRIBUTES.map(|of| of.0), FUNCTIONS.map(|of| of.0));
    let known = if called { &functions[..] } else { &attributes[..] };
    match nearest(&name.to_lowercase(), known) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None if called => format!("use one of {}", FUNCTIONS.map(|of| of.2).join(", ")),
        None => format!("use one of {}", attributes.join(", ")),
    }
}
