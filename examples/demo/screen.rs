//! What a person sees.

use std::cell::Cell;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use quarry::types::chain;

use crate::error::Error;

/// By this environment variable the host tells the guest, which writes to no terminal, that there is one.
pub(crate) const FORCE_COLOUR: &str = "CLICOLOR_FORCE";

/// Times stand in this column, where the line before them leaves room.
const TIMES: usize = 84;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Standard output, one line at a time.
#[derive(Debug)]
pub(crate) struct Screen {
    colours: bool,
    /// Long names, and what is shown in their place.
    short: Vec<(String, String)>,
    steps: Cell<usize>,
}

impl Screen {
    /// With colours if a terminal is at the other end that wants them.
    pub(crate) fn new() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let wanted = io::stdout().is_terminal() && !is_set("NO_COLOR");
        Self { colours: wanted || is_set(FORCE_COLOUR), short: Vec::new(), steps: Cell::new(0) }
    }

    pub(crate) const fn has_colours(&self) -> bool {
        self.colours
    }

    /// The steps so far.
    pub(crate) const fn steps(&self) -> usize {
        self.steps.get()
    }

    /// Shows `short` wherever `long` stands, from now on.
    pub(crate) fn shorten(&mut self, long: impl Into<String>, short: impl Into<String>) {
        self.short.push((long.into(), short.into()));
    }

    pub(crate) fn heading(&self, text: &str) {
        self.line(BOLD, text);
    }

    /// Begins the next step.
    pub(crate) fn step(&self, title: &str) {
        self.steps.update(|steps| steps + 1);
        self.line("", "");
        self.line(BOLD, &format!("{:>2}. {title}", self.steps.get()));
    }

    /// Explains something.
    pub(crate) fn note(&self, text: &str) {
        self.line(DIM, &format!("    {text}"));
    }

    /// A call, before it is made.
    pub(crate) fn call(&self, method: &str, fields: &str) {
        self.line("", format!("    → {method}  {fields}").trim_end());
    }

    /// Its answer.
    pub(crate) fn answer(&self, text: &str, took: Duration) {
        self.timed(&format!("    ← {text}"), took);
    }

    /// A program that changes something, and how long it took.
    pub(crate) fn did(&self, command: &str, took: Duration) {
        self.timed(&format!("    $ {command}"), took);
    }

    /// A program that looks, and what it shows.
    pub(crate) fn shows(&self, command: &str, lines: &[String]) {
        self.line("", &format!("    $ {command}"));
        lines.iter().for_each(|line| self.line(DIM, &format!("      {line}")));
        if lines.is_empty() {
            self.line(DIM, "      (nothing)");
        }
    }

    /// Something that was looked at and is as it should be.
    pub(crate) fn proved(&self, text: &str) {
        self.line(GREEN, &format!("    ✓ {text}"));
    }

    /// The words of an answer.
    pub(crate) fn quote(&self, text: &str) {
        self.line("", &format!("      “{text}”"));
    }

    /// Something that is not as it should be.
    pub(crate) fn failed(&self, error: &Error) {
        self.line(RED, &format!("    ✗ {}", chain(error)));
    }

    /// The last line, where all went well.
    pub(crate) fn worked(&self, text: &str) {
        self.line("", "");
        self.line(GREEN, &format!("It worked: {text}"));
    }

    /// The last line, where it did not.
    pub(crate) fn did_not_work(&self, text: &str) {
        self.line("", "");
        self.line(RED, &format!("It did not work: {text}"));
    }

    /// The text with its long names made short.
    pub(crate) fn shortened(&self, text: &str) -> String {
        self.short.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
    }

    fn timed(&self, text: &str, took: Duration) {
        let text = self.shortened(text);
        let gap = TIMES.saturating_sub(text.chars().count()).max(2);
        let (dim, plain) = if self.colours { (DIM, PLAIN) } else { ("", "") };
        self.print(&format!("{text}{:gap$}{dim}{}{plain}", "", time(took)));
    }

    fn line(&self, style: &str, text: &str) {
        let text = self.shortened(text);
        if self.colours && !style.is_empty() && !text.is_empty() {
            self.print(&format!("{style}{text}{PLAIN}"));
        } else {
            self.print(&text);
        }
    }

    fn print(&self, line: &str) {
        // Nobody to tell is no reason to stop.
        drop(writeln!(io::stdout(), "{line}"));
    }
}

/// A time as people read it.
pub(crate) fn time(took: Duration) -> String {
    match took.as_millis() {
        0 => "under 1 ms".to_owned(),
        millis @ 1..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
