//! Errors of a TOML file: from a stretch of its text and what serde or a check reports of it, to an
//! error with the task or group that it is in, its cause and its help.

mod found;
mod spelling;

use toml::de::{DeTable, DeValue};

use crate::duration::{parse_duration, quote};
use crate::format::{Arrival, Cpu, Integer, Pid, Policy, Seed, Share, Spin, Weight, HISTOGRAM};
use crate::problems::Problem;
use crate::value::{Forms, Span, HELP, KEY};
use found::{Found, Part};
use spelling::ALIASES;
pub(crate) use spelling::{meant, nearest};

pub(crate) const STEPS: &str =
    "write a list such as steps = [{ spin = \"1ms\" }, { sleep = \"2ms\" }]";
pub(crate) const UNIFORM: &str = "write it as uniform = [\"100us\", \"300us\"]";
pub(crate) const WINDOWS: &str =
    "write a list such as windows = [{ start = \"0ms\", length = \"5ms\" }]";

/// An error without the name of its file.
pub(crate) struct Explained {
    pub(crate) at: Span,
    /// `task "servo": `, or nothing.
    pub(crate) whose: String,
    pub(crate) cause: String,
    pub(crate) help: String,
}

/// What a check reports of a value or of its key.
pub(crate) fn problem(text: &str, problem: Problem) -> Explained {
    let Problem { mut at, of_key, cause, help } = problem;
    let tree = DeTable::parse(text).ok();
    let found = tree.as_ref().and_then(|tree| Found::all(tree.get_ref(), &at).pop());
    let whose = found.as_ref().map_or(String::new(), Found::whose);
    if let Some(Found { key, .. }) = found.filter(|_| of_key) {
        at = key;
    }
    Explained { at, whose, cause, help }
}

/// What serde reports of a value's form.
pub(crate) fn form(text: &str, error: &toml::de::Error) -> Explained {
    let at = error.span().unwrap_or(0..0);
    let message = error.message();
    let tree = DeTable::parse(text).ok();
    let found = tree.as_ref().and_then(|tree| Found::all(tree.get_ref(), &at).into_iter().next());
    let Some(found) = found else {
        let help = "compare it with docs/task-set.md".to_owned();
        return Explained { at, whose: String::new(), cause: message.to_owned(), help };
    };
    let mut whose = found.whose();
    let unknown_key = message.strip_prefix("unknown field ");
    // serde has no dates: toml hands one out as a table with a key of its own.
    if let (Some(_), DeValue::Datetime(_)) = (unknown_key, found.value) {
        let wanted = match found.key().0 {
            "policy" => Policy::WANTED,
            "arrival" => Arrival::WANTED,
            "spin" => Spin::WANTED,
            _ => "a table",
        };
        return found.wrong_form(at, whose, wanted);
    }
    let (cause, help) = if let Some(known) = unknown_key {
        if found.path.iter().rev().skip(1).any(|part| matches!(part, Part::Key("policy"))) {
            whose += "policy: ";
        }
        found.unknown_key(&words_after(known, "expected "))
    } else if let Some(known) = message.strip_prefix("unknown variant ") {
        found.unknown_word(&words_after(known, "expected "))
    } else if let Some((cause, help)) = message.split_once(HELP) {
        (cause.replace(KEY, found.name()), help.to_owned())
    } else {
        let wanted = message.rsplit_once("expected ").map_or(Integer::WANTED, |(_, wanted)| wanted);
        let DeValue::Integer(number) = found.value else {
            return found.wrong_form(at, whose, wanted);
        };
        if wanted != Integer::WANTED {
            return found.wrong_form(at, whose, wanted);
        }
        let number = quote(&number.to_string());
        let cause = format!("{} {} is out of range", found.name(), number.trim_matches('"'));
        (cause, format!("write {}", found.limits()))
    };
    Explained { at, whose, cause, help }
}

/// The words in backticks after the last `mark`.
fn words_after<'m>(message: &'m str, mark: &str) -> Vec<&'m str> {
    let words = message.rsplit_once(mark).map_or("", |(_, words)| words);
    words.split('`').skip(1).step_by(2).collect()
}

impl Found<'_, '_> {
    fn limits(&self) -> String {
        match self.name() {
            "cpu" | "cpus" => Cpu::limits(),
            "pid" => Pid::limits(),
            "seed" => Seed::limits(),
            "the weight" => Weight::limits(),
            "weight" => Share::limits(),
            _ => Integer::limits(),
        }
    }

    fn unknown_key(&self, known: &[&str]) -> (String, String) {
        let (key, _) = self.key();
        (format!("unknown key {}", quote(key)), self.instead_of_key(key, known))
    }

    fn instead_of_key(&self, key: &str, known: &[&str]) -> String {
        let lower = key.to_lowercase();
        let meant = meant(&lower, &ALIASES, known);
        let owner = match self.path[..] {
            // A set has a task at its top, a role is one.
            [_] if !known.contains(&"task") => "a role",
            [_] => "the top of a file",
            [Part::Key("task"), _, _] => "a task",
            [Part::Key("group"), _, _] => "a group",
            [Part::Key("budget_group"), _, _] => "a budget group",
            [.., Part::Key("policy"), _] => "a policy",
            [.., Part::Key("arrival"), _] => "arrival",
            [.., Part::Key("windows"), _, _] => "a window",
            [.., Part::Key("work"), _] => "work",
            [.., Part::Key("steps"), _, _] => "a step",
            _ => "a spin",
        };
        match (owner, key) {
            _ if meant.is_some() => format!("did you mean {}?", quote(meant.unwrap_or(""))),
            (
                "the top of a file",
                "name" | "period" | "budget" | "deadline" | "priority" | "work" | "command" | "pid",
            ) => "it belongs to a task: move it below a [[task]] line".to_owned(),
            ("a role", "name") => "remove it: the name of a role is that of its file".to_owned(),
            ("a group", "weight") => {
                "remove it: tasks have weights, below a group with policy = \"wfq\" or \"sfq\"; a \
                 group has period and budget"
                    .to_owned()
            }
            ("a task", "task") => "begin each task with [[task]], not inside another".to_owned(),
            ("a task", "policy" | "duration" | "domain") => {
                "it belongs to the whole set: move it above the first [[task]]".to_owned()
            }
            _ => match nearest(&lower, known) {
                Some(near) => format!("did you mean {}?", quote(near)),
                None => format!("remove it; {owner} has {}", known.join(", ")),
            },
        }
    }

    fn unknown_word(&self, known: &[&str]) -> (String, String) {
        let word = self.value.as_str().unwrap_or("");
        let what = match self.key().0 {
            "server" => "kind of server",
            _ => "overrun policy",
        };
        let quoted: Vec<String> = known.iter().map(|word| quote(word)).collect();
        let help = match (nearest(&word.to_lowercase(), known), &quoted[..]) {
            (Some(near), _) => format!("did you mean {}?", quote(near)),
            (None, [one, other]) => format!("use {one} or {other}"),
            (None, many) => format!("use one of {}", many.join(", ")),
        };
        (format!("unknown {what} {}", quote(word)), help)
    }

    /// A value that has not the form which is wanted, as its type calls that.
    fn wrong_form(&self, at: Span, whose: String, wanted: &str) -> Explained {
        let (key, item) = self.key();
        let (called, number) = (key.replace('_', " "), item.map_or(0, |item| item + 1));
        let (name, wanted, help) = match (key, item, wanted) {
            ("task" | "group" | "budget_group", Some(_), _) => (
                format!("{called} {number}"),
                "a table",
                format!("describe each {called} below a [[{key}]] line"),
            ),
            ("task" | "group" | "budget_group", None, "a sequence") => {
                let help = format!("write [[{key}]] in double brackets, once per {called}");
                (key.to_owned(), "a list of tables", help)
            }
            ("windows", Some(_), _) => (format!("window {number}"), "a table", WINDOWS.to_owned()),
            ("windows", None, _) => (key.to_owned(), "a list of tables", WINDOWS.to_owned()),
            ("steps", Some(_), _) => (format!("step {number}"), "a table", STEPS.to_owned()),
            ("steps", None, _) => (key.to_owned(), "a list of tables", STEPS.to_owned()),
            ("command", Some(_), _) => {
                (format!("the command's word {number}"), "a string", self.in_quotes())
            }
            ("command", None, _) => (key.to_owned(), "a list of strings", self.as_list()),
            ("uniform", None, _) => (key.to_owned(), "a list of two durations", UNIFORM.to_owned()),
            ("histogram", _, "a pair") => {
                ("a bin of the histogram".to_owned(), wanted, HISTOGRAM.to_owned())
            }
            ("histogram", None, _) => (key.to_owned(), "a list of pairs", HISTOGRAM.to_owned()),
            ("cpus", None, _) => {
                let help = "write a list such as cpus = [0, 1], or cpu for one CPU";
                (key.to_owned(), "a list of CPU numbers", help.to_owned())
            }
            ("work", ..) => (key.to_owned(), wanted, self.as_work()),
            ("reclaim", ..) => (key.to_owned(), "true or false", "write reclaim = true".to_owned()),
            _ => (self.name().to_owned(), wanted, self.in_form(wanted)),
        };
        Explained {
            at,
            whose,
            cause: format!("{name} is {}, not {wanted}", kind(self.value)),
            help,
        }
    }

    /// How a value of a common type is written.
    fn in_form(&self, wanted: &str) -> String {
        let (key, _) = self.key();
        match (wanted, self.value) {
            ("a whole number", DeValue::String(text)) if text.parse::<i64>().is_ok() => {
                format!("remove the quotes: {text}")
            }
            ("a whole number", DeValue::Array(_)) if key == "cpu" => {
                "write one number, or use cpus for several".to_owned()
            }
            ("a whole number", _) => format!("write {}", self.limits()),
            ("a duration with its unit", value) => {
                let number = match value {
                    DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
                    DeValue::Float(number) => number.as_str(),
                    _ => "1",
                };
                let example =
                    Some(format!("{number}ms")).filter(|example| parse_duration(example).is_ok());
                let example = example.as_deref().unwrap_or("1ms");
                format!("write it in quotes with one of ns, us, ms, s, min: \"{example}\"")
            }
            ("a name", _) => "write its name in quotes: policy = \"edf\"".to_owned(),
            ("a word, a table or a list", _) => crate::format::ARRIVALS.to_owned(),
            _ => {
                let example = EXAMPLES
                    .iter()
                    .find(|(of, _)| *of == key)
                    .map_or("media", |(_, example)| *example);
                format!("write it in quotes, such as {key} = \"{example}\"")
            }
        }
    }

    fn in_quotes(&self) -> String {
        match self.value {
            DeValue::Integer(n) => format!("put it in quotes: {}", quote(&n.to_string())),
            DeValue::Float(n) => format!("put it in quotes: {}", quote(&n.to_string())),
            _ => "put each argument in quotes, in one list".to_owned(),
        }
    }

    /// A command line as the list it should have been, as far as blanks separate its words.
    fn as_list(&self) -> String {
        let Some(line) = self.value.as_str() else {
            return "write a list of strings, such as command = [\"xz\", \"-T4\", \"file\"]"
                .to_owned();
        };
        let mut words: Vec<String> = line.split_whitespace().take(8).map(quote).collect();
        if words.is_empty() {
            words = vec![quote("program"), quote("argument")];
        }
        let more = if line.split_whitespace().nth(8).is_some() { ", ..." } else { "" };
        format!("write a list, for no shell splits it: command = [{}{more}]", words.join(", "))
    }

    fn as_work(&self) -> String {
        format!("write work = {{ spin = {} }}", quote(self.value.as_str().unwrap_or("200us")))
    }
}

/// What a string may be that is none.
const EXAMPLES: [(&str, &str); 9] = [
    ("name", "servo"),
    ("role", "audio-render"),
    ("policy", "edf"),
    ("description", "renders sound"),
    ("domain", "partitioned"),
    ("overrun", "carry"),
    ("server", "deferrable"),
    ("order", "finish - budget"),
    ("recorded", "times.txt"),
];

/// How a value's type is called in a message.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a bare number",
        DeValue::Float(_) => "a bare number with decimals",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
