//! LVM's answers, as JSON, made into [`Reply`]s.

use serde::Deserialize;

use super::rows::{self, Own, Row, RowError};
use crate::lvm::{Command, EngineError, PvRow, Reply};

/// One answer: the report, if the command has one, and the log.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    report: Vec<serde_json::Map<String, serde_json::Value>>,
    log: Vec<Entry>,
}

/// One line of the command's log. Which lines there are is set in the private configuration.
#[derive(Debug, Deserialize)]
struct Entry {
    log_type: String,
    log_context: String,
    log_object_name: String,
    log_message: String,
}

/// How LVM says whether a command succeeded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict<'a> {
    /// The shell's last log line tells it, for the command of this name.
    Logged(&'a str),
    /// A process has ended with success or not.
    Exited(bool),
}

/// Reads LVM's answer to `command`.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is no such answer: an empty list must never mean that nothing
/// is there when LVM meant something else.
pub(super) fn reply(command: &Command, verdict: Verdict<'_>, bytes: &[u8]) -> Result<Reply, EngineError> {
    read(command, verdict, bytes)
        .map_err(|reason| EngineError::Unreadable { command: command.to_string(), reason })
}

fn read(command: &Command, verdict: Verdict<'_>, bytes: &[u8]) -> Result<Reply, String> {
    let mut reply = Reply::default();
    if command.is_change() && matches!(verdict, Verdict::Exited(_)) {
        // A process says less than the shell, and after bad arguments nothing at all.
        let answer = Answer::read(bytes).ok();
        reply.messages = answer.as_ref().map(Answer::errors).unwrap_or_default();
        reply.success = matches!(verdict, Verdict::Exited(true));
        return Ok(reply);
    }
    let answer = Answer::read(bytes)?;
    reply.messages = answer.errors();
    reply.success = match verdict {
        Verdict::Logged(name) => answer.logged(name)?,
        Verdict::Exited(success) => success,
    };
    if !command.is_change() && (reply.success || !answer.report.is_empty()) {
        answer.fill(command, &mut reply).map_err(|error| error.to_string())?;
    }
    Ok(reply)
}

/// Reads the answer of the look at the whole machine.
///
/// # Errors
/// What is wrong with it.
pub(super) fn look(bytes: &[u8]) -> Result<Vec<PvRow>, String> {
    let answer = Answer::read(bytes)?;
    Ok(rows::pvs(answer.list("pv")?))
}

impl Answer {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = mend(&String::from_utf8_lossy(bytes));
        let start = text.find("{\n").ok_or("it holds no JSON object")?;
        let mut answers = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        match answers.next() {
            Some(answer) => answer.map_err(|error| format!("it is not the JSON expected: {error}")),
            None => Err("it holds no JSON object".to_owned()),
        }
    }

    fn errors(&self) -> Vec<String> {
        let errors = self.log.iter().filter(|entry| entry.log_type == "error");
        errors.map(|entry| entry.log_message.clone()).collect()
    }

    /// What the shell says of the command, which must be the one that was sent.
    fn logged(&self, name: &str) -> Result<bool, String> {
        let status = self.log.iter().rfind(|e| e.log_type == "status" && e.log_context == "shell");
        let status = status.ok_or("it does not say how the command ended")?;
        if status.log_object_name != name {
            return Err(format!("it is the answer to another command, {:?}", status.log_object_name));
        }
        Ok(status.log_message == "success")
    }

    fn list(&self, kind: &str) -> Result<&[serde_json::Value], String> {
        let list = self.report.iter().find_map(|report| report.get(kind)).and_then(|list| list.as_array());
        list.map(Vec::as_slice).ok_or_else(|| format!("it holds no list {kind:?}"))
    }

    /// Fills in the rows. One of many LVs may be unreadable; where the answer is about one thing, that
    /// thing must be readable.
    fn fill(&self, command: &Command, reply: &mut Reply) -> Result<(), Reason> {
        match command {
            Command::Group => {
                reply.vgs = rows::vgs(self.list("vg")?)?;
                reply.unallocatable = rows::unallocatable(self.list("vg")?)?;
            }
            Command::Volumes => reply.lvs = rows::lvs(self.list("lv")?)?,
            Command::Volume(_) => reply.lvs = each(self.list("lv")?, |row| rows::lv(row, Own::WithVg))?,
            Command::Segments(_) => reply.segments = each(self.list("seg")?, rows::segment)?,
            _ => {}
        }
        Ok(())
    }
}

/// Why a report cannot be read: as a whole, or for a row of it.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Whole(String),
    #[error(transparent)]
    Row(#[from] RowError),
}

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self::Whole(reason)
    }
}

fn each<T>(
    list: &[serde_json::Value],
    read: impl Fn(Row<'_>) -> Result<T, RowError>,
) -> Result<Vec<T>, RowError> {
    list.iter().map(|value| read(Row(value))).collect()
}

/// Takes away the comma that a process leaves after the last line of its log. Line ends never stand
/// inside LVM's strings.
fn mend(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let last = lines.peek().is_some_and(|next| next.trim() == "]");
        mended.push_str(if last { line.strip_suffix(',').unwrap_or(line) } else { line });
        mended.push('\n');
    }
    mended
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
